/* SPDX-License-Identifier: MIT */
/*
 * Classify: what may be repeated after what, as one table that a reader can check against the
 * documented rules, row by row.
 */
#include "core/classify.h"
#include "tests/unit/header_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const int default_statuses[] = {429, 502, 503, 504};
#define ALL_ERRORS (ERROR_RESOLVE | ERROR_CONNECT | ERROR_TIMEOUT | ERROR_RESET | ERROR_STREAM)

static struct policy policy;
static struct headers headers;

static void add_status(int status)
{
    policy.retry_status.bits[(status - 100) / 64] |= UINT64_C(1) << ((status - 100) % 64);
}

static int defaults(void **state)
{
    (void)state;
    memset(&policy, 0, sizeof(policy));
    for (size_t i = 0; i < sizeof(default_statuses) / sizeof(default_statuses[0]); i++)
        add_status(default_statuses[i]);
    policy.retry_errors = ALL_ERRORS;
    policy.idempotent = IDEMPOTENT_AUTO;
    policy.max_attempts = 5;
    policy.mode = MODE_ENFORCE;
    headers_clear(&headers);
    return 0;
}

/* ---------------------------------------------------------------------- the matrix ---- */

static const struct request_traits requests[] = {
    {.method = "GET"},
    {.method = "HEAD"},
    {.method = "OPTIONS"},
    {.method = "TRACE"},
    {.method = "PUT"},
    {.method = "DELETE"},
    {.method = "POST"},
    {.method = "PATCH"},
    {.method = "POST", .has_idempotency_key = true},
    {.method = "PATCH", .has_idempotency_key = true},
    {.method = "GET", .is_conditional = true},
    {.method = "PUT", .is_conditional = true},
    {.method = "DELETE", .is_conditional = true},
    {.method = "POST", .has_idempotency_key = true, .is_conditional = true},
    {.method = "PROPFIND"},
    {.method = "get"},
    {.method = NULL},
};
#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

#define SENT true
#define UNSENT false

/* Each request's verdict: R retryable, 2 retryable but twice in all at most, n must not, D deliver. */
static const struct {
    const char *name;
    int status;
    enum failure failure;
    bool sent;
    char expected[REQUESTS + 1];
} outcomes[] = {
    /* clang-format off
     * The columns: GET HEAD OPTIONS TRACE PUT DELETE, POST PATCH, both with a key, and with a condition
     * GET PUT DELETE and POST with a key; PROPFIND, "get", no method.
     */
    {"429", 429, FAILURE_NONE, SENT, "RRRRRRnnRRRRRRnnn"},
    {"503", 503, FAILURE_NONE, SENT, "RRRRRRnnRRRRRRnnn"},
    {"502", 502, FAILURE_NONE, SENT, "RRRRRRnnRRRnnnnnn"},
    {"504", 504, FAILURE_NONE, SENT, "RRRR22nn22Rnnnnnn"},
    {"200", 200, FAILURE_NONE, SENT, "DDDDDDDDDDDDDDDDD"},
    {"304", 304, FAILURE_NONE, SENT, "DDDDDDDDDDDDDDDDD"},
    {"400", 400, FAILURE_NONE, SENT, "DDDDDDDDDDDDDDDDD"},
    {"401", 401, FAILURE_NONE, SENT, "DDDDDDDDDDDDDDDDD"},
    {"403", 403, FAILURE_NONE, SENT, "DDDDDDDDDDDDDDDDD"},
    {"404", 404, FAILURE_NONE, SENT, "DDDDDDDDDDDDDDDDD"},
    {"422", 422, FAILURE_NONE, SENT, "DDDDDDDDDDDDDDDDD"},
    {"500, not by default", 500, FAILURE_NONE, SENT, "DDDDDDDDDDDDDDDDD"},
    {"529, not by default", 529, FAILURE_NONE, SENT, "DDDDDDDDDDDDDDDDD"},
    {"no status at all", 0, FAILURE_NONE, SENT, "DDDDDDDDDDDDDDDDD"},
    {"cannot resolve now", 0, FAILURE_RESOLVE, UNSENT, "RRRRRRnnRRRRRRnnn"},
    {"no such host", 0, FAILURE_NO_SUCH_HOST, UNSENT, "222222nn222222nnn"},
    {"connection refused", 0, FAILURE_REFUSED, UNSENT, "222222nn222222nnn"},
    {"unreachable", 0, FAILURE_CONNECT, UNSENT, "RRRRRRnnRRRRRRnnn"},
    {"connect timeout", 0, FAILURE_TIMEOUT_CONNECT, UNSENT, "RRRRRRnnRRRRRRnnn"},
    {"transfer timeout", 0, FAILURE_TIMEOUT_TRANSFER, SENT, "RRRR22nn22Rnnnnnn"},
    {"transfer timeout, not sent", 0, FAILURE_TIMEOUT_TRANSFER, UNSENT, "RRRRRRnnRRRRRRnnn"},
    {"the program's own timeout", 0, FAILURE_TIMEOUT_OVERALL, SENT, "DDDDDDDDDDDDDDDDD"},
    {"reset", 0, FAILURE_RESET, SENT, "RRRRRRnnRRRnnnnnn"},
    {"reset, not sent", 0, FAILURE_RESET, UNSENT, "RRRRRRnnRRRRRRnnn"},
    {"stream error", 0, FAILURE_STREAM, SENT, "RRRRRRnnRRRnnnnnn"},
    {"stream refused", 0, FAILURE_STREAM_REFUSED, SENT, "RRRRRRRRRRRRRRRRR"},
    {"ended by the program", 0, FAILURE_ABORTED, SENT, "DDDDDDDDDDDDDDDDD"},
    {"certificate and the like", 0, FAILURE_FINAL, SENT, "DDDDDDDDDDDDDDDDD"},
    {"a failure not known", 0, (enum failure)99, SENT, "DDDDDDDDDDDDDDDDD"},
    /* clang-format on */
};
#define OUTCOMES (sizeof(outcomes) / sizeof(outcomes[0]))

