/* SPDX-License-Identifier: MIT */
/*
 * Real processes that write events and wait, over one shared mapping: killed and stopped at random in
 * the middle of it, while another reads all the time, and in the company of some that write garbage.
 * No verdict hangs on how fast anything was; an alarm ends the test only if something hangs.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/segment_world.h"

#include "core/events.h"
#include "core/system/clock.h"
#include "core/system/process.h"
#include "core/waiters.h"

#define READER 0 /* is stopped, but never killed */
#define WORKERS 6
#define PLACES 64 /* of the smallest segment: for waiters, and for events */
#define HELD 16   /* waits of one worker at once: more than there is room for, all together */
#define RUN_NS (2 * S)
#define HANGS_AFTER_S 120

/* What the processes share beside the segment, where no garbage is written. */
struct board {
    _Atomic bool stop;
    _Atomic uint64_t begun[WORKERS]; /* events that each worker, and those before him, began to add */
    _Atomic uint64_t turns[WORKERS];
    _Atomic uint64_t events_read, waiters_read;
};

static struct board *board;
static struct segment segment;
static uint64_t random_state;

static uint64_t draw(uint64_t limit)
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % limit;
}

static int set_up(void **state)
{
    (void)state;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    segment = new_segment(SEGMENT_SIZE_MIN);
    alarm(HANGS_AFTER_S);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    alarm(0);
    free_segment(&segment);
    munmap(board, sizeof *board);
    return 0;
}

/* A child's way to fail: the parent tells by the status. */
static void insist(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "pid %d: %s\n", (int)getpid(), what);
    _exit(3);
}

static pid_t start(void (*body)(unsigned), unsigned number)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid)
        return pid;
    alarm(HANGS_AFTER_S);
    random_state = (uint64_t)getpid() * 1000003 + number;
    body(number);
    _exit(0);
}

static void sleep_ns(int64_t ns)
{
    struct timespec time = {.tv_sec = ns / S, .tv_nsec = ns % S};
    ppoll(NULL, 0, &time, NULL);
}

static struct bucket_world this_process(void)
{
    return (struct bucket_world){.self = process_self(), .owner_is_dead = process_is_dead, .clock_ns = clock_now_ns};
}

/* Kills and stops workers for a while, and starts others in their places; then ends them. */
static unsigned torment(void (*body)(unsigned), bool kill_them)
{
    pid_t pid[WORKERS];
    unsigned killed = 0;
    for (unsigned i = 0; i < WORKERS; i++)
        pid[i] = start(body, i);
    for (int64_t end_ns = clock_now_ns() + RUN_NS; clock_now_ns() < end_ns || (kill_them && !killed);) {
        unsigned victim = (unsigned)draw(WORKERS);
        sleep_ns((int64_t)draw(10 * MS));
        if (draw(3) == 0 || victim == READER) {
            kill(pid[victim], SIGSTOP);
            sleep_ns((int64_t)draw(10 * MS));
            kill(pid[victim], SIGCONT);
        } else if (kill_them) {
            kill(pid[victim], SIGKILL);
            waitpid(pid[victim], NULL, 0);
            pid[victim] = start(body, victim);
            killed++;
        }
    }
    atomic_store(&board->stop, true);
    for (unsigned i = 0; i < WORKERS; i++) {
        int status;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("worker %u ended with status 0x%x", i, status);
    }
    return killed;
}

/* ------------------------------------------------- what tells itself in every field ---- */

static struct event event_of(unsigned worker, uint64_t number)
{
    struct event event = {
        .time_ms = (int64_t)number * 7,
        .kind = (enum event_kind)(number % EVENT_KIND_COUNT),
        .cause = (enum cause)(number % CAUSE_COUNT),
        .status = (int)worker,
        .attempt = (unsigned)number,
        .wait_ns = (int64_t)number,
        .pid = (int)(number % 30000),
    };
    snprintf(event.program, sizeof event.program, "worker%u", worker);
    snprintf(event.endpoint, sizeof event.endpoint, "GET host%llu.example.com/%0*d", (unsigned long long)number,
             (int)(number % 80), 0);
    return event;
}

static void check_event(const struct event *event)
{
    const struct event expected = event_of((unsigned)event->status, (uint64_t)event->wait_ns);
    insist(event->status > READER && event->status < WORKERS, "an event of nobody's");
    insist(event->time_ms == expected.time_ms && event->kind == expected.kind && event->cause == expected.cause &&
               event->attempt == expected.attempt && event->pid == expected.pid &&
               strcmp(event->program, expected.program) == 0 && strcmp(event->endpoint, expected.endpoint) == 0,
           "a torn event");
}

