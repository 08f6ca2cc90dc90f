# SPDX-License-Identifier: MIT
"""Troubles with limits and retries that users of libcurl programs have reported, each turned into
an experiment.  tests/field-reports.md says which is which, and where the others are tested."""

import hashlib
import json
import os
import pathlib
import random
import re
import time

import pytest

from harness import EARLY, compile_c, has_program, keeps_to, not_early, told
from upstream import Answer

FOUR = Answer(200, body=b"four")
QUICK = "[default]\nbase_delay = 20ms\n"
NAMED = "[127.0.0.1]\nbase_delay = 20ms\n"  # connection errors count as well


# ---- the easy interface ----


@pytest.mark.slow(2)
@pytest.mark.skipif(not has_program("cmake"), reason="cmake is not installed")
@pytest.mark.no_sanitizer("it takes cmake's own memory for its own")
def test_a_download_of_cmake(up, curtsy):
    """It has no retry of its own, and a page of HTML must not be taken for the file."""
    content = b"the archive"
    up.on("/file", Answer(503, body=b"<html>" + b"x" * 300), told(1), Answer(200, body=content))
    script = curtsy.folder / "fetch.cmake"
    hash_ = hashlib.sha256(content).hexdigest()
    script.write_text(f'file(DOWNLOAD "{up.url("/file")}" out EXPECTED_HASH SHA256={hash_})\n')
    assert curtsy.run(["cmake", "-P", script], config=QUICK).rc == 0
    assert (curtsy.folder / "out").read_bytes() == content and len(up.arrivals()) == 3


@pytest.mark.slow(2)
def test_a_failing_response_is_read_to_its_last_header(up, curtsy):
    """--fail ends the transfer at the status; the hint may come thirty lines later."""
    filler = [(f"X-Filler-{number}", "x" * 50) for number in range(30)]
    up.on("/data", Answer(429, [*filler, ("Retry-After", "2")], b"no"), FOUR)
    assert curtsy.curl("-f", up.url("/data")).all == (0, b"four", b"")
    not_early(up.waits(), 2.0)


def test_a_wait_longer_than_the_callers_patience(up, curtsy):
    up.on("/data", told(86400, 503, b'{"error": "down"}'))
    body = curtsy.folder / "body"
    result = curtsy.curl("-m", "5", "-o", str(body), "-w", "%{http_code}", up.url("/data"))
    assert result.output == (0, b"503") and body.read_bytes() == b'{"error": "down"}'
    assert len(up.arrivals()) == 1


def test_a_hint_on_a_redirect_is_left_to_libcurl(up, curtsy):
    """libcurl follows at once, inside one transfer: nobody waits between hops."""
    again = Answer(303, [("Location", "/job"), ("Retry-After", "1")])
    up.on("/job", again, again, again, again, FOUR)
    assert curtsy.curl("-L", "--max-redirs", "5", up.url("/job")).all == (0, b"four", b"")
    assert len(up.arrivals()) == 5 and sum(up.waits()) < 4


@pytest.mark.slow(2)
@pytest.mark.parametrize("kind", ["put", "post"])
@pytest.mark.parametrize("seeking", ["seek", "no-seek"])
def test_an_upload_by_callback(up, curtsy, kind, seeking):
    """It arrives whole each time, or once; and the handle is as good as new afterwards."""
    up.on("/upload", told(1), 200)
    up.on("/*", 200)
    result = curtsy.run([curtsy.victim("uploads"), kind, seeking, up.url("").rstrip("/")])
    upload, *others = result.text.splitlines()
    attempts = up.arrivals("/upload")
    whole = hashlib.sha256(b"the whole of the body, once").hexdigest()
    assert {arrival.body_sha256 for arrival in attempts} == {whole}
    assert upload == ("upload 0 429" if len(attempts) == 1 else "upload 0 200")
    assert others == ["get 0 200", "post 0 200", "reset 0 200"]
    assert len(attempts) == (1 if kind == "post" else 2)


