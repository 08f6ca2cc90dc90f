/* SPDX-License-Identifier: MIT */
/*
 * A few links in front of somebody else's list.
 */
#include "shim/added_headers.h"

#include <stdint.h>
#include <stdio.h>

bool added_headers_add(struct added_headers *added, const char *name, const char *value)
{
    if (added->count >= ADDED_HEADERS_MAX)
        return false;
    char *line = added->item[added->count].line;
    int length = snprintf(line, ADDED_HEADER_SIZE, "%s: %s", name, value);
    if (length < 0 || length >= ADDED_HEADER_SIZE)
        return false;
    added->count++;
    return true;
}

struct curl_slist *added_headers_before(struct added_headers *added, const struct curl_slist *programs)
{
    /* libcurl only reads what it is given here. */
    struct curl_slist *list = (struct curl_slist *)(uintptr_t)programs;
    for (unsigned i = added->count; i > 0; i--) {
        added->item[i - 1].link = (struct curl_slist){.data = added->item[i - 1].line, .next = list};
        list = &added->item[i - 1].link;
    }
    return list;
}
