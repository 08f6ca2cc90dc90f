/* SPDX-License-Identifier: MIT */
/*
 * Request headers: see request_headers.h.
 */
#include "core/request_headers.h"

#include "core/text_list.h"

/* What libcurl makes of a line that begins with a given name. */
enum form {
    FORM_OTHER, /* another header, or nothing that is sent */
    FORM_EMPTY, /* sent without a value */
    FORM_VALUE,
};

/* As libcurl's own ISSPACE. */
static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static enum form form_of(const char *line, const char *name, size_t length)
{
    if (length == 0 || !scan_begins_ignoring_case(line, name, length))
        return FORM_OTHER;
    const char *rest = line + length;
    if (strcmp(rest, ";") == 0)
        return FORM_EMPTY;
    if (*rest != ':')
        return FORM_OTHER;
    do
        rest++;
    while (is_space(*rest));
    return *rest != '\0' ? FORM_VALUE : FORM_OTHER;
}

void request_headers_note(struct request_traits *traits, const char *line, const char *key_header)
{
    static const char *const conditions[] = {"If-Match", "If-None-Match", "If-Unmodified-Since"};

    if (key_header && form_of(line, key_header, strlen(key_header)) == FORM_VALUE)
        traits->has_idempotency_key = true;
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        if (form_of(line, conditions[i], strlen(conditions[i])) != FORM_OTHER)
            traits->is_conditional = true;
}

bool request_headers_carries(const char *line, const char *names, struct scan *name)
{
    struct scan item;

    while (text_list_next(&names, &item)) {
        if (form_of(line, item.at, (size_t)(item.end - item.at)) != FORM_VALUE)
            continue;
        if (name)
            *name = item;
        return true;
    }
    return false;
}
