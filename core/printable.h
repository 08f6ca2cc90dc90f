/* SPDX-License-Identifier: MIT */
/*
 * Printable: what may be shown of a text that is not to be trusted.  Well-formed UTF-8 without
 * control characters passes; each character that is something else becomes one '?', so that nobody
 * can forge a line, move a terminal's cursor or break what is printed around the text.
 *
 * Pure functions: no locale, no allocation, thread-safe and async-signal-safe.
 */
#ifndef CURTSY_CORE_PRINTABLE_H
#define CURTSY_CORE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes that the first character of `text` takes, at least 1; length: at least 1.  *is_clean: it
 * may be shown as it is.  UTF-8 as in RFC 3629, section 4; control characters are those of Unicode
 * (C0, DEL, C1). */
size_t printable_step(const char *text, size_t length, bool *is_clean);

/* Copies up to a NUL or `length` bytes and terminates the copy; what does not fit in `size` (at
 * least 1) is cut, not within a character.  Returns the copy's length.  A copy of a copy is equal. */
size_t printable_copy(char *out, size_t size, const char *text, size_t length);

/* The length of `text` without a character at its end that lacks its last bytes: that is how a text
 * ends that was cut without a look. */
size_t printable_whole_length(const char *text, size_t length);

#endif
