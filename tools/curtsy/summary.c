/* SPDX-License-Identifier: MIT */
/*
 * curtsy summary: the configuration summary for the next engineer: for [default] and each section,
 * or for one host, what is retried and how, the budgets, the rate and burst beside the published
 * quota, who shares them, and what is counted; each value with the line that it was set on.
 */
#include "tools/curtsy/command.h"
#include "tools/curtsy/counters.h"
#include "tools/curtsy/example.h"
#include "tools/curtsy/input.h"
#include "tools/curtsy/output.h"
#include "tools/curtsy/view.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_HTTPS 443

enum { OPTION_JSON = 256 };

struct summary_options {
    const char *config;
    const char *host;
    bool as_json;
};

/* What is summarised: the effective policy for something, with what the environment adds to it. */
struct summary {
    const char *title;   /* "[api.github.com]", "api.github.com:443" */
    const char *subject; /* for whom, in words */
    bool is_any_host;    /* there is no one bucket to name */
    struct resolved_policy resolved;
    struct limits limits;
    struct origin mode_origin;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct summary_options *options = state->input;

    switch (key) {
    case 'c':
        options->config = argument;
        return 0;
    case OPTION_JSON:
        options->as_json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->host != NULL)
            return ARGP_ERR_UNKNOWN;
        if (strchr(argument, '/') != NULL)
            argp_error(state, "%s: expected HOST or HOST:PORT, without scheme and path", argument);
        options->host = argument;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* "api.github.com", "host:8443", "[::1]:8443", "::1". */
static bool parse_host(const char *text, char *host, size_t size, uint16_t *port)
{
    const char *bracket = strrchr(text, ']');
    const char *colon = strrchr(text, ':');
    char *end;

    if (colon != NULL && (bracket != NULL ? colon < bracket : strchr(text, ':') != colon))
        colon = NULL;
    *port = PORT_HTTPS;
    if (colon != NULL) {
        unsigned long number = strtoul(colon + 1, &end, 10);
        if (colon[1] < '0' || colon[1] > '9' || *end != '\0' || number == 0 || number > UINT16_MAX)
            return false;
        *port = (uint16_t)number;
    }
    return policy_normalise_host(text, colon != NULL ? (size_t)(colon - text) : strlen(text), host, size);
}

/* Of several sources of the mode the least intrusive wins. */
static void apply_environment(struct summary *summary, const struct environment *environment)
{
    struct policy *values = &summary->resolved.values;
    enum mode mode;

    summary->mode_origin = summary->resolved.origins[POLICY_KEY_mode];
    if (environment->mode != NULL &&
        keys_parse_value(&policy_keys[POLICY_KEY_mode], environment->mode, &mode) == NULL && mode < values->mode) {
        values->mode = mode;
        summary->mode_origin = (struct origin){"CURTSY_MODE", 0};
    }
    limits_from_policy(values, &summary->limits, NULL);
}

static const void *value_of(const struct summary *summary, enum policy_key key)
{
    return (const char *)&summary->resolved.values + policy_keys[key].offset;
}

static void value_text(const struct summary *summary, enum policy_key key, char *buffer, size_t size)
{
    keys_format_value(&policy_keys[key], value_of(summary, key), buffer, size);
}

static void print_row(const char *label, const char *value, const char *origin)
{
    if (origin[0] != '\0')
        printf("    %-18s %-46s %s\n", label, value, origin);
    else
        printf("    %-18s %s\n", label, value);
}

static void print_key(const struct summary *summary, const char *label, enum policy_key key)
{
    char value[256], origin[PATH_MAX];

    value_text(summary, key, value, sizeof(value));
    origin_text(key == POLICY_KEY_mode ? summary->mode_origin : summary->resolved.origins[key], origin, sizeof(origin));
    print_row(label, value, origin);
}

static void print_jitter(const struct summary *summary)
{
    char base[64], cap[64], value[256];

    value_text(summary, POLICY_KEY_base_delay, base, sizeof(base));
    value_text(summary, POLICY_KEY_max_delay, cap, sizeof(cap));
    snprintf(value, sizeof(value), "full: uniform(0, min(%s, %s x 2^n))", cap, base);
    print_row("jitter", value, "base doubled for a 429 without a word");
}

/* The published quota, and beside it what it comes to. */
static void print_limits(const struct summary *summary)
{
    const struct policy *values = &summary->resolved.values;
    char value[512], text[RATE_TEXT_SIZE], spacing[SHORT_TIME_SIZE], note[64];

    print_key(summary, "published quota", POLICY_KEY_quota);
    if (values->rate.count > 0)
        print_key(summary, "rate", POLICY_KEY_rate);
    else if (values->quota.count > 0)
        print_key(summary, "headroom", POLICY_KEY_headroom);
    if (summary->limits.count == 0)
        print_row("token rate", "unlimited", "no quota, no rate");
    for (unsigned i = 0; i < summary->limits.count; i++) {
        const struct limit *limit = &summary->limits.item[i];
        snprintf(value, sizeof(value), "%s (%.4g/s, one every %s)", rate_text(text, limit),
                 limit_rate_per_second(limit), short_time(spacing, limit_spacing_ns(limit)));
        print_row("token rate", value, limit->published != 0 ? "quota less headroom" : "rate");
        snprintf(value, sizeof(value), "%.6g", (double)limit->burst / (double)TOKEN_ONE);
        origin_text(summary->resolved.origins[POLICY_KEY_burst], note, sizeof(note));
        print_row("burst", value, values->burst == COUNT_AUTO ? "auto: from headroom and network_jitter" : note);
    }
}

static void print_waiting(const struct summary *summary)
{
    const struct policy *values = &summary->resolved.values;
    char value[256], wait[RATE_TEXT_SIZE], origin[PATH_MAX];

    duration_text(wait, limits_max_wait_ns(values, &summary->limits));
    snprintf(value, sizeof(value), "%s, then %s", wait, values->on_max_wait == ON_MAX_WAIT_SEND ? "send" : "fail");
    print_row("max wait", value, origin_text(summary->resolved.origins[POLICY_KEY_max_wait], origin, sizeof(origin)));
}

static void print_buckets(const struct summary *summary, const struct view *view)
{
    char value[BUCKET_NAME_SIZE + PATH_MAX];

    if (summary->is_any_host)
        print_row("bucket", "one for each host and port", "");
    for (unsigned i = 0; i < summary->resolved.bucket_count && !summary->is_any_host; i++)
        print_row(i == 0 ? "bucket" : "and", summary->resolved.buckets[i].name, "");
    snprintf(value, sizeof(value), "machine: %s", view->scope);
    print_row("shared by", value, "");
}

static void print_summary(const struct summary *summary, const struct view *view)
{
    printf("\n%s%s%s%s%s\n", output_style(STYLE_BOLD), summary->title, output_style(STYLE_PLAIN),
           summary->subject[0] != '\0' ? "  " : "", summary->subject);
    print_key(summary, "mode", POLICY_KEY_mode);
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
    print_limits(summary);
    print_waiting(summary);
    print_buckets(summary, view);
}

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
    json_t *array = json_array();

