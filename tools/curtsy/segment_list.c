/* SPDX-License-Identifier: MIT */
/*
 * Segment list: see segment_list.h.  Whoever likes to can make files in /dev/shm: one with any other
 * name than Curtsy gives is none of its segments, and whatever its content is, it is not opened here.
 */
#include "tools/curtsy/segment_list.h"
#include "tools/curtsy/output.h"
#include "tools/curtsy/view.h"

#include "core/log.h"
#include "core/segment_layout.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define FOLDER "/dev/shm"
#define OTHER_LAYOUT "of another version's layout: its processes share nothing with this one's"

/* "curtsy.v1.1000", and nothing behind it. */
static bool is_segment_name(const char *name, unsigned *version)
{
    static const char start[] = "curtsy.v";
    static const char digits[] = "0123456789";
    size_t version_length, user_length;

    if (strncmp(name, start, strlen(start)) != 0)
        return false;
    name += strlen(start);
    version_length = strspn(name, digits);
    user_length = name[version_length] == '.' ? strspn(name + version_length + 1, digits) : 0;
    *version = (unsigned)strtoul(name, NULL, 10);
    return version_length > 0 && version_length <= 6 && user_length > 0 && user_length <= 10 &&
           name[version_length + 1 + user_length] == '\0';
}

static bool add(struct segment_list *list, const char *name, unsigned version, const struct stat *status)
{
    struct found_segment *item = reallocarray(list->item, list->count + 1, sizeof(*item));

    if (item == NULL)
        return false;
    list->item = item;
    item += list->count++;
    *item = (struct found_segment){
        .owner = status->st_uid,
        .size = (uint64_t)status->st_size,
        .made_s = status->st_mtim.tv_sec, /* what is written through a mapping is not noted */
        .is_of_this_layout = version == SEGMENT_LAYOUT_VERSION,
    };
    snprintf(item->name, sizeof(item->name), "/%.48s", name);
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct found_segment *one = a, *other = b;

    if (one->is_of_this_layout != other->is_of_this_layout)
        return one->is_of_this_layout ? -1 : 1;
    return strverscmp(one->name, other->name);
}

bool segment_list_find(struct segment_list *list, uint32_t owner)
{
    DIR *folder = opendir(FOLDER);
    struct dirent *entry;
    struct stat status;
    unsigned version;
    bool is_whole = true;

    *list = (struct segment_list){0};
    while (folder != NULL && is_whole && (entry = readdir(folder)) != NULL) {
        if (is_segment_name(entry->d_name, &version) &&
            fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            (owner == UINT32_MAX || status.st_uid == owner))
            is_whole = add(list, entry->d_name, version, &status);
    }
    if (folder != NULL)
        closedir(folder);
    if (list->count > 1)
        qsort(list->item, list->count, sizeof(list->item[0]), compare);
    return is_whole;
}

void segment_list_free(struct segment_list *list)
{
    free(list->item);
    *list = (struct segment_list){0};
}

void found_segment_print(const struct found_segment *found)
{
    char owner[64], made[40], size[RATE_TEXT_SIZE];
    time_t made_s = (time_t)found->made_s;
    struct tm local;

    view_user_name(found->owner, owner, sizeof(owner));
    units_format_size(size, sizeof(size), found->size);
    if (localtime_r(&made_s, &local) == NULL || strftime(made, sizeof(made), "%Y-%m-%d %H:%M:%S", &local) == 0)
        snprintf(made, sizeof(made), "?");
    printf("segment %s%s%s, owned by %s, %s, made %s, " OTHER_LAYOUT "\n", output_style(STYLE_BOLD), found->name,
           output_style(STYLE_PLAIN), owner, size, made);
}

json_t *found_segment_json(const struct found_segment *found)
{
    char owner[64], made[40];
    bool has_time = log_format_time(found->made_s, made, sizeof(made)) > 0;

    view_user_name(found->owner, owner, sizeof(owner));
    return json_pack("{s:s, s:s, s:n, s:I, s:o, s:[], s:s}", "segment", found->name, "owner", owner, "scope", "size",
                     (json_int_t)found->size, "made", has_time ? json_string(made) : json_null(), "buckets", "error",
                     OTHER_LAYOUT);
}
