# SPDX-License-Identifier: MIT
"""The operator's commands: curtsy mode, hold, release, refill, reload."""

import json
import os
import re
import time

import pytest

from harness import HANG

ABSENT = "nothing has run under Curtsy here yet"


def buckets(curtsy):
    """What `curtsy status` shows, by name."""
    return {bucket["bucket"]: bucket for bucket in curtsy.status()["buckets"]}


def held(curtsy):
    """The buckets that somebody stops."""
    return {name for name, bucket in buckets(curtsy).items() if bucket["curtsy_blocked_seconds"] > 0}


def modes(curtsy):
    """What `curtsy mode` shows: (for everything, {bucket: mode})."""
    result = curtsy.tool("mode", "--json")
    assert result.rc == 0, result.errors
    document = json.loads(result.stdout)
    return document["mode"], {bucket["bucket"]: bucket["mode"] for bucket in document["buckets"]}


def does(curtsy, *words, env=None):
    """The lines that a command prints after the segment's."""
    result = curtsy.tool(*words, env=env)
    assert (result.rc, result.stderr) == (0, b""), result.errors
    first, *rest = result.text.splitlines()
    assert first.startswith(f"segment {curtsy.segment}, owned by ")
    return rest


def refuses(curtsy, status, *words, env=None):
    """What a command says that does nothing."""
    result = curtsy.tool(*words, env=env)
    assert result.rc == status, result.text
    assert result.errors.startswith(f"curtsy {words[0]}: ")
    return result.errors


def until(condition):
    """Waits for it; the bound only guards against hangs."""
    end = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < end, "it never came to be so"
        time.sleep(0.02)


def waiting(curtsy):
    """Each transfer that waits now, as `curtsy ps` tells."""
    result = curtsy.tool("ps", "--json", "--segment", os.fspath(curtsy.segment))
    return [waiter for process in json.loads(result.stdout)["processes"] for waiter in process["waiters"]]


def operators_events(curtsy):
    result = curtsy.tool("events", "--json")
    assert result.rc == 0, result.errors
    return [event["endpoint"] for event in map(json.loads, result.text.splitlines()) if event["event"] == "operator"]


# ---- mode ----


def test_mode_without_a_segment(curtsy):
    result = curtsy.tool("mode")
    assert result.rc == 0 and "not there yet" in result.text and "\nmode auto for everything in " in result.text
    assert modes(curtsy) == ("auto", {})
    assert not curtsy.segment.exists()


def test_mode_for_everything(curtsy):
    (line,) = does(curtsy, "mode", "off")
    assert line == f"mode off for everything in {curtsy.segment} until it is changed"
    assert modes(curtsy) == ("off", {})
    assert does(curtsy, "mode") == [line]
    (line,) = does(curtsy, "mode", "auto")
    assert line.startswith("mode auto for everything")
    assert modes(curtsy) == ("auto", {})


def test_mode_with_an_end(curtsy):
    (line,) = does(curtsy, "mode", "observe", "--for", "10min")
    assert re.fullmatch(r"mode observe for everything in \S+ until (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d \(10m\)", line)
    document = json.loads(curtsy.tool("mode", "--json").stdout)
    assert document["segment"] == str(curtsy.segment) and document["mode"] == "observe"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["until"])


def test_mode_ends_by_itself(curtsy):
    curtsy.tool("mode", "off", "--for", "50ms")
    curtsy.tool("mode", "off", "api.example.com", "--for", "50ms")
    until(lambda: modes(curtsy) == ("auto", {}))
    assert does(curtsy, "mode")[0].startswith("mode auto ")


def test_mode_for_a_host(curtsy):
    (line,) = does(curtsy, "mode", "off", "API.example.com.", "--for", "1h")
    assert line.startswith("mode off for api.example.com:443 until ") and line.endswith(" (1h)")
    does(curtsy, "mode", "observe", "api.example.com:8443")
    assert modes(curtsy) == ("auto", {"api.example.com:443": "off", "api.example.com:8443": "observe"})
    everything, *hosts = does(curtsy, "mode")
    assert everything.startswith("mode auto ") and len(hosts) == 2
    does(curtsy, "mode", "enforce", "api.example.com:8443")
    assert modes(curtsy)[1]["api.example.com:8443"] == "enforce"
    does(curtsy, "mode", "auto", "api.example.com")
    assert modes(curtsy) == ("auto", {})


