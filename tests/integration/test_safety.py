# SPDX-License-Identifier: MIT
"""What must not be repeated is not repeated, and what was refused for good is delivered."""

import hashlib

import pytest

from harness import not_early, told
from upstream import Answer

OK = Answer(200, body=b"done\n")
SHA_X = hashlib.sha256(b"x").hexdigest()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 422, 500, 501])
def test_final_statuses_are_delivered_at_once(up, curtsy, status):
    """A Retry-After does not turn them into something else."""
    up.on("/data", told(1, status, b"the reason\n"))
    result = curtsy.curl("-w", "%{http_code}", up.url("/data"))
    assert result.all == (0, b"the reason\n%d" % status, b"")
    assert len(up.arrivals()) == 1


def test_no_configuration_makes_a_404_retryable(up, curtsy):
    """One that asks for it is refused with its line, and the rest of the file holds."""
    curtsy.configure("[default]\nmax_attempts = 2\nretry_status = 429, 404\nbase_delay = 20ms\n")
    check = curtsy.tool("check", str(curtsy.config_file))
    assert check.rc == 1
    assert f"{curtsy.config_file}:3: " in check.text + check.errors and "404" in check.text + check.errors

    up.on("/missing", 404)
    up.on("/limited", 429)
    env = {"CURTSY_LOG": "off"}
    assert curtsy.curl(up.url("/missing"), env=env).all == (0, b"", b"")
    assert curtsy.curl(up.url("/limited"), env=env).rc == 0
    assert (len(up.arrivals("/missing")), len(up.arrivals("/limited"))) == (1, 2)


@pytest.mark.parametrize("method", ["POST", "PATCH", "LOCK"])
@pytest.mark.parametrize("status", [429, 503])
def test_a_write_without_key_is_sent_once(up, curtsy, method, status):
    up.on("/data", told(1, status, b"not now\n"), OK)
    result = curtsy.curl("-X", method, "-d", "x", up.url("/data"))
    assert result.all == (0, b"not now\n", b"")
    assert len(up.arrivals()) == 1


@pytest.mark.slow(3)
@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize("header", ["Idempotency-Key: k-1", "idempotency-key:k-1"])
def test_a_write_with_a_key_is_repeated_with_that_key(up, curtsy, method, header):
    up.on("/data", told(1), told(1), OK)
    result = curtsy.curl("-X", method, "-d", "x", "-H", header, up.url("/data"))
    assert result.all == (0, b"done\n", b"")
    assert [arrival.header("Idempotency-Key") for arrival in up.arrivals()] == ["k-1"] * 3
    assert [arrival.body_sha256 for arrival in up.arrivals()] == [SHA_X] * 3
    not_early(up.waits(), 1.0, 1.0)


@pytest.mark.slow(2)
def test_the_key_may_have_another_name(up, curtsy):
    config = "[default]\nidempotency_header = X-Request-Token\n"
    up.on("/named", told(1), OK)
    up.on("/other", told(1), OK)
    send = lambda header, path: curtsy.curl("-d", "x", "-H", header, up.url(path), config=config)
    assert send("X-Request-Token: 1", "/named").stdout == b"done\n"
    assert send("Idempotency-Key: 1", "/other").stdout == b"slow down\n"
    assert (len(up.arrivals("/named")), len(up.arrivals("/other"))) == (2, 1)


@pytest.mark.parametrize("header", ["Idempotency-Key:", "Idempotency-Key;"])
def test_an_empty_key_is_no_key(up, curtsy, header):
    """`Name:` takes a header away, `Name;` sends it empty."""
    up.on("/data", told(1), OK)
    assert curtsy.curl("-d", "x", "-H", header, up.url("/data")).stdout == b"slow down\n"
    assert len(up.arrivals()) == 1


@pytest.mark.slow(2)
def test_a_section_may_declare_that_a_repeat_is_safe(up, curtsy):
    up.on("/query", told(1), OK)
    up.on("/order", told(1), OK)
    config = f"[{up.authority}/query]\nidempotent = yes\n"
    assert curtsy.curl("-d", "x", up.url("/query"), config=config).stdout == b"done\n"
    assert curtsy.curl("-d", "x", up.url("/order"), config=config).rc == 0
    assert (len(up.arrivals("/query")), len(up.arrivals("/order"))) == (2, 1)


