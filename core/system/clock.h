/* SPDX-License-Identifier: MIT */
/*
 * Clocks.  Budgets run on CLOCK_BOOTTIME: a server's window goes on while a laptop sleeps.  Both
 * are vDSO reads, not system calls.
 */
#ifndef CURTSY_CORE_SYSTEM_CLOCK_H
#define CURTSY_CORE_SYSTEM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

int64_t clock_now_ns(void); /* CLOCK_BOOTTIME */
int64_t clock_wall_s(void); /* seconds since 1970 */

/* False in a program that is told another time than the machine's (by a library like libfaketime), or
 * that cannot read CLOCK_BOOTTIME: nobody else could use the times that it would write, nor it theirs.
 * True where it cannot be told.  One system call; errno is preserved. */
bool clock_is_the_machines(void);

/* Names this boot (the high 32 bits) and time namespace (the low ones), since CLOCK_BOOTTIME means
 * something else in another of either.  Never 0.  Two small /proc reads the first time. */
uint64_t clock_boot_name(void);
#define CLOCK_BOOT_UNKNOWN UINT64_C(1) /* no /proc: share no memory with others */

#endif
