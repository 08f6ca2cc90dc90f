/* SPDX-License-Identifier: MIT */
/*
 * Transfers at the two ends of a program's life: one in a constructor, before main, and one in an
 * atexit function, after it.  CURTSY_VICTIM_URL says where to.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

static size_t swallow(char *data, size_t size, size_t number, void *unused)
{
    (void)data;
    (void)unused;
    return size * number;
}

static void perform(const char *when)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, getenv("CURTSY_VICTIM_URL"));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, swallow);
    printf("%s %d\n", when, (int)curl_easy_perform(easy));
    curl_easy_cleanup(easy);
}

static void late(void)
{
    perform("late");
}

__attribute__((constructor)) static void early(void)
{
    perform("early");
    atexit(late);
}

int main(void)
{
    perform("main");
    return 0;
}
