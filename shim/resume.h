/* SPDX-License-Identifier: MIT */
/*
 * Resume (`resume = on`): a GET whose body broke off is gone on with by another attempt that asks for
 * the rest, under the strong entity tag of what the program has had (RFC 9110, sections 13.1.5 and 14.2):
 * Range and If-Range are added to its headers.  The program sees one response, the first one.
 *
 * The rest is only passed on if it is proven to be the rest of the same bytes, from the same URL:
 *   206 with the same strong tag, from the very next byte to the end of the same whole; or
 *   200 with the same strong tag and the same length, of which as much is skipped as it has had.
 * Anything else is not for the program: what broke off is then the error that it gets, as libcurl put it.
 *
 * Not where Curtsy could not tell the body's bytes from others, or the program asked for a part itself:
 * content and transfer encodings, CURLOPT_HEADER, ranges, conditions.
 *
 * Owned by the transfer's thread.
 */
#ifndef CURTSY_SHIM_RESUME_H
#define CURTSY_SHIM_RESUME_H

#include "shim/transfer.h"

struct resume; /* allocated at the first cut; lives until the next perform, for what is told of it */

/* The perform has ended with `code` in the middle of the body: may it be gone on with?  Notes what is
 * needed for that, and the error. */
bool resume_prepare(struct transfer *transfer, CURLcode code);

/* Before the attempt that goes on. */
void resume_begin_attempt(struct transfer *transfer);

/* The header block of a final answer to it is complete: is what follows provably the rest?  *skip is how
 * many bytes at its beginning the program has had. */
bool resume_is_proven(const struct transfer *transfer, curl_off_t *skip);

/* It has succeeded: is all there, as far as can be known? */
bool resume_is_whole(const struct transfer *transfer);

/* It is given up: the error that the program gets, with its text. */
CURLcode resume_surface(const struct transfer *transfer);

/* Of the whole body, -1: not known. */
curl_off_t resume_total(const struct resume *resume);

struct first_response *resume_first_response(const struct resume *resume);

void resume_free(struct resume *resume); /* NULL is allowed */

#endif
