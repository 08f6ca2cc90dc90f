/* SPDX-License-Identifier: MIT */
/*
 * Replacing what is in force in a bucket as a whole: limits, blocks, a full bucket.  Start with
 * publish; everything else is what a change makes of the picture of what was in force.
 */
#include "core/bucket_parts.h"

#define PUBLISH_TRIES 250 /* as SWAP_TRIES */

/* Most waiters that a new window is charged with. */
#define QUEUE_MAX (UINT64_C(1) << 20)

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

/* A limit that goes on in another column than it was in. */
struct move {
    unsigned from, to;
    uint64_t v0_from, v0_to;
    uint64_t asked_ns;
};

/* What a change makes of a picture, and what has to be done before it is in force. */
struct draft {
    struct picture picture;
    uint64_t least_tat[RATES_MAX]; /* by column: raise the word to this */
    unsigned asked;                /* columns to be stamped */
    struct move move[RATES_MAX];   /* to be seen to once it is in force */
    unsigned move_count;
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
    picture->made_ns = (uint64_t)now_ns;
    if (now_ns < picture->start_ns)
        return;
    for (unsigned i = 0; i < picture->count + picture->kept; i++)
        picture->view[i].v0 = clock_at(&picture->view[i], picture->start_ns, now_ns);
    picture->start_ns = picture->hard_start_ns = now_ns;
    picture->held_until_ns = 0;
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
    uint64_t shape =
        picture->count | (picture->refilled ? RECORD_REFILLED : 0) | (uint64_t)picture->kept << RECORD_KEPT_SHIFT;
    for (unsigned i = 0; i < picture->count + picture->kept; i++) {
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
    shared_store(&record->made_ns, picture->made_ns);
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

/* What was booked where a limit was, after it was copied and before the copy counted.  Whoever dies before
 * this has let that many go that the limit does not know of. */
static void finish_moves(struct bucket *bucket, const struct draft *draft)
{
    for (unsigned i = 0; i < draft->move_count; i++) {
        const struct move *move = &draft->move[i];
        uint64_t used = subtract(shared_load(&bucket->tat[move->from]), move->v0_from);
        shared_store(&bucket->asked_ns[move->to], move->asked_ns);
        if (!draft->least_tat[move->from]) /* else it was raised by us, for what was not booked there */
            raise_tat(&bucket->tat[move->to], add(move->v0_to, used));
    }
}

static uint64_t next_word(uint64_t word, unsigned index)
{
    uint64_t generation = (word >> PUBLISHED_INDEX_BITS) + 1;
    return generation << PUBLISHED_INDEX_BITS | index;
}

static bool publish(struct bucket *bucket, const struct bucket_world *world, int64_t now_ns, edit *change,
                    const void *wish)
{
    const uint64_t self = world->self || !world->who_am_i ? larger(world->self, 1) : world->who_am_i();
    struct record *record = NULL;
    bool done = false;
    for (int i = 0; i < PUBLISH_TRIES && !done; i++) {
        struct draft draft = {0};
        read_whole_record(bucket, &draft.picture);
        uint64_t word = draft.picture.word;
        now_ns = later(not_negative(now_ns), world->clock_ns ? world->clock_ns() : 0);
        leave_out_the_absurd(&draft.picture, now_ns);
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
        if (done)
            finish_moves(bucket, &draft);
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
    int64_t until_ns = block->until_ns;
    bool changed = false;
    if (until_ns <= now_ns)
        return false;
    if (until_ns - now_ns > BLOCK_MOST_NS)
        until_ns = now_ns + BLOCK_MOST_NS;
    for (unsigned i = 0; i < (unsigned)block->kind && i < sizeof ends / sizeof *ends; i++) {
        changed = changed || *ends[i] < until_ns;
        *ends[i] = later(*ends[i], until_ns);
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
    draft->picture.start_ns = draft->picture.hard_start_ns = now_ns;
    draft->picture.held_until_ns = 0;
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
    for (unsigned i = 0; i < draft->picture.count + draft->picture.kept; i++) {
        struct view *view = &draft->picture.view[i];
        uint64_t missing = subtract(shared_load(&bucket->tat[view->column]), view->v0);
        view->v0 = add(view->v0, smaller(missing, view->limit.burst));
        changed = changed || missing;
        draft->picture.refilled = draft->picture.refilled || (missing && i < draft->picture.count);
    }
    return changed;
}

bool bucket_refill(struct bucket *bucket, const struct bucket_world *world, int64_t now_ns)
{
    return publish(bucket, world, now_ns, edit_refill, NULL);
}

/* ---------------------------------------------------------------------- limits ---- */

/*
 * Limits come and go with those who ask for them.  What must not go with them is what was used: a limit
 * that began full each time that somebody asks for it again would be worth nothing where those who ask take
 * turns with others who ask for none, or for more.  So one that nobody asks for any more binds nobody, but
 * is kept, with its clock, until it is full again: a full limit is the same as an absent one.
 *
 * Those who still wait in its queue by then do not ask for it, and go without it; so their places count for
 * nothing in what is kept: the clock is moved on to the last of those who could have gone.  (If somebody who
 * did ask was stopped for so long, his place is void by the rule of is_late.)  After the operator's word they
 * may be about to ask for it again, and the queue is kept as well.
 *
 * It is kept in its column where that is free; where another limit goes on in that column, with the queue
 * that stands there, it is moved to another one.  When it is asked for again, what it had used by then and
 * what was used in its place meanwhile both count, so the larger of the two.
 *
 * What is in force goes first: where there is no column left for what is kept, the limit goes that would be
 * full soonest.  That costs, if it is asked for after all, one burst more in the time until then.  It takes
 * more than RATES_MAX different limits of one bucket within their windows.
 */

#define ASKED_STEP_NS NS_PER_SECOND /* how old a stamp may grow before it is renewed */
#define NO_COLUMN RATES_MAX
#define NOTHING RATES_MAX

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

/* Waiters, in whole places: the longest queue of all limits. */
static uint64_t queue_length(const struct bucket *bucket, const struct picture *picture)
{
    uint64_t length = 0;
    for (unsigned i = 0; i < picture->count; i++) {
        const struct view *view = &picture->view[i];
        uint64_t end = end_of_queue(view, shared_load(&bucket->tat[view->column]), view->v0);
        uint64_t last = subtract(end, view->limit.burst);
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

/* What becomes of a limit that was in force or kept. */
enum fate {
    GOES_ON, /* in force, as it is or as another one that counts what it has used; or nothing is left of it */
    IS_KEPT, /* where it is */
    MOVES,   /* is kept in another column */
};

struct change {
    const struct bucket *bucket;
    const struct limits *asked;
    struct picture old;
    enum fate fate[RATES_MAX]; /* of each limit of `old` */
    struct draft *draft;
    int64_t now_ns;
};

/* How far its queue is ahead of its clock; 0: it is full. */
static uint64_t used_of(const struct bucket *bucket, const struct view *view)
{
    return subtract(end_of_queue(view, shared_load(&bucket->tat[view->column]), view->v0), view->v0);
}

static void demand_tat(struct draft *draft, unsigned column, uint64_t least)
{
    draft->least_tat[column] = larger(draft->least_tat[column], least);
}

/* The limit has been kept: what it had used counts in the column where it is in force now. */
static void take_up_kept(struct change *change, const struct view *view)
{
    for (unsigned i = change->old.count; i < change->old.count + change->old.kept; i++) {
        const struct view *kept = &change->old.view[i];
        if (change->fate[i] != IS_KEPT || kept->limit.window_ns != view->limit.window_ns ||
            compare_limits(&kept->limit, &view->limit) != 0)
            continue;
        demand_tat(change->draft, view->column, add(view->v0, used_of(change->bucket, kept)));
        change->fate[i] = GOES_ON;
    }
}

/* Nobody has asked for it for long: what is queued there will not go by it. */
static void leave_out_queue(struct change *change, unsigned i)
{
    struct view *view = &change->old.view[i];
    uint64_t end = add(view->v0, used_of(change->bucket, view));
    uint64_t least = subtract(end, view->limit.burst);
    if (!shared_load(&change->bucket->asked_ns[view->column]) || least <= view->v0)
        return;
    /* One unit further than it was, so that none of them can give back a place that is written off. */
    view->v0 = least + 1;
    demand_tat(change->draft, view->column, end + 1);
}

/* `limit` goes on in the column of the i-th: its clock goes on and tat is not touched, so that what was
 * used is used, and who waits has his place.  Of the same window a stricter one forgets nothing that the
 * other one knew, for it has never used less. */
static struct view put_in_its_place(struct change *change, unsigned i, const struct limit *limit)
{
    struct view view = change->old.view[i];
    bool is_covered = view.limit.window_ns == limit->window_ns && compare_limits(limit, &view.limit) <= 0;
    change->fate[i] = is_covered ? GOES_ON : MOVES;
    view.limit = *limit;
    take_up_kept(change, &view);
    return view;
}

/* Windows that were in force.  One that both sides name gets a stricter limit at once, a looser one when
 * the stricter is asked for no longer. */
static void keep_windows(struct change *change)
{
    for (unsigned i = 0; i < change->old.count; i++) {
        struct view view = change->old.view[i];
        const struct limit *mine = limit_of_window(change->asked, view.limit.window_ns);
        bool is_asked = asked_within(change->bucket, view.column, change->now_ns, BUCKET_LIMITS_MEMORY_NS);
        int order = mine ? compare_limits(mine, &view.limit) : 1;
        if (mine && (order <= 0 || !is_asked)) {
            change->draft->asked |= 1u << view.column;
            if (order)
                view = put_in_its_place(change, i, mine);
        }
        if (mine || is_asked)
            insert_view(&change->draft->picture, &view);
        else
            change->fate[i] = IS_KEPT;
        if (change->fate[i] != GOES_ON)
            leave_out_queue(change, i);
    }
}

/* May a limit of another window, that nobody has asked for yet, be charged with what this one has used, and take
 * over its queue?  By the operator's word, after which one may have replaced the other; not because nobody has asked
 * for this one lately. */
static bool leaves_its_queue(const struct change *change, unsigned i)
{
    const struct view *view = &change->old.view[i];
    return change->fate[i] == IS_KEPT && used_of(change->bucket, view) &&
           !limit_of_window(change->asked, view->limit.window_ns) &&
           !shared_load(&change->bucket->asked_ns[view->column]);
}

/* In whose place a limit comes into force whose window was not: its own, if it was kept; else that of
 * the most used one of its window; else of one that was replaced. */
static unsigned find_place(const struct change *change, const struct limit *limit)
{
    const unsigned all = change->old.count + change->old.kept;
    unsigned place = NOTHING;
    for (unsigned i = change->old.count; i < all; i++) {
        const struct view *kept = &change->old.view[i];
        if (change->fate[i] != IS_KEPT || kept->limit.window_ns != limit->window_ns)
            continue;
        if (compare_limits(&kept->limit, limit) == 0)
            return i;
        if (place == NOTHING || used_of(change->bucket, kept) > used_of(change->bucket, &change->old.view[place]))
            place = i;
    }
    for (unsigned i = 0; i < all && place == NOTHING; i++)
        if (leaves_its_queue(change, i))
            place = i;
    return place;
}

/* Windows that were not in force.  One that was kept is charged at least with those who wait already, as a
 * new one is: they will go without asking it. */
static void add_windows(struct change *change)
{
    uint64_t queue = queue_length(change->bucket, &change->old) * TOKEN_ONE;
    struct draft *draft = change->draft;
    for (unsigned i = 0; i < change->asked->count && draft->picture.count < RATES_MAX; i++) {
        const struct limit *limit = &change->asked->item[i];
        struct view view = {.limit = *limit, .column = NO_COLUMN};
        if (view_of_window(&change->old, limit->window_ns))
            continue;
        unsigned place = find_place(change, limit);
        if (place != NOTHING) {
            view = put_in_its_place(change, place, limit);
            if (place >= change->old.count)
                demand_tat(draft, view.column, add(view.v0, queue));
            draft->asked |= 1u << view.column;
        }
        insert_view(&draft->picture, &view);
    }
}

/* Lets go of what is full, and of as many others as there is no room for. */
static void let_go(struct change *change)
{
    unsigned room = RATES_MAX - change->draft->picture.count;
    for (;;) {
        unsigned count = 0, soonest = NOTHING;
        int64_t soonest_ns = TIME_NEVER;
        for (unsigned i = 0; i < change->old.count + change->old.kept; i++) {
            const struct view *view = &change->old.view[i];
            if (change->fate[i] == GOES_ON)
                continue;
            uint64_t used = used_of(change->bucket, view);
            int64_t full_ns = time_of(view, change->old.start_ns, add(view->v0, used));
            if (soonest == NOTHING || full_ns < soonest_ns) {
                soonest = i;
                soonest_ns = full_ns;
            }
            count++;
        }
        if (count == 0 || (count <= room && soonest_ns > change->old.start_ns))
            return;
        change->fate[soonest] = GOES_ON;
    }
}

/* A column that nobody counts in, and what its word is at least by then. */
static unsigned take_column(struct change *change, unsigned *taken, uint64_t *tat)
{
    unsigned column = (unsigned)__builtin_ctz(~*taken);
    *taken |= 1u << column;
    *tat = larger(shared_load(&change->bucket->tat[column]), larger(change->draft->least_tat[column], CLOCK_ORIGIN));
    return column;
}

static unsigned columns_taken(const struct change *change)
{
    const struct picture *picture = &change->draft->picture;
    unsigned taken = 0;
    for (unsigned i = 0; i < picture->count; i++)
        if (picture->view[i].column != NO_COLUMN)
            taken |= 1u << picture->view[i].column;
    for (unsigned i = 0; i < change->old.count + change->old.kept; i++)
        if (change->fate[i] == IS_KEPT)
            taken |= 1u << change->old.view[i].column;
    return taken;
}

/* A limit that comes from nowhere begins full, as if idle, less those who wait. */
static void place_new(struct change *change, unsigned *taken)
{
    struct draft *draft = change->draft;
    uint64_t queue = queue_length(change->bucket, &change->old) * TOKEN_ONE, tat;
    for (unsigned i = 0; i < draft->picture.count; i++) {
        struct view *view = &draft->picture.view[i];
        if (view->column != NO_COLUMN)
            continue;
        view->column = take_column(change, taken, &tat);
        view->v0 = subtract(tat, queue);
        demand_tat(draft, view->column, tat);
        draft->asked |= 1u << view->column;
    }
}

static void place_kept(struct change *change, unsigned *taken)
{
    struct draft *draft = change->draft;
    for (unsigned i = 0; i < change->old.count + change->old.kept; i++) {
        struct view view = change->old.view[i];
        uint64_t used = used_of(change->bucket, &view), tat;
        if (change->fate[i] == MOVES) {
            struct move move = {.from = view.column, .v0_from = view.v0};
            move.asked_ns = shared_load(&change->bucket->asked_ns[view.column]);
            view.column = move.to = take_column(change, taken, &tat);
            tat = larger(tat, add(CLOCK_ORIGIN, used));
            view.v0 = move.v0_to = tat - used;
            demand_tat(draft, view.column, tat);
            draft->move[draft->move_count++] = move;
        }
        if (change->fate[i] != GOES_ON)
            draft->picture.view[draft->picture.count + draft->picture.kept++] = view;
    }
}

/* Everybody has his column.  Whoever takes one up that is left begins where its clock was: or who still
 * books by what was in force would push the queue there far ahead. */
static void place_all(struct change *change)
{
    let_go(change);
    unsigned taken = columns_taken(change);
    for (unsigned i = 0; i < change->old.count + change->old.kept; i++)
        if (!(taken >> change->old.view[i].column & 1))
            demand_tat(change->draft, change->old.view[i].column, change->old.view[i].v0);
    place_new(change, &taken);
    place_kept(change, &taken);
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
    struct change change = {.bucket = bucket, .asked = wish, .old = draft->picture, .draft = draft, .now_ns = now_ns};
    struct limits result = {0};
    for (unsigned i = change.old.count; i < change.old.count + change.old.kept; i++)
        change.fate[i] = IS_KEPT;
    draft->picture.count = draft->picture.kept = 0;
    keep_windows(&change);
    add_windows(&change);
    result.count = draft->picture.count;
    for (unsigned i = 0; i < result.count; i++)
        result.item[i] = draft->picture.view[i].limit;
    if (is_same(&change.old, &result))
        return false;
    place_all(&change);
    if (now_ns < change.old.start_ns)
        spend_credit(draft);
    return true;
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
    now_ns = not_negative(now_ns);
    read_picture(bucket, now_ns, &picture);
    stamp_windows(bucket, &picture, limits, now_ns);
    if (is_same(&picture, limits))
        return true;
    order_limits(limits, &asked);
    stamp_windows(bucket, &picture, &asked, now_ns);
    if (is_same(&picture, &asked))
        return true;
    publish(bucket, world, now_ns, edit_limits, &asked);
    read_picture(bucket, now_ns, &picture);
    return is_same(&picture, &asked);
}

void bucket_forget_askers(struct bucket *bucket)
{
    for (unsigned column = 0; column < RATES_MAX; column++)
        if (shared_load(&bucket->asked_ns[column]))
            shared_store(&bucket->asked_ns[column], 0);
}
