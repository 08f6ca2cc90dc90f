/* SPDX-License-Identifier: MIT */
/*
 * Classify: before anything reacts, what kind of outcome is this, and what may be done about it?
 * Pure functions over the effective policy; no libcurl (the shim maps its codes to enum failure).
 */
#ifndef CURTSY_CORE_CLASSIFY_H
#define CURTSY_CORE_CLASSIFY_H

#include "core/headers.h"
#include "core/keys.h"

/* How an attempt failed below HTTP. */
enum failure {
    FAILURE_NONE,
    FAILURE_RESOLVE,          /* could not be resolved just now (EAI_AGAIN and the like) */
    FAILURE_NO_SUCH_HOST,     /* NXDOMAIN: at most twice in all */
    FAILURE_REFUSED,          /* connection refused: at most twice in all */
    FAILURE_CONNECT,          /* unreachable and the like */
    FAILURE_TIMEOUT_CONNECT,  /* a connect timer; nothing was sent */
    FAILURE_TIMEOUT_TRANSFER, /* low speed or no answer; the request may have taken effect */
    FAILURE_TIMEOUT_OVERALL,  /* the caller's own CURLOPT_TIMEOUT: nothing is left */
    FAILURE_RESET,            /* broken or closed without an answer */
    FAILURE_STREAM,           /* an HTTP/2 or 3 stream error */
    FAILURE_STREAM_REFUSED,   /* REFUSED_STREAM: the server guarantees that nothing was done */
    FAILURE_ABORTED,          /* the program's own callback ended it */
    FAILURE_FINAL,            /* everything else: certificates, proxies, malformed, local errors */
};

enum method_safety {
    METHOD_IDEMPOTENT, /* GET HEAD OPTIONS TRACE PUT DELETE (RFC 9110, section 9.2.2) */
    METHOD_OTHER,
};
enum method_safety classify_method(const char *method);
/* GET, HEAD, OPTIONS, TRACE: a repeat changes nothing (RFC 9110, section 9.2.1). */
bool classify_method_is_safe(const char *method);

/* What the shim knows of a request when it begins. */
struct request_traits {
    const char *method;       /* of the first hop, as it would be sent */
    bool has_idempotency_key; /* the policy's idempotency_header is among its headers */
    bool is_conditional;      /* If-Match, If-None-Match or If-Unmodified-Since */
    bool is_loopback;         /* loopback address, localhost or a Unix socket */
    bool host_is_named;       /* by a section */
};

/* What came of one attempt. */
struct outcome {
    int status;           /* of the final response; 0: none, or no complete header block */
    enum failure failure; /* FAILURE_NONE where the header block is complete */
    bool from_elsewhere;  /* another host's than the request's own: a redirect led there */
    bool from_proxy;      /* the status is a proxy's (CONNECT, 407), not the origin's */
    bool delivered;       /* a byte of the response has reached the program */
    bool request_sent;    /* a byte of the request may have reached the server */
    bool body_resendable; /* a repeat would send the same body, byte for byte: proven (true where nothing of it
                           * was taken yet) */
    bool resumable;       /* a GET whose body broke off and can be gone on with (shim/resume.h): then what was
                           * delivered does not stand in the way */
    const struct headers *headers;
};

enum verdict {
    VERDICT_DELIVER,   /* not an outcome that is ever retried */
    VERDICT_RETRYABLE, /* may be tried again */
    VERDICT_MUST_NOT,  /* it is a retryable outcome, but this request must not be repeated */
};

struct classification {
    enum verdict verdict;
    unsigned attempts_max; /* below the policy's max_attempts for some kinds (2), else COUNT_NONE */
    bool is_refusal;       /* 429 or another retryable status: a word for everyone may be in it */
    bool is_throttle;      /* 429: the base of the backoff is doubled */
    const char *why;       /* a few words for logs, when not VERDICT_RETRYABLE */
};

/* An answer of the server's own with a status that is neither tried again nor a refusal: nearly all are.
 * What classify makes of it is known without asking: VERDICT_DELIVER, for this reason. */
static inline bool classify_is_ordinary(const struct policy *policy, const struct outcome *outcome)
{
    return outcome->failure == FAILURE_NONE && !outcome->from_proxy && outcome->status != 429 &&
           !status_set_has(&policy->retry_status, outcome->status);
}
#define CLASSIFY_WHY_ORDINARY "not a status that is retried"

/* attempts: how many were made, this one included.  From the second on, a write that ran into a 504
 * or a transfer timeout must not be repeated. */
struct classification classify(const struct policy *policy, const struct request_traits *request,
                               const struct outcome *outcome, unsigned attempts);

/* Is there any outcome after which this request could be repeated, but for those where the server has
 * certainly not acted on it (FAILURE_STREAM_REFUSED, or nothing sent)?  If not, a copy of its body need not be
 * kept. */
bool classify_may_ever_repeat(const struct policy *policy, const struct request_traits *request);

/* Does `idempotency_key = generate` give this request a key?  A POST or PATCH that has none; once it has
 * been given one, has_idempotency_key is true. */
bool classify_wants_key(const struct policy *policy, const struct request_traits *request);

/* May a status be in retry_status at all?  429, and 500, 502, 503, 504, 520-524, 529. */
bool classify_status_may_be_retried(int status);

/* x-should-retry: false, stripe-should-retry: false and their kin. */
bool classify_server_forbids_retry(const struct headers *headers);

#endif
