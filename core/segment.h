/* SPDX-License-Identifier: MIT */
/*
 * The segment: the table of buckets, and what all processes share besides, over memory that the
 * caller gives (core/system/mapping.h maps it).
 *
 * Fixed size, fixed layout (core/segment_layout.h), the version in the name, no pointers.  All
 * zeros is a valid empty table: whoever attaches first sets the header's words from 0 to their
 * constants by compare-and-swap, and so does everybody, so that no process has the role of creator
 * and none can die half-way through it.
 *
 * The table is set-associative: a name's hash gives its set, and a bucket is claimed in it by
 * compare-and-swap.  Inserting and evicting can race into two entries for one name (twice the
 * budget); so an inserter scans its set again afterwards, and the lowest index wins.  A set that is
 * full evicts, of those that are the same as absent (bucket_is_idle), the one that was looked up
 * longest ago: one with limits after SEGMENT_KEEP_NS, one without nearly at once, so that no crowd of
 * hosts keeps out those with something to keep.  If there is none there is no bucket, and the caller goes on
 * with a private one.  Evicted counts are folded into `other`.
 *
 * Whoever holds a bucket for longer than it takes to use it asks whether it is still the same one's
 * (bucket_key), and else looks it up again.
 *
 * Thread-safe and process-safe; no allocation, no system call.
 */
#ifndef CURTSY_CORE_SEGMENT_H
#define CURTSY_CORE_SEGMENT_H

#include "core/bucket.h"
#include "core/random.h"

#define SEGMENT_SIZE_DEFAULT (UINT64_C(4) << 20)
#define SEGMENT_SIZE_MIN (UINT64_C(256) << 10)
#define SEGMENT_SIZE_MAX (UINT64_C(1) << 30)
#define SEGMENT_KEEP_NS NS_PER_SECOND  /* a bucket with limits, after it was looked up */
#define SEGMENT_KEEP_BARE_NS NS_PER_MS /* one without */

enum segment_fault {
    SEGMENT_OK,
    SEGMENT_TOO_SMALL,    /* for the size its header states, or for the smallest layout */
    SEGMENT_OTHER_LAYOUT, /* not ours: magic, version or sizes differ */
    SEGMENT_OTHER_BOOT,   /* written before the machine started anew: its clock means nothing */
};
const char *segment_fault_text(enum segment_fault fault);

/* A view of attached memory; plain data, may be copied. */
struct segment {
    struct segment_header *header;
    unsigned set_count; /* a power of two */
    size_t size;
};

/* Checks the header, setting words that are still 0.  `memory` begins at a cache line.  `boot` names
 * this boot (never 0); `seed` is fresh randomness for the jitter and the keyed hash, kept if the
 * segment has none yet. */
enum segment_fault segment_attach(struct segment *segment, void *memory, size_t size, uint64_t boot,
                                  const uint64_t seed[3]);

/* The same for memory that is only to be read: nothing is written to it, and a word that is not set
 * yet is taken as a fault (SEGMENT_OTHER_LAYOUT). */
enum segment_fault segment_view(struct segment *segment, void *memory, size_t size, uint64_t boot);

/* What a name is told by in this segment, never 0.  Whoever asks for a bucket again and again hashes
 * its name once. */
uint64_t segment_key(const struct segment *segment, const char *name);

/* The bucket of that name and its key, made if need be; NULL if its set is full of such as are kept. */
struct bucket *segment_bucket_of_key(const struct segment *segment, uint64_t key, const char *name, int64_t now_ns);
struct bucket *segment_bucket(const struct segment *segment, const char *name, int64_t now_ns);

/* The bucket of that name if there is one. */
struct bucket *segment_find(const struct segment *segment, const char *name);

/* Every bucket in use, in the table's order: start with *cursor = 0; NULL at the end. */
struct bucket *segment_next(const struct segment *segment, unsigned *cursor);

struct random_source *segment_random(const struct segment *segment);

/* A hash under the segment's own key, the same for all processes, for names and credentials:
 * SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012). */
uint64_t segment_hash(const struct segment *segment, const void *data, size_t length);

/* Counts of buckets that were evicted. */
struct metrics *segment_other_metrics(const struct segment *segment);

unsigned segment_capacity(const struct segment *segment); /* buckets */

/* A word bumped when configuration should be read again: by the operator, and by a process that
 * starts and finds its files newer than any that were read before. */
uint64_t segment_generation(const struct segment *segment);

/* Also forgets who has asked for which limits, so that looser ones need not outwait the memory of the
 * stricter (bucket_ask_limits): whoever still wants these asks again with his next request. */
void segment_bump_generation(const struct segment *segment);

/* Notes when the newest of a process' files was changed (seconds or nanoseconds since 1970, but all
 * the same), at most `today`.  True if nobody has noted as late a time, unless nobody has noted any.  A
 * time later than today that was noted is garbage, and what others have read then is not known: true. */
bool segment_note_configuration(const struct segment *segment, uint64_t changed, uint64_t today);

/* The operator's mode for everything that draws on this segment (core/operator.h). */
void segment_set_mode(const struct segment *segment, enum operator_mode mode, int64_t until_ns);
enum operator_mode segment_mode(const struct segment *segment, int64_t now_ns, int64_t *until_ns);

#endif
