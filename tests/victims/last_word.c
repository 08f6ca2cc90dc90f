/* SPDX-License-Identifier: MIT */
/*
 * Everything that a program can ask about a finished transfer, printed: for comparison between a
 * server that always refuses and the same seen without Curtsy.
 *
 *     last_word URL [TIMEOUT-MS]
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

static size_t to_stdout(char *data, size_t size, size_t number, void *unused)
{
    (void)unused;
    return fwrite(data, size, number, stdout);
}

int main(int argc, char **argv)
{
    char message[CURL_ERROR_SIZE] = "untouched";
    if (argc < 2)
        return 2;
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, message);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, to_stdout);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    if (argc > 2)
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, atol(argv[2]));
    CURLcode result = curl_easy_perform(easy);

    long status = 0, redirects = 0, os_error = 0, header_size = 0;
    curl_off_t downloaded = 0, announced = 0;
    char *url = NULL, *type = NULL;
    struct curl_header *marker = NULL;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(easy, CURLINFO_REDIRECT_COUNT, &redirects);
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_error);
    curl_easy_getinfo(easy, CURLINFO_HEADER_SIZE, &header_size);
    curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &downloaded);
    curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
    curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url);
    curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
    CURLHcode found = curl_easy_header(easy, "X-Marker", 0, CURLH_HEADER, -1, &marker);
    printf("result %d\nmessage %s\nstatus %ld\nredirects %ld\nerrno %ld\n", (int)result, message, status, redirects,
           os_error);
    printf("header size %ld\ndownloaded %ld\nannounced %ld\nurl %s\ntype %s\nmarker %s\n", header_size,
           (long)downloaded, (long)announced, url, type ? type : "none", found ? "none" : marker->value);
    curl_easy_cleanup(easy);
    return 0;
}
