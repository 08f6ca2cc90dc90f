/* SPDX-License-Identifier: MIT */
/*
 * curtsy explain: which section speaks for a request and why the others do not, each value that is in
 * force for it with the line that it was set on, the buckets it draws on, what would happen to it
 * now, and which outcomes would be tried again.  This file reads the command line; the rest is in
 * explanation.h.
 */
#include "tools/curtsy/command.h"
#include "tools/curtsy/explanation.h"
#include "tools/curtsy/input.h"
#include "tools/curtsy/output.h"

#include <argp.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_JSON = 256, OPTION_SEGMENT, OPTION_PROGRAM };

/* Texts that argv does not keep, or not in one place. */
struct list {
    char **item;
    size_t count;
};

struct explain_options {
    const char *config;
    const char *method;
    const char *program;
    const char *segment;
    bool as_json;
    struct list header_options;
    struct list headers;
    struct list urls;
};

/* Takes the text over; ends the program when out of memory. */
static void list_add(struct list *list, char *text)
{
    char **item = text != NULL ? reallocarray(list->item, list->count + 1, sizeof(*item)) : NULL;

    if (item == NULL) {
        complain("out of memory");
        exit(STATUS_NEGATIVE);
    }
    item[list->count++] = text;
    list->item = item;
}

static void list_free(struct list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->item[i]);
    free(list->item);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct explain_options *options = state->input;

    switch (key) {
    case 'c':
        options->config = argument;
        return 0;
    case 'X':
        options->method = argument;
        return 0;
    case 'H':
        list_add(&options->header_options, strdup(argument));
        return 0;
    case OPTION_PROGRAM:
        options->program = argument;
        return 0;
    case OPTION_SEGMENT:
        options->segment = argument;
        return 0;
    case OPTION_JSON:
        options->as_json = true;
        return 0;
    case ARGP_KEY_ARG:
        list_add(&options->urls, strdup(argument));
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which URL?");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- headers ---- */

/* RFC 9110, section 5.6.2. */
static bool is_token(const char *text, size_t length)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!is_alphanumeric && (c == '\0' || strchr(others, c) == NULL))
            return false;
    }
    return length > 0;
}

static bool is_header(const char *line)
{
    size_t length = strcspn(line, ":;");

    return line[length] != '\0' && is_token(line, length);
}

/* What is wrong with it is said without repeating it: it may be a credential. */
static bool add_header(struct list *headers, const char *line, const char *file, unsigned number)
{
    if (is_header(line)) {
        list_add(headers, strdup(line));
        return true;
    }
    if (file != NULL)
        complain("%s:%u: expected a header, NAME: VALUE", file, number);
    else
        complain("-H: expected a header, NAME: VALUE, or @FILE");
    return false;
}

static bool add_header_lines(struct list *headers, FILE *stream, const char *name)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    bool is_right = true;

    for (unsigned number = 1; is_right && (length = getline(&line, &size, stream)) >= 0; number++) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = '\0';
        if (length > 0)
            is_right = add_header(headers, line, name, number);
    }
    if (is_right && ferror(stream)) {
        complain("%s: %s", name, strerror(errno));
        is_right = false;
    }
    free(line);
    return is_right;
}

static bool add_header_file(struct list *headers, const char *path)
{
    bool is_standard_input = strcmp(path, "-") == 0;
    FILE *stream = is_standard_input ? stdin : fopen(path, "re");

    if (stream == NULL) {
        complain("%s: %s", path, strerror(errno));
        return false;
    }
    bool is_right = add_header_lines(headers, stream, input_name(path));
    if (!is_standard_input)
        fclose(stream);
    return is_right;
}

static bool read_headers(struct explain_options *options)
{
    for (size_t i = 0; i < options->header_options.count; i++) {
        const char *option = options->header_options.item[i];
        bool is_right = option[0] == '@' ? add_header_file(&options->headers, option + 1)
                                         : add_header(&options->headers, option, NULL, 0);
        if (!is_right)
            return false;
    }
    return true;
}

/* ---- explaining ---- */

