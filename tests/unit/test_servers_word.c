/* SPDX-License-Identifier: MIT */
/*
 * The server's word: which of the fields it comes from.  How each field is read has tests of its own;
 * the rows here are about who comes first, and about who says nothing at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/servers_word.h"
#include "core/units.h"
#include "tests/unit/header_lines.h"

#define NOW_S INT64_C(1700000000)
#define S NS_PER_SECOND
#define SPENT "X-RateLimit-Limit: 60 | X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 30"
#define LEFT "X-RateLimit-Limit: 60 | X-RateLimit-Remaining: 9 | X-RateLimit-Reset: 30"

enum answer { SUCCESS, REFUSAL, BAD_GATEWAY };
enum rule { OBEY, IGNORE };

static const struct {
    const char *name;
    const char *lines;
    enum answer answer;
    enum rule rule;
    enum cause cause;
    int64_t wait_ns;
    const char *field;
} cases[] = {
    /* Retry-After binds on a refusal, and there it comes first, whichever is longer. */
    {"a wait", "Retry-After: 30", REFUSAL, OBEY, CAUSE_RETRY_AFTER, 30 * S, "retry-after"},
    {"in milliseconds", "Retry-After: 2 | Retry-After-Ms: 1238", REFUSAL, OBEY, CAUSE_RETRY_AFTER, 1238 * NS_PER_MS,
     "retry-after-ms"},
    {"before a longer reset", "Retry-After: 1 | " SPENT, REFUSAL, OBEY, CAUSE_RETRY_AFTER, S, "retry-after"},
    {"before a shorter reset", "Retry-After: 1337 | " SPENT, REFUSAL, OBEY, CAUSE_RETRY_AFTER, 1337 * S, "retry-after"},
    {"with something left", "Retry-After: 60 | " LEFT, REFUSAL, OBEY, CAUSE_RETRY_AFTER, 60 * S, "retry-after"},
    {"uncapped", "Retry-After: 315360000", REFUSAL, OBEY, CAUSE_RETRY_AFTER, 315360000 * S, "retry-after"},
    {"of a cache", "Age: 9 | Retry-After: 60", REFUSAL, OBEY, CAUSE_RETRY_AFTER, 60 * S, "retry-after"},

    /* On anything else it does not, and a policy may disobey it. */
    {"on a success", "Retry-After: 30", SUCCESS, OBEY, CAUSE_NONE, 0, NULL},
    {"on a success, nothing left", "Retry-After: 60 | " SPENT, SUCCESS, OBEY, CAUSE_QUOTA_FIELDS, 30 * S,
     "x-ratelimit-reset"},
    {"ignored", "Retry-After: 30", REFUSAL, IGNORE, CAUSE_NONE, 0, NULL},
    {"ignored, nothing left", "Retry-After: 60 | " SPENT, REFUSAL, IGNORE, CAUSE_QUOTA_FIELDS, 30 * S,
     "x-ratelimit-reset"},

    /* What is of no use leaves the word to the next one. */
    {"zero", "Retry-After: 0", REFUSAL, OBEY, CAUSE_NONE, 0, NULL},
    {"zero, nothing left", "Retry-After: 0 | " SPENT, REFUSAL, OBEY, CAUSE_QUOTA_FIELDS, 30 * S, "x-ratelimit-reset"},
    {"unreadable", "Retry-After: tomorrow", REFUSAL, OBEY, CAUSE_NONE, 0, NULL},
    {"unreadable, nothing left", "Retry-After: -5 | " SPENT, REFUSAL, OBEY, CAUSE_QUOTA_FIELDS, 30 * S,
     "x-ratelimit-reset"},

    /* A window that is used up speaks on any response, if it says until when. */
    {"nothing left", SPENT, REFUSAL, OBEY, CAUSE_QUOTA_FIELDS, 30 * S, "x-ratelimit-reset"},
    {"nothing left after a success", SPENT, SUCCESS, OBEY, CAUSE_QUOTA_FIELDS, 30 * S, "x-ratelimit-reset"},
    {"another family", "RateLimit: \"a\";r=0;t=52", SUCCESS, OBEY, CAUSE_QUOTA_FIELDS, 52 * S, "ratelimit"},
    {"something left", LEFT, REFUSAL, OBEY, CAUSE_NONE, 0, NULL},
    {"nothing left, no time", "X-RateLimit-Limit: 60 | X-RateLimit-Remaining: 0", REFUSAL, OBEY, CAUSE_NONE, 0, NULL},
    {"nothing left until now", "X-RateLimit-Remaining: 0 | X-RateLimit-Reset: 1700000000", REFUSAL, OBEY, CAUSE_NONE, 0,
     NULL},
    {"a reset alone", "X-RateLimit-Reset: 5", REFUSAL, OBEY, CAUSE_QUOTA_FIELDS, 5 * S, "x-ratelimit-reset"},
    {"a reset alone of a bad gateway", "X-RateLimit-Reset: 5", BAD_GATEWAY, OBEY, CAUSE_NONE, 0, NULL},
    {"a reset alone after a success", "X-RateLimit-Reset: 5", SUCCESS, OBEY, CAUSE_NONE, 0, NULL},
    {"a cache's quota", "Age: 9 | " SPENT, REFUSAL, OBEY, CAUSE_NONE, 0, NULL},

    /* Silence. */
    {"nothing", "", REFUSAL, OBEY, CAUSE_NONE, 0, NULL},
    {"the time of day", "Date: Tue, 14 Nov 2023 22:13:20 GMT | Age: 0", REFUSAL, OBEY, CAUSE_NONE, 0, NULL},
    {"a stranger", "X-App-Limit-24hour-Remaining: 0", REFUSAL, OBEY, CAUSE_NONE, 0, NULL},
};

