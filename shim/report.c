/* SPDX-License-Identifier: MIT */
/*
 * The sentences.  They name a host, a method and a folded path, never a query, a header or a body.
 */
#include "shim/report.h"

#include "core/system/clock.h"
#include "core/system/log_sink.h"

#include <stdio.h>
#include <string.h>

#define REPORT_SPACING_NS NS_PER_SECOND
#define LONG_WAIT_NS NS_PER_SECOND

/* One a kind of line: when the last was written, and how many were left out since. */
struct pacer {
    _Atomic int64_t last_ns;
    _Atomic unsigned left_out;
};

static struct pacer wait_pacer, refusal_pacer, giveup_pacer;

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

static void say(const struct governed *governed, struct pacer *pacer, struct log_record *record, const char *why)
{
    char endpoint[512];
    char message[256] = "";
    unsigned left_out = 0;
    int64_t now_ns = clock_now_ns();
    if (!log_sink_wants(record->level) || !may_say(pacer, now_ns, &left_out))
        return;
    log_endpoint(governed->method, governed->target.host, governed->target.path, endpoint, sizeof endpoint);
    record->endpoint = endpoint;
    record->wait_ns = rounded(record->wait_ns);
    if (left_out)
        snprintf(message, sizeof message, "%s%sand %u more", why ? why : "", why ? "; " : "", left_out);
    else if (why)
        snprintf(message, sizeof message, "%s", why);
    record->message = message[0] ? message : NULL;
    log_sink_write(record);
}

void report_wait(struct governed *governed, const struct governor_step *step)
{
    const struct governor_request *request = &governed->request;
    if (governed->reported_wait_ns == request->wait_began_ns || step->until_ns - request->wait_began_ns < LONG_WAIT_NS)
        return;
    governed->reported_wait_ns = request->wait_began_ns;
    struct log_record record = {
        .level = LOG_INFO,
        .event = LOG_WAITING,
        .cause = step->cause,
        .wait_ns = step->until_ns - request->wait_began_ns,
    };
    say(governed, &wait_pacer, &record, NULL);
}

static bool is_give_up(enum cause cause)
{
    return cause == CAUSE_MAX_ATTEMPTS || cause == CAUSE_TOTAL_BUDGET || cause == CAUSE_APP_TIMEOUT ||
           cause == CAUSE_RETRY_BUDGET || cause == CAUSE_MAX_WAIT;
}

/* The program gets what the server said, as it would without us: nobody is told unless asked. */
void report_outcome(const struct governed *governed, const struct governor_step *step, CURLcode code)
{
    const struct governor_request *request = &governed->request;
    int status = governed->gate.status;
    bool gave_up = step->action == GOVERNOR_DELIVER && is_give_up(step->cause);
    bool is_failure = status == 0 && code != CURLE_OK;
    bool is_nothing = step->action != GOVERNOR_RETRY && step->cause == CAUSE_NONE && status != 429;
    if (is_nothing && !is_failure)
        return;
    char why[96];
    if (status == 0)
        snprintf(why, sizeof why, "CURLcode %d%s%s", (int)code, request->why ? ", " : "",
                 request->why ? request->why : "");
    struct log_record record = {
        .level = is_nothing ? LOG_DEBUG : LOG_INFO,
        .event = is_failure ? LOG_NOTICE
                 : gave_up  ? LOG_GAVE_UP
                            : LOG_REFUSED,
        .status = status,
        .attempt = request->attempts,
        .cause = step->cause,
        .wait_ns = step->action == GOVERNOR_RETRY ? request->not_before_ns - clock_now_ns() : 0,
    };
    say(governed, gave_up ? &giveup_pacer : &refusal_pacer, &record,
        status == 0 ? why : (step->action == GOVERNOR_RETRY ? NULL : request->why));
}

/* A request that was not sent at all failed because of us: that is said. */
void report_giving_up(const struct governed *governed, const struct governor_step *step)
{
    unsigned attempts = governed->request.attempts;
    struct log_record record = {
        .level = attempts ? LOG_INFO : LOG_WARN,
        .event = LOG_GAVE_UP,
        .status = attempts ? governed->gate.status : 0,
        .attempt = attempts,
        .cause = step->cause,
        .wait_ns = step->until_ns == TIME_NEVER ? 0 : step->until_ns - clock_now_ns(),
    };
    say(governed, &giveup_pacer, &record, attempts ? NULL : "not sent");
}

void report_refusal(const struct governed *governed, const struct governor_step *step, char *buffer, size_t size)
{
    const char *bound = step->cause == CAUSE_APP_TIMEOUT ? "its timeout" : "max_wait";
    char wait[64];
    int64_t left_ns = step->until_ns - clock_now_ns();
    /* Rounded up to whole seconds: a promise that is kept. */
    units_format_duration(wait, sizeof wait,
                          left_ns > 0 ? (left_ns / NS_PER_SECOND + 1) * NS_PER_SECOND : NS_PER_SECOND);
    snprintf(buffer, size, "Curtsy: not sent: %s:%u may be asked again in %s, and %s does not allow that",
             governed->target.host, (unsigned)governed->target.port, wait, bound);
}
