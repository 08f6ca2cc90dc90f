# SPDX-License-Identifier: MIT
"""What the README shows is what happens: each transcript in it is compared with the real output.

Figures that depend on the machine (ports, counts, times, lengths of bars) may differ, and a line
"..." stands for any number of lines; every other word is as printed.
"""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def transcripts():
    """{command: expected lines} of the ```console blocks."""
    found = {}
    for block in re.findall(r"^```console\n(.*?)^```$", README, re.M | re.S):
        command, *lines = block.splitlines()
        assert command.startswith("$ "), command
        found[command[2:]] = lines
    return found


def without_figures(line):
    line = re.sub(r"^( +\d+ s +\d+) [#| >]+$", r"\1", line)  # a bar
    line = re.sub(r"\d+(\.\d+)?", "N", line)
    return re.sub(r"\s+", " ", line).strip()


def assert_shows(expected, actual):
    """Each expected line in order; what follows one directly does so in reality too."""
    actual = [without_figures(line) for line in actual]
    at, anywhere = 0, False
    for line in map(without_figures, expected):
        if line == "...":
            anywhere = True
            continue
        position = actual.index(line, at) if line in actual[at:] else None
        assert position is not None, f"the README shows a line that does not come: {line!r}"
        assert anywhere or position == at, f"before {line!r} comes {actual[at]!r}, which the README does not show"
        at, anywhere = position + 1, False
    assert anywhere or at == len(actual), f"the README stops before {actual[at]!r}"


def test_every_transcript_is_looked_at():
    assert set(transcripts()) == {"sh tools/bootstrap.sh demo", "curtsy check ratelimit.ini"}


@pytest.mark.alone
@pytest.mark.no_sanitizer("its figures are those of a build for use")
def test_the_demo(curtsy):
    result = curtsy.run(
        ["/usr/bin/python3", ROOT / "tools/demo/demo.py", "--build", curtsy.build], how="bare", cwd=ROOT
    )
    assert result.rc == 0, result.errors
    assert_shows(transcripts()["sh tools/bootstrap.sh demo"], result.text.splitlines())


def test_checking_the_shipped_file(curtsy):
    result = subprocess.run(
        [curtsy.command, "check", "ratelimit.ini"], cwd=ROOT, env=curtsy.bare_env(), capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert_shows(transcripts()["curtsy check ratelimit.ini"], result.stdout.splitlines())


def test_the_three_lines(curtsy, up):
    up.on("/", b"fine")
    block = re.search(r"^```sh\n(build/curtsy run .*?)^```$", README, re.M | re.S)
    lines = block.group(1).splitlines()
    assert len(lines) == 3
    script = "\n".join(lines).replace("build/curtsy", os.fspath(curtsy.command))
    script = script.replace("your-program its arguments", f"curl -sS {up.url('/')}")
    result = curtsy.run(["sh", "-e", "-c", script], how="bare", env=curtsy.tool_env(), cwd=ROOT)
    assert result.rc == 0, result.errors
    assert result.text.startswith("fine")
    assert f"127.0.0.1:{up.port}" in result.text


INI = re.findall(r"^```ini\n(.*?)^```$", README, re.M | re.S)


@pytest.mark.parametrize("block", INI, ids=[block.splitlines()[0] for block in INI])
def test_the_configuration_it_shows_is_valid(curtsy, tmp_path, block):
    (tmp_path / "shown.ini").write_text(block)
    result = curtsy.tool("check", "--strict", os.fspath(tmp_path / "shown.ini"))
    assert result.rc == 0, result.errors


def test_each_command_it_names_is_there(curtsy):
    named = set(re.findall(r"`(?:build/)?curtsy ([a-z]+)", README))
    assert {"ps", "events", "explain", "mode"} <= named
    for command in named:
        assert curtsy.tool(command, "--help").rc == 0, command
