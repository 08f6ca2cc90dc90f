/* SPDX-License-Identifier: MIT */
/*
 * Explanation: all that `curtsy explain` finds out about one request, in one struct, how it is found
 * out (explanation.c), and the two ways of showing it (explanation_view.c).
 *
 * No header's value, no user, password and query is in it; the path is folded as in the log.
 */
#ifndef CURTSY_TOOLS_EXPLANATION_H
#define CURTSY_TOOLS_EXPLANATION_H

#include "tools/curtsy/rehearsal.h"
#include "tools/curtsy/url.h"
#include "tools/curtsy/view.h"

/* What all requests of one call have in common. */
struct circumstances {
    const struct config *config;
    const struct config *machine;  /* the machine's administrator's part, where the segment is the machine's */
    const char *mode;              /* CURTSY_MODE, or NULL */
    const struct segment *segment; /* NULL: none (yet) */
    const char *method;
    const char *program; /* "": none in particular */
    char *const *headers;
    size_t header_count;
};

/* A section that does not speak for the request. */
struct silent_section {
    const struct section *section;
    const char *why;
};
#define SILENT_SHOWN_MAX 64 /* of many, only those that are for this host, or nearly so */

/* Somebody who has a say in the mode; of several the least intrusive wins. */
struct mode_source {
    enum mode mode;
    char by[PATH_MAX + 64];
    int64_t until_ns; /* TIME_NEVER: without an end */
};
#define MODE_SOURCES_MAX 5

/* What would be done about one kind of outcome. */
struct outcome_rule {
    char outcome[32];      /* "429", "connection reset" */
    bool is_status;        /* else something below HTTP */
    unsigned attempts_max; /* in all, where it would be tried again; else 0 */
    const char *why;       /* where it would not; else NULL */
};
#define OUTCOMES_MAX 24

struct explanation {
    char method[METHOD_SIZE];
    char program[64];
    char endpoint[512]; /* as in the log */
    struct url url;     /* where it is not URL_GOVERNED, nothing below is filled in */
    int64_t now_ns;

    char credentials[512]; /* what carries them, with commas: "header Authorization"; "": nothing */
    struct request_traits traits;
    bool key_is_generated; /* that of traits.has_idempotency_key: idempotency_key = generate */

    struct resolved_policy resolved;
    struct silent_section silent[SILENT_SHOWN_MAX];
    unsigned silent_count;
    unsigned hidden_here;      /* more sections for this host */
    unsigned hidden_elsewhere; /* and sections for other hosts */

    struct mode_source modes[MODE_SOURCES_MAX];
    unsigned mode_count;
    unsigned mode_in_force; /* the one of modes that wins */

    struct rehearsal rehearsal;
    struct outcome_rule outcomes[OUTCOMES_MAX];
    unsigned outcome_count;
};

/* False when out of memory.  url_open has succeeded before. */
bool explanation_make(struct explanation *explanation, const struct circumstances *circumstances, const char *url);

void explanation_print(const struct explanation *explanation);

/* A document that begins with the view's fields, to be dropped by the caller. */
json_t *explanation_json(const struct explanation *explanation, const struct view *view);

#endif
