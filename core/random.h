/* SPDX-License-Identifier: MIT */
/*
 * Random numbers for jitter: splitmix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
 * Generators", OOPSLA 2014) whose state is one atomic counter that lies in the shared segment.
 * Each draw on the machine takes another counter value, so no two processes share a sequence,
 * forked ones included, and a draw costs no system call.  Not for secrets.
 * Thread-safe and process-safe.
 */
#ifndef CURTSY_CORE_RANDOM_H
#define CURTSY_CORE_RANDOM_H

#include <stdatomic.h>
#include <stdint.h>

struct random_source {
    _Atomic uint64_t seed; /* set once from 0; 0 works too, as a fixed sequence */
    _Atomic uint64_t draws;
};

uint64_t random_next(struct random_source *source);

/* Uniform over the whole numbers 0..limit; 0 if limit <= 0.  Free of modulo bias beyond 2^-64. */
int64_t random_up_to(struct random_source *source, int64_t limit);

#endif
