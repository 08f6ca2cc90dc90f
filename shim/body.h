/* SPDX-License-Identifier: MIT */
/*
 * Body: can this request's body be sent again, byte for byte, and is it proven?
 *
 * libcurl does not rewind anything between two performs: a reader at its end gives an empty body
 * and the transfer still succeeds.  So only these count as proven: no body, CURLOPT_POSTFIELDS and
 * COPYPOSTFIELDS (which libcurl reads from memory each time), a reader callback that was never
 * called, and anything at all while not a byte of the request has been sent.
 */
#ifndef CURTSY_SHIM_BODY_H
#define CURTSY_SHIM_BODY_H

#include "shim/transfer.h"

enum body_source { BODY_NONE, BODY_FIELDS, BODY_READER, BODY_MIME };

enum body_source body_source(const struct transfer *transfer);

/* Is the program's own reader callback in use?  Then body_on_read is set in front of it. */
bool body_has_reader_callback(const struct transfer *transfer);

/* A curl_read_callback; userdata is the struct transfer.  Notes the call and passes it on. */
size_t body_on_read(char *buffer, size_t size, size_t count, void *transfer);

bool transfer_body_is_resendable(const struct transfer *transfer, bool request_sent);

#endif
