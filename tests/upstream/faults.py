# SPDX-License-Identifier: MIT
"""The upstream that fails: a port whose connections and requests meet the faults that they are told to,
one after the other, the last one again and again.

    with Faults("reset", "ok") as server:
        subprocess.run(["curl", "-s", server.url("/")])
        assert (server.whole, server.opened) == (2, 2)

Faults of a connection, before anything of a request is read:

    hello-reset hello-close hello-silence   once the client has begun to send (in TLS: its hello)
    hello-alert hello-garbage               TLS: what is no server's hello
    deaf                                    an orderly end at once; what the client sends is read
    shaken-reset shaken-eof                 TLS: when a request begins to come

Faults of a request, when all of it has come:

    ok 429 ...          an answer of that status; the connection goes on ("ok-close": it says not)
    reset               a reset (RST)
    close               an orderly end; in TLS with close_notify
    eof                 TLS: an end without close_notify
    head-reset ...      the same in the middle of the answer's header block; busy-...: of a 503
    body-reset ...      and in the middle of its body, which is 1000 bytes long
    half-reset          once a part of the request's body has come
    silence             nothing, ever
    garbage             TLS: what is no record of it
    line-nonsense line-status line-nul length chunk    an answer that is malformed

and for HTTP/2, which begins with the preface or by an upgrade:

    rst-N               RST_STREAM with that error code
    head-rst-N          the same after the header block
    goaway              GOAWAY that excludes the stream, then an orderly end
    goaway-ours         GOAWAY with an error that includes it, then the same

CONNECT is a request like any other; after an "ok" the connection is the origin's.
"""

from __future__ import annotations

import collections
import contextlib
import os
import select
import socket
import ssl
import struct
import threading
from http.client import responses as REASONS
from typing import Optional

from http2_script import DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS
from http2_script import ACK, _fields, _frame, _sizes

GOAWAY = 7  # a frame type: RFC 9113, section 6.8
INTERNAL_ERROR = 2  # an error code: section 7
OF_CONNECTIONS = ("hello", "deaf", "shaken")
HELLOS = {"hello-alert": b"\x15\3\3\0\2\2\x28", "hello-garbage": b"HTTP/1.1 400 Bad Request\r\n\r\n"}
MALFORMED = {
    "line-nonsense": b"NONSENSE\r\n\r\n",
    "line-status": b"HTTP/1.1 2x0 OK\r\n\r\n",
    "line-nul": b"HTTP/1.1 200 OK\r\nX-A: a\0b\r\n\r\n",
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
    "chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
}


