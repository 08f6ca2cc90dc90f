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
bool mapping_path(const char *name, char *path, size_t size, char *error, size_t error_size)
{
    const char *rest = name + (*name == '/');
    bool is_path = strchr(rest, '/');
    if (!*rest || (is_path && *name != '/') || strcmp(rest, ".") == 0 || strcmp(rest, "..") == 0)
        return fail(error, error_size, "%s: not a segment's name nor an absolute path", name);
    int length = is_path ? snprintf(path, size, "%s", name) : snprintf(path, size, "/dev/shm/%s", rest);
    if (length < 0 || (size_t)length >= size)
        return fail(error, error_size, "%.80s...: %s", name, strerror(ENAMETOOLONG));
    return true;
}

/* What the caller asked for. */
struct request {
    const char *path;
    uint64_t size; /* to be made; a sensible one */
    struct mapping_permissions permissions;
    enum mapping_access access;
    char *error;
    size_t error_size;
};

#define FAIL(request, ...) fail((request)->error, (request)->error_size, __VA_ARGS__)

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
    return move_up(open(path, O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags, S_IRUSR | S_IWUSR));
}

static bool others_may_write(mode_t mode)
{
    return mode & (S_IWGRP | S_IWOTH);
}

/* One for others that was made by a user would not be used by them, and root's could not be made
 * where it is. */
static bool may_make(const struct request *request)
{
    return request->access == MAPPING_CREATE && (geteuid() == 0 || !others_may_write(request->permissions.mode));
}

