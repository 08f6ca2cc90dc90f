/* SPDX-License-Identifier: MIT */
/*
 * Config IDN: how a host's internationalised name travels.  Sections are named in ASCII, as hosts
 * are on the wire; whoever writes [müller.example] is told that it is xn--mller-kva.example.
 *
 * Only names are converted for which there can be no doubt: letters that are small already, or whose
 * small letter is known here, without combining marks.  What IDNA's tables say about the many others
 * (RFC 5892, UTS #46) is left to those who have the tables.  Pure, thread-safe.
 */
#ifndef CURTSY_CORE_CONFIG_IDN_H
#define CURTSY_CORE_CONFIG_IDN_H

#include <stdbool.h>
#include <stddef.h>

/* "müller.example" in UTF-8 to "xn--mller-kva.example": each label that is not ASCII in Punycode (RFC
 * 3492), small letters everywhere.  False, and out untouched or cut short, if it is not UTF-8, doubtful,
 * or does not fit. */
bool idn_to_ascii(const char *host, size_t length, char *out, size_t size);

#endif
