/* SPDX-License-Identifier: MIT */
/*
 * How those who wait for a server's block go when it lifts: none before its end, each by a draw of his own
 * where no limit paces them, in their order where one does, and at once when the operator lifts it.
 */
#include "tests/unit/governor_world.h"

#define WAITERS 20
#define MS NS_PER_MS

/* Somebody was refused, and has gone; everybody is told to wait for so long. */
static int64_t refuse_somebody(struct world *world, const char *fields, int64_t wait_ns)
{
    struct governor_request request;
    begin_method(world, &request, "POST", 0);
    send_now(world, &request);
    assert_int_equal(answer(world, &request, 429, fields).action, GOVERNOR_DELIVER);
    governor_end(&request, world->now_ns);
    return world->now_ns + wait_ns;
}

static struct governor_step wait_for(struct world *world, struct governor_request *request)
{
    struct governor_step step = governor_admit(request, world->now_ns);
    assert_int_equal(step.action, GOVERNOR_WAIT);
    assert_int_equal(step.cause, CAUSE_BLOCK);
    return step;
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Of independent uniform draws over a second, in milliseconds, hardly any two are the same. */
static void check_spread(int64_t *at_ns, unsigned count, int64_t end_ns, int64_t most_ns)
{
    unsigned distinct = 1;
    qsort(at_ns, count, sizeof *at_ns, by_time);
    for (unsigned i = 1; i < count; i++)
        distinct += at_ns[i] / MS != at_ns[i - 1] / MS;
    assert_true(at_ns[0] >= end_ns);
    assert_true(at_ns[count - 1] <= end_ns + most_ns);
    assert_true(at_ns[count - 1] - at_ns[0] > most_ns / 4);
    assert_true(distinct > count / 2);
}

static void test_each_goes_by_a_draw_of_his_own(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *field;
        int64_t wait_ns, most_ns;
    } cases[] = {{"Retry-After: 4", 4 * S, 400 * MS}, {"Retry-After: 60", 60 * S, S}};
    for (int c = 0; c < 2; c++) {
        struct governor_request request[WAITERS];
        int64_t until_ns[WAITERS];
        int64_t end_ns = refuse_somebody(world, cases[c].field, cases[c].wait_ns);
        for (int i = 0; i < WAITERS; i++) {
            begin(world, &request[i]);
            until_ns[i] = wait_for(world, &request[i]).until_ns;
        }
        /* Later looks draw nothing anew, not even after the block. */
        for (world->now_ns += 300 * MS; world->now_ns < end_ns + 2 * S; world->now_ns += 50 * MS)
            for (int i = 0; i < WAITERS; i++) {
                if (request[i].attempts)
                    continue;
                if (world->now_ns < until_ns[i]) {
                    assert_int_equal(wait_for(world, &request[i]).until_ns, until_ns[i]);
                    continue;
                }
                assert_int_equal(governor_admit(&request[i], world->now_ns).action, GOVERNOR_SEND);
                governor_sent(&request[i], world->now_ns);
            }
        for (int i = 0; i < WAITERS; i++)
            assert_int_equal(request[i].attempts, 1);
        check_spread(until_ns, WAITERS, end_ns, cases[c].most_ns);
    }
}

/* Of what remains for him who comes late. */
static void test_the_draw_is_a_part_of_what_remains(void **state)
{
    struct world *world = *state;
    int64_t end_ns = refuse_somebody(world, "Retry-After: 10", 10 * S);
    world->now_ns = end_ns - S;
    for (int i = 0; i < WAITERS; i++) {
        struct governor_request request;
        begin(world, &request);
        assert_in_range(wait_for(world, &request).until_ns, end_ns, end_ns + 100 * MS);
        governor_end(&request, world->now_ns);
    }
}

static void test_a_soft_block_too(void **state)
{
    struct world *world = *state;
    struct governor_request request[WAITERS];
    int64_t until_ns[WAITERS];
    begin(world, &request[0]);
    send_now(world, &request[0]);
    answer(world, &request[0], 200, "X-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 20");
    int64_t end_ns = world->now_ns + 20 * S;
    for (int i = 0; i < WAITERS; i++) {
        begin(world, &request[i]);
        until_ns[i] = wait_for(world, &request[i]).until_ns;
    }
    check_spread(until_ns, WAITERS, end_ns, S);
}

static void test_no_spread_is_none(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    world->resolved.values.spread = 0;
    int64_t end_ns = refuse_somebody(world, "Retry-After: 10", 10 * S);
    begin(world, &request);
    assert_int_equal(wait_for(world, &request).until_ns, end_ns);
}

