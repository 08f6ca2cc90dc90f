/* SPDX-License-Identifier: MIT */
/*
 * Cut short: see cut_short.h.  The page that is missing is replaced by one of our own, and the access
 * that failed is made again.  mmap is not on POSIX's list of what a handler may call, but on Linux it
 * is a plain system call, and this is the only thread.
 */
#include "tools/curtsy/cut_short.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uintptr_t page_size;

/* Where that does not help, the signal comes again, and is what it was before. */
static void put_page(int signal_number, siginfo_t *information, void *context)
{
    uintptr_t address = (uintptr_t)information->si_addr & ~(page_size - 1);
    void *page = (void *)address; // NOLINT(performance-no-int-to-ptr)

    (void)context;
    if (information->si_code != BUS_ADRERR ||
        mmap(page, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        signal(signal_number, SIG_DFL);
}

void cut_short_reads_zeros(void)
{
    struct sigaction action;

    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = put_page;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
