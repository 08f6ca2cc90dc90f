/* SPDX-License-Identifier: MIT */
/*
 * Examples: requests that a section speaks for, made from its matchers, so that what is shown
 * about a section is what policy_resolve says about real requests.
 *
 * Besides the plain request there are ones with a port, method and program that no sensible file
 * names, since a section for every port may be overruled on port 443 and yet speak for others.
 */
#ifndef CURTSY_TOOLS_EXAMPLE_H
#define CURTSY_TOOLS_EXAMPLE_H

#include "core/policy.h"

#define EXAMPLE_HOST "host.invalid" /* of sections that speak for any host */

/* Shown an example and what is in force for it; true ends the search. */
typedef bool example_visitor(void *context, const struct policy_target *target, const struct resolved_policy *resolved);

/* Shows each example of the section to `visit`, the plainest first.  True if one visit was. */
bool example_search(const struct config *config, const struct section *section, example_visitor *visit, void *context);

/* What is in force for the section's own requests: the plainest example for which it is the most
 * specific section, else the plainest of all. */
void example_resolve(const struct config *config, const struct section *section, struct resolved_policy *resolved);

/* The same on a machine whose administrator has a say of his own (policy_tighten); machine may be NULL. */
void example_resolve_all(const struct config *config, const struct config *machine, const struct section *section,
                         struct resolved_policy *resolved);

/* Does the section decide about anything?  False if more specific or later sections set each of its
 * keys for each of its requests, or if nothing can match it.  A section without keys does, as it
 * names its host. */
bool example_is_reached(const struct config *config, const struct section *section);

#endif
