/* SPDX-License-Identifier: MIT */
/*
 * The easy interface: the hooks that keep each handle's record, and curl_easy_perform, which steps
 * the governor and waits by sleeping.
 *
 * curl_easy_perform is always the program's own call (libcurl never calls it), so it is governed
 * whoever seems to have made it: a callback of a transfer under way may perform another handle.
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

#include "core/system/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---------------------------------------------------------- the life of a handle ---- */

EXPORTED CURL *curl_easy_init(void)
{
    const void *caller = __builtin_return_address(0);
    const struct real *real = real_of_caller(caller);
    if (!real)
        return NULL;
    CURL *handle = real->curl_easy_init();
    /* libcurl makes handles for itself too, which it never hands out. */
    if (handle && !real_caller_is_libcurl(caller))
        transfer_new(handle, real);
    return handle;
}

EXPORTED void curl_easy_cleanup(CURL *handle)
{
    struct transfer *transfer = transfer_find(handle);
    const struct real *real = transfer ? transfer->real : real_of_caller(__builtin_return_address(0));
    if (!real)
        return;
    /* First, since the address may be given out again the moment it is free. */
    if (transfer)
        transfer_forget(transfer);
    real->curl_easy_cleanup(handle);
}

/* ------------------------------------------------ what is ours during a perform ---- */

static CURL *handle_of(const struct transfer *transfer)
{
    return atomic_load_explicit(&transfer->handle, memory_order_relaxed);
}

static void put_in_place(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    const struct real *real = transfer->real;
    CURL *handle = handle_of(transfer);
    const struct options *options = &transfer->options;

    real->curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, gate_on_body);
    real->curl_easy_setopt(handle, CURLOPT_WRITEDATA, &governed->gate);
    real->curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, gate_on_header);
    real->curl_easy_setopt(handle, CURLOPT_HEADERDATA, &governed->gate);
    if (options->header_in_body)
        real->curl_easy_setopt(handle, CURLOPT_HEADER, 0L);
    governed->reader_in_place = body_has_reader_callback(transfer);
    if (governed->reader_in_place) {
        real->curl_easy_setopt(handle, CURLOPT_READFUNCTION, body_on_read);
        real->curl_easy_setopt(handle, CURLOPT_READDATA, transfer);
    }
}

/* The program's own options again, on `handle`: its own, or a copy made meanwhile. */
static void put_back(const struct transfer *transfer, CURL *handle)
{
    const struct real *real = transfer->real;
    const struct options *options = &transfer->options;

    real->curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, options->write_function);
    real->curl_easy_setopt(handle, CURLOPT_WRITEDATA, options->write_data);
    real->curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, options->header_function);
    real->curl_easy_setopt(handle, CURLOPT_HEADERDATA, options->header_data);
    if (options->header_in_body)
        real->curl_easy_setopt(handle, CURLOPT_HEADER, 1L);
    if (transfer->governed->reader_in_place) {
        real->curl_easy_setopt(handle, CURLOPT_READFUNCTION, options->read_function);
        real->curl_easy_setopt(handle, CURLOPT_READDATA, options->read_data);
    }
    if (options->timeout_ms)
        real->curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, (long)options->timeout_ms);
}

/* Options that are ours while a perform is under way: what the program sets meanwhile is noted, in
 * force at once through our callbacks, and put back afterwards. */
static bool is_ours_during_perform(const struct governed *governed, CURLoption option)
{
    switch ((int)option) {
    case CURLOPT_READFUNCTION:
    case CURLOPT_READDATA:
        return governed->reader_in_place;
    case CURLOPT_WRITEFUNCTION:
    case CURLOPT_WRITEDATA:
    case CURLOPT_HEADERFUNCTION:
    case CURLOPT_HEADERDATA:
    case CURLOPT_HEADER:
        return true;
    default:
        return false;
    }
}

static bool is_active(const struct transfer *transfer)
{
    return transfer->governed && transfer->governed->active;
}

EXPORTED CURLcode curl_easy_setopt(CURL *handle, CURLoption option, ...)
{
    va_list arguments;
    va_start(arguments, option);
    void *argument = va_arg(arguments, void *); /* LP64: see passthrough.c */
    va_end(arguments);

    struct transfer *transfer = transfer_find(handle);
    if (!transfer) {
        const struct real *real = real_of_caller(__builtin_return_address(0));
        return real ? real->curl_easy_setopt(handle, option, argument) : CURLE_FAILED_INIT;
    }
    if (is_active(transfer) && is_ours_during_perform(transfer->governed, option)) {
        transfer_note_option(transfer, option, argument);
        return CURLE_OK;
    }
    CURLcode code = transfer->real->curl_easy_setopt(handle, option, argument);
    if (code == CURLE_OK)
        transfer_note_option(transfer, option, argument);
    return code;
}

EXPORTED void curl_easy_reset(CURL *handle)
{
    struct transfer *transfer = transfer_find(handle);
    const struct real *real = transfer ? transfer->real : real_of_caller(__builtin_return_address(0));
    if (!real)
        return;
    real->curl_easy_reset(handle);
    if (transfer)
        transfer_reset(transfer);
}

