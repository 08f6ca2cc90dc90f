# SPDX-License-Identifier: MIT
"""The scripted upstream itself: if it does not do what it is told, the other tests mean nothing.
Curtsy has no part in these."""

import concurrent.futures
import json
import pathlib
import signal
import socket
import subprocess
import sys

import pytest

import http2
import upstream as module
from upstream import Answer, gaps, http_date, max_in_window


def talk(server, request: bytes) -> bytes:
    """Sends bytes, returns everything until the server ends the connection."""
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        connection.sendall(request)
        received = b""
        while part := connection.recv(65536):
            received += part
        return received


GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"


def test_nothing_is_added_to_an_answer(up):
    up.on("/a", Answer(418, [("X", "1"), ("x", "2")], b"tea", reason="", close=True))
    assert talk(up, GET) == b"HTTP/1.1 418 \r\nX: 1\r\nx: 2\r\nContent-Length: 3\r\n\r\ntea"


@pytest.mark.parametrize(
    "framing, wire",
    [
        ("length", b"Content-Length: 4\r\n\r\nfour"),
        ("chunked", b"Transfer-Encoding: chunked\r\n\r\n2\r\nfo\r\n2\r\nur\r\n0\r\n\r\n"),
        ("close", b"\r\nfour"),
        ("none", b"\r\nfour"),
    ],
)
def test_framings(up, framing, wire):
    up.on("/a", Answer(body=b"four", framing=framing, pieces=2, close=True))
    assert talk(up, GET) == b"HTTP/1.1 200 OK\r\n" + wire


def test_a_sequence_repeats_its_last_answer_or_cycles(up):
    up.on("/a", 200, 201)
    up.on("/b", 200, 201, cycle=True)
    codes = lambda path: subprocess.run(
        ["curl", "-s", "-o/dev/null", "-w%{http_code} "] + [up.url(path)] * 4, capture_output=True, text=True
    ).stdout.split()
    assert codes("/a") == ["200", "201", "201", "201"]
    assert codes("/b") == ["200", "201", "200", "201"]


def test_the_longest_matching_path_counts(up):
    up.on("*", b"any")
    up.on("/deep/*", b"deep")
    up.on("/deep/exact", b"exact")
    fetch = lambda path: subprocess.run(["curl", "-s", up.url(path)], capture_output=True).stdout
    assert [fetch("/x"), fetch("/deep/x"), fetch("/deep/exact?query")] == [b"any", b"deep", b"exact"]


def test_a_function_sees_the_body(up):
    up.on("/a", lambda request: Answer(body=b"%d:%b" % (request.hit, request.body[::-1])))
    words = ["curl", "-s", "-d", "abc", "-H", "Transfer-Encoding: chunked", up.url("/a")]
    result = subprocess.run(words, capture_output=True)
    assert result.stdout == b"1:cba"