#define NUMBER_BITS 20 /* of a waiter's number; the pid of its owner is above */

static struct waiter waiter_of(uint64_t number)
{
    struct waiter waiter = {
        .thread = (int)(number % 1000),
        .cause = CAUSE_QUOTA,
        .began_ns = (int64_t)number,
        .until_ns = (int64_t)number * 2,
    };
    snprintf(waiter.bucket, sizeof waiter.bucket, "host%llu.example.com:443", (unsigned long long)number);
    snprintf(waiter.endpoint, sizeof waiter.endpoint, "GET host%llu.example.com/%0*d", (unsigned long long)number,
             (int)(number % 50), 0);
    return waiter;
}

static void check_waiter(const struct waiter *waiter)
{
    const struct waiter expected = waiter_of((uint64_t)waiter->began_ns);
    insist(waiter->began_ns >> NUMBER_BITS == (uint32_t)waiter->owner, "another's record under his name");
    insist(waiter->thread == expected.thread && strcmp(waiter->bucket, expected.bucket) == 0 &&
               strcmp(waiter->endpoint, expected.endpoint) == 0 &&
               (waiter->cause == CAUSE_QUOTA ? waiter->until_ns == expected.until_ns
                                             : waiter->cause == CAUSE_HOLD && waiter->until_ns == TIME_NEVER),
           "a torn record of a waiter");
}

/* --------------------------------------------------------------------- the reader ---- */

/* Follows the ring.  Of each worker the events come in the order in which he added them. */
static void read_events(uint64_t *next, uint64_t last[WORKERS])
{
    uint64_t first, end = events_range(&segment, &first);
    insist(end >= *next && end - first <= PLACES, "a range out of range");
    for (uint64_t number = *next > first ? *next : first; number < end; number++) {
        struct event event;
        if (!events_read(&segment, number, &event))
            continue;
        check_event(&event);
        insist(event.number == number, "another number than asked for");
        insist((uint64_t)event.wait_ns >= last[event.status], "an event that was read before");
        last[event.status] = (uint64_t)event.wait_ns + 1;
        atomic_fetch_add(&board->events_read, 1);
    }
    *next = end;
}

static void read_waiters(void)
{
    struct waiter waiter;
    unsigned seen = 0;
    for (unsigned cursor = 0; waiters_next(&segment, &cursor, &waiter); seen++) {
        check_waiter(&waiter);
        atomic_fetch_add(&board->waiters_read, 1);
    }
    insist(seen <= PLACES, "more waiters than places");
}

static void reader(void)
{
    uint64_t next = 0, last[WORKERS] = {0};
    while (!atomic_load(&board->stop) || !atomic_load(&board->events_read) || !atomic_load(&board->waiters_read)) {
        read_events(&next, last);
        read_waiters();
    }
}

/* -------------------------------------------------------------------- the workers ---- */

static void add_event(unsigned worker)
{
    const struct event event = event_of(worker, atomic_fetch_add(&board->begun[worker], 1));
    events_add(&segment, &event);
}

/* While its owner lives, a record is his and says what he wrote. */
static void check_mine(unsigned ticket, uint64_t number)
{
    struct waiter waiter;
    unsigned cursor = ticket - 1;
    insist(waiters_next(&segment, &cursor, &waiter) && cursor == ticket, "my record is not there");
    insist(waiter.owner == process_self(), "my record is another's");
    insist((uint64_t)waiter.began_ns == number, "my record is another of mine");
    check_waiter(&waiter);
}

static void worker(unsigned me)
{
    const struct bucket_world world = this_process();
    unsigned ticket[HELD] = {0};
    uint64_t number[HELD] = {0};
    if (me == READER) {
        reader();
        return;
    }
    while (!atomic_load(&board->stop)) {
        unsigned at = (unsigned)draw(HELD);
        add_event(me);
        if (!ticket[at]) {
            number[at] = (uint64_t)getpid() << NUMBER_BITS | draw(UINT64_C(1) << NUMBER_BITS);
            const struct waiter waiter = waiter_of(number[at]);
            ticket[at] = waiters_enter(&segment, &world, &waiter);
            continue;
        }
        if (draw(2))
            waiters_update(&segment, ticket[at], world.self, CAUSE_HOLD, TIME_NEVER);
        check_mine(ticket[at], number[at]);
        if (draw(3) == 0) {
            waiters_leave(&segment, ticket[at], world.self);
            ticket[at] = 0;
        }
    }
}

