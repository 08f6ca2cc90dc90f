/* SPDX-License-Identifier: MIT */
/*
 * curtsy status: every bucket of the segment now: its limits, the tokens in it, what blocks it, and
 * what was counted.  It only reads; a picture of each bucket is consistent, the pictures of two
 * buckets are not of one instant.
 */
#include "tools/curtsy/command.h"
#include "tools/curtsy/counters.h"
#include "tools/curtsy/output.h"
#include "tools/curtsy/view.h"

#include "core/system/clock.h"

#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { OPTION_JSON = 256, OPTION_SEGMENT };

struct status_options {
    const char *segment;
    const char *host;
    bool as_json;
};

/* A bucket and the picture taken of it. */
struct shown {
    struct bucket_state state;
    const struct metrics *metrics;
};

struct shown_list {
    struct shown *item;
    size_t count;
    size_t room;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct status_options *options = state->input;

    switch (key) {
    case OPTION_SEGMENT:
        options->segment = argument;
        return 0;
    case OPTION_JSON:
        options->as_json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->host != NULL)
            return ARGP_ERR_UNKNOWN;
        options->host = argument;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* `name` is "host:port", "[::1]:port", either with a path behind it, or "{section}".  `host` may name
 * it with or without the port, and an IPv6 address with or without brackets. */
static bool host_matches(const char *name, const char *host)
{
    size_t length = strlen(host);
    const char *end;

    if (name[0] == '[' && host[0] != '[')
        return strncasecmp(name + 1, host, length) == 0 && name[length + 1] == ']';
    if (strncasecmp(name, host, length) != 0)
        return false;
    end = name + length;
    return *end == '\0' || *end == '/' || (*end == ':' && (name[0] != '[' || end[-1] == ']'));
}

static bool shown_add(struct shown_list *list, const struct shown *shown)
{
    if (list->count == list->room) {
        size_t room = list->room != 0 ? 2 * list->room : 64;
        struct shown *item = reallocarray(list->item, room, sizeof(*item));
        if (item == NULL)
            return false;
        list->item = item;
        list->room = room;
    }
    list->item[list->count++] = *shown;
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct shown *)a)->state.name, ((const struct shown *)b)->state.name);
}

/* Every bucket that `host` names, or all, by name; then what the evicted ones had counted. */
static bool collect(const struct segment *segment, const char *host, int64_t now_ns, struct shown_list *list)
{
    const struct metrics *other = segment_other_metrics(segment);
    struct shown shown;
    struct bucket *bucket;
    unsigned cursor = 0;

    while ((bucket = segment_next(segment, &cursor)) != NULL) {
        bucket_read_state(bucket, now_ns, &shown.state);
        shown.metrics = bucket_metrics(bucket);
        make_printable(shown.state.name);
        if ((host == NULL || host_matches(shown.state.name, host)) && !shown_add(list, &shown))
            return false;
    }
    if (list->count > 1)
        qsort(list->item, list->count, sizeof(list->item[0]), compare_names);
    if (host != NULL || atomic_load_explicit(&other->requests, memory_order_relaxed) == 0)
        return true;
    shown = (struct shown){.state = {.name = "other"}, .metrics = other};
    return shown_add(list, &shown);
}

static int64_t remaining_ns(int64_t until_ns, int64_t now_ns)
{
    return until_ns > now_ns ? until_ns - now_ns : 0;
}

static double seconds(int64_t ns)
{
    return (double)ns / (double)NS_PER_SECOND;
}

static json_t *limits_json(const struct bucket_state *state)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < state->limits.count; i++) {
        const struct limit *limit = &state->limits.item[i];
        json_array_append_new(
            array, json_pack("{s:f, s:f, s:o, s:f, s:f}", "rate_per_s", limit_rate_per_second(limit), "burst",
                             (double)limit->burst / (double)TOKEN_ONE, "quota",
                             limit->published != 0 ? json_integer((json_int_t)limit->published) : json_null(),
                             "window_s", seconds(limit->window_ns), "tokens", state->tokens[i]));
    }
    return array;
}

static json_t *bucket_json(const struct shown *shown, int64_t now_ns)
{
    const struct bucket_state *state = &shown->state;
    json_t *object = json_pack("{s:o, s:o}", "bucket", json_text(state->name), "limits", limits_json(state));

    json_object_set_new(object, "curtsy_blocked_seconds",
                        json_real(seconds(remaining_ns(state->blocked_until_ns, now_ns))));
    json_object_set_new(object, "block_is_soft", json_boolean(state->block == BLOCK_SOFT));
    json_object_set_new(object, "next_s",
                        state->next_ns != TIME_NEVER ? json_real(seconds(remaining_ns(state->next_ns, now_ns)))
                                                     : json_null());
    counters_add_json(object, shown->metrics);
    return object;
}

static void print_json(const struct view *view, const struct shown_list *list, int64_t now_ns)
{
    json_t *document = view_json(view);
    json_t *buckets = json_array();

    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(buckets, bucket_json(&list->item[i], now_ns));
    json_object_set_new(document, "buckets", buckets);
    output_json(document);
}

static void print_heading(void)
{
    printf("\n%s%-36s %10s %9s %8s %9s %9s %9s%s\n", output_style(STYLE_BOLD), "BUCKET", "QUOTA", "TOKENS", "NEXT",
           "REQUESTS", "ATTEMPTS", "WAITED", output_style(STYLE_PLAIN));
}

