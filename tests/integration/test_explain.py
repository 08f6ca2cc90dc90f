# SPDX-License-Identifier: MIT
"""curtsy explain: what it says, and whether it is so.  What the library itself has resolved is in its
log (CURTSY_LOG=debug: "policy: sections ...; buckets ...; key=value, ..."); what it does is what arrives
at the server."""

import hashlib
import json
import os
import random
import re
import shutil
import time

import pytest

from harness import compile_c, needed_libraries, told
from upstream import Answer

SECRET = "s3cr3t"


def explain(curtsy, *words, **options):
    """The documents of a call, one a URL."""
    result = curtsy.tool("explain", "--json", *words, **options)
    assert (result.rc, result.stderr) == (0, b""), result.errors
    lines = result.text.splitlines()
    return [json.loads(result.text)] if lines[0] == "{" else [json.loads(line) for line in lines]


def explain_one(curtsy, *words, **options):
    (document,) = explain(curtsy, *words, **options)
    return document


def text_of(curtsy, *words, **options):
    """The blocks of a text, each by its first line."""
    result = curtsy.tool("explain", *words, **options)
    assert (result.rc, result.stderr) == (0, b""), result.errors
    blocks = {}
    for line in result.text.splitlines():
        if line and not line.startswith(" "):
            blocks[line] = rows = []
        elif line:
            rows.append(line.strip())
    return blocks


def speaking(document):
    return [section["name"] for section in document["sections"] if section["speaks"]]


def silent(document):
    return {section["name"]: section["why"] for section in document["sections"] if not section["speaks"]}


def values(document):
    """What is not the default."""
    return {name: key["value"] for name, key in document["keys"].items() if not key["default"]}


# ---- what is shown ----

SECTIONS = """\
[default]
max_attempts = 4
[api.example.com]
quota = 5000/h
[api.example.com "writes"]
methods = POST, PUT
max_delay = 3s
[api.example.com/v1/search]
quota = 30/min
[*.example.com]
programs = !git
spread = 5%
[*.example.com:8443]
base_delay = 1s
[api.example.org]
base_delay = 2s
"""


def test_text(curtsy, config):
    config(SECTIONS)
    file = curtsy.config_file
    blocks = text_of(curtsy, "https://api.example.com/v1/search/code")
    titles = list(blocks)
    assert titles[0].startswith(f"segment {curtsy.segment} (not there yet), owned by ")
    assert titles[1] == "GET api.example.com/v1/search/code"
    assert titles[2:] == [
        "sections that speak, the most specific first",
        "sections that do not, and why",
        "values (* not the default)",
        "buckets",
        "now",
        "what would be tried again",
    ]
    assert re.fullmatch(r"URL +https, port 443; taken apart by libcurl \d.*", blocks[titles[1]][0])
    assert [re.sub(" +", " ", row) for row in blocks[titles[2]]] == [
        f"[api.example.com/v1/search] {file}:8",
        f"[api.example.com] {file}:3",
        f"[*.example.com] {file}:10",
        f"[default] {file}:1",
    ]
    assert [re.sub(" +", " ", row) for row in blocks[titles[3]]] == [
        f'[api.example.com "writes"] another method {file}:5',
        f"[*.example.com:8443] another port {file}:13",
        f"[api.example.org] another host {file}:15",
    ]
    rows = [re.sub(" +", " ", row) for row in blocks["values (* not the default)"]]
    assert f"* quota 30/min {file}:9" in rows and f"* max_attempts 4 {file}:2" in rows
    assert "max_wait auto built-in" in rows
    assert sum(row.startswith("*") for row in rows) == 3
    assert blocks["buckets"] == [
        "api.example.com:443 (not used yet)",
        "quota 5000/h: rate 4000/h, burst 998, tokens 998.0",
        "api.example.com:443/v1/search (not used yet)",
        "quota 30/min: rate 24/min, burst 5, tokens 5.0",
    ]
    assert [re.sub(" +", " ", row) for row in blocks["now"]] == ["mode enforce (built-in)", "it would be sent at once"]
    assert blocks["what would be tried again"][0] == "429, 502, 503, 504: yes, up to 4 attempts in all"


