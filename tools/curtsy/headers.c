/* SPDX-License-Identifier: MIT */
/*
 * curtsy headers: what Curtsy makes of a response, for whoever wonders why a program waits, or why it
 * does not.  The answer comes from the functions that decide in a running program: classify() and
 * servers_word_read().
 *
 * Two waits are told apart.  wait_s is what the server demands before the next request, uncapped, on
 * whatever status; block_s is how long Curtsy would hold up all requests to the host for it.  Where
 * they differ, a line says why.  Nothing of the response is repeated but the names of fields that
 * were understood, and numbers: another one may hold a cookie.
 */
#include "tools/curtsy/command.h"
#include "tools/curtsy/example.h"
#include "tools/curtsy/host_port.h"
#include "tools/curtsy/output.h"
#include "tools/curtsy/response.h"

#include "core/backoff.h"
#include "core/classify.h"
#include "core/field_value.h"
#include "core/servers_word.h"
#include "core/system/clock.h"
#include "core/system/config_files.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PORT_HTTPS 443
#define PROXY_AUTHENTICATION_REQUIRED 407
#define CLOCK_TOLERANCE_S 60 /* a response on its way, and clocks that are a little off */

enum { OPTION_JSON = 256, OPTION_HOST, OPTION_AT };

struct headers_options {
    const char *host;
    const char *at;
    bool as_json;
};

/* All that is known about the response. */
struct reading {
    const struct policy *policy;
    const struct response *response;
    int64_t now_s;
    struct classification class; /* of a GET; meaningless where the status is unknown */
    bool is_from_proxy;
    struct servers_word word; /* what is acted on */
    int64_t demand_ns;        /* what the server demands; QUOTA_UNKNOWN: nothing */
    const char *demand_field;
    int64_t block_ns; /* QUOTA_UNKNOWN: nobody is held up */
    json_t *why;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct headers_options *options = state->input;

