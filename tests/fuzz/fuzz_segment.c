/* SPDX-License-Identifier: MIT */
/*
 * The segment under whatever bytes: the input is laid over shared memory, all of it or here and
 * there, in between calls of every function that works on it.  Nothing may crash, hang or overflow,
 * and every answer is in range.
 *
 * The first byte says how the memory begins: 0 zeros, 1 the input over and over.  Then each byte is
 * a step, with its arguments after it.
 */
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/events.h"
#include "core/printable.h"
#include "core/sealed.h"
#include "core/segment_layout.h"
#include "core/waiters.h"

#define MEMORY_SIZE SEGMENT_SIZE_MIN
#define STEPS_MAX 300

/* Of a block that is believed: the longest that may be asked for, and a year. */
#define BLOCK_MOST_NS ((3650 + 366) * 86400 * NS_PER_SECOND)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t left;
};

static alignas(SEGMENT_PAGE) unsigned char memory[MEMORY_SIZE];

static void take(struct input *input, void *out, size_t size)
{
    size_t given = size < input->left ? size : input->left;
    memset(out, 0, size);
    if (given)
        memcpy(out, input->data, given);
    input->data += given;
    input->left -= given;
}

static uint64_t take_word(struct input *input)
{
    uint64_t word;
    take(input, &word, sizeof word);
    return word;
}

static unsigned take_byte(struct input *input)
{
    unsigned char byte;
    take(input, &byte, 1);
    return byte;
}

