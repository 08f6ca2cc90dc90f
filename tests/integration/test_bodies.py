# SPDX-License-Identifier: MIT
"""A request body is sent again byte for byte or not at all, whatever it is made of, whatever became of
the attempt before.

A table: kinds of bodies x methods x what the first attempts meet x sizes.  What has to come of each cell
is worked out here once more, from the rules and not from the code; tests/victims/bodies.c sends the
bodies, many cells a process, and tests/upstream/uploads.py keeps every byte that arrives.
"""

import dataclasses
import itertools
import json
import os

import pytest

from harness import EARLY
from upstream import Answer
from uploads import Http2Uploads, Uploads, answer

CONTENT = b"".join(b"%07x\n" % number for number in range((2 << 20) // 8))
SMALL, MIDDLE, LARGE = 3000, 100_000, 400_000
KEEP = 256 << 10  # the replay_buffer of most tests: less than LARGE
MAX_ATTEMPTS = 3
CONFIG = f"""[127.0.0.1]
base_delay = 1ms
max_attempts = {MAX_ATTEMPTS}
retry_reserve = 100000
replay_buffer = {KEEP >> 10}KiB
"""


# ---- the rules ----

# May the body be sent again?  "always"; while it fits the buffer: "kept"; "never" once it was read.
KINDS = {
    "none": "always",
    "fields": "always",
    "fields-changed": "never",
    "fields-replaced": "never",
    "copyfields": "always",
    "mime-data": "always",
    "mime-file": "always",
    "mime-file-changed": "never",
    "mime-seek": "always",
    "mime-read": "never",
    "form-contents": "always",
    "form-file": "always",
    "form-stream": "never",
    "form-pointer": "always",
    "form-pointer-changed": "never",
    "form-buffer-file": "always",
    "read": "kept",
    "read-seek": "always",
    "read-cantseek": "kept",
    "read-failseek": "kept",
    "read-ioctl": "always",
    "read-pauses": "kept",
    "read-replaced": "kept",  # with a reader that is for the next transfer
    "resume-read": "kept",
    "resume-seek": "always",
    "resume-file": "always",
    "file": "always",
    "file-changed": "kept",  # as it was; what is not kept would have to come from the file
    "file-fread": "always",
    "file-memory": "kept",
    "pipe": "kept",
}
UNSIZED = ["fields", "mime-seek", "mime-read", "read", "read-seek", "read-cantseek", "read-ioctl", "read-pauses"]
UNSIZED += ["file", "pipe"]
# By the program, after it was refused.
CHANGED = ["fields-changed", "fields-replaced", "form-pointer-changed", "mime-file-changed", "file-changed"]


def is_reader(kind):
    return kind.partition("-")[0] in ("read", "resume", "file", "pipe")


@dataclasses.dataclass(frozen=True)
class Cell:
    kind: str
    method: str
    faults: tuple[str, ...]
    size: int = SMALL
    known: bool = True  # is the size told?
    key: bool = False  # an idempotency key
    condition: bool = False  # If-Match
    expect: bool = False  # Expect: 100-continue
    offset: int = 0  # where the body begins in its source
    chunk: int = 0  # the most that the reader gives at a time
    upload_buffer: int = 0

    def __str__(self):
        words = [self.kind, self.method, *self.faults, str(self.size)]
        flags = ["key", "condition", "expect", "offset", "chunk", "upload_buffer"]
        return " ".join(words + [flag for flag in flags if getattr(self, flag)] + ["unsized"] * (not self.known))


def is_status(fault):
    return fault[0].isdigit()


def may_method(cell, fault):
    """Is a repeat safe as far as the method goes?"""
    if cell.method not in ("GET", "PUT", "DELETE") and not cell.key:
        return False
    return not cell.condition or fault[:3] in ("429", "503")


def may_body(cell, fault):
    """Can the body be sent again?  None: that depends on how much of it was read when it broke off."""
    rule = KINDS[cell.kind]
    if rule == "always" or (rule == "kept" and cell.size <= KEEP):
        return True
    if cell.kind in CHANGED:
        return False
    if fault.endswith("early") and cell.expect and is_reader(cell.kind):
        return True  # it was not read at all
    if fault.endswith(("early", "invited")) or fault == "reset-head" or (fault == "reset-during" and rule == "kept"):
        return None
    return False


def possible_attempts(cell):
    """The numbers of attempts that may be made."""
    possible = set()
    for number, fault in enumerate(cell.faults, 1):
        too_many = number >= MAX_ATTEMPTS or (fault in ("504", "silence") and number >= 2)
        body = may_body(cell, fault)
        if too_many or not may_method(cell, fault) or body is False:
            return possible | {number}
        if body is None:
            possible.add(number)
    return possible | {len(cell.faults) + 1}


def body_of(cell, boundary):
    """The bytes that have to arrive."""
    data = CONTENT[cell.offset : cell.size]
    if cell.kind == "none":
        return b""
    if not cell.kind.startswith(("mime", "form")):
        return data
    name = b'Content-Disposition: form-data; name="%b"'
    parts = [name % b"field" + b"\r\n\r\nvalue"]
    if "file" in cell.kind or "stream" in cell.kind:
        name += b'; filename="name.bin"\r\nContent-Type: application/octet-stream'
    parts.append(name % b"part" + b"\r\n\r\n" + data)
    delimiter = b"--" + boundary.encode()
    return b"".join(delimiter + b"\r\n" + part + b"\r\n" for part in parts) + delimiter + b"--\r\n"


# ---- running the cells ----


@pytest.fixture
def uploads():
    with Uploads() as server:
        yield server


def line_of(cell, number, server, file):
    """The cell in the words of tests/victims/bodies.c."""
    faults = [fault for fault in cell.faults if fault != "reset-head"]
    port = server.port_that_resets() if len(faults) < len(cell.faults) else server.port
    server.on(f"/{number}", *faults)
    words = {
        "kind": cell.kind, "method": cell.method, "size": cell.size, "known": int(cell.known),
        "offset": cell.offset, "chunk": cell.chunk, "upload_buffer": cell.upload_buffer, "file": file,
        "url": server.url(f"/{number}", port), "low_speed": int("silence" in cell.faults),
    }  # fmt: skip
    if not cell.kind.startswith("read-aborts"):
        words |= {name: server.url(f"/{number}/{name}", port) for name in ("after", "again")}
    headers = ["Expect:100-continue" if cell.expect else "Expect:"]
    headers += ["Idempotency-Key:k-1"] * cell.key + ['If-Match:"v1"'] * cell.condition
    if not cell.known and cell.method == "POST" and is_reader(cell.kind):
        headers.append("Transfer-Encoding:chunked")
    return " ".join([f"{name}={value}" for name, value in words.items()] + [f"header={text}" for text in headers])


def start_cells(curtsy, server, cells, first=0, more="", **options):
    """A process that goes through the cells, which are numbered from `first` on.  more: words for each of
    them, in which {url} stands for its own."""
    lines = []
    for number, cell in enumerate(cells, first):
        line = line_of(cell, number, server, curtsy.folder / f"file-{first}")
        lines.append(f"{line} {more.format(url=server.url(f'/{number}'))}\n")
    script = curtsy.folder / f"script-{first}"
    script.write_text("".join(lines))
    return curtsy.start([curtsy.victim("bodies"), script], **options)


def results_of(process):
    result = process.wait()
    assert (result.rc, result.errors) == (0, "")
    return [json.loads(line) for line in result.stdout.splitlines()]


def run_cells(curtsy, server, cells, possible=None, **options):
    """All of them, looked at one by one; what is wrong anywhere is told together."""
    results = results_of(start_cells(curtsy, server, cells, **options))
    assert len(results) == len(cells)
    server.settle()
    complain(faults_of(cell, number, results[number], server, possible) for number, cell in enumerate(cells))


def complain(found):
    faults = [fault for faults in found for fault in faults]
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:40])


