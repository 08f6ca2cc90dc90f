/* SPDX-License-Identifier: MIT */
/*
 * A process is killed at every store into the segment, one after the other: each place in the sources
 * that stores is a site, and a site at which nobody has died fails the test.  After each death the next
 * process goes on with what is there, and what both have sent keeps to the limits.
 *
 * The sources are included, with the functions that store (core/segment_layout.h) replaced by macros
 * that note the site first.  Counters (core/metrics.c) are single additions and are not among them.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/segment_world.h"

#include "core/system/clock.h"

/* ----------------------------------------------------------------------- sites ---- */

/* A place in the sources.  The linker puts them side by side, and names where they begin and end. */
struct site {
    const char *file;
    uint64_t line;
};
extern const struct site __start_stores[], __stop_stores[];

static void step_on(const struct site *site);

#define HERE                                                                                                           \
    ({                                                                                                                 \
        static const struct site here __attribute__((section("stores"), used, aligned(16))) = {__FILE__, __LINE__};    \
        step_on(&here);                                                                                                \
    })
#define shared_store(word, value) (HERE, shared_store(word, value))
#define shared_swap(word, expected, value) (HERE, shared_swap(word, expected, value))
#define shared_exchange(word, value) (HERE, shared_exchange(word, value))
#define shared_add(word, value) (HERE, shared_add(word, value))

// NOLINTBEGIN(bugprone-suspicious-include)
#include "core/bucket.c"
#include "core/bucket_publishing.c"
#include "core/segment.c"
#include "core/sealed.c"
#include "core/events.c"
/* Where two sources have the same word for things of their own. */
#undef WORD
#define pack pack_waiter
#define unpack unpack_waiter
#define known_cause known_cause_of_waiter
#define not_negative not_negative_time
#include "core/waiters.c"
// NOLINTEND(bugprone-suspicious-include)

#define SITES_MAX 200
#define ACTS_MAX 4096

/* What the dead leave behind, beside the segment. */
struct board {
    unsigned deaths[SITES_MAX];
    unsigned acts;
    int64_t act_ns[ACTS_MAX];
};

static struct board *board;
static struct segment world;
static int64_t now_ns;

static unsigned long dies_after; /* stores; 0: lives on */

/* Called where somebody else may come in between; not while he does. */
static void (*rival)(const struct site *site);

static void step_on(const struct site *site)
{
    if (dies_after && --dies_after == 0) {
        board->deaths[site - __start_stores]++;
        kill(getpid(), SIGKILL);
    }
    void (*comes_in)(const struct site *) = rival;
    rival = NULL;
    if (comes_in)
        comes_in(site);
    rival = comes_in;
}

/* ----------------------------------------------------------------- what is done ---- */

#define START (1000 * S)
#define HOST "api.example.com:443"
#define RATE 10
#define BURST 5

static bool everybody_but_us_is_dead(uint64_t owner)
{
    return owner != 1;
}

static int64_t world_clock(void)
{
    return now_ns;
}

static struct bucket_world process_named(uint64_t name)
{
    return (struct bucket_world){.self = name, .owner_is_dead = everybody_but_us_is_dead, .clock_ns = world_clock};
}

static struct limits usual_limits(void)
{
    return one_limit(RATE, S, BURST);
}

static void note_act(void)
{
    assert_true(board->acts < ACTS_MAX);
    board->act_ns[board->acts++] = now_ns;
}

/* Sends if it may, by the usual way or the long one. */
static bool send_one(struct bucket *bucket, bool by_the_usual_way)
{
    struct bucket_slot slot = {0};
    int64_t until_ns;
    if (by_the_usual_way && bucket_take_due(bucket, now_ns, &slot)) {
        note_act();
        return true;
    }
    if (bucket_peek(bucket, now_ns, NULL) > now_ns)
        return false;
    bucket_book(bucket, now_ns, &slot);
    if (bucket_check(bucket, &slot, now_ns, &until_ns) == BUCKET_ACT) {
        note_act();
        return true;
    }
    bucket_cancel(bucket, &slot);
    return false;
}

