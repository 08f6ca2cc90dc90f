# SPDX-License-Identifier: MIT
"""No credential, no query string and no body is ever written anywhere: not into logs at their most
talkative, not to standard error, not into the segment, and not by any command that shows what happened.

Requests that are full of secrets are made in every way in which a request can go, and then the secrets
are looked for in all that Curtsy has written, as they are, in pieces, and in the forms that URLs and
headers give them.
"""

import base64
import json
import os
import random
import re
import string
import urllib.parse

import pytest

from harness import compile_c, until
from upstream import Answer

LETTERS = string.ascii_letters + string.digits
PIECE = 10  # characters of a secret that tell it


def secret(name):
    """Another one for each place, the same in every run: letters, digits and what has to be encoded."""
    draw = random.Random(name)
    word = "".join(draw.choice(LETTERS) for _ in range(24))
    return f"{word[:12]}/+{word[12:]}"


NAMES = [
    "query", "fragment", "user", "password", "bearer", "cookie", "api key", "private token", "basic password",
    "proxy password", "header", "post", "put", "form", "response", "response header", "set-cookie", "location",
    "refused body", "path", "referer", "agent",
]  # fmt: skip
SECRETS = {name: secret(name) for name in NAMES}


def forms(text):
    """How it may have been written: itself, percent-encoded, and within base64 at any alignment."""
    yield text.encode()
    yield urllib.parse.quote(text, safe="").encode()
    yield text.encode().hex().encode()
    for shift in range(3):
        # Only the characters that do not depend on what surrounds it.
        encoded = base64.b64encode(b"\0" * shift + text.encode())
        yield encoded[4:-4]


def patterns(text):
    pieces = (text[:PIECE], text[-PIECE:], text)
    return {form for piece in pieces for form in forms(piece)}


PATTERNS = {name: patterns(text) for name, text in SECRETS.items()}


def secrets_in(data):
    return {name for name, known in PATTERNS.items() if any(pattern in data for pattern in known)}


def test_it_would_find_them():
    for name, text in SECRETS.items():
        for hidden in (
            text.encode(),
            text[: PIECE + 3].encode(),
            base64.b64encode(b"user:" + text.encode()),
            base64.b64encode(b"z:" + text.encode() + b";"),
            urllib.parse.quote(text, safe="").encode(),
            text.encode().hex().encode(),
        ):
            assert secrets_in(b"GET /" + hidden + b"\n") == {name}
    assert secrets_in(b"nothing of that\n") == set()


# ---- requests ----


def quoted(name):
    return urllib.parse.quote(SECRETS[name], safe="")


def url(up, path, host="127.0.0.1"):
    """With secrets wherever a URL has room for them."""
    token = SECRETS["path"].replace("/+", "")
    query = f"?token={quoted('query')}&next=1#{quoted('fragment')}"
    return f"http://{quoted('user')}:{quoted('password')}@{host}:{up.port}{path}/{token}{query}"


def words(*more):
    """Of curl: with secrets wherever a request has room for them."""
    fields = {
        "Cookie": f"session={SECRETS['cookie']}",
        "X-Api-Key": SECRETS["api key"],
        "Private-Token": SECRETS["private token"],
        "X-Anything": SECRETS["header"],
    }
    shown = [word for name, value in fields.items() for word in ("-H", f"{name}: {value}")]
    said_of_itself = ["-e", f"http://a/{quoted('referer')}", "-A", SECRETS["agent"]]
    return ["curl", "-sS", "-o", "/dev/null", *said_of_itself, *shown, *more]


AUTHORIZATIONS = {
    "url": [],
    "bearer": ["-H", f"Authorization: Bearer {SECRETS['bearer']}"],
    "basic": ["-u", f"user:{SECRETS['basic password']}"],
    "oauth": ["--oauth2-bearer", SECRETS["bearer"]],
    "proxy": ["-U", f"user:{SECRETS['proxy password']}"],
}
BODIES = {
    "get": [],
    "post": ["-d", SECRETS["post"]],
    "keyed post": ["-d", SECRETS["post"], "-H", "Idempotency-Key: k-1"],
    "put": ["-X", "PUT", "--data-binary", SECRETS["put"]],
    "form": ["-X", "PUT", "-F", f"field={SECRETS['form']}"],
}
SAID = [
    ("Set-Cookie", f"session={SECRETS['set-cookie']}"),
    ("X-Request-Token", SECRETS["response header"]),
    ("WWW-Authenticate", f'Basic realm="{SECRETS["response header"]}"'),
]


