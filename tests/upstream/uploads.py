# SPDX-License-Identifier: MIT
"""The upstream for uploads: an HTTP/1.1 server that keeps every byte of every attempt, whole or not,
and breaks off where it is told.

    with Uploads() as server:
        server.on("/a", "reset-during", "429")
        subprocess.run(["curl", "-T", "file", server.url("/a")])
        first, second, third = server.attempts("/a")

Each request of a path meets the next of its faults, and after the last one is answered with 200:

    429, 503, ...   that status, when the body has come
    429+1           with Retry-After: 1
    429-early       that status at once, without a look at the body (and no 100 Continue)
    429-invited     the same after 100 Continue
    reset-during    a reset in the middle of the body: after half of it, at most 40,000 bytes
                    (1,000 where it comes in chunks)
    reset-after     a reset instead of an answer
    silence         no answer

A reset before a request's head is a matter of the connection: `server.port_that_resets()` is another
port of the same server that resets its first connection, once there is something to read.
"""

from __future__ import annotations

import dataclasses
import re
import socket
import struct
import threading
import time
from http.client import responses as REASONS

from http2_script import DATA, END_STREAM, HEADERS, RST_STREAM, ScriptedHttp2, _frame

WINDOW_UPDATE = 8  # a frame type: RFC 9113, section 6.9
NO_ERROR = bytes(4)  # an error code: section 7
CUT = 40_000  # bytes of a body, at most, before a reset-during


@dataclasses.dataclass
class Attempt:
    number: int  # of its path, from 1
    fault: str
    head: bytes  # request line and fields
    time_ns: int  # CLOCK_MONOTONIC
    answered_ns: int = 0
    body: bytearray = dataclasses.field(default_factory=bytearray)  # without its framing
    complete: bool = False

    @property
    def method(self) -> str:
        return self.head.split(b" ")[0].decode()

    def header(self, name: str) -> str | None:
        match = re.search(rb"\r\n" + name.encode() + rb": *([^\r]*)", self.head, re.I)
        return match.group(1).decode() if match else None

    @property
    def boundary(self) -> str:
        match = re.search(r"boundary=(\S+)", self.header("Content-Type") or "")
        return match.group(1) if match else ""


def answer(number: int, fault: str) -> tuple[int, bytes, bytes]:
    """(status, head, body) of the answer to the attempt of that number."""
    status = int(fault[:3])
    body = b"answer %d to attempt %d\n" % (status, number)
    fields = [f"X-Attempt: {number}", f"Content-Length: {len(body)}"]
    if "+" in fault:
        fields.append(f"Retry-After: {fault.split('+')[1]}")
    lines = [f"HTTP/1.1 {status} {REASONS[status]}", *fields]
    return status, "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n", body


