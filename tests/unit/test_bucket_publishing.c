/* SPDX-License-Identifier: MIT */
/*
 * Publishing under fire: threads that race, a pool that runs out, and processes that die between
 * any two of their writes to shared memory.  Both halves of the bucket are included, to come at their
 * inside and to put a step of our own between their writes.
 */

static void between_writes(void);
#define SHARED_STEP() between_writes()
#include "core/bucket.c"            // NOLINT(bugprone-suspicious-include)
#include "core/bucket_publishing.c" // NOLINT(bugprone-suspicious-include)

#include "tests/unit/bucket_world.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#define START (1000 * S)

/* Writes left until this process dies; 0: it lives on. */
static unsigned long dies_after;
/* Yields between one in so many writes, so that others come in there; at random, since threads that
 * yield in step would get in each other's way for ever. */
static _Thread_local unsigned yields_one_in;

/* Comes in once, before the next write. */
static void (*intruder)(void);

static void between_writes(void)
{
    void (*comes_in)(void) = intruder;
    intruder = NULL;
    if (comes_in)
        comes_in();
    static _Thread_local unsigned random = 1;
    if (yields_one_in && ((random = random * 1103515245 + 12345) >> 16) % yields_one_in == 0)
        sched_yield();
    if (dies_after && --dies_after == 0)
        _exit(0);
}

static bool everybody_but_us_is_dead(uint64_t owner)
{
    return owner != 1;
}

static const struct bucket_world reaper = {.self = 1, .owner_is_dead = everybody_but_us_is_dead};

/* ----------------------------------------------------------------------- races ---- */

#define PUBLISHERS 3
#define READERS 2
#define PUBLICATIONS 2000

/* Every field tells the same number; a mixture of two records would tell two. */
static void write_number(struct picture *picture, uint64_t number)
{
    picture->start_ns = picture->hard_start_ns = START + (int64_t)number;
    picture->count = RATES_MAX;
    for (unsigned i = 0; i < RATES_MAX; i++)
        picture->view[i] = (struct view){.limit = {.rate = number + i,
                                                   .burst = TOKEN_ONE + number,
                                                   .published = number * 3,
                                                   .window_ns = (int64_t)number + 7,
                                                   .jitter_ns = LIMIT_JITTER_MIN_NS + (int64_t)number},
                                         .v0 = number * 5,
                                         .column = (unsigned)(number + i) % RATES_MAX};
}

static uint64_t read_number(const struct picture *picture)
{
    struct picture expected = {.word = picture->word};
    uint64_t number = (uint64_t)(picture->start_ns - START);
    write_number(&expected, number);
    assert_int_equal(picture->hard_start_ns, expected.hard_start_ns);
    assert_int_equal(picture->count, expected.count);
    for (unsigned i = 0; i < RATES_MAX; i++) {
        const struct view *a = &picture->view[i], *b = &expected.view[i];
        assert_int_equal(a->limit.rate, b->limit.rate);
        assert_int_equal(a->limit.burst, b->limit.burst);
        assert_int_equal(a->limit.published, b->limit.published);
        assert_int_equal(a->limit.window_ns, b->limit.window_ns);
        assert_int_equal(a->limit.jitter_ns, b->limit.jitter_ns);
        assert_int_equal(a->v0, b->v0);
        assert_int_equal(a->column, b->column);
    }
    return number;
}

static bool edit_count(const struct bucket *bucket, struct draft *draft, int64_t now_ns, const void *wish)
{
    (void)bucket;
    (void)now_ns;
    (void)wish;
    write_number(&draft->picture, draft->picture.count ? read_number(&draft->picture) + 1 : 1);
    return true;
}

struct racer {
    struct bucket *bucket;
    struct bucket_world world;
    _Atomic unsigned *publishing;
    unsigned published;
    uint64_t seen;
};

static void *publisher(void *context)
{
    struct racer *racer = context;
    yields_one_in = 7;
    for (unsigned i = 0; i < PUBLICATIONS; i++)
        racer->published += publish(racer->bucket, &racer->world, START, edit_count, NULL);
    atomic_fetch_sub(racer->publishing, 1);
    return NULL;
}

