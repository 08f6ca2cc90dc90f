/* SPDX-License-Identifier: MIT */
/*
 * The segment: attaching to new, old, foreign and broken memory, and a table in which every name
 * has one bucket however many look for it at once.
 */
#include <pthread.h>
#include <stdio.h>

#include "tests/unit/segment_world.h"

#define BOOT WORLD_BOOT
#define START (1000 * S)

static const uint64_t seed[3] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908), 3};

static void *memory_of(size_t size)
{
    void *memory = aligned_alloc(SEGMENT_PAGE, size);
    assert_non_null(memory);
    memset(memory, 0, size);
    return memory;
}

static int set_up(void **state)
{
    struct segment *segment = malloc(sizeof *segment);
    void *memory = memory_of(SEGMENT_SIZE_MIN);
    assert_int_equal(segment_attach(segment, memory, SEGMENT_SIZE_MIN, BOOT, seed), SEGMENT_OK);
    *state = segment;
    return 0;
}

static int tear_down(void **state)
{
    struct segment *segment = *state;
    free(segment->header);
    free(segment);
    return 0;
}

/* ------------------------------------------------------------------- attaching ---- */

static void test_zeros_are_an_empty_segment(void **state)
{
    struct segment *segment = *state;
    unsigned cursor = 0;
    assert_null(segment_next(segment, &cursor));
    assert_int_equal(segment_capacity(segment), 32);
    assert_int_equal(segment->size, SEGMENT_SIZE_MIN);
    assert_null(segment_find(segment, "api.example.com:443"));
    assert_int_equal(segment_generation(segment), 0);
    segment_bump_generation(segment);
    assert_int_equal(segment_generation(segment), 1);
}

static void test_the_default_holds_at_least_256_buckets(void **state)
{
    (void)state;
    struct segment segment;
    void *memory = memory_of(SEGMENT_SIZE_DEFAULT);
    assert_int_equal(segment_attach(&segment, memory, SEGMENT_SIZE_DEFAULT, BOOT, seed), SEGMENT_OK);
    assert_int_equal(segment_capacity(&segment), 512);
    free(memory);
}

static void test_attaching_again_finds_the_same(void **state)
{
    struct segment *segment = *state, again;
    const uint64_t other_seed[3] = {9, 9, 9};
    struct bucket *bucket = segment_bucket(segment, "host:443", START);
    uint64_t hash = segment_hash(segment, "x", 1);
    assert_int_equal(segment_attach(&again, segment->header, SEGMENT_SIZE_MIN, BOOT, other_seed), SEGMENT_OK);
    assert_ptr_equal(segment_find(&again, "host:443"), bucket);
    assert_true(segment_hash(&again, "x", 1) == hash);
}

