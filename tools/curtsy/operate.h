/* SPDX-License-Identifier: MIT */
/*
 * Operate: what the operator's commands have in common: mode, hold, release, refill, reload.  Each
 * opens the segment for writing, does something to it, says what is now in force, and leaves an event
 * (core/events.h), so that nobody wonders later who it was.
 */
#ifndef CURTSY_TOOLS_OPERATE_H
#define CURTSY_TOOLS_OPERATE_H

#include "tools/curtsy/host_buckets.h"
#include "tools/curtsy/view.h"

struct operation {
    struct view view;
    struct environment environment;
    struct config *config;
    struct config *machine; /* the administrator's alone, where the segment is the whole machine's; else NULL */
    struct bucket_world world;
    int64_t now_ns;
};

/* Reads the configuration and opens the segment: `segment` is --segment's, or NULL.  `access` is
 * MAPPING_VIEW, MAPPING_OPERATE or MAPPING_CREATE (which makes none in another user's name).  False if there is no such
 * segment or it cannot be used, which operation_complain tells.  operation_end either way. */
bool operation_begin(struct operation *operation, const char *segment, enum mapping_access access);
void operation_complain(const struct operation *operation);
void operation_end(struct operation *operation);

/* The buckets that `text`, as read into `word`, means; all where it is NULL.  `make` as in
 * host_buckets_find.  False, with a complaint, if there are none.  To be freed either way. */
bool operation_find(const struct operation *operation, const char *text, const struct host_word *word, bool make,
                    struct host_buckets *out);

/* Puts an event into the ring: "hold api.github.com 10min". */
void operation_note(const struct operation *operation, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A point in time for people, by the local clock: "14:05:00", with the date before it unless that is
 * today's; "?" where it cannot be told. */
#define CLOCK_TEXT_SIZE 40
const char *clock_text(char buffer[CLOCK_TEXT_SIZE], int64_t until_ns, int64_t now_ns);

/* The same for scripts, in UTC as in RFC 3339: "2026-11-30T12:00:00Z"; null where it never comes. */
json_t *clock_json(int64_t until_ns, int64_t now_ns);

/* A time of the command line, above 0.  False with a complaint. */
bool parse_time(const char *text, int64_t *ns);

/* A host of the command line.  False with a complaint. */
bool parse_host_word(const char *text, struct host_word *word);

#endif
