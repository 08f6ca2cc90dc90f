# SPDX-License-Identifier: MIT
"""The scripted upstream for HTTP/2: over cleartext, with prior knowledge, and just as much of it as
libcurl asks for.  It answers each request with the next of its answers (of which status, fields and
body count), the last one again and again.

    with ScriptedHttp2(Answer(429, [("retry-after", "1")]), Answer(200, body=b"four")) as server:
        subprocess.run(["curl", "-s", "--http2-prior-knowledge", server.url("/data")])
        assert server.requests == [1, 2]        # the number of the connection of each
"""

from __future__ import annotations

import socket
import struct
import threading
from typing import Sequence

from upstream import Answer

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING = 0, 1, 3, 4, 6  # frame types: RFC 9113, section 6
ACK, END_STREAM, END_HEADERS = 1, 1, 4  # their flags
REFUSED_STREAM = 7  # an error code: section 7


class ScriptedHttp2:
    """`trailers`: fields that follow each body.  An answer of None refuses the stream."""

    def __init__(self, *answers: Answer | None, trailers: Sequence[tuple[str, str]] = ()) -> None:
        self._answers, self._trailers = answers, trailers
        self.requests: list[int] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> "ScriptedHttp2":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # which ends a waiting accept
        self._listener.close()

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection, self.connections), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, connection.makefile("rb") as stream:
            try:
                if stream.read(len(PREFACE)) == PREFACE:
                    connection.sendall(_frame(SETTINGS, 0, 0))
                    while head := stream.read(9):
                        size, kind, flags, stream_id = *_sizes(head), int.from_bytes(head[5:], "big")
                        connection.sendall(self._reply(number, kind, flags, stream_id, stream.read(size)))
            except ConnectionError:
                pass  # the client has what it wanted

    def _reply(self, number: int, kind: int, flags: int, stream_id: int, payload: bytes) -> bytes:
        if kind in (SETTINGS, PING) and not flags & ACK:
            return _frame(kind, ACK, 0, payload if kind == PING else b"")
        if kind != HEADERS:
            return b""
        answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
        self.requests.append(number)
        if answer is None:
            return _frame(RST_STREAM, 0, stream_id, struct.pack(">I", REFUSED_STREAM))
        head = _fields([(":status", str(answer.status)), *answer.headers])
        frames = _frame(HEADERS, END_HEADERS, stream_id, head)
        frames += _frame(DATA, 0 if self._trailers else END_STREAM, stream_id, answer.body)
        if self._trailers:
            frames += _frame(HEADERS, END_HEADERS | END_STREAM, stream_id, _fields(self._trailers))
        return frames


def _sizes(head: bytes) -> tuple[int, int, int]:
    return int.from_bytes(head[:3], "big"), head[3], head[4]


def _frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream_id) + payload


def _fields(fields: Sequence[tuple[str, str]]) -> bytes:
    """Literal, without indexing, with a new name (RFC 7541, section 6.2.2); each shorter than 127."""
    parts = [part.encode() for name, value in fields for part in (name.lower(), value)]
    pairs = zip(parts[::2], parts[1::2])
    return b"".join(b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in pairs)
