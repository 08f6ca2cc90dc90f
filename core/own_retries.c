/* SPDX-License-Identifier: MIT */
/*
 * Own retries: a table of sets, each of them as large as a cache line.  A request belongs to one set and
 * may be in any word of it.
 *
 * A word is the request's lower 32 bits above the end of its time, in ticks of 2^27 ns (about 0.13 s),
 * rounded up.  Ticks are counted modulo 2^32, which comes round after 18 years of uptime: an end up to half
 * that far ahead is in the future, any other is past.  The set is chosen by the request's upper half, of
 * which nothing else is kept, so two requests are the same one with a chance of 1 in 2^37.
 *
 * Each word says everything about its entry, so whoever has lost a race has only lost an entry.
 */
#include "core/own_retries.h"

#include <stddef.h>

#define WAYS 8
#define SETS (OWN_RETRIES_ENTRIES / WAYS)
#define EMPTY UINT64_C(0)
#define TRIES 4 /* to put an entry where others do the same at this moment */

#define TICK_SHIFT 27
#define LONGEST_TICKS UINT32_C(0x7fffffff)
#define LONGEST_NS ((int64_t)LONGEST_TICKS << TICK_SHIFT)

static uint32_t request_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static uint32_t end_of(uint64_t word)
{
    return (uint32_t)word;
}

static uint32_t tick_of(int64_t now_ns)
{
    return (uint32_t)((uint64_t)now_ns >> TICK_SHIFT);
}

/* An end of 0 is told as 1, one tick later, so that no entry looks empty. */
static uint64_t word_of(uint64_t request, int64_t span_ns, int64_t now_ns)
{
    if (span_ns > LONGEST_NS - (INT64_C(1) << TICK_SHIFT))
        span_ns = LONGEST_NS - (INT64_C(1) << TICK_SHIFT);
    uint64_t end_ns = (uint64_t)now_ns + (uint64_t)span_ns + (UINT64_C(1) << TICK_SHIFT) - 1;
    uint32_t end = (uint32_t)(end_ns >> TICK_SHIFT);
    return (uint64_t)(uint32_t)request << 32 | (end != 0 ? end : 1);
}

/* Ticks until its end; 0: it is empty or over. */
static uint32_t ticks_left(uint64_t word, uint32_t now)
{
    uint32_t left = end_of(word) - now;
    return word != EMPTY && left <= LONGEST_TICKS ? left : 0;
}

static size_t set_of(uint64_t request)
{
    return (size_t)(request >> 32) % SETS * WAYS;
}

static uint64_t load(const _Atomic uint64_t *entry)
{
    return atomic_load_explicit(entry, memory_order_relaxed);
}

/* Where an entry of this request goes: where it is already, else in place of the one that ends first;
 * one that is empty or over goes before all.  *old is what was seen there. */
static _Atomic uint64_t *choose(_Atomic uint64_t *set, uint64_t request, uint32_t now, uint64_t *old)
{
    _Atomic uint64_t *chosen = set;
    *old = load(set);
    for (size_t i = 0; i < WAYS; i++) {
        uint64_t word = load(&set[i]);
        bool is_same = word != EMPTY && request_of(word) == (uint32_t)request;
        if (is_same || ticks_left(word, now) < ticks_left(*old, now)) {
            chosen = &set[i];
            *old = word;
        }
        if (is_same)
            break;
    }
    return chosen;
}

void own_retries_note(struct own_retries *table, uint64_t request, int64_t span_ns, int64_t now_ns)
{
    if (span_ns <= 0)
        return;
    uint64_t word = word_of(request, span_ns, now_ns);
    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t old;
        _Atomic uint64_t *entry = choose(&table->entry[set_of(request)], request, tick_of(now_ns), &old);
        if (atomic_compare_exchange_strong_explicit(entry, &old, word, memory_order_relaxed, memory_order_relaxed))
            break;
    }
    atomic_fetch_add_explicit(&table->used, 1, memory_order_relaxed);
}

bool own_retries_find(const struct own_retries *table, uint64_t request, int64_t now_ns)
{
    const _Atomic uint64_t *set = &table->entry[set_of(request)];
    for (size_t i = 0; i < WAYS; i++) {
        uint64_t word = load(&set[i]);
        if (request_of(word) == (uint32_t)request && ticks_left(word, tick_of(now_ns)) > 0)
            return true;
    }
    return false;
}

/* Two threads may have noted it at the same moment, in two places. */
void own_retries_clear(struct own_retries *table, uint64_t request)
{
    if (atomic_load_explicit(&table->used, memory_order_relaxed) == 0)
        return;
    _Atomic uint64_t *set = &table->entry[set_of(request)];
    for (size_t i = 0; i < WAYS; i++) {
        uint64_t word = load(&set[i]);
        if (word != EMPTY && request_of(word) == (uint32_t)request)
            atomic_compare_exchange_strong_explicit(&set[i], &word, EMPTY, memory_order_relaxed, memory_order_relaxed);
    }
}
