# SPDX-License-Identifier: MIT
"""What a program can tell of a transfer: nothing but what bare libcurl would have told.

tests/victims/witness.c records each call of each callback, with its arguments and what getinfo says
at that moment, and afterwards all that getinfo and the header API know.  Each case below is run

  - under Curtsy with nothing to limit: the record is bare libcurl's;
  - where the server refuses first: it is bare libcurl's with a server that answers at once;
  - where the server always refuses: it is bare libcurl's with one refusal.

What may differ is in the tables at the beginning, and nowhere else; curtsy(7) tells the same."""

import dataclasses
import difflib
import gzip
import re

import pytest

import http2
from http2_script import ScriptedHttp2
from upstream import Answer

# What may differ from bare libcurl, by lines of the record, and why.
#
# Where there was more than one attempt:
EACH_ATTEMPT = {
    r"debug (for|in all)": "the debug callback is told of each attempt, as it is made to debug",
    r"(opensocket|sockopt|closesocket|prereq|resolver|ssl) for": "each attempt may make a connection",
    r"hsts read for": "libcurl asks at the start of each",
    r"progress: (to upload|uploaded)": "an upload begins again",
}
LAST_ALONE = {r"info (NUM_CONNECTS|REQUEST_SIZE)": "they are the last attempt's, which needed no connection of its own"}
WRITES = {
    r"info (NUM_CONNECTS|LASTSOCKET|ACTIVESOCKET)|closesocket": "a write is repeated on a connection of its own, or"
    " libcurl might repeat it by itself"
}
REPLAYED = {r"(read|seek|ioctl) for": "a redirect within a repeat is given what is kept of the body"}
KEPT_BEFORE = {
    r"  status|  so far|progress for": "the connection or the handle has kept a tunnel or a challenge from the attempt"
    " before, so that it does not come again and is not told of"
}
# In any case:
HELD = {
    r"  so far": "of a response that was held until it was decided getinfo tells the whole header block, and the body"
    " if that was held, too; and with CURLOPT_HEADER libcurl knows a line once it has given it to us"
}
PAUSED = {
    r"\w+ of request|no such index": "what comes while a program pauses libcurl brings again in one piece, takes it for"
    " one header, and notes that anew each time; Curtsy takes it apart, so that the program may pause more often"
}


# ---- the record ----


def record(curtsy, up, words, how):
    """Its lines, with what differs from run to run without Curtsy too made equal."""
    result = curtsy.run([curtsy.victim("witness"), *(fill(word, up) for word in words)], how=how)
    assert result.rc == 0 and not result.stderr, result.errors
    text = re.sub(rf"\b{up.port}\b", "PORT", result.text)
    for pattern, replacement in VARYING:
        text = re.sub(pattern, replacement, text)
    return text.splitlines()


VARYING = [
    (r"after \d+ (ms|milliseconds)", r"after N \1"),
    (r"-{24}[0-9a-f]{16}", "BOUNDARY"),
    (r"0x[0-9a-f]{6,}", "POINTER"),
    (r"\bdate(: |=)\w+, [\w :]+ GMT", r"date\1now"),
    (r'cnonce=\\?"[^"]*"', "cnonce"),
    (r'response=\\?"[^"]*"', "response"),
]


def fill(word, up):
    return word.replace("{}", up.url("")).replace("{port}", str(up.port))


def compare(expected, found, *exceptions):
    dropped = re.compile("|".join(pattern for table in exceptions for pattern in table) or "$^")
    one, other = ([line for line in lines if not dropped.match(line)] for lines in (expected, found))
    if one != other:
        difference = difflib.unified_diff(one, other, "bare", "under Curtsy", lineterm="", n=4)
        pytest.fail("\n".join(difference), pytrace=False)


def transfers(lines):
    """For each: what its callbacks told, and what was told after it."""
    starts = [at for at, line in enumerate(lines) if line == "perform"] + [len(lines)]
    for start, end in zip(starts, starts[1:]):
        result = next(at for at in range(start, end) if lines[at].startswith("result"))
        yield lines[start:result], lines[result:end]


def pieces(lines):
    """The same bytes, in whatever pieces: libcurl runs together what comes while a program pauses."""
    texts = {"header": "", "body": ""}
    for line, verdict in zip(lines, [*lines[3:], *[""] * 3]):
        kind = line.partition(" ")[0]
        if kind in texts and verdict != "  which pauses":
            texts[kind] += line.partition('"')[2][:-1]
    return list(texts.values())


# ---- the cases ----


@dataclasses.dataclass(frozen=True)
class Case:
    words: tuple  # before "perform"; {} is the server
    answers: dict  # by path
    at: tuple = ("/data", 0)  # where a refusal comes: before that answer of that path
    then: tuple = ("perform",)
    repeated: bool = True  # may it be?

    @property
    def pauses(self):
        return any(word.endswith("=pause") for word in self.words)

    @property
    def ends_itself(self):
        return any(word.endswith(("=refuse", "=short")) for word in self.words)

    @property
    def writes(self):
        return re.search("put|post|POST|mime|form|DELETE", str(self.words))

    @property
    def shows_headers(self):
        return "HEADER=1" in self.words

    @property
    def keeps(self):
        """Has a connection or a handle something before the refusal that the next attempt needs no more?"""
        return "HTTPPROXYTUNNEL=1" in self.words or self.at[0] == "/data" and self.at[1] > 0


