/* SPDX-License-Identifier: MIT */
/*
 * curtsy check: reads the configuration as the library would, prints every fault with its file and
 * line, and works the numbers out that a quota comes to.  Beyond the parser's own faults it warns of
 * what is well-formed and yet not what one wants: a burst that breaks the quota, a section that never
 * decides anything, a max_wait in which next to nobody gets his turn.
 */
#include "tools/curtsy/command.h"
#include "tools/curtsy/example.h"
#include "tools/curtsy/input.h"
#include "tools/curtsy/output.h"

#include "core/system/config_files.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fewer waiters than this within max_wait are hardly meant: max_wait = auto is never less than so
 * many spacings. */
#define WAITERS_WANTED 3

enum { OPTION_STRICT = 256 };

struct check_options {
    const char *file;
    bool is_strict;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct check_options *options = state->input;

    switch (key) {
    case OPTION_STRICT:
        options->is_strict = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->file != NULL)
            return ARGP_ERR_UNKNOWN;
        options->file = argument;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

__attribute__((format(printf, 3, 4))) static void warn(struct fault_counter *faults, struct origin origin,
                                                       const char *format, ...)
{
    char message[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    fault_print(faults, &(struct diagnostic){SEVERITY_WARNING, origin.file, origin.line, message});
}

/* The line to blame for a key of a section: where the section sets it, else the section's own. */
static struct origin key_origin(const struct section *section, enum policy_key key)
{
    return section->set[key] ? section->origins[key] : section->origin;
}

/* Whether the section has a say in how many requests may go. */
static bool sets_limits(const struct section *section)
{
    return section->set[POLICY_KEY_quota] || section->set[POLICY_KEY_rate] || section->set[POLICY_KEY_headroom] ||
           section->set[POLICY_KEY_burst] || section->set[POLICY_KEY_network_jitter];
}

static void check_burst(struct fault_counter *faults, const struct section *section, const struct policy *policy,
                        const struct limits *limits)
{
    struct policy with_auto = *policy;
    struct limits best;

    with_auto.burst = COUNT_AUTO;
    limits_from_policy(&with_auto, &best, NULL);
    for (unsigned i = 0; i < limits->count && i < best.count; i++) {
        const struct limit *limit = &limits->item[i];
        uint64_t most = limit_most_in_window(limit, limit->window_ns + limit->jitter_ns);
        char window[RATE_TEXT_SIZE];

        if (limit->published != 0 && most > limit->published)
            warn(faults, key_origin(section, POLICY_KEY_burst),
                 "burst = %u breaks the quota of [%s]: up to %" PRIu64 " requests in a window of %s, and %" PRIu64
                 " are allowed; burst = auto comes to %" PRIu64,
                 policy->burst, section->name, most, duration_text(window, limit->window_ns), limit->published,
                 best.item[i].burst / TOKEN_ONE);
    }
}

/* How many requests beyond the burst, asked for at once, get their turn within max_wait. */
static uint64_t waiters(const struct limits *limits, int64_t max_wait_ns)
{
    uint64_t fewest = UINT64_MAX;

    for (unsigned i = 0; i < limits->count; i++) {
        int64_t spacing_ns = limit_spacing_ns(&limits->item[i]);
        uint64_t fit = (uint64_t)(max_wait_ns / (spacing_ns > 0 ? spacing_ns : 1));
        fewest = fit < fewest ? fit : fewest;
    }
    return fewest;
}

static void check_waiters(struct fault_counter *faults, const struct section *section, const struct policy *policy,
                          const struct limits *limits)
{
    int64_t max_wait_ns = limits_max_wait_ns(policy, limits);
    uint64_t fit = waiters(limits, max_wait_ns);
    int64_t slowest_ns = 0;
    char wait[RATE_TEXT_SIZE], spacing[SHORT_TIME_SIZE];

    for (unsigned i = 0; i < limits->count; i++)
        if (limit_spacing_ns(&limits->item[i]) > slowest_ns)
            slowest_ns = limit_spacing_ns(&limits->item[i]);
    if (limits->count > 0 && max_wait_ns > 0 && fit < WAITERS_WANTED)
        warn(faults, key_origin(section, POLICY_KEY_max_wait),
             "max_wait = %s fits %" PRIu64 " waiter%s of [%s]: one request goes every %s, and the others %s",
             duration_text(wait, max_wait_ns), fit, fit == 1 ? "" : "s", section->name, short_time(spacing, slowest_ns),
             policy->on_max_wait == ON_MAX_WAIT_SEND ? "are sent at once" : "fail");
}

static void check_section(struct fault_counter *faults, const struct config *config, const struct section *section)
{
    struct resolved_policy resolved;
    struct limits limits;

    if (section->origin.file != NULL && !example_is_reached(config, section))
        warn(faults, section->origin,
             "[%s] is never reached: wherever it matches, if anywhere, other sections set each of its keys",
             section->name);
    example_resolve(config, section, &resolved);
    limits_from_policy(&resolved.values, &limits, NULL);
    if (sets_limits(section))
        check_burst(faults, section, &resolved.values, &limits);
    if (sets_limits(section) || section->set[POLICY_KEY_max_wait])
        check_waiters(faults, section, &resolved.values, &limits);
}

static void print_quota(const struct section *section, const struct policy *policy)
{
    const struct key *key = &policy_keys[policy->quota.count > 0 ? POLICY_KEY_quota : POLICY_KEY_rate];
    char value[256];

    keys_format_value(key, policy->quota.count > 0 ? (const void *)&policy->quota : (const void *)&policy->rate, value,
                      sizeof(value));
    printf("%s[%s]%s %s = %s\n", output_style(STYLE_BOLD), section->name, output_style(STYLE_PLAIN), key->name, value);
}

static void print_limit(const struct limit *limit, int64_t max_wait_ns)
{
    const struct limits alone = {.count = 1, .item = {*limit}};
    char rate[RATE_TEXT_SIZE], window[RATE_TEXT_SIZE], jitter[RATE_TEXT_SIZE], wait[RATE_TEXT_SIZE];
    char spacing[SHORT_TIME_SIZE];
    uint64_t most = limit_most_in_window(limit, limit->window_ns + limit->jitter_ns);
    uint64_t fit = waiters(&alone, max_wait_ns);

    printf("    rate %s (%.4g/s, one every %s), burst %.6g\n", rate_text(rate, limit), limit_rate_per_second(limit),
           short_time(spacing, limit_spacing_ns(limit)), (double)limit->burst / (double)TOKEN_ONE);
    printf("    at most %" PRIu64 " request%s in any %s, bunched up by %s on the way", most, most == 1 ? "" : "s",
           duration_text(window, limit->window_ns), duration_text(jitter, limit->jitter_ns));
    if (limit->published != 0)
        printf("; %" PRIu64 " %s allowed", limit->published, limit->published == 1 ? "is" : "are");
    printf("\n    %" PRIu64 " waiter%s in max_wait = %s\n", fit, fit == 1 ? " fits" : "s fit",
           duration_text(wait, max_wait_ns));
}

static void print_numbers(const struct config *config, const struct section *section)
{
    struct resolved_policy resolved;
    struct limits limits;

    example_resolve(config, section, &resolved);
    limits_from_policy(&resolved.values, &limits, NULL);
    if (limits.count == 0 || !(sets_limits(section) || section->set[POLICY_KEY_max_wait]))
        return;
    print_quota(section, &resolved.values);
    for (unsigned i = 0; i < limits.count; i++)
        print_limit(&limits.item[i], limits_max_wait_ns(&resolved.values, &limits));
}

static bool is_from(struct origin origin, const char *file)
{
    return origin.file != NULL && strcmp(origin.file, file) == 0;
}

static bool section_is_from(const struct section *section, const char *file)
{
    for (unsigned key = 0; key < POLICY_KEY_COUNT; key++)
        if (section->set[key] && is_from(section->origins[key], file))
            return true;
    return is_from(section->origin, file);
}

static bool settings_are_from(const struct config *config, const char *file)
{
    for (unsigned key = 0; key < CURTSY_KEY_COUNT; key++)
        if (is_from(config->settings_origins[key], file))
            return true;
    return false;
}

static void print_file(const struct config *config, const char *file, const struct fault_counter *faults)
{
    unsigned count = settings_are_from(config, file) ? 1 : 0;

    for (unsigned i = 0; i < config->section_count; i++)
        count += section_is_from(&config->sections[i], file) ? 1 : 0;
    printf("%s: %u section%s, ", file, count, count == 1 ? "" : "s");
    if (faults->warnings == 0)
        puts("no faults");
    else
        printf("%u warning%s\n", faults->warnings, faults->warnings == 1 ? "" : "s");
}

/* A line for each file of the layers that holds anything. */
#define FILES_MAX 64
static void add_file(const char *files[FILES_MAX], unsigned *count, struct origin origin)
{
    for (unsigned i = 0; i < *count; i++)
        if (is_from(origin, files[i]))
            return;
    if (origin.file != NULL && *count < FILES_MAX)
        files[(*count)++] = origin.file;
}

static void print_files(const struct config *config, const struct fault_counter *faults)
{
    const char *files[FILES_MAX];
    unsigned count = 0;

    for (unsigned key = 0; key < CURTSY_KEY_COUNT; key++)
        add_file(files, &count, config->settings_origins[key]);
    for (unsigned i = 0; i < config->section_count; i++) {
        add_file(files, &count, config->sections[i].origin);
        for (unsigned key = 0; key < POLICY_KEY_COUNT; key++)
            if (config->sections[i].set[key])
                add_file(files, &count, config->sections[i].origins[key]);
    }
    for (unsigned i = 0; i < count; i++)
        print_file(config, files[i], faults);
    if (count == 0)
        puts("no configuration: the built-in defaults are in force, no faults");
}

static void check_variable(struct fault_counter *faults, const char *name, const struct key *key, const char *value)
{
    union {
        enum mode mode;
        enum log_level level;
        enum log_format format;
    } parsed;
    const char *expected = value != NULL ? keys_parse_value(key, value, &parsed) : NULL;
    char message[512];

    if (expected == NULL)
        return;
    snprintf(message, sizeof(message), "%s = %s: expected %s", name, value, expected);
    fault_print(faults, &(struct diagnostic){SEVERITY_ERROR, "environment", 0, message});
}

static void check_environment(struct fault_counter *faults, const struct environment *environment)
{
    check_variable(faults, "CURTSY_MODE", &policy_keys[POLICY_KEY_mode], environment->mode);
    check_variable(faults, "CURTSY_LOG", &curtsy_keys[CURTSY_KEY_log], environment->log);
    check_variable(faults, "CURTSY_LOG_FORMAT", &curtsy_keys[CURTSY_KEY_log_format], environment->log_format);
}

/* NULL with errno. */
static struct config *load(const char *file, struct fault_counter *faults)
{
    struct environment environment;

    if (file != NULL)
        return input_load(file, NULL, fault_print, faults);
    environment_read(&environment);
    check_environment(faults, &environment);
    struct config *config = config_files_load(&environment, NULL, fault_print, faults);
    if (config == NULL)
        errno = ENOMEM;
    return config;
}

int command_check(int argc, char **argv)
{
    static const struct argp_option option_list[] = {
        {"strict", OPTION_STRICT, NULL, 0, "take warnings for faults", 0},
        {0},
    };
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "[FILE]",
        .doc = "Looks for faults in FILE (-: standard input), or else in all of the configuration and the "
               "environment that are in force, and works out what its quotas come to.\vThe exit status is 1 if there "
               "are faults.",
    };
    struct check_options options = {0};
    struct fault_counter faults = {0};
    struct config *config;

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    config = load(options.file, &faults);
    if (config == NULL) {
        complain("%s: %s", options.file != NULL ? input_name(options.file) : "configuration", strerror(errno));
        return STATUS_MISUSE;
    }

    for (unsigned i = 0; i < config->section_count; i++)
        check_section(&faults, config, &config->sections[i]);
    if (faults.errors == 0) {
        if (options.file != NULL)
            print_file(config, input_name(options.file), &faults);
        else
            print_files(config, &faults);
        for (unsigned i = 0; i < config->section_count; i++)
            print_numbers(config, &config->sections[i]);
    }
    config_free(config);
    return faults.errors > 0 || (options.is_strict && faults.warnings > 0) ? STATUS_NEGATIVE : STATUS_SUCCESS;
}