static void *reader(void *context)
{
    struct racer *racer = context;
    while (atomic_load(racer->publishing)) {
        struct picture picture;
        read_picture(racer->bucket, START, &picture);
        if (!picture.count)
            continue;
        uint64_t number = read_number(&picture);
        assert_true(number >= racer->seen);
        assert_int_equal(picture.word >> PUBLISHED_INDEX_BITS, number);
        racer->seen = number;
    }
    return NULL;
}

static void test_no_record_is_torn_and_no_change_is_lost(void **state)
{
    (void)state;
    struct bucket *bucket = new_bucket();
    pthread_t thread[PUBLISHERS + READERS];
    struct racer racer[PUBLISHERS + READERS];
    _Atomic unsigned publishing = PUBLISHERS;
    for (unsigned i = 0; i < PUBLISHERS + READERS; i++) {
        racer[i] = (struct racer){.bucket = bucket, .world.self = i + 1, .publishing = &publishing};
        assert_int_equal(pthread_create(&thread[i], NULL, i < PUBLISHERS ? publisher : reader, &racer[i]), 0);
    }
    unsigned published = 0;
    for (unsigned i = 0; i < PUBLISHERS + READERS; i++) {
        pthread_join(thread[i], NULL);
        published += racer[i].published;
    }
    struct picture picture;
    read_picture(bucket, START, &picture);
    assert_int_equal(published, PUBLISHERS * PUBLICATIONS);
    assert_int_equal(read_number(&picture), published);
    for (unsigned i = 0; i < BUCKET_RECORDS; i++)
        assert_int_equal(atomic_load(&bucket->record[i].owner), 0);
    free_bucket(bucket);
}

/* Several queues, one order. */

#define BOOKERS 4
#define BOOKINGS 3000

struct booker {
    struct bucket *bucket;
    uint64_t tat[BOOKINGS][2];
};

static void *book_many(void *context)
{
    struct booker *booker = context;
    yields_one_in = 5;
    for (unsigned i = 0; i < BOOKINGS; i++) {
        struct bucket_slot slot;
        bucket_book(booker->bucket, START, &slot);
        memcpy(booker->tat[i], slot.tat, sizeof booker->tat[i]);
    }
    return NULL;
}

static int by_first(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (x[0] > y[0]) - (x[0] < y[0]);
}

static void test_the_order_is_the_same_in_all_queues(void **state)
{
    (void)state;
    const struct limits limits = two_limits(limit_of(200, 60 * S, 5), limit_of(10, S, 1));
    struct bucket *bucket = bucket_with(&limits, START);
    static struct booker booker[BOOKERS];
    static uint64_t all[BOOKERS * BOOKINGS][2];
    pthread_t thread[BOOKERS];
    for (unsigned i = 0; i < BOOKERS; i++) {
        booker[i].bucket = bucket;
        assert_int_equal(pthread_create(&thread[i], NULL, book_many, &booker[i]), 0);
    }
    for (unsigned i = 0; i < BOOKERS; i++) {
        pthread_join(thread[i], NULL);
        memcpy(all[i * BOOKINGS], booker[i].tat, sizeof booker[i].tat);
    }
    qsort(all, BOOKERS * BOOKINGS, sizeof *all, by_first);
    for (unsigned i = 1; i < BOOKERS * BOOKINGS; i++) {
        assert_true(all[i][0] >= all[i - 1][0] + TOKEN_ONE);
        assert_true(all[i][1] >= all[i - 1][1] + TOKEN_ONE);
    }
    free_bucket(bucket);
}

/* A process read what was in force, and slept until its window had gone and come again, with a
 * clock that had run for a day in between.  Its booking must not push the queue a day ahead. */
static void test_a_stale_booking_costs_one_place(void **state)
{
    (void)state;
    const struct limits both = two_limits(limit_of(100, HOUR, 20), limit_of(1000, S, 1));
    const struct limits one = one_limit(100, HOUR, 20);
    struct bucket *bucket = bucket_with(&both, START);
    struct picture stale;
    struct bucket_slot slot;
    read_picture(bucket, START, &stale);
    bucket_forget_askers(bucket);
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + DAY, &one));
    assert_true(bucket_ask_limits(bucket, &nobody_dies, START + DAY + S, &both));
    take_places(bucket, &stale, START + DAY, &slot);
    int64_t now_ns = START + DAY + S;
    assert_true(bucket_peek(bucket, now_ns, NULL) <= now_ns + 2 * MS);
    free_bucket(bucket);
}