static void test_faults(void **state)
{
    struct segment *segment = *state, again;
    struct segment_header *header = segment->header;
    struct segment_header kept;
    memcpy((void *)&kept, (const void *)header, sizeof kept);
    const struct {
        size_t word;
        uint64_t value;
        enum segment_fault fault;
    } cases[] = {
        {offsetof(struct segment_header, magic), 1, SEGMENT_OTHER_LAYOUT},
        {offsetof(struct segment_header, layout), 1, SEGMENT_OTHER_LAYOUT},
        {offsetof(struct segment_header, size), SEGMENT_SIZE_MIN + 4096, SEGMENT_TOO_SMALL},
        {offsetof(struct segment_header, size), 4096, SEGMENT_TOO_SMALL},
        {offsetof(struct segment_header, size), UINT64_MAX, SEGMENT_TOO_SMALL},
        {offsetof(struct segment_header, boot), BOOT + 1, SEGMENT_OTHER_BOOT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy((char *)header + cases[i].word, &cases[i].value, 8);
        assert_int_equal(segment_view(&again, header, SEGMENT_SIZE_MIN, BOOT), cases[i].fault);
        assert_null(again.header);
        struct segment_header before;
        memcpy((void *)&before, (const void *)header, sizeof before);
        assert_int_equal(segment_attach(&again, header, SEGMENT_SIZE_MIN, BOOT, seed), cases[i].fault);
        assert_null(again.header);
        assert_memory_equal((const void *)&before, (const void *)header, sizeof before); /* left as it was */
        assert_true(strlen(segment_fault_text(cases[i].fault)) > 10);
        memcpy((void *)header, (const void *)&kept, sizeof kept);
    }
    assert_int_equal(segment_attach(&again, header, SEGMENT_SIZE_MIN - 1, BOOT, seed), SEGMENT_TOO_SMALL);
    assert_int_equal(segment_view(&again, header, SEGMENT_SIZE_MIN - 1, BOOT), SEGMENT_TOO_SMALL);
    assert_int_equal(segment_attach(&again, header, SEGMENT_SIZE_MIN, BOOT, seed), SEGMENT_OK);
    assert_non_null(segment_fault_text((enum segment_fault)99));
}

/* Whoever set some of the header's words and died is gone on from. */
static void test_a_half_set_header_is_completed(void **state)
{
    (void)state;
    struct segment segment;
    uint64_t *memory = memory_of(SEGMENT_SIZE_MIN);
    memory[0] = SEGMENT_MAGIC;
    memory[4] = 77;
    assert_int_equal(segment_attach(&segment, memory, SEGMENT_SIZE_MIN, BOOT, seed), SEGMENT_OK);
    assert_int_equal(memory[3], BOOT);
    assert_int_equal(memory[4], 77);
    assert_true(memory[5] == seed[1]);
    free(memory);
}

static void test_a_larger_mapping_keeps_the_size_that_was_set(void **state)
{
    (void)state;
    struct segment first, second;
    void *memory = memory_of(SEGMENT_SIZE_DEFAULT);
    assert_int_equal(segment_attach(&first, memory, SEGMENT_SIZE_MIN, BOOT, seed), SEGMENT_OK);
    assert_int_equal(segment_attach(&second, memory, SEGMENT_SIZE_DEFAULT, BOOT, seed), SEGMENT_OK);
    assert_int_equal(first.set_count, second.set_count);
    assert_int_equal(second.size, SEGMENT_SIZE_MIN);
    free(memory);
}

/* --------------------------------------------------------------------- viewing ---- */

static void test_a_view_shows_everything_and_writes_nothing(void **state)
{
    (void)state;
    struct segment segment = new_segment(SEGMENT_SIZE_MIN), view;
    const struct limits limits = one_limit(10, S, 5);
    struct bucket *bucket = segment_bucket(&segment, "host:443", START);
    struct bucket_state seen;
    struct bucket_slot slot;
    unsigned cursor = 0;
    int64_t until_ns;
    bucket_ask_limits(bucket, &nobody_dies, START, &limits);
    bucket_book(bucket, START, &slot);
    segment_set_mode(&segment, OPERATOR_OBSERVE, START + HOUR);
    make_read_only(&segment);

    assert_int_equal(segment_view(&view, segment.header, SEGMENT_SIZE_MIN, BOOT), SEGMENT_OK);
    assert_int_equal(view.size, segment.size);
    assert_int_equal(view.set_count, segment.set_count);
    assert_ptr_equal(segment_find(&view, "host:443"), bucket);
    assert_ptr_equal(segment_next(&view, &cursor), bucket);
    assert_null(segment_next(&view, &cursor));
    assert_true(segment_hash(&view, "x", 1) == segment_hash(&segment, "x", 1));
    assert_int_equal(segment_generation(&view), 0);
    assert_int_equal(segment_mode(&view, START, &until_ns), OPERATOR_OBSERVE);
    assert_int_equal(segment_other_metrics(&view)->requests, 0);
    bucket_read_state(bucket, START, &seen);
    assert_int_equal((int)(seen.tokens[0] + 0.001), 4);
    assert_int_equal(bucket_block_kind(bucket, START), BLOCK_NONE);
    assert_false(bucket_is_idle(bucket, START));
    assert_int_equal(bucket_metrics(bucket)->requests, 0);
    free_segment(&segment);
}

/* Whoever only looks does not make a segment out of what is none. */
static void test_a_view_of_what_nobody_has_attached_is_a_fault(void **state)
{
    (void)state;
    const size_t words[] = {offsetof(struct segment_header, magic), offsetof(struct segment_header, layout),
                            offsetof(struct segment_header, size), offsetof(struct segment_header, boot)};
    struct segment zeros = {.header = new_memory(SEGMENT_SIZE_MIN), .size = SEGMENT_SIZE_MIN}, view;
    make_read_only(&zeros);
    assert_int_equal(segment_view(&view, zeros.header, SEGMENT_SIZE_MIN, BOOT), SEGMENT_OTHER_LAYOUT);
    assert_null(view.header);
    free_segment(&zeros);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct segment half = new_segment(SEGMENT_SIZE_MIN);
        memset((char *)half.header + words[i], 0, 8);
        make_read_only(&half);
        assert_int_equal(segment_view(&view, half.header, SEGMENT_SIZE_MIN, BOOT), SEGMENT_OTHER_LAYOUT);
        assert_null(view.header);
        free_segment(&half);
    }
}

