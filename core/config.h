/* SPDX-License-Identifier: MIT */
/*
 * Configuration: INI texts in, one immutable set of sections out, with the file and line of every
 * value.  Reading files is core/system/config_files.h; which section speaks for a request is
 * core/policy.h.
 *
 * inih does the INI syntax.  Its packaged build cuts section and key names at 49 characters and
 * lines at 199 without a word, gives no line numbers, reads an indented `key = value` as more of
 * the line above and `[[::1]:8443]` as `[::1`: a reader in front of it takes care of all of that,
 * so that no user ever meets it.  CRLF and a UTF-8 byte order mark are accepted.
 *
 * Nothing is lost on bad input: a bad value or an unknown key is one diagnostic, that key
 * inherits, and the rest holds.
 *
 * A config is immutable once finished: any number of threads may read it.  A builder belongs to
 * one thread.  Both own copies of everything that they were given.
 */
#ifndef CURTSY_CORE_CONFIG_H
#define CURTSY_CORE_CONFIG_H

#include "core/keys.h"

enum severity {
    SEVERITY_WARNING,
    SEVERITY_ERROR,
    SEVERITY_NOTE, /* no fault: worth knowing.  Only from `curtsy check`, never from a builder. */
};

/* One fault.  `message` says what was found and what was expected; it names no secret.  Printed
 * as "FILE:LINE: message".  line 0: the file as a whole. */
struct diagnostic {
    enum severity severity;
    const char *file;
    unsigned line;
    const char *message;
};
typedef void diagnostic_sink(void *context, const struct diagnostic *diagnostic);

/* Where a value came from.  file is NULL for a built-in default. */
struct origin {
    const char *file;
    unsigned line;
};

/* What a section speaks for, taken apart.  Host patterns are lower case, without trailing dot. */
struct host_pattern {
    const char *host; /* "api.example.com", "*.example.com", "::1" (no brackets); "*" any host */
    uint16_t port;    /* 0: every port */
};

struct section {
    const char *name;     /* what is between the brackets; the same for every spelling of one host */
    const char *label;    /* of [host "label"], or NULL */
    struct origin origin; /* of its first header; file NULL for the built-in [default] */
    unsigned order;       /* of its last header over all layers: later wins between equals */

    struct host_pattern *patterns; /* the header's own first, then `hosts`; empty for [default] */
    unsigned pattern_count;
    bool groups_hosts;           /* `hosts` was given: all of the patterns share one bucket */
    const char *path;            /* "/v1/search", `*` within a segment; NULL: every path */
    const char *const *methods;  /* upper case, NULL-terminated; NULL: every method */
    const char *const *programs; /* NULL-terminated; an entry may begin with '!'; NULL: every one */
    int credential;              /* enum credential_match, or -1: either */

    struct policy values; /* only the fields whose `set` is true mean something */
    bool set[POLICY_KEY_COUNT];
    struct origin origins[POLICY_KEY_COUNT];
};

struct config {
    struct settings settings;
    struct origin settings_origins[CURTSY_KEY_COUNT];
    struct section *sections; /* [default] of every layer merged into the first, always there */
    unsigned section_count;
    struct policy_index *index; /* made by policy_index_build; owned by the config */
    void *arena;                /* private */
};

struct config_builder;

/* NULL when out of memory.  Diagnostics of everything added go to `sink` (may be NULL). */
struct config_builder *config_builder_new(diagnostic_sink *sink, void *sink_context);

/* What a layer's text is. */
enum layer_kind {
    LAYER_FILE,
    LAYER_PRESET, /* a file that `presets` in another one names: what it says about `presets` itself is ignored */
    LAYER_SET,    /* CURTSY_SET: what stands in it before any section belongs to [default] */
};

/* Adds one layer's text; later layers win key by key.  `file` names it in messages.  The same
 * section in two layers is one section; quota and rate, which exclude each other, win as one.  False
 * when out of memory. */
bool config_builder_add_layer(struct config_builder *builder, enum layer_kind kind, const char *file, const char *text,
                              size_t length);

/* The same of a LAYER_FILE. */
bool config_builder_add(struct config_builder *builder, const char *file, const char *text, size_t length);

/* The result, or NULL when out of memory; the builder is freed either way. */
struct config *config_builder_finish(struct config_builder *builder);

/* config_free(NULL) is allowed. */
void config_free(struct config *config);

#endif
