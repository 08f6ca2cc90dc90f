/* SPDX-License-Identifier: MIT */
/*
 * Log lines: how they read, that nothing in them can forge another line or break the JSON, and that
 * endpoints name no single thing and no secret.
 */
#include "core/log.h"
#include "tests/unit/json_valid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static char buffer[LOG_LINE_SIZE];

#define REFUSED                                                                                                        \
    {                                                                                                                  \
        .level = LOG_WARN, .event = LOG_REFUSED, .time_s = 1700000000, .pid = 4711, .program = "curl",                 \
        .endpoint = "GET api.example.com/v1/users/*", .status = 429, .attempt = 2, .cause = CAUSE_RETRY_AFTER,         \
        .wait_ns = 2 * NS_PER_SECOND, .message = "as the server asked"                                                 \
    }

static const struct log_record refused = REFUSED;

static const struct {
    const char *name;
    struct log_record record;
    const char *text, *json;
} lines[] = {
    {"all of it", REFUSED,
     "curtsy[4711] curl: refused GET api.example.com/v1/users/*: 429, attempt 2, waiting 2s (retry_after): as the "
     "server "
     "asked\n",
     "{\"time\":\"2023-11-14T22:13:20Z\",\"level\":\"warn\",\"event\":\"refused\",\"pid\":4711,\"program\":\"curl\","
     "\"endpoint\":\"GET "
     "api.example.com/v1/users/*\",\"status\":429,\"attempt\":2,\"cause\":\"retry_after\",\"wait_s\":"
     "2.000,\"message\":\"as the server asked\"}\n"},
    {"nothing",
     {.level = LOG_DEBUG, .event = LOG_NOTICE, .pid = 1},
     "curtsy[1]:\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"debug\",\"event\":\"notice\",\"pid\":1}\n"},
    {"failed open",
     {.level = LOG_WARN, .event = LOG_FAILED_OPEN, .pid = 1, .program = "sh", .message = "no shared memory"},
     "curtsy[1] sh: failed open: no shared memory\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"warn\",\"event\":\"failed_open\",\"pid\":1,\"program\":\"sh\","
     "\"message\":\"no shared memory\"}\n"},
    {"notice",
     {.level = LOG_INFO, .event = LOG_NOTICE, .pid = 1, .program = "sh", .message = "hello"},
     "curtsy[1] sh: hello\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"info\",\"event\":\"notice\",\"pid\":1,\"program\":\"sh\","
     "\"message\":\"hello\"}\n"},
    {"gave up",
     {.level = LOG_ERROR,
      .event = LOG_GAVE_UP,
      .pid = 1,
      .endpoint = "GET a/",
      .attempt = 5,
      .cause = CAUSE_MAX_ATTEMPTS},
     "curtsy[1]: gave up GET a/: attempt 5 (max_attempts)\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"error\",\"event\":\"gave_up\",\"pid\":1,\"endpoint\":\"GET a/\","
     "\"attempt\":5,\"cause\":\"max_attempts\"}\n"},
    {"a wait below a millisecond is not none",
     {.level = LOG_INFO, .event = LOG_WAITING, .pid = 1, .endpoint = "GET a/", .cause = CAUSE_QUOTA, .wait_ns = 1},
     "curtsy[1]: waiting GET a/: waiting 1ms (quota)\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"info\",\"event\":\"waiting\",\"pid\":1,\"endpoint\":\"GET a/\","
     "\"cause\":\"quota\",\"wait_s\":0.001}\n"},
    {"what binds a wait",
     {.level = LOG_INFO,
      .event = LOG_WAITING,
      .pid = 1,
      .endpoint = "GET a/",
      .cause = CAUSE_QUOTA,
      .wait_ns = 12 * NS_PER_SECOND,
      .bound = "quota 5000/h of a:443",
      .message = "and 3 more"},
     "curtsy[1]: waiting GET a/: waiting 12s (quota), by quota 5000/h of a:443: and 3 more\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"info\",\"event\":\"waiting\",\"pid\":1,\"endpoint\":\"GET a/\","
     "\"cause\":\"quota\",\"wait_s\":12.000,\"bound\":\"quota 5000/h of a:443\",\"message\":\"and 3 more\"}\n"},
    {"nothing that binds it",
     {.level = LOG_INFO, .event = LOG_WAITING, .pid = 1, .cause = CAUSE_QUOTA, .bound = ""},
     "curtsy[1]: waiting: (quota)\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"info\",\"event\":\"waiting\",\"pid\":1,\"cause\":\"quota\"}\n"},
    {"only what binds it",
     {.level = LOG_WARN, .event = LOG_GAVE_UP, .pid = 1, .bound = "a:443"},
     "curtsy[1]: gave up: by a:443\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"warn\",\"event\":\"gave_up\",\"pid\":1,\"bound\":\"a:443\"}\n"},
    {"gave up before a wait",
     {.level = LOG_WARN,
      .event = LOG_GAVE_UP,
      .pid = 1,
      .cause = CAUSE_MAX_WAIT,
      .wait_ns = 3600 * NS_PER_SECOND,
      .bound = "a:443"},
     "curtsy[1]: gave up: would have to wait 1h (max_wait), by a:443\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"warn\",\"event\":\"gave_up\",\"pid\":1,\"cause\":\"max_wait\","
     "\"wait_s\":3600.000,\"bound\":\"a:443\"}\n"},
    {"a wait without an end",
     {.level = LOG_INFO, .event = LOG_WAITING, .pid = 1, .cause = CAUSE_HOLD, .wait_ns = TIME_NEVER - NS_PER_SECOND},
     "curtsy[1]: waiting: waiting without an end (hold)\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"info\",\"event\":\"waiting\",\"pid\":1,\"cause\":\"hold\"}\n"},
    {"would have waited",
     {.level = LOG_INFO,
      .event = LOG_WOULD_WAIT,
      .pid = 1,
      .program = "curl",
      .endpoint = "GET a/",
      .cause = CAUSE_QUOTA,
      .wait_ns = 12 * NS_PER_SECOND,
      .bound = "quota 5/s of a:443"},
     "curtsy[1] curl: observed GET a/: would have waited 12s (quota), by quota 5/s of a:443\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"info\",\"event\":\"would_wait\",\"pid\":1,\"program\":\"curl\","
     "\"endpoint\":\"GET a/\",\"cause\":\"quota\",\"wait_s\":12.000,\"bound\":\"quota 5/s of a:443\"}\n"},
    {"would have retried",
     {.level = LOG_INFO,
      .event = LOG_WOULD_RETRY,
      .pid = 1,
      .endpoint = "GET a/",
      .status = 429,
      .attempt = 1,
      .cause = CAUSE_RETRY_AFTER,
      .wait_ns = 2 * NS_PER_SECOND},
     "curtsy[1]: observed GET a/: 429, attempt 1, would have retried after 2s (retry_after)\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"info\",\"event\":\"would_retry\",\"pid\":1,\"endpoint\":\"GET "
     "a/\","
     "\"status\":429,\"attempt\":1,\"cause\":\"retry_after\",\"wait_s\":2.000}\n"},
    {"would have retried at once",
     {.level = LOG_INFO, .event = LOG_WOULD_RETRY, .pid = 1, .status = 429},
     "curtsy[1]: observed: 429, would have retried\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"info\",\"event\":\"would_retry\",\"pid\":1,\"status\":429}\n"},
    {"the operator",
     {.level = LOG_WARN, .event = LOG_OPERATOR, .pid = 1, .program = "curl", .message = "switched to observe"},
     "curtsy[1] curl: the operator has switched to observe\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"warn\",\"event\":\"operator\",\"pid\":1,\"program\":\"curl\","
     "\"message\":\"switched to observe\"}\n"},
    {"the operator, about a host and for a time",
     {.level = LOG_WARN,
      .event = LOG_OPERATOR,
      .pid = 1,
      .endpoint = "a:443",
      .message = "stopped requests",
      .cause = CAUSE_HOLD,
      .wait_ns = 600 * NS_PER_SECOND},
     "curtsy[1]: the operator has stopped requests: a:443, for 10m (hold)\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"warn\",\"event\":\"operator\",\"pid\":1,\"endpoint\":\"a:443\","
     "\"cause\":\"hold\",\"wait_s\":600.000,\"message\":\"stopped requests\"}\n"},
    {"the operator, without an end and without a word",
     {.level = LOG_WARN, .event = LOG_OPERATOR, .pid = 1, .wait_ns = TIME_NEVER},
     "curtsy[1]: the operator has spoken: for good\n",
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"warn\",\"event\":\"operator\",\"pid\":1}\n"},
};

