# SPDX-License-Identifier: MIT
"""Programs that are told another time than the machine's: they keep their budget to themselves, and the
others are as if they were not there."""

import os
import time

import pytest

from harness import compile_c, compile_library, has_program, told
from test_clocks import CLOCKS
from upstream import Answer

DECADE = 315_360_000

# As libfaketime does it: what the C library tells is shifted, what the kernel tells is not.  FAKED_S: seconds;
# FAKED_FILE: only while that file is there; FAKED_CLOCK: only this clock; it fails where FAKED_S is "none".
FAKER = """
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static int is_faked(int clock)
{
    const char *file = getenv("FAKED_FILE"), *only = getenv("FAKED_CLOCK");
    return (!file || syscall(SYS_access, file, F_OK) == 0) && (!only || atoi(only) == clock);
}
int clock_gettime(clockid_t clock, struct timespec *time)
{
    const char *shift = getenv("FAKED_S");
    if (!is_faked(clock))
        return syscall(SYS_clock_gettime, clock, time);
    if (strcmp(shift, "none") == 0) {
        errno = EINVAL;
        return -1;
    }
    int result = syscall(SYS_clock_gettime, clock, time);
    time->tv_sec += atoi(shift);
    return result;
}
time_t time(time_t *out)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *out, void *unused)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""

pytestmark = pytest.mark.no_sanitizer("its runtime reads clocks before they can be faked")

QUOTA = "[default]\nquota = 20/s\nmax_wait = 10s\n"
PRIVATE = "no shared budget, this process keeps its own: "
FOREIGN = "this program's clock is not the machine's"


class Faked:
    """Programs under another time, with the library that fakes it before ours or after it."""

    def __init__(self, curtsy, library, order, seconds, **more):
        ours = curtsy.env()["LD_PRELOAD"]
        both = [os.fspath(library), ours] if order == "before" else [ours, os.fspath(library)]
        self.curtsy = curtsy
        self.env = {"LD_PRELOAD": ":".join(both), "FAKED_S": str(seconds), **more}

    def start(self, argv):
        return self.curtsy.start(argv, env=self.env)

    def curl(self, url):
        return self.start(["curl", "-sS", url]).wait()


@pytest.fixture(scope="session")
def faker(tmp_path_factory):
    return compile_library(FAKER, tmp_path_factory.mktemp("faker") / "faker.so")


def keeps_its_own(result, because=FOREIGN):
    """It works as without Curtsy, and says so in one line."""
    assert result.all_but_ours == (0, b"four", b"")
    (line,) = result.ours
    assert PRIVATE in line and because in line, line


def requests(curtsy):
    return sum(bucket["curtsy_requests_total"] for bucket in curtsy.status()["buckets"])


@pytest.mark.parametrize("seconds", [DECADE, -DECADE, 30, "none"])
@pytest.mark.parametrize("order", ["before", "after"])
def test_another_time_is_kept_to_itself(up, curtsy, faker, order, seconds):
    """CLOCK_BOOTTIME, whoever comes first."""
    up.on("/data", Answer(200, body=b"four"))
    curtsy.configure(QUOTA)
    only = {"FAKED_CLOCK": str(time.CLOCK_BOOTTIME)} if seconds in (-DECADE, "none") else {}
    faked = Faked(curtsy, faker, order, seconds, **only)
    keeps_its_own(faked.curl(up.url("/data")))
    assert not curtsy.segment.exists()
    for honest in range(1, 8):  # more than go at once
        assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")
        assert requests(curtsy) == honest
        keeps_its_own(faked.curl(up.url("/data")))
    (bucket,) = curtsy.status()["buckets"]
    assert bucket["block"] is None and requests(curtsy) == 7


@pytest.mark.parametrize("seconds", [3 * 3600, DECADE])
def test_one_that_is_not_found_out_stops_nobody(up, curtsy, tmp_path, seconds):
    """Whose kernel, as it seems, tells the same: what it leaves in the segment is garbage to the others."""
    up.on("/data", Answer(200, body=b"four"))
    up.on("/busy", told(3000))
    curtsy.configure(QUOTA)
    library, file = compile_library(CLOCKS, tmp_path / "clocks.so"), tmp_path / "jumped"
    file.touch()
    preload = f"{curtsy.env()['LD_PRELOAD']}:{library}"
    env = {"LD_PRELOAD": preload, "JUMP_FILE": os.fspath(file), "JUMP_S": str(seconds)}
    env["JUMP_CLOCK"] = str(time.CLOCK_BOOTTIME)
    for number in range(4):
        if number:
            assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")
        words = ["-d", "four", up.url("/busy")] if number == 2 else [up.url("/data")]
        assert curtsy.curl(*words, env=env).errors == ""
    assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")
    (bucket,) = curtsy.status()["buckets"]
    assert bucket["block"] is None and bucket["curtsy_requests_total"] == 8


def test_a_servers_word_to_it_is_its_own(up, curtsy, faker):
    up.on("/data", told(3000), Answer(200, body=b"four"))
    faked = Faked(curtsy, faker, "after", DECADE)
    assert faked.curl(up.url("/data")).output == (0, b"slow down\n")
    assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")


@pytest.mark.slow(2)
def test_the_time_changes_while_it_waits(up, curtsy, faker, tmp_path):
    """It leaves the others' budget, with its hold, and they stay in it."""
    up.on("/data", Answer(200, body=b"four"))
    file = tmp_path / "faked"
    faked = Faked(curtsy, faker, "after", DECADE, FAKED_FILE=os.fspath(file))
    assert faked.curl(up.url("/data")).all == (0, b"four", b"")
    assert curtsy.tool("hold", up.authority, "1h").rc == 0
    processes = [faked.start(["curl", "-sS", up.url("/data")]), curtsy.start(["curl", "-sS", up.url("/data")])]
    curtsy.wait_for_waiters(2)
    file.touch()
    keeps_its_own(processes[0].wait())
    assert processes[1].runs
    (bucket,) = curtsy.status()["buckets"]
    assert bucket["block"] == "hold" and 3000 < bucket["curtsy_blocked_seconds"] <= 3600
    assert curtsy.tool("release", up.authority).rc == 0
    assert processes[1].wait().all == (0, b"four", b"")


