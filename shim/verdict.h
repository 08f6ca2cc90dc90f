/* SPDX-License-Identifier: MIT */
/*
 * Verdict: an attempt is over; what came of it, and what the governor says to that.
 */
#ifndef CURTSY_SHIM_VERDICT_H
#define CURTSY_SHIM_VERDICT_H

#include "shim/governed.h"

/* GOVERNOR_RETRY: it is to be tried again, or gone on with.  GOVERNOR_DELIVER: it is the program's; with
 * CAUSE_ABORTED, the program itself has ended it. */
struct governor_step verdict_of(struct transfer *transfer, CURLcode code);

/* The program's own timeout has run out, or nearly. */
bool verdict_is_late(const struct transfer *transfer, int64_t now_ns);

#endif
