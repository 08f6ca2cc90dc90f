/* SPDX-License-Identifier: MIT */
/*
 * Calendar: against the C library's own arithmetic, day by day, and at the edges.
 */
#include "core/calendar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void test_agrees_with_gmtime_on_every_day(void **state)
{
    (void)state;
    /* From year 0 to the end of 9999, at a time of day that wanders. */
    for (int64_t time_s = INT64_C(-62167219200); time_s <= INT64_C(253402300799); time_s += 86400 + 61) {
        struct calendar_time ours;
        struct tm theirs;
        time_t c_time = (time_t)time_s;
        int64_t back_s = 0;
        assert_non_null(gmtime_r(&c_time, &theirs));
        calendar_from_seconds(time_s, &ours);
        assert_int_equal(ours.year, theirs.tm_year + 1900);
        assert_int_equal(ours.month, theirs.tm_mon + 1);
        assert_int_equal(ours.day, theirs.tm_mday);
        assert_int_equal(ours.hour, theirs.tm_hour);
        assert_int_equal(ours.minute, theirs.tm_min);
        assert_int_equal(ours.second, theirs.tm_sec);
        assert_true(calendar_to_seconds(&ours, &back_s));
        assert_int_equal(back_s, time_s);
    }
}

static void test_refuses_what_does_not_exist(void **state)
{
    (void)state;
    static const struct calendar_time impossible[] = {
        {2023, 0, 1, 0, 0, 0},  {2023, 13, 1, 0, 0, 0}, {2023, 1, 0, 0, 0, 0},  {2023, 1, 32, 0, 0, 0},
        {2023, 4, 31, 0, 0, 0}, {2023, 2, 29, 0, 0, 0}, {2024, 2, 30, 0, 0, 0}, {1900, 2, 29, 0, 0, 0},
        {2023, 1, 1, 24, 0, 0}, {2023, 1, 1, 0, 60, 0}, {2023, 1, 1, 0, 0, 61}, {2023, 1, 1, -1, 0, 0},
        {2023, 1, 1, 0, -1, 0}, {2023, 1, 1, 0, 0, -1}, {10000, 1, 1, 0, 0, 0}, {-1, 1, 1, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof(impossible) / sizeof(impossible[0]); i++) {
        int64_t out_s = 42;
        assert_false(calendar_to_seconds(&impossible[i], &out_s));
        assert_int_equal(out_s, 42);
    }
}

static void test_leap_days_and_the_leap_second(void **state)
{
    (void)state;
    int64_t day_s, next_s;
    assert_true(calendar_to_seconds(&(struct calendar_time){2000, 2, 29, 0, 0, 0}, &day_s));
    assert_int_equal(day_s, 951782400);
    assert_true(calendar_to_seconds(&(struct calendar_time){2015, 12, 31, 23, 59, 60}, &day_s));
    assert_true(calendar_to_seconds(&(struct calendar_time){2016, 1, 1, 0, 0, 0}, &next_s));
    assert_int_equal(day_s, next_s);
}

static void test_times_out_of_range_are_clamped(void **state)
{
    (void)state;
    struct calendar_time time;
    calendar_from_seconds(INT64_MAX, &time);
    assert_int_equal(time.year, 9999);
    calendar_from_seconds(INT64_MIN, &time);
    assert_int_equal(time.year, 0);
    assert_int_equal(time.month, 1);
    assert_int_equal(time.day, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_gmtime_on_every_day),
        cmocka_unit_test(test_refuses_what_does_not_exist),
        cmocka_unit_test(test_leap_days_and_the_leap_second),
        cmocka_unit_test(test_times_out_of_range_are_clamped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
