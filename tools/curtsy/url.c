/* SPDX-License-Identifier: MIT */
/*
 * URL: see url.h.  Only libcurl's URL functions are used; they need no curl_global_init.
 */
#include "tools/curtsy/url.h"

#include "core/text_list.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct real real;
static char version[32];

/* The files that programs are linked with: one ABI in three flavours. */
static void *load(char *error, size_t size)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (handle != NULL)
            return handle;
        if (i == 0) {
            const char *why = dlerror();
            snprintf(error, size, "a URL is taken apart by libcurl, and there is none: %s", why != NULL ? why : "");
        }
    }
    return NULL;
}

bool url_open(char *error, size_t size)
{
    void *handle = load(error, size);

    if (handle == NULL)
        return false;
#define FIND(name) real.name = (__typeof__(real.name))(uintptr_t)dlsym(handle, #name)
    FIND(curl_url);
    FIND(curl_url_set);
    FIND(curl_url_get);
    FIND(curl_url_cleanup);
    FIND(curl_free);
    FIND(curl_version_info);
#undef FIND
    if (real.curl_url == NULL || real.curl_url_set == NULL || real.curl_url_get == NULL ||
        real.curl_url_cleanup == NULL || real.curl_free == NULL || real.curl_version_info == NULL) {
        snprintf(error, size, "the libcurl here is older than 7.62, and cannot take a URL apart");
        return false;
    }
    const curl_version_info_data *info = real.curl_version_info(CURLVERSION_NOW);
    real.version = info->version_num;
    snprintf(version, sizeof(version), "%s", info->version);
    return true;
}

const char *url_libcurl_version(void)
{
    return version;
}

/* A part of the URL, to be freed with curl_free, or NULL.  The flags are those of shim/target.c. */
static char *part_of(const char *text, CURLUPart part, bool *is_url)
{
    CURLU *handle = real.curl_url();
    char *value = NULL;

    *is_url = handle != NULL && real.curl_url_set(handle, CURLUPART_URL, text,
                                                  CURLU_NON_SUPPORT_SCHEME | CURLU_GUESS_SCHEME) == CURLUE_OK;
    if (*is_url)
        real.curl_url_get(handle, part, &value, 0);
    real.curl_url_cleanup(handle);
    return value;
}

void url_read(const char *text, struct url *url)
{
    struct transfer transfer = {.real = &real, .options.url = (char *)(uintptr_t)text};
    bool is_url;
    char *scheme = part_of(text, CURLUPART_SCHEME, &is_url);
    char *user = part_of(text, CURLUPART_USER, &is_url);

    memset(url, 0, sizeof(*url));
    snprintf(url->scheme, sizeof(url->scheme), "%s", scheme != NULL ? scheme : "");
    url->has_user = user != NULL && user[0] != '\0';
    real.curl_free(scheme);
    real.curl_free(user);
    if (target_of(&transfer, &url->target))
        url->kind = URL_GOVERNED;
    else
        url->kind = is_url ? URL_OTHER : URL_NOT_PARSED;
}

/* Is the parameter ("name=value", up to `length`) one of the names? */
static bool is_parameter_of(const char *parameter, size_t length, const char *names, char *name, size_t size)
{
    const char *equals = memchr(parameter, '=', length);
    struct scan item;

    while (equals != NULL && equals + 1 < parameter + length && text_list_next(&names, &item)) {
        size_t item_length = (size_t)(item.end - item.at);
        if (item_length == 0 || item_length != (size_t)(equals - parameter) ||
            memcmp(parameter, item.at, item_length) != 0)
            continue;
        snprintf(name, size, "%.*s", (int)item_length, item.at);
        return true;
    }
    return false;
}

bool url_query_has(const char *text, const char *names, char *name, size_t size)
{
    bool is_url, found = false;
    char *query = names != NULL ? part_of(text, CURLUPART_QUERY, &is_url) : NULL;

    for (const char *at = query; at != NULL && *at != '\0' && !found;) {
        size_t length = strcspn(at, "&");
        found = is_parameter_of(at, length, names, name, size);
        at += length + (at[length] == '&');
    }
    if (query != NULL)
        real.curl_free(query);
    return found;
}
