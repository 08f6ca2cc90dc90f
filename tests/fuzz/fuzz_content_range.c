/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: Content-Range and entity tags, whose values decide together whether a broken body may be
 * gone on with.  The text is taken for both.  A range that is accepted adds up, and is accepted again
 * with the same numbers when it is written anew; what is not leaves the result alone.
 */
#include "core/content_range.h"
#include "core/entity_tag.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_range(const struct content_range *range, char *text, size_t size)
{
    int length = snprintf(text, size, "bytes %" PRId64 "-%" PRId64 "/", range->first, range->last);
    if (range->total < 0)
        snprintf(text + length, size - (size_t)length, "*");
    else
        snprintf(text + length, size - (size_t)length, "%" PRId64, range->total);
}

static void check_range(const struct content_range *range)
{
    char text[96];
    struct content_range again;
    if (range->first < 0 || range->last < range->first || range->total < -1 ||
        (range->total >= 0 && range->last >= range->total))
        abort();
    write_range(range, text, sizeof text);
    if (!content_range_parse(text, &again) || again.first != range->first || again.last != range->last ||
        again.total != range->total)
        abort();
}

/* One tag between two quotes, and nothing but blanks around it. */
static void check_tag(const char *text)
{
    const char *first = strchr(text, '"'), *last = strrchr(text, '"');
    if (!first || first == last || memchr(first + 1, '"', (size_t)(last - first - 1)) ||
        strspn(text, " \t") != (size_t)(first - text) || last[1 + strspn(last + 1, " \t")] != '\0')
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct content_range range = {-7, -7, -7};
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (content_range_parse(text, &range))
        check_range(&range);
    else if (range.first != -7 || range.last != -7 || range.total != -7)
        abort();
    if (entity_tag_is_strong(text))
        check_tag(text);
    free(text);
    return 0;
}
