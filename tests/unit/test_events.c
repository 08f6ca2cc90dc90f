/* SPDX-License-Identifier: MIT */
/*
 * The event ring: what was written is read, the latest of it, whole or not at all, whoever dies or
 * is overtaken on the way, and whatever is in memory.  events.c and sealed.c are included, to come at
 * their inside and to put a step of our own between their writes.
 */

static void between_writes(void);
#define SHARED_STEP() between_writes()
#include "core/events.c" // NOLINT(bugprone-suspicious-include)
#undef WORD
#include "core/sealed.c" // NOLINT(bugprone-suspicious-include)

#include "tests/unit/segment_world.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACES 64 /* of the smallest segment */

/* Writes left until this process dies; 0: it lives on. */
static unsigned long dies_after;
/* Called between any two writes, but not by itself. */
static void (*observer)(void);
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

static int set_up(void **state)
{
    (void)state;
    world = new_segment(SEGMENT_SIZE_MIN);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    observer = NULL;
    free_segment(&world);
    return 0;
}

/* An event that tells one number in all of its fields. */
static struct event event_of(uint64_t number)
{
    struct event event = {
        .time_ms = (int64_t)number * 3,
        .kind = (enum event_kind)(number % EVENT_KIND_COUNT),
        .cause = (enum cause)(number % CAUSE_COUNT),
        .status = (int)(number % 1000),
        .attempt = (unsigned)number,
        .wait_ns = (int64_t)number,
        .pid = (int)(number % 30000),
    };
    snprintf(event.program, sizeof event.program, "program%llu", (unsigned long long)number);
    snprintf(event.endpoint, sizeof event.endpoint, "GET host%llu.example.com/%0*d", (unsigned long long)number,
             (int)(number % 80), 0);
    return event;
}

static void add(uint64_t number)
{
    const struct event event = event_of(number);
    events_add(&world, &event);
}

/* The number that it tells; fails if it does not tell it everywhere. */
static uint64_t number_of(const struct event *event)
{
    const uint64_t number = (uint64_t)event->wait_ns;
    const struct event expected = event_of(number);
    assert_int_equal(event->time_ms, expected.time_ms);
    assert_int_equal(event->kind, expected.kind);
    assert_int_equal(event->cause, expected.cause);
    assert_int_equal(event->status, expected.status);
    assert_int_equal(event->attempt, expected.attempt);
    assert_int_equal(event->pid, expected.pid);
    assert_string_equal(event->program, expected.program);
    assert_string_equal(event->endpoint, expected.endpoint);
    return number;
}

/* -------------------------------------------------------------------- the ring ---- */

static void test_every_kind_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < EVENT_KIND_COUNT; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(event_kind_name((enum event_kind)i), event_kind_name((enum event_kind)j));
    assert_string_equal(event_kind_name(EVENT_REFUSED), "refused");
    assert_string_equal(event_kind_name(EVENT_GAVE_UP), "gave_up");
    assert_string_equal(event_kind_name(EVENT_WOULD_WAIT), "would_wait");
    assert_string_equal(event_kind_name(EVENT_OPERATOR), "operator");
    assert_string_equal(event_kind_name(EVENT_KIND_COUNT), "unknown");
    assert_string_equal(event_kind_name((enum event_kind) - 1), "unknown");
}

static void test_zeros_are_an_empty_ring(void **state)
{
    (void)state;
    struct event event;
    uint64_t first = 99;
    assert_int_equal(events_range(&world, &first), 0);
    assert_int_equal(first, 0);
    assert_false(events_read(&world, 0, &event));
    assert_false(events_read(&world, UINT64_MAX, &event));
}

static void test_an_event_is_read_as_it_was_written(void **state)
{
    (void)state;
    const struct event written = {
        .number = 77, /* not looked at */
        .time_ms = INT64_C(1791000000123),
        .kind = EVENT_GAVE_UP,
        .cause = CAUSE_MAX_WAIT,
        .status = 429,
        .attempt = 3,
        .wait_ns = TIME_NEVER,
        .pid = INT32_MAX,
        .program = "curl",
        .endpoint = "GET gr\xc3\xbc\xc3\x9f.example.com/v1/*",
    };
    struct event read = {0};
    events_add(&world, &written);
    assert_true(events_read(&world, 0, &read));
    assert_int_equal(read.number, 0);
    assert_int_equal(read.time_ms, written.time_ms);
    assert_int_equal(read.kind, EVENT_GAVE_UP);
    assert_int_equal(read.cause, CAUSE_MAX_WAIT);
    assert_int_equal(read.status, 429);
    assert_int_equal(read.attempt, 3);
    assert_int_equal(read.wait_ns, TIME_NEVER);
    assert_int_equal(read.pid, INT32_MAX);
    assert_string_equal(read.program, written.program);
    assert_string_equal(read.endpoint, written.endpoint);
}

