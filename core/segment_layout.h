/* SPDX-License-Identifier: MIT */
/*
 * The segment's layout in memory, for the files that work on it (segment.c, bucket.c, events.c,
 * waiters.c, bucket_publishing.c, glance.h) and for the test that pins every offset.  Anybody else sees opaque
 * pointers.
 *
 *     0        header, one page
 *     4096     table of buckets: set_count sets of SEGMENT_WAYS buckets
 *     ...      waiters, event ring; fleet: room reserved for what needs it
 *     ...      blocks of cells for exact sliding windows, to the end
 *
 * Everything is fixed-width, in the machine's byte order, without pointers, and means "empty" when
 * it is zero.  A field is never moved or reused: whatever changes the meaning of a byte changes
 * SEGMENT_LAYOUT_VERSION and with it the segment's name, so that programs under an old and a new
 * version share nothing instead of misreading each other.  Room for what is not there yet is
 * reserved, so that this is rare.
 *
 * Whoever may write the segment may write garbage into it.  So nothing read from it is used as an
 * index, a length or a divisor before it was brought into range, sizes and offsets are computed
 * from the size of the mapping and never read, and no loop's end depends on shared memory alone.
 */
#ifndef CURTSY_CORE_SEGMENT_LAYOUT_H
#define CURTSY_CORE_SEGMENT_LAYOUT_H

#include "core/segment.h"

#include <assert.h>
#include <stdalign.h>
#include <stddef.h>

#define SEGMENT_LAYOUT_VERSION 1
#define SEGMENT_MAGIC UINT64_C(0x7973747275430a00) /* "\0\nCurtsy" in memory, little-endian */
#define SEGMENT_LINE 64                            /* bytes of a cache line */
#define SEGMENT_PAGE 4096
#define SEGMENT_WAYS 8                /* buckets of a set */
#define BUCKET_RECORDS 8              /* one in force, and seven that may be in the making at once */
#define BUCKET_PERMITS 64             /* most requests in flight that a limit can ask for */
#define SEGMENT_WAITER_BYTES 256      /* a waiter's record (core/waiters.c) */
#define SEGMENT_EVENT_BYTES 256       /* an entry of the event ring (core/events.c) */
#define SEGMENT_CELLS_BYTES (8 << 10) /* a block of cells: 1,024 words */

/* -------------------------------------------------------------- touching words ---- */

/*
 * Every write to shared memory goes through these, so that one hook stands between any two of
 * them: the crash test puts an _exit there and dies at each of them in turn.  Loads acquire and
 * stores release: the argument for publishing (bucket_publishing.c) needs it, and it costs nothing on x86.
 */
#ifndef SHARED_STEP
#define SHARED_STEP() ((void)0)
#endif

static inline uint64_t shared_load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

static inline void shared_store(_Atomic uint64_t *word, uint64_t value)
{
    SHARED_STEP();
    atomic_store_explicit(word, value, memory_order_release);
}

/* On failure *expected is what was found. */
static inline bool shared_swap(_Atomic uint64_t *word, uint64_t *expected, uint64_t value)
{
    SHARED_STEP();
    return atomic_compare_exchange_strong(word, expected, value);
}

static inline uint64_t shared_exchange(_Atomic uint64_t *word, uint64_t value)
{
    SHARED_STEP();
    return atomic_exchange(word, value);
}

static inline uint64_t shared_add(_Atomic uint64_t *word, uint64_t value)
{
    SHARED_STEP();
    return atomic_fetch_add(word, value);
}

/* A time as kept in a word; one that cannot be is "at the beginning". */
static inline int64_t shared_time(uint64_t word)
{
    return word > (uint64_t)INT64_MAX ? 0 : (int64_t)word;
}

/* --------------------------------------------------------------------- records ---- */

/*
 * One limit of a record: its virtual clock (v0 at the record's start, then `rate`), its burst and
 * what it came from.  A rate that grows by itself is v0 + rate t + slope t^2 / 2 until `end`, at
 * most `cap`; the three are 0 where it does not.
 */
struct record_limit {
    _Atomic uint64_t v0;        /* Q16 tokens */
    _Atomic uint64_t rate;      /* Q16 tokens per 2^40 ns */
    _Atomic uint64_t burst;     /* Q16 tokens */
    _Atomic uint64_t published; /* requests per window; 0: none */
    _Atomic uint64_t window_ns;
    _Atomic uint64_t jitter_ns;
    _Atomic uint64_t slope; /* room for growth: Q16 tokens per 2^40 ns, per 2^40 ns */
    _Atomic uint64_t cap;   /* Q16 tokens per 2^40 ns */
    _Atomic uint64_t end_ns;
    _Atomic uint64_t reserved;
};

/*
 * What is in force, as one immutable piece.  `owner` is the process that is filling it, 0 when
 * nobody is.  `shape` packs the number of limits (bits 0-7), RECORD_REFILLED (bit 8), and the column
 * of the bucket's tat words that each limit counts in (8 bits each from bit 32).  made_ns is 0 in what
 * an earlier version has published.
 */
