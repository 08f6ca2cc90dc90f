/* SPDX-License-Identifier: MIT */
/*
 * Entering, keeping up to date, leaving.
 */
#include "shim/waiting.h"

#include "core/log.h"
#include "core/system/process.h"
#include "core/waiters.h"

#include <stdio.h>
#include <pthread.h>

static void enter(struct governed *governed, const struct governor_step *step)
{
    const struct governor_request *request = &governed->request;
    struct waiter waiter = {
        .owner = process_self(),
        .thread = (int)((uintptr_t)pthread_self() >> 12), /* gettid is a system call of its own */
        .cause = step->cause,
        .began_ns = request->wait_began_ns,
        .until_ns = step->until_ns,
    };
    snprintf(waiter.bucket, sizeof waiter.bucket, "%s", governed->resolved.buckets[0].name);
    char authority[TARGET_AUTHORITY_SIZE];
    target_write_authority(&governed->target, authority);
    log_endpoint(governed->method, authority, governed->target.path, waiter.endpoint, sizeof waiter.endpoint);
    governed->waiter = waiters_enter(&governed->runtime->segment, &governed->runtime->governor.world, &waiter);
}

void waiting_note(struct governed *governed, const struct governor_step *step)
{
    if (governed->waiter)
        waiters_update(&governed->runtime->segment, governed->waiter, process_self(), step->cause, step->until_ns);
    else
        enter(governed, step);
}

/* A child that was forked meanwhile has its parent's ticket, and is not its owner. */
void waiting_end(struct governed *governed)
{
    if (governed->waiter)
        waiters_leave(&governed->runtime->segment, governed->waiter, process_self());
    governed->waiter = 0;
}
