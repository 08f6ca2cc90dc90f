/* SPDX-License-Identifier: MIT */
/*
 * Overrides: the few options that are ours on a handle, and putting the program's own back.  What the
 * program sets meanwhile is noted in its record, in force through our callbacks at once, and is what
 * is put back.
 *
 * The callbacks of the response stay ours from one governed perform to the next, since setting eight
 * options for each request costs more than all the rest; between two of them they pass everything on
 * (gate.c).  The program's own are put back where the handle goes to where Curtsy does not: a transfer that
 * is not governed, a multi handle, a copy, its end.  The others are ours only during a perform.
 */
#ifndef CURTSY_SHIM_OVERRIDES_H
#define CURTSY_SHIM_OVERRIDES_H

#include "shim/transfer.h"

struct overrides {
    bool response;                    /* the callbacks of the response are ours */
    bool header_in_body;              /* CURLOPT_HEADER was taken over */
    bool reader;                      /* those of the request's body are ours, and these are what they pass on to: */
    curl_read_callback read_function; /* NULL: fread */
    void *read_data;
    curl_seek_callback seek_function; /* NULL: there is none */
    void *seek_data;
    curl_ioctl_callback ioctl_function; /* the same */
    void *ioctl_data;
    bool timeout;
    bool fresh_connect;
    bool progress;
    bool headers; /* CURLOPT_HTTPHEADER begins with lines of ours */
};

/* At the start of a perform. */
void overrides_set(struct transfer *transfer);

/* The program has called curl_easy_reset: in the middle of a perform, or not. */
void overrides_after_reset(struct transfer *transfer);

/* The time that an attempt may take, from its start on: of the program's own timeout, which is one for the
 * whole transfer, what is left; of less, if it is ours. */
void overrides_limit_time(struct transfer *transfer, int64_t limit_ms);

/* What a second request on the same handle needs so that it is the first one's like. */
void overrides_for_repeat(struct transfer *transfer);

/* Between two attempts: the program's own timeout, if another limit is in force. */
void overrides_release_time(struct transfer *transfer);

/* In the middle of one: what is left of it. */
void overrides_leave_time(struct transfer *transfer);

/* From now on the program's progress callback is told what is meant for it (shim/progress.h). */
void overrides_tell_progress(struct transfer *transfer);

/* This attempt opens a connection of its own. */
void overrides_connect_anew(struct transfer *transfer);

/* The lines of transfer->governed->added go before the program's own headers, from now on. */
void overrides_add_headers(struct transfer *transfer);

/* Is this option ours now, so that the program's setting of it is noted and not forwarded? */
bool overrides_include(const struct transfer *transfer, CURLoption option);

/* In a transfer under way the program has set one that is not: what that changes of ours. */
void overrides_follow(struct transfer *transfer, CURLoption option);

/* The perform is over: what is ours only during one is the program's again. */
void overrides_rest(struct transfer *transfer);

/* All of the program's own options again: on its handle, or on a copy of it that was made meanwhile.
 * A transfer that was never governed is allowed. */
void overrides_undo(struct transfer *transfer);
void overrides_undo_on_copy(const struct transfer *transfer, CURL *copy);

#endif
