/* SPDX-License-Identifier: MIT */
/*
 * A callback that performs another transfer on another handle, which libcurl allows:
 *
 *     nested plain|tail OUTER-URL INNER-URL
 *
 * plain: from a write callback.  tail: from a callback that ends in a tail call of
 * curl_easy_perform, so that at -O2 libcurl itself seems to be its caller.  Prints what the outer
 * and the inner transfer came to.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

static CURL *inner;
static int inner_calls;

static size_t swallow(char *data, size_t size, size_t number, void *unused)
{
    (void)data;
    (void)unused;
    return size * number;
}

static size_t perform_plainly(char *data, size_t size, size_t number, void *unused)
{
    (void)data;
    (void)unused;
    inner_calls++;
    CURLcode result = curl_easy_perform(inner);
    return result == CURLE_OK ? size * number : 0;
}

/* Both functions return 0 for "all is well", which is what makes the tail call possible. */
static int perform_by_tail_call(void *unused, curl_socket_t socket, curlsocktype purpose)
{
    (void)unused;
    (void)socket;
    (void)purpose;
    inner_calls++;
    return (int)curl_easy_perform(inner);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    CURL *outer = curl_easy_init();
    inner = curl_easy_init();
    curl_easy_setopt(inner, CURLOPT_URL, argv[3]);
    curl_easy_setopt(inner, CURLOPT_WRITEFUNCTION, swallow);
    curl_easy_setopt(outer, CURLOPT_URL, argv[2]);
    if (strcmp(argv[1], "tail")) {
        curl_easy_setopt(outer, CURLOPT_WRITEFUNCTION, perform_plainly);
    } else {
        curl_easy_setopt(outer, CURLOPT_WRITEFUNCTION, swallow);
        curl_easy_setopt(outer, CURLOPT_SOCKOPTFUNCTION, perform_by_tail_call);
    }

    int outer_result = curl_easy_perform(outer);
    long outer_status = 0, inner_status = 0;
    curl_easy_getinfo(outer, CURLINFO_RESPONSE_CODE, &outer_status);
    curl_easy_getinfo(inner, CURLINFO_RESPONSE_CODE, &inner_status);
    printf("outer %d %ld inner %d %ld\n", outer_result, outer_status, inner_calls, inner_status);
    curl_easy_cleanup(inner);
    curl_easy_cleanup(outer);
    return 0;
}
