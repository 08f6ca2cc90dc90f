/* SPDX-License-Identifier: MIT */
/*
 * Units: durations, rates, sizes and percentages, read and written.
 *
 * Numbers are whole numbers with an exact decimal fraction; there is no floating point in here, so
 * that "0.1s" is 100 ms and not almost that, and so that what is printed parses to the same value.
 */
#include "core/units.h"

#include "core/scan.h"

#include <inttypes.h>
#include <stdio.h>

#define SECONDS_PER_DAY INT64_C(86400)
#define DURATION_MAX_NS (3650 * SECONDS_PER_DAY * NS_PER_SECOND)
#define WINDOW_MAX_NS (366 * SECONDS_PER_DAY * NS_PER_SECOND)
#define COUNT_MAX UINT64_C(1000000000)
#define FRACTION_ONE UINT32_C(1000000000)

static const char duration_expected[] = "a duration with its unit, such as 90s or 250ms";
static const char duration_limit[] = "a duration of at most 3650d";
static const char rate_expected[] = "a rate such as 5000/h";
static const char rate_count_limit[] = "a rate such as 5000/h, of 1 to 1000000000 requests";
static const char rate_window_limit[] = "a rate such as 5000/h, over 1ms to 366d";
static const char rate_same_window[] = "a rate such as 5000/h, each of several over another time";
static const char rate_too_many[] = "a rate such as 5000/h, or at most four with commas";
static const char percent_expected[] = "a percentage from 0% to 100%";
static const char factor_expected[] = "a factor from 0 to 1, such as 0.7 or 70%";
static const char size_expected[] = "a size with its unit, such as 1MiB";
static const char size_limit[] = "a size of at most 1048576TiB";
static const char count_expected[] = "a whole number from 0 to 1000000000";
static const char bool_expected[] = "yes or no";

/* Largest first: that is the order in which a duration may combine them, and in which the printer
 * looks for the one that divides it. */
static const struct time_unit {
    const char *name;
    int64_t ns;
} time_units[] = {
    {"d", SECONDS_PER_DAY *NS_PER_SECOND},
    {"h", 3600 * NS_PER_SECOND},
    {"min", 60 * NS_PER_SECOND},
    {"m", 60 * NS_PER_SECOND},
    {"s", NS_PER_SECOND},
    {"ms", NS_PER_MS},
};
#define TIME_UNIT_COUNT (sizeof time_units / sizeof time_units[0])

/* A decimal number.  The whole part stops growing at WHOLE_MAX, which is beyond every limit here; of
 * the fraction the first nine digits count. */
struct decimal {
    uint64_t whole;
    uint32_t billionths;
};
#define SIZE_MAX_BYTES (UINT64_C(1) << 60)
#define WHOLE_MAX (SIZE_MAX_BYTES + 1)

static bool scan_whole(struct scan *scan, uint64_t *out)
{
    if (!scan_is_digit(scan_peek(scan)))
        return false;
    uint64_t value = 0;
    for (; scan_is_digit(scan_peek(scan)); scan->at++) {
        value = value * 10 + (uint64_t)(*scan->at - '0');
        if (value > WHOLE_MAX)
            value = WHOLE_MAX;
    }
    *out = value;
    return true;
}

static bool scan_decimal(struct scan *scan, struct decimal *out)
{
    out->billionths = 0;
    if (!scan_whole(scan, &out->whole))
        return false;
    if (!scan_char(scan, '.'))
        return true;
    if (!scan_is_digit(scan_peek(scan)))
        return false;
    uint32_t worth = FRACTION_ONE / 10;
    for (; scan_is_digit(scan_peek(scan)); scan->at++, worth /= 10)
        out->billionths += worth * (uint32_t)(*scan->at - '0');
    return true;
}

static const struct time_unit *scan_time_unit(struct scan *scan)
{
    const char *word;
    size_t length = scan_word(scan, &word);
    for (size_t i = 0; i < TIME_UNIT_COUNT; i++)
        if (strlen(time_units[i].name) == length && memcmp(time_units[i].name, word, length) == 0)
            return &time_units[i];
    return NULL;
}

