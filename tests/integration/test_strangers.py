# SPDX-License-Identifier: MIT
"""Programs as strangers write them, whose requests carry bodies, files, cookies and credentials: on a
server that refuses their first requests they print, write and send what they do on one that never does."""

import gzip
import hashlib
import os
import re
import socket
import threading

import pytest

from harness import compile_library, has_program
from upstream import Answer

QUICK = "[default]\nbase_delay = 1ms\nretry_reserve = 1000\n"
REFUSED = Answer(429, [("Set-Cookie", "limiter=1"), ("X-Reason", "busy")], b"slow down\n")
TEXT = b"".join(b"%07x\n" % number for number in range(2000))
MANY = b"".join(b"%07x\n" % number for number in range(250_000))  # 2 MB, more than is kept


def echo(request):
    """Tells what has arrived, so that whoever prints the answer shows it."""
    hide = lambda text: re.sub(r"-{24}[0-9a-f]{16}", "BOUNDARY", text)
    body = hide(request.body.decode("latin-1")).encode("latin-1")
    fields = [hide(f"{name}: {value}") for name, value in request.arrival.headers if name.lower() != "host"]
    lines = [f"{request.arrival.method} {request.arrival.target}", *fields, hashlib.sha256(body).hexdigest()]
    return Answer(200, [("Content-Type", "text/plain")], "\n".join(lines).encode() + b"\n")


