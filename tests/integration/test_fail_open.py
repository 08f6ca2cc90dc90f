# SPDX-License-Identifier: MIT
"""Curtsy fails open: whatever is missing, full, foreign or garbage, a program under it ends as it
would without, prints what it would print, and at most one line of Curtsy's is added to its standard
error.

A world is a way to break the surroundings.  In each, programs are run bare and under Curtsy against
the same server, and compared.  In all of them a request that a server turned away for a moment is
still made again: what needs no shared memory goes on.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import struct
import subprocess

import pytest

from harness import ASKER, TEXT, compile_c, not_early, serve, told, transfers, unshared
from upstream import Answer

NOBODY = 65534
MAGIC, LAYOUT_OF_NO_VERSION = 0x7973747275430A00, 99 << 48

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do this to a program")


# ---- worlds ----


@dataclasses.dataclass
class World:
    says: str = None  # what Curtsy's one line says; None: it is silent
    prefix: tuple = ()  # of the programs' command lines
    env: dict = dataclasses.field(default_factory=dict)
    config: str = ""


WORLDS = {}


def world(*marks):
    def add(function):
        WORLDS[function.__name__] = pytest.param(function, id=function.__name__, marks=marks)
        return function

    return add


def with_mounts(*commands, says=None, name="/budget"):
    """A /dev/shm (or /proc, or /dev) of the programs' own; the segment is a name in it."""
    prefix = unshared(*commands)
    if not prefix:
        pytest.skip("needs to mount")
    return World(says, tuple(prefix), {"CURTSY_SEGMENT": name} if name else {})


SHM = "mount -t tmpfs -o {} none /dev/shm"
SOME_DEVICES = "&& ".join(
    f"mknod -m 666 /dev/{name} c {major} {minor} " for name, major, minor in [("null", 1, 3), ("urandom", 1, 9)]
)


@world()
def nothing_is_broken(curtsy, folder):
    return World()


@world(pytest.mark.no_sanitizer("its runtime needs more of /dev"))
def no_folder_for_shared_memory(curtsy, folder):
    return with_mounts("mount -t tmpfs none /dev", SOME_DEVICES, says="No such file or directory")


@world()
def shared_memory_is_full(curtsy, folder):
    return with_mounts(SHM.format("size=64k"), says="No space left on device")


@world()
def shared_memory_becomes_full(curtsy, folder):
    """There is room for the name, and for a part of it."""
    fill = "head -c 3000000 /dev/zero > /dev/shm/other"
    return with_mounts(SHM.format("size=4m"), fill, says="No space left on device")


@world()
def no_inode_is_left(curtsy, folder):
    return with_mounts(SHM.format("nr_inodes=1"), says="No space left on device")


@world()
def shared_memory_is_read_only(curtsy, folder):
    return with_mounts(SHM.format("ro"), says="Read-only file system")


@world()
def a_segment_that_became_read_only(curtsy, folder):
    make = "truncate -s 4M /dev/shm/budget"
    return with_mounts(SHM.format("rw"), make, "mount -o remount,ro /dev/shm", says="Read-only file system")


@world(needs_root)
def somebody_elses_segment(curtsy, folder):
    make = f"truncate -s 4M /dev/shm/budget && chown {NOBODY} /dev/shm/budget && chmod 666 /dev/shm/budget"
    return with_mounts(SHM.format("rw"), make, says="belongs to another user")


@world(needs_root)
def a_segment_that_anybody_may_write(curtsy, folder):
    """Root's own choice: it is used."""
    return with_mounts(SHM.format("rw"), "truncate -s 4M /dev/shm/budget", "chmod 666 /dev/shm/budget")


def segment_of(curtsy, content, says):
    curtsy.segment.write_bytes(content)
    return World(says)


@world()
def a_segment_of_foreign_bytes(curtsy, folder):
    return segment_of(curtsy, os.urandom(4 << 20), "not a segment of this version")


@world()
def a_short_file_of_foreign_bytes(curtsy, folder):
    return segment_of(curtsy, b"somebody's notes\n", "not a segment of this version")