/* A life is one of everything of a kind, in a world that was prepared for it. */
struct life {
    const char *what;
    void (*prepare)(void);
    void (*live)(const struct bucket_world *self);
    bool refills;             /* the operator's word, which is worth another burst */
    unsigned long first_step; /* he dies at this one and later ones; 0: at all */
};

static void live_attaching(const struct bucket_world *self)
{
    const uint64_t seed[3] = {7, 8, 9};
    (void)self;
    segment_attach(&world, world.header, SEGMENT_SIZE_MIN, WORLD_BOOT, seed);
}

static void live_sending(const struct bucket_world *self)
{
    const struct limits limits = usual_limits();
    struct bucket *bucket = segment_bucket(&world, HOST, now_ns);
    struct bucket_slot slot;
    bucket_ask_limits(bucket, self, now_ns, &limits);
    for (int i = 0; i < 3; i++)
        send_one(bucket, i % 2);
    now_ns += 2 * S; /* the stamps are old by then */
    bucket = segment_bucket(&world, HOST, now_ns);
    bucket_ask_limits(bucket, self, now_ns, &limits);
    bucket_book(bucket, now_ns, &slot);
    bucket_cancel(bucket, &slot);
    bucket_charge(bucket, now_ns, 2);
    bucket_retry_deposit(bucket, now_ns, 200000);
    bucket_retry_withdraw(bucket, now_ns, 10);
    bucket_note_latency(bucket, MS);
    bucket_note_refusal(bucket, now_ns);
}

static void live_changing(const struct bucket_world *self)
{
    const struct limits usual = usual_limits(), strict = one_limit(RATE - 1, S, BURST - 1);
    const struct limits both = two_limits(limit_of(100, HOUR, 20), limit_of(RATE - 1, S, BURST - 1));
    struct bucket *bucket = segment_bucket(&world, HOST, now_ns);
    bucket_ask_limits(bucket, self, now_ns, &strict);
    send_one(bucket, true);
    bucket_ask_limits(bucket, self, now_ns, &both);
    send_one(bucket, false);
    bucket_block(bucket, self, now_ns, now_ns + S, BLOCK_SOFT);
    bucket_block(bucket, self, now_ns, now_ns + 2 * S, BLOCK_HARD);
    bucket_block(bucket, self, now_ns, now_ns + 2 * S, BLOCK_HOLD);
    bucket_release(bucket, self, now_ns);
    bucket_forget_askers(bucket);
    bucket_ask_limits(bucket, self, now_ns, &strict);
    bucket_forget_askers(bucket);
    bucket_ask_limits(bucket, self, now_ns, &usual);
}

static void live_operating(const struct bucket_world *self)
{
    struct bucket *bucket = segment_bucket(&world, HOST, now_ns);
    send_one(bucket, true);
    bucket_refill(bucket, self, now_ns);
    bucket_set_mode(bucket, OPERATOR_OBSERVE, now_ns + S);
    segment_set_mode(&world, OPERATOR_OFF, now_ns + S);
    segment_note_configuration(&world, 5, UINT64_MAX);
    segment_note_configuration(&world, 6, UINT64_MAX);
    segment_bump_generation(&world);
}

static void name_of(char name[BUCKET_NAME_SIZE], unsigned number)
{
    snprintf(name, BUCKET_NAME_SIZE, "host%u:443", number);
}

/* Names that were looked up long ago, in every place of the table. */
static void prepare_a_full_table(void)
{
    for (unsigned i = 0; i < 500; i++) {
        char name[BUCKET_NAME_SIZE];
        name_of(name, i);
        struct bucket *bucket = segment_bucket(&world, name, now_ns - HOUR);
        if (bucket)
            metrics_request(bucket_metrics(bucket));
    }
}

