/* SPDX-License-Identifier: MIT */
/*
 * The segment's choice: which one a program started here uses, and what it is to be like if it has
 * to be made.  The library and the command ask the same question, and get the same answer.
 *
 * The name is CURTSY_SEGMENT, else the configuration's `segment`, else the user's own.  The user's
 * own is for him alone, whatever permissions the configuration asks for: those are for one with a
 * name that others can be given.
 *
 * A group's name is looked for in /etc/group only, without the name service switch, whose plugins
 * (and their sockets and threads) have no place in somebody else's program.  Thread-safe; errno is
 * preserved.
 */
#ifndef CURTSY_CORE_SYSTEM_SEGMENT_CHOICE_H
#define CURTSY_CORE_SYSTEM_SEGMENT_CHOICE_H

#include "core/system/config_files.h"
#include "core/system/mapping.h"

#include <limits.h>

struct segment_choice {
    char name[PATH_MAX + 1]; /* one too long for a path is kept too long, and refused by mapping_open */
    bool is_default;         /* the user's own: another user has another one */
    uint64_t size;
    struct mapping_permissions permissions;
    bool lacks_group; /* it is to have one that is not in /etc/group, and whose part it withholds till then */
};

/* settings NULL: the built-in ones. */
void segment_choose(struct segment_choice *choice, const struct environment *environment,
                    const struct settings *settings);

/* The number of a group that is named in a file like group(5), or is a number itself. */
bool segment_choice_group(const char *path, const char *name, uint32_t *group);

#endif