@pytest.mark.slow(6)
def test_many_range_readers_on_one_server(up, curtsy):
    """None of them ends early and calls it success."""
    data = os.urandom(40_000)

    def part(request):
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", request.arrival.header("Range")).groups())
        return Answer(206, [("Content-Range", f"bytes {first}-{last}/{len(data)}")], data[first : last + 1])

    up.on("/file", part)
    up.quota(20, 1.0, kind="sliding", status=503, prefix="/file")
    ranges = [(at, at + 999) for at in range(0, len(data), 1000)]
    readers = [curtsy.start(["curl", "-sSf", "-r", f"{first}-{last}", up.url("/file")]) for first, last in ranges]
    parts = [reader.wait() for reader in readers]
    assert {part.rc for part in parts} == {0}
    assert b"".join(part.stdout for part in parts) == data


def test_many_readers_of_a_server_that_only_refuses(up, curtsy):
    up.on("/file", Answer(503, body=b"overloaded"))
    curtsy.configure(QUICK)
    readers = [curtsy.start(["curl", "-sSf", "-r", "0-99", up.url("/file")]) for _ in range(10)]
    assert {(reader.wait().rc, reader.wait().stdout) for reader in readers} == {(22, b"")}


# ---- configuration ----


@pytest.mark.slow(6)
@pytest.mark.parametrize("way", ["one program, a glob", "ten programs"])
def test_pacing_before_being_told_off(up, curtsy, way):
    up.on("/*", 200)
    curtsy.configure("[127.0.0.1]\nrate = 2/s\nburst = 1\n")
    commands = [["-o/dev/null", up.url("/[0-9]")]] if way.startswith("one") else [[up.url(f"/{n}")] for n in range(10)]
    for process in [curtsy.start(["curl", "-sS", *command]) for command in commands]:
        assert process.wait().rc == 0
    assert len(up.times()) == 10
    keeps_to(up.times(), 1, 2)


def test_which_statuses_count_is_a_matter_of_the_host(upstream, curtsy):
    here, there = upstream(), upstream()
    for server in (here, there):
        server.on("/529", 529, FOUR)
        server.on("/500", 500, FOUR)
        server.on("/503", 503, FOUR)
    wider, narrower = "retry_status = 429, 502, 503, 504, 529\n", "retry_status = 429\n"
    curtsy.configure(f"{QUICK}[{here.authority}]\n{wider}[{there.authority}]\n{narrower}")
    for server in (here, there):
        for path in ("/529", "/500", "/503"):
            assert curtsy.curl(server.url(path)).rc == 0
    hits = lambda server: [len(server.arrivals(path)) for path in ("/529", "/500", "/503")]
    assert hits(here) == [2, 1, 2] and hits(there) == [1, 1, 1]


def test_a_typing_error_in_a_status_costs_that_line_only(up, curtsy):
    up.on("/503", 503, FOUR)
    up.on("/429", 429, 429, FOUR)
    curtsy.configure("[default]\nbase_delay = 20ms\nretry_status = 429, 5O3\nmax_attempts = 2\n")
    check = curtsy.tool("check", os.fspath(curtsy.config_file))
    assert check.rc == 1 and f"{curtsy.config_file}:3: " in check.text + check.errors
    env = {"CURTSY_LOG": "off"}
    assert curtsy.curl(up.url("/503"), env=env).stdout == b"four", "retry_status inherits"
    assert curtsy.curl(up.url("/429"), env=env).rc == 0 and len(up.arrivals("/429")) == 2, "max_attempts holds"


def test_the_next_mirror_instead_of_waiting(upstream, curtsy):
    """The program has a better plan than waiting, and is left to it."""
    first, second = upstream(), upstream()
    first.on("/file", told(60, 503))
    second.on("/file", FOUR)
    curtsy.configure(f"[{first.authority}]\nmax_attempts = 1\nmax_wait = 0s\n")
    script = f"curl -sf {first.url('/file')} || curl -sf {second.url('/file')}"
    for _ in range(3):
        assert curtsy.run(["sh", "-c", script]).output == (0, b"four")
    assert (len(first.arrivals()), len(second.arrivals())) == (1, 3)


@pytest.mark.slow(2)
def test_background_reports_do_not_slow_the_main_work(upstream, curtsy):
    """They are sent under a lock that other threads need."""
    telemetry, other = upstream(), upstream()
    telemetry.on("/report", told(30))
    other.on("/data", told(1), FOUR)
    config = f"[{telemetry.authority}]\nmode = observe\n"
    result = curtsy.run([curtsy.victim("ticking"), telemetry.url("/report"), other.url("/data")], config=config)
    assert result.all == (0, b"telemetry 429 slow 0 other 200\n", b"")
    assert (len(telemetry.arrivals()), len(other.arrivals())) == (10, 2)