static struct outcome outcome_of(size_t i)
{
    return (struct outcome){.status = outcomes[i].status,
                            .failure = outcomes[i].failure,
                            .request_sent = outcomes[i].sent,
                            .body_resendable = true,
                            .headers = &headers};
}

static char letter(struct classification result)
{
    switch (result.verdict) {
    case VERDICT_RETRYABLE:
        return result.attempts_max == COUNT_NONE ? 'R' : (char)('0' + result.attempts_max);
    case VERDICT_MUST_NOT:
        return 'n';
    case VERDICT_DELIVER:
        return 'D';
    }
    return '?';
}

static void check_matrix(const char *what, char (*expected)(size_t outcome, size_t request))
{
    for (size_t i = 0; i < OUTCOMES; i++)
        for (size_t j = 0; j < REQUESTS; j++) {
            struct outcome outcome = outcome_of(i);
            struct classification result = classify(&policy, &requests[j], &outcome, 1);
            if (letter(result) != expected(i, j))
                fail_msg("%s: %s, request %zu (%s): %c, expected %c (%s)", what, outcomes[i].name, j,
                         requests[j].method ? requests[j].method : "none", letter(result), expected(i, j),
                         result.why ? result.why : "");
            assert_int_equal(result.why == NULL, result.verdict == VERDICT_RETRYABLE);
        }
}

static char as_the_table_says(size_t outcome, size_t request)
{
    return outcomes[outcome].expected[request];
}

static void test_matrix(void **state)
{
    (void)state;
    check_matrix("defaults", as_the_table_says);
}

/* A section's word on idempotence, for every request: as for a plain GET or PUT; conditions still
 * count.  A refused stream is no repeat. */
static char as_if_idempotent(size_t outcome, size_t request)
{
    bool is_write = !classify_method_is_safe(requests[request].method);
    size_t like = requests[request].is_conditional && is_write ? 11 : is_write ? 4 : 0;
    return outcomes[outcome].expected[like];
}

static char never_repeated(size_t outcome, size_t request)
{
    char plain = outcomes[outcome].expected[request];
    return plain == 'D' || outcomes[outcome].failure == FAILURE_STREAM_REFUSED ? plain : 'n';
}

static void test_idempotent_yes_and_no(void **state)
{
    (void)state;
    policy.idempotent = IDEMPOTENT_YES;
    check_matrix("idempotent = yes", as_if_idempotent);
    policy.idempotent = IDEMPOTENT_NO;
    check_matrix("idempotent = no", never_repeated);
}

/* Where the server has certainly done nothing, a write without a key is as good as one with it. */
static char as_with_a_key_if_unsent(size_t outcome, size_t request)
{
    char plain = outcomes[outcome].expected[request];
    bool unsent = outcomes[outcome].failure != FAILURE_NONE && !outcomes[outcome].sent;
    return plain == 'n' && unsent ? outcomes[outcome].expected[8] : plain;
}