/* The published quota, or the plain rate where none was published. */
static const char *quota_text(char buffer[RATE_TEXT_SIZE], const struct limit *limit)
{
    if (limit->published == 0)
        return rate_text(buffer, limit);
    units_format_rate(buffer, RATE_TEXT_SIZE, (struct rate){limit->published, limit->window_ns});
    return buffer;
}

static void print_block(const struct bucket_state *state, int64_t now_ns)
{
    int64_t remaining = remaining_ns(state->blocked_until_ns, now_ns);
    time_t until = (time_t)(clock_wall_s() + remaining / NS_PER_SECOND);
    struct tm local;
    char clock[32], time[SHORT_TIME_SIZE];

    if (remaining == 0)
        return;
    if (localtime_r(&until, &local) == NULL || strftime(clock, sizeof(clock), "%Y-%m-%d %H:%M:%S", &local) == 0)
        snprintf(clock, sizeof(clock), "?");
    printf("    %sblocked until %s (for %s), by %s%s\n",
           output_style(state->block == BLOCK_SOFT ? STYLE_CAUTION : STYLE_FAULT), clock, short_time(time, remaining),
           state->block == BLOCK_SOFT   ? "its quota fields"
           : state->block == BLOCK_HOLD ? "the operator"
                                        : "the server's word", output_style(STYLE_PLAIN));
}

/* The limit with the fewest tokens is in the row; all are below it, with what they come to. */
static void print_limits(const struct bucket_state *state)
{
    char rate[RATE_TEXT_SIZE], quota[RATE_TEXT_SIZE];

    for (unsigned i = 0; i < state->limits.count; i++) {
        const struct limit *limit = &state->limits.item[i];
        printf("    rate %s, burst %.6g", rate_text(rate, limit), (double)limit->burst / (double)TOKEN_ONE);
        if (state->limits.count > 1)
            printf(", tokens %.1f, for %s", state->tokens[i], quota_text(quota, limit));
        putchar('\n');
    }
}

static void print_bucket(const struct shown *shown, int64_t now_ns)
{
    const struct bucket_state *state = &shown->state;
    const struct metrics *metrics = shown->metrics;
    char quota[RATE_TEXT_SIZE] = "none", tokens[32] = "-", next[SHORT_TIME_SIZE], waited[SHORT_TIME_SIZE];
    unsigned tightest = 0;

    for (unsigned i = 1; i < state->limits.count; i++)
        if (state->tokens[i] < state->tokens[tightest])
            tightest = i;
    if (state->limits.count > 0) {
        quota_text(quota, &state->limits.item[tightest]);
        snprintf(tokens, sizeof(tokens), "%.1f", state->tokens[tightest]);
    }
    if (state->next_ns <= now_ns)
        snprintf(next, sizeof(next), "now");
    else
        short_time(next, state->next_ns == TIME_NEVER ? TIME_NEVER : state->next_ns - now_ns);
    if (strlen(state->name) > 36)
        printf("%s\n%-36s", state->name, "");
    else
        printf("%-36s", state->name);
    printf(" %10s %9s %8s %9" PRIu64 " %9" PRIu64 " %9s\n", quota, tokens, next,
           atomic_load_explicit(&metrics->requests, memory_order_relaxed),
           atomic_load_explicit(&metrics->attempts, memory_order_relaxed),
           short_time(waited, (int64_t)counters_waited_ns(metrics)));
    print_limits(state);
    print_block(state, now_ns);
    counters_print(metrics);
}

/* No segment is an answer, and a script that asks for JSON gets it as JSON. */
static int show_nothing(const struct view *view, const struct status_options *options)
{
    if (options->as_json) {
        json_t *document = view_json(view);
        json_object_set_new(document, "buckets", json_array());
        json_object_set_new(document, "error", json_text(view->error));
        output_json(document);
        complain("no segment: %s", view->error);
    } else if (view->is_missing) {
        printf("nothing has run under Curtsy here yet: no segment %s\n", view->name);
    } else {
        view_print(view);
    }
    return STATUS_NEGATIVE;
}

static int show(const struct view *view, const struct status_options *options)
{
    int64_t now_ns = clock_now_ns();
    struct shown_list list = {0};
    int status = STATUS_SUCCESS;

    if (!collect(&view->segment, options->host, now_ns, &list)) {
        complain("out of memory");
        status = STATUS_NEGATIVE;
    } else if (options->as_json) {
        print_json(view, &list, now_ns);
    } else {
        view_print(view);
        if (list.count > 0)
            print_heading();
        else
            puts("no buckets");
        for (size_t i = 0; i < list.count; i++)
            print_bucket(&list.item[i], now_ns);
    }
    if (options->host != NULL && list.count == 0) {
        complain("no bucket of %s", options->host);
        status = STATUS_NEGATIVE;
    }
    free(list.item);
    return status;
}

int command_status(int argc, char **argv)
{
    static const struct argp_option option_list[] = {
        {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
        {"segment", OPTION_SEGMENT, "NAME", 0, "look at this segment instead of one's own", 0},
        {0},
    };
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "[HOST]",
        .doc = "Shows each bucket's limits, tokens, blocks and counts, or those of HOST.",
    };
    struct status_options options = {0};
    struct environment environment;
    struct config *config;
    static struct view view;

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    environment_read(&environment);
    config = config_files_load(&environment, NULL, NULL, NULL);
    view_open(&view, options.segment, &environment, config);

    int status = view.is_open ? show(&view, &options) : show_nothing(&view, &options);
    view_close(&view);
    config_free(config);
    return status;
}
