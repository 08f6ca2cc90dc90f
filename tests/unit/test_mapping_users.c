/* SPDX-License-Identifier: MIT */
/*
 * Mapping between users: what a file that is made here is like, who uses it, who may look at it, and who
 * may operate it.  Most of it needs root, who becomes another user in a child.
 */
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/unit/mapping_files.h"

#include "core/system/clock.h"

#define ALICE 12345
#define BOB 12346
#define STAFF 12347

static const struct mapping_permissions for_everybody = {0666, MAPPING_OWN_GROUP};
static const struct mapping_permissions for_staff = {0660, STAFF};

static int set_up_for_root(void **state)
{
    set_up(state);
    umask(022);
    return chmod(directory, 0777);
}

#define NEEDS_ROOT()                                                                                                   \
    do {                                                                                                               \
        if (geteuid() != 0)                                                                                            \
            skip();                                                                                                    \
    } while (0)

static bool become(uid_t user, gid_t group)
{
    return syscall(SYS_setgroups, 0, NULL) == 0 && setgid(group) == 0 && setuid(user) == 0;
}

static bool attach_with(struct mapping_permissions permissions, enum mapping_access access)
{
    struct mapping mapping;
    struct segment segment;
    bool attached =
        mapping_attach(&mapping, &segment, path, SIZE, permissions, access, error, sizeof error) && !mapping.is_private;
    mapping_close(&mapping);
    return attached;
}

static void make(struct mapping_permissions permissions)
{
    assert_true(attach_with(permissions, MAPPING_CREATE));
    assert_string_equal(error, "");
}

/* A segment of that owner, group and mode. */
static void make_for(uid_t user, gid_t group, mode_t mode)
{
    make(MAPPING_PRIVATE_PERMISSIONS);
    assert_int_equal(chown(path, user, group), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void assert_mode(unsigned mode)
{
    assert_int_equal(status_of(path).st_mode & ALLPERMS, mode);
}

/* ----------------------------------------------------------------------- making ---- */

static void test_the_mode_is_exact_whatever_the_umask(void **state)
{
    NEEDS_ROOT();
    const mode_t masks[] = {0, 022, 077, 0777};
    const unsigned modes[] = {0600, 0660, 0666};
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 3; j++) {
            set_up_for_root(state);
            umask(masks[i]);
            make((struct mapping_permissions){modes[j], MAPPING_OWN_GROUP});
            assert_mode(modes[j]);
        }
}

static void test_it_gets_its_group(void **state)
{
    (void)state;
    NEEDS_ROOT();
    make(for_staff);
    assert_int_equal(status_of(path).st_gid, STAFF);
    assert_int_equal(status_of(path).st_uid, 0);
    assert_mode(0660);
}

static void test_what_is_there_keeps_its_own(void **state)
{
    (void)state;
    NEEDS_ROOT();
    make(for_staff);
    make(for_everybody);
    make(MAPPING_PRIVATE_PERMISSIONS);
    assert_int_equal(status_of(path).st_gid, STAFF);
    assert_mode(0660);
}

/* Without CAP_CHOWN, as in many containers: the group that it has got is another one. */
static int without_the_right_to_give_it_away(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) != 0)
        return 1;
    data[0].effective &= ~(1U << CAP_CHOWN);
    if (syscall(SYS_capset, &header, data) != 0)
        return 2;
    return attach_with(for_staff, MAPPING_CREATE) ? 0 : 3;
}

static void test_a_group_that_cannot_be_given_gets_nothing(void **state)
{
    (void)state;
    NEEDS_ROOT();
    in_child(without_the_right_to_give_it_away);
    assert_mode(0600);
    assert_int_equal(status_of(path).st_gid, getegid());
}

/* The first one died between making it and giving it its mode. */
static void test_who_comes_next_goes_on_with_it(void **state)
{
    (void)state;
    NEEDS_ROOT();
    write_file("", 0, 0600);
    make(for_staff);
    assert_mode(0660);
    assert_int_equal(status_of(path).st_gid, STAFF);
}

/* systemd-tmpfiles: "f /run/curtsy/budget 0666 root root" */
static int fills_it(void)
{
    return become(ALICE, ALICE) && attach_with(MAPPING_PRIVATE_PERMISSIONS, MAPPING_CREATE) ? 0 : 1;
}

static void test_one_that_was_made_empty_for_others_is_filled_by_them(void **state)
{
    NEEDS_ROOT();
    write_file("", 0, 0666);
    make(MAPPING_PRIVATE_PERMISSIONS);
    assert_mode(0666);

    set_up_for_root(state);
    write_file("", 0, 0666);
    in_child(fills_it);
    assert_int_equal(status_of(path).st_size, SIZE);
    assert_true(status_of(path).st_blocks * 512 >= (blkcnt_t)SIZE);
    make(MAPPING_PRIVATE_PERMISSIONS);
    assert_mode(0666);
}

