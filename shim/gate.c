/* SPDX-License-Identifier: MIT */
/*
 * The callbacks between libcurl and the program.  libcurl's own rules for who gets a header are
 * kept: the header callback if there is one; else, where CURLOPT_HEADERDATA is set, the write
 * callback with that pointer; and with CURLOPT_HEADER the write callback before either.  That last
 * option is taken over from libcurl for the transfer, or header bytes and body bytes could not be
 * told apart here.
 */
#include "shim/gate.h"

#include "shim/body.h"
#include "shim/hop.h"

#include "core/system/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Since 8.7.0 CURLOPT_HEADER puts trailers into the body too. */
#define VERSION_TRAILERS_IN_BODY 0x080700

/* Field by field: most of a gate is room for headers, which needs no clearing. */
void gate_begin_request(struct gate *gate, struct transfer *transfer, struct governor_request *request)
{
    gate_end(gate); /* a perform that was left by longjmp may have kept something */
    gate->transfer = transfer;
    gate->request = request;
    gate_begin_attempt(gate);
}

static void drop_kept(struct gate *gate)
{
    gate->kept_size = 0;
    gate->replayed = 0;
    gate->again = gate->header_half_done = gate->paused = false;
}

void gate_begin_attempt(struct gate *gate)
{
    drop_kept(gate);
    gate->first_attempt = gate->request->attempts == 0;
    gate->mode = GATE_LIVE;
    gate->in_block = gate->block_is_final = gate->block_complete = gate->has_body = false;
    gate->delivered = gate->program_stopped = gate->decided = false;
    gate->status = 0;
    gate->final_blocks = 0;
    headers_clear(&gate->headers);
}

void gate_end(struct gate *gate)
{
    free(gate->kept);
    gate->kept = NULL;
    gate->kept_size = gate->kept_capacity = 0;
    drop_kept(gate);
}

bool gate_keeps_something(const struct gate *gate)
{
    return gate->replayed < gate->kept_size;
}

/* ------------------------------------------------------- to the program, live ---- */

static curl_write_callback write_callback(const struct options *options)
{
    return options->write_function ? options->write_function : (curl_write_callback)(uintptr_t)fwrite;
}

/* As libcurl writes bodies: in chunks of at most CURL_MAX_WRITE_SIZE. */
static size_t write_chunks(const struct options *options, char *data, size_t length)
{
    size_t written = 0;
    do {
        size_t chunk = length - written < CURL_MAX_WRITE_SIZE ? length - written : CURL_MAX_WRITE_SIZE;
        size_t result = write_callback(options)(data + written, 1, chunk, options->write_data);
        if (result != chunk)
            return result == CURL_WRITEFUNC_PAUSE && written == 0 ? result : written + (result < chunk ? result : 0);
        written += chunk;
    } while (written < length);
    return written;
}

/* Returns what the program's callback returned, or `length` where there is none. */
static size_t deliver_header(struct gate *gate, char *line, size_t length, bool is_trailer)
{
    const struct options *options = &gate->transfer->options;
    bool in_body =
        options->header_in_body && (!is_trailer || gate->transfer->real->version >= VERSION_TRAILERS_IN_BODY);
    if (in_body && !gate->header_half_done) {
        size_t written = write_chunks(options, line, length);
        if (written != length)
            return written;
        gate->header_half_done = true;
    }
    size_t result = length;
    if (options->header_function)
        result = options->header_function(line, 1, length, options->header_data);
    else if (options->header_data)
        result = write_callback(options)(line, 1, length, options->header_data);
    if (result != CURL_WRITEFUNC_PAUSE)
        gate->header_half_done = false;
    return result;
}

static size_t deliver_body(const struct gate *gate, char *data, size_t length)
{
    const struct options *options = &gate->transfer->options;
    return write_callback(options)(data, 1, length, options->write_data);
}

/* What to tell libcurl, and what to remember, of a callback's return value. */
static size_t account(struct gate *gate, size_t result, size_t length)
{
    if (result == CURL_WRITEFUNC_PAUSE)
        return result;
    if (result != length)
        gate->program_stopped = true;
    return result;
}