def serve(up):
    body = SECRETS["response"].encode()
    refusal = SECRETS["refused body"].encode()
    moved = [("Location", f"/right/x?token={quoted('location')}"), *SAID]
    up.on("/right*", Answer(200, SAID, body))
    up.on("/limited*", Answer(429, [("Retry-After", "1"), *SAID], refusal))
    up.on("/once*", Answer(429, [("Retry-After", "1"), *SAID], refusal), Answer(200, SAID, body))
    up.on("/busy*", Answer(503, SAID, refusal))
    up.on("/moved*", Answer(302, moved, refusal))
    up.on("/denied*", Answer(401, SAID, refusal))
    up.on("/reset*", Answer(drop="body", reset=True))
    strange = [("Retry-After", SECRETS["response header"]), ("X-RateLimit-Reset", SECRETS["header"])]
    nothing_left = [("X-RateLimit-Limit", "10"), ("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "1")]
    up.on("/strange*", Answer(429, strange))
    up.on("/paced*", Answer(200, nothing_left, body))


CONFIG = """
[default]
base_delay = 10ms
max_attempts = 2
max_wait = 1500ms
[127.0.0.1]
retry_errors = reset, connect
"""


def make_requests(curtsy, up, env):
    """In every way in which one can go; what each of them has printed."""
    printed = []

    def curl(path, *more, **options):
        result = curtsy.run(words(*more, url(up, path)), env={**env, **options.pop("env", {})}, **options)
        printed.append(result.stderr)

    for number, authorization in enumerate(AUTHORIZATIONS.values()):
        curl("/right", *authorization, *list(BODIES.values())[number])
    for body in BODIES.values():
        curl("/busy", *AUTHORIZATIONS["bearer"], *body)
    curl("/once", *AUTHORIZATIONS["basic"])
    curl("/moved", "-L")
    curl("/denied", "--digest", *AUTHORIZATIONS["basic"])
    curl("/reset")
    curl("/strange", *AUTHORIZATIONS["bearer"])
    curl("/limited", "-d", SECRETS["post"], env={"CURTSY_MODE": "observe"})
    curl("/paced")
    curl("/right", *AUTHORIZATIONS["bearer"], env={"CURTSY_SET": "max_wait = 0s"})  # given up, not sent
    for mode in ("observe", "off"):
        curl("/limited", *AUTHORIZATIONS["bearer"], env={"CURTSY_MODE": mode})
    return printed


# Prints the error buffer, and whatever else getinfo tells of a request that was not sent.
BUFFER = """
#include <curl/curl.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    char error[CURL_ERROR_SIZE] = "";
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
    curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, argv[2]);
    curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    int result = curl_easy_perform(easy);
    printf("%d %s\\n", result, error);
    return 0;
}
"""


@pytest.mark.slow(8)
@pytest.mark.parametrize("form", ["text", "json"])
def test_nothing_of_a_request_is_written_anywhere(up, curtsy, form):
    serve(up)
    curtsy.configure(CONFIG)
    log = curtsy.folder / "log"
    env = {"CURTSY_LOG": "debug", "CURTSY_LOG_FILE": os.fspath(log), "CURTSY_LOG_FORMAT": form}
    written = {f"standard error {number}": text for number, text in enumerate(make_requests(curtsy, up, env))}

    # One that waits: seen by all who look.
    assert curtsy.tool("hold", up.authority, "60s").rc == 0
    patient = {"CURTSY_SET": "max_wait = 1h"}
    waiter = curtsy.start(words(*AUTHORIZATIONS["bearer"], *BODIES["post"], url(up, "/right")), env=env | patient)
    until(lambda: json.loads(curtsy.tool("ps", "--json", str(waiter.pid)).stdout)["processes"][0].get("waiters"))
    written["error buffer"] = curtsy.run(
        [compile_c(BUFFER, curtsy.folder / "buffer", "-lcurl"), url(up, "/right"), SECRETS["bearer"]],
        env=env | {"CURTSY_SET": "max_wait = 0s"},
    ).stdout
    assert b"Curtsy: not sent" in written["error buffer"]
    for view in ("status", "events", "ps"):
        for more in ([], ["--json"]):
            written[f"{view} {more}"] = curtsy.tool(view, *more).stdout
    given = ["-H", f"Authorization: Bearer {SECRETS['bearer']}", "-H", f"X-Api-Key: {SECRETS['api key']}"]
    for more in ([], ["--json"]):
        written[f"explain {more}"] = curtsy.tool("explain", *more, *given, url(up, "/right")).stdout
    fields = "".join(f"{name}: {value}\r\n" for name, value in SAID)
    written["headers"] = curtsy.tool("headers", stdin=f"HTTP/1.1 429 No\r\n{fields}\r\n".encode()).stdout
    assert curtsy.tool("release", up.authority).rc == 0
    written["the waiter"] = waiter.wait().stderr

    written["log"], written["segment"] = log.read_bytes(), curtsy.segment.read_bytes()
    for place, text in written.items():
        assert secrets_in(text) == set(), f"in {place}"
    all_was_logged(written["log"].decode(), form)
    assert up.authority.encode() in written["segment"] and f"GET {up.authority}/right/*".encode() in written["events []"]


def all_was_logged(text, form):
    """There was something to be found in: each kind of line."""
    lines = text.splitlines()
    assert len(lines) > 20
    if form == "json":
        assert all(json.loads(line) for line in lines)
    for kind in ("/limited/*", "/right/*", "/busy/*", "/reset/*", "waiting", "not sent", "policy: sections"):
        assert any(kind in line for line in lines), kind
    assert any(re.search(r"observed|would", line) for line in lines)


@pytest.mark.parametrize("fault", ["the URL", "the proxy", "the host"])
def test_nothing_is_written_about_what_is_malformed(curtsy, fault):
    """Not even of what could not be taken apart."""
    user = f"{quoted('user')}:{quoted('password')}"
    query = f"?token={quoted('query')}"
    case = {
        "the URL": [f"http://{user}@127.0.0.1:99999/{query}"],
        "the proxy": ["-x", f"http://{user}@127.0.0.1:1", f"http://origin.test/{query}"],
        "the host": [f"http://{user}@nowhere.invalid/{query}"],
    }[fault]
    log = curtsy.folder / "log"
    env = {"CURTSY_LOG": "debug", "CURTSY_LOG_FILE": os.fspath(log)}
    config = "[default]\nmax_attempts = 2\nbase_delay = 10ms\n"
    result = curtsy.run(words(*case), env=env, config=config)
    assert result.rc != 0
    written = [result.stderr, curtsy.segment.read_bytes(), curtsy.tool("events").stdout]
    written.append(log.read_bytes() if log.exists() else b"")
    assert [secrets_in(text) for text in written] == [set()] * 4
