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
#define RETRY_NAMES HEADERS_BITS(HEADER_RETRY_AFTER, HEADER_X_MS_RETRY_AFTER_MS)

int64_t response_time_s(const struct headers *headers, int64_t now_s)
{
    const struct header_field *date = headers_first(headers, HEADER_DATE);
    int64_t time_s;
    if (!date || !http_date_parse_text(headers_value(headers, date), date->value_length, now_s, &time_s))
        return now_s;
    return time_s;
}

int64_t response_time_for(const struct headers *headers, int64_t number, int64_t now_s)
{
    bool is_delta = number >= 0 && number < FIELD_EPOCHS_FROM;
    return is_delta ? now_s : response_time_s(headers, now_s);
}

static void add_wait(struct retry_after *word, int64_t wait_ns)
{
    if (wait_ns == FIELD_UNUSABLE)
        return;
    if (wait_ns > word->wait_ns)
        word->wait_ns = wait_ns;
    word->form = word->wait_ns > 0 ? RETRY_AFTER_GIVEN : RETRY_AFTER_ZERO;
}

/* The largest of all values under one name. */
static struct retry_after read_fields(const struct headers *headers, enum header_name name, enum field_number number,
                                      int64_t now_s)
{
    struct retry_after word = {.form = RETRY_AFTER_UNUSABLE, .field = header_names[name]};
    for (const struct header_field *field = headers_first(headers, name); field; field = headers_next(headers, field)) {
        int64_t response_s = response_time_for(headers, field->number, now_s);
        if (field->number >= 0) {
            add_wait(&word, field_number_to_wait(field->number, number, response_s));
            continue;
        }
        const char *value = headers_value(headers, field);
        int64_t wait_ns;
        while (field_next_wait(&value, number, response_s, &wait_ns))
            add_wait(&word, wait_ns);
    }
    return word;
}

/* Few responses have one: what they need is kept out of the frame for the others. */
__attribute__((cold)) static struct retry_after read_first_usable(const struct headers *headers, int64_t now_s)
{
    struct retry_after best = {.form = RETRY_AFTER_ABSENT};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && best.form != RETRY_AFTER_GIVEN; i++) {
        if (!headers_have(headers, fields[i].name))
            continue;
        struct retry_after word = read_fields(headers, fields[i].name, fields[i].number, now_s);
        if (word.form > best.form)
            best = word;
    }
    return best;
}

struct retry_after retry_after_read(const struct headers *headers, int64_t now_s)
{
    if (!headers_have_any(headers, RETRY_NAMES))
        return (struct retry_after){.form = RETRY_AFTER_ABSENT};
    return read_first_usable(headers, now_s);
}
