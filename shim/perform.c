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
#include "shim/body.h"
#include "shim/failure.h"
#include "shim/gate.h"
#include "shim/governed.h"
#include "shim/hop.h"
#include "shim/real.h"
#include "shim/report.h"
#include "shim/transfer.h"
#include "shim/wait.h"
#include "shim/waiting.h"

#include "core/request_headers.h"
#include "core/system/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What nearly every request does without. */
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

static void begin_request(struct transfer *transfer, struct bucket *const *buckets, int64_t now_ns)
{
    struct governed *governed = transfer->governed;
    governor_begin(&governed->request, &governed->runtime->governor, &governed->resolved, buckets, &governed->traits,
                   transfer->options.timeout_ms * NS_PER_MS, now_ns);
    if (!governed->method_is_safe)
        governed->request.traits = traits_of_write(transfer);
    gate_begin_request(&governed->gate, transfer, &governed->request);
    governed->began_with_changes = transfer->request_changes;
    governed->unattempted = true;
    governed->paused = false;
    governed->is_elsewhere = false;
    if (transfer->options.error_buffer)
        transfer->options.error_buffer[0] = '\0';
}

/* The program's own timeout is one for the whole transfer, so an attempt gets what is left of it. */
static void limit_attempt(struct transfer *transfer, int64_t now_ns)
{
    const struct governor_request *request = &transfer->governed->request;
    if (request->deadline_ns != TIME_NEVER && now_ns - request->begun_ns >= NS_PER_MS)
        overrides_limit_time(transfer, (request->deadline_ns - now_ns) / NS_PER_MS);
}

/* Older libcurls stop at the status line when CURLOPT_FAILONERROR is set: what there is counts. */
static bool has_response(const struct gate *gate, CURLcode code)
{
    return gate->status && (gate->block_complete || code == CURLE_HTTP_RETURNED_ERROR);
}

/* There is none, or none that is whole. */
static OFF_THE_SHORT_WAY void failure_outcome(const struct transfer *transfer, CURLcode code, int64_t now_ns,
                                              struct outcome *outcome)
{
    const struct governed *governed = transfer->governed;
    bool sent = failure_request_was_sent(transfer);
    *outcome = (struct outcome){
        .failure = failure_of(transfer, code, now_ns >= governed->request.deadline_ns - NS_PER_MS),
        .delivered = governed->gate.delivered,
        .request_sent = sent,
        .body_resendable = transfer_body_is_resendable(transfer, sent),
        .headers = &governed->gate.headers,
    };
}

/* What the gate has had decided at the end of the headers. */
static struct governor_step decided(const struct gate *gate, CURLcode code)
{
    struct governor_step step = gate->decision;
    /* The program itself ended it while the refused body came: it wants no more. */
    if (code == CURLE_ABORTED_BY_CALLBACK)
        step = (struct governor_step){.action = GOVERNOR_DELIVER, .cause = CAUSE_ABORTED, .until_ns = TIME_NEVER};
    return step;
}

/* What came of the attempt.  A response that was not held because it could not be retried anyway is not
 * "delivered": why it cannot be retried is for the governor to say. */
static struct governor_step decide(struct transfer *transfer, CURLcode code)
{
    struct governed *governed = transfer->governed;
    struct gate *gate = &governed->gate;
    struct bucket *speaker = NULL;
    struct outcome outcome;
    int64_t now_ns = clock_now_ns();
    if (has_response(gate, code))
        gate_outcome(gate, &outcome, &speaker);
    else
        failure_outcome(transfer, code, now_ns, &outcome);
    struct governor_step step = governor_outcome(&governed->request, &outcome, speaker, now_ns, clock_wall_s());
    if (gate->delivered && step.action == GOVERNOR_RETRY)
        step.action = GOVERNOR_DELIVER;
    return step;
}

/* What ends a perform outside libcurl's own, in the words that it has for the same. */

static CURLcode end_with(const struct transfer *transfer, CURLcode code, const char *message)
{
    if (transfer->options.error_buffer)
        snprintf(transfer->options.error_buffer, CURL_ERROR_SIZE, "%s", message);
    return code;
}

static CURLcode end_by_callback(const struct transfer *transfer)
{
    return end_with(transfer, CURLE_ABORTED_BY_CALLBACK, "Callback aborted");
}

static CURLcode end_by_write(const struct transfer *transfer)
{
    return end_with(transfer, CURLE_WRITE_ERROR, "Failure writing output to destination");
}

