/* SPDX-License-Identifier: MIT */
/*
 * Policy view: an effective policy's values for people and for scripts: each as one would write it,
 * where it was said, and whether it is the default.
 */
#ifndef CURTSY_TOOLS_POLICY_VIEW_H
#define CURTSY_TOOLS_POLICY_VIEW_H

#include "core/policy.h"

#include <jansson.h>

#define VALUE_TEXT_SIZE 512

/* The value as it would be written in ratelimit.ini. */
const char *policy_value_text(const struct policy *values, enum policy_key key, char buffer[VALUE_TEXT_SIZE]);

/* Is that what nobody had to write? */
bool policy_value_is_default(const struct policy *values, enum policy_key key);

/* Lays the environment's mode (CURTSY_MODE, may be NULL or nonsense) over the sections': the less
 * intrusive one wins, and the origin says which. */
void policy_apply_mode(struct resolved_policy *resolved, const char *mode);

/* Every key, in the table's order: {"max_wait": {"value": "90s", "origin": "FILE:LINE" or "built-in",
 * "default": ..., "in_force": ...}, ...}; in_force is false for a key that this version only accepts. */
json_t *policy_values_json(const struct resolved_policy *resolved);

/* [{"rate_per_s", "burst", "quota" (null for a plain rate), "window_s"}, ...], the longest window first. */
json_t *policy_limits_json(const struct limits *limits);

#endif
