/* SPDX-License-Identifier: MIT */
/*
 * Those who ask for limits take turns: sections of one file and programs with different files, of which
 * some ask for none, some for more, and some say nothing for a while.  Whatever the mix, those who ask for
 * a limit are never more in any of its windows than was published: what they have used is kept until it has
 * come back by itself.
 */
#include "tests/unit/bucket_world.h"

#include "core/limits.h"

#define START (1000 * S)
#define MINUTE (60 * S)

static const struct limits none = {0};

static struct limits of_quota(const char *quota)
{
    struct policy policy;
    struct limits limits = {0};
    policy_defaults(&policy);
    if (*quota) {
        assert_null(units_parse_rates(quota, &policy.quota));
        limits_from_policy(&policy, &limits, NULL);
    }
    return limits;
}

/* What can go at once by those who ask for these limits; and it goes. */
static unsigned ask_and_send(struct bucket *bucket, int64_t now_ns, const struct limits *limits)
{
    unsigned sent = 0;
    bucket_ask_limits(bucket, &nobody_dies, now_ns, limits);
    for (; sent < 1000 && bucket_peek(bucket, now_ns, NULL) <= now_ns; sent++) {
        struct bucket_slot slot;
        bucket_book(bucket, now_ns, &slot);
    }
    return sent;
}

static double tokens(const struct bucket *bucket, int64_t now_ns)
{
    struct bucket_state seen;
    bucket_read_state(bucket, now_ns, &seen);
    assert_int_equal(seen.limits.count, 1);
    return seen.tokens[0];
}

static unsigned windows(const struct bucket *bucket, int64_t now_ns)
{
    struct bucket_state seen;
    bucket_read_state(bucket, now_ns, &seen);
    return seen.limits.count;
}

/* -------------------------------------------------------------------- in turns ---- */

/* Posts have a quota and gets none, and the gets never stop. */
static void test_a_limit_in_turns_with_none_is_kept(void **state)
{
    (void)state;
    const struct limits posts = of_quota("3/min");
    struct bucket *bucket = new_bucket();
    unsigned sent = 0;
    for (int64_t now_ns = START; now_ns < START + MINUTE; now_ns += 500 * MS) {
        if ((now_ns - START) % (11500 * MS) == 0)
            sent += ask_and_send(bucket, now_ns, &posts);
        bucket_ask_limits(bucket, &nobody_dies, now_ns, &none);
    }
    assert_in_range(sent, 2, 3);
    free_bucket(bucket);
}

/* The same where the others ask for more, in the same window: their faster clock must not fill it. */
static void test_a_limit_in_turns_with_a_looser_one_is_kept(void **state)
{
    (void)state;
    const struct limits few = of_quota("100/h"), many = of_quota("10000/h");
    struct bucket *bucket = new_bucket();
    unsigned sent = 0;
    for (int64_t now_ns = START; now_ns < START + HOUR; now_ns += S) {
        if ((now_ns - START) % (40 * S) == 0)
            sent += ask_and_send(bucket, now_ns, &few);
        bucket_ask_limits(bucket, &nobody_dies, now_ns, &many);
    }
    assert_in_range(sent, 80, 100);
    free_bucket(bucket);
}

/* Nobody who asks for none is held up by it for longer than it was before. */
static void test_what_is_kept_binds_nobody(void **state)
{
    (void)state;
    const struct limits posts = of_quota("3/min");
    struct bucket *bucket = new_bucket();
    ask_and_send(bucket, START, &posts);
    assert_false(bucket_ask_limits(bucket, &nobody_dies, START + 9 * S, &none));
    assert_int_equal(windows(bucket, START + 9 * S), 1);
    int64_t now_ns = START + BUCKET_LIMITS_MEMORY_NS + 1;
    assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, &none));
    assert_int_equal(windows(bucket, now_ns), 0);
    assert_true(bucket_is_open(bucket, now_ns));
    assert_int_equal(ask_and_send(bucket, now_ns, &none), 1000);
    free_bucket(bucket);
}

