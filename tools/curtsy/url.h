/* SPDX-License-Identifier: MIT */
/*
 * URL: where a request to a URL goes, as the library sees it in a running program: taken apart by
 * libcurl itself, through the library's own code (shim/target.h).
 *
 * libcurl is loaded when it is asked for, so that the command starts on a machine without one.
 */
#ifndef CURTSY_TOOLS_URL_H
#define CURTSY_TOOLS_URL_H

#include "shim/target.h"

/* Loads libcurl: OpenSSL's flavour, or another if that one isn't there.  False with a message. */
bool url_open(char *error, size_t size);

/* "7.88.1", once it is loaded. */
const char *url_libcurl_version(void);

enum url_kind {
    URL_GOVERNED,   /* http or https: `target` is where it goes */
    URL_OTHER,      /* passes untouched; `scheme` says why */
    URL_NOT_PARSED, /* libcurl takes it for no URL */
};

struct url {
    enum url_kind kind;
    struct target target;
    char scheme[32];
    bool has_user; /* user:password@ */
};

/* locale: LC_CTYPE decides how an internationalised name is read, as in any program. */
void url_read(const char *text, struct url *url);

/* Has the URL's query a parameter of one of these names (a list with commas; NULL: none), with a
 * value?  Its name is then in `name`. */
bool url_query_has(const char *text, const char *names, char *name, size_t size);

#endif
