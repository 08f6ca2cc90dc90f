/* SPDX-License-Identifier: MIT */
/*
 * The layout of shared memory, pinned byte by byte: programs under different builds of the library
 * meet in one segment.  A failure here means that SEGMENT_LAYOUT_VERSION must change, and with it
 * the segment's name; then, and only then, change the numbers here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/events.h"
#include "core/segment_layout.h"

struct field {
    const char *name;
    size_t offset, expected, size, expected_size;
};

#define FIELD(type, name, expected, expected_size)                                                                     \
    {                                                                                                                  \
#type "." #name, offsetof(struct type, name), expected, sizeof(((struct type *)0)->name), expected_size        \
    }

/* clang-format off */
static const struct field fields[] = {
    FIELD(segment_header, magic,                0,    8),
    FIELD(segment_header, layout,               8,    8),
    FIELD(segment_header, size,                 16,   8),
    FIELD(segment_header, boot,                 24,   8),
    FIELD(segment_header, hash_key,             32,   16),
    FIELD(segment_header, identity_reserved,    48,   16),
    FIELD(segment_header, random.seed,          64,   8),
    FIELD(segment_header, random.draws,         72,   8),
    FIELD(segment_header, generation,           128,  8),
    FIELD(segment_header, mode,                 136,  8),
    FIELD(segment_header, event_count,          144,  8),
    FIELD(segment_header, fleet_state,          152,  8),
    FIELD(segment_header, cells_used,           160,  8),
    FIELD(segment_header, config_stamp,         168,  8),
    FIELD(segment_header, operator_reserved,    176,  16),
    FIELD(segment_header, header_reserved,      192,  1856),
    FIELD(segment_header, other,                2048, 800),
    FIELD(segment_header, other_reserved,       2848, 1248),

    FIELD(bucket, key,                          0,    8),
    FIELD(bucket, named,                        8,    8),
    FIELD(bucket, used_ns,                      16,   8),
    FIELD(bucket, mode,                         24,   8),
    FIELD(bucket, resource,                     32,   8),
    FIELD(bucket, identity_reserved,            40,   24),
    FIELD(bucket, name,                         64,   112),
    FIELD(bucket, name_reserved,                176,  16),
    FIELD(bucket, published,                    192,  8),
    FIELD(bucket, asked_ns,                     200,  32),
    FIELD(bucket, min_interval_ns,              232,  8),
    FIELD(bucket, in_flight_limit,              240,  8),
    FIELD(bucket, published_reserved,           248,  8),
    FIELD(bucket, tat,                          256,  32),
    FIELD(bucket, interval_tat,                 288,  8),
    FIELD(bucket, queue_reserved,               296,  24),
    FIELD(bucket, retry,                        320,  8),
    FIELD(bucket, latency_ns,                   328,  8),
    FIELD(bucket, refused_ns,                   336,  8),
    FIELD(bucket, outcome_reserved,             344,  40),
    FIELD(bucket, last_cut_ns,                  384,  8),
    FIELD(bucket, failing_rate,                 392,  8),
    FIELD(bucket, cuts,                         400,  8),
    FIELD(bucket, accepted,                     408,  8),
    FIELD(bucket, window_cells,                 416,  8),
    FIELD(bucket, window_position,              424,  8),
    FIELD(bucket, adaptive_reserved,            432,  16),
    FIELD(bucket, in_flight,                    448,  8),
    FIELD(bucket, released,                     456,  8),
    FIELD(bucket, permits_reserved,             464,  48),
    FIELD(bucket, permit,                       512,  512),
    FIELD(bucket, record,                       1024, 3072),
    FIELD(bucket, metrics,                      4096, 800),
    FIELD(bucket, metrics_reserved,             4896, 224),

    FIELD(record, owner,                        0,    8),
    FIELD(record, shape,                        8,    8),
    FIELD(record, start_ns,                     16,   8),
    FIELD(record, hard_start_ns,                24,   8),
    FIELD(record, held_until_ns,                32,   8),
    FIELD(record, made_ns,                      40,   8),
    FIELD(record, reserved,                     48,   16),
    FIELD(record, limit,                        64,   320),

    FIELD(record_limit, v0,                     0,    8),
    FIELD(record_limit, rate,                   8,    8),
    FIELD(record_limit, burst,                  16,   8),
    FIELD(record_limit, published,              24,   8),
    FIELD(record_limit, window_ns,              32,   8),
    FIELD(record_limit, jitter_ns,              40,   8),
    FIELD(record_limit, slope,                  48,   8),
    FIELD(record_limit, cap,                    56,   8),
    FIELD(record_limit, end_ns,                 64,   8),
    FIELD(record_limit, reserved,               72,   8),

    FIELD(metrics, requests,                    0,    8),
    FIELD(metrics, attempts,                    8,    8),
    FIELD(metrics, retries,                     16,   192),
    FIELD(metrics, refusals,                    208,  104),
    FIELD(metrics, giveups,                     312,  192),
    FIELD(metrics, waits,                       504,  88),
    FIELD(metrics, wait_ns_sum,                 592,  192),
    FIELD(metrics, observed_waits,              784,  8),
    FIELD(metrics, observed_retries,            792,  8),

    FIELD(waiter_record, owner,                 0,    8),
    FIELD(waiter_record, seal,                  8,    8),
    FIELD(waiter_record, what,                  16,   8),
    FIELD(waiter_record, began_ns,              24,   8),
    FIELD(waiter_record, until_ns,              32,   8),
    FIELD(waiter_record, reserved,              40,   8),
    FIELD(waiter_record, bucket,                48,   112),
    FIELD(waiter_record, endpoint,              160,  96),

    FIELD(event_record, number,                 0,    8),
    FIELD(event_record, seal,                   8,    8),
    FIELD(event_record, time_ms,                16,   8),
    FIELD(event_record, wait_ns,                24,   8),
    FIELD(event_record, what,                   32,   8),
    FIELD(event_record, pid,                    40,   8),
    FIELD(event_record, reserved,               48,   32),
    FIELD(event_record, program,                80,   32),
    FIELD(event_record, endpoint,               112,  144),
};
/* clang-format on */

