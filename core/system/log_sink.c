/* SPDX-License-Identifier: MIT */
/*
 * Writing a line in somebody else's program must cost it nothing but the line: no signal, no wait,
 * no descriptor kept, no errno changed, no cancellation taken here.  Each of these is one small step
 * around the one write, in write_quietly; what kind of file it is decides how the write is kept from
 * blocking.
 */
#include "core/system/log_sink.h"

#include "core/system/clock.h"
#include "core/system/local_zone.h"

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
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum place { PLACE_NOWHERE, PLACE_STDERR, PLACE_FILE, PLACE_SYSLOG };

static struct {
    atomic_bool is_open; /* the rest was written before this was set, and only the level ever again */
    _Atomic enum log_level level;
    enum log_format format;
    enum place place;
    char path[PATH_MAX];
    char program[128];
} sink;

static struct {
    bool is_noted;
    bool is_usable;
    struct stat file; /* what descriptor 2 was at the start */
} standard_error;

static const char *syslog_path = "/dev/log";
static struct local_zone zone; /* read only where syslog is the place */

static atomic_flag failed_open_said = ATOMIC_FLAG_INIT;

/* ------------------------------------------------------------------------ settings ---- */

/* inetd and its like start a server with its client's connection in the place of all three standard
 * streams. */
static bool is_network_connection(int fd)
{
    int domain = AF_UNIX;
    socklen_t size = sizeof(domain);
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain != AF_UNIX;
}

void log_sink_note_stderr(void)
{
    standard_error.is_noted = true;
    standard_error.is_usable = fstat(STDERR_FILENO, &standard_error.file) == 0 &&
                               !(S_ISSOCK(standard_error.file.st_mode) && is_network_connection(STDERR_FILENO));
}

/* The sink may be opened late, at the first use of a libcurl that was not there at the start; by then
 * the program may have closed descriptor 2 and been given it again for a file of data. */
__attribute__((constructor)) static void note_stderr_at_start(void)
{
    int saved_errno = errno;
    if (!standard_error.is_noted)
        log_sink_note_stderr();
    errno = saved_errno;
}

void log_sink_use_syslog_at(const char *path)
{
    syslog_path = path;
}

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

/* As a path, /dev/stderr would be whatever has become of descriptor 2. */
static enum place choose_place(const char *path)
{
    static const char *const names_of_stderr[] = {"", "none", "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"};
    if (!path)
        return PLACE_STDERR;
    for (size_t i = 0; i < sizeof(names_of_stderr) / sizeof(names_of_stderr[0]); i++)
        if (strcmp(path, names_of_stderr[i]) == 0)
            return PLACE_STDERR;
    if (strcmp(path, "syslog") == 0) {
        local_zone_read(&zone, LOCAL_ZONE_FILE);
        return PLACE_SYSLOG;
    }
    return copy_path(path) ? PLACE_FILE : PLACE_NOWHERE;
}

void log_sink_open(enum log_level level, enum log_format format, const char *path, const char *program)
{
    int saved_errno = errno;
    if (atomic_load_explicit(&sink.is_open, memory_order_acquire))
        return;
    if (!standard_error.is_noted)
        log_sink_note_stderr();
    sink.place = choose_place(path);
    sink.format = format;
    snprintf(sink.program, sizeof(sink.program), "%s", program ? program : "");
    atomic_store_explicit(&sink.level, level, memory_order_relaxed);
    atomic_store_explicit(&sink.is_open, true, memory_order_release);
    errno = saved_errno;
}

void log_sink_set_level(enum log_level level)
{
    if (atomic_load_explicit(&sink.is_open, memory_order_acquire))
        atomic_store_explicit(&sink.level, level, memory_order_relaxed);
}

bool log_sink_wants(enum log_level level)
{
    return atomic_load_explicit(&sink.is_open, memory_order_acquire) && sink.place != PLACE_NOWHERE &&
           level != LOG_OFF && level <= atomic_load_explicit(&sink.level, memory_order_relaxed);
}

/* --------------------------------------------------------------------- descriptors ---- */

/* A program without standard streams must not find a file of ours in their place. */
static int move_above_standard_streams(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return higher;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_rdev == b->st_rdev &&
           (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT);
}

