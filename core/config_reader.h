/* SPDX-License-Identifier: MIT */
/*
 * Config reader: an INI text in, one call for each thing that a line says out, in their order and
 * with the right line number.
 *
 * inih does the syntax of entries: where the name ends, where a comment begins, which blanks count.  What
 * its packaged build would get wrong is taken care of here, without its user or ours noticing:
 * see config_reader.c.
 *
 * Syntax beyond inih's: an entry may stand behind its header, `[host] quota = 5/s`, so that a
 * whole setting fits on a command line; and a comment behind a value may begin with a blank and #.
 */
#ifndef CURTSY_CORE_CONFIG_READER_H
#define CURTSY_CORE_CONFIG_READER_H

#include <stdbool.h>
#include <stddef.h>

#define CONFIG_KEY_LENGTH_MAX 49
#define CONFIG_SECTION_LENGTH_MAX 1000

enum config_line_kind {
    CONFIG_LINE_SECTION,          /* text: what is between the brackets, without blanks around it */
    CONFIG_LINE_SECTION_OF_ENTRY, /* the same, of a header with an entry behind it */
    CONFIG_LINE_BAD_SECTION,      /* text: what is wrong with this header */
    CONFIG_LINE_ENTRY,            /* key and text: the value, without blanks around it; may be empty */
    CONFIG_LINE_FAULT,            /* text: what is wrong with this line */
};

struct config_line {
    enum config_line_kind kind;
    unsigned number; /* from 1 */
    const char *key; /* of an entry */
    const char *text;
};

/* The strings are the reader's, for the time of the call.  False: stop. */
typedef bool config_line_sink(void *context, const struct config_line *line);

/* False when out of memory, or when the sink said stop. */
bool config_reader_run(const char *text, size_t length, config_line_sink *sink, void *context);

#endif
