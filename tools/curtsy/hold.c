/* SPDX-License-Identifier: MIT */
/*
 * curtsy hold, release and refill: the operator's word on budgets.  A hold stops a host as a server's
 * refusal would; a release lifts whatever stops it, the server's word included; a refill makes its
 * buckets full again.  Those that wait already obey too, in their order.
 */
#include "tools/curtsy/command.h"
#include "tools/curtsy/operate.h"
#include "tools/curtsy/output.h"

#include "core/system/clock.h"
#include "core/system/process.h"
#include "core/waiters.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>

enum { OPTION_SEGMENT = 256 };

struct hold_options {
    const char *segment;
    const char *host;
    const char *time;
    unsigned arguments_max; /* 1: HOST, 2: HOST TIME */
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct hold_options *options = state->input;

    switch (key) {
    case OPTION_SEGMENT:
        options->segment = argument;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num >= options->arguments_max)
            return ARGP_ERR_UNKNOWN;
        *(state->arg_num == 0 ? &options->host : &options->time) = argument;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option option_list[] = {
    {"segment", OPTION_SEGMENT, "NAME", 0, "another segment than one's own", 0},
    {0},
};

/* What one of the commands does to a bucket, and tells of it; false with a complaint. */
typedef bool bucket_action(const struct operation *operation, struct bucket *bucket, const struct bucket_state *before,
                           int64_t time_ns);

static bool busy(const struct bucket_state *state)
{
    complain("%s: others are changing it all the time; try again", state->name);
    return false;
}

static int act(const struct hold_options *options, enum mapping_access access, bucket_action *action, int64_t time_ns,
               const char *command)
{
    static struct operation operation;
    struct host_word word = {.port = 0};
    struct host_buckets buckets = {NULL, 0};
    struct bucket_state before;
    bool is_done = false;

    if (options->host != NULL && !parse_host_word(options->host, &word))
        return STATUS_MISUSE;
    if (!operation_begin(&operation, options->segment, access)) {
        operation_complain(&operation);
    } else if (operation_find(&operation, options->host, &word, access == MAPPING_CREATE, &buckets)) {
        is_done = true;
        view_print(&operation.view);
        for (size_t i = 0; i < buckets.count; i++) {
            bucket_read_state(buckets.item[i], operation.now_ns, &before);
            is_done = action(&operation, buckets.item[i], &before, time_ns) && is_done;
        }
        operation_note(&operation, "%s%s%s%s%s", command, options->host != NULL ? " " : "",
                       options->host != NULL ? options->host : "", options->time != NULL ? " " : "",
                       options->time != NULL ? options->time : "");
    }
    host_buckets_free(&buckets);
    operation_end(&operation);
    return is_done ? STATUS_SUCCESS : STATUS_NEGATIVE;
}

/* Who stops a bucket, as its state says. */
static const char *who_stops(enum block_kind kind)
{
    switch (kind) {
    case BLOCK_HOLD:
        return "the operator";
    case BLOCK_SOFT:
        return "its quota fields";
    default:
        return "the server's word";
    }
}

/* ------------------------------------------------------------------------ hold ---- */

/* Of two words the longer holds, and it may be an earlier one. */
static bool hold(const struct operation *operation, struct bucket *bucket, const struct bucket_state *before,
                 int64_t time_ns)
{
    int64_t until_ns = operation->now_ns + time_ns, now_ns = operation->now_ns;
    char clock[CLOCK_TEXT_SIZE], left[RATE_TEXT_SIZE], other[CLOCK_TEXT_SIZE];
    struct bucket_state state;

    if (!bucket_block(bucket, &operation->world, now_ns, until_ns, BLOCK_HOLD))
        return busy(before);
    bucket_read_state(bucket, now_ns, &state);
    printf("%s: held until %s (%s)", state.name, clock_text(clock, until_ns, now_ns), duration_text(left, time_ns));
    if (state.blocked_until_ns > until_ns)
        printf("; blocked until %s already, by %s", clock_text(other, state.blocked_until_ns, now_ns),
               who_stops(before->block));
    putchar('\n');
    return true;
}

int command_hold(int argc, char **argv)
{
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "HOST TIME",
        .doc = "Holds all requests to HOST for TIME, such as 10min; those that wait already wait on.\vHOST is "
               "api.github.com for every port of it, or host:8443, or a bucket's name as curtsy status shows it.  Of "
               "two holds the longer one counts; curtsy release lifts them.  A hold does not count against max_wait: "
               "requests wait for its end, unless their program's own timeout is over before.",
    };
    struct hold_options options = {.arguments_max = 2};
    int64_t time_ns = 0;

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    if (options.time == NULL) {
        complain("hold which host, and for how long?  See --help");
        return STATUS_MISUSE;
    }
    if (!parse_time(options.time, &time_ns))
        return STATUS_MISUSE;
    return act(&options, MAPPING_CREATE, hold, time_ns, "hold");
}