def without_continue(headers):
    """A block of 100 Continue may come once before the answer, as libcurl shows it."""
    return headers.removeprefix("HTTP/1.1 100 Continue\r\n\r\n")


def faults_of(cell, number, result, server, possible=None):
    """What is wrong with this cell, in words."""
    attempts = server.attempts(f"/{number}")
    found = [*faults_of_attempts(cell, attempts), *faults_of_outcome(cell, attempts, result["first"], possible)]
    if "after" in result:
        found += faults_of_aftermath(cell, server, number, result)
    return [f"{number}: {cell}: {fault}" for fault in found]


def faults_of_attempts(cell, attempts):
    """Each is the request as it was meant, or broken off."""
    heads = {attempt.head.replace(attempt.boundary.encode() or b"\0", b"BOUNDARY") for attempt in attempts}
    if len(heads) > 1:
        yield f"the heads differ: {heads}"
    for attempt in attempts:
        right = body_of(cell, attempt.boundary)
        if attempt.complete and attempt.body != right:
            yield f"attempt {attempt.number} had {len(attempt.body)} bytes that differ from the {len(right)} right ones"
        elif not attempt.complete and not right.startswith(bytes(attempt.body)):
            yield f"attempt {attempt.number} broke off, and its {len(attempt.body)} bytes were wrong already"
        elif not attempt.complete and not attempt.fault.endswith(("early", "invited", "during")):
            yield f"attempt {attempt.number} came only in part: {len(attempt.body)} bytes of {len(right)}"


