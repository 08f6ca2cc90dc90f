/* SPDX-License-Identifier: MIT */
/*
 * The segment: attaching to memory that may be new, old, foreign or garbage; and the table, which
 * finds the bucket of a name, makes it, and takes back places that mean nothing any more.
 *
 * A name is told by its keyed hash alone: one word, so that one compare-and-swap claims a place.
 * Nobody outside the segment knows the key, so nobody can choose names that collide.
 */
#include "core/segment.h"

#include "core/segment_layout.h"

#include <string.h>

#define LOOKUP_TRIES 4                 /* a place can be taken from under us, hardly that often */
#define USED_STEP_NS (100 * NS_PER_MS) /* how old the stamp of a look-up may grow */
#define USED_AHEAD_NS NS_PER_SECOND
#define SEGMENT_LAYOUT                                                                                                 \
    ((uint64_t)SEGMENT_LAYOUT_VERSION << 48 | (uint64_t)sizeof(struct segment_header) << 32 |                          \
     (uint64_t)sizeof(struct bucket) << 16 | (uint64_t)sizeof(struct record))

/* ------------------------------------------------------------------- attaching ---- */

const char *segment_fault_text(enum segment_fault fault)
{
    switch (fault) {
    case SEGMENT_OK:
        return "no fault";
    case SEGMENT_TOO_SMALL:
        return "smaller than its header says, or than the smallest segment";
    case SEGMENT_OTHER_LAYOUT:
        return "not a segment of this version";
    case SEGMENT_OTHER_BOOT:
        return "written before this machine was started, or under another clock";
    }
    return "unknown fault";
}

/* A word that is 0 has not been set yet, which is no fault. */
static enum segment_fault check_header(const struct segment_header *header, size_t size, uint64_t boot)
{
    uint64_t magic = shared_load(&header->magic);
    uint64_t layout = shared_load(&header->layout);
    uint64_t stated = shared_load(&header->size);
    uint64_t written = shared_load(&header->boot);
    if ((magic && magic != SEGMENT_MAGIC) || (layout && layout != SEGMENT_LAYOUT))
        return SEGMENT_OTHER_LAYOUT;
    if (stated && (stated > size || stated < SEGMENT_SIZE_MIN || stated > SEGMENT_SIZE_MAX))
        return SEGMENT_TOO_SMALL;
    if (written && written != boot)
        return SEGMENT_OTHER_BOOT;
    return SEGMENT_OK;
}

static void set_if_zero(_Atomic uint64_t *word, uint64_t value)
{
    uint64_t unset = 0;
    if (!shared_load(word))
        shared_swap(word, &unset, value ? value : 1);
}

enum segment_fault segment_attach(struct segment *segment, void *memory, size_t size, uint64_t boot,
                                  const uint64_t seed[3])
{
    struct segment_header *header = memory;
    *segment = (struct segment){0};
    if (size < SEGMENT_SIZE_MIN)
        return SEGMENT_TOO_SMALL;
    /* Looked at before anything is written: a foreign file is left as it is. */
    enum segment_fault fault = check_header(header, size, boot);
    if (fault)
        return fault;
    set_if_zero(&header->magic, SEGMENT_MAGIC);
    set_if_zero(&header->layout, SEGMENT_LAYOUT);
    set_if_zero(&header->size, segment_whole_pages(size < SEGMENT_SIZE_MAX ? size : SEGMENT_SIZE_MAX));
    set_if_zero(&header->boot, boot);
    set_if_zero(&header->hash_key[0], seed[0]);
    set_if_zero(&header->hash_key[1], seed[1]);
    set_if_zero(&header->random.seed, seed[2]);
    /* And again: others may have set them at the same time, to something else. */
    fault = check_header(header, size, boot);
    if (fault)
        return fault;
    uint64_t stated = shared_load(&header->size);
    if (stated < SEGMENT_SIZE_MIN || stated > size)
        return SEGMENT_TOO_SMALL;
    *segment = (struct segment){.header = header, .size = stated, .set_count = segment_regions(stated).set_count};
    return SEGMENT_OK;
}

enum segment_fault segment_view(struct segment *segment, void *memory, size_t size, uint64_t boot)
{
    const struct segment_header *header = memory;
    *segment = (struct segment){0};
    if (size < SEGMENT_SIZE_MIN)
        return SEGMENT_TOO_SMALL;
    enum segment_fault fault = check_header(header, size, boot);
    if (fault)
        return fault;
    uint64_t stated = shared_load(&header->size);
    if (!shared_load(&header->magic) || !shared_load(&header->layout) || !stated || !shared_load(&header->boot))
        return SEGMENT_OTHER_LAYOUT;
    *segment = (struct segment){.header = memory, .size = stated, .set_count = segment_regions(stated).set_count};
    return SEGMENT_OK;
}

/* --------------------------------------------------------------------- hashing ---- */

static uint64_t rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

