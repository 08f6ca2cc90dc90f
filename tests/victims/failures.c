/* SPDX-License-Identifier: MIT */
/*
 * A program that makes requests which fail, and tells all that libcurl tells it.
 *
 *     failures < SCRIPT
 *
 * Each line of the script is one request, in words NAME=VALUE:
 *
 *     method=POST url=https://127.0.0.1:1/ body=1000 header=If-Match:"v1" verify=0
 *
 * The table at the end names the words.  A request has a handle of its own; keep=1: the handle of the line
 * before, with its connections and the same options anew.  dead=PORT: the first socket (deads=N: the first N
 * of them) is led to that port of 127.0.0.1, wherever the request goes.
 *
 * Things that programs do while a transfer is under way, at its first refusal: copy=URL makes a copy of the
 * handle, which makes a request of its own afterwards; swap=HEADER sets another list of headers; and so does
 * early=HEADER, at the first header line of all.
 *
 * A line of JSON per request tells what came of it.  sockets: how many were opened; unresolved: how often a
 * name was asked for in vain; listed: the program's own list of headers after it.
 */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct request {
    char method[16], url[512], proxy[256], ca[512], copy[512], swap[256], early[256];
    long long body, verify, http, low_speed, timeout_ms, connect_timeout_ms, expect_ms, dead, deads, keep, tunnel;
} request;

static CURL *easy, *copy;
static struct curl_slist *list, *other;
static char message[CURL_ERROR_SIZE];
static char *content;
static long sockets, unresolved, was_refused;

static struct received {
    char bytes[4096];
    size_t length; /* also of what is too much to be kept */
} headers, body;

/* ------------------------------------------------------------------- callbacks ---- */

static size_t receive(char *data, size_t size, size_t count, void *userdata)
{
    struct received *received = userdata;
    size_t length = size * count, room = sizeof received->bytes - 1;
    if (received->length + length <= room)
        memcpy(received->bytes + received->length, data, length);
    received->length += length;
    return length;
}

static void set_other(char *header)
{
    if (!*header)
        return;
    other = curl_slist_append(NULL, header);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, other);
    *header = '\0';
}

/* Sees every attempt. */
static int on_debug(CURL *handle, curl_infotype type, char *data, size_t size, void *unused)
{
    static const char unknown[] = "Could not resolve";
    (void)handle, (void)unused;
    unresolved += type == CURLINFO_TEXT && size >= sizeof unknown && memcmp(data, unknown, sizeof unknown - 1) == 0;
    if (type != CURLINFO_HEADER_IN || size < 10 || memcmp(data, "HTTP/", 5) != 0)
        return 0;
    set_other(request.early);
    was_refused |= data[9] == '4' || data[9] == '5';
    return 0;
}

static int on_progress(void *unused, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)unused, (void)a, (void)b, (void)c, (void)d;
    if (!was_refused)
        return 0;
    set_other(request.swap);
    if (request.copy[0] && !copy)
        copy = curl_easy_duphandle(easy);
    return 0;
}

static curl_socket_t on_socket(void *unused, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)unused, (void)purpose;
    struct sockaddr_in *to = (struct sockaddr_in *)&address->addr;
    if (sockets++ < request.deads && request.dead && address->family == AF_INET) {
        to->sin_port = htons((in_port_t)request.dead);
        to->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* --------------------------------------------------------------------- options ---- */

static void set_callbacks(void)
{
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, receive);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &headers);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, message);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_debug);
}

static void set_body(void)
{
    content = malloc((size_t)request.body + 1);
    for (long long i = 0; i < request.body; i++)
        content[i] = (char)('a' + i % 23);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request.body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, content);
}

static void set_limits(void)
{
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, request.timeout_ms ? (long)request.timeout_ms : 60000L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)request.connect_timeout_ms);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, request.low_speed ? 1000000L : 0L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)request.low_speed);
    if (request.expect_ms)
        curl_easy_setopt(easy, CURLOPT_EXPECT_100_TIMEOUT_MS, (long)request.expect_ms);
}

static void set_request(void)
{
    curl_easy_setopt(easy, CURLOPT_URL, request.url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(easy, CURLOPT_PROXY, request.proxy);
    curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, (long)request.tunnel);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, (long)request.verify);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, request.verify ? 2L : 0L);
    if (request.ca[0])
        curl_easy_setopt(easy, CURLOPT_CAINFO, request.ca);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)request.http);
    if (strcmp(request.method, "GET") != 0) {
        set_body();
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method);
    }
}

