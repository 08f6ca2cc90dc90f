/* SPDX-License-Identifier: MIT */
/*
 * What the bucket promises, one property a test, in virtual time: nothing here sleeps.  Bounds over
 * long histories are in test_bucket_bounds.c, races and crashes in test_bucket_publishing.c.
 */
#include "tests/unit/bucket_world.h"

#define START (1000 * S)

/* How many would go if everybody who could tried at once; they do go. */
static unsigned send_all(struct bucket *bucket, int64_t now_ns, unsigned most)
{
    unsigned sent = 0;
    while (sent < most && bucket_peek(bucket, now_ns, NULL) <= now_ns) {
        struct bucket_slot slot;
        int64_t until_ns;
        bucket_book(bucket, now_ns, &slot);
        assert_int_equal(bucket_check(bucket, &slot, now_ns, &until_ns), BUCKET_ACT);
        sent++;
    }
    return sent;
}

static int64_t promised(const struct bucket *bucket, const struct bucket_slot *slot, int64_t now_ns)
{
    int64_t until_ns;
    assert_int_not_equal(bucket_check(bucket, slot, now_ns, &until_ns), BUCKET_FORFEIT);
    return until_ns;
}

static double tokens(const struct bucket *bucket, int64_t now_ns, unsigned limit)
{
    struct bucket_state state;
    bucket_read_state(bucket, now_ns, &state);
    assert_true(limit < state.limits.count);
    return state.tokens[limit];
}

static unsigned windows(const struct bucket *bucket)
{
    struct bucket_state state;
    bucket_read_state(bucket, START, &state);
    return state.limits.count;
}

/* ------------------------------------------------------------------- the queue ---- */

static void test_zeros_are_a_bucket_without_limits(void **state)
{
    (void)state;
    struct bucket *bucket = new_bucket();
    assert_int_equal(send_all(bucket, START, 1000), 1000);
    assert_true(bucket_is_idle(bucket, START));
    assert_int_equal(windows(bucket), 0);
    free_bucket(bucket);
}

static void test_a_burst_then_one_by_one(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 12);
    struct bucket *bucket = bucket_with(&limits, START);
    assert_int_equal(send_all(bucket, START, 100), 12);
    for (int i = 1; i <= 20; i++) {
        struct bucket_slot slot;
        bucket_book(bucket, START, &slot);
        int64_t until_ns = promised(bucket, &slot, START);
        /* Rates are rounded down, so a slot is at most a few ns late and never early. */
        assert_in_range(until_ns, START + i * 100 * MS, START + i * 100 * MS + 1000);
    }
    free_bucket(bucket);
}

static void test_not_a_nanosecond_before_the_time_promised(void **state)
{
    (void)state;
    const struct {
        uint64_t count;
        int64_t window_ns;
    } rates[] = {{1, DAY}, {1, HOUR}, {3, S}, {7, 11 * S}, {5000, HOUR}, {1000, S}, {1000000, S}, {1000000000, S}};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        const struct limits limits = one_limit(rates[i].count, rates[i].window_ns, 1);
        for (int64_t offset = 0; offset < 5; offset++) {
            int64_t now_ns = START + offset * 123456789;
            struct bucket *bucket = bucket_with(&limits, START);
            struct bucket_slot first, second;
            int64_t until_ns, again_ns;
            bucket_book(bucket, now_ns, &first);
            bucket_book(bucket, now_ns, &second);
            assert_int_equal(bucket_check(bucket, &first, now_ns, &until_ns), BUCKET_ACT);
            assert_int_equal(bucket_check(bucket, &second, now_ns, &until_ns), BUCKET_WAIT);
            assert_true(until_ns > now_ns);
            assert_int_equal(bucket_check(bucket, &second, until_ns - 1, &again_ns), BUCKET_WAIT);
            assert_int_equal(again_ns, until_ns);
            assert_int_equal(bucket_check(bucket, &second, until_ns, &again_ns), BUCKET_ACT);
            free_bucket(bucket);
        }
    }
}

static void test_peek_tells_what_booking_gets_and_writes_nothing(void **state)
{
    (void)state;
    const struct limits limits = two_limits(limit_of(200, 60 * S, 20), limit_of(10, S, 3));
    struct bucket *bucket = bucket_with(&limits, START);
    for (int i = 0; i < 50; i++) {
        struct bucket before = *bucket;
        bool hard;
        int64_t peeked_ns = bucket_peek(bucket, START + i, &hard);
        assert_memory_equal(&before, bucket, sizeof before);
        struct bucket_slot slot;
        bucket_book(bucket, START + i, &slot);
        assert_int_equal(promised(bucket, &slot, START + i), peeked_ns);
        assert_int_equal(hard, peeked_ns > START + i);
    }
    free_bucket(bucket);
}

static void test_idling_earns_a_burst_and_no_more(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 5);
    struct bucket *bucket = bucket_with(&limits, START);
    assert_int_equal(send_all(bucket, START, 100), 5);
    assert_int_equal(send_all(bucket, START + 300 * MS + 1000, 100), 3);
    assert_int_equal(send_all(bucket, START + 30 * DAY, 100), 5);
    free_bucket(bucket);
}

static void test_a_clock_that_steps_back_mints_nothing(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 5);
    struct bucket *bucket = bucket_with(&limits, START);
    unsigned sent = 0;
    for (int64_t step = 0; step < 1000; step++)
        sent += send_all(bucket, START + (step % 7) * 10 * MS - (step % 3) * 40 * MS, 100);
    assert_int_equal(sent, 5);
    assert_int_equal(send_all(bucket, -5, 100), 0);
    free_bucket(bucket);
}

static void test_cancelling_gives_back_the_last_place_only(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 1);
    struct bucket *bucket = bucket_with(&limits, START);
    struct bucket_slot slot[4];
    for (int i = 0; i < 3; i++)
        bucket_book(bucket, START, &slot[i]);
    int64_t third_ns = promised(bucket, &slot[2], START);
    assert_false(bucket_cancel(bucket, &slot[1])); /* stays empty: the third was promised his time */
    assert_false(slot[1].booked);
    assert_int_equal(promised(bucket, &slot[2], START), third_ns);
    assert_true(bucket_cancel(bucket, &slot[2]));
    assert_false(bucket_cancel(bucket, &slot[2])); /* not twice */
    bucket_book(bucket, START, &slot[3]);
    assert_int_equal(promised(bucket, &slot[3], START), third_ns);
    free_bucket(bucket);
}

static void test_debt_is_clamped_to_one_window(void **state)
{
    (void)state;
    const struct limits limits = one_limit(80, 60 * S, 10);
    struct bucket *bucket = bucket_with(&limits, START);
    /* Observed at 1,000 a second for ten minutes. */
    for (int i = 0; i < 600; i++)
        bucket_charge(bucket, START + i * S, 1000);
    int64_t now_ns = START + 599 * S;
    assert_in_range(bucket_peek(bucket, now_ns, NULL), now_ns + 59 * S, now_ns + 61 * S);
    bucket_charge(bucket, now_ns, UINT64_MAX);
    assert_in_range(bucket_peek(bucket, now_ns, NULL), now_ns + 59 * S, now_ns + 61 * S);
    free_bucket(bucket);
}

