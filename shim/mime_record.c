/* SPDX-License-Identifier: MIT */
/*
 * The records of mime structures, and what they prove.
 */
#include "shim/mime_record.h"

#include "shim/handle_table.h"

#include "core/hash.h"
#include "core/system/file_identity.h"

#include <stdio.h>
#include <string.h>

#define NESTING_MAX 64

enum content {
    CONTENT_ONCE, /* cannot be proven to be the same a second time */
    CONTENT_REPEATED,
    CONTENT_CALLBACK, /* that says that it can begin again */
    CONTENT_FILE,
    CONTENT_NESTED,
};

struct mime_record {
    struct handle_entry entry;
    const struct real *real;
    uint64_t changes; /* of the structure and of its parts */
    struct part_record *parts;
    struct part_record *parent; /* the part that it is the content of */
    bool is_incomplete;         /* a part of it could not be recorded */
};

struct part_record {
    struct handle_entry entry;
    struct mime_record *owner;
    struct part_record *next; /* of the same structure */
    const struct curl_slist *headers;
    enum content content;
    curl_seek_callback seek; /* CONTENT_CALLBACK, the program's */
    void *seek_argument;
    char *path;                 /* CONTENT_FILE, with what it was when it was */
    uint64_t identity;          /* first looked at... */
    bool was_looked_at;         /* ...if it ever was */
    struct mime_record *nested; /* CONTENT_NESTED */
};

static struct handle_table structures, parts;

/* One that is put together at the address of an earlier one is another. */
static _Atomic uint64_t structures_ever;

struct mime_record *mime_record_of(const curl_mime *mime)
{
    return handle_find(&structures, mime);
}

struct part_record *part_record_of(const curl_mimepart *part)
{
    return handle_find(&parts, part);
}

const struct real *mime_record_real(const struct mime_record *mime)
{
    return mime->real;
}

const struct real *part_record_real(const struct part_record *part)
{
    return part->owner->real;
}

/* ------------------------------------------------------------------ life and death ---- */

void part_record_empty(struct part_record *part)
{
    free(part->path);
    part->path = NULL;
    part->was_looked_at = false;
    if (part->nested)
        mime_record_end(part->nested);
    part->nested = NULL;
    part->content = CONTENT_ONCE;
    part->owner->changes++;
}

static void unlink_part(struct part_record *part)
{
    struct part_record **link = &part->owner->parts;
    while (*link && *link != part)
        link = &(*link)->next;
    if (*link)
        *link = part->next;
}

void part_record_end(struct part_record *part)
{
    if (!part)
        return;
    part_record_empty(part);
    unlink_part(part);
    handle_give_up(&part->entry);
}

/* Structures are not nested more deeply than the program has built them.  The part that one is the
 * content of is left without any. */
void mime_record_end(struct mime_record *mime)
{
    if (!mime)
        return;
    while (mime->parts)
        part_record_end(mime->parts);
    if (mime->parent) {
        mime->parent->nested = NULL;
        mime->parent->content = CONTENT_ONCE;
        mime->parent->owner->changes++;
    }
    handle_give_up(&mime->entry);
}

void mime_record_new(const curl_mime *handle, const struct real *real)
{
    mime_record_end(mime_record_of(handle));
    struct mime_record *mime = handle_add(&structures, handle, sizeof *mime);
    if (!mime)
        return;
    mime->real = real;
    mime->changes = atomic_fetch_add_explicit(&structures_ever, 1, memory_order_relaxed) << 32;
    mime->parts = NULL;
    mime->parent = NULL;
    mime->is_incomplete = false;
}

void part_record_new(const curl_mimepart *handle, struct mime_record *owner)
{
    part_record_end(part_record_of(handle));
    struct part_record *part = handle_add(&parts, handle, sizeof *part);
    owner->changes++;
    owner->is_incomplete = owner->is_incomplete || !part;
    if (!part)
        return;
    part->owner = owner;
    part->next = owner->parts;
    part->headers = NULL;
    part->content = CONTENT_ONCE;
    part->path = NULL;
    part->was_looked_at = false;
    part->nested = NULL;
    owner->parts = part;
}

/* ------------------------------------------------------------------------- content ---- */

void part_record_touch(struct part_record *part)
{
    part->owner->changes++;
}

void part_record_headers(struct part_record *part, const struct curl_slist *headers)
{
    part->headers = headers;
    part->owner->changes++;
}

void part_record_file(struct part_record *part, const char *path)
{
    part->path = strdup(path);
    part->content = part->path ? CONTENT_FILE : CONTENT_ONCE;
}

void part_record_repeat(struct part_record *part)
{
    part->content = CONTENT_REPEATED;
}

void part_record_callback(struct part_record *part, curl_seek_callback seek, void *argument)
{
    part->content = CONTENT_CALLBACK;
    part->seek = seek;
    part->seek_argument = argument;
}

void part_record_nest(struct part_record *part, struct mime_record *nested)
{
    part->content = nested ? CONTENT_NESTED : CONTENT_ONCE;
    part->nested = nested;
    if (nested)
        nested->parent = part;
}

bool part_record_nests(const struct part_record *part, const struct mime_record *nested)
{
    return nested && part->nested == nested;
}

/* ------------------------------------------------------------------------ evidence ---- */

static bool add_structure(uint64_t *evidence, struct mime_record *mime, unsigned depth);

/* A file that libcurl did not read to its end is kept open, also for the next transfer; and read again
 * from its path after that.  So the one to be sent is only known as long as there has been but one. */
static bool add_file(uint64_t *evidence, struct part_record *part)
{
    uint64_t identity = HASH_START;
    if (!file_identity_add(&identity, part->path) || (part->was_looked_at && identity != part->identity))
        return false;
    part->identity = identity;
    part->was_looked_at = true;
    *evidence = hash_number(*evidence, identity);
    return true;
}

static bool add_part(uint64_t *evidence, struct part_record *part, unsigned depth)
{
    /* The program's own, and read anew each time. */
    for (const struct curl_slist *header = part->headers; header; header = header->next)
        *evidence = hash_text(hash_number(*evidence, strlen(header->data)), header->data);
    switch (part->content) {
    case CONTENT_ONCE:
        return false;
    case CONTENT_REPEATED:
    case CONTENT_CALLBACK:
        return true;
    case CONTENT_FILE:
        return add_file(evidence, part);
    case CONTENT_NESTED:
        return add_structure(evidence, part->nested, depth + 1);
    }
    return false;
}

static bool add_structure(uint64_t *evidence, struct mime_record *mime, unsigned depth)
{
    if (!mime || mime->is_incomplete || depth > NESTING_MAX)
        return false;
    *evidence = hash_number(*evidence, mime->changes);
    for (struct part_record *part = mime->parts; part; part = part->next)
        if (!add_part(evidence, part, depth))
            return false;
    return true;
}

bool mime_evidence(const curl_mime *mime, uint64_t *evidence)
{
    *evidence = HASH_START;
    return add_structure(evidence, mime_record_of(mime), 0);
}

/* ------------------------------------------------------------------ beginning again ---- */

static bool structure_begins_again(const struct mime_record *mime)
{
    for (const struct part_record *part = mime ? mime->parts : NULL; part; part = part->next) {
        if (part->content == CONTENT_CALLBACK && part->seek(part->seek_argument, 0, SEEK_SET) != CURL_SEEKFUNC_OK)
            return false;
        if (part->content == CONTENT_NESTED && !structure_begins_again(part->nested))
            return false;
    }
    return true;
}

bool mime_begins_again(const curl_mime *mime)
{
    return structure_begins_again(mime_record_of(mime));
}
