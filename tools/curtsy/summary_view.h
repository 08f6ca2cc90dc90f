/* SPDX-License-Identifier: MIT */
/*
 * Summary view: one summary as text and as JSON.
 */
#ifndef CURTSY_TOOLS_SUMMARY_VIEW_H
#define CURTSY_TOOLS_SUMMARY_VIEW_H

#include "core/policy.h"

#include <jansson.h>

/* What is in force for something. */
struct summary {
    const char *title;   /* "[api.github.com]", "api.github.com:443/v1" */
    const char *subject; /* for whom, in words; may be empty */
    bool is_any_host;    /* there is no one bucket to name */
    struct resolved_policy resolved;
};

/* `scope`: who shares the segment. */
void summary_print(const struct summary *summary, const char *scope);
json_t *summary_json(const struct summary *summary);

#endif
