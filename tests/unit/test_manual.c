/* SPDX-License-Identifier: MIT */
/*
 * The manual against the table of keys: ratelimit.ini(5) has an entry for every key, with the
 * table's help, its default, and whether it is in force; and none for a key that does not exist.
 * Run from the top folder of the sources.
 */
#include "core/keys.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MANUAL "tools/man/ratelimit.ini.5"
#define ENTRY ".It Ic "

static char manual[256 * 1024];

static int read_manual(void **state)
{
    FILE *file = fopen(MANUAL, "r");

    (void)state;
    if (file == NULL) {
        print_error("%s cannot be read; run from the top folder\n", MANUAL);
        return -1;
    }
    size_t length = fread(manual, 1, sizeof(manual) - 1, file);
    fclose(file);
    manual[length] = '\0';
    return 0;
}

/* The text behind ".It Ic NAME", up to the next entry or the end of the list; NULL if there is none. */
static char *entry_of(const char *name)
{
    char heading[128];

    snprintf(heading, sizeof(heading), "\n" ENTRY "%s\n", name);
    const char *from = strstr(manual, heading);
    if (from == NULL)
        return NULL;
    from += strlen(heading);

    const char *to = from;
    while (strncmp(to, ".It", 3) != 0 && strncmp(to, ".El", 3) != 0) {
        to = strchr(to, '\n');
        assert_non_null(to);
        to++;
    }
    return strndup(from, (size_t)(to - from));
}

/* Line ends become blanks, and letters lower case: a sentence begins with a capital. */
static void flatten(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        char c = *from == '\n' ? ' ' : (char)tolower((unsigned char)*from);
        if (c != ' ' || (to > text && to[-1] != ' '))
            *to++ = c;
    }
    *to = '\0';
}

static void assert_says(const char *name, const char *entry, bool wanted, const char *format, const char *text)
{
    char sentence[512];

    snprintf(sentence, sizeof(sentence), format, text);
    flatten(sentence);
    if ((strstr(entry, sentence) != NULL) != wanted)
        fail_msg("the entry of %s %s \"%s\":\n%s", name, wanted ? "lacks" : "should not have", sentence, entry);
}

static void test_every_key_is_described(void **state)
{
    (void)state;
    assert_true(all_keys_count >= POLICY_KEY_COUNT + CURTSY_KEY_COUNT);
    for (size_t i = 0; i < all_keys_count; i++) {
        const struct key *key = all_keys[i];
        char *entry = entry_of(key->name);

        if (entry == NULL)
            fail_msg("no entry of %s", key->name);
        flatten(entry);
        assert_says(key->name, entry, true, "%s.", key->help);
        if (key->default_text != NULL)
            assert_says(key->name, entry, true, " default: %s. ", key->default_text);
        assert_says(key->name, entry, !key->in_force, "not in force yet.%s", "");
        free(entry);
    }
}

static bool is_key(const char *name, size_t length)
{
    for (size_t i = 0; i < all_keys_count; i++)
        if (strlen(all_keys[i]->name) == length && strncmp(all_keys[i]->name, name, length) == 0)
            return true;
    return false;
}

static void test_no_other_key_is_described(void **state)
{
    size_t entries = 0;

    (void)state;
    for (const char *at = strstr(manual, "\n" ENTRY); at != NULL; at = strstr(at, "\n" ENTRY)) {
        at += 1 + strlen(ENTRY);
        if (!is_key(at, strcspn(at, "\n")))
            fail_msg("an entry of %.*s, which is not a key", (int)strcspn(at, "\n"), at);
        entries++;
    }
    assert_int_equal(entries, all_keys_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_key_is_described),
        cmocka_unit_test(test_no_other_key_is_described),
    };
    return cmocka_run_group_tests_name("manual", tests, read_manual, NULL);
}
