/* SPDX-License-Identifier: MIT */
/*
 * libcurl forgets what it knows of a response when the next perform begins, and frees the texts.  So all
 * that it tells of one is asked for and copied: its answers to getinfo by a table, and its list of headers, with
 * those of the hops and of the interim responses before it.
 *
 * Whatever is not in the table is asked of libcurl as before: what the program set (PRIVATE), what the
 * handle holds (COOKIELIST), and what tells of the way there (times, addresses, certificates, sockets).
 */
#include "shim/first_response.h"

#include "core/scan.h"

#include <stdlib.h>
#include <string.h>

/* Newer than the headers that this may be compiled with. */
#define INFO_HTTPAUTH_USED ((CURLINFO)(CURLINFO_LONG + 69))
#define INFO_PROXYAUTH_USED ((CURLINFO)(CURLINFO_LONG + 70))
#define INFO_SIZE_DELIVERED ((CURLINFO)(CURLINFO_OFF_T + 71))

static const CURLINFO infos[] = {
    CURLINFO_RESPONSE_CODE,
    CURLINFO_HTTP_CONNECTCODE,
    CURLINFO_HTTP_VERSION,
    CURLINFO_PROTOCOL,
    CURLINFO_SCHEME,
    CURLINFO_EFFECTIVE_URL,
    CURLINFO_EFFECTIVE_METHOD,
    CURLINFO_REFERER,
    CURLINFO_REDIRECT_COUNT,
    CURLINFO_REDIRECT_URL,
    CURLINFO_HEADER_SIZE,
    CURLINFO_CONTENT_TYPE,
    CURLINFO_CONTENT_LENGTH_DOWNLOAD,
    CURLINFO_CONTENT_LENGTH_DOWNLOAD_T,
    CURLINFO_FILETIME,
    CURLINFO_FILETIME_T,
    CURLINFO_CONDITION_UNMET,
    CURLINFO_RETRY_AFTER,
    CURLINFO_HTTPAUTH_AVAIL,
    CURLINFO_PROXYAUTH_AVAIL,
    INFO_HTTPAUTH_USED,
    INFO_PROXYAUTH_USED,

    /* Counted anew for each answer. */
    CURLINFO_SIZE_DOWNLOAD,
    CURLINFO_SIZE_DOWNLOAD_T,
    INFO_SIZE_DELIVERED,
};
#define INFO_COUNT (sizeof infos / sizeof infos[0])

struct answer {
    bool is_known; /* this libcurl has an answer */
    union {
        char *text; /* owned; may be NULL */
        long number;
        double real;
        curl_off_t offset;
    } value;
};

struct header_copy {
    char *name;  /* owned; the value lies behind it in the same memory */
    char *value; /* not const: curl_header hands it out so */
    unsigned origin;
    int request;
    void *anchor; /* libcurl's own, only ever compared: one that the program got in a callback is good, too */
};

/* libcurl counts through its whole list for each header that it hands out.  A response that has more than these
 * has been made to cost time; then it is not gone on with. */
#define HEADERS_MAX 1024

#define ORIGINS_ALL (CURLH_HEADER | CURLH_TRAILER | CURLH_CONNECT | CURLH_1XX | CURLH_PSEUDO)

struct first_response {
    struct answer answers[INFO_COUNT];
    bool has_header_api;         /* this libcurl has */
    struct header_copy *headers; /* in the order of their arrival */
    size_t header_count, header_capacity;
    int last_request;
    bool shares_place;              /* in this libcurl both functions hand out the same struct */
    struct curl_header found, next; /* what was last handed out by curl_easy_header, and by nextheader */
};

/* -------------------------------------------------------------------- getinfo ---- */

static bool take_text(const struct transfer *transfer, CURLINFO info, struct answer *answer)
{
    const char *text = NULL;
    answer->is_known = transfer->real->curl_easy_getinfo(transfer_handle(transfer), info, &text) == CURLE_OK;
    if (!answer->is_known || !text)
        return true;
    answer->value.text = strdup(text);
    return answer->value.text != NULL;
}

static bool take_answers(const struct transfer *transfer, struct first_response *first)
{
    for (size_t i = 0; i < INFO_COUNT; i++) {
        struct answer *answer = &first->answers[i];
        if ((infos[i] & CURLINFO_TYPEMASK) != CURLINFO_STRING)
            answer->is_known =
                transfer->real->curl_easy_getinfo(transfer_handle(transfer), infos[i], &answer->value) == CURLE_OK;
        else if (!take_text(transfer, infos[i], answer))
            return false;
    }
    return true;
}