static void test_a_charge_never_shortens_a_queue(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 1);
    struct bucket *bucket = bucket_with(&limits, START);
    struct bucket_slot slot;
    for (int i = 0; i < 100; i++)
        bucket_book(bucket, START, &slot);
    int64_t before_ns = bucket_peek(bucket, START, NULL);
    bucket_charge(bucket, START, 1);
    assert_int_equal(bucket_peek(bucket, START, NULL), before_ns);
    free_bucket(bucket);
}

/* ---------------------------------------------------------------------- blocks ---- */

static void test_idle_credit_is_not_spent_during_a_block_nor_when_it_lifts(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 12);
    struct bucket *bucket = bucket_with(&limits, START);
    int64_t lifts_ns = START + 5 * S;
    assert_true(bucket_block(bucket, &nobody_dies, START, lifts_ns, BLOCK_HARD));
    struct bucket_slot slot[12];
    for (int i = 0; i < 12; i++)
        bucket_book(bucket, START + i, &slot[i]);
    for (int64_t now_ns = START; now_ns < lifts_ns; now_ns += 100 * MS)
        for (int i = 0; i < 12; i++) {
            int64_t until_ns;
            assert_int_equal(bucket_check(bucket, &slot[i], now_ns, &until_ns), BUCKET_WAIT);
            assert_true(until_ns >= lifts_ns);
        }
    for (int i = 0; i < 12; i++) /* one spacing after the other */
        assert_in_range(promised(bucket, &slot[i], lifts_ns), lifts_ns + (i + 1) * 100 * MS,
                        lifts_ns + (i + 1) * 100 * MS + 1000);
    free_bucket(bucket);
}

static void test_credit_booked_just_before_a_block_waits_for_it(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 12);
    struct bucket *bucket = bucket_with(&limits, START);
    struct bucket_slot slot;
    bucket_book(bucket, START, &slot);
    assert_true(bucket_block(bucket, &nobody_dies, START + MS, START + 5 * S, BLOCK_HARD));
    assert_int_equal(promised(bucket, &slot, START + 2 * MS), START + 5 * S);
    /* It stood still with the clock: it is not late for that, but it is for what came before. */
    int64_t until_ns;
    assert_int_equal(bucket_check(bucket, &slot, START + 5 * S + 99 * MS, &until_ns), BUCKET_ACT);
    assert_int_equal(bucket_check(bucket, &slot, START + 5 * S + 100 * MS, &until_ns), BUCKET_FORFEIT);
    free_bucket(bucket);
}

static void test_a_shorter_later_word_does_not_shorten(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 12);
    struct bucket *bucket = bucket_with(&limits, START);
    assert_true(bucket_block(bucket, &nobody_dies, START, START + 60 * S, BLOCK_HARD));
    assert_true(bucket_block(bucket, &nobody_dies, START + S, START + 3 * S, BLOCK_HARD));
    assert_true(bucket_peek(bucket, START + 4 * S, NULL) >= START + 60 * S);
    assert_true(bucket_block(bucket, &nobody_dies, START + S, START + 90 * S, BLOCK_HARD));
    assert_true(bucket_peek(bucket, START + 4 * S, NULL) >= START + 90 * S);
    assert_true(bucket_block(bucket, &nobody_dies, START + S, START, BLOCK_HARD)); /* past: nothing */
    assert_true(bucket_peek(bucket, START + 4 * S, NULL) >= START + 90 * S);
    free_bucket(bucket);
}

static void test_waiters_keep_order_and_spacing_through_a_block(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 2);
    struct bucket *bucket = bucket_with(&limits, START);
    send_all(bucket, START, 2);
    struct bucket_slot slot[20];
    int64_t before_ns[20];
    for (int i = 0; i < 20; i++) {
        bucket_book(bucket, START, &slot[i]);
        before_ns[i] = promised(bucket, &slot[i], START);
    }
    int64_t now_ns = START + 50 * MS; /* none of them is due yet */
    assert_true(bucket_block(bucket, &nobody_dies, now_ns, now_ns + 30 * S, BLOCK_HARD));
    for (int i = 0; i < 20; i++)
        assert_in_range(promised(bucket, &slot[i], now_ns), before_ns[i] + 30 * S, before_ns[i] + 30 * S + 20000);
    free_bucket(bucket);
}

static void test_a_change_of_limits_does_not_lift_a_block(void **state)
{
    (void)state;
    const struct limits slow = one_limit(10, S, 5), fast = one_limit(100, S, 50);
    for (int blocked_first = 0; blocked_first < 2; blocked_first++) {
        struct bucket *bucket = bucket_with(&slow, START);
        bucket_forget_askers(bucket);
        if (blocked_first)
            bucket_block(bucket, &nobody_dies, START + S, START + 60 * S, BLOCK_HARD);
        assert_true(bucket_ask_limits(bucket, &nobody_dies, START + S, &fast));
        if (!blocked_first)
            bucket_block(bucket, &nobody_dies, START + S, START + 60 * S, BLOCK_HARD);
        assert_int_equal(send_all(bucket, START + 59 * S, 100), 0);
        /* ... nor does it bring credit for the moment at which it lifts. */
        assert_int_equal(send_all(bucket, START + 60 * S, 100), 0);
        assert_int_equal(send_all(bucket, START + 60 * S + 11 * MS, 100), 1);
        free_bucket(bucket);
    }
}

static void test_limits_that_come_during_a_block_start_without_credit(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 5);
    struct bucket *bucket = new_bucket();
    bucket_block(bucket, &nobody_dies, START, START + 60 * S, BLOCK_HARD);
    assert_int_equal(send_all(bucket, START + S, 10), 0);
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + S, &limits));
    assert_int_equal(send_all(bucket, START + 60 * S, 10), 0);
    assert_int_equal(send_all(bucket, START + 60 * S + 101 * MS, 10), 1);
    free_bucket(bucket);
}

/* A per-second limit was hit: the hour's credit is not lost for that. */
static void test_a_block_takes_the_credit_of_the_fastest_limit_only(void **state)
{
    (void)state;
    const struct limits limits = two_limits(limit_of(4000, HOUR, 900), limit_of(8, S, 2));
    struct bucket *bucket = bucket_with(&limits, START);
    bucket_block(bucket, &nobody_dies, START, START + S, BLOCK_HARD);
    assert_int_equal((int)tokens(bucket, START + S, 0), 900);
    assert_int_equal((int)tokens(bucket, START + S, 1), 0);
    unsigned sent = 0;
    for (int64_t now_ns = START; now_ns < START + 3 * S; now_ns += MS)
        sent += send_all(bucket, now_ns, 100);
    assert_in_range(sent, 15, 16);
    free_bucket(bucket);
}

