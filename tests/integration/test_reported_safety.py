# SPDX-License-Identifier: MIT
"""Troubles with request bodies, repeated writes and truncated results that users of libcurl programs have
reported, each turned into an experiment; see tests/field-reports.md, as for test_reported.py."""

import hashlib
import os

import pytest

from harness import compile_c, compile_library, has_program, not_early, told
from test_strangers import WITHOUT_DEEPBIND
from upstream import Answer
from uploads import Http2Uploads

FOUR = Answer(200, body=b"four")
QUICK = "[default]\nbase_delay = 1ms\n"
NAMED = "[127.0.0.1]\nbase_delay = 1ms\n"  # connection errors count as well
DATA = b"".join(b"%07x\n" % number for number in range(5000))


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def stored(request):
    """What an object store tells of what it was given."""
    return Answer(200, body=f"{len(request.body)} {sha256(request.body)}\n".encode())


def as_stored(data):
    return f"{len(data)} {sha256(data)}\n".encode()


# ---- SDKs ----

SDK = r"""
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
static char content[40001];
static size_t position, blocks, received;
static size_t supply(char *buffer, size_t size, size_t number, void *unused)
{
    size_t left = 40000 - position, room = size * number, length = left < room ? left : room;
    memcpy(buffer, content + position, length);
    position += length;
    return length;
}
static size_t header(char *line, size_t size, size_t number, void *unused)
{
    blocks += strncmp(line, "HTTP/1.1 100", 12) != 0 && strncmp(line, "HTTP/", 5) == 0;
    return size * number;
}
static size_t body(char *data, size_t size, size_t number, void *unused)
{
    received += size * number;
    return size * number;
}
int main(int argc, char **argv)
{
    char length[64];
    CURL *easy = curl_easy_init();
    for (int i = 0; i < 5000; i++)
        sprintf(content + 8 * i, "%07x\n", i);
    snprintf(length, sizeof length, "Content-Length: %d", 40000);
    struct curl_slist *headers = curl_slist_append(NULL, length);
    headers = curl_slist_append(headers, "Transfer-Encoding:");
    headers = curl_slist_append(headers, "Expect:");
    curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_PUT, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, supply);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body);
    long status = 0;
    int code = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    printf("%d %ld blocks %zu received %zu read %zu\n", code, status, blocks, received, position);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    return 0;
}
"""


@pytest.mark.slow(2)
@pytest.mark.parametrize("status", [429, 503])
def test_an_sdk_that_reads_the_error_from_the_body(up, curtsy, tmp_path, status):
    """Its length is told by a header of its own, and a refusal without a body is nothing that it knows: it
    sees none."""
    program = compile_c(SDK, tmp_path / "sdk", "-lcurl")
    up.on("/object", told(1, status, b""), FOUR)
    result = curtsy.run([program, up.url("/object")])
    assert result.all == (0, b"0 200 blocks 1 received 4 read 40000\n", b"")
    assert [(arrival.body_complete, arrival.body_sha256) for arrival in up.arrivals()] == [(True, sha256(DATA))] * 2
    not_early(up.waits(), 1.0)


def test_two_kinds_of_post_in_a_row(up, curtsy):
    """The first one, a form, is refused; neither is stuck for it, and the next process is not either."""
    up.on("/route", Answer(429, [("Retry-After", "1")], b"limited"), stored)
    posts = ["-F", "a=b", "-H", "Idempotency-Key: 1", up.url("/route")]
    posts += ["--next", "-sS", "--json", "{}", up.url("/route")]
    result = curtsy.curl(*posts)
    assert result.rc == 0 and result.stdout.endswith(as_stored(b"{}"))
    assert len(up.arrivals()) == 3
    assert curtsy.curl("--json", "{}", up.url("/route")).stdout == as_stored(b"{}")


# ---- truncation ----


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_download_that_breaks_off_is_told_as_it_is(up, curtsy, reset, framing):
    """Never a short success, never a byte twice; nothing else is asked for behind the program's back."""
    broken = Answer(200, body=b"x" * 5000, cut_body=3000, reset=reset, framing=framing, pieces=5)
    seen = []
    for how in ("bare", "preload"):
        up.on("/file", broken, FOUR)
        file = curtsy.folder / how
        words = ["-o", os.fspath(file), "-w", "%{exitcode} %{size_download}", up.url("/file")]
        result = curtsy.curl(*words, how=how, config=NAMED)
        seen.append((result.all, file.read_bytes()))
    assert seen[0] == seen[1] and seen[0][0][0] in (18, 56)
    assert len(up.arrivals()) == 2


