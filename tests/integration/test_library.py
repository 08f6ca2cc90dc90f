# SPDX-License-Identifier: MIT
"""What the library is, seen from outside: what it needs, what it exports, what it does to programs
that have nothing to do with it, and what happens when something of its own is missing."""

import os
import pathlib
import re
import subprocess

import pytest

from harness import compile_c, has_program, needed_libraries, not_early, told
from upstream import Answer

SOURCES = pathlib.Path(__file__).resolve().parents[2]
FOUR = Answer(200, body=b"four")

# Declared by curl's headers and deliberately not hooked: they have no handle to govern, and nothing
# that Curtsy does changes what they return.
NOT_HOOKED = {
    "curl_easy_escape",
    "curl_easy_unescape",
    "curl_easy_strerror",
    "curl_easy_option_by_id",
    "curl_easy_option_by_name",
    "curl_easy_option_next",
    "curl_multi_strerror",
}


def exported(library):
    listing = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in listing.splitlines()}


def hooked():
    """The names of the table of hooks that are exported."""
    table = (SOURCES / "shim" / "hooks.def").read_text()
    table = re.sub(r"/\*.*?\*/", "", table, flags=re.S)
    return set(re.findall(r"^(?:HOOK\(|PASS\([^,]*, )(curl_\w+)", table, flags=re.M))


def test_it_needs_nothing_but_libc(curtsy):
    runtime = "|lib(asan|tsan|ubsan|m|gcc_s|pthread|dl)" if curtsy.sanitizer else ""
    allowed = re.compile(rf"(libc|ld-linux.*{runtime})\.so\.\d+")
    assert [name for name in needed_libraries(curtsy.library) if not allowed.fullmatch(name)] == []


def test_it_exports_what_it_hooks_and_nothing_else(curtsy):
    assert len(hooked()) > 20
    assert exported(curtsy.library) == hooked()


def test_no_function_of_curls_headers_was_forgotten():
    include = subprocess.run(
        ["cc", "-E", "-x", "c", "-"], input="#include <curl/curl.h>\n", capture_output=True, text=True, check=True
    ).stdout
    declared = set(re.findall(r"\b(curl_(?:easy|multi)_\w+)\s*\(", include))
    assert len(declared) > 30
    assert declared - hooked() == NOT_HOOKED
    assert NOT_HOOKED & hooked() == set()


def test_its_names_have_no_version(curtsy):
    """A named node in the version script would hook nothing at all."""
    listing = subprocess.run(["readelf", "-VW", curtsy.library], capture_output=True, text=True, check=True).stdout
    assert "Version definition section" not in listing


# ---- programs that have nothing to do with it ----


def traced(curtsy, argv, variables=()):
    """A program under strace: its result, and (call, path) of what it opened, ran or unlinked."""
    trace = curtsy.folder / "trace"
    calls = "open,openat,openat2,creat,unlink,unlinkat,memfd_create,execve"
    settings = [word for variable in variables for word in ("-E", variable)]
    result = curtsy.bare(["strace", "-f", "-qq", "-e", f"trace={calls}", "-o", trace, *settings, *argv])
    return result, re.findall(r"(\w+)\((?:AT_FDCWD, )?\"([^\"]*)\"", trace.read_text())


@pytest.mark.skipif(not has_program("strace"), reason="strace is not installed")
@pytest.mark.no_sanitizer("its runtime opens files of its own")
@pytest.mark.parametrize("command", ["/bin/true", "/bin/bash -c :", "/bin/bash -c ls|cat", "/usr/bin/python3 -c 0"])
def test_a_program_without_curl_pays_nothing(curtsy, command):
    """No file is opened but the library itself, no segment is made or mapped, nothing is printed."""
    ours = {name: value for name, value in curtsy.env().items() if name.startswith(("CURTSY_", "LD_PRELOAD"))}
    variables = [f"{name}={value}" for name, value in ours.items()]
    argv = command.split(" ", 2)
    bare, bare_calls = traced(curtsy, argv)
    governed, calls = traced(curtsy, argv, variables)
    assert governed.all == bare.all
    assert set(calls) - set(bare_calls) == {("openat", os.fspath(curtsy.library))}
    assert not curtsy.segment.exists()