/* Others could not use it, and root could not make it any more. */
static int makes_none_for_others(void)
{
    struct mapping mapping;
    struct segment segment;
    if (!become(ALICE, ALICE))
        return 1;
    if (!mapping_attach(&mapping, &segment, path, SIZE, for_everybody, MAPPING_CREATE, error, sizeof error) ||
        !mapping.is_private || !strstr(error, "has to be made by root"))
        return 2;
    mapping_close(&mapping);
    if (access(path, F_OK) == 0 || attach_with(for_staff, MAPPING_CREATE) || access(path, F_OK) == 0)
        return 3;
    if (!attach_with(MAPPING_PRIVATE_PERMISSIONS, MAPPING_CREATE))
        return 4;
    /* it is his own, and there: the permissions are those of one that is to be made */
    return attach_with(for_everybody, MAPPING_CREATE) ? 0 : 5;
}

static void test_a_user_makes_none_for_others(void **state)
{
    (void)state;
    NEEDS_ROOT();
    in_child(makes_none_for_others);
    assert_mode(0600);
}

/* ----------------------------------------------------------------------- sharing ---- */

static uid_t as_user;
static gid_t as_group;

static int uses_it(void)
{
    struct mapping mapping;
    struct segment segment;
    if (!become(as_user, as_group))
        return 1;
    if (!mapping_attach(&mapping, &segment, path, SIZE, for_everybody, MAPPING_CREATE, error, sizeof error))
        return 2;
    if (mapping.is_private)
        return 3;
    segment_bump_generation(&segment);
    return 0;
}

/* The exit status of uses_it. */
static int used_by(uid_t user, gid_t group)
{
    int status;
    pid_t pid = fork();
    as_user = user;
    as_group = group;
    if (pid == 0)
        _exit(uses_it());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static uint64_t generation(void)
{
    struct mapping mapping;
    struct segment segment;
    assert_true(attach_it(&mapping, &segment, path, MAPPING_VIEW));
    uint64_t found = segment_generation(&segment);
    mapping_close(&mapping);
    return found;
}

static void test_roots_is_shared_by_those_who_may_write_it(void **state)
{
    NEEDS_ROOT();
    make(for_everybody);
    assert_int_equal(used_by(ALICE, ALICE), 0);
    assert_int_equal(used_by(BOB, BOB), 0);
    assert_int_equal(used_by(0, 0), 0);
    assert_int_equal(generation(), 3);

    set_up_for_root(state);
    make(for_staff);
    assert_int_equal(used_by(ALICE, STAFF), 0);
    assert_int_equal(used_by(BOB, BOB), 3);
    assert_int_equal(used_by(0, 0), 0);
    assert_int_equal(generation(), 2);

    set_up_for_root(state);
    make(MAPPING_PRIVATE_PERMISSIONS);
    assert_int_equal(used_by(ALICE, 0), 3);
}

static void test_a_users_is_used_by_nobody_else(void **state)
{
    (void)state;
    NEEDS_ROOT();
    make_for(ALICE, ALICE, 0600);
    assert_int_equal(used_by(ALICE, ALICE), 0);
    assert_int_equal(used_by(BOB, BOB), 3);
    assert_int_equal(used_by(0, 0), 3); /* not even by root, who would have to believe her */
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(used_by(BOB, BOB), 3);
    assert_int_equal(used_by(ALICE, ALICE), 3);
    assert_int_equal(generation(), 1);
}

static void write_word(off_t at, uint64_t word)
{
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, &word, sizeof word, at), sizeof word);
    close(fd);
}

static bool has_blocks_of(uint64_t size)
{
    return status_of(path).st_blocks * 512 >= (blkcnt_t)size;
}

/* The memory would be charged to whoever allocates it. */
static void test_what_others_write_makes_nobody_allocate_much(void **state)
{
    NEEDS_ROOT();
    make(for_everybody);
    assert_int_equal(truncate(path, 64 * SIZE), 0);
    assert_int_equal(used_by(0, 0), 0); /* of its own size, as before */
    write_word(offsetof(struct segment_header, size), 64 * SIZE);
    assert_int_equal(used_by(0, 0), 3);
    write_word(0, 0); /* not begun yet */
    assert_int_equal(used_by(0, 0), 3);
    assert_false(has_blocks_of(2 * SIZE));

    /* One's own is what one has made of it. */
    set_up_for_root(state);
    make(MAPPING_PRIVATE_PERMISSIONS);
    write_word(offsetof(struct segment_header, size), 2 * SIZE);
    assert_int_equal(used_by(0, 0), 0);
    assert_true(has_blocks_of(2 * SIZE));
}