/* Without O_CREAT first: fs.protected_regular refuses it on another user's file, even to root. */
static int open_or_make(const struct request *request, bool *is_new)
{
    for (int i = 0; i < OPEN_TRIES; i++) {
        int fd = open_file(request->path, request->access == MAPPING_VIEW ? O_RDONLY : O_RDWR);
        if (fd >= 0 || errno != ENOENT || !may_make(request))
            return fd;
        fd = open_file(request->path, O_RDWR | O_CREAT | O_EXCL);
        *is_new = fd >= 0;
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* ---------------------------------------------------------------------- the file ---- */

/* Root may have made it for others, and its mode is root's choice.  Our own is for us alone.  To look
 * at one is no risk, and to operate another user's is root's business. */
static const char *wrong_with(const struct stat *status, enum mapping_access access)
{
    bool anybodys = access == MAPPING_VIEW || (access == MAPPING_OPERATE && geteuid() == 0);
    if (!S_ISREG(status->st_mode))
        return "not a regular file";
    if (!anybodys && status->st_uid != 0 && status->st_uid != geteuid())
        return "belongs to another user";
    if (!anybodys && status->st_uid != 0 && others_may_write(status->st_mode))
        return "may be written by other users";
    if (status->st_size > (off_t)SEGMENT_SIZE_MAX)
        return "too large for a segment";
    return NULL;
}

/*
 * A new file's mode is that of our open() less the umask.  The group comes first, so that no other
 * one may write it in between.  A file that is not new but still empty, and nobody's but ours, is one
 * whose maker died before he came to this.  One that an administrator made for others, to be filled by
 * the first of them, stays as he made it.
 */
static int set_permissions(int fd, const struct stat *status, struct mapping_permissions permissions, bool is_new)
{
    mode_t mode = permissions.mode;
    if (!is_new && (status->st_uid != geteuid() || (status->st_mode & (S_IRWXG | S_IRWXO))))
        return 0;
    if (permissions.group != MAPPING_OWN_GROUP && permissions.group != status->st_gid &&
        fchown(fd, (uid_t)-1, permissions.group) != 0 && !(mode & S_IWOTH))
        mode &= ~(mode_t)S_IRWXG;
    return mode == (status->st_mode & ALLPERMS) || fchmod(fd, mode) == 0 ? 0 : errno;
}

/* Space is allocated, not only promised: a full file system would be SIGBUS at some later store.
 * Growing a file beyond RLIMIT_FSIZE would be SIGXFSZ. */
static int allocate(int fd, const struct stat *status, uint64_t size, uint64_t most)
{
    struct rlimit limit;
    if ((uint64_t)status->st_size >= size && (uint64_t)status->st_blocks * 512 >= size)
        return 0;
    if (size > most)
        return EFBIG;
    if ((uint64_t)status->st_size < size && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        size > limit.rlim_cur)
        return EFBIG;
    int error = EINTR;
    for (int i = 0; i < ALLOCATE_TRIES && error == EINTR; i++)
        error = posix_fallocate(fd, 0, (off_t)size);
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

/* How long the file says that it is; 0 if it is none of ours, or does not say it yet. */
static uint64_t stated_size(int fd)
{
    uint64_t words[3];
    static_assert(offsetof(struct segment_header, magic) == 0 && offsetof(struct segment_header, size) == 16, "layout");
    if (pread(fd, words, sizeof words, 0) != (ssize_t)sizeof words || words[0] != SEGMENT_MAGIC)
        return 0;
    bool is_sensible = words[2] >= SEGMENT_SIZE_MIN && words[2] <= SEGMENT_SIZE_MAX && words[2] % SEGMENT_PAGE == 0;
    return is_sensible ? words[2] : 0;
}

/* Makes a file that is to be used what a segment has to be, and tells its size then: what it says
 * itself, also where it was cut short or made longer by others; else what it has, or is to have. */
static bool make_whole(const struct request *request, int fd, const struct stat *status, bool is_new, uint64_t *size,
                       uint64_t *may_allocate)
{
    uint64_t stated = stated_size(fd);
    bool is_unmade = status->st_size < (off_t)SEGMENT_SIZE_MIN && !stated;
    if (is_unmade && request->access != MAPPING_CREATE)
        return FAIL(request, "%s: %s", request->path, segment_fault_text(SEGMENT_TOO_SMALL));
    if (is_unmade && holds_something_else(fd, status->st_size))
        return FAIL(request, "%s: %s", request->path, segment_fault_text(SEGMENT_OTHER_LAYOUT));
    int failed = is_unmade ? set_permissions(fd, status, request->permissions, is_new) : 0;
    if (is_unmade)
        *size = request->size;
    else
        *size = stated ? stated : segment_whole_pages((uint64_t)status->st_size);
    *may_allocate = others_may_write(status->st_mode) ? request->size : *size;
    if (!failed)
        failed = allocate(fd, status, *size, *may_allocate);
    return !failed || FAIL(request, "%s: %s", request->path, strerror(failed));
}

static bool map_file(struct mapping *mapping, int fd, const struct request *request, bool is_new)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return FAIL(request, "%s: %s", request->path, strerror(errno));
    const char *wrong = wrong_with(&status, request->access);
    if (wrong)
        return FAIL(request, "%s: %s", request->path, wrong);
    bool is_view = request->access == MAPPING_VIEW;
    uint64_t size = segment_whole_pages((uint64_t)status.st_size), may_allocate = 0;
    if (is_view || request->access == MAPPING_OPERATE) {
        if (size < SEGMENT_SIZE_MIN)
            return FAIL(request, "%s: %s", request->path, segment_fault_text(SEGMENT_TOO_SMALL));
    } else if (!make_whole(request, fd, &status, is_new, &size, &may_allocate)) {
        return false;
    }
    void *memory = mmap(NULL, size, is_view ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return FAIL(request, "%s: %s", request->path, strerror(errno));
    *mapping = (struct mapping){
        .memory = memory,
        .size = size,
        .is_view = is_view,
        .device = status.st_dev,
        .inode = status.st_ino,
        .owner = status.st_uid,
        .may_allocate = may_allocate,
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

static bool open_path(struct mapping *mapping, const struct request *request)
{
    bool is_new = false;
    int fd = open_or_make(request, &is_new);
    if (fd < 0 && errno == ENOENT && request->access == MAPPING_CREATE && !may_make(request))
        return FAIL(request, "%s: not there, and one that other users may write has to be made by root", request->path);
    if (fd < 0)
        return FAIL(request, "%s: %s", request->path, errno == ELOOP ? "a symbolic link" : strerror(errno));
    bool mapped = map_file(mapping, fd, request, is_new);
    close(fd);
    return mapped;
}

bool mapping_open(struct mapping *mapping, const char *name, uint64_t size, struct mapping_permissions permissions,
                  enum mapping_access access, char *error, size_t error_size)
{
    char path[PATH_MAX];
    const struct request request = {path, sensible_size(size), permissions, access, error, error_size};
    int saved = errno;
    *mapping = (struct mapping){0};
    if (error_size)
        *error = 0;
    bool opened = mapping_path(name, path, sizeof path, error, error_size) && open_path(mapping, &request);
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

/*
 * The mapping that has memory of our own in the place of what its file lost, and from which byte on;
 * NULL: none.  That a process has two of them at once, whose files were both cut short and could not
 * be grown, is not provided for: the earlier one would be found to be in place.
 */
static _Atomic(void *) patched;
static size_t patched_from;

void mapping_close(struct mapping *mapping)
{
    int saved = errno;
    void *memory = mapping->memory;
    if (memory) {
        atomic_compare_exchange_strong(&patched, &memory, NULL);
        munmap(mapping->memory, mapping->size);
    }
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
    int fd = open_file(path, O_RDWR);
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

/* Only his own: one that root made for others is not for them to remove, who could not make it. */
static bool may_replace(const struct mapping *mapping, enum mapping_access access)
{
    return access == MAPPING_CREATE && mapping->owner == geteuid() && is_of_another_boot(mapping);
}

static enum segment_fault attach_memory(struct segment *segment, const struct mapping *mapping,
                                        enum mapping_access access)
{
    uint64_t seed[3];
    if (access == MAPPING_VIEW || access == MAPPING_OPERATE)
        return segment_view(segment, mapping->memory, mapping->size, clock_boot_name());
    process_random(seed, sizeof seed);
    return segment_attach(segment, mapping->memory, mapping->size, clock_boot_name(), seed);
}

static bool attach_path(struct mapping *mapping, struct segment *segment, const struct request *request)
{
    for (int i = 0; i < OPEN_TRIES; i++) {
        if (!open_path(mapping, request))
            return false;
        enum segment_fault fault = attach_memory(segment, mapping, request->access);
        if (fault == SEGMENT_OK)
            return true;
        struct mapping stale = *mapping;
        bool replace = fault == SEGMENT_OTHER_BOOT && may_replace(mapping, request->access);
        mapping_close(mapping);
        /* Two that make it at once may differ about its size: it has the larger one by now. */
        if (fault == SEGMENT_TOO_SMALL && i == 0)
            continue;
        if (!replace || !remove_stale(request->path, &stale))
            return FAIL(request, "%s: %s", request->path, segment_fault_text(fault));
    }
    return FAIL(request, "%s: replaced again and again", request->path);
}

static bool attach_private(struct mapping *mapping, struct segment *segment, uint64_t size)
{
    if (!mapping_private(mapping, size))
        return false;
    if (attach_memory(segment, mapping, MAPPING_CREATE) == SEGMENT_OK)
        return true;
    mapping_close(mapping);
    return false;
}

bool mapping_attach(struct mapping *mapping, struct segment *segment, const char *name, uint64_t size,
                    struct mapping_permissions permissions, enum mapping_access access, char *error, size_t error_size)
{
    char path[PATH_MAX];
    const struct request request = {path, sensible_size(size), permissions, access, error, error_size};
    int saved = errno;
    *mapping = (struct mapping){0};
    *segment = (struct segment){0};
    if (error_size)
        *error = 0;
    bool attached;
    if (clock_boot_name() == CLOCK_BOOT_UNKNOWN)
        attached = fail(error, error_size, "%s: cannot tell this boot without /proc", name);
    else if (!clock_is_the_machines())
        attached = fail(error, error_size, "%s: this program's clock is not the machine's", name);
    else
        attached = mapping_path(name, path, sizeof path, error, error_size) && attach_path(mapping, segment, &request);
    if (!attached && access == MAPPING_CREATE)
        attached = attach_private(mapping, segment, size);
    errno = saved;
    return attached;
}

/* ------------------------------------------------------------------ looking again ---- */

static bool is_mapped(const struct mapping *mapping, const struct stat *status)
{
    return status->st_dev == mapping->device && status->st_ino == mapping->inode;
}

/* False where we may not, or there is no space. */
static bool grow_again(const struct mapping *mapping, const char *path)
{
    struct stat status;
    int fd = mapping->is_view ? -1 : open_file(path, O_RDWR);
    if (fd < 0)
        return false;
    bool grown = fstat(fd, &status) == 0 && is_mapped(mapping, &status) &&
                 allocate(fd, &status, mapping->size, mapping->may_allocate) == 0;
    close(fd);
    return grown;
}

/* The page in which the file ends is still there as a whole.  What was put there before stays: it is
 * in use. */
static void put_own_memory(const struct mapping *mapping, uint64_t file_size)
{
    size_t from = segment_whole_pages(file_size + SEGMENT_PAGE - 1);
    size_t end = atomic_load(&patched) == mapping->memory ? patched_from : mapping->size;
    int protection = mapping->is_view ? PROT_READ : PROT_READ | PROT_WRITE;
    if (from >= end)
        return;
    (void)mmap((char *)mapping->memory + from, end - from, protection, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    atomic_store(&patched, mapping->memory);
    patched_from = from;
}

/* What was cut off has come back as zeros, which are empty buckets; but the header's words have to say
 * again what they said. */
static void make_good(const struct mapping *mapping, const char *path, uint64_t file_size)
{
    struct segment segment;
    if (!grow_again(mapping, path))
        put_own_memory(mapping, file_size);
    if (!mapping->is_view)
        attach_memory(&segment, mapping, MAPPING_EXISTING);
}

/* Where it cannot be seen any more (another user, another root), it is shared as before. */
enum mapping_state mapping_look(const struct mapping *mapping, const char *name)
{
    char path[PATH_MAX];
    struct stat status;
    int saved = errno;
    enum mapping_state state = MAPPING_IN_PLACE;
    if (!mapping->memory || mapping->is_private || !mapping_path(name, path, sizeof path, NULL, 0))
        return state;
    if (lstat(path, &status) != 0) {
        state = errno == ENOENT || errno == ENOTDIR ? MAPPING_GONE : MAPPING_IN_PLACE;
    } else if (!is_mapped(mapping, &status)) {
        state = MAPPING_REPLACED;
    } else {
        if ((uint64_t)status.st_size < mapping->size)
            make_good(mapping, path, (uint64_t)status.st_size);
        state = atomic_load(&patched) == mapping->memory ? MAPPING_REPLACED : MAPPING_IN_PLACE;
    }
    errno = saved;
    return state;
}
