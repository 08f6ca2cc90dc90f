/* SPDX-License-Identifier: MIT */
/*
 * The governor: one decision machine per request.  It is stepped with what happened and what time
 * it is, and answers with what to do next:
 *
 *                 admit(request, now)  -->  SEND | WAIT until t | REFUSE why
 *     outcome(request, outcome, now)   -->  DELIVER | RETRY, which is admit again, not before t
 *
 * It never waits itself.  curl_easy_perform waits by sleeping, curl_multi by parking the handle,
 * tests and the simulator by moving a virtual clock; none of the three has policy of its own.
 *
 *     begin ──► admit ──SEND──► sent ──► outcome ──DELIVER──► end
 *                 ▲ │                       │
 *            WAIT │ └──REFUSE──► end        │ RETRY
 *                 └─────────────────────────┘
 *
 * After WAIT the caller comes back at `until_ns` or earlier: coming early is safe (it is told to
 * wait on) and wanted once a second or so, for the operator's and the server's word may have
 * changed.  Coming late is safe too: a slot that has gone stale is booked anew.
 *
 * A request belongs to one thread at a time.  Everything shared is in the buckets (core/bucket.h).
 * Nothing here allocates, locks, or makes a system call.
 */
#ifndef CURTSY_CORE_GOVERNOR_H
#define CURTSY_CORE_GOVERNOR_H

#include "core/bucket.h"
#include "core/classify.h"
#include "core/places.h"
#include "core/policy.h"

/* What all requests of a process share. */
struct governor {
    struct bucket_world world;
    struct random_source *random;
    const struct segment *segment; /* where the operator's word is; NULL: nowhere */
};

enum governor_action {
    GOVERNOR_SEND,
    GOVERNOR_WAIT,    /* call admit again at until_ns */
    GOVERNOR_REFUSE,  /* no attempt, or no further one; cause says why, until_ns when it would work */
    GOVERNOR_DELIVER, /* the outcome is the program's */
    GOVERNOR_RETRY,   /* call admit; it will not say SEND before until_ns */
};

struct governor_step {
    enum governor_action action;
    enum cause cause;
    int64_t until_ns;      /* TIME_NEVER where there is none */
    int64_t would_wait_ns; /* under observe: SEND what would have waited, DELIVER what would have been
                            * tried again after that; else 0 */
};

struct governor_request {
    const struct governor *governor;
    const struct policy *policy;  /* outlives the request, or is changed by governor_rebase */
    struct request_traits traits; /* its method's text outlives the request */
    int64_t max_wait_ns;
    enum mode ceiling; /* the most that is allowed from outside the configuration */
    enum mode mode;    /* in force when it was last admitted */

    int64_t begun_ns;
    int64_t deadline_ns; /* the caller's own timeout; TIME_NEVER: none */
    int64_t room_ns;     /* what an attempt needs before the deadline */

    bool is_own_retry;     /* the program tries again by itself (core/own_retries.h): a single attempt */
    unsigned attempts;     /* started */
    unsigned backoffs;     /* retries without a server's word so far */
    unsigned words_obeyed; /* times that the server's word was waited out */
    int64_t first_sent_ns;
    int64_t last_sent_ns;
    int64_t not_before_ns; /* for the next attempt */
    int64_t lift_ns;       /* the end of a block that lift_draw_ns was drawn for; 0: none */
    int64_t lift_draw_ns;  /* how much later than that it goes, if the block lasts so long */
    int64_t refuse_at_ns;  /* a refusal that is held back for a moment; 0: none */
    enum cause next_cause; /* why the next attempt is not made at once */
    enum cause wait_cause; /* of the wait under way */
    int64_t wait_began_ns; /* 0: not waiting */
    int64_t waited_ns;     /* in all */
    int64_t expected_ns;   /* by when it was expected back while it waits */
    int64_t held_ns;       /* how long the operator's holds have been meant to last, counted from its beginning */
    int64_t late_ns;       /* how much later it has come, in all: the program or the machine stood still */
    bool others_hold;      /* its buckets have other limits in force than its policy asks for */
    bool was_refused;      /* the last outcome was a refusal: 429 and its kin, whoever gets it */
    int64_t stopped_ns;    /* how long the last outcome has stopped a bucket that was free; 0: it has not */
    const char *why;       /* a few words about the last decision, for logs */

    struct places places; /* in the queues of its buckets: the host's first.  The last member, since it is
                           * the one that a request does not begin with all zeros */
};

/* Everything a request starts with.  buckets: what resolved->buckets name, in the same order (a
 * NULL entry is skipped); their limits are asked for here.  timeout_ns: the caller's own bound on
 * the whole transfer from now on, 0: none. */
void governor_begin(struct governor_request *request, const struct governor *governor,
                    const struct resolved_policy *resolved, struct bucket *const *buckets,
                    const struct request_traits *traits, int64_t timeout_ns, int64_t now_ns);

/* What is in force for the request now: of its policy, the ceiling, and the operator's words for the
 * segment and for its host, the least intrusive. */
enum mode governor_mode(const struct governor_request *request, int64_t now_ns);

/* The configuration or the segment has changed while the request waits: it goes on under these, as
 * governor_begin would have begun it, with the places that it has where the buckets are the same. */
void governor_rebase(struct governor_request *request, const struct governor *governor,
                     const struct resolved_policy *resolved, struct bucket *const *buckets, int64_t now_ns);

/* The caller's own bound is another one now: on the whole transfer, from its beginning on.  0: none. */
void governor_set_timeout(struct governor_request *request, int64_t timeout_ns);

/* SEND: go now, and call governor_sent right before the request starts. */
struct governor_step governor_admit(struct governor_request *request, int64_t now_ns);

void governor_sent(struct governor_request *request, int64_t now_ns);

/* May this status lead to a retry?  Asked at the status line: if so the response is held back from
 * the program until governor_outcome has decided. */
bool governor_holds(const struct governor_request *request, int status);

/* What to do with an outcome.  Called once an attempt, as soon as its header block is complete or
 * it has failed.  speaker: where another host than the request's own answered, that one's bucket
 * (NULL: it is not governed).  now_s: the wall clock, for dates. */
struct governor_step governor_outcome(struct governor_request *request, const struct outcome *outcome,
                                      struct bucket *speaker, int64_t now_ns, int64_t now_s);

/* The last moment at which an attempt may begin without breaking a bound. */
int64_t governor_latest_ns(const struct governor_request *request);

/* More of a body has come that is gone on with: the time for retries, and the backoff, begin anew. */
void governor_note_progress(struct governor_request *request, int64_t now_ns);

/* Counts requests that went along without being admitted: redirect hops, authentication rounds. */
void governor_charge(struct governor_request *request, uint64_t requests, int64_t now_ns);

/* The request is over or given up: places not used are given back. */
void governor_end(struct governor_request *request, int64_t now_ns);

#endif
