# SPDX-License-Identifier: MIT
"""What a handle is good for after and during a governed transfer: options changed inside callbacks,
resets, callbacks that jump out, requests that were not sent at all."""

import pytest

from harness import told
from upstream import Answer

FOUR = Answer(200, [("X-Marker", "four")], b"four")
OTHER = Answer(200, [], b"hello multi")
SOON = Answer(429, [("Retry-After-Ms", "20")], b"no")
ONE_AN_HOUR = "[127.0.0.1]\nrate = 1/h\nburst = 1\nmax_wait = 1s\n"
GOVERNED_OR_NOT = pytest.mark.parametrize("first", [[], [SOON]], ids=["at once", "after a retry"])


def echo(request):
    return Answer(200, [], request.body)


def on_one_handle(curtsy, up, *words, how="preload", config=""):
    return curtsy.callbacks(*(word.replace("UP", up.url().rstrip("/")) for word in words), how=how, config=config)


# ---- options that are changed inside callbacks ----

INSIDE = {
    "the reader is taken away": ["put=12345", "read:1=no-reader"],
    "another thing to read": ["put=FIRST", "read:1=read-from=OTHER"],
    "reset": ["header:1=reset", "header:1=writer"],
    "reset in the body": ["body:1=reset", "body:1=writer"],
    "another writer": ["header:2=writer"],
}


@pytest.mark.parametrize("change", INSIDE)
def test_options_changed_inside_a_callback(up, curtsy, change):
    """What libcurl looks at only when a transfer begins, and what it looks at each time."""
    up.on("/data", echo)
    words = ["url=UP/data", "post=some body", *INSIDE[change], "perform", "writer", "url=UP/data", "get", "perform"]
    governed = on_one_handle(curtsy, up, *words)
    assert governed.all == on_one_handle(curtsy, up, *words, how="bare").all
    assert governed.stdout.count(b"perform 0 ") == 2


@pytest.mark.slow(5)
def test_a_timeout_taken_back_while_it_waits_is_not_left_behind(up, curtsy):
    up.on("/data", told(1), FOUR)
    up.on("/slow", Answer(200, [], b"at last", delay=3.5))
    words = ["url=UP/data", "timeout=3000", "wait:1=timeout=0", "perform", "url=UP/slow", "perform"]
    result = on_one_handle(curtsy, up, *words)
    assert result.text.count("perform 0 status 200") == 2 and 'body 7 "at last"' in result.text


@pytest.mark.slow(5)
def test_the_timeout_of_an_attempt_is_not_left_behind(up, curtsy):
    """A repeat gets what is left of the program's own; the next transfer gets all of it."""
    up.on("/data", Answer(429, SOON.headers, delay=1), FOUR)
    up.on("/slow", Answer(200, [], b"at last", delay=3.2))
    words = ["url=UP/data", "timeout=4000", "perform", "url=UP/slow", "perform"]
    assert on_one_handle(curtsy, up, *words).text.count("perform 0 status 200") == 2


@GOVERNED_OR_NOT
def test_autoreferer_starts_anew_with_each_attempt(up, curtsy, first):
    """A redirect sets the Referer on the handle, and a repeat is not a redirect."""
    up.on("/from", Answer(302, [("Location", "/to")]))
    up.on("/to", *first, FOUR)
    assert curtsy.curl("-L", "-e", ";auto", up.url("/from")).all == (0, b"four", b"")
    referers = [(arrival.path, arrival.header("Referer")) for arrival in up.arrivals()]
    assert referers == [("/from", None), ("/to", up.url("/from"))] * (len(first) + 1)


@GOVERNED_OR_NOT
def test_the_programs_own_referer_is_sent_with_each_attempt(up, curtsy, first):
    up.on("/from", Answer(302, [("Location", "/to")]))
    up.on("/to", *first, FOUR)
    assert curtsy.curl("-L", "-e", "http://own.test/;auto", up.url("/from")).all == (0, b"four", b"")
    assert [arrival.header("Referer") for arrival in up.arrivals("/from")] == ["http://own.test/"] * (len(first) + 1)


# ---- left in the middle ----

JUMPS = pytest.mark.no_sanitizer("it does not follow jumps out of frames that it has not instrumented")


@JUMPS
@pytest.mark.slow(2)
def test_a_handle_whose_wait_was_left_by_a_jump_is_as_libcurls_own(up, curtsy):
    """libcurl does not perform on a handle that was left so, and neither do we."""
    up.on("/data", told(60), FOUR)
    result = on_one_handle(curtsy, up, "url=UP/data", "wait:1=jump", "perform", "perform", "perform")
    lines = [line for line in result.text.splitlines() if not line.startswith(("headers", "body"))]
    assert result.rc == 0 and lines[0] == "jumped" and [line[:9] for line in lines[1:]] == ["perform 2"] * 2
    assert len(up.arrivals()) == 1


