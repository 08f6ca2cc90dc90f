# SPDX-License-Identifier: MIT
"""The command: curtsy run, check, summary, status."""

import fcntl
import json
import os
import pty
import pwd
import re
import shutil
import signal
import struct
import subprocess
import termios

import pytest

from harness import told

COMMANDS = [
    "run", "check", "explain", "headers", "init", "summary", "status",
    "ps", "events", "mode", "hold", "release", "refill", "reload",
]


# ---- the command line ----


def test_help_and_version(curtsy):
    result = curtsy.tool("--help")
    assert (result.rc, result.stderr) == (0, b"")
    for command in COMMANDS:
        assert re.search(rf"^ +{command} ", result.text, re.M)
    result = curtsy.tool("--version")
    assert result.rc == 0 and re.fullmatch(r"curtsy \d+\.\d+\.\d+\n", result.text)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(curtsy, command):
    result = curtsy.tool(command, "--help")
    assert result.rc == 0 and result.text.startswith(f"Usage: curtsy {command} ")


def test_no_command(curtsy):
    result = curtsy.tool()
    assert (result.rc, result.stdout) == (2, b"")


def test_an_unknown_command_names_those_that_exist(curtsy):
    result = curtsy.tool("chekc")
    assert (result.rc, result.stdout) == (2, b"")
    assert '"chekc"' in result.errors
    for command in COMMANDS:
        assert command in result.errors.split()


@pytest.mark.parametrize("command, status", [("run", 125), ("check", 2), ("summary", 2), ("status", 2)])
def test_misuse(curtsy, command, status):
    result = curtsy.tool(command, "--nonsense")
    assert (result.rc, result.stdout) == (status, b"")
    assert f"curtsy {command}:" in result.errors


@pytest.mark.parametrize("command", ["check", "summary"])
def test_a_full_disk_is_not_success(curtsy, command):
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [curtsy.command, command], env=curtsy.tool_env(), stdout=full, stderr=subprocess.PIPE, timeout=60
        )
    assert result.returncode == 2
    assert b"No space left on device" in result.stderr


# ---- run ----


def environment_under(curtsy, *words, env=None):
    """The environment of a program that is run with these options."""
    result = curtsy.tool("run", *words, "--", "env", "-0", env=env)
    assert result.rc == 0, result.errors
    return dict(entry.split("=", 1) for entry in result.text.split("\0") if entry)


def with_preload(curtsy, *more):
    """LD_PRELOAD as somebody else has set it; a sanitizer's needs come first."""
    needs = curtsy.tool_env().get("LD_PRELOAD")
    return {"LD_PRELOAD": " ".join([needs, *more] if needs else more)}


def preloaded(curtsy, environment):
    """What is preloaded, without a sanitizer's needs."""
    needs = curtsy.tool_env().get("LD_PRELOAD", "").split(":")
    return [word for word in environment["LD_PRELOAD"].split(":") if word not in needs]


def test_run_preloads_the_library_beside_it(curtsy):
    assert preloaded(curtsy, environment_under(curtsy)) == [os.fspath(curtsy.library)]


def test_run_keeps_what_is_preloaded(curtsy):
    env = with_preload(curtsy, "libm.so.6", "libdl.so.2")
    assert preloaded(curtsy, environment_under(curtsy, env=env)) == ["libm.so.6", "libdl.so.2", os.fspath(curtsy.library)]


def test_run_goes_before_a_libcurl(curtsy):
    env = with_preload(curtsy, "libm.so.6", "/nowhere/libcurl.so.4")
    assert preloaded(curtsy, environment_under(curtsy, env=env)) == ["libm.so.6", os.fspath(curtsy.library), "/nowhere/libcurl.so.4"]


def test_run_within_run_preloads_once(curtsy):
    result = curtsy.tool("run", "--", curtsy.command, "run", "--", "sh", "-c", 'echo "$LD_PRELOAD"')
    assert result.rc == 0, result.errors
    assert result.text.strip().split(":").count(os.fspath(curtsy.library)) == 1
    assert result.text.count("libcurtsy.so") == 1