/* Who was refused himself has one draw, as before, and not one more for the block that he caused. */
static void test_the_refused_one_is_spread_once(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 200; i++) {
        struct governor_request request;
        begin(world, &request);
        send_now(world, &request);
        int64_t refused_ns = world->now_ns;
        struct governor_step retry = answer(world, &request, 429, "Retry-After: 4");
        assert_int_equal(retry.action, GOVERNOR_RETRY);
        assert_int_equal(admit(world, &request).action, GOVERNOR_SEND);
        assert_int_equal(world->now_ns, retry.until_ns);
        assert_in_range(world->now_ns, refused_ns + 4 * S, refused_ns + 4 * S + 400 * MS);
        governor_end(&request, world->now_ns);
    }
}

static void test_a_block_that_is_moved_is_drawn_for_anew(void **state)
{
    struct world *world = *state;
    struct governor_request request[WAITERS];
    int64_t until_ns[WAITERS];
    refuse_somebody(world, "Retry-After: 4", 4 * S);
    for (int i = 0; i < WAITERS; i++) {
        begin(world, &request[i]);
        wait_for(world, &request[i]);
    }
    int64_t end_ns = world->now_ns + 30 * S;
    bucket_block(world->bucket, &world->governor.world, world->now_ns, end_ns, BLOCK_HARD);
    for (int look = 0; look < 3; look++, world->now_ns += S)
        for (int i = 0; i < WAITERS; i++) {
            int64_t at_ns = wait_for(world, &request[i]).until_ns;
            assert_true(look == 0 || at_ns == until_ns[i]);
            until_ns[i] = at_ns;
        }
    check_spread(until_ns, WAITERS, end_ns, S);
}

static void test_the_operators_word_lets_all_go_at_once(void **state)
{
    struct world *world = *state;
    for (int is_mode = 0; is_mode < 2; is_mode++) {
        struct governor_request request[WAITERS];
        refuse_somebody(world, "Retry-After: 30", 30 * S);
        for (int i = 0; i < WAITERS; i++) {
            begin(world, &request[i]);
            wait_for(world, &request[i]);
        }
        world->now_ns += S;
        if (is_mode)
            segment_set_mode(&world->segment, OPERATOR_OFF, TIME_NEVER);
        else
            assert_true(bucket_release(world->bucket, &world->governor.world, world->now_ns));
        for (int i = 0; i < WAITERS; i++) {
            world->now_ns += MS;
            assert_int_equal(governor_admit(&request[i], world->now_ns).action, GOVERNOR_SEND);
            governor_sent(&request[i], world->now_ns);
        }
    }
}

/* Also for him who looks only after the block would have ended; and a block after that is waited for. */
static void test_a_release_is_seen_later_too(void **state)
{
    struct world *world = *state;
    struct governor_request first, second;
    int64_t end_ns = refuse_somebody(world, "Retry-After: 30", 30 * S);
    begin(world, &first);
    begin(world, &second);
    int64_t until_ns = wait_for(world, &first).until_ns;
    wait_for(world, &second);
    assert_true(until_ns > end_ns);
    world->now_ns = end_ns - 1;
    assert_true(bucket_release(world->bucket, &world->governor.world, world->now_ns));
    world->now_ns = end_ns;
    assert_int_equal(governor_admit(&first, world->now_ns).action, GOVERNOR_SEND);
    bucket_block(world->bucket, &world->governor.world, world->now_ns, world->now_ns + 5 * S, BLOCK_HARD);
    assert_in_range(wait_for(world, &second).until_ns, end_ns + 5 * S, end_ns + 5 * S + S / 2);
}

static void test_a_hold_ends_when_the_operator_said(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    refuse_somebody(world, "Retry-After: 10", 10 * S);
    begin(world, &request);
    wait_for(world, &request);
    int64_t end_ns = world->now_ns + 60 * S;
    bucket_block(world->bucket, &world->governor.world, world->now_ns, end_ns, BLOCK_HOLD);
    assert_int_equal(governor_admit(&request, world->now_ns).until_ns, end_ns);
    assert_int_equal(governor_admit(&request, end_ns).action, GOVERNOR_SEND);
}

