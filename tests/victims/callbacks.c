/* SPDX-License-Identifier: MIT */
/*
 * A program whose callbacks do as they are told: pause, refuse, change options, reset, jump out.
 *
 *     callbacks WORD...
 *
 * obeys the words (the table at the end) in order.  EVENT:N=WORD has WORD obeyed at the N-th call of
 * a callback from then on, EVENT=WORD at each one:
 *
 *     callbacks url=http://127.0.0.1/ header:2=pause progress=continue perform
 *
 * Events are header, body, read, progress; answered: a progress callback once a status line has come; and
 * wait: one while no transfer is under way.
 * Each transfer prints its result, the status, libcurl's message, and what the callbacks were given.
 */
#include "drive.h"
#include "rules.h"

#include <curl/curl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum event { HEADER, BODY, READ, PROGRESS, ANSWERED, WAIT, EVENTS };
static const char *const event_names[EVENTS] = {"header", "body", "read", "progress", "answered", "wait"};

static int refused;
static CURL *easy;
static jmp_buf out;
static int depth; /* of performs within performs */
static char message[CURL_ERROR_SIZE];
static struct received {
    char bytes[4 << 20];
    size_t length;
} headers, body;
static int late; /* calls after a callback has refused */

/* ------------------------------------------------------------------- callbacks ---- */

static enum verdict comes_of(enum event event)
{
    enum verdict what = happens(event);
    refused += what == REFUSE;
    return what;
}

static size_t receive(enum event event, struct received *received, const char *data, size_t length)
{
    late += refused > 0;
    switch (comes_of(event)) {
    case PAUSE:
        return CURL_WRITEFUNC_PAUSE;
    case REFUSE:
        return 0;
    default:
        break;
    }
    if (received->length + length > sizeof received->bytes)
        return 0;
    memcpy(received->bytes + received->length, data, length);
    received->length += length;
    return length;
}

static size_t on_header(char *data, size_t size, size_t count, void *unused)
{
    (void)unused;
    return receive(HEADER, &headers, data, size * count);
}

static size_t on_body(char *data, size_t size, size_t count, void *unused)
{
    (void)unused;
    return receive(BODY, &body, data, size * count);
}

/* Twice the text that it is given. */
static size_t on_read(char *buffer, size_t size, size_t count, void *text)
{
    static int calls;
    (void)size;
    (void)count;
    if (calls++ == 2)
        return calls = 0;
    memcpy(buffer, text, strlen(text));
    comes_of(READ);
    return strlen(text);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* While a transfer is under way, each call finds that it has taken longer. */
static int nothing_is_under_way(void)
{
    static curl_off_t taken_before;
    static double called_before;
    curl_off_t taken = -1;
    curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &taken);
    int still = taken == taken_before && called_before > 0 && seconds() - called_before > 0.05;
    taken_before = taken;
    called_before = seconds();
    return still;
}

/* Sees what comes even if nothing else is told of it. */
static int has_answer;

static int on_debug(CURL *handle, curl_infotype type, char *data, size_t length, void *unused)
{
    (void)handle;
    (void)unused;
    has_answer |= type == CURLINFO_HEADER_IN && length > 5 && memcmp(data, "HTTP/", 5) == 0;
    return 0;
}

static long status(void)
{
    long code = -1;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    return code;
}

static int on_progress(void *unused, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)unused, (void)a, (void)b, (void)c, (void)d;
    int end = comes_of(PROGRESS) == REFUSE;
    end |= has_answer && comes_of(ANSWERED) == REFUSE;
    end |= nothing_is_under_way() && comes_of(WAIT) == REFUSE;
    return end;
}

/* ----------------------------------------------------------------------- words ---- */

static void show(const char *what, const struct received *received)
{
    unsigned long sum = 0;
    printf("%s %zu \"", what, received->length);
    for (size_t i = 0; i < received->length; i++) {
        sum = sum * 31 + (unsigned char)received->bytes[i];
        if (received->length > 1000)
            continue;
        if (received->bytes[i] == '\r' || received->bytes[i] == '\n')
            printf(received->bytes[i] == '\r' ? "\\r" : "\\n");
        else
            putchar(received->bytes[i]);
    }
    printf(received->length > 1000 ? "sum %lx\"\n" : "\"\n", sum);
}

