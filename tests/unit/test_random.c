/* SPDX-License-Identifier: MIT */
/*
 * Random numbers: the published sequence, its bounds, and that no two draws are the same one.
 */
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/random.h"

/* The first outputs of splitmix64 from state 1234567, as its authors' code gives them. */
static void test_it_is_splitmix64(void **state)
{
    (void)state;
    struct random_source source = {.seed = 1234567};
    const uint64_t expected[] = {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                 UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
                                 UINT64_C(16408922859458223821)};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_true(random_next(&source) == expected[i]);
}

static void test_limits_are_kept_and_reached(void **state)
{
    (void)state;
    struct random_source source = {.seed = 42};
    unsigned seen[4] = {0};
    for (int i = 0; i < 4000; i++) {
        int64_t value = random_up_to(&source, 3);
        assert_in_range(value, 0, 3);
        seen[value]++;
    }
    for (int i = 0; i < 4; i++)
        assert_in_range(seen[i], 900, 1100); /* a fixed sequence: this holds or it does not */
    for (int i = 0; i < 100; i++) {
        assert_true(random_up_to(&source, INT64_MAX) >= 0);
        assert_int_equal(random_up_to(&source, 0), 0);
        assert_int_equal(random_up_to(&source, -1), 0);
        assert_int_equal(random_up_to(&source, INT64_MIN), 0);
    }
}

static void test_it_spreads_evenly(void **state)
{
    (void)state;
    struct random_source source = {.seed = 7};
    double sum = 0;
    for (int i = 0; i < 100000; i++)
        sum += (double)random_up_to(&source, 1000000);
    assert_in_range((int)(sum / 100000), 497000, 503000);
}

#define THREADS 4
#define DRAWS 20000

struct drawer {
    struct random_source *source;
    uint64_t drawn[DRAWS];
};

static void *draw_many(void *context)
{
    struct drawer *drawer = context;
    for (int i = 0; i < DRAWS; i++)
        drawer->drawn[i] = random_next(drawer->source);
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* splitmix64 is one to one: as long as no counter value is used twice, no output is. */
static void test_threads_never_share_a_draw(void **state)
{
    (void)state;
    static struct random_source source;
    static struct drawer drawer[THREADS];
    static uint64_t all[THREADS * DRAWS];
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        drawer[i].source = &source;
        assert_int_equal(pthread_create(&thread[i], NULL, draw_many, &drawer[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        for (int j = 0; j < DRAWS; j++)
            all[i * DRAWS + j] = drawer[i].drawn[j];
    }
    qsort(all, THREADS * DRAWS, sizeof *all, by_value);
    for (int i = 1; i < THREADS * DRAWS; i++)
        assert_true(all[i] != all[i - 1]);
}

/* Forked children go on from one counter, which lies in memory that they share. */
static void test_forked_processes_never_share_a_draw(void **state)
{
    (void)state;
    enum { CHILDREN = 4, EACH = 5000, ALL = CHILDREN * EACH };
    struct pool {
        struct random_source source;
        uint64_t drawn[ALL];
    } *pool = mmap(NULL, sizeof *pool, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pool, MAP_FAILED);
    atomic_store(&pool->source.seed, 42);
    random_next(&pool->source);
    pid_t child[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        child[i] = fork();
        assert_true(child[i] >= 0);
        if (child[i] == 0) {
            for (int j = 0; j < EACH; j++)
                pool->drawn[i * EACH + j] = random_next(&pool->source);
            _exit(0);
        }
    }
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    qsort(pool->drawn, ALL, sizeof pool->drawn[0], by_value);
    for (int i = 1; i < ALL; i++)
        assert_true(pool->drawn[i - 1] != pool->drawn[i]);
    munmap(pool, sizeof *pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_splitmix64),
        cmocka_unit_test(test_limits_are_kept_and_reached),
        cmocka_unit_test(test_it_spreads_evenly),
        cmocka_unit_test(test_threads_never_share_a_draw),
        cmocka_unit_test(test_forked_processes_never_share_a_draw),
    };
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
