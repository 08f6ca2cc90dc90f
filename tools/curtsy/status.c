/* SPDX-License-Identifier: MIT */
/*
 * curtsy status: every bucket of the segment now: its limits, the tokens in it, what blocks it, and
 * what was counted.  It only reads.
 *
 * A user sees the segment that his programs use.  Root, unless he names one, sees those of everybody;
 * as JSON only where he asks for it by --all, since a script needs to know which of the two forms it gets.
 */
#include "tools/curtsy/bucket_view.h"
#include "tools/curtsy/command.h"
#include "tools/curtsy/operate.h"
#include "tools/curtsy/output.h"
#include "tools/curtsy/segment_list.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_JSON = 256, OPTION_SEGMENT, OPTION_ALL };

struct status_options {
    const char *segment;
    const char *host;
    struct host_word word;
    bool as_json;
    bool all;
};

/* What is under way: one segment after the other. */
struct status {
    const struct status_options *options;
    const struct operation *operation;
    const struct view *view; /* the one that is being shown, open or not */
    bool lists_all;
    size_t bucket_count; /* of those that were asked for */
    size_t segment_count;
    size_t printed_count; /* of the segments, as text */
    json_t *segments;     /* NULL: text */
    bool is_whole;        /* enough memory */
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct status_options *options = state->input;

