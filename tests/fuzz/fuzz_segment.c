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

#include "core/segment_layout.h"

#define MEMORY_SIZE SEGMENT_SIZE_MIN
#define STEPS_MAX 300

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

static void step(const struct segment *segment, struct input *input, struct bucket **bucket, struct bucket_slot *slot,
                 int64_t *now_ns)
{
    const struct bucket_world world = {.self = 2, .owner_is_dead = says_dead};
    struct limits limits;
    int64_t until_ns;
    switch (take_byte(input) % 18) {
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
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t seed[3] = {1, 2, 3};
    struct input input = {data, size};
    struct segment segment;
    struct bucket_slot slot = {0};
    int64_t now_ns = 1000 * NS_PER_SECOND;

    fill(&input);
    if (segment_attach(&segment, memory, sizeof memory, 7, seed) != SEGMENT_OK) {
        memset(memory, 0, 64); /* go on with the rest of it */
        if (segment_attach(&segment, memory, sizeof memory, 7, seed) != SEGMENT_OK)
            abort();
    }
    struct bucket *bucket = bucket_of(&segment, 0, now_ns);
    for (int i = 0; i < STEPS_MAX && input.left; i++)
        step(&segment, &input, &bucket, &slot, &now_ns);
    look_at_everything(&segment, bucket, now_ns);
    return 0;
}