/* Reads up to the end of the cursor.  With `unit_alone`, "h" is "1h". */
static const char *scan_duration(struct scan *scan, bool unit_alone, const char *expected, int64_t *out_ns)
{
    unsigned __int128 total = 0;
    int64_t previous = INT64_MAX;

    scan_trim(scan);
    do {
        struct decimal number = {1, 0};
        if (!scan_decimal(scan, &number) && !(unit_alone && scan_is_letter(scan_peek(scan))))
            return expected;
        scan_blanks(scan);
        const struct time_unit *unit = scan_time_unit(scan);
        if (unit == NULL || unit->ns >= previous)
            return expected;
        previous = unit->ns;
        unit_alone = false;
        total += (unsigned __int128)number.whole * (uint64_t)unit->ns;
        total += (unsigned __int128)number.billionths * (uint64_t)unit->ns / FRACTION_ONE;
        scan_blanks(scan);
    } while (!scan_done(scan));

    if (total > (uint64_t)DURATION_MAX_NS)
        return duration_limit;
    *out_ns = (int64_t)total;
    return NULL;
}

const char *units_parse_duration(const char *text, int64_t *out_ns)
{
    struct scan scan = scan_text(text, strlen(text));
    return scan_duration(&scan, false, duration_expected, out_ns);
}

/* One N/TIME, up to the end of the cursor. */
static const char *scan_rate(struct scan *scan, struct rate *out)
{
    scan_trim(scan);
    if (!scan_whole(scan, &out->count))
        return rate_expected;
    scan_blanks(scan);
    if (!scan_char(scan, '/'))
        return rate_expected;
    const char *expected = scan_duration(scan, true, rate_expected, &out->window_ns);
    if (expected != NULL)
        return expected == duration_limit ? rate_window_limit : expected;
    if (out->count < 1 || out->count > COUNT_MAX)
        return rate_count_limit;
    if (out->window_ns < NS_PER_MS || out->window_ns > WINDOW_MAX_NS)
        return rate_window_limit;
    return NULL;
}

const char *units_parse_rates(const char *text, struct rate_list *out)
{
    struct rate_list list = {0};
    for (;;) {
        size_t length = strcspn(text, ",");
        struct scan scan = scan_text(text, length);
        struct rate rate;
        const char *expected = scan_rate(&scan, &rate);
        if (expected != NULL)
            return expected;
        if (list.count == RATES_MAX)
            return rate_too_many;
        for (unsigned i = 0; i < list.count; i++)
            if (list.item[i].window_ns == rate.window_ns)
                return rate_same_window;
        list.item[list.count++] = rate;
        if (text[length] == '\0')
            break;
        text += length + 1;
    }
    *out = list;
    return NULL;
}

/* A number and, if it is there, a percent sign; the number's worth without one is `plain_scale`, 0
 * where it must be there. */
static const char *parse_part(const char *text, uint32_t plain_scale, const char *expected, uint32_t *out_ppm)
{
    struct scan scan = scan_text(text, strlen(text));
    struct decimal number;

    scan_trim(&scan);
    if (!scan_decimal(&scan, &number) || number.whole > 100)
        return expected;
    scan_blanks(&scan);
    uint32_t scale = scan_char(&scan, '%') ? PPM_ONE / 100 : plain_scale;
    uint64_t ppm = number.whole * scale + (uint64_t)number.billionths * scale / FRACTION_ONE;
    if (!scan_done(&scan) || scale == 0 || ppm > PPM_ONE)
        return expected;
    *out_ppm = (uint32_t)ppm;
    return NULL;
}

const char *units_parse_percent(const char *text, uint32_t *out_ppm)
{
    return parse_part(text, 0, percent_expected, out_ppm);
}

const char *units_parse_factor(const char *text, uint32_t *out_ppm)
{
    return parse_part(text, PPM_ONE, factor_expected, out_ppm);
}

static const struct size_unit {
    const char *name;
    unsigned shift;
} size_units[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}};
#define SIZE_UNIT_COUNT (sizeof size_units / sizeof size_units[0])

const char *units_parse_size(const char *text, uint64_t *out_bytes)
{
    struct scan scan = scan_text(text, strlen(text));
    uint64_t number;
    const char *word;

    scan_trim(&scan);
    if (!scan_whole(&scan, &number))
        return size_expected;
    scan_blanks(&scan);
    size_t length = scan_word(&scan, &word);
    if (!scan_done(&scan))
        return size_expected;
    for (size_t i = 0; i < SIZE_UNIT_COUNT; i++) {
        if (!scan_equals_ignoring_case(word, length, size_units[i].name))
            continue;
        if (number > SIZE_MAX_BYTES >> size_units[i].shift)
            return size_limit;
        *out_bytes = number << size_units[i].shift;
        return NULL;
    }
    return size_expected;
}

