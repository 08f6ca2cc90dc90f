/* SPDX-License-Identifier: MIT */
/*
 * Summary view: see summary_view.h.  The limits that are shown are those of the buckets: they are what
 * holds, whoever has said so.
 */
#include "tools/curtsy/summary_view.h"
#include "tools/curtsy/output.h"
#include "tools/curtsy/policy_view.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* As the governor has it: the longest of what each bucket would allow. */
static int64_t max_wait_ns(const struct summary *summary)
{
    int64_t longest_ns = 0;

    for (unsigned i = 0; i < summary->resolved.bucket_count; i++) {
        int64_t wait_ns = limits_max_wait_ns(&summary->resolved.values, &summary->resolved.buckets[i].limits);
        longest_ns = wait_ns > longest_ns ? wait_ns : longest_ns;
    }
    return longest_ns;
}

/* ---- as text ---- */

static void print_row(const char *label, const char *value, const char *origin)
{
    if (origin[0] != '\0')
        printf("    %-18s %-46s %s\n", label, value, origin);
    else
        printf("    %-18s %s\n", label, value);
}

static void print_key(const struct summary *summary, const char *label, enum policy_key key)
{
    char value[VALUE_TEXT_SIZE], origin[PATH_MAX + 16];

    policy_value_text(&summary->resolved.values, key, value);
    print_row(label, value, origin_text(summary->resolved.origins[key], origin, sizeof(origin)));
}

static void print_jitter(const struct summary *summary)
{
    char base[VALUE_TEXT_SIZE], cap[VALUE_TEXT_SIZE], value[2 * VALUE_TEXT_SIZE + 64];

    policy_value_text(&summary->resolved.values, POLICY_KEY_base_delay, base);
    policy_value_text(&summary->resolved.values, POLICY_KEY_max_delay, cap);
    snprintf(value, sizeof(value), "full: uniform(0, min(%s, %s x 2^n))", cap, base);
    print_row("jitter", value, "base doubled for a 429 without a word");
}

static void print_limit(const struct summary *summary, const struct limit *limit)
{
    char value[512], text[RATE_TEXT_SIZE], spacing[SHORT_TIME_SIZE], note[PATH_MAX + 16];

    snprintf(value, sizeof(value), "%s (%.4g/s, one every %s)", rate_text(text, limit), limit_rate_per_second(limit),
             short_time(spacing, limit_spacing_ns(limit)));
    print_row("token rate", value, limit->published != 0 ? "quota less headroom" : "rate");
    snprintf(value, sizeof(value), "%.6g", (double)limit->burst / (double)TOKEN_ONE);
    origin_text(summary->resolved.origins[POLICY_KEY_burst], note, sizeof(note));
    print_row("burst", value,
              summary->resolved.values.burst == COUNT_AUTO ? "auto: from headroom and network_jitter" : note);
}

/* The path behind "host:port" in a path's bucket; a bucket of several hosts has its own name. */
static const char *path_of(const char *bucket)
{
    const char *path = bucket[0] == '{' ? NULL : strchr(bucket, '/');

    return path != NULL ? path : "";
}

static void print_bucket(const struct summary *summary, unsigned index)
{
    const struct policy_bucket *bucket = &summary->resolved.buckets[index];
    char value[BUCKET_NAME_SIZE + 64];

    if (summary->is_any_host)
        snprintf(value, sizeof(value), "one for each host and port%s%s", index > 0 ? ", for " : "",
                 index > 0 ? path_of(bucket->name) : "");
    print_row(index == 0 ? "bucket" : "and", summary->is_any_host ? value : bucket->name, "");
    if (bucket->limits.count == 0)
        print_row("token rate", "unlimited", "no quota, no rate");
    for (unsigned i = 0; i < bucket->limits.count; i++)
        print_limit(summary, &bucket->limits.item[i]);
}

/* The published quota, and beside it what it comes to. */
static void print_limits(const struct summary *summary)
{
    const struct policy *values = &summary->resolved.values;

    print_key(summary, "published quota", POLICY_KEY_quota);
    if (values->rate.count > 0)
        print_key(summary, "rate", POLICY_KEY_rate);
    else if (values->quota.count > 0)
        print_key(summary, "headroom", POLICY_KEY_headroom);
    for (unsigned i = 0; i < summary->resolved.bucket_count; i++)
        print_bucket(summary, i);
}

static void print_waiting(const struct summary *summary)
{
    const struct policy *values = &summary->resolved.values;
    char value[256], wait[RATE_TEXT_SIZE], origin[PATH_MAX + 16];

    snprintf(value, sizeof(value), "%s, then %s", duration_text(wait, max_wait_ns(summary)),
             values->on_max_wait == ON_MAX_WAIT_SEND ? "send" : "fail");
    print_row("max wait", value, origin_text(summary->resolved.origins[POLICY_KEY_max_wait], origin, sizeof(origin)));
}

