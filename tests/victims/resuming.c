/* SPDX-License-Identifier: MIT */
/*
 * Downloads, and tells all that a program can find out about each: a line of JSON for a transfer.
 *
 *     resuming WORDS URL...
 *
 * WORDS are those of the table below, with blanks between them ("-": none).  All transfers are made on one
 * handle.  NAME=N words happen once, when N bytes of a body have come.
 */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CURL *easy, *copy;
static struct curl_slist *lines;
static bool fresh, paused;
static curl_off_t stop_at = -1, pause_at = -1, abort_at = -1, copy_at = -1;

/* What the callbacks of one transfer were given. */
static struct {
    uint64_t hash; /* FNV-1a, of the body */
    curl_off_t length;
    char headers[1 << 16];
    size_t headers_length;
    int headers_late; /* header lines after a byte of the body */
    int bodies_late;  /* calls after the writer has refused */
    bool refused;
    char statuses[64]; /* that getinfo told within the writer, each once */
    curl_off_t now, total;
    bool goes_back; /* progress did */
    int totals;     /* how many different ones above 0 */
    int pauses;
} seen;

static bool reached(curl_off_t *at)
{
    bool is_time = *at >= 0 && seen.length >= *at;
    if (is_time)
        *at = -1;
    return is_time;
}

static void note_status(void)
{
    long status = -1;
    char text[24];
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    snprintf(text, sizeof text, "%ld ", status);
    if (!strstr(seen.statuses, text) && strlen(seen.statuses) + strlen(text) < sizeof seen.statuses)
        strcat(seen.statuses, text);
}

