/* SPDX-License-Identifier: MIT */
/*
 * Units: how durations, rates, sizes and percentages are written in ratelimit.ini, and how they
 * are kept.  One grammar for the configuration and the command line.
 *
 * Time is int64_t nanoseconds everywhere in core; the name of a variable ends in _ns.
 * Every parser takes the whole of `text` (leading and trailing blanks allowed) or fails; on
 * failure *out is untouched and the function returns what was expected, as a noun phrase for the
 * message "FILE:LINE: quota = banana: expected a rate such as 5000/h".  On success it returns NULL.
 * Pure functions: no allocation, no locale, no errno, thread-safe.
 */
#ifndef CURTSY_CORE_UNITS_H
#define CURTSY_CORE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_SECOND INT64_C(1000000000)
#define TIME_NEVER INT64_MAX /* a time that does not come; also "no deadline" */

#define PPM_ONE UINT32_C(1000000) /* 100 %, in parts per million */

/* `count` requests in any window of `window_ns`.  Both are above 0 in a valid rate. */
struct rate {
    uint64_t count;
    int64_t window_ns;
};

#define RATES_MAX 4 /* windows that may hold at once */
struct rate_list {
    unsigned count; /* 0: none */
    struct rate item[RATES_MAX];
};

/* "90s", "250ms", "15 min", "1h30m": a number (with a decimal fraction if wanted) and one of
 * ms s m min h d, repeated from large to small.  A bare number is an error, 0 with a unit is not.
 * The largest is 3650 d. */
const char *units_parse_duration(const char *text, int64_t *out_ns);

/* "5000/h", "1000/15min", "10/s": N/TIME, where TIME may leave out its number.  Several with
 * commas, at most RATES_MAX, no two with the same window.  1 <= N <= 10^9, 1 ms <= TIME <= 366 d. */
const char *units_parse_rates(const char *text, struct rate_list *out);

/* "20%", "0.5 %": a percentage from 0 to 100, in parts per million. */
const char *units_parse_percent(const char *text, uint32_t *out_ppm);

/* "0.7" or "70%": a factor from 0 to 1, in parts per million. */
const char *units_parse_factor(const char *text, uint32_t *out_ppm);

/* "1MiB", "512 KiB", "64 B": a bare number is an error. */
const char *units_parse_size(const char *text, uint64_t *out_bytes);

/* A whole number from 0 to 10^9. */
const char *units_parse_count(const char *text, uint32_t *out);

/* yes no on off true false, in any case. */
const char *units_parse_bool(const char *text, bool *out);

/* Print as short as is exact ("1h30m", "250ms", "5000/h"): what is printed parses to the same
 * value.  Return value as snprintf's; `size` of 64 holds any duration, rate, percent or size. */
int units_format_duration(char *buffer, size_t size, int64_t ns);
int units_format_rate(char *buffer, size_t size, struct rate rate);
int units_format_percent(char *buffer, size_t size, uint32_t ppm);
int units_format_size(char *buffer, size_t size, uint64_t bytes);

#endif