static void test_the_latest_are_kept(void **state)
{
    (void)state;
    uint64_t first;
    for (uint64_t i = 0; i < 3 * PLACES + 5; i++)
        add(i);
    assert_int_equal(events_range(&world, &first), 3 * PLACES + 5);
    assert_int_equal(first, 2 * PLACES + 5);
    for (uint64_t i = 0; i < 4 * PLACES; i++) {
        struct event event;
        assert_int_equal(events_read(&world, i, &event), i >= first && i < 3 * PLACES + 5);
        if (i >= first && i < 3 * PLACES + 5) {
            assert_int_equal(event.number, i);
            assert_int_equal(number_of(&event), i);
        }
    }
}

static void test_the_default_segment_keeps_a_thousand(void **state)
{
    (void)state;
    struct segment large = new_segment(SEGMENT_SIZE_DEFAULT);
    const struct event written = event_of(5);
    struct event read;
    uint64_t first;
    for (int i = 0; i < 1500; i++)
        events_add(&large, &written);
    assert_int_equal(events_range(&large, &first) - first, 1024);
    for (uint64_t i = first; i < 1500; i++)
        assert_true(events_read(&large, i, &read));
    free_segment(&large);
}

static void test_reading_writes_nothing(void **state)
{
    (void)state;
    struct event event;
    uint64_t first;
    add(0);
    make_read_only(&world);
    assert_int_equal(events_range(&world, &first), 1);
    assert_true(events_read(&world, 0, &event));
    assert_false(events_read(&world, 1, &event));
}

/* -------------------------------------------------------------- what is in range ---- */

static void test_what_is_out_of_range_is_brought_into_it(void **state)
{
    (void)state;
    const struct event written = {
        .time_ms = INT64_MAX, .cause = (enum cause)999, .status = 1000, .wait_ns = -1, .pid = -1};
    struct event read = {0};
    events_add(&world, &written);
    assert_true(events_read(&world, 0, &read));
    assert_int_equal(read.time_ms, TIME_MOST_MS);
    assert_int_equal(read.cause, CAUSE_NONE);
    assert_int_equal(read.status, 0);
    assert_int_equal(read.wait_ns, 0);
    assert_int_equal(read.pid, 0);
}

static void test_a_kind_without_a_name_is_no_event(void **state)
{
    (void)state;
    const struct event strange = {.kind = EVENT_KIND_COUNT}, aliased = {.kind = (enum event_kind)256};
    uint64_t first;
    events_add(&world, &strange);
    events_add(&world, &aliased);
    assert_int_equal(events_range(&world, &first), 0);
}

/* Whoever may write the segment can seal what he likes. */
static void test_garbage_with_a_good_seal_is_in_range(void **state)
{
    (void)state;
    const uint64_t fills[] = {0, 1, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63, UINT64_C(0x8080808080808080), 0x1b};
    unsigned seen = 0;
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++)
        for (unsigned kind = 0; kind < 256; kind++) {
            struct sealed sealed;
            struct event event;
            for (size_t j = 0; j < SEALED_WORDS; j++)
                sealed.word[j] = fills[i];
            sealed.word[4] = (fills[i] & ~UINT64_C(0xff)) | kind;
            put(&world, 0, &sealed);
            if (!events_read(&world, 0, &event))
                continue;
            seen++;
            assert_true((unsigned)event.kind < EVENT_KIND_COUNT);
            assert_true((unsigned)event.cause < CAUSE_COUNT);
            assert_in_range(event.status, 0, 999);
            assert_true(event.wait_ns >= 0 && event.time_ms >= 0 && event.time_ms <= TIME_MOST_MS && event.pid >= 0);
            assert_non_null(memchr(event.program, 0, sizeof event.program));
            assert_non_null(memchr(event.endpoint, 0, sizeof event.endpoint));
            assert_null(strpbrk(event.endpoint, "\x1b\x80\xff"));
        }
    assert_int_equal(seen, EVENT_KIND_COUNT * (sizeof fills / sizeof *fills));
}

