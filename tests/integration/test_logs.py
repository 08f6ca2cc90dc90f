# SPDX-License-Identifier: MIT
"""Log lines of real programs: what they say, where they go, and that they cost the program nothing."""

import datetime
import json
import os
import pathlib
import pty
import re
import shutil
import socket
import stat
import subprocess
import tempfile
import termios
import time

import pytest

from harness import HANG, compile_c, has_program, told
from upstream import Answer

OK = Answer(200, body=b"four")
REFUSAL = told(2)  # a wait that is worth a line is longer than a second
INFO = {"CURTSY_LOG": "info"}
JSON = {"CURTSY_LOG": "info", "CURTSY_LOG_FORMAT": "json"}
TEXT_LINE = re.compile(r"curtsy\[(?P<pid>\d+)\] (?P<program>\S+): (?P<text>.*)")
TIMED_LINE = re.compile(r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) " + TEXT_LINE.pattern)

pytestmark = pytest.mark.slow(2)


def parsed(text, pattern=TEXT_LINE):
    """Every line is one of ours, and whole."""
    assert text == "" or text.endswith("\n"), text
    matches = [pattern.fullmatch(line) for line in text.splitlines()]
    assert all(matches), text
    return matches


def parsed_json(text):
    assert text == "" or text.endswith("\n"), text
    return [json.loads(line) for line in text.splitlines()]


# ------------------------------------------------------------------------------ what they say


def test_a_refusal_and_the_wait_for_it_in_text(up, curtsy):
    up.on("/users/42", REFUSAL, OK)
    words = ["curl", "-sS", "-H", "Authorization: Bearer hush", up.url("/users/42?token=hush")]
    process = curtsy.start(words, env=INFO)
    result = process.wait()
    assert result.output == (0, b"four")
    lines = parsed(result.errors)
    assert {(line["pid"], line["program"]) for line in lines} == {(str(process.pid), "curl")}
    refused, waiting = [line["text"] for line in lines]
    endpoint, wait, bucket = r"GET 127\.0\.0\.1\S*/users/\*", r"waiting [\d.]+s \(retry_after\)", re.escape(up.authority)
    assert re.fullmatch(rf"refused {endpoint}: 429, attempt 1, {wait}", refused)
    assert re.fullmatch(rf"waiting {endpoint}: {wait}, by {bucket}", waiting)
    assert "hush" not in result.errors


def test_a_refusal_and_the_wait_for_it_in_json(up, curtsy):
    up.on("/users/42", REFUSAL, OK)
    process = curtsy.start(["curl", "-sS", up.url("/users/42?token=hush")], env=JSON)
    result = process.wait()
    assert result.output == (0, b"four")
    refused, waiting = parsed_json(result.errors)
    for line in (refused, waiting):
        assert (line["pid"], line["program"], line["level"]) == (process.pid, "curl", "info")
        assert line["endpoint"].startswith("GET 127.0.0.1") and line["endpoint"].endswith("/users/*")
        assert line["cause"] == "retry_after" and line["wait_s"] >= 1
        then = datetime.datetime.strptime(line["time"], "%Y-%m-%dT%H:%M:%S%z").timestamp()
        assert abs(then - time.time()) < HANG
    assert (refused["event"], refused["status"], refused["attempt"]) == ("refused", 429, 1)
    assert (waiting["event"], waiting["bound"]) == ("waiting", up.authority)
    assert "hush" not in result.errors


def test_a_wait_for_the_quota_names_it(up, curtsy):
    up.on("/data", OK)
    result = curtsy.curl(up.url("/data"), up.url("/data"), set="quota = 1/2s", env=JSON)
    (waiting,) = [line for line in parsed_json(result.errors) if line["event"] == "waiting"]
    assert waiting["cause"] == "quota"
    assert waiting["bound"] == f"quota 1/2s of {up.authority}"


def test_giving_up_is_said_without_being_asked(up, curtsy):
    """By default: nothing about the refusal that curl gets, a line about the request that was not sent."""
    up.on("/data", told(3600))
    assert curtsy.curl(up.url("/data")).all == (0, b"slow down\n", b"")
    result = curtsy.run(["curl", "-s", up.url("/data")])
    assert result.output == (28, b"")
    (line,) = parsed(result.errors)
    wait = r"would have to wait (1h|59m)\S* \(max_wait\)"
    assert re.fullmatch(rf"gave up GET \S+: {wait}, by {re.escape(up.authority)}: not sent", line["text"])