/* The key 00..0f and the message 00..0e are the example of the paper that defines the hash. */
static void test_the_hash_is_siphash(void **state)
{
    struct segment *segment = *state;
    const unsigned char message[15] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    assert_true(segment_hash(segment, message, sizeof message) == UINT64_C(0xa129ca6149be45e5));
}

/* ---------------------------------------------------------- what all share besides ---- */

static void test_only_a_later_change_of_configuration_is_news(void **state)
{
    struct segment *segment = *state;
    assert_false(segment_note_configuration(segment, 0, UINT64_MAX));   /* no file: nothing to note */
    assert_false(segment_note_configuration(segment, 100, UINT64_MAX)); /* the first: nobody has read others */
    assert_false(segment_note_configuration(segment, 100, UINT64_MAX));
    assert_false(segment_note_configuration(segment, 99, UINT64_MAX));
    assert_true(segment_note_configuration(segment, 101, UINT64_MAX));
    assert_false(segment_note_configuration(segment, 101, UINT64_MAX));
    assert_false(segment_note_configuration(segment, 100, UINT64_MAX));
    assert_true(segment_note_configuration(segment, UINT64_MAX, UINT64_MAX));
    assert_false(segment_note_configuration(segment, UINT64_MAX, UINT64_MAX));
    /* The present is 1000: what was noted was not changed then, whatever it says. */
    assert_true(segment_note_configuration(segment, 1000, 1000));
    assert_false(segment_note_configuration(segment, 1000, 1000));
    assert_true(segment_note_configuration(segment, 1001, 1001));
    assert_int_equal(segment_generation(segment), 0); /* what follows from it is the caller's affair */
}

static void test_the_operators_mode_has_an_end(void **state)
{
    struct segment *segment = *state;
    int64_t until_ns = 99;
    assert_int_equal(segment_mode(segment, START, &until_ns), OPERATOR_AUTO);
    assert_int_equal(until_ns, 0);
    segment_set_mode(segment, OPERATOR_OFF, START + HOUR);
    assert_int_equal(segment_mode(segment, START, &until_ns), OPERATOR_OFF);
    assert_int_equal(until_ns, START + HOUR);
    assert_int_equal(segment_mode(segment, START + HOUR - 1, NULL), OPERATOR_OFF);
    assert_int_equal(segment_mode(segment, START + HOUR, NULL), OPERATOR_AUTO);
    segment_set_mode(segment, OPERATOR_ENFORCE, TIME_NEVER);
    assert_int_equal(segment_mode(segment, START + 1000 * DAY, &until_ns), OPERATOR_ENFORCE);
    assert_int_equal(until_ns, TIME_NEVER);
    segment_set_mode(segment, OPERATOR_AUTO, TIME_NEVER);
    assert_int_equal(segment_mode(segment, START, &until_ns), OPERATOR_AUTO);
    assert_int_equal(until_ns, 0);
    atomic_store(&segment->header->mode, UINT64_MAX);
    assert_in_range(segment_mode(segment, START, &until_ns), OPERATOR_AUTO, OPERATOR_ENFORCE);
    assert_true(until_ns >= 0);
}

