# SPDX-License-Identifier: MIT
"""A refused transfer is tried again when the server says so, and the program sees one transfer."""

import json
import time

import pytest

from harness import not_early, told
from upstream import Answer, http_date

FOUR = Answer(200, [("X-Mark", "delivered")], b"four")


def test_without_curtsy_the_refusal_is_delivered(up, curtsy):
    up.on("/data", told(1), FOUR)
    assert curtsy.bare(["curl", "-s", up.url("/data")]).stdout == b"slow down\n"
    assert len(up.arrivals()) == 1


@pytest.mark.slow(5)
@pytest.mark.parametrize("how", ["preload", "run"])
def test_retry_after_is_waited_out(up, curtsy, how):
    up.on("/data", told(2), told(2), FOUR)
    headers = curtsy.folder / "headers"
    result = curtsy.curl("-D", str(headers), up.url("/data"), how=how)
    assert result.all == (0, b"four", b"")
    assert headers.read_bytes() == b"HTTP/1.1 200 OK\r\nX-Mark: delivered\r\nContent-Length: 4\r\n\r\n"
    not_early(up.waits(), 2.0, 2.0)


@pytest.mark.slow(3)
@pytest.mark.parametrize("clock_off_by", [0, 600, -600])
@pytest.mark.parametrize("form", ["imf", "rfc850", "asctime"])
def test_dates_are_read_against_the_servers_own_clock(up, curtsy, form, clock_off_by):
    def refuse(_request):
        now = time.time() + clock_off_by
        return Answer(429, [("Date", http_date(now=now)), ("Retry-After", http_date(2, form, now))])

    up.on("/data", refuse, FOUR)
    assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")
    not_early(up.waits(), 2.0)


@pytest.mark.slow(2)
@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--fail"],
        ["--fail-with-body"],
        ["-o", "file"],
        ["-O"],
        ["-i"],
        ["-I"],
        ["-i", "-o", "file", "--fail"],
        ["-D", "-", "-o", "file"],
        ["-D", "-"],
        ["-N"],
        ["-w", "%{http_code} %{size_download} %{num_redirects} %header{x-mark} %{num_headers}"],
    ],
    ids=" ".join,
)
def test_the_program_sees_one_transfer(up, curtsy, tmp_path, options, status):
    """What it prints and writes is what a server that never refused would have made it print."""
    up.on("/limited/data", told(1, status), FOUR)
    up.on("/plain/data", FOUR)
    seen = {}
    for kind in ("limited", "plain"):
        folder = tmp_path / kind
        folder.mkdir()
        how = "bare" if kind == "plain" else "preload"
        result = curtsy.curl(*options, up.url(f"/{kind}/data"), cwd=folder, how=how)
        seen[kind] = result.all, {file.name: file.read_bytes() for file in folder.iterdir()}
    assert seen["limited"] == seen["plain"]
    not_early(up.waits("/limited/data"), 1.0)


@pytest.mark.slow(2)
@pytest.mark.parametrize("scheme", ["https", "http over a tunnel", "http by proxy"])
def test_however_the_server_is_reached(upstream, curtsy, certificate, scheme):
    server = upstream(tls=certificate if scheme == "https" else None)
    server.on("/data", told(1), FOUR)
    server.on("origin.test:80", Answer(200, framing="none"))
    words = {
        "https": ["-k", server.url("/data")],
        "http over a tunnel": ["-p", "-x", server.url(), "http://origin.test/data"],
        "http by proxy": ["-x", server.url(), "http://origin.test/data"],
    }[scheme]
    assert curtsy.curl(*words).all == (0, b"four", b"")
    not_early(server.waits("/data"), 1.0)


@pytest.mark.slow(2)
def test_over_a_unix_socket(upstream, curtsy, tmp_path):
    path = str(tmp_path / "socket")
    server = upstream(unix=path)
    server.on("/data", told(1), FOUR)
    assert curtsy.curl("--unix-socket", path, "http://localhost/data").all == (0, b"four", b"")
    not_early(server.waits(), 1.0)