def faults_of_outcome(cell, attempts, first, possible):
    resets = cell.faults.count("reset-head")
    made = len(attempts) + resets
    possible = possible or possible_attempts(cell)
    if made not in possible:
        yield f"{made} attempts instead of {sorted(possible)}; it came to {first['code']} {first['status']}"
        return
    fault = (*cell.faults, "200")[made - 1] if made <= len(cell.faults) else "200"
    headers, body = without_continue(first["headers"]), first["body"]
    if is_status(fault):
        status, head, right = answer(made - resets, fault)
        seen = (first["code"], first["status"], headers, body)
        if seen != (0, status, head.decode(), right.decode()):
            yield f"the program was given {seen} instead of the answer {status} to attempt {made - resets}"
    elif first["code"] not in ((28,) if fault == "silence" else (52, 55, 56)):
        yield f"CURLcode {first['code']} after {fault}"
    elif headers or body:
        yield f"something of a response reached the program: {headers + body!r}"


def faults_of_aftermath(cell, server, number, result):
    """A GET on the same handle, and the same body once more."""
    _, head, right = answer(1, "200")
    for name in ("after", "again"):
        seen = result[name]
        if (seen["code"], seen["status"]) != (0, 200) or seen["body"] != right.decode():
            yield f"{name}: {seen}"
        elif without_continue(seen["headers"]) != head.decode():
            yield f"{name}: the headers {seen['headers']!r}"
    (after,), (again,) = server.attempts(f"/{number}/after"), server.attempts(f"/{number}/again")
    if (after.method, bytes(after.body), after.header("Idempotency-Key")) != ("GET", b"", None):
        yield f"after: {after.head!r}"
    if (again.method, bytes(again.body)) != (cell.method, body_of(cell, again.boundary)) or not again.complete:
        yield f"again: {again.method} with {len(again.body)} bytes"


# ---- the table ----

REFUSALS = [("429",), ("503",), ("502",), ("504",), ("504", "504"), ("429", "503"), ("429", "503", "429")]
BROKEN = [("429-early",), ("reset-head",), ("reset-during",), ("reset-after",), ("reset-during", "429")]
BROKEN += [("429-early", "reset-during"), ("reset-after", "504")]


def outcomes_of(kind):
    if kind == "none":
        return [*REFUSALS, ("reset-head",), ("reset-after",)]
    return REFUSALS if kind in CHANGED else REFUSALS + BROKEN


def methods_of(kind):
    """(method, key, condition)"""
    methods = [("PUT", False, False), ("PUT", False, True), ("POST", True, False), ("POST", False, False)]
    methods += [("PATCH", True, False), ("PATCH", False, False), ("DELETE", False, False)]
    if kind.startswith("resume"):
        return methods[:2]
    return methods if kind in ("none", "fields", "read") else methods[:5]


