/* SPDX-License-Identifier: MIT */
/*
 * Structured fields (RFC 9651, section 4.2): lists and dictionaries of items with parameters, as
 * RateLimit and RateLimit-Policy are written.  A pull parser over the caller's text, without
 * allocation:
 *
 *     structured_field_begin(&field, text, length);
 *     while (structured_field_next_member(&field, &member))
 *         while (structured_field_next_parameter(&field, &key, &value))
 *             ...
 *     if (field.failed) forget all of it;
 *
 * The RFC wants a field that is malformed anywhere to be ignored as a whole, so what was read counts
 * only once the end was reached without a failure.  Parameters that are not asked for are skipped,
 * and checked.  Pure, thread-safe.
 */
#ifndef CURTSY_CORE_STRUCTURED_FIELD_H
#define CURTSY_CORE_STRUCTURED_FIELD_H

#include "core/scan.h"

#include <stdint.h>

enum structured_type {
    STRUCTURED_INTEGER,
    STRUCTURED_DECIMAL,
    STRUCTURED_STRING,
    STRUCTURED_TOKEN,
    STRUCTURED_BYTES,
    STRUCTURED_BOOLEAN,
    STRUCTURED_DATE,
    STRUCTURED_DISPLAY_STRING,
    STRUCTURED_INNER_LIST, /* checked, but its items are not handed out */
};

struct structured_item {
    enum structured_type type;
    int64_t integer;  /* of STRUCTURED_INTEGER, DATE and BOOLEAN */
    struct scan text; /* as written, without the delimiters of strings and bytes.  Escapes are left
                       * in: there is one way to write a string, so equal texts are equal strings. */
};

struct structured_field {
    struct scan scan;
    bool failed;
    bool in_list;       /* a member was handed out: a comma must come before the next */
    bool in_parameters; /* that member's parameters have not all been read */
    /* Accept a string where a parameter's key should be (`"fixed window";"api";q=500`, as a large
     * service writes it): handed out with an empty key. */
    bool lenient;
};

void structured_field_begin(struct structured_field *field, const char *text, size_t length);

/* The next member of a list; false at the end or after a failure. */
bool structured_field_next_member(struct structured_field *field, struct structured_item *item);

/* The next member of a dictionary. */
bool structured_field_next_entry(struct structured_field *field, struct scan *key, struct structured_item *item);

/* The next parameter of the member handed out last.  A key may come twice: the later one counts. */
bool structured_field_next_parameter(struct structured_field *field, struct scan *key, struct structured_item *value);

static inline bool structured_text_is(const struct scan *text, const char *word)
{
    size_t length = strlen(word);
    return (size_t)(text->end - text->at) == length && memcmp(text->at, word, length) == 0;
}

static inline bool structured_text_equals(const struct scan *a, const struct scan *b)
{
    return a->end - a->at == b->end - b->at && memcmp(a->at, b->at, (size_t)(a->end - a->at)) == 0;
}

#endif
