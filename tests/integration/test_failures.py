# SPDX-License-Identifier: MIT
"""What a failure below HTTP means for a repeat: every way in which a connection fails, made for real, times
the requests that may or may not be sent twice.

A row of the table is a fault (tests/upstream/faults.py) and what is to come of it, by the rules and not by the
code: of which kind it is for `retry_errors`, whether the server may have seen the request, how often it is
tried at most.  tests/victims/failures.c makes the requests and tells what libcurl says.  What comes after the
last attempt is compared with what the same program gets without Curtsy.
"""

import dataclasses
import itertools
import json
import pathlib
import re
import subprocess
import uuid
from contextlib import ExitStack

import pytest

from faults import Closed, Faults, Full
from harness import not_early
from upstream import Answer

MAX_ATTEMPTS = 3
NOWHERE = "x" * 64 + ".invalid"  # a label too long for DNS: no resolver is asked
CONFIG = f"""[default]
base_delay = 1ms
max_attempts = {MAX_ATTEMPTS}
retry_reserve = 100000
[127.0.0.1]
adaptive = off
[127.0.0.1/unsent]
retry_unsent = yes
[*.invalid]
adaptive = off
[*.invalid/unsent]
retry_unsent = yes
"""
VICTIM_SOURCE = pathlib.Path(__file__).parent.parent / "victims" / "failures.c"


# ---- the requests ----


@dataclasses.dataclass(frozen=True)
class Kind:
    method: str
    words: str = ""
    path: str = "/data"

    @property
    def is_write(self):
        return self.method != "GET"

    @property
    def is_conditional(self):
        return "If-Match" in self.words

    @property
    def is_repeatable(self):
        return self.method != "POST" or "Idempotency-Key" in self.words


KINDS = {
    "GET": Kind("GET"),
    "PUT": Kind("PUT"),
    "POST, key": Kind("POST", "header=Idempotency-Key:k"),
    "POST": Kind("POST"),
    "PUT, condition": Kind("PUT", 'header=If-Match:"v1"'),
    "POST, unsent": Kind("POST", path="/unsent"),
}


# ---- the faults ----


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    kind: str | None  # of retry_errors; None: never tried again
    fault: str = ""
    sent: bool = True  # may the server have seen the request?
    most: int = MAX_ATTEMPTS
    way: str = "plain"  # plain, tls, h2, h2c, h2 tls, proxy, tunnel
    words: str = ""
    writes_only: bool = False
    sent_or_not: bool = False  # it may come before libcurl has begun with the request, or after
    by_libcurl: int = 1  # how often libcurl itself sends a request that always fails
    libcurl: str = "openssl gnutls"

    def attempts(self, kind):
        """How many are made of a request that always fails."""
        if self.kind is None:
            return 1
        if self.sent and not kind.is_repeatable or self.sent and kind.is_conditional:
            return 1
        if not kind.is_repeatable and kind.path != "/unsent":
            return 1
        if self.kind == "timeout" and self.sent and kind.is_write:
            return 2
        return self.most

    @property
    def is_tls(self):
        return "tls" in self.way

    @property
    def is_http2(self):
        return self.way.startswith("h2")


def of(way, **same):
    return lambda name, kind, fault=None, **more: Row(name, kind, fault or name, way=way, **same, **more)


plain, tls, h2, h2c, h2_tls, tunnel = map(of, ("plain", "tls", "h2", "h2c", "h2 tls", "tunnel"))
QUICK = "connect_timeout_ms=400"