struct record {
    _Atomic uint64_t owner;
    _Atomic uint64_t shape;
    _Atomic uint64_t start_ns;      /* the clocks stand still until then */
    _Atomic uint64_t hard_start_ns; /* the same if soft blocks did not count; at most start_ns */
    _Atomic uint64_t held_until_ns; /* the operator's hold; at most start_ns */
    _Atomic uint64_t made_ns;       /* when it was published: one of the future is garbage */
    _Atomic uint64_t reserved[2];
    struct record_limit limit[RATES_MAX];
};

#define RECORD_COUNT_MASK UINT64_C(0xff)
#define RECORD_REFILLED (UINT64_C(1) << 8) /* the clocks were moved on at start: nothing was due before */
#define RECORD_COLUMNS_SHIFT 32

/* --------------------------------------------------------------------- buckets ---- */

/*
 * A bucket.  What different requests write at the same time lies on different cache lines: the
 * identity (written when the bucket is made), the word that names the record in force (when limits
 * or blocks change), the tat words (by every booking), the outcome words (by every response), then
 * what later features write, and the counters.
 *
 * The key is the keyed hash of the name, 0 for a place that was never used; it is all that a place
 * is claimed by.  `named` equals it once the place has been cleaned and the name written, which
 * whoever finds them different does (again): so it does not matter where a process dies on the way.
 */
struct bucket {
    /* identity: three lines */
    alignas(SEGMENT_LINE) _Atomic uint64_t key;
    _Atomic uint64_t named;
    _Atomic uint64_t used_ns;  /* last looked up, to a tenth of a second or so */
    _Atomic uint64_t mode;     /* the operator's, with its end (core/operator.h) */
    _Atomic uint64_t resource; /* room for the tag of the resource that its server counts it under */
    _Atomic uint64_t identity_reserved[3];
    _Atomic uint64_t name[BUCKET_NAME_SIZE / 8]; /* for display; padded with zeros */
    _Atomic uint64_t name_reserved[2];

    /* what is in force: {generation, record} in one word; then when each column was asked for */
    alignas(SEGMENT_LINE) _Atomic uint64_t published;
    _Atomic uint64_t asked_ns[RATES_MAX];
    _Atomic uint64_t min_interval_ns; /* room: least time between two starts */
    _Atomic uint64_t in_flight_limit; /* room */
    _Atomic uint64_t published_reserved;

    /* the queue: the end of it, a word a column */
    alignas(SEGMENT_LINE) _Atomic uint64_t tat[RATES_MAX];
    _Atomic uint64_t interval_tat; /* room: the same for min_interval */
    _Atomic uint64_t queue_reserved[3];

    /* outcomes */
    alignas(SEGMENT_LINE) _Atomic uint64_t retry; /* the retry budget: {time, balance} */
    _Atomic uint64_t latency_ns;
    _Atomic uint64_t refused_ns; /* when a hard wait was last refused */
    _Atomic uint64_t outcome_reserved[5];

    /* room for the adaptive pace and the exact windows */
    alignas(SEGMENT_LINE) _Atomic uint64_t last_cut_ns;
    _Atomic uint64_t failing_rate;
    _Atomic uint64_t cuts;
    _Atomic uint64_t accepted;
    _Atomic uint64_t window_cells; /* four 16-bit numbers: the block of cells of each column, plus 1 */
    _Atomic uint64_t window_position;
    _Atomic uint64_t adaptive_reserved[2];

    /* room for permits: each names its owner */
    alignas(SEGMENT_LINE) _Atomic uint64_t in_flight;
    _Atomic uint64_t released; /* bumped at each release, to wait on */
    _Atomic uint64_t permits_reserved[6];
    _Atomic uint64_t permit[BUCKET_PERMITS];

    alignas(SEGMENT_LINE) struct record record[BUCKET_RECORDS];

    alignas(SEGMENT_LINE) struct metrics metrics;
    _Atomic uint64_t metrics_reserved[128 - sizeof(struct metrics) / 8];
};

/* ---------------------------------------------------------- waiters and events ---- */

/*
 * Both are sealed (core/sealed.h): the first word says whose it is or which, the second is a checksum
 * of all the others, the reserved ones included.
 */
struct waiter_record {
    alignas(SEGMENT_LINE) _Atomic uint64_t owner; /* 0: free */
    _Atomic uint64_t seal;
    _Atomic uint64_t what; /* thread (bits 0-31), cause (32-39) */
    _Atomic uint64_t began_ns;
    _Atomic uint64_t until_ns;
    _Atomic uint64_t reserved;
    _Atomic uint64_t bucket[14]; /* texts: UTF-8, padded with zeros */
    _Atomic uint64_t endpoint[12];
};

