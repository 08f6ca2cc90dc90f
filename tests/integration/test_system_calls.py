# SPDX-License-Identifier: MIT
"""What Curtsy costs in system calls: nothing, for a request that does not wait and goes over a connection
that is there.  A program's trace is compared with its trace without Curtsy, call by call."""

import re

import pytest

from harness import compile_c, has_program
from upstream import Answer

pytestmark = [
    pytest.mark.skipif(not has_program("strace"), reason="strace is not installed"),
    pytest.mark.no_sanitizer("its runtime makes system calls of its own"),
]

REQUESTS, FIRST = 10, 3  # the first two look up, connect and resolve
TRIES = 5
DELAY = 0.02  # so that an answer is always waited for, in the same calls

# The plainest program there is: COUNT requests of URL on one handle, POSTs where there is a third argument.
KEEPALIVE = """
#include <curl/curl.h>
#include <stdlib.h>
static size_t swallow(char *data, size_t size, size_t count, void *unused)
{
    return size * count;
}
int main(int argc, char **argv)
{
    CURL *easy = curl_easy_init();
    CURLcode code = CURLE_OK;
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, swallow);
    if (argc > 3)
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, argv[3]);
    for (int left = atoi(argv[2]); left > 0 && code == CURLE_OK; left--) {
        curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
        code = curl_easy_perform(easy);
    }
    curl_easy_cleanup(easy);
    return code;
}
"""

QUOTA_FIELDS = [
    ("X-RateLimit-Limit", "5000"),
    ("X-RateLimit-Remaining", "4900"),
    ("X-RateLimit-Reset", "3600"),
    ("RateLimit-Policy", '"default";q=100;w=60'),
    ("RateLimit", '"default";r=90;t=50'),
]


@pytest.fixture(scope="session")
def keepalive(tmp_path_factory):
    return compile_c(KEEPALIVE, tmp_path_factory.mktemp("keepalive") / "keepalive", "-lcurl")


def calls(curtsy, argv, config=None):
    """The names of the calls of each request, from one sendto to the next."""
    trace = curtsy.folder / "trace"
    variables = []
    if config is not None:
        curtsy.configure(config)
        ours = {name: value for name, value in curtsy.env().items() if name.startswith(("CURTSY_", "LD_PRELOAD"))}
        variables = [word for name, value in ours.items() for word in ("-E", f"{name}={value}")]
    result = curtsy.bare(["strace", "-f", "-qq", "-o", trace, *variables, *argv])
    assert result.all == (0, b"", b"")
    names = re.findall(r"^\d+ +(?:<\.\.\. )?(\w+)", trace.read_text(), re.M)
    assert names.count("sendto") == REQUESTS
    starts = [at for at, name in enumerate(names) if name == "sendto"]
    return [names[begin:end] for begin, end in zip(starts, starts[1:])]


def adds_no_call(curtsy, argv, config):
    """A program that is kept from running for long may find the answer there already, and asks for it in
    fewer calls: so it is compared again.  A call of ours would be there each time."""
    for _ in range(TRIES):
        bare, governed = calls(curtsy, argv), calls(curtsy, argv, config)
        if governed[FIRST - 1 :] == bare[FIRST - 1 :]:
            return True
    return False


CONFIGS = {
    "no quota": "",
    "a quota that does not bind": "[default]\nquota = 1000000/h\nburst = 1000\n",
    "several quotas": "[default]\nquota = 1000000/h, 20000/min\nburst = 1000\n",
    "a quota of a path besides": "[127.0.0.1]\nquota = 1000000/h\n[127.0.0.1/data]\nquota = 900000/h\n",
    "observed": "[default]\nmode = observe\nquota = 1000000/h\n",
    "off": "[default]\nmode = off\n",
}


@pytest.mark.slow(1)
@pytest.mark.parametrize("fields", [(), QUOTA_FIELDS], ids=["plain", "quota fields"])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_request_that_does_not_wait_adds_no_system_call(up, curtsy, keepalive, config, fields):
    up.on("/data", Answer(200, fields, b"four", delay=DELAY))
    assert adds_no_call(curtsy, [keepalive, up.url("/data"), str(REQUESTS)], config)


def test_a_write_that_does_not_wait_adds_no_system_call(up, curtsy, keepalive):
    up.on("/data", Answer(200, QUOTA_FIELDS, b"four", delay=DELAY))
    argv = [keepalive, up.url("/data"), str(REQUESTS), "a body"]
    assert adds_no_call(curtsy, argv, CONFIGS["a quota that does not bind"])


@pytest.mark.slow(4)
def test_a_request_that_waits_is_seen(up, curtsy, keepalive):
    """The comparison can fail."""
    up.on("/data", Answer(200, body=b"four", delay=DELAY))
    assert not adds_no_call(curtsy, [keepalive, up.url("/data"), str(REQUESTS)], "[default]\nrate = 20/s\n")
