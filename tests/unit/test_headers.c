/* SPDX-License-Identifier: MIT */
/*
 * Headers: what is kept, how, and what happens when it does not fit.
 */
#include "core/headers.h"

#include "core/scan.h"

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

static const char *name_of(const struct header_field *field)
{
    return field->id == HEADER_OTHER ? headers.text + field->name : header_names[field->id];
}

/* The n-th value, from 0, of that name. */
static const char *value_of(const char *name, unsigned nth)
{
    for (unsigned i = 0; i < headers.count; i++)
        if (strcmp(name_of(&headers.field[i]), name) == 0 && nth-- == 0)
            return headers_value(&headers, &headers.field[i]);
    return NULL;
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
    add("Retry-After: \t 2 m \t \r\n");
    add("X-RATELIMIT-REMAINING:no");
    add("X-Should-RETRY: no");
    assert_string_equal(value_of("retry-after", 0), "2 m");
    assert_string_equal(value_of("x-ratelimit-remaining", 0), "no");
    assert_int_equal(headers.field[0].value_length, 3);
    assert_string_equal(value_of("x-should-retry", 0), "no");
    assert_int_equal(headers.field[2].name_length, strlen("x-should-retry"));
}

static void test_repeats_keep_their_order(void **state)
{
    (void)state;
    add("Retry-After: 1s\r\n");
    add("Date: Tue, 14 Nov 2023 22:13:20 GMT\r\n");
    add("retry-after: 2s\n");
    assert_string_equal(value_of("retry-after", 0), "1s");
    assert_string_equal(value_of("retry-after", 1), "2s");
    assert_null(value_of("retry-after", 2));
    assert_null(value_of("retry-afte", 0));
}

/* Each name of the table, and each text of its length that differs from it in one character. */
static void test_names_of_the_table_are_told_exactly(void **state)
{
    (void)state;
    for (unsigned id = HEADER_NONE + 1; id < HEADER_OTHER; id++) {
        const char *name = header_names[id];
        size_t length = strlen(name);
        for (size_t at = 0; at < length; at++)
            for (int c = 0; c < 256; c++) {
                char line[HEADER_NAME_SIZE + 2];
                memcpy(line, name, length);
                memcpy(line + length, ":7", 2);
                line[at] = (char)c;
                headers_clear(&headers);
                headers_add(&headers, line, length + 2);
                bool is_same = scan_lower((char)c) == name[at];
                if (headers_have(&headers, id) != is_same)
                    fail_msg("%s with character %d at %zu", name, c, at);
            }
    }
}

static void test_fields_of_a_name_are_found_in_their_order(void **state)
{
    (void)state;
    add("Retry-After: 1");
    add("RateLimit: a");
    add("retry-after: 2");
    add("Sforce-Limit-Info: x");
    add("RateLimit: b");
    add("RETRY-AFTER: 3");
    const struct header_field *field = headers_first(&headers, HEADER_RETRY_AFTER);
    for (int64_t i = 1; i <= 3; i++, field = headers_next(&headers, field))
        assert_int_equal(field->number, i);
    assert_null(field);
    field = headers_next(&headers, headers_first(&headers, HEADER_RATELIMIT));
    assert_string_equal(headers_value(&headers, field), "b");
    assert_string_equal(name_of(headers_first(&headers, HEADER_OTHER)), "sforce-limit-info");
    assert_null(headers_first(&headers, HEADER_RATELIMIT_POLICY));
    assert_null(headers_first(&headers, HEADER_NONE));
}

static void test_plain_numbers_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int64_t number;
    } cases[] = {
        {"Retry-After: 0", 0},
        {"Retry-After: 5000", 5000},
        {"Retry-After:\t007 ", 7},
        {"Retry-After:", -1},
        {"Retry-After: -1", -1},
        {"Retry-After: +1", -1},
        {"Retry-After: 1.0", -1},
        {"Retry-After: 12a", -1},
        {"Retry-After: /", -1},
        {"Retry-After: :", -1},
        {"Retry-After: 1 2", -1},
        {"Retry-After: \xb2", -1},
        {"Retry-After: 999999999999999999", 999999999999999999},
        {"Retry-After: 000000000000000001", 1},
        {"Retry-After: 1000000000000000000", -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        headers_clear(&headers);
        add(cases[i].line);
        assert_int_equal(headers.count, 1);
        if (headers.field[0].number != cases[i].number)
            fail_msg("%s: %lld", cases[i].line, (long long)headers.field[0].number);
        assert_int_equal(headers.field[0].value_length == 0, cases[i].number >= 0 || i == 3);
    }
}

/* Nobody knows what the number in a field of another name is. */
static void test_other_names_keep_a_number_as_text(void **state)
{
    (void)state;
    add("X-Shop-Call-Limit: 40");
    assert_int_equal(headers.field[0].number, -1);
    assert_string_equal(value_of("x-shop-call-limit", 0), "40");
}

