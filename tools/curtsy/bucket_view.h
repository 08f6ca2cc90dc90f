/* SPDX-License-Identifier: MIT */
/*
 * Bucket view: pictures of a segment's buckets, as text and as JSON: each one's limits, the tokens in
 * it, what blocks it, the operator's mode, who waits for it, and what was counted.  Each picture is
 * consistent; those of two buckets are not of one instant.
 */
#ifndef CURTSY_TOOLS_BUCKET_VIEW_H
#define CURTSY_TOOLS_BUCKET_VIEW_H

#include "core/segment.h"

#include <jansson.h>

struct bucket_picture {
    struct bucket_state state;
    const struct metrics *metrics; /* in the segment */
    unsigned waiting;              /* transfers, of processes that are not known to be dead */
};

struct bucket_pictures {
    struct bucket_picture *item;
    size_t count;
    int64_t now_ns;
};

/* Pictures of these buckets of a segment, by name; to be freed, and to be used only while the segment
 * is mapped.  False when out of memory. */
bool bucket_pictures_take(struct bucket_pictures *pictures, const struct segment *segment,
                          struct bucket *const *buckets, size_t count, int64_t now_ns);

/* One more: what buckets that are gone had counted, if they had, under the name "other". */
void bucket_pictures_add_other(struct bucket_pictures *pictures, const struct segment *segment);
void bucket_pictures_free(struct bucket_pictures *pictures);

/* A table with lines below each row; "no buckets" if there are none. */
void bucket_pictures_print(const struct bucket_pictures *pictures);
json_t *bucket_pictures_json(const struct bucket_pictures *pictures);

/* "mode off until 2026-11-30 12:00:00 (for 4m59s), by the operator": nothing where he says nothing. */
void operator_mode_print(enum operator_mode mode, int64_t until_ns, int64_t now_ns, const char *indent);

/* Adds "mode", and "mode_until" (null: until it is changed, or no mode). */
void operator_mode_add_json(json_t *object, enum operator_mode mode, int64_t until_ns, int64_t now_ns);

#endif
