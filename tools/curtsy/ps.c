/* SPDX-License-Identifier: MIT */
/*
 * curtsy ps: every process that has the library mapped, and what each of its transfers waits for.
 * Nobody has to register for that: processes are found by their mappings in /proc, waiters by the
 * table in the segment that the process has mapped (core/waiters.h).
 */
#include "tools/curtsy/command.h"
#include "tools/curtsy/inspect.h"
#include "tools/curtsy/operate.h"
#include "tools/curtsy/output.h"

#include "core/system/clock.h"
#include "core/waiters.h"

#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIBRARY "libcurtsy.so"
#define VERSION_MARK "curtsy-version="
#define VERSION_SIZE 32

enum { OPTION_JSON = 256, OPTION_SEGMENT };

struct ps_options {
    const char *segment;
    pid_t pid; /* 0: all */
    bool as_json;
};

struct waiter_list {
    struct waiter *item;
    size_t count;
};

/* Candidates for the segment that a process has mapped: one in use, and one that was replaced. */
#define CANDIDATES_MAX 8

struct process {
    pid_t pid;
    char user[USER_SIZE];
    char program[PROGRAM_SIZE];
    struct mapped library;
    char version[VERSION_SIZE];
    bool is_replaced; /* the library, by another file */
    struct mapped candidates[CANDIDATES_MAX];
    unsigned candidate_count;
    bool has_anonymous; /* shared memory without a file, as a private budget is */
    bool uses_libcurl;

    char segment[PATH_MAX]; /* "": none */
    bool segment_is_replaced;
    char config[PATH_MAX]; /* "": the default layers */
    bool has_set;          /* CURTSY_SET */
    enum mode mode;
    const char *mode_by; /* NULL: nobody has said anything */
    struct waiter_list waiters;
};

struct process_list {
    struct process **item;
    size_t count;
    unsigned unreadable;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct ps_options *options = state->input;
    char *end;
    long pid;

