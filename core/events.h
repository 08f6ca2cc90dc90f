/* SPDX-License-Identifier: MIT */
/*
 * Events: a ring in the segment with the latest 429s, blocks, cuts and give-ups of all processes, so
 * that each is on record though nothing is printed by default.
 *
 * Lock-free, many writers and readers.  An event gets the next number (one atomic addition) and the
 * place of that number modulo the ring's size; the place carries the number and a checksum of what it
 * holds (core/sealed.h), so that a reader takes nothing that was half written, by a process that died
 * or by two that met in one place.  What is read is not to be trusted beyond that: texts are made
 * printable, numbers brought into range (a status that is none becomes 0, a time a date before the year
 * 10000).
 *
 * An event holds no credential, no query and no body: its endpoint is what log_endpoint makes.
 * Thread-safe and process-safe; no allocation, no system call.
 */
#ifndef CURTSY_CORE_EVENTS_H
#define CURTSY_CORE_EVENTS_H

#include "core/segment.h"

enum event_kind {
    EVENT_REFUSED,    /* a response with a refusal's status, or a failed connection */
    EVENT_BLOCKED,    /* a server's word has stopped a bucket */
    EVENT_CUT,        /* the pace was cut */
    EVENT_GAVE_UP,    /* no further attempt, or none at all */
    EVENT_WOULD_WAIT, /* under observe: what would have been done */
    EVENT_WOULD_RETRY,
    EVENT_OPERATOR, /* mode, hold, release, refill, reload: `endpoint` is the command and its host */
    EVENT_KIND_COUNT
    /* Kinds are kept by number: a new one goes to the end. */
};
const char *event_kind_name(enum event_kind kind); /* "refused", "gave_up", "would_wait" ... */

#define EVENT_PROGRAM_SIZE 32
#define EVENT_ENDPOINT_SIZE 144

struct event {
    uint64_t number; /* counted from 0; set by events_read */
    int64_t time_ms; /* since 1970 */
    enum event_kind kind;
    enum cause cause;
    int status;       /* 0: none */
    unsigned attempt; /* 0: none */
    int64_t wait_ns;  /* 0: none; TIME_NEVER: without an end */
    int pid;
    char program[EVENT_PROGRAM_SIZE]; /* longer texts are cut, not within a UTF-8 character */
    char endpoint[EVENT_ENDPOINT_SIZE];
};

/* event->number is not looked at.  Of a text nothing behind its end is kept.  Lost without a word: a
 * kind that has no name, and an event whose writer was stopped on the way for a whole round of the
 * ring. */
void events_add(const struct segment *segment, const struct event *event);

/* Numbers run from *first, the oldest that may still be there, to below the result; they are no more
 * than the ring has places.  Who follows the ring goes on from the later of *first and his own next
 * number, and from *first where the result is below that: then it is another segment. */
uint64_t events_range(const struct segment *segment, uint64_t *first);

/* False if it is not there: overwritten since, not written yet, never finished, or of a kind that is
 * not known here.  One that is not written yet may be there a moment later. */
bool events_read(const struct segment *segment, uint64_t number, struct event *out);

#endif
