/* SPDX-License-Identifier: MIT */
/*
 * Printable texts: what passes, what becomes '?', and where a text is cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/printable.h"

static void check_copy(size_t size, const char *text, const char *expected)
{
    char out[64];
    memset(out, 'X', sizeof out);
    size_t length = printable_copy(out, size, text, strlen(text));
    assert_string_equal(out, expected);
    assert_int_equal(length, strlen(expected));
    for (size_t i = size; i < sizeof out; i++)
        assert_int_equal(out[i], 'X');
}

static void test_what_passes_and_what_does_not(void **state)
{
    (void)state;
    const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ""},
        {"GET api.example.com/v1 \"~\\", "GET api.example.com/v1 \"~\\"},
        {"a\nb\r\tc\x1b[31m\x7f", "a?b??c?[31m?"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\xa2", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\xa2"},
        {"\xc2\x80\xc2\x9f\xc2\xa0", "??\xc2\xa0"}, /* C1 controls, each one character */
        {"a\xff\xfe"
         "b",
         "a??b"},
        {"\x80\xbf", "??"},                                 /* without a first byte */
        {"\xc3", "?"},                                      /* without a second one */
        {"\xe2\x82", "??"},                                 /* nor a third */
        {"\xc0\xaf\xe0\x80\xaf", "?????"},                  /* overlong */
        {"\xed\xa0\x80", "???"},                            /* a surrogate */
        {"\xf4\x90\x80\x80 \xf8\x88\x80\x80", "???? ????"}, /* above U+10FFFF */
        {"\xc3(\xe2(\x82", "?(?(?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_copy(40, cases[i].text, cases[i].expected);
}

static void test_a_text_is_cut_between_characters(void **state)
{
    (void)state;
    check_copy(4, "abcdef", "abc");
    check_copy(1, "abcdef", "");
    check_copy(4, "ab\xc3\xbc", "ab");
    check_copy(5, "ab\xc3\xbc", "ab\xc3\xbc");
    check_copy(4, "\xf0\x9f\x90\xa2x", ""); /* nor is a later, shorter one taken in its place */
    check_copy(4, "\xff\xff\xff\xff", "???");
}

static void test_the_end_is_a_nul_or_the_length(void **state)
{
    (void)state;
    char out[16];
    assert_int_equal(printable_copy(out, sizeof out, "ab\0cd", 5), 2);
    assert_string_equal(out, "ab");
    assert_int_equal(printable_copy(out, sizeof out, "abcd", 3), 3);
    assert_string_equal(out, "abc");
    /* A character that goes on behind the length is none. */
    assert_int_equal(printable_copy(out, sizeof out, "ab\xc3\xbc", 3), 3);
    assert_string_equal(out, "ab?");
}

static void test_a_last_character_without_its_end(void **state)
{
    (void)state;
    const struct {
        const char *text;
        size_t expected;
    } cases[] = {
        {"", 0},
        {"abc", 3},
        {"ab\xc3\xbc", 4},
        {"ab\xc3", 2},
        {"ab\xe2\x82\xac", 5},
        {"ab\xe2\x82", 2},
        {"ab\xf0\x9f\x90\xa2", 6},
        {"ab\xf0\x9f\x90", 2},
        {"ab\xff", 3}, /* no character at all: it is not for want of an end */
        {"\x80\x80\x80\x80\x80", 5},
        {"\x80", 1},
        {"a\x80\x80", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(printable_whole_length(cases[i].text, strlen(cases[i].text)), cases[i].expected);
}

/* Every text of up to three bytes: what comes out is clean, and comes out again as it is. */
static void test_a_copy_of_a_copy_is_equal(void **state)
{
    (void)state;
    for (uint32_t bytes = 0; bytes < 1u << 24; bytes += bytes < 1u << 16 ? 1 : 251) {
        char once[8], twice[8];
        size_t length = printable_copy(once, sizeof once, (const char *)&bytes, sizeof bytes);
        for (size_t i = 0; i < length; i++)
            if ((unsigned char)once[i] < 0x20 || once[i] == 0x7f)
                fail_msg("a control character out of %06x", bytes);
        printable_copy(twice, sizeof twice, once, length);
        if (strcmp(once, twice) != 0)
            fail_msg("%06x", bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_passes_and_what_does_not),  cmocka_unit_test(test_a_text_is_cut_between_characters),
        cmocka_unit_test(test_the_end_is_a_nul_or_the_length), cmocka_unit_test(test_a_last_character_without_its_end),
        cmocka_unit_test(test_a_copy_of_a_copy_is_equal),
    };
    return cmocka_run_group_tests_name("printable", tests, NULL, NULL);
}
