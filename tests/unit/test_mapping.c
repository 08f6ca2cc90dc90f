/* SPDX-License-Identifier: MIT */
/*
 * Mapping: files that are new, half-made, foreign, hostile or of another boot; programs with closed
 * descriptors and small limits; and many that come at once.  (For what other users may see
 * test_mapping_users.c, and for what happens to a file later test_mapping_look.c.)
 */
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "tests/unit/mapping_files.h"

#include "core/system/clock.h"

#define RACERS 8

/* --------------------------------------------------------------------- opening ---- */

static void test_default_name(void **state)
{
    (void)state;
    char name[64], expected[64];
    mapping_default_name(name, sizeof name);
    snprintf(expected, sizeof expected, "/curtsy.v1.%u", (unsigned)geteuid());
    assert_string_equal(name, expected);
}

static void test_made_allocated_private_and_shared(void **state)
{
    (void)state;
    struct mapping first, second;
    unsigned descriptors = open_descriptors();
    errno = EXDEV;
    assert_true(open_it(&first, path, MAPPING_CREATE));
    assert_int_equal(errno, EXDEV);
    assert_string_equal(error, "");
    assert_int_equal(first.size, SIZE);
    assert_false(first.is_private);
    struct stat status = status_of(path);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(status.st_size, SIZE);
    assert_true(status.st_blocks * 512 >= (blkcnt_t)SIZE);
    assert_int_equal(first.inode, status.st_ino);
    assert_int_equal(first.device, status.st_dev);
    assert_int_equal(first.owner, geteuid());

    assert_true(
        mapping_open(&second, path, 64 * SIZE, MAPPING_PRIVATE_PERMISSIONS, MAPPING_EXISTING, error, sizeof error));
    assert_int_equal(second.size, SIZE); /* it keeps its own */
    assert_int_equal(second.inode, first.inode);
    *(volatile int *)first.memory = 42;
    assert_int_equal(*(volatile int *)second.memory, 42);
    assert_int_equal(open_descriptors(), descriptors);
    mapping_close(&second);
    mapping_close(&first);
    assert_null(first.memory);
    assert_int_equal(access(path, F_OK), 0); /* nothing is unlinked */
}

static void test_a_name_is_under_dev_shm(void **state)
{
    (void)state;
    struct mapping mapping;
    char name[64], file[128];
    if (access("/dev/shm", W_OK) != 0)
        skip();
    for (int leading = 0; leading < 2; leading++) {
        snprintf(name, sizeof name, "%scurtsy.test.%d", leading ? "/" : "", (int)getpid());
        snprintf(file, sizeof file, "/dev/shm/curtsy.test.%d", (int)getpid());
        assert_true(open_it(&mapping, name, MAPPING_CREATE));
        assert_int_equal(status_of(file).st_ino, mapping.inode);
        mapping_close(&mapping);
    }
    unlink(file);
}

static void test_names_that_are_none(void **state)
{
    (void)state;
    char longest[5000];
    memset(longest, 'a', sizeof longest);
    longest[0] = '/';
    longest[sizeof longest - 1] = 0;
    const char *names[] = {"", "/", ".", "..", "/..", "a/b", "./budget", longest};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct mapping mapping;
        errno = EXDEV;
        assert_false(
            mapping_open(&mapping, names[i], SIZE, MAPPING_PRIVATE_PERMISSIONS, MAPPING_CREATE, error, sizeof error));
        assert_null(mapping.memory);
        assert_true(strlen(error) > 10);
        assert_int_equal(errno, EXDEV);
    }
    struct mapping mapping;
    assert_false(mapping_open(&mapping, "a/b", SIZE, MAPPING_PRIVATE_PERMISSIONS, MAPPING_CREATE, NULL, 0));
}

static void test_what_is_not_there(void **state)
{
    (void)state;
    struct mapping mapping;
    char expected[256];
    assert_false(open_it(&mapping, path, MAPPING_EXISTING));
    snprintf(expected, sizeof expected, "%s: No such file or directory", path);
    assert_string_equal(error, expected);
    assert_int_equal(access(path, F_OK), -1);
    strcat(path, "/below");
    assert_false(open_it(&mapping, path, MAPPING_CREATE));
}