def cells_of(kind):
    offset = 1001 if kind.startswith("resume") else 0
    cells = [
        Cell(kind, method, faults, key=key, condition=condition, offset=offset)
        for (method, key, condition), faults in itertools.product(methods_of(kind), outcomes_of(kind))
    ]
    if kind == "none":
        return cells
    ways = [("PUT", False)] if kind.startswith("resume") else [("PUT", False), ("POST", True)]
    for (method, key), faults in itertools.product(ways, outcomes_of(kind)):
        cell = Cell(kind, method, faults, MIDDLE, key=key, offset=offset)
        cells += [cell, dataclasses.replace(cell, upload_buffer=16 << 10, chunk=7001)]
        if KINDS[kind] == "kept" or kind in ("read-seek", "read-ioctl", "mime-seek"):
            cells += [dataclasses.replace(cell, size=LARGE), dataclasses.replace(cell, size=LARGE, chunk=7001)]
        if kind in UNSIZED:
            unsized = dataclasses.replace(cell, known=False)
            cells += [unsized, dataclasses.replace(unsized, size=SMALL, chunk=99)]
        if kind in ("file", "file-fread", "file-memory", "pipe"):
            cells.append(dataclasses.replace(cell, offset=8191))
        if kind in ("read", "read-seek"):
            cells.append(dataclasses.replace(cell, size=LARGE, upload_buffer=1 << 20))
    expected = [*outcomes_of(kind), *[("429-invited",), ("503-invited", "429")] * (kind not in CHANGED)]
    return cells + [
        Cell(kind, method, faults, size, key=key, expect=True, offset=offset)
        for (method, key), faults, size in itertools.product(ways, expected, (SMALL, LARGE))
        if faults[0] in ("429", "429-early", "429-invited", "503-invited", "reset-during")
    ]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("resume") and kind not in CHANGED])
def test_a_body_of_nothing_or_nearly_so(curtsy, uploads, kind):
    no_length = ("none", "file-memory", "form-contents", "form-pointer", "form-buffer-file")  # is nothing to these
    sizes = [1, 2] if kind in no_length else [0, 1, 2]
    known = [True, False] if kind in UNSIZED else [True]
    faults = [("429",), ("reset-after",), ("503", "reset-after", "429")]
    run_cells(
        curtsy,
        uploads,
        [Cell(kind, "PUT", fault, size, told) for fault in faults for size in sizes for told in known],
        config=CONFIG,
    )


@pytest.mark.slow(5)
@pytest.mark.parametrize("kind", KINDS)
def test_a_body_is_sent_again_whole_or_not_at_all(curtsy, uploads, kind):
    run_cells(curtsy, uploads, cells_of(kind), config=CONFIG)


@pytest.mark.slow(5)
@pytest.mark.parametrize("kind", KINDS)
def test_the_table_is_right_about_libcurl(curtsy, uploads, kind):
    """Without Curtsy there is one attempt, and it is as the table has it."""
    cells = [cell for cell in cells_of(kind) if len(cell.faults) == 1]
    run_cells(curtsy, uploads, cells, possible={1}, how="bare")


# ---- what takes its time ----

PATIENT = [("PUT", False), ("POST", True), ("POST", False)]


@pytest.mark.slow(3)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in CHANGED])
def test_a_server_that_falls_silent(curtsy, uploads, kind):
    """Until a low-speed timeout of the program's: a write may have taken effect, and is tried once more."""
    cells = [Cell(kind, method, ("silence",), key=key) for method, key in PATIENT]
    cells += [Cell(kind, "PUT", ("silence", "silence"))]
    if kind.startswith("resume"):
        cells = [Cell(kind, "PUT", ("silence",), offset=1001)]
    run_side_by_side(curtsy, uploads, cells)


