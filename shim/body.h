/* SPDX-License-Identifier: MIT */
/*
 * Body: can this request's body be sent again, byte for byte, and is it proven?  And making it so.
 *
 * libcurl does not rewind anything between two performs: a reader at its end gives an empty body and
 * the transfer still succeeds.  So before a repeat each kind of body is brought to its beginning here:
 *
 *   CURLOPT_POSTFIELDS       is read from the program's memory anew: it has to be what it was;
 *   CURLOPT_COPYPOSTFIELDS   is libcurl's own copy;
 *   CURLOPT_MIMEPOST,
 *   CURLOPT_HTTPPOST         are rewound by libcurl, and have to be made of what they were (mime.h);
 *   any reader               is listened to: what it has given is kept, up to replay_buffer, and given again,
 *                            and it goes on where the repeat goes beyond that.  When it has given more, it is
 *                            sent back to where it began, and has to give what is kept once more: a FILE*
 *                            that libcurl reads by itself, if it is a regular file that has not changed; any other
 *                            by its own seek or ioctl callback.
 *
 * What cannot be proven the same is not sent again.  A body of which nothing was read is at its
 * beginning whatever it is.
 *
 * Only a request that may be repeated at all is listened to or looked at.  Owned by the transfer's
 * thread; nothing here waits.
 */
#ifndef CURTSY_SHIM_BODY_H
#define CURTSY_SHIM_BODY_H

#include "shim/transfer.h"

#include "core/governor.h"

enum body_source { BODY_NONE, BODY_FIELDS, BODY_READER, BODY_MIME, BODY_FORM };

/* What came from the program's reader so far, and where everybody is in it.  Positions count from where
 * the reader was when the perform began. */
struct kept_body {
    char *bytes;
    size_t size, capacity, limit;
    curl_off_t start;     /* of the first byte kept */
    curl_off_t reader_at; /* of the next byte that the reader will give: behind the last one kept, or further on */
    curl_off_t given;     /* of the next byte that libcurl gets */
    bool is_full;         /* nothing more is kept */
    bool has_ended;       /* the reader has said that there is no more */
};

/* The body of the perform under way. */
struct body {
    enum body_source source;
    bool may_repeat;       /* some outcome allows to send the request again */
    bool has_evidence;     /* it can be proven the same... */
    uint64_t evidence;     /* ...by this (FIELDS, MIME, FORM, FILE*) */
    bool is_listened_to;   /* READER: body_on_read and its kin stand in front of the program's callbacks */
    bool reader_called;    /* in this attempt */
    FILE *file;            /* READER that is listened to: what libcurl would read by itself and can seek in, or NULL */
    off_t file_start;      /* where it stood */
    struct kept_body kept; /* READER that is listened to */
};

enum body_source body_source(const struct transfer *transfer);

/* A perform begins with this body. */
void body_begin(struct transfer *transfer, const struct governor_request *request);

/* Are the callbacks of this file to be set in front of the program's? */
bool body_is_listened_to(const struct transfer *transfer);

/* Would a repeat send the same, as far as can be known without disturbing the program's reader? */
bool body_is_repeatable(const struct transfer *transfer, bool request_sent);

/* After an attempt that is to be repeated: to its beginning.  False: it could not be. */
bool body_rewind(struct transfer *transfer);

/* Right before the repeat: is it still what it was? */
bool body_is_unchanged(const struct transfer *transfer);

/* Nobody could rewind it for libcurl, where that finds a connection dead that was kept for long. */
bool body_is_one_shot(const struct transfer *transfer);

/* What was kept is dropped. */
void body_end(struct body *body);

/* The callbacks that libcurl is given; userdata is the struct transfer.  They pass on to those that the
 * program had set when the transfer began. */
size_t body_on_read(char *buffer, size_t size, size_t count, void *transfer);
int body_on_seek(void *transfer, curl_off_t offset, int origin);
curlioerr body_on_ioctl(CURL *handle, int command, void *transfer);

#endif
