/* SPDX-License-Identifier: MIT */
/*
 * A transfer on a multi handle of its own, as curl_easy_perform would make it.
 */
#ifndef CURTSY_VICTIMS_DRIVE_H
#define CURTSY_VICTIMS_DRIVE_H

#include <curl/curl.h>

/* `tell` is given its result (-1: there is none) before the handle is taken out again. */
static void drive_in_multi(CURL *easy, void (*tell)(int result))
{
    CURLM *multi = curl_multi_init();
    int running = 1, left = 0;
    int added = curl_multi_add_handle(multi, easy);
    while (!added && running) {
        curl_multi_perform(multi, &running);
        if (running)
            curl_multi_poll(multi, NULL, 0, 100, NULL);
    }
    CURLMsg *end = added ? NULL : curl_multi_info_read(multi, &left);
    tell(end ? (int)end->data.result : -1);
    curl_multi_remove_handle(multi, easy);
    curl_multi_cleanup(multi);
}

#endif
