/* SPDX-License-Identifier: MIT */
/*
 * Request: what a perform begins with, before anything is waited for or sent: what decides whether it may
 * be repeated, the idempotency key that it is given if the policy says so, and everything of the perform
 * before put back.
 */
#ifndef CURTSY_SHIM_REQUEST_H
#define CURTSY_SHIM_REQUEST_H

#include "shim/governed.h"

/* buckets: as for governor_begin. */
void request_begin(struct transfer *transfer, struct bucket *const *buckets, int64_t now_ns);

/* Has the program changed it since, so that a repeat would not be one? */
bool request_was_changed(const struct transfer *transfer);

#endif
