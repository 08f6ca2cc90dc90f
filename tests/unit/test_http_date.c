/* SPDX-License-Identifier: MIT */
/*
 * HTTP-date: the three forms, what is tolerated beyond them, and what is not.
 */
#include "core/http_date.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define NOW_S INT64_C(1700000000) /* Tue, 14 Nov 2023 22:13:20 GMT */
#define NOV_6_1994 INT64_C(784111777)
#define OCT_21_2015 INT64_C(1445412480) /* 07:28:00 */
#define REFUSED INT64_MIN

static const struct {
    const char *text;
    int64_t expected_s;
} cases[] = {
    /* The examples of RFC 9110. */
    {"Sun, 06 Nov 1994 08:49:37 GMT", NOV_6_1994},
    {"Sunday, 06-Nov-94 08:49:37 GMT", NOV_6_1994},
    {"Sun Nov  6 08:49:37 1994", NOV_6_1994},
    {"  Sun, 06 Nov 1994 08:49:37 GMT\t", NOV_6_1994},

    /* What servers make of them. */
    {"Sun, 6 Nov 1994 08:49:37 GMT", NOV_6_1994},
    {"Sunday, 6-Nov-94 08:49:37 GMT", NOV_6_1994},
    {"Sun, 06-Nov-1994 08:49:37 GMT", NOV_6_1994},
    {"Sun, 06 Nov 94 08:49:37 GMT", NOV_6_1994},
    {"Sun,06 Nov 1994 08:49:37 GMT", NOV_6_1994},
    {"Sun,  06  Nov  1994  08:49:37  GMT", NOV_6_1994},
    {"Sun Nov 06 08:49:37 1994", NOV_6_1994},
    {"SUN, 06 NOV 1994 08:49:37 gmt", NOV_6_1994},
    {"Wed, 06 Nov 1994 08:49:37 GMT", NOV_6_1994},
    {"Thursday, 06-Nov-94 08:49:37 GMT", NOV_6_1994},

    /* Zones. */
    {"Wed, 21 Oct 2015 07:28:00 UTC", OCT_21_2015},
    {"Wed, 21 Oct 2015 07:28:00 UT", OCT_21_2015},
    {"Wed, 21 Oct 2015 07:28:00 Z", OCT_21_2015},
    {"Wed, 21 Oct 2015 07:28:00", OCT_21_2015},
    {"Wed, 21 Oct 2015 07:28:00 +0000", OCT_21_2015},
    {"Wed, 21 Oct 2015 07:28:00 -0000", OCT_21_2015},
    {"Wed, 21 Oct 2015 09:28:00 +0200", OCT_21_2015},
    {"Wed, 21 Oct 2015 13:13:00 +05:45", OCT_21_2015},
    {"Tue, 20 Oct 2015 21:58:00 -0930", OCT_21_2015},
    {"Wed, 21 Oct 2015 02:28:00 EST", OCT_21_2015},
    {"Wed, 21 Oct 2015 03:28:00 EDT", OCT_21_2015},
    {"Wed, 21 Oct 2015 01:28:00 CST", OCT_21_2015},
    {"Wed, 21 Oct 2015 02:28:00 CDT", OCT_21_2015},
    {"Wed, 21 Oct 2015 00:28:00 MST", OCT_21_2015},
    {"Wed, 21 Oct 2015 01:28:00 MDT", OCT_21_2015},
    {"Tue, 20 Oct 2015 23:28:00 PST", OCT_21_2015},
    {"Wed, 21 Oct 2015 00:28:00 PDT", OCT_21_2015},

    /* Two-digit years: within 50 years of 2023. */
    {"Tuesday, 14-Nov-23 22:13:20 GMT", NOW_S},
    {"Thursday, 14-Nov-73 22:13:20 GMT", INT64_C(3277923200)},
    {"Thursday, 14-Nov-74 22:13:20 GMT", INT64_C(153699200)},
    {"Saturday, 01-Jan-00 00:00:00 GMT", INT64_C(946684800)},

    /* The edges of the calendar. */
    {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
    {"Wed, 31 Dec 1969 23:59:59 GMT", -1},
    {"Fri, 31 Dec 9999 23:59:59 GMT", INT64_C(253402300799)},
    {"Thu, 29 Feb 2024 00:00:00 GMT", INT64_C(1709164800)},
    {"Thu, 31 Dec 2015 23:59:60 GMT", INT64_C(1451606400)},

    {"Wed, 32 Oct 2015 07:28:00 GMT", REFUSED},
    {"Wed, 00 Oct 2015 07:28:00 GMT", REFUSED},
    {"Wed, 29 Feb 2023 07:28:00 GMT", REFUSED},
    {"Wed, 31 Apr 2023 07:28:00 GMT", REFUSED},
    {"Wed, 21 Oct 2015 24:00:00 GMT", REFUSED},
    {"Wed, 21 Oct 2015 07:60:00 GMT", REFUSED},
    {"Wed, 21 Oct 2015 07:28:61 GMT", REFUSED},
    {"Wed, 21 Oct 2015 7:28:00 GMT", REFUSED},
    {"Wed, 21 Oct 2015 07:28 GMT", REFUSED},
    {"Wed, 21 Oct 015 07:28:00 GMT", REFUSED},
    {"Wed, 21 Oct 20155 07:28:00 GMT", REFUSED},
    {"Wed, 021 Oct 2015 07:28:00 GMT", REFUSED},
    {"Wed, 21 October 2015 07:28:00 GMT", REFUSED},
    {"Wed, 21 Okt 2015 07:28:00 GMT", REFUSED},
    {"Wed, 21-Oct 2015 07:28:00 GMT", REFUSED},
    {"Wed, 21 Oct 2015 07:28:00 CEST", REFUSED},
    {"Wed, 21 Oct 2015 07:28:00GMT", REFUSED},
    {"Wed, 21 Oct 2015 07:28:00 GMT+1", REFUSED},
    {"Wed, 21 Oct 2015 07:28:00 +24:00", REFUSED},
    {"Wed, 21 Oct 2015 07:28:00 +0160", REFUSED},
    {"Wed, 21 Oct 2015 07:28:00 +02", REFUSED},
    {"Wed, 21 Oct 2015 07:28:00 GMT, 5", REFUSED},
    {"Wednes, 21 Oct 2015 07:28:00 GMT", REFUSED},
    {"We, 21 Oct 2015 07:28:00 GMT", REFUSED},
    {"21 Oct 2015 07:28:00 GMT", REFUSED},
    {"Sun Nov  6 08:49:37", REFUSED},
    {"Sun Nov  6 08:49:37 94", REFUSED},
    {"Wed, ", REFUSED},
    {"Wed", REFUSED},
    {"tomorrow", REFUSED},
    {"", REFUSED},
    {" ", REFUSED},
    {"2015-10-21T07:28:00Z", REFUSED},
    {"1445412480", REFUSED},
};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t out_s = REFUSED;
        bool parsed = http_date_parse(cases[i].text, NOW_S, &out_s);
        if (parsed != (cases[i].expected_s != REFUSED) || out_s != cases[i].expected_s)
            fail_msg("\"%s\": got %lld, expected %lld", cases[i].text, (long long)out_s,
                     (long long)cases[i].expected_s);
    }
}

