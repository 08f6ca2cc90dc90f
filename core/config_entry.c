/* SPDX-License-Identifier: MIT */
/*
 * Config entries: a value goes to the field of its key; a key that is unknown or stands in the wrong
 * place is told where it belongs.
 */
#include "core/config_builder.h"

#include <string.h>

#define VALUE_SHOWN 60 /* characters of a bad value that a message repeats */

/* A text or a name may be a credential in the wrong place: it is not repeated. */
static bool may_be_shown(const struct key *key)
{
    return key->kind != KIND_TEXT && key->kind != KIND_NAME && key->kind != KIND_NAMES;
}

/* Quotes would be part of the value, and a file's name or a program's may hold some. */
static bool is_quoted(const char *text)
{
    size_t length = strlen(text);
    return length >= 2 && (text[0] == '"' || text[0] == '\'') && text[length - 1] == text[0];
}

static void report_bad_value(struct config_builder *builder, const struct key *key, const struct config_line *line,
                             const char *expected)
{
    const char *word = keys_special_word(key);
    const char *also = word != NULL ? ", or " : "";
    size_t length = strlen(line->text);
    int shown = may_be_shown(key) ? (int)builder_shown(line->text, length, VALUE_SHOWN) : 0;

    if (word == NULL)
        word = "";
    if (length == 0)
        builder_report(builder, SEVERITY_ERROR, line->number, "%s has no value: expected %s%s%s", key->name, expected,
                       also, word);
    else
        builder_report(builder, SEVERITY_ERROR, line->number, "%s%s%.*s%s: expected %s%s%s%s", key->name,
                       shown > 0 ? " = " : "", shown, line->text, shown > 0 && length > VALUE_SHOWN ? "..." : "",
                       expected, also, word, is_quoted(line->text) ? ", without quotes around it" : "");
}

bool builder_store_value(struct config_builder *builder, const struct key *key, const struct config_line *line,
                         void *field)
{
    const char *text = line->text;
    if (key->kind == KIND_TEXT || key->kind == KIND_NAME || key->kind == KIND_NAMES)
        text = builder_copy(builder, text);
    if (text == NULL)
        return false;
    const char *expected = key->kind == KIND_TEXT && is_quoted(text) ? "a text" : keys_parse_value(key, text, field);
    if (expected == NULL)
        return true;
    report_bad_value(builder, key, line, expected);
    return false;
}

void builder_note_origin(struct config_builder *builder, const struct key *key, const struct config_line *line,
                         struct origin *origin)
{
    if (origin->file == builder->file)
        builder_report(builder, SEVERITY_WARNING, line->number, "\"%s\" is given again: this replaces line %u",
                       key->name, origin->line);
    *origin = (struct origin){builder->file, line->number};
    if (!key->in_force)
        builder_report(builder, SEVERITY_WARNING, line->number, "\"%s\" is accepted, but not in force yet", key->name);
}

static void store_setting(struct config_builder *builder, const struct key *key, const struct config_line *line)
{
    struct config *config = &builder->owned->config;
    if (builder->kind == LAYER_PRESET && key == &curtsy_keys[CURTSY_KEY_presets]) {
        builder_report(builder, SEVERITY_WARNING, line->number, "\"%s\" is ignored here: a preset names no others",
                       key->name);
        return;
    }
    if (builder_store_value(builder, key, line, (char *)&config->settings + key->offset))
        builder_note_origin(builder, key, line, &config->settings_origins[key - curtsy_keys]);
}

static bool store_policy_value(struct config_builder *builder, const struct key *key, const struct config_line *line)
{
    struct section *section = builder_section(builder);
    if (!builder_store_value(builder, key, line, (char *)&section->values + key->offset))
        return false;
    section->set[key - policy_keys] = true;
    builder_note_origin(builder, key, line, &section->origins[key - policy_keys]);
    return true;
}

/* quota and rate are two ways to say the same.  Both in one section of one layer is a mistake, unless
 * one of them says none; a later layer's word about either replaces both. */