@pytest.mark.slow(2)
def test_informational_answers_do_not_hide_the_refusal(up, curtsy):
    hints = Answer(103, [("Link", "</style.css>")], framing="none")
    up.on("/data", Answer(429, [("Retry-After", "1")], b"no", before=[hints]), FOUR)
    assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")
    not_early(up.waits(), 1.0)


@pytest.mark.slow(2)
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("size", [0, 10, 1_000_000])
def test_the_refusals_body_is_swallowed_whatever_it_is(up, curtsy, size, framing):
    up.on("/data", Answer(429, [("Retry-After", "1")], b"x" * size, framing=framing), FOUR)
    assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")
    not_early(up.waits(), 1.0)


def test_a_refusal_too_large_to_keep_is_delivered(up, curtsy):
    """If no further attempt could start, the program would have to get it whole."""
    up.on("/data", Answer(429, [("Retry-After", "1")], b"x" * 3_000_000), FOUR)
    assert curtsy.curl(up.url("/data")).output == (0, b"x" * 3_000_000)
    assert len(up.arrivals()) == 1


@pytest.mark.slow(62)
def test_a_minute_is_waited_by_the_defaults(up, curtsy):
    up.on("/data", told(60), FOUR)
    assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")
    not_early(up.waits(), 60.0)


def test_no_file_no_variable_no_word(up, curtsy):
    """Nothing configured anywhere: the defaults hold, silently."""
    up.on("/data", told(1), FOUR)
    env = {"LD_PRELOAD": curtsy.env()["LD_PRELOAD"], "CURTSY_SEGMENT": str(curtsy.segment)}
    assert curtsy.bare(["curl", "-sS", up.url("/data")], env=env).all == (0, b"four", b"")
    not_early(up.waits(), 1.0)


def test_beyond_the_budget_the_refusal_is_delivered_and_the_next_process_fails_fast(upstream, curtsy):
    up, other = upstream(), upstream()
    up.on("/data", told(3600, body=b"come back in an hour\n"))
    other.on("/data", FOUR)
    assert curtsy.curl(up.url("/data")).output == (0, b"come back in an hour\n")

    next_one = curtsy.curl(up.url("/data"))
    assert (next_one.rc, next_one.stdout) == (28, b"")
    assert "curtsy" in next_one.errors.lower() and "127.0.0.1" in next_one.errors
    assert len(up.arrivals()) == 1

    assert curtsy.curl(other.url("/data")).stdout == b"four", "another server is another matter"


@pytest.mark.slow(4)
def test_what_one_process_was_told_the_next_one_obeys(up, curtsy):
    up.on("/data", told(3), FOUR)
    first = curtsy.curl("-m", "2", up.url("/data"))
    assert first.output == (0, b"slow down\n"), "three seconds do not fit in two"
    assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")
    not_early(up.waits(), 3.0)


@pytest.mark.slow(4)
def test_what_one_process_was_told_everybody_obeys(up, curtsy):
    up.on("/told", told(2))
    up.on("/data", FOUR)
    curtsy.curl("-m", "1", up.url("/told"))
    waiting = [curtsy.start(["curl", "-sS", up.url("/data")]) for _ in range(6)]
    assert [process.wait().all for process in waiting] == [(0, b"four", b"")] * 6
    answered_ns = up.arrivals("/told")[0].answered_ns
    assert all(time_ns - answered_ns >= 1_999_000_000 for time_ns in up.times("/data"))


@pytest.mark.slow(5)
def test_a_process_that_waits_already_obeys_a_longer_word(up, curtsy):
    """The longer word answers a request that was under way before anybody was refused."""
    up.on("/late", Answer(429, [("Retry-After", "3")], delay=1))
    up.on("/patient", told(2), FOUR)
    late = curtsy.start(["curl", "-sS", "-m", "2", up.url("/late")])
    up.wait_for(1)
    assert curtsy.curl(up.url("/patient")).all == (0, b"four", b"")
    assert late.wait().rc == 0
    late_ns = up.arrivals("/late")[0].answered_ns
    assert up.arrivals("/patient")[-1].time_ns - late_ns >= 2_999_000_000