/* It never fails what the block alone would not have failed. */
static void test_the_draw_gives_way_to_the_bounds(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 100; i++) {
        struct governor_request by_max_wait, by_timeout;
        int64_t end_ns = refuse_somebody(world, "Retry-After: 50", 50 * S);
        int64_t began_ns = world->now_ns;
        world->resolved.values.max_wait = 50 * S + 10 * MS;
        begin(world, &by_max_wait);
        assert_in_range(wait_for(world, &by_max_wait).until_ns, end_ns, began_ns + 50 * S + 10 * MS);
        world->resolved.values.max_wait = DURATION_AUTO;
        begin_method(world, &by_timeout, "GET", 63 * S);
        by_timeout.room_ns = 13 * S - 10 * MS;
        assert_in_range(wait_for(world, &by_timeout).until_ns, end_ns, end_ns + 10 * MS);
        assert_int_equal(admit(world, &by_timeout).action, GOVERNOR_SEND);
        world->now_ns = world->now_ns < began_ns + 50 * S + 10 * MS ? began_ns + 50 * S + 10 * MS : world->now_ns;
        assert_int_equal(admit(world, &by_max_wait).action, GOVERNOR_SEND);
        governor_end(&by_timeout, world->now_ns);
        governor_end(&by_max_wait, world->now_ns);
    }
}

/* A limit lets them go one after the other, in the order in which they came. */
static void test_a_limit_paces_and_nothing_is_drawn(void **state)
{
    struct world *world = *state;
    struct governor_request request[WAITERS];
    set_quota(world, "20/s");
    refuse_somebody(world, "Retry-After: 10", 10 * S);
    int64_t last_ns = world->now_ns + 10 * S;
    for (int i = 0; i < WAITERS; i++) {
        begin(world, &request[i]);
        int64_t until_ns = wait_for(world, &request[i]).until_ns;
        assert_true(until_ns > last_ns);
        if (i > 0)
            assert_in_range(until_ns - last_ns, 62 * MS, 63 * MS);
        last_ns = until_ns;
    }
}

/* Limits that come while they wait do not count them: they have no places there. */
static void test_who_has_no_place_in_a_limit_is_spread(void **state)
{
    struct world *world = *state;
    struct governor_request request[WAITERS];
    int64_t until_ns[WAITERS];
    int64_t end_ns = refuse_somebody(world, "Retry-After: 20", 20 * S);
    for (int i = 0; i < WAITERS; i++) {
        begin(world, &request[i]);
        wait_for(world, &request[i]);
    }
    struct policy strict;
    struct limits limits;
    policy_defaults(&strict);
    assert_null(units_parse_rates("10/s", &strict.quota));
    limits_from_policy(&strict, &limits, NULL);
    bucket_ask_limits(world->bucket, &world->governor.world, world->now_ns, &limits);
    for (int i = 0; i < WAITERS; i++)
        until_ns[i] = wait_for(world, &request[i]).until_ns;
    check_spread(until_ns, WAITERS, end_ns, S);
}

/* The bucket that is blocked has no limit; the other one has, and is asked when the draw lets it. */
static void test_a_blocked_bucket_beside_one_with_a_limit(void **state)
{
    struct world *world = *state;
    struct governor_request request[WAITERS];
    int64_t until_ns[WAITERS];
    struct bucket *buckets[] = {world->bucket, segment_bucket(&world->segment, "api.example.com:443/a", world->now_ns)};
    const struct request_traits traits = {.method = "GET"};
    int64_t end_ns = refuse_somebody(world, "Retry-After: 20", 20 * S);
    world->resolved.bucket_count = 2;
    assert_null(units_parse_rates("200/s", &world->resolved.values.quota));
    limits_from_policy(&world->resolved.values, &world->resolved.buckets[1].limits, NULL);
    for (int i = 0; i < WAITERS; i++) {
        governor_begin(&request[i], &world->governor, &world->resolved, buckets, &traits, 0, world->now_ns);
        until_ns[i] = wait_for(world, &request[i]).until_ns;
    }
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(governor_admit(&request[i], end_ns + S).action, GOVERNOR_SEND);
        governor_sent(&request[i], end_ns + S);
    }
    check_spread(until_ns, WAITERS, end_ns, S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_goes_by_a_draw_of_his_own),
        TEST(test_the_draw_is_a_part_of_what_remains),
        TEST(test_a_soft_block_too),
        TEST(test_no_spread_is_none),
        TEST(test_the_refused_one_is_spread_once),
        TEST(test_a_block_that_is_moved_is_drawn_for_anew),
        TEST(test_the_operators_word_lets_all_go_at_once),
        TEST(test_a_release_is_seen_later_too),
        TEST(test_a_hold_ends_when_the_operator_said),
        TEST(test_the_draw_gives_way_to_the_bounds),
        TEST(test_a_limit_paces_and_nothing_is_drawn),
        TEST(test_who_has_no_place_in_a_limit_is_spread),
        TEST(test_a_blocked_bucket_beside_one_with_a_limit),
    };
    return cmocka_run_group_tests_name("lifting", tests, NULL, NULL);
}