static void hand_out(const struct answer *answer, CURLINFO info, void *argument)
{
    switch (info & CURLINFO_TYPEMASK) {
    case CURLINFO_STRING:
        *(char **)argument = answer->value.text;
        break;
    case CURLINFO_LONG:
        *(long *)argument = answer->value.number;
        break;
    case CURLINFO_DOUBLE:
        *(double *)argument = answer->value.real;
        break;
    default:
        *(curl_off_t *)argument = answer->value.offset;
        break;
    }
}

static struct answer answer_of(const struct first_response *first, size_t i, curl_off_t body_bytes)
{
    struct answer answer = first->answers[i];
    if (infos[i] == CURLINFO_SIZE_DOWNLOAD)
        answer.value.real = (double)body_bytes;
    if (infos[i] == CURLINFO_SIZE_DOWNLOAD_T || infos[i] == INFO_SIZE_DELIVERED)
        answer.value.offset = body_bytes;
    return answer;
}

bool first_response_getinfo(const struct first_response *first, curl_off_t body_bytes, CURLINFO info, void *argument,
                            CURLcode *code)
{
    for (size_t i = 0; i < INFO_COUNT; i++) {
        if (infos[i] != info)
            continue;
        /* Its errors are libcurl's to name; they have changed from version to version. */
        struct answer answer = answer_of(first, i, body_bytes);
        if (!answer.is_known || !argument)
            return false;
        hand_out(&answer, info, argument);
        *code = CURLE_OK;
        return true;
    }
    return false;
}

/* -------------------------------------------------------------------- headers ---- */

static bool make_room(struct first_response *first)
{
    if (first->header_count < first->header_capacity)
        return true;
    if (first->header_count >= HEADERS_MAX)
        return false;
    size_t capacity = first->header_capacity ? first->header_capacity * 2 : 32;
    struct header_copy *headers = realloc(first->headers, capacity * sizeof *headers);
    if (!headers)
        return false;
    first->headers = headers;
    first->header_capacity = capacity;
    return true;
}

static bool add_header(struct first_response *first, const struct curl_header *header, int request)
{
    size_t name_size = strlen(header->name) + 1, value_size = strlen(header->value) + 1;
    char *texts = make_room(first) ? malloc(name_size + value_size) : NULL;
    if (!texts)
        return false;
    first->headers[first->header_count++] = (struct header_copy){
        .name = memcpy(texts, header->name, name_size),
        .value = memcpy(texts + name_size, header->value, value_size),
        .origin = header->origin,
        .request = request,
        .anchor = header->anchor,
    };
    return true;
}

static bool take_headers_of(const struct transfer *transfer, struct first_response *first, int request)
{
    struct curl_header *header = NULL;
    while ((header = transfer->real->curl_easy_nextheader(transfer_handle(transfer), ORIGINS_ALL, request, header)))
        if (!add_header(first, header, request))
            return false;
    return true;
}

/* Programs may rely on it, and curl's `%{header_json}` does: having found a header by its name they go on from
 * there. */
static bool shares_place(const struct transfer *transfer, int request)
{
    const struct real *real = transfer->real;
    CURL *handle = transfer_handle(transfer);
    struct curl_header *next = real->curl_easy_nextheader(handle, ORIGINS_ALL, request, NULL);
    struct curl_header *found = NULL;
    if (next)
        real->curl_easy_header(handle, next->name, 0, ORIGINS_ALL, request, &found);
    return next && found == next;
}

/* Old ones do not have it, and it can be left out of new ones. */
static bool has_header_api(const struct transfer *transfer)
{
    const struct real *real = transfer->real;
    struct curl_header *header;
    return real->curl_easy_header && real->curl_easy_nextheader &&
           real->curl_easy_header(transfer_handle(transfer), ":", 0, ORIGINS_ALL, -1, &header) != CURLHE_NOT_BUILT_IN;
}

/* A hop may have no headers at all, so what tells how many there are is the error for one too many. */
static bool has_request(const struct transfer *transfer, int request)
{
    struct curl_header *header;
    CURLHcode code = transfer->real->curl_easy_header(transfer_handle(transfer), ":", 0, ORIGINS_ALL, request, &header);
    return code == CURLHE_OK || code == CURLHE_MISSING;
}