    switch (key) {
    case OPTION_JSON:
        options->as_json = true;
        return 0;
    case OPTION_HOST:
        options->host = argument;
        return 0;
    case OPTION_AT:
        options->at = argument;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- what it means ---- */

/* Retry-After binds on every status from 300 up, and on a success if nothing is known to be left.
 * Without a status it is taken as said. */
static bool retry_after_binds(const struct reading *reading)
{
    int status = reading->response->status;

    return status == 0 || status >= 300 || reading->word.quota.remaining <= 0;
}

/* What the server demands, whether or not Curtsy acts on it: Retry-After, else a used-up window's
 * reset, else on a status that means "too many" a reset by itself.  A demand of 0 s is one only on a
 * refusal. */
static void find_demand(struct reading *reading)
{
    const struct retry_after *retry_after = &reading->word.retry_after;
    const struct quota_fields *quota = &reading->word.quota;
    int status = reading->response->status;
    bool is_refusal = status == 0 || status >= 300;
    bool means_too_many = status == 420 || status == 429 || status == 503;

    reading->demand_ns = QUOTA_UNKNOWN;
    if (retry_after->form == RETRY_AFTER_GIVEN && retry_after_binds(reading)) {
        reading->demand_ns = retry_after->wait_ns;
        reading->demand_field = retry_after->field;
    } else if (quota->reset_ns >= 0 && (quota->remaining == 0 || (means_too_many && quota->reset_ns > 0))) {
        if (is_refusal || quota->reset_ns > 0) {
            reading->demand_ns = quota->reset_ns;
            reading->demand_field = quota->reset_field;
        }
    } else if (retry_after->form == RETRY_AFTER_ZERO && is_refusal) {
        reading->demand_ns = 0;
        reading->demand_field = retry_after->field;
    }
}

static void find_word(struct reading *reading)
{
    /* Headers alone are taken as a refusal's. */
    int status = reading->response->status != 0 ? reading->response->status : 429;
    bool is_refusal = reading->response->status == 0 || reading->class.is_refusal;
    bool obeys = reading->policy->retry_after == RETRY_AFTER_OBEY;

    reading->word = servers_word_read(&reading->response->headers, status, is_refusal, obeys, reading->now_s);
    reading->block_ns = QUOTA_UNKNOWN;
    if (reading->word.cause == CAUSE_NONE || reading->is_from_proxy)
        return;
    reading->block_ns =
        reading->word.wait_ns < reading->policy->max_block ? reading->word.wait_ns : reading->policy->max_block;
}

static void read_response(struct reading *reading)
{
    static const struct request_traits get = {.method = "GET", .host_is_named = true};
    const struct response *response = reading->response;

    reading->is_from_proxy = response->status == PROXY_AUTHENTICATION_REQUIRED;
    const struct outcome outcome = {
        .status = response->status,
        .from_proxy = reading->is_from_proxy,
        .request_sent = true,
        .body_resendable = true,
        .headers = &response->headers,
    };
    reading->class = classify(reading->policy, &get, &outcome, 1);
    find_word(reading);
    find_demand(reading);
}

/* ---- why ---- */

__attribute__((format(printf, 2, 3))) static void because(struct reading *reading, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    json_array_append_new(reading->why, json_vsprintf(format, arguments));
    va_end(arguments);
}

static bool is_retryable(const struct reading *reading)
{
    return reading->response->status != 0 && reading->class.verdict == VERDICT_RETRYABLE;
}

static void explain_status(struct reading *reading)
{
    const struct policy *policy = reading->policy;
    int status = reading->response->status;

    if (status == 0)
        because(reading, "no status line: what it says about a wait is taken as said to a request that was refused");
    else if (status >= 400 && !is_retryable(reading))
        because(reading, "not tried again: %s", reading->class.why);
    else if (is_retryable(reading) && policy->max_attempts < 2)
        because(reading, "not tried again after all: max_attempts = %u", policy->max_attempts);
    if (policy->mode != MODE_ENFORCE)
        because(reading, "mode = %s: nothing is waited for or tried again",
                policy->mode == MODE_OBSERVE ? "observe" : "off");
}

/* Why Retry-After is not the word, where there is one. */
static void explain_retry_after(struct reading *reading)
{
    const struct retry_after *retry_after = &reading->word.retry_after;

    if (retry_after->form == RETRY_AFTER_UNUSABLE)
        because(reading, "%s cannot be read, and is taken as absent", retry_after->field);
    else if (retry_after->form == RETRY_AFTER_ZERO)
        because(reading, "a wait of 0 in %s is no word", retry_after->field);
    else if (retry_after->form == RETRY_AFTER_GIVEN && !retry_after_binds(reading))
        because(reading, "%s does not bind on a success that leaves something of the quota", retry_after->field);
    else if (retry_after->form == RETRY_AFTER_GIVEN && reading->policy->retry_after == RETRY_AFTER_IGNORE)
        because(reading, "retry_after = ignore: %s is not obeyed", retry_after->field);
}

/* Why the server's demand is not acted on. */
static void explain_demand(struct reading *reading)
{
    char longest[RATE_TEXT_SIZE];
    int status = reading->response->status;

    if (reading->is_from_proxy)
        because(reading, "a proxy's refusal is no word about the server");
    else if (reading->demand_ns > 0 && reading->word.cause == CAUSE_NONE && reading->word.quota.remaining != 0 &&
             reading->demand_field == reading->word.quota.reset_field)
        because(reading, "%s is no word by itself: nothing says that the quota is used up", reading->demand_field);
    else if (reading->demand_ns > 0 && reading->word.cause == CAUSE_NONE && status != 0 && !reading->class.is_refusal)
        because(reading, "the demanded wait is not acted on: %d is not taken as a refusal", status);
    if (is_retryable(reading) && reading->word.cause == CAUSE_NONE)
        because(reading, "without a word from the server, Curtsy waits for up to %s, drawn at random, more each time",
                duration_text(longest, backoff_ceiling_ns(reading->policy, 0, reading->class.is_throttle)));
}

static void explain_bounds(struct reading *reading)
{
    const struct policy *policy = reading->policy;
    char bound[RATE_TEXT_SIZE];

    if (reading->block_ns == QUOTA_UNKNOWN)
        return;
    if (reading->word.wait_ns > policy->max_block)
        because(reading, "longer than max_block: the server is believed for %s, then one request tries",
                duration_text(bound, policy->max_block));
    if (is_retryable(reading) && reading->word.wait_ns > policy->total_budget)
        because(reading, "longer than total_budget = %s: the program gets this response, and other requests wait",
                duration_text(bound, policy->total_budget));
}

/* Would there be a window if the response did not come from a cache? */
static bool is_hidden_by_age(const struct reading *reading)
{
    struct headers fresh = reading->response->headers;

    fresh.first[HEADER_AGE] = 0;
    return !reading->word.quota.present && quota_fields_read(&fresh, reading->now_s).present;
}

static void explain_quota(struct reading *reading)
{
    const struct quota_fields *quota = &reading->word.quota;

    if (is_hidden_by_age(reading))
        because(reading, "age is above 0: a cache has kept this response, and its quota is not believed");
    if (quota->remaining == 0 && quota->reset_ns == QUOTA_UNKNOWN && reading->demand_ns == QUOTA_UNKNOWN)
        because(reading, "%s is 0, and no field says until when", quota->remaining_field);
    else if (quota->remaining == 0 && quota->reset_ns == 0)
        because(reading, "%s is not after the response: no word", quota->reset_field);
}

static void explain_clock(struct reading *reading)
{
    int64_t response_s = response_time_s(&reading->response->headers, reading->now_s);
    int64_t before_s = reading->now_s - response_s;
    int64_t distance_s = before_s < 0 ? -before_s : before_s;
    char distance[SHORT_TIME_SIZE];

    if (distance_s < CLOCK_TOLERANCE_S || distance_s > TIME_NEVER / NS_PER_SECOND)
        return;
    if (reading->demand_ns != QUOTA_UNKNOWN || reading->word.quota.reset_ns != QUOTA_UNKNOWN)
        because(reading, "times are counted from the response's own date, %s %s its arrival",
                short_time(distance, distance_s * NS_PER_SECOND), before_s > 0 ? "before" : "after");
}

/* Fields of unknown names that were kept because they might matter. */
static void explain_rest(struct reading *reading)
{
    const struct headers *headers = &reading->response->headers;
    unsigned count = 0;

    for (const struct header_field *field = headers_first(headers, HEADER_OTHER); field != NULL;
         field = headers_next(headers, field))
        count++;
    if (count > 0 && !classify_server_forbids_retry(headers))
        because(reading, "%u other field%s might speak of limits, and %s not understood", count, count == 1 ? "" : "s",
                count == 1 ? "is" : "are");
    if (headers->dropped > 0)
        because(reading, "%u field%s did not fit, and %s passed over", headers->dropped,
                headers->dropped == 1 ? "" : "s", headers->dropped == 1 ? "was" : "were");
}

static void explain(struct reading *reading)
{
    explain_status(reading);
    explain_retry_after(reading);
    explain_quota(reading);
    explain_demand(reading);
    explain_bounds(reading);
    explain_clock(reading);
    explain_rest(reading);
}

/* ---- showing it ---- */

static json_t *count_json(int64_t count)
{
    return count != QUOTA_UNKNOWN ? json_integer(count) : json_null();
}

static json_t *seconds_json(int64_t ns)
{
    if (ns == QUOTA_UNKNOWN)
        return json_null();
    return ns % NS_PER_SECOND == 0 ? json_integer(ns / NS_PER_SECOND) : json_real((double)ns / (double)NS_PER_SECOND);
}

static json_t *name_json(const char *name)
{
    return name != NULL ? json_string(name) : json_null();
}

static void print_json(struct reading *reading)
{
    const struct quota_fields *quota = &reading->word.quota;
    int status = reading->response->status;
    json_t *object = json_object();

    json_object_set_new(object, "status", status != 0 ? json_integer(status) : json_null());
    json_object_set_new(object, "retryable", status != 0 ? json_boolean(is_retryable(reading)) : json_null());
    json_object_set_new(object, "wait_s", seconds_json(reading->demand_ns));
    json_object_set_new(object, "wait_field", name_json(reading->demand_field));
    json_object_set_new(object, "block_s", seconds_json(reading->block_ns));
    json_object_set_new(object, "limit", count_json(quota->limit));
    json_object_set_new(object, "limit_field", name_json(quota->limit_field));
    json_object_set_new(object, "remaining", count_json(quota->remaining));
    json_object_set_new(object, "remaining_field", name_json(quota->remaining_field));
    json_object_set_new(object, "reset_s", seconds_json(quota->reset_ns));
    json_object_set_new(object, "reset_field", name_json(quota->reset_field));
    json_object_set_new(object, "window_s", seconds_json(quota->window_ns));
    json_object_set_new(object, "window_field", name_json(quota->window_field));
    json_object_set(object, "why", reading->why);
    output_json(object);
}

static void print_row(const char *label, const char *value, const char *field)
{
    if (field != NULL)
        printf("%-10s %-20s %s\n", label, value, field);
    else
        printf("%-10s %s\n", label, value);
}

static void print_count(const char *label, int64_t count, const char *field)
{
    char value[32];

    snprintf(value, sizeof(value), "%lld", (long long)count);
    print_row(label, count != QUOTA_UNKNOWN ? value : "unknown", field);
}

static void print_time(const char *label, int64_t ns, const char *otherwise, const char *field)
{
    char value[SHORT_TIME_SIZE];

    print_row(label, ns != QUOTA_UNKNOWN ? short_time(value, ns) : otherwise, field);
}

static void print_text(const struct reading *reading)
{
    const struct quota_fields *quota = &reading->word.quota;
    int status = reading->response->status;

    print_count("status", status != 0 ? status : QUOTA_UNKNOWN, NULL);
    print_row("retryable", status == 0 ? "unknown" : is_retryable(reading) ? "yes" : "no", NULL);
    print_time("wait", reading->demand_ns, "none", reading->demand_field);
    print_time("block", reading->block_ns, "none", NULL);
    print_count("limit", quota->limit, quota->limit_field);
    print_count("remaining", quota->remaining, quota->remaining_field);
    print_time("reset", quota->reset_ns, "unknown", quota->reset_field);
    print_time("window", quota->window_ns, "unknown", quota->window_field);
    if (json_array_size(reading->why) > 0)
        putchar('\n');
    for (size_t i = 0; i < json_array_size(reading->why); i++)
        printf("%s\n", json_string_value(json_array_get(reading->why, i)));
}

static void show(struct reading *reading, bool as_json)
{
    reading->why = json_array();
    read_response(reading);
    explain(reading);
    if (as_json)
        print_json(reading);
    else
        print_text(reading);
    json_decref(reading->why);
}

/* ---- the command ---- */

/* Seconds since 1970; false if it is anything else. */
static bool parse_at(const char *text, int64_t *now_s)
{
    return text[0] != '\0' && strspn(text, "0123456789") == strlen(text) &&
           field_parse_count(text, strlen(text), now_s);
}

/* Of several sources of the mode the least intrusive wins. */
static void apply_environment(struct policy *policy, const struct environment *environment)
{
    enum mode mode;

    if (environment->mode != NULL &&
        keys_parse_value(&policy_keys[POLICY_KEY_mode], environment->mode, &mode) == NULL && mode < policy->mode)
        policy->mode = mode;
}

/* What is in force for `host`, or NULL: for hosts that no section names.  It lives as long as the
 * configuration that is returned; NULL when out of memory. */
static struct config *load_policy(const char *host, uint16_t port, struct resolved_policy *resolved)
{
    const struct policy_target target = {host != NULL ? host : EXAMPLE_HOST, port, "/", "GET", "", false};
    struct fault_counter faults = {.errors_only = true};
    struct environment environment;

    environment_read(&environment);
    struct config *config = config_files_load(&environment, NULL, fault_print, &faults);
    if (config == NULL)
        return NULL;
    policy_resolve(config, &target, resolved);
    apply_environment(&resolved->values, &environment);
    return config;
}

/* A program that writes a body behind its header must not fail because nobody reads it. */
static void read_to_end(FILE *stream)
{
    char buffer[4096];

    fflush(stdout);
    while (!feof(stream) && !ferror(stream))
        fread(buffer, 1, sizeof(buffer), stream);
}

static int read_and_show(struct reading *reading, bool as_json)
{
    static struct response response;
    bool is_response;

    errno = 0;
    is_response = response_read(stdin, &response);
    if (ferror(stdin)) {
        complain("standard input: %s", strerror(errno));
        return STATUS_MISUSE;
    }
    if (is_response) {
        reading->response = &response;
        show(reading, as_json);
    } else {
        complain("no response header on standard input; it takes what curl -sI URL prints");
    }
    read_to_end(stdin);
    return is_response ? STATUS_SUCCESS : STATUS_NEGATIVE;
}

int command_headers(int argc, char **argv)
{
    static const struct argp_option option_list[] = {
        {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
        {"host", OPTION_HOST, "HOST[:PORT]", 0, "by the policy of this host, instead of the default", 0},
        {"at", OPTION_AT, "EPOCH", 0, "when the response arrived, in seconds since 1970, instead of now", 0},
        {0},
    };
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "< HEADERS",
        .doc = "Reads a response header, such as curl -sI URL prints it, from standard input, and shows what Curtsy "
               "makes of it.\vThe exit status is 1 if there is no header.",
    };
    static struct resolved_policy resolved;
    struct headers_options options = {0};
    struct reading reading = {.policy = &resolved.values};
    char host[HOST_SIZE];
    uint16_t port = PORT_HTTPS;

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    if (options.host != NULL && !host_port_parse(options.host, host, &port)) {
        complain("%s: expected HOST or HOST:PORT", options.host);
        return STATUS_MISUSE;
    }
    reading.now_s = clock_wall_s();
    if (options.at != NULL && !parse_at(options.at, &reading.now_s)) {
        complain("--at %s: expected seconds since 1970", options.at);
        return STATUS_MISUSE;
    }
    struct config *config = load_policy(options.host != NULL ? host : NULL, port, &resolved);
    if (config == NULL) {
        complain("out of memory");
        return STATUS_NEGATIVE;
    }
    int status = read_and_show(&reading, options.as_json);
    config_free(config);
    return status;
}
