/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the bucket share: a bucket in memory of its own, limits written by hand (so that
 * these tests do not depend on how limits are worked out from a quota), and a virtual clock.
 */
#ifndef CURTSY_TESTS_BUCKET_WORLD_H
#define CURTSY_TESTS_BUCKET_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "core/segment_layout.h"

#define MS NS_PER_MS
#define S NS_PER_SECOND
#define HOUR (3600 * S)
#define DAY (24 * HOUR)

static const struct bucket_world nobody_dies = {.self = 1};

/* Zeroed, and shared with children. */
static inline struct bucket *new_bucket(void)
{
    struct bucket *bucket = mmap(NULL, sizeof *bucket, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(bucket != MAP_FAILED);
    return bucket;
}

static inline void free_bucket(struct bucket *bucket)
{
    munmap(bucket, sizeof *bucket);
}

/* `count` per window at a burst of `burst`, rounded down; jitter a tenth of the window, at most 1 s. */
static inline struct limit limit_of(uint64_t count, int64_t window_ns, uint64_t burst)
{
    unsigned __int128 rate = ((unsigned __int128)(count * TOKEN_ONE) << RATE_SHIFT) / (uint64_t)window_ns;
    return (struct limit){
        .rate = (uint64_t)rate,
        .burst = burst * TOKEN_ONE,
        .window_ns = window_ns,
        .jitter_ns = window_ns / 10 < S ? window_ns / 10 : S,
    };
}

static inline struct limits one_limit(uint64_t count, int64_t window_ns, uint64_t burst)
{
    return (struct limits){.count = 1, .item = {limit_of(count, window_ns, burst)}};
}

static inline struct limits two_limits(struct limit longer, struct limit shorter)
{
    return (struct limits){.count = 2, .item = {longer, shorter}};
}

static inline struct bucket *bucket_with(const struct limits *limits, int64_t now_ns)
{
    struct bucket *bucket = new_bucket();
    assert_true(bucket_ask_limits(bucket, &nobody_dies, now_ns, limits));
    return bucket;
}

#endif
