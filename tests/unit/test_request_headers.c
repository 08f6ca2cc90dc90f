/* SPDX-License-Identifier: MIT */
/*
 * Request headers: what each form of a line says, as tables.  Which forms libcurl sends, and how, is
 * its own doing: tests/integration/test_explain.py looks at what arrives.
 */
#include "core/request_headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { NOTHING = 0, KEY = 1, CONDITION = 2 };

static const struct {
    const char *line;
    const char *key_header;
    int expected;
} lines[] = {
    {"Idempotency-Key: 1", "Idempotency-Key", KEY},
    {"Idempotency-Key:1", "Idempotency-Key", KEY},
    {"idempotency-key: 1", "Idempotency-Key", KEY},
    {"IDEMPOTENCY-KEY: 1", "idempotency-key", KEY},
    {"Idempotency-Key: \t 1", "Idempotency-Key", KEY},
    {"Idempotency-Key: ;", "Idempotency-Key", KEY},
    {"X-Request-Id: 1", "X-Request-Id", KEY},
    {"If-Match: 1", "If-Match", KEY | CONDITION},
    {"If-Match: \"a\"", "Idempotency-Key", CONDITION},
    {"if-match: \"a\"", "Idempotency-Key", CONDITION},
    {"If-None-Match: *", "Idempotency-Key", CONDITION},
    {"If-Unmodified-Since: Sat, 29 Oct 1994 19:43:31 GMT", "Idempotency-Key", CONDITION},
    {"If-Match: \"a\"", NULL, CONDITION},
    {"If-Match;", "Idempotency-Key", CONDITION},

    /* Not sent, or without what would make it a key. */
    {"Idempotency-Key:", "Idempotency-Key", NOTHING},
    {"Idempotency-Key:  \t", "Idempotency-Key", NOTHING},
    {"Idempotency-Key: \r\n", "Idempotency-Key", NOTHING},
    {"Idempotency-Key;", "Idempotency-Key", NOTHING},
    {"Idempotency-Key; ", "Idempotency-Key", NOTHING},
    {"Idempotency-Key", "Idempotency-Key", NOTHING},
    {"If-Match:", "Idempotency-Key", NOTHING},
    {"If-None-Match: ", "Idempotency-Key", NOTHING},
    {"If-Match; ", "Idempotency-Key", NOTHING},

    /* Other headers. */
    {"Idempotency-Keys: 1", "Idempotency-Key", NOTHING},
    {"X-Idempotency-Key: 1", "Idempotency-Key", NOTHING},
    {" Idempotency-Key: 1", "Idempotency-Key", NOTHING},
    {"Idempotency-Key : 1", "Idempotency-Key", NOTHING},
    {"Idempotency-Key: 1", "X-Request-Id", NOTHING},
    {"Idempotency-Key: 1", NULL, NOTHING},
    {"If-Modified-Since: Sat, 29 Oct 1994 19:43:31 GMT", "Idempotency-Key", NOTHING},
    {"If-Range: \"a\"", "Idempotency-Key", NOTHING},
    {"X: If-Match: 1", "Idempotency-Key", NOTHING},
    {": 1", "", NOTHING},
    {":", "", NOTHING},
    {"", "Idempotency-Key", NOTHING},
    {"", "", NOTHING},
    {"Idem", "Idempotency-Key", NOTHING},
};

static void test_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct request_traits traits = {.method = "POST"};
        request_headers_note(&traits, lines[i].line, lines[i].key_header);
        int got = (traits.has_idempotency_key ? KEY : 0) | (traits.is_conditional ? CONDITION : 0);
        if (got != lines[i].expected)
            fail_msg("\"%s\" with %s: %d, expected %d", lines[i].line,
                     lines[i].key_header ? lines[i].key_header : "no key header", got, lines[i].expected);
        assert_string_equal(traits.method, "POST");
    }
}

/* A later line takes nothing away: libcurl sends the earlier one all the same. */
static void test_lines_add_up(void **state)
{
    (void)state;
    struct request_traits traits = {.is_loopback = true};
    request_headers_note(&traits, "Idempotency-Key: 1", "Idempotency-Key");
    request_headers_note(&traits, "Accept: */*", "Idempotency-Key");
    request_headers_note(&traits, "If-Match: \"a\"", "Idempotency-Key");
    request_headers_note(&traits, "Idempotency-Key:", "Idempotency-Key");
    request_headers_note(&traits, "If-Match:", "Idempotency-Key");
    assert_true(traits.has_idempotency_key && traits.is_conditional && traits.is_loopback);
    assert_false(traits.host_is_named);
}

static const char three[] = "Authorization, X-Api-Key ,Private-Token";

static const struct {
    const char *line;
    const char *names;
    const char *expected; /* NULL: none */
} carriers[] = {
    {"Authorization: Bearer secret", three, "Authorization"},
    {"authorization:Bearer secret", three, "Authorization"},
    {"X-API-KEY: secret", three, "X-Api-Key"},
    {"private-token: secret", three, "Private-Token"},
    {"X-Api-Key: secret", "X-Api-Key", "X-Api-Key"},
    {"Authorization:", three, NULL},
    {"Authorization;", three, NULL},
    {"Authorization: ", three, NULL},
    {"Proxy-Authorization: Basic secret", three, NULL},
    {"X-Api-Key-Id: secret", three, NULL},
    {"Accept: Authorization: x", three, NULL},
    {"Authorization: Bearer secret", NULL, NULL},
    {": secret", "", NULL},
    {": secret", ", ,", NULL},
    {"Authorization", three, NULL},
    {"", three, NULL},
};

static void test_carriers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(carriers); i++) {
        struct scan name = scan_text("untouched", 9);
        const char *expected = carriers[i].expected ? carriers[i].expected : "untouched";
        bool carries = request_headers_carries(carriers[i].line, carriers[i].names, &name);
        if (carries != (carriers[i].expected != NULL) || (size_t)(name.end - name.at) != strlen(expected) ||
            memcmp(name.at, expected, strlen(expected)) != 0)
            fail_msg("\"%s\" among %s: %d, \"%.*s\"", carriers[i].line, carriers[i].names ? carriers[i].names : "none",
                     carries, (int)(name.end - name.at), name.at);
        assert_true(request_headers_carries(carriers[i].line, carriers[i].names, NULL) == carries);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_lines_add_up),
        cmocka_unit_test(test_carriers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
