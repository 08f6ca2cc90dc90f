/* SPDX-License-Identifier: MIT */
/*
 * Two questions, in this order.  Is this an outcome that is ever retried?  Status and failure say
 * that, and the policy.  And may this request be repeated after it?  Its method, key and conditions
 * say that, and how much of it the server may have seen.
 */
#include "core/classify.h"

#include "core/scan.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ------------------------------------------------------------------ the request ---- */

static bool is_one_of(const char *method, const char *const *methods, size_t count)
{
    for (size_t i = 0; method && i < count; i++)
        if (strcmp(method, methods[i]) == 0)
            return true;
    return false;
}

/* Methods are case-sensitive (RFC 9110, section 9.1): what a server makes of "get" nobody knows. */
bool classify_method_is_safe(const char *method)
{
    static const char *const safe[] = {"GET", "HEAD", "OPTIONS", "TRACE"};
    return is_one_of(method, safe, COUNT_OF(safe));
}

enum method_safety classify_method(const char *method)
{
    static const char *const idempotent[] = {"PUT", "DELETE"};
    return classify_method_is_safe(method) || is_one_of(method, idempotent, COUNT_OF(idempotent)) ? METHOD_IDEMPOTENT
                                                                                                  : METHOD_OTHER;
}

static bool is_idempotent(const struct policy *policy, const struct request_traits *request)
{
    switch (policy->idempotent) {
    case IDEMPOTENT_YES:
        return true;
    case IDEMPOTENT_NO:
        return false;
    case IDEMPOTENT_AUTO:
        break;
    }
    return request->has_idempotency_key || classify_method(request->method) == METHOD_IDEMPOTENT;
}

static bool is_anything_retried(const struct policy *policy)
{
    uint64_t statuses = 0;
    for (size_t i = 0; i < COUNT_OF(policy->retry_status.bits); i++)
        statuses |= policy->retry_status.bits[i];
    return policy->max_attempts > 1 && policy->mode == MODE_ENFORCE && (statuses || policy->retry_errors);
}

bool classify_may_ever_repeat(const struct policy *policy, const struct request_traits *request)
{
    return is_anything_retried(policy) && is_idempotent(policy, request);
}

bool classify_wants_key(const struct policy *policy, const struct request_traits *request)
{
    static const char *const methods[] = {"POST", "PATCH"};
    return policy->idempotency_key == IDEMPOTENCY_KEY_GENERATE && !request->has_idempotency_key &&
           is_one_of(request->method, methods, COUNT_OF(methods));
}

/* ------------------------------------------------------------------ the outcome ---- */