static void test_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        size_t length = log_format_line(&lines[i].record, LOG_TEXT, buffer, sizeof(buffer));
        assert_string_equal(buffer, lines[i].text);
        assert_int_equal(length, strlen(lines[i].text));
        length = log_format_line(&lines[i].record, LOG_JSON, buffer, sizeof(buffer));
        assert_string_equal(buffer, lines[i].json);
        assert_int_equal(length, strlen(lines[i].json));
        assert_true(json_is_flat_object(buffer));
    }
}

/* As a daemon gets them: the priority is 8 * facility + severity, the day has two columns. */
static const struct {
    struct log_record record;
    enum log_format format;
    const char *datagram;
} datagrams[] = {
    {REFUSED, LOG_TEXT,
     "<28>Nov 14 22:13:20 curtsy[4711]: curl: refused GET api.example.com/v1/users/*: 429, attempt 2, waiting 2s "
     "(retry_after): as the server asked"},
    {{.level = LOG_ERROR, .time_s = 1709251199, .pid = 1, .event = LOG_NOTICE, .message = "two\nlines"},
     LOG_TEXT,
     "<27>Feb 29 23:59:59 curtsy[1]: two?lines"},
    {{.level = LOG_INFO, .pid = 1, .event = LOG_NOTICE, .message = "hello"},
     LOG_TEXT,
     "<30>Jan  1 00:00:00 curtsy[1]: hello"},
    {{.level = LOG_DEBUG, .time_s = 1733011199, .pid = 1, .program = "sh", .event = LOG_NOTICE, .message = "hello"},
     LOG_TEXT,
     "<31>Nov 30 23:59:59 curtsy[1]: sh: hello"},
    {{.level = LOG_WARN, .pid = 1, .program = "sh", .event = LOG_NOTICE, .message = "\"hello\""},
     LOG_JSON,
     "<28>Jan  1 00:00:00 curtsy[1]: "
     "{\"time\":\"1970-01-01T00:00:00Z\",\"level\":\"warn\",\"event\":\"notice\",\"pid\":1,"
     "\"program\":\"sh\",\"message\":\"\\\"hello\\\"\"}"},
};

