/* SPDX-License-Identifier: MIT */
/*
 * Headers: the few response fields that Curtsy reads, kept as they came: order, repeats and all.
 * headers_add is given every field line of a response and keeps only those whose name may matter
 * (Date, Age, Retry-After and its kin, and every spelling of a quota field), so that a transfer
 * needs no allocation.  What does not fit is dropped and counted, never cut.
 *
 * Pure data, one owner; no allocation.
 */
#ifndef CURTSY_CORE_HEADERS_H
#define CURTSY_CORE_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEADERS_FIELDS 32
#define HEADERS_BYTES 3072

struct header_field {
    uint16_t name, name_length;   /* offset into text, length; lower-cased */
    uint16_t value, value_length; /* blanks around it trimmed; NUL-terminated in text */
};

struct headers {
    unsigned count;
    unsigned used;
    unsigned dropped;
    unsigned times; /* of the fields, those that only tell time: Date, Age */
    struct header_field field[HEADERS_FIELDS];
    char text[HEADERS_BYTES];
};

void headers_clear(struct headers *headers);

/* Is there any field that could say something about a limit or a wait? */
static inline bool headers_say_something(const struct headers *headers)
{
    return headers->count > headers->times;
}

/* `line` is one field line, "Name: value", with or without its line end.  Anything else (status
 * line, blank line, folded line, a value with control characters) is ignored. */
void headers_add(struct headers *headers, const char *line, size_t length);

/* The n-th (from 0) value of that lower-case name, NUL-terminated, or NULL. */
const char *headers_value(const struct headers *headers, const char *name, unsigned nth);

#endif
