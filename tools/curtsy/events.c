/* SPDX-License-Identifier: MIT */
/*
 * curtsy events: the ring of recent 429s, blocks, cuts, give-ups and operator's commands, a line each,
 * oldest first; with --follow it goes on as they come.  The ring holds the latest ones only: what was
 * overwritten before it was read is told as lost.
 */
#include "tools/curtsy/command.h"
#include "tools/curtsy/operate.h"
#include "tools/curtsy/output.h"

#include "core/events.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_EVERY_MS 200
#define PATIENCE 5 /* looks: an event that is not written by then never will be */

enum { OPTION_JSON = 256, OPTION_SEGMENT };

struct events_options {
    const char *segment;
    const char *host;
    struct host_word word;
    bool as_json;
    bool follows;
};

struct reader {
    const struct events_options *options;
    uint64_t next; /* the number that is read next */
    uint64_t lost;
    unsigned looks; /* in vain, for `next` */
    bool has_printed;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct events_options *options = state->input;

    switch (key) {
    case OPTION_SEGMENT:
        options->segment = argument;
        return 0;
    case OPTION_JSON:
        options->as_json = true;
        return 0;
    case 'f':
        options->follows = true;
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

/* ------------------------------------------------------------------- filtering ---- */

/* Endpoints name hosts without their ports, the operator's commands as they were typed. */
static bool word_is_host(const char *word, size_t length, const char *host)
{
    char text[EVENT_ENDPOINT_SIZE];
    struct host_word typed;

    snprintf(text, sizeof(text), "%.*s", (int)length, word);
    return strcmp(text, host) == 0 || (host_word_parse(text, &typed) && strcmp(typed.host, host) == 0);
}

/* The `index`-th word; its length is 0 where there is none. */
static const char *word_at(const char *text, unsigned index, size_t *length)
{
    for (; index > 0; index--) {
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
    *length = strcspn(text, " ");
    return text;
}

/* "mode off [HOST] [for TIME]", "hold HOST TIME", "release HOST", "refill [HOST]", "reload": what names no
 * host is said to all. */
static bool command_is_for(const char *command, const char *host)
{
    bool is_mode = strncmp(command, "mode ", 5) == 0;
    size_t length;
    const char *word = word_at(command, is_mode ? 2 : 1, &length);

    return length == 0 || (is_mode && length == 3 && memcmp(word, "for", 3) == 0) || word_is_host(word, length, host);
}

/* "GET host/path". */
static bool request_is_to(const char *endpoint, const char *host)
{
    size_t length;
    const char *word = word_at(endpoint, 1, &length);
    const char *slash = memchr(word, '/', length);

    return word_is_host(word, slash != NULL ? (size_t)(slash - word) : length, host);
}

static bool is_wanted(const struct events_options *options, const struct event *event)
{
    if (options->host == NULL)
        return true;
    return event->kind == EVENT_OPERATOR ? command_is_for(event->endpoint, options->word.host)
                                         : request_is_to(event->endpoint, options->word.host);
}

/* -------------------------------------------------------------------- printing ---- */

static void print_heading(void)
{
    printf("%s%-23s  %-11s %6s %8s %-15s %-8s %-44s %s%s\n", output_style(STYLE_BOLD), "TIME", "EVENT", "STATUS",
           "WAIT", "CAUSE", "ATTEMPT", "ENDPOINT", "PROGRAM", output_style(STYLE_PLAIN));
}

static void time_text(const struct event *event, bool in_utc, char *text, size_t size)
{
    time_t seconds = (time_t)(event->time_ms / 1000);
    struct tm broken;
    char format[32];

    /* The seconds' fraction is nothing that strftime knows. */
    snprintf(format, sizeof(format), in_utc ? "%%Y-%%m-%%dT%%H:%%M:%%S.%03dZ" : "%%Y-%%m-%%d %%H:%%M:%%S.%03d",
             (int)(event->time_ms % 1000));
    if ((in_utc ? gmtime_r(&seconds, &broken) : localtime_r(&seconds, &broken)) == NULL ||
        strftime(text, size, format, &broken) == 0)
        snprintf(text, size, "?");
}

static void print_text(const struct event *event)
{
    char time[64], status[16] = "-", wait[SHORT_TIME_SIZE] = "-", attempt[16] = "-";

    time_text(event, false, time, sizeof(time));
    if (event->status != 0)
        snprintf(status, sizeof(status), "%d", event->status);
    if (event->wait_ns != 0)
        short_time(wait, event->wait_ns);
    if (event->attempt != 0)
        snprintf(attempt, sizeof(attempt), "%u", event->attempt);
    printf("%-23s  %-11s %6s %8s %-15s %-8s %-44s %s[%d]\n", time, event_kind_name(event->kind), status, wait,
           event->cause != CAUSE_NONE ? cause_name(event->cause) : "-", attempt, event->endpoint, event->program,
           event->pid);
}

static json_t *integer_or_null(long number)
{
    return number != 0 ? json_integer(number) : json_null();
}

static void print_json(const struct event *event)
{
    char time[64];
    bool has_wait = event->wait_ns != 0 && event->wait_ns != TIME_NEVER;

    time_text(event, true, time, sizeof(time));
    json_t *object =
        json_pack("{s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i}", "number", (json_int_t)event->number, "time",
                  time, "event", event_kind_name(event->kind), "status", integer_or_null(event->status), "endpoint",
                  json_text(event->endpoint), "cause",
                  event->cause != CAUSE_NONE ? json_text(cause_name(event->cause)) : json_null(), "wait_s",
                  has_wait ? json_real((double)event->wait_ns / (double)NS_PER_SECOND) : json_null(), "attempt",
                  integer_or_null(event->attempt), "program", json_text(event->program), "pid", event->pid);
    json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
    putchar('\n');
    json_decref(object);
}

static void show(struct reader *reader, const struct event *event)
{
    if (!is_wanted(reader->options, event))
        return;
    if (!reader->options->as_json && !reader->has_printed)
        print_heading();
    reader->has_printed = true;
    if (reader->options->as_json)
        print_json(event);
    else
        print_text(event);
}

/* Scripts that read objects get nothing else. */
__attribute__((format(printf, 2, 3))) static void tell(const struct reader *reader, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (!reader->options->as_json)
        fflush(stdout);
    vfprintf(reader->options->as_json ? stderr : stdout, format, arguments);
    va_end(arguments);
}

static void tell_lost(struct reader *reader, uint64_t first_read)
{
    if (reader->lost == 0)
        return;
    tell(reader, "(%" PRIu64 " event%s before number %" PRIu64 " %s lost: overwritten, or never finished)\n",
         reader->lost, reader->lost == 1 ? "" : "s", first_read, reader->lost == 1 ? "is" : "are");
    reader->lost = 0;
}

/* --------------------------------------------------------------------- reading ---- */

/* Was it overwritten while it was waited for? */
static bool is_overwritten(const struct segment *segment, uint64_t number)
{
    uint64_t first;

    events_range(segment, &first);
    return first > number;
}

/* One that is not there may be in the making: a reader that goes on waits for it a moment. */
static bool waits_for(struct reader *reader, const struct segment *segment)
{
    if (!reader->options->follows || is_overwritten(segment, reader->next))
        return false;
    return reader->looks++ < PATIENCE;
}

static void read_new(struct reader *reader, const struct segment *segment)
{
    struct event event;
    uint64_t first, end = events_range(segment, &first);

    if (end < reader->next)
        reader->next = first; /* another segment in the same place */
    if (first > reader->next) {
        reader->lost += first - reader->next;
        reader->next = first;
    }
    for (; reader->next < end; reader->next++) {
        if (events_read(segment, reader->next, &event)) {
            tell_lost(reader, reader->next);
            show(reader, &event);
        } else if (waits_for(reader, segment)) {
            return;
        } else {
            reader->lost++;
        }
        reader->looks = 0;
    }
}

/* ------------------------------------------------------------------- following ---- */

enum pause { PAUSED, NOBODY_READS, CANNOT_WRITE };

/* Who reads no more has had enough: that is no fault. */
static enum pause after_failure(int error)
{
    __fpurge(stdout);
    clearerr(stdout);
    if (error == EPIPE)
        return NOBODY_READS;
    complain("standard output: %s", strerror(error));
    return CANNOT_WRITE;
}

/* Waits a moment for more. */
static enum pause pause_for_more(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};

    if (fflush(stdout) != 0)
        return after_failure(errno);
    if (poll(&out, 1, LOOK_EVERY_MS) > 0 && (out.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0)
        return NOBODY_READS;
    return PAUSED;
}

static void reopen(struct operation *operation, struct reader *reader)
{
    struct view *view = &operation->view;
    bool was_open = view->is_open;

    view_close(view);
    view_open(view, reader->options->segment, &operation->environment, operation->config);
    if (!view->is_open)
        return;
    reader->next = 0;
    if (was_open)
        tell(reader, "(the segment was replaced by another)\n");
    else if (!reader->options->as_json)
        view_print(view);
}

static int follow(struct operation *operation, struct reader *reader)
{
    struct view *view = &operation->view;
    enum pause pause;

    while ((pause = pause_for_more()) == PAUSED) {
        if (!view->is_open || mapping_look(&view->mapping, view->name) != MAPPING_IN_PLACE)
            reopen(operation, reader);
        if (view->is_open)
            read_new(reader, &view->segment);
    }
    return pause == NOBODY_READS ? STATUS_SUCCESS : STATUS_MISUSE;
}

/* ------------------------------------------------------------------ the command ---- */

static int show_all(const struct operation *operation, struct reader *reader)
{
    read_new(reader, &operation->view.segment);
    tell_lost(reader, reader->next);
    if (!reader->has_printed && !reader->options->as_json)
        puts("no events");
    return STATUS_SUCCESS;
}

/* Who follows may have come while the segment is being made, and it is not whole yet. */
static bool begin(struct operation *operation, const struct events_options *options)
{
    for (unsigned looks = 0;; looks++) {
        if (operation_begin(operation, options->segment, MAPPING_VIEW))
            return true;
        if (!options->follows || operation->view.is_missing || looks == PATIENCE)
            return options->follows && operation->view.is_missing;
        operation_end(operation);
        poll(NULL, 0, LOOK_EVERY_MS);
    }
}

static int run(const struct events_options *options)
{
    static struct operation operation;
    struct reader reader = {.options = options};
    int status = STATUS_NEGATIVE;

    if (!begin(&operation, options)) {
        operation_complain(&operation);
    } else {
        if (!options->as_json)
            view_print(&operation.view);
        status = options->follows ? follow(&operation, &reader) : show_all(&operation, &reader);
    }
    operation_end(&operation);
    return status;
}

int command_events(int argc, char **argv)
{
    static const struct argp_option option_list[] = {
        {"follow", 'f', NULL, 0, "go on with those that come", 0},
        {"json", OPTION_JSON, NULL, 0, "print a JSON object on each line", 0},
        {"segment", OPTION_SEGMENT, "NAME", 0, "look at this segment instead of one's own", 0},
        {0},
    };
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "[HOST]",
        .doc = "Shows what has happened lately: refusals, blocks, cuts, give-ups and the operator's commands, or those "
               "that concern HOST (at whatever port).\vThe segment keeps the latest ones only, 1,024 of them at its "
               "usual size.",
    };
    struct events_options options = {0};

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    if (options.host != NULL && !parse_host_word(options.host, &options.word))
        return STATUS_MISUSE;
    if (options.host != NULL && options.word.host[0] == '\0') {
        complain("%s: expected HOST", options.host);
        return STATUS_MISUSE;
    }
    return run(&options);
}
