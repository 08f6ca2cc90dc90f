/* SPDX-License-Identifier: MIT */
/*
 * Inspect: see inspect.h.
 *
 * Whether a path still leads to the file that is mapped is not told by stat: on several file systems
 * (overlayfs, btrfs) it names another device than /proc/PID/maps does.  So the file is mapped here
 * as well, and the two lines of maps are compared.
 */
#include "tools/curtsy/inspect.h"
#include "tools/curtsy/output.h"
#include "tools/curtsy/view.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DELETED " (deleted)"
#define COMM_MOST 15   /* characters of a name that the kernel keeps */
#define START_FIELD 20 /* of /proc/PID/stat: the start time, counted from the program's name */

static FILE *open_proc(pid_t pid, const char *file)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    return fopen(path, "re");
}

/* -------------------------------------------------------------------- mappings ---- */

static bool parse_mapping(char *line, struct mapped *out)
{
    char permissions[5];
    int at = 0;

    memset(out, 0, sizeof(*out));
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &out->start, &out->end,
               permissions, &out->offset, &out->major, &out->minor, &out->inode, &at) != 7)
        return false;
    out->is_shared = permissions[3] == 's';
    snprintf(out->path, sizeof(out->path), "%s", line + at);
    size_t length = strlen(out->path), ending = strlen(DELETED);
    if (length > ending && strcmp(out->path + length - ending, DELETED) == 0) {
        out->path[length - ending] = '\0';
        out->is_deleted = true;
    }
    return true;
}

int inspect_mappings(pid_t pid, bool (*visit)(void *context, const struct mapped *mapped), void *context)
{
    struct mapped mapped;
    char *line = NULL;
    size_t size = 0;
    FILE *maps = open_proc(pid, "maps");

    if (maps == NULL)
        return errno == ENOENT ? ESRCH : errno;
    errno = 0;
    while (getline(&line, &size, maps) > 0)
        if (parse_mapping(line, &mapped) && !visit(context, &mapped))
            break;
    int error = ferror(maps) ? errno : 0;
    free(line);
    fclose(maps);
    return error;
}

/* ----------------------------------------------------------------------- files ---- */

struct wanted_address {
    uint64_t address;
    struct mapped found;
    bool is_found;
};

static bool find_address(void *context, const struct mapped *mapped)
{
    struct wanted_address *wanted = context;

    if (wanted->address < mapped->start || wanted->address >= mapped->end)
        return true;
    wanted->found = *mapped;
    wanted->is_found = true;
    return false;
}

static bool is_same_file(const void *memory, const struct mapped *mapped)
{
    struct wanted_address wanted = {.address = (uintptr_t)memory};

    inspect_mappings(getpid(), find_address, &wanted);
    return wanted.is_found && wanted.found.inode == mapped->inode && wanted.found.major == mapped->major &&
           wanted.found.minor == mapped->minor;
}

/* Only a regular file: opening anything else may do something. */
static void *map_path(const char *path, size_t *size)
{
    struct stat status;
    void *memory = MAP_FAILED;

    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return NULL;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0)
        return NULL;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        *size = (size_t)status.st_size;
        memory = mmap(NULL, *size, PROT_READ, MAP_SHARED, descriptor, 0);
    }
    close(descriptor);
    return memory != MAP_FAILED ? memory : NULL;
}

/* By its name, which is one in the process' root or, where it has only changed its root, in ours; else by
 * the mapping itself, which takes privileges. */
void *inspect_file(pid_t pid, const struct mapped *mapped, size_t *size, bool *is_replaced)
{
    char path[PATH_MAX + 64], root[32];
    const char *const roots[] = {root, ""};

    snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]) && !mapped->is_deleted; i++) {
        snprintf(path, sizeof(path), "%s%s", roots[i], mapped->path);
        void *memory = map_path(path, size);
        if (memory != NULL && is_same_file(memory, mapped)) {
            *is_replaced = false;
            return memory;
        }
        if (memory != NULL)
            munmap(memory, *size);
    }
    *is_replaced = true;
    snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, mapped->start, mapped->end);
    return map_path(path, size);
}

/* ------------------------------------------------------------------ who it is ---- */

