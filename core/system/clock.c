/* SPDX-License-Identifier: MIT */
/*
 * Clocks, and the name of the boot that they count from.
 */
#include "core/system/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND INT64_C(1000000000)

/* By how much two ways of reading one clock may differ where a machine is emulated. */
#define SLACK_NS (NS_PER_SECOND / 10)
#define COMPARISONS 2 /* a single reading may fail */

/* Nobody counts below 0: a program that is told a time before the machine was started has its own
 * beginning instead. */
#define BEFORE_BOOT_NS (INT64_C(1) << 61)

static int64_t nanoseconds(const struct timespec *time)
{
    return time->tv_sec * NS_PER_SECOND + time->tv_nsec;
}

int64_t clock_now_ns(void)
{
    struct timespec now = {0};
    /* A sandbox may know no other clock: better one that stands still while the machine sleeps than none. */
    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t now_ns = nanoseconds(&now);
    return now_ns < 0 ? now_ns + BEFORE_BOOT_NS : now_ns;
}

int64_t clock_wall_s(void)
{
    return time(NULL);
}

/* Who stands between the program and its C library's functions seldom stands before the kernel.  What
 * the kernel says has to lie between two readings of the other kind, however long the process is kept
 * from running in between. */
static bool agrees_with_the_kernel(void)
{
    struct timespec before, kernels, after;
    if (clock_gettime(CLOCK_BOOTTIME, &before) != 0)
        return false;
    if (syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &kernels) != 0)
        return true; /* a sandbox that forbids the call, which the C library can do without */
    if (clock_gettime(CLOCK_BOOTTIME, &after) != 0)
        return false;
    int64_t kernels_ns = nanoseconds(&kernels);
    return kernels_ns >= nanoseconds(&before) - SLACK_NS && kernels_ns <= nanoseconds(&after) + SLACK_NS;
}

bool clock_is_the_machines(void)
{
    int error = errno;
    bool agrees = false;
    for (int i = 0; i < COMPARISONS && !agrees; i++)
        agrees = agrees_with_the_kernel();
    errno = error;
    return agrees;
}

/* FNV-1a (Fowler, Noll, Vo), folded: nobody attacks it, it has to tell boots apart. */
static uint32_t hash(const unsigned char *data, size_t length)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ data[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(sum ^ sum >> 32);
}

static bool read_boot_id(uint32_t *out)
{
    unsigned char id[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, id, sizeof id);
    close(fd);
    if (length < 32)
        return false;
    *out = hash(id, (size_t)length);
    return true;
}

/* A kernel without time namespaces has only one: 0. */
static uint32_t time_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/time", &status) == 0 ? hash((unsigned char *)&status.st_ino, sizeof status.st_ino) : 0;
}

uint64_t clock_boot_name(void)
{
    static _Atomic uint64_t cached;
    uint64_t name = atomic_load_explicit(&cached, memory_order_relaxed);
    if (name)
        return name;
    int error = errno;
    uint32_t boot;
    name = CLOCK_BOOT_UNKNOWN;
    if (read_boot_id(&boot)) {
        name = (uint64_t)(boot ? boot : 1) << 32 | time_namespace();
        atomic_store_explicit(&cached, name, memory_order_relaxed);
    }
    errno = error;
    return name;
}
