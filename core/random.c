/* SPDX-License-Identifier: MIT */
/*
 * Random numbers for jitter.  A draw takes the next value of a counter that all processes share
 * and scrambles it; the counter is the whole state, so there is nothing to lock and nothing to seed
 * anew after fork.
 */
#include "core/random.h"

#define GOLDEN_RATIO UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / phi, odd: the step that splitmix64 is made with */

uint64_t random_next(struct random_source *source)
{
    uint64_t draw = atomic_fetch_add_explicit(&source->draws, 1, memory_order_relaxed) + 1;
    uint64_t mixed = atomic_load_explicit(&source->seed, memory_order_relaxed) + draw * GOLDEN_RATIO;
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

int64_t random_up_to(struct random_source *source, int64_t limit)
{
    if (limit <= 0)
        return 0;
    /* The high half of a product scales without a division; any value's share is off by less than
     * 2^-64. */
    unsigned __int128 scaled = (unsigned __int128)random_next(source) * ((uint64_t)limit + 1);
    return (int64_t)(scaled >> 64);
}
