/* SPDX-License-Identifier: MIT */
/*
 * First response: the copy answers as libcurl itself did when it was taken, to the letter, and still does
 * so when libcurl tells of another transfer.  libcurl's answers are the expectation: transfers from a
 * small server are made, and every question there is is asked of both.
 */
#include "shim/first_response.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* -------------------------------------------------------------------- server ---- */

/* The connection ends after each answer, and with it the body. */
static const struct {
    const char *path;
    const char *answer;
} answers[] = {
    {"/cut",
     "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: 100\r\nContent-Type: text/x-first; charset=utf-8\r\n"
     "Last-Modified: Tue, 15 Nov 1994 12:45:26 GMT\r\nX-Many: 1\r\nx-many: 2\r\nX-Other: a\r\nX-MANY: 3\r\n"
     "Retry-After: 17\r\nX-Empty:\r\nX-Blank:  \t around \t \r\nX-Long: first\r\n  and second\r\n\r\n0123456789"},
    {"/moved", "HTTP/1.1 302 Found\r\nLocation: /cut\r\nX-Many: of the redirect\r\nContent-Length: 0\r\n\r\n"},
    {"/moved-twice", "HTTP/1.1 301 Moved\r\nLocation: /moved\r\nContent-Length: 0\r\nX-Hop: 1\r\n\r\n"},
    {"/moved-away", "HTTP/1.1 302 Found\r\nLocation: /nothing\r\nX-Many: 1\r\nContent-Length: 0\r\n\r\n"},
    {"/early", "HTTP/1.1 103 Early Hints\r\nX-Many: of the hint\r\nLink: </a>\r\n\r\n"
               "HTTP/1.1 200 OK\r\nX-Many: 1\r\nTransfer-Encoding: chunked\r\nTrailer: X-Many\r\n\r\n"
               "5\r\nhello\r\n0\r\nX-Many: of the trailer\r\nX-End: yes\r\n\r\n"},
    {"/old", "HTTP/1.0 200 OK\r\n\r\nuntil the end"},
    {"/bare", "HTTP/1.1 204 No Content\r\n\r\n"},
    {"/auth", "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\n"
              "WWW-Authenticate: Digest realm=\"x\", nonce=\"n\"\r\nContent-Length: 4\r\n\r\nwho?"},
    {"/unchanged", "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"},
    {"/too-old", "HTTP/1.1 200 OK\r\nLast-Modified: Tue, 15 Nov 1994 12:45:26 GMT\r\nContent-Length: 2\r\n\r\nhi"},
    {"/half", "HTTP/1.1 200 OK\r\nX-Many: 1\r\nX-Ma"},
    {"/nothing", ""},
    {"/later", "HTTP/1.1 404 Not Found\r\nX-Many: later\r\nX-Later: yes\r\nContent-Type: text/later\r\n"
               "Content-Length: 5\r\n\r\nlater"},
    {"unreachable.invalid:1", "HTTP/1.1 407 Who Are You\r\nProxy-Authenticate: Basic realm=\"p\"\r\nX-Proxy: no\r\n"
                              "Content-Length: 0\r\n\r\n"},
};

static int listener, port;

static const char *answer_to(const char *request)
{
    const char *target = strchr(request, ' ');
    size_t length = target ? strcspn(target + 1, " ") : 0;
    for (size_t i = 0; i < COUNT_OF(answers); i++)
        if (strlen(answers[i].path) == length && memcmp(answers[i].path, target + 1, length) == 0)
            return answers[i].answer;
    return "HTTP/1.1 200 OK\r\nX-Proxy: yes\r\nX-Many: of the proxy\r\n\r\n"; /* to a CONNECT */
}

static bool read_request(int connection, char *request, size_t size)
{
    size_t length = 0;
    while (length < size - 1) {
        ssize_t got = read(connection, request + length, size - 1 - length);
        if (got <= 0)
            return false;
        length += (size_t)got;
        request[length] = '\0';
        if (strstr(request, "\r\n\r\n"))
            return true;
    }
    return false;
}

static void serve_connection(int connection)
{
    static char request[8192];
    bool is_tunnel = true;
    while (is_tunnel && read_request(connection, request, sizeof request)) {
        const char *answer = answer_to(request);
        is_tunnel = strncmp(request, "CONNECT ", 8) == 0 && strstr(answer, " 200 ");
        for (size_t left = strlen(answer); left;) {
            ssize_t sent = send(connection, answer, left, MSG_NOSIGNAL);
            if (sent <= 0)
                return;
            answer += sent;
            left -= (size_t)sent;
        }
    }
}