static void test_soft_and_hard(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 3);
    struct bucket *bucket = bucket_with(&limits, START);
    struct bucket_state seen;
    bool hard = true;
    bucket_block(bucket, &nobody_dies, START, START + 60 * S, BLOCK_SOFT);
    int64_t peeked_ns = bucket_peek(bucket, START + MS, &hard);
    assert_true(peeked_ns >= START + 60 * S);
    assert_false(hard);
    /* If soft blocks did not count, only the pace would be left. */
    assert_in_range(bucket_hard_ns(bucket, NULL, START + MS), START + 100 * MS, START + 101 * MS);
    bucket_read_state(bucket, START + MS, &seen);
    assert_int_equal(seen.block, BLOCK_SOFT);
    assert_int_equal(seen.blocked_until_ns, START + 60 * S);

    bucket_block(bucket, &nobody_dies, START + S, START + 20 * S, BLOCK_HARD);
    assert_true(bucket_peek(bucket, START + 2 * S, &hard) >= START + 60 * S);
    assert_true(bucket_hard_ns(bucket, NULL, START + 2 * S) >= START + 20 * S);
    /* A later soft word neither softens the hard one nor shortens the soft one. */
    bucket_block(bucket, &nobody_dies, START + 2 * S, START + 30 * S, BLOCK_SOFT);
    assert_true(bucket_hard_ns(bucket, NULL, START + 2 * S) >= START + 20 * S);
    assert_true(bucket_peek(bucket, START + 2 * S, NULL) >= START + 60 * S);
    bucket_read_state(bucket, START + 3 * S, &seen);
    assert_int_equal(seen.block, BLOCK_HARD);
    bucket_read_state(bucket, START + 21 * S, &seen);
    assert_int_equal(seen.block, BLOCK_SOFT);
    free_bucket(bucket);

    bucket = bucket_with(&limits, START);
    bucket_block(bucket, &nobody_dies, START, START + 60 * S, BLOCK_HARD);
    bucket_peek(bucket, START + S, &hard);
    assert_true(hard);
    bucket_block(bucket, &nobody_dies, START + S, START + 60 * S, BLOCK_SOFT);
    bucket_peek(bucket, START + S, &hard);
    assert_true(hard);
    free_bucket(bucket);
}

static void test_a_slow_quota_stays_hard_behind_a_short_soft_block(void **state)
{
    (void)state;
    const struct limits limits = one_limit(1, HOUR, 1);
    struct bucket *bucket = bucket_with(&limits, START);
    bool hard = false;
    send_all(bucket, START, 1);
    bucket_block(bucket, &nobody_dies, START + S, START + 10 * S, BLOCK_SOFT);
    bucket_peek(bucket, START + 2 * S, &hard);
    assert_true(hard);
    free_bucket(bucket);
}

static void test_release_lets_the_queue_go_on(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 5);
    struct bucket *bucket = bucket_with(&limits, START);
    bucket_block(bucket, &nobody_dies, START, START + HOUR, BLOCK_HARD);
    assert_int_equal(send_all(bucket, START + 10 * S, 10), 0);
    assert_true(bucket_release(bucket, &nobody_dies, START + 10 * S));
    assert_int_equal(send_all(bucket, START + 10 * S, 10), 0);
    assert_int_equal(send_all(bucket, START + 10 * S + 101 * MS, 10), 1);
    assert_int_equal(send_all(bucket, START + 20 * S, 10), 5);
    assert_true(bucket_release(bucket, &nobody_dies, START + 20 * S)); /* nothing to release */
    free_bucket(bucket);
}

/* ------------------------------------------------------------------- lateness ---- */

static void test_sixteen_stopped_processes_do_not_go_as_a_heap(void **state)
{
    (void)state;
    const struct limits limits = one_limit(80, S, 5);
    struct bucket *bucket = bucket_with(&limits, START);
    struct bucket_slot slot[16];
    unsigned acted = 0, forfeited = 0;
    int64_t until_ns;
    for (int i = 0; i < 16; i++)
        bucket_book(bucket, START, &slot[i]);
    int64_t now_ns = START + 3 * S; /* SIGCONT */
    for (int i = 0; i < 16; i++)
        switch (bucket_check(bucket, &slot[i], now_ns, &until_ns)) {
        case BUCKET_ACT:
            acted++;
            break;
        case BUCKET_FORFEIT:
            bucket_cancel(bucket, &slot[i]);
            bucket_book(bucket, now_ns, &slot[i]);
            acted += bucket_check(bucket, &slot[i], now_ns, &until_ns) == BUCKET_ACT;
            forfeited++;
            break;
        case BUCKET_WAIT:
            fail_msg("all of them are due");
        }
    assert_int_equal(forfeited, 16);
    assert_int_equal(acted, 5);
    free_bucket(bucket);
}

static void test_a_slot_may_be_late_by_the_jitter_exactly(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 1);
    struct bucket *bucket = bucket_with(&limits, START);
    struct bucket_slot first, second;
    int64_t until_ns, unused_ns;
    bucket_book(bucket, START, &first);
    bucket_book(bucket, START, &second);
    until_ns = promised(bucket, &second, START);
    assert_int_equal(bucket_check(bucket, &first, START + 100 * MS, &unused_ns), BUCKET_ACT);
    assert_int_equal(bucket_check(bucket, &first, START + 100 * MS + 1, &unused_ns), BUCKET_FORFEIT);
    assert_int_equal(bucket_check(bucket, &second, until_ns + 100 * MS, &unused_ns), BUCKET_ACT);
    assert_int_equal(bucket_check(bucket, &second, until_ns + 100 * MS + 1, &unused_ns), BUCKET_FORFEIT);
    free_bucket(bucket);
}

static void test_of_several_limits_the_least_jitter_counts(void **state)
{
    (void)state;
    for (int longer_has_less = 0; longer_has_less < 2; longer_has_less++) {
        struct limits limits = two_limits(limit_of(60, 60 * S, 10), limit_of(10, S, 2));
        limits.item[0].jitter_ns = longer_has_less ? 10 * MS : 500 * MS;
        limits.item[1].jitter_ns = longer_has_less ? 500 * MS : 10 * MS;
        struct bucket *bucket = bucket_with(&limits, START);
        struct bucket_slot slot;
        int64_t until_ns;
        bucket_book(bucket, START, &slot);
        assert_int_equal(bucket_check(bucket, &slot, START + 10 * MS, &until_ns), BUCKET_ACT);
        assert_int_equal(bucket_check(bucket, &slot, START + 10 * MS + 1, &until_ns), BUCKET_FORFEIT);
        free_bucket(bucket);
    }
}

/* A place that was missed before a block or a change of rate is not good again after it. */
static void test_a_change_does_not_revive_a_missed_place(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 4), changed = one_limit(9, S, 4);
    for (int with_block = 0; with_block < 2; with_block++) {
        struct bucket *bucket = bucket_with(&limits, START);
        struct bucket_slot slot;
        int64_t until_ns;
        bucket_book(bucket, START, &slot);
        int64_t now_ns = START + 3 * S;
        if (with_block)
            bucket_block(bucket, &nobody_dies, now_ns, now_ns + 10 * S, BLOCK_HARD);
        else
            bucket_ask_limits(bucket, &nobody_dies, now_ns, &changed);
        assert_int_equal(bucket_check(bucket, &slot, now_ns + 1, &until_ns), BUCKET_FORFEIT);
        free_bucket(bucket);
    }
}

static void test_a_place_just_booked_is_never_late(void **state)
{
    (void)state;
    const struct {
        uint64_t count;
        int64_t window_ns, jitter_ns;
    } limits[] = {{1, DAY, S}, {1, DAY, 0}, {1, 366 * DAY, 1}, {1000000000, MS, 0}, {10, S, -5}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct limits asked = one_limit(limits[i].count, limits[i].window_ns, 1);
        asked.item[0].jitter_ns = limits[i].jitter_ns;
        struct bucket *bucket = bucket_with(&asked, START);
        for (int64_t now_ns = START; now_ns < START + 100 * S; now_ns += 777777777) {
            struct bucket_slot slot;
            int64_t until_ns;
            bucket_book(bucket, now_ns, &slot);
            assert_int_not_equal(bucket_check(bucket, &slot, now_ns, &until_ns), BUCKET_FORFEIT);
            bucket_cancel(bucket, &slot);
        }
        free_bucket(bucket);
    }
}

