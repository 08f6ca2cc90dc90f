/* SPDX-License-Identifier: MIT */
/*
 * The bound that everything else is for, checked over whole histories: programs book, wait, wake up
 * late, are stopped, give up and start anew, while blocks come and limits change, all in virtual
 * time and from a seed.  The log of what went is then checked against a reference clock that is
 * computed without any rounding:
 *
 *   bound        for every i < j:  j - i + 1 <= burst + V(j) - V(i) + rate x jitter
 *   order        nobody goes more than the jitter before somebody with an earlier place, by that clock
 *   blocks       nobody goes before the end of a hard block
 *   utilisation  where demand is there and nobody is careless, 99 % of the rate is used
 */
#include "tests/unit/bucket_world.h"

#include "core/limits.h"

#define START (1000 * S)
#define ACTORS 16
#define LOG_MAX 60000
#define SEEDS 40
#define CAREFUL_NS 100000 /* how late the careful come at most */

typedef __int128 exact; /* tokens, scaled by 2^56 */
#define EXACT_ONE ((exact)TOKEN_ONE << RATE_SHIFT)

struct scenario {
    const char *name;
    struct limits limits, other; /* other: switched to and fro, if it has any */
    int64_t length_ns;
    int64_t think_ns; /* most between two requests of a program */
    bool blocks, careless;
    bool is_quota; /* limits.item[].published holds in any half-open window */
};

struct entry {
    int64_t at_ns;
    uint64_t place;
    exact clock[RATES_MAX];
};

struct actor {
    struct bucket_slot slot;
    int64_t wake_ns;
};

struct run {
    const struct scenario *scenario;
    struct bucket *bucket;
    uint64_t random;
    const struct limits *limits; /* in force */
    exact clock[RATES_MAX];      /* at `start_ns` */
    int64_t start_ns;
    int64_t blocked_until_ns;
    struct actor actor[ACTORS];
    struct entry *log;
    unsigned count;
};

static uint64_t draw(struct run *run, uint64_t limit)
{
    uint64_t z = run->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return limit ? (z ^ (z >> 31)) % limit : 0;
}

static bool chance(struct run *run, unsigned percent)
{
    return draw(run, 100) < percent;
}

/* ------------------------------------------------------------ the reference clock ---- */

static exact clock_exact(const struct run *run, unsigned limit, int64_t now_ns)
{
    exact gained = now_ns > run->start_ns ? (exact)run->limits->item[limit].rate * (now_ns - run->start_ns) : 0;
    return run->clock[limit] + gained;
}

static void change(struct run *run, int64_t now_ns, int64_t until_ns, const struct limits *limits)
{
    for (unsigned i = 0; i < limits->count; i++)
        run->clock[i] = clock_exact(run, i, now_ns);
    run->limits = limits;
    if (now_ns > run->start_ns)
        run->start_ns = now_ns;
    if (until_ns > run->start_ns)
        run->start_ns = until_ns;
}

/* --------------------------------------------------------------------- programs ---- */

/* When a program comes to run that wanted to at that time. */
static int64_t wakes_up(struct run *run, int64_t at_ns)
{
    int64_t jitter_ns = run->limits->item[run->limits->count - 1].jitter_ns;
    unsigned luck = (unsigned)draw(run, 100);
    if (!run->scenario->careless || luck < 70)
        return at_ns + (int64_t)draw(run, CAREFUL_NS);
    if (luck < 90)
        return at_ns + (int64_t)draw(run, (uint64_t)jitter_ns);
    if (luck < 97)
        return at_ns + (int64_t)draw(run, 3 * (uint64_t)jitter_ns);
    return at_ns + (int64_t)draw(run, 3 * (uint64_t)S);
}

static void log_act(struct run *run, const struct actor *actor, int64_t now_ns)
{
    assert_true(run->count < LOG_MAX);
    assert_true(now_ns >= run->blocked_until_ns);
    struct entry *entry = &run->log[run->count++];
    entry->at_ns = now_ns;
    entry->place = actor->slot.tat[0];
    for (unsigned i = 0; i < run->limits->count; i++)
        entry->clock[i] = clock_exact(run, i, now_ns);
}

static void think(struct run *run, struct actor *actor, int64_t now_ns)
{
    actor->slot.booked = false;
    actor->wake_ns = wakes_up(run, now_ns + (int64_t)draw(run, (uint64_t)run->scenario->think_ns));
}

