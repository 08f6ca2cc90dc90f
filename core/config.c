/* SPDX-License-Identifier: MIT */
/*
 * Config: layers and sections.  See config_builder.h for how it hangs together.
 */
#include "core/config_builder.h"

#include "core/hash.h"
#include "core/policy.h"
#include "core/section_name.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_SIZE 1024
#define NAME_SHOWN 200 /* characters of a bad section name that a message repeats */

void builder_report(struct config_builder *builder, enum severity severity, unsigned line, const char *format, ...)
{
    char message[MESSAGE_SIZE];
    va_list arguments;

    if (builder->sink == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const struct diagnostic diagnostic = {severity, builder->file, line, message};
    builder->sink(builder->sink_context, &diagnostic);
}

size_t builder_shown(const char *text, size_t length, size_t most)
{
    if (length <= most)
        return length;
    while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80)
        most--;
    return most;
}

char *builder_copy(struct config_builder *builder, const char *text)
{
    char *copy = arena_copy(&builder->owned->arena, text, strlen(text));
    if (copy == NULL)
        builder->out_of_memory = true;
    return copy;
}

void *builder_allocate(struct config_builder *builder, size_t count, size_t size)
{
    void *memory = arena_allocate(&builder->owned->arena, count * size);
    if (memory == NULL)
        builder->out_of_memory = true;
    return memory;
}

static struct config *config_of(struct config_builder *builder)
{
    return &builder->owned->config;
}

struct section *builder_section(struct config_builder *builder)
{
    return &config_of(builder)->sections[builder->section];
}

static void table_insert(struct config_builder *builder, unsigned index)
{
    unsigned at = (unsigned)builder->drafts[index].hash & (builder->table_size - 1);
    while (builder->table[at] != 0)
        at = (at + 1) & (builder->table_size - 1);
    builder->table[at] = index + 1;
}

/* The section of that name, or -1. */
static long table_find(const struct config_builder *builder, uint64_t hash, const char *name)
{
    const struct section *sections = builder->owned->config.sections;
    unsigned at = (unsigned)hash & (builder->table_size - 1);
    for (; builder->table[at] != 0; at = (at + 1) & (builder->table_size - 1)) {
        unsigned index = builder->table[at] - 1;
        if (builder->drafts[index].hash == hash && strcmp(sections[index].name, name) == 0)
            return index;
    }
    return -1;
}

/* Room for twice as many sections. */
static bool grow(struct config_builder *builder)
{
    struct config *config = config_of(builder);
    unsigned capacity = builder->capacity == 0 ? 8 : builder->capacity * 2;

    struct section *sections = reallocarray(config->sections, capacity, sizeof *sections);
    if (sections == NULL)
        return false;
    config->sections = sections;
    struct draft *drafts = reallocarray(builder->drafts, capacity, sizeof *drafts);
    if (drafts == NULL)
        return false;
    builder->drafts = drafts;
    unsigned *table = calloc(2 * (size_t)capacity, sizeof *table);
    if (table == NULL)
        return false;
    free(builder->table);
    builder->table = table;
    builder->table_size = 2 * capacity;
    builder->capacity = capacity;
    for (unsigned i = 0; i < config->section_count; i++)
        table_insert(builder, i);
    return true;
}

/* The header's own pattern is the first of a section's patterns. */
static bool describe_section(struct config_builder *builder, struct section *section, const struct section_name *name)
{
    section->credential = -1;
    section->name = builder_copy(builder, name->canonical);
    if (name->kind == SECTION_DEFAULT || section->name == NULL)
        return section->name != NULL;
    section->patterns = builder_allocate(builder, 1, sizeof *section->patterns);
    const char *host = builder_copy(builder, name->host);
    if (section->patterns == NULL || host == NULL)
        return false;
    section->patterns[0] = (struct host_pattern){host, name->port};
    section->pattern_count = 1;
    if (name->path[0] != '\0' && (section->path = builder_copy(builder, name->path)) == NULL)
        return false;
    return name->label[0] == '\0' || (section->label = builder_copy(builder, name->label)) != NULL;
}

static bool add_section(struct config_builder *builder, const struct section_name *name, uint64_t hash)
{
    struct config *config = config_of(builder);
    if (config->section_count == builder->capacity && !grow(builder)) {
        builder->out_of_memory = true;
        return false;
    }
    unsigned index = config->section_count;
    memset(&config->sections[index], 0, sizeof config->sections[index]);
    memset(&builder->drafts[index], 0, sizeof builder->drafts[index]);
    builder->drafts[index].hash = hash;
    if (!describe_section(builder, &config->sections[index], name))
        return false;
    config->section_count++;
    table_insert(builder, index);
    builder->section = index;
    return true;
}

static void report_bad_name(struct config_builder *builder, const struct config_line *line, const char *expected)
{
    char ascii[SECTION_NAME_SIZE];
    size_t length = strlen(line->text);
    int shown = (int)builder_shown(line->text, length, NAME_SHOWN);

    /* What stands before an @ may be a password, and a query may hold one. */
    if (strpbrk(line->text, "@?") != NULL)
        builder_report(builder, SEVERITY_ERROR, line->number, "[...]: expected %s", expected);
    else if (expected == section_name_not_ascii && section_name_in_ascii(line->text, length, ascii, sizeof ascii))
        builder_report(builder, SEVERITY_ERROR, line->number, "[%.*s]: expected %s, here [%s]", shown, line->text,
                       expected, ascii);
    else
        builder_report(builder, SEVERITY_ERROR, line->number, "[%.*s]: expected %s", shown, line->text, expected);
}

