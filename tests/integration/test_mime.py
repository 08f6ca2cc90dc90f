# SPDX-License-Identifier: MIT
"""A body that libcurl puts together from parts is sent again if each of them can be proven to be what it
was, and else the refusal is delivered: one attempt.

tests/victims/mime_bodies.c builds the structures; test_bodies.py has what concerns all kinds of bodies.
"""

import os
import re
import threading

import pytest

from harness import compile_library
from test_failing_calls import LIBRARY as FAILING
from upstream import Answer

CONFIG = "[127.0.0.1]\nbase_delay = 1ms\nretry_reserve = 1000\n"
CONTENT = b"content of the file"
REFUSED, FINE = "0 429 slow\n", "0 200 fine\n"


class Bodies:
    """The victim, in a folder with files, and an upstream that refuses every other request and keeps what
    it was sent."""

    def __init__(self, curtsy, up):
        self.curtsy, self.up = curtsy, up
        self.folder = curtsy.folder / "files"
        self.folder.mkdir()
        self.file.write_bytes(CONTENT)
        (self.folder / "other").write_bytes(b"the other file")
        (self.folder / "link").symlink_to("file")
        os.mkfifo(self.folder / "fifo")
        self.received = []
        self.meanwhile = lambda: None
        self.refuse_every_other()

    def refuse_every_other(self):
        self.up.on("/", self._refuse, self._serve, cycle=True)

    @property
    def file(self):
        return self.folder / "file"

    def _refuse(self, request):
        self.received.append(request.body)
        self.meanwhile()
        return Answer(429, body=b"slow")

    def _serve(self, request):
        self.received.append(request.body)
        return Answer(200, body=b"fine")

    def send(self, *words, **options):
        options = {"config": CONFIG, "cwd": self.folder} | options
        result = self.curtsy.run([self.curtsy.victim("mime_bodies"), self.up.url("/"), *words], **options)
        assert (result.rc, result.errors) == (0, "")
        return result.text

    def once_more(self, *words, **options):
        """The parts of the two bodies, which are the same."""
        assert self.send(*words, "perform=key", **options) == FINE
        first, second = map(without_boundaries, self.received)
        assert first == second
        return first

    def only_once(self, *words, **options):
        assert self.send(*words, "perform=key", **options) == REFUSED
        (body,) = self.received
        return body


def without_boundaries(body):
    """Each is of random letters, and another one in each attempt where a list is made a structure anew."""
    return re.sub(rb"-{20,}\w{16,}", b"BOUNDARY", body)


@pytest.fixture
def bodies(curtsy, up):
    return Bodies(curtsy, up)


# ---- what can be proven ----

PROVEN = {
    "part data=a": b"a",
    "part data=a data=b": b"b",
    "part data=a part data=b": b"b",
    "part file=file": CONTENT,
    "part file=link": CONTENT,
    "part file=../files/file encoder=base64": b"Y29udGVudCBvZiB0aGUgZmlsZQ==",
    "part seekable=a": b"a",
    "part data=a headers=X-A:1": b"X-A:1",
    "part nest data=a end": b"a",
    "part nest file=file end": CONTENT,
    "part nest data=a part seekable=b nest data=c end end part data=d": b"d",
    "part nest data=a end nest=last end": b"a",
    # What cannot be sent again is replaced.
    "part once=a data=b": b"b",
    "part once=a file=file": CONTENT,
    "part once=a seekable=b": b"b",
    "part once=a nest data=b end": b"b",
    "part file=fifo file=file": CONTENT,
    "part missing=missing data=a": b"a",
    "part nest once=a end data=b": b"b",
    "part nest once=a end free-nested data=b": b"b",
    "part nest data=a end part once=b nest-nested data=c": b"a",
    "part nest once=a free part data=b": b"b",
    "part nest nest once=a end end data=b part data=c": b"c",
    "form-copy=a": b"a",
    "form-pointer=a": b"a",
    "form-sized=ab": b"a",
    "form-buffer=a": b"a",
    "form-name=n": b"named",
    "form-header=X-A:1": b"X-A:1",
    "form-file=file": CONTENT,
    "form-content=file": CONTENT,
    "form-files=file,other": b"the other file",
    "form-copy=a form-file=link form-copy=b": b"b",
}


