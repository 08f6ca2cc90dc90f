/* SPDX-License-Identifier: MIT */
/*
 * Arena: small pieces of memory that live and die together.  A configuration consists of thousands
 * of them, and is freed as a whole.
 *
 * All zeros is an empty arena.  One thread at a time.
 */
#ifndef CURTSY_CORE_ARENA_H
#define CURTSY_CORE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *newest;
    size_t used; /* of the newest block */
};

/* Zeroed memory, aligned for anything; NULL when there is none. */
void *arena_allocate(struct arena *arena, size_t size);

/* A copy that ends in NUL. */
char *arena_copy(struct arena *arena, const char *text, size_t length);

/* Everything at once; the arena is empty again. */
void arena_free(struct arena *arena);

#endif
