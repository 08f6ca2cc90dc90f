/* SPDX-License-Identifier: MIT */
/*
 * A library to be preloaded, under which calls fail that come from Curtsy's: of those to the functions
 * whose names are in FAIL_NAMES (each with a blank behind it; none: of all), the ones from number
 * FAIL_FROM to FAIL_TO, as if nothing of the kind were left.  FAIL_TELL: each is told on standard error.
 *
 * test_failing_calls.py finds the names of the functions here.  Everybody's allocations come through
 * here, from before the first constructor on: so no function is called on the way that may allocate.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern char **environ;

static int count;                         /* of the calls that are asked for */
static const char *code_begin, *code_end; /* of the library that they come from */

/* As getenv, which may be wrapped by somebody. */
static const char *setting(const char *name)
{
    size_t length = strlen(name);
    for (char **at = environ; at && *at; at++)
        if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
            return *at + length + 1;
    return "";
}

static int find_code(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int i = 0; strstr(info->dlpi_name, "libcurtsy.so") && i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_flags & PF_X) {
            code_begin = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            code_end = code_begin + info->dlpi_phdr[i].p_memsz;
        }
    return 0;
}

static int is_asked_for(const char *name)
{
    const char *names = setting("FAIL_NAMES"), *found = strstr(names, name);
    return !*names || (found && found[strlen(name)] == ' ');
}

static int fails(const char *name, const char *caller)
{
    if (!code_end)
        dl_iterate_phdr(find_code, NULL);
    if (caller < code_begin || caller >= code_end || !is_asked_for(name))
        return 0;
    count++;
    if (*setting("FAIL_TELL"))
        dprintf(STDERR_FILENO, "%s\n", name);
    return count >= atoi(setting("FAIL_FROM")) && count <= atoi(setting("FAIL_TO"));
}

#define FAIL(name, error, failure)                                                                                     \
    do {                                                                                                               \
        if (fails(#name, __builtin_return_address(0))) {                                                               \
            errno = error;                                                                                             \
            return failure;                                                                                            \
        }                                                                                                              \
    } while (0)

/* ---------------------------------------------------------------------- memory ---- */

void *malloc(size_t size)
{
    FAIL(malloc, ENOMEM, NULL);
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    FAIL(calloc, ENOMEM, NULL);
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
    FAIL(realloc, ENOMEM, NULL);
    return __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t number, size_t size)
{
    FAIL(reallocarray, ENOMEM, NULL);
    return __libc_realloc(old, number * size);
}

char *strdup(const char *text)
{
    FAIL(strdup, ENOMEM, NULL);
    size_t size = strlen(text) + 1;
    char *copy = __libc_malloc(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

/* ------------------------------------------------------------ everything else ---- */

#define WRAP(returns, name, parameters, arguments, error, failure)                                                     \
    returns name parameters                                                                                            \
    {                                                                                                                  \
        FAIL(name, error, failure);                                                                                    \
        return ((returns(*) parameters)dlsym(RTLD_NEXT, #name))arguments;                                              \
    }

struct stat;
struct rlimit;
struct iovec;

/* clang-format off */
WRAP(char *, strndup, (const char *a, size_t b), (a, b), ENOMEM, NULL)
WRAP(void *, mmap, (void *a, size_t b, int c, int d, int e, long f), (a, b, c, d, e, f), ENOMEM, (void *)-1)
WRAP(int, access, (const char *a, int b), (a, b), EACCES, -1)
WRAP(int, fstat, (int a, struct stat *b), (a, b), EIO, -1)
WRAP(int, stat, (const char *a, struct stat *b), (a, b), EACCES, -1)
WRAP(int, lstat, (const char *a, struct stat *b), (a, b), EACCES, -1)
WRAP(FILE *, fopen64, (const char *a, const char *b), (a, b), EMFILE, NULL)
WRAP(int, posix_fallocate, (int a, long b, long c), (a, b, c), 0, ENOSPC)
WRAP(long, pread, (int a, void *b, size_t c, long d), (a, b, c, d), EIO, -1)
WRAP(long, read, (int a, void *b, size_t c), (a, b, c), EIO, -1)
WRAP(long, readlink, (const char *a, char *b, size_t c), (a, b, c), EACCES, -1)
WRAP(long, getrandom, (void *a, size_t b, unsigned c), (a, b, c), ENOSYS, -1)
WRAP(int, getrlimit, (int a, struct rlimit *b), (a, b), EPERM, -1)
WRAP(int, fchmod, (int a, unsigned b), (a, b), EPERM, -1)
WRAP(int, flock, (int a, int b), (a, b), ENOLCK, -1)
WRAP(int, unlink, (const char *a), (a), EPERM, -1)
WRAP(char *, getcwd, (char *a, size_t b), (a, b), ENOENT, NULL)
WRAP(char *, secure_getenv, (const char *a), (a), 0, NULL)
WRAP(long, write, (int a, const void *b, size_t c), (a, b, c), EIO, -1)
WRAP(long, pwritev2, (int a, const struct iovec *b, int c, long d, int e), (a, b, c, d, e), EIO, -1)
WRAP(int, pthread_sigmask, (int a, const void *b, void *c), (a, b, c), 0, EINVAL)
WRAP(int, sigpending, (void *a), (a), EFAULT, -1)
WRAP(int, kill, (int a, int b), (a, b), EPERM, -1)
WRAP(int, scandir, (const char *a, void *b, void *c, void *d), (a, b, c, d), ENOENT, -1)
/* clang-format on */

int open(const char *path, int flags, ...)
{
    FAIL(open, EMFILE, -1);
    va_list arguments;
    va_start(arguments, flags);
    unsigned mode = va_arg(arguments, unsigned);
    va_end(arguments);
    return (int)syscall(SYS_openat, -100 /* AT_FDCWD */, path, flags, mode);
}

int fcntl(int fd, int command, ...)
{
    FAIL(fcntl, EINVAL, -1);
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return (int)syscall(SYS_fcntl, fd, command, argument);
}

/* Once only: by a clock that stands still nobody can wait. */
struct timespec;
int clock_gettime(int clock, struct timespec *time)
{
    FAIL(clock_gettime, EINVAL, -1);
    return (int)syscall(SYS_clock_gettime, clock, time);
}