def get(*words, at=("/data", 0), then=("perform",), repeated=True, **answers):
    answers = {"/" + name: answer if isinstance(answer, list) else [answer] for name, answer in answers.items()}
    return Case(("URL={}/data", *words), {"/data": [OK], **answers}, at, tuple(then), repeated)


def raw(head, *rest, **more):
    return Answer(raw=head.replace(b"\n", b"\r\n") + b"".join(rest), **more)


OK = Answer(200, [("X-Mark", "1"), ("Content-Type", "text/plain"), ("X-Mark", "2")], b"the answer\n")
ECHO = lambda request: Answer(200, [("Content-Type", "text/echo")], b"%d" % len(request.body))  # noqa: E731
TEXT = b"The quick brown fox jumps over the lazy dog.\n" * 20
GZIP = [("Content-Encoding", "gzip")]
MODIFIED = [("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")]
COOKIES = [("Set-Cookie", "a=b; Path=/"), ("Set-Cookie", "c=d")]
TRAILERS = b"HTTP/1.1 %d Status\nTransfer-Encoding: chunked\nConnection: close\nX-A: b\n\n5\nhello\n0\nX-Trail: 1\n\n"
HINT = Answer(103, [("Link", "</a>")], framing="none")
DIGEST = Answer(401, [("WWW-Authenticate", 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5')], b"who?\n")
BASIC = Answer(401, [("WWW-Authenticate", 'Basic realm="r"')], b"who?\n")
PROXY_BASIC = Answer(407, [("Proxy-Authenticate", 'Basic realm="r"')], b"who?\n")
TUNNEL = Answer(200, [("X-Proxy", "1")], framing="none")
KEY = "HTTPHEADER=Idempotency-Key: k"
ELSEWHERE = "RESOLVE=other.test:{port}:127.0.0.1"


def moved(status, to="/to", **more):
    return Answer(status, [("Location", to), ("X-Hop", "1")], b"moved\n", **more)


def elsewhere(status):
    return lambda request: moved(status, f"http://other.test:{request.arrival.header('Host').split(':')[1]}/to")


def tunnel(*words, connect=None, **more):
    case = get("PROXY={}", "HTTPPROXYTUNNEL=1", *words, **more)
    words = tuple(word.replace("URL={}", "URL=http://origin.test") for word in case.words)
    return dataclasses.replace(case, words=words, answers={**case.answers, "origin.test:80": connect or [TUNNEL]})


GETS = {
    "small": get(),
    "large": get(data=Answer(200, [("ETag", '"v"')], TEXT * 400)),
    "empty": get(data=Answer(200)),
    "chunked": get(data=Answer(200, [], TEXT[:900], framing="chunked", pieces=3)),
    "to the end": get(data=Answer(200, [], TEXT, framing="close")),
    "trailers": get(data=raw(TRAILERS % 200)),
    "hints": get(data=Answer(200, [], b"x", before=[HINT, Answer(100, framing="none")])),
    "head": get("NOBODY=1"),
    "nothing": get(data=Answer(204, [("X-A", "1")])),
    "fresh": get(data=Answer(304, [("ETag", '"v"')])),
    "missing": get(data=Answer(404, [("Content-Type", "text/html")], b"missing\n")),
    "missing, failing": get("FAILONERROR=1", data=Answer(404, [], b"missing\n")),
    "failing": get("FAILONERROR=1"),
    "headers in the body": get("HEADER=1"),
    "range": get("RANGE=0-3", data=Answer(206, [("Content-Range", "bytes 0-3/900")], TEXT[:4])),
    "resumed": get("RESUME_FROM=3", data=Answer(206, [("Content-Range", "bytes 3-899/900")], TEXT[3:900])),
    "resumed in vain": get("RESUME_FROM=3"),
    "beyond the end": get("RESUME_FROM=999", data=Answer(416, [("Content-Range", "bytes */900")])),
    "too large": get("MAXFILESIZE=300", data=Answer(200, [], TEXT)),
    "not too large": get("MAXFILESIZE=300"),
    "since": get("TIMECONDITION=1", "TIMEVALUE=784111777", data=Answer(304, MODIFIED)),
    "since, unmet": get("TIMECONDITION=1", "TIMEVALUE=784111777", "FILETIME=1", data=Answer(200, MODIFIED, TEXT)),
    "compressed": get("ACCEPT_ENCODING=gzip", data=Answer(200, GZIP, gzip.compress(TEXT, mtime=0))),
    "badly compressed": get("ACCEPT_ENCODING=gzip", data=Answer(200, GZIP, b"nonsense")),
    "raw": get("HTTP_TRANSFER_DECODING=0", data=Answer(200, [], TEXT[:90], framing="chunked", pieces=3)),
    "raw content": get(
        "HTTP_CONTENT_DECODING=0", "ACCEPT_ENCODING=gzip", data=Answer(200, GZIP, gzip.compress(TEXT, mtime=0))
    ),
    "its own words": get("CUSTOMREQUEST=DELETE", "USERAGENT=witness", "REFERER=http://a/", "HTTPHEADER=X-A: 1|Accept:"),
    "HTTP/1.0": get("HTTP_VERSION=1"),
    "answered by HTTP/1.0": get(data=raw(b"HTTP/1.0 200 OK\nX-A: b\n\nhello")),
    "HTTP/0.9": get("HTTP09_ALLOWED=1", data=raw(b"garbage\n\n")),
    "HTTP/0.9, not allowed": get(data=raw(b"garbage\n\n")),
    "cookies": get(
        "COOKIELIST=Set-Cookie: b=c; domain=127.0.0.1; path=/", "COOKIE=x=y",
        data=Answer(200, COOKIES, b"set\n"), then=("perform", "perform"),
    ),
    "a cookie file": get("COOKIEFILE=", data=Answer(200, COOKIES, b"set\n"), then=("perform", "perform")),
    "a URL handle": get("URL=NULL", "curlu={}/data?query"),
    "the older progress callback": get("old-progress"),
    "several on a handle": get(
        then="perform URL={}/more NOBODY=1 perform reset infos callbacks URL={}/data perform".split(" "),
        more=Answer(200, [("X-More", "1")]),
    ),
    "certificates asked for": get("CERTINFO=1"),
}  # fmt: skip

REDIRECTS = {
    "redirected, not followed": get(data=moved(302)),
    **{
        f"{status} {name}": get("FOLLOWLOCATION=1", "AUTOREFERER=1", *words, data=moved(status), to=ECHO)
        for status in (301, 302, 303, 307, 308)
        for name, words in {"for a GET": (), "for a POST": ("COPYPOSTFIELDS=data", KEY)}.items()
    },
    "kept a POST": get("FOLLOWLOCATION=1", "POSTREDIR=7", "COPYPOSTFIELDS=data", KEY, data=moved(302), to=ECHO),
    "to another host": get("FOLLOWLOCATION=1", "USERPWD=u:p", ELSEWHERE, data=elsewhere(302), to=OK),
    "to another host with its credentials": get(
        "FOLLOWLOCATION=1", "USERPWD=u:p", "UNRESTRICTED_AUTH=1", ELSEWHERE, data=elsewhere(302), to=OK
    ),
    "refused after a redirect": get("FOLLOWLOCATION=1", data=moved(302), to=OK, at=("/to", 0)),
    "refused elsewhere": get("FOLLOWLOCATION=1", ELSEWHERE, data=elsewhere(302), to=OK, at=("/to", 0)),
    "refused after two redirects": get(
        "FOLLOWLOCATION=1", data=moved(302), to=moved(307, "/end"), end=OK, at=("/end", 0)
    ),
    "redirected with a hint": get("FOLLOWLOCATION=1", data=moved(302, before=[HINT]), to=OK, at=("/to", 0)),
    "too many redirects": get("FOLLOWLOCATION=1", "MAXREDIRS=2", data=moved(302, "/data")),
    "redirected, failing": get("FOLLOWLOCATION=1", "FAILONERROR=1", data=moved(302), to=Answer(404, [], b"no\n")),
    "redirected to what is not allowed": get("FOLLOWLOCATION=1", data=moved(302, "ftp://127.0.0.1:1/")),
    "redirected, headers in the body": get("FOLLOWLOCATION=1", "HEADER=1", data=moved(302), to=OK),
    "redirected, a body that is streamed": get("FOLLOWLOCATION=1", "put=300", "seekable", data=moved(307), to=ECHO),
    "redirected, a body that is streamed again by ioctl": get(
        "FOLLOWLOCATION=1", "put=300", "ioctl", data=moved(307), to=ECHO
    ),
    "redirected, a body that cannot be sent again": get("FOLLOWLOCATION=1", "put=300", data=moved(307), to=ECHO),
}  # fmt: skip

AUTHENTICATED = {
    "basic": get("HTTPAUTH=1", "USERPWD=u:p"),
    "basic, told to": get("HTTPAUTH=-17", "USERPWD=u:p", data=[BASIC, OK]),
    "digest": get("HTTPAUTH=2", "USERPWD=u:p", data=[DIGEST, OK]),
    "digest, refused after the challenge": get("HTTPAUTH=2", "USERPWD=u:p", data=[DIGEST, OK], at=("/data", 1)),
    "digest, streamed": get("HTTPAUTH=2", "USERPWD=u:p", "put=300", "seekable", data=[DIGEST, ECHO]),
    "wrong password": get("HTTPAUTH=2", "USERPWD=u:p", data=[DIGEST, DIGEST]),
    "nobody asked": get("HTTPAUTH=-17", "USERPWD=u:p"),
    "bearer": get("HTTPAUTH=64", "XOAUTH2_BEARER=token"),
}

PROXIES = {
    "through a proxy": dataclasses.replace(get("PROXY={}"), words=("PROXY={}", "URL=http://origin.test/data")),
    "a proxy that asks": get("PROXY={}", "PROXYAUTH=-17", "PROXYUSERPWD=u:p", data=[PROXY_BASIC, OK]),
    "tunnel": tunnel(),
    "tunnel, failing": tunnel("FAILONERROR=1"),
    "tunnel, headers in the body": tunnel("HEADER=1"),
    "tunnel, quiet": tunnel("SUPPRESS_CONNECT_HEADERS=1"),
    "tunnel, quiet, headers in the body": tunnel("SUPPRESS_CONNECT_HEADERS=1", "HEADER=1"),
    "tunnel, refused": tunnel(repeated=False, connect=[Answer(403, [("X-Proxy", "1")], b"no\n")]),
    "tunnel, asked": tunnel("PROXYAUTH=-17", "PROXYUSERPWD=u:p", connect=[PROXY_BASIC, TUNNEL]),
    "tunnel, challenged": tunnel("HTTPAUTH=2", "USERPWD=u:p", data=[DIGEST, OK]),
}

BODIES = {
    "POSTFIELDS": get("POSTFIELDS=some data", KEY, data=ECHO),
    "COPYPOSTFIELDS": get("COPYPOSTFIELDS=some data", KEY, data=ECHO),
    "a large POST": get("COPYPOSTFIELDS=" + "x" * 70_000, KEY, data=ECHO),
    "a POST without key": get("COPYPOSTFIELDS=some data", data=ECHO, repeated=False),
    "an empty POST": get("POSTFIELDS=", KEY, data=ECHO),
    "MIMEPOST": get("mime=value", KEY, data=ECHO),
    "HTTPPOST": get("form=value", KEY, data=ECHO),
    "a streamed POST": get("post=3000", KEY, data=ECHO),
    "a streamed POST that can seek": get("post=3000", "seekable", KEY, data=ECHO),
    "PUT": get("put=3000", data=ECHO),
    "PUT that can seek": get("put=3000", "seekable", data=ECHO),
    "a large PUT": get("put=300000", data=ECHO),
    "an empty PUT": get("put=0", data=ECHO),
    "a chunked PUT": get("put-chunked=3000", data=ECHO),
    "a chunked PUT with trailers": get(
        "put-chunked=3000", "trailers", "HTTPHEADER=Trailer: X-Trail", data=ECHO, repeated=False
    ),
    "an expected PUT": get("put=3000", "HTTPHEADER=Expect: 100-continue", data=ECHO),
    "an unexpected PUT": get(
        "put=3000", "HTTPHEADER=Expect: 100-continue", data=Answer(413, [], b"no\n", read_body=False), repeated=False
    ),
    "a resumed PUT": get("put=3000", "seekable", "RESUME_FROM=1000", data=ECHO),
}  # fmt: skip

PAUSING = {
    "each header": get("header=pause", "progress=continue"),
    "the second header": get("header:2=pause", "progress=continue"),
    "the body": get("body=pause", "progress=continue"),
    "a body in chunks": get(
        "body=pause", "progress=continue", data=Answer(200, [], TEXT[:90], framing="chunked", pieces=3)
    ),
    "headers and body": get("header=pause", "body=pause", "progress=continue"),
    "headers in the body": get("HEADER=1", "body=pause", "progress=continue"),
    "after a redirect": get(
        "FOLLOWLOCATION=1", "header:2=pause", "header:6=pause", "progress=continue", data=moved(302), to=OK
    ),
    "the upload": get("put=300", "read=pause", "progress=continue", data=ECHO),
}  # fmt: skip

ENDED = {
    f"by {at}": get(*more, f"{at}=refuse", data=moved(307) if at == "seek:1" else ECHO, repeated=at != "seek:1")
    for at, more in {
        "header:1": (),
        "header:2": (),
        "header:4": (),
        "body:1": (),
        "read:1": ("put=300",),
        "progress:1": (),
        "opensocket:1": (),
        "sockopt:1": (),
        "prereq:1": (),
        "resolver:1": (),
        "seek:1": ("FOLLOWLOCATION=1", "put=300", "seekable"),
        "trailer:1": ("put-chunked=300", "trailers", "HTTPHEADER=Trailer: X-Trail"),
    }.items()
}
ENDED |= {
    "by a header taken in part": get("header:2=short"),
    "by a body taken in part": get("body:1=short"),
    "by its timeout": get("TIMEOUT_MS=300", data=Answer(silent=True)),
    "by its timeout, in the body": get("TIMEOUT_MS=300", data=Answer(200, [], TEXT, pieces=2, piece_delay=2)),
    "by nobody who listens": get("URL=http://127.0.0.1:1/"),
    "by a name that does not resolve": get("URL=http://nowhere.invalid/"),
    "by a URL that is none": get("URL=http://user@"),
    "by a reset": get(data=Answer(drop="body", reset=True)),
    "by an end without an answer": get(data=Answer(drop="body")),
    "by a reset in the body": get(data=Answer(200, [], TEXT, cut_body=100, reset=True)),
    "by an end in the body": get(data=Answer(200, [], TEXT, cut_body=100)),
    "by an end in the headers": get(data=Answer(200, [("X-A", "1")], TEXT, cut_head=30)),
    "by an end in the chunks": get(data=Answer(200, [], TEXT, framing="chunked", cut_body=100)),
    "by a bad chunk": get(data=raw(b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\nzz\nworld\n")),
    "by a header without end": get(data=raw(b"HTTP/1.1 200 OK\nX-A: ", b"a" * 120_000, b"\r\n\r\n")),
    "by a bad length": get(data=raw(b"HTTP/1.1 200 OK\nContent-Length: -5\n\nhello")),
    "by a zero byte": get(data=raw(b"HTTP/1.1 200 OK\nX-A: a\0b\nContent-Length: 5\n\nhello")),
    "by a bad status line": get(data=raw(b"HTTP/1.1 2xx OK\nContent-Length: 5\n\nhello")),
}  # fmt: skip

CASES = {
    f"{group}: {name}": case
    for group, cases in {
        "get": GETS,
        "redirect": REDIRECTS,
        "auth": AUTHENTICATED,
        "proxy": PROXIES,
        "body": BODIES,
        "pause": PAUSING,
        "end": ENDED,
    }.items()
    for name, case in cases.items()
}

REFUSED = [("X-Refused", "1"), ("Content-Type", "text/refused"), ("Set-Cookie", "refused=1"), ("Link", "</refused>")]
BUSY = Answer(503, REFUSED, b"busy, so busy\n")
QUICK = "[default]\nbase_delay = 1ms\nmax_delay = 2ms\nadaptive = off\n"


def serve(up, case, refusals=(), last=False):
    path, index = case.at
    for name, answers in case.answers.items():
        if name == path:
            answers = [*answers[:index], *refusals, *([] if last else answers[index:])]
        up.on(name, *answers)


def witness(curtsy, up, case, how, then=None, **refusals):
    serve(up, case, **refusals)
    return record(curtsy, up, (*case.words, *(then or case.then)), how)


def same_calls(case, expected, found):
    """Where there may have been several attempts."""
    if case.pauses:
        assert pieces(found) == pieces(expected)
        return
    exceptions = [EACH_ATTEMPT]
    if case.writes and "FOLLOWLOCATION=1" in case.words:
        exceptions.append(REPLAYED)
    if case.keeps:
        exceptions.append(KEPT_BEFORE)
    if case.shows_headers or not case.repeated:
        exceptions.append(HELD)
    compare(expected, found, *exceptions)


def request(arrival):
    headers = [(name, None if name.endswith("Authorization") else value) for name, value in arrival.headers]
    drawn = any("boundary=" in value for _, value in arrival.headers)
    return arrival.method, arrival.target, headers if not drawn else None, arrival.body_length


def by_hand(curtsy, up, case, refusals, then, **more):
    """As a program repeats it itself, on the same handle, under bare libcurl: what is told after each of
    its attempts, and all that it sends."""
    before = len(up.arrivals())
    words = ("perform", "rewind") * len(refusals) + then
    found = witness(curtsy, up, case, "bare", words, refusals=refusals, **more)
    return [told for _, told in transfers(found)], [request(arrival) for arrival in up.arrivals()[before:]]


@pytest.mark.parametrize("name", CASES)
def test_where_nothing_is_refused(up, curtsy, name):
    case = CASES[name]
    expected = witness(curtsy, up, case, "bare")
    found = witness(curtsy, up, case, "preload")
    if case.pauses:
        assert pieces(found) == pieces(expected)
    elif "nowhere.invalid" in str(case.words):
        compare(expected, found, EACH_ATTEMPT)
    else:
        compare(expected, found, HELD if case.shows_headers else {})


# In a repeat there is more that a body can be begun again from than without one, so this goes on.
BETTER_WHEN_REPEATED = "redirect: redirected, a body that cannot be sent again"


def test_what_is_kept_serves_a_redirect_within_a_repeat_too(up, curtsy, config):
    config(QUICK)
    witness(curtsy, up, CASES[BETTER_WHEN_REPEATED], "preload", refusals=[BUSY])
    assert [arrival.path for arrival in up.arrivals()] == ["/data", "/data", "/to"]
    assert len({arrival.body_sha256 for arrival in up.arrivals()}) == 1


@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if case.repeated and name != BETTER_WHEN_REPEATED]
)
def test_what_was_refused_before_leaves_no_trace(up, curtsy, config, name):
    config(QUICK)
    leaves_no_trace(curtsy, up, CASES[name], [BUSY, BUSY])


def leaves_no_trace(curtsy, up, case, refusals):
    """Callbacks are called as if there had been no refusal; what is told then is told as after a repeat by hand."""
    expected = list(transfers(witness(curtsy, up, case, "bare")))
    before = len(up.arrivals())
    found = list(transfers(witness(curtsy, up, case, "preload", refusals=refusals)))
    sent = [request(arrival) for arrival in up.arrivals()[before:]]
    if case.ends_itself or case.pauses:
        told_then = [told for _, told in expected]
        exceptions = [LAST_ALONE, PAUSED if case.pauses else {}, WRITES if case.writes else {}]
    else:
        told_by_hand, sent_by_hand = by_hand(curtsy, up, case, refusals, case.then)
        assert sent == sent_by_hand
        told_then, exceptions = told_by_hand[len(refusals) :], [WRITES if case.writes else {}]
    assert len(found) == len(expected) == len(told_then)
    for (called, told), (called_at_once, _), then in zip(found, expected, told_then):
        same_calls(case, called_at_once, called)
        compare(then, told, *exceptions)


@pytest.mark.parametrize("name", CASES)
def test_what_is_refused_for_good_is_told_as_one_refusal(up, curtsy, config, name):
    config(QUICK + "max_attempts = 3\n")
    case = CASES[name]
    once = ("perform",)
    [(called_once, told_once)] = transfers(witness(curtsy, up, case, "bare", once, refusals=[BUSY], last=True))
    before = len(up.arrivals())
    [(called, told)] = transfers(witness(curtsy, up, case, "preload", once, refusals=[BUSY], last=True))
    sent = [request(arrival) for arrival in up.arrivals()[before:]]
    same_calls(case, called_once, called)
    if case.repeated and not case.ends_itself and not case.pauses:
        told_by_hand, sent_by_hand = by_hand(curtsy, up, case, [BUSY, BUSY], once, last=True)
        assert sent == sent_by_hand
        compare(told_by_hand[-1], told, WRITES if case.writes else {})
    else:
        compare(told_once, told, LAST_ALONE, PAUSED if case.pauses else {}, WRITES if case.writes else {})


# ---- refusals of every kind ----

LONG = b"busy\n" * 20_000
REFUSALS = {
    "429": Answer(429, REFUSED, b"slow down\n"),
    "502, 504": [Answer(502, REFUSED, b"bad\n"), Answer(504, REFUSED)],
    "large": Answer(503, REFUSED, LONG),
    "chunked": Answer(503, REFUSED, LONG, framing="chunked", pieces=4),
    "with trailers": raw(TRAILERS % 503),
    "to the end": Answer(503, REFUSED, LONG, framing="close"),
    "with the last word": Answer(503, [*REFUSED, ("Connection", "close")], b"busy\n", close=True),
    "compressed": Answer(503, [*REFUSED, ("Content-Encoding", "gzip")], gzip.compress(LONG, mtime=0)),
    "badly compressed": Answer(503, [*REFUSED, ("Content-Encoding", "gzip")], b"nonsense"),
    "with a place to go": Answer(503, [*REFUSED, ("Location", "/elsewhere")], b"busy\n"),
    "with a challenge": Answer(503, [*REFUSED, ("WWW-Authenticate", 'Basic realm="r"')], b"busy\n"),
    "cut": Answer(503, REFUSED, LONG, cut_body=100),
    "cut and reset": Answer(503, REFUSED, LONG, cut_body=100, reset=True),
    "older": raw(b"HTTP/1.0 503 Busy\nX-A: b\n\nbusy"),
    "a reset": Answer(drop="body", reset=True),
}  # fmt: skip
THESE = """get: small, get: compressed, get: failing, get: head, get: not too large, get: chunked,
redirect: refused after a redirect""".replace("\n", " ").split(", ")


# Left out: after a reset on a connection that was good before libcurl tries again by itself; and an answer to HEAD has
# no body to be cut, so its connection ends at any time.
NOT_THESE = [("a reset", "redirect"), *((end, "get: head") for end in ("cut", "cut and reset", "to the end"))]
KINDS = [
    (refusal, name)
    for refusal in REFUSALS
    for name in THESE
    if not any(refusal == other and name.startswith(start) for other, start in NOT_THESE)
]


@pytest.mark.parametrize("refusal, name", KINDS)
def test_no_refusal_leaves_a_trace(up, curtsy, config, refusal, name):
    config(QUICK + "[127.0.0.1]\nretry_errors = reset\n")
    refusals = REFUSALS[refusal]
    leaves_no_trace(curtsy, up, CASES[name], refusals if isinstance(refusals, list) else [refusals])


@pytest.mark.parametrize("refusal", REFUSALS)
def test_each_refusal_is_told_as_it_came(up, curtsy, config, refusal):
    """Where no attempt follows."""
    config(QUICK + "retry_budget = 0%\nretry_reserve = 0\n")
    up.on("/data", REFUSALS[refusal][0] if isinstance(REFUSALS[refusal], list) else REFUSALS[refusal])
    words = ["URL={}/data", "ACCEPT_ENCODING=gzip", "perform"]
    compare(record(curtsy, up, words, "bare"), record(curtsy, up, words, "preload"), EACH_ATTEMPT, HELD)
    assert len(up.arrivals()) == 2


def test_a_hint_before_a_refusal_is_shown(up, curtsy, config):
    """It is the program's before it is known what follows."""
    config(QUICK)
    up.on("/data", Answer(503, REFUSED, before=[HINT]), OK)
    words = ["URL={}/data", "perform"]
    headers, body = pieces(record(curtsy, up, words, "preload"))
    assert headers == r"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + pieces(record(curtsy, up, words, "bare"))[0]
    assert body == r"the answer\n"


@pytest.mark.parametrize("name", ["body: an expected PUT", "body: an unexpected PUT"])
def test_a_body_that_is_refused_before_it_comes_is_not_read(up, curtsy, config, name):
    config(QUICK)
    leaves_no_trace(curtsy, up, CASES[name], [dataclasses.replace(BUSY, read_body=False)] * 2)


def test_a_cookie_of_a_refusal_is_kept(up, curtsy, config):
    """As libcurl keeps each cookie that a server sets on the way."""
    config(QUICK)
    up.on("/data", BUSY, OK)
    result = curtsy.run([curtsy.victim("witness"), "COOKIEFILE=", "URL=" + up.url("/data"), "perform", "perform"])
    assert [arrival.header("Cookie") for arrival in up.arrivals()] == [None, "refused=1", "refused=1"]
    assert 'info COOKIELIST "127.0.0.1\tFALSE\t/\tFALSE\t0\trefused\t1"' in result.text


# ---- while it waits ----

# Long enough for a call of the progress callback.
LATER = Answer(503, [("Retry-After-Ms", "300"), *REFUSED], b"busy\n")
WAITS = {
    "a refusal": (QUICK, [LATER, OK]),
    "a quota": ("[default]\nrate = 4/s\nburst = 1\n", [OK]),
}


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("between", [(), ("reset", "callbacks")], ids=["", "reset"])
def test_while_it_waits_nothing_is_told_of_any_response(up, curtsy, wait, between):
    """Neither of the refused one, nor of an older transfer's on the same handle."""
    configuration, answers = WAITS[wait]
    up.on("/older", Answer(200, [("Content-Type", "text/older"), ("X-Older", "1")], b"older"))
    up.on("/data", *answers)
    fresh = record(curtsy, up, ["URL={}/data", "progress:1=infos", "perform"], "bare")
    up.on("/data", *answers)
    curtsy.configure(configuration)
    words = ["URL={}/older", "perform", *between, "URL={}/data", "waiting:1=infos", "perform"]
    compare(told_in_callbacks(fresh), told_in_callbacks(record(curtsy, up, words, "preload")))


def told_in_callbacks(lines):
    called, _ = list(transfers(lines))[-1]
    told = [line for line in called if re.match(r"info |\w+ of request|no such", line)]
    assert told
    return told


@pytest.mark.slow(1)
def test_the_time_that_a_refusal_named_is_not_told(up, curtsy):
    leaves_no_trace(curtsy, up, CASES["get: small"], [Answer(503, [("Retry-After", "1"), *REFUSED], b"busy\n")])


@pytest.mark.parametrize("wait", WAITS)
def test_ended_while_it_waits(up, curtsy, wait):
    """As a transfer that was ended before anything had come."""
    configuration, answers = WAITS[wait]
    up.on("/data", *answers)
    fresh = record(curtsy, up, ["URL={}/data", "progress:1=refuse", "perform"], "bare")
    up.on("/older", OK)
    up.on("/data", *answers)
    curtsy.configure(configuration)
    words = ["URL={}/older", "perform", "URL={}/data", "waiting:1=refuse", "perform"]
    [*_, (called, told)] = transfers(record(curtsy, up, words, "preload"))
    [(called_fresh, told_fresh)] = transfers(fresh)
    compare(called_fresh, called, EACH_ATTEMPT)
    compare(told_fresh, told, EACH_ATTEMPT)


# ---- a body that broke off ----

WHOLE = [("ETag", '"v1"'), ("Content-Type", "text/plain"), ("X-Mark", "1")]


def rest(request):
    first = int(request.arrival.header("Range").removeprefix("bytes=").rstrip("-"))
    where = ("Content-Range", f"bytes {first}-{len(TEXT) - 1}/{len(TEXT)}")
    return Answer(206, [("ETag", '"v1"'), ("X-Rest", "1"), where], TEXT[first:])


RESTS = {
    "asked for": [rest],
    "refused first": [BUSY, rest],
    "broken off again": [lambda request: dataclasses.replace(rest(request), cut_body=10), rest],
    "given as a whole": [Answer(200, WHOLE, TEXT)],
}


@pytest.mark.parametrize("given", RESTS)
@pytest.mark.parametrize("cut", [0, 1, 450])
def test_a_body_that_is_gone_on_with_is_told_as_one(up, curtsy, config, given, cut):
    config(QUICK + "resume = on\n[127.0.0.1]\nretry_errors = reset\n")
    up.on("/data", Answer(200, WHOLE, TEXT))
    bare = record(curtsy, up, ["URL={}/data", "perform"], "bare")
    up.on("/data", Answer(200, WHOLE, TEXT, cut_body=cut), *RESTS[given])
    found = record(curtsy, up, ["URL={}/data", "perform"], "preload")
    [(called_bare, told_bare)], [(called, told)] = transfers(bare), transfers(found)
    assert pieces(called) == pieces(called_bare)
    compare(*(without_body(lines) for lines in (called_bare, called)), EACH_ATTEMPT)
    compare(told_bare, told, LAST_ALONE)


def without_body(lines):
    """Nor what was told with its pieces, but for the last of them."""
    at = [number for number, line in enumerate(lines) if line.startswith("body")]
    dropped = {number + more for number in at for more in range(3) if (number, more) != (at[-1], 2)}
    return [line for number, line in enumerate(lines) if number not in dropped]


# ---- what is set, and what is copied, in callbacks ----

SECOND = ("URL={}/after", "perform")
SETTINGS = [
    "WRITEDATA=other body", "other-writer", "HEADERDATA=other header", "XFERINFODATA=other progress", "DEBUGDATA=other",
    "NOPROGRESS=1", "TIMEOUT_MS=60000", "other-buffer", "HTTPHEADER=X-Late: 1", "URL={}/other", "USERAGENT=late",
    "FAILONERROR=1", "HEADER=1", "FOLLOWLOCATION=1", "PRIVATE=other", "VERBOSE=0",
]  # fmt: skip


def settings(curtsy, up, how, event, setting, then, *refusals):
    up.on("/data", *refusals, Answer(200, [("X-Mark", "1")], TEXT, framing="chunked", pieces=2))
    up.on("/after", moved(302))
    up.on("/other", OK)
    up.on("/to", OK)
    # What follows on the same handle shows what is in force.
    return record(curtsy, up, ["URL={}/data", f"{event}={setting}", "perform", *then], how)


@pytest.mark.parametrize("event", ["header:2", "body:1", "progress:1", "debug:1"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_in_a_callback_is_obeyed(up, curtsy, event, setting):
    then = ["perform"] if setting.startswith("URL") else SECOND
    expected, found = (settings(curtsy, up, how, event, setting, then) for how in ("bare", "preload"))
    compare(expected, found, HELD if setting == "HEADER=1" else {})


# Where it would change the request, the repeat would not be one: what was refused is then the program's.  And an error
# buffer that is set between two attempts is emptied at the start of the second.
LATE = [setting for setting in SETTINGS if not re.match("HTTPHEADER|URL|USERAGENT|other-buffer", setting)]


@pytest.mark.parametrize("setting", LATE)
def test_a_setting_while_it_waits_is_obeyed(up, curtsy, config, setting):
    config(QUICK)
    expected = settings(curtsy, up, "bare", "progress:1", setting, SECOND)
    found = settings(curtsy, up, "preload", "waiting:1", setting, SECOND, LATER)
    compare(expected, found, EACH_ATTEMPT, LAST_ALONE, HELD if setting == "HEADER=1" else {})


EVENTS = ["header:1", "header:3", "body:1", "read:1", "progress:1", "debug:1", "opensocket:1", "prereq:1", "resolver:1"]
COPIES = {"in easy": "perform", "in multi": "multi"}


def copied(curtsy, up, how, event, perform, *refusals):
    up.on("/data", *refusals, ECHO)
    up.on("/after", moved(302))
    words = ["URL={}/data", "put=300", "seekable", f"{event}=dup", "perform", "rewind", "take-copy"]
    return record(curtsy, up, [*words, perform, "URL={}/after", "HTTPGET=1", perform], how)


@pytest.mark.parametrize("perform", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("event", EVENTS)
def test_a_copy_made_in_a_callback_has_the_programs_options(up, curtsy, event, perform):
    expected, found = (copied(curtsy, up, how, event, perform) for how in ("bare", "preload"))
    compare(expected, found)


@pytest.mark.parametrize("perform", COPIES.values(), ids=COPIES)
def test_a_copy_made_while_it_waits_has_the_programs_options(up, curtsy, config, perform):
    config(QUICK)
    expected = copied(curtsy, up, "bare", "progress:1", perform)
    found = copied(curtsy, up, "preload", "waiting:1", perform, LATER)
    compare(expected, found, EACH_ATTEMPT, LAST_ALONE)


# ---- other ways there ----

MULTI = ["get: small", "redirect: 302 for a GET", "auth: digest", "body: PUT", "get: headers in the body", "get: range"]


@pytest.mark.parametrize("name", MULTI)
def test_in_a_multi_handle(up, curtsy, name):
    case = CASES[name]
    words = (*case.words, "multi", "rewind", "perform", "rewind", "multi")
    serve(up, case)
    expected = record(curtsy, up, words, "bare")
    serve(up, case)
    compare(expected, record(curtsy, up, words, "preload"), HELD if case.shows_headers else {})


@pytest.mark.parametrize("refusals", [0, 2])
def test_over_tls(upstream, curtsy, config, certificate, refusals):
    config(QUICK)
    server = upstream(tls=certificate)
    words = ("URL=" + server.url("/data", "localhost"), f"CAINFO={certificate[1]}", "HSTS_CTRL=1", "CERTINFO=1")
    answers = {"/data": [Answer(200, [("Strict-Transport-Security", "max-age=999")], b"secret\n")]}
    case = Case(words, answers)
    if refusals:
        leaves_no_trace(curtsy, server, case, [BUSY] * refusals)
    else:
        compare(witness(curtsy, server, case, "bare"), witness(curtsy, server, case, "preload"))


@pytest.mark.parametrize("event", ["ssl", "hsts"])
def test_ended_by_a_callback_over_tls(upstream, curtsy, certificate, event):
    server = upstream(tls=certificate)
    server.on("/data", OK)
    words = ["URL=" + server.url("/data", "localhost"), f"CAINFO={certificate[1]}", "HSTS_CTRL=1", f"{event}:1=refuse"]
    compare(*(record(curtsy, server, [*words, "perform"], how) for how in ("bare", "preload")))


@pytest.mark.skipif(not http2.available(), reason="nghttpd is not installed")
def test_over_http2_with_tls(curtsy, certificate, tmp_path):
    (tmp_path / "data").write_bytes(TEXT)
    with http2.Http2(tmp_path, certificate) as server:
        urls = ["URL=" + server.url(path) for path in ("/data", "/missing")]
        words = [f"CAINFO={certificate[1]}", urls[0], "perform", urls[1], "perform"]
        compare(*(record(curtsy, server, words, how) for how in ("bare", "preload")))


@pytest.mark.parametrize("refusals", [0, 1])
def test_over_http2(curtsy, config, refusals):
    config(QUICK)
    answers = [Answer(503, [("x-refused", "1")], b"busy")] * refusals + [Answer(200, [("x-mark", "1")], b"four")]
    trailers = [("x-trail", "1")]
    records = []
    for how, answers in (("bare", answers[refusals:]), ("preload", answers)):
        with ScriptedHttp2(*answers, trailers=trailers) as server:
            records.append(record(curtsy, server, ["URL=" + server.url("/data"), "HTTP_VERSION=5", "perform"], how))
    compare(*records, *([EACH_ATTEMPT, LAST_ALONE] if refusals else []))
