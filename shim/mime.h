/* SPDX-License-Identifier: MIT */
/*
 * Mime: what the bodies that libcurl puts together itself are made of (CURLOPT_MIMEPOST, and the older
 * CURLOPT_HTTPPOST), as far as it decides whether a second perform would send the same again.
 *
 * libcurl rewinds such a body at each perform, and does not say what it is made of.  So the functions
 * that build a mime structure are hooked, and each structure has a record of those of its parts that could differ the
 * second time: files, which may change, and callbacks, which may not be able to begin again.  A list
 * made by curl_formadd is public and is read as it is.
 *
 * A record is found without a lock; its contents belong to whoever owns the structure: libcurl allows
 * one thread at a time.
 */
#ifndef CURTSY_SHIM_MIME_H
#define CURTSY_SHIM_MIME_H

#include "shim/libcurl.h"

#include <stdbool.h>
#include <stdint.h>

/* Would a second perform send the same, as far as can be proven now?  All that comes from memory of
 * libcurl's does; a file does if it is a regular one; a callback if it has a seek function.  False for a
 * structure that was not built through our hooks.
 *
 * *evidence is then a number that is the same the next time only if nothing has changed in between: each
 * file is still the one it was (device, inode, size, times of modification and change), and the structure
 * has the same parts with the same contents. */
bool mime_evidence(const curl_mime *mime, uint64_t *evidence);

/* Has each callback's seek function gone to the beginning?  libcurl asks them too, but only when the answer that
 * was refused is gone. */
bool mime_begins_again(const curl_mime *mime);

/* The same for the list of CURLOPT_HTTPPOST.  Contents that stay in the program's memory (PTRCONTENTS,
 * BUFFER) are part of the evidence; a CURLFORM_STREAM cannot be sent again. */
bool form_evidence(const struct curl_httppost *form, uint64_t *evidence);

#endif
