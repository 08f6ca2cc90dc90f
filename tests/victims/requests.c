/* SPDX-License-Identifier: MIT */
/*
 * Performs the requests that it reads, one after the other, each on a handle of its own.
 *
 *     requests PORT < LIST
 *
 * A line of the list is a method, a URL and any number of headers, with tabs between them.  Whatever
 * host and port a URL names, the connection goes to PORT of 127.0.0.1; with PORT 0 there is none, and
 * no waiting either: the transfer is aborted by its progress callback, and has a timeout of 1 ms.
 *
 * Writes "request N" to standard error before each, so that what is logged can be told apart, and
 * "N RESULT STATUS MILLISECONDS" to standard output after each.
 */
#include <curl/curl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static size_t swallow(char *data, size_t size, size_t number, void *unused)
{
    (void)data;
    (void)unused;
    return size * number;
}

static int abort_it(void *unused, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    return 1;
}

static curl_socket_t no_socket(void *unused, curlsocktype purpose, struct curl_sockaddr *address)
{
    return CURL_SOCKET_BAD;
}

static void set_method(CURL *easy, const char *method)
{
    if (strcmp(method, "POST") == 0)
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "body");
    else if (strcmp(method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else if (strcmp(method, "GET") != 0)
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
}

static void set_way(CURL *easy, const char *port, struct curl_slist **way)
{
    char to[64];
    snprintf(to, sizeof to, "::127.0.0.1:%s", strcmp(port, "0") == 0 ? "9" : port);
    *way = curl_slist_append(NULL, to);
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, *way);
    if (strcmp(port, "0") != 0)
        return;
    /* No wait fits into that, so none is begun. */
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, abort_it);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, no_socket);
}

static void perform(unsigned number, const char *port, char *line)
{
    CURL *easy = curl_easy_init();
    struct curl_slist *way = NULL, *headers = NULL;
    const char *method = strtok(line, "\t"), *url = strtok(NULL, "\t"), *header;
    long status = 0;

    while ((header = strtok(NULL, "\t")))
        headers = curl_slist_append(headers, header);
    set_method(easy, method);
    set_way(easy, port, &way);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, swallow);
    dprintf(STDERR_FILENO, "request %u\n", number);
    long began_ms = now_ms();
    int result = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    printf("%u %d %ld %ld\n", number, result, status, now_ms() - began_ms);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    curl_slist_free_all(way);
}

int main(int argc, char **argv)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t length;

    if (argc != 2)
        return 2;
    setlocale(LC_CTYPE, "");
    for (unsigned number = 0; (length = getline(&line, &size, stdin)) > 0; number++) {
        line[strcspn(line, "\n")] = '\0';
        perform(number, argv[1], line);
    }
    free(line);
    return 0;
}
