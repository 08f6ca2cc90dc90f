/* SPDX-License-Identifier: MIT */
/*
 * Object: what the loader knows, and what can be read, of the program and its libraries in memory.
 *
 * Thread-safe, without a lock of our own.  An object that is passed in has to stay loaded meanwhile:
 * the one that calls us does.
 */
#ifndef CURTSY_SHIM_OBJECT_H
#define CURTSY_SHIM_OBJECT_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* The object that an address lies in; NULL: none (code made at run time).  Makes no system call. */
const struct link_map *object_at(const void *address);

/* Tells an object from another one that was loaded into its place after it was closed: how it is laid
 * out, and the names of what it needs.  Copies of one file differ in their own name only. */
uint64_t object_fingerprint(const struct link_map *object);

/* A handle for dlsym, which finds what the object and its dependencies define.  NULL for the main
 * program, whose handle would stand for all there is.  To be closed. */
void *object_open(const struct link_map *object);

/* Keeps an object in memory for good. */
void object_pin(const struct link_map *object);

/* The library's own name (DT_SONAME), or NULL. */
const char *object_soname(const struct link_map *object);

/* Do its definitions have versions? */
bool object_has_versions(const struct link_map *object);

/* The version that its references to a libcurl ask for; NULL: they ask for none. */
const char *object_libcurl_version(const struct link_map *object);

/* Is that the name of a libcurl, of whatever flavour? */
bool object_is_libcurl_name(const char *path);

#endif