/* The entries are strings one after the other. */
bool inspect_variable(pid_t pid, const char *name, char *value, size_t size)
{
    FILE *environment = open_proc(pid, "environ");
    size_t length = strlen(name), room = 0;
    char *entry = NULL;
    bool is_found = false;

    if (environment == NULL)
        return false;
    while (!is_found && getdelim(&entry, &room, '\0', environment) > 0) {
        is_found = strncmp(entry, name, length) == 0 && entry[length] == '=';
        if (is_found)
            snprintf(value, size, "%s", entry + length + 1);
    }
    free(entry);
    fclose(environment);
    if (is_found)
        make_printable(value);
    return is_found;
}

/* The first string of a file, without line end; false if there is none. */
static bool read_first(pid_t pid, const char *file, char *text, size_t size)
{
    FILE *stream = open_proc(pid, file);

    text[0] = '\0';
    if (stream == NULL)
        return false;
    size_t length = fread(text, 1, size - 1, stream);
    text[length] = '\0';
    fclose(stream);
    text[strcspn(text, "\n")] = '\0';
    return text[0] != '\0';
}

/* The kernel's name of the process is the script's where it was started by #!, but cut.  The first word
 * that it was started by has all of it; a process may write a title of many words there. */
void inspect_program(pid_t pid, char program[PROGRAM_SIZE])
{
    char comm[PROGRAM_SIZE], command[PATH_MAX];

    snprintf(program, PROGRAM_SIZE, "?");
    if (read_first(pid, "comm", comm, sizeof(comm)))
        snprintf(program, PROGRAM_SIZE, "%s", comm);
    if (strlen(program) == COMM_MOST && read_first(pid, "cmdline", command, sizeof(command))) {
        command[strcspn(command, " ")] = '\0';
        const char *slash = strrchr(command, '/');
        const char *name = slash != NULL ? slash + 1 : command;
        if (strncmp(name, comm, COMM_MOST) == 0)
            snprintf(program, PROGRAM_SIZE, "%.*s", PROGRAM_SIZE - 1, name);
    }
    make_printable(program);
}

/* Several of a status file's fields are numbers on one line: the last one of those that are there. */
static bool read_numbers(pid_t pid, const char *field, unsigned long *second, unsigned long *last)
{
    FILE *status = open_proc(pid, "status");
    size_t length = strlen(field), size = 0;
    char *line = NULL;
    unsigned count = 0;

    if (status == NULL)
        return false;
    while (count == 0 && getline(&line, &size, status) > 0) {
        if (strncmp(line, field, length) != 0)
            continue;
        char *end, *at = line + length;
        for (unsigned long number = strtoul(at, &end, 10); end != at; number = strtoul(at, &end, 10)) {
            *last = number;
            if (++count <= 2)
                *second = number;
            at = end;
        }
    }
    free(line);
    fclose(status);
    return count > 0;
}

void inspect_user(pid_t pid, char user[USER_SIZE])
{
    unsigned long effective = 0, unused;

    snprintf(user, USER_SIZE, "?");
    if (!read_numbers(pid, "Uid:", &effective, &unused))
        return;
    view_user_name((uint32_t)effective, user, USER_SIZE);
}

/* The fields are counted from the last ')', since a program may have any name. */
static bool read_start(pid_t pid, unsigned long long *ticks)
{
    char text[1024];

    if (!read_first(pid, "stat", text, sizeof(text)))
        return false;
    const char *field = strrchr(text, ')');
    for (unsigned i = 0; field != NULL && i < START_FIELD; i++)
        field = strchr(field + 1, ' ');
    return field != NULL && sscanf(field, " %llu", ticks) == 1;
}

/* As core/system/process.c makes it: the pid in its own namespace, and the tags of its start and of the
 * namespace. */
uint64_t inspect_owner(pid_t pid)
{
    unsigned long first, own_pid;
    unsigned long long ticks;
    struct stat namespace;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
    if (!read_numbers(pid, "NSpid:", &first, &own_pid) || !read_start(pid, &ticks) || stat(path, &namespace) != 0)
        return 0;
    uint64_t start_tag = ticks % UINT16_MAX + 1, namespace_tag = namespace.st_ino % UINT16_MAX + 1;
    return namespace_tag << 48 | start_tag << 32 | (uint32_t)own_pid;
}

bool inspect_is_empty(pid_t pid)
{
    char text[2];

    return !read_first(pid, "cmdline", text, sizeof(text));
}
