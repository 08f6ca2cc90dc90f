/* SPDX-License-Identifier: MIT */
/*
 * The decision machine and what comes to it from outside while it runs: the operator's mode, holds and
 * releases, a configuration that changes; and what `observe` tells.
 */
#include "tests/unit/governor_world.h"

/* One request that went, and one that has to wait for about ten seconds. */
static void have_a_waiter(struct world *world, struct governor_request *waiter)
{
    struct governor_request first;
    set_quota(world, "6/min");
    for (int i = 0; i < 2; i++) {
        begin(world, &first);
        send_now(world, &first);
        answer(world, &first, 200, NULL);
        governor_end(&first, world->now_ns);
    }
    begin(world, waiter);
    struct governor_step step = governor_admit(waiter, world->now_ns);
    assert_int_equal(step.action, GOVERNOR_WAIT);
    assert_int_equal(step.cause, CAUSE_QUOTA);
    assert_true(step.until_ns > world->now_ns + 5 * S);
}

static void test_mode_off_lets_a_waiter_go_and_on_again_a_later_one_waits(void **state)
{
    struct world *world = *state;
    struct governor_request waiter, later;
    have_a_waiter(world, &waiter);
    world->now_ns += S;
    segment_set_mode(&world->segment, OPERATOR_OFF, TIME_NEVER);
    struct governor_step step = governor_admit(&waiter, world->now_ns);
    assert_int_equal(step.action, GOVERNOR_SEND);
    assert_int_equal(step.would_wait_ns, 0);
    governor_sent(&waiter, world->now_ns);
    assert_false(governor_holds(&waiter, 429));
    assert_int_equal(answer(world, &waiter, 429, "Retry-After: 1").action, GOVERNOR_DELIVER);
    segment_set_mode(&world->segment, OPERATOR_AUTO, 0);
    begin(world, &later);
    assert_int_equal(governor_admit(&later, world->now_ns).action, GOVERNOR_WAIT);
    governor_end(&later, world->now_ns);
}

/* The response that it was refused with is what the program gets. */
static void test_mode_off_ends_the_wait_for_a_retry(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    begin(world, &request);
    send_now(world, &request);
    assert_int_equal(answer(world, &request, 429, "Retry-After: 30").action, GOVERNOR_RETRY);
    assert_int_equal(governor_admit(&request, world->now_ns).action, GOVERNOR_WAIT);
    bucket_set_mode(world->bucket, OPERATOR_OFF, TIME_NEVER);
    struct governor_step step = governor_admit(&request, world->now_ns + S);
    assert_int_equal(step.action, GOVERNOR_REFUSE);
    assert_int_equal(step.cause, CAUSE_MODE);
    assert_int_equal(atomic_load(&bucket_metrics(world->bucket)->giveups[CAUSE_MODE]), 0);
}

static void test_a_mode_ends_when_its_time_is_over(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    set_quota(world, "6/min");
    segment_set_mode(&world->segment, OPERATOR_OFF, world->now_ns + 60 * S);
    for (int i = 0; i < 10; i++) {
        begin(world, &request);
        assert_int_equal(governor_admit(&request, world->now_ns).action, GOVERNOR_SEND);
        governor_sent(&request, world->now_ns);
    }
    world->now_ns += 60 * S;
    begin(world, &request);
    assert_int_equal(governor_mode(&request, world->now_ns), MODE_ENFORCE);
}

static void test_the_least_intrusive_of_all_sources_wins(void **state)
{
    struct world *world = *state;
    static const enum mode of_policy[] = {MODE_OFF, MODE_OBSERVE, MODE_ENFORCE};
    static const enum operator_mode words[] = {OPERATOR_AUTO, OPERATOR_OFF, OPERATOR_OBSERVE, OPERATOR_ENFORCE};
    static const enum mode allowed[] = {MODE_ENFORCE, MODE_OFF, MODE_OBSERVE, MODE_ENFORCE};
    struct governor_request request;
    for (unsigned p = 0; p < 3; p++)
        for (unsigned s = 0; s < 4; s++)
            for (unsigned b = 0; b < 4; b++)
                for (unsigned c = 0; c < 3; c++) {
                    enum mode least = of_policy[p];
                    least = allowed[s] < least ? allowed[s] : least;
                    least = allowed[b] < least ? allowed[b] : least;
                    least = of_policy[c] < least ? of_policy[c] : least;
                    world->resolved.values.mode = of_policy[p];
                    segment_set_mode(&world->segment, words[s], TIME_NEVER);
                    bucket_set_mode(world->bucket, words[b], TIME_NEVER);
                    begin(world, &request);
                    request.ceiling = of_policy[c];
                    assert_int_equal(governor_mode(&request, world->now_ns), least);
                }
}

