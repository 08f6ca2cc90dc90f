/* SPDX-License-Identifier: MIT */
/*
 * Key values: how each kind of value is read (parse_kind) and written (format_kind).  What a single
 * key asks for beyond its kind (no 404 among retry_status, say) is a row of `rules`.
 */
#include "core/keys.h"

#include "core/segment.h"
#include "core/text_list.h"

#include <inttypes.h>
#include <stdio.h>

static bool scan_is(const struct scan *scan, const char *word)
{
    return scan_equals_ignoring_case(scan->at, (size_t)(scan->end - scan->at), word);
}

static bool text_is(const char *text, const char *word)
{
    struct scan scan = scan_text(text, strlen(text));
    scan_trim(&scan);
    return scan_is(&scan, word);
}

/* A field name: one or more characters of a token (RFC 9110, section 5.6.2). */
static bool is_token(const struct scan *scan)
{
    for (const char *at = scan->at; at < scan->end; at++)
        if (!scan_is_letter(*at) && !scan_is_digit(*at) && (*at == '\0' || strchr("!#$%&'*+-.^_`|~", *at) == NULL))
            return false;
    return !scan_done(scan);
}

/* ---- values: reading ---- */

/* 429, or 520-524. */
static bool scan_statuses(struct scan *scan, int *first, int *last)
{
    if (!scan_number(scan, 3, 3, first))
        return false;
    *last = *first;
    scan_blanks(scan);
    if (scan_char(scan, '-')) {
        scan_blanks(scan);
        if (!scan_number(scan, 3, 3, last))
            return false;
    }
    return scan_done(scan) && *first >= 100 && *first <= *last && *last < 600;
}

static const char *parse_statuses(const char *text, struct status_set *out)
{
    struct status_set set = {{0}};
    struct scan item;

    while (text_list_next(&text, &item)) {
        int first, last;
        if (!scan_statuses(&item, &first, &last))
            return "statuses such as 429, 503 or 520-524";
        for (int status = first; status <= last; status++)
            set.bits[(status - 100) / 64] |= UINT64_C(1) << ((status - 100) % 64);
    }
    *out = set;
    return NULL;
}

/* In the order of enum error_kind's bits. */
static const char *const error_words[] = {"resolve", "connect", "timeout", "reset", "stream"};
#define ERROR_WORD_COUNT (sizeof error_words / sizeof error_words[0])

static const char *parse_errors(const char *text, uint32_t *out)
{
    uint32_t errors = 0;
    struct scan item;

    while (text_list_next(&text, &item)) {
        size_t i = 0;
        while (i < ERROR_WORD_COUNT && !scan_is(&item, error_words[i]))
            i++;
        if (i == ERROR_WORD_COUNT)
            return "some of resolve, connect, timeout, reset, stream";
        errors |= UINT32_C(1) << i;
    }
    *out = errors;
    return NULL;
}

static const char *parse_text(const char *text, const char **out)
{
    text += strspn(text, " \t");
    if (*text == '\0')
        return "a text";
    *out = text;
    return NULL;
}

static const char *parse_name(const char *text, const char **out)
{
    text += strspn(text, " \t");
    struct scan scan = scan_text(text, strlen(text));
    return is_token(&scan) ? parse_text(text, out) : "the name of a header field";
}

static const char *parse_names(const char *text, const char **out)
{
    const char *rest = text;
    struct scan item;
    while (text_list_next(&rest, &item))
        if (!is_token(&item))
            return "names, with commas between them";
    return parse_text(text, out);
}

/* Octal, as for chmod(1).  Others than its owner may write a segment only if they may read it. */
static const char *parse_permissions(const char *text, uint32_t *out)
{
    static const char *const known[] = {"0600", "600", "0660", "660", "0666", "666"};
    static const uint32_t modes[] = {0600, 0600, 0660, 0660, 0666, 0666};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (text_is(text, known[i])) {
            *out = modes[i];
            return NULL;
        }
    return "0600, 0660 or 0666";
}