/* Responses of real servers, as in header_cases.tsv, whose word is not the obvious one. */
static const struct {
    const char *id;
    const char *lines;
    enum answer answer;
    int64_t now_s;
    enum cause cause;
    int64_t wait_ns;
} corpus[] = {
    {"github-10",
     "x-ratelimit-limit: 5000 | x-ratelimit-remaining: 0 | x-ratelimit-used: 5000 | x-ratelimit-reset: 1700000090 | "
     "x-ratelimit-resource: graphql",
     SUCCESS, 1700000000, CAUSE_QUOTA_FIELDS, 90 * S},
    {"github-08",
     "Date: Mon, 23 Oct 2023 21:48:42 GMT | x-ratelimit-limit: 5000 | x-ratelimit-remaining: 0 | x-ratelimit-reset: "
     "1698097722",
     REFUSAL, 1700000000, CAUSE_NONE, 0},
    {"github-13", "retry-after: 0 | x-ratelimit-type: UserConcurrentRequests | x-ratelimit-timeremaining: 0", REFUSAL,
     1700000000, CAUSE_NONE, 0},
    {"gitlab-05", "RateLimit-Limit: 60 | RateLimit-Remaining: 0 | RateLimit-ResetTime: Tue, 05 Jan 2021 11:00:00 GMT",
     REFUSAL, 1609844385, CAUSE_QUOTA_FIELDS, 15 * S},
    {"jira-12", "X-RateLimit-Limit: 0 | X-RateLimit-NearLimit: true | X-RateLimit-Remaining: 0", SUCCESS, 1700000000,
     CAUSE_NONE, 0},
    {"discord-03",
     "Retry-After: 1337 | X-RateLimit-Limit: 10 | X-RateLimit-Remaining: 9 | X-RateLimit-Reset: 1470173023.123 | "
     "X-RateLimit-Reset-After: 64.57 | X-RateLimit-Bucket: abcd1234 | X-RateLimit-Scope: shared",
     REFUSAL, 1470172958, CAUSE_RETRY_AFTER, 1337 * S},
    {"turnio-01",
     "Retry-After: 1 | X-Ratelimit-Bucket: general | X-Ratelimit-Limit: 60 | X-Ratelimit-Remaining: 21 | "
     "X-Ratelimit-Reset: 1533715145",
     SUCCESS, 1533715144, CAUSE_NONE, 0},
    {"hf-02", "ratelimit: \"api\";r=0;t=52 | ratelimit-policy: \"fixed window\";\"api\";q=500;w=300", REFUSAL,
     1700000000, CAUSE_QUOTA_FIELDS, 52 * S},
    {"gateway-01",
     "X-RateLimit-Limit: 1200, 1200;window=60 | X-RateLimit-Remaining: 0 | X-RateLimit-Used: 1200 | "
     "X-RateLimit-Reset: 1785173199 | Retry-After: 1",
     REFUSAL, 1785173190, CAUSE_RETRY_AFTER, S},
    {"retry-44", "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", REFUSAL, 1700000000, CAUSE_RETRY_AFTER, INT64_MAX},
};