@pytest.mark.slow(2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_says_when_to_come_back(curtsy, uploads, kind):
    cells = [Cell(kind, method, ("429+1",), key=key) for method, key in PATIENT]
    if kind.startswith("resume"):
        cells = [Cell(kind, "PUT", ("429+1",), offset=1001)]
    run_side_by_side(curtsy, uploads, cells)
    for number in range(len(cells)):
        attempts = uploads.attempts(f"/{number}")
        for earlier, later in itertools.pairwise(attempts):
            assert later.time_ns - earlier.answered_ns >= 1_000_000_000 - EARLY * 1e9


def run_side_by_side(curtsy, server, cells):
    curtsy.configure(CONFIG)
    running = [start_cells(curtsy, server, [cell], number) for number, cell in enumerate(cells)]
    results = [results_of(process)[0] for process in running]
    server.settle()
    complain(faults_of(cell, number, results[number], server) for number, cell in enumerate(cells))


# ---- bounds and ends ----

WHOLE = 1 << 20  # the replay_buffer by default


@pytest.mark.parametrize("kind", ["read", "read-cantseek", "pipe"])
def test_the_buffer_holds_what_it_is_said_to_hold(curtsy, uploads, kind):
    """To the byte, by default and by configuration; with a size of nothing, nothing is kept."""
    for keep, size, attempts in [
        (None, WHOLE, 2), (None, WHOLE + 1, 1), ("64KiB", 65536, 2), ("64KiB", 65537, 1), ("0KiB", 1, 1),
    ]:  # fmt: skip
        lines = [line for line in CONFIG.splitlines() if not line.startswith("replay_buffer")]
        config = "\n".join([*lines, f"replay_buffer = {keep}" if keep else "", ""])
        cells = [Cell(kind, "PUT", ("503",), size), Cell(kind, "POST", ("503",), size, known=False, key=True)]
        with Uploads() as server:
            run_cells(curtsy, server, cells, possible={attempts}, config=config)


def test_a_source_that_was_never_read_costs_nothing(curtsy, uploads):
    """Refused while it asked whether to go on: the program's callbacks are called for one transfer only."""
    kinds = ["read", "read-seek", "read-cantseek", "read-ioctl"]
    cells = [Cell(kind, "PUT", ("429-early", "503-early"), LARGE, expect=True) for kind in kinds]
    results = results_of(start_cells(curtsy, uploads, cells, config=CONFIG))
    uploads.settle()
    complain(faults_of(cell, number, results[number], uploads) for number, cell in enumerate(cells))
    assert [(result["first"]["given"], result["first"]["seeks"]) for result in results] == [(LARGE, 0)] * 4


def test_what_is_kept_is_not_asked_for_again(curtsy, uploads):
    """Callbacks see one transfer: each byte is taken from the reader once, and it is not told to rewind."""
    kinds = ["read", "read-seek", "read-cantseek", "read-ioctl", "read-pauses"]
    faults = [("429",), ("reset-during", "429"), ("reset-during", "reset-during")]
    cells = [Cell(kind, "PUT", fault, MIDDLE, chunk=7001) for kind in kinds for fault in faults]
    results = results_of(start_cells(curtsy, uploads, cells, config=CONFIG))
    uploads.settle()
    complain(faults_of(cell, number, results[number], uploads) for number, cell in enumerate(cells))
    assert {(result["first"]["given"], result["first"]["seeks"]) for result in results} == {(MIDDLE, 0)}


@pytest.mark.parametrize("size", [MIDDLE, LARGE])
@pytest.mark.parametrize("known", [True, False])
def test_a_reader_that_ends_the_transfer(curtsy, uploads, size, known):
    """The program's own decision, in the first attempt as in a later one."""
    cells = [
        Cell("read-aborts", "PUT", (), size, known=known),
        Cell("read-aborts", "POST", (), size, known=known, key=True),
        Cell("read-aborts-again", "PUT", ("429",), size, known=known),
    ]
    first, second, again = results_of(start_cells(curtsy, uploads, cells, config=CONFIG))
    uploads.settle()
    for number, result in enumerate((first, second)):
        (attempt,) = uploads.attempts(f"/{number}")
        assert (result["first"]["code"], result["first"]["body"], result["first"]["headers"]) == (42, "", "")
        assert not attempt.complete and CONTENT[:size].startswith(bytes(attempt.body))
    # Where it has to be asked again, it is before the refusal is given up.
    attempts = uploads.attempts("/2")
    assert [attempt.complete for attempt in attempts] == [True, True] if size <= KEEP else [True]
    assert {bytes(attempt.body) for attempt in attempts} == {CONTENT[:size]}
    assert (again["first"]["code"], "429" in str(again["first"])) == (0, size > KEEP)


def test_why_a_body_is_not_sent_again_is_told(curtsy, uploads):
    env = {"CURTSY_LOG": "info", "CURTSY_LOG_FILE": os.fspath(curtsy.folder / "log")}
    results_of(start_cells(curtsy, uploads, [Cell("read", "PUT", ("503",), LARGE)], config=CONFIG, env=env))
    assert "its body cannot be sent again" in (curtsy.folder / "log").read_text()


@pytest.mark.parametrize("kind", ["fields", "mime-data", "read", "read-seek", "read-ioctl", "file", "pipe"])
def test_a_server_that_does_not_know_expect(curtsy, uploads, kind):
    """After 417 libcurl begins again by itself, without that field."""
    unknown = [("417-early", *faults) for faults in ((), ("429",), ("503", "502"))]
    cells = [Cell(kind, "PUT", faults, MIDDLE, expect=True) for faults in unknown]
    results = results_of(start_cells(curtsy, uploads, cells, config=CONFIG))
    uploads.settle()
    for number, (cell, result) in enumerate(zip(cells, results)):
        refused, *attempts = uploads.attempts(f"/{number}")
        assert len(refused.body) == 0
        complain([faults_of_attempts(cell, [attempt]) for attempt in attempts])
        assert [attempt.complete for attempt in attempts] == [True] * len(cell.faults)
        assert (result["first"]["code"], result["first"]["status"]) == (0, 200)


@pytest.mark.slow(6)
@pytest.mark.parametrize("words", ["", "-T f", "-X PUT -F a=@f"])
def test_a_refusal_that_never_ends(curtsy, up, words):
    """Nobody waits for all of it: the connection is given up, and the repeat is made."""
    (curtsy.folder / "f").write_bytes(CONTENT[:MIDDLE])
    up.on("/data", Answer(429, body=b"x" * 100_000, pieces=10_000, piece_delay=0.05), b"fine\n")
    result = curtsy.curl(*words.split(), up.url("/data"), config=CONFIG)
    assert result.all == (0, b"fine\n", b"")
    assert len(up.arrivals()) == 2 and len({arrival.body_length for arrival in up.arrivals()}) == 1


KEPT_TOO_LONG = [
    kind for kind in KINDS if KINDS[kind] != "never" and kind != "none" and not kind.startswith("resume")
]  # libcurl itself takes the part that is skipped off the size twice


@pytest.mark.parametrize("kind", KEPT_TOO_LONG)
def test_a_connection_that_was_kept_too_long(curtsy, uploads, kind):
    """libcurl sends again by itself what is reset on a connection that it had used before, within one
    attempt, as far as it can rewind (else it ends with an error of its own); after that a refusal, and then
    the repeat.  Each is the right body."""
    faults = [("reset-after", "429"), ("reset-during", "429"), ("reset-during", "503")]
    sizes = [SMALL, MIDDLE, LARGE] if kind in ("read-seek", "read-ioctl") else [SMALL, MIDDLE]
    told = [True, False] if kind in UNSIZED else [True]
    cells = [Cell(kind, "PUT", *cell, chunk=7001) for cell in itertools.product(faults, sizes, told)]
    results = results_of(start_cells(curtsy, uploads, cells, more="before={url}/before", config=CONFIG))
    uploads.settle()
    complain(faults_after_reuse(cell, number, results[number], uploads) for number, cell in enumerate(cells))


def faults_after_reuse(cell, number, result, server):
    attempts = server.attempts(f"/{number}")
    found = [*faults_of_attempts(cell, attempts), *faults_of_aftermath(cell, server, number, result)]
    seen = result["first"]["code"], result["first"]["status"]
    if seen != (0, 200) and not (KINDS[cell.kind] == "kept" and seen == (65, 0) and len(attempts) == 1):
        found.append(f"it came to {seen} after {len(attempts)} attempts")
    return [f"{number}: {cell}: {fault}" for fault in found]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in CHANGED])
