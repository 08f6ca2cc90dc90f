/* SPDX-License-Identifier: MIT */
/*
 * Response: header blocks as text, the way `curl -sI URL` and `curl -si URL` print them.
 *
 * Lines end in LF or CRLF.  Of several blocks (a proxy's answer to CONNECT, 1xx, redirects,
 * authentication rounds) the last one counts; one follows another if the line after its blank line
 * is a status line, and whatever else follows is a body, and not read.  A block without a status line
 * is taken as one of unknown status.  Folded lines (RFC 9112, section 5.2) are joined by a blank.
 */
#ifndef CURTSY_TOOLS_RESPONSE_H
#define CURTSY_TOOLS_RESPONSE_H

#include "core/headers.h"

#include <stdio.h>

struct response {
    int status; /* 0: there was no status line that could be read */
    struct headers headers;
};

/* Reads up to the first line that belongs to no header block, or to the end.  False if there is no
 * header at all: neither a status line nor a field.  See ferror() for whether the stream failed. */
bool response_read(FILE *stream, struct response *response);

#endif
