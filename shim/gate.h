/* SPDX-License-Identifier: MIT */
/*
 * Gate: the response, between libcurl and the program's callbacks, until it is decided.
 *
 * At each status line the gate decides whether the block goes to the program live or is held:
 *   - a status that may lead to a retry is held until its header block is complete; then the
 *     governor decides, and it is either let through (headers first, the body live) or kept aside
 *     (body included, up to a bound) while the next attempt is waited for;
 *   - a block that the program has had in an earlier attempt, and that may turn out to be an
 *     intermediate one again (1xx, CONNECT, a redirect, an authentication round), is held, and
 *     dropped when another block follows;
 *   - everything else passes live, with no copy made.
 *
 * A kept body is drained for so long, and up to the size below; then the connection is given up for the
 * next attempt.  The kept response is given to the program only if no further attempt starts.
 *
 * A program may pause from its callbacks.  libcurl then brings the same bytes again, with everything
 * of their kind that has come meanwhile behind them, header lines run together into one piece.  The
 * gate takes them apart again, knows how many of them it has had, and goes on with the piece at
 * which the program paused.
 *
 * Between two governed performs it passes on what comes, in case somebody drives the transfer who does
 * not come through our hooks.
 *
 * Runs inside libcurl's callbacks, on the thread that owns the handle.
 */
#ifndef CURTSY_SHIM_GATE_H
#define CURTSY_SHIM_GATE_H

#include "shim/kept.h"
#include "shim/transfer.h"

#include "core/governor.h"

#define GATE_DRAIN_MS 5000

/* What is kept of a refused response; one that is larger is delivered instead of retried. */
#define GATE_KEEP_MAX ((size_t)1 << 20)

enum gate_mode {
    GATE_LIVE,    /* to the program as it comes */
    GATE_HOLDING, /* kept until it is decided */
    GATE_KEEPING, /* decided: another attempt is wanted; kept in case there is none */
};

/* Whose header block it is. */
enum head_kind {
    HEAD_OF_TUNNEL,      /* a proxy's answer to CONNECT */
    HEAD_OF_INFORMATION, /* 1xx */
    HEAD_OF_ANSWER,      /* to a request of its own: also a redirect, or a round of authentication */
    HEAD_KINDS
};

/* The two streams in which libcurl brings a response again after a pause. */
enum gate_stream { STREAM_HEADERS, STREAM_BODY, STREAM_COUNT };

struct gate {
    struct transfer *transfer;
    struct governor_request *request;
    bool is_active;             /* a governed perform is under way */
    unsigned shown[HEAD_KINDS]; /* header blocks, counted from an attempt's first, that the program has had */

    enum gate_mode mode;
    unsigned blocks[HEAD_KINDS]; /* in this attempt */
    enum head_kind head_kind;    /* of the last one */
    bool in_block;               /* between a status line and its blank line */
    bool block_is_final;         /* HEAD_OF_ANSWER */
    bool block_complete;         /* the last final block's blank line has come */
    bool head_was_paused;        /* the program has paused in this attempt before the end of the last block */
    bool lines_pass;             /* in a final block, and what comes goes to the program as it comes, line by line */
    int status;                  /* of the last final block; 0: none yet */
    struct headers headers;

    int64_t keep_until_ns; /* GATE_KEEPING: no other attempt may begin later */
    bool decided;          /* governor_outcome was asked */
    struct governor_step decision;

    curl_off_t body_bytes; /* of the final response, that the program has had, in all attempts that went on with it */
    bool resuming;         /* this attempt goes on with a body that broke off (shim/resume.h) */
    bool is_proven;        /* and what comes is the rest of it */
    curl_off_t skip;       /* of which the program has had so many bytes at the beginning */

    struct kept kept;
    size_t had[STREAM_COUNT]; /* of what libcurl will bring again: how much the gate has had */
    bool header_half_done;    /* of the piece at hand: written as body, not yet as header */
    bool delivered;           /* a byte of a final response has reached the program */
    bool program_pauses;      /* its callback paused the transfer */
    bool has_paused;          /* in this attempt: pieces may come run together */
    bool is_held;             /* paused by a call of the program's, and not by what a callback has returned */
    bool is_giving;           /* a piece, to a callback of its: not to be given again from within that */
    bool program_stopped;     /* its callback ended the transfer */
    size_t stop_value;        /* what it returned */
    bool as_header;           /* the piece that was given last went to where header lines go */
    enum gate_stream stopped_in; /* what libcurl was told that in */
};

/* The first attempt, too.  `gate` is all zeros, or was used before. */
void gate_begin_request(struct gate *gate, struct transfer *transfer, struct governor_request *request);

/* Before each attempt but the first: what was kept of the one before is dropped. */
void gate_begin_attempt(struct gate *gate);

/* The same before an attempt that goes on with the body of the one before.  Nothing of it reaches the
 * program but the rest of that body, and that only if it is proven to be. */
void gate_begin_resumed(struct gate *gate);

/* The program has paused the transfer: pieces may come run together from now on. */
void gate_note_pause(struct gate *gate);

/* The program has called curl_easy_pause: to receive nothing more, or to go on. */
void gate_hold(struct gate *gate, bool is_held);

/* Is what comes a refusal that the program will probably not get, so that nothing is to tell of it? */
bool gate_hides_answer(const struct gate *gate);

/* The callbacks that libcurl is given; userdata is the gate. */
size_t gate_on_header(char *line, size_t size, size_t count, void *gate);
size_t gate_on_body(char *data, size_t size, size_t count, void *gate);

/* What came of an attempt whose last header block is complete.  speaker: as for governor_outcome. */
void gate_outcome(const struct gate *gate, struct outcome *outcome, struct bucket **speaker);

/* After an attempt that failed: a held block that the program has had before is not shown again. */
void gate_drop_what_was_shown(struct gate *gate);

enum gate_flush { GATE_FLUSH_DONE, GATE_FLUSH_PAUSED, GATE_FLUSH_STOPPED };

/* Gives what is kept to the program, from where it stopped. */
enum gate_flush gate_flush(struct gate *gate);

/* Frees what is kept. */
void gate_end(struct gate *gate);

#endif
