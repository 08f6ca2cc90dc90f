/* SPDX-License-Identifier: MIT */
/*
 * Units: every form that is accepted, what is said about those that are not, and that what is
 * printed parses to the same value.
 */
#include "core/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define MS NS_PER_MS
#define S NS_PER_SECOND
#define MINUTE (60 * S)
#define HOUR (3600 * S)
#define DAY (24 * HOUR)
#define BAD INT64_C(-1)
#define UNTOUCHED INT64_C(0x5ca1ab1e)

static void assert_taken(const char *text, const char *expected, bool should_be)
{
    if ((expected == NULL) != should_be)
        fail_msg("\"%s\" was %s%s", text, expected == NULL ? "taken" : "refused: expected ", expected ? expected : "");
}

static void durations_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"90s", 90 * S},
        {"250ms", 250 * MS},
        {"15min", 15 * MINUTE},
        {"15 min", 15 * MINUTE},
        {"15m", 15 * MINUTE},
        {"2h", 2 * HOUR},
        {"1d", DAY},
        {"1h30m", HOUR + 30 * MINUTE},
        {"1h 30min", HOUR + 30 * MINUTE},
        {"1d1h1m1s1ms", DAY + HOUR + MINUTE + S + MS},
        {"  5 s\t", 5 * S},
        {"0.1s", 100 * MS},
        {"1.5h", 90 * MINUTE},
        {"0.000001ms", 1},
        {"0.0000001ms", 0},
        {"0s", 0},
        {"0ms", 0},
        {"007s", 7 * S},
        {"3650d", 3650 * DAY},
        {"3650d0s", 3650 * DAY},
        {"3650d1ms", BAD},
        {"3651d", BAD},
        {"99999999999999999999999999d", BAD},
        {"", BAD},
        {" ", BAD},
        {"90", BAD},
        {"0", BAD},
        {"s", BAD},
        {"-5s", BAD},
        {"+5s", BAD},
        {"5 S", BAD},
        {"5sec", BAD},
        {"5M", BAD},
        {"5s5s", BAD},
        {"5s1h", BAD},
        {"5m5min", BAD},
        {"1h30", BAD},
        {"1h,30m", BAD},
        {".5s", BAD},
        {"5.s", BAD},
        {"5..0s", BAD},
        {"1e3s", BAD},
        {"0x10s", BAD},
        {"5s x", BAD},
        {"banana", BAD},
        {"\xc2\xa0"
         "5s",
         BAD},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ns = UNTOUCHED;
        const char *expected = units_parse_duration(cases[i].text, &ns);
        assert_taken(cases[i].text, expected, cases[i].ns != BAD);
        assert_int_equal(ns, cases[i].ns != BAD ? cases[i].ns : UNTOUCHED);
    }
}

static void faults_say_what_was_expected(void **state)
{
    int64_t ns;
    uint32_t number;
    uint64_t bytes;
    bool flag;
    struct rate_list rates;

    (void)state;
    assert_string_equal(units_parse_duration("90", &ns), "a duration with its unit, such as 90s or 250ms");
    assert_string_equal(units_parse_duration("4000d", &ns), "a duration of at most 3650d");
    assert_string_equal(units_parse_rates("banana", &rates), "a rate such as 5000/h");
    assert_string_equal(units_parse_rates("5000", &rates), "a rate such as 5000/h");
    assert_non_null(strstr(units_parse_rates("0/h", &rates), "1 to 1000000000"));
    assert_non_null(strstr(units_parse_rates("5/400d", &rates), "366d"));
    assert_non_null(strstr(units_parse_rates("5/9999999d", &rates), "366d"));
    assert_non_null(strstr(units_parse_rates("1/s,2/m,3/h,4/d,5/2d", &rates), "four"));
    assert_non_null(strstr(units_parse_rates("1/h,2/60m", &rates), "another time"));
    assert_string_equal(units_parse_percent("20", &number), "a percentage from 0% to 100%");
    assert_non_null(strstr(units_parse_factor("1.1", &number), "from 0 to 1"));
    assert_non_null(strstr(units_parse_size("5", &bytes), "with its unit"));
    assert_non_null(strstr(units_parse_size("99999999TiB", &bytes), "at most"));
    assert_string_equal(units_parse_count("-1", &number), "a whole number from 0 to 1000000000");
    assert_string_equal(units_parse_bool("maybe", &flag), "yes or no");
}