def test_json_has_every_key_in_the_tables_order(curtsy, config):
    config(SECTIONS)
    document = explain_one(curtsy, "https://api.example.com/")
    assert (document["segment"], document["method"], document["scheme"]) == (os.fspath(curtsy.segment), "GET", "https")
    assert (document["host"], document["port"]) == ("api.example.com", 443)
    summary = json.loads(curtsy.tool("summary", "--json", "api.example.com").stdout)
    (policy,) = summary["policies"]
    assert list(document["keys"]) == list(policy["keys"])
    for name, key in document["keys"].items():
        assert (key["value"], key["origin"]) == tuple(policy["keys"][name].values())
    assert values(document) == {"quota": "5000/h", "max_attempts": "4", "spread": "5%"}
    assert document["keys"]["cache"]["in_force"] is False and document["keys"]["quota"]["in_force"] is True
    (limit,) = document["buckets"][0]["limits"]
    assert (limit["quota"], limit["window_s"], limit["burst"]) == (5000, 3600, 998)


def test_method(curtsy, config):
    config(SECTIONS)
    document = explain_one(curtsy, "-X", "POST", "https://api.example.com/")
    assert speaking(document) == ['api.example.com "writes"', "api.example.com", "*.example.com", "default"]
    assert document["method"] == "POST" and document["endpoint"] == "POST api.example.com/"
    assert silent(explain_one(curtsy, "-X", "post", "https://api.example.com/"))['api.example.com "writes"'] == "another method"


@pytest.mark.parametrize("program, speaks", [("git", False), ("/usr/bin/git", False), ("curl", True), (None, True)])
def test_program(curtsy, config, program, speaks):
    config(SECTIONS)
    document = explain_one(curtsy, *(["--program", program] if program else []), "https://api.example.com/")
    assert ("*.example.com" in speaking(document)) == speaks
    assert silent(document).get("*.example.com") == (None if speaks else "another program")
    assert document["program"] == (os.path.basename(program) if program else "")


def test_a_file_instead_of_the_configuration(curtsy, config, tmp_path):
    config(SECTIONS)
    (tmp_path / "other.ini").write_text("[api.example.com]\nmax_attempts = 2\n")
    for words, stdin in ((["-c", tmp_path / "other.ini"], None), (["-c", "-"], b"[api.example.com]\nmax_attempts = 2\n")):
        document = explain_one(curtsy, *words, "https://api.example.com/", stdin=stdin, env={"CURTSY_SET": "max_delay = 1s\n"})
        assert values(document) == {"max_attempts": "2", "max_delay": "1s"}
        assert document["keys"]["max_delay"]["origin"] == "CURTSY_SET:1"


def test_faults_of_the_file_are_told(curtsy, config):
    config("[default]\nqouta = 5/s\nmax_attempts = 2\n")
    result = curtsy.tool("explain", "--json", "https://api.example.com/")
    assert result.rc == 0 and result.errors.startswith(f"{curtsy.config_file}:2: error: ")
    assert values(json.loads(result.stdout)) == {"max_attempts": "2"}


def test_of_many_sections_only_the_near_ones_are_shown(curtsy, config):
    many = "".join(f"[host{i}.example.org]\nquota = {i + 1}/h\n" for i in range(9998))
    config(many + "[api.gihtub.com]\n[github.com]\n[*.github.com:99]\n[*.api.github.com]\n[api.github.com/v1]\nquota=1/s\n")
    document = explain_one(curtsy, "https://api.github.com/")
    assert silent(document) == {
        "api.gihtub.com": "another host",
        "github.com": "another host",
        "*.github.com:99": "another port",
        "*.api.github.com": "another host",
        "api.github.com/v1": "another path",
    }
    assert document["sections_not_shown"] == {"this_host": 0, "other_hosts": 9998}
    blocks = text_of(curtsy, "https://api.github.com/")
    assert blocks["sections that do not, and why"][-1] == "and 9,998 sections for other hosts"


def test_of_many_paths_of_one_host_some_are_shown(curtsy, config):
    config("".join(f"[api.example.com/v{i}]\nquota = {i + 1}/h\n" for i in range(200)))
    document = explain_one(curtsy, "https://api.example.com/")
    assert len(silent(document)) + document["sections_not_shown"]["this_host"] == 200
    assert 0 < len(silent(document)) < 100 and document["sections_not_shown"]["other_hosts"] == 0


def test_more_sections_than_are_heard(curtsy, config):
    config("".join(f'[api.example.com "{i}"]\nquota = {i + 1}/h\n' for i in range(40)))
    document = explain_one(curtsy, "https://api.example.com/")
    assert len(speaking(document)) == 32 and speaking(document)[0] == 'api.example.com "39"'
    assert set(silent(document).values()) == {"more sections match than are heard, and it is the less specific"}


