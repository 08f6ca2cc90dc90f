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
#include "shim/overrides.h"
#include "shim/resume.h"

#include "core/system/clock.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What is not for the shortest way, and is kept out of its frames: that one is taken by nearly every
 * response that is not refused and every program that does not listen to header lines. */
#define OFF_THE_SHORT_WAY __attribute__((noinline))

/* Since 8.7.0 CURLOPT_HEADER puts trailers into the body too. */
#define VERSION_TRAILERS_IN_BODY 0x080700

/* Field by field: most of a gate is room for headers, which needs no clearing. */
void gate_begin_attempt(struct gate *gate)
{
    kept_clear(&gate->kept);
    gate->mode = GATE_LIVE;
    memset(gate->blocks, 0, sizeof gate->blocks);
    gate->in_block = gate->block_is_final = gate->block_complete = gate->lines_pass = false;
    gate->status = 0;
    headers_begin(&gate->headers);
    gate->decided = false;
    gate->had[STREAM_HEADERS] = gate->had[STREAM_BODY] = 0;
    gate->body_bytes = 0;
    gate->resuming = false;
    gate->header_half_done = gate->delivered = gate->program_pauses = gate->has_paused = gate->program_stopped = false;
}

void gate_begin_resumed(struct gate *gate)
{
    curl_off_t body_bytes = gate->body_bytes;
    gate_begin_attempt(gate);
    gate->body_bytes = body_bytes;
    gate->resuming = gate->delivered = true;
    gate->is_proven = false;
    gate->skip = 0;
}

void gate_begin_request(struct gate *gate, struct transfer *transfer, struct governor_request *request)
{
    gate->transfer = transfer;
    gate->request = request;
    gate->is_active = true;
    gate->is_held = gate->is_giving = false;
    memset(gate->shown, 0, sizeof gate->shown);
    gate_begin_attempt(gate);
}

void gate_note_pause(struct gate *gate)
{
    gate->has_paused = true;
    gate->lines_pass = false;
}

void gate_hold(struct gate *gate, bool is_held)
{
    bool was_held = gate->is_held;
    gate->is_held = is_held;
    if (is_held)
        gate_note_pause(gate);
    else if (was_held && gate->mode == GATE_LIVE && !gate->program_pauses && !gate->is_giving)
        gate_flush(gate);
}

void gate_end(struct gate *gate)
{
    if (gate->kept.bytes)
        kept_free(&gate->kept);
    gate->is_active = gate->lines_pass = false;
}

/* ------------------------------------------------------------- to the program ---- */

static curl_write_callback write_callback(const struct options *options)
{
    return options->write_function ? options->write_function : (curl_write_callback)(uintptr_t)fwrite;
}

/* As libcurl writes bodies: in chunks of at most CURL_MAX_WRITE_SIZE.  Returns `length`, or what the
 * callback returned instead. */
static size_t write_chunks(const struct options *options, char *data, size_t length)
{
    for (size_t written = 0; written < length;) {
        size_t chunk = length - written < CURL_MAX_WRITE_SIZE ? length - written : CURL_MAX_WRITE_SIZE;
        size_t result = write_callback(options)(data + written, 1, chunk, options->write_data);
        if (result != chunk)
            return result == length ? 0 : result;
        written += chunk;
    }
    return length;
}

OFF_THE_SHORT_WAY static size_t deliver_header(struct gate *gate, char *line, size_t length, bool is_trailer)
{
    const struct options *options = &gate->transfer->options;
    bool in_body =
        options->header_in_body && (!is_trailer || gate->transfer->real->version >= VERSION_TRAILERS_IN_BODY);
    if (in_body && !gate->header_half_done) {
        size_t result = write_chunks(options, line, length);
        if (result != length)
            return result;
        gate->header_half_done = true;
    }
    size_t result = length;
    gate->as_header = true;
    if (options->header_function)
        result = options->header_function(line, 1, length, options->header_data);
    else if (options->header_data)
        result = write_callback(options)(line, 1, length, options->header_data);
    if (result == length)
        gate->header_half_done = false;
    return result;
}

