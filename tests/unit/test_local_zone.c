/* SPDX-License-Identifier: MIT */
/*
 * Local zone: the same time of day as the C library's, in every zone that this machine has a file
 * for; and no harm from a file that is none.
 */
#include "core/system/local_zone.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ZONES "/usr/share/zoneinfo/"

static struct local_zone zone;
static int zones_seen, times_known;

static bool same_as_libc(int64_t time_s)
{
    struct calendar_time ours;
    struct tm libc;
    time_t time = (time_t)time_s;
    if (!local_zone_time(&zone, time_s, &ours))
        return true;
    times_known++;
    localtime_r(&time, &libc);
    return ours.year == libc.tm_year + 1900 && ours.month == libc.tm_mon + 1 && ours.day == libc.tm_mday &&
           ours.hour == libc.tm_hour && ours.minute == libc.tm_min && ours.second == libc.tm_sec;
}

/* Leap seconds ("right/") are not counted here. */
static int check_zone(const char *path, const struct stat *file, int kind, struct FTW *where)
{
    (void)file;
    (void)where;
    if (kind != FTW_F || strstr(path, "/right/"))
        return 0;
    local_zone_read(&zone, path);
    setenv("TZ", path, 1);
    tzset();
    zones_seen++;
    for (int64_t time_s = 0; time_s < INT64_C(2200000000); time_s += INT64_C(3456789))
        if (!same_as_libc(time_s)) {
            print_error("%s at %lld\n", path, (long long)time_s);
            return 1;
        }
    return 0;
}

static void test_every_zone(void **state)
{
    (void)state;
    if (access(ZONES, F_OK) != 0)
        skip();
    assert_int_equal(nftw(ZONES, check_zone, 16, FTW_PHYS), 0);
    assert_true(zones_seen == 0 || times_known > 0);
}

static void assert_local(int64_t time_s, int month, int day, int hour)
{
    struct calendar_time time;
    assert_true(local_zone_time(&zone, time_s, &time));
    assert_int_equal(time.month, month);
    assert_int_equal(time.day, day);
    assert_int_equal(time.hour, hour);
}

static void test_no_file_is_utc(void **state)
{
    (void)state;
    local_zone_read(&zone, "/nonexistent/localtime");
    assert_local(0, 1, 1, 0);
    assert_local(1796040000, 11, 30, 12);
}

/* What precedes the second block in a small file: the first header says that its block is empty. */
#define FIRST                                                                                                          \
    "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"                                                                              \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0"                                                                 \
    "\0\0\0\0\0\0"
/* Two changes, at 1000 and 2000, to types 1 and 0: an hour east, five and a half hours west. */
#define SECOND                                                                                                         \
    "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"                                                                              \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\2\0\0\0\1"                                                                 \
    "\0\0\0\0\0\0\x03\xe8\0\0\0\0\0\0\x07\xd0\1\0"                                                                     \
    "\xff\xff\xb2\xa8\0\0\0\0\x0e\x10\0\0\0"

static const char fixed[] = FIRST SECOND "\nXXX5:30\n";
static const char by_rule[] = FIRST SECOND "\nXXX5:30YYY,M3.5.0,M10.5.0\n";

static void use(const char *file, size_t length)
{
    memset(&zone, 0, sizeof(zone));
    memcpy(zone.file, file, length);
    zone.length = length;
}

static void test_changes_of_the_clock(void **state)
{
    (void)state;
    struct calendar_time time;
    use(fixed, sizeof(fixed) - 1);
    assert_local(0, 12, 31, 18);
    assert_local(999, 12, 31, 18);
    assert_local(1000, 1, 1, 1);
    assert_local(1999, 1, 1, 1);
    assert_local(2000, 12, 31, 19);
    assert_local(3600 * 24, 1, 1, 18);
    use(by_rule, sizeof(by_rule) - 1);
    assert_local(1999, 1, 1, 1);
    assert_false(local_zone_time(&zone, 2000, &time));
}

/* Cut anywhere, and with any byte changed: known or unknown, but nothing is read beyond the end. */
static void test_damaged_files(void **state)
{
    (void)state;
    struct calendar_time time;
    for (size_t length = 0; length < sizeof(FIRST SECOND) - 1; length++) {
        use(fixed, length);
        assert_false(local_zone_time(&zone, 1500, &time));
    }
    for (size_t at = 0; at < sizeof(fixed); at++)
        for (int byte = 0; byte < 256; byte += 5) {
            use(fixed, sizeof(fixed) - 1);
            zone.file[at] = (unsigned char)byte;
            (void)local_zone_time(&zone, 1500, &time);
            (void)local_zone_time(&zone, INT64_MAX, &time);
        }
    use(fixed, sizeof(fixed) - 1);
    zone.file[4] = '\0'; /* a file of the first version has no second block */
    assert_false(local_zone_time(&zone, 1500, &time));
}

static void test_files_that_are_none(void **state)
{
    (void)state;
    struct calendar_time time;
    static const char *const paths[] = {"/dev/null", "/dev/zero", "/", "/proc/self/cmdline", "/dev/null/localtime"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        local_zone_read(&zone, paths[i]);
        assert_false(local_zone_time(&zone, 1500, &time));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_zone),           cmocka_unit_test(test_no_file_is_utc),
        cmocka_unit_test(test_changes_of_the_clock), cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_files_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
