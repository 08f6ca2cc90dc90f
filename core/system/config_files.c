/* SPDX-License-Identifier: MIT */
/*
 * Configuration files: finds them, reads them, and puts their texts in order.  config_presets.c
 * makes one configuration of them.
 */
#include "core/system/config_files.h"

#include "core/system/config_disk.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

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

bool config_files_add(struct config_builder *builder, const char *path)
{
    struct disk_text text;

    if (!disk_read_text(path, &text))
        return false;
    bool is_added = config_builder_add(builder, path, text.bytes, text.length);
    free(text.bytes);
    if (!is_added)
        errno = ENOMEM;
    return is_added;
}

/* ---- the layers ---- */

struct loading {
    struct config_layer *layers; /* files and texts are its own */
    size_t count;
    struct config_sources *sources;
    bool out_of_memory;
    diagnostic_sink *sink;
    void *sink_context;
};

/* Takes the text over. */
static void add_layer(struct loading *loading, enum layer_kind kind, const char *file, char *text, size_t length)
{
    struct config_layer *layers = reallocarray(loading->layers, loading->count + 1, sizeof *layers);
    char *name = strdup(file);

    if (layers != NULL)
        loading->layers = layers;
    if (layers == NULL || name == NULL) {
        loading->out_of_memory = true;
        free(name);
        free(text);
        return;
    }
    layers[loading->count++] = (struct config_layer){kind, name, text, length};
}

static void free_layers(struct loading *loading)
{
    for (size_t i = 0; i < loading->count; i++) {
        free((char *)(uintptr_t)loading->layers[i].file);
        free((char *)(uintptr_t)loading->layers[i].text);
    }
    free(loading->layers);
}

static void note_changed(const struct loading *loading, uint64_t changed)
{
    if (changed > loading->sources->changed)
        loading->sources->changed = changed;
}

/* ---- files ---- */

static void report_unreadable(const struct loading *loading, const char *path, int error)
{
    char description[128], message[160];
    struct diagnostic diagnostic = {SEVERITY_ERROR, path, 0, message};

    loading->sources->complete = false;
    snprintf(message, sizeof message, "cannot be read: %s", strerror_r(error, description, sizeof description));
    if (loading->sink != NULL)
        loading->sink(loading->sink_context, &diagnostic);
}

/* Nothing is said of a file that isn't there, nor of one that can't be told to be there: a daemon under
 * another user may not look into the home that it inherited.  But then the rest is not all there is. */
static void report_if_there(const struct loading *loading, const char *path, int error)
{
    struct stat status;

    if (error == ENOENT)
        return;
    if (stat(path, &status) == 0)
        report_unreadable(loading, path, error);
    else if (errno == EACCES)
        loading->sources->complete = false;
    else if (errno != ENOENT && errno != ENOTDIR)
        report_unreadable(loading, path, errno);
}

/* False with errno. */
static bool add_file(struct loading *loading, const char *path)
{
    struct disk_text text;

    if (!disk_read_text(path, &text))
        return false;
    note_changed(loading, text.changed);
    add_layer(loading, LAYER_FILE, path, text.bytes, text.length);
    return true;
}

static void add_if_there(struct loading *loading, const char *path)
{
    if (!add_file(loading, path))
        report_if_there(loading, path, errno);
}

static void add_asked_for(struct loading *loading, const char *path)
{
    if (!add_file(loading, path))
        report_unreadable(loading, path, errno);
}

/* That a file was taken away is seen by the folder alone. */
static void add_folder(struct loading *loading, const char *folder)
{
    struct dirent **entries;
    char path[PATH_MAX];
    uint64_t changed = disk_changed(folder);
    int count = disk_list_ini(folder, &entries);

    if (count < 0) {
        report_if_there(loading, folder, errno);
        return;
    }
    note_changed(loading, changed);
    for (int i = 0; i < count; i++) {
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < sizeof path)
            add_if_there(loading, path);
        free(entries[i]);
    }
    free(entries);
}

#define SYSTEM_FOLDER "/etc/curtsy/"

static void add_system_files(struct loading *loading, const char *root)
{
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s" SYSTEM_FOLDER "ratelimit.ini", root) < sizeof path)
        add_if_there(loading, path);
    if ((size_t)snprintf(path, sizeof path, "%s" SYSTEM_FOLDER "ratelimit.d", root) < sizeof path)
        add_folder(loading, path);
}

static void add_user_file(struct loading *loading, const struct environment *environment)
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

static void add_set(struct loading *loading, const char *set)
{
    char *text = strdup(set);
    if (text != NULL)
        add_layer(loading, LAYER_SET, "CURTSY_SET", text, strlen(text));
    else
        loading->out_of_memory = true;
}

/* ---- the whole ---- */

/* Whoever names a segment of his own, by whatever means, has left the machine's; not who names that one. */
static bool is_machine_wide(const struct config *config, const char *root, const char *override)
{
    const char *file = config->settings_origins[CURTSY_KEY_segment].file;
    size_t length = strlen(root);

    return config->settings.segment != NULL && (override == NULL || strcmp(override, config->settings.segment) == 0) &&
           file != NULL && strncmp(file, root, length) == 0 &&
           strncmp(file + length, SYSTEM_FOLDER, strlen(SYSTEM_FOLDER)) == 0;
}

struct config *config_files_load_below(const char *root, bool secure, const struct environment *environment,
                                       struct config_sources *sources, diagnostic_sink *sink, void *sink_context)
{
    struct config_sources own;
    struct loading loading = {.sources = sources != NULL ? sources : &own, .sink = sink, .sink_context = sink_context};
    struct config *config = NULL;

    *loading.sources = (struct config_sources){.complete = true};
    if (!secure && environment->config != NULL) {
        add_asked_for(&loading, environment->config);
    } else {
        add_system_files(&loading, root);
        if (!secure)
            add_user_file(&loading, environment);
    }
    if (!secure && environment->set != NULL)
        add_set(&loading, environment->set);
    if (!loading.out_of_memory)
        config = config_files_build(root, loading.layers, loading.count, loading.sources, sink, sink_context);
    if (config != NULL)
        loading.sources->machine_wide = is_machine_wide(config, root, secure ? NULL : environment->segment);
    free_layers(&loading);
    return config;
}

struct config *config_files_load(const struct environment *environment, struct config_sources *sources,
                                 diagnostic_sink *sink, void *sink_context)
{
    return config_files_load_below("", getauxval(AT_SECURE) != 0, environment, sources, sink, sink_context);
}

/* The files that count whoever runs the program are those that count for a privileged one. */
struct config *config_files_load_machine(const char *root)
{
    static const struct environment nothing;
    return config_files_load_below(root, true, &nothing, NULL, NULL, NULL);
}
