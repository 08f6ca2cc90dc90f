/* SPDX-License-Identifier: MIT */
/*
 * Snapshots: making them, holding them, and giving back those that nobody holds.
 *
 * Taking hold of the present one must not meet its end, and must not take a lock: a child that is
 * forked at that moment would find it locked for ever.  So whoever takes hold counts himself in
 * `readers` while he is between reading `present` and counting himself in the snapshot.  A snapshot
 * is freed only by the thread that makes a new one, and only after it is not the present one, when
 * `readers` was seen at 0 since, and nobody counts in it: then nobody holds it and nobody can come to.
 * One that is still held stays on the list of old ones until the next time.
 */
#include "shim/runtime.h"

#include "shim/real.h"
#include "shim/runtime_parts.h"

#include "core/system/clock.h"
#include "core/system/log_sink.h"
#include "core/system/process.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `curtsy ps` looks for this in the file. */
__attribute__((used)) static const char version_mark[] = "curtsy-version=" CURTSY_VERSION;

/* Less than nearly any wait, so that who wakes up looks before he touches what may have been cut off. */
#define LOOK_SPACING_NS (10 * NS_PER_MS)
#define LOOK_PATIENCE_MS 100

struct snapshot {
    struct runtime runtime; /* first: holders have a pointer to it */
    struct policy_part *policy;
    struct memory_part *memory;
    uint64_t table;         /* tells which table of buckets is in the memory: it may come to be another one */
    struct snapshot *older; /* of those that are not the present one any more */
    _Atomic unsigned holders;
};

static _Atomic(struct snapshot *) present; /* NULL: nothing is governed */
static struct snapshot *old;
static _Atomic unsigned readers;
static atomic_flag making = ATOMIC_FLAG_INIT; /* a thread is making a new one */

static _Atomic bool may_have_changed; /* in a forked child: it may be somebody else's process by now */
static _Atomic bool switched_off;     /* by the file */
static _Atomic int64_t looked_ns;
static _Atomic bool is_looking;

static enum mode mode = MODE_ENFORCE;
static char program[64];

/* ------------------------------------------------------------------ making one ---- */

static void free_unheld(void)
{
    for (struct snapshot **at = &old; *at;) {
        struct snapshot *snapshot = *at;
        if (atomic_load(&readers) || atomic_load(&snapshot->holders)) {
            at = &snapshot->older;
            continue;
        }
        *at = snapshot->older;
        policy_part_drop(snapshot->policy);
        memory_part_drop(snapshot->memory);
        free(snapshot);
    }
}

/* Every table has a key of its own.  When a file was cut short and grown again it is another table in
 * the same place, and what was looked up by the old key would not be found by those who come now. */
static uint64_t table_of(const struct memory_part *memory)
{
    return segment_hash(&memory->segment, "", 0);
}

/* Made of these parts, and the present one from now on. */
static bool present_new(struct policy_part *policy, struct memory_part *memory, uint64_t generation)
{
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot)
        return false;
    snapshot->policy = policy;
    snapshot->memory = memory;
    snapshot->table = table_of(memory);
    policy->users++;
    memory->users++;
    struct runtime *runtime = &snapshot->runtime;
    *runtime = (struct runtime){
        .config = policy->config,
        .machine = policy->machine,
        .uid = memory->uid,
        .mode = mode,
        .program = program,
        .segment = memory->segment,
        .generation = generation,
        .governor.world.who_am_i = process_self,
        .governor.world.owner_is_dead = process_is_dead,
        .governor.world.clock_ns = clock_now_ns,
    };
    runtime->governor.random = segment_random(&runtime->segment);
    runtime->governor.segment = &runtime->segment;
    struct snapshot *before = atomic_exchange(&present, snapshot);
    if (before) {
        before->older = old;
        old = before;
    }
    free_unheld();
    return true;
}

/* True if others have read only older files.  A file of the future is one of today, or nobody's change would
 * be noticed until then. */
static bool note_as_read(const struct policy_part *policy, const struct memory_part *memory)
{
    uint64_t today = (uint64_t)(clock_wall_s() + 1) * NS_PER_SECOND;
    uint64_t changed = policy->sources.changed < today ? policy->sources.changed : today;
    return segment_note_configuration(&memory->segment, changed, today);
}

