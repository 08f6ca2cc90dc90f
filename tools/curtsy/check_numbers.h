/* SPDX-License-Identifier: MIT */
/*
 * Numbers of curtsy check: what a section's quota comes to, in tokens and seconds, for both shapes: the
 * token bucket, and the exact sliding window.
 */
#ifndef CURTSY_TOOLS_CHECK_NUMBERS_H
#define CURTSY_TOOLS_CHECK_NUMBERS_H

#include "core/policy.h"

#include <jansson.h>

/* Nothing of a section that has no say in how many requests may go, and how long they wait. */
void numbers_print(const struct config *config, const struct section *section);

/* Of any section; "limits" is empty where nothing is limited. */
json_t *numbers_json(const struct config *config, const struct section *section);

#endif
