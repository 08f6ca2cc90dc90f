/* SPDX-License-Identifier: MIT */
/*
 * Scan: a cursor over a piece of text that need not end in NUL, and the few steps that every parser
 * of header values takes.  A step that fails leaves the cursor where it was.
 *
 * ASCII only and without locale: isdigit and its kin answer by LC_CTYPE, which is the program's.
 */
#ifndef CURTSY_CORE_SCAN_H
#define CURTSY_CORE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct scan {
    const char *at;
    const char *end;
};

static inline struct scan scan_text(const char *text, size_t length)
{
    return (struct scan){.at = text, .end = text + length};
}

static inline bool scan_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool scan_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline char scan_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline bool scan_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline bool scan_done(const struct scan *scan)
{
    return scan->at == scan->end;
}

/* The next character; NUL at the end. */
static inline char scan_peek(const struct scan *scan)
{
    return scan_done(scan) ? '\0' : *scan->at;
}

static inline bool scan_char(struct scan *scan, char c)
{
    if (scan_done(scan) || *scan->at != c)
        return false;
    scan->at++;
    return true;
}

/* Skips blanks; false if there was none. */
static inline bool scan_blanks(struct scan *scan)
{
    const char *from = scan->at;
    while (!scan_done(scan) && scan_is_blank(*scan->at))
        scan->at++;
    return scan->at != from;
}

/* A run of min to max digits that no further digit follows.  max is at most 9. */
static inline bool scan_number(struct scan *scan, int min, int max, int *out)
{
    int count = 0, value = 0;
    while (count < scan->end - scan->at && scan_is_digit(scan->at[count])) {
        if (count == max)
            return false;
        value = value * 10 + (scan->at[count++] - '0');
    }
    if (count < min)
        return false;
    scan->at += count;
    *out = value;
    return true;
}

/* A run of letters; its length, 0 if there is none. */
static inline size_t scan_word(struct scan *scan, const char **out)
{
    *out = scan->at;
    while (!scan_done(scan) && scan_is_letter(*scan->at))
        scan->at++;
    return (size_t)(scan->at - *out);
}

/* Eight characters as one number, to be looked at together. */
static inline uint64_t scan_eight(const char *text)
{
    uint64_t eight;
    memcpy(&eight, text, sizeof(eight));
    return eight;
}

static inline uint64_t scan_eight_times(unsigned char c)
{
    return UINT64_C(0x0101010101010101) * c;
}

/* Takes blanks off both ends. */
static inline void scan_trim(struct scan *scan)
{
    scan_blanks(scan);
    while (scan->end > scan->at && scan_is_blank(scan->end[-1]))
        scan->end--;
}

/* The two cases of a letter differ in one bit. */
static inline bool scan_is_same_ignoring_case(char a, char b)
{
    return a == b || ((a ^ b) == 0x20 && scan_is_letter(a));
}

/* Does `word` begin with the `length` characters of `text`? */
static inline bool scan_begins_ignoring_case(const char *word, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (word[i] == '\0' || !scan_is_same_ignoring_case(text[i], word[i]))
            return false;
    return true;
}

static inline bool scan_equals_ignoring_case(const char *text, size_t length, const char *word)
{
    return scan_begins_ignoring_case(word, text, length) && word[length] == '\0';
}

/* "+0200", "-08:00": seconds east of Greenwich. */
static inline bool scan_utc_offset(struct scan *scan, int *offset_s)
{
    int hours, minutes;
    bool west = scan_char(scan, '-');
    if (!west && !scan_char(scan, '+'))
        return false;
    if (scan_number(scan, 4, 4, &hours)) {
        minutes = hours % 100;
        hours /= 100;
    } else if (!scan_number(scan, 2, 2, &hours) || !scan_char(scan, ':') || !scan_number(scan, 2, 2, &minutes)) {
        return false;
    }
    if (hours > 23 || minutes > 59)
        return false;
    *offset_s = (hours * 3600 + minutes * 60) * (west ? -1 : 1);
    return true;
}

#endif
