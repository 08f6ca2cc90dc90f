/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: quota fields, structured ones included.  Whatever comes, each number is known or not,
 * never negative, and has a field that it came from.
 */
#include "core/quota_fields.h"
#include "tests/fuzz/header_input.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int64_t value, const char *field)
{
    if (value < QUOTA_UNKNOWN || (value == QUOTA_UNKNOWN) != (field == NULL))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct headers headers;
    int64_t now_s;
    if (!header_input_read(data, size, &headers, &now_s))
        return 0;
    struct quota_fields fields = quota_fields_read(&headers, now_s);
    check(fields.limit, fields.limit_field);
    check(fields.remaining, fields.remaining_field);
    check(fields.reset_ns, fields.reset_field);
    check(fields.window_ns, fields.window_field);
    if (fields.present != (fields.limit_field || fields.remaining_field || fields.reset_field))
        abort();
    if (fields.window_ns == 0 || (fields.window_ns > 0 && fields.reset_ns > fields.window_ns))
        abort();
    return 0;
}
