/* SPDX-License-Identifier: MIT */
/*
 * Where a request's body comes from, by the rules of libcurl's setopt, and whether the program's
 * reader has been asked for it.
 */
#include "shim/body.h"

#include "shim/governed.h"

enum body_source body_source(const struct transfer *transfer)
{
    const struct options *options = &transfer->options;
    if (options->upload)
        return BODY_READER;
    switch (options->kind) {
    case REQUEST_PUT:
        return BODY_READER;
    case REQUEST_POST:
        return options->has_post_fields ? BODY_FIELDS : BODY_READER;
    case REQUEST_POST_FORM:
    case REQUEST_POST_MIME:
        return BODY_MIME;
    case REQUEST_GET:
    case REQUEST_HEAD:
        break;
    }
    return BODY_NONE;
}

/* libcurl's default reader is left alone: libcurl seeks in its FILE* when a redirect asks for the
 * body again, and would not behind a callback. */
bool body_has_reader_callback(const struct transfer *transfer)
{
    return body_source(transfer) == BODY_READER && transfer->options.read_function;
}

size_t body_on_read(char *buffer, size_t size, size_t count, void *userdata)
{
    struct transfer *transfer = userdata;
    const struct overrides *overrides = &transfer->governed->overrides;
    transfer->governed->reader_called = true;
    /* As they were when the transfer began: libcurl does not look at newer ones before its end. */
    return overrides->read_function(buffer, size, count, overrides->read_data);
}

bool transfer_body_is_resendable(const struct transfer *transfer, bool request_sent)
{
    switch (body_source(transfer)) {
    case BODY_NONE:
    case BODY_FIELDS:
        return true;
    case BODY_READER:
        return body_has_reader_callback(transfer) ? !transfer->governed->reader_called : !request_sent;
    case BODY_MIME:
        break;
    }
    return !request_sent;
}
