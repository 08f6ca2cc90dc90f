# SPDX-License-Identifier: MIT
"""Where nothing is limited, nothing changes: a program's output, files, exit code and requests are
the same with the library and without it, byte for byte."""

import gzip
import os
import re
import subprocess

import pytest

import http2
from harness import has_program
from upstream import Answer, Upstream

TEXT = b"The quick brown fox jumps over the lazy dog.\n" * 20
CHALLENGE = [("WWW-Authenticate", 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5')]


def name_it(request) -> Answer:
    return Answer(200, [("Content-Type", "text/plain")], f"{request.arrival.method} {request.path}\n".encode())


def serve(up: Upstream) -> None:
    """All that the cases below ask for, from its beginning."""
    up.on("*", name_it)
    up.on("/text", Answer(200, [("ETag", '"v1"'), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")], TEXT))
    up.on("/echo", lambda request: Answer(200, [], request.body))
    up.on("/length", lambda request: Answer(200, [], b"%d" % len(request.body)))
    up.on("/chunked", Answer(200, [("X-A", "1"), ("X-A", "2")], TEXT, framing="chunked", pieces=7))
    up.on("/close", Answer(200, [], TEXT, framing="close"))
    up.on("/slow", Answer(200, [], TEXT, pieces=4, piece_delay=0.1))
    up.on("/gzip", Answer(200, [("Content-Encoding", "gzip")], gzip.compress(TEXT, mtime=0)))
    up.on("/range", Answer(206, [("Content-Range", "bytes 0-3/900")], TEXT[:4]))
    up.on("/rest", Answer(206, [("Content-Range", "bytes 10-899/900")], TEXT[10:]))
    up.on("/empty", Answer(204))
    up.on("/fresh", Answer(304, [("ETag", '"v1"')]))
    up.on("/cookie", Answer(200, [("Set-Cookie", "a=b; Path=/"), ("Set-Cookie", "c=d; Path=/")], b"set\n"))
    up.on("/named", Answer(200, [("Content-Disposition", 'attachment; filename="given"')], TEXT))
    up.on("/digest", Answer(401, CHALLENGE, b"who?\n"), Answer(200, [], b"welcome\n"))
    up.on("/hints", Answer(200, [], b"x", before=[Answer(103, [("Link", "</a>")], framing="none")]))
    for status in (301, 302, 303, 307, 308):
        up.on(f"/to/{status}", Answer(status, [("Location", "/text")], b"moved\n"))
        up.on(f"/echo/{status}", Answer(status, [("Location", "/echo")], b"moved\n"))
    up.on("/loop", Answer(302, [("Location", "/loop")]))
    for status in (400, 401, 403, 404, 500):
        up.on(f"/{status}", Answer(status, [], b"the reason\n"))
    up.on("/reset", Answer(drop="body", reset=True))
    up.on("/nothing", Answer(drop="body"))
    up.on("/partial", Answer(200, [], TEXT, cut_body=100))
    up.on("/garbage", Answer(raw=b"garbage\r\n\r\n"))
    up.on("/silent", Answer(silent=True))
    up.on("/expect", Answer(413, [], b"too large\n", read_body=False))
    up.on("origin.test:80", Answer(200, framing="none"))
    up.on("refused.test:80", Answer(403, [], b"no\n"))


VARIABLES = (
    "%{http_code} %{http_connect} %{num_connects} %{num_headers} %{num_redirects} %{size_download} %{size_header} "
    "%{size_request} %{size_upload} %{url_effective} %{content_type} %{method} %{scheme} %{exitcode} %{errormsg} "
    "%{redirect_url} %{remote_ip} %{http_version} %{filename_effective} %{header_json}\\n"
)

# Each a command line, with {} for the server's address; FILE, REST and CONFIG are in its folder.
CASES = """
{}/text
-i {}/text
-I {}/text
-i -I {}/404
-v {}/text
-v -L {}/to/302
-i {}/chunked
--raw -i {}/chunked
{}/close
-N {}/slow
--limit-rate 20k {}/text
-L {}/to/301
-i -L {}/to/302
-L --max-redirs 3 {}/loop
-L -d data {}/echo/301
-L -d data {}/echo/302
-L -d data {}/echo/303
-L -d data {}/echo/307
-L -d data {}/echo/308
-L --post301 --post302 -d data {}/echo/302
-L -T FILE {}/echo/307
-L -X PUT -d data {}/echo/308
-f {}/404
-f {}/text {}/500 {}/text
--fail-early -f {}/404 {}/text
--fail-with-body {}/403
-d a=b -d c=d {}/echo
-d @FILE {}/echo
--data-binary @FILE {}/echo
--data-urlencode x=%&= {}/echo
-G -d a=b {}/text
--json {"a":1} {}/echo
-F a=b -F file=@FILE {}/length
-F a=@- {}/length
-T FILE {}/echo
-T FILE -H Expect:100-continue {}/echo
-T FILE -H Expect:100-continue -i {}/expect
-T - {}/echo
-T . {}/echo
-H Transfer-Encoding:chunked -d data {}/echo
-X DELETE {}/any
-X OPTIONS -i {}/any
-X PATCH -d x {}/echo
--compressed -i {}/gzip
-H Accept-Encoding:gzip -o out {}/gzip
-r 0-3 {}/range
-C - -o REST {}/rest
-C 10 -o out {}/rest
-z 1994-11-06 {}/fresh
--etag-save etag -o out {}/text
--etag-compare FILE {}/fresh
-i {}/empty
-i {}/fresh
-i {}/hints
-c jar -b x=y {}/cookie {}/any
-c - {}/cookie
-u user:password -i {}/text
--digest -u user:password -i {}/digest
--anyauth -u user:password -i {}/digest
--netrc-file CONFIG {}/text
-e http://referer.test/ -A agent/1 -H X-Custom:1 -H Accept: {}/text
-x {} http://origin.test/text
-x {} -I http://origin.test/text
-p -x {} http://origin.test/text
-p -x {} -i http://origin.test/text
-p -x {} http://refused.test/text
-x {} -U user:password http://origin.test/text
-o out {}/text
-O {}/text
-O -J {}/named
-R -o out {}/text
--create-dirs -o a/b/out {}/text
-o out -w VARIABLES {}/text
-L -w VARIABLES {}/to/302
-w VARIABLES {}/reset
-D headers -o out {}/to/301
-D - {}/text
{}/a {}/b {}/c
{}/[1-4]
-o #1 {}/{x,y}
{}/a --next -d b {}/echo --next -I {}/text
-K CONFIGURATION
--http1.0 {}/text
-0 -d data {}/echo
--ignore-content-length {}/close
--path-as-is {}/../a
--connect-to other.test:80:ADDRESS http://other.test/text
--resolve other.test:PORT:127.0.0.1 http://other.test:PORT/text
--max-filesize 10 {}/text
--max-filesize 10 {}/chunked
-m 1 {}/silent
--max-time 0.5 -d x {}/silent
-y 1 -Y 100000 {}/silent
{}/reset
-d x {}/reset
{}/nothing
{}/partial
{}/garbage
--http0.9 {}/garbage
-S --no-progress-meter {}/text
--stderr errors {}/404 -f
http://127.0.0.1:1/
--connect-timeout 1 http://127.0.0.1:1/
http://user@
http://bad^host/
-m 1 https://{plain}/text
file:///etc/hostname
file:///nonexistent
ftp://127.0.0.1:1/file
-m 1 ftp://{plain}/file
dict://127.0.0.1:1/d:x
ws://{plain}/text
gopher://127.0.0.1:1/
nosuch://127.0.0.1/
-x http://127.0.0.1:1 http://origin.test/text
-x socks5://127.0.0.1:1 http://origin.test/text
""".strip().splitlines()

# What differs from run to run without Curtsy too.
VARYING = [
    (rb"after \d+ ms", b"after N ms"),
    (rb"after \d+ milliseconds", b"after N milliseconds"),
    (rb"-{24}[0-9a-f]{16}", b"BOUNDARY"),
    (rb"0x[0-9a-f]+", b"POINTER"),  # of -v
    (rb"[{}] \[\d+ bytes data\]\n", b""),  # of -v: how the bytes happened to come in
    (rb"(?s)  % Total .*", b""),  # a meter that `-T .` shows even with -s
]


def words_of(case, up, folder):
    configuration = folder / "CONFIGURATION"
    configuration.write_text(f'url = "{up.url("/text")}"\nuser-agent = configured\n')
    (folder / "CONFIG").write_text("machine 127.0.0.1 login user password secret\n")
    (folder / "FILE").write_bytes(b"0123456789" * 50)
    (folder / "REST").write_bytes(TEXT[:10])
    for word in case.split(" "):
        word = word.replace("{}", up.url("").rstrip("/")).replace("{plain}", up.authority)
        word = word.replace("VARIABLES", VARIABLES).replace("ADDRESS", up.authority).replace("PORT", str(up.port))
        yield word


def seen(curtsy, up, folder, case, how):
    folder.mkdir()
    serve(up)
    before = len(up.arrivals())
    words = list(words_of(case, up, folder))
    result = curtsy.run(["curl", "-sS", *words], how=how, cwd=folder, stdin=b"from standard input")
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {
        "rc": result.rc,
        "stdout": stable(result.stdout),
        "stderr": stable(result.stderr),
        "files": {name: stable(content) for name, content in files.items()},
        "requests": [request(arrival) for arrival in up.arrivals()[before:]],
    }


def stable(data):
    for pattern, replacement in VARYING:
        data = re.sub(pattern, replacement, data)
    return data


def request(arrival):
    # A client's nonce is drawn anew for each answer to a Digest challenge.
    nonce = "Authorization" if arrival.path == "/digest" else None
    headers = [(name, name == nonce or stable(value.encode())) for name, value in arrival.headers]
    drawn = any(b"BOUNDARY" in value for name, value in headers if name != nonce)
    return arrival.method, arrival.target, headers, arrival.body_length, drawn or arrival.body_sha256


@pytest.mark.slow(1)
@pytest.mark.parametrize("case", CASES)
def test_curl(up, curtsy, tmp_path, case):
    bare = seen(curtsy, up, tmp_path / "bare", case, "bare")
    governed = seen(curtsy, up, tmp_path / "governed", case, "preload")
    assert governed == bare


def test_curl_with_an_unknown_host(curtsy):
    words = ["curl", "-sS", "--resolve", "other.test:80:127.0.0.1", "-m", "20", "http://nowhere.invalid/"]
    assert curtsy.run(words).all == curtsy.bare(words).all


def test_curl_under_curtsy_run(up, curtsy, tmp_path):
    bare = seen(curtsy, up, tmp_path / "bare", "-i -L {}/to/302", "bare")
    assert seen(curtsy, up, tmp_path / "governed", "-i -L {}/to/302", "run") == bare


def test_parallel_transfers(up, curtsy, tmp_path):
    """Their order is curl's affair; each of them arrives once and whole."""
    serve(up)
    urls = [up.url(f"/{number}") for number in range(12)]
    words = ["-Z", "--parallel-max", "4", *urls]
    outputs = [sorted(curtsy.run(["curl", "-sS", *words], how=how).stdout.splitlines()) for how in ("bare", "preload")]
    assert outputs[0] == outputs[1] and len(outputs[0]) == 12


def test_ipv6_and_unix_sockets(upstream, curtsy, tmp_path):
    try:
        six = upstream(host="::1")
    except OSError:
        pytest.skip("no IPv6 on loopback")
    path = os.fspath(tmp_path / "socket")
    local = upstream(unix=path)
    serve(six), serve(local)
    for words in (["-i", six.url("/text")], ["-i", "--unix-socket", path, "http://localhost/text"]):
        governed, bare = curtsy.curl(*words), curtsy.bare(["curl", "-sS", *words])
        assert governed.all == bare.all and governed.rc == 0


def test_tls(upstream, curtsy, certificate):
    server = upstream(tls=certificate)
    serve(server)
    for words in (["-k", "-i"], ["--cacert", certificate[1]], []):
        command = ["curl", "-sS", *words, server.url("/text")]
        governed, bare = curtsy.run(command), curtsy.bare(command)
        assert governed.all == bare.all


@pytest.mark.skipif(not http2.available(), reason="nghttpd is not installed")
@pytest.mark.parametrize("version", ["cleartext", "tls"])
def test_http2(curtsy, certificate, tmp_path, version):
    (tmp_path / "file").write_bytes(TEXT)
    with http2.Http2(tmp_path, certificate if version == "tls" else None) as server:
        words = ["-k" if version == "tls" else "--http2-prior-knowledge", "-w%{http_version}"]
        for path in ("/file", "/missing"):
            command = ["curl", "-sS", *words, server.url(path)]
            governed, bare = curtsy.run(command), curtsy.bare(command)
            assert governed.all == bare.all and governed.stdout.endswith(b"2")
        assert server.paths() == ["/file"] * 2 + ["/missing"] * 2


# ---- other programs ----

PYCURL = """
import io, pycurl, sys
for url in sys.argv[1:]:
    easy, body = pycurl.Curl(), io.BytesIO()
    easy.setopt(easy.URL, url)
    easy.setopt(easy.WRITEDATA, body)
    easy.setopt(easy.FOLLOWLOCATION, True)
    try:
        easy.perform()
    except pycurl.error as error:
        print(error.args[0])
    print(easy.getinfo(easy.RESPONSE_CODE), body.getvalue())
    easy.close()
"""


def has_pycurl():
    return subprocess.run(["/usr/bin/python3", "-c", "import pycurl"], capture_output=True).returncode == 0


@pytest.mark.skipif(not has_pycurl(), reason="pycurl is not installed")
def test_pycurl(up, curtsy):
    serve(up)
    command = ["/usr/bin/python3", "-c", PYCURL] + [up.url(path) for path in ("/text", "/to/302", "/404", "/nothing")]
    governed, bare = curtsy.run(command), curtsy.bare(command)
    assert governed.all == bare.all and governed.rc == 0


PYCURL_MULTI = """
import io, pycurl, sys
multi, bodies, handles = pycurl.CurlMulti(), [], []
for url in sys.argv[1:]:
    easy = pycurl.Curl()
    bodies.append(io.BytesIO())
    handles.append(easy)
    easy.setopt(easy.URL, url)
    easy.setopt(easy.WRITEDATA, bodies[-1])
    multi.add_handle(easy)
while multi.perform()[1]:
    multi.select(1.0)
print(sorted(body.getvalue() for body in bodies), [len(part) for part in multi.info_read()[1:]])
"""


@pytest.mark.skipif(not has_pycurl(), reason="pycurl is not installed")
def test_pycurl_multi(up, curtsy):
    serve(up)
    command = ["/usr/bin/python3", "-c", PYCURL_MULTI] + [up.url(path) for path in ("/a", "/b", "/to/302", "/404")]
    governed, bare = curtsy.run(command), curtsy.bare(command)
    assert governed.all == bare.all and governed.rc == 0


PHP = """
foreach (array_slice($argv, 1) as $url) {
    $easy = curl_init($url);
    curl_setopt($easy, CURLOPT_RETURNTRANSFER, true);
    curl_setopt($easy, CURLOPT_FOLLOWLOCATION, true);
    $body = curl_exec($easy);
    echo curl_getinfo($easy, CURLINFO_RESPONSE_CODE), " ", curl_errno($easy), " ", $body, "\\n";
}
"""


@pytest.mark.skipif(not has_program("php"), reason="php is not installed")
@pytest.mark.no_sanitizer("it refuses libraries that are loaded with RTLD_DEEPBIND")
def test_php(up, curtsy):
    serve(up)
    command = ["php", "-r", PHP, "--"] + [up.url(path) for path in ("/text", "/to/302", "/404", "/nothing")]
    governed, bare = curtsy.run(command), curtsy.bare(command)
    assert governed.all == bare.all and governed.rc == 0


@pytest.mark.skipif(not has_program("git"), reason="git is not installed")
def test_git_over_http(up, curtsy, tmp_path):
    """A repository served as plain files, cloned and compared."""
    repository, env = tmp_path / "repository", {"GIT_CONFIG_NOSYSTEM": "1"}
    script = (
        "git init -q . && git -c user.name=n -c user.email=e@x commit -q --allow-empty -m one && "
        "echo content > file && git add file && git -c user.name=n -c user.email=e@x commit -q -m two && "
        "git tag v1 && git update-server-info"
    )
    repository.mkdir()
    assert curtsy.bare(["sh", "-c", script], cwd=repository, env=env).rc == 0

    def file(request):
        path = repository / ".git" / request.path.removeprefix("/r/")
        return Answer(200, [], path.read_bytes()) if path.is_file() else Answer(404)

    up.on("/r/*", file)
    listing = ["git", "ls-remote", up.url("/r")]
    governed, bare = curtsy.run(listing, env=env), curtsy.bare(listing, env=env)
    assert governed.all == bare.all and b"refs/tags/v1" in governed.stdout
    clone = curtsy.run(["git", "clone", "-q", up.url("/r"), "clone"], env=env)
    assert clone.all == (0, b"", b"")
    assert (curtsy.folder / "clone" / "file").read_bytes() == b"content\n"