static struct servers_word read_word(const char *lines, enum answer answer, enum rule rule, int64_t now_s)
{
    struct headers headers;
    header_lines_read(&headers, lines);
    return servers_word_read(&headers,
                             answer == SUCCESS   ? 200
                             : answer == REFUSAL ? 429
                                                 : 502,
                             answer != SUCCESS, rule == OBEY, now_s);
}

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct servers_word word = read_word(cases[i].lines, cases[i].answer, cases[i].rule, NOW_S);
        if (word.cause != cases[i].cause || word.wait_ns != cases[i].wait_ns)
            fail_msg("%s: cause %s, wait %lld", cases[i].name, cause_name(word.cause), (long long)word.wait_ns);
        if (cases[i].field == NULL)
            assert_null(word.field);
        else
            assert_string_equal(word.field, cases[i].field);
    }
}

static void test_real_servers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++) {
        struct servers_word word = read_word(corpus[i].lines, corpus[i].answer, OBEY, corpus[i].now_s);
        if (word.cause != corpus[i].cause || word.wait_ns != corpus[i].wait_ns)
            fail_msg("%s: cause %s, wait %lld", corpus[i].id, cause_name(word.cause), (long long)word.wait_ns);
    }
}

/* For whoever shows them: what is passed over is still told. */
static void test_tells_what_it_passes_over(void **state)
{
    (void)state;
    struct servers_word word = read_word("Retry-After: 9 | " LEFT, SUCCESS, IGNORE, NOW_S);
    assert_int_equal(word.cause, CAUSE_NONE);
    assert_int_equal(word.retry_after.form, RETRY_AFTER_GIVEN);
    assert_int_equal(word.retry_after.wait_ns, 9 * S);
    assert_int_equal(word.quota.remaining, 9);

    word = read_word("Retry-After: 9 | " LEFT, REFUSAL, OBEY, NOW_S);
    assert_int_equal(word.quota.limit, 60);
    assert_int_equal(word.quota.reset_ns, 30 * S);
}

/* "Unknown" is not "nothing left". */
static void test_silence_is_unknown(void **state)
{
    (void)state;
    const char *const lines[] = {"", "Date: Tue, 14 Nov 2023 22:13:20 GMT", "X-RateLimit-Resource: core"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct servers_word word = read_word(lines[i], REFUSAL, OBEY, NOW_S);
        assert_int_equal(word.retry_after.form, RETRY_AFTER_ABSENT);
        assert_false(word.quota.present);
        assert_int_equal(word.quota.limit, QUOTA_UNKNOWN);
        assert_int_equal(word.quota.remaining, QUOTA_UNKNOWN);
        assert_int_equal(word.quota.reset_ns, QUOTA_UNKNOWN);
        assert_int_equal(word.quota.window_ns, QUOTA_UNKNOWN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_real_servers),
        cmocka_unit_test(test_tells_what_it_passes_over),
        cmocka_unit_test(test_silence_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
