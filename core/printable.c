/* SPDX-License-Identifier: MIT */
/*
 * Printable.  Everything rests on sequence_length, which knows UTF-8 by heart: how many bytes a
 * first byte asks for, and what the second may be.
 */
#include "core/printable.h"

#include <string.h>

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* How many bytes the sequence has that begins so; 0 if none does. */
static size_t stated_length(char c)
{
    unsigned char first = (unsigned char)c;
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* An overlong form, a surrogate, or above U+10FFFF, as the second byte tells. */
static bool is_forbidden(unsigned char first, unsigned char second)
{
    return (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
           (first == 0xf4 && second > 0x8f);
}

/* 0: no well-formed sequence. */
static size_t sequence_length(const char *text, size_t length)
{
    size_t stated = stated_length(text[0]);
    if (stated > length)
        return 0;
    for (size_t i = 1; i < stated; i++)
        if (!is_continuation(text[i]))
            return 0;
    if (stated > 2 && is_forbidden((unsigned char)text[0], (unsigned char)text[1]))
        return 0;
    return stated;
}

static bool is_control(const char *text, size_t length)
{
    unsigned char first = (unsigned char)text[0];
    if (length == 1)
        return first < 0x20 || first == 0x7f;
    return first == 0xc2 && (unsigned char)text[1] < 0xa0;
}

size_t printable_step(const char *text, size_t length, bool *is_clean)
{
    size_t step = sequence_length(text, length);
    *is_clean = step > 0 && !is_control(text, step);
    return step ? step : 1;
}

size_t printable_copy(char *out, size_t size, const char *text, size_t length)
{
    size_t used = 0, step;
    length = strnlen(text, length);
    for (size_t at = 0; at < length; at += step) {
        bool is_clean;
        step = printable_step(text + at, length - at, &is_clean);
        size_t shown = is_clean ? step : 1;
        if (shown >= size - used)
            break;
        memcpy(out + used, is_clean ? text + at : "?", shown);
        used += shown;
    }
    out[used] = 0;
    return used;
}

size_t printable_whole_length(const char *text, size_t length)
{
    size_t tail = 0; /* continuation bytes at the end: a sequence has at most three */
    while (tail < length && tail < 3 && is_continuation(text[length - 1 - tail]))
        tail++;
    if (tail == length)
        return length;
    size_t first = length - 1 - tail;
    return stated_length(text[first]) > tail + 1 ? first : length;
}
