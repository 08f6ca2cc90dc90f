/* SPDX-License-Identifier: MIT */
/*
 * Entropy: the kernel's, or, where there is none to be had, a mixture of what is different for every
 * process and every moment.
 *
 * The auxiliary vector's random bytes would be at hand, too, but the stack protector's canary is made
 * from them, and what is made here is sent to servers.
 */
#include "core/system/entropy.h"

#include "core/system/clock.h"
#include "core/system/process.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static uint64_t mix(uint64_t state, uint64_t input)
{
    struct random_source scrambler = {.seed = state ^ input};
    return random_next(&scrambler);
}

static uint64_t wall_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The draw alone tells apart all that share the source; boot and wall clock tell machines apart. */
static uint64_t word_without_kernel(struct random_source *fallback)
{
    uint64_t word = mix(0, random_next(fallback));
    word = mix(word, wall_ns());
    word = mix(word, (uint64_t)clock_now_ns());
    word = mix(word, clock_boot_name());
    return mix(word, process_self());
}

static void fill_without_kernel(uint8_t *bytes, size_t count, struct random_source *fallback)
{
    while (count > 0) {
        uint64_t word = word_without_kernel(fallback);
        size_t part = count < sizeof word ? count : sizeof word;
        memcpy(bytes, &word, part);
        bytes += part;
        count -= part;
    }
}

void entropy_fill(uint8_t *bytes, size_t count, struct random_source *fallback)
{
    int error = errno;
    /* Up to 256 bytes come whole or not at all (getrandom(2)); of more, what has come is kept. */
    ssize_t filled = getrandom(bytes, count, GRND_NONBLOCK);
    size_t done = filled > 0 ? (size_t)filled : 0;
    fill_without_kernel(bytes + done, count - done, fallback);
    errno = error;
}
