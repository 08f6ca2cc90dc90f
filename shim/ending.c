/* SPDX-License-Identifier: MIT */
/*
 * Between two attempts there is no transfer in libcurl that could end, and what it would have said is
 * said here.
 */
#include "shim/ending.h"

#include "shim/first_response.h"
#include "shim/report.h"
#include "shim/resume.h"
#include "shim/verdict.h"
#include "shim/wait.h"

#include "core/system/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OFF_THE_SHORT_WAY __attribute__((noinline))

CURLcode end_with(const struct transfer *transfer, CURLcode code, const char *message)
{
    if (transfer->options.error_buffer)
        snprintf(transfer->options.error_buffer, CURL_ERROR_SIZE, "%s", message);
    return code;
}

CURLcode end_by_callback(const struct transfer *transfer)
{
    return end_with(transfer, CURLE_ABORTED_BY_CALLBACK, "Callback aborted");
}

/* Which of its callbacks has refused, in libcurl's words. */
static CURLcode end_by_write(const struct transfer *transfer)
{
    return end_with(transfer, CURLE_WRITE_ERROR,
                    transfer->governed->gate.as_header ? "Failed writing header"
                                                       : "Failure writing output to destination");
}

static CURLcode end_by_timeout(const struct transfer *transfer, int64_t now_ns)
{
    char message[64];
    int64_t begun_ns = transfer->governed->request.begun_ns;
    snprintf(message, sizeof message, "Operation timed out after %" PRId64 " milliseconds",
             (now_ns - begun_ns) / NS_PER_MS);
    return end_with(transfer, CURLE_OPERATION_TIMEDOUT, message);
}

CURLcode wait_for_program(struct transfer *transfer, const bool *pauses)
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

/* libcurl counts from the beginning of the attempt, and the bytes of one. */
static OFF_THE_SHORT_WAY void tell_whole_time(const struct transfer *transfer, int64_t now_ns)
{
    static const char words[] = " timed out after ";
    const struct governed *governed = transfer->governed;
    char *buffer = transfer->options.error_buffer;
    char *number = buffer ? strstr(buffer, words) : NULL;
    char rest[CURL_ERROR_SIZE];
    if (!number || (governed->request.attempts < 2 && !governed->request.waited_ns))
        return;
    number += sizeof words - 1;
    snprintf(rest, sizeof rest, "%s", number + strspn(number, "0123456789"));
    curl_off_t total = governed->is_resumed ? resume_total(governed->resume) : -1;
    if (total >= 0)
        snprintf(rest, sizeof rest, " milliseconds with %" PRId64 " out of %" PRId64 " bytes received",
                 (int64_t)governed->gate.body_bytes, (int64_t)total);
    else if (governed->is_resumed)
        snprintf(rest, sizeof rest, " milliseconds with %" PRId64 " bytes received", (int64_t)governed->gate.body_bytes);
    size_t room = CURL_ERROR_SIZE - (size_t)(number - buffer);
    snprintf(number, room, "%" PRId64 "%s", (now_ns - governed->request.begun_ns) / NS_PER_MS, rest);
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
        CURLcode waited = wait_for_program(transfer, gate->is_held ? &gate->is_held : &gate->program_pauses);
        if (waited != CURLE_OK)
            return waited;
    }
}

/* A response that several attempts have brought: whole, or the error that it broke off with; but what
 * the program itself, or its timeout, has ended is ended by that. */
static OFF_THE_SHORT_WAY CURLcode end_resumed(struct transfer *transfer, CURLcode code)
{
    const struct gate *gate = &transfer->governed->gate;
    if (code == CURLE_OK)
        first_response_add_trailers(resume_first_response(transfer->governed->resume), transfer);
    if ((code == CURLE_OK && resume_is_whole(transfer)) || gate->program_stopped || gate->program_pauses ||
        code == CURLE_ABORTED_BY_CALLBACK || verdict_is_late(transfer, clock_now_ns()))
        return code;
    return resume_surface(transfer);
}

CURLcode end_with_kept(struct transfer *transfer, CURLcode code)
{
    struct gate *gate = &transfer->governed->gate;
    transfer->governed->tells_nothing = false;
    if (code == CURLE_OPERATION_TIMEDOUT) {
        int64_t now_ns = clock_now_ns();
        if (verdict_is_late(transfer, now_ns))
            tell_whole_time(transfer, now_ns);
    }
    if (transfer->governed->is_resumed)
        return end_resumed(transfer, code);
    /* It has had its say: it ended the transfer, or libcurl did while it was paused. */
    if (gate->program_stopped && code == CURLE_WRITE_ERROR && gate->as_header != (gate->stopped_in == STREAM_HEADERS))
        return end_by_write(transfer); /* libcurl has put it down to the callback that is ours */
    if (gate->program_stopped || gate->program_pauses)
        return code;
    if (code != CURLE_OK)
        gate_drop_what_was_shown(gate);
    return kept_is_empty(&gate->kept) ? code : flush_kept(transfer, code);
}

CURLcode end_unattempted(const struct transfer *transfer, const struct governor_step *step)
{
    if (transfer->options.error_buffer)
        report_refusal(transfer->governed, step, transfer->options.error_buffer, CURL_ERROR_SIZE);
    return CURLE_OPERATION_TIMEDOUT;
}
