/* SPDX-License-Identifier: MIT */
/*
 * Waiters: a table in the segment of the transfers that are waiting now, for `curtsy ps` and for the
 * number of waiters.  Nothing is decided by it: a wait goes on whether there was room or not.
 *
 * A record is claimed by compare-and-swap of its owner word (bucket_world.self, as in core/bucket.h)
 * and given back by the same.  One that a dead process left is taken over when no free one is near;
 * readers are told the owner and judge for themselves.  Records are found near a place given by
 * owner and thread, in a bounded number of steps: so a thread has room for 64 waits at once, at most.
 *
 * What a record holds is sealed together with its owner (core/sealed.h): whatever process dies or is
 * stopped at whatever moment, nobody reads a mixture of two waits.  What is read is not to be trusted
 * beyond that: texts are made printable, numbers brought into range.
 *
 * Thread-safe and process-safe; no allocation; a system call only where `owner_is_dead` makes one.
 */
#ifndef CURTSY_CORE_WAITERS_H
#define CURTSY_CORE_WAITERS_H

#include "core/segment.h"

#define WAITER_ENDPOINT_SIZE 96

struct waiter {
    uint64_t owner; /* process_self() */
    int thread;     /* any number that tells the threads of a process apart */
    enum cause cause;
    int64_t began_ns; /* CLOCK_BOOTTIME */
    int64_t until_ns; /* as far as is known; TIME_NEVER: without an end */
    char bucket[BUCKET_NAME_SIZE];
    char endpoint[WAITER_ENDPOINT_SIZE]; /* as log_endpoint makes it; cut, not within a UTF-8 character */
};

/* Returns a ticket for the two functions below; 0: no room was found.  waiter->owner 0: the world's
 * self. */
unsigned waiters_enter(const struct segment *segment, const struct bucket_world *world, const struct waiter *waiter);

/* The wait now has another cause or end.  Nothing happens unless the ticket is still `owner`'s. */
void waiters_update(const struct segment *segment, unsigned ticket, uint64_t owner, enum cause cause, int64_t until_ns);
void waiters_leave(const struct segment *segment, unsigned ticket, uint64_t owner);

/* Every record that is in use, start with *cursor = 0; false at the end.  Its owner may be dead by
 * now, and so it may be the record of one that was killed.  A record that changes while it is read
 * is skipped.  Writes nothing. */
bool waiters_next(const struct segment *segment, unsigned *cursor, struct waiter *out);

#endif
