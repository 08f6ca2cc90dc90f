/* SPDX-License-Identifier: MIT */
/*
 * Events.  A writer takes a number, and with it a place; what it writes there is sealed together
 * with the number (core/sealed.h), so that whatever becomes of the writer, or of two who meet in one
 * place because one was stopped while the ring went round, a reader who asks for a number gets
 * that event or none.
 */
#include "core/events.h"

#include "core/sealed.h"
#include "core/segment_layout.h"

#define TIME_MOST_MS INT64_C(253402300799999) /* the end of the year 9999 */
#define STATUS_MOST 999

#define WORD(field) (offsetof(struct event_record, field) / sizeof(uint64_t))

static_assert(sizeof(((struct event_record *)0)->program) == EVENT_PROGRAM_SIZE, "layout");
static_assert(sizeof(((struct event_record *)0)->endpoint) == EVENT_ENDPOINT_SIZE, "layout");

const char *event_kind_name(enum event_kind kind)
{
    static const char *const names[EVENT_KIND_COUNT] = {
        "refused", "blocked", "cut", "gave_up", "would_wait", "would_retry", "operator",
    };
    return (unsigned)kind < EVENT_KIND_COUNT ? names[kind] : "unknown";
}

static _Atomic uint64_t *place_of(const struct segment *segment, uint64_t number)
{
    const struct segment_regions regions = segment_regions(segment->size);
    unsigned char *ring = (unsigned char *)segment->header + regions.events;
    return (_Atomic uint64_t *)(ring + number % regions.event_count * SEGMENT_EVENT_BYTES);
}

/* ---------------------------------------------------------- an event, in words ---- */

static uint64_t clamped(int64_t value, int64_t most)
{
    return (uint64_t)(value < 0 ? 0 : value > most ? most : value);
}

static enum cause known_cause(uint64_t cause)
{
    return cause < CAUSE_COUNT ? (enum cause)cause : CAUSE_NONE;
}

static int known_status(int64_t status)
{
    return status > 0 && status <= STATUS_MOST ? (int)status : 0;
}

static uint64_t pack_what(const struct event *event)
{
    return (uint64_t)event->kind | (uint64_t)known_cause(event->cause) << 8 |
           (uint64_t)known_status(event->status) << 16 | (uint64_t)event->attempt << 32;
}

static void pack(const struct event *event, struct sealed *out)
{
    *out = (struct sealed){0};
    out->word[WORD(time_ms)] = clamped(event->time_ms, TIME_MOST_MS);
    out->word[WORD(wait_ns)] = clamped(event->wait_ns, TIME_NEVER);
    out->word[WORD(what)] = pack_what(event);
    out->word[WORD(pid)] = clamped(event->pid, INT32_MAX);
    sealed_put_text(out, WORD(program), EVENT_PROGRAM_SIZE, event->program);
    sealed_put_text(out, WORD(endpoint), EVENT_ENDPOINT_SIZE, event->endpoint);
}

/* A later version may have more kinds and causes than this one.  An event of a kind without a name is
 * left out, a cause without one is none. */
static bool unpack(const struct sealed *from, struct event *out)
{
    uint64_t what = from->word[WORD(what)];
    unsigned kind = what & 0xff;
    if (kind >= EVENT_KIND_COUNT)
        return false;
    *out = (struct event){
        .time_ms = (int64_t)clamped(shared_time(from->word[WORD(time_ms)]), TIME_MOST_MS),
        .kind = (enum event_kind)kind,
        .cause = known_cause(what >> 8 & 0xff),
        .status = known_status((int64_t)(what >> 16 & 0xffff)),
        .attempt = (unsigned)(what >> 32),
        .wait_ns = shared_time(from->word[WORD(wait_ns)]),
        .pid = (int)(from->word[WORD(pid)] & INT32_MAX),
    };
    sealed_take_text(from, WORD(program), EVENT_PROGRAM_SIZE, out->program);
    sealed_take_text(from, WORD(endpoint), EVENT_ENDPOINT_SIZE, out->endpoint);
    return true;
}

/* -------------------------------------------------------------------- the ring ---- */

/* Has the ring gone round since `number` was taken, and does a later event stand in its place?  One
 * with a number that nobody has taken yet is garbage, and written over. */
static bool is_overtaken(const struct segment *segment, const _Atomic uint64_t *place, uint64_t number)
{
    uint64_t there = shared_load(&place[WORD(number)]);
    return there > number + 1 && there <= shared_load(&segment->header->event_count);
}

/* From the first store on there is nothing in the place, until it is sealed and has its number. */
static void put(const struct segment *segment, uint64_t number, struct sealed *sealed)
{
    _Atomic uint64_t *place = place_of(segment, number);
    if (is_overtaken(segment, place, number))
        return;
    sealed->word[WORD(number)] = number + 1;
    sealed_write(place, sealed);
    shared_store(&place[WORD(number)], number + 1);
}

void events_add(const struct segment *segment, const struct event *event)
{
    struct sealed sealed;
    if ((unsigned)event->kind >= EVENT_KIND_COUNT)
        return;
    pack(event, &sealed);
    put(segment, shared_add(&segment->header->event_count, 1), &sealed);
}

uint64_t events_range(const struct segment *segment, uint64_t *first)
{
    const uint64_t places = segment_regions(segment->size).event_count;
    uint64_t end = shared_load(&segment->header->event_count);
    *first = end > places ? end - places : 0;
    return end;
}

bool events_read(const struct segment *segment, uint64_t number, struct event *out)
{
    struct sealed sealed;
    if (number == UINT64_MAX) /* its place would say that nothing is there */
        return false;
    if (!sealed_read(place_of(segment, number), &sealed) || sealed.word[WORD(number)] != number + 1 ||
        !unpack(&sealed, out))
        return false;
    out->number = number;
    return true;
}
