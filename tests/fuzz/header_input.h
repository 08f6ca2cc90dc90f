/* SPDX-License-Identifier: MIT */
/*
 * A fuzz target's input as a response's header fields: the first eight bytes are the clock, the rest
 * are field lines.
 */
#ifndef CURTSY_TESTS_FUZZ_HEADER_INPUT_H
#define CURTSY_TESTS_FUZZ_HEADER_INPUT_H

#include "core/headers.h"

#include <string.h>

static inline void header_input_add(const char *line, const char *end, struct headers *headers)
{
    while (line < end) {
        const char *line_end = memchr(line, '\n', (size_t)(end - line));
        line_end = line_end ? line_end + 1 : end;
        headers_add(headers, line, (size_t)(line_end - line));
        line = line_end;
    }
}

/* Twice, since the second response on a handle is read by what the first one was like. */
static inline bool header_input_read(const uint8_t *data, size_t size, struct headers *headers, int64_t *now_s)
{
    if (size < sizeof(*now_s))
        return false;
    memcpy(now_s, data, sizeof(*now_s));
    const char *line = (const char *)data + sizeof(*now_s);
    const char *end = (const char *)data + size;
    headers_clear(headers);
    header_input_add(line, end, headers);
    headers_begin(headers);
    header_input_add(line, end, headers);
    return true;
}

#endif
