/* SPDX-License-Identifier: MIT */
/*
 * curtsy summary: the configuration summary for the next engineer: for [default] and each section,
 * or for requests to one host, what is retried and how, the budgets, the rate and burst beside the
 * published quota, who shares them, and what is counted; each value with the line that it was set on.
 */
#include "tools/curtsy/command.h"
#include "tools/curtsy/counters.h"
#include "tools/curtsy/example.h"
#include "tools/curtsy/host_port.h"
#include "tools/curtsy/input.h"
#include "tools/curtsy/output.h"
#include "tools/curtsy/policy_view.h"
#include "tools/curtsy/summary_view.h"
#include "tools/curtsy/view.h"

#include "core/section_name.h"
#include "core/text_list.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_JSON = 256 };

#define METHOD_MAX 32

struct summary_options {
    const char *config;
    const char *host; /* HOST[:PORT][/PATH] as it was given; NULL: all sections */
    char method[METHOD_MAX + 1];
    bool as_json;
};

/* What holds, and who says so. */
struct layers {
    struct environment environment;
    struct config_sources sources;
    struct config *config;
    struct config *machine; /* NULL: nobody has named a segment for the whole machine */
};

/* In capitals, as methods are written. */
static bool take_method(struct summary_options *options, const char *text)
{
    size_t length = strlen(text);

    if (length == 0 || length > METHOD_MAX)
        return false;
    for (size_t i = 0; i <= length; i++) {
        if (text[i] != '\0' && !scan_is_letter(text[i]) && text[i] != '-' && text[i] != '_')
            return false;
        options->method[i] = text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 'a' + 'A') : text[i];
    }
    return true;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct summary_options *options = state->input;

    switch (key) {
    case 'c':
        options->config = argument;
        return 0;
    case 'X':
        if (!take_method(options, argument))
            argp_error(state, "-X: expected a method such as GET");
        return 0;
    case OPTION_JSON:
        options->as_json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->host != NULL)
            return ARGP_ERR_UNKNOWN;
        options->host = argument;
        return 0;
    case ARGP_KEY_END:
        if (options->host == NULL && options->method[0] != '\0')
            argp_error(state, "-X: of requests to which host?");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* HOST[:PORT][/PATH]; a query is no part of what sections tell apart.  The texts are to be freed. */
static bool parse_place(const char *text, char host[HOST_SIZE], uint16_t *port, char **path)
{
    size_t length = strcspn(text, "/");
    char *name = strndup(text, length);

    *path = text[length] == '/' ? strndup(text + length, strcspn(text + length, "?#")) : strdup("/");
    bool is_right = name != NULL && *path != NULL && strstr(text, "://") == NULL && host_port_parse(name, host, port);
    free(name);
    return is_right;
}

/* ---- what is summarised ---- */

/* Called with each summary that was asked for. */
struct printer {
    const struct layers *layers;
    const struct view *view;
    json_t *summaries; /* NULL: print as text */
};

static void show(struct printer *printer, struct summary *summary)
{
    policy_apply_mode(&summary->resolved, printer->layers->environment.mode);
    if (printer->summaries != NULL)
        json_array_append_new(printer->summaries, summary_json(summary));
    else
        summary_print(summary, printer->view->scope);
}

static void show_section(struct printer *printer, const struct section *section)
{
    struct summary summary = {.subject = section->pattern_count == 0 ? "every host that no other section names" : ""};
    char title[SECTION_NAME_SIZE + 2], origin[PATH_MAX + 16];

    snprintf(title, sizeof(title), "[%s]", section->name);
    summary.title = title;
    summary.is_any_host =
        section->pattern_count == 0 || (section->patterns[0].host[0] == '*' && !section->groups_hosts);
    if (section->pattern_count > 0 && section->origin.file != NULL)
        summary.subject = origin_text(section->origin, origin, sizeof(origin));
    example_resolve_all(printer->layers->config, printer->layers->machine, section, &summary.resolved);
    show(printer, &summary);
}

/* "by [api.example.com/v1], then [default]" */
static void name_speakers(const struct resolved_policy *resolved, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < resolved->section_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s[%s]", i == 0 ? "by " : ", then ",
                                 resolved->sections[i]->name);
}

static void show_target(struct printer *printer, const struct policy_target *target)
{
    struct summary summary = {.is_any_host = false};
    bool is_address = strchr(target->host, ':') != NULL;
    char *title = NULL, subject[1024];

    policy_resolve(printer->layers->config, target, &summary.resolved);
    if (printer->layers->machine != NULL) {
        struct resolved_policy machine;
        policy_resolve(printer->layers->machine, target, &machine);
        policy_tighten(&summary.resolved, &machine, geteuid());
    }
    if (asprintf(&title, "%s%s%s:%u%s%s%s", is_address ? "[" : "", target->host, is_address ? "]" : "",
                 (unsigned)target->port, strcmp(target->path, "/") != 0 ? target->path : "",
                 strcmp(target->method, "GET") != 0 ? " " : "",
                 strcmp(target->method, "GET") != 0 ? target->method : "") < 0)
        return;
    make_printable(title);
    name_speakers(&summary.resolved, subject, sizeof(subject));
    summary.title = title;
    summary.subject = subject;
    show(printer, &summary);
    free(title);
}

