/* SPDX-License-Identifier: MIT */
/*
 * Mapping, later: the file behind a segment is replaced, removed or cut short while it is mapped, by an
 * administrator, a script that cleans up, or a faulty program.  A touch of what is missing would end
 * the program with SIGBUS; so each test touches every byte.
 */
#include <sys/resource.h>

#include "tests/unit/mapping_files.h"

#include "core/system/clock.h"

static struct mapping mapping;
static struct segment segment;

static int map_one(void **state)
{
    set_up(state);
    return attach_it(&mapping, &segment, path, MAPPING_CREATE) && !mapping.is_private ? 0 : -1;
}

static int unmap_it(void **state)
{
    (void)state;
    mapping_close(&mapping);
    return 0;
}

static void touch_every_byte(void)
{
    volatile char *byte = mapping.memory;
    for (size_t i = 0; i < mapping.size; i++)
        byte[i] = byte[i];
}

static enum mapping_state look(void)
{
    errno = EXDEV;
    enum mapping_state state = mapping_look(&mapping, path);
    if (errno != EXDEV)
        abort();
    return state;
}

static bool can_be_attached(enum mapping_access access)
{
    struct mapping other;
    struct segment found;
    bool attached = attach_it(&other, &found, path, access) && !other.is_private;
    mapping_close(&other);
    return attached;
}

static void test_in_place(void **state)
{
    (void)state;
    assert_int_equal(look(), MAPPING_IN_PLACE);
    assert_int_equal(truncate(path, 2 * SIZE), 0);
    assert_int_equal(look(), MAPPING_IN_PLACE);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(look(), MAPPING_IN_PLACE);
}

static void test_gone(void **state)
{
    (void)state;
    char folder[sizeof path + 8];
    assert_int_equal(unlink(path), 0);
    assert_int_equal(look(), MAPPING_GONE);
    touch_every_byte();
    snprintf(folder, sizeof folder, "%s/budget", path); /* its folder is gone, or is a file */
    assert_int_equal(mapping_look(&mapping, folder), MAPPING_GONE);
    write_file("", 0, 0600);
    assert_int_equal(mapping_look(&mapping, folder), MAPPING_GONE);
}

static void test_replaced(void **state)
{
    (void)state;
    char other[sizeof path + 8];
    snprintf(other, sizeof other, "%s.new", path);
    write_file("", 0, 0600);
    assert_int_equal(rename(path, other), 0);
    write_file("new", 3, 0600);
    assert_int_equal(look(), MAPPING_REPLACED);
    assert_int_equal(status_of(path).st_size, 3); /* it is not ours: nobody has grown it */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(look(), MAPPING_REPLACED);
}

static void test_private_memory_is_always_in_place(void **state)
{
    struct mapping none = {0};
    (void)state;
    mapping_close(&mapping);
    assert_true(mapping_private(&mapping, SIZE));
    unlink(path);
    assert_int_equal(look(), MAPPING_IN_PLACE);
    assert_int_equal(mapping_look(&none, path), MAPPING_IN_PLACE);
}

/* --------------------------------------------------------------------- cut short ---- */

static const off_t cuts[] = {0, 1, 20, 4095, SEGMENT_PAGE, SEGMENT_PAGE + 1, SIZE / 2, SIZE - 1};
#define CUT_COUNT (sizeof cuts / sizeof *cuts)

/* What is left of an "observe" in the header. */
static enum operator_mode mode_behind(off_t cut)
{
    return cut > (off_t)offsetof(struct segment_header, mode) + 8 ? OPERATOR_OBSERVE : OPERATOR_AUTO;
}

