/* SPDX-License-Identifier: MIT */
/*
 * Calendar: between seconds since 1970 and the proleptic Gregorian date in UTC.  Arithmetic only:
 * mktime and gmtime take the C library's time zone lock, which a forked child may find held.
 * Pure, thread-safe.
 */
#ifndef CURTSY_CORE_CALENDAR_H
#define CURTSY_CORE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

struct calendar_time {
    int year;  /* 0..9999 */
    int month; /* 1..12 */
    int day;   /* 1..31 */
    int hour, minute;
    int second; /* 60 is the next minute's 0: a leap second */
};

/* False for a day or an hour that does not exist. */
bool calendar_to_seconds(const struct calendar_time *time, int64_t *out_s);

/* Seconds outside of the years 0..9999 are taken as the nearest that are inside. */
void calendar_from_seconds(int64_t time_s, struct calendar_time *out);

#endif
