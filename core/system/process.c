/* SPDX-License-Identifier: MIT */
/*
 * Processes.  Who somebody is, is his pid, the time at which he was started and the pid namespace
 * in which the pid means him.  That he is dead is only ever concluded from a kernel's "no such
 * process", or from a /proc of our own namespace that shows a zombie or another start time; where
 * there is no such /proc, or he lives in another namespace, nothing is concluded.
 */
#include "core/system/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef GRND_INSECURE
#define GRND_INSECURE 4 /* since Linux 5.6: whatever there is, at once */
#endif

/* ---------------------------------------------------------------- who is alive ---- */

/*
 * An owner: pid in the low 32 bits, then 16 bits of the start time and 16 of the namespace, each 0
 * where it is not known.  Namespaces are numbered one after the other, so that 16 bits tell those
 * of one machine apart; and a pid that came again within 2^16 start times apart is taken to live
 * on, which is the harmless error.
 */
static uint64_t pack_owner(pid_t pid, uint16_t start, uint16_t namespace)
{
    return (uint64_t) namespace << 48 | (uint64_t)start << 32 | (uint32_t)pid;
}

static uint16_t start_tag(unsigned long long start_ticks)
{
    return (uint16_t)(start_ticks % UINT16_MAX + 1);
}

static uint16_t namespace_tag(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (uint16_t)(status.st_ino % UINT16_MAX + 1) : 0;
}

struct process_status {
    char state;
    unsigned long threads;
    unsigned long long start_ticks;
};

/* The fields are counted from the last ')', since a program may have any name. */
static bool parse_status(const char *text, struct process_status *out)
{
    const char *field = strrchr(text, ')');
    if (!field)
        return false;
    return sscanf(field + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %*s %llu",
                  &out->state, &out->threads, &out->start_ticks) == 3;
}

static bool read_status(const char *path, struct process_status *out)
{
    char text[1024];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = 0;
    return parse_status(text, out);
}

/* A word that holds the pid it was computed for: a forked child sees that it is not its own. */
uint64_t process_self(void)
{
    static _Atomic uint64_t cached;
    pid_t pid = getpid();
    uint64_t self = atomic_load_explicit(&cached, memory_order_relaxed);
    if ((uint32_t)self == (uint32_t)pid)
        return self;
    int error = errno;
    struct process_status status;
    self =
        pack_owner(pid, read_status("/proc/self/stat", &status) ? start_tag(status.start_ticks) : 0, namespace_tag());
    atomic_store_explicit(&cached, self, memory_order_relaxed);
    errno = error;
    return self;
}

/* Does /proc speak of the pids that we speak of?  It may be another namespace's. */
static bool proc_is_ours(void)
{
    char link[32];
    ssize_t length = readlink("/proc/self", link, sizeof link - 1);
    if (length <= 0)
        return false;
    link[length] = 0;
    return strtol(link, NULL, 10) == getpid();
}

/* A zombie runs no more, unless it is only the first thread that has ended. */
static bool is_gone_or_another(pid_t pid, uint16_t start)
{
    char path[32];
    struct process_status status;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (!proc_is_ours() || !read_status(path, &status))
        return false;
    if (start && start_tag(status.start_ticks) != start)
        return true;
    return (status.state == 'Z' || status.state == 'X') && status.threads <= 1;
}

bool process_is_dead(uint64_t owner)
{
    int error = errno;
    pid_t pid = (pid_t)(uint32_t)owner;
    uint16_t start = (uint16_t)(owner >> 32), namespace = (uint16_t)(owner >> 48);
    bool dead = false;
    if (pid > 0 && namespace && namespace == (uint16_t)(process_self() >> 48))
        dead = (kill(pid, 0) != 0 && errno == ESRCH) || is_gone_or_another(pid, start);
    errno = error;
    return dead;
}

/* ----------------------------------------------------------- what program it is ---- */

static bool is_interpreter(const char *name)
{
    static const char *const exact[] = {"sh", "bash", "dash", "Rscript"};
    static const char *const families[] = {"python", "perl", "ruby", "php", "node", "lua", "tclsh"};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        if (strcmp(name, exact[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strncmp(name, families[i], strlen(families[i])) == 0)
            return true;
    return false;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The first argument that is not an option, if it is a file.  `arguments` are strings one after
 * the other, `length` bytes in all, the last one terminated. */
static const char *script_of(const char *arguments, size_t length)
{
    struct stat status;
    const char *end = arguments + length;
    const char *argument = arguments + strlen(arguments) + 1;
    while (argument < end && *argument == '-')
        argument += strlen(argument) + 1;
    if (argument >= end || stat(argument, &status) != 0 || !S_ISREG(status.st_mode))
        return NULL;
    return base_name(argument);
}

static size_t read_arguments(char *buffer, size_t size)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, buffer, size - 1);
    close(fd);
    if (length <= 0)
        return 0;
    buffer[length] = 0;
    return (size_t)length;
}

static void executable_name(char *buffer, size_t size)
{
    char path[4096];
    static const char deleted[] = " (deleted)";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    size_t suffix = sizeof deleted - 1;
    if ((size_t)(length > 0 ? length : 0) > suffix && strcmp(path + length - suffix, deleted) == 0)
        path[(size_t)length - suffix] = 0;
    snprintf(buffer, size, "%s", base_name(path));
}

void process_program_name(char *buffer, size_t size)
{
    char arguments[4096];
    int error = errno;
    if (!size)
        return;
    executable_name(buffer, size);
    if (is_interpreter(buffer)) {
        size_t length = read_arguments(arguments, sizeof arguments);
        const char *script = length ? script_of(arguments, length) : NULL;
        if (script)
            snprintf(buffer, size, "%s", script);
    }
    errno = error;
}

/* ------------------------------------------------------------------ randomness ---- */

static uint64_t scramble(uint64_t word)
{
    word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

/* The 16 random bytes that the kernel gave this program, the time, the pid and a count: enough to
 * keep two processes from drawing the same jitter. */
static void fill_without_kernel(unsigned char *out, size_t size)
{
    static _Atomic uint64_t calls;
    uint64_t seed[2] = {0}, count = atomic_fetch_add(&calls, 1);
    struct timespec now = {0};
    const void *given = (const void *)getauxval(AT_RANDOM); // NOLINT(performance-no-int-to-ptr)
    if (given)
        memcpy(seed, given, sizeof seed);
    clock_gettime(CLOCK_MONOTONIC, &now);
    seed[0] ^= scramble((uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec);
    seed[1] ^= scramble((uint64_t)getpid() << 32 | count);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = scramble(seed[0] + scramble(seed[1] + i));
        memcpy(out + i, &word, size - i < 8 ? size - i : 8);
    }
}

void process_random(void *buffer, size_t size)
{
    int error = errno;
    ssize_t got = getrandom(buffer, size, GRND_NONBLOCK);
    if (got != (ssize_t)size)
        got = getrandom(buffer, size, GRND_INSECURE);
    if (got != (ssize_t)size)
        fill_without_kernel(buffer, size);
    errno = error;
}
