/* SPDX-License-Identifier: MIT */
/*
 * Section names: what stands between the brackets of a section's header, and the host patterns
 * within it and in `hosts`.
 *
 *     default | curtsy
 *     HOST [:PORT] [/PATH] ["LABEL"]
 *
 * HOST is a host name, `*.` and a host name, `*`, an IPv4 address, or an IPv6 address in brackets.
 * Upper case and a trailing dot are normalised, IPv6 addresses are written the shortest way
 * (RFC 5952).  Names are ASCII: an internationalised one is written as it travels, xn-- (RFC 5891),
 * and section_name_in_ascii knows how.
 * Pure functions, thread-safe.
 */
#ifndef CURTSY_CORE_SECTION_NAME_H
#define CURTSY_CORE_SECTION_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_PATTERN_SIZE 256 /* a host name has at most 253 characters (RFC 1035, section 2.3.4) */
#define SECTION_PATH_SIZE 512
#define SECTION_LABEL_SIZE 64
#define SECTION_NAME_SIZE 864 /* all of them together */

enum section_kind { SECTION_DEFAULT, SECTION_CURTSY, SECTION_HOST };

struct section_name {
    enum section_kind kind;
    char host[HOST_PATTERN_SIZE]; /* "*" any; no brackets */
    uint16_t port;                /* 0: every port */
    char path[SECTION_PATH_SIZE]; /* "" every path; no '/' at its end */
    char label[SECTION_LABEL_SIZE];
    char canonical[SECTION_NAME_SIZE]; /* the same for every spelling of the same section */
};

/* Returns NULL, or what was expected. */
const char *section_name_parse(const char *text, struct section_name *out);

/* What was expected where the host is not in ASCII. */
extern const char section_name_not_ascii[];

/* HOST [:PORT], the whole of text[0..length).  Returns NULL, or what was expected. */
const char *host_pattern_parse(const char *text, size_t length, char host[HOST_PATTERN_SIZE], uint16_t *port);

/* The same section, or HOST [:PORT], with an internationalised host as it travels: xn--mller-kva.example:8443
 * for müller.example:8443.  False if there is a doubt about it, or it does not fit. */
bool section_name_in_ascii(const char *text, size_t length, char *out, size_t size);

/* Lower-cases, drops brackets and one trailing dot, shortens IPv6 addresses.  False if it is empty
 * or does not fit, or holds a NUL. */
bool host_normalise(const char *host, size_t length, char *out, size_t size);

#endif
