/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the segment's parts share: a segment in memory of its own, which children that
 * are forked share and which can be made read-only.
 */
#ifndef CURTSY_TESTS_SEGMENT_WORLD_H
#define CURTSY_TESTS_SEGMENT_WORLD_H

#include "tests/unit/bucket_world.h"

#define WORLD_BOOT UINT64_C(0x1122334455667788)

/* Zeroed, on a page of its own. */
static inline void *new_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static inline struct segment new_segment(size_t size)
{
    const uint64_t seed[3] = {1, 2, 3};
    struct segment segment;
    assert_int_equal(segment_attach(&segment, new_memory(size), size, WORLD_BOOT, seed), SEGMENT_OK);
    return segment;
}

static inline void free_segment(const struct segment *segment)
{
    munmap(segment->header, segment->size);
}

/* Whoever writes from now on is killed by it. */
static inline void make_read_only(const struct segment *segment)
{
    assert_int_equal(mprotect(segment->header, segment->size, PROT_READ), 0);
}

#endif
