/* SPDX-License-Identifier: MIT */
/*
 * Is an option of each kind still what the program set, and does a callback still get the data
 * that the program gave it, after a transfer that was refused and repeated?
 *
 *     options URL
 *
 * Sets a string, a long, an offset beyond 32 bits, a list, a blob, function and data pointers, then
 * performs twice without setting anything anew, and prints what it sees.  errno is watched too.
 */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct tally {
    int header, body, progress;
};

static size_t on_body(char *data, size_t size, size_t number, void *context)
{
    (void)data;
    ((struct tally *)context)->body++;
    return size * number;
}

static size_t on_header(char *data, size_t size, size_t number, void *context)
{
    (void)data;
    ((struct tally *)context)->header++;
    return size * number;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    ((struct tally *)context)->progress++;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    struct tally tally = {0, 0, 0};
    char message[CURL_ERROR_SIZE] = "";
    struct curl_slist *list = curl_slist_append(NULL, "X-List: kept");
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "kept/1");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)5000000000);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, message);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &tally);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &tally);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &tally);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    errno = 4242;
    int set = curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 30000L);
    printf("errno after setopt %d\n", errno);
    for (int i = 0; i < 2; i++) {
        int result = curl_easy_perform(easy);
        printf("result %d set %d bodies %d header lines %d progress %s\n", result, set, tally.body, tally.header,
               tally.progress ? "called" : "never called");
        memset(&tally, 0, sizeof tally);
    }
    curl_easy_cleanup(easy);
    curl_slist_free_all(list);
    return 0;
}