static void test_datagrams_for_syslog(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(datagrams) / sizeof(datagrams[0]); i++) {
        struct calendar_time local;
        calendar_from_seconds(datagrams[i].record.time_s, &local);
        size_t length = log_format_syslog(&datagrams[i].record, &local, datagrams[i].format, buffer, sizeof(buffer));
        assert_string_equal(buffer, datagrams[i].datagram);
        assert_int_equal(length, strlen(datagrams[i].datagram));
    }
    log_format_syslog(&datagrams[2].record, NULL, LOG_TEXT, buffer, sizeof(buffer));
    assert_string_equal(buffer, "<30>curtsy[1]: hello");
}

/* From the smallest that holds the header and an object, what is JSON stays so. */
static void test_datagrams_in_any_size(void **state)
{
    (void)state;
    static const char header[] = "<28>Nov 14 22:13:20 curtsy[4711]: ";
    struct log_record record = refused;
    struct calendar_time local;
    calendar_from_seconds(record.time_s, &local);
    record.message = record.bound = "\xf0\x9f\x98\x80\"\xf0\x9f\x98\x80\\\n\"\"\\\xe2\x82\xac\xe2\x82\xac\xff\"";
    for (size_t size = 1; size < 500; size++)
        for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
            memset(buffer, 'x', sizeof(buffer));
            size_t length = log_format_syslog(&record, &local, (enum log_format)format, buffer, size);
            assert_true(length < size);
            assert_int_equal(strlen(buffer), length);
            assert_null(strchr(buffer, '\n'));
            assert_int_equal(buffer[size], 'x');
            if (format == LOG_JSON && size > strlen(header) + 2)
                assert_true(json_is_flat_object(buffer + strlen(header)));
        }
    assert_int_equal(log_format_syslog(&record, &local, LOG_TEXT, buffer, 0), 0);
}