@pytest.mark.slow(6)
def test_a_server_that_always_says_one_second(up, curtsy):
    up.on("/data", *[told(1)] * 5, FOUR)
    assert curtsy.curl(up.url("/data"), set="max_attempts=6").all == (0, b"four", b"")
    not_early(up.waits(), 1, 1, 1, 1, 1)


@pytest.mark.slow(4)
@pytest.mark.parametrize("together", [True, False])
def test_many_names_of_one_provider(up, curtsy, together):
    """One budget for all of them where the policy groups them, else one for each."""
    up.on("/*", 200)
    names = ["a.localhost", "b.localhost", "c.localhost"]
    grouped = "[a.localhost]\nhosts = b.localhost, c.localhost\nrate = 5/s\nburst = 1\n"
    curtsy.configure(grouped if together else "[*.localhost]\nrate = 5/s\nburst = 1\n")
    urls = [up.url(f"/{name}/{number}", host=name) for number in range(5) for name in names]
    curls = [curtsy.start(["curl", "-sS", *urls[at::3]]) for at in range(3)]
    assert {curl.wait().all for curl in curls} == {(0, b"", b"")}
    assert len(up.times()) == 15
    if together:
        keeps_to(up.times(), 1, 5)
    for name in names:
        keeps_to([arrival.time_ns for arrival in up.arrivals() if arrival.path.startswith(f"/{name}/")], 1, 5)


# ---- shared memory ----


@pytest.mark.slow(3)
def test_a_program_that_is_killed_while_it_waits(up, curtsy):
    """The refusal outlives it, and ends when it was said to end."""
    up.on("/data", told(2), FOUR)
    killed = curtsy.start(["curl", "-sS", up.url("/data")])
    arrival = up.wait_for(1)[0]
    while not curtsy.segment.exists() or "retry_after" not in str(curtsy.status()):
        pass
    killed.kill()
    assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")
    assert up.times()[1] - arrival.answered_ns >= 1_999_000_000


@pytest.mark.slow(8)
def test_a_program_that_retries_at_once(up, curtsy):
    """A shell loop without a pause, and a server that is away for six seconds."""
    began = []

    def away(request):
        began.append(request.arrival.time_ns)
        return told(2, 503) if request.arrival.time_ns - began[0] < 6_000_000_000 else FOUR

    up.on("/data", away)
    script = f"for i in 1 2 3 4 5 6 7 8 9 10; do curl -sf {up.url('/data')} && break; done"
    assert curtsy.run(["sh", "-c", script]).all == (0, b"four", b"")
    assert len(up.arrivals()) <= 5
    assert min(up.waits()) >= 2 - EARLY


