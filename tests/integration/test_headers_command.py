# SPDX-License-Identifier: MIT
"""curtsy headers: what Curtsy makes of a response."""

import json
import os
import pathlib
import subprocess

import pytest

from upstream import Answer

CASES = pathlib.Path(__file__).resolve().parents[1] / "unit" / "header_cases.tsv"
LONGEST_S = (2**63 - 1) / 1e9  # what fits into 64 bits of nanoseconds

NUMBERS = ["wait", "limit", "remaining", "reset", "window"]
NOW = "1700000000"  # 2023-11-14 22:13:20 GMT


@pytest.fixture
def headers(curtsy):
    """Gives `curtsy headers --json` a response, and returns what it makes of it."""

    def read(text, *words, config=None, env=None):
        if config is not None:
            curtsy.configure(config)
        stdin = text if isinstance(text, bytes) else text.encode()
        result = curtsy.tool("headers", "--json", *words, stdin=stdin, env=env)
        assert (result.rc, result.stderr) == (0, b""), result.errors
        return json.loads(result.stdout)

    return read


def why(reading):
    return "\n".join(reading["why"])


def response(status, *fields):
    return "".join(f"{line}\r\n" for line in [f"HTTP/1.1 {status} Reason", *fields, ""])


# ---- the responses of real servers ----


def cases():
    lines = CASES.read_text(encoding="utf-8").splitlines()
    names = lines[0].split("\t")
    return [dict(zip(names, line.split("\t"))) for line in lines[1:]]


def agrees(expected, got):
    if expected == "-" or got is None:
        return expected == "-" and got is None
    value = min(float(expected), LONGEST_S)
    return abs(value - got) <= max(1e-6, 1e-11 * value)


def judge(case, reading):
    """The columns that differ.  A window's length that only documentation says is not in the response."""
    columns = {name: name if name in ("limit", "remaining") else f"{name}_s" for name in NUMBERS}
    if "[W]" in case["note"]:
        del columns["window"]
    wrong = [f"{key} {case[key]} read as {reading[key]}" for key in columns.values() if not agrees(case[key], reading[key])]
    unnamed = [f"{name}_field" for name, key in columns.items() if (reading[key] is None) != (reading[f"{name}_field"] is None)]
    if reading["status"] != int(case["status"]):
        wrong.append(f"status {reading['status']}")
    return wrong + unnamed


def test_every_line_of_the_corpus(curtsy):
    faults, count = [], 0
    for case in cases():
        kind, response_time = case["response_time"].split(":")
        # Where the response has a Date, the local clock must not matter.
        at = int(response_time) + (54321 if kind == "date" else 0)
        lines = case["headers"].replace("\\x00", "\0").split(" | ")
        text = response(case["status"], *lines).encode()
        result = curtsy.tool("headers", "--json", "--at", str(at), stdin=text)
        assert (result.rc, result.stderr) == (0, b""), f"{case['id']}: {result.errors}"
        count += 1
        faults += [f"{case['id']}: {fault}" for fault in judge(case, json.loads(result.stdout))]
    assert not faults, "\n".join(faults)
    assert count > 200


# ---- what is read ----


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("line", ["HTTP/1.1 429 Too Many Requests", "HTTP/2 429", "HTTP/2 429 ", "HTTP/1.0 429", "HTTP/3 429 "])
def test_status_lines(headers, line, end):
    reading = headers(f"{line}{end}retry-after: 7{end}{end}")
    assert (reading["status"], reading["retryable"]) == (429, True)
    assert (reading["wait_s"], reading["wait_field"], reading["block_s"]) == (7, "retry-after", 7)


@pytest.mark.parametrize(
    "first",
    [
        response("200 Connection established"),
        response(100),
        response(103, "Link: </style.css>; rel=preload"),
        response(302, "Location: /there", "Retry-After: 99", "X-RateLimit-Remaining: 3"),
        response(401, 'WWW-Authenticate: Digest realm="here"'),
        response("200 Connection established") + response(302, "Location: /", "RateLimit: \"a\";r=0;t=50") + response(100),
    ],
)
def test_the_last_block_counts(headers, first):
    reading = headers(first + response(503, "Retry-After: 4"))
    assert (reading["status"], reading["wait_s"], reading["remaining"], reading["reset_s"]) == (503, 4, None, None)


@pytest.mark.parametrize(
    "body",
    [
        "Retry-After: 9\r\n",
        "text\nRetry-After: 9\nHTTP/1.1 503 No\r\nRetry-After: 9\r\n",
        "\r\nHTTP/1.1 503 No\r\nRetry-After: 9\r\n",
        "<p>HTTP/1.1 503 No\n",
    ],
)
def test_the_body_is_not_read(headers, body):
    reading = headers(response(200, "Content-Type: text/plain") + body)
    assert (reading["status"], reading["wait_s"]) == (200, None)