static void test_a_stopped_publisher_of_a_higher_rate_frees_no_heap(void **state)
{
    (void)state;
    const struct limits slow = one_limit(1, S, 1), fast = one_limit(100, S, 1);
    struct bucket *bucket = bucket_with(&slow, START);
    struct bucket_slot slot[60];
    bucket_forget_askers(bucket);
    for (int i = 0; i < 60; i++)
        bucket_book(bucket, START, &slot[i]);
    /* He read the time, was stopped for ten seconds, and went on. */
    int64_t now_ns = START + 10 * S;
    bucket_ask_limits(bucket, &nobody_dies, START, &fast);
    unsigned acted = 0;
    int64_t until_ns;
    for (int i = 0; i < 60; i++)
        acted += bucket_check(bucket, &slot[i], now_ns, &until_ns) == BUCKET_ACT;
    assert_in_range(acted, 0, 11); /* what came due within the jitter, 100 ms at 100/s */
    free_bucket(bucket);
}

static int64_t late_clock_ns;
static int64_t late_clock(void)
{
    return late_clock_ns;
}

static void test_a_publisher_reads_the_time_itself_where_it_can(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 1);
    struct bucket *bucket = bucket_with(&limits, START);
    const struct bucket_world world = {.self = 1, .clock_ns = late_clock};
    late_clock_ns = START + HOUR;
    send_all(bucket, START + HOUR, 1);
    /* Stopped for an hour since now_ns: the clock must not go back by that hour. */
    bucket_block(bucket, &world, START, START + HOUR + S, BLOCK_HARD);
    assert_true(bucket_peek(bucket, START + HOUR, NULL) < START + HOUR + 2 * S);
    free_bucket(bucket);
}

/* -------------------------------------------------------------- several windows ---- */

static void test_several_limits_act_at_the_latest(void **state)
{
    (void)state;
    const struct limits limits = two_limits(limit_of(60, 60 * S, 10), limit_of(10, S, 2));
    struct bucket *bucket = bucket_with(&limits, START);
    struct bucket_slot slot[30];
    assert_int_equal(send_all(bucket, START, 100), 2); /* the second's burst */
    for (int i = 0; i < 30; i++) {
        bucket_book(bucket, START, &slot[i]);
        int64_t by_second_ns = START + (i + 1) * 100 * MS;
        int64_t by_minute_ns = i < 8 ? START : START + (i - 7) * S;
        int64_t latest_ns = by_second_ns > by_minute_ns ? by_second_ns : by_minute_ns;
        assert_in_range(promised(bucket, &slot[i], START), latest_ns, latest_ns + 1000);
    }
    assert_true(bucket_cancel(bucket, &slot[29]));
    bucket_book(bucket, START, &slot[29]);
    assert_in_range(promised(bucket, &slot[29], START), START + 22 * S, START + 22 * S + 1000);
    free_bucket(bucket);
}

/* ---------------------------------------------------------------- whose limits ---- */

static void test_limits_are_taken_and_asking_again_writes_nothing(void **state)
{
    (void)state;
    const struct limits limits = two_limits(limit_of(100, HOUR, 20), limit_of(5, S, 1));
    struct bucket *bucket = new_bucket();
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START, &limits));
    assert_int_equal(windows(bucket), 2);
    struct bucket before = *bucket;
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + S, &limits));
    assert_memory_equal(&before, bucket, sizeof before);
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + S + 1, &limits)); /* the stamp, once a second */
    assert_int_equal(atomic_load(&bucket->published), atomic_load(&before.published));
    free_bucket(bucket);
}

static void test_first_limits_start_full(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 7);
    struct bucket *bucket = bucket_with(&limits, START);
    assert_int_equal(send_all(bucket, START, 100), 7);
    free_bucket(bucket);
}

static void test_stricter_at_once_looser_after_a_while(void **state)
{
    (void)state;
    const struct limits strict = one_limit(10, S, 5), loose = one_limit(20, S, 9);
    struct bucket *bucket = bucket_with(&loose, START);
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START, &strict));
    assert_false(bucket_ask_limits(bucket, &nobody_dies, START, &loose));
    int64_t asked_ns = START;
    for (int64_t now_ns = START; now_ns < START + 60 * S; now_ns += 500 * MS) {
        if (now_ns < START + 30 * S)
            bucket_ask_limits(bucket, &nobody_dies, asked_ns = now_ns, &strict);
        /* The stamp may be a second old. */
        if (now_ns <= asked_ns + 9 * S)
            assert_false(bucket_ask_limits(bucket, &nobody_dies, now_ns, &loose));
        if (now_ns > asked_ns + 10 * S)
            assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, &loose));
    }
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + 60 * S, &strict));
    free_bucket(bucket);
}

static void test_stricter_means_rate_then_burst_then_jitter(void **state)
{
    (void)state;
    struct limits base = one_limit(10, S, 5);
    struct limits lower_rate = one_limit(9, S, 50), lower_burst = one_limit(10, S, 4), lower_jitter = base;
    lower_jitter.item[0].jitter_ns -= MS;
    const struct limits *stricter[] = {&lower_rate, &lower_burst, &lower_jitter};
    for (size_t i = 0; i < 3; i++) {
        struct bucket *bucket = bucket_with(&base, START);
        assert_true(bucket_ask_limits(bucket, &nobody_dies, START, stricter[i]));
        assert_false(bucket_ask_limits(bucket, &nobody_dies, START, &base));
        free_bucket(bucket);
    }
}

static void test_two_askers_with_different_windows_get_both(void **state)
{
    (void)state;
    const struct limits hourly = one_limit(100, HOUR, 20), by_second = one_limit(5, S, 2);
    const struct limits none = {0};
    struct bucket *bucket = bucket_with(&hourly, START);
    assert_false(bucket_ask_limits(bucket, &nobody_dies, START, &by_second));
    assert_int_equal(windows(bucket), 2);
    assert_int_equal(send_all(bucket, START, 100), 2);
    assert_false(bucket_ask_limits(bucket, &nobody_dies, START + S, &hourly));
    assert_false(bucket_ask_limits(bucket, &nobody_dies, START + S, &none));
    assert_int_equal(windows(bucket), 2);
    /* The one who asks for seconds is gone. */
    for (int64_t now_ns = START; now_ns <= START + 11 * S; now_ns += S)
        bucket_ask_limits(bucket, &nobody_dies, now_ns, &hourly);
    assert_int_equal(windows(bucket), 1);
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + 12 * S, &hourly));
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + 30 * S, &none)); /* and then everybody */
    assert_int_equal(windows(bucket), 0);
    free_bucket(bucket);
}

