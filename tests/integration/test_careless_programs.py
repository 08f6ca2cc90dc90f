# SPDX-License-Identifier: MIT
"""Uploads whose body, or what is known of it, is not what it seems (tests/victims/careless.c): sent again as the
first time, byte for byte, or not at all; and never read where libcurl would not read."""

import pytest

from upstream import Answer

# How often it is sent when the first answer is a 503.
KINDS = {
    "empty-put": 2,
    "empty-post": 2,
    "empty-reader": 2,
    "trailers-of-file": 1,
    "trailers-of-form": 1,
    "part-of-file": 2,
    "pushed-back": 2,
    "memory-as-file": 2,
    "file-replaced": 2,
    "key-in-place": 1,
    "form-rebuilt": 1,
    "made-up-file": 2,
    "made-up-part": 1,
}
# Where less is kept than was sent, so that it would have to come a second time from where it came from.
KEEPS_LITTLE = {
    "part-of-file": 1,
    "pushed-back": 1,
    "memory-as-file": 1,
    "file-replaced": 2,
    "made-up-file": 1,
}


def check(curtsy, up, kind, attempts, config):
    up.on("/data", Answer(503, body=b"no"), b"fine")
    result = curtsy.run([curtsy.victim("careless"), kind, up.url("/data")], config=config)
    assert (result.rc, result.errors) == (0, "")
    assert result.text == ("fine0 200\n" if attempts == 2 else "no0 503\n")
    arrivals = up.arrivals("/data")
    assert len(arrivals) == attempts
    assert len({(arrival.body_sha256, arrival.header("Idempotency-Key")) for arrival in arrivals}) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_sent_again_as_it_was_or_not_at_all(curtsy, up, kind):
    check(curtsy, up, kind, KINDS[kind], "[127.0.0.1]\nbase_delay = 1ms\n")


@pytest.mark.parametrize("kind", KEEPS_LITTLE)
def test_what_has_to_come_from_its_source_again(curtsy, up, kind):
    """Which is asked for it, and compared, before the refusal is given up."""
    check(curtsy, up, kind, KEEPS_LITTLE[kind], "[127.0.0.1]\nbase_delay = 1ms\nreplay_buffer = 4B\n")


@pytest.mark.parametrize("kind", ["empty-put", "empty-post"])
@pytest.mark.parametrize("mode", ["observe", "off"])
def test_nothing_is_touched_that_is_not_sent(curtsy, up, kind, mode):
    up.on("/data", b"fine")
    result = curtsy.run([curtsy.victim("careless"), kind, up.url("/data")], env={"CURTSY_MODE": mode})
    assert (result.rc, result.errors) == (0, "")
    assert [arrival.body_length for arrival in up.arrivals("/data")] == [0]
