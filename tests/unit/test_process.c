/* SPDX-License-Identifier: MIT */
/*
 * Processes and clocks: who is dead is told from who is stopped, a zombie, a stranger's or a pid
 * that came again; and what program this is, by running copies of this test under other names.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "core/system/process.h"

/* ---------------------------------------------------------------- who is alive ---- */

static void test_self_is_this_process_and_no_child(void **state)
{
    (void)state;
    uint64_t self = process_self();
    int pipes[2];
    uint64_t child = 0;
    assert_true(self != 0);
    assert_int_equal((uint32_t)self, getpid());
    assert_true(process_self() == self);
    assert_false(process_is_dead(self));
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        child = process_self();
        _exit(write(pipes[1], &child, sizeof child) != sizeof child);
    }
    assert_int_equal(read(pipes[0], &child, sizeof child), sizeof child);
    waitpid(pid, NULL, 0);
    assert_int_equal((uint32_t)child, pid);
    assert_true(child >> 48 == self >> 48); /* the same namespace */
    close(pipes[0]);
    close(pipes[1]);
}

/* The child's own word for itself, and the child stopped. */
static pid_t start_child(uint64_t *owner)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        uint64_t self = process_self();
        if (write(pipes[1], &self, sizeof self) != sizeof self)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(pipes[0], owner, sizeof *owner), sizeof *owner);
    close(pipes[0]);
    close(pipes[1]);
    return pid;
}

static void test_dead_is_what_runs_no_more(void **state)
{
    (void)state;
    uint64_t owner;
    pid_t pid = start_child(&owner);
    siginfo_t info;
    int status;
    errno = EXDEV;
    assert_false(process_is_dead(owner));
    assert_int_equal(errno, EXDEV);
    kill(pid, SIGSTOP);
    waitpid(pid, &status, WUNTRACED);
    assert_false(process_is_dead(owner)); /* stopped is alive */
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(process_is_dead(owner)); /* a zombie, whom its parent has not buried */
    waitpid(pid, &status, 0);
    assert_true(process_is_dead(owner));
}

static void test_a_pid_that_came_again_is_another(void **state)
{
    (void)state;
    uint64_t owner;
    pid_t pid = start_child(&owner);
    uint64_t start = owner >> 32 & 0xffff;
    uint64_t earlier = (owner & ~(UINT64_C(0xffff) << 32)) | (start > 1 ? start - 1 : start + 1) << 32;
    uint64_t unknown = owner & ~(UINT64_C(0xffff) << 32);
    assert_true(process_is_dead(earlier));
    assert_false(process_is_dead(unknown));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(process_is_dead(unknown));
}

static void test_what_cannot_be_proven_is_alive(void **state)
{
    (void)state;
    uint64_t owner;
    pid_t pid = start_child(&owner);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(process_is_dead(owner));
    assert_false(process_is_dead(owner ^ UINT64_C(1) << 48)); /* of another namespace */
    assert_false(process_is_dead(owner & UINT64_C(0xffffffffffff)));
    assert_false(process_is_dead(0));
    assert_false(process_is_dead(UINT64_MAX));
    assert_false(process_is_dead((process_self() & ~UINT64_C(0xffffffff)) | UINT32_MAX)); /* kill(-1) is everybody */
}

static void *outlive_the_first(void *unused)
{
    (void)unused;
    for (;;)
        pause();
    return NULL;
}

/* Its first thread has ended, so that it looks like a zombie, and it runs on. */
static void test_a_process_without_its_first_thread_is_alive(void **state)
{
    (void)state;
    int pipes[2];
    uint64_t owner;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        owner = process_self();
        if (pthread_create(&thread, NULL, outlive_the_first, NULL) != 0 ||
            write(pipes[1], &owner, sizeof owner) != sizeof owner)
            _exit(1);
        pthread_exit(NULL);
    }
    assert_int_equal(read(pipes[0], &owner, sizeof owner), sizeof owner);
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    while (!strstr(text, ") Z")) { /* until it has ended */
        int fd = open(path, O_RDONLY);
        assert_true(fd >= 0);
        ssize_t length = read(fd, text, sizeof text - 1);
        close(fd);
        text[length > 0 ? length : 0] = 0;
        sched_yield();
    }
    assert_false(process_is_dead(owner));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(process_is_dead(owner));
    close(pipes[0]);
    close(pipes[1]);
}

/* ----------------------------------------------------------- what program it is ---- */

static char directory[64];

static int make_directory(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/curtsy-test-XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

static void path_in(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%s", directory, name);
}

static void copy_file(const char *from, const char *to)
{
    char buffer[65536];
    int in = open(from, O_RDONLY), out = open(to, O_CREAT | O_WRONLY | O_TRUNC, 0755);
    assert_true(in >= 0 && out >= 0);
    for (ssize_t length; (length = read(in, buffer, sizeof buffer)) > 0;)
        assert_int_equal(write(out, buffer, (size_t)length), length);
    close(in);
    close(out);
}

/* What a copy of this program says that it is, when it is named and called so. */
static void name_when_called(const char *executable, const char *const *arguments, bool deleted, char *name,
                             size_t size)
{
    char path[128];
    int pipes[2];
    path_in(path, sizeof path, executable);
    copy_file("/proc/self/exe", path);
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[8] = {path};
        for (int i = 0; arguments[i]; i++)
            argv[i + 1] = strdup(arguments[i]);
        dup2(pipes[1], 9);
        setenv("CURTSY_TEST_SAY_NAME", deleted ? "deleted" : "plain", 1);
        execv(path, argv);
        _exit(126);
    }
    close(pipes[1]);
    ssize_t length = read(pipes[0], name, size - 1);
    name[length > 0 ? length : 0] = 0;
    close(pipes[0]);
    waitpid(pid, NULL, 0);
    unlink(path);
}

