/* SPDX-License-Identifier: MIT */
/*
 * A vandal: writes words over a whole segment until it is killed.
 *
 *     vandal FILE random|plausible|swapping
 *
 * random: anything, anywhere.  plausible: what such words hold in honest segments (times near now, small
 * numbers, tokens, flags, process ids, what stands elsewhere in the segment), in the header and the
 * buckets that are in use.  swapping: the same few words are moved all the time, so that nobody's
 * compare-and-swap comes through.
 *
 * What would have the whole segment ignored (another magic number, a mode that is off, another key of
 * the hash) is put back all the time: the rest is to be believed.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/segment_layout.h"

static _Atomic uint64_t *words;
static uint64_t count; /* of words */
static struct bucket *buckets;
static uint64_t bucket_count;
static uint64_t random_state;

static uint64_t draw(uint64_t limit)
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % limit;
}

static void put(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

/* Nanoseconds of the clock that segments go by, up to an hour before or after now, or as a process has
 * them whose clock is a century ahead. */
static uint64_t time_near_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    int64_t hour_ns = 3600 * NS_PER_SECOND;
    int64_t shift_ns = (int64_t)draw((uint64_t)hour_ns) >> draw(40);
    if (draw(4) == 0)
        shift_ns += 876600 * hour_ns;
    return (uint64_t)(now.tv_sec * NS_PER_SECOND + now.tv_nsec + (draw(2) ? shift_ns : -shift_ns));
}

static uint64_t plausible_value(void)
{
    switch (draw(8)) {
    case 0:
        return draw(16);
    case 1:
        return draw(2000) * TOKEN_ONE;
    case 2:
        return (TOKEN_ONE << 32) + draw(2000) * TOKEN_ONE;
    case 3:
        return time_near_now();
    case 4:
        return UINT64_C(1) << draw(64);
    case 5:
        return (uint64_t)draw(65536) << 48 | (uint64_t)draw(65536) << 32 | (uint64_t)getpid();
    case 6:
        return draw(1000) << 8 | draw(BUCKET_RECORDS);
    default:
        return atomic_load(&words[draw(count)]);
    }
}

/* A bucket that is in use, for choice. */
static struct bucket *some_bucket(void)
{
    struct bucket *bucket = &buckets[draw(bucket_count)];
    for (uint64_t i = 0; i < bucket_count && !atomic_load(&bucket->key); i++)
        bucket = &buckets[(uint64_t)(bucket - buckets + 1) % bucket_count];
    return bucket;
}

static _Atomic uint64_t *believed_word(void)
{
    if (draw(16) == 0)
        return &words[draw(sizeof(struct segment_header) / 8)];
    return (_Atomic uint64_t *)some_bucket() + draw(sizeof(struct bucket) / 8);
}

static void write_random(void)
{
    uint64_t at = draw(count), length = draw(8) ? 1 : draw(700);
    for (uint64_t i = 0; i < length && at + i < count; i++)
        put(&words[at + i], draw(UINT64_MAX));
}

static void write_plausible(void)
{
    _Atomic uint64_t *word = believed_word();
    put(word, plausible_value());
}

static void move_words(void)
{
    struct bucket *bucket = some_bucket();
    _Atomic uint64_t *const hot[] = {&bucket->tat[0], &bucket->published, &bucket->retry, &bucket->record[1].owner};
    for (int i = 0; i < 2000; i++)
        atomic_fetch_add(hot[draw(sizeof hot / sizeof *hot)], 1);
}

static void put_back(const struct segment_header *kept)
{
    struct segment_header *header = (struct segment_header *)words;
    put(&header->hash_key[0], kept->hash_key[0]);
    put(&header->hash_key[1], kept->hash_key[1]);
    put(&header->mode, 0);
    if (draw(2) == 0)
        return; /* programs that start now meet foreign bytes */
    put(&header->magic, kept->magic);
    put(&header->layout, kept->layout);
    put(&header->size, kept->size);
    put(&header->boot, kept->boot);
}

int main(int argc, char **argv)
{
    struct stat status;
    int fd = argc == 3 ? open(argv[1], O_RDWR) : -1;
    if (fd < 0 || fstat(fd, &status) != 0 || status.st_size < (off_t)SEGMENT_SIZE_MIN)
        return 2;
    words = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (words == MAP_FAILED)
        return 2;
    count = (uint64_t)status.st_size / 8;
    buckets = (struct bucket *)((char *)words + sizeof(struct segment_header));
    bucket_count = (uint64_t)segment_regions((uint64_t)status.st_size).set_count * SEGMENT_WAYS;
    random_state = (uint64_t)getpid();
    struct segment_header kept;
    memcpy((void *)&kept, (void *)words, sizeof kept);
    void (*write_some)(void) = strcmp(argv[2], "random") == 0      ? write_random
                               : strcmp(argv[2], "plausible") == 0 ? write_plausible
                                                                   : move_words;
    for (;;) {
        for (int i = 0; i < 200; i++)
            write_some();
        put_back(&kept);
        if (draw(20) == 0)
            poll(NULL, 0, 1); /* others want to run as well */
    }
}