static const char *parse_choice(const struct key *key, const char *text, unsigned *out)
{
    for (unsigned i = 0; key->choices[i] != NULL; i++) {
        if (!text_is(text, key->choices[i]))
            continue;
        *out = i;
        return NULL;
    }
    return key->expected;
}

static bool is_switch(const struct key *key)
{
    return key->default_text != NULL && key->default_text[0] == 'o';
}

static const char *parse_bool(const struct key *key, const char *text, bool *out)
{
    const char *expected = units_parse_bool(text, out);
    return expected != NULL && is_switch(key) ? "on or off" : expected;
}

static const char *parse_kind(const struct key *key, const char *text, void *out)
{
    switch (key->kind) {
    case KIND_DURATION:
        return units_parse_duration(text, out);
    case KIND_RATES:
        return units_parse_rates(text, out);
    case KIND_PERCENT:
        return units_parse_percent(text, out);
    case KIND_FACTOR:
        return units_parse_factor(text, out);
    case KIND_COUNT:
        return units_parse_count(text, out);
    case KIND_SIZE:
        return units_parse_size(text, out);
    case KIND_BOOL:
        return parse_bool(key, text, out);
    case KIND_STATUSES:
        return parse_statuses(text, out);
    case KIND_PERMISSIONS:
        return parse_permissions(text, out);
    case KIND_ERRORS:
        return parse_errors(text, out);
    case KIND_NAME:
        return parse_name(text, out);
    case KIND_NAMES:
        return parse_names(text, out);
    case KIND_CHOICE:
        return parse_choice(key, text, out);
    case KIND_TEXT:
        break;
    }
    return parse_text(text, out);
}

/* ---- values: writing ---- */

/* Appends to a list as snprintf does: *used counts what does not fit, too. */
static void append(char *buffer, size_t size, int *used, const char *text)
{
    size_t at = (size_t)*used < size ? (size_t)*used : size;
    *used += snprintf(at < size ? buffer + at : NULL, size - at, "%s%s", *used > 0 ? ", " : "", text);
}

static int format_rates(char *buffer, size_t size, const struct rate_list *list)
{
    int used = 0;
    for (unsigned i = 0; i < list->count && i < RATES_MAX; i++) {
        char text[64];
        units_format_rate(text, sizeof text, list->item[i]);
        append(buffer, size, &used, text);
    }
    return used;
}

/* 700000 ppm is 0.7. */
static int format_factor(char *buffer, size_t size, uint32_t ppm)
{
    char digits[16];
    int length = snprintf(digits, sizeof digits, "%06" PRIu32, ppm % PPM_ONE);
    while (length > 0 && digits[length - 1] == '0')
        digits[--length] = '\0';
    return snprintf(buffer, size, "%" PRIu32 "%s%s", ppm / PPM_ONE, length > 0 ? "." : "", digits);
}

/* In the words of the key's default, so that `retry_unsent` is yes or no and `adaptive` on or off. */
static int format_bool(const struct key *key, char *buffer, size_t size, bool flag)
{
    static const char *const words[2][2] = {{"no", "yes"}, {"off", "on"}};
    return snprintf(buffer, size, "%s", words[is_switch(key)][flag]);
}

static int format_statuses(char *buffer, size_t size, const struct status_set *set)
{
    int used = 0;
    for (int first = 100; first < 600; first++) {
        if (!status_set_has(set, first))
            continue;
        int last = first;
        while (status_set_has(set, last + 1))
            last++;
        char text[32];
        /* Up to three in a row are easier read one by one. */
        if (last - first >= 3) {
            snprintf(text, sizeof text, "%d-%d", first, last);
            first = last;
        } else {
            snprintf(text, sizeof text, "%d", first);
        }
        append(buffer, size, &used, text);
    }
    return used;
}

