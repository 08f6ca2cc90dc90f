/* SPDX-License-Identifier: MIT */
/*
 * Waiters.  The owner word says whose a record is, and is all that is fought for.  What the owner
 * writes is sealed together with it (core/sealed.h), so a record that has just changed hands, or
 * whose owner died while he wrote, shows nothing rather than the words of another.
 */
#include "core/waiters.h"

#include "core/sealed.h"
#include "core/segment_layout.h"

#define NEAR 64 /* places that are looked at for a free one, and for a dead owner's */

#define WORD(field) (offsetof(struct waiter_record, field) / sizeof(uint64_t))

static_assert(sizeof(((struct waiter_record *)0)->bucket) == BUCKET_NAME_SIZE, "layout");
static_assert(sizeof(((struct waiter_record *)0)->endpoint) == WAITER_ENDPOINT_SIZE, "layout");

/* The index is in range. */
static _Atomic uint64_t *record_at(const struct segment *segment, uint64_t index)
{
    unsigned char *table = (unsigned char *)segment->header + segment_regions(segment->size).waiters;
    return (_Atomic uint64_t *)(table + index * SEGMENT_WAITER_BYTES);
}

static uint64_t record_count(const struct segment *segment)
{
    return segment_regions(segment->size).waiter_count;
}

/* ---------------------------------------------------------- a waiter, in words ---- */

static uint64_t not_negative(int64_t time_ns)
{
    return time_ns > 0 ? (uint64_t)time_ns : 0;
}

static enum cause known_cause(uint64_t cause)
{
    return cause < CAUSE_COUNT ? (enum cause)cause : CAUSE_NONE;
}

static void pack(const struct waiter *waiter, uint64_t owner, struct sealed *out)
{
    *out = (struct sealed){0};
    out->word[WORD(owner)] = owner;
    out->word[WORD(what)] = (uint32_t)waiter->thread | (uint64_t)known_cause(waiter->cause) << 32;
    out->word[WORD(began_ns)] = not_negative(waiter->began_ns);
    out->word[WORD(until_ns)] = not_negative(waiter->until_ns);
    sealed_put_text(out, WORD(bucket), BUCKET_NAME_SIZE, waiter->bucket);
    sealed_put_text(out, WORD(endpoint), WAITER_ENDPOINT_SIZE, waiter->endpoint);
}

static void unpack(const struct sealed *from, struct waiter *out)
{
    *out = (struct waiter){
        .owner = from->word[WORD(owner)],
        .thread = (int)(uint32_t)from->word[WORD(what)],
        .cause = known_cause(from->word[WORD(what)] >> 32 & 0xff),
        .began_ns = shared_time(from->word[WORD(began_ns)]),
        .until_ns = shared_time(from->word[WORD(until_ns)]),
    };
    sealed_take_text(from, WORD(bucket), BUCKET_NAME_SIZE, out->bucket);
    sealed_take_text(from, WORD(endpoint), WAITER_ENDPOINT_SIZE, out->endpoint);
}

/* -------------------------------------------------------------------- claiming ---- */

/* Where the search for a place begins: somewhere else for each thread, so that they do not all look
 * at the same few. */
static uint64_t start_of(uint64_t owner, int thread)
{
    uint64_t mixed = (owner ^ (uint64_t)(uint32_t)thread << 32) * UINT64_C(0x9e3779b97f4a7c15);
    return mixed >> 32;
}

static bool claim(const struct segment *segment, uint64_t index, uint64_t from, uint64_t owner)
{
    return shared_swap(&record_at(segment, index)[WORD(owner)], &from, owner);
}

/* The index of a record that is `owner`'s from now on; `count` if there is none near. */
static uint64_t claim_free(const struct segment *segment, uint64_t start, uint64_t count, uint64_t owner)
{
    for (uint64_t i = 0; i < NEAR && i < count; i++) {
        uint64_t index = (start + i) % count;
        if (!shared_load(&record_at(segment, index)[WORD(owner)]) && claim(segment, index, 0, owner))
            return index;
    }
    return count;
}

/* Who was found alive is not asked for again at once: one that waits a lot has many records side by
 * side. */
static uint64_t claim_from_the_dead(const struct segment *segment, const struct bucket_world *world, uint64_t start,
                                    uint64_t count, uint64_t owner)
{
    uint64_t alive = owner;
    for (uint64_t i = 0; i < NEAR && i < count && world->owner_is_dead; i++) {
        uint64_t index = (start + i) % count;
        uint64_t other = shared_load(&record_at(segment, index)[WORD(owner)]);
        if (other == alive)
            continue;
        if (other && !world->owner_is_dead(other))
            alive = other;
        else if (claim(segment, index, other, owner))
            return index;
    }
    return count;
}

static uint64_t self_of(const struct bucket_world *world)
{
    uint64_t self = world->self || !world->who_am_i ? world->self : world->who_am_i();
    return self ? self : 1;
}

unsigned waiters_enter(const struct segment *segment, const struct bucket_world *world, const struct waiter *waiter)
{
    struct sealed sealed;
    const uint64_t owner = waiter->owner ? waiter->owner : self_of(world);
    const uint64_t count = record_count(segment), start = start_of(owner, waiter->thread);
    uint64_t index = claim_free(segment, start, count, owner);
    if (index == count)
        index = claim_from_the_dead(segment, world, start, count, owner);
    if (index == count)
        return 0;
    pack(waiter, owner, &sealed);
    sealed_write(record_at(segment, index), &sealed);
    return (unsigned)index + 1;
}

/* ------------------------------------------------------------- while it is ours ---- */

/* NULL: it is not `owner`'s, or not any more. */
static _Atomic uint64_t *record_of(const struct segment *segment, unsigned ticket, uint64_t owner)
{
    if (!ticket || !owner || ticket > record_count(segment))
        return NULL;
    _Atomic uint64_t *record = record_at(segment, ticket - 1);
    return shared_load(&record[WORD(owner)]) == owner ? record : NULL;
}

void waiters_update(const struct segment *segment, unsigned ticket, uint64_t owner, enum cause cause, int64_t until_ns)
{
    struct sealed sealed;
    struct waiter waiter;
    _Atomic uint64_t *record = record_of(segment, ticket, owner);
    if (!record || !sealed_read(record, &sealed))
        return;
    unpack(&sealed, &waiter);
    waiter.cause = cause;
    waiter.until_ns = until_ns;
    pack(&waiter, owner, &sealed);
    sealed_write(record, &sealed);
}

/* The seal is broken first, so that the next owner, who may be the same process, is not taken to
 * wait for this as soon as the record is his. */
void waiters_leave(const struct segment *segment, unsigned ticket, uint64_t owner)
{
    _Atomic uint64_t *record = record_of(segment, ticket, owner);
    if (!record)
        return;
    sealed_break(record);
    shared_swap(&record[WORD(owner)], &owner, 0);
}

bool waiters_next(const struct segment *segment, unsigned *cursor, struct waiter *out)
{
    const uint64_t count = record_count(segment);
    while (*cursor < count) {
        struct sealed sealed;
        if (sealed_read(record_at(segment, (*cursor)++), &sealed) && sealed.word[WORD(owner)]) {
            unpack(&sealed, out);
            return true;
        }
    }
    return false;
}
