/* SPDX-License-Identifier: MIT */
/*
 * Setting and putting back.
 */
#include "shim/overrides.h"

#include "shim/body.h"
#include "shim/governed.h"

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

static void take_reader(struct transfer *transfer)
{
    struct overrides *overrides = &transfer->governed->overrides;
    const struct real *real = transfer->real;
    CURL *handle = transfer_handle(transfer);
    overrides->reader = true;
    overrides->read_function = transfer->options.read_function;
    overrides->read_data = transfer->options.read_data;
    real->curl_easy_setopt(handle, CURLOPT_READFUNCTION, body_on_read);
    real->curl_easy_setopt(handle, CURLOPT_READDATA, transfer);
}

/* Of the others, none is ours yet. */
void overrides_set(struct transfer *transfer)
{
    if (!transfer->governed->overrides.response)
        take_response(transfer);
    if (transfer->options.header_in_body)
        take_header_option(transfer);
    if (transfer->options.read_function && body_has_reader_callback(transfer))
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
void overrides_limit_time(struct transfer *transfer, int64_t left_ms)
{
    transfer->governed->overrides.timeout = true;
    transfer->real->curl_easy_setopt(transfer_handle(transfer), CURLOPT_TIMEOUT_MS, (long)(left_ms > 1 ? left_ms : 1));
}

void overrides_for_repeat(struct transfer *transfer)
{
    const struct options *options = &transfer->options;
    const struct real *real = transfer->real;
    if (options->http2_prior_knowledge && real->version < VERSION_PRIOR_KNOWLEDGE_REUSED) {
        transfer->governed->overrides.fresh_connect = true;
        real->curl_easy_setopt(transfer_handle(transfer), CURLOPT_FRESH_CONNECT, 1L);
    }
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
    case CURLOPT_READFUNCTION:
    case CURLOPT_READDATA:
        return overrides->reader;
    default:
        return false;
    }
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
    }
    if (overrides->timeout)
        real->curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)options->timeout_ms);
    if (overrides->fresh_connect)
        real->curl_easy_setopt(handle, CURLOPT_FRESH_CONNECT, (long)options->fresh_connect);
}

static bool are_at_rest(const struct transfer *transfer)
{
    const struct overrides *overrides = &transfer->governed->overrides;
    return !overrides->header_in_body && !transfer->options.header_in_body && !overrides->reader &&
           !overrides->timeout && !overrides->fresh_connect;
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
