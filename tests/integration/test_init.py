# SPDX-License-Identifier: MIT
"""curtsy init: a commented file to start from."""

import json
import os
import pathlib
import shutil

import pytest

SOURCES = pathlib.Path(__file__).resolve().parents[2]
PRESETS = SOURCES / "tools" / "presets"
NAMES = sorted(file.stem for file in PRESETS.glob("*.ini"))


@pytest.fixture
def installed(curtsy, tmp_path):
    """The command as in an installation, with presets beside it."""
    root = tmp_path / "usr"
    (root / "bin").mkdir(parents=True)
    shutil.copy2(curtsy.command, root / "bin" / "curtsy")
    shutil.copytree(PRESETS, root / "share" / "curtsy")
    curtsy.command = root / "bin" / "curtsy"
    curtsy.presets = root / "share" / "curtsy"
    return curtsy


def init(curtsy, *words):
    result = curtsy.tool("init", *words)
    assert (result.rc, result.stderr) == (0, b""), result.errors
    return result.stdout


def check(curtsy, text):
    return curtsy.tool("check", "--strict", "-", stdin=text)


def test_without_a_name_it_is_the_file_that_curtsy_comes_with(curtsy):
    text = init(curtsy)
    assert text == (SOURCES / "ratelimit.ini").read_bytes()
    assert check(curtsy, text).rc == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_is_copied_in_full(installed, name):
    text = init(installed, "--for", name)
    assert text.endswith((PRESETS / f"{name}.ini").read_bytes())
    assert text.startswith(b"# ratelimit.ini") and f"# ---- {name} ----".encode() in text
    result = check(installed, text)
    assert (result.rc, result.stderr) == (0, b"")


def test_several_presets_stand_in_one_file_each_once(installed):
    text = init(installed, "--for", "github", "--for=git", "--for", "github").decode()
    assert [line for line in text.splitlines() if line.startswith("# ----")] == ["# ---- github ----", "# ---- git ----"]
    assert text.count("\n[api.github.com]\n") == 1 and "\n[*/*/git-upload-pack]\n" in text
    assert check(installed, text.encode()).rc == 0


def test_all_presets_at_once(installed):
    result = check(installed, init(installed, *(word for name in NAMES for word in ("--for", name))))
    assert (result.rc, result.stderr) == (0, b"")


def test_what_it_prints_holds(installed):
    file = installed.folder / "mine.ini"
    file.write_bytes(init(installed, "--for", "github"))
    result = installed.tool("summary", "--json", "-c", os.fspath(file), "api.github.com")
    (policy,) = json.loads(result.stdout)["policies"]
    assert policy["quota"][0] == {"count": 5000, "window_s": 3600.0}


def test_list(installed):
    lines = init(installed, "--list").decode().splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    for name, line in zip(NAMES, lines):
        comment = (PRESETS / f"{name}.ini").read_text().splitlines()[0]
        assert line.split(None, 1)[1] == comment.lstrip("# ")


def test_a_preset_that_the_administrator_added_is_one(installed):
    (installed.presets / "house.ini").write_text("# What is allowed in the house.\n[api.house.example]\nquota = 5/s")
    assert "house        What is allowed in the house.\n" in init(installed, "--list").decode()
    assert init(installed, "--for", "house").endswith(b"quota = 5/s\n")


@pytest.mark.parametrize("content", ["", "#", "# ", "\n", "[a.example]\n"])
def test_a_preset_without_a_comment_does_no_harm(installed, content):
    (installed.presets / "zzz.ini").write_text(content)
    assert init(installed, "--list").decode().splitlines()[-1].startswith("zzz")
    assert check(installed, init(installed, "--for", "zzz", "--for", "git")).rc == 0


@pytest.mark.parametrize("name, meant", [("gihtub", "github"), ("GitHub", "github"), ("dockerhubs", "dockerhub")])
def test_an_unknown_name_is_misuse_and_the_nearest_is_named(installed, name, meant):
    result = installed.tool("init", "--for", "git", "--for", name)
    assert (result.rc, result.stdout) == (2, b"")
    assert f'no preset "{name}"; did you mean "{meant}"?' in result.errors
    assert all(f" {other}" in result.errors for other in NAMES)


@pytest.mark.parametrize("name", ["", "nothing-like-it", "../../../etc/passwd", "github.ini", "../curtsy/github", "." * 50])
def test_a_name_without_a_neighbour_gets_the_list(installed, name):
    result = installed.tool("init", "--for", name)
    assert (result.rc, result.stdout) == (2, b"")
    assert "did you mean" not in result.errors or name == "github.ini"
    assert all(f" {other}" in result.errors for other in NAMES)


@pytest.mark.parametrize("words", [["extra"], ["--for"], ["--list", "--for", "git"], ["--for", "git", "--list"], ["--nonsense"]])
def test_misuse(curtsy, words):
    result = curtsy.tool("init", *words)
    assert (result.rc, result.stdout) == (2, b"") and result.stderr


@pytest.mark.parametrize("words", [["--for", "git"], ["--list"]])
def test_a_preset_that_cannot_be_read_is_said(installed, words):
    (installed.presets / "git.ini").unlink()
    (installed.presets / "git.ini").mkdir()
    result = installed.tool("init", *words)
    assert result.rc == 1 and "git.ini: Is a directory" in result.errors


def test_presets_of_the_source_tree_are_found_from_a_build_in_it(curtsy, tmp_path):
    for folder in ("build", "build/asan"):
        build = tmp_path / folder
        build.mkdir()
        shutil.copy2(curtsy.command, build / "curtsy")
        shutil.copytree(PRESETS, tmp_path / "tools" / "presets", dirs_exist_ok=True)
        curtsy.command = build / "curtsy"
        assert init(curtsy, "--list").decode().startswith(NAMES[0])
