/* SPDX-License-Identifier: MIT */
/*
 * Gate: the response, between libcurl and the program's callbacks, until it is decided.
 *
 * At each status line the gate decides whether the block goes to the program live or is held:
 *   - a status that may lead to a retry is held until its header block is complete; then the
 *     governor decides, and it is either let through (headers first, the body live) or kept aside
 *     (body included, up to a bound) while the next attempt is waited for;
 *   - on later attempts, blocks that may turn out to be intermediate (1xx, CONNECT, a redirect, an
 *     authentication round) are held too, and dropped when another block follows: the program has
 *     seen the first attempt's;
 *   - everything else passes live, with no copy made.
 *
 * The kept response is given to the program only if no further attempt starts.
 *
 * Runs inside libcurl's callbacks, on the thread that owns the handle.
 */
#ifndef CURTSY_SHIM_GATE_H
#define CURTSY_SHIM_GATE_H

#include "shim/transfer.h"

#include "core/governor.h"

/* What is kept of a refused response; one that is larger is delivered instead of retried. */
#define GATE_KEEP_MAX (1u << 20)

enum gate_mode {
    GATE_LIVE,    /* to the program as it comes */
    GATE_HOLDING, /* kept until it is decided */
    GATE_KEEPING, /* decided: another attempt is wanted; kept in case there is none */
};

struct gate_item {
    size_t length;
    bool is_header;
    bool is_trailer;
};

struct gate {
    struct transfer *transfer;
    struct governor_request *request;

    enum gate_mode mode;
    bool first_attempt;
    bool in_block;         /* between a status line and its blank line */
    bool block_is_final;   /* not 1xx, not CONNECT */
    bool block_complete;   /* the last final block's blank line has come */
    bool has_body;         /* a body byte has come */
    bool delivered;        /* a byte of a final response has reached the program */
    bool program_stopped;  /* a callback of the program's ended the transfer */
    int status;            /* of the last final block; 0: none yet */
    unsigned final_blocks; /* in this attempt: each is the answer to a request of its own */
    struct headers headers;

    bool decided; /* governor_outcome was asked */
    struct governor_step decision;

    char *kept; /* items one after the other: struct gate_item, then its bytes */
    size_t kept_size, kept_capacity;
    size_t replayed;       /* bytes of kept that the program has had */
    bool again;            /* the program paused: libcurl will bring the same bytes again */
    bool header_half_done; /* of a header line: written as body, not yet as header */
    bool paused;           /* the program paused while a kept response was given to it */
};

/* `gate` is all zeros, or was used before. */
void gate_begin_request(struct gate *gate, struct transfer *transfer, struct governor_request *request);

/* Before each attempt: what was kept of the one before is dropped. */
void gate_begin_attempt(struct gate *gate);

/* The callbacks that libcurl is given; userdata is the gate. */
size_t gate_on_header(char *line, size_t size, size_t count, void *gate);
size_t gate_on_body(char *data, size_t size, size_t count, void *gate);

enum gate_flush { GATE_FLUSH_DONE, GATE_FLUSH_PAUSED, GATE_FLUSH_STOPPED };

/* Gives what is kept to the program, from where it stopped. */
enum gate_flush gate_flush(struct gate *gate);

bool gate_keeps_something(const struct gate *gate);

/* Frees what is kept. */
void gate_end(struct gate *gate);

#endif
