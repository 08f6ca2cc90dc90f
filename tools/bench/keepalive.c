/* SPDX-License-Identifier: MIT */
/*
 * The plainest program there is: COUNT GETs of URL on one handle, which keeps its connection.
 *
 *     keepalive URL COUNT
 */
#include <curl/curl.h>
#include <stdlib.h>

static size_t swallow(char *data, size_t size, size_t count, void *unused)
{
    (void)data;
    (void)unused;
    return size * count;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    CURL *handle = curl_easy_init();
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, swallow);
    CURLcode code = CURLE_OK;
    for (long left = strtol(argv[2], NULL, 10); left > 0 && code == CURLE_OK; left--) {
        curl_easy_setopt(handle, CURLOPT_URL, argv[1]);
        code = curl_easy_perform(handle);
    }
    curl_easy_cleanup(handle);
    return code;
}
