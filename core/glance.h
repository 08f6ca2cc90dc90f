/* SPDX-License-Identifier: MIT */
/*
 * Glances at shared memory: what every request has to ask, and what nearly always comes to nothing,
 * is a load and a compare in its way.  Only where there is something to see are the functions of
 * bucket.h and segment.h called, which look closely.
 *
 * For the files in the way of a request; thread-safe, nothing is written.
 */
#ifndef CURTSY_CORE_GLANCE_H
#define CURTSY_CORE_GLANCE_H

#include "core/segment_layout.h"

/* Of the published word: the number of a record; the generation is above. */
#define PUBLISHED_INDEX_BITS 8

/* Nothing was ever in force in it: no limits and no block. */
static inline bool bucket_is_untouched(const struct bucket *bucket)
{
    return shared_load(&bucket->published) >> PUBLISHED_INDEX_BITS == 0;
}

/* The same as bucket_key. */
static inline uint64_t bucket_key_now(const struct bucket *bucket)
{
    return shared_load(&bucket->key);
}

/* The same as bucket_metrics. */
static inline struct metrics *bucket_counters(struct bucket *bucket)
{
    return &bucket->metrics;
}

/* The operator has nothing in force for it: bucket_mode is OPERATOR_AUTO at any time. */
static inline bool bucket_has_no_mode(const struct bucket *bucket)
{
    return shared_load(&bucket->mode) == 0;
}

/* The same of the segment as a whole. */
static inline bool segment_has_no_mode(const struct segment *segment)
{
    return shared_load(&segment->header->mode) == 0;
}

#endif