/* Whatever stands beside it, and wherever in the value. */
static void test_no_control_character_passes(void **state)
{
    (void)state;
    static const char beside[] = {'x', '\t', ' ', '~', '\x80', '\xff', '0'};
    for (size_t length = 3; length <= 20; length++)
        for (size_t at = 1; at + 1 < length; at++)
            for (size_t i = 0; i < sizeof(beside); i++)
                for (int c = 0; c < 256; c++) {
                    char line[32] = "age:";
                    char *value = line + 4;
                    memset(value, beside[i], length);
                    value[0] = value[length - 1] = '.';
                    value[at] = (char)c;
                    headers_clear(&headers);
                    headers_add(&headers, line, 4 + length);
                    bool is_control = (c < 0x20 && c != '\t') || c == 0x7f;
                    if (headers.count != !is_control)
                        fail_msg("character %d at %zu of %zu beside %d", c, at, length, beside[i]);
                }
}

static bool contains(const char *name, const char *part)
{
    for (; *name; name++)
        if (scan_begins_ignoring_case(name, part, strlen(part)))
            return true;
    return false;
}

/* Against the plain definition, over names made of pieces of what is looked for. */
static void test_other_names_are_kept_for_what_they_contain(void **state)
{
    (void)state;
    static const char *const pieces[] = {"limit", "quota", "retry", "remaining", "reset", "re", "res",  "lim", "quot",
                                         "remai", "LIMIT", "rEset", "-",         "x",     "t",  "etry", "i",   "it"};
    unsigned random = 1, kept = 0;
    for (int i = 0; i < 100000; i++) {
        char name[80] = "z", line[84];
        for (int j = 0; j < 5; j++) {
            random = random * 1664525 + 1013904223;
            const char *piece = pieces[(random >> 16) % (sizeof(pieces) / sizeof(pieces[0]))];
            strncat(name, piece, 1 + (random >> 8) % strlen(piece));
        }
        bool is_kept = contains(name, "limit") || contains(name, "quota") || contains(name, "retry") ||
                       contains(name, "remaining") || contains(name, "reset");
        snprintf(line, sizeof(line), "%s: 1", name);
        headers_clear(&headers);
        add(line);
        if (headers.count != is_kept)
            fail_msg("%s", line);
        kept += is_kept;
    }
    assert_in_range(kept, 20000, 80000);
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

static void test_times_alone_say_nothing(void **state)
{
    (void)state;
    assert_false(headers_say_something(&headers));
    add("Date: x");
    add("Age: 1");
    add("Date: x");
    assert_false(headers_say_something(&headers));
    add("X-Shopify-Shop-Api-Call-Limit: 1/40");
    assert_true(headers_say_something(&headers));
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
    assert_string_equal(value_of("retry-after", 0), "");
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
    assert_null(value_of("retry-after", 0));
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
    add("Retry-After: 7s");
    assert_string_equal(value_of("retry-after", 0), "7s");
}

static void test_the_text_is_used_to_its_last_byte(void **state)
{
    (void)state;
    char line[HEADERS_BYTES + 8];
    /* Value, NUL, "quota", NUL: exactly full. */
    int value_length = HEADERS_BYTES - 7;
    int length = snprintf(line, sizeof(line), "quota:%0*d", value_length, 1);
    headers_add(&headers, line, (size_t)length);
    assert_int_equal(headers.count, 1);
    assert_int_equal(headers.used, HEADERS_BYTES);
    assert_int_equal(headers.dropped, 0);
    add("Quota: 1");
    assert_int_equal(headers.dropped, 1);
    headers_clear(&headers);
    snprintf(line, sizeof(line), "quota:%0*d", value_length + 1, 1);
    headers_add(&headers, line, (size_t)length + 1);
    assert_int_equal(headers.dropped, 1);
    headers_clear(&headers);
    snprintf(line, sizeof(line), "quota:%0*d", value_length - 1, 1);
    headers_add(&headers, line, (size_t)length - 1);
    add("Quota:");
    assert_int_equal(headers.count, 1);
    assert_int_equal(headers.dropped, 1);
    /* Of a name in the table only the value takes room. */
    add("Age:x");
    assert_int_equal(headers.dropped, 2);
    add("Age:");
    assert_int_equal(headers.count, 2);
    assert_int_equal(headers.used, HEADERS_BYTES);
    add("Age:");
    assert_int_equal(headers.dropped, 3);
    /* A number takes none. */
    add("Age:7");
    assert_int_equal(headers.count, 3);
    assert_int_equal(headers.dropped, 3);
    assert_string_equal(headers_value(&headers, &headers.field[2]), "");
}

static void test_names_are_remembered_by_their_place(void **state)
{
    (void)state;
    add("Server: nginx");
    add("no field line");
    add("Retry-After: 1");
    add("X-Shop-Call-Limit: 1/40");
    for (int i = 0; i < HEADERS_LINES; i++)
        add("Vary: *");
    assert_int_equal(headers.place, HEADERS_LINES);
    assert_int_equal(headers.line[0].id, HEADER_NONE);
    assert_int_equal(headers.line[0].size, strlen("Server:"));
    assert_int_equal(headers.line[1].id, HEADER_RETRY_AFTER);
    assert_int_equal(headers.line[2].id, HEADER_OTHER);
    assert_int_equal(headers.remembered, HEADERS_LINES);
    headers_begin(&headers);
    assert_int_equal(headers.count, 0);
    assert_int_equal(headers.line[1].id, HEADER_RETRY_AFTER);
    add("Server: nginx");
    add("Retry-After: 2");
    add("X-Shop-Call-Limit: 2/40");
    assert_int_equal(headers.place, 3);
    assert_int_equal(headers_first(&headers, HEADER_RETRY_AFTER)->number, 2);
    assert_string_equal(value_of("x-shop-call-limit", 0), "2/40");
    assert_int_equal(headers.remembered, HEADERS_LINES);
    headers_clear(&headers);
    assert_int_equal(headers.remembered, 0);
}

static void assert_same_fields(const struct headers *a, const struct headers *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->used, b->used);
    assert_int_equal(a->names, b->names);
    assert_memory_equal(a->text, b->text, a->used);
    for (unsigned i = 0; i < a->count; i++) {
        assert_int_equal(a->field[i].id, b->field[i].id);
        assert_int_equal(a->field[i].next, b->field[i].next);
        assert_int_equal(a->field[i].number, b->field[i].number);
    }
}

