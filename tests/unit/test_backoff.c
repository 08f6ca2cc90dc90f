/* SPDX-License-Identifier: MIT */
/*
 * Backoff: that draws are uniform over the whole range, by the Kolmogorov-Smirnov test on fixed
 * seeds, and that nothing overflows.
 */
#include "core/backoff.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DRAWS 20000
/* sqrt(n) D exceeds this in one of 10,000 samples of a truly uniform source. */
#define KOLMOGOROV_SMIRNOV_LIMIT 2.225

static struct policy policy_of(int64_t base_ns, int64_t max_ns)
{
    struct policy policy;
    memset(&policy, 0, sizeof(policy));
    policy.base_delay = base_ns;
    policy.max_delay = max_ns;
    policy.spread = PPM_ONE / 10;
    policy.spread_max = NS_PER_SECOND;
    return policy;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* sqrt(n) times the largest distance between the sample and uniform(0, ceiling).  Sorts it. */
static double distance_from_uniform(int64_t *sample, size_t count, int64_t ceiling)
{
    double most = 0;
    qsort(sample, count, sizeof(*sample), compare);
    for (size_t i = 0; i < count; i++) {
        double expected = (double)sample[i] / (double)ceiling;
        double below = expected - (double)i / (double)count;
        double above = (double)(i + 1) / (double)count - expected;
        most = fmax(most, fmax(below, above));
    }
    return most * sqrt((double)count);
}

static void test_draws_are_uniform(void **state)
{
    (void)state;
    static int64_t sample[DRAWS];
    struct policy policy = policy_of(250 * NS_PER_MS, 30 * NS_PER_SECOND);
    for (unsigned n = 0; n < 10; n++)
        for (int throttle = 0; throttle < 2; throttle++) {
            struct random_source random = {.seed = 1000 + n * 2 + (unsigned)throttle};
            int64_t ceiling_ns = backoff_ceiling_ns(&policy, n, throttle);
            for (size_t i = 0; i < DRAWS; i++) {
                sample[i] = backoff_draw_ns(&policy, n, throttle, &random);
                assert_in_range(sample[i], 0, ceiling_ns);
            }
            double distance = distance_from_uniform(sample, DRAWS, ceiling_ns);
            if (distance >= KOLMOGOROV_SMIRNOV_LIMIT)
                fail_msg("n %u, throttle %d: distance %g", n, throttle, distance);
            /* Full jitter: the ends of the range are reached too. */
            assert_true(sample[0] < ceiling_ns / 1000);
            assert_true(sample[DRAWS - 1] > ceiling_ns - ceiling_ns / 1000);
        }
}

/* The test can fail: it tells apart what is close to uniform but is not. */
static void test_other_distributions_are_told_apart(void **state)
{
    (void)state;
    static int64_t equal_jitter[DRAWS], short_by_a_tenth[DRAWS], fixed[DRAWS];
    struct random_source random = {.seed = 7};
    for (size_t i = 0; i < DRAWS; i++) {
        equal_jitter[i] = 500 + random_up_to(&random, 500);
        short_by_a_tenth[i] = random_up_to(&random, 900);
        fixed[i] = 500;
    }
    assert_true(distance_from_uniform(equal_jitter, DRAWS, 1000) > KOLMOGOROV_SMIRNOV_LIMIT);
    assert_true(distance_from_uniform(short_by_a_tenth, DRAWS, 1000) > KOLMOGOROV_SMIRNOV_LIMIT);
    assert_true(distance_from_uniform(fixed, DRAWS, 1000) > KOLMOGOROV_SMIRNOV_LIMIT);
}

static void test_ceilings(void **state)
{
    (void)state;
    static const int64_t expected_ms[] = {250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000};
    struct policy policy = policy_of(250 * NS_PER_MS, 30 * NS_PER_SECOND);
    for (unsigned n = 0; n < 10; n++) {
        assert_int_equal(backoff_ceiling_ns(&policy, n, false), expected_ms[n] * NS_PER_MS);
        assert_int_equal(backoff_ceiling_ns(&policy, n, true), expected_ms[n < 9 ? n + 1 : 9] * NS_PER_MS);
    }
}

static void test_any_n_saturates(void **state)
{
    (void)state;
    static const unsigned ns[] = {7, 31, 32, 62, 63, 64, 65, 1000, INT_MAX, UINT_MAX - 1, UINT_MAX};
    struct policy policy = policy_of(250 * NS_PER_MS, 30 * NS_PER_SECOND);
    struct policy endless = policy_of(1, INT64_MAX);
    for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++)
        for (int throttle = 0; throttle < 2; throttle++) {
            assert_int_equal(backoff_ceiling_ns(&policy, ns[i], throttle), 30 * NS_PER_SECOND);
            int64_t ceiling_ns = backoff_ceiling_ns(&endless, ns[i], throttle);
            assert_true(ceiling_ns == INT64_MAX || (uint64_t)ns[i] + (uint64_t)throttle <= 62);
            assert_true(ceiling_ns > 0);
        }
}

static void test_odd_policies(void **state)
{
    (void)state;
    struct random_source random = {.seed = 3};
    struct policy no_base = policy_of(0, 30 * NS_PER_SECOND);
    struct policy no_cap = policy_of(NS_PER_SECOND, 0);
    struct policy base_above_cap = policy_of(9 * NS_PER_SECOND, NS_PER_SECOND);
    struct policy huge = policy_of(INT64_MAX, INT64_MAX);
    struct policy negative = policy_of(DURATION_NONE, NS_PER_SECOND);
    assert_int_equal(backoff_draw_ns(&no_base, 5, true, &random), 0);
    assert_int_equal(backoff_draw_ns(&no_cap, 5, true, &random), 0);
    assert_int_equal(backoff_draw_ns(&negative, 5, true, &random), 0);
    assert_int_equal(backoff_ceiling_ns(&base_above_cap, 0, false), NS_PER_SECOND);
    assert_int_equal(backoff_ceiling_ns(&huge, 3, true), INT64_MAX);
    assert_true(backoff_draw_ns(&huge, 3, true, &random) >= 0);
}

static void test_spread(void **state)
{
    (void)state;
    static int64_t sample[DRAWS];
    struct policy policy = policy_of(0, 0);
    struct random_source random = {.seed = 11};
    /* A tenth of two seconds, uniformly. */
    for (size_t i = 0; i < DRAWS; i++) {
        sample[i] = backoff_spread_ns(&policy, 2 * NS_PER_SECOND, &random);
        assert_in_range(sample[i], 0, 200 * NS_PER_MS);
    }
    assert_true(distance_from_uniform(sample, DRAWS, 200 * NS_PER_MS) < KOLMOGOROV_SMIRNOV_LIMIT);
    /* Capped by spread_max, also where the part of the wait would overflow. */
    for (size_t i = 0; i < DRAWS; i++)
        sample[i] = backoff_spread_ns(&policy, INT64_MAX, &random);
    assert_true(distance_from_uniform(sample, DRAWS, NS_PER_SECOND) < KOLMOGOROV_SMIRNOV_LIMIT);
    assert_int_equal(backoff_spread_ns(&policy, 0, &random), 0);
    assert_int_equal(backoff_spread_ns(&policy, -1, &random), 0);
    policy.spread = 0;
    assert_int_equal(backoff_spread_ns(&policy, NS_PER_SECOND, &random), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws_are_uniform), cmocka_unit_test(test_other_distributions_are_told_apart),
        cmocka_unit_test(test_ceilings),          cmocka_unit_test(test_any_n_saturates),
        cmocka_unit_test(test_odd_policies),      cmocka_unit_test(test_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