/* ---- Curtsy's own settings ---- */

/* Calls for each preset that is named: [{"name": ..., "file": ..., "is_read": ...}]. */
static json_t *presets_json(const struct config *config)
{
    json_t *array = json_array();
    const char *rest = config->settings.presets;
    struct scan item;
    char file[PATH_MAX];

    while (rest != NULL && text_list_next(&rest, &item)) {
        json_t *name = json_stringn(item.at, (size_t)(item.end - item.at));
        snprintf(file, sizeof(file), "%s/%s.ini", CURTSY_DATADIR, json_string_value(name));
        json_array_append_new(array, json_pack("{s:o, s:o, s:b}", "name", name, "file", json_text(file), "is_read",
                                               access(file, R_OK) == 0));
    }
    return array;
}

static void print_settings(const struct layers *layers)
{
    json_t *presets = presets_json(layers->config);

    for (size_t i = 0; i < json_array_size(presets); i++) {
        const json_t *preset = json_array_get(presets, i);
        printf("preset %s: %s%s\n", json_string_value(json_object_get(preset, "name")),
               json_string_value(json_object_get(preset, "file")),
               json_is_true(json_object_get(preset, "is_read")) ? "" : ", which cannot be read");
    }
    json_decref(presets);
    if (layers->machine != NULL)
        puts("for the whole machine: quotas are those of /etc/curtsy; a user's own can be tighter for himself");
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

/* ---- the command ---- */

static void summarise(const struct summary_options *options, const struct layers *layers,
                      const struct policy_target *target)
{
    static struct view view;
    struct printer printer = {layers, &view, options->as_json ? json_array() : NULL};

    view_open(&view, NULL, &layers->environment, layers->config);
    if (!options->as_json) {
        view_print(&view);
        print_settings(layers);
    }
    if (target != NULL)
        show_target(&printer, target);
    for (unsigned i = 0; i < layers->config->section_count && target == NULL; i++)
        show_section(&printer, &layers->config->sections[i]);
    if (options->as_json) {
        json_t *document = view_json(&view);
        json_object_set_new(document, "machine_wide", json_boolean(layers->machine != NULL));
        json_object_set_new(document, "presets", presets_json(layers->config));
        json_object_set_new(document, "policies", printer.summaries);
        json_object_set_new(document, "metrics", metrics_json());
        output_json(document);
    } else {
        print_metrics();
    }
    view_close(&view);
}

/* False with errno. */
static bool load(struct layers *layers, const char *file)
{
    struct fault_counter faults = {.errors_only = true};

    environment_read(&layers->environment);
    if (file != NULL) {
        layers->config = input_load(file, layers->environment.set, fault_print, &faults);
        return layers->config != NULL;
    }
    layers->config = config_files_load(&layers->environment, &layers->sources, fault_print, &faults);
    if (layers->config != NULL && layers->sources.machine_wide)
        layers->machine = config_files_load_machine("");
    if (layers->config != NULL && (layers->machine != NULL || !layers->sources.machine_wide))
        return true;
    errno = ENOMEM;
    return false;
}

static int summary(const struct summary_options *options)
{
    struct policy_target target = {.method = options->method[0] != '\0' ? options->method : "GET", .program = ""};
    struct layers layers = {.config = NULL};
    char host[HOST_SIZE], *path = NULL;
    int status = STATUS_SUCCESS;

    if (options->host != NULL && !parse_place(options->host, host, &target.port, &path)) {
        complain("expected HOST, HOST:PORT or HOST/PATH, without scheme");
        free(path);
        return STATUS_MISUSE;
    }
    target.host = host;
    target.path = path;
    if (load(&layers, options->config)) {
        summarise(options, &layers, options->host != NULL ? &target : NULL);
    } else {
        complain("%s: %s", options->config != NULL ? input_name(options->config) : "configuration", strerror(errno));
        status = options->config != NULL ? STATUS_MISUSE : STATUS_NEGATIVE;
    }
    config_free(layers.machine);
    config_free(layers.config);
    free(path);
    return status;
}

int command_summary(int argc, char **argv)
{
    static const struct argp_option option_list[] = {
        {"config", 'c', "FILE", 0, "read FILE instead of the usual configuration files", 0},
        {"request", 'X', "METHOD", 0, "of requests with this method (GET)", 0},
        {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
        {0},
    };
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "[HOST[:PORT][/PATH]]",
        .doc = "Shows what is in force for each section of the configuration, or for requests to HOST, and where "
               "each value was set.",
    };
    struct summary_options options = {0};

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    return summary(&options);
}