static void test_no_more_than_four_windows(void **state)
{
    (void)state;
    struct limits first = {.count = 3}, second = {.count = 3};
    for (unsigned i = 0; i < 3; i++) {
        first.item[i] = limit_of(10, (3 - i) * HOUR, 1);
        second.item[i] = limit_of(10, (3 - i) * S, 1);
    }
    struct bucket *bucket = bucket_with(&first, START);
    assert_false(bucket_ask_limits(bucket, &nobody_dies, START, &second));
    assert_int_equal(windows(bucket), 4);
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + 11 * S, &second));
    assert_int_equal(windows(bucket), 3);
    free_bucket(bucket);
}

static void test_changing_limits_neither_refills_nor_loses(void **state)
{
    (void)state;
    const struct limits slow = one_limit(10, S, 10), fast = one_limit(20, S, 10);
    struct bucket *bucket = bucket_with(&slow, START);
    send_all(bucket, START, 7);
    for (int i = 0; i < 50; i++) {
        bucket_forget_askers(bucket);
        assert_true(bucket_ask_limits(bucket, &nobody_dies, START, i % 2 ? &slow : &fast));
        assert_int_equal((int)(tokens(bucket, START, 0) + 0.001), 3);
    }
    free_bucket(bucket);
}

static void test_waiters_keep_their_places_through_a_new_rate(void **state)
{
    (void)state;
    const struct limits slow = one_limit(10, S, 1), fast = one_limit(100, S, 1);
    struct bucket *bucket = bucket_with(&slow, START);
    struct bucket_slot slot[10];
    send_all(bucket, START, 1);
    for (int i = 0; i < 10; i++)
        bucket_book(bucket, START, &slot[i]);
    bucket_forget_askers(bucket);
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + 50 * MS, &fast));
    for (int i = 0; i < 10; i++) /* half a token had been gained at the old rate */
        assert_in_range(promised(bucket, &slot[i], START + 50 * MS), START + 55 * MS + i * 10 * MS,
                        START + 55 * MS + i * 10 * MS + 10000);
    free_bucket(bucket);
}

static void test_a_window_that_is_added_starts_full_less_the_queue(void **state)
{
    (void)state;
    const struct limits one = one_limit(10, S, 1);
    const struct limits both = two_limits(limit_of(100, HOUR, 20), limit_of(10, S, 1));
    struct bucket *bucket = bucket_with(&one, START);
    struct bucket_slot slot[6];
    int64_t before_ns[6];
    send_all(bucket, START, 1);
    for (int i = 0; i < 6; i++) {
        bucket_book(bucket, START, &slot[i]);
        before_ns[i] = promised(bucket, &slot[i], START);
    }
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START, &both));
    assert_int_equal((int)(tokens(bucket, START, 0) + 0.001), 14);
    for (int i = 0; i < 6; i++)
        assert_int_equal(promised(bucket, &slot[i], START), before_ns[i]);
    free_bucket(bucket);
}

static void test_a_window_that_replaces_another_keeps_queue_and_use(void **state)
{
    (void)state;
    const struct limits by_minute = one_limit(60, 60 * S, 5), by_hour = one_limit(7200, HOUR, 30);
    struct bucket *bucket = bucket_with(&by_minute, START);
    struct bucket_slot slot[8];
    send_all(bucket, START, 5);
    for (int i = 0; i < 8; i++)
        bucket_book(bucket, START, &slot[i]);
    bucket_forget_askers(bucket);
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START, &by_hour));
    assert_int_equal((int)(tokens(bucket, START, 0) + 0.001), 30 - 13);
    free_bucket(bucket);

    /* With the same burst they stand in the queue as before, at the new pace of 2/s. */
    const struct limits same_burst = one_limit(7200, HOUR, 5);
    bucket = bucket_with(&by_minute, START);
    send_all(bucket, START, 5);
    for (int i = 0; i < 8; i++)
        bucket_book(bucket, START, &slot[i]);
    bucket_forget_askers(bucket);
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START, &same_burst));
    for (int i = 0; i < 8; i++)
        assert_in_range(promised(bucket, &slot[i], START), START + (i + 1) * 500 * MS,
                        START + (i + 1) * 500 * MS + 10000);
    free_bucket(bucket);
}

/* A window that went and came again must not find itself hours behind its own column. */
static void test_a_window_that_comes_back_starts_full(void **state)
{
    (void)state;
    const struct limits both = two_limits(limit_of(100, HOUR, 20), limit_of(1000, S, 1));
    const struct limits one = one_limit(100, HOUR, 20);
    struct bucket *bucket = bucket_with(&both, START);
    int64_t now_ns = START;
    for (int i = 0; i < 5; i++) {
        now_ns += DAY;
        bucket_forget_askers(bucket);
        assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, &one));
        now_ns += DAY;
        assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, &both));
        assert_int_equal((int)(tokens(bucket, now_ns, 0) + 0.001), 20);
        assert_int_equal((int)(tokens(bucket, now_ns, 1) + 0.001), 1);
    }
    free_bucket(bucket);
}

/* ------------------------------------------------------------- the operator's word ---- */

static void test_refill_fills(void **state)
{
    (void)state;
    const struct limits limits = two_limits(limit_of(100, HOUR, 20), limit_of(10, S, 4));
    struct bucket *bucket = bucket_with(&limits, START);
    for (int i = 0; i < 4; i++)
        send_all(bucket, START + i * S, 4);
    assert_true(tokens(bucket, START + 4 * S, 0) < 5);
    assert_true(bucket_refill(bucket, &nobody_dies, START + 4 * S));
    assert_int_equal((int)tokens(bucket, START + 4 * S, 0), 20);
    assert_int_equal((int)tokens(bucket, START + 4 * S, 1), 4);
    assert_true(bucket_is_idle(bucket, START + 4 * S));
    free_bucket(bucket);
}

static void test_refill_lets_those_who_wait_go_first(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, HOUR, 4);
    struct bucket *bucket = bucket_with(&limits, START);
    struct bucket_slot slot[10];
    int64_t until_ns;
    send_all(bucket, START, 4);
    for (int i = 0; i < 10; i++)
        bucket_book(bucket, START, &slot[i]);
    int64_t now_ns = START + 60 * S;
    assert_true(bucket_refill(bucket, &nobody_dies, now_ns));
    for (int i = 0; i < 10; i++)
        assert_int_equal(bucket_check(bucket, &slot[i], now_ns + MS, &until_ns), i < 4 ? BUCKET_ACT : BUCKET_WAIT);
    assert_int_equal(send_all(bucket, now_ns, 10), 0);
    free_bucket(bucket);
}

static void test_refill_does_not_lift_a_block(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 4);
    struct bucket *bucket = bucket_with(&limits, START);
    bucket_block(bucket, &nobody_dies, START, START + 60 * S, BLOCK_HARD);
    assert_true(bucket_refill(bucket, &nobody_dies, START + S));
    assert_int_equal(send_all(bucket, START + 59 * S, 10), 0);
    assert_int_equal(send_all(bucket, START + 60 * S, 10), 4);
    free_bucket(bucket);
}

/* What stops it at a time: its kind, by either way of asking, and the end of all of it. */
static void check_block(const struct bucket *bucket, int64_t now_ns, enum block_kind kind, int64_t until_ns)
{
    struct bucket_state seen;
    bucket_read_state(bucket, now_ns, &seen);
    assert_int_equal(bucket_block_kind(bucket, now_ns), kind);
    assert_int_equal(seen.block, kind);
    assert_int_equal(seen.blocked_until_ns, until_ns);
}

