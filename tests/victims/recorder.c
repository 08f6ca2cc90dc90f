/* SPDX-License-Identifier: MIT */
/*
 * Records all that a program can see of a transfer: each callback in its order with its arguments
 * and the status that getinfo tells at that moment, and in the end what getinfo and the header API
 * know.
 *
 *     recorder PROXY [OPTIONS URL]...
 *
 * OPTIONS are words of the table below, with commas between them; each case has a handle of its own.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CURL *easy;

static size_t record(const char *who, const char *data, size_t length)
{
    long status = -1;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    printf("%s %ld %zu \"", who, status, length);
    for (size_t i = 0; i < length && i < 200; i++)
        data[i] == '\r' ? printf("\\r") : data[i] == '\n' ? printf("\\n") : putchar(data[i]);
    puts("\"");
    return length;
}

static size_t on_header(char *data, size_t size, size_t count, void *userdata)
{
    return record(userdata ? "header with data" : "header", data, size * count);
}

static size_t on_body(char *data, size_t size, size_t count, void *userdata)
{
    return record(userdata == on_body ? "body" : "body with header data", data, size * count);
}

/* clang-format off */
static void set(const char *option, const char *proxy)
{
#define IS(text) !strcmp(option, text)
#define SET(option, argument) curl_easy_setopt(easy, CURLOPT_##option, argument)
    if (IS("writer"))           SET(WRITEFUNCTION, on_body), SET(WRITEDATA, (void *)on_body);
    else if (IS("header"))      SET(HEADERFUNCTION, on_header);
    else if (IS("header-data")) SET(HEADERDATA, (void *)on_header);
    else if (IS("header-file")) SET(HEADERDATA, stdout);
    else if (IS("include"))     SET(HEADER, 1L);
    else if (IS("fail"))        SET(FAILONERROR, 1L);
    else if (IS("head"))        SET(NOBODY, 1L);
    else if (IS("follow"))      SET(FOLLOWLOCATION, 1L);
    else if (IS("max-size"))    SET(MAXFILESIZE, 3L);
    else if (IS("decode"))      SET(ACCEPT_ENCODING, "");
    else if (IS("range"))       SET(RANGE, "0-3");
    else if (IS("resume"))      SET(RESUME_FROM, 3L);
    else if (IS("http0.9"))     SET(HTTP09_ALLOWED, 1L);
    else if (IS("raw"))         SET(HTTP_TRANSFER_DECODING, 0L);
    else if (IS("tunnel"))      SET(PROXY, proxy), SET(HTTPPROXYTUNNEL, 1L);
    else if (IS("no-connect"))  SET(SUPPRESS_CONNECT_HEADERS, 1L);
    else if (strcmp(option, "plain")) exit(2);
}
/* clang-format on */

static void print_number(const char *name, CURLINFO info)
{
    long value = -1;
    curl_easy_getinfo(easy, info, &value);
    printf(" %s %ld", name, value);
}

static void print_what_is_told(CURLcode result, const char *message)
{
    char *redirect = NULL;
    printf("result %d \"%s\"", (int)result, message);
    print_number("status", CURLINFO_RESPONSE_CODE);
    print_number("proxy's", CURLINFO_HTTP_CONNECTCODE);
    print_number("redirects", CURLINFO_REDIRECT_COUNT);
    print_number("header size", CURLINFO_HEADER_SIZE);
    print_number("downloaded", CURLINFO_SIZE_DOWNLOAD_T);
    print_number("announced", CURLINFO_CONTENT_LENGTH_DOWNLOAD_T);
    print_number("retry after", CURLINFO_RETRY_AFTER);
    curl_easy_getinfo(easy, CURLINFO_REDIRECT_URL, &redirect);
    printf(" redirect %s\n", redirect ? strrchr(redirect, '/') : "none");
    struct curl_header *header = NULL;
    unsigned origins = CURLH_HEADER | CURLH_TRAILER | CURLH_1XX | CURLH_CONNECT;
    while ((header = curl_easy_nextheader(easy, origins, -1, header)))
        printf("header %s=%s %zu/%zu origin %u\n", header->name, header->value, header->index, header->amount,
               header->origin);
}

static void run(char *options, const char *url, const char *proxy)
{
    char message[CURL_ERROR_SIZE] = "";
    printf("\ncase %s\n", options);
    easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, message);
    for (char *option = strtok(options, ","); option; option = strtok(NULL, ","))
        set(option, proxy);
    CURLcode result = curl_easy_perform(easy);
    print_what_is_told(result, message);
    curl_easy_cleanup(easy);
}

int main(int argc, char **argv)
{
    for (int i = 2; i + 1 < argc; i += 2)
        run(argv[i], argv[i + 1], argv[1]);
    return 0;
}
