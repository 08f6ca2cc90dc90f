/* SPDX-License-Identifier: MIT */
/*
 * Section names: one pass from left to right.  The host's end is the first of : / " or blank that
 * is not within the brackets of an IPv6 address.
 */
#include "core/section_name.h"

#include "core/config_idn.h"
#include "core/scan.h"

#include <arpa/inet.h>
#include <stdio.h>

#define LABEL_MAX 63 /* octets between two dots (RFC 1035, section 2.3.4) */
#define NAME_MAX_LENGTH 253

static const char host_expected[] = "a host such as api.example.com, *.example.com or *";
static const char host_without_scheme[] = "a host such as api.example.com, without scheme";
static const char host_without_user[] = "a host such as api.example.com, without user and password";
const char section_name_not_ascii[] = "a host in ASCII, an internationalised name as it travels (xn--...)";
static const char host_too_long[] = "a host of at most 253 characters, and at most 63 between two dots";
static const char host_wildcard[] = "a host such as *.example.com: a * stands for whole labels at the beginning";
static const char address_expected[] = "an IPv6 address, as in [[2001:db8::1]:8443]";
static const char port_expected[] = "a port from 1 to 65535";
static const char path_expected[] = "a path such as /v1/users/*, without blank, query and fragment";
static const char path_too_long[] = "a path of at most 511 characters";
static const char label_expected[] = "a label in double quotes behind the host, as in [api.example.com \"writes\"]";
static const char label_too_long[] = "a label of at most 63 characters";

static bool is_host_char(char c)
{
    return scan_is_letter(c) || scan_is_digit(c) || c == '-' || c == '_';
}

/* Labels with single dots between them. */
static const char *check_host_name(const char *name)
{
    size_t label = 0;
    if (strlen(name) > NAME_MAX_LENGTH)
        return host_too_long;
    for (; *name != '\0'; name++) {
        if ((unsigned char)*name >= 0x80)
            return section_name_not_ascii;
        if (*name == '*')
            return host_wildcard;
        if (*name == '.' ? label == 0 : !is_host_char(*name))
            return host_expected;
        label = *name == '.' ? 0 : label + 1;
        if (label > LABEL_MAX)
            return host_too_long;
    }
    return label > 0 ? NULL : host_expected;
}

static const char *check_host_pattern(const char *host)
{
    if (strcmp(host, "*") == 0)
        return NULL;
    return check_host_name(strncmp(host, "*.", 2) == 0 ? host + 2 : host);
}

bool host_normalise(const char *host, size_t length, char *out, size_t size)
{
    struct in6_addr address;

    if (length >= 2 && host[0] == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    }
    if (length > 1 && host[length - 1] == '.')
        length--;
    if (length == 0 || length >= size || memchr(host, '\0', length) != NULL)
        return false;
    for (size_t i = 0; i < length; i++)
        out[i] = scan_lower(host[i]);
    out[length] = '\0';
    /* The shortest way of writing an address may be the longer one: ::ffff:102:304. */
    char shortest[INET6_ADDRSTRLEN];
    if (strchr(out, ':') != NULL && inet_pton(AF_INET6, out, &address) == 1 &&
        inet_ntop(AF_INET6, &address, shortest, sizeof shortest) != NULL && strlen(shortest) < size)
        strcpy(out, shortest);
    return true;
}

/* user:password@host, which is not looked for in a path: /users/@me. */
static bool has_user(const struct scan *scan)
{
    for (const char *at = scan->at; at < scan->end && memchr("/\" \t", *at, 4) == NULL; at++)
        if (*at == '@')
            return true;
    return false;
}

/* The host, up to a colon, slash, quote or blank. */
static const char *scan_host(struct scan *scan, char host[HOST_PATTERN_SIZE])
{
    const char *from = scan->at;
    bool is_address = scan_peek(scan) == '[';
    struct in6_addr address;

    if (has_user(scan))
        return host_without_user;
    while (!scan_done(scan) && (is_address ? *scan->at != ']' : memchr(":/\" \t", *scan->at, 5) == NULL))
        scan->at++;
    if (is_address && !scan_char(scan, ']'))
        return address_expected;
    size_t length = (size_t)(scan->at - from);
    if (!host_normalise(from, length, host, HOST_PATTERN_SIZE))
        return length >= HOST_PATTERN_SIZE ? host_too_long : host_expected;
    if (is_address)
        return inet_pton(AF_INET6, host, &address) == 1 ? NULL : address_expected;
    if (scan->end - scan->at >= 3 && memcmp(scan->at, "://", 3) == 0)
        return host_without_scheme;
    /* "*." is not "*", although a dot at the end adds nothing otherwise. */
    if (strcmp(host, "*") == 0 && length > 1)
        return host_expected;
    return check_host_pattern(host);
}

/* ":8443", if it is there. */
static const char *scan_port(struct scan *scan, uint16_t *port)
{
    int number;
    *port = 0;
    if (!scan_char(scan, ':'))
        return NULL;
    if (!scan_number(scan, 1, 5, &number) || number < 1 || number > 65535)
        return port_expected;
    if (!scan_done(scan) && memchr("/\" \t", *scan->at, 4) == NULL)
        return port_expected;
    *port = (uint16_t)number;
    return NULL;
}

