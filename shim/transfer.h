/* SPDX-License-Identifier: MIT */
/*
 * Transfer: what the program set on an easy handle, as far as Curtsy needs to know it, and the
 * table that finds it (handle_table.h).
 */
#ifndef CURTSY_SHIM_TRANSFER_H
#define CURTSY_SHIM_TRANSFER_H

#include "shim/handle_table.h"
#include "shim/real.h"

#include <stdint.h>

/* What decides the method of the first hop, as libcurl keeps it. */
enum request_kind { REQUEST_GET, REQUEST_HEAD, REQUEST_POST, REQUEST_POST_FORM, REQUEST_POST_MIME, REQUEST_PUT };

#define METHOD_SIZE 32

/* The program's settings: exactly what bare libcurl would have in force. */
struct options {
    curl_write_callback write_function; /* NULL: libcurl's default, fwrite */
    void *write_data;                   /* stdout until set */
    curl_write_callback header_function;
    void *header_data;
    bool header_in_body;              /* CURLOPT_HEADER */
    curl_read_callback read_function; /* NULL: libcurl's default, fread */
    void *read_data;                  /* stdin until set */
    curl_seek_callback seek_function;
    void *seek_data;
    curl_ioctl_callback ioctl_function;
    void *ioctl_data;
    bool has_trailers; /* CURLOPT_TRAILERFUNCTION */

    curl_xferinfo_callback xferinfo_function;
    curl_progress_callback progress_function;
    void *progress_data;
    bool no_progress;
    int64_t timeout_ms;
    char *error_buffer;

    char *url; /* owned; capacity below, so that the same URL again allocates nothing */
    size_t url_capacity;
    CURLU *url_handle;
    long port;
    char *default_protocol; /* owned */
    bool path_as_is;

    enum request_kind kind;
    bool upload;
    bool no_body;
    char custom_method[METHOD_SIZE]; /* "": none */
    const char *post_fields;         /* the program's own, or only not NULL where libcurl has a copy */
    bool post_fields_are_copied;
    int64_t post_field_size; /* -1: up to the NUL */
    const curl_mime *mime;
    bool mime_is_copied; /* by libcurl, for a duplicated handle, in a way that nothing is known of */
    int64_t infile_size; /* -1: not known */
    const struct curl_httppost *form;
    bool has_range;
    bool has_resume_from;
    bool has_time_condition;
    bool is_raw;                      /* CURLOPT_HTTP_TRANSFER_DECODING is off */
    const struct curl_slist *headers; /* the program's; read only while its transfer begins */
    bool if_unmodified_since;         /* CURLOPT_TIMECONDITION */
    bool connect_only;
    bool unix_socket;
    bool loopback_proxy; /* CURLOPT_PROXY */

    bool http2_prior_knowledge; /* CURLOPT_HTTP_VERSION */
    bool fresh_connect;
    bool auto_referer;
    char *referer; /* owned */
};

struct governed; /* easy.c: what a governed transfer needs besides; made at the first one */

struct transfer {
    struct handle_entry entry; /* by its handle */
    const struct real *real;
    struct options options;
    uint64_t target_changes;  /* counts changes of what the target is made from */
    uint64_t method_changes;  /* counts settings that the method is made from */
    uint64_t request_changes; /* counts settings that may change what is sent */
    struct governed *governed;
};

static inline CURL *transfer_handle(const struct transfer *transfer)
{
    return (CURL *)(uintptr_t)atomic_load_explicit(&transfer->entry.handle, memory_order_relaxed);
}

/* The record of a handle, or NULL: not made through our hooks, so it passes untouched. */
struct transfer *transfer_find(CURL *handle);

/* A fresh record, everything at libcurl's defaults.  NULL when out of memory (then the handle
 * passes untouched). */
struct transfer *transfer_new(CURL *handle, const struct real *real);

/* As curl_easy_reset does. */
void transfer_reset(struct transfer *transfer);

/* A copy of the settings, for curl_easy_duphandle. */
struct transfer *transfer_copy(const struct transfer *from, CURL *handle);

/* The handle is gone. */
void transfer_forget(struct transfer *transfer);

/* Notes an option that libcurl has accepted. */
void transfer_note_option(struct transfer *transfer, CURLoption option, void *argument);

/* The method of the first hop. */
const char *transfer_method(const struct transfer *transfer);

/* The libcurl that made this handle, or that the caller would have reached. */
const struct real *transfer_real(CURL *handle, const void *return_address);

#endif
