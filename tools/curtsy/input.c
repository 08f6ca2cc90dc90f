/* SPDX-License-Identifier: MIT */
/*
 * Input: see input.h.
 */
#include "tools/curtsy/input.h"

#include "core/system/config_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_SIZE 65536

static bool is_standard_input(const char *path)
{
    return strcmp(path, "-") == 0;
}

const char *input_name(const char *path)
{
    return is_standard_input(path) ? "standard input" : path;
}

/* Everything up to the end, to be freed; NULL with errno. */
static char *read_all(int descriptor, size_t *length)
{
    size_t size = FIRST_SIZE;
    char *text = malloc(size);
    ssize_t got = -1;

    *length = 0;
    while (text != NULL && *length <= CONFIG_FILE_SIZE_MAX) {
        got = read(descriptor, text + *length, size - *length);
        if (got == 0)
            return text;
        if (got < 0 && errno != EINTR)
            break;
        *length += got > 0 ? (size_t)got : 0;
        if (*length < size)
            continue;
        char *larger = realloc(text, size *= 2);
        if (larger == NULL)
            break;
        text = larger;
    }
    if (*length > CONFIG_FILE_SIZE_MAX)
        errno = EFBIG;
    int error = errno;
    free(text);
    errno = error;
    return NULL;
}

static char *read_file(const char *path, size_t *length)
{
    if (is_standard_input(path))
        return read_all(STDIN_FILENO, length);

    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0)
        return NULL;
    char *text = read_all(descriptor, length);
    int error = errno;
    close(descriptor);
    errno = error;
    return text;
}

struct config *input_load(const char *path, const char *set, diagnostic_sink *sink, void *sink_context)
{
    struct config_sources sources = {.complete = true};
    size_t length;
    char *text = read_file(path, &length);

    if (text == NULL)
        return NULL;
    const struct config_layer layers[] = {
        {LAYER_FILE, input_name(path), text, length},
        {LAYER_SET, "CURTSY_SET", set, set != NULL ? strlen(set) : 0},
    };
    struct config *config = config_files_build("", layers, set != NULL ? 2 : 1, &sources, sink, sink_context);
    free(text);
    if (config == NULL)
        errno = ENOMEM;
    return config;
}