@pytest.mark.parametrize("level", ["off", "error", "warn", None])
def test_what_goes_well_is_not_said(up, curtsy, level):
    up.on("/data", REFUSAL, OK)
    assert curtsy.curl(up.url("/data"), env={"CURTSY_LOG": level} if level else None).all == (0, b"four", b"")


def test_observing_says_what_would_have_been(up, curtsy):
    up.on("/refused", told(7))
    up.on("/data", OK)
    refused = curtsy.curl(up.url("/refused"), set="mode = observe", env=JSON)
    assert refused.output == (0, b"slow down\n")
    (line,) = parsed_json(refused.errors)
    assert (line["event"], line["status"], line["cause"]) == ("would_retry", 429, "retry_after")
    assert line["wait_s"] >= 7

    result = curtsy.curl(up.url("/data"), up.url("/data"), set="mode = observe\nquota = 1/h", env=INFO)
    assert result.output == (0, b"fourfour")
    assert any(re.match(r"observed GET \S+: would have waited ", line["text"]) for line in parsed(result.errors))
    assert len(up.arrivals("/data")) == 2


def test_a_reload_changes_the_level_of_a_process_that_runs(up, curtsy):
    """It is refused until it has been told, and then once more."""
    reloaded_at = []

    def answer(request):
        if reloaded_at and len(up.arrivals()) > reloaded_at[0] + 1:
            return OK
        return told(1)

    up.on("/data", answer)
    policy = "[default]\nmax_attempts = 1000\ntotal_budget = 1h\n"
    process = curtsy.start(["curl", "-sS", up.url("/data")], config=policy)
    up.wait_for(1)
    curtsy.configure(policy + "[curtsy]\nlog = info\n")
    assert curtsy.tool("reload").rc == 0
    reloaded_at.append(len(up.arrivals()))
    result = process.wait()
    assert result.output == (0, b"four")
    assert any(line["text"].startswith("refused GET ") for line in parsed(result.errors))


def test_a_hostile_name_forges_nothing(up, curtsy, tmp_path):
    """The program's name is what somebody has called a file."""
    name = 'a\ncurtsy[1] curl: b"}\x1b[2J\xff'.encode("latin-1")
    program = os.fsencode(tmp_path) + b"/" + name
    shutil.copy(shutil.which("curl"), program)
    up.on("/data", REFUSAL, OK)
    text = curtsy.run([program, "-sS", up.url("/data")], env=INFO)
    assert len(text.stderr.splitlines()) == 2 and b"\x1b" not in text.stderr and b"\xff" not in text.stderr
    up.on("/data", REFUSAL, OK)
    lines = parsed_json(curtsy.run([program, "-sS", up.url("/data")], env=JSON).errors)
    assert {line["program"] for line in lines} == {'a?curtsy[1] curl: b"}?[2J?'}


# --------------------------------------------------------------------------------- log files


def test_a_log_file(up, curtsy, tmp_path):
    log = tmp_path / "log"
    up.on("/data", REFUSAL, OK)
    assert curtsy.curl(up.url("/data"), env={**INFO, "CURTSY_LOG_FILE": str(log)}).all == (0, b"four", b"")
    assert [line["text"].split()[0] for line in parsed(log.read_text(), TIMED_LINE)] == ["refused", "waiting"]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_log_file_of_the_configuration_and_a_relative_one(up, curtsy, tmp_path):
    up.on("/data", REFUSAL, OK)
    curtsy.configure(f"[curtsy]\nlog = info\nlog_file = {tmp_path}/log\nlog_format = json\n")
    assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")
    up.on("/data", REFUSAL, OK)
    assert curtsy.curl(up.url("/data"), env={"CURTSY_LOG_FILE": "relative"}, cwd=tmp_path).all == (0, b"four", b"")
    for name in ("log", "relative"):
        assert [line["event"] for line in parsed_json((tmp_path / name).read_text())] == ["refused", "waiting"]