/* "/v1/search", if it is there.  "/" alone is every path, and a '/' at the end adds nothing to a
 * prefix that ends at a segment's boundary anyway. */
static const char *scan_path(struct scan *scan, char path[SECTION_PATH_SIZE])
{
    size_t length = 0;
    if (scan_peek(scan) == '/') {
        for (; !scan_done(scan) && !scan_is_blank(*scan->at); scan->at++) {
            if ((unsigned char)*scan->at <= 0x20 || (unsigned char)*scan->at >= 0x7f || strchr("?#\"", *scan->at))
                return path_expected;
            if (length == SECTION_PATH_SIZE - 1)
                return path_too_long;
            path[length++] = *scan->at;
        }
    }
    while (length > 0 && path[length - 1] == '/')
        length--;
    path[length] = '\0';
    return NULL;
}

/* "writes" in quotes, if anything is there, up to the end. */
static const char *scan_label(struct scan *scan, char label[SECTION_LABEL_SIZE])
{
    label[0] = '\0';
    if (scan_done(scan))
        return NULL;
    if (!scan_blanks(scan) || !scan_char(scan, '"'))
        return label_expected;
    const char *from = scan->at;
    while (!scan_done(scan) && *scan->at != '"')
        scan->at++;
    size_t length = (size_t)(scan->at - from);
    if (length == 0 || !scan_char(scan, '"') || !scan_done(scan))
        return label_expected;
    if (length >= SECTION_LABEL_SIZE)
        return label_too_long;
    memcpy(label, from, length);
    label[length] = '\0';
    return NULL;
}

static void write_canonical(struct section_name *name)
{
    char port[8] = "";
    bool is_address = strchr(name->host, ':') != NULL;
    bool labelled = name->label[0] != '\0';

    if (name->port != 0)
        snprintf(port, sizeof port, ":%u", (unsigned)name->port);
    snprintf(name->canonical, sizeof name->canonical, "%s%s%s%s%s%s%s%s", is_address ? "[" : "", name->host,
             is_address ? "]" : "", port, name->path, labelled ? " \"" : "", name->label, labelled ? "\"" : "");
}

/* An IPv6 address alone needs no further brackets: [::1] is what [[::1]] is. */
static bool is_bare_address(const struct scan *scan)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    size_t length = (size_t)(scan->end - scan->at);
    if (length >= sizeof text)
        return false;
    memcpy(text, scan->at, length);
    text[length] = '\0';
    return inet_pton(AF_INET6, text, &address) == 1;
}

const char *section_name_parse(const char *text, struct section_name *out)
{
    struct scan scan = scan_text(text, strlen(text));
    scan_trim(&scan);
    size_t length = (size_t)(scan.end - scan.at);

    memset(out, 0, sizeof *out);
    if (scan_equals_ignoring_case(scan.at, length, "default") || scan_equals_ignoring_case(scan.at, length, "curtsy")) {
        out->kind = scan_lower(*scan.at) == 'd' ? SECTION_DEFAULT : SECTION_CURTSY;
        strcpy(out->canonical, out->kind == SECTION_DEFAULT ? "default" : "curtsy");
        return NULL;
    }

    out->kind = SECTION_HOST;
    if (is_bare_address(&scan)) {
        host_normalise(scan.at, length, out->host, sizeof out->host);
        write_canonical(out);
        return NULL;
    }
    const char *expected = scan_host(&scan, out->host);
    if (expected == NULL)
        expected = scan_port(&scan, &out->port);
    if (expected == NULL)
        expected = scan_path(&scan, out->path);
    if (expected == NULL)
        expected = scan_label(&scan, out->label);
    if (expected == NULL)
        write_canonical(out);
    return expected;
}

const char *host_pattern_parse(const char *text, size_t length, char host[HOST_PATTERN_SIZE], uint16_t *port)
{
    struct scan scan = scan_text(text, length);
    scan_trim(&scan);
    const char *expected = scan_host(&scan, host);
    if (expected == NULL)
        expected = scan_port(&scan, port);
    if (expected == NULL && !scan_done(&scan))
        expected = scan_peek(&scan) == '/' ? "a host without path" : host_expected;
    return expected;
}

bool section_name_in_ascii(const char *text, size_t length, char *out, size_t size)
{
    struct scan rest = scan_text(text, length);
    scan_trim(&rest);
    const char *from = rest.at;
    while (!scan_done(&rest) && memchr(":/\" \t", *rest.at, 5) == NULL)
        rest.at++;
    if (!idn_to_ascii(from, (size_t)(rest.at - from), out, size))
        return false;
    size_t used = strlen(out), left = (size_t)(rest.end - rest.at);
    if (left >= size - used)
        return false;
    memcpy(out + used, rest.at, left);
    out[used + left] = '\0';
    return true;
}
