/* SPDX-License-Identifier: MIT */
/*
 * Bucket view: see bucket_view.h.
 */
#include "tools/curtsy/bucket_view.h"
#include "tools/curtsy/counters.h"
#include "tools/curtsy/operate.h"
#include "tools/curtsy/output.h"

#include "core/system/process.h"
#include "core/waiters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ----------------------------------------------------------------------- taking ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct bucket_picture *)a)->state.name, ((const struct bucket_picture *)b)->state.name);
}

static bool is_alive(uint64_t owner, uint64_t *last_alive)
{
    if (owner != *last_alive && process_is_dead(owner))
        return false;
    *last_alive = owner;
    return true;
}

/* The pictures are in the order of their names. */
static void count_waiters(struct bucket_pictures *pictures, const struct segment *segment)
{
    struct bucket_picture wanted, *found;
    struct waiter waiter;
    uint64_t last_alive = 0;
    unsigned cursor = 0;

    while (pictures->count > 0 && waiters_next(segment, &cursor, &waiter)) {
        snprintf(wanted.state.name, sizeof(wanted.state.name), "%s", waiter.bucket);
        make_printable(wanted.state.name);
        found = bsearch(&wanted, pictures->item, pictures->count, sizeof(wanted), compare_names);
        if (found != NULL && is_alive(waiter.owner, &last_alive))
            found->waiting++;
    }
}

bool bucket_pictures_take(struct bucket_pictures *pictures, const struct segment *segment,
                          struct bucket *const *buckets, size_t count, int64_t now_ns)
{
    /* And room for the other ones. */
    *pictures = (struct bucket_pictures){.item = calloc(count + 1, sizeof(struct bucket_picture)), .now_ns = now_ns};
    if (pictures->item == NULL)
        return false;
    for (; pictures->count < count; pictures->count++) {
        struct bucket_picture *picture = &pictures->item[pictures->count];
        bucket_read_state(buckets[pictures->count], now_ns, &picture->state);
        make_printable(picture->state.name);
        picture->metrics = bucket_metrics(buckets[pictures->count]);
    }
    qsort(pictures->item, count, sizeof(pictures->item[0]), compare_names);
    count_waiters(pictures, segment);
    return true;
}

void bucket_pictures_add_other(struct bucket_pictures *pictures, const struct segment *segment)
{
    const struct metrics *other = segment_other_metrics(segment);

    if (atomic_load_explicit(&other->requests, memory_order_relaxed) == 0)
        return;
    pictures->item[pictures->count++] = (struct bucket_picture){
        .state = {.name = "other", .mode_until_ns = TIME_NEVER},
        .metrics = other,
    };
}

void bucket_pictures_free(struct bucket_pictures *pictures)
{
    free(pictures->item);
    *pictures = (struct bucket_pictures){0};
}

/* ------------------------------------------------------------------------- JSON ---- */

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

void operator_mode_add_json(json_t *object, enum operator_mode mode, int64_t until_ns, int64_t now_ns)
{
    json_object_set_new(object, "mode", json_string(operator_mode_name(mode)));
    json_object_set_new(object, "mode_until", mode != OPERATOR_AUTO ? clock_json(until_ns, now_ns) : json_null());
}

static json_t *block_json(const struct bucket_state *state, int64_t now_ns)
{
    static const char *const names[] = {[BLOCK_SOFT] = "soft", [BLOCK_HARD] = "hard", [BLOCK_HOLD] = "hold"};
    bool is_blocked = state->block != BLOCK_NONE && remaining_ns(state->blocked_until_ns, now_ns) > 0;

    return is_blocked ? json_string(names[state->block]) : json_null();
}

static json_t *picture_json(const struct bucket_picture *picture, int64_t now_ns)
{
    const struct bucket_state *state = &picture->state;
    json_t *object = json_pack("{s:o, s:o}", "bucket", json_text(state->name), "limits", limits_json(state));

    json_object_set_new(object, "curtsy_blocked_seconds",
                        json_real(seconds(remaining_ns(state->blocked_until_ns, now_ns))));
    json_object_set_new(object, "block", block_json(state, now_ns));
    json_object_set_new(object, "block_is_soft", json_boolean(state->block == BLOCK_SOFT));
    operator_mode_add_json(object, state->mode, state->mode_until_ns, now_ns);
    json_object_set_new(object, "next_s",
                        state->next_ns != TIME_NEVER ? json_real(seconds(remaining_ns(state->next_ns, now_ns)))
                                                     : json_null());
    json_object_set_new(object, "curtsy_waiting", json_integer(picture->waiting));
    counters_add_json(object, picture->metrics);
    return object;
}

