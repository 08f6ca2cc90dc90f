/* SPDX-License-Identifier: MIT */
/*
 * Limits: from a published quota to the rate and burst of a token bucket that keeps under it.
 *
 * A bucket of burst B and rate r admits at most B - 1 + ceil(r L) requests in any half-open window
 * of length L.  A server that counts N per window W, fixed or sliding, sees requests bunched up by
 * what the network's delay varies, delta; so the rule is
 *
 *     B - 1 + ceil(r (W + delta)) <= N
 *
 * with r = quota x (1 - headroom) / W and B = headroom x quota - r delta, at least 1.  Where B is
 * clamped to 1 (headrooms under about 9 %), r is cut until the rule holds.  For N = 1, r is the most
 * that the rule allows, 1/(W + delta), whatever the headroom.  Rates are rounded down, and the rule
 * holds for the whole numbers in which the bucket counts.  A plain rate has no published quota to
 * keep: its burst is 1 unless one is given.
 * Pure functions, thread-safe.
 */
#ifndef CURTSY_CORE_LIMITS_H
#define CURTSY_CORE_LIMITS_H

#include "core/keys.h"

/* Tokens are kept as Q48.16: 1 token is TOKEN_ONE. */
#define TOKEN_ONE UINT64_C(65536)
/* Rates are kept as Q16 tokens per 2^40 ns (about 18 minutes). */
#define RATE_SHIFT 40

/* No timer that a waiter sleeps by is more exact than this. */
#define LIMIT_JITTER_MIN_NS (2 * NS_PER_MS)

struct limit {
    uint64_t rate;      /* Q16 tokens per 2^40 ns; above 0 */
    uint64_t burst;     /* Q16 tokens; at least TOKEN_ONE */
    uint64_t published; /* the quota it came from, per window; 0 where a plain rate was given */
    int64_t window_ns;
    int64_t jitter_ns; /* delta: a slot not used within this of its time is forfeited */
};

struct limits {
    unsigned count;               /* 0: unlimited */
    struct limit item[RATES_MAX]; /* the longest window first */
};

/* What policy->quota or policy->rate (whichever is set; never both), headroom, burst and
 * network_jitter come to.  A given burst is kept, and *breaks_quota (may be NULL) says whether it
 * breaks the rule above. */
void limits_from_policy(const struct policy *policy, struct limits *out, bool *breaks_quota);

/* The most requests that any half-open window of `length_ns` can hold under this limit, however the
 * units of the virtual clock fall. */
uint64_t limit_most_in_window(const struct limit *limit, int64_t length_ns);

/* Nanoseconds between two requests at the limit's rate, rounded up. */
int64_t limit_spacing_ns(const struct limit *limit);

/* max_wait, with auto worked out: 90 s, or three spacings of the slowest limit if longer. */
int64_t limits_max_wait_auto_ns(const struct limits *limits);
static inline int64_t limits_max_wait_ns(const struct policy *policy, const struct limits *limits)
{
    return policy->max_wait >= 0 ? policy->max_wait : limits_max_wait_auto_ns(limits);
}

/* Requests per second, for display only. */
double limit_rate_per_second(const struct limit *limit);

#endif
