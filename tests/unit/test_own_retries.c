/* SPDX-License-Identifier: MIT */
/*
 * Own retries: what is remembered, until when, what makes room for what, and that clocks which begin at 0
 * or come round, and threads that meet, do no harm.
 */
#include "core/own_retries.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define S INT64_C(1000000000)
#define TICK (INT64_C(1) << 27)
#define ROUND (TICK << 32) /* 18 years: ticks begin anew */
#define WAYS 8
#define SETS (OWN_RETRIES_ENTRIES / WAYS)

static struct own_retries table;

static int empty(void **state)
{
    (void)state;
    memset(&table, 0, sizeof table);
    return 0;
}

/* The n-th request of a set. */
static uint64_t request(uint32_t set, uint32_t n)
{
    return (uint64_t)set << 32 | n;
}

static void test_nothing_is_known_at_first(void **state)
{
    (void)state;
    assert_true(own_retries_are_empty(&table));
    assert_false(own_retries_find(&table, 0, 0));
    for (int shift = 0; shift < 63; shift++)
        assert_false(own_retries_find(&table, UINT64_C(1) << shift, INT64_C(1) << shift));
    own_retries_clear(&table, 0);
    own_retries_note(&table, 1, 0, 5 * S);
    own_retries_note(&table, 1, -1, 5 * S);
    own_retries_note(&table, 1, INT64_MIN, 5 * S);
    assert_false(own_retries_find(&table, 1, 5 * S));
    assert_true(own_retries_are_empty(&table));
    own_retries_note(&table, 1, 1, 5 * S);
    assert_false(own_retries_are_empty(&table));
}

/* Not earlier than was asked for, and not more than a tick later. */
static void expect_span(uint64_t hash, int64_t span_ns, int64_t now_ns)
{
    memset(&table, 0, sizeof table);
    own_retries_note(&table, hash, span_ns, now_ns);
    assert_true(own_retries_find(&table, hash, now_ns));
    assert_true(own_retries_find(&table, hash, now_ns + span_ns - 1));
    /* Two ticks where the end would be told as 0. */
    assert_false(own_retries_find(&table, hash, now_ns + span_ns + 2 * TICK));
    assert_false(own_retries_find(&table, hash, now_ns + span_ns + 1000 * S));
    assert_false(own_retries_find(&table, hash + 1, now_ns));
    assert_false(own_retries_find(&table, ~hash, now_ns));
}

static void test_it_is_known_for_its_span(void **state)
{
    (void)state;
    static const uint64_t hashes[] = {0, 1, UINT64_C(0xcbf29ce484222325), UINT64_MAX};
    static const int64_t spans[] = {1, TICK - 1, TICK, TICK + 1, S, 90 * S, 3600 * S, 90 * 86400 * S};
    static const int64_t times[] = {0,         1,         TICK - 1,      TICK,         12345 * S, 60 * 86400 * S,
                                    ROUND - S, ROUND - 1, ROUND - TICK,  ROUND,        ROUND + 1, ROUND - 90 * S,
                                    2 * ROUND, 7 * ROUND, 7 * ROUND - S, ROUND / 2 - S};
    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++)
        for (size_t j = 0; j < sizeof spans / sizeof *spans; j++)
            for (size_t k = 0; k < sizeof times / sizeof *times; k++)
                expect_span(hashes[i], spans[j], times[k]);
}

/* The one end that would make the word of a request whose lower half is 0 look empty. */
static void test_an_end_of_zero(void **state)
{
    (void)state;
    own_retries_note(&table, 0, 10 * TICK, ROUND - 10 * TICK);
    assert_true(own_retries_find(&table, 0, ROUND - 10 * TICK));
    assert_true(own_retries_find(&table, 0, ROUND - 1));
    assert_false(own_retries_find(&table, 0, ROUND + TICK));
}

static void test_no_span_is_too_long(void **state)
{
    (void)state;
    own_retries_note(&table, 5, INT64_MAX, 90 * S);
    assert_true(own_retries_find(&table, 5, 90 * S));
    assert_true(own_retries_find(&table, 5, ROUND / 2));
    own_retries_note(&table, 6, INT64_MAX, INT64_MAX);
    assert_true(own_retries_find(&table, 6, INT64_MAX));
}

/* An entry that is over stays so for nine years of uptime, at every step of them. */
static void test_what_is_over_does_not_come_back(void **state)
{
    (void)state;
    own_retries_note(&table, 5, 90 * S, 1000 * S);
    for (int64_t now_ns = 1091 * S; now_ns < ROUND / 2; now_ns += 86400 * S)
        assert_false(own_retries_find(&table, 5, now_ns));
}

static void test_success_clears_it(void **state)
{
    (void)state;
    own_retries_note(&table, request(3, 1), 90 * S, S);
    own_retries_note(&table, request(3, 2), 90 * S, S);
    own_retries_clear(&table, request(3, 1));
    assert_false(own_retries_find(&table, request(3, 1), S));
    assert_true(own_retries_find(&table, request(3, 2), S));
    own_retries_note(&table, request(3, 1), 90 * S, S);
    assert_true(own_retries_find(&table, request(3, 1), S));
}