static void *serve(void *unused)
{
    int connection;
    while ((connection = accept(listener, NULL, NULL)) >= 0) {
        serve_connection(connection);
        close(connection);
    }
    return unused;
}

static pthread_t server;

static int start_server(void **state)
{
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 16) ||
        getsockname(listener, (struct sockaddr *)&address, &size))
        return -1;
    port = ntohs(address.sin_port);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    return pthread_create(&server, NULL, serve, NULL);
}

static int stop_server(void **state)
{
    (void)state;
    shutdown(listener, SHUT_RDWR);
    pthread_join(server, NULL);
    close(listener);
    curl_global_cleanup();
    return 0;
}

/* ----------------------------------------------------------------- transfers ---- */

static const struct real real = {
    .curl_easy_getinfo = curl_easy_getinfo,
    .curl_easy_header = curl_easy_header,
    .curl_easy_nextheader = curl_easy_nextheader,
};

static size_t swallow(char *data, size_t size, size_t count, void *unused)
{
    (void)data;
    (void)unused;
    return size * count;
}

static void perform(CURL *easy, const char *path)
{
    char url[128];
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", port, path);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_perform(easy);
}

static CURL *new_handle(void)
{
    CURL *easy = curl_easy_init();
    assert_non_null(easy);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, swallow);
    curl_easy_setopt(easy, CURLOPT_FILETIME, 1L);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, "private");
    return easy;
}

static void make_plain(CURL *easy, const char *path)
{
    perform(easy, path);
}

static void make_following(CURL *easy, const char *path)
{
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_AUTOREFERER, 1L);
    perform(easy, path);
}

static void make_authenticated(CURL *easy, const char *path)
{
    curl_easy_setopt(easy, CURLOPT_USERPWD, "somebody:something");
    curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_ANY);
    perform(easy, path);
}

static void make_conditional(CURL *easy, const char *path)
{
    curl_easy_setopt(easy, CURLOPT_TIMECONDITION, (long)CURL_TIMECOND_IFMODSINCE);
    curl_easy_setopt(easy, CURLOPT_TIMEVALUE, 1500000000L);
    perform(easy, path);
}

static void make_custom(CURL *easy, const char *path)
{
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "REPORT");
    curl_easy_setopt(easy, CURLOPT_REFERER, "http://referer.invalid/");
    perform(easy, path);
}

static void make_tunnelled(CURL *easy, const char *target)
{
    char proxy[64];
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", port);
    curl_easy_setopt(easy, CURLOPT_PROXY, proxy);
    curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
    curl_easy_setopt(easy, CURLOPT_URL, target);
    curl_easy_perform(easy);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
}

static void make_local(CURL *easy, const char *path)
{
    curl_easy_setopt(easy, CURLOPT_URL, path);
    curl_easy_perform(easy);
}

static void make_none(CURL *easy, const char *path)
{
    (void)easy;
    (void)path;
}

static const struct {
    const char *name;
    void (*make)(CURL *easy, const char *path);
    const char *path;
} transfers[] = {
    {"cut body", make_plain, "/cut"},
    {"cut body after a redirect", make_following, "/moved"},
    {"after two redirects", make_following, "/moved-twice"},
    {"a redirect to nowhere", make_following, "/moved-away"},
    {"a redirect not followed", make_plain, "/moved"},
    {"hints and trailers", make_plain, "/early"},
    {"HTTP/1.0", make_plain, "/old"},
    {"no header at all", make_plain, "/bare"},
    {"authentication wanted", make_plain, "/auth"},
    {"authentication tried", make_authenticated, "/auth"},
    {"304", make_conditional, "/unchanged"},
    {"condition not met", make_conditional, "/too-old"},
    {"method and referer", make_custom, "/cut"},
    {"half a header block", make_plain, "/half"},
    {"no response", make_plain, "/nothing"},
    {"through a tunnel", make_tunnelled, "http://somewhere.invalid:1/early"},
    {"tunnel refused", make_tunnelled, "http://unreachable.invalid:1/cut"},
    {"a file", make_local, "file:///dev/null"},
    {"never performed", make_none, ""},
};

