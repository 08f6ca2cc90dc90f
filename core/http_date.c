/* SPDX-License-Identifier: MIT */
/*
 * The three forms differ in little: after the weekday either a comma and "6 Nov 1994" or
 * "06-Nov-94" comes before the time, or no comma and "Nov  6", with the year after it.  So one
 * descent reads all of them, and what servers mix up (a four-digit year between hyphens, an
 * abbreviated weekday before a two-digit year) is read too.
 *
 * Nearly every date is an IMF-fixdate to the letter, and many responses have one that must be read: so
 * that one is looked for first, where its parts must stand.  What it accepts is the same to the descent.
 */
#include "core/http_date.h"

#include "core/calendar.h"
#include "core/scan.h"

/* ---------------------------------------------------------------- IMF-fixdate ---- */

/* Which four characters of `words`, from 1; 0 if none. */
static int find_four(const char *four, const char *words)
{
    for (int i = 1; *words; i++, words += 4)
        if (memcmp(four, words, 4) == 0)
            return i;
    return 0;
}

/* Negative if they are no digits. */
static int two_digits(const char *text)
{
    unsigned tens = (unsigned)text[0] - '0', ones = (unsigned)text[1] - '0';
    return tens > 9 || ones > 9 ? -1 : (int)(tens * 10 + ones);
}

static bool read_fixdate(const char *text, size_t length, struct calendar_time *time)
{
    if (length != strlen("Sun, 06 Nov 1994 08:49:37 GMT") || text[4] != ' ' || text[7] != ' ' || text[16] != ' ' ||
        text[19] != ':' || text[22] != ':' || memcmp(text + 25, " GMT", 4) != 0)
        return false;
    int century = two_digits(text + 12), year = two_digits(text + 14);
    *time = (struct calendar_time){.year = century * 100 + year,
                                   .month = find_four(text + 8, "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec "),
                                   .day = two_digits(text + 5),
                                   .hour = two_digits(text + 17),
                                   .minute = two_digits(text + 20),
                                   .second = two_digits(text + 23)};
    return century >= 0 && year >= 0 && time->month > 0 &&
           (time->day | time->hour | time->minute | time->second) >= 0 &&
           find_four(text, "Mon,Tue,Wed,Thu,Fri,Sat,Sun,") > 0;
}

/* --------------------------------------------------------------- all the forms ---- */

/* The whole name, or the first three letters of it. */
static bool scan_weekday(struct scan *scan)
{
    static const char *const names[] = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};
    const char *word;
    size_t length = scan_word(scan, &word);
    for (int i = 0; i < 7; i++)
        if (scan_begins_ignoring_case(names[i], word, length) && (length == 3 || names[i][length] == '\0'))
            return true;
    return false;
}

static bool scan_month(struct scan *scan, int *month)
{
    static const char names[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const char *word;
    size_t length = scan_word(scan, &word);
    for (int i = 0; i < 12; i++)
        if (scan_equals_ignoring_case(word, length, names[i])) {
            *month = i + 1;
            return true;
        }
    return false;
}

static bool scan_time_of_day(struct scan *scan, struct calendar_time *time)
{
    return scan_number(scan, 2, 2, &time->hour) && scan_char(scan, ':') && scan_number(scan, 2, 2, &time->minute) &&
           scan_char(scan, ':') && scan_number(scan, 2, 2, &time->second);
}

/* RFC 9110, section 5.6.7: a date that appears to be more than 50 years in the future is the most
 * recent past year with the same last two digits. */
static int year_from_two_digits(int digits, int64_t now_s)
{
    struct calendar_time now;
    calendar_from_seconds(now_s, &now);
    int year = now.year - now.year % 100 + digits;
    if (year > now.year + 50)
        return year - 100;
    if (year <= now.year - 50)
        return year + 100;
    return year;
}

static bool scan_year(struct scan *scan, int64_t now_s, int *year)
{
    if (scan_number(scan, 4, 4, year))
        return true;
    if (!scan_number(scan, 2, 2, year))
        return false;
    *year = year_from_two_digits(*year, now_s);
    return true;
}

/* The zone at the end, if any: what is not named is UTC.  The North American names are those of
 * RFC 5322, section 4.3. */
static bool scan_zone(struct scan *scan, int *offset_s)
{
    static const struct {
        char name[4];
        int hours;
    } zones[] = {{"GMT", 0},  {"UTC", 0},  {"UT", 0},   {"Z", 0},    {"EST", -5}, {"EDT", -4},
                 {"CST", -6}, {"CDT", -5}, {"MST", -7}, {"MDT", -6}, {"PST", -8}, {"PDT", -7}};
    *offset_s = 0;
    if (scan_done(scan))
        return true;
    if (!scan_blanks(scan))
        return false;
    if (scan_peek(scan) == '+' || scan_peek(scan) == '-')
        return scan_utc_offset(scan, offset_s);
    const char *word;
    size_t length = scan_word(scan, &word);
    for (size_t i = 0; i < sizeof(zones) / sizeof(zones[0]); i++)
        if (scan_equals_ignoring_case(word, length, zones[i].name)) {
            *offset_s = zones[i].hours * 3600;
            return true;
        }
    return false;
}

/* After "Sun,": IMF-fixdate and RFC 850. */
static bool scan_day_month_year(struct scan *scan, int64_t now_s, struct calendar_time *time)
{
    scan_blanks(scan);
    if (!scan_number(scan, 1, 2, &time->day))
        return false;
    bool hyphens = scan_char(scan, '-');
    return (hyphens || scan_blanks(scan)) && scan_month(scan, &time->month) &&
           (hyphens ? scan_char(scan, '-') : scan_blanks(scan)) && scan_year(scan, now_s, &time->year) &&
           scan_blanks(scan) && scan_time_of_day(scan, time);
}

/* After "Sun": asctime, which pads the day with a blank. */
static bool scan_month_day_year(struct scan *scan, struct calendar_time *time)
{
    return scan_blanks(scan) && scan_month(scan, &time->month) && scan_blanks(scan) &&
           scan_number(scan, 1, 2, &time->day) && scan_blanks(scan) && scan_time_of_day(scan, time) &&
           scan_blanks(scan) && scan_number(scan, 4, 4, &time->year);
}

/* Kept out of the frame of what is done for an IMF-fixdate. */
__attribute__((cold)) static bool read_any_form(const char *text, size_t length, int64_t now_s,
                                                struct calendar_time *time, int *offset_s)
{
    *time = (struct calendar_time){0};
    struct scan scan = scan_text(text, length);
    scan_trim(&scan);
    if (!scan_weekday(&scan))
        return false;
    bool parsed = scan_char(&scan, ',') ? scan_day_month_year(&scan, now_s, time) && scan_zone(&scan, offset_s)
                                        : scan_month_day_year(&scan, time);
    return parsed && scan_done(&scan);
}

bool http_date_parse_text(const char *text, size_t length, int64_t now_s, int64_t *out_s)
{
    struct calendar_time time;
    int offset_s = 0;
    int64_t local_s;
    if (!read_fixdate(text, length, &time) && !read_any_form(text, length, now_s, &time, &offset_s))
        return false;
    if (!calendar_to_seconds(&time, &local_s))
        return false;
    *out_s = local_s - offset_s;
    return true;
}
