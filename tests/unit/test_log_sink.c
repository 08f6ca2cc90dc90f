/* SPDX-License-Identifier: MIT */
/*
 * Log sink: that a line costs the program nothing.  Each test runs in a process of its own, since
 * the sink is opened once, and since what must not happen here ends a process or leaves it hanging
 * (which HANG_S is for).
 */
#include "core/system/log_sink.h"

#include "core/units.h"
#include "tests/unit/json_valid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#define HANG_S 120
#define CANNOT 77 /* a child's exit status: this machine, or this user, cannot do what the test needs */

static char directory[] = "/tmp/curtsy-log-sink-XXXXXX";
static char log_path[PATH_MAX], syslog_path[PATH_MAX];
static int report_fd = -1; /* where a child says what went wrong: its descriptor 2 is under test */

/* In a child: a failed expectation ends it. */
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            dprintf(report_fd, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);                       \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Ends with its parent: nobody else ends a writer that hangs. */
static pid_t fork_writer(void)
{
    pid_t pid = fork();
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

/* SIGALRM would be blocked while a line is under way. */
static void end_if_it_hangs(pid_t pid)
{
    struct pollfd ends = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
    if (ends.fd >= 0 && poll(&ends, 1, HANG_S * 1000) == 0)
        kill(pid, SIGKILL);
    close(ends.fd);
}

static void run(void (*child)(void))
{
    int status = 0;
    unlink(log_path);
    pid_t pid = fork_writer();
    assert_true(pid >= 0);
    if (pid == 0) {
        child();
        _exit(0);
    }
    end_if_it_hangs(pid);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        fail_msg("ended by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == CANNOT)
        skip();
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

/* As if the process had been started with descriptor 2 as it is. */
static void open_on_stderr(void)
{
    log_sink_note_stderr();
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");
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

IN_A_CHILD(test_the_level_may_change)
{
    char text[1024];
    log_sink_set_level(LOG_DEBUG);
    EXPECT(!log_sink_wants(LOG_ERROR)); /* it is not open yet */
    log_sink_open(LOG_OFF, LOG_TEXT, log_path, "prog");
    EXPECT(!log_sink_wants(LOG_ERROR));
    log_sink_set_level(LOG_DEBUG);
    EXPECT(log_sink_wants(LOG_DEBUG));
    say("wanted");
    log_sink_set_level(LOG_ERROR);
    EXPECT(log_sink_wants(LOG_ERROR) && !log_sink_wants(LOG_WARN));
    say("not wanted");
    EXPECT(read_file(log_path, text, sizeof(text)) > 0);
    expect_line(text, "wanted");
}

static void *thread_changes_the_level(void *unused)
{
    (void)unused;
    for (int i = 0; i < 10000; i++)
        log_sink_set_level(i % 2 ? LOG_WARN : LOG_DEBUG);
    return NULL;
}

IN_A_CHILD(test_the_level_may_change_while_others_write)
{
    pthread_t thread;
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    EXPECT(pthread_create(&thread, NULL, thread_changes_the_level, NULL) == 0);
    for (int i = 0; i < 1000; i++) {
        EXPECT(log_sink_wants(LOG_WARN)); /* by either level */
        (void)log_sink_wants(LOG_INFO);
    }
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(log_sink_wants(LOG_WARN) && !log_sink_wants(LOG_INFO));
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
    open_on_stderr();
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

static void expect_lines_of(pid_t parent, pid_t child)
{
    char text[1024], expected[256];
    EXPECT(read_file(log_path, text, sizeof(text)) > 0);
    char *second = strchr(text, '\n') + 1;
    snprintf(expected, sizeof(expected), "curtsy[%d] prog: in the child\n", (int)child);
    EXPECT(strncmp(text + time_length(text), expected, strlen(expected)) == 0);
    snprintf(expected, sizeof(expected), "curtsy[%d] prog: in the parent\n", (int)parent);
    EXPECT(strcmp(second + time_length(second), expected) == 0);
}

IN_A_CHILD(test_a_forked_child_names_itself)
{
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    pid_t pid = fork();
    if (pid == 0) {
        say("in the child");
        _exit(0);
    }
    EXPECT(waitpid(pid, NULL, 0) == pid);
    say("in the parent");
    expect_lines_of(getpid(), pid);
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
    open_on_stderr();
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
    open_on_stderr();
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
    open_on_stderr();
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
    open_on_stderr();
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
    open_on_stderr();
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
    open_on_stderr();
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
    open_on_stderr();

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
    open_on_stderr();
    say("into nothing");
    EXPECT(open(log_path, O_WRONLY | O_CREAT, 0600) == STDERR_FILENO);
    say("into the program's own file");
    EXPECT(read_file(log_path, text, sizeof(text)) == 0);
}

/* The sink may be opened late.  Then descriptor 2 is not what it was when the process started, and
 * that is what counts. */
IN_A_CHILD(test_stderr_that_was_replaced_before_the_sink_was_opened)
{
    char text[64];
    file_as_stderr(log_path, O_TRUNC);
    log_sink_open(LOG_WARN, LOG_TEXT, NULL, "prog");
    say("into somebody's data file");
    EXPECT(read_file(log_path, text, sizeof(text)) == 0);
}

IN_A_CHILD(test_stderr_that_became_a_socket)
{
    int ends[2];
    struct pollfd ready = {.events = POLLIN};
    pipe_as_stderr();
    open_on_stderr();
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    EXPECT(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    say("into somebody's connection");
    ready.fd = ends[0];
    EXPECT(poll(&ready, 1, 0) == 0);
}

static int connect_to_self(int *accepted)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listening = socket(AF_INET, SOCK_STREAM, 0), connecting = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT(bind(listening, (struct sockaddr *)&address, size) == 0 && listen(listening, 1) == 0);
    EXPECT(getsockname(listening, (struct sockaddr *)&address, &size) == 0);
    EXPECT(connect(connecting, (struct sockaddr *)&address, size) == 0);
    *accepted = accept(listening, NULL, NULL);
    EXPECT(*accepted >= 0);
    close(listening);
    return connecting;
}

/* As inetd starts a server: its standard error is its client. */
IN_A_CHILD(test_stderr_that_is_a_network_connection)
{
    char text[64];
    int server, client = connect_to_self(&server);
    EXPECT(dup2(server, STDERR_FILENO) == STDERR_FILENO);
    close(server);
    open_on_stderr();
    say("into the protocol");
    EXPECT(write(STDERR_FILENO, "200 OK", 6) == 6);
    EXPECT(read(client, text, sizeof(text)) == 6);
}

IN_A_CHILD(test_stderr_that_is_for_reading)
{
    int ends[2];
    struct pollfd ready = {.events = POLLIN};
    EXPECT(pipe(ends) == 0);
    ready.fd = dup(ends[0]);
    EXPECT(dup2(ends[0], STDERR_FILENO) == STDERR_FILENO);
    open_on_stderr();
    errno = EXDEV;
    say("against the stream");
    EXPECT(errno == EXDEV);
    EXPECT(poll(&ready, 1, 0) == 0);
}

static void expect_on_stderr(const char *path)
{
    char text[512] = "";
    int reader = pipe_as_stderr();
    log_sink_note_stderr();
    log_sink_open(LOG_WARN, LOG_TEXT, path, "prog");
    say("hello");
    EXPECT(read(reader, text, sizeof(text) - 1) > 0);
    EXPECT(time_length(text) == 0);
    expect_line(text, "hello");
    file_as_stderr(log_path, O_TRUNC);
    say("into somebody's data file");
    EXPECT(read_file(log_path, text, sizeof(text)) == 0);
}

IN_A_CHILD(test_the_path_dev_stderr_is_standard_error)
{
    expect_on_stderr("/dev/stderr");
}

IN_A_CHILD(test_the_path_none_is_standard_error)
{
    expect_on_stderr("none");
}

/* In a packet pipe what is written at once is read at once. */
IN_A_CHILD(test_a_line_is_one_write)
{
    int ends[2];
    char text[2048];
    EXPECT(pipe2(ends, O_DIRECT) == 0);
    EXPECT(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    open_on_stderr();
    for (int i = 0; i < 3; i++)
        say("one");
    for (int i = 0; i < 3; i++) {
        ssize_t length = read(ends[0], text, sizeof(text) - 1);
        EXPECT(length > 0);
        text[length] = '\0';
        expect_line(text, "one");
    }
}

/* Without descriptors there is no log file and no syslog, but standard error needs none. */
IN_A_CHILD(test_no_descriptor_left)
{
    char text[512] = "";
    struct rlimit before, none;
    int reader = pipe_as_stderr();
    open_on_stderr();
    EXPECT(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    none.rlim_cur = 0;
    EXPECT(setrlimit(RLIMIT_NOFILE, &none) == 0);
    EXPECT(dup(STDERR_FILENO) == -1 && errno == EMFILE);
    say("hello");
    EXPECT(setrlimit(RLIMIT_NOFILE, &before) == 0);
    EXPECT(read(reader, text, sizeof(text) - 1) > 0);
    expect_line(text, "hello");
}

/* ------------------------------------------------ pipes, where the kernel is an older one ---- */

/* pwritev2 fails as it does for pipes before Linux 5.x: the line is written by another description. */
static void forbid_pwritev2(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwritev2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof(steps) / sizeof(steps[0]), .filter = steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        _exit(CANNOT);
    EXPECT(pwritev2(STDERR_FILENO, NULL, 0, -1, 0) == -1 && errno == EOPNOTSUPP);
}

static void expect_dropped_when_full(int reader)
{
    char text[512] = "";
    fill(STDERR_FILENO);
    say("no room for this");
    drain_without_lines(reader);
    say("now there is");
    EXPECT(read(reader, text, sizeof(text) - 1) > 0);
    expect_line(text, "now there is");
    close(reader);
    say("nobody reads this");
    EXPECT(!is_pending(SIGPIPE));
}

IN_A_CHILD(test_full_pipe_of_an_older_kernel)
{
    int reader = pipe_as_stderr();
    int before = count_descriptors();
    forbid_pwritev2();
    open_on_stderr();
    expect_dropped_when_full(reader);
    EXPECT(count_descriptors() == before - 1); /* the reader */
}

static void enter_empty_root(void)
{
    char jail[PATH_MAX];
    snprintf(jail, sizeof(jail), "%s/jail", directory);
    if (geteuid() != 0)
        _exit(CANNOT);
    EXPECT(mkdir(jail, 0700) == 0 || errno == EEXIST);
    EXPECT(chroot(jail) == 0 && chdir("/") == 0);
}

IN_A_CHILD(test_full_pipe_of_an_older_kernel_without_proc)
{
    int reader = pipe_as_stderr();
    forbid_pwritev2();
    open_on_stderr();
    enter_empty_root();
    expect_dropped_when_full(reader);
}

/* ------------------------------------------------------------------------- terminals ---- */

/* Descriptor 2 becomes a terminal; its other side is returned, and never blocks. */
static int terminal_as_stderr(void)
{
    struct termios settings;
    int other_side = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    EXPECT(other_side >= 0 && grantpt(other_side) == 0 && unlockpt(other_side) == 0);
    int terminal = open(ptsname(other_side), O_RDWR | O_NOCTTY);
    EXPECT(terminal >= 0 && tcgetattr(terminal, &settings) == 0);
    settings.c_oflag &= (tcflag_t)~OPOST;
    EXPECT(tcsetattr(terminal, TCSANOW, &settings) == 0);
    EXPECT(dup2(terminal, STDERR_FILENO) == STDERR_FILENO);
    close(terminal);
    return other_side;
}

/* What was written to the terminal passes through a worker of the kernel. */
static void expect_on_terminal(int other_side, const char *message)
{
    char text[512];
    size_t length = 0;
    while (length == 0 || text[length - 1] != '\n') {
        struct pollfd ready = {.fd = other_side, .events = POLLIN};
        EXPECT(poll(&ready, 1, -1) == 1);
        ssize_t got = read(other_side, text + length, sizeof(text) - 1 - length);
        EXPECT(got > 0);
        length += (size_t)got;
    }
    text[length] = '\0';
    expect_line(text, message);
}

IN_A_CHILD(test_terminal_that_is_stopped)
{
    int other_side = terminal_as_stderr();
    int before = count_descriptors();
    open_on_stderr();
    EXPECT(tcflow(STDERR_FILENO, TCOOFF) == 0);
    errno = EXDEV;
    say("nobody sees this");
    EXPECT(errno == EXDEV);
    EXPECT(tcflow(STDERR_FILENO, TCOON) == 0);
    say("somebody does");
    expect_on_terminal(other_side, "somebody does");
    EXPECT(count_descriptors() == before);
}

/* Its other side reads now and then, a little: there is room, but not for all that is said. */
IN_A_CHILD(test_terminal_that_is_almost_full)
{
    char some[100], message[900];
    int other_side = terminal_as_stderr();
    open_on_stderr();
    memset(message, 'x', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    fill(STDERR_FILENO);
    for (int i = 0; i < 500; i++) {
        say(message);
        (void)!read(other_side, some, 1 + (size_t)i % sizeof(some));
    }
    EXPECT((fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK) == 0); /* which others share */
}

IN_A_CHILD(test_terminal_that_is_for_reading)
{
    char text[64];
    int other_side = terminal_as_stderr();
    int terminal = open(ptsname(other_side), O_RDONLY | O_NOCTTY);
    EXPECT(terminal >= 0 && dup2(terminal, STDERR_FILENO) == STDERR_FILENO);
    open_on_stderr();
    say("against the stream");
    int writing = open(ptsname(other_side), O_WRONLY | O_NOCTTY);
    struct pollfd ready = {.fd = other_side, .events = POLLIN};
    EXPECT(write(writing, "next", 4) == 4 && poll(&ready, 1, -1) == 1);
    EXPECT(read(other_side, text, sizeof(text)) <= 4);
}

IN_A_CHILD(test_terminal_that_was_hung_up)
{
    int other_side = terminal_as_stderr();
    open_on_stderr();
    close(other_side);
    errno = EXDEV;
    say("nobody sees this");
    EXPECT(errno == EXDEV);
}

static void say_in_the_background(void)
{
    EXPECT(setpgid(0, 0) == 0);
    EXPECT(tcgetpgrp(STDERR_FILENO) != getpgrp());
    say("from the background");
    _exit(0);
}

/* stty tostop: who writes from the background is stopped, but not by us. */
IN_A_CHILD(test_terminal_that_stops_the_background)
{
    struct termios settings;
    int status = 1;
    EXPECT(setsid() > 0);
    int other_side = terminal_as_stderr();
    EXPECT(ioctl(STDERR_FILENO, TIOCSCTTY, 0) == 0);
    EXPECT(tcgetattr(STDERR_FILENO, &settings) == 0);
    settings.c_lflag |= TOSTOP;
    EXPECT(tcsetattr(STDERR_FILENO, TCSANOW, &settings) == 0);
    open_on_stderr();
    pid_t pid = fork();
    if (pid == 0)
        say_in_the_background();
    EXPECT(waitpid(pid, &status, WUNTRACED) == pid);
    if (WIFSTOPPED(status))
        kill(pid, SIGKILL);
    EXPECT(status == 0);
    (void)other_side;
}

/* ------------------------------------------------------------------------ a log file ---- */

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

/* logrotate's copytruncate: nothing but the next line, and no hole before it. */
IN_A_CHILD(test_log_file_that_was_truncated)
{
    char text[1024];
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    for (int i = 0; i < 10; i++)
        say("long ago");
    EXPECT(truncate(log_path, 0) == 0);
    say("now");
    EXPECT(read_file(log_path, text, sizeof(text)) > 0);
    expect_line(text, "now");
}

/* Neither a missing folder nor one that comes back is a matter for the program. */
IN_A_CHILD(test_log_file_in_a_folder_that_comes_and_goes)
{
    char folder[PATH_MAX], path[PATH_MAX + 8], text[1024];
    snprintf(folder, sizeof(folder), "%s/folder", directory);
    snprintf(path, sizeof(path), "%s/log", folder);
    EXPECT(mkdir(folder, 0700) == 0);
    log_sink_open(LOG_WARN, LOG_TEXT, path, "prog");
    say("one");
    EXPECT(unlink(path) == 0 && rmdir(folder) == 0);
    errno = EXDEV;
    say("two");
    EXPECT(errno == EXDEV && access(folder, F_OK) != 0);
    EXPECT(mkdir(folder, 0700) == 0);
    say("three");
    EXPECT(read_file(path, text, sizeof(text)) > 0);
    expect_line(text, "three");
    EXPECT(unlink(path) == 0 && rmdir(folder) == 0);
}

/* An absolute path means another file then. */
IN_A_CHILD(test_log_file_after_a_chroot)
{
    char text[1024];
    int outside = open("/", O_RDONLY | O_DIRECTORY);
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    enter_empty_root();
    say("its folder is not there");
    EXPECT(mkdir("/tmp", 0700) == 0 || errno == EEXIST);
    EXPECT(mkdir(directory, 0700) == 0 || errno == EEXIST);
    say("inside");
    EXPECT(read_file(log_path, text, sizeof(text)) > 0);
    expect_line(text, "inside");
    EXPECT(unlink(log_path) == 0 && rmdir(directory) == 0 && rmdir("/tmp") == 0);
    EXPECT(faccessat(outside, log_path + 1, F_OK, 0) != 0);
}

IN_A_CHILD(test_log_file_on_dev_full)
{
    int before = count_descriptors();
    log_sink_open(LOG_WARN, LOG_TEXT, "/dev/full", "prog");
    errno = EXDEV;
    say("no room for this");
    EXPECT(errno == EXDEV);
    EXPECT(count_descriptors() == before);
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        _exit(CANNOT);
    close(fd);
}

/* A namespace of mounts, which vanishes with the process; for who is not root, in one of users. */
static void enter_mount_namespace(void)
{
    char map[64];
    int uid = (int)geteuid(), gid = (int)getegid();
    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
            _exit(CANNOT);
        write_file("/proc/self/setgroups", "deny");
        snprintf(map, sizeof(map), "0 %d 1", uid);
        write_file("/proc/self/uid_map", map);
        snprintf(map, sizeof(map), "0 %d 1", gid);
        write_file("/proc/self/gid_map", map);
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        _exit(CANNOT);
}

/* A disk of 16 pages, and nothing on it. */
static void mount_small_disk(const char *folder)
{
    EXPECT(mkdir(folder, 0700) == 0 || errno == EEXIST);
    enter_mount_namespace();
    if (mount("disk", folder, "tmpfs", 0, "size=64k") != 0)
        _exit(CANNOT);
}

static int fill_disk(const char *path)
{
    static const char page[4096];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    EXPECT(fd >= 0);
    while (write(fd, page, sizeof(page)) > 0)
        continue;
    EXPECT(errno == ENOSPC);
    return fd;
}

/* The last page of the log has room for a part of the line that comes next, and there is no other. */
IN_A_CHILD(test_log_file_on_a_full_disk)
{
    char folder[PATH_MAX], path[PATH_MAX + 8], rest[PATH_MAX + 8], text[8192];
    snprintf(folder, sizeof(folder), "%s/disk", directory);
    snprintf(path, sizeof(path), "%s/log", folder);
    snprintf(rest, sizeof(rest), "%s/rest", folder);
    mount_small_disk(folder);
    log_sink_open(LOG_WARN, LOG_TEXT, path, "prog");
    say("a line");
    size_t line_length = read_file(path, text, sizeof(text));
    EXPECT(line_length > 0 && 4096 % line_length != 0);
    int filling = fill_disk(rest);
    for (size_t i = 0; i < 4096 / line_length + 3; i++)
        say("a line");
    size_t length = read_file(path, text, sizeof(text));
    EXPECT(length == 4096 / line_length * line_length && text[length - 1] == '\n');
    EXPECT(ftruncate(filling, 0) == 0);
    say("more room");
    EXPECT(read_file(path, text, sizeof(text)) > length);
    expect_line(text + length, "more room");
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
    log_sink_note_stderr();
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

IN_A_CHILD(test_full_fifo_drops_the_line)
{
    char text[512] = "";
    EXPECT(mkfifo(log_path, 0600) == 0);
    int reader = open(log_path, O_RDONLY | O_NONBLOCK);
    int writer = open(log_path, O_WRONLY);
    EXPECT(reader >= 0 && writer >= 0);
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    fill(writer);
    say("no room for this");
    drain_without_lines(reader);
    say("now there is");
    EXPECT(read(reader, text, sizeof(text) - 1) > 0);
    expect_line(text, "now there is");
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
    open_on_stderr();
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
    open_on_stderr();
    limit_file_size(0);
    say("does not fit");
    EXPECT(handled == 0);
    EXPECT(write(STDERR_FILENO, "x", 1) == -1 && errno == EFBIG);
    EXPECT(handled == 1);
}

/* ---------------------------------------------------------------------------- syslog ---- */

/* A daemon's socket, which does not block. */
static int listen_as_syslog(int type)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    EXPECT(strlen(syslog_path) < sizeof(address.sun_path));
    memcpy(address.sun_path, syslog_path, strlen(syslog_path));
    unlink(syslog_path);
    int daemon = socket(AF_UNIX, type | SOCK_NONBLOCK, 0);
    EXPECT(daemon >= 0 && bind(daemon, (struct sockaddr *)&address, sizeof(address)) == 0);
    log_sink_use_syslog_at(syslog_path);
    return daemon;
}

static ssize_t receive(int daemon, char *text, size_t size)
{
    ssize_t length = recv(daemon, text, size - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    EXPECT(length < 0 || strlen(text) == (size_t)length);
    return length;
}

/* The length of "<28>Nov 30 12:00:00 curtsy[4711]: " at the start of a datagram, with our own pid.  Where
 * the machine's zone is not known it has no time. */
static size_t header_length(const char *text)
{
    static const char pattern[] = "LLL #d dd:dd:dd ";
    char tag[64];
    size_t length = 4;
    EXPECT(strncmp(text, "<28>", 4) == 0);
    for (size_t i = 0; pattern[i] && text[4] != 'c'; i++, length++) {
        char c = text[4 + i];
        bool is_digit = c >= '0' && c <= '9';
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        EXPECT(pattern[i] == 'd'   ? is_digit
               : pattern[i] == '#' ? is_digit || c == ' '
               : pattern[i] == 'L' ? is_letter
                                   : c == pattern[i]);
    }
    snprintf(tag, sizeof(tag), "curtsy[%d]: ", (int)getpid());
    EXPECT(strncmp(text + length, tag, strlen(tag)) == 0);
    return length + strlen(tag);
}

IN_A_CHILD(test_syslog)
{
    char text[2048];
    int daemon = listen_as_syslog(SOCK_DGRAM);
    int before = count_descriptors();
    log_sink_open(LOG_WARN, LOG_TEXT, "syslog", "prog");
    errno = EXDEV;
    say("hello");
    say("again\nand again");
    EXPECT(errno == EXDEV);
    EXPECT(count_descriptors() == before);
    EXPECT(receive(daemon, text, sizeof(text)) > 0);
    EXPECT(strcmp(text + header_length(text), "prog: hello") == 0);
    EXPECT(receive(daemon, text, sizeof(text)) > 0);
    EXPECT(strcmp(text + header_length(text), "prog: again?and again") == 0);
    EXPECT(receive(daemon, text, sizeof(text)) < 0);
}

IN_A_CHILD(test_syslog_in_json)
{
    char text[2048];
    int daemon = listen_as_syslog(SOCK_DGRAM);
    log_sink_open(LOG_WARN, LOG_JSON, "syslog", "prog");
    say("hello");
    EXPECT(receive(daemon, text, sizeof(text)) > 0);
    EXPECT(json_is_flat_object(text + header_length(text)));
}

/* Nobody there, somebody who takes streams, somebody who has gone, and an address that is too long. */
IN_A_CHILD(test_syslog_that_is_not_there)
{
    static char long_path[200];
    log_sink_open(LOG_WARN, LOG_TEXT, "syslog", "prog");
    memset(long_path, 'a', sizeof(long_path) - 1);
    const char *const paths[] = {"/nonexistent/log", long_path, directory, "/dev/null"};
    int before = count_descriptors();
    errno = EXDEV;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        log_sink_use_syslog_at(paths[i]);
        say("nobody reads this");
    }
    EXPECT(errno == EXDEV && count_descriptors() == before);
    int stream = listen_as_syslog(SOCK_STREAM);
    EXPECT(listen(stream, 1) == 0);
    say("not a stream");
    close(stream);
    say("nobody reads this");
    EXPECT(!is_pending(SIGPIPE) && count_descriptors() == before);
}

/* More than a socket's queue holds. */
IN_A_CHILD(test_syslog_that_is_too_slow)
{
    char text[2048];
    int daemon = listen_as_syslog(SOCK_DGRAM), count = 0;
    log_sink_open(LOG_WARN, LOG_TEXT, "syslog", "prog");
    for (int i = 0; i < 2000; i++)
        say("more and more");
    for (; receive(daemon, text, sizeof(text)) > 0; count++)
        EXPECT(strcmp(text + header_length(text), "prog: more and more") == 0);
    EXPECT(count > 0 && count < 2000);
    say("now there is room");
    EXPECT(receive(daemon, text, sizeof(text)) > 0);
    EXPECT(strcmp(text + header_length(text), "prog: now there is room") == 0);
}

IN_A_CHILD(test_syslog_never_becomes_a_standard_stream)
{
    char text[2048];
    int daemon = fcntl(listen_as_syslog(SOCK_DGRAM), F_DUPFD, 20);
    for (int fd = 0; fd < 20; fd++)
        if (fd != report_fd)
            close(fd);
    log_sink_open(LOG_WARN, LOG_TEXT, "syslog", "prog");
    struct rlimit few = {.rlim_cur = 3, .rlim_max = 1024};
    EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
    say("there is no other descriptor than those three");
    few.rlim_cur = 1024;
    EXPECT(setrlimit(RLIMIT_NOFILE, &few) == 0);
    say("quietly");
    for (int fd = 0; fd < 3; fd++)
        EXPECT(fcntl(fd, F_GETFD) == -1);
    EXPECT(receive(daemon, text, sizeof(text)) > 0);
    EXPECT(strcmp(text + header_length(text), "prog: quietly") == 0);
}

/* ---------------------------------------------------------------------- many writers ---- */

#define WRITERS 16
#define LINES 200

static void write_lines(int writer, int from, int to)
{
    for (int i = from; i < to; i++) {
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
        pids[i] = fork_writer();
        EXPECT(pids[i] >= 0);
        if (pids[i] == 0) {
            write_lines(i, 0, LINES);
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

/* ------------------------------------------------------- many writers, rotated under them ---- */

#define ROTATIONS 20
#define BATCH (LINES / ROTATIONS)

/* Writers and the rotation go on together, neither more than one step before the others; nobody
 * waits for a line to be finished. */
struct progress {
    atomic_int lines;
    atomic_int rotations;
};

static void write_between_rotations(struct progress *progress, int writer)
{
    for (int batch = 0; batch < ROTATIONS; batch++) {
        while (atomic_load(&progress->rotations) < batch)
            sched_yield();
        for (int i = batch * BATCH; i < (batch + 1) * BATCH; i++) {
            write_lines(writer, i, i + 1);
            atomic_fetch_add(&progress->lines, 1);
        }
    }
}

static void rotate_and_wait(void (*rotate)(int number))
{
    pid_t pids[WRITERS];
    struct progress *progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(progress != MAP_FAILED);
    for (int i = 0; i < WRITERS; i++) {
        pids[i] = fork_writer();
        EXPECT(pids[i] >= 0);
        if (pids[i] == 0) {
            write_between_rotations(progress, i);
            _exit(0);
        }
    }
    for (int number = 0; number < ROTATIONS; number++) {
        while (atomic_load(&progress->lines) < number * WRITERS * BATCH + WRITERS * BATCH / 2)
            sched_yield();
        rotate(number);
        atomic_fetch_add(&progress->rotations, 1);
    }
    end_writers(pids);
}

static void rotated_path(int number, char path[PATH_MAX + 16])
{
    snprintf(path, PATH_MAX + 16, "%s.%d", log_path, number);
}

static void rotate_by_renaming(int number)
{
    char path[PATH_MAX + 16];
    rotated_path(number, path);
    EXPECT(rename(log_path, path) == 0);
}

/* A line that was opened before the renaming and written after it is in the old file: so what counts
 * is all of them together. */
IN_A_CHILD(test_many_processes_while_the_file_is_renamed)
{
    char path[PATH_MAX + 16];
    size_t length = 0;
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    rotate_and_wait(rotate_by_renaming);
    for (int number = 0; number < ROTATIONS; number++) {
        rotated_path(number, path);
        size_t added = read_file(path, all_lines + length, sizeof(all_lines) - length);
        EXPECT(added > 0 && all_lines[length + added - 1] == '\n');
        length += added;
        unlink(path);
    }
    length += read_file(log_path, all_lines + length, sizeof(all_lines) - length);
    EXPECT(count_whole_lines(all_lines, length) == WRITERS * LINES);
}

static void rotate_by_truncating(int number)
{
    struct stat file;
    (void)number;
    EXPECT(stat(log_path, &file) == 0 && file.st_size > 0);
    EXPECT(truncate(log_path, 0) == 0);
}

/* Here lines are lost, but what is there is whole, and there is no hole. */
IN_A_CHILD(test_many_processes_while_the_file_is_truncated)
{
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    rotate_and_wait(rotate_by_truncating);
    size_t length = read_file(log_path, all_lines, sizeof(all_lines));
    EXPECT(count_whole_lines(all_lines, length) <= WRITERS * BATCH);
}

/* ------------------------------------------------- many writers, to what holds but a little ---- */

/* A reader that is too slow loses lines, but never a part of one. */
IN_A_CHILD(test_many_processes_into_one_pipe)
{
    pid_t pids[WRITERS];
    size_t length = 0;
    ssize_t got;
    int reader = pipe_as_stderr();
    EXPECT(fcntl(reader, F_SETPIPE_SZ, 4096) > 0);
    open_on_stderr();
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
    open_on_stderr();
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
    write_lines(*(int *)number, 0, LINES);
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

static sigjmp_buf before_the_line;

static void jump_away(int signal_number)
{
    siglongjmp(before_the_line, signal_number);
}

/* A program whose handlers longjmp, as those of time-outs used to, leaves no descriptor of ours behind. */
IN_A_CHILD(test_handlers_do_not_run_while_a_line_is_under_way)
{
    struct itimerval often = {.it_value.tv_usec = 20, .it_interval.tv_usec = 20}, never = {0};
    static volatile int jumps;
    log_sink_open(LOG_WARN, LOG_TEXT, log_path, "prog");
    int before = count_descriptors();
    signal(SIGPROF, jump_away);
    EXPECT(setitimer(ITIMER_PROF, &often, NULL) == 0);
    if (sigsetjmp(before_the_line, 1) != 0)
        jumps++;
    while (jumps < 20)
        say("it may be interrupted before or after this");
    EXPECT(setitimer(ITIMER_PROF, &never, NULL) == 0);
    signal(SIGPROF, SIG_IGN);
    EXPECT(count_descriptors() == before);
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
    snprintf(syslog_path, sizeof(syslog_path), "%s/syslog", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    char path[PATH_MAX];
    static const char *const folders[] = {"locked", "jail", "disk"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", directory, folders[i]);
        rmdir(path);
    }
    snprintf(path, sizeof(path), "%s/other", directory);
    unlink(path);
    unlink(syslog_path);
    unlink(log_path);
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_the_level_may_change),
        cmocka_unit_test(test_the_level_may_change_while_others_write),
        cmocka_unit_test(test_off_writes_nothing),
        cmocka_unit_test(test_line_to_stderr_and_errno),
        cmocka_unit_test(test_json_line),
        cmocka_unit_test(test_one_line_about_failing_open),
        cmocka_unit_test(test_a_forked_child_names_itself),
        cmocka_unit_test(test_closed_reader_with_default_action),
        cmocka_unit_test(test_closed_reader_with_a_handler),
        cmocka_unit_test(test_a_pending_sigpipe_stays),
        cmocka_unit_test(test_an_ignored_sigpipe_leaves_nothing_pending),
        cmocka_unit_test(test_full_pipe_drops_the_line),
        cmocka_unit_test(test_full_socket_drops_the_line),
        cmocka_unit_test(test_stderr_that_was_replaced),
        cmocka_unit_test(test_stderr_that_was_closed_at_the_start),
        cmocka_unit_test(test_stderr_that_was_replaced_before_the_sink_was_opened),
        cmocka_unit_test(test_stderr_that_became_a_socket),
        cmocka_unit_test(test_stderr_that_is_a_network_connection),
        cmocka_unit_test(test_stderr_that_is_for_reading),
        cmocka_unit_test(test_the_path_dev_stderr_is_standard_error),
        cmocka_unit_test(test_the_path_none_is_standard_error),
        cmocka_unit_test(test_a_line_is_one_write),
        cmocka_unit_test(test_no_descriptor_left),
        cmocka_unit_test(test_full_pipe_of_an_older_kernel),
        cmocka_unit_test(test_full_pipe_of_an_older_kernel_without_proc),
        cmocka_unit_test(test_terminal_that_is_stopped),
        cmocka_unit_test(test_terminal_that_is_almost_full),
        cmocka_unit_test(test_terminal_that_is_for_reading),
        cmocka_unit_test(test_terminal_that_was_hung_up),
        cmocka_unit_test(test_terminal_that_stops_the_background),
        cmocka_unit_test(test_log_file),
        cmocka_unit_test(test_log_file_that_was_truncated),
        cmocka_unit_test(test_log_file_in_a_folder_that_comes_and_goes),
        cmocka_unit_test(test_log_file_after_a_chroot),
        cmocka_unit_test(test_log_file_on_dev_full),
        cmocka_unit_test(test_log_file_on_a_full_disk),
        cmocka_unit_test(test_log_file_never_becomes_a_standard_stream),
        cmocka_unit_test(test_relative_path_stays_where_it_was),
        cmocka_unit_test(test_path_that_is_a_directory),
        cmocka_unit_test(test_path_that_does_not_exist),
        cmocka_unit_test(test_path_that_is_too_long),
        cmocka_unit_test(test_path_without_permission),
        cmocka_unit_test(test_fifo_without_and_with_a_reader),
        cmocka_unit_test(test_full_fifo_drops_the_line),
        cmocka_unit_test(test_file_size_limit_on_a_log_file),
        cmocka_unit_test(test_file_size_limit_on_standard_error),
        cmocka_unit_test(test_the_programs_own_sigxfsz),
        cmocka_unit_test(test_syslog),
        cmocka_unit_test(test_syslog_in_json),
        cmocka_unit_test(test_syslog_that_is_not_there),
        cmocka_unit_test(test_syslog_that_is_too_slow),
        cmocka_unit_test(test_syslog_never_becomes_a_standard_stream),
        cmocka_unit_test(test_many_processes_into_one_file),
        cmocka_unit_test(test_many_processes_while_the_file_is_renamed),
        cmocka_unit_test(test_many_processes_while_the_file_is_truncated),
        cmocka_unit_test(test_many_processes_into_one_pipe),
        cmocka_unit_test(test_many_threads_for_the_last_room_in_a_pipe),
        cmocka_unit_test(test_many_threads_into_one_file),
        cmocka_unit_test(test_handlers_do_not_run_while_a_line_is_under_way),
        cmocka_unit_test(test_cancellation_is_not_taken_here),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
