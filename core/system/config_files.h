/* SPDX-License-Identifier: MIT */
/*
 * Configuration files: which are read, in what order.
 *
 *     built-in defaults
 *     /usr/share/curtsy/NAME.ini            presets: those that `presets` in [curtsy] names, in its order;
 *                                           what a preset itself says about presets is ignored
 *     /etc/curtsy/ratelimit.ini
 *     /etc/curtsy/ratelimit.d/NAME.ini      in the C locale's order
 *     $XDG_CONFIG_HOME/curtsy/ratelimit.ini (else ~/.config)
 *     CURTSY_SET                            INI text, on top of everything; what stands in it before
 *                                           any section belongs to [default]
 *
 * CURTSY_CONFIG names a file that replaces all files, but for presets that it names.  The working directory is never
 * read, so that XDG_CONFIG_HOME and HOME count only where they are absolute (as the XDG Base Directory Specification
 * has it).  Under AT_SECURE no user's file or variable counts.  No file at all: the built-in defaults, silently.
 *
 * Reading never blocks: of a FIFO or a terminal only what is there at once is read.
 */
#ifndef CURTSY_CORE_SYSTEM_CONFIG_FILES_H
#define CURTSY_CORE_SYSTEM_CONFIG_FILES_H

#include "core/config.h"

/* While this file is there, everything under Curtsy is switched off: for when the segment, in which the
 * operator's mode is, cannot be used. */
#define CURTSY_OFF_FILE "/etc/curtsy/off"

#define CONFIG_FILE_SIZE_MAX ((size_t)16 << 20)

/* Where presets are installed. */
#ifndef CURTSY_DATADIR
#define CURTSY_DATADIR "/usr/share/curtsy"
#endif

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

/* What was read, for whoever wants to know whether it has changed. */
struct config_sources {
    bool complete;     /* false: some file that exists (or may: it cannot even be looked at), or that CURTSY_CONFIG
                        * names, could not be read */
    uint64_t changed;  /* when the newest file that was read, or ratelimit.d itself, was changed (the later of mtime
                        * and ctime), in nanoseconds since 1970; 0: no file was read */
    bool machine_wide; /* the segment's name comes from /etc/curtsy and from nowhere else: see below */
};

/* Reads every layer; sources may be NULL.  An unreadable file that was asked for (CURTSY_CONFIG), or that exists, is a
 * diagnostic (line 0) and skipped.  A preset that does not exist is a diagnostic at the line that names it, as any
 * other bad value.  NULL only when out of memory. */
struct config *config_files_load(const struct environment *environment, struct config_sources *sources,
                                 diagnostic_sink *sink, void *sink_context);

/* What the machine's administrator says, by itself: only presets that /etc/curtsy names, and /etc/curtsy.
 * Where he has named a segment for the whole machine, its buckets are as this says, and what
 * else there is may only tighten them (core/policy.h, policy_tighten).  No diagnostics: those of the
 * same files were given by config_files_load.  NULL only when out of memory. */
struct config *config_files_load_machine(const char *root);

/* The same below another root than "" (for the files in /etc), and as under AT_SECURE or not. */
struct config *config_files_load_below(const char *root, bool secure, const struct environment *environment,
                                       struct config_sources *sources, diagnostic_sink *sink, void *sink_context);

/* One text of several. */
struct config_layer {
    enum layer_kind kind;
    const char *file; /* how messages name it */
    const char *text;
    size_t length;
};

/* What these layers come to, the lowest first, and below them the presets that they name.  *sources must be set,
 * and is told of the presets' files.  NULL when out of memory. */
struct config *config_files_build(const char *root, const struct config_layer *layers, size_t count,
                                  struct config_sources *sources, diagnostic_sink *sink, void *sink_context);

/* Adds one file to a builder; false with errno if it cannot be read (EFBIG beyond the size above). */
bool config_files_add(struct config_builder *builder, const char *path);

#endif