def test_folded_lines_are_joined(headers):
    text = response(429, "Retry-After:", "   Tue, 14 Nov 2023", "\t22:13:50 GMT ", "Set-Cookie: a", "  b", "X-RateLimit-Limit: 5")
    reading = headers(text, "--at", NOW)
    assert (reading["wait_s"], reading["limit"]) == (30, 5)


def test_fields_without_a_status_line_are_taken_as_said(headers):
    reading = headers("Retry-After: 30\nX-RateLimit-Remaining: 12\n")
    assert (reading["status"], reading["retryable"]) == (None, None)
    assert (reading["wait_s"], reading["block_s"], reading["remaining"]) == (30, 30, 12)
    assert "no status line" in why(reading)


def test_a_status_line_by_itself_is_an_answer(headers):
    reading = headers("HTTP/2 503\n")
    assert (reading["status"], reading["retryable"], reading["wait_s"]) == (503, True, None)


def test_a_long_field_is_read_whole(headers):
    blanks = " " * 2500
    assert headers(f"HTTP/2 429\nretry-after:{blanks}3{blanks}\n")["wait_s"] == 3
    assert headers(f"HTTP/2 429\nretry-after:\n{blanks}3{blanks}\n")["wait_s"] == 3


def test_no_line_end_is_needed(headers):
    assert headers("\r\n\nHTTP/2 429\nretry-after: 3")["wait_s"] == 3


@pytest.mark.parametrize("status", ["4290", "42", "abc", "", "429x"])
def test_a_status_that_cannot_be_read_is_unknown(headers, status):
    reading = headers(f"HTTP/1.1 {status}\r\nRetry-After: 2\r\n\r\n")
    assert (reading["status"], reading["retryable"], reading["wait_s"]) == (None, None, 2)


@pytest.mark.parametrize("text", [b"", b"\r\n\r\n", b"<!doctype html>\n<p>HTTP: no\n", b"hello\nRetry-After: 4\n", b"\0\1\2"])
def test_no_header_at_all(curtsy, text):
    result = curtsy.tool("headers", stdin=text)
    assert (result.rc, result.stdout) == (1, b"")
    assert "no response header" in result.errors


def test_long_lines_and_odd_bytes_do_no_harm(headers):
    odd = b"".join(b"X-RateLimit-%d: %s\r\n" % (i, b"9" * 300) for i in range(40))
    cookie = b"Set-Cookie: " + b"a" * 200_000
    text = b"HTTP/1.1 429 \xff\xfe\r\n" + cookie + b"\r\nX-Reset: " + b"1" * 100_000 + b"\r\nRetry-After: 5\r\nX: \0\r\n" + odd
    reading = headers(text + b"\r\n" + b"\0" * 100_000)
    assert (reading["status"], reading["wait_s"], reading["limit"]) == (429, 5, None)
    assert "did not fit" in why(reading)


@pytest.mark.parametrize("words", [["extra"], ["--at", "yesterday"], ["--at", "-5"], ["--at", ""], ["--at", "1e9"], ["--nonsense"]])
def test_misuse(curtsy, words):
    result = curtsy.tool("headers", *words, stdin=b"Retry-After: 4\n")
    assert (result.rc, result.stdout) == (2, b"") and result.stderr


@pytest.mark.parametrize("host", ["https://example.com/", "example.com/path", "example.com:http", "example.com:0", ""])
def test_what_is_no_host_is_misuse(curtsy, host):
    result = curtsy.tool("headers", "--host", host, stdin=b"Retry-After: 4\n")
    assert (result.rc, result.stdout) == (2, b"") and "expected HOST" in result.errors


def test_input_that_cannot_be_read_is_misuse(curtsy, tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    result = subprocess.run([curtsy.command, "headers"], stdin=folder, env=curtsy.tool_env(), capture_output=True)
    os.close(folder)
    assert (result.returncode, result.stdout) == (2, b"") and b"standard input: " in result.stderr


def test_what_writes_a_body_is_let_finish(curtsy):
    script = r'printf "HTTP/1.1 200 OK\r\nRateLimit: \"a\";r=1\r\n\r\n" && seq 500000'
    writer = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE)
    result = subprocess.run([curtsy.command, "headers"], stdin=writer.stdout, env=curtsy.tool_env(), capture_output=True)
    writer.stdout.close()
    assert (writer.wait(60), result.returncode) == (0, 0)
    assert b"remaining  1" in result.stdout


# ---- what it means ----