static void live_evicting(const struct bucket_world *self)
{
    (void)self;
    for (unsigned i = 1000; i < 1004; i++) {
        char name[BUCKET_NAME_SIZE];
        name_of(name, i);
        segment_bucket(&world, name, now_ns);
    }
}

/* Others stop every host, at the moment that its place was found to be of no use. */
static void stop_everybody(const struct site *site)
{
    const struct bucket_world other = process_named(1);
    struct bucket *bucket;
    unsigned cursor = 0;
    (void)site;
    while ((bucket = segment_next(&world, &cursor)))
        if (bucket_is_idle(bucket, now_ns))
            bucket_block(bucket, &other, now_ns, now_ns + S, BLOCK_HARD);
}

static void live_evicting_what_is_used(const struct bucket_world *self)
{
    rival = stop_everybody;
    live_evicting(self);
    rival = NULL;
}

static struct event event_of(unsigned number)
{
    struct event event = {.kind = EVENT_REFUSED, .status = 429, .wait_ns = number, .program = "curl"};
    snprintf(event.endpoint, sizeof event.endpoint, "GET host%u/", number);
    return event;
}

static void add_event(unsigned number)
{
    const struct event event = event_of(number);
    events_add(&world, &event);
}

static void prepare_a_full_ring(void)
{
    for (unsigned i = 0; i < segment_regions(world.size).event_count; i++)
        add_event(i);
}

static void live_telling(const struct bucket_world *self)
{
    (void)self;
    add_event(100);
    add_event(101);
}

static unsigned enter_waiter(const struct bucket_world *self, unsigned number)
{
    struct waiter waiter = {.owner = self->self, .thread = (int)number, .cause = CAUSE_QUOTA, .bucket = HOST};
    snprintf(waiter.endpoint, sizeof waiter.endpoint, "GET host%u/", number);
    return waiters_enter(&world, self, &waiter);
}

static void prepare_waiters_who_died(void)
{
    for (unsigned i = 0; i < segment_regions(world.size).waiter_count; i++) {
        const struct bucket_world dead = process_named(5000 + i);
        enter_waiter(&dead, i);
    }
}

static void live_waiting(const struct bucket_world *self)
{
    for (unsigned i = 1; i < 3; i++) {
        unsigned ticket = enter_waiter(self, i), other = enter_waiter(self, i + 10);
        waiters_update(&world, ticket, self->self, CAUSE_HOLD, TIME_NEVER);
        waiters_leave(&world, ticket, self->self);
        waiters_leave(&world, other, self->self);
    }
}

/* Others win every race for a place in the queue, for as long as one tries. */
static void move_the_queue(const struct site *site)
{
    (void)site;
    struct bucket *bucket = segment_find(&world, HOST);
    _Atomic uint64_t *tat = &bucket->tat[0];
    atomic_fetch_add(tat, 1);
}

static void live_losing_every_race(const struct bucket_world *self)
{
    struct bucket_slot slot;
    struct bucket *bucket = segment_bucket(&world, HOST, now_ns);
    (void)self;
    rival = move_the_queue;
    bucket_book(bucket, now_ns, &slot);
    rival = NULL;
}

static void prepare_nothing(void)
{
}

static void prepare_bare_memory(void)
{
    memset((void *)world.header, 0, world.size);
}

static const struct life lives[] = {
    {"attaching", prepare_bare_memory, live_attaching, false, 0},
    {"sending, as the first of all", prepare_nothing, live_sending, false, 0},
    {"sending, in a full table", prepare_a_full_table, live_sending, false, 0},
    {"changing what is in force", prepare_nothing, live_changing, false, 0},
    {"operating", prepare_a_full_table, live_operating, true, 0},
    {"evicting", prepare_a_full_table, live_evicting, false, 0},
    {"evicting what is used meanwhile", prepare_a_full_table, live_evicting_what_is_used, false, 0},
    {"telling", prepare_a_full_ring, live_telling, false, 0},
    {"waiting, in a free table", prepare_nothing, live_waiting, false, 0},
    {"waiting, among the dead", prepare_waiters_who_died, live_waiting, false, 0},
    {"losing every race", prepare_a_full_table, live_losing_every_race, false, SWAP_TRIES},
};

