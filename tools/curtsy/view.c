/* SPDX-License-Identifier: MIT */
/*
 * View: see view.h.
 */
#include "tools/curtsy/view.h"
#include "tools/curtsy/cut_short.h"
#include "tools/curtsy/output.h"

#include "core/segment_layout.h"
#include "core/system/segment_choice.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void view_user_name(uint32_t user, char *name, size_t size)
{
    const struct passwd *entry = getpwuid(user);

    if (entry != NULL)
        snprintf(name, size, "%s", entry->pw_name);
    else
        snprintf(name, size, "uid %u", (unsigned)user);
}

/* What programs would use, but for the option.  A group that is not in /etc/group may be known
 * elsewhere, which a command may ask. */
static void choose(struct segment_choice *choice, const char *option, const struct environment *environment,
                   const struct config *config)
{
    struct environment with_option = *environment;
    const struct group *group;

    if (option != NULL)
        with_option.segment = option;
    segment_choose(choice, &with_option, config != NULL ? &config->settings : NULL);
    if (config == NULL || !choice->lacks_group || (group = getgrnam(config->settings.segment_group)) == NULL)
        return;
    choice->permissions = (struct mapping_permissions){config->settings.segment_permissions, group->gr_gid};
    choice->lacks_group = false;
}

/* ------------------------------------------------------------------------- scope ---- */

/* The one that the administrator has named for the whole machine, however it was come by. */
static bool is_the_machines(const struct view *view, const struct config *config)
{
    static const char folder[] = "/etc/curtsy/";
    const char *file = config != NULL ? config->settings_origins[CURTSY_KEY_segment].file : NULL;

    return file != NULL && strncmp(file, folder, strlen(folder)) == 0 && config->settings.segment != NULL &&
           strcmp(config->settings.segment, view->name) == 0;
}

/* Is it the one that this user's programs use when they are told of none? */
static bool is_default_of(const struct view *view, uid_t user)
{
    char name[64];

    snprintf(name, sizeof(name), "/curtsy.v%d.%u", SEGMENT_LAYOUT_VERSION, (unsigned)user);
    return strcmp(view->name, name) == 0 || strcmp(view->name, name + 1) == 0;
}

/* Who shares it is who may write it and comes to its name. */
static void describe_scope(struct view *view, const struct stat *status, bool is_machines)
{
    bool everybody = status->st_mode & S_IWOTH;
    bool others = status->st_mode & (S_IWGRP | S_IWOTH);

    if (!view->is_open && !view->is_missing)
        snprintf(view->scope, sizeof(view->scope), "nobody: each program keeps a budget of its own");
    else if (others && status->st_uid != 0)
        snprintf(view->scope, sizeof(view->scope), "nobody: others than its owner may write it, and it is not root's");
    else if (others && is_machines)
        snprintf(view->scope, sizeof(view->scope), "every process on this machine that may write it");
    else if (others)
        snprintf(view->scope, sizeof(view->scope), "every process on this machine that %sis given this name",
                 everybody ? "" : "may write it and ");
    else if (is_machines || is_default_of(view, status->st_uid))
        snprintf(view->scope, sizeof(view->scope), "every process of %s on this machine", view->owner);
    else
        snprintf(view->scope, sizeof(view->scope), "every process of %s that is given this name", view->owner);
}

/* Whose it is, or will be: one for others has to be made by root.  One that could not be made is not
 * only missing. */
static void tell_scope(struct view *view, const struct segment_choice *choice, enum mapping_access access,
                       bool is_machines)
{
    bool is_for_others = choice->permissions.mode & (S_IWGRP | S_IWOTH);
    struct stat status = {.st_uid = is_for_others ? 0 : geteuid(), .st_mode = choice->permissions.mode};
    char path[PATH_MAX];
    bool is_path = mapping_path(view->name, path, sizeof(path), NULL, 0);
    bool is_found = is_path && lstat(path, &status) == 0;

    view->is_missing = !view->is_open && is_path && !is_found && errno == ENOENT && access != MAPPING_CREATE;
    if (view->is_open)
        status.st_uid = view->mapping.owner;
    if (view->is_open || is_found || view->is_missing)
        view_user_name(status.st_uid, view->owner, sizeof(view->owner));
    describe_scope(view, &status, is_machines);
}

/* ----------------------------------------------------------------------- opening ---- */

void view_open(struct view *view, const char *option, const struct environment *environment,
               const struct config *config)
{
    view_open_for(view, option, environment, config, MAPPING_VIEW);
}

void view_open_for(struct view *view, const char *option, const struct environment *environment,
                   const struct config *config, enum mapping_access access)
{
    struct segment_choice choice;

    cut_short_reads_zeros();
    memset(view, 0, sizeof(*view));
    choose(&choice, option, environment, config);
    snprintf(view->name, sizeof(view->name), "%s", choice.name);
    view->is_open = mapping_attach(&view->mapping, &view->segment, view->name, choice.size, choice.permissions, access,
                                   view->error, sizeof(view->error));
    /* What is private to this process is of no use to any other. */
    if (view->is_open && view->mapping.is_private)
        view_close(view);
    tell_scope(view, &choice, access, is_the_machines(view, config));
}

void view_close(struct view *view)
{
    if (view->is_open)
        mapping_close(&view->mapping);
    view->is_open = false;
}

/* ----------------------------------------------------------------------- showing ---- */

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
    return json_pack("{s:o, s:s?, s:s}", "segment", json_text(view->name), "owner",
                     view->owner[0] != '\0' ? view->owner : NULL, "scope", view->scope);
}