static void test_a_bucket_is_not_idle_while_something_is_kept(void **state)
{
    (void)state;
    const struct limits daily = of_quota("10/d");
    struct bucket *bucket = new_bucket();
    unsigned burst = ask_and_send(bucket, START, &daily);
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + 20 * S, &none));
    assert_int_equal(windows(bucket, START + 20 * S), 0);
    assert_false(bucket_is_idle(bucket, START + 20 * S));
    assert_false(bucket_is_idle(bucket, START + HOUR));
    assert_true(bucket_is_idle(bucket, START + 2 * DAY));
    assert_int_equal(ask_and_send(bucket, START + 2 * DAY, &daily), burst);
    free_bucket(bucket);
}

/* After the operator's word those who wait ask again, but somebody else may come first. */
static void test_a_waiter_finds_his_place_again(void **state)
{
    (void)state;
    const struct limits posts = one_limit(6, MINUTE, 1);
    struct bucket *bucket = new_bucket();
    struct bucket_slot slot[3];
    int64_t until_ns, now_ns = START + 11 * S;
    ask_and_send(bucket, START, &posts);
    for (int i = 0; i < 3; i++)
        bucket_book(bucket, START, &slot[i]);
    bucket_forget_askers(bucket);
    assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, &none));
    assert_int_equal(bucket_check(bucket, &slot[2], now_ns, &until_ns), BUCKET_ACT); /* it does not bind */
    assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, &posts));
    for (int i = 1; i < 3; i++) {
        assert_int_equal(bucket_check(bucket, &slot[i], now_ns, &until_ns), BUCKET_WAIT);
        assert_in_range(until_ns, START + (i + 1) * 10 * S, START + (i + 1) * 10 * S + MS);
    }
    assert_in_range(bucket_peek(bucket, now_ns, NULL), START + 40 * S, START + 40 * S + MS);
    free_bucket(bucket);
}

/* Gets that have queued behind a post do not hold up the next one once they go without a limit. */
static void test_who_does_not_ask_for_it_is_not_queued_in_what_is_kept(void **state)
{
    (void)state;
    const struct limits posts = of_quota("3/min"), more = of_quota("3000/min");
    for (int looser = 0; looser < 2; looser++) {
        struct bucket *bucket = new_bucket();
        struct bucket_slot slot;
        ask_and_send(bucket, START, &posts);
        for (int i = 0; i < 20; i++)
            bucket_book(bucket, START, &slot);
        int64_t now_ns = START + 11 * S, spacing_ns = limit_spacing_ns(&posts.item[0]);
        assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, looser ? &more : &none));
        now_ns += 30 * S; /* and those of the looser one have gone by then */
        assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, &posts));
        assert_true(bucket_peek(bucket, now_ns, NULL) <= now_ns + spacing_ns);
        free_bucket(bucket);
    }
}

/* Posts that were stopped meanwhile do not go all at once. */
static void test_the_stopped_are_not_due_together(void **state)
{
    (void)state;
    const struct limits posts = of_quota("60/min");
    for (int64_t stopped_ns = 10 * S + 1; stopped_ns < 14 * S; stopped_ns += 100 * MS) {
        struct bucket *bucket = new_bucket();
        struct bucket_slot slot[20];
        int64_t until_ns;
        unsigned acted = 0;
        ask_and_send(bucket, START, &posts);
        for (int i = 0; i < 20; i++)
            bucket_book(bucket, START, &slot[i]);
        assert_true(bucket_ask_limits(bucket, &nobody_dies, START + 10 * S + 1, &none));
        assert_true(bucket_ask_limits(bucket, &nobody_dies, START + stopped_ns, &posts));
        for (int i = 0; i < 20; i++)
            acted += bucket_check(bucket, &slot[i], START + stopped_ns, &until_ns) == BUCKET_ACT;
        assert_in_range(acted, 0, 2); /* what comes due within the jitter of a second, at 48 a minute */
        free_bucket(bucket);
    }
}

/* ------------------------------------------------------------------- the operator ---- */

