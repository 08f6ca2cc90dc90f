/* SPDX-License-Identifier: MIT */
/*
 * The easy interface, but for curl_easy_perform: the hooks that keep each handle's record and pass
 * on.
 */
#include "shim/first_response.h"
#include "shim/governed.h"
#include "shim/real.h"
#include "shim/resume.h"
#include "shim/transfer.h"

#include <stdarg.h>

/* ---------------------------------------------------------- the life of a handle ---- */

EXPORTED CURL *curl_easy_init(void)
{
    const void *caller = __builtin_return_address(0);
    const struct real *real = real_of_caller(caller);
    if (!real)
        return NULL;
    CURL *handle = real->curl_easy_init();
    /* libcurl makes handles for itself too, which it never hands out. */
    if (handle && !runtime_is_off() && !real_caller_is_libcurl(caller))
        transfer_new(handle, real);
    return handle;
}

EXPORTED void curl_easy_cleanup(CURL *handle)
{
    struct transfer *transfer = transfer_find(handle);
    const struct real *real = transfer ? transfer->real : real_of_caller(__builtin_return_address(0));
    if (!real)
        return;
    /* First, since the address may be given out again the moment it is free. */
    if (transfer) {
        overrides_undo(transfer);
        transfer_forget(transfer);
    }
    real->curl_easy_cleanup(handle);
}

/* -------------------------------------------------------------------- settings ---- */

EXPORTED CURLcode curl_easy_setopt(CURL *handle, CURLoption option, ...)
{
    va_list arguments;
    va_start(arguments, option);
    void *argument = va_arg(arguments, void *); /* LP64: see passthrough.c */
    va_end(arguments);

    struct transfer *transfer = transfer_find(handle);
    if (!transfer) {
        const struct real *real = real_of_caller(__builtin_return_address(0));
        return real ? real->curl_easy_setopt(handle, option, argument) : CURLE_FAILED_INIT;
    }
    if (overrides_include(transfer, option)) {
        transfer_note_option(transfer, option, argument);
        return CURLE_OK;
    }
    CURLcode code = transfer->real->curl_easy_setopt(handle, option, argument);
    if (code == CURLE_OK) {
        transfer_note_option(transfer, option, argument);
        if (governed_is_active(transfer))
            overrides_follow(transfer, option);
    }
    return code;
}

EXPORTED void curl_easy_reset(CURL *handle)
{
    struct transfer *transfer = transfer_find(handle);
    const struct real *real = transfer ? transfer->real : real_of_caller(__builtin_return_address(0));
    if (!real)
        return;
    real->curl_easy_reset(handle);
    if (!transfer)
        return;
    transfer_reset(transfer);
    overrides_after_reset(transfer);
}

EXPORTED CURL *curl_easy_duphandle(CURL *handle)
{
    struct transfer *transfer = transfer_find(handle);
    const struct real *real = transfer ? transfer->real : real_of_caller(__builtin_return_address(0));
    if (!real)
        return NULL;
    CURL *copy = real->curl_easy_duphandle(handle);
    if (!copy || !transfer)
        return copy;
    overrides_undo_on_copy(transfer, copy);
    transfer_copy(transfer, copy);
    return copy;
}

/* -------------------------------------------------------------- what it came to ---- */

/* Before an attempt has had an answer that may be the program's, what tells of a transfer must not tell of
 * an older one, or of a refusal that the program will not get. */
static bool tells_nothing(const struct governed *governed)
{
    return governed &&
           (governed->tells_nothing || (governed->phase == PHASE_ATTEMPTING && gate_hides_answer(&governed->gate)));
}

/* A handle that has done nothing answers then.  What the program set is still asked of its own. */
static CURL *handle_that_tells(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    if (!tells_nothing(governed))
        return transfer_handle(transfer);
    if (!governed->blank)
        governed->blank = transfer->real->curl_easy_init();
    return governed->blank ? governed->blank : transfer_handle(transfer);
}

static bool tells_of_settings(CURLINFO info)
{
    return info == CURLINFO_PRIVATE || info == CURLINFO_COOKIELIST || info == CURLINFO_SSL_ENGINES;
}

/* A body that broke off was gone on with: what the program has had is the response that it began with. */
static struct first_response *first_response_of(const struct transfer *transfer)
{
    const struct governed *governed = transfer ? transfer->governed : NULL;
    return governed && governed->is_resumed ? resume_first_response(governed->resume) : NULL;
}

/* libcurl keeps those even through curl_easy_reset. */
static struct first_response *first_headers_of(const struct transfer *transfer)
{
    const struct governed *governed = transfer ? transfer->governed : NULL;
    bool are_hidden = governed && (governed->is_resumed || governed->was_resumed_before_reset);
    return are_hidden ? resume_first_response(governed->resume) : NULL;
}

/* Before a transfer libcurl tells CURLOPT_URL, if there is one, even where it will use CURLOPT_CURLU. */
static const char *url_to_come(const struct transfer *transfer)
{
    const char *url = transfer->options.url;
    if (transfer->options.url_handle && (!url || !url[0]))
        url = transfer->governed->url_text;
    return url ? url : "";
}

