/* SPDX-License-Identifier: MIT */
/*
 * What stat says of a file, hashed.
 */
#include "core/system/file_identity.h"

#include "core/hash.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

static void add_time(uint64_t *hash, const struct timespec *time)
{
    *hash = hash_number(hash_number(*hash, (uint64_t)time->tv_sec), (uint64_t)time->tv_nsec);
}

/* A regular file to stat, whose contents the kernel makes up anew for each reader: /proc, /sys and their kin. */
static bool is_made_up(const struct statfs *place)
{
    switch ((unsigned long)place->f_type) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
        return true;
    default:
        return false;
    }
}

static bool add(uint64_t *hash, const struct stat *file, const struct statfs *place)
{
    if (!S_ISREG(file->st_mode) || is_made_up(place))
        return false;
    *hash = hash_number(*hash, file->st_dev);
    *hash = hash_number(*hash, file->st_ino);
    *hash = hash_number(*hash, (uint64_t)file->st_size);
    add_time(hash, &file->st_mtim);
    add_time(hash, &file->st_ctim);
    return true;
}

bool file_identity_add(uint64_t *hash, const char *path)
{
    struct stat file;
    int error = errno;
    struct statfs place;
    bool is_known = stat(path, &file) == 0 && statfs(path, &place) == 0 && add(hash, &file, &place);
    errno = error;
    return is_known;
}

bool file_identity_add_open(uint64_t *hash, int descriptor)
{
    struct stat file;
    int error = errno;
    struct statfs place;
    bool is_known = fstat(descriptor, &file) == 0 && fstatfs(descriptor, &place) == 0 && add(hash, &file, &place);
    errno = error;
    return is_known;
}
