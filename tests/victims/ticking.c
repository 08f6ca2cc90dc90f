/* SPDX-License-Identifier: MIT */
/*
 * A program whose threads share a lock that one of them holds while it sends telemetry, so that
 * every wait in there stops all of them.
 *
 *     ticking TELEMETRY-URL OTHER-URL
 *
 * sends ten reports under the lock while another thread takes the lock over and over, then fetches
 * the other URL; prints the statuses, and how many reports kept the lock for a second or more.
 */
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int done;

static void *tick(void *unused)
{
    (void)unused;
    for (int stop = 0; !stop;) {
        pthread_mutex_lock(&lock);
        stop = done;
        pthread_mutex_unlock(&lock);
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static size_t swallow(char *data, size_t size, size_t number, void *unused)
{
    (void)data;
    (void)unused;
    return size * number;
}

static long fetch(const char *url)
{
    long status = 0;
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, swallow);
    curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(easy);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    pthread_t ticker;
    int slow = 0;
    long status = 0;
    curl_global_init(CURL_GLOBAL_ALL);
    pthread_create(&ticker, NULL, tick, NULL);
    for (int i = 0; i < 10; i++) {
        struct timespec begun, ended;
        pthread_mutex_lock(&lock);
        clock_gettime(CLOCK_MONOTONIC, &begun);
        status = fetch(argv[1]);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        pthread_mutex_unlock(&lock);
        slow += (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) / 1e9 >= 1;
    }
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_mutex_unlock(&lock);
    pthread_join(ticker, NULL);
    printf("telemetry %ld slow %d other %ld\n", status, slow, fetch(argv[2]));
    return 0;
}