static void test_the_checker_can_fail(void **state)
{
    (void)state;
    static const char *const invalid[] = {"",
                                          "{",
                                          "{\"a\":1",
                                          "{\"a\":1}}",
                                          "{\"a\":01}",
                                          "{\"a\":1,}",
                                          "{\"a\" 1}",
                                          "{\"a\":\"\n\"}",
                                          "{\"a\":\"\\x\"}",
                                          "{\"a\":\"\xff\"}",
                                          "{\"a\":\"\xc0\xaf\"}",
                                          "{\"a\":\"\xed\xa0\x80\"}",
                                          "{\"a\":\"\xf4\x90\x80\x80\"}",
                                          "{\"a\":\"b}"};
    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
        assert_false(json_is_flat_object(invalid[i]));
    assert_true(json_is_flat_object("{}\n"));
}

/* What comes in, and what is left of it; in JSON and in text alike, but for the two escapes. */
static const struct {
    const char *in, *out;
} texts[] = {
    {"plain", "plain"},
    {"two\nlines\r\n", "two?lines??"},
    {"tab\tand\x1b[31mred\x7f", "tab?and?[31mred?"},
    {"\xc3\xa9t\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9t\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"a control of Latin-1: \xc2\x9b", "a control of Latin-1: ?"},
    {"a lone byte: \xff", "a lone byte: ?"},
    {"a lone continuation: \x80", "a lone continuation: ?"},
    {"cut: \xe2\x82", "cut: ??"},
    {"cut, then more: \xe2\x82"
     "a",
     "cut, then more: ??a"},
    {"overlong: \xc0\xaf", "overlong: ??"},
    {"overlong: \xe0\x80\xaf", "overlong: ???"},
    {"overlong: \xf0\x80\x80\xaf", "overlong: ????"},
    {"surrogate: \xed\xa0\x80", "surrogate: ???"},
    {"too large: \xf4\x90\x80\x80", "too large: ????"},
    {"the largest: \xf4\x8f\xbf\xbf", "the largest: \xf4\x8f\xbf\xbf"},
};

static void test_untrusted_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct log_record record = {.pid = 1, .event = LOG_NOTICE, .message = texts[i].in};
        char expected[256];
        struct log_record bound = {.pid = 1, .event = LOG_GAVE_UP, .bound = texts[i].in};
        log_format_line(&bound, LOG_TEXT, buffer, sizeof(buffer));
        snprintf(expected, sizeof(expected), "curtsy[1]: gave up: by %s\n", texts[i].out);
        assert_string_equal(buffer, expected);
        log_format_line(&record, LOG_TEXT, buffer, sizeof(buffer));
        snprintf(expected, sizeof(expected), "curtsy[1]: %s\n", texts[i].out);
        assert_string_equal(buffer, expected);
        log_format_line(&record, LOG_JSON, buffer, sizeof(buffer));
        snprintf(expected, sizeof(expected), ",\"message\":\"%s\"}\n", texts[i].out);
        assert_non_null(strstr(buffer, expected));
        assert_true(json_is_flat_object(buffer));
    }
}

