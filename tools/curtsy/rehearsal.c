/* SPDX-License-Identifier: MIT */
/*
 * Rehearsal: see rehearsal.h.
 */
#include "tools/curtsy/rehearsal.h"

#include "core/segment.h"
#include "core/system/clock.h"
#include "core/system/process.h"

#include <string.h>
#include <sys/mman.h>

/* A wait ends where it was said to end, or a little later if others' limits are forgotten meanwhile;
 * a segment full of garbage might go on for ever. */
#define STEPS_MAX 1000
/* A picture that is changed while it is copied is copied again. */
#define COPY_TRIES 10

/* The stage: a private segment with the buckets in it. */
struct stage {
    struct segment segment;
    struct bucket *buckets[POLICY_BUCKETS_MAX];
};

/* The one stage there is, kept from one request to the next: a copy is quick where the pages are there
 * already.  NULL when out of memory. */
static void *stage_memory(size_t wanted)
{
    static void *memory;
    static size_t size;

    if (memory != NULL && size == wanted)
        return memory;
    if (memory != NULL)
        munmap(memory, size);
    memory = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory = memory != MAP_FAILED ? memory : NULL;
    size = wanted;
    return memory;
}

static bool stage_make(struct stage *stage, const struct segment *original)
{
    size_t size = original != NULL ? original->size : SEGMENT_SIZE_MIN;
    void *memory = stage_memory(size);
    uint64_t seed[3];

    if (memory == NULL)
        return false;
    process_random(seed, sizeof(seed));
    if (original != NULL) {
        memcpy(memory, original->header, size);
        if (segment_attach(&stage->segment, memory, size, clock_boot_name(), seed) == SEGMENT_OK)
            return true;
    }
    /* There is none; or its header was damaged since it was looked at, and an empty one is as good. */
    memset(memory, 0, size);
    return segment_attach(&stage->segment, memory, size, clock_boot_name(), seed) == SEGMENT_OK;
}

static uint64_t generation_of(const struct bucket *bucket, int64_t now_ns)
{
    struct bucket_state state;

    bucket_read_state(bucket, now_ns, &state);
    return state.generation;
}

/* What is in force in a bucket is a record that another process may have replaced, and written over,
 * while it was copied; its generation tells. */
static bool stage_is_whole(const struct stage *stage, const struct segment *original,
                           const struct resolved_policy *resolved, int64_t now_ns)
{
    for (unsigned i = 0; original != NULL && i < resolved->bucket_count; i++) {
        const struct bucket *there = segment_find(original, resolved->buckets[i].name);
        const struct bucket *here = segment_find(&stage->segment, resolved->buckets[i].name);
        if ((there == NULL) != (here == NULL))
            return false;
        if (there != NULL && generation_of(there, now_ns) != generation_of(here, now_ns))
            return false;
    }
    return true;
}

static bool stage_set(struct stage *stage, const struct segment *original, const struct resolved_policy *resolved,
                      int64_t now_ns)
{
    for (int i = 0; i < COPY_TRIES; i++) {
        if (!stage_make(stage, original))
            return false;
        if (stage_is_whole(stage, original, resolved, now_ns))
            break;
    }
    return true;
}

/* The operator's word for a bucket is told beside the decision, and not part of it. */
static void find_buckets(struct stage *stage, const struct resolved_policy *resolved, int64_t now_ns,
                         struct rehearsal *out)
{
    for (unsigned i = 0; i < resolved->bucket_count; i++) {
        const char *name = resolved->buckets[i].name;
        out->buckets[i].is_known = segment_find(&stage->segment, name) != NULL;
        stage->buckets[i] = segment_bucket(&stage->segment, name, now_ns);
        if (stage->buckets[i] != NULL)
            bucket_read_state(stage->buckets[i], now_ns, &out->buckets[i].state);
    }
}

static void look_at_buckets(const struct stage *stage, const struct bucket_world *world,
                            const struct resolved_policy *resolved, int64_t now_ns, struct rehearsal *out)
{
    for (unsigned i = 0; i < resolved->bucket_count; i++) {
        struct bucket_state *state = &out->buckets[i].state;
        const struct bucket_state before = *state;
        if (stage->buckets[i] == NULL)
            continue;
        out->buckets[i].differs = !bucket_ask_limits(stage->buckets[i], world, now_ns, &resolved->buckets[i].limits);
        bucket_read_state(stage->buckets[i], now_ns, state);
        state->mode = before.mode;
        state->mode_until_ns = before.mode_until_ns;
    }
}

static enum cause cause_of_delay(const struct rehearsal *rehearsal, unsigned count)
{
    enum cause cause = CAUSE_QUOTA;

    for (unsigned i = 0; i < count; i++) {
        if (rehearsal->buckets[i].state.block == BLOCK_HOLD)
            return CAUSE_HOLD;
        if (rehearsal->buckets[i].state.block != BLOCK_NONE)
            cause = CAUSE_BLOCK;
    }
    return cause;
}

/* From wait to wait until it is decided. */
static void play(struct governor_request *request, int64_t begin_ns, struct rehearsal *out)
{
    struct governor_step step = {.action = GOVERNOR_WAIT, .until_ns = begin_ns};
    int64_t now_ns = begin_ns;

    out->cause = CAUSE_NONE;
    for (int i = 0; i < STEPS_MAX; i++) {
        step = governor_admit(request, now_ns);
        if (step.action != GOVERNOR_WAIT)
            break;
        if (out->cause == CAUSE_NONE)
            out->cause = step.cause;
        now_ns = step.until_ns > now_ns ? step.until_ns : now_ns + 1;
        if (now_ns == TIME_NEVER)
            break;
    }
    out->is_sent = step.action != GOVERNOR_REFUSE;
    out->wait_ns = now_ns == TIME_NEVER ? TIME_NEVER : now_ns - begin_ns;
    if (!out->is_sent)
        out->cause = step.cause;
    governor_end(request, now_ns);
}

bool rehearse(const struct segment *segment, const struct resolved_policy *resolved,
              const struct request_traits *traits, int64_t now_ns, struct rehearsal *out)
{
    struct stage stage = {0};
    struct governor governor = {.world.who_am_i = process_self, .world.owner_is_dead = process_is_dead};
    struct governor_request request;
    struct resolved_policy enforced = *resolved;

    memset(out, 0, sizeof(*out));
    if (!stage_set(&stage, segment, resolved, now_ns))
        return false;
    enforced.values.mode = MODE_ENFORCE;
    governor.random = segment_random(&stage.segment);
    find_buckets(&stage, resolved, now_ns, out);
    for (unsigned i = 0; i < resolved->bucket_count; i++)
        if (stage.buckets[i] != NULL)
            bucket_set_mode(stage.buckets[i], OPERATOR_AUTO, 0);
    governor_begin(&request, &governor, &enforced, stage.buckets, traits, 0, now_ns);
    look_at_buckets(&stage, &governor.world, resolved, now_ns, out);
    int64_t turn_ns = places_look(&request.places, now_ns);
    out->turn_ns = turn_ns == TIME_NEVER ? TIME_NEVER : turn_ns - now_ns;
    out->delay = turn_ns > now_ns ? cause_of_delay(out, resolved->bucket_count) : CAUSE_NONE;
    out->max_wait_ns = request.max_wait_ns;
    play(&request, now_ns, out);
    return true;
}