/* [defaults] is a host of that name, which is hardly meant. */
static void check_spelling(struct config_builder *builder, const struct config_line *line,
                           const struct section_name *name)
{
    const char *host = name->host;
    static const char *const meant[] = {"default", "curtsy"};
    for (size_t i = 0; i < sizeof meant / sizeof meant[0]; i++)
        if (host[0] == meant[i][0] && strlen(host) <= KEYS_DISTANCE_LENGTH_MAX && keys_distance(host, meant[i]) <= 2)
            builder_report(builder, SEVERITY_WARNING, line->number,
                           "[%s] speaks for a host of that name; did you mean [%s]?", name->canonical, meant[i]);
}

/* A second header in one file is more likely forgotten than meant.  One with its key behind it is a
 * setting by itself, as on a command line. */
static void note_header(struct config_builder *builder, const struct config_line *line, const char *name,
                        struct origin *last)
{
    if (last->file == builder->file && line->kind == CONFIG_LINE_SECTION)
        builder_report(builder, SEVERITY_WARNING, line->number, "[%s] is given again: this goes on with line %u", name,
                       last->line);
    *last = (struct origin){builder->file, line->number};
}

static void enter_section(struct config_builder *builder, const struct config_line *line)
{
    struct section_name name;
    const char *expected = section_name_parse(line->text, &name);
    if (expected != NULL) {
        report_bad_name(builder, line, expected);
        builder->place = PLACE_BAD;
        return;
    }
    if (name.kind == SECTION_CURTSY) {
        note_header(builder, line, name.canonical, &builder->last_curtsy);
        builder->place = PLACE_CURTSY;
        return;
    }
    uint64_t hash = hash_text(HASH_START, name.canonical);
    long found = table_find(builder, hash, name.canonical);
    if (found >= 0)
        builder->section = (unsigned)found;
    else if (!add_section(builder, &name, hash))
        return;
    builder->place = PLACE_SECTION;

    struct section *section = builder_section(builder);
    section->order = builder->mentions++;
    if (section->origin.file == NULL && name.kind == SECTION_HOST)
        check_spelling(builder, line, &name);
    if (section->origin.file == NULL)
        section->origin = (struct origin){builder->file, line->number};
    note_header(builder, line, section->name, &builder->drafts[builder->section].last);
}

static bool take_line(void *context, const struct config_line *line)
{
    struct config_builder *builder = context;
    switch (line->kind) {
    case CONFIG_LINE_SECTION:
    case CONFIG_LINE_SECTION_OF_ENTRY:
        enter_section(builder, line);
        break;
    case CONFIG_LINE_ENTRY:
        builder_take_entry(builder, line);
        break;
    case CONFIG_LINE_BAD_SECTION:
        builder->place = PLACE_BAD;
        builder_report(builder, SEVERITY_ERROR, line->number, "%s", line->text);
        break;
    case CONFIG_LINE_FAULT:
        builder_report(builder, SEVERITY_ERROR, line->number, "%s", line->text);
        break;
    }
    return !builder->out_of_memory;
}

/* Of a builder that may be half made. */
static void builder_free(struct config_builder *builder)
{
    free(builder->drafts);
    free(builder->table);
    free(builder);
}

struct config_builder *config_builder_new(diagnostic_sink *sink, void *sink_context)
{
    struct config_builder *builder = calloc(1, sizeof *builder);
    struct owned_config *owned = calloc(1, sizeof *owned);
    static const struct section_name default_name = {.kind = SECTION_DEFAULT, .canonical = "default"};

    if (builder == NULL || owned == NULL) {
        free(builder);
        free(owned);
        return NULL;
    }
    builder->sink = sink;
    builder->sink_context = sink_context;
    builder->owned = owned;
    owned->config.arena = &owned->arena;
    settings_defaults(&owned->config.settings);
    if (!add_section(builder, &default_name, hash_text(HASH_START, "default"))) {
        config_free(&owned->config);
        builder_free(builder);
        return NULL;
    }
    return builder;
}

bool config_builder_add(struct config_builder *builder, const char *file, const char *text, size_t length)
{
    return config_builder_add_layer(builder, LAYER_FILE, file, text, length);
}

bool config_builder_add_layer(struct config_builder *builder, enum layer_kind kind, const char *file, const char *text,
                              size_t length)
{
    builder->file = builder_copy(builder, file);
    builder->kind = kind;
    builder->place = kind == LAYER_SET ? PLACE_SECTION : PLACE_NONE;
    builder->section = 0;
    if (builder->file == NULL || !config_reader_run(text, length, take_line, builder))
        builder->out_of_memory = true;
    return !builder->out_of_memory;
}

struct config *config_builder_finish(struct config_builder *builder)
{
    struct config *config = config_of(builder);
    if (builder->out_of_memory || !policy_index_build(config)) {
        config_free(config);
        config = NULL;
    }
    builder_free(builder);
    return config;
}

void config_free(struct config *config)
{
    if (config == NULL)
        return;
    policy_index_free(config->index);
    free(config->sections);
    arena_free(config->arena);
    free(config); /* the first member of its owned_config */
}