@pytest.mark.alone
@pytest.mark.parametrize("kills", [False, True])
def test_hundreds_of_programs_start_at_once(up, curtsy, kills):
    """No registration to queue at, nothing to clean up after the killed."""
    up.on("/data", FOUR)
    rng = random.Random(3)
    count = 60 if curtsy.sanitizer else 300
    processes = [curtsy.start(["curl", "-sS", up.url("/data")]) for _ in range(count)]
    killed = set()
    if kills:
        for process in rng.sample(processes, count // 2):
            if process.runs:
                process.kill()
                killed.add(process)
    assert {process.wait().all for process in processes if process not in killed} == {(0, b"four", b"")}
    assert [path.name for path in curtsy.folder.iterdir() if path.name.startswith("budget")] == ["budget"]
    assert curtsy.curl(up.url("/data")).all == (0, b"four", b"")


BUMP_ALLOCATOR = """
#include <stddef.h>
#include <string.h>
static char arena[64 << 20] __attribute__((aligned(16)));
static size_t used;
void *malloc(size_t size)
{
    size_t at = __atomic_fetch_add(&used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);
    if (at + size + 32 > sizeof arena)
        return NULL;
    *(size_t *)(arena + at) = size;
    return arena + at + 16;
}
void free(void *block) {}
void *calloc(size_t number, size_t size) { return malloc(number * size); }
void *realloc(void *block, size_t size)
{
    void *grown = malloc(size);
    if (block && grown) {
        size_t old = *(size_t *)((char *)block - 16);
        memcpy(grown, block, old < size ? old : size);
    }
    return grown;
}
"""


@pytest.mark.slow(2)
@pytest.mark.no_sanitizer("it brings an allocator of its own")
@pytest.mark.parametrize("first", ["allocator", "library"])
def test_a_program_with_an_allocator_of_its_own(up, curtsy, tmp_path, first):
    allocator = compile_c(BUMP_ALLOCATOR, tmp_path / "bump.so", "-shared", "-fPIC", "-fno-builtin")
    both = [os.fspath(allocator), os.fspath(curtsy.library)]
    env = {"LD_PRELOAD": ":".join(both if first == "allocator" else both[::-1])}
    up.on("/data", told(1), FOUR)
    assert curtsy.run(["true"], env=env).all == (0, b"", b"")
    assert curtsy.run(["bash", "-c", "echo x"], env=env).all == (0, b"x\n", b"")
    assert curtsy.curl(up.url("/data"), env=env).all == (0, b"four", b"")


CLOCK_FAKER = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
/* The wall clock is an hour ahead in even seconds, and an hour behind in odd ones. */
static time_t off(void)
{
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec % 2 ? -3600 : 3600;
}
int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        now->tv_sec += off();
    return result;
}
time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *out, void *zone)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


@pytest.mark.slow(5)
def test_a_wall_clock_that_jumps(up, curtsy, tmp_path):
    faker = compile_c(CLOCK_FAKER, tmp_path / "faker.so", "-shared", "-fPIC")
    ours = curtsy.env()["LD_PRELOAD"]
    preload = f"{ours}:{faker}" if curtsy.sanitizer else f"{faker}:{ours}"
    dated = lambda _request: Answer(429, [("Retry-After", "2")], date=0)
    up.on("/data", dated, dated, FOUR)
    config = "[127.0.0.1]\nrate = 2/s\nburst = 1\n"
    assert curtsy.curl(up.url("/data"), env={"LD_PRELOAD": preload}, config=config).all == (0, b"four", b"")
    not_early(up.waits(), 2.0, 2.0)
    curtsy.curl(*[up.url("/data")] * 4, env={"LD_PRELOAD": preload})
    keeps_to(up.times(), 1, 2)


# ---- headers ----


@pytest.mark.slow(4)
def test_a_client_that_comes_back_too_early(up, curtsy):
    """It retries by itself after half a second; its second request is held until the told time."""
    up.on("/report", told(3, 503), Answer(200, body=b"thanks\n"))
    send = ["curl", "-sSf", "-d", "x", up.url("/report")]
    assert curtsy.run(send).rc == 22
    assert curtsy.run(send).all == (0, b"thanks\n", b"")
    not_early(up.waits(), 3.0)


# ---- whose word it was ----


def test_the_refusal_came_from_the_second_host(upstream, curtsy):
    """It is kept to that host: the innocent one is asked again at once."""
    first, second = upstream(), upstream()
    first.on("/file", Answer(302, [("Location", second.url("/mirror"))]))
    first.on("/other", FOUR)
    second.on("/mirror", told(30))
    assert curtsy.curl("-L", "-m", "5", first.url("/file")).output == (0, b"slow down\n")
    assert curtsy.curl("-m", "5", first.url("/other")).all == (0, b"four", b"")
    assert curtsy.curl("-m", "5", second.url("/other")).rc == 28
    assert (len(first.arrivals()), len(second.arrivals())) == (2, 1)


def test_the_refusal_came_from_the_proxy(upstream, curtsy):
    """A refused CONNECT says nothing about the server behind it, and ends as it does without us."""
    proxy, origin = upstream(), upstream()
    proxy.on(origin.authority, told(30))
    origin.on("/data", FOUR)
    through = ["curl", "-sS", "-m", "5", "-p", "-x", proxy.url(), origin.url("/data")]
    governed, bare = curtsy.run(through), curtsy.bare(through)
    assert governed.all == bare.all and governed.rc == 56
    assert curtsy.curl("-m", "5", origin.url("/data")).all == (0, b"four", b"")
    assert len(proxy.arrivals()) == 2