static void test_what_was_cut_short_is_grown(void **state)
{
    for (size_t i = 0; i < CUT_COUNT; i++) {
        unmap_it(state);
        map_one(state);
        segment_set_mode(&segment, OPERATOR_OBSERVE, TIME_NEVER);
        unsigned descriptors = open_descriptors();
        assert_int_equal(truncate(path, cuts[i]), 0);
        assert_int_equal(look(), MAPPING_IN_PLACE);
        assert_int_equal(status_of(path).st_size, SIZE);
        assert_true(status_of(path).st_blocks * 512 >= (blkcnt_t)SIZE);
        assert_int_equal(open_descriptors(), descriptors);
        touch_every_byte();
        assert_int_equal(segment_mode(&segment, S, NULL), mode_behind(cuts[i]));
        assert_true(can_be_attached(MAPPING_VIEW)); /* and so it has a header again */
        /* It is the file that is there, and not only memory. */
        segment_set_mode(&segment, OPERATOR_OFF, TIME_NEVER);
        struct mapping other;
        struct segment found;
        assert_true(attach_it(&other, &found, path, MAPPING_EXISTING));
        assert_int_equal(segment_mode(&found, S, NULL), OPERATOR_OFF);
        mapping_close(&other);
    }
}

/* Nobody has it mapped any more: the next one grows it to what it was. */
static void test_what_was_cut_short_is_grown_by_the_next(void **state)
{
    for (size_t i = 0; i < CUT_COUNT; i++) {
        unmap_it(state);
        map_one(state);
        segment_set_mode(&segment, OPERATOR_OBSERVE, TIME_NEVER);
        unmap_it(state);
        assert_int_equal(truncate(path, cuts[i]), 0);
        if (cuts[i] < 24 && cuts[i])
            continue; /* not even its size is left: somebody's data, for all that can be told */
        assert_true(mapping_attach(&mapping, &segment, path, 2 * SIZE, MAPPING_PRIVATE_PERMISSIONS, MAPPING_CREATE,
                                   error, sizeof error));
        assert_false(mapping.is_private);
        assert_int_equal(segment.size, cuts[i] ? SIZE : 2 * SIZE);
        assert_int_equal(segment_mode(&segment, S, NULL), mode_behind(cuts[i]));
        touch_every_byte();
    }
}

static int is_grown_without_descriptors(void)
{
    for (int fd = 0; fd < 256; fd++)
        close(fd);
    if (truncate(path, SEGMENT_PAGE) != 0 || look() != MAPPING_IN_PLACE)
        return 1;
    touch_every_byte();
    for (int fd = 0; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return 2;
    return 0;
}

static void test_closed_descriptors_stay_closed(void **state)
{
    (void)state;
    in_child(is_grown_without_descriptors);
}

/* ------------------------------------------------------- what cannot be grown again ---- */

static int cannot_be_grown(off_t cut)
{
    volatile char *last = (char *)mapping.memory + mapping.size - 1;
    volatile char *kept = (char *)mapping.memory + cut - 1;
    *kept = 9;
    if (truncate(path, cut) != 0 || look() != MAPPING_REPLACED)
        return 1;
    touch_every_byte();
    if (status_of(path).st_size != cut || *kept != 9)
        return 2;
    *last = 7;
    if (look() != MAPPING_REPLACED || *last != 7)
        return 3; /* what is put there stays */
    if (truncate(path, cut / 2) != 0 || look() != MAPPING_REPLACED || *last != 7)
        return 4;
    touch_every_byte();
    return 0;
}

static int with_a_small_file_size(void)
{
    const struct rlimit small = {1024, 1024};
    return setrlimit(RLIMIT_FSIZE, &small) == 0 ? cannot_be_grown(3 * SEGMENT_PAGE + 100) : 10;
}

static void test_a_file_size_limit_kills_nobody(void **state)
{
    (void)state;
    in_child(with_a_small_file_size);
}

static int as_somebody_else(void)
{
    struct stat status;
    if (stat(path, &status) != 0 || chown(path, 0, 0) != 0 || chmod(directory, 0755) != 0 || truncate(path, 4096) != 0)
        return 10;
    if (setuid(12345) != 0 || look() != MAPPING_REPLACED)
        return 11;
    touch_every_byte();
    return status.st_size == (off_t)SIZE ? 0 : 12;
}

static void test_a_daemon_that_has_dropped_its_rights(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    in_child(as_somebody_else);
}

static int cannot_see_it(void)
{
    if (chmod(directory, 0700) != 0 || setuid(12345) != 0)
        return 10;
    return look() == MAPPING_IN_PLACE ? 0 : 11;
}

static void test_what_cannot_be_seen_is_taken_to_be_in_place(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    in_child(cannot_see_it);
}

/* Once it can be grown again, the memory that was put there is not the file's: so it is attached anew. */
static int is_attached_anew(void)
{
    struct mapping again;
    struct rlimit limit = {1024, RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || truncate(path, 0) != 0 || look() != MAPPING_REPLACED)
        return 1;
    if (can_be_attached(MAPPING_CREATE))
        return 2;
    limit.rlim_cur = RLIM_INFINITY;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || look() != MAPPING_REPLACED || look() != MAPPING_REPLACED)
        return 3;
    if (!attach_it(&again, &segment, path, MAPPING_CREATE) || again.is_private)
        return 4;
    mapping_close(&mapping);
    mapping = again;
    return look() == MAPPING_IN_PLACE && mapping_look(&again, path) == MAPPING_IN_PLACE ? 0 : 5;
}

