# SPDX-License-Identifier: MIT
"""Segments of several users and versions: who shares one, and what `curtsy status` shows of them.

Most of it needs root, who becomes another user, and a /dev/shm and /etc of the test's own: a mount
namespace that only the test's processes are in.  The other user is given copies of the library and
the command in a folder that he may read.
"""

import dataclasses
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import tempfile

import pytest

from harness import HANG, Process, compile_c, told

NOBODY, ROOT = 65534, 0
OTHER_USER = "the other user has no access to what a sanitizer needs"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
no_sanitizer = pytest.mark.no_sanitizer(OTHER_USER)


def name_of(user):
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"uid {user}"


@dataclasses.dataclass
class Machine:
    """Where processes of several users live."""

    curtsy: object
    folder: pathlib.Path
    entry: list  # the words by which a program gets there

    def __post_init__(self):
        for name in ("libcurtsy.so", "curtsy"):
            shutil.copy(self.curtsy.build / name, self.folder / name)
        self.run_folder = self.folder / "run"
        self.run_folder.mkdir()
        self.config = self.folder / "ratelimit.ini"
        self.configure("")
        self.started = []

    def configure(self, text):
        self.config.write_text(text)
        self.config.chmod(0o644)

    def start(self, argv, user=ROOT, preload=True, **env):
        words = [*self.entry]
        if user != ROOT:
            words += ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        if preload:
            words += ["env", f"LD_PRELOAD={self.folder}/libcurtsy.so"]
        environment = {**self.curtsy.bare_env(), "CURTSY_CONFIG": os.fspath(self.config), "CURTSY_LOG": "warn", **env}
        environment = {name: value for name, value in environment.items() if value is not None}
        self.started.append(Process([*words, *argv], environment, None, self.folder))
        return self.started[-1]

    def curl(self, url, user=ROOT, **env):
        result = self.start(["curl", "-sS", "-o", "/dev/null", url], user, **env).wait(HANG)
        assert result.rc == 0, result.errors
        return result.errors

    def tool(self, *words, user=ROOT, **env):
        return self.start([self.folder / "curtsy", *words], user, preload=False, **env).wait(HANG)

    def sh(self, script):
        """What an administrator does by hand."""
        return self.start(["sh", "-euc", script], preload=False).wait(HANG)

    def json(self, *words, **options):
        result = self.tool("status", "--json", *words, **options)
        assert result.rc == 0, result.errors
        return json.loads(result.stdout)

    def end(self):
        for process in self.started:
            process.end()


@pytest.fixture
def readable_folder():
    """tmp_path is below a folder that only its owner may enter."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="curtsy-segments-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def machine(curtsy, readable_folder):
    """This machine, with several users, who are told of a segment in a folder of the test's."""
    machine = Machine(curtsy, readable_folder, [])
    yield machine
    machine.end()


@pytest.fixture
def own_machine(curtsy, readable_folder):
    """One whose /dev/shm is empty, and whose /etc has little beside what is put into `folder / "etc"`."""
    etc = readable_folder / "etc"
    (etc / "curtsy").mkdir(parents=True)
    for file in ("passwd", "group", "nsswitch.conf", "ld.so.cache", "hosts"):
        if os.path.exists(f"/etc/{file}"):
            shutil.copy(f"/etc/{file}", etc / file)
    script = f"mount -t tmpfs -o mode=1777 none /dev/shm && mount --bind '{etc}' /etc && echo ready && exec sleep 1000"
    holder = subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        if holder.stdout.readline() != b"ready\n":
            pytest.skip(f"no mount namespace: {holder.stderr.read().decode()}")
        entry = ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt", "--"]
        machine = Machine(curtsy, readable_folder, entry)
        yield machine
        machine.end()
    finally:
        holder.kill()
        holder.communicate()


def first_line(result):
    return result.text.splitlines()[0]


def headers(result):
    """The lines that name a segment."""
    return [line for line in result.text.splitlines() if line.startswith("segment ")]


def requests(document):
    return {bucket["bucket"]: bucket["curtsy_requests_total"] for bucket in document["buckets"]}


