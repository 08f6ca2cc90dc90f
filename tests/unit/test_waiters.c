/* SPDX-License-Identifier: MIT */
/*
 * The table of waiters: each is shown as it is, whole or not at all; a record is its owner's until he
 * gives it back or is dead.  waiters.c and sealed.c are included, to put a step of our own between
 * their writes.
 */

static void between_writes(void);
#define SHARED_STEP() between_writes()
#include "core/waiters.c" // NOLINT(bugprone-suspicious-include)
#undef WORD
#include "core/sealed.c" // NOLINT(bugprone-suspicious-include)

#include "tests/unit/segment_world.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACES 64 /* of the smallest segment */
#define ME UINT64_C(1)

static unsigned long dies_after; /* writes left until this process dies; 0: it lives on */
static void (*observer)(void);   /* called between any two writes, but not by itself */
static _Thread_local unsigned yields_one_in;

static void between_writes(void)
{
    static _Thread_local unsigned random = 1;
    if (yields_one_in && ((random = random * 1103515245 + 12345) >> 16) % yields_one_in == 0)
        sched_yield();
    if (dies_after && --dies_after == 0)
        _exit(0);
    void (*observe)(void) = observer;
    if (observe) {
        observer = NULL;
        observe();
        observer = observe;
    }
}

static struct segment world;
static unsigned asked; /* how often somebody was asked for whether he is dead */

static bool everybody_but_us_is_dead(uint64_t owner)
{
    asked++;
    return owner != ME;
}

static bool nobody_is_dead(uint64_t owner)
{
    (void)owner;
    asked++;
    return false;
}

static const struct bucket_world reaper = {.self = ME, .owner_is_dead = everybody_but_us_is_dead};
static const struct bucket_world gentle = {.self = ME, .owner_is_dead = nobody_is_dead};

static int set_up(void **state)
{
    (void)state;
    world = new_segment(SEGMENT_SIZE_MIN);
    asked = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    observer = NULL;
    free_segment(&world);
    return 0;
}

/* A waiter that tells one number in all of its fields, but for cause and end. */
static struct waiter waiter_of(uint64_t owner, unsigned number)
{
    struct waiter waiter = {
        .owner = owner,
        .thread = (int)number,
        .cause = CAUSE_QUOTA,
        .began_ns = (int64_t)number * 1000,
        .until_ns = (int64_t)number * 1000 + 1,
    };
    snprintf(waiter.bucket, sizeof waiter.bucket, "host%u.example.com:%u", number, (unsigned)owner);
    snprintf(waiter.endpoint, sizeof waiter.endpoint, "GET host%u.example.com/%0*u", number, (int)(number % 60), 0);
    return waiter;
}

static void check_waiter(const struct waiter *seen)
{
    const struct waiter expected = waiter_of(seen->owner, (unsigned)seen->thread);
    assert_int_equal(seen->began_ns, expected.began_ns);
    assert_string_equal(seen->bucket, expected.bucket);
    assert_string_equal(seen->endpoint, expected.endpoint);
    if (seen->cause == CAUSE_QUOTA)
        assert_int_equal(seen->until_ns, expected.until_ns);
    else if (seen->cause == CAUSE_HOLD)
        assert_int_equal(seen->until_ns, TIME_NEVER);
    else
        fail_msg("nobody waits for %s", cause_name(seen->cause));
}

/* owner 0: ourselves, as the world says. */
static unsigned enter(const struct bucket_world *outside, uint64_t owner, unsigned number)
{
    struct waiter waiter = waiter_of(owner ? owner : self_of(outside), number);
    waiter.owner = owner;
    return waiters_enter(&world, outside, &waiter);
}

/* Shows all, whole; how many there are. */
static unsigned count_all(void)
{
    struct waiter seen;
    unsigned cursor = 0, count = 0;
    for (; waiters_next(&world, &cursor, &seen); count++)
        check_waiter(&seen);
    return count;
}

static void observe_all(void)
{
    count_all();
}