static void test_observe_tells_what_would_have_been(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    world->resolved.values.mode = MODE_OBSERVE;
    set_quota(world, "6/min");
    for (int i = 0; i < 3; i++) {
        begin(world, &request);
        struct governor_step step = governor_admit(&request, world->now_ns);
        assert_int_equal(step.action, GOVERNOR_SEND);
        governor_sent(&request, world->now_ns);
        if (i == 0)
            assert_int_equal(step.would_wait_ns, 0);
        else
            assert_in_range(step.would_wait_ns, i * 10 * S, i * 14 * S);
        assert_int_equal(step.cause, i == 0 ? CAUSE_NONE : CAUSE_QUOTA);
    }
    struct governor_step step = answer(world, &request, 429, "Retry-After: 20");
    assert_int_equal(step.action, GOVERNOR_DELIVER);
    assert_int_equal(step.cause, CAUSE_RETRY_AFTER);
    assert_in_range(step.would_wait_ns, 20 * S, 22 * S);
    struct metrics *metrics = bucket_metrics(world->bucket);
    assert_int_equal(atomic_load(&metrics->observed_waits), 2);
    assert_int_equal(atomic_load(&metrics->observed_retries), 1);
    assert_int_equal(atomic_load(&metrics->retries[CAUSE_RETRY_AFTER]), 0);
}

static void test_what_observe_would_not_have_retried_is_not_told(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    world->resolved.values.mode = MODE_OBSERVE;
    world->resolved.values.max_attempts = 1;
    begin(world, &request);
    send_now(world, &request);
    struct governor_step step = answer(world, &request, 429, "Retry-After: 2");
    assert_int_equal(step.action, GOVERNOR_DELIVER);
    assert_int_equal(step.would_wait_ns, 0);
    assert_int_equal(atomic_load(&bucket_metrics(world->bucket)->observed_retries), 0);
    assert_int_equal(atomic_load(&bucket_metrics(world->bucket)->giveups[CAUSE_MAX_ATTEMPTS]), 0);
}

static void test_a_hold_is_waited_for_and_a_release_ends_it(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    assert_true(bucket_block(world->bucket, &world->governor.world, world->now_ns, world->now_ns + 60 * S, BLOCK_HOLD));
    begin(world, &request);
    struct governor_step step = governor_admit(&request, world->now_ns);
    assert_int_equal(step.action, GOVERNOR_WAIT);
    assert_int_equal(step.cause, CAUSE_HOLD);
    assert_int_equal(step.until_ns, world->now_ns + 60 * S);
    world->now_ns += S;
    assert_true(bucket_release(world->bucket, &world->governor.world, world->now_ns));
    assert_int_equal(governor_admit(&request, world->now_ns).action, GOVERNOR_SEND);
}

/* max_wait, 90 s, is for what comes before the hold and after it. */
static void test_a_hold_is_waited_for_however_long_it_is(void **state)
{
    struct world *world = *state;
    struct governor_request before, within;
    have_a_waiter(world, &before);
    world->now_ns += S;
    int64_t lifts_ns = world->now_ns + 3600 * S;
    bucket_block(world->bucket, &world->governor.world, world->now_ns, lifts_ns, BLOCK_HOLD);
    begin(world, &within);
    assert_int_equal(governor_admit(&before, world->now_ns).action, GOVERNOR_WAIT);
    assert_int_equal(governor_admit(&within, world->now_ns).action, GOVERNOR_WAIT);
    assert_int_equal(admit(world, &before).action, GOVERNOR_SEND);
    assert_true(world->now_ns >= lifts_ns);
    governor_sent(&before, world->now_ns);
    assert_int_equal(admit(world, &within).action, GOVERNOR_SEND);
}

