/* SPDX-License-Identifier: MIT */
/*
 * Processes: who am I, who is alive, what program is this.
 */
#ifndef CURTSY_CORE_SYSTEM_PROCESS_H
#define CURTSY_CORE_SYSTEM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* pid (low 32 bits), start time and pid namespace (16 bits of each): names a process over pid reuse.
 * Never 0.  Computed anew after fork.  One small /proc read the first time. */
uint64_t process_self(void);

/* True only when it is proven: no such pid, a zombie, or its start time differs; an owner of another
 * pid namespace is never proven dead. */
bool process_is_dead(uint64_t owner);

/* Basename of the executable, or of the script when the executable is a known interpreter
 * (sh bash dash python* perl* ruby* php* node* lua* tclsh* Rscript) whose first argument that is
 * not an option is a file.  Empty string when it cannot be told. */
void process_program_name(char *buffer, size_t size);

/* Fresh random bytes: getrandom, else AT_RANDOM and the clock.  Never blocks. */
void process_random(void *buffer, size_t size);

#endif
