/* SPDX-License-Identifier: MIT */
/*
 * File identity: is a file still the one that it was?  Device, inode, size, and the times of modification
 * and of change, to the nanosecond, in one number.
 *
 * Thread-safe; errno is preserved.  One system call.
 */
#ifndef CURTSY_CORE_SYSTEM_FILE_IDENTITY_H
#define CURTSY_CORE_SYSTEM_FILE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

/* Goes on from *hash.  False, and *hash untouched, where the file cannot be looked at or is not a regular
 * one (a pipe or a device gives something else each time).  Symbolic links are followed, as fopen does. */
bool file_identity_add(uint64_t *hash, const char *path);

/* The same for a file that is open. */
bool file_identity_add_open(uint64_t *hash, int descriptor);

#endif
