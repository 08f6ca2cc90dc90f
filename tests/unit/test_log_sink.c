/* SPDX-License-Identifier: MIT */
/*
 * Log sink: that a line costs the program nothing.  Each test runs in a process of its own, since
 * the sink is opened once, and since what must not happen here ends a process or leaves it hanging
 * (the alarm is for the latter).
 */
#include "core/system/log_sink.h"

#include "core/units.h"
#include "tests/unit/json_valid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ALARM_S 120

static char directory[] = "/tmp/curtsy-log-sink-XXXXXX";
static char log_path[PATH_MAX];
static int report_fd = -1; /* where a child says what went wrong: its descriptor 2 is under test */

/* In a child: a failed expectation ends it. */
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            dprintf(report_fd, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);                       \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static void run(void (*child)(void))
{
    int status = 0;
    unlink(log_path);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(ALARM_S);
        child();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        fail_msg("ended by signal %d", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define IN_A_CHILD(name)                                                                                               \
    static void name##_child(void);                                                                                    \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        run(name##_child);                                                                                             \
    }                                                                                                                  \
    static void name##_child(void)

static void say(const char *message)
{
    struct log_record record = {.level = LOG_WARN, .event = LOG_NOTICE, .message = message};
    log_sink_write(&record);
}

static size_t read_file(const char *path, char *buffer, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, buffer, size - 1);
    if (fd >= 0)
        close(fd);
    buffer[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

/* Descriptor 2 becomes the writing end; the reading end is returned. */
static int pipe_as_stderr(void)
{
    int ends[2];
    EXPECT(pipe(ends) == 0);
    EXPECT(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    close(ends[1]);
    return ends[0];
}

static void file_as_stderr(const char *path, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);
    EXPECT(fd >= 0);
    EXPECT(dup2(fd, STDERR_FILENO) == STDERR_FILENO);
    close(fd);
}

/* The length of "2026-11-30T12:00:00Z " at the start of a line, or 0. */
static size_t time_length(const char *text)
{
    static const char pattern[] = "dddd-dd-ddTdd:dd:ddZ ";
    for (size_t i = 0; pattern[i]; i++)
        if (pattern[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != pattern[i])
            return 0;
    return sizeof(pattern) - 1;
}

static void expect_line(const char *text, const char *message)
{
    char expected[256];
    text += time_length(text);
    snprintf(expected, sizeof(expected), "curtsy[%d] prog: %s\n", (int)getpid(), message);
    EXPECT(strcmp(text, expected) == 0);
}

static bool is_pending(int signal_number)
{
    sigset_t pending;
    EXPECT(sigpending(&pending) == 0);
    return sigismember(&pending, signal_number);
}

/* ------------------------------------------------------------------------- in general ---- */

IN_A_CHILD(test_levels)
{
    EXPECT(!log_sink_wants(LOG_ERROR));
    say("before it is open: dropped");
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    EXPECT(log_sink_wants(LOG_ERROR));
    EXPECT(log_sink_wants(LOG_WARN));
    EXPECT(!log_sink_wants(LOG_INFO));
    EXPECT(!log_sink_wants(LOG_DEBUG));
    EXPECT(!log_sink_wants(LOG_OFF));
    struct log_record record = {.level = LOG_INFO, .message = "not wanted"};
    log_sink_write(&record);
    EXPECT(access(log_path, F_OK) != 0);
    log_sink_open(LOG_DEBUG, LOG_TEXT, NULL, "other");
    EXPECT(!log_sink_wants(LOG_INFO));
}

IN_A_CHILD(test_off_writes_nothing)
{
    log_sink_open(LOG_OFF, LOG_TEXT, log_path, "prog");
    EXPECT(!log_sink_wants(LOG_ERROR));
    say("nobody wants to know");
    log_sink_fail_open("nor that");
    EXPECT(access(log_path, F_OK) != 0);
}

IN_A_CHILD(test_line_to_stderr_and_errno)
{
    char text[512] = "";
    int reader = pipe_as_stderr();
    errno = EXDEV;
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");
    EXPECT(errno == EXDEV);
    say("hello");
    EXPECT(errno == EXDEV);
    EXPECT(read(reader, text, sizeof(text) - 1) > 0);
    EXPECT(time_length(text) == 0); /* standard error carries no time */
    expect_line(text, "hello");
}

IN_A_CHILD(test_json_line)
{
    char text[1024];
    log_sink_open(LOG_WARN, LOG_JSON, log_path, "prog\"\xff");
    say("\x1b\"\n");
    EXPECT(read_file(log_path, text, sizeof(text)) > 0);
    EXPECT(json_is_flat_object(text));
}

IN_A_CHILD(test_one_line_about_failing_open)
{
    char text[1024];
    log_sink_fail_open("before it is open: dropped, and does not count");
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    log_sink_fail_open("the first");
    log_sink_fail_open("the second");
    pid_t pid = fork();
    if (pid == 0) {
        log_sink_fail_open("in a child");
        _exit(0);
    }
    EXPECT(waitpid(pid, NULL, 0) == pid);
    EXPECT(read_file(log_path, text, sizeof(text)) > 0);
    expect_line(text, "failed open: the first");
}

/* ------------------------------------------------------------------- standard error ---- */

static volatile sig_atomic_t handled;

static void count_signal(int signal_number)
{
    (void)signal_number;
    handled++;
}

IN_A_CHILD(test_closed_reader_with_default_action)
{
    int reader = pipe_as_stderr();
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");
    close(reader);
    errno = EXDEV;
    say("nobody reads this");
    EXPECT(errno == EXDEV);
    EXPECT(!is_pending(SIGPIPE));
}

IN_A_CHILD(test_closed_reader_with_a_handler)
{
    int reader = pipe_as_stderr();
    signal(SIGPIPE, count_signal);
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");
    close(reader);
    say("nobody reads this");
    EXPECT(handled == 0);
    sigset_t mask;
    EXPECT(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
    EXPECT(!sigismember(&mask, SIGPIPE) && !sigismember(&mask, SIGXFSZ));
    raise(SIGPIPE);
    EXPECT(handled == 1);
}

/* A SIGPIPE that was pending before is the program's own. */
IN_A_CHILD(test_a_pending_sigpipe_stays)
{
    sigset_t sigpipe;
    int reader = pipe_as_stderr();
    signal(SIGPIPE, count_signal);
    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe, NULL);
    raise(SIGPIPE);
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");
    close(reader);
    say("nobody reads this");
    EXPECT(is_pending(SIGPIPE));
    pthread_sigmask(SIG_UNBLOCK, &sigpipe, NULL);
    EXPECT(handled == 1);
}

IN_A_CHILD(test_an_ignored_sigpipe_leaves_nothing_pending)
{
    int reader = pipe_as_stderr();
    signal(SIGPIPE, SIG_IGN);
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");
    close(reader);
    say("nobody reads this");
    signal(SIGPIPE, count_signal);
    EXPECT(!is_pending(SIGPIPE));
    EXPECT(handled == 0);
}

static void fill(int fd)
{
    static const char blanks[4096];
    int flags = fcntl(fd, F_GETFL);
    EXPECT(fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
    for (size_t size = sizeof(blanks); size > 0; size /= 2)
        while (write(fd, blanks, size) > 0)
            continue;
    EXPECT(errno == EAGAIN);
    EXPECT(fcntl(fd, F_SETFL, flags) == 0);
}

/* Everything that is in it, and no curtsy line among it. */
static void drain_without_lines(int fd)
{
    static char text[1 << 20];
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    while (poll(&ready, 1, 0) == 1) {
        ssize_t length = read(fd, text, sizeof(text));
        EXPECT(length > 0);
        EXPECT(!memmem(text, (size_t)length, "curtsy", 6));
    }
}

IN_A_CHILD(test_full_pipe_drops_the_line)
{
    char text[512] = "";
    int reader = pipe_as_stderr();
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");
    fill(STDERR_FILENO);
    say("no room for this");
    EXPECT(read(reader, text, 20) == 20);
    say("twenty bytes are no room either");
    drain_without_lines(reader);
    say("now there is");
    EXPECT(read(reader, text, sizeof(text) - 1) > 0);
    expect_line(text, "now there is");
}

IN_A_CHILD(test_full_socket_drops_the_line)
{
    int ends[2];
    char text[512] = "";
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    EXPECT(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    close(ends[1]);
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");
    fill(STDERR_FILENO);
    say("no room for this");
    drain_without_lines(ends[0]);
    say("now there is");
    EXPECT(read(ends[0], text, sizeof(text) - 1) > 0);
    expect_line(text, "now there is");
    close(ends[0]);
    say("nobody reads this");
    EXPECT(!is_pending(SIGPIPE));
}

IN_A_CHILD(test_stderr_that_was_replaced)
{
    char text[1024], other_path[PATH_MAX];
    snprintf(other_path, sizeof(other_path), "%s/other", directory);
    file_as_stderr(log_path, O_APPEND);
    int original = dup(STDERR_FILENO);
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");

    file_as_stderr(other_path, O_TRUNC);
    say("into somebody's data file");
    EXPECT(read_file(other_path, text, sizeof(text)) == 0);

    close(STDERR_FILENO);
    say("into nothing");
    int reused = open(other_path, O_WRONLY);
    EXPECT(reused == STDERR_FILENO);
    say("into a descriptor that was given out again");
    EXPECT(read_file(other_path, text, sizeof(text)) == 0);
    unlink(other_path);

    EXPECT(dup2(original, STDERR_FILENO) == STDERR_FILENO);
    say("back again");
    EXPECT(read_file(log_path, text, sizeof(text)) > 0);
    expect_line(text, "back again");
}

IN_A_CHILD(test_stderr_that_was_closed_at_the_start)
{
    char text[64];
    close(STDERR_FILENO);
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");
    say("into nothing");
    EXPECT(open(log_path, O_WRONLY | O_CREAT, 0600) == STDERR_FILENO);
    say("into the program's own file");
    EXPECT(read_file(log_path, text, sizeof(text)) == 0);
}

/* ------------------------------------------------------------------------ a log file ---- */

static int count_descriptors(void)
{
    int count = 0;
    DIR *open_descriptors = opendir("/proc/self/fd");
    EXPECT(open_descriptors != NULL);
    while (readdir(open_descriptors))
        count++;
    closedir(open_descriptors);
    return count;
}

IN_A_CHILD(test_log_file)
{
    char text[1024];
    struct stat file;
    umask(0);
    int before = count_descriptors();
    errno = EXDEV;
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    say("one");
    EXPECT(errno == EXDEV);
    EXPECT(stat(log_path, &file) == 0);
    EXPECT((file.st_mode & 07777) == 0600);
    EXPECT(count_descriptors() == before);
    EXPECT(read_file(log_path, text, sizeof(text)) > 0);
    EXPECT(time_length(text) > 0);
    expect_line(text, "one");

    /* Appended to, and after a rotation a new one. */
    say("two");
    EXPECT(stat(log_path, &file) == 0 && file.st_size == (off_t)(2 * strlen(text)));
    EXPECT(unlink(log_path) == 0);
    say("three");
    EXPECT(read_file(log_path, text, sizeof(text)) > 0);
    expect_line(text, "three");
}

IN_A_CHILD(test_log_file_never_becomes_a_standard_stream)
{
    char text[1024];
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    struct rlimit few = {.rlim_cur = 3, .rlim_max = 1024};
    EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
    say("there is no other descriptor than those three");
    few.rlim_cur = 1024;
    EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
    say("quietly");
    for (int fd = 0; fd < 3; fd++)
        EXPECT(fcntl(fd, F_GETFD) == -1);
    EXPECT(read_file(log_path, text, sizeof(text)) > 0);
    expect_line(text, "quietly");
}

IN_A_CHILD(test_relative_path_stays_where_it_was)
{
    char text[1024];
    EXPECT(chdir(directory) == 0);
    log_sink_open(LOG_WARN, LOG_TEXT, strrchr(log_path, '/') + 1, "prog");
    EXPECT(chdir("/") == 0);
    say("here");
    EXPECT(read_file(log_path, text, sizeof(text)) > 0);
    expect_line(text, "here");
}

static void expect_silence(const char *path)
{
    int reader = pipe_as_stderr();
    struct pollfd ready = {.fd = reader, .events = POLLIN};
    log_sink_open(LOG_DEBUG, LOG_TEXT, path, "prog");
    errno = EXDEV;
    say("cannot be written");
    log_sink_fail_open("nor this");
    EXPECT(errno == EXDEV);
    EXPECT(poll(&ready, 1, 0) == 0);
}

IN_A_CHILD(test_path_that_is_a_directory)
{
    expect_silence(directory);
}

IN_A_CHILD(test_path_that_does_not_exist)
{
    expect_silence("/nonexistent/directory/log");
}

IN_A_CHILD(test_path_that_is_too_long)
{
    static char path[3 * PATH_MAX];
    memset(path, 'a', sizeof(path) - 1);
    path[0] = '/';
    expect_silence(path);
    EXPECT(!log_sink_wants(LOG_ERROR));
}

IN_A_CHILD(test_path_without_permission)
{
    char locked[PATH_MAX], path[PATH_MAX + 8];
    snprintf(locked, sizeof(locked), "%s/locked", directory);
    snprintf(path, sizeof(path), "%s/log", locked);
    rmdir(locked);
    EXPECT(mkdir(locked, geteuid() == 0 ? 0700 : 0) == 0);
    if (geteuid() == 0)
        EXPECT(setuid(65534) == 0);
    expect_silence(path);
}

IN_A_CHILD(test_fifo_without_and_with_a_reader)
{
    char text[512] = "";
    EXPECT(mkfifo(log_path, 0600) == 0);
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    say("nobody reads this");
    int reader = open(log_path, O_RDONLY | O_NONBLOCK);
    EXPECT(reader >= 0);
    say("somebody does");
    EXPECT(read(reader, text, sizeof(text) - 1) > 0);
    expect_line(text, "somebody does");
}

static void limit_file_size(rlim_t size)
{
    struct rlimit limit = {.rlim_cur = size, .rlim_max = RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

IN_A_CHILD(test_file_size_limit_on_a_log_file)
{
    static const rlim_t limits[] = {0, 1, 20};
    char text[1024];
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    for (size_t i = 0; i < 3; i++) {
        limit_file_size(limits[i]);
        say("does not fit");
        EXPECT(read_file(log_path, text, sizeof(text)) == 0);
    }
    limit_file_size(1000);
    say("fits");
    size_t length = read_file(log_path, text, sizeof(text));
    expect_line(text, "fits");
    limit_file_size(length + 5);
    say("not a part of it");
    EXPECT(read_file(log_path, text, sizeof(text)) == length);
    limit_file_size(length);
    say("nothing at all");
    EXPECT(!is_pending(SIGXFSZ));
}

IN_A_CHILD(test_file_size_limit_on_standard_error)
{
    char text[1024];
    file_as_stderr(log_path, O_TRUNC);
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");
    limit_file_size(100);
    say("fits");
    size_t length = read_file(log_path, text, sizeof(text));
    expect_line(text, "fits");
    EXPECT(lseek(STDERR_FILENO, 99, SEEK_SET) == 99);
    say("not at this place");
    EXPECT(lseek(STDERR_FILENO, 5000, SEEK_SET) == 5000);
    say("nor at this one");
    EXPECT(read_file(log_path, text, sizeof(text)) == length);
}

/* Where the program writes over the limit itself, its signal is its own. */
IN_A_CHILD(test_the_programs_own_sigxfsz)
{
    signal(SIGXFSZ, count_signal);
    file_as_stderr(log_path, O_TRUNC);
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");
    limit_file_size(0);
    say("does not fit");
    EXPECT(handled == 0);
    EXPECT(write(STDERR_FILENO, "x", 1) == -1 && errno == EFBIG);
    EXPECT(handled == 1);
}

/* ---------------------------------------------------------------------- many writers ---- */

#define WRITERS 8
#define LINES 200

static void write_lines(int writer)
{
    for (int i = 0; i < LINES; i++) {
        char message[300];
        int length = snprintf(message, sizeof(message), "%d/%d ", writer, i);
        memset(message + length, 'a' + writer, 100 + (size_t)i % 150);
        message[length + 100 + i % 150] = '\0';
        say(message);
    }
}

/* Is this one whole line of write_lines?  If so it is noted as seen. */
static bool note_line(const char *line, size_t length, bool seen[WRITERS][LINES])
{
    char copy[512];
    int pid, writer, number, rest;
    if (length >= sizeof(copy))
        return false;
    memcpy(copy, line, length);
    copy[length] = '\0';
    memmove(copy, copy + time_length(copy), strlen(copy + time_length(copy)) + 1);
    if (sscanf(copy, "curtsy[%d] prog: %d/%d %n", &pid, &writer, &number, &rest) != 3 || writer < 0 ||
        writer >= WRITERS || number < 0 || number >= LINES || seen[writer][number])
        return false;
    seen[writer][number] = true;
    const char letter[2] = {(char)('a' + writer), '\0'};
    return strspn(copy + rest, letter) == strlen(copy + rest) && strlen(copy + rest) == 100 + (size_t)number % 150;
}

static int count_whole_lines(char *text, size_t length)
{
    static bool seen[WRITERS][LINES];
    int count = 0;
    memset(seen, 0, sizeof(seen));
    for (char *line = text; line < text + length; count++) {
        char *end = memchr(line, '\n', (size_t)(text + length - line));
        EXPECT(end != NULL);
        EXPECT(note_line(line, (size_t)(end - line), seen));
        line = end + 1;
    }
    return count;
}

static void start_writers(pid_t pids[WRITERS])
{
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        EXPECT(pids[i] >= 0);
        if (pids[i] == 0) {
            alarm(ALARM_S);
            write_lines(i);
            _exit(0);
        }
    }
}

static void end_writers(const pid_t pids[WRITERS])
{
    for (int i = 0; i < WRITERS; i++) {
        int status = 1;
        EXPECT(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
    }
}

static char all_lines[WRITERS * LINES * 512];

IN_A_CHILD(test_many_processes_into_one_file)
{
    pid_t pids[WRITERS];
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    start_writers(pids);
    end_writers(pids);
    size_t length = read_file(log_path, all_lines, sizeof(all_lines));
    EXPECT(count_whole_lines(all_lines, length) == WRITERS * LINES);
}

/* A reader that is too slow loses lines, but never a part of one. */
IN_A_CHILD(test_many_processes_into_one_pipe)
{
    pid_t pids[WRITERS];
    size_t length = 0;
    ssize_t got;
    int reader = pipe_as_stderr();
    EXPECT(fcntl(reader, F_SETPIPE_SZ, 4096) > 0);
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");
    start_writers(pids);
    close(STDERR_FILENO);
    while ((got = read(reader, all_lines + length, sizeof(all_lines) - length)) > 0)
        length += (size_t)got;
    end_writers(pids);
    EXPECT(count_whole_lines(all_lines, length) > 0);
}

/* A pipe of one page, and lines of which it holds three or four: each round, all writers find it
 * empty at about the same moment, and not all of them find room.  None may wait for it, since nobody
 * reads before all are through. */
#define ROUNDS 500

static pthread_barrier_t round_begins, round_ends;

static void *thread_writes_every_round(void *unused)
{
    char message[900];
    memset(message, 'x', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&round_begins);
        say(message);
        pthread_barrier_wait(&round_ends);
    }
    return NULL;
}

IN_A_CHILD(test_many_threads_for_the_last_room_in_a_pipe)
{
    pthread_t threads[WRITERS];
    int reader = pipe_as_stderr();
    EXPECT(fcntl(reader, F_SETPIPE_SZ, 4096) == 4096);
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");
    pthread_barrier_init(&round_begins, NULL, WRITERS + 1);
    pthread_barrier_init(&round_ends, NULL, WRITERS + 1);
    for (int i = 0; i < WRITERS; i++)
        EXPECT(pthread_create(&threads[i], NULL, thread_writes_every_round, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&round_begins);
        pthread_barrier_wait(&round_ends);
        ssize_t length = read(reader, all_lines, sizeof(all_lines));
        EXPECT(length > 0 && all_lines[length - 1] == '\n');
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
}

static void *thread_writes_lines(void *number)
{
    write_lines(*(int *)number);
    return NULL;
}

IN_A_CHILD(test_many_threads_into_one_file)
{
    pthread_t threads[WRITERS];
    int numbers[WRITERS];
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    for (int i = 0; i < WRITERS; i++) {
        numbers[i] = i;
        EXPECT(pthread_create(&threads[i], NULL, thread_writes_lines, &numbers[i]) == 0);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    size_t length = read_file(log_path, all_lines, sizeof(all_lines));
    EXPECT(count_whole_lines(all_lines, length) == WRITERS * LINES);
}

static atomic_int returned;

static void *thread_is_cancelled(void *unused)
{
    (void)unused;
    pthread_cancel(pthread_self());
    say("not a cancellation point");
    atomic_store(&returned, 1);
    pthread_testcancel();
    return NULL;
}

IN_A_CHILD(test_cancellation_is_not_taken_here)
{
    pthread_t thread;
    void *result = NULL;
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    EXPECT(pthread_create(&thread, NULL, thread_is_cancelled, NULL) == 0);
    EXPECT(pthread_join(thread, &result) == 0);
    EXPECT(atomic_load(&returned) == 1);
    EXPECT(result == PTHREAD_CANCELED);
}

static int make_directory(void **state)
{
    (void)state;
    report_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    if (report_fd < 0 || !mkdtemp(directory))
        return -1;
    snprintf(log_path, sizeof(log_path), "%s/log", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/locked", directory);
    rmdir(path);
    snprintf(path, sizeof(path), "%s/other", directory);
    unlink(path);
    unlink(log_path);
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_off_writes_nothing),
        cmocka_unit_test(test_line_to_stderr_and_errno),
        cmocka_unit_test(test_json_line),
        cmocka_unit_test(test_one_line_about_failing_open),
        cmocka_unit_test(test_closed_reader_with_default_action),
        cmocka_unit_test(test_closed_reader_with_a_handler),
        cmocka_unit_test(test_a_pending_sigpipe_stays),
        cmocka_unit_test(test_an_ignored_sigpipe_leaves_nothing_pending),
        cmocka_unit_test(test_full_pipe_drops_the_line),
        cmocka_unit_test(test_full_socket_drops_the_line),
        cmocka_unit_test(test_stderr_that_was_replaced),
        cmocka_unit_test(test_stderr_that_was_closed_at_the_start),
        cmocka_unit_test(test_log_file),
        cmocka_unit_test(test_log_file_never_becomes_a_standard_stream),
        cmocka_unit_test(test_relative_path_stays_where_it_was),
        cmocka_unit_test(test_path_that_is_a_directory),
        cmocka_unit_test(test_path_that_does_not_exist),
        cmocka_unit_test(test_path_that_is_too_long),
        cmocka_unit_test(test_path_without_permission),
        cmocka_unit_test(test_fifo_without_and_with_a_reader),
        cmocka_unit_test(test_file_size_limit_on_a_log_file),
        cmocka_unit_test(test_file_size_limit_on_standard_error),
        cmocka_unit_test(test_the_programs_own_sigxfsz),
        cmocka_unit_test(test_many_processes_into_one_file),
        cmocka_unit_test(test_many_processes_into_one_pipe),
        cmocka_unit_test(test_many_threads_for_the_last_room_in_a_pipe),
        cmocka_unit_test(test_many_threads_into_one_file),
        cmocka_unit_test(test_cancellation_is_not_taken_here),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