/* `idempotent = no` is about repeats, and this is none. */
static char never_repeated_but_unsent(size_t outcome, size_t request)
{
    char plain = outcomes[outcome].expected[request];
    bool unsent = outcomes[outcome].failure != FAILURE_NONE && !outcomes[outcome].sent;
    return unsent ? as_with_a_key_if_unsent(outcome, request) : plain == 'D' ? 'D' : never_repeated(outcome, request);
}

static void test_retry_unsent(void **state)
{
    (void)state;
    policy.retry_unsent = true;
    check_matrix("retry_unsent = yes", as_with_a_key_if_unsent);
    policy.idempotent = IDEMPOTENT_NO;
    check_matrix("retry_unsent = yes, idempotent = no", never_repeated_but_unsent);
    policy.idempotent = IDEMPOTENT_YES;
    check_matrix("retry_unsent = yes, idempotent = yes", as_if_idempotent);
}

/* ------------------------------------------------------------------ one rule at a time ---- */

static const struct request_traits get = {.method = "GET"};

static struct classification classify_status(const struct request_traits *request, int status, unsigned attempts)
{
    struct outcome outcome = {.status = status, .request_sent = true, .body_resendable = true, .headers = &headers};
    return classify(&policy, request, &outcome, attempts);
}

static void test_never_a_4xx_but_429(void **state)
{
    (void)state;
    memset(&policy.retry_status, 0xff, sizeof(policy.retry_status));
    for (int status = 100; status < 600; status++) {
        bool may = status == 429 || status == 500 || status == 502 || status == 503 || status == 504 ||
                   (status >= 520 && status <= 524) || status == 529;
        assert_int_equal(classify_status_may_be_retried(status), may);
        assert_int_equal(classify_status(&get, status, 1).verdict, may ? VERDICT_RETRYABLE : VERDICT_DELIVER);
    }
}

static void test_statuses_may_be_widened_and_narrowed(void **state)
{
    (void)state;
    add_status(500);
    assert_int_equal(classify_status(&get, 500, 1).verdict, VERDICT_RETRYABLE);
    memset(&policy.retry_status, 0, sizeof(policy.retry_status));
    add_status(503);
    assert_int_equal(classify_status(&get, 502, 1).verdict, VERDICT_DELIVER);
    assert_int_equal(classify_status(&get, 503, 1).verdict, VERDICT_RETRYABLE);
    /* Not retried any more, but its word still counts. */
    struct classification too_many = classify_status(&get, 429, 1);
    assert_int_equal(too_many.verdict, VERDICT_DELIVER);
    assert_true(too_many.is_refusal);
    assert_true(too_many.is_throttle);
}

static void test_refusal_and_throttle(void **state)
{
    (void)state;
    const struct request_traits post = {.method = "POST"};
    for (size_t i = 0; i < OUTCOMES; i++) {
        struct outcome outcome = outcome_of(i);
        struct classification result = classify(&policy, &post, &outcome, 1);
        assert_int_equal(result.is_throttle, outcomes[i].status == 429);
        assert_int_equal(result.is_refusal, status_set_has(&policy.retry_status, outcomes[i].status));
    }
}

static void test_retry_errors_by_kind(void **state)
{
    (void)state;
    static const struct {
        enum failure failure;
        uint32_t kind;
    } kinds[] = {{FAILURE_RESOLVE, ERROR_RESOLVE},
                 {FAILURE_NO_SUCH_HOST, ERROR_RESOLVE},
                 {FAILURE_REFUSED, ERROR_CONNECT},
                 {FAILURE_CONNECT, ERROR_CONNECT},
                 {FAILURE_TIMEOUT_CONNECT, ERROR_TIMEOUT},
                 {FAILURE_TIMEOUT_TRANSFER, ERROR_TIMEOUT},
                 {FAILURE_RESET, ERROR_RESET},
                 {FAILURE_STREAM, ERROR_STREAM},
                 {FAILURE_STREAM_REFUSED, ERROR_STREAM}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct outcome outcome = {.failure = kinds[i].failure, .body_resendable = true, .headers = &headers};
        policy.retry_errors = kinds[i].kind;
        assert_int_equal(classify(&policy, &get, &outcome, 1).verdict, VERDICT_RETRYABLE);
        policy.retry_errors = ALL_ERRORS & ~kinds[i].kind;
        assert_int_equal(classify(&policy, &get, &outcome, 1).verdict, VERDICT_DELIVER);
    }
}

