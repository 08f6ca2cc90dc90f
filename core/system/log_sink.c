/* SPDX-License-Identifier: MIT */
/*
 * Writing a line in somebody else's program must cost it nothing but the line: no signal, no wait,
 * no descriptor kept, no errno changed, no cancellation taken here.  Each of these is one small step
 * around the one write, in write_quietly; what kind of file it is decides how the write is kept from
 * blocking.
 */
#include "core/system/log_sink.h"

#include "core/system/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static struct {
    atomic_bool is_open; /* the rest was written before this was set, and never again */
    enum log_level level;
    enum log_format format;
    bool has_path;
    char path[PATH_MAX];
    char program[128];
    bool has_stderr;
    struct stat stderr_file; /* what descriptor 2 was at the start */
} sink;

static atomic_flag failed_open_said = ATOMIC_FLAG_INIT;

/* A relative path is meant from where the program was started, wherever it goes later.  False if it
 * does not fit: half a path would be another file. */
static bool copy_path(const char *path)
{
    char directory[PATH_MAX];
    bool is_relative = path[0] != '/';
    if (is_relative && !getcwd(directory, sizeof(directory)))
        return false;
    int length =
        snprintf(sink.path, sizeof(sink.path), "%s%s%s", is_relative ? directory : "", is_relative ? "/" : "", path);
    return (size_t)length < sizeof(sink.path);
}

void log_sink_open(enum log_level level, enum log_format format, const char *path, const char *program)
{
    int saved_errno = errno;
    if (atomic_load_explicit(&sink.is_open, memory_order_acquire))
        return;
    sink.has_path = path != NULL;
    sink.level = path && !copy_path(path) ? LOG_OFF : level;
    sink.format = format;
    snprintf(sink.program, sizeof(sink.program), "%s", program ? program : "");
    sink.has_stderr = fstat(STDERR_FILENO, &sink.stderr_file) == 0;
    atomic_store_explicit(&sink.is_open, true, memory_order_release);
    errno = saved_errno;
}

bool log_sink_wants(enum log_level level)
{
    return atomic_load_explicit(&sink.is_open, memory_order_acquire) && level != LOG_OFF && level <= sink.level;
}

/* ----------------------------------------------------------------------- one write ---- */

static bool is_ready(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    return poll(&ready, 1, 0) == 1 && (ready.revents & (POLLOUT | POLLERR | POLLHUP));
}

/* A line that RLIMIT_FSIZE leaves only a part of would be half a line; wholly beyond the limit it
 * would be SIGXFSZ. */
static bool fits_file_size_limit(int fd, const struct stat *file, size_t length)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return true;
    int flags = fcntl(fd, F_GETFL);
    off_t at = flags >= 0 && (flags & O_APPEND) ? file->st_size : lseek(fd, 0, SEEK_CUR);
    return at < 0 || ((rlim_t)at <= limit.rlim_cur && length <= limit.rlim_cur - (rlim_t)at);
}

/* To a pipe, a poll before the write is not enough: a sibling may fill it in between.  Where the
 * kernel takes RWF_NOWAIT for pipes it is asked not to wait; else the poll has to do. */
static void write_pipe(int fd, const char *line, size_t length)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)line, .iov_len = length};
    if (pwritev2(fd, &part, 1, -1, RWF_NOWAIT) >= 0 ||
        (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL && errno != EPERM))
        return;
    if (is_ready(fd))
        (void)!write(fd, line, length);
}

/* errno says how it went.  A line is shorter than PIPE_BUF, so a pipe takes it whole or not at all. */
static void write_without_waiting(int fd, const struct stat *file, const char *line, size_t length)
{
    if (S_ISFIFO(file->st_mode))
        write_pipe(fd, line, length);
    else if (S_ISSOCK(file->st_mode))
        (void)!send(fd, line, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (S_ISREG(file->st_mode) ? fits_file_size_limit(fd, file, length) : is_ready(fd))
        (void)!write(fd, line, length);
}

/* SIGPIPE and SIGXFSZ are sent to the writing thread: blocked there, they can only become pending,
 * and are taken back, unless one was pending before us: that one is the program's. */
static void write_quietly(int fd, const struct stat *file, const char *line, size_t length)
{
    static const int signals[] = {SIGPIPE, SIGXFSZ};
    static const struct timespec at_once = {0, 0};
    sigset_t ours, before, pending;

    sigemptyset(&ours);
    for (int i = 0; i < 2; i++)
        sigaddset(&ours, signals[i]);
    if (sigpending(&pending) != 0 || pthread_sigmask(SIG_BLOCK, &ours, &before) != 0)
        return;
    errno = 0;
    write_without_waiting(fd, file, line, length);
    if (errno == EPIPE || errno == EFBIG) {
        for (int i = 0; i < 2; i++)
            if (sigismember(&pending, signals[i]))
                sigdelset(&ours, signals[i]);
        while (sigtimedwait(&ours, NULL, &at_once) < 0 && errno == EINTR)
            continue;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ------------------------------------------------------------------- where it goes ---- */

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_rdev == b->st_rdev &&
           (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT);
}

static void write_stderr(const char *line, size_t length)
{
    struct stat now;
    if (sink.has_stderr && fstat(STDERR_FILENO, &now) == 0 && is_same_file(&now, &sink.stderr_file))
        write_quietly(STDERR_FILENO, &now, line, length);
}

/* O_CREAT only where it is needed: fs.protected_regular refuses it on another user's file in a
 * sticky directory, even to one who may write there.  A program without standard streams must not
 * find our file in their place. */
static int open_log_file(void)
{
    const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = open(sink.path, flags);
    if (fd < 0 && errno == ENOENT)
        fd = open(sink.path, flags | O_CREAT, 0600);
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return higher;
}

static void write_log_file(const char *line, size_t length)
{
    struct stat file;
    int fd = open_log_file();
    if (fd < 0)
        return;
    if (fstat(fd, &file) == 0)
        write_quietly(fd, &file, line, length);
    close(fd);
}

void log_sink_write(struct log_record *record)
{
    char line[LOG_LINE_SIZE];
    int saved_errno = errno, cancel_state;

    if (!log_sink_wants(record->level))
        return;
    record->time_s = clock_wall_s();
    record->pid = (int)getpid();
    record->program = sink.program;
    /* Who reads standard error sees when; who reads a file needs to be told.  JSON says it itself. */
    size_t length = 0;
    if (sink.has_path && sink.format == LOG_TEXT) {
        length = log_format_time(record->time_s, line, sizeof(line));
        line[length++] = ' ';
    }
    length += log_format_line(record, sink.format, line + length, sizeof(line) - length);
    bool cancel_disabled = pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state) == 0;
    if (sink.has_path)
        write_log_file(line, length);
    else
        write_stderr(line, length);
    if (cancel_disabled)
        pthread_setcancelstate(cancel_state, NULL);
    errno = saved_errno;
}

void log_sink_fail_open(const char *message)
{
    struct log_record record = {.level = LOG_WARN, .event = LOG_FAILED_OPEN, .message = message};
    if (log_sink_wants(record.level) && !atomic_flag_test_and_set(&failed_open_said))
        log_sink_write(&record);
}