# ---- retry safety ----

FAILING = {"none": [], "-f": ["-f"], "--fail-with-body": ["--fail-with-body"]}
OUTPUTS = {"stdout": [], "file": ["-o", "out"], "device": ["-o", "/dev/null"], "pipe": ["-o", "/dev/stderr"]}


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("failing", FAILING)
@pytest.mark.parametrize("ends", ["well", "badly"])
def test_output_targets_and_fail_flags(up, curtsy, tmp_path, failing, output, ends):
    """In the end as if the last answer had been the first one."""
    refusal = Answer(503, [("X-Reason", "overload")], b"busy\n")
    words = ["curl", "-sS", *FAILING[failing], *OUTPUTS[output], up.url("/data")]
    curtsy.configure(QUICK)
    seen = []
    governed, bare = ([refusal, FOUR], [FOUR]) if ends == "well" else ([refusal], [refusal])
    for how, answers in (("preload", governed), ("bare", bare)):
        folder = tmp_path / how
        folder.mkdir()
        up.on("/data", *answers)
        result = curtsy.run(words, how=how, cwd=folder)
        seen.append((result.all, {path.name: path.read_bytes() for path in folder.iterdir()}))
    assert seen[0] == seen[1]
    assert len(up.arrivals()) == (3 if ends == "well" else 6)


@pytest.mark.slow(2)
def test_a_resumed_download_that_is_refused(up, curtsy):
    content = os.urandom(5000)
    file = curtsy.folder / "file"

    def rest(request):
        assert request.arrival.header("Range") == "bytes=1000-"
        return Answer(206, [("Content-Range", "bytes 1000-4999/5000")], content[1000:])

    file.write_bytes(content[:1000])
    up.on("/file", told(1, body=b"no " * 100), rest)
    assert curtsy.curl("-C", "-", "-o", str(file), up.url("/file")).all == (0, b"", b"")
    assert file.read_bytes() == content and len(up.arrivals()) == 2
    not_early(up.waits(), 1.0)


def test_a_resumed_download_that_breaks_off_is_not_repeated(up, curtsy):
    broken = Answer(206, [("Content-Range", "bytes 1000-4999/5000")], b"y" * 4000, cut_body=2000)
    seen = []
    for how in ("bare", "preload"):
        file = curtsy.folder / how
        file.write_bytes(b"x" * 1000)
        up.on("/file", broken, FOUR)
        result = curtsy.curl("-C", "-", "-o", str(file), up.url("/file"), how=how, config=NAMED)
        seen.append((result.all, file.read_bytes()))
    assert seen[0] == seen[1] and seen[0][0][0] == 18
    assert len(up.arrivals()) == 2


METHODS = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "PATCH", "PURGE"]
OUTCOMES = {
    "429 with a word": Answer(429, [("Retry-After-Ms", "50")]),
    "429": Answer(429),
    "503 with a word": Answer(503, [("Retry-After-Ms", "50")]),
    "503": Answer(503),
    "500": Answer(500),
    "reset": Answer(drop="body", reset=True),
}
POLICIES = {"by method": "", "declared": "idempotent = yes\n", "by key": "", "never": "idempotent = no\n"}


def expected_hits(method, outcome, policy):
    """The documented rule, written down once more."""
    if outcome == "500" or policy == "never":
        return 1
    by_method = method in ("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE")
    return 2 if by_method or policy in ("declared", "by key") else 1


@pytest.mark.slow(2)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_what_is_repeated_is_what_is_documented(up, curtsy, outcome, policy):
    curtsy.configure(f"[127.0.0.1]\nbase_delay = 10ms\nretry_reserve = 100\n{POLICIES[policy]}")
    key = ["-H", "Idempotency-Key: k"] if policy == "by key" else []
    for method in METHODS:
        up.on(f"/{method}", OUTCOMES[outcome], 200)
        body = ["-d", "x"] if method in ("PUT", "POST", "PATCH") else []
        words = ["-I"] if method == "HEAD" else ["-X", method, *body]
        curtsy.curl(*words, *key, up.url(f"/{method}"))
    hits = {method: len(up.arrivals(f"/{method}")) for method in METHODS}
    assert hits == {method: expected_hits(method, outcome, policy) for method in METHODS}