ROWS = [
    # Before there is a connection.
    Row("nobody listens", "connect", sent=False, most=2),
    Row("a full queue", "timeout", sent=False, words=QUICK),
    Row("no such name", "resolve", sent=False, most=2),
    Row("a proxy of no such name", "resolve", sent=False, most=2, way="proxy"),
    Row("a proxy where nobody listens", "connect", sent=False, most=2, way="proxy"),
    # Without TLS.
    plain("hello-reset", "reset"),
    plain("hello-close", "reset"),
    plain("deaf", "reset"),
    plain("reset", "reset"),
    plain("close", "reset"),
    plain("half-reset", "reset", words="body=400000", writes_only=True),
    plain("no 100 Continue", "reset", "close", words="header=Expect:100-continue expect_ms=20", writes_only=True),
    plain("busy-reset", "reset"),  # nothing of it reached the program
    plain("head-reset", None),  # its lines did
    plain("head-close", None),  # which libcurl takes for a whole one
    plain("body-reset", None),
    plain("body-close", None),
    plain("line-nonsense", None),
    plain("line-status", None),
    plain("line-nul", None),
    plain("length", None),
    plain("chunk", None),
    # A proxy's word is not the origin's.
    *[tunnel(f"CONNECT {status}", None, str(status)) for status in (403, 407, 429, 502, 503, 504)],
    tunnel("CONNECT reset", "reset", "reset"),
    # TLS.
    tls("hello-reset", "connect", sent=False),
    tls("hello-close", None),
    tls("deaf", None),
    tls("hello-alert", None),
    tls("hello-garbage", None),
    tls("hello-silence", "timeout", sent=False, words=QUICK),
    tls("a certificate that nobody vouches for", None, "ok", words="verify=1"),
    tls("shaken-reset", "reset"),
    tls("shaken-eof", "reset", libcurl="openssl"),
    tls("shaken-eof", None, libcurl="gnutls"),
    tls("reset", "reset"),
    tls("close", "reset"),
    tls("eof", "reset", libcurl="openssl"),
    tls("eof", None, libcurl="gnutls"),
    tls("garbage", None),
    tls("half-reset", "reset", words="body=400000", writes_only=True),
    tls("busy-reset", "reset"),
    tls("head-reset", None),
    tls("body-reset", None),
    tls("body-eof", None),
    # HTTP/2.
    *[
        row
        for version in (h2, h2c, h2_tls)
        for row in (
            # REFUSED_STREAM.  After the answer to an upgrade it is no clean refusal to libcurl.
            version("rst-7", None, by_libcurl=1 if version is h2c else 6),
            version("rst-2", "stream"),  # INTERNAL_ERROR
            version("rst-8", "stream"),  # CANCEL
            version("rst-11", "stream"),  # ENHANCE_YOUR_CALM
            version("goaway", "stream"),
            # With GnuTLS it depends on who is first: such an end, or the error of a message to the server.
            version("goaway-ours", "reset", libcurl="openssl"),
            version("reset", "reset", libcurl="openssl"),
            version("close", "reset", libcurl="openssl"),
        )
    ],
    h2("hello-reset", "reset", sent_or_not=True),
    h2("deaf", "reset"),
    h2_tls("shaken-eof", "reset", libcurl="openssl"),
    h2_tls("eof", None, libcurl="gnutls"),
]
VERSIONS = {"h2": 5, "h2c": 3, "h2 tls": 4}  # CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE, _2_0, _2TLS


def name_of(row):
    return f"{row.way} {row.name}".replace(" ", "-")


# ---- running them ----

NUMBERS = itertools.count()  # no URL is used twice: what was given up is not tried so often again


class Cell:
    """A request that meets a fault: its line for the victim, and how often it was tried."""

    def __init__(self, row, kind, stack, certificate, faults):
        self.row, self.kind = row, kind
        words = f"method={kind.method} body=10 {kind.words} {row.words}"
        if row.is_tls and "verify" not in words:
            words += f" ca={certificate[1]}"  # so that no larger file is read
        if row.is_http2:
            words += f" http={VERSIONS[row.way]}"
        self.server = None
        if row.fault:
            tls = certificate if row.is_tls else None
            self.server = stack.enter_context(Faults(*faults, tls=tls, http2=row.is_http2))
        dead = stack.enter_context({"nobody listens": Closed, "a full queue": Full}.get(row.name, ExitStack)())
        if hasattr(dead, "port"):
            words += f" dead={dead.port} deads={1 if faults[-1] == 'ok' else 1000}"
        self.line = f"{words} {self._where(stack)}"

    def _where(self, stack):
        url, path = "http://127.0.0.1:{}", f"{self.kind.path}?{next(NUMBERS)}"
        if self.row.way == "tunnel":
            return f"url=http://127.0.0.1:9{path} proxy=http://127.0.0.1:{self.server.port} tunnel=1"
        if self.server:
            return f"url={self.server.url(path)}"
        if self.row.way == "proxy":
            return f"url=http://127.0.0.1:9{path} proxy=" + (
                f"http://{NOWHERE}:1" if "name" in self.row.name else url.format(stack.enter_context(Closed()).port)
            )
        if "name" in self.row.name:
            return f"url=http://{NOWHERE}{path}"
        return f"url={url.format(stack.enter_context(Faults('ok')).port)}{path}"

    def tried(self, seen):
        if not self.server:
            return seen["unresolved"] or seen["sockets"]
        by_request = self.row.way != "tunnel" and not self.row.fault.startswith(("hello", "deaf", "shaken")) and "verify" not in self.row.words
        return len(self.server.heads) if by_request else self.server.opened


