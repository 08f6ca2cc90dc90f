/* SPDX-License-Identifier: MIT */
/*
 * Counters: what core/metrics.h counts, under the names that it has everywhere.
 */
#ifndef CURTSY_TOOLS_COUNTERS_H
#define CURTSY_TOOLS_COUNTERS_H

#include "core/metrics.h"

#include <jansson.h>

/* The metrics that this version shows, with their labels, NULL at the end. */
extern const char *const counter_names[];

/* Adds them to `object`: the name of a metric is the field, its label the field of an object within.
 * Causes and statuses that were never met are left out. */
void counters_add_json(json_t *object, const struct metrics *metrics);

/* Prints "    retries 12: 10 retry_after, 2 backoff", and so on: a line for each kind that occurred. */
void counters_print(const struct metrics *metrics);

uint64_t counters_waited_ns(const struct metrics *metrics);

#endif
