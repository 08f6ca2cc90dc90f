/* SPDX-License-Identifier: MIT */
/*
 * Content-Range: what is a range of bytes and what only looks like one, as a table.
 */
#include "core/content_range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define UNKNOWN INT64_C(-1)

static const struct {
    const char *value;
    int64_t first, last, total;
} valid[] = {
    {"bytes 0-4/5", 0, 4, 5},
    {"bytes 42-1233/1234", 42, 1233, 1234},
    {"bytes 42-1233/*", 42, 1233, UNKNOWN},
    {"bytes 0-0/1", 0, 0, 1},
    {"bytes 0-0/*", 0, 0, UNKNOWN},
    {"bytes 7-7/8", 7, 7, 8},
    {"bytes 1-3/1000", 1, 3, 1000},
    {"bytes 16384-1048575/1048576", 16384, 1048575, 1048576},
    {"Bytes 0-4/5", 0, 4, 5},
    {"BYTES 0-4/5", 0, 4, 5},
    {"bytes 000-0004/00005", 0, 4, 5},
    {"bytes 00000000000000000000000000001-2/3", 1, 2, 3},
    {" \tbytes 0-4/5\t ", 0, 4, 5},
    {"bytes 9007199254740993-9007199254740994/9007199254740995", INT64_C(9007199254740993), INT64_C(9007199254740994),
     INT64_C(9007199254740995)},
    {"bytes 0-9223372036854775806/9223372036854775807", 0, INT64_MAX - 1, INT64_MAX},
    {"bytes 9223372036854775806-9223372036854775806/9223372036854775807", INT64_MAX - 1, INT64_MAX - 1, INT64_MAX},
    {"bytes 0-9223372036854775806/*", 0, INT64_MAX - 1, UNKNOWN},
};

static const char *const invalid[] = {
    /* Something is missing. */
    "",
    " ",
    "bytes",
    "bytes ",
    "bytes 0",
    "bytes 0-",
    "bytes 0-4",
    "bytes 0-4/",
    "bytes -4/5",
    "bytes 0-/5",
    "bytes /5",
    "0-4/5",
    " 0-4/5",
    "*/5",

    /* Of a 416, and other forms without a range. */
    "bytes */5",
    "bytes */*",
    "bytes *",
    "bytes *-4/5",
    "bytes 0-*/5",

    /* Numbers that contradict each other. */
    "bytes 0-4/4",
    "bytes 0-5/5",
    "bytes 5-9/5",
    "bytes 0-0/0",
    "bytes 5-4/10",
    "bytes 5-4/*",
    "bytes 1-0/2",

    /* Numbers that do not fit. */
    "bytes 0-9223372036854775807/9223372036854775808",
    "bytes 0-9223372036854775807/*",
    "bytes 0-4/9223372036854775808",
    "bytes 9223372036854775808-9223372036854775809/*",
    "bytes 18446744073709551616-18446744073709551620/18446744073709551621",
    "bytes 0-18446744073709551620/*",
    "bytes 0-4/18446744073709551621",
    "bytes 0-4/99999999999999999999999999999999999999999999999999999999999999",

    /* Signs, fractions, other notations. */
    "bytes +0-4/5",
    "bytes 0-+4/5",
    "bytes 0-4/+5",
    "bytes -1-4/5",
    "bytes 0--4/5",
    "bytes 0-4/-1",
    "bytes 0-4/-5",
    "bytes 0.0-4/5",
    "bytes 0x0-0x4/0x5",
    "bytes 0-4/5e0",
    "bytes 0-4/1'000",

    /* Blanks where none may be, or not the one that must be. */
    "bytes  0-4/5",
    "bytes\t0-4/5",
    "bytes0-4/5",
    "bytes 0 -4/5",
    "bytes 0- 4/5",
    "bytes 0-4 /5",
    "bytes 0-4/ 5",
    "bytes 0-4/ *",
    "bytes 0-4/5\r\n",
    "bytes 0-4/5\n",
    "\nbytes 0-4/5",

    /* Other separators, and what other fields have. */
    "bytes=0-4/5",
    "bytes: 0-4/5",
    "bytes 0-4",
    "bytes 0-4:5",
    "bytes 0/4/5",
    "bytes 0..4/5",
    "bytes 0-4/5/6",
    "bytes 0-4-5/6",

    /* Something behind it. */
    "bytes 0-4/5;",
    "bytes 0-4/5 x",
    "bytes 0-4/*5",
    "bytes 0-4/5*",
    "bytes 0-4/**",
    "bytes 0-4/5, bytes 0-4/5",
    "bytes 0-4,5-9/10",
    "bytes 0-4/5\x80",

    /* Other units. */
    "byte 0-4/5",
    "bytess 0-4/5",
    "octets 0-4/5",
    "items 0-4/5",
    "x-bytes 0-4/5",
    "none 0-4/5",
    "byte\xc5\xbf 0-4/5",
};

static void test_valid(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(valid); i++) {
        struct content_range range = {-7, -7, -7};
        if (!content_range_parse(valid[i].value, &range))
            fail_msg("\"%s\" was refused", valid[i].value);
        if (range.first != valid[i].first || range.last != valid[i].last || range.total != valid[i].total)
            fail_msg("\"%s\" is %lld-%lld/%lld", valid[i].value, (long long)range.first, (long long)range.last,
                     (long long)range.total);
    }
}

static void test_invalid(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(invalid); i++) {
        struct content_range range = {-7, -7, -7};
        if (content_range_parse(invalid[i], &range))
            fail_msg("\"%s\" was taken for %lld-%lld/%lld", invalid[i], (long long)range.first, (long long)range.last,
                     (long long)range.total);
        assert_true(range.first == -7 && range.last == -7 && range.total == -7);
    }
}

/* No character of a valid value can be another without its being noticed: what is still a range then is
 * a different one, or differs in the unit's case. */
static void test_every_byte_counts(void **state)
{
    (void)state;
    static const char value[] = "bytes 10-14/15";
    for (size_t at = 0; at < sizeof value - 1; at++)
        for (int byte = 1; byte < 256; byte++) {
            char changed[sizeof value];
            struct content_range range;
            memcpy(changed, value, sizeof value);
            changed[at] = (char)byte;
            if (changed[at] == value[at] || !content_range_parse(changed, &range))
                continue;
            bool other_case = at < 5 && (byte | 0x20) == value[at];
            bool digit = at > 5 && byte >= '0' && byte <= '9';
            if (!other_case && !digit)
                fail_msg("\"%s\" was taken for a range", changed);
            assert_true(other_case == (range.first == 10 && range.last == 14 && range.total == 15));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_every_byte_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
