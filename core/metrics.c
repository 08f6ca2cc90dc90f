/* SPDX-License-Identifier: MIT */
/*
 * Metrics: counters in shared memory, one relaxed addition each.  Nothing is derived here; what
 * reads them (status, metrics, report) does the arithmetic.
 */
#include "core/metrics.h"

#include <assert.h>
#include <stddef.h>

/* clang-format off */
static const char *const cause_names[CAUSE_COUNT] = {
    [CAUSE_NONE]           = "none",
    [CAUSE_QUOTA]          = "quota",
    [CAUSE_BLOCK]          = "block",
    [CAUSE_RETRY_AFTER]    = "retry_after",
    [CAUSE_QUOTA_FIELDS]   = "quota_fields",
    [CAUSE_BACKOFF]        = "backoff",
    [CAUSE_CONNECTION]     = "connection",
    [CAUSE_MAX_WAIT]       = "max_wait",
    [CAUSE_TOTAL_BUDGET]   = "total_budget",
    [CAUSE_APP_TIMEOUT]    = "app_timeout",
    [CAUSE_MAX_ATTEMPTS]   = "max_attempts",
    [CAUSE_RETRY_BUDGET]   = "retry_budget",
    [CAUSE_NOT_REPEATABLE] = "not_repeatable",
    [CAUSE_ABORTED]        = "aborted",
    [CAUSE_HOLD]           = "hold",
    [CAUSE_MODE]           = "mode",
};
/* clang-format on */

const double wait_bounds_s[WAIT_BOUNDS] = {0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300};
static const int64_t wait_bounds_ms[WAIT_BOUNDS] = {10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000, 300000};
const int metric_statuses[METRIC_STATUSES - 1] = {429, 403, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529};

#define METRIC_WORDS (sizeof(struct metrics) / sizeof(_Atomic uint64_t))
static_assert(CAUSE_COUNT <= METRIC_CAUSES, "there is room for each cause");
static_assert(sizeof(struct metrics) == METRIC_WORDS * sizeof(uint64_t), "metrics are counters and nothing else");

static void add(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static enum cause in_range(enum cause cause)
{
    return (unsigned)cause < CAUSE_COUNT ? cause : CAUSE_NONE;
}

const char *cause_name(enum cause cause)
{
    return cause_names[in_range(cause)];
}

void metrics_retry(struct metrics *metrics, enum cause cause)
{
    add(&metrics->retries[in_range(cause)], 1);
}

void metrics_refusal(struct metrics *metrics, int status)
{
    size_t slot = 0;
    while (slot < METRIC_STATUSES - 1 && metric_statuses[slot] != status)
        slot++;
    add(&metrics->refusals[slot], 1);
}

void metrics_giveup(struct metrics *metrics, enum cause cause)
{
    add(&metrics->giveups[in_range(cause)], 1);
}

/* A wait of exactly a bound counts below it, as OpenMetrics' `le` has it. */
void metrics_wait(struct metrics *metrics, enum cause cause, int64_t wait_ns)
{
    if (wait_ns < 0)
        wait_ns = 0;
    size_t slot = 0;
    while (slot < WAIT_BOUNDS && wait_ns > wait_bounds_ms[slot] * 1000000)
        slot++;
    add(&metrics->waits[slot], 1);
    add(&metrics->wait_ns_sum[in_range(cause)], (uint64_t)wait_ns);
}

void metrics_move(struct metrics *to, struct metrics *from)
{
    _Atomic uint64_t *sum = (_Atomic uint64_t *)to;
    _Atomic uint64_t *part = (_Atomic uint64_t *)from;
    for (size_t i = 0; i < METRIC_WORDS; i++)
        add(&sum[i], atomic_exchange_explicit(&part[i], 0, memory_order_relaxed));
}