static void rates_are_read(void **state)
{
    static const struct {
        const char *text;
        unsigned count; /* 0: bad */
        struct rate item[RATES_MAX];
    } cases[] = {
        {"5000/h", 1, {{5000, HOUR}}},
        {"1000/15min", 1, {{1000, 15 * MINUTE}}},
        {"10/s", 1, {{10, S}}},
        {" 10 / 2 s ", 1, {{10, 2 * S}}},
        {"5/1h30m", 1, {{5, HOUR + 30 * MINUTE}}},
        {"5/0.5s", 1, {{5, 500 * MS}}},
        {"1/ms", 1, {{1, MS}}},
        {"1/366d", 1, {{1, 366 * DAY}}},
        {"1000000000/s", 1, {{1000000000, S}}},
        {"10/s, 500/min,20000/d", 3, {{10, S}, {500, MINUTE}, {20000, DAY}}},
        {"1/s,2/min,3/h,4/d", 4, {{1, S}, {2, MINUTE}, {3, HOUR}, {4, DAY}}},
        {"1/s,2/min,3/h,4/d,5/2d", 0, {{0, 0}}},
        {"1/h,2/60min", 0, {{0, 0}}},
        {"", 0, {{0, 0}}},
        {"5000", 0, {{0, 0}}},
        {"5000/", 0, {{0, 0}}},
        {"/h", 0, {{0, 0}}},
        {"0/h", 0, {{0, 0}}},
        {"1000000001/h", 0, {{0, 0}}},
        {"-5/h", 0, {{0, 0}}},
        {"1.5/h", 0, {{0, 0}}},
        {"5/0s", 0, {{0, 0}}},
        {"5/0.5ms", 0, {{0, 0}}},
        {"5/367d", 0, {{0, 0}}},
        {"5/3600", 0, {{0, 0}}},
        {"5/hour", 0, {{0, 0}}},
        {"5/h/h", 0, {{0, 0}}},
        {"5/hh", 0, {{0, 0}}},
        {"5/h m", 0, {{0, 0}}},
        {"5/h,", 0, {{0, 0}}},
        {",5/h", 0, {{0, 0}}},
        {"5/h;6/m", 0, {{0, 0}}},
        {"none", 0, {{0, 0}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rate_list list = {.count = 77};
        const char *expected = units_parse_rates(cases[i].text, &list);
        assert_taken(cases[i].text, expected, cases[i].count > 0);
        assert_int_equal(list.count, cases[i].count > 0 ? cases[i].count : 77);
        for (unsigned j = 0; j < cases[i].count; j++) {
            assert_int_equal(list.item[j].count, cases[i].item[j].count);
            assert_int_equal(list.item[j].window_ns, cases[i].item[j].window_ns);
        }
    }
}

/* A value that may be bad, in the type that holds all of the kinds below. */
struct number_case {
    const char *text;
    int64_t value;
};

static void check_numbers(const struct number_case *cases, size_t count, const char *parse(const char *, uint32_t *))
{
    for (size_t i = 0; i < count; i++) {
        uint32_t value = 12345678;
        const char *expected = parse(cases[i].text, &value);
        assert_taken(cases[i].text, expected, cases[i].value != BAD);
        assert_int_equal(value, cases[i].value != BAD ? cases[i].value : 12345678);
    }
}

static void percentages_are_read(void **state)
{
    static const struct number_case cases[] = {
        {"20%", 200000},
        {"0%", 0},
        {"100%", 1000000},
        {"0.5 %", 5000},
        {"0.0001%", 1},
        {"33.3333%", 333333},
        {" 7% ", 70000},
        {"20", BAD},
        {"0.2", BAD},
        {"100.1%", BAD},
        {"101%", BAD},
        {"-1%", BAD},
        {"%", BAD},
        {"", BAD},
        {"20%%", BAD},
        {"20% of it", BAD},
        {"99999999999999999999%", BAD},
    };
    (void)state;
    check_numbers(cases, sizeof cases / sizeof cases[0], units_parse_percent);
}

static void factors_are_read(void **state)
{
    static const struct number_case cases[] = {
        {"0.7", 700000}, {"70%", 700000},   {"1", 1000000}, {"0", 0},      {"1.0", 1000000},
        {"0.000001", 1}, {" 0.5 ", 500000}, {"1.1", BAD},   {"2", BAD},    {"-0.5", BAD},
        {".7", BAD},     {"0,7", BAD},      {"70", BAD},    {"101%", BAD}, {"", BAD},
    };
    (void)state;
    check_numbers(cases, sizeof cases / sizeof cases[0], units_parse_factor);
}

static void counts_are_read(void **state)
{
    static const struct number_case cases[] = {
        {"0", 0},
        {"5", 5},
        {" 17 ", 17},
        {"1000000000", 1000000000},
        {"1000000001", BAD},
        {"4294967296", BAD},
        {"18446744073709551616", BAD},
        {"-1", BAD},
        {"1.5", BAD},
        {"5x", BAD},
        {"", BAD},
        {"0x5", BAD},
        {"5 5", BAD},
    };
    (void)state;
    check_numbers(cases, sizeof cases / sizeof cases[0], units_parse_count);
}

static void sizes_are_read(void **state)
{
    static const struct number_case cases[] = {
        {"1MiB", 1048576},
        {"512 KiB", 524288},
        {"64 B", 64},
        {"0B", 0},
        {"2gib", INT64_C(1) << 31},
        {"1TiB", INT64_C(1) << 40},
        {"1048576TiB", INT64_C(1) << 60},
        {"1048577TiB", BAD},
        {"1152921504606846977B", BAD},
        {"99999999999999999999B", BAD},
        {"1", BAD},
        {"1M", BAD},
        {"1MB", BAD},
        {"1.5MiB", BAD},
        {"-1KiB", BAD},
        {"MiB", BAD},
        {"", BAD},
        {"1MiB x", BAD},
        {"0", BAD},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t value = UNTOUCHED;
        const char *expected = units_parse_size(cases[i].text, &value);
        assert_taken(cases[i].text, expected, cases[i].value != BAD);
        assert_int_equal(value, cases[i].value != BAD ? cases[i].value : UNTOUCHED);
    }
}

static void bools_are_read(void **state)
{
    static const char *const yes[] = {"yes", "on", "true", "YES", "On", " true "};
    static const char *const no[] = {"no", "off", "false", "NO", "Off", "\tfalse"};
    static const char *const bad[] = {"", "1", "0", "y", "yes no", "enable"};
    bool value;

    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        value = false;
        assert_null(units_parse_bool(yes[i], &value));
        assert_true(value);
        assert_null(units_parse_bool(no[i], &value));
        assert_false(value);
        value = true;
        assert_non_null(units_parse_bool(bad[i], &value));
        assert_true(value);
    }
}

static void durations_are_printed_as_people_write_them(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {0, "0s"},
        {1, "0.000001ms"},
        {250 * MS, "250ms"},
        {999 * MS + 500000, "999.5ms"},
        {S, "1s"},
        {1500 * MS, "1.5s"},
        {90 * S, "90s"},
        {119 * S, "119s"},
        {120 * S, "2m"},
        {121 * S, "2m1s"},
        {90 * MINUTE, "1h30m"},
        {HOUR, "1h"},
        {DAY, "1d"},
        {DAY + S, "1d1s"},
        {HOUR + 250 * MS, "1h250ms"},
        {-90 * S, "-90s"},
        {3650 * DAY, "3650d"},
    };
    char buffer[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(units_format_duration(buffer, sizeof buffer, cases[i].ns), strlen(cases[i].text));
        assert_string_equal(buffer, cases[i].text);
    }
    assert_true(units_format_duration(buffer, sizeof buffer, TIME_NEVER) < (int)sizeof buffer);
    assert_true(units_format_duration(buffer, sizeof buffer, INT64_MIN) < (int)sizeof buffer);
    assert_int_equal(units_format_duration(buffer, 3, 250 * MS), 5);
    assert_string_equal(buffer, "25");
}

