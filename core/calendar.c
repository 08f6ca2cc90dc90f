/* SPDX-License-Identifier: MIT */
/*
 * A date is counted in days since 0000-01-01: whole years first, by the leap year rule, then the
 * days before the month.  The way back guesses the year from the mean length of one, which is wrong
 * by at most one year, and corrects it.
 */
#include "core/calendar.h"

#define SECONDS_PER_DAY INT64_C(86400)
#define DAYS_PER_400_YEARS 146097
#define DAYS_BEFORE_1970 719528
#define LAST_SECOND_OF_9999 INT64_C(253402300799)

static bool is_leap_year(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Days from 0000-01-01 to the first day of that year: 365 for each before it, and the leap days among
 * them; year 0 has one. */
static int days_before_year(int year)
{
    return year * 365 + (year + 3) / 4 - (year + 99) / 100 + (year + 399) / 400;
}

static int days_before_month(int year, int month)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    return before[month - 1] + (month > 2 && is_leap_year(year));
}

static int days_in_month(int year, int month)
{
    return month == 2 ? 28 + is_leap_year(year) : days_before_month(1, month + 1) - days_before_month(1, month);
}

bool calendar_to_seconds(const struct calendar_time *time, int64_t *out_s)
{
    if (time->year < 0 || time->year > 9999 || time->month < 1 || time->month > 12 || time->day < 1 ||
        time->day > days_in_month(time->year, time->month))
        return false;
    if (time->hour < 0 || time->hour > 23 || time->minute < 0 || time->minute > 59 || time->second < 0 ||
        time->second > 60)
        return false;
    int days = days_before_year(time->year) + days_before_month(time->year, time->month) + time->day - 1;
    *out_s = (days - DAYS_BEFORE_1970) * SECONDS_PER_DAY + time->hour * 3600 + time->minute * 60 + time->second;
    return true;
}

void calendar_from_seconds(int64_t time_s, struct calendar_time *out)
{
    if (time_s > LAST_SECOND_OF_9999)
        time_s = LAST_SECOND_OF_9999;
    if (time_s < -DAYS_BEFORE_1970 * SECONDS_PER_DAY)
        time_s = -DAYS_BEFORE_1970 * SECONDS_PER_DAY;
    int64_t since_year_0_s = time_s + DAYS_BEFORE_1970 * SECONDS_PER_DAY;
    int64_t days = since_year_0_s / SECONDS_PER_DAY;
    int seconds = (int)(since_year_0_s % SECONDS_PER_DAY);

    int year = (int)(days * 400 / DAYS_PER_400_YEARS);
    while (days < days_before_year(year))
        year--;
    while (days >= days_before_year(year + 1))
        year++;
    int day_of_year = (int)(days - days_before_year(year));
    int month = 12;
    while (day_of_year < days_before_month(year, month))
        month--;
    *out = (struct calendar_time){.year = year,
                                  .month = month,
                                  .day = day_of_year - days_before_month(year, month) + 1,
                                  .hour = seconds / 3600,
                                  .minute = seconds / 60 % 60,
                                  .second = seconds % 60};
}
