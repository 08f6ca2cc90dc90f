/* SPDX-License-Identifier: MIT */
/*
 * File identity: is a file still the one that it was?  Device, inode, size, and the times of modification
 * and of change, to the nanosecond, in one number.
 *
 * It says nothing of what is written through a mapping that somebody has, or within one step of the file system's
 * clock (a jiffy before Linux 6.13).
 *
 * Thread-safe; errno is preserved.  Two system calls.
 */
#ifndef CURTSY_CORE_SYSTEM_FILE_IDENTITY_H
#define CURTSY_CORE_SYSTEM_FILE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

/* Goes on from *hash.  False, and *hash untouched, where the file cannot be looked at or is not a regular
 * one (a pipe or a device gives something else each time, and so does what the kernel makes up: /proc, /sys).  Symbolic links are followed, as fopen does. */
bool file_identity_add(uint64_t *hash, const char *path);

/* The same for a file that is open. */
bool file_identity_add_open(uint64_t *hash, int descriptor);

#endif
