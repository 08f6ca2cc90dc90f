/* SPDX-License-Identifier: MIT */
/*
 * Most requests change nothing on the server and have no body; what the others need is kept out of their way.
 */
#include "shim/request.h"

#include "shim/own_retry.h"

#include "core/hash.h"
#include "core/request_headers.h"
#include "core/system/entropy.h"
#include "core/uuid.h"

#include <string.h>

#define OFF_THE_SHORT_WAY __attribute__((noinline))

/* What decides, beside its method and its target, whether a write may be repeated. */
static OFF_THE_SHORT_WAY struct request_traits traits_of_write(const struct transfer *transfer)
{
    const struct governed *governed = transfer->governed;
    struct request_traits traits = governed->traits;
    const char *key_header = governed->resolved.values.idempotency_header;
    traits.is_conditional = transfer->options.if_unmodified_since;
    for (const struct curl_slist *header = transfer->options.headers; header; header = header->next)
        if (header->data)
            request_headers_note(&traits, header->data, key_header);
    return traits;
}

/* The list is the program's, which may change its lines in place: another key, another condition. */
static uint64_t hash_of_headers(const struct transfer *transfer)
{
    uint64_t hash = HASH_START;
    for (const struct curl_slist *header = transfer->options.headers; header; header = header->next)
        hash = hash_text(hash_number(hash, 1), header->data ? header->data : "");
    return hash;
}

static OFF_THE_SHORT_WAY bool headers_were_changed(const struct transfer *transfer)
{
    return hash_of_headers(transfer) != transfer->governed->began_with_headers;
}

/* A POST or PATCH without a key of its own is given one, if the policy says so. */
static OFF_THE_SHORT_WAY void generate_key(struct transfer *transfer, int64_t now_ns)
{
    struct governed *governed = transfer->governed;
    struct governor_request *request = &governed->request;
    const struct policy *policy = request->policy;
    uint8_t random[UUID_BYTES];
    char key[UUID_SIZE];
    if (!classify_wants_key(policy, &request->traits) || governor_mode(request, now_ns) != MODE_ENFORCE)
        return;
    entropy_fill(random, sizeof random, governed->runtime->governor.random);
    uuid_write(random, key);
    request->traits.has_idempotency_key =
        governed_adds_headers(governed) && added_headers_add(governed->added, policy->idempotency_header, key);
    if (governed->added)
        governed->added->kept = governed->added->count;
}

/* A CURLU belongs to the program, which may change it at any time.  To be freed by libcurl's curl_free;
 * NULL: there is none. */
static char *text_of_url_handle(const struct transfer *transfer)
{
    char *text = NULL;
    CURLU *url = transfer->options.url_handle;
    return transfer->real->curl_url_get(url, CURLUPART_URL, &text, 0) == CURLUE_OK ? text : NULL;
}

static OFF_THE_SHORT_WAY void note_url_handle(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    transfer->real->curl_free(governed->url_text);
    governed->url_text = text_of_url_handle(transfer);
}

static OFF_THE_SHORT_WAY bool url_handle_was_changed(const struct transfer *transfer)
{
    const char *before = transfer->governed->url_text;
    char *now = text_of_url_handle(transfer);
    bool is_the_same = before && now && strcmp(before, now) == 0;
    transfer->real->curl_free(now);
    return !is_the_same;
}

static OFF_THE_SHORT_WAY void begin_write(struct transfer *transfer, int64_t now_ns)
{
    struct governor_request *request = &transfer->governed->request;
    request->traits = traits_of_write(transfer);
    transfer->governed->began_with_headers = hash_of_headers(transfer);
    if (request->policy->idempotency_key == IDEMPOTENCY_KEY_GENERATE)
        generate_key(transfer, now_ns);
}

void request_begin(struct transfer *transfer, struct bucket *const *buckets, int64_t now_ns)
{
    struct governed *governed = transfer->governed;
    governor_begin(&governed->request, &governed->runtime->governor, &governed->resolved, buckets, &governed->traits,
                   transfer->options.timeout_ms * NS_PER_MS, now_ns);
    if (transfer->options.url_handle)
        note_url_handle(transfer);
    if (governed->added)
        governed->added->count = governed->added->kept = 0;
    if (!governed->method_is_safe)
        begin_write(transfer, now_ns);
    body_begin(transfer, &governed->request);
    gate_begin_request(&governed->gate, transfer, &governed->request);
    own_retry_begin(transfer, now_ns);
    governed->began_with_changes = transfer->request_changes;
    governed->began_with_timeout_ms = transfer->options.timeout_ms;
    governed->tells_nothing = true;
    governed->is_resumed = governed->was_resumed_before_reset = false;
    governed->paused = false;
    governed->is_elsewhere = false;
    if (transfer->options.error_buffer)
        transfer->options.error_buffer[0] = '\0';
}

bool request_was_changed(const struct transfer *transfer)
{
    const struct governed *governed = transfer->governed;
    return transfer->request_changes != governed->began_with_changes || !body_is_unchanged(transfer) ||
           (!governed->method_is_safe && headers_were_changed(transfer)) ||
           (transfer->options.url_handle && url_handle_was_changed(transfer));
}
