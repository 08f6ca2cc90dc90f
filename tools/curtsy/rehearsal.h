/* SPDX-License-Identifier: MIT */
/*
 * Rehearsal: what would happen to a request that began now.  The segment is copied, and the request
 * is begun and admitted on the copy by the library's own decision machine (core/governor.h), with a
 * clock that jumps from wait to wait: so nothing is guessed and nothing is touched.
 *
 * It is what holds at this moment, if nobody else comes along: others who ask meanwhile, and a
 * server's next word, are not foreseen.
 */
#ifndef CURTSY_TOOLS_REHEARSAL_H
#define CURTSY_TOOLS_REHEARSAL_H

#include "core/governor.h"

/* A bucket as the request finds it. */
struct rehearsed_bucket {
    bool is_known; /* it is in the segment; else it would be made, and full */
    bool differs;  /* others' limits hold there, which are not what the configuration asks for */
    struct bucket_state state;
};

struct rehearsal {
    struct rehearsed_bucket buckets[POLICY_BUCKETS_MAX]; /* in the order of resolved->buckets */
    bool is_sent;                                        /* else it would be refused */
    int64_t wait_ns;                                     /* before it is sent; 0: at once */
    int64_t turn_ns;     /* from now: when its buckets would let it go; TIME_NEVER: not as far as is known */
    enum cause cause;    /* of the wait, or CAUSE_MAX_WAIT of the refusal */
    enum cause delay;    /* why its turn is not now, or CAUSE_NONE */
    int64_t max_wait_ns; /* in force for this request, `auto` worked out */
};

/* segment: NULL where there is none (yet).  resolved: with the mode that is in force for the request
 * apart from the operator's words; what is rehearsed is always MODE_ENFORCE.  False when out of
 * memory. */
bool rehearse(const struct segment *segment, const struct resolved_policy *resolved,
              const struct request_traits *traits, int64_t now_ns, struct rehearsal *out);

#endif