def test_many_programs_write_one_file_while_it_is_rotated(up, curtsy, tmp_path):
    """Each has a budget of its own, and so two lines to write; a line is in the file that had the name."""
    log, rotated = tmp_path / "log", 0
    processes = []
    for number in range(6):
        up.on(f"/{number}", REFUSAL, OK)
        env = {**JSON, "CURTSY_LOG_FILE": str(log), "CURTSY_SEGMENT": str(tmp_path / f"budget{number}")}
        processes.append(curtsy.start(["curl", "-sS", up.url(f"/{number}")], env=env))
    while any(process.runs for process in processes):
        if log.exists():
            log.rename(tmp_path / f"log.{rotated}")
            rotated += 1
        time.sleep(0.001)
    assert [process.wait().all for process in processes] == [(0, b"four", b"")] * 6
    lines = [line for file in tmp_path.glob("log*") for line in parsed_json(file.read_text())]
    written = sorted((line["pid"], line["event"]) for line in lines)
    assert written == sorted((process.pid, event) for process in processes for event in ("refused", "waiting"))


@pytest.fixture(params=["/dev/full", "folder", "missing/log", "fifo", "socket", "chars"])
def useless_path(request, tmp_path, monkeypatch):
    """What a log file may turn out to be."""
    path = tmp_path / request.param
    if request.param == "/dev/full":
        yield request.param
    elif request.param == "folder":
        path.mkdir()
        yield str(path)
    elif request.param == "fifo":
        os.mkfifo(path)
        yield str(path)
    elif request.param == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            monkeypatch.chdir(tmp_path)
            listening.bind("socket")  # the whole path may be too long for one
            yield str(path)
    elif request.param == "chars":
        yield str(tmp_path / ("x" * 300))
    else:
        yield str(path)


def test_a_log_file_that_cannot_be_written_is_nobodys_matter(up, curtsy, useless_path):
    up.on("/data", REFUSAL, OK)
    assert curtsy.curl(up.url("/data"), env={**INFO, "CURTSY_LOG_FILE": useless_path}).all == (0, b"four", b"")


# ------------------------------------------------------------------------------ standard error


def closed_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return writer, []


def full_pipe():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for size in (4096, 1):
        try:
            while True:
                os.write(writer, b"x" * size)
        except BlockingIOError:
            pass
    os.set_blocking(writer, True)
    return writer, [reader]


def full_device():
    return os.open("/dev/full", os.O_WRONLY), []


def stopped_terminal():
    other_side, terminal = pty.openpty()
    termios.tcflow(terminal, termios.TCOOFF)
    return terminal, [other_side]


def lost_terminal():
    other_side, terminal = pty.openpty()
    os.close(other_side)
    return terminal, []


def network_connection():
    """As inetd gives it to a server."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        server = listening.accept()[0]
    client.setblocking(False)
    return server.detach(), [client.detach()]


@pytest.mark.parametrize(
    "stderr", [closed_pipe, full_pipe, full_device, stopped_terminal, lost_terminal, network_connection]
)
def test_whatever_standard_error_is_it_is_no_matter(up, curtsy, stderr):
    up.on("/data", REFUSAL, OK)
    writer, others = stderr()
    try:
        result = subprocess.run(
            ["curl", "-s", up.url("/data")], env=curtsy.env(INFO), stdout=subprocess.PIPE, stderr=writer, timeout=HANG
        )
        assert (result.returncode, result.stdout) == (0, b"four")
        if stderr is network_connection:
            with pytest.raises(BlockingIOError):
                os.read(others[0], 1)
    finally:
        for fd in (writer, *others):
            os.close(fd)


def test_a_terminal_gets_the_lines(up, curtsy):
    up.on("/data", REFUSAL, OK)
    other_side, terminal = pty.openpty()
    try:
        result = subprocess.run(["curl", "-s", up.url("/data")], env=curtsy.env(INFO), stderr=terminal, timeout=HANG)
        assert result.returncode == 0
        text = b""
        while text.count(b"\n") < 2:
            text += os.read(other_side, 4096)
        lines = parsed(text.decode().replace("\r\n", "\n"))
        assert [line["text"].split()[0] for line in lines] == ["refused", "waiting"]
    finally:
        os.close(terminal)
        os.close(other_side)


@pytest.mark.parametrize("closed", ["2>&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"])
def test_closed_streams_are_not_found_again(up, curtsy, tmp_path, closed):
    """What takes their place is the program's: the file it writes, its connection."""
    up.on("/data", REFUSAL, OK)
    command = f'exec curl -s -o "{tmp_path}/file" "{up.url("/data")}" {closed}'
    assert curtsy.run(["sh", "-c", command], env=INFO).rc == 0
    assert (tmp_path / "file").read_bytes() == b"four"
    assert [arrival.method for arrival in up.arrivals()] == ["GET", "GET"]


