/* SPDX-License-Identifier: MIT */
/*
 * The hooks that build mime structures, and what is noted of each part.  A part's content is given up before
 * libcurl is asked to replace it, and a structure's record before libcurl frees it.
 */
#include "shim/mime.h"

#include "shim/handle_table.h"
#include "shim/real.h"
#include "shim/transfer.h"

#include "core/hash.h"
#include "core/system/file_identity.h"

#include <string.h>

#define NESTING_MAX 64

enum content {
    CONTENT_MEMORY, /* libcurl's own copy, or nothing */
    CONTENT_FILE,
    CONTENT_CALLBACK, /* that can begin again */
    CONTENT_NESTED,
    CONTENT_ONCE, /* cannot be proven to be the same a second time */
};

struct mime {
    struct handle_entry entry;
    const struct real *real;
    uint64_t changes; /* of the structure and of its parts */
    struct part *parts;
    struct part *parent; /* the part that it is the content of */
    bool is_incomplete;  /* a part of it could not be recorded */
};

struct part {
    struct handle_entry entry;
    struct mime *owner;
    struct part *next; /* of the same structure */
    enum content content;
    char *path;          /* CONTENT_FILE */
    struct mime *nested; /* CONTENT_NESTED; NULL: of a structure that is not known */
};

static struct handle_table structures, parts;

static struct mime *find_structure(const curl_mime *handle)
{
    return handle ? handle_find(&structures, handle) : NULL;
}

static struct part *find_part(const curl_mimepart *handle)
{
    return handle ? handle_find(&parts, handle) : NULL;
}

/* --------------------------------------------------------------------- records ---- */

static void forget_structure(struct mime *mime);

static void forget_content(struct part *part)
{
    free(part->path);
    part->path = NULL;
    if (part->nested)
        forget_structure(part->nested);
    part->nested = NULL;
    part->content = CONTENT_MEMORY;
    part->owner->changes++;
}

static void forget_part(struct part *part)
{
    forget_content(part);
    handle_give_up(&part->entry);
}

/* Structures are not nested more deeply than the program has built them. */
static void forget_structure(struct mime *mime)
{
    while (mime->parts) {
        struct part *part = mime->parts;
        mime->parts = part->next;
        forget_part(part);
    }
    if (mime->parent) {
        mime->parent->nested = NULL;
        mime->parent->content = CONTENT_MEMORY;
    }
    mime->parent = NULL;
    handle_give_up(&mime->entry);
}

/* One that libcurl freed behind our back may have left its record. */
static void note_structure(const curl_mime *handle, const struct real *real)
{
    struct mime *mime = find_structure(handle);
    if (mime)
        forget_structure(mime);
    mime = handle_add(&structures, handle, sizeof *mime);
    if (!mime)
        return;
    mime->real = real;
    mime->changes = 0;
    mime->parts = NULL;
    mime->parent = NULL;
    mime->is_incomplete = false;
}

static void unlink_part(struct part *part)
{
    struct part **link = &part->owner->parts;
    while (*link && *link != part)
        link = &(*link)->next;
    if (*link)
        *link = part->next;
}

static void note_part(const curl_mimepart *handle, struct mime *owner)
{
    struct part *part = find_part(handle);
    if (part) {
        unlink_part(part);
        forget_part(part);
    }
    part = handle_add(&parts, handle, sizeof *part);
    owner->changes++;
    owner->is_incomplete = owner->is_incomplete || !part;
    if (!part)
        return;
    part->owner = owner;
    part->next = owner->parts;
    part->content = CONTENT_MEMORY;
    part->path = NULL;
    part->nested = NULL;
    owner->parts = part;
}

static void note_file(struct part *part, const char *path)
{
    part->path = strdup(path);
    part->content = part->path ? CONTENT_FILE : CONTENT_ONCE;
}

static void note_nested(struct part *part, struct mime *nested)
{
    part->content = nested ? CONTENT_NESTED : CONTENT_ONCE;
    part->nested = nested;
    if (nested)
        nested->parent = part;
}

/* -------------------------------------------------------------------- evidence ---- */

static bool add_structure(uint64_t *evidence, const struct mime *mime, unsigned depth);

static bool add_part(uint64_t *evidence, const struct part *part, unsigned depth)
{
    switch (part->content) {
    case CONTENT_MEMORY:
    case CONTENT_CALLBACK:
        return true;
    case CONTENT_FILE:
        return file_identity_add(evidence, part->path);
    case CONTENT_NESTED:
        return add_structure(evidence, part->nested, depth + 1);
    case CONTENT_ONCE:
        break;
    }
    return false;
}

static bool add_structure(uint64_t *evidence, const struct mime *mime, unsigned depth)
{
    if (!mime || mime->is_incomplete || depth > NESTING_MAX)
        return false;
    *evidence = hash_number(*evidence, mime->changes);
    for (const struct part *part = mime->parts; part; part = part->next)
        if (!add_part(evidence, part, depth))
            return false;
    return true;
}

