/* SPDX-License-Identifier: MIT */
/*
 * The table of CURLcode x OS error.
 */
#include "shim/failure.h"

#include <errno.h>

static long info_long(const struct transfer *transfer, CURLINFO info)
{
    long value = 0;
    transfer->real->curl_easy_getinfo(transfer_handle(transfer), info, &value);
    return value;
}

static curl_off_t info_offset(const struct transfer *transfer, CURLINFO info)
{
    curl_off_t value = 0;
    transfer->real->curl_easy_getinfo(transfer_handle(transfer), info, &value);
    return value;
}

bool failure_request_was_sent(const struct transfer *transfer)
{
    return info_long(transfer, CURLINFO_REQUEST_SIZE) > 0;
}

static bool is_reset(long os_error)
{
    return os_error == ECONNRESET || os_error == ECONNABORTED || os_error == EPIPE || os_error == ETIMEDOUT;
}

/* Which of libcurl's timers: nothing was sent yet, or the answer did not come. */
static enum failure timeout_kind(const struct transfer *transfer, bool overall_timeout)
{
    if (overall_timeout)
        return FAILURE_TIMEOUT_OVERALL;
    if (info_offset(transfer, CURLINFO_NAMELOOKUP_TIME_T) == 0 && !failure_request_was_sent(transfer))
        return FAILURE_RESOLVE;
    return failure_request_was_sent(transfer) ? FAILURE_TIMEOUT_TRANSFER : FAILURE_TIMEOUT_CONNECT;
}

enum failure failure_of(const struct transfer *transfer, CURLcode code, bool overall_timeout)
{
    long os_error = info_long(transfer, CURLINFO_OS_ERRNO);
    switch (code) {
    case CURLE_OK:
        return FAILURE_NONE;
    case CURLE_COULDNT_RESOLVE_HOST:
        return FAILURE_NO_SUCH_HOST;
    case CURLE_COULDNT_CONNECT:
        return os_error == ECONNREFUSED ? FAILURE_REFUSED : FAILURE_CONNECT;
    case CURLE_OPERATION_TIMEDOUT:
        return timeout_kind(transfer, overall_timeout);
    case CURLE_SSL_CONNECT_ERROR:
        return is_reset(os_error) ? FAILURE_CONNECT : FAILURE_FINAL;
    case CURLE_GOT_NOTHING:
        return FAILURE_RESET;
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        if (info_long(transfer, CURLINFO_HTTP_CONNECTCODE) >= 300) /* the proxy said no */
            return FAILURE_FINAL;
        return is_reset(os_error) ? FAILURE_RESET : FAILURE_FINAL;
    case CURLE_HTTP2_STREAM:
        return FAILURE_STREAM;
    case CURLE_ABORTED_BY_CALLBACK:
    case CURLE_WRITE_ERROR:
        return FAILURE_ABORTED;
    default:
        return FAILURE_FINAL;
    }
}
