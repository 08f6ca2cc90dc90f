/* SPDX-License-Identifier: MIT */
/*
 * Segment list: the default segments of every user and of every version of the layout that there are
 * on this machine: "/curtsy.v1.1000".  One that was named otherwise cannot be found by looking.
 */
#ifndef CURTSY_TOOLS_SEGMENT_LIST_H
#define CURTSY_TOOLS_SEGMENT_LIST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct found_segment {
    char name[64];  /* "/curtsy.v1.1000" */
    uint32_t owner; /* uid */
    uint64_t size;
    int64_t made_s; /* since 1970 */
    bool is_of_this_layout;
};

struct segment_list {
    struct found_segment *item;
    size_t count;
};

/* Those of one owner, or all (UINT32_MAX), by name; those of this version first.  False when out of memory.
 * To be freed either way. */
bool segment_list_find(struct segment_list *list, uint32_t owner);
void segment_list_free(struct segment_list *list);

/* Of one of another layout, of which nothing but its file can be understood: a line, and an object with
 * the fields of a view. */
void found_segment_print(const struct found_segment *found);
json_t *found_segment_json(const struct found_segment *found);

#endif
