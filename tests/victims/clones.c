/* SPDX-License-Identifier: MIT */
/*
 * Handles that are cloned, reset, freed and made anew, as bindings with pools of handles do.  Each
 * clone has callbacks and data of its own; the original is freed first; what the callbacks are
 * handed must be their own handle's.
 *
 *     clones URL ROUNDS
 *
 * prints how many rounds went wrong, and by how many KiB the program's memory grew after the first
 * quarter of them.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct seen {
    size_t body, header_lines;
    int foreign;
    struct seen *self;
};

static size_t on_body(char *data, size_t size, size_t number, void *context)
{
    (void)data;
    struct seen *seen = context;
    seen->foreign += seen->self != seen;
    seen->body += size * number;
    return size * number;
}

static size_t on_header(char *data, size_t size, size_t number, void *context)
{
    struct seen *seen = context;
    seen->foreign += seen->self != seen;
    seen->header_lines += !strncmp(data, "HTTP/", 5);
    return size * number;
}

static void prepare(CURL *easy, struct seen *seen)
{
    memset(seen, 0, sizeof *seen);
    seen->self = seen;
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, seen);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, seen);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, seen);
}

static int is_right(CURL *easy, const struct seen *seen)
{
    void *private_data = NULL;
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private_data);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return private_data == seen && status == 200 && seen->body == 4 && seen->header_lines == 1 && !seen->foreign;
}

static int one_round(const char *url)
{
    struct seen original_saw, clone_saw;
    CURL *original = curl_easy_init();
    curl_easy_setopt(original, CURLOPT_URL, url);
    curl_easy_setopt(original, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(original, CURLOPT_HEADERFUNCTION, on_header);
    prepare(original, &original_saw);

    CURL *clone = curl_easy_duphandle(original);
    prepare(clone, &clone_saw);
    int right = curl_easy_perform(original) == CURLE_OK && is_right(original, &original_saw);
    curl_easy_cleanup(original);
    right &= curl_easy_perform(clone) == CURLE_OK && is_right(clone, &clone_saw);

    curl_easy_reset(clone);
    struct seen after_reset;
    prepare(clone, &after_reset);
    curl_easy_setopt(clone, CURLOPT_URL, url);
    curl_easy_setopt(clone, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(clone, CURLOPT_HEADERFUNCTION, on_header);
    right &= curl_easy_perform(clone) == CURLE_OK && is_right(clone, &after_reset);
    curl_easy_cleanup(clone);
    return right;
}

static long resident_kib(void)
{
    long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &total, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char **argv)
{
    int wrong = 0;
    long after_a_quarter_kib = 0;
    if (argc != 3)
        return 2;
    int rounds = atoi(argv[2]);
    for (int i = 0; i < rounds; i++) {
        if (i == rounds / 4)
            after_a_quarter_kib = resident_kib();
        wrong += !one_round(argv[1]);
    }
    printf("wrong %d grown %ld\n", wrong, resident_kib() - after_a_quarter_kib);
    return 0;
}