@pytest.mark.parametrize("words", PROVEN)
def test_a_structure_that_is_sent_again(bodies, words):
    assert PROVEN[words] in bodies.once_more(*words.split())


@pytest.mark.parametrize("words", ["part file=file", "part seekable=a nest data=b end", "form-files=file,other"])
def test_a_structure_that_is_used_again(bodies, words):
    """By the next transfer, with its own refusal."""
    assert bodies.send(*words.split(), "perform=1", "perform=2", "perform=3") == FINE * 3
    assert len(bodies.received) == 6 and len(set(map(without_boundaries, bodies.received))) == 1


def test_another_structure_on_the_same_handle(bodies):
    """At the same addresses, most likely; and what was known of the first has gone with it."""
    first = ["part", "once=a", "part", "nest", "once=b", "end", "perform=1", "free"]
    second = ["part", "data=c", "part", "nest", "data=d", "end", "perform=2", "free"]
    for _ in range(3):
        assert bodies.send(*first, *second) == REFUSED + FINE


# ---- what cannot ----

UNPROVEN = [
    # libcurl does not begin again with a part that has nothing in it: it would fail.
    "part",
    "part data=a nothing",
    "part data=a part",
    "part nest data=a end no-subparts",
    "part nest data=a end free-nested",
    "part nest data=a end part once=b nest-nested",
    "part once=a",
    "part data=a part once=b",
    "part once=a part data=b",
    "part seekable=a once=b",
    "part nest once=a end",
    "part nest data=a part nest nest once=b end end end part data=c",
    "part nest once=a end nest=last end",
    "part missing=later write=later",
    "form-stream=a",
    "form-copy=a form-stream=b form-copy=c",
    "form-file=-",
    "form-files=file,-",
    "part file=/dev/stdin",
]


@pytest.mark.parametrize("words", UNPROVEN)
def test_a_structure_that_is_sent_only_once(bodies, words):
    bodies.only_once(*words.split(), stdin=b"from standard input")


def test_a_callback_that_does_not_begin_again(bodies):
    """Though it is said to be able to."""
    bodies.only_once("part", "unseekable=a")


@pytest.mark.parametrize("words", ["part file=fifo", "form-file=fifo", "part nest file=fifo end"])
def test_what_comes_through_a_pipe_is_sent_only_once(bodies, words):
    writer = threading.Thread(target=(bodies.folder / "fifo").write_bytes, args=(b"through the pipe",))
    writer.start()
    assert b"through the pipe" in bodies.only_once(*words.split())
    writer.join()


def test_a_structure_that_libcurl_has_copied(bodies):
    """For a handle that was duplicated: of the copy nothing is known."""
    assert bodies.send("part", "data=a", "perform=key", "perform-copy") == FINE + REFUSED
    assert len(set(bodies.received[:2])) == 1 and len(bodies.received) == 3


def test_nesting_without_end(bodies):
    """As deep as anybody does is looked into; beyond that nothing is proven."""
    for depth, attempts in ((20, 2), (90, 1)):
        bodies.received.clear()
        bodies.send(*["part", *["nest"] * depth, "data=a", *["end"] * depth, "perform=key"])
        assert len(bodies.received) == attempts
        bodies.refuse_every_other()


# ---- what changes between the attempts ----


def replace(file):
    file.with_name("new").write_bytes(CONTENT)
    os.rename(file.with_name("new"), file)


def rewrite(file):
    """As nearly the same as can be: only the time of the change tells."""
    before = file.stat()
    while file.stat().st_ctime_ns == before.st_ctime_ns:  # by a clock that ticks every few milliseconds
        file.write_bytes(CONTENT.upper())
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def make_a_pipe(file):
    file.unlink()
    os.mkfifo(file)


WITH_A_FILE = ["part file=file", "part file=link", "part data=a part nest data=b part file=file end", "form-file=file"]
WITH_A_FILE += ["form-content=file", "form-files=other,file"]


