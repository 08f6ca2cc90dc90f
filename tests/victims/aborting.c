/* SPDX-License-Identifier: MIT */
/*
 * A progress callback that ends the transfer after a number of seconds, as "Cancel" buttons do:
 * also while nothing is under way but a wait.
 *
 *     aborting URL SECONDS
 *
 * prints the result, and how many whole seconds it took.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct timespec begun;
static double limit_s;

static double elapsed_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begun.tv_sec) + (double)(now.tv_nsec - begun.tv_nsec) / 1e9;
}

static int on_progress(void *unused, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)unused;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return elapsed_s() >= limit_s;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    limit_s = atof(argv[2]);
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    int result = curl_easy_perform(easy);
    printf("result %d after %d s\n", result, (int)elapsed_s());
    curl_easy_cleanup(easy);
    return 0;
}
