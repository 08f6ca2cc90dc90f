/* SPDX-License-Identifier: MIT */
/*
 * A write callback that leaves curl_easy_perform by longjmp, as bindings of languages with such
 * error handling do, several times over.  The abandoned handles are left alone; fresh ones work.
 *
 *     jumping URL TIMES
 *
 * prints how often it jumped and what a last, ordinary transfer came to.
 */
#include <curl/curl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static jmp_buf out;

static size_t jump(char *data, size_t size, size_t number, void *unused)
{
    (void)data;
    (void)size;
    (void)number;
    (void)unused;
    longjmp(out, 1);
}

static size_t swallow(char *data, size_t size, size_t number, void *unused)
{
    (void)data;
    (void)unused;
    return size * number;
}

static int perform(const char *url, curl_write_callback callback)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, callback);
    int result = curl_easy_perform(easy);
    curl_easy_cleanup(easy);
    return result;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    volatile int jumped = 0;
    for (volatile int i = atoi(argv[2]); i > 0; i--) {
        if (setjmp(out))
            jumped++;
        else
            perform(argv[1], jump);
    }
    printf("jumped %d then %d\n", jumped, perform(argv[1], swallow));
    return 0;
}