static bool take_headers(const struct transfer *transfer, struct first_response *first)
{
    first->has_header_api = has_header_api(transfer);
    for (int request = 0; first->has_header_api && has_request(transfer, request); request++) {
        if (request >= HEADERS_MAX || !take_headers_of(transfer, first, request))
            return false;
        first->shares_place = first->shares_place || shares_place(transfer, request);
        first->last_request = request;
    }
    return true;
}

static bool is_asked_for(const struct header_copy *header, unsigned origin, int request)
{
    return (header->origin & ORIGINS_ALL & origin) && header->request == request;
}

static bool has_name(const struct header_copy *header, const char *name)
{
    return scan_equals_ignoring_case(header->name, strlen(header->name), name);
}

/* How many of the first `limit` headers are asked for and have that name. */
static size_t count_named(const struct first_response *first, const char *name, unsigned origin, int request,
                          size_t limit)
{
    size_t count = 0;
    for (size_t i = 0; i < limit; i++)
        count += is_asked_for(&first->headers[i], origin, request) && has_name(&first->headers[i], name);
    return count;
}

static void describe(const struct header_copy *header, size_t index, size_t amount, struct curl_header *out)
{
    *out = (struct curl_header){
        .name = header->name,
        .value = header->value,
        .amount = amount,
        .index = index,
        .origin = header->origin,
        .anchor = header->anchor,
    };
}

CURLHcode first_response_header(struct first_response *first, const char *name, size_t index, unsigned origin,
                                int request, struct curl_header **header)
{
    const struct header_copy *copy = first->headers;
    if (!first->has_header_api)
        return CURLHE_NOT_BUILT_IN;
    if (!name || !header || origin == 0 || origin > ORIGINS_ALL || request < -1)
        return CURLHE_BAD_ARGUMENT;
    if (first->header_count == 0)
        return CURLHE_NOHEADERS;
    if (request > first->last_request)
        return CURLHE_NOREQUEST;
    if (request == -1)
        request = first->last_request;
    size_t amount = count_named(first, name, origin, request, first->header_count);
    if (amount == 0)
        return CURLHE_MISSING;
    if (index >= amount)
        return CURLHE_BADINDEX;
    for (size_t left = index;; copy++)
        if (is_asked_for(copy, origin, request) && has_name(copy, name) && left-- == 0)
            break;
    describe(copy, index, amount, &first->found);
    *header = &first->found;
    return CURLHE_OK;
}

/* The header after `previous`; the end of the list if that is none of these. */
static size_t place_after(const struct first_response *first, const struct curl_header *previous)
{
    size_t i = 0;
    if (!previous)
        return 0;
    while (i < first->header_count && first->headers[i].anchor != previous->anchor)
        i++;
    return i + 1;
}

struct curl_header *first_response_nextheader(struct first_response *first, unsigned origin, int request,
                                              struct curl_header *previous)
{
    struct curl_header *next = first->shares_place ? &first->found : &first->next;
    if (request > first->last_request)
        return NULL;
    if (request == -1)
        request = first->last_request;
    for (size_t i = place_after(first, previous); i < first->header_count; i++) {
        const struct header_copy *copy = &first->headers[i];
        if (!is_asked_for(copy, origin, request))
            continue;
        size_t index = count_named(first, copy->name, origin, request, i);
        size_t amount = index + 1;
        for (size_t later = i + 1; later < first->header_count; later++)
            amount +=
                is_asked_for(&first->headers[later], origin, request) && has_name(&first->headers[later], copy->name);
        describe(copy, index, amount, next);
        return next;
    }
    return NULL;
}

/* ---------------------------------------------------------------------- record ---- */

struct first_response *first_response_take(const struct transfer *transfer)
{
    struct first_response *first = calloc(1, sizeof *first);
    if (!first)
        return NULL;
    if (take_answers(transfer, first) && take_headers(transfer, first))
        return first;
    first_response_free(first);
    return NULL;
}

void first_response_add_trailers(struct first_response *first, const struct transfer *transfer)
{
    struct curl_header *header = NULL;
    while (first->has_header_api &&
           (header = transfer->real->curl_easy_nextheader(transfer_handle(transfer), CURLH_TRAILER, -1, header)))
        if (!add_header(first, header, first->last_request))
            return;
}

void first_response_free(struct first_response *first)
{
    if (!first)
        return;
    for (size_t i = 0; i < INFO_COUNT; i++)
        if ((infos[i] & CURLINFO_TYPEMASK) == CURLINFO_STRING)
            free(first->answers[i].value.text);
    for (size_t i = 0; i < first->header_count; i++)
        free(first->headers[i].name);
    free(first->headers);
    free(first);
}