/* The same pipe or terminal by a description of our own, which does not block; to make the program's
 * own one not block would be felt by everybody who shares it.  -1 with errno. */
static int open_again(int fd, const struct stat *file)
{
    char path[64];
    struct stat opened;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int again = move_above_standard_streams(open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (again < 0 || (fstat(again, &opened) == 0 && is_same_file(&opened, file)))
        return again;
    close(again);
    errno = ENOENT;
    return -1;
}

/* ----------------------------------------------------------------------- one write ---- */

static bool is_ready(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    return poll(&ready, 1, 0) == 1 && (ready.revents & (POLLOUT | POLLERR | POLLHUP));
}

/* A poll before the write is not enough: a sibling may fill a pipe in between, and a terminal is
 * ready when it has room for one character.  It has to do where the file cannot be opened again: a
 * terminal of the user that somebody was before su(1), no /proc, no descriptor left. */
static ssize_t write_by_own_description(int fd, const struct stat *file, const char *line, size_t length)
{
    int again = open_again(fd, file);
    if (again < 0) {
        bool is_hopeless = errno == ENXIO || errno == EIO; /* nobody reads, or it was hung up */
        return !is_hopeless && is_ready(fd) ? write(fd, line, length) : -1;
    }
    ssize_t written = write(again, line, length);
    int write_errno = errno;
    close(again);
    errno = write_errno;
    return written;
}

/* Where the kernel takes RWF_NOWAIT for pipes it is asked not to wait.  A line is shorter than
 * PIPE_BUF, so a pipe takes it whole or not at all. */
static ssize_t write_pipe(int fd, const struct stat *file, const char *line, size_t length)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)line, .iov_len = length};
    ssize_t written = pwritev2(fd, &part, 1, -1, RWF_NOWAIT);
    bool is_unknown = errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL || errno == EPERM;
    return written < 0 && is_unknown ? write_by_own_description(fd, file, line, length) : written;
}

/* A line that RLIMIT_FSIZE leaves only a part of would be half a line; wholly beyond the limit it
 * would be SIGXFSZ. */
static bool fits_file_size_limit(int fd, int flags, const struct stat *file, size_t length)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return true;
    off_t at = flags & O_APPEND ? file->st_size : lseek(fd, 0, SEEK_CUR);
    return at < 0 || ((rlim_t)at <= limit.rlim_cur && length <= limit.rlim_cur - (rlim_t)at);
}

/* The one write.  As write(2): how much of it, or -1 with errno. */
static ssize_t write_without_waiting(int fd, const struct stat *file, const char *line, size_t length)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return -1;
    if (S_ISSOCK(file->st_mode))
        return send(fd, line, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (S_ISREG(file->st_mode))
        return fits_file_size_limit(fd, flags, file, length) ? write(fd, line, length) : -1;
    if (flags & O_NONBLOCK)
        return write(fd, line, length);
    if (S_ISFIFO(file->st_mode))
        return write_pipe(fd, file, line, length);
    if (S_ISCHR(file->st_mode) && isatty(fd))
        return write_by_own_description(fd, file, line, length);
    return is_ready(fd) ? write(fd, line, length) : -1;
}

/* All signals are blocked (log_sink_write).  SIGPIPE and SIGXFSZ are sent to the writing thread: they
 * can only become pending, and are taken back, unless one was pending before us: that one is the
 * program's. */
static ssize_t write_quietly(int fd, const struct stat *file, const char *line, size_t length)
{
    static const int signals[] = {SIGPIPE, SIGXFSZ};
    static const struct timespec at_once = {0, 0};
    sigset_t pending, ours;

    if (sigpending(&pending) != 0)
        return -1;
    errno = 0;
    ssize_t written = write_without_waiting(fd, file, line, length);
    if (errno == EPIPE || errno == EFBIG) {
        sigemptyset(&ours);
        for (int i = 0; i < 2; i++)
            if (!sigismember(&pending, signals[i]))
                sigaddset(&ours, signals[i]);
        while (sigtimedwait(&ours, NULL, &at_once) < 0 && errno == EINTR)
            continue;
    }
    return written;
}

/* ------------------------------------------------------------------- where it goes ---- */

