# SPDX-License-Identifier: MIT
"""A real HTTP/2 server for the tests in which HTTP/2 itself is meant: nghttpd (of the package
nghttp2-server) on a free loopback port, serving a folder.

    with Http2(folder) as server:                   # h2c, with prior knowledge
        subprocess.run(["curl", "--http2-prior-knowledge", server.url("/file")])

It serves files and nothing else: 200, 304 or 404.  What arrived is read from its log.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
from typing import Optional


def available() -> bool:
    return shutil.which("nghttpd") is not None


class Http2:
    """`tls`: (key file, certificate file), or None for cleartext."""

    def __init__(self, folder: pathlib.Path, tls: Optional[tuple[str, str]] = None) -> None:
        self._folder, self._tls = folder, tls
        self._log = tempfile.TemporaryFile()
        self.port = 0

    def __enter__(self) -> "Http2":
        # nghttpd cannot say which port it chose, so one is chosen here; if it is taken meanwhile, again.
        for _ in range(10):
            self.port = _free_port()
            command = ["nghttpd", "--address=127.0.0.1", f"--htdocs={self._folder}", "--verbose"]
            command += [str(self.port), *self._tls] if self._tls else ["--no-tls", str(self.port)]
            self._process = subprocess.Popen(command, stdout=self._log, stderr=subprocess.STDOUT)
            if self._listens():
                return self
            self.__exit__()
        raise RuntimeError("nghttpd does not start")

    def __exit__(self, *_exception: object) -> None:
        self._process.terminate()
        self._process.wait()

    def url(self, path: str = "/") -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}{path}"

    def paths(self) -> list[str]:
        """The paths of the requests so far."""
        with open(f"/proc/self/fd/{self._log.fileno()}", "rb") as log:
            text = re.sub(rb"\x1b\[[0-9;]*m", b"", log.read())
        return [path.decode() for path in re.findall(rb":path: (\S+)", text)]

    def _listens(self) -> bool:
        while self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            except ConnectionRefusedError:
                time.sleep(0.01)
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
