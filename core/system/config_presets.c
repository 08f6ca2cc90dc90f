/* SPDX-License-Identifier: MIT */
/*
 * Config presets: laid below the layers that name them.
 *
 * Which presets are in force is known only when all layers have been read, and yet they come first.
 * So where a layer mentions `presets` at all, the layers are read twice: the first time for that one
 * value, without a word.
 */
#include "core/system/config_files.h"

#include "core/system/config_disk.h"
#include "core/text_list.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_NAME "presets"
#define LIST_SHOWN 400 /* characters of the list of presets that a message repeats */

struct building {
    const char *root;
    struct config_builder *builder;
    struct config_sources *sources;
    diagnostic_sink *sink;
    void *sink_context;
    struct origin origin; /* where they are named */
};

static void tell(const struct building *building, struct origin at, const char *message)
{
    const struct diagnostic diagnostic = {SEVERITY_ERROR, at.file, at.line, message};
    if (building->sink != NULL)
        building->sink(building->sink_context, &diagnostic);
}

/* ---- one that is not there ---- */

struct presets {
    const char **names;
    size_t count;
};

/* The names of those that are there, without .ini; what cannot be listed is not there. */
static struct presets list_presets(const char *folder)
{
    struct dirent **entries;
    struct presets presets = {0};
    int count = disk_list_ini(folder, &entries);

    if (count < 0)
        return presets;
    presets.names = calloc((size_t)count + 1, sizeof *presets.names);
    for (int i = 0; i < count; i++) {
        char *name = strndup(entries[i]->d_name, strlen(entries[i]->d_name) - 4);
        if (presets.names != NULL && name != NULL)
            presets.names[presets.count++] = name;
        else
            free(name);
        free(entries[i]);
    }
    free(entries);
    return presets;
}

static void free_presets(struct presets *presets)
{
    for (size_t i = 0; i < presets->count; i++)
        free((char *)(uintptr_t)presets->names[i]);
    free(presets->names);
}

/* "github, gitlab", as much as fits. */
static void join(const struct presets *presets, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < presets->count; i++) {
        int length = snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", presets->names[i]);
        if (length < 0 || (size_t)length >= size - used) {
            strcpy(text + (used < size - 4 ? used : size - 4), "...");
            return;
        }
        used += (size_t)length;
    }
}

static void tell_missing(const struct building *building, const char *folder, const char *name)
{
    char message[PATH_MAX + PRESET_NAME_MAX + LIST_SHOWN + 64], list[LIST_SHOWN];
    struct presets presets = list_presets(folder);
    const char *nearest = keys_nearest_word(name, presets.names, presets.count);

    if (presets.count == 0) {
        snprintf(message, sizeof message, KEY_NAME ": there is no preset \"%s\" in %s, nor any other", name, folder);
    } else if (nearest != NULL) {
        snprintf(message, sizeof message, KEY_NAME ": there is no preset \"%s\" in %s; did you mean \"%s\"?", name,
                 folder, nearest);
    } else {
        join(&presets, list, sizeof list);
        snprintf(message, sizeof message, KEY_NAME ": there is no preset \"%s\" in %s: expected some of %s", name,
                 folder, list);
    }
    tell(building, building->origin, message);
    free_presets(&presets);
}

/* ---- those that are named ---- */

/* False only when out of memory. */
static bool add_preset(const struct building *building, const char *folder, const char *name)
{
    char path[PATH_MAX + PRESET_NAME_MAX + 8], message[160], reason[128];
    struct disk_text text;

    snprintf(path, sizeof path, "%s/%s.ini", folder, name);
    if (disk_read_text(path, &text)) {
        if (text.changed > building->sources->changed)
            building->sources->changed = text.changed;
        bool is_added = config_builder_add_layer(building->builder, LAYER_PRESET, path, text.bytes, text.length);
        free(text.bytes);
        return is_added;
    }
    if (errno == ENOENT || errno == ENOTDIR) {
        tell_missing(building, folder, name);
        return true;
    }
    building->sources->complete = false;
    snprintf(message, sizeof message, "cannot be read: %s", strerror_r(errno, reason, sizeof reason));
    tell(building, (struct origin){path, 0}, message);
    return true;
}

/* github, github is github. */
static bool is_named_before(const char *names, const struct scan *name)
{
    size_t length = (size_t)(name->end - name->at);
    struct scan earlier;
    while (text_list_next(&names, &earlier) && earlier.at < name->at)
        if ((size_t)(earlier.end - earlier.at) == length && memcmp(earlier.at, name->at, length) == 0)
            return true;
    return false;
}

static bool add_presets(const struct building *building, const char *names)
{
    char folder[PATH_MAX], name[PRESET_NAME_MAX + 1];
    const char *rest = names;
    struct scan item;

    if ((size_t)snprintf(folder, sizeof folder, "%s%s", building->root, CURTSY_DATADIR) >= sizeof folder)
        return true;
    while (text_list_next(&rest, &item)) {
        if (is_named_before(names, &item))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(item.end - item.at), item.at);
        if (!add_preset(building, folder, name))
            return false;
    }
    return true;
}

/* ---- the layers ---- */

static bool add_layers(struct config_builder *builder, const struct config_layer *layers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!config_builder_add_layer(builder, layers[i].kind, layers[i].file, layers[i].text, layers[i].length))
            return false;
    return true;
}

/* What the layers alone come to; NULL when out of memory. */
static struct config *read_silently(const struct config_layer *layers, size_t count)
{
    struct config_builder *builder = config_builder_new(NULL, NULL);
    if (builder == NULL)
        return NULL;
    add_layers(builder, layers, count);
    return config_builder_finish(builder);
}

static bool mention_presets(const struct config_layer *layers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memmem(layers[i].text, layers[i].length, KEY_NAME, strlen(KEY_NAME)) != NULL)
            return true;
    return false;
}

/* False when out of memory. */
static bool add_presets_of(struct building *building, const struct config_layer *layers, size_t count)
{
    if (!mention_presets(layers, count))
        return true;
    struct config *alone = read_silently(layers, count);
    if (alone == NULL)
        return false;
    building->origin = alone->settings_origins[CURTSY_KEY_presets];
    bool is_added = alone->settings.presets == NULL || add_presets(building, alone->settings.presets);
    config_free(alone);
    return is_added;
}

struct config *config_files_build(const char *root, const struct config_layer *layers, size_t count,
                                  struct config_sources *sources, diagnostic_sink *sink, void *sink_context)
{
    struct building building = {root, config_builder_new(sink, sink_context), sources, sink, sink_context, {0}};

    if (building.builder == NULL)
        return NULL;
    /* The builder remembers that memory was short, whoever asked for it. */
    bool is_complete = add_presets_of(&building, layers, count) && add_layers(building.builder, layers, count);
    struct config *config = config_builder_finish(building.builder);
    if (is_complete)
        return config;
    config_free(config);
    return NULL;
}
