/* SPDX-License-Identifier: MIT */
/*
 * Target: where the program's next transfer would go, as sections tell requests apart.  The URL is
 * taken apart by the very libcurl that will use it (its curl_url), with the same flags, so that it
 * and Curtsy agree on every odd one: guessed schemes, CURLU handles, CURLOPT_DEFAULT_PROTOCOL,
 * CURLOPT_PORT.
 */
#ifndef CURTSY_SHIM_TARGET_H
#define CURTSY_SHIM_TARGET_H

#include "shim/transfer.h"

#define TARGET_HOST_SIZE 256
#define TARGET_PATH_SIZE 1024

struct target {
    char host[TARGET_HOST_SIZE]; /* normalised; no brackets */
    uint16_t port;
    char path[TARGET_PATH_SIZE]; /* without query and fragment; cut, at a segment, if longer */
    bool is_loopback;
};

/* The host, with its port behind it unless that is a usual one (80, 443): two services on one machine
 * are two. */
#define TARGET_AUTHORITY_SIZE (TARGET_HOST_SIZE + sizeof "[]:65535")
void target_write_authority(const struct target *target, char authority[TARGET_AUTHORITY_SIZE]);

/* False when it is not http or https to an ordinary host: then the transfer passes untouched. */
bool target_of(const struct transfer *transfer, struct target *target);

/* The same for an absolute URL that libcurl itself has come to (CURLINFO_EFFECTIVE_URL). */
bool target_of_url(const struct real *real, const char *url, struct target *target);

#endif