def test_a_refusal_that_breaks_off_is_no_result(up, curtsy):
    """The page of a refusal, cut short, must not be taken for the file."""
    up.on("/file", *[Answer(503, body=b"<html>" * 500, cut_body=1000)] * 2, FOUR)
    file = curtsy.folder / "file"
    assert curtsy.curl("-f", "-o", os.fspath(file), up.url("/file"), config=NAMED).all == (0, b"", b"")
    assert file.read_bytes() == b"four"


# ---- writes ----

BULK = b"".join(b'{"index": {}}\n{"line": %d}\n' % number for number in range(100))


@pytest.mark.slow(2)
@pytest.mark.parametrize("declared", [True, False])
def test_a_bulk_sender(up, curtsy, declared):
    """Each line is indexed once where the policy says that a repeat is safe; else it sees the refusal."""
    indexed = []

    def index(request):
        indexed.extend(request.body.splitlines())
        return FOUR

    up.on("/_bulk", told(1, 429, b'{"error": "es_rejected_execution_exception"}'), index)
    config = f"[{up.authority}/_bulk]\nidempotent = yes\n" if declared else ""
    result = curtsy.curl("--data-binary", "@-", up.url("/_bulk"), stdin=BULK, config=config)
    if declared:
        assert result.all == (0, b"four", b"") and indexed == BULK.splitlines()
    else:
        assert result.all == (0, b'{"error": "es_rejected_execution_exception"}', b"") and not indexed
    assert {arrival.body_sha256 for arrival in up.arrivals()} == {sha256(BULK)}
    assert len(up.arrivals()) == (2 if declared else 1)


@pytest.mark.parametrize("fault", [Answer(drop="body", reset=True), Answer(drop="body"), Answer(504), Answer(502)])
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_an_order_that_may_have_been_taken(up, curtsy, method, fault):
    """The server has had it, and nobody knows what became of it: it is not sent twice."""
    up.on("/order", fault, FOUR)
    words = ["-X", method, "-d", "one", up.url("/order")]
    governed = curtsy.curl(*words, config=NAMED)
    assert len(up.arrivals()) == 1
    up.on("/order", fault)
    assert governed.all == curtsy.bare(["curl", "-sS", *words]).all


@pytest.mark.parametrize("answers", [[None], [None, None, None]], ids=["once", "three times"])
def test_a_stream_that_was_refused_before_anything_was_done(curtsy, answers):
    """Of whatever method: the server guarantees that it was not processed (RFC 9113, section 8.7)."""
    with Http2Uploads(*answers, Answer(200, body=b"four")) as server:
        words = ["--http2-prior-knowledge", "-d", "order", server.url("/order")]
        assert curtsy.curl(*words, config=NAMED).output == (0, b"four")
        assert len(server.requests) == len(answers) + 1


def test_a_stream_that_is_always_refused(curtsy):
    """It ends, and with libcurl's own word for it."""
    with Http2Uploads(None) as server, Http2Uploads(None) as other:
        words = ["--http2-prior-knowledge", "-d", "order"]
        bare = curtsy.bare(["curl", "-sS", *words, other.url("/order")])
        governed = curtsy.curl(*words, server.url("/order"), config=NAMED + "max_attempts = 3\n")
        assert governed.rc == bare.rc != 0
        assert len(server.requests) <= 3 * len(other.requests)


# ---- handles and uploads ----


@pytest.mark.slow(2)
@pytest.mark.parametrize("kind", ["put", "post"])
@pytest.mark.parametrize("seeking", ["seek", "no-seek"])
@pytest.mark.parametrize("ends", ["well", "badly"])
def test_a_handle_after_a_refused_upload(up, curtsy, kind, seeking, ends):
    """A failed rewind must not spoil it: the next three requests are as they would be."""
    up.on("/upload", *[Answer(429, body=b"no")] * (1 if ends == "well" else 9), FOUR)
    up.on("/*", stored)
    result = curtsy.run([curtsy.victim("uploads"), kind, seeking, up.url("").rstrip("/")], config=QUICK)
    upload, *others = result.text.splitlines()
    assert others == ["get 0 200", "post 0 200", "reset 0 200"]
    attempts = up.arrivals("/upload")
    assert {arrival.body_sha256 for arrival in attempts} == {sha256(b"the whole of the body, once")}
    assert len(attempts) == (1 if kind == "post" else 2 if ends == "well" else 5)
    assert upload == ("upload 0 200" if kind == "put" and ends == "well" else "upload 0 429")
    assert [arrival.body_length for arrival in up.arrivals() if arrival.path != "/upload"] == [0, 5, 0]