/* ------------------------------------------------------------------- the table ---- */

static void name_of(char *name, size_t size, unsigned number)
{
    snprintf(name, size, "host%u.example.com:443", number);
}

static void test_a_name_has_one_bucket(void **state)
{
    struct segment *segment = *state;
    struct bucket *bucket = segment_bucket(segment, "api.example.com:443", START);
    struct bucket_state seen;
    assert_non_null(bucket);
    assert_ptr_equal(segment_bucket(segment, "api.example.com:443", START + S), bucket);
    assert_ptr_equal(segment_find(segment, "api.example.com:443"), bucket);
    assert_ptr_not_equal(segment_bucket(segment, "api.example.com:444", START), bucket);
    bucket_read_state(bucket, START, &seen);
    assert_string_equal(seen.name, "api.example.com:443");
}

static void test_next_shows_each_once(void **state)
{
    struct segment *segment = *state;
    char name[64];
    unsigned made = 0, cursor = 0, seen = 0;
    for (unsigned i = 0; i < 10; i++) {
        name_of(name, sizeof name, i);
        made += segment_bucket(segment, name, START) != NULL;
    }
    while (segment_next(segment, &cursor))
        seen++;
    assert_int_equal(seen, made);
    cursor = UINT32_MAX;
    assert_null(segment_next(segment, &cursor));
}

/* Fills the table; the number of names that found a place. */
static unsigned fill(const struct segment *segment, unsigned from, unsigned count, int64_t now_ns)
{
    unsigned made = 0;
    for (unsigned i = 0; i < count; i++) {
        char name[64];
        name_of(name, sizeof name, from + i);
        made += segment_bucket(segment, name, now_ns) != NULL;
    }
    return made;
}

static void test_a_full_set_has_no_bucket_for_a_stranger_yet(void **state)
{
    struct segment *segment = *state;
    unsigned made = fill(segment, 0, 500, START);
    assert_int_equal(made, segment_capacity(segment));
    assert_int_equal(fill(segment, 1000, 100, START + SEGMENT_KEEP_BARE_NS), 0);
}

static void test_places_that_mean_nothing_are_taken_back(void **state)
{
    struct segment *segment = *state;
    fill(segment, 0, 500, START);
    int64_t now_ns = START + SEGMENT_KEEP_NS + 2 * S;
    unsigned again = fill(segment, 1000, 100, now_ns);
    assert_true(again >= 20); /* 100 names over 4 sets of 8 */
    unsigned cursor = 0, seen = 0;
    struct bucket *bucket;
    while ((bucket = segment_next(segment, &cursor)) != NULL) {
        struct bucket_state state_now;
        bucket_read_state(bucket, now_ns, &state_now);
        assert_ptr_equal(segment_find(segment, state_now.name), bucket);
        seen++;
    }
    assert_int_equal(seen, segment_capacity(segment));
}

