/* SPDX-License-Identifier: MIT */
/*
 * Is a text valid JSON (RFC 8259), and valid UTF-8?  A checker of its own, so that what is checked
 * and what checks share no mistake.
 */
#ifndef CURTSY_TESTS_UNIT_JSON_VALID_H
#define CURTSY_TESTS_UNIT_JSON_VALID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Each function takes the rest of a NUL-terminated text and returns what follows, or NULL. */

static inline const char *json_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static inline const char *json_utf8(const char *at)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)*at;
    int length = first < 0x80             ? 1
                 : (first & 0xe0) == 0xc0 ? 2
                 : (first & 0xf0) == 0xe0 ? 3
                 : (first & 0xf8) == 0xf0 ? 4
                                          : 0;
    if (length <= 1)
        return length ? at + 1 : NULL;
    uint32_t point = first & (0xffu >> (length + 1));
    for (int i = 1; i < length; i++) {
        if (((unsigned char)at[i] & 0xc0) != 0x80)
            return NULL;
        point = point << 6 | ((unsigned char)at[i] & 0x3f);
    }
    return point < least[length] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff) ? NULL : at + length;
}

static inline const char *json_string(const char *at)
{
    if (*at++ != '"')
        return NULL;
    while (*at && *at != '"') {
        if ((unsigned char)*at < 0x20)
            return NULL;
        if (*at == '\\') {
            if (at[1] == 'u') {
                if (strspn(at + 2, "0123456789abcdefABCDEF") < 4)
                    return NULL;
                at += 6;
                continue;
            }
            if (!at[1] || !strchr("\"\\/bfnrt", at[1]))
                return NULL;
            at += 2;
            continue;
        }
        at = json_utf8(at);
        if (!at)
            return NULL;
    }
    return *at == '"' ? at + 1 : NULL;
}

static inline const char *json_number(const char *at)
{
    at += *at == '-';
    size_t digits = strspn(at, "0123456789");
    if (digits == 0 || (digits > 1 && *at == '0'))
        return NULL;
    at += digits;
    if (*at == '.') {
        digits = strspn(at + 1, "0123456789");
        if (digits == 0)
            return NULL;
        at += 1 + digits;
    }
    return at;
}

/* An object of strings and numbers, on one line: all that a log line is. */
static inline bool json_is_flat_object(const char *text)
{
    const char *at = text;
    if (*at++ != '{')
        return false;
    if (*json_blanks(at) == '}')
        return *json_blanks(json_blanks(at) + 1) == '\0';
    for (;;) {
        at = json_string(json_blanks(at));
        if (!at || *(at = json_blanks(at)) != ':')
            return false;
        at = json_blanks(at + 1);
        at = *at == '"' ? json_string(at) : json_number(at);
        if (!at)
            return false;
        at = json_blanks(at);
        if (*at == '}')
            return *json_blanks(at + 1) == '\0';
        if (*at++ != ',')
            return false;
    }
}

#endif
