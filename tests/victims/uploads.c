/* SPDX-License-Identifier: MIT */
/*
 * Uploads by read callback, with and without a seek callback, and what the handle is good for
 * afterwards.
 *
 *     uploads put|post seek|no-seek BASE-URL
 *
 * uploads to BASE/upload, then on the same handle: GETs BASE/get, POSTs to BASE/post, resets it and
 * GETs BASE/get again.  Prints result and status of each.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

static const char body[] = "the whole of the body, once";
static size_t position;

static size_t supply(char *buffer, size_t size, size_t number, void *unused)
{
    (void)unused;
    size_t left = sizeof body - 1 - position, room = size * number;
    size_t length = left < room ? left : room;
    memcpy(buffer, body + position, length);
    position += length;
    return length;
}

static int seek(void *unused, curl_off_t offset, int origin)
{
    (void)unused;
    if (origin != SEEK_SET || offset < 0 || offset > (curl_off_t)sizeof body - 1)
        return CURL_SEEKFUNC_FAIL;
    position = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

static size_t swallow(char *data, size_t size, size_t number, void *unused)
{
    (void)data;
    (void)unused;
    return size * number;
}

static void perform(CURL *easy, const char *what, const char *base, const char *path)
{
    char url[1024];
    long status = 0;
    snprintf(url, sizeof url, "%s%s", base, path);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    int result = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    printf("%s %d %ld\n", what, result, status);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, swallow);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, supply);
    if (!strcmp(argv[2], "seek"))
        curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek);
    if (!strcmp(argv[1], "put")) {
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)(sizeof body - 1));
    } else {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(sizeof body - 1));
    }
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 20L);
    perform(easy, "upload", argv[3], "/upload");

    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    perform(easy, "get", argv[3], "/get");
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)-1);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "small");
    perform(easy, "post", argv[3], "/post");
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, swallow);
    perform(easy, "reset", argv[3], "/get");
    curl_easy_cleanup(easy);
    return 0;
}
