# SPDX-License-Identifier: MIT
"""`resume = on`: a download that breaks off is gone on with, and the program sees one response: each header
once, each byte once, and what getinfo tells is the first response's.  Where the rest cannot be proven to be the
rest of the same bytes, all is as without Curtsy.

What is right is what the program sees without Curtsy: of a server that did not cut, where the rest is to be
had; of the same cut, where it is not.
"""

import dataclasses
import functools
import json
import random
import struct
import subprocess

import pytest

from http2_script import DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, ScriptedHttp2, _fields, _frame
from upstream import Answer

SIZE = 1 << 20
BODY = random.Random(7).randbytes(SIZE)
TAG = '"33a64df551425fcc"'
FIELDS = [
    ("Content-Type", "application/x-first"),
    ("Last-Modified", "Tue, 15 Nov 1994 12:45:26 GMT"),
    ("X-Many", "1"),
    ("X-Many", "2"),
]
FIRST_CUT = 300_000

RESUME = """
[default]
resume = on
max_attempts = 5
base_delay = 1ms
max_delay = 10ms
retry_budget = 100%
retry_reserve = 10000
[127.0.0.1]
spread = 0%
"""
NO_RESUME = RESUME.replace("resume = on", "resume = off")


# ---- answers ----


def whole(tag=TAG, body=BODY, more=(), **options) -> Answer:
    tags = [("ETag", tag)] if isinstance(tag, str) else [("ETag", one) for one in tag or ()]
    return Answer(200, [*FIELDS, *tags, *more], body, **options)


def cut(at=FIRST_CUT, **options) -> Answer:
    return whole(cut_body=at, **options)


def first_asked_for(request) -> int:
    """The N of "Range: bytes=N-"."""
    return int(request.arrival.header("Range").removeprefix("bytes=").removesuffix("-"))


def rest(tag=TAG, written="bytes {first}-{last}/{total}", shift=0, upto=0, more=(), **options):
    """The part that is asked for, and what is said about it."""

    def answer(request):
        first = first_asked_for(request) + shift
        part = BODY[first : SIZE - upto]
        said = written.format(first=first, last=first + len(part) - 1, total=SIZE, more=SIZE + 1, less=SIZE - 1)
        about = [("Content-Range", said)] if said else []
        return dataclasses.replace(whole(tag, part, [("X-Second", "yes"), *about, *more], **options), status=206)

    return answer


def rest_cut(after: int, **options):
    return rest(cut_body=after, **options)


def refusal(status=503, seconds=None) -> Answer:
    return Answer(status, [("Retry-After", str(seconds))] if seconds is not None else [], b"not now\n")


# ---- programs ----


def downloads(curtsy, words: str, *urls: str, how="preload", config=RESUME) -> list[dict]:
    """What the victim tells of each transfer."""
    result = curtsy.run([curtsy.victim("resuming"), words, *urls], how=how, config=config)
    assert (result.rc, result.stderr) == (0, b""), result
    return [json.loads(line) for line in result.stdout.splitlines()]


def download(curtsy, up, words: str, *answers, **options) -> tuple[dict, int]:
    """The same of one, and how many requests it took."""
    up.on("/data", *answers)
    before = len(up.arrivals("/data"))
    (told,) = downloads(curtsy, words, up.url("/data"), **options)
    return told, len(up.arrivals("/data")) - before


def bare(curtsy, up, words: str, *answers) -> dict:
    return download(curtsy, up, words, *answers, how="bare")[0]


@functools.lru_cache
def hash_of_first(length: int) -> str:
    """FNV-1a of so much of the body."""
    value = 0xCBF29CE484222325
    for byte in BODY[:length]:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def is_beginning(told: dict) -> bool:
    return told["hash"] == hash_of_first(told["length"])


# ---- any byte ----