static int say_name(const char *how, const char *path)
{
    char name[64];
    if (strcmp(how, "deleted") == 0)
        unlink(path);
    process_program_name(name, sizeof name);
    return write(9, name, strlen(name)) < 0;
}

static void test_program_names(void **state)
{
    (void)state;
    char script[128];
    path_in(script, sizeof script, "fetch.py");
    copy_file("/dev/null", script);
    const struct {
        const char *executable;
        const char *arguments[6];
        const char *expected;
    } cases[] = {
        {"fetcher", {NULL}, "fetcher"},
        {"fetcher", {script, NULL}, "fetcher"}, /* no interpreter */
        {"python3.11", {script, "-v", NULL}, "fetch.py"},
        {"python3.11", {"-u", "-B", script, NULL}, "fetch.py"},
        {"python3.11", {"-c", "print(1)", NULL}, "python3.11"},
        {"python3.11", {"-m", "pip", NULL}, "python3.11"},
        {"python3.11", {NULL}, "python3.11"},
        {"python3.11", {"/nonexistent/x.py", NULL}, "python3.11"},
        {"python3.11", {directory, NULL}, "python3.11"},
        {"bash", {script, NULL}, "fetch.py"},
        {"dash", {"-e", script, NULL}, "fetch.py"},
        {"sh", {script, NULL}, "fetch.py"},
        {"perl", {script, NULL}, "fetch.py"},
        {"ruby3.1", {script, NULL}, "fetch.py"},
        {"php8.2", {script, NULL}, "fetch.py"},
        {"nodejs", {script, NULL}, "fetch.py"},
        {"lua5.4", {script, NULL}, "fetch.py"},
        {"tclsh8.6", {script, NULL}, "fetch.py"},
        {"Rscript", {script, NULL}, "fetch.py"},
        {"bashful", {script, NULL}, "bashful"},
        {"shell", {script, NULL}, "shell"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[64];
        name_when_called(cases[i].executable, cases[i].arguments, false, name, sizeof name);
        if (strcmp(name, cases[i].expected) != 0)
            fail_msg("case %zu: \"%s\", not \"%s\"", i, name, cases[i].expected);
    }
    char name[64];
    const char *const none[] = {NULL};
    name_when_called("upgraded", none, true, name, sizeof name);
    assert_string_equal(name, "upgraded");
    unlink(script);
}

static void test_names_are_cut_to_fit(void **state)
{
    (void)state;
    char name[5] = "xxxx";
    process_program_name(name, 0);
    assert_int_equal(name[0], 'x');
    process_program_name(name, sizeof name);
    assert_int_equal(strlen(name), 4);
    process_program_name(name, 1);
    assert_string_equal(name, "");
}

/* --------------------------------------------------------- randomness and clocks ---- */

static void test_random_bytes_differ(void **state)
{
    (void)state;
    unsigned char first[200], second[200];
    memset(first, 0, sizeof first);
    memset(second, 0, sizeof second);
    errno = EXDEV;
    process_random(first, sizeof first);
    process_random(second, sizeof second);
    assert_int_equal(errno, EXDEV);
    assert_memory_not_equal(first, second, sizeof first);
    process_random(first, 0);
    unsigned zeros = 0;
    for (size_t i = 0; i < sizeof first; i++)
        zeros += first[i] == 0;
    assert_true(zeros < 20);
}

static void test_clocks(void **state)
{
    (void)state;
    int64_t last_ns = clock_now_ns();
    assert_true(last_ns > 0);
    for (int i = 0; i < 1000; i++) {
        int64_t now_ns = clock_now_ns();
        assert_true(now_ns >= last_ns);
        last_ns = now_ns;
    }
    assert_true(clock_wall_s() > 1600000000);
    errno = EXDEV;
    assert_true(clock_is_the_machines());
    assert_int_equal(errno, EXDEV);
    assert_true(clock_boot_name() != 0);
    assert_true(clock_boot_name() == clock_boot_name());
    if (access("/proc/sys/kernel/random/boot_id", R_OK) == 0) {
        assert_true(clock_boot_name() != CLOCK_BOOT_UNKNOWN);
        assert_true(clock_boot_name() >> 32 != 0);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    const char *how = getenv("CURTSY_TEST_SAY_NAME");
    if (how)
        return say_name(how, argv[0]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_self_is_this_process_and_no_child),
        cmocka_unit_test(test_dead_is_what_runs_no_more),
        cmocka_unit_test(test_a_pid_that_came_again_is_another),
        cmocka_unit_test(test_what_cannot_be_proven_is_alive),
        cmocka_unit_test(test_a_process_without_its_first_thread_is_alive),
        cmocka_unit_test(test_program_names),
        cmocka_unit_test(test_names_are_cut_to_fit),
        cmocka_unit_test(test_random_bytes_differ),
        cmocka_unit_test(test_clocks),
    };
    return cmocka_run_group_tests_name("process", tests, make_directory, remove_directory);
}