COMMANDS = [
    ["true"],
    ["false"],
    ["ls", "-la", "/etc"],
    ["bash", "-c", "echo a; echo b >&2; exit 3"],
    ["sh", "-c", "trap 'echo bye' EXIT; kill -0 $$"],
    ["git", "--version"],
    ["git", "status"],
    ["python3", "-c", "print(sum(range(10)))"],
    ["cat", "/nonexistent"],
    ["curl", "--version"],
    ["curl", "--help", "all"],
    ["curl"],
    ["curl", "-s", "file:///etc/hostname"],
    ["curl", "--no-such-option"],
    ["env", "-i", "/bin/echo", "x"],
    ["awk", "BEGIN { print 1 }"],
    ["sed", "s/a/b/", "/etc/hostname"],
    ["find", "/etc/hostname"],
    ["tar", "--version"],
    ["date", "-d", "@0"],
]


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_it_never_talks(curtsy, argv):
    if not has_program(argv[0]):
        pytest.skip(f"{argv[0]} is not installed")
    assert curtsy.run(argv).all == curtsy.bare(argv).all


def test_giving_up_is_nobodys_business_unless_asked(up, curtsy):
    """A program that prints its own errors prints those and no others."""
    up.on("/data", Answer(503, body=b"no\n"))
    words = ["curl", "-sSf", up.url("/data")]
    governed, bare = curtsy.run(words, config="[default]\nbase_delay = 10ms\n"), curtsy.bare(words)
    assert governed.all == bare.all
    assert len(up.arrivals()) == 6


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_it_keeps_out_of_descriptors_that_are_closed(up, curtsy, tmp_path, closed):
    """No file of ours may land on a number that the program takes for its own output."""
    up.on("/data", told(1), FOUR)
    output = tmp_path / "output"
    script = f"exec {closed}; exec curl -s -o {output} {up.url('/data')}"
    result = curtsy.run(["sh", "-c", script])
    assert result.all == (0, b"", b"")
    assert output.read_bytes() == b"four"


def test_it_keeps_no_descriptor(up, curtsy):
    """What curl has open when its answer comes in is what it has open without us."""
    seen = {}
    for how in ("bare", "preload"):
        up.on("/data", Answer(200, body=b"x" * 40, pieces=2, piece_delay=2))
        process = curtsy.start(["curl", "-sSN", up.url("/data")], how=how)
        arrived = up.wait_for(1, path="/data") if how == "bare" else up.wait_for(2, path="/data")
        listing = pathlib.Path(f"/proc/{process.pid}/fd")
        kinds = [re.sub(r"\d+", "", os.readlink(entry)) for entry in listing.iterdir()]
        seen[how] = sorted(kinds)
        assert process.wait().rc == 0 and arrived
    assert seen["preload"] == seen["bare"]


# ---- when something of its own is missing ----


def breakages(curtsy, tmp_path):
    """Ways to break Curtsy's surroundings: environment variables that do it."""
    directory, garbage, truncated = tmp_path / "directory", tmp_path / "garbage", tmp_path / "truncated"
    directory.mkdir()
    garbage.write_bytes(os.urandom(4 << 20))
    truncated.write_bytes(b"\0" * 4096)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    ini = tmp_path / "bad.ini"
    ini.write_text("[default\nquota = banana\n= = =\n[a][b]\nno_such_key = 1\nmax_attempts = -1\n")
    binary = tmp_path / "binary.ini"
    binary.write_bytes(os.urandom(10_000))
    return {
        "no folder for the segment": {"CURTSY_SEGMENT": "/nonexistent/folder/budget"},
        "the segment is a folder": {"CURTSY_SEGMENT": os.fspath(directory)},
        "the segment is garbage": {"CURTSY_SEGMENT": os.fspath(garbage)},
        "the segment is too short": {"CURTSY_SEGMENT": os.fspath(truncated)},
        "the segment is a dangling link": {"CURTSY_SEGMENT": os.fspath(link)},
        "the segment is a device": {"CURTSY_SEGMENT": "/dev/full"},
        "an impossible name": {"CURTSY_SEGMENT": "/" + "x" * 300},
        "no such configuration": {"CURTSY_CONFIG": "/nonexistent/ratelimit.ini"},
        "the configuration is a folder": {"CURTSY_CONFIG": os.fspath(directory)},
        "a faulty configuration": {"CURTSY_CONFIG": os.fspath(ini)},
        "a binary configuration": {"CURTSY_CONFIG": os.fspath(binary)},
        "a faulty CURTSY_SET": {"CURTSY_SET": "[[[\nquota=\n"},
        "no such mode": {"CURTSY_MODE": "perhaps"},
        "no such log level": {"CURTSY_LOG": "loud"},
        "no folder for the log": {"CURTSY_LOG": "debug", "CURTSY_LOG_FILE": "/nonexistent/folder/log"},
        "the log's disk is full": {"CURTSY_LOG": "debug", "CURTSY_LOG_FILE": "/dev/full"},
    }