/* Files that are newer than what other processes have read are for them, too. */
static uint64_t tell_others(const struct policy_part *policy, const struct memory_part *memory)
{
    if (note_as_read(policy, memory))
        segment_bump_generation(&memory->segment);
    return segment_generation(&memory->segment);
}

/* Reading files is a point of cancellation, and nobody else would go on with what was begun. */
static bool disable_cancellation(int *before)
{
    return pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, before) == 0;
}

static void make_first(void)
{
    int saved_errno = errno, cancel_state;
    bool is_disabled = disable_cancellation(&cancel_state);
    const struct environment *environment = parts_environment();
    process_program_name(program, sizeof program);
    enum mode asked;
    if (environment->mode && keys_parse_value(&policy_keys[POLICY_KEY_mode], environment->mode, &asked) == NULL)
        mode = asked;
    if (mode != MODE_OFF) {
        struct policy_part *policy = policy_part_read(program, true);
        struct memory_part *memory = policy ? memory_part_attach(policy) : NULL;
        atomic_store(&switched_off, access(CURTSY_OFF_FILE, F_OK) == 0);
        if (!memory || !present_new(policy, memory, tell_others(policy, memory))) {
            policy_part_drop(policy);
            memory_part_drop(memory);
        }
    }
    if (is_disabled)
        pthread_setcancelstate(cancel_state, NULL);
    errno = saved_errno;
}

/* The files as they are now.  What was read before stays in force when they cannot be read (after a
 * chroot or as another user they may not be there for us) and when they have faults: a file that was
 * saved half-way must not take the quota away from programs that run. */
static struct policy_part *read_again(struct snapshot *before)
{
    if (before->policy->root != parts_root())
        return before->policy;
    struct policy_part *policy = policy_part_read(program, false);
    if (policy && policy->sources.complete && (!policy->has_faults || before->policy->has_faults))
        return policy;
    policy_part_drop(policy);
    return before->policy;
}

static bool is_another_users(const struct memory_part *memory)
{
    uint32_t uid = parts_uid();
    return memory->is_default && uid != UINT32_MAX && uid != memory->uid;
}

/* Is another segment to be attached, or looked for by who has memory of his own?  Nothing of the present one is to be
 * touched before this: it may have been cut short, and looking makes it whole.  Who is told another time than the
 * machine's has memory of his own, and keeps it for as long. */
static bool is_to_be_left(const struct memory_part *memory)
{
    if (memory->mapping.is_private)
        return clock_is_the_machines();
    return mapping_look(&memory->mapping, memory->name) != MAPPING_IN_PLACE || is_another_users(memory) ||
           !clock_is_the_machines();
}

/* What is mapped stays in use where nothing better can be had: others may still share it. */
static struct memory_part *attach_again(struct snapshot *before, const struct policy_part *policy)
{
    struct memory_part *attached = memory_part_attach_again(policy);
    return attached ? attached : before->memory;
}

static void make_again(bool looks_at_memory)
{
    struct snapshot *before = atomic_load(&present);
    if (!before || atomic_flag_test_and_set(&making))
        return;
    int saved_errno = errno, cancel_state;
    bool is_disabled = disable_cancellation(&cancel_state);
    looks_at_memory = atomic_exchange(&may_have_changed, false) || looks_at_memory;
    before = atomic_load(&present);
    struct policy_part *policy = before->policy;
    struct memory_part *memory = before->memory;
    bool is_left = looks_at_memory && is_to_be_left(memory);
    uint64_t generation = segment_generation(&memory->segment);
    if (generation != before->runtime.generation) {
        policy = read_again(before);
        note_as_read(policy, memory);
    }
    if (is_left)
        memory = attach_again(before, policy);
    if (memory != before->memory)
        generation = tell_others(policy, memory);
    bool is_new = generation != before->runtime.generation || policy != before->policy || memory != before->memory;
    if (is_new || (looks_at_memory && table_of(memory) != before->table))
        if (!present_new(policy, memory, generation)) {
            if (policy != before->policy)
                policy_part_drop(policy);
            if (memory != before->memory)
                memory_part_drop(memory);
        }
    atomic_flag_clear(&making);
    if (is_disabled)
        pthread_setcancelstate(cancel_state, NULL);
    errno = saved_errno;
}

/* ---------------------------------------------------------------------- looking ---- */