def copy_to(curtsy, binary, library):
    """An installation elsewhere."""
    for source, target in ((curtsy.command, binary), (curtsy.library, library)):
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    curtsy.command = binary


def test_run_finds_the_library_of_an_installation(curtsy, tmp_path):
    copy_to(curtsy, tmp_path / "bin/curtsy", tmp_path / "lib/libcurtsy.so")
    assert preloaded(curtsy, environment_under(curtsy)) == [os.fspath(tmp_path / "lib/libcurtsy.so")]


def test_run_follows_a_link_to_the_command(curtsy, tmp_path):
    link = tmp_path / "curtsy-link"
    link.symlink_to(curtsy.command)
    curtsy.command = link
    assert preloaded(curtsy, environment_under(curtsy)) == [os.fspath(curtsy.library)]


@pytest.mark.parametrize("folder", ["with space", "with:colon"])
def test_run_names_a_path_that_the_loader_cannot_take(curtsy, tmp_path, folder):
    copy_to(curtsy, tmp_path / folder / "curtsy", tmp_path / folder / "libcurtsy.so")
    result = curtsy.tool("run", "--", "echo", "ran")
    assert (result.rc, result.stdout) == (125, b"")
    assert folder in result.errors and "LD_PRELOAD" in result.errors


def test_run_says_where_it_looked(curtsy, tmp_path):
    if os.path.exists("/usr/local/lib/libcurtsy.so"):
        pytest.skip("Curtsy is installed on this machine")
    copy_to(curtsy, tmp_path / "alone/curtsy", None)
    result = curtsy.tool("run", "--", "echo", "ran")
    assert (result.rc, result.stdout) == (125, b"")
    assert f"{tmp_path}/alone," in result.errors and f"{tmp_path}/alone/../lib" in result.errors


def test_run_hands_over_arguments_and_exit_status(curtsy):
    result = curtsy.tool("run", "sh", "-c", 'echo "$@"; exit 7', "sh", "--mode", "off", "-c", "x")
    assert (result.rc, result.text) == (7, "--mode off -c x\n")


def test_run_is_the_program(curtsy):
    """There is no process in between that would have to pass signals on."""
    result = curtsy.tool("run", "sh", "-c", "kill -TERM $$")
    assert result.rc == -signal.SIGTERM


@pytest.mark.parametrize("program, status", [("no-such-program-anywhere", 127), ("/", 126), ("/etc/passwd", 126)])
def test_run_fails_as_env_does(curtsy, program, status):
    result = curtsy.tool("run", program)
    assert (result.rc, result.stdout) == (status, b"")
    assert result.errors.startswith(f"curtsy run: {program}: ")


def test_run_without_a_program(curtsy):
    assert curtsy.tool("run").rc == 125
    assert curtsy.tool("run", "--mode", "off", "--").rc == 125


def test_run_makes_the_configuration_absolute(curtsy):
    (curtsy.folder / "my.ini").write_text("[default]\nquota = 5/s\n")
    environment = environment_under(curtsy, "-c", "my.ini")
    assert environment["CURTSY_CONFIG"] == os.fspath(curtsy.folder / "my.ini")
    assert environment_under(curtsy, "-c", "/dev/null")["CURTSY_CONFIG"] == "/dev/null"


@pytest.mark.parametrize("file", ["missing.ini", "/"])
def test_run_refuses_a_configuration_that_cannot_be_read(curtsy, file):
    result = curtsy.tool("run", "-c", file, "--", "echo", "ran")
    assert (result.rc, result.stdout) == (125, b"")
    assert file in result.errors


