/* SPDX-License-Identifier: MIT */
/*
 * The requests that were given up, by method and URL.
 */
#include "shim/own_retry.h"

#include "core/hash.h"
#include "core/own_retries.h"
#include "core/system/clock.h"

static struct own_retries given_up;

/* A URL handle belongs to the program; what it is about then is known without its query. */
static uint64_t request_hash(const struct transfer *transfer)
{
    const struct governed *governed = transfer->governed;
    uint64_t hash = hash_text(HASH_START, governed->method);
    if (governed->body.source != BODY_NONE)
        hash = hash_number(hash, governed->body.evidence);
    if (!transfer->options.url_handle && transfer->options.url)
        return hash_text(hash, transfer->options.url);
    hash = hash_number(hash_text(hash, governed->target.host), governed->target.port);
    return hash_text(hash, governed->target.path);
}

void own_retry_begin(struct transfer *transfer, int64_t now_ns)
{
    if (!own_retries_are_empty(&given_up))
        transfer->governed->request.is_own_retry = own_retries_find(&given_up, request_hash(transfer), now_ns);
}

/* Tried again as often, or as long, as it may be. */
static bool is_used_up(const struct governor_request *request, const struct governor_step *last)
{
    bool is_bound = last->cause == CAUSE_MAX_ATTEMPTS || last->cause == CAUSE_TOTAL_BUDGET ||
                    last->cause == CAUSE_RETRY_BUDGET || last->cause == CAUSE_MAX_WAIT;
    return is_bound && (request->attempts > 1 || request->is_own_retry);
}

void own_retry_end(const struct transfer *transfer, const struct governor_step *last)
{
    const struct governor_request *request = &transfer->governed->request;
    if (is_used_up(request, last))
        own_retries_note(&given_up, request_hash(transfer), request->policy->total_budget, clock_now_ns());
    else if (request->is_own_retry && last->cause == CAUSE_NONE)
        own_retries_clear(&given_up, request_hash(transfer));
}
