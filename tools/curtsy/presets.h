/* SPDX-License-Identifier: MIT */
/*
 * Presets: the files that come with Curtsy for the APIs that everyone meets, to be looked at and
 * copied.  They are found by where this executable really is, as the library is (preload.h): in a
 * build's source tree, in the share/curtsy beside bin, else where they were built to be installed.
 */
#ifndef CURTSY_TOOLS_PRESETS_H
#define CURTSY_TOOLS_PRESETS_H

#include "core/system/config_disk.h"

#include <limits.h>

#define PRESETS_MAX 256

struct presets {
    char folder[PATH_MAX];
    const char *name[PRESETS_MAX]; /* without .ini, in the C locale's order */
    size_t count;
};

/* False, with where it has looked in `error`, if there are none. */
bool presets_find(struct presets *presets, char *error, size_t error_size);
void presets_free(struct presets *presets);

/* One of them by its name, or NULL. */
const char *presets_name(const struct presets *presets, const char *name);

/* The file's text, to be freed (out->bytes); false with errno. */
bool presets_read(const struct presets *presets, const char *name, struct disk_text *out);

#endif
