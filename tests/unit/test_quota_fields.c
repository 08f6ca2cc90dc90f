/* SPDX-License-Identifier: MIT */
/*
 * Quota fields, mostly by header_cases.tsv: responses of real servers and of the drafts, with what
 * they mean.  Its columns: wait_s is what the server demands before the next request ("-": nothing,
 * or nothing usable); limit, remaining, reset_s and window_s are of the governing window.  A note
 * with [W] marks a window length that only the server's documentation says.  Times are uncapped.
 */
#include "core/field_value.h"
#include "core/quota_fields.h"
#include "core/retry_after.h"
#include "core/units.h"
#include "tests/unit/header_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW_S INT64_C(1700000000)

static struct quota_fields read_lines(const char *lines)
{
    struct headers headers;
    header_lines_read(&headers, lines);
    return quota_fields_read(&headers, NOW_S);
}

/* ------------------------------------------------------------------ the cases' table ---- */

enum column { ID, VENDOR, STATUS, HEADERS, WAIT, LIMIT, REMAINING, RESET, WINDOW, RESPONSE_TIME, NOTE, COLUMNS };

static bool split(char *line, char *column[COLUMNS])
{
    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < COLUMNS; i++) {
        column[i] = line;
        char *tab = strchr(line, '\t');
        if ((tab == NULL) != (i == COLUMNS - 1))
            return false;
        if (tab) {
            *tab = '\0';
            line = tab + 1;
        }
    }
    return true;
}

/* What the response demands, by RFC 9110's and the drafts' rules: Retry-After first, which binds on a
 * success only when nothing is known to be left; then an exhausted window's reset; then, on a status
 * that means "too many", a reset that stands alone.  A zero is only worth a word on a refusal. */
static int64_t demanded_wait_ns(const struct retry_after *word, const struct quota_fields *fields, int status)
{
    bool is_success = status < 300;
    bool may_be_exhausted = fields->remaining <= 0;
    if (word->form == RETRY_AFTER_GIVEN && (!is_success || may_be_exhausted))
        return word->wait_ns;
    if (fields->remaining == 0 && fields->reset_ns >= 0)
        return is_success && fields->reset_ns == 0 ? QUOTA_UNKNOWN : fields->reset_ns;
    if ((status == 420 || status == 429 || status == 503) && fields->reset_ns > 0)
        return fields->reset_ns;
    return word->form == RETRY_AFTER_ZERO && !is_success ? 0 : QUOTA_UNKNOWN;
}

static bool is_count(const char *expected, int64_t value)
{
    return strcmp(expected, "-") == 0 ? value == QUOTA_UNKNOWN : value == strtoll(expected, NULL, 10);
}

/* To the microsecond: some expected values went through a floating-point subtraction.  What does not
 * fit into nanoseconds (the year 9999) saturates. */
static bool is_time(const char *expected, int64_t value_ns)
{
    if (strcmp(expected, "-") == 0)
        return value_ns == QUOTA_UNKNOWN;
    long double expected_ns = strtold(expected, NULL) * 1e9L;
    if (expected_ns > (long double)INT64_MAX)
        return value_ns == INT64_MAX;
    long double difference = expected_ns - (long double)value_ns;
    return value_ns != QUOTA_UNKNOWN && difference > -1000.0L && difference < 1000.0L;
}

static bool check_case(char *column[COLUMNS])
{
    struct headers headers;
    char *colon = strchr(column[RESPONSE_TIME], ':');
    int64_t response_s = strtoll(colon + 1, NULL, 10);
    /* Where the response has a Date, the local clock must not matter. */
    int64_t now_s = strncmp(column[RESPONSE_TIME], "date", 4) == 0 ? response_s + 54321 : response_s;

    header_lines_read(&headers, column[HEADERS]);
    struct quota_fields fields = quota_fields_read(&headers, now_s);
    struct retry_after word = retry_after_read(&headers, now_s);
    int64_t wait_ns = demanded_wait_ns(&word, &fields, atoi(column[STATUS]));
    bool window_is_documented = strstr(column[NOTE], "[W]") != NULL;
    if (is_time(column[WAIT], wait_ns) && is_count(column[LIMIT], fields.limit) &&
        is_count(column[REMAINING], fields.remaining) && is_time(column[RESET], fields.reset_ns) &&
        (window_is_documented || is_time(column[WINDOW], fields.window_ns)))
        return true;
    print_error("%s: %s\n  expected wait %s, limit %s, remaining %s, reset %s, window %s\n"
                "  read     wait %.9g, limit %lld, remaining %lld, reset %.9g, window %.9g\n",
                column[ID], column[HEADERS], column[WAIT], column[LIMIT], column[REMAINING], column[RESET],
                column[WINDOW], (double)wait_ns / 1e9, (long long)fields.limit, (long long)fields.remaining,
                (double)fields.reset_ns / 1e9, (double)fields.window_ns / 1e9);
    return false;
}