EXPORTED CURL *curl_easy_duphandle(CURL *handle)
{
    struct transfer *transfer = transfer_find(handle);
    const struct real *real = transfer ? transfer->real : real_of_caller(__builtin_return_address(0));
    if (!real)
        return NULL;
    CURL *copy = real->curl_easy_duphandle(handle);
    if (!copy || !transfer)
        return copy;
    if (is_active(transfer))
        put_back(transfer, copy);
    transfer_copy(transfer, copy);
    return copy;
}

/* After a perform that ended without an attempt, what tells of a transfer must not tell of an older
 * one: a handle that has done nothing answers.  What the program set is still asked of its own. */
static bool tells_of_settings(CURLINFO info)
{
    return info == CURLINFO_PRIVATE || info == CURLINFO_EFFECTIVE_URL || info == CURLINFO_COOKIELIST ||
           info == CURLINFO_SSL_ENGINES || info == CURLINFO_ACTIVESOCKET || info == CURLINFO_LASTSOCKET;
}

static CURL *blank_handle(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    if (!governed->blank)
        governed->blank = transfer->real->curl_easy_init();
    return governed->blank ? governed->blank : handle_of(transfer);
}

EXPORTED CURLcode curl_easy_getinfo(CURL *handle, CURLINFO info, ...)
{
    va_list arguments;
    va_start(arguments, info);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);

    struct transfer *transfer = transfer_find(handle);
    if (!transfer) {
        const struct real *real = real_of_caller(__builtin_return_address(0));
        return real ? real->curl_easy_getinfo(handle, info, argument) : CURLE_FAILED_INIT;
    }
    if (transfer->governed && transfer->governed->unattempted && !tells_of_settings(info))
        handle = blank_handle(transfer);
    return transfer->real->curl_easy_getinfo(handle, info, argument);
}

EXPORTED CURLcode curl_easy_pause(CURL *handle, int bitmask)
{
    struct transfer *transfer = transfer_find(handle);
    const struct real *real = transfer ? transfer->real : real_of_caller(__builtin_return_address(0));
    if (!real || !real->curl_easy_pause)
        return CURLE_FAILED_INIT;
    /* Paused while a kept response is given to it: there is no transfer in libcurl to go on with. */
    if (transfer && is_active(transfer) && transfer->governed->gate.paused) {
        transfer->governed->gate.paused = (bitmask & CURLPAUSE_RECV) != 0;
        return CURLE_OK;
    }
    return real->curl_easy_pause(handle, bitmask);
}

/* -------------------------------------------------------------------- perform ---- */

static bool header_is(const char *line, const char *name, size_t name_length)
{
    return strncasecmp(line, name, name_length) == 0 && line[name_length] == ':';
}

/* What of the request decides whether it may be repeated.  Only writes are looked at closely. */
static struct request_traits traits_of(const struct transfer *transfer)
{
    const struct governed *governed = transfer->governed;
    struct request_traits traits = {
        .method = governed->method,
        .is_loopback = governed->target.is_loopback,
        .host_is_named = governed->resolved.host_is_named,
    };
    if (classify_method_is_safe(governed->method))
        return traits;
    const char *key_header = governed->resolved.values.idempotency_header;
    size_t key_length = key_header ? strlen(key_header) : 0;
    traits.is_conditional = transfer->options.if_unmodified_since;
    for (const struct curl_slist *header = transfer->options.headers; header; header = header->next) {
        if (!header->data)
            continue;
        if (key_length && header_is(header->data, key_header, key_length) && header->data[key_length + 1])
            traits.has_idempotency_key = true;
        if (header_is(header->data, "If-Match", 8) || header_is(header->data, "If-None-Match", 13) ||
            header_is(header->data, "If-Unmodified-Since", 19))
            traits.is_conditional = true;
    }
    return traits;
}

static void begin_request(struct transfer *transfer, int64_t now_ns)
{
    struct governed *governed = transfer->governed;
    struct bucket *buckets[POLICY_BUCKETS_MAX];
    for (unsigned i = 0; i < governed->resolved.bucket_count; i++)
        buckets[i] = runtime_bucket(governed->runtime, governed->resolved.buckets[i].name, now_ns);
    struct request_traits traits = traits_of(transfer);
    governor_begin(&governed->request, &governed->runtime->governor, &governed->resolved, buckets, &traits,
                   transfer->options.timeout_ms * NS_PER_MS, now_ns);
    gate_begin_request(&governed->gate, transfer, &governed->request);
    governed->unattempted = false;
}

/* The program's own timeout is one for the whole transfer, so an attempt gets what is left of it;
 * never 0, which would mean none. */