class Faults:
    """`tls`: (key file, certificate file)."""

    def __init__(self, *faults: str, tls: Optional[tuple[str, str]] = None, http2: bool = False) -> None:
        self._faults = collections.deque(faults)
        self._lock = threading.Lock()
        self._http2, self._tls = http2, None
        if tls:
            self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._tls.load_cert_chain(tls[1], tls[0])
            self._tls.set_alpn_protocols(["h2"] if http2 else ["http/1.1"])
        self.opened = 0  # connections
        self.heads: list[bytes] = []  # of requests whose header block has come
        self.whole = 0  # requests of which all has come
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> "Faults":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # which ends a waiting accept
        self._listener.close()

    def url(self, path: str = "/") -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}{path}"

    def settle(self) -> None:
        """Until all connections have ended: the clients are gone, and all is counted."""
        for thread in list(self._threads):
            thread.join(60)
            assert not thread.is_alive(), "a client is still connected"

    # ---- its threads ----

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.opened += 1
                fault = self._faults[0] if self._faults[0].startswith(OF_CONNECTIONS) else None
                if fault:
                    self._next()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(connection, fault), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _next(self) -> str:
        return self._faults.popleft() if len(self._faults) > 1 else self._faults[0]

    def _serve(self, connection: socket.socket, fault: Optional[str]) -> None:
        try:
            if fault and not fault.startswith("shaken"):
                _break_connection(connection, fault)
                return
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            if fault:
                select.select([connection], [], [])
                _end(connection, fault)
            elif self._http2:
                self._serve_http2(connection)
            else:
                while self._exchange(connection):
                    pass
        except (OSError, EOFError, ValueError):
            pass  # the client is gone
        finally:
            connection.close()

    def _exchange(self, connection: socket.socket) -> bool:
        """One request.  True if the connection goes on."""
        head = _read_head(connection)
        with self._lock:
            self.heads.append(head)
            fault = self._next()
        self._read_body(connection, head, fault)
        if fault in MALFORMED:
            connection.sendall(MALFORMED[fault])
            return _end(connection, "close")
        if fault == "garbage":
            os.write(connection.fileno(), b"garbage " * 4)
            return _end(connection, "eof")
        if fault.startswith(("head-", "busy-", "body-")):
            part, fault = fault.split("-")
            line = b"HTTP/1.1 503 No\r\n" if part == "busy" else b"HTTP/1.1 200 OK\r\n"
            whole = line + b"X-Part: 1\r\nContent-Length: 1000\r\n\r\n"
            connection.sendall(whole + b"x" * 100 if part == "body" else whole[:30])
        if not fault.startswith("ok") and not fault.isdigit():
            return _end(connection, fault)
        connection.sendall(_answer(head, fault))
        return "close" not in fault

    def _read_body(self, connection: socket.socket, head: bytes, fault: str) -> None:
        left = int(dict(_fields_of(head)).get(b"content-length", 0))
        if fault == "half-reset":
            _read(connection, left // 4 or 1)
            return
        _read(connection, left)
        with self._lock:
            self.whole += 1

    # ---- HTTP/2 ----

    def _serve_http2(self, connection: socket.socket) -> None:
        upgrades = not self._tls and connection.recv(3, socket.MSG_PEEK) != PREFACE[:3]
        if upgrades:
            head = _read_head(connection)
            _read(connection, int(dict(_fields_of(head)).get(b"content-length", 0)))
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
        with connection.makefile("rb") as stream:
            if stream.read(len(PREFACE)) != PREFACE:
                return
            connection.sendall(_frame(SETTINGS, 0, 0))
            # The request that was upgraded is the first stream.
            if upgrades and not self._take(connection, HEADERS, END_STREAM, 1):
                return
            while head := stream.read(9):
                size, kind, flags, stream_id = *_sizes(head), int.from_bytes(head[5:], "big")
                payload = stream.read(size)
                if kind in (SETTINGS, PING) and not flags & ACK:
                    connection.sendall(_frame(kind, ACK, 0, payload if kind == PING else b""))
                if kind in (HEADERS, DATA) and not self._take(connection, kind, flags, stream_id):
                    return

    def _take(self, connection: socket.socket, kind: int, flags: int, stream_id: int) -> bool:
        """True if the connection goes on."""
        with self._lock:
            if kind == HEADERS:
                self.heads.append(b"")
            if not flags & END_STREAM:
                return True
            self.whole += 1
            fault = self._next()
        ok = _frame(HEADERS, END_HEADERS, stream_id, _fields([(":status", "200")]))
        kind, _, code = fault.rpartition("-")
        if fault == "ok":
            connection.sendall(ok + _frame(DATA, END_STREAM, stream_id, b"done\n"))
        elif kind in ("rst", "head-rst"):
            reset = _frame(RST_STREAM, 0, stream_id, struct.pack(">I", int(code)))
            connection.sendall(ok + reset if kind == "head-rst" else reset)
        elif fault.startswith("goaway"):
            what = (stream_id, INTERNAL_ERROR) if code == "ours" else (0, 0)
            connection.sendall(_frame(GOAWAY, 0, 0, struct.pack(">II", *what)))
            return _end(connection, "close")
        else:
            return _end(connection, fault)
        return True


def _read(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        part = connection.recv(min(length - len(data), 1 << 16))
        if not part:
            raise EOFError
        data += part
    return data


def _read_head(connection: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += _read(connection, 1)
    return head


def _fields_of(head: bytes) -> list[tuple[bytes, bytes]]:
    lines = [line.partition(b":") for line in head.split(b"\r\n")[1:-2]]
    return [(name.lower(), value.strip()) for name, _, value in lines]


def _answer(head: bytes, fault: str) -> bytes:
    status = int(fault) if fault.isdigit() else 200
    body = b"" if head.startswith(b"CONNECT") and status == 200 else b"done\n"
    lines = [f"HTTP/1.1 {status} {REASONS[status]}"] + [f"Content-Length: {len(body)}"] * bool(body)
    lines += ["Connection: close"] * ("close" in fault) + ['Proxy-Authenticate: Basic realm="p"'] * (status == 407)
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


def _break_connection(connection: socket.socket, fault: str) -> None:
    if fault == "deaf":
        connection.shutdown(socket.SHUT_WR)
        _exhaust(connection)
        return
    connection.recv(1, socket.MSG_PEEK)
    if not fault.endswith("reset"):  # what is unread would make one of it
        connection.recv(1 << 16)
        connection.sendall(HELLOS.get(fault, b""))
    _end(connection, fault)


def _end(connection: socket.socket, fault: str) -> bool:
    """False, for the connection does not go on."""
    how = fault.rpartition("-")[2]
    if how == "reset":
        # A linger time of zero turns the close into a reset.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        return False
    if how == "silence":
        _exhaust(connection)
        return False
    if how == "close" and isinstance(connection, ssl.SSLSocket):
        with contextlib.suppress(OSError):
            connection = connection.unwrap()
    with contextlib.suppress(OSError):
        # Not of the SSL object: its own would forget the connection.
        socket.socket.shutdown(connection, socket.SHUT_WR)
    _exhaust(connection)
    return False


def _exhaust(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while connection.recv(1 << 16):
            pass


class Full:
    """A port that listens, and never answers: its queue is full, and what more comes is dropped."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.port = self._listener.getsockname()[1]
        self._fillers = []
        for _ in range(3):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", self.port))
            self._fillers.append(filler)

    def __enter__(self) -> "Full":
        return self

    def __exit__(self, *_exception: object) -> None:
        for each in (self._listener, *self._fillers):
            each.close()


class Closed:
    """A port where nobody listens, and nobody else will meanwhile."""

    def __init__(self) -> None:
        self._holder = socket.socket()
        self._holder.bind(("127.0.0.1", 0))
        self.port = self._holder.getsockname()[1]

    def __enter__(self) -> "Closed":
        return self

    def __exit__(self, *_exception: object) -> None:
        self._holder.close()
