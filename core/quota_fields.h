/* SPDX-License-Identifier: MIT */
/*
 * Quota fields: what a server says about its limit, what is left of it and when it starts anew.
 *
 * Read here: X-RateLimit-Limit/-Remaining/-Reset (and X-Rate-Limit-, RateLimit-: the three-field
 * form of draft-ietf-httpapi-ratelimit-headers-00 to -06, with policies in the limit or in
 * RateLimit-Policy), the dictionary of -07 and the structured lists of -08 and later
 * (`RateLimit: "name";r=50;t=30` with `RateLimit-Policy: "name";q=100;w=60`); what some servers
 * send beside them (-Used, -Reset-After, -Period ...) is in the table of families.
 * A reset is told apart by its value: below 10^8 delta seconds, 10^9..10^10 epoch seconds,
 * 10^12..10^13 epoch milliseconds, letters or ':' a duration or a date; anything else is refused.
 * Epochs and dates are relative to the response's own Date field, else to now_s.
 *
 * Refused: a fractional or absurd count, a malformed structured field (the whole field, as RFC 9651
 * says), every field of a response with Age above 0 (it speaks of somebody else's past), and Beta-
 * fields.  What is refused is as if absent.  A negative remaining is 0 where the limit is above 0
 * (more was taken than there was); otherwise a negative count means that no limit is enforced.
 * Remaining above the limit is kept as said: layers with different limits share these names.
 * Pure, thread-safe.
 *
 * Which window governs, of several: an exhausted one first, the latest reset among those; else the
 * one with the least remaining.  Windows that count something else than requests govern only when
 * they are exhausted; their numbers are then in that unit.
 */
#ifndef CURTSY_CORE_QUOTA_FIELDS_H
#define CURTSY_CORE_QUOTA_FIELDS_H

#include "core/headers.h"

#define QUOTA_UNKNOWN INT64_C(-1)

/* The governing window; QUOTA_UNKNOWN where a part is not known. */
struct quota_fields {
    bool present;
    int64_t limit;     /* requests per window */
    int64_t remaining; /* requests */
    int64_t reset_ns;  /* from now until it starts anew; clamped at 0 */
    int64_t window_ns;
    const char *limit_field, *remaining_field, *reset_field, *window_field; /* lower-case names, or NULL */
};

struct quota_fields quota_fields_read(const struct headers *headers, int64_t now_s);

#endif