# A daemon that closes its streams, opens its data, and only then loads what needs libcurl.
LATE = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    close(2);
    if (open(argv[3], O_WRONLY | O_CREAT, 0600) != 2 || write(2, "data", 4) != 4)
        return 100;
    void *module = dlopen(argv[1], RTLD_NOW);
    int (*fetch)(const char *) = module ? dlsym(module, "fetch") : NULL;
    return fetch ? fetch(argv[2]) : 101;
}
"""

MODULE = r"""
#include <curl/curl.h>

int fetch(const char *url)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    return curl_easy_perform(easy);
}
"""


def test_a_library_that_comes_late_finds_no_standard_error(up, curtsy, tmp_path):
    program = compile_c(LATE, tmp_path / "late", "-ldl")
    module = compile_c(MODULE, tmp_path / "module.so", "-shared", "-fPIC", "-lcurl")
    data, log = tmp_path / "data", tmp_path / "log"
    for env in (INFO, {**INFO, "CURTSY_LOG_FILE": str(log)}):
        up.on("/data", REFUSAL, OK)
        assert curtsy.run([program, module, up.url("/data"), data], env=env).output == (0, b"four")
        assert data.read_bytes() == b"data"
        data.unlink()
    assert len(parsed(log.read_text(), TIMED_LINE)) == 2, "it would have had something to say"


# -------------------------------------------------------------------------------------- syslog

# A /dev of its own, in a namespace of mounts that ends with the program.
PRIVATE_DEV = """
set -e
for name in null zero full random urandom; do : > "$0/$name"; mount --bind "/dev/$name" "$0/$name"; done
mount --rbind "$0" /dev
exec env LD_PRELOAD="$1" "$2" -sS "$3"
"""


def private_mounts():
    """The words before a program that may mount what it likes; for who is not root, in a namespace of users."""
    for words in (["unshare", "-m"], ["unshare", "-rm"]):
        if has_program("unshare") and subprocess.run([*words, "mount", "--rbind", "/dev", "/dev"]).returncode == 0:
            return words
    pytest.skip("no namespace of mounts for us")


@pytest.fixture
def syslog():
    """A folder for /dev, and the daemon's socket in it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="curtsy-dev-"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(os.fspath(folder / "log"))
        daemon.settimeout(HANG)
        yield folder, daemon
    shutil.rmtree(folder)


@pytest.mark.parametrize("format", ["text", "json"])
def test_syslog(up, curtsy, syslog, format):
    folder, daemon = syslog
    up.on("/data", REFUSAL, OK)
    env = curtsy.env({**INFO, "CURTSY_LOG_FILE": "syslog", "CURTSY_LOG_FORMAT": format})
    preload = env.pop("LD_PRELOAD")
    words = ["sh", "-c", PRIVATE_DEV, folder, preload, shutil.which("curl"), up.url("/data")]
    result = subprocess.run([*private_mounts(), *words], env=env, capture_output=True, timeout=HANG)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"four", b"")
    for event in ("refused", "waiting"):
        datagram = daemon.recv(4096).decode()
        header = re.match(r"<30>([A-Z][a-z][a-z] [ \d]\d \d\d:\d\d:\d\d )?curtsy\[\d+\]: ", datagram)
        assert header, datagram
        text = datagram[header.end() :]
        assert json.loads(text)["event"] == event if format == "json" else text.startswith(f"curl: {event} GET ")
