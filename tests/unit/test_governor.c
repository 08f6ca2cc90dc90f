/* SPDX-License-Identifier: MIT */
/*
 * The decision machine, stepped in virtual time.
 */
#include "tests/unit/governor_world.h"

static void test_nothing_to_limit_is_sent_at_once(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    begin(world, &request);
    int64_t began_ns = world->now_ns;
    send_now(world, &request);
    assert_int_equal(world->now_ns, began_ns);
    assert_int_equal(answer(world, &request, 200, NULL).action, GOVERNOR_DELIVER);
    governor_end(&request, world->now_ns);
}

static void test_retry_after_is_a_floor(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    begin(world, &request);
    for (int i = 0; i < 2; i++) {
        send_now(world, &request);
        int64_t refused_ns = world->now_ns;
        struct governor_step step = answer(world, &request, 429, "Retry-After: 2");
        assert_int_equal(step.action, GOVERNOR_RETRY);
        assert_int_equal(step.cause, CAUSE_RETRY_AFTER);
        assert_int_equal(admit(world, &request).action, GOVERNOR_SEND);
        assert_true(world->now_ns >= refused_ns + 2 * S);
        assert_true(world->now_ns <= refused_ns + 2 * S + S / 2); /* spread: 10 % of it, and the block's own */
    }
    send_now(world, &request);
    assert_int_equal(answer(world, &request, 200, NULL).action, GOVERNOR_DELIVER);
    assert_int_equal(request.attempts, 3);
}

static void test_another_request_obeys_the_word_too(void **state)
{
    struct world *world = *state;
    struct governor_request first, second;
    begin(world, &first);
    send_now(world, &first);
    int64_t refused_ns = world->now_ns;
    answer(world, &first, 429, "Retry-After: 5");
    begin(world, &second);
    struct governor_step step = governor_admit(&second, world->now_ns);
    assert_int_equal(step.action, GOVERNOR_WAIT);
    assert_int_equal(step.cause, CAUSE_BLOCK);
    send_now(world, &second);
    assert_true(world->now_ns >= refused_ns + 5 * S);
}

static void test_a_refused_write_tells_everyone_and_is_not_repeated(void **state)
{
    struct world *world = *state;
    struct governor_request post, get;
    begin_method(world, &post, "POST", 0);
    send_now(world, &post);
    int64_t refused_ns = world->now_ns;
    struct governor_step step = answer(world, &post, 429, "Retry-After: 3");
    assert_int_equal(step.action, GOVERNOR_DELIVER);
    assert_int_equal(step.cause, CAUSE_NOT_REPEATABLE);
    assert_false(governor_holds(&post, 429));
    begin(world, &get);
    send_now(world, &get);
    assert_true(world->now_ns >= refused_ns + 3 * S);
}

static void test_a_word_beyond_the_budget_is_delivered_and_the_next_one_fails_unsent(void **state)
{
    struct world *world = *state;
    struct governor_request first, second;
    begin(world, &first);
    send_now(world, &first);
    struct governor_step step = answer(world, &first, 429, "Retry-After: 3000");
    assert_int_equal(step.action, GOVERNOR_DELIVER);
    assert_int_equal(step.cause, CAUSE_TOTAL_BUDGET);
    begin(world, &second);
    step = governor_admit(&second, world->now_ns);
    assert_int_equal(step.action, GOVERNOR_REFUSE);
    assert_int_equal(step.cause, CAUSE_MAX_WAIT);
    assert_true(step.until_ns >= world->now_ns + 3000 * S);
    assert_int_equal(second.attempts, 0);
}

static void test_asking_again_at_once_is_slowed(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    begin(world, &request);
    send_now(world, &request);
    answer(world, &request, 429, "Retry-After: 3000");
    int64_t began_ns = world->now_ns;
    for (int i = 0; i < 5; i++) {
        begin(world, &request);
        assert_int_equal(admit(world, &request).action, GOVERNOR_REFUSE);
        governor_end(&request, world->now_ns);
    }
    assert_true(world->now_ns - began_ns >= 4 * S);
    assert_true(world->now_ns - began_ns <= 5 * S);
}

static void test_on_max_wait_send(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    world->resolved.values.on_max_wait = ON_MAX_WAIT_SEND;
    begin(world, &request);
    send_now(world, &request);
    answer(world, &request, 429, "Retry-After: 3000");
    begin(world, &request);
    assert_int_equal(governor_admit(&request, world->now_ns).action, GOVERNOR_SEND);
}

