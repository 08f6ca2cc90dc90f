/* SPDX-License-Identifier: MIT */
/*
 * Retry-After: what counts as a word, how long it is, and whose clock it is read against.
 */
#include "core/retry_after.h"
#include "core/units.h"
#include "tests/unit/header_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define NOW_S INT64_C(1700000000) /* Tue, 14 Nov 2023 22:13:20 GMT */
#define S NS_PER_SECOND
#define HUGE INT64_MAX

static struct headers headers;

static const struct {
    const char *name;
    const char *lines;
    enum retry_after_form form;
    int64_t wait_ns;
} cases[] = {
    {"no field", "Date: Tue, 14 Nov 2023 22:13:20 GMT", RETRY_AFTER_ABSENT, 0},
    {"seconds", "Retry-After: 120", RETRY_AFTER_GIVEN, 120 * S},
    {"one second", "Retry-After: 1", RETRY_AFTER_GIVEN, S},
    {"blanks around it", "Retry-After:   2  ", RETRY_AFTER_GIVEN, 2 * S},
    {"leading zeros", "Retry-After: 0007", RETRY_AFTER_GIVEN, 7 * S},

    /* Odd numbers: none of them may become an immediate or a negative wait. */
    {"minus one", "Retry-After: -1", RETRY_AFTER_UNUSABLE, 0},
    {"minus five", "Retry-After: -5", RETRY_AFTER_UNUSABLE, 0},
    {"plus sign", "Retry-After: +2", RETRY_AFTER_UNUSABLE, 0},
    {"hexadecimal", "Retry-After: 0x2", RETRY_AFTER_UNUSABLE, 0},
    {"exponent", "Retry-After: 1e3", RETRY_AFTER_UNUSABLE, 0},
    {"not a number", "Retry-After: NaN", RETRY_AFTER_UNUSABLE, 0},
    {"infinity", "Retry-After: inf", RETRY_AFTER_UNUSABLE, 0},
    {"parameter", "Retry-After: 2;foo", RETRY_AFTER_UNUSABLE, 0},
    {"parameter with value", "Retry-After: 120;q=1", RETRY_AFTER_UNUSABLE, 0},
    {"quoted", "Retry-After: \"120\"", RETRY_AFTER_UNUSABLE, 0},
    {"no value", "Retry-After:", RETRY_AFTER_UNUSABLE, 0},
    {"a word", "Retry-After: soon", RETRY_AFTER_UNUSABLE, 0},
    {"text after it", "Retry-After: 2 seconds", RETRY_AFTER_UNUSABLE, 0},
    {"two numbers", "Retry-After: 2 3", RETRY_AFTER_UNUSABLE, 0},
    {"digits of another script", "Retry-After: \xd9\xa3", RETRY_AFTER_UNUSABLE, 0},
    {"minus on a fraction", "Retry-After: -0.5", RETRY_AFTER_UNUSABLE, 0},
    {"a raw NUL", "Retry-After: 12\\x00", RETRY_AFTER_ABSENT, 0},
    {"zero", "Retry-After: 0", RETRY_AFTER_ZERO, 0},
    {"zero with a fraction", "Retry-After: 0.0", RETRY_AFTER_ZERO, 0},

    /* Fractions: rounded up to the nanosecond. */
    {"fraction", "Retry-After: 1.5", RETRY_AFTER_GIVEN, 3 * S / 2},
    {"whole as a fraction", "Retry-After: 2.0", RETRY_AFTER_GIVEN, 2 * S},
    {"below one", "Retry-After: 0.503", RETRY_AFTER_GIVEN, 503 * NS_PER_MS},
    {"nine decimals", "Retry-After: 292.052427053", RETRY_AFTER_GIVEN, INT64_C(292052427053)},
    {"ten decimals", "Retry-After: 0.0000000001", RETRY_AFTER_GIVEN, 1},
    {"many zeros", "Retry-After: 3.000000000000000000000000", RETRY_AFTER_GIVEN, 3 * S},
    {"no digit after the point", "Retry-After: 2.", RETRY_AFTER_UNUSABLE, 0},
    {"no digit before the point", "Retry-After: .5", RETRY_AFTER_UNUSABLE, 0},
    {"two points", "Retry-After: 1.5.5", RETRY_AFTER_UNUSABLE, 0},

    /* Too large: saturates, and never wraps.  Digits with something behind them are not a number. */
    {"above 32 bits signed", "Retry-After: 999999999", RETRY_AFTER_GIVEN, 999999999 * S},
    {"below the epochs in milliseconds", "Retry-After: 999999999999", RETRY_AFTER_GIVEN, HUGE},
    {"above the epochs", "Retry-After: 10000000000000", RETRY_AFTER_GIVEN, HUGE},
    {"18 digits", "Retry-After: 999999999999999999", RETRY_AFTER_GIVEN, HUGE},
    {"19 digits", "Retry-After: 9223372036854775808", RETRY_AFTER_GIVEN, HUGE},
    {"above 64 bits", "Retry-After: 18446744073709551616", RETRY_AFTER_GIVEN, HUGE},
    {"60 nines", "Retry-After: 999999999999999999999999999999999999999999999999999999999999", RETRY_AFTER_GIVEN, HUGE},
    {"60 nines and a fraction", "Retry-After: 999999999999999999999999999999999999999999999999999999999999.9",
     RETRY_AFTER_GIVEN, HUGE},
    {"digits and a letter", "Retry-After: 99999999999x", RETRY_AFTER_UNUSABLE, 0},
    {"huge negative", "Retry-After: -18446744073709551616", RETRY_AFTER_UNUSABLE, 0},

    /* Epochs: so large a delta that it cannot be one. */
    {"2^31, an epoch in 2038", "Retry-After: 2147483648", RETRY_AFTER_GIVEN, INT64_C(447483648) * S},
    {"an epoch in 2262", "Retry-After: 9223372037", RETRY_AFTER_GIVEN, INT64_C(7523372037) * S},
    {"an epoch a minute ahead", "Retry-After: 1700000060", RETRY_AFTER_GIVEN, 60 * S},
    {"an epoch with a fraction", "Retry-After: 1700000060.25", RETRY_AFTER_GIVEN, 60250 * NS_PER_MS},
    {"an epoch in milliseconds", "Retry-After: 1700000030250", RETRY_AFTER_GIVEN, 30250 * NS_PER_MS},
    {"an epoch that is past", "Retry-After: 1699999999", RETRY_AFTER_ZERO, 0},

    /* Dates. */
    {"IMF-fixdate", "Retry-After: Tue, 14 Nov 2023 22:14:20 GMT", RETRY_AFTER_GIVEN, 60 * S},
    {"RFC 850", "Retry-After: Tuesday, 14-Nov-23 22:14:20 GMT", RETRY_AFTER_GIVEN, 60 * S},
    {"asctime", "Retry-After: Tue Nov 14 22:14:20 2023", RETRY_AFTER_GIVEN, 60 * S},
    {"a date that is past", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT", RETRY_AFTER_ZERO, 0},
    {"a date that is now", "Retry-After: Tue, 14 Nov 2023 22:13:20 GMT", RETRY_AFTER_ZERO, 0},
    {"the last date", "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", RETRY_AFTER_GIVEN, HUGE},
    {"no such day", "Retry-After: Wed, 32 Oct 2025 07:28:00 GMT", RETRY_AFTER_UNUSABLE, 0},
    {"RFC 3339", "Retry-After: 2023-11-14T22:14:20Z", RETRY_AFTER_GIVEN, 60 * S},
    {"RFC 3339 with seven decimals", "Retry-After: 2023-11-14T22:14:20.6181792Z", RETRY_AFTER_GIVEN,
     INT64_C(60618179200)},
    {"RFC 3339 with offset", "Retry-After: 2023-11-15T00:14:20+02:00", RETRY_AFTER_GIVEN, 60 * S},
    {"RFC 3339 without seconds", "Retry-After: 2023-11-14T22:14Z", RETRY_AFTER_GIVEN, 40 * S},
    {"RFC 3339 without zone", "Retry-After: 2023-11-14T22:14:20", RETRY_AFTER_GIVEN, 60 * S},
    {"a day without a time", "Retry-After: 2023-11-15", RETRY_AFTER_UNUSABLE, 0},
    {"RFC 3339, no such month", "Retry-After: 2023-13-14T22:14:20Z", RETRY_AFTER_UNUSABLE, 0},
    {"RFC 3339, text behind", "Retry-After: 2023-11-14T22:14:20Z!", RETRY_AFTER_UNUSABLE, 0},

    /* Durations. */
    {"duration", "Retry-After: 1m30s", RETRY_AFTER_GIVEN, 90 * S},
    {"clock", "Retry-After: 00:01:30", RETRY_AFTER_GIVEN, 90 * S},
    {"microseconds", "Retry-After: 496.745\xc2\xb5s", RETRY_AFTER_GIVEN, 496745},
    {"units in the wrong order", "Retry-After: 30s1m", RETRY_AFTER_UNUSABLE, 0},
    {"a unit twice", "Retry-After: 1s1s", RETRY_AFTER_UNUSABLE, 0},
    {"a number after the unit", "Retry-After: 1m30", RETRY_AFTER_UNUSABLE, 0},
    {"clock with 60 seconds", "Retry-After: 00:01:60", RETRY_AFTER_UNUSABLE, 0},

    /* Several: the largest that is usable. */
    {"repeated", "Retry-After: 12 | Retry-After: 3", RETRY_AFTER_GIVEN, 12 * S},
    {"forms mixed", "Retry-After: 12 | Retry-After: Tue, 14 Nov 2023 22:14:20 GMT", RETRY_AFTER_GIVEN, 60 * S},
    {"joined", "Retry-After: 2814, 2", RETRY_AFTER_GIVEN, 2814 * S},
    {"joined without blank", "Retry-After: 1,5", RETRY_AFTER_GIVEN, 5 * S},
    {"joined with a date", "Retry-After: 5, Tue, 14 Nov 2023 22:14:20 GMT, 7", RETRY_AFTER_GIVEN, 60 * S},
    {"joined, a date last", "Retry-After: Tuesday, 14-Nov-23 22:13:30 GMT, 7", RETRY_AFTER_GIVEN, 10 * S},
    {"joined with nonsense", "Retry-After: nonsense, 7", RETRY_AFTER_GIVEN, 7 * S},
    {"joined with a bad parameter", "Retry-After: 2;foo, 7, -9", RETRY_AFTER_GIVEN, 7 * S},
    {"empty members", "Retry-After: ,,4,", RETRY_AFTER_GIVEN, 4 * S},
    {"zero and nonsense", "Retry-After: 0, nonsense", RETRY_AFTER_ZERO, 0},
    {"nonsense first", "Retry-After: nonsense | Retry-After: 7", RETRY_AFTER_GIVEN, 7 * S},

    /* Milliseconds come first, where they are usable. */
    {"milliseconds", "Retry-After-Ms: 1238 | Retry-After: 2", RETRY_AFTER_GIVEN, 1238 * NS_PER_MS},
    {"milliseconds after seconds", "Retry-After: 1 | retry-after-ms: 250", RETRY_AFTER_GIVEN, 250 * NS_PER_MS},
    {"the other spelling", "x-ms-retry-after-ms: 50", RETRY_AFTER_GIVEN, 50 * NS_PER_MS},
    {"a fraction of one", "retry-after-ms: 0.5", RETRY_AFTER_GIVEN, 500 * NS_PER_US},
    {"milliseconds are never an epoch", "retry-after-ms: 1700000060000", RETRY_AFTER_GIVEN,
     INT64_C(1700000060000) * NS_PER_MS},
    {"unusable milliseconds", "x-ms-retry-after-ms: garbage | Retry-After: 120", RETRY_AFTER_GIVEN, 120 * S},
    {"a date in milliseconds", "retry-after-ms: Tue, 14 Nov 2023 22:14:20 GMT", RETRY_AFTER_UNUSABLE, 0},
    {"no milliseconds", "retry-after-ms: 0 | Retry-After: 3", RETRY_AFTER_GIVEN, 3 * S},
    {"no milliseconds, nothing else", "retry-after-ms: 0 | Retry-After: x", RETRY_AFTER_ZERO, 0},
    {"huge milliseconds", "retry-after-ms: 99999999999999999999", RETRY_AFTER_GIVEN, HUGE},

    /* Whose clock. */
    {"the server is ahead", "Date: Tue, 14 Nov 2023 23:13:20 GMT | Retry-After: Tue, 14 Nov 2023 23:13:50 GMT",
     RETRY_AFTER_GIVEN, 30 * S},
    {"the server is behind", "Date: Tue, 14 Nov 2023 21:13:20 GMT | Retry-After: Tue, 14 Nov 2023 21:13:50 GMT",
     RETRY_AFTER_GIVEN, 30 * S},
    {"its Date cannot be read", "Date: garbage | Retry-After: Tue, 14 Nov 2023 22:13:50 GMT", RETRY_AFTER_GIVEN,
     30 * S},
    {"seconds need no clock", "Date: Tue, 14 Nov 1993 23:13:20 GMT | Retry-After: 30", RETRY_AFTER_GIVEN, 30 * S},
};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        header_lines_read(&headers, cases[i].lines);
        struct retry_after word = retry_after_read(&headers, NOW_S);
        if (word.form != cases[i].form || word.wait_ns != cases[i].wait_ns)
            fail_msg("%s: %s: form %d, wait %lld ns; expected form %d, wait %lld ns", cases[i].name, cases[i].lines,
                     word.form, (long long)word.wait_ns, cases[i].form, (long long)cases[i].wait_ns);
        assert_int_equal(word.wait_ns > 0, word.form == RETRY_AFTER_GIVEN);
        assert_int_equal(word.field == NULL, word.form == RETRY_AFTER_ABSENT);
    }
}

