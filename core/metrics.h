/* SPDX-License-Identifier: MIT */
/*
 * Metrics: what is counted, one set a bucket, in the shared segment.  The words are those of the
 * OpenMetrics names (curtsy_requests_total ...) and of the JSON fields.
 *
 * Counters only grow (modulo 2^64).  Each is one relaxed atomic addition: thread-safe,
 * process-safe, never a lock or a system call.
 */
#ifndef CURTSY_CORE_METRICS_H
#define CURTSY_CORE_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

/* Why a request waits, is retried, or is given up.  One list, for logs, status and metrics. */
enum cause {
    CAUSE_NONE,
    CAUSE_QUOTA,          /* the bucket's own pace */
    CAUSE_BLOCK,          /* the server's word, said to another request */
    CAUSE_RETRY_AFTER,    /* the server's word, said to this one */
    CAUSE_QUOTA_FIELDS,   /* "nothing left until T" in a quota field */
    CAUSE_BACKOFF,        /* own backoff, without a word */
    CAUSE_CONNECTION,     /* own backoff after a connection error */
    CAUSE_MAX_WAIT,       /* give-up: the wait is longer than max_wait */
    CAUSE_TOTAL_BUDGET,   /* give-up: the wait does not fit in total_budget */
    CAUSE_APP_TIMEOUT,    /* give-up: it does not fit in the caller's own timeout */
    CAUSE_MAX_ATTEMPTS,   /* give-up: attempts are used up */
    CAUSE_RETRY_BUDGET,   /* give-up: too many retries over requests */
    CAUSE_NOT_REPEATABLE, /* give-up: the request must not or cannot be sent twice */
    CAUSE_ABORTED,        /* the program's own callback ended the wait */
    CAUSE_HOLD,           /* the operator's hold */
    CAUSE_MODE,           /* the operator has switched Curtsy off, or to observe, meanwhile */
    CAUSE_COUNT
};
/* Room in the segment, so that a cause that comes later moves nothing. */
#define METRIC_CAUSES 24
const char *cause_name(enum cause cause); /* "quota", "retry_after", ... */

/* Bounds of the histogram of waits, in seconds: 0.01 0.03 0.1 0.3 1 3 10 30 100 300, and above. */
#define WAIT_BOUNDS 10
extern const double wait_bounds_s[WAIT_BOUNDS];

/* In the segment: fixed-width, all zeros valid.  Statuses have a slot for each of those that may be
 * retried and one for the others. */
#define METRIC_STATUSES 13
extern const int metric_statuses[METRIC_STATUSES - 1]; /* 429 403 500 502 503 504 520..524 529 */

struct metrics {
    _Atomic uint64_t requests;
    _Atomic uint64_t attempts;
    _Atomic uint64_t retries[METRIC_CAUSES];
    _Atomic uint64_t refusals[METRIC_STATUSES]; /* responses, by status */
    _Atomic uint64_t giveups[METRIC_CAUSES];
    _Atomic uint64_t waits[WAIT_BOUNDS + 1];
    _Atomic uint64_t wait_ns_sum[METRIC_CAUSES];
    _Atomic uint64_t observed_waits; /* what observe would have done */
    _Atomic uint64_t observed_retries;
};

static inline void metrics_request(struct metrics *metrics)
{
    atomic_fetch_add_explicit(&metrics->requests, 1, memory_order_relaxed);
}

static inline void metrics_attempt(struct metrics *metrics)
{
    atomic_fetch_add_explicit(&metrics->attempts, 1, memory_order_relaxed);
}

void metrics_retry(struct metrics *metrics, enum cause cause);
void metrics_refusal(struct metrics *metrics, int status);
void metrics_giveup(struct metrics *metrics, enum cause cause);
void metrics_wait(struct metrics *metrics, enum cause cause, int64_t wait_ns);

/* Adds all of `from` to `to` and leaves `from` at zero (eviction): each count is moved once, whoever
 * else moves too. */
void metrics_move(struct metrics *to, struct metrics *from);

#endif