static void test_garbage_is_no_event(void **state)
{
    (void)state;
    const int fills[] = {0x00, 0xff, 0x7f, 0x80, 0x01, 0xaa};
    const size_t ring_bytes = PLACES * SEGMENT_EVENT_BYTES;
    const struct segment_regions regions = segment_regions(world.size);
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) {
        memset((unsigned char *)world.header + regions.events, fills[i], ring_bytes);
        memset((void *)&world.header->event_count, fills[i], 8);
        uint64_t first, end = events_range(&world, &first), steps = 0;
        struct event event;
        for (uint64_t number = first; number < end; number++, steps++)
            assert_false(events_read(&world, number, &event));
        assert_in_range(steps, 0, PLACES);
        /* And what is added there is read, also where the numbers come to an end. */
        add(5);
        assert_int_equal(events_read(&world, end, &event), end != UINT64_MAX);
    }
}

/* -------------------------------------------------------------------- the texts ---- */

static void test_texts_are_printable_and_cut(void **state)
{
    (void)state;
    struct event written = {.program = "a\nb\x1b[2Jc\xff"}, read;
    memset(written.endpoint, 'x', sizeof written.endpoint); /* without an end */
    memcpy(written.endpoint + EVENT_ENDPOINT_SIZE - 2, "\xc3\xbc", 2);
    events_add(&world, &written);
    assert_true(events_read(&world, 0, &read));
    assert_string_equal(read.program, "a?b?[2Jc?");
    assert_int_equal(strlen(read.endpoint), EVENT_ENDPOINT_SIZE - 2);
    assert_int_equal(strspn(read.endpoint, "x"), EVENT_ENDPOINT_SIZE - 2);
}

/* The stack that an event lies on may hold anything, and the segment is read by others. */
static void test_nothing_behind_a_text_is_kept(void **state)
{
    (void)state;
    struct event written;
    memset(&written, 'S', sizeof written);
    written.kind = EVENT_CUT;
    memcpy(written.program, "curl", 5);
    memcpy(written.endpoint, "GET host/", 10);
    events_add(&world, &written);
    const char *ring = (const char *)world.header + segment_regions(world.size).events;
    assert_null(memmem(ring, SEGMENT_EVENT_BYTES, "SSSSSSSSS", 9));
    assert_non_null(
        memmem(ring, SEGMENT_EVENT_BYTES, "curl\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32));
}

/* ---------------------------------------------------------------------- writers ---- */

/* Every event that can be read is whole, and is the one that was added under its number. */
static void check_all(void)
{
    uint64_t first, end = events_range(&world, &first);
    assert_true(end - first <= PLACES);
    for (uint64_t number = 0; number < end + PLACES; number++) {
        struct event event;
        if (events_read(&world, number, &event)) {
            assert_true(number < end);
            assert_int_equal(event.number, number);
            assert_int_equal(number_of(&event), number);
        }
    }
}

static void test_it_is_whole_at_every_step(void **state)
{
    (void)state;
    struct event event;
    observer = check_all;
    for (uint64_t i = 0; i < PLACES + 10; i++)
        add(i);
    observer = NULL;
    check_all();
    for (uint64_t i = 10; i < PLACES + 10; i++)
        assert_true(events_read(&world, i, &event));
}

static unsigned steps_until;

/* Stopped at one of its steps for as long as the ring takes to go round. */
static void go_round_once(void)
{
    if (--steps_until)
        return;
    for (unsigned i = 0; i < PLACES; i++)
        add(shared_load(&world.header->event_count));
}

static void test_a_writer_that_is_overtaken_spoils_one_event_at_most(void **state)
{
    (void)state;
    for (unsigned step = 2; step < 40; step++) {
        struct event event;
        uint64_t first, mine = shared_load(&world.header->event_count), readable = 0;
        steps_until = step;
        observer = go_round_once;
        add(mine);
        observer = NULL;
        check_all();
        if (steps_until)
            break;
        uint64_t end = events_range(&world, &first);
        assert_int_equal(end, mine + 1 + PLACES);
        for (uint64_t number = first; number < end; number++)
            readable += events_read(&world, number, &event);
        assert_true(readable >= PLACES - 1);
        assert_true(step < 39);
    }
}

static void test_an_old_event_does_not_replace_a_later_one(void **state)
{
    (void)state;
    struct event event;
    struct sealed old;
    for (uint64_t i = 0; i < PLACES + 1; i++)
        add(i);
    const struct event first = event_of(0);
    pack(&first, &old);
    put(&world, 0, &old);
    assert_true(events_read(&world, PLACES, &event));
    assert_int_equal(number_of(&event), PLACES);
    /* A number that nobody has taken yet is none: it does not stop the place for ever. */
    shared_store(place_of(&world, 0), UINT64_MAX);
    put(&world, 0, &old);
    assert_true(events_read(&world, 0, &event));
}

/* ---------------------------------------------------------------------- crashes ---- */

/* True when the child came to the end of its life. */
static bool dies_at(unsigned long step, uint64_t number)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dies_after = step;
        add(number);
        _exit(7);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7));
    return WEXITSTATUS(status) == 7;
}