/* ------------------------------------------------------------- the next process ---- */

/* The survivor sends as much as it may for a while: with what was sent before, no stretch of time sees
 * more than burst + rate x (length + jitter), and a unit for rounding. */
static void check_bound(const struct life *life)
{
    const struct bucket_world self = process_named(1);
    const struct limits limits = usual_limits();
    const double burst = BURST * (life->refills ? 2 : 1);
    const unsigned before = board->acts;
    for (int64_t end_ns = now_ns + 8 * S; now_ns < end_ns; now_ns += 20 * MS) {
        struct bucket *bucket = segment_bucket(&world, HOST, now_ns);
        assert_non_null(bucket);
        bucket_ask_limits(bucket, &self, now_ns, &limits);
        while (send_one(bucket, true))
            ;
    }
    assert_true(board->acts > before + 10); /* and he does get on */
    for (unsigned i = 0; i < board->acts; i++)
        for (unsigned j = i; j < board->acts; j++) {
            double length_s = (double)(board->act_ns[j] - board->act_ns[i] + limits.item[0].jitter_ns) / (double)S;
            if (j - i + 1 > burst + RATE * length_s + 0.01)
                fail_msg("%s: %u requests within %.3f s", life->what, j - i + 1, length_s);
        }
}

/* Every name that is looked up has one bucket, of that name. */
static void check_table(void)
{
    const unsigned ranges[][2] = {{1000, 1008}, {0, 20}};
    for (unsigned range = 0; range < 2; range++)
        for (unsigned i = ranges[range][0]; i < ranges[range][1]; i++) {
            char name[BUCKET_NAME_SIZE];
            struct bucket_state seen;
            name_of(name, i);
            struct bucket *bucket = segment_bucket(&world, name, now_ns);
            if (!bucket)
                continue; /* its set is full of such as were just looked up */
            assert_ptr_equal(segment_bucket(&world, name, now_ns), bucket);
            bucket_read_state(bucket, now_ns, &seen);
            assert_string_equal(seen.name, name);
        }
}

static void check_publishing(void)
{
    const struct bucket_world self = process_named(1);
    struct bucket *bucket = segment_bucket(&world, HOST, now_ns);
    assert_non_null(bucket);
    for (int i = 1; i <= 2 * BUCKET_RECORDS; i++)
        assert_true(bucket_block(bucket, &self, now_ns, now_ns + i * HOUR, BLOCK_HARD));
    assert_true(bucket_peek(bucket, now_ns, NULL) >= now_ns + (int64_t)2 * BUCKET_RECORDS * HOUR);
    assert_true(bucket_release(bucket, &self, now_ns));
    assert_true(bucket_retry_withdraw(bucket, now_ns, 10));
    for (unsigned i = 0; i < BUCKET_RECORDS; i++) /* taken back from the dead when they are needed */
        assert_true(shared_load(&bucket->record[i].owner) != 1);
}

static void check_events_and_waiters(void)
{
    const struct bucket_world self = process_named(1);
    const struct segment_regions regions = segment_regions(world.size);
    struct event event;
    struct waiter waiter;
    uint64_t first, end = events_range(&world, &first);
    for (uint64_t number = first; number < end; number++)
        if (events_read(&world, number, &event))
            assert_string_equal(event.program, "curl");
    for (unsigned i = 0; i < regions.event_count; i++)
        add_event(i);
    for (uint64_t number = end; number < end + regions.event_count; number++) {
        assert_true(events_read(&world, number, &event));
        assert_int_equal(event.wait_ns, number - end);
    }
    for (unsigned i = 0; i < regions.waiter_count; i++)
        assert_int_not_equal(enter_waiter(&self, i), 0);
    unsigned shown = 0;
    for (unsigned cursor = 0; waiters_next(&world, &cursor, &waiter); shown++)
        assert_int_equal(waiter.owner, 1);
    assert_int_equal(shown, regions.waiter_count);
}