/* Whatever is cut off a date, what is left is refused, or is that date without its zone. */
static void test_no_prefix_of_a_date_is_another_date(void **state)
{
    (void)state;
    static const char *const dates[] = {"Wed, 21 Oct 2015 07:28:00 GMT", "Wednesday, 21-Oct-15 07:28:00 GMT",
                                        "Wed Oct 21 07:28:00 2015"};
    for (size_t i = 0; i < 3; i++)
        for (size_t length = 0; length < strlen(dates[i]); length++) {
            char text[64] = "";
            int64_t out_s = OCT_21_2015;
            memcpy(text, dates[i], length);
            if (http_date_parse(text, NOW_S, &out_s))
                assert_true(strstr(text, "07:28:00") && !strchr(text, 'G'));
            assert_int_equal(out_s, OCT_21_2015);
        }
}

/* An IMF-fixdate is read by its positions.  Whatever stands there instead, it means what it means with a
 * blank before it, which is read like all the other forms. */
static void test_the_short_way_is_no_other_way(void **state)
{
    (void)state;
    char text[64] = " Tue, 28 Feb 2012 07:28:00 GMT";
    for (size_t at = 1; at < strlen(text); at++)
        for (int c = 1; c < 256; c++) {
            int64_t short_s = REFUSED, long_s = REFUSED;
            char before = text[at];
            text[at] = (char)c;
            assert_int_equal(http_date_parse(text + 1, NOW_S, &short_s), http_date_parse(text, NOW_S, &long_s));
            if (short_s != long_s)
                fail_msg("\"%s\": %lld and %lld", text, (long long)short_s, (long long)long_s);
            text[at] = before;
        }
}

static void test_two_digit_years_move_with_the_clock(void **state)
{
    (void)state;
    int64_t out_s;
    assert_true(http_date_parse("Friday, 01-Jan-99 00:00:00 GMT", NOW_S, &out_s));
    assert_int_equal(out_s, 915148800); /* 1999 */
    assert_true(http_date_parse("Friday, 01-Jan-99 00:00:00 GMT", INT64_C(3000000000), &out_s));
    assert_int_equal(out_s, INT64_C(4070908800)); /* 2099, seen from 2065 */
    assert_true(http_date_parse("Friday, 01-Jan-49 00:00:00 GMT", 0, &out_s));
    assert_int_equal(out_s, -662688000); /* 1949, seen from 1970 */
    /* A clock that is out of its mind must not matter to a date with four digits. */
    assert_true(http_date_parse("Wed, 21 Oct 2015 07:28:00 GMT", INT64_MAX, &out_s));
    assert_int_equal(out_s, OCT_21_2015);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_no_prefix_of_a_date_is_another_date),
        cmocka_unit_test(test_the_short_way_is_no_other_way),
        cmocka_unit_test(test_two_digit_years_move_with_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