static void test_a_hold_stops_everybody_until_it_ends_or_is_released(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 5);
    for (int is_released = 0; is_released < 2; is_released++) {
        struct bucket *bucket = bucket_with(&limits, START);
        bool hard = false;
        check_block(bucket, START, BLOCK_NONE, 0);
        assert_true(bucket_block(bucket, &nobody_dies, START, START + 60 * S, BLOCK_HOLD));
        check_block(bucket, START, BLOCK_HOLD, START + 60 * S);
        check_block(bucket, START + 60 * S - 1, BLOCK_HOLD, START + 60 * S);
        assert_true(bucket_peek(bucket, START + S, &hard) >= START + 60 * S);
        assert_true(hard);
        assert_true(bucket_hard_ns(bucket, NULL, START + S) >= START + 60 * S); /* no cutting of soft waits helps */
        assert_int_equal(send_all(bucket, START + 59 * S, 10), 0);
        assert_false(bucket_is_idle(bucket, START + 59 * S));
        int64_t end_ns = START + (is_released ? 30 * S : 60 * S);
        if (is_released)
            assert_true(bucket_release(bucket, &nobody_dies, end_ns));
        check_block(bucket, end_ns, BLOCK_NONE, 0);
        assert_int_equal(send_all(bucket, end_ns, 10), 0); /* one spacing after the other, as after any block */
        assert_int_equal(send_all(bucket, end_ns + 101 * MS, 10), 1);
        free_bucket(bucket);
    }
}

static void test_the_servers_word_goes_on_after_a_shorter_hold(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 5);
    const enum block_kind kinds[] = {BLOCK_SOFT, BLOCK_HARD};
    for (size_t i = 0; i < 4; i++) {
        struct bucket *bucket = bucket_with(&limits, START);
        const enum block_kind kind = kinds[i % 2];
        bool hold_first = i < 2;
        if (hold_first)
            bucket_block(bucket, &nobody_dies, START, START + 20 * S, BLOCK_HOLD);
        assert_true(bucket_block(bucket, &nobody_dies, START, START + 60 * S, kind));
        if (!hold_first)
            bucket_block(bucket, &nobody_dies, START, START + 20 * S, BLOCK_HOLD);
        check_block(bucket, START + S, BLOCK_HOLD, START + 60 * S);
        check_block(bucket, START + 20 * S - 1, BLOCK_HOLD, START + 60 * S);
        check_block(bucket, START + 20 * S, kind, START + 60 * S);
        check_block(bucket, START + 60 * S, BLOCK_NONE, 0);
        assert_int_equal(send_all(bucket, START + 59 * S, 10), 0);
        /* The operator's word is about all of it. */
        assert_true(bucket_release(bucket, &nobody_dies, START + 30 * S));
        check_block(bucket, START + 30 * S, BLOCK_NONE, 0);
        free_bucket(bucket);
    }
}

static void test_a_shorter_word_does_not_end_a_hold(void **state)
{
    (void)state;
    const enum block_kind kinds[] = {BLOCK_SOFT, BLOCK_HARD, BLOCK_HOLD};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct bucket *bucket = new_bucket();
        bucket_block(bucket, &nobody_dies, START, START + 60 * S, BLOCK_HOLD);
        assert_true(bucket_block(bucket, &nobody_dies, START + S, START + 20 * S, kinds[i]));
        check_block(bucket, START + 2 * S, BLOCK_HOLD, START + 60 * S);
        check_block(bucket, START + 59 * S, BLOCK_HOLD, START + 60 * S);
        free_bucket(bucket);
    }
}

static void test_a_hold_outlives_changes_of_limits_and_refills(void **state)
{
    (void)state;
    const struct limits slow = one_limit(10, S, 5), fast = one_limit(100, S, 50);
    struct bucket *bucket = bucket_with(&slow, START);
    bucket_block(bucket, &nobody_dies, START, START + 60 * S, BLOCK_HOLD);
    bucket_block(bucket, &nobody_dies, START, START + 90 * S, BLOCK_HARD);
    bucket_forget_askers(bucket);
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + S, &fast));
    assert_true(bucket_refill(bucket, &nobody_dies, START + 2 * S));
    check_block(bucket, START + 59 * S, BLOCK_HOLD, START + 90 * S);
    check_block(bucket, START + 61 * S, BLOCK_HARD, START + 90 * S);
    assert_int_equal(send_all(bucket, START + 89 * S, 100), 0);
    /* A change after the hold has ended does not bring it back. */
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + 70 * S, &slow));
    check_block(bucket, START + 71 * S, BLOCK_HARD, START + 90 * S);
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + 100 * S, &slow));
    check_block(bucket, START + 100 * S, BLOCK_NONE, 0);
    free_bucket(bucket);
}

static void test_waiters_keep_order_and_spacing_through_a_hold(void **state)
{
    (void)state;
    const struct limits limits = two_limits(limit_of(600, 60 * S, 40), limit_of(10, S, 2));
    struct bucket *bucket = bucket_with(&limits, START);
    struct bucket_slot slot[10];
    int64_t before_ns[10];
    send_all(bucket, START, 2);
    for (int i = 0; i < 10; i++) {
        bucket_book(bucket, START, &slot[i]);
        before_ns[i] = promised(bucket, &slot[i], START);
    }
    int64_t now_ns = START + 50 * MS; /* none of them is due yet */
    assert_true(bucket_block(bucket, &nobody_dies, now_ns, now_ns + HOUR, BLOCK_HOLD));
    assert_int_equal(windows(bucket), 2);
    for (int i = 0; i < 10; i++)
        assert_in_range(promised(bucket, &slot[i], now_ns), before_ns[i] + HOUR, before_ns[i] + HOUR + 20000);
    /* It is released after a minute: they go on where they stood, none is late and none goes with another. */
    assert_true(bucket_release(bucket, &nobody_dies, now_ns + 60 * S));
    for (int i = 0; i < 10; i++)
        assert_in_range(promised(bucket, &slot[i], now_ns + 60 * S), before_ns[i] + 60 * S,
                        before_ns[i] + 60 * S + 20000);
    assert_in_range(bucket_peek(bucket, now_ns + 60 * S, NULL), before_ns[9] + 60 * S + 100 * MS,
                    before_ns[9] + 60 * S + 101 * MS);
    free_bucket(bucket);
}

static void test_the_operators_mode_has_an_end(void **state)
{
    (void)state;
    struct bucket *bucket = new_bucket();
    struct bucket_state seen;
    assert_int_equal(bucket_mode(bucket, START), OPERATOR_AUTO);
    bucket_set_mode(bucket, OPERATOR_OBSERVE, START + 60 * S);
    assert_int_equal(bucket_mode(bucket, START), OPERATOR_OBSERVE);
    assert_int_equal(bucket_mode(bucket, START + 60 * S - 1), OPERATOR_OBSERVE);
    assert_int_equal(bucket_mode(bucket, START + 60 * S), OPERATOR_AUTO);
    bucket_read_state(bucket, START, &seen);
    assert_int_equal(seen.mode, OPERATOR_OBSERVE);
    assert_int_equal(seen.mode_until_ns, START + 60 * S);
    bucket_read_state(bucket, START + 60 * S, &seen);
    assert_int_equal(seen.mode, OPERATOR_AUTO);
    assert_int_equal(seen.mode_until_ns, 0);
    bucket_set_mode(bucket, OPERATOR_OFF, TIME_NEVER);
    bucket_read_state(bucket, START + 1000 * DAY, &seen);
    assert_int_equal(seen.mode, OPERATOR_OFF);
    assert_int_equal(seen.mode_until_ns, TIME_NEVER);
    bucket_set_mode(bucket, OPERATOR_AUTO, TIME_NEVER);
    assert_int_equal(bucket_mode(bucket, START), OPERATOR_AUTO);
    free_bucket(bucket);
}

