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

void view_open(struct view *view, const char *option, const struct environment *environment,
               const struct config *config)
{
    const char *name = name_in_force(option, environment, config);
    char own_name[64];

    memset(view, 0, sizeof(*view));
    mapping_default_name(own_name, sizeof(own_name));
    snprintf(view->name, sizeof(view->name), "%s", name != NULL ? name : own_name);
    view->is_open = mapping_attach(&view->mapping, &view->segment, view->name, 0, MAPPING_EXISTING, view->error,
                                   sizeof(view->error));
    user_name(view->is_open ? view->mapping.owner : geteuid(), view->owner, sizeof(view->owner));
    if (strcmp(view->name, own_name) == 0)
        snprintf(view->scope, sizeof(view->scope), "every process of %s on this machine", view->owner);
    else
        snprintf(view->scope, sizeof(view->scope), "every process on this machine that is given this name");
}

void view_close(struct view *view)
{
    if (view->is_open)
        mapping_close(&view->mapping);
    view->is_open = false;
}

void view_print(const struct view *view)
{
    printf("segment %s%s%s%s, owned by %s, shared by %s\n", output_style(STYLE_BOLD), view->name,
           output_style(STYLE_PLAIN), view->is_open ? "" : " (not there yet)", view->owner, view->scope);
}

json_t *view_json(const struct view *view)
{
    return json_pack("{s:s, s:s, s:s}", "segment", view->name, "owner", view->owner, "scope", view->scope);
}