/* A transfer that somebody drives who does not come through our hooks. */
static size_t pass_header(const struct transfer *transfer, char *line, size_t length)
{
    const struct options *options = &transfer->options;
    if (options->header_function)
        return options->header_function(line, 1, length, options->header_data);
    return options->header_data ? write_callback(options)(line, 1, length, options->header_data) : length;
}

static bool listens_to_headers(const struct options *options)
{
    return options->header_function || options->header_data || options->header_in_body;
}

/* What the program makes of a piece that it does not take. */
OFF_THE_SHORT_WAY static void note_result(struct gate *gate, size_t result)
{
    if (result == CURL_WRITEFUNC_PAUSE) {
        gate->program_pauses = true;
        gate_note_pause(gate);
    } else {
        gate->program_stopped = true;
        gate->stop_value = result;
    }
}

/* One piece to the program; true if it took it. */
static inline bool deliver(struct gate *gate, enum piece_kind kind, char *data, size_t length)
{
    const struct options *options = &gate->transfer->options;
    curl_off_t body_bytes = gate->body_bytes;
    size_t result = length;
    gate->as_header = false;
    gate->is_giving = true;
    if (kind == PIECE_BODY) {
        gate->body_bytes += (curl_off_t)length; /* getinfo tells of a piece while it is given */
        result = write_callback(options)(data, 1, length, options->write_data);
    } else if (listens_to_headers(options)) {
        result = deliver_header(gate, data, length, kind == PIECE_TRAILER);
    }
    gate->is_giving = false;
    if (result != length) {
        note_result(gate, result);
        gate->body_bytes = body_bytes;
        return false;
    }
    gate->delivered = gate->delivered || gate->block_is_final || kind == PIECE_BODY;
    return true;
}

enum gate_flush gate_flush(struct gate *gate)
{
    enum piece_kind kind;
    char *data;
    size_t length;
    if (gate->program_stopped)
        return GATE_FLUSH_STOPPED;
    gate->program_pauses = false;
    if (gate->is_held)
        return GATE_FLUSH_PAUSED;
    while (kept_front(&gate->kept, &kind, &data, &length)) {
        if (!deliver(gate, kind, data, length))
            return gate->program_pauses ? GATE_FLUSH_PAUSED : GATE_FLUSH_STOPPED;
        kept_pop(&gate->kept);
        if (gate->is_held)
            return kept_is_empty(&gate->kept) ? GATE_FLUSH_DONE : GATE_FLUSH_PAUSED;
    }
    return GATE_FLUSH_DONE;
}

/* ---------------------------------------------------------------------- pieces ---- */

/* The program gets this response: what is kept goes first, at the end of this callback. */
static void let_through(struct gate *gate)
{
    gate->mode = GATE_LIVE;
    for (unsigned kind = 0; kind < HEAD_KINDS; kind++)
        if (gate->shown[kind] < gate->blocks[kind])
            gate->shown[kind] = gate->blocks[kind];
}

/* It is the program's all the same: too large to keep, or no other attempt could begin in time. */
static void give_up_keeping(struct gate *gate, enum cause cause, const char *why)
{
    gate->request->why = why;
    gate->decision = (struct governor_step){.action = GOVERNOR_DELIVER, .cause = cause, .until_ns = TIME_NEVER};
    gate->decided = true;
    overrides_leave_time(gate->transfer);
    let_through(gate);
}

static bool comes_too_late(const struct gate *gate)
{
    return gate->mode == GATE_KEEPING && clock_now_ns() > gate->keep_until_ns;
}

OFF_THE_SHORT_WAY static void keep_piece(struct gate *gate, enum piece_kind kind, char *data, size_t length)
{
    bool is_late = comes_too_late(gate);
    if (gate->mode != GATE_LIVE && !is_late && kept_add(&gate->kept, kind, data, length, GATE_KEEP_MAX))
        return;
    if (gate->mode != GATE_LIVE) {
        if (is_late)
            give_up_keeping(gate, CAUSE_TOTAL_BUDGET, "it comes so slowly that no time is left for another attempt");
        else
            give_up_keeping(gate, CAUSE_NOT_REPEATABLE, "too large to be kept while another attempt is made");
        if (gate_flush(gate) == GATE_FLUSH_DONE && deliver(gate, kind, data, length))
            return;
        if (gate->program_stopped)
            return;
    }
    if (!kept_add(&gate->kept, kind, data, length, SIZE_MAX)) {
        gate->program_stopped = true; /* out of memory: a clear error, and nothing out of order */
        gate->stop_value = 0;
    }
}

