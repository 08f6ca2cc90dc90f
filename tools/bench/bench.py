#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What Curtsy costs, as ratios to what the same thing costs without it.

Where a figure can be counted it is: user instructions (callgrind) do not depend on the machine's
mood.  Where it has to be timed, both sides run in turn, several times, and the median of the ratios
is told.  Nothing here passes or fails; the goals stand beside the figures.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "upstream"))

from upstream import Answer, Upstream  # noqa: E402

SHORT, LONG = 200, 1200
ROUNDS = 7
REPEATS = 4


class Bench:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.bare = {"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": "C"}
        self.under = {
            **self.bare,
            "LD_PRELOAD": os.path.join(build, "libcurtsy.so"),
            "CURTSY_SEGMENT": os.path.join(folder, "budget"),
            "CURTSY_CONFIG": os.path.join(folder, "ratelimit.ini"),
        }
        open(self.under["CURTSY_CONFIG"], "w").close()

    def program(self, name):
        return os.path.join(self.build, "bench", name)

    def instructions(self, command, environment):
        """Of the whole process, children not included."""
        output = os.path.join(self.folder, "callgrind.out")
        words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", *command]
        result = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, check=False)
        counted = re.search(r"Collected\s*:\s*(\d+)", result.stderr)
        if result.returncode or not counted:
            raise SystemExit(f"bench: {' '.join(command)} failed:\n{result.stderr[-2000:]}")
        return int(counted.group(1))

    def per_request(self, url, environment):
        """The difference between a long and a short run over one kept connection: start-up is not in it.
        Of several runs the least counts: how often libcurl looks in vain for an answer is the server's affair."""
        short, long = (
            min(self.instructions([self.program("keepalive"), url, str(count)], environment) for _ in range(REPEATS))
            for count in (SHORT, LONG)
        )
        return (long - short) / (LONG - SHORT)


def run(command, environment):
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=True).stdout


def say(text=""):
    print(text, flush=True)


def requests(bench):
    date = ("Date", "Mon, 30 Nov 2026 12:00:00 GMT")
    usual = [("Server", "bench"), ("Content-Type", "application/json"), ("Connection", "keep-alive")]
    quota = [("X-RateLimit-Limit", "5000"), ("X-RateLimit-Remaining", "4999")]
    with Upstream() as upstream:
        for path, fields in {
            "/plain": [date, *usual],
            "/fields": [date, *usual, *quota, ("X-RateLimit-Reset", "3600")],
            "/epoch": [date, *usual, *quota, ("X-RateLimit-Reset", "1796044200")],
        }.items():
            upstream.on(path, Answer(200, fields, b"x" * 200))
        cases = [
            ("bare", "/plain", bench.bare, ""),
            ("off by CURTSY_MODE", "/plain", {**bench.under, "CURTSY_MODE": "off"}, "goal 1.005"),
            ("nothing to limit", "/plain", bench.under, ""),
            ("a quota that does not bind", "/plain", {**bench.under, "CURTSY_SET": "quota = 100000/s"}, ""),
            ("bare, with quota fields", "/fields", bench.bare, ""),
            ("under Curtsy", "/fields", bench.under, "goal 1.03"),
            ("bare, reset as an epoch", "/epoch", bench.bare, ""),
            ("under Curtsy", "/epoch", bench.under, "goal 1.03"),
        ]
        say(f"user instructions per request over a kept connection ({LONG - SHORT} requests)")
        base = {}
        for name, path, environment, goal in cases:
            count = bench.per_request(upstream.url(path), environment)
            base.setdefault(path, count)
            say(f"  {name:30} {count:10.0f}   x {count / base[path]:.4f}   {goal}")


def processes(bench):
    say("user instructions of a whole process")
    for command in (["/bin/true"], ["curl", "--version"]):
        counts = [bench.instructions(command, environment) for environment in (bench.bare, bench.under)]
        say(f"  {' '.join(command):30} {counts[0]:10} bare, {counts[1]:10} under Curtsy   x {counts[1] / counts[0]:.4f}")


def timed(command, environment, times=200):
    began = time.perf_counter()
    for _ in range(times):
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - began) / times


def execution(bench):
    say("time to execute /bin/true (median of ratios, runs in turn)")
    ratios, extra = [], []
    for _ in range(ROUNDS):
        bare, under = timed(["/bin/true"], bench.bare), timed(["/bin/true"], bench.under)
        ratios.append(under / bare)
        extra.append(under - bare)
    say(f"  x {statistics.median(ratios):.3f}, {statistics.median(extra) * 1e6:.0f} us more")


def admissions(bench):
    say("nanoseconds of an admission, beside a clock read and a compare-and-swap (median, runs in turn)")
    for count in (1, 2):
        ratios, bares, admits = [], [], []
        for _ in range(ROUNDS):
            bare, admit = (float(run([bench.program("admission"), kind, str(count), "2000000"], bench.bare))
                           for kind in ("bare", "admit"))
            bares.append(bare)
            admits.append(admit)
            ratios.append(admit / bare)
        say(f"  {count} process{'es' if count > 1 else '':4} {statistics.median(bares):7.1f} ns bare, "
            f"{statistics.median(admits):7.1f} ns admission   x {statistics.median(ratios):.2f}   goal 2")


def lateness(bench):
    say("microseconds by which a paced turn begins late, beside a sleeper's by poll() (runs in turn)")
    seen = {"sleeper": [], "Curtsy": []}
    with Upstream() as upstream:
        upstream.on("/", Answer(200, [], b"x"))
        paced = {**bench.under, "CURTSY_SET": "rate = 20/s"}
        for _ in range(3):
            seen["sleeper"] += map(int, run([bench.program("lateness"), "-", "40"], bench.bare).split())
            os.path.exists(bench.under["CURTSY_SEGMENT"]) and os.unlink(bench.under["CURTSY_SEGMENT"])
            seen["Curtsy"] += map(int, run([bench.program("lateness"), upstream.url("/"), "40"], paced).split())
    for name, values in seen.items():
        values.sort()
        say(f"  {name:10} median {statistics.median(values):6.0f}, "
            f"99 % below {values[len(values) * 99 // 100]:6d}, of {len(values)}")


def configuration(bench):
    say("reading a configuration, and finding a section in it (user instructions of curtsy summary)")
    path = os.path.join(bench.folder, "many.ini")
    counts = {}
    for sections in (10, 1000, 10000):
        with open(path, "w") as file:
            for number in range(sections):
                file.write(f"[host{number}.example.com/v{number % 3}]\nquota = {number + 1}/h\nmax_wait = 2s\n")
        command = [os.path.join(bench.build, "curtsy"), "summary", "-c", path, "host7.example.com"]
        began = time.perf_counter()
        run(command, bench.bare)
        took = time.perf_counter() - began
        counts[sections] = bench.instructions(command, bench.bare)
        say(f"  {sections:6} sections {counts[sections]:12}   ({took:.3f} s)")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--build", required=True)
    parts = {part.__name__: part for part in (requests, processes, execution, admissions, lateness, configuration)}
    arguments.add_argument("part", nargs="*", help=f"of: {', '.join(parts)}; default: all")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="curtsy-bench-") as folder:
        bench = Bench(os.path.abspath(options.build), folder)
        for name in options.part or parts:
            if name not in parts:
                raise SystemExit(f"bench: no part \"{name}\"; there are: {', '.join(parts)}")
            parts[name](bench)
    return 0


if __name__ == "__main__":
    sys.exit(main())
