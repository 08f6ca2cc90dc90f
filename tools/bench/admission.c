/* SPDX-License-Identifier: MIT */
/*
 * What an admission costs, beside what it cannot do without.
 *
 *     admission bare|admit PROCESSES COUNT
 *
 * PROCESSES processes each take COUNT turns at one bucket in shared memory whose quota does not bind,
 * as the governor does for each request: take it if it is due, else look and book.  `bare` reads the clock and moves
 * one shared word by compare-and-swap instead: there is no sharing a budget with less.  Prints the nanoseconds of one
 * turn of one process.
 */
#include "core/places.h"
#include "core/segment.h"
#include "core/segment_layout.h"
#include "core/system/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct bucket_world world = {.self = 1};

struct shared {
    _Atomic uint64_t word;
    _Atomic unsigned ready;
    _Atomic int64_t ns; /* of all processes */
    char memory[SEGMENT_SIZE_MIN] __attribute__((aligned(SEGMENT_PAGE)));
};

static void turn_bare(struct shared *shared)
{
    uint64_t seen = atomic_load_explicit(&shared->word, memory_order_acquire);
    uint64_t now = (uint64_t)clock_now_ns();
    while (!atomic_compare_exchange_strong(&shared->word, &seen, seen + 1 + (now & 1)))
        continue;
}

/* Again only where another process has published the limits after our clock was read. */
static void turn_admit(struct places *places)
{
    int64_t now_ns;
    do {
        now_ns = clock_now_ns();
        places_ask(places, &world, now_ns);
    } while (!places_take_due(places, now_ns) && places_arrange(places, now_ns, now_ns) > now_ns);
    places_use(places, now_ns);
}

static int64_t measure(struct shared *shared, bool bare, long count)
{
    struct segment segment;
    const uint64_t seed[3] = {1, 2, 3};
    struct limits limits = {.count = 1,
                            .item = {{.rate = UINT64_MAX >> 8,
                                      .burst = TOKEN_ONE << 30,
                                      .window_ns = NS_PER_SECOND,
                                      .jitter_ns = NS_PER_SECOND / 10}}};
    if (segment_attach(&segment, shared->memory, sizeof shared->memory, 1, seed) != SEGMENT_OK)
        exit(1);
    struct places places = {.count = 0};
    places_add(&places, segment_bucket(&segment, "bench:443", clock_now_ns()), &limits);
    int64_t began_ns = clock_now_ns();
    for (long i = 0; i < count; i++)
        if (bare)
            turn_bare(shared);
        else
            turn_admit(&places);
    return clock_now_ns() - began_ns;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    bool bare = strcmp(argv[1], "bare") == 0;
    unsigned processes = (unsigned)strtoul(argv[2], NULL, 10);
    long count = strtol(argv[3], NULL, 10);
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (unsigned i = 0; i < processes; i++) {
        if (fork() != 0)
            continue;
        atomic_fetch_add(&shared->ready, 1);
        while (atomic_load(&shared->ready) < processes)
            continue;
        atomic_fetch_add(&shared->ns, measure(shared, bare, count));
        _exit(0);
    }
    int status;
    while (wait(&status) > 0)
        if (status != 0)
            return 1;
    printf("%.1f\n", (double)atomic_load(&shared->ns) / (double)processes / (double)count);
    return 0;
}
