/* SPDX-License-Identifier: MIT */
/*
 * A crowd of hosts in the table of buckets: more of them than there are places, asked for in a second.
 * Whoever comes gets a bucket, and what is worth keeping is kept.
 */
#include <stdio.h>

#include "tests/unit/segment_world.h"

#define START (1000 * S)
#define CROWD 1000

static void name_of(char name[BUCKET_NAME_SIZE], unsigned number)
{
    snprintf(name, BUCKET_NAME_SIZE, "host%u.example.com:443", number);
}

/* `count` names, one after the other at this spacing; how many found a place.  limits: what each of them
 * asks for and sends a request under, NULL: none. */
static unsigned crowd_in(const struct segment *segment, unsigned from, unsigned count, int64_t *now_ns,
                         int64_t spacing_ns, const struct limits *limits)
{
    unsigned made = 0;
    for (unsigned i = 0; i < count; i++, *now_ns += spacing_ns) {
        char name[BUCKET_NAME_SIZE];
        struct bucket_slot slot;
        name_of(name, from + i);
        struct bucket *bucket = segment_bucket(segment, name, *now_ns);
        made += bucket != NULL;
        if (!bucket)
            continue;
        metrics_request(bucket_metrics(bucket));
        if (limits) {
            assert_true(bucket_ask_limits(bucket, &nobody_dies, *now_ns, limits));
            bucket_book(bucket, *now_ns, &slot);
        }
    }
    return made;
}

/* Sends as often as it may at this moment. */
static unsigned send_all(struct bucket *bucket, int64_t now_ns)
{
    struct bucket_slot slot;
    unsigned sent = 0;
    while (bucket_take_due(bucket, now_ns, &slot))
        sent++;
    return sent;
}

/* Is it shown under this name, not only found by its key? */
static void assert_kept(const struct segment *segment, const char *name, const struct bucket *bucket)
{
    struct bucket_state seen;
    assert_ptr_equal(segment_find(segment, name), bucket);
    bucket_read_state(bucket, START, &seen);
    assert_string_equal(seen.name, name);
}

/* ------------------------------------------------------------------------ tests ---- */

static void test_a_crowd_in_a_second_leaves_room_for_a_host_with_a_quota(void **state)
{
    (void)state;
    const struct limits quota = one_limit(10, 60 * S, 2);
    struct segment segment = new_segment(SEGMENT_SIZE_DEFAULT);
    int64_t now_ns = START;
    unsigned sent = 0;
    assert_int_equal(crowd_in(&segment, 0, CROWD, &now_ns, S / CROWD, NULL), CROWD);
    for (unsigned round = 0; round < 20; round++) {
        struct bucket *bucket = segment_bucket(&segment, "api.example.com:443", now_ns);
        assert_non_null(bucket);
        assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, &quota));
        sent += send_all(bucket, now_ns);
        crowd_in(&segment, round * CROWD, CROWD, &now_ns, S / CROWD, NULL);
    }
    assert_in_range(sent, 2, 2 + 20 / 6 + 1);
    free_segment(&segment);
}

static void test_a_crowd_with_quotas_makes_room_for_itself(void **state)
{
    (void)state;
    const struct limits quota = one_limit(100, S, 20);
    struct segment segment = new_segment(SEGMENT_SIZE_DEFAULT);
    int64_t now_ns = START;
    assert_int_equal(crowd_in(&segment, 0, 3000, &now_ns, 60 * S / 3000, &quota), 3000);
    free_segment(&segment);
}

/* What was looked up a moment ago may be about to be used. */
static void test_a_full_bucket_is_kept_for_a_moment(void **state)
{
    (void)state;
    const struct limits quota = one_limit(100, S, 20);
    struct segment segment = new_segment(SEGMENT_SIZE_MIN);
    struct bucket *bucket = segment_bucket(&segment, "limited", START), *bare = segment_bucket(&segment, "bare", START);
    int64_t now_ns = START;
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START, &quota));
    crowd_in(&segment, 0, 400, &now_ns, 0, NULL);
    assert_kept(&segment, "bare", bare);
    crowd_in(&segment, 0, 400, &now_ns, 2 * MS, NULL);
    assert_kept(&segment, "limited", bucket);
    assert_null(segment_find(&segment, "bare"));
    now_ns = START + SEGMENT_KEEP_NS + MS;
    crowd_in(&segment, 1000, 400, &now_ns, 4 * MS, NULL);
    assert_null(segment_find(&segment, "limited"));
    free_segment(&segment);
}

/* Each in a table of its own: no two of them have to fit into one set. */
static const char kept_name[] = "kept.example.com:443";

static void hold_by_operator(struct bucket *bucket)
{
    assert_true(bucket_block(bucket, &nobody_dies, START, START + HOUR, BLOCK_HOLD));
}

static void stop_by_refusal(struct bucket *bucket)
{
    assert_true(bucket_block(bucket, &nobody_dies, START, START + HOUR, BLOCK_HARD));
}

static void stop_by_fields(struct bucket *bucket)
{
    assert_true(bucket_block(bucket, &nobody_dies, START, START + HOUR, BLOCK_SOFT));
}

static void switch_off(struct bucket *bucket)
{
    bucket_set_mode(bucket, OPERATOR_OFF, START + HOUR);
}