def test_a_section_may_declare_that_it_is_not(up, curtsy):
    up.on("/data", told(1, body=b"no\n"), OK)
    assert curtsy.curl(up.url("/data"), config="[default]\nidempotent = no\n").stdout == b"no\n"
    assert len(up.arrivals()) == 1


@pytest.mark.slow(2)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"])
def test_idempotent_methods_are_repeated(up, curtsy, method):
    up.on("/data", told(1), OK)
    words = {"HEAD": ["-I"], "PUT": ["-X", "PUT", "-d", "x"]}.get(method, ["-X", method])
    result = curtsy.curl("-o/dev/null", "-w%{http_code}", *words, up.url("/data"))
    assert result.all == (0, b"200", b"")
    assert [arrival.method for arrival in up.arrivals()] == [method] * 2
    body = b"x" if method == "PUT" else b""
    assert {arrival.body_sha256 for arrival in up.arrivals()} == {hashlib.sha256(body).hexdigest()}
    not_early(up.waits(), 1.0)


def test_a_post_that_turned_into_a_get_is_still_a_post(up, curtsy):
    """A new perform would begin with the POST again."""
    up.on("/order", Answer(303, [("Location", "/receipt")]))
    up.on("/receipt", told(1, body=b"later\n"), OK)
    result = curtsy.curl("-L", "-d", "x", up.url("/order"))
    assert result.all == (0, b"later\n", b"")
    assert [(arrival.method, arrival.path) for arrival in up.arrivals()] == [("POST", "/order"), ("GET", "/receipt")]


@pytest.mark.slow(2)
def test_a_redirected_get_is_repeated_from_its_first_hop(up, curtsy):
    up.on("/old", Answer(302, [("Location", "/new")]))
    up.on("/new", told(1), OK)
    assert curtsy.curl("-L", up.url("/old")).all == (0, b"done\n", b"")
    not_early(up.waits("/new"), 1.0)


def test_an_upload_that_was_read_is_not_sent_short(up, curtsy, tmp_path):
    """curl's own reader has been emptied by the first attempt."""
    content = b"0123456789" * 1000
    (tmp_path / "file").write_bytes(content)
    up.on("/data", told(1, body=b"later\n"), OK)
    result = curtsy.curl("-T", str(tmp_path / "file"), up.url("/data"))
    assert result.rc == 0
    assert {arrival.body_sha256 for arrival in up.arrivals()} == {hashlib.sha256(content).hexdigest()}
    assert result.stdout == (b"done\n" if len(up.arrivals()) == 2 else b"later\n")


@pytest.mark.parametrize("words", [["-T", "-"], ["-T", "."], ["-X", "PUT", "-T", "-"]], ids=" ".join)
def test_standard_input_is_never_repeated_empty(up, curtsy, words):
    up.on("/*", told(1, body=b"later\n"), OK)
    result = curtsy.curl(*words, up.url("/data"), stdin=b"precious")
    assert {arrival.body_sha256 for arrival in up.arrivals()} == {hashlib.sha256(b"precious").hexdigest()}
    assert result.stdout == (b"done\n" if len(up.arrivals()) == 2 else b"later\n")


@pytest.mark.slow(2)
def test_an_upload_that_was_refused_before_it_was_read(up, curtsy, tmp_path):
    """Expect: 100-continue: the refusal comes before the body, which is whole if it is sent at all."""
    content = b"0123456789abcdef" * 100_000
    (tmp_path / "file").write_bytes(content)
    up.on("/data", Answer(429, [("Retry-After", "1")], b"later\n", read_body=False), OK)
    result = curtsy.curl("-T", str(tmp_path / "file"), up.url("/data"))
    bodies = {arrival.body_sha256 for arrival in up.arrivals() if arrival.body_complete}
    assert bodies <= {hashlib.sha256(content).hexdigest()}
    assert result.stdout == (b"done\n" if bodies else b"later\n")


