/* SPDX-License-Identifier: MIT */
/*
 * The bucket.  Three parts: reading what is in force and the arithmetic of virtual clocks; the
 * queue (peek, book, check, cancel, charge), which moves one word a limit; and publishing, which
 * replaces what is in force as a whole.  Start with clock_at and when.
 */
#include "core/bucket.h"

#include "core/segment_layout.h"

#include <string.h>

/*
 * Losing a compare-and-swap means that somebody else got on, so among honest processes these are
 * never reached.  They are there for one that scribbles over the segment for ever: then we go on
 * with what we have, since being wrong is better than hanging.
 */
#define SWAP_TRIES 1000
#define READ_TRIES 100
#define PUBLISH_TRIES 250
#define ORDER_TRIES 100

#define INDEX_BITS 8 /* of the published word; the generation is above */

/* Where a virtual clock begins: above any burst, so that nothing is subtracted below 0. */
#define CLOCK_ORIGIN (TOKEN_ONE << 32)
/* Most waiters that a new window is charged with. */
#define QUEUE_MAX (UINT64_C(1) << 20)

typedef unsigned __int128 wide;

/* One limit in force: its virtual clock reads v0 at the picture's start. */
struct view {
    struct limit limit;
    uint64_t v0;
    unsigned column;
};

/* A copy of what is in force, with every number brought into range. */
struct picture {
    uint64_t word; /* the published word that it belongs to */
    int64_t start_ns;
    int64_t hard_start_ns;
    int64_t held_until_ns;
    bool refilled;
    unsigned count;
    struct view view[RATES_MAX];
};

/* ------------------------------------------------------------------ arithmetic ---- */

