/* SPDX-License-Identifier: MIT */
/*
 * Arena: a list of blocks, of which the newest is filled from its beginning.
 */
#include "core/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE 8192
#define ALIGNMENT _Alignof(max_align_t)

struct arena_block {
    struct arena_block *older;
    size_t size;
    _Alignas(max_align_t) char memory[];
};

static struct arena_block *new_block(struct arena *arena, size_t size)
{
    struct arena_block *block = calloc(1, sizeof *block + size);
    if (block == NULL)
        return NULL;
    block->older = arena->newest;
    block->size = size;
    arena->newest = block;
    arena->used = 0;
    return block;
}

void *arena_allocate(struct arena *arena, size_t size)
{
    if (size > PTRDIFF_MAX / 2)
        return NULL;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct arena_block *block = arena->newest;
    if (block == NULL || block->size - arena->used < size)
        block = new_block(arena, size > BLOCK_SIZE ? size : BLOCK_SIZE);
    if (block == NULL)
        return NULL;
    void *piece = block->memory + arena->used;
    arena->used += size;
    return piece;
}

char *arena_copy(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_allocate(arena, length + 1);
    if (copy != NULL)
        memcpy(copy, text, length);
    return copy;
}

void arena_free(struct arena *arena)
{
    while (arena->newest != NULL) {
        struct arena_block *older = arena->newest->older;
        free(arena->newest);
        arena->newest = older;
    }
    arena->used = 0;
}
