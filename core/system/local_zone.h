/* SPDX-License-Identifier: MIT */
/*
 * Local zone: the time of day on this machine, for who expects it (RFC 3164).  localtime(3) is not
 * for us: it takes a lock that a forked child may find held, and fixes the zone of a program that has
 * not set its own yet.
 *
 * What is read is the machine's zone (/etc/localtime), not the program's ($TZ): the reader of the
 * machine's log has that one, too.  A zone file (RFC 8536) lists the changes of the clock one by one,
 * up to 2037 as distributions build it; where it goes on with a rule instead, the local time is
 * called unknown.  No allocation, no lock.
 */
#ifndef CURTSY_CORE_SYSTEM_LOCAL_ZONE_H
#define CURTSY_CORE_SYSTEM_LOCAL_ZONE_H

#include "core/calendar.h"

#include <stddef.h>

#define LOCAL_ZONE_FILE "/etc/localtime"

struct local_zone {
    bool is_utc;
    size_t length; /* of the file; 0: none, or one that is too large */
    unsigned char file[8192];
};

/* Without such a file it is UTC, as for the C library. */
void local_zone_read(struct local_zone *zone, const char *path);

/* False if it is not known.  Whatever the file holds; thread-safe. */
bool local_zone_time(const struct local_zone *zone, int64_t time_s, struct calendar_time *out);

#endif
