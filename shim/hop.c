/* SPDX-License-Identifier: MIT */
/*
 * libcurl's effective URL tells, also from within a callback, which hop is answering.
 */
#include "shim/hop.h"

#include "core/system/clock.h"

#include <stdlib.h>
#include <string.h>

/* Another host than the transfer's own, and what speaks for it.  Made at the first redirect that
 * leaves the host; most transfers never need one. */
struct hop {
    struct target target;
    struct resolved_policy resolved;
};

static bool is_same_place(const struct target *a, const struct target *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

static const char *effective_url(const struct transfer *transfer)
{
    const char *url = NULL;
    CURL *handle = atomic_load_explicit(&transfer->handle, memory_order_relaxed);
    transfer->real->curl_easy_getinfo(handle, CURLINFO_EFFECTIVE_URL, &url);
    return url;
}

static bool has_left_home(const struct transfer *transfer)
{
    long redirects = 0;
    CURL *handle = atomic_load_explicit(&transfer->handle, memory_order_relaxed);
    transfer->real->curl_easy_getinfo(handle, CURLINFO_REDIRECT_COUNT, &redirects);
    return redirects > 0;
}

static void resolve(struct governed *governed, const struct target *target)
{
    struct hop *hop = governed->hop;
    if (is_same_place(&hop->target, target) && strcmp(hop->target.path, target->path) == 0)
        return;
    hop->target = *target;
    const struct policy_target policy_target = {
        .host = hop->target.host,
        .port = hop->target.port,
        .path = hop->target.path,
        .method = governed->method,
        .program = governed->runtime->program,
    };
    policy_resolve(governed->runtime->config, &policy_target, &hop->resolved);
}

struct bucket *hop_bucket(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    if (!has_left_home(transfer))
        return NULL;
    const char *url = effective_url(transfer);
    struct target target;
    if (!url || !target_of_url(transfer->real, url, &target) || is_same_place(&target, &governed->target))
        return NULL;
    if (!governed->hop)
        governed->hop = calloc(1, sizeof *governed->hop);
    if (!governed->hop)
        return NULL;
    resolve(governed, &target);
    const struct policy_bucket *named = &governed->hop->resolved.buckets[governed->hop->resolved.bucket_count - 1];
    int64_t now_ns = clock_now_ns();
    struct bucket *bucket = runtime_bucket(governed->runtime, named->name, now_ns);
    if (bucket)
        bucket_ask_limits(bucket, &governed->runtime->governor.world, now_ns, &named->limits);
    return bucket;
}

void hop_charge(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    struct bucket *elsewhere = hop_bucket(transfer);
    if (elsewhere)
        bucket_charge(elsewhere, clock_now_ns(), 1);
    else
        governor_charge(&governed->request, 1, clock_now_ns());
}