@world()
def a_segment_of_another_version(curtsy, folder):
    header = struct.pack("<QQQ", MAGIC, LAYOUT_OF_NO_VERSION, 4 << 20)
    return segment_of(curtsy, header.ljust(4 << 20, b"\0"), "not a segment of this version")


@world()
def a_segment_that_is_too_large(curtsy, folder):
    curtsy.segment.touch()
    os.truncate(curtsy.segment, 2 << 30)
    return World("too large for a segment")


@world()
def an_empty_segment(curtsy, folder):
    """Whose maker died before he had allocated it: it is made whole."""
    return segment_of(curtsy, b"", None)


@world()
def a_segment_cut_short(curtsy, folder):
    serve_nobody = ["curl", "-s", "-o", "/dev/null", "http://127.0.0.1:1/"]
    assert curtsy.run(serve_nobody).rc == 7
    os.truncate(curtsy.segment, 100_000)
    return World()


@world()
def a_segment_whose_links_loop(curtsy, folder):
    curtsy.segment.symlink_to(curtsy.segment)
    return World("a symbolic link")


@world()
def a_segment_that_is_a_fifo(curtsy, folder):
    os.mkfifo(curtsy.segment)
    return World("not a regular file")


@world(pytest.mark.no_sanitizer("its runtime needs /proc"))
def no_proc(curtsy, folder):
    return with_mounts("mount -t tmpfs none /proc", says="without /proc")


@world()
def a_proc_that_is_read_only(curtsy, folder):
    return with_mounts(SHM.format("rw"), "mount --bind /proc /proc", "mount -o remount,bind,ro /proc")


@world()
def a_time_namespace(curtsy, folder):
    prefix = ["unshare", "--time", "--fork", "--boottime", "1000000", "--"]
    if subprocess.run([*prefix, "true"], capture_output=True).returncode:
        pytest.skip("no time namespaces")
    # Each run is in another one: so each has another segment.
    own = ("sh", "-c", 'CURTSY_SEGMENT=$CURTSY_SEGMENT.$$ exec "$@"', "sh")
    return World(None, (*prefix, *own))


@world()
def a_segment_of_another_time_namespace(curtsy, folder):
    assert curtsy.run(["curl", "-s", "http://127.0.0.1:1/"]).rc == 7
    made = a_time_namespace(curtsy, folder)
    made.prefix = made.prefix[: made.prefix.index("sh")]
    made.says = "under another clock"
    return made


