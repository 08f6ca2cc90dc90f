# SPDX-License-Identifier: MIT
"""How the integration tests run programs under Curtsy.

The fixture `curtsy` (conftest.py) is a Curtsy of this file: it knows the build, and has a segment
and a configuration of its own, so that tests never share a budget:

    result = curtsy.run(["curl", "-s", up.url("/data")], config="[default]\\nmax_attempts = 2\\n")
    assert result.rc == 0 and result.stdout == b"four"

Programs run in a scrubbed environment: no proxies, no curlrc, no CURTSY_* but the test's own.  Each
is bounded by a time-out far beyond what it needs, which only guards against hangs.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from typing import Callable, Mapping, Optional, Sequence

from upstream import Answer

HANG = 120  # seconds after which a program is taken for hung
EARLY = 0.001  # seconds by which clocks may disagree about "not before"


@dataclasses.dataclass
class Result:
    rc: int
    stdout: bytes
    stderr: bytes
    elapsed: float

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace")

    @property
    def errors(self) -> str:
        return self.stderr.decode("utf-8", "replace")

    @property
    def output(self) -> tuple[int, bytes]:
        return self.rc, self.stdout

    @property
    def all(self) -> tuple[int, bytes, bytes]:
        """What a program's caller can see."""
        return self.rc, self.stdout, self.stderr

    @property
    def all_but_ours(self) -> tuple[int, bytes, bytes]:
        """The same without Curtsy's own lines."""
        lines = self.stderr.splitlines(keepends=True)
        return self.rc, self.stdout, b"".join(line for line in lines if not line.startswith(b"curtsy["))

    @property
    def ours(self) -> list[str]:
        """The lines by Curtsy."""
        return [line for line in self.errors.splitlines() if line.startswith("curtsy[")]


