# SPDX-License-Identifier: MIT
"""The configuration, through the command: what is said about each kind of mistake, word by word, and
that nothing else is lost by it; what a quota comes to; what the summary tells the next engineer."""

import json
import os
import pathlib
import re
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# Behind each text: a section that must hold whatever is wrong above it.
CANARY = "[canary.example]\nquota = 7/h\n"


def read_cases():
    """[(text, what is said)] of config_cases.txt."""
    cases = []
    for block in (HERE / "config_cases.txt").read_text("utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("##")]
        text = "".join(line + "\n" for line in lines if not line.startswith("=> "))
        if text:
            cases.append((text, [line[3:] for line in lines if line.startswith("=> ")]))
    return cases


CASES = read_cases()

# Texts that an editor would spoil.
NOT_FOR_EDITORS = [
    ("", []),
    ("[default]\nmax_wait = 1\0s\n", ["2: error: found a NUL byte: expected text"]),
    ("[default]\nmax_wait = 1\x1b[31ms\n", ["2: error: found a control character (0x1b): expected text"]),
    ("[default]\n# a comment with \x1b in it\n", []),
    ("\ufeff[default]\r\nmax_attempts = 3\r\n", []),
    ("[default]\rmax_attempts = 3\r", ["1: error: found a control character (0x0d): expected text"]),
    ("[default]\nmax_attempts = 3 \t ; blanks at the end \t \n", []),
    (
        "[" + "h" * 1001 + "]\n",
        ["1: error: found a section's name of more than 1000 characters: expected a host such as [api.example.com]"],
    ),
    ("[api.example.com]\nhosts = " + ", ".join(f"host{i}.example.com" for i in range(40)) + "\n", []),
    ("[default]\n# " + "a long comment " * 200 + "\nmax_attempts = 3 ; " + "and another one " * 200 + "\n", []),
    ("[default]\n" + "k" * 5000 + " = 1\n", ["2: error: found a key of more than 49 characters: expected one such as quota"]),
]


def check_json(curtsy, text, *words):
    file = curtsy.folder / "checked.ini"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    result = curtsy.tool("check", "--json", *words, os.fspath(file))
    document = json.loads(result.stdout)
    assert result.stderr == b""
    assert document["file"] == os.fspath(file)
    assert all(fault["file"] == os.fspath(file) for fault in document["faults"])
    assert document["errors"] == sum(fault["severity"] == "error" for fault in document["faults"])
    assert document["warnings"] == sum(fault["severity"] == "warning" for fault in document["faults"])
    assert result.rc == (1 if document["errors"] else 0)
    return document


def said(curtsy, document):
    file = os.fspath(curtsy.folder / "checked.ini")
    return [f"{f['line']}: {f['severity']}: {f['message'].replace(file, 'FILE')}" for f in document["faults"]]


def name_of(case):
    return re.sub(r"[^!-~]+", " ", case[0])[:60] if isinstance(case, tuple) else None


@pytest.mark.parametrize("case", CASES + NOT_FOR_EDITORS, ids=name_of)
def test_each_mistake_is_told_and_loses_nothing_else(curtsy, case):
    text, expected = case
    document = check_json(curtsy, text + "\n" + CANARY)
    assert said(curtsy, document) == expected
    canary = document["sections"][-1]
    assert (canary["name"], canary["quota"]) == ("canary.example", [{"count": 7, "window_s": 3600.0}])


def test_there_are_cases_of_each_kind():
    assert len(CASES) > 100
    assert any("error" in line for _, said in CASES for line in said)
    assert any("warning" in line for _, said in CASES for line in said)
    assert any(not said for _, said in CASES)


@pytest.mark.parametrize("text", ["[default]\nmax_attempts = 3", "\ufeff[default]\r\nmax_attempts = 3"])
def test_the_last_line_needs_no_end(curtsy, text):
    assert said(curtsy, check_json(curtsy, text)) == []
    result = curtsy.tool("summary", "--json", "-c", os.fspath(curtsy.folder / "checked.ini"), "x.example")
    assert json.loads(result.stdout)["policies"][0]["max_attempts"] == 3


def test_utf_16_is_told(curtsy):
    for encoding in ("utf-16-le", "utf-16-be"):
        assert said(curtsy, check_json(curtsy, "\ufeff[default]\n".encode(encoding))) == [
            "1: error: found UTF-16: expected text in UTF-8"
        ]


def test_the_text_says_what_the_json_says(curtsy):
    """All cases in one file, each section told apart by nothing: thousands of words, the same both ways."""
    text = "".join(text for text, _ in CASES)
    document = check_json(curtsy, text)
    file = os.fspath(curtsy.folder / "checked.ini")
    result = curtsy.tool("check", file)
    assert result.rc == 1 and result.stdout == b""
    lines = [f"{file}:{f['line']}: {f['severity']}: {f['message']}" for f in document["faults"]]
    assert len(lines) > 100
    assert result.errors.splitlines() == lines


def test_a_key_that_is_not_in_force_is_told(curtsy):
    table = (ROOT / "core" / "keys.def").read_text()
    rows = re.findall(r'^POLICY_KEY\((\w+), *\w+, *"([^"]*)", *0,', table, re.M)
    if not rows:
        pytest.skip("every key is in force")
    for name, default in rows:
        text = f"[default]\n{name} = {default}\n"
        assert said(curtsy, check_json(curtsy, text)) == [f'2: warning: "{name}" is accepted, but not in force yet']


def test_strict_takes_warnings_for_faults(curtsy):
    (curtsy.folder / "checked.ini").write_text("[a.example]\nbase_delay = 0s\n")
    for words, rc in ((["check"], 0), (["check", "--strict"], 1), (["check", "--strict", "--json"], 1)):
        assert curtsy.tool(*words, "checked.ini").rc == rc


def test_a_note_is_no_fault(curtsy):
    (curtsy.folder / "checked.ini").write_text("[*.example.com]\nmax_attempts = 3\n")
    result = curtsy.tool("check", "--strict", "checked.ini")
    assert (result.rc, result.text.splitlines()[0]) == (0, "checked.ini: 1 section, no faults")
    assert result.errors.startswith("checked.ini:1: note: ")


def test_faults_of_the_environment_are_in_the_json(curtsy):
    result = curtsy.tool("check", "--json", env={"CURTSY_MODE": "loud", "CURTSY_SEGMENT": "run/curtsy"})
    document = json.loads(result.stdout)
    assert (result.rc, document["file"], document["errors"]) == (1, None, 2)
    assert document["faults"] == [
        {
            "file": "environment",
            "line": None,
            "severity": "error",
            "message": "CURTSY_MODE = loud: expected off, observe or enforce",
        },
        {
            "file": "environment",
            "line": None,
            "severity": "error",
            "message": "CURTSY_SEGMENT = run/curtsy: expected a name such as /curtsy-team, or the whole path of a file "
            "such as /run/curtsy/budget",
        },
    ]


def test_warnings_are_counted_for_their_own_file(curtsy):
    user = curtsy.home / ".config/curtsy/ratelimit.ini"
    user.parent.mkdir(parents=True)
    user.write_text("[api.example.com]\nbase_delay = 0s\n")
    env = curtsy.tool_env({"CURTSY_SET": "max_attempts = 2\n"})
    del env["CURTSY_CONFIG"]
    result = subprocess.run([curtsy.command, "check"], env=env, capture_output=True, text=True, timeout=60)
    assert f"{user}: 1 section, 1 warning" in result.stdout.splitlines()
    assert "CURTSY_SET: 1 section, no faults" in result.stdout.splitlines()


# ---- what a quota comes to ----


def numbers(curtsy, text):
    return check_json(curtsy, text)["sections"][-1]


def test_numbers_of_a_bucket(curtsy):
    section = numbers(curtsy, "[a.example]\nquota = 5000/h\n")
    (limit,) = section["limits"]
    assert (limit["quota"], limit["window_s"], limit["jitter_s"]) == (5000, 3600.0, 1.0)
    bucket = limit["bucket"]
    assert bucket["rate_per_s"] == pytest.approx(4000 / 3600)
    assert bucket["spacing_s"] == pytest.approx(0.9)
    assert bucket["burst"] == 998
    assert bucket["refill_s"] == pytest.approx(998 * 0.9)
    assert 4990 <= bucket["most_in_window"] <= 5000
    assert section["max_wait_s"] == 90 and 99 <= section["waiters"] <= 100


def test_numbers_of_a_window(curtsy):
    section = numbers(curtsy, "[a.example]\nquota = 100/min\nmax_wait = 5min\n")
    (limit,) = section["limits"]
    assert limit["window"] == {"at_once": 80, "next_s": 61.0, "most_in_window": 80, "waiters": 4 * 80}
    (limit,) = numbers(curtsy, "[a.example]\nquota = 1/min\n")["limits"]
    assert limit["window"]["at_once"] == 1
    (limit,) = numbers(curtsy, "[a.example]\nrate = 10/s\nnetwork_jitter = 250ms\n")["limits"]
    assert (limit["quota"], limit["window"]["at_once"], limit["window"]["next_s"]) == (None, 10, 1.25)


def test_numbers_of_several_windows(curtsy):
    section = numbers(curtsy, "[a.example]\nquota = 10/s, 20000/d\nmax_wait = 60s\n")
    day, second = section["limits"]
    assert (day["window_s"], second["window_s"]) == (86400.0, 1.0)
    # 16,000 a day are one every 5.4 s, and the slower of the two decides.
    assert section["waiters"] == 11


def test_numbers_of_what_has_no_quota(curtsy):
    section = numbers(curtsy, "[a.example]\nmax_attempts = 3\n")
    assert (section["limits"], section["waiters"], section["quota"], section["rate"]) == ([], None, [], [])


def check_text(curtsy, text):
    (curtsy.folder / "checked.ini").write_text(text)
    result = curtsy.tool("check", "checked.ini")
    assert result.rc == 0, result.errors
    return result.text


def test_numbers_are_told_in_words(curtsy):
    text = check_text(curtsy, "[a.example]\nquota = 5000/h\n")
    assert "rate 4000/h (1.111/s, one every 900ms), burst 998" in text
    assert "998 tokens go at once after idling; from empty to full in 14m58s" in text
    window = re.search(r"with shape = window(.*): (.*)$", text, re.M)
    assert window[2] == "4000 go at once, the next one 1h1s after the first; at most 4000 in any 1h; 0 waiters fit"
    in_force = re.search(r"^POLICY_KEY\(shape, .* ([01]),", (ROOT / "core" / "keys.def").read_text(), re.M)[1]
    assert window[1] == ("" if in_force == "1" else " (not in force yet)")


def test_numbers_of_best_effort_have_no_waiters(curtsy):
    text = check_text(curtsy, "[a.example]\nquota = 10/s\nprofile = best_effort\n")
    assert "nobody waits: profile = best_effort" in text
    assert "fit in max_wait" not in text


def test_ten_thousand_sections_are_checked(curtsy):
    text = "".join(f"[host{i}.example.com]\nquota = {i + 1}/h\nmax_wait = 2d\n" for i in range(10000))
    document = check_json(curtsy, text)
    assert len(document["sections"]) == 10001
    assert document["sections"][-1]["limits"][0]["quota"] == 10000


# ---- the summary ----


def summary(curtsy, text, *words, **options):
    (curtsy.folder / "checked.ini").write_text(text)
    result = curtsy.tool("summary", "--json", "-c", "checked.ini", *words, **options)
    assert result.rc == 0, result.errors
    return json.loads(result.stdout)


PLACES = """[api.example.com]
max_attempts = 2
[api.example.com/v1/search]
max_attempts = 3
quota = 30/min
[api.example.com "writes"]
methods = POST, PUT
max_attempts = 1
"""


@pytest.mark.parametrize(
    "words, attempts, buckets",
    [
        (["api.example.com"], 2, ["api.example.com:443"]),
        (["api.example.com/"], 2, ["api.example.com:443"]),
        (["api.example.com/v1"], 2, ["api.example.com:443"]),
        (["api.example.com/v1/search"], 3, ["api.example.com:443", "api.example.com:443/v1/search"]),
        (["API.example.com.:8443/v1/search/code"], 3, ["api.example.com:8443", "api.example.com:8443/v1/search"]),
        (["api.example.com/v1/search?q=secret"], 3, ["api.example.com:443", "api.example.com:443/v1/search"]),
        (["-X", "POST", "api.example.com"], 1, ["api.example.com:443"]),
        (["--request=put", "api.example.com/v2"], 1, ["api.example.com:443"]),
        (["-X", "DELETE", "api.example.com"], 2, ["api.example.com:443"]),
        (["[::1]:8443/v1"], 5, ["[::1]:8443"]),
        (["::1/v1"], 5, ["[::1]:443"]),
    ],
)
def test_summary_of_a_place_and_a_method(curtsy, words, attempts, buckets):
    (policy,) = summary(curtsy, PLACES, *words)["policies"]
    assert (policy["max_attempts"], policy["buckets"]) == (attempts, buckets)
    assert "secret" not in json.dumps(policy)
    assert [bucket["name"] for bucket in policy["bucket_limits"]] == buckets
    if len(buckets) == 2:
        host, path = policy["bucket_limits"]
        assert host["limits"] == [] and path["limits"][0]["quota"] == 30
        assert policy["limits"] == path["limits"]


@pytest.mark.parametrize(
    "words",
    [["-X", "POST"], ["-X", "", "a.example"], ["-X", "GET POST", "a.example"], ["https://a.example/v1"], ["/v1"], ["a.example:0/v1"]],
)
def test_summary_of_what_is_no_place_is_misuse(curtsy, words):
    result = curtsy.tool("summary", *words)
    assert (result.rc, result.stdout) == (2, b"")


def test_summary_names_the_place(curtsy):
    (curtsy.folder / "checked.ini").write_text(PLACES)
    result = curtsy.tool("summary", "-c", "checked.ini", "-X", "post", "api.example.com/v1/search?q=secret")
    heading = 'api.example.com:443/v1/search POST  by [api.example.com/v1/search], then [api.example.com "writes"], then '
    assert heading + "[api.example.com], then [default]\n" in result.text
    assert "secret" not in result.text


def test_summary_shows_the_profile_and_what_it_means(curtsy):
    text = "[default]\nmax_attempts = 3\n[telemetry.example]\nprofile = best_effort\n"
    (policy,) = summary(curtsy, text, "telemetry.example")["policies"]
    assert (policy["profile"], policy["max_attempts"], policy["max_wait_s"]) == ("best_effort", 1, 0)
    assert policy["keys"]["max_attempts"] == {"value": "1", "origin": "checked.ini:4"}
    result = curtsy.tool("summary", "-c", "checked.ini", "telemetry.example")
    assert re.search(r"profile +best_effort +checked.ini:4\n", result.text)
    assert re.search(r"attempts +1 +checked.ini:4\n", result.text)
    (policy,) = summary(curtsy, text, "a.example")["policies"]
    assert (policy["profile"], policy["max_attempts"], policy["max_wait_s"]) == ("normal", 3, 90)


def test_summary_names_presets_and_their_files(curtsy):
    document = summary(curtsy, "[curtsy]\npresets = x-none-such, x-nor-this\n")
    assert [(preset["name"], preset["is_read"]) for preset in document["presets"]] == [
        ("x-none-such", False),
        ("x-nor-this", False),
    ]
    assert all(preset["file"].endswith(f"/{preset['name']}.ini") for preset in document["presets"])
    result = curtsy.tool("summary", "-c", "checked.ini")
    assert re.search(r"^preset x-none-such: /.*/x-none-such.ini, which cannot be read$", result.text, re.M)
    assert "there is no preset" in result.errors
    assert summary(curtsy, "")["presets"] == []


# ---- for the whole machine ----


@pytest.fixture
def in_etc(curtsy):
    """Runs programs where /etc/curtsy and the presets' folder are the test's: in a mount namespace of its own."""
    etc, data = curtsy.folder / "etc", curtsy.folder / "data"
    (etc / "curtsy" / "ratelimit.d").mkdir(parents=True)
    presets = pathlib.Path(summary(curtsy, "[curtsy]\npresets = x\n")["presets"][0]["file"]).parent
    (data / presets.name).mkdir(parents=True)
    for name in ("passwd", "ld.so.cache"):
        if os.path.exists(f"/etc/{name}"):
            (etc / name).write_bytes(pathlib.Path(f"/etc/{name}").read_bytes())
    env = curtsy.tool_env()
    del env["CURTSY_CONFIG"], env["CURTSY_SEGMENT"]

    def run(*words, **more):
        script = 'mount --bind "$0" /etc && mount --bind "$1" "$2" && shift 2 && exec "$@"'
        return subprocess.run(
            ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", script, etc, data, presets.parent, *words],
            env={**env, **more},
            capture_output=True,
            text=True,
            timeout=120,
        )

    if run("true").returncode != 0:
        pytest.skip("no mount namespaces here, or no folder to mount the presets' on")
    run.etc, run.presets, run.presets_shown = etc / "curtsy", data / presets.name, presets
    return run


MACHINE = "[curtsy]\nsegment = /curtsy-test-of-a-machine\n%s[api.example.com]\nquota = 100/h\n"


def test_summary_of_a_machine(curtsy, in_etc):
    (in_etc.etc / "ratelimit.ini").write_text(MACHINE % "segment_permissions = 0666\n")
    user = curtsy.home / ".config/curtsy/ratelimit.ini"
    user.parent.mkdir(parents=True)
    user.write_text("[api.example.com]\nquota = 50/h\nmax_attempts = 2\n")

    document = json.loads(in_etc(curtsy.command, "summary", "--json", "api.example.com").stdout)
    assert document["segment"] == "/curtsy-test-of-a-machine"
    assert document["machine_wide"] is True
    (policy,) = document["policies"]
    machine, own = policy["bucket_limits"]
    assert machine["name"] == "api.example.com:443" and machine["limits"][0]["quota"] == 100
    assert re.fullmatch(r"api\.example\.com:443 \(uid \d+\)", own["name"]) and own["limits"][0]["quota"] == 50
    assert policy["max_attempts"] == 2

    result = in_etc(curtsy.command, "summary")
    assert "every process on this machine" in result.stdout.splitlines()[0]
    assert result.stdout.splitlines()[1].startswith("for the whole machine: quotas are those of /etc/curtsy")
    # Whoever names a segment of his own has left it.
    result = in_etc(curtsy.command, "summary", "--json", "api.example.com", CURTSY_SEGMENT=os.fspath(curtsy.segment))
    document = json.loads(result.stdout)
    assert document["machine_wide"] is False
    assert document["policies"][0]["bucket_limits"][0]["limits"][0]["quota"] == 50


def test_check_of_a_machine_whose_segment_is_one_users(curtsy, in_etc):
    (in_etc.etc / "ratelimit.ini").write_text(MACHINE % "")
    result = in_etc(curtsy.command, "check")
    assert result.stderr == (
        "/etc/curtsy/ratelimit.ini:2: warning: segment = /curtsy-test-of-a-machine is for the whole machine, but with "
        "segment_permissions = 0600 only its owner's programs may use it: expected 0660 or 0666 beside it\n"
    )
    (in_etc.etc / "ratelimit.ini").write_text(MACHINE % "segment_permissions = 0660\nsegment_group = staff\n")
    result = in_etc(curtsy.command, "check")
    assert (result.returncode, result.stderr) == (0, "")


# ---- presets that are there ----


def test_presets_are_in_force_for_the_command(curtsy, in_etc):
    (in_etc.presets / "one.ini").write_text("[one.example]\nquota = 5/s\nmax_attempts = 4\n")
    (in_etc.presets / "two.ini").write_text("[one.example]\nmax_attempts = 3\n")
    (in_etc.etc / "ratelimit.ini").write_text("[curtsy]\npresets = one, two\n[one.example]\nmax_delay = 7s\n")
    document = json.loads(in_etc(curtsy.command, "summary", "--json", "one.example").stdout)
    assert [preset["is_read"] for preset in document["presets"]] == [True, True]
    keys = document["policies"][0]["keys"]
    assert keys["quota"] == {"value": "5/s", "origin": f"{in_etc.presets_shown}/one.ini:2"}
    assert keys["max_attempts"] == {"value": "3", "origin": f"{in_etc.presets_shown}/two.ini:2"}
    assert keys["max_delay"] == {"value": "7s", "origin": "/etc/curtsy/ratelimit.ini:4"}

    result = in_etc(curtsy.command, "check")
    assert (result.returncode, result.stderr) == (0, "")
    assert f"{in_etc.presets_shown}/one.ini: 1 section, no faults" in result.stdout.splitlines()
    # A file that is checked by itself has its presets, too.
    (curtsy.folder / "checked.ini").write_text("[curtsy]\npresets = twoo\n")
    result = in_etc(curtsy.command, "check", curtsy.folder / "checked.ini")
    assert result.returncode == 1
    assert result.stderr.endswith(
        f'checked.ini:2: error: presets: there is no preset "twoo" in {in_etc.presets_shown}; did you mean "two"?\n'
    )


def test_presets_are_in_force_for_programs(up, curtsy, in_etc):
    up.on("/", 503, 200)
    (in_etc.presets / "one.ini").write_text("[default]\nretry_status = none\n")
    (in_etc.etc / "ratelimit.ini").write_text("[curtsy]\npresets = one\n[default]\nbase_delay = 1ms\n")
    preload = {"LD_PRELOAD": curtsy.env()["LD_PRELOAD"], "CURTSY_SEGMENT": os.fspath(curtsy.segment)}
    result = in_etc("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", up.url("/"), **preload)
    assert (result.stdout, result.stderr, len(up.arrivals())) == ("503", "", 1)
    result = in_etc("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", up.url("/"), **preload)
    assert (result.stdout, len(up.arrivals())) == ("200", 2)