def start_cells(curtsy, cells, program=None, **options):
    script = "".join(cell.line + "\n" for cell in cells)
    return curtsy.start([program or curtsy.victim("failures")], stdin=script.encode(), **options)


def start_side_by_side(curtsy, cells, program=None, **options):
    """Of what takes its time, one a process."""
    groups = [[cell] for cell in cells] if cells and QUICK in cells[0].row.words else [cells]
    return [start_cells(curtsy, group, program, **options) for group in groups]


def results_of(process):
    result = process.wait()
    assert (result.rc, result.errors) == (0, "")
    return [json.loads(line) for line in result.stdout.splitlines()]


def word_of(seen):
    """What the program was told, less what differs from run to run: ports, whether a reset is noticed in sending
    or in receiving, and by which of its timers libcurl gives up a connection."""
    message = re.sub(r"port \d+|127\.0\.0\.1:\d+|after \d+ ms|stream \d+|in \d+ ms", "N", seen["message"])
    code = seen["code"]
    if re.match(r"(Send|Recv) failure: (Connection reset by peer|Broken pipe)", message):
        code, message = 56, "reset"
    if code == 28 and re.match("Connection timeout|Failed to connect to .* Timeout was reached", message):
        message = "no connection in time"
    # A connection that was upgraded before is not upgraded again.
    status = 0 if seen["status"] == 101 else seen["status"]
    return code, status, message, seen["headers"], seen["received"]


def faults_of_failing(cell, seen, bare):
    expected = cell.row.attempts(cell.kind)
    tried = cell.tried(seen)
    if tried != expected * cell.row.by_libcurl:
        yield f"tried {tried} times instead of {expected * cell.row.by_libcurl}; it came to {word_of(seen)}"
    if word_of(seen) != word_of(bare):
        yield f"the program was told {word_of(seen)} instead of {word_of(bare)}"
    if cell.server and not cell.row.fault.startswith(("hello", "deaf", "shaken", "half")) and tried != cell.server.whole:
        yield f"only {cell.server.whole} of {tried} requests came whole" * ("verify" not in cell.row.words)


def faults_of_mended(cell, seen):
    """The fault comes once."""
    repeats = cell.row.attempts(cell.kind) > 1 or cell.row.by_libcurl > 1
    tried = cell.tried(seen)
    if tried != 1 + repeats and not (repeats and not cell.server and tried == 2):
        yield f"tried {tried} times instead of {1 + repeats}; it came to {word_of(seen)}"
    blocks = seen["headers"].count("HTTP/") - seen["headers"].count(" 101 ") - (cell.row.way == "tunnel")
    if repeats and (seen["code"], seen["status"], seen["body"], blocks) != (0, 200, "done\n", 1):
        yield f"it came to {word_of(seen)}"


def complain(found):
    faults = [fault for fault in found if fault.rpartition(": ")[2]]
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults)


def can_be_mended(row):
    return row.fault not in ("", "ok") or row.name == "nobody listens"