static void test_loopback_only_where_it_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < OUTCOMES; i++) {
        struct outcome outcome = outcome_of(i);
        struct request_traits here = {.method = "GET", .is_loopback = true};
        char unnamed = letter(classify(&policy, &here, &outcome, 1));
        here.host_is_named = true;
        assert_int_equal(letter(classify(&policy, &here, &outcome, 1)), outcomes[i].expected[0]);
        assert_int_equal(unnamed, outcomes[i].failure == FAILURE_NONE ? outcomes[i].expected[0] : 'D');
    }
}

static void test_the_proxy_is_not_the_server(void **state)
{
    (void)state;
    static const int statuses[] = {407, 429, 503};
    for (size_t i = 0; i < 3; i++) {
        struct outcome outcome = {.status = statuses[i], .from_proxy = true, .body_resendable = true};
        struct classification result = classify(&policy, &get, &outcome, 1);
        assert_int_equal(result.verdict, VERDICT_DELIVER);
        assert_false(result.is_refusal);
        assert_false(result.is_throttle);
    }
}

static void test_nothing_after_delivery(void **state)
{
    (void)state;
    struct outcome outcome = {
        .failure = FAILURE_RESET, .delivered = true, .request_sent = true, .body_resendable = true};
    assert_int_equal(classify(&policy, &get, &outcome, 1).verdict, VERDICT_MUST_NOT);
    outcome = (struct outcome){.status = 503, .delivered = true, .request_sent = true, .body_resendable = true};
    assert_int_equal(classify(&policy, &get, &outcome, 1).verdict, VERDICT_MUST_NOT);
}

/* What was delivered of a download that can be gone on with does not forbid that; everything else holds. */
static void test_a_resumable_body(void **state)
{
    (void)state;
    for (size_t i = 0; i < OUTCOMES; i++) {
        struct outcome outcome = outcome_of(i);
        outcome.delivered = outcome.resumable = true;
        assert_int_equal(letter(classify(&policy, &get, &outcome, 1)), outcomes[i].expected[0]);
        outcome.resumable = false;
        assert_int_equal(classify(&policy, &get, &outcome, 1).verdict,
                         outcomes[i].expected[0] == 'D' ? VERDICT_DELIVER : VERDICT_MUST_NOT);
    }
    struct outcome broken = {.status = 200, /* the first response's */
                             .failure = FAILURE_RESET,
                             .delivered = true,
                             .request_sent = true,
                             .body_resendable = true,
                             .resumable = true,
                             .headers = &headers};
    assert_int_equal(classify(&policy, &get, &broken, 1).verdict, VERDICT_RETRYABLE);
    header_lines_read(&headers, "x-should-retry: false");
    assert_int_equal(classify(&policy, &get, &broken, 1).verdict, VERDICT_MUST_NOT);
    headers_clear(&headers);
    policy.idempotent = IDEMPOTENT_NO;
    assert_int_equal(classify(&policy, &get, &broken, 1).verdict, VERDICT_MUST_NOT);
}

/* However little of the request was sent: what was taken from a reader, and is not there any more, cannot
 * be sent again. */
static void test_a_body_that_cannot_be_sent_again(void **state)
{
    (void)state;
    const struct request_traits put = {.method = "PUT"};
    for (size_t i = 0; i < OUTCOMES; i++) {
        struct outcome outcome = outcome_of(i);
        outcome.body_resendable = false;
        struct classification result = classify(&policy, &put, &outcome, 1);
        if (outcomes[i].expected[4] == 'D') {
            assert_int_equal(result.verdict, VERDICT_DELIVER);
            continue;
        }
        assert_int_equal(result.verdict, VERDICT_MUST_NOT);
        assert_string_equal(result.why, "its body cannot be sent again");
    }
}

/* A log that says "its body cannot be sent again" of a POST without a key would send its reader after the
 * body, and the POST would still not be repeated. */
