/* SPDX-License-Identifier: MIT */
/*
 * The sentences.  They name a host, a method and a folded path, never a query, a header or a body.
 */
#include "shim/report.h"

#include "shim/hop.h"

#include "core/events.h"
#include "core/system/clock.h"
#include "core/system/log_sink.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REPORT_SPACING_NS NS_PER_SECOND
#define LONG_WAIT_NS NS_PER_SECOND

/* One a kind of line: when the last was written, and how many were left out since. */
struct pacer {
    _Atomic int64_t last_ns;
    _Atomic unsigned left_out;
};

static struct pacer wait_pacer, refusal_pacer, giveup_pacer, would_pacer, others_pacer, aged_pacer;

static bool may_say(struct pacer *pacer, int64_t now_ns, unsigned *left_out)
{
    int64_t last_ns = atomic_load_explicit(&pacer->last_ns, memory_order_relaxed);
    if ((last_ns && now_ns - last_ns < REPORT_SPACING_NS) ||
        !atomic_compare_exchange_strong(&pacer->last_ns, &last_ns, now_ns)) {
        atomic_fetch_add_explicit(&pacer->left_out, 1, memory_order_relaxed);
        return false;
    }
    *left_out = atomic_exchange_explicit(&pacer->left_out, 0, memory_order_relaxed);
    return true;
}

/* For people: whole seconds once it is ten or more. */
static int64_t rounded(int64_t wait_ns)
{
    int64_t unit_ns = wait_ns >= 10 * NS_PER_SECOND ? NS_PER_SECOND : 10 * NS_PER_MS;
    return wait_ns > 0 ? (wait_ns + unit_ns / 2) / unit_ns * unit_ns : 0;
}

#define ENDPOINT_SIZE 512
#define RATE_SIZE 80
#define BOUND_SIZE (BUCKET_NAME_SIZE + 96)

static void write_endpoint(const struct governed *governed, char *endpoint, size_t size)
{
    const struct target *target = hop_answering(governed);
    char authority[TARGET_AUTHORITY_SIZE];
    target_write_authority(target, authority);
    log_endpoint(governed->method, authority, target->path, endpoint, size);
}

static void say(const struct governed *governed, struct pacer *pacer, struct log_record *record, const char *why)
{
    char endpoint[ENDPOINT_SIZE];
    char message[256] = "";
    unsigned left_out = 0;
    int64_t now_ns = clock_now_ns();
    if (!log_sink_wants(record->level) || !may_say(pacer, now_ns, &left_out))
        return;
    write_endpoint(governed, endpoint, sizeof endpoint);
    record->endpoint = endpoint;
    record->wait_ns = rounded(record->wait_ns);
    if (left_out)
        snprintf(message, sizeof message, "%s%sand %u more", why ? why : "", why ? "; " : "", left_out);
    else if (why)
        snprintf(message, sizeof message, "%s", why);
    record->message = message[0] ? message : NULL;
    log_sink_write(record);
}

/* On record whether anything is printed or not. */
static void add_event(const struct governed *governed, enum event_kind kind, int status, enum cause cause,
                      int64_t wait_ns)
{
    struct timespec now;
    struct event event = {
        .kind = kind,
        .cause = cause,
        .status = status,
        .attempt = governed->request.attempts,
        .wait_ns = wait_ns > 0 ? wait_ns : 0,
        .pid = (int)getpid(),
    };
    clock_gettime(CLOCK_REALTIME, &now);
    event.time_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
    snprintf(event.program, sizeof event.program, "%s", governed->runtime->program);
    write_endpoint(governed, event.endpoint, sizeof event.endpoint);
    events_add(&governed->runtime->segment, &event);
}

/* ----------------------------------------------------------------- what is in force ---- */

