# SPDX-License-Identifier: MIT
"""What is promised when somebody removes, replaces or cuts short a segment under processes that are busy.

All of them go on.  A new segment is a new budget, and while some have come to it and others not yet, each
of the two is kept by itself: a stretch of time sees at most as many budgets as segments were in use in
it.  Whoever waits looks, and goes over to what is there.  Once all have, there is one budget again.

Where what is there cannot be used they stay with what they have, which they still share.  The caveat: who
touches a part that was cut off before he looks is ended by SIGBUS.
"""

import os
import pathlib
import signal
import time

import pytest

from harness import ASKER, HANG, TEXT, compile_c, keeps_to, serve, until
from upstream import Answer, max_in_window

SOURCES = pathlib.Path(__file__).resolve().parents[2]
POLL = 7  # a system call's number
WORKERS = 16
RATE, WINDOW = 40, 1.0  # requests a second, of all together
CONFIG = f"[default]\nrate = {RATE}/s\nmax_wait = 1h\n[curtsy]\nsegment_size = 256KiB\n"
JITTER = 1.0  # seconds by which arrivals may vary where sixteen programs share a small machine
NEWCOMERS = 4


class Crowd:
    """Sixteen programs that make the same request again and again, under one quota."""

    def __init__(self, curtsy, up):
        up.on("/data", Answer(200, body=b"four"))
        self.curtsy, self.up, self.segment = curtsy, up, curtsy.segment
        curtsy.configure(CONFIG)
        self.program = compile_c(ASKER, curtsy.folder / "asker", "-lcurl")
        self.workers = []
        self.join(WORKERS)

    def join(self, count):
        self.workers += [self.curtsy.start([self.program, self.up.url("/data")], stdin=b"") for _ in range(count)]
        self.await_arrivals(count)

    def await_arrivals(self, count):
        """So many more."""
        self.up.wait_for(len(self.up.arrivals()) + count, timeout=HANG)

    @property
    def alive(self):
        return [worker for worker in self.workers if worker.runs]

    def uses(self, worker, inode):
        with open(f"/proc/{worker.pid}/maps") as maps:
            return any(line.split()[4] == str(inode) for line in maps)

    def all_use_it(self):
        """What is at the segment's path now: all that still run."""
        if not self.segment.exists():
            return False
        inode = self.segment.stat().st_ino
        return all(self.uses(worker, inode) for worker in self.alive) and self.segment.stat().st_ino == inode

    def settles(self):
        """Once they have gone over to one segment there is one budget, which newcomers find too: from then
        on no stretch of time sees more."""
        self.join(NEWCOMERS)
        until(self.all_use_it)
        self.await_arrivals(len(self.alive))  # what was under way
        begin = time.monotonic_ns()
        self.await_arrivals(3 * RATE)
        times = [arrival.time_ns for arrival in self.up.arrivals() if arrival.time_ns >= begin]
        assert len(times) >= 3 * RATE
        keeps_to(times, 1, RATE, JITTER)

    def finish(self, may_die_of=()):
        """They end by themselves, and have had right answers only.  How many have."""
        results = [worker.wait() for worker in self.workers]
        survivors = [result for result in results if result.rc not in [-number for number in may_die_of]]
        for result in survivors:
            right, wrong = (int(word) for word in result.text.split()[1::2])
            assert (result.rc, wrong) == (0, 0) and right > 0, result.errors
            assert result.all_but_ours[2] == b"" and len(result.ours) <= 1
        return len(survivors)


@pytest.fixture
def crowd(curtsy, up):
    return Crowd(curtsy, up)


def budgets_at_most(up, segments):
    """Over the whole of it: each window that is of the rate's length."""
    times = [arrival.time_ns for arrival in up.arrivals()]
    most = max_in_window(times, WINDOW)
    assert most <= segments * (1 + RATE * (WINDOW + JITTER)), f"{most} requests within {WINDOW} s"


ROUNDS = 3
MAGIC = bytes.fromhex("000a437572747379")  # "Curtsy", as a segment begins


@pytest.mark.slow(10)
def test_removed_again_and_again(crowd):
    for _ in range(ROUNDS):
        inode = crowd.segment.stat().st_ino
        crowd.segment.unlink()
        until(lambda: crowd.segment.exists() and crowd.segment.stat().st_ino != inode)
    crowd.settles()
    assert crowd.finish() == WORKERS + NEWCOMERS
    budgets_at_most(crowd.up, 1 + ROUNDS)


@pytest.mark.slow(10)
def test_replaced_by_another_valid_one(curtsy, crowd):
    """As an older copy that is put back: here those of a machine where nothing was asked yet."""
    for number in range(ROUNDS):
        other = curtsy.folder / f"other{number}"
        made = curtsy.run(["curl", "-s", "http://127.0.0.1:1/"], env={"CURTSY_SEGMENT": os.fspath(other)})
        assert made.rc == 7 and other.exists()
        os.rename(other, crowd.segment)
        crowd.await_arrivals(5)
    crowd.settles()
    assert crowd.finish() == WORKERS + NEWCOMERS
    budgets_at_most(crowd.up, 1 + ROUNDS)


