/* SPDX-License-Identifier: MIT */
/*
 * The bucket: a budget of requests that every process on the machine draws on, in memory that
 * they share.  No lock, and nothing to repair: each step is one compare-and-swap on one 64-bit
 * word, so a process killed at any instruction leaves nothing locked and nothing half-written.
 *
 * A bucket has up to RATES_MAX limits, and each limit is a GCRA (ITU-T I.371) counted in tokens
 * against a virtual clock instead of in time:
 *
 *     v(t)  = v0 + rate x max(0, t - start)          the virtual clock, in tokens
 *     book:   base = max(tat, v(now)); tat' = base + 1; the slot is tat' - burst
 *     act:    when now >= start and v(now) >= slot
 *
 * (start, and v0, rate, burst of every limit) are one record, immutable once published.  A new
 * rate is a new slope from now on; a server's block until R is a record with start = R, a clock
 * that stands still until then.  Either way the waiters keep their order and their spacing, since
 * their slots are positions in tokens and not in time.
 *
 * Publishing: records lie in a small pool.  A publisher claims a free one by compare-and-swap of
 * its owner word, fills it, and publishes {generation, index} in one word by compare-and-swap; the
 * loser of a race has written only into a record of its own.  Readers copy what they need and
 * check that the word has not changed.  A record is taken back only when its owner is provably
 * dead and it is not the published one.  (The whole argument is in bucket_publishing.c.)
 *
 * Rules that were learned by simulation, and that the code keeps:
 *   - a block needs `now >= start`, not only v >= slot: idle burst credit is due already;
 *   - before a block is published, tat of the fastest limit is raised to v + burst, so that no idle
 *     credit is spent the moment it lifts: everybody comes one spacing after the other;
 *   - one record carries a block and a new rate: start' = max(now, start, R); a later, shorter word
 *     never shortens a longer one;
 *   - `now` is read between two equal loads of the published word, by a caller-given clock, and the
 *     slot is checked again before sending: a stalled process must not act on an old record;
 *   - a slot used later than jitter_ns after its time is forfeited and booked anew, or a heap of
 *     stopped processes would act at once (its time is the later of its turn and of its booking, read
 *     from the present record; of several limits the least jitter counts);
 *   - several limits: look at all, refuse on the largest wait, book all, act at the latest;
 *   - what is charged without waiting (debt) is clamped to one window;
 *   - a limit that nobody asks for any more binds nobody, but is kept with its clock until it is full
 *     again, which is when it is the same as an absent one: those who ask may take turns.
 *
 * All zeros is a valid bucket: no limits, no block, unused.  Every number read from the bucket is
 * checked or clamped: garbage in it can cost politeness, never a crash, a hang or an overflow
 * (arithmetic is saturating; waits are finite or TIME_NEVER).
 *
 * Times are nanoseconds of one machine-wide clock (CLOCK_BOOTTIME in production).  All functions
 * are thread-safe, process-safe and async-signal-safe; none allocates or makes a system call,
 * except that bucket_publish asks `owner_is_dead` when the pool is exhausted.
 */
#ifndef CURTSY_CORE_BUCKET_H
#define CURTSY_CORE_BUCKET_H

#include "core/limits.h"
#include "core/metrics.h"
#include "core/operator.h"
#include "core/policy.h"

#include <stdatomic.h>

/* The layout in memory is core/segment_layout.h. */
struct bucket;

/* What a bucket's owner words and its publisher need of the outside. */
struct bucket_world {
    uint64_t self; /* names this process; 0: ask who_am_i, which a forked child answers anew */
    uint64_t (*who_am_i)(void);
    bool (*owner_is_dead)(uint64_t owner); /* true only when it is proven; may be NULL (never) */
    int64_t (*clock_ns)(void);             /* reads the clock anew right before publishing; NULL: now_ns will do */
};

/* A booked place in the queue of a bucket: one position a limit.  A limit keeps its column while
 * its window is in force, whatever becomes of the others. */
