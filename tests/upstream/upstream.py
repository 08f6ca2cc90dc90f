#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The scripted upstream: an HTTP/1.1 server that answers exactly as it is told, faults included.

A test says which path answers what, runs a program against it, and then looks at what arrived:

    with Upstream() as up:
        up.on("/data", Answer(429, [("Retry-After", "2")]), Answer(200, body=b"four"))
        subprocess.run(["curl", "-s", up.url("/data")])
        assert len(up.arrivals("/data")) == 2

It is written over bare streams, because no decent HTTP library sends what is needed here: repeated
and malformed fields, header blocks that break off, resets, silence.  Nothing is added to an answer
but its framing: no Date, no Server, no Connection.

The server runs in a thread of its own; every method may be called from any other.  Times are
nanoseconds of CLOCK_MONOTONIC, taken the moment a request's header block is complete.

By hand, or from another language:

    upstream.py --script FILE.json [--arrivals FILE] [--port N]

prints the port, and serves until SIGTERM or until its standard input (if a pipe) is closed.  The
script is {"paths": {PATH: [ANSWER, ...]}, "cycle": [PATH, ...], "quotas": [QUOTA, ...]}, where
ANSWER and QUOTA have the fields of the classes below; each arrival becomes a line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import bisect
import collections
import dataclasses
import hashlib
import json
import math
import os
import signal
import socket
import ssl
import stat
import struct
import sys
import threading
import time
import urllib.parse
from http.client import responses as REASONS
from typing import Callable, Optional, Sequence, Union

NS = 1_000_000_000
HEAD_LIMIT = 1 << 20

