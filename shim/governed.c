/* SPDX-License-Identifier: MIT */
/*
 * Resolving, once for each change of what it depends on: the URL is parsed and the policy looked up
 * when the program has set another URL or method, not at each request.
 */
#include "shim/governed.h"

#include "shim/report.h"
#include "shim/resume.h"
#include "shim/waiting.h"

#include "core/glance.h"
#include "core/system/clock.h"

#include <stdlib.h>
#include <string.h>

/* Settings that make the method may have been changed, and changed back. */
static bool has_same_method(const struct transfer *transfer, struct governed *governed)
{
    if (governed->method_for_changes == transfer->method_changes)
        return true;
    if (strcmp(governed->method, transfer_method(transfer)) != 0)
        return false;
    governed->method_for_changes = transfer->method_changes;
    return true;
}

static bool is_up_to_date(const struct transfer *transfer, struct governed *governed)
{
    /* A CURLU belongs to the program, which may change it at any time. */
    return governed->resolved_for_changes == transfer->target_changes && !transfer->options.url_handle &&
           has_same_method(transfer, governed);
}

static void resolve(struct transfer *transfer, struct governed *governed, const char *method)
{
    const struct runtime *runtime = governed->runtime;
    governed->resolved_for_changes = transfer->target_changes;
    if (method != governed->method)
        strcpy(governed->method, method);
    governed->is_ours = target_of(transfer, &governed->target);
    if (!governed->is_ours)
        return;
    const struct policy_target target = {
        .host = governed->target.host,
        .port = governed->target.port,
        .path = governed->target.path,
        .method = governed->method,
        .program = runtime->program,
    };
    runtime_resolve(runtime, &target, &governed->resolved);
    governed->method_is_safe = classify_method_is_safe(governed->method);
    governed->traits = (struct request_traits){
        .method = governed->method,
        .is_loopback = governed->target.is_loopback || transfer->options.loopback_proxy,
        .host_is_named = governed->resolved.host_is_named,
    };
    for (unsigned i = 0; i < governed->resolved.bucket_count; i++)
        governed->bucket_keys[i] = segment_key(&runtime->segment, governed->resolved.buckets[i].name);
    governed->is_ours = governed->resolved.values.mode != MODE_OFF;
    governed->told_of_others = false;
    report_policy(governed);
}

/* What was resolved was so by the other one. */
static void take_runtime(struct governed *governed, const struct runtime *runtime)
{
    const struct runtime *before = governed->runtime;
    governed->runtime = runtime;
    governed->resolved_for_changes = 0;
    free(governed->hop);
    governed->hop = NULL;
    runtime_release(before);
}

/* A record of a handle that is to be governed, or was once, under the present runtime. */
static __attribute__((noinline)) struct governed *renew(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    const struct runtime *runtime = runtime_hold();
    if (!governed && runtime)
        governed = transfer->governed = calloc(1, sizeof *governed);
    if (governed)
        take_runtime(governed, runtime);
    else
        runtime_release(runtime);
    return runtime ? governed : NULL;
}

static bool is_switched_off(const struct runtime *runtime)
{
    return !segment_has_no_mode(&runtime->segment) &&
           segment_mode(&runtime->segment, clock_now_ns(), NULL) == OPERATOR_OFF;
}

struct governed *governed_of(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    if (!governed || !governed->runtime || !runtime_is_current(governed->runtime))
        governed = renew(transfer);
    if (!governed || is_switched_off(governed->runtime))
        return NULL;
    if (!is_up_to_date(transfer, governed)) {
        governed->method_for_changes = transfer->method_changes;
        resolve(transfer, governed, transfer_method(transfer));
    }
    return governed->is_ours ? governed : NULL;
}

void governed_find_buckets(const struct governed *governed, struct bucket *buckets[POLICY_BUCKETS_MAX], int64_t now_ns)
{
    for (unsigned i = 0; i < governed->resolved.bucket_count; i++)
        buckets[i] =
            runtime_bucket(governed->runtime, governed->bucket_keys[i], governed->resolved.buckets[i].name, now_ns);
}

void governed_find_buckets_again(struct governed *governed)
{
    struct bucket *buckets[POLICY_BUCKETS_MAX];
    int64_t now_ns = clock_now_ns();
    governed_find_buckets(governed, buckets, now_ns);
    governor_rebase(&governed->request, &governed->runtime->governor, &governed->resolved, buckets, now_ns);
}

void governed_keep_up(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    struct bucket *buckets[POLICY_BUCKETS_MAX];
    if (governed->request.ceiling == MODE_OFF)
        return;
    if (runtime_is_current(governed->runtime)) {
        governed_keep_buckets(governed);
        return;
    }
    const struct runtime *runtime = runtime_hold();
    if (!runtime) {
        governed->request.ceiling = MODE_OFF;
        return;
    }
    if (runtime == governed->runtime) { /* another thread is making the new one */
        runtime_release(runtime);
        return;
    }
    int64_t now_ns = clock_now_ns();
    const struct runtime *before = governed->runtime;
    waiting_end(governed);
    governed->runtime = runtime;
    resolve(transfer, governed, governed->method);
    governed_find_buckets(governed, buckets, now_ns);
    governor_rebase(&governed->request, &runtime->governor, &governed->resolved, buckets, now_ns);
    free(governed->hop);
    governed->hop = NULL;
    runtime_release(before);
}

bool governed_adds_headers(struct governed *governed)
{
    if (!governed->added)
        governed->added = calloc(1, sizeof *governed->added);
    return governed->added != NULL;
}

void governed_leave(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    governed->phase = PHASE_IDLE;
    overrides_rest(transfer);
    governor_end(&governed->request, governed->request.wait_began_ns ? clock_now_ns() : 0);
    if (governed->waiter)
        waiting_end(governed);
    gate_end(&governed->gate);
    body_end(&governed->body);
}

void governed_reset(struct governed *governed)
{
    if (!governed)
        return;
    governed->was_resumed_before_reset = governed->was_resumed_before_reset || governed->is_resumed;
    governed->tells_nothing = governed->is_resumed = false;
}

void governed_free(struct governed *governed)
{
    if (!governed)
        return;
    if (governed->phase != PHASE_IDLE) { /* left by longjmp */
        governor_end(&governed->request, clock_now_ns());
        waiting_end(governed);
    }
    gate_end(&governed->gate);
    body_end(&governed->body);
    free(governed->added);
    resume_free(governed->resume);
    free(governed->hop);
    if (governed->url_text)
        governed->gate.transfer->real->curl_free(governed->url_text);
    if (governed->blank)
        governed->gate.transfer->real->curl_easy_cleanup(governed->blank);
    runtime_release(governed->runtime);
    free(governed);
}