static void test_busy_and_blocked_buckets_keep_their_places(void **state)
{
    struct segment *segment = *state;
    const struct limits limits = one_limit(1, HOUR, 1);
    struct bucket *busy = segment_bucket(segment, "busy", START), *blocked = segment_bucket(segment, "blocked", START);
    struct bucket *switched = segment_bucket(segment, "switched", START);
    struct bucket_slot slot;
    bucket_ask_limits(busy, &nobody_dies, START, &limits);
    bucket_book(busy, START, &slot);
    bucket_block(blocked, &nobody_dies, START, START + HOUR, BLOCK_HARD);
    bucket_set_mode(switched, OPERATOR_OFF, START + HOUR);
    fill(segment, 0, 500, START + 10 * 60 * S);
    fill(segment, 1000, 500, START + 20 * 60 * S);
    assert_ptr_equal(segment_find(segment, "busy"), busy);
    assert_ptr_equal(segment_find(segment, "blocked"), blocked);
    assert_ptr_equal(segment_find(segment, "switched"), switched);
    fill(segment, 2000, 500, START + 3 * HOUR);
    fill(segment, 3000, 500, START + 4 * HOUR);
    assert_null(segment_find(segment, "busy"));
    assert_null(segment_find(segment, "blocked"));
    assert_null(segment_find(segment, "switched"));
}

static void test_counts_of_the_evicted_go_to_other(void **state)
{
    struct segment *segment = *state;
    for (unsigned i = 0; i < 500; i++) {
        char name[64];
        name_of(name, sizeof name, i);
        struct bucket *bucket = segment_bucket(segment, name, START);
        if (bucket)
            metrics_request(bucket_metrics(bucket));
    }
    unsigned taken = fill(segment, 1000, 500, START + HOUR), cursor = 0;
    uint64_t left = 0;
    struct bucket *bucket;
    while ((bucket = segment_next(segment, &cursor)) != NULL)
        left += bucket_metrics(bucket)->requests;
    assert_int_equal(taken, segment_capacity(segment));
    assert_int_equal(left, 0);
    assert_int_equal(segment_other_metrics(segment)->requests, segment_capacity(segment));
}

static void test_a_new_name_inherits_nothing(void **state)
{
    struct segment *segment = *state;
    const struct limits old_limits = two_limits(limit_of(1, HOUR, 1), limit_of(1, S, 1));
    const struct limits none = {0}, new_limits = one_limit(10, S, 5);
    for (unsigned i = 0; i < 500; i++) {
        char name[64];
        name_of(name, sizeof name, i);
        struct bucket *bucket = segment_bucket(segment, name, START);
        if (!bucket)
            continue;
        bucket_ask_limits(bucket, &nobody_dies, START, &old_limits);
        bucket_note_latency(bucket, S);
        bucket_note_refusal(bucket, START);
        while (bucket_retry_withdraw(bucket, START, 10))
            ;
    }
    for (unsigned i = 0; i < 20; i++) {
        char name[64];
        name_of(name, sizeof name, 1000 + i);
        struct bucket *bucket = segment_bucket(segment, name, START + DAY);
        if (!bucket)
            continue;
        assert_true(bucket_ask_limits(bucket, &nobody_dies, START + DAY, i % 2 ? &none : &new_limits));
        struct bucket_state seen;
        bucket_read_state(bucket, START + DAY, &seen);
        assert_string_equal(seen.name, name);
        assert_int_equal(seen.limits.count, i % 2 ? 0 : 1);
        assert_true(i % 2 || (int)(seen.tokens[0] + 0.001) == 5);
        assert_int_equal(bucket_usual_latency_ns(bucket), 0);
        assert_int_equal(bucket_note_refusal(bucket, START + DAY), 0);
        assert_true(bucket_retry_withdraw(bucket, START + DAY, 1));
    }
}

/* A process died after claiming a place and before it was a bucket. */
static void test_a_claimed_place_is_finished_by_the_next(void **state)
{
    struct segment *segment = *state;
    struct bucket *bucket = segment_bucket(segment, "host:443", START);
    struct bucket_state seen;
    atomic_store(&bucket->named, 0);
    atomic_store(&bucket->name[0], 0x2020202020202020);
    bucket_read_state(bucket, START, &seen);
    assert_string_equal(seen.name, "?");
    assert_ptr_equal(segment_bucket(segment, "host:443", START), bucket);
    bucket_read_state(bucket, START, &seen);
    assert_string_equal(seen.name, "host:443");
}

