/* SPDX-License-Identifier: MIT */
/*
 * Field values: the ways in which servers write a time in a header.  Retry-After and the reset of a
 * quota are written alike, so both are read here: seconds ("30", "0.503"), a duration ("1m30s",
 * "547ms", "00:01:30"), an epoch in seconds or milliseconds, an HTTP-date, an RFC 3339 instant.
 *
 * Strict in syntax: no sign, no exponent, no bare point, nothing after the value.  Too large
 * saturates.  Pure, no locale, thread-safe.
 */
#ifndef CURTSY_CORE_FIELD_VALUE_H
#define CURTSY_CORE_FIELD_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a bare number is. */
enum field_number {
    FIELD_MILLISECONDS,     /* milliseconds, and nothing but a number is accepted */
    FIELD_SECONDS,          /* seconds, whatever its size */
    FIELD_SECONDS_OR_EPOCH, /* told by its size: below 10^8 seconds, 10^9 up to 10^10 an epoch in
                             * seconds, 10^12 up to 10^13 one in milliseconds; others are refused */
    FIELD_EPOCH_OR_SECONDS, /* the same, but what is no epoch is seconds, whatever its size */
};

/* From response_s (seconds since 1970) to the time that the text names, in nanoseconds; negative
 * if it is past.  Fractions are rounded up.  All of the text but blanks around it. */
bool field_parse_wait(const char *text, size_t length, enum field_number number, int64_t response_s, int64_t *wait_ns);

#define FIELD_UNUSABLE INT64_MIN

/* The wait that a whole number, 0 or more, means, or FIELD_UNUSABLE.  Nobody's clock is needed for one
 * below FIELD_EPOCHS_FROM. */
#define FIELD_EPOCHS_FROM 100000000
int64_t field_number_to_wait(int64_t value, enum field_number number, int64_t response_s);

/* Walks over a comma-separated list of such values, from *at on (a NUL-terminated text), mindful of
 * the commas in dates.  A member that is none of the above gives FIELD_UNUSABLE.  False at the end. */
bool field_next_wait(const char **at, enum field_number number, int64_t response_s, int64_t *wait_ns);

/* A duration with its unit, as above, and nothing else. */
bool field_parse_duration(const char *text, size_t length, int64_t *out_ns);

/* A whole number of things.  Leading zeros and a fraction of zeros ("57.0") are accepted; more than
 * 18 digits are not.  A negative one is well-formed too, and gives FIELD_NEGATIVE. */
#define FIELD_NEGATIVE INT64_C(-2)
bool field_parse_count(const char *text, size_t length, int64_t *out);

#endif