class Process:
    """A program that runs; `wait` gives its Result."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], stdin: Optional[bytes], cwd: os.PathLike) -> None:
        self._began = time.monotonic()
        self._stdin = stdin
        self._process = subprocess.Popen(
            [os.fspath(word) for word in argv],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._result: Optional[Result] = None

    def wait(self, timeout: float = HANG) -> Result:
        if self._result:
            return self._result
        try:
            stdout, stderr = self._process.communicate(self._stdin, timeout)
        except subprocess.TimeoutExpired:
            self.end()
            raise TimeoutError(f"{self._process.args} still ran after {timeout} s") from None
        self._result = Result(self._process.returncode, stdout, stderr, time.monotonic() - self._began)
        return self._result

    def kill(self) -> None:
        """The program and what it started."""
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)

    def end(self) -> None:
        """Whatever state it is in; what it printed is lost."""
        self.kill()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream and not stream.closed:
                stream.close()
        self._process.wait()

    @property
    def runs(self) -> bool:
        return self._process.poll() is None


class Curtsy:
    def __init__(self, build: pathlib.Path, folder: pathlib.Path) -> None:
        self.build, self.folder = build, folder
        self.library, self.command = build / "libcurtsy.so", build / "curtsy"
        self.segment = folder / "budget"
        self.config_file = folder / "ratelimit.ini"
        self.home = folder / "home"
        self.home.mkdir()
        self.sanitizer = sanitizer_of(self.library)
        self.configure("")
        self._started: list[Process] = []

    def configure(self, config: str) -> None:
        """The text of ratelimit.ini for the programs that start from now on."""
        self.config_file.write_text(config)

    # ---- environments ----

    def bare_env(self, extra: Optional[Mapping[str, str]] = None) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        return {**kept, "HOME": os.fspath(self.home), "LC_ALL": "C.UTF-8", "TZ": "UTC", **(extra or {})}

    def tool_env(self, extra: Optional[Mapping[str, str]] = None) -> dict[str, str]:
        """Curtsy's own variables, without the library."""
        env = self.bare_env()
        env["CURTSY_CONFIG"] = os.fspath(self.config_file)
        env["CURTSY_SEGMENT"] = os.fspath(self.segment)
        env.update(self._sanitizer_env())
        env.update(extra or {})
        return env

    def env(self, extra: Optional[Mapping[str, str]] = None) -> dict[str, str]:
        """With the library preloaded."""
        env = self.tool_env()
        runtime = env.get("LD_PRELOAD")
        env["LD_PRELOAD"] = f"{runtime}:{self.library}" if runtime else os.fspath(self.library)
        env.update(extra or {})
        return env

    def _sanitizer_env(self) -> dict[str, str]:
        """A sanitizer's runtime has to be the first library of a program that was built without."""
        if not self.sanitizer:
            return {}
        return {
            "LD_PRELOAD": f"{runtime_of(self.sanitizer)}:{early_allocation()}",
            "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0:detect_odr_violation=0:handle_sigbus=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "TSAN_OPTIONS": "halt_on_error=1:handle_sigbus=0",
        }

    # ---- running ----

    def start(
        self,
        argv: Sequence[str],
        *,
        config: Optional[str] = None,
        set: Optional[str] = None,
        how: str = "preload",
        stdin: Optional[bytes] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[os.PathLike] = None,
    ) -> Process:
        """how: "preload" by LD_PRELOAD alone, "run" by `curtsy run`, "bare" without Curtsy."""
        if config is not None:
            self.configure(config)
        more = dict(env or {})
        argv = list(argv)
        if how == "run":
            argv = [self.command, "run", *(["--set", set] if set else []), "--", *argv]
            environment = self.tool_env(more)
        else:
            if set:
                more["CURTSY_SET"] = set
            environment = self.env(more) if how == "preload" else self.bare_env(more)
        process = Process(argv, environment, stdin, cwd or self.folder)
        self._started.append(process)
        return process

    def run(self, argv: Sequence[str], *, timeout: float = HANG, **options) -> Result:
        return self.start(argv, **options).wait(timeout)

    def bare(self, argv: Sequence[str], **options) -> Result:
        """The same program without Curtsy."""
        return self.run(argv, how="bare", **options)

    def curl(self, *words: str, **options) -> Result:
        """curl, silent but for errors."""
        return self.run(["curl", "-sS", *words], **options)

    def tool(self, *words: str, stdin: Optional[bytes] = None, env: Optional[Mapping[str, str]] = None) -> Result:
        """The command itself: curtsy check ..."""
        process = Process([self.command, *words], self.tool_env(env), stdin, self.folder)
        self._started.append(process)
        return process.wait(HANG)

    def status(self) -> dict:
        """`curtsy status --json`, parsed."""
        result = self.tool("status", "--json")
        assert result.rc == 0, result.errors
        return json.loads(result.stdout)

    def wait_for_waiters(self, count: int) -> None:
        """Until so many are shown as waiting."""
        until(lambda: sum(bucket["curtsy_waiting"] for bucket in self.status()["buckets"]) == count)

    def victim(self, name: str) -> str:
        """A program of tests/victims."""
        return os.fspath(self.build / "victims" / name)

    def callbacks(self, *words: str, **options) -> Result:
        """The victim whose callbacks obey these words; see tests/victims/callbacks.c."""
        return self.run([self.victim("callbacks"), *words], **options)

    def finish(self) -> None:
        """Ends what a failed test left running, and frees the segment's space."""
        for process in self._started:
            process.end()
        self.segment.unlink(missing_ok=True)


@functools.lru_cache
def sanitizer_of(library: pathlib.Path) -> Optional[str]:
    """asan, tsan, or None."""
    needed = needed_libraries(library)
    return next((name for name in ("asan", "tsan") if any(f"lib{name}.so" in word for word in needed)), None)


@functools.lru_cache
def runtime_of(sanitizer: str) -> str:
    question = ["gcc", f"-print-file-name=lib{sanitizer}.so"]
    return subprocess.run(question, capture_output=True, text=True, check=True).stdout.strip()


@functools.lru_cache
def early_allocation() -> pathlib.Path:
    """A library that allocates before all others do.  A sanitizer sets itself up at the first allocation,
    and takes glibc's lock of locales for it; p11-kit (below libcurl) makes its first one while it holds it."""
    source = """
    #include <stdlib.h>
    __attribute__((constructor)) static void allocate(void)
    {
        void *volatile memory = malloc(1);
        free(memory);
    }"""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="curtsy-early-"))
    atexit.register(shutil.rmtree, folder, True)
    return compile_c(source, folder / "early.so", "-shared", "-fPIC", "-O0", "-Wl,-z,initfirst")


def needed_libraries(path: pathlib.Path) -> list[str]:
    listing = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    return [line.split("[")[1].split("]")[0] for line in listing.splitlines() if "(NEEDED)" in line]


