/* SPDX-License-Identifier: MIT */
/*
 * Text list: "a, b, c" one by one.
 */
#ifndef CURTSY_CORE_TEXT_LIST_H
#define CURTSY_CORE_TEXT_LIST_H

#include "core/scan.h"

/* The next piece between commas, without blanks around it; it may be empty.  False at the end.
 * *text moves on, and is NULL after the last piece. */
static inline bool text_list_next(const char **text, struct scan *out)
{
    if (*text == NULL)
        return false;
    size_t length = strcspn(*text, ",");
    *out = scan_text(*text, length);
    scan_trim(out);
    *text = (*text)[length] == ',' ? *text + length + 1 : NULL;
    return true;
}

/* How many pieces there are: at least one. */
static inline size_t text_list_count(const char *text)
{
    size_t count = 1;
    for (; *text != '\0'; text++)
        count += *text == ',';
    return count;
}

#endif