def test_the_operators_words_are_in_the_machines_time(up, curtsy, faker):
    up.on("/data", Answer(200, body=b"four"))
    assert curtsy.curl(up.url("/data")).rc == 0
    env = {"LD_PRELOAD": os.fspath(faker), "FAKED_S": str(DECADE)}
    for words in (["hold", up.authority, "1s"], ["mode", "off", "--for", "1s"], ["status"]):
        result = curtsy.tool(*words, env=env)
        assert result.rc == 1 and FOREIGN in result.text + result.errors
    assert curtsy.status()["mode"] == "auto" and curtsy.status()["buckets"][0]["block"] is None


# ---- where it cannot be told, and time namespaces ----

# Runs a program that may make any system call but this one.
FORBIDS = """
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(argv[1]), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 99;
    execvp(argv[2], argv + 2);
    return 98;
}
"""
NUMBER = "#include <stdio.h>\n#include <sys/syscall.h>\nint main(void) { printf(\"%d\", SYS_clock_gettime); }"
READS = "#include <time.h>\nint main(void) { struct timespec now; return clock_gettime(CLOCK_BOOTTIME, &now) != 0; }"


def test_a_sandbox_without_that_call_shares(up, curtsy, tmp_path):
    """The C library does without it as well."""
    up.on("/data", Answer(200, body=b"four"))
    number = curtsy.bare([compile_c(NUMBER, tmp_path / "number")]).text
    sandbox = [compile_c(FORBIDS, tmp_path / "forbids"), number]
    if curtsy.bare([*sandbox, compile_c(READS, tmp_path / "reads")]).rc != 0:
        pytest.skip("no clock can be read here without that call")
    assert curtsy.run([*sandbox, "curl", "-sS", up.url("/data")]).all == (0, b"four", b"")
    assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")
    assert requests(curtsy) == 2


def test_another_time_namespace_is_kept_to_itself(up, curtsy):
    up.on("/data", Answer(200, body=b"four"))
    inside = ["unshare", "--fork", "--time", "--boottime", str(10 * 86400), "--"]
    if not has_program("unshare") or curtsy.bare([*inside, "true"]).rc != 0:
        pytest.skip("no time namespace can be made here")
    curtsy.configure(QUOTA)
    for honest in range(1, 4):
        assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")
        keeps_its_own(curtsy.run([*inside, "curl", "-sS", up.url("/data")]), "under another clock")
        assert requests(curtsy) == honest