void runtime_look(void)
{
    int64_t now_ns = clock_now_ns();
    int64_t last_ns = atomic_load(&looked_ns);
    int saved_errno = errno;
    bool is_soon = now_ns >= last_ns && now_ns - last_ns < LOOK_SPACING_NS; /* the clock may have been put back */
    if (is_soon || !atomic_compare_exchange_strong(&looked_ns, &last_ns, now_ns)) {
        /* Another thread looks, and what it finds is for us too: memory may not be whole before. */
        for (int i = 0; i < LOOK_PATIENCE_MS && atomic_load(&is_looking); i++)
            poll(NULL, 0, 1);
        errno = saved_errno;
        return;
    }
    atomic_store(&is_looking, true);
    atomic_store(&switched_off, access(CURTSY_OFF_FILE, F_OK) == 0);
    make_again(true);
    atomic_store(&is_looking, false);
    errno = saved_errno;
}

bool runtime_is_current(const struct runtime *runtime)
{
    return (const void *)atomic_load_explicit(&present, memory_order_acquire) == runtime &&
           segment_generation(&runtime->segment) == runtime->generation &&
           !atomic_load_explicit(&switched_off, memory_order_relaxed) &&
           !atomic_load_explicit(&may_have_changed, memory_order_relaxed);
}

static const struct runtime *hold_present(void)
{
    atomic_fetch_add(&readers, 1);
    struct snapshot *snapshot = atomic_load(&present);
    if (snapshot)
        atomic_fetch_add(&snapshot->holders, 1);
    atomic_fetch_sub(&readers, 1);
    return snapshot ? &snapshot->runtime : NULL;
}

static void make_first_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_first);
}

bool runtime_is_off(void)
{
    make_first_once();
    return mode == MODE_OFF;
}

const struct runtime *runtime_hold(void)
{
    make_first_once();
    /* Who is switched off never waits: so he looks here whether he still is. */
    if (atomic_load(&switched_off))
        runtime_look();
    if (atomic_load(&switched_off))
        return NULL;
    const struct runtime *runtime = hold_present();
    if (!runtime || runtime_is_current(runtime))
        return runtime;
    runtime_release(runtime);
    make_again(false);
    return hold_present();
}

void runtime_release(const struct runtime *runtime)
{
    if (runtime)
        atomic_fetch_sub(&((struct snapshot *)(uintptr_t)runtime)->holders, 1);
}

/* -------------------------------------------------------------------- resolving ---- */

void runtime_resolve(const struct runtime *runtime, const struct policy_target *target, struct resolved_policy *out)
{
    policy_resolve(runtime->config, target, out);
    if (runtime->machine) {
        struct resolved_policy machine;
        policy_resolve(runtime->machine, target, &machine);
        policy_tighten(out, &machine, runtime->uid);
    }
    if (runtime->mode < out->values.mode)
        out->values.mode = runtime->mode;
    if (out->values.mode == MODE_OBSERVE)
        policy_keep_to_itself(out);
}

/* ------------------------------------------------------------------- overflowing ---- */

static struct segment overflow;

static void make_overflow(void)
{
    static struct mapping mapping;
    uint64_t seed[3];
    process_random(seed, sizeof seed);
    if (!mapping_private(&mapping, SEGMENT_SIZE_MIN) ||
        segment_attach(&overflow, mapping.memory, mapping.size, clock_boot_name(), seed) != SEGMENT_OK)
        overflow.header = NULL;
    log_sink_fail_open("the segment is full of busy hosts; further ones are limited in this process only");
}

struct bucket *runtime_bucket(const struct runtime *from, uint64_t key, const char *name, int64_t now_ns)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct bucket *bucket = segment_bucket_of_key(&from->segment, key, name, now_ns);
    if (bucket)
        return bucket;
    int saved_errno = errno;
    pthread_once(&once, make_overflow);
    errno = saved_errno;
    return overflow.header ? segment_bucket(&overflow, name, now_ns) : NULL;
}

/* --------------------------------------------------------------------- beginning ---- */

/* The other threads are not there any more, wherever they were. */
static void begin_child(void)
{
    atomic_store(&readers, 0);
    atomic_store(&is_looking, false);
    atomic_flag_clear(&making);
    atomic_store(&may_have_changed, true);
}

/* Early, since daemons clear their environment, change their root and drop their privileges. */
__attribute__((constructor)) static void start(void)
{
    parts_environment();
    pthread_atfork(NULL, NULL, begin_child);
    if (real_is_loaded())
        make_first_once();
}