static void test_who_waits_for_nothing_does_not_wait_for_a_hold(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    world->resolved.values.max_wait = 0;
    set_quota(world, "100/s");
    bucket_block(world->bucket, &world->governor.world, world->now_ns, world->now_ns + 60 * S, BLOCK_HOLD);
    begin(world, &request);
    struct governor_step step = governor_admit(&request, world->now_ns);
    assert_int_equal(step.action, GOVERNOR_REFUSE);
    assert_int_equal(step.cause, CAUSE_MAX_WAIT);
}

/* Who is let go uses the place that he had. */
static void test_mode_off_charges_a_waiter_once(void **state)
{
    struct world *world = *state;
    struct governor_request waiter[5];
    struct bucket_state seen;
    have_a_waiter(world, &waiter[0]);
    for (int i = 1; i < 5; i++) {
        begin(world, &waiter[i]);
        assert_int_equal(governor_admit(&waiter[i], world->now_ns).action, GOVERNOR_WAIT);
    }
    bucket_read_state(world->bucket, world->now_ns, &seen);
    double queued = seen.tokens[0];
    segment_set_mode(&world->segment, OPERATOR_OFF, TIME_NEVER);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(governor_admit(&waiter[i], world->now_ns).action, GOVERNOR_SEND);
        governor_sent(&waiter[i], world->now_ns);
        governor_end(&waiter[i], world->now_ns);
    }
    bucket_read_state(world->bucket, world->now_ns, &seen);
    assert_true(seen.tokens[0] == queued);
}

static void test_best_effort_does_not_wait_and_is_not_slowed(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    set_quota(world, "6/min");
    world->resolved.values.max_attempts = 1;
    world->resolved.values.max_wait = 0;
    begin(world, &request);
    send_now(world, &request);
    assert_int_equal(answer(world, &request, 503, NULL).action, GOVERNOR_DELIVER);
    for (int i = 0; i < 5; i++) {
        begin(world, &request);
        struct governor_step step = governor_admit(&request, world->now_ns);
        assert_int_equal(step.action, GOVERNOR_REFUSE);
        assert_int_equal(step.cause, CAUSE_MAX_WAIT);
    }
}

/* Four wait, ten seconds apart; then the quota is five times what it was. */
static void test_waiters_obey_new_limits_in_their_order(void **state)
{
    struct world *world = *state;
    struct governor_request waiter[4];
    struct bucket *buckets[] = {world->bucket};
    have_a_waiter(world, &waiter[0]);
    for (int i = 1; i < 4; i++) {
        begin(world, &waiter[i]);
        assert_int_equal(governor_admit(&waiter[i], world->now_ns).action, GOVERNOR_WAIT);
    }
    /* The stricter one is forgotten, since nobody asks for it any more. */
    world->now_ns += 2 * S;
    set_quota(world, "30/min");
    for (int round = 0; round < 12; round++) {
        world->now_ns += S;
        for (int i = 0; i < 4; i++)
            governor_rebase(&waiter[i], &world->governor, &world->resolved, buckets, world->now_ns);
    }
    int64_t last_ns = 0;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(admit(world, &waiter[i]).action, GOVERNOR_SEND);
        governor_sent(&waiter[i], world->now_ns);
        assert_true(world->now_ns >= last_ns);
        last_ns = world->now_ns;
    }
    /* Nothing was refilled: two that went at the start, ten seconds by the old rate, then the new one. */
    struct bucket_state seen;
    bucket_read_state(world->bucket, world->now_ns, &seen);
    assert_int_equal(seen.limits.item[0].published, 30);
    assert_true(seen.tokens[0] < 1);
}

static void test_another_bucket_is_queued_for_anew_and_the_place_given_back(void **state)
{
    struct world *world = *state;
    struct governor_request waiter, next;
    struct bucket_state before, after;
    have_a_waiter(world, &waiter);
    governor_end(&waiter, world->now_ns);
    bucket_read_state(world->bucket, world->now_ns, &before);
    begin(world, &waiter);
    assert_int_equal(governor_admit(&waiter, world->now_ns).action, GOVERNOR_WAIT);
    struct bucket *others[] = {segment_bucket(&world->segment, "{group}", world->now_ns)};
    governor_rebase(&waiter, &world->governor, &world->resolved, others, world->now_ns);
    assert_int_equal(governor_admit(&waiter, world->now_ns).action, GOVERNOR_SEND);
    governor_sent(&waiter, world->now_ns);
    bucket_read_state(world->bucket, world->now_ns, &after);
    assert_true(after.next_ns == before.next_ns);
    begin(world, &next);
    assert_int_equal(governor_admit(&next, world->now_ns).action, GOVERNOR_WAIT);
}

