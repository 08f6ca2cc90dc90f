/* SPDX-License-Identifier: MIT */
/*
 * Mapping.  Opening a file that others may be making, replacing or filling at the same moment, in
 * a program that is not ours: it may have closed its standard descriptors, limited its file sizes,
 * changed its uid or run out of memory, and must not notice us in any of these.
 */
#include "core/system/mapping.h"

#include "core/segment_layout.h"
#include "core/system/clock.h"
#include "core/system/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_TRIES 20      /* made, unlinked and made again by others between two calls of ours */
#define ALLOCATE_TRIES 100 /* interrupted by signals */
#define LOCK_TRIES 100     /* milliseconds: somebody else is replacing the same file */

static bool fail(char *error, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

static bool fail(char *error, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (size)
        vsnprintf(error, size, format, arguments);
    va_end(arguments);
    return false;
}

void mapping_default_name(char *buffer, size_t size)
{
    snprintf(buffer, size, "/curtsy.v%d.%u", SEGMENT_LAYOUT_VERSION, (unsigned)geteuid());
}

/* ----------------------------------------------------------------------- paths ---- */

/* One leading slash or none is a name under /dev/shm; more make it a path.  A relative path would
 * be another file in every directory. */
static bool path_of(const char *name, char path[PATH_MAX], char *error, size_t error_size)
{
    const char *rest = name + (*name == '/');
    bool is_path = strchr(rest, '/');
    if (!*rest || (is_path && *name != '/') || strcmp(rest, ".") == 0 || strcmp(rest, "..") == 0)
        return fail(error, error_size, "%s: not a segment's name nor an absolute path", name);
    int length = is_path ? snprintf(path, PATH_MAX, "%s", name) : snprintf(path, PATH_MAX, "/dev/shm/%s", rest);
    if (length >= PATH_MAX)
        return fail(error, error_size, "%.80s...: %s", name, strerror(ENAMETOOLONG));
    return true;
}

/* ----------------------------------------------------------------- descriptors ---- */

/* A program that has closed its standard descriptors must not write its output into our segment,
 * which another of its threads could do while this is open as number 1. */
static int move_up(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int error = errno;
    close(fd);
    errno = error;
    return higher;
}

static int open_file(const char *path, int flags)
{
    return move_up(open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flags, S_IRUSR | S_IWUSR));
}

