/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: HTTP-date.  The first eight bytes are the clock, the rest is the text.  What is
 * accepted lies in the years that can be written, but for an offset's day, and in four digits does
 * not depend on the clock.
 */
#include "core/http_date.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t now_s, time_s = INT64_MIN;
    char text[256];
    if (size < sizeof(now_s))
        return 0;
    memcpy(&now_s, data, sizeof(now_s));
    size_t length = size - sizeof(now_s) < sizeof(text) - 1 ? size - sizeof(now_s) : sizeof(text) - 1;
    memcpy(text, data + sizeof(now_s), length);
    text[length] = '\0';
    if (http_date_parse(text, now_s, &time_s)) {
        if (time_s < INT64_C(-62167219200) - 86400 || time_s > INT64_C(253402300800) + 86400)
            abort();
    } else if (time_s != INT64_MIN) {
        abort();
    }
    return 0;
}
