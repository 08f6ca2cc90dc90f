# SPDX-License-Identifier: MIT
"""The presets: each is well-formed, and says about its API what is written down here once more."""

import json
import os
import pathlib
import re

import pytest

from upstream import Answer

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "presets"
NAMES = sorted(file.stem for file in FOLDER.glob("*.ini"))

MINUTE, HOUR = 60, 3600

# What is in force: requests in seconds.
QUOTAS = {
    "arxiv": {"export.arxiv.org": [(1, 3)]},
    "bitbucket": {"api.bitbucket.org": [(1000, HOUR)]},
    "crossref": {"api.crossref.org": [(5, 1)]},
    "discord": {"discord.com/api": [(50, 1)], 'discord.com/api "refused"': [(50, 1)]},
    "dockerhub": {"registry-1.docker.io/v2/*/*/manifests": [(100, 6 * HOUR)]},
    "github": {
        "api.github.com": [(5000, HOUR), (900, MINUTE)],
        "api.github.com/search": [(30, MINUTE)],
        "api.github.com/search/code": [(9, MINUTE)],
    },
    "gitlab": {"gitlab.com": [(2000, MINUTE)], "gitlab.com/api/v4/search": [(100, MINUTE)]},
    "nominatim": {"nominatim.openstreetmap.org": [(1, 1)]},
    "reddit": {"oauth.reddit.com": [(1000, 10 * MINUTE)], "www.reddit.com": [(10, MINUTE)]},
    "sec": {"www.sec.gov": [(10, 1)]},
    "slack": {
        "slack.com/api/chat.postMessage": [(1, 1)],
        "hooks.slack.com": [(1, 1)],
        'hooks.slack.com "refused"': [(1, 1)],
    },
}

# Which hosts share a bucket, and which have nothing to do with the preset.
BUCKETS = [
    ("arxiv", "export.arxiv.org", "{export.arxiv.org}", [(1, 3)]),
    ("arxiv", "rss.arxiv.org", "{export.arxiv.org}", [(1, 3)]),
    ("arxiv", "oaipmh.arxiv.org", "{export.arxiv.org}", [(1, 3)]),
    ("arxiv", "arxiv.org", "arxiv.org:443", []),
    ("bitbucket", "api.bitbucket.org", "api.bitbucket.org:443", [(1000, HOUR)]),
    ("bitbucket", "bitbucket.org", "bitbucket.org:443", []),
    ("crossref", "api.crossref.org", "api.crossref.org:443", [(5, 1)]),
    ("dockerhub", "registry-1.docker.io", "registry-1.docker.io:443", []),
    ("github", "api.github.com", "api.github.com:443", [(5000, HOUR), (900, MINUTE)]),
    ("github", "github.com", "github.com:443", []),
    ("github", "uploads.github.com", "uploads.github.com:443", []),
    ("gitlab", "gitlab.com", "gitlab.com:443", [(2000, MINUTE)]),
    ("gitlab", "gitlab.example.com", "gitlab.example.com:443", []),
    ("nominatim", "nominatim.openstreetmap.org", "nominatim.openstreetmap.org:443", [(1, 1)]),
    ("reddit", "oauth.reddit.com", "oauth.reddit.com:443", [(1000, 10 * MINUTE)]),
    ("reddit", "www.reddit.com", "www.reddit.com:443", [(10, MINUTE)]),
    ("sec", "www.sec.gov", "{www.sec.gov}", [(10, 1)]),
    ("sec", "data.sec.gov", "{www.sec.gov}", [(10, 1)]),
    ("sec", "efts.sec.gov", "{www.sec.gov}", [(10, 1)]),
    ("shopify", "one.myshopify.com", "one.myshopify.com:443", []),
    ("slack", "hooks.slack.com", "hooks.slack.com:443", [(1, 1)]),
    ("slack", "slack.com", "slack.com:443", []),
]

REFUSED = {"openai": [429, 503], "anthropic": [429, 503, 529], "discord": [429], "shopify": [429], "jira": [429]}
REFUSED |= {"slack": [429], "notion": [429, 529]}

OTHERS_OVERLOADED = {"anthropic": "api.anthropic.com", "notion": "api.notion.com"}  # 529 for reads, too


def path_of(name):
    return FOLDER / f"{name}.ini"


def text_of(name):
    return path_of(name).read_text()


def summary(curtsy, name, *words):
    """The policies in it: of each section, or of one host."""
    result = curtsy.tool("summary", "--json", "-c", os.fspath(path_of(name)), *words)
    assert (result.rc, result.stderr) == (0, b""), result.errors
    return json.loads(result.stdout)["policies"]


def sections(curtsy, name):
    return {policy["name"][1:-1]: policy for policy in summary(curtsy, name) if policy["name"] != "[default]"}


def quota(policy):
    assert policy["rate"] == []
    return [(rate["count"], rate["window_s"]) for rate in policy["quota"]]


def test_there_are_presets():
    assert {"github", "gitlab", "dockerhub", "git"} <= set(NAMES)
    assert set(QUOTAS) | set(REFUSED) | {"git"} == set(NAMES), "a preset that is not in these tables"


