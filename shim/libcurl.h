/* SPDX-License-Identifier: MIT */
/*
 * curl's own headers, for code that defines functions of the same names: its type-checking macros
 * and its three-argument wrappers (which exist so that C++ cannot call the variadic functions
 * wrongly) are taken away, and nothing is marked deprecated.
 */
#ifndef CURTSY_SHIM_LIBCURL_H
#define CURTSY_SHIM_LIBCURL_H

#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt
#undef curl_share_setopt
#undef curl_multi_socket

#define EXPORTED __attribute__((visibility("default")))

#endif