def test_mode_auto_of_an_unknown_host(curtsy):
    assert ABSENT not in refuses(curtsy, 1, "mode", "auto", "api.example.com")
    assert "no bucket of api.example.com" in refuses(curtsy, 1, "mode", "auto", "api.example.com")


@pytest.mark.parametrize(
    "words, expected",
    [
        (["on"], "on: expected off, observe, enforce or auto"),
        (["off", "host", "more"], ""),
        (["off", "http://host/"], "http://host/: expected HOST"),
        (["off", "*.example.com"], "*.example.com: expected HOST"),
        (["off", "host:0"], "host:0: expected HOST"),
        (["off", "--for", "10"], "10: expected a duration"),
        (["off", "--for", "0s"], "0s: expected a time above 0"),
        (["auto", "--for", "1s"], "auto"),
        (["--for", "1s"], "which mode"),
        (["off", "--json"], "--json"),
    ],
)
def test_mode_misuse(curtsy, words, expected):
    assert expected in refuses(curtsy, 2, "mode", *words)
    assert not curtsy.segment.exists()


def notes(lines):
    return [line for line in lines if line.startswith("note: ")]


def test_mode_says_which_source_is_less_intrusive(curtsy):
    curtsy.configure("[default]\nmax_attempts = 2\n\n[api.example.com]\nmode = observe\n")
    observes = f"{curtsy.config_file}:5"
    (note,) = notes(does(curtsy, "mode", "enforce"))
    assert observes in note and "observe" in note and "least intrusive wins" in note
    (note,) = notes(does(curtsy, "mode", "enforce", "api.example.com"))
    assert observes in note
    assert notes(does(curtsy, "mode", "enforce", "other.example.com")) == []
    assert notes(does(curtsy, "mode", "observe")) == []
    (note,) = notes(does(curtsy, "mode", "observe", env={"CURTSY_MODE": "off"}))
    assert "CURTSY_MODE" in note and "off" in note
    assert notes(does(curtsy, "mode", "off", env={"CURTSY_MODE": "off"})) == []


def test_mode_of_a_host_under_one_for_everything(curtsy):
    does(curtsy, "mode", "off")
    (note,) = notes(does(curtsy, "mode", "observe", "api.example.com"))
    assert "everything" in note and "off" in note


@pytest.mark.parametrize("words", [["mode", "off"], ["mode", "enforce", "host"], ["hold", "host", "1s"], ["reload"]])
def test_a_segment_that_cannot_be_used(curtsy, words):
    curtsy.segment.mkdir()
    errors = refuses(curtsy, 1, *words)
    assert str(curtsy.segment) in errors
    assert ("/etc/curtsy/off" in errors) == (words[0] == "mode")
    curtsy.segment.rmdir()


def test_another_segment(curtsy):
    other = curtsy.folder / "other"
    result = curtsy.tool("mode", "off", "--segment", os.fspath(other))
    assert result.rc == 0 and str(other) in result.text
    assert other.exists() and not curtsy.segment.exists()
    other.unlink()


def test_none_is_made_in_another_users_name(curtsy):
    """He could not use it."""
    name = "/curtsy.v1.4294901760"
    assert not os.path.exists("/dev/shm" + name)
    result = curtsy.tool("mode", "off", "--segment", name)
    is_made = os.path.exists("/dev/shm" + name)
    if is_made:
        os.unlink("/dev/shm" + name)
    assert result.rc == 1 and name in result.errors and not is_made


def test_root_operates_on_anybodys(curtsy):
    if os.geteuid() != 0:
        pytest.skip("takes root")
    does(curtsy, "hold", "api.example.com", "1h")
    os.chown(curtsy.segment, 65534, 65534)
    for command in ["mode observe", "hold other.example.com 1h", "reload", "release api.example.com", "mode"]:
        result = curtsy.tool(*command.split())
        assert result.rc == 0 and "owned by root" not in result.text, result.errors
    assert curtsy.segment.stat().st_uid == 65534
    assert held(curtsy) == {"other.example.com:443"}


# ---- which buckets ----


def test_a_host_before_its_first_request(curtsy):
    does(curtsy, "hold", "api.example.com", "1h")
    assert held(curtsy) == {"api.example.com:443"}


