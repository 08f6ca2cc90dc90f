/* SPDX-License-Identifier: MIT */
/*
 * Arranging places.  Looking and booking are two steps, so what was booked is looked at again: in
 * between somebody else may have gone first.
 */
#include "core/places.h"

/* Each round books or gives back something; among honest neighbours two or three settle it. */
#define ROUNDS 4

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void places_take_over(struct places *places, const struct places *from)
{
    for (unsigned i = 0; i < places->count; i++)
        places->slot[i] = from->slot[i];
    places->holds_some = from->holds_some;
}

void places_leave_strangers(struct places *places)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < places->count; i++) {
        if (bucket_key(places->bucket[i]) != places->key[i])
            continue;
        places->bucket[kept] = places->bucket[i];
        places->limits[kept] = places->limits[i];
        places->key[kept] = places->key[i];
        places->slot[kept++] = places->slot[i];
    }
    places->count = kept;
}

bool places_are_open(const struct places *places, int64_t now_ns)
{
    for (unsigned i = 0; i < places->count; i++)
        if (places->slot[i].booked || !bucket_is_open(places->bucket[i], now_ns))
            return false;
    return true;
}

bool places_take_due(struct places *places, int64_t now_ns)
{
    if (places->count != 1 || places->slot[0].booked || !bucket_take_due(places->bucket[0], now_ns, &places->slot[0]))
        return false;
    places->holds_some = true;
    return true;
}

/* When bucket i would let the request go; a place that is held and stale counts for nothing. */
static int64_t look_at(const struct places *places, unsigned i, int64_t now_ns)
{
    int64_t at_ns = now_ns;
    const struct bucket_slot *slot = &places->slot[i];
    if (slot->booked && bucket_check(places->bucket[i], slot, now_ns, &at_ns) != BUCKET_FORFEIT)
        return at_ns;
    return bucket_peek(places->bucket[i], now_ns, NULL);
}

int64_t places_look(const struct places *places, int64_t now_ns)
{
    int64_t at_ns = now_ns;
    for (unsigned i = 0; i < places->count; i++)
        at_ns = later(at_ns, look_at(places, i, now_ns));
    return at_ns;
}

int64_t places_look_hard(const struct places *places, int64_t now_ns)
{
    int64_t at_ns = now_ns;
    for (unsigned i = 0; i < places->count; i++)
        at_ns =
            later(at_ns, bucket_hard_ns(places->bucket[i], places->slot[i].booked ? &places->slot[i] : NULL, now_ns));
    return at_ns;
}

int64_t places_unpaced_ns(const struct places *places, int64_t now_ns)
{
    int64_t at_ns = 0;
    for (unsigned i = 0; i < places->count; i++) {
        const struct bucket_slot *slot = &places->slot[i];
        at_ns = later(at_ns, bucket_unpaced_ns(places->bucket[i], slot->booked ? slot : NULL, now_ns));
    }
    return at_ns;
}

/* What places_look does, and a stale place is let go. */
static int64_t refresh(struct places *places, unsigned i, int64_t now_ns)
{
    int64_t at_ns = now_ns;
    struct bucket_slot *slot = &places->slot[i];
    if (slot->booked) {
        if (bucket_check(places->bucket[i], slot, now_ns, &at_ns) != BUCKET_FORFEIT)
            return at_ns;
        bucket_cancel(places->bucket[i], slot);
    }
    return bucket_peek(places->bucket[i], now_ns, NULL);
}

/* The least jitter of its limits is how long a place stays fresh: for ever where there are none. */
static bool is_fresh_at(const struct limits *limits, int64_t due_ns, int64_t then_ns)
{
    for (unsigned i = 0; i < limits->count; i++)
        if (then_ns - due_ns > limits->item[i].jitter_ns)
            return false;
    return true;
}

/* Holds a place in bucket i, due at due_ns, if it would be fresh when the request goes.  True if one
 * was taken. */
static bool hold_if_fresh(struct places *places, unsigned i, int64_t due_ns, int64_t goes_ns, int64_t now_ns)
{
    struct bucket_slot *slot = &places->slot[i];
    bool is_fresh = is_fresh_at(places->limits[i], due_ns, goes_ns);
    if (is_fresh && !slot->booked) {
        bucket_book(places->bucket[i], now_ns, slot);
        places->holds_some = true;
        return true;
    }
    if (!is_fresh && slot->booked)
        bucket_cancel(places->bucket[i], slot);
    return false;
}

int64_t places_arrange(struct places *places, int64_t not_before_ns, int64_t now_ns)
{
    int64_t goes_ns = now_ns;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t due_ns[POLICY_BUCKETS_MAX] = {0};
        bool took = false;
        goes_ns = later(now_ns, not_before_ns);
        for (unsigned i = 0; i < places->count; i++) {
            due_ns[i] = refresh(places, i, now_ns);
            goes_ns = later(goes_ns, due_ns[i]);
        }
        for (unsigned i = 0; i < places->count; i++)
            took = hold_if_fresh(places, i, due_ns[i], goes_ns, now_ns) || took;
        if (!took)
            return goes_ns;
    }
    /* Not settled: to be looked at again in a moment. */
    return later(goes_ns, now_ns + NS_PER_MS);
}

void places_use(struct places *places, int64_t now_ns)
{
    for (unsigned i = 0; i < places->count; i++) {
        if (!places->slot[i].booked)
            bucket_charge(places->bucket[i], now_ns, 1);
        places->slot[i].booked = false;
    }
    places->holds_some = false;
}

void places_cancel(struct places *places)
{
    for (unsigned i = 0; i < places->count; i++)
        if (places->slot[i].booked)
            bucket_cancel(places->bucket[i], &places->slot[i]);
    places->holds_some = false;
}
