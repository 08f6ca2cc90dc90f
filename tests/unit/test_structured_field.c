/* SPDX-License-Identifier: MIT */
/*
 * Structured fields: what is well-formed and what is not, by the productions of RFC 9651, and what
 * is read from it.
 */
#include "core/structured_field.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void put(char *out, size_t size, const char *format, int length, const char *text)
{
    size_t used = strlen(out);
    snprintf(out + used, size - used, format, length, text ? text : "");
}

static void put_item(char *out, size_t size, const struct structured_item *item)
{
    static const char *const formats[] = {
        [STRUCTURED_INTEGER] = "%.*s",      [STRUCTURED_DECIMAL] = "%.*s",          [STRUCTURED_STRING] = "'%.*s'",
        [STRUCTURED_TOKEN] = "<%.*s>",      [STRUCTURED_BYTES] = ":%.*s:",          [STRUCTURED_DATE] = "@%.*s",
        [STRUCTURED_INNER_LIST] = "(%.*s)", [STRUCTURED_DISPLAY_STRING] = "%%%.*s",
    };
    if (item->type == STRUCTURED_BOOLEAN)
        put(out, size, "%.*s", item->integer ? 3 : 2, item->integer ? "yes" : "no");
    else
        put(out, size, formats[item->type], (int)(item->text.end - item->text.at), item->text.at);
}

static void put_parameters(char *out, size_t size, struct structured_field *field)
{
    struct scan key;
    struct structured_item value;
    while (structured_field_next_parameter(field, &key, &value)) {
        put(out, size, ";%.*s=", (int)(key.end - key.at), key.at);
        put_item(out, size, &value);
    }
}

/* Everything that was read, in one line; "malformed" if it was. */
static const char *read_list(const char *text, bool lenient)
{
    static char out[1024];
    struct structured_field field;
    struct structured_item item;
    out[0] = '\0';
    structured_field_begin(&field, text, strlen(text));
    field.lenient = lenient;
    while (structured_field_next_member(&field, &item)) {
        put(out, sizeof(out), "%.*s", *out ? 2 : 0, ", ");
        put_item(out, sizeof(out), &item);
        put_parameters(out, sizeof(out), &field);
    }
    return field.failed ? "malformed" : out;
}

static const char *read_dictionary(const char *text)
{
    static char out[1024];
    struct structured_field field;
    struct structured_item item;
    struct scan key;
    out[0] = '\0';
    structured_field_begin(&field, text, strlen(text));
    while (structured_field_next_entry(&field, &key, &item)) {
        put(out, sizeof(out), "%.*s", *out ? 2 : 0, ", ");
        put(out, sizeof(out), "%.*s=", (int)(key.end - key.at), key.at);
        put_item(out, sizeof(out), &item);
        put_parameters(out, sizeof(out), &field);
    }
    return field.failed ? "malformed" : out;
}

struct example {
    const char *text, *expected;
};

static const struct example lists[] = {
    {"", ""},
    {"1", "1"},
    {" 1 ", "1"},
    {"1,2", "1, 2"},
    {"1 \t,\t 2", "1, 2"},
    {"-15, 999999999999999", "-15, 999999999999999"},
    {"0.5, -12.125", "0.5, -12.125"},
    {"\"a\", \"\"", "'a', ''"},
    {"\"a, b; \\\"c\\\" \\\\\"", "'a, b; \\\"c\\\" \\\\'"},
    {"token, *t, a/b:c", "<token>, <*t>, <a/b:c>"},
    {":YQ==:, ::, :YWI=:, :YWJj:, :YQ:", ":YQ==:, ::, :YWI=:, :YWJj:, :YQ:"},
    {"?1, ?0", "yes, no"},
    {"@1659578233, @-1", "@1659578233, @-1"},
    {"%\"a%c3%bc\"", "%a%c3%bc"},
    {"(1 2), ( a;b  \"c\" ), ()", "(1 2), ( a;b  \"c\" ), ()"},
    {"1;a;b=2;*c=\"d\"", "1;a=yes;b=2;*c='d'"},
    {"1;  a=1;a=2", "1;a=1;a=2"},
    {"\"n\";r=50;t=30;pk=:YQ==:", "'n';r=50;t=30;pk=:YQ==:"},
    {"(1);a=2", "(1);a=2"},

    {",", "malformed"},
    {"1,", "malformed"},
    {"1, ", "malformed"},
    {",1", "malformed"},
    {"1,,2", "malformed"},
    {"1 2", "malformed"},
    {"1;", "malformed"},
    {"1; ", "malformed"},
    {"1 ;a", "malformed"},
    {"1;\ta", "malformed"},
    {"1;a=", "malformed"},
    {"1;a= 2", "malformed"},
    {"1;a =2", "malformed"},
    {"1;A=2", "malformed"},
    {"1;2=a", "malformed"},
    {"1;a=(1)", "malformed"},
    {"\"a\";\"b\"", "malformed"},
    {"-", "malformed"},
    {"- 1", "malformed"},
    {"--1", "malformed"},
    {"+1", "malformed"},
    {"1.", "malformed"},
    {".5", "malformed"},
    {"1.2345", "malformed"},
    {"1.5.5", "malformed"},
    {"1000000000000000", "malformed"},
    {"1234567890123.1", "malformed"},
    {"1e3", "malformed"},
    {"0x10", "malformed"},
    {"\"a", "malformed"},
    {"\"a\\\"", "malformed"},
    {"\"a\\b\"", "malformed"},
    {"\"\xc3\xa9\"", "malformed"},
    {"\"\t\"", "malformed"},
    {"\"a\"b", "malformed"},
    {":YQ==", "malformed"},
    {":Y:", "malformed"},
    {":YQ=:", "malformed"},
    {":YQ===:", "malformed"},
    {":Y Q=:", "malformed"},
    {":YQ==a:", "malformed"},
    {"?2", "malformed"},
    {"?", "malformed"},
    {"@1.5", "malformed"},
    {"@", "malformed"},
    {"%\"%C3\"", "malformed"},
    {"%\"%c\"", "malformed"},
    {"%a", "malformed"},
    {"(1", "malformed"},
    {"(1,2)", "malformed"},
    {"((1))", "malformed"},
    {"(1\t2)", "malformed"},
    {"(\"a\"\"b\")", "malformed"},
    {"(1;)", "malformed"},
    {"=", "malformed"},
    {"a=1", "malformed"},
    {"a b", "malformed"},
    {"\xc2\xa0", "malformed"},
};