    for (unsigned i = 0; i < limits->count; i++) {
        const struct limit *limit = &limits->item[i];
        json_array_append_new(
            array, json_pack("{s:f, s:f, s:o, s:f, s:I}", "rate_per_s", limit_rate_per_second(limit), "burst",
                             (double)limit->burst / (double)TOKEN_ONE, "quota",
                             limit->published != 0 ? json_integer((json_int_t)limit->published) : json_null(),
                             "window_s", seconds(limit->window_ns), "most_in_window",
                             (json_int_t)limit_most_in_window(limit, limit->window_ns + limit->jitter_ns)));
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
    char value[512], origin[PATH_MAX];

    for (unsigned key = 0; key < POLICY_KEY_COUNT; key++) {
        value_text(summary, (enum policy_key)key, value, sizeof(value));
        origin_text(key == POLICY_KEY_mode ? summary->mode_origin : summary->resolved.origins[key], origin,
                    sizeof(origin));
        json_object_set_new(object, policy_keys[key].name,
                            json_pack("{s:o, s:o}", "value", json_text(value), "origin", json_text(origin)));
    }
    return object;
}

static json_t *summary_json(const struct summary *summary)
{
    const struct policy *values = &summary->resolved.values;
    json_t *buckets = json_array();
    json_t *object = json_pack(
        "{s:o, s:o, s:o, s:f, s:f, s:s, s:I, s:f, s:o, s:o, s:o, s:f, s:s, s:o}", "name", json_text(summary->title),
        "speaks_for", json_text(summary->subject), "retry_status", statuses_json(&values->retry_status), "base_delay_s",
        seconds(values->base_delay), "max_delay_s", seconds(values->max_delay), "jitter", "full", "max_attempts",
        (json_int_t)values->max_attempts, "total_budget_s", seconds(values->total_budget), "quota",
        rates_json(&values->quota), "rate", rates_json(&values->rate), "limits", limits_json(&summary->limits),
        "max_wait_s", seconds(limits_max_wait_ns(values, &summary->limits)), "shared_by", "machine", "keys",
        keys_json(summary));

    for (unsigned i = 0; i < summary->resolved.bucket_count && !summary->is_any_host; i++)
        json_array_append_new(buckets, json_text(summary->resolved.buckets[i].name));
    json_object_set_new(object, "buckets", buckets);
    return object;
}

/* Called with each summary that was asked for. */
struct printer {
    const struct environment *environment;
    const struct view *view;
    json_t *summaries; /* NULL: print as text */
};

static void show(struct printer *printer, struct summary *summary)
{
    apply_environment(summary, printer->environment);
    if (printer->summaries != NULL)
        json_array_append_new(printer->summaries, summary_json(summary));
    else
        print_summary(summary, printer->view);
}

static void show_section(struct printer *printer, const struct config *config, const struct section *section)
{
    struct summary summary = {.subject = section->pattern_count == 0 ? "every host that no other section names" : ""};
    char title[512], origin[PATH_MAX];

    snprintf(title, sizeof(title), "[%s]", section->name);
    summary.title = title;
    summary.is_any_host =
        section->pattern_count == 0 || (section->patterns[0].host[0] == '*' && !section->groups_hosts);
    if (section->pattern_count > 0 && section->origin.file != NULL)
        summary.subject = origin_text(section->origin, origin, sizeof(origin));
    example_resolve(config, section, &summary.resolved);
    show(printer, &summary);
}

static void show_host(struct printer *printer, const struct config *config, const char *host, uint16_t port)
{
    const struct policy_target target = {host, port, "/", "GET", "", false};
    struct summary summary = {0};
    char title[512], subject[512] = "";
    size_t used = 0;

    policy_resolve(config, &target, &summary.resolved);
    snprintf(title, sizeof(title), strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host, port);
    for (unsigned i = 0; i < summary.resolved.section_count && used < sizeof(subject); i++)
        used += (size_t)snprintf(subject + used, sizeof(subject) - used, "%s[%s]", i == 0 ? "by " : ", then ",
                                 summary.resolved.sections[i]->name);
    summary.title = title;
    summary.subject = subject;
    show(printer, &summary);
}

static void show_all(struct printer *printer, const struct config *config)
{
    for (unsigned i = 0; i < config->section_count; i++)
        show_section(printer, config, &config->sections[i]);
}

static json_t *metrics_json(void)
{
    json_t *array = json_array();

    for (const char *const *name = counter_names; *name != NULL; name++)
        json_array_append_new(array, json_string(*name));
    return array;
}

static void print_metrics(void)
{
    printf("\n%smetrics%s  counted in the segment for each bucket; curtsy status shows them\n",
           output_style(STYLE_BOLD), output_style(STYLE_PLAIN));
    for (const char *const *name = counter_names; *name != NULL; name++)
        printf("    %s\n", *name);
}

static void summarise(const struct summary_options *options, const struct environment *environment,
                      const struct config *config, const char *host, uint16_t port)
{
    static struct view view;
    struct printer printer = {environment, &view, options->as_json ? json_array() : NULL};

    view_open(&view, NULL, environment, config);
    if (!options->as_json)
        view_print(&view);
    if (host != NULL)
        show_host(&printer, config, host, port);
    else
        show_all(&printer, config);
    if (options->as_json) {
        json_t *document = view_json(&view);
        json_object_set_new(document, "policies", printer.summaries);
        json_object_set_new(document, "metrics", metrics_json());
        output_json(document);
    } else {
        print_metrics();
    }
    view_close(&view);
}

int command_summary(int argc, char **argv)
{
    static const struct argp_option option_list[] = {
        {"config", 'c', "FILE", 0, "read FILE instead of the usual configuration files", 0},
        {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
        {0},
    };
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "[HOST[:PORT]]",
        .doc = "Shows what is in force for each section of the configuration, or for requests to HOST, and where "
               "each value was set.",
    };
    struct summary_options options = {0};
    struct environment environment;
    struct fault_counter faults = {.errors_only = true};
    char host[256];
    uint16_t port = 0;

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    if (options.host != NULL && !parse_host(options.host, host, sizeof(host), &port)) {
        complain("%s: expected HOST or HOST:PORT", options.host);
        return STATUS_MISUSE;
    }
    environment_read(&environment);
    struct config *config = options.config != NULL ? input_load(options.config, environment.set, fault_print, &faults)
                                                   : config_files_load(&environment, NULL, fault_print, &faults);
    if (config == NULL && options.config != NULL) {
        complain("%s: %s", input_name(options.config), strerror(errno));
        return STATUS_MISUSE;
    }
    if (config == NULL) {
        complain("out of memory");
        return STATUS_NEGATIVE;
    }
    summarise(&options, &environment, config, options.host != NULL ? host : NULL, port);
    config_free(config);
    return STATUS_SUCCESS;
}
