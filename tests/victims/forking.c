/* SPDX-License-Identifier: MIT */
/*
 * A threaded program that forks while another of its threads waits inside curl_easy_perform.  The
 * child makes a transfer of its own at once: nothing that the waiting thread holds may stop it.
 *
 *     forking LIMITED-URL FREE-URL
 *
 * prints the child's result first, the thread's second.
 */
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t swallow(char *data, size_t size, size_t number, void *unused)
{
    (void)data;
    (void)unused;
    return size * number;
}

static int progress_pipe[2];

/* Called while the transfer waits: the thread is inside the library now. */
static int tell(void *unused, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)unused;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return write(progress_pipe[1], "w", 1) != 1;
}

static int perform(const char *url, curl_xferinfo_callback progress)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, swallow);
    if (progress) {
        curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, progress);
        curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    }
    int result = curl_easy_perform(easy);
    curl_easy_cleanup(easy);
    return result;
}

static void *wait_in_perform(void *url)
{
    return (void *)(long)perform(url, tell);
}

int main(int argc, char **argv)
{
    char byte;
    void *result;
    pthread_t thread;
    if (argc != 3 || pipe(progress_pipe))
        return 2;
    curl_global_init(CURL_GLOBAL_ALL);
    pthread_create(&thread, NULL, wait_in_perform, argv[1]);
    for (int i = 0; i < 3; i++)
        if (read(progress_pipe[0], &byte, 1) != 1)
            return 1;
    pid_t child = fork();
    if (child == 0)
        _exit(perform(argv[2], NULL));
    int status = -1;
    waitpid(child, &status, 0);
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    fflush(stdout);
    pthread_join(thread, &result);
    printf("thread %ld\n", (long)result);
    return 0;
}