/* Fills the table with waiters of one owner, each from a thread of its own. */
static void fill(uint64_t owner)
{
    for (unsigned i = 0; i < PLACES; i++)
        assert_int_not_equal(enter(&nobody_dies, owner, i), 0);
    assert_int_equal(count_all(), PLACES);
}

/* ------------------------------------------------------------------ coming and going ---- */

static void test_zeros_are_an_empty_table(void **state)
{
    (void)state;
    assert_int_equal(count_all(), 0);
    unsigned cursor = UINT32_MAX;
    struct waiter seen;
    assert_false(waiters_next(&world, &cursor, &seen));
}

static void test_who_waits_is_shown_until_he_leaves(void **state)
{
    (void)state;
    unsigned first = enter(&nobody_dies, 0, 5), second = enter(&nobody_dies, 77, 6), cursor = first - 1;
    struct waiter seen;
    assert_int_not_equal(first, 0);
    assert_int_not_equal(second, 0);
    assert_int_not_equal(first, second);
    assert_int_equal(count_all(), 2);
    assert_true(waiters_next(&world, &cursor, &seen));
    assert_int_equal(cursor, first);
    assert_int_equal(seen.owner, ME); /* the world's self */
    assert_int_equal(seen.thread, 5);
    cursor = second - 1;
    assert_true(waiters_next(&world, &cursor, &seen));
    assert_int_equal(seen.owner, 77);
    waiters_leave(&world, first, ME);
    assert_int_equal(count_all(), 1);
    waiters_leave(&world, second, 77);
    assert_int_equal(count_all(), 0);
}

static uint64_t child_of(void)
{
    return 99;
}

static void test_a_world_without_a_self_is_asked_for_it(void **state)
{
    (void)state;
    const struct bucket_world forked = {.who_am_i = child_of}, nameless = {0};
    struct waiter seen;
    unsigned ticket = enter(&forked, 0, 5), cursor = ticket - 1;
    assert_true(waiters_next(&world, &cursor, &seen));
    assert_int_equal(seen.owner, 99);
    assert_int_not_equal(enter(&nameless, 0, 6), 0);
    assert_int_equal(count_all(), 2);
}

static void test_cause_and_end_can_change(void **state)
{
    (void)state;
    unsigned ticket = enter(&nobody_dies, ME, 5), cursor = ticket - 1;
    struct waiter seen;
    waiters_update(&world, ticket, ME, CAUSE_HOLD, TIME_NEVER);
    assert_true(waiters_next(&world, &cursor, &seen));
    assert_int_equal(seen.cause, CAUSE_HOLD);
    check_waiter(&seen);
    waiters_update(&world, ticket, ME, (enum cause)999, -5);
    cursor = ticket - 1;
    assert_true(waiters_next(&world, &cursor, &seen));
    assert_int_equal(seen.cause, CAUSE_NONE);
    assert_int_equal(seen.until_ns, 0);
}

static void test_a_ticket_is_good_for_its_owner_only(void **state)
{
    (void)state;
    unsigned ticket = enter(&nobody_dies, ME, 5), free_ticket = ticket % PLACES + 1;
    const unsigned wrong[] = {0, PLACES + 1, UINT32_MAX, free_ticket};
    unsigned char before[SEGMENT_SIZE_MIN];
    memcpy(before, (const void *)world.header, sizeof before);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        waiters_update(&world, wrong[i], ME, CAUSE_HOLD, 1);
        waiters_leave(&world, wrong[i], ME);
        waiters_leave(&world, wrong[i], 0);
    }
    waiters_update(&world, ticket, 2, CAUSE_HOLD, 1); /* a child that was forked meanwhile, say */
    waiters_leave(&world, ticket, 2);
    waiters_update(&world, ticket, 0, CAUSE_HOLD, 1);
    waiters_leave(&world, ticket, 0);
    assert_memory_equal(before, (const void *)world.header, sizeof before);
    waiters_leave(&world, ticket, ME);
    assert_int_equal(count_all(), 0);
    memcpy(before, (const void *)world.header, sizeof before);
    waiters_leave(&world, ticket, ME);
    waiters_update(&world, ticket, ME, CAUSE_HOLD, 1);
    assert_memory_equal(before, (const void *)world.header, sizeof before);
}

