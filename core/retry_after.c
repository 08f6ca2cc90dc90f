/* SPDX-License-Identifier: MIT */
/*
 * The fields are asked in the order of the table: a finer one stands beside the coarse one that it
 * refines, and wins.  What a field says that is of no use leaves the word to the next one.
 */
#include "core/retry_after.h"

#include "core/field_value.h"
#include "core/http_date.h"

/* A delta of 10^9 seconds is 31 years: what is that large and could be an epoch is one. */
static const struct {
    enum header_name name;
    enum field_number number;
} fields[] = {
    {HEADER_RETRY_AFTER_MS, FIELD_MILLISECONDS},
    {HEADER_X_MS_RETRY_AFTER_MS, FIELD_MILLISECONDS},
    {HEADER_RETRY_AFTER, FIELD_EPOCH_OR_SECONDS},
};

int64_t response_time_s(const struct headers *headers, int64_t now_s)
{
    const struct header_field *date = headers_first(headers, HEADER_DATE);
    int64_t time_s;
    return date && http_date_parse(headers_value(headers, date), now_s, &time_s) ? time_s : now_s;
}

/* The largest of all values under one name. */
static struct retry_after read_field(const struct headers *headers, enum header_name name, enum field_number number,
                                     int64_t response_s)
{
    struct retry_after word = {.form = RETRY_AFTER_ABSENT};
    int64_t wait_ns;
    for (const struct header_field *field = headers_first(headers, name); field; field = headers_next(headers, field)) {
        const char *value = headers_value(headers, field);
        if (word.form == RETRY_AFTER_ABSENT)
            word = (struct retry_after){.form = RETRY_AFTER_UNUSABLE, .field = header_names[name]};
        while (field_next_wait(&value, number, response_s, &wait_ns)) {
            if (wait_ns == FIELD_UNUSABLE)
                continue;
            if (wait_ns > word.wait_ns)
                word.wait_ns = wait_ns;
            word.form = word.wait_ns > 0 ? RETRY_AFTER_GIVEN : RETRY_AFTER_ZERO;
        }
    }
    return word;
}

struct retry_after retry_after_read(const struct headers *headers, int64_t now_s)
{
    int64_t response_s = response_time_s(headers, now_s);
    struct retry_after best = {.form = RETRY_AFTER_ABSENT};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && best.form != RETRY_AFTER_GIVEN; i++) {
        struct retry_after word = read_field(headers, fields[i].name, fields[i].number, response_s);
        if (word.form > best.form)
            best = word;
    }
    return best;
}
