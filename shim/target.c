/* SPDX-License-Identifier: MIT */
/*
 * Asking libcurl about a URL.  The flags are those that libcurl itself parses a transfer's URL
 * with, so what it would refuse is refused here too, and then the program gets libcurl's own error.
 */
#include "shim/target.h"

#include "core/policy.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Since 7.88.0 curl_url_get can give a host as it goes over the wire. */
#define VERSION_PUNYCODE 0x075800
#ifndef CURLU_PUNYCODE
#define CURLU_PUNYCODE (1 << 12)
#endif

/* libcurl's own test: does the text begin with a scheme and a colon, and a slash after it? */
static bool has_scheme(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || (length && text[length] && strchr("+-.", text[length])))
        length++;
    return length && isalpha((unsigned char)text[0]) && text[length] == ':' && text[length + 1] == '/';
}

static bool parse(const struct real *real, const struct options *options, CURLU *url)
{
    char with_scheme[4096];
    const char *text = options->url;
    unsigned flags = CURLU_NON_SUPPORT_SCHEME | CURLU_GUESS_SCHEME;
    if (options->path_as_is)
        flags |= CURLU_PATH_AS_IS;
    if (options->default_protocol && !has_scheme(text)) {
        size_t protocol_length = strlen(options->default_protocol);
        size_t length = strlen(text);
        if (protocol_length + 3 + length >= sizeof with_scheme)
            return false;
        memcpy(with_scheme, options->default_protocol, protocol_length);
        memcpy(with_scheme + protocol_length, "://", 3);
        memcpy(with_scheme + protocol_length + 3, text, length + 1);
        text = with_scheme;
    }
    return real->curl_url_set(url, CURLUPART_URL, text, flags) == CURLUE_OK;
}

static bool scheme_is_http(const struct real *real, CURLU *url, bool *is_https)
{
    char *scheme = NULL;
    if (real->curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK || !scheme)
        return false;
    *is_https = strcmp(scheme, "https") == 0;
    bool is_http = *is_https || strcmp(scheme, "http") == 0;
    real->curl_free(scheme);
    return is_http;
}

static bool get_host(const struct real *real, CURLU *url, struct target *target)
{
    char *host = NULL;
    /* A libcurl without IDN cannot convert, and will not connect either. */
    if (real->version < VERSION_PUNYCODE || real->curl_url_get(url, CURLUPART_HOST, &host, CURLU_PUNYCODE) != CURLUE_OK)
        real->curl_url_get(url, CURLUPART_HOST, &host, 0);
    if (!host)
        return false;
    char *zone = strchr(host, '%'); /* of an IPv6 address; not part of whose quota it is */
    size_t length = zone && host[0] == '[' ? (size_t)(zone - host) : strlen(host);
    if (zone && host[0] == '[')
        host[length++] = ']';
    bool fits = policy_normalise_host(host, length, target->host, sizeof target->host);
    real->curl_free(host);
    return fits;
}

static void get_port(const struct real *real, CURLU *url, long own_port, bool is_https, struct target *target)
{
    char *port = NULL;
    long number = is_https ? 443 : 80;
    if (real->curl_url_get(url, CURLUPART_PORT, &port, 0) == CURLUE_OK && port) {
        number = strtol(port, NULL, 10);
        real->curl_free(port);
    }
    if (own_port > 0) /* CURLOPT_PORT */
        number = own_port;
    target->port = (uint16_t)number;
}

static void get_path(const struct real *real, CURLU *url, struct target *target)
{
    char *path = NULL;
    strcpy(target->path, "/");
    if (real->curl_url_get(url, CURLUPART_PATH, &path, 0) != CURLUE_OK || !path)
        return;
    size_t length = strlen(path);
    if (length >= sizeof target->path) {
        length = sizeof target->path - 1;
        while (length > 1 && path[length] != '/')
            length--;
    }
    if (path[0] == '/') {
        memcpy(target->path, path, length);
        target->path[length] = '\0';
    }
    real->curl_free(path);
}

static bool host_is_loopback(const char *host)
{
    size_t length = strlen(host);
    const char *local = "localhost";
    size_t local_length = strlen(local);
    if (strcmp(host, "::1") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, local) == 0)
        return true;
    return length > local_length && host[length - local_length - 1] == '.' &&
           strcmp(host + length - local_length, local) == 0;
}

static bool has_url_functions(const struct real *real)
{
    return real->curl_url && real->curl_url_set && real->curl_url_get && real->curl_url_cleanup && real->curl_free;
}

static bool take_apart(const struct real *real, CURLU *url, const struct options *options, struct target *target)
{
    bool is_https = false;
    if (!scheme_is_http(real, url, &is_https) || !get_host(real, url, target))
        return false;
    get_port(real, url, options ? options->port : 0, is_https, target);
    get_path(real, url, target);
    target->is_loopback = (options && options->unix_socket) || host_is_loopback(target->host);
    return true;
}

bool target_of(const struct transfer *transfer, struct target *target)
{
    const struct real *real = transfer->real;
    const struct options *options = &transfer->options;
    if (options->connect_only || !has_url_functions(real))
        return false;
    if (options->url_handle)
        return take_apart(real, options->url_handle, options, target);
    if (!options->url || !options->url[0])
        return false;
    CURLU *url = real->curl_url();
    if (!url)
        return false;
    bool ours = parse(real, options, url) && take_apart(real, url, options, target);
    real->curl_url_cleanup(url);
    return ours;
}

bool target_of_url(const struct real *real, const char *text, struct target *target)
{
    CURLU *url = has_url_functions(real) ? real->curl_url() : NULL;
    if (!url)
        return false;
    bool ours = real->curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
                take_apart(real, url, NULL, target);
    real->curl_url_cleanup(url);
    return ours;
}

void target_write_authority(const struct target *target, char authority[TARGET_AUTHORITY_SIZE])
{
    bool is_usual = target->port == 80 || target->port == 443;
    bool is_address = strchr(target->host, ':');
    if (is_usual)
        snprintf(authority, TARGET_AUTHORITY_SIZE, "%s", target->host);
    else
        snprintf(authority, TARGET_AUTHORITY_SIZE, is_address ? "[%s]:%u" : "%s:%u", target->host,
                 (unsigned)target->port);
}