Fields = Sequence[tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class Answer:
    """One answer, or one way of not giving one."""

    status: int = 200
    headers: Fields = ()
    body: bytes = b""
    reason: Optional[str] = None
    framing: str = "length"  # of the body: length, chunked, close, or none (no field about it)
    date: Optional[float] = None  # add a Date field, this many seconds off the true time
    before: Sequence["Answer"] = ()  # informational answers that precede it

    read_body: bool = True  # False: answer right after the request's header block
    expect: bool = True  # send 100 Continue where the request asks for it
    delay: float = 0  # seconds before the answer
    pieces: int = 1  # the body is sent in this many,
    piece_delay: float = 0  # with this many seconds between them
    close: bool = False  # end the connection after this answer

    raw: Optional[bytes] = None  # these bytes instead of all that, then the end
    silent: bool = False  # no answer, ever: the connection stays open
    drop: Optional[str] = None  # no answer: end the connection after the request's "head" or "body"
    cut_head: Optional[int] = None  # end it after so many bytes of the answer's header block
    cut_body: Optional[int] = None  # or of its body, as framed
    reset: bool = False  # "end" is a reset (RST) and not an orderly close

    @classmethod
    def of(cls, what: "Scripted") -> "Scripted":
        """500 is a status, b"text" the body of a 200, a dict the fields (of a JSON script)."""
        if isinstance(what, int):
            return cls(what)
        if isinstance(what, (bytes, str)):
            return cls(body=_bytes(what))
        if isinstance(what, dict):
            fields = dict(what)
            if "body_base64" in fields:
                fields["body"] = base64.b64decode(fields.pop("body_base64"))
            for name in ("body", "raw"):
                if fields.get(name) is not None:
                    fields[name] = _bytes(fields[name])
            fields["headers"] = [(name, value) for name, value in fields.get("headers", ())]
            fields["before"] = [cls.of(answer) for answer in fields.get("before", ())]
            return cls(**fields)
        return what


@dataclasses.dataclass
class Arrival:
    """One request, as it arrived.  Credentials are kept as hashes only."""

    number: int
    time_ns: int  # CLOCK_MONOTONIC, when its header block was complete
    wall: float
    peer_port: int
    connection: int  # numbered from 1
    on_connection: int  # the how-manyth request on it
    method: str
    target: str
    version: str
    headers: list[tuple[str, str]]
    authorization: Optional[str]  # sha256 of the field's value
    body_length: int = 0
    body_sha256: str = hashlib.sha256().hexdigest()
    body_complete: bool = False
    status: Optional[int] = None  # of the answer
    answered_ns: Optional[int] = None  # right before its first byte was written

    @property
    def path(self) -> str:
        return _path(self.target)

    def header(self, name: str) -> Optional[str]:
        """The first value of that field."""
        return next(iter(self.all_headers(name)), None)

    def all_headers(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


@dataclasses.dataclass
class Request:
    """What a function in a script is given; it must not block."""

    arrival: Arrival
    body: bytes
    hit: int  # the how-manyth request of its path, from 1

    @property
    def path(self) -> str:
        return self.arrival.path


Scripted = Union[Answer, Callable[[Request], Answer], int, bytes, str, dict]


@dataclasses.dataclass
class Quota:
    """A limit that the server enforces on the paths below `prefix`.

    kind: "fixed" counts in windows that begin at multiples of `window` after `phase`; "sliding"
    allows `limit` in any half-open window; "bucket" refills `limit` a window and holds `burst`.
    retry_after: None, a number of seconds, or "exact" (the whole seconds until there is room).
    announce: None, or the quota fields put on every answer: "x-ratelimit" or "ietf".
    Refused requests are not counted.
    """

    limit: int
    window: float
    kind: str = "fixed"
    prefix: str = "/"
    burst: Optional[int] = None
    phase: float = 0
    retry_after: Union[None, float, str] = "exact"
    status: int = 429
    body: bytes = b"too many requests\n"
    headers: Fields = ()
    announce: Optional[str] = None

    def __post_init__(self) -> None:
        self.refused = 0
        self.body = _bytes(self.body)
        self._window_ns = round(self.window * NS)
        self._accepted: collections.deque[int] = collections.deque()
        self._index, self._count = -1, 0
        self._tokens, self._refilled_ns = float(self.burst or self.limit), 0

    def take(self, now_ns: int) -> tuple[bool, int, int]:
        """(may it pass, nanoseconds until there is more room, how many are left)."""
        if self.kind == "fixed":
            begin_ns = now_ns - round(self.phase * NS)
            if begin_ns // self._window_ns != self._index:
                self._index, self._count = begin_ns // self._window_ns, 0
            passes = self._count < self.limit
            self._count += passes
            return passes, self._window_ns - begin_ns % self._window_ns, self.limit - self._count
        if self.kind == "sliding":
            while self._accepted and now_ns - self._accepted[0] >= self._window_ns:
                self._accepted.popleft()
            passes = len(self._accepted) < self.limit
            if passes:
                self._accepted.append(now_ns)
            room_ns = self._accepted[0] + self._window_ns - now_ns
            return passes, room_ns, self.limit - len(self._accepted)
        if self.kind == "bucket":
            per_ns = self.limit / self._window_ns
            held = self._tokens + (now_ns - self._refilled_ns) * per_ns if self._refilled_ns else self._tokens
            self._tokens, self._refilled_ns = min(held, float(self.burst or self.limit)), now_ns
            passes = self._tokens >= 1
            self._tokens -= passes
            return passes, math.ceil(max(0.0, 1 - self._tokens) / per_ns), int(self._tokens)
        raise ValueError(f"no such kind of quota: {self.kind}")

    def fields(self, room_ns: int, left: int) -> list[tuple[str, str]]:
        seconds = str(math.ceil(room_ns / NS))
        if self.announce == "x-ratelimit":
            return [
                ("X-RateLimit-Limit", str(self.limit)),
                ("X-RateLimit-Remaining", str(left)),
                ("X-RateLimit-Reset", seconds),
            ]
        if self.announce == "ietf":
            return [
                ("RateLimit-Policy", f'"default";q={self.limit};w={math.ceil(self.window)}'),
                ("RateLimit", f'"default";r={left};t={seconds}'),
            ]
        return []

    def refusal(self, room_ns: int) -> Answer:
        self.refused += 1
        wait = math.ceil(room_ns / NS) if self.retry_after == "exact" else self.retry_after
        hint = [] if wait is None else [("Retry-After", str(wait))]
        return Answer(self.status, [*hint, *self.headers], self.body)


class Upstream:
    """The server.  `with Upstream() as up:` starts and stops it.  unix: a socket's path instead of
    host and port; tls: (key file, certificate file)."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        unix: Optional[str] = None,
        tls: Optional[tuple[str, str]] = None,
        arrivals_file: Optional[str] = None,
    ) -> None:
        self._host, self._port, self._unix, self._tls = host, port, unix, None
        if tls:
            self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._tls.load_cert_chain(tls[1], tls[0])
        self._scripts: dict[str, tuple[list[Scripted], bool]] = {}
        self._hits: collections.Counter[str] = collections.Counter()
        self._quotas: list[Quota] = []
        self._arrivals: list[Arrival] = []
        self._changed = threading.Condition()
        self._arrivals_file = arrivals_file
        self._connections = 0
        self._tasks: set[asyncio.Task] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="upstream", daemon=True)
        self._ready = threading.Event()
        self._failure: Optional[BaseException] = None

    # ---- for the test ----

    def __enter__(self) -> "Upstream":
        self._thread.start()
        self._ready.wait()
        if self._failure:
            raise self._failure
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends all connections and frees the port.  May be called again."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()

    @property
    def port(self) -> int:
        return self._port

    @property
    def authority(self) -> str:
        """host:port, as in a URL and as a bucket is named."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._port}"

    def url(self, path: str = "/", host: Optional[str] = None) -> str:
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{host or self.authority.rpartition(':')[0]}:{self._port}{path}"

    def on(self, path: str, *answers: Scripted, cycle: bool = False) -> None:
        """The answers of `path`, one a request; the last one repeats, or they begin anew.  A path
        that ends in '*' stands for all that begin so; the longest that fits counts."""
        with self._changed:
            self._scripts[path] = ([Answer.of(answer) for answer in answers], cycle)
            self._hits[path] = 0

    def quota(self, limit: int, window: float, **options: object) -> Quota:
        """Adds a limit; see Quota."""
        quota = Quota(limit, window, **options)  # type: ignore[arg-type]
        with self._changed:
            self._quotas.append(quota)
        return quota

    def arrivals(self, path: Optional[str] = None) -> list[Arrival]:
        """What has arrived so far (at that path, its query left aside), in order."""
        with self._changed:
            return [arrival for arrival in self._arrivals if path in (None, arrival.path)]

    def times(self, path: Optional[str] = None) -> list[int]:
        return [arrival.time_ns for arrival in self.arrivals(path)]

    def waits(self, path: Optional[str] = None) -> list[float]:
        """Seconds from each answer's start to the next arrival: what the client waited at most.  A
        client that waits as told is never below what it was told."""
        arrivals = self.arrivals(path)
        return [
            (later.time_ns - (earlier.answered_ns or earlier.time_ns)) / NS
            for earlier, later in zip(arrivals, arrivals[1:])
        ]

    def wait_for(self, count: int, timeout: float = 60, path: Optional[str] = None) -> list[Arrival]:
        """Until so many have arrived."""
        with self._changed:
            matching = lambda: [arrival for arrival in self._arrivals if path in (None, arrival.path)]
            if not self._changed.wait_for(lambda: len(matching()) >= count, timeout):
                raise TimeoutError(f"{len(matching())} of {count} requests arrived in {timeout} s")
            return matching()

    @property
    def connections(self) -> int:
        """How many were opened so far."""
        return self._connections

    # ---- the server's thread ----

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as failure:  # handed to the thread that waits in __enter__
            self._failure = failure
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        self._stopped = asyncio.Event()
        options = {"limit": HEAD_LIMIT, "ssl": self._tls, "backlog": 1024}
        if self._unix:
            server = await asyncio.start_unix_server(self._connected, self._unix, **options)
        else:
            server = await asyncio.start_server(self._connected, self._host, self._port, **options)
            self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopped.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        self._connections += 1
        number, count = self._connections, 0
        try:
            while True:
                count += 1
                if not await self._exchange(reader, writer, number, count):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # the client is gone, or the test is over
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader, writer, connection: int, count: int) -> bool:
        """One request and its answer.  True if the connection goes on."""
        head = await reader.readuntil(b"\r\n\r\n")
        arrival = self._arrived(head, writer, connection, count)
        line = _Line(reader, writer, arrival)
        try:
            scripted, hit, announced = self._choose(arrival)
            early = isinstance(scripted, Answer) and (not scripted.read_body or scripted.drop == "head")
            body = b"" if early else await line.read_body(not isinstance(scripted, Answer) or scripted.expect)
            answer = scripted if isinstance(scripted, Answer) else Answer.of(scripted(Request(arrival, body, hit)))
            goes_on = await line.give(answer, announced)
            if goes_on and early and line.expects_body:
                await line.drain()
                goes_on = False
            return goes_on
        finally:
            self._record(arrival)

    def _arrived(self, head: bytes, writer, connection: int, count: int) -> Arrival:
        now_ns, wall = time.monotonic_ns(), time.time()
        request_line, *lines = head.decode("latin-1").split("\r\n")[:-2]
        method, target, version = (request_line.split(" ") + ["", ""])[:3]
        headers = []
        authorization = None
        for text in lines:
            name, _, value = text.partition(":")
            value = value.strip()
            if name.lower() in ("authorization", "proxy-authorization"):
                digest = hashlib.sha256(value.encode("latin-1")).hexdigest()
                authorization = digest if name.lower() == "authorization" else authorization
                value = f"sha256:{digest}"
            headers.append((name, value))
        peer = writer.get_extra_info("peername")
        with self._changed:
            arrival = Arrival(
                len(self._arrivals) + 1, now_ns, wall, peer[1] if isinstance(peer, tuple) else 0,
                connection, count, method, target, version, headers, authorization,
            )  # fmt: skip
            self._arrivals.append(arrival)
            self._changed.notify_all()
        return arrival

    def _choose(self, arrival: Arrival) -> tuple[Scripted, int, Fields]:
        """What the script or a quota says to this request, its hit number, fields to announce."""
        with self._changed:
            announced: list[tuple[str, str]] = []
            for quota in self._quotas:
                if arrival.path.startswith(quota.prefix):
                    passes, room_ns, left = quota.take(arrival.time_ns)
                    announced += quota.fields(room_ns, left)
                    if not passes:
                        return quota.refusal(room_ns), 0, announced
            key = _longest_match(self._scripts, arrival.path)
            if key is None:
                return Answer(200, body=b"ok\n") if self._quotas else Answer(404, body=b"no script\n"), 0, announced
            answers, cycle = self._scripts[key]
            hit = self._hits[key] = self._hits[key] + 1
            index = (hit - 1) % len(answers) if cycle else min(hit, len(answers)) - 1
            return answers[index], hit, announced

    def _record(self, arrival: Arrival) -> None:
        if self._arrivals_file:
            with open(self._arrivals_file, "a", encoding="utf-8") as file:
                file.write(json.dumps(dataclasses.asdict(arrival)) + "\n")


class _Line:
    """One exchange on a connection: reading the request's body, and giving the answer."""

    def __init__(self, reader, writer, arrival: Arrival) -> None:
        self._reader, self._writer, self._arrival = reader, writer, arrival
        self._chunked = (arrival.header("Transfer-Encoding") or "").lower() == "chunked"
        self._length = int(arrival.header("Content-Length") or 0)
        self.expects_body = self._chunked or self._length > 0

    async def read_body(self, invite: bool) -> bytes:
        if invite and self.expects_body and (self._arrival.header("Expect") or "").lower() == "100-continue":
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        digest = hashlib.sha256()
        parts = []
        async for part in self._body_parts():
            digest.update(part)
            parts.append(part)
            self._arrival.body_length += len(part)
        self._arrival.body_sha256 = digest.hexdigest()
        self._arrival.body_complete = True
        return b"".join(parts)

    async def _body_parts(self):
        if not self._chunked:
            left = self._length
            while left:
                part = await self._reader.read(min(left, 1 << 16))
                if not part:
                    raise ConnectionResetError
                left -= len(part)
                yield part
            return
        while size := int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16):
            yield await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        while await self._reader.readuntil(b"\r\n") != b"\r\n":
            pass  # trailer fields

    async def give(self, answer: Answer, announced: Fields) -> bool:
        """True if the connection goes on."""
        if answer.delay:
            await asyncio.sleep(answer.delay)
        self._arrival.answered_ns = time.monotonic_ns()
        if answer.silent:
            await self.drain(half_close=False)
            return False
        if answer.drop:
            return self._end(answer.reset)
        if answer.raw is not None:
            self._writer.write(answer.raw)
            await self._writer.drain()
            return self._end(answer.reset)
        self._arrival.status = answer.status
        for informational in answer.before:
            self._writer.write(_head(informational, []))
        has_body = self._arrival.method != "HEAD" and answer.status not in (204, 304)
        has_body = has_body and not (self._arrival.method == "CONNECT" and answer.status < 300)
        framing = _framing(answer) if has_body or self._arrival.method == "HEAD" else []
        head = _head(answer, [*announced, *framing])
        if answer.cut_head is not None:
            self._writer.write(head[: answer.cut_head])
            await self._writer.drain()
            return self._end(answer.reset)
        return await self._give_body(answer, head, has_body)

    async def _give_body(self, answer: Answer, head: bytes, has_body: bool) -> bool:
        pieces = _pieces(answer) if has_body else []
        if answer.cut_body is not None:
            sent = b"".join(pieces)[: answer.cut_body]
            self._writer.write(head + sent)
            await self._writer.drain()
            return self._end(answer.reset)
        if not answer.piece_delay:
            self._writer.write(head + b"".join(pieces))
        else:
            self._writer.write(head)
            for number, piece in enumerate(pieces):
                await asyncio.sleep(answer.piece_delay if number else 0)
                self._writer.write(piece)
                await self._writer.drain()
        await self._writer.drain()
        return not (answer.close or answer.framing == "close" or answer.reset and self._end(True))

    def _end(self, reset: bool) -> bool:
        if reset:
            # A linger time of zero turns the close into a reset.
            sock = self._writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
        return False

    async def drain(self, half_close: bool = True) -> None:
        """Reads on until the client has had enough, so that closing is not a reset."""
        await self._writer.drain()
        if half_close and self._writer.can_write_eof():
            self._writer.write_eof()
        while await self._reader.read(1 << 16):
            pass