static void others_are_printed_as_people_write_them(void **state)
{
    static const struct {
        struct rate rate;
        const char *text;
    } rates[] = {
        {{5000, HOUR}, "5000/h"},       {{1000, 15 * MINUTE}, "1000/15min"}, {{10, S}, "10/s"},
        {{1, 90 * S}, "1/90s"},         {{1, 250 * MS}, "1/250ms"},          {{7, 36 * HOUR}, "7/36h"},
        {{3, S + 1}, "3/1.000000001s"}, {{1, 366 * DAY}, "1/366d"},
    };
    char buffer[64];

    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        units_format_rate(buffer, sizeof buffer, rates[i].rate);
        assert_string_equal(buffer, rates[i].text);
    }
    units_format_percent(buffer, sizeof buffer, 200000);
    assert_string_equal(buffer, "20%");
    units_format_percent(buffer, sizeof buffer, 5001);
    assert_string_equal(buffer, "0.5001%");
    units_format_size(buffer, sizeof buffer, 1 << 20);
    assert_string_equal(buffer, "1MiB");
    units_format_size(buffer, sizeof buffer, 1536);
    assert_string_equal(buffer, "1536B");
    units_format_size(buffer, sizeof buffer, 0);
    assert_string_equal(buffer, "0B");
}

/* A fixed sequence (Knuth's MMIX generator), so that a failure comes again. */
static uint64_t next_random(void)
{
    static uint64_t state = 42;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 11 ^ state << 21;
}