BREAKAGES = [
    "no folder for the segment",
    "the segment is a folder",
    "the segment is garbage",
    "the segment is too short",
    "the segment is a dangling link",
    "the segment is a device",
    "an impossible name",
    "no such configuration",
    "the configuration is a folder",
    "a faulty configuration",
    "a binary configuration",
    "a faulty CURTSY_SET",
    "no such mode",
    "no such log level",
    "no folder for the log",
    "the log's disk is full",
]


@pytest.mark.slow(2)
@pytest.mark.parametrize("what", BREAKAGES)
def test_it_fails_open(up, curtsy, tmp_path, what):
    """The transfer succeeds, still with the manners that need no budget; at most one line says so."""
    env = breakages(curtsy, tmp_path)[what]
    up.on("/data", told(1), FOUR)
    result = curtsy.curl(up.url("/data"), env=env)
    assert (result.rc, result.stdout) == (0, b"four")
    assert result.errors.count("\n") <= 1, result.errors
    not_early(up.waits(), 1.0)
    assert curtsy.run(["true"], env=env).all == (0, b"", b"")
    assert curtsy.run(["bash", "-c", "echo x"], env=env).all == (0, b"x\n", b"")


def test_a_full_disk_for_the_segment(up, curtsy, tmp_path):
    mount = tmp_path / "tiny"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", mount], capture_output=True).returncode:
        pytest.skip("may not mount a file system")
    try:
        up.on("/data", told(1), FOUR)
        result = curtsy.curl(up.url("/data"), env={"CURTSY_SEGMENT": os.fspath(mount / "budget")})
        assert (result.rc, result.stdout) == (0, b"four") and result.errors.count("\n") == 1
    finally:
        subprocess.run(["umount", mount], check=True)


def test_a_limit_on_file_sizes_is_not_run_into(up, curtsy):
    """RLIMIT_FSIZE: growing a file beyond it would raise SIGXFSZ, which ends a program."""
    up.on("/data", told(1), FOUR)
    result = curtsy.run(["sh", "-c", f"ulimit -f 8; exec curl -sS {up.url('/data')}"])
    assert (result.rc, result.stdout) == (0, b"four")


def test_few_descriptors_are_enough(up, curtsy):
    up.on("/data", told(1), FOUR)
    script = f"ulimit -n 10; exec curl -sS {up.url('/data')}"
    assert curtsy.bare(["sh", "-c", script]).rc == 0
    up.on("/data", told(1), FOUR)
    result = curtsy.run(["sh", "-c", script])
    assert (result.rc, result.stdout) == (0, b"four")


def test_one_segment_and_no_leftovers(up, curtsy):
    """Runs that end well, runs that are killed, parents that end before their children."""
    up.on("/data", FOUR)
    for number in range(20):
        process = curtsy.start(["curl", "-sS", up.url("/data")])
        if number % 2:
            up.wait_for(1)
            process.kill()
        process.wait()
    orphan = curtsy.run(["sh", "-c", f"(curl -sS {up.url('/late')}; :) & exit 0"])
    assert orphan.rc == 0
    beside = [path.name for path in curtsy.folder.iterdir() if path.name.startswith("budget")]
    assert beside == ["budget"]
    assert curtsy.segment.stat().st_mode & 0o7777 == 0o600


# ---- odd places to call from ----