static void report(const char *what, int result)
{
    printf("%s %d status %ld \"%s\"\n", what, result, status(), message);
    show("headers", &headers);
    show("body", &body);
    if (late)
        printf("late %d\n", late);
    headers.length = body.length = 0;
    late = refused = 0;
    message[0] = '\0';
}

static void perform(void)
{
    if (depth) {
        printf("nested %d\n", (int)curl_easy_perform(easy));
        return;
    }
    if (setjmp(out)) {
        puts("jumped");
    } else {
        depth++;
        has_answer = 0;
        report("perform", curl_easy_perform(easy));
    }
    depth = 0;
}

static void report_multi(int result)
{
    report("multi", result);
}

static void print_what_is_told(void)
{
    curl_off_t size = -1;
    char *url = NULL;
    struct curl_header *marker = NULL, *first = curl_easy_nextheader(easy, CURLH_HEADER, -1, NULL);
    CURLHcode found = curl_easy_header(easy, "X-Marker", 0, CURLH_HEADER, -1, &marker);
    curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &size);
    curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url);
    printf("told status %ld size %ld marker %s first header %s url %s\n", status(), (long)size,
           found ? "none" : marker->value, first ? first->name : "none", url ? strrchr(url, '/') : "none");
}

static void set_url_handle(const char *text)
{
    CURLU *url = curl_url(); /* for the whole life of the program */
    curl_url_set(url, CURLUPART_URL, text, 0);
    curl_easy_setopt(easy, CURLOPT_CURLU, url);
}

static void upload(const char *text)
{
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE, 2 * (long)strlen(text));
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(easy, CURLOPT_READDATA, text);
}

static void add(char *event_name, char *word)
{
    int event = add_rule(event_name, word, EVENTS);
    if (event < 0)
        exit(2);
    if (event >= PROGRESS) {
        curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_debug);
        curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
        curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    }
}

/* clang-format off */
static void obey(char *word)
{
    char name[32];
    char *value = strchr(word, '=');
    snprintf(name, sizeof name, "%.*s", value ? (int)(value - word) : (int)strlen(word), word);
    value = value ? value + 1 : NULL;
#define IS(text) !strcmp(name, text)
#define SET(option, argument) curl_easy_setopt(easy, CURLOPT_##option, argument)
    /* settings */
    if (IS("url"))              SET(URL, value);
    else if (IS("curlu"))       set_url_handle(value);
    else if (IS("include"))     SET(HEADER, 1L);
    else if (IS("fail"))        SET(FAILONERROR, 1L);
    else if (IS("follow"))      SET(FOLLOWLOCATION, 1L);
    else if (IS("timeout"))     SET(TIMEOUT_MS, atol(value));
    else if (IS("get"))         SET(HTTPGET, 1L);
    else if (IS("post"))        SET(COPYPOSTFIELDS, value);
    else if (IS("put"))         upload(value);
    else if (IS("no-reader"))   SET(READFUNCTION, NULL);
    else if (IS("read-from"))   SET(READDATA, value);
    else if (IS("writer"))      SET(WRITEFUNCTION, on_body);
    else if (IS("reset"))       curl_easy_reset(easy);
    /* what to do */
    else if (IS("perform"))     perform();
    else if (IS("multi"))       drive_in_multi(easy, report_multi);
    else if (IS("told"))        print_what_is_told();
    /* what callbacks can do besides */
    else if (IS("pause"))       verdict = PAUSE;
    else if (IS("refuse"))      verdict = REFUSE;
    else if (IS("continue"))    curl_easy_pause(easy, CURLPAUSE_CONT);
    else if (IS("stop"))        printf("stop %d\n", (int)curl_easy_pause(easy, CURLPAUSE_ALL));
    else if (IS("jump"))        longjmp(out, 1);
    else                        add(name, value);
}
/* clang-format on */

int main(int argc, char **argv)
{
    easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, message);
    for (int i = 1; i < argc; i++)
        obey(argv[i]);
    curl_easy_cleanup(easy);
    return 0;
}
