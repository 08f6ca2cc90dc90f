# SPDX-License-Identifier: MIT
"""The response on its way to the program.  A refusal is held until it is decided; whatever the
program's callbacks do meanwhile, and whatever the answer looks like, they are given what they would
be given without Curtsy, in the same order and with the same arguments."""

import gzip

import pytest

from harness import not_early, told
from http2_script import ScriptedHttp2
from upstream import Answer

FOUR = Answer(200, [("X-Mark", "delivered")], b"four")
SOON = Answer(429, [("Retry-After-Ms", "3")], b"no")  # short enough for the smallest CURLOPT_MAXFILESIZE below
NEVER = [("Retry-After", "7200")]  # so late that the refusal is the program's
CHUNKS = b"5\r\nhello\r\n5\r\nworld\r\n5\r\nagain\r\n0\r\n"
GO_ON = ["progress=continue", "perform"]


def raw(status, *fields, body=b"", end=b"\r\n"):
    """An answer to the byte, after which the connection ends."""
    head = b"HTTP/1.1 %d Status" % status
    return Answer(raw=end.join([head, *fields, b"", body]))


def chunked(status, *fields, trailers=b""):
    return raw(status, b"Transfer-Encoding: chunked", b"Connection: close", *fields, body=CHUNKS + trailers + b"\r\n")


# ---- programs that pause ----

PAUSES = {
    "each header": ["header=pause"],
    "each piece of body": ["body=pause"],
    "both": ["header=pause", "body=pause"],
    "the second header": ["header:2=pause"],
    "the third header": ["header:3=pause"],
}
pauses_everywhere = pytest.mark.parametrize("pauses", PAUSES)


@pauses_everywhere
@pytest.mark.parametrize("status", [200, 302, 401, 404])
def test_a_later_attempt_that_pauses_loses_nothing(up, curtsy, status, pauses):
    """A redirect or a 401 may turn out an intermediate answer, so on a later attempt it is held."""
    up.on("/data", chunked(status, b"X-A: 1"))
    whole = curtsy.callbacks("url=" + up.url("/data"), "perform", how="bare")
    up.on("/data", SOON, chunked(status, b"X-A: 1"))
    paused = curtsy.callbacks("url=" + up.url("/data"), *PAUSES[pauses], *GO_ON)
    assert paused.all == whole.all and b"helloworldagain" in whole.stdout
    assert len(up.arrivals()) == 3


REFUSALS = {
    "with a length": Answer(429, NEVER, b"0123456789" * 100),
    "empty": Answer(429, NEVER),
    "to the end": Answer(429, NEVER, b"0123456789", framing="close"),
    "chunked": Answer(429, NEVER, b"0123456789" * 100, framing="chunked", pieces=10),
    "with trailers": chunked(429, b"Retry-After: 7200", trailers=b"X-Trail: 1\r\n"),
    "too large to keep": Answer(429, [("Retry-After", "1")], bytes(range(97, 123)) * 44_000),
}


@pauses_everywhere
@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refusal_is_whole_for_a_program_that_pauses(up, curtsy, refusal, pauses):
    up.on("/data", REFUSALS[refusal])
    whole = curtsy.callbacks("url=" + up.url("/data"), "perform", how="bare")
    paused = curtsy.callbacks("url=" + up.url("/data"), *PAUSES[pauses], *GO_ON)
    assert paused.all == whole.all and b"status 429" in whole.stdout


@pauses_everywhere
@pytest.mark.parametrize("status", [200, 429])
def test_pausing_with_the_headers_in_the_body(up, curtsy, status, pauses):
    """CURLOPT_HEADER: two callbacks are given each line, and either may pause."""
    up.on("/data", Answer(status, [*NEVER, ("X-B", "2"), ("X-C", "3")], b"body"))
    words = ["url=" + up.url("/data"), "include"]
    whole = curtsy.callbacks(*words, "perform", how="bare")
    assert curtsy.callbacks(*words, *PAUSES[pauses], *GO_ON).all == whole.all


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_refusal_behind_a_redirect_is_noticed_though_the_program_pauses(up, curtsy, at):
    up.on("/from", Answer(302, [("Location", "/to")]))
    up.on("/to", SOON, FOUR)
    result = curtsy.callbacks("url=" + up.url("/from"), "follow", f"header:{at}=pause", *GO_ON)
    up.on("/to", FOUR)
    assert result.all == curtsy.callbacks("url=" + up.url("/from"), "follow", "perform", how="bare").all
    assert len(up.arrivals("/to")) == 3


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_refusal_is_noticed_though_the_program_stops_the_transfer_meanwhile(up, curtsy, at):
    """A program may pause by curl_easy_pause, too: what comes after it comes run together."""
    up.on("/data", Answer(429, [*NEVER, ("X-A", "1")], b"body"))
    words = ["url=" + up.url("/data"), "post=x"]
    result = curtsy.callbacks(*words, f"header:{at}=stop", *GO_ON)
    assert b"status 429" in result.stdout and b"stop 0" in result.stdout
    assert curtsy.status()["buckets"][0]["block"] == "hard", result.text


