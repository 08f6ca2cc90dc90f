/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: Retry-After and its kin, through the headers that they come in.  Whatever comes, a
 * word is a wait above 0 or no wait at all.
 */
#include "core/retry_after.h"
#include "tests/fuzz/header_input.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct headers headers;
    int64_t now_s;
    if (!header_input_read(data, size, &headers, &now_s))
        return 0;
    struct retry_after word = retry_after_read(&headers, now_s);
    if (word.wait_ns < 0 || (word.wait_ns > 0) != (word.form == RETRY_AFTER_GIVEN))
        abort();
    if ((word.field == NULL) != (word.form == RETRY_AFTER_ABSENT))
        abort();
    return 0;
}