/* Without O_CREAT first: fs.protected_regular refuses it on another user's file, even to root. */
static int open_or_make(const char *path, enum mapping_access access)
{
    for (int i = 0; i < OPEN_TRIES; i++) {
        int fd = open_file(path, 0);
        if (fd >= 0 || errno != ENOENT || access == MAPPING_EXISTING)
            return fd;
        fd = open_file(path, O_CREAT | O_EXCL);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* ---------------------------------------------------------------------- the file ---- */

/* Root may have made it for others, and its mode is root's choice.  Our own is for us alone. */
static const char *wrong_with(const struct stat *status)
{
    if (!S_ISREG(status->st_mode))
        return "not a regular file";
    if (status->st_uid != 0 && status->st_uid != geteuid())
        return "belongs to another user";
    if (status->st_uid != 0 && (status->st_mode & (S_IWGRP | S_IWOTH)))
        return "may be written by other users";
    if (status->st_size > (off_t)SEGMENT_SIZE_MAX)
        return "too large for a segment";
    return NULL;
}

/* Space is allocated, not only promised: a full file system would be SIGBUS at some later store.
 * Growing a file beyond RLIMIT_FSIZE would be SIGXFSZ. */
static int allocate(int fd, const struct stat *status, off_t size)
{
    struct rlimit limit;
    if (status->st_size >= size && (off_t)status->st_blocks * 512 >= size)
        return 0;
    if (status->st_size < size && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        (rlim_t)size > limit.rlim_cur)
        return EFBIG;
    int error = EINTR;
    for (int i = 0; i < ALLOCATE_TRIES && error == EINTR; i++)
        error = posix_fallocate(fd, 0, size);
    return error;
}

/* A file that is shorter than any segment is one whose maker died before he had allocated it, or is
 * just about to: then there are only zeros in it.  Anything else is somebody's data behind a wrong
 * path, and is not to be touched.  (A longer file is left as it is unless its header is ours.) */
static bool holds_something_else(int fd, off_t size)
{
    uint64_t words[SEGMENT_PAGE / 8];
    struct stat now;
    for (off_t at = 0; at < size;) {
        memset(words, 0, sizeof words);
        size_t wanted = size - at < (off_t)sizeof words ? (size_t)(size - at) : sizeof words;
        ssize_t length = pread(fd, words, wanted, at);
        if (length <= 0)
            return true;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (words[i])
                return fstat(fd, &now) != 0 || now.st_size < (off_t)SEGMENT_SIZE_MIN; /* or made meanwhile */
        at += length;
    }
    return false;
}

static bool map_file(struct mapping *mapping, int fd, const char *path, uint64_t size, enum mapping_access access,
                     char *error, size_t error_size)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return fail(error, error_size, "%s: %s", path, strerror(errno));
    const char *wrong = wrong_with(&status);
    if (wrong)
        return fail(error, error_size, "%s: %s", path, wrong);
    /* Shorter than any segment: its maker died before he allocated it, or is just about to. */
    bool is_made = status.st_size >= (off_t)SEGMENT_SIZE_MIN;
    if (!is_made && access == MAPPING_EXISTING)
        return fail(error, error_size, "%s: %s", path, segment_fault_text(SEGMENT_TOO_SMALL));
    if (!is_made && holds_something_else(fd, status.st_size))
        return fail(error, error_size, "%s: %s", path, segment_fault_text(SEGMENT_OTHER_LAYOUT));
    if (is_made)
        size = segment_whole_pages((uint64_t)status.st_size);
    int failed = allocate(fd, &status, (off_t)size);
    if (failed)
        return fail(error, error_size, "%s: %s", path, strerror(failed));
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return fail(error, error_size, "%s: %s", path, strerror(errno));
    *mapping = (struct mapping){
        .memory = memory,
        .size = size,
        .device = status.st_dev,
        .inode = status.st_ino,
        .owner = status.st_uid,
    };
    return true;
}

static uint64_t sensible_size(uint64_t size)
{
    if (size < SEGMENT_SIZE_MIN)
        return SEGMENT_SIZE_MIN;
    if (size > SEGMENT_SIZE_MAX)
        return SEGMENT_SIZE_MAX;
    return segment_whole_pages(size + SEGMENT_PAGE - 1);
}

static bool open_path(struct mapping *mapping, const char *path, uint64_t size, enum mapping_access access, char *error,
                      size_t error_size)
{
    int fd = open_or_make(path, access);
    if (fd < 0)
        return fail(error, error_size, "%s: %s", path, errno == ELOOP ? "a symbolic link" : strerror(errno));
    bool mapped = map_file(mapping, fd, path, sensible_size(size), access, error, error_size);
    close(fd);
    return mapped;
}

bool mapping_open(struct mapping *mapping, const char *name, uint64_t size, struct mapping_permissions permissions,
                  enum mapping_access access, char *error, size_t error_size)
{
    (void)permissions;
    char path[PATH_MAX];
    int saved = errno;
    *mapping = (struct mapping){0};
    if (error_size)
        *error = 0;
    bool opened = path_of(name, path, error, error_size) && open_path(mapping, path, size, access, error, error_size);
    errno = saved;
    return opened;
}

bool mapping_private(struct mapping *mapping, uint64_t size)
{
    int saved = errno;
    size = sensible_size(size);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *mapping = (struct mapping){0};
    if (memory != MAP_FAILED)
        *mapping = (struct mapping){.memory = memory, .size = size, .is_private = true, .owner = geteuid()};
    errno = saved;
    return memory != MAP_FAILED;
}

void mapping_close(struct mapping *mapping)
{
    int saved = errno;
    if (mapping->memory)
        munmap(mapping->memory, mapping->size);
    *mapping = (struct mapping){0};
    errno = saved;
}

/* ------------------------------------------------------------ attaching, as a whole ---- */

/*
 * Removes a file that was written before this boot, so that it can be made anew.  Of several
 * processes that find it at once only one may do so, or the second would remove the new file of the
 * first: so under a lock on the old file, which the kernel drops if we die, and only if the path
 * still leads to it.
 */
static bool remove_stale(const char *path, const struct mapping *stale)
{
    struct stat opened, found;
    int fd = open_file(path, 0);
    if (fd < 0)
        return errno == ENOENT;
    bool locked = false;
    for (int i = 0; i < LOCK_TRIES && !locked; i++) {
        locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
        if (!locked)
            poll(NULL, 0, 1);
    }
    bool gone = false;
    if (locked && fstat(fd, &opened) == 0 && lstat(path, &found) == 0) {
        bool is_stale = opened.st_dev == stale->device && opened.st_ino == stale->inode;
        bool is_same = found.st_dev == opened.st_dev && found.st_ino == opened.st_ino;
        gone = !is_stale || !is_same || unlink(path) == 0;
    } else if (locked) {
        gone = true;
    }
    close(fd);
    return gone;
}

/* Of an earlier boot, and not only of another time namespace, whose processes are alive. */
static bool is_of_another_boot(const struct mapping *mapping)
{
    const struct segment_header *header = mapping->memory;
    return shared_load(&header->boot) >> 32 != clock_boot_name() >> 32;
}

static bool attach_path(struct mapping *mapping, struct segment *segment, const char *path, uint64_t size,
                        enum mapping_access access, char *error, size_t error_size)
{
    uint64_t seed[3];
    process_random(seed, sizeof seed);
    for (int i = 0; i < OPEN_TRIES; i++) {
        if (!open_path(mapping, path, size, access, error, error_size))
            return false;
        enum segment_fault fault = segment_attach(segment, mapping->memory, mapping->size, clock_boot_name(), seed);
        if (fault == SEGMENT_OK)
            return true;
        struct mapping stale = *mapping;
        bool replace = fault == SEGMENT_OTHER_BOOT && access == MAPPING_CREATE && is_of_another_boot(mapping);
        mapping_close(mapping);
        /* Two that make it at once may differ about its size: it has the larger one by now. */
        if (fault == SEGMENT_TOO_SMALL && i == 0)
            continue;
        if (!replace || !remove_stale(path, &stale))
            return fail(error, error_size, "%s: %s", path, segment_fault_text(fault));
    }
    return fail(error, error_size, "%s: replaced again and again", path);
}

static bool attach_private(struct mapping *mapping, struct segment *segment, uint64_t size)
{
    uint64_t seed[3];
    process_random(seed, sizeof seed);
    if (!mapping_private(mapping, size))
        return false;
    if (segment_attach(segment, mapping->memory, mapping->size, clock_boot_name(), seed) == SEGMENT_OK)
        return true;
    mapping_close(mapping);
    return false;
}

bool mapping_attach(struct mapping *mapping, struct segment *segment, const char *name, uint64_t size,
                    struct mapping_permissions permissions, enum mapping_access access, char *error,
                    size_t error_size)
{
    (void)permissions;
    char path[PATH_MAX];
    int saved = errno;
    *mapping = (struct mapping){0};
    *segment = (struct segment){0};
    if (error_size)
        *error = 0;
    bool attached;
    if (clock_boot_name() == CLOCK_BOOT_UNKNOWN)
        attached = fail(error, error_size, "%s: cannot tell this boot without /proc", name);
    else
        attached = path_of(name, path, error, error_size) &&
                   attach_path(mapping, segment, path, size, access, error, error_size);
    if (!attached && access == MAPPING_CREATE)
        attached = attach_private(mapping, segment, size);
    errno = saved;
    return attached;
}

enum mapping_state mapping_look(const struct mapping *mapping, const char *name)
{
    (void)mapping;
    (void)name;
    return MAPPING_IN_PLACE;
}