    switch (key) {
    case OPTION_SEGMENT:
        options->segment = argument;
        return 0;
    case OPTION_JSON:
        options->as_json = true;
        return 0;
    case ARGP_KEY_ARG:
        pid = strtol(argument, &end, 10);
        if (options->pid != 0)
            return ARGP_ERR_UNKNOWN;
        if (*end != '\0' || pid <= 0 || pid > INT_MAX)
            argp_error(state, "%s: expected the number of a process", argument);
        options->pid = (pid_t)pid;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ------------------------------------------------------------ what it has mapped ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static bool begins(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool look_at_mapping(void *context, const struct mapped *mapped)
{
    struct process *process = context;
    const char *name = base_name(mapped->path);

    if (mapped->path[0] != '/' || mapped->offset != 0)
        return true;
    if (begins(name, LIBRARY) && process->library.path[0] == '\0')
        process->library = *mapped;
    else if (begins(name, "libcurl.so") || begins(name, "libcurl-"))
        process->uses_libcurl = true;
    else if (mapped->is_shared && strcmp(mapped->path, "/dev/zero") == 0)
        process->has_anonymous = true;
    else if (mapped->is_shared && mapped->end - mapped->start >= SEGMENT_SIZE_MIN &&
             process->candidate_count < CANDIDATES_MAX)
        process->candidates[process->candidate_count++] = *mapped;
    return true;
}

/* ----------------------------------------------------------------- the library ---- */

static void read_version(struct process *process)
{
    static const char mark[] = VERSION_MARK;
    size_t size = 0, length = 0;
    void *memory = inspect_file(process->pid, &process->library, &size, &process->is_replaced);
    const char *found = memory != NULL ? memmem(memory, size, mark, sizeof(mark) - 1) : NULL;

    snprintf(process->version, VERSION_SIZE, "?");
    if (found != NULL) {
        found += sizeof(mark) - 1;
        const char *end = (const char *)memory + size;
        while (found + length < end && length < VERSION_SIZE - 1 && found[length] > ' ' && found[length] < '\177')
            length++;
        if (length > 0)
            snprintf(process->version, VERSION_SIZE, "%.*s", (int)length, found);
    }
    if (memory != NULL)
        munmap(memory, size);
}

/* ----------------------------------------------------------------- the segment ---- */

static bool add_waiter(struct waiter_list *list, const struct waiter *waiter)
{
    struct waiter *item = reallocarray(list->item, list->count + 1, sizeof(*item));

    if (item == NULL)
        return false;
    list->item = item;
    item[list->count++] = *waiter;
    return true;
}

static int compare_began(const void *a, const void *b)
{
    int64_t one = ((const struct waiter *)a)->began_ns, other = ((const struct waiter *)b)->began_ns;

    return (one > other) - (one < other);
}

/* A record of a process that is dead is never taken for this one's: its start is in the owner's name. */
static bool collect_waiters(struct process *process, const struct segment *segment)
{
    uint64_t owner = inspect_owner(process->pid);
    struct waiter waiter;
    unsigned cursor = 0;

    while (waiters_next(segment, &cursor, &waiter))
        if (waiter.owner == owner && owner != 0 && !add_waiter(&process->waiters, &waiter))
            return false;
    if (process->waiters.count > 1)
        qsort(process->waiters.item, process->waiters.count, sizeof(waiter), compare_began);
    return true;
}

/* Of several sources the least intrusive wins. */
static void calm_down(struct process *process, enum mode mode, const char *by)
{
    if (process->mode_by != NULL && mode >= process->mode)
        return;
    process->mode = mode;
    process->mode_by = by;
}

/* False if it is none of Curtsy's, or cannot be had. */
static bool read_segment(struct process *process, const struct mapped *mapped, int64_t now_ns)
{
    size_t size = 0;
    bool is_replaced;
    void *memory = inspect_file(process->pid, mapped, &size, &is_replaced);
    struct segment segment;
    bool is_segment = memory != NULL && segment_view(&segment, memory, size, clock_boot_name()) == SEGMENT_OK;

    if (is_segment) {
        enum operator_mode mode = segment_mode(&segment, now_ns, NULL);
        if (mode != OPERATOR_AUTO)
            calm_down(process, operator_ceiling(mode), "the operator");
        if (!collect_waiters(process, &segment))
            complain("out of memory");
    }
    if (memory != NULL)
        munmap(memory, size);
    if (is_segment || begins(base_name(mapped->path), "curtsy.v")) {
        snprintf(process->segment, sizeof(process->segment), "%s", mapped->path);
        process->segment_is_replaced = is_replaced;
    }
    return is_segment;
}

/* ------------------------------------------------------------------ one process ---- */

static void read_environment(struct process *process)
{
    char mode[32], unused[2], off_file[64];
    enum mode asked;

    if (!inspect_variable(process->pid, "CURTSY_CONFIG", process->config, sizeof(process->config)))
        process->config[0] = '\0';
    process->has_set = inspect_variable(process->pid, "CURTSY_SET", unused, sizeof(unused)) && unused[0] != '\0';
    if (inspect_variable(process->pid, "CURTSY_MODE", mode, sizeof(mode)) &&
        keys_parse_value(&policy_keys[POLICY_KEY_mode], mode, &asked) == NULL)
        calm_down(process, asked, "CURTSY_MODE");
    snprintf(off_file, sizeof(off_file), "/proc/%d/root" CURTSY_OFF_FILE, (int)process->pid);
    if (access(off_file, F_OK) == 0)
        calm_down(process, MODE_OFF, CURTSY_OFF_FILE);
}

/* The one under its name rather than one that was replaced. */
static void read_segments(struct process *process, int64_t now_ns)
{
    for (int is_deleted = 0; is_deleted <= 1; is_deleted++)
        for (unsigned i = 0; i < process->candidate_count; i++)
            if (process->candidates[i].is_deleted == (is_deleted == 1) &&
                read_segment(process, &process->candidates[i], now_ns))
                return;
}

static void process_free(struct process *process)
{
    if (process != NULL)
        free(process->waiters.item);
    free(process);
}

/* 0, or an errno; the library's path is empty where the process is not governed. */
static int process_read(struct process *process, pid_t pid, int64_t now_ns)
{
    process->pid = pid;
    process->mode = MODE_ENFORCE;
    int error = inspect_mappings(pid, look_at_mapping, process);
    inspect_program(pid, process->program);
    if (error != 0 || process->library.path[0] == '\0')
        return error;
    inspect_user(pid, process->user);
    read_version(process);
    read_environment(process);
    read_segments(process, now_ns);
    make_printable(process->segment);
    return 0;
}

/* ---------------------------------------------------------------- all processes ---- */

static bool list_add(struct process_list *list, struct process *process)
{
    struct process **item = reallocarray(list->item, list->count + 1, sizeof(struct process *));

    if (item == NULL)
        return false;
    list->item = item;
    item[list->count++] = process;
    return true;
}

static bool is_wanted(const struct process *process, const char *segment)
{
    char path[PATH_MAX], error[PATH_MAX + 64];

    if (process->library.path[0] == '\0')
        return false;
    if (segment == NULL)
        return true;
    return mapping_path(segment, path, sizeof(path), error, sizeof(error)) && strcmp(path, process->segment) == 0;
}

/* False when out of memory. */
static bool list_look(struct process_list *list, pid_t pid, const char *segment, int64_t now_ns)
{
    struct process *process = calloc(1, sizeof(*process));

    if (process == NULL)
        return false;
    int error = process_read(process, pid, now_ns);
    if (error == 0 && is_wanted(process, segment)) {
        if (list_add(list, process))
            return true;
        process_free(process);
        return false;
    }
    if ((error == EACCES || error == EPERM) && !inspect_is_empty(pid))
        list->unreadable++;
    process_free(process);
    return true;
}

static int compare_pids(const void *a, const void *b)
{
    pid_t one = (*(struct process *const *)a)->pid, other = (*(struct process *const *)b)->pid;

    return (one > other) - (one < other);
}

/* False with a complaint. */
static bool list_all(struct process_list *list, const char *segment, int64_t now_ns)
{
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    bool is_whole = true;

    if (folder == NULL) {
        complain("/proc: %s", strerror(errno));
        return false;
    }
    while (is_whole && (entry = readdir(folder)) != NULL) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (*end == '\0' && pid > 0 && pid != getpid())
            is_whole = list_look(list, (pid_t)pid, segment, now_ns);
    }
    closedir(folder);
    if (!is_whole)
        complain("out of memory");
    else if (list->count > 1)
        qsort(list->item, list->count, sizeof(struct process *), compare_pids);
    return is_whole;
}

static void list_free(struct process_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        process_free(list->item[i]);
    free(list->item);
}

/* -------------------------------------------------------------------- as text ---- */

static const char *const mode_names[] = {"off", "observe", "enforce"};

static void print_waiter(const struct waiter *waiter, int64_t now_ns)
{
    char since[CLOCK_TEXT_SIZE], until[CLOCK_TEXT_SIZE], waited[SHORT_TIME_SIZE], left[SHORT_TIME_SIZE];

    printf("        waits for %s (bucket %s): %s, since %s (%s)", waiter->endpoint, waiter->bucket,
           cause_name(waiter->cause), clock_text(since, waiter->began_ns, now_ns),
           short_time(waited, now_ns - waiter->began_ns));
    if (waiter->until_ns == TIME_NEVER)
        puts(", without an end");
    else
        printf(", until %s (for %s)\n", clock_text(until, waiter->until_ns, now_ns),
               short_time(left, waiter->until_ns - now_ns));
}

static void print_process(const struct process *process, int64_t now_ns)
{
    char version[64], mode[64];
    const char *segment = process->segment;

    snprintf(version, sizeof(version), "%s%s", process->version, process->is_replaced ? " (replaced since)" : "");
    snprintf(mode, sizeof(mode), "%s%s%s%s", mode_names[process->mode], process->mode_by != NULL ? " (" : "",
             process->mode_by != NULL ? process->mode_by : "", process->mode_by != NULL ? ")" : "");
    if (segment[0] == '\0' && !process->has_anonymous) {
        segment = "none yet";
        snprintf(mode, sizeof(mode), "no libcurl used");
    } else if (segment[0] == '\0') {
        segment = "private";
    }
    printf("%7d %-10s %-16s %-9s %-22s %-28s %s%s%s\n", (int)process->pid, process->user, process->program, version,
           mode, segment, process->segment_is_replaced ? "(replaced since) " : "",
           process->config[0] != '\0' ? process->config : "default layers", process->has_set ? " and CURTSY_SET" : "");
    for (size_t i = 0; i < process->waiters.count; i++)
        print_waiter(&process->waiters.item[i], now_ns);
}

static void print_list(const struct process_list *list, int64_t now_ns)
{
    if (list->count > 0)
        printf("\n%s%7s %-10s %-16s %-9s %-22s %-28s %s%s\n", output_style(STYLE_BOLD), "PID", "USER", "PROGRAM",
               "VERSION", "MODE", "SEGMENT", "CONFIGURATION", output_style(STYLE_PLAIN));
    else
        puts("no process under Curtsy");
    for (size_t i = 0; i < list->count; i++)
        print_process(list->item[i], now_ns);
    if (list->unreadable > 0)
        printf("%u process%s cannot be looked at: another user's, or protected\n", list->unreadable,
               list->unreadable == 1 ? "" : "es");
}

/* -------------------------------------------------------------------- as JSON ---- */

static json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_text(text) : json_null();
}

/* 0 where the end is before the beginning. */
static double seconds_between(int64_t from_ns, int64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) / (double)NS_PER_SECOND : 0;
}

