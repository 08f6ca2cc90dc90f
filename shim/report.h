/* SPDX-License-Identifier: MIT */
/*
 * Report: what is said about a governed transfer: in the log, in the ring of events that all
 * processes share (core/events.h), and in the program's error buffer.
 *
 * An event is added for each refusal, block and give-up, and for what `observe` would have done.  A
 * line is formatted only if it will be written, and at most one a second of each kind; what was left
 * out is counted in the next one.  Thread-safe.
 */
#ifndef CURTSY_SHIM_REPORT_H
#define CURTSY_SHIM_REPORT_H

#include "shim/governed.h"

/* What was found to be in force for it: the sections, the buckets, the values that are not the
 * defaults (debug). */
void report_policy(const struct governed *governed);

/* What these two say where there is something to say. */
void report_stricter_limit(struct governed *governed);
void report_would_wait(const struct governed *governed, const struct governor_step *step);

/* Another process, with another configuration, asks for stricter limits of the same bucket: they hold.
 * Said once for each handle and URL (info). */
static inline void report_others(struct governed *governed)
{
    if (governed->request.others_hold && !governed->told_of_others)
        report_stricter_limit(governed);
}

/* A wait goes on: said once for each that is longer than a second, with what bound (info). */
void report_wait(struct governed *governed, const struct governor_step *step);

/* What observe would have done, before an attempt (info). */
static inline void report_would(const struct governed *governed, const struct governor_step *step)
{
    if (step->would_wait_ns != 0)
        report_would_wait(governed, step);
}

/* An attempt's outcome: each refusal, each last attempt; a 401 or 403 after a wait, with why it may be (info). */
void report_outcome(const struct governed *governed, const struct governor_step *step, CURLcode code);

/* No further attempt (info), or none at all (warn). */
void report_giving_up(const struct governed *governed, const struct governor_step *step);

/* For CURLOPT_ERRORBUFFER: names Curtsy, the host, the cause and when it would work. */
void report_refusal(const struct governed *governed, const struct governor_step *step, char *buffer, size_t size);

#endif