static void write_stderr(const char *line, size_t length)
{
    struct stat now;
    if (standard_error.is_usable && fstat(STDERR_FILENO, &now) == 0 && is_same_file(&now, &standard_error.file))
        (void)write_quietly(STDERR_FILENO, &now, line, length);
}

/* O_CREAT only where it is needed: fs.protected_regular refuses it on another user's file in a
 * sticky directory, even to one who may write there. */
static int open_log_file(void)
{
    const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = open(sink.path, flags);
    if (fd < 0 && errno == ENOENT)
        fd = open(sink.path, flags | O_CREAT, 0600);
    return move_above_standard_streams(fd);
}

/* A disk that becomes full may take a part of the line, and the next one would follow on it.  It is
 * taken back, unless somebody has appended to it or cut it off meanwhile. */
static void take_back(int fd, size_t written)
{
    struct stat now;
    off_t end = lseek(fd, 0, SEEK_CUR);
    if (fstat(fd, &now) == 0 && now.st_size == end && (off_t)written <= end)
        (void)!ftruncate(fd, end - (off_t)written);
}

static void write_log_file(const char *line, size_t length)
{
    struct stat file;
    int fd = open_log_file();
    if (fd < 0)
        return;
    if (fstat(fd, &file) == 0) {
        ssize_t written = write_quietly(fd, &file, line, length);
        if (S_ISREG(file.st_mode) && written > 0 && (size_t)written < length)
            take_back(fd, (size_t)written);
    }
    close(fd);
}

/* A daemon that wants a stream there is not served. */
static void send_to_syslog(const char *message, size_t length)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t path_length = strlen(syslog_path);
    if (path_length >= sizeof(address.sun_path))
        return;
    memcpy(address.sun_path, syslog_path, path_length);
    int fd = move_above_standard_streams(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return;
    (void)!sendto(fd, message, length, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&address, sizeof(address));
    close(fd);
}

/* Who reads standard error sees when; who reads a file needs to be told.  JSON says it itself. */
static size_t format(const struct log_record *record, char *line, size_t size)
{
    size_t length = 0;
    if (sink.place == PLACE_SYSLOG) {
        struct calendar_time local;
        bool is_known = local_zone_time(&zone, record->time_s, &local);
        return log_format_syslog(record, is_known ? &local : NULL, sink.format, line, size);
    }
    if (sink.place == PLACE_FILE && sink.format == LOG_TEXT) {
        length = log_format_time(record->time_s, line, size);
        line[length++] = ' ';
    }
    return length + log_format_line(record, sink.format, line + length, size - length);
}

static void write_line(const char *line, size_t length)
{
    if (sink.place == PLACE_SYSLOG)
        send_to_syslog(line, length);
    else if (sink.place == PLACE_FILE)
        write_log_file(line, length);
    else
        write_stderr(line, length);
}

/* No handler of the program's runs while a line is under way: it might longjmp, and leave our
 * descriptor behind.  And while SIGTTOU is blocked a terminal takes output from the background,
 * instead of stopping the job (stty tostop).  What the processor or a sandbox raises is not blocked:
 * it could not wait. */
static bool block_signals(sigset_t *before)
{
    static const int synchronous[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(synchronous) / sizeof(synchronous[0]); i++)
        sigdelset(&all, synchronous[i]);
    return pthread_sigmask(SIG_BLOCK, &all, before) == 0;
}

void log_sink_write(struct log_record *record)
{
    char line[LOG_LINE_SIZE];
    int saved_errno = errno, cancel_state;
    sigset_t before;

    if (!log_sink_wants(record->level))
        return;
    record->time_s = clock_wall_s();
    record->pid = (int)getpid();
    record->program = sink.program;
    size_t length = format(record, line, sizeof(line));
    if (block_signals(&before)) {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
        write_line(line, length);
        pthread_setcancelstate(cancel_state, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    errno = saved_errno;
}

void log_sink_fail_open(const char *message)
{
    struct log_record record = {.level = LOG_WARN, .event = LOG_FAILED_OPEN, .message = message};
    if (log_sink_wants(record.level) && !atomic_flag_test_and_set(&failed_open_said))
        log_sink_write(&record);
}
