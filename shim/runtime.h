/* SPDX-License-Identifier: MIT */
/*
 * Runtime: what this process has once: its configuration, its mapping of the segment, its log, and
 * the governor's view of them.
 *
 * Made when a libcurl is already loaded at start (before a program drops its privileges, changes
 * its root or closes its descriptors), else at the first curl call; programs that never use curl
 * pay for reading a few environment variables.  Thread-safe; read-only once made.
 */
#ifndef CURTSY_SHIM_RUNTIME_H
#define CURTSY_SHIM_RUNTIME_H

#include "core/config.h"
#include "core/governor.h"
#include "core/segment.h"

struct runtime {
    struct config *config; /* NULL: out of memory; nothing is governed */
    struct segment segment;
    struct governor governor;
    enum mode mode; /* CURTSY_MODE; MODE_ENFORCE where it says nothing */
    char program[64];
};

/* NULL when nothing is to be governed in this process. */
const struct runtime *runtime_get(void);

/* The bucket of that name: in the segment, or where that is full of busy ones in memory of this
 * process; NULL if there is none even there. */
struct bucket *runtime_bucket(const struct runtime *runtime, const char *name, int64_t now_ns);

#endif
