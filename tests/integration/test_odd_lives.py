# SPDX-License-Identifier: MIT
"""Programs that do not stay as they began: in a sandbox, in another root, as another user, forked; and in
the company of another preload."""

import os
import re

import pytest

from harness import TEXT, compile_c, compile_library, has_program, keeps_to, serve, transfers

POLL = 7  # a system call's number

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do this to a program")


# ---- sandboxes ----

# Runs a program that may make these system calls, by their numbers, and gets EPERM for all others.
LAUNCHER = """
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    static struct sock_filter filter[2000] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short length = 1;
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--"); i++) {
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(argv[i]), 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = {length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 99;
    execvp(argv[i + 1], argv + i + 1);
    return 98;
}
"""


@pytest.mark.skipif(not has_program("strace"), reason="strace is not installed")
@pytest.mark.no_sanitizer("its runtime makes system calls of its own")
@pytest.mark.parametrize("victim", ["curl", "get", "requests that wait"])
def test_a_sandbox_that_allows_what_the_program_needs(up, curtsy, tmp_path, victim):
    """And waiting, by poll."""
    launcher, trace = compile_c(LAUNCHER, tmp_path / "launcher"), tmp_path / "trace"
    serve(up)
    argv = transfers(up) if victim == "curl" else [curtsy.victim("get"), up.url("/text"), up.url("/text")]
    allowed = {POLL}
    for _ in range(3):
        recorded = curtsy.bare(["strace", "-f", "-n", "-o", trace, *argv])
        allowed |= {int(number) for number in re.findall(r"\[ *(\d+)\]", trace.read_text())}
    sandbox = [launcher, *map(str, sorted(allowed)), "--"]
    bare = curtsy.bare([*sandbox, *argv])
    assert bare.all == recorded.all and bare.rc == 0
    config = "[default]\nrate = 20/s\n" if victim == "requests that wait" else ""
    for _ in range(2):
        governed = curtsy.run([*sandbox, *argv], config=config)
        assert governed.all_but_ours == bare.all and len(governed.ours) <= 1, governed.errors


# ---- other roots, other users, forks ----

# A daemon: reads its configuration as root, changes its root, becomes somebody else, and begins to work.
DAEMON = """
#include <curl/curl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    CURL *easy = curl_easy_init();
    for (int i = 3; i < argc; i++) {
        long status = 0;
        if (i == 4 && (chdir(argv[1]) || chroot(".") || setgroups(0, NULL) || setgid(65534) || setuid(65534)))
            return 99;
        curl_easy_setopt(easy, CURLOPT_URL, argv[i]);
        int result = curl_easy_perform(easy);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        printf(" %d %ld\\n", result, status);
    }
    return 0;
}
"""


@needs_root
@pytest.mark.no_sanitizer("its runtime is not found in another root")
@pytest.mark.slow(2)
@pytest.mark.parametrize("root", ["empty", "with a /dev/shm"])
def test_a_daemon_in_another_root(up, curtsy, tmp_path, root):
    """What it had read and mapped stays in use."""
    program, jail = compile_c(DAEMON, tmp_path / "daemon", "-lcurl"), tmp_path / "jail"
    (jail / "dev" / "shm").mkdir(parents=True) if root != "empty" else jail.mkdir()
    jail.chmod(0o777)
    serve(up)
    urls = [up.url(path) for path in ("/missing", "/text", "/missing", "/text")]
    bare = curtsy.bare([program, jail, "0", *urls])
    assert bare.rc == 0
    governed = curtsy.run([program, jail, "0", *urls], config="[default]\nrate = 4/s\n")
    assert governed.all == bare.all
    times = [arrival.time_ns for arrival in up.arrivals()[4:]]
    assert len(times) == 4
    keeps_to(times, 1, 4, jitter=0.1)
    (bucket,) = curtsy.status()["buckets"]
    assert bucket["curtsy_requests_total"] == 4
    assert [path for path in jail.rglob("*") if path.is_file()] == []