static void test_max_block_caps_what_others_are_told(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    world->resolved.values.max_block = 20 * S;
    begin(world, &request);
    send_now(world, &request);
    answer(world, &request, 429, "Retry-After: 315360000");
    int64_t refused_ns = world->now_ns;
    begin(world, &request);
    send_now(world, &request);
    assert_true(world->now_ns >= refused_ns + 20 * S && world->now_ns <= refused_ns + 22 * S);
}

static void test_a_success_with_nothing_left_is_soft(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    world->resolved.values.max_wait = 10 * S;
    begin(world, &request);
    send_now(world, &request);
    assert_int_equal(
        answer(world, &request, 200, "X-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 600").action,
        GOVERNOR_DELIVER);
    int64_t began_ns = world->now_ns;
    begin(world, &request);
    send_now(world, &request); /* cut at max_wait, then sent: never failed */
    assert_int_equal(world->now_ns, began_ns + 10 * S);
}

static void test_a_refusal_with_quota_fields_is_a_word(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    begin(world, &request);
    send_now(world, &request);
    int64_t refused_ns = world->now_ns;
    struct governor_step step = answer(world, &request, 429, "X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 7");
    assert_int_equal(step.cause, CAUSE_QUOTA_FIELDS);
    send_now(world, &request);
    assert_true(world->now_ns >= refused_ns + 7 * S);
}

static void test_attempts_bound_a_server_that_always_refuses(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    begin(world, &request);
    struct governor_step step;
    do {
        send_now(world, &request);
        step = answer(world, &request, 429, NULL);
    } while (step.action == GOVERNOR_RETRY);
    assert_int_equal(request.attempts, 5);
    assert_int_equal(step.cause, CAUSE_MAX_ATTEMPTS);
    assert_false(governor_holds(&request, 429));
}

static void test_own_backoff_stays_below_its_ceiling(void **state)
{
    struct world *world = *state;
    for (int round = 0; round < 200; round++) {
        struct governor_request request;
        begin(world, &request);
        for (unsigned n = 0; n < 3; n++) {
            send_now(world, &request);
            int64_t refused_ns = world->now_ns;
            struct governor_step step = answer(world, &request, 503, NULL);
            if (step.action != GOVERNOR_RETRY) {
                assert_int_equal(step.cause, CAUSE_RETRY_BUDGET);
                break;
            }
            assert_true(step.until_ns >= refused_ns);
            assert_true(step.until_ns <= refused_ns + (250 * NS_PER_MS << n));
        }
        governor_end(&request, world->now_ns);
        world->now_ns += 10 * S;
    }
}

static void test_retry_budget_stops_a_storm_but_not_the_servers_word(void **state)
{
    struct world *world = *state;
    unsigned retries = 0;
    enum { REQUESTS = 100 };
    for (int i = 0; i < REQUESTS; i++) {
        struct governor_request request;
        begin(world, &request);
        int64_t at_ns = world->now_ns;
        do {
            send_now(world, &request);
            world->now_ns = at_ns; /* all in the same moment: the reserve does not refill */
            request.not_before_ns = at_ns;
        } while (answer(world, &request, 502, NULL).action == GOVERNOR_RETRY && ++retries < 1000);
        governor_end(&request, world->now_ns);
    }
    assert_true(retries >= 10);
    assert_true(retries <= 10 + REQUESTS / 5);
    struct governor_request request;
    begin(world, &request);
    send_now(world, &request);
    assert_int_equal(answer(world, &request, 503, "Retry-After: 1").action, GOVERNOR_RETRY);
}

static void test_total_budget_bounds_the_start_of_attempts(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    world->resolved.values.total_budget = 10 * S;
    world->resolved.values.max_attempts = 100;
    begin(world, &request);
    send_now(world, &request);
    int64_t first_ns = world->now_ns;
    struct governor_step step;
    while ((step = answer(world, &request, 429, "Retry-After: 3")).action == GOVERNOR_RETRY) {
        send_now(world, &request);
        assert_true(world->now_ns <= first_ns + 10 * S);
    }
    assert_int_equal(step.cause, CAUSE_TOTAL_BUDGET);
    assert_int_equal(request.attempts, 4);
}

