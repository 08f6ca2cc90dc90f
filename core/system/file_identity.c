/* SPDX-License-Identifier: MIT */
/*
 * What stat says of a file, hashed.
 */
#include "core/system/file_identity.h"

#include "core/hash.h"

#include <errno.h>
#include <sys/stat.h>

static void add_time(uint64_t *hash, const struct timespec *time)
{
    *hash = hash_number(hash_number(*hash, (uint64_t)time->tv_sec), (uint64_t)time->tv_nsec);
}

static bool add(uint64_t *hash, const struct stat *file)
{
    if (!S_ISREG(file->st_mode))
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
    bool is_known = stat(path, &file) == 0 && add(hash, &file);
    errno = error;
    return is_known;
}

bool file_identity_add_open(uint64_t *hash, int descriptor)
{
    struct stat file;
    int error = errno;
    bool is_known = fstat(descriptor, &file) == 0 && add(hash, &file);
    errno = error;
    return is_known;
}