@pytest.mark.parametrize("text, bucket", [("::1", "[::1]:443"), ("[::1]", "[::1]:443"), ("[::1]:8443", "[::1]:8443")])
def test_an_address(curtsy, text, bucket):
    does(curtsy, "hold", text, "1h")
    assert held(curtsy) == {bucket}
    does(curtsy, "release", "[0::1]")
    assert held(curtsy) == set()


def test_a_host_of_a_group(curtsy):
    curtsy.configure('[api.example.com "both"]\nhosts = uploads.example.com:8443\nquota = 5/s\n')
    (line,) = does(curtsy, "hold", "api.example.com", "1h")
    assert line.startswith('{api.example.com "both"}: held until ')
    assert held(curtsy) == {'{api.example.com "both"}'}
    does(curtsy, "release", "uploads.example.com")
    assert held(curtsy) == set()
    does(curtsy, "hold", '{api.example.com "both"}', "1h")
    assert held(curtsy) == {'{api.example.com "both"}'}


def test_a_group_of_a_path(up, curtsy):
    """Found from the host alone, though only requests to that path draw on it."""
    curtsy.configure(f"[127.0.0.1:{up.port}/v1/*/search]\nhosts = other.example.com\nquota = 5/s\n")
    group = f"{{127.0.0.1:{up.port}/v1/*/search}}"
    assert curtsy.curl(up.url("/v1/x/search")).rc == 0
    assert group in buckets(curtsy)
    for name in "127.0.0.1", up.authority, "other.example.com", group:
        does(curtsy, "hold", name, "1h")
        assert group in held(curtsy)
        does(curtsy, "release", name)
        assert group not in held(curtsy)
    does(curtsy, "hold", "localhost", "1h")
    assert held(curtsy) == {"localhost:443"}


def test_every_bucket_of_a_host(up, curtsy):
    """Of its ports, of its paths, and of what is only observed."""
    curtsy.configure("[127.0.0.1]\nquota = 100/s\n[127.0.0.1/search]\nquota = 50/s\n")
    assert curtsy.curl(up.url("/search/x")).rc == 0
    assert curtsy.curl(up.url("/search/x"), env={"CURTSY_MODE": "observe"}).rc == 0
    there = {up.authority, f"{up.authority}/search", f"{up.authority} (observed)", f"{up.authority}/search (observed)"}
    assert set(buckets(curtsy)) == there
    does(curtsy, "hold", up.authority, "1h")
    assert held(curtsy) == there
    does(curtsy, "release", up.authority)
    assert held(curtsy) == set()
    does(curtsy, "hold", "127.0.0.1", "1h")
    assert held(curtsy) == there | {"127.0.0.1:443"}
    does(curtsy, "release", "127.0.0.1:443")
    assert held(curtsy) == there
    does(curtsy, "release", f"{up.authority}/search")
    assert held(curtsy) == {up.authority, f"{up.authority} (observed)"}


@pytest.mark.parametrize("other", ["127.0.0.10:443", "a.example:443", "example.com.evil:443", "example.co:443"])
def test_another_host(curtsy, other):
    does(curtsy, "hold", other, "1h")
    for host in "127.0.0.1", "example", "example.com", "127.0.0.1:44", "com":
        refuses(curtsy, 1, "release", host)
    assert held(curtsy) == {other}


# ---- hold, release, refill ----


def test_of_two_holds_the_longer_counts(curtsy):
    does(curtsy, "hold", "api.example.com", "1h")
    (line,) = does(curtsy, "hold", "api.example.com", "10min")
    assert "(10m); blocked until " in line and line.endswith("already, by the operator")
    assert buckets(curtsy)["api.example.com:443"]["curtsy_blocked_seconds"] > 3000
    (line,) = does(curtsy, "release", "api.example.com")
    assert line.startswith("api.example.com:443: released; was blocked until ") and line.endswith("by the operator")
    assert does(curtsy, "release", "api.example.com") == ["api.example.com:443: was not blocked"]


@pytest.mark.parametrize(
    "words", [[], ["host"], ["host", "5"], ["host", "0s"], ["host", "-1s"], ["host", "1s", "more"], ["http://host", "1s"]]
)
def test_hold_misuse(curtsy, words):
    refuses(curtsy, 2, "hold", *words)
    assert not curtsy.segment.exists()