# ---- one for several users ----


MACHINE_WIDE = "[curtsy]\nsegment = {folder}/run/budget\nsegment_permissions = {mode}\nsegment_group = {group}\n"


@needs_root
@no_sanitizer
def test_two_users_share_roots_segment(up, machine):
    machine.configure(MACHINE_WIDE.format(folder=machine.folder, mode="0666", group="none") + "[default]\nquota = 50/h\n")
    assert machine.curl(up.url("/")) == ""
    file = machine.run_folder / "budget"
    assert (file.stat().st_mode & 0o7777, file.stat().st_uid) == (0o666, ROOT)
    assert machine.curl(up.url("/"), NOBODY) == ""
    for user in (ROOT, NOBODY):
        document = machine.json(user=user)
        assert document["segment"] == os.fspath(file) and document["owner"] == name_of(ROOT)
        assert requests(document) == {f"127.0.0.1:{up.port}": 2}
        (limit,) = document["buckets"][0]["limits"]
        assert limit["tokens"] <= limit["burst"] - 2 + 0.5  # one budget for both


@needs_root
@no_sanitizer
def test_a_group_shares_roots_segment(up, machine):
    group = f"{NOBODY}"
    machine.configure(MACHINE_WIDE.format(folder=machine.folder, mode="0660", group=group))
    assert machine.curl(up.url("/")) == ""
    file = machine.run_folder / "budget"
    assert (file.stat().st_mode & 0o7777, file.stat().st_uid, file.stat().st_gid) == (0o660, ROOT, NOBODY)
    assert machine.curl(up.url("/"), NOBODY) == ""
    assert requests(machine.json()) == {f"127.0.0.1:{up.port}": 2}
    errors = machine.curl(up.url("/"), NOBODY - 1)  # is not in the group
    assert "this process keeps its own" in errors and "Permission denied" in errors
    assert requests(machine.json()) == {f"127.0.0.1:{up.port}": 2}
    result = machine.tool("status", user=NOBODY - 1)
    assert result.rc == 1 and "cannot be used" in result.text and "Permission denied" in result.text


@needs_root
@no_sanitizer
def test_a_user_does_not_make_the_segment_of_all(up, machine):
    """He would own it, and nobody else would use it."""
    machine.configure(MACHINE_WIDE.format(folder=machine.folder, mode="0666", group="none"))
    machine.run_folder.chmod(0o777)
    errors = machine.curl(up.url("/"), NOBODY)
    assert "this process keeps its own" in errors and "has to be made by root" in errors
    assert not (machine.run_folder / "budget").exists()
    assert first_line(machine.tool("status", user=NOBODY)).startswith("nothing has run under Curtsy here yet")
    assert machine.curl(up.url("/")) == ""
    assert machine.curl(up.url("/"), NOBODY) == ""
    assert requests(machine.json(user=NOBODY)) == {f"127.0.0.1:{up.port}": 2}


@needs_root
@no_sanitizer
def test_a_segment_made_empty_by_the_system_is_filled_by_whoever_comes(up, machine):
    """As by `f /run/curtsy/budget 0666 root root` in tmpfiles.d."""
    machine.configure(MACHINE_WIDE.format(folder=machine.folder, mode="0666", group="none"))
    file = machine.run_folder / "budget"
    file.touch()
    file.chmod(0o666)
    for user in (NOBODY, NOBODY - 1, ROOT):
        assert machine.curl(up.url("/"), user) == ""
    assert requests(machine.json(user=NOBODY)) == {f"127.0.0.1:{up.port}": 3}
    assert file.stat().st_size == 4 << 20


# ---- scope ----