bool mime_evidence(const curl_mime *mime, uint64_t *evidence)
{
    *evidence = HASH_START;
    return add_structure(evidence, find_structure(mime), 0);
}

/* ----------------------------------------------------------------------- hooks ---- */

/* Of a part that is known, its structure's libcurl; else the one that the caller would have reached. */
static const struct real *real_of_part(const struct part *part, const void *caller)
{
    return part ? part->owner->real : real_of_caller(caller);
}

EXPORTED curl_mime *curl_mime_init(CURL *easy)
{
    const void *caller = __builtin_return_address(0);
    const struct real *real = transfer_real(easy, caller);
    if (!real || !real->curl_mime_init)
        return NULL;
    curl_mime *mime = real->curl_mime_init(easy);
    /* libcurl builds some for itself, too, and frees them without asking here. */
    if (mime && !real_caller_is_libcurl(caller))
        note_structure(mime, real);
    return mime;
}

EXPORTED void curl_mime_free(curl_mime *handle)
{
    struct mime *mime = find_structure(handle);
    const struct real *real = mime ? mime->real : real_of_caller(__builtin_return_address(0));
    if (mime)
        forget_structure(mime);
    if (real && real->curl_mime_free)
        real->curl_mime_free(handle);
}

EXPORTED curl_mimepart *curl_mime_addpart(curl_mime *handle)
{
    struct mime *mime = find_structure(handle);
    const struct real *real = mime ? mime->real : real_of_caller(__builtin_return_address(0));
    if (!real || !real->curl_mime_addpart)
        return NULL;
    curl_mimepart *part = real->curl_mime_addpart(handle);
    if (mime && part)
        note_part(part, mime);
    return part;
}

EXPORTED CURLcode curl_mime_data(curl_mimepart *handle, const char *data, size_t size)
{
    struct part *part = find_part(handle);
    const struct real *real = real_of_part(part, __builtin_return_address(0));
    if (!real || !real->curl_mime_data)
        return CURLE_FAILED_INIT;
    if (part)
        forget_content(part);
    return real->curl_mime_data(handle, data, size);
}

EXPORTED CURLcode curl_mime_filedata(curl_mimepart *handle, const char *path)
{
    struct part *part = find_part(handle);
    const struct real *real = real_of_part(part, __builtin_return_address(0));
    if (!real || !real->curl_mime_filedata)
        return CURLE_FAILED_INIT;
    if (part)
        forget_content(part);
    CURLcode code = real->curl_mime_filedata(handle, path);
    if (part && path)
        note_file(part, path);
    return code;
}

EXPORTED CURLcode curl_mime_data_cb(curl_mimepart *handle, curl_off_t size, curl_read_callback read,
                                    curl_seek_callback seek, curl_free_callback free_it, void *argument)
{
    struct part *part = find_part(handle);
    const struct real *real = real_of_part(part, __builtin_return_address(0));
    if (!real || !real->curl_mime_data_cb)
        return CURLE_FAILED_INIT;
    if (part)
        forget_content(part);
    CURLcode code = real->curl_mime_data_cb(handle, size, read, seek, free_it, argument);
    if (part && read)
        part->content = seek ? CONTENT_CALLBACK : CONTENT_ONCE;
    return code;
}

EXPORTED CURLcode curl_mime_subparts(curl_mimepart *handle, curl_mime *subparts)
{
    struct part *part = find_part(handle);
    struct mime *nested = find_structure(subparts);
    const struct real *real = real_of_part(part, __builtin_return_address(0));
    if (!real || !real->curl_mime_subparts)
        return CURLE_FAILED_INIT;
    bool is_the_same = part && nested && part->nested == nested; /* libcurl leaves it as it is */
    if (part && !is_the_same)
        forget_content(part);
    CURLcode code = real->curl_mime_subparts(handle, subparts);
    if (part && !is_the_same && code == CURLE_OK && subparts)
        note_nested(part, nested);
    return code;
}

/* The rest of what makes a part. */
#define PART_HOOK(name, parameters, arguments)                                                                         \
    EXPORTED CURLcode name parameters                                                                                  \
    {                                                                                                                  \
        struct part *part = find_part(handle);                                                                         \
        const struct real *real = real_of_part(part, __builtin_return_address(0));                                     \
        if (!real || !real->name)                                                                                      \
            return CURLE_FAILED_INIT;                                                                                  \
        if (part)                                                                                                      \
            part->owner->changes++;                                                                                    \
        return real->name arguments;                                                                                   \
    }

PART_HOOK(curl_mime_name, (curl_mimepart * handle, const char *name), (handle, name))
PART_HOOK(curl_mime_filename, (curl_mimepart * handle, const char *name), (handle, name))
PART_HOOK(curl_mime_type, (curl_mimepart * handle, const char *type), (handle, type))
PART_HOOK(curl_mime_encoder, (curl_mimepart * handle, const char *encoding), (handle, encoding))
PART_HOOK(curl_mime_headers, (curl_mimepart * handle, struct curl_slist *headers, int take_ownership),
          (handle, headers, take_ownership))