void summary_print(const struct summary *summary, const char *scope)
{
    char value[PATH_MAX];

    printf("\n%s%s%s%s%s\n", output_style(STYLE_BOLD), summary->title, output_style(STYLE_PLAIN),
           summary->subject[0] != '\0' ? "  " : "", summary->subject);
    print_key(summary, "mode", POLICY_KEY_mode);
    print_key(summary, "profile", POLICY_KEY_profile);
    print_key(summary, "retried statuses", POLICY_KEY_retry_status);
    print_key(summary, "retried errors", POLICY_KEY_retry_errors);
    print_key(summary, "base delay", POLICY_KEY_base_delay);
    print_key(summary, "delay cap", POLICY_KEY_max_delay);
    print_jitter(summary);
    print_key(summary, "attempts", POLICY_KEY_max_attempts);
    print_key(summary, "total budget", POLICY_KEY_total_budget);
    print_key(summary, "retry budget", POLICY_KEY_retry_budget);
    print_key(summary, "Retry-After", POLICY_KEY_retry_after);
    print_key(summary, "believed up to", POLICY_KEY_max_block);
    print_waiting(summary);
    print_limits(summary);
    snprintf(value, sizeof(value), "machine: %s", scope);
    print_row("shared by", value, "");
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

static json_t *limits_json(const struct limits *limits)
{
    json_t *array = policy_limits_json(limits);

    for (unsigned i = 0; i < limits->count; i++) {
        const struct limit *limit = &limits->item[i];
        uint64_t most = limit_most_in_window(limit, limit->window_ns + limit->jitter_ns);
        json_object_set_new(json_array_get(array, i), "most_in_window", json_integer((json_int_t)most));
    }
    return array;
}

static json_t *statuses_json(const struct status_set *set)
{
    json_t *array = json_array();

    for (int status = 100; status < 600; status++)
        if (status_set_has(set, status))
            json_array_append_new(array, json_integer(status));
    return array;
}

/* Every key as it would be written, with its origin. */
static json_t *keys_json(const struct summary *summary)
{
    json_t *object = json_object();
    char value[VALUE_TEXT_SIZE], origin[PATH_MAX + 16];

    for (unsigned key = 0; key < POLICY_KEY_COUNT; key++) {
        policy_value_text(&summary->resolved.values, (enum policy_key)key, value);
        origin_text(summary->resolved.origins[key], origin, sizeof(origin));
        json_object_set_new(object, policy_keys[key].name,
                            json_pack("{s:o, s:o}", "value", json_text(value), "origin", json_text(origin)));
    }
    return object;
}

/* "limits" are all that hold; "bucket_limits" says in which bucket. */
static void set_buckets(const struct summary *summary, json_t *object)
{
    json_t *names = json_array(), *by_bucket = json_array(), *all = json_array();

    for (unsigned i = 0; i < summary->resolved.bucket_count; i++) {
        const struct policy_bucket *bucket = &summary->resolved.buckets[i];
        json_t *name = summary->is_any_host ? json_null() : json_text(bucket->name);
        json_t *limits = limits_json(&bucket->limits);
        json_array_extend(all, limits);
        if (!summary->is_any_host)
            json_array_append(names, name);
        json_array_append_new(by_bucket, json_pack("{s:o, s:o}", "name", name, "limits", limits));
    }
    json_object_set_new(object, "limits", all);
    json_object_set_new(object, "buckets", names);
    json_object_set_new(object, "bucket_limits", by_bucket);
}

json_t *summary_json(const struct summary *summary)
{
    const struct policy *values = &summary->resolved.values;
    json_t *object = json_pack("{s:o, s:o, s:s, s:o, s:f, s:f, s:s, s:I, s:f, s:o, s:o, s:f, s:s, s:o}", "name",
                               json_text(summary->title), "speaks_for", json_text(summary->subject), "profile",
                               values->profile == PROFILE_BEST_EFFORT ? "best_effort" : "normal", "retry_status",
                               statuses_json(&values->retry_status), "base_delay_s", seconds(values->base_delay),
                               "max_delay_s", seconds(values->max_delay), "jitter", "full", "max_attempts",
                               (json_int_t)values->max_attempts, "total_budget_s", seconds(values->total_budget),
                               "quota", rates_json(&values->quota), "rate", rates_json(&values->rate), "max_wait_s",
                               seconds(max_wait_ns(summary)), "shared_by", "machine", "keys", keys_json(summary));
    set_buckets(summary, object);
    return object;
}
