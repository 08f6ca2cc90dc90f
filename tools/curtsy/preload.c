/* SPDX-License-Identifier: MIT */
/*
 * Preload: see preload.h.  The build tree and an installation anywhere both work without being told
 * where they are, since the library is looked for from where the executable really is.
 */
#include "tools/curtsy/preload.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY_NAME "libcurtsy.so"
#define SEPARATORS ": \t\n" /* those of ld.so(8), and what musl takes besides */

/* The folder of this executable, without a slash at its end; "" when it cannot be told. */
static void executable_folder(char *folder, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", folder, size - 1);

    if (length <= 0)
        length = snprintf(folder, size, "."); /* no /proc: relative, and so passed over */
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        *slash = '\0';
}

bool preload_find_library(char *path, size_t size, char *error, size_t error_size)
{
    char folder[PATH_MAX], candidate[PATH_MAX + 64], resolved[PATH_MAX];
    const char *const places[][2] = {{folder, ""}, {folder, "/../lib"}, {CURTSY_LIBDIR, ""}};

    executable_folder(folder, sizeof(folder));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(candidate, sizeof(candidate), "%s%s/" LIBRARY_NAME, places[i][0], places[i][1]);
        if (candidate[0] != '/' || access(candidate, R_OK) != 0 || realpath(candidate, resolved) == NULL)
            continue;
        if (strpbrk(resolved, SEPARATORS) != NULL) {
            snprintf(error, error_size, "%s: a space or colon in its path cannot be written in LD_PRELOAD", resolved);
            return false;
        }
        if ((size_t)snprintf(path, size, "%s", resolved) < size)
            return true;
    }
    snprintf(error, error_size, "no " LIBRARY_NAME " in %s, %s/../lib or " CURTSY_LIBDIR, folder, folder);
    return false;
}

static bool basename_begins(const char *entry, size_t length, const char *beginning)
{
    const char *name = memrchr(entry, '/', length);
    size_t name_length;

    name = name != NULL ? name + 1 : entry;
    name_length = length - (size_t)(name - entry);
    return name_length >= strlen(beginning) && memcmp(name, beginning, strlen(beginning)) == 0;
}

static char *append(char *end, const char *list, const char *entry, size_t length)
{
    if (end != list)
        *end++ = ':';
    memcpy(end, entry, length);
    end[length] = '\0';
    return end + length;
}

char *preload_list(const char *inherited, const char *library)
{
    const char *next = inherited != NULL ? inherited : "";
    bool is_in = false;
    char *list = calloc(1, strlen(next) + strlen(library) + 2);
    char *end = list;

    if (list == NULL)
        return NULL;
    while (*(next += strspn(next, SEPARATORS)) != '\0') {
        size_t length = strcspn(next, SEPARATORS);

        if (!is_in && basename_begins(next, length, "libcurl")) {
            end = append(end, list, library, strlen(library));
            is_in = true;
        }
        if (!basename_begins(next, length, LIBRARY_NAME))
            end = append(end, list, next, length);
        next += length;
    }
    if (!is_in)
        append(end, list, library, strlen(library));
    return list;
}
