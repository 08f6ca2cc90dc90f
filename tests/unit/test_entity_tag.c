/* SPDX-License-Identifier: MIT */
/*
 * Entity tags: which ones prove that two responses have the same bytes, as a table.
 */
#include "core/entity_tag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *const strong[] = {
    "\"\"",
    "\"a\"",
    "\"xyzzy\"",
    "\"33a64df551425fcc55e4d42a148795d9f25f89d4\"",
    "\"5e1f-5a8b0c1d2e3f4\"",
    "\"W/a\"",
    "\"a,b\"",
    "\"*\"",
    "\"!#$%&'()+-./:;<=>?@[]^_`{|}~\"",
    "\"back\\slash\"",
    "\"\\\"",
    "\"obs-text-\xe9\"",
    "\"\x80\xff\"",
    "\"\xe2\x82\xac\"",
    " \"a\"",
    "\"a\" \t",
};

static const char *const others[] = {
    /* Weak. */
    "W/\"a\"",
    "W/\"\"",
    "w/\"a\"",
    " W/\"a\"",
    "W/ \"a\"",
    "W /\"a\"",
    "W\"a\"",

    /* Not quoted as it must be. */
    "",
    " ",
    "a",
    "*",
    "\"",
    "\"a",
    "a\"",
    "'a'",
    "\\\"a\\\"",
    "\"\"a\"\"",
    "\"\"\"",
    "\"a\"b\"",
    "\"a\\\"b\"",
    "\342\200\234a\342\200\235",

    /* More than one, or something beside it. */
    "\"a\", \"b\"",
    "\"a\",\"b\"",
    "\"a\" \"b\"",
    "\"a\"\"b\"",
    "\"a\", W/\"b\"",
    "\"a\",",
    ",\"a\"",
    "\"a\";q=1",
    "\"a\"-gzip",
    "x\"a\"",

    /* Characters that no tag has. */
    "\"a b\"",
    "\" \"",
    "\"a\tb\"",
    "\"a\x01\"",
    "\"a\x1f\"",
    "\"a\x7f\"",
    "\"a\r\"",
    "\"a\n\"",
    "\"a\"\r\n",
    "\n\"a\"",
};

static void test_strong(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(strong); i++)
        if (!entity_tag_is_strong(strong[i]))
            fail_msg("%s is a strong tag", strong[i]);
}

static void test_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (entity_tag_is_strong(others[i]))
            fail_msg("%s is no strong tag", others[i]);
}

/* Each byte, within a tag: etagc of RFC 9110, section 8.8.3. */
static void test_every_byte(void **state)
{
    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        char tag[] = "\"a?b\"";
        tag[2] = (char)byte;
        bool expected = byte == 0x21 || (byte >= 0x23 && byte <= 0x7e) || byte >= 0x80;
        if (entity_tag_is_strong(tag) != expected)
            fail_msg("byte 0x%02x in a tag", (unsigned)byte);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strong),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