struct bucket_slot {
    uint64_t tat[RATES_MAX];   /* by column: the word's value after booking, Q16 tokens */
    uint64_t clock[RATES_MAX]; /* by column: the virtual clock at that moment, Q16 tokens */
    int64_t booked_ns;
    unsigned columns; /* a bit for each column booked; none for a bucket without limits */
    bool booked;
};

enum bucket_verdict {
    BUCKET_ACT,     /* now */
    BUCKET_WAIT,    /* not before *until_ns */
    BUCKET_FORFEIT, /* later than jitter after its time: the slot is void, book anew */
};

/* No limits and no block: there is nothing to book, to wait for or to charge.  A load or two. */
bool bucket_is_open(const struct bucket *bucket, int64_t now_ns);

/* When a request booked now could go: `now_ns` if at once.  Writes nothing.  *hard (may be NULL):
 * the wait comes from a refusal's block or a configured limit, for the larger part of it at least,
 * and not from a soft block. */
int64_t bucket_peek(const struct bucket *bucket, int64_t now_ns, bool *hard);

/* The same if soft blocks did not count: what no cutting of soft waits may undercut.  slot NULL:
 * a request booked now; else the holder of that slot.  Never later than bucket_peek or bucket_check
 * say. */
int64_t bucket_hard_ns(const struct bucket *bucket, const struct bucket_slot *slot, int64_t now_ns);

/* Takes the next place in the queue.  Never waits, always succeeds; check the slot next. */
void bucket_book(struct bucket *bucket, int64_t now_ns, struct bucket_slot *slot);

/* The same if that place is due at once, in one look and one step: what nearly every request does where a
 * quota does not bind.  False: nothing was taken, for it is not due, or somebody else has come first,
 * or there are several limits (or none); then look and book. */
bool bucket_take_due(struct bucket *bucket, int64_t now_ns, struct bucket_slot *slot);

/* May the holder of `slot` go at now_ns?  Blocks and new rates since booking are in it. */
enum bucket_verdict bucket_check(const struct bucket *bucket, const struct bucket_slot *slot, int64_t now_ns,
                                 int64_t *until_ns);

/* Gives the place back: in full if nobody booked after it, else it stays empty.  True if in full. */
bool bucket_cancel(struct bucket *bucket, struct bucket_slot *slot);

/* Counts `requests` that went or go without waiting (observe, redirect hops), as debt of at most
 * one window a limit. */
void bucket_charge(struct bucket *bucket, int64_t now_ns, uint64_t requests);

/* Who stops a bucket. */
enum block_kind {
    BLOCK_NONE,
    BLOCK_SOFT, /* the server, by a field of a success: pacing, which max_wait may cut */
    BLOCK_HARD, /* the server, by a refusal */
    BLOCK_HOLD, /* the operator; as hard */
};

/* Nobody goes before until_ns.  A hard word is never softened by a later soft one, and of two the
 * longer holds.  True if it was published or a longer one is in force already; false only if the
 * pool of records is exhausted by living publishers. */
bool bucket_block(struct bucket *bucket, const struct bucket_world *world, int64_t now_ns, int64_t until_ns,
                  enum block_kind kind);

/* Lifts a block, of whatever kind (the operator's word). */
bool bucket_release(struct bucket *bucket, const struct bucket_world *world, int64_t now_ns);

/* The limits that the caller's configuration asks for.  A bucket without limits takes them; the
 * same as in force is a few loads and no store beyond a coarse "asked for" stamp; stricter ones
 * take over at once; looser ones only after the stricter have not been asked for during
 * BUCKET_LIMITS_MEMORY_NS, so that of two processes with different files the stricter holds.
 * Limits are compared window by window (stricter: the lower rate, then the lower burst, then the
 * lower jitter); a window that only one of them asks for holds too, for as long.  Neither refills the
 * budget nor loses a waiter's place; a new window starts full, less those who wait already, and one that
 * comes back with what it had used.  Returns false when others are in force than asked for. */
