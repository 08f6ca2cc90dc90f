/* SPDX-License-Identifier: MIT */
/*
 * The list of CURLOPT_HTTPPOST, which libcurl makes a mime structure of at each perform, in its
 * Curl_getformdata: a section's own flags say what it and its further files (`more`) are made of, and of a
 * pointer the program's memory is read each time.
 */
#include "shim/mime.h"

#include "core/hash.h"
#include "core/system/file_identity.h"

#include <string.h>

static void add_memory(uint64_t *evidence, const char *memory, size_t size)
{
    *evidence = hash_bytes(hash_number(*evidence, size), memory, size);
}

/* A size of 0, or the word for it, has libcurl look for the end. */
static bool add_sized(uint64_t *evidence, const char *memory, curl_off_t size)
{
    if (!memory)
        return true;
    if (size < -1) /* more than there can be */
        return false;
    add_memory(evidence, memory, size > 0 ? (size_t)size : strlen(memory));
    return true;
}

/* Each with the flags of the first. */
static bool add_files(uint64_t *evidence, const struct curl_httppost *section)
{
    for (const struct curl_httppost *file = section; file; file = file->more)
        if (!file->contents || strcmp(file->contents, "-") == 0 /* standard input */
            || !file_identity_add(evidence, file->contents))
            return false;
    return true;
}

static bool add_content(uint64_t *evidence, const struct curl_httppost *section)
{
    if (section->flags & (CURL_HTTPPOST_FILENAME | CURL_HTTPPOST_READFILE))
        return add_files(evidence, section);
    if (section->flags & CURL_HTTPPOST_BUFFER)
        return add_sized(evidence, section->buffer, section->bufferlength);
    if (section->flags & CURL_HTTPPOST_CALLBACK) /* CURLFORM_STREAM: no way to begin again */
        return false;
    curl_off_t size = section->flags & CURL_HTTPPOST_LARGE ? section->contentlen : section->contentslength;
    return add_sized(evidence, section->contents, size);
}

/* The lists of headers stay the program's own. */
static void add_headers(uint64_t *evidence, const struct curl_httppost *section)
{
    for (const struct curl_httppost *file = section; file; file = file->more)
        for (const struct curl_slist *header = file->contentheader; header; header = header->next)
            add_memory(evidence, header->data, strlen(header->data));
}

static bool add_section(uint64_t *evidence, const struct curl_httppost *section)
{
    *evidence = hash_number(*evidence, (uint64_t)section->flags);
    add_headers(evidence, section);
    return add_sized(evidence, section->name, section->namelength) && add_content(evidence, section);
}

bool form_evidence(const struct curl_httppost *form, uint64_t *evidence)
{
    *evidence = HASH_START;
    for (const struct curl_httppost *section = form; section; section = section->next)
        if (!add_section(evidence, section))
            return false;
    return true;
}
