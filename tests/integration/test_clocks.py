# SPDX-License-Identifier: MIT
"""Clocks that are wrong, that are set, and a machine that sleeps meanwhile."""

import os
import time

import pytest

from harness import compile_library, keeps_to, not_early, told
from upstream import Answer, http_date

# A clock that jumps as soon as a file is there, as the machine's own: whoever asks the kernel is told the same.
CLOCKS = """
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
typedef long system_call(long number, ...);
static system_call *kernel(void)
{
    static system_call *found;
    return found = found ? found : (system_call *)dlsym(RTLD_NEXT, "syscall");
}
static int shift(int clock)
{
    const char *file = getenv("JUMP_FILE");
    if (!file || clock != atoi(getenv("JUMP_CLOCK")) || kernel()(SYS_access, file, F_OK))
        return 0;
    return atoi(getenv("JUMP_S"));
}
int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = kernel()(SYS_clock_gettime, clock, time);
    time->tv_sec += shift(clock);
    return result;
}
long syscall(long number, ...)
{
    long given[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_clock_gettime)
        return clock_gettime(given[0], (struct timespec *)given[1]);
    return kernel()(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *out, void *unused)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""
DECADE = 315_360_000


class Clocks:
    def __init__(self, curtsy, library, clock, seconds):
        self.curtsy, self.file = curtsy, curtsy.folder / "jumped"
        preload = f"{curtsy.env()['LD_PRELOAD']}:{library}"
        self.env = {"LD_PRELOAD": preload, "JUMP_FILE": os.fspath(self.file)}
        self.env |= {"JUMP_CLOCK": str(clock), "JUMP_S": str(seconds)}

    def start(self, argv, **options):
        return self.curtsy.start(argv, env=self.env, **options)

    def jump(self):
        self.file.touch()


@pytest.fixture
def clocks(curtsy, tmp_path):
    library = compile_library(CLOCKS, tmp_path / "clocks.so")
    return lambda clock, seconds: Clocks(curtsy, library, clock, seconds)


no_clocks = pytest.mark.no_sanitizer("its runtime reads clocks before they can be jumped")


def dated(seconds):
    """A refusal until a date that is so far from the server's own."""
    return lambda request: Answer(429, [("Retry-After", http_date(seconds))], b"slow down\n", date=0)


@no_clocks
@pytest.mark.slow(3)
@pytest.mark.parametrize("seconds", [DECADE, -DECADE], ids=["ahead", "behind"])
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_the_wall_clock_is_wrong(up, clocks, seconds, when):
    """A date is read against the response's own, and waits are counted by another clock."""
    up.on("/data", told(1), dated(2), Answer(200, body=b"four"))
    machine = clocks(time.CLOCK_REALTIME, seconds)
    if when == "before":
        machine.jump()
    process = machine.start(["curl", "-sS", up.url("/data")])
    up.wait_for(1)
    machine.jump()
    assert process.wait().all == (0, b"four", b"")
    not_early(up.waits(), 1.0, 1.0)


@no_clocks
@pytest.mark.slow(2)
@pytest.mark.parametrize("seconds", [5, 3600, 30 * 24 * 3600])
def test_the_machine_sleeps_while_a_retry_is_waited_for(up, curtsy, clocks, seconds):
    """It goes, or if the time for all attempts has passed, the program gets what the server said."""
    up.on("/data", told(3), Answer(200, body=b"four"))
    machine = clocks(time.CLOCK_BOOTTIME, seconds)
    process = machine.start(["curl", "-sS", up.url("/data")])
    up.wait_for(1)
    curtsy.wait_for_waiters(1)
    machine.jump()
    assert process.wait().all == (0, b"four" if seconds < 90 else b"slow down\n", b"")


@no_clocks
@pytest.mark.slow(2)
@pytest.mark.parametrize(
    "seconds",
    [30, 3600],
)
@pytest.mark.parametrize("waiters", [1, 6])
def test_the_machine_sleeps_while_a_quota_is_waited_for(up, curtsy, clocks, waiters, seconds):
    """Who waited is sent, and not all at once: what came due meanwhile is forfeited."""
    up.on("/data", Answer(200, body=b"four"))
    curtsy.configure("[default]\nrate = 240/min\n")
    machine = clocks(time.CLOCK_BOOTTIME, seconds)
    assert machine.start(["curl", "-sS", up.url("/data")]).wait().rc == 0
    assert curtsy.tool("hold", up.authority, "20s").rc == 0
    processes = [machine.start(["curl", "-sS", up.url("/data")]) for _ in range(waiters)]
    curtsy.wait_for_waiters(waiters)
    machine.jump()
    for process in processes:
        assert process.wait().all == (0, b"four", b"")
    keeps_to([arrival.time_ns for arrival in up.arrivals()[1:]], 1, 4, jitter=0.1)
