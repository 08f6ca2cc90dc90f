/* SPDX-License-Identifier: MIT */
/*
 * Mime record: what is known of a mime structure of libcurl's and of each of its parts, kept by the hooks
 * of mime.c while the program builds it.
 *
 * A record lives as long as what it is of: it is given up before libcurl frees that, and one whose owner
 * was freed behind our back is given up when its address is handed out again.  Finding a record is
 * thread-safe and takes no lock; all else belongs to the thread that has the structure, with all that is nested in it.
 */
#ifndef CURTSY_SHIM_MIME_RECORD_H
#define CURTSY_SHIM_MIME_RECORD_H

#include "shim/mime.h"
#include "shim/real.h"

struct mime_record;
struct part_record;

/* NULL: nothing is known of it. */
struct mime_record *mime_record_of(const curl_mime *mime);
struct part_record *part_record_of(const curl_mimepart *part);

/* The libcurl that it belongs to. */
const struct real *mime_record_real(const struct mime_record *mime);
const struct real *part_record_real(const struct part_record *part);

/* Just handed out by libcurl.  Out of memory: it stays unknown, and with a part the structure cannot be proven. */
void mime_record_new(const curl_mime *mime, const struct real *real);
void part_record_new(const curl_mimepart *part, struct mime_record *owner);

/* It is about to be freed, with its parts and what is nested in them; or the address is known to be
 * somebody else's by now.  NULL: nothing happens. */
void mime_record_end(struct mime_record *mime);
void part_record_end(struct part_record *part);

/* ------------------------------------------------------- what is done to a part ---- */

/* Something about it changes: its name, its type, how it is encoded. */
void part_record_touch(struct part_record *part);

/* Kept by libcurl as a pointer; NULL: none. */
void part_record_headers(struct part_record *part, const struct curl_slist *headers);

/* Its content is about to be replaced.  What was nested in it is freed by libcurl.  Without any it cannot
 * be sent a second time: libcurl only begins again with what it can seek in, and would fail. */
void part_record_empty(struct part_record *part);

/* And has been replaced: by a copy in libcurl's memory; by a callback that can seek; or by a file. */
void part_record_repeat(struct part_record *part);
void part_record_callback(struct part_record *part, curl_seek_callback seek, void *argument);
void part_record_file(struct part_record *part, const char *path);

/* By a structure; NULL: one that nothing is known of. */
void part_record_nest(struct part_record *part, struct mime_record *nested);
bool part_record_nests(const struct part_record *part, const struct mime_record *nested);

#endif