def test_run_sets_keys(curtsy):
    environment = environment_under(curtsy, "--set", "quota=5/s", "--set", "[api.github.com] quota=5000/h")
    check = curtsy.folder / "set.ini"
    check.write_text(environment["CURTSY_SET"])
    summary = json.loads(curtsy.tool("summary", "--json", "-c", os.fspath(check)).stdout)
    quotas = {policy["name"]: policy["quota"] for policy in summary["policies"]}
    assert quotas == {
        "[default]": [{"count": 5, "window_s": 1.0}],
        "[api.github.com]": [{"count": 5000, "window_s": 3600.0}],
    }


def test_run_sets_keys_over_what_is_set(curtsy):
    environment = environment_under(
        curtsy, "--set", "max_attempts=2", env={"CURTSY_SET": "[default]\nmax_attempts=3\nmax_delay=7s"}
    )
    result = curtsy.tool("summary", "--json", "example.com", env={"CURTSY_SET": environment["CURTSY_SET"]})
    (policy,) = json.loads(result.stdout)["policies"]
    assert (policy["max_attempts"], policy["max_delay_s"]) == (2, 7.0)
    assert policy["keys"]["max_attempts"]["origin"].startswith("CURTSY_SET")


@pytest.mark.parametrize(
    "text, fault",
    [
        ("quota=banana", "quota = banana: expected "),
        ("qouta=5/s", "quota"),
        ("[api.github.com] max_wait=5", "max_wait = 5: expected "),
        ("quota", "expected"),
        ("retry_status=404", "404"),
    ],
)
def test_run_refuses_a_bad_setting(curtsy, text, fault):
    result = curtsy.tool("run", "--set", text, "--", "echo", "ran")
    assert (result.rc, result.stdout) == (125, b"")
    assert re.search("^curtsy run: --set: .*" + re.escape(fault), result.errors, re.M)


def test_run_sets_the_mode(curtsy):
    assert environment_under(curtsy, "--mode", "observe")["CURTSY_MODE"] == "observe"
    result = curtsy.tool("run", "--mode", "strict", "--", "echo", "ran")
    assert (result.rc, result.stdout) == (125, b"")
    assert "--mode: strict: expected " in result.errors and "observe" in result.errors


@pytest.mark.parametrize(
    "inherited, asked, expected",
    [
        ("off", "enforce", "off"),
        ("observe", "enforce", "observe"),
        ("off", "observe", "off"),
        ("enforce", "observe", "observe"),
        ("observe", "off", "off"),
        ("nonsense", "enforce", "enforce"),
    ],
)
def test_run_keeps_the_less_intrusive_mode(curtsy, inherited, asked, expected):
    assert environment_under(curtsy, "--mode", asked, env={"CURTSY_MODE": inherited})["CURTSY_MODE"] == expected


def test_run_governs(up, curtsy):
    up.on("/", told(1), 200)
    result = curtsy.tool("run", "--", "curl", "-sS", up.url("/"))
    assert result.rc == 0, result.errors
    assert len(up.arrivals()) == 2


# ---- check ----


@pytest.fixture
def ini(tmp_path):
    def write(text):
        (tmp_path / "checked.ini").write_text(text)
        return os.fspath(tmp_path / "checked.ini")

    return write


def test_check_without_faults(curtsy, ini):
    file = ini("[default]\nmax_attempts = 3\n\n[api.github.com]\nquota = 5000/h\n")
    result = curtsy.tool("check", file)
    assert (result.rc, result.stderr) == (0, b"")
    assert result.text.splitlines()[0] == f"{file}: 2 sections, no faults"


def test_check_works_out_the_numbers(curtsy, ini):
    result = curtsy.tool("check", ini("[api.github.com]\nquota = 5000/h\n"))
    assert "[api.github.com] quota = 5000/h" in result.text
    assert "rate 4000/h (1.111/s, one every 900ms)" in result.text
    assert "5000 are allowed" in result.text
    (most,) = re.findall(r"at most (\d+) requests in any 1h", result.text)
    assert 4900 <= int(most) <= 5000
    assert "99 waiters fit in max_wait = 90s" in result.text or "100 waiters fit in max_wait = 90s" in result.text