static void store_quota_or_rate(struct config_builder *builder, const struct key *key, const struct config_line *line)
{
    struct section *section = builder_section(builder);
    bool is_quota = key == &policy_keys[POLICY_KEY_quota];
    enum policy_key other = is_quota ? POLICY_KEY_rate : POLICY_KEY_quota;
    struct rate_list *other_value = is_quota ? &section->values.rate : &section->values.quota;
    struct origin *other_origin = &section->origins[other];
    bool same_layer = section->set[other] && other_origin->file == builder->file;
    struct rate_list value;

    if (same_layer && other_value->count > 0 && keys_parse_value(key, line->text, &value) == NULL && value.count > 0) {
        builder_report(builder, SEVERITY_ERROR, line->number,
                       "\"%s\" and \"%s\" exclude each other: expected one of them in [%s]; \"%s\" of line %u holds",
                       key->name, policy_keys[other].name, section->name, policy_keys[other].name, other_origin->line);
    } else if (store_policy_value(builder, key, line) && !same_layer) {
        section->set[other] = false;
        *other_value = (struct rate_list){0};
        *other_origin = (struct origin){NULL, 0};
    }
}

/* "hosts" is asked for first: there are few matchers, so that a near one is hardly by chance. */
static const char *find_nearest(enum place place, const char *name)
{
    if (place == PLACE_CURTSY)
        return keys_nearest(KEY_GROUP_CURTSY, name);
    const char *nearest = keys_nearest(KEY_GROUP_MATCH, name);
    return nearest != NULL ? nearest : keys_nearest(KEY_GROUP_POLICY, name);
}

static void report_unknown(struct config_builder *builder, const struct config_line *line)
{
    const char *section = builder->place == PLACE_CURTSY ? "curtsy" : builder_section(builder)->name;
    const char *nearest = find_nearest(builder->place, line->key);
    if (nearest != NULL)
        builder_report(builder, SEVERITY_ERROR, line->number, "unknown key \"%s\" in [%s]; did you mean \"%s\"?",
                       line->key, section, nearest);
    else
        builder_report(builder, SEVERITY_ERROR, line->number,
                       "unknown key \"%s\" in [%s]; see ratelimit.ini(5) for the keys", line->key, section);
}

static void report_before_sections(struct config_builder *builder, const struct config_line *line)
{
    bool is_setting = keys_find(KEY_GROUP_CURTSY, line->key) != NULL;
    builder_report(builder, SEVERITY_ERROR, line->number, "\"%s\" stands before any section: expected below %s",
                   line->key, is_setting ? "[curtsy]" : "[default], or below a host such as [api.example.com]");
}

static void store_entry_of_curtsy(struct config_builder *builder, const struct config_line *line)
{
    const struct key *key = keys_find(KEY_GROUP_CURTSY, line->key);
    if (key != NULL)
        store_setting(builder, key, line);
    else if (keys_find(KEY_GROUP_POLICY, line->key) != NULL || keys_find(KEY_GROUP_MATCH, line->key) != NULL)
        builder_report(builder, SEVERITY_ERROR, line->number,
                       "\"%s\" does not belong in [curtsy]: expected in [default], or below a host such as "
                       "[api.example.com]",
                       line->key);
    else
        report_unknown(builder, line);
}

/* [default] speaks for everything, always. */
static void store_matcher(struct config_builder *builder, const struct key *key, const struct config_line *line)
{
    if (builder_section(builder)->pattern_count > 0)
        builder_take_matcher(builder, key, line);
    else
        builder_report(builder, SEVERITY_ERROR, line->number,
                       "\"%s\" does not belong in [default]: expected below a host such as [api.example.com], "
                       "or below [*] for every host",
                       key->name);
}

static void store_entry_of_section(struct config_builder *builder, const struct config_line *line)
{
    const struct key *key = keys_find(KEY_GROUP_POLICY, line->key);
    if (key == &policy_keys[POLICY_KEY_quota] || key == &policy_keys[POLICY_KEY_rate])
        store_quota_or_rate(builder, key, line);
    else if (key != NULL)
        store_policy_value(builder, key, line);
    else if ((key = keys_find(KEY_GROUP_MATCH, line->key)) != NULL)
        store_matcher(builder, key, line);
    else if (keys_find(KEY_GROUP_CURTSY, line->key) != NULL)
        builder_report(builder, SEVERITY_ERROR, line->number,
                       "\"%s\" is a setting of Curtsy itself: expected in [curtsy]", line->key);
    else
        report_unknown(builder, line);
}

void builder_take_entry(struct config_builder *builder, const struct config_line *line)
{
    switch (builder->place) {
    case PLACE_NONE:
        report_before_sections(builder, line);
        break;
    case PLACE_CURTSY:
        store_entry_of_curtsy(builder, line);
        break;
    case PLACE_SECTION:
        store_entry_of_section(builder, line);
        break;
    case PLACE_BAD:
        break;
    }
}
