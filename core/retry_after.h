/* SPDX-License-Identifier: MIT */
/*
 * Retry-After (RFC 9110, section 10.2.3): delta-seconds or an HTTP-date; tolerated beyond the RFC:
 * a decimal fraction (rounded up to the nanosecond), a duration ("1m30s", "00:01:30"), an RFC 3339
 * instant, an epoch (a number from 10^9 up to 10^10 is one in seconds, from 10^12 up to 10^13 one in
 * milliseconds: as a delta it would be more than 31 years), several values (the largest usable one
 * counts), and the millisecond variants retry-after-ms and x-ms-retry-after-ms, which come first.
 *
 * A date is read against the response's own Date field where that parses, else against the local
 * clock: a server whose clock is ten minutes off means the same wait.  Past, 0, negative and
 * malformed values are no word: "absent", never "at once".  Values too large saturate; capping them
 * is policy (max_block), not parsing.  Pure, thread-safe.
 */
#ifndef CURTSY_CORE_RETRY_AFTER_H
#define CURTSY_CORE_RETRY_AFTER_H

#include "core/headers.h"

enum retry_after_form { RETRY_AFTER_ABSENT, RETRY_AFTER_UNUSABLE, RETRY_AFTER_ZERO, RETRY_AFTER_GIVEN };

struct retry_after {
    enum retry_after_form form;
    int64_t wait_ns;   /* above 0 with RETRY_AFTER_GIVEN, else 0 */
    const char *field; /* the lower-case name of the field it came from, or NULL */
};

/* now_s: the wall clock at arrival, seconds since 1970. */
struct retry_after retry_after_read(const struct headers *headers, int64_t now_s);

/* Seconds since 1970 of the response's Date field, else now_s. */
int64_t response_time_s(const struct headers *headers, int64_t now_s);

/* The same where a value may depend on it, and just now_s where it does not: `number` is that of the field.
 * So a Date is read only where it is needed. */
int64_t response_time_for(const struct headers *headers, int64_t number, int64_t now_s);

#endif