static void what_is_printed_parses_to_the_same(void **state)
{
    char buffer[64];

    (void)state;
    for (int i = 0; i < 200000; i++) {
        static const int64_t grains[] = {1, 1000, MS, S, MINUTE, HOUR, DAY};
        int64_t grain = grains[next_random() % 7];
        int64_t ns = (int64_t)(next_random() % (uint64_t)(3650 * DAY / grain)) >> next_random() % 40;
        int64_t parsed_ns = -1;
        assert_true(units_format_duration(buffer, sizeof buffer, ns * grain) < (int)sizeof buffer);
        assert_null(units_parse_duration(buffer, &parsed_ns));
        assert_int_equal(parsed_ns, ns * grain);

        struct rate rate = {1 + next_random() % 1000000000, MS + (int64_t)(next_random() % (uint64_t)(366 * DAY - MS))};
        rate.window_ns = rate.window_ns >= grain ? rate.window_ns / grain * grain : rate.window_ns;
        struct rate_list rates = {0};
        assert_true(units_format_rate(buffer, sizeof buffer, rate) < (int)sizeof buffer);
        assert_null(units_parse_rates(buffer, &rates));
        assert_true(rates.count == 1 && rates.item[0].count == rate.count && rates.item[0].window_ns == rate.window_ns);

        uint32_t ppm = (uint32_t)(next_random() % (PPM_ONE + 1)), parsed_ppm = 0;
        units_format_percent(buffer, sizeof buffer, ppm);
        assert_null(units_parse_percent(buffer, &parsed_ppm));
        assert_int_equal(parsed_ppm, ppm);

        uint64_t bytes = (next_random() % ((UINT64_C(1) << 60) + 1)) >> next_random() % 60, parsed_bytes = 0;
        units_format_size(buffer, sizeof buffer, bytes);
        assert_null(units_parse_size(buffer, &parsed_bytes));
        assert_int_equal(parsed_bytes, bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_read),
        cmocka_unit_test(faults_say_what_was_expected),
        cmocka_unit_test(rates_are_read),
        cmocka_unit_test(percentages_are_read),
        cmocka_unit_test(factors_are_read),
        cmocka_unit_test(counts_are_read),
        cmocka_unit_test(sizes_are_read),
        cmocka_unit_test(bools_are_read),
        cmocka_unit_test(durations_are_printed_as_people_write_them),
        cmocka_unit_test(others_are_printed_as_people_write_them),
        cmocka_unit_test(what_is_printed_parses_to_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