@pytest.mark.slow(2)
@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("words", ["-T .", "-T -"])
def test_an_upload_from_standard_input(up, curtsy, words, size):
    """What is stored is the input, or it is told that it is not; never a success with nothing stored."""
    data = DATA if size == "small" else DATA * 40
    up.on("/object", told(1), stored)
    result = curtsy.curl(*words.split(), up.url("/object"), stdin=data)
    assert result.rc == 0
    assert result.stdout == (as_stored(data) if size == "small" else b"slow down\n")
    assert {arrival.body_sha256 for arrival in up.arrivals()} == {sha256(data)}


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("words", ["-T .", "-T -"])
def test_an_upload_from_standard_input_that_is_redirected(up, curtsy, words, refused):
    up.on("/object", Answer(307, [("Location", "/other")]))
    up.on("/other", *[Answer(429)] * refused, stored)
    result = curtsy.curl("-L", *words.split(), up.url("/object"), stdin=DATA, config=QUICK)
    bodies = {arrival.body_sha256 for arrival in up.arrivals("/other")}
    assert bodies <= {sha256(DATA)} and (bodies or result.rc != 0)
    assert (result.rc == 0) == (result.stdout == as_stored(DATA))


PHP = """
$easy = curl_init($argv[2]);
curl_setopt($easy, CURLOPT_RETURNTRANSFER, true);
curl_setopt($easy, CURLOPT_CUSTOMREQUEST, "PUT");
switch ($argv[1]) {
case "small":
    curl_setopt($easy, CURLOPT_POSTFIELDS, "0123456789");
    break;
case "large":
    curl_setopt($easy, CURLOPT_POSTFIELDS, str_repeat("0123456789abcdef", 131072));
    break;
case "file":
    curl_setopt($easy, CURLOPT_UPLOAD, true);
    curl_setopt($easy, CURLOPT_INFILE, fopen("data", "r"));
    curl_setopt($easy, CURLOPT_INFILESIZE, filesize("data"));
    break;
case "closure":
    $file = fopen("data", "r");
    curl_setopt($easy, CURLOPT_UPLOAD, true);
    curl_setopt($easy, CURLOPT_READFUNCTION, fn($easy, $unused, $length) => fread($file, $length));
}
echo curl_exec($easy);
"""


@pytest.mark.slow(2)
@pytest.mark.skipif(not has_program("php"), reason="php is not installed")
@pytest.mark.no_sanitizer("PHP's extension is loaded with RTLD_DEEPBIND, which has to be taken away")
@pytest.mark.parametrize("what", ["small", "large", "file", "closure"])
@pytest.mark.parametrize("size", ["kept", "too large"])
def test_uploads_of_php(up, curtsy, what, size):
    """It always sets a read callback, and has none to seek.  A hash that is wrong is never stored."""
    content = DATA if size == "kept" else DATA * 40
    helper = compile_library(WITHOUT_DEEPBIND, curtsy.folder / "helper.so")
    (curtsy.folder / "data").write_bytes(content)
    data = {"small": b"0123456789", "large": b"0123456789abcdef" * 131072}.get(what, content)
    up.on("/object", told(1), stored)
    env = {"LD_PRELOAD": f"{curtsy.library}:{helper}"}
    result = curtsy.run(["php", "-r", PHP, "--", what, up.url("/object")], env=env)
    repeated = what in ("small", "large") or size == "kept"
    assert result.output == (0, as_stored(data) if repeated else b"slow down\n")
    assert {arrival.body_sha256 for arrival in up.arrivals()} == {sha256(data)}
    assert len(up.arrivals()) == (2 if repeated else 1)


# ---- layers of retries ----


@pytest.mark.slow(3)
def test_layers_of_retries_add_up_and_do_not_multiply(up, curtsy):
    """Four attempts here and three retries of curl's: seven, not sixteen."""
    up.on("/data", Answer(503, body=b"no\n"))
    config = "[default]\nmax_attempts = 4\nbase_delay = 1ms\n"
    result = curtsy.curl("-f", "--retry", "3", "--retry-delay", "1", up.url("/data"), config=config)
    assert result.rc == 22 and len(up.arrivals()) == 4 + 3
