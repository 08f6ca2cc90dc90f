/* SPDX-License-Identifier: MIT */
/*
 * What both halves of the bucket stand on: how what is in force is read from its records, and the
 * arithmetic of virtual clocks.  Start with clock_at.
 *
 * Private to bucket.c, the queue, and bucket_publishing.c, which replaces what is in force.
 */
#ifndef CURTSY_CORE_BUCKET_PARTS_H
#define CURTSY_CORE_BUCKET_PARTS_H

#include "core/glance.h"

/*
 * Losing a compare-and-swap means that somebody else got on, so among honest processes these are
 * never reached.  They are there for one that scribbles over the segment for ever: then we go on
 * with what we have, since being wrong is better than hanging.
 */
#define SWAP_TRIES 1000
#define READ_TRIES 100

/* Of a record's shape: how many limits are kept beside those in force (RECORD_COUNT_MASK). */
#define RECORD_KEPT_SHIFT 16
#define RECORD_KEPT_MASK UINT64_C(0xff)

/* Where a virtual clock begins: above any burst, so that nothing is subtracted below 0. */
#define CLOCK_ORIGIN (TOKEN_ONE << 32)

/*
 * What no honest process writes.  A program that is told another time than the machine's might, if it
 * is not found out (core/system/clock.h), or one that scribbles: nobody is to wait by it, and whoever
 * comes next puts something else in its place.
 *   - A record is published in the present; a process may be kept from running for a while between
 *     reading the time and reading the record.
 *   - The longest time that may be asked for, as a max_block or a hold, is 3650 days (core/units.c), and
 *     a block is cut to that.
 *   - A queue has a place for each that waits, and the debt of one window.  Nobody waits for a year.
 */
#define DAY_NS (86400 * NS_PER_SECOND)
#define MADE_AHEAD_MOST_NS (3600 * NS_PER_SECOND)
#define BLOCK_MOST_NS (3650 * DAY_NS)
#define START_AHEAD_MOST_NS (BLOCK_MOST_NS + 366 * DAY_NS)
#define PLACES_MOST (UINT64_C(1) << 16)
#define PATIENCE_MOST_NS (366 * DAY_NS)

typedef unsigned __int128 wide;

/* One limit in force: its virtual clock reads v0 at the picture's start. */
struct view {
    struct limit limit;
    uint64_t v0;
    unsigned column;
};

/*
 * A copy of what is in force, with every number brought into range.  After the limits in force come those
 * that are kept: nobody has asked for them lately, so they bind nobody and nobody is counted in them, but
 * their clocks run on until they are full again, which is when they may be forgotten.  Whoever wants to
 * know what holds a request up reads no further than `count`.
 */
struct picture {
    uint64_t word; /* the published word that it belongs to */
    int64_t start_ns;
    int64_t hard_start_ns;
    int64_t held_until_ns;
    uint64_t made_ns;
    bool refilled;
    unsigned count; /* in force */
    unsigned kept;  /* after those, where that was read */
    struct view view[RATES_MAX];
};

/* ------------------------------------------------------------------ arithmetic ---- */

