/* SPDX-License-Identifier: MIT */
/*
 * The doubling is done with a bound in mind rather than by shifting: for any n the ceiling is
 * max_delay at most, and never a number that has wrapped.
 */
#include "core/backoff.h"

#include <limits.h>

int64_t backoff_ceiling_ns(const struct policy *policy, unsigned n, bool is_throttle)
{
    int64_t most_ns = policy->max_delay;
    int64_t ceiling_ns = policy->base_delay;
    if (most_ns <= 0 || ceiling_ns <= 0)
        return 0;
    if (is_throttle && n < UINT_MAX)
        n++;
    for (; n > 0; n--) {
        if (ceiling_ns > most_ns / 2)
            return most_ns;
        ceiling_ns *= 2;
    }
    return ceiling_ns < most_ns ? ceiling_ns : most_ns;
}

int64_t backoff_draw_ns(const struct policy *policy, unsigned n, bool is_throttle, struct random_source *random)
{
    return random_up_to(random, backoff_ceiling_ns(policy, n, is_throttle));
}

int64_t backoff_spread_ns(const struct policy *policy, int64_t wait_ns, struct random_source *random)
{
    if (wait_ns <= 0)
        return 0;
    int64_t part_ns = (int64_t)((__int128)wait_ns * policy->spread / PPM_ONE);
    return random_up_to(random, part_ns < policy->spread_max ? part_ns : policy->spread_max);
}
