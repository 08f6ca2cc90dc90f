/* SPDX-License-Identifier: MIT */
/*
 * Header fields from one line of text, "Name: value | Name: value", as the tables of the tests hold
 * them.  The text \x00 stands for a raw NUL.
 */
#ifndef CURTSY_TESTS_UNIT_HEADER_LINES_H
#define CURTSY_TESTS_UNIT_HEADER_LINES_H

#include "core/headers.h"

#include <string.h>

static inline void header_lines_add(struct headers *headers, const char *line, size_t length)
{
    char field[HEADERS_BYTES];
    size_t used = 0;
    for (size_t i = 0; i < length && used < sizeof(field); i++) {
        bool is_nul = length - i >= 4 && memcmp(line + i, "\\x00", 4) == 0;
        field[used++] = is_nul ? '\0' : line[i];
        i += is_nul ? 3 : 0;
    }
    headers_add(headers, field, used);
}

static inline void header_lines_read(struct headers *headers, const char *lines)
{
    headers_clear(headers);
    while (*lines) {
        const char *end = strstr(lines, " | ");
        header_lines_add(headers, lines, end ? (size_t)(end - lines) : strlen(lines));
        lines = end ? end + 3 : lines + strlen(lines);
    }
}

#endif
