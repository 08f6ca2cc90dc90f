# SPDX-License-Identifier: MIT
"""Whom a request is charged to, and what is counted: the bucket of the place that libcurl really
asks, whatever the program calls it."""

import json

import pytest

from harness import told
from upstream import Answer

FOUR = Answer(200, [], b"four")
SOON = Answer(429, [("Retry-After-Ms", "20")], b"no")


def charged(curtsy):
    """Requests counted, by bucket."""
    return {bucket["bucket"]: bucket["curtsy_requests_total"] for bucket in curtsy.status()["buckets"]}


# ---- where to ----


@pytest.mark.parametrize("order", [["curlu", "url"], ["url", "curlu"]], ids=" then ".join)
def test_a_url_handle_goes_before_a_url(upstream, curtsy, order):
    """Whichever was set last: so libcurl has it."""
    servers = {"curlu": upstream(), "url": upstream()}
    for server in servers.values():
        server.on("/data", FOUR)
    words = [f"{word}={servers[word].url('/data')}" for word in order]
    assert b"perform 0 status 200" in curtsy.callbacks(*words, "perform").stdout
    assert [len(servers[word].arrivals()) for word in ("curlu", "url")] == [1, 0]
    assert charged(curtsy) == {servers["curlu"].authority: 1}


@pytest.mark.parametrize("query", ["", "?next=http://other.test/", "?next=https://other.test/"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_default_protocol_is_of_urls_without_one(curtsy, scheme, query):
    """A scheme inside a query is none.  Nobody has to answer: the request is counted when it starts."""
    words = ["--proto-default", scheme, f"localhost/data{query}", "--connect-to", "::127.0.0.1:1"]
    assert curtsy.curl(*words).rc == 7
    assert charged(curtsy) == {f"localhost:{443 if scheme == 'https' else 80}": 1}


def test_a_default_protocol_leaves_urls_with_one_alone(up, curtsy):
    up.on("/data", FOUR)
    assert curtsy.curl("--proto-default", "https", up.url("/data")).all == (0, b"four", b"")
    assert charged(curtsy) == {up.authority: 1}


def test_a_name_and_its_punycode_are_one(up, curtsy):
    """As are upper and lower case."""
    up.on("/data", FOUR)
    encoded = f"xn--bcher-kva.example:{up.port}"
    for name in ("bücher.example", "xn--bcher-kva.example", "BÜCHER.example", "XN--BCHER-KVA.example"):
        result = curtsy.curl("--connect-to", f"::{up.authority}", f"http://{name}:{up.port}/data")
        if result.rc == 3:
            pytest.skip("this libcurl knows no international names")
        assert result.all == (0, b"four", b"")
    assert charged(curtsy) == {encoded: 4}


def from_here_to_localhost(upstream, answer):
    """A server, on 127.0.0.1, whose redirect leads to localhost, another host for all that libcurl
    knows; and the bucket of that one."""
    here, there = upstream(), upstream()
    here.on("/data", Answer(302, [("Location", there.url("/data", host="localhost"))]))
    there.on("/data", answer)
    return here, f"localhost:{there.port}"


@pytest.mark.parametrize("mode", ["off", "observe", "enforce"])
def test_a_hop_is_charged_to_the_host_it_went_to_unless_that_is_nobodys(upstream, curtsy, mode):
    here, there = from_here_to_localhost(upstream, FOUR)
    config = f"[default]\nrate = 100/h\nburst = 50\n[localhost]\nmode = {mode}\n"
    assert curtsy.curl("-L", here.url("/data"), config=config).all == (0, b"four", b"")
    names = {bucket["bucket"] for bucket in curtsy.status()["buckets"]}
    of_hop = {"off": set(), "observe": {f"{there} (observed)"}, "enforce": {there}}
    assert names == {here.authority} | of_hop[mode]


@pytest.mark.parametrize("mode", ["off", "enforce"])
def test_a_refusal_behind_a_redirect_is_told_to_those_who_ask_there(upstream, curtsy, mode):
    """With mode = off nobody is held back there, though the redirect came from a governed host."""
    here, there = from_here_to_localhost(upstream, told(7200))
    result = curtsy.curl("-L", here.url("/data"), config=f"[localhost]\nmode = {mode}\n")
    assert result.output == (0, b"slow down\n")
    blocked = {bucket["bucket"] for bucket in curtsy.status()["buckets"] if bucket["curtsy_blocked_seconds"] > 0}
    assert blocked == (set() if mode == "off" else {there})


# ---- what is counted ----


def told_of(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_observing_counts_what_it_would_have_done_and_gives_up_nothing(up, curtsy):
    up.on("/data", SOON, FOUR)
    log = curtsy.folder / "log"
    env = {"CURTSY_LOG": "info", "CURTSY_LOG_FILE": str(log), "CURTSY_LOG_FORMAT": "json"}
    assert curtsy.curl(up.url("/data"), config="[default]\nmode = observe\n", env=env).output == (0, b"no")
    (bucket,) = curtsy.status()["buckets"]
    assert (bucket["observed_retries"], bucket["curtsy_refusals_total"]) == (1, {"429": 1})
    assert (bucket["curtsy_giveups_total"], bucket["curtsy_retries_total"]) == ({}, {})
    (line,) = told_of(log)
    assert (line["event"], line["status"], line["cause"]) == ("would_retry", 429, "retry_after")


@pytest.mark.parametrize("bound, cause", [("max_attempts = 2", "max_attempts"), ("retry_reserve = 1", "retry_budget")])
def test_the_cause_of_giving_up_is_the_bound_that_was_met(up, curtsy, bound, cause):
    up.on("/data", Answer(503, [], b"no"))
    log = curtsy.folder / "log"
    env = {"CURTSY_LOG": "info", "CURTSY_LOG_FILE": str(log), "CURTSY_LOG_FORMAT": "json"}
    config = f"[default]\nbase_delay = 1ms\n{bound}\n"
    assert curtsy.curl(up.url("/data"), config=config, env=env).output == (0, b"no")
    (bucket,) = curtsy.status()["buckets"]
    assert bucket["curtsy_giveups_total"] == {cause: 1}
    assert [line["cause"] for line in told_of(log) if line["event"] == "gave_up"] == [cause]
    assert len(up.arrivals()) == 2


def test_what_is_only_observed_holds_up_nobody_else(curtsy, up):
    up.on("/data", b"four")
    observed = "[default]\nmode = observe\nquota = 1/h\n"
    for _ in range(4):
        assert curtsy.curl(up.url("/data"), config=observed).stdout == b"four"
    assert curtsy.curl(up.url("/data"), config="", timeout=30).stdout == b"four"
    buckets = {bucket["bucket"]: bucket for bucket in curtsy.status()["buckets"]}
    assert set(buckets) == {up.authority, f"{up.authority} (observed)"}
    assert buckets[up.authority]["limits"] == []
    assert buckets[f"{up.authority} (observed)"]["observed_waits"] == 3


def test_a_request_is_counted_in_each_bucket_that_it_draws_on(curtsy, up):
    for path in ["/search/1", "/search/2", "/other"]:
        up.on(path, b"found")
    config = f"[{up.authority}/search]\nquota = 600/min\n"
    for path in ["/search/1", "/search/2", "/other"]:
        assert curtsy.curl(up.url(path), config=config).stdout == b"found"
    requests = {bucket["bucket"]: bucket["curtsy_requests_total"] for bucket in curtsy.status()["buckets"]}
    assert requests == {up.authority: 3, f"{up.authority}/search": 2}
