/* SPDX-License-Identifier: MIT */
/*
 * Runtime: what this process has of the world besides its handles: the configuration, the mapping of
 * the segment, and the governor's view of them.  A runtime is a snapshot: nothing in it changes.  When
 * the configuration is to be read again, or the segment's file was replaced, there is a new one, and
 * whoever holds the old one goes on with it until he asks for the present one.
 *
 * The first is made when a libcurl is already loaded at start (before a program drops its
 * privileges, changes its root or closes its descriptors), else at the first curl call; programs
 * that never use curl pay for reading a few environment variables.
 *
 * Thread-safe, without a lock: a thread that finds another one making a new snapshot goes on with the
 * present one.  In a forked child everything goes on as in its parent.
 */
#ifndef CURTSY_SHIM_RUNTIME_H
#define CURTSY_SHIM_RUNTIME_H

#include "core/config.h"
#include "core/governor.h"
#include "core/segment.h"

struct runtime {
    const struct config *config;
    const struct config *machine; /* what the machine's administrator says by himself, where the segment is
                                   * the whole machine's; else NULL */
    uint32_t uid;                 /* whose process this was when the segment was attached */
    enum mode mode;               /* CURTSY_MODE; MODE_ENFORCE where it says nothing */
    const char *program;
    struct segment segment;
    struct governor governor;
    uint64_t generation; /* segment_generation when the configuration was read */
};

/* The present snapshot; NULL when nothing is to be governed in this process now.  To be released. */
const struct runtime *runtime_hold(void);
void runtime_release(const struct runtime *runtime);

/* Nothing is governed in this process, now or later: CURTSY_MODE says so. */
bool runtime_is_off(void);

/* Is it still the present one, and is nobody asking for a new one?  A few loads. */
bool runtime_is_current(const struct runtime *runtime);

/* What can be noticed only by system calls, so where one is made anyway, a hundred times a second at
 * most: /etc/curtsy/off, another uid, a clock that is not the machine's any more, another file in the
 * segment's place, one that was cut short (which it makes whole: call it after a wait and before the
 * segment is touched). */
void runtime_look(void);

/* What is in force for a request, the machine's administrator and CURTSY_MODE included. */
void runtime_resolve(const struct runtime *runtime, const struct policy_target *target, struct resolved_policy *out);

/* The bucket of that name and key (segment_key of runtime->segment): in the segment, or where that is full of busy ones
 * in memory of this process; NULL if there is none even there. */
struct bucket *runtime_bucket(const struct runtime *runtime, uint64_t key, const char *name, int64_t now_ns);

#endif