static void test_of_two_entries_the_lowest_wins(void **state)
{
    struct segment *segment = *state;
    struct bucket *first = segment_bucket(segment, "host:443", START);
    /* The same key in the next place of the set, as two racing inserters may leave it. */
    struct bucket *second = first + 1;
    atomic_store(&second->key, atomic_load(&first->key));
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(segment_bucket(segment, "host:443", START), first);
    /* The other one has its place taken when it has not been looked up for a while. */
    fill(segment, 0, 500, START + HOUR);
    unsigned cursor = 0, found = 0;
    for (struct bucket *bucket; (bucket = segment_next(segment, &cursor)) != NULL;)
        found += atomic_load(&bucket->key) == atomic_load(&first->key);
    assert_in_range(found, 0, 1);
}

static void test_names_of_any_length_and_content(void **state)
{
    struct segment *segment = *state;
    char name[300];
    struct bucket_state seen;
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = 0;
    struct bucket *bucket = segment_bucket(segment, name, START);
    bucket_read_state(bucket, START, &seen);
    assert_int_equal(strlen(seen.name), BUCKET_NAME_SIZE - 1);
    bucket = segment_bucket(segment, "", START);
    assert_non_null(bucket);
    assert_ptr_equal(segment_find(segment, ""), bucket);
    bucket = segment_bucket(segment, "a\x1b[31m\nb", START);
    bucket_read_state(bucket, START, &seen);
    assert_string_equal(seen.name, "a?[31m?b"); /* a terminal is not to be written to */
}

/* ----------------------------------------------------------------------- races ---- */

#define THREADS 4
#define NAMES 60
#define ROUNDS 1500

struct looker {
    const struct segment *segment;
    unsigned number, counted;
};

/* More names than places, and a clock that makes places free again all the time. */
static void *look_up(void *context)
{
    struct looker *looker = context;
    const struct limits limits = one_limit(100, S, 5);
    const struct bucket_world world = {.self = looker->number + 1};
    for (unsigned i = 0; i < ROUNDS; i++) {
        char name[64];
        int64_t now_ns = START + (int64_t)i * 5 * S;
        name_of(name, sizeof name, (i * 7 + looker->number) % NAMES);
        struct bucket *bucket = segment_bucket(looker->segment, name, now_ns);
        if (!bucket)
            continue;
        bucket_ask_limits(bucket, &world, now_ns, &limits);
        metrics_request(bucket_metrics(bucket));
        looker->counted++;
    }
    return NULL;
}

static void test_many_look_up_at_once(void **state)
{
    struct segment *segment = *state;
    pthread_t thread[THREADS];
    struct looker looker[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        looker[i] = (struct looker){.segment = segment, .number = i};
        assert_int_equal(pthread_create(&thread[i], NULL, look_up, &looker[i]), 0);
    }
    unsigned counted = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        counted += looker[i].counted;
    }
    /* Afterwards every name is found in one place, the same for all, and no count is lost. */
    int64_t now_ns = START + (int64_t)ROUNDS * 5 * S;
    for (unsigned i = 0; i < NAMES; i++) {
        char name[64];
        name_of(name, sizeof name, i);
        struct bucket *bucket = segment_find(segment, name);
        if (bucket)
            assert_ptr_equal(segment_bucket(segment, name, now_ns), bucket);
    }
    uint64_t kept = segment_other_metrics(segment)->requests;
    unsigned cursor = 0;
    for (struct bucket *bucket; (bucket = segment_next(segment, &cursor)) != NULL;)
        kept += bucket_metrics(bucket)->requests;
    assert_true(counted > ROUNDS);
    assert_int_equal(kept, counted);
}