def test_informational_answers_come_first(up):
    up.on("/a", Answer(before=[Answer(103, [("Link", "</s>")], framing="none")], close=True))
    assert talk(up, GET).startswith(b"HTTP/1.1 103 Early Hints\r\nLink: </s>\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_expect_can_be_met_or_refused(up, tmp_path):
    up.on("/met", 200)
    up.on("/refused", Answer(429, read_body=False))
    body = tmp_path / "body"
    body.write_bytes(b"x" * 2_000_000)
    for path, status, length in (("/met", 200, 2_000_000), ("/refused", 429, 0)):
        result = subprocess.run(["curl", "-s", "-w%{http_code}", "-T", body, up.url(path)], capture_output=True)
        assert int(result.stdout) == status
        arrival = up.arrivals(path)[0]
        assert arrival.header("Expect") == "100-continue"
        assert (arrival.body_length, arrival.body_complete) == (length, length > 0)


@pytest.mark.parametrize(
    "fault, curl_exit",
    [
        (Answer(drop="head"), 52),
        (Answer(drop="body"), 52),
        (Answer(drop="head", reset=True), 56),
        (Answer(drop="body", reset=True), 56),
        (Answer(body=b"x" * 100, cut_head=20), 0),  # libcurl takes what it has for the whole
        (Answer(body=b"x" * 100, cut_head=20, reset=True), 56),
        (Answer(body=b"x" * 100, cut_body=50), 18),
        (Answer(body=b"x" * 100, cut_body=50, reset=True), 56),
        (Answer(raw=b"SSH-2.0-OpenSSH\r\n"), 1),
        (Answer(silent=True), 28),
    ],
)
def test_faults(up, fault, curl_exit):
    up.on("/a", fault)
    result = subprocess.run(["curl", "-s", "-m1", "-d", "body", up.url("/a")], capture_output=True)
    assert result.returncode == curl_exit
    assert len(up.arrivals()) == 1


def test_arrivals_tell_what_came_and_keep_no_secret(up):
    up.on("*", 200)
    words = ["-u", "user:secret", "-H", "Twice: 1", "-H", "Twice: 2", "-d", "abc"]
    subprocess.run(["curl", "-s", *words, up.url("/a?b=c")])
    (arrival,) = up.arrivals()
    assert (arrival.method, arrival.target, arrival.path, arrival.version) == ("POST", "/a?b=c", "/a", "HTTP/1.1")
    assert arrival.all_headers("twice") == ["1", "2"]
    assert arrival.body_sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert len(arrival.authorization) == 64 and "dXNlcj" not in repr(arrival)
    assert arrival.time_ns <= arrival.answered_ns and arrival.peer_port > 0


def test_connections_are_kept_and_numbered(up):
    up.on("*", 200)
    subprocess.run(["curl", "-s", up.url("/1"), up.url("/2")])
    subprocess.run(["curl", "-s", up.url("/3")])
    assert [(arrival.connection, arrival.on_connection) for arrival in up.arrivals()] == [(1, 1), (1, 2), (2, 1)]


def test_plain_proxy_and_tunnel(up):
    up.on("/a", b"direct")
    up.on("origin.test:80", Answer(200, framing="none"))
    command = ["curl", "-s", "-x", up.url(), "http://origin.test/a"]
    proxied = lambda *words: subprocess.run([*command, *words], capture_output=True)
    assert proxied().stdout == b"direct"
    assert proxied("-p").stdout == b"direct"
    assert [arrival.method for arrival in up.arrivals()] == ["GET", "CONNECT", "GET"]


@pytest.mark.parametrize("kind", ["fixed", "sliding", "bucket"])
def test_quotas_refuse_what_is_beyond_them(up, kind):
    quota = up.quota(5, 60, kind=kind, phase=module.time.monotonic())
    result = subprocess.run(["curl", "-si"] + [up.url()] * 7, capture_output=True, text=True)
    assert result.stdout.count("HTTP/1.1 200") == 5 and result.stdout.count("HTTP/1.1 429") == 2
    assert quota.refused == 2 and "Retry-After: " in result.stdout


def test_quota_arithmetic():
    second = module.NS
    sliding = module.Quota(2, 1, kind="sliding")
    passed = lambda quota, *times: [at for at in times if quota.take(round(at * second))[0]]
    assert passed(sliding, 10.0, 10.5, 10.999, 11.0, 11.4, 11.5) == [10.0, 10.5, 11.0, 11.5]
    fixed = module.Quota(2, 1, kind="fixed")
    assert passed(fixed, 10.8, 10.9, 10.99, 11.0, 11.1, 11.2) == [10.8, 10.9, 11.0, 11.1]
    bucket = module.Quota(10, 1, kind="bucket", burst=1)
    assert passed(bucket, 10.0, 10.05, 10.1, 10.2) == [10.0, 10.1, 10.2]
    assert module.Quota(5, 10, announce="ietf").fields(3 * second, 4)[1] == ("RateLimit", '"default";r=4;t=3')


def test_windows_are_half_open():
    second = module.NS
    assert max_in_window([], 1) == 0
    assert max_in_window([0, second], 1) == 1
    assert max_in_window([0, second - 1, second], 1) == 2
    assert max_in_window([5, 0, 3, 9], 4 / second) == 2
    assert gaps([second, 0, 3 * second]) == [1, 2]


def test_dates():
    assert http_date(form="imf", now=784111777) == "Sun, 06 Nov 1994 08:49:37 GMT"
    assert http_date(form="rfc850", now=784111777) == "Sunday, 06-Nov-94 08:49:37 GMT"
    assert http_date(form="asctime", now=784111777) == "Sun Nov  6 08:49:37 1994"


def test_many_connections_at_once(up):
    up.on("*", Answer(body=b"ok", close=True))
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: talk(up, GET), range(500)))
    assert all(answer.endswith(b"ok") for answer in answers)
    assert len(up.arrivals()) == up.connections == 500


def test_waiting_for_arrivals(up):
    up.on("*", 200)
    with pytest.raises(TimeoutError):
        up.wait_for(1, timeout=0.01)
    subprocess.Popen(["curl", "-s", up.url()]).wait()
    assert len(up.wait_for(1)) == 1


@pytest.mark.parametrize("ending", ["SIGTERM", "stdin"])
def test_command_line(tmp_path, ending):
    script, arrivals = tmp_path / "script.json", tmp_path / "arrivals"
    refusal = {"status": 429, "headers": [["Retry-After", "2"]], "body": "no"}
    quota = {"limit": 1, "window": 60, "prefix": "/q", "kind": "sliding"}
    script.write_text(json.dumps({"paths": {"/a": [refusal, {"body_base64": "Zm91cg=="}]}, "quotas": [quota]}))
    program = pathlib.Path(module.__file__)
    process = subprocess.Popen(
        [sys.executable, program, "--script", script, "--arrivals", arrivals],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    url = f"http://127.0.0.1:{int(process.stdout.readline())}"
    fetch = lambda path: subprocess.run(["curl", "-s", url + path], capture_output=True).stdout
    assert [fetch("/a"), fetch("/a"), fetch("/q"), fetch("/q")] == [b"no", b"four", b"ok\n", b"too many requests\n"]
    process.send_signal(signal.SIGTERM) if ending == "SIGTERM" else process.stdin.close()
    assert process.wait(30) == 0
    lines = [json.loads(line) for line in arrivals.read_text().splitlines()]
    assert [line["status"] for line in lines] == [429, 200, 200, 429]


@pytest.mark.skipif(not http2.available(), reason="nghttpd is not installed")
def test_http2_server(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    with http2.Http2(tmp_path) as server:
        fetch = ["curl", "-s", "--http2-prior-knowledge", "-w%{http_version}", server.url("/file")]
        assert subprocess.run(fetch, capture_output=True).stdout == b"content2"
        assert server.paths() == ["/file"]
