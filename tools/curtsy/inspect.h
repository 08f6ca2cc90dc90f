/* SPDX-License-Identifier: MIT */
/*
 * Inspect: what /proc tells of another process: the files that it has mapped, what it was started
 * with, who it is.  Nothing is asked of the process itself, and it notices nothing.
 *
 * Everything that is read is the other's word: texts are made printable, and of its environment and
 * its arguments only what is asked for by name leaves this file, for there may be secrets in the rest.
 */
#ifndef CURTSY_TOOLS_INSPECT_H
#define CURTSY_TOOLS_INSPECT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A line of /proc/PID/maps. */
struct mapped {
    uint64_t start, end; /* addresses in that process */
    uint64_t offset;     /* in the file */
    uint64_t inode;      /* 0: no file */
    unsigned major, minor;
    bool is_shared;
    bool is_deleted; /* the file has no name any more */
    char path[PATH_MAX];
};

/* Calls `visit` with each mapping until it returns false.  0, or an errno: ESRCH where there is no such
 * process, EACCES where it may not be looked at. */
int inspect_mappings(pid_t pid, bool (*visit)(void *context, const struct mapped *mapped), void *context);

/* The file that the process has mapped, mapped here for reading; NULL if it cannot be had.  To be
 * unmapped.  *is_replaced: the path leads to another file by now, or to none. */
void *inspect_file(pid_t pid, const struct mapped *mapped, size_t *size, bool *is_replaced);

/* The value of a variable in the environment that the process was started with.  False if it is not
 * there, or cannot be read. */
bool inspect_variable(pid_t pid, const char *name, char *value, size_t size);

/* A name for people: of the executable or, where the kernel was given a script, of that; never an
 * argument.  "?" where it cannot be told. */
#define PROGRAM_SIZE 64
void inspect_program(pid_t pid, char program[PROGRAM_SIZE]);

/* By name, or "uid N". */
#define USER_SIZE 64
void inspect_user(pid_t pid, char user[USER_SIZE]);

/* How the process names itself as an owner in a segment (core/system/process.h); 0 where it cannot be
 * told. */
uint64_t inspect_owner(pid_t pid);

/* A thread of the kernel, or what is left of a process that has ended: nothing of it can be looked at. */
bool inspect_is_empty(pid_t pid);

#endif