static void test_names_the_field_that_spoke(void **state)
{
    (void)state;
    header_lines_read(&headers, "Retry-After: 2 | X-Ms-Retry-After-Ms: 50");
    assert_string_equal(retry_after_read(&headers, NOW_S).field, "x-ms-retry-after-ms");
    header_lines_read(&headers, "Retry-After: 2 | X-Ms-Retry-After-Ms: x");
    assert_string_equal(retry_after_read(&headers, NOW_S).field, "retry-after");
}

static void test_response_time(void **state)
{
    (void)state;
    header_lines_read(&headers, "Date: Sun, 06 Nov 1994 08:49:37 GMT");
    assert_int_equal(response_time_s(&headers, NOW_S), 784111777);
    header_lines_read(&headers, "Date: today");
    assert_int_equal(response_time_s(&headers, NOW_S), NOW_S);
    headers_clear(&headers);
    assert_int_equal(response_time_s(&headers, NOW_S), NOW_S);
}

/* A clock that is out of its mind must not make the arithmetic overflow. */
static void test_absurd_clocks(void **state)
{
    (void)state;
    static const int64_t clocks[] = {INT64_MIN, -1, 0, INT64_MAX};
    for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++)
        for (size_t j = 0; j < sizeof(cases) / sizeof(cases[0]); j++) {
            header_lines_read(&headers, cases[j].lines);
            struct retry_after word = retry_after_read(&headers, clocks[i]);
            assert_true(word.wait_ns >= 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_names_the_field_that_spoke),
        cmocka_unit_test(test_response_time),
        cmocka_unit_test(test_absurd_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
