/* SPDX-License-Identifier: MIT */
/*
 * Progress: what the program's progress callback is told where libcurl cannot tell it: while a transfer
 * waits, while the body of a refused response is drained, of which the program is to know nothing, and in an
 * attempt that goes on with a body that broke off (shim/resume.h), whose bytes libcurl counts from the
 * beginning.
 */
#ifndef CURTSY_SHIM_PROGRESS_H
#define CURTSY_SHIM_PROGRESS_H

#include "shim/transfer.h"

/* Does the program want to be told? */
static inline bool progress_is_wanted(const struct options *options)
{
    return !options->no_progress && (options->xferinfo_function || options->progress_function);
}

/* While the transfer waits.  False: the program asked to abort. */
bool progress_tell_waiting(const struct transfer *transfer);

/* A curl_xferinfo_callback; userdata is the struct transfer. */
int progress_on_attempt(void *transfer, curl_off_t download_total, curl_off_t downloaded, curl_off_t upload_total,
                        curl_off_t uploaded);

#endif
