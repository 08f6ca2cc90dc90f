/* SPDX-License-Identifier: MIT */
/*
 * Resolving, once for each change of what it depends on: the URL is parsed and the policy looked up
 * when the program has set another URL or method, not at each request.
 */
#include "shim/governed.h"

#include "core/system/clock.h"

#include <stdlib.h>
#include <string.h>

static bool is_up_to_date(const struct transfer *transfer, const struct governed *governed, const char *method)
{
    /* A CURLU belongs to the program, which may change it at any time. */
    return governed->resolved_for_changes == transfer->target_changes && !transfer->options.url_handle &&
           strcmp(governed->method, method) == 0;
}

/* What is only observed has buckets of its own: trying out a quota must not hold up those who do not. */
static void keep_to_ourselves(struct resolved_policy *resolved)
{
    static const char mark[] = " (observed)";
    for (unsigned i = 0; i < resolved->bucket_count; i++) {
        char *name = resolved->buckets[i].name;
        size_t length = strlen(name);
        size_t most = BUCKET_NAME_SIZE - sizeof mark;
        strcpy(name + (length < most ? length : most), mark);
    }
}

static void resolve(struct transfer *transfer, struct governed *governed, const char *method)
{
    const struct runtime *runtime = governed->runtime;
    governed->resolved_for_changes = transfer->target_changes;
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
    policy_resolve(runtime->config, &target, &governed->resolved);
    struct policy *policy = &governed->resolved.values;
    if (runtime->mode < policy->mode)
        policy->mode = runtime->mode;
    governed->is_ours = policy->mode != MODE_OFF;
    if (policy->mode == MODE_OBSERVE)
        keep_to_ourselves(&governed->resolved);
}

struct governed *governed_of(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    if (!governed) {
        const struct runtime *runtime = runtime_get();
        if (!runtime)
            return NULL;
        governed = calloc(1, sizeof *governed);
        if (!governed)
            return NULL;
        governed->runtime = runtime;
        transfer->governed = governed;
    }
    const char *method = transfer_method(transfer);
    if (!is_up_to_date(transfer, governed, method))
        resolve(transfer, governed, method);
    return governed->is_ours ? governed : NULL;
}

bool governed_is_active(const struct transfer *transfer)
{
    return transfer->governed && transfer->governed->phase != PHASE_IDLE;
}

void governed_leave(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    governed->phase = PHASE_IDLE;
    overrides_undo(transfer);
    governor_end(&governed->request, clock_now_ns());
    gate_end(&governed->gate);
}

void governed_reset(struct governed *governed)
{
    if (governed)
        governed->unattempted = false;
}

void governed_free(struct governed *governed)
{
    if (!governed)
        return;
    if (governed->phase != PHASE_IDLE) /* left by longjmp */
        governor_end(&governed->request, clock_now_ns());
    gate_end(&governed->gate);
    free(governed->hop);
    if (governed->blank)
        governed->gate.transfer->real->curl_easy_cleanup(governed->blank);
    free(governed);
}
