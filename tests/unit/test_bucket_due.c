/* SPDX-License-Identifier: MIT */
/*
 * The short way through a bucket (bucket_take_due) decides and books exactly as the long one does
 * (peek, book, check), request for request, and keeps out of what it is not made for.
 */
#include "tests/unit/bucket_world.h"

#define START (1000 * S)

static void ask(struct bucket *bucket, const struct limits *limits, int64_t now_ns)
{
    assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, limits));
}

static bool take_the_long_way(struct bucket *bucket, int64_t now_ns)
{
    struct bucket_slot slot = {.booked = false};
    int64_t until_ns;
    if (bucket_peek(bucket, now_ns, NULL) > now_ns)
        return false;
    bucket_book(bucket, now_ns, &slot);
    assert_int_equal(bucket_check(bucket, &slot, now_ns, &until_ns), BUCKET_ACT);
    return true;
}

static void test_both_ways_decide_the_same(void **state)
{
    (void)state;
    srandom(1);
    for (int run = 0; run < 50; run++) {
        struct bucket *a = new_bucket(), *b = new_bucket();
        const struct limits limits = {.count = 1, .item = {limit_of(1 + random() % 100, S, 1 + random() % 20)}};
        int64_t now_ns = START;
        int taken = 0;
        ask(a, &limits, now_ns);
        ask(b, &limits, now_ns);
        for (int i = 0; i < 500; i++) {
            struct bucket_slot slot = {.booked = false};
            now_ns += random() % (50 * MS);
            if (i == 250) {
                bucket_block(a, &nobody_dies, now_ns, now_ns + 3 * S, BLOCK_HARD);
                bucket_block(b, &nobody_dies, now_ns, now_ns + 3 * S, BLOCK_HARD);
            }
            bool due = bucket_take_due(a, now_ns, &slot);
            assert_int_equal(due, slot.booked);
            assert_int_equal(due, take_the_long_way(b, now_ns));
            assert_int_equal(bucket_peek(a, now_ns, NULL), bucket_peek(b, now_ns, NULL));
            taken += due;
        }
        assert_true(taken > 10 && taken < 500);
        free_bucket(a);
        free_bucket(b);
    }
}

static void test_a_place_taken_so_can_be_given_back(void **state)
{
    (void)state;
    struct bucket *bucket = new_bucket();
    const struct limits limits = {.count = 1, .item = {limit_of(1, S, 1)}};
    struct bucket_slot slot = {.booked = false}, next = {.booked = false};
    ask(bucket, &limits, START);
    assert_true(bucket_take_due(bucket, START, &slot));
    assert_false(bucket_take_due(bucket, START, &next));
    assert_false(next.booked);
    assert_true(bucket_cancel(bucket, &slot));
    assert_true(bucket_take_due(bucket, START, &next));
    free_bucket(bucket);
}

static void test_several_limits_or_none_are_for_the_long_way(void **state)
{
    (void)state;
    struct bucket *bucket = new_bucket();
    const struct limits two = {.count = 2, .item = {limit_of(100, HOUR, 10), limit_of(10, S, 2)}};
    struct bucket_slot slot = {.booked = false};
    assert_true(bucket_is_open(bucket, START));
    assert_false(bucket_take_due(bucket, START, &slot));
    ask(bucket, &two, START);
    assert_false(bucket_is_open(bucket, START));
    assert_false(bucket_take_due(bucket, START, &slot));
    assert_false(slot.booked);
    free_bucket(bucket);
}

static void test_a_bucket_is_open_again_after_a_block_without_limits(void **state)
{
    (void)state;
    struct bucket *bucket = new_bucket();
    bucket_block(bucket, &nobody_dies, START, START + S, BLOCK_HARD);
    assert_false(bucket_is_open(bucket, START));
    assert_false(bucket_is_open(bucket, START + S - 1));
    assert_true(bucket_is_open(bucket, START + S));
    free_bucket(bucket);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways_decide_the_same),
        cmocka_unit_test(test_a_place_taken_so_can_be_given_back),
        cmocka_unit_test(test_several_limits_or_none_are_for_the_long_way),
        cmocka_unit_test(test_a_bucket_is_open_again_after_a_block_without_limits),
    };
    return cmocka_run_group_tests_name("bucket_due", tests, NULL, NULL);
}
