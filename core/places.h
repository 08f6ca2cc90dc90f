/* SPDX-License-Identifier: MIT */
/*
 * Places: where one request stands in the queues of its buckets.
 *
 * With one bucket this is simple: take a place, come back when it is due.  With several (a host's,
 * and one of a path with its own quota) the places become due at different times, and one that is
 * used later than its bucket's jitter after its time is stale: it would let requests bunch up that
 * the bucket had spaced out.  To book ahead in the faster bucket would hold up everybody else there.
 * So a request holds places only where they will still be fresh when the slowest bucket lets it go;
 * it takes the others when that time has come.  If one of those then turns out to be the slower one,
 * it is that one that is held, and the first place is given up if it would go stale: some other
 * request has just used what this one had to wait for, so the queues as a whole always move.
 *
 * The same rule covers a request that may not go before some time of its own (backoff): it takes its
 * place when it would be fresh then, and not before.
 *
 * Belongs to one request, on one thread at a time.  No allocation, no lock, no system call.
 */
#ifndef CURTSY_CORE_PLACES_H
#define CURTSY_CORE_PLACES_H

#include "core/bucket.h"
#include "core/glance.h"

struct places {
    struct bucket *bucket[POLICY_BUCKETS_MAX];
    const struct limits *limits[POLICY_BUCKETS_MAX]; /* asked for in them */
    uint64_t key[POLICY_BUCKETS_MAX];                /* what each was told by when it was added */
    struct bucket_slot slot[POLICY_BUCKETS_MAX];
    unsigned count;
    bool holds_some; /* false: no slot is booked */
};

/* None yet. */
static inline void places_clear(struct places *places)
{
    places->count = 0;
    places->holds_some = false;
}

/* Adds a bucket in which `limits` are asked for; they outlive the places. */
static inline void places_add(struct places *places, struct bucket *bucket, const struct limits *limits)
{
    unsigned i = places->count++;
    places->bucket[i] = bucket;
    places->limits[i] = limits;
    places->key[i] = bucket_key(bucket);
    places->slot[i].booked = false;
}

/* A request may be under way for so long that its bucket was given to another host: then it looks it up
 * again.  Else what comes of it is none of that one's affair, and it has no bucket any more. */
static inline bool places_have_strangers(const struct places *places)
{
    for (unsigned i = 0; i < places->count; i++)
        if (bucket_key_now(places->bucket[i]) != places->key[i])
            return true;
    return false;
}
void places_leave_strangers(struct places *places);

/* What `from` holds in the same buckets. */
void places_take_over(struct places *places, const struct places *from);

/* Asks for them, at the beginning and as long as the request waits: what nobody asks for any more
 * does not hold it up.  False when a bucket has others in force: somebody asks for stricter ones. */
static inline bool places_ask(const struct places *places, const struct bucket_world *world, int64_t now_ns)
{
    bool as_asked = true;
    for (unsigned i = 0; i < places->count; i++)
        if (places->limits[i]->count > 0 || !bucket_is_untouched(places->bucket[i]))
            as_asked = bucket_ask_limits(places->bucket[i], world, now_ns, places->limits[i]) && as_asked;
    return as_asked;
}

/* Does it hold none, and was nothing ever in force in any bucket?  Then there is nothing to look for. */
static inline bool places_are_untouched(const struct places *places)
{
    for (unsigned i = 0; i < places->count; i++)
        if (!bucket_is_untouched(places->bucket[i]))
            return false;
    return !places->holds_some;
}

/* Is there nothing to book in any of them?  Then the others need not be asked. */
bool places_are_open(const struct places *places, int64_t now_ns);

/* Takes its place where it is due at once, which the usual request with one bucket finds out in one step.
 * False: nothing was taken; look and arrange. */
bool places_take_due(struct places *places, int64_t now_ns);

/* When the request could go, by what it holds and what it would have to book.  Changes nothing. */
int64_t places_look(const struct places *places, int64_t now_ns);

/* The same if soft blocks did not count. */
int64_t places_look_hard(const struct places *places, int64_t now_ns);

/* The end of the last block that all who wait for it would go at in the same moment (bucket_unpaced_ns). */
int64_t places_unpaced_ns(const struct places *places, int64_t now_ns);

/* Takes and gives back places for a request that may not go before not_before_ns, and returns when
 * it may go by them: now_ns or less only if it holds all of them. */
int64_t places_arrange(struct places *places, int64_t not_before_ns, int64_t now_ns);

/* The request goes: its places are used up, and where it has none it is charged. */
void places_use(struct places *places, int64_t now_ns);

/* The request does not go. */
void places_cancel(struct places *places);
static inline void places_give_back(struct places *places)
{
    if (places->holds_some)
        places_cancel(places);
}

#endif