static void test_every_field_is_where_it_was(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].offset != fields[i].expected || fields[i].size != fields[i].expected_size)
            fail_msg("%s: at %zu of %zu bytes, was at %zu of %zu: the layout's version must change", fields[i].name,
                     fields[i].offset, fields[i].size, fields[i].expected, fields[i].expected_size);
}

/* The list above leaves nothing out: in each structure field follows field. */
static void test_every_byte_is_listed(void **state)
{
    (void)state;
    const size_t gaps[][2] = {{80, 48}}; /* in the header, to the end of the random counter's line */
    size_t covered = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        covered += fields[i].expected_size;
    covered += gaps[0][1];
    assert_int_equal(covered, sizeof(struct segment_header) + sizeof(struct bucket) + sizeof(struct record) +
                                  sizeof(struct record_limit) + sizeof(struct metrics) + sizeof(struct waiter_record) +
                                  sizeof(struct event_record));
}

static void test_constants_of_the_layout(void **state)
{
    (void)state;
    assert_int_equal(SEGMENT_LAYOUT_VERSION, 1);
    assert_int_equal(METRIC_CAUSES, 24);
    assert_int_equal(CAUSE_COUNT, 16);
    assert_int_equal(METRIC_STATUSES, 13);
    assert_int_equal(RATES_MAX, 4);
    assert_int_equal(BUCKET_RECORDS, 8);
    assert_int_equal(SEGMENT_WAYS, 8);
    assert_memory_equal(&(uint64_t){SEGMENT_MAGIC}, "\0\nCurtsy", 8);
    assert_int_equal(CAUSE_MODE, 15);    /* causes are indices: a new one goes to the end */
    assert_int_equal(EVENT_OPERATOR, 6); /* so are kinds of events */
    assert_int_equal(metric_statuses[METRIC_STATUSES - 2], 529);
}

static void test_words_that_are_written_apart_lie_on_lines_apart(void **state)
{
    (void)state;
    const size_t lines[] = {offsetof(struct bucket, key) / 64,         offsetof(struct bucket, published) / 64,
                            offsetof(struct bucket, tat) / 64,         offsetof(struct bucket, retry) / 64,
                            offsetof(struct bucket, last_cut_ns) / 64, offsetof(struct bucket, in_flight) / 64,
                            offsetof(struct bucket, record) / 64,      offsetof(struct bucket, metrics) / 64};
    for (size_t i = 1; i < sizeof lines / sizeof *lines; i++)
        assert_true(lines[i] > lines[i - 1]);
    assert_int_equal(offsetof(struct bucket, tat) % 64, 0);
    assert_int_equal(offsetof(struct bucket, record) % 64, 0);
}

static void test_regions_of_the_default_and_the_least_size(void **state)
{
    (void)state;
    struct segment_regions r = segment_regions(SEGMENT_SIZE_DEFAULT);
    assert_int_equal(r.set_count, 64);
    assert_int_equal(r.table, 4096);
    assert_int_equal(r.waiters, 2625536);
    assert_int_equal(r.waiter_count, 1024);
    assert_int_equal(r.events, 2887680);
    assert_int_equal(r.event_count, 1024);
    assert_int_equal(r.fleet, 3149824);
    assert_int_equal(r.fleet_bytes, 65536);
    assert_int_equal(r.cells, 3215360);
    assert_int_equal(r.cells_count, 119);
    r = segment_regions(SEGMENT_SIZE_MIN);
    assert_int_equal(r.set_count, 4);
    assert_int_equal(r.waiter_count, 64);
    assert_int_equal(r.event_count, 64);
    assert_int_equal(r.cells_count, 7);
}

static void test_regions_of_any_size_follow_each_other_and_fit(void **state)
{
    (void)state;
    for (uint64_t size = SEGMENT_SIZE_MIN; size <= SEGMENT_SIZE_MAX; size += size / 7 / SEGMENT_PAGE * SEGMENT_PAGE) {
        struct segment_regions r = segment_regions(size);
        assert_true((r.set_count & (r.set_count - 1)) == 0);
        assert_true(r.table + r.set_count * SEGMENT_WAYS * sizeof(struct bucket) <= r.waiters);
        assert_true(r.waiters + r.waiter_count * SEGMENT_WAITER_BYTES <= r.events);
        assert_true(r.events + r.event_count * SEGMENT_EVENT_BYTES <= r.fleet);
        assert_true(r.fleet + r.fleet_bytes <= r.cells);
        assert_true(r.cells + r.cells_count * SEGMENT_CELLS_BYTES <= size);
        assert_true(r.cells_count >= 1);
        assert_int_equal((r.waiters | r.events | r.fleet | r.cells) % SEGMENT_LINE, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_is_where_it_was),
        cmocka_unit_test(test_every_byte_is_listed),
        cmocka_unit_test(test_constants_of_the_layout),
        cmocka_unit_test(test_words_that_are_written_apart_lie_on_lines_apart),
        cmocka_unit_test(test_regions_of_the_default_and_the_least_size),
        cmocka_unit_test(test_regions_of_any_size_follow_each_other_and_fit),
    };
    return cmocka_run_group_tests_name("segment layout", tests, NULL, NULL);
}
