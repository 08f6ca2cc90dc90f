/* SPDX-License-Identifier: MIT */
/*
 * Callbacks that throw a C++ exception out of curl_easy_perform, as careless C++ programs do.
 *
 *     throwing URL TIMES      from the write callback, several times over, each time on a fresh handle
 *     throwing URL wait       from the progress callback, half a second after the answer came in
 *
 * prints how many exceptions arrived, and what one more transfer came to: an ordinary one on a fresh
 * handle, or one on the very handle that was left.
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

static CURL *prepare(const char *url, curl_write_callback callback)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, callback);
    return easy;
}

static int perform(const char *url, curl_write_callback callback)
{
    CURL *easy = prepare(url, callback);
    int result = curl_easy_perform(easy);
    curl_easy_cleanup(easy);
    return result;
}

static std::chrono::steady_clock::time_point answered;

/* What debugging shows is all that tells that the answer is there. */
static int note_answer(CURL *, curl_infotype type, char *, size_t, void *)
{
    if (type == CURLINFO_HEADER_IN)
        answered = std::chrono::steady_clock::now();
    return 0;
}

static int throw_later(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t)
{
    bool is_answered = answered != std::chrono::steady_clock::time_point();
    if (is_answered && std::chrono::steady_clock::now() - answered >= std::chrono::milliseconds(500))
        throw std::runtime_error("cancelled");
    return 0;
}

static int throw_out_of_a_wait(const char *url)
{
    int caught = 0;
    CURL *easy = prepare(url, swallow);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, throw_later);
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, note_answer);
    curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    try {
        curl_easy_perform(easy);
    } catch (const std::runtime_error &) {
        caught++;
    }
    int result = curl_easy_perform(easy);
    curl_easy_cleanup(easy);
    return std::printf("caught %d then %d\n", caught, result) < 0;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    if (!std::strcmp(argv[2], "wait"))
        return throw_out_of_a_wait(argv[1]);
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
