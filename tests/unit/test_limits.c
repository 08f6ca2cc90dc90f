/* SPDX-License-Identifier: MIT */
/*
 * Limits: that the rule holds, in whole numbers, for every quota; that no more is given away than it
 * asks for; and that a bucket which counts as core/bucket.h says keeps it, greedy as its users may be.
 */
#include "core/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef unsigned __int128 wide;

#define MINUTE (60 * NS_PER_SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

static struct policy policy_with_quota(uint64_t count, int64_t window_ns)
{
    struct policy policy;
    policy_defaults(&policy);
    policy.quota = (struct rate_list){1, {{count, window_ns}}};
    return policy;
}

static struct limit only_limit(const struct policy *policy, bool *breaks_quota)
{
    struct limits limits;
    limits_from_policy(policy, &limits, breaks_quota);
    assert_int_equal(limits.count, 1);
    return limits.item[0];
}

static uint64_t ceiling(wide a, wide b)
{
    return (uint64_t)((a + b - 1) / b);
}

/* ---- known ones ---- */

static void known_quotas(void **state)
{
    static const struct {
        uint64_t count;
        int64_t window_ns;
        uint32_t headroom_ppm;
        double rate_per_second;
        uint64_t burst;
        int64_t jitter_ns;
    } cases[] = {
        {100, MINUTE, 200000, 80.0 / 60, 18, NS_PER_SECOND},
        {5000, HOUR, 200000, 4000.0 / 3600, 998, NS_PER_SECOND},
        {10, NS_PER_SECOND, 200000, 8, 1, NS_PER_SECOND / 10},
        {100, NS_PER_SECOND, 200000, 80, 12, NS_PER_SECOND / 10},
        {100, MINUTE, 500000, 50.0 / 60, 49, NS_PER_SECOND},
        /* Too little headroom for a burst: the rate gives way, to 100 a window and jitter. */
        {100, NS_PER_SECOND, 50000, 100.0 / 1.1, 1, NS_PER_SECOND / 10},
        {100, NS_PER_SECOND, 0, 100.0 / 1.1, 1, NS_PER_SECOND / 10},
        /* One a window, whatever the headroom. */
        {1, HOUR, 200000, 1.0 / 3601, 1, NS_PER_SECOND},
        {1, HOUR, 900000, 1.0 / 3601, 1, NS_PER_SECOND},
        {1, 10 * NS_PER_MS, 200000, 1.0 / 0.011, 1, NS_PER_MS},
        {2, DAY, 200000, 1.6 / 86400, 1, NS_PER_SECOND},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct policy policy = policy_with_quota(cases[i].count, cases[i].window_ns);
        policy.headroom = cases[i].headroom_ppm;
        bool breaks = true;
        struct limit limit = only_limit(&policy, &breaks);
        double rate = limit_rate_per_second(&limit);
        assert_true(rate <= cases[i].rate_per_second && rate > cases[i].rate_per_second * 0.998);
        assert_int_equal(limit.burst, cases[i].burst * TOKEN_ONE);
        assert_int_equal(limit.jitter_ns, cases[i].jitter_ns);
        assert_int_equal(limit.published, cases[i].count);
        assert_int_equal(limit.window_ns, cases[i].window_ns);
        assert_false(breaks);
    }
}

static void without_quota_there_is_no_limit(void **state)
{
    struct policy policy;
    struct limits limits;
    bool breaks = true;

    (void)state;
    policy_defaults(&policy);
    limits_from_policy(&policy, &limits, &breaks);
    assert_int_equal(limits.count, 0);
    assert_false(breaks);
    limits_from_policy(&policy, &limits, NULL);
    assert_true(limits_max_wait_ns(&policy, &limits) == 90 * NS_PER_SECOND);
}

static void a_plain_rate_is_exactly_that(void **state)
{
    struct policy policy;
    bool breaks = true;

    (void)state;
    policy_defaults(&policy);
    policy.rate = (struct rate_list){1, {{7, 2 * NS_PER_SECOND}}};
    struct limit limit = only_limit(&policy, &breaks);
    assert_true(limit.rate == (uint64_t)(((wide)7 << 56) / (2 * NS_PER_SECOND)));
    assert_int_equal(limit.burst, TOKEN_ONE);
    assert_int_equal(limit.published, 0);
    assert_int_equal(limit.jitter_ns, NS_PER_SECOND / 5);
    assert_false(breaks);
    policy.burst = 50;
    limit = only_limit(&policy, &breaks);
    assert_int_equal(limit.burst, 50 * TOKEN_ONE);
    assert_false(breaks);
}