static void test_a_file_left_short_is_grown(void **state)
{
    (void)state;
    const size_t lengths[] = {0, 1, 4096, SEGMENT_SIZE_MIN - 1};
    static const char zeros[SEGMENT_SIZE_MIN];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct mapping mapping;
        write_file(zeros, lengths[i], 0600);
        assert_false(mapping_open(&mapping, path, 0, MAPPING_PRIVATE_PERMISSIONS, MAPPING_EXISTING, error,
                                  sizeof error)); /* readers do not */
        assert_true(
            mapping_open(&mapping, path, 2 * SIZE, MAPPING_PRIVATE_PERMISSIONS, MAPPING_CREATE, error, sizeof error));
        assert_int_equal(mapping.size, 2 * SIZE);
        assert_int_equal(status_of(path).st_size, 2 * SIZE);
        ((volatile char *)mapping.memory)[2 * SIZE - 1] = 1;
        mapping_close(&mapping);
    }
}

static void test_a_sparse_file_is_allocated(void **state)
{
    (void)state;
    struct mapping mapping;
    write_file("", 0, 0600);
    assert_int_equal(truncate(path, SIZE), 0);
    assert_true(open_it(&mapping, path, MAPPING_CREATE));
    assert_true(status_of(path).st_blocks * 512 >= (blkcnt_t)SIZE);
    mapping_close(&mapping);
}

static void test_sizes_are_made_sensible(void **state)
{
    (void)state;
    const uint64_t sizes[][2] = {{0, SEGMENT_SIZE_MIN}, {SEGMENT_SIZE_MIN + 1, SEGMENT_SIZE_MIN + 4096}};
    for (size_t i = 0; i < 2; i++) {
        struct mapping mapping;
        set_up(NULL);
        assert_true(mapping_open(&mapping, path, sizes[i][0], MAPPING_PRIVATE_PERMISSIONS, MAPPING_CREATE, error,
                                 sizeof error));
        assert_int_equal(mapping.size, sizes[i][1]);
        mapping_close(&mapping);
    }
}

static void expect_refusal(const char *why)
{
    struct mapping mapping;
    unsigned descriptors = open_descriptors();
    assert_false(open_it(&mapping, path, MAPPING_CREATE));
    assert_null(mapping.memory);
    if (!strstr(error, why))
        fail_msg("\"%s\" does not say \"%s\"", error, why);
    assert_int_equal(open_descriptors(), descriptors);
}

static void test_what_is_not_ours_is_refused(void **state)
{
    (void)state;
    write_file("x", 1, 0600);
    char target[sizeof path + 8];
    snprintf(target, sizeof target, "%s.link", path);
    assert_int_equal(symlink(path, target), 0);
    strcpy(path, target);
    expect_refusal("symbolic link");

    set_up(NULL);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refusal("not a regular file");

    strcpy(path, "/dev/null");
    expect_refusal("not a regular file");
    strcpy(path, directory);
    expect_refusal("directory");

    set_up(NULL);
    write_file("", 0, 0600);
    assert_int_equal(truncate(path, SEGMENT_SIZE_MAX + 4096), 0);
    expect_refusal("too large");
}

static void test_other_users(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    write_file("", 0, 0600);
    assert_int_equal(chown(path, 12345, 12345), 0);
    expect_refusal("another user");
}

/* As a user who is not root. */
static int as_a_user(void)
{
    struct mapping mapping;
    char own[sizeof path + 8];
    snprintf(own, sizeof own, "%s.own", path);
    if (chown(path, 0, 0) != 0 || chmod(path, 0666) != 0 || chmod(directory, 0777) != 0 || setuid(12345) != 0)
        return 1;
    if (!open_it(&mapping, path, MAPPING_CREATE))
        return 2; /* root's, for everybody */
    mapping_close(&mapping);
    if (!open_it(&mapping, own, MAPPING_CREATE) || mapping.owner != 12345)
        return 3;
    mapping_close(&mapping);
    if (chmod(own, 0620) != 0 || open_it(&mapping, own, MAPPING_CREATE))
        return 4; /* ours, and others may write it */
    return unlink(own);
}

static void test_a_user_takes_roots_file_and_none_that_others_may_write(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    write_file("", 0, 0600);
    assert_int_equal(truncate(path, SIZE), 0);
    in_child(as_a_user);
}

/* ------------------------------------------------------------------ odd programs ---- */

static int with_a_small_file_size(void)
{
    struct mapping mapping;
    const struct rlimit small = {1024, 1024};
    char made[sizeof path];
    strcpy(made, path);
    if (!open_it(&mapping, path, MAPPING_CREATE))
        return 1;
    mapping_close(&mapping);
    setrlimit(RLIMIT_FSIZE, &small);
    if (!open_it(&mapping, made, MAPPING_CREATE))
        return 2; /* it is there already: nothing grows */
    mapping_close(&mapping);
    strcat(path, ".new");
    if (open_it(&mapping, path, MAPPING_CREATE) || !strstr(error, strerror(EFBIG)))
        return 3;
    return 0;
}

static void test_a_file_size_limit_kills_nobody(void **state)
{
    (void)state;
    in_child(with_a_small_file_size);
}