static void check_words_of_all(void)
{
    uint64_t generation = segment_generation(&world);
    segment_bump_generation(&world);
    assert_int_equal(segment_generation(&world), generation + 1);
    segment_note_configuration(&world, 8, UINT64_MAX);
    assert_false(segment_note_configuration(&world, 8, UINT64_MAX));
    segment_set_mode(&world, OPERATOR_AUTO, 0);
    assert_int_equal(segment_mode(&world, now_ns, NULL), OPERATOR_AUTO);
}

static void check_that_it_goes_on(const struct life *life)
{
    const uint64_t seed[3] = {4, 5, 6};
    struct segment again;
    assert_int_equal(segment_attach(&again, world.header, SEGMENT_SIZE_MIN, WORLD_BOOT, seed), SEGMENT_OK);
    world = again;
    check_bound(life);
    check_table();
    check_publishing();
    check_events_and_waiters();
    check_words_of_all();
}

/* ------------------------------------------------------------------------ deaths ---- */

static void begin_world(const struct life *life)
{
    const struct bucket_world self = process_named(1);
    const struct limits limits = usual_limits();
    now_ns = START;
    board->acts = 0;
    world = new_segment(SEGMENT_SIZE_MIN);
    life->prepare();
    if (life->live == live_attaching)
        return;
    struct bucket *bucket = life->prepare == prepare_a_full_table ? segment_bucket(&world, HOST, now_ns) : NULL;
    if (bucket && bucket_ask_limits(bucket, &self, now_ns, &limits))
        send_one(bucket, true); /* somebody was there before */
}

/* True when it came to the end of its life. */
static bool dies_at(const struct life *life, unsigned long step)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct bucket_world self = process_named(1000 + step);
        dies_after = step;
        life->live(&self);
        _exit(7);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    bool lived = WIFEXITED(status) && WEXITSTATUS(status) == 7;
    assert_true(lived || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    return lived;
}

#define DEATHS_MAX 10000

static void test_a_death_at_every_store(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        unsigned long step = lives[i].first_step ? lives[i].first_step : 1;
        for (bool lived = false; !lived; step++) {
            begin_world(&lives[i]);
            lived = dies_at(&lives[i], step);
            check_that_it_goes_on(&lives[i]);
            free_segment(&world);
            assert_true(step < DEATHS_MAX);
        }
    }
    unsigned missing = 0;
    for (const struct site *site = __start_stores; site < __stop_stores; site++)
        if (!board->deaths[site - __start_stores] && ++missing)
            print_error("%s:%lu: nobody has died here\n", site->file, (unsigned long)site->line);
    assert_int_equal(missing, 0);
    assert_in_range(__stop_stores - __start_stores, 40, SITES_MAX);
}

/* A host that is stopped between being found of no use and losing its place keeps both. */
static void test_what_is_used_meanwhile_is_not_evicted(void **state)
{
    (void)state;
    struct bucket *bucket;
    unsigned cursor = 0, kept = 0;
    now_ns = START;
    world = new_segment(SEGMENT_SIZE_MIN);
    prepare_a_full_table();
    live_evicting_what_is_used(NULL);
    while ((bucket = segment_next(&world, &cursor))) {
        struct bucket_state seen;
        bucket_read_state(bucket, now_ns, &seen);
        assert_int_equal(seen.block, BLOCK_HARD);
        assert_ptr_equal(segment_find(&world, seen.name), bucket);
        kept++;
    }
    assert_int_equal(kept, segment_capacity(&world));
    free_segment(&world);
}

static int set_up(void **state)
{
    (void)state;
    board = new_memory(sizeof *board);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_used_meanwhile_is_not_evicted),
        cmocka_unit_test(test_a_death_at_every_store),
    };
    return cmocka_run_group_tests_name("death at every store", tests, set_up, NULL);
}