@pytest.mark.parametrize("words", [["release", "host"], ["refill", "host"], ["refill"]])
def test_nothing_is_made_to_be_released(curtsy, words):
    assert ABSENT in refuses(curtsy, 1, *words)
    assert not curtsy.segment.exists()
    does(curtsy, "hold", "other", "1h")
    if len(words) > 1:
        assert "no bucket of host" in refuses(curtsy, 1, *words)
    assert set(buckets(curtsy)) == {"other:443"}


def test_release_lifts_the_servers_word(up, curtsy):
    up.on("/told", {"status": 429, "headers": [["Retry-After", "1000"]]})
    assert curtsy.curl(up.url("/told"), set="max_attempts=1").rc == 0
    assert held(curtsy) == {up.authority}
    (line,) = does(curtsy, "release", up.authority)
    assert line.endswith("by the server's word")
    assert held(curtsy) == set()


def test_refill(up, curtsy):
    curtsy.configure("[127.0.0.1]\nquota = 10/h\nheadroom = 50%\nburst = 5\n")
    for _ in range(5):
        assert curtsy.curl(up.url("/")).rc == 0
    assert buckets(curtsy)[up.authority]["limits"][0]["tokens"] < 1
    (line,) = does(curtsy, "refill", "127.0.0.1")
    assert re.fullmatch(rf"{up.authority}: refilled, 5\.0 of 5 tokens", line)
    assert buckets(curtsy)[up.authority]["limits"][0]["tokens"] > 4.9
    does(curtsy, "hold", up.authority, "1h")
    (line,) = does(curtsy, "refill")
    assert "still blocked until " in line and line.endswith("by the operator")


# ---- reload ----


def test_reload(curtsy):
    (line,) = does(curtsy, "reload")
    assert "reads its configuration again" in line
    assert operators_events(curtsy) == ["reload"]


def test_reload_refuses_a_configuration_with_faults(curtsy):
    curtsy.configure("[default]\nquota = banana\n")
    result = curtsy.tool("reload")
    assert (result.rc, result.stdout) == (1, b"")
    assert f"{curtsy.config_file}:2: error: quota = banana: expected " in result.errors and "--force" in result.errors
    assert not curtsy.segment.exists()
    result = curtsy.tool("reload", "--force")
    assert result.rc == 0 and "banana" in result.errors
    assert operators_events(curtsy) == ["reload"]


# ---- what is left on record ----


def test_each_command_is_an_event(curtsy):
    commands = [
        "hold api.example.com 10min",
        "mode off",
        "mode observe api.example.com for 10min",
        "refill",
        "refill api.example.com:443",
        "release api.example.com",
    ]
    for command in commands:
        does(curtsy, *command.replace(" for ", " --for ").split())
    refuses(curtsy, 1, "release", "unknown.example.com")
    assert operators_events(curtsy) == commands


# ---- what becomes of programs ----


# Long enough that nothing goes by itself while a test runs.
PATIENT = "[127.0.0.1]\nmax_wait = 10h\n"


class Storm:
    """So many transfers that all wait, by threads of a few processes."""

    def __init__(self, curtsy, up, count):
        self._curtsy = curtsy
        url = up.url("/storm")
        up.on("/storm", 200)
        shares = [min(50, count - at) for at in range(0, count, 50)]
        self._processes = [curtsy.start([curtsy.victim("threads"), url, str(share), "1"]) for share in shares]
        self._shares = shares
        until(lambda: len(waiting(curtsy)) == count)

    def ends_well(self):
        results = [process.wait() for process in self._processes]
        assert [result.text for result in results] == [f"good {share} bad 0\n" for share in self._shares]
        assert waiting(self._curtsy) == []


def lets_go(curtsy, up, count, *words):
    """A storm that waits for a hold, until the operator says so."""
    curtsy.configure(PATIENT)
    does(curtsy, "hold", up.authority, "5h")
    storm = Storm(curtsy, up, count)
    assert {waiter["cause"] for waiter in waiting(curtsy)} == {"hold"}
    assert up.arrivals() == []
    does(curtsy, *words)
    storm.ends_well()
    assert len(up.arrivals()) == count