json_t *bucket_pictures_json(const struct bucket_pictures *pictures)
{
    json_t *array = json_array();

    for (size_t i = 0; i < pictures->count; i++)
        json_array_append_new(array, picture_json(&pictures->item[i], pictures->now_ns));
    return array;
}

/* ------------------------------------------------------------------------- text ---- */

/* The published quota, or the plain rate where none was published. */
static const char *quota_text(char buffer[RATE_TEXT_SIZE], const struct limit *limit)
{
    if (limit->published == 0)
        return rate_text(buffer, limit);
    units_format_rate(buffer, RATE_TEXT_SIZE, (struct rate){limit->published, limit->window_ns});
    return buffer;
}

/* "until 2026-11-30 12:00:00 (for 4m59s)", or "until it is CHANGED" */
static void print_until(int64_t until_ns, int64_t now_ns, const char *changed)
{
    int64_t remaining = remaining_ns(until_ns, now_ns);
    struct timespec wall;
    struct tm local;
    char clock[32], time[SHORT_TIME_SIZE];

    if (until_ns == TIME_NEVER) {
        printf("until it is %s", changed);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &wall);
    int64_t rest = remaining % NS_PER_SECOND + wall.tv_nsec + NS_PER_SECOND / 2;
    time_t until = wall.tv_sec + (time_t)(remaining / NS_PER_SECOND + rest / NS_PER_SECOND);
    if (localtime_r(&until, &local) == NULL || strftime(clock, sizeof(clock), "%Y-%m-%d %H:%M:%S", &local) == 0)
        snprintf(clock, sizeof(clock), "?");
    printf("until %s (for %s)", clock, short_time(time, remaining));
}

void operator_mode_print(enum operator_mode mode, int64_t until_ns, int64_t now_ns, const char *indent)
{
    if (mode == OPERATOR_AUTO)
        return;
    printf("%smode %s%s%s ", indent, output_style(STYLE_CAUTION), operator_mode_name(mode), output_style(STYLE_PLAIN));
    print_until(until_ns, now_ns, "changed");
    puts(", by the operator");
}

static void print_block(const struct bucket_state *state, int64_t now_ns)
{
    static const char *const words[] = {"blocked", "blocked", "blocked", "held"};
    static const char *const by[] = {"garbage", "its quota fields", "the server's word", "the operator"};

    if (remaining_ns(state->blocked_until_ns, now_ns) == 0)
        return;
    printf("    %s%s ", output_style(state->block == BLOCK_SOFT ? STYLE_CAUTION : STYLE_FAULT), words[state->block]);
    print_until(state->blocked_until_ns, now_ns, "released");
    printf(", by %s%s\n", by[state->block], output_style(STYLE_PLAIN));
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

static void print_row(const struct bucket_picture *picture, int64_t now_ns)
{
    const struct bucket_state *state = &picture->state;
    const struct metrics *metrics = picture->metrics;
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
}

static void print_picture(const struct bucket_picture *picture, int64_t now_ns)
{
    const struct bucket_state *state = &picture->state;

    print_row(picture, now_ns);
    print_limits(state);
    operator_mode_print(state->mode, state->mode_until_ns, now_ns, "    ");
    print_block(state, now_ns);
    if (picture->waiting > 0)
        printf("    waiting now: %u\n", picture->waiting);
    counters_print(picture->metrics);
}

void bucket_pictures_print(const struct bucket_pictures *pictures)
{
    if (pictures->count == 0)
        puts("no buckets");
    else
        printf("\n%s%-36s %10s %9s %8s %9s %9s %9s%s\n", output_style(STYLE_BOLD), "BUCKET", "QUOTA", "TOKENS", "NEXT",
               "REQUESTS", "ATTEMPTS", "WAITED", output_style(STYLE_PLAIN));
    for (size_t i = 0; i < pictures->count; i++)
        print_picture(&pictures->item[i], pictures->now_ns);
}