/* ------------------------------------------------------------- keeping, giving ---- */

static bool keep(struct gate *gate, const char *data, size_t length, bool is_header, bool is_trailer)
{
    const struct gate_item item = {.length = length, .is_header = is_header, .is_trailer = is_trailer};
    size_t needed = gate->kept_size + sizeof item + length;
    if (needed > GATE_KEEP_MAX)
        return false;
    if (needed > gate->kept_capacity) {
        size_t capacity = gate->kept_capacity ? gate->kept_capacity * 2 : 4096;
        while (capacity < needed)
            capacity *= 2;
        char *larger = realloc(gate->kept, capacity);
        if (!larger)
            return false;
        gate->kept = larger;
        gate->kept_capacity = capacity;
    }
    memcpy(gate->kept + gate->kept_size, &item, sizeof item);
    memcpy(gate->kept + gate->kept_size + sizeof item, data, length);
    gate->kept_size = needed;
    return true;
}

enum gate_flush gate_flush(struct gate *gate)
{
    while (gate->replayed < gate->kept_size) {
        struct gate_item item;
        memcpy(&item, gate->kept + gate->replayed, sizeof item);
        char *data = gate->kept + gate->replayed + sizeof item;
        size_t result = item.is_header ? deliver_header(gate, data, item.length, item.is_trailer)
                                       : deliver_body(gate, data, item.length);
        if (result == CURL_WRITEFUNC_PAUSE)
            return GATE_FLUSH_PAUSED;
        if (result != item.length) {
            gate->program_stopped = true;
            return GATE_FLUSH_STOPPED;
        }
        gate->delivered = true;
        gate->replayed += sizeof item + item.length;
    }
    drop_kept(gate);
    return GATE_FLUSH_DONE;
}

/* The response is the program's after all: what is kept goes first, then `length` bytes that
 * libcurl has brought now (they are the last item kept already). */
static size_t let_through(struct gate *gate, size_t length)
{
    gate->mode = GATE_LIVE;
    switch (gate_flush(gate)) {
    case GATE_FLUSH_PAUSED:
        gate->again = true;
        return CURL_WRITEFUNC_PAUSE;
    case GATE_FLUSH_STOPPED:
        return length ? 0 : 1;
    case GATE_FLUSH_DONE:
        break;
    }
    return length;
}

/* Too large to keep: given to the program, and what comes now after it, live. */
static size_t give_up_keeping(struct gate *gate, char *data, size_t length, bool is_header)
{
    gate->decision = (struct governor_step){.action = GOVERNOR_DELIVER, .cause = CAUSE_NONE, .until_ns = TIME_NEVER};
    gate->decided = true;
    gate->mode = GATE_LIVE;
    if (gate_flush(gate) != GATE_FLUSH_DONE) {
        gate->program_stopped = true; /* a pause here could not be resumed in the right order */
        return length ? 0 : 1;
    }
    gate->delivered = true;
    return account(gate, is_header ? deliver_header(gate, data, length, false) : deliver_body(gate, data, length),
                   length);
}

/* ---------------------------------------------------------------------- blocks ---- */

static int status_of(const char *line, size_t length)
{
    const char *space = memchr(line, ' ', length);
    if (!space || line + length - space < 4)
        return 0;
    int status = 0;
    for (int i = 1; i <= 3; i++) {
        if (space[i] < '0' || space[i] > '9')
            return 0;
        status = status * 10 + (space[i] - '0');
    }
    return status;
}

/* libcurl has not taken a CONNECT's status for the response's. */
static bool is_tunnel_answer(const struct gate *gate, int status)
{
    long code = 0;
    CURL *handle = atomic_load_explicit(&gate->transfer->handle, memory_order_relaxed);
    gate->transfer->real->curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &code);
    return code != status;
}

static bool may_be_intermediate(int status)
{
    return status < 200 || (status >= 300 && status < 400) || status == 401 || status == 407;
}

