/* SPDX-License-Identifier: MIT */
/*
 * Real processes over one shared mapping, in real time: killed and stopped at random while they
 * book, wait and publish; looking up more names than there is room for; and in the company of one
 * that writes garbage over everything.  No verdict here hangs on how fast anything was; an alarm
 * ends the test only if something hangs.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/bucket_world.h"

#include "core/system/clock.h"
#include "core/system/mapping.h"
#include "core/system/process.h"

#define WORKERS 6
#define RUN_NS (3 * S)
#define HANGS_AFTER_S 120
#define LOG_MAX 100000

/* What the processes share beside the segment, where no garbage is written. */
struct board {
    _Atomic bool stop;
    _Atomic unsigned logged, blocks;
    _Atomic int64_t act_ns[LOG_MAX];
    _Atomic int64_t block_ns[LOG_MAX][2]; /* known from, until */
    _Atomic uint64_t turns[WORKERS];
};

static struct board *board;
static struct segment segment;
static struct mapping mapping;
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
    const uint64_t seed[3] = {1, 2, 3};
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    assert_true(mapping_private(&mapping, SEGMENT_SIZE_MIN));
    assert_int_equal(segment_attach(&segment, mapping.memory, mapping.size, 7, seed), SEGMENT_OK);
    alarm(HANGS_AFTER_S);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    alarm(0);
    mapping_close(&mapping);
    munmap(board, sizeof *board);
    return 0;
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
    for (int64_t end_ns = clock_now_ns() + RUN_NS; clock_now_ns() < end_ns;) {
        unsigned victim = (unsigned)draw(WORKERS);
        sleep_ns((int64_t)draw(20 * MS));
        if (draw(4) == 0) { /* all but one, who goes on, and then all at once */
            for (unsigned i = 0; i < WORKERS; i++)
                kill(pid[i], i == victim ? SIGCONT : SIGSTOP);
            sleep_ns((int64_t)draw(150 * MS));
            for (unsigned i = 0; i < WORKERS; i++)
                kill(pid[i], SIGCONT);
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
            fail_msg("a worker ended with status 0x%x", status);
    }
    return killed;
}

/* ----------------------------------------------------------- the quota is kept ---- */

#define RATE 40
#define BURST 1
#define JITTER_NS (4 * MS)

static struct limits limits_of_all(void)
{
    struct limits limits = one_limit(RATE, 100 * MS, BURST);
    limits.item[0].jitter_ns = JITTER_NS;
    return limits;
}

static void log_act(int64_t now_ns)
{
    unsigned at = atomic_fetch_add(&board->logged, 1);
    if (at < LOG_MAX)
        atomic_store(&board->act_ns[at], now_ns);
}

/* Whoever reads the clock after `from` knows of it. */
static void log_block(int64_t from_ns, int64_t until_ns)
{
    unsigned at = atomic_fetch_add(&board->blocks, 1);
    if (at < LOG_MAX) {
        atomic_store(&board->block_ns[at][0], from_ns);
        atomic_store(&board->block_ns[at][1], until_ns);
    }
}

static void send_one(struct bucket *bucket)
{
    struct bucket_slot slot = {0};
    for (;;) {
        int64_t now_ns = clock_now_ns(), until_ns;
        if (!slot.booked)
            bucket_book(bucket, now_ns, &slot);
        switch (bucket_check(bucket, &slot, now_ns, &until_ns)) {
        case BUCKET_ACT:
            log_act(now_ns);
            return;
        case BUCKET_WAIT:
            if (atomic_load(&board->stop))
                return;
            sleep_ns(until_ns - now_ns);
            break;
        case BUCKET_FORFEIT:
            bucket_cancel(bucket, &slot);
            break;
        }
    }
}

static void say_a_word(struct bucket *bucket, const struct bucket_world *world)
{
    int64_t now_ns = clock_now_ns(), until_ns = now_ns + (int64_t)draw(20 * MS);
    if (bucket_block(bucket, world, now_ns, until_ns, draw(2) ? BLOCK_SOFT : BLOCK_HARD))
        log_block(clock_now_ns(), until_ns);
}

/* The first has another file, with one window more, and the second hears words of the server's all
 * the time, also while others are in force. */
