/* SPDX-License-Identifier: MIT */
/*
 * Report: what is said about a governed transfer, in the log and in the program's error buffer.
 * Nothing is formatted unless it will be written.  At most one line a second of each kind; what
 * was left out is counted in the next one.  Thread-safe.
 */
#ifndef CURTSY_SHIM_REPORT_H
#define CURTSY_SHIM_REPORT_H

#include "shim/governed.h"

/* A wait goes on: said once for each that is longer than a second (info). */
void report_wait(struct governed *governed, const struct governor_step *step);

/* An attempt's outcome: a line for each refusal and each last attempt (info). */
void report_outcome(const struct governed *governed, const struct governor_step *step, CURLcode code);

/* No further attempt (info), or none at all (warn). */
void report_giving_up(const struct governed *governed, const struct governor_step *step);

/* For CURLOPT_ERRORBUFFER: names Curtsy, the host, the cause and when it would work. */
void report_refusal(const struct governed *governed, const struct governor_step *step, char *buffer, size_t size);

#endif