static void test_the_deeper_reason_is_told(void **state)
{
    (void)state;
    const struct request_traits post = {.method = "POST"}, put = {.method = "PUT", .is_conditional = true};
    struct outcome outcome = {.status = 502, .request_sent = true, .headers = &headers};
    assert_non_null(strstr(classify(&policy, &post, &outcome, 1).why, "neither idempotent nor"));
    policy.idempotent = IDEMPOTENT_YES;
    assert_string_equal(classify(&policy, &post, &outcome, 1).why, "its body cannot be sent again");
    outcome.body_resendable = true;
    assert_string_equal(classify(&policy, &put, &outcome, 1).why, "a conditional write that may have taken effect");
    header_lines_read(&headers, "x-should-retry: false");
    policy.idempotent = IDEMPOTENT_NO;
    outcome.body_resendable = false;
    assert_string_equal(classify(&policy, &post, &outcome, 1).why, "the server asks not to retry");
    outcome.delivered = true;
    assert_string_equal(classify(&policy, &post, &outcome, 1).why, "part of the response has reached the program");
}

/* As the matrix has it: it may be repeated after something that the server may have acted on. */
static bool has_a_repeat(size_t request)
{
    for (size_t i = 0; i < OUTCOMES; i++) {
        bool counts = outcomes[i].sent && outcomes[i].failure != FAILURE_STREAM_REFUSED;
        if (counts && (outcomes[i].expected[request] == 'R' || outcomes[i].expected[request] == '2'))
            return true;
    }
    return false;
}

static void test_may_ever_be_repeated(void **state)
{
    (void)state;
    for (size_t i = 0; i < REQUESTS; i++) {
        defaults(NULL);
        assert_int_equal(classify_may_ever_repeat(&policy, &requests[i]), has_a_repeat(i));
        policy.retry_unsent = true;
        assert_int_equal(classify_may_ever_repeat(&policy, &requests[i]), has_a_repeat(i));
        policy.idempotent = IDEMPOTENT_NO;
        assert_false(classify_may_ever_repeat(&policy, &requests[i]));
        policy.idempotent = IDEMPOTENT_YES;
        assert_true(classify_may_ever_repeat(&policy, &requests[i]));
        policy.retry_errors = 0;
        assert_true(classify_may_ever_repeat(&policy, &requests[i]));
        memset(&policy.retry_status, 0, sizeof(policy.retry_status));
        assert_false(classify_may_ever_repeat(&policy, &requests[i]));
        policy.retry_errors = ERROR_RESET;
        assert_true(classify_may_ever_repeat(&policy, &requests[i]));
        policy.max_attempts = 1;
        assert_false(classify_may_ever_repeat(&policy, &requests[i]));
        policy.max_attempts = 2;
        policy.mode = MODE_OBSERVE;
        assert_false(classify_may_ever_repeat(&policy, &requests[i]));
    }
}

static void test_who_is_given_a_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < REQUESTS; i++) {
        policy.idempotency_key = IDEMPOTENCY_KEY_KEEP;
        assert_false(classify_wants_key(&policy, &requests[i]));
        policy.idempotency_key = IDEMPOTENCY_KEY_GENERATE;
        assert_int_equal(classify_wants_key(&policy, &requests[i]), i == 6 || i == 7); /* POST and PATCH without */
    }
}

static void test_a_write_is_repeated_once_after_a_timeout(void **state)
{
    (void)state;
    const struct request_traits put = {.method = "PUT"};
    assert_int_equal(classify_status(&put, 504, 1).attempts_max, 2);
    assert_int_equal(classify_status(&put, 504, 2).verdict, VERDICT_MUST_NOT);
    assert_int_equal(classify_status(&put, 504, 3).verdict, VERDICT_MUST_NOT);
    assert_int_equal(classify_status(&put, 503, 3).verdict, VERDICT_RETRYABLE);
    assert_int_equal(classify_status(&get, 504, 3).verdict, VERDICT_RETRYABLE);
    assert_int_equal(classify_status(&get, 504, 1).attempts_max, COUNT_NONE);
}

static void test_the_server_may_forbid_it(void **state)
{
    (void)state;
    static const struct {
        const char *lines;
        bool forbidden;
    } lines[] = {{"x-should-retry: false", true},
                 {"X-Should-Retry: False", true},
                 {"Stripe-Should-Retry: false", true},
                 {"x-should-retry: true", false},
                 {"x-should-retry:", false},
                 {"x-should-retry: falsehood", false},
                 {"x-should-retry-not: false", false},
                 {"Retry-After: 1", false},
                 {"Retry-After: 1 | x-should-retry: false", true}};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        header_lines_read(&headers, lines[i].lines);
        assert_int_equal(classify_server_forbids_retry(&headers), lines[i].forbidden);
        struct classification result = classify_status(&get, 429, 1);
        assert_int_equal(result.verdict, lines[i].forbidden ? VERDICT_MUST_NOT : VERDICT_RETRYABLE);
        assert_true(result.is_refusal);
    }
    /* It forbids; it does not allow. */
    header_lines_read(&headers, "x-should-retry: true");
    assert_int_equal(classify_status(&get, 404, 1).verdict, VERDICT_DELIVER);
    assert_false(classify_server_forbids_retry(NULL));
}