static void test_nothing_is_torn_lost_or_stolen(void **state)
{
    (void)state;
    uint64_t begun = 0, first;
    random_state = 42;
    unsigned killed = torment(worker, true);
    assert_true(killed > 0);
    assert_true(atomic_load(&board->events_read) > 0 && atomic_load(&board->waiters_read) > 0);
    for (unsigned i = 0; i < WORKERS; i++)
        begun += atomic_load(&board->begun[i]);
    /* Each that was begun has a number, unless its writer died before he took one. */
    uint64_t end = events_range(&segment, &first);
    assert_in_range(end, begun - killed, begun);
    assert_int_equal(first, end - PLACES);
}

static void test_what_the_dead_had_is_there_for_others(void **state)
{
    (void)state;
    const struct bucket_world world = this_process();
    uint64_t first, end;
    struct waiter seen;
    unsigned entered = 0, counted = 0;
    random_state = 43;
    torment(worker, true);
    end = events_range(&segment, &first);
    for (uint64_t i = 0; i < PLACES; i++)
        add_event(1);
    for (uint64_t number = end; number < end + PLACES; number++) {
        struct event event;
        assert_true(events_read(&segment, number, &event));
        check_event(&event);
    }
    for (uint64_t i = 0; i < PLACES; i++) {
        const struct waiter waiter = waiter_of(i);
        entered += waiters_enter(&segment, &world, &waiter) != 0;
    }
    assert_int_equal(entered, PLACES);
    for (unsigned cursor = 0; waiters_next(&segment, &cursor, &seen); counted++)
        assert_true(seen.owner == world.self);
    assert_int_equal(counted, PLACES);
}

/* ------------------------------------------------------------------------- garbage ---- */

/* Numbers that are more telling than most. */
static uint64_t telling_number(void)
{
    static const uint64_t numbers[] = {0, 1, 2, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1, 0xff00ff00ff00ff00};
    return draw(2) ? numbers[draw(sizeof numbers / sizeof *numbers)] : draw(UINT64_MAX);
}

static void vandal(void)
{
    const struct segment_regions regions = segment_regions(segment.size);
    _Atomic uint64_t *word = (_Atomic uint64_t *)segment.header;
    const uint64_t from = regions.waiters / 8, room = (regions.fleet - regions.waiters) / 8;
    while (!atomic_load(&board->stop)) {
        uint64_t at = from + draw(room);
        unsigned length = draw(8) ? 1 : (unsigned)draw(200);
        for (unsigned i = 0; i < length && at + i < from + room; i++)
            atomic_store_explicit(&word[at + i], telling_number(), memory_order_relaxed);
        if (draw(20) == 0)
            atomic_store(&segment.header->event_count, telling_number());
    }
}

static void use_everything(const struct bucket_world *world, uint64_t number)
{
    const struct event written = event_of((unsigned)(number % WORKERS), number);
    const struct waiter waiting = waiter_of(number);
    struct event event;
    struct waiter waiter;
    uint64_t first, end = events_range(&segment, &first), steps = 0;
    unsigned seen = 0, ticket = waiters_enter(&segment, world, &waiting);
    events_add(&segment, &written);
    for (uint64_t at = first; at < end; at++, steps++)
        if (events_read(&segment, at, &event))
            insist(memchr(event.endpoint, 0, sizeof event.endpoint) != NULL, "a text without an end");
    insist(steps <= PLACES, "more events than places");
    waiters_update(&segment, ticket, world->self, CAUSE_HOLD, TIME_NEVER);
    for (unsigned cursor = 0; waiters_next(&segment, &cursor, &waiter); seen++)
        insist(memchr(waiter.endpoint, 0, sizeof waiter.endpoint) != NULL, "a text without an end");
    insist(seen <= PLACES, "more waiters than places");
    waiters_leave(&segment, ticket, world->self);
}

static void victim(unsigned me)
{
    const struct bucket_world world = this_process();
    if (me < 2) {
        vandal();
        return;
    }
    do {
        use_everything(&world, draw(UINT64_C(1) << 40));
        atomic_fetch_add(&board->turns[me], 1);
    } while (!atomic_load(&board->stop));
}

static void test_garbage_crashes_and_hangs_nobody(void **state)
{
    (void)state;
    random_state = 44;
    torment(victim, false);
    for (unsigned i = 2; i < WORKERS; i++)
        assert_true(atomic_load(&board->turns[i]) > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_torn_lost_or_stolen),
        TEST(test_what_the_dead_had_is_there_for_others),
        TEST(test_garbage_crashes_and_hangs_nobody),
    };
    return cmocka_run_group_tests_name("events and waiters of processes", tests, NULL, NULL);
}