@pytest.mark.slow(1)
def test_the_threads_of_a_program_wait_each_for_itself(up, curtsy):
    refusals = [Answer(429, [("Retry-After-Ms", "50")])] * 16
    up.on("/data", *refusals, FOUR)
    result = curtsy.run([curtsy.victim("threads"), up.url("/data"), "8", "4"], set="max_attempts=20\nretry_reserve=100")
    assert result.all == (0, b"good 32 bad 0\n", b"")
    assert len(up.arrivals()) == 32 + 16


# ---- without a word ----


def test_attempts_are_bounded_without_a_word(up, curtsy):
    up.on("/data", Answer(429, body=b"no\n"))
    assert curtsy.curl(up.url("/data"), set="base_delay=20ms").output == (0, b"no\n")
    assert len(up.arrivals()) == 5


@pytest.mark.slow(2)
@pytest.mark.parametrize("status, ceiling", [(503, 0.4), (429, 0.8)])
def test_backoff_is_drawn_from_its_range(up, curtsy, status, ceiling):
    """uniform(0, base_delay) before the first retry, twice that after a 429: as the log has it, and
    never fixed, so that a herd does not come back as one."""
    curtsy.configure("[default]\nbase_delay = 400ms\nretry_reserve = 100\n")
    log = curtsy.folder / "log"
    env = {"CURTSY_LOG": "info", "CURTSY_LOG_FILE": str(log), "CURTSY_LOG_FORMAT": "json"}
    for number in range(10):
        up.on(f"/{number}", status, FOUR)
    curls = [curtsy.start(["curl", "-sS", up.url(f"/{number}")], env=env) for number in range(10)]
    assert {curl.wait().all for curl in curls} == {(0, b"four", b"")}
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    refused = [line for line in lines if line["event"] == "refused" and line["cause"] == "backoff"]
    drawn = [line.get("wait_s", 0) for line in refused]  # a wait of nothing is left out
    assert len(drawn) == 10 and all(0 <= wait <= ceiling for wait in drawn)
    assert len(set(drawn)) > 5


@pytest.mark.parametrize("status", [502, 503, 504])
def test_gateway_errors_are_tried_again(up, curtsy, status):
    up.on("/data", status, status, FOUR)
    assert curtsy.curl(up.url("/data"), set="base_delay=20ms").all == (0, b"four", b"")
    assert len(up.arrivals()) == 3


@pytest.mark.slow(2)
def test_nothing_left_is_a_word_too(up, curtsy):
    fields = [("X-RateLimit-Limit", "60"), ("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "2")]
    up.on("/data", Answer(429, fields), FOUR)
    assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")
    not_early(up.waits(), 2.0)


# ---- connection errors ----


def test_errors_to_loopback_are_left_alone(up, curtsy):
    up.on("/data", Answer(drop="body", reset=True))
    assert curtsy.curl(up.url("/data"), set="base_delay=20ms").rc == 56
    assert len(up.arrivals()) == 1


@pytest.mark.parametrize("fault", ["reset", "empty"])
def test_errors_to_a_host_that_is_named_are_tried_again(up, curtsy, fault):
    up.on("/data", Answer(drop="body", reset=fault == "reset"), FOUR)
    result = curtsy.curl(up.url("/data"), config="[127.0.0.1]\nbase_delay = 20ms\n")
    assert result.all == (0, b"four", b"")
    assert len(up.arrivals()) == 2


def test_a_refused_connection_is_tried_at_most_twice(curtsy, up):
    """Told by what strace sees: nothing arrives anywhere."""
    trace = curtsy.folder / "trace"
    port = up.port
    up.stop()
    config = "[127.0.0.1]\nbase_delay = 20ms\n"
    command = ["strace", "-f", "-e", "trace=connect", "-o", str(trace), "curl", "-sS", f"http://127.0.0.1:{port}/"]
    if curtsy.sanitizer:
        pytest.skip("strace under a sanitizer's runtime")
    assert curtsy.run(command, config=config).rc == 7
    assert 1 <= trace.read_text().count(f"htons({port})") <= 2


@pytest.mark.slow(2)
def test_a_certificate_that_fails_is_final(upstream, curtsy, certificate):
    server = upstream(tls=certificate)
    result = curtsy.curl(server.url("/data"), config="[127.0.0.1]\nbase_delay = 20ms\n")
    assert result.rc == 60
    assert server.connections <= 1