@pytest.mark.parametrize(
    "status, retryable",
    [(200, False), (304, False), (400, False), (403, False), (404, False), (407, False), (418, False), (429, True)]
    + [(500, False), (502, True), (503, True), (504, True), (529, False), (999, False)],
)
def test_retryable_by_default(headers, status, retryable):
    assert headers(response(status, "Content-Type: text/plain"))["retryable"] is retryable


@pytest.mark.parametrize("field", ["X-Should-Retry: false", "Stripe-Should-Retry: FALSE"])
def test_the_server_may_ask_not_to_retry(headers, field):
    reading = headers(response(429, field))
    assert reading["retryable"] is False and "asks not to retry" in why(reading)


POLICIES = """
[api.example.com]
retry_status = 429, 500
max_block = 2min
[api.example.com:8443]
retry_after = ignore
[once.example.com]
max_attempts = 1
mode = observe
"""


def test_the_policy_of_a_host(headers):
    text = response(500, "Retry-After: 300")
    reading = headers(text, "--host", "API.example.com.", config=POLICIES)
    assert (reading["retryable"], reading["wait_s"], reading["block_s"]) == (True, 300, 120)
    assert "longer than max_block: the server is believed for 2m" in why(reading)
    assert "longer than total_budget = 90s" in why(reading)
    assert headers(text, "--host", "api.example.com:8443")["block_s"] is None
    for words in (["--host", "example.com"], []):
        reading = headers(text, *words)
        assert (reading["retryable"], reading["wait_s"], reading["block_s"]) == (False, 300, None)
        assert "500 is not taken as a refusal" in why(reading)


def test_a_policy_that_ignores_retry_after(headers):
    reading = headers(response(429, "Retry-After: 30"), "--host", "api.example.com:8443", config=POLICIES)
    assert (reading["retryable"], reading["wait_s"], reading["block_s"]) == (True, 30, None)
    assert "retry_after = ignore" in why(reading) and "without a word" in why(reading)


def test_a_policy_under_which_nothing_happens(headers):
    reading = headers(response(429, "Retry-After: 3"), "--host", "once.example.com", config=POLICIES)
    assert "max_attempts = 1" in why(reading) and "mode = observe" in why(reading)
    assert "mode = off" in why(headers(response(429), env={"CURTSY_MODE": "off"}))
    assert "mode" not in why(headers(response(429)))


def test_the_default_section_counts_without_a_host(headers):
    assert headers(response(502), config="[default]\nretry_status = 429\n")["retryable"] is False


SPENT = ("X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1700000030")


def test_a_window_with_every_part_and_its_fields(headers):
    fields = ["RateLimit-Policy: 60;w=60", "RateLimit-Limit: 60", "RateLimit-Remaining: 7", "RateLimit-Reset: 20"]
    reading = headers(response(200, *fields))
    assert [reading[key] for key in ("limit", "remaining", "reset_s", "window_s")] == [60, 7, 20, 60]
    names = [reading[f"{name}_field"] for name in ("limit", "remaining", "reset", "window")]
    assert names == ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "ratelimit-policy"]
    assert (reading["wait_s"], reading["wait_field"], reading["block_s"], reading["why"]) == (None, None, None, [])


@pytest.mark.parametrize("status", [200, 302, 403, 429])
def test_a_used_up_window_speaks_on_any_status(headers, status):
    reading = headers(response(status, *SPENT), "--at", NOW)
    assert (reading["wait_s"], reading["wait_field"], reading["block_s"]) == (30, "x-ratelimit-reset", 30)


def test_a_cache_is_not_believed(headers):
    reading = headers(response(200, "Age: 45", *SPENT), "--at", NOW)
    assert [reading[key] for key in ("limit", "remaining", "reset_s", "wait_s")] == [None] * 4
    assert "age is above 0" in why(reading)
    assert "age" not in why(headers(response(200, "Age: 0", *SPENT), "--at", NOW))


@pytest.mark.parametrize("value, said", [("0", "0 in retry-after is no word"), ("soon", "retry-after cannot be read")])
def test_retry_after_that_is_no_word(headers, value, said):
    reading = headers(response(429, f"Retry-After: {value}"))
    assert reading["block_s"] is None and said in why(reading)
    assert "without a word from the server, Curtsy waits for up to 500ms" in why(reading)
    assert "up to 250ms" in why(headers(response(503, f"Retry-After: {value}")))