def offsets() -> list[int]:
    """2,000 places to cut at: both ends, around each 16 KiB, and a spread."""
    chosen = {*range(20), *range(SIZE - 20, SIZE)}
    chosen.update(edge + by for edge in range(1 << 14, SIZE, 1 << 14) for by in range(-2, 3))
    chosen.update(random.Random(8).sample(sorted({*range(SIZE)} - chosen), 2000 - len(chosen)))
    return random.Random(9).sample(sorted(chosen), len(chosen))


OFFSETS = offsets()
PARTS = 4


def cut_where_the_path_says(request) -> Answer:
    if request.arrival.header("Range"):
        return rest()(request)
    _, _, at, how = request.path.split("/")
    return cut(int(at), reset=how == "reset")


def without_url(told: dict) -> dict:
    return {name: value for name, value in told.items() if name != "url"}


@pytest.mark.slow(10)
@pytest.mark.parametrize("how_cut", ["close", "reset"])
@pytest.mark.parametrize("part", range(PARTS))
def test_a_cut_at_any_byte_loses_nothing_and_repeats_nothing(up, curtsy, part, how_cut):
    at = [offset for offset in OFFSETS[part::PARTS] if (offset // 7 % 2 == 0) == (how_cut == "close")]
    up.on("/cut/*", whole())
    (expected,) = downloads(curtsy, "-", up.url("/cut/0/whole"), how="bare")
    assert (expected["code"], expected["length"], expected["hash"]) == (0, SIZE, hash_of_first(SIZE))
    up.on("/cut/*", cut_where_the_path_says)
    told = downloads(curtsy, "-", *(up.url(f"/cut/{offset}/{how_cut}") for offset in at))
    assert len(told) == len(at)
    for offset, one in zip(at, told):
        assert without_url(one) == without_url(expected), offset
    assert sum(1 for arrival in up.arrivals() if arrival.header("Range")) >= len(at)


def test_without_it_all_is_as_before(up, curtsy):
    at = OFFSETS[:80]
    up.on("/cut/*", cut_where_the_path_says)
    urls = [up.url(f"/cut/{offset}/close") for offset in at]
    expected = downloads(curtsy, "-", *urls, how="bare")
    assert [one["length"] for one in expected] == at
    for config in (NO_RESUME, "", RESUME.replace("on", "on\nmode = observe", 1)):
        assert downloads(curtsy, "-", *urls, config=config) == expected
    assert len(up.arrivals()) == 4 * len(at)
    assert not any(arrival.header("Range") for arrival in up.arrivals())


@pytest.mark.parametrize("kept", ["one handle", "a handle each"])
def test_one_transfer_leaves_nothing_behind_for_the_next(up, curtsy, kept):
    """Neither what is told of it, nor what was added to the request."""
    up.on("/data", cut(), rest())
    up.on("/next", Answer(404, [("X-Next", "yes")], b"no such thing\n"))
    up.on("/again", cut(100), rest())
    urls = [up.url(path) for path in ("/data", "/next", "/again", "/next")]
    words = "fresh" if kept == "a handle each" else "-"
    told = downloads(curtsy, words, *urls)
    up.on("/data", whole())
    up.on("/again", whole())
    assert told == downloads(curtsy, words, *urls, how="bare")
    with_curtsy, without = up.arrivals("/next")[:2], up.arrivals("/next")[2:]
    assert [arrival.headers for arrival in with_curtsy] == [arrival.headers for arrival in without]


# ---- gone on with ----

TWO_TAGS = (TAG, '"other"')

GONE_ON_WITH = {
    # name: (what the victim is to do, the answers, how many requests, the answer that was not cut)
    "cut once": ("-", [cut(), rest()], 2),
    "a handle of its own": ("fresh", [cut(), rest()], 2),
    "reset": ("-", [cut(reset=True), rest()], 2),
    "before the body's first byte": ("-", [cut(0), rest()], 2),
    "before its last byte": ("-", [cut(SIZE - 1), rest()], 2),
    "the rest is cut, too": ("-", [cut(), rest_cut(100_000), rest()], 3),
    "three times": ("-", [cut(), rest_cut(1), rest_cut(0), rest_cut(500_000), rest()], 5),
    "the empty tag": ("-", [cut(tag='""'), rest('""')], 2, whole(tag='""')),
    "the unit in capitals": ("-", [cut(), rest(written="BYTES {first}-{last}/{total}")], 2),
    "the total is not told": ("-", [cut(), rest(written="bytes {first}-{last}/*")], 2),
    "the range is ignored": ("-", [cut(), whole()], 2),
    "the range is ignored, and that is cut": ("-", [cut(), cut(600_000), rest()], 3),
    "the range is ignored, and that is cut before": ("-", [cut(), cut(1000), rest()], 3),
    "the range is ignored twice": ("-", [cut(), cut(FIRST_CUT), whole()], 3),
    "chunked": ("-", [cut(framing="chunked", pieces=9), rest()], 2, whole(framing="chunked", pieces=9)),
    "both chunked": (
        "-",
        [cut(framing="chunked", pieces=9), rest(framing="chunked", pieces=3)],
        2,
        whole(framing="chunked", pieces=9),
    ),
    "chunked, and the range ignored": (
        "-",
        [cut(framing="chunked", pieces=9), whole(framing="chunked", pieces=5)],
        2,
        whole(framing="chunked", pieces=9),
    ),
    "the rest is chunked": ("-", [cut(), rest(framing="chunked", pieces=3)], 2),
    "busy on the way": ("-", [cut(), refusal(), rest()], 3),
    "busy twice on the way": ("-", [cut(), refusal(), refusal(502), rest()], 4),
    "nothing on the way": ("-", [cut(), Answer(drop="head"), rest()], 3),
    "reset on the way": ("-", [cut(), Answer(drop="head", reset=True), rest()], 3),
    "hints on the way": ("-", [cut(), rest(before=[Answer(103, [("Link", "</a>")], framing="none")])], 2),
    "hints before": (
        "-",
        [cut(before=[Answer(103, [("Link", "</a>")], framing="none")]), rest()],
        2,
        whole(before=[Answer(103, [("Link", "</a>")], framing="none")]),
    ),
    "busy before": ("-", [Answer(503), cut(), refusal(), rest()], 4),
    "FAILONERROR": ("fail", [cut(), refusal(), rest()], 3),
    "any encoding, but there is none": ("decode", [cut(), rest()], 2),
    "a largest size": (f"maximum={SIZE}", [cut(), rest()], 2),
    "a small buffer": ("buffer=1024", [cut(), rest()], 2),
    "GET by its name": ("custom=GET", [cut(), rest()], 2),
    "headers of its own": ("line=X-Own:1", [cut(), rest()], 2),
    "a timeout that is long enough": ("timeout=60000", [cut(), rest()], 2),
    "paused before the cut": ("pause=200000", [cut(), rest()], 2),
    "paused at the first byte of the rest": (f"pause={FIRST_CUT}", [cut(), rest()], 2),
    "paused in the rest": ("pause=600000", [cut(), rest()], 2),
    "paused right after what is skipped": (f"pause={FIRST_CUT}", [cut(), whole()], 2),
    "the same, in small pieces": (f"pause={FIRST_CUT} buffer=1024", [cut(), whole()], 2),
    "paused well after what is skipped": ("pause=600000", [cut(), whole()], 2),
    "paused, and the rest is cut": (f"pause={FIRST_CUT}", [cut(), rest_cut(200_000), rest()], 3),
}


@pytest.mark.parametrize("name", GONE_ON_WITH)
def test_what_is_gone_on_with(up, curtsy, name):
    words, answers, requests, *uncut = GONE_ON_WITH[name]
    expected = bare(curtsy, up, words, *(uncut or [whole()]))
    assert (expected["code"], expected["length"]) == (0, SIZE)
    told, arrived = download(curtsy, up, words, *answers)
    if expected["totals"] == 0:
        told["totals"] = 0  # the server has told the length of the whole by now, so progress may, too
    assert told == expected
    assert arrived == requests


def test_what_is_asked_for(up, curtsy):
    download(curtsy, up, "line=X-Own:1", cut(), rest_cut(50), rest())
    first, second, third = up.arrivals("/data")
    names = [name for name, _ in first.headers]
    for arrival, at in ((second, FIRST_CUT), (third, FIRST_CUT + 50)):
        assert arrival.all_headers("Range") == [f"bytes={at}-"]
        assert arrival.all_headers("If-Range") == [TAG]
        assert sorted(name for name, _ in arrival.headers) == sorted([*names, "Range", "If-Range"])


@pytest.mark.slow(1)
def test_a_refusal_on_the_way_is_waited_out(up, curtsy):
    expected = bare(curtsy, up, "-", whole())
    told, arrived = download(curtsy, up, "-", cut(), refusal(503, 1), rest())
    assert (told, arrived) == (expected, 3)
    assert up.waits("/data")[-1] >= 0.999


def test_after_a_redirect(up, curtsy):
    """The first request is made again, and so is the redirect; the program has seen it."""
    up.on("/data", Answer(302, [("Location", "/target"), ("X-Hop", "1")]))
    answers = {"bare": [whole()], "preload": [cut(), rest()]}
    told = {}
    for how, script in answers.items():
        up.on("/target", *script)
        (told[how],) = downloads(curtsy, "follow", up.url("/data"), how=how)
    assert told["preload"] == told["bare"]
    assert told["bare"]["redirects"] == 1
    assert len(up.arrivals("/target")) == 3


def test_over_tls(upstream, curtsy, certificate):
    server = upstream(tls=certificate)
    expected = bare(curtsy, server, "insecure", whole())
    assert download(curtsy, server, "insecure", cut(reset=True), rest()) == (expected, 2)


class CuttingHttp2(ScriptedHttp2):
    """cut_body is obeyed: by RST_STREAM, or by an end of the connection (reset)."""

    INTERNAL_ERROR = 2

    def _reply(self, number, kind, flags, stream_id, payload):
        if kind != HEADERS:
            return super()._reply(number, kind, flags, stream_id, payload)
        answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
        self.requests.append(number)
        sent = answer.body[: answer.cut_body]
        fields = [(":status", str(answer.status)), *answer.headers, ("Content-Length", str(len(answer.body)))]
        frames = _frame(HEADERS, END_HEADERS, stream_id, _fields(fields))
        for at in range(0, len(sent), 1 << 14):
            frames += _frame(DATA, 0, stream_id, sent[at : at + (1 << 14)])
        if answer.cut_body is None:
            return frames + _frame(DATA, END_STREAM, stream_id)
        # After a frame of HTTP/1.1 the client ends the connection itself.
        end = b"HTTP/1.1 400 \r\n\r\n" if answer.reset else struct.pack(">I", self.INTERNAL_ERROR)
        return frames + (end if answer.reset else _frame(RST_STREAM, 0, stream_id, end))


@pytest.mark.parametrize("how_cut", ["stream reset", "connection broken"])
def test_over_http2(curtsy, how_cut):
    """libcurl does not give all that came before the cut, so the server, which cannot read what is asked
    for, sends the whole."""
    first = cut(reset=how_cut == "connection broken")
    with CuttingHttp2(whole(), first, whole()) as server:
        (expected,) = downloads(curtsy, "http2", server.url("/data"), how="bare")
        assert (expected["code"], expected["length"], expected["version"]) == (0, SIZE, 3)
        assert downloads(curtsy, "http2", server.url("/data")) == [expected]
        assert len(server.requests) == 3


@pytest.mark.slow(3)
def test_progress_gives_it_more_time(up, curtsy):
    """Each attempt brings something, so that a whole that takes longer than total_budget is had."""
    config = RESUME.replace("max_attempts = 5", "max_attempts = 9\ntotal_budget = 2s")
    expected = bare(curtsy, up, "-", whole())
    slow = [rest_cut(1000, delay=0.7)] * 3
    assert download(curtsy, up, "-", cut(delay=0.7), *slow, rest(), config=config) == (expected, 5)


# ---- not gone on with ----

NOT_TRIED = {
    # name: (what the victim is to do, the answer that is cut)
    "a weak tag": ("-", cut(tag='W/"33a64df551425fcc"')),
    "no tag": ("-", cut(tag=None)),
    "two tags": ("-", cut(tag=TWO_TAGS)),
    "a list of tags": ("-", cut(tag='"a", "b"')),
    "a tag without quotes": ("-", cut(tag="33a64df551425fcc")),
    "encoded": ("-", cut(more=[("Content-Encoding", "gzip")])),
    "encoded in an unknown way": ("-", cut(more=[("Content-Encoding", "x-own")])),
    "no ranges": ("-", cut(more=[("Accept-Ranges", "none")])),
    "CURLOPT_HEADER": ("include", cut()),
    "its own range": ("range=0-", cut()),
    "its own range, obeyed": ("range=1000-", rest_cut(1000)),
    "resumed by itself": ("from=1000", rest_cut(1000)),
    "its own Range header": ("line=Range:bytes=1000-", rest_cut(1000)),
    "its own If-Range header": ("line=If-Range:x", cut()),
    "a condition": ("newer", cut()),
    "a condition as a header": ('line=If-None-Match:"a"', cut()),
    "another condition": ('line=If-Match:"a"', cut()),
    "raw": ("raw", cut(framing="chunked", pieces=9)),
    "POST": ("post=x", cut()),
    "another method": ("custom=REPORT", cut()),
    "a body in a GET": ("post=x custom=GET", cut()),
    "an error's body": ("-", dataclasses.replace(cut(), status=404)),
    "not a 200": ("-", dataclasses.replace(cut(), status=203)),
    "until the end": ("-", cut(framing="close")),
    "HTTP/1.0": ("-", Answer(raw=b"HTTP/1.0 200 OK\r\nETag: \"a\"\r\n\r\n" + BODY[:1000])),
}


@pytest.mark.parametrize("name", NOT_TRIED)
def test_what_is_not_tried(up, curtsy, name):
    words, answer = NOT_TRIED[name]
    expected = bare(curtsy, up, words, answer)
    assert download(curtsy, up, words, answer) == (expected, 1)


def test_a_head_request_has_nothing_to_go_on_with(up, curtsy):
    up.on("/data", cut())
    assert curtsy.curl("-I", up.url("/data"), config=RESUME).all == curtsy.bare(["curl", "-sSI", up.url("/data")]).all
    assert len(up.arrivals()) == 2


NOT_PROVEN = {
    # name: (what the victim is to do, the second and further answers, how many requests there are in all)
    "changed": ("-", [whole(tag='"other"')], 2),
    "changed, and part of it": ("-", [rest('"other"')], 2),
    "changed in case": ("-", [rest(TAG.upper())], 2),
    "a weak tag": ("-", [rest("W/" + TAG)], 2),
    "no tag": ("-", [rest(None)], 2),
    "two tags": ("-", [rest(TWO_TAGS)], 2),
    "no tag on a 200": ("-", [whole(tag=None)], 2),
    "a weak tag on a 200": ("-", [whole(tag="W/" + TAG)], 2),
    "longer": ("-", [whole(body=BODY + b"x")], 2),
    "shorter": ("-", [whole(body=BODY[:-1])], 2),
    "nothing": ("-", [whole(body=b"")], 2),
    "of unknown length": ("-", [whole(framing="chunked")], 2),
    "from one byte before": ("-", [rest(shift=-1)], 2),
    "from one byte after": ("-", [rest(shift=1)], 2),
    "from the start": ("-", [rest(shift=-FIRST_CUT)], 2),
    "said to be from one byte before": ("-", [rest(written=f"bytes {FIRST_CUT - 1}-{{last}}/{{total}}")], 2),
    "of a longer whole": ("-", [rest(written="bytes {first}-{last}/{more}")], 2),
    "of a shorter whole": ("-", [rest(written="bytes {first}-{last}/{less}")], 2),
    "not up to the end": ("-", [rest(upto=1)], 2),
    "not up to the end, whose place is not told": ("-", [rest(written="bytes {first}-{last}/*", upto=1)], 2),
    "no range is told": ("-", [rest(written="")], 2),
    "nonsense is told": ("-", [rest(written="bytes {first}-{last}")], 2),
    "an unsatisfied range": ("-", [rest(written="bytes */{total}")], 2),
    "another unit": ("-", [rest(written="items {first}-{last}/{total}")], 2),
    "encoded": ("-", [rest(more=[("Content-Encoding", "gzip")])], 2),
    "parts": ("-", [Answer(206, [("ETag", TAG), ("Content-Type", "multipart/byteranges; boundary=x")], b"--x--")], 2),
    "416": ("-", [Answer(416, [("Content-Range", f"bytes */{SIZE}"), ("ETag", TAG)], b"no\n")], 2),
    "404": ("-", [Answer(404, [("ETag", TAG)], b"gone\n")], 2),
    "404, FAILONERROR": ("fail", [Answer(404, [("ETag", TAG)], b"gone\n")], 2),
    "401": ("-", [Answer(401, [("WWW-Authenticate", "Basic")], b"who?\n")], 2),
    "304": ("-", [Answer(304, [("ETag", TAG)])], 2),
    "204": ("-", [Answer(204, [("ETag", TAG)])], 2),
    "a redirect": ("-", [Answer(302, [("Location", "/other"), ("ETag", TAG)])], 2),
    "half a head, which libcurl takes for a whole one": ("-", [whole(cut_head=40)], 2),
    "busy for ever": ("-", [refusal()], 5),
    "nothing for ever": ("-", [Answer(drop="head")], 5),
    "cut at the same byte for ever": ("-", [rest_cut(0)], 5),
    "a wait that does not fit": ("timeout=20000", [refusal(503, 300)], 2),
}


@pytest.mark.parametrize("name", NOT_PROVEN)
def test_what_is_not_proven_is_not_shown(up, curtsy, name):
    """The first error is what the program gets, with what it has had by then."""
    words, answers, requests = NOT_PROVEN[name]
    expected = bare(curtsy, up, words, cut())
    assert (expected["code"], expected["length"]) == (18, FIRST_CUT)
    told, arrived = download(curtsy, up, words, cut(), *answers)
    assert told == expected
    assert arrived == requests


@pytest.mark.parametrize("attempts, whole_at_last", [(1, False), (2, False), (5, False), (8, True)])
def test_attempts_are_bounded(up, curtsy, attempts, whole_at_last):
    """100,000 bytes more each time: what is had by then is the program's."""
    expected = bare(curtsy, up, "-", whole())
    script = [cut(), *[rest_cut(100_000)] * 6, rest()]
    config = RESUME.replace("max_attempts = 5", f"max_attempts = {attempts}")
    told, arrived = download(curtsy, up, "-", *script, config=config)
    assert arrived == attempts
    if whole_at_last:
        assert told == expected
    else:
        assert (told["code"], told["length"]) == (18, FIRST_CUT + 100_000 * (attempts - 1))
        assert is_beginning(told)
        same = ("headers", "statuses", "status", "announced", "list", "headers_late", "goes_back", "header_size")
        assert {name: told[name] for name in same} == {name: expected[name] for name in same}
        assert told["size"] == told["size_real"] == told["length"]
        assert told["message"] == f"transfer closed with {SIZE - told['length']} bytes remaining to read"


# ---- the program's own will ----


@pytest.mark.parametrize("answers", [[rest()], [whole()]], ids=["206", "200"])
@pytest.mark.parametrize("word, code", [("stop", 23), ("abort", 42)])
def test_the_program_may_end_it_in_the_rest(up, curtsy, word, code, answers):
    expected = bare(curtsy, up, f"{word}=600000", whole())
    told, arrived = download(curtsy, up, f"{word}=600000", cut(), *answers)
    assert (told["code"], told["message"], arrived) == (code, expected["message"], 2)
    assert 600_000 <= told["length"] <= SIZE and is_beginning(told)
    same = ("headers", "status", "announced", "list", "headers_late", "bodies_late", "goes_back")
    assert {name: told[name] for name in same} == {name: expected[name] for name in same}


@pytest.mark.parametrize("at", [FIRST_CUT // 2, FIRST_CUT * 2])
def test_a_copy_made_meanwhile_asks_for_the_whole(up, curtsy, at):
    """A handle that was copied in the middle has nothing of ours: before the cut, or after it."""
    up.on("/data", whole())
    expected = downloads(curtsy, f"copy={at}", up.url("/data"), how="bare")
    ordinary = up.arrivals("/data")[-1].headers
    up.on("/data", cut(), rest(), whole())
    assert downloads(curtsy, f"copy={at}", up.url("/data")) == expected
    assert [arrival.headers for arrival in up.arrivals("/data")[-3::2]] == [ordinary, ordinary]


# ---- programs of others ----


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["-f"],
        ["-i"],
        ["--compressed"],
        ["-D", "headers"],
        ["--retry", "3"],
        ["-w", "%{http_code} %{size_download} %{content_type} %{num_headers} %header{etag} %header{x-second}\n"],
        ["-w", "%{header_json}\n"],
        ["-H", "X-Own: 1"],
    ],
    ids=" ".join,
)
def test_curl_gets_the_whole_file(up, curtsy, tmp_path, words):
    seen = {}
    for how, answers in {"bare": [whole()], "preload": [cut(), rest()]}.items():
        up.on("/data", *answers)
        folder = tmp_path / how
        folder.mkdir()
        result = curtsy.curl("-o", "file", *words, up.url("/data"), cwd=folder, how=how, config=RESUME)
        seen[how] = result.all, {file.name: file.read_bytes() for file in folder.iterdir()}
    assert seen["preload"] == seen["bare"]
    assert seen["bare"][1]["file"].endswith(BODY)
    assert len(up.arrivals()) == 3


@pytest.mark.parametrize("words", [["-C", "-"], ["-r", "1000-"], ["-H", "Range: bytes=1000-"]], ids=" ".join)
def test_what_curl_does_by_itself_is_left_to_it(up, curtsy, tmp_path, words):
    seen = {}
    up.on("/data", rest_cut(5000))
    for how in ("bare", "preload"):
        folder = tmp_path / how
        folder.mkdir()
        (folder / "file").write_bytes(BODY[:1000])
        result = curtsy.curl("-o", "file", *words, up.url("/data"), cwd=folder, how=how, config=RESUME)
        seen[how] = result.all, (folder / "file").read_bytes()
    assert seen["preload"] == seen["bare"]
    assert seen["bare"][0][0] == 18
    assert len(up.arrivals()) == 2


PYCURL = """
import hashlib, pycurl, sys
handle, digest, headers = pycurl.Curl(), hashlib.sha256(), []
handle.setopt(pycurl.URL, sys.argv[1])
handle.setopt(pycurl.WRITEFUNCTION, digest.update)
handle.setopt(pycurl.HEADERFUNCTION, headers.append)
handle.perform()
print(handle.getinfo(pycurl.RESPONSE_CODE), handle.getinfo(pycurl.SIZE_DOWNLOAD), digest.hexdigest(), headers)
"""

def python_has_pycurl() -> bool:
    return subprocess.run(["/usr/bin/python3", "-c", "import pycurl"], capture_output=True).returncode == 0


@pytest.mark.no_sanitizer("an interpreter")
def test_a_script_gets_the_whole(up, curtsy):
    if not python_has_pycurl():
        pytest.skip("no pycurl")
    argv = ["/usr/bin/python3", "-c", PYCURL, up.url("/data")]
    up.on("/data", whole())
    expected = curtsy.bare(argv)
    assert expected.text.startswith(f"200 {SIZE}")
    up.on("/data", cut(), rest())
    assert curtsy.run(argv, config=RESUME).all == expected.all
    assert len(up.arrivals()) == 3