/* ----------------------------------------------------------------- questions ---- */

/* Who is asked: the copy, or libcurl (NULL). */
struct asked {
    CURL *easy;
    struct first_response *first;
    curl_off_t body_bytes;
};

/* What the copy answers; all else is libcurl's to answer. */
static const CURLINFO answered[] = {
    CURLINFO_RESPONSE_CODE,
    CURLINFO_HTTP_CONNECTCODE,
    CURLINFO_HTTP_VERSION,
    CURLINFO_PROTOCOL,
    CURLINFO_SCHEME,
    CURLINFO_EFFECTIVE_URL,
    CURLINFO_EFFECTIVE_METHOD,
    CURLINFO_REFERER,
    CURLINFO_REDIRECT_COUNT,
    CURLINFO_REDIRECT_URL,
    CURLINFO_HEADER_SIZE,
    CURLINFO_CONTENT_TYPE,
    CURLINFO_CONTENT_LENGTH_DOWNLOAD,
    CURLINFO_CONTENT_LENGTH_DOWNLOAD_T,
    CURLINFO_FILETIME,
    CURLINFO_FILETIME_T,
    CURLINFO_CONDITION_UNMET,
    CURLINFO_RETRY_AFTER,
    CURLINFO_HTTPAUTH_AVAIL,
    CURLINFO_PROXYAUTH_AVAIL,
    CURLINFO_SIZE_DOWNLOAD,
    CURLINFO_SIZE_DOWNLOAD_T,
};

static void ask_info(const struct asked *asked, CURLINFO info, FILE *out)
{
    union {
        const char *text;
        long number;
        double real;
        curl_off_t offset;
    } value = {0};
    CURLcode code = CURLE_OK;
    if (!asked->first)
        code = curl_easy_getinfo(asked->easy, info, &value);
    else if (!first_response_getinfo(asked->first, asked->body_bytes, info, &value, &code))
        code = CURLE_AGAIN;
    fprintf(out, "getinfo %x: %d ", (unsigned)info, code);
    if ((info & CURLINFO_TYPEMASK) == CURLINFO_STRING)
        fprintf(out, "%s\n", value.text ? value.text : "NULL");
    else if ((info & CURLINFO_TYPEMASK) == CURLINFO_DOUBLE)
        fprintf(out, "%f\n", value.real);
    else
        fprintf(out, "%lld\n", (long long)value.offset);
}

static CURLHcode header_of(const struct asked *asked, const char *name, size_t index, unsigned origin, int request,
                           struct curl_header **header)
{
    return asked->first ? first_response_header(asked->first, name, index, origin, request, header)
                        : curl_easy_header(asked->easy, name, index, origin, request, header);
}

static struct curl_header *next_of(const struct asked *asked, unsigned origin, int request,
                                   struct curl_header *previous)
{
    return asked->first ? first_response_nextheader(asked->first, origin, request, previous)
                        : curl_easy_nextheader(asked->easy, origin, request, previous);
}

static void print_header(const struct curl_header *header, FILE *out)
{
    fprintf(out, " [%s] [%s] %zu of %zu, origin %x, anchor %p\n", header->name, header->value, header->index,
            header->amount, header->origin, header->anchor);
}

static const char *const names[] = {
    "X-Many",  "x-MANY", "X-Other", "x-empty",          "X-Blank",      "X-Long",       "ETag",
    "X-Proxy", "X-Hop",  "Link",    "WWW-Authenticate", "content-type", "X-Later",      "X-End",
    "X-Man",   "",       ":",       "X-Many:",          "Location",     "X-None-Of-It", "X-Many ",
};

static const unsigned origins[] = {
    0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 27, 30, 31, 32, 1u << 27, 1u << 27 | 1, ~0u};

static void ask_headers(const struct asked *asked, unsigned origin, int request, FILE *out)
{
    for (size_t n = 0; n < COUNT_OF(names); n++)
        for (size_t index = 0; index < 5; index++) {
            struct curl_header *header = NULL;
            CURLHcode code = header_of(asked, names[n], index, origin, request, &header);
            fprintf(out, "header %s %zu, origin %x, request %d: %d", names[n], index, origin, request, code);
            if (code == CURLHE_OK)
                print_header(header, out);
            else
                fprintf(out, "\n");
        }
    struct curl_header *header = NULL;
    for (int n = 0; n < 100 && (header = next_of(asked, origin, request, header)); n++) {
        fprintf(out, "next, origin %x, request %d:", origin, request);
        print_header(header, out);
    }
}

