/* SPDX-License-Identifier: MIT */
/*
 * The hooks that build mime structures: each goes to the libcurl that the structure belongs to, and its
 * record is kept (mime_record.h).  A content is given up before libcurl is asked to replace it, and a
 * structure's record before libcurl frees it.
 *
 * libcurl calls some of these for itself: it makes a structure of a CURLOPT_HTTPPOST list at each perform,
 * and of a duplicated handle's, and frees them without asking here.  Of those nothing is recorded.
 */
#include "shim/mime.h"

#include "shim/mime_record.h"
#include "shim/real.h"
#include "shim/runtime.h"
#include "shim/transfer.h"

/* Of a part that is known, its structure's libcurl; else the one that the caller would have reached. */
static const struct real *real_of_part(const struct part_record *part, const void *caller)
{
    return part ? part_record_real(part) : real_of_caller(caller);
}

EXPORTED curl_mime *curl_mime_init(CURL *easy)
{
    const void *caller = __builtin_return_address(0);
    const struct real *real = transfer_real(easy, caller);
    if (!real || !real->curl_mime_init)
        return NULL;
    curl_mime *mime = real->curl_mime_init(easy);
    if (mime && !runtime_is_off() && !real_caller_is_libcurl(caller))
        mime_record_new(mime, real);
    else
        mime_record_end(mime_record_of(mime));
    return mime;
}

EXPORTED void curl_mime_free(curl_mime *handle)
{
    struct mime_record *mime = mime_record_of(handle);
    const struct real *real = mime ? mime_record_real(mime) : real_of_caller(__builtin_return_address(0));
    mime_record_end(mime);
    if (real && real->curl_mime_free)
        real->curl_mime_free(handle);
}

EXPORTED curl_mimepart *curl_mime_addpart(curl_mime *handle)
{
    struct mime_record *mime = mime_record_of(handle);
    const struct real *real = mime ? mime_record_real(mime) : real_of_caller(__builtin_return_address(0));
    if (!real || !real->curl_mime_addpart)
        return NULL;
    curl_mimepart *part = real->curl_mime_addpart(handle);
    if (mime && part)
        part_record_new(part, mime);
    else
        part_record_end(part_record_of(part));
    return part;
}

EXPORTED CURLcode curl_mime_data(curl_mimepart *handle, const char *data, size_t size)
{
    struct part_record *part = part_record_of(handle);
    const struct real *real = real_of_part(part, __builtin_return_address(0));
    if (!real || !real->curl_mime_data)
        return CURLE_FAILED_INIT;
    if (part)
        part_record_empty(part);
    CURLcode code = real->curl_mime_data(handle, data, size);
    if (part && data && code == CURLE_OK)
        part_record_repeat(part);
    return code;
}

/* Where libcurl cannot read the file by then, it keeps the path all the same, but will not begin again. */
EXPORTED CURLcode curl_mime_filedata(curl_mimepart *handle, const char *path)
{
    struct part_record *part = part_record_of(handle);
    const struct real *real = real_of_part(part, __builtin_return_address(0));
    if (!real || !real->curl_mime_filedata)
        return CURLE_FAILED_INIT;
    if (part)
        part_record_empty(part);
    CURLcode code = real->curl_mime_filedata(handle, path);
    if (part && path && code == CURLE_OK)
        part_record_file(part, path);
    return code;
}

EXPORTED CURLcode curl_mime_data_cb(curl_mimepart *handle, curl_off_t size, curl_read_callback read,
                                    curl_seek_callback seek, curl_free_callback free_it, void *argument)
{
    struct part_record *part = part_record_of(handle);
    const struct real *real = real_of_part(part, __builtin_return_address(0));
    if (!real || !real->curl_mime_data_cb)
        return CURLE_FAILED_INIT;
    if (part)
        part_record_empty(part);
    CURLcode code = real->curl_mime_data_cb(handle, size, read, seek, free_it, argument);
    if (part && read && seek && code == CURLE_OK)
        part_record_callback(part, seek, argument);
    return code;
}

EXPORTED CURLcode curl_mime_subparts(curl_mimepart *handle, curl_mime *subparts)
{
    struct part_record *part = part_record_of(handle);
    struct mime_record *nested = mime_record_of(subparts);
    const struct real *real = real_of_part(part, __builtin_return_address(0));
    if (!real || !real->curl_mime_subparts)
        return CURLE_FAILED_INIT;
    if (part && part_record_nests(part, nested)) /* libcurl leaves it as it is */
        return real->curl_mime_subparts(handle, subparts);
    if (part)
        part_record_empty(part);
    CURLcode code = real->curl_mime_subparts(handle, subparts);
    if (part && code == CURLE_OK && subparts)
        part_record_nest(part, nested);
    return code;
}

EXPORTED CURLcode curl_mime_headers(curl_mimepart *handle, struct curl_slist *headers, int take_ownership)
{
    struct part_record *part = part_record_of(handle);
    const struct real *real = real_of_part(part, __builtin_return_address(0));
    if (!real || !real->curl_mime_headers)
        return CURLE_FAILED_INIT;
    if (part)
        part_record_headers(part, headers);
    return real->curl_mime_headers(handle, headers, take_ownership);
}

/* The rest of what makes a part, of which libcurl has its own copies. */
#define PART_HOOK(name)                                                                                                \
    EXPORTED CURLcode name(curl_mimepart *handle, const char *text)                                                    \
    {                                                                                                                  \
        struct part_record *part = part_record_of(handle);                                                             \
        const struct real *real = real_of_part(part, __builtin_return_address(0));                                     \
        if (!real || !real->name)                                                                                      \
            return CURLE_FAILED_INIT;                                                                                  \
        if (part)                                                                                                      \
            part_record_touch(part);                                                                                   \
        return real->name(handle, text);                                                                               \
    }

PART_HOOK(curl_mime_name)
PART_HOOK(curl_mime_filename)
PART_HOOK(curl_mime_type)
PART_HOOK(curl_mime_encoder)