def test_several_urls(curtsy, config):
    config(SECTIONS)
    urls = ["https://api.example.com/", "ftp://api.example.com/", "http://api.example.org/"]
    documents = explain(curtsy, *urls)
    assert [document["now"]["decision"] for document in documents] == ["send", "ungoverned", "send"]
    result = curtsy.tool("explain", *urls)
    assert [line for line in result.text.splitlines() if re.match("GET|not", line)] == [
        "GET api.example.com/",
        "not governed: ftp is not http or https",
        "GET api.example.org/",
    ]
    assert result.text.count("segment ") == 1


# ---- URLs ----


@pytest.mark.parametrize("url", ["ftp://example.com/", "ftp.example.com", "file:///etc/passwd", "ws://example.com/"])
def test_what_is_not_governed(curtsy, url):
    result = curtsy.tool("explain", url)
    assert (result.rc, result.stderr) == (0, b"")
    assert re.search(r"^not governed: (ftp|file|ws) is not http or https$", result.text, re.M)
    document = explain_one(curtsy, url)
    assert document["now"]["decision"] == "ungoverned" and "endpoint" not in document


@pytest.mark.parametrize("url", ["http://a b/", "http://:80/", "http://[::1/", "http://h:99999/", "", "http://u:%s@ /" % SECRET])
def test_what_is_no_url(curtsy, url):
    result = curtsy.tool("explain", url)
    assert result.rc == 2 and re.fullmatch("curtsy explain: URL 1: libcurl .*\n", result.errors)
    assert SECRET not in result.errors + result.text
    result = curtsy.tool("explain", "--json", "http://h/", url)
    assert result.rc == 2 and "URL 2" in result.errors
    good, bad = map(json.loads, result.text.splitlines())
    assert good["host"] == "h" and "libcurl" in bad["error"]


@pytest.mark.parametrize(
    "url, expected",
    [
        ("example.com", ("http", "example.com", 80)),
        ("HTTPS://API.Example.COM.:8443", ("https", "api.example.com", 8443)),
        ("https://example.com:0443/", ("https", "example.com", 443)),
        ("http://[::ffff:1.2.3.4]:81/", ("http", "::ffff:1.2.3.4", 81)),
        ("http://[fe80::1%25eth0]/", ("http", "fe80::1", 80)),
        ("http://b\u00fccher.example/", ("http", "xn--bcher-kva.example", 80)),
        ("http://0x7f.1/", ("http", "127.0.0.1", 80)),
        ("http://h:/\u009b31m", ("http", "h", 80)),
    ],
)
def test_odd_urls(curtsy, url, expected):
    document = explain_one(curtsy, url)
    assert (document["scheme"], document["host"], document["port"]) == expected
    assert "\u009b" not in document["endpoint"]


def test_the_command_needs_no_libcurl_to_start(curtsy):
    assert not [name for name in needed_libraries(curtsy.command) if "curl" in name]


def test_it_works_under_curtsy_itself(curtsy):
    result = curtsy.run([curtsy.command, "explain", "--json", "http://me:%s@h:81/" % SECRET])
    assert (result.rc, result.stderr) == (0, b"") and json.loads(result.stdout)["port"] == 81


