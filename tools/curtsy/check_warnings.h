/* SPDX-License-Identifier: MIT */
/*
 * Warnings of curtsy check: what is well-formed and yet hardly what one wants, and notes on what may
 * well be meant.  Each blames the line of the key that it is about, or else that of its section.
 */
#ifndef CURTSY_TOOLS_CHECK_WARNINGS_H
#define CURTSY_TOOLS_CHECK_WARNINGS_H

#include "core/policy.h"

/* Has the section a say in how many requests may go? */
bool section_sets_limits(const struct section *section);

/* How many requests beyond the burst, asked for at once, get their turn within max_wait. */
uint64_t limits_waiters(const struct limits *limits, int64_t max_wait_ns);

void warn_of_section(const struct config *config, const struct section *section, diagnostic_sink *sink,
                     void *sink_context);

/* Of Curtsy's own settings. */
void warn_of_settings(const struct config *config, diagnostic_sink *sink, void *sink_context);

#endif
