/* SPDX-License-Identifier: MIT */
/*
 * Runtime parts: the two things that a snapshot is made of, each made once and shared by the snapshots
 * that have it in common: what the configuration's files said, and a mapped segment.
 *
 * Making one fails open: no configuration file is the built-in defaults, a bad value inherits, no
 * shared memory is a budget of this process' own.  One line a process at most tells of it.
 *
 * Used by one thread at a time (runtime.c sees to that), but for parts_environment.
 */
#ifndef CURTSY_SHIM_RUNTIME_PARTS_H
#define CURTSY_SHIM_RUNTIME_PARTS_H

#include "core/config.h"
#include "core/segment.h"
#include "core/system/config_files.h"
#include "core/system/mapping.h"
#include "core/system/segment_choice.h"

#include <limits.h>

struct policy_part {
    unsigned users; /* snapshots */
    struct config *config;
    struct config *machine; /* NULL unless sources.machine_wide */
    struct config_sources sources;
    bool has_faults; /* something in the files was not understood and left out */
    uint64_t root;   /* names the file system's root that they were read below: device and inode */
};

struct memory_part {
    unsigned users;
    struct mapping mapping;
    struct segment segment;
    char name[PATH_MAX + 1];
    bool is_default; /* the name is the user's own, so another user has another one */
    uint32_t uid;    /* real and effective when it was attached; UINT32_MAX where they differed */
};

/* The environment as it was at the start. */
const struct environment *parts_environment(void);

/* Reads every layer; NULL when out of memory.  `first`: the log is opened as it says.  Faults are
 * told unless `quietly`. */
struct policy_part *policy_part_read(const char *program, bool first);

/* Where the segment is, or has to be made; private memory where it cannot be had.  NULL when there
 * is not even that. */
struct memory_part *memory_part_attach(const struct policy_part *policy);

/* The same, but privately only where the program's clock is not the machine's any more; else NULL, and
 * nothing is said. */
struct memory_part *memory_part_attach_again(const struct policy_part *policy);

/* A user less.  The last one frees it.  NULL is allowed. */
void policy_part_drop(struct policy_part *part);
void memory_part_drop(struct memory_part *part);

/* Names the root directory that this process has now. */
uint64_t parts_root(void);

/* The uid, where the real and the effective one are the same; else UINT32_MAX. */
uint32_t parts_uid(void);

#endif
