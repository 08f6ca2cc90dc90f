/* SPDX-License-Identifier: MIT */
/*
 * Handle table: finds what is known of something that libcurl handed out, by its address.
 *
 * Entries never leave their chain and are never freed, only given to another handle, so that a look-up
 * is a walk over a short list without a lock.  An entry's contents belong to whoever owns the handle:
 * libcurl allows one thread at a time.  A handle has to be given up before libcurl frees it, since its address may
 * be handed out again at once.
 */
#ifndef CURTSY_SHIM_HANDLE_TABLE_H
#define CURTSY_SHIM_HANDLE_TABLE_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define HANDLE_CHAINS 8192 /* a power of two; 64 KiB of zero pages until used */

/* The first member of what is kept for each handle. */
struct handle_entry {
    _Atomic(const void *) handle; /* NULL: free */
    struct handle_entry *next;
};

struct handle_table {
    _Atomic(struct handle_entry *) chain[HANDLE_CHAINS];
};

static inline _Atomic(struct handle_entry *) *handle_chain(struct handle_table *table, const void *handle)
{
    return &table->chain[((uintptr_t)handle >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 51];
}

/* NULL: nothing is known of it. */
static inline void *handle_find(struct handle_table *table, const void *handle)
{
    if (!handle)
        return NULL;
    struct handle_entry *entry = atomic_load_explicit(handle_chain(table, handle), memory_order_acquire);
    while (entry && atomic_load_explicit(&entry->handle, memory_order_acquire) != handle)
        entry = entry->next;
    return entry;
}

/* An entry for a handle that has none: a free one with whatever its last owner left in it, or a new one
 * of `size` zero bytes.  NULL when out of memory. */
static inline void *handle_add(struct handle_table *table, const void *handle, size_t size)
{
    _Atomic(struct handle_entry *) *chain = handle_chain(table, handle);
    struct handle_entry *first = atomic_load_explicit(chain, memory_order_acquire);
    for (struct handle_entry *entry = first; entry; entry = entry->next) {
        const void *nobody = NULL;
        if (atomic_compare_exchange_strong(&entry->handle, &nobody, handle))
            return entry;
    }
    struct handle_entry *entry = calloc(1, size);
    if (!entry)
        return NULL;
    atomic_store_explicit(&entry->handle, handle, memory_order_relaxed);
    entry->next = first;
    while (!atomic_compare_exchange_weak(chain, &entry->next, entry))
        ;
    return entry;
}

static inline void handle_give_up(struct handle_entry *entry)
{
    atomic_store_explicit(&entry->handle, NULL, memory_order_release);
}

#endif