static void step(struct run *run, struct actor *actor, int64_t now_ns)
{
    struct bucket *bucket = run->bucket;
    bool careless = run->scenario->careless;
    int64_t until_ns;
    if (actor->slot.booked && careless && chance(run, 5)) {
        bucket_cancel(bucket, &actor->slot);
        think(run, actor, now_ns);
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (!actor->slot.booked) /* with a time that is not quite the latest */
            bucket_book(bucket, now_ns - (careless ? (int64_t)draw(run, MS) : 0), &actor->slot);
        switch (bucket_check(bucket, &actor->slot, now_ns, &until_ns)) {
        case BUCKET_ACT:
            log_act(run, actor, now_ns);
            think(run, actor, now_ns);
            return;
        case BUCKET_WAIT:
            assert_true(until_ns > now_ns);
            actor->wake_ns =
                careless && chance(run, 10) ? now_ns + (until_ns - now_ns + 1) / 2 : wakes_up(run, until_ns);
            return;
        case BUCKET_FORFEIT:
            if (careless && chance(run, 50))
                bucket_cancel(bucket, &actor->slot);
            actor->slot.booked = false;
            break;
        }
    }
    fail_msg("%s: a place just booked was forfeited", run->scenario->name);
}

/* ----------------------------------------------------------- the server's word etc. ---- */

static void happen(struct run *run, int64_t now_ns)
{
    const struct scenario *scenario = run->scenario;
    if (scenario->other.count && chance(run, 50)) {
        const struct limits *next = run->limits == &scenario->limits ? &scenario->other : &scenario->limits;
        bucket_forget_askers(run->bucket);
        assert_true(bucket_ask_limits(run->bucket, &nobody_dies, now_ns, next));
        change(run, now_ns, now_ns, next);
    } else if (scenario->blocks) {
        bool soft = chance(run, 20);
        int64_t until_ns = now_ns + (int64_t)draw(run, 4 * (uint64_t)S);
        assert_true(bucket_block(run->bucket, &nobody_dies, now_ns, until_ns, soft ? BLOCK_SOFT : BLOCK_HARD));
        change(run, now_ns, until_ns, run->limits);
        if (until_ns > run->blocked_until_ns)
            run->blocked_until_ns = until_ns;
    }
}

static void play(struct run *run)
{
    const struct scenario *scenario = run->scenario;
    int64_t event_ns = START;
    run->limits = &scenario->limits;
    run->start_ns = START;
    run->bucket = bucket_with(&scenario->limits, START);
    for (unsigned i = 0; i < ACTORS; i++)
        run->actor[i].wake_ns = START + (int64_t)draw(run, MS);
    for (;;) {
        struct actor *next = &run->actor[0];
        for (unsigned i = 1; i < ACTORS; i++)
            if (run->actor[i].wake_ns < next->wake_ns)
                next = &run->actor[i];
        if (next->wake_ns > START + scenario->length_ns)
            break;
        if (event_ns <= next->wake_ns) {
            happen(run, event_ns);
            event_ns += (int64_t)draw(run, 6 * (uint64_t)S) + 1;
            continue;
        }
        step(run, next, next->wake_ns);
    }
    change(run, START + scenario->length_ns, 0, run->limits);
}

/* ---------------------------------------------------------------------- the checks ---- */

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* max over i < j of (j - V(j)) - (i - V(i)), by a running minimum.  One unit of the virtual clock is
 * lost in its rounding. */
static void check_bound(const struct run *run, unsigned limit)
{
    const struct scenario *scenario = run->scenario;
    const struct limit *a = &scenario->limits.item[limit];
    const struct limit *b = scenario->other.count ? &scenario->other.item[limit] : a;
    exact jitter_ns = scenario->careless ? (exact)most((uint64_t)a->jitter_ns, (uint64_t)b->jitter_ns) : CAREFUL_NS;
    exact slack = ((exact)most(a->burst, b->burst) << RATE_SHIFT) + (exact)most(a->rate, b->rate) * jitter_ns +
                  ((exact)1 << RATE_SHIFT);
    exact lowest = 0;
    for (unsigned i = 0; i < run->count; i++) {
        exact here = i * EXACT_ONE - run->log[i].clock[limit];
        if (i == 0 || here < lowest)
            lowest = here;
        if (here - lowest + EXACT_ONE > slack)
            fail_msg("%s: limit %u: too many up to %u", scenario->name, limit, i);
    }
}

static void check_windows(const struct run *run, const struct limit *limit)
{
    unsigned first = 0;
    for (unsigned i = 0; i < run->count; i++) {
        while (run->log[i].at_ns - run->log[first].at_ns >= limit->window_ns)
            first++;
        if (i - first + 1 > limit->published)
            fail_msg("%s: %u in a window of %llu", run->scenario->name, i - first + 1,
                     (unsigned long long)limit->published);
    }
}