static void test_the_callers_timeout_bounds_waits_and_leaves_room(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    begin_method(world, &request, "GET", 5 * S);
    send_now(world, &request);
    assert_int_equal(answer(world, &request, 429, "Retry-After: 2").action, GOVERNOR_RETRY);
    send_now(world, &request);
    struct governor_step step = answer(world, &request, 429, "Retry-After: 2"); /* ends after 4 s: 1 s is 20 % */
    if (step.action == GOVERNOR_RETRY)
        assert_true(step.until_ns + S <= request.deadline_ns);
    step = answer(world, &request, 429, "Retry-After: 4");
    assert_int_equal(step.action, GOVERNOR_DELIVER);
    assert_int_equal(step.cause, CAUSE_APP_TIMEOUT);
}

static void test_a_first_attempt_that_cannot_fit_is_not_begun(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    begin(world, &request);
    send_now(world, &request);
    answer(world, &request, 429, "Retry-After: 30");
    begin_method(world, &request, "GET", 2 * S);
    struct governor_step step = governor_admit(&request, world->now_ns);
    assert_int_equal(step.action, GOVERNOR_REFUSE);
    assert_int_equal(step.cause, CAUSE_APP_TIMEOUT);
}

static void test_retry_after_attempts_one_waits_once(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    world->resolved.values.retry_after_attempts = 1;
    begin(world, &request);
    send_now(world, &request);
    assert_int_equal(answer(world, &request, 429, "Retry-After: 1").action, GOVERNOR_RETRY);
    send_now(world, &request);
    assert_int_equal(answer(world, &request, 429, "Retry-After: 1").action, GOVERNOR_DELIVER);
}

static void test_retry_after_ignore(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    world->resolved.values.retry_after = RETRY_AFTER_IGNORE;
    begin(world, &request);
    send_now(world, &request);
    struct governor_step step = answer(world, &request, 429, "Retry-After: 80");
    assert_int_equal(step.action, GOVERNOR_RETRY);
    assert_int_equal(step.cause, CAUSE_BACKOFF);
    assert_true(step.until_ns <= world->now_ns + S / 2);
}

static void test_observe_never_waits_or_retries(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    begin(world, &request);
    send_now(world, &request);
    answer(world, &request, 429, "Retry-After: 30");
    world->resolved.values.mode = MODE_OBSERVE;
    begin(world, &request);
    assert_int_equal(governor_admit(&request, world->now_ns).action, GOVERNOR_SEND);
    governor_sent(&request, world->now_ns);
    assert_false(governor_holds(&request, 429));
    assert_int_equal(answer(world, &request, 429, "Retry-After: 1").action, GOVERNOR_DELIVER);
    struct metrics *metrics = bucket_metrics(world->bucket);
    assert_int_equal(atomic_load(&metrics->observed_waits), 1);
    assert_int_equal(atomic_load(&metrics->observed_retries), 1);
}

/* Many requests against one quota, each sent as soon as it may be: the sum is kept in every window. */
static void test_a_quota_is_kept_in_every_window(void **state)
{
    struct world *world = *state;
    enum { REQUESTS = 2000 };
    static int64_t sent_ns[REQUESTS];
    set_quota(world, "100/s, 3000/min");
    for (int i = 0; i < REQUESTS; i++) {
        struct governor_request request;
        begin(world, &request);
        send_now(world, &request);
        sent_ns[i] = world->now_ns;
        answer(world, &request, 200, NULL);
        governor_end(&request, world->now_ns);
        if (i % 500 == 499)
            world->now_ns += 30 * S; /* idle credit must not add up */
    }
    for (int i = 0, j = 0; j < REQUESTS; j++) {
        while (sent_ns[j] - sent_ns[i] >= S)
            i++;
        assert_in_range(j - i + 1, 1, 100);
    }
    for (int i = 0, j = 0; j < REQUESTS; j++) {
        while (sent_ns[j] - sent_ns[i] >= 60 * S)
            i++;
        assert_in_range(j - i + 1, 1, 3000);
    }
}

static unsigned most_in_window(const int64_t *sent_ns, int count, int64_t window_ns)
{
    unsigned most = 0;
    for (int i = 0, j = 0; j < count; j++) {
        while (sent_ns[j] - sent_ns[i] >= window_ns)
            i++;
        most = (unsigned)(j - i + 1) > most ? (unsigned)(j - i + 1) : most;
    }
    return most;
}

/* Requests that draw on a fast bucket and on a slow one, and others that draw on the fast one only:
 * both quotas are kept, the slow one is used in full, and so is what it leaves of the fast one. */