def test_the_next_body_of_the_handle_is_refused_too(curtsy, uploads, kind):
    """What was kept of one request is not given to the next."""
    offset = 1001 if kind.startswith("resume") else 0
    firsts = [(), ("503",), ("reset-during",), ("429-early", "reset-during")]
    cells = [Cell(kind, "PUT", faults, size, offset=offset) for faults in firsts for size in (SMALL, MIDDLE)]
    for number in range(len(cells)):
        uploads.on(f"/{number}/again", "429", "reset-during")
    results = results_of(start_cells(curtsy, uploads, cells, config=CONFIG))
    uploads.settle()
    refused = Cell(kind, "PUT", ("429", "reset-during"), offset=offset)
    for number, (cell, result) in enumerate(zip(cells, results)):
        attempts = uploads.attempts(f"/{number}/again")
        complain([faults_of_attempts(cell, uploads.attempts(f"/{number}")), faults_of_attempts(cell, attempts)])
        assert {len(attempts)} == possible_attempts(refused)
        assert (result["again"]["code"], result["again"]["status"]) == (0, 200 if len(attempts) == 3 else 429)


COPIED = ["fields", "copyfields", "mime-data", "mime-seek", "form-contents", "read", "read-seek", "read-ioctl", "file"]


@pytest.mark.parametrize("kind", COPIED)
def test_a_copy_made_meanwhile(curtsy, uploads, kind):
    """It has the program's callbacks and data, and none of ours, and outlives the handle."""
    cells = [Cell(kind, "PUT", faults, size) for faults in (("429",), ("503", "429")) for size in (SMALL, LARGE)]
    results = results_of(start_cells(curtsy, uploads, cells, more="copy={url}/copy", config=CONFIG))
    uploads.settle()
    complain(faults_of(cell, number, results[number], uploads) for number, cell in enumerate(cells))
    for number, (cell, result) in enumerate(zip(cells, results)):
        (attempt,) = uploads.attempts(f"/{number}/copy")
        assert bytes(attempt.body) == body_of(cell, attempt.boundary) and attempt.complete
        assert (result["copy"]["code"], result["copy"]["body"]) == (0, answer(1, "200")[2].decode())