class Uploads:
    def __init__(self) -> None:
        self._faults: dict[str, tuple[str, ...]] = {}
        self._attempts: dict[str, list[Attempt]] = {}
        self._lock = threading.Lock()
        self._listeners: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.port = self._listen(resets=0)

    def __enter__(self) -> "Uploads":
        return self

    def __exit__(self, *_exception: object) -> None:
        for listener in self._listeners:
            listener.shutdown(socket.SHUT_RDWR)  # which ends a waiting accept
            listener.close()

    def on(self, path: str, *faults: str) -> None:
        self._faults[path] = faults

    def url(self, path: str, port: int | None = None) -> str:
        return f"http://127.0.0.1:{port or self.port}{path}"

    def port_that_resets(self, connections: int = 1) -> int:
        return self._listen(connections)

    def attempts(self, path: str) -> list[Attempt]:
        with self._lock:
            return list(self._attempts.get(path, []))

    def settle(self) -> None:
        """Until all connections have ended: the clients are gone, and all they sent is here."""
        with self._lock:
            threads, self._threads = self._threads, []
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a client is still connected"

    # ---- the threads of the server ----

    def _listen(self, resets: int) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        self._listeners.append(listener)
        threading.Thread(target=self._accept, args=(listener, resets), daemon=True).start()
        return listener.getsockname()[1]

    def _accept(self, listener: socket.socket, resets: int) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            if resets:
                resets -= 1
                connection.recv(1, socket.MSG_PEEK)  # it has begun to send
                _reset(connection)
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            with self._lock:
                thread.start()
                self._threads.append(thread)

    def _serve(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb", 1 << 16)
        try:
            while self._exchange(connection, stream):
                pass
        except (OSError, ValueError, EOFError):
            pass  # the client is gone
        finally:
            stream.close()
            connection.close()

    def _exchange(self, connection: socket.socket, stream) -> bool:
        """One request.  True if the connection goes on."""
        head = _read_head(stream)
        if not head:
            return False
        attempt = self._note(head)
        fault = attempt.fault
        if fault == "417-early":
            self._answer(connection, attempt)
            return True  # the next request comes, and no body before it
        if fault.endswith(("early", "invited")):
            if fault.endswith("invited"):
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._answer(connection, attempt)
            connection.shutdown(socket.SHUT_WR)
            _read_body(stream, attempt)
            return False
        if (attempt.header("Expect") or "").lower() == "100-continue":
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        _read_body(stream, attempt, cut=fault == "reset-during")
        if fault.startswith("reset"):
            stream.close()
            _reset(connection)
            return False
        if fault == "silence":
            stream.read()
            return False
        self._answer(connection, attempt)
        return True

    def _note(self, head: bytes) -> Attempt:
        path = head.split(b" ")[1].decode().partition("?")[0]
        with self._lock:
            attempts = self._attempts.setdefault(path, [])
            faults = self._faults.get(path, ())
            number = len(attempts) + 1
            fault = faults[number - 1] if number <= len(faults) else "200"
            attempts.append(Attempt(number, fault, head, time.monotonic_ns()))
            return attempts[-1]

    def _answer(self, connection: socket.socket, attempt: Attempt) -> None:
        _, head, body = answer(attempt.number, attempt.fault)
        attempt.answered_ns = time.monotonic_ns()
        connection.sendall(head + body)


def _read_head(stream) -> bytes:
    lines = []
    while line := stream.readline():
        lines.append(line)
        if line == b"\r\n":
            return b"".join(lines)
    return b""


def _read_body(stream, attempt: Attempt, cut: bool = False) -> None:
    """Raises where the client breaks off; what has come by then is kept."""
    length = int(attempt.header("Content-Length") or 0)
    if (attempt.header("Transfer-Encoding") or "").lower() == "chunked":
        while size := int(stream.readline(), 16):
            _take(stream, attempt, min(size, 1000) if cut else size)
            if cut:
                return
            stream.readline()
        stream.readline()
    else:
        _take(stream, attempt, min(length // 2, CUT) if cut else length)
    attempt.complete = not cut


def _take(stream, attempt: Attempt, length: int) -> None:
    while length:
        part = stream.read1(min(length, 1 << 16))
        if not part:
            raise EOFError
        attempt.body += part
        length -= len(part)


def _reset(connection: socket.socket) -> None:
    """A linger time of zero turns the close into a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Http2Uploads(ScriptedHttp2):
    """The same for HTTP/2: keeps the bodies, and answers when they have come.  (libcurl 7.88 may wait for
    ever where the answer is there before the body is sent.)  The first `early` requests are answered at
    once, and their bodies are not wanted any more (RFC 9113, section 8.1)."""

    def __init__(self, *answers, early: int = 0) -> None:
        super().__init__(*answers)
        self._early = early
        self.bodies: list[bytes] = []
        self._coming: dict[tuple[int, int], bytearray] = {}

    def _reply(self, number: int, kind: int, flags: int, stream_id: int, payload: bytes) -> bytes:
        if kind not in (HEADERS, DATA):
            return super()._reply(number, kind, flags, stream_id, payload)
        if kind == HEADERS and len(self.requests) < self._early:
            return super()._reply(number, kind, flags, stream_id, b"") + _frame(RST_STREAM, 0, stream_id, NO_ERROR)
        body = self._coming.setdefault((number, stream_id), bytearray())
        room = b""
        if kind == DATA and payload:
            body += payload
            size = len(payload).to_bytes(4, "big")
            room = b"".join(_frame(WINDOW_UPDATE, 0, stream, size) for stream in (0, stream_id))
        if not flags & END_STREAM:
            return room
        self.bodies.append(bytes(body))
        return room + super()._reply(number, HEADERS, flags, stream_id, b"")