static void test_a_fast_and_a_slow_bucket(void **state)
{
    struct world *world = *state;
    enum { BOTH = 6, ONE = 4, ALL = BOTH + ONE, ROOM = 4000 };
    static int64_t sent_ns[ROOM], slow_ns[ROOM];
    int sent = 0, slow = 0;
    const int64_t end_ns = world->now_ns + 120 * S;
    struct resolved_policy one, both;
    policy_defaults(&one.values);
    assert_null(units_parse_rates("10/s", &one.values.quota));
    limits_from_policy(&one.values, &one.buckets[0].limits, NULL);
    one.bucket_count = 1;
    one.values.max_wait = 3600 * S;
    both = one;
    both.bucket_count = 2;
    assert_null(units_parse_rates("10/30s", &one.values.quota));
    limits_from_policy(&one.values, &both.buckets[1].limits, NULL);

    struct bucket *buckets[] = {world->bucket, segment_bucket(&world->segment, "api.example.com:443/slow", 1000 * S)};
    const struct request_traits traits = {.method = "GET"};
    struct governor_request request[ALL];
    int64_t wake_ns[ALL];
    for (int i = 0; i < ALL; i++) {
        governor_begin(&request[i], &world->governor, i < BOTH ? &both : &one, buckets, &traits, 0, world->now_ns);
        wake_ns[i] = world->now_ns;
    }
    for (;;) {
        int next = 0;
        for (int i = 1; i < ALL; i++)
            next = wake_ns[i] < wake_ns[next] ? i : next;
        world->now_ns = wake_ns[next];
        if (world->now_ns >= end_ns)
            break;
        struct governor_step step = governor_admit(&request[next], world->now_ns);
        if (step.action == GOVERNOR_SEND) {
            governor_sent(&request[next], world->now_ns);
            assert_true(sent < ROOM);
            sent_ns[sent++] = world->now_ns;
            if (next < BOTH)
                slow_ns[slow++] = world->now_ns;
            governor_end(&request[next], world->now_ns);
            governor_begin(&request[next], &world->governor, next < BOTH ? &both : &one, buckets, &traits, 0,
                           world->now_ns);
        } else {
            assert_int_equal(step.action, GOVERNOR_WAIT);
            wake_ns[next] = step.until_ns < world->now_ns + S / 2 ? step.until_ns : world->now_ns + S / 2;
        }
    }
    assert_true(most_in_window(sent_ns, sent, S) <= 10);
    assert_true(most_in_window(slow_ns, slow, 30 * S) <= 10);
    assert_true(slow >= 30); /* of 8 in 30 s: 32 and the burst */
    assert_true(sent >= 8 * 120 * 95 / 100);
}

/* A waiter that wakes far too late (stopped, suspended) does not use its old place. */
static void test_a_stale_place_is_booked_anew(void **state)
{
    struct world *world = *state;
    enum { STOPPED = 16 };
    struct governor_request request[STOPPED];
    set_quota(world, "10/s");
    for (int i = 0; i < STOPPED; i++) {
        begin(world, &request[i]);
        if (governor_admit(&request[i], world->now_ns).action == GOVERNOR_SEND)
            governor_sent(&request[i], world->now_ns);
    }
    world->now_ns += 60 * S;
    int at_once = 0;
    for (int i = 0; i < STOPPED; i++) {
        if (request[i].attempts)
            continue;
        if (governor_admit(&request[i], world->now_ns).action == GOVERNOR_SEND) {
            governor_sent(&request[i], world->now_ns);
            at_once++;
        }
    }
    assert_in_range(at_once, 1, 2); /* the burst of an idle bucket, not all of them */
}

static void test_a_place_that_is_given_up_is_given_back(void **state)
{
    struct world *world = *state;
    set_quota(world, "1/s");
    struct governor_request request;
    begin(world, &request);
    send_now(world, &request);
    int64_t before_ns = bucket_peek(world->bucket, world->now_ns, NULL);
    begin(world, &request);
    assert_int_equal(governor_admit(&request, world->now_ns).action, GOVERNOR_WAIT);
    assert_true(bucket_peek(world->bucket, world->now_ns, NULL) > before_ns);
    governor_end(&request, world->now_ns);
    assert_int_equal(bucket_peek(world->bucket, world->now_ns, NULL), before_ns);
}