static void test_reading_writes_nothing(void **state)
{
    (void)state;
    enter(&nobody_dies, ME, 5);
    make_read_only(&world);
    assert_int_equal(count_all(), 1);
}

static void test_texts_are_printable_and_cut(void **state)
{
    (void)state;
    struct waiter waiter = {.bucket = "a\nb\x1b[2Jc\xff"}, seen;
    unsigned cursor = 0;
    memset(waiter.endpoint, 'x', sizeof waiter.endpoint); /* without an end */
    memcpy(waiter.endpoint + WAITER_ENDPOINT_SIZE - 2, "\xc3\xbc", 2);
    waiters_enter(&world, &nobody_dies, &waiter);
    assert_true(waiters_next(&world, &cursor, &seen));
    assert_string_equal(seen.bucket, "a?b?[2Jc?");
    assert_int_equal(strlen(seen.endpoint), WAITER_ENDPOINT_SIZE - 2);
}

/* ------------------------------------------------------------------------- room ---- */

static void test_a_full_table_has_no_room_until_one_leaves(void **state)
{
    (void)state;
    fill(ME);
    assert_int_equal(enter(&nobody_dies, ME, 100), 0);
    assert_int_equal(enter(&gentle, 2, 101), 0);
    assert_int_equal(count_all(), PLACES);
    waiters_leave(&world, 17, ME);
    assert_int_equal(enter(&nobody_dies, ME, 102), 17);
    assert_int_equal(count_all(), PLACES);
}

static void test_a_thread_has_so_many_places_and_another_finds_more(void **state)
{
    (void)state;
    struct segment large = new_segment(SEGMENT_SIZE_DEFAULT);
    struct waiter waiter = waiter_of(ME, 5), seen;
    unsigned entered = 0, cursor = 0, count = 0;
    while (waiters_enter(&large, &nobody_dies, &waiter))
        entered++;
    assert_int_equal(entered, NEAR);
    for (waiter.thread = 6; waiter.thread < 2000; waiter.thread++)
        entered += waiters_enter(&large, &nobody_dies, &waiter) != 0;
    assert_in_range(entered, 1000, 1024); /* they start all over the table */
    while (waiters_next(&large, &cursor, &seen))
        count++;
    assert_int_equal(count, entered);
    free_segment(&large);
}

static void test_records_of_the_dead_are_taken_when_there_is_no_other(void **state)
{
    (void)state;
    const struct bucket_world without_news = {.self = ME};
    unsigned mine = enter(&reaper, ME, 1000);
    for (unsigned i = 1; i < PLACES; i++)
        assert_int_not_equal(enter(&reaper, 100 + i, i), 0);
    assert_int_equal(asked, 0);
    assert_int_equal(enter(&without_news, ME, 1001), 0);
    for (unsigned i = 1; i < PLACES; i++)
        assert_int_not_equal(enter(&reaper, ME, 2000 + i), 0);
    assert_int_equal(enter(&reaper, ME, 3000), 0); /* all are ours now, and we live */
    struct waiter seen;
    unsigned cursor = 0;
    for (unsigned i = 0; i < PLACES; i++) {
        assert_true(waiters_next(&world, &cursor, &seen));
        check_waiter(&seen);
        assert_int_equal(seen.owner, ME);
        assert_int_equal(seen.thread == 1000, cursor == mine);
    }
}

static void test_records_of_the_living_are_not(void **state)
{
    (void)state;
    fill(50);
    assert_int_equal(enter(&gentle, ME, 100), 0);
    assert_int_equal(asked, 1); /* one owner, asked for once and not 64 times */
    struct waiter seen;
    for (unsigned cursor = 0; waiters_next(&world, &cursor, &seen);)
        assert_int_equal(seen.owner, 50);
}

/* ---------------------------------------------------------------------- garbage ---- */