static int finds_an_old_one(void)
{
    return become(ALICE, ALICE) && !attach_with(MAPPING_PRIVATE_PERMISSIONS, MAPPING_CREATE) ? 0 : 1;
}

static void age(void)
{
    struct mapping mapping;
    assert_true(open_it(&mapping, path, MAPPING_OPERATE));
    atomic_fetch_xor(&((struct segment_header *)mapping.memory)->boot, UINT64_C(1) << 40);
    mapping_close(&mapping);
}

static void test_roots_old_one_is_replaced_by_root_only(void **state)
{
    (void)state;
    NEEDS_ROOT();
    make(for_everybody);
    age();
    ino_t inode = status_of(path).st_ino;
    in_child(finds_an_old_one);
    assert_int_equal(status_of(path).st_ino, inode);
    make(for_everybody);
    assert_int_equal(generation(), 0);
    assert_mode(0666);
}

/* ----------------------------------------------------------------------- looking ---- */

static int writes_to_what_it_may_only_look_at(void)
{
    struct mapping mapping;
    struct segment segment;
    const struct rlimit none = {0, 0};
    if (!attach_it(&mapping, &segment, path, MAPPING_VIEW) || !mapping.is_view || mapping.owner != geteuid())
        return 1;
    setrlimit(RLIMIT_CORE, &none);
    *(volatile char *)mapping.memory = 1;
    return 0;
}

static void test_a_view_cannot_be_written_to(void **state)
{
    (void)state;
    int status;
    make(MAPPING_PRIVATE_PERMISSIONS);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        _exit(writes_to_what_it_may_only_look_at());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

/* Everything of a file that could be seen to have changed. */
struct picture {
    struct stat status;
    uint32_t sum;
};

static struct picture picture_of_it(void)
{
    struct picture picture = {.status = status_of(path)};
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (int byte; (byte = fgetc(file)) != EOF;)
        picture.sum = picture.sum * 31 + (uint32_t)byte + 1;
    fclose(file);
    return picture;
}

static void assert_unchanged(const struct picture *before)
{
    struct picture now = picture_of_it();
    assert_int_equal(now.sum, before->sum);
    assert_int_equal(now.status.st_size, before->status.st_size);
    assert_int_equal(now.status.st_blocks, before->status.st_blocks);
    assert_int_equal(now.status.st_mode, before->status.st_mode);
    assert_int_equal(now.status.st_ino, before->status.st_ino);
    assert_memory_equal(&now.status.st_mtim, &before->status.st_mtim, sizeof now.status.st_mtim);
    assert_memory_equal(&now.status.st_ctim, &before->status.st_ctim, sizeof now.status.st_ctim);
}

static void expect_no_view(const char *why)
{
    struct mapping mapping;
    struct segment segment;
    struct picture before = picture_of_it();
    assert_false(attach_it(&mapping, &segment, path, MAPPING_VIEW));
    assert_null(mapping.memory);
    assert_null(segment.header);
    if (!strstr(error, why))
        fail_msg("\"%s\" does not say \"%s\"", error, why);
    assert_unchanged(&before);
}

static void test_looking_changes_nothing(void **state)
{
    struct mapping mapping;
    struct segment segment;
    make(MAPPING_PRIVATE_PERMISSIONS);
    struct picture before = picture_of_it();
    assert_true(attach_it(&mapping, &segment, path, MAPPING_VIEW));
    assert_string_equal(error, "");
    assert_int_equal(mapping_look(&mapping, path), MAPPING_IN_PLACE);
    assert_int_equal(segment.size, SIZE);
    mapping_close(&mapping);
    assert_unchanged(&before);

    age();
    expect_no_view("before this machine was started");

    set_up(state);
    write_file("", 0, 0600);
    expect_no_view("smaller than");
    assert_int_equal(truncate(path, SIZE), 0);
    expect_no_view("not a segment"); /* nobody has begun it */
    write_file("something else", 14, 0600);
    expect_no_view("smaller than");

    set_up(state);
    assert_false(attach_it(&mapping, &segment, path, MAPPING_VIEW));
    assert_non_null(strstr(error, strerror(ENOENT)));
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_false(attach_it(&mapping, &segment, path, MAPPING_VIEW));
    assert_non_null(strstr(error, "a symbolic link"));
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(attach_it(&mapping, &segment, path, MAPPING_VIEW)); /* and does not wait for a writer */
    assert_non_null(strstr(error, "not a regular file"));
}

static int looks_at_others(void)
{
    if (!become(BOB, BOB))
        return 1;
    if (attach_with(MAPPING_PRIVATE_PERMISSIONS, MAPPING_VIEW))
        return 0;
    return strstr(error, strerror(EACCES)) ? 2 : 3;
}

static void test_who_may_read_it_may_look_at_it(void **state)
{
    (void)state;
    NEEDS_ROOT();
    make_for(ALICE, ALICE, 0644);
    assert_true(attach_with(MAPPING_PRIVATE_PERMISSIONS, MAPPING_VIEW));
    in_child(looks_at_others);
    assert_int_equal(chmod(path, 0600), 0);
    assert_true(attach_with(MAPPING_PRIVATE_PERMISSIONS, MAPPING_VIEW)); /* as root */
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(looks_at_others());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 2);
}