/* From a header of one request, or of one origin, to those of another. */
static void ask_across(const struct asked *asked, FILE *out)
{
    for (int from = 0; from < 3; from++)
        for (int to = -1; to < 3; to++) {
            struct curl_header *header = next_of(asked, CURLH_HEADER, from, NULL);
            header = header ? next_of(asked, 31, to, header) : NULL;
            fprintf(out, "from %d to %d:%s", from, to, header ? "" : " none\n");
            if (header)
                print_header(header, out);
        }
    struct curl_header *found = NULL;
    if (header_of(asked, "X-Many", 0, 31, -1, &found) != CURLHE_OK)
        return;
    fprintf(out, "after X-Many:");
    struct curl_header *next = next_of(asked, 31, -1, found);
    if (next)
        print_header(next, out);
    fprintf(out, " %s\n", next == found ? "at the same place" : "");
}

static void ask_wrongly(const struct asked *asked, FILE *out)
{
    struct curl_header *header = NULL;
    struct curl_header nowhere = {.anchor = NULL};
    fprintf(out, "no name: %d\n", header_of(asked, NULL, 0, 1, -1, &header));
    fprintf(out, "no place: %d\n", header_of(asked, "ETag", 0, 1, -1, NULL));
    fprintf(out, "a huge index: %d\n", header_of(asked, "ETag", (size_t)-1, 1, -1, &header));
    fprintf(out, "a huge request: %d\n", header_of(asked, "ETag", 0, 1, 1 << 30, &header));
    fprintf(out, "from nowhere: %d\n", next_of(asked, 31, -1, &nowhere) != NULL);
}

/* All that is known, as text; to be freed. */
static char *ask_everything(const struct asked *asked)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    for (size_t i = 0; i < COUNT_OF(answered); i++)
        ask_info(asked, answered[i], out);
    for (size_t i = 0; i < COUNT_OF(origins); i++)
        for (int request = -3; request < 5; request++)
            ask_headers(asked, origins[i], request, out);
    ask_across(asked, out);
    ask_wrongly(asked, out);
    fclose(out);
    return text;
}

static void assert_same(const char *expected, const char *text, const char *name, const char *when)
{
    while (*expected && *expected == *text) {
        size_t length = strcspn(expected, "\n") + 1;
        if (strncmp(expected, text, length) != 0)
            break;
        expected += length;
        text += length;
    }
    if (*expected || *text)
        fail_msg("%s, %s:\n%.*s\ninstead of\n%.*s", name, when, (int)strcspn(text, "\n"), text,
                 (int)strcspn(expected, "\n"), expected);
}

/* --------------------------------------------------------------------- tests ---- */

static curl_off_t bytes_so_far(CURL *easy)
{
    curl_off_t bytes = 0;
    curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &bytes);
    return bytes;
}

static void test_answers_as_libcurl_did(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(transfers); i++) {
        CURL *easy = new_handle();
        struct transfer transfer = {.entry.handle = easy, .real = &real};
        transfers[i].make(easy, transfers[i].path);
        struct asked libcurl = {.easy = easy};
        char *expected = ask_everything(&libcurl);
        struct asked copy = {easy, first_response_take(&transfer), bytes_so_far(easy)};
        assert_non_null(copy.first);
        char *at_once = ask_everything(&copy);
        assert_same(expected, at_once, transfers[i].name, "at once");
        perform(easy, "/later");
        char *later = ask_everything(&copy);
        assert_same(expected, later, transfers[i].name, "after another transfer");
        free(expected);
        free(at_once);
        free(later);
        first_response_free(copy.first);
        curl_easy_cleanup(easy);
    }
}

