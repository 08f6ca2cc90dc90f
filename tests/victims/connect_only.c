/* SPDX-License-Identifier: MIT */
/*
 * CURLOPT_CONNECT_ONLY: libcurl makes the connection, and the program speaks for itself over
 * curl_easy_send and curl_easy_recv.
 *
 *     connect_only URL
 *
 * sends one request by hand and prints the status line that it gets.
 */
#include <curl/curl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const char request[] = "GET /data HTTP/1.1\r\nHost: x\r\n\r\n";
    char answer[4096];
    size_t length = 0;
    curl_socket_t socket = CURL_SOCKET_BAD;
    if (argc != 2)
        return 2;
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
    curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
    printf("connect %d\n", (int)curl_easy_perform(easy));
    curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &socket);
    CURLcode sent = curl_easy_send(easy, request, sizeof request - 1, &length);
    printf("send %d\n", (int)sent);
    if (sent != CURLE_OK)
        return 1;
    struct pollfd readable = {socket, POLLIN, 0};
    CURLcode result = CURLE_AGAIN;
    while (result == CURLE_AGAIN && poll(&readable, 1, 20000) == 1)
        result = curl_easy_recv(easy, answer, sizeof answer - 1, &length);
    answer[result ? 0 : length] = '\0';
    printf("receive %d %.*s\n", (int)result, (int)strcspn(answer, "\r"), answer);
    curl_easy_cleanup(easy);
    return 0;
}
