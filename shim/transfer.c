/* SPDX-License-Identifier: MIT */
/*
 * The table of transfers, and what each option means for us.  How the request options act on each
 * other (POST after UPLOAD, NOBODY after POST ...) follows libcurl's own setopt.
 */
#include "shim/transfer.h"

#include "shim/governed.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is not done for each request. */
#define OFF_THE_SHORT_WAY __attribute__((noinline))

static struct handle_table transfers;

struct transfer *transfer_find(CURL *handle)
{
    return handle_find(&transfers, handle);
}

static void set_defaults(struct options *options)
{
    char *url = options->url;
    size_t url_capacity = options->url_capacity;
    *options = (struct options){
        .write_data = stdout,
        .read_data = stdin,
        .no_progress = true,
        .post_field_size = -1,
        .infile_size = -1,
        .url = url,
        .url_capacity = url_capacity,
    };
    if (url)
        url[0] = '\0';
}

static void drop_contents(struct transfer *transfer)
{
    free(transfer->options.url);
    free(transfer->options.default_protocol);
    free(transfer->options.referer);
    governed_free(transfer->governed);
    transfer->options = (struct options){.url = NULL};
    transfer->governed = NULL;
}

struct transfer *transfer_new(CURL *handle, const struct real *real)
{
    /* A handle that libcurl freed behind our back may have left its record. */
    struct transfer *transfer = transfer_find(handle);
    if (transfer)
        drop_contents(transfer);
    else
        transfer = handle_add(&transfers, handle, sizeof *transfer);
    if (!transfer)
        return NULL;
    transfer->real = real;
    set_defaults(&transfer->options);
    transfer->target_changes++;
    return transfer;
}

void transfer_reset(struct transfer *transfer)
{
    free(transfer->options.default_protocol);
    free(transfer->options.referer);
    set_defaults(&transfer->options);
    governed_reset(transfer->governed);
    transfer->target_changes++;
    transfer->method_changes++;
    transfer->request_changes++;
}

void transfer_forget(struct transfer *transfer)
{
    drop_contents(transfer);
    transfer->real = NULL;
    handle_give_up(&transfer->entry);
}

static bool has_url(const struct transfer *transfer, const char *url)
{
    const char *current = transfer->options.url ? transfer->options.url : "";
    return strcmp(current, url) == 0;
}

static OFF_THE_SHORT_WAY void change_url(struct transfer *transfer, const char *url)
{
    struct options *options = &transfer->options;
    transfer->target_changes++;
    size_t needed = strlen(url) + 1;
    if (needed > options->url_capacity) {
        char *larger = realloc(options->url, needed);
        if (!larger) { /* Not knowing the URL, the transfer passes untouched. */
            if (options->url)
                options->url[0] = '\0';
            return;
        }
        options->url = larger;
        options->url_capacity = needed;
    }
    memcpy(options->url, url, needed);
}

static void set_url(struct transfer *transfer, const char *url)
{
    if (!url)
        url = "";
    if (!has_url(transfer, url))
        change_url(transfer, url);
}

struct transfer *transfer_copy(const struct transfer *from, CURL *handle)
{
    struct transfer *copy = transfer_new(handle, from->real);
    if (!copy)
        return NULL;
    char *url = copy->options.url;
    size_t url_capacity = copy->options.url_capacity;
    copy->options = from->options;
    copy->options.url = url;
    copy->options.url_capacity = url_capacity;
    copy->options.default_protocol = from->options.default_protocol ? strdup(from->options.default_protocol) : NULL;
    copy->options.referer = from->options.referer ? strdup(from->options.referer) : NULL;
    /* libcurl gives the copy a CURLU of its own, which only it knows; the copy passes untouched
     * until the program sets a URL. */
    copy->options.url_handle = NULL;
    copy->options.mime_is_copied = from->options.mime != NULL;
    set_url(copy, from->options.url_handle ? NULL : from->options.url);
    return copy;
}

static void set_text(char **field, const char *value)
{
    free(*field);
    *field = value ? strdup(value) : NULL;
}

/* A copy that is to be larger than it was made is none any more. */
static void note_post_field_size(struct options *options, int64_t size)
{
    if (options->post_fields_are_copied && size > options->post_field_size)
        options->post_fields = NULL;
    options->post_field_size = size;
}