/* --------------------------------------------------------------------- operating ---- */

static void test_root_operates_anybodys(void **state)
{
    (void)state;
    struct mapping mapping;
    struct segment segment;
    NEEDS_ROOT();
    make_for(ALICE, ALICE, 0600);
    assert_true(attach_it(&mapping, &segment, path, MAPPING_OPERATE));
    assert_int_equal(mapping.owner, ALICE);
    segment_bump_generation(&segment);
    mapping_close(&mapping);
    assert_int_equal(generation(), 1);
    assert_int_equal(status_of(path).st_uid, ALICE);
    assert_int_equal(used_by(ALICE, ALICE), 0);
    assert_int_equal(generation(), 2);
}

static int operates(void)
{
    return become(BOB, STAFF) && attach_with(MAPPING_PRIVATE_PERMISSIONS, MAPPING_OPERATE) ? 0 : 1;
}

static int does_not_operate(void)
{
    return operates() == 1 && strlen(error) > strlen(path) ? 0 : 1;
}

static void test_a_user_operates_what_he_may_use(void **state)
{
    (void)state;
    NEEDS_ROOT();
    make(for_staff);
    in_child(operates);
    assert_int_equal(chmod(path, 0600), 0);
    in_child(does_not_operate);
    assert_int_equal(chown(path, ALICE, STAFF), 0);
    assert_int_equal(chmod(path, 0666), 0);
    in_child(does_not_operate);
    assert_int_equal(chown(path, BOB, STAFF), 0);
    in_child(does_not_operate); /* his, but others may write it: no program of his uses it */
    assert_int_equal(chmod(path, 0600), 0);
    in_child(operates);
}

static void expect_no_operating(const char *why)
{
    struct mapping mapping;
    struct segment segment;
    struct picture before = picture_of_it();
    assert_false(attach_it(&mapping, &segment, path, MAPPING_OPERATE));
    if (!strstr(error, why))
        fail_msg("\"%s\" does not say \"%s\"", error, why);
    assert_unchanged(&before);
}

static void test_only_a_segment_is_operated(void **state)
{
    struct mapping mapping;
    struct segment segment;
    char *text = malloc(SIZE);
    memset(text, 'a', SIZE);
    write_file(text, SIZE, 0600);
    free(text);
    expect_no_operating("not a segment");
    write_file("", 0, 0600);
    expect_no_operating("smaller than");
    assert_int_equal(truncate(path, SIZE), 0);
    expect_no_operating("not a segment");

    set_up(state);
    assert_false(attach_it(&mapping, &segment, path, MAPPING_OPERATE));
    assert_int_not_equal(access(path, F_OK), 0);
    make(MAPPING_PRIVATE_PERMISSIONS);
    age();
    expect_no_operating("before this machine was started");
}

#define TEST_FOR_ROOT(name) cmocka_unit_test_setup(name, set_up_for_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_FOR_ROOT(test_the_mode_is_exact_whatever_the_umask),
        TEST_FOR_ROOT(test_it_gets_its_group),
        TEST_FOR_ROOT(test_what_is_there_keeps_its_own),
        TEST_FOR_ROOT(test_a_group_that_cannot_be_given_gets_nothing),
        TEST_FOR_ROOT(test_who_comes_next_goes_on_with_it),
        TEST_FOR_ROOT(test_one_that_was_made_empty_for_others_is_filled_by_them),
        TEST_FOR_ROOT(test_a_user_makes_none_for_others),
        TEST_FOR_ROOT(test_roots_is_shared_by_those_who_may_write_it),
        TEST_FOR_ROOT(test_a_users_is_used_by_nobody_else),
        TEST_FOR_ROOT(test_what_others_write_makes_nobody_allocate_much),
        TEST_FOR_ROOT(test_roots_old_one_is_replaced_by_root_only),
        TEST_FOR_ROOT(test_a_view_cannot_be_written_to),
        TEST_FOR_ROOT(test_looking_changes_nothing),
        TEST_FOR_ROOT(test_who_may_read_it_may_look_at_it),
        TEST_FOR_ROOT(test_root_operates_anybodys),
        TEST_FOR_ROOT(test_a_user_operates_what_he_may_use),
        TEST_FOR_ROOT(test_only_a_segment_is_operated),
    };
    return cmocka_run_group_tests_name("mapping between users", tests, make_directory, remove_directory);
}
