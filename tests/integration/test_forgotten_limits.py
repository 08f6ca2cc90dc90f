# SPDX-License-Identifier: MIT
"""What was used of a limit outlives those who ask for it: real processes, with sections that take turns.
How long a limit is remembered is tested in virtual time (tests/unit/test_bucket_askers.c); `reload` makes
everybody forget at once."""

from upstream import Answer

WRITES = '[127.0.0.1 "writes"]\nmethods = POST\nquota = {quota}\nmax_wait = 0s\n'
ANY = '[127.0.0.1]\nquota = {quota}\nmax_wait = 0s\n'


def post(curtsy, up):
    """Did it go?"""
    return curtsy.curl("-d", "x", up.url("/")).rc == 0


def posts(up):
    return sum(arrival.method == "POST" for arrival in up.arrivals())


def forget(curtsy, up):
    """Everybody is forgotten, and one comes first who asks for no limit or another one."""
    assert curtsy.tool("reload").rc == 0
    assert curtsy.curl(up.url("/")).rc == 0


def test_a_limit_in_turns_with_none_keeps_what_was_used(up, curtsy):
    up.on("/", Answer(200))
    curtsy.configure(WRITES.format(quota="3/h"))
    assert post(curtsy, up) and not post(curtsy, up)
    for _ in range(3):
        forget(curtsy, up)
        assert not post(curtsy, up)
    assert posts(up) == 1


def test_a_limit_in_turns_with_a_looser_one_keeps_what_was_used(up, curtsy):
    up.on("/", Answer(200))
    curtsy.configure(ANY.format(quota="30000/h") + WRITES.format(quota="30/h"))
    while post(curtsy, up):
        pass
    went = posts(up)
    assert 0 < went <= 30
    for _ in range(3):
        forget(curtsy, up)
        assert not post(curtsy, up)
    assert posts(up) == went


def test_a_changed_quota_is_in_force_at_once_and_refills_nothing(up, curtsy):
    up.on("/", Answer(200))
    curtsy.configure(WRITES.format(quota="30/h"))
    while post(curtsy, up):
        pass
    assert 0 < posts(up) <= 30
    curtsy.configure(WRITES.format(quota="36/h"))
    forget(curtsy, up)
    went = posts(up)
    while post(curtsy, up):
        pass
    assert posts(up) - went <= 2  # the new one lets one or two more go at once
    (limit,) = curtsy.status()["buckets"][0]["limits"]
    assert limit["quota"] == 36