/* Its header block is not the program's, nor are the trailers of another response. */
static bool is_of_the_rest(const struct gate *gate, enum piece_kind kind)
{
    return kind == PIECE_BODY || (kind == PIECE_TRAILER && gate->is_proven);
}

/* One piece, in the order in which they came: to the program, or behind what is kept. */
static inline void take_piece(struct gate *gate, enum piece_kind kind, char *data, size_t length)
{
    if (gate->program_stopped || (gate->resuming && !is_of_the_rest(gate, kind)))
        return;
    if (gate->mode == GATE_LIVE && kept_is_empty(&gate->kept) && deliver(gate, kind, data, length))
        return;
    if (!gate->program_stopped)
        keep_piece(gate, kind, data, length);
}

/* What to tell libcurl at the end of a callback that brought `length` bytes. */
static size_t answer(struct gate *gate, enum gate_stream stream, size_t length)
{
    if (gate->mode == GATE_LIVE && !gate->program_pauses && !kept_is_empty(&gate->kept))
        gate_flush(gate);
    gate->had[stream] = 0;
    if (gate->program_stopped) {
        gate->stopped_in = stream;
        return gate->stop_value != length ? gate->stop_value : 0;
    }
    if (gate->program_pauses) {
        gate->had[stream] = length;
        return CURL_WRITEFUNC_PAUSE;
    }
    return length;
}

/* ---------------------------------------------------------------------- blocks ---- */

static const char line_start[] = "HTTP/";

/* As libcurl does, whatever the case of the letters. */
static bool is_status_line(const char *line, size_t length)
{
    return length >= sizeof line_start - 1 && strncasecmp(line, line_start, sizeof line_start - 1) == 0;
}

/* 0: it has none. */
static int status_of(const char *line, size_t length)
{
    size_t at = sizeof line_start - 1;
    while (at < length && line[at] != ' ')
        at++;
    while (at < length && line[at] == ' ')
        at++;
    if (length - at < 3)
        return 0;
    unsigned hundreds = (unsigned char)line[at] - '0', tens = (unsigned char)line[at + 1] - '0',
             ones = (unsigned char)line[at + 2] - '0';
    return hundreds > 9 || tens > 9 || ones > 9 ? 0 : (int)(hundreds * 100 + tens * 10 + ones);
}

/* libcurl has not taken a CONNECT's status for the response's. */
static bool is_tunnel_answer(const struct gate *gate, int status)
{
    long code = 0;
    gate->transfer->real->curl_easy_getinfo(transfer_handle(gate->transfer), CURLINFO_RESPONSE_CODE, &code);
    return code != status;
}

static bool may_be_intermediate(int status)
{
    return (status >= 300 && status < 400) || status == 401 || status == 407;
}

static bool has_blocks(const struct gate *gate)
{
    return (gate->blocks[HEAD_OF_TUNNEL] | gate->blocks[HEAD_OF_INFORMATION] | gate->blocks[HEAD_OF_ANSWER]) != 0;
}

static bool was_shown(const struct gate *gate)
{
    return gate->blocks[gate->head_kind] <= gate->shown[gate->head_kind];
}

