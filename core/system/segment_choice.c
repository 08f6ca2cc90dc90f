/* SPDX-License-Identifier: MIT */
/*
 * The segment's choice: see segment_choice.h.
 *
 * A line of the file of groups may be as long as its group has members.  It is read a block at a
 * time by a small machine that looks at the first and third field and passes over the rest.
 */
#include "core/system/segment_choice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUP_FILE "/etc/group"
#define READ_TRIES 100000 /* blocks: a file that never ends is none */

/* ----------------------------------------------------------------------- groups ---- */

/* Of "name:password:number:members", one character after the other. */
struct group_reader {
    const char *name;
    size_t matched; /* characters of the name, while field is 0 */
    unsigned field;
    bool differs; /* this line is another group's, or none */
    bool has_digit;
    uint64_t number;
};

static void begin_line(struct group_reader *reader)
{
    *reader = (struct group_reader){.name = reader->name};
}

static void take_digit(struct group_reader *reader, char character)
{
    bool is_digit = character >= '0' && character <= '9';
    reader->has_digit = true;
    reader->number = reader->number * 10 + (is_digit ? (uint64_t)(character - '0') : 0);
    if (!is_digit || reader->number >= MAPPING_OWN_GROUP)
        reader->differs = true;
}

/* The end of a field or line: true if it was the number, of the group that is looked for. */
static bool end_field(struct group_reader *reader)
{
    if (reader->field == 0 && !reader->differs)
        reader->differs = reader->name[reader->matched] != '\0';
    return reader->field++ == 2 && reader->has_digit && !reader->differs;
}

static bool take_character(struct group_reader *reader, char character)
{
    if (character == ':' || character == '\n') {
        bool found = end_field(reader);
        if (character == '\n' && !found)
            begin_line(reader);
        return found;
    }
    if (reader->field == 0 && !reader->differs)
        reader->differs = reader->name[reader->matched++] != character;
    else if (reader->field == 2 && !reader->differs)
        take_digit(reader, character);
    return false;
}

static bool find_group(int fd, struct group_reader *reader)
{
    char block[4096];
    for (int i = 0; i < READ_TRIES; i++) {
        ssize_t length = read(fd, block, sizeof block);
        if (length < 0 && errno == EINTR)
            continue;
        if (length <= 0)
            return take_character(reader, '\n');
        for (ssize_t at = 0; at < length; at++)
            if (take_character(reader, block[at]))
                return true;
    }
    return false;
}

static bool parse_number(const char *text, uint32_t *number)
{
    struct group_reader reader = {0};
    for (; *text && !reader.differs; text++)
        take_digit(&reader, *text);
    *number = (uint32_t)reader.number;
    return reader.has_digit && !reader.differs;
}

bool segment_choice_group(const char *path, const char *name, uint32_t *group)
{
    struct group_reader reader = {.name = name};
    if (parse_number(name, group))
        return true;
    if (!*name || strpbrk(name, ":\n"))
        return false;
    int saved = errno;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool found = fd >= 0 && find_group(fd, &reader);
    if (fd >= 0)
        close(fd);
    if (found)
        *group = (uint32_t)reader.number;
    errno = saved;
    return found;
}

/* --------------------------------------------------------------------- choosing ---- */

static void choose_permissions(struct segment_choice *choice, const struct settings *settings)
{
    struct mapping_permissions *permissions = &choice->permissions;
    *permissions = (struct mapping_permissions){settings->segment_permissions, MAPPING_OWN_GROUP};
    if (!settings->segment_group)
        return;
    choice->lacks_group = !segment_choice_group(GROUP_FILE, settings->segment_group, &permissions->group);
    if (!choice->lacks_group)
        return;
    permissions->group = MAPPING_OWN_GROUP;
    if (!(permissions->mode & S_IWOTH))
        permissions->mode &= ~(unsigned)S_IRWXG;
}

void segment_choose(struct segment_choice *choice, const struct environment *environment,
                    const struct settings *settings)
{
    struct settings built_in;
    if (!settings) {
        settings_defaults(&built_in);
        settings = &built_in;
    }
    const char *name = environment->segment ? environment->segment : settings->segment;
    *choice = (struct segment_choice){
        .is_default = !name,
        .size = settings->segment_size,
        .permissions = MAPPING_PRIVATE_PERMISSIONS,
    };
    if (name) {
        snprintf(choice->name, sizeof choice->name, "%s", name);
        choose_permissions(choice, settings);
    } else {
        mapping_default_name(choice->name, sizeof choice->name);
    }
}
