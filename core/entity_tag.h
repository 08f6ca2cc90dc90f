/* SPDX-License-Identifier: MIT */
/*
 * Entity tags (RFC 9110, section 8.8.3).
 *
 * Pure functions; no allocation.
 */
#ifndef CURTSY_CORE_ENTITY_TAG_H
#define CURTSY_CORE_ENTITY_TAG_H

#include <stdbool.h>

/* Is the value of an ETag field one strong tag: "opaque", and neither W/"weak" nor malformed?  Two
 * responses with the same strong tag have the same bytes (section 8.8.1). */
bool entity_tag_is_strong(const char *value);

#endif