static void test_noted_again_it_counts_from_then(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3 * WAYS; i++) { /* and takes no second place */
        own_retries_note(&table, request(0, 1), 10 * S, i * S);
        own_retries_note(&table, request(0, 2), 10 * S, i * S);
    }
    assert_true(own_retries_find(&table, request(0, 1), (3 * WAYS + 8) * S));
    own_retries_clear(&table, request(0, 1));
    assert_false(own_retries_find(&table, request(0, 1), 0));
    unsigned used = 0;
    for (size_t i = 0; i < OWN_RETRIES_ENTRIES; i++)
        used += atomic_load(&table.entry[i]) != 0;
    assert_int_equal(used, 1);
    /* A shorter span goes before a longer one of before. */
    own_retries_note(&table, request(0, 2), S, 30 * S);
    assert_false(own_retries_find(&table, request(0, 2), 32 * S));
}

static void test_all_places_are_used(void **state)
{
    (void)state;
    for (uint32_t set = 0; set < SETS; set++)
        for (uint32_t n = 0; n < WAYS; n++)
            own_retries_note(&table, request(set, n), 90 * S, S);
    for (uint32_t set = 0; set < SETS; set++)
        for (uint32_t n = 0; n < WAYS; n++)
            assert_true(own_retries_find(&table, request(set, n), S));
}

static void test_the_first_to_end_makes_room(void **state)
{
    (void)state;
    static const int spans[WAYS] = {50, 60, 70, 20, 80, 90, 40, 30};
    for (uint32_t n = 0; n < WAYS; n++)
        own_retries_note(&table, request(7, n), spans[n] * S, S);
    own_retries_note(&table, request(7, 100), 99 * S, S);
    assert_false(own_retries_find(&table, request(7, 3), S));
    own_retries_note(&table, request(7, 101), 99 * S, S);
    assert_false(own_retries_find(&table, request(7, 7), S));
    for (uint32_t n = 0; n < WAYS; n++)
        assert_int_equal(own_retries_find(&table, request(7, n), S), n != 3 && n != 7);
    /* What is over makes room before what is not. */
    own_retries_note(&table, request(7, 102), 99 * S, 45 * S);
    assert_false(own_retries_find(&table, request(7, 6), S));
    assert_true(own_retries_find(&table, request(7, 0), 45 * S));
}

/* ---- two threads ---- */

#define ROUNDS 20000

static pthread_barrier_t start;

static void *note_and_clear(void *argument)
{
    uint32_t own = *(const uint32_t *)argument;
    pthread_barrier_wait(&start);
    for (int64_t i = 1; i <= ROUNDS; i++) {
        own_retries_note(&table, request(1, 0), 90 * S, i * S); /* of both */
        own_retries_note(&table, request(1, own), 90 * S, i * S);
        own_retries_find(&table, request(1, own), i * S);
        if (i % 3 == 0)
            own_retries_clear(&table, request(1, own));
    }
    return NULL;
}

/* No word is ever anything else than one of those that were noted, and what was cleared is gone. */
static void test_threads_that_meet(void **state)
{
    (void)state;
    static uint32_t own[2] = {1, 2};
    pthread_t thread[2];
    pthread_barrier_init(&start, NULL, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, note_and_clear, &own[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&start);
    for (size_t i = 0; i < OWN_RETRIES_ENTRIES; i++) {
        uint64_t word = atomic_load(&table.entry[i]);
        assert_true(word == 0 || (i / WAYS == 1 && word >> 32 <= 2));
    }
    for (uint32_t i = 0; i <= 2; i++) {
        own_retries_note(&table, request(1, i), 90 * S, ROUNDS * S);
        assert_true(own_retries_find(&table, request(1, i), ROUNDS * S));
        own_retries_clear(&table, request(1, i));
        assert_false(own_retries_find(&table, request(1, i), ROUNDS * S));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_nothing_is_known_at_first, empty),
        cmocka_unit_test_setup(test_it_is_known_for_its_span, empty),
        cmocka_unit_test_setup(test_an_end_of_zero, empty),
        cmocka_unit_test_setup(test_no_span_is_too_long, empty),
        cmocka_unit_test_setup(test_what_is_over_does_not_come_back, empty),
        cmocka_unit_test_setup(test_success_clears_it, empty),
        cmocka_unit_test_setup(test_noted_again_it_counts_from_then, empty),
        cmocka_unit_test_setup(test_all_places_are_used, empty),
        cmocka_unit_test_setup(test_the_first_to_end_makes_room, empty),
        cmocka_unit_test_setup(test_threads_that_meet, empty),
    };
    return cmocka_run_group_tests_name("own retries", tests, NULL, NULL);
}
