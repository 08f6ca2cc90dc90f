/* SPDX-License-Identifier: MIT */
/*
 * View: the segment that a subcommand looks at, and the line that each view begins with: which
 * segment, whose it is, and who shares it.
 */
#ifndef CURTSY_TOOLS_VIEW_H
#define CURTSY_TOOLS_VIEW_H

#include "core/config.h"
#include "core/segment.h"
#include "core/system/config_files.h"
#include "core/system/mapping.h"

#include <jansson.h>
#include <limits.h>

struct view {
    char name[PATH_MAX + 1];
    char error[2 * PATH_MAX]; /* why there is no segment */
    bool is_open;
    bool is_missing; /* nobody has made it yet */
    struct mapping mapping;
    struct segment segment;
    char owner[64]; /* "" where it cannot be told */
    char scope[128];
};

/* Looks for the segment that programs started from here would use: `option` (--segment, may be
 * NULL), else CURTSY_SEGMENT, else the configuration's, else the user's own.  It is only read, and not
 * made: if there is none, is_missing is true, and owner is who would own it; if what is there cannot be
 * used, neither is_open nor is_missing is.  Whoever may read a segment may look at it: root at any.
 * The configuration may be NULL.
 *
 * Where the segment is cut short while it is being looked at, there are zeros (tools/curtsy/cut_short.h). */
void view_open(struct view *view, const char *option, const struct environment *environment,
               const struct config *config);

/* The same for MAPPING_OPERATE (to be written to), or MAPPING_CREATE (made if need be, as the
 * configuration asks for it; what is open is never private memory).  An error says why it is not open. */
void view_open_for(struct view *view, const char *option, const struct environment *environment,
                   const struct config *config, enum mapping_access access);

void view_close(struct view *view);

/* "segment NAME, owned by OWNER, shared by SCOPE", and "(not there yet)" behind a NAME that is not;
 * or "segment NAME cannot be used: WHY". */
void view_print(const struct view *view);

/* The same as fields of a JSON document: segment, owner (or null), scope. */
json_t *view_json(const struct view *view);

/* The name of a user, or "uid 1234" where he has none. */
void view_user_name(uint32_t user, char *name, size_t size);

#endif