def _bytes(text: Union[str, bytes]) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8")


def _path(target: str) -> str:
    """Of any form of target: /path?query, http://host/path (a proxy's), host:port, *."""
    if target.startswith("/"):
        return target.partition("?")[0]
    if "://" in target:
        return urllib.parse.urlsplit(target).path or "/"
    return target


def _longest_match(scripts: dict, path: str) -> Optional[str]:
    if path in scripts:
        return path
    fitting = [key for key in scripts if key.endswith("*") and path.startswith(key[:-1])]
    return max(fitting, key=len, default=None)


def _head(answer: Answer, more: Fields) -> bytes:
    reason = REASONS.get(answer.status, "Status") if answer.reason is None else answer.reason
    fields = [*answer.headers, *more]
    if answer.date is not None:
        fields.insert(0, ("Date", http_date(answer.date)))
    lines = [f"HTTP/1.1 {answer.status} {reason}"] + [f"{name}: {value}" for name, value in fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _framing(answer: Answer) -> Fields:
    if answer.framing == "length":
        return [("Content-Length", str(len(answer.body)))]
    return [("Transfer-Encoding", "chunked")] if answer.framing == "chunked" else []


def _pieces(answer: Answer) -> list[bytes]:
    size = max(1, -(-len(answer.body) // answer.pieces))
    pieces = [answer.body[at : at + size] for at in range(0, len(answer.body), size)]
    if answer.framing == "chunked":
        return [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces] + [b"0\r\n\r\n"]
    return pieces


_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def http_date(offset: float = 0, form: str = "imf", now: Optional[float] = None) -> str:
    """An HTTP-date `offset` seconds from now, in one of its three forms (RFC 9110, section 5.6.7):
    imf, rfc850 or asctime."""
    moment = time.gmtime((time.time() if now is None else now) + offset)
    day, month = _DAYS[moment.tm_wday], _MONTHS[moment.tm_mon - 1]
    clock = f"{moment.tm_hour:02}:{moment.tm_min:02}:{moment.tm_sec:02}"
    return {
        "imf": f"{day[:3]}, {moment.tm_mday:02} {month} {moment.tm_year} {clock} GMT",
        "rfc850": f"{day}, {moment.tm_mday:02}-{month}-{moment.tm_year % 100:02} {clock} GMT",
        "asctime": f"{day[:3]} {month} {moment.tm_mday:2} {clock} {moment.tm_year}",
    }[form]


def max_in_window(times_ns: Sequence[int], seconds: float) -> int:
    """The most of them that any half-open window of that length holds.  Exact: such a window can
    be moved to begin at one of them without losing any."""
    ordered = sorted(times_ns)
    length_ns = round(seconds * NS)
    return max((bisect.bisect_left(ordered, begin + length_ns) - at for at, begin in enumerate(ordered)), default=0)


def gaps(times_ns: Sequence[int]) -> list[float]:
    """Seconds between neighbours, in order of time."""
    ordered = sorted(times_ns)
    return [(later - earlier) / NS for earlier, later in zip(ordered, ordered[1:])]


def _stdin_is_a_pipe() -> bool:
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _wait_for_end_of_input(finished: threading.Event) -> None:
    while os.read(0, 4096):
        pass
    finished.set()


def main() -> int:
    parser = argparse.ArgumentParser(description="An HTTP server that answers by script.")
    parser.add_argument("--script", required=True, help="the answers, as JSON")
    parser.add_argument("--arrivals", help="append a line of JSON for each request to this file")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--host", default="127.0.0.1")
    options = parser.parse_args()
    with open(options.script, encoding="utf-8") as file:
        script = json.load(file)

    finished = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: finished.set())
    if _stdin_is_a_pipe():
        threading.Thread(target=_wait_for_end_of_input, args=(finished,), daemon=True).start()

    with Upstream(options.host, options.port, arrivals_file=options.arrivals) as upstream:
        for path, answers in script.get("paths", {}).items():
            upstream.on(path, *answers, cycle=path in script.get("cycle", ()))
        for quota in script.get("quotas", ()):
            upstream.quota(**quota)
        print(upstream.port, flush=True)
        finished.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