def test_performs_inside_callbacks_are_charged_once_each(up, curtsy):
    """Neither libcurl's own inner calls nor the nesting changes what is counted."""
    up.on("/*", b"body")
    config = "[127.0.0.1]\nrate = 1/h\nburst = 100\n"
    for number, style in enumerate(("plain", "tail"), 1):
        result = curtsy.run([curtsy.victim("nested"), style, up.url("/outer"), up.url("/inner")], config=config)
        assert result.all == (0, b"outer 0 200 inner 1 200\n", b"")
        assert len(up.arrivals()) == 2 * number
        (bucket,) = curtsy.status()["buckets"]
        assert (bucket["curtsy_requests_total"], bucket["curtsy_attempts_total"]) == (2 * number, 2 * number)


@pytest.mark.slow(3)
@pytest.mark.parametrize("style", ["plain", "tail"])
def test_a_perform_inside_a_callback_is_governed(up, curtsy, style):
    up.on("/outer", b"body")
    up.on("/inner", told(1), told(1), b"body")
    result = curtsy.run([curtsy.victim("nested"), style, up.url("/outer"), up.url("/inner")])
    assert result.all == (0, b"outer 0 200 inner 1 200\n", b"")
    not_early(up.waits("/inner"), 1.0, 1.0)


@pytest.mark.slow(2)
@pytest.mark.no_sanitizer("it does not follow jumps out of frames that it has not instrumented")
def test_callbacks_may_jump_out(up, curtsy):
    up.on("/data", told(1), b"body")
    result = curtsy.run([curtsy.victim("jumping"), up.url("/data"), "20"])
    assert result.all == (0, b"jumped 20 then 0\n", b"")
    assert len(up.arrivals()) == 22


@pytest.mark.slow(2)
@pytest.mark.no_sanitizer("it does not follow jumps out of frames that it has not instrumented")
def test_callbacks_may_throw(up, curtsy):
    up.on("/data", told(1), b"body")
    result = curtsy.run([curtsy.victim("throwing"), up.url("/data"), "20"])
    assert result.all == (0, b"caught 20 then 0\n", b"")
    assert len(up.arrivals()) == 22


@pytest.mark.slow(5)
@pytest.mark.no_sanitizer("a forked child of a threaded program is beyond its runtime")
def test_a_fork_while_another_thread_waits(up, curtsy):
    up.on("/limited", told(4), b"body")
    up.on("/free", b"body")
    free = up.url("/free", host="localhost")
    result = curtsy.run([curtsy.victim("forking"), up.url("/limited"), free])
    assert result.all == (0, b"child 0\nthread 0\n", b"")
    not_early(up.waits("/limited"), 4.0)
    child, thread = up.arrivals("/free")[0], up.arrivals("/limited")[1]
    assert child.time_ns < thread.time_ns, "the child did not wait for the thread"


@pytest.mark.slow(2)
def test_before_main_and_after_it(up, curtsy):
    up.on("/data", told(1), 200, 200, told(1), 200)
    result = curtsy.run([curtsy.victim("early_and_late")], env={"CURTSY_VICTIM_URL": up.url("/data")})
    assert result.all == (0, b"early 0\nmain 0\nlate 0\n", b"")
    assert len(up.arrivals()) == 5


CONSTRUCTOR = """
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void first(void)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, getenv("CURTSY_VICTIM_URL"));
    printf(" %d\\n", (int)curl_easy_perform(easy));
    curl_easy_cleanup(easy);
}
int needed = 1;
"""


@pytest.mark.slow(2)
def test_a_constructor_that_runs_before_ours(up, curtsy, tmp_path):
    """A library that the program is linked with may be initialised before a preloaded one."""
    up.on("/data", told(1), b"four")
    compile_c(CONSTRUCTOR, tmp_path / "libfirst.so", "-shared", "-fPIC", "-lcurl")
    needing = "extern int needed; int main(void) { return !needed; }"
    program = compile_c(needing, tmp_path / "program", f"-L{tmp_path}", "-lfirst", f"-Wl,-rpath,{tmp_path}")
    result = curtsy.run([program], env={"CURTSY_VICTIM_URL": up.url("/data")})
    assert result.all == (0, b"four 0\n", b"")
    not_early(up.waits(), 1.0)


