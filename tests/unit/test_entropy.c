/* SPDX-License-Identifier: MIT */
/*
 * Entropy: no two draws are the same, with the kernel's help and without it, and nothing is written
 * beyond what was asked for.  What concerns a kernel that refuses runs in a child whose system call
 * fails by a filter.
 */
#include "core/system/entropy.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DRAWS 1000
#define CHILDREN 4
#define CANNOT 77 /* exit status: this kernel does not let itself be filtered */

struct draw {
    uint8_t bytes[16];
};

/* Shared with children. */
static struct shared {
    struct random_source source;
    struct draw draws[CHILDREN * DRAWS];
} * shared;

static int map_shared(void **state)
{
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? -1 : 0;
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct draw));
}

static void expect_distinct(size_t count)
{
    qsort(shared->draws, count, sizeof(struct draw), compare);
    for (size_t i = 1; i < count; i++)
        if (compare(&shared->draws[i - 1], &shared->draws[i]) == 0)
            fail_msg("two of %zu draws are the same", count);
}

static void fill(size_t from, size_t count)
{
    for (size_t i = from; i < from + count; i++)
        entropy_fill(shared->draws[i].bytes, sizeof shared->draws[i].bytes, &shared->source);
}

/* Each bit is about as often 1 as 0; the fallback is no source to be tested harder. */
static void expect_even(size_t count)
{
    for (size_t bit = 0; bit < 128; bit++) {
        size_t ones = 0;
        for (size_t i = 0; i < count; i++)
            ones += shared->draws[i].bytes[bit / 8] >> bit % 8 & 1;
        assert_in_range(ones, count * 3 / 10, count * 7 / 10);
    }
}

static void test_draws_are_distinct(void **state)
{
    (void)state;
    fill(0, DRAWS);
    expect_even(DRAWS);
    expect_distinct(DRAWS);
    assert_true(atomic_load(&shared->source.draws) == 0); /* the kernel had it all */
}

/* Nothing is written beyond what was asked for, and errno is the caller's. */
static bool lengths_are_kept(void)
{
    static uint8_t bytes[1024];
    for (size_t count = 0; count <= sizeof bytes / 2; count += count < 40 ? 1 : 118) {
        memset(bytes, '#', sizeof bytes);
        errno = ENOTTY;
        entropy_fill(bytes, count, &shared->source);
        if (errno != ENOTTY)
            return false;
        for (size_t i = count; i < sizeof bytes; i++)
            if (bytes[i] != '#')
                return false;
    }
    return true;
}

static void test_lengths_and_errno(void **state)
{
    (void)state;
    assert_true(lengths_are_kept());
}

/* ---- in children ---- */

static void forbid_getrandom(int error)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof(steps) / sizeof(steps[0]), .filter = steps};
    char byte;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0 ||
        getrandom(&byte, 1, GRND_NONBLOCK) == 1)
        _exit(CANNOT);
}

static pid_t fork_without_getrandom(int error)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        forbid_getrandom(error);
    return pid;
}

static pid_t draw_in_child(unsigned number, int error)
{
    pid_t pid = fork_without_getrandom(error);
    if (pid == 0) {
        fill(number * DRAWS, DRAWS);
        _exit(0);
    }
    return pid;
}

static void expect_success(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
        skip();
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Several processes at the same moment, on one shared source. */
static void test_without_the_kernel(void **state)
{
    (void)state;
    static const int errors[CHILDREN] = {ENOSYS, EPERM, EAGAIN, EINTR};
    pid_t children[CHILDREN];
    memset(shared, 0, sizeof *shared);
    for (unsigned i = 0; i < CHILDREN; i++)
        children[i] = draw_in_child(i, errors[i]);
    for (unsigned i = 0; i < CHILDREN; i++)
        expect_success(children[i]);
    assert_true(atomic_load(&shared->source.draws) == 2 * CHILDREN * DRAWS);
    expect_even(CHILDREN * DRAWS);
    expect_distinct(CHILDREN * DRAWS);
}

static void test_lengths_and_errno_without_the_kernel(void **state)
{
    (void)state;
    pid_t pid = fork_without_getrandom(ENOSYS);
    if (pid == 0)
        _exit(lengths_are_kept() ? 0 : 1);
    expect_success(pid);
}

/* The source begins anew for each draw of each process: the clocks and the processes' names tell them
 * apart. */
static void test_without_anything_shared(void **state)
{
    (void)state;
    memset(shared, 0, sizeof *shared);
    for (unsigned i = 0; i < CHILDREN; i++) {
        pid_t pid = fork_without_getrandom(ENOSYS);
        if (pid == 0) {
            for (size_t draw = 0; draw < DRAWS; draw++) {
                atomic_store(&shared->source.draws, 0);
                fill(i * DRAWS + draw, 1);
            }
            _exit(0);
        }
        expect_success(pid);
    }
    expect_distinct(CHILDREN * DRAWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws_are_distinct),      cmocka_unit_test(test_lengths_and_errno),
        cmocka_unit_test(test_without_the_kernel),      cmocka_unit_test(test_lengths_and_errno_without_the_kernel),
        cmocka_unit_test(test_without_anything_shared),
    };
    return cmocka_run_group_tests_name("entropy", tests, map_shared, NULL);
}
