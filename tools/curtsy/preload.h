/* SPDX-License-Identifier: MIT */
/*
 * Preload: where libcurtsy.so is, and what LD_PRELOAD is to say so that the loader takes it in.
 */
#ifndef CURTSY_TOOLS_PRELOAD_H
#define CURTSY_TOOLS_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>

/* Finds the library beside this executable, else in ../lib, else in the folder it was built to be
 * installed in.  False, with what was looked for in `error`, if it is in none of them or if its path
 * cannot be written in LD_PRELOAD. */
bool preload_find_library(char *path, size_t size, char *error, size_t error_size);

/* The new value of LD_PRELOAD, allocated: the entries of `inherited` (may be NULL) and `library`,
 * which is there once.  It goes last, since a sanitizer's runtime must be first, but before a
 * libcurl, which would otherwise be found before it.  NULL when out of memory. */
char *preload_list(const char *inherited, const char *library);

#endif
