/* SPDX-License-Identifier: MIT */
/*
 * Governed: what a transfer needs besides its settings from its first governed perform on: where it
 * goes, which policy speaks for it, its decision machine and its gate.  Kept with the handle, so
 * that a request on the same handle to the same place allocates and resolves nothing.
 */
#ifndef CURTSY_SHIM_GOVERNED_H
#define CURTSY_SHIM_GOVERNED_H

#include "shim/added_headers.h"
#include "shim/body.h"
#include "shim/gate.h"
#include "shim/overrides.h"
#include "shim/runtime.h"
#include "shim/target.h"
#include "shim/transfer.h"

#include "core/governor.h"

struct hop;    /* hop.c */
struct resume; /* resume.c */

/* Where a governed perform is.  A program may leave any of them by longjmp. */
enum perform_phase {
    PHASE_IDLE,
    PHASE_WAITING,   /* in our own code: libcurl knows of no transfer on this handle */
    PHASE_ATTEMPTING /* within libcurl's perform */
};

struct governed {
    const struct runtime *runtime; /* held; NULL: nothing was governed when it was last asked for */
    struct target target;
    char method[METHOD_SIZE];      /* that the policy was resolved for */
    bool method_is_safe;           /* classify_method_is_safe */
    struct request_traits traits;  /* of each request with that method, as far as it does not write */
    uint64_t method_for_changes;   /* transfer->method_changes when `method` was the program's */
    uint64_t resolved_for_changes; /* transfer->target_changes at that time; 0: never */
    bool is_ours;                  /* http or https, and its mode is not off */
    struct resolved_policy resolved;
    uint64_t bucket_keys[POLICY_BUCKETS_MAX]; /* segment_key of its buckets' names */

    struct hop *hop; /* NULL until a redirect has left the host */
    struct governor_request request;
    struct gate gate;
    enum perform_phase phase;
    uint64_t began_with_changes;   /* transfer->request_changes when the perform began */
    uint64_t began_with_headers;   /* for a write: a hash of the program's header lines then */
    int64_t began_with_timeout_ms; /* the program's timeout then, or as it was changed since */
    struct overrides overrides;
    struct body body;
    struct added_headers *added; /* NULL: none was ever needed */
    struct resume *resume;       /* NULL: no body ever broke off that could be gone on with */
    bool is_resumed;             /* in this perform it was; what is told of the transfer is in `resume` */
    bool was_resumed_before_reset; /* of which the headers are told even after a reset of the handle */
    bool paused;                 /* by the program, while it waits: no attempt until it goes on */
    bool tells_nothing;          /* no attempt has begun whose outcome could be the program's: getinfo tells of none */
    bool told_of_others;         /* that the limits of another process' configuration hold */
    bool is_elsewhere;           /* another host than the transfer's own has answered last (hop.c) */
    int64_t reported_wait_ns;    /* when the wait began that was last told of */
    unsigned waiter;             /* its ticket in the table of waiters (core/waiters.h); 0: none */
    char *url_text;              /* libcurl's: of CURLOPT_CURLU, when the perform began */
    CURL *blank;                 /* a handle that has done nothing, for what getinfo tells then */
};

/* The transfer's governed part, up to date with its settings; NULL when it is not to be governed. */
struct governed *governed_of(struct transfer *transfer);

/* The buckets that it draws on, in the order of governed->resolved; NULL where there is no room. */
void governed_find_buckets(const struct governed *governed, struct bucket *buckets[POLICY_BUCKETS_MAX], int64_t now_ns);

/* Is there room for lines of ours in its requests?  False: out of memory. */
bool governed_adds_headers(struct governed *governed);

/* Buckets of its that were given to other hosts meanwhile are looked up again: after each wait, and before
 * what comes of an attempt is noted in them. */
void governed_find_buckets_again(struct governed *governed);
static inline void governed_keep_buckets(struct governed *governed)
{
    if (places_have_strangers(&governed->request.places))
        governed_find_buckets_again(governed);
}

/* While it waits: a new configuration or segment, or being switched off, is for it, too. */
void governed_keep_up(struct transfer *transfer);

/* Is a governed perform under way (or was it left by longjmp)?  Then the callbacks set are ours. */
static inline bool governed_is_active(const struct transfer *transfer)
{
    return transfer->governed && transfer->governed->phase != PHASE_IDLE;
}

/* The perform is over: the handle is the program's again, and no place is held in any queue. */
void governed_leave(struct transfer *transfer);

/* Another transfer begins on the handle, that is not governed: nothing is told of the one before. */
static inline void governed_forget_response(struct governed *governed)
{
    governed->tells_nothing = governed->is_resumed = governed->was_resumed_before_reset = false;
}

/* After curl_easy_reset: settings are gone, what was resolved is not. */
void governed_reset(struct governed *governed);

/* governed_free(NULL) is allowed. */
void governed_free(struct governed *governed);

#endif
