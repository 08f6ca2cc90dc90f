/* SPDX-License-Identifier: MIT */
/*
 * Counters: see counters.h.  What is read may change meanwhile: each number is right by itself, and
 * a total is the sum of what was read and not of what was there at one instant.
 */
#include "tools/curtsy/counters.h"
#include "tools/curtsy/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_WIDTH 100
#define INDENT 4

const char *const counter_names[] = {
    "curtsy_requests_total",
    "curtsy_attempts_total",
    "curtsy_retries_total{cause}",
    "curtsy_refusals_total{status}",
    "curtsy_giveups_total{cause}",
    "curtsy_wait_seconds{cause}",
    "curtsy_blocked_seconds",
    "curtsy_waiting",
    NULL,
};

/* A family of counters: one metric's values by label. */
struct family {
    const char *metric;
    const char *title;
    unsigned count;
    const _Atomic uint64_t *values;
    bool is_time; /* in nanoseconds */
    bool is_by_status;
};
#define FAMILY_COUNT 4

static void families(const struct metrics *metrics, struct family family[FAMILY_COUNT])
{
    family[0] = (struct family){"curtsy_retries_total", "retries", CAUSE_COUNT, metrics->retries, false, false};
    family[1] = (struct family){"curtsy_refusals_total", "refusals", METRIC_STATUSES, metrics->refusals, false, true};
    family[2] = (struct family){"curtsy_giveups_total", "gave up", CAUSE_COUNT, metrics->giveups, false, false};
    family[3] = (struct family){"sum", "waited", CAUSE_COUNT, metrics->wait_ns_sum, true, false};
}

static const char *label(const struct family *family, unsigned index, char buffer[16])
{
    if (!family->is_by_status)
        return cause_name((enum cause)index);
    if (index == METRIC_STATUSES - 1)
        return "other";
    snprintf(buffer, 16, "%d", metric_statuses[index]);
    return buffer;
}

static json_t *family_json(const struct family *family)
{
    json_t *object = json_object();
    char buffer[16];

    for (unsigned i = 0; i < family->count; i++) {
        uint64_t value = atomic_load_explicit(&family->values[i], memory_order_relaxed);
        if (value == 0)
            continue;
        json_object_set_new(object, label(family, i, buffer),
                            family->is_time ? json_real((double)value / (double)NS_PER_SECOND)
                                            : json_integer((json_int_t)value));
    }
    return object;
}

/* As OpenMetrics has it: each bound counts all waits up to it. */
static json_t *wait_buckets_json(const struct metrics *metrics)
{
    json_t *object = json_object();
    uint64_t count = 0;
    char bound[32];

    for (unsigned i = 0; i <= WAIT_BOUNDS; i++) {
        count += atomic_load_explicit(&metrics->waits[i], memory_order_relaxed);
        if (i < WAIT_BOUNDS)
            snprintf(bound, sizeof(bound), "%g", wait_bounds_s[i]);
        else
            snprintf(bound, sizeof(bound), "+Inf");
        json_object_set_new(object, bound, json_integer((json_int_t)count));
    }
    return object;
}

static void add_integer(json_t *object, const char *name, const _Atomic uint64_t *value)
{
    json_object_set_new(object, name, json_integer((json_int_t)atomic_load_explicit(value, memory_order_relaxed)));
}

void counters_add_json(json_t *object, const struct metrics *metrics)
{
    struct family family[FAMILY_COUNT];

    families(metrics, family);
    add_integer(object, "curtsy_requests_total", &metrics->requests);
    add_integer(object, "curtsy_attempts_total", &metrics->attempts);
    for (unsigned i = 0; i < FAMILY_COUNT - 1; i++)
        json_object_set_new(object, family[i].metric, family_json(&family[i]));
    json_object_set_new(
        object, "curtsy_wait_seconds",
        json_pack("{s:o, s:o}", "sum", family_json(&family[FAMILY_COUNT - 1]), "bucket", wait_buckets_json(metrics)));
    add_integer(object, "observed_waits", &metrics->observed_waits);
    add_integer(object, "observed_retries", &metrics->observed_retries);
}

/* Appends to the line under way, or to a new one where it would be too long. */
static void print_item(unsigned *column, const char *item)
{
    unsigned length = (unsigned)strlen(item);

    if (*column + length > LINE_WIDTH)
        *column = (unsigned)printf("\n%*s", 2 * INDENT, "") - 1;
    printf("%s", item);
    *column += length;
}

static void family_print(const struct family *family)
{
    uint64_t total = 0;
    unsigned column, printed = 0;
    char item[64], buffer[16], time[SHORT_TIME_SIZE];

    for (unsigned i = 0; i < family->count; i++)
        total += atomic_load_explicit(&family->values[i], memory_order_relaxed);
    if (total == 0)
        return;
    if (family->is_time)
        column = (unsigned)printf("%*s%s %s:", INDENT, "", family->title, short_time(time, (int64_t)total));
    else
        column = (unsigned)printf("%*s%s %" PRIu64 ":", INDENT, "", family->title, total);
    for (unsigned i = 0; i < family->count; i++) {
        uint64_t value = atomic_load_explicit(&family->values[i], memory_order_relaxed);
        if (value == 0)
            continue;
        const char *comma = printed++ == 0 ? "" : ",";
        if (family->is_time)
            snprintf(item, sizeof(item), "%s %s %s", comma, label(family, i, buffer), short_time(time, (int64_t)value));
        else if (family->is_by_status)
            snprintf(item, sizeof(item), "%s %" PRIu64 " of %s", comma, value, label(family, i, buffer));
        else
            snprintf(item, sizeof(item), "%s %" PRIu64 " %s", comma, value, label(family, i, buffer));
        print_item(&column, item);
    }
    putchar('\n');
}

void counters_print(const struct metrics *metrics)
{
    struct family family[FAMILY_COUNT];
    uint64_t waits = atomic_load_explicit(&metrics->observed_waits, memory_order_relaxed);
    uint64_t retries = atomic_load_explicit(&metrics->observed_retries, memory_order_relaxed);

    families(metrics, family);
    for (unsigned i = 0; i < FAMILY_COUNT; i++)
        family_print(&family[i]);
    if (waits != 0 || retries != 0)
        printf("%*sobserved only: %" PRIu64 " would have waited, %" PRIu64 " retries\n", INDENT, "", waits, retries);
}

uint64_t counters_waited_ns(const struct metrics *metrics)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < CAUSE_COUNT; i++)
        total += atomic_load_explicit(&metrics->wait_ns_sum[i], memory_order_relaxed);
    return total;
}