static const struct example dictionaries[] = {
    {"", ""},
    {"a=1", "a=1"},
    {"a=1, b=\"x\", c", "a=1, b='x', c=yes"},
    {"a;x=1, b=(1 2);y", "a=yes;x=1, b=(1 2);y=yes"},
    {"limit=100,remaining=50,reset=5", "limit=100, remaining=50, reset=5"},
    {"*a_b-c.d*=1", "*a_b-c.d*=1"},
    {"a=1,", "malformed"},
    {"a=1 b=2", "malformed"},
    {"a=", "malformed"},
    {"=1", "malformed"},
    {"A=1", "malformed"},
    {"\"a\"=1", "malformed"},
    {"a =1", "malformed"},
    {"a= 1", "malformed"},
    {"1=a", "malformed"},
};

static void test_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        assert_string_equal(read_list(lists[i].text, false), lists[i].expected);
}

static void test_dictionaries(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(dictionaries) / sizeof(dictionaries[0]); i++)
        assert_string_equal(read_dictionary(dictionaries[i].text), dictionaries[i].expected);
}

static void test_leniency_is_for_one_thing_only(void **state)
{
    (void)state;
    assert_string_equal(read_list("\"fixed window\";\"api\";q=500;w=300", true), "'fixed window';='api';q=500;w=300");
    assert_string_equal(read_list("\"fixed window\";\"api;q=500", true), "malformed");
    assert_string_equal(read_list("\"a\";5", true), "malformed");
    assert_string_equal(read_list("1,", true), "malformed");
}

/* Whoever does not ask for parameters has them checked all the same. */
static void test_parameters_may_be_skipped(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int members;
        bool failed;
    } fields[] = {{"1;a=1;b, 2;c, 3", 3, false}, {"1;a=, 2", 1, true}, {"1, 2;A", 2, true}};
    for (size_t i = 0; i < 3; i++) {
        struct structured_field field;
        struct structured_item item;
        int members = 0;
        structured_field_begin(&field, fields[i].text, strlen(fields[i].text));
        while (structured_field_next_member(&field, &item))
            members++;
        assert_int_equal(members, fields[i].members);
        assert_int_equal(field.failed, fields[i].failed);
        assert_false(structured_field_next_member(&field, &item));
    }
}

/* The text need not end in NUL, and nothing behind its end is looked at. */
static void test_ends_where_it_is_told_to(void **state)
{
    (void)state;
    static const char text[] = "\"ab\";r=12, 5";
    for (size_t length = 0; length < sizeof(text); length++) {
        char cut[sizeof(text)] = "";
        struct structured_field field;
        struct structured_item item;
        memcpy(cut, text, length);
        structured_field_begin(&field, text, length);
        while (structured_field_next_member(&field, &item))
            continue;
        assert_int_equal(field.failed, strcmp(read_list(cut, false), "malformed") == 0 || length == sizeof(text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_dictionaries),
        cmocka_unit_test(test_leniency_is_for_one_thing_only),
        cmocka_unit_test(test_parameters_may_be_skipped),
        cmocka_unit_test(test_ends_where_it_is_told_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
