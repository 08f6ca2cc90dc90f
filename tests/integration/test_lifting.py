# SPDX-License-Identifier: MIT
"""How many processes go that were stopped by one server's word: none before its end, and each by a draw
of its own.  The draws themselves are tested in virtual time (tests/unit/test_lifting.c)."""

import json

from harness import not_early, told, until
from upstream import Answer

CURLS = 20


def blocked(curtsy, up, seconds, max_wait="10min"):
    """The server has said to everyone when to come back."""
    up.on("/first", told(seconds))
    up.on("/", Answer(200, body=b"four"))
    curtsy.configure(f"[127.0.0.1]\nmax_wait = {max_wait}\nmax_attempts = 1\n")
    assert curtsy.curl(up.url("/first")).rc == 0


def ends(curtsy):
    """How long each waiter has left, by one look at all of them."""
    processes = json.loads(curtsy.tool("ps", "--json").stdout)["processes"]
    return [waiter["left_s"] for process in processes for waiter in process["waiters"]]


def test_each_process_waits_for_a_time_of_its_own(up, curtsy):
    blocked(curtsy, up, 100)
    curls = [curtsy.start(["curl", "-sS", up.url("/")]) for _ in range(CURLS)]
    left = until(lambda: (found := ends(curtsy)) and len(found) == CURLS and found)
    assert max(left) - min(left) <= 1  # spread_max
    assert len({round(time, 3) for time in left}) > CURLS / 2
    assert up.times("/") == []
    assert curtsy.tool("release", up.authority).rc == 0
    assert [curl.wait().output for curl in curls] == [(0, b"four")] * CURLS


def test_no_process_goes_before_the_servers_word(up, curtsy):
    blocked(curtsy, up, 2)
    curls = [curtsy.start(["curl", "-sS", up.url("/")]) for _ in range(CURLS)]
    assert [curl.wait().output for curl in curls] == [(0, b"four")] * CURLS
    said_ns = up.arrivals("/first")[0].time_ns
    not_early([(time - said_ns) / 1e9 for time in up.times("/")], *[2] * CURLS)
