/* SPDX-License-Identifier: MIT */
/*
 * Input: see input.h.
 */
#include "tools/curtsy/input.h"

#include "core/system/config_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

/* What stands in CURTSY_SET before any section belongs to [default]; on one line with the header,
 * so that lines keep their numbers. */
static bool add_set(struct config_builder *builder, const char *set)
{
    char *text;
    int length = asprintf(&text, "[default] %s", set);

    if (length < 0)
        return false;
    bool is_added = config_builder_add(builder, "CURTSY_SET", text, (size_t)length);
    free(text);
    return is_added;
}

struct config *input_load(const char *path, const char *set, diagnostic_sink *sink, void *sink_context)
{
    size_t length;
    char *text = read_file(path, &length);
    struct config_builder *builder = text != NULL ? config_builder_new(sink, sink_context) : NULL;

    if (builder == NULL) {
        int error = text != NULL ? ENOMEM : errno;
        free(text);
        errno = error;
        return NULL;
    }
    bool is_complete = config_builder_add(builder, input_name(path), text, length);
    is_complete = is_complete && (set == NULL || add_set(builder, set));
    struct config *config = config_builder_finish(builder);
    free(text);
    if (is_complete && config != NULL)
        return config;
    config_free(config);
    errno = ENOMEM;
    return NULL;
}
