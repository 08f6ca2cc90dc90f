/* SPDX-License-Identifier: MIT */
/*
 * The list of CURLOPT_HTTPPOST, which libcurl makes a mime structure of at each perform, as its
 * documentation of curl_formadd says.
 */
#include "shim/mime.h"

#include "core/hash.h"
#include "core/system/file_identity.h"

#include <string.h>

/* The sections that are made of files have a list of their own, each with the flags of the first. */
static bool add_files(uint64_t *evidence, const struct curl_httppost *section)
{
    for (const struct curl_httppost *file = section; file; file = file->more)
        if (!file->contents || strcmp(file->contents, "-") == 0 /* standard input */
            || !file_identity_add(evidence, file->contents))
            return false;
    return true;
}

static uint64_t hash_memory(uint64_t hash, const char *memory, size_t size)
{
    if (!memory)
        return hash;
    return size ? hash_bytes(hash, memory, size) : hash_text(hash, memory);
}

static bool add_section(uint64_t *evidence, const struct curl_httppost *section)
{
    if (section->flags & (CURL_HTTPPOST_FILENAME | CURL_HTTPPOST_READFILE))
        return add_files(evidence, section);
    if (section->flags & CURL_HTTPPOST_BUFFER) {
        size_t size = section->bufferlength > 0 ? (size_t)section->bufferlength : 0;
        *evidence = hash_memory(*evidence, section->buffer, size);
        return true;
    }
    if (section->flags & CURL_HTTPPOST_CALLBACK) /* CURLFORM_STREAM: no way to begin again */
        return false;
    curl_off_t size = section->flags & CURL_HTTPPOST_LARGE ? section->contentlen : section->contentslength;
    for (const struct curl_httppost *part = section; part; part = part->more)
        *evidence = hash_memory(*evidence, part->contents, size > 0 ? (size_t)size : 0);
    return true;
}

bool form_evidence(const struct curl_httppost *form, uint64_t *evidence)
{
    *evidence = HASH_START;
    for (const struct curl_httppost *section = form; section; section = section->next) {
        *evidence = hash_number(*evidence, (uint64_t)section->flags);
        if (!add_section(evidence, section))
            return false;
    }
    return true;
}