static int format_errors(char *buffer, size_t size, uint32_t errors)
{
    int used = 0;
    for (size_t i = 0; i < ERROR_WORD_COUNT; i++)
        if (errors & UINT32_C(1) << i)
            append(buffer, size, &used, error_words[i]);
    return used;
}

static int format_text(char *buffer, size_t size, const char *text)
{
    return snprintf(buffer, size, "%s", text != NULL ? text : "");
}

/* A number that is no choice prints as the last one. */
static int format_choice(const struct key *key, char *buffer, size_t size, unsigned chosen)
{
    unsigned i = 0;
    while (i < chosen && key->choices[i + 1] != NULL)
        i++;
    return snprintf(buffer, size, "%s", key->choices[i]);
}

static int format_kind(const struct key *key, const void *value, char *buffer, size_t size)
{
    switch (key->kind) {
    case KIND_DURATION:
        return units_format_duration(buffer, size, *(const int64_t *)value);
    case KIND_RATES:
        return format_rates(buffer, size, value);
    case KIND_PERCENT:
        return units_format_percent(buffer, size, *(const uint32_t *)value);
    case KIND_FACTOR:
        return format_factor(buffer, size, *(const uint32_t *)value);
    case KIND_COUNT:
        return snprintf(buffer, size, "%" PRIu32, *(const uint32_t *)value);
    case KIND_SIZE:
        return units_format_size(buffer, size, *(const uint64_t *)value);
    case KIND_BOOL:
        return format_bool(key, buffer, size, *(const bool *)value);
    case KIND_STATUSES:
        return format_statuses(buffer, size, value);
    case KIND_PERMISSIONS:
        return snprintf(buffer, size, "%04" PRIo32, *(const uint32_t *)value);
    case KIND_ERRORS:
        return format_errors(buffer, size, *(const uint32_t *)value);
    case KIND_CHOICE:
        return format_choice(key, buffer, size, *(const unsigned *)value);
    case KIND_TEXT:
    case KIND_NAME:
    case KIND_NAMES:
        break;
    }
    return format_text(buffer, size, *(const char *const *)value);
}

/* ---- the words auto and none ---- */

/* Room for a value of any kind. */
union any_value {
    int64_t duration;
    uint32_t number; /* a count, or parts per million */
    uint64_t bytes;
    const char *text;
    struct rate_list rates;
    struct status_set statuses;
};

/* A choice named auto or none is a choice like the others. */
const char *keys_special_word(const struct key *key)
{
    if (key->kind == KIND_CHOICE || key->default_text == NULL)
        return NULL;
    if (strcmp(key->default_text, "auto") == 0)
        return "auto";
    bool may_be_empty =
        key->kind == KIND_RATES || key->kind == KIND_STATUSES || key->kind == KIND_ERRORS || key->kind == KIND_NAMES;
    return may_be_empty || strcmp(key->default_text, "none") == 0 ? "none" : NULL;
}

/* How the special word is kept in the field: texts as NULL, lists as empty ones. */
static union any_value special_value(const struct key *key)
{
    union any_value value;
    bool is_auto = keys_special_word(key)[0] == 'a';

    memset(&value, 0, sizeof value);
    if (key->kind == KIND_DURATION)
        value.duration = is_auto ? DURATION_AUTO : DURATION_NONE;
    if (key->kind == KIND_COUNT)
        value.number = is_auto ? COUNT_AUTO : COUNT_NONE;
    return value;
}

static bool value_is_special(const struct key *key, const void *value)
{
    if (keys_special_word(key) == NULL)
        return false;
    if (key->kind == KIND_RATES)
        return ((const struct rate_list *)value)->count == 0;
    union any_value special = special_value(key);
    return memcmp(&special, value, key->size) == 0;
}

/* ---- what a key asks for beyond its kind ---- */

static bool is_at_least_one(const union any_value *value)
{
    return value->number >= 1;
}

/* At 100 % nothing is left to send. */
static bool is_below_whole(const union any_value *value)
{
    return value->number < PPM_ONE;
}

