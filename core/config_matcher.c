/* SPDX-License-Identifier: MIT */
/*
 * Config matchers: the lists of hosts, methods and programs that narrow or widen what a section
 * speaks for.  One bad item spoils its list, and the section keeps the list that it had.
 */
#include "core/config_builder.h"

#include "core/section_name.h"
#include "core/text_list.h"

#define ITEM_SHOWN 60 /* characters of a bad item that a message repeats */

static void report_bad_item(struct config_builder *builder, const struct key *key, const struct config_line *line,
                            const struct scan *item, const char *expected)
{
    size_t length = (size_t)(item->end - item->at);
    int shown = (int)builder_shown(item->at, length, ITEM_SHOWN);
    char ascii[SECTION_NAME_SIZE];

    /* What stands before an @ may be a password, and a query may hold one. */
    if (memchr(item->at, '@', length) != NULL || memchr(item->at, '?', length) != NULL)
        builder_report(builder, SEVERITY_ERROR, line->number, "%s: expected %s", key->name, expected);
    else if (length == 0)
        builder_report(builder, SEVERITY_ERROR, line->number, "%s: found nothing%s: expected %s", key->name,
                       line->text[0] != '\0' ? " beside a comma" : "", expected);
    else if (expected == section_name_not_ascii && section_name_in_ascii(item->at, length, ascii, sizeof ascii))
        builder_report(builder, SEVERITY_ERROR, line->number, "%s: \"%.*s\": expected %s, here %s", key->name, shown,
                       item->at, expected, ascii);
    else
        builder_report(builder, SEVERITY_ERROR, line->number, "%s: \"%.*s\"%s: expected %s", key->name, shown, item->at,
                       length > ITEM_SHOWN ? "..." : "", expected);
}

static bool store_hosts(struct config_builder *builder, const struct key *key, const struct config_line *line,
                        struct section *section)
{
    size_t capacity = 1 + text_list_count(line->text);
    struct host_pattern *patterns = builder_allocate(builder, capacity, sizeof *patterns);
    const char *rest = line->text;
    unsigned count = 1;
    struct scan item;

    if (patterns == NULL)
        return false;
    patterns[0] = section->patterns[0];
    while (text_list_next(&rest, &item)) {
        char host[HOST_PATTERN_SIZE];
        uint16_t port;
        const char *expected = host_pattern_parse(item.at, (size_t)(item.end - item.at), host, &port);
        if (expected != NULL) {
            report_bad_item(builder, key, line, &item, expected);
            return false;
        }
        const char *copy = builder_copy(builder, host);
        if (copy == NULL)
            return false;
        patterns[count++] = (struct host_pattern){copy, port};
    }
    section->patterns = patterns;
    section->pattern_count = count;
    section->groups_hosts = true;
    return true;
}

/* How the words of a list are read. */
struct word_rule {
    const char *(*check)(const struct scan *word); /* NULL, or what was expected */
    char (*convert)(char c);
};

static const char *check_method(const struct scan *word)
{
    for (const char *at = word->at; at < word->end; at++)
        if (!scan_is_letter(*at) && *at != '-' && *at != '_')
            return "a method such as GET";
    return scan_done(word) ? "a method such as GET" : NULL;
}

static const char *check_program(const struct scan *word)
{
    struct scan name = *word;
    if (scan_char(&name, '!'))
        scan_blanks(&name);
    if (scan_done(&name))
        return "the name of a program";
    if (*name.at == '"' || *name.at == '\'')
        return "the name of a program without quotes";
    return memchr(name.at, '/', (size_t)(name.end - name.at)) != NULL ? "the name of a program without its folder"
                                                                      : NULL;
}

static char to_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static char as_it_is(char c)
{
    return c;
}

static const struct word_rule method_rule = {check_method, to_upper};
static const struct word_rule program_rule = {check_program, as_it_is};

/* A copy without the blanks of "! git". */
static const char *copy_word(struct config_builder *builder, struct scan word, char (*convert)(char c))
{
    char *copy = builder_allocate(builder, (size_t)(word.end - word.at) + 1, 1);
    size_t length = 0;
    if (copy == NULL)
        return NULL;
    if (scan_char(&word, '!')) {
        copy[length++] = '!';
        scan_blanks(&word);
    }
    for (; word.at < word.end; word.at++)
        copy[length++] = convert(*word.at);
    return copy;
}

/* Stores a NULL-terminated list in *out. */
static bool store_words(struct config_builder *builder, const struct key *key, const struct config_line *line,
                        const struct word_rule *rule, const char *const **out)
{
    const char **words = builder_allocate(builder, text_list_count(line->text) + 1, sizeof *words);
    const char *rest = line->text;
    size_t count = 0;
    struct scan item;

    if (words == NULL)
        return false;
    while (text_list_next(&rest, &item)) {
        const char *expected = rule->check(&item);
        if (expected != NULL) {
            report_bad_item(builder, key, line, &item, expected);
            return false;
        }
        words[count] = copy_word(builder, item, rule->convert);
        if (words[count++] == NULL)
            return false;
    }
    *out = words;
    return true;
}

static bool store_methods(struct config_builder *builder, const struct key *key, const struct config_line *line,
                          struct section *section)
{
    return store_words(builder, key, line, &method_rule, &section->methods);
}

static bool store_programs(struct config_builder *builder, const struct key *key, const struct config_line *line,
                           struct section *section)
{
    return store_words(builder, key, line, &program_rule, &section->programs);
}

static bool store_credential(struct config_builder *builder, const struct key *key, const struct config_line *line,
                             struct section *section)
{
    enum credential_match match;
    if (!builder_store_value(builder, key, line, &match))
        return false;
    section->credential = (int)match;
    return true;
}

void builder_take_matcher(struct config_builder *builder, const struct key *key, const struct config_line *line)
{
    static bool (*const store[MATCH_KEY_COUNT])(struct config_builder *, const struct key *, const struct config_line *,
                                                struct section *) = {
        [MATCH_KEY_hosts] = store_hosts,
        [MATCH_KEY_methods] = store_methods,
        [MATCH_KEY_programs] = store_programs,
        [MATCH_KEY_credential] = store_credential,
    };
    size_t index = (size_t)(key - match_keys);
    if (store[index](builder, key, line, builder_section(builder)))
        builder_note_origin(builder, key, line, &builder->drafts[builder->section].match_origins[index]);
}