static uint64_t add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t subtract(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t not_negative(int64_t time_ns)
{
    return time_ns > 0 ? time_ns : 0;
}

static uint64_t in_range(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static struct limit valid_limit(const struct limit *limit)
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
static uint64_t gain(uint64_t rate, uint64_t ns)
{
    wide tokens = ((wide)rate * ns) >> RATE_SHIFT;
    return tokens > UINT64_MAX ? UINT64_MAX : (uint64_t)tokens;
}

/* The virtual clock.  Always computed from v0: rounding does not add up. */
static uint64_t clock_at(const struct view *view, int64_t start_ns, int64_t now_ns)
{
    if (now_ns <= start_ns)
        return view->v0;
    return add(view->v0, gain(view->limit.rate, (uint64_t)now_ns - (uint64_t)start_ns));
}

/* The first nanosecond at which the clock has come to `position`. */
static int64_t time_of(const struct view *view, int64_t start_ns, uint64_t position)
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
static bool was_due_by(const struct view *view, const struct picture *picture, uint64_t position, int64_t then_ns)
{
    if (then_ns >= picture->start_ns)
        return position <= clock_at(view, picture->start_ns, then_ns);
    if (picture->refilled)
        return false;
    wide back = (wide)view->limit.rate * ((uint64_t)picture->start_ns - (uint64_t)then_ns);
    wide tokens = (back + ((UINT64_C(1) << RATE_SHIFT) - 1)) >> RATE_SHIFT;
    return tokens <= view->v0 && position <= view->v0 - (uint64_t)tokens;
}

static uint64_t next_place(uint64_t tat, uint64_t clock)
{
    return add(larger(tat, clock), TOKEN_ONE);
}

/* --------------------------------------------------------------------- reading ---- */

static unsigned index_of(uint64_t word)
{
    return (unsigned)(word & (BUCKET_RECORDS - 1));
}

static void copy_view(const struct record_limit *from, uint64_t column, struct view *to)
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

static void copy_record(const struct record *record, struct picture *out)
{
    uint64_t shape = shared_load(&record->shape);
    out->start_ns = shared_time(shared_load(&record->start_ns));
    out->hard_start_ns = shared_time(shared_load(&record->hard_start_ns));
    if (out->hard_start_ns > out->start_ns)
        out->hard_start_ns = out->start_ns;
    out->held_until_ns = shared_time(shared_load(&record->held_until_ns));
    out->refilled = shape & RECORD_REFILLED;
    out->count = (unsigned)smaller(shape & RECORD_COUNT_MASK, RATES_MAX);
    for (unsigned i = 0; i < out->count; i++)
        copy_view(&record->limit[i], shape >> (RECORD_COLUMNS_SHIFT + 8 * i), &out->view[i]);
}

/* What is in force now.  Nothing was ever published: no limits, no block. */
static void read_picture(const struct bucket *bucket, struct picture *out)
{
    for (int i = 0; i < READ_TRIES; i++) {
        uint64_t word = shared_load(&bucket->published);
        out->word = word;
        if (word >> INDEX_BITS == 0) {
            out->start_ns = out->hard_start_ns = out->held_until_ns = 0;
            out->refilled = false;
            out->count = 0;
            return;
        }
        copy_record(&bucket->record[index_of(word)], out);
        if (shared_load(&bucket->published) == word)
            return;
    }
}

/* Has anything ever been in force? */
static bool is_untouched(const struct bucket *bucket)
{
    return shared_load(&bucket->published) >> INDEX_BITS == 0;
}

bool bucket_is_open(const struct bucket *bucket, int64_t now_ns)
{
    struct picture picture;
    if (is_untouched(bucket))
        return true;
    read_picture(bucket, &picture);
    return picture.count == 0 && now_ns >= picture.start_ns;
}

/* ------------------------------------------------------------------- the queue ---- */

static bool is_counted(const struct bucket_slot *slot, const struct view *view)
{
    return slot->columns >> view->column & 1;
}

/* When the holder of `slot` may go, NULL: a request booked now.  With the clocks starting at
 * start_ns, which is the picture's, or its hard one. */
static int64_t when(const struct bucket *bucket, const struct picture *picture, const struct bucket_slot *slot,
                    int64_t start_ns, int64_t now_ns)
{
    int64_t at_ns = later(now_ns, start_ns);
    for (unsigned i = 0; i < picture->count; i++) {
        const struct view *view = &picture->view[i];
        uint64_t tat;
        if (!slot)
            tat = next_place(shared_load(&bucket->tat[view->column]), clock_at(view, picture->start_ns, now_ns));
        else if (is_counted(slot, view))
            tat = slot->tat[view->column];
        else
            continue; /* a window that came after the booking, charged with all who waited */
        uint64_t position = subtract(tat, view->limit.burst);
        if (position > clock_at(view, start_ns, now_ns))
            at_ns = later(at_ns, time_of(view, start_ns, position));
    }
    return at_ns;
}

static int64_t hard_when(const struct bucket *bucket, const struct picture *picture, const struct bucket_slot *slot,
                         int64_t now_ns)
{
    return when(bucket, picture, slot, now_ns < picture->start_ns ? picture->hard_start_ns : picture->start_ns, now_ns);
}

int64_t bucket_peek(const struct bucket *bucket, int64_t now_ns, bool *hard)
{
    struct picture picture;
    now_ns = not_negative(now_ns);
    read_picture(bucket, &picture);
    int64_t at_ns = when(bucket, &picture, NULL, picture.start_ns, now_ns);
    if (hard) {
        int64_t hard_ns = at_ns > now_ns ? hard_when(bucket, &picture, NULL, now_ns) : now_ns;
        *hard = at_ns > now_ns && hard_ns - now_ns >= at_ns - hard_ns;
    }
    return at_ns;
}

int64_t bucket_hard_ns(const struct bucket *bucket, const struct bucket_slot *slot, int64_t now_ns)
{
    struct picture picture;
    now_ns = not_negative(now_ns);
    read_picture(bucket, &picture);
    return hard_when(bucket, &picture, slot, now_ns);
}

/* The next place in one queue.  Whoever swaps later gets a later place: that is the order. */
static uint64_t take_place(_Atomic uint64_t *word, uint64_t clock)
{
    uint64_t tat = shared_load(word);
    for (int i = 0; i < SWAP_TRIES; i++) {
        uint64_t next = next_place(tat, clock);
        if (shared_swap(word, &tat, next))
            return next;
    }
    return add(shared_add(word, TOKEN_ONE), TOKEN_ONE);
}

static void take_places(struct bucket *bucket, const struct picture *picture, int64_t now_ns, struct bucket_slot *slot)
{
    slot->columns = 0;
    slot->booked = true;
    for (unsigned i = 0; i < picture->count; i++) {
        const struct view *view = &picture->view[i];
        uint64_t clock = clock_at(view, picture->start_ns, now_ns);
        slot->clock[view->column] = clock;
        slot->tat[view->column] = take_place(&bucket->tat[view->column], clock);
        slot->columns |= 1u << view->column;
    }
}

/* Nobody has come after us in the first queue by the time that we stand in all of them: then who is
 * behind us there is behind us in each.  And who is before us there, but not in each, finds that we
 * have come after him. */
static bool is_in_order(const struct bucket *bucket, const struct picture *picture, const struct bucket_slot *slot)
{
    unsigned first = picture->count ? picture->view[0].column : 0;
    return picture->count < 2 || shared_load(&bucket->tat[first]) == slot->tat[first];
}

/*
 * A process that sleeps anywhere in here does no harm: now_ns is older than the record that is
 * read, so the clock that it computes is never ahead of the true one, and tat is never pushed ahead
 * by a record that has been replaced.  The slot that it comes home with is old by then, and
 * bucket_check sees that.
 *
 * Several limits are several queues, and the order must be the same in all of them: a place that is
 * used late because of the other queue is harmless only if everybody behind it is delayed as much.
 */
void bucket_book(struct bucket *bucket, int64_t now_ns, struct bucket_slot *slot)
{
    struct picture picture;
    now_ns = not_negative(now_ns);
    read_picture(bucket, &picture);
    slot->booked_ns = now_ns;
    take_places(bucket, &picture, now_ns, slot);
    for (int i = 0; i < ORDER_TRIES && !is_in_order(bucket, &picture, slot); i++) {
        bucket_cancel(bucket, slot);
        take_places(bucket, &picture, now_ns, slot);
    }
}

/* If another record has come into force meanwhile, the place may not be due by that: it is given back. */
bool bucket_take_due(struct bucket *bucket, int64_t now_ns, struct bucket_slot *slot)
{
    struct picture picture;
    read_picture(bucket, &picture);
    if (picture.count != 1 || now_ns < picture.start_ns || now_ns < 0)
        return false;
    const struct view *view = &picture.view[0];
    uint64_t clock = clock_at(view, picture.start_ns, now_ns);
    uint64_t tat = shared_load(&bucket->tat[view->column]);
    uint64_t next = next_place(tat, clock);
    if (subtract(next, view->limit.burst) > clock || !shared_swap(&bucket->tat[view->column], &tat, next))
        return false;
    slot->tat[view->column] = next;
    slot->clock[view->column] = clock;
    slot->booked_ns = now_ns;
    slot->columns = 1u << view->column;
    slot->booked = true;
    if (shared_load(&bucket->published) == picture.word)
        return true;
    bucket_cancel(bucket, slot);
    return false;
}

/*
 * Is it more than the jitter since the holder could have gone?  He could go when his turn had come
 * in every limit, and he had booked; so he is late if all of that was so jitter + 1 ns ago, where
 * "ago" is counted from when the clock last stood still, if it does now.  A booking is compared in
 * time too, since the clock of a slow limit moves in steps.
 *
 * Why it matters: let a_k be the time at which the k-th could go at the earliest.  In each limit
 * tat_k >= v(a_k) + 1 and v(a_k) >= tat_k - burst, and tat grows by 1 from place to place, so that
 * m - k + 1 <= burst + v(a_m) - v(a_k).  Nobody is seen to go before a_k, nor later than a_k +
 * jitter; so any window of length L sees at most burst + rate x (L + jitter).
 *
 * With several limits a_k is the latest of them, and the same holds in each while longer windows
 * have lower rates.  In the faster one: those who are delayed by the slower come spaced by the
 * slower rate, and the first who is not counts as above.  In the slower one: who is delayed by the
 * faster queue since it was last empty has as many before him there as here, so by the time that he
 * may go the slower clock has not gained more than those have taken, and tat_k >= v(a_k) + 1 still.
 */
static bool is_late(const struct picture *picture, const struct bucket_slot *slot, int64_t now_ns)
{
    int64_t jitter_ns = TIME_NEVER;
    for (unsigned i = 0; i < picture->count; i++)
        if (is_counted(slot, &picture->view[i]) && picture->view[i].limit.jitter_ns < jitter_ns)
            jitter_ns = picture->view[i].limit.jitter_ns;
    if (slot->booked_ns >= now_ns || now_ns - slot->booked_ns <= jitter_ns)
        return false;

    int64_t then_ns = later(now_ns, picture->start_ns) - jitter_ns - 1;
    for (unsigned i = 0; i < picture->count; i++) {
        const struct view *view = &picture->view[i];
        if (!is_counted(slot, view))
            continue;
        uint64_t turn = subtract(slot->tat[view->column], view->limit.burst);
        if (!was_due_by(view, picture, larger(turn, slot->clock[view->column]), then_ns))
            return false;
    }
    return jitter_ns != TIME_NEVER;
}

enum bucket_verdict bucket_check(const struct bucket *bucket, const struct bucket_slot *slot, int64_t now_ns,
                                 int64_t *until_ns)
{
    struct picture picture;
    now_ns = not_negative(now_ns);
    *until_ns = now_ns;
    if (!slot->booked)
        return BUCKET_FORFEIT;
    read_picture(bucket, &picture);
    if (is_late(&picture, slot, now_ns))
        return BUCKET_FORFEIT;
    *until_ns = when(bucket, &picture, slot, picture.start_ns, now_ns);
    return *until_ns > now_ns ? BUCKET_WAIT : BUCKET_ACT;
}

/* Later callers were promised times computed after this place, so it can be given back in full only
 * while it is the last one. */
bool bucket_cancel(struct bucket *bucket, struct bucket_slot *slot)
{
    if (!slot->booked)
        return false;
    bool in_full = true;
    for (unsigned column = 0; column < RATES_MAX; column++) {
        if (!(slot->columns >> column & 1))
            continue;
        uint64_t mine = slot->tat[column];
        in_full = shared_swap(&bucket->tat[column], &mine, subtract(mine, TOKEN_ONE)) && in_full;
    }
    slot->booked = false;
    return in_full;
}

void bucket_charge(struct bucket *bucket, int64_t now_ns, uint64_t requests)
{
    struct picture picture;
    if (is_untouched(bucket))
        return;
    now_ns = not_negative(now_ns);
    read_picture(bucket, &picture);
    uint64_t tokens = requests > UINT64_MAX / TOKEN_ONE ? UINT64_MAX : requests * TOKEN_ONE;
    for (unsigned i = 0; i < picture.count; i++) {
        const struct view *view = &picture.view[i];
        uint64_t clock = clock_at(view, picture.start_ns, now_ns);
        uint64_t window = gain(view->limit.rate, (uint64_t)view->limit.window_ns);
        uint64_t most = add(add(clock, view->limit.burst), window);
        uint64_t tat = shared_load(&bucket->tat[view->column]);
        for (int tries = 0; tries < SWAP_TRIES; tries++) {
            uint64_t base = larger(tat, clock);
            uint64_t next = smaller(add(base, tokens), larger(base, most));
            if (next == tat || shared_swap(&bucket->tat[view->column], &tat, next))
                break;
        }
    }
}

/* ------------------------------------------------------------------ publishing ---- */

/*
 * Publishing, and why it is correct.
 *
 * `published` = {generation, index} names the record in force.  To replace it, a publisher
 *   1. reads it and makes a picture of the record that it names;
 *   2. claims a record: compare-and-swaps its owner from 0 to itself, then looks at `published`
 *      again, and puts the record back if it is the one in force;
 *   3. fills it; raises tat words where the change asks for it;
 *   4. compare-and-swaps `published` from what it read in 1 to {generation + 1, its record};
 *      if that fails, goes back to 1 with the record that it still holds;
 *   5. sets the owner back to 0.
 *
 * A record in force is not written to.  Only a record's owner writes to it.  After a claim the
 * record is not in force (2), and it can come into force only by step 4 of its owner.  Could 2
 * overlook that it is in force?  The owner was 0 because its last publisher put it there in step 5,
 * after its step 4; the claim read that 0, so the look that follows sees that step 4 or something
 * newer.
 *
 * A reader never takes a mixture.  It copies the record between two loads of `published` that give
 * the same word; generations do not come again, so all that time the record was in force.  In terms
 * of memory order: if any field that it copied was written by a later owner, then that load
 * acquired what the owner's store released, and the owner had seen before that another word was
 * published; so the reader's second load must give that word or a newer one, and it tries again.
 *
 * A change is never lost: 4 succeeds only if what is replaced is what the picture was made of.
 *
 * Nobody's death matters.  Up to 4 the claimed record is unknown to anyone; raised tat words cost
 * at most the idle credit.  From 4 on all is done but 5.  What remains in either case is a record
 * that carries a dead owner: it is taken over by a compare-and-swap from the dead owner when no
 * free one is left, and by step 2 only while it is not in force.  What a dead process had done is
 * visible to whoever has learned from the kernel that it is dead.  An owner that cannot be proven
 * dead keeps his record: he may be stopped in the middle of step 3.  If all are kept, the
 * publication fails.
 *
 * A publisher that is stopped between reading the time and step 4 puts the clocks back by as long
 * (others then wait longer), or, if he brings a higher rate, ahead; what came due more than the
 * jitter ago is void by the rule of is_late, so no heap of it goes at once.  He reads the time as
 * late as can be.
 */

/* What a change makes of a picture, and what has to be done before it is in force. */
struct draft {
    struct picture picture;
    uint64_t least_tat[RATES_MAX]; /* by column: raise the word to this */
    unsigned asked;                /* columns to be stamped */
};

/* Edits a picture that has been advanced to now_ns.  False: there is nothing to change. */
typedef bool edit(const struct bucket *bucket, struct draft *draft, int64_t now_ns, const void *wish);

static void raise_tat(_Atomic uint64_t *word, uint64_t least)
{
    uint64_t tat = shared_load(word);
    for (int i = 0; i < SWAP_TRIES && tat < least; i++)
        if (shared_swap(word, &tat, least))
            return;
}

/* The same state, told from now on: v0 is the clock's reading now. */
static void advance(struct picture *picture, int64_t now_ns)
{
    picture->refilled = false;
    if (now_ns < picture->start_ns)
        return;
    for (unsigned i = 0; i < picture->count; i++)
        picture->view[i].v0 = clock_at(&picture->view[i], picture->start_ns, now_ns);
    picture->start_ns = picture->hard_start_ns = picture->held_until_ns = now_ns;
}

/* Puts a record back.  By compare-and-swap, so that it is not taken from anybody else. */
static void release_record(struct record *record, uint64_t self)
{
    shared_swap(&record->owner, &self, 0);
}

static struct record *claim_from(struct bucket *bucket, unsigned index, uint64_t owner, uint64_t self)
{
    struct record *record = &bucket->record[index];
    if (!shared_swap(&record->owner, &owner, self))
        return NULL;
    if (index_of(shared_load(&bucket->published)) != index)
        return record;
    release_record(record, self);
    return NULL;
}

static struct record *claim_record(struct bucket *bucket, const struct bucket_world *world, uint64_t self)
{
    unsigned in_force = index_of(shared_load(&bucket->published));
    for (unsigned i = 1; i < BUCKET_RECORDS; i++) {
        struct record *record = claim_from(bucket, (in_force + i) % BUCKET_RECORDS, 0, self);
        if (record)
            return record;
    }
    for (unsigned i = 0; i < BUCKET_RECORDS && world->owner_is_dead; i++) {
        uint64_t owner = shared_load(&bucket->record[i].owner);
        if (!owner || owner == self || !world->owner_is_dead(owner))
            continue;
        struct record *record = claim_from(bucket, i, owner, self);
        if (record)
            return record;
    }
    return NULL;
}

static void fill_record(struct record *record, const struct picture *picture)
{
    uint64_t shape = picture->count | (picture->refilled ? RECORD_REFILLED : 0);
    for (unsigned i = 0; i < picture->count; i++) {
        const struct view *view = &picture->view[i];
        struct record_limit *to = &record->limit[i];
        shape |= (uint64_t)view->column << (RECORD_COLUMNS_SHIFT + 8 * i);
        shared_store(&to->v0, view->v0);
        shared_store(&to->rate, view->limit.rate);
        shared_store(&to->burst, view->limit.burst);
        shared_store(&to->published, view->limit.published);
        shared_store(&to->window_ns, (uint64_t)view->limit.window_ns);
        shared_store(&to->jitter_ns, (uint64_t)view->limit.jitter_ns);
        shared_store(&to->slope, 0);
        shared_store(&to->cap, 0);
        shared_store(&to->end_ns, 0);
    }
    shared_store(&record->start_ns, (uint64_t)picture->start_ns);
    shared_store(&record->hard_start_ns, (uint64_t)picture->hard_start_ns);
    shared_store(&record->held_until_ns, (uint64_t)picture->held_until_ns);
    shared_store(&record->shape, shape);
}

/* Before the change is in force: whoever sees the new record sees these too. */
static void prepare(struct bucket *bucket, const struct draft *draft, int64_t now_ns)
{
    for (unsigned column = 0; column < RATES_MAX; column++) {
        raise_tat(&bucket->tat[column], draft->least_tat[column]);
        if (draft->asked >> column & 1)
            shared_store(&bucket->asked_ns[column], (uint64_t)now_ns);
    }
}

static uint64_t next_word(uint64_t word, unsigned index)
{
    uint64_t generation = (word >> INDEX_BITS) + 1;
    return generation << INDEX_BITS | index;
}

static bool publish(struct bucket *bucket, const struct bucket_world *world, int64_t now_ns, edit *change,
                    const void *wish)
{
    const uint64_t self = world->self || !world->who_am_i ? larger(world->self, 1) : world->who_am_i();
    struct record *record = NULL;
    bool done = false;
    for (int i = 0; i < PUBLISH_TRIES && !done; i++) {
        struct draft draft = {0};
        read_picture(bucket, &draft.picture);
        uint64_t word = draft.picture.word;
        now_ns = later(not_negative(now_ns), world->clock_ns ? world->clock_ns() : 0);
        advance(&draft.picture, now_ns);
        if (!change(bucket, &draft, now_ns, wish)) {
            done = true;
            break;
        }
        if (!record && !(record = claim_record(bucket, world, self)))
            return false;
        fill_record(record, &draft.picture);
        prepare(bucket, &draft, now_ns);
        done = shared_swap(&bucket->published, &word, next_word(word, (unsigned)(record - bucket->record)));
    }
    if (record)
        release_record(record, self);
    return done;
}

/* ---------------------------------------------------------------------- blocks ---- */

struct block {
    int64_t until_ns;
    enum block_kind kind;
};

/*
 * A clock that stands still does not stop whoever has credit, hence `now >= start` in when; and the
 * credit must not be spent the moment the block lifts.  A request goes at the latest of its limits,
 * so it is enough to leave one of them without credit, and the fastest one gets it back soonest: the
 * others keep theirs, which may be an hour's.  Where tat is beyond that already there is a queue,
 * which keeps its places.
 */
static void spend_credit(struct draft *draft)
{
    const struct picture *picture = &draft->picture;
    const struct view *fastest = picture->view;
    for (unsigned i = 1; i < picture->count; i++)
        if (picture->view[i].limit.rate > fastest->limit.rate)
            fastest = &picture->view[i];
    if (picture->count)
        draft->least_tat[fastest->column] =
            larger(draft->least_tat[fastest->column], add(fastest->v0, fastest->limit.burst));
}

static bool edit_block(const struct bucket *bucket, struct draft *draft, int64_t now_ns, const void *wish)
{
    const struct block *block = wish;
    struct picture *picture = &draft->picture;
    (void)bucket;
    int64_t *const ends[] = {&picture->start_ns, &picture->hard_start_ns, &picture->held_until_ns};
    bool changed = false;
    if (block->until_ns <= now_ns)
        return false;
    for (unsigned i = 0; i < (unsigned)block->kind && i < sizeof ends / sizeof *ends; i++) {
        changed = changed || *ends[i] < block->until_ns;
        *ends[i] = later(*ends[i], block->until_ns);
    }
    if (!changed)
        return false;
    spend_credit(draft);
    return true;
}

bool bucket_block(struct bucket *bucket, const struct bucket_world *world, int64_t now_ns, int64_t until_ns,
                  enum block_kind kind)
{
    const struct block block = {until_ns, kind};
    return publish(bucket, world, now_ns, edit_block, &block);
}

static bool edit_release(const struct bucket *bucket, struct draft *draft, int64_t now_ns, const void *wish)
{
    (void)bucket;
    (void)wish;
    if (draft->picture.start_ns <= now_ns)
        return false;
    draft->picture.start_ns = draft->picture.hard_start_ns = draft->picture.held_until_ns = now_ns;
    return true;
}

bool bucket_release(struct bucket *bucket, const struct bucket_world *world, int64_t now_ns)
{
    return publish(bucket, world, now_ns, edit_release, NULL);
}

/* A bucket without a queue is full afterwards.  Out of a queue come as many as a full bucket lets
 * go, the first of them: not one is late, whatever the clock reads backwards. */
static bool edit_refill(const struct bucket *bucket, struct draft *draft, int64_t now_ns, const void *wish)
{
    bool changed = false;
    (void)now_ns;
    (void)wish;
    for (unsigned i = 0; i < draft->picture.count; i++) {
        struct view *view = &draft->picture.view[i];
        uint64_t missing = subtract(shared_load(&bucket->tat[view->column]), view->v0);
        view->v0 = add(view->v0, smaller(missing, view->limit.burst));
        changed = changed || missing;
    }
    draft->picture.refilled = changed;
    return changed;
}

bool bucket_refill(struct bucket *bucket, const struct bucket_world *world, int64_t now_ns)
{
    return publish(bucket, world, now_ns, edit_refill, NULL);
}

/* ---------------------------------------------------------------------- limits ---- */

#define ASKED_STEP_NS NS_PER_SECOND /* how old a stamp may grow before it is renewed */

/* Below 0: a is stricter; above 0: b is; 0: no difference that matters. */
static int compare_limits(const struct limit *a, const struct limit *b)
{
    if (a->rate != b->rate)
        return a->rate < b->rate ? -1 : 1;
    if (a->burst != b->burst)
        return a->burst < b->burst ? -1 : 1;
    return (a->jitter_ns > b->jitter_ns) - (a->jitter_ns < b->jitter_ns);
}

static const struct limit *limit_of_window(const struct limits *limits, int64_t window_ns)
{
    for (unsigned i = 0; i < limits->count; i++)
        if (limits->item[i].window_ns == window_ns)
            return &limits->item[i];
    return NULL;
}

static const struct view *view_of_window(const struct picture *picture, int64_t window_ns)
{
    for (unsigned i = 0; i < picture->count; i++)
        if (picture->view[i].limit.window_ns == window_ns)
            return &picture->view[i];
    return NULL;
}

static bool asked_within(const struct bucket *bucket, unsigned column, int64_t now_ns, int64_t age_ns)
{
    int64_t asked_ns = shared_time(shared_load(&bucket->asked_ns[column]));
    return asked_ns && asked_ns >= now_ns - age_ns && asked_ns - age_ns <= now_ns;
}

static unsigned columns_of(const struct picture *picture)
{
    unsigned columns = 0;
    for (unsigned i = 0; i < picture->count; i++)
        columns |= 1u << picture->view[i].column;
    return columns;
}

/* Waiters, in whole places: the longest queue of all limits. */
static uint64_t queue_length(const struct bucket *bucket, const struct picture *picture)
{
    uint64_t length = 0;
    for (unsigned i = 0; i < picture->count; i++) {
        const struct view *view = &picture->view[i];
        uint64_t last = subtract(shared_load(&bucket->tat[view->column]), view->limit.burst);
        length = larger(length, (subtract(last, view->v0) + TOKEN_ONE - 1) / TOKEN_ONE);
    }
    return smaller(length, QUEUE_MAX);
}

/* Inserts by window, the longest first. */
static void insert_view(struct picture *picture, const struct view *view)
{
    unsigned at = picture->count;
    for (; at > 0 && picture->view[at - 1].limit.window_ns < view->limit.window_ns; at--)
        picture->view[at] = picture->view[at - 1];
    picture->view[at] = *view;
    picture->count++;
}

/* A window that is in force and that nobody asks for any more. */
static bool is_forgotten(const struct bucket *bucket, const struct view *view, const struct limits *asked,
                         int64_t now_ns)
{
    return !limit_of_window(asked, view->limit.window_ns) &&
           !asked_within(bucket, view->column, now_ns, BUCKET_LIMITS_MEMORY_NS);
}

/* Windows that stay.  One that both sides name is replaced in its column by a stricter limit at
 * once, by a looser one when the stricter is asked for no longer.  Its clock goes on and tat is not
 * touched: what was used is used, and who waits has his place. */
static void keep_windows(const struct bucket *bucket, const struct picture *old, const struct limits *asked,
                         int64_t now_ns, struct draft *draft)
{
    for (unsigned i = 0; i < old->count; i++) {
        struct view view = old->view[i];
        const struct limit *mine = limit_of_window(asked, view.limit.window_ns);
        if (is_forgotten(bucket, &view, asked, now_ns))
            continue;
        int order = mine ? compare_limits(mine, &view.limit) : 1;
        bool is_mine = mine && (order <= 0 || !asked_within(bucket, view.column, now_ns, BUCKET_LIMITS_MEMORY_NS));
        if (is_mine) {
            draft->asked |= 1u << view.column;
            view.limit = order ? *mine : view.limit;
        }
        insert_view(&draft->picture, &view);
    }
}

/* A clock for a window that was not in force.  It takes over a forgotten one, with the queue that
 * stands there; else it begins in a column that nobody counts in, full, as if idle, less those who
 * wait already and will go without asking it. */
static struct view clock_for_new(const struct bucket *bucket, const struct picture *old, uint64_t *forgotten,
                                 struct draft *draft)
{
    struct view view = {0};
    if (*forgotten) {
        view = old->view[__builtin_ctzll(*forgotten)];
        *forgotten &= *forgotten - 1;
        return view;
    }
    unsigned all = (1u << RATES_MAX) - 1;
    view.column = (unsigned)__builtin_ctz(all & ~columns_of(&draft->picture));
    draft->least_tat[view.column] = CLOCK_ORIGIN;
    uint64_t tat = larger(shared_load(&bucket->tat[view.column]), CLOCK_ORIGIN);
    view.v0 = subtract(tat, queue_length(bucket, old) * TOKEN_ONE);
    return view;
}

static void add_windows(const struct bucket *bucket, const struct picture *old, const struct limits *asked,
                        int64_t now_ns, struct draft *draft)
{
    uint64_t forgotten = 0; /* a bit for each view of `old` */
    for (unsigned i = 0; i < old->count; i++)
        if (is_forgotten(bucket, &old->view[i], asked, now_ns))
            forgotten |= UINT64_C(1) << i;
    for (unsigned i = 0; i < asked->count && draft->picture.count < RATES_MAX; i++) {
        if (view_of_window(old, asked->item[i].window_ns))
            continue;
        struct view view = clock_for_new(bucket, old, &forgotten, draft);
        view.limit = asked->item[i];
        draft->asked |= 1u << view.column;
        insert_view(&draft->picture, &view);
    }
    /* Whoever takes such a column up again begins where its clock was. */
    for (; forgotten; forgotten &= forgotten - 1) {
        const struct view *view = &old->view[__builtin_ctzll(forgotten)];
        draft->least_tat[view->column] = larger(draft->least_tat[view->column], view->v0);
    }
}

static bool is_same(const struct picture *picture, const struct limits *limits)
{
    if (picture->count != limits->count)
        return false;
    for (unsigned i = 0; i < picture->count; i++)
        if (picture->view[i].limit.window_ns != limits->item[i].window_ns ||
            compare_limits(&picture->view[i].limit, &limits->item[i]) != 0)
            return false;
    return true;
}

static bool edit_limits(const struct bucket *bucket, struct draft *draft, int64_t now_ns, const void *wish)
{
    const struct limits *asked = wish;
    const struct picture old = draft->picture;
    struct limits result = {0};
    draft->picture.count = 0;
    keep_windows(bucket, &old, asked, now_ns, draft);
    add_windows(bucket, &old, asked, now_ns, draft);
    if (now_ns < old.start_ns)
        spend_credit(draft);
    result.count = draft->picture.count;
    for (unsigned i = 0; i < result.count; i++)
        result.item[i] = draft->picture.view[i].limit;
    return !is_same(&old, &result);
}

/* What was asked for, in range, the longest window first, each window once. */
static void order_limits(const struct limits *limits, struct limits *out)
{
    out->count = 0;
    for (unsigned i = 0; i < limits->count && i < RATES_MAX; i++) {
        struct limit limit = valid_limit(&limits->item[i]);
        if (limit_of_window(out, limit.window_ns))
            continue;
        unsigned at = out->count++;
        for (; at > 0 && out->item[at - 1].window_ns < limit.window_ns; at--)
            out->item[at] = out->item[at - 1];
        out->item[at] = limit;
    }
}

/* Stamps the windows that are in force as asked for.  A store a second at most. */
static void stamp_windows(struct bucket *bucket, const struct picture *picture, const struct limits *asked,
                          int64_t now_ns)
{
    for (unsigned i = 0; i < picture->count; i++) {
        const struct view *view = &picture->view[i];
        const struct limit *mine = limit_of_window(asked, view->limit.window_ns);
        if (mine && compare_limits(mine, &view->limit) == 0 &&
            !asked_within(bucket, view->column, now_ns, ASKED_STEP_NS))
            shared_store(&bucket->asked_ns[view->column], (uint64_t)now_ns);
    }
}

bool bucket_ask_limits(struct bucket *bucket, const struct bucket_world *world, int64_t now_ns,
                       const struct limits *limits)
{
    struct limits asked;
    struct picture picture;
    if (limits->count == 0 && is_untouched(bucket))
        return true;
    now_ns = not_negative(now_ns);
    read_picture(bucket, &picture);
    stamp_windows(bucket, &picture, limits, now_ns);
    if (is_same(&picture, limits))
        return true;
    order_limits(limits, &asked);
    stamp_windows(bucket, &picture, &asked, now_ns);
    if (is_same(&picture, &asked))
        return true;
    publish(bucket, world, now_ns, edit_limits, &asked);
    read_picture(bucket, &picture);
    return is_same(&picture, &asked);
}

void bucket_forget_askers(struct bucket *bucket)
{
    for (unsigned column = 0; column < RATES_MAX; column++)
        if (shared_load(&bucket->asked_ns[column]))
            shared_store(&bucket->asked_ns[column], 0);
}

/* ------------------------------------------------------------- the retry budget ---- */

/*
 * One word: the low 32 bits are a signed balance in Q16 retries, 0 for a cold bucket; the high ones
 * are the time at which it was that, in ticks of 2^24 ns (17 ms; they wrap after 2.3 years, when
 * the balance has long gone back to 0).  Requests add to the balance, retries take from it, down to
 * minus the reserve.  What is above 0 halves every ten seconds: retries are a part of the requests
 * of late.  What is below 0 comes back at a reserve a minute.
 */
#define RETRY_ONE INT64_C(65536)
#define RETRY_MOST (INT64_C(16384) * RETRY_ONE)
#define TICK_SHIFT 24
#define TICKS_PER_HALVING ((10 * NS_PER_SECOND) >> TICK_SHIFT)
#define TICKS_PER_MINUTE ((60 * NS_PER_SECOND) >> TICK_SHIFT)

struct retry_balance {
    int64_t retries; /* Q16 */
    uint32_t tick;
};

static struct retry_balance unpack_balance(uint64_t word)
{
    return (struct retry_balance){.retries = (int32_t)(uint32_t)word, .tick = (uint32_t)(word >> 32)};
}

static uint64_t pack_balance(struct retry_balance balance)
{
    if (balance.retries > RETRY_MOST)
        balance.retries = RETRY_MOST;
    if (balance.retries < -RETRY_MOST)
        balance.retries = -RETRY_MOST;
    return (uint64_t)balance.tick << 32 | (uint32_t)balance.retries;
}

/* A clock that is a little behind the word's is no time at all. */
static int64_t ticks_since(struct retry_balance balance, uint32_t tick)
{
    uint32_t ticks = tick - balance.tick;
    return ticks > UINT32_MAX - (1u << 16) ? 0 : ticks;
}

static int64_t halved(int64_t retries, int64_t ticks)
{
    int64_t halvings = ticks / TICKS_PER_HALVING;
    if (halvings >= 32)
        return 0;
    retries >>= halvings;
    return retries - retries * (ticks % TICKS_PER_HALVING) / (2 * TICKS_PER_HALVING);
}

void bucket_retry_deposit(struct bucket *bucket, int64_t now_ns, uint32_t budget_ppm)
{
    uint32_t tick = (uint32_t)((uint64_t)not_negative(now_ns) >> TICK_SHIFT);
    uint64_t word = shared_load(&bucket->retry);
    for (int i = 0; i < SWAP_TRIES; i++) {
        struct retry_balance balance = unpack_balance(word);
        int64_t ticks = ticks_since(balance, tick);
        if (balance.retries > 0)
            balance.retries = halved(balance.retries, ticks);
        else if (ticks >= TICKS_PER_MINUTE)
            balance.retries = 0;
        /* How fast a debt comes back only a withdrawal knows: the time since stays with it. */
        if (balance.retries >= 0)
            balance.tick = tick;
        balance.retries += RETRY_ONE * budget_ppm / PPM_ONE;
        if (shared_swap(&bucket->retry, &word, pack_balance(balance)))
            return;
    }
}

bool bucket_retry_withdraw(struct bucket *bucket, int64_t now_ns, uint32_t reserve)
{
    uint32_t tick = (uint32_t)((uint64_t)not_negative(now_ns) >> TICK_SHIFT);
    int64_t spare = (int64_t)smaller(reserve, RETRY_MOST / RETRY_ONE) * RETRY_ONE;
    uint64_t word = shared_load(&bucket->retry);
    for (int i = 0; i < SWAP_TRIES; i++) {
        struct retry_balance balance = unpack_balance(word);
        int64_t ticks = ticks_since(balance, tick);
        if (balance.retries > 0)
            balance.retries = halved(balance.retries, ticks);
        else if (ticks >= TICKS_PER_MINUTE || balance.retries + spare * ticks / TICKS_PER_MINUTE > 0)
            balance.retries = 0;
        else
            balance.retries += spare * ticks / TICKS_PER_MINUTE;
        if (balance.retries + spare < RETRY_ONE)
            return false;
        balance.retries -= RETRY_ONE;
        balance.tick = tick;
        if (shared_swap(&bucket->retry, &word, pack_balance(balance)))
            return true;
    }
    return false;
}

/* -------------------------------------------------------- small words and state ---- */

#define LATENCY_MAX_NS (3600 * NS_PER_SECOND)

/* Two processes may overwrite each other's sample: it is an estimate. */
void bucket_note_latency(struct bucket *bucket, int64_t latency_ns)
{
    int64_t sample = (int64_t)in_range((uint64_t)not_negative(latency_ns), 1, LATENCY_MAX_NS);
    int64_t usual = bucket_usual_latency_ns(bucket);
    shared_store(&bucket->latency_ns, (uint64_t)(usual ? usual + (sample - usual) / 8 : sample));
}

int64_t bucket_usual_latency_ns(const struct bucket *bucket)
{
    return (int64_t)smaller(shared_load(&bucket->latency_ns), LATENCY_MAX_NS);
}

int64_t bucket_note_refusal(struct bucket *bucket, int64_t now_ns)
{
    int64_t before_ns = shared_time(shared_exchange(&bucket->refused_ns, (uint64_t)not_negative(now_ns)));
    return before_ns < now_ns ? before_ns : not_negative(now_ns);
}

struct metrics *bucket_metrics(struct bucket *bucket)
{
    return &bucket->metrics;
}

void bucket_set_mode(struct bucket *bucket, enum operator_mode mode, int64_t until_ns)
{
    shared_store(&bucket->mode, operator_word(mode, until_ns));
}

enum operator_mode bucket_mode(const struct bucket *bucket, int64_t now_ns)
{
    uint64_t word = shared_load(&bucket->mode);
    return word ? operator_word_mode(word, now_ns) : OPERATOR_AUTO;
}

static enum block_kind kind_of_block(const struct picture *picture, int64_t now_ns)
{
    if (now_ns >= picture->start_ns)
        return BLOCK_NONE;
    if (now_ns < picture->held_until_ns)
        return BLOCK_HOLD;
    return now_ns < picture->hard_start_ns ? BLOCK_HARD : BLOCK_SOFT;
}

enum block_kind bucket_block_kind(const struct bucket *bucket, int64_t now_ns)
{
    struct picture picture;
    now_ns = not_negative(now_ns);
    read_picture(bucket, &picture);
    return kind_of_block(&picture, now_ns);
}

static void copy_name(const struct bucket *bucket, char name[BUCKET_NAME_SIZE])
{
    for (size_t i = 0; i < BUCKET_NAME_SIZE / 8; i++) {
        uint64_t word = shared_load(&bucket->name[i]);
        memcpy(name + 8 * i, &word, 8);
    }
    name[BUCKET_NAME_SIZE - 1] = 0;
    if (shared_load(&bucket->named) != shared_load(&bucket->key))
        memcpy(name, "?", 2);
    for (char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
}

void bucket_read_state(const struct bucket *bucket, int64_t now_ns, struct bucket_state *out)
{
    struct picture picture;
    now_ns = not_negative(now_ns);
    read_picture(bucket, &picture);
    *out = (struct bucket_state){
        .limits.count = picture.count,
        .next_ns = when(bucket, &picture, NULL, picture.start_ns, now_ns),
        .generation = picture.word >> INDEX_BITS,
    };
    if (now_ns < picture.start_ns) {
        out->blocked_until_ns = picture.start_ns;
        out->block = kind_of_block(&picture, now_ns);
    }
    out->mode = bucket_mode(bucket, now_ns);
    if (out->mode)
        out->mode_until_ns = operator_word_until_ns(shared_load(&bucket->mode));
    for (unsigned i = 0; i < picture.count; i++) {
        const struct view *view = &picture.view[i];
        uint64_t used = subtract(shared_load(&bucket->tat[view->column]), clock_at(view, picture.start_ns, now_ns));
        out->limits.item[i] = view->limit;
        out->tokens[i] = ((double)view->limit.burst - (double)used) / (double)TOKEN_ONE;
    }
    copy_name(bucket, out->name);
}

bool bucket_is_idle(const struct bucket *bucket, int64_t now_ns)
{
    struct picture picture;
    now_ns = not_negative(now_ns);
    read_picture(bucket, &picture);
    if (now_ns < picture.start_ns || bucket_mode(bucket, now_ns) != OPERATOR_AUTO)
        return false;
    for (unsigned i = 0; i < picture.count; i++)
        if (shared_load(&bucket->tat[picture.view[i].column]) > clock_at(&picture.view[i], picture.start_ns, now_ns))
            return false;
    return true;
}