# ---- keys that are made for the program ----


@pytest.mark.parametrize("kind", ["fields", "mime-data", "mime-read", "read", "read-seek", "file", "pipe"])
def test_a_generated_key_makes_a_write_repeatable(curtsy, uploads, kind):
    """The same key for all attempts of a request, another one for the next; the program's own key, and the
    methods that need none, are let alone."""
    config = CONFIG + "idempotency_key = generate\n"
    faults = [("503",), ("429", "reset-after"), ("504", "504")]
    written = [Cell(kind, method, fault, key=True) for method in ("POST", "PATCH") for fault in faults]
    cells = [dataclasses.replace(cell, key=False) for cell in written]
    results = results_of(start_cells(curtsy, uploads, cells, config=config))
    uploads.settle()
    possible = [possible_attempts(cell) for cell in written]
    complain(faults_of(cell, n, results[n], uploads, possible[n]) for n, cell in enumerate(cells))
    keys_of = lambda path: {attempt.header("Idempotency-Key") for attempt in uploads.attempts(path)}
    keys = [keys_of(f"/{number}{rest}") for number in range(len(cells)) for rest in ("", "/again")]
    assert all(len(key) == 1 and None not in key for key in keys)
    assert len(set.union(*keys)) == len(keys)

    own = [Cell(kind, "POST", ("503",), key=True), Cell(kind, "PUT", ("503",))]
    results = results_of(start_cells(curtsy, uploads, own, 100, config=config))
    assert (keys_of("/100"), keys_of("/101")) == ({"k-1"}, {None})


# ---- HTTP/2 ----


def send_over_http2(curtsy, uploads, cell, server):
    """What came of it, and whether each body that came whole was right."""
    words = line_of(cell, 0, uploads, curtsy.folder / "file").split(" ")
    words = [word for word in words if not word.startswith(("url=", "after=", "again=", "header="))]
    script = curtsy.folder / "script"
    script.write_text(" ".join([*words, "http2=1", f"url={server.url('/0')}"]) + "\n")
    first = results_of(curtsy.start([curtsy.victim("bodies"), script], config=CONFIG))[0]["first"]
    has_boundary = cell.kind.startswith(("mime", "form"))
    boundaries = [body.split(b"\r\n")[0][2:].decode() if has_boundary else "" for body in server.bodies]
    right = [body == body_of(cell, boundary) for body, boundary in zip(server.bodies, boundaries)]
    return (first["code"], first["status"], first["body"]), right


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "none" and kind not in CHANGED])
def test_over_http2(curtsy, uploads, kind):
    """No chunks, no Expect, and libcurl ends a broken stream in other ways; the rules are the same."""
    for size in (SMALL, LARGE):
        cell = Cell(kind, "PUT", ("503",), size, offset=1001 if kind.startswith("resume") else 0)
        with Http2Uploads(Answer(503, body=b"no"), Answer(200, body=b"yes")) as server:
            outcome, right = send_over_http2(curtsy, uploads, cell, server)
        if possible_attempts(cell) == {2}:
            assert outcome == (0, 200, "yes") and right == [True, True]
        else:
            assert outcome == (0, 503, "no") and right == [True]


@pytest.mark.parametrize("kind", ["fields", "mime-data", "mime-seek", "form-file", "read", "read-seek", "file", "pipe"])
def test_over_http2_refused_before_the_body_came(curtsy, uploads, kind):
    cell = Cell(kind, "PUT", ("503",), MIDDLE)
    with Http2Uploads(Answer(429, body=b"no"), Answer(200, body=b"yes"), early=1) as server:
        outcome, right = send_over_http2(curtsy, uploads, cell, server)
    assert outcome == (0, 200, "yes") and right == [True]