@pytest.mark.parametrize("url", ["http", "ftp", "file"])
def test_connections_that_programs_use_themselves(up, curtsy, url):
    """CONNECT_ONLY, and what is not HTTP at all: hands off, whatever the server says."""
    up.on("/data", told(1))
    target = {"http": up.url(), "ftp": "ftp://127.0.0.1:1/", "file": "file:///etc/hostname"}[url]
    command = [curtsy.victim("connect_only"), target]
    governed, bare = curtsy.run(command), curtsy.bare(command)
    assert governed.all == bare.all
    assert len(up.arrivals()) == (2 if url == "http" else 0)


@pytest.mark.slow(4)
def test_retries_on_top_of_retries(up, curtsy):
    """curl's three and Curtsy's four do not become sixteen."""
    up.on("/data", Answer(503, body=b"no\n"))
    config = "[default]\nmax_attempts = 4\nbase_delay = 20ms\nretry_reserve = 3\n"
    result = curtsy.curl("-f", "--retry", "3", "--retry-delay", "1", up.url("/data"), config=config)
    assert result.rc == 22
    assert 4 + 3 <= len(up.arrivals()) <= 9


# ---- telling ----


@pytest.mark.slow(3)
def test_where_the_time_went(up, curtsy):
    """curl's own figures are those of the last attempt; the command knows the rest."""
    up.on("/data", told(2), FOUR)
    result = curtsy.curl("-o/dev/null", "-w", "%{http_code} %{num_headers} %{num_connects}", up.url("/data"))
    assert result.all == (0, b"200 1 0", b"")
    (bucket,) = curtsy.status()["buckets"]
    assert bucket["bucket"] == up.authority
    assert (bucket["curtsy_requests_total"], bucket["curtsy_attempts_total"]) == (1, 2)
    assert bucket["curtsy_refusals_total"] == {"429": 1} and bucket["curtsy_retries_total"] == {"retry_after": 1}
    assert bucket["curtsy_wait_seconds"]["sum"]["retry_after"] >= 2 - EARLY


@pytest.mark.slow(4)
@pytest.mark.parametrize("style", ["text", "json"])
def test_a_wait_is_announced_before_it_begins(up, curtsy, style):
    up.on("/data", told(3), FOUR)
    log = curtsy.folder / "log"
    env = {"CURTSY_LOG": "info", "CURTSY_LOG_FILE": os.fspath(log), "CURTSY_LOG_FORMAT": style}
    url, credential = up.url("/data?token=secret"), "Authorization: Bearer secret"
    process = curtsy.start(["curl", "-sS", url, "-H", credential], env=env)
    up.wait_for(1)
    while process.runs and not (log.exists() and "429" in log.read_text()):
        time.sleep(0.02)
    assert len(up.arrivals()) == 1, "the line was there while it waited"
    assert process.wait().all == (0, b"four", b"")
    text = log.read_text()
    assert "127.0.0.1" in text and "retry_after" in text and "secret" not in text
    if style == "json":
        assert all(json.loads(line) for line in text.splitlines())


@pytest.mark.slow(2)
def test_no_secret_is_kept(up, curtsy):
    """Neither in the segment nor in the most talkative log."""
    secrets = ["tokentokentoken", "dXNlcjpwYXNzd29yZA", "querysecret", "bodysecret", "cookiesecret"]
    up.on("/*", told(1), FOUR)
    log = curtsy.folder / "log"
    env = {"CURTSY_LOG": "debug", "CURTSY_LOG_FILE": os.fspath(log)}
    words = ["-H", "X-Api-Key: tokentokentoken", "-u", "user:password", "-b", "c=cookiesecret"]
    words += ["-X", "PUT", "-d", "bodysecret"]
    assert curtsy.curl(*words, up.url("/p?q=querysecret"), env=env).rc == 0
    kept = curtsy.segment.read_bytes() + log.read_bytes()
    assert log.stat().st_size > 0
    assert [secret for secret in secrets + ["user:password"] if secret.encode() in kept] == []


