/* SPDX-License-Identifier: MIT */
/*
 * Log sink: where lines go.  One write a line, O_APPEND, never SIGPIPE, never blocking: a line that
 * cannot be written at once is dropped.  Standard error is used only while descriptor 2 is still
 * the file that it was when the sink was opened.  A log file is opened for each line and closed
 * again, so that rotation needs no word and no descriptor is kept.  errno is preserved.
 * Thread-safe.
 */
#ifndef CURTSY_CORE_SYSTEM_LOG_SINK_H
#define CURTSY_CORE_SYSTEM_LOG_SINK_H

#include "core/log.h"

/* path NULL: standard error; a relative one is meant from the present working directory.  Call once,
 * early: further calls change nothing. */
void log_sink_open(enum log_level level, enum log_format format, const char *path, const char *program);

bool log_sink_wants(enum log_level level);

/* Fills in time, pid and program. */
void log_sink_write(struct log_record *record);

/* The one line a process may print about failing open, at level warn; further calls are dropped. */
void log_sink_fail_open(const char *message);

#endif