static json_t *waiter_json(const struct waiter *waiter, int64_t now_ns)
{
    bool has_end = waiter->until_ns != TIME_NEVER;

    return json_pack("{s:o, s:o, s:s, s:o, s:f, s:o, s:o}", "endpoint", json_text(waiter->endpoint), "bucket",
                     json_text(waiter->bucket), "cause", cause_name(waiter->cause), "since",
                     clock_json(waiter->began_ns, now_ns), "waited_s", seconds_between(waiter->began_ns, now_ns),
                     "until", clock_json(waiter->until_ns, now_ns), "left_s",
                     has_end ? json_real(seconds_between(now_ns, waiter->until_ns)) : json_null());
}

static json_t *process_json(const struct process *process, int64_t now_ns)
{
    json_t *waiters = json_array();
    bool is_private = process->segment[0] == '\0' && process->has_anonymous;
    bool has_version = strcmp(process->version, "?") != 0;

    for (size_t i = 0; i < process->waiters.count; i++)
        json_array_append_new(waiters, waiter_json(&process->waiters.item[i], now_ns));
    return json_pack("{s:i, s:o, s:o, s:o, s:b, s:s, s:o, s:o, s:b, s:b, s:o, s:b, s:o}", "pid", (int)process->pid,
                     "user", json_text(process->user), "program", json_text(process->program), "version",
                     has_version ? json_text(process->version) : json_null(), "replaced", (int)process->is_replaced,
                     "mode", mode_names[process->mode], "mode_by", text_or_null(process->mode_by), "segment",
                     text_or_null(process->segment), "segment_replaced", (int)process->segment_is_replaced, "private",
                     (int)is_private, "config", text_or_null(process->config), "curtsy_set", (int)process->has_set,
                     "waiters", waiters);
}