struct writer {
    char *text;
    size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void add(struct writer *writer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(writer->text + writer->used, writer->size - writer->used, format, arguments);
    va_end(arguments);
    writer->used += length > 0 ? (size_t)length : 0;
    if (writer->used >= writer->size)
        writer->used = writer->size - 1;
}

/* "quota 5000/h", as it was published; else "rate 10/s". */
static void write_rate(const struct limit *limit, char *text, size_t size)
{
    char rate[64];
    double in_window = limit_rate_per_second(limit) * (double)limit->window_ns / (double)NS_PER_SECOND;
    uint64_t count = limit->published ? limit->published : (uint64_t)(in_window + 0.5);
    units_format_rate(rate, sizeof rate, (struct rate){count ? count : 1, limit->window_ns});
    snprintf(text, size, "%s %s", limit->published ? "quota" : "rate", rate);
}

static void add_values(struct writer *writer, const struct policy *policy)
{
    struct policy defaults;
    char value[256], usual[256];
    policy_defaults(&defaults);
    for (unsigned i = 0; i < POLICY_KEY_COUNT; i++) {
        const struct key *key = &policy_keys[i];
        keys_format_value(key, (const char *)policy + key->offset, value, sizeof value);
        keys_format_value(key, (const char *)&defaults + key->offset, usual, sizeof usual);
        if (strcmp(value, usual) != 0)
            add(writer, "%s %s=%s", writer->text[writer->used - 1] == ';' ? "" : ",", key->name, value);
    }
}

void report_policy(const struct governed *governed)
{
    char text[LOG_LINE_SIZE];
    char endpoint[ENDPOINT_SIZE];
    struct writer writer = {.text = text, .size = sizeof text};
    const struct resolved_policy *resolved = &governed->resolved;
    if (!log_sink_wants(LOG_DEBUG))
        return;
    add(&writer, "policy: sections");
    for (unsigned i = 0; i < resolved->section_count; i++)
        add(&writer, " [%s]", resolved->sections[i]->name);
    add(&writer, "; buckets");
    for (unsigned i = 0; i < resolved->bucket_count; i++)
        add(&writer, "%s %s", i ? "," : "", resolved->buckets[i].name);
    add(&writer, ";");
    add_values(&writer, &resolved->values);
    write_endpoint(governed, endpoint, sizeof endpoint);
    struct log_record record = {.level = LOG_DEBUG, .event = LOG_NOTICE, .endpoint = endpoint, .message = text};
    log_sink_write(&record);
}

static void write_limits(const struct limits *limits, char *text, size_t size)
{
    struct writer writer = {.text = text, .size = size};
    char rate[RATE_SIZE];
    snprintf(text, size, "%s", limits->count ? "" : "no limit");
    for (unsigned i = 0; i < limits->count; i++) {
        write_rate(&limits->item[i], rate, sizeof rate);
        add(&writer, "%s%s", i ? ", " : "", rate);
    }
}

void report_stricter_limit(struct governed *governed)
{
    const struct places *places = &governed->request.places;
    char in_force[256], asked[256], message[sizeof in_force + sizeof asked + 96];
    governed->told_of_others = true;
    for (unsigned i = 0; i < places->count && log_sink_wants(LOG_INFO); i++) {
        struct bucket_state state;
        bucket_read_state(places->bucket[i], clock_now_ns(), &state);
        write_limits(&state.limits, in_force, sizeof in_force);
        write_limits(places->limits[i], asked, sizeof asked);
        if (strcmp(in_force, asked) == 0)
            continue;
        snprintf(message, sizeof message, "another process or section asks for a stricter limit: %s holds, and not %s",
                 in_force, asked);
        struct log_record record = {.level = LOG_INFO, .event = LOG_NOTICE};
        say(governed, &others_pacer, &record, message);
        return;
    }
}

/* ------------------------------------------------------------------------- waiting ---- */

/* When the next request could go by one limit alone, in seconds from now. */
static double wait_by(const struct bucket_state *state, unsigned i)
{
    double rate = limit_rate_per_second(&state->limits.item[i]);
    return rate > 0 ? (1 - state->tokens[i]) / rate : 0;
}

/* The bucket that lets it go last, and the limit there that does. */
static void write_bound(const struct governed *governed, char bound[BOUND_SIZE])
{
    const struct places *places = &governed->request.places;
    struct bucket_state state = {0}, tightest = {0};
    unsigned limit = 0;
    char rate[RATE_SIZE];
    int64_t now_ns = clock_now_ns();
    bound[0] = '\0';
    for (unsigned i = 0; i < places->count; i++) {
        bucket_read_state(places->bucket[i], now_ns, &state);
        if (i == 0 || state.next_ns > tightest.next_ns)
            tightest = state;
    }
    if (tightest.block != BLOCK_NONE || tightest.limits.count == 0) {
        snprintf(bound, BOUND_SIZE, "%s", tightest.name);
        return;
    }
    for (unsigned i = 1; i < tightest.limits.count; i++)
        if (wait_by(&tightest, i) > wait_by(&tightest, limit))
            limit = i;
    write_rate(&tightest.limits.item[limit], rate, sizeof rate);
    snprintf(bound, BOUND_SIZE, "%s of %s", rate, tightest.name);
}

void report_wait(struct governed *governed, const struct governor_step *step)
{
    const struct governor_request *request = &governed->request;
    char bound[BOUND_SIZE];
    if (governed->reported_wait_ns == request->wait_began_ns || step->until_ns - request->wait_began_ns < LONG_WAIT_NS)
        return;
    governed->reported_wait_ns = request->wait_began_ns;
    if (!log_sink_wants(LOG_INFO))
        return;
    write_bound(governed, bound);
    struct log_record record = {
        .level = LOG_INFO,
        .event = LOG_WAITING,
        .cause = step->cause,
        .wait_ns = step->until_ns - request->wait_began_ns,
        .bound = bound,
    };
    say(governed, &wait_pacer, &record, NULL);
}

void report_would_wait(const struct governed *governed, const struct governor_step *step)
{
    char bound[BOUND_SIZE];
    add_event(governed, EVENT_WOULD_WAIT, 0, step->cause, step->would_wait_ns);
    if (!log_sink_wants(LOG_INFO))
        return;
    write_bound(governed, bound);
    struct log_record record = {
        .level = LOG_INFO,
        .event = LOG_WOULD_WAIT,
        .cause = step->cause,
        .wait_ns = step->would_wait_ns,
        .bound = bound,
    };
    say(governed, &would_pacer, &record, NULL);
}

/* ------------------------------------------------------------------------ outcomes ---- */

static bool is_give_up(const struct governor_step *step)
{
    enum cause cause = step->cause;
    return step->action == GOVERNOR_DELIVER &&
           (cause == CAUSE_MAX_ATTEMPTS || cause == CAUSE_TOTAL_BUDGET || cause == CAUSE_APP_TIMEOUT ||
            cause == CAUSE_RETRY_BUDGET || cause == CAUSE_MAX_WAIT);
}

static void add_outcome_events(const struct governed *governed, const struct governor_step *step, int64_t wait_ns)
{
    const struct governor_request *request = &governed->request;
    int status = governed->gate.status;
    if (request->was_refused)
        add_event(governed, EVENT_REFUSED, status, step->cause, wait_ns);
    if (request->stopped_ns)
        add_event(governed, EVENT_BLOCKED, status, request->was_refused ? CAUSE_BLOCK : CAUSE_QUOTA_FIELDS,
                  request->stopped_ns);
    if (step->action == GOVERNOR_DELIVER && step->would_wait_ns)
        add_event(governed, EVENT_WOULD_RETRY, status, step->cause, step->would_wait_ns);
    else if (is_give_up(step) || (step->action == GOVERNOR_DELIVER && step->cause == CAUSE_NOT_REPEATABLE))
        add_event(governed, EVENT_GAVE_UP, status, step->cause, 0);
}

/* Not by what the server has said: no response came, or it broke off. */
static bool has_failed(const struct governed *governed, const struct governor_step *step, CURLcode code)
{
    return code != CURLE_OK && (governed->gate.status == 0 || step->cause == CAUSE_CONNECTION);
}

static enum log_event event_of(const struct governed *governed, const struct governor_step *step, CURLcode code)
{
    if (step->action == GOVERNOR_DELIVER && step->would_wait_ns)
        return LOG_WOULD_RETRY;
    if (has_failed(governed, step, code))
        return LOG_NOTICE;
    return is_give_up(step) ? LOG_GAVE_UP : LOG_REFUSED;
}

/* The program gets what the server said, as it would without us: nobody is told unless asked. */
static bool is_nothing(const struct governor_step *step, int status)
{
    return step->action != GOVERNOR_RETRY && step->cause == CAUSE_NONE && status != 429;
}

/* A program that signs its requests itself has signed this one before it waited. */
static bool may_have_aged(const struct governor_request *request, int status)
{
    return (status == 401 || status == 403) && request->waited_ns >= LONG_WAIT_NS;
}

static __attribute__((noinline)) void tell_aged(const struct governed *governed)
{
    const struct governor_request *request = &governed->request;
    struct log_record record = {
        .level = LOG_INFO,
        .event = LOG_NOTICE,
        .status = governed->gate.status,
        .attempt = request->attempts,
        .wait_ns = request->waited_ns,
    };
    say(governed, &aged_pacer, &record,
        "sent after a wait, in which a signature or a date of the program's may have aged");
}

static __attribute__((noinline)) void tell_outcome(const struct governed *governed, const struct governor_step *step,
                                                   CURLcode code, bool is_plain)
{
    const struct governor_request *request = &governed->request;
    int status = governed->gate.status;
    int64_t wait_ns = step->action == GOVERNOR_RETRY ? request->not_before_ns - clock_now_ns() : step->would_wait_ns;
    add_outcome_events(governed, step, wait_ns);
    if (is_plain)
        return;
    char why[96];
    bool failed = has_failed(governed, step, code);
    if (failed)
        snprintf(why, sizeof why, "CURLcode %d%s%s", (int)code, request->why ? ", " : "",
                 request->why ? request->why : "");
    struct log_record record = {
        .level = is_nothing(step, status) ? LOG_DEBUG : LOG_INFO,
        .event = event_of(governed, step, code),
        .status = status,
        .attempt = request->attempts,
        .cause = step->cause,
        .wait_ns = wait_ns,
    };
    say(governed, is_give_up(step) ? &giveup_pacer : &refusal_pacer, &record,
        failed ? why : (step->action == GOVERNOR_RETRY || step->would_wait_ns ? NULL : request->why));
}

void report_outcome(const struct governed *governed, const struct governor_step *step, CURLcode code)
{
    const struct governor_request *request = &governed->request;
    int status = governed->gate.status;
    bool is_plain = is_nothing(step, status) && (status != 0 || code == CURLE_OK);
    if (!is_plain || request->was_refused || request->stopped_ns)
        tell_outcome(governed, step, code, is_plain);
    if (may_have_aged(request, status))
        tell_aged(governed);
}

/* A call that may fail. */
static bool is_best_effort(const struct governed *governed)
{
    return governed->resolved.values.profile == PROFILE_BEST_EFFORT;
}

/* A request that was not sent at all failed because of us: that is said, unless it may fail. */
void report_giving_up(const struct governed *governed, const struct governor_step *step)
{
    unsigned attempts = governed->request.attempts;
    int status = attempts ? governed->gate.status : 0;
    char bound[BOUND_SIZE];
    int64_t wait_ns = step->until_ns == TIME_NEVER ? 0 : step->until_ns - clock_now_ns();
    if (step->cause != CAUSE_MODE) /* which is an event of its own */
        add_event(governed, EVENT_GAVE_UP, status, step->cause, wait_ns);
    write_bound(governed, bound);
    struct log_record record = {
        .level = attempts || is_best_effort(governed) ? LOG_INFO : LOG_WARN,
        .event = LOG_GAVE_UP,
        .status = status,
        .attempt = attempts,
        .cause = step->cause,
        .wait_ns = wait_ns,
        .bound = attempts ? NULL : bound,
    };
    say(governed, &giveup_pacer, &record, attempts ? NULL : "not sent");
}

void report_refusal(const struct governed *governed, const struct governor_step *step, char *buffer, size_t size)
{
    const char *bound = step->cause == CAUSE_APP_TIMEOUT ? "its timeout"
                        : is_best_effort(governed)       ? "profile = best_effort"
                                                         : "max_wait";
    char wait[64];
    int64_t left_ns = step->until_ns - clock_now_ns();
    /* Rounded up to whole seconds: a promise that is kept. */
    units_format_duration(wait, sizeof wait,
                          left_ns > 0 ? (left_ns / NS_PER_SECOND + 1) * NS_PER_SECOND : NS_PER_SECOND);
    snprintf(buffer, size, "Curtsy: not sent: %s:%u may be asked again in %s, and %s does not allow that",
             governed->target.host, (unsigned)governed->target.port, wait, bound);
}
