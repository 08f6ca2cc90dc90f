/* SPDX-License-Identifier: MIT */
/*
 * The server's word: what a response says about when to come back, from all of its fields at once.
 * One rule, for the governor and for `curtsy headers`:
 *
 *   1. a usable Retry-After or one of its kin (core/retry_after.h), on a refusal;
 *   2. else the governing quota window (core/quota_fields.h), if nothing is left in it and it says
 *      when it starts anew, on any response;
 *   3. else that time by itself, where a 429 or 503 says nothing of what is left: some servers send no
 *      more;
 *   4. else there is no word: the client's own backoff applies.
 *
 * The wait is as the server said it: capping it (max_block) and spreading it is policy.
 * Pure, thread-safe.
 */
#ifndef CURTSY_CORE_SERVERS_WORD_H
#define CURTSY_CORE_SERVERS_WORD_H

#include "core/metrics.h"
#include "core/quota_fields.h"
#include "core/retry_after.h"

struct servers_word {
    enum cause cause;               /* CAUSE_RETRY_AFTER, CAUSE_QUOTA_FIELDS, or CAUSE_NONE: no word */
    int64_t wait_ns;                /* above 0 with a word, else 0 */
    const char *field;              /* the lower-case name of the field that it came from, or NULL */
    struct retry_after retry_after; /* as read, also where it is not obeyed */
    struct quota_fields quota;
};

/* is_refusal: it is a status that is believed to be one, so that Retry-After binds.  obey_retry_after: the
 * policy's retry_after is not `ignore`. */
struct servers_word servers_word_read(const struct headers *headers, int status, bool is_refusal, bool obey_retry_after,
                                      int64_t now_s);

#endif
