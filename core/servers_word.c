/* SPDX-License-Identifier: MIT */
/*
 * The fields are read by their own modules; what is decided here is which of them is the word.  Both
 * are read whatever is decided, since `curtsy headers` shows what was passed over, too.
 */
#include "core/servers_word.h"

static const struct servers_word no_word = {
    .quota = {.limit = QUOTA_UNKNOWN,
              .remaining = QUOTA_UNKNOWN,
              .reset_ns = QUOTA_UNKNOWN,
              .window_ns = QUOTA_UNKNOWN},
};

static bool says_too_many(int status)
{
    return status == 429 || status == 503;
}

/* Something left, or no time, is no word: the reset of a window that is not used up says nothing about
 * the next request. */
static bool is_used_up_until_later(const struct quota_fields *quota, bool too_many)
{
    bool is_used_up = quota->remaining == 0 || (too_many && quota->remaining == QUOTA_UNKNOWN);
    return is_used_up && quota->reset_ns > 0;
}

struct servers_word servers_word_read(const struct headers *headers, int status, bool is_refusal, bool obey_retry_after,
                                      int64_t now_s)
{
    struct servers_word word;
    if (!headers_say_something(headers))
        return no_word;
    word.retry_after = retry_after_read(headers, now_s);
    word.quota = quota_fields_read(headers, now_s);
    if (is_refusal && obey_retry_after && word.retry_after.form == RETRY_AFTER_GIVEN) {
        word.cause = CAUSE_RETRY_AFTER;
        word.wait_ns = word.retry_after.wait_ns;
        word.field = word.retry_after.field;
    } else if (is_used_up_until_later(&word.quota, is_refusal && says_too_many(status))) {
        word.cause = CAUSE_QUOTA_FIELDS;
        word.wait_ns = word.quota.reset_ns;
        word.field = word.quota.reset_field;
    } else {
        word.cause = CAUSE_NONE;
        word.wait_ns = 0;
        word.field = NULL;
    }
    return word;
}