def check_row(curtsy, certificate, row, program=None):
    kinds = {
        name: kind
        for name, kind in KINDS.items()
        if (kind.is_write or not row.writes_only) and not (row.sent_or_not and (kind.is_conditional or kind.path == "/unsent"))
    }
    with ExitStack() as stack:
        make = lambda *faults: [Cell(row, kind, stack, certificate, faults) for kind in kinds.values()]
        failing, bare = make(row.fault), make(row.fault)
        mended = make(row.fault, "ok") if can_be_mended(row) else []
        curtsy.configure(CONFIG)
        runs = [start_side_by_side(curtsy, cells, program) for cells in (failing, mended)]
        runs.append(start_side_by_side(curtsy, bare, program, how="bare"))
        results = [[result["first"] for run in group for result in results_of(run)] for group in runs]
        found = []
        for name, cell, seen, alone in zip(kinds, failing, results[0], results[2], strict=True):
            found += [f"{name}: always: {fault}" for fault in faults_of_failing(cell, seen, alone)]
        for name, cell, seen in zip(kinds, mended, results[1]):
            found += [f"{name}: once: {fault}" for fault in faults_of_mended(cell, seen)]
        complain(found)


@pytest.mark.parametrize("row", [row for row in ROWS if "openssl" in row.libcurl], ids=name_of)
def test_what_a_failure_means(curtsy, certificate, row):
    check_row(curtsy, certificate, row)


@pytest.fixture(scope="session")
def gnutls_program(tmp_path_factory):
    """The same program with the other libcurl."""
    program = tmp_path_factory.mktemp("gnutls") / "failures"
    command = ["cc", "-std=gnu11", "-O2", "-w", "-o", program, VICTIM_SOURCE, "-l:libcurl-gnutls.so.4"]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no libcurl with GnuTLS")
    return program


@pytest.mark.parametrize("row", [row for row in ROWS if "gnutls" in row.libcurl and row.is_tls], ids=name_of)
def test_what_a_failure_means_with_gnutls(curtsy, certificate, gnutls_program, row):
    check_row(curtsy, certificate, row, gnutls_program)


@pytest.mark.slow(6)
def test_a_server_that_falls_silent(curtsy, certificate):
    """The low speed limit is a timer of each attempt; a write is repeated once at most."""
    row = Row("silence", "timeout", "silence", words="low_speed=1")
    with ExitStack() as stack:
        cells = [Cell(row, kind, stack, certificate, ("silence",)) for kind in KINDS.values()]
        curtsy.configure(CONFIG)
        runs = [start_cells(curtsy, [cell]) for cell in cells]
        seen = [results_of(run)[0]["first"] for run in runs]
    assert [each["code"] for each in seen] == [28] * len(cells)
    assert [cell.server.whole for cell in cells] == [row.attempts(kind) for kind in KINDS.values()] == [3, 2, 2, 1, 1, 1]


@pytest.mark.parametrize("faults", [("silence",), ("reset", "silence"), ("503", "close", "silence")], ids="+".join)
def test_the_programs_own_timeout_is_for_all_attempts(curtsy, faults):
    """When it has run out there is nothing left for another one, whatever became of those before."""
    with Faults(*faults) as server:
        line = f"method=GET timeout_ms=1000 url={server.url('/')}\n"
        run = curtsy.start([curtsy.victim("failures")], stdin=line.encode(), config=CONFIG)
        seen = results_of(run)[0]["first"]
    assert (seen["code"], server.whole) == (28, len(faults))
    assert seen["headers"] == ""


# ---- retry_errors ----

ERRORS = ["resolve", "connect", "timeout", "reset", "stream"]


@pytest.mark.parametrize("off", [*ERRORS, "none"])
def test_retry_errors_without_one_of_them(curtsy, certificate, off):
    """Exactly the rows of that kind are not tried again any more."""
    left = [kind for kind in ERRORS if kind != off]
    words = "none" if off == "none" else ", ".join(left)
    curtsy.configure(CONFIG.replace("adaptive = off\n", f"adaptive = off\nretry_errors = {words}\n"))
    rows = [row for row in ROWS if "openssl" in row.libcurl and not row.writes_only]
    with ExitStack() as stack:
        cells = [Cell(row, KINDS["GET"], stack, certificate, (row.fault,)) for row in rows]
        results = [result["first"] for result in results_of(start_cells(curtsy, cells))]
        found = []
        for row, cell, seen in zip(rows, cells, results, strict=True):
            is_on = off not in ("none", row.kind)
            expected = row.by_libcurl * (row.attempts(KINDS["GET"]) if is_on else 1)
            if cell.tried(seen) != expected:
                found.append(f"{name_of(row)}: tried {cell.tried(seen)} times instead of {expected}")
    complain(found)


