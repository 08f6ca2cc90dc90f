/* SPDX-License-Identifier: MIT */
/*
 * A write callback that throws a C++ exception out of curl_easy_perform, as careless C++ programs
 * do, several times over.
 *
 *     throwing URL TIMES
 *
 * prints how many exceptions arrived and what a last, ordinary transfer came to.
 */
#include <cstdio>
#include <cstdlib>
#include <curl/curl.h>
#include <stdexcept>

static size_t throw_it(char *, size_t, size_t, void *)
{
    throw std::runtime_error("out of a callback");
}

static size_t swallow(char *, size_t size, size_t number, void *)
{
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
    int caught = 0;
    for (int i = std::atoi(argv[2]); i > 0; i--) {
        try {
            perform(argv[1], throw_it);
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    std::printf("caught %d then %d\n", caught, perform(argv[1], swallow));
    return 0;
}
