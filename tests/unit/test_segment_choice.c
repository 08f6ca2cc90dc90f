/* SPDX-License-Identifier: MIT */
/*
 * The segment's choice: whose word names it, what it is to be like, and finding a group's number in
 * files of groups of every kind.
 */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/unit/bucket_world.h"

#include "core/system/segment_choice.h"

static struct segment_choice choice;
static struct environment environment;
static struct settings settings;

static int set_up(void **state)
{
    (void)state;
    memset(&choice, 'x', sizeof choice);
    environment = (struct environment){0};
    settings_defaults(&settings);
    return 0;
}

static void choose(void)
{
    segment_choose(&choice, &environment, &settings);
}

static void test_ones_own(void **state)
{
    (void)state;
    char own[64];
    mapping_default_name(own, sizeof own);
    settings.segment_permissions = 0666; /* is for segments that others can be told of */
    settings.segment_group = "0";
    choose();
    assert_string_equal(choice.name, own);
    assert_true(choice.is_default);
    assert_int_equal(choice.size, SEGMENT_SIZE_DEFAULT);
    assert_int_equal(choice.permissions.mode, 0600);
    assert_int_equal(choice.permissions.group, MAPPING_OWN_GROUP);
    segment_choose(&choice, &environment, NULL);
    assert_string_equal(choice.name, own);
    assert_int_equal(choice.size, SEGMENT_SIZE_DEFAULT);
}

static void test_the_configurations(void **state)
{
    (void)state;
    settings.segment = "/run/curtsy/budget";
    settings.segment_size = 16 << 20;
    settings.segment_permissions = 0660;
    settings.segment_group = "12345";
    choose();
    assert_string_equal(choice.name, "/run/curtsy/budget");
    assert_false(choice.is_default);
    assert_int_equal(choice.size, 16 << 20);
    assert_int_equal(choice.permissions.mode, 0660);
    assert_int_equal(choice.permissions.group, 12345);
    assert_false(choice.lacks_group);
    settings.segment_group = NULL;
    choose();
    assert_int_equal(choice.permissions.mode, 0660);
    assert_int_equal(choice.permissions.group, MAPPING_OWN_GROUP);
}

static void test_the_environments_comes_first(void **state)
{
    (void)state;
    settings.segment = "/run/curtsy/budget";
    environment.segment = "/other";
    choose();
    assert_string_equal(choice.name, "/other");
    assert_false(choice.is_default);
}

/* A name that was cut would be another file's. */
static void test_a_name_that_is_too_long_stays_too_long(void **state)
{
    (void)state;
    char longest[3 * PATH_MAX], path[PATH_MAX], error[256];
    for (size_t length = PATH_MAX - 1; length < sizeof longest; length += PATH_MAX) {
        memset(longest, '/', sizeof longest);
        longest[length] = 0;
        environment.segment = longest;
        choose();
        assert_int_equal(mapping_path(choice.name, path, sizeof path, error, sizeof error), length < PATH_MAX);
    }
}

static void test_a_group_of_this_machine(void **state)
{
    (void)state;
    const struct group *group = getgrgid(0);
    if (!group) {
        skip();
        return;
    }
    settings.segment = "/budget";
    settings.segment_permissions = 0660;
    settings.segment_group = group->gr_name;
    choose();
    assert_int_equal(choice.permissions.group, 0);
    assert_int_equal(choice.permissions.mode, 0660);
}

/* What was meant for it is given to no other. */
static void test_a_group_that_is_not_there(void **state)
{
    (void)state;
    settings.segment = "/budget";
    settings.segment_group = "no such group";
    const unsigned modes[][2] = {{0600, 0600}, {0660, 0600}, {0666, 0666}};
    for (size_t i = 0; i < 3; i++) {
        settings.segment_permissions = modes[i][0];
        choose();
        assert_true(choice.lacks_group);
        assert_int_equal(choice.permissions.group, MAPPING_OWN_GROUP);
        assert_int_equal(choice.permissions.mode, modes[i][1]);
    }
}

/* ----------------------------------------------------------------------- groups ---- */

static char path[64];

static void write_groups(const char *text, size_t length)
{
    strcpy(path, "/tmp/curtsy-test-group-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, length), (ssize_t)length);
    close(fd);
}

/* -1: not found. */
static int64_t number_of(const char *name)
{
    uint32_t number = 0;
    errno = EXDEV;
    bool found = segment_choice_group(path, name, &number);
    assert_int_equal(errno, EXDEV);
    return found ? (int64_t)number : -1;
}

static void test_groups(void **state)
{
    (void)state;
    static const char text[] = "root:x:0:\n"
                               "# staff:x:7:\n"
                               "\n"
                               ":x:8:\n"
                               "staff\n"
                               "staff:x\n"
                               "staff:x:\n"
                               "staff:x:-5:\n"
                               "staff:x:5 :\n"
                               "staff:x:4294967295:\n"
                               "staff:x:99999999999999999999999:\n"
                               "staffs:x:9:\n"
                               "staff:x:50:alice,bob:70\n"
                               "staff:x:51:\n"
                               "largest:x:4294967294:\n"
                               "no members:x:52\n"
                               "last:x:53";
    write_groups(text, sizeof text - 1);
    assert_int_equal(number_of("root"), 0);
    assert_int_equal(number_of("staff"), 50);
    assert_int_equal(number_of("staffs"), 9);
    assert_int_equal(number_of("largest"), 4294967294);
    assert_int_equal(number_of("no members"), 52);
    assert_int_equal(number_of("last"), 53);
    assert_int_equal(number_of("staf"), -1);
    assert_int_equal(number_of("alice"), -1);
    assert_int_equal(number_of("x"), -1);
    assert_int_equal(number_of(""), -1);
    assert_int_equal(number_of("staff:x"), -1);
    assert_int_equal(number_of("root:x:0:\n# staff"), -1);
    unlink(path);
    assert_int_equal(number_of("root"), -1);
}

static void test_numbers_need_no_file(void **state)
{
    (void)state;
    strcpy(path, "/nonexistent");
    assert_int_equal(number_of("0"), 0);
    assert_int_equal(number_of("4294967294"), 4294967294);
    assert_int_equal(number_of("4294967295"), -1); /* chown(2) takes it for "leave it as it is" */
    assert_int_equal(number_of("18446744073709551617"), -1);
    assert_int_equal(number_of("-1"), -1);
    assert_int_equal(number_of("1x"), -1);
}

/* Wherever the blocks that it is read in happen to end. */
static void test_long_lines(void **state)
{
    (void)state;
    static char text[20000];
    for (size_t members = 3900; members < 4200; members++) {
        memset(text, 'm', sizeof text);
        memcpy(text, "crowd:x:1:", 10);
        size_t length = members + (size_t)sprintf(text + members, "\nwanted:x:1234567:m\nother:x:3:\n");
        write_groups(text, length);
        assert_int_equal(number_of("wanted"), 1234567);
        assert_int_equal(number_of("other"), 3);
        assert_int_equal(number_of("crowd"), 1);
        unlink(path);
    }
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_ones_own),
        TEST(test_the_configurations),
        TEST(test_the_environments_comes_first),
        TEST(test_a_name_that_is_too_long_stays_too_long),
        TEST(test_a_group_of_this_machine),
        TEST(test_a_group_that_is_not_there),
        TEST(test_groups),
        TEST(test_numbers_need_no_file),
        TEST(test_long_lines),
    };
    return cmocka_run_group_tests_name("segment_choice", tests, NULL, NULL);
}
