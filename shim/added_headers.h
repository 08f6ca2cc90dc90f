/* SPDX-License-Identifier: MIT */
/*
 * Added headers: lines that Curtsy adds to a request.  They are links of a list of their own that goes on
 * with the program's, so that the program's list is never changed and nothing of it is copied.
 *
 * Owned by the transfer's thread.  Where it lies it has to stay while libcurl has the list.
 */
#ifndef CURTSY_SHIM_ADDED_HEADERS_H
#define CURTSY_SHIM_ADDED_HEADERS_H

#include "shim/libcurl.h"

#include <stdbool.h>

#define ADDED_HEADERS_MAX 3
#define ADDED_HEADER_SIZE 512

struct added_headers {
    unsigned count;
    unsigned kept; /* of them, for all attempts; the others are for one */
    struct {
        struct curl_slist link;
        char line[ADDED_HEADER_SIZE];
    } item[ADDED_HEADERS_MAX];
};

/* "Name: value".  False, and nothing added, when it is too long or there are too many. */
bool added_headers_add(struct added_headers *added, const char *name, const char *value);

/* The list for CURLOPT_HTTPHEADER; good until the next change of `added` or of the program's list. */
struct curl_slist *added_headers_before(struct added_headers *added, const struct curl_slist *programs);

#endif
