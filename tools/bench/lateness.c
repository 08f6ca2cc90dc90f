/* SPDX-License-Identifier: MIT */
/*
 * How late a wait ends.
 *
 *     lateness URL COUNT     under Curtsy with a rate of 20 a second: COUNT requests, paced
 *     lateness - COUNT       a sleeper by poll() alone, at the same pace
 *
 * Prints for each turn but the first the microseconds by which it began later than it could have: 50 ms after
 * the turn before was due.
 */
#include <curl/curl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SPACING_US 50000

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t started_us;

static size_t swallow(char *data, size_t size, size_t count, void *unused)
{
    (void)data, (void)unused;
    return size * count;
}

/* When the attempt began: its end, less what libcurl says that it took. */
static void request(CURL *handle)
{
    curl_off_t total_us = 0;
    curl_easy_perform(handle);
    int64_t ended_us = now_us();
    curl_easy_getinfo(handle, CURLINFO_TOTAL_TIME_T, &total_us);
    started_us = ended_us - total_us;
}

static void sleep_until(int64_t due_us)
{
    int64_t left_us = due_us - now_us();
    if (left_us > 0)
        poll(NULL, 0, (int)((left_us + 999) / 1000));
    started_us = now_us();
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    long count = strtol(argv[2], NULL, 10);
    CURL *handle = curl_easy_init();
    curl_easy_setopt(handle, CURLOPT_URL, argv[1]);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, swallow);
    int64_t due_us = 0;
    for (long i = 0; i < count; i++) {
        if (strcmp(argv[1], "-") == 0)
            sleep_until(due_us ? due_us : now_us());
        else
            request(handle);
        if (due_us)
            printf("%" PRId64 "\n", started_us > due_us ? started_us - due_us : 0);
        else
            due_us = started_us;
        due_us += SPACING_US;
    }
    curl_easy_cleanup(handle);
    return 0;
}