@pytest.mark.parametrize(
    "status, fields, wait, said",
    [
        (403, ["Retry-After: 60"], 60, "403 is not taken as a refusal"),
        (200, ["Retry-After: 60"], 60, "200 is not taken as a refusal"),
        (200, ["Retry-After: 60", "X-RateLimit-Remaining: 3"], None, "retry-after does not bind on a success"),
        (420, ["X-RateLimit-Reset: 5"], 5, "x-ratelimit-reset is no word by itself"),
        (429, ["X-RateLimit-Remaining: 3", "X-RateLimit-Reset: 5"], 5, "x-ratelimit-reset is no word by itself"),
        (502, ["X-RateLimit-Reset: 5"], None, "without a word from the server"),
        (429, ["X-RateLimit-Remaining: 0"], None, "no field says until when"),
        (429, ["X-RateLimit-Remaining: 0", f"X-RateLimit-Reset: {NOW}"], 0, "is not after the response"),
        (407, ["Retry-After: 60"], 60, "proxy"),
    ],
)
def test_demands_that_are_not_acted_on(headers, status, fields, wait, said):
    reading = headers(response(status, *fields), "--at", NOW)
    assert (reading["wait_s"], reading["block_s"]) == (wait, None)
    assert said in why(reading)


@pytest.mark.parametrize("status", [429, 503])
def test_a_reset_alone_is_the_word_of_a_refusal(headers, status):
    reading = headers(response(status, "X-RateLimit-Reset: 5"), "--at", NOW)
    assert (reading["wait_s"], reading["block_s"]) == (5, 5)


def test_times_are_relative_to_the_date_of_the_response(headers):
    date = "Date: Tue, 14 Nov 2023 22:13:20 GMT"
    reading = headers(response(429, date, "Retry-After: Tue, 14 Nov 2023 22:13:50 GMT"), "--at", "1700003600")
    assert reading["wait_s"] == 30 and "60m00s before its arrival" in why(reading)
    reading = headers(response(429, date, "Retry-After: Tue, 14 Nov 2023 22:13:50 GMT"), "--at", "1699999990")
    assert reading["wait_s"] == 30 and "date" not in why(reading)
    assert headers(response(429, "Retry-After: Tue, 14 Nov 2023 22:13:50 GMT"), "--at", NOW)["wait_s"] == 30


def test_times_count_from_now_without_at(headers):
    assert headers(response(429, "Retry-After: Tue, 14 Nov 2023 22:13:50 GMT"))["wait_s"] == 0


# ---- what is printed ----


SECRETS = ["Set-Cookie: session=hunter2", "X-RateLimit-Token-hunter2: hunter2", "hunter2: 4", "Retry-After: hunter2", "  hunter2"]


@pytest.mark.parametrize("words", [[], ["--json"]])
@pytest.mark.parametrize("status", ["HTTP/1.1 429 hunter2", "HTTP/1.1 hunter2", "hunter2: 5", "hunter2"])
def test_nothing_that_is_not_understood_is_printed(curtsy, status, words):
    result = curtsy.tool("headers", *words, stdin="\n".join([status, *SECRETS, "", "hunter2"]).encode())
    assert result.rc == (1 if status == "hunter2" else 0)
    assert b"hunter2" not in result.stdout + result.stderr


def test_fields_that_are_not_understood_are_counted(headers):
    assert "1 other field might" in why(headers(response(200, "X-RateLimit-Resource: core")))
    assert "2 other fields might" in why(headers(response(200, "X-RateLimit-Resource: core", "X-Quota: 5")))


def test_text(curtsy):
    text = response(429, "Retry-After: 60", "X-RateLimit-Limit: 60", "X-RateLimit-Reset: 2222", "X-RateLimit-Remaining: 3")
    result = curtsy.tool("headers", stdin=text.encode())
    assert (result.rc, result.stderr) == (0, b"")
    assert [line.split() for line in result.text.splitlines()] == [
        ["status", "429"],
        ["retryable", "yes"],
        ["wait", "60.0s", "retry-after"],
        ["block", "60.0s"],
        ["limit", "60", "x-ratelimit-limit"],
        ["remaining", "3", "x-ratelimit-remaining"],
        ["reset", "37m02s", "x-ratelimit-reset"],
        ["window", "unknown"],
    ]


@pytest.mark.parametrize("words", [["-sI"], ["-si"], ["-siL"]])
def test_what_curl_prints(up, curtsy, words):
    up.on("/", Answer(302, [("Location", "/there"), ("Retry-After", "50")]))
    up.on("/there", Answer(429, [("Retry-After", "3")], b"Retry-After: 9\n"))
    printed = curtsy.bare(["curl", *words, up.url("/" if "L" in words[0] else "/there")])
    result = curtsy.tool("headers", "--json", stdin=printed.stdout)
    reading = json.loads(result.stdout)
    assert (reading["status"], reading["wait_s"], reading["retryable"]) == (429, 3, True)