@pytest.mark.parametrize("change", [replace, rewrite, make_a_pipe, os.unlink])
@pytest.mark.parametrize("words", WITH_A_FILE)
def test_a_file_that_changes_meanwhile(bodies, words, change):
    bodies.meanwhile = lambda: change(bodies.file)
    assert CONTENT in bodies.only_once(*words.split())


def test_a_file_that_changes_between_transfers(bodies):
    """libcurl keeps a file open that it did not read to its end, and reads on in that one at the next
    transfer, but by its path after that: which one it is cannot be told."""
    bodies.file.write_text("as long")
    text = bodies.send("part", "file=file", "perform=1", "write=file", "perform=2")
    assert text == FINE + REFUSED and len(bodies.received) == 3
    assert [b"as long" in body for body in bodies.received] == [True, True, False]
    bodies.refuse_every_other()
    text = bodies.send("part", "file=file", "perform=1", "write=file", "file=file", "perform=2")
    assert text == FINE * 2


@pytest.mark.parametrize(
    "words",
    [
        "part data=a then data=b",
        "part data=a then part",
        "part data=a then name=other",
        "part data=a then encoder=base64",
        "part data=a headers=X-A:1 then change-headers=X-A:2",
        "part nest data=a end then no-subparts",
        "part nest data=a end then free-nested",
        "part nest data=a then data=b end",
        "part file=file then chdir=..",
        "form-pointer=abc then change-pointer=b",
        "form-sized=abc then change-pointer=b",
        "form-buffer=abc then change-pointer=b",
        "form-name=abc then change-name=b",
        "form-header=X-A:1 then change-headers=X-A:2",
        "form-file=file then chdir=..",
    ],
)
def test_a_program_that_changes_it_meanwhile(bodies, words):
    first, _, then = words.rpartition("then ")
    assert bodies.send(*first.split(), "then", *then.split(), "perform=key") == REFUSED
    assert len(bodies.received) == 1


def test_what_a_form_does_not_send_does_not_count(bodies):
    """Memory behind the size that was told."""
    assert bodies.send("form-sized=abc", "then", "change-pointer=abd", "perform=key") == FINE


# ---- many, and little memory ----


def test_threads_that_build_structures(bodies):
    """And free them, at the same addresses as others'."""
    bodies.up.on("/", *[Answer(429, body=b"slow")] * 2, b"fine")
    text = bodies.send("threads", "4", "200")
    assert sorted(text.splitlines()) in [["0 200 fine"] * (12 - n) + ["0 429 slow"] * n for n in range(3)]


@pytest.mark.no_sanitizer("its runtime is called by the functions that are made to fail")
def test_memory_that_is_missing(bodies, tmp_path):
    """At any one time that something is to be noted: what is not known is not sent again."""
    library = compile_library(FAILING, tmp_path / "failing.so")
    words = "part data=a part nest file=file part seekable=b end perform=key".split()
    env = {"LD_PRELOAD": f"{bodies.curtsy.env()['LD_PRELOAD']}:{library}", "FAIL_NAMES": "calloc strdup "}
    seen = []
    for number in range(1, 100):
        bodies.received.clear()
        bodies.curtsy.segment.unlink(missing_ok=True)
        bodies.refuse_every_other()
        command = [bodies.curtsy.victim("mime_bodies"), bodies.up.url("/"), *words]
        failing = env | {"FAIL_FROM": str(number), "FAIL_TO": str(number), "FAIL_TELL": "1"}
        result = bodies.curtsy.run(command, env=failing, config=CONFIG, cwd=bodies.folder)
        assert len(set(bodies.received)) <= 1 and all(CONTENT in body for body in bodies.received)
        seen.append((result.rc, result.text, len(bodies.received)))
        if len(result.errors.split()) < number:  # so many calls were not made
            break
    assert seen[-1] == (0, FINE, 2)
    # There may be no memory for a handle, or for the transfer.
    assert set(seen) <= {(0, FINE, 2), (0, REFUSED, 1), (3, "", 0), (0, "27 0 \n", 0)}
    assert seen.count((0, REFUSED, 1)) >= 7  # two structures and four parts, and a path