/* The comparison above means something only if there is something to tell. */
static void test_tells_of_the_first(void **state)
{
    (void)state;
    CURL *easy = new_handle();
    struct transfer transfer = {.entry.handle = easy, .real = &real};
    make_following(easy, "/moved");
    struct first_response *first = first_response_take(&transfer);
    perform(easy, "/later");
    CURLcode code = CURLE_AGAIN;
    long status = 0;
    const char *type = NULL;
    struct curl_header *header = NULL;
    assert_true(first_response_getinfo(first, 10, CURLINFO_RESPONSE_CODE, &status, &code));
    assert_int_equal(code, CURLE_OK);
    assert_int_equal(status, 200);
    assert_true(first_response_getinfo(first, 10, CURLINFO_CONTENT_TYPE, (void *)&type, &code));
    assert_string_equal(type, "text/x-first; charset=utf-8");
    assert_int_equal(first_response_header(first, "x-many", 2, CURLH_HEADER, -1, &header), CURLHE_OK);
    assert_string_equal(header->value, "3");
    assert_int_equal(first_response_header(first, "x-many", 0, CURLH_HEADER, 0, &header), CURLHE_OK);
    assert_string_equal(header->value, "of the redirect");
    assert_int_equal(first_response_header(first, "x-later", 0, CURLH_HEADER, -1, &header), CURLHE_MISSING);
    first_response_free(first);
    curl_easy_cleanup(easy);
}

static bool is_answered(CURLINFO info)
{
    for (size_t i = 0; i < COUNT_OF(answered); i++)
        if (answered[i] == info)
            return true;
    return false;
}

/* Nothing else is taken away from libcurl, whatever the number; and what this libcurl does not know, it
 * says itself. */
static void test_all_else_is_libcurls(void **state)
{
    (void)state;
    CURL *easy = new_handle();
    struct transfer transfer = {.entry.handle = easy, .real = &real};
    perform(easy, "/cut");
    struct first_response *first = first_response_take(&transfer);
    for (int type = 0; type <= CURLINFO_TYPEMASK; type += CURLINFO_STRING)
        for (int number = 0; number < 100; number++) {
            curl_off_t value = -7;
            CURLcode code = CURLE_AGAIN;
            CURLINFO info = (CURLINFO)(type + number);
            bool is_ours = first_response_getinfo(first, 10, info, &value, &code);
            if (is_ours != is_answered(info) && type + number < CURLINFO_OFF_T + 71 &&
                type + number != CURLINFO_LONG + 69 && type + number != CURLINFO_LONG + 70)
                fail_msg("info %x is%s answered", (unsigned)info, is_ours ? "" : " not");
            if (!is_ours)
                assert_true(value == -7 && code == CURLE_AGAIN);
        }
    CURLcode code = CURLE_AGAIN;
    assert_false(first_response_getinfo(first, 10, CURLINFO_RESPONSE_CODE, NULL, &code));
    first_response_free(first);
    curl_easy_cleanup(easy);
}

static void test_counts_the_whole_body(void **state)
{
    (void)state;
    CURL *easy = new_handle();
    struct transfer transfer = {.entry.handle = easy, .real = &real};
    perform(easy, "/cut");
    struct first_response *first = first_response_take(&transfer);
    CURLcode code;
    curl_off_t bytes = 0;
    double real_bytes = 0;
    assert_true(first_response_getinfo(first, INT64_C(5000000000), CURLINFO_SIZE_DOWNLOAD_T, &bytes, &code));
    assert_true(bytes == INT64_C(5000000000));
    assert_true(first_response_getinfo(first, INT64_C(5000000000), CURLINFO_SIZE_DOWNLOAD, &real_bytes, &code));
    assert_true(real_bytes == 5e9);
    assert_true(first_response_getinfo(first, 100, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &bytes, &code));
    assert_true(bytes == 100);
    first_response_free(first);
    curl_easy_cleanup(easy);
}

static CURLHcode not_built_in(CURL *easy, const char *name, size_t index, unsigned origin, int request,
                              struct curl_header **header)
{
    (void)easy, (void)name, (void)index, (void)origin, (void)request, (void)header;
    return CURLHE_NOT_BUILT_IN;
}

static CURLcode old_getinfo(CURL *easy, CURLINFO info, ...)
{
    va_list arguments;
    va_start(arguments, info);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return info == CURLINFO_RETRY_AFTER || info == CURLINFO_EFFECTIVE_METHOD ? CURLE_UNKNOWN_OPTION
                                                                             : curl_easy_getinfo(easy, info, argument);
}