@pytest.mark.parametrize("mode", ["off", "observe"])
@pytest.mark.parametrize("host", [False, True])
def test_mode_lets_go_who_waits(up, curtsy, mode, host):
    lets_go(curtsy, up, 20, "mode", mode, *([up.authority] if host else []))


def test_release_lets_go_who_waits(up, curtsy):
    lets_go(curtsy, up, 20, "release", up.authority)


@pytest.mark.alone
def test_a_hundred_curls_let_go_and_later_ones_wait(up, curtsy):
    curtsy.configure(PATIENT + "rate = 20/h\nburst = 1\n")
    assert curtsy.curl(up.url("/first")).rc == 0
    curls = [curtsy.start(["curl", "-sS", "-o", "/dev/null", up.url("/storm")]) for _ in range(100)]
    until(lambda: len(waiting(curtsy)) == 100)
    does(curtsy, "mode", "off")
    assert [curl.wait().all for curl in curls] == [(0, b"", b"")] * 100
    assert len(up.arrivals("/storm")) == 100
    assert curtsy.curl(up.url("/meanwhile")).rc == 0

    does(curtsy, "mode", "auto")
    later = [curtsy.start(["curl", "-sS", "-o", "/dev/null", up.url("/later")]) for _ in range(3)]
    until(lambda: len(waiting(curtsy)) == 3)
    assert up.arrivals("/later") == []
    does(curtsy, "mode", "off", "127.0.0.1", "--for", "1h")
    assert [curl.wait().rc for curl in later] == [0, 0, 0]


def test_mode_of_a_host_leaves_others(upstream, curtsy):
    curtsy.configure(PATIENT)
    one, other = upstream(), upstream()
    for up in one, other:
        does(curtsy, "hold", up.authority, "5h")
    curls = [curtsy.start(["curl", "-sS", "-o", "/dev/null", up.url("/")]) for up in (one, other)]
    until(lambda: len(waiting(curtsy)) == 2)
    does(curtsy, "mode", "off", one.authority)
    assert curls[0].wait().rc == 0
    assert [waiter["bucket"] for waiter in waiting(curtsy)] == [other.authority]
    assert other.arrivals() == [] and curls[1].runs
    does(curtsy, "release", "127.0.0.1")
    assert curls[1].wait().rc == 0


def test_a_hold_stops_those_that_wait_for_their_turn(up, curtsy):
    curtsy.configure(PATIENT + "rate = 60/h\nburst = 1\n")
    assert curtsy.curl(up.url("/before")).rc == 0
    storm = Storm(curtsy, up, 3)
    assert {waiter["cause"] for waiter in waiting(curtsy)} == {"quota"}
    does(curtsy, "hold", up.authority, "5h")
    until(lambda: {waiter["cause"] for waiter in waiting(curtsy)} == {"hold"})
    does(curtsy, "release", up.authority)
    until(lambda: {waiter["cause"] for waiter in waiting(curtsy)} == {"quota"})
    assert up.arrivals("/storm") == []
    does(curtsy, "mode", "off")
    storm.ends_well()


def test_a_refill_lets_a_bucket_go(up, curtsy):
    """As many as the bucket holds, and no more."""
    curtsy.configure(PATIENT + "rate = 5/h\nburst = 5\n")
    for _ in range(5):
        assert curtsy.curl(up.url("/before")).rc == 0
    Storm(curtsy, up, 8)
    does(curtsy, "refill", up.authority)
    until(lambda: len(waiting(curtsy)) == 3)
    assert len(up.wait_for(5, path="/storm")) == 5
    assert len(waiting(curtsy)) == 3


def test_a_quota_changed_under_those_that_wait(up, curtsy):
    curtsy.configure(PATIENT + "rate = 10/h\nburst = 1\n")
    assert curtsy.curl(up.url("/before")).rc == 0
    storm = Storm(curtsy, up, 10)
    curtsy.configure(PATIENT + "rate = 1000000/h\nburst = 1\n")
    does(curtsy, "reload")
    storm.ends_well()
    assert len(up.arrivals("/storm")) == 10


def test_off_by_configuration_for_those_that_wait(up, curtsy):
    curtsy.configure(PATIENT)
    does(curtsy, "hold", up.authority, "5h")
    storm = Storm(curtsy, up, 10)
    curtsy.configure("[127.0.0.1]\nmode = off\n")
    does(curtsy, "reload")
    storm.ends_well()