static struct bucket *intruded;

static void book_one(void)
{
    struct bucket_slot slot;
    bucket_book(intruded, START + 20 * S, &slot);
}

/* A strict limit makes room for a looser one and is kept in another column, while somebody still books by it. */
static void test_what_is_booked_while_a_limit_moves_is_not_lost(void **state)
{
    (void)state;
    const struct limits few = one_limit(100, HOUR, 20), many = one_limit(10000, HOUR, 1000);
    for (int is_intruded = 0; is_intruded < 2; is_intruded++) {
        struct bucket *bucket = intruded = bucket_with(&few, START);
        struct bucket_state seen;
        for (int i = 0; i < 5; i++) {
            struct bucket_slot slot;
            bucket_book(bucket, START, &slot);
        }
        intruder = is_intruded ? book_one : NULL;
        assert_true(bucket_ask_limits(bucket, &nobody_dies, START + 20 * S, &many));
        assert_null(intruder);
        assert_true(bucket_ask_limits(bucket, &nobody_dies, START + 40 * S, &few));
        bucket_read_state(bucket, START + 40 * S, &seen);
        assert_int_equal((int)(seen.tokens[0] - 40 * 100 / 3600.0 + 0.01), is_intruded ? 14 : 15);
        free_bucket(bucket);
    }
}

/* --------------------------------------------------------------------- the pool ---- */

static bool is_never_dead(uint64_t owner)
{
    (void)owner;
    return false;
}

static void test_a_pool_held_by_the_living_is_exhausted(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 5);
    struct bucket *bucket = bucket_with(&limits, START);
    unsigned in_force = index_of(atomic_load(&bucket->published));
    for (unsigned i = 0; i < BUCKET_RECORDS; i++)
        atomic_store(&bucket->record[i].owner, i == in_force ? 0 : 1000 + i);
    struct picture before, after;
    read_picture(bucket, START, &before);
    const struct bucket_world nobody_is_dead = {.self = 1, .owner_is_dead = is_never_dead};
    assert_false(bucket_block(bucket, &nobody_dies, START, START + 60 * S, BLOCK_HARD));
    assert_false(bucket_block(bucket, &nobody_is_dead, START, START + 60 * S, BLOCK_HARD));
    read_picture(bucket, START, &after);
    assert_int_equal(before.word, after.word);
    assert_int_equal(bucket_peek(bucket, START, NULL), START); /* nor is anything else changed */
    assert_true(bucket_block(bucket, &reaper, START, START + 60 * S, BLOCK_HARD));
    assert_true(bucket_peek(bucket, START, NULL) >= START + 60 * S);
    free_bucket(bucket);
}

/* A record in force may carry a dead owner: he died right after publishing it. */
static void test_the_record_in_force_is_not_taken_back(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 5);
    struct bucket *bucket = bucket_with(&limits, START);
    unsigned in_force = index_of(atomic_load(&bucket->published));
    for (unsigned i = 0; i < BUCKET_RECORDS; i++)
        atomic_store(&bucket->record[i].owner, i == in_force ? 666 : 1); /* the others: ours, alive */
    assert_false(bucket_block(bucket, &reaper, START, START + 60 * S, BLOCK_HARD));
    struct picture picture;
    read_picture(bucket, START, &picture);
    assert_int_equal(picture.count, 1);
    assert_int_equal(picture.view[0].limit.rate, limits.item[0].rate);
    free_bucket(bucket);
}

/* ---------------------------------------------------------------------- crashes ---- */

