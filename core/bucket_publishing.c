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