bool classify_status_may_be_retried(int status)
{
    return status == 429 || status == 500 || (status >= 502 && status <= 504) || (status >= 520 && status <= 524) ||
           status == 529;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t end_length = strlen(end);
    return length >= end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

bool classify_server_forbids_retry(const struct headers *headers)
{
    if (!headers)
        return false;
    for (const struct header_field *field = headers_first(headers, HEADER_OTHER); field;
         field = headers_next(headers, field))
        if (ends_with(headers->text + field->name, field->name_length, "should-retry") &&
            scan_equals_ignoring_case(headers_value(headers, field), field->value_length, "false"))
            return true;
    return false;
}

/* What is known about each kind of failure. */
static const struct failure_rule {
    uint32_t kind;      /* of retry_errors; 0: never retried */
    bool at_most_twice; /* trying again soon rarely helps, and nobody should have to wait for it */
    const char *why;    /* when it is never retried */
} failure_rules[] = {
    [FAILURE_NONE] = {.why = "no failure"},
    [FAILURE_RESOLVE] = {.kind = ERROR_RESOLVE},
    [FAILURE_NO_SUCH_HOST] = {.kind = ERROR_RESOLVE, .at_most_twice = true},
    [FAILURE_REFUSED] = {.kind = ERROR_CONNECT, .at_most_twice = true},
    [FAILURE_CONNECT] = {.kind = ERROR_CONNECT},
    [FAILURE_TIMEOUT_CONNECT] = {.kind = ERROR_TIMEOUT},
    [FAILURE_TIMEOUT_TRANSFER] = {.kind = ERROR_TIMEOUT},
    [FAILURE_TIMEOUT_OVERALL] = {.why = "the program's own timeout has run out"},
    [FAILURE_RESET] = {.kind = ERROR_RESET},
    [FAILURE_STREAM] = {.kind = ERROR_STREAM},
    [FAILURE_STREAM_REFUSED] = {.kind = ERROR_STREAM},
    [FAILURE_ABORTED] = {.why = "the program ended it"},
    [FAILURE_FINAL] = {.why = "a failure that trying again does not cure"},
};

static const struct failure_rule *rule_of(enum failure failure)
{
    return &failure_rules[(size_t)failure < COUNT_OF(failure_rules) ? failure : FAILURE_FINAL];
}

/* Why this outcome is the program's at once; NULL if it is one that is retried. */
static const char *why_never_retried(const struct policy *policy, const struct request_traits *request,
                                     const struct outcome *outcome)
{
    if (outcome->from_proxy)
        return "the proxy's answer, not the server's";
    if (outcome->failure == FAILURE_NONE)
        return classify_status_may_be_retried(outcome->status) && status_set_has(&policy->retry_status, outcome->status)
                   ? NULL
                   : CLASSIFY_WHY_ORDINARY;
    const struct failure_rule *rule = rule_of(outcome->failure);
    if (!rule->kind)
        return rule->why;
    if (!(policy->retry_errors & rule->kind))
        return "not among retry_errors";
    if (request->is_loopback && !request->host_is_named)
        return "a connection error on this machine";
    return NULL;
}

/* Did the server certainly do nothing?  REFUSED_STREAM says so (RFC 9113, section 8.7). */
static bool was_not_processed(const struct outcome *outcome)
{
    return outcome->failure == FAILURE_STREAM_REFUSED || (outcome->failure != FAILURE_NONE && !outcome->request_sent);
}

/* Has somebody run out of patience while the request was perhaps still being worked on? */
static bool is_timeout(const struct outcome *outcome)
{
    return (outcome->failure == FAILURE_TIMEOUT_TRANSFER && outcome->request_sent) ||
           (outcome->failure == FAILURE_NONE && outcome->status == 504);
}

static bool refuses_by_status(const struct outcome *outcome)
{
    return outcome->failure == FAILURE_NONE && (outcome->status == 429 || outcome->status == 503);
}

/* ------------------------------------------------------------------ both together ---- */

/* May the server be sent it again, as far as the request itself goes?  What it has not acted on is no
 * repeat. */
static bool is_safe_to_repeat(const struct policy *policy, const struct request_traits *request,
                              const struct outcome *outcome)
{
    return is_idempotent(policy, request) || outcome->failure == FAILURE_STREAM_REFUSED ||
           (policy->retry_unsent && was_not_processed(outcome));
}

/* Why this request must not be repeated after a retryable outcome; NULL if it may be.  The deepest reason
 * comes first: it is what the log tells. */
static const char *why_not_repeatable(const struct policy *policy, const struct request_traits *request,
                                      const struct outcome *outcome, unsigned attempts)
{
    bool is_write = !classify_method_is_safe(request->method);
    if (outcome->delivered && !outcome->resumable)
        return "part of the response has reached the program";
    if (classify_server_forbids_retry(outcome->headers))
        return "the server asks not to retry";
    if (!is_safe_to_repeat(policy, request, outcome))
        return "a repeat may not be safe: neither idempotent nor with an idempotency key";
    if (!outcome->body_resendable)
        return "its body cannot be sent again";
    /* After the first one took effect, its condition fails: the repeat would report 412 for what
     * has succeeded. */
    if (is_write && request->is_conditional && !refuses_by_status(outcome) && !was_not_processed(outcome))
        return "a conditional write that may have taken effect";
    if (is_write && is_timeout(outcome) && attempts >= 2)
        return "a write is repeated at most once after a 504 or a timeout";
    return NULL;
}

struct classification classify(const struct policy *policy, const struct request_traits *request,
                               const struct outcome *outcome, unsigned attempts)
{
    bool by_status = outcome->failure == FAILURE_NONE && !outcome->from_proxy;
    struct classification result = {.attempts_max = COUNT_NONE};

    result.is_throttle = by_status && outcome->status == 429;
    result.why = why_never_retried(policy, request, outcome);
    if (result.why) {
        result.is_refusal = result.is_throttle;
        result.verdict = VERDICT_DELIVER;
        return result;
    }
    result.is_refusal = by_status;
    bool is_write = !classify_method_is_safe(request->method);
    if (rule_of(outcome->failure)->at_most_twice || (is_write && is_timeout(outcome)))
        result.attempts_max = 2;
    result.why = why_not_repeatable(policy, request, outcome, attempts);
    result.verdict = result.why ? VERDICT_MUST_NOT : VERDICT_RETRYABLE;
    return result;
}