static int with_standard_descriptors_closed(void)
{
    struct mapping mapping;
    for (int fd = 0; fd < 256; fd++)
        close(fd);
    if (!open_it(&mapping, path, MAPPING_CREATE))
        return 1;
    for (int fd = 0; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return 2;
    mapping_close(&mapping);
    return 0;
}

static void test_closed_descriptors_stay_closed(void **state)
{
    (void)state;
    in_child(with_standard_descriptors_closed);
}

static int without_descriptors(void)
{
    struct mapping mapping;
    struct segment segment;
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    if (open_it(&mapping, path, MAPPING_CREATE) || !strstr(error, strerror(EMFILE)))
        return 1;
    clock_boot_name();
    if (!attach_it(&mapping, &segment, path, MAPPING_CREATE) || !mapping.is_private)
        return 2;
    return *error ? 0 : 3;
}

static void test_no_descriptors_left(void **state)
{
    (void)state;
    in_child(without_descriptors);
}

/* A file system with room for less than a segment, if we may make one: 77 otherwise. */
static int on_a_full_file_system(void)
{
    struct mapping mapping;
    struct segment segment;
    char file[sizeof directory + 16];
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", directory, "tmpfs", 0, "size=64k") != 0)
        return 0;
    snprintf(file, sizeof file, "%s/segment", directory);
    if (open_it(&mapping, file, MAPPING_CREATE) || !strstr(error, strerror(ENOSPC)))
        return 1;
    if (!attach_it(&mapping, &segment, file, MAPPING_CREATE) || !mapping.is_private ||
        !segment_bucket(&segment, "host", 1))
        return 2;
    return 0;
}

static void test_a_full_file_system(void **state)
{
    (void)state;
    in_child(on_a_full_file_system);
}

static int makes_it(void)
{
    struct mapping mapping;
    if (!open_it(&mapping, path, MAPPING_CREATE))
        return 1;
    atomic_fetch_add((_Atomic uint64_t *)mapping.memory, 1);
    return 0;
}

static void race(int (*body)(void))
{
    pid_t pid[RACERS];
    for (int i = 0; i < RACERS; i++)
        if ((pid[i] = fork()) == 0)
            _exit(body());
    for (int i = 0; i < RACERS; i++) {
        int status;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void test_many_make_it_at_once(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct mapping mapping;
        set_up(NULL);
        race(makes_it);
        assert_true(open_it(&mapping, path, MAPPING_EXISTING));
        assert_int_equal(*(uint64_t *)mapping.memory, RACERS);
        mapping_close(&mapping);
    }
}

/* ------------------------------------------------------------------- attaching ---- */

static void test_private_memory_is_shared_with_children(void **state)
{
    (void)state;
    struct mapping mapping;
    assert_true(mapping_private(&mapping, 1));
    assert_int_equal(mapping.size, SEGMENT_SIZE_MIN);
    assert_true(mapping.is_private);
    if (fork() == 0) {
        *(volatile int *)mapping.memory = 7;
        _exit(0);
    }
    wait(NULL);
    assert_int_equal(*(volatile int *)mapping.memory, 7);
    mapping_close(&mapping);
    mapping_close(&mapping);
}

static void test_attach_and_fall_back(void **state)
{
    (void)state;
    struct mapping mapping;
    struct segment segment;
    assert_true(attach_it(&mapping, &segment, path, MAPPING_CREATE));
    assert_string_equal(error, "");
    assert_false(mapping.is_private);
    assert_non_null(segment_bucket(&segment, "host:443", 1000 * S));
    mapping_close(&mapping);
    assert_true(attach_it(&mapping, &segment, path, MAPPING_EXISTING));
    assert_non_null(segment_find(&segment, "host:443"));
    mapping_close(&mapping);

    strcpy(path, "/nonexistent/curtsy/budget");
    errno = EXDEV;
    assert_true(attach_it(&mapping, &segment, path, MAPPING_CREATE));
    assert_int_equal(errno, EXDEV);
    assert_true(mapping.is_private);
    assert_string_equal(error, "/nonexistent/curtsy/budget: No such file or directory");
    assert_non_null(segment_bucket(&segment, "host:443", 1000 * S));
    mapping_close(&mapping);
    assert_false(attach_it(&mapping, &segment, path, MAPPING_EXISTING));
    assert_null(segment.header);
}

static void test_a_foreign_file_is_left_alone(void **state)
{
    (void)state;
    struct mapping mapping;
    struct segment segment;
    char *text = malloc(SIZE);
    memset(text, 'a', SIZE);
    write_file(text, SIZE, 0600);
    struct stat before = status_of(path);
    assert_true(attach_it(&mapping, &segment, path, MAPPING_CREATE));
    assert_true(mapping.is_private);
    assert_non_null(strstr(error, "not a segment"));
    mapping_close(&mapping);
    assert_true(open_it(&mapping, path, MAPPING_EXISTING));
    assert_memory_equal(mapping.memory, text, SIZE);
    assert_int_equal(status_of(path).st_ino, before.st_ino);
    mapping_close(&mapping);
    free(text);
}

/* A wrong path must not cost anybody his data. */
static void test_a_short_foreign_file_is_left_alone(void **state)
{
    (void)state;
    static const char text[] = "precious data";
    struct mapping mapping;
    struct segment segment;
    char found[sizeof text];
    write_file(text, strlen(text), 0600);
    assert_true(attach_it(&mapping, &segment, path, MAPPING_CREATE));
    assert_true(mapping.is_private);
    assert_non_null(strstr(error, "not a segment"));
    mapping_close(&mapping);
    assert_int_equal(status_of(path).st_size, strlen(text));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, sizeof found, file), strlen(text));
    fclose(file);
    assert_memory_equal(found, text, strlen(text));
}

