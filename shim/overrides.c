/* SPDX-License-Identifier: MIT */
/*
 * Setting and putting back.
 */
#include "shim/overrides.h"

#include "shim/body.h"
#include "shim/governed.h"
#include "shim/progress.h"

/* Before 8.0.0 a connection that was opened with prior knowledge of HTTP/2 over cleartext cannot
 * carry a second request: it fails with CURLE_HTTP2 (curl issue 10634). */
#define VERSION_PRIOR_KNOWLEDGE_REUSED 0x080000

static void take_response(struct transfer *transfer)
{
    const struct real *real = transfer->real;
    CURL *handle = transfer_handle(transfer);
    real->curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, gate_on_body);
    real->curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer->governed->gate);
    real->curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, gate_on_header);
    real->curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer->governed->gate);
    transfer->governed->overrides.response = true;
}

static void take_header_option(struct transfer *transfer)
{
    transfer->real->curl_easy_setopt(transfer_handle(transfer), CURLOPT_HEADER, 0L);
    transfer->governed->overrides.header_in_body = true;
}

static void take_seek(const struct transfer *transfer)
{
    transfer->real->curl_easy_setopt(transfer_handle(transfer), CURLOPT_SEEKFUNCTION, body_on_seek);
    transfer->real->curl_easy_setopt(transfer_handle(transfer), CURLOPT_SEEKDATA, transfer);
}

static void take_reader(struct transfer *transfer)
{
    struct overrides *overrides = &transfer->governed->overrides;
    const struct real *real = transfer->real;
    CURL *handle = transfer_handle(transfer);
    const struct options *options = &transfer->options;
    overrides->reader = true;
    overrides->read_function = options->read_function;
    overrides->read_data = options->read_data;
    overrides->seek_function = options->seek_function;
    overrides->seek_data = options->seek_data;
    overrides->ioctl_function = options->ioctl_function;
    overrides->ioctl_data = options->ioctl_data;
    real->curl_easy_setopt(handle, CURLOPT_READFUNCTION, body_on_read);
    real->curl_easy_setopt(handle, CURLOPT_READDATA, transfer);
    if (options->seek_function || transfer->governed->body.file)
        take_seek(transfer);
    if (options->ioctl_function) {
        real->curl_easy_setopt(handle, CURLOPT_IOCTLFUNCTION, body_on_ioctl);
        real->curl_easy_setopt(handle, CURLOPT_IOCTLDATA, transfer);
    }
}

/* Of the others, none is ours yet. */
void overrides_set(struct transfer *transfer)
{
    if (!transfer->governed->overrides.response)
        take_response(transfer);
    if (transfer->options.header_in_body)
        take_header_option(transfer);
    if (body_is_listened_to(transfer))
        take_reader(transfer);
}

/* The reader of the transfer under way stays: libcurl has taken it over already. */
void overrides_after_reset(struct transfer *transfer)
{
    if (!transfer->governed)
        return;
    transfer->governed->overrides.response = false;
    if (governed_is_active(transfer))
        take_response(transfer);
}

/* Never 0, which would mean no timeout at all. */
void overrides_limit_time(struct transfer *transfer, int64_t limit_ms)
{
    transfer->governed->overrides.timeout = true;
    transfer->real->curl_easy_setopt(transfer_handle(transfer), CURLOPT_TIMEOUT_MS,
                                     (long)(limit_ms > 1 ? limit_ms : 1));
}

void overrides_release_time(struct transfer *transfer)
{
    if (transfer->governed->overrides.timeout)
        transfer->real->curl_easy_setopt(transfer_handle(transfer), CURLOPT_TIMEOUT_MS,
                                         (long)transfer->options.timeout_ms);
    transfer->governed->overrides.timeout = false;
}

void overrides_tell_progress(struct transfer *transfer)
{
    if (!progress_is_wanted(&transfer->options) || transfer->governed->overrides.progress)
        return;
    transfer->governed->overrides.progress = true;
    transfer->real->curl_easy_setopt(transfer_handle(transfer), CURLOPT_XFERINFOFUNCTION, progress_on_attempt);
    transfer->real->curl_easy_setopt(transfer_handle(transfer), CURLOPT_XFERINFODATA, transfer);
}

void overrides_connect_anew(struct transfer *transfer)
{
    transfer->governed->overrides.fresh_connect = true;
    transfer->real->curl_easy_setopt(transfer_handle(transfer), CURLOPT_FRESH_CONNECT, 1L);
}

void overrides_add_headers(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    governed->overrides.headers = true;
    transfer->real->curl_easy_setopt(transfer_handle(transfer), CURLOPT_HTTPHEADER,
                                     added_headers_before(governed->added, transfer->options.headers));
}

void overrides_for_repeat(struct transfer *transfer)
{
    const struct options *options = &transfer->options;
    const struct real *real = transfer->real;
    /* libcurl sends a request again by itself when a connection that was kept breaks before the answer.
     * For a write that would be one more that nobody has decided on, or that its reader cannot give. */
    if (!transfer->governed->method_is_safe || body_is_one_shot(transfer) ||
        (options->http2_prior_knowledge && real->version < VERSION_PRIOR_KNOWLEDGE_REUSED))
        overrides_connect_anew(transfer);
    /* What was kept can be given once more within the repeat, too: after a redirect, or a challenge. */
    if (transfer->governed->overrides.reader)
        take_seek(transfer);
    /* A redirect of the attempt before has left its Referer behind. */
    if (options->auto_referer)
        real->curl_easy_setopt(transfer_handle(transfer), CURLOPT_REFERER, options->referer);
}

