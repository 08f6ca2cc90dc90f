/* SPDX-License-Identifier: MIT */
/*
 * Numbers of curtsy check: see check_numbers.h.
 */
#include "tools/curtsy/check_numbers.h"
#include "tools/curtsy/check_warnings.h"
#include "tools/curtsy/example.h"
#include "tools/curtsy/output.h"

#include <inttypes.h>
#include <stdio.h>

struct numbers {
    const struct section *section;
    struct resolved_policy resolved;
    struct limits limits;
    int64_t max_wait_ns;
    uint64_t waiters;
};

static void work_out(struct numbers *numbers, const struct config *config, const struct section *section)
{
    numbers->section = section;
    example_resolve(config, section, &numbers->resolved);
    limits_from_policy(&numbers->resolved.values, &numbers->limits, NULL);
    numbers->max_wait_ns = limits_max_wait_ns(&numbers->resolved.values, &numbers->limits);
    numbers->waiters = limits_waiters(&numbers->limits, numbers->max_wait_ns);
}

/* ---- a token bucket ---- */

static double burst_of(const struct limit *limit)
{
    return (double)limit->burst / (double)TOKEN_ONE;
}

/* From empty to full. */
static int64_t refill_ns(const struct limit *limit)
{
    double ns = burst_of(limit) * (double)limit_spacing_ns(limit);

    return ns < (double)INT64_MAX / 2 ? (int64_t)ns : INT64_MAX / 2;
}

static uint64_t most_of(const struct limit *limit)
{
    return limit_most_in_window(limit, limit->window_ns + limit->jitter_ns);
}

/* ---- a window ---- */

/* quota x (1 - headroom), at least one; a plain rate is taken as it is. */
static uint64_t window_of(const struct policy *policy, const struct limit *limit)
{
    uint64_t part = (uint64_t)((unsigned __int128)limit->published * (PPM_ONE - policy->headroom) / PPM_ONE);

    for (unsigned i = 0; i < policy->rate.count && limit->published == 0; i++)
        if (policy->rate.item[i].window_ns == limit->window_ns)
            part = policy->rate.item[i].count;
    return part > 0 ? part : 1;
}

/* A place is free again when its request has left the window, however late that arrived. */
static int64_t window_next_ns(const struct limit *limit)
{
    return limit->window_ns + limit->jitter_ns;
}

/* Those who come when the first have just gone: as many more in each further window. */
static uint64_t window_waiters(const struct numbers *numbers, const struct limit *limit)
{
    return window_of(&numbers->resolved.values, limit) * (uint64_t)(numbers->max_wait_ns / window_next_ns(limit));
}

/* ---- as text ---- */

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_heading(const struct numbers *numbers)
{
    const struct policy *policy = &numbers->resolved.values;
    const struct key *key = &policy_keys[policy->quota.count > 0 ? POLICY_KEY_quota : POLICY_KEY_rate];
    char value[256];

    keys_format_value(key, policy->quota.count > 0 ? (const void *)&policy->quota : (const void *)&policy->rate, value,
                      sizeof(value));
    printf("%s[%s]%s %s = %s\n", output_style(STYLE_BOLD), numbers->section->name, output_style(STYLE_PLAIN), key->name,
           value);
}

static void print_bucket(const struct limit *limit)
{
    char rate[RATE_TEXT_SIZE], window[RATE_TEXT_SIZE], jitter[RATE_TEXT_SIZE];
    char spacing[SHORT_TIME_SIZE], refill[SHORT_TIME_SIZE];
    uint64_t most = most_of(limit);

    short_time(spacing, limit_spacing_ns(limit));
    printf("    rate %s (%.4g/s, one every %s), burst %.6g\n", rate_text(rate, limit), limit_rate_per_second(limit),
           spacing, burst_of(limit));
    printf("    %.6g token%s at once after idling; from empty to full in %s\n", burst_of(limit),
           limit->burst == TOKEN_ONE ? " goes" : "s go", short_time(refill, refill_ns(limit)));
    printf("    at most %" PRIu64 " request%s in any %s, bunched up by %s on the way", most, plural(most),
           duration_text(window, limit->window_ns), duration_text(jitter, limit->jitter_ns));
    if (limit->published != 0)
        printf("; %" PRIu64 " %s allowed", limit->published, limit->published == 1 ? "is" : "are");
    putchar('\n');
}

