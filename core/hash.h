/* SPDX-License-Identifier: MIT */
/*
 * Hash: FNV-1a (Fowler, Noll, Vo), 64 bits, for tables whose keys nobody hostile chooses and for
 * names that are too long to be written out.
 */
#ifndef CURTSY_CORE_HASH_H
#define CURTSY_CORE_HASH_H

#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* Goes on from `hash`, so that a text may come in pieces. */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