@needs_root
@no_sanitizer
def test_the_administrators_segment_is_the_machines(up, own_machine):
    machine = own_machine
    settings = MACHINE_WIDE.format(folder=machine.folder, mode="0666", group="none")
    (machine.folder / "etc/curtsy/ratelimit.ini").write_text(settings)
    every = "shared by every process on this machine that may write it"
    budget = machine.run_folder / "budget"
    summary = first_line(machine.tool("summary", user=NOBODY, CURTSY_CONFIG=None))
    assert summary == f"segment {budget} (not there yet), owned by {name_of(ROOT)}, {every}"
    machine.curl(up.url("/"), CURTSY_CONFIG=None)
    for user in (ROOT, NOBODY):
        expected = f"segment {budget}, owned by {name_of(ROOT)}, {every}"
        assert first_line(machine.tool("status", user=user, CURTSY_CONFIG=None)) == expected
        by_name = machine.tool("status", "--segment", os.fspath(budget), user=user, CURTSY_CONFIG=None)
        assert first_line(by_name) == expected
    # Whoever is told of it otherwise does not know that everybody is.
    result = machine.tool("status", user=NOBODY, CURTSY_SEGMENT=os.fspath(budget))
    assert first_line(result).endswith(", shared by every process on this machine that is given this name")
    budget.chmod(0o660)
    result = machine.tool("status", CURTSY_SEGMENT=os.fspath(budget))
    assert first_line(result).endswith(
        ", shared by every process on this machine that may write it and is given this name"
    )
    budget.chmod(0o600)
    result = machine.tool("status", CURTSY_CONFIG=None)
    assert first_line(result).endswith(f", shared by every process of {name_of(ROOT)} on this machine")


@needs_root
@no_sanitizer
def test_ones_own_segment_is_shared_by_ones_processes(up, own_machine):
    machine = own_machine
    machine.configure("[curtsy]\nsegment_permissions = 0666\n")  # is for those that have a name
    for user in (ROOT, NOBODY):
        machine.curl(up.url("/"), user)
        for name in (f"/curtsy.v1.{user}", f"curtsy.v1.{user}"):
            line = first_line(machine.tool("status", "--segment", name, user=user))
            owner = name_of(user)
            assert line == f"segment {name}, owned by {owner}, shared by every process of {owner} on this machine"
    assert machine.sh("stat -c '%U %a' /dev/shm/*").text.split() == [name_of(ROOT), "600", name_of(NOBODY), "600"]


@needs_root
def test_status_of_what_nobody_uses(curtsy, up):
    """Programs refuse a segment that others may write and that is not root's; root may look at it."""
    curtsy.curl(up.url("/"))
    os.chown(curtsy.segment, NOBODY, -1)
    curtsy.segment.chmod(0o666)
    result = curtsy.tool("status")
    assert result.rc == 0 and f"127.0.0.1:{up.port}" in result.text
    assert f", owned by {name_of(NOBODY)}, shared by nobody: " in first_line(result)


def test_status_makes_and_changes_nothing(curtsy, up):
    curtsy.curl(up.url("/"))
    before, content = curtsy.segment.stat(), curtsy.segment.read_bytes()
    for words in (["status"], ["status", "--json"], ["summary"], ["status", "127.0.0.1"]):
        assert curtsy.tool(*words).rc == 0
    after = curtsy.segment.stat()
    assert (after.st_mtime_ns, after.st_ctime_ns) == (before.st_mtime_ns, before.st_ctime_ns)
    assert curtsy.segment.read_bytes() == content
    curtsy.segment.write_bytes(b"")  # whose maker has just begun
    assert curtsy.tool("status").rc == 1
    assert curtsy.segment.stat().st_size == 0


