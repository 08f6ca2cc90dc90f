/* SPDX-License-Identifier: MIT */
/*
 * UUID: its form, its six fixed bits, and that all others are the caller's.
 */
#include "core/uuid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void expect(const uint8_t random[UUID_BYTES], const char *expected)
{
    char text[UUID_SIZE + 1];
    memset(text, '#', sizeof text);
    uuid_write(random, text);
    assert_string_equal(text, expected);
    assert_int_equal(text[UUID_SIZE], '#');
}

static void test_known_values(void **state)
{
    (void)state;
    /* The example of RFC 9562, appendix A.3. */
    static const uint8_t example[UUID_BYTES] = {0x91, 0x91, 0x08, 0xf7, 0x52, 0xd1, 0x43, 0x20,
                                                0x9b, 0xac, 0xf8, 0x47, 0xdb, 0x41, 0x48, 0xa8};
    uint8_t bytes[UUID_BYTES] = {0};
    expect(example, "919108f7-52d1-4320-9bac-f847db4148a8");
    expect(bytes, "00000000-0000-4000-8000-000000000000");
    memset(bytes, 0xff, sizeof bytes);
    expect(bytes, "ffffffff-ffff-4fff-bfff-ffffffffffff");
}

/* 122 bits are random: each of them is told. */
static void test_every_other_bit_counts(void **state)
{
    (void)state;
    char none[UUID_SIZE];
    unsigned told = 0;
    const uint8_t zeros[UUID_BYTES] = {0};
    uuid_write(zeros, none);
    for (unsigned bit = 0; bit < 8 * UUID_BYTES; bit++) {
        uint8_t bytes[UUID_BYTES] = {0};
        char text[UUID_SIZE];
        bytes[bit / 8] = (uint8_t)(1u << bit % 8);
        uuid_write(bytes, text);
        told += strcmp(text, none) != 0;
    }
    assert_int_equal(told, 122);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_every_other_bit_counts),
    };
    return cmocka_run_group_tests_name("uuid", tests, NULL, NULL);
}
