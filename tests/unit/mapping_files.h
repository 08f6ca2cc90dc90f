/* SPDX-License-Identifier: MIT */
/*
 * What the tests of mapping share: each test has a file of its own, not there yet, under a directory that
 * is removed at the end; and children, in which a test may close, limit or give up what it likes.
 */
#ifndef CURTSY_TESTS_MAPPING_FILES_H
#define CURTSY_TESTS_MAPPING_FILES_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/bucket_world.h"

#include "core/system/mapping.h"

#define SIZE SEGMENT_SIZE_MIN

static char directory[64];
static char path[128];
static char error[256];

static inline int set_up(void **state)
{
    static unsigned number;
    (void)state;
    snprintf(path, sizeof path, "%s/segment%u", directory, number++);
    memset(error, 'x', sizeof error);
    return 0;
}

static inline int make_directory(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/curtsy-test-XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static inline int remove_directory(void **state)
{
    (void)state;
    DIR *listing = opendir(directory);
    for (struct dirent *entry; listing && (entry = readdir(listing)) != NULL;)
        unlinkat(dirfd(listing), entry->d_name, 0);
    if (listing)
        closedir(listing);
    return rmdir(directory);
}

static inline void write_file(const char *content, size_t length, mode_t mode)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, length), (ssize_t)length);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static inline struct stat status_of(const char *name)
{
    struct stat status;
    assert_int_equal(stat(name, &status), 0);
    return status;
}

static inline unsigned open_descriptors(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Runs `body` in a child, whose exit status 0 is success. */
static inline void in_child(int (*body)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(body());
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("child ended with status 0x%x", status);
}

/* As a segment of the usual size that is one's own. */
static inline bool open_it(struct mapping *mapping, const char *name, enum mapping_access access)
{
    return mapping_open(mapping, name, SIZE, MAPPING_PRIVATE_PERMISSIONS, access, error, sizeof error);
}

static inline bool attach_it(struct mapping *mapping, struct segment *segment, const char *name,
                             enum mapping_access access)
{
    return mapping_attach(mapping, segment, name, SIZE, MAPPING_PRIVATE_PERMISSIONS, access, error, sizeof error);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

#endif
