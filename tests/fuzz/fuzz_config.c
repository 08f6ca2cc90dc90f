/* SPDX-License-Identifier: MIT */
/*
 * Fuzzing the configuration: any bytes are a configuration, perhaps with diagnostics.  What is seen
 * beside crashes: lines that exist, messages fit for a terminal, values that are printed as they are
 * read, and an index that finds what a scan finds.
 */
#include "core/config_reader.h"
#include "core/policy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

struct lines {
    unsigned count; /* in the text */
    unsigned last;  /* seen so far */
};

static unsigned count_lines(const uint8_t *data, size_t size)
{
    unsigned count = 1;
    for (size_t i = 0; i < size; i++)
        count += data[i] == '\n';
    return count;
}

static void check_diagnostic(void *context, const struct diagnostic *diagnostic)
{
    const struct lines *lines = context;
    require(diagnostic->line >= 1 && diagnostic->line <= lines->count);
    require(strcmp(diagnostic->file, "fuzz") == 0);
    require(diagnostic->message[0] != '\0');
    for (const char *at = diagnostic->message; *at != '\0'; at++)
        require((unsigned char)*at >= 0x20 || *at == '\t');
}

static bool check_line(void *context, const struct config_line *line)
{
    struct lines *lines = context;
    size_t length = strlen(line->text);
    require(line->number >= 1 && line->number >= lines->last && line->number <= lines->count);
    lines->last = line->number;
    if (line->kind == CONFIG_LINE_ENTRY)
        require(line->key[0] != '\0' && strlen(line->key) <= CONFIG_KEY_LENGTH_MAX);
    bool is_section = line->kind == CONFIG_LINE_SECTION || line->kind == CONFIG_LINE_SECTION_OF_ENTRY;
    if (is_section || (line->kind == CONFIG_LINE_ENTRY && length > 0))
        require(length > 0 && strchr(" \t", line->text[0]) == NULL && strchr(" \t", line->text[length - 1]) == NULL);
    return true;
}

static void check_values(const struct section *section, unsigned lines)
{
    char text[4096], again[4096];
    for (size_t i = 0; i < POLICY_KEY_COUNT; i++) {
        const struct key *key = &policy_keys[i];
        union {
            struct rate_list rates;
            struct status_set statuses;
            const char *text;
        } value;
        if (!section->set[i])
            continue;
        require(section->origins[i].line >= 1 && section->origins[i].line <= lines);
        int length = keys_format_value(key, (const char *)&section->values + key->offset, text, sizeof text);
        if ((size_t)length >= sizeof text)
            continue;
        require(keys_parse_value(key, text, &value) == NULL);
        keys_format_value(key, &value, again, sizeof again);
        require(strcmp(text, again) == 0);
    }
}

/* Nobody is stricter than himself; and beside an administrator who limits nothing, a user's own limits
 * are buckets of his own. */
static void check_tightening(const struct resolved_policy *resolved)
{
    struct resolved_policy same = *resolved, own = *resolved, machine = *resolved;

    policy_tighten(&same, resolved, 1000);
    require(same.bucket_count == resolved->bucket_count);
    machine.bucket_count = 1;
    machine.buckets[0].limits.count = 0;
    policy_tighten(&own, &machine, 1000);
    require(own.bucket_count >= 1 && own.bucket_count <= POLICY_BUCKETS_MAX);
    for (unsigned i = 1; i < own.bucket_count; i++)
        require(own.buckets[i].limits.count > 0 && strlen(own.buckets[i].name) < BUCKET_NAME_SIZE);
}

static void check_target(const struct config *config, const struct policy_target *target)
{
    struct resolved_policy resolved;
    unsigned matching = 0;

    policy_resolve(config, target, &resolved);
    require(resolved.section_count >= 1 && resolved.section_count <= POLICY_SECTIONS_MAX);
    require(resolved.sections[resolved.section_count - 1] == &config->sections[0]);
    require(resolved.bucket_count >= 1 && resolved.bucket_count <= POLICY_PATHS_MAX + 1);
    for (unsigned i = 0; i < resolved.bucket_count; i++)
        require(resolved.buckets[i].name[0] != '\0' && strlen(resolved.buckets[i].name) < BUCKET_NAME_SIZE);
    for (unsigned i = 0; i < config->section_count; i++)
        matching += policy_section_matches(&config->sections[i], target, NULL);
    require(resolved.section_count == (matching < POLICY_SECTIONS_MAX ? matching : POLICY_SECTIONS_MAX));
    check_tightening(&resolved);
}

/* As if the section's own host were asked for, or one that its wildcard stands for. */
static void check_section(const struct config *config, const struct section *section)
{
    char host[512];
    if (section->pattern_count == 0 || strlen(section->patterns[0].host) > 300)
        return;
    const char *pattern = section->patterns[0].host;
    strcpy(host, pattern[0] == '*' ? "any.sub" : "");
    strcat(host, pattern[0] == '*' ? pattern + 1 : pattern);
    struct policy_target target = {host, section->patterns[0].port, "/v1/users/7", "GET", "git", false};
    check_target(config, &target);
    target.path = section->path != NULL ? section->path : "/";
    target.method = section->methods != NULL ? section->methods[0] : "POST";
    target.program = section->programs != NULL ? section->programs[0] : "";
    check_target(config, &target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lines lines = {count_lines(data, size), 0};

    require(config_reader_run((const char *)data, size, check_line, &lines));
    struct config_builder *builder = config_builder_new(check_diagnostic, &lines);
    require(config_builder_add_layer(builder, LAYER_PRESET, "fuzz", (const char *)data, size));
    require(config_builder_add(builder, "fuzz", (const char *)data, size));
    require(config_builder_add_layer(builder, LAYER_SET, "fuzz", (const char *)data, size));
    struct config *config = config_builder_finish(builder);
    require(config != NULL);
    for (unsigned i = 0; i < config->section_count; i++) {
        check_values(&config->sections[i], lines.count);
        if (i < 64)
            check_section(config, &config->sections[i]);
    }
    config_free(config);
    return 0;
}
