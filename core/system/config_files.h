/* SPDX-License-Identifier: MIT */
/*
 * Configuration files: which are read, in what order.
 *
 *     built-in defaults
 *     /usr/share/curtsy/NAME.ini            presets: in force only where a section names one (later)
 *     /etc/curtsy/ratelimit.ini
 *     /etc/curtsy/ratelimit.d/NAME.ini      in the C locale's order
 *     $XDG_CONFIG_HOME/curtsy/ratelimit.ini (else ~/.config)
 *     CURTSY_SET                            INI text, on top of everything; what stands in it before
 *                                           any section belongs to [default]
 *
 * CURTSY_CONFIG names a file that replaces all files.  The working directory is never read, so that
 * XDG_CONFIG_HOME and HOME count only where they are absolute (as the XDG Base Directory
 * Specification has it).  Under AT_SECURE no user's file or variable counts.  No file at all: the
 * built-in defaults, silently.
 *
 * Reading never blocks: of a FIFO or a terminal only what is there at once is read.
 */
#ifndef CURTSY_CORE_SYSTEM_CONFIG_FILES_H
#define CURTSY_CORE_SYSTEM_CONFIG_FILES_H

#include "core/config.h"

#define CONFIG_FILE_SIZE_MAX ((size_t)16 << 20)

/* What the environment says; NULL where it says nothing, or an empty text.  Taken once, early, by
 * secure_getenv: what the program does to its environment later does not count. */
struct environment {
    const char *config;      /* CURTSY_CONFIG */
    const char *set;         /* CURTSY_SET */
    const char *mode;        /* CURTSY_MODE */
    const char *segment;     /* CURTSY_SEGMENT */
    const char *log;         /* CURTSY_LOG */
    const char *log_file;    /* CURTSY_LOG_FILE */
    const char *log_format;  /* CURTSY_LOG_FORMAT */
    const char *config_home; /* XDG_CONFIG_HOME */
    const char *home;        /* HOME */
};
/* The values are copies that live as long as the process.  Thread-safe. */
void environment_read(struct environment *environment);

/* Reads every layer.  An unreadable file that was asked for (CURTSY_CONFIG), or that exists, is a
 * diagnostic (line 0) and skipped.  NULL only when out of memory. */
struct config *config_files_load(const struct environment *environment, diagnostic_sink *sink, void *sink_context);

/* The same below another root than "" (for the files in /etc), and as under AT_SECURE or not. */
struct config *config_files_load_below(const char *root, bool secure, const struct environment *environment,
                                       diagnostic_sink *sink, void *sink_context);

/* Adds one file to a builder; false with errno if it cannot be read (EFBIG beyond the size above). */
bool config_files_add(struct config_builder *builder, const char *path);

#endif
