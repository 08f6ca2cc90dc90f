/* SPDX-License-Identifier: MIT */
/*
 * A queue of pieces in one block.
 */
#include "shim/kept.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 4096

struct piece_head {
    size_t length;
    enum piece_kind kind;
};

static bool make_room(struct kept *kept, size_t needed)
{
    if (needed <= kept->capacity)
        return true;
    size_t capacity = kept->capacity ? kept->capacity : FIRST_CAPACITY;
    while (capacity < needed)
        capacity *= 2;
    char *larger = realloc(kept->bytes, capacity);
    if (!larger)
        return false;
    kept->bytes = larger;
    kept->capacity = capacity;
    return true;
}

bool kept_add(struct kept *kept, enum piece_kind kind, const char *data, size_t length, size_t limit)
{
    if (kept_is_empty(kept))
        kept_clear(kept);
    const struct piece_head head = {.length = length, .kind = kind};
    size_t needed = kept->size + sizeof head + length;
    if (needed > limit || !make_room(kept, needed))
        return false;
    memcpy(kept->bytes + kept->size, &head, sizeof head);
    memcpy(kept->bytes + kept->size + sizeof head, data, length);
    kept->size = needed;
    return true;
}

static struct piece_head front_head(const struct kept *kept)
{
    struct piece_head head;
    memcpy(&head, kept->bytes + kept->given, sizeof head);
    return head;
}

bool kept_front(const struct kept *kept, enum piece_kind *kind, char **data, size_t *length)
{
    if (kept_is_empty(kept))
        return false;
    struct piece_head head = front_head(kept);
    *kind = head.kind;
    *length = head.length;
    *data = kept->bytes + kept->given + sizeof head;
    return true;
}

void kept_pop(struct kept *kept)
{
    struct piece_head head = front_head(kept);
    kept->given += sizeof head + head.length;
}

void kept_free(struct kept *kept)
{
    free(kept->bytes);
    *kept = (struct kept){.bytes = NULL};
}
