/* SPDX-License-Identifier: MIT */
/*
 * Metrics: every count lands where it belongs, whatever it is called with, and moving them loses
 * and doubles nothing.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/metrics.h"

#define MS INT64_C(1000000)

static void test_every_cause_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < CAUSE_COUNT; i++) {
        assert_true(strlen(cause_name((enum cause)i)) > 0);
        assert_int_equal(strspn(cause_name((enum cause)i), "abcdefghijklmnopqrstuvwxyz_"),
                         strlen(cause_name((enum cause)i)));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(cause_name((enum cause)i), cause_name((enum cause)j));
    }
    assert_string_equal(cause_name(CAUSE_RETRY_AFTER), "retry_after");
    assert_string_equal(cause_name((enum cause)CAUSE_COUNT), "none");
    assert_string_equal(cause_name((enum cause) - 1), "none");
}

static void test_counts_land_where_they_belong(void **state)
{
    (void)state;
    struct metrics m = {0};
    metrics_request(&m);
    metrics_attempt(&m);
    metrics_attempt(&m);
    metrics_retry(&m, CAUSE_BACKOFF);
    metrics_giveup(&m, CAUSE_MAX_WAIT);
    metrics_giveup(&m, (enum cause)99);
    assert_int_equal(m.requests, 1);
    assert_int_equal(m.attempts, 2);
    assert_int_equal(m.retries[CAUSE_BACKOFF], 1);
    assert_int_equal(m.giveups[CAUSE_MAX_WAIT], 1);
    assert_int_equal(m.giveups[CAUSE_NONE], 1);
}

static void test_statuses_have_slots_and_others_share_one(void **state)
{
    (void)state;
    struct metrics m = {0};
    for (int status = -1; status < 700; status++)
        metrics_refusal(&m, status);
    for (int i = 0; i < METRIC_STATUSES - 1; i++)
        assert_int_equal(m.refusals[i], 1);
    assert_int_equal(m.refusals[METRIC_STATUSES - 1], 701 - (METRIC_STATUSES - 1));
    assert_int_equal(metric_statuses[0], 429);
}

static void test_waits_fall_into_their_bounds(void **state)
{
    (void)state;
    struct metrics m = {0};
    for (int i = 0; i < WAIT_BOUNDS; i++) {
        int64_t bound_ns = (int64_t)(wait_bounds_s[i] * 1000 + 0.5) * MS;
        metrics_wait(&m, CAUSE_QUOTA, bound_ns);
        assert_int_equal(m.waits[i], i == 0 ? 1 : 2);
        metrics_wait(&m, CAUSE_QUOTA, bound_ns + 1);
        assert_int_equal(m.waits[i + 1], 1);
    }
    metrics_wait(&m, CAUSE_BLOCK, -5);
    assert_int_equal(m.waits[0], 2);
    assert_int_equal(m.wait_ns_sum[CAUSE_BLOCK], 0);
    metrics_wait(&m, CAUSE_BLOCK, INT64_MAX);
    assert_int_equal(m.waits[WAIT_BOUNDS], 2);
    assert_int_equal(m.wait_ns_sum[CAUSE_BLOCK], INT64_MAX);
}

static void test_moving_adds_all_and_leaves_nothing(void **state)
{
    (void)state;
    struct metrics from, to;
    uint64_t *word = (uint64_t *)&from, *sum = (uint64_t *)&to;
    for (size_t i = 0; i < sizeof from / 8; i++) {
        word[i] = i + 1;
        sum[i] = 1000;
    }
    metrics_move(&to, &from);
    for (size_t i = 0; i < sizeof from / 8; i++) {
        assert_int_equal(sum[i], 1001 + i);
        assert_int_equal(word[i], 0);
    }
}

static struct metrics shared, total;

static void *count(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20000; i++)
        metrics_request(&shared);
    return NULL;
}

static void *move(void *unused)
{
    (void)unused;
    for (int i = 0; i < 200; i++)
        metrics_move(&total, &shared);
    return NULL;
}

static void test_moving_while_others_count_loses_nothing(void **state)
{
    (void)state;
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, i < 2 ? count : move, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    metrics_move(&total, &shared);
    assert_int_equal(total.requests, 40000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cause_has_a_name_of_its_own),
        cmocka_unit_test(test_counts_land_where_they_belong),
        cmocka_unit_test(test_statuses_have_slots_and_others_share_one),
        cmocka_unit_test(test_waits_fall_into_their_bounds),
        cmocka_unit_test(test_moving_adds_all_and_leaves_nothing),
        cmocka_unit_test(test_moving_while_others_count_loses_nothing),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