@pytest.mark.slow(6)
@pytest.mark.parametrize("what", ["random bytes", "a folder", "a link to nowhere", "another version"])
def test_replaced_by_something_that_is_none(curtsy, crowd, what):
    """They stay together with what they have."""
    begin = time.monotonic_ns()
    for number in range(ROUNDS):
        other = curtsy.folder / f"other{number}"
        if what == "random bytes":
            other.write_bytes(os.urandom(256 << 10))
        elif what == "another version":
            other.write_bytes(MAGIC.ljust(256 << 10, b"\1"))
        elif what == "a folder":
            other.mkdir()
        else:
            other.symlink_to("/nonexistent/file")
        crowd.segment.rmdir() if crowd.segment.is_dir() else crowd.segment.unlink()
        other.rename(crowd.segment)
        crowd.await_arrivals(RATE)
    times = [arrival.time_ns for arrival in crowd.up.arrivals() if arrival.time_ns >= begin]
    keeps_to(times, 1, RATE, JITTER)
    assert crowd.finish() == WORKERS
    crowd.segment.rmdir() if crowd.segment.is_dir() else crowd.segment.unlink()


@pytest.mark.slow(8)
@pytest.mark.parametrize("size", [0, 4096, 100_000])
def test_cut_short_again_and_again(crowd, size):
    """It is made whole by the first who looks.  What is in it then is as good as new."""
    full = crowd.segment.stat().st_size
    for _ in range(ROUNDS):
        os.truncate(crowd.segment, size)
        until(lambda: crowd.segment.stat().st_size == full or not crowd.alive)
        if not crowd.alive:
            break
    if crowd.alive:
        crowd.settles()
    assert crowd.finish(may_die_of=[signal.SIGBUS]) > 0
    budgets_at_most(crowd.up, 1 + ROUNDS)


# ---- one that waits, and garbage ----


def sleeps(process):
    """It is within poll at this moment."""
    return pathlib.Path(f"/proc/{process.pid}/syscall").read_text().startswith(f"{POLL} ")


@pytest.mark.slow(3)
@pytest.mark.parametrize("size", [0, 4096, 100_000])
@pytest.mark.parametrize("phase", range(4))
def test_a_waiter_survives_that_its_segment_is_cut_short(up, curtsy, size, phase):
    """Whenever it is: it looks before it touches.  (Who is within a request may touch what is missing,
    which is SIGBUS: see the caveats.)"""
    serve(up)
    assert curtsy.curl(up.url("/text")).rc == 0
    full = curtsy.segment.stat().st_size
    assert curtsy.tool("hold", up.authority, "60s").rc == 0
    process = curtsy.start(["curl", "-sS", up.url("/text")])
    curtsy.wait_for_waiters(1)
    time.sleep(0.2 * phase)  # two of its slices, in steps
    until(lambda: sleeps(process))
    os.truncate(curtsy.segment, size)
    assert process.wait().all == (0, TEXT, b"")  # what had stopped it is gone as well
    assert curtsy.segment.stat().st_size == full


GARBAGE = """
[default]
quota = 2000/s
max_wait = 100ms
on_max_wait = send
max_attempts = 1
[curtsy]
segment_size = 256KiB
"""


@pytest.fixture(scope="session")
def vandal(tmp_path_factory):
    path = tmp_path_factory.mktemp("vandal") / "vandal"
    source = (SOURCES / "tests" / "integration" / "vandal.c").read_text()
    return compile_c(source, path, "-std=gnu11", "-D_GNU_SOURCE", f"-I{SOURCES}")


@pytest.mark.slow(4)
@pytest.mark.parametrize("how", ["random", "plausible", "swapping"])
def test_garbage_in_every_field(up, curtsy, vandal, how):
    """Eight programs at once, while somebody writes over all that they share: each ends as if nothing
    were.  Where a wait is read out of garbage, it is not longer than max_wait."""
    up.on("/text", TEXT)
    assert curtsy.curl(up.url("/text"), config=GARBAGE).output == (0, TEXT)
    writer = curtsy.start([vandal, curtsy.segment, how], how="bare")
    threads = [curtsy.start([curtsy.victim("threads"), up.url("/text"), "4", "40"]) for _ in range(3)]
    handles = [curtsy.start([curtsy.victim("get"), *[up.url("/text")] * 80]) for _ in range(2)]
    commands = [curtsy.start(["curl", "-sS", *[up.url("/text")] * 80]) for _ in range(3)]
    for number in range(10):  # and such as find it like that when they start
        late = curtsy.curl(up.url("/text"))
        assert late.all_but_ours == (0, TEXT, b"") and len(late.ours) <= 1
    assert writer.runs
    for process, expected in [
        *((process, b"good 160 bad 0\n") for process in threads),
        *((process, b"0 200 900 1\n" + b"0 200 900 0\n" * 79) for process in handles),
        *((process, TEXT * 80) for process in commands),
    ]:
        result = process.wait()
        assert result.all_but_ours == (0, expected, b"") and len(result.ours) <= 1, result.errors
    assert curtsy.tool("status").rc in (0, 1) and curtsy.tool("ps").rc in (0, 1) and curtsy.tool("events").rc in (0, 1)
    assert writer.runs
