/* SPDX-License-Identifier: MIT */
/*
 * Config disk: what reading the configuration asks of the file system: one file's text with when it
 * was changed, and the .ini files of a folder.
 *
 * Reading never blocks: of a FIFO or a terminal only what is there at once is read.  All functions may
 * be called from any thread.
 */
#ifndef CURTSY_CORE_SYSTEM_CONFIG_DISK_H
#define CURTSY_CORE_SYSTEM_CONFIG_DISK_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disk_text {
    char *bytes; /* the reader's, to be freed; not NUL-terminated */
    size_t length;
    uint64_t changed; /* see disk_changed */
};

/* False with errno (EFBIG beyond CONFIG_FILE_SIZE_MAX), and nothing to be freed. */
bool disk_read_text(const char *path, struct disk_text *out);

/* The files of a folder that end in .ini, hidden ones left out, in the C locale's order whatever the
 * program's is.  As scandir(3): the number of entries, each of them and *entries to be freed; -1 with
 * errno. */
int disk_list_ini(const char *folder, struct dirent ***entries);

/* When a regular file or a folder was changed, the later of mtime and ctime, in nanoseconds since
 * 1970; 0 of anything else, and of what is not there. */
uint64_t disk_changed(const char *path);

#endif
