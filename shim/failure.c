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

/* Which of libcurl's timers: nothing was sent yet, or the answer did not come. */
static enum failure timeout_kind(const struct transfer *transfer, bool overall_timeout)
{
    if (overall_timeout)
        return FAILURE_TIMEOUT_OVERALL;
    if (failure_request_was_sent(transfer))
        return FAILURE_TIMEOUT_TRANSFER;
    return info_offset(transfer, CURLINFO_NAMELOOKUP_TIME_T) == 0 ? FAILURE_RESOLVE : FAILURE_TIMEOUT_CONNECT;
}

/* A proxy said no to CONNECT: as 56, and since 8.0 as 7. */
static bool proxy_has_refused(const struct transfer *transfer)
{
    return info_long(transfer, CURLINFO_HTTP_CONNECTCODE) >= 300;
}

enum os_error_kind { OS_REFUSED, OS_RESET, OS_LOCAL, OS_OTHER, OS_ANY };

static enum os_error_kind os_error_kind(long os_error)
{
    switch (os_error) {
    case ECONNREFUSED:
        return OS_REFUSED;
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case ENETRESET:
    case ETIMEDOUT:
    case EHOSTUNREACH: /* also of a connection that was there: its packets do not arrive any more */
    case ENETUNREACH:
    case ENETDOWN:
        return OS_RESET;
    case EACCES: /* a firewall of this machine, a sandbox, a family that it does not have: it stays so */
    case EPERM:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
    case EINVAL:
        return OS_LOCAL;
    default:
        return OS_OTHER;
    }
}

/* The first row that fits counts.  libcurl does not tell a name that does not exist from a resolver that
 * does not answer: both are tried at most twice. */
static const struct row {
    CURLcode code;
    enum os_error_kind os_error;
    enum failure failure;
} rows[] = {
    {CURLE_COULDNT_RESOLVE_HOST, OS_ANY, FAILURE_NO_SUCH_HOST},
    {CURLE_COULDNT_RESOLVE_PROXY, OS_ANY, FAILURE_NO_SUCH_HOST},
    {CURLE_COULDNT_CONNECT, OS_REFUSED, FAILURE_REFUSED},
    {CURLE_COULDNT_CONNECT, OS_LOCAL, FAILURE_FINAL},
    {CURLE_COULDNT_CONNECT, OS_ANY, FAILURE_CONNECT},
    {CURLE_QUIC_CONNECT_ERROR, OS_ANY, FAILURE_CONNECT},
    {CURLE_SSL_CONNECT_ERROR, OS_RESET, FAILURE_CONNECT}, /* any other is about certificates or ciphers */
    {CURLE_GOT_NOTHING, OS_ANY, FAILURE_RESET},
    {CURLE_PARTIAL_FILE, OS_ANY, FAILURE_RESET},
    {CURLE_SEND_ERROR, OS_RESET, FAILURE_RESET},
    {CURLE_RECV_ERROR, OS_RESET, FAILURE_RESET},
    {CURLE_HTTP2, OS_ANY, FAILURE_STREAM},
    {CURLE_HTTP2_STREAM, OS_ANY, FAILURE_STREAM},
    {CURLE_HTTP3, OS_ANY, FAILURE_STREAM},
    {CURLE_ABORTED_BY_CALLBACK, OS_ANY, FAILURE_ABORTED},
    {CURLE_WRITE_ERROR, OS_ANY, FAILURE_ABORTED},
    {CURLE_READ_ERROR, OS_ANY, FAILURE_ABORTED},
};

enum failure failure_of(const struct transfer *transfer, CURLcode code, bool overall_timeout)
{
    if (code == CURLE_OK)
        return FAILURE_NONE;
    if (code == CURLE_OPERATION_TIMEDOUT)
        return timeout_kind(transfer, overall_timeout);
    if (proxy_has_refused(transfer))
        return FAILURE_FINAL;
    enum os_error_kind kind = os_error_kind(info_long(transfer, CURLINFO_OS_ERRNO));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == code && (rows[i].os_error == OS_ANY || rows[i].os_error == kind))
            return rows[i].failure;
    return FAILURE_FINAL;
}
