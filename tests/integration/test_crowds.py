# SPDX-License-Identifier: MIT
"""A program that asks more hosts than the segment has places for: the others keep what is theirs."""

import socket
import threading

import pytest

from harness import HANG, compile_c
from upstream import Answer

# Asks host0.example, host1.example, ... COUNT in all, each once, and all of them at the server on PORT.
CRAWLER = """
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
static size_t swallow(char *data, size_t size, size_t count, void *unused)
{
    return size * count;
}
int main(int argc, char **argv)
{
    char text[100];
    CURL *easy = curl_easy_init();
    CURLcode code = CURLE_OK;
    snprintf(text, sizeof text, "::127.0.0.1:%s", argv[1]);
    struct curl_slist *there = curl_slist_append(NULL, text);
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, there);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, swallow);
    for (int i = 0; i < atoi(argv[2]) && code == CURLE_OK; i++) {
        snprintf(text, sizeof text, "http://host%d.example/", i);
        curl_easy_setopt(easy, CURLOPT_URL, text);
        code = curl_easy_perform(easy);
    }
    curl_easy_cleanup(easy);
    curl_slist_free_all(there);
    return code;
}
"""

PLACES = 32  # of the least segment
SMALL = "[curtsy]\nsegment_size = 256KiB\n"
QUOTA = "[api.example]\nquota = 10/h\nmax_wait = 0s\n"


@pytest.fixture(scope="session")
def crawler(tmp_path_factory):
    return compile_c(CRAWLER, tmp_path_factory.mktemp("crawler") / "crawler", "-lcurl")


def crawl(curtsy, crawler, up, count=20 * PLACES):
    assert curtsy.run([crawler, str(up.port), str(count)]).all == (0, b"", b"")


def ask(curtsy, port, host, path="/"):
    there = ["--connect-to", f"{host}:80:127.0.0.1:{port}"]
    return curtsy.start(["curl", "-sS", *there, f"http://{host}{path}"])


def buckets(curtsy):
    return {bucket["bucket"]: bucket for bucket in curtsy.status()["buckets"]}


def test_a_quota_holds_in_a_crowd(up, curtsy, crawler):
    """Of a host that comes after it, and while it goes on."""
    up.on("/", Answer(200))
    up.on("/api", Answer(200))
    curtsy.configure(SMALL + QUOTA)
    for _ in range(3):
        crawl(curtsy, crawler, up)
        for _ in range(4):
            assert ask(curtsy, up.port, "api.example", "/api").wait().rc in (0, 28)
    assert 1 <= len(up.arrivals("/api")) <= 10  # of twelve
    assert buckets(curtsy)["api.example:80"]["curtsy_requests_total"] == 12


class SlowServer:
    """Refuses one request, when it is told to."""

    def __init__(self):
        self.asked, self.may_answer = threading.Event(), threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        connection, _ = self.listener.accept()
        with connection:
            request = connection.recv(65536)  # curl sends it as one
            self.asked.set()
            self.may_answer.wait()
            if request:
                answer = b"HTTP/1.1 429 No\r\nRetry-After: 3000\r\nContent-Length: 5\r\n\r\nslow\n"
                connection.sendall(answer)

    def finish(self):
        self.may_answer.set()
        if not self.asked.is_set():  # nobody has come
            socket.create_connection(("127.0.0.1", self.port)).close()
        self.thread.join()
        self.listener.close()


@pytest.fixture
def slow_server():
    server = SlowServer()
    yield server
    server.finish()


def test_a_servers_word_finds_its_host_in_a_crowd(up, curtsy, crawler, slow_server):
    """Also where its bucket was given away while the answer was waited for."""
    up.on("/", Answer(200))
    curtsy.configure(SMALL + "[default]\nmax_attempts = 1\nmax_wait = 1s\n")
    slow = ask(curtsy, slow_server.port, "slow.example")
    assert slow_server.asked.wait(HANG)
    crawl(curtsy, crawler, up)
    assert "slow.example:80" not in buckets(curtsy)
    slow_server.may_answer.set()
    assert slow.wait().output == (0, b"slow\n")
    assert [name for name, bucket in buckets(curtsy).items() if bucket["block"]] == ["slow.example:80"]
    crawl(curtsy, crawler, up)
    refused = ask(curtsy, up.port, "slow.example").wait()
    assert refused.rc == 28 and "slow.example" in refused.errors