# ---- one failure after another ----


def run_lines(curtsy, *lines, **options):
    run = curtsy.start([curtsy.victim("failures")], stdin="".join(f"{line}\n" for line in lines).encode(), **options)
    return results_of(run)


@pytest.mark.xfail(strict=True, reason="libcurl 7.88 keeps CURLINFO_OS_ERRNO from one perform to the next")
@pytest.mark.parametrize("where", ["one transfer", "two transfers"])
def test_an_error_is_judged_by_itself(curtsy, certificate, where):
    """An orderly end in the handshake is none of the errors that are tried again, whatever went before."""
    with Faults("reset", "ok") as first, Faults("hello-reset", "hello-close", tls=certificate) as second:
        lines = [f"method=GET keep=1 url={server.url('/')} ca={certificate[1]}" for server in (first, second)]
        seen = run_lines(curtsy, *(lines if where == "two transfers" else lines[1:]), config=CONFIG)
        assert seen[-1]["first"]["code"] == 35
        assert second.opened == 2


KEPT = {
    "GET": "method=GET",
    "PUT": "method=PUT body=10",
    "POST": "method=POST body=10",
    "PUT, condition": 'method=PUT body=10 header=If-Match:"v1"',
}


@pytest.mark.parametrize("request_", KEPT)
def test_a_connection_that_was_closed_meanwhile(curtsy, request_):
    """libcurl sends again by itself, whatever it is, what fails on a connection that it had used before: as often
    as it does without Curtsy, and no more where a repeat is not safe."""
    whole = {}
    for how in ("bare", "preload"):
        with Faults("ok", "close", "ok") as server:
            lines = [f"{words} keep=1 url={server.url('/')}" for words in ("method=GET", KEPT[request_])]
            results = run_lines(curtsy, *lines, how=how, config=CONFIG)
            whole[how] = server.whole
            assert [result["first"]["status"] for result in results] == [200, 200]
    assert whole == {"bare": 3, "preload": 3}


@pytest.mark.parametrize("request_", KEPT)
def test_a_repeat_is_sent_once(curtsy, request_):
    """The first attempt leaves a connection that would do for the second one.  What fails on it libcurl would
    send again by itself, which nobody has decided on: so a write has a connection of its own."""
    with Faults("503", "close", "ok") as server:
        (seen,) = run_lines(curtsy, f"{KEPT[request_]} url={server.url('/')}", config=CONFIG)
        whole = {"GET": 3, "PUT": 3, "POST": 1, "PUT, condition": 2}[request_]
        assert server.whole == whole
        code = {"POST": (0, 503), "PUT, condition": (52, 0)}.get(request_, (0, 200))
        assert (seen["first"]["code"], seen["first"]["status"]) == code


def test_a_write_that_breaks_on_a_used_connection_and_on_new_ones(curtsy):
    """libcurl's own second one is part of the first attempt; after that it is one an attempt."""
    with Faults("ok", "close") as server:
        lines = [f"{words} keep=1 url={server.url('/')}" for words in ("method=GET", KEPT["PUT"])]
        results = run_lines(curtsy, *lines, config=CONFIG)
    assert results[1]["first"]["code"] == 52
    assert server.whole == 1 + 2 + (MAX_ATTEMPTS - 1)


# ---- keys that are made for the program ----

KEYED = CONFIG + "[127.0.0.1/keyed]\nidempotency_key = generate\nidempotency_header = X-Once\n"


def send_keyed(curtsy, up, words="", answers=(503, 503, b"fine"), **options):
    up.on("/keyed", *answers)
    line = f"method=POST body=10 header=X-Own:1 url={up.url('/keyed')} {words}"
    return run_lines(curtsy, line, f"method=GET keep=1 url={up.url('/keyed/other')}", **{"config": KEYED, **options})


def keys_of(up, path):
    assert not any(arrival.header("Idempotency-Key") for arrival in up.arrivals(path))
    return [arrival.all_headers("X-Once") for arrival in up.arrivals(path)]


