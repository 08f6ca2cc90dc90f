/* SPDX-License-Identifier: MIT */
/*
 * First response: what getinfo and curl_easy_header told of a response whose body broke off, kept while
 * other attempts go on with that body (shim/resume.h).  The program has seen this response and no other,
 * so this is what it is told of, when libcurl itself already tells of a 206 or of a refusal.
 *
 * What depends on the whole transfer is the whole transfer's: the bytes of all attempts are added up.
 * Times, speeds, addresses, ports and connections are the last attempt's.  Owned by the transfer's thread.
 */
#ifndef CURTSY_SHIM_FIRST_RESPONSE_H
#define CURTSY_SHIM_FIRST_RESPONSE_H

#include "shim/transfer.h"

struct first_response; /* allocated */

/* Notes all that is needed from libcurl, after a perform and before the next.  NULL when out of memory,
 * or when there are more than a thousand headers. */
struct first_response *first_response_take(const struct transfer *transfer);

/* The trailers that came at the end of the last attempt are those of the whole.  What there is no memory for is
 * left out. */
void first_response_add_trailers(struct first_response *first, const struct transfer *transfer);

void first_response_free(struct first_response *first); /* NULL is allowed */

/* Answers as curl_easy_getinfo; *code is its result.  body_bytes: how many bytes of the body the program has had by
 * now, in all attempts.  False: it is none of those that are answered here, ask libcurl. */
bool first_response_getinfo(const struct first_response *first, curl_off_t body_bytes, CURLINFO info, void *argument,
                            CURLcode *code);

/* As curl_easy_header and curl_easy_nextheader with `request` -1 or the last one's number.  What they hand out
 * is good until `first` is freed. */
CURLHcode first_response_header(struct first_response *first, const char *name, size_t index, unsigned origin,
                                int request, struct curl_header **header);
struct curl_header *first_response_nextheader(struct first_response *first, unsigned origin, int request,
                                              struct curl_header *previous);

#endif
