# SPDX-License-Identifier: MIT
"""Looking at what happens: curtsy ps and curtsy events."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from harness import HANG, compile_c, told
from upstream import Answer

SMALL = "[curtsy]\nsegment_size = 256KiB\n"  # its ring has room for 64 events


def until(condition):
    """Waits for it and gives what it was; the bound only guards against hangs."""
    end = time.monotonic() + HANG
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < end, "it never came to be so"
        time.sleep(0.02)


# ---- ps ----


def ps(curtsy, *words, env=None):
    """{pid: what `curtsy ps` tells of it}."""
    result = curtsy.tool("ps", "--json", *words, env=env)
    return {process["pid"]: process for process in json.loads(result.stdout)["processes"]}


def waits(curtsy, process):
    """What each transfer of a process waits for, once any does."""
    return until(lambda: ps(curtsy, str(process.pid)).get(process.pid, {}).get("waiters"))


def hold(curtsy, up, time="80s"):
    result = curtsy.tool("hold", up.authority, time)
    assert result.rc == 0, result.errors


def sleeper(curtsy, **options):
    """A program under Curtsy that makes no curl call."""
    process = curtsy.start(["sleep", "1000"], **options)
    until(lambda: process.pid in ps(curtsy))
    return process


def test_ps_shows_each_waiter(up, curtsy):
    hold(curtsy, up)
    began = time.time()
    curl = curtsy.start(["curl", "-sS", up.url("/v1/things?key=secret"), "-H", "Authorization: Bearer secret"])
    (waiter,) = waits(curtsy, curl)
    assert waiter["endpoint"] == f"GET {up.authority}/v1/things" and waiter["bucket"] == up.authority
    assert waiter["cause"] == "hold"
    assert 0 <= waiter["waited_s"] <= time.time() - began + 1 and 0 < waiter["left_s"] <= 80
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", waiter["since"])
    assert waiter["since"] < waiter["until"]

    process = ps(curtsy)[curl.pid]
    assert process["program"] == "curl" and process["mode"] == "enforce" and process["mode_by"] is None
    assert process["segment"] == str(curtsy.segment) and process["config"] == str(curtsy.config_file)
    assert not process["private"] and not process["replaced"] and not process["segment_replaced"]

    result = curtsy.tool("ps")
    first, _, heading, *lines = result.text.splitlines()
    assert first.startswith(f"segment {curtsy.segment}, owned by ") and heading.split()[0] == "PID"
    (at,) = [at for at, line in enumerate(lines) if line.split()[0] == str(curl.pid)]
    assert {str(curtsy.segment), str(curtsy.config_file), "curl", "enforce"} <= set(lines[at].split())
    assert f"waits for GET {up.authority}/v1/things (bucket {up.authority}): hold, since " in lines[at + 1]
    assert b"secret" not in result.stdout


def test_ps_tells_waiters_of_threads_and_processes_apart(up, curtsy):
    hold(curtsy, up)
    many = curtsy.start([curtsy.victim("threads"), up.url("/many"), "5", "1"])
    one = curtsy.start(["curl", "-sS", up.url("/one")])
    until(lambda: len(waits(curtsy, many)) == 5)
    assert [waiter["endpoint"] for waiter in waits(curtsy, many)] == [f"GET {up.authority}/many"] * 5
    assert [waiter["endpoint"] for waiter in waits(curtsy, one)] == [f"GET {up.authority}/one"]
    began = [waiter["since"] for waiter in waits(curtsy, many)]
    assert began == sorted(began)


def test_ps_does_not_show_waiters_of_the_dead(up, curtsy):
    hold(curtsy, up)
    killed, alive = (curtsy.start(["curl", "-sS", up.url("/")]) for _ in range(2))
    waits(curtsy, killed), waits(curtsy, alive)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert killed.pid not in ps(curtsy)
    assert len(ps(curtsy)[alive.pid]["waiters"]) == 1
    result = curtsy.tool("ps", str(killed.pid))
    assert (result.rc, result.stdout) == (1, b"")
    assert result.errors == f"curtsy ps: {killed.pid}: no such process\n"


def test_ps_of_a_waiter_for_the_servers_word(up, curtsy):
    up.on("/", told(50))
    curl = curtsy.start(["curl", "-sS", up.url("/")])
    (waiter,) = waits(curtsy, curl)
    assert waiter["cause"] == "retry_after" and waiter["left_s"] > 30


def test_ps_knows_the_version(curtsy):
    version = curtsy.tool("--version").text.split()[1]
    pid = sleeper(curtsy).pid
    process = ps(curtsy)[pid]
    assert (process["version"], process["replaced"]) == (version, False)
    assert process["program"] == "sleep"
    assert process["segment"] is None and not process["private"]


@pytest.mark.parametrize("how", ["rename", "delete"])
def test_ps_knows_a_library_that_was_replaced(curtsy, how):
    """An update of the package leaves programs with the old one."""
    copy = curtsy.folder / "libcurtsy.so"
    shutil.copy2(curtsy.library, copy)
    curtsy.library = copy
    process = sleeper(curtsy)
    assert not ps(curtsy)[process.pid]["replaced"]
    if how == "rename":
        shutil.copy2(copy, curtsy.folder / "new")
        os.rename(curtsy.folder / "new", copy)
    else:
        copy.unlink()
    after = ps(curtsy)[process.pid]
    assert after["replaced"] and after["version"] in (None, curtsy.tool("--version").text.split()[1])
    assert "(replaced since)" in curtsy.tool("ps", str(process.pid)).text


def test_ps_of_a_library_without_a_version(curtsy):
    """What it is named counts; what it says of itself is missing."""
    curtsy.library = compile_c("int nothing;", curtsy.folder / "libcurtsy.so", "-shared", "-fPIC")
    process = sleeper(curtsy)
    assert ps(curtsy)[process.pid]["version"] is None
    line = curtsy.tool("ps", str(process.pid)).text.splitlines()[3]
    assert line.split()[3] == "?"


def test_ps_of_a_private_budget(up, curtsy):
    curtsy.segment.mkdir()
    up.on("/", told(50))
    curl = curtsy.start(["curl", "-sS", up.url("/")])
    process = until(lambda: ps(curtsy).get(curl.pid, {}).get("private") and ps(curtsy)[curl.pid])
    assert process["segment"] is None and process["waiters"] == []
    assert " private " in curtsy.tool("ps", str(curl.pid)).text
    curtsy.segment.rmdir()


def test_ps_of_a_segment_that_was_replaced(up, curtsy):
    up.on("/", Answer(silent=True))
    curl = curtsy.start(["curl", "-sS", up.url("/")])
    up.wait_for(1)
    assert not ps(curtsy)[curl.pid]["segment_replaced"]
    curtsy.segment.unlink()
    process = ps(curtsy)[curl.pid]
    assert process["segment_replaced"] and process["segment"] in (None, str(curtsy.segment))


def loaded_files(program, library):
    """All that a program needs to run under the library."""
    lines = subprocess.run(["ldd", program, library], capture_output=True, text=True, check=True).stdout.split()
    return {word for word in lines if word.startswith("/") and not word.endswith(":")} | {program, os.fspath(library)}


@pytest.mark.no_sanitizer("its runtime is not in the other root")
def test_ps_of_a_process_in_another_root(curtsy):
    """Its files are named as we see them, and in its own root something else may have these names."""
    if os.geteuid() != 0 or not shutil.which("chroot"):
        pytest.skip("takes root, to change it")
    root, sleep = curtsy.folder / "root", os.path.realpath(shutil.which("sleep"))
    for file in loaded_files(sleep, curtsy.library):
        (root / file[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, root / file[1:])
    within = root / os.fspath(curtsy.library)[1:]
    decoy = root / os.fspath(within)[1:]
    decoy.parent.mkdir(parents=True)
    decoy.write_bytes(b"curtsy-version=99")
    preload = ["env", f"LD_PRELOAD={curtsy.library}", "chroot", root, sleep, "1000"]
    process = curtsy.start(preload, how="bare")
    until(lambda: ps(curtsy).get(process.pid, {}).get("program") == "sleep")
    told_of = ps(curtsy)[process.pid]
    assert (told_of["version"], told_of["replaced"]) == (curtsy.tool("--version").text.split()[1], False)


@pytest.mark.parametrize(
    "variable, operator, mode, by",
    [
        ("observe", None, "observe", "CURTSY_MODE"),
        (None, "observe", "observe", "the operator"),
        ("observe", "off", "off", "the operator"),
        ("observe", "enforce", "observe", "CURTSY_MODE"),
        ("nonsense", None, "enforce", None),
    ],
)
def test_ps_shows_the_mode(up, curtsy, variable, operator, mode, by):
    if operator:
        assert curtsy.tool("mode", operator).rc == 0
    up.on("/", Answer(silent=True))
    curl = curtsy.start(["curl", "-sS", up.url("/")], env={"CURTSY_MODE": variable} if variable else {})
    up.wait_for(1)
    process = ps(curtsy)[curl.pid]
    assert (process["mode"], process["mode_by"]) == (mode, by)


def test_ps_shows_the_configuration(curtsy):
    process = sleeper(curtsy, env={"CURTSY_CONFIG": "", "CURTSY_SET": "max_attempts = 2"})
    told_of = ps(curtsy)[process.pid]
    assert (told_of["config"], told_of["curtsy_set"]) == (None, True)
    assert "default layers and CURTSY_SET" in curtsy.tool("ps", str(process.pid)).text


def test_ps_names_a_script_and_no_argument(curtsy):
    script = curtsy.folder / "a-script-with-a-long-name"
    script.write_text("#!/bin/sh\nread -r line\n")
    script.chmod(0o755)
    process = curtsy.start([script, "--password=secret"], stdin=None, env={"A": "secret"})
    reader, writer = os.pipe()  # held open, so that the script goes on
    long = subprocess.Popen([script, "--password=secret"], env=curtsy.env(), stdin=reader)
    try:
        told_of = until(lambda: ps(curtsy).get(long.pid))
        assert told_of["program"] == "a-script-with-a-long-name"[:15]
        assert b"secret" not in curtsy.tool("ps").stdout
    finally:
        os.close(writer), os.close(reader)
        long.wait()
    process.wait()


def test_ps_of_a_program_with_a_long_name(curtsy):
    program = curtsy.folder / "a-program-with-a-long-name"
    shutil.copy2(shutil.which("sleep"), program)
    process = curtsy.start([program, "1000"])
    assert until(lambda: ps(curtsy).get(process.pid))["program"] == "a-program-with-a-long-name"


def test_ps_of_programs_without_curtsy(curtsy):
    bare = curtsy.start(["sleep", "1000"], how="bare")
    until(lambda: "sleep" in os.readlink(f"/proc/{bare.pid}/exe"))
    assert bare.pid not in ps(curtsy)
    result = curtsy.tool("ps", str(bare.pid))
    assert (result.rc, result.stdout) == (1, b"")
    assert f"{bare.pid} (sleep): not under Curtsy" in result.errors


def test_ps_says_why_the_library_is_missing(up, curtsy):
    """LD_PRELOAD names it, and there is none."""
    up.on("/", Answer(silent=True))
    bare = curtsy.bare_env({"LD_PRELOAD": f"{curtsy.folder}/libcurtsy.so"})
    process = subprocess.Popen(["curl", "-sS", up.url("/")], env=bare, stderr=subprocess.DEVNULL)
    try:
        up.wait_for(1)
        result = curtsy.tool("ps", str(process.pid))
        assert result.rc == 1 and "LD_PRELOAD" in result.errors
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("words", [["x"], ["0"], ["-1"], ["1", "2"], ["12x"]])
def test_ps_misuse(curtsy, words):
    result = curtsy.tool("ps", *words)
    assert (result.rc, result.stdout) == (2, b"")


def test_ps_without_any(curtsy):
    """Other tests run their own programs at the same time."""
    result = curtsy.tool("ps", "--segment", os.fspath(curtsy.segment))
    assert result.rc == 1 and "no process under Curtsy" in result.text


def unprivileged(command, env):
    """As another user."""
    return subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command],
        env=env,
        capture_output=True,
        text=True,
        timeout=HANG,
    )


@pytest.mark.no_sanitizer("another user may not write where it reports")
def test_ps_counts_what_it_cannot_look_at(curtsy, tmp_path):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("takes root, to become somebody else")
    process = sleeper(curtsy)
    result = unprivileged([curtsy.command, "ps", "--json"], curtsy.bare_env())
    if result.returncode == 126 or "Permission denied" in result.stderr:
        pytest.skip("the build cannot be read by others")
    document = json.loads(result.stdout)
    assert process.pid not in {entry["pid"] for entry in document["processes"]}
    assert document["unreadable"] >= 1
    text = unprivileged([curtsy.command, "ps"], curtsy.bare_env()).stdout
    assert re.search(r"^\d+ process(es)? cannot be looked at", text, re.M)
    one = unprivileged([curtsy.command, "ps", str(process.pid)], curtsy.bare_env())
    assert one.returncode == 1 and "cannot be looked at: Permission denied" in one.stderr


# ---- events ----


def events(curtsy, *words, env=None):
    result = curtsy.tool("events", "--json", *words, env=env)
    assert result.rc == 0, result.errors
    return [json.loads(line) for line in result.text.splitlines()]


def fill(curtsy, count, first=0):
    """So many events by the operator."""
    for number in range(first, first + count):
        assert curtsy.tool("hold", f"host{number}.example.com", "1ms").rc == 0


def overfill(curtsy):
    """70 more, which need no room for buckets."""
    for number in range(1, 71):
        assert curtsy.tool("mode", "enforce", "--for", f"{number}s").rc == 0


def test_events_hold_each_refusal(up, curtsy):
    up.on("/v1/things/12345", told(1), told(1), 200)
    assert curtsy.curl(up.url("/v1/things/12345?key=secret")).rc == 0
    refused = [event for event in events(curtsy) if event["event"] == "refused"]
    assert len(refused) == 2
    for number, event in enumerate(refused, 1):
        assert event["status"] == 429 and event["attempt"] == number and event["cause"] == "retry_after"
        assert event["endpoint"] == f"GET {up.authority}/v1/things/*" and event["program"] == "curl"
        assert event["wait_s"] >= 0.99
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["time"])
    assert refused[0]["pid"] == refused[1]["pid"] and refused[0]["time"] < refused[1]["time"]
    assert "blocked" in {event["event"] for event in events(curtsy)}


def test_events_as_text(up, curtsy):
    up.on("/a", told(1), 200)
    assert curtsy.curl(up.url("/a"), env={"TZ": "XYZ-5"}).rc == 0
    curtsy.tool("release", "127.0.0.1")
    result = curtsy.tool("events", env={"TZ": "XYZ-5"})
    assert (result.rc, result.stderr) == (0, b"")
    first, heading, *lines = result.text.splitlines()
    assert first.startswith(f"segment {curtsy.segment}, owned by ") and heading.split()[:2] == ["TIME", "EVENT"]
    (refused,) = [line for line in lines if " refused " in line]
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}  refused +429 +\S+ retry_after +1 +GET 127\.0\.0\.1:\d+/a +curl\[\d+\]", refused
    )
    assert re.search(r" operator +- +- +- +- +release 127\.0\.0\.1 +curtsy by \w+\[\d+\]$", lines[-1])
    (utc,) = [event["time"] for event in events(curtsy) if event["event"] == "refused"]
    assert (int(refused[11:13]) - int(utc[11:13])) % 24 == 5


def test_events_of_a_host(up, curtsy):
    up.on("/", told(1), 200)
    assert curtsy.curl(up.url("/")).rc == 0
    for command in ["hold api.example.com 1s", "mode observe", "mode auto 127.0.0.1", "mode observe --for 1s"]:
        assert curtsy.tool(*command.split()).rc == 0
    assert curtsy.tool("release", up.authority).rc == 0
    of_upstream = [event["endpoint"] for event in events(curtsy, "127.0.0.1")]
    assert f"GET {up.authority}/" in of_upstream
    assert of_upstream[-4:] == ["mode observe", "mode auto 127.0.0.1", "mode observe for 1s", f"release {up.authority}"]
    assert events(curtsy, up.authority) == events(curtsy, "127.0.0.1")
    of_example = [event["endpoint"] for event in events(curtsy, "API.example.com.")]
    assert of_example == ["hold api.example.com 1s", "mode observe", "mode observe for 1s"]


def test_no_events(curtsy):
    result = curtsy.tool("events")
    assert (result.rc, result.stdout) == (1, b"") and "no segment" in result.errors
    assert not curtsy.segment.exists()
    assert curtsy.tool("hold", "api.example.com", "1s").rc == 0
    result = curtsy.tool("events", "other.example.com")
    assert result.rc == 0 and result.text.splitlines()[1:] == ["no events"]


@pytest.mark.parametrize("words", [["a", "b"], ["http://host/"], ["host/path"]])
def test_events_misuse(curtsy, words):
    result = curtsy.tool("events", *words)
    assert (result.rc, result.stdout) == (2, b"")


def test_events_that_were_overwritten(curtsy):
    curtsy.configure(SMALL)
    overfill(curtsy)
    numbers = [event["number"] for event in events(curtsy)]
    assert numbers == list(range(6, 70))
    lines = curtsy.tool("events").text.splitlines()
    assert lines[1].startswith("(6 events before number 6 are lost: overwritten")
    assert len(lines) == 3 + 64
    assert b"6 events" in curtsy.tool("events", "--json").stderr


# ---- following ----


class Follower:
    """`curtsy events --follow`, and the lines that it prints."""

    def __init__(self, curtsy, *words):
        self._process = subprocess.Popen(
            [curtsy.command, "events", "--follow", *words],
            env=curtsy.tool_env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def line(self):
        """The next one, whenever it comes."""
        return self._process.stdout.readline().rstrip("\n")

    def stop_reading(self):
        self._process.stdout.close()

    def stop(self):
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def ends(self):
        """(exit status, what was said on standard error)."""
        self._process.wait(HANG)
        return self._process.returncode, self._process.stderr.read()

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._process.stderr.close()
        self._process.stdout.close()


@pytest.fixture
def follow(curtsy):
    with contextlib.ExitStack() as stack:

        def start(*words):
            follower = Follower(curtsy, *words)
            stack.callback(follower.kill)
            return follower

        yield start


def test_follow(curtsy, follow):
    fill(curtsy, 1)
    follower = follow()
    assert follower.line().startswith("segment ")
    assert follower.line().startswith("TIME ")
    assert " hold host0.example.com 1ms " in follower.line()
    for number in 1, 2:
        fill(curtsy, 1, number)
        assert f" hold host{number}.example.com 1ms " in follower.line()


def test_follow_as_json_of_a_host(curtsy, follow):
    follower = follow("--json", "host1.example.com")
    fill(curtsy, 3)
    event = json.loads(follower.line())
    assert (event["number"], event["endpoint"]) == (1, "hold host1.example.com 1ms")


def test_follow_a_segment_that_is_not_there_yet(curtsy, follow):
    follower = follow()
    assert "(not there yet)" in follower.line()
    fill(curtsy, 1)
    assert follower.line().startswith(f"segment {curtsy.segment}, ")
    assert follower.line().startswith("TIME ")
    assert " host0.example.com " in follower.line()


def test_follow_what_cannot_be_a_segment(curtsy, follow):
    curtsy.segment.mkdir()
    status, errors = follow().ends()
    assert status == 1 and "cannot be used" in errors
    curtsy.segment.rmdir()


def test_follow_a_segment_that_is_replaced(curtsy, follow):
    fill(curtsy, 2)
    follower = follow("--json")
    assert [json.loads(follower.line())["number"] for _ in range(2)] == [0, 1]
    follower.stop()
    curtsy.segment.unlink()
    fill(curtsy, 4, 7)
    follower.go_on()
    event = json.loads(follower.line())
    assert (event["number"], event["endpoint"]) == (0, "hold host7.example.com 1ms")


def test_follow_tells_what_was_lost(curtsy, follow):
    curtsy.configure(SMALL)
    fill(curtsy, 1)
    follower = follow()
    lines = [follower.line() for _ in range(3)]
    assert " host0.example.com " in lines[-1]
    follower.stop()
    overfill(curtsy)
    follower.go_on()
    assert follower.line().startswith("(6 events before number 7 are lost: overwritten")
    assert " mode enforce for 7s " in follower.line()


def test_follow_ends_when_nobody_reads(curtsy, follow):
    """At once, and not only when there is something to be written."""
    fill(curtsy, 1)
    follower = follow()
    for _ in range(3):
        follower.line()
    follower.stop_reading()
    assert follower.ends() == (0, "")


def test_follow_into_a_full_disk(curtsy):
    fill(curtsy, 1)
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [curtsy.command, "events", "--follow"],
            env=curtsy.tool_env(),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=HANG,
        )
    assert result.returncode == 2 and b"No space left" in result.stderr
