/* SPDX-License-Identifier: MIT */
/*
 * Failure: what a CURLcode means for a retry.  One code covers very different things (35 and 56 a
 * reset as well as a malformed message, 28 any of four timers), so the OS error and how far the
 * transfer got decide with it.
 */
#ifndef CURTSY_SHIM_FAILURE_H
#define CURTSY_SHIM_FAILURE_H

#include "shim/transfer.h"

#include "core/classify.h"

/* `overall_timeout`: the program's own CURLOPT_TIMEOUT has run out. */
enum failure failure_of(const struct transfer *transfer, CURLcode code, bool overall_timeout);

/* Has a byte of a request been sent in the last perform? */
bool failure_request_was_sent(const struct transfer *transfer);

#endif
