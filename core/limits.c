/* SPDX-License-Identifier: MIT */
/*
 * Limits: the rule of limits.h in whole numbers.
 *
 * With B and the clock in Q16 tokens, B - 1 + ceil(r L) <= N is the same as B + r L <= N + 1.  The
 * clock shows whole units of 2^-16 token, so two readings of it can differ by one unit more than the
 * time between them is worth; that unit is taken off.  It would be 55 ms of a quota of one an hour.
 */
#include "core/limits.h"

typedef unsigned __int128 wide;

#define MAX_WAIT_AUTO_NS (90 * NS_PER_SECOND)

/* 2^40 ns in units of 1/65536 token: what one token per nanosecond is as a rate. */
#define RATE_ONE (TOKEN_ONE << RATE_SHIFT)

static uint64_t saturate(wide value)
{
    return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

/* `part` of `count` requests in each window, rounded down. */
static uint64_t rate_of(struct rate rate, uint32_t part_ppm)
{
    return saturate((wide)rate.count * part_ppm * RATE_ONE / ((wide)rate.window_ns * PPM_ONE));
}

/* What a window may hold beside the burst, in Q16 tokens times 2^40; 0 if the burst alone is too much. */
static wide room_beside(uint64_t published, uint64_t burst)
{
    wide whole = ((wide)published + 1) * TOKEN_ONE;
    return whole > burst ? (whole - burst - 1) << RATE_SHIFT : 0;
}

static bool keeps_rule(const struct limit *limit)
{
    return (wide)limit->rate * (wide)(limit->window_ns + limit->jitter_ns) <=
           room_beside(limit->published, limit->burst);
}

/* The largest rate that keeps the rule. */
static uint64_t largest_rate(const struct limit *limit)
{
    return saturate(room_beside(limit->published, limit->burst) / (wide)(limit->window_ns + limit->jitter_ns));
}

/* headroom x quota - rate x jitter, in whole tokens. */
static uint64_t burst_of(struct rate quota, uint32_t headroom_ppm, uint64_t rate, int64_t jitter_ns)
{
    wide left = (wide)quota.count * headroom_ppm * TOKEN_ONE / PPM_ONE;
    wide bunched = (((wide)rate * (wide)jitter_ns) >> RATE_SHIFT) + 1;
    uint64_t burst = left > bunched ? (uint64_t)(left - bunched) : 0;
    return burst > TOKEN_ONE ? burst / TOKEN_ONE * TOKEN_ONE : TOKEN_ONE;
}

static int64_t jitter_of(const struct policy *policy, int64_t window_ns)
{
    if (policy->network_jitter >= 0)
        return policy->network_jitter > LIMIT_JITTER_MIN_NS ? policy->network_jitter : LIMIT_JITTER_MIN_NS;
    return window_ns / 10 < NS_PER_SECOND ? window_ns / 10 : NS_PER_SECOND;
}

/* One request a window leaves nothing to take headroom from: the window's end, and what the network
 * may shift, is all there is to wait for. */
static struct limit limit_of_quota(const struct policy *policy, struct rate quota)
{
    struct limit limit = {
        .published = quota.count, .window_ns = quota.window_ns, .jitter_ns = jitter_of(policy, quota.window_ns)};
    limit.rate = rate_of(quota, PPM_ONE - policy->headroom);
    limit.burst = burst_of(quota, policy->headroom, limit.rate, limit.jitter_ns);
    uint64_t largest = largest_rate(&limit);
    if (limit.rate > largest || quota.count == 1)
        limit.rate = largest;
    return limit;
}

static struct limit limit_of_rate(const struct policy *policy, struct rate rate)
{
    return (struct limit){.rate = rate_of(rate, PPM_ONE),
                          .burst = TOKEN_ONE,
                          .window_ns = rate.window_ns,
                          .jitter_ns = jitter_of(policy, rate.window_ns)};
}

/* The longest window first. */
static void insert(struct limits *limits, struct limit limit)
{
    unsigned at = limits->count++;
    for (; at > 0 && limits->item[at - 1].window_ns < limit.window_ns; at--)
        limits->item[at] = limits->item[at - 1];
    limits->item[at] = limit;
}

void limits_from_policy(const struct policy *policy, struct limits *out, bool *breaks_quota)
{
    bool has_quota = policy->quota.count > 0;
    const struct rate_list *list = has_quota ? &policy->quota : &policy->rate;
    bool breaks = false;

    *out = (struct limits){0};
    for (unsigned i = 0; i < list->count && i < RATES_MAX; i++) {
        struct limit limit = has_quota ? limit_of_quota(policy, list->item[i]) : limit_of_rate(policy, list->item[i]);
        if (policy->burst != COUNT_AUTO)
            limit.burst = policy->burst > 0 ? policy->burst * TOKEN_ONE : TOKEN_ONE;
        if (limit.rate == 0)
            limit.rate = 1;
        breaks |= has_quota && !keeps_rule(&limit);
        insert(out, limit);
    }
    if (breaks_quota != NULL)
        *breaks_quota = breaks;
}

uint64_t limit_most_in_window(const struct limit *limit, int64_t length_ns)
{
    if (length_ns <= 0)
        return 0;
    /* The last nanosecond is outside of a half-open window. */
    wide clock = (((wide)limit->rate * (wide)(length_ns - 1)) + ((wide)1 << RATE_SHIFT) - 1) >> RATE_SHIFT;
    return saturate((limit->burst + clock) / TOKEN_ONE);
}

int64_t limit_spacing_ns(const struct limit *limit)
{
    uint64_t rate = limit->rate > 0 ? limit->rate : 1;
    return (int64_t)(RATE_ONE / rate + (RATE_ONE % rate != 0));
}

int64_t limits_max_wait_auto_ns(const struct limits *limits)
{
    int64_t longest = MAX_WAIT_AUTO_NS;
    for (unsigned i = 0; i < limits->count && i < RATES_MAX; i++) {
        int64_t three = 3 * limit_spacing_ns(&limits->item[i]);
        if (three > longest)
            longest = three;
    }
    return longest;
}

double limit_rate_per_second(const struct limit *limit)
{
    return (double)limit->rate * (double)NS_PER_SECOND / (double)RATE_ONE;
}