static void begin_block(struct gate *gate, const char *line, size_t length)
{
    int status = status_of(line, length);
    bool is_final = status >= 200 && !is_tunnel_answer(gate, status);

    /* Something held and not decided, and yet another block: it was an intermediate one of a later
     * attempt.  The program has seen the first attempt's. */
    if (gate->mode == GATE_HOLDING) {
        drop_kept(gate);
        gate->mode = GATE_LIVE;
    }
    gate->in_block = true;
    gate->block_is_final = is_final;
    gate->block_complete = false;
    gate->delivered = false;
    gate->status = is_final ? status : 0;
    headers_clear(&gate->headers);
    if (is_final && ++gate->final_blocks > 1)
        hop_charge(gate->transfer);
    if (is_final && governor_holds(gate->request, status))
        gate->mode = GATE_HOLDING;
    else if (!gate->first_attempt && (!is_final || may_be_intermediate(status)))
        gate->mode = GATE_HOLDING;
}

static bool is_blank(const char *line, size_t length)
{
    return (length == 2 && line[0] == '\r' && line[1] == '\n') || (length == 1 && line[0] == '\n');
}

/* The header block of a held response is complete: now it can be decided. */
static size_t decide(struct gate *gate, size_t length)
{
    const struct outcome outcome = {
        .status = gate->status,
        .failure = FAILURE_NONE,
        .delivered = gate->delivered,
        .request_sent = true,
        .body_resendable = transfer_body_is_resendable(gate->transfer, true),
        .headers = &gate->headers,
    };
    gate->decision =
        governor_outcome(gate->request, &outcome, hop_bucket(gate->transfer), clock_now_ns(), clock_wall_s());
    gate->decided = true;
    if (gate->decision.action == GOVERNOR_RETRY) {
        gate->mode = GATE_KEEPING;
        return length;
    }
    return let_through(gate, length);
}

size_t gate_on_header(char *line, size_t size, size_t count, void *userdata)
{
    struct gate *gate = userdata;
    size_t length = size * count;
    bool is_blank_line = is_blank(line, length);

    if (gate->again) { /* the same bytes once more, after a pause */
        gate->again = false;
        return let_through(gate, length);
    }
    bool is_trailer = !gate->in_block && gate->block_complete;
    if (length >= 5 && memcmp(line, "HTTP/", 5) == 0 && !gate->in_block) {
        is_trailer = false;
        begin_block(gate, line, length);
    } else if (gate->in_block && gate->block_is_final) {
        headers_add(&gate->headers, line, length);
    }
    if (gate->mode != GATE_LIVE && !keep(gate, line, length, true, is_trailer))
        return give_up_keeping(gate, line, length, true);

    bool ends_block = is_blank_line && gate->in_block;
    if (gate->mode == GATE_LIVE) {
        size_t result = account(gate, deliver_header(gate, line, length, is_trailer), length);
        if (result != length)
            return result;
        gate->delivered = gate->delivered || gate->block_is_final;
    }
    if (ends_block) {
        gate->in_block = false;
        gate->block_complete = gate->block_is_final;
        if (gate->mode == GATE_HOLDING && gate->block_is_final && !gate->decided &&
            governor_holds(gate->request, gate->status))
            return decide(gate, length);
    }
    return length;
}

size_t gate_on_body(char *data, size_t size, size_t count, void *userdata)
{
    struct gate *gate = userdata;
    size_t length = size * count;

    if (gate->again) {
        gate->again = false;
        return let_through(gate, length);
    }
    gate->has_body = true;
    switch (gate->mode) {
    case GATE_KEEPING:
        return keep(gate, data, length, false, false) ? length : give_up_keeping(gate, data, length, false);
    case GATE_HOLDING: /* a body: the held block was the final one, and the program's */
        if (!keep(gate, data, length, false, false))
            return give_up_keeping(gate, data, length, false);
        return let_through(gate, length);
    case GATE_LIVE:
        break;
    }
    size_t result = deliver_body(gate, data, length);
    if (result == length)
        gate->delivered = true;
    return account(gate, result, length);
}
