/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the governor share: a segment of its own with one bucket, a virtual clock, and a
 * little driver that plays the part of curl_easy_perform: it moves the clock to where the governor
 * says, "sends", and hands back a scripted outcome.  Nothing here sleeps.
 */
#ifndef CURTSY_TESTS_GOVERNOR_WORLD_H
#define CURTSY_TESTS_GOVERNOR_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/governor.h"
#include "core/segment.h"

#define S NS_PER_SECOND
#define WALL_S INT64_C(1700000000)

struct world {
    void *memory;
    struct segment segment;
    struct governor governor;
    struct resolved_policy resolved;
    struct bucket *bucket;
    int64_t now_ns;
};

static inline int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    const uint64_t seed[3] = {1, 2, 3};
    world->memory = aligned_alloc(4096, SEGMENT_SIZE_DEFAULT);
    memset(world->memory, 0, SEGMENT_SIZE_DEFAULT);
    assert_int_equal(segment_attach(&world->segment, world->memory, SEGMENT_SIZE_DEFAULT, 7, seed), SEGMENT_OK);
    world->now_ns = 1000 * S;
    world->governor.world.self = 1;
    world->governor.random = segment_random(&world->segment);
    world->governor.segment = &world->segment;
    policy_defaults(&world->resolved.values);
    world->resolved.bucket_count = 1;
    strcpy(world->resolved.buckets[0].name, "api.example.com:443");
    world->bucket = segment_bucket(&world->segment, "api.example.com:443", world->now_ns);
    assert_non_null(world->bucket);
    *state = world;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *world = *state;
    free(world->memory);
    free(world);
    return 0;
}

static inline void set_quota(struct world *world, const char *quota)
{
    assert_null(units_parse_rates(quota, &world->resolved.values.quota));
    limits_from_policy(&world->resolved.values, &world->resolved.buckets[0].limits, NULL);
}

static inline void begin_method(struct world *world, struct governor_request *request, const char *method,
                                int64_t timeout_ns)
{
    const struct request_traits traits = {.method = method};
    struct bucket *buckets[] = {world->bucket};
    governor_begin(request, &world->governor, &world->resolved, buckets, &traits, timeout_ns, world->now_ns);
}

static inline void begin(struct world *world, struct governor_request *request)
{
    begin_method(world, request, "GET", 0);
}

/* Admits, moving the clock, until it may be sent or is refused. */
static inline struct governor_step admit(struct world *world, struct governor_request *request)
{
    for (int i = 0; i < 1000; i++) {
        struct governor_step step = governor_admit(request, world->now_ns);
        if (step.action != GOVERNOR_WAIT)
            return step;
        assert_true(step.until_ns > world->now_ns);
        world->now_ns = step.until_ns;
    }
    fail_msg("it never ends");
    return (struct governor_step){0};
}

static inline void send_now(struct world *world, struct governor_request *request)
{
    assert_int_equal(admit(world, request).action, GOVERNOR_SEND);
    governor_sent(request, world->now_ns);
}

static inline struct governor_step answer(struct world *world, struct governor_request *request, int status,
                                          const char *fields)
{
    static struct headers headers;
    headers_clear(&headers);
    for (const char *line = fields; line && *line;) {
        size_t length = strcspn(line, "\n");
        headers_add(&headers, line, length);
        line += length + (line[length] == '\n');
    }
    const struct outcome outcome = {
        .status = status, .request_sent = true, .body_resendable = true, .headers = &headers};
    return governor_outcome(request, &outcome, NULL, world->now_ns, WALL_S);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