/* ------------------------------------------------------------------- a request ---- */

static void print_string(const char *text, size_t length)
{
    putchar('"');
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < ' ' || byte > '~' || byte == '"' || byte == '\\')
            printf("\\u%04x", byte);
        else
            putchar(byte);
    }
    putchar('"');
}

static void print_text(const char *name, const char *text, size_t length)
{
    printf(", \"%s\": ", name);
    print_string(text, length);
}

static void print_received(const char *name, const struct received *received)
{
    size_t room = sizeof received->bytes - 1;
    print_text(name, received->bytes, received->length < room ? received->length : room);
}

static void perform(const char *what)
{
    long status = 0, os_error = 0, connections = 0, sent = 0;
    headers.length = body.length = 0;
    message[0] = '\0';
    sockets = unresolved = was_refused = 0;
    int code = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_error);
    curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connections);
    curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &sent);
    printf("\"%s\": {\"code\": %d, \"status\": %ld, \"os_error\": %ld, \"connections\": %ld, \"sent\": %ld", what, code,
           status, os_error, connections, sent);
    printf(", \"sockets\": %ld, \"unresolved\": %ld, \"received\": %zu", sockets, unresolved, body.length);
    print_text("message", message, strlen(message));
    print_received("headers", &headers);
    print_received("body", &body);
    putchar('}');
}

static void perform_copy(void)
{
    curl_easy_cleanup(easy);
    easy = copy;
    copy = NULL;
    curl_easy_setopt(easy, CURLOPT_URL, request.copy);
    printf(", ");
    perform("copy");
}

static void print_list(void)
{
    printf(", \"listed\": [");
    for (struct curl_slist *item = list; item; item = item->next) {
        print_string(item->data, strlen(item->data));
        printf(item->next ? ", " : "");
    }
    putchar(']');
}

/* Numbers and texts; each text has the room of its array. */
static const struct word {
    const char *name;
    char *text;
    size_t room;
    long long *number;
} words[] = {
    {"method", request.method, sizeof request.method, NULL},
    {"url", request.url, sizeof request.url, NULL},
    {"proxy", request.proxy, sizeof request.proxy, NULL},
    {"ca", request.ca, sizeof request.ca, NULL},
    {"copy", request.copy, sizeof request.copy, NULL},
    {"swap", request.swap, sizeof request.swap, NULL},
    {"early", request.early, sizeof request.early, NULL},
    {"body", NULL, 0, &request.body},
    {"verify", NULL, 0, &request.verify},
    {"http", NULL, 0, &request.http}, /* one of CURL_HTTP_VERSION_* */
    {"low_speed", NULL, 0, &request.low_speed},
    {"timeout_ms", NULL, 0, &request.timeout_ms},
    {"connect_timeout_ms", NULL, 0, &request.connect_timeout_ms},
    {"expect_ms", NULL, 0, &request.expect_ms},
    {"dead", NULL, 0, &request.dead},
    {"deads", NULL, 0, &request.deads},
    {"keep", NULL, 0, &request.keep},
    {"tunnel", NULL, 0, &request.tunnel},
};

static void take(char *word)
{
    char *value = strchr(word, '=');
    if (!value)
        exit(2);
    *value++ = '\0';
    if (strcmp(word, "header") == 0) {
        list = curl_slist_append(list, value);
        return;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].name, word) != 0)
            continue;
        if (words[i].number)
            *words[i].number = atoll(value);
        else
            snprintf(words[i].text, words[i].room, "%s", value);
        return;
    }
    exit(2);
}

static void prepare_handle(void)
{
    if (easy && request.keep) {
        curl_easy_reset(easy);
        return;
    }
    curl_easy_cleanup(easy);
    easy = curl_easy_init();
}

static void run(char *line)
{
    memset(&request, 0, sizeof request);
    request.deads = 1;
    for (char *rest, *word = strtok_r(line, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest))
        take(word);
    prepare_handle();
    set_callbacks();
    set_limits();
    set_request();
    putchar('{');
    perform("first");
    print_list();
    if (copy)
        perform_copy();
    printf("}\n");
    fflush(stdout);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(list);
    curl_slist_free_all(other);
    list = other = NULL;
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    signal(SIGPIPE, SIG_IGN);
    while (getline(&line, &size, stdin) > 0) {
        run(line);
        free(content);
        content = NULL;
    }
    free(line);
    curl_easy_cleanup(easy);
    return 0;
}