static void test_methods(void **state)
{
    (void)state;
    static const struct {
        const char *method;
        enum method_safety safety;
        bool is_safe;
    } methods[] = {
        {"GET", METHOD_IDEMPOTENT, true},   {"HEAD", METHOD_IDEMPOTENT, true}, {"OPTIONS", METHOD_IDEMPOTENT, true},
        {"TRACE", METHOD_IDEMPOTENT, true}, {"PUT", METHOD_IDEMPOTENT, false}, {"DELETE", METHOD_IDEMPOTENT, false},
        {"POST", METHOD_OTHER, false},      {"PATCH", METHOD_OTHER, false},    {"CONNECT", METHOD_OTHER, false},
        {"get", METHOD_OTHER, false},       {"GETX", METHOD_OTHER, false},     {"", METHOD_OTHER, false},
        {NULL, METHOD_OTHER, false}};
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        assert_int_equal(classify_method(methods[i].method), methods[i].safety);
        assert_int_equal(classify_method_is_safe(methods[i].method), methods[i].is_safe);
    }
}

static void test_an_ordinary_answer_needs_no_closer_look(void **state)
{
    (void)state;
    static const char *const sets[] = {"429, 502, 503, 504", "429", "500, 502, 520"};
    unsigned ordinary = 0;
    for (size_t set = 0; set < 3; set++) {
        assert_null(keys_parse_value(&policy_keys[POLICY_KEY_retry_status], sets[set], &policy.retry_status));
        for (int status = 0; status < 700; status++)
            for (size_t i = 0; i < REQUESTS; i++)
                for (unsigned kind = 0; kind < 4; kind++) {
                    const struct outcome outcome = {.status = status,
                                                    .failure = kind & 1 ? FAILURE_RESET : FAILURE_NONE,
                                                    .from_proxy = kind & 2,
                                                    .headers = &headers};
                    if (!classify_is_ordinary(&policy, &outcome))
                        continue;
                    struct classification result = classify(&policy, &requests[i], &outcome, 1);
                    assert_int_equal(result.verdict, VERDICT_DELIVER);
                    assert_false(result.is_refusal || result.is_throttle);
                    assert_string_equal(result.why, CLASSIFY_WHY_ORDINARY);
                    ordinary++;
                }
    }
    assert_in_range(ordinary, 3 * 690 * REQUESTS, 3 * 700 * REQUESTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_matrix, defaults),
        cmocka_unit_test_setup(test_idempotent_yes_and_no, defaults),
        cmocka_unit_test_setup(test_retry_unsent, defaults),
        cmocka_unit_test_setup(test_never_a_4xx_but_429, defaults),
        cmocka_unit_test_setup(test_statuses_may_be_widened_and_narrowed, defaults),
        cmocka_unit_test_setup(test_refusal_and_throttle, defaults),
        cmocka_unit_test_setup(test_retry_errors_by_kind, defaults),
        cmocka_unit_test_setup(test_loopback_only_where_it_is_named, defaults),
        cmocka_unit_test_setup(test_the_proxy_is_not_the_server, defaults),
        cmocka_unit_test_setup(test_nothing_after_delivery, defaults),
        cmocka_unit_test_setup(test_a_resumable_body, defaults),
        cmocka_unit_test_setup(test_the_deeper_reason_is_told, defaults),
        cmocka_unit_test_setup(test_may_ever_be_repeated, defaults),
        cmocka_unit_test_setup(test_who_is_given_a_key, defaults),
        cmocka_unit_test_setup(test_a_body_that_cannot_be_sent_again, defaults),
        cmocka_unit_test_setup(test_a_write_is_repeated_once_after_a_timeout, defaults),
        cmocka_unit_test_setup(test_the_server_may_forbid_it, defaults),
        cmocka_unit_test_setup(test_methods, defaults),
        cmocka_unit_test_setup(test_an_ordinary_answer_needs_no_closer_look, defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