static void use_quota(struct bucket *bucket)
{
    const struct limits quota = one_limit(1, HOUR, 1);
    struct bucket_slot slot;
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START, &quota));
    bucket_book(bucket, START, &slot);
}

static void owe_retries(struct bucket *bucket)
{
    assert_true(bucket_retry_withdraw(bucket, START, 10));
}

static void test_what_is_worth_keeping_is_kept(void **state)
{
    (void)state;
    static const struct {
        void (*use)(struct bucket *bucket);
        int64_t kept_ns;
    } cases[] = {{hold_by_operator, HOUR}, {stop_by_refusal, HOUR}, {stop_by_fields, HOUR},
                 {switch_off, HOUR},       {use_quota, HOUR},       {owe_retries, 60 * S}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct segment segment = new_segment(SEGMENT_SIZE_MIN);
        struct bucket *bucket = segment_bucket(&segment, kept_name, START);
        const int64_t spacing_ns = cases[i].kept_ns / 1000;
        int64_t now_ns = START;
        cases[i].use(bucket);
        assert_false(bucket_is_idle(bucket, START));
        crowd_in(&segment, 0, 980, &now_ns, spacing_ns, NULL);
        assert_kept(&segment, kept_name, bucket);
        now_ns = START + cases[i].kept_ns + 2 * S;
        crowd_in(&segment, 2000, 980, &now_ns, spacing_ns, NULL);
        assert_null(segment_find(&segment, kept_name));
        free_segment(&segment);
    }
}

static void test_a_set_full_of_what_is_kept_has_no_room(void **state)
{
    (void)state;
    struct segment segment = new_segment(SEGMENT_SIZE_MIN);
    struct bucket *bucket;
    unsigned cursor = 0;
    int64_t now_ns = START;
    crowd_in(&segment, 0, 500, &now_ns, 0, NULL);
    while ((bucket = segment_next(&segment, &cursor)))
        assert_true(bucket_block(bucket, &nobody_dies, START, START + HOUR, BLOCK_HARD));
    now_ns = START + 60 * S;
    assert_int_equal(crowd_in(&segment, 1000, 100, &now_ns, S, NULL), 0);
    free_segment(&segment);
}

/* Whose limits were asked for a moment ago by the old name. */
static void test_who_comes_after_inherits_no_limits(void **state)
{
    (void)state;
    const struct limits strict = one_limit(1, S, 1), own = one_limit(100, S, 20), none = {0};
    struct segment segment = new_segment(SEGMENT_SIZE_MIN);
    int64_t now_ns = START;
    crowd_in(&segment, 0, 500, &now_ns, 0, &strict);
    now_ns = START + SEGMENT_KEEP_NS + MS;
    for (unsigned i = 0; i < 20; i++) {
        char name[BUCKET_NAME_SIZE];
        struct bucket_state seen;
        name_of(name, 1000 + i);
        struct bucket *bucket = segment_bucket(&segment, name, now_ns);
        assert_non_null(bucket);
        assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, i % 2 ? &none : &own));
        bucket_read_state(bucket, now_ns, &seen);
        assert_int_equal(seen.limits.count, i % 2 ? 0 : 1);
        assert_int_equal(send_all(bucket, now_ns), i % 2 ? 0 : 20);
    }
    free_segment(&segment);
}

/* As a process wrote it whose clock is another one. */
static void test_a_look_up_in_the_future_protects_nobody(void **state)
{
    (void)state;
    struct segment segment = new_segment(SEGMENT_SIZE_MIN);
    struct bucket *bucket;
    unsigned cursor = 0;
    int64_t now_ns = START, later_ns = START + 3650 * DAY;
    crowd_in(&segment, 0, 500, &later_ns, 0, NULL);
    assert_int_equal(crowd_in(&segment, 1000, 500, &now_ns, 12 * MS, NULL), 500);
    while ((bucket = segment_next(&segment, &cursor)))
        assert_true(shared_load(&bucket->used_ns) <= (uint64_t)now_ns);
    free_segment(&segment);
}

static void test_no_count_is_lost_in_a_crowd(void **state)
{
    (void)state;
    struct segment segment = new_segment(SEGMENT_SIZE_MIN);
    struct bucket *bucket;
    unsigned cursor = 0;
    int64_t now_ns = START;
    uint64_t counted = 0;
    assert_int_equal(crowd_in(&segment, 0, CROWD, &now_ns, 20 * MS, NULL), CROWD);
    while ((bucket = segment_next(&segment, &cursor)))
        counted += bucket_metrics(bucket)->requests;
    assert_int_equal(counted + segment_other_metrics(&segment)->requests, CROWD);
    free_segment(&segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_crowd_in_a_second_leaves_room_for_a_host_with_a_quota),
        cmocka_unit_test(test_a_crowd_with_quotas_makes_room_for_itself),
        cmocka_unit_test(test_a_full_bucket_is_kept_for_a_moment),
        cmocka_unit_test(test_what_is_worth_keeping_is_kept),
        cmocka_unit_test(test_a_set_full_of_what_is_kept_has_no_room),
        cmocka_unit_test(test_who_comes_after_inherits_no_limits),
        cmocka_unit_test(test_a_look_up_in_the_future_protects_nobody),
        cmocka_unit_test(test_no_count_is_lost_in_a_crowd),
    };
    return cmocka_run_group_tests_name("a crowd of hosts", tests, NULL, NULL);
}