@world(pytest.mark.no_sanitizer("its runtime makes files of its own"))
def files_may_not_grow_at_all(curtsy, folder):
    return World("File too large", ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh"))


@world()
def files_may_grow_a_little(curtsy, folder):
    return World("File too large", ("sh", "-c", 'ulimit -f 8; exec "$@"', "sh"))


@world()
def a_log_that_may_not_grow(curtsy, folder):
    (folder / "log").write_bytes(b"x" * 8190)
    env = {"CURTSY_LOG": "debug", "CURTSY_LOG_FILE": os.fspath(folder / "log")}
    return World(None, ("sh", "-c", 'ulimit -f 16; exec "$@"', "sh"), env)


@world()
def malformed_sections_and_values(curtsy, folder):
    config = "[default\nquota = banana\n= = =\n[a][b]\nno_such_key = 1\nmax_attempts = -1\n\xff[[[\n"
    return World("ratelimit.ini:1: ", config=config)


@world()
def a_binary_configuration(curtsy, folder):
    return World("ratelimit.ini", config="\x01\x02[\x7f=\r\x1b[2J\n" * 500)


@world()
def a_malformed_choice_in_the_environment(curtsy, folder):
    return World("CURTSY_SET:1: ", env={"CURTSY_SET": "[[[\nquota=\n"})


@world()
def no_configuration(curtsy, folder):
    """One was named, and is not there."""
    return World("cannot be read", env={"CURTSY_CONFIG": os.fspath(folder / "nowhere.ini")})


@world()
def nothing_in_the_environment(curtsy, folder):
    """The layers of the system and the user, of which there are none."""
    preload = curtsy.env()["LD_PRELOAD"]
    kept = [f"{name}={value}" for name, value in curtsy.env().items() if name.endswith("SAN_OPTIONS")]
    prefix = unshared(SHM.format("rw"))
    if not prefix:
        pytest.skip("needs to mount")
    return World(None, (*prefix, "env", "-i", f"PATH={os.environ['PATH']}", *kept), {"PRELOAD": preload})


@world()
def a_folder_that_is_gone(curtsy, folder):
    script = f'mkdir "{folder}/gone"; cd "{folder}/gone"; rmdir ../gone; exec "$@"'
    return World(None, ("sh", "-c", script, "sh"), {"CURTSY_LOG_FILE": "log", "CURTSY_LOG": "debug"})


@world(pytest.mark.no_sanitizer("its runtime makes files of its own"))
def everything_at_once(curtsy, folder):
    made = with_mounts(SHM.format("ro"), "mount --bind /dev/null /proc/sys/kernel/random/boot_id")
    made.config, made.says = "[default\n", "ratelimit.ini:1: "
    made.env |= {"CURTSY_LOG_FORMAT": "neither", "CURTSY_MODE": "perhaps"}
    made.prefix += ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh")
    return made


@pytest.mark.parametrize("make_world", WORLDS.values())
def test_the_program_ends_as_without_curtsy(up, curtsy, tmp_path, make_world):
    serve(up)
    made = make_world(curtsy, tmp_path)
    curtsy.configure(made.config)
    prefix, preload = list(made.prefix), made.env.pop("PRELOAD", None)
    under = [*prefix, f"LD_PRELOAD={preload}"] if preload else prefix

    bare = curtsy.bare([*prefix, *transfers(up)])
    governed = curtsy.run([*under, *transfers(up)], env=made.env)
    assert bare.rc == 0 and governed.all_but_ours == bare.all
    assert len(governed.ours) == (made.says is not None), governed.errors
    assert made.says is None or made.says in governed.ours[0]

    parallel = ["curl", "-sS", "-Z", "-i", up.url("/text")]  # by the multi interface, and with a meter
    assert curtsy.run([*under, *parallel], env=made.env).output == curtsy.bare([*prefix, *parallel]).output

    busy = curtsy.run([*under, "curl", "-sS", up.url("/busy")], env=made.env)
    assert busy.output == (0, b"now\n") and unnumbered(busy.ours) == unnumbered(governed.ours)

    for argv in (["true"], ["sh", "-c", "echo x; echo y >&2; exit 3"]):
        assert curtsy.run([*under, *argv], env=made.env).all == curtsy.bare([*prefix, *argv]).all


def unnumbered(lines):
    """Whichever process wrote them."""
    return [re.sub(r"^curtsy\[\d+\]", "", line) for line in lines]


def test_a_foreign_file_is_left_as_it_is(up, curtsy):
    serve(up)
    for content in (os.urandom(4 << 20), b"somebody's notes\n", struct.pack("<QQ", MAGIC, LAYOUT_OF_NO_VERSION)):
        curtsy.segment.write_bytes(content)
        assert curtsy.curl(up.url("/text")).output == (0, TEXT)
        assert curtsy.segment.read_bytes() == content


@needs_root
@pytest.mark.no_sanitizer("another user has no access to what it needs")
@pytest.mark.parametrize("mode, owner", [(0o600, 0), (0o000, NOBODY)])
def test_a_configuration_that_may_not_be_read(up, curtsy, tmp_path, mode, owner):
    """Root may read anything, so somebody else has to be the one."""
    serve(up)
    open_folder = pathlib.Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    try:
        open_folder.chmod(0o777)
        shutil.copy(curtsy.library, open_folder)
        config = open_folder / "ratelimit.ini"
        config.write_text("[default]\nmax_attempts = 2\n")
        config.chmod(mode)
        os.chown(config, owner, owner)
        env = {"CURTSY_CONFIG": f"{config}", "CURTSY_SEGMENT": f"{open_folder}/budget"}
        env["LD_PRELOAD"] = f"{open_folder}/libcurtsy.so"
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        bare = curtsy.bare([*user, *transfers(up)], cwd="/")
        governed = curtsy.run([*user, *transfers(up)], env=env, cwd="/")
        assert governed.all_but_ours == bare.all
        assert len(governed.ours) == 1 and "Permission denied" in governed.ours[0]
    finally:
        shutil.rmtree(open_folder)


BAD_FILES = {
    "gone": None,
    "empty": b"",
    "zeros": bytes(5000),
    "random": os.urandom(5000),
    "repetitive": b"[default]\n" * 9000,
    "malformed": b"[",
}


@pytest.mark.parametrize("content", BAD_FILES.values(), ids=BAD_FILES)
def test_the_configuration_turns_bad_while_it_runs(up, curtsy, content):
    """What was read before holds, or the defaults do; the requests go on."""
    up.on("/text", TEXT)
    program = compile_c(ASKER, curtsy.folder / "asker", "-lcurl")
    process = curtsy.start([program, up.url("/text")], stdin=b"")
    up.wait_for(5, path="/text")
    curtsy.config_file.unlink()
    if content is not None:
        curtsy.config_file.write_bytes(content)
    assert curtsy.tool("reload", "--force").rc == 0
    up.wait_for(len(up.arrivals()) + 5, path="/text")
    result = process.wait()
    assert result.rc == 0 and re.fullmatch(r"right \d+ wrong 0\n", result.text)
    assert len(result.ours) <= 1 and result.all_but_ours[2] == b""


# ---- descriptors ----

# Closes its descriptors at its start or was begun without them, and gets 0, 1 and 2 for files of data.
REUSING = """
#include <curl/curl.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static size_t put(char *data, size_t size, size_t number, void *unused)
{
    return write(2, data, size * number);
}
int main(int argc, char **argv)
{
    int result = 0;
    for (int i = 0; i < 100; i++)
        close(i);
    for (int i = 0; i < 3; i++)
        if (open(argv[1 + i], O_RDWR | O_CREAT | O_TRUNC, 0600) != i)
            return 90 + i;
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, put);
    for (int i = 4; i < argc; i++) {
        curl_easy_setopt(easy, CURLOPT_URL, argv[i]);
        result += curl_easy_perform(easy);
    }
    curl_easy_cleanup(easy);
    return result;
}
"""


@pytest.mark.parametrize("closed", ["", "2>&-", "0<&- 1>&- 2>&-", "0<&- 1>&- 2>file"])
@pytest.mark.parametrize("broken", [False, True])
def test_data_in_the_place_of_the_standard_streams(up, curtsy, tmp_path, closed, broken):
    """However much there is to say, none of it goes into a file that has one of their numbers."""
    serve(up)
    program = compile_c(REUSING, tmp_path / "reusing", "-lcurl")
    files = [tmp_path / f"data{number}" for number in range(3)]
    urls = [up.url("/text"), up.url("/busy"), up.url("/text")]
    env = {"CURTSY_LOG": "debug", **({"CURTSY_SEGMENT": "/nonexistent/folder/budget"} if broken else {})}
    result = curtsy.run(["sh", "-c", f'exec {closed}; exec "$@"', "sh", program, *files, *urls], env=env)
    assert (result.rc, result.stdout) == (0, b"")
    assert [file.read_bytes() for file in files] == [b"", b"", TEXT + b"now\n" + TEXT]
    assert result.all_but_ours[2] == b""
    if closed.endswith("file"):  # which was its standard error when it started
        assert (curtsy.folder / "file").read_text().count("curtsy[") == broken


@pytest.mark.parametrize("how", ["nobody reads", "nobody empties it"])
def test_standard_error_that_nobody_takes(up, curtsy, how):
    """Its line is lost; no SIGPIPE, no waiting."""
    serve(up)
    if how == "nobody reads":
        script = 'exec 2> >(:); wait $!; exec "$@"'
    else:
        fill = "import fcntl, os; fcntl.fcntl(2, fcntl.F_SETPIPE_SZ, 4096); os.write(2, bytes(4096))"
        after = "rc=$?; kill $holder; exit $rc"
        script = f'exec 2> >(exec sleep 1000); holder=$!; /usr/bin/python3 -c "{fill}"; "$@"; {after}'
    words = ["bash", "-c", script, "bash", "curl", "-s", up.url("/text")]
    result = curtsy.run(words, env={"CURTSY_SEGMENT": "/nonexistent/folder/budget", "CURTSY_LOG": "debug"})
    assert result.all == (0, TEXT, b"")


def fewest_descriptors(curtsy, argv):
    """With how many the program just does it."""
    for most in range(3, 40):
        words = ["sh", "-c", f'ulimit -n {most}; exec "$@"', "sh", *argv]
        result = curtsy.bare(words)
        if result.rc == 0:
            return words, result
    raise AssertionError("it never does")


@pytest.mark.no_sanitizer("its runtime needs some itself")
@pytest.mark.parametrize("victim", ["curl", "get"])
def test_as_few_descriptors_as_without_curtsy(up, curtsy, victim):
    serve(up)
    argv = ["curl", "-sS", up.url("/text")] if victim == "curl" else [curtsy.victim("get"), up.url("/text")]
    words, bare = fewest_descriptors(curtsy, argv)
    for _ in range(2):  # with and without the segment there
        governed = curtsy.run(words)
        assert governed.all_but_ours == bare.all and len(governed.ours) <= 1


# Takes all the descriptors there are, between requests; a connection that is kept can be used still.
EXHAUSTING = """
#include <curl/curl.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
int main(int argc, char **argv)
{
    struct rlimit limit = {40, 40};
    CURL *easy = curl_easy_init();
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 1; i < argc; i++) {
        curl_easy_setopt(easy, CURLOPT_URL, argv[i]);
        fprintf(stdout, " %d\\n", (int)curl_easy_perform(easy));
        while (open("/dev/null", O_RDONLY) >= 0)
            ;
    }
    return 0;
}
"""


def test_no_descriptor_is_left_between_requests(up, curtsy, tmp_path):
    up.on("/text", TEXT)
    up.on("/limited", told(1), Answer(200, body=b"now\n"))
    program = compile_c(EXHAUSTING, tmp_path / "exhausting", "-lcurl")
    elsewhere = up.url("/text", host="localhost")
    words = [program, up.url("/text"), up.url("/text"), elsewhere]
    governed = curtsy.run(words)
    assert governed.all == curtsy.bare(words).all and governed.rc == 0
    waiting = curtsy.run([program, up.url("/text"), up.url("/limited")])
    assert waiting.all == (0, TEXT + b" 0\nnow\n 0\n", b"")
    not_early(up.waits("/limited"), 1.0)


# ---- memory ----


def least_address_space(curtsy, argv):
    """In KiB, to half a MiB: with how much the program just does it."""
    for size in range(8 << 10, 256 << 10, 512):
        if curtsy.bare(["sh", "-c", f'ulimit -v {size}; exec "$@"', "sh", *argv]).rc == 0:
            return size
    raise AssertionError("it never does")


@pytest.mark.no_sanitizer("its runtime takes terabytes")
@pytest.mark.parametrize("more", [1 << 10, 2 << 10])
def test_little_address_space(up, curtsy, more):
    """Room for the library, but not for the segment."""
    serve(up)
    argv = ["curl", "-sS", up.url("/text")]
    size = least_address_space(curtsy, argv) + more
    result = curtsy.run(["sh", "-c", f'ulimit -v {size}; exec "$@"', "sh", *argv])
    assert result.all_but_ours == (0, TEXT, b"")
    assert len(result.ours) == 1 and "Cannot allocate memory" in result.ours[0]
