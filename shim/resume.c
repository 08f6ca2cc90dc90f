/* SPDX-License-Identifier: MIT */
/*
 * What has to be known of the response that broke off, and how the rest is recognised.
 */
#include "shim/resume.h"

#include "shim/body.h"
#include "shim/first_response.h"
#include "shim/governed.h"
#include "shim/overrides.h"

#include "core/content_range.h"
#include "core/entity_tag.h"
#include "core/request_headers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TAG_SIZE (ADDED_HEADER_SIZE - sizeof "If-Range: ")

struct resume {
    char tag[TAG_SIZE];
    curl_off_t total; /* of the whole body; -1: not known */
    char *url;        /* that it came from, after all redirects */
    struct first_response *first;
    CURLcode code; /* of the last cut */
    char message[CURL_ERROR_SIZE];
};

/* The only field of that name in the answer at hand; NULL where there is none, or several. */
static const char *field(const struct transfer *transfer, const char *name)
{
    struct curl_header *header;
    CURL *handle = transfer_handle(transfer);
    if (!transfer->real->curl_easy_header ||
        transfer->real->curl_easy_header(handle, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK ||
        header->amount != 1)
        return NULL;
    return header->value;
}

static bool has_field(const struct transfer *transfer, const char *name)
{
    struct curl_header *header;
    return transfer->real->curl_easy_header(transfer_handle(transfer), name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK;
}

static const char *strong_tag(const struct transfer *transfer)
{
    const char *tag = field(transfer, "ETag");
    return tag && entity_tag_is_strong(tag) ? tag : NULL;
}

/* -1: none, or none that counts (RFC 9112, section 6.3).  getinfo would tell it only after the header block. */
static curl_off_t announced_length(const struct transfer *transfer)
{
    const char *value = field(transfer, "Content-Length");
    char *end;
    if (!value || value[0] < '0' || value[0] > '9' || has_field(transfer, "Transfer-Encoding"))
        return -1;
    int64_t length = strtoll(value, &end, 10);
    return *end == '\0' && length < INT64_MAX ? length : -1;
}

/* ------------------------------------------------------------------- the cut ---- */

static bool asks_for_a_part(const struct transfer *transfer)
{
    const struct options *options = &transfer->options;
    const char *names = "Range, If-Range, If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since";
    for (const struct curl_slist *header = options->headers; header; header = header->next)
        if (header->data && request_headers_carries(header->data, names, NULL))
            return true;
    return options->has_range || options->has_resume_from || options->has_time_condition;
}

/* Are the bytes that the program has had those of the body, and the request one for all of it? */
static bool is_suitable(const struct transfer *transfer)
{
    const struct governed *governed = transfer->governed;
    const struct options *options = &transfer->options;
    return governed->resolved.values.resume && governed->request.mode == MODE_ENFORCE &&
           strcmp(governed->method, "GET") == 0 && governed->body.source == BODY_NONE && !options->header_in_body &&
           !options->is_raw && !asks_for_a_part(transfer);
}

/* After a pause in the middle of a header block libcurl has its lines run together, and takes them for one. */
static bool is_told_of(const struct gate *gate)
{
    return !gate->head_was_paused;
}

/* Several parts, each with a header of its own (RFC 9110, section 14.6). */
static bool is_in_parts(const struct transfer *transfer)
{
    static const char type[] = "multipart/";
    const char *value = field(transfer, "Content-Type");
    return value && strncasecmp(value, type, sizeof type - 1) == 0;
}

static bool response_is_suitable(const struct transfer *transfer)
{
    const struct gate *gate = &transfer->governed->gate;
    const char *accepts = field(transfer, "Accept-Ranges");
    return gate->status == 200 && gate->block_complete && is_told_of(gate) && strong_tag(transfer) &&
           strlen(strong_tag(transfer)) < TAG_SIZE && !has_field(transfer, "Content-Encoding") &&
           !(accepts && strcmp(accepts, "none") == 0);
}

static void note_error(struct resume *resume, const struct transfer *transfer, CURLcode code)
{
    resume->code = code;
    snprintf(resume->message, sizeof resume->message, "%s",
             transfer->options.error_buffer ? transfer->options.error_buffer : "");
}

static const char *effective_url(const struct transfer *transfer)
{
    const char *url = NULL;
    transfer->real->curl_easy_getinfo(transfer_handle(transfer), CURLINFO_EFFECTIVE_URL, &url);
    return url ? url : "";
}

static struct resume *note_response(const struct transfer *transfer)
{
    struct resume *resume = calloc(1, sizeof *resume);
    if (!resume)
        return NULL;
    resume->first = first_response_take(transfer);
    resume->url = strdup(effective_url(transfer));
    if (!resume->first || !resume->url) {
        resume_free(resume);
        return NULL;
    }
    strcpy(resume->tag, strong_tag(transfer));
    resume->total = announced_length(transfer);
    return resume;
}

bool resume_prepare(struct transfer *transfer, CURLcode code)
{
    struct governed *governed = transfer->governed;
    const struct gate *gate = &governed->gate;
    if (gate->program_stopped || gate->program_pauses || !is_suitable(transfer))
        return false;
    if (gate->resuming) {
        if (gate->is_proven)
            note_error(governed->resume, transfer, code);
        return true;
    }
    if (!response_is_suitable(transfer))
        return false;
    resume_free(governed->resume);
    governed->resume = note_response(transfer);
    if (governed->resume)
        note_error(governed->resume, transfer, code);
    return governed->resume != NULL && governed_adds_headers(governed);
}

/* ------------------------------------------------------------------ going on ---- */

void resume_begin_attempt(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    char range[64];
    snprintf(range, sizeof range, "bytes=%" PRId64 "-", (int64_t)governed->gate.body_bytes);
    governed->added->count = governed->added->kept;
    added_headers_add(governed->added, "Range", range);
    added_headers_add(governed->added, "If-Range", governed->resume->tag);
    overrides_add_headers(transfer);
}

static bool is_the_rest(const struct transfer *transfer)
{
    struct resume *resume = transfer->governed->resume;
    const char *value = field(transfer, "Content-Range");
    struct content_range range;
    if (!value || !content_range_parse(value, &range) || range.first != transfer->governed->gate.body_bytes)
        return false;
    /* All of the rest, of a whole whose end is known from one of the two answers. */
    if (resume->total < 0)
        resume->total = range.total;
    return resume->total >= 0 && range.last == resume->total - 1 && (range.total < 0 || range.total == resume->total);
}

bool resume_is_proven(const struct transfer *transfer, curl_off_t *skip)
{
    const struct governed *governed = transfer->governed;
    struct resume *resume = governed->resume;
    const char *tag = strong_tag(transfer);
    *skip = 0;
    /* A tag says nothing about what is at another place. */
    if (!is_told_of(&governed->gate) || !tag || strcmp(tag, resume->tag) != 0 ||
        strcmp(effective_url(transfer), resume->url) != 0 || has_field(transfer, "Content-Encoding"))
        return false;
    if (governed->gate.status == 206)
        return !is_in_parts(transfer) && is_the_rest(transfer);
    *skip = governed->gate.body_bytes;
    return governed->gate.status == 200 && announced_length(transfer) == resume->total;
}

bool resume_is_whole(const struct transfer *transfer)
{
    const struct governed *governed = transfer->governed;
    return governed->gate.is_proven &&
           (governed->resume->total < 0 || governed->gate.body_bytes == governed->resume->total);
}

CURLcode resume_surface(const struct transfer *transfer)
{
    const struct resume *resume = transfer->governed->resume;
    if (transfer->options.error_buffer)
        memcpy(transfer->options.error_buffer, resume->message, CURL_ERROR_SIZE);
    return resume->code;
}

curl_off_t resume_total(const struct resume *resume)
{
    return resume->total;
}

struct first_response *resume_first_response(const struct resume *resume)
{
    return resume->first;
}

void resume_free(struct resume *resume)
{
    if (!resume)
        return;
    first_response_free(resume->first);
    free(resume->url);
    free(resume);
}