/* A strict quota that nobody asks for any more does not hold up one who waits for it. */
static void test_a_waiter_outlives_anothers_quota(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    set_quota(world, "6/min");
    for (int i = 0; i < 2; i++) {
        begin(world, &request);
        send_now(world, &request);
        governor_end(&request, world->now_ns);
    }
    world->resolved.values.quota.count = 0;
    world->resolved.buckets[0].limits.count = 0;
    bucket_charge(world->bucket, world->now_ns, 5);
    int64_t began_ns = world->now_ns;
    begin(world, &request);
    struct governor_step step = governor_admit(&request, world->now_ns);
    assert_int_equal(step.action, GOVERNOR_WAIT);
    assert_true(step.until_ns > began_ns + 40 * S);
    while (step.action == GOVERNOR_WAIT && world->now_ns < began_ns + 60 * S) {
        world->now_ns += S / 2;
        step = governor_admit(&request, world->now_ns);
    }
    assert_int_equal(step.action, GOVERNOR_SEND);
    assert_true(world->now_ns <= began_ns + BUCKET_LIMITS_MEMORY_NS + 2 * S);
}

static void test_connection_errors(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    struct headers none;
    headers_clear(&none);
    struct outcome outcome = {
        .failure = FAILURE_REFUSED, .request_sent = false, .body_resendable = true, .headers = &none};
    begin(world, &request);
    send_now(world, &request);
    struct governor_step step = governor_outcome(&request, &outcome, NULL, world->now_ns, WALL_S);
    assert_int_equal(step.action, GOVERNOR_RETRY);
    assert_int_equal(step.cause, CAUSE_CONNECTION);
    send_now(world, &request);
    assert_int_equal(governor_outcome(&request, &outcome, NULL, world->now_ns, WALL_S).action, GOVERNOR_DELIVER);
    assert_int_equal(request.attempts, 2);
}

static void test_waits_and_requests_are_counted(void **state)
{
    struct world *world = *state;
    struct governor_request request;
    begin(world, &request);
    send_now(world, &request);
    answer(world, &request, 429, "Retry-After: 2");
    send_now(world, &request);
    answer(world, &request, 200, NULL);
    governor_end(&request, world->now_ns);
    struct metrics *metrics = bucket_metrics(world->bucket);
    assert_int_equal(atomic_load(&metrics->requests), 1);
    assert_int_equal(atomic_load(&metrics->attempts), 2);
    assert_int_equal(atomic_load(&metrics->retries[CAUSE_RETRY_AFTER]), 1);
    assert_int_equal(atomic_load(&metrics->refusals[0]), 1);
    assert_true(atomic_load(&metrics->wait_ns_sum[CAUSE_RETRY_AFTER]) >= (uint64_t)(2 * S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_to_limit_is_sent_at_once),
        TEST(test_retry_after_is_a_floor),
        TEST(test_another_request_obeys_the_word_too),
        TEST(test_a_refused_write_tells_everyone_and_is_not_repeated),
        TEST(test_a_word_beyond_the_budget_is_delivered_and_the_next_one_fails_unsent),
        TEST(test_asking_again_at_once_is_slowed),
        TEST(test_on_max_wait_send),
        TEST(test_max_block_caps_what_others_are_told),
        TEST(test_a_success_with_nothing_left_is_soft),
        TEST(test_a_refusal_with_quota_fields_is_a_word),
        TEST(test_attempts_bound_a_server_that_always_refuses),
        TEST(test_own_backoff_stays_below_its_ceiling),
        TEST(test_retry_budget_stops_a_storm_but_not_the_servers_word),
        TEST(test_total_budget_bounds_the_start_of_attempts),
        TEST(test_the_callers_timeout_bounds_waits_and_leaves_room),
        TEST(test_a_first_attempt_that_cannot_fit_is_not_begun),
        TEST(test_retry_after_attempts_one_waits_once),
        TEST(test_retry_after_ignore),
        TEST(test_observe_never_waits_or_retries),
        TEST(test_a_quota_is_kept_in_every_window),
        TEST(test_a_fast_and_a_slow_bucket),
        TEST(test_a_stale_place_is_booked_anew),
        TEST(test_a_place_that_is_given_up_is_given_back),
        TEST(test_a_waiter_outlives_anothers_quota),
        TEST(test_connection_errors),
        TEST(test_waits_and_requests_are_counted),
    };
    return cmocka_run_group_tests_name("governor", tests, NULL, NULL);
}
