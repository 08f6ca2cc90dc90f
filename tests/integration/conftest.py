# SPDX-License-Identifier: MIT
"""Fixtures of the integration tests: scripted servers, and programs under Curtsy.

    CURTSY_BUILD=../../build python3 -m pytest -n 8 -m 'not alone'

Tests marked `alone` fill the machine: they run after the others, one at a time.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.fspath(HERE), os.fspath(HERE.parent / "upstream")]

from harness import Curtsy  # noqa: E402
from upstream import Upstream  # noqa: E402

BUILD = pathlib.Path(os.environ.get("CURTSY_BUILD", HERE.parent.parent / "build")).resolve()


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: fills the machine; runs by itself")
    config.addinivalue_line("markers", "slow(seconds): takes about so long, mostly waiting")
    config.addinivalue_line("markers", "no_sanitizer(reason): not under a sanitizer's runtime")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """The longest tests come first, each at the head of another worker's first portion (xdist hands
    out a quarter of the tests at the start, in order), so that they run side by side."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    portion = max(len(items) // workers // 4, 2)
    by_length = sorted(items, key=_seconds, reverse=True)
    heads, rest = by_length[:workers], by_length[workers:]
    short_first = rest[::-1]
    items.clear()
    for head in heads:
        items.append(head)
        items.extend(short_first[: portion - 1])
        del short_first[: portion - 1]
    items.extend(short_first[::-1])


def _seconds(item):
    marker = item.get_closest_marker("slow")
    return marker.args[0] if marker else 0


@pytest.fixture
def upstream():
    """A function that starts servers; `upstream()` is the first one."""
    running = []

    def start(*arguments, **options):
        running.append(Upstream(*arguments, **options).__enter__())
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def up(upstream):
    """One server."""
    return upstream()


@pytest.fixture
def curtsy(tmp_path, request):
    folder = tmp_path / "curtsy"
    folder.mkdir()
    fixture = Curtsy(BUILD, folder)
    marker = request.node.get_closest_marker("no_sanitizer")
    if marker and fixture.sanitizer:
        pytest.skip(f"under {fixture.sanitizer}: {marker.args[0]}")
    yield fixture
    fixture.finish()


@pytest.fixture
def config(curtsy):
    """Writes ratelimit.ini."""
    return curtsy.configure


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """(key file, certificate file) of a server that nobody vouches for."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("certificate")
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        + ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    return os.fspath(key), os.fspath(cert)
