/* SPDX-License-Identifier: MIT */
/*
 * From a CURLcode and what the gate has seen to an outcome, for the governor to decide about.
 */
#include "shim/verdict.h"

#include "shim/failure.h"
#include "shim/resume.h"

#include "core/system/clock.h"

#define OFF_THE_SHORT_WAY __attribute__((noinline))

/* What libcurl itself takes offence at in a header block, in older versions as soon as it has read that line:
 * the server has spoken, and what there is counts. */
static bool is_objection(CURLcode code)
{
    return code == CURLE_HTTP_RETURNED_ERROR || code == CURLE_FILESIZE_EXCEEDED || code == CURLE_RANGE_ERROR ||
           code == CURLE_BAD_CONTENT_ENCODING || code == CURLE_BAD_DOWNLOAD_RESUME;
}

static bool has_response(const struct gate *gate, CURLcode code)
{
    return gate->status && (gate->block_complete || is_objection(code));
}

bool verdict_is_late(const struct transfer *transfer, int64_t now_ns)
{
    return now_ns >= transfer->governed->request.deadline_ns - NS_PER_MS;
}

/* There is none, or none that is whole. */
static OFF_THE_SHORT_WAY void failure_outcome(const struct transfer *transfer, CURLcode code, int64_t now_ns,
                                              bool resumable, struct outcome *outcome)
{
    const struct governed *governed = transfer->governed;
    bool sent = failure_request_was_sent(transfer);
    *outcome = (struct outcome){
        .failure = failure_of(transfer, code, verdict_is_late(transfer, now_ns)),
        .delivered = governed->gate.delivered,
        .request_sent = sent,
        .body_resendable = body_is_repeatable(transfer, sent),
        .resumable = resumable,
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

/* A body that has come further has its time anew. */
static bool can_be_resumed(struct transfer *transfer, CURLcode code, int64_t now_ns)
{
    struct governed *governed = transfer->governed;
    if (!governed->resolved.values.resume || !resume_prepare(transfer, code))
        return false;
    if (!governed->gate.resuming || governed->gate.is_proven)
        governor_note_progress(&governed->request, now_ns);
    return true;
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
    bool resumable = code != CURLE_OK && can_be_resumed(transfer, code, now_ns);
    if (has_response(gate, code) && !resumable)
        gate_outcome(gate, &outcome, &speaker);
    else
        failure_outcome(transfer, code, now_ns, resumable, &outcome);
    struct governor_step step = governor_outcome(&governed->request, &outcome, speaker, now_ns, clock_wall_s());
    if (gate->delivered && !resumable && step.action == GOVERNOR_RETRY)
        step.action = GOVERNOR_DELIVER;
    governed->is_resumed = governed->is_resumed || (resumable && step.action == GOVERNOR_RETRY);
    return step;
}

/* What an attempt that goes on with a body has brought is not the rest of it. */
static struct governor_step decide_unproven(struct transfer *transfer)
{
    transfer->governed->request.why = "what came was not provably the rest of the body";
    return (struct governor_step){.action = GOVERNOR_DELIVER, .cause = CAUSE_NOT_REPEATABLE, .until_ns = TIME_NEVER};
}

struct governor_step verdict_of(struct transfer *transfer, CURLcode code)
{
    const struct gate *gate = &transfer->governed->gate;
    if (gate->decided)
        return decided(gate, code);
    if (gate->resuming && gate->block_complete && !gate->is_proven)
        return decide_unproven(transfer);
    return decide(transfer, code);
}
