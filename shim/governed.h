/* SPDX-License-Identifier: MIT */
/*
 * Governed: what a transfer needs besides its settings from its first governed perform on: where it
 * goes, which policy speaks for it, its decision machine and its gate.  Kept with the handle, so
 * that a request on the same handle to the same place allocates and resolves nothing.
 */
#ifndef CURTSY_SHIM_GOVERNED_H
#define CURTSY_SHIM_GOVERNED_H

#include "shim/gate.h"
#include "shim/runtime.h"
#include "shim/target.h"
#include "shim/transfer.h"

#include "core/governor.h"

struct hop; /* hop.c */

struct governed {
    const struct runtime *runtime;
    struct target target;
    char method[METHOD_SIZE];      /* that the policy was resolved for */
    uint64_t resolved_for_changes; /* transfer->target_changes at that time; 0: never */
    bool is_ours;                  /* http or https, and its mode is not off */
    struct resolved_policy resolved;

    struct hop *hop; /* NULL until a redirect has left the host */
    struct governor_request request;
    struct gate gate;
    bool active;              /* a governed perform is under way: the callbacks set are ours */
    bool reader_in_place;     /* ... and so is the read callback */
    bool reader_called;       /* in this perform: the program's reader has given something away */
    bool unattempted;         /* the last perform ended without an attempt: getinfo tells of none */
    int64_t reported_wait_ns; /* when the wait began that was last told of */
    CURL *blank;              /* a handle that has done nothing, for what getinfo tells then */
};

/* The transfer's governed part, up to date with its settings; NULL when it is not to be governed. */
struct governed *governed_of(struct transfer *transfer);

/* After curl_easy_reset: settings are gone, what was resolved is not. */
void governed_reset(struct governed *governed);

/* governed_free(NULL) is allowed. */
void governed_free(struct governed *governed);

#endif