static void test_json_escapes(void **state)
{
    (void)state;
    struct log_record record = {.pid = 1, .event = LOG_NOTICE, .message = "\"}\\\",\"level\":\"off"};
    log_format_line(&record, LOG_JSON, buffer, sizeof(buffer));
    assert_non_null(strstr(buffer, "\"message\":\"\\\"}\\\\\\\",\\\"level\\\":\\\"off\"}\n"));
    assert_true(json_is_flat_object(buffer));
    log_format_line(&record, LOG_TEXT, buffer, sizeof(buffer));
    assert_string_equal(buffer, "curtsy[1]: \"}\\\",\"level\":\"off\n");
}

static void check_line(enum log_format format, size_t size, size_t length)
{
    assert_true(length < size);
    assert_int_equal(strlen(buffer), length);
    if (size < 2)
        return;
    assert_int_equal(buffer[length - 1], '\n');
    assert_ptr_equal(strchr(buffer, '\n'), buffer + length - 1);
    if (format == LOG_JSON && size >= 4)
        assert_true(json_is_flat_object(buffer));
}

/* Every size of buffer, with a text that has an escape or a long character at every place. */
static void test_any_size_of_buffer(void **state)
{
    (void)state;
    static const char message[] = "\xf0\x9f\x98\x80\"\xf0\x9f\x98\x80\\\n\"\"\\\\\xe2\x82\xac\xe2\x82\xac\xff\"";
    struct log_record record = refused;
    record.message = record.endpoint = record.bound = message;
    for (size_t size = 1; size < 600; size++)
        for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
            memset(buffer, 'x', sizeof(buffer));
            size_t length = log_format_line(&record, (enum log_format)format, buffer, size);
            check_line((enum log_format)format, size, length);
            assert_int_equal(buffer[size], 'x');
        }
    assert_int_equal(log_format_line(&record, LOG_TEXT, buffer, 0), 0);
}

static void test_long_texts_are_cut(void **state)
{
    (void)state;
    char *long_text = malloc(100001);
    memset(long_text, '"', 100000);
    long_text[100000] = '\0';
    struct log_record record = refused;
    for (int i = 0; i < 4; i++) {
        record.program = i == 0 ? long_text : "curl";
        record.endpoint = i == 1 ? long_text : "GET a/";
        record.bound = i == 2 ? long_text : NULL;
        record.message = long_text;
        for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
            size_t length = log_format_line(&record, (enum log_format)format, buffer, sizeof(buffer));
            check_line((enum log_format)format, sizeof(buffer), length);
            assert_true(length >= sizeof(buffer) - 3);
        }
    }
    free(long_text);
}

static void test_absurd_numbers(void **state)
{
    (void)state;
    struct log_record record = {.level = (enum log_level)99,
                                .event = (enum log_event)99,
                                .time_s = INT64_MAX,
                                .pid = -1,
                                .status = -1,
                                .attempt = UINT32_MAX,
                                .cause = (enum cause)99,
                                .wait_ns = INT64_MAX};
    for (int format = LOG_TEXT; format <= LOG_JSON; format++)
        check_line((enum log_format)format, sizeof(buffer),
                   log_format_line(&record, (enum log_format)format, buffer, sizeof(buffer)));
    record.time_s = INT64_MIN;
    record.wait_ns = INT64_MIN;
    check_line(LOG_JSON, sizeof(buffer), log_format_line(&record, LOG_JSON, buffer, sizeof(buffer)));
}

