/* SPDX-License-Identifier: MIT */
/*
 * Strict: a client that goes on with a body must be sure of where it goes on, so what is not written as
 * RFC 9110 has it is no range at all.  Only blanks around the value are forgiven, as in any field.
 */
#include "core/content_range.h"

#include "core/scan.h"

/* A position or a length: digits only, and it fits. */
static bool scan_offset(struct scan *scan, int64_t *out)
{
    int64_t value = 0;
    if (!scan_is_digit(scan_peek(scan)))
        return false;
    for (; scan_is_digit(scan_peek(scan)); scan->at++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *scan->at - '0', &value))
            return false;
    *out = value;
    return true;
}

/* Range units are compared without regard to case (section 14.1). */
static bool scan_unit(struct scan *scan)
{
    const char *word;
    size_t length = scan_word(scan, &word);
    return scan_equals_ignoring_case(word, length, "bytes") && scan_char(scan, ' ');
}

static bool scan_total(struct scan *scan, int64_t *out)
{
    *out = -1;
    return scan_char(scan, '*') || scan_offset(scan, out);
}

bool content_range_parse(const char *value, struct content_range *range)
{
    struct content_range read;
    struct scan scan = scan_text(value, strlen(value));
    scan_trim(&scan);
    if (!scan_unit(&scan) || !scan_offset(&scan, &read.first) || !scan_char(&scan, '-') ||
        !scan_offset(&scan, &read.last) || !scan_char(&scan, '/') || !scan_total(&scan, &read.total) ||
        !scan_done(&scan))
        return false;
    /* A whole that has a last byte there is longer than can be counted. */
    if (read.first > read.last || read.last == INT64_MAX || (read.total >= 0 && read.last >= read.total))
        return false;
    *range = read;
    return true;
}