def test_a_key_is_made_and_leaves_no_trace(curtsy, up):
    """By the name that the policy says; the program's list of headers is its own, and so is what comes after."""
    result, _ = send_keyed(curtsy, up)
    assert result["first"]["body"] == "fine"
    assert result["listed"] == ["X-Own:1"]
    first, second, third = keys_of(up, "/keyed")
    assert first == second == third and len(first) == 1
    assert uuid.UUID(first[0]).version == 4 and str(uuid.UUID(first[0])) == first[0]
    assert [arrival.header("X-Own") for arrival in up.arrivals("/keyed")] == ["1"] * 3
    assert keys_of(up, "/keyed/other") == [[]]


def test_a_copy_made_meanwhile_has_no_key_of_ours(curtsy, up):
    up.on("/plain", b"copied")
    result, _ = send_keyed(curtsy, up, f"copy={up.url('/plain')}")
    assert (result["first"]["body"], result["copy"]["body"]) == ("fine", "copied")
    assert keys_of(up, "/plain") == [[]]
    assert [arrival.header("X-Own") for arrival in up.arrivals("/plain")] == ["1"]


@pytest.mark.parametrize("status", [409, 422])
def test_what_a_server_makes_of_a_key_that_it_knows(curtsy, up, status):
    """Still at work on it, or another request of that key: that is for the program."""
    result, _ = send_keyed(curtsy, up, answers=(503, Answer(status, [("Retry-After", "1")], b"of the key"), b"fine"))
    seen = result["first"]
    assert (seen["status"], seen["body"], seen["headers"].count("HTTP/")) == (status, "of the key", 1)
    assert len(up.arrivals("/keyed")) == 2


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_no_key_is_made_where_nothing_is_to_be_changed(curtsy, up, mode):
    result, _ = send_keyed(curtsy, up, env={"CURTSY_MODE": mode})
    assert (result["first"]["status"], keys_of(up, "/keyed")) == (503, [[]])


@pytest.mark.parametrize("when", ["early", "swap"])
def test_other_headers_that_are_set_meanwhile(curtsy, up, when):
    """While the transfer is under way, by a callback: that is another request, and not to be sent unasked."""
    up.on("/keyed/other", b"fine")
    result, other = send_keyed(curtsy, up, f"{when}=X-New:1")
    assert (result["first"]["status"], result["first"]["headers"].count("HTTP/")) == (503, 1)
    assert result["listed"] == ["X-Own:1"]
    assert len(up.arrivals("/keyed")) == 1
    assert (other["first"]["body"], keys_of(up, "/keyed/other")) == ("fine", [[]])


# ---- refusals that are the program's all the same ----


def logged(curtsy):
    return {"CURTSY_LOG": "info", "CURTSY_LOG_FILE": str(curtsy.folder / "log")}


def test_a_refusal_too_large_to_be_kept(curtsy, up):
    """It is delivered, whole, and the log says why."""
    up.on("/data", Answer(503, body=b"x" * (3 << 19)), b"fine")
    (seen,) = run_lines(curtsy, f"method=GET url={up.url('/data')}", config=CONFIG, env=logged(curtsy))
    assert (seen["first"]["code"], seen["first"]["status"], seen["first"]["received"]) == (0, 503, 3 << 19)
    assert seen["first"]["headers"].count("HTTP/") == 1
    assert len(up.arrivals()) == 1
    assert "too large to be kept" in (curtsy.folder / "log").read_text()


@pytest.mark.parametrize("status", [401, 403])
def test_what_follows_a_wait_is_final(curtsy, up, status):
    """Waiting cured nothing: it is delivered and not tried again, and after a second or more that is logged, since
    the wait may be what a signature of the program's own did not survive."""
    up.on("/data", Answer(429, [("Retry-After-Ms", "1000")]), Answer(status, body=b"no"), b"fine")
    (seen,) = run_lines(curtsy, f"method=GET url={up.url('/data')}", config=CONFIG, env=logged(curtsy))
    assert (seen["first"]["status"], seen["first"]["body"]) == (status, "no")
    assert seen["first"]["headers"].count("HTTP/") == 1
    not_early(up.waits(), 1)
    assert re.search(rf"\b{status}\b", (curtsy.folder / "log").read_text())
