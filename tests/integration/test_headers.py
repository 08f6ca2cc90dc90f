# SPDX-License-Identifier: MIT
"""The dialects in which servers say when to come back, end to end.  The parsers have tables of
their own among the unit tests; here is what a program and its server see of them."""

import time

import pytest

from harness import not_early
from upstream import Answer, http_date

FOUR = Answer(200, body=b"four")
QUICK = "[default]\nbase_delay = 20ms\n"


def refusal(fields, status=429):
    """fields: pairs, or a function of the server's time that makes them."""
    if not callable(fields):
        return Answer(status, fields, b"no\n")
    return lambda _request: Answer(status, fields(time.time()), b"no\n")


def reset(value, prefix="X-RateLimit-"):
    return lambda now: [
        (prefix + "Limit", "60"),
        (prefix + "Remaining", "0"),
        (prefix + "Reset", value(now) if callable(value) else value),
    ]


def _other_weekday(date):
    return ("Mon" if date[:3] != "Mon" else "Tue") + date[3:]


# Each means two seconds from now.  (Whole seconds of the wall clock: three, so that two are left of
# them whenever the second began.)
TWO_SECONDS = {
    "delta": [("Retry-After", "2")],
    "blanks around it": [("Retry-After", "  2\t")],
    "lower case": [("retry-after", "2")],
    "fraction": [("Retry-After", "1.7")],
    "two copies": [("Retry-After", "1"), ("Retry-After", "2")],
    "date without Date": lambda now: [("Retry-After", http_date(3, now=now))],
    "wrong weekday": lambda now: [("Date", http_date(now=now)), ("Retry-After", _other_weekday(http_date(2, now=now)))],
    "retry-after-ms": [("Retry-After-Ms", "2000")],
    "x-ms-retry-after-ms": [("x-ms-retry-after-ms", "2000")],
    "reset in seconds": reset("2"),
    "reset in epoch seconds": reset(lambda now: str(int(now) + 3)),
    "reset in epoch milliseconds": reset(lambda now: str(int(now * 1000) + 2000)),
    "reset as a date": reset(lambda now: http_date(3, now=now)),
    "reset in ISO 8601": reset(lambda now: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + 3))),
    "X-Rate-Limit-": reset("2", "X-Rate-Limit-"),
    "RateLimit-": reset("2", "RateLimit-"),
    "upper case": reset("2", "X-RATELIMIT-"),
    "the dictionary": [("RateLimit", "limit=60, remaining=0, reset=2")],
    "the structured list": [("RateLimit-Policy", '"p";q=60;w=60'), ("RateLimit", '"p";r=0;t=2')],
    "the exhausted one of two": [
        ("RateLimit-Policy", '"burst";q=10;w=2, "day";q=1000;w=86400'),
        ("RateLimit", '"day";r=900;t=60000, "burst";r=0;t=2'),
    ],
    "Retry-After before a longer reset": lambda now: [("Retry-After", "2"), *reset("600")(now)],
}


@pytest.mark.slow(3)
@pytest.mark.parametrize("fields", TWO_SECONDS.values(), ids=TWO_SECONDS.keys())
def test_each_dialect_is_waited_out(up, curtsy, fields):
    up.on("/data", refusal(fields), FOUR)
    assert curtsy.curl(up.url("/data"), config=QUICK).all == (0, b"four", b"")
    not_early(up.waits(), 1.7 if fields == TWO_SECONDS["fraction"] else 2.0)


# None of these is a word: the backoff of the policy applies, and the next attempt succeeds.
NO_WORD = {
    "negative": [("Retry-After", "-1")],
    "signed": [("Retry-After", "+2")],
    "with junk": [("Retry-After", "2;foo")],
    "hexadecimal": [("Retry-After", "0x2")],
    "digits and a letter": [("Retry-After", "99999999999x")],
    "a word": [("Retry-After", "soon")],
    "empty": [("Retry-After", "")],
    "zero": [("Retry-After", "0")],
    "a list of junk": [("Retry-After", "soon, later")],
    "a past date": lambda now: [("Date", http_date(now=now)), ("Retry-After", http_date(-100, now=now))],
    "a date that never was": [("Retry-After", "Sun, 31 Feb 2094 08:49:37 GMT")],
    "reset zero": reset("0"),
    "reset in the past": reset(lambda now: str(int(now) - 100)),
    "reset of no kind": reset("123456789012345678901234567890"),
    "reset empty": reset(""),
    "remaining above limit": [("X-RateLimit-Limit", "5"), ("X-RateLimit-Remaining", "6"), ("X-RateLimit-Reset", "600")],
    "a malformed list": [("RateLimit-Policy", '"p";q=60;w=60'), ("RateLimit", '"p";r=0;t=600;;')],
    "speaks of the past": lambda now: [("Age", "30"), *reset("600")(now)],
}


@pytest.mark.parametrize("fields", NO_WORD.values(), ids=NO_WORD.keys())
def test_what_is_no_word_is_as_if_absent(up, curtsy, fields):
    up.on("/data", refusal(fields), refusal(fields), FOUR)
    assert curtsy.curl(up.url("/data"), config=QUICK).all == (0, b"four", b"")
    assert len(up.arrivals()) == 3


HUGE = ["86400", "2147483648", "9223372037", "18446744073709551616", "9" * 60]


@pytest.mark.parametrize("seconds", HUGE, ids=lambda seconds: seconds[:24])
def test_a_huge_wait_saturates_and_is_delivered(up, curtsy, seconds):
    up.on("/data", refusal([("Retry-After", seconds)]), FOUR)
    assert curtsy.curl(up.url("/data"), config=QUICK).output == (0, b"no\n")
    assert len(up.arrivals()) == 1


@pytest.mark.slow(3)
def test_an_ignored_retry_after_leaves_the_backoff(up, curtsy):
    up.on("/data", refusal([("Retry-After", "3600")]), refusal([("Retry-After", "3600")]), FOUR)
    config = QUICK + "[127.0.0.1]\nretry_after = ignore\n"
    assert curtsy.curl(up.url("/data"), config=config).all == (0, b"four", b"")
    assert len(up.arrivals()) == 3


@pytest.mark.slow(2)
def test_many_other_fields_do_not_hide_it(up, curtsy):
    filler = [(f"X-Filler-{number}", "x" * 900) for number in range(60)]
    up.on("/data", Answer(429, [*filler, ("Retry-After", "1"), *filler[:5]]), FOUR)
    assert curtsy.curl(up.url("/data"), config=QUICK).all == (0, b"four", b"")
    not_early(up.waits(), 1.0)


def test_a_hint_on_a_success_is_not_a_refusal(up, curtsy):
    up.on("/data", Answer(200, [("Retry-After", "600")], b"four"))
    assert curtsy.curl(up.url("/data"), up.url("/data"), config=QUICK).all == (0, b"fourfour", b"")
    assert len(up.arrivals()) == 2