/* "/usr/bin/git": the library knows a program by the last part. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* A document for one URL, and a line for each of several. */
static void print_json(json_t *document, bool is_only_one)
{
    if (is_only_one) {
        output_json(document);
        return;
    }
    json_dumpf(document, stdout, JSON_COMPACT | JSON_REAL_PRECISION(12));
    putchar('\n');
    json_decref(document);
}

/* The URL is not repeated: there may be a password in it. */
static void refuse_url(const struct explain_options *options, const struct view *view, size_t index)
{
    char message[128];
    json_t *document;

    snprintf(message, sizeof(message), "libcurl %s does not take this for a URL", url_libcurl_version());
    if (options->as_json) {
        document = view_json(view);
        json_object_set_new(document, "error", json_text(message));
        print_json(document, options->urls.count == 1);
    }
    complain("URL %zu: %s", index + 1, message);
}

static int explain_all(const struct explain_options *options, const struct circumstances *circumstances,
                       const struct view *view)
{
    static struct explanation explanation;
    int status = STATUS_SUCCESS;

    if (!options->as_json)
        view_print(view);
    for (size_t i = 0; i < options->urls.count; i++) {
        if (!explanation_make(&explanation, circumstances, options->urls.item[i])) {
            complain("out of memory");
            return STATUS_NEGATIVE;
        }
        if (explanation.url.kind == URL_NOT_PARSED) {
            refuse_url(options, view, i);
            status = STATUS_MISUSE;
        } else if (options->as_json) {
            print_json(explanation_json(&explanation, view), options->urls.count == 1);
        } else {
            explanation_print(&explanation);
        }
    }
    return status;
}

static int explain(const struct explain_options *options)
{
    static struct view view;
    struct environment environment;
    struct config_sources sources = {0};
    struct fault_counter faults = {.errors_only = true};
    struct circumstances circumstances = {
        .method = options->method,
        .program = base_name(options->program),
        .headers = options->headers.item,
        .header_count = options->headers.count,
    };

    environment_read(&environment);
    struct config *config = options->config != NULL ? input_load(options->config, environment.set, fault_print, &faults)
                                                    : config_files_load(&environment, &sources, fault_print, &faults);
    if (config == NULL) {
        complain("%s: %s", options->config != NULL ? input_name(options->config) : "configuration",
                 strerror(options->config != NULL ? errno : ENOMEM));
        return options->config != NULL ? STATUS_MISUSE : STATUS_NEGATIVE;
    }
    struct config *machine = sources.machine_wide ? config_files_load_machine("") : NULL;
    view_open(&view, options->segment, &environment, config);
    circumstances.config = config;
    circumstances.machine = machine;
    circumstances.mode = environment.mode;
    circumstances.segment = view.is_open ? &view.segment : NULL;
    int status = explain_all(options, &circumstances, &view);
    view_close(&view);
    config_free(machine);
    config_free(config);
    return status;
}

int command_explain(int argc, char **argv)
{
    static const struct argp_option option_list[] = {
        {"config", 'c', "FILE", 0, "read FILE instead of the usual configuration files", 0},
        {"request", 'X', "METHOD", 0, "the request's method (GET)", 0},
        {"header", 'H', "HEADER", 0, "a header of the request, NAME: VALUE, or @FILE with one a line; may be repeated",
         0},
        {"program", OPTION_PROGRAM, "NAME", 0, "the program that makes the request", 0},
        {"json", OPTION_JSON, NULL, 0, "print JSON, for several URLs a line each", 0},
        {"segment", OPTION_SEGMENT, "NAME", 0, "look at this segment instead of one's own", 0},
        {0},
    };
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "URL...",
        .doc = "Explains which section of the configuration speaks for a request, what is in force for it and where "
               "that was set, and what would happen to it now.",
    };
    struct explain_options options = {.method = "GET", .program = ""};
    char error[512];
    int status = STATUS_MISUSE;

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    setlocale(LC_CTYPE, "");
    if (!is_token(options.method, strlen(options.method)) || strlen(options.method) >= METHOD_SIZE)
        complain("-X: expected a method such as GET");
    else if (!read_headers(&options))
        status = STATUS_MISUSE;
    else if (!url_open(error, sizeof(error)))
        complain("%s", error);
    else
        status = explain(&options);
    list_free(&options.header_options);
    list_free(&options.headers);
    list_free(&options.urls);
    return status;
}