static size_t on_body(char *data, size_t size, size_t count, void *unused)
{
    (void)unused;
    seen.bodies_late += seen.refused;
    if (reached(&pause_at)) {
        seen.pauses++;
        paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    if (reached(&stop_at)) {
        seen.refused = true;
        return 0;
    }
    if (reached(&copy_at))
        copy = curl_easy_duphandle(easy);
    note_status();
    for (size_t i = 0; i < size * count; i++)
        seen.hash = (seen.hash ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
    seen.length += size * count;
    return size * count;
}

static size_t on_header(char *data, size_t size, size_t count, void *unused)
{
    (void)unused;
    size_t length = size * count;
    seen.headers_late += seen.length > 0;
    if (seen.headers_length + length < sizeof seen.headers) {
        memcpy(seen.headers + seen.headers_length, data, length);
        seen.headers_length += length;
    }
    return length;
}

static int on_progress(void *unused, curl_off_t total, curl_off_t now, curl_off_t upload_total, curl_off_t upload_now)
{
    (void)unused, (void)upload_total, (void)upload_now;
    seen.goes_back = seen.goes_back || now < seen.now || (seen.total > 0 && total < seen.total);
    seen.totals += total > 0 && total != seen.total;
    seen.now = now;
    seen.total = total > 0 ? total : seen.total;
    if (paused) {
        paused = false;
        curl_easy_pause(easy, CURLPAUSE_CONT);
    }
    return reached(&abort_at);
}

/* clang-format off */
static void set(const char *word)
{
    const char *value = strchr(word, '=');
    size_t length = value ? (size_t)(value - word) : strlen(word);
    value = value ? value + 1 : "";
#define IS(text) (length == strlen(text) && !memcmp(word, text, length))
#define SET(option, argument) curl_easy_setopt(easy, CURLOPT_##option, argument)
    if (IS("fresh"))         fresh = true;
    else if (IS("fail"))     SET(FAILONERROR, 1L);
    else if (IS("include"))  SET(HEADER, 1L);
    else if (IS("follow"))   SET(FOLLOWLOCATION, 1L);
    else if (IS("range"))    SET(RANGE, value);
    else if (IS("from"))     SET(RESUME_FROM_LARGE, (curl_off_t)atoll(value));
    else if (IS("decode"))   SET(ACCEPT_ENCODING, "");
    else if (IS("raw"))      SET(HTTP_TRANSFER_DECODING, 0L);
    else if (IS("post"))     SET(POSTFIELDS, value);
    else if (IS("custom"))   SET(CUSTOMREQUEST, value);
    else if (IS("http2"))    SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    else if (IS("insecure")) SET(SSL_VERIFYPEER, 0L);
    else if (IS("timeout"))  SET(TIMEOUT_MS, atol(value));
    else if (IS("newer"))    SET(TIMECONDITION, (long)CURL_TIMECOND_IFMODSINCE), SET(TIMEVALUE, 1L);
    else if (IS("maximum"))  SET(MAXFILESIZE_LARGE, (curl_off_t)atoll(value));
    else if (IS("buffer"))   SET(BUFFERSIZE, atol(value));
    else if (IS("line"))     SET(HTTPHEADER, lines = curl_slist_append(lines, value));
    else if (IS("stop"))     stop_at = atoll(value);
    else if (IS("pause"))    pause_at = atoll(value);
    else if (IS("abort"))    abort_at = atoll(value);
    else if (IS("copy"))     copy_at = atoll(value);
    else if (strcmp(word, "-")) exit(2);
#undef IS
}
/* clang-format on */

static char message[CURL_ERROR_SIZE];

static void prepare(char *words)
{
    easy = curl_easy_init();
    SET(ERRORBUFFER, message);
    SET(WRITEFUNCTION, on_body);
    SET(HEADERFUNCTION, on_header);
    SET(XFERINFOFUNCTION, on_progress);
    SET(NOPROGRESS, 0L);
    SET(FILETIME, 1L);
    SET(NOSIGNAL, 1L);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        set(word);
}

/* -------------------------------------------------------------------- telling ---- */

static void print_text(const char *name, const char *text, size_t length)
{
    printf(", \"%s\": \"", name);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        c<' ' || c == '"' || c == '\\' || c> '~' ? printf("\\u%04x", c) : putchar(c);
    }
    putchar('"');
}

static void print_info_text(const char *name, CURLINFO info)
{
    char *text = NULL;
    curl_easy_getinfo(easy, info, &text);
    print_text(name, text ? text : "none", text ? strlen(text) : 4);
}

static void print_number(const char *name, CURLINFO info)
{
    curl_off_t number = 0;
    curl_easy_getinfo(easy, info, &number);
    printf(", \"%s\": %lld", name, (long long)number);
}

static void print_real(const char *name, CURLINFO info)
{
    double number = 0;
    curl_easy_getinfo(easy, info, &number);
    printf(", \"%s\": %.0f", name, number);
}

static void print_headers(void)
{
    struct curl_header *header = NULL;
    const unsigned origins = CURLH_HEADER | CURLH_TRAILER | CURLH_1XX | CURLH_CONNECT;
    const char *between = "";
    printf(", \"list\": [");
    for (int request = 0; request < 3; request++)
        while ((header = curl_easy_nextheader(easy, origins, request, header))) {
            printf("%s{\"request\": %d, \"index\": %zu, \"amount\": %zu", between, request, header->index,
                   header->amount);
            print_text("name", header->name, strlen(header->name));
            print_text("value", header->value, strlen(header->value));
            printf("}");
            between = ", ";
        }
    printf("], \"range\": %d", curl_easy_header(easy, "Content-Range", 0, CURLH_HEADER, -1, &header));
}

static void tell(CURLcode code)
{
    printf("{\"code\": %d", code);
    print_text("message", message, strlen(message));
    printf(", \"length\": %lld, \"hash\": \"%016" PRIx64 "\"", (long long)seen.length, seen.hash);
    print_text("headers", seen.headers, seen.headers_length);
    print_text("statuses", seen.statuses, strlen(seen.statuses));
    printf(", \"headers_late\": %d, \"bodies_late\": %d, \"pauses\": %d", seen.headers_late, seen.bodies_late,
           seen.pauses);
    printf(", \"goes_back\": %d, \"totals\": %d", seen.goes_back, seen.totals);
    print_number("status", CURLINFO_RESPONSE_CODE);
    print_number("size", CURLINFO_SIZE_DOWNLOAD_T);
    print_real("size_real", CURLINFO_SIZE_DOWNLOAD);
    print_number("announced", CURLINFO_CONTENT_LENGTH_DOWNLOAD_T);
    print_real("announced_real", CURLINFO_CONTENT_LENGTH_DOWNLOAD);
    print_number("header_size", CURLINFO_HEADER_SIZE);
    print_number("filetime", CURLINFO_FILETIME_T);
    print_number("retry_after", CURLINFO_RETRY_AFTER);
    print_number("redirects", CURLINFO_REDIRECT_COUNT);
    print_number("version", CURLINFO_HTTP_VERSION);
    print_info_text("type", CURLINFO_CONTENT_TYPE);
    print_info_text("url", CURLINFO_EFFECTIVE_URL);
    print_info_text("method", CURLINFO_EFFECTIVE_METHOD);
    print_info_text("redirect", CURLINFO_REDIRECT_URL);
    print_headers();
    puts("}");
    fflush(stdout);
}

static void perform(CURL *handle, const char *url)
{
    memset(&seen, 0, sizeof seen);
    memset(message, 0, sizeof message);
    seen.hash = UINT64_C(0xcbf29ce484222325);
    curl_easy_setopt(handle, CURLOPT_URL, url);
    tell(curl_easy_perform(handle));
}

int main(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        char *words = strdup(argv[1]);
        if (!easy || fresh)
            prepare(words);
        perform(easy, argv[i]);
        if (copy) {
            CURL *original = easy;
            easy = copy;
            perform(easy, argv[i]);
            easy = original;
            curl_easy_cleanup(copy);
            copy = NULL;
        }
        if (fresh)
            curl_easy_cleanup(easy);
        free(words);
    }
    if (!fresh && easy)
        curl_easy_cleanup(easy);
    curl_slist_free_all(lines);
    return 0;
}
