# SPDX-License-Identifier: MIT
"""make install and uninstall, into a DESTDIR; and tools/bootstrap.sh, with a stand-in for apt-get."""

import mmap
import os
import pathlib
import pty
import shutil
import subprocess

import pytest

SOURCES = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CURTSY_BUILD", SOURCES / "build")).resolve()
BOOTSTRAP = SOURCES / "tools" / "bootstrap.sh"

FILES = {
    "bin/curtsy",
    "lib/libcurtsy.so",
    "share/man/man1/curtsy.1",
    "share/man/man5/ratelimit.ini.5",
    "share/man/man7/curtsy.7",
    "share/doc/curtsy/ratelimit.ini",
} | {f"share/curtsy/{file.name}" for file in (SOURCES / "tools" / "presets").glob("*.ini")}


def make(*words):
    """make on what was built before this test: nothing is built here, side by side with other tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", "--no-print-directory", "-o", "all", f"BUILD={BUILD}", *words],
        cwd=SOURCES,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout


def files_in(folder):
    return {os.fspath(file.relative_to(folder)) for file in folder.rglob("*") if not file.is_dir()}


def test_install_puts_exactly_these_files(tmp_path):
    make("install", "PREFIX=/usr", f"DESTDIR={tmp_path}")
    assert files_in(tmp_path) == {f"usr/{file}" for file in FILES}
    assert os.access(tmp_path / "usr/bin/curtsy", os.X_OK)


def test_prefix_and_libdir(tmp_path):
    make("install", f"PREFIX={tmp_path}/opt", f"LIBDIR={tmp_path}/opt/lib/of-this-machine")
    moved = {file.replace("lib/", "lib/of-this-machine/", 1) if file.startswith("lib/") else file for file in FILES}
    assert files_in(tmp_path / "opt") == moved


def test_the_installed_command_finds_the_installed_library(tmp_path, curtsy):
    make("install", "PREFIX=/usr", f"DESTDIR={tmp_path}")
    curtsy.command = tmp_path / "usr/bin/curtsy"
    result = curtsy.tool("run", "--", "env")
    assert result.rc == 0, result.errors
    (preload,) = (line for line in result.text.splitlines() if line.startswith("LD_PRELOAD="))
    assert preload.split("=")[1].split(":")[-1] == os.fspath(tmp_path / "usr/lib/libcurtsy.so")


def test_the_library_is_placed_last_and_by_rename(tmp_path):
    steps = make("-n", "install", "PREFIX=/usr", f"DESTDIR={tmp_path}").strip().splitlines()
    assert steps[-1].split() == ["mv", "-f", f"{tmp_path}/usr/lib/.libcurtsy.so.new", f"{tmp_path}/usr/lib/libcurtsy.so"]
    assert not [step for step in steps if "libcurtsy.so" in step.split()[-1] and step.split()[0] not in ("mv", "install")]


def test_programs_that_have_the_old_library_mapped_keep_it(tmp_path):
    library = tmp_path / "usr/lib/libcurtsy.so"
    make("install", "PREFIX=/usr", f"DESTDIR={tmp_path}")
    library.write_bytes(b"the old one")
    with open(library, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        make("install", "PREFIX=/usr", f"DESTDIR={tmp_path}")
        assert mapped[:] == b"the old one"
    assert library.read_bytes() == (BUILD / "libcurtsy.so").read_bytes()


def test_uninstall_takes_back_what_install_put_and_nothing_else(tmp_path):
    others = {"usr/bin/other", "usr/lib/libother.so", "usr/share/doc/other/README"}
    for other in others:
        (tmp_path / other).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / other).touch()
    make("install", "PREFIX=/usr", f"DESTDIR={tmp_path}")
    make("uninstall", "PREFIX=/usr", f"DESTDIR={tmp_path}")
    assert files_in(tmp_path) == others
    assert not (tmp_path / "usr/share/doc/curtsy").exists()


@pytest.mark.parametrize("goal", ["install", "uninstall"])
@pytest.mark.parametrize("variable", ["PREFIX", "DESTDIR", "LIBDIR", "BINDIR", "DATADIR", "DOCDIR", "MANDIR"])
@pytest.mark.parametrize("folder", ["in st", "inst ", "in\tst"])
def test_a_path_with_a_blank_is_refused_before_anything_is_written(tmp_path, goal, variable, folder):
    place = {"DESTDIR": f"{tmp_path}/stage", variable: f"{tmp_path}/{folder}"}
    with pytest.raises(subprocess.CalledProcessError) as refused:
        make(goal, *(f"{name}={value}" for name, value in place.items()))
    assert f'{variable} = "{tmp_path}/{folder}"' in refused.value.stderr and "blank" in refused.value.stderr
    assert list(tmp_path.iterdir()) == []


# ---- bootstrap.sh ----

UTILITIES = ["sh", "env", "id", "cat", "cut", "sort", "tr", "dirname", "getconf", "grep"]
KNOWS_ALL = 'shift; for package; do echo "  Candidate: 1.0"; done'


class Machine:
    """A machine that lacks nearly everything: a folder of programs that is the whole PATH."""

    def __init__(self, folder):
        self.folder = folder
        self.programs = folder / "programs"
        self.programs.mkdir()
        self.log = folder / "log"
        for name in UTILITIES:
            (self.programs / name).symlink_to(shutil.which(name))

    def add(self, name, script="exit 0"):
        """A program that writes down how it was called."""
        file = self.programs / name
        file.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.log}"\n{script}\n')
        file.chmod(0o755)

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def bootstrap(self, *words, stdin=subprocess.DEVNULL, python="/nonexistent/python3"):
        return subprocess.run(
            ["/bin/sh", BOOTSTRAP, *words],
            env={"PATH": os.fspath(self.programs), "HOME": os.fspath(self.folder), "PYTHON": python},
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.mark.parametrize("words", [(), ("everything",), ("--yes",)])
def test_misuse(machine, words):
    result = machine.bootstrap(*words)
    assert result.returncode == 2
    assert "usage" in result.stderr


def test_an_unknown_system_is_told_what_is_needed(machine):
    result = machine.bootstrap("demo")
    assert result.returncode == 1
    for need in ["make", "cc", "libinih.a", "http.server", "on Debian: gcc", "on Debian: libinih-dev"]:
        assert need in result.stderr
    assert "cmocka" not in result.stderr  # only the tests need it


def test_missing_packages_are_named_and_installed_without_asking(machine):
    machine.add("apt-get")
    machine.add("apt-cache", KNOWS_ALL)
    machine.add("sudo", 'exec "$@"')
    result = machine.bootstrap("check")
    (install,) = (call for call in machine.calls() if call.startswith("apt-get"))
    for package in ["gcc", "make", "libinih-dev", "python3-pytest", "php-curl"]:
        assert package in install.split()
        assert package in result.stdout.split()
    assert result.returncode == 1 and "still not found" in result.stderr  # it was only a stand-in


def test_the_lists_of_packages_are_fetched_where_there_are_none(machine):
    machine.add("apt-get")
    machine.add("apt-cache")
    machine.add("sudo", 'exec "$@"')
    machine.bootstrap("demo")
    assert [call.split()[1] for call in machine.calls() if call.startswith("apt-get")] == ["update", "install"]


def test_where_nothing_is_missing_make_is_called_at_once(machine):
    machine.add("apt-get")
    machine.add("cc", "echo /usr/lib/found")
    machine.add("curl")
    machine.add("make")
    result = machine.bootstrap("demo", python="/usr/bin/python3")
    assert result.returncode == 0, result.stderr
    calls = [call for call in machine.calls() if not call.startswith("cc ")]
    assert [call.split()[-1] for call in calls] == ["all", "demo"]
    assert all(call.startswith("make ") for call in calls)


@pytest.mark.parametrize("answer, installs", [(b"n\n", False), (b"\n", True), (b"y\n", True)])
def test_on_a_terminal_it_asks(machine, answer, installs):
    machine.add("apt-get")
    machine.add("apt-cache", KNOWS_ALL)
    machine.add("sudo", 'exec "$@"')
    controller, terminal = pty.openpty()
    os.write(controller, answer)
    result = machine.bootstrap("demo", stdin=terminal)
    os.close(terminal)
    os.close(controller)
    assert result.returncode == 1
    assert "install them?" in result.stdout
    assert any(call.startswith("apt-get install") for call in machine.calls()) == installs


def test_on_a_terminal_yes_answers(machine):
    machine.add("apt-get")
    machine.add("apt-cache", KNOWS_ALL)
    machine.add("sudo", 'exec "$@"')
    controller, terminal = pty.openpty()
    result = machine.bootstrap("demo", "--yes", stdin=terminal)
    os.close(terminal)
    os.close(controller)
    assert "install them?" not in result.stdout
    assert any(call.startswith("apt-get install") for call in machine.calls())


@pytest.mark.skipif(os.geteuid() == 0, reason="root needs no sudo")
def test_without_sudo_it_says_what_root_has_to_do(machine):
    machine.add("apt-get")
    machine.add("apt-cache", KNOWS_ALL)
    result = machine.bootstrap("demo")
    assert result.returncode == 1
    assert "as root, run:" in result.stderr
