# SPDX-License-Identifier: MIT
"""Whatever of the system fails under Curtsy, always or once, in any place: the program's requests go as
they would without, or, where it is memory that is missing, end with an error of libcurl's own."""

import pathlib
import re

import pytest

from harness import compile_library, serve

LIBRARY = (pathlib.Path(__file__).resolve().parent / "failing_calls.c").read_text()
FAILING_NAMES = sorted(set(re.findall(r"(?:FAIL\(|WRAP\([\w *]+, )(\w+),\s", LIBRARY)) - {"name", "clock_gettime"})
IN_ALL = 10**6


class Injector:
    """A program that is turned away once, under a library some of whose calls fail."""

    def __init__(self, curtsy, up, library):
        self.curtsy, self.up, self.library = curtsy, up, library
        curtsy.configure("[default]\nbase_delay = 10ms\nquota = 1000/s\n")

    def run(self, first=0, last=0, names=(), **more):
        serve(self.up)
        preload = f"{self.curtsy.env()['LD_PRELOAD']}:{self.library}"
        env = {"LD_PRELOAD": preload, "FAIL_FROM": str(first), "FAIL_TO": str(last), **more}
        env["FAIL_NAMES"] = "".join(f"{name} " for name in names)
        urls = [self.up.url("/text"), self.up.url("/busy"), self.up.url("/text")]
        return self.curtsy.run([self.curtsy.victim("get"), *urls], env=env)


@pytest.fixture(scope="session")
def failing_library(tmp_path_factory):
    return compile_library(LIBRARY, tmp_path_factory.mktemp("failing") / "failing.so")


@pytest.fixture
def injector(curtsy, up, failing_library):
    return Injector(curtsy, up, failing_library)


RIGHT = ["0 200 900 1", "(0 200 4|0 503 8) 0", "0 200 900 0"]
# Where there is no memory to note which libcurl is meant, there is none to go to; and what cannot be held
# back in memory cannot be given in its order.  Both are told as libcurl would.
ANY_OF_THEM = ["0 200 900 [01]", "(0 200 4|0 503 8) [01]", "0 200 900 [01]"]
RIGHT_OR_NO_MEMORY = [rf"({line}|(2|23|27|43) .*)" for line in ANY_OF_THEM]


def ends_right(result, right=RIGHT):
    theirs = result.all_but_ours
    assert theirs[0] == 0 and theirs[2] == b"", result.errors
    assert re.fullmatch("".join(f"{line}\n" for line in right), result.text), result.text + result.errors
    assert len(result.ours) <= 1


no_injecting = pytest.mark.no_sanitizer("its runtime is called by the functions that are made to fail")


def what_is_right(name):
    return RIGHT_OR_NO_MEMORY if name in ("calloc", "realloc") else RIGHT


@no_injecting
@pytest.mark.parametrize("name", FAILING_NAMES)
def test_a_function_that_always_fails(injector, name):
    for first in (1, 2):  # from the first call on, or after it went well once
        ends_right(injector.run(first, IN_ALL, [name]), what_is_right(name))


PORTIONS = 8


@no_injecting
@pytest.mark.slow(1)
@pytest.mark.parametrize("portion", range(PORTIONS))
def test_any_one_call_that_fails(injector, portion):
    """One of all that the library makes, each in turn."""
    names = injector.run(FAIL_TELL="1").errors.split()
    assert len(names) > 50
    for number in range(1 + portion, len(names) + 1, PORTIONS):
        injector.curtsy.segment.unlink(missing_ok=True)
        ends_right(injector.run(number, number), what_is_right(names[number - 1]))