static void begin_block(struct gate *gate, const char *line, size_t length)
{
    int status = is_status_line(line, length) ? status_of(line, length) : 0;

    if (has_blocks(gate)) /* an attempt begins without any */
        headers_begin(&gate->headers);
    gate->in_block = true;
    gate->head_kind = status == 0                      ? HEAD_OF_ANSWER
                      : status < 200                   ? HEAD_OF_INFORMATION
                      : is_tunnel_answer(gate, status) ? HEAD_OF_TUNNEL
                                                       : HEAD_OF_ANSWER;
    gate->block_is_final = gate->head_kind == HEAD_OF_ANSWER;
    gate->block_complete = false;
    gate->delivered = gate->resuming || gate->body_bytes > 0;
    gate->is_proven = false;
    gate->status = gate->block_is_final ? status : 0;
    if (++gate->blocks[gate->head_kind] > 1 && gate->block_is_final)
        hop_charge(gate->transfer);

    if (gate->mode == GATE_KEEPING || gate->resuming)
        return;
    /* Held, not decided, and yet another block: it was an intermediate one that the program has had. */
    if (gate->mode == GATE_HOLDING)
        kept_clear(&gate->kept);
    bool is_retryable = gate->block_is_final && governor_holds(gate->request, status);
    bool is_repeated = was_shown(gate) && (!gate->block_is_final || may_be_intermediate(status));
    if (is_retryable || is_repeated)
        gate->mode = GATE_HOLDING;
    else
        let_through(gate);
}

bool gate_hides_answer(const struct gate *gate)
{
    return gate->mode == GATE_KEEPING ||
           (gate->mode == GATE_HOLDING && gate->block_is_final && governor_holds(gate->request, gate->status));
}

void gate_outcome(const struct gate *gate, struct outcome *outcome, struct bucket **speaker)
{
    governed_keep_buckets(gate->transfer->governed);
    *outcome = (struct outcome){
        .status = gate->status,
        .failure = FAILURE_NONE,
        .from_elsewhere = hop_is_elsewhere(gate->transfer, speaker),
        .request_sent = true,
        .body_resendable = body_is_repeatable(gate->transfer, true),
        .headers = &gate->headers,
    };
}

/* The rest of it is not worth more time than this.  Where that would leave none for another attempt, it is not
 * cut off but given to the program. */
static void limit_drain(struct gate *gate)
{
    int64_t end_ns = clock_now_ns() + GATE_DRAIN_MS * NS_PER_MS;
    gate->keep_until_ns = governor_latest_ns(gate->request);
    if (end_ns < gate->keep_until_ns)
        overrides_limit_time(gate->transfer, (end_ns - gate->request->last_sent_ns) / NS_PER_MS);
}

/* The header block of a held response is complete: now it can be decided. */
OFF_THE_SHORT_WAY static void decide(struct gate *gate)
{
    struct bucket *speaker;
    struct outcome outcome;
    gate_outcome(gate, &outcome, &speaker);
    gate->decision = governor_outcome(gate->request, &outcome, speaker, clock_now_ns(), clock_wall_s());
    gate->decided = true;
    if (gate->decision.action == GOVERNOR_RETRY) {
        gate->mode = GATE_KEEPING;
        limit_drain(gate);
        overrides_tell_progress(gate->transfer);
    } else {
        let_through(gate);
    }
}

OFF_THE_SHORT_WAY static void judge_resumed(struct gate *gate)
{
    if (governor_holds(gate->request, gate->status))
        decide(gate);
    else
        gate->is_proven = resume_is_proven(gate->transfer, &gate->skip);
}

static bool is_blank(const char *line, size_t length)
{
    return (length == 2 && line[0] == '\r' && line[1] == '\n') || (length == 1 && line[0] == '\n');
}

static void end_block(struct gate *gate)
{
    gate->in_block = false;
    gate->block_complete = gate->block_is_final;
    gate->head_was_paused = gate->has_paused;
    if (gate->resuming && gate->block_is_final)
        judge_resumed(gate);
    else if (gate->mode == GATE_HOLDING && gate->block_is_final && governor_holds(gate->request, gate->status))
        decide(gate);
}