@pytest.mark.parametrize("name", NAMES)
def test_check_finds_nothing(curtsy, name):
    """Among its warnings: a section that is never reached, a key that is not in force yet."""
    result = curtsy.tool("check", "--strict", os.fspath(path_of(name)))
    assert (result.rc, result.stderr) == (0, b""), result.errors
    assert f"{len(sections(curtsy, name))} section" in result.text.splitlines()[0]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_behind_a_hash_is_well_formed(curtsy, name):
    """A user who takes the # away gets no error; what is not in force yet is marked so."""
    bare = re.sub(r"^#(?=\[|[a-z_]+ = )", "", text_of(name), flags=re.M)
    result = curtsy.tool("check", "-", stdin=bare.encode())
    assert result.rc == 0, result.errors
    lines = bare.splitlines()
    for number in re.findall(r"standard input:(\d+): warning: .*not in force yet", result.errors):
        comment = [line for line in lines[: int(number) - 1] if line.startswith("# ")][-1]
        assert "Not in force yet" in comment, f"{name}.ini:{number}"
    assert not [line for line in result.errors.splitlines() if "not in force yet" not in line]


@pytest.mark.parametrize("name", NAMES)
def test_it_speaks_of_hosts_only(name):
    for header in re.findall(r"^\[(.*)\]$", text_of(name), re.M):
        assert header not in ("default", "curtsy", "*")


@pytest.mark.parametrize("name", NAMES)
def test_it_begins_with_what_it_is_for_and_names_its_sources(name):
    lines = text_of(name).splitlines()
    assert re.fullmatch(r"# \w.*\.", lines[0]) and len(lines[0]) <= 90
    assert lines[1] == "#"
    head = " ".join(line.lstrip("# ") for line in lines)
    assert re.search(r"\bSource: .*as documented in 20\d\d\b", head)
    assert max(map(len, lines)) <= 105


@pytest.mark.parametrize("name", NAMES)
def test_figures(curtsy, name):
    quotas = {section: quota(policy) for section, policy in sections(curtsy, name).items() if policy["quota"]}
    assert quotas == QUOTAS.get(name, {})


@pytest.mark.parametrize("name, host, bucket, limits", BUCKETS)
def test_hosts_have_the_bucket_that_is_expected(curtsy, name, host, bucket, limits):
    (policy,) = summary(curtsy, name, host)
    assert policy["buckets"] == [bucket]
    assert quota(policy) == limits


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_writes_are_repeated_only_where_nothing_was_done(curtsy, name):
    refused = [policy for section, policy in sections(curtsy, name).items() if section.endswith('"refused"')]
    assert refused
    for policy in refused:
        assert policy["retry_status"] == REFUSED[name]
        assert policy["keys"]["idempotent"]["value"] == "yes"
        assert policy["keys"]["retry_errors"]["value"] == "resolve, connect"


@pytest.mark.parametrize("name, host", OTHERS_OVERLOADED.items())
def test_overload_is_tried_again(curtsy, name, host):
    (policy,) = summary(curtsy, name, host)
    assert policy["retry_status"] == [429, 502, 503, 504, 529]
    assert policy["keys"]["idempotent"]["value"] == "auto"


# ---- what they do ----


def post(up, curtsy, name, url):
    """A POST to a host of the preset, which the upstream stands for."""
    authority = url.split("/")[2]
    return curtsy.curl(
        "--connect-to", f"{authority}:80:{up.authority}", "-d", "0000", "-w", "%{http_code}", url, config=text_of(name)
    )


@pytest.mark.parametrize("repository", ["repo.git", "owner/repo.git", "group/sub/sub/sub/repo", "a/b/c/d/e/f.git"])
def test_git_fetches_are_repeated_and_pushes_are_not(up, curtsy, repository):
    fetch, push = f"/{repository}/git-upload-pack", f"/{repository}/git-receive-pack"
    for path in (fetch, push):
        up.on(path, 502, Answer(200, body=b"pack "))
    assert post(up, curtsy, "git", f"http://git.example.com{fetch}").output == (0, b"pack 200")
    assert post(up, curtsy, "git", f"http://git.example.com{push}").output == (0, b"502")
    assert (len(up.arrivals(fetch)), len(up.arrivals(push))) == (2, 1)


@pytest.mark.parametrize(
    "name, url, status, attempts",
    [
        ("openai", "http://api.openai.com/v1/chat/completions", 429, 2),
        ("openai", "http://api.openai.com/v1/chat/completions", 502, 1),
        ("anthropic", "http://api.anthropic.com/v1/messages", 529, 2),
        ("anthropic", "http://api.anthropic.com/v1/messages", 504, 1),
        ("slack", "http://slack.com/api/chat.postMessage", 429, 2),
        ("slack", "http://slack.com/api/chat.postMessage", 503, 1),
        ("jira", "http://one.atlassian.net/rest/api/3/issue", 429, 2),
        ("jira", "http://one.atlassian.net/rest/api/3/issue", 502, 1),
        ("jira", "http://one.atlassian.net/rest/api/3/search/jql", 502, 2),
        ("notion", "http://api.notion.com/v1/databases/1234/query", 502, 2),
        ("notion", "http://api.notion.com/v1/pages", 502, 1),
        ("shopify", "http://one.myshopify.com/admin/api/orders.json", 429, 2),
        ("discord", "http://discord.com/api/v10/channels/1/messages", 429, 2),
    ],
)
def test_calls_by_post(up, curtsy, name, url, status, attempts):
    path = "/" + url.split("/", 3)[3]
    up.on(path, status, Answer(200))
    expected = b"200" if attempts == 2 else str(status).encode()
    assert post(up, curtsy, name, url).output == (0, expected)
    assert len(up.arrivals(path)) == attempts