static bool may_be_retried(const union any_value *value)
{
    static const int allowed[] = {429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529};
    struct status_set set = value->statuses;
    uint64_t others = 0;

    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
        set.bits[(allowed[i] - 100) / 64] &= ~(UINT64_C(1) << ((allowed[i] - 100) % 64));
    for (size_t i = 0; i < sizeof set.bits / sizeof set.bits[0]; i++)
        others |= set.bits[i];
    return others == 0;
}

/* Names of files, with nothing in them that leads to another folder. */
static bool are_presets(const union any_value *value)
{
    const char *rest = value->text;
    struct scan item;

    while (text_list_next(&rest, &item)) {
        size_t length = (size_t)(item.end - item.at);
        bool has_suffix = length >= 4 && memcmp(item.end - 4, ".ini", 4) == 0;
        if (*item.at == '.' || has_suffix || length > PRESET_NAME_MAX)
            return false;
    }
    return true;
}

/* A relative path would be another file in every folder.  As core/system/mapping.c has it. */
static bool is_segment(const union any_value *value)
{
    const char *rest = value->text + (value->text[0] == '/');
    bool is_path = strchr(rest, '/') != NULL;

    return rest[0] != '\0' && strcmp(rest, ".") != 0 && strcmp(rest, "..") != 0 && (!is_path || value->text[0] == '/');
}

static bool is_segment_size(const union any_value *value)
{
    return value->bytes >= SEGMENT_SIZE_MIN && value->bytes <= SEGMENT_SIZE_MAX;
}

/* `expected` is also what is said about a value that is none of the key's kind. */
static const struct {
    const struct key *key;
    bool (*is_allowed)(const union any_value *value);
    const char *expected;
} rules[] = {
    {&policy_keys[POLICY_KEY_headroom], is_below_whole, "a percentage from 0% to below 100%"},
    {&policy_keys[POLICY_KEY_burst], is_at_least_one, "a whole number from 1 to 1000000000"},
    {&policy_keys[POLICY_KEY_max_in_flight], is_at_least_one, "a whole number from 1 to 1000000000"},
    {&policy_keys[POLICY_KEY_max_attempts], is_at_least_one,
     "a whole number from 1 to 1000000000 (1: nothing is tried again)"},
    {&policy_keys[POLICY_KEY_retry_status], may_be_retried,
     "some of 429, 500, 502, 503, 504, 520-524, 529 (no other status is ever tried again)"},
    {&policy_keys[POLICY_KEY_adaptive_decrease], is_at_least_one, "a factor above 0 and up to 1, such as 0.7"},
    {&curtsy_keys[CURTSY_KEY_presets], are_presets, "names of presets, such as github, without folder and .ini"},
    {&curtsy_keys[CURTSY_KEY_segment], is_segment,
     "a name such as /curtsy-team, or the whole path of a file such as /run/curtsy/budget"},
    {&curtsy_keys[CURTSY_KEY_segment_size], is_segment_size, "a size from 256KiB to 1GiB"},
};

static const char *parse_by_rule(const struct key *key, const char *text, union any_value *value)
{
    const char *expected = parse_kind(key, text, value);

    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (key == rules[i].key)
            return expected == NULL && rules[i].is_allowed(value) ? NULL : rules[i].expected;
    return expected;
}

/* ---- the whole ---- */

const char *keys_parse_value(const struct key *key, const char *text, void *out)
{
    const char *word = keys_special_word(key);
    const char *expected = NULL;
    union any_value value;

    if (word != NULL && text_is(text, word)) {
        value = special_value(key);
    } else {
        memset(&value, 0, sizeof value);
        expected = parse_by_rule(key, text, &value);
    }
    if (expected == NULL)
        memcpy(out, &value, key->size);
    return expected;
}

int keys_format_value(const struct key *key, const void *value, char *buffer, size_t size)
{
    if (value_is_special(key, value))
        return snprintf(buffer, size, "%s", keys_special_word(key));
    return format_kind(key, value, buffer, size);
}