static int by_place(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

/* In tokens: somebody may be late because a block came between his time and him. */
static void check_order(const struct run *run)
{
    const struct limit *limit = &run->scenario->limits.item[0];
    struct entry *sorted = malloc(run->count * sizeof *sorted + 1);
    exact slack = (exact)limit->rate * limit->jitter_ns + ((exact)1 << RATE_SHIFT), latest = 0;
    memcpy(sorted, run->log, run->count * sizeof *sorted);
    qsort(sorted, run->count, sizeof *sorted, by_place);
    for (unsigned i = 0; i < run->count; i++) {
        if (i && sorted[i].place == sorted[i - 1].place)
            fail_msg("%s: a place was used twice", run->scenario->name);
        if (sorted[i].clock[0] < latest - slack)
            fail_msg("%s: out of order", run->scenario->name);
        if (sorted[i].clock[0] > latest)
            latest = sorted[i].clock[0];
    }
    free(sorted);
}

static void check_utilisation(const struct run *run)
{
    exact least = run->clock[0];
    for (unsigned i = 1; i < run->limits->count; i++)
        if (run->clock[i] < least)
            least = run->clock[i];
    unsigned possible = (unsigned)(least / EXACT_ONE);
    if (run->count < possible - possible / 100 - 1)
        fail_msg("%s: %u of %u", run->scenario->name, run->count, possible);
}

static void check_scenario(const struct scenario *scenario)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct run run = {.scenario = scenario, .random = seed * 1000003};
        run.log = malloc(LOG_MAX * sizeof *run.log);
        play(&run);
        for (unsigned i = 0; i < scenario->limits.count; i++) {
            check_bound(&run, i);
            if (scenario->is_quota)
                check_windows(&run, &scenario->limits.item[i]);
        }
        if (!scenario->other.count)
            check_order(&run);
        if (!scenario->careless && !scenario->blocks && !scenario->other.count && scenario->think_ns <= MS)
            check_utilisation(&run);
        free(run.log);
        free_bucket(run.bucket);
    }
}

/* --------------------------------------------------------------------- scenarios ---- */

static struct limits of_quota(const char *quota, uint32_t headroom_ppm)
{
    struct policy policy;
    struct limits limits;
    policy_defaults(&policy);
    policy.headroom = headroom_ppm;
    assert_null(units_parse_rates(quota, &policy.quota));
    bool breaks_quota;
    limits_from_policy(&policy, &limits, &breaks_quota);
    assert_false(breaks_quota);
    return limits;
}

static void test_one_limit(void **state)
{
    (void)state;
    struct scenario scenario = {
        .name = "one limit", .limits = one_limit(80, S, 12), .length_ns = 60 * S, .think_ns = 1};
    check_scenario(&scenario);
    scenario.name = "one limit, little demand";
    scenario.think_ns = S;
    check_scenario(&scenario);
    scenario.name = "one limit, stops and cancels";
    scenario.careless = true;
    check_scenario(&scenario);
    scenario.name = "one limit, stops and cancels, much demand";
    scenario.think_ns = 20 * MS;
    check_scenario(&scenario);
}

static void test_blocks(void **state)
{
    (void)state;
    struct scenario scenario = {
        .name = "blocks", .limits = one_limit(80, S, 12), .length_ns = 120 * S, .think_ns = 100 * MS, .blocks = true};
    check_scenario(&scenario);
    scenario.name = "blocks, stops and cancels";
    scenario.careless = true;
    check_scenario(&scenario);
}

static void test_new_rates(void **state)
{
    (void)state;
    struct scenario scenario = {.name = "new rates",
                                .limits = one_limit(80, S, 12),
                                .other = one_limit(15, S, 3),
                                .length_ns = 120 * S,
                                .think_ns = 50 * MS};
    check_scenario(&scenario);
    scenario.name = "new rates and blocks, stops and cancels";
    scenario.blocks = scenario.careless = true;
    check_scenario(&scenario);
}

static void test_several_windows(void **state)
{
    (void)state;
    struct scenario scenario = {.name = "10/s and 200/min",
                                .limits = of_quota("10/s, 200/min", 200000),
                                .length_ns = 300 * S,
                                .think_ns = 1,
                                .is_quota = true};
    check_scenario(&scenario);
    scenario.name = "10/s and 200/min, waves of demand";
    scenario.think_ns = 20 * S;
    check_scenario(&scenario);
    scenario.name = "10/s and 200/min, blocks, stops and cancels";
    scenario.blocks = scenario.careless = true;
    check_scenario(&scenario);
    scenario.name = "10/s and 590/min, blocks, stops and cancels";
    scenario.limits = of_quota("10/s, 590/min", 200000);
    check_scenario(&scenario);
}

static void test_quotas_of_all_headrooms(void **state)
{
    (void)state;
    static const struct {
        const char *quota;
        uint32_t headroom_ppm;
    } cases[] = {{"100/s", 200000}, {"100/s", 50000}, {"100/s", 10000}, {"100/s", 0},
                 {"50/5s", 200000}, {"1/s", 200000},  {"3/s", 200000},  {"7/2s", 90000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scenario scenario = {.name = cases[i].quota,
                                    .limits = of_quota(cases[i].quota, cases[i].headroom_ppm),
                                    .length_ns = 40 * S,
                                    .think_ns = 1,
                                    .is_quota = true};
        check_scenario(&scenario);
        scenario.careless = scenario.blocks = true;
        scenario.think_ns = 500 * MS;
        check_scenario(&scenario);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_limit),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_new_rates),
        cmocka_unit_test(test_several_windows),
        cmocka_unit_test(test_quotas_of_all_headrooms),
    };
    return cmocka_run_group_tests_name("bucket bounds", tests, NULL, NULL);
}
