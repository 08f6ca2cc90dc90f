/* SPDX-License-Identifier: MIT */
/*
 * File identity: every way in which a file can become another one, or another content, is seen; looking
 * at it, or at what has not changed, is not.
 */
#include "core/system/file_identity.h"

#include "core/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define UNKNOWN 0 /* no file of these tests has that identity */

static char directory[] = "/tmp/curtsy-test-XXXXXX";

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) && chdir(directory) == 0 ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    return chdir("/") || rmdir(directory);
}

static int remove_files(void **state)
{
    static const char *const names[] = {"file", "other", "link", "fifo"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unlink(names[i]);
    return rmdir("folder") && errno != ENOENT;
}

static void write_to(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(file), 0);
}

static uint64_t identity_of(const char *path)
{
    uint64_t hash = HASH_START;
    errno = ENOTTY;
    bool is_known = file_identity_add(&hash, path);
    assert_int_equal(errno, ENOTTY);
    assert_true(is_known == (hash != HASH_START));
    return is_known ? hash : UNKNOWN;
}

static uint64_t identity_of_open(const char *path, int flags)
{
    uint64_t hash = HASH_START;
    int file = open(path, flags);
    assert_true(file >= 0);
    errno = ENOTTY;
    bool is_known = file_identity_add_open(&hash, file);
    assert_int_equal(errno, ENOTTY);
    assert_true(is_known == (hash != HASH_START));
    close(file);
    return is_known ? hash : UNKNOWN;
}

static void test_a_file_that_stays(void **state)
{
    char text[3];
    (void)state;
    write_to("file", "abc");
    uint64_t identity = identity_of("file");
    assert_int_not_equal(identity, UNKNOWN);
    int file = open("file", O_RDONLY);
    assert_int_equal(read(file, text, sizeof text), 3);
    close(file);
    assert_int_equal(identity_of("file"), identity);
    assert_int_equal(identity_of("./file"), identity);
    assert_int_equal(identity_of_open("file", O_RDONLY), identity);
}

/* What is added comes on top of what there was. */
static void test_going_on(void **state)
{
    uint64_t from_one = 1, from_two = 2, twice = HASH_START;
    (void)state;
    write_to("file", "abc");
    assert_true(file_identity_add(&from_one, "file"));
    assert_true(file_identity_add(&from_two, "file"));
    assert_int_not_equal(from_one, from_two);
    assert_true(file_identity_add(&twice, "file") && file_identity_add(&twice, "file"));
    assert_int_not_equal(twice, identity_of("file"));
}

static void test_replaced_by_rename(void **state)
{
    struct stat before;
    (void)state;
    write_to("file", "abc");
    uint64_t identity = identity_of("file");
    assert_int_equal(stat("file", &before), 0);
    write_to("other", "abc");
    const struct timespec times[2] = {before.st_atim, before.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, "other", times, 0), 0);
    assert_int_equal(rename("other", "file"), 0);
    assert_int_not_equal(identity_of("file"), identity);
}

/* The file system's clock may stand still for some milliseconds. */
static void rewrite_later(const char *path, const char *text)
{
    struct stat before, after;
    assert_int_equal(stat(path, &before), 0);
    do {
        write_to(path, text);
        assert_int_equal(stat(path, &after), 0);
    } while (after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
    const struct timespec times[2] = {before.st_atim, before.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* As long as before, and with the time of modification put back: there is still the time of change. */
static void test_rewritten_in_place(void **state)
{
    (void)state;
    write_to("file", "abc");
    uint64_t identity = identity_of("file");
    rewrite_later("file", "abd");
    assert_int_not_equal(identity_of("file"), identity);
}

static void test_another_time_of_modification(void **state)
{
    (void)state;
    write_to("file", "abc");
    uint64_t identity = identity_of("file");
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000, .tv_nsec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, "file", times, 0), 0);
    uint64_t another = identity_of("file");
    assert_int_not_equal(another, identity);
}

static void test_another_size(void **state)
{
    (void)state;
    write_to("file", "abc");
    uint64_t identity = identity_of("file");
    int file = open("file", O_WRONLY | O_APPEND);
    assert_int_equal(write(file, "d", 1), 1);
    close(file);
    assert_int_not_equal(identity_of("file"), identity);
}

static void test_a_link(void **state)
{
    (void)state;
    write_to("file", "abc");
    write_to("other", "abc");
    assert_int_equal(symlink("file", "link"), 0);
    uint64_t identity = identity_of("file");
    assert_int_equal(identity_of("link"), identity);
    assert_int_equal(unlink("link"), 0);
    assert_int_equal(symlink("other", "link"), 0);
    assert_int_equal(identity_of("link"), identity_of("other"));
    assert_int_not_equal(identity_of("link"), identity);
    unlink("other");
    assert_int_equal(identity_of("link"), UNKNOWN);
}

/* Nobody is waited for, either. */
static void test_what_is_no_regular_file(void **state)
{
    uint64_t hash = HASH_START;
    (void)state;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(identity_of("fifo"), UNKNOWN);
    assert_int_equal(identity_of_open("fifo", O_RDWR), UNKNOWN);
    assert_int_equal(identity_of("folder"), UNKNOWN);
    assert_int_equal(identity_of_open("folder", O_RDONLY), UNKNOWN);
    assert_int_equal(identity_of("/dev/null"), UNKNOWN);
    assert_int_equal(identity_of("missing"), UNKNOWN);
    assert_int_equal(identity_of("missing/file"), UNKNOWN);
    assert_int_equal(identity_of(""), UNKNOWN);
    assert_false(file_identity_add_open(&hash, -1));
    assert_int_equal(hash, HASH_START);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_file_that_stays, remove_files),
        cmocka_unit_test_teardown(test_going_on, remove_files),
        cmocka_unit_test_teardown(test_replaced_by_rename, remove_files),
        cmocka_unit_test_teardown(test_rewritten_in_place, remove_files),
        cmocka_unit_test_teardown(test_another_time_of_modification, remove_files),
        cmocka_unit_test_teardown(test_another_size, remove_files),
        cmocka_unit_test_teardown(test_a_link, remove_files),
        cmocka_unit_test_teardown(test_what_is_no_regular_file, remove_files),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
