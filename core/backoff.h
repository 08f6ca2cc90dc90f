/* SPDX-License-Identifier: MIT */
/*
 * Backoff with full jitter: uniform(0, min(max_delay, base x 2^n)), n counted from 0 at the first
 * retry ("Exponential Backoff and Jitter", AWS Architecture Blog, 2015).  The base is doubled for
 * a 429 without a word.  Saturating for any n.  Pure but for the draw; thread-safe.
 */
#ifndef CURTSY_CORE_BACKOFF_H
#define CURTSY_CORE_BACKOFF_H

#include "core/keys.h"
#include "core/random.h"

/* The upper end of the range. */
int64_t backoff_ceiling_ns(const struct policy *policy, unsigned n, bool is_throttle);
int64_t backoff_draw_ns(const struct policy *policy, unsigned n, bool is_throttle, struct random_source *random);

/* How much later than a server's word of wait_ns: uniform(0, min(spread_max, spread x wait)). */
int64_t backoff_spread_ns(const struct policy *policy, int64_t wait_ns, struct random_source *random);

#endif
