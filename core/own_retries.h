/* SPDX-License-Identifier: MIT */
/*
 * Own retries: programs that try again by themselves (curl --retry, git, GDAL, most SDKs).  If each of
 * their attempts were tried again by us too, attempts would multiply: five times five.  So it is remembered
 * for a while which requests were given up after all their attempts.  The program's next request that is the
 * same is its own retry, and gets a single attempt: from there on the trying is the program's.  The waiting is
 * not: what the server has said still holds.
 *
 * A small table of one process, which forgets: an entry may be lost to another request, or a request be
 * taken for a retry that is none, with a single attempt instead of several as the worst that comes of it.
 * Requests are known by a 64-bit hash that the caller makes.  Thread-safe, lock-free; no allocation, no
 * system call.
 */
#ifndef CURTSY_CORE_OWN_RETRIES_H
#define CURTSY_CORE_OWN_RETRIES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define OWN_RETRIES_ENTRIES 256

/* All zeros is empty. */
struct own_retries {
    _Atomic uint64_t entry[OWN_RETRIES_ENTRIES]; /* packed: see own_retries.c */
    _Atomic uint64_t used;                       /* entries ever noted; 0: nothing has to be looked up */
};

/* The request was given up at now_ns (CLOCK_BOOTTIME) with its attempts used up; for span_ns from now on, and up
 * to 0.14 s longer, the same one is the program's own retry.  Nothing is noted for a span of 0 or less. */
void own_retries_note(struct own_retries *table, uint64_t request, int64_t span_ns, int64_t now_ns);

/* Was nothing ever given up in this process?  Then the request need not be hashed to ask. */
static inline bool own_retries_are_empty(const struct own_retries *table)
{
    return atomic_load_explicit(&table->used, memory_order_relaxed) == 0;
}

/* Is it one? */
bool own_retries_find(const struct own_retries *table, uint64_t request, int64_t now_ns);

/* It has succeeded: its next one is a new request. */
void own_retries_clear(struct own_retries *table, uint64_t request);

#endif
