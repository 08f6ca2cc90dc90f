# SPDX-License-Identifier: MIT
"""Every retry is bounded: by attempts, by time, and by what the program itself allows."""

import re

import pytest

from harness import told
from upstream import Answer

BODY = b"0123456789" * 60


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_max_attempts(up, curtsy, attempts):
    up.on("/data", Answer(429, body=b"no\n"))
    result = curtsy.curl(up.url("/data"), config=f"[default]\nmax_attempts = {attempts}\nbase_delay = 20ms\n")
    assert result.output == (0, b"no\n")
    assert len(up.arrivals()) == attempts


@pytest.mark.slow(3)
def test_total_budget_bounds_when_attempts_start(up, curtsy):
    """One second each: the starts at 0, 1 and 2 fit into 2.5 s, a further one would not."""
    up.on("/data", told(1, body=b"no\n"))
    result = curtsy.curl(up.url("/data"), set="max_attempts=50\ntotal_budget=2500ms")
    assert result.output == (0, b"no\n")
    assert 2 <= len(up.arrivals()) <= 3


def test_a_wait_that_cannot_fit_is_not_begun(up, curtsy):
    up.on("/data", told(30, body=b"no\n"))
    result = curtsy.curl(up.url("/data"), set="total_budget=10s")
    assert result.output == (0, b"no\n")
    assert len(up.arrivals()) == 1 and result.elapsed < 10


@pytest.mark.slow(3)
def test_curls_own_time_limit_bounds_all_attempts_together(up, curtsy):
    up.on("/data", told(1, body=b"no\n"))
    result = curtsy.curl("-m", "3", up.url("/data"), set="max_attempts=50")
    assert result.output == (0, b"no\n")
    assert 2 <= len(up.arrivals()) <= 3


@pytest.mark.slow(2)
def test_a_server_that_never_answers_ends_with_curls_own_time_limit(up, curtsy):
    up.on("/data", Answer(silent=True))
    result = curtsy.curl("-m", "1", up.url("/data"), config="[127.0.0.1]\nbase_delay = 20ms\n")
    assert result.rc == 28 and b"Curtsy" not in result.stderr
    assert len(up.arrivals()) == 1


@pytest.mark.slow(3)
def test_silence_after_a_refusal_ends_with_curls_own_time_limit(up, curtsy):
    """The limit is for the whole, not anew for each attempt."""
    up.on("/data", told(1), Answer(silent=True))
    result = curtsy.curl("-m", "3", up.url("/data"))
    assert result.rc == 28
    assert len(up.arrivals()) == 2
    # libcurl itself would tell of the second attempt alone.
    assert 2900 < int(re.search(r"after (\d+) milliseconds", result.errors)[1]) < 3900


@pytest.mark.slow(4)
@pytest.mark.parametrize("refusals", [0, 1])
def test_total_budget_ends_nothing_under_way(up, curtsy, refusals):
    slow = Answer(200, body=BODY, pieces=6, piece_delay=0.5)
    up.on("/data", *[told(1)] * refusals, slow)
    result = curtsy.curl(up.url("/data"), set="total_budget=1500ms")
    assert result.all == (0, BODY, b"")
    assert len(up.arrivals()) == 1 + refusals


@pytest.mark.slow(3)
def test_speed_limits_are_not_mistaken_for_waiting(up, curtsy):
    """A wait between attempts is not a slow transfer."""
    up.on("/data", told(2), Answer(200, body=b"four"))
    result = curtsy.curl("-Y", "1000", "-y", "1", up.url("/data"))
    assert result.all == (0, b"four", b"")


@pytest.mark.slow(2)
def test_retry_after_attempts(up, curtsy):
    up.on("/data", told(1, body=b"no\n"))
    result = curtsy.curl(up.url("/data"), set="retry_after_attempts=1")
    assert result.output == (0, b"no\n")
    assert len(up.arrivals()) == 2


def test_the_retry_budget_stops_a_storm(up, curtsy):
    """Twenty programs, each of which would make five attempts: with a reserve of three and a fifth
    of the requests, at most 20 + 3 + 0.2 x 20 requests go out, where a hundred would."""
    up.on("/data", Answer(503, body=b"no\n"))
    config = "[default]\nbase_delay = 5ms\nretry_reserve = 3\nretry_budget = 20%\n"
    for _ in range(20):
        assert curtsy.curl(up.url("/data"), config=config).output == (0, b"no\n")
    # The reserve refills within a minute; a slow run may see part of it again.
    assert 20 < len(up.arrivals()) <= 20 + 3 + 4 + 3


def test_a_first_attempt_needs_room_too(up, curtsy):
    """One that would be sent just before the program's own time limit is not sent at all."""
    up.on("/told", told(2))
    up.on("/data", Answer(200, body=b"four"))
    curtsy.curl("-m", "1", up.url("/told"))
    result = curtsy.curl("-m", "2", up.url("/data"))
    assert result.rc == 28 and "127.0.0.1" in result.errors
    assert up.arrivals("/data") == []


def test_max_wait_fails_or_sends(up, curtsy):
    up.on("/told", told(600))
    up.on("/data", Answer(200, body=b"four"))
    curtsy.curl(up.url("/told"))
    failing = curtsy.curl(up.url("/data"), set="max_wait=1s")
    assert (failing.rc, failing.stdout) == (28, b"") and "curtsy" in failing.errors.lower()
    sending = curtsy.curl(up.url("/data"), set="max_wait=0s\non_max_wait=send")
    assert sending.all == (0, b"four", b"")


@pytest.mark.slow(4)
def test_one_forged_word_does_not_stop_a_machine_for_ever(up, curtsy):
    up.on("/told", told(315_360_000))
    up.on("/data", Answer(200, body=b"four"))
    config = "[default]\nmax_block = 3s\n"
    assert curtsy.curl(up.url("/told"), config=config).stdout == b"slow down\n"
    assert curtsy.curl(up.url("/data"), config=config).all == (0, b"four", b"")
    assert up.arrivals("/data")[0].time_ns - up.arrivals("/told")[0].answered_ns >= 2_999_000_000


@pytest.mark.slow(2)
@pytest.mark.parametrize("mode, attempts", [("enforce", 2), ("observe", 1), ("off", 1)])
def test_modes(up, curtsy, mode, attempts):
    up.on("/data", told(1), Answer(200, body=b"four"))
    result = curtsy.curl(up.url("/data"), env={"CURTSY_MODE": mode})
    assert result.all == (0, b"four" if attempts == 2 else b"slow down\n", b"")
    assert len(up.arrivals()) == attempts


@pytest.mark.parametrize("places", [("off", "enforce"), ("enforce", "off"), ("observe", "enforce")])
def test_of_several_modes_the_least_intrusive_wins(up, curtsy, places):
    up.on("/data", told(1), Answer(200, body=b"four"))
    in_file, in_environment = places
    config, env = f"[default]\nmode = {in_file}\n", {"CURTSY_MODE": in_environment}
    assert curtsy.curl(up.url("/data"), config=config, env=env).stdout == b"slow down\n"
    assert len(up.arrivals()) == 1


def test_observing_never_waits_for_a_quota(up, curtsy):
    up.on("/data", b"four")
    config = "[default]\nmode = observe\nquota = 1/h\nmax_wait = 100s\n"
    for _ in range(3):
        assert curtsy.curl(up.url("/data"), config=config).all == (0, b"four", b"")
