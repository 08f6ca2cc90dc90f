/* SPDX-License-Identifier: MIT */
/*
 * Hash: FNV-1a (Fowler, Noll, Vo), 64 bits, for tables whose keys nobody hostile chooses and for
 * names that are too long to be written out.
 */
#ifndef CURTSY_CORE_HASH_H
#define CURTSY_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* Each goes on from `hash`, so that something may come in pieces. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    for (const unsigned char *byte = bytes; count > 0; byte++, count--)
        hash = (hash ^ *byte) * UINT64_C(0x100000001b3);
    return hash;
}

static inline uint64_t hash_number(uint64_t hash, uint64_t number)
{
    return hash_bytes(hash, &number, sizeof number);
}

static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
