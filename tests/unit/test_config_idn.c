/* SPDX-License-Identifier: MIT */
/*
 * Config IDN: internationalised names as they travel, and those about which nothing is said.
 */
#include "core/config_idn.h"
#include "core/section_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* As libidn2, which libcurl asks, has them (IDNA2008, nontransitional). */
static void names_travel_in_punycode(void **state)
{
    static const struct {
        const char *name, *travels; /* NULL: in doubt, or no name */
    } cases[] = {
        {"müller.example", "xn--mller-kva.example"},
        {"MÜLLER.Example.", "xn--mller-kva.example"},
        {"*.bücher.example", "*.xn--bcher-kva.example"},
        {"пример.испытание", "xn--e1afmkfd.xn--80akhbyknj4f"},
        {"Київ.ua", "xn--b1alf1j.ua"},
        {"ελληνικά.gr", "xn--hxargifdar.gr"},
        {"日本語.jp", "xn--wgv71a119e.jp"},
        {"例え.テスト", "xn--r8jz45g.xn--zckzah"},
        {"한국.kr", "xn--3e0b707e.kr"},
        {"Žluťoučký.cz", "xn--luouk-uva4it5a4g.cz"},
        {"tiếng.việt", "xn--ting-hv5a.xn--vit-5kz"},
        {"straße.de", "xn--strae-oqa.de"},
        {"Api.Example.COM", "api.example.com"},
        /* Mapped to something else, or to nothing; or written from right to left. */
        {"ﬁ.example", NULL},
        {"ſ.example", NULL},
        {"İ.example", NULL},
        {"ｅ.example", NULL},
        {"a。b", NULL},
        {"u\xcc\x88.example", NULL},
        {"שלום.il", NULL},
        {"a\xc2\xad.example", NULL},
        {"😀.example", NULL},
        /* No names. */
        {"", NULL},
        {".", NULL},
        {"ü..example", NULL},
        {".ü", NULL},
        {"-ü.example", NULL},
        {"ü-.example", NULL},
        {"xn--ü.example", NULL},
        {"a b.ü", NULL},
        {"a_ü.example", NULL},
        /* Not UTF-8. */
        {"m\xfcller.example", NULL},
        {"m\xc3", NULL},
        {"m\xc3.example", NULL},
        {"\xe0\x83\xbc", NULL},
        {"\xed\xa0\x80", NULL},
        {"\x80\xbc", NULL},
        {"\xf0\x9f", NULL},
    };
    char out[256];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool done = idn_to_ascii(cases[i].name, strlen(cases[i].name), out, sizeof out);
        if (done != (cases[i].travels != NULL) || (done && strcmp(out, cases[i].travels) != 0))
            fail_msg("%s: %s", cases[i].name, done ? out : "nothing");
    }
}

static void what_does_not_fit_is_not_cut(void **state)
{
    char name[256], out[256];
    size_t length = 0;

    (void)state;
    /* Up to 63 characters as it travels, and no more. */
    for (; length < 40; length++)
        name[length] = 'a';
    memcpy(name + length, "ü", 2);
    assert_true(idn_to_ascii(name, length + 2, out, sizeof out));
    assert_true(strlen(out) <= 63);
    size_t longest = strlen(out);
    while (idn_to_ascii(name, length + 2, out, sizeof out)) {
        longest = strlen(out);
        name[length++] = 'a';
        memcpy(name + length, "ü", 2);
    }
    assert_int_equal(longest, 63);

    for (size_t size = 0; size < 30; size++) {
        memset(out, 'x', sizeof out);
        bool done = idn_to_ascii("müller.example", strlen("müller.example"), out, size);
        assert_int_equal(done, size > strlen("xn--mller-kva.example"));
        assert_int_equal(out[size], 'x');
    }
}

/* The host only; what else there is in a section's name stays. */
static void a_sections_name_is_converted_whole(void **state)
{
    char out[64];
    static const char name[] = " Müller.example:8443/v1/* \"Größe\" ";

    (void)state;
    assert_true(section_name_in_ascii(name, strlen(name), out, sizeof out));
    assert_string_equal(out, "xn--mller-kva.example:8443/v1/* \"Größe\"");
    for (size_t size = 0; size <= strlen("xn--mller-kva.example:8443/v1/* \"Größe\""); size++)
        assert_false(section_name_in_ascii(name, strlen(name), out, size));
    assert_false(section_name_in_ascii(":80", 3, out, sizeof out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_travel_in_punycode),
        cmocka_unit_test(what_does_not_fit_is_not_cut),
        cmocka_unit_test(a_sections_name_is_converted_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