static void test_a_stop_is_told_once(void **state)
{
    struct world *world = *state;
    struct governor_request a, b;
    begin(world, &a);
    send_now(world, &a);
    begin(world, &b);
    send_now(world, &b);
    answer(world, &a, 429, "Retry-After: 20");
    assert_true(a.was_refused);
    assert_in_range(a.stopped_ns, 20 * S, 22 * S);
    answer(world, &b, 429, "Retry-After: 20");
    assert_true(b.was_refused);
    assert_int_equal(b.stopped_ns, 0);
    answer(world, &b, 200, NULL);
    assert_false(b.was_refused);
}

static void expect_same(struct governor_request *a, struct governor_request *b, int64_t at_ns)
{
    struct governor_step of_a = governor_admit(a, at_ns), of_b = governor_admit(b, at_ns);
    assert_int_equal(of_a.action, of_b.action);
    assert_int_equal(of_a.cause, of_b.cause);
    assert_int_equal(of_a.until_ns, of_b.until_ns);
    assert_int_equal(of_a.would_wait_ns, of_b.would_wait_ns);
    assert_int_equal(a->mode, b->mode);
    assert_int_equal(a->wait_began_ns, b->wait_began_ns);
}

/* An operator who says `enforce` changes nothing, but has everybody look closely. */
static void test_a_glance_decides_what_a_closer_look_would(void **state)
{
    struct world *glancing = *state, *looking = NULL;
    assert_int_equal(set_up((void **)&looking), 0);
    bucket_set_mode(looking->bucket, OPERATOR_ENFORCE, TIME_NEVER);
    static const enum mode modes[] = {MODE_OFF, MODE_OBSERVE, MODE_ENFORCE};
    static const int64_t later_ns[] = {-S, 0, 1, 100 * S};
    for (unsigned m = 0; m < 3; m++)
        for (unsigned l = 0; l < 4; l++)
            for (unsigned retried = 0; retried < 2; retried++) {
                struct world *const worlds[] = {glancing, looking};
                struct governor_request request[2];
                for (int i = 0; i < 2; i++) {
                    worlds[i]->resolved.values.mode = MODE_ENFORCE;
                    begin(worlds[i], &request[i]);
                    if (retried) {
                        send_now(worlds[i], &request[i]);
                        request[i].not_before_ns = worlds[i]->now_ns + S;
                    }
                    worlds[i]->resolved.values.mode = modes[m];
                }
                expect_same(&request[0], &request[1], glancing->now_ns + later_ns[l]);
                expect_same(&request[0], &request[1], glancing->now_ns + later_ns[l] + 2 * S);
                for (int i = 0; i < 2; i++)
                    governor_end(&request[i], worlds[i]->now_ns + 200 * S);
            }
    tear_down((void **)&looking);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_mode_off_lets_a_waiter_go_and_on_again_a_later_one_waits),
        TEST(test_mode_off_ends_the_wait_for_a_retry),
        TEST(test_a_mode_ends_when_its_time_is_over),
        TEST(test_the_least_intrusive_of_all_sources_wins),
        TEST(test_observe_tells_what_would_have_been),
        TEST(test_what_observe_would_not_have_retried_is_not_told),
        TEST(test_a_hold_is_waited_for_and_a_release_ends_it),
        TEST(test_a_hold_is_waited_for_however_long_it_is),
        TEST(test_who_waits_for_nothing_does_not_wait_for_a_hold),
        TEST(test_mode_off_charges_a_waiter_once),
        TEST(test_best_effort_does_not_wait_and_is_not_slowed),
        TEST(test_waiters_obey_new_limits_in_their_order),
        TEST(test_another_bucket_is_queued_for_anew_and_the_place_given_back),
        TEST(test_a_stop_is_told_once),
        TEST(test_a_glance_decides_what_a_closer_look_would),
    };
    return cmocka_run_group_tests_name("governor_operator", tests, NULL, NULL);
}