def compile_c(source: str, output: pathlib.Path, *flags: str) -> pathlib.Path:
    """Builds what the Makefile has no rule for, such as a shared library of one test."""
    file = output.with_suffix(".c")
    file.write_text(source)
    subprocess.run(["cc", "-O2", "-g", "-w", "-o", output, file, *flags], check=True, timeout=HANG)
    return output


# A program that makes the same request on one handle until its standard input ends, and counts the right
# answers.
ASKER = """
#include <curl/curl.h>
#include <poll.h>
#include <stdio.h>
static size_t received;
static size_t count(char *data, size_t size, size_t number, void *unused)
{
    received += size * number;
    return size * number;
}
int main(int argc, char **argv)
{
    CURL *easy = curl_easy_init();
    struct pollfd input = {.fd = 0, .events = POLLIN};
    int right = 0, wrong = 0;
    size_t length = 0;
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, count);
    curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
    do {
        long status = 0;
        received = 0;
        CURLcode result = curl_easy_perform(easy);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        length = length ? length : received;
        result == CURLE_OK && status == 200 && received == length && length ? right++ : wrong++;
    } while (poll(&input, 1, 0) == 0);
    curl_easy_cleanup(easy);
    printf("right %d wrong %d\\n", right, wrong);
    return 0;
}
"""


def compile_library(source: str, output: pathlib.Path) -> pathlib.Path:
    """A library to be preloaded."""
    return compile_c(source, output, "-shared", "-fPIC", "-D_GNU_SOURCE", "-ldl")


def has_program(name: str) -> bool:
    return shutil.which(name) is not None


def not_early(waits: Sequence[float], *bounds: float) -> None:
    """Each wait is at least as long as it had to be."""
    assert len(waits) == len(bounds), f"{len(waits)} waits {waits}, {len(bounds)} expected"
    for wait, bound in zip(waits, bounds):
        assert wait >= bound - EARLY, f"{wait:.4f} s instead of at least {bound} s"


@functools.lru_cache
def unshared(*commands: str) -> Optional[list[str]]:
    """A prefix that runs a program with mounts of its own, which these commands make; None where that
    is not allowed."""
    script = " && ".join([*commands, 'exec "$@"'])
    prefix = ["unshare", "-m", "sh", "-c", script, "sh"]
    if not has_program("unshare") or subprocess.run([*prefix, "true"], capture_output=True).returncode:
        return None
    return prefix


def until(condition: Callable):
    """Waits for it and gives what it was; the bound only guards against hangs."""
    end = time.monotonic() + HANG
    while not (result := condition()):
        assert time.monotonic() < end, "it never came to be so"
        time.sleep(0.01)
    return result


TEXT = b"The quick brown fox jumps over the lazy dog.\n" * 20


def serve(up) -> None:
    """What tests ask for that look at something else."""
    up.on("/text", Answer(200, [("X-A", "1")], TEXT))
    up.on("/missing", Answer(404, body=b"the reason\n"))
    up.on("/echo", lambda request: Answer(200, body=request.body))
    up.on("/busy", Answer(503, body=b"not now\n"), Answer(200, body=b"now\n"))


def transfers(up) -> list[str]:
    """A GET, one of what is missing, and a POST, by curl, which tells how they went."""
    shown = ["-sS", "-i", "-w", "%{http_code} %{exitcode} %{num_connects}\n"]
    return ["curl", *shown, up.url("/text"), up.url("/missing"), "--next", *shown, "-d", "data", up.url("/echo")]


def told(seconds, status: int = 429, body: bytes = b"slow down\n") -> Answer:
    """A refusal that says when to come back."""
    return Answer(status, [("Retry-After", str(seconds))], body)


def keeps_to(times_ns: Sequence[int], burst: float, rate: float, jitter: float = 0.1) -> None:
    """No stretch of time saw more than a bucket of that burst and rate (a second) lets through, when
    the way from admission to arrival varies by `jitter` seconds."""
    times = sorted(times_ns)
    for first, begin in enumerate(times):
        for last in range(first, len(times)):
            allowed = burst + rate * ((times[last] - begin) / 1e9 + jitter)
            assert last - first + 1 <= allowed, f"{last - first + 1} requests where {allowed:.2f} fit"
