/* SPDX-License-Identifier: MIT */
/*
 * Times and numbers in a bucket that no honest process writes: by one that is told another time than the
 * machine's, or by one that scribbles.  Nobody waits by them for longer than the rules allow, and whoever
 * comes next puts something else in their place.  What is long but may be meant is believed.
 */
#include "tests/unit/bucket_world.h"

#define START (1000 * S)
#define YEAR (365 * DAY)
#define RATE 10
#define BURST 5

/* The slowest that a queue of RATE a second may be: every place of it taken, and a window's debt. */
#define LONGEST_QUEUE_NS ((65536 + 2 * RATE) / RATE * S)

static const int64_t shifts_ns[] = {2 * HOUR, 30 * DAY, YEAR, 10 * YEAR, 100 * YEAR, 250 * YEAR};
#define SHIFTS (sizeof shifts_ns / sizeof *shifts_ns)

static struct limits usual_limits(void)
{
    return one_limit(RATE, S, BURST);
}

static struct record *record_in_force(struct bucket *bucket)
{
    return &bucket->record[shared_load(&bucket->published) & (BUCKET_RECORDS - 1)];
}

/* As each request begins; then as many as may go at once. */
static unsigned ask_and_send(struct bucket *bucket, int64_t now_ns)
{
    const struct limits limits = usual_limits();
    unsigned sent = 0;
    int64_t until_ns;
    assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, &limits));
    while (bucket_peek(bucket, now_ns, NULL) <= now_ns && sent < 1000) {
        struct bucket_slot slot;
        bucket_book(bucket, now_ns, &slot);
        assert_int_equal(bucket_check(bucket, &slot, now_ns, &until_ns), BUCKET_ACT);
        sent++;
    }
    return sent;
}

/* It keeps its quota from now on, and lets nobody wait longer than that. */
static void assert_sound(struct bucket *bucket, int64_t now_ns)
{
    assert_in_range(ask_and_send(bucket, now_ns), 1, BURST);
    for (unsigned i = 1; i <= 10; i++)
        assert_int_equal(ask_and_send(bucket, now_ns + i * S), BURST);
    assert_true(bucket_peek(bucket, now_ns + 10 * S, NULL) <= now_ns + 11 * S);
}

/* ------------------------------------------------------------- another time line ---- */

static void test_a_record_of_the_future_is_none(void **state)
{
    (void)state;
    const struct limits limits = usual_limits();
    for (size_t i = 0; i < SHIFTS; i++) {
        struct bucket *bucket = bucket_with(&limits, START + shifts_ns[i]);
        struct bucket_state seen;
        bool hard;
        assert_int_equal(bucket_peek(bucket, START, &hard), START);
        assert_false(hard);
        assert_int_equal(bucket_hard_ns(bucket, NULL, START), START);
        assert_int_equal(bucket_block_kind(bucket, START), BLOCK_NONE);
        assert_int_equal(bucket_held_until_ns(bucket, START), 0);
        assert_true(bucket_is_open(bucket, START));
        assert_true(bucket_is_idle(bucket, START));
        bucket_read_state(bucket, START, &seen);
        assert_int_equal(seen.blocked_until_ns, 0);
        assert_int_equal(seen.next_ns, START);
        assert_sound(bucket, START);
        free_bucket(bucket);
    }
}

/* Everything that a request does, and what a server and an operator say, in a bucket that is in use. */
static void use_in_the_future(struct bucket *bucket, int64_t then_ns)
{
    const struct limits limits = usual_limits();
    bucket_ask_limits(bucket, &nobody_dies, then_ns, &limits);
    for (unsigned i = 0; i < 3; i++) {
        struct bucket_slot slot;
        bucket_book(bucket, then_ns, &slot);
    }
    bucket_charge(bucket, then_ns, 1000);
    bucket_retry_withdraw(bucket, then_ns, 10);
    bucket_note_refusal(bucket, then_ns);
    bucket_note_latency(bucket, S);
}

static void test_who_lives_in_the_future_does_not_stop_the_others(void **state)
{
    (void)state;
    const struct limits limits = usual_limits();
    for (size_t i = 0; i < SHIFTS; i++)
        for (unsigned blocks = 0; blocks < 2; blocks++) {
            struct bucket *bucket = bucket_with(&limits, START);
            int64_t then_ns = START + shifts_ns[i];
            assert_int_equal(ask_and_send(bucket, START), BURST);
            use_in_the_future(bucket, then_ns);
            if (blocks)
                bucket_block(bucket, &nobody_dies, then_ns, then_ns + S, BLOCK_HARD);
            assert_true(bucket_peek(bucket, START + S, NULL) <= START + S + LONGEST_QUEUE_NS);
            bucket_ask_limits(bucket, &nobody_dies, START + S, &limits);
            assert_sound(bucket, START + 2 * S);
            assert_true(bucket_is_idle(bucket, START + 20 * S));
            assert_true(bucket_note_refusal(bucket, START + 20 * S) <= START + 20 * S);
            free_bucket(bucket);
        }
}

/* One whose clock is behind sees those of the others as the future, and is not stopped either. */
static void test_who_lives_in_the_past_goes_on(void **state)
{
    (void)state;
    const struct limits limits = usual_limits();
    struct bucket *bucket = bucket_with(&limits, START + 3 * DAY);
    assert_int_equal(ask_and_send(bucket, START + 3 * DAY), BURST);
    assert_true(ask_and_send(bucket, START) >= 1);
    assert_sound(bucket, START + 3 * DAY + 10 * S);
    free_bucket(bucket);
}

