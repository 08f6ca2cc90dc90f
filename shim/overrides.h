/* SPDX-License-Identifier: MIT */
/*
 * Overrides: the few options that are ours on a handle while a governed perform is under way, and
 * putting the program's own back.  What the program sets meanwhile is noted in its record, in force
 * through our callbacks at once, and is what is put back.
 */
#ifndef CURTSY_SHIM_OVERRIDES_H
#define CURTSY_SHIM_OVERRIDES_H

#include "shim/transfer.h"

struct overrides {
    bool header_in_body; /* CURLOPT_HEADER was taken over */
    bool reader;         /* the read callback is ours, and these are what it passes on to: */
    curl_read_callback read_function;
    void *read_data;
    bool timeout;
    bool fresh_connect;
};

/* At the start of a perform. */
void overrides_set(struct transfer *transfer);

/* The program has called curl_easy_reset in the middle of one. */
void overrides_set_after_reset(struct transfer *transfer);

/* The program's own timeout is one for the whole transfer: an attempt gets what is left of it. */
void overrides_limit_time(struct transfer *transfer, int64_t left_ms);

/* What a second request on the same handle needs so that it is the first one's like. */
void overrides_for_repeat(struct transfer *transfer);

/* Is this option ours now, so that the program's setting of it is noted and not forwarded? */
bool overrides_include(const struct transfer *transfer, CURLoption option);

/* The program's own options again: on its handle, or on a copy of it that was made meanwhile. */
void overrides_undo(struct transfer *transfer);
void overrides_undo_on_copy(const struct transfer *transfer, CURL *copy);

#endif
