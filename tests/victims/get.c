/* SPDX-License-Identifier: MIT */
/*
 * The plainest program there is: one easy handle, each URL of the command line in turn.
 *
 *     get URL...
 *
 * prints a line for each: result, status, bytes received, connections made anew.
 */
#include <curl/curl.h>
#include <stdio.h>

static size_t count(char *data, size_t size, size_t number, void *total)
{
    (void)data;
    *(size_t *)total += size * number;
    return size * number;
}

int main(int argc, char **argv)
{
    CURL *easy = curl_easy_init();
    size_t total;
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, count);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &total);
    for (int i = 1; i < argc; i++) {
        long status = -1, connections = -1;
        total = 0;
        curl_easy_setopt(easy, CURLOPT_URL, argv[i]);
        CURLcode result = curl_easy_perform(easy);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connections);
        printf("%d %ld %zu %ld\n", (int)result, status, total, connections);
    }
    curl_easy_cleanup(easy);
    return 0;
}
