/* SPDX-License-Identifier: MIT */
/*
 * The operator's switch: a mode and its end in one word, whatever is in that word.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/operator.h"

#define NOW (1000 * NS_PER_SECOND)

static void test_names(void **state)
{
    (void)state;
    const struct {
        const char *name;
        enum operator_mode mode;
    } cases[] = {
        {"auto", OPERATOR_AUTO}, {"off", OPERATOR_OFF}, {"observe", OPERATOR_OBSERVE}, {"enforce", OPERATOR_ENFORCE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum operator_mode mode = (enum operator_mode) - 1;
        assert_true(operator_mode_parse(cases[i].name, &mode));
        assert_int_equal(mode, cases[i].mode);
        assert_string_equal(operator_mode_name(mode), cases[i].name);
    }
    /* A mode that came out of somewhere else has a name, too. */
    for (int i = -5; i < 300; i++)
        assert_non_null(operator_mode_name((enum operator_mode)i));
}

static void test_what_is_no_mode(void **state)
{
    (void)state;
    const char *const cases[] = {"", "Off", "off ", " off", "of", "offf", "on", "0"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum operator_mode mode = OPERATOR_OBSERVE;
        assert_false(operator_mode_parse(cases[i], &mode));
        assert_int_equal(mode, OPERATOR_OBSERVE);
    }
}

static void test_a_mode_is_meant_until_its_end(void **state)
{
    (void)state;
    const enum operator_mode modes[] = {OPERATOR_OFF, OPERATOR_OBSERVE, OPERATOR_ENFORCE};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        for (int64_t end_ns = NOW; end_ns < NOW + 9; end_ns++) { /* the word keeps it to four nanoseconds */
            uint64_t word = operator_word(modes[i], end_ns);
            assert_int_equal(operator_word_until_ns(word), end_ns / 4 * 4);
            assert_int_equal(operator_word_mode(word, 0), modes[i]);
            assert_int_equal(operator_word_mode(word, end_ns - 4), modes[i]);
            assert_int_equal(operator_word_mode(word, end_ns), OPERATOR_AUTO);
            assert_int_equal(operator_word_mode(word, TIME_NEVER), OPERATOR_AUTO);
        }
}

static void test_without_an_end_it_is_meant_for_ever(void **state)
{
    (void)state;
    uint64_t word = operator_word(OPERATOR_OFF, TIME_NEVER);
    assert_int_equal(operator_word_until_ns(word), TIME_NEVER);
    assert_int_equal(operator_word_mode(word, NOW), OPERATOR_OFF);
    assert_int_equal(operator_word_mode(word, TIME_NEVER - 1), OPERATOR_OFF);
}

static void test_auto_is_no_word_at_all(void **state)
{
    (void)state;
    assert_int_equal(operator_word(OPERATOR_AUTO, NOW), 0);
    assert_int_equal(operator_word(OPERATOR_AUTO, TIME_NEVER), 0);
    assert_int_equal(operator_word_mode(0, NOW), OPERATOR_AUTO);
    assert_int_equal(operator_word_mode(0, 0), OPERATOR_AUTO);
    assert_int_equal(operator_word_mode(0, -1), OPERATOR_AUTO);
}

static void test_an_end_in_the_past_is_over(void **state)
{
    (void)state;
    const int64_t ends[] = {INT64_MIN, -1, 0, 1};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        uint64_t word = operator_word(OPERATOR_OFF, ends[i]);
        assert_int_equal(operator_word_until_ns(word), 0);
        assert_int_equal(operator_word_mode(word, 0), OPERATOR_AUTO);
    }
}

static void test_any_word_is_a_mode_and_an_end(void **state)
{
    (void)state;
    const uint64_t words[] = {1, 2, 3, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1, (uint64_t)INT64_MAX - 3};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        assert_true(operator_word_until_ns(words[i]) >= 0);
        assert_in_range(operator_word_mode(words[i], NOW), OPERATOR_AUTO, OPERATOR_ENFORCE);
        assert_in_range(operator_word_mode(words[i], INT64_MIN), OPERATOR_AUTO, OPERATOR_ENFORCE);
    }
    /* An end that is no time is no end. */
    assert_int_equal(operator_word_until_ns((uint64_t)INT64_MAX + 1), TIME_NEVER);
    assert_int_equal(operator_word_until_ns(UINT64_MAX), TIME_NEVER);
}

static void test_the_most_that_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(operator_ceiling(OPERATOR_OFF), MODE_OFF);
    assert_int_equal(operator_ceiling(OPERATOR_OBSERVE), MODE_OBSERVE);
    assert_int_equal(operator_ceiling(OPERATOR_ENFORCE), MODE_ENFORCE);
    assert_int_equal(operator_ceiling(OPERATOR_AUTO), MODE_ENFORCE);
    assert_int_equal(operator_ceiling((enum operator_mode)99), MODE_ENFORCE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_what_is_no_mode),
        cmocka_unit_test(test_a_mode_is_meant_until_its_end),
        cmocka_unit_test(test_without_an_end_it_is_meant_for_ever),
        cmocka_unit_test(test_auto_is_no_word_at_all),
        cmocka_unit_test(test_an_end_in_the_past_is_over),
        cmocka_unit_test(test_any_word_is_a_mode_and_an_end),
        cmocka_unit_test(test_the_most_that_is_allowed),
    };
    return cmocka_run_group_tests_name("operator", tests, NULL, NULL);
}