/* The options that choose the method and the body. */
static void note_request_option(struct transfer *transfer, CURLoption option, void *argument)
{
    struct options *options = &transfer->options;
    bool on = argument != NULL;
    switch ((int)option) {
    case CURLOPT_HTTPGET:
        if (on) {
            options->kind = REQUEST_GET;
            options->upload = options->no_body = false;
        }
        break;
    case CURLOPT_POST:
        options->kind = on ? REQUEST_POST : REQUEST_GET;
        options->upload = false;
        options->no_body = options->no_body && !on;
        break;
    case CURLOPT_PUT:
    case CURLOPT_UPLOAD:
        options->upload = on;
        options->kind = on ? REQUEST_PUT : REQUEST_GET;
        options->no_body = options->no_body && !on;
        break;
    case CURLOPT_NOBODY:
        options->no_body = on;
        if (on)
            options->kind = REQUEST_HEAD;
        else if (options->kind == REQUEST_HEAD)
            options->kind = REQUEST_GET;
        break;
    case CURLOPT_HTTPPOST:
        options->form = argument;
        options->kind = REQUEST_POST_FORM;
        options->no_body = false;
        break;
    case CURLOPT_MIMEPOST:
        options->mime = argument;
        options->mime_is_copied = false;
        options->kind = REQUEST_POST_MIME;
        options->no_body = false;
        break;
    case CURLOPT_POSTFIELDS:
    case CURLOPT_COPYPOSTFIELDS:
        options->post_fields = argument;
        options->post_fields_are_copied = option == CURLOPT_COPYPOSTFIELDS;
        options->kind = REQUEST_POST;
        break;
    case CURLOPT_POSTFIELDSIZE:
    case CURLOPT_POSTFIELDSIZE_LARGE:
        note_post_field_size(options, (int64_t)(intptr_t)argument);
        break;
    case CURLOPT_INFILESIZE:
    case CURLOPT_INFILESIZE_LARGE:
        options->infile_size = (int64_t)(intptr_t)argument;
        break;
    case CURLOPT_CUSTOMREQUEST:
        snprintf(options->custom_method, sizeof options->custom_method, "%s", on ? (const char *)argument : "");
        break;
    default:
        return;
    }
    transfer->method_changes++;
}

/* The options that say where it goes. */
static void note_target_option(struct transfer *transfer, CURLoption option, void *argument)
{
    struct options *options = &transfer->options;
    switch ((int)option) {
    case CURLOPT_CURLU: /* goes before CURLOPT_URL, whichever was set last */
        options->url_handle = argument;
        break;
    case CURLOPT_PORT:
        options->port = (long)(intptr_t)argument;
        break;
    case CURLOPT_DEFAULT_PROTOCOL:
        set_text(&options->default_protocol, argument);
        break;
    case CURLOPT_PATH_AS_IS:
        options->path_as_is = argument != NULL;
        break;
    case CURLOPT_UNIX_SOCKET_PATH:
    case CURLOPT_ABSTRACT_UNIX_SOCKET:
        options->unix_socket = argument != NULL;
        break;
    case CURLOPT_CONNECT_ONLY:
        options->connect_only = argument != NULL;
        break;
    default:
        return;
    }
    transfer->target_changes++;
}

/* "http://user:word@127.0.0.1:3128": whose refusal to connect is no reason to wait. */
static bool is_on_loopback(const char *proxy)
{
    const char *host = proxy ? strstr(proxy, "://") : NULL;
    host = host ? host + 3 : proxy;
    const char *at = host ? strrchr(host, '@') : NULL;
    if (at)
        host = at + 1;
    return host &&
           (strncmp(host, "127.", 4) == 0 || strncmp(host, "localhost", 9) == 0 || strncmp(host, "[::1]", 5) == 0);
}

static void note_proxy(struct transfer *transfer, const char *proxy)
{
    bool is_loopback = is_on_loopback(proxy);
    if (is_loopback != transfer->options.loopback_proxy)
        transfer->target_changes++;
    transfer->options.loopback_proxy = is_loopback;
}

/* How a connection is used, which a retry may have to change for an attempt. */
static void note_connection_option(struct transfer *transfer, CURLoption option, void *argument)
{
    struct options *options = &transfer->options;
    switch ((int)option) {
    case CURLOPT_HTTP_VERSION:
        options->http2_prior_knowledge = (uintptr_t)argument == CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
        break;
    case CURLOPT_FRESH_CONNECT:
        options->fresh_connect = argument != NULL;
        break;
    case CURLOPT_AUTOREFERER:
        options->auto_referer = argument != NULL;
        break;
    case CURLOPT_PROXY:
        note_proxy(transfer, argument);
        break;
    case CURLOPT_REFERER:
        set_text(&options->referer, argument);
        break;
    default:
        break;
    }
}

/* Everything that shapes a request, but for what is given to callbacks. */
static void note_shaping_option(struct transfer *transfer, CURLoption option, void *argument)
{
    transfer->request_changes++;
    note_request_option(transfer, option, argument);
    note_target_option(transfer, option, argument);
    note_connection_option(transfer, option, argument);
}

