# SPDX-License-Identifier: MIT
"""One budget for every process on the machine, kept whatever happens to them.

The server enforces the published quota in exact sliding windows, and its own record of arrivals is
what is judged.  The driver is a shell loop a worker: what is measured should be curl's and Curtsy's
work, not the test's.
"""

import os
import random
import signal
import threading

import pytest

from harness import keeps_to
from upstream import Answer, max_in_window

WORKERS = 16
# Runs curl until the file is there; a line for each that failed.
LOOP = 'while [ ! -e "$1" ]; do curl -sS -o /dev/null "$2" || echo "$?"; done'


class Workers:
    """Sixteen shells that run one curl after the other."""

    def __init__(self, curtsy, url, count=WORKERS):
        self._stop = curtsy.folder / "stop"
        self.processes = [curtsy.start(["sh", "-c", LOOP, "sh", str(self._stop), url]) for _ in range(count)]

    def curls(self):
        """The curls that run now, by pid."""
        found = []
        for process in self.processes:
            try:
                with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
                    found += [int(pid) for pid in file.read().split()]
            except FileNotFoundError:
                pass
        return found

    def finish(self):
        """Lets the last curls end; the exit codes of those that failed."""
        self._stop.touch()
        return [int(code) for process in self.processes for code in process.wait().stdout.split()]


def run_for(seconds):
    """The time that a test runs its load for is part of the test, not a wait for something."""
    threading.Event().wait(seconds)


def judge(up, rate, most=100, window=1.0):
    """No window too full; the share of the pace that was used."""
    times = up.times()
    span = (times[-1] - times[0]) / 1e9
    used = (len(times) - 1) / (rate * span)
    fullest = max_in_window(times, window)
    print(f"{len(times)} requests in {span:.1f} s, {used:.2%} of {rate}/s, at most {fullest} in {window} s")
    assert fullest <= most
    return used


def least_used(curtsy):
    """Sanitizers make curl's own start so slow that sixteen of them do not come to the pace."""
    return 0 if curtsy.sanitizer else 0.99


@pytest.mark.alone
def test_sixteen_processes_keep_one_quota(up, curtsy):
    quota = up.quota(100, 1.0, kind="sliding")
    curtsy.configure("[127.0.0.1]\nquota = 100/s\n")
    workers = Workers(curtsy, up.url("/data"))
    run_for(20)
    assert workers.finish() == []
    assert quota.refused == 0
    used = judge(up, 80)
    assert used >= least_used(curtsy), f"{used:.2%} of 80/s used"


@pytest.mark.alone
def test_sigkill_costs_a_slot_and_nothing_more(up, curtsy):
    quota = up.quota(100, 1.0, kind="sliding")
    curtsy.configure("[127.0.0.1]\nquota = 100/s\n")
    workers = Workers(curtsy, up.url("/data"))
    rng = random.Random(1)
    killed = 0
    for _ in range(100):
        run_for(0.15)
        victims = workers.curls()
        if victims:
            killed += kill(rng.choice(victims), signal.SIGKILL)
    failures = workers.finish()
    assert set(failures) <= {137} and killed > 50
    assert quota.refused == 0
    span = (up.times()[-1] - up.times()[0]) / 1e9
    used = judge(up, 80) + killed / (80 * span)
    assert used >= least_used(curtsy), f"{used:.2%} of 80/s used, with {killed} slots for the killed"


@pytest.mark.alone
def test_stopped_processes_do_not_go_as_a_heap(up, curtsy):
    """A stopped process that had been admitted, but had not sent yet, sends when it goes on: those,
    and no others, come on top."""
    quota = up.quota(100, 1.0, kind="sliding")
    curtsy.configure("[127.0.0.1]\nquota = 100/s\n")
    workers = Workers(curtsy, up.url("/data"))
    rng = random.Random(2)
    most_stopped = 0
    for _ in range(5):
        run_for(1)
        curls = workers.curls()
        stopped = [pid for pid in rng.sample(curls, min(8, len(curls))) if kill(pid, signal.SIGSTOP)]
        run_for(1.5)
        for pid in stopped:
            kill(pid, signal.SIGCONT)
        most_stopped = max(most_stopped, len(stopped))
    run_for(1)
    assert workers.finish() == []
    assert most_stopped > 0
    assert max_in_window(up.times(), 1.0) <= 100 + most_stopped
    assert quota.refused <= most_stopped * 5


def kill(pid, number):
    """A curl of the workers; whether it was still there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.alone
def test_several_windows_hold_at_once(up, curtsy):
    quotas = [up.quota(10, 1.0, kind="sliding"), up.quota(20, 5.0, kind="sliding")]
    curtsy.configure("[127.0.0.1]\nquota = 10/s, 20/5s\n")
    workers = Workers(curtsy, up.url("/data"), count=6)
    run_for(13)
    assert workers.finish() == []
    assert [quota.refused for quota in quotas] == [0, 0]
    assert max_in_window(up.times(), 1.0) <= 10
    # 16 in five seconds for thirteen of them, less what the last waiters had not come to.
    assert 30 <= len(up.times()) and max_in_window(up.times(), 5.0) <= 20


@pytest.mark.slow(75)
def test_a_second_and_a_minute_hold_at_once(up, curtsy):
    quotas = [up.quota(10, 1.0, kind="sliding"), up.quota(200, 60.0, kind="sliding")]
    curtsy.configure("[127.0.0.1]\nquota = 10/s, 200/min\n")
    workers = Workers(curtsy, up.url("/data"), count=6)
    run_for(68)
    assert workers.finish() == []
    assert [quota.refused for quota in quotas] == [0, 0]
    assert max_in_window(up.times(), 1.0) <= 10
    # 37 at once (a second's quota at a time) and 160 a minute: a minute that is as good as full.
    assert 180 <= max_in_window(up.times(), 60.0) <= 200


@pytest.mark.slow(65)
def test_a_hundred_at_once_under_a_hundred_a_minute(up, curtsy):
    """By the defaults all of them succeed: the last one's wait is below max_wait."""
    quota = up.quota(100, 60.0, kind="sliding")
    curtsy.configure("[127.0.0.1]\nquota = 100/min\n")
    processes = [curtsy.start(["curl", "-sS", up.url("/data")]) for _ in range(100)]
    assert {process.wait(300).all for process in processes} == {(0, b"ok\n", b"")}
    assert quota.refused == 0 and len(up.times()) == 100
    assert max_in_window(up.times(), 60.0) <= 100