#define BUCKET_LIMITS_MEMORY_NS (10 * NS_PER_SECOND)
bool bucket_ask_limits(struct bucket *bucket, const struct bucket_world *world, int64_t now_ns,
                       const struct limits *limits);

/* Nobody has asked for any limits lately: the next who asks gets his, without a budget anew. */
void bucket_forget_askers(struct bucket *bucket);

/* A full bucket again (the operator's word): the virtual clock is moved on by up to a burst, so that
 * those who wait already come first.  A block stays in force. */
bool bucket_refill(struct bucket *bucket, const struct bucket_world *world, int64_t now_ns);

/* The retry budget (a word of the bucket): retries over requests, with a reserve that a cold bucket
 * has and that refills within a minute.  bucket_retry_deposit counts a request; _withdraw asks for
 * a retry and is false when there is no room. */
void bucket_retry_deposit(struct bucket *bucket, int64_t now_ns, uint32_t budget_ppm);
bool bucket_retry_withdraw(struct bucket *bucket, int64_t now_ns, uint32_t reserve);

/* The usual latency of an attempt (exponentially weighted, 1/8), for "is there room for one". */
void bucket_note_latency(struct bucket *bucket, int64_t latency_ns);
int64_t bucket_usual_latency_ns(const struct bucket *bucket);

/* When hard waits were last refused: a program that asks again at once is slowed.  Stores now_ns,
 * returns the time stored before (0: never). */
int64_t bucket_note_refusal(struct bucket *bucket, int64_t now_ns);

/* Where everyone counts; see core/metrics.h. */
struct metrics *bucket_metrics(struct bucket *bucket);

/* What it is told by (segment_key of its name).  Another one than before: it was idle for so long that it
 * was given to another name. */
uint64_t bucket_key(const struct bucket *bucket);

/* The operator's mode for this bucket alone (core/operator.h). */
void bucket_set_mode(struct bucket *bucket, enum operator_mode mode, int64_t until_ns);
enum operator_mode bucket_mode(const struct bucket *bucket, int64_t now_ns);

/* What blocks it now, if anything does. */
enum block_kind bucket_block_kind(const struct bucket *bucket, int64_t now_ns);

/* Until when a server's word stops the holder of `slot` (NULL: a request booked now), if no limit spaces him
 * from the others who wait for that: they would all go in the same moment.  The time stays when it has
 * passed, and is an earlier one once the operator has lifted the block before its end.  0: there is none, a
 * limit spaces them, or the operator holds it for at least as long. */
int64_t bucket_unpaced_ns(const struct bucket *bucket, const struct bucket_slot *slot, int64_t now_ns);

/* Until when the operator holds it; 0: he does not. */
int64_t bucket_held_until_ns(const struct bucket *bucket, int64_t now_ns);

/* A consistent picture, for status and metrics. */
struct bucket_state {
    char name[BUCKET_NAME_SIZE];
    struct limits limits;     /* the longest window first */
    double tokens[RATES_MAX]; /* of each: that could go at once now; negative: queued or owed */
    int64_t blocked_until_ns; /* 0: not blocked */
    enum block_kind block;    /* what the longer part of it is */
    int64_t next_ns;          /* when a request booked now would go */
    enum operator_mode mode;
    int64_t mode_until_ns; /* TIME_NEVER: until it is changed */
    uint64_t generation;
};
void bucket_read_state(const struct bucket *bucket, int64_t now_ns, struct bucket_state *out);

/* Full (also in limits that nobody asks for any more), not blocked, nobody queued, no retries owed, no operator's
 * mode: the same as absent, so that its place may be reused. */
bool bucket_is_idle(const struct bucket *bucket, int64_t now_ns);

/* Some are in force, or were when it was last asked for any. */
bool bucket_has_limits(const struct bucket *bucket, int64_t now_ns);

#endif