/* Inlined, since the first and the last line of each block are not for the shortest way. */
static inline __attribute__((always_inline)) void take_line(struct gate *gate, char *line, size_t length)
{
    if (gate->in_block) {
        bool is_last = is_blank(line, length);
        if (gate->block_is_final && !is_last)
            headers_add(&gate->headers, line, length);
        take_piece(gate, PIECE_HEADER, line, length);
        if (is_last)
            end_block(gate);
    } else if (is_status_line(line, length) || !gate->block_complete) {
        /* Another line that libcurl takes for a status line: CURLOPT_HTTP200ALIASES. */
        begin_block(gate, line, length);
        take_piece(gate, PIECE_HEADER, line, length);
    } else {
        take_piece(gate, PIECE_TRAILER, line, length);
    }
}

void gate_drop_what_was_shown(struct gate *gate)
{
    if (gate->mode == GATE_HOLDING && was_shown(gate))
        kept_clear(&gate->kept);
}

/* ------------------------------------------------------------------- callbacks ---- */

/* After a pause they come again, and run together. */
OFF_THE_SHORT_WAY static void take_lines(struct gate *gate, char *data, size_t length)
{
    size_t at = gate->had[STREAM_HEADERS] < length ? gate->had[STREAM_HEADERS] : length;
    while (at < length) {
        const char *end = memchr(data + at, '\n', length - at);
        size_t line_length = end ? (size_t)(end - (data + at)) + 1 : length - at;
        take_line(gate, data + at, line_length);
        at += line_length;
    }
}

OFF_THE_SHORT_WAY static size_t take_header(struct gate *gate, char *data, size_t length)
{
    if (!gate->is_active)
        return pass_header(gate->transfer, data, length);
    gate->program_pauses = false;
    if (gate->has_paused)
        take_lines(gate, data, length);
    else
        take_line(gate, data, length);
    size_t result = answer(gate, STREAM_HEADERS, length);
    gate->lines_pass = gate->in_block && gate->block_is_final && gate->mode == GATE_LIVE && !gate->has_paused &&
                       kept_is_empty(&gate->kept);
    return result;
}

/* The shortest way is for nearly every field line of every response. */
size_t gate_on_header(char *data, size_t size, size_t count, void *userdata)
{
    struct gate *gate = userdata;
    size_t length = size * count;
    if (!gate->lines_pass || length <= 2 || listens_to_headers(&gate->transfer->options))
        return take_header(gate, data, length);
    headers_add(&gate->headers, data, length);
    return length;
}

/* More than there can be: what has come was not what it said it was. */
static bool is_too_much(struct gate *gate, size_t length)
{
    curl_off_t total = resume_total(gate->transfer->governed->resume);
    if (total >= 0 && (curl_off_t)length > total - gate->body_bytes)
        gate->is_proven = false;
    return !gate->is_proven;
}

/* Of the body of a resumed attempt: where the rest begins in this piece.  False: it is none of it. */
OFF_THE_SHORT_WAY static bool find_rest(struct gate *gate, size_t *at, size_t length)
{
    if (!gate->is_proven) {
        gate->skip += (curl_off_t)length; /* of a refusal, drained for the sake of the connection */
        *at = length;
        return gate->decided && gate->skip <= (curl_off_t)GATE_KEEP_MAX;
    }
    size_t left = length - *at;
    size_t skipped = gate->skip < (curl_off_t)left ? (size_t)gate->skip : left;
    gate->skip -= (curl_off_t)skipped;
    *at += skipped;
    return !is_too_much(gate, length - *at);
}

size_t gate_on_body(char *data, size_t size, size_t count, void *userdata)
{
    struct gate *gate = userdata;
    size_t length = size * count;
    if (!gate->is_active)
        return write_callback(&gate->transfer->options)(data, 1, length, gate->transfer->options.write_data);
    size_t at = gate->had[STREAM_BODY] < length ? gate->had[STREAM_BODY] : length;

    gate->program_pauses = false;
    if (gate->resuming && !find_rest(gate, &at, length))
        return length ? 0 : 1;
    if (gate->mode == GATE_HOLDING) {
        /* Without a final block: HTTP/0.9. */
        if (!gate->block_is_final)
            gate_drop_what_was_shown(gate);
        let_through(gate); /* the held block was the final one, and the program's */
    }
    if (at < length)
        take_piece(gate, PIECE_BODY, data + at, length - at);
    return answer(gate, STREAM_BODY, length);
}
