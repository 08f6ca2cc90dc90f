/* SPDX-License-Identifier: MIT */
/*
 * UUID: sixteen random bytes, of which six bits say what kind of UUID it is, as 8-4-4-4-12 hexadecimal
 * digits.
 */
#include "core/uuid.h"

#include <stdbool.h>

#define VERSION_BYTE 6 /* its high four bits: 4, random */
#define VARIANT_BYTE 8 /* its high two bits: binary 10, RFC 9562 */

static bool begins_a_group(unsigned byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void uuid_write(const uint8_t random[UUID_BYTES], char text[UUID_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    char *to = text;
    for (unsigned i = 0; i < UUID_BYTES; i++) {
        unsigned byte = random[i];
        if (i == VERSION_BYTE)
            byte = (byte & 0x0f) | 0x40;
        if (i == VARIANT_BYTE)
            byte = (byte & 0x3f) | 0x80;
        if (begins_a_group(i))
            *to++ = '-';
        *to++ = digits[byte >> 4];
        *to++ = digits[byte & 0x0f];
    }
    *to = '\0';
}
