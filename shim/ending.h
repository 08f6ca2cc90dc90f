/* SPDX-License-Identifier: MIT */
/*
 * Ending: how a perform ends outside libcurl's own, in the words that it has for the same.  Each returns
 * what the program's curl_easy_perform is to return, with the program's error buffer filled.
 */
#ifndef CURTSY_SHIM_ENDING_H
#define CURTSY_SHIM_ENDING_H

#include "shim/governed.h"

CURLcode end_with(const struct transfer *transfer, CURLcode code, const char *message);

/* The program's progress callback asked to abort. */
CURLcode end_by_callback(const struct transfer *transfer);

/* No attempt was made: a real result of libcurl's, whose error buffer says why. */
CURLcode end_unattempted(const struct transfer *transfer, const struct governor_step *step);

/* `code` is what the last attempt came to; what is kept of its response goes to the program now. */
CURLcode end_with_kept(struct transfer *transfer, CURLcode code);

/* Waits for a program that has paused, until it goes on: CURLE_OK, or why it ends meanwhile. */
CURLcode wait_for_program(struct transfer *transfer, const bool *pauses);

#endif