/* Its place must not be given to another, or the operator's word would be lost. */
static void test_a_bucket_with_an_operators_mode_is_not_idle(void **state)
{
    (void)state;
    struct bucket *bucket = new_bucket();
    assert_true(bucket_is_idle(bucket, START));
    bucket_set_mode(bucket, OPERATOR_OFF, START + 60 * S);
    assert_false(bucket_is_idle(bucket, START));
    assert_false(bucket_is_idle(bucket, START + 60 * S - 1));
    assert_true(bucket_is_idle(bucket, START + 60 * S));
    bucket_set_mode(bucket, OPERATOR_ENFORCE, TIME_NEVER);
    assert_false(bucket_is_idle(bucket, START + 1000 * DAY));
    bucket_set_mode(bucket, OPERATOR_AUTO, TIME_NEVER);
    assert_true(bucket_is_idle(bucket, START));
    free_bucket(bucket);
}

/* ------------------------------------------------------------- the retry budget ---- */

static unsigned withdraw_all(struct bucket *bucket, int64_t now_ns, uint32_t reserve)
{
    unsigned count = 0;
    while (count < 100000 && bucket_retry_withdraw(bucket, now_ns, reserve))
        count++;
    return count;
}

static void test_a_cold_bucket_has_the_reserve(void **state)
{
    (void)state;
    struct bucket *bucket = new_bucket();
    assert_int_equal(withdraw_all(bucket, START, 10), 10);
    assert_in_range(withdraw_all(bucket, START + 30 * S, 10), 4, 5);
    assert_int_equal(withdraw_all(bucket, START + 30 * S + 61 * S, 10), 10);
    assert_int_equal(withdraw_all(bucket, START, 0), 0);
    free_bucket(bucket);
}

static void test_a_small_reserve_comes_back_however_often_it_is_asked_for(void **state)
{
    (void)state;
    struct bucket *bucket = new_bucket();
    unsigned got = 0;
    for (int64_t now_ns = START; now_ns < START + 600 * S; now_ns += 10 * MS) {
        bucket_retry_deposit(bucket, now_ns, 0);
        got += bucket_retry_withdraw(bucket, now_ns, 1);
    }
    assert_in_range(got, 9, 11);
    free_bucket(bucket);
}

static void test_retries_are_a_part_of_the_requests_of_late(void **state)
{
    (void)state;
    struct bucket *bucket = new_bucket();
    for (int i = 0; i < 100; i++)
        bucket_retry_deposit(bucket, START, 200000);
    assert_in_range(withdraw_all(bucket, START, 10), 29, 30); /* 20 % and the reserve */
    for (int i = 0; i < 1000; i++)
        bucket_retry_deposit(bucket, START + HOUR, 200000);
    assert_in_range(withdraw_all(bucket, START + HOUR + 10 * S, 10), 108, 111); /* half has gone */
    for (int i = 0; i < 1000000; i++)
        bucket_retry_deposit(bucket, START + 2 * HOUR, PPM_ONE);
    assert_in_range(withdraw_all(bucket, START + 3 * HOUR, 10), 10, 10);
    free_bucket(bucket);
}

/* ------------------------------------------------------------------ small words ---- */

static void test_usual_latency(void **state)
{
    (void)state;
    struct bucket *bucket = new_bucket();
    assert_int_equal(bucket_usual_latency_ns(bucket), 0);
    bucket_note_latency(bucket, 800 * MS);
    assert_int_equal(bucket_usual_latency_ns(bucket), 800 * MS);
    bucket_note_latency(bucket, 0);
    assert_in_range(bucket_usual_latency_ns(bucket), 699 * MS, 701 * MS);
    for (int i = 0; i < 100; i++)
        bucket_note_latency(bucket, 100 * MS);
    assert_in_range(bucket_usual_latency_ns(bucket), 99 * MS, 101 * MS);
    bucket_note_latency(bucket, INT64_MAX);
    bucket_note_latency(bucket, -1);
    assert_true(bucket_usual_latency_ns(bucket) <= HOUR);
    free_bucket(bucket);
}

static void test_refusals_are_remembered(void **state)
{
    (void)state;
    struct bucket *bucket = new_bucket();
    assert_int_equal(bucket_note_refusal(bucket, START), 0);
    assert_int_equal(bucket_note_refusal(bucket, START + S), START);
    assert_int_equal(bucket_note_refusal(bucket, START + 5 * S), START + S);
    atomic_store(&bucket->refused_ns, UINT64_MAX);
    assert_int_equal(bucket_note_refusal(bucket, START), 0);
    free_bucket(bucket);
}

static void test_idle_is_full_unblocked_and_unqueued(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 5);
    struct bucket *bucket = bucket_with(&limits, START);
    assert_true(bucket_is_idle(bucket, START));
    send_all(bucket, START, 1);
    assert_false(bucket_is_idle(bucket, START));
    assert_true(bucket_is_idle(bucket, START + 101 * MS));
    bucket_block(bucket, &nobody_dies, START + S, START + 2 * S, BLOCK_SOFT);
    assert_false(bucket_is_idle(bucket, START + S));
    assert_false(bucket_is_idle(bucket, START + 2 * S));
    assert_true(bucket_is_idle(bucket, START + 3 * S));
    free_bucket(bucket);
}

static void test_state_is_a_consistent_picture(void **state)
{
    (void)state;
    const struct limits limits = two_limits(limit_of(100, HOUR, 20), limit_of(10, S, 4));
    struct bucket *bucket = bucket_with(&limits, START);
    struct bucket_state seen;
    struct bucket_slot slot;
    send_all(bucket, START, 4);
    bucket_book(bucket, START, &slot);
    bucket_read_state(bucket, START, &seen);
    assert_int_equal(seen.limits.count, 2);
    assert_memory_equal(&seen.limits.item[0], &limits.item[0], sizeof(struct limit));
    assert_memory_equal(&seen.limits.item[1], &limits.item[1], sizeof(struct limit));
    assert_int_equal((int)(seen.tokens[0] + 0.001), 15);
    assert_int_equal((int)(seen.tokens[1] - 0.001), -1);
    assert_int_equal(seen.blocked_until_ns, 0);
    assert_int_equal(seen.next_ns, bucket_peek(bucket, START, NULL));
    assert_int_equal(seen.generation, 1);
    bucket_block(bucket, &nobody_dies, START, START + S, BLOCK_HARD);
    bucket_read_state(bucket, START, &seen);
    assert_int_equal(seen.blocked_until_ns, START + S);
    assert_int_equal(seen.generation, 2);
    free_bucket(bucket);
}

/* --------------------------------------------------------------------- extremes ---- */

