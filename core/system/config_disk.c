/* SPDX-License-Identifier: MIT */
/*
 * Config disk: see config_disk.h.
 */
#include "core/system/config_disk.h"

#include "core/system/config_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_SIZE 4096

/* ---- when ---- */

static uint64_t nanoseconds(struct timespec time)
{
    return time.tv_sec < 0 ? 0 : (uint64_t)time.tv_sec * (uint64_t)NS_PER_SECOND + (uint64_t)time.tv_nsec;
}

/* A terminal is changed by every line on it. */
static uint64_t changed_of(const struct stat *status)
{
    uint64_t modified = nanoseconds(status->st_mtim), changed = nanoseconds(status->st_ctim);
    if (!S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode))
        return 0;
    return modified > changed ? modified : changed;
}

uint64_t disk_changed(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? changed_of(&status) : 0;
}

/* ---- what ---- */

static bool grow(struct disk_text *text, size_t *size)
{
    char *bytes = realloc(text->bytes, *size * 2);
    if (bytes == NULL)
        return false;
    text->bytes = bytes;
    *size *= 2;
    return true;
}

/* False with errno. */
static bool read_all(int descriptor, struct disk_text *text)
{
    size_t size = FIRST_SIZE;

    for (;;) {
        ssize_t got = read(descriptor, text->bytes + text->length, size - text->length);
        if (got == 0 || (got < 0 && errno == EAGAIN))
            return true;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        text->length += (size_t)got;
        if (text->length > CONFIG_FILE_SIZE_MAX) {
            errno = EFBIG;
            return false;
        }
        if (text->length == size && !grow(text, &size))
            return false;
    }
}

bool disk_read_text(const char *path, struct disk_text *out)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    *out = (struct disk_text){0};
    if (descriptor < 0)
        return false;
    /* Before it is read, so that a later change is newer. */
    if (fstat(descriptor, &status) == 0)
        out->changed = changed_of(&status);
    out->bytes = malloc(FIRST_SIZE);
    bool is_read = out->bytes != NULL && read_all(descriptor, out);
    int error = errno;
    close(descriptor);
    if (!is_read) {
        free(out->bytes);
        out->bytes = NULL;
    }
    errno = error;
    return is_read;
}

/* ---- which ---- */

static int is_ini(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 4 && strcmp(entry->d_name + length - 4, ".ini") == 0;
}

/* alphasort would order by the program's locale. */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int disk_list_ini(const char *folder, struct dirent ***entries)
{
    return scandir(folder, entries, is_ini, by_bytes);
}
