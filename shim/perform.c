/* SPDX-License-Identifier: MIT */
/*
 * curl_easy_perform: steps the governor, and waits by sleeping.
 *
 * It is always the program's own call (libcurl never calls it), so it is governed whoever seems to
 * have made it: a callback of a transfer under way may perform another handle.
 *
 * A callback of the program's may longjmp or throw through us.  So nothing is held in these frames
 * that would have to be given back: what a perform owns hangs on the handle's record and goes with
 * the handle.
 */
#include "shim/ending.h"
#include "shim/governed.h"
#include "shim/own_retry.h"
#include "shim/report.h"
#include "shim/request.h"
#include "shim/resume.h"
#include "shim/verdict.h"
#include "shim/wait.h"
#include "shim/waiting.h"

#include "core/system/clock.h"

/* A connection that was idle for so long may be dead without anybody having noticed. */
#define LONG_WAIT_NS (5 * NS_PER_SECOND)

/* What nearly every request does without. */
#define OFF_THE_SHORT_WAY __attribute__((noinline))

/* The program's own timeout is one for the whole transfer, so an attempt gets what is left of it. */
static void limit_attempt(struct transfer *transfer, int64_t now_ns)
{
    const struct governor_request *request = &transfer->governed->request;
    if (request->deadline_ns != TIME_NEVER && now_ns - request->begun_ns >= NS_PER_MS)
        overrides_limit_time(transfer, (request->deadline_ns - now_ns) / NS_PER_MS);
    else
        overrides_release_time(transfer);
}

/* A new connection costs system calls of libcurl's own; then a look at the world outside is not much more. */
static bool has_connected(const struct transfer *transfer)
{
    long connections = 0;
    transfer->real->curl_easy_getinfo(transfer_handle(transfer), CURLINFO_NUM_CONNECTS, &connections);
    return connections > 0;
}

static OFF_THE_SHORT_WAY void begin_repeat(struct transfer *transfer)
{
    struct gate *gate = &transfer->governed->gate;
    if (!transfer->governed->is_resumed) {
        gate_begin_attempt(gate);
        return;
    }
    resume_begin_attempt(transfer);
    gate_begin_resumed(gate);
    overrides_tell_progress(transfer);
}

static CURLcode attempt(struct transfer *transfer, int64_t now_ns)
{
    struct governed *governed = transfer->governed;
    if (governed->request.attempts > 0) {
        overrides_for_repeat(transfer);
        begin_repeat(transfer);
    }
    if (governed->request.waited_ns >= LONG_WAIT_NS && body_is_one_shot(transfer))
        overrides_connect_anew(transfer);
    limit_attempt(transfer, now_ns);
    governed->body.reader_called = false;
    governed->is_elsewhere = false;
    governed->tells_nothing = false;
    governor_sent(&governed->request, now_ns);
    governed->phase = PHASE_ATTEMPTING;
    CURLcode code = transfer->real->curl_easy_perform(transfer_handle(transfer));
    governed->phase = PHASE_WAITING;
    if (has_connected(transfer))
        runtime_look();
    return code;
}

/* The governor allows a repeat; but there will be none. */
static OFF_THE_SHORT_WAY CURLcode give_up_repeating(struct transfer *transfer, CURLcode code, const char *why)
{
    struct governed *governed = transfer->governed;
    const struct governor_step step = {
        .action = GOVERNOR_DELIVER, .cause = CAUSE_NOT_REPEATABLE, .until_ns = TIME_NEVER};
    governed->request.why = why;
    report_outcome(governed, &step, code);
    return end_with_kept(transfer, code);
}

/* While it waits the program may have changed its mind about how long that may take. */
static void follow_timeout(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    int64_t timeout_ms = transfer->options.timeout_ms;
    if (timeout_ms == governed->began_with_timeout_ms)
        return;
    governed->began_with_timeout_ms = timeout_ms;
    governor_set_timeout(&governed->request, timeout_ms * NS_PER_MS);
}

static CURLcode perform_governed(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    struct governor_request *request = &governed->request;
    CURLcode code = CURLE_OK;

    for (;;) {
        CURLcode waited = governed->paused ? wait_for_program(transfer, &governed->paused) : CURLE_OK;
        if (waited != CURLE_OK)
            return waited;
        /* Read anew: limits that were published since the request began count from then. */
        follow_timeout(transfer);
        int64_t now_ns = clock_now_ns();
        struct governor_step step = governor_admit(request, now_ns);
        if (step.action == GOVERNOR_WAIT) {
            waiting_note(governed, &step);
            report_wait(governed, &step);
            if (!wait_slice(transfer, step.until_ns))
                return end_by_callback(transfer);
            runtime_look();
            governed_keep_up(transfer);
            continue;
        }
        if (governed->waiter)
            waiting_end(governed);
        if (step.action == GOVERNOR_REFUSE) {
            report_giving_up(governed, &step);
            own_retry_end(transfer, &step);
            return request->attempts ? end_with_kept(transfer, code) : end_unattempted(transfer, &step);
        }
        report_would(governed, &step);
        if (request->attempts && request_was_changed(transfer))
            return give_up_repeating(transfer, code, "the program has changed it meanwhile");
        code = attempt(transfer, now_ns);
        step = verdict_of(transfer, code);
        if (step.action == GOVERNOR_RETRY && !body_rewind(transfer))
            return give_up_repeating(transfer, code, "its body cannot be sent again");
        report_outcome(governed, &step, code);
        if (step.cause == CAUSE_ABORTED) {
            governed->tells_nothing = gate_hides_answer(&governed->gate);
            return code;
        }
        if (step.action != GOVERNOR_RETRY) {
            own_retry_end(transfer, &step);
            return end_with_kept(transfer, code);
        }
        governed->tells_nothing = true;
    }
}

/* From within its own callbacks, or after one of them left by longjmp.  Within an attempt libcurl has
 * an answer of its own; while we wait there is no transfer in it, and this is what it would say. */
static CURLcode refuse_recursion(const struct transfer *transfer)
{
    if (transfer->governed->phase == PHASE_ATTEMPTING)
        return transfer->real->curl_easy_perform(transfer_handle(transfer));
    return end_with(transfer, CURLE_FAILED_INIT, "easy handle already used in multi handle");
}

static CURLcode perform_freely(struct transfer *transfer)
{
    if (transfer->governed) {
        governed_forget_response(transfer->governed);
        overrides_undo(transfer);
    }
    return transfer->real->curl_easy_perform(transfer_handle(transfer));
}

EXPORTED CURLcode curl_easy_perform(CURL *handle)
{
    struct transfer *transfer = transfer_find(handle);
    if (!transfer) {
        const struct real *real = real_of_caller(__builtin_return_address(0));
        return real ? real->curl_easy_perform(handle) : CURLE_FAILED_INIT;
    }
    if (governed_is_active(transfer))
        return refuse_recursion(transfer);
    struct governed *governed = governed_of(transfer);
    if (!governed)
        return perform_freely(transfer);
    struct bucket *buckets[POLICY_BUCKETS_MAX];
    int64_t now_ns = clock_now_ns();
    governed_find_buckets(governed, buckets, now_ns);
    if (buckets[0] && bucket_mode(buckets[0], now_ns) == OPERATOR_OFF)
        return perform_freely(transfer);
    request_begin(transfer, buckets, now_ns);
    report_others(governed);
    overrides_set(transfer);
    if (governed->added && governed->added->count)
        overrides_add_headers(transfer);
    governed->phase = PHASE_WAITING;
    CURLcode code = perform_governed(transfer);
    governed_leave(transfer);
    return code;
}
