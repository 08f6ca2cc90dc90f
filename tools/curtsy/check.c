/* SPDX-License-Identifier: MIT */
/*
 * curtsy check: reads the configuration as the library would, prints every fault with its file and
 * line, and works the numbers out that a quota comes to (check_numbers.h).  Beyond the parser's own
 * faults it warns of what is well-formed and yet not what one wants (check_warnings.h).
 */
#include "tools/curtsy/check_numbers.h"
#include "tools/curtsy/check_warnings.h"
#include "tools/curtsy/command.h"
#include "tools/curtsy/input.h"
#include "tools/curtsy/output.h"

#include "core/system/config_files.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { OPTION_STRICT = 256, OPTION_JSON };

struct check_options {
    const char *file;
    bool is_strict;
    bool as_json;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct check_options *options = state->input;

    switch (key) {
    case OPTION_STRICT:
        options->is_strict = true;
        return 0;
    case OPTION_JSON:
        options->as_json = true;
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

/* The faults so far; as text they are printed when they are found. */
struct report {
    struct fault_counter counter;
    json_t *faults; /* an array; notes are in it, too */
    bool as_json;
};

static const char *severity_name(enum severity severity)
{
    if (severity == SEVERITY_NOTE)
        return "note";
    return severity == SEVERITY_ERROR ? "error" : "warning";
}

static void print_note(const struct diagnostic *diagnostic)
{
    fprintf(stderr, "%s:%u: note: %s\n", diagnostic->file, diagnostic->line, diagnostic->message);
}

static void take_fault(void *context, const struct diagnostic *diagnostic)
{
    struct report *report = context;

    json_array_append_new(report->faults,
                          json_pack("{s:o, s:o, s:s, s:o}", "file", json_text(diagnostic->file), "line",
                                    diagnostic->line != 0 ? json_integer(diagnostic->line) : json_null(), "severity",
                                    severity_name(diagnostic->severity), "message", json_text(diagnostic->message)));
    if (report->as_json) {
        report->counter.errors += diagnostic->severity == SEVERITY_ERROR ? 1 : 0;
        report->counter.warnings += diagnostic->severity == SEVERITY_WARNING ? 1 : 0;
    } else if (diagnostic->severity == SEVERITY_NOTE) {
        print_note(diagnostic);
    } else {
        fault_print(&report->counter, diagnostic);
    }
}

/* Notes are no faults. */
static bool is_fault_of(const json_t *fault, const char *file)
{
    const char *name = json_string_value(json_object_get(fault, "file"));
    const char *severity = json_string_value(json_object_get(fault, "severity"));

    return name != NULL && strcmp(name, file) == 0 && severity != NULL && strcmp(severity, "note") != 0;
}

static unsigned count_faults(const struct report *report, const char *file)
{
    unsigned count = 0;

    for (size_t i = 0; i < json_array_size(report->faults); i++)
        count += is_fault_of(json_array_get(report->faults, i), file) ? 1 : 0;
    return count;
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

/* Only where there are no errors. */
static void print_file(const struct config *config, const char *file, const struct report *report)
{
    unsigned count = settings_are_from(config, file) ? 1 : 0;
    unsigned warnings = count_faults(report, file);

    for (unsigned i = 0; i < config->section_count; i++)
        count += section_is_from(&config->sections[i], file) ? 1 : 0;
    printf("%s: %u section%s, ", file, count, count == 1 ? "" : "s");
    if (warnings == 0)
        puts("no faults");
    else
        printf("%u warning%s\n", warnings, warnings == 1 ? "" : "s");
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

static void print_files(const struct config *config, const struct report *report)
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
        print_file(config, files[i], report);
    if (count == 0)
        puts("no configuration: the built-in defaults are in force, no faults");
}

static void check_variable(struct report *report, const char *name, const struct key *key, const char *value)
{
    union {
        enum mode mode;
        enum log_level level;
        enum log_format format;
        const char *text;
    } parsed;
    const char *expected = value != NULL ? keys_parse_value(key, value, &parsed) : NULL;
    char message[512];

    if (expected == NULL)
        return;
    snprintf(message, sizeof(message), "%s = %s: expected %s", name, value, expected);
    take_fault(report, &(struct diagnostic){SEVERITY_ERROR, "environment", 0, message});
}

static void check_environment(struct report *report, const struct environment *environment)
{
    check_variable(report, "CURTSY_MODE", &policy_keys[POLICY_KEY_mode], environment->mode);
    check_variable(report, "CURTSY_SEGMENT", &curtsy_keys[CURTSY_KEY_segment], environment->segment);
    check_variable(report, "CURTSY_LOG", &curtsy_keys[CURTSY_KEY_log], environment->log);
    check_variable(report, "CURTSY_LOG_FORMAT", &curtsy_keys[CURTSY_KEY_log_format], environment->log_format);
}

/* NULL with errno. */
static struct config *load(const char *file, struct report *report)
{
    struct environment environment;

    if (file != NULL)
        return input_load(file, NULL, take_fault, report);
    environment_read(&environment);
    check_environment(report, &environment);
    struct config *config = config_files_load(&environment, NULL, take_fault, report);
    if (config == NULL)
        errno = ENOMEM;
    return config;
}

static void print_text(const struct check_options *options, const struct config *config, const struct report *report)
{
    if (report->counter.errors > 0)
        return;
    if (options->file != NULL && config->settings.presets == NULL)
        print_file(config, input_name(options->file), report);
    else
        print_files(config, report);
    for (unsigned i = 0; i < config->section_count; i++)
        numbers_print(config, &config->sections[i]);
}

static void print_json(const struct check_options *options, const struct config *config, struct report *report)
{
    json_t *sections = json_array();

    for (unsigned i = 0; i < config->section_count; i++)
        json_array_append_new(sections, numbers_json(config, &config->sections[i]));
    output_json(json_pack("{s:o, s:i, s:i, s:O, s:o}", "file",
                          options->file != NULL ? json_text(input_name(options->file)) : json_null(), "errors",
                          (int)report->counter.errors, "warnings", (int)report->counter.warnings, "faults",
                          report->faults, "sections", sections));
}

static int check(const struct check_options *options, const struct config *config, struct report *report)
{
    const struct fault_counter *counter = &report->counter;

    warn_of_settings(config, take_fault, report);
    for (unsigned i = 0; i < config->section_count; i++)
        warn_of_section(config, &config->sections[i], take_fault, report);
    if (options->as_json)
        print_json(options, config, report);
    else
        print_text(options, config, report);
    return counter->errors > 0 || (options->is_strict && counter->warnings > 0) ? STATUS_NEGATIVE : STATUS_SUCCESS;
}

int command_check(int argc, char **argv)
{
    static const struct argp_option option_list[] = {
        {"strict", OPTION_STRICT, NULL, 0, "take warnings for faults", 0},
        {"json", OPTION_JSON, NULL, 0, "print JSON, with the faults in it", 0},
        {0},
    };
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "[FILE]",
        .doc = "Looks for faults in FILE (-: standard input), or else in all of the configuration and the "
               "environment that are in force, and works out what its quotas come to.\vThe exit status is 1 if there "
               "are faults. Notes are no faults.",
    };
    struct check_options options = {0};
    struct report report = {.faults = json_array()};

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    report.as_json = options.as_json;
    struct config *config = load(options.file, &report);
    if (config == NULL) {
        complain("%s: %s", options.file != NULL ? input_name(options.file) : "configuration", strerror(errno));
        json_decref(report.faults);
        return STATUS_MISUSE;
    }
    int status = check(&options, config, &report);
    config_free(config);
    json_decref(report.faults);
    return status;
}
