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
    const char *name;
    enum field_number number;
} fields[] = {
    {"retry-after-ms", FIELD_MILLISECONDS},
    {"x-ms-retry-after-ms", FIELD_MILLISECONDS},
    {"retry-after", FIELD_EPOCH_OR_SECONDS},
};

int64_t response_time_s(const struct headers *headers, int64_t now_s)
{
    const char *date = headers_value(headers, "date", 0);
    int64_t time_s;
    return date && http_date_parse(date, now_s, &time_s) ? time_s : now_s;
}

/* The largest of all values under one name. */
static struct retry_after read_field(const struct headers *headers, const char *name, enum field_number number,
                                     int64_t response_s)
{
    struct retry_after word = {.form = RETRY_AFTER_ABSENT};
    const char *value;
    int64_t wait_ns;
    for (unsigned nth = 0; (value = headers_value(headers, name, nth)); nth++) {
        if (word.form == RETRY_AFTER_ABSENT)
            word = (struct retry_after){.form = RETRY_AFTER_UNUSABLE, .field = name};
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