const char *units_parse_count(const char *text, uint32_t *out)
{
    struct scan scan = scan_text(text, strlen(text));
    uint64_t number;

    scan_trim(&scan);
    if (!scan_whole(&scan, &number) || !scan_done(&scan) || number > COUNT_MAX)
        return count_expected;
    *out = (uint32_t)number;
    return NULL;
}

const char *units_parse_bool(const char *text, bool *out)
{
    static const struct {
        const char *word;
        bool value;
    } words[] = {{"yes", true}, {"no", false}, {"on", true}, {"off", false}, {"true", true}, {"false", false}};
    struct scan scan = scan_text(text, strlen(text));

    scan_trim(&scan);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (!scan_equals_ignoring_case(scan.at, (size_t)(scan.end - scan.at), words[i].word))
            continue;
        *out = words[i].value;
        return NULL;
    }
    return bool_expected;
}

/* "." and the digits of a fraction, without trailing zeros; "" for 0.  `one` is a power of ten. */
static const char *fraction_text(char buffer[static 16], uint64_t fraction, uint64_t one)
{
    size_t used = 0;
    if (fraction > 0)
        buffer[used++] = '.';
    for (; fraction > 0 && used < 15; fraction %= one) {
        one /= 10;
        buffer[used++] = (char)('0' + fraction / one);
    }
    buffer[used] = '\0';
    return buffer;
}

/* What is below a minute: milliseconds below a second, else seconds.  "" for 0. */
static void format_seconds(char *buffer, size_t size, uint64_t ns)
{
    char fraction[16];
    bool seconds = ns >= (uint64_t)NS_PER_SECOND;
    uint64_t unit = (uint64_t)(seconds ? NS_PER_SECOND : NS_PER_MS);
    if (ns == 0)
        buffer[0] = '\0';
    else
        snprintf(buffer, size, "%" PRIu64 "%s%s", ns / unit, fraction_text(fraction, ns % unit, unit),
                 seconds ? "s" : "ms");
}

int units_format_duration(char *buffer, size_t size, int64_t ns)
{
    uint64_t rest = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    char parts[3][24] = {"", "", ""};
    char seconds[40];

    if (rest == 0)
        return snprintf(buffer, size, "0s");
    /* People write 90s, and 100s, but not 7000s. */
    if (rest >= 120 * (uint64_t)NS_PER_SECOND) {
        static const struct time_unit units[] = {
            {"d", SECONDS_PER_DAY * NS_PER_SECOND}, {"h", 3600 * NS_PER_SECOND}, {"m", 60 * NS_PER_SECOND}};
        for (unsigned i = 0; i < 3; i++) {
            if (rest >= (uint64_t)units[i].ns)
                snprintf(parts[i], sizeof parts[i], "%" PRIu64 "%s", rest / (uint64_t)units[i].ns, units[i].name);
            rest %= (uint64_t)units[i].ns;
        }
    }
    format_seconds(seconds, sizeof seconds, rest);
    return snprintf(buffer, size, "%s%s%s%s%s", ns < 0 ? "-" : "", parts[0], parts[1], parts[2], seconds);
}

int units_format_rate(char *buffer, size_t size, struct rate rate)
{
    for (size_t i = 0; i < TIME_UNIT_COUNT; i++) {
        if (rate.window_ns <= 0 || rate.window_ns % time_units[i].ns != 0)
            continue;
        int64_t times = rate.window_ns / time_units[i].ns;
        if (times == 1)
            return snprintf(buffer, size, "%" PRIu64 "/%s", rate.count, time_units[i].name);
        return snprintf(buffer, size, "%" PRIu64 "/%" PRId64 "%s", rate.count, times, time_units[i].name);
    }
    char window[64];
    units_format_duration(window, sizeof window, rate.window_ns);
    return snprintf(buffer, size, "%" PRIu64 "/%s", rate.count, window);
}

int units_format_percent(char *buffer, size_t size, uint32_t ppm)
{
    char fraction[16];
    return snprintf(buffer, size, "%" PRIu32 "%s%%", ppm / 10000, fraction_text(fraction, ppm % 10000, 10000));
}

int units_format_size(char *buffer, size_t size, uint64_t bytes)
{
    size_t i = 0;
    while (i + 1 < SIZE_UNIT_COUNT && (bytes == 0 || bytes % (UINT64_C(1) << size_units[i].shift) != 0))
        i++;
    return snprintf(buffer, size, "%" PRIu64 "%s", bytes >> size_units[i].shift, size_units[i].name);
}
