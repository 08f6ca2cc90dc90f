/* SPDX-License-Identifier: MIT */
/*
 * Own retry: is this perform one that the program makes because the one before has failed?  Then it gets a
 * single attempt, so that the program's attempts and ours do not multiply (core/own_retries.h).  A request
 * is the same if it has the same method, URL and, as far as it can be told, body; on which handle, and in which thread,
 * does not matter.
 *
 * Thread-safe; while nothing was ever given up in this process it costs one load.
 */
#ifndef CURTSY_SHIM_OWN_RETRY_H
#define CURTSY_SHIM_OWN_RETRY_H

#include "shim/governed.h"

void own_retry_begin(struct transfer *transfer, int64_t now_ns);

/* It has ended with this step of the governor's. */
void own_retry_end(const struct transfer *transfer, const struct governor_step *last);

#endif
