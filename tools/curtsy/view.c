/* SPDX-License-Identifier: MIT */
/*
 * View: see view.h.
 */
#include "tools/curtsy/view.h"
#include "tools/curtsy/output.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void user_name(uid_t user, char *name, size_t size)
{
    const struct passwd *entry = getpwuid(user);

    if (entry != NULL)
        snprintf(name, size, "%s", entry->pw_name);
    else
        snprintf(name, size, "uid %u", (unsigned)user);
}

static const char *name_in_force(const char *option, const struct environment *environment, const struct config *config)
{
    if (option != NULL)
        return option;
    if (environment->segment != NULL)
        return environment->segment;
    return config != NULL ? config->settings.segment : NULL;
}

/* The file behind the name: false with errno. */
static bool find_file(const char *name, struct stat *status)
{
    char path[PATH_MAX + sizeof("/dev/shm/")];
    const char *rest = name + (name[0] == '/' ? 1 : 0);
    bool is_path = strchr(rest, '/') != NULL;

    if (is_path && name[0] != '/') {
        errno = EINVAL;
        return false;
    }
    snprintf(path, sizeof(path), "%s%s", is_path ? "" : "/dev/shm/", is_path ? name : rest);
    return lstat(path, status) == 0;
}

/* Whose it is, or will be, and who shares it: whoever may write it.  One that is made here is its
 * maker's alone. */
static void tell_scope(struct view *view, const char *own_name)
{
    struct stat status = {.st_uid = geteuid(), .st_mode = S_IRUSR | S_IWUSR};
    bool is_found = find_file(view->name, &status);

    view->is_missing = !view->is_open && !is_found && errno == ENOENT;
    if (view->is_open)
        status.st_uid = view->mapping.owner;
    if (view->is_open || is_found || view->is_missing)
        user_name(status.st_uid, view->owner, sizeof(view->owner));

    if (!view->is_open && !view->is_missing)
        snprintf(view->scope, sizeof(view->scope), "nobody: each program keeps a budget of its own");
    else if (status.st_mode & (S_IWGRP | S_IWOTH))
        snprintf(view->scope, sizeof(view->scope), "every process on this machine that is given this name");
    else if (strcmp(view->name, own_name) == 0)
        snprintf(view->scope, sizeof(view->scope), "every process of %s on this machine", view->owner);
    else
        snprintf(view->scope, sizeof(view->scope), "every process of %s that is given this name", view->owner);
}

void view_open(struct view *view, const char *option, const struct environment *environment,
               const struct config *config)
{
    const char *name = name_in_force(option, environment, config);
    char own_name[64];

    memset(view, 0, sizeof(*view));
    mapping_default_name(own_name, sizeof(own_name));
    snprintf(view->name, sizeof(view->name), "%s", name != NULL ? name : own_name);
    view->is_open = mapping_attach(&view->mapping, &view->segment, view->name, 0, MAPPING_PRIVATE_PERMISSIONS, MAPPING_EXISTING, view->error,
                                   sizeof(view->error));
    tell_scope(view, own_name);
}

void view_close(struct view *view)
{
    if (view->is_open)
        mapping_close(&view->mapping);
    view->is_open = false;
}

void view_print(const struct view *view)
{
    if (!view->is_open && !view->is_missing) {
        printf("segment %s%s%s cannot be used: %s\n", output_style(STYLE_BOLD), view->name, output_style(STYLE_PLAIN),
               view->error);
        return;
    }
    printf("segment %s%s%s%s, owned by %s, shared by %s\n", output_style(STYLE_BOLD), view->name,
           output_style(STYLE_PLAIN), view->is_open ? "" : " (not there yet)", view->owner, view->scope);
}

json_t *view_json(const struct view *view)
{
    return json_pack("{s:s, s:s?, s:s}", "segment", view->name, "owner", view->owner[0] != '\0' ? view->owner : NULL,
                     "scope", view->scope);
}