/* Whatever is in the bucket: an answer, in range. */
static void use_everything(struct bucket *bucket, int64_t now_ns)
{
    const struct limits limits = two_limits(limit_of(100, HOUR, 20), limit_of(10, S, 4));
    struct bucket_slot slot;
    struct bucket_state seen;
    bool hard;
    int64_t until_ns;
    int64_t sane_ns = now_ns > 0 ? now_ns : 0;
    assert_true(bucket_peek(bucket, now_ns, &hard) >= sane_ns);
    bucket_book(bucket, now_ns, &slot);
    assert_true(bucket_hard_ns(bucket, &slot, now_ns) >= sane_ns);
    assert_int_not_equal(bucket_check(bucket, &slot, now_ns, &until_ns), BUCKET_FORFEIT);
    assert_true(until_ns >= sane_ns);
    bucket_cancel(bucket, &slot);
    bucket_charge(bucket, now_ns, 3);
    bucket_block(bucket, &nobody_dies, now_ns, now_ns + (now_ns < TIME_NEVER - S ? S : 0), BLOCK_SOFT);
    assert_in_range(bucket_block_kind(bucket, now_ns), BLOCK_NONE, BLOCK_HOLD);
    bucket_block(bucket, &nobody_dies, now_ns, now_ns + (now_ns < TIME_NEVER - S ? S : 0), BLOCK_HOLD);
    assert_in_range(bucket_mode(bucket, now_ns), OPERATOR_AUTO, OPERATOR_ENFORCE);
    bucket_ask_limits(bucket, &nobody_dies, now_ns, &limits);
    bucket_refill(bucket, &nobody_dies, now_ns);
    bucket_release(bucket, &nobody_dies, now_ns);
    bucket_retry_deposit(bucket, now_ns, 200000);
    bucket_retry_withdraw(bucket, now_ns, 10);
    bucket_note_latency(bucket, 5);
    assert_true(bucket_usual_latency_ns(bucket) >= 0);
    assert_true(bucket_note_refusal(bucket, now_ns) >= 0);
    bucket_is_idle(bucket, now_ns);
    bucket_read_state(bucket, now_ns, &seen);
    assert_true(seen.limits.count <= RATES_MAX);
    assert_in_range(seen.block, BLOCK_NONE, BLOCK_HOLD);
    assert_in_range(seen.mode, OPERATOR_AUTO, OPERATOR_ENFORCE);
    assert_true(seen.mode_until_ns >= 0);
}

static void test_garbage_costs_politeness_only(void **state)
{
    (void)state;
    const int fills[] = {0x00, 0xff, 0x7f, 0x80, 0x01, 0xaa};
    const int64_t times[] = {START, 0, -1, INT64_MIN, INT64_MAX, INT64_MAX - 1};
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++)
        for (size_t j = 0; j < sizeof times / sizeof *times; j++) {
            struct bucket *bucket = new_bucket();
            memset((void *)bucket, fills[i], sizeof *bucket);
            use_everything(bucket, times[j]);
            free_bucket(bucket);
        }
}

static void test_a_block_for_ever_is_for_ten_years(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 4);
    struct bucket *bucket = bucket_with(&limits, START);
    bucket_block(bucket, &nobody_dies, START, TIME_NEVER, BLOCK_HARD);
    assert_true(bucket_peek(bucket, START + 3650 * DAY - S, NULL) >= START + 3650 * DAY);
    assert_true(bucket_peek(bucket, START + 3650 * DAY + S, NULL) <= START + 3650 * DAY + S);
    assert_true(bucket_release(bucket, &nobody_dies, START + S));
    assert_true(bucket_peek(bucket, START + S, NULL) <= START + 2 * S);
    free_bucket(bucket);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_zeros_are_a_bucket_without_limits),
        TEST(test_a_burst_then_one_by_one),
        TEST(test_not_a_nanosecond_before_the_time_promised),
        TEST(test_peek_tells_what_booking_gets_and_writes_nothing),
        TEST(test_idling_earns_a_burst_and_no_more),
        TEST(test_a_clock_that_steps_back_mints_nothing),
        TEST(test_cancelling_gives_back_the_last_place_only),
        TEST(test_debt_is_clamped_to_one_window),
        TEST(test_a_charge_never_shortens_a_queue),
        TEST(test_idle_credit_is_not_spent_during_a_block_nor_when_it_lifts),
        TEST(test_credit_booked_just_before_a_block_waits_for_it),
        TEST(test_a_shorter_later_word_does_not_shorten),
        TEST(test_waiters_keep_order_and_spacing_through_a_block),
        TEST(test_a_change_of_limits_does_not_lift_a_block),
        TEST(test_limits_that_come_during_a_block_start_without_credit),
        TEST(test_a_block_takes_the_credit_of_the_fastest_limit_only),
        TEST(test_soft_and_hard),
        TEST(test_a_slow_quota_stays_hard_behind_a_short_soft_block),
        TEST(test_release_lets_the_queue_go_on),
        TEST(test_sixteen_stopped_processes_do_not_go_as_a_heap),
        TEST(test_a_slot_may_be_late_by_the_jitter_exactly),
        TEST(test_of_several_limits_the_least_jitter_counts),
        TEST(test_a_change_does_not_revive_a_missed_place),
        TEST(test_a_place_just_booked_is_never_late),
        TEST(test_a_stopped_publisher_of_a_higher_rate_frees_no_heap),
        TEST(test_a_publisher_reads_the_time_itself_where_it_can),
        TEST(test_several_limits_act_at_the_latest),
        TEST(test_limits_are_taken_and_asking_again_writes_nothing),
        TEST(test_first_limits_start_full),
        TEST(test_stricter_at_once_looser_after_a_while),
        TEST(test_stricter_means_rate_then_burst_then_jitter),
        TEST(test_two_askers_with_different_windows_get_both),
        TEST(test_no_more_than_four_windows),
        TEST(test_changing_limits_neither_refills_nor_loses),
        TEST(test_waiters_keep_their_places_through_a_new_rate),
        TEST(test_a_window_that_is_added_starts_full_less_the_queue),
        TEST(test_a_window_that_replaces_another_keeps_queue_and_use),
        TEST(test_a_window_that_comes_back_starts_full),
        TEST(test_refill_fills),
        TEST(test_refill_lets_those_who_wait_go_first),
        TEST(test_refill_does_not_lift_a_block),
        TEST(test_a_hold_stops_everybody_until_it_ends_or_is_released),
        TEST(test_the_servers_word_goes_on_after_a_shorter_hold),
        TEST(test_a_shorter_word_does_not_end_a_hold),
        TEST(test_a_hold_outlives_changes_of_limits_and_refills),
        TEST(test_waiters_keep_order_and_spacing_through_a_hold),
        TEST(test_the_operators_mode_has_an_end),
        TEST(test_a_bucket_with_an_operators_mode_is_not_idle),
        TEST(test_a_cold_bucket_has_the_reserve),
        TEST(test_a_small_reserve_comes_back_however_often_it_is_asked_for),
        TEST(test_retries_are_a_part_of_the_requests_of_late),
        TEST(test_usual_latency),
        TEST(test_refusals_are_remembered),
        TEST(test_idle_is_full_unblocked_and_unqueued),
        TEST(test_state_is_a_consistent_picture),
        TEST(test_garbage_costs_politeness_only),
        TEST(test_a_block_for_ever_is_for_ten_years),
    };
    return cmocka_run_group_tests_name("bucket", tests, NULL, NULL);
}