static void a_given_burst_is_kept_and_judged(void **state)
{
    static const struct {
        uint64_t count;
        uint32_t headroom_ppm, burst;
        bool breaks;
    } cases[] = {
        {100, 200000, 1, false},         {100, 200000, 18, false}, {100, 200000, 19, false},
        {100, 200000, 20, true},         {100, 200000, 21, true},  {100, 200000, 100, true},
        {100, 200000, 1000000000, true}, {100, 0, 1, false},       {100, 0, 2, true},
        {1, 200000, 1, false},           {1, 200000, 2, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct policy policy = policy_with_quota(cases[i].count, MINUTE);
        policy.headroom = cases[i].headroom_ppm;
        uint64_t rate = only_limit(&policy, NULL).rate;
        policy.burst = cases[i].burst;
        bool breaks = !cases[i].breaks;
        struct limit limit = only_limit(&policy, &breaks);
        assert_int_equal(limit.burst, (uint64_t)cases[i].burst * TOKEN_ONE);
        assert_true(limit.rate == rate);
        assert_int_equal(breaks, cases[i].breaks);
        assert_int_equal(limit_most_in_window(&limit, MINUTE + NS_PER_SECOND) > cases[i].count, cases[i].breaks);
    }
}

static void several_windows_come_longest_first(void **state)
{
    struct policy policy;
    struct limits limits;
    bool breaks;

    (void)state;
    policy_defaults(&policy);
    policy.quota = (struct rate_list){4, {{10, NS_PER_SECOND}, {20000, DAY}, {300, MINUTE}, {5000, HOUR}}};
    limits_from_policy(&policy, &limits, &breaks);
    assert_int_equal(limits.count, 4);
    assert_int_equal(limits.item[0].published, 20000);
    assert_int_equal(limits.item[1].published, 5000);
    assert_int_equal(limits.item[2].published, 300);
    assert_int_equal(limits.item[3].published, 10);
    assert_false(breaks);
    policy.burst = 30;
    limits_from_policy(&policy, &limits, &breaks);
    assert_true(breaks);
}

static void jitter_is_taken_as_given_but_for_what_no_timer_can_keep(void **state)
{
    struct policy policy = policy_with_quota(100, MINUTE);

    (void)state;
    policy.network_jitter = 0;
    struct limit limit = only_limit(&policy, NULL);
    assert_int_equal(limit.jitter_ns, LIMIT_JITTER_MIN_NS);
    assert_int_equal(limit.burst, 19 * TOKEN_ONE);
    policy.network_jitter = 5 * NS_PER_SECOND;
    limit = only_limit(&policy, NULL);
    assert_int_equal(limit.jitter_ns, 5 * NS_PER_SECOND);
    assert_int_equal(limit.burst, 13 * TOKEN_ONE);
}

/* Nonsense that the configuration allows: it stays a limit, and is said to break the quota. */
static void a_jitter_that_leaves_no_room_is_told(void **state)
{
    struct policy policy = policy_with_quota(1, 366 * DAY);
    bool breaks = false;

    (void)state;
    policy.network_jitter = 3650 * DAY;
    struct limit limit = only_limit(&policy, &breaks);
    assert_int_equal(limit.rate, 1);
    assert_true(breaks);
}

/* ---- the rule, for everything ---- */

static uint64_t next_random(void)
{
    static uint64_t state = 2024;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 11 ^ state << 21;
}

static uint64_t up_to(uint64_t most)
{
    return next_random() % (most + 1);
}

/* 1 .. 10^9, as many small ones as large ones. */
static uint64_t random_count(void)
{
    uint64_t count = 1 + up_to((UINT64_C(1) << up_to(29)) - 1);
    return up_to(3) == 0 ? 1 + up_to(30) : count;
}

static int64_t random_window(void)
{
    static const int64_t usual[] = {NS_PER_SECOND, MINUTE, 15 * MINUTE, HOUR, DAY, NS_PER_MS, 366 * DAY};
    if (up_to(1) == 0)
        return usual[up_to(6)];
    return NS_PER_MS + (int64_t)up_to((uint64_t)(366 * DAY - NS_PER_MS) >> up_to(34));
}

static struct policy random_policy(void)
{
    struct policy policy = policy_with_quota(random_count(), random_window());
    static const uint32_t headrooms[] = {0, 1, 10000, 50000, 90000, 100000, 200000, 500000, 999999};
    policy.headroom = up_to(1) == 0 ? headrooms[up_to(8)] : (uint32_t)up_to(PPM_ONE - 1);
    if (up_to(1) == 0)
        policy.network_jitter = (int64_t)up_to((uint64_t)policy.quota.item[0].window_ns >> up_to(20));
    return policy;
}

/* Both as limits.h writes it, and for windows that are cut out of the clock's whole units. */
static void assert_rule(const struct limit *limit)
{
    int64_t length = limit->window_ns + limit->jitter_ns;
    uint64_t burst = limit->burst / TOKEN_ONE;
    uint64_t grown = ceiling((wide)limit->rate * (wide)length, (wide)TOKEN_ONE << RATE_SHIFT);
    assert_true(burst - 1 + grown <= limit->published);
    assert_true(limit_most_in_window(limit, length) <= limit->published);
}

static void the_rule_holds_for_every_quota(void **state)
{
    (void)state;
    for (int i = 0; i < 300000; i++) {
        struct policy policy = random_policy();
        struct rate quota = policy.quota.item[0];
        bool breaks = true;
        struct limit limit = only_limit(&policy, &breaks);
        wide wanted = (wide)quota.count * (PPM_ONE - policy.headroom) * ((wide)TOKEN_ONE << RATE_SHIFT) /
                      ((wide)quota.window_ns * PPM_ONE);

        assert_false(breaks);
        assert_true(limit.rate >= 1 && limit.burst >= TOKEN_ONE && limit.burst % TOKEN_ONE == 0);
        assert_rule(&limit);
        /* Rounded down, and not by more than a unit unless the burst was clamped. */
        if (quota.count > 1 && wanted > 0)
            assert_true(limit.rate <= wanted);
        if (quota.count > 1 && wanted > 0 && wanted <= UINT64_MAX && limit.burst > TOKEN_ONE)
            assert_true(limit.rate == wanted);
    }
}

/* Where the burst is clamped, the rate is the most that the rule leaves. */
static void no_more_is_cut_than_the_rule_asks_for(void **state)
{
    (void)state;
    for (int i = 0; i < 100000; i++) {
        struct policy policy = random_policy();
        struct rate quota = policy.quota.item[0];
        struct limit limit = only_limit(&policy, NULL);
        wide wanted = (wide)quota.count * (PPM_ONE - policy.headroom) * ((wide)TOKEN_ONE << RATE_SHIFT) /
                      ((wide)quota.window_ns * PPM_ONE);
        bool was_cut = limit.rate < wanted && wanted <= UINT64_MAX;
        if (!was_cut)
            continue;
        /* One token is 65,536 units: the unit that rounding takes is 15 millionths. */
        wide length = (wide)limit.window_ns + (wide)limit.jitter_ns;
        wide most = ((wide)quota.count * TOKEN_ONE << RATE_SHIFT) / length;
        assert_int_equal(limit.burst, TOKEN_ONE);
        assert_true(limit.rate + 1 + most / 65535 >= most);
    }
}

/* ---- a bucket that counts so ---- */

static uint64_t clock_at(const struct limit *limit, int64_t t)
{
    return (uint64_t)(((wide)limit->rate * (wide)t) >> RATE_SHIFT);
}

/* The first nanosecond at which the clock shows v. */
static int64_t time_of(const struct limit *limit, uint64_t v)
{
    return (int64_t)ceiling((wide)v << RATE_SHIFT, limit->rate);
}

#define SENT_MAX 4096

/* Sends as soon as it may, later on with pauses now and then, and returns the most in any window. */
static uint64_t greedy_most(const struct limit *limit, int64_t length_ns, int64_t start_ns)
{
    static int64_t sent[SENT_MAX];
    uint64_t tat = 0, most = 0;
    int64_t now = start_ns;

    for (size_t i = 0, oldest = 0; i < SENT_MAX; i++) {
        if (i > SENT_MAX / 2 && up_to(200) == 0)
            now += (int64_t)up_to((uint64_t)length_ns);
        uint64_t v = clock_at(limit, now);
        tat = (tat > v ? tat : v) + TOKEN_ONE;
        uint64_t slot = tat > limit->burst ? tat - limit->burst : 0;
        if (v < slot)
            now = time_of(limit, slot);
        sent[i] = now;
        while (sent[oldest] + length_ns <= now)
            oldest++;
        if (i - oldest + 1 > most)
            most = i - oldest + 1;
    }
    return most;
}

static void a_greedy_program_keeps_the_quota(void **state)
{
    (void)state;
    for (int i = 0; i < 400; i++) {
        struct policy policy = policy_with_quota(1 + up_to(300), NS_PER_SECOND + (int64_t)up_to(HOUR));
        policy.headroom = (uint32_t)up_to(PPM_ONE / 2);
        struct limit limit = only_limit(&policy, NULL);
        int64_t length = limit.window_ns + limit.jitter_ns;
        uint64_t most = greedy_most(&limit, length, (int64_t)up_to(DAY));
        assert_true(most <= limit.published);
        assert_true(most <= limit_most_in_window(&limit, length));
        /* The bound is not a loose one. */
        assert_true(most + 2 > limit_most_in_window(&limit, length));
    }
}

static void the_most_in_a_window_is_an_upper_bound(void **state)
{
    struct limit limit = {.rate = (UINT64_C(1) << 56) / NS_PER_SECOND, .burst = 3 * TOKEN_ONE};

    (void)state;
    assert_int_equal(limit_most_in_window(&limit, 0), 0);
    assert_int_equal(limit_most_in_window(&limit, -5), 0);
    assert_int_equal(limit_most_in_window(&limit, 1), 3);
    assert_int_equal(limit_most_in_window(&limit, NS_PER_SECOND / 2), 3);
    assert_int_equal(limit_most_in_window(&limit, 10 * NS_PER_SECOND + NS_PER_SECOND / 2), 13);
    limit.rate = UINT64_MAX;
    limit.burst = UINT64_MAX;
    assert_true(limit_most_in_window(&limit, INT64_MAX) > UINT64_C(1) << 48);
    limit = (struct limit){0};
    assert_int_equal(limit_most_in_window(&limit, INT64_MAX), 0);
}

/* ---- the rest ---- */

static void spacing_is_rounded_up(void **state)
{
    struct limit limit = {.rate = UINT64_C(1) << 56};

    (void)state;
    assert_int_equal(limit_spacing_ns(&limit), 1);
    limit.rate = (UINT64_C(1) << 56) / NS_PER_SECOND;
    assert_true(limit_spacing_ns(&limit) >= NS_PER_SECOND);
    assert_true(limit_spacing_ns(&limit) < NS_PER_SECOND + 100);
    limit.rate = 1;
    assert_true(limit_spacing_ns(&limit) == INT64_C(1) << 56);
    limit.rate = 0;
    assert_true(limit_spacing_ns(&limit) > 0);
}

static void max_wait_is_ninety_seconds_or_three_spacings(void **state)
{
    struct policy policy = policy_with_quota(100, MINUTE);
    struct limits limits;

    (void)state;
    limits_from_policy(&policy, &limits, NULL);
    assert_true(limits_max_wait_ns(&policy, &limits) == 90 * NS_PER_SECOND);
    policy.quota.item[0] = (struct rate){10, HOUR};
    limits_from_policy(&policy, &limits, NULL);
    assert_true(limits_max_wait_ns(&policy, &limits) == 3 * limit_spacing_ns(&limits.item[0]));
    assert_true(limits_max_wait_ns(&policy, &limits) > 22 * MINUTE);
    policy.max_wait = 5 * NS_PER_SECOND;
    assert_true(limits_max_wait_ns(&policy, &limits) == 5 * NS_PER_SECOND);
    policy.max_wait = 0;
    assert_true(limits_max_wait_ns(&policy, &limits) == 0);
    policy.max_wait = DURATION_AUTO;
    limits.item[0].rate = 1;
    assert_true(limits_max_wait_ns(&policy, &limits) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_quotas),
        cmocka_unit_test(without_quota_there_is_no_limit),
        cmocka_unit_test(a_plain_rate_is_exactly_that),
        cmocka_unit_test(a_given_burst_is_kept_and_judged),
        cmocka_unit_test(several_windows_come_longest_first),
        cmocka_unit_test(jitter_is_taken_as_given_but_for_what_no_timer_can_keep),
        cmocka_unit_test(a_jitter_that_leaves_no_room_is_told),
        cmocka_unit_test(the_rule_holds_for_every_quota),
        cmocka_unit_test(no_more_is_cut_than_the_rule_asks_for),
        cmocka_unit_test(a_greedy_program_keeps_the_quota),
        cmocka_unit_test(the_most_in_a_window_is_an_upper_bound),
        cmocka_unit_test(spacing_is_rounded_up),
        cmocka_unit_test(max_wait_is_ninety_seconds_or_three_spacings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
