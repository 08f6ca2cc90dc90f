/* SPDX-License-Identifier: MIT */
/*
 * Which field lines of a response are kept, and how: one after the other in a flat text, each name
 * and each value followed by a NUL.  The names are told by what they contain rather than by a list,
 * so that a new spelling needs a row in its reader's table and nothing here.
 */
#include "core/headers.h"

#include "core/scan.h"

static const char *const kept_names[] = {"date", "age"};
static const char *const kept_parts[] = {"limit", "quota", "retry", "remaining", "reset"};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

void headers_clear(struct headers *headers)
{
    headers->count = 0;
    headers->used = 0;
    headers->dropped = 0;
    headers->times = 0;
}

/* This is asked for every field line of every response, so a name that matters not should cost a
 * few instructions a character: the parts are compared only where one of them can begin. */
static bool contains_part(const char *name, size_t length)
{
    for (size_t at = 0; at < length; at++) {
        char first = scan_lower(name[at]);
        if (first != 'l' && first != 'q' && first != 'r')
            continue;
        for (size_t i = 0; i < COUNT_OF(kept_parts); i++) {
            size_t part_length = strlen(kept_parts[i]);
            if (kept_parts[i][0] == first && at + part_length <= length &&
                scan_equals_ignoring_case(name + at, part_length, kept_parts[i]))
                return true;
        }
    }
    return false;
}

static bool is_time(const char *name, size_t length)
{
    for (size_t i = 0; i < COUNT_OF(kept_names); i++)
        if (scan_equals_ignoring_case(name, length, kept_names[i]))
            return true;
    return false;
}

/* RFC 9110, section 5.6.2: a field name is a token. */
static bool is_token_char(char c)
{
    return scan_is_letter(c) || scan_is_digit(c) || c == '-' || (c != '\0' && strchr("!#$%&'*+.^_`|~", c));
}

static bool is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!is_token_char(text[i]))
            return false;
    return length > 0;
}

/* RFC 9110, section 5.5: a value with a control character is invalid and dangerous.  A NUL would
 * also make the rest of it invisible to readers of C strings: "12\0 junk" is not 12. */
static bool is_clean_value(const struct scan *value)
{
    for (const char *at = value->at; at < value->end; at++)
        if (((unsigned char)*at < 0x20 && *at != '\t') || *at == 0x7f)
            return false;
    return true;
}

static uint16_t append(struct headers *headers, const char *text, size_t length, bool lower)
{
    uint16_t offset = (uint16_t)headers->used;
    for (size_t i = 0; i < length; i++)
        headers->text[headers->used++] = lower ? scan_lower(text[i]) : text[i];
    headers->text[headers->used++] = '\0';
    return offset;
}

void headers_add(struct headers *headers, const char *line, size_t length)
{
    const char *colon = memchr(line, ':', length);
    if (!colon)
        return;
    size_t name_length = (size_t)(colon - line);
    bool tells_time = is_time(line, name_length);
    if ((!tells_time && !contains_part(line, name_length)) || !is_token(line, name_length))
        return;
    struct scan value = {colon + 1, line + length};
    while (value.end > value.at && (value.end[-1] == '\r' || value.end[-1] == '\n'))
        value.end--;
    scan_trim(&value);
    if (!is_clean_value(&value))
        return;

    size_t value_length = (size_t)(value.end - value.at);
    size_t room = HEADERS_BYTES - headers->used;
    if (headers->count == HEADERS_FIELDS || room < 2 || name_length > room - 2 ||
        value_length > room - 2 - name_length) {
        headers->dropped++;
        return;
    }
    struct header_field *field = &headers->field[headers->count++];
    headers->times += tells_time;
    field->name = append(headers, line, name_length, true);
    field->name_length = (uint16_t)name_length;
    field->value = append(headers, value.at, value_length, false);
    field->value_length = (uint16_t)value_length;
}

const char *headers_value(const struct headers *headers, const char *name, unsigned nth)
{
    for (unsigned i = 0; i < headers->count; i++)
        if (strcmp(headers->text + headers->field[i].name, name) == 0 && nth-- == 0)
            return headers->text + headers->field[i].value;
    return NULL;
}