@pytest.mark.slow(2)
@pytest.mark.parametrize(
    "answer",
    [
        Answer(503, [("X-Marker", "last"), ("Content-Type", "text/plain")], b"why\n"),
        Answer(302, [("Location", "/refused")]),
        Answer(drop="body", reset=True),
        Answer(429, [("X-Marker", "a"), ("X-Marker", "b")], b"x" * 10_000, framing="chunked"),
    ],
    ids=["503", "redirect", "reset", "429"],
)
def test_the_last_word_is_truthful(up, curtsy, answer):
    """Status, message, headers, sizes, errno after giving up are those of the last attempt."""
    up.on("/data", answer)
    up.on("/refused", Answer(503, [("X-Marker", "second hop")], b"why\n"))
    command = [curtsy.victim("last_word"), up.url("/data")]
    bare = curtsy.bare(command)
    hits = len(up.arrivals())
    governed = curtsy.run(command, config="[127.0.0.1]\nbase_delay = 10ms\nmax_attempts = 3\n")
    assert governed.output == bare.output
    assert len(up.arrivals()) == hits * 4


def test_a_refusal_without_an_attempt_shows_nothing_old(up, curtsy):
    up.on("/told", told(3600))
    curtsy.curl(up.url("/told"))
    result = curtsy.run([curtsy.victim("last_word"), up.url("/data")])
    lines = dict(line.split(" ", 1) for line in result.text.splitlines() if " " in line)
    assert lines["result"] == "28" and lines["status"] == "0" and lines["marker"] == "none"
    assert "curtsy" in lines["message"].lower() and "127.0.0.1" in lines["message"]
    assert up.arrivals("/data") == []


# ---- handles ----


@pytest.mark.slow(3)
def test_cloned_and_reset_handles(up, curtsy):
    up.on("/data", *[Answer(429, [("Retry-After-Ms", "1")], b"refused"), FOUR], cycle=True)
    config = "[127.0.0.1]\nretry_reserve = 1000\n"
    result = curtsy.run([curtsy.victim("clones"), up.url("/data"), "400"], config=config)
    wrong, grown_kib = map(int, re.fullmatch(r"wrong (\d+) grown (-?\d+)\n", result.text).groups())
    assert (result.rc, wrong, result.errors) == (0, 0, "")
    assert len(up.arrivals()) == 2400
    # A sanitizer keeps freed memory for a while.
    assert grown_kib < 256 or curtsy.sanitizer


@pytest.mark.slow(2)
def test_options_are_as_the_program_left_them(up, curtsy):
    up.on("/data", told(1), FOUR)
    command = [curtsy.victim("options"), up.url("/data")]
    governed = curtsy.run(command)
    up.on("/data", FOUR)
    bare = curtsy.bare(command)
    assert governed.all == bare.all and governed.rc == 0
    for arrival in up.arrivals():
        assert (arrival.header("User-Agent"), arrival.header("X-List")) == ("kept/1", "kept")


@pytest.mark.slow(2)
def test_a_wait_can_be_cancelled(up, curtsy):
    up.on("/data", told(60), FOUR)
    result = curtsy.run([curtsy.victim("aborting"), up.url("/data"), "1"])
    assert result.rc == 0
    code, seconds = re.fullmatch(r"(?s).*result (\d+) after (\d+) s\n", result.text).groups()
    assert code == "42" and int(seconds) < 60
    assert len(up.arrivals()) == 1


@pytest.mark.slow(2)
@pytest.mark.parametrize("signal", ["INT", "TERM", "ALRM"])
def test_a_signal_ends_a_waiting_program(up, curtsy, signal):
    import signal as signals

    number = getattr(signals, f"SIG{signal}")
    up.on("/data", told(60), FOUR)
    process = curtsy.start(["curl", "-sS", up.url("/data")])
    up.wait_for(1)
    os.kill(process.pid, number)
    assert process.wait(30).rc == -number


def test_the_table_of_reports_names_tests_that_exist():
    here = pathlib.Path(__file__).parent
    rows = re.findall(r"^\| (FR-\d+) \| .+ \| (.+) \|$", (here.parent / "field-reports.md").read_text(), re.M)
    assert len(rows) == len({report for report, _ in rows}) == 62
    for _, place in rows:
        named = re.findall(r"(test_\w+\.py)::(test_\w+)", place)
        assert named or place.startswith(("later", "none"))
        for file, name in named:
            assert f"def {name}(" in (here / file).read_text()