    switch (key) {
    case OPTION_SEGMENT:
        options->segment = argument;
        return 0;
    case OPTION_JSON:
        options->as_json = true;
        return 0;
    case OPTION_ALL:
        options->all = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->host != NULL)
            return ARGP_ERR_UNKNOWN;
        options->host = argument;
        return 0;
    case ARGP_KEY_END:
        if (options->all && options->segment != NULL)
            argp_error(state, "--all and --segment exclude each other");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ------------------------------------------------------------------- one segment ---- */

/* The buckets of the host that was asked for, or all with what is left of those that are gone. */
static bool take_pictures(const struct status *status, struct bucket_pictures *pictures)
{
    const struct operation *operation = status->operation;
    const struct segment *segment = &status->view->segment;
    const struct status_options *options = status->options;
    struct host_buckets buckets = {0};
    bool is_whole;

    *pictures = (struct bucket_pictures){0};
    if (options->host != NULL)
        is_whole = host_buckets_find(segment, &options->word, operation->config, operation->machine, false,
                                     operation->now_ns, &buckets);
    else
        is_whole = host_buckets_all(segment, &buckets);
    is_whole = is_whole && bucket_pictures_take(pictures, segment, buckets.item, buckets.count, operation->now_ns);
    host_buckets_free(&buckets);
    if (is_whole && options->host == NULL)
        bucket_pictures_add_other(pictures, segment);
    return is_whole;
}

static json_t *segment_json(const struct status *status, const struct bucket_pictures *pictures)
{
    const struct view *view = status->view;
    json_t *document = view_json(view);
    int64_t until_ns;

    if (view->is_open) {
        enum operator_mode mode = segment_mode(&view->segment, status->operation->now_ns, &until_ns);
        operator_mode_add_json(document, mode, until_ns, status->operation->now_ns);
    }
    json_object_set_new(document, "buckets", bucket_pictures_json(pictures));
    if (!view->is_open)
        json_object_set_new(document, "error", json_text(view->error));
    return document;
}

/* An empty line before each but the first. */
static void begin_segment(struct status *status)
{
    if (status->printed_count++ > 0)
        putchar('\n');
}

static void print_segment(struct status *status, const struct bucket_pictures *pictures)
{
    const struct view *view = status->view;
    int64_t until_ns;

    begin_segment(status);
    view_print(view);
    if (!view->is_open)
        return;
    enum operator_mode mode = segment_mode(&view->segment, status->operation->now_ns, &until_ns);
    operator_mode_print(mode, until_ns, status->operation->now_ns, "");
    bucket_pictures_print(pictures);
}

/* Of many, people see those that have something of the host. */
static void show_segment(struct status *status, const struct view *view)
{
    struct bucket_pictures pictures = {0};

    status->view = view;
    if (view->is_open && !take_pictures(status, &pictures))
        status->is_whole = false;
    if (status->segments != NULL)
        json_array_append_new(status->segments, segment_json(status, &pictures));
    else if (!status->lists_all || status->options->host == NULL || pictures.count > 0)
        print_segment(status, &pictures);
    status->bucket_count += pictures.count;
    status->segment_count++;
    bucket_pictures_free(&pictures);
}

/* ------------------------------------------------------------------- all of them ---- */

static void show_other_layout(struct status *status, const struct found_segment *found)
{
    if (status->segments != NULL) {
        json_array_append_new(status->segments, found_segment_json(found));
    } else if (status->options->host == NULL) {
        begin_segment(status);
        found_segment_print(found);
    }
    status->segment_count++;
}

static bool is_same_file(const char *name, const char *other)
{
    char path[PATH_MAX], other_path[PATH_MAX];

    return mapping_path(name, path, sizeof(path), NULL, 0) &&
           mapping_path(other, other_path, sizeof(other_path), NULL, 0) && strcmp(path, other_path) == 0;
}

/* Those of the usual names, but for the one that was shown first; of other layouts only, or all. */
static void show_found(struct status *status, uint32_t owner, bool others_only)
{
    const struct operation *operation = status->operation;
    static struct view view;
    struct segment_list list;

    if (!segment_list_find(&list, owner))
        status->is_whole = false;
    for (size_t i = 0; i < list.count; i++) {
        const struct found_segment *found = &list.item[i];
        if (!found->is_of_this_layout) {
            show_other_layout(status, found);
        } else if (!others_only && !is_same_file(found->name, operation->view.name)) {
            view_open(&view, found->name, &operation->environment, operation->config);
            show_segment(status, &view);
            view_close(&view);
        }
    }
    segment_list_free(&list);
}

/* ------------------------------------------------------------------ the answer ---- */

static int conclude(const struct status *status)
{
    const struct status_options *options = status->options;

    if (!status->is_whole)
        complain("out of memory");
    else if (options->host != NULL && status->bucket_count == 0)
        complain("no bucket of %s", options->host);
    else
        return STATUS_SUCCESS;
    return STATUS_NEGATIVE;
}

/* Who has named a segment is asking about that one. */
static bool is_named(const struct status *status)
{
    return status->options->segment != NULL || status->operation->environment.segment != NULL;
}

/* No segment is an answer, and a script that asks for JSON gets it as JSON. */
static int show_nothing(struct status *status)
{
    const struct view *view = status->view;

    if (status->options->as_json) {
        output_json(segment_json(status, &(struct bucket_pictures){0}));
        complain("no segment: %s", view->error);
    } else if (view->is_missing) {
        printf("nothing has run under Curtsy here yet: no segment %s\n", view->name);
    } else {
        view_print(view);
        if (access(CURTSY_OFF_FILE, F_OK) == 0)
            printf("%sswitched off by %s%s\n", output_style(STYLE_CAUTION), CURTSY_OFF_FILE, output_style(STYLE_PLAIN));
    }
    return STATUS_NEGATIVE;
}

/* The segment in operation.view alone, but for a word about one's own of other layouts: a program that
 * was started before an update goes on under the old one. */
static int show_one(struct status *status)
{
    const struct status_options *options = status->options;
    const struct view *view = status->view;
    struct bucket_pictures pictures;
    int answer;

    if (options->as_json && view->is_open) {
        status->is_whole = take_pictures(status, &pictures);
        status->bucket_count = pictures.count;
        output_json(segment_json(status, &pictures));
        bucket_pictures_free(&pictures);
        return conclude(status);
    }
    if (view->is_open) {
        show_segment(status, view);
        answer = conclude(status);
    } else {
        answer = show_nothing(status);
    }
    if (!options->as_json && !is_named(status) && options->host == NULL) {
        status->printed_count = 1;
        show_found(status, geteuid(), true);
    }
    return answer;
}

/* One's own that is not there yet is worth no line where there are others. */
static int show_all(struct status *status)
{
    const struct view *view = status->view;
    bool as_json = status->options->as_json;

    status->segments = as_json ? json_array() : NULL;
    status->lists_all = true;
    if (!view->is_missing)
        show_segment(status, view);
    show_found(status, UINT32_MAX, false);
    if (as_json)
        output_json(json_pack("{s:o}", "segments", status->segments));
    if (status->segment_count > 0)
        return conclude(status);
    if (as_json)
        complain("no segment");
    else
        printf("nothing has run under Curtsy here yet: no segment %s\n", view->name);
    return STATUS_NEGATIVE;
}

static bool wants_all(const struct status *status)
{
    const struct status_options *options = status->options;

    if (options->all || options->as_json)
        return options->all;
    return geteuid() == 0 && !is_named(status);
}

int command_status(int argc, char **argv)
{
    static const struct argp_option option_list[] = {
        {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
        {"segment", OPTION_SEGMENT, "NAME", 0, "look at this segment instead of one's own", 0},
        {"all", OPTION_ALL, NULL, 0, "look at the segments of all users, as root does unless he names one", 0},
        {0},
    };
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "[HOST]",
        .doc = "Shows each bucket's limits, tokens, blocks, waiters and counts, or those of HOST.",
    };
    static struct operation operation;
    struct status_options options = {0};
    struct status status = {.options = &options, .operation = &operation, .view = &operation.view, .is_whole = true};
    int answer = STATUS_NEGATIVE;

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    if (options.host != NULL && !parse_host_word(options.host, &options.word))
        return STATUS_MISUSE;
    operation_begin(&operation, options.segment, MAPPING_VIEW);
    if (operation.view.name[0] == '\0')
        operation_complain(&operation);
    else
        answer = wants_all(&status) ? show_all(&status) : show_one(&status);
    operation_end(&operation);
    return answer;
}