def contents(folder):
    return {os.fspath(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Pair:
    """The same program on a server that refuses, under Curtsy, and on one that does not, without it."""

    def __init__(self, upstream, curtsy, tmp_path):
        self.limited, self.plain = upstream(), upstream()
        self._curtsy, self._folder = curtsy, tmp_path
        curtsy.configure(QUICK)

    def on(self, path, *answers, refusals=(REFUSED, REFUSED)):
        self.limited.on(path, *refusals, *answers)
        self.plain.on(path, *answers)

    def compare(self, words, files=None, **options):
        """`words`: {url} stands for the server's.  Returns the result under Curtsy."""
        seen = []
        for server, how in ((self.limited, "preload"), (self.plain, "bare")):
            folder = self._folder / how
            folder.mkdir(exist_ok=True)
            for name, content in (files or {}).items():
                (folder / name).write_bytes(content)
            command = [word.format(url=server.url().rstrip("/")) for word in words]
            result = self._curtsy.run(command, how=how, cwd=folder, **options)
            seen.append((result, contents(folder)))
        (governed, written), (bare, expected) = seen
        assert governed.output == bare.output
        if "." not in words:  # which turns curl's meter on, and that tells of times
            assert governed.errors == bare.errors
        assert written == expected
        return governed

    def arrived(self, path=None):
        return len(self.limited.arrivals(path)), len(self.plain.arrivals(path))

    def bodies(self):
        """Of all attempts that came whole, and of the one on the other server."""
        whole = [arrival for server in (self.limited, self.plain) for arrival in server.arrivals()]
        return {(arrival.body_sha256, arrival.body_length) for arrival in whole if arrival.body_complete}


@pytest.fixture
def pair(upstream, curtsy, tmp_path):
    return Pair(upstream, curtsy, tmp_path)


def literally(text):
    """No {url} in it."""
    return text.replace("{", "{{").replace("}", "}}")


CURL = ["curl", "-sS"]
FILES = {"f": TEXT, "g": MANY}
KEY = ["-H", "Idempotency-Key: k"]


# ---- curl: uploads ----


@pytest.mark.parametrize(
    "words",
    [
        "-T f {url}/data",
        "-T f -H Expect: {url}/data",
        "-T f -H Transfer-Encoding:chunked {url}/data",
        "-T f {url}/",
        "-T g {url}/data",
        "-T f -H Expect:100-continue {url}/data",
        "-T - {url}/data",
        "-T . {url}/data",
        "-T {{f,f}} {url}/data/",
        "-C 1000 -T f {url}/data",
        "-C - -T f {url}/data",
        "--limit-rate 10M -T g {url}/data",
        "-X PUT -d text {url}/data",
        "-X PUT -d @f {url}/data",
        "-X PUT --data-binary @g {url}/data",
        "-X PUT --data-binary @- {url}/data",
        "-X PUT --json {{}} {url}/data",
        "-G -d a=b --data-urlencode c=@f {url}/data",
        "-X PUT -F field=x -F file=@f {url}/data",
        "-X PUT -F file=@g;type=text/plain {url}/data",
        "-X PUT -F file=<f {url}/data",
        "-X PUT -F file=@f,g {url}/data",
        "-X PUT -F =(;type=multipart/alternative -F =<f;encoder=base64 -F =) {url}/data",
        "--http2 -T f {url}/data",
        "-0 -T f {url}/data",
        "--tr-encoding -T f {url}/data",
    ],
)
def test_an_upload_of_curl(pair, words):
    """A PUT; as a POST it needs a key."""
    pair.on("/*", echo)
    result = pair.compare([*CURL, *words.split(" ")], FILES, stdin=TEXT)
    assert result.rc == 0 and (b"PUT /" in result.stdout or b"GET /data?" in result.stdout)
    if "-F" not in words:
        assert len(pair.bodies()) == 1
    limited, plain = pair.arrived()
    assert limited == plain + 2


@pytest.mark.parametrize(
    "words",
    ["-d text", "-d @f", "--data-binary @g", "--json {{}}", "-F file=@f", "-X POST -T f", "-X PATCH -T -"],
)
@pytest.mark.parametrize("key", [True, False])
def test_a_write_of_curl_with_and_without_a_key(pair, curtsy, tmp_path, words, key):
    pair.on("/*", echo)
    if key:
        assert pair.compare([*CURL, *KEY, *words.split(" "), "{url}/data"], FILES, stdin=TEXT).rc == 0
        assert pair.arrived() == (3, 1)
        return
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    words = [*words.replace("{{}}", "{}").split(" "), pair.limited.url("/data")]
    assert curtsy.run([*CURL, *words], stdin=TEXT, cwd=tmp_path).output == (0, b"slow down\n")
    assert len(pair.limited.arrivals()) == 1


@pytest.mark.parametrize("words", ["-T -", "-T -|-H Expect:", "-T .", "-X PUT -F f=@-"])
@pytest.mark.parametrize("size", ["small", "large"])
def test_standard_input_beyond_what_is_kept(curtsy, up, words, size):
    """It cannot be read twice: kept it is sent again, else the refusal is told.  (curl itself reads
    the whole of a form's.)"""
    curtsy.configure(QUICK)
    up.on("/*", REFUSED, echo)
    data = TEXT if size == "small" else MANY
    result = curtsy.run([*CURL, *words.replace("|", " ").split(" "), up.url("/data")], stdin=data)
    repeated = size == "small" or "-F" in words
    assert result.rc == 0
    assert (b"PUT /data" if repeated else b"slow down\n") in result.stdout
    assert len(up.arrivals()) == (2 if repeated else 1)
    if "-F" not in words:
        assert {arrival.body_sha256 for arrival in up.arrivals()} == {hashlib.sha256(data).hexdigest()}


@pytest.mark.parametrize("words", ["-T f", "-X PUT -d @f", "-X PUT -F file=@f", "-T -", "-T ."])
@pytest.mark.parametrize("status", [307, 308])
def test_a_redirected_body(pair, words, status):
    """The second hop refuses, and the whole is tried again from the first.  libcurl rewinds by itself
    what it can, and says of the rest that it could not; so it does under Curtsy."""
    moved = Answer(status, [("Location", "/new")])
    pair.on("/old", moved, refusals=())
    pair.on("/new", echo)
    result = pair.compare([*CURL, "-L", "-H", "Expect:", *words.split(" "), "{url}/old"], FILES, stdin=TEXT)
    assert result.rc == (65 if words in ("-T -", "-T .") else 0)
    if result.rc == 0:
        assert pair.arrived("/new") == (3, 1) and pair.arrived("/old") == (3, 1)


# ---- curl: downloads ----

PACKED = Answer(200, [("Content-Encoding", "gzip"), ("X-A", "b")], gzip.compress(TEXT, mtime=0))
NAMED = Answer(200, [("Content-Disposition", 'attachment; filename="name.bin"')], TEXT)
DATED = Answer(200, [("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"), ("ETag", '"1"')], TEXT)
SHOWN = " ".join(
    f"%{{{name}}}"
    for name in (
        "http_code response_code size_download size_upload size_header size_request num_redirects num_headers "
        "content_type method http_version scheme exitcode errormsg filename_effective redirect_url num_retries "
        "ssl_verify_result http_connect urlnum certs"
    ).split(" ")
)


def rest(request):
    """As a server does that knows ranges."""
    asked = re.fullmatch(r"bytes=(\d+)-", request.arrival.header("Range") or "")
    if not asked:
        return Answer(200, body=TEXT)
    first = int(asked.group(1))
    return Answer(206, [("Content-Range", f"bytes {first}-{len(TEXT) - 1}/{len(TEXT)}")], TEXT[first:])


def unless_modified(request):
    return Answer(304) if request.arrival.header("If-Modified-Since") else DATED


@pytest.mark.parametrize(
    "words, answer",
    [
        ("{url}/data", PACKED),
        ("--compressed {url}/data", PACKED),
        ("--compressed -i {url}/data", PACKED),
        ("-o file {url}/data", DATED),
        ("-o file -R {url}/data", DATED),
        ("-O {url}/data", DATED),
        ("-O -J {url}/data", NAMED),
        ("--output-dir . -O {url}/data", DATED),
        ("-o file_#1 {url}/data[1-3]", DATED),
        ("-C - -o part {url}/data", rest),
        ("-C 800 -o part {url}/data", rest),
        ("-r 8000- {url}/data", rest),
        ("--max-filesize 20000 {url}/data", DATED),
        ("--max-filesize 5 {url}/data", Answer(200, body=b"four")),
        ("--max-filesize 5 -o file {url}/data", DATED),
        ("--limit-rate 10M {url}/data", DATED),
        ("-z 1995-01-01 {url}/data", unless_modified),
        ("-z f -o file {url}/data", unless_modified),
        ("--etag-save etag {url}/data", DATED),
        ("--etag-compare etag {url}/data", DATED),
        ("-f {url}/data", DATED),
        ("--fail-with-body {url}/data", DATED),
        ("-f {url}/data", Answer(404, body=b"no such thing\n")),
        ("--fail-with-body {url}/data", Answer(404, body=b"no such thing\n")),
        ("--fail-early -f {url}/data {url}/data2", Answer(404)),
        ("-D - {url}/data", DATED),
        ("-D headers -o file {url}/data", DATED),
        ("-i {url}/data", DATED),
        ("-I {url}/data", DATED),
        ("--raw {url}/data", Answer(200, body=TEXT, framing="chunked")),
        ("-N {url}/data", Answer(200, body=TEXT, framing="close")),
        ("-L {url}/data", DATED),
        ("--http2 {url}/data", DATED),
        ("-0 {url}/data", DATED),
        ("--http0.9 {url}/data", DATED),
        ("-m 30 {url}/data", DATED),
        ("--path-as-is {url}/a/../data", DATED),
        ("--create-dirs -o a/b/file {url}/data -w %{{http_code}}", DATED),
        ("--no-keepalive -H Connection:close {url}/data", Answer(200, body=TEXT, close=True)),
        ("{url}/data {url}/data2 --next -sS -I {url}/data3", DATED),
    ],
)
def test_a_download_of_curl(pair, words, answer):
    """Refused by a body that is longer than the file may be, compressed otherwise, with other names."""
    noisy = Answer(429, [("Content-Disposition", 'attachment; filename="wrong"'), ("ETag", '"9"')], b"x" * 30_000)
    pair.on("/*", answer, refusals=[REFUSED, noisy])
    files = {"f": TEXT, "part": TEXT[:800], "etag": b'"0"\n'}
    pair.compare([*CURL, *words.split(" ")], files)
    limited, plain = pair.arrived()
    assert limited == plain + 2


@pytest.mark.parametrize("words", ["", "-T f", "-X PUT -F a=b", "-L -o file", "-f", "-I"])
def test_what_curl_tells_about_it(pair, words):
    pair.on("/*", Answer(200, [("Content-Type", "text/x"), ("X-A", "b")], b"four"))
    result = pair.compare([*CURL, "-w", literally(SHOWN + "\\n%header{x-a}"), *words.split(), "{url}/data"], FILES)
    assert "200" in result.text and pair.arrived() == (3, 1)


@pytest.mark.parametrize("flags", ["", "-f", "--fail-with-body", "-o file", "-f -o file", "-i", "-D headers"])
def test_a_refusal_for_good_is_what_it_is_without_curtsy(curtsy, up, tmp_path, flags):
    curtsy.configure(QUICK)
    seen = []
    for how in ("preload", "bare"):
        (tmp_path / how).mkdir()
        up.on("/data", REFUSED)
        result = curtsy.run([*CURL, *flags.split(), up.url("/data")], how=how, cwd=tmp_path / how)
        seen.append((result.all, contents(tmp_path / how)))
    assert seen[0] == seen[1]
    assert len(up.arrivals()) == 5 + 1


# ---- curl: cookies, credentials, proxies ----


def test_a_cookie_of_the_refusal_is_kept_and_sent(curtsy, up):
    """As a browser would."""
    curtsy.configure(QUICK)
    up.on("/data", REFUSED, Answer(200, [("Set-Cookie", "session=2")], b"in\n"))
    jar = curtsy.folder / "jar"
    assert curtsy.run([*CURL, "-b", jar, "-c", jar, up.url("/data")]).all == (0, b"in\n", b"")
    assert [arrival.header("Cookie") for arrival in up.arrivals()] == [None, "limiter=1"]
    assert "limiter\t1" in jar.read_text() and "session\t2" in jar.read_text()
    up.on("/data", b"again\n")
    assert curtsy.run([*CURL, "-b", jar, up.url("/data")]).stdout == b"again\n"
    assert sorted(up.arrivals()[-1].header("Cookie").split("; ")) == ["limiter=1", "session=2"]


class Guarded:
    """Lets nobody in without credentials, and refuses the first request of each kind."""

    def __init__(self, *schemes, refuses):
        self._schemes = [("WWW-Authenticate", scheme) for scheme in schemes]
        self._refuses = {"anonymous": refuses, "authorized": refuses}

    def __call__(self, request):
        who = "authorized" if request.arrival.authorization else "anonymous"
        if self._refuses[who]:
            self._refuses[who] -= 1
            return REFUSED
        if who == "anonymous":
            return Answer(401, self._schemes, b"who are you?\n")
        return Answer(200, body=b"welcome, with %d bytes\n" % len(request.body))


DIGEST = 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'
BASIC = 'Basic realm="r"'


@pytest.mark.parametrize("words", ["", "-T f", "-X PUT --data-binary @f", "-X PUT -F a=@f", "-o file", "-i"])
@pytest.mark.parametrize("how", ["--basic", "--digest", "--anyauth"])
def test_credentials(pair, how, words):
    """Both the question and the answer are refused once."""
    for server, refuses in ((pair.limited, 1), (pair.plain, 0)):
        server.on("/data", Guarded(DIGEST, BASIC, refuses=refuses))
    result = pair.compare([*CURL, how, "-u", "name:word", *words.split(), "{url}/data"], FILES)
    assert result.rc == 0 and (b"welcome" in result.stdout or "-o" in words)
    if words.startswith("-T") or "--data" in words:
        assert {size for _, size in pair.bodies()} <= {0, len(TEXT)}


@pytest.mark.parametrize("refuses", [0, 1])
@pytest.mark.parametrize("how", ["--basic", "--digest", "--anyauth"])
def test_credentials_and_standard_input(curtsy, up, how, refuses):
    """libcurl may have to read it twice, and says so when it cannot; what is taken is the whole of it."""
    curtsy.configure(QUICK)
    taken, guarded = [], Guarded(DIGEST, BASIC, refuses=refuses)

    def take(request):
        answer = guarded(request)
        taken.extend([request.body] if answer.status == 200 else [])
        return answer

    up.on("/data", take)
    result = curtsy.run([*CURL, how, "-u", "name:word", "-T", "-", up.url("/data")], stdin=TEXT)
    assert (result.rc, taken) in ((0, [TEXT]), (65, []))


@pytest.mark.parametrize("words", ["", "-T f", "-X PUT -d @f"])
def test_a_signature_is_made_anew(curtsy, up, tmp_path, words):
    curtsy.configure(QUICK)
    (tmp_path / "f").write_bytes(TEXT)
    up.on("/data", Answer(429, [("Retry-After", "1")]), b"in\n")
    signing = ["--aws-sigv4", "aws:amz:us-east-1:es", "-u", "key:secret"]
    assert curtsy.run([*CURL, *signing, *words.split(), up.url("/data")], cwd=tmp_path).all == (0, b"in\n", b"")
    first, second = up.arrivals()
    for arrival in (first, second):
        assert arrival.authorization and len(arrival.all_headers("X-Amz-Date")) == 1
    assert first.header("X-Amz-Date") < second.header("X-Amz-Date")
    assert first.authorization != second.authorization
    assert first.body_sha256 == second.body_sha256


@pytest.mark.parametrize("words", ["", "-T f", "-X PUT -F a=@f", "-i"])
def test_a_proxy_that_refuses(pair, words):
    """In the name of the server, as far as anybody can tell."""
    pair.on("/data", echo)
    result = pair.compare([*CURL, "-x", "{url}", *words.split(), "http://origin.test/data"], FILES)
    assert result.rc == 0 and pair.arrived() == (3, 1)


class Tunnel:
    """A proxy that knows CONNECT only, to wherever it was told."""

    def __init__(self, port):
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connects = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connects += 1
            while b"\r\n\r\n" not in client.recv(4096):
                pass
            server = socket.create_connection(("127.0.0.1", self._port))
            client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _pump(source, sink):
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.mark.parametrize("words", ["", "-T f", "-X PUT -F a=@f", "-i", "-o file"])
def test_through_a_tunnel(upstream, curtsy, certificate, tmp_path, words):
    """The server behind the proxy refuses; the proxy's own answers are shown once."""
    curtsy.configure(QUICK)
    seen = []
    (tmp_path / "f").write_bytes(TEXT)
    for how, refusals in (("preload", [REFUSED, REFUSED]), ("bare", [])):
        server = upstream(tls=certificate)
        server.on("/data", *refusals, echo)
        tunnel = Tunnel(server.port)
        command = [*CURL, "-k", "-p", "-x", tunnel.url, *words.split(), "https://origin.test/data"]
        seen.append(curtsy.run(command, how=how, cwd=tmp_path).all)
        tunnel.close()
        assert len(server.arrivals()) == len(refusals) + 1
    assert seen[0] == seen[1] and seen[0][0] == 0


def test_what_a_refusal_says_for_later_is_kept(upstream, curtsy, certificate):
    """Strict-Transport-Security and Alt-Svc of a refused response."""
    curtsy.configure(QUICK)
    server = upstream(tls=certificate)
    said = [("Strict-Transport-Security", "max-age=1000"), ("Alt-Svc", f'h2="localhost:{server.port}"; ma=1000')]
    server.on("/data", Answer(429, said), b"in\n")
    words = ["-k", "--hsts", "hsts", "--alt-svc", "services", server.url("/data", host="localhost")]
    assert curtsy.run([*CURL, *words]).output == (0, b"in\n")
    assert "localhost" in (curtsy.folder / "hsts").read_text()
    assert "localhost" in (curtsy.folder / "services").read_text()


# ---- curl: retries of its own ----


@pytest.mark.slow(3)
@pytest.mark.parametrize("words", ["", "-T f", "-X PUT --data-binary @f"])
def test_attempts_do_not_multiply(curtsy, up, tmp_path, words):
    """Curtsy's three, and then curl's own two, one attempt each."""
    curtsy.configure(QUICK + "max_attempts = 3\n")
    (tmp_path / "f").write_bytes(TEXT)
    up.on("/data", REFUSED)
    result = curtsy.run([*CURL, "--retry", "2", "--retry-delay", "1", *words.split(), up.url("/data")], cwd=tmp_path)
    assert result.rc == 0
    assert len(up.arrivals()) == 3 + 2
    if words:
        assert {arrival.body_sha256 for arrival in up.arrivals()} == {hashlib.sha256(TEXT).hexdigest()}


@pytest.mark.slow(2)
def test_a_retry_of_curl_that_succeeds(curtsy, up):
    curtsy.configure(QUICK + "max_attempts = 3\n")
    up.on("/data", *[REFUSED] * 3, b"in\n")
    retrying = [*CURL, "--retry", "2", "--retry-delay", "1", "-o", "file", up.url("/data")]
    assert curtsy.run(retrying).rc == 0
    assert (curtsy.folder / "file").read_bytes() == b"in\n"
    assert len(up.arrivals()) == 4


# ---- other programs ----

WITHOUT_DEEPBIND = """
#include <dlfcn.h>
void *dlopen(const char *name, int flags)
{
    static void *(*real)(const char *, int);
    if (!real)
        real = dlsym(RTLD_NEXT, "dlopen");
    return real(name, flags & ~RTLD_DEEPBIND);
}
"""

PHP = """
$what = $argv[1];
$easy = curl_init($argv[2]);
curl_setopt($easy, CURLOPT_RETURNTRANSFER, true);
curl_setopt($easy, CURLOPT_HTTPHEADER, ["Idempotency-Key: k"]);
if ($what == "fields") {
    curl_setopt($easy, CURLOPT_POSTFIELDS, str_repeat("0123456789abcdef", 131072));
} elseif ($what == "file") {
    curl_setopt($easy, CURLOPT_POSTFIELDS, ["field" => "x", "file" => new CURLFile("f", "text/plain", "name")]);
} elseif ($what == "string file") {
    curl_setopt($easy, CURLOPT_POSTFIELDS, ["file" => new CURLStringFile(str_repeat("x", 5000), "name")]);
} elseif ($what == "infile") {
    curl_setopt($easy, CURLOPT_UPLOAD, true);
    curl_setopt($easy, CURLOPT_INFILE, fopen("f", "r"));
    curl_setopt($easy, CURLOPT_INFILESIZE, filesize("f"));
} elseif ($what == "closure") {
    $left = 5;
    curl_setopt($easy, CURLOPT_UPLOAD, true);
    curl_setopt($easy, CURLOPT_READFUNCTION, function ($easy, $stream, $length) use (&$left) {
        return $left-- > 0 ? str_repeat("$left", 1000) : "";
    });
}
$body = curl_exec($easy);
echo curl_getinfo($easy, CURLINFO_RESPONSE_CODE), " ", curl_errno($easy), " ", $body, "\\n";
"""


@pytest.mark.skipif(not has_program("php"), reason="php is not installed")
@pytest.mark.no_sanitizer("PHP's extension is loaded with RTLD_DEEPBIND, which has to be taken away")
@pytest.mark.parametrize("what", ["fields", "file", "string file", "infile", "closure"])
def test_php(pair, curtsy, tmp_path, what):
    """Its extension goes past a preload: here a second one takes RTLD_DEEPBIND away."""
    helper = compile_library(WITHOUT_DEEPBIND, curtsy.folder / "helper.so")
    env = {"LD_PRELOAD": f"{curtsy.library}:{helper}"}
    pair.on("/data", echo)
    seen = []
    for server, more in ((pair.limited, env), (pair.plain, {})):
        folder = tmp_path / str(server.port)
        folder.mkdir()
        (folder / "f").write_bytes(TEXT)
        command = ["php", "-r", PHP, "--", what, server.url("/data")]
        seen.append(curtsy.run(command, how="preload" if more else "bare", env=more, cwd=folder).all)
    assert seen[0] == seen[1] and seen[0][1].startswith(b"200 0 P")
    assert pair.arrived() == (3, 1)


PYCURL = """
import io, pycurl, sys
what, url = sys.argv[1:]
handle, body = pycurl.Curl(), io.BytesIO()
handle.setopt(pycurl.URL, url)
handle.setopt(pycurl.WRITEDATA, body)
handle.setopt(pycurl.HTTPHEADER, ["Idempotency-Key: k"])
lines = (b"%07x\\n" % number for number in range(2000))
if what == "generator":
    handle.setopt(pycurl.UPLOAD, 1)
    handle.setopt(pycurl.READFUNCTION, lambda length: next(lines, b""))
elif what == "generator of known size":
    handle.setopt(pycurl.UPLOAD, 1)
    handle.setopt(pycurl.READFUNCTION, lambda length: next(lines, b""))
    handle.setopt(pycurl.INFILESIZE, 16000)
elif what == "file":
    handle.setopt(pycurl.UPLOAD, 1)
    handle.setopt(pycurl.READDATA, open("f", "rb"))
elif what == "post":
    handle.setopt(pycurl.POST, 1)
    handle.setopt(pycurl.POSTFIELDSIZE, 16000)
    handle.setopt(pycurl.READDATA, open("f", "rb"))
elif what == "fields":
    handle.setopt(pycurl.POSTFIELDS, "a=b&c=d")
elif what == "form":
    handle.setopt(pycurl.HTTPPOST, [("field", "x"), ("file", (pycurl.FORM_FILE, "f"))])
elif what == "buffer":
    handle.setopt(pycurl.HTTPPOST, [("file", (pycurl.FORM_BUFFER, "name", pycurl.FORM_BUFFERPTR, b"text" * 500))])
handle.perform()
print(handle.getinfo(pycurl.RESPONSE_CODE), body.getvalue().decode())
"""


@pytest.mark.parametrize("what", ["generator", "generator of known size", "file", "post", "fields", "form", "buffer"])
def test_pycurl(pair, what):
    pair.on("/data", echo)
    result = pair.compare(["/usr/bin/python3", "-c", literally(PYCURL), what, "{url}/data"], FILES)
    assert result.text.startswith("200 P") and pair.arrived() == (3, 1)


@pytest.mark.skipif(not has_program("cmake"), reason="cmake is not installed")
@pytest.mark.no_sanitizer("it takes cmake's own memory for its own")
def test_an_upload_of_cmake(pair):
    pair.on("/data", echo)
    script = 'file(UPLOAD f "${url}" STATUS status LOG log)\nmessage("${status}")\n'
    files = {**FILES, "send.cmake": script.encode()}
    result = pair.compare(["cmake", "-Durl={url}/data", "-P", "send.cmake"], files)
    assert '0;"No error"' in result.errors and pair.arrived() == (3, 1)
    assert pair.bodies() == {(hashlib.sha256(TEXT).hexdigest(), len(TEXT))}