# A parent with a handle that was used, and a child that uses it, one of its own, and a copy of the parent's.
PARENT = """
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void perform(const char *who, CURL *easy, const char *url)
{
    long status = 0;
    curl_easy_setopt(easy, CURLOPT_URL, url);
    int result = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    printf(" %s %d %ld\\n", who, result, status);
    fflush(stdout);
}
static const char *url;
static size_t fork_within(char *data, size_t size, size_t number, void *unused)
{
    int status;
    if (fork() == 0) {
        perform("child of a callback", curl_easy_init(), url);
        _exit(0);
    }
    wait(&status);
    return size * number;
}
int main(int argc, char **argv)
{
    CURL *easy = curl_easy_init();
    url = argv[1];
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    perform("parent", easy, url);
    if (fork() == 0) {
        perform("the parent's in the child", easy, url);
        perform("the child's", curl_easy_init(), url);
        perform("a copy in the child", curl_easy_duphandle(easy), url);
        curl_easy_cleanup(easy);
        if (fork() == 0) {
            perform("the grandchild's", curl_easy_init(), url);
            _exit(0);
        }
        wait(NULL);
        exit(0);
    }
    wait(NULL);
    perform("parent again", easy, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, fork_within);
    perform("parent with a callback", easy, argv[2]);
    curl_easy_cleanup(easy);
    return 0;
}
"""


@pytest.mark.parametrize("broken", [False, True], ids=["shared", "private"])
def test_forks_without_exec(up, curtsy, tmp_path, broken):
    """With a segment of all processes, and with one of the parent's and its children's own."""
    program = compile_c(PARENT, tmp_path / "parent", "-lcurl")
    up.on("/text", TEXT)
    up.on("/short", b"x")
    env = {"CURTSY_SEGMENT": "/nonexistent/folder/budget"} if broken else {}
    words = [program, up.url("/text"), up.url("/short")]
    bare = curtsy.bare(words)
    governed = curtsy.run(words, config="[default]\nrate = 20/s\n", env=env)
    assert governed.all_but_ours == bare.all and bare.rc == 0 and len(governed.ours) == broken
    times = sorted(arrival.time_ns for arrival in up.arrivals()[8:])
    assert len(times) == 8
    keeps_to(times, 1, 20, jitter=0.1)


# ---- in the company of others ----

COMPANION = """
#include <curl/curl.h>
#include <dlfcn.h>
CURLcode curl_easy_perform(CURL *easy)
{
    static CURLcode (*next)(CURL *);
    if (!next)
        next = (CURLcode (*)(CURL *))dlsym(RTLD_NEXT, "curl_easy_perform");
    return next(easy);
}
"""


@pytest.mark.parametrize("order", ["before", "after", "twice"])
@pytest.mark.parametrize("victim", ["early_and_late", "get", "threads"])
def test_another_preload_in_a_broken_world(up, curtsy, tmp_path, order, victim):
    """Also in a constructor, before main."""
    serve(up)
    companion, ours = compile_library(COMPANION, tmp_path / "companion.so"), curtsy.env()["LD_PRELOAD"]
    preload = {"before": f"{companion}:{ours}", "after": f"{ours}:{companion}", "twice": f"{ours}:{companion}:{ours}"}
    arguments = {"get": [up.url("/text"), up.url("/missing")], "threads": [up.url("/text"), "4", "5"]}.get(victim, [])
    env = {"CURTSY_VICTIM_URL": up.url("/text")}
    words = [curtsy.victim(victim), *arguments]
    bare = curtsy.bare(words, env=env)
    env |= {"LD_PRELOAD": preload[order], "CURTSY_SEGMENT": "/nonexistent/folder/budget"}
    governed = curtsy.run(words, env=env)
    assert governed.all_but_ours == bare.all and bare.rc == 0 and len(governed.ours) == 1
