/* SPDX-License-Identifier: MIT */
/*
 * UUID: version 4, which is random (RFC 9562, section 5.4).
 */
#ifndef CURTSY_CORE_UUID_H
#define CURTSY_CORE_UUID_H

#include <stdint.h>

#define UUID_BYTES 16
#define UUID_SIZE 37 /* as text, NUL included */

/* Writes the text, lower case, for these random bytes; the six bits that tell version and variant are
 * set. */
void uuid_write(const uint8_t random[UUID_BYTES], char text[UUID_SIZE]);

#endif
