#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The demo: the same unmodified curl command line, from several processes at once, against a small
local server with a published quota, three times: bare, with --retry 5, and under `curtsy run`.

Everything stays on loopback, in a temporary folder, and takes under a minute.  What is shown is
measured: the requests are counted by the server, the rest by this script.
"""

import argparse
import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "upstream"))

from upstream import Upstream  # noqa: E402

QUOTA = 20  # requests a second
PROCESSES = 6
REQUESTS_EACH = 20
PROCESS_TIMEOUT = 50


@dataclasses.dataclass
class Run:
    title: str
    prefix: list
    options: list
    shown: str = ""
    sent: int = 0
    refused: int = 0
    succeeded: int = 0
    seconds: float = 0.0
    per_second: list = dataclasses.field(default_factory=list)

    @property
    def failed(self):
        return PROCESSES * REQUESTS_EACH - self.succeeded


class Paint:
    """Colour on a terminal that wants it, nothing otherwise."""

    def __init__(self):
        on = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self.bold, self.red, self.green, self.dim, self.end = (
            ("\033[1m", "\033[31m", "\033[32m", "\033[2m", "\033[0m") if on else ("",) * 5
        )


def best_possible_seconds():
    """The first QUOTA go at once, and so many again at the start of each further window."""
    return -(-PROCESSES * REQUESTS_EACH // QUOTA) - 1


def shown_command(command):
    """As one would type it."""
    words = [word.replace("\n", "\\n") for word in command]
    if os.path.basename(words[0]) == "curtsy":
        words[0] = "curtsy"
    return " ".join(f"'{word}'" if set(word) & set("%[] \\=") else word for word in words)


def measure(run, upstream_port_of, environment):
    """Starts all processes at once and waits for them; fills in the run's figures."""
    with Upstream() as upstream:
        upstream.on("/item", b"an item\n")
        quota = upstream.quota(QUOTA, 1.0, kind="fixed", retry_after="exact")
        url = f"http://127.0.0.1:{upstream.port}/item/[1-{REQUESTS_EACH}]"
        upstream_port_of[run.title] = upstream.port
        command = [*run.prefix, "curl", *run.options, "-s", "-f", "-o", "/dev/null", "-w", "%{http_code}\n", url]
        run.shown = shown_command(command)
        began = time.monotonic()
        processes = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True)
            for _ in range(PROCESSES)
        ]
        for process in processes:
            try:
                codes, _ = process.communicate(timeout=PROCESS_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                codes, _ = process.communicate()
            run.succeeded += codes.split().count("200")
        run.seconds = time.monotonic() - began
        times = upstream.times()
        run.sent, run.refused = len(times), quota.refused
        if times:
            run.per_second = [0] * ((times[-1] - times[0]) // 10**9 + 1)
            for at in times:
                run.per_second[(at - times[0]) // 10**9] += 1


def print_table(runs, paint):
    rows = [
        ("requests sent", [str(run.sent) for run in runs]),
        ("refused with 429", [str(run.refused) for run in runs]),
        ("items not got", [str(run.failed) for run in runs]),
        ("time taken", [f"{run.seconds:.1f} s" for run in runs]),
        ("best possible", [f"{best_possible_seconds():.1f} s"] * len(runs)),
    ]
    print(f"{'':18}" + "".join(f"{paint.bold}{run.title:>16}{paint.end}" for run in runs))
    for name, cells in rows:
        print(f"{name:18}", end="")
        for run, cell in zip(runs, cells):
            bad = name in ("refused with 429", "items not got") and cell != "0"
            good = name in ("refused with 429", "items not got") and cell == "0"
            colour = paint.red if bad else paint.green if good else ""
            print(f"{colour}{cell:>16}{paint.end if colour else ''}", end="")
        print()


def print_arrivals(runs, paint, width=44):
    """A bar a second; the quota is the line that no bar should cross."""
    most = min(3 * QUOTA, max([QUOTA, *(count for run in runs for count in run.per_second)]))
    line = round(QUOTA * width / most)
    for run in runs:
        print(f"\n{paint.bold}{run.title}{paint.end}: requests that arrived in each second "
              f"(| is the quota, {QUOTA})")
        for second, count in enumerate(run.per_second):
            length = min(width, round(count * width / most))
            bar = "".join("#" if i < length else "|" if i == line else " " for i in range(max(line + 1, length)))
            bar += ">" if count > most else ""
            colour = paint.red if count > QUOTA else paint.green
            print(f"  {second:3} s {count:4} {colour}{bar}{paint.end}")


def scrubbed_environment(folder):
    keep = {name: value for name, value in os.environ.items()
            if not name.startswith("CURTSY_") and not name.lower().endswith("_proxy") and name != "LD_PRELOAD"}
    keep.update(HOME=folder, XDG_CONFIG_HOME=folder, CURTSY_SEGMENT=os.path.join(folder, "budget"))
    return keep


def heading(text, paint):
    print(f"\n{paint.bold}== {text}{paint.end}")


def main():
    arguments = argparse.ArgumentParser(description="Shows what Curtsy does, on this machine, in under a minute.")
    arguments.add_argument("--build", required=True, help="the folder with libcurtsy.so and curtsy")
    build = arguments.parse_args().build
    command = os.path.join(build, "curtsy")
    if not shutil.which("curl"):
        print("demo: curl is needed, and was not found", file=sys.stderr)
        return 1
    paint = Paint()

    with tempfile.TemporaryDirectory(prefix="curtsy-demo-") as folder:
        environment = scrubbed_environment(folder)
        runs = [
            Run("bare", [], []),
            Run("--retry 5", [], ["--retry", "5"]),
            Run("curtsy run", [command, "run", "--set", f"quota={QUOTA}/s"], []),
        ]
        print(f"{paint.bold}A server on this machine publishes a quota of {QUOTA} requests a second, and answers 429 "
              f"with\nRetry-After beyond it. {PROCESSES} processes ask it for {REQUESTS_EACH} items each, "
              f"all at once, three times.{paint.end}")
        ports = {}
        for run in runs:
            heading(run.title, paint)
            sys.stdout.flush()
            measure(run, ports, environment)
            print(f"{PROCESSES} times at once:  {run.shown}")
        heading("side by side", paint)
        print_table(runs, paint)
        print_arrivals(runs, paint)

        heading("curtsy status", paint)
        sys.stdout.flush()
        subprocess.run([command, "status", f"127.0.0.1:{ports['curtsy run']}"], env=environment, check=False)
        heading("curtsy summary", paint)
        sys.stdout.flush()
        environment["CURTSY_SET"] = f"[default]\nquota={QUOTA}/s\n"
        subprocess.run([command, "summary", f"127.0.0.1:{ports['curtsy run']}"], env=environment, check=False)

        heading("on your own program", paint)
        shown = os.path.relpath(command)
        print(f"  {shown} run --set 'quota=5000/h' -- your-program its arguments\n"
              f"  {shown} status\n"
              f"  {shown} check ratelimit.ini     # the commented example to start from")
        wrong = runs[-1].refused or runs[-1].failed or max(runs[-1].per_second, default=0) > QUOTA
        if wrong:
            print("\ndemo: under Curtsy there were refusals, failures or too many in one second; "
                  "that is a fault, please report it", file=sys.stderr)
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
