/* SPDX-License-Identifier: MIT */
/*
 * Presets: see presets.h.
 */
#include "tools/curtsy/presets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENDING ".ini"

/* Where to look from the folder of the executable.  A build may be a folder deeper (build/asan). */
static const char *const beside[] = {"/../tools/presets", "/../../tools/presets", "/../share/curtsy"};
#define BESIDE_COUNT (sizeof(beside) / sizeof(beside[0]))

/* The folder of this executable, without a slash at its end; false when it cannot be told. */
static bool executable_folder(char folder[PATH_MAX])
{
    if (realpath("/proc/self/exe", folder) == NULL)
        return false;
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        *slash = '\0';
    return slash != NULL;
}

static void add_names(struct presets *presets, struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++) {
        char *name = strndup(entries[i]->d_name, strlen(entries[i]->d_name) - strlen(ENDING));
        if (name != NULL && presets->count < PRESETS_MAX)
            presets->name[presets->count++] = name;
        else
            free(name);
        free(entries[i]);
    }
    free(entries);
}

/* False if the folder has none. */
static bool look_into(struct presets *presets, const char *folder)
{
    struct dirent **entries;
    int count = realpath(folder, presets->folder) != NULL ? disk_list_ini(presets->folder, &entries) : -1;

    if (count >= 0)
        add_names(presets, entries, count);
    return presets->count > 0;
}

bool presets_find(struct presets *presets, char *error, size_t error_size)
{
    char own[PATH_MAX], folder[PATH_MAX + 32];
    bool is_known = executable_folder(own);

    presets->count = 0;
    for (size_t i = 0; is_known && i < BESIDE_COUNT; i++) {
        snprintf(folder, sizeof(folder), "%s%s", own, beside[i]);
        if (look_into(presets, folder))
            return true;
    }
    if (look_into(presets, CURTSY_DATADIR))
        return true;
    snprintf(error, error_size, "no presets in %s/../share/curtsy or " CURTSY_DATADIR, is_known ? own : ".");
    return false;
}

void presets_free(struct presets *presets)
{
    for (size_t i = 0; i < presets->count; i++)
        free((char *)presets->name[i]);
    presets->count = 0;
}

const char *presets_name(const struct presets *presets, const char *name)
{
    for (size_t i = 0; i < presets->count; i++)
        if (strcmp(presets->name[i], name) == 0)
            return presets->name[i];
    return NULL;
}

bool presets_read(const struct presets *presets, const char *name, struct disk_text *out)
{
    char path[PATH_MAX + NAME_MAX + 2];

    snprintf(path, sizeof(path), "%s/%s" ENDING, presets->folder, name);
    return disk_read_text(path, out);
}