static uint64_t written_under(uint64_t change_boot)
{
    struct mapping mapping;
    struct segment segment;
    assert_true(attach_it(&mapping, &segment, path, MAPPING_CREATE));
    segment_bucket(&segment, "host:443", 1000 * S);
    atomic_fetch_xor(&segment.header->boot, change_boot);
    uint64_t inode = mapping.inode;
    mapping_close(&mapping);
    return inode;
}

static void test_a_segment_of_an_earlier_boot_is_replaced(void **state)
{
    (void)state;
    struct mapping mapping;
    struct segment segment;
    written_under(UINT64_C(1) << 40);
    assert_false(attach_it(&mapping, &segment, path, MAPPING_EXISTING));
    assert_non_null(strstr(error, "before this machine was started"));
    assert_true(attach_it(&mapping, &segment, path, MAPPING_CREATE));
    assert_string_equal(error, "");
    assert_false(mapping.is_private);
    assert_null(segment_find(&segment, "host:443"));
    mapping_close(&mapping);
}

/* Those who use it are alive, and their clock is another: we keep away from each other. */
static void test_a_segment_of_another_time_namespace_is_left_alone(void **state)
{
    (void)state;
    struct mapping mapping;
    struct segment segment;
    uint64_t inode = written_under(1);
    assert_true(attach_it(&mapping, &segment, path, MAPPING_CREATE));
    assert_true(mapping.is_private);
    assert_true(strlen(error) > 10);
    assert_int_equal(status_of(path).st_ino, inode);
    mapping_close(&mapping);
}

static int attaches_and_counts(void)
{
    struct mapping mapping;
    struct segment segment;
    if (!attach_it(&mapping, &segment, path, MAPPING_CREATE) || mapping.is_private)
        return 1;
    segment_bump_generation(&segment);
    return 0;
}

static void test_many_replace_it_at_once(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct mapping mapping;
        struct segment segment;
        set_up(NULL);
        written_under(UINT64_C(1) << 40);
        race(attaches_and_counts);
        assert_true(attach_it(&mapping, &segment, path, MAPPING_EXISTING));
        assert_int_equal(segment_generation(&segment), RACERS); /* all of them in one file */
        mapping_close(&mapping);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_default_name),
        TEST(test_made_allocated_private_and_shared),
        TEST(test_a_name_is_under_dev_shm),
        TEST(test_names_that_are_none),
        TEST(test_what_is_not_there),
        TEST(test_a_file_left_short_is_grown),
        TEST(test_a_sparse_file_is_allocated),
        TEST(test_sizes_are_made_sensible),
        TEST(test_what_is_not_ours_is_refused),
        TEST(test_other_users),
        TEST(test_a_user_takes_roots_file_and_none_that_others_may_write),
        TEST(test_a_file_size_limit_kills_nobody),
        TEST(test_closed_descriptors_stay_closed),
        TEST(test_no_descriptors_left),
        TEST(test_a_full_file_system),
        TEST(test_many_make_it_at_once),
        TEST(test_private_memory_is_shared_with_children),
        TEST(test_attach_and_fall_back),
        TEST(test_a_foreign_file_is_left_alone),
        TEST(test_a_short_foreign_file_is_left_alone),
        TEST(test_a_segment_of_an_earlier_boot_is_replaced),
        TEST(test_a_segment_of_another_time_namespace_is_left_alone),
        TEST(test_many_replace_it_at_once),
    };
    return cmocka_run_group_tests_name("mapping", tests, make_directory, remove_directory);
}