@pytest.mark.slow(6)
@pytest.mark.parametrize("options", [[], ["fail"]], ids=["", "fail"])
@pytest.mark.parametrize("body", [b"", b"slow\n"], ids=["empty", "body"])
def test_a_pause_without_end_ends_with_the_programs_own_timeout(up, curtsy, body, options):
    up.on("/data", Answer(429, NEVER, body))
    words = ["url=" + up.url("/data"), *options, "timeout=1500", "header:1=pause", "perform"]
    governed, bare = curtsy.callbacks(*words), curtsy.callbacks(*words, how="bare")
    assert governed.text.splitlines()[1:] == bare.text.splitlines()[1:]
    assert governed.text.split('"')[0] == bare.text.split('"')[0]
    assert b"perform 28" in governed.stdout or options


# Ends in a response that was kept, which Curtsy itself gives to the program when no attempt follows.
ENDS_IN_WHAT_WAS_KEPT = {
    "its timeout, in a pause": (["timeout=2500", "header:2=pause"], '28 status 429 "Operation timed out after '),
    "its progress callback, in a pause": (["header:2=pause", "wait:12=refuse"], '42 status 429 "Callback aborted"\n'),
    "its header callback": (["header:2=refuse"], '23 status 429 "Failed writing header"\n'),
}


@pytest.mark.slow(3)
@pytest.mark.parametrize("end", ENDS_IN_WHAT_WAS_KEPT)
def test_what_ends_a_transfer_ends_what_was_kept_too(up, curtsy, end):
    up.on("/data", told(1), FOUR)
    rules, outcome = ENDS_IN_WHAT_WAS_KEPT[end]
    result = curtsy.callbacks("url=" + up.url("/data"), "wait:1=post=new", *rules, "perform")
    assert result.text.startswith(f"perform {outcome}")
    assert result.text.endswith('headers 32 "HTTP/1.1 429 Too Many Requests\\r\\n"\nbody 0 ""\n')
    assert len(up.arrivals()) == 1


# ---- programs that end it ----


@pytest.mark.parametrize("at", ["header:1", "header:2", "header:4", "body:1"])
@pytest.mark.parametrize("status", [200, 429])
def test_a_callback_that_refused_is_not_called_again(up, curtsy, status, at):
    up.on("/data", Answer(status, NEVER, b"slow down\n" * 10_000))
    words = ["url=" + up.url("/data"), f"{at}=refuse", "perform"]
    governed, bare = curtsy.callbacks(*words), curtsy.callbacks(*words, how="bare")
    assert governed.all == bare.all and b"perform 23" in bare.stdout and b"late" not in bare.stdout


def test_a_program_that_ends_it_while_the_refusal_comes_is_left_alone(up, curtsy):
    """No callback after the progress callback has aborted, and no attempt.  Of what was to be hidden nothing is told."""
    up.on("/data", Answer(429, [("Retry-After", "1")], b"xy", pieces=2, piece_delay=20))
    words = ["url=" + up.url("/data"), "answered:1=refuse", "perform"]
    assert curtsy.callbacks(*words).text == 'perform 42 status 0 "Callback aborted"\nheaders 0 ""\nbody 0 ""\n'
    assert len(up.arrivals()) == 1


# ---- intermediate answers ----

HINT = Answer(103, [("Link", "</a>")], framing="none")
REDIRECT = Answer(302, [("Location", "/to"), ("Set-Cookie", "a=b")], b"moved")
CHALLENGE = Answer(401, [("WWW-Authenticate", 'Digest realm="r", nonce="n", qop="auth"')], b"who?")
DIGEST = ["--digest", "-u", "user:password"]
# What is asked for, how /data answers, how /to answers.
INTERMEDIATE = {
    "refused, then redirected": (["-L"], [SOON, REDIRECT], [FOUR]),
    "redirected, then refused": (["-L"], [REDIRECT], [SOON, FOUR]),
    "refused at each hop": (["-L"], [SOON, REDIRECT], [SOON, SOON, FOUR]),
    "redirected in the end": ([], [SOON, REDIRECT], []),
    "a hint": ([], [SOON, Answer(200, body=b"x", before=[HINT])], []),
    "hints each time": ([], [Answer(429, SOON.headers, b"", before=[HINT]), Answer(200, body=b"x", before=[HINT])], []),
    "challenged, then refused": (DIGEST, [CHALLENGE, SOON, FOUR], []),
    "refused, then challenged": (DIGEST, [SOON, CHALLENGE, FOUR], []),
    "challenged in the end": ([], [SOON, CHALLENGE], []),
    "through a tunnel": (["-p", "-x", "PROXY"], [SOON, FOUR], []),
}


