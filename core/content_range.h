/* SPDX-License-Identifier: MIT */
/*
 * Content-Range, as a 206 has it: which bytes of a whole are these? (RFC 9110, section 14.4)
 *
 * Pure functions; no allocation.
 */
#ifndef CURTSY_CORE_CONTENT_RANGE_H
#define CURTSY_CORE_CONTENT_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct content_range {
    int64_t first, last; /* both included; first <= last */
    int64_t total;       /* of the whole; -1: the server does not know ("*"); else > last */
};

/* The field's value, NUL-terminated.  False for anything else than one valid range of bytes: other units,
 * "bytes *" (of a 416), numbers that do not fit or contradict each other. */
bool content_range_parse(const char *value, struct content_range *range);

#endif