static void test_a_death_at_any_step_costs_one_event_at_most(void **state)
{
    (void)state;
    unsigned long step = 1;
    for (uint64_t i = 0; i < PLACES; i++)
        add(i);
    for (bool lived = false; !lived; step++) {
        struct event event;
        uint64_t first, before = shared_load(&world.header->event_count), readable = 0;
        lived = dies_at(step, before);
        check_all();
        uint64_t end = events_range(&world, &first);
        assert_true(end - before <= 1);
        for (uint64_t number = first; number < end; number++)
            readable += events_read(&world, number, &event);
        assert_true(readable >= PLACES - 1);
        assert_true(readable == PLACES || !lived);
        /* The next goes round once and finds nothing in its way. */
        for (uint64_t number = end; number < end + PLACES; number++)
            add(number);
        for (uint64_t number = end; number < end + PLACES; number++)
            assert_true(events_read(&world, number, &event));
        assert_true(step < 100);
    }
    assert_true(step > 30); /* the hook is there */
}

/* ----------------------------------------------------------------------- races ---- */

#define WRITERS 3
#define EVENTS_EACH 4000

static _Atomic unsigned writing;

static void *write_many(void *context)
{
    yields_one_in = 9;
    for (unsigned i = 0; i < EVENTS_EACH; i++)
        add((uint64_t)(uintptr_t)context * EVENTS_EACH + i);
    atomic_fetch_sub(&writing, 1);
    return NULL;
}

/* Writers meet in places; each event that is read is the event of one of them, whole. */
static void test_no_event_is_torn_by_those_who_meet(void **state)
{
    (void)state;
    pthread_t thread[WRITERS];
    uint64_t first, end = 0, seen = 0;
    writing = WRITERS;
    for (uintptr_t i = 0; i < WRITERS; i++) // NOLINTNEXTLINE(performance-no-int-to-ptr)
        assert_int_equal(pthread_create(&thread[i], NULL, write_many, (void *)i), 0);
    while (atomic_load(&writing)) {
        end = events_range(&world, &first);
        for (uint64_t number = first; number < end; number++) {
            struct event event;
            if (!events_read(&world, number, &event))
                continue;
            seen++;
            assert_int_equal(event.number, number);
            assert_true(number_of(&event) < (uint64_t)WRITERS * EVENTS_EACH);
        }
    }
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(events_range(&world, &first), WRITERS * EVENTS_EACH);
    assert_true(seen > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_kind_has_a_name_of_its_own),
        TEST(test_zeros_are_an_empty_ring),
        TEST(test_an_event_is_read_as_it_was_written),
        TEST(test_the_latest_are_kept),
        TEST(test_the_default_segment_keeps_a_thousand),
        TEST(test_reading_writes_nothing),
        TEST(test_what_is_out_of_range_is_brought_into_it),
        TEST(test_a_kind_without_a_name_is_no_event),
        TEST(test_garbage_with_a_good_seal_is_in_range),
        TEST(test_garbage_is_no_event),
        TEST(test_texts_are_printable_and_cut),
        TEST(test_nothing_behind_a_text_is_kept),
        TEST(test_it_is_whole_at_every_step),
        TEST(test_a_writer_that_is_overtaken_spoils_one_event_at_most),
        TEST(test_an_old_event_does_not_replace_a_later_one),
        TEST(test_a_death_at_any_step_costs_one_event_at_most),
        TEST(test_no_event_is_torn_by_those_who_meet),
    };
    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