static void limit_attempt(const struct transfer *transfer, int64_t now_ns)
{
    const struct governor_request *request = &transfer->governed->request;
    if (request->deadline_ns == TIME_NEVER || now_ns - request->begun_ns < NS_PER_MS)
        return;
    int64_t left_ms = (request->deadline_ns - now_ns) / NS_PER_MS;
    transfer->real->curl_easy_setopt(handle_of(transfer), CURLOPT_TIMEOUT_MS, (long)(left_ms > 1 ? left_ms : 1));
}

/* What came of the attempt, where the gate has not had it decided at the end of the headers. */
static struct governor_step decide(struct transfer *transfer, CURLcode code)
{
    struct governed *governed = transfer->governed;
    struct gate *gate = &governed->gate;
    if (gate->decided) {
        /* The program itself ended it while the refused body came: it wants no more. */
        if (code == CURLE_ABORTED_BY_CALLBACK && gate->decision.action == GOVERNOR_RETRY)
            return (struct governor_step){.action = GOVERNOR_DELIVER, .cause = CAUSE_ABORTED, .until_ns = TIME_NEVER};
        return gate->decision;
    }
    int64_t now_ns = clock_now_ns();
    bool sent = failure_request_was_sent(transfer);
    /* Older libcurls stop at the status line when CURLOPT_FAILONERROR is set: what there is counts. */
    bool has_response = gate->status && (gate->block_complete || code == CURLE_HTTP_RETURNED_ERROR);
    const struct outcome outcome = {
        .status = has_response ? gate->status : 0,
        .failure = has_response ? FAILURE_NONE
                                : failure_of(transfer, code, now_ns >= governed->request.deadline_ns - NS_PER_MS),
        .delivered = gate->delivered,
        .request_sent = sent,
        .body_resendable = transfer_body_is_resendable(transfer, sent),
        .headers = &gate->headers,
    };
    struct bucket *speaker = has_response ? hop_bucket(transfer) : NULL;
    return governor_outcome(&governed->request, &outcome, speaker, now_ns, clock_wall_s());
}

/* The kept response, to the program, after all.  Its callbacks may pause here too. */
static CURLcode deliver_kept(struct transfer *transfer, CURLcode code)
{
    struct gate *gate = &transfer->governed->gate;
    for (;;) {
        switch (gate_flush(gate)) {
        case GATE_FLUSH_DONE:
            return code;
        case GATE_FLUSH_STOPPED:
            return CURLE_WRITE_ERROR;
        case GATE_FLUSH_PAUSED:
            gate->paused = true;
            while (gate->paused)
                if (!wait_slice(transfer, TIME_NEVER))
                    return CURLE_ABORTED_BY_CALLBACK;
        }
    }
}

/* No attempt was made: a real result of libcurl's, whose error buffer says why. */
static CURLcode refuse_unattempted(struct transfer *transfer, const struct governor_step *step)
{
    transfer->governed->unattempted = true;
    if (transfer->options.error_buffer)
        report_refusal(transfer->governed, step, transfer->options.error_buffer, CURL_ERROR_SIZE);
    return CURLE_OPERATION_TIMEDOUT;
}

static CURLcode attempt(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    int64_t now_ns = clock_now_ns();
    gate_begin_attempt(&governed->gate);
    governed->reader_called = false;
    limit_attempt(transfer, now_ns);
    governor_sent(&governed->request, now_ns);
    return transfer->real->curl_easy_perform(handle_of(transfer));
}

static CURLcode perform_governed(struct transfer *transfer)
{
    struct governed *governed = transfer->governed;
    struct governor_request *request = &governed->request;
    CURLcode code = CURLE_OK;

    for (;;) {
        struct governor_step step = governor_admit(request, clock_now_ns());
        switch (step.action) {
        case GOVERNOR_WAIT:
            report_wait(governed, &step);
            if (!wait_slice(transfer, step.until_ns))
                return CURLE_ABORTED_BY_CALLBACK;
            continue;
        case GOVERNOR_REFUSE:
            report_giving_up(governed, &step);
            return request->attempts ? deliver_kept(transfer, code) : refuse_unattempted(transfer, &step);
        default:
            break;
        }
        code = attempt(transfer);
        step = decide(transfer, code);
        report_outcome(governed, &step, code);
        if (step.action != GOVERNOR_RETRY)
            return deliver_kept(transfer, code);
    }
}

EXPORTED CURLcode curl_easy_perform(CURL *handle)
{
    struct transfer *transfer = transfer_find(handle);
    if (!transfer) {
        const struct real *real = real_of_caller(__builtin_return_address(0));
        return real ? real->curl_easy_perform(handle) : CURLE_FAILED_INIT;
    }
    /* From within its own callbacks: libcurl has an answer of its own to that. */
    if (is_active(transfer))
        return transfer->real->curl_easy_perform(handle);
    struct governed *governed = governed_of(transfer);
    if (!governed)
        return transfer->real->curl_easy_perform(handle);

    begin_request(transfer, clock_now_ns());
    put_in_place(transfer);
    governed->active = true;
    CURLcode code = perform_governed(transfer);
    governed->active = false;
    put_back(transfer, handle);
    governor_end(&governed->request, clock_now_ns());
    gate_end(&governed->gate);
    return code;
}
