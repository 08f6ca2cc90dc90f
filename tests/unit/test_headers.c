/* SPDX-License-Identifier: MIT */
/*
 * Headers: what is kept, how, and what happens when it does not fit.
 */
#include "core/headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct headers headers;

static void add(const char *line)
{
    headers_add(&headers, line, strlen(line));
}

static int clear(void **state)
{
    (void)state;
    headers_clear(&headers);
    return 0;
}

static void test_names_are_lowered_and_values_trimmed(void **state)
{
    (void)state;
    add("Retry-After: \t 120 \t \r\n");
    add("X-RATELIMIT-REMAINING:0");
    assert_string_equal(headers_value(&headers, "retry-after", 0), "120");
    assert_string_equal(headers_value(&headers, "x-ratelimit-remaining", 0), "0");
    assert_int_equal(headers.field[0].value_length, 3);
    assert_int_equal(headers.field[0].name_length, strlen("retry-after"));
}

static void test_repeats_keep_their_order(void **state)
{
    (void)state;
    add("Retry-After: 1\r\n");
    add("Date: Tue, 14 Nov 2023 22:13:20 GMT\r\n");
    add("retry-after: 2\n");
    assert_string_equal(headers_value(&headers, "retry-after", 0), "1");
    assert_string_equal(headers_value(&headers, "retry-after", 1), "2");
    assert_null(headers_value(&headers, "retry-after", 2));
    assert_null(headers_value(&headers, "retry-afte", 0));
}

static void test_only_names_that_may_matter_are_kept(void **state)
{
    (void)state;
    static const char *const kept[] = {
        "Date: x",
        "Age: 1",
        "Retry-After: 1",
        "retry-after-ms: 1",
        "X-Ms-Retry-After-Ms: 1",
        "RateLimit: x",
        "RateLimit-Policy: x",
        "X-RateLimit-Limit: 1",
        "X-Rate-Limit-Reset: 1",
        "x-ratelimit-remaining-requests: 1",
        "anthropic-ratelimit-tokens-reset: 1",
        "X-Shopify-Shop-Api-Call-Limit: 1/40",
        "x-ms-user-quota-remaining: 1",
        "x-should-retry: false",
        "Sforce-Limit-Info: api-usage=18/5000",
    };
    static const char *const ignored[] = {
        "Content-Type: text/html", "Access-Control-Expose-Headers: X-RateLimit-Limit, Retry-After",
        "Location: /rate-limit",   "X-Date: x",
        "Server: nginx",           "Set-Cookie: limit=1",
    };
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        add(ignored[i]);
    assert_int_equal(headers.count, 0);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        add(kept[i]);
        assert_int_equal(headers.count, i + 1);
    }
    assert_int_equal(headers.dropped, 0);
}

static void test_what_is_no_field_line_is_ignored(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "\r\n",
        "HTTP/1.1 429 Retry-Limit: 1\r\n",
        " Retry-After: 1\r\n",
        "\tRetry-After: 1\r\n",
        "Retry-After : 1\r\n",
        "Retry After: 1\r\n",
        "Retry-After\r\n",
        ": 1\r\n",
        "R\xc3\xa9try-After: 1\r\n",
        "Retry-After: 1\x01\r\n",
        "Retry-After: 1\r\nRetry-After: 2\r\n",
        "Retry-After: 1\x7f\r\n",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        add(lines[i]);
    assert_int_equal(headers.count, 0);
    assert_int_equal(headers.dropped, 0);
}

static void test_a_nul_hides_nothing(void **state)
{
    (void)state;
    static const char in_value[] = "Retry-After: 12\0 junk\r\n";
    static const char in_name[] = "Retry-After\0: 12\r\n";
    headers_add(&headers, in_value, sizeof(in_value) - 1);
    headers_add(&headers, in_name, sizeof(in_name) - 1);
    assert_int_equal(headers.count, 0);
}

static void test_an_empty_value_is_a_value(void **state)
{
    (void)state;
    add("Retry-After:\r\n");
    assert_string_equal(headers_value(&headers, "retry-after", 0), "");
}

static void test_too_many_fields_are_dropped_and_counted(void **state)
{
    (void)state;
    for (int i = 0; i < HEADERS_FIELDS + 3; i++)
        add("Retry-After: 1");
    assert_int_equal(headers.count, HEADERS_FIELDS);
    assert_int_equal(headers.dropped, 3);
    headers_clear(&headers);
    assert_int_equal(headers.dropped, 0);
    assert_null(headers_value(&headers, "retry-after", 0));
}

static void test_too_long_a_field_is_dropped_whole_and_the_next_fits(void **state)
{
    (void)state;
    static char line[HEADERS_BYTES * 2];
    memset(line, '1', sizeof(line));
    memcpy(line, "Retry-After:", 12);
    headers_add(&headers, line, sizeof(line));
    assert_int_equal(headers.dropped, 1);
    assert_int_equal(headers.used, 0);
    add("Retry-After: 7");
    assert_string_equal(headers_value(&headers, "retry-after", 0), "7");
}

static void test_the_text_is_used_to_its_last_byte(void **state)
{
    (void)state;
    char line[HEADERS_BYTES];
    /* "age", NUL, value, NUL: exactly full. */
    int value_length = HEADERS_BYTES - 5;
    int length = snprintf(line, sizeof(line), "age:%0*d", value_length, 1);
    headers_add(&headers, line, (size_t)length);
    assert_int_equal(headers.count, 1);
    assert_int_equal(headers.used, HEADERS_BYTES);
    add("Age: 1");
    assert_int_equal(headers.dropped, 1);
    headers_clear(&headers);
    snprintf(line, sizeof(line), "age:%0*d", value_length - 1, 1);
    headers_add(&headers, line, (size_t)length - 1);
    add("Age:");
    assert_int_equal(headers.count, 1);
    assert_int_equal(headers.dropped, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_names_are_lowered_and_values_trimmed, clear),
        cmocka_unit_test_setup(test_repeats_keep_their_order, clear),
        cmocka_unit_test_setup(test_only_names_that_may_matter_are_kept, clear),
        cmocka_unit_test_setup(test_what_is_no_field_line_is_ignored, clear),
        cmocka_unit_test_setup(test_a_nul_hides_nothing, clear),
        cmocka_unit_test_setup(test_an_empty_value_is_a_value, clear),
        cmocka_unit_test_setup(test_too_many_fields_are_dropped_and_counted, clear),
        cmocka_unit_test_setup(test_too_long_a_field_is_dropped_whole_and_the_next_fits, clear),
        cmocka_unit_test_setup(test_the_text_is_used_to_its_last_byte, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