bool overrides_include(const struct transfer *transfer, CURLoption option)
{
    const struct overrides *overrides = transfer->governed ? &transfer->governed->overrides : NULL;
    if (!overrides)
        return false;
    switch ((int)option) {
    case CURLOPT_WRITEFUNCTION:
    case CURLOPT_WRITEDATA:
    case CURLOPT_HEADERFUNCTION:
    case CURLOPT_HEADERDATA:
        return overrides->response;
    case CURLOPT_HEADER:
        return governed_is_active(transfer);
    /* libcurl does not look at another reader before the transfer's end; and what it asks the seek callback
     * for has to be known here. */
    case CURLOPT_READFUNCTION:
    case CURLOPT_READDATA:
    case CURLOPT_SEEKFUNCTION:
    case CURLOPT_SEEKDATA:
    case CURLOPT_IOCTLFUNCTION:
    case CURLOPT_IOCTLDATA:
        return overrides->reader;
    case CURLOPT_XFERINFOFUNCTION:
    case CURLOPT_PROGRESSFUNCTION:
    case CURLOPT_XFERINFODATA:
        return overrides->progress;
    default:
        return false;
    }
}

/* libcurl counts from the start of the attempt, the program from the start of the transfer. */
void overrides_leave_time(struct transfer *transfer)
{
    const struct governor_request *request = &transfer->governed->request;
    int64_t timeout_ms = transfer->options.timeout_ms;
    if (timeout_ms)
        overrides_limit_time(transfer, timeout_ms - (request->last_sent_ns - request->begun_ns) / NS_PER_MS);
    else
        transfer->real->curl_easy_setopt(transfer_handle(transfer), CURLOPT_TIMEOUT_MS, 0L);
}

void overrides_follow(struct transfer *transfer, CURLoption option)
{
    const struct overrides *overrides = &transfer->governed->overrides;
    if (overrides->headers && option == CURLOPT_HTTPHEADER)
        overrides_add_headers(transfer);
    else if (overrides->timeout && (option == CURLOPT_TIMEOUT || option == CURLOPT_TIMEOUT_MS))
        overrides_leave_time(transfer);
    else if (overrides->fresh_connect && option == CURLOPT_FRESH_CONNECT)
        overrides_connect_anew(transfer);
}

static void undo_response(const struct transfer *transfer, CURL *handle)
{
    const struct real *real = transfer->real;
    const struct options *options = &transfer->options;
    real->curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, options->write_function);
    real->curl_easy_setopt(handle, CURLOPT_WRITEDATA, options->write_data);
    real->curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, options->header_function);
    real->curl_easy_setopt(handle, CURLOPT_HEADERDATA, options->header_data);
}

/* libcurl shows its own meter where the option that was set last was NULL. */
static void undo_progress(const struct transfer *transfer, CURL *handle)
{
    const struct real *real = transfer->real;
    const struct options *options = &transfer->options;
    real->curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, options->xferinfo_function);
    real->curl_easy_setopt(handle, CURLOPT_XFERINFODATA, options->progress_data);
    if (!options->xferinfo_function)
        real->curl_easy_setopt(handle, CURLOPT_PROGRESSFUNCTION, options->progress_function);
}

static void undo_rest(const struct transfer *transfer, CURL *handle)
{
    const struct overrides *overrides = &transfer->governed->overrides;
    const struct real *real = transfer->real;
    const struct options *options = &transfer->options;

    if (overrides->header_in_body || options->header_in_body)
        real->curl_easy_setopt(handle, CURLOPT_HEADER, (long)options->header_in_body);
    if (overrides->reader) {
        real->curl_easy_setopt(handle, CURLOPT_READFUNCTION, options->read_function);
        real->curl_easy_setopt(handle, CURLOPT_READDATA, options->read_data);
        real->curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, options->seek_function);
        real->curl_easy_setopt(handle, CURLOPT_SEEKDATA, options->seek_data);
        real->curl_easy_setopt(handle, CURLOPT_IOCTLFUNCTION, options->ioctl_function);
        real->curl_easy_setopt(handle, CURLOPT_IOCTLDATA, options->ioctl_data);
    }
    if (overrides->progress)
        undo_progress(transfer, handle);
    if (overrides->timeout)
        real->curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)options->timeout_ms);
    if (overrides->fresh_connect)
        real->curl_easy_setopt(handle, CURLOPT_FRESH_CONNECT, (long)options->fresh_connect);
    if (overrides->headers)
        real->curl_easy_setopt(handle, CURLOPT_HTTPHEADER, options->headers);
}

static bool are_at_rest(const struct transfer *transfer)
{
    const struct overrides *overrides = &transfer->governed->overrides;
    return !overrides->header_in_body && !transfer->options.header_in_body && !overrides->reader &&
           !overrides->timeout && !overrides->fresh_connect && !overrides->progress && !overrides->headers;
}

void overrides_rest(struct transfer *transfer)
{
    struct overrides *overrides = &transfer->governed->overrides;
    if (are_at_rest(transfer))
        return;
    undo_rest(transfer, transfer_handle(transfer));
    *overrides = (struct overrides){.response = overrides->response};
}

void overrides_undo_on_copy(const struct transfer *transfer, CURL *copy)
{
    if (!transfer->governed)
        return;
    if (transfer->governed->overrides.response)
        undo_response(transfer, copy);
    undo_rest(transfer, copy);
}

void overrides_undo(struct transfer *transfer)
{
    if (!transfer->governed)
        return;
    overrides_undo_on_copy(transfer, transfer_handle(transfer));
    transfer->governed->overrides = (struct overrides){.response = false};
}