@pytest.mark.parametrize("case", INTERMEDIATE)
def test_intermediate_answers_are_shown_once(up, curtsy, case):
    """As if there had been no refusal."""
    options, data, to = INTERMEDIATE[case]
    up.on("origin.test:80", Answer(200, [("X-Proxy", "1")], framing="none"))
    url = "http://origin.test/data" if "PROXY" in options else up.url("/data")
    words = [up.url() if word == "PROXY" else word for word in options]

    def seen(data, to, how):
        up.on("/data", *data)
        up.on("/to", *to or [FOUR])
        return curtsy.curl("-i", *words, url, how=how)

    without_refusals = [[answer for answer in answers if answer.status != 429] for answers in (data, to)]
    assert seen(data, to, "preload").all == seen(*without_refusals, "bare").all


def test_a_hint_before_a_reset_is_shown_once(up, curtsy):
    up.on("/data", Answer(raw=b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", reset=True))
    words = ["curl", "-sS", "-i", up.url("/data")]
    governed = curtsy.run(words, config="[127.0.0.1]\nbase_delay = 10ms\nmax_attempts = 3\n")
    assert len(up.arrivals()) == 3
    assert governed.all == curtsy.bare(words).all


# ---- programs that change their mind while they wait ----

# What it does, and what it gets: after curl_easy_reset the body goes to standard output, and getinfo
# has forgotten all.
CHANGES = {
    "another body": (["wait:1=post=order"], b'perform 0 status 429 ""'),
    "another URL": (["wait:1=url=http://127.0.0.1:1/"], b'perform 0 status 429 ""'),
    "nothing left of it": (["wait:1=reset"], b'slow down\nperform 0 status 0 ""'),
    "all anew": (["wait:1=reset", "wait:1=url=URL", "wait:1=writer"], b'perform 0 status 0 ""'),
}


@pytest.mark.slow(2)
@pytest.mark.parametrize("change", CHANGES)
def test_what_was_changed_while_it_waited_is_not_sent(up, curtsy, change):
    """A repeat would not be one.  The program gets the response that was kept."""
    up.on("/data", told(1), FOUR)
    rules, outcome = CHANGES[change]
    rules = [rule.replace("URL", up.url("/data")) for rule in rules]
    result = curtsy.callbacks("url=" + up.url("/data"), *rules, "perform")
    assert result.stdout.startswith(outcome) and b"slow down" in result.stdout
    assert len(up.arrivals()) == 1


# ---- HTTP/2 ----


@pytest.mark.slow(2)
def test_a_retry_over_http2_with_prior_knowledge(curtsy):
    with ScriptedHttp2(told(1), FOUR) as server:
        result = curtsy.curl("--http2-prior-knowledge", "-w%{http_version}", server.url("/data"))
        assert result.all == (0, b"four2", b"")
        assert len(server.requests) == 2


HTTP2 = {"429": [Answer(429, NEVER, b"no\n")], "200": [FOUR], "a refused stream": [None, FOUR]}


@pytest.mark.parametrize("case", HTTP2)
@pytest.mark.parametrize("trailers", [[], [("x-trail", "1")]], ids=["", "trailers"])
def test_http2_is_what_it_is_without_curtsy(curtsy, case, trailers):
    answers = HTTP2[case]
    with ScriptedHttp2(*answers, trailers=trailers) as server, ScriptedHttp2(*answers, trailers=trailers) as other:
        governed = curtsy.curl("--http2-prior-knowledge", "-i", server.url("/data"))
        assert governed.all == curtsy.bare(["curl", "-sS", "--http2-prior-knowledge", "-i", other.url("/data")]).all
        assert server.requests == other.requests


# ---- everything else: held answers, by option sets ----

TWICE = [("Retry-After", "7200"), ("Retry-After", "7201"), ("X-A", "1")]
HELD = {
    "plain": Answer(429, TWICE, b"0123456789"),
    "empty": Answer(503, TWICE),
    "large": Answer(429, TWICE, b"y" * 40_000),
    "chunked": Answer(429, TWICE, b"0123456789", framing="chunked", pieces=3, close=True),
    "to the end": Answer(429, TWICE, b"0123456789", framing="close"),
    "trailers": chunked(429, b"Retry-After: 7200", trailers=b"X-Trail: 1\r\n"),
    "compressed": Answer(429, [*TWICE, ("Content-Encoding", "gzip")], gzip.compress(b"x" * 50_000, mtime=0)),
    "badly compressed": Answer(429, [*TWICE, ("Content-Encoding", "gzip")], b"nonsense"),
    "hints": Answer(429, TWICE, b"abc", before=[HINT, Answer(100, framing="none")]),
    "cut in the body": Answer(429, TWICE, b"0123456789" * 100, cut_body=30),
    "cut in the head": Answer(429, TWICE, b"0123456789", cut_head=40),
    "HTTP/1.0": Answer(raw=b"HTTP/1.0 429 X\r\nRetry-After: 7200\r\n\r\nhello"),
    "HTTP/0.9": Answer(raw=b"garbage\r\n\r\n"),
    "bare line feeds": raw(429, b"Retry-After: 7200", body=b"hello", end=b"\n"),
    "folded": raw(429, b"Retry-After: 7200", b"X-A: b\r\n c", body=b"hello"),
    "a zero byte": raw(429, b"X: a\0b", body=b"hello"),
    "no reason": Answer(raw=b"HTTP/1.1 429\r\nRetry-After: 7200\r\nContent-Length: 3\r\n\r\nabc"),
    "redirect": Answer(302, [("Location", "/final")], b"moved"),
}
CALLBACKS = "plain header header-file writer writer,header writer,header-data writer,header,header-data".split()
OPTIONS = CALLBACKS + [f"{callbacks},include" for callbacks in CALLBACKS]
OPTIONS += [
    f"writer,header,{more}"
    for more in (
        "fail fail,include fail,resume head head,include max-size max-size,include decode decode,include range resume "
        "resume,include http0.9 raw raw,include follow follow,include follow,head"
    ).split()
]
OPTIONS += ["writer,header-data,max-size", "writer,header-data,follow,fail"]
ANSWERS_OF_PROXIES = {
    "proxy: 200": Answer(200, [("X-Proxy", "1")], framing="none"),
    "proxy: 429": Answer(429, NEVER, b"no"),
    "proxy: 407": Answer(407, [("Proxy-Authenticate", "Basic realm=x")], b"no"),
    "proxy: 503": Answer(503, NEVER),
}
TUNNELS = [f"{options},tunnel" for options in ("writer,header", "writer,header,include", "writer,header-data")]
TUNNELS += [f"writer,header,tunnel,{more}" for more in ("no-connect", "include,fail", "head")]


def recorded(curtsy, up, options, host, query="", how="preload"):
    """What the recorder saw, by option set.  Each case goes to a host of its own, so that none is
    held back by what another was told."""
    words = [up.url()]
    for number, option in enumerate(options):
        words += [option, f"http://case{number}.{host}/data{query}"]
    result = curtsy.run([curtsy.victim("recorder"), *words], how=how)
    assert result.rc == 0
    return dict(zip(options, result.stdout.split(b"\ncase ")[1:]))


@pytest.mark.parametrize("case", [*HELD, *ANSWERS_OF_PROXIES])
def test_a_held_answer_is_delivered_as_it_came(up, curtsy, case):
    """Callbacks, their order and arguments, what getinfo says in each and afterwards, the header API."""
    up.on("/data", HELD.get(case, HELD["plain"]))
    up.on("/final", Answer(429, TWICE, b"final"))
    options, host = OPTIONS, f"localhost:{up.port}"
    if case in ANSWERS_OF_PROXIES:
        options, host = TUNNELS, "origin.test"
        for number in range(len(TUNNELS)):
            up.on(f"case{number}.origin.test:80", ANSWERS_OF_PROXIES[case])
    assert recorded(curtsy, up, options, host) == recorded(curtsy, up, options, host, how="bare")


@pytest.mark.parametrize("case", HELD)
def test_after_a_retry_as_if_there_had_been_none(up, curtsy, case):
    """The same, where another answer was refused and dropped before: nothing of that one is seen."""
    refused = set()

    def refuse_once(request):
        if request.arrival.target.endswith("?refused") and request.arrival.header("Host") not in refused:
            refused.add(request.arrival.header("Host"))
            return SOON
        return HELD[case]

    up.on("/data", refuse_once)
    up.on("/final", Answer(429, TWICE, b"final"))
    host = f"localhost:{up.port}"
    governed = recorded(curtsy, up, OPTIONS, host, "?refused")
    assert governed == recorded(curtsy, up, OPTIONS, host, how="bare")
    assert len(refused) == len(OPTIONS)
