/* SPDX-License-Identifier: MIT */
/*
 * curtsy mode: the switch for an incident.  It is one word in the segment for everything, and one in
 * each bucket for a host, obeyed by the next request and by those that wait already.  Of several
 * sources of the mode the least intrusive wins, so this can calm Curtsy down and not stir it up: where
 * another source is calmer than what was asked for, that is said.
 */
#include "tools/curtsy/command.h"
#include "tools/curtsy/operate.h"
#include "tools/curtsy/output.h"

#include <argp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_JSON = 256, OPTION_SEGMENT, OPTION_FOR };

struct mode_options {
    const char *segment;
    const char *mode; /* NULL: only look */
    const char *host; /* NULL: everything */
    const char *time; /* NULL: without an end */
    bool as_json;
};

/* What was asked for. */
struct order {
    enum operator_mode mode;
    int64_t until_ns;
    const char *host;
    struct host_word word;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct mode_options *options = state->input;

    switch (key) {
    case OPTION_SEGMENT:
        options->segment = argument;
        return 0;
    case OPTION_JSON:
        options->as_json = true;
        return 0;
    case OPTION_FOR:
        options->time = argument;
        return 0;
    case ARGP_KEY_ARG:
        if (options->host != NULL)
            return ARGP_ERR_UNKNOWN;
        *(options->mode == NULL ? &options->mode : &options->host) = argument;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* --------------------------------------------------------------------- showing ---- */

static void print_mode(enum operator_mode mode, const char *whom, int64_t until_ns, int64_t now_ns)
{
    char clock[CLOCK_TEXT_SIZE], left[RATE_TEXT_SIZE];
    int64_t rounded_ns = (until_ns - now_ns + NS_PER_SECOND / 2) / NS_PER_SECOND * NS_PER_SECOND;

    printf("mode %s%s%s for %s", output_style(STYLE_BOLD), operator_mode_name(mode), output_style(STYLE_PLAIN), whom);
    if (mode == OPERATOR_AUTO)
        puts(": as the configuration and CURTSY_MODE say");
    else if (until_ns == TIME_NEVER)
        puts(" until it is changed");
    else
        printf(" until %s (%s)\n", clock_text(clock, until_ns, now_ns),
               rounded_ns > 0 ? duration_text(left, rounded_ns) : "less than a second");
}

/* Nobody has said anything where there is no segment yet. */
static enum operator_mode mode_of_everything(const struct operation *operation, int64_t *until_ns)
{
    *until_ns = TIME_NEVER;
    if (!operation->view.is_open)
        return OPERATOR_AUTO;
    return segment_mode(&operation->view.segment, operation->now_ns, until_ns);
}

static struct bucket *next_bucket(const struct operation *operation, unsigned *cursor)
{
    return operation->view.is_open ? segment_next(&operation->view.segment, cursor) : NULL;
}

static void print_everything(const struct operation *operation)
{
    char whom[PATH_MAX + 32];
    int64_t until_ns;
    enum operator_mode mode = mode_of_everything(operation, &until_ns);

    snprintf(whom, sizeof(whom), "everything in %s", operation->view.name);
    print_mode(mode, whom, until_ns, operation->now_ns);
}

static void print_bucket(const struct operation *operation, struct bucket *bucket)
{
    struct bucket_state state;

    bucket_read_state(bucket, operation->now_ns, &state);
    print_mode(state.mode, state.name, state.mode_until_ns, operation->now_ns);
}

static void show_text(const struct operation *operation)
{
    struct bucket *bucket;
    unsigned cursor = 0;

    view_print(&operation->view);
    print_everything(operation);
    while ((bucket = next_bucket(operation, &cursor)) != NULL)
        if (bucket_mode(bucket, operation->now_ns) != OPERATOR_AUTO)
            print_bucket(operation, bucket);
    if (access(CURTSY_OFF_FILE, F_OK) == 0)
        puts(CURTSY_OFF_FILE " is there: every program under Curtsy is off");
}

static void show_json(const struct operation *operation)
{
    json_t *document = view_json(&operation->view), *buckets = json_array();
    struct bucket_state state;
    struct bucket *bucket;
    int64_t until_ns;
    unsigned cursor = 0;
    enum operator_mode mode = mode_of_everything(operation, &until_ns);

    while ((bucket = next_bucket(operation, &cursor)) != NULL) {
        bucket_read_state(bucket, operation->now_ns, &state);
        if (state.mode == OPERATOR_AUTO)
            continue;
        json_array_append_new(buckets, json_pack("{s:o, s:s, s:o}", "bucket", json_text(state.name), "mode",
                                                 operator_mode_name(state.mode), "until",
                                                 clock_json(state.mode_until_ns, operation->now_ns)));
    }
    json_object_set_new(document, "mode", json_string(operator_mode_name(mode)));
    json_object_set_new(document, "until",
                        mode != OPERATOR_AUTO ? clock_json(until_ns, operation->now_ns) : json_null());
    json_object_set_new(document, "buckets", buckets);
    json_object_set_new(document, "off_file", json_boolean(access(CURTSY_OFF_FILE, F_OK) == 0));
    output_json(document);
}

/* ------------------------------------------------------------ who else has a say ---- */

__attribute__((format(printf, 3, 4))) static void tell_calmer(enum mode mode, enum mode asked, const char *format, ...)
{
    va_list arguments;

    if (mode >= asked)
        return;
    va_start(arguments, format);
    fputs("note: ", stdout);
    vprintf(format, arguments);
    va_end(arguments);
    printf(" %s, and of several the least intrusive wins\n", mode == MODE_OFF ? "off" : "observe");
}

static void tell_section(const struct section *section, enum mode asked)
{
    char origin[PATH_MAX + 16];

    if (section->set[POLICY_KEY_mode])
        tell_calmer(section->values.mode, asked, "[%s] says (%s)", section->name,
                    origin_text(section->origins[POLICY_KEY_mode], origin, sizeof(origin)));
}

static void tell_configuration(const struct operation *operation, const struct order *order, enum mode asked)
{
    const struct config *config = operation->config;
    struct resolved_policy resolved;
    char origin[PATH_MAX + 16];

    if (order->host == NULL) {
        for (unsigned i = 0; i < config->section_count; i++)
            tell_section(&config->sections[i], asked);
    } else if (order->word.host[0] != '\0') {
        host_word_resolve(&order->word, config, operation->machine, &resolved);
        tell_calmer(resolved.values.mode, asked, "for %s, %s says", order->host,
                    origin_text(resolved.origins[POLICY_KEY_mode], origin, sizeof(origin)));
    }
}

/* Only what can be seen from here: a program may have another CURTSY_MODE, or another configuration. */
static void tell_calmer_sources(const struct operation *operation, const struct order *order)
{
    const char *variable = operation->environment.mode;
    enum mode asked = operator_ceiling(order->mode), mode;

    if (order->mode == OPERATOR_AUTO)
        return;
    if (access(CURTSY_OFF_FILE, F_OK) == 0)
        tell_calmer(MODE_OFF, asked, CURTSY_OFF_FILE " is there and says");
    if (order->host != NULL)
        tell_calmer(operator_ceiling(segment_mode(&operation->view.segment, operation->now_ns, NULL)), asked,
                    "for everything, the operator says");
    if (variable != NULL && keys_parse_value(&policy_keys[POLICY_KEY_mode], variable, &mode) == NULL)
        tell_calmer(mode, asked, "here, CURTSY_MODE says");
    tell_configuration(operation, order, asked);
}

/* --------------------------------------------------------------------- setting ---- */

static void note(const struct operation *operation, const struct mode_options *options)
{
    operation_note(operation, "mode %s%s%s%s%s", options->mode, options->host != NULL ? " " : "",
                   options->host != NULL ? options->host : "", options->time != NULL ? " for " : "",
                   options->time != NULL ? options->time : "");
}

static int set_everything(const struct operation *operation, const struct order *order)
{
    segment_set_mode(&operation->view.segment, order->mode, order->until_ns);
    view_print(&operation->view);
    print_everything(operation);
    return STATUS_SUCCESS;
}

static int set_host(const struct operation *operation, const struct order *order)
{
    struct host_buckets buckets;
    bool is_found = operation_find(operation, order->host, &order->word, order->mode != OPERATOR_AUTO, &buckets);

    if (is_found)
        view_print(&operation->view);
    for (size_t i = 0; i < buckets.count; i++) {
        bucket_set_mode(buckets.item[i], order->mode, order->until_ns);
        print_bucket(operation, buckets.item[i]);
    }
    host_buckets_free(&buckets);
    return is_found ? STATUS_SUCCESS : STATUS_NEGATIVE;
}

static int set(const struct mode_options *options, struct order *order, int64_t time_ns)
{
    static struct operation operation;
    int status = STATUS_NEGATIVE;

    if (operation_begin(&operation, options->segment, MAPPING_CREATE)) {
        order->until_ns = time_ns > 0 ? operation.now_ns + time_ns : TIME_NEVER;
        status = order->host != NULL ? set_host(&operation, order) : set_everything(&operation, order);
    } else {
        operation_complain(&operation);
        complain("in an emergency make the file " CURTSY_OFF_FILE
                 ": while it is there, every program under Curtsy passes everything through");
    }
    if (status == STATUS_SUCCESS) {
        tell_calmer_sources(&operation, order);
        note(&operation, options);
    }
    operation_end(&operation);
    return status;
}

static int look(const struct mode_options *options)
{
    static struct operation operation;
    int status = STATUS_SUCCESS;
    bool is_open = operation_begin(&operation, options->segment, MAPPING_VIEW);

    if (!is_open && !operation.view.is_missing) {
        operation_complain(&operation);
        status = STATUS_NEGATIVE;
    } else if (options->as_json) {
        show_json(&operation);
    } else {
        show_text(&operation);
    }
    operation_end(&operation);
    return status;
}

/* False with a complaint. */
static bool understand(const struct mode_options *options, struct order *order, int64_t *time_ns)
{
    *time_ns = 0;
    order->host = options->host;
    if (options->mode == NULL) {
        if (options->time != NULL)
            complain("--for: for which mode?");
        return options->time == NULL;
    }
    if (!operator_mode_parse(options->mode, &order->mode)) {
        complain("%s: expected off, observe, enforce or auto", options->mode);
        return false;
    }
    if (options->as_json) {
        complain("--json shows the modes, and sets none");
        return false;
    }
    if (options->time != NULL && order->mode == OPERATOR_AUTO) {
        complain("--for: auto needs no end");
        return false;
    }
    if (options->time != NULL && !parse_time(options->time, time_ns))
        return false;
    return options->host == NULL || parse_host_word(options->host, &order->word);
}

int command_mode(int argc, char **argv)
{
    static const struct argp_option option_list[] = {
        {"for", OPTION_FOR, "TIME", 0, "only for so long, such as 10min", 0},
        {"json", OPTION_JSON, NULL, 0, "print the present modes as JSON", 0},
        {"segment", OPTION_SEGMENT, "NAME", 0, "another segment than one's own", 0},
        {0},
    };
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "[off|observe|enforce|auto [HOST]]",
        .doc =
            "Sets the operator's mode, for everything that shares the segment or for HOST, at once and for those "
            "that wait already; or shows what is set.\voff passes everything through, observe only counts and "
            "tells, auto takes the operator's word back.  Of several sources of the mode the least intrusive "
            "wins.  Where no segment can be used, the file " CURTSY_OFF_FILE " is the switch: while it is there, every "
            "program under Curtsy is off.",
    };
    struct mode_options options = {0};
    struct order order = {0};
    int64_t time_ns;

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0 || !understand(&options, &order, &time_ns))
        return STATUS_MISUSE;
    return options.mode != NULL ? set(&options, &order, time_ns) : look(&options);
}