static void test_garbage_is_no_waiter_and_in_nobodys_way(void **state)
{
    (void)state;
    const int fills[] = {0xff, 0x7f, 0x80, 0x01, 0xaa};
    unsigned char *table = (unsigned char *)world.header + segment_regions(world.size).waiters;
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) {
        memset(table, fills[i], (size_t)PLACES * SEGMENT_WAITER_BYTES);
        assert_int_equal(count_all(), 0);
        unsigned ticket = enter(&reaper, ME, 5);
        assert_int_not_equal(ticket, 0);
        assert_int_equal(count_all(), 1);
        /* What was ours and is garbage now is not ours to write to. */
        memset(table, fills[i], (size_t)PLACES * SEGMENT_WAITER_BYTES);
        waiters_update(&world, ticket, ME, CAUSE_HOLD, TIME_NEVER);
        waiters_leave(&world, ticket, ME);
        assert_int_equal(count_all(), 0);
    }
}

/* Whoever may write the segment can seal what he likes. */
static void test_garbage_with_a_good_seal_is_in_range(void **state)
{
    (void)state;
    const uint64_t fills[] = {1, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63, UINT64_C(0x8080808080808080), 0x1b};
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) {
        struct sealed sealed;
        struct waiter seen;
        unsigned cursor = 0;
        for (size_t j = 0; j < SEALED_WORDS; j++)
            sealed.word[j] = fills[i];
        shared_store(record_at(&world, 0), fills[i]);
        sealed_write(record_at(&world, 0), &sealed);
        assert_true(waiters_next(&world, &cursor, &seen));
        assert_true(seen.owner == fills[i]);
        assert_true((unsigned)seen.cause < CAUSE_COUNT);
        assert_true(seen.began_ns >= 0 && seen.until_ns >= 0);
        assert_non_null(memchr(seen.bucket, 0, sizeof seen.bucket));
        assert_non_null(memchr(seen.endpoint, 0, sizeof seen.endpoint));
        assert_null(strpbrk(seen.endpoint, "\x1b\x80\xff"));
    }
    /* A record of nobody's is none, however well it is sealed. */
    struct sealed nobodys = {0};
    shared_store(record_at(&world, 0), 0);
    sealed_write(record_at(&world, 0), &nobodys);
    struct waiter seen;
    assert_false(waiters_next(&world, &(unsigned){0}, &seen));
}

/* --------------------------------------------------------- whole at every step ---- */

/* One of everything that writes, twice, in places that were used before. */
static void live_a_life(const struct bucket_world *outside, uint64_t owner)
{
    for (unsigned number = 1; number < 3; number++) {
        unsigned first = enter(outside, owner, number), second = enter(outside, owner, number + 10);
        waiters_update(&world, first, owner, CAUSE_HOLD, TIME_NEVER);
        waiters_leave(&world, first, owner);
        waiters_update(&world, second, owner, CAUSE_HOLD, TIME_NEVER);
        waiters_leave(&world, second, owner);
    }
}

static void test_it_is_whole_at_every_step(void **state)
{
    (void)state;
    observer = observe_all;
    live_a_life(&nobody_dies, ME);
    observer = NULL;
    fill(50);
    observer = observe_all; /* out of the hands of the dead */
    live_a_life(&reaper, ME);
}

static unsigned most_of_mine;

static void nobody_who_left_is_shown(void)
{
    struct waiter seen;
    for (unsigned cursor = 0; waiters_next(&world, &cursor, &seen);) {
        check_waiter(&seen);
        assert_int_equal(seen.thread, most_of_mine);
    }
}

/* The same process takes the place of its own that it has just left. */
static void test_who_left_is_not_shown_when_his_place_is_taken(void **state)
{
    (void)state;
    fill(ME);
    for (unsigned i = 1; i <= PLACES; i++)
        waiters_leave(&world, i, ME);
    most_of_mine = 500;
    observer = nobody_who_left_is_shown;
    assert_int_not_equal(enter(&nobody_dies, ME, 500), 0);
    observer = NULL;
    nobody_who_left_is_shown();
    assert_int_equal(count_all(), 1);
}