/* Names that begin or end alike, or differ in their case, or are too short or long to be remembered. */
static void test_what_is_remembered_changes_nothing(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "Age: 1",
        "Age:x",
        "ag:e: 1",
        "Age",
        "TE: 1",
        "P3P: 1",
        ": 1",
        "\r\n",
        "Date: x",
        "Daté: x",
        "Late: x",
        "Dates: x",
        "DATE: x",
        "Retry: 1",
        "Retry-After: 1",
        "Retry-AFTER: 1",
        "Retry-Afters: 1",
        "Retry-After-Ms: 1",
        "Retry-After-Mt: 1",
        "Retry-Before-Ms: 1",
        "X-Ms-Retry-After-Ms: 1",
        "X-RateLimit-Limit: 1",
        "X-RateLimit-Reset: 1",
        "X-RateLimit-Reset-After: 1",
        "X-RateLimit-Remaining: 1",
        "X-RateLimit-Remainder: 1",
        "Y-RateLimit-Remaining: 1",
        "X-RateLimot-Remaining: 1",
        "Content-Type: text/html",
        "Content-Length: 1",
        "Access-Control-Expose-Headers: 1",
        "Access-Control-Expose-Limits: 1",
        "Access-Control-Allow-Credentials: 1",
        "Access-Control-Allow-Credentials-Limit: 1",
    };
    static struct headers fresh;
    unsigned random = 1;
    for (unsigned block = 0; block < 20000; block++) {
        headers_begin(&headers);
        headers_clear(&fresh);
        for (unsigned i = 0; i < 2 + block % (HEADERS_LINES + 8); i++) {
            /* Two blocks in a row begin alike. */
            random = random * 1664525 + 1013904223;
            unsigned pick = i < 4 ? i + block / 2 : random >> 16;
            const char *line = lines[pick % (sizeof(lines) / sizeof(lines[0]))];
            headers_add(&headers, line, strlen(line));
            headers_add(&fresh, line, strlen(line));
        }
        assert_same_fields(&headers, &fresh);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_names_are_lowered_and_values_trimmed, clear),
        cmocka_unit_test_setup(test_repeats_keep_their_order, clear),
        cmocka_unit_test_setup(test_names_of_the_table_are_told_exactly, clear),
        cmocka_unit_test_setup(test_fields_of_a_name_are_found_in_their_order, clear),
        cmocka_unit_test_setup(test_plain_numbers_are_read, clear),
        cmocka_unit_test_setup(test_other_names_keep_a_number_as_text, clear),
        cmocka_unit_test_setup(test_no_control_character_passes, clear),
        cmocka_unit_test_setup(test_other_names_are_kept_for_what_they_contain, clear),
        cmocka_unit_test_setup(test_only_names_that_may_matter_are_kept, clear),
        cmocka_unit_test_setup(test_times_alone_say_nothing, clear),
        cmocka_unit_test_setup(test_what_is_no_field_line_is_ignored, clear),
        cmocka_unit_test_setup(test_a_nul_hides_nothing, clear),
        cmocka_unit_test_setup(test_an_empty_value_is_a_value, clear),
        cmocka_unit_test_setup(test_too_many_fields_are_dropped_and_counted, clear),
        cmocka_unit_test_setup(test_too_long_a_field_is_dropped_whole_and_the_next_fits, clear),
        cmocka_unit_test_setup(test_the_text_is_used_to_its_last_byte, clear),
        cmocka_unit_test_setup(test_names_are_remembered_by_their_place, clear),
        cmocka_unit_test_setup(test_what_is_remembered_changes_nothing, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