static const struct {
    const char *method, *host, *path, *expected;
} endpoints[] = {
    {"GET", "api.example.com", "/v1/users", "GET api.example.com/v1/users"},
    {"GET", "api.example.com", "/", "GET api.example.com/"},
    {"GET", "api.example.com", "", "GET api.example.com"},
    {"GET", "api.example.com", NULL, "GET api.example.com"},
    {NULL, "api.example.com:8443", "/a", "api.example.com:8443/a"},
    {"GET", NULL, "/a", "GET /a"},
    {"POST", "[::1]:80", "/a/", "POST [::1]:80/a/"},
    {"GET", "h", "a/b", "GET h/a/b"},

    /* Never the query, the fragment or the user. */
    {"GET", "h", "/a?token=secret", "GET h/a"},
    {"GET", "h", "/a#secret", "GET h/a"},
    {"GET", "h", "?token=/secret", "GET h"},
    {"GET", "user:secret@h", "/a", "GET h/a"},
    {"GET", "user:sec@ret@h", "/a", "GET h/a"},

    /* Identifiers. */
    {"GET", "h", "/users/42/posts/0", "GET h/users/*/posts/*"},
    {"GET", "h", "/v1/v2/3d", "GET h/v1/v2/3d"},
    {"GET", "h", "/commits/deadbeef", "GET h/commits/*"},
    {"GET", "h", "/commits/DEADBEE", "GET h/commits/DEADBEE"},
    {"GET", "h", "/commits/0123456789abcdef0123456789ABCDEF01234567", "GET h/commits/*"},
    {"GET", "h", "/o/123e4567-e89b-12d3-a456-426614174000/x", "GET h/o/*/x"},
    {"GET", "h", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaagggg", "GET h/*"},
    {"GET", "h", "/gggggggggggggggggggggggggggggggg", "GET h/gggggggggggggggggggggggggggggggg"},
    {"GET", "h", "/who/jo@example.com", "GET h/who/*"},
    {"GET", "h", "/who/jo%40example.com", "GET h/who/*"},
    {"GET", "h", "/page;jsessionid=1", "GET h/*"},
    {"GET", "h", "/services/T0/B0/x8Kq2mZpR4vT7wYb", "GET h/services/T0/B0/*"},
    {"GET", "h", "/internationalization", "GET h/internationalization"},
    {"GET", "h", "/chat-completions-2024-06-01", "GET h/chat-completions-2024-06-01"},

    /* At most six segments. */
    {"GET", "h", "/a/b/c/d/e/f", "GET h/a/b/c/d/e/f"},
    {"GET", "h", "/a/b/c/d/e/f/g", "GET h/a/b/c/d/e/f/..."},
    {"GET", "h", "/a//b", "GET h/a//b"},
    {"GET", "h", "//////////", "GET h///////..."},
};

static void test_endpoints(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); i++) {
        size_t length = log_endpoint(endpoints[i].method, endpoints[i].host, endpoints[i].path, buffer, sizeof(buffer));
        assert_string_equal(buffer, endpoints[i].expected);
        assert_int_equal(length, strlen(endpoints[i].expected));
    }
}

static void test_endpoints_in_any_size(void **state)
{
    (void)state;
    static const char whole[] = "GET api.example.com/v1/users/*";
    for (size_t size = 0; size < 40; size++) {
        memset(buffer, 'x', sizeof(buffer));
        size_t length = log_endpoint("GET", "api.example.com", "/v1/users/42", buffer, size);
        assert_int_equal(buffer[size], 'x');
        if (size == 0)
            continue;
        assert_int_equal(length, size - 1 < strlen(whole) ? size - 1 : strlen(whole));
        assert_int_equal(strlen(buffer), length);
        assert_memory_equal(buffer, whole, length);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_datagrams_for_syslog),
        cmocka_unit_test(test_datagrams_in_any_size),
        cmocka_unit_test(test_the_checker_can_fail),
        cmocka_unit_test(test_untrusted_texts),
        cmocka_unit_test(test_json_escapes),
        cmocka_unit_test(test_any_size_of_buffer),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_absurd_numbers),
        cmocka_unit_test(test_endpoints),
        cmocka_unit_test(test_endpoints_in_any_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