static void test_old_libcurl(void **state)
{
    (void)state;
    static const struct real olds[] = {
        {.curl_easy_getinfo = old_getinfo},
        {.curl_easy_getinfo = old_getinfo,
         .curl_easy_header = not_built_in,
         .curl_easy_nextheader = curl_easy_nextheader},
    };
    for (size_t i = 0; i < COUNT_OF(olds); i++) {
        CURL *easy = new_handle();
        struct transfer transfer = {.entry.handle = easy, .real = &olds[i]};
        perform(easy, "/cut");
        struct first_response *first = first_response_take(&transfer);
        struct curl_header *header = NULL;
        curl_off_t value = -7;
        CURLcode code = CURLE_AGAIN;
        assert_int_equal(first_response_header(first, "ETag", 0, CURLH_HEADER, -1, &header), CURLHE_NOT_BUILT_IN);
        assert_null(first_response_nextheader(first, CURLH_HEADER, -1, NULL));
        assert_false(first_response_getinfo(first, 10, CURLINFO_RETRY_AFTER, &value, &code));
        assert_false(first_response_getinfo(first, 10, CURLINFO_EFFECTIVE_METHOD, &value, &code));
        assert_true(first_response_getinfo(first, 10, CURLINFO_RESPONSE_CODE, &value, &code));
        first_response_free(first);
        curl_easy_cleanup(easy);
    }
    first_response_free(NULL);
}

static int header_count;

static CURLHcode one_request(CURL *easy, const char *name, size_t index, unsigned origin, int request,
                             struct curl_header **header)
{
    (void)easy, (void)name, (void)index, (void)origin, (void)header;
    return request > 0 ? CURLHE_NOREQUEST : CURLHE_MISSING;
}

static struct curl_header *many_headers(CURL *easy, unsigned origin, int request, struct curl_header *previous)
{
    static struct curl_header header;
    static char name[] = "X-Many", value[] = "1";
    (void)easy, (void)origin, (void)request;
    header = (struct curl_header){.name = name, .value = value, .index = previous ? previous->index + 1 : 0};
    header.origin = CURLH_HEADER;
    return header.index < (size_t)header_count ? &header : NULL;
}

/* A list that was made to cost time: there is no copy of it. */
static void test_too_many_headers(void **state)
{
    (void)state;
    static const struct real endless = {
        .curl_easy_getinfo = curl_easy_getinfo,
        .curl_easy_header = one_request,
        .curl_easy_nextheader = many_headers,
    };
    CURL *easy = new_handle();
    struct transfer transfer = {.entry.handle = easy, .real = &endless};
    header_count = 1024;
    struct first_response *first = first_response_take(&transfer);
    struct curl_header *header = NULL;
    assert_int_equal(first_response_header(first, "X-Many", 1023, CURLH_HEADER, 0, &header), CURLHE_OK);
    assert_int_equal(header->amount, 1024);
    first_response_free(first);
    header_count = 1025;
    assert_null(first_response_take(&transfer));
    curl_easy_cleanup(easy);
}

/* ------------------------------------------------------------------- memory ---- */

/* The linker puts these in the way of what is compiled into this program. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *memory);

static int allocations_left = -1; /* negative: no end */
static int alive;

static bool may_allocate(bool is_new)
{
    if (allocations_left == 0)
        return false;
    allocations_left -= allocations_left > 0;
    alive += is_new;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return may_allocate(true) ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return may_allocate(true) ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *memory, size_t size)
{
    return may_allocate(!memory) ? __real_realloc(memory, size) : NULL;
}

char *__wrap_strdup(const char *text)
{
    return may_allocate(true) ? __real_strdup(text) : NULL;
}

void __wrap_free(void *memory)
{
    alive -= memory != NULL;
    __real_free(memory);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    CURL *easy = new_handle();
    struct transfer transfer = {.entry.handle = easy, .real = &real};
    make_following(easy, "/moved");
    int needed = 0;
    struct first_response *first = NULL;
    while (!first) {
        alive = 0;
        allocations_left = needed++;
        first = first_response_take(&transfer);
        allocations_left = -1;
        if (!first)
            assert_int_equal(alive, 0);
    }
    assert_true(needed > 20);
    first_response_free(first);
    assert_int_equal(alive, 0);
    curl_easy_cleanup(easy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_as_libcurl_did),
        cmocka_unit_test(test_tells_of_the_first),
        cmocka_unit_test(test_all_else_is_libcurls),
        cmocka_unit_test(test_counts_the_whole_body),
        cmocka_unit_test(test_old_libcurl),
        cmocka_unit_test(test_too_many_headers),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
