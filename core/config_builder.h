/* SPDX-License-Identifier: MIT */
/*
 * Config, private: the builder, for the files that config.h is made of.
 *
 *     config.c           layers and sections
 *     config_entry.c     what stands in a section: values, and keys that are unknown or misplaced
 *     config_matcher.c   hosts, methods, programs, credential
 *
 * A builder goes through its layers line by line.  A header makes a section or finds the one of that
 * name (by hash: there may be ten thousand); an entry is a matcher, a key of a policy or a setting
 * of Curtsy's own, and is stored with the file and line it came from.  Since a later layer simply
 * overwrites, "which one won" is what is there at the end.
 */
#ifndef CURTSY_CORE_CONFIG_BUILDER_H
#define CURTSY_CORE_CONFIG_BUILDER_H

#include "core/arena.h"
#include "core/config.h"
#include "core/config_reader.h"

/* The config that users see, and the memory that its texts and lists are in. */
struct owned_config {
    struct config config; /* first, so that config_free finds the whole */
    struct arena arena;
};

/* What only the builder needs to know about a section. */
struct draft {
    struct origin match_origins[MATCH_KEY_COUNT];
    struct origin last; /* header */
    uint64_t hash;      /* of its name */
};

enum place {
    PLACE_NONE, /* before the first header */
    PLACE_BAD,  /* below a header that could not be read: its entries go nowhere */
    PLACE_CURTSY,
    PLACE_SECTION,
};

struct config_builder {
    diagnostic_sink *sink;
    void *sink_context;
    struct owned_config *owned;
    struct draft *drafts; /* one for each section */
    unsigned capacity;    /* of sections and drafts */
    unsigned *table;      /* by hash of the name: a section's index + 1; 0 is free */
    unsigned table_size;  /* a power of two, at least twice the capacity */
    unsigned mentions;    /* of sections, so far: gives their order */
    bool out_of_memory;

    /* Where the reader is. */
    const char *file; /* a copy of its own for each layer, so that the pointer names the layer */
    enum layer_kind kind;
    enum place place;
    struct origin last_curtsy; /* header of [curtsy] */
    unsigned section;          /* its index, in PLACE_SECTION */
};

/* One diagnostic, at that line of the layer under way. */
__attribute__((format(printf, 4, 5))) void builder_report(struct config_builder *builder, enum severity severity,
                                                          unsigned line, const char *format, ...);

/* How many bytes of a text a message repeats, `most` of them at most, and no half of a character. */
size_t builder_shown(const char *text, size_t length, size_t most);

/* Memory that lives as long as the config; when there is none, NULL, and the builder knows. */
void *builder_allocate(struct config_builder *builder, size_t count, size_t size);
char *builder_copy(struct config_builder *builder, const char *text);

struct section *builder_section(struct config_builder *builder);

/* Stores an entry where it belongs, or reports it. */
void builder_take_entry(struct config_builder *builder, const struct config_line *line);

/* Reads the value of `key` into `field`, which stays as it is if the value is bad: then false. */
bool builder_store_value(struct config_builder *builder, const struct key *key, const struct config_line *line,
                         void *field);

/* A good value was stored: from here on it is this line's. */
void builder_note_origin(struct config_builder *builder, const struct key *key, const struct config_line *line,
                         struct origin *origin);

/* Stores a matcher of the current section, which is not [default]. */
void builder_take_matcher(struct config_builder *builder, const struct key *key, const struct config_line *line);

#endif
