# SPDX-License-Identifier: MIT
"""What may change while a program runs: its configuration, its segment, its user, the operator's mind.

A `Session` is a program that makes a request, or does something else, when it is told to, so that
the test can change the world in between.
"""

import os
import select
import subprocess
import sys
import time

import pytest

from harness import HANG, unshared
from upstream import Answer

PROGRAM = r"""
import os, sys, pycurl
handle = pycurl.Curl()
handle.setopt(pycurl.WRITEFUNCTION, lambda data: None)
def get(url):
    handle.setopt(pycurl.URL, url)
    try:
        handle.perform()
    except pycurl.error as error:
        return "error %d %s" % error.args[:2]
    return str(handle.getinfo(pycurl.RESPONSE_CODE))
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    print(get(rest) if word == "get" else eval(rest), flush=True)
"""


class Session:
    def __init__(self, curtsy, env=None, prefix=()):
        words = [*prefix, sys.executable, "-c", PROGRAM]
        self._process = subprocess.Popen(
            [os.fspath(word) for word in words],
            env=curtsy.env(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=curtsy.folder,
        )
        self.pid = self._process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()

    def tell(self, line):
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def hear(self):
        return self._process.stdout.readline().strip()

    def get(self, url):
        self.tell(f"get {url}")
        return self.hear()

    def has_answered(self):
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    @property
    def runs(self):
        return self._process.poll() is None

    def maps(self, path):
        """That very file, and not one that had its name."""
        with open(f"/proc/{self.pid}/maps") as maps:
            return any(line.split()[4] == str(path.stat().st_ino) for line in maps)

    def do(self, expression):
        self.tell(f"do {expression}")
        return self.hear()

    def finish(self):
        stdout, stderr = self._process.communicate(timeout=HANG)
        assert self._process.returncode == 0, stderr
        return stderr


@pytest.fixture
def up(upstream):
    server = upstream()
    server.on("/", Answer(200))
    return server


REFUSES = "[default]\nquota = 1/h\nburst = 1\nmax_wait = 1s\n"


def is_refused(answer):
    return answer.startswith("error 28 Curtsy: not sent")


# ---- the configuration ----


def test_a_changed_file_counts_after_reload(curtsy, up):
    curtsy.configure("")
    with Session(curtsy) as session:
        assert session.get(up.url("/")) == "200"
        curtsy.configure(REFUSES)
        assert [session.get(up.url("/")) for _ in range(3)] == ["200"] * 3
        assert curtsy.tool("reload").rc == 0
        assert session.get(up.url("/")) == "200"
        assert is_refused(session.get(up.url("/")))
        curtsy.configure("")
        assert curtsy.tool("reload").rc == 0
        assert session.get(up.url("/", host="localhost")) == "200"  # another bucket: the old limit is remembered
    assert len(up.arrivals("/")) == 6


def test_a_program_that_starts_and_finds_a_newer_file_tells_the_others(curtsy, up):
    curtsy.configure("")
    with Session(curtsy) as session:
        assert session.get(up.url("/")) == "200"
        curtsy.configure(REFUSES)
        assert session.get(up.url("/")) == "200"
        assert curtsy.curl(up.url("/")).rc == 0
        assert is_refused(session.get(up.url("/")))


@pytest.mark.parametrize("how", ["gone", "a folder", "too large"])
def test_what_was_read_stays_in_force_when_it_cannot_be_read_again(curtsy, up, how):
    curtsy.configure("[default]\nmax_attempts = 2\n" + REFUSES.replace("[default]\n", ""))
    with Session(curtsy, env={"CURTSY_LOG": "warn"}) as session:
        assert session.get(up.url("/")) == "200"
        curtsy.config_file.unlink()
        if how == "a folder":
            curtsy.config_file.mkdir()
        elif how == "too large":
            with open(curtsy.config_file, "wb") as file:
                file.truncate(17 << 20)
        curtsy.tool("reload", "--force")
        assert is_refused(session.get(up.url("/")))
        assert str(curtsy.config_file) in session.finish()
    if how == "a folder":
        curtsy.config_file.rmdir()


def test_files_with_a_fault_do_not_replace_good_ones_in_programs_that_run(curtsy, up):
    """Saved half-way, say; a program that starts with them has what of them is good."""
    curtsy.configure(REFUSES)
    with Session(curtsy) as session:
        assert session.get(up.url("/")) == "200"
        curtsy.configure("[127.0.0.1:")
        assert curtsy.curl(up.url("/", host="localhost")).rc == 0  # starts, and tells the others
        assert curtsy.tool("reload").rc == 1
        assert curtsy.tool("reload", "--force").rc == 0
        assert is_refused(session.get(up.url("/")))
        stderr = session.finish()
    assert "ratelimit.ini:1" in stderr and stderr.count("curtsy[") == 2  # that, and the give-up


def test_a_bad_value_inherits_and_the_rest_holds_at_the_start(curtsy, up):
    curtsy.configure(REFUSES + "base_delay = banana\n\0\xff[[[\n")
    with Session(curtsy) as session:
        assert session.get(up.url("/")) == "200"
        assert is_refused(session.get(up.url("/")))
        stderr = session.finish()
    assert "ratelimit.ini:5" in stderr and stderr.count("curtsy[") == 2


def test_the_log_level_follows_the_configuration(curtsy, up):
    curtsy.configure("")
    with Session(curtsy) as session:
        assert session.get(up.url("/")) == "200"
        curtsy.configure("[curtsy]\nlog = debug\n")
        assert curtsy.tool("reload").rc == 0
        assert session.get(up.url("/")) == "200"
        assert "policy: sections [default]" in session.finish()


def test_a_waiter_obeys_a_changed_quota(curtsy, up):
    """It would wait for an hour."""
    curtsy.configure("[default]\nquota = 1/h\nburst = 1\nmax_wait = 3h\n")
    with Session(curtsy) as session:
        assert session.get(up.url("/")) == "200"
        session.tell(f"get {up.url('/')}")
        waits_for(curtsy, 1)
        curtsy.configure("[default]\nquota = none\n")
        assert curtsy.tool("reload").rc == 0
        assert session.hear() == "200"


@pytest.mark.parametrize("what", ["configuration", "segment"])
def test_threads_go_on_while_everything_is_taken_anew(curtsy, up, what):
    """Snapshots come and go under eight threads; a sanitizer would see one that is used after its end."""
    configs = ["[default]\nrate = 400/s\n", "[default]\nrate = 300/s\n[127.0.0.1]\nmax_wait = 2min\n"]
    curtsy.configure(configs[0])
    process = curtsy.start([curtsy.victim("threads"), up.url("/"), "8", "60"])
    changes = 0
    while process.runs:
        if what == "configuration":
            changes += 1
            curtsy.configure(configs[changes % 2])
            assert curtsy.tool("reload").rc == 0
        elif curtsy.segment.exists():
            changes += 1
            curtsy.segment.unlink()
    result = process.wait()
    assert (result.rc, result.text, result.errors) == (0, "good 480 bad 0\n", "")
    assert changes >= (3 if what == "configuration" else 1)


def test_of_two_files_the_stricter_holds_and_it_is_said(curtsy, up):
    curtsy.configure("[default]\nquota = 1/h\nburst = 1\nmax_wait = 1s\n")
    generous = {"CURTSY_SET": "quota = 1000/h", "CURTSY_LOG": "info"}
    with Session(curtsy, env=generous) as other:
        assert other.get(up.url("/")) == "200"
        assert curtsy.curl(up.url("/")).rc == 28  # the one of this hour is gone
        assert is_refused(other.get(up.url("/")))
        stderr = other.finish()
    assert "another process or section asks for a stricter limit: quota 1/h holds, and not quota 1000/h" in stderr


def waits_for(curtsy, count):
    """Until so many are shown as waiting."""
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        buckets = curtsy.status()["buckets"]
        if sum(bucket["curtsy_waiting"] for bucket in buckets) == count:
            return
        time.sleep(0.02)
    raise TimeoutError(f"{count} waiters were never shown: {buckets}")


# ---- the segment ----


def test_a_removed_segment_is_made_again_and_shared_again(curtsy, up):
    """As logind does when its user's last session ends."""
    curtsy.configure("[default]\nrate = 4/s\n")
    with Session(curtsy) as one, Session(curtsy) as two:
        for session in (one, two):
            assert session.get(up.url("/")) == "200"
        curtsy.segment.unlink()
        for session in (one, two):
            end = time.monotonic() + HANG
            while not curtsy.segment.exists() or not session.maps(curtsy.segment):
                assert session.get(up.url("/")) == "200"  # each waits, and looks
                assert time.monotonic() < end
        before = curtsy.segment.stat().st_ino
        (bucket,) = curtsy.status()["buckets"]
        counted = bucket["curtsy_requests_total"]
        for session in (one, two):
            assert session.get(up.url("/")) == "200"
        (bucket,) = curtsy.status()["buckets"]
        assert bucket["curtsy_requests_total"] == counted + 2
        assert curtsy.segment.stat().st_ino == before


def test_a_segment_that_was_cut_short_is_grown_by_a_waiter(curtsy, up):
    curtsy.configure("[default]\nrate = 1/s\nmax_wait = 1h\n")
    with Session(curtsy) as session:
        assert session.get(up.url("/")) == "200"
        size = curtsy.segment.stat().st_size
        session.tell(f"get {up.url('/')}")
        waits_for(curtsy, 1)
        os.truncate(curtsy.segment, 4096)
        assert session.hear() in ("200", "")  # or, if it touched what was missing first, SIGBUS: see the caveats
        if session.runs:
            assert curtsy.segment.stat().st_size == size


# ---- users and namespaces: only root can do these ----


OWN_SHM = ("mount -t tmpfs none /dev/shm",)
OWN_ETC = ("mkdir -p /etc/curtsy", "mount -t tmpfs none /etc/curtsy")


@pytest.mark.no_sanitizer("its runtime is not found once the uid has changed")
def test_after_another_uid_the_segment_is_that_users(curtsy, up):
    """As php-fpm's workers: forked by root, then somebody else."""
    prefix = unshared(*OWN_SHM)
    if not prefix:
        pytest.skip("needs to mount")
    with Session(curtsy, prefix=["env", "-u", "CURTSY_SEGMENT", *prefix]) as session:
        assert session.get(up.url("/")) == "200"
        assert session.do("sorted(os.listdir('/dev/shm'))") == "['curtsy.v1.0']"
        child = "(lambda pid: os.waitpid(pid, 0)[1] if pid else (os.setuid(65534), get(%r), os._exit(0)))(os.fork())"
        assert session.do(child % up.url("/")) == "0"
        assert session.do("sorted(os.listdir('/dev/shm'))") == "['curtsy.v1.0', 'curtsy.v1.65534']"
        assert session.do("os.stat('/dev/shm/curtsy.v1.65534').st_uid") == "65534"
    assert len(up.arrivals("/")) == 2


def test_the_off_file_switches_off_and_on(curtsy, up):
    prefix = unshared(*OWN_ETC)
    if not prefix:
        pytest.skip("needs to mount")
    curtsy.configure("[default]\nquota = 1/h\nburst = 1\nmax_wait = 3h\n")
    with Session(curtsy, prefix=prefix) as session:
        assert session.get(up.url("/")) == "200"
        session.tell(f"get {up.url('/')}")
        waits_for(curtsy, 1)
        off = f"/proc/{session.pid}/root/etc/curtsy/off"
        open(off, "w").close()
        assert session.hear() == "200"
        assert [session.get(up.url("/")) for _ in range(3)] == ["200"] * 3
        os.unlink(off)
        asks_until_it_waits(curtsy, session, up.url("/"))  # it looks once a second


def asks_until_it_waits(curtsy, session, url):
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        session.tell(f"get {url}")
        while not session.has_answered():
            if sum(bucket["curtsy_waiting"] for bucket in curtsy.status()["buckets"]):
                return
        assert session.hear() == "200"
    raise TimeoutError("it never waited again")


def test_a_program_that_starts_switched_off_is_untouched(curtsy, up):
    prefix = unshared(*OWN_ETC, "touch /etc/curtsy/off")
    if not prefix:
        pytest.skip("needs to mount")
    curtsy.configure(REFUSES)
    with Session(curtsy, prefix=prefix) as session:
        assert [session.get(up.url("/")) for _ in range(4)] == ["200"] * 4
        assert session.finish() == ""


# ---- the operator ----


def test_mode_off_and_on_again(curtsy, up):
    curtsy.configure("[default]\nquota = 1/h\nburst = 1\nmax_wait = 3h\n")
    with Session(curtsy) as session:
        assert session.get(up.url("/")) == "200"
        session.tell(f"get {up.url('/')}")
        waits_for(curtsy, 1)
        assert curtsy.tool("mode", "off").rc == 0
        assert session.hear() == "200"
        assert session.get(up.url("/")) == "200"
        assert curtsy.tool("mode", "auto").rc == 0
        session.tell(f"get {up.url('/')}")
        waits_for(curtsy, 1)
        assert curtsy.tool("mode", "off", "127.0.0.1").rc == 0
        assert session.hear() == "200"
