/* SPDX-License-Identifier: MIT */
/*
 * Sealed pieces of memory: read as they were written or not at all, whatever was changed, mixed or
 * left out.
 */
#include "tests/unit/bucket_world.h"

#include "core/sealed.h"

static _Atomic uint64_t place[SEALED_WORDS];

static int set_up(void **state)
{
    (void)state;
    memset((void *)place, 0, sizeof place);
    return 0;
}

static struct sealed piece_of(uint64_t number)
{
    struct sealed sealed;
    for (uint64_t i = 0; i < SEALED_WORDS; i++)
        sealed.word[i] = number * 1000 + i;
    return sealed;
}

static void write_piece(const struct sealed *sealed)
{
    atomic_store(&place[0], sealed->word[0]);
    sealed_write(place, sealed);
}

static void test_it_is_read_as_it_was_written(void **state)
{
    (void)state;
    const struct sealed written = piece_of(7);
    struct sealed read;
    assert_false(sealed_read(place, &read)); /* zeros are nothing */
    write_piece(&written);
    assert_true(sealed_read(place, &read));
    for (size_t i = 0; i < SEALED_WORDS; i++)
        assert_true(i == 1 || read.word[i] == written.word[i]);
    sealed_break(place);
    assert_false(sealed_read(place, &read));
}

static void test_writing_leaves_the_first_word_alone(void **state)
{
    (void)state;
    const struct sealed written = piece_of(7);
    struct sealed read;
    atomic_store(&place[0], 5);
    sealed_write(place, &written);
    assert_int_equal(atomic_load(&place[0]), 5);
    assert_false(sealed_read(place, &read)); /* it is sealed for another */
}

static void test_every_bit_counts(void **state)
{
    (void)state;
    const struct sealed written = piece_of(7);
    struct sealed read;
    write_piece(&written);
    for (size_t i = 0; i < SEALED_WORDS; i++)
        for (unsigned bit = 0; bit < 64; bit++) {
            atomic_fetch_xor(&place[i], UINT64_C(1) << bit);
            if (sealed_read(place, &read))
                fail_msg("word %zu, bit %u", i, bit);
            atomic_fetch_xor(&place[i], UINT64_C(1) << bit);
        }
    assert_true(sealed_read(place, &read));
}

/* Two writers who met: each word is of the one or of the other. */
static void test_no_mixture_of_two_is_whole(void **state)
{
    (void)state;
    const struct sealed a = piece_of(7), b = piece_of(8);
    struct sealed sealed_a, sealed_b, read;
    write_piece(&a);
    sealed_read(place, &sealed_a);
    write_piece(&b);
    sealed_read(place, &sealed_b);
    uint32_t random = 1;
    for (int i = 0; i < 20000; i++) {
        uint32_t of_a = i < 31 ? (2u << i) - 1 : (random = random * 1664525 + 1013904223); /* a beginning, or any */
        for (size_t j = 0; j < SEALED_WORDS; j++)
            atomic_store(&place[j], of_a >> j & 1 ? sealed_a.word[j] : sealed_b.word[j]);
        if (sealed_read(place, &read) && of_a && ~of_a)
            fail_msg("mixture %08x", of_a);
    }
}

static void test_words_in_another_order_are_another_piece(void **state)
{
    (void)state;
    struct sealed written = piece_of(7), read;
    write_piece(&written);
    uint64_t word = atomic_exchange(&place[20], atomic_load(&place[21]));
    atomic_store(&place[21], word);
    assert_false(sealed_read(place, &read));
}

/* ----------------------------------------------------------------------- texts ---- */

static void check_text(size_t size, const char *text, const char *expected)
{
    struct sealed sealed = piece_of(7);
    char out[64];
    sealed_put_text(&sealed, 4, size, text);
    sealed_take_text(&sealed, 4, size, out);
    assert_string_equal(out, expected);
    /* Behind it are zeros, up to the next field and not beyond. */
    const char *room = (const char *)&sealed.word[4];
    for (size_t i = strlen(expected); i < size; i++)
        assert_int_equal(room[i], 0);
    assert_int_equal(sealed.word[3], 7003);
    assert_int_equal(sealed.word[4 + size / 8], 7004 + size / 8);
}

static void test_texts(void **state)
{
    (void)state;
    check_text(16, "", "");
    check_text(16, "curl", "curl");
    check_text(16, "a\nb\xff", "a?b?");
    check_text(16, "0123456789abcdefgh", "0123456789abcde");
    check_text(16, "0123456789abcd\xc3\xbc", "0123456789abcd");
    check_text(16, "0123456789abcd\xc3", "0123456789abcd"); /* cut there by the caller, it seems */
    check_text(16, "0123456789abc\xc3", "0123456789abc?");
}

static void test_a_text_without_an_end_is_not_read_beyond(void **state)
{
    (void)state;
    struct sealed sealed = piece_of(7);
    char *text = malloc(15), out[64]; /* whoever reads a byte more is seen by AddressSanitizer */
    memset(text, 'x', 15);
    sealed_put_text(&sealed, 4, 16, text);
    sealed_take_text(&sealed, 4, 16, out);
    assert_string_equal(out, "xxxxxxxxxxxxxxx");
    free(text);
    memset(&sealed.word[4], 'y', 24);
    sealed_take_text(&sealed, 4, 16, out);
    assert_string_equal(out, "yyyyyyyyyyyyyyy");
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_it_is_read_as_it_was_written),
        TEST(test_writing_leaves_the_first_word_alone),
        TEST(test_every_bit_counts),
        TEST(test_no_mixture_of_two_is_whole),
        TEST(test_words_in_another_order_are_another_piece),
        TEST(test_texts),
        TEST(test_a_text_without_an_end_is_not_read_beyond),
    };
    return cmocka_run_group_tests_name("sealed", tests, NULL, NULL);
}