static void print_window(const struct numbers *numbers, const struct limit *limit)
{
    const struct policy *policy = &numbers->resolved.values;
    bool is_asked_for = policy->shape == SHAPE_WINDOW;
    const char *note = is_asked_for ? ", as asked for but not in force yet" : " (not in force yet)";
    uint64_t count = window_of(policy, limit), waiters = window_waiters(numbers, limit);
    char next[RATE_TEXT_SIZE], window[RATE_TEXT_SIZE];

    printf("    with shape = window%s: %" PRIu64 " go%s at once, the next one %s after the first; at most %" PRIu64
           " in any %s; %" PRIu64 " waiter%s\n",
           policy_keys[POLICY_KEY_shape].in_force ? "" : note, count, count == 1 ? "es" : "",
           duration_text(next, window_next_ns(limit)), count, duration_text(window, limit->window_ns), waiters,
           waiters == 1 ? " fits" : "s fit");
}

static void print_waiting(const struct numbers *numbers)
{
    char wait[RATE_TEXT_SIZE];

    if (numbers->resolved.values.profile == PROFILE_BEST_EFFORT)
        puts("    nobody waits: profile = best_effort");
    else
        printf("    %" PRIu64 " waiter%s in max_wait = %s\n", numbers->waiters,
               numbers->waiters == 1 ? " fits" : "s fit", duration_text(wait, numbers->max_wait_ns));
}

void numbers_print(const struct config *config, const struct section *section)
{
    struct numbers numbers;

    work_out(&numbers, config, section);
    if (numbers.limits.count == 0 || !(section_sets_limits(section) || section->set[POLICY_KEY_max_wait]))
        return;
    print_heading(&numbers);
    for (unsigned i = 0; i < numbers.limits.count; i++) {
        print_bucket(&numbers.limits.item[i]);
        print_window(&numbers, &numbers.limits.item[i]);
    }
    print_waiting(&numbers);
}

/* ---- as JSON ---- */

static double seconds(int64_t ns)
{
    return (double)ns / (double)NS_PER_SECOND;
}

static json_t *rates_json(const struct rate_list *rates)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < rates->count; i++)
        json_array_append_new(array, json_pack("{s:I, s:f}", "count", (json_int_t)rates->item[i].count, "window_s",
                                               seconds(rates->item[i].window_ns)));
    return array;
}

static json_t *bucket_json(const struct limit *limit)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:I}", "rate_per_s", limit_rate_per_second(limit), "spacing_s",
                     seconds(limit_spacing_ns(limit)), "burst", burst_of(limit), "refill_s", seconds(refill_ns(limit)),
                     "most_in_window", (json_int_t)most_of(limit));
}

static json_t *window_json(const struct numbers *numbers, const struct limit *limit)
{
    json_int_t count = (json_int_t)window_of(&numbers->resolved.values, limit);

    return json_pack("{s:I, s:f, s:I, s:I}", "at_once", count, "next_s", seconds(window_next_ns(limit)),
                     "most_in_window", count, "waiters", (json_int_t)window_waiters(numbers, limit));
}

static json_t *limit_json(const struct numbers *numbers, const struct limit *limit)
{
    json_t *quota = limit->published != 0 ? json_integer((json_int_t)limit->published) : json_null();

    return json_pack("{s:f, s:o, s:f, s:o, s:o}", "window_s", seconds(limit->window_ns), "quota", quota, "jitter_s",
                     seconds(limit->jitter_ns), "bucket", bucket_json(limit), "window", window_json(numbers, limit));
}

json_t *numbers_json(const struct config *config, const struct section *section)
{
    struct numbers numbers;
    const struct policy *policy = &numbers.resolved.values;
    json_t *limits = json_array();

    work_out(&numbers, config, section);
    for (unsigned i = 0; i < numbers.limits.count; i++)
        json_array_append_new(limits, limit_json(&numbers, &numbers.limits.item[i]));
    bool is_window = policy->shape == SHAPE_WINDOW && policy_keys[POLICY_KEY_shape].in_force;
    return json_pack("{s:o, s:o, s:i, s:o, s:o, s:f, s:s, s:s, s:f, s:o, s:o}", "name", json_text(section->name),
                     "file", section->origin.file != NULL ? json_text(section->origin.file) : json_null(), "line",
                     (int)section->origin.line, "quota", rates_json(&policy->quota), "rate", rates_json(&policy->rate),
                     "headroom", (double)policy->headroom / PPM_ONE, "profile",
                     policy->profile == PROFILE_BEST_EFFORT ? "best_effort" : "normal", "shape",
                     is_window ? "window" : "bucket", "max_wait_s", seconds(numbers.max_wait_ns), "waiters",
                     numbers.limits.count > 0 ? json_integer((json_int_t)numbers.waiters) : json_null(), "limits",
                     limits);
}
