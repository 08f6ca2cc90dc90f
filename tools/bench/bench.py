#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What Curtsy costs, in figures that a noisy machine cannot blur: user instructions, counted by
callgrind, of the same program bare and in each mode, as ratios.

The cost of one request is the difference between a long and a short run of the same program over
one kept connection, divided by the number of requests between them; so start-up is not in it, and
start-up is measured by itself.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "upstream"))

from upstream import Answer, Upstream  # noqa: E402

SHORT, LONG = 200, 1200


def instructions(command, environment, folder):
    """Instructions of the whole process, children not included."""
    output = os.path.join(folder, "callgrind.out")
    words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", *command]
    result = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600, check=False)
    counted = re.search(r"Collected\s*:\s*(\d+)", result.stderr)
    if result.returncode or not counted:
        raise SystemExit(f"bench: {' '.join(command)} failed:\n{result.stderr[-2000:]}")
    return int(counted.group(1))


def per_request(program, url, environment, folder):
    short = instructions([program, url, str(SHORT)], environment, folder)
    long = instructions([program, url, str(LONG)], environment, folder)
    return (long - short) / (LONG - SHORT)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--build", required=True)
    build = arguments.parse_args().build
    program = os.path.join(build, "bench", "keepalive")
    with Upstream() as upstream, tempfile.TemporaryDirectory(prefix="curtsy-bench-") as folder:
        upstream.on("/plain", Answer(200, [("Date", "Mon, 30 Nov 2026 12:00:00 GMT"), ("Server", "bench")], b"x" * 200))
        fields = [("X-RateLimit-Limit", "5000"), ("X-RateLimit-Remaining", "4999"), ("X-RateLimit-Reset", "3600")]
        upstream.on("/fields", Answer(200, [("Date", "Mon, 30 Nov 2026 12:00:00 GMT"), *fields], b"x" * 200))
        bare = {"PATH": os.environ["PATH"], "HOME": folder}
        under = {**bare, "LD_PRELOAD": os.path.join(build, "libcurtsy.so"), "CURTSY_SEGMENT": folder + "/budget",
                 "CURTSY_CONFIG": os.path.join(folder, "ratelimit.ini")}
        open(under["CURTSY_CONFIG"], "w").close()
        cases = [
            ("bare", "/plain", bare),
            ("off", "/plain", {**under, "CURTSY_MODE": "off"}),
            ("nothing to limit", "/plain", under),
            ("a quota that does not bind", "/plain", {**under, "CURTSY_SET": "[default]\nquota = 100000/s\n"}),
            ("bare, quota fields", "/fields", bare),
            ("the same, under Curtsy", "/fields", under),
        ]
        print(f"user instructions per request over a kept connection ({LONG - SHORT} requests)")
        base = {}
        for name, path, environment in cases:
            count = per_request(program, upstream.url(path), environment, folder)
            base.setdefault(path, count)
            print(f"  {name:28} {count:10.0f}   x {count / base[path]:.4f}", flush=True)
        print("user instructions of a whole process")
        for command in (["/bin/true"], ["curl", "--version"]):
            counts = [instructions(command, environment, folder) for environment in (bare, under)]
            print(f"  {' '.join(command):28} {counts[0]:10} bare, {counts[1]:10} under Curtsy, "
                  f"x {counts[1] / counts[0]:.4f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
