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
    transfer->real->curl_easy_getinfo(transfer_handle(transfer), CURLINFO_EFFECTIVE_URL, &url);
    return url;
}

static bool has_left_home(const struct transfer *transfer)
{
    long redirects = 0;
    transfer->real->curl_easy_getinfo(transfer_handle(transfer), CURLINFO_REDIRECT_COUNT, &redirects);
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
    runtime_resolve(governed->runtime, &policy_target, &hop->resolved);
}

static struct bucket *bucket_there(struct governed *governed, const struct target *target)
{
    if (!governed->hop)
        governed->hop = calloc(1, sizeof *governed->hop);
    if (!governed->hop)
        return NULL;
    resolve(governed, target);
    const struct resolved_policy *resolved = &governed->hop->resolved;
    if (resolved->values.mode == MODE_OFF)
        return NULL;
    const struct policy_bucket *named = &resolved->buckets[resolved->bucket_count - 1];
    int64_t now_ns = clock_now_ns();
    uint64_t key = segment_key(&governed->runtime->segment, named->name);
    struct bucket *bucket = runtime_bucket(governed->runtime, key, named->name, now_ns);
    if (bucket)
        bucket_ask_limits(bucket, &governed->runtime->governor.world, now_ns, &named->limits);
    return bucket;
}

static __attribute__((noinline)) bool find_elsewhere(struct transfer *transfer, struct bucket **bucket)
{
    struct governed *governed = transfer->governed;
    struct target target;
    if (!has_left_home(transfer))
        return false;
    const char *url = effective_url(transfer);
    if (!url || !target_of_url(transfer->real, url, &target) || is_same_place(&target, &governed->target))
        return false;
    governed->is_elsewhere = true;
    *bucket = bucket_there(governed, &target);
    return true;
}

bool hop_is_elsewhere(struct transfer *transfer, struct bucket **bucket)
{
    struct governed *governed = transfer->governed;
    *bucket = NULL;
    governed->is_elsewhere = false;
    return governed->gate.blocks[HEAD_OF_ANSWER] > 1 && find_elsewhere(transfer, bucket);
}

const struct target *hop_answering(const struct governed *governed)
{
    return governed->is_elsewhere && governed->hop ? &governed->hop->target : &governed->target;
}

void hop_charge(struct transfer *transfer)
{
    struct bucket *bucket;
    int64_t now_ns = clock_now_ns();
    if (!hop_is_elsewhere(transfer, &bucket))
        governor_charge(&transfer->governed->request, 1, now_ns);
    else if (bucket)
        bucket_charge(bucket, now_ns, 1);
}
