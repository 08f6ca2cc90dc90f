/* SPDX-License-Identifier: MIT */
/*
 * Clocks.  Budgets run on CLOCK_BOOTTIME: a server's window goes on while a laptop sleeps.  Both
 * are vDSO reads, not system calls.
 */
#ifndef CURTSY_CORE_SYSTEM_CLOCK_H
#define CURTSY_CORE_SYSTEM_CLOCK_H

#include <stdint.h>

int64_t clock_now_ns(void);    /* CLOCK_BOOTTIME */
int64_t clock_wall_s(void);    /* seconds since 1970 */
uint64_t clock_boot_name(void); /* names this boot and time namespace; never 0 */

#endif