def test_check_names_every_fault_with_its_line(curtsy, ini):
    file = ini("[default]\nquota = banana\n\n# a comment\nqouta = 5/s\n[api.example.com]\nretry_status = 404\n")
    result = curtsy.tool("check", file)
    assert (result.rc, result.stdout) == (1, b"")
    lines = result.errors.splitlines()
    assert lines[0].startswith(f"{file}:2: error: quota = banana: expected ")
    assert lines[1].startswith(f"{file}:5: error: ") and "quota" in lines[1]
    assert lines[2].startswith(f"{file}:7: error: ") and "404" in lines[2]
    assert len(lines) == 3


def warning(curtsy, file):
    """The one warning about a file; with --strict it is a fault."""
    result = curtsy.tool("check", file)
    assert result.rc == 0, result.errors
    (line,) = result.errors.splitlines()
    assert line.startswith(f"{file}:") and ": warning: " in line
    assert "1 warning" in result.text.splitlines()[0]
    strict = curtsy.tool("check", "--strict", file)
    assert (strict.rc, strict.stderr) == (1, result.stderr)
    return line[len(file) + 1 :]


def test_check_warns_of_a_key_that_is_not_in_force(curtsy, ini):
    text = warning(curtsy, ini("[default]\n\nmax_in_flight = 3\n"))
    assert text.startswith("3: ") and "max_in_flight" in text and "not in force yet" in text


def test_check_warns_of_a_burst_that_breaks_the_quota(curtsy, ini):
    text = warning(curtsy, ini("[api.example.com]\nquota = 100/min\nburst = 50\n"))
    assert text.startswith("3: ") and "burst = 50" in text and "100" in text


@pytest.mark.parametrize("other", ['[api.example.com "b"]', "[API.example.com.]", '[api.example.com "c"]\nhosts = x.example'])
def test_check_warns_of_a_section_that_is_never_reached(curtsy, ini, other):
    text = warning(curtsy, ini(f'[api.example.com "a"]\nmax_attempts = 3\n{other}\nmax_attempts = 2\n'))
    assert text.startswith("1: ") and "never reached" in text


@pytest.mark.parametrize(
    "other",
    [
        "[api.example.com:443]\nmax_attempts = 2",
        '[api.example.com "b"]\nmethods = GET\nmax_attempts = 2',
        '[api.example.com "b"]\nprograms = git\nmax_attempts = 2',
        "[api.example.com/v1]\nmax_attempts = 2",
        '[api.example.com "b"]\nmax_delay = 2s',
    ],
)
def test_check_knows_what_a_section_is_still_reached_by(curtsy, ini, other):
    result = curtsy.tool("check", "--strict", ini(f"[api.example.com]\nmax_attempts = 3\n{other}\n"))
    assert (result.rc, result.stderr) == (0, b"")


def test_check_warns_where_nobody_gets_his_turn(curtsy, ini):
    text = warning(curtsy, ini("[api.example.com]\nquota = 10/h\nmax_wait = 30s\n"))
    assert text.startswith("3: ") and "fits 0 waiters" in text


def test_check_of_a_missing_file_is_misuse(curtsy):
    result = curtsy.tool("check", "missing.ini")
    assert (result.rc, result.stdout) == (2, b"")
    assert "missing.ini: No such file or directory" in result.errors


LARGE = "[api.example.com]\nquota = 10/s\n" + "# a line of a large file\n" * 20000


@pytest.mark.parametrize("file, name", [("-", "standard input"), ("/dev/stdin", "/dev/stdin")])
def test_check_reads_a_pipe_to_its_end(curtsy, file, name):
    result = curtsy.tool("check", file, stdin=(LARGE + "qouta = 5/s\n").encode())
    assert (result.rc, result.stdout) == (1, b"")
    assert result.errors.startswith(f"{name}:20003: error: ")
    result = curtsy.tool("check", file, stdin=LARGE.encode())
    assert (result.rc, result.stderr) == (0, b"")
    assert result.text.splitlines()[0] == f"{name}: 1 section, no faults"