@JUMPS
@pytest.mark.parametrize("how", ["bare", "preload"])
def test_a_handle_whose_transfer_was_left_by_a_jump(up, curtsy, how):
    up.on("/data", Answer(200, [], b"four", delay=1))
    result = on_one_handle(curtsy, up, "url=UP/data", "progress:2=jump", "perform", "perform", "reset", how=how)
    assert result.text.startswith("jumped\nperform 2 status 0 ")


@JUMPS
@pytest.mark.slow(2)
def test_after_a_jump_out_of_a_wait_a_multi_handle_gives_the_body_to_the_program(up, curtsy):
    up.on("/data", told(1), FOUR)
    words = ["url=UP/data", "wait:1=jump", "perform", "reset", "url=UP/data", "writer", "multi", "perform"]
    result = on_one_handle(curtsy, up, *words)
    got_it = 'status 200 ""\nheaders 0 ""\nbody 4 "four"\n'
    assert result.all == (0, f"jumped\nmulti 0 {got_it}perform 0 {got_it}".encode(), b"")


@JUMPS
@pytest.mark.slow(2)
def test_an_exception_out_of_a_wait(up, curtsy):
    up.on("/data", told(60), FOUR)
    result = curtsy.run([curtsy.victim("throwing"), up.url("/data"), "wait"])
    assert result.all == (0, b"caught 1 then 2\n", b"")
    assert len(up.arrivals()) == 1


@pytest.mark.slow(2)
def test_a_perform_inside_its_own_wait_is_refused(up, curtsy):
    up.on("/data", told(1), FOUR)
    result = on_one_handle(curtsy, up, "url=UP/data", "wait:1=perform", "perform")
    assert result.text.startswith("nested 2\nperform 0 status 200 ") and 'body 4 "four"\n' in result.text
    assert len(up.arrivals()) == 2


@pytest.mark.slow(2)
def test_a_pause_during_the_wait_is_kept_to(up, curtsy):
    """libcurl takes a pause at any time, so it is taken while we wait too."""
    up.on("/data", told(1), FOUR)
    result = on_one_handle(curtsy, up, "url=UP/data", "timeout=2500", "wait:1=stop", "perform")
    assert result.text.startswith('stop 0\nperform 28 status 0 "Operation timed out after ')
    assert len(up.arrivals()) == 1
    up.on("/data", told(1), FOUR)
    result = on_one_handle(curtsy, up, "url=UP/data", "wait:1=stop", "wait:9=continue", "perform")
    assert result.text.startswith('stop 0\nperform 0 status 200 ""\n') and 'body 4 "four"\n' in result.text


# ---- requests that were not sent ----


def test_what_was_not_sent_tells_nothing_older(up, curtsy):
    up.on("/from", Answer(302, [("Location", "/data")]))
    up.on("/data", FOUR)
    words = ["url=UP/from", "follow", "perform", "told", "perform", "told"]
    result = on_one_handle(curtsy, up, *words, config=ONE_AN_HOUR)
    before, after = (line for line in result.text.splitlines() if line.startswith("told"))
    assert before == "told status 200 size 4 marker four first header X-Marker url /data"
    assert after == "told status 0 size 0 marker none first header none url /from"
    assert 'perform 28 status 0 "Curtsy: not sent: 127.0.0.1:' in result.text


@pytest.mark.parametrize("next_one", ["multi", "perform"])
def test_after_it_the_handle_tells_of_what_it_does_next(up, curtsy, next_one):
    """In a multi handle, or where nothing is governed."""
    up.on("/data", FOUR)
    up.on("/other", OTHER)
    url = "url=UP/other" if next_one == "multi" else f"url=file://{curtsy.config_file}"
    words = ["url=UP/data", "perform", "perform", url, next_one, "told"]
    result = on_one_handle(curtsy, up, *words, config=ONE_AN_HOUR)
    size = len(OTHER.body) if next_one == "multi" else len(ONE_AN_HOUR)
    status = 200 if next_one == "multi" else 0
    assert f"{next_one} 0 status {status} " in result.text
    assert result.text.splitlines()[-1].startswith(f"told status {status} size {size} marker none ")


@pytest.mark.slow(1)
def test_a_first_wait_that_the_program_ends(up, curtsy):
    up.on("/data", FOUR)
    words = ["url=UP/data", "perform", "wait:1=told", "wait:2=refuse", "perform", "told"]
    config = "[127.0.0.1]\nrate = 1/30s\nburst = 1\n"
    result = on_one_handle(curtsy, up, *words, config=config)
    nothing = "told status 0 size 0 marker none first header none url /data\n"
    ended = 'perform 42 status 0 "Callback aborted"\nheaders 0 ""\nbody 0 ""\n'
    assert result.text.endswith(nothing + ended + nothing)
    assert len(up.arrivals()) == 1