/* --------------------------------------------------------------------- release ---- */

static bool release(const struct operation *operation, struct bucket *bucket, const struct bucket_state *before,
                    int64_t unused)
{
    char clock[CLOCK_TEXT_SIZE];

    (void)unused;
    if (!bucket_release(bucket, &operation->world, operation->now_ns))
        return busy(before);
    if (before->blocked_until_ns == 0)
        printf("%s: was not blocked\n", before->name);
    else
        printf("%s: released; was blocked until %s, by %s\n", before->name,
               clock_text(clock, before->blocked_until_ns, operation->now_ns), who_stops(before->block));
    return true;
}

int command_release(int argc, char **argv)
{
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "HOST",
        .doc = "Lifts what stops requests to HOST: the operator's hold, and the server's word as well.  Those that "
               "wait go in their order, at the pace of the quota.",
    };
    struct hold_options options = {.arguments_max = 1};

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    if (options.host == NULL) {
        complain("release which host?  See --help");
        return STATUS_MISUSE;
    }
    return act(&options, MAPPING_OPERATE, release, 0, "release");
}

/* ---------------------------------------------------------------------- refill ---- */

/* Does anybody wait for a place in it?  Of waiters the host's bucket is known; a path's belongs to it. */
static bool has_waiters(const struct operation *operation, const char *name)
{
    struct waiter waiter;
    unsigned cursor = 0;

    while (waiters_next(&operation->view.segment, &cursor, &waiter)) {
        size_t length = strlen(waiter.bucket);
        bool is_meant = strncmp(name, waiter.bucket, length) == 0 && (name[length] == '\0' || name[length] == '/');
        if (is_meant && !process_is_dead(waiter.owner))
            return true;
    }
    return false;
}

static bool is_full(const struct bucket_state *state)
{
    for (unsigned i = 0; i < state->limits.count; i++)
        if (state->tokens[i] * (double)TOKEN_ONE < (double)state->limits.item[i].burst)
            return false;
    return true;
}

/* What is owed for those who have gone away is nobody's: without waiters a bucket is full afterwards. */
#define REFILLS_MAX 100000
static bool refill_whole(const struct operation *operation, struct bucket *bucket, const char *name)
{
    struct bucket_state state;

    for (unsigned i = 0; i < REFILLS_MAX; i++) {
        if (!bucket_refill(bucket, &operation->world, operation->now_ns))
            return false;
        bucket_read_state(bucket, clock_now_ns(), &state);
        if (is_full(&state) || has_waiters(operation, name))
            return true;
    }
    return true;
}

static bool refill(const struct operation *operation, struct bucket *bucket, const struct bucket_state *before,
                   int64_t unused)
{
    struct bucket_state state;
    char clock[CLOCK_TEXT_SIZE];
    int64_t now_ns;

    (void)unused;
    if (!refill_whole(operation, bucket, before->name))
        return busy(before);
    now_ns = clock_now_ns(); /* the new record begins after the operation */
    bucket_read_state(bucket, now_ns, &state);
    if (state.limits.count == 0)
        printf("%s: has no limits", state.name);
    else
        printf("%s: refilled", state.name);
    for (unsigned i = 0; i < state.limits.count; i++)
        printf("%s %.1f of %.6g tokens", i == 0 ? "," : " and", state.tokens[i],
               (double)state.limits.item[i].burst / (double)TOKEN_ONE);
    if (state.blocked_until_ns != 0)
        printf("; still blocked until %s, by %s", clock_text(clock, state.blocked_until_ns, now_ns),
               who_stops(state.block));
    putchar('\n');
    return true;
}

int command_refill(int argc, char **argv)
{
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "[HOST]",
        .doc = "Makes every bucket full again, or those of HOST, as when a server has reset its count.  Out of a "
               "queue a bucket's worth goes, those that have waited longest.  A block stays in force.",
    };
    struct hold_options options = {.arguments_max = 1};

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    return act(&options, MAPPING_OPERATE, refill, 0, "refill");
}