/* Beside this file: __FILE__ is relative to where the tests are run. */
static FILE *open_cases(void)
{
    const char *path = __FILE__;
    const char *slash = strrchr(path, '/');
    char name[512];
    snprintf(name, sizeof(name), "%.*s/header_cases.tsv", slash ? (int)(slash - path) : 1, slash ? path : ".");
    return fopen(name, "r");
}

static void test_cases_of_real_servers(void **state)
{
    (void)state;
    FILE *file = open_cases();
    char *line = NULL, *column[COLUMNS];
    size_t size = 0;
    unsigned passed = 0, failed = 0;

    assert_non_null(file);
    assert_true(getline(&line, &size, file) > 0);
    assert_true(split(line, column));
    assert_string_equal(column[WAIT], "wait_s");
    while (getline(&line, &size, file) > 0) {
        assert_true(split(line, column));
        if (check_case(column))
            passed++;
        else
            failed++;
    }
    free(line);
    fclose(file);
    print_message("header cases: %u passed, %u failed\n", passed, failed);
    assert_int_equal(failed, 0);
    assert_true(passed > 200);
}

/* -------------------------------------------------------------- one thing at a time ---- */

#define S NS_PER_SECOND
#define NO QUOTA_UNKNOWN

static const struct {
    const char *name;
    const char *lines;
    int64_t limit, remaining, reset_ns, window_ns;
} cases[] = {
    /* The ways in which a reset is written, all of them with nothing left. */
    {"delta", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 2", NO, 0, 2 * S, NO},
    {"epoch", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 1700000002", NO, 0, 2 * S, NO},
    {"epoch in milliseconds", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 1700000002000", NO, 0, 2 * S, NO},
    {"fraction", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 2.5", NO, 0, 5 * S / 2, NO},
    {"epoch with a fraction", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 1700000002.5", NO, 0, 5 * S / 2, NO},
    {"seconds with unit", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 2s", NO, 0, 2 * S, NO},
    {"a minute", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 1m", NO, 0, 60 * S, NO},
    {"minutes and seconds", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 6m0s", NO, 0, 360 * S, NO},
    {"milliseconds with unit", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 547ms", NO, 0, 547 * NS_PER_MS, NO},
    {"clock", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 00:00:05", NO, 0, 5 * S, NO},
    {"RFC 3339", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 2023-11-14T22:13:22Z", NO, 0, 2 * S, NO},
    {"HTTP-date", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: Tue, 14 Nov 2023 22:13:22 GMT", NO, 0, 2 * S, NO},
    {"past epoch", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 1699999995", NO, 0, 0, NO},
    {"past date", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: Sun, 06 Nov 1994 08:49:37 GMT", NO, 0, 0, NO},
    {"zero", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 0", NO, 0, 0, NO},
    {"empty", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset:", NO, 0, NO, NO},
    {"two copies", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 2 | X-RateLimit-Reset: 2", NO, 0, 2 * S, NO},
    {"two that differ", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 2 | X-RateLimit-Reset: 9", NO, 0, 9 * S, NO},
    {"upper case", "X-RATELIMIT-REMAINING: 0 | X-RATELIMIT-RESET: 2", NO, 0, 2 * S, NO},
    {"reset-after before reset",
     "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 1700000009 | X-RateLimit-Reset-After: 8", NO, 0, 8 * S, NO},
    {"reset-after unusable", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 9 | X-RateLimit-Reset-After: x", NO, 0,
     9 * S, NO},
    {"reset-after is never an epoch", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset-After: 1700000009", NO, 0,
     INT64_C(1700000009) * S, NO},
    {"unusable numbers before it", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 100000000 | X-RateLimit-Next: 7", NO,
     0, 7 * S, NO},
    {"a reset alone", "X-RateLimit-Next: 7", NO, NO, 7 * S, NO},
    {"a reset time alone", "RateLimit-ResetTime: Tue, 14 Nov 2023 22:13:22 GMT", NO, NO, 2 * S, NO},
    {"the response's own clock",
     "Date: Tue, 14 Nov 2023 23:13:20 GMT | X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 1700003605", NO, 0, 5 * S,
     NO},
    {"the response's own clock, with a date",
     "Date: Tue, 14 Nov 2023 23:13:20 GMT | X-RateLimit-Remaining: 0 | X-RateLimit-Reset: Tue, 14 Nov 2023 23:13:25 "
     "GMT",
     NO, 0, 5 * S, NO},

    /* Resets that are refused. */
    {"negative", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: -5", NO, 0, NO, NO},
    {"hexadecimal", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 0x2", NO, 0, NO, NO},
    {"a word", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: soon", NO, 0, NO, NO},
    {"between delta and epoch", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 100000000", NO, 0, NO, NO},
    {"the largest delta", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 99999999", NO, 0, 99999999 * S, NO},
    {"between the epochs", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 10000000000", NO, 0, NO, NO},
    {"epoch in microseconds", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 1700000002000000", NO, 0, NO, NO},
    {"above 32 bits", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 2147483648", NO, 0, INT64_C(447483648) * S, NO},
    {"above 64 bits", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 18446744073709551616", NO, 0, NO, NO},
    {"60 nines",
     "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 999999999999999999999999999999999999999999999999999999999999", NO,
     0, NO, NO},
    {"digits and a letter", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 99999999999x", NO, 0, NO, NO},

    /* Counts. */
    {"float that is whole", "X-RateLimit-Limit: 100.0 | X-RateLimit-Remaining: 57.000", 100, 57, NO, NO},
    {"float that is not", "X-RateLimit-Limit: 100.5 | X-RateLimit-Remaining: 57.5", NO, NO, NO, NO},
    {"18 digits", "X-RateLimit-Limit: 999999999999999999", 999999999999999999, NO, NO, NO},
    {"19 digits", "X-RateLimit-Limit: 1000000000000000000 | X-RateLimit-Remaining: 1", NO, 1, NO, NO},
    {"words", "X-RateLimit-Limit: unlimited | X-RateLimit-Remaining: many", NO, NO, NO, NO},
    {"plus sign", "X-RateLimit-Remaining: +1", NO, NO, NO, NO},
    {"exponent", "X-RateLimit-Remaining: 1e3", NO, NO, NO, NO},
    {"limit of minus one", "X-RateLimit-Limit: -1 | X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 9", NO, NO, NO, NO},
    {"minus one left, no limit", "X-RateLimit-Remaining: -1 | X-RateLimit-Reset: 9", NO, NO, NO, NO},
    {"minus one left of none", "X-RateLimit-Limit: 0 | X-RateLimit-Remaining: -1", NO, NO, NO, NO},
    {"overdrawn", "X-RateLimit-Limit: 5 | X-RateLimit-Remaining: -1 | X-RateLimit-Reset: 9", 5, 0, 9 * S, NO},
    {"minus zero", "X-RateLimit-Limit: 5 | X-RateLimit-Remaining: -0", 5, 0, NO, NO},
    {"one family's fault is its own",
     "X-RateLimit-Limit: x | X-RateLimit-Remaining: x | RateLimit-Limit: 9 | RateLimit-Remaining: 3", 9, 3, NO, NO},
    {"used instead of a limit", "X-RateLimit-Used: 7 | X-RateLimit-Remaining: 3", 10, 3, NO, NO},

    /* Repeated and joined fields. */
    {"position by position",
     "X-RateLimit-Limit: 100 | X-RateLimit-Limit: 50 | X-RateLimit-Remaining: 90 | "
     "X-RateLimit-Remaining: 7 | X-RateLimit-Reset: 30 | X-RateLimit-Reset: 12",
     50, 7, 12 * S, NO},
    {"an exhausted position", "X-RateLimit-Limit: 100, 50 | X-RateLimit-Remaining: 0, 7 | X-RateLimit-Reset: 30, 12",
     100, 0, 30 * S, NO},
    {"one position unreadable",
     "X-RateLimit-Limit: 100 | X-RateLimit-Limit: x | X-RateLimit-Remaining: 90 | "
     "X-RateLimit-Remaining: 7",
     NO, 7, NO, NO},
    {"two dates",
     "X-RateLimit-Remaining: 5, 0 | X-RateLimit-Reset: Tue, 14 Nov 2023 22:13:22 GMT, "
     "Tue, 14 Nov 2023 22:13:29 GMT",
     NO, 0, 9 * S, NO},
    {"thousands", "X-RateLimit-Limit: 5,000 | X-RateLimit-Remaining: 1,234,567", NO, NO, NO, NO},
    {"a list is no thousands", "X-RateLimit-Limit: 50, 100 | X-RateLimit-Remaining: 7, 100", 50, 7, NO, NO},

    /* Windows. */
    {"its policy", "RateLimit-Limit: 10, 10;w=1, 50;w=60 | RateLimit-Remaining: 9 | RateLimit-Reset: 1", 10, 9, S, S},
    {"the other policy", "RateLimit-Limit: 50, 10;w=1, 50;w=60 | RateLimit-Remaining: 9", 50, 9, NO, 60 * S},
    {"a reset beyond the window", "RateLimit-Limit: 10, 10;w=1 | RateLimit-Remaining: 9 | RateLimit-Reset: 3", 10, 9,
     3 * S, NO},
    {"limit per window", "X-RateLimit-Limit: 150/15m | X-RateLimit-Remaining: 148", 150, 148, NO, 900 * S},
    {"limit per nothing", "X-RateLimit-Limit: 150/ | X-RateLimit-Remaining: 148", NO, 148, NO, NO},
    {"period", "X-RateLimit-Limit: 9 | X-RateLimit-Period: 60", 9, NO, NO, 60 * S},
    {"period of no length", "X-RateLimit-Limit: 9 | X-RateLimit-Period: 0", 9, NO, NO, NO},
    {"a period alone says nothing", "X-RateLimit-Period: 60", NO, NO, NO, NO},
    {"one family's policy is not another's",
     "X-RateLimit-Limit: 10, 10;w=1 | RateLimit-Limit: 10 | RateLimit-Remaining: 3 | X-RateLimit-Remaining: 4", 10, 3,
     NO, NO},
    {"a huge window", "RateLimit-Policy: \"a\";q=1;w=999999999999999 | RateLimit: \"a\";r=1", 1, 1, NO, INT64_MAX},

    /* Structured fields: one fault and the field is gone, but only that field. */
    {"list over two lines", "RateLimit: \"a\";r=5;t=30 | RateLimit: \"b\";r=3;t=10", NO, 3, 10 * S, NO},
    {"dictionary over two lines", "RateLimit: limit=9, remaining=4 | RateLimit: reset=7", 9, 4, 7 * S, NO},
    {"one of two lines malformed", "RateLimit: \"a\";r=5;t=30 | RateLimit: \"b;r=3", NO, NO, NO, NO},
    {"policy malformed", "RateLimit: \"a\";r=5;t=30 | RateLimit-Policy: \"a\";q=9;w=", NO, 5, 30 * S, NO},
    {"a member's fault is its own", "RateLimit: \"a\";r=x;t=30, \"b\";r=3;t=10", NO, 3, 10 * S, NO},
    {"negative t", "RateLimit: \"a\";r=0;t=-30", NO, NO, NO, NO},
    {"fractional r", "RateLimit: \"a\";r=0.5;t=30", NO, NO, NO, NO},
    {"upper-case key", "RateLimit: \"a\";R=0;t=30", NO, NO, NO, NO},
    {"blank before the semicolon", "RateLimit: \"a\" ;r=0;t=30", NO, NO, NO, NO},
    {"an integer as name", "RateLimit: 5;r=0;t=30", NO, NO, NO, NO},
    {"dictionary with a negative", "RateLimit: limit=10, remaining=-1, reset=5", NO, NO, NO, NO},
    {"dictionary with a word", "RateLimit: limit=10, remaining=few, reset=5", NO, NO, NO, NO},
    {"empty field", "RateLimit:", NO, NO, NO, NO},
    {"a name alone", "RateLimit: \"a\"", NO, NO, NO, NO},
    {"a dictionary of strangers", "RateLimit: acme=1", NO, NO, NO, NO},
    {"names must be equal", "RateLimit: \"a\";r=5 | RateLimit-Policy: \"A\";q=9;w=60", NO, 5, NO, NO},
    {"escaped names", "RateLimit: \"a\\\"b\";r=5 | RateLimit-Policy: \"a\\\"b\";q=9;w=60", 9, 5, NO, 60 * S},
    {"partitions differ", "RateLimit: \"a\";r=5;pk=:YQ==: | RateLimit-Policy: \"a\";q=9;w=60;pk=:Yg==:", NO, 5, NO, NO},
    {"the partition's own policy",
     "RateLimit: \"a\";r=5;pk=:Yg==: | RateLimit-Policy: \"a\";q=9;w=60;pk=:YQ==:, \"a\";q=8;w=30;pk=:Yg==:", 8, 5, NO,
     30 * S},
    {"a policy alone", "RateLimit-Policy: \"a\";q=9;w=60", 9, NO, NO, 60 * S},
    {"a negative quota", "RateLimit-Policy: \"a\";q=-9;w=60", NO, NO, NO, NO},
    {"bytes that are left", "RateLimit-Policy: \"a\";q=9;w=60;qu=\"content-bytes\" | RateLimit: \"a\";r=1;t=30", NO, NO,
     NO, NO},
    {"bytes that are not",
     "RateLimit-Policy: \"a\";q=9;w=60;qu=\"content-bytes\" | RateLimit: \"a\";r=0;t=30, "
     "\"b\";r=1;t=9",
     9, 0, 30 * S, 60 * S},

    /* Which window governs. */
    {"the exhausted one", "RateLimit: \"a\";r=1;t=90, \"b\";r=0;t=10", NO, 0, 10 * S, NO},
    {"the latest of the exhausted", "RateLimit: \"a\";r=0;t=90, \"b\";r=0;t=10, \"c\";r=0", NO, 0, 90 * S, NO},
    {"over families", "RateLimit-Remaining: 4 | X-Rate-Limit-Remaining: 2 | X-RateLimit-Remaining: 3", NO, 2, NO, NO},
    {"the first of equals", "RateLimit: \"a\";r=4;t=90, \"b\";r=4;t=10", NO, 4, 90 * S, NO},
    {"known before unknown", "RateLimit-Limit: 5 | X-RateLimit-Limit: 10 | X-RateLimit-Remaining: 9", 10, 9, NO, NO},

    /* Somebody else's past, and what is not enforced. */
    {"from a cache", "Age: 1 | X-RateLimit-Limit: 5 | X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 9", NO, NO, NO, NO},
    {"list of ages", "Age: 1, 0 | X-RateLimit-Remaining: 0", NO, NO, NO, NO},
    {"fresh", "Age: 0 | X-RateLimit-Remaining: 0", NO, 0, NO, NO},
    {"unreadable age", "Age: old | X-RateLimit-Remaining: 0", NO, 0, NO, NO},
    {"beta", "Beta-RateLimit: \"a\";r=0;t=50 | X-Beta-RateLimit-Remaining: 0 | X-Beta-RateLimit-Reset: 9", NO, NO, NO,
     NO},
};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct quota_fields fields = read_lines(cases[i].lines);
        if (fields.limit != cases[i].limit || fields.remaining != cases[i].remaining ||
            fields.reset_ns != cases[i].reset_ns || fields.window_ns != cases[i].window_ns)
            fail_msg("%s: %s: limit %lld, remaining %lld, reset %lld, window %lld", cases[i].name, cases[i].lines,
                     (long long)fields.limit, (long long)fields.remaining, (long long)fields.reset_ns,
                     (long long)fields.window_ns);
        assert_int_equal(fields.present, fields.limit != NO || fields.remaining != NO || fields.reset_ns != NO);
        assert_int_equal(fields.limit_field != NULL, fields.limit != NO);
        assert_int_equal(fields.remaining_field != NULL, fields.remaining != NO);
        assert_int_equal(fields.reset_field != NULL, fields.reset_ns != NO);
        assert_int_equal(fields.window_field != NULL, fields.window_ns != NO);
    }
}

static void test_names_the_fields(void **state)
{
    (void)state;
    struct quota_fields fields = read_lines(
        "X-RateLimit-Used: 7 | X-RateLimit-Remaining: 3 | X-RateLimit-Reset-After: 5 | X-RateLimit-Window: 60");
    assert_string_equal(fields.limit_field, "x-ratelimit-used");
    assert_string_equal(fields.remaining_field, "x-ratelimit-remaining");
    assert_string_equal(fields.reset_field, "x-ratelimit-reset-after");
    assert_string_equal(fields.window_field, "x-ratelimit-window");

    fields = read_lines("RateLimit: \"a\";r=3;t=10 | RateLimit-Policy: \"a\";q=9;w=60");
    assert_string_equal(fields.limit_field, "ratelimit-policy");
    assert_string_equal(fields.remaining_field, "ratelimit");
    assert_string_equal(fields.reset_field, "ratelimit");
    assert_string_equal(fields.window_field, "ratelimit-policy");
}

/* More values, policies and windows than are kept: no harm, and the first ones count. */
static void test_floods(void **state)
{
    (void)state;
    static const char *const fields[] = {"X-RateLimit-Remaining: ", "RateLimit-Policy: ", "RateLimit: "};
    static const char *const members[] = {"5", "5;w=60", "\"a\";r=5;t=9"};
    for (size_t i = 0; i < 3; i++) {
        char line[2048];
        size_t used = (size_t)snprintf(line, sizeof(line), "%s%s", fields[i], members[i]);
        for (int j = 0; j < 100; j++)
            used += (size_t)snprintf(line + used, sizeof(line) - used, ", %s", members[i]);
        struct quota_fields read = read_lines(line);
        assert_true(read.present);
        assert_int_equal(i == 1 ? read.limit : read.remaining, 5);
    }
}

/* As many lines as there can be, each as long as fits: joined, they are longer than they were. */
static void test_lines_that_fill_everything(void **state)
{
    (void)state;
    int value_length = HEADERS_BYTES / HEADERS_FIELDS - 1;
    struct headers headers;
    headers_clear(&headers);
    for (int i = 1; i <= HEADERS_FIELDS / 2; i++) {
        char start[64], end[64], line[256];
        snprintf(start, sizeof(start), "\"a%d\";x=x", i);
        snprintf(end, sizeof(end), ";q=%d;w=60", 100 + i);
        int padding = value_length - (int)strlen(start) - (int)strlen(end);
        int length = snprintf(line, sizeof(line), "RateLimit-Policy:%s%0*d%s", start, padding, 0, end);
        headers_add(&headers, line, (size_t)length);
        snprintf(end, sizeof(end), ";r=%d;t=9", HEADERS_FIELDS / 2 - i);
        padding = value_length - (int)strlen(start) - (int)strlen(end);
        length = snprintf(line, sizeof(line), "RateLimit:%s%0*d%s", start, padding, 0, end);
        headers_add(&headers, line, (size_t)length);
    }
    assert_int_equal(headers.count, HEADERS_FIELDS);
    assert_int_equal(headers.used, HEADERS_BYTES);
    struct quota_fields fields = quota_fields_read(&headers, NOW_S);
    assert_int_equal(fields.remaining, 0);
    assert_int_equal(fields.reset_ns, 9 * S);
    assert_int_equal(fields.limit, 100 + HEADERS_FIELDS / 2);
    assert_int_equal(fields.window_ns, 60 * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases_of_real_servers),      cmocka_unit_test(test_table),
        cmocka_unit_test(test_names_the_fields),           cmocka_unit_test(test_floods),
        cmocka_unit_test(test_lines_that_fill_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