@pytest.mark.slow(4)
def test_one_program_with_many_transfers_keeps_it_too(up, curtsy):
    quota = up.quota(10, 1.0, kind="sliding")
    urls = [up.url(f"/{number}") for number in range(25)]
    result = curtsy.curl(*urls, config="[127.0.0.1]\nquota = 10/s\n")
    assert result.all == (0, b"ok\n" * 25, b"")
    assert quota.refused == 0
    assert [arrival.path for arrival in up.arrivals()] == [f"/{number}" for number in range(25)]


@pytest.mark.slow(4)
def test_the_threads_of_a_program_keep_it_too(up, curtsy):
    quota = up.quota(20, 1.0, kind="sliding")
    result = curtsy.run([curtsy.victim("threads"), up.url("/data"), "8", "8"], config="[127.0.0.1]\nquota = 20/s\n")
    assert result.all == (0, b"good 64 bad 0\n", b"")
    assert quota.refused == 0


@pytest.mark.slow(4)
def test_rate_and_burst(up, curtsy):
    """rate = 4/s with a burst of 3: three at once, then one every quarter of a second."""
    urls = [up.url(f"/{number}") for number in range(12)]
    up.on("/*", 200)
    curtsy.curl(*urls, config="[127.0.0.1]\nrate = 4/s\nburst = 3\n")
    assert len(up.times()) == 12
    keeps_to(up.times(), 3, 4)


@pytest.mark.slow(3)
def test_hosts_together_share_one_bucket_and_apart_have_their_own(upstream, curtsy):
    """Two ports of one host are two buckets, unless a section's `hosts` puts them together."""
    servers = [upstream(), upstream()]
    for server in servers:
        server.on("/*", 200)
    urls = [server.url(f"/{number}") for number in range(4) for server in servers]

    curtsy.curl(*urls, config="[127.0.0.1]\nrate = 4/s\nburst = 1\n")
    for server in servers:
        assert len(server.times()) == 4
        keeps_to(server.times(), 1, 4)

    config = f"[{servers[0].authority}]\nhosts = {servers[1].authority}\nrate = 4/s\nburst = 1\n"
    curtsy.curl(*urls, config=config)
    together = servers[0].times()[4:] + servers[1].times()[4:]
    assert len(together) == 8
    keeps_to(together, 1, 4)


@pytest.mark.slow(3)
def test_a_path_draws_on_its_own_bucket_and_its_hosts(up, curtsy):
    up.on("/*", 200)
    config = f"[{up.authority}]\nrate = 10/s\nburst = 1\n[{up.authority}/search]\nrate = 2/s\nburst = 1\n"
    urls = [up.url(f"/{kind}/{number}") for number in range(4) for kind in ("search", "other")]
    curtsy.curl(*urls, config=config)
    searches = [arrival.time_ns for arrival in up.arrivals() if arrival.path.startswith("/search")]
    assert (len(searches), len(up.times())) == (4, 8)
    keeps_to(searches, 1, 2)
    keeps_to(up.times(), 1, 10)


@pytest.mark.slow(3)
def test_programs_and_methods_share_the_hosts_budget(up, curtsy):
    """Two sections for one host do not double its quota."""
    up.on("/*", 200)
    config = "[127.0.0.1]\nrate = 5/s\nburst = 1\n" + "".join(
        f'[127.0.0.1 "{word}"]\n{matcher}\nmax_attempts = 2\n'
        for word, matcher in (("writes", "methods = POST, PUT"), ("tool", "programs = curl"))
    )
    curtsy.configure(config)
    processes = [curtsy.start(["curl", "-sS", *words, up.url("/")]) for words in ([], ["-d", "x"]) for _ in range(5)]
    for process in processes:
        assert process.wait().rc == 0
    assert len(up.times()) == 10
    keeps_to(up.times(), 1, 5)


@pytest.mark.slow(2)
def test_redirects_are_charged_to_the_host_they_went_to(upstream, curtsy):
    """They are sent without waiting, and the next request to that host pays."""
    first, second = upstream(), upstream()
    first.on("/a", Answer(302, [("Location", second.url("/b"))]))
    second.on("/b", 200)
    config = f"[{second.authority}]\nrate = 1/s\nburst = 1\n"
    assert curtsy.curl("-L", first.url("/a"), config=config).rc == 0
    assert curtsy.curl(second.url("/b"), config=config).rc == 0
    not_before = second.times()[0] + 900_000_000
    assert second.times()[1] >= not_before