static void expect(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void fill(struct input *input)
{
    memset(memory, 0, sizeof memory);
    if (take_byte(input) != 1 || !input->left)
        return;
    for (size_t i = 0; i < sizeof memory; i += input->left)
        memcpy(memory + i, input->data, input->left < sizeof memory - i ? input->left : sizeof memory - i);
}

/* The hostile neighbour: some bytes, somewhere, most of the time in the bucket that is in use. */
static void scribble(struct input *input, struct bucket *bucket)
{
    unsigned char bytes[32];
    unsigned length = take_byte(input) % sizeof bytes + 1;
    uint16_t offset;
    take(input, &offset, sizeof offset);
    take(input, bytes, length);
    unsigned char *base = offset & 0x8000 ? memory : (unsigned char *)bucket;
    size_t room = offset & 0x8000 ? sizeof memory : sizeof *bucket;
    memcpy(base + (offset & 0x7fff) % (room - length), bytes, length);
}

static struct limits take_limits(struct input *input)
{
    struct limits limits = {.count = take_byte(input) % (RATES_MAX + 1)};
    for (unsigned i = 0; i < limits.count; i++)
        limits.item[i] = (struct limit){
            .rate = take_word(input),
            .burst = take_word(input),
            .window_ns = (int64_t)take_word(input),
            .jitter_ns = (int64_t)take_word(input),
        };
    return limits;
}

static bool says_dead(uint64_t owner)
{
    return owner & 1;
}

static struct bucket *bucket_of(const struct segment *segment, unsigned name, int64_t now_ns)
{
    static alignas(SEGMENT_LINE) struct bucket own; /* as a program goes on that was given none */
    char text[16];
    snprintf(text, sizeof text, "host%u", name % 40);
    struct bucket *bucket = segment_bucket(segment, text, now_ns);
    if (bucket)
        expect((unsigned char *)bucket >= memory && (unsigned char *)(bucket + 1) <= memory + sizeof memory, "bounds");
    return bucket ? bucket : &own;
}

static void look_at_everything(const struct segment *segment, const struct bucket *bucket, int64_t now_ns)
{
    struct bucket_state state;
    unsigned cursor = 0, seen = 0;
    int64_t sane_ns = now_ns > 0 ? now_ns : 0;
    while (segment_next(segment, &cursor))
        seen++;
    expect(seen <= segment_capacity(segment), "more buckets than places");
    bucket_read_state(bucket, now_ns, &state);
    expect(memchr(state.name, 0, sizeof state.name) != NULL, "a name without an end");
    expect(state.limits.count <= RATES_MAX, "too many limits");
    expect(state.next_ns >= sane_ns, "in the past");
    expect(!state.block || state.blocked_until_ns - sane_ns <= BLOCK_MOST_NS, "a block beyond all bounds");
    expect(state.block <= BLOCK_HOLD && bucket_block_kind(bucket, now_ns) <= BLOCK_HOLD, "no kind of block");
    expect(state.mode <= OPERATOR_ENFORCE && state.mode_until_ns >= 0, "no mode");
    bucket_is_idle(bucket, now_ns);
    expect(bucket_usual_latency_ns(bucket) >= 0, "a negative latency");
    segment_generation(segment);
}

static void book_and_check(struct bucket *bucket, struct bucket_slot *slot, int64_t now_ns)
{
    int64_t until_ns, sane_ns = now_ns > 0 ? now_ns : 0;
    bool hard;
    expect(bucket_peek(bucket, now_ns, &hard) >= sane_ns, "peek");
    bucket_book(bucket, now_ns, slot);
    expect(bucket_check(bucket, slot, now_ns, &until_ns) != BUCKET_FORFEIT, "void at once");
    expect(until_ns >= sane_ns, "check");
    expect(bucket_hard_ns(bucket, slot, now_ns) <= until_ns, "hard beyond all");
}

/* ---------------------------------------------------------- waiters and events ---- */

/* It ends, and may be shown. */
static void expect_text(const char *text, size_t size)
{
    size_t length = strnlen(text, size), step;
    expect(length < size, "a text without an end");
    for (size_t at = 0; at < length; at += step) {
        bool is_clean;
        step = printable_step(text + at, length - at, &is_clean);
        expect(is_clean, "a text that is not printable");
    }
}

static void look_at_waiters_and_events(const struct segment *segment)
{
    const struct segment_regions regions = segment_regions(segment->size);
    struct waiter waiter;
    struct event event;
    unsigned cursor = 0, waiting = 0;
    for (; waiters_next(segment, &cursor, &waiter); waiting++) {
        expect(waiter.owner != 0 && waiter.cause < CAUSE_COUNT, "no waiter");
        expect(waiter.began_ns >= 0 && waiter.until_ns >= 0, "a negative time");
        expect_text(waiter.bucket, sizeof waiter.bucket);
        expect_text(waiter.endpoint, sizeof waiter.endpoint);
    }
    expect(waiting <= regions.waiter_count, "more waiters than places");
    uint64_t first, end = events_range(segment, &first);
    expect(first <= end && end - first <= regions.event_count, "more events than places");
    for (uint64_t number = first; number < end; number++) {
        if (!events_read(segment, number, &event))
            continue;
        expect(event.number == number && event.kind < EVENT_KIND_COUNT && event.cause < CAUSE_COUNT, "no event");
        expect(event.time_ms >= 0 && event.wait_ns >= 0 && event.pid >= 0 && event.status >= 0, "a negative number");
        expect_text(event.program, sizeof event.program);
        expect_text(event.endpoint, sizeof event.endpoint);
    }
}

static void add_event(const struct segment *segment, struct input *input)
{
    struct event event;
    uint64_t first, end = events_range(segment, &first);
    take(input, &event, sizeof event);
    bool is_known = (unsigned)event.kind < EVENT_KIND_COUNT;
    events_add(segment, &event);
    struct event read;
    if (is_known && end != UINT64_MAX)
        expect(events_read(segment, end, &read) && read.kind == event.kind, "not read again");
}

static void enter_waiter(const struct segment *segment, const struct bucket_world *world, struct input *input,
                         unsigned *ticket)
{
    struct waiter waiter, seen;
    take(input, &waiter, sizeof waiter);
    *ticket = waiters_enter(segment, world, &waiter);
    unsigned cursor = *ticket - 1;
    if (*ticket)
        expect(waiters_next(segment, &cursor, &seen) && cursor == *ticket, "not read again");
}

/* The hostile neighbour, among waiters and events: some bytes, or a whole piece with a good seal. */
static void scribble_behind_the_table(const struct segment *segment, struct input *input)
{
    const struct segment_regions regions = segment_regions(segment->size);
    struct sealed piece;
    uint16_t offset;
    take(input, &offset, sizeof offset);
    uint64_t at = regions.waiters + offset % (regions.fleet - regions.waiters);
    if (take_byte(input) % 2) {
        unsigned length = take_byte(input) % 32 + 1;
        take(input, &piece, length);
        memcpy(memory + at, &piece, length);
        return;
    }
    _Atomic uint64_t *place = (_Atomic uint64_t *)(memory + at / sizeof piece * sizeof piece);
    take(input, &piece, sizeof piece);
    shared_store(place, piece.word[0]);
    sealed_write(place, &piece);
}

/* Memory that is only looked at stays as it is, whatever the answer. */
static void view(const struct segment *segment)
{
    static unsigned char before[SEGMENT_PAGE];
    struct segment seen;
    memcpy(before, memory, sizeof before);
    enum segment_fault fault = segment_view(&seen, memory, sizeof memory, 7);
    expect(memcmp(before, memory, sizeof before) == 0, "a view wrote");
    expect((seen.header != NULL) == (fault == SEGMENT_OK), "a view without a segment");
    expect(fault || (seen.size <= segment->size && seen.set_count <= segment->set_count), "a view beyond the memory");
    if (!fault)
        look_at_waiters_and_events(&seen);
}

static void set_modes(const struct segment *segment, struct bucket *bucket, struct input *input, int64_t now_ns)
{
    int64_t until_ns;
    enum operator_mode mode = (enum operator_mode)(take_byte(input) & 3);
    if (take_byte(input) % 2)
        bucket_set_mode(bucket, mode, (int64_t)take_word(input));
    else
        segment_set_mode(segment, mode, (int64_t)take_word(input));
    expect(segment_mode(segment, now_ns, &until_ns) <= OPERATOR_ENFORCE && until_ns >= 0, "no mode of all");
    expect(bucket_mode(bucket, now_ns) <= OPERATOR_ENFORCE, "no mode of a bucket");
    segment_note_configuration(segment, take_word(input), take_word(input));
}

static void step_behind_the_table(const struct segment *segment, struct input *input, unsigned kind, unsigned *ticket)
{
    const struct bucket_world world = {.self = 2, .owner_is_dead = says_dead};
    switch (kind) {
    case 0:
        add_event(segment, input);
        break;
    case 1:
        enter_waiter(segment, &world, input, ticket);
        break;
    case 2:
        waiters_update(segment, *ticket, 2, (enum cause)take_byte(input), (int64_t)take_word(input));
        break;
    case 3:
        waiters_leave(segment, *ticket, 2);
        break;
    case 4:
        *ticket = (unsigned)take_word(input);
        break;
    case 5:
        look_at_waiters_and_events(segment);
        break;
    case 6:
        scribble_behind_the_table(segment, input);
        break;
    case 7:
        view(segment);
        break;
    }
}

/* ----------------------------------------------------------------------- steps ---- */

#define STEPS_OF_THE_TABLE 19
#define STEPS_BEHIND_IT 8

static void step(const struct segment *segment, struct input *input, struct bucket **bucket, struct bucket_slot *slot,
                 int64_t *now_ns, unsigned *ticket)
{
    const struct bucket_world world = {.self = 2, .owner_is_dead = says_dead};
    struct limits limits;
    int64_t until_ns;
    unsigned kind = take_byte(input) % (STEPS_OF_THE_TABLE + STEPS_BEHIND_IT);
    switch (kind) {
    case 0:
        scribble(input, *bucket);
        break;
    case 1:
        *now_ns = (int64_t)take_word(input);
        break;
    case 2:
        *now_ns = (int64_t)((uint64_t)*now_ns + (take_byte(input) << 24));
        break;
    case 3:
        *bucket = bucket_of(segment, take_byte(input), *now_ns);
        break;
    case 4:
        book_and_check(*bucket, slot, *now_ns);
        break;
    case 5:
        bucket_check(*bucket, slot, *now_ns, &until_ns);
        break;
    case 6:
        bucket_cancel(*bucket, slot);
        break;
    case 7:
        bucket_charge(*bucket, *now_ns, take_word(input));
        break;
    case 8:
        bucket_block(*bucket, &world, *now_ns, (int64_t)take_word(input), (enum block_kind)(take_byte(input) & 3));
        break;
    case 9:
        bucket_release(*bucket, &world, *now_ns);
        break;
    case 10:
        bucket_refill(*bucket, &world, *now_ns);
        break;
    case 11:
        limits = take_limits(input);
        bucket_ask_limits(*bucket, &world, *now_ns, &limits);
        break;
    case 12:
        bucket_retry_deposit(*bucket, *now_ns, (uint32_t)take_word(input));
        break;
    case 13:
        bucket_retry_withdraw(*bucket, *now_ns, (uint32_t)take_word(input));
        break;
    case 14:
        bucket_note_latency(*bucket, (int64_t)take_word(input));
        break;
    case 15:
        expect(bucket_note_refusal(*bucket, *now_ns) >= 0, "refused before the beginning");
        break;
    case 16:
        look_at_everything(segment, *bucket, *now_ns);
        break;
    case 17:
        expect(random_up_to(segment_random(segment), 1000) <= 1000, "random");
        metrics_move(segment_other_metrics(segment), bucket_metrics(*bucket));
        segment_bump_generation(segment);
        break;
    case 18:
        set_modes(segment, *bucket, input, *now_ns);
        break;
    default:
        step_behind_the_table(segment, input, kind - STEPS_OF_THE_TABLE, ticket);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t seed[3] = {1, 2, 3};
    struct input input = {data, size};
    struct segment segment;
    struct bucket_slot slot = {0};
    int64_t now_ns = 1000 * NS_PER_SECOND;
    unsigned ticket = 0;

    fill(&input);
    if (segment_attach(&segment, memory, sizeof memory, 7, seed) != SEGMENT_OK) {
        memset(memory, 0, 64); /* go on with the rest of it */
        if (segment_attach(&segment, memory, sizeof memory, 7, seed) != SEGMENT_OK)
            abort();
    }
    struct bucket *bucket = bucket_of(&segment, 0, now_ns);
    for (int i = 0; i < STEPS_MAX && input.left; i++)
        step(&segment, &input, &bucket, &slot, &now_ns, &ticket);
    look_at_everything(&segment, bucket, now_ns);
    look_at_waiters_and_events(&segment);
    return 0;
}