static OFF_THE_SHORT_WAY void note_other_option(struct transfer *transfer, CURLoption option, void *argument)
{
    struct options *options = &transfer->options;
    uintptr_t number = (uintptr_t)argument;
    switch ((int)option) {
    case CURLOPT_WRITEFUNCTION:
        options->write_function = (curl_write_callback)number;
        break;
    case CURLOPT_WRITEDATA:
        options->write_data = argument;
        break;
    case CURLOPT_HEADERFUNCTION:
        options->header_function = (curl_write_callback)number;
        break;
    case CURLOPT_HEADERDATA:
        options->header_data = argument;
        break;
    case CURLOPT_HEADER:
        options->header_in_body = number != 0;
        break;
    case CURLOPT_READFUNCTION:
        options->read_function = (curl_read_callback)number;
        break;
    case CURLOPT_READDATA:
        options->read_data = argument;
        break;
    case CURLOPT_SEEKFUNCTION:
        options->seek_function = (curl_seek_callback)number;
        break;
    case CURLOPT_SEEKDATA:
        options->seek_data = argument;
        break;
    case CURLOPT_IOCTLFUNCTION:
        options->ioctl_function = (curl_ioctl_callback)number;
        break;
    case CURLOPT_IOCTLDATA:
        options->ioctl_data = argument;
        break;
    case CURLOPT_TRAILERFUNCTION:
        options->has_trailers = number != 0;
        break;
    case CURLOPT_XFERINFOFUNCTION:
        options->xferinfo_function = (curl_xferinfo_callback)number;
        break;
    case CURLOPT_PROGRESSFUNCTION:
        options->progress_function = (curl_progress_callback)number;
        break;
    case CURLOPT_PROGRESSDATA: /* the same option as CURLOPT_XFERINFODATA */
        options->progress_data = argument;
        break;
    case CURLOPT_NOPROGRESS:
        options->no_progress = number != 0;
        break;
    case CURLOPT_TIMEOUT:
        options->timeout_ms = (int64_t)number * 1000;
        break;
    case CURLOPT_TIMEOUT_MS:
        options->timeout_ms = number > UINT_MAX ? (int64_t)UINT_MAX : (int64_t)number;
        break;
    case CURLOPT_ERRORBUFFER:
        options->error_buffer = argument;
        break;
    case CURLOPT_HTTPHEADER:
        options->headers = argument;
        transfer->request_changes++;
        break;
    case CURLOPT_TIMECONDITION:
        options->if_unmodified_since = number == CURL_TIMECOND_IFUNMODSINCE;
        options->has_time_condition = number != CURL_TIMECOND_NONE;
        transfer->request_changes++;
        break;
    case CURLOPT_RANGE:
        options->has_range = argument != NULL;
        transfer->request_changes++;
        break;
    case CURLOPT_HTTP_TRANSFER_DECODING:
        options->is_raw = number == 0;
        transfer->request_changes++;
        break;
    case CURLOPT_RESUME_FROM:
    case CURLOPT_RESUME_FROM_LARGE:
        options->has_resume_from = number != 0;
        transfer->request_changes++;
        break;
    /* What does not change the request. */
    case CURLOPT_PRIVATE:
    case CURLOPT_VERBOSE:
    case CURLOPT_STDERR:
    case CURLOPT_DEBUGFUNCTION:
    case CURLOPT_DEBUGDATA:
    case CURLOPT_FAILONERROR:
    case CURLOPT_FOLLOWLOCATION:
    case CURLOPT_MAXREDIRS:
    case CURLOPT_NOSIGNAL:
    case CURLOPT_BUFFERSIZE:
    case CURLOPT_LOW_SPEED_LIMIT:
    case CURLOPT_LOW_SPEED_TIME:
    case CURLOPT_CONNECTTIMEOUT:
    case CURLOPT_CONNECTTIMEOUT_MS:
    case CURLOPT_SOCKOPTFUNCTION:
    case CURLOPT_SOCKOPTDATA:
    case CURLOPT_OPENSOCKETFUNCTION:
    case CURLOPT_OPENSOCKETDATA:
    case CURLOPT_CLOSESOCKETFUNCTION:
    case CURLOPT_CLOSESOCKETDATA:
    case CURLOPT_PREREQFUNCTION:
    case CURLOPT_PREREQDATA:
    case CURLOPT_MAX_SEND_SPEED_LARGE:
    case CURLOPT_MAX_RECV_SPEED_LARGE:
        break;
    default:
        note_shaping_option(transfer, option, argument);
        break;
    }
}

/* The URL is what most programs set for each request. */
void transfer_note_option(struct transfer *transfer, CURLoption option, void *argument)
{
    if (option != CURLOPT_URL) {
        note_other_option(transfer, option, argument);
        return;
    }
    transfer->request_changes++;
    set_url(transfer, argument);
}

const char *transfer_method(const struct transfer *transfer)
{
    const struct options *options = &transfer->options;
    if (options->custom_method[0])
        return options->custom_method;
    if (options->upload)
        return "PUT";
    if (options->no_body)
        return "HEAD";
    switch (options->kind) {
    case REQUEST_HEAD:
        return "HEAD";
    case REQUEST_POST:
    case REQUEST_POST_FORM:
    case REQUEST_POST_MIME:
        return "POST";
    case REQUEST_PUT:
        return "PUT";
    case REQUEST_GET:
        break;
    }
    return "GET";
}

const struct real *transfer_real(CURL *handle, const void *return_address)
{
    struct transfer *transfer = transfer_find(handle);
    return transfer ? transfer->real : real_of_caller(return_address);
}
