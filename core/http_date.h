/* SPDX-License-Identifier: MIT */
/*
 * HTTP-date in its three forms (RFC 9110, section 5.6.7): IMF-fixdate, RFC 850 and asctime.
 * The weekday is not checked against the date (real servers get it wrong); the day may have one
 * digit; the zone is GMT, UTC, a North American name (EST, PDT ...), a numeric offset, or missing,
 * which is UTC; a two-digit year is the one within 50 years of `now_s`; second 60 is accepted;
 * impossible days are not.  Pure, no locale, thread-safe.
 */
#ifndef CURTSY_CORE_HTTP_DATE_H
#define CURTSY_CORE_HTTP_DATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* All of the text but blanks around it.  now_s: seconds since 1970, for two-digit years. */
bool http_date_parse_text(const char *text, size_t length, int64_t now_s, int64_t *out_s);

/* The same of a NUL-terminated one. */
static inline bool http_date_parse(const char *text, int64_t now_s, int64_t *out_s)
{
    return http_date_parse_text(text, strlen(text), now_s, out_s);
}

#endif