static void sender(unsigned number)
{
    struct limits limits = limits_of_all();
    const struct bucket_world world = this_process();
    if (number == 0) {
        limits.item[1] = limits.item[0];
        limits.item[0] = limit_of(RATE * 99, 10 * S, 500);
        limits.count = 2;
    }
    while (!atomic_load(&board->stop)) {
        struct bucket *bucket = segment_bucket(&segment, "host:443", clock_now_ns());
        if (!bucket)
            _exit(3);
        bucket_ask_limits(bucket, &world, clock_now_ns(), &limits);
        if (number == 1)
            sleep_ns((int64_t)draw(20 * MS));
        else
            send_one(bucket);
        if (number == 1 || draw(30) == 0)
            say_a_word(bucket, &world);
    }
}

static int by_time(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* For every i < j: j - i + 1 <= burst + rate x (t(j) - t(i) + jitter), and one unit for rounding. */
static unsigned check_log(const struct limit *limit)
{
    unsigned count = 0, logged = atomic_load(&board->logged);
    int64_t *at_ns = malloc(LOG_MAX * sizeof *at_ns);
    for (unsigned i = 0; i < logged && i < LOG_MAX; i++)
        if (atomic_load(&board->act_ns[i])) /* not one who was killed before he wrote it down */
            at_ns[count++] = atomic_load(&board->act_ns[i]);
    qsort(at_ns, count, sizeof *at_ns, by_time);
    const __int128 one = (__int128)TOKEN_ONE << RATE_SHIFT;
    const __int128 slack = ((__int128)(limit->burst + 1) << RATE_SHIFT) + (__int128)limit->rate * limit->jitter_ns;
    __int128 lowest = 0;
    for (unsigned i = 0; i < count; i++) {
        __int128 here = i * one - (__int128)limit->rate * (at_ns[i] - at_ns[0]);
        if (i == 0 || here < lowest)
            lowest = here;
        if (here - lowest + one > slack)
            fail_msg("too many: up to %u of %u", i, count);
    }
    free(at_ns);
    return count;
}

static void check_blocks(void)
{
    unsigned blocks = atomic_load(&board->blocks), logged = atomic_load(&board->logged);
    for (unsigned i = 0; i < blocks && i < LOG_MAX; i++)
        for (unsigned j = 0; j < logged && j < LOG_MAX; j++)
            if (board->act_ns[j] > board->block_ns[i][0] && board->act_ns[j] < board->block_ns[i][1])
                fail_msg("%lld ns before a block ended", (long long)(board->block_ns[i][1] - board->act_ns[j]));
}

static void test_killed_and_stopped_they_keep_the_quota(void **state)
{
    (void)state;
    const struct limits limits = limits_of_all();
    random_state = 42;
    unsigned killed = torment(sender, true);
    assert_true(killed > 0);
    assert_true(check_log(&limits.item[0]) > BURST);
    check_blocks();
    /* And nothing that they held is lost to those who come after. */
    const struct bucket_world world = this_process();
    struct bucket *bucket = segment_find(&segment, "host:443");
    assert_non_null(bucket);
    int64_t now_ns = clock_now_ns();
    for (int i = 1; i <= 20; i++)
        assert_true(bucket_block(bucket, &world, now_ns, now_ns + i * HOUR, BLOCK_HARD));
    assert_true(bucket_peek(bucket, now_ns, NULL) >= now_ns + 20 * HOUR);
}

/* ------------------------------------------------------------- one bucket a name ---- */

#define NAMES 90 /* for 32 places */

static void crawler(unsigned number)
{
    (void)number;
    const struct bucket_world world = this_process();
    const struct limits limits = one_limit(1000, S, 5);
    /* A clock of its own, that makes places free all the time; hours pass in a second. */
    while (!atomic_load(&board->stop)) {
        char name[32];
        int64_t now_ns = clock_now_ns() * 2000;
        snprintf(name, sizeof name, "host%u:443", (unsigned)draw(NAMES));
        struct bucket *bucket = segment_bucket(&segment, name, now_ns);
        if (!bucket)
            continue;
        bucket_ask_limits(bucket, &world, now_ns, &limits);
        metrics_request(bucket_metrics(bucket));
    }
}

static void test_killed_while_they_insert_and_evict(void **state)
{
    (void)state;
    random_state = 43;
    torment(crawler, true);
    unsigned cursor = 0, used = 0;
    while (segment_next(&segment, &cursor))
        used++;
    assert_int_equal(used, segment_capacity(&segment));
    int64_t now_ns = clock_now_ns() * 2000 + DAY;
    for (unsigned i = 0; i < NAMES; i++) {
        char name[32];
        struct bucket_state seen;
        snprintf(name, sizeof name, "host%u:443", i);
        struct bucket *bucket = segment_bucket(&segment, name, now_ns);
        if (!bucket)
            continue; /* its set is full of those that were just looked up */
        assert_ptr_equal(segment_bucket(&segment, name, now_ns), bucket);
        bucket_read_state(bucket, now_ns, &seen);
        assert_string_equal(seen.name, name);
        now_ns += S;
    }
}

/* ---------------------------------------------------------------------- garbage ---- */

/* Numbers that are more telling than most. */
static uint64_t telling_number(void)
{
    static const uint64_t numbers[] = {0, 1, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1, TOKEN_ONE, 0x100, 0xff};
    return draw(2) ? numbers[draw(sizeof numbers / sizeof *numbers)] : draw(UINT64_MAX);
}

static void vandal(void)
{
    _Atomic uint64_t *word = mapping.memory;
    while (!atomic_load(&board->stop)) {
        uint64_t at = draw(mapping.size / 8);
        unsigned length = draw(8) ? 1 : (unsigned)draw(700);
        for (unsigned i = 0; i < length && at + i < mapping.size / 8; i++)
            atomic_store_explicit(&word[at + i], telling_number(), memory_order_relaxed);
        /* The same words again and again: nobody's compare-and-swap there ever comes through. */
        for (unsigned i = 0; i < 2000 && draw(16) == 0; i++)
            atomic_fetch_add_explicit(&word[at], 1, memory_order_relaxed);
    }
}

static void use_everything(struct bucket *bucket, const struct bucket_world *world, int64_t now_ns)
{
    const struct limits limits = two_limits(limit_of(100, HOUR, 20), limit_of(10, S, 4));
    struct bucket_slot slot;
    struct bucket_state seen;
    int64_t until_ns;
    bool hard;
    bucket_ask_limits(bucket, world, now_ns, &limits);
    bucket_peek(bucket, now_ns, &hard);
    bucket_book(bucket, now_ns, &slot);
    bucket_check(bucket, &slot, now_ns, &until_ns);
    bucket_hard_ns(bucket, &slot, now_ns);
    bucket_cancel(bucket, &slot);
    bucket_charge(bucket, now_ns, draw(1000));
    bucket_block(bucket, world, now_ns, now_ns + (int64_t)draw((uint64_t)S), draw(2) ? BLOCK_SOFT : BLOCK_HARD);
    bucket_refill(bucket, world, now_ns);
    bucket_release(bucket, world, now_ns);
    bucket_retry_deposit(bucket, now_ns, 200000);
    bucket_retry_withdraw(bucket, now_ns, 10);
    bucket_note_latency(bucket, (int64_t)draw((uint64_t)S));
    bucket_usual_latency_ns(bucket);
    bucket_note_refusal(bucket, now_ns);
    bucket_is_idle(bucket, now_ns);
    bucket_read_state(bucket, now_ns, &seen);
    if (seen.limits.count > RATES_MAX || !memchr(seen.name, 0, sizeof seen.name))
        _exit(4);
}

static void victim(unsigned number)
{
    const struct bucket_world world = this_process();
    const uint64_t seed[3] = {4, 5, 6};
    if (number < 2) {
        vandal();
        return;
    }
    while (!atomic_load(&board->stop)) {
        char name[32];
        struct segment again;
        unsigned cursor = 0, seen = 0;
        int64_t now_ns = clock_now_ns();
        snprintf(name, sizeof name, "host%u:443", (unsigned)draw(NAMES));
        segment_attach(&again, mapping.memory, mapping.size, 7, seed);
        struct bucket *bucket = segment_bucket(&segment, name, now_ns);
        if (bucket)
            use_everything(bucket, &world, now_ns);
        segment_find(&segment, name);
        while (segment_next(&segment, &cursor))
            seen++;
        if (seen > segment_capacity(&segment) || random_up_to(segment_random(&segment), 9) > 9)
            _exit(5);
        atomic_fetch_add(&board->turns[number], 1);
    }
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
        TEST(test_killed_and_stopped_they_keep_the_quota),
        TEST(test_killed_while_they_insert_and_evict),
        TEST(test_garbage_crashes_and_hangs_nobody),
    };
    return cmocka_run_group_tests_name("bucket processes", tests, NULL, NULL);
}