/* Of a transfer that libcurl has not begun, or has forgotten. */
static bool tells_what_is_to_come(const struct transfer *transfer, CURLINFO info, void *argument)
{
    if (!argument || !tells_nothing(transfer->governed))
        return false;
    if (info == CURLINFO_EFFECTIVE_URL)
        *(const char **)argument = url_to_come(transfer);
    else if (info == CURLINFO_EFFECTIVE_METHOD)
        *(const char **)argument = transfer_method(transfer);
    else if (info == CURLINFO_REFERER)
        *(const char **)argument = transfer->options.referer;
    else
        return false;
    return true;
}

EXPORTED CURLcode curl_easy_getinfo(CURL *handle, CURLINFO info, ...)
{
    va_list arguments;
    va_start(arguments, info);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);

    struct transfer *transfer = transfer_find(handle);
    if (!transfer) {
        const struct real *real = real_of_caller(__builtin_return_address(0));
        return real ? real->curl_easy_getinfo(handle, info, argument) : CURLE_FAILED_INIT;
    }
    const struct first_response *first = first_response_of(transfer);
    CURLcode code;
    if (first && first_response_getinfo(first, transfer->governed->gate.body_bytes, info, argument, &code))
        return code;
    if (tells_what_is_to_come(transfer, info, argument))
        return CURLE_OK;
    if (!tells_of_settings(info))
        handle = handle_that_tells(transfer);
    return transfer->real->curl_easy_getinfo(handle, info, argument);
}

EXPORTED CURLHcode curl_easy_header(CURL *handle, const char *name, size_t index, unsigned int origin, int request,
                                    struct curl_header **header)
{
    struct transfer *transfer = transfer_find(handle);
    const struct real *real = transfer ? transfer->real : real_of_caller(__builtin_return_address(0));
    if (!real || !real->curl_easy_header)
        return CURLHE_NOT_BUILT_IN;
    struct first_response *first = first_headers_of(transfer);
    if (first)
        return first_response_header(first, name, index, origin, request, header);
    return real->curl_easy_header(transfer ? handle_that_tells(transfer) : handle, name, index, origin, request,
                                  header);
}

EXPORTED struct curl_header *curl_easy_nextheader(CURL *handle, unsigned int origin, int request,
                                                  struct curl_header *previous)
{
    struct transfer *transfer = transfer_find(handle);
    const struct real *real = transfer ? transfer->real : real_of_caller(__builtin_return_address(0));
    if (!real || !real->curl_easy_nextheader)
        return NULL;
    struct first_response *first = first_headers_of(transfer);
    if (first)
        return first_response_nextheader(first, origin, request, previous);
    return real->curl_easy_nextheader(transfer ? handle_that_tells(transfer) : handle, origin, request, previous);
}

/* -------------------------------------------------------------------- elsewhere ---- */

EXPORTED CURLcode curl_easy_pause(CURL *handle, int bitmask)
{
    struct transfer *transfer = transfer_find(handle);
    const struct real *real = transfer ? transfer->real : real_of_caller(__builtin_return_address(0));
    if (!real || !real->curl_easy_pause)
        return CURLE_FAILED_INIT;
    if (transfer && governed_is_active(transfer)) {
        struct governed *governed = transfer->governed;
        bool receives_nothing = (bitmask & CURLPAUSE_RECV) != 0;
        governed->paused = (bitmask & CURLPAUSE_ALL) != 0;
        gate_hold(&governed->gate, receives_nothing);
        /* There is no transfer in libcurl to pause or to go on with: a kept response is given to the
         * program, or the next attempt is waited for. */
        if (governed->phase == PHASE_WAITING) {
            governed->gate.program_pauses = governed->gate.program_pauses && receives_nothing;
            return CURLE_OK;
        }
    }
    return real->curl_easy_pause(handle, bitmask);
}

/* A multi handle drives the transfer from here on: what an easy perform left on it has no meaning.
 * (It may have been left by longjmp while it waited; within libcurl's own perform, libcurl refuses.) */
static void leave_to_multi(struct transfer *transfer)
{
    governed_forget_response(transfer->governed);
    if (transfer->governed->phase == PHASE_WAITING)
        governed_leave(transfer);
    if (!governed_is_active(transfer))
        overrides_undo(transfer);
}

/* Where libcurl's own perform adds its handle to a multi handle of its own: not one of those. */
static struct call_site place_in_perform;

static __attribute__((noinline)) CURLMcode add_handle(CURLM *multi, CURL *handle, const void *caller)
{
    struct transfer *transfer = transfer_find(handle);
    const struct real *real = transfer ? transfer->real : real_of_caller(caller);
    if (!real || !real->curl_multi_add_handle)
        return CURLM_INTERNAL_ERROR;
    if (transfer && transfer->governed)
        leave_to_multi(transfer);
    if (transfer && governed_is_active(transfer) && real_caller_is_libcurl(caller))
        real_of_site(&place_in_perform, caller);
    return real->curl_multi_add_handle(multi, handle);
}

EXPORTED CURLMcode curl_multi_add_handle(CURLM *multi, CURL *handle)
{
    const void *caller = __builtin_return_address(0);
    const struct real *real = real_of_known_site(&place_in_perform, caller);
    return real && real->curl_multi_add_handle ? real->curl_multi_add_handle(multi, handle)
                                               : add_handle(multi, handle, caller);
}