CUTS_SHORT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file is cut short at the worst moment: it is mapped, and not a byte was read. */
void *mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t offset)
{
    void *(*next)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
    void *memory = next(address, size, protection, flags, descriptor, offset);
    struct stat wanted, opened;
    if (descriptor >= 0 && stat(getenv("CUT_FILE"), &wanted) == 0 && fstat(descriptor, &opened) == 0 &&
        wanted.st_ino == opened.st_ino)
        truncate(getenv("CUT_FILE"), atol(getenv("CUT_TO")));
    return memory;
}
"""


@pytest.mark.no_sanitizer("mmap is replaced")
@pytest.mark.parametrize("length", [0, 4096, 1 << 20])
def test_status_outlives_a_segment_that_is_cut_short(curtsy, up, length):
    """Else whoever may write a segment could keep root from seeing those of the others."""
    library = compile_c(CUTS_SHORT, curtsy.folder / "cuts.so", "-shared", "-fPIC", "-ldl")
    curtsy.curl(up.url("/"))
    env = {"LD_PRELOAD": os.fspath(library), "CUT_FILE": os.fspath(curtsy.segment), "CUT_TO": str(length)}
    result = curtsy.tool("status", env=env)
    assert curtsy.segment.stat().st_size == length
    assert result.rc == (0 if length else 1) and result.stderr == b""
    assert ("cannot be used" in result.text) == (length == 0)


# ---- all segments ----


def populate(machine, up):
    """Root's, another user's, one of an earlier and one of a later version, and things that are none."""
    machine.curl(up.url("/"))
    machine.curl(up.url("/"), NOBODY)
    machine.curl(up.url("/"), NOBODY)
    result = machine.sh(
        f"""
        cd /dev/shm
        truncate -s 2M curtsy.v0.{NOBODY}; chown {NOBODY} curtsy.v0.{NOBODY}
        truncate -s 4M curtsy.v2.0
        ln -s /etc/passwd curtsy.v1.7; mkfifo curtsy.v1.8; mkdir curtsy.v1.9
        touch curtsy.v1. curtsy.v1.x curtsy.v1.1000x curtsy.vx.1 curtsy.v1.0.0 other "$(printf 'curtsy.v1.\\033[31m')"
        """
    )
    assert result.rc == 0, result.errors


@needs_root
@no_sanitizer
def test_root_sees_the_segments_of_all(up, own_machine):
    populate(own_machine, up)
    result = own_machine.tool("status")
    assert (result.rc, result.stderr) == (0, b"")
    lines = headers(result)
    root, nobody = name_of(ROOT), name_of(NOBODY)
    assert lines[0] == f"segment /curtsy.v1.0, owned by {root}, shared by every process of {root} on this machine"
    assert lines[1].startswith("segment /curtsy.v1.7 cannot be used: ") and lines[1].endswith("a symbolic link")
    assert lines[2].startswith("segment /curtsy.v1.8 cannot be used: ") and "not a regular file" in lines[2]
    assert lines[3].startswith("segment /curtsy.v1.9 cannot be used: ")
    assert lines[4] == (
        f"segment /curtsy.v1.{NOBODY}, owned by {nobody}, shared by every process of {nobody} on this machine"
    )
    other = "of another version's layout: its processes share nothing with this one's"
    made = r"made \d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert re.fullmatch(f"segment /curtsy.v0.{NOBODY}, owned by {nobody}, 2MiB, {made}, {other}", lines[5])
    assert re.fullmatch(f"segment /curtsy.v2.0, owned by {root}, 4MiB, {made}, {other}", lines[6])
    assert len(lines) == 7
    rows = [line.split() for line in result.text.splitlines() if line.startswith("127.0.0.1:")]
    assert [row[4] for row in rows] == ["1", "2"]  # REQUESTS


@needs_root
@no_sanitizer
def test_root_asks_for_one(up, own_machine):
    populate(own_machine, up)
    for words, env in [
        (["--segment", f"/curtsy.v1.{NOBODY}"], {}),
        ([], {"CURTSY_SEGMENT": f"/curtsy.v1.{NOBODY}"}),
    ]:
        result = own_machine.tool("status", *words, **env)
        assert len(headers(result)) == 1
        assert requests(own_machine.json(*words, **env)) == {f"127.0.0.1:{up.port}": 2}
    document = own_machine.json()  # the one form, and root's own
    assert document["segment"] == "/curtsy.v1.0" and requests(document) == {f"127.0.0.1:{up.port}": 1}
    result = own_machine.tool("status", "--all", "--segment", "/curtsy.v1.0")
    assert (result.rc, result.stdout) == (2, b"")


@needs_root
@no_sanitizer
def test_all_segments_as_json(up, own_machine):
    populate(own_machine, up)
    document = own_machine.json("--all")
    assert list(document) == ["segments"]
    segments = {segment["segment"]: segment for segment in document["segments"]}
    assert list(segments) == [
        *(f"/curtsy.v1.{user}" for user in (0, 7, 8, 9, NOBODY)),
        f"/curtsy.v0.{NOBODY}",
        "/curtsy.v2.0",
    ]
    assert requests(segments["/curtsy.v1.0"]) == {f"127.0.0.1:{up.port}": 1}
    assert requests(segments[f"/curtsy.v1.{NOBODY}"]) == {f"127.0.0.1:{up.port}": 2}
    assert "error" not in segments["/curtsy.v1.0"]
    for name in ("/curtsy.v1.7", "/curtsy.v1.8", "/curtsy.v1.9", "/curtsy.v2.0"):
        assert segments[name]["buckets"] == [] and segments[name]["error"]
    old = segments[f"/curtsy.v0.{NOBODY}"]
    assert (old["owner"], old["scope"], old["size"]) == (name_of(NOBODY), None, 2 << 20)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", old["made"])


@needs_root
@no_sanitizer
def test_a_host_in_all_segments(upstream, own_machine):
    both, one = upstream(), upstream()
    for user, server in [(ROOT, both), (NOBODY, both), (NOBODY, one)]:
        own_machine.curl(server.url("/"), user)
    assert len(headers(own_machine.tool("status", f"127.0.0.1:{both.port}"))) == 2
    result = own_machine.tool("status", f"127.0.0.1:{one.port}")
    assert len(headers(result)) == 1 and first_line(result).startswith(f"segment /curtsy.v1.{NOBODY}, ")
    result = own_machine.tool("status", "127.0.0.1:1")
    assert result.rc == 1 and "no bucket of 127.0.0.1:1" in result.errors


@needs_root
@no_sanitizer
def test_a_user_sees_his_own(up, own_machine):
    populate(own_machine, up)
    result = own_machine.tool("status", user=NOBODY)
    assert (result.rc, result.stderr) == (0, b"")
    own, older = headers(result)
    assert own.startswith(f"segment /curtsy.v1.{NOBODY}, owned by {name_of(NOBODY)}, ")
    assert older.startswith(f"segment /curtsy.v0.{NOBODY}, ") and "another version's layout" in older
    assert requests(own_machine.json(user=NOBODY)) == {f"127.0.0.1:{up.port}": 2}
    # All of them, as far as he may.
    lines = headers(own_machine.tool("status", "--all", user=NOBODY))
    assert len(lines) == 7 and lines[0] == own
    assert lines[1] == "segment /curtsy.v1.0 cannot be used: /dev/shm/curtsy.v1.0: Permission denied"
    # Where his programs are told of another, that is the one; those under an older version may not know.
    own_machine.configure(MACHINE_WIDE.format(folder=own_machine.folder, mode="0666", group="none"))
    own_machine.curl(up.url("/"))
    shared, older = headers(own_machine.tool("status", user=NOBODY))
    assert shared.startswith(f"segment {own_machine.run_folder}/budget, owned by {name_of(ROOT)}, ")
    assert older.startswith(f"segment /curtsy.v0.{NOBODY}, ")


@needs_root
@no_sanitizer
def test_only_one_of_another_version(own_machine):
    """After an update, before anything was started anew."""
    own_machine.sh(f"truncate -s 2M /dev/shm/curtsy.v0.{NOBODY}; chown {NOBODY} /dev/shm/curtsy.v0.{NOBODY}")
    result = own_machine.tool("status", user=NOBODY)
    assert result.rc == 1
    assert result.text.startswith("nothing has run under Curtsy here yet: ")
    assert [line.split(",")[0] for line in headers(result)] == [f"segment /curtsy.v0.{NOBODY}"]
    result = own_machine.tool("status")  # root's own is not worth a line
    assert result.rc == 0 and result.text.startswith(f"segment /curtsy.v0.{NOBODY}, ")


@needs_root
@no_sanitizer
def test_all_of_none(own_machine):
    for words in ([], ["--all"]):
        result = own_machine.tool("status", *words)
        assert (result.rc, result.text) == (1, "nothing has run under Curtsy here yet: no segment /curtsy.v1.0\n")
    result = own_machine.tool("status", "--all", "--json")
    assert result.rc == 1 and json.loads(result.stdout) == {"segments": []}


# ---- what an operator has said, and who waits ----


def test_status_shows_the_operators_modes(curtsy, up):
    curtsy.curl(up.url("/"))
    host = f"127.0.0.1:{up.port}"
    document = curtsy.status()
    assert (document["mode"], document["mode_until"]) == ("auto", None)
    assert (document["buckets"][0]["mode"], document["buckets"][0]["mode_until"]) == ("auto", None)
    assert "mode" not in curtsy.tool("status").text
    assert curtsy.tool("mode", "observe", "--for", "1h").rc == 0
    assert curtsy.tool("mode", "off", host).rc == 0
    document = curtsy.status()
    assert document["mode"] == "observe"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", document["mode_until"])
    assert (document["buckets"][0]["mode"], document["buckets"][0]["mode_until"]) == ("off", None)
    lines = curtsy.tool("status").text.splitlines()
    until = r"until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(for \d+m\d\ds\)"
    assert re.fullmatch(f"mode observe {until}, by the operator", lines[1])
    assert "    mode off until it is changed, by the operator" in lines


def test_status_shows_what_blocks_a_bucket(upstream, curtsy):
    quiet, strict = upstream(), upstream()
    strict.on("/", told(3000))
    for server in (quiet, strict):
        curtsy.curl("-o", "/dev/null", server.url("/"))
    blocks = {bucket["bucket"]: bucket for bucket in curtsy.status()["buckets"]}
    assert blocks[f"127.0.0.1:{quiet.port}"]["block"] is None
    assert blocks[f"127.0.0.1:{strict.port}"]["block"] == "hard"
    assert curtsy.tool("hold", f"127.0.0.1:{quiet.port}", "10min").rc == 0
    (bucket,) = json.loads(curtsy.tool("status", "--json", f"127.0.0.1:{quiet.port}").stdout)["buckets"]
    assert (bucket["block"], bucket["block_is_soft"]) == ("hold", False)
    assert 500 < bucket["curtsy_blocked_seconds"] <= 600
    text = curtsy.tool("status", f"127.0.0.1:{quiet.port}").text
    assert re.search(
        r"^    held until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(for \d+m\d\ds\), by the operator$", text, re.M
    )


def test_status_counts_who_waits(up, curtsy):
    config = "[default]\nmax_wait = 1h\ntotal_budget = 1h\n"
    curtsy.curl("-o", "/dev/null", up.url("/"), config=config)
    assert curtsy.tool("hold", f"127.0.0.1:{up.port}", "30min").rc == 0
    waiting = [curtsy.start(["curl", "-sS", up.url("/")]) for _ in range(3)]

    def count():
        (bucket,) = curtsy.status()["buckets"]
        return bucket["curtsy_waiting"]

    while count() < 3:
        assert all(process.runs for process in waiting)
    assert "    waiting now: 3\n" in curtsy.tool("status").text
    waiting[0].kill()  # and could not take itself off the list
    waiting[0].end()
    assert count() == 2
    assert curtsy.tool("release", f"127.0.0.1:{up.port}").rc == 0
    for process in waiting[1:]:
        assert process.wait().rc == 0
    assert count() == 0
    assert "waiting now" not in curtsy.tool("status").text


def test_status_names_a_bucket_as_the_operators_commands_do(up, curtsy):
    curtsy.curl("-o", "/dev/null", up.url("/"), config="[default]\nmode = observe\n")
    for host in (f"127.0.0.1:{up.port}", "127.0.0.1", f"127.0.0.1:{up.port} (observed)"):
        (bucket,) = json.loads(curtsy.tool("status", "--json", host).stdout)["buckets"]
        assert bucket["bucket"] == f"127.0.0.1:{up.port} (observed)"
