/* SPDX-License-Identifier: MIT */
/*
 * Request headers: what one of the headers that a program adds to its request says about it.  Whether
 * the request may be repeated depends on an idempotency key and on conditions, whose quota it uses on
 * a credential.  The library looks at the list that a program gave to libcurl, `curtsy explain` at its
 * -H options; both ask here, line by line.
 *
 * A line is what CURLOPT_HTTPHEADER takes, and counts as libcurl sends it: "Name: value"; "Name:"
 * alone, blanks or not behind it, sends nothing (it takes one of libcurl's own headers away); "Name;"
 * sends the header without a value.  Names are compared without regard to case (RFC 9110, section 5.1).
 *
 * Pure functions over NUL-terminated texts, thread-safe; nothing is kept, no value leaves here.
 */
#ifndef CURTSY_CORE_REQUEST_HEADERS_H
#define CURTSY_CORE_REQUEST_HEADERS_H

#include "core/classify.h"
#include "core/scan.h"

/* Sets in *traits what the line adds to it; never takes anything away.
 *   has_idempotency_key: it is key_header (the policy's idempotency_header; NULL or "": none), and has
 *     a value: an empty key identifies nothing;
 *   is_conditional: it is If-Match, If-None-Match or If-Unmodified-Since, also without a value. */
void request_headers_note(struct request_traits *traits, const char *line, const char *key_header);

/* Is the line one of the headers in `names` ("Authorization, X-Api-Key"; NULL: none), with a value?
 * *name (may be NULL) is then its name as written in `names`. */
bool request_headers_carries(const char *line, const char *names, struct scan *name);

#endif