static void print_json(const struct view *view, const struct process_list *list, int64_t now_ns)
{
    json_t *document = view_json(view), *processes = json_array();

    for (size_t i = 0; i < list->count; i++)
        json_array_append_new(processes, process_json(list->item[i], now_ns));
    json_object_set_new(document, "processes", processes);
    json_object_set_new(document, "unreadable", json_integer(list->unreadable));
    output_json(document);
}

/* ------------------------------------------------------------------ the command ---- */

/* Of a process that was asked for by its number, and that is not governed. */
static void complain_about(pid_t pid)
{
    struct process *process = calloc(1, sizeof(*process));
    char preload[PATH_MAX];

    if (process == NULL) {
        complain("out of memory");
        return;
    }
    int error = process_read(process, pid, clock_now_ns());
    if (error == ESRCH)
        complain("%d: no such process", (int)pid);
    else if (error != 0)
        complain("%d (%s): cannot be looked at: %s", (int)pid, process->program, strerror(error));
    else if (inspect_is_empty(pid))
        complain("%d (%s): has ended, or is a thread of the kernel", (int)pid, process->program);
    else if (process->library.path[0] != '\0')
        complain("%d (%s): uses another segment: %s", (int)pid, process->program,
                 process->segment[0] != '\0' ? process->segment : "none");
    else if (inspect_variable(pid, "LD_PRELOAD", preload, sizeof(preload)) && strstr(preload, LIBRARY) != NULL)
        complain("%d (%s): not under Curtsy, though its LD_PRELOAD names " LIBRARY
                 ": it is linked statically, or has more privileges than who started it",
                 (int)pid, process->program);
    else
        complain("%d (%s): not under Curtsy: it was started without " LIBRARY "%s", (int)pid, process->program,
                 process->uses_libcurl ? ", and uses libcurl" : "");
    process_free(process);
}

static int show(const struct ps_options *options, const struct view *view)
{
    int64_t now_ns = clock_now_ns();
    struct process_list list = {NULL, 0, 0};
    bool is_whole;

    if (options->pid != 0)
        is_whole = list_look(&list, options->pid, options->segment, now_ns);
    else
        is_whole = list_all(&list, options->segment, now_ns);
    now_ns = clock_now_ns(); /* or a wait could have begun later */
    if (options->as_json) {
        print_json(view, &list, now_ns);
    } else if (options->pid == 0 || list.count > 0) {
        view_print(view);
        print_list(&list, now_ns);
    }
    bool is_found = list.count > 0;
    if (options->pid != 0 && !is_found)
        complain_about(options->pid);
    list_free(&list);
    return is_whole && is_found ? STATUS_SUCCESS : STATUS_NEGATIVE;
}

int command_ps(int argc, char **argv)
{
    static const struct argp_option option_list[] = {
        {"json", OPTION_JSON, NULL, 0, "print JSON", 0},
        {"segment", OPTION_SEGMENT, "NAME", 0, "only processes that use this segment", 0},
        {0},
    };
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "[PID]",
        .doc = "Shows every process under Curtsy, or the one of that number: its version of Curtsy, its segment, "
               "configuration and mode, and what each of its transfers waits for.\vThe mode is the most that is "
               "allowed from outside the configuration, whose sections may say less for a host.",
    };
    static struct operation operation;
    struct ps_options options = {0};
    int status = STATUS_NEGATIVE;

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    operation_begin(&operation, options.segment, MAPPING_VIEW);
    if (operation.view.name[0] == '\0')
        operation_complain(&operation);
    else
        status = show(&options, &operation.view);
    operation_end(&operation);
    return status;
}