@pytest.mark.parametrize("command", ["curtsy check", "curtsy summary -c"])
def test_a_pipe_that_is_written_late_is_waited_for(curtsy, command):
    """The writer goes on only when the command has opened the pipe and has read from it."""
    fifo = curtsy.folder / "fifo"
    os.mkfifo(fifo)
    words = command.replace("curtsy", os.fspath(curtsy.command), 1).split()
    process = subprocess.Popen([*words, fifo], env=curtsy.tool_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(fifo, "w") as pipe:
        pipe.write("[api.example.com]\n")
        pipe.flush()
        while unread(pipe):
            assert process.poll() is None, process.stderr.read()
        pipe.write("quota = 10/s\n")
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, b"")
    assert b"10/s" in output


def unread(pipe):
    """How many bytes of a pipe nobody has read yet."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


@pytest.mark.parametrize("command", [["check"], ["summary", "-c"]])
def test_a_file_that_is_too_large_is_misuse(curtsy, command):
    with open(curtsy.folder / "large.ini", "w") as file:
        file.truncate((16 << 20) + 1)
    result = curtsy.tool(*command, "large.ini")
    assert (result.rc, result.stdout) == (2, b"")
    assert "large.ini: File too large" in result.errors


def test_summary_lays_the_environment_over_its_file(curtsy, ini):
    file = ini("[default]\nmax_attempts = 3\nmax_delay = 7s\n")
    result = curtsy.tool("summary", "--json", "-c", file, "example.com", env={"CURTSY_SET": "max_attempts = 2\n"})
    (policy,) = json.loads(result.stdout)["policies"]
    assert (policy["max_attempts"], policy["max_delay_s"]) == (2, 7.0)
    assert policy["keys"]["max_attempts"]["origin"] == "CURTSY_SET:1"


@pytest.mark.parametrize(
    "variable, value, expected",
    [("CURTSY_MODE", "strict", "observe"), ("CURTSY_LOG", "loud", "debug"), ("CURTSY_LOG_FORMAT", "xml", "json")],
)
def test_check_looks_at_the_environment(curtsy, variable, value, expected):
    result = curtsy.tool("check", env={variable: value})
    assert (result.rc, result.stdout) == (1, b"")
    assert f"error: {variable} = {value}: expected " in result.errors and expected in result.errors
    assert curtsy.tool("check", env={variable: expected}).rc == 0


def test_check_of_a_file_leaves_the_environment_alone(curtsy, ini):
    result = curtsy.tool("check", ini("[default]\nmax_attempts = 3\n"), env={"CURTSY_LOG": "loud"})
    assert (result.rc, result.stderr) == (0, b"")


def test_check_reads_all_layers(curtsy):
    file = curtsy.home / ".config/curtsy/ratelimit.ini"
    file.parent.mkdir(parents=True)
    file.write_text("[api.example.com]\nquota = 10/s\n")
    env = curtsy.tool_env({"CURTSY_SET": "[default]\nmax_attempts = 2\n"})
    del env["CURTSY_CONFIG"]
    result = subprocess.run([curtsy.command, "check"], env=env, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0
    assert f"{file}: 1 section, no faults" in result.stdout.splitlines()
    assert "CURTSY_SET: 1 section, no faults" in result.stdout.splitlines()


# ---- summary ----


def test_summary_shows_each_value_with_its_line(curtsy, ini):
    file = ini("[default]\nmax_attempts = 3\n[api.github.com]\nquota = 5000/h\nbase_delay = 100ms\n")
    result = curtsy.tool("summary", "-c", file)
    assert (result.rc, result.stderr) == (0, b"")
    default, github = result.text.split("\n\n")[1:3]
    for section in (default, github):
        assert re.search(r"retried statuses +429, 502, 503, 504 +built-in", section)
        assert re.search(rf"attempts +3 +{re.escape(file)}:2", section)
        assert re.search(r"total budget +90s +built-in", section)
        assert re.search(r"shared by +machine: ", section)
    assert re.search(r"jitter +full: uniform\(0, min\(30s, 250ms x 2\^n\)\)", default)
    assert re.search(r"token rate +unlimited", default)
    assert re.search(rf"base delay +100ms +{re.escape(file)}:5", github)
    assert re.search(rf"published quota +5000/h +{re.escape(file)}:4", github)
    assert re.search(r"token rate +4000/h ", github)
    assert re.search(r"burst +99\d +auto", github)
    assert "curtsy_retries_total{cause}" in result.text


def test_summary_names_the_segment_first(curtsy):
    result = curtsy.tool("summary")
    assert result.text.startswith(f"segment {curtsy.segment} (not there yet), owned by ")


def test_summary_of_one_host(curtsy, ini):
    file = ini("[*.example.com]\nmax_attempts = 2\n[api.example.com:8443]\ntotal_budget = 10s\n")
    policies = {}
    for host in ["api.example.com:8443", "api.example.com", "example.com", "API.example.com."]:
        (policies[host],) = json.loads(curtsy.tool("summary", "--json", "-c", file, host).stdout)["policies"]
    assert [(p["max_attempts"], p["total_budget_s"]) for p in policies.values()] == [
        (2, 10.0),
        (2, 90.0),
        (5, 90.0),
        (2, 90.0),
    ]
    assert policies["api.example.com:8443"]["buckets"] == ["api.example.com:8443"]
    assert policies["API.example.com."]["buckets"] == ["api.example.com:443"]


@pytest.mark.parametrize("host", ["[::1]:8443", "::1"])
def test_summary_of_an_ipv6_host(curtsy, host):
    (policy,) = json.loads(curtsy.tool("summary", "--json", host).stdout)["policies"]
    assert policy["buckets"] == ["[::1]:8443" if "8443" in host else "[::1]:443"]


@pytest.mark.parametrize("host", ["https://example.com/", "example.com:http", "example.com:0", "example.com:65536", ""])
def test_summary_of_what_is_no_host_is_misuse(curtsy, host):
    result = curtsy.tool("summary", host)
    assert (result.rc, result.stdout) == (2, b"")


def test_summary_json_is_whole(curtsy, ini):
    document = json.loads(curtsy.tool("summary", "--json", "-c", ini("[api.github.com]\nquota = 5000/h\n")).stdout)
    assert document["segment"] == os.fspath(curtsy.segment)
    default, github = document["policies"]
    assert default["retry_status"] == [429, 502, 503, 504]
    assert (default["base_delay_s"], default["max_delay_s"], default["jitter"]) == (0.25, 30.0, "full")
    assert (default["max_attempts"], default["total_budget_s"], default["shared_by"]) == (5, 90.0, "machine")
    assert (default["limits"], default["buckets"]) == ([], [])
    (limit,) = github["limits"]
    assert limit["quota"] == 5000 and limit["window_s"] == 3600.0
    assert limit["rate_per_s"] == pytest.approx(4000 / 3600)
    assert limit["most_in_window"] <= 5000
    assert github["keys"]["max_delay"] == {"value": "30s", "origin": "built-in"}


def test_summary_takes_the_least_intrusive_mode(curtsy, ini):
    file = ini("[api.example.com]\nmode = observe\n")
    for variable, expected in [("off", "off"), ("enforce", "observe")]:
        result = curtsy.tool("summary", "--json", "-c", file, "api.example.com", env={"CURTSY_MODE": variable})
        (policy,) = json.loads(result.stdout)["policies"]
        assert policy["keys"]["mode"]["value"] == expected


def test_summary_of_a_missing_file_is_misuse(curtsy):
    assert curtsy.tool("summary", "-c", "missing.ini").rc == 2


# ---- status ----


def test_status_without_a_segment(curtsy):
    result = curtsy.tool("status")
    assert (result.rc, result.stderr) == (1, b"")
    assert result.text == f"nothing has run under Curtsy here yet: no segment {curtsy.segment}\n"
    result = curtsy.tool("status", "--json")
    assert result.rc == 1
    document = json.loads(result.stdout)
    assert document["segment"] == os.fspath(curtsy.segment)
    assert document["buckets"] == [] and document["error"]


def test_status_of_what_is_no_segment(curtsy):
    curtsy.segment.write_bytes(b"something else " * (1 << 19))
    result = curtsy.tool("status")
    assert result.rc == 1
    assert re.match(f"segment {curtsy.segment} cannot be used: .*not a segment", result.text)
    curtsy.segment.write_bytes(b"short")
    result = curtsy.tool("status", "--json")
    assert result.rc == 1
    document = json.loads(result.stdout)
    assert document["owner"] == pwd.getpwuid(os.geteuid()).pw_name and "smaller" in document["error"]


@pytest.mark.parametrize("name, fault", [("relative/path", "absolute path"), ("/dev/null", "not a regular file")])
def test_status_of_what_cannot_be_a_segment(curtsy, name, fault):
    result = curtsy.tool("status", "--segment", name)
    assert result.rc == 1
    assert result.text.startswith(f"segment {name} cannot be used: ") and fault in result.text
    assert "not there yet" not in result.text and "owned by" not in result.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_status_of_another_users_segment(curtsy):
    curtsy.segment.write_bytes(b"")
    os.chown(curtsy.segment, 1, -1)
    result = curtsy.tool("status")
    assert result.rc == 1 and "cannot be used" in result.text and "smaller" in result.text
    owner = json.loads(curtsy.tool("status", "--json").stdout)["owner"]
    assert owner == pwd.getpwuid(1).pw_name


def test_status_says_who_shares_the_segment(curtsy, used):
    owner = pwd.getpwuid(os.geteuid()).pw_name
    (line, *_) = curtsy.tool("status").text.splitlines()
    assert line == f"segment {curtsy.segment}, owned by {owner}, shared by every process of {owner} that is given this name"


@pytest.mark.skipif(os.geteuid() != 0, reason="a segment that others may write has to be root's")
def test_status_says_that_a_segment_is_everyones(curtsy, used):
    curtsy.segment.chmod(0o666)
    (line, *_) = curtsy.tool("status").text.splitlines()
    assert line.endswith(", shared by every process on this machine that is given this name")


@pytest.fixture
def used(upstream, curtsy):
    """Two servers: one with a quota that was asked twice, one that refused once and is waited for."""
    quiet, strict = upstream(), upstream()
    strict.on("/", told(1), 200)
    quota = f"[127.0.0.1:{quiet.port}]\nquota = 1000/h\n"
    for server, count in ((quiet, 2), (strict, 1)):
        for _ in range(count):
            result = curtsy.curl("-o", "/dev/null", server.url("/"), config=quota)
            assert result.rc == 0, result.errors
    return quiet, strict


def test_status_counts(curtsy, used):
    quiet, strict = used
    buckets = {bucket["bucket"]: bucket for bucket in curtsy.status()["buckets"]}
    assert set(buckets) == {f"127.0.0.1:{quiet.port}", f"127.0.0.1:{strict.port}"}
    bucket = buckets[f"127.0.0.1:{quiet.port}"]
    assert bucket["curtsy_requests_total"] == bucket["curtsy_attempts_total"] == 2
    assert bucket["curtsy_retries_total"] == bucket["curtsy_refusals_total"] == {}
    (limit,) = bucket["limits"]
    assert limit["quota"] == 1000 and limit["window_s"] == 3600
    assert limit["tokens"] <= limit["burst"] - 1
    bucket = buckets[f"127.0.0.1:{strict.port}"]
    assert (bucket["curtsy_requests_total"], bucket["curtsy_attempts_total"]) == (1, 2)
    assert bucket["curtsy_retries_total"] == {"retry_after": 1}
    assert bucket["curtsy_refusals_total"] == {"429": 1}
    assert bucket["curtsy_giveups_total"] == {}
    assert sum(bucket["curtsy_wait_seconds"]["sum"].values()) >= 1
    assert bucket["curtsy_wait_seconds"]["bucket"]["+Inf"] >= 1
    assert bucket["limits"] == []


def test_status_is_a_table_within_100_columns(curtsy, used):
    quiet, strict = used
    result = curtsy.tool("status")
    assert (result.rc, result.stderr) == (0, b"")
    lines = result.text.splitlines()
    assert lines[0].startswith(f"segment {curtsy.segment}, owned by ")
    assert max(len(line) for line in lines[1:]) <= 100
    assert "\033" not in result.text
    heading = next(line for line in lines if line.startswith("BUCKET"))
    rows = [line for line in lines if line.startswith("127.0.0.1:")]
    assert len(rows) == 2 and {len(row) for row in rows} == {len(heading)}
    requests = heading.index("REQUESTS") + len("REQUESTS")
    row = next(row for row in rows if row.startswith(f"127.0.0.1:{quiet.port} "))
    assert row[:requests].endswith(" 2")
    assert re.search(r"rate 800/h, burst \d+", result.text)
    assert re.search(r"retries 1: 1 retry_after", result.text)
    assert re.search(r"refusals 1: 1 of 429", result.text)


def test_status_of_one_host(curtsy, used):
    quiet, strict = used
    for host in [f"127.0.0.1:{quiet.port}"]:
        (bucket,) = json.loads(curtsy.tool("status", "--json", host).stdout)["buckets"]
        assert bucket["bucket"] == host
    assert len(json.loads(curtsy.tool("status", "--json", "127.0.0.1").stdout)["buckets"]) == 2
    for host in ["127.0.0", "127.0.0.1:1", "localhost"]:
        result = curtsy.tool("status", "--json", host)
        assert result.rc == 1 and json.loads(result.stdout)["buckets"] == []
        assert host in result.errors


def test_status_shows_a_block(up, curtsy):
    up.on("/", told(3000))
    curtsy.curl("-o", "/dev/null", up.url("/"))
    (bucket,) = curtsy.status()["buckets"]
    assert 2900 < bucket["curtsy_blocked_seconds"] <= 3600
    assert 2900 < bucket["next_s"] <= 3600
    assert bucket["block_is_soft"] is False
    result = curtsy.tool("status")
    assert re.search(r"blocked until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(for \d+m\d\ds\), by the server's word", result.text)


def test_status_of_a_named_segment(curtsy, used):
    result = curtsy.tool("status", "--segment", os.fspath(curtsy.segment), env={"CURTSY_SEGMENT": "/nowhere.at.all"})
    assert result.rc == 0 and result.text.startswith(f"segment {curtsy.segment}, ")


@pytest.mark.parametrize("no_colour", [False, True])
def test_status_is_coloured_on_a_terminal_only(curtsy, used, no_colour):
    controller, terminal = pty.openpty()
    env = curtsy.tool_env({"TERM": "xterm", **({"NO_COLOR": "1"} if no_colour else {})})
    process = subprocess.Popen([curtsy.command, "status"], env=env, stdout=terminal)
    os.close(terminal)
    shown = b""
    try:
        while chunk := os.read(controller, 65536):
            shown += chunk
    except OSError:  # EIO: the other side has gone
        pass
    os.close(controller)
    assert process.wait(60) == 0
    assert (b"\033[1m" in shown) != no_colour