static CURLcode end_by_timeout(const struct transfer *transfer, int64_t now_ns)
{
    char message[64];
    int64_t begun_ns = transfer->governed->request.begun_ns;
    snprintf(message, sizeof message, "Operation timed out after %" PRId64 " milliseconds",
             (now_ns - begun_ns) / NS_PER_MS);
    return end_with(transfer, CURLE_OPERATION_TIMEDOUT, message);
}

/* Waits for a program that has paused, until it goes on. */
static OFF_THE_SHORT_WAY CURLcode wait_for_program(struct transfer *transfer, const bool *pauses)
{
    while (*pauses) {
        int64_t deadline_ns = transfer->governed->request.deadline_ns;
        int64_t now_ns = clock_now_ns();
        if (now_ns >= deadline_ns)
            return end_by_timeout(transfer, now_ns);
        if (!wait_slice(transfer, deadline_ns))
            return end_by_callback(transfer);
    }
    return CURLE_OK;
}

static OFF_THE_SHORT_WAY CURLcode flush_kept(struct transfer *transfer, CURLcode code)
{
    struct gate *gate = &transfer->governed->gate;
    for (;;) {
        switch (gate_flush(gate)) {
        case GATE_FLUSH_DONE:
            return code;
        case GATE_FLUSH_STOPPED:
            return end_by_write(transfer);
        case GATE_FLUSH_PAUSED:
            break;
        }
        CURLcode waited = wait_for_program(transfer, &gate->program_pauses);
        if (waited != CURLE_OK)
            return waited;
    }
}

/* The kept response, to the program, after all. */
static CURLcode deliver_kept(struct transfer *transfer, CURLcode code)
{
    struct gate *gate = &transfer->governed->gate;
    /* It has had its say: it ended the transfer, or libcurl did while it was paused. */
    if (gate->program_stopped || gate->program_pauses)
        return code;
    if (code != CURLE_OK)
        gate_drop_what_was_shown(gate);
    return kept_is_empty(&gate->kept) ? code : flush_kept(transfer, code);
}

/* No attempt was made: a real result of libcurl's, whose error buffer says why. */
static CURLcode refuse_unattempted(struct transfer *transfer, const struct governor_step *step)
{
    if (transfer->options.error_buffer)
        report_refusal(transfer->governed, step, transfer->options.error_buffer, CURL_ERROR_SIZE);
    return CURLE_OPERATION_TIMEDOUT;
}

/* A new connection costs system calls of libcurl's own; then a look at the world outside is not much more. */
static bool has_connected(const struct transfer *transfer)
{
    long connections = 0;
    transfer->real->curl_easy_getinfo(transfer_handle(transfer), CURLINFO_NUM_CONNECTS, &connections);
    return connections > 0;
}

static CURLcode attempt(struct transfer *transfer, int64_t now_ns)
{
    struct governed *governed = transfer->governed;
    if (governed->request.attempts > 0) {
        overrides_for_repeat(transfer);
        gate_begin_attempt(&governed->gate);
    }
    limit_attempt(transfer, now_ns);
    governed->reader_called = false;
    governed->is_elsewhere = false;
    governed->unattempted = false;
    governor_sent(&governed->request, now_ns);
    governed->phase = PHASE_ATTEMPTING;
    CURLcode code = transfer->real->curl_easy_perform(transfer_handle(transfer));
    governed->phase = PHASE_WAITING;
    if (has_connected(transfer))
        runtime_look();
    return code;
}

/* A repeat would not be one: the program has changed the request while it waited. */
static bool request_was_changed(const struct transfer *transfer)
{
    return transfer->request_changes != transfer->governed->began_with_changes;
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
            return request->attempts ? deliver_kept(transfer, code) : refuse_unattempted(transfer, &step);
        }
        report_would(governed, &step);
        if (request->attempts && request_was_changed(transfer))
            return deliver_kept(transfer, code);
        code = attempt(transfer, now_ns);
        step = governed->gate.decided ? decided(&governed->gate, code) : decide(transfer, code);
        report_outcome(governed, &step, code);
        if (step.cause == CAUSE_ABORTED)
            return code;
        if (step.action != GOVERNOR_RETRY)
            return deliver_kept(transfer, code);
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
        transfer->governed->unattempted = false;
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
    begin_request(transfer, buckets, now_ns);
    report_others(governed);
    overrides_set(transfer);
    governed->phase = PHASE_WAITING;
    CURLcode code = perform_governed(transfer);
    governed_leave(transfer);
    return code;
}