/* `reload` drops the limits at once, and gives nobody a budget anew. */
static void test_forgetting_the_askers_refills_nothing(void **state)
{
    (void)state;
    const struct limits before = of_quota("60/h"), after = of_quota("240/h"), in_other_words = of_quota("4/min");
    for (int i = 0; i < 8; i++) {
        const struct limits *next = i % 4 == 0 ? &before : i % 4 == 1 ? &after : &in_other_words;
        struct bucket *bucket = new_bucket();
        unsigned burst = ask_and_send(bucket, START, &before);
        bucket_forget_askers(bucket);
        if (i >= 4) { /* somebody comes first who asks for none */
            assert_true(bucket_ask_limits(bucket, &nobody_dies, START, &none));
            assert_true(bucket_is_open(bucket, START));
        }
        assert_true(bucket_ask_limits(bucket, &nobody_dies, START, next));
        double burst_now = (double)next->item[0].burst / (double)TOKEN_ONE;
        assert_true(tokens(bucket, START) <= burst_now - burst);
        free_bucket(bucket);
    }
}

static void test_refill_fills_what_is_kept(void **state)
{
    (void)state;
    const struct limits daily = of_quota("10/d");
    struct bucket *bucket = new_bucket();
    unsigned burst = ask_and_send(bucket, START, &daily);
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + 20 * S, &none));
    assert_true(bucket_refill(bucket, &nobody_dies, START + 30 * S));
    assert_true(bucket_is_idle(bucket, START + 30 * S));
    assert_int_equal(ask_and_send(bucket, START + 30 * S, &daily), burst);
    free_bucket(bucket);
}

/* --------------------------------------------------------------------------- room ---- */

/* Of what is kept the limit goes that would be full soonest, and what is asked for always finds room. */
static void test_a_new_limit_takes_the_place_of_the_one_that_is_full_soonest(void **state)
{
    (void)state;
    static const char *const quotas[] = {"20/d", "2/h", "10/2d", "30/3d"};
    const struct limits next = of_quota("50/12h");
    struct bucket *bucket = new_bucket();
    unsigned burst[RATES_MAX];
    int64_t now_ns = START;
    for (int i = 0; i < RATES_MAX; i++) {
        struct limits limits = of_quota(quotas[i]);
        burst[i] = ask_and_send(bucket, now_ns, &limits);
        now_ns += 20 * S;
        assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, &none));
    }
    assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, &next));
    assert_int_equal((unsigned)tokens(bucket, now_ns), next.item[0].burst / TOKEN_ONE);
    for (int i = 0; i < RATES_MAX; i++) {
        struct limits limits = of_quota(quotas[i]);
        struct bucket *copy = new_bucket();
        memcpy((void *)copy, (const void *)bucket, sizeof *copy);
        unsigned sent = ask_and_send(copy, now_ns, &limits);
        assert_int_equal(sent, i == 1 ? burst[i] : 0);
        free_bucket(copy);
    }
    free_bucket(bucket);
}

/* Garbage that never becomes full keeps nobody out. */
static void test_what_is_kept_for_ever_is_in_nobodys_way(void **state)
{
    (void)state;
    const struct limits limits = two_limits(limit_of(100, HOUR, 20), limit_of(10, S, 4));
    for (int garbage = 0; garbage < 3; garbage++) {
        struct bucket *bucket = new_bucket();
        ask_and_send(bucket, START, &limits);
        assert_true(bucket_ask_limits(bucket, &nobody_dies, START + 20 * S, &none));
        for (unsigned i = 0; i < RATES_MAX; i++)
            atomic_store(&bucket->tat[i], garbage == 0   ? UINT64_MAX
                                          : garbage == 1 ? (uint64_t)INT64_MAX
                                                         : TOKEN_ONE << 33);
        for (unsigned i = 0; i < BUCKET_RECORDS; i++) {
            atomic_store(&bucket->record[i].shape, UINT64_C(0xff00) << 8);
            for (unsigned k = 0; k < RATES_MAX; k++)
                atomic_store(&bucket->record[i].limit[k].rate, 1);
        }
        for (int64_t now_ns = START + 40 * S; now_ns < START + HOUR; now_ns += MINUTE) {
            assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, &limits));
            assert_int_equal(windows(bucket, now_ns), 2);
            assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns + 20 * S, &none));
        }
        free_bucket(bucket);
    }
}

/* ---------------------------------------------------------------- whatever the mix ---- */

#define SECTIONS_MAX 4
#define ACTORS 6
#define SEEDS 20
#define LOG_MAX 200000

