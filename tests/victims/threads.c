/* SPDX-License-Identifier: MIT */
/*
 * A threaded program: each thread has an easy handle of its own and fetches one URL again and again.
 *
 *     threads URL THREADS TIMES
 *
 * prints how many transfers ended with status 200, and how many did not.
 */
#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS_MAX 64

static const char *url;
static int times;
static atomic_int good, bad;

static size_t swallow(char *data, size_t size, size_t number, void *unused)
{
    (void)data;
    (void)unused;
    return size * number;
}

static void *fetch(void *unused)
{
    (void)unused;
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, swallow);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    for (int i = 0; i < times; i++) {
        long status = 0;
        curl_easy_perform(easy);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        atomic_fetch_add(status == 200 ? &good : &bad, 1);
    }
    curl_easy_cleanup(easy);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS_MAX];
    int count = argc == 4 ? atoi(argv[2]) : 0;
    if (count < 1 || count > THREADS_MAX)
        return 2;
    url = argv[1];
    times = atoi(argv[3]);
    curl_global_init(CURL_GLOBAL_ALL);
    for (int i = 0; i < count; i++)
        pthread_create(&thread[i], NULL, fetch, NULL);
    for (int i = 0; i < count; i++)
        pthread_join(thread[i], NULL);
    printf("good %d bad %d\n", atomic_load(&good), atomic_load(&bad));
    return 0;
}
