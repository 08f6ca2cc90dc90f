/* SPDX-License-Identifier: MIT */
/*
 * Log lines: what one says, as text or JSON.  Formatting only: into a buffer of the caller's, no
 * allocation; where lines go is core/system/log_sink.h.
 *
 * A line holds no credential, no query string and no body: endpoints are written as method, host
 * and folded path (log_endpoint).
 */
#ifndef CURTSY_CORE_LOG_H
#define CURTSY_CORE_LOG_H

#include "core/calendar.h"
#include "core/keys.h"
#include "core/metrics.h"

#define LOG_LINE_SIZE 1024 /* below PIPE_BUF, so that one write is one line */

enum log_event {
    LOG_REFUSED,     /* a response with a status that is retried or believed */
    LOG_WAITING,     /* a wait longer than a second begins */
    LOG_GAVE_UP,     /* a wait that does not fit, attempts used up, not repeatable ... */
    LOG_FAILED_OPEN, /* something of Curtsy's own is missing; the program goes on */
    LOG_NOTICE,      /* anything else */
    LOG_WOULD_WAIT,  /* under observe: what would have been done */
    LOG_WOULD_RETRY,
    LOG_OPERATOR, /* the operator's word; `message` is what he has done: "switched to observe" */
};

struct log_record {
    enum log_level level;
    enum log_event event;
    int64_t time_s; /* wall clock */
    int pid;
    const char *program;  /* may be NULL */
    const char *endpoint; /* GET api.example.com/v1/users/... ; may be NULL */
    int status;           /* 0: none */
    unsigned attempt;     /* 0: none */
    enum cause cause;
    int64_t wait_ns;     /* 0: none; TIME_NEVER, or near it: without an end */
    const char *bound;   /* what binds the wait: "quota 5000/h of api.github.com:443"; may be NULL */
    const char *message; /* may be NULL */
};

/* One line with its line end; returns its length.  Text:
 *   curtsy[PID] program: event endpoint: 429, attempt 2, waiting 2s (retry_after), by BOUND: message
 *   curtsy[PID] program: observed endpoint: would have waited 12s (quota), by BOUND
 *   curtsy[PID] program: the operator has MESSAGE: endpoint, for 10m (hold)
 * JSON: one object, whose members are left out where the record has nothing; a wait without an end
 * has no wait_s.  Control characters and what is not UTF-8 are replaced by '?'; JSON is valid whatever
 * the texts hold.  What does not fit is cut.  size: at least 4, for a line that is one. */
size_t log_format_line(const struct log_record *record, enum log_format format, char *buffer, size_t size);

/* The same as one datagram for a local syslog daemon, without a line end (RFC 3164, section 4.1):
 *   <PRI>Mmm dd hh:mm:ss curtsy[PID]: program: event ...    or    ... curtsy[PID]: {"time": ...}
 * Facility daemon, the severity by the level.  local: the record's time in the machine's zone; NULL:
 * not known, then none is written, and a daemon adds its own.  Returns its length; 0 if not even the
 * header fits, which 64 bytes hold. */
size_t log_format_syslog(const struct log_record *record, const struct calendar_time *local, enum log_format format,
                         char *buffer, size_t size);

/* RFC 3339, in UTC: 2026-11-30T12:00:00Z.  Returns its length; 0 if it does not fit. */
size_t log_format_time(int64_t time_s, char *buffer, size_t size);

/* "METHOD host/path" with identifiers folded to '*': segments that are numeric, hexadecimal of 8 or
 * more, UUIDs, longer than 32, letters mixed with digits or capitals of 16 or more, marks between them or
 * not (web hooks carry their secret so), or hold an '@', '%' or '='; at most 6 segments, then "/..."; never query or
 * userinfo. Returns its length; it is cut to fit. */
size_t log_endpoint(const char *method, const char *host, const char *path, char *buffer, size_t size);

#endif