/* One of everything that writes. */
static void live_a_life(struct bucket *bucket, const struct bucket_world *world)
{
    const struct limits strict = one_limit(9, S, 4);
    const struct limits both = two_limits(limit_of(100, HOUR, 20), limit_of(9, S, 4));
    struct bucket_slot slot;
    bucket_ask_limits(bucket, world, START, &strict);
    bucket_book(bucket, START, &slot);
    bucket_ask_limits(bucket, world, START, &both);
    bucket_cancel(bucket, &slot);
    bucket_block(bucket, world, START, START + S, BLOCK_SOFT);
    bucket_block(bucket, world, START, START + 2 * S, BLOCK_HARD);
    bucket_charge(bucket, START, 2);
    bucket_refill(bucket, world, START);
    bucket_release(bucket, world, START);
    bucket_retry_deposit(bucket, START, 200000);
    bucket_retry_withdraw(bucket, START, 10);
    bucket_note_latency(bucket, MS);
    bucket_note_refusal(bucket, START);
}

/* What is in force after any number of steps of that life is one of what it publishes. */
static void check_in_force(const struct bucket *bucket)
{
    struct picture picture;
    read_picture(bucket, START, &picture);
    assert_in_range(picture.count, 1, 2);
    for (unsigned i = 0; i < picture.count; i++) {
        const struct limit *limit = &picture.view[i].limit;
        const struct limit hourly = limit_of(100, HOUR, 20), strict = limit_of(9, S, 4), first = limit_of(10, S, 5);
        bool known = memcmp(limit, &hourly, sizeof *limit) == 0 || memcmp(limit, &strict, sizeof *limit) == 0 ||
                     memcmp(limit, &first, sizeof *limit) == 0;
        assert_true(known);
    }
    assert_true(picture.start_ns <= START + 2 * S);
    /* Dying mints nothing: what could go at once is at most a burst. */
    unsigned sent = 0;
    struct bucket copy;
    memcpy((void *)&copy, (const void *)bucket, sizeof copy);
    while (sent < 100 && bucket_peek(&copy, START + 10 * S, NULL) <= START + 10 * S) {
        struct bucket_slot slot;
        bucket_book(&copy, START + 10 * S, &slot);
        sent++;
    }
    assert_true(sent <= 5);
}

/* True when the child came to the end of its life. */
static bool dies_at(struct bucket *bucket, unsigned long step)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct bucket_world world = {.self = 1000 + step, .owner_is_dead = everybody_but_us_is_dead};
        dies_after = step;
        live_a_life(bucket, &world);
        _exit(7);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7);
    return WEXITSTATUS(status) == 7;
}

static void test_a_death_at_any_step_leaves_nothing_to_repair(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 5);
    unsigned long step = 1;
    for (bool lived = false; !lived; step++) {
        struct bucket *bucket = bucket_with(&limits, START);
        lived = dies_at(bucket, step);
        check_in_force(bucket);
        assert_true(bucket_block(bucket, &reaper, START, START + 90 * S, BLOCK_HARD));
        assert_true(bucket_peek(bucket, START + 89 * S, NULL) >= START + 90 * S);
        assert_true(bucket_release(bucket, &reaper, START + 89 * S));
        free_bucket(bucket);
        assert_true(step < 10000);
    }
    assert_true(step > 100); /* the hook is there */
}

static void test_a_hundred_deaths_in_one_bucket(void **state)
{
    (void)state;
    const struct limits limits = one_limit(10, S, 5);
    struct bucket *bucket = bucket_with(&limits, START);
    for (unsigned long step = 1; step <= 200; step++) {
        dies_at(bucket, step);
        check_in_force(bucket);
    }
    assert_true(bucket_block(bucket, &reaper, START, START + 90 * S, BLOCK_HARD));
    free_bucket(bucket);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_record_is_torn_and_no_change_is_lost),
        cmocka_unit_test(test_the_order_is_the_same_in_all_queues),
        cmocka_unit_test(test_a_stale_booking_costs_one_place),
        cmocka_unit_test(test_what_is_booked_while_a_limit_moves_is_not_lost),
        cmocka_unit_test(test_a_pool_held_by_the_living_is_exhausted),
        cmocka_unit_test(test_the_record_in_force_is_not_taken_back),
        cmocka_unit_test(test_a_death_at_any_step_leaves_nothing_to_repair),
        cmocka_unit_test(test_a_hundred_deaths_in_one_bucket),
    };
    return cmocka_run_group_tests_name("bucket publishing", tests, NULL, NULL);
}