/* ---------------------------------------------------------------------- crashes ---- */

/* True when the child came to the end of its life. */
static bool dies_at(unsigned long step)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const uint64_t owner = 1000 + step;
        const struct bucket_world outside = {.self = owner, .owner_is_dead = everybody_but_us_is_dead};
        dies_after = step;
        live_a_life(&outside, owner);
        _exit(7);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7));
    return WEXITSTATUS(status) == 7;
}

static void test_a_death_at_any_step_leaves_nothing_to_repair(void **state)
{
    (void)state;
    unsigned long step = 1;
    for (bool lived = false; !lived; step++) {
        lived = dies_at(step);
        assert_in_range(count_all(), 0, 2);
        for (unsigned i = 0; i < PLACES; i++) /* every place can be had */
            assert_int_not_equal(enter(&reaper, ME, i), 0);
        assert_int_equal(count_all(), PLACES);
        for (unsigned i = 1; i <= PLACES; i++)
            waiters_leave(&world, i, ME);
        assert_int_equal(count_all(), 0);
        assert_true(step < 1000);
    }
    assert_true(step > 100); /* the hook is there */
}

/* ----------------------------------------------------------------------- races ---- */

#define THREADS 3
#define WAITS_EACH 3000

static _Atomic unsigned waiting;

/* Each shows for as long as he waits that his record is his. */
static void *wait_often(void *context)
{
    const uint64_t owner = (uint64_t)(uintptr_t)context + 10;
    const struct bucket_world outside = {.self = owner, .owner_is_dead = nobody_is_dead};
    yields_one_in = 9;
    for (unsigned i = 0; i < WAITS_EACH; i++) {
        const struct waiter waiter = waiter_of(owner, i % 7);
        unsigned ticket = waiters_enter(&world, &outside, &waiter), cursor = ticket - 1;
        struct waiter seen;
        assert_int_not_equal(ticket, 0);
        waiters_update(&world, ticket, owner, CAUSE_HOLD, TIME_NEVER);
        assert_true(waiters_next(&world, &cursor, &seen));
        assert_int_equal(cursor, ticket);
        assert_int_equal(seen.owner, owner);
        assert_int_equal(seen.thread, i % 7);
        waiters_leave(&world, ticket, owner);
    }
    atomic_fetch_sub(&waiting, 1);
    return NULL;
}

static void test_nobodys_record_is_taken_or_torn(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    waiting = THREADS;
    for (uintptr_t i = 0; i < THREADS; i++) // NOLINTNEXTLINE(performance-no-int-to-ptr)
        assert_int_equal(pthread_create(&thread[i], NULL, wait_often, (void *)i), 0);
    while (atomic_load(&waiting))
        count_all(); /* one may be seen where it was and where it is: how many says nothing */
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(count_all(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_zeros_are_an_empty_table),
        TEST(test_who_waits_is_shown_until_he_leaves),
        TEST(test_a_world_without_a_self_is_asked_for_it),
        TEST(test_cause_and_end_can_change),
        TEST(test_a_ticket_is_good_for_its_owner_only),
        TEST(test_reading_writes_nothing),
        TEST(test_texts_are_printable_and_cut),
        TEST(test_a_full_table_has_no_room_until_one_leaves),
        TEST(test_a_thread_has_so_many_places_and_another_finds_more),
        TEST(test_records_of_the_dead_are_taken_when_there_is_no_other),
        TEST(test_records_of_the_living_are_not),
        TEST(test_garbage_is_no_waiter_and_in_nobodys_way),
        TEST(test_garbage_with_a_good_seal_is_in_range),
        TEST(test_it_is_whole_at_every_step),
        TEST(test_who_left_is_not_shown_when_his_place_is_taken),
        TEST(test_a_death_at_any_step_leaves_nothing_to_repair),
        TEST(test_nobodys_record_is_taken_or_torn),
    };
    return cmocka_run_group_tests_name("waiters", tests, NULL, NULL);
}