static inline uint64_t add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t subtract(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static inline uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t not_negative(int64_t time_ns)
{
    return time_ns > 0 ? time_ns : 0;
}

static inline uint64_t in_range(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static inline struct limit valid_limit(const struct limit *limit)
{
    return (struct limit){
        .rate = larger(limit->rate, 1),
        .burst = in_range(limit->burst, TOKEN_ONE, CLOCK_ORIGIN),
        .published = limit->published,
        .window_ns = (int64_t)in_range((uint64_t)limit->window_ns, 1, INT64_MAX / 4),
        .jitter_ns = (int64_t)in_range((uint64_t)limit->jitter_ns, LIMIT_JITTER_MIN_NS, INT64_MAX / 4),
    };
}

/* What a clock gains in `ns`, rounded down. */
static inline uint64_t gain(uint64_t rate, uint64_t ns)
{
    wide tokens = ((wide)rate * ns) >> RATE_SHIFT;
    return tokens > UINT64_MAX ? UINT64_MAX : (uint64_t)tokens;
}

/* The virtual clock.  Always computed from v0: rounding does not add up. */
static inline uint64_t clock_at(const struct view *view, int64_t start_ns, int64_t now_ns)
{
    if (now_ns <= start_ns)
        return view->v0;
    return add(view->v0, gain(view->limit.rate, (uint64_t)now_ns - (uint64_t)start_ns));
}

/* The first nanosecond at which the clock has come to `position`. */
static inline int64_t time_of(const struct view *view, int64_t start_ns, uint64_t position)
{
    if (position <= view->v0)
        return start_ns;
    wide scaled = ((wide)(position - view->v0) << RATE_SHIFT) + (view->limit.rate - 1);
    wide ns = scaled <= UINT64_MAX ? (uint64_t)scaled / view->limit.rate : scaled / view->limit.rate;
    return ns > (uint64_t)(TIME_NEVER - start_ns) ? TIME_NEVER : start_ns + (int64_t)ns;
}

/* Had the clock come to `position` by then?  Before the picture's start it is read backwards along
 * the present rate: a place that was due before a block or a change of rate is as late as it was,
 * in tokens, and the time for which the clock stood still does not count. */
static inline bool was_due_by(const struct view *view, const struct picture *picture, uint64_t position,
                              int64_t then_ns)
{
    if (then_ns >= picture->start_ns)
        return position <= clock_at(view, picture->start_ns, then_ns);
    if (picture->refilled)
        return false;
    wide back = (wide)view->limit.rate * ((uint64_t)picture->start_ns - (uint64_t)then_ns);
    wide tokens = (back + ((UINT64_C(1) << RATE_SHIFT) - 1)) >> RATE_SHIFT;
    return tokens <= view->v0 && position <= view->v0 - (uint64_t)tokens;
}

/* The end of a queue as it is read from a word, when its clock reads `clock`: one that is absurdly far
 * ahead is the end of none. */
static inline uint64_t end_of_queue(const struct view *view, uint64_t tat, uint64_t clock)
{
    if (subtract(tat, clock) <= view->limit.burst)
        return tat;
    uint64_t window_ns = (uint64_t)view->limit.window_ns;
    uint64_t by_places = add(gain(view->limit.rate, window_ns), PLACES_MOST * TOKEN_ONE);
    uint64_t by_time = gain(view->limit.rate, PATIENCE_MOST_NS + 2 * window_ns);
    return subtract(tat, clock) - view->limit.burst > smaller(by_places, by_time) ? 0 : tat;
}

static inline uint64_t next_place(uint64_t tat, uint64_t clock)
{
    return add(larger(tat, clock), TOKEN_ONE);
}

/* --------------------------------------------------------------------- reading ---- */

static inline unsigned index_of(uint64_t word)
{
    return (unsigned)(word & (BUCKET_RECORDS - 1));
}

static inline void copy_view(const struct record_limit *from, uint64_t column, struct view *to)
{
    const struct limit limit = {
        .rate = shared_load(&from->rate),
        .burst = shared_load(&from->burst),
        .published = shared_load(&from->published),
        .window_ns = shared_time(shared_load(&from->window_ns)),
        .jitter_ns = shared_time(shared_load(&from->jitter_ns)),
    };
    to->limit = valid_limit(&limit);
    to->v0 = shared_load(&from->v0);
    to->column = (unsigned)(column & (RATES_MAX - 1));
}

static inline uint64_t copy_head(const struct record *record, struct picture *out)
{
    uint64_t shape = shared_load(&record->shape);
    out->start_ns = shared_time(shared_load(&record->start_ns));
    out->hard_start_ns = shared_time(shared_load(&record->hard_start_ns));
    if (out->hard_start_ns > out->start_ns)
        out->hard_start_ns = out->start_ns;
    out->held_until_ns = shared_time(shared_load(&record->held_until_ns));
    out->made_ns = shared_load(&record->made_ns);
    out->refilled = shape & RECORD_REFILLED;
    out->count = (unsigned)smaller(shape & RECORD_COUNT_MASK, RATES_MAX);
    return shape;
}

/* No limits, no block. */
static inline void clear_picture(struct picture *picture)
{
    picture->start_ns = picture->hard_start_ns = picture->held_until_ns = 0;
    picture->made_ns = 0;
    picture->refilled = false;
    picture->count = picture->kept = 0;
}

/* A record that cannot be is none. */
static inline void leave_out_the_absurd(struct picture *picture, int64_t now_ns)
{
    if (now_ns >= picture->start_ns)
        return;
    if (shared_time(picture->made_ns) - MADE_AHEAD_MOST_NS > now_ns || picture->start_ns - START_AHEAD_MOST_NS > now_ns)
        clear_picture(picture);
}

/* What was published last, its limits only if they are asked for.  Nearly every request passes here, and
 * compilers do not see it: a call and what it saves are a tenth of an admission. */
static inline __attribute__((always_inline)) void read_record(const struct bucket *bucket, struct picture *out,
                                                              bool with_limits)
{
    for (int i = 0; i < READ_TRIES; i++) {
        uint64_t word = shared_load(&bucket->published);
        out->word = word;
        if (word >> PUBLISHED_INDEX_BITS == 0) {
            clear_picture(out);
            return;
        }
        const struct record *record = &bucket->record[index_of(word)];
        uint64_t shape = copy_head(record, out);
        for (unsigned at = 0; with_limits && at < out->count; at++)
            copy_view(&record->limit[at], shape >> (RECORD_COLUMNS_SHIFT + 8 * at), &out->view[at]);
        if (shared_load(&bucket->published) == word)
            return;
    }
}

/* The same with the limits that are kept, which hardly anybody has to know. */
static inline void read_whole_record(const struct bucket *bucket, struct picture *out)
{
    for (int i = 0; i < READ_TRIES; i++) {
        read_record(bucket, out, true);
        out->kept = 0;
        if (out->word >> PUBLISHED_INDEX_BITS == 0)
            return;
        const struct record *record = &bucket->record[index_of(out->word)];
        uint64_t shape = shared_load(&record->shape);
        out->kept = (unsigned)smaller(shape >> RECORD_KEPT_SHIFT & RECORD_KEPT_MASK, RATES_MAX - out->count);
        for (unsigned at = out->count; at < out->count + out->kept; at++)
            copy_view(&record->limit[at], shape >> (RECORD_COLUMNS_SHIFT + 8 * at), &out->view[at]);
        if (shared_load(&bucket->published) == out->word)
            return;
    }
}

/* What is in force at now_ns, or a little later. */
static inline void read_picture(const struct bucket *bucket, int64_t now_ns, struct picture *out)
{
    read_record(bucket, out, true);
    leave_out_the_absurd(out, now_ns);
}

/* The same, with the limits that are kept. */
static inline void read_whole_picture(const struct bucket *bucket, int64_t now_ns, struct picture *out)
{
    read_whole_record(bucket, out);
    leave_out_the_absurd(out, now_ns);
}

/* All but the limits themselves. */
static inline void read_head(const struct bucket *bucket, int64_t now_ns, struct picture *out)
{
    read_record(bucket, out, false);
    leave_out_the_absurd(out, now_ns);
}

#endif
