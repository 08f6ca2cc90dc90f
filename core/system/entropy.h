/* SPDX-License-Identifier: MIT */
/*
 * Entropy: random bytes that nobody else has, on this machine or any other.
 *
 * One system call (getrandom), which never blocks.  Where the kernel has none to give or forbids the
 * call, they are made from `fallback`, the clocks and the process instead, which is unique enough for a
 * name and no secret.  Thread-safe; errno is preserved.
 */
#ifndef CURTSY_CORE_SYSTEM_ENTROPY_H
#define CURTSY_CORE_SYSTEM_ENTROPY_H

#include "core/random.h"

#include <stddef.h>
#include <stdint.h>

void entropy_fill(uint8_t *bytes, size_t count, struct random_source *fallback);

#endif
