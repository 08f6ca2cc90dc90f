/* SPDX-License-Identifier: MIT */
/*
 * Log sink: where lines go.  One write a line, never SIGPIPE, never blocking: a line that cannot be
 * written at once, and whole, is dropped.  errno is preserved, no cancellation is taken, no
 * descriptor is kept and none below 3 is ever taken.  Thread-safe; good in a forked child.
 *
 * Standard error is used only while descriptor 2 is still the file that it was when the process
 * started, and never if that is a network connection (a server that inetd started has its client
 * there).
 *
 * A log file is opened for each line, O_APPEND, and closed again: a line goes into the file that has
 * the name at that moment.  So rotation by renaming needs no word and loses nothing; copying and
 * truncating (logrotate's copytruncate) loses what is written between its two steps.  After a chroot
 * the path means another file; after a change of user it may be one that cannot be written.  It is
 * created with mode 0600: for several users, create it first.  Over NFS appending is not atomic.
 *
 * "syslog" is a datagram to /dev/log, one a line, by a socket of its own: syslog(3) would change what
 * the program has told openlog(3), and keep a descriptor.
 *
 * What may still take time: a regular file on a disk or a server that hangs.
 */
#ifndef CURTSY_CORE_SYSTEM_LOG_SINK_H
#define CURTSY_CORE_SYSTEM_LOG_SINK_H

#include "core/log.h"

/* path: a file; a relative one is meant from the present working directory.  NULL, "", "none" and
 * "/dev/stderr" are standard error; "syslog" is the local syslog daemon ("./syslog" a file of that
 * name).  Call once, early: further calls change nothing. */
void log_sink_open(enum log_level level, enum log_format format, const char *path, const char *program);

/* From now on, in all threads: a relaxed atomic store.  The other settings stay as they were opened;
 * without effect before that. */
void log_sink_set_level(enum log_level level);

bool log_sink_wants(enum log_level level);

/* Fills in time, pid and program. */
void log_sink_write(struct log_record *record);

/* The one line a process may print about failing open, at level warn; further calls are dropped. */
void log_sink_fail_open(const char *message);

/* For tests, which are not alone in their process at its start: what descriptor 2 is now counts as
 * what it was then; and another address than /dev/log (not copied).  Not thread-safe. */
void log_sink_note_stderr(void);
void log_sink_use_syslog_at(const char *path);

#endif