@pytest.mark.slow(2)
@pytest.mark.parametrize("words", [["-X", "PUT", "-d", "x"], ["-X", "PUT", "--json", "{}"]], ids=" ".join)
def test_bodies_in_memory_are_repeated_byte_for_byte(up, curtsy, words):
    up.on("/data", told(1), OK)
    assert curtsy.curl(*words, up.url("/data")).all == (0, b"done\n", b"")
    first, second = up.arrivals()
    assert first.body_sha256 == second.body_sha256


@pytest.mark.slow(2)
def test_a_form_is_repeated_whole_or_not_at_all(up, curtsy):
    up.on("/data", told(1, body=b"later\n"), OK)
    result = curtsy.curl("-X", "PUT", "-F", "a=b", "-F", "c=d", up.url("/data"))
    # Its boundary is drawn anew for each attempt, and is always as long.
    assert len({arrival.body_length for arrival in up.arrivals()}) == 1
    assert result.output == (0, b"done\n" if len(up.arrivals()) == 2 else b"later\n")


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    "condition", ['If-Match: "v1"', "If-None-Match: *", "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT"]
)
def test_conditional_writes_are_repeated_only_after_a_clear_refusal(up, curtsy, condition):
    up.on("/refused", told(1), OK)
    up.on("/gateway", Answer(504), OK)
    send = lambda path: curtsy.curl("-X", "PUT", "-d", "x", "-H", condition, up.url(path), set="base_delay=20ms")
    assert send("/refused").stdout == b"done\n"
    assert send("/gateway").rc == 0
    assert (len(up.arrivals("/refused")), len(up.arrivals("/gateway"))) == (2, 1)


def test_a_write_is_repeated_at_most_once_after_a_504(up, curtsy):
    up.on("/*", 504)
    curtsy.curl("-X", "PUT", "-d", "x", up.url("/write"), set="base_delay=20ms")
    curtsy.curl(up.url("/read"), set="base_delay=20ms")
    assert (len(up.arrivals("/write")), len(up.arrivals("/read"))) == (2, 5)


@pytest.mark.parametrize("field", ["x-should-retry", "Stripe-Should-Retry"])
def test_a_server_may_forbid_it(up, curtsy, field):
    up.on("/data", Answer(503, [("Retry-After", "1"), (field, "false")], b"never\n"), OK)
    assert curtsy.curl(up.url("/data")).all == (0, b"never\n", b"")
    assert len(up.arrivals()) == 1


@pytest.mark.parametrize("reset", [False, True])
def test_nothing_is_repeated_once_a_byte_was_delivered(up, curtsy, reset):
    up.on("/data", Answer(200, body=b"x" * 5000, cut_body=3000, reset=reset), OK)
    bare = curtsy.bare(["curl", "-sS", up.url("/data")])
    up.on("/data", Answer(200, body=b"x" * 5000, cut_body=3000, reset=reset), OK)
    governed = curtsy.curl(up.url("/data"), config="[127.0.0.1]\nbase_delay = 20ms\n")
    assert governed.all == bare.all and governed.rc != 0
    assert len(up.arrivals()) == 2


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    "fault",
    [
        Answer(429, [("Retry-After", "1")], b"x" * 5000, cut_body=100),
        Answer(429, [("Retry-After", "1")], b"x" * 5000, cut_body=100, reset=True),
        Answer(429, [("Retry-After", "1"), ("Content-Encoding", "nonsense")], b"x" * 50),
    ],
    ids=["closed", "reset", "undecodable"],
)
def test_a_complete_header_block_decides_whatever_follows_it(up, curtsy, fault):
    up.on("/data", fault, OK)
    assert curtsy.curl("--compressed", up.url("/data")).all == (0, b"done\n", b"")
    not_early(up.waits(), 1.0)


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:1", "socks5://user:word@localhost:1", "[::1]:1"])
def test_a_proxy_on_loopback_that_refuses_is_not_asked_again(curtsy, proxy):
    result = curtsy.curl("-x", proxy, "http://origin.test/", env={"CURTSY_LOG": "info"})
    assert result.rc in (7, 97)
    assert "attempt 2" not in result.errors and "waiting" not in result.errors
