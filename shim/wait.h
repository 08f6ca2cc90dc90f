/* SPDX-License-Identifier: MIT */
/*
 * Wait: how curl_easy_perform waits: by poll() with no descriptors (a sandbox that lets libcurl
 * work allows poll, and may forbid nanosleep and futex), in slices, so that the program's progress
 * callback goes on being called and its abort is obeyed, and so that a word of the server's to
 * another process, or the operator's, is seen.  Signals are handled by the program as ever; errno
 * is preserved.
 */
#ifndef CURTSY_SHIM_WAIT_H
#define CURTSY_SHIM_WAIT_H

#include "shim/transfer.h"

/* Waits until until_ns (CLOCK_BOOTTIME) or the end of one slice, whichever is first.  False when
 * the program's progress callback asked to abort. */
bool wait_slice(struct transfer *transfer, int64_t until_ns);

#endif