struct noter {
    const struct segment *segment;
    unsigned news;
};

static void *note_many(void *context)
{
    struct noter *noter = context;
    for (uint64_t changed = 2; changed < 5000; changed++)
        noter->news += segment_note_configuration(noter->segment, changed, UINT64_MAX);
    return NULL;
}

/* Of those who come with the same files, one is the first. */
static void test_a_change_is_news_to_one_only(void **state)
{
    struct segment *segment = *state;
    pthread_t thread[THREADS];
    struct noter noter[THREADS];
    unsigned news = 0;
    segment_note_configuration(segment, 1, UINT64_MAX);
    for (unsigned i = 0; i < THREADS; i++) {
        noter[i] = (struct noter){.segment = segment};
        assert_int_equal(pthread_create(&thread[i], NULL, note_many, &noter[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        news += noter[i].news;
    }
    assert_in_range(news, 1, 4998);
    assert_int_equal(atomic_load(&segment->header->config_stamp), 4999);
}

struct newcomer {
    void *memory;
    struct segment segment;
    struct bucket *bucket;
};

static void *come_first(void *context)
{
    struct newcomer *newcomer = context;
    const uint64_t own_seed[3] = {(uintptr_t)newcomer, (uintptr_t)newcomer + 1, (uintptr_t)newcomer + 2};
    if (segment_attach(&newcomer->segment, newcomer->memory, SEGMENT_SIZE_MIN, BOOT, own_seed) == SEGMENT_OK)
        newcomer->bucket = segment_bucket(&newcomer->segment, "host:443", START);
    return NULL;
}

static void test_everybody_is_first(void **state)
{
    (void)state;
    void *memory = memory_of(SEGMENT_SIZE_MIN);
    for (int round = 0; round < 50; round++) {
        pthread_t thread[THREADS];
        struct newcomer newcomer[THREADS];
        memset(memory, 0, SEGMENT_SIZE_MIN);
        for (unsigned i = 0; i < THREADS; i++) {
            newcomer[i] = (struct newcomer){.memory = memory};
            assert_int_equal(pthread_create(&thread[i], NULL, come_first, &newcomer[i]), 0);
        }
        for (unsigned i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
        for (unsigned i = 0; i < THREADS; i++) {
            assert_non_null(newcomer[i].bucket);
            assert_ptr_equal(newcomer[i].bucket, newcomer[0].bucket);
        }
    }
    free(memory);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_zeros_are_an_empty_segment),
        TEST(test_the_default_holds_at_least_256_buckets),
        TEST(test_attaching_again_finds_the_same),
        TEST(test_faults),
        TEST(test_a_half_set_header_is_completed),
        TEST(test_a_larger_mapping_keeps_the_size_that_was_set),
        TEST(test_a_view_shows_everything_and_writes_nothing),
        TEST(test_a_view_of_what_nobody_has_attached_is_a_fault),
        TEST(test_the_hash_is_siphash),
        TEST(test_only_a_later_change_of_configuration_is_news),
        TEST(test_the_operators_mode_has_an_end),
        TEST(test_a_name_has_one_bucket),
        TEST(test_next_shows_each_once),
        TEST(test_a_full_set_has_no_bucket_for_a_stranger_yet),
        TEST(test_places_that_mean_nothing_are_taken_back),
        TEST(test_busy_and_blocked_buckets_keep_their_places),
        TEST(test_counts_of_the_evicted_go_to_other),
        TEST(test_a_new_name_inherits_nothing),
        TEST(test_a_claimed_place_is_finished_by_the_next),
        TEST(test_of_two_entries_the_lowest_wins),
        TEST(test_names_of_any_length_and_content),
        TEST(test_many_look_up_at_once),
        TEST(test_a_change_is_news_to_one_only),
        TEST(test_everybody_is_first),
    };
    return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
