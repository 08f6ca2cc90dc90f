/* SPDX-License-Identifier: MIT */
/*
 * A zone file is two blocks, each behind a header that counts what is in it, and a rule behind them.
 * The first block has times of 32 bits, for old readers, and is skipped.  The second has, in this
 * order: the times of the changes, an index of a type for each, and the types, which begin with the
 * offset from UTC.  All numbers are big-endian.
 */
#include "core/system/local_zone.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define HEADER_SIZE 44
#define TYPE_SIZE 6

/* What is left of the file. */
struct rest {
    const unsigned char *at;
    size_t length;
};

struct block {
    uint64_t is_utc_count, is_standard_count, leap_count, time_count, type_count, name_size;
    const unsigned char *times, *indices, *types;
};

void local_zone_read(struct local_zone *zone, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t length = fd < 0 ? 0 : read(fd, zone->file, sizeof(zone->file));
    zone->is_utc = fd < 0 && errno == ENOENT;
    zone->length = length > 0 && (size_t)length < sizeof(zone->file) ? (size_t)length : 0;
    if (fd >= 0)
        close(fd);
}

static uint64_t big_endian(const unsigned char *at, size_t size)
{
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | at[i];
    return number;
}

static const unsigned char *take(struct rest *rest, uint64_t size)
{
    const unsigned char *at = rest->at;
    if (size > rest->length)
        return NULL;
    rest->at += size;
    rest->length -= size;
    return at;
}

/* time_size: 4 or 8. */
static bool read_block(struct rest *rest, size_t time_size, struct block *block)
{
    const unsigned char *header = take(rest, HEADER_SIZE);
    if (!header || memcmp(header, "TZif", 4) != 0 || header[4] < '2')
        return false;
    uint64_t *const counts[] = {&block->is_utc_count, &block->is_standard_count, &block->leap_count,
                                &block->time_count,   &block->type_count,        &block->name_size};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        *counts[i] = big_endian(header + 20 + 4 * i, 4);
    block->times = take(rest, block->time_count * time_size);
    block->indices = take(rest, block->time_count);
    block->types = take(rest, block->type_count * TYPE_SIZE);
    return block->times && block->indices && block->types && block->type_count > 0 && take(rest, block->name_size) &&
           take(rest, block->leap_count * (time_size + 4)) && take(rest, block->is_standard_count) &&
           take(rest, block->is_utc_count);
}

/* A rule with a comma changes the clock every year. */
static bool is_open_ended(const struct rest *rule)
{
    return memchr(rule->at, ',', rule->length) != NULL;
}

static bool find_offset(const struct local_zone *zone, int64_t time_s, int64_t *offset_s)
{
    struct rest rest = {.at = zone->file, .length = zone->length};
    struct block block;
    uint64_t past = 0;
    if (!read_block(&rest, 4, &block) || !read_block(&rest, 8, &block))
        return false;
    while (past < block.time_count && (int64_t)big_endian(block.times + 8 * past, 8) <= time_s)
        past++;
    if (past == block.time_count && is_open_ended(&rest))
        return false;
    uint64_t type = past ? block.indices[past - 1] : 0;
    if (type >= block.type_count)
        return false;
    *offset_s = (int32_t)(uint32_t)big_endian(block.types + TYPE_SIZE * type, 4);
    return true;
}

bool local_zone_time(const struct local_zone *zone, int64_t time_s, struct calendar_time *out)
{
    int64_t offset_s = 0, local_s;
    if (!zone->is_utc && !find_offset(zone, time_s, &offset_s))
        return false;
    if (__builtin_add_overflow(time_s, offset_s, &local_s))
        return false;
    calendar_from_seconds(local_s, out);
    return true;
}