static void test_it_is_attached_anew_once_it_can_be(void **state)
{
    (void)state;
    in_child(is_attached_anew);
}

static void test_a_view_never_grows_it(void **state)
{
    (void)state;
    mapping_close(&mapping);
    assert_true(attach_it(&mapping, &segment, path, MAPPING_VIEW));
    assert_int_equal(truncate(path, SEGMENT_PAGE), 0);
    assert_int_equal(look(), MAPPING_REPLACED);
    assert_int_equal(status_of(path).st_size, SEGMENT_PAGE);
    volatile const char *byte = mapping.memory;
    for (size_t i = SEGMENT_PAGE; i < mapping.size; i++)
        assert_int_equal(byte[i], 0);
}

/* Others may write it: as much as was configured is allocated again, and no more. */
static void test_one_for_others_is_grown_to_what_was_configured(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(path, 0666), 0);
    mapping_close(&mapping);
    assert_true(attach_it(&mapping, &segment, path, MAPPING_CREATE));
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(look(), MAPPING_IN_PLACE);
    assert_int_equal(status_of(path).st_size, SIZE);
    mapping_close(&mapping);

    unlink(path);
    assert_true(mapping_attach(&mapping, &segment, path, 4 * SIZE,
                               (struct mapping_permissions){0666, MAPPING_OWN_GROUP}, MAPPING_CREATE, error,
                               sizeof error));
    mapping_close(&mapping);
    assert_true(attach_it(&mapping, &segment, path, MAPPING_CREATE)); /* is configured for SIZE */
    assert_int_equal(mapping.size, 4 * SIZE);
    assert_int_equal(truncate(path, SEGMENT_PAGE), 0);
    assert_int_equal(look(), MAPPING_REPLACED);
    assert_int_equal(status_of(path).st_size, SEGMENT_PAGE);
    touch_every_byte();
}

#define TEST_MAPPED(name) cmocka_unit_test_setup_teardown(name, map_one, unmap_it)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_MAPPED(test_in_place),
        TEST_MAPPED(test_gone),
        TEST_MAPPED(test_replaced),
        TEST_MAPPED(test_private_memory_is_always_in_place),
        TEST_MAPPED(test_what_was_cut_short_is_grown),
        TEST_MAPPED(test_what_was_cut_short_is_grown_by_the_next),
        TEST_MAPPED(test_closed_descriptors_stay_closed),
        TEST_MAPPED(test_a_file_size_limit_kills_nobody),
        TEST_MAPPED(test_a_daemon_that_has_dropped_its_rights),
        TEST_MAPPED(test_what_cannot_be_seen_is_taken_to_be_in_place),
        TEST_MAPPED(test_it_is_attached_anew_once_it_can_be),
        TEST_MAPPED(test_a_view_never_grows_it),
        TEST_MAPPED(test_one_for_others_is_grown_to_what_was_configured),
    };
    return cmocka_run_group_tests_name("mapping, later", tests, make_directory, remove_directory);
}
