/* SPDX-License-Identifier: MIT */
/*
 * Configuration files: finds them, reads them, and hands their texts to a builder in order.
 */
#include "core/system/config_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the environment ---- */

static struct environment first_environment;

static const char *read_variable(const char *name)
{
    const char *value = secure_getenv(name);
    return value != NULL && value[0] != '\0' ? strdup(value) : NULL;
}

static void read_first_environment(void)
{
    first_environment = (struct environment){
        .config = read_variable("CURTSY_CONFIG"),
        .set = read_variable("CURTSY_SET"),
        .mode = read_variable("CURTSY_MODE"),
        .segment = read_variable("CURTSY_SEGMENT"),
        .log = read_variable("CURTSY_LOG"),
        .log_file = read_variable("CURTSY_LOG_FILE"),
        .log_format = read_variable("CURTSY_LOG_FORMAT"),
        .config_home = read_variable("XDG_CONFIG_HOME"),
        .home = read_variable("HOME"),
    };
}

void environment_read(struct environment *environment)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_first_environment);
    *environment = first_environment;
}

/* ---- one file ---- */

struct text {
    char *bytes;
    size_t length, size;
};

static bool text_grow(struct text *text)
{
    size_t size = text->size * 2;
    char *bytes = realloc(text->bytes, size);
    if (bytes == NULL)
        return false;
    text->bytes = bytes;
    text->size = size;
    return true;
}

/* False with errno. */
static bool read_all(int descriptor, struct text *text)
{
    for (;;) {
        ssize_t got = read(descriptor, text->bytes + text->length, text->size - text->length);
        if (got == 0)
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
        if (text->length == text->size && !text_grow(text))
            return false;
    }
}

bool config_files_add(struct config_builder *builder, const char *path)
{
    struct text text = {.size = 4096};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0)
        return false;
    text.bytes = malloc(text.size);
    bool added = text.bytes != NULL && read_all(descriptor, &text);
    int error = errno;
    close(descriptor);
    if (added && !config_builder_add(builder, path, text.bytes, text.length)) {
        added = false;
        error = ENOMEM;
    }
    free(text.bytes);
    errno = error;
    return added;
}

/* ---- the layers ---- */

struct loading {
    struct config_builder *builder;
    diagnostic_sink *sink;
    void *sink_context;
};

static void report_unreadable(const struct loading *loading, const char *path, int error)
{
    char description[128], message[160];
    struct diagnostic diagnostic = {SEVERITY_ERROR, path, 0, message};

    snprintf(message, sizeof message, "cannot be read: %s", strerror_r(error, description, sizeof description));
    if (loading->sink != NULL)
        loading->sink(loading->sink_context, &diagnostic);
}

/* Nothing is said of a file that isn't there, or that can't be told to be there: a daemon under
 * another user may not look into the home that it inherited. */
static void report_if_there(const struct loading *loading, const char *path)
{
    int error = errno;
    struct stat status;
    if (stat(path, &status) == 0)
        report_unreadable(loading, path, error);
}

static void add_if_there(const struct loading *loading, const char *path)
{
    if (!config_files_add(loading->builder, path))
        report_if_there(loading, path);
}

static void add_asked_for(const struct loading *loading, const char *path)
{
    if (!config_files_add(loading->builder, path))
        report_unreadable(loading, path, errno);
}

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

static void add_folder(const struct loading *loading, const char *folder)
{
    struct dirent **entries;
    char path[PATH_MAX];
    int count = scandir(folder, &entries, is_ini, by_bytes);

    if (count < 0) {
        report_if_there(loading, folder);
        return;
    }
    for (int i = 0; i < count; i++) {
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < sizeof path)
            add_if_there(loading, path);
        free(entries[i]);
    }
    free(entries);
}

static void add_system_files(const struct loading *loading, const char *root)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/etc/curtsy/ratelimit.ini", root) < sizeof path)
        add_if_there(loading, path);
    if ((size_t)snprintf(path, sizeof path, "%s/etc/curtsy/ratelimit.d", root) < sizeof path)
        add_folder(loading, path);
}

static void add_user_file(const struct loading *loading, const struct environment *environment)
{
    char path[PATH_MAX];
    bool has_config_home = environment->config_home != NULL && environment->config_home[0] == '/';
    const char *folder = has_config_home ? environment->config_home : environment->home;

    if (folder == NULL || folder[0] != '/')
        return;
    if ((size_t)snprintf(path, sizeof path, "%s%s/curtsy/ratelimit.ini", folder, has_config_home ? "" : "/.config") <
        sizeof path)
        add_if_there(loading, path);
}

/* The header goes on the text's own first line, so that its lines keep their numbers.  False when
 * out of memory. */
static bool add_set(const struct loading *loading, const char *set)
{
    static const char header[] = "[default] ";
    size_t length = strlen(header) + strlen(set);
    char *text = malloc(length + 1);

    if (text == NULL)
        return false;
    strcpy(stpcpy(text, header), set);
    bool added = config_builder_add(loading->builder, "CURTSY_SET", text, length);
    free(text);
    return added;
}

struct config *config_files_load_below(const char *root, bool secure, const struct environment *environment,
                                       struct config_sources *sources, diagnostic_sink *sink, void *sink_context)
{
    if (sources != NULL)
        *sources = (struct config_sources){.complete = true};
    struct loading loading = {config_builder_new(sink, sink_context), sink, sink_context};
    if (loading.builder == NULL)
        return NULL;
    if (!secure && environment->config != NULL) {
        add_asked_for(&loading, environment->config);
    } else {
        add_system_files(&loading, root);
        if (!secure)
            add_user_file(&loading, environment);
    }
    bool complete = secure || environment->set == NULL || add_set(&loading, environment->set);
    struct config *config = config_builder_finish(loading.builder);
    if (complete)
        return config;
    config_free(config);
    return NULL;
}

struct config *config_files_load(const struct environment *environment, struct config_sources *sources,
                                 diagnostic_sink *sink, void *sink_context)
{
    return config_files_load_below("", getauxval(AT_SECURE) != 0, environment, sources, sink, sink_context);
}

struct config *config_files_load_machine(const char *root)
{
    (void)root;
    return NULL;
}