struct event_record {
    alignas(SEGMENT_LINE) _Atomic uint64_t number; /* plus 1; 0: none */
    _Atomic uint64_t seal;
    _Atomic uint64_t time_ms;
    _Atomic uint64_t wait_ns;
    _Atomic uint64_t what; /* kind (bits 0-7), cause (8-15), status (16-31), attempt (32-63) */
    _Atomic uint64_t pid;  /* bits 0-31 */
    _Atomic uint64_t reserved[4];
    _Atomic uint64_t program[4];
    _Atomic uint64_t endpoint[18];
};

static_assert(sizeof(struct waiter_record) == SEGMENT_WAITER_BYTES, "layout");
static_assert(sizeof(struct event_record) == SEGMENT_EVENT_BYTES, "layout");

/* ---------------------------------------------------------------------- header ---- */

/*
 * The header.  Whoever attaches sets the words that are still 0, each by compare-and-swap, and
 * then takes what is there: so there is no moment at which one process depends on another.  The
 * seed of the random numbers and the two words of the hash's key are the segment's own randomness.
 */
struct segment_header {
    alignas(SEGMENT_LINE) _Atomic uint64_t magic;
    _Atomic uint64_t layout; /* version, and the sizes of header, bucket and record */
    _Atomic uint64_t size;   /* bytes, of the whole segment */
    _Atomic uint64_t boot;
    _Atomic uint64_t hash_key[2];
    _Atomic uint64_t identity_reserved[2];

    alignas(SEGMENT_LINE) struct random_source random; /* its counter moves with every draw */

    alignas(SEGMENT_LINE) _Atomic uint64_t generation; /* bumped when configuration changed */
    _Atomic uint64_t mode;                             /* the operator's, with its end (core/operator.h) */
    _Atomic uint64_t event_count;                      /* events ever begun (core/events.h) */
    _Atomic uint64_t fleet_state;                      /* room */
    _Atomic uint64_t cells_used;                       /* room: blocks of cells ever handed out */
    _Atomic uint64_t config_stamp;                     /* when the newest file of configuration was changed */
    _Atomic uint64_t operator_reserved[2];

    _Atomic uint64_t header_reserved[232];

    alignas(SEGMENT_LINE) struct metrics other; /* counts of buckets that were evicted */
    _Atomic uint64_t other_reserved[256 - sizeof(struct metrics) / 8];
};

static_assert(sizeof(struct metrics) % 8 == 0 && sizeof(struct metrics) <= 1024, "metrics outgrew their room");
static_assert(sizeof(struct record_limit) == 80, "layout");
static_assert(sizeof(struct record) == 6 * SEGMENT_LINE, "layout");
static_assert(sizeof(struct bucket) == 5120, "layout");
static_assert(sizeof(struct segment_header) == SEGMENT_PAGE, "layout");
static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "shared words must be lock-free");
static_assert(BUCKET_NAME_SIZE % 8 == 0, "a name is kept in words");
static_assert((BUCKET_RECORDS & (BUCKET_RECORDS - 1)) == 0, "any word masked is a record's index");

/* --------------------------------------------------------------------- regions ---- */

/*
 * Where everything is in a segment of a given size.  The table has as many sets, a power of two,
 * as fit in five eighths of the segment; waiters and the event ring get a sixteenth each, the fleet
 * a sixty-fourth, in whole pages; cells get the rest.  So the default of 4 MiB holds 512 buckets,
 * 1,024 waiters, 1,024 events and 119 blocks of cells; the least, 256 KiB, holds 32 buckets, 64
 * waiters, 64 events and 7 blocks.
 */
struct segment_regions {
    unsigned set_count;
    uint64_t table;
    uint64_t waiters, waiter_count;
    uint64_t events, event_count;
    uint64_t fleet, fleet_bytes;
    uint64_t cells, cells_count;
};

static inline uint64_t segment_whole_pages(uint64_t bytes)
{
    return bytes / SEGMENT_PAGE * SEGMENT_PAGE;
}

/* size: at least SEGMENT_SIZE_MIN. */
static inline struct segment_regions segment_regions(uint64_t size)
{
    struct segment_regions regions = {.set_count = 1, .table = sizeof(struct segment_header)};
    const uint64_t set_bytes = SEGMENT_WAYS * sizeof(struct bucket);
    while (2 * regions.set_count * set_bytes <= size / 8 * 5)
        regions.set_count *= 2;
    const uint64_t share = segment_whole_pages(size / 16);
    regions.waiters = regions.table + regions.set_count * set_bytes;
    regions.waiter_count = share / SEGMENT_WAITER_BYTES;
    regions.events = regions.waiters + share;
    regions.event_count = share / SEGMENT_EVENT_BYTES;
    regions.fleet = regions.events + share;
    regions.fleet_bytes = segment_whole_pages(size / 64);
    regions.cells = regions.fleet + regions.fleet_bytes;
    regions.cells_count = (size - regions.cells) / SEGMENT_CELLS_BYTES;
    return regions;
}

#endif