struct scenario {
    const char *quota[SECTIONS_MAX]; /* of each section; "" for none */
    int64_t length_ns;
    bool is_disturbed; /* by blocks, and by reloads that change nothing */
};

struct actor {
    struct bucket_slot slot;
    unsigned section;
    int64_t wake_ns;
    bool is_waiting;
};

struct run {
    const struct scenario *scenario;
    struct limits limits[SECTIONS_MAX];
    unsigned section_count;
    unsigned awake; /* a bit for each section that is asked for in this phase */
    int64_t phase_ends_ns;
    uint64_t random;
    struct bucket *bucket;
    struct actor actor[ACTORS];
    unsigned count;
    int64_t at_ns[LOG_MAX];
    unsigned section[LOG_MAX];
};

static uint64_t draw(struct run *run, uint64_t limit)
{
    uint64_t z = run->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return limit ? (z ^ (z >> 31)) % limit : 0;
}

/* Who is heard of changes every now and then: long enough for the others to be forgotten, or just not. */
static void begin_phase(struct run *run, int64_t now_ns)
{
    run->awake = (unsigned)draw(run, UINT64_C(1) << run->section_count);
    run->phase_ends_ns = now_ns + (int64_t)draw(run, draw(run, 3) ? 15 * S : 45 * S);
    if (!run->scenario->is_disturbed)
        return;
    if (draw(run, 4) == 0)
        bucket_forget_askers(run->bucket);
    if (draw(run, 4) == 0)
        bucket_block(run->bucket, &nobody_dies, now_ns, now_ns + (int64_t)draw(run, 20 * S),
                     draw(run, 2) ? BLOCK_SOFT : BLOCK_HARD);
}

static void begin_request(struct run *run, struct actor *actor)
{
    actor->section = (unsigned)draw(run, run->section_count);
    actor->slot.booked = false;
    actor->is_waiting = run->awake >> actor->section & 1;
}

static void note_sent(struct run *run, struct actor *actor, int64_t now_ns)
{
    assert_true(run->count < LOG_MAX);
    run->at_ns[run->count] = now_ns;
    run->section[run->count++] = actor->section;
    actor->is_waiting = false;
    actor->wake_ns = now_ns + (int64_t)draw(run, draw(run, 4) ? 300 * MS : 3 * S);
}

/* Asks as long as it waits, as the governor does; and gives up after a while. */
static void step(struct run *run, struct actor *actor, int64_t now_ns)
{
    const struct limits *limits = &run->limits[actor->section];
    int64_t until_ns;
    bucket_ask_limits(run->bucket, &nobody_dies, now_ns, limits);
    if (!actor->slot.booked && bucket_take_due(run->bucket, now_ns, &actor->slot)) {
        note_sent(run, actor, now_ns);
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (!actor->slot.booked)
            bucket_book(run->bucket, now_ns, &actor->slot);
        switch (bucket_check(run->bucket, &actor->slot, now_ns, &until_ns)) {
        case BUCKET_ACT:
            note_sent(run, actor, now_ns);
            return;
        case BUCKET_WAIT:
            actor->wake_ns = until_ns < now_ns + 500 * MS ? until_ns : now_ns + 500 * MS;
            if (draw(run, run->awake >> actor->section & 1 ? 1000 : 40) == 0) {
                bucket_cancel(run->bucket, &actor->slot);
                actor->is_waiting = false;
            }
            return;
        case BUCKET_FORFEIT:
            bucket_cancel(run->bucket, &actor->slot);
            break;
        }
    }
    fail_msg("a place just booked was forfeited");
}

static void play(struct run *run)
{
    run->bucket = new_bucket();
    run->phase_ends_ns = START;
    for (;;) {
        struct actor *next = &run->actor[0];
        for (unsigned i = 1; i < ACTORS; i++)
            if (run->actor[i].wake_ns < next->wake_ns)
                next = &run->actor[i];
        int64_t now_ns = next->wake_ns;
        if (now_ns > START + run->scenario->length_ns)
            break;
        if (now_ns >= run->phase_ends_ns)
            begin_phase(run, now_ns);
        if (!next->is_waiting)
            begin_request(run, next);
        next->wake_ns = now_ns + S / 2;
        if (next->is_waiting)
            step(run, next, now_ns);
    }
    free_bucket(run->bucket);
}