/* What an earlier version has published does not say when. */
static void test_a_start_beyond_all_bounds_is_none(void **state)
{
    (void)state;
    const struct limits limits = usual_limits();
    for (unsigned i = 0; i < 2; i++) {
        struct bucket *bucket = bucket_with(&limits, START);
        struct record *record = record_in_force(bucket);
        shared_store(&record->made_ns, i ? START : 0);
        shared_store(&record->start_ns, START + 12 * YEAR);
        assert_int_equal(bucket_peek(bucket, START, NULL), START);
        assert_sound(bucket, START);
        free_bucket(bucket);
    }
}

/* -------------------------------------------------------------------- scribbling ---- */

static void test_a_hold_is_no_longer_than_its_block(void **state)
{
    (void)state;
    const struct limits limits = usual_limits();
    struct bucket *bucket = bucket_with(&limits, START);
    shared_store(&record_in_force(bucket)->held_until_ns, START + YEAR);
    assert_int_equal(bucket_held_until_ns(bucket, START + S), 0);
    assert_int_equal(bucket_block_kind(bucket, START + S), BLOCK_NONE);
    free_bucket(bucket);
}

/* Every word, one after the other, in a bucket that is in use.  Limits that are garbage hold until those
 * who ask for others have outwaited them. */
static void test_garbage_in_any_word_passes(void **state)
{
    (void)state;
    const struct limits limits = usual_limits();
    const uint64_t values[] = {0,
                               1,
                               (uint64_t)START + (uint64_t)(12 * YEAR),
                               UINT64_C(1) << 47,
                               UINT64_C(1) << 55,
                               UINT64_C(1) << 62,
                               INT64_MAX,
                               UINT64_C(1) << 63,
                               UINT64_MAX};
    for (size_t word = 0; word < sizeof(struct bucket) / 8; word++)
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            struct bucket *bucket = bucket_with(&limits, START);
            int64_t now_ns = START;
            size_t start_word = (size_t)(&record_in_force(bucket)->start_ns - (_Atomic uint64_t *)bucket);
            ask_and_send(bucket, START);
            shared_store((_Atomic uint64_t *)bucket + word, values[i]);
            for (; now_ns <= START + 12 * S; now_ns += S)
                bucket_ask_limits(bucket, &nobody_dies, now_ns, &limits);
            int64_t next_ns = bucket_peek(bucket, now_ns, NULL);
            bool may_be_meant = word == start_word && values[i] < (uint64_t)START + (uint64_t)(11 * YEAR);
            if (next_ns > now_ns + LONGEST_QUEUE_NS && !may_be_meant)
                fail_msg("word %zu, value %zu: a wait of %lld s", word, i, (long long)((next_ns - now_ns) / S));
            free_bucket(bucket);
        }
}

/* ------------------------------------------------------------ what may be meant ---- */

static void test_the_longest_hold_is_believed(void **state)
{
    (void)state;
    const struct limits limits = usual_limits();
    struct bucket *bucket = bucket_with(&limits, START);
    assert_true(bucket_block(bucket, &nobody_dies, START, START + 3650 * DAY, BLOCK_HOLD));
    assert_true(bucket_peek(bucket, START, NULL) >= START + 3650 * DAY);
    assert_int_equal(bucket_held_until_ns(bucket, START - S), START + 3650 * DAY); /* by a clock read before */
    assert_true(bucket_peek(bucket, START + 3650 * DAY - S, NULL) >= START + 3650 * DAY);
    free_bucket(bucket);
}

/* A process reads the time, is stopped for a while, and then reads what was published meanwhile. */
static void test_what_is_newer_than_a_stopped_process_is_believed(void **state)
{
    (void)state;
    const struct limits limits = usual_limits();
    struct bucket *bucket = bucket_with(&limits, START);
    assert_true(bucket_block(bucket, &nobody_dies, START + 600 * S, START + 700 * S, BLOCK_HARD));
    assert_true(bucket_peek(bucket, START, NULL) >= START + 700 * S);
    free_bucket(bucket);
}

static void test_a_long_queue_is_believed(void **state)
{
    (void)state;
    const struct limits limits = usual_limits();
    struct bucket *bucket = bucket_with(&limits, START);
    struct bucket_slot slot;
    for (unsigned i = 0; i < 60000; i++)
        bucket_book(bucket, START, &slot);
    assert_true(bucket_peek(bucket, START, NULL) >= START + (60000 - BURST) / RATE * S);
    free_bucket(bucket);
}

static void test_the_slowest_quota_is_believed(void **state)
{
    (void)state;
    const struct limits limits = one_limit(1, 366 * DAY, 1);
    struct bucket *bucket = bucket_with(&limits, START);
    struct bucket_slot slot;
    bucket_book(bucket, START, &slot);
    assert_true(bucket_peek(bucket, START, NULL) >= START + 366 * DAY);
    bucket_book(bucket, START, &slot);
    assert_true(bucket_peek(bucket, START, NULL) >= START + 2 * 366 * DAY);
    free_bucket(bucket);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_record_of_the_future_is_none),
        cmocka_unit_test(test_who_lives_in_the_future_does_not_stop_the_others),
        cmocka_unit_test(test_who_lives_in_the_past_goes_on),
        cmocka_unit_test(test_a_start_beyond_all_bounds_is_none),
        cmocka_unit_test(test_a_hold_is_no_longer_than_its_block),
        cmocka_unit_test(test_garbage_in_any_word_passes),
        cmocka_unit_test(test_the_longest_hold_is_believed),
        cmocka_unit_test(test_what_is_newer_than_a_stopped_process_is_believed),
        cmocka_unit_test(test_a_long_queue_is_believed),
        cmocka_unit_test(test_the_slowest_quota_is_believed),
    };
    return cmocka_run_group_tests_name("absurd numbers in a bucket", tests, NULL, NULL);
}
