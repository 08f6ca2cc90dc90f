# SPDX-License-Identifier: MIT
"""Which libcurl a program uses makes no difference: Debian's flavours with their symbol versions,
one whose inner calls cannot be seen from outside, one loaded privately by an interpreter."""

import os

import pytest

from harness import not_early, told

PYCURL = """
import pycurl, sys, io
body = io.BytesIO()
handle = pycurl.Curl()
handle.setopt(pycurl.URL, sys.argv[1])
handle.setopt(pycurl.WRITEDATA, body)
handle.perform()
print(handle.getinfo(pycurl.RESPONSE_CODE), body.getvalue().decode(), pycurl.version)
"""


def counted(curtsy):
    (bucket,) = curtsy.status()["buckets"]
    return bucket["curtsy_requests_total"], bucket["curtsy_attempts_total"]


@pytest.fixture
def symbolic(curtsy):
    """The environment of a curl whose libcurl was linked with -Bsymbolic-functions."""
    return {"LD_LIBRARY_PATH": os.fspath(curtsy.build / "symbolic")}


def test_inner_calls_that_are_seen_are_not_counted(curtsy, up):
    up.on("/data", told(1), b"four")
    assert curtsy.curl(up.url("/data")).stdout == b"four"
    assert len(up.arrivals()) == 2
    assert counted(curtsy) == (1, 2)


def test_inner_calls_that_are_not_seen_make_no_difference(curtsy, up, symbolic):
    up.on("/data", told(1), b"four")
    assert curtsy.curl(up.url("/data"), env=symbolic).stdout == b"four"
    not_early(up.waits(), 1.0)
    assert counted(curtsy) == (1, 2)


@pytest.mark.parametrize("how", ["plain", "tail"])
def test_a_perform_in_a_callback_is_charged_once_without_visible_inner_calls(curtsy, up, symbolic, how):
    up.on("/", b"x")
    result = curtsy.run([curtsy.victim("nested"), how, up.url("/outer"), up.url("/inner")], env=symbolic)
    assert result.rc == 0, result.errors
    arrivals = len(up.arrivals())
    assert counted(curtsy) == (arrivals, arrivals)


def test_a_private_libcurl_of_another_flavour(curtsy, up):
    """pycurl is linked with the GnuTLS flavour, and Python loads it with RTLD_LOCAL."""
    up.on("/data", told(1), b"four")
    result = curtsy.run(["/usr/bin/python3", "-c", PYCURL, up.url("/data")])
    assert result.text.startswith("200 four"), result.errors
    assert "GnuTLS" in result.text
    not_early(up.waits(), 1.0)
    assert counted(curtsy) == (1, 2)
