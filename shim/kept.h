/* SPDX-License-Identifier: MIT */
/*
 * Kept: pieces of a response in the order in which they came, header lines and body, until they are
 * given to the program or dropped.  One growing block of memory a transfer; one owner.
 */
#ifndef CURTSY_SHIM_KEPT_H
#define CURTSY_SHIM_KEPT_H

#include <stdbool.h>
#include <stddef.h>

enum piece_kind { PIECE_HEADER, PIECE_TRAILER, PIECE_BODY };

struct kept {
    char *bytes; /* pieces one after the other: a struct piece_head, then its bytes */
    size_t size, capacity;
    size_t given; /* of size, what was taken from the front */
};

/* Adds a piece at the end; false when out of memory, or when more than `limit` bytes would be kept. */
bool kept_add(struct kept *kept, enum piece_kind kind, const char *data, size_t length, size_t limit);

/* The piece at the front; false if there is none.  The data may be changed, and is good until the
 * next kept_add or kept_clear. */
bool kept_front(const struct kept *kept, enum piece_kind *kind, char **data, size_t *length);

/* The piece at the front was given away. */
void kept_pop(struct kept *kept);

static inline bool kept_is_empty(const struct kept *kept)
{
    return kept->given == kept->size;
}

/* The memory stays for the next time. */
static inline void kept_clear(struct kept *kept)
{
    kept->size = kept->given = 0;
}

void kept_free(struct kept *kept);

#endif