/* Words are taken in the machine's order: the hash never leaves the machine. */
uint64_t segment_hash(const struct segment *segment, const void *data, size_t length)
{
    const uint64_t key[2] = {shared_load(&segment->header->hash_key[0]), shared_load(&segment->header->hash_key[1])};
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                     key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
    const unsigned char *byte = data;
    uint64_t word;
    size_t left = length;
    for (; left >= 8; left -= 8, byte += 8) {
        memcpy(&word, byte, 8);
        sip_word(v, word);
    }
    word = (uint64_t)length << 56;
    for (size_t i = 0; i < left; i++)
        word |= (uint64_t)byte[i] << (8 * i);
    sip_word(v, word);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ------------------------------------------------------------------- the table ---- */

uint64_t segment_key(const struct segment *segment, const char *name)
{
    uint64_t key = segment_hash(segment, name, strnlen(name, BUCKET_NAME_SIZE - 1));
    return key ? key : 1;
}

static struct bucket *bucket_at(const struct segment *segment, unsigned index)
{
    return (struct bucket *)(segment->header + 1) + index;
}

static struct bucket *set_of(const struct segment *segment, uint64_t key)
{
    return bucket_at(segment, (unsigned)(key & (segment->set_count - 1)) * SEGMENT_WAYS);
}

/* The lowest place of that key: of two that a race has made, all take the same one, and the other
 * is soon idle. */
static struct bucket *find(const struct segment *segment, uint64_t key)
{
    struct bucket *set = set_of(segment, key);
    for (unsigned way = 0; way < SEGMENT_WAYS; way++)
        if (shared_load(&set[way].key) == key)
            return &set[way];
    return NULL;
}

/* When it was last looked up; 0: never.  A stamp may be a little newer than who reads the time before it,
 * and one that is newer by far is garbage. */
static int64_t last_used_ns(const struct bucket *bucket, int64_t now_ns)
{
    int64_t used_ns = shared_time(shared_load(&bucket->used_ns));
    return used_ns - USED_AHEAD_NS <= now_ns ? used_ns : 0;
}

static bool used_within(const struct bucket *bucket, int64_t now_ns, int64_t age_ns)
{
    int64_t used_ns = last_used_ns(bucket, now_ns);
    return used_ns && used_ns >= now_ns - age_ns;
}

static void touch(struct bucket *bucket, int64_t now_ns)
{
    if (!used_within(bucket, now_ns, USED_STEP_NS))
        shared_store(&bucket->used_ns, (uint64_t)now_ns);
}

/* Stamped first, or it could be taken away again before its new owner has come to it. */
static bool claim_unused(struct bucket *bucket, uint64_t key, int64_t now_ns)
{
    uint64_t found = 0;
    touch(bucket, now_ns);
    return shared_swap(&bucket->key, &found, key) || found == key;
}

/* Is nothing lost with it?  Whoever has just looked it up is about to use it, which where there are limits
 * would be to book in another one's queue; and who has just made it is about to ask for his. */
static bool may_go(const struct bucket *bucket, int64_t now_ns)
{
    int64_t kept_ns = bucket_has_limits(bucket, now_ns) ? SEGMENT_KEEP_NS : SEGMENT_KEEP_BARE_NS;
    return !used_within(bucket, now_ns, kept_ns) && bucket_is_idle(bucket, now_ns);
}

/* *key is read before the place is judged: if it is claimed by another meanwhile, it has changed. */
static struct bucket *longest_unused(struct bucket *set, int64_t now_ns, uint64_t *key)
{
    struct bucket *oldest = NULL;
    int64_t oldest_ns = 0;
    for (unsigned way = 0; way < SEGMENT_WAYS; way++) {
        struct bucket *bucket = &set[way];
        uint64_t this_key = shared_load(&bucket->key);
        int64_t used_ns = last_used_ns(bucket, now_ns);
        if (!may_go(bucket, now_ns))
            continue;
        if (!oldest || used_ns < oldest_ns) {
            oldest = bucket;
            oldest_ns = used_ns;
            *key = this_key;
        }
    }
    return oldest;
}

/* Somebody may have stopped or used the old one since it was judged: then it stays his, unless the new one
 * was looked up already and made a bucket of its own, which finds what was done to it. */
static bool evict(struct bucket *bucket, uint64_t old_key, uint64_t key, int64_t now_ns)
{
    uint64_t found = old_key;
    touch(bucket, now_ns);
    if (!shared_swap(&bucket->key, &found, key))
        return found == key;
    if (bucket_is_idle(bucket, now_ns) || shared_load(&bucket->named) == key)
        return true;
    found = key;
    shared_swap(&bucket->key, &found, old_key);
    return false;
}

/* Claims a place: one that was never used, else the one that is missed least.  False if there is
 * none.  Somebody else may claim another one for the same name meanwhile, so look again after. */
static bool insert(struct bucket *set, uint64_t key, int64_t now_ns)
{
    for (unsigned way = 0; way < SEGMENT_WAYS; way++)
        if (!shared_load(&set[way].key) && claim_unused(&set[way], key, now_ns))
            return true;
    for (int i = 0; i < LOOKUP_TRIES; i++) {
        uint64_t old_key = 0;
        struct bucket *bucket = longest_unused(set, now_ns, &old_key);
        if (!bucket)
            return false;
        if (evict(bucket, old_key, key, now_ns))
            return true;
    }
    return false;
}

/*
 * Makes a place that was claimed into a bucket of its new name.  Everyone who finds it unfinished
 * does so, several at once or one after the other: nothing here adds up.  Limits, clocks and tat
 * words stay as they are: the old bucket was full, and nobody is held to have asked for its limits,
 * so that the first who asks for others gets them.
 */
static void clean(const struct segment *segment, struct bucket *bucket, uint64_t key, const char *name)
{
    uint64_t words[BUCKET_NAME_SIZE / 8] = {0};
    memcpy(words, name, strnlen(name, BUCKET_NAME_SIZE - 1));
    metrics_move(&segment->header->other, &bucket->metrics);
    bucket_forget_askers(bucket);
    shared_store(&bucket->mode, 0);
    shared_store(&bucket->resource, 0);
    shared_store(&bucket->retry, 0);
    shared_store(&bucket->latency_ns, 0);
    shared_store(&bucket->refused_ns, 0);
    shared_store(&bucket->last_cut_ns, 0);
    shared_store(&bucket->failing_rate, 0);
    shared_store(&bucket->cuts, 0);
    shared_store(&bucket->accepted, 0);
    for (size_t i = 0; i < BUCKET_NAME_SIZE / 8; i++)
        shared_store(&bucket->name[i], words[i]);
    shared_store(&bucket->named, key);
}

static __attribute__((noinline)) struct bucket *make(const struct segment *segment, uint64_t key, const char *name,
                                                     int64_t now_ns)
{
    struct bucket *set = set_of(segment, key);
    for (int i = 0; i < LOOKUP_TRIES; i++) {
        struct bucket *bucket = find(segment, key);
        if (!bucket) {
            if (!insert(set, key, now_ns))
                return NULL;
            continue;
        }
        touch(bucket, now_ns);
        if (shared_load(&bucket->named) != key)
            clean(segment, bucket, key, name);
        if (shared_load(&bucket->key) == key)
            return bucket;
    }
    return NULL;
}

/* Whoever finds it, in use and cleaned, has nothing to do to it. */
struct bucket *segment_bucket_of_key(const struct segment *segment, uint64_t key, const char *name, int64_t now_ns)
{
    struct bucket *bucket = find(segment, key);
    now_ns = now_ns > 0 ? now_ns : 0;
    if (bucket && used_within(bucket, now_ns, USED_STEP_NS) && shared_load(&bucket->named) == key &&
        shared_load(&bucket->key) == key)
        return bucket;
    return make(segment, key, name, now_ns);
}

struct bucket *segment_bucket(const struct segment *segment, const char *name, int64_t now_ns)
{
    return segment_bucket_of_key(segment, segment_key(segment, name), name, now_ns);
}

struct bucket *segment_find(const struct segment *segment, const char *name)
{
    return find(segment, segment_key(segment, name));
}

struct bucket *segment_next(const struct segment *segment, unsigned *cursor)
{
    while (*cursor < segment_capacity(segment)) {
        struct bucket *bucket = bucket_at(segment, (*cursor)++);
        if (shared_load(&bucket->key))
            return bucket;
    }
    return NULL;
}

unsigned segment_capacity(const struct segment *segment)
{
    return segment->set_count * SEGMENT_WAYS;
}

/* ---------------------------------------------------------- what all share besides ---- */

struct random_source *segment_random(const struct segment *segment)
{
    return &segment->header->random;
}

struct metrics *segment_other_metrics(const struct segment *segment)
{
    return &segment->header->other;
}

uint64_t segment_generation(const struct segment *segment)
{
    return shared_load(&segment->header->generation);
}

void segment_bump_generation(const struct segment *segment)
{
    struct bucket *bucket;
    unsigned cursor = 0;
    shared_add(&segment->header->generation, 1);
    while ((bucket = segment_next(segment, &cursor)))
        bucket_forget_askers(bucket);
}

bool segment_note_configuration(const struct segment *segment, uint64_t changed, uint64_t today)
{
    _Atomic uint64_t *stamp = &segment->header->config_stamp;
    uint64_t noted = shared_load(stamp);
    for (int i = 0; i < LOOKUP_TRIES && (noted < changed || noted > today); i++) {
        bool is_first = noted == 0;
        if (shared_swap(stamp, &noted, changed))
            return !is_first;
    }
    return false;
}

void segment_set_mode(const struct segment *segment, enum operator_mode mode, int64_t until_ns)
{
    shared_store(&segment->header->mode, operator_word(mode, until_ns));
}

static enum operator_mode mode_of(uint64_t word, int64_t now_ns, int64_t *until_ns)
{
    if (until_ns)
        *until_ns = operator_word_until_ns(word);
    return operator_word_mode(word, now_ns);
}

enum operator_mode segment_mode(const struct segment *segment, int64_t now_ns, int64_t *until_ns)
{
    uint64_t word = shared_load(&segment->header->mode);
    return word == 0 && !until_ns ? OPERATOR_AUTO : mode_of(word, now_ns, until_ns);
}