PLUGIN = """
#include <curl/curl.h>
int plugin_get(const char *url)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    int result = curl_easy_perform(easy);
    curl_easy_cleanup(easy);
    return result;
}
"""
TWO_LIBCURLS = """
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    void *plugin = dlopen(argv[1], RTLD_NOW | (strcmp(argv[2], "local") ? RTLD_GLOBAL : RTLD_LOCAL));
    int (*plugin_get)(const char *) = plugin ? dlsym(plugin, "plugin_get") : NULL;
    if (!plugin_get)
        return 2;
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, argv[3]);
    int own = curl_easy_perform(easy);
    printf(" %d %d", own, plugin_get(argv[3]));
    printf(" %d\\n", (int)curl_easy_perform(easy));
    curl_easy_cleanup(easy);
    return 0;
}
"""
GNUTLS = "libcurl-gnutls.so.4"


@pytest.mark.slow(4)
@pytest.mark.parametrize("visibility", ["local", "global"])
def test_two_libcurls_in_one_program(up, curtsy, tmp_path, visibility):
    """Each handle stays with the library that made it."""
    libraries = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    found = re.search(rf"{re.escape(GNUTLS)} .*=> (\S+)", libraries)
    if not found:
        pytest.skip(f"no {GNUTLS}")
    up.on("/data", *[told(1), b"four"] * 3)
    plugin = compile_c(PLUGIN, tmp_path / "plugin.so", "-shared", "-fPIC", found[1])
    program = compile_c(TWO_LIBCURLS, tmp_path / "program", "-lcurl", "-ldl")
    result = curtsy.run([program, plugin, visibility, up.url("/data")])
    assert result.all == (0, b"fourfour 0 0four 0\n", b"")
    assert len(up.arrivals()) == 6


LATE = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    for (int i = 0; i < 2; i++) {
        void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        int (*plugin_get)(const char *) = plugin ? dlsym(plugin, "plugin_get") : NULL;
        if (!plugin_get)
            return 2;
        printf(" %d\\n", plugin_get(argv[2]));
        fflush(stdout);
        dlclose(plugin);
    }
    return 0;
}
"""


@pytest.mark.slow(3)
def test_a_plugin_that_brings_libcurl_goes_and_comes_back(up, curtsy, tmp_path):
    up.on("/data", *[told(1), b"four"] * 2)
    plugin = compile_c(PLUGIN, tmp_path / "plugin.so", "-shared", "-fPIC", "-lcurl")
    program = compile_c(LATE, tmp_path / "program", "-ldl")
    result = curtsy.run([program, plugin, up.url("/data")])
    assert result.all == (0, b"four 0\nfour 0\n", b"")
    assert len(up.arrivals()) == 4


NO_LIBCURL = """
#include <stdio.h>
extern void *curl_easy_init(void) __attribute__((weak));
extern int curl_easy_perform(void *) __attribute__((weak));
int main(void)
{
    if (curl_easy_init)
        printf("%p", curl_easy_init());
    if (curl_easy_perform)
        printf(" %d", curl_easy_perform((void *)0) != 0);
    printf(" alive\\n");
    return 0;
}
"""


def test_a_program_that_looks_for_libcurl_and_has_none(curtsy, tmp_path):
    program = compile_c(NO_LIBCURL, tmp_path / "program")
    result = curtsy.run([program])
    assert (result.rc, result.stdout, result.stderr) == (0, b"(nil) 1 alive\n", b"")


def test_secure_programs_take_no_word_from_the_environment(up, curtsy, tmp_path):
    """Under AT_SECURE the loader ignores the preload altogether; and the program runs."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to make a set-user-id program")
    copy = tmp_path / "get"
    copy.write_bytes(pathlib.Path(curtsy.victim("get")).read_bytes())
    os.chown(copy, 65534, 65534)
    copy.chmod(0o4755)
    tmp_path.chmod(0o755)
    up.on("/data", told(1), FOUR)
    result = curtsy.run([copy, up.url("/data")])
    assert (result.rc, result.stdout) == (0, b"0 429 10 1\n")
    assert len(up.arrivals()) == 1