/* Those who asked for this limit, in any half-open window. */
static unsigned check_limit(const struct run *run, const struct limit *limit, unsigned askers, uint64_t seed)
{
    unsigned first = 0, inside = 0, most = 0;
    for (unsigned i = 0; i < run->count; i++) {
        inside += askers >> run->section[i] & 1;
        for (; run->at_ns[i] - run->at_ns[first] >= limit->window_ns; first++)
            inside -= askers >> run->section[first] & 1;
        most = inside > most ? inside : most;
        if (inside > limit->published)
            fail_msg("seed %llu: %u of %llu in a window of %lld s", (unsigned long long)seed, inside,
                     (unsigned long long)limit->published, (long long)(limit->window_ns / S));
    }
    return most;
}

static bool asks_for(const struct limits *limits, const struct limit *limit)
{
    for (unsigned i = 0; i < limits->count; i++)
        if (limits->item[i].window_ns == limit->window_ns && limits->item[i].published == limit->published)
            return true;
    return false;
}

static void check_scenario(const struct scenario *scenario)
{
    struct run *run = malloc(sizeof *run);
    unsigned most = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        memset(run, 0, sizeof *run);
        run->scenario = scenario;
        run->random = seed * 1000003;
        for (; run->section_count < SECTIONS_MAX && scenario->quota[run->section_count]; run->section_count++)
            run->limits[run->section_count] = of_quota(scenario->quota[run->section_count]);
        for (unsigned i = 0; i < ACTORS; i++)
            run->actor[i].wake_ns = START + (int64_t)draw(run, S);
        play(run);
        for (unsigned s = 0; s < run->section_count; s++)
            for (unsigned i = 0; i < run->limits[s].count; i++) {
                const struct limit *limit = &run->limits[s].item[i];
                unsigned askers = 0;
                for (unsigned other = 0; other < run->section_count; other++)
                    askers |= (unsigned)asks_for(&run->limits[other], limit) << other;
                unsigned here = check_limit(run, limit, askers, seed);
                most = s == 0 && i == 0 && here > most ? here : most;
            }
    }
    assert_true(most > 1);
    free(run);
}

static void test_whatever_the_mix_no_window_sees_more_than_its_quota(void **state)
{
    (void)state;
    static const struct scenario scenarios[] = {
        {{"3/min", ""}, 20 * MINUTE, false},
        {{"10/min", "600/min", ""}, 20 * MINUTE, false},
        {{"100/h", "6000/h"}, 3 * HOUR, false},
        {{"3/min", "30/min", "300/min", "3000/min"}, 20 * MINUTE, false},
        {{"10/min, 100/h", "60/min", ""}, 3 * HOUR, false},
        {{"20/min", "7/15s", "100/h", ""}, 2 * HOUR, false},
        {{"20/min, 7/15s", "7/15s, 100/h", "20/min"}, 2 * HOUR, false},
        {{"3/min", ""}, 20 * MINUTE, true},
        {{"20/min", "7/15s", "100/h", ""}, 2 * HOUR, true},
        {{"10/min", "600/min", ""}, 20 * MINUTE, true},
    };
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        check_scenario(&scenarios[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_limit_in_turns_with_none_is_kept),
        cmocka_unit_test(test_a_limit_in_turns_with_a_looser_one_is_kept),
        cmocka_unit_test(test_what_is_kept_binds_nobody),
        cmocka_unit_test(test_a_bucket_is_not_idle_while_something_is_kept),
        cmocka_unit_test(test_a_waiter_finds_his_place_again),
        cmocka_unit_test(test_who_does_not_ask_for_it_is_not_queued_in_what_is_kept),
        cmocka_unit_test(test_the_stopped_are_not_due_together),
        cmocka_unit_test(test_forgetting_the_askers_refills_nothing),
        cmocka_unit_test(test_refill_fills_what_is_kept),
        cmocka_unit_test(test_a_new_limit_takes_the_place_of_the_one_that_is_full_soonest),
        cmocka_unit_test(test_what_is_kept_for_ever_is_in_nobodys_way),
        cmocka_unit_test(test_whatever_the_mix_no_window_sees_more_than_its_quota),
    };
    return cmocka_run_group_tests_name("bucket askers", tests, NULL, NULL);
}
