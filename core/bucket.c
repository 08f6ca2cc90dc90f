/* SPDX-License-Identifier: MIT */
/*
 * The bucket's queue (peek, book, check, cancel, charge), which moves one word a limit; the retry
 * budget; and what is told of a bucket.  Start with when.  How what is in force is replaced is in
 * bucket_publishing.c.
 */
#include "core/bucket_parts.h"

#include <string.h>

#define ORDER_TRIES 100 /* as SWAP_TRIES */

/* ------------------------------------------------------------------- the queue ---- */

static bool is_counted(const struct bucket_slot *slot, const struct view *view)
{
    return slot->columns >> view->column & 1;
}

static uint64_t place_at_the_end(const struct bucket *bucket, const struct view *view, uint64_t clock)
{
    return next_place(end_of_queue(view, shared_load(&bucket->tat[view->column]), clock), clock);
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
            tat = place_at_the_end(bucket, view, clock_at(view, picture->start_ns, now_ns));
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

bool bucket_is_open(const struct bucket *bucket, int64_t now_ns)
{
    struct picture picture;
    read_head(bucket, now_ns, &picture);
    return picture.count == 0 && now_ns >= picture.start_ns;
}

int64_t bucket_peek(const struct bucket *bucket, int64_t now_ns, bool *hard)
{
    struct picture picture;
    now_ns = not_negative(now_ns);
    read_picture(bucket, now_ns, &picture);
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
    read_picture(bucket, now_ns, &picture);
    return hard_when(bucket, &picture, slot, now_ns);
}

/* The next place in one queue.  Whoever swaps later gets a later place: that is the order. */
static uint64_t take_place(_Atomic uint64_t *word, const struct view *view, uint64_t clock)
{
    uint64_t tat = shared_load(word);
    for (int i = 0; i < SWAP_TRIES; i++) {
        uint64_t next = next_place(end_of_queue(view, tat, clock), clock);
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
        slot->tat[view->column] = take_place(&bucket->tat[view->column], view, clock);
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
    read_picture(bucket, now_ns, &picture);
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
    read_picture(bucket, now_ns, &picture);
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
    read_picture(bucket, now_ns, &picture);
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
    now_ns = not_negative(now_ns);
    read_picture(bucket, now_ns, &picture);
    uint64_t tokens = requests > UINT64_MAX / TOKEN_ONE ? UINT64_MAX : requests * TOKEN_ONE;
    for (unsigned i = 0; i < picture.count; i++) {
        const struct view *view = &picture.view[i];
        uint64_t clock = clock_at(view, picture.start_ns, now_ns);
        uint64_t window = gain(view->limit.rate, (uint64_t)view->limit.window_ns);
        uint64_t most = add(add(clock, view->limit.burst), window);
        uint64_t tat = shared_load(&bucket->tat[view->column]);
        for (int tries = 0; tries < SWAP_TRIES; tries++) {
            uint64_t base = larger(end_of_queue(view, tat, clock), clock);
            uint64_t next = smaller(add(base, tokens), larger(base, most));
            if (next == tat || shared_swap(&bucket->tat[view->column], &tat, next))
                break;
        }
    }
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
    if (ticks == 0)
        return retries;
    int64_t halvings = ticks / TICKS_PER_HALVING;
    if (halvings >= 32)
        return 0;
    retries >>= halvings;
    return retries - retries * (ticks % TICKS_PER_HALVING) / (2 * TICKS_PER_HALVING);
}

/* The word with one more request paid in. */
static uint64_t paid_in(uint64_t word, uint32_t tick, uint32_t budget_ppm)
{
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
    return pack_balance(balance);
}

void bucket_retry_deposit(struct bucket *bucket, int64_t now_ns, uint32_t budget_ppm)
{
    uint32_t tick = (uint32_t)((uint64_t)not_negative(now_ns) >> TICK_SHIFT);
    uint64_t word = shared_load(&bucket->retry);
    for (int i = 0; i < SWAP_TRIES; i++)
        if (shared_swap(&bucket->retry, &word, paid_in(word, tick, budget_ppm)))
            return;
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

/* What was taken from the reserve, and has not come back since. */
static bool owes_retries(const struct bucket *bucket, int64_t now_ns)
{
    uint32_t tick = (uint32_t)((uint64_t)not_negative(now_ns) >> TICK_SHIFT);
    struct retry_balance balance = unpack_balance(shared_load(&bucket->retry));
    return balance.retries < 0 && ticks_since(balance, tick) < TICKS_PER_MINUTE;
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

uint64_t bucket_key(const struct bucket *bucket)
{
    return shared_load(&bucket->key);
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
    read_head(bucket, now_ns, &picture);
    return kind_of_block(&picture, now_ns);
}

int64_t bucket_unpaced_ns(const struct bucket *bucket, const struct bucket_slot *slot, int64_t now_ns)
{
    struct picture picture;
    read_picture(bucket, now_ns, &picture);
    for (unsigned i = 0; i < picture.count; i++)
        if (!slot || is_counted(slot, &picture.view[i]))
            return 0;
    return picture.held_until_ns < picture.start_ns ? picture.start_ns : 0;
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

int64_t bucket_held_until_ns(const struct bucket *bucket, int64_t now_ns)
{
    struct picture picture;
    read_picture(bucket, now_ns, &picture);
    int64_t held_until_ns = picture.held_until_ns < picture.start_ns ? picture.held_until_ns : picture.start_ns;
    return now_ns < held_until_ns ? held_until_ns : 0;
}

void bucket_read_state(const struct bucket *bucket, int64_t now_ns, struct bucket_state *out)
{
    struct picture picture;
    now_ns = not_negative(now_ns);
    read_picture(bucket, now_ns, &picture);
    *out = (struct bucket_state){
        .limits.count = picture.count,
        .next_ns = when(bucket, &picture, NULL, picture.start_ns, now_ns),
        .generation = picture.word >> PUBLISHED_INDEX_BITS,
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
        uint64_t clock = clock_at(view, picture.start_ns, now_ns);
        uint64_t used = subtract(end_of_queue(view, shared_load(&bucket->tat[view->column]), clock), clock);
        out->limits.item[i] = view->limit;
        out->tokens[i] = ((double)view->limit.burst - (double)used) / (double)TOKEN_ONE;
    }
    copy_name(bucket, out->name);
}

bool bucket_is_idle(const struct bucket *bucket, int64_t now_ns)
{
    struct picture picture;
    now_ns = not_negative(now_ns);
    read_whole_picture(bucket, now_ns, &picture);
    if (now_ns < picture.start_ns || bucket_mode(bucket, now_ns) != OPERATOR_AUTO || owes_retries(bucket, now_ns))
        return false;
    for (unsigned i = 0; i < picture.count + picture.kept; i++) {
        const struct view *view = &picture.view[i];
        uint64_t clock = clock_at(view, picture.start_ns, now_ns);
        if (end_of_queue(view, shared_load(&bucket->tat[view->column]), clock) > clock)
            return false;
    }
    return true;
}

bool bucket_has_limits(const struct bucket *bucket, int64_t now_ns)
{
    struct picture picture;
    read_head(bucket, now_ns, &picture);
    return picture.count > 0;
}