@pytest.fixture
def without_libcurl(curtsy, tmp_path):
    """An environment in which these libraries cannot be loaded."""
    source = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <stdlib.h>
    #include <string.h>
    void *dlopen(const char *name, int flags)
    {
        void *(*real)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
        const char *missing = getenv("MISSING");
        return real(name && missing && strstr(missing, name) ? "/missing.so" : name, flags);
    }"""
    library = compile_c(source, tmp_path / "missing.so", "-shared", "-fPIC", "-ldl")
    return lambda missing: {"LD_PRELOAD": os.fspath(library), "MISSING": missing}


@pytest.mark.no_sanitizer("it has a dlopen of its own")
def test_another_flavour_of_libcurl_will_do(curtsy, without_libcurl):
    if not any(os.path.exists(f"{folder}/libcurl-gnutls.so.4") for folder in ("/usr/lib", "/usr/lib/x86_64-linux-gnu")):
        pytest.skip("no other flavour")
    assert explain_one(curtsy, "http://h/", env=without_libcurl("libcurl.so.4"))["host"] == "h"


@pytest.mark.no_sanitizer("it has a dlopen of its own")
def test_without_libcurl_it_says_so(curtsy, without_libcurl):
    result = curtsy.tool("explain", "http://h/", env=without_libcurl("libcurl.so.4 libcurl-gnutls.so.4 libcurl-nss.so.4"))
    assert (result.rc, result.stdout) == (2, b"")
    assert re.fullmatch("curtsy explain: .*libcurl.*there is none.*\n", result.errors)


# ---- headers, and what must not be shown ----


def test_what_carries_a_credential_is_said(curtsy, config, tmp_path):
    config("[api.example.com]\ncredential_query = access_token, key\n")
    (tmp_path / "headers").write_text(f"Accept: */*\r\n\nprivate-token: {SECRET}\n")
    url = f"https://api.example.com/?page=1&key={SECRET}#x"
    document = explain_one(curtsy, "-H", f"AUTHORIZATION: Bearer {SECRET}", "-H", f"@{tmp_path}/headers", url)
    assert document["credential"] == "header Authorization, header Private-Token, query parameter key"
    document = explain_one(curtsy, f"https://me:{SECRET}@api.example.com/?access_token=")
    assert document["credential"] == "the URL's user"
    assert explain_one(curtsy, "-H", "Authorization:", "https://api.example.com/")["credential"] is None


def test_headers_from_standard_input(curtsy):
    document = explain_one(curtsy, "-X", "POST", "-H", "@-", "http://h/", stdin=b"X-Api-Key: 1\nIdempotency-Key: 2")
    assert (document["credential"], document["has_idempotency_key"]) == ("header X-Api-Key", True)


@pytest.mark.parametrize("method, header, key", [("POST", "A: b", "made"), ("PATCH", "A: b", "made"), ("POST", "Idempotency-Key: 1", "its own"), ("PUT", "A: b", None)])
def test_a_key_that_would_be_made(curtsy, config, method, header, key):
    """With it a POST may be repeated, as explain then says; a request that has one, or needs none, gets none."""
    words = ["-X", method, "-H", header, "http://api.example.com/"]
    document = explain_one(curtsy, *words)
    assert (document["has_idempotency_key"], document["idempotency_key_is_generated"]) == (key == "its own", False)
    config("[api.example.com]\nidempotency_key = generate\n")
    document = explain_one(curtsy, *words)
    assert (document["has_idempotency_key"], document["idempotency_key_is_generated"]) == (key is not None, key == "made")
    assert {outcome["outcome"]: outcome["retried"] for outcome in document["outcomes"]}["503"]
    assert ("made for it" in curtsy.tool("explain", *words).text) == (key == "made")


def test_no_secret_is_shown(curtsy, config, tmp_path):
    config("[default]\ncredential_query = key\n[api.example.com \"a\"]\ncredential = any\n[api.example.com \"b\"]\ncredential = none\n")
    (tmp_path / "headers").write_text(f"Authorization: {SECRET}\nX-Other: {SECRET}\nIdempotency-Key: {SECRET}\n")
    words = ["-H", f"X-Api-Key: {SECRET}", "-H", f"@{tmp_path}/headers", "-X", "POST"]
    urls = [f"https://u:{SECRET}@api.example.com/{SECRET}0123456789abcdef?key={SECRET}&x={SECRET}#{SECRET}", f"ftp://u:{SECRET}@h/{SECRET}"]
    for options in (words, ["--json", *words]):
        result = curtsy.tool("explain", *options, *urls)
        assert (result.rc, result.stderr) == (0, b"")
        assert SECRET not in result.text and "header Authorization" in result.text


@pytest.mark.parametrize("header", [SECRET, f": {SECRET}", f"X Y: {SECRET}", "", f"\u00fc: {SECRET}"])
def test_a_bad_header_is_misuse(curtsy, tmp_path, header):
    result = curtsy.tool("explain", "-H", header, "http://h/")
    assert (result.rc, result.stdout) == (2, b"")
    assert result.errors.startswith("curtsy explain: -H: expected ") and SECRET not in result.errors
    (tmp_path / "headers").write_text(f"Accept: x\n{header or 'x'}\n")
    result = curtsy.tool("explain", "-H", f"@{tmp_path}/headers", "http://h/")
    assert (result.rc, result.stdout) == (2, b"")
    assert result.errors.startswith(f"curtsy explain: {tmp_path}/headers:2: expected ") and SECRET not in result.errors


@pytest.mark.parametrize(
    "words, fault",
    [
        ([], "which URL"),
        (["-H", "@missing", "http://h/"], "missing: No such file or directory"),
        (["-c", "missing.ini", "http://h/"], "missing.ini: No such file or directory"),
        (["-X", "GE T", "http://h/"], "-X: expected a method"),
        (["-X", "", "http://h/"], "-X: expected a method"),
        (["-X", "A" * 40, "http://h/"], "-X: expected a method"),
        (["--nonsense", "http://h/"], "nonsense"),
    ],
)
def test_misuse(curtsy, words, fault):
    result = curtsy.tool("explain", *words)
    assert (result.rc, result.stdout) == (2, b"")
    assert fault in result.errors


# ---- now ----


def test_it_leaves_the_segment_as_it_is(up, curtsy, config):
    config(f"[{up.authority}]\nrate = 1/h\nmax_attempts = 1\n")
    up.on("/", told(30))
    assert curtsy.curl(up.url()).rc == 0
    before = hashlib.sha256(curtsy.segment.read_bytes()).digest()
    explain(curtsy, up.url(), "http://never.seen/")
    assert hashlib.sha256(curtsy.segment.read_bytes()).digest() == before


def test_it_makes_no_segment(curtsy):
    explain(curtsy, "http://h/")
    assert not curtsy.segment.exists()


def test_another_segment(up, curtsy, config, tmp_path):
    config(f"[{up.authority}]\nrate = 1/h\nburst = 3\n")
    assert curtsy.curl(up.url(), env={"CURTSY_SEGMENT": os.fspath(tmp_path / "other")}).rc == 0
    document = explain_one(curtsy, "--segment", tmp_path / "other", up.url())
    assert document["segment"] == os.fspath(tmp_path / "other") and document["buckets"][0]["in_segment"]
    assert document["buckets"][0]["tokens"] == [pytest.approx(2, abs=0.1)]
    assert not explain_one(curtsy, up.url())["buckets"][0]["in_segment"]


def test_a_wait_that_is_foretold_is_waited(up, curtsy, config):
    config(f"[{up.authority}]\nrate = 1/2s\n")
    assert curtsy.curl(up.url()).rc == 0
    asked = time.monotonic()
    now = explain_one(curtsy, up.url())["now"]
    assert now["decision"] == "wait" and now["enforced"]["cause"] == "quota"
    assert 0 < now["enforced"]["wait_s"] <= 2 and re.fullmatch(r"would wait [\d.]+m?s \(quota\)", now["text"])
    assert curtsy.curl(up.url()).rc == 0
    _, second = up.arrivals()
    assert second.time_ns / 1e9 >= asked + now["enforced"]["wait_s"] - 0.01


def blocked(up, curtsy, seconds="60"):
    """The server has spoken."""
    up.on("/", told(seconds))
    assert curtsy.curl(up.url()).rc == 0


@pytest.mark.parametrize("key, decision", [("max_wait = 2min", "wait"), ("max_wait = 5s", "refuse"), ("profile = best_effort", "refuse")])
def test_a_servers_word(up, curtsy, config, key, decision):
    config(f"[{up.authority}]\nmax_attempts = 1\nspread = 0%\n{key}\n")
    blocked(up, curtsy)
    document = explain_one(curtsy, up.url())
    now, (bucket,) = document["now"], document["buckets"]
    assert (now["decision"], now["enforced"]["cause"], bucket["block"]) == (decision, "block", "hard")
    assert 30 < bucket["curtsy_blocked_seconds"] <= 60 and 30 < now["enforced"]["turn_s"] <= 60
    if decision == "refuse":
        most = "5s" if "5s" in key else "0s"
        assert re.fullmatch(rf"would be refused: [\d.ms]+ \(block\) is longer than max_wait = {most}", now["text"])
        result = curtsy.curl(up.url())
        assert result.rc == 28 and "Curtsy: not sent" in result.errors
        assert len(up.arrivals()) == 1
    blocks = text_of(curtsy, up.url())
    (row,) = [row for row in blocks["buckets"] if "blocked" in row]
    assert re.fullmatch(r"blocked until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, for [\d.ms]+, by the server's word", row)


def test_what_is_sent_before_its_turn(up, curtsy, config):
    config(f"[{up.authority}]\nmax_attempts = 1\nspread = 0%\nmax_wait = 5s\non_max_wait = send\n")
    blocked(up, curtsy)
    now = explain_one(curtsy, up.url())["now"]
    assert now["decision"] == "send" and now["enforced"]["wait_s"] == 0
    assert re.fullmatch(r"would be sent at once, before its turn: [\d.ms]+ \(block\) is longer than max_wait = 5s", now["text"])
    assert curtsy.curl(up.url()).rc == 0
    assert len(up.arrivals()) == 2


def test_limits_of_another_process(up, curtsy, config):
    config(f"[{up.authority}]\nquota = 100/min\n")
    assert curtsy.curl(up.url()).rc == 0
    config(f"[{up.authority}]\nquota = 1000/min\n")
    (bucket,) = explain_one(curtsy, up.url())["buckets"]
    assert bucket["limits"][0]["quota"] == 1000 and bucket["limits_in_force"][0]["quota"] == 100 and bucket["limits_differ"]
    assert any("stricter limits are in force" in row for row in text_of(curtsy, up.url())["buckets"])


def modes(document):
    return [(source["mode"], source["by"], source["wins"]) for source in document["modes"]]


def test_mode_of_a_section(up, curtsy, config):
    config(f"[{up.authority}]\nmode = observe\nrate = 1/h\nmax_wait = 90s\n")
    for _ in range(2):
        assert curtsy.curl(up.url()).rc == 0
    document = explain_one(curtsy, up.url())
    assert modes(document) == [("observe", f"{curtsy.config_file}:2", True)]
    assert document["now"]["decision"] == "send" and document["now"]["enforced"]["decision"] == "refuse"
    assert document["now"]["text"].startswith("would be sent at once: mode observe; in mode enforce it would be refused: ")
    (bucket,) = document["buckets"]
    assert bucket["bucket"] == f"{up.authority} (observed)" and bucket["in_segment"] and bucket["tokens"][0] < 0


@pytest.mark.parametrize("section, variable, winner", [("observe", "off", 1), ("off", "observe", 0), ("enforce", "enforce", 0)])
def test_mode_of_the_environment(curtsy, config, section, variable, winner):
    config(f"[default]\nmode = {section}\n")
    document = explain_one(curtsy, "http://h/", env={"CURTSY_MODE": variable})
    assert modes(document) == [
        (section, f"{curtsy.config_file}:2", winner == 0),
        (variable, "CURTSY_MODE", winner == 1),
    ]
    assert document["keys"]["mode"]["value"] == (section, variable)[winner]
    if "off" in (section, variable):
        assert document["now"]["text"] == "not governed: mode off" and document["now"]["decision"] == "ungoverned"
        assert {outcome["why"] for outcome in document["outcomes"] if outcome["outcome"] == "429"} == {"mode is off"}


def test_mode_of_the_operator(up, curtsy, config):
    config(f"[{up.authority}]\nrate = 1/h\nburst = 5\n")
    assert curtsy.curl(up.url()).rc == 0
    assert curtsy.tool("mode", "observe", up.authority, "--for", "5min").rc == 0
    document = explain_one(curtsy, up.url())
    assert [source["wins"] for source in document["modes"]] == [False, True]
    word = document["modes"][1]
    assert word["mode"] == "observe" and up.authority in word["by"] and 200 < word["ends_s"] <= 300
    assert document["now"]["text"] == "would be sent at once: mode observe; in mode enforce it would be sent at once"
    assert curtsy.tool("mode", "off").rc == 0
    document = explain_one(curtsy, up.url())
    assert [source["mode"] for source in document["modes"]] == ["enforce", "off", "observe"]
    assert document["modes"][1]["wins"] and document["modes"][1]["ends_s"] is None
    assert document["now"]["text"] == "not governed: mode off"
    (first, *others) = text_of(curtsy, up.url())["now"]
    assert re.fullmatch("mode +off .*operator's word for everything.*", first) and len(others) == 3


def test_a_hold(up, curtsy, config):
    config(f"[{up.authority}]\nrate = 10/s\n")
    assert curtsy.curl(up.url()).rc == 0
    assert curtsy.tool("hold", up.authority, "2h").rc == 0
    document = explain_one(curtsy, up.url())
    assert document["buckets"][0]["block"] == "hold" and document["now"]["enforced"]["cause"] == "hold"
    assert re.fullmatch(r"would wait (1h59m|2h00m|119m\d\ds) \(hold\)", document["now"]["text"])


# ---- what would be tried again ----

KEY, CONDITION = "Idempotency-Key: 1", 'If-Match: "a"'
REQUESTS = [
    ("GET", []),
    ("PUT", []),
    ("DELETE", [CONDITION]),
    ("POST", []),
    ("POST", [KEY]),
    ("POST", [KEY, CONDITION]),
    ("PATCH", [CONDITION]),
    ("POST", ["Idempotency-Key;"]),
    ("POST", ["Idempotency-Key: "]),
    ("PUT", ["If-Match:"]),
]
OUTCOMES = {"429": Answer(429), "503": Answer(503), "504": Answer(504), "500": Answer(500), "connection reset": Answer(drop="body", reset=True)}


@pytest.mark.parametrize("more", ["", "idempotent = yes\n", "retry_status = 429, 500\nretry_errors = none\n"])
def test_as_often_as_foretold(up, curtsy, config, more):
    """What explain says of each request and outcome is how many attempts arrive."""
    config(f"[default]\nmax_attempts = 3\nbase_delay = 1ms\nmax_delay = 1ms\nretry_reserve = 1000\n[api.example.com]\n{more}")
    expected, requests = [], []
    for number, (method, headers) in enumerate(REQUESTS):
        options = [word for header in headers for word in ("-H", header)]
        document = explain_one(curtsy, "-X", method, *options, "http://api.example.com/")
        rules = {rule["outcome"]: rule for rule in document["outcomes"]}
        for name, answer in OUTCOMES.items():
            path = f"/{number}/{name.replace(' ', '-')}"
            up.on(path, answer)
            if name in rules:
                expected.append((path, rules[name]["attempts"]))
                requests.append("\t".join([method, f"http://api.example.com{path}", *headers]))
                assert (rules[name]["why"] is None) == rules[name]["retried"] == (rules[name]["attempts"] > 1)
    result = curtsy.run([curtsy.victim("requests"), str(up.port)], stdin="\n".join(requests).encode())
    assert result.rc == 0, result.errors
    assert [(path, len(up.arrivals(path))) for path, _ in expected] == expected
    assert {attempts for _, attempts in expected} >= {1, 3}


@pytest.mark.parametrize(
    "header, sent",
    [
        ("Idempotency-Key: 1", "1"),
        ("idempotency-key:1", "1"),
        ("Idempotency-Key:", None),
        ("Idempotency-Key: ", None),
        ("Idempotency-Key;", ""),
        ("Idempotency-Key; ", None),
    ],
)
def test_a_header_counts_as_libcurl_sends_it(up, curtsy, header, sent):
    result = curtsy.run([curtsy.victim("requests"), str(up.port)], stdin=f"POST\thttp://api.example.com/\t{header}".encode())
    assert result.rc == 0, result.errors
    (arrival,) = up.arrivals()
    assert arrival.header("Idempotency-Key") == sent
    document = explain_one(curtsy, "-X", "POST", "-H", header, "http://api.example.com/")
    assert document["has_idempotency_key"] == bool(sent)


# ---- against the library ----

SEED = int(os.environ.get("CURTSY_TEST_SEED", "20261130"))
ROUNDS, CONFIGURATIONS, URLS = 6, 10, 50

HOSTS = ["api.example.com", "example.com", "a.b.example.com", "api.example.org", "h", "127.0.0.1", "::1", "xn--bcher-kva.example"]
PATTERNS = [*HOSTS, *HOSTS, "*.example.com", "*.b.example.com", "*.com", "*.example", "*", "API.Example.COM.", "other.test"]
PATHS = ["/v1", "/v1/search", "/v1/*", "/v1/*/items", "/v*/search", "/*", "/V1", "/a%20b", "/v1/search/code"]
METHODS = ["GET", "POST", "PUT", "DELETE", "HEAD", "get"]
PROGRAMS = ["requests", "git", "poller"]
KEYS = {
    "mode": ["observe", "observe", "off", "enforce"],
    "profile": ["best_effort", "normal"],
    "max_attempts": ["1", "3", "7"],
    "scope": ["host", "section"],
    "headroom": ["10%", "0%"],
    "burst": ["1", "12", "auto"],
    "max_wait": ["auto", "10s", "0s"],
    "on_max_wait": ["send"],
    "base_delay": ["1ms", "1h30m"],
    "retry_status": ["429", "429, 500, 520-524"],
    "retry_errors": ["none", "reset, connect"],
    "idempotent": ["yes", "no"],
    "idempotency_header": ["X-Request-Id"],
    "adaptive": ["off"],
}
QUOTAS = ["quota = 5000/h", "quota = 100/min, 5000/h", "quota = none", "rate = 10/s", "rate = 1/h", "rate = none"]


def bracketed(host):
    return f"[{host}]" if ":" in host else host


def random_section(choose):
    name = bracketed(choose.choice(PATTERNS))
    name += choose.choice(["", "", "", ":80", ":8443", ":443"])
    name += choose.choice(["", "", *PATHS])
    name += choose.choice(["", "", "", ' "a"', ' "b"'])
    lines = [f"[{name}]"]
    if choose.random() < 0.15:
        lines.append("hosts = " + ", ".join(bracketed(host) for host in choose.sample(PATTERNS[:-1], 2)))
    if choose.random() < 0.25:
        lines.append("methods = " + ", ".join(choose.sample(METHODS[:-1], choose.randint(1, 3))))
    if choose.random() < 0.2:
        lines.append("programs = " + ", ".join(choose.choice(["", "!"]) + program for program in choose.sample(PROGRAMS, 2)))
    if choose.random() < 0.15:
        lines.append("credential = " + choose.choice(["any", "none"]))
    if choose.random() < 0.4:
        lines.append(choose.choice(QUOTAS))
    for key in choose.sample(list(KEYS), choose.randint(0, 2)):
        lines.append(f"{key} = {choose.choice(KEYS[key])}")
    return lines


def random_configuration(choose):
    lines = ["[default]", f"max_attempts = {choose.randint(2, 5)}"] if choose.random() < 0.5 else []
    for _ in range(choose.randint(1, 14)):
        lines += random_section(choose)
    return "\n".join(lines) + "\n"


def random_url(choose):
    host = choose.choice(HOSTS)
    host = choose.choice([host, host, host.upper(), host + "." if host[-1].isalpha() else host])
    if host.startswith("xn--") and choose.random() < 0.7:
        host = choose.choice(["b\u00fccher.example", "B\u00dcCHER.example", "b%c3%bccher.example"])
    scheme = choose.choice(["http://", "http://", "https://", "HTTP://", ""])
    user = choose.choice(["", "", "", "me:word@", "me@"])
    port = choose.choice(["", "", ":80", ":443", ":8443", ":0080", ":"])
    path = choose.choice(["", "/", *PATHS, "/v1/search/", "/v1/x/items/3", "/v1/./search", "/v2/../v1/search", "//v1", "/v1searches", "/v1/%73earch"])
    return scheme + user + bracketed(host) + port + path + choose.choice(["", "", "?q=/v1", "#f"])


def what_the_library_says(document):
    """The line of its log that goes with an explanation; None where nothing is resolved."""
    if "endpoint" not in document:
        return None
    sections = " ".join(f"[{name}]" for name in speaking(document))
    buckets = ", ".join(bucket["bucket"] for bucket in document["buckets"])
    keys = ", ".join(f"{name}={value}" for name, value in values(document).items())
    return f"{document['endpoint']}: policy: sections {sections}; buckets {buckets};{' ' if keys else ''}{keys}"


def logged_policies(errors):
    """What was resolved for each request."""
    blocks = re.split(r"^request \d+\n", errors, flags=re.M)
    assert "error" not in blocks[0]
    return [re.findall(r"^curtsy\[\d+\] \S+: (.*: policy: .*)$", block, re.M) for block in blocks[1:]]


@pytest.mark.parametrize("number", range(ROUNDS))
def test_explain_and_the_library_agree(curtsy, config, tmp_path, number):
    """Thousands of decisions; CURTSY_TEST_SEED varies them."""
    agreed = 0
    for configuration in range(CONFIGURATIONS):
        seed = SEED * 1000 + number * CONFIGURATIONS + configuration
        choose = random.Random(seed)
        program = choose.choice(PROGRAMS)
        victim = tmp_path / program
        if not victim.exists():
            shutil.copy2(curtsy.victim("requests"), victim)
        text = random_configuration(choose)
        config(text)
        methods = choose.sample(METHODS, 3)
        requests = [(choose.choice(methods), random_url(choose)) for _ in range(URLS)]

        documents = []
        for method in methods:
            urls = [url for other, url in requests if other == method]
            if urls:
                explained = curtsy.tool("explain", "--json", "-X", method, "--program", program, "--", *urls, "ftp://h/")
                assert explained.rc in (0, 2), explained.errors  # 2: libcurl takes one of them for no URL
                documents += zip([method] * len(urls), urls, map(json.loads, explained.text.splitlines()))
        listed = "\n".join(f"{method}\t{url}" for method, url, _ in documents)
        result = curtsy.run([victim, "0"], stdin=listed.encode(), env={"CURTSY_LOG": "debug"})
        assert result.rc == 0
        logged = logged_policies(result.errors)
        assert len(logged) == len(documents) == URLS
        for (method, url, document), lines in zip(documents, logged):
            about = f"seed {seed}, {program}: {method} {url}\n{text}"
            expected = what_the_library_says(document)
            assert len(lines) == (expected is not None), about
            # A line that is too long is cut.
            for line in lines:
                assert line == expected or (len(line) > 900 and expected.startswith(line)), about
                assert not any(why.startswith("more sections match") for why in silent(document).values()), about
                agreed += 1
    assert agreed > CONFIGURATIONS * URLS * 0.8
