# SPDX-License-Identifier: MIT
"""Curtsy among others: interposers before and behind it, a second copy of itself, any number of
libcurls, and plugins that come and go.  Each call gets to where it would get without Curtsy."""

import os
import re
import shutil

import pytest

from harness import compile_c, not_early, told

SHARED = ("-shared", "-fPIC")


def among(curtsy, before=(), behind=()):
    """The environment in which other libraries are preloaded too."""
    *runtime, library = curtsy.env()["LD_PRELOAD"].split(":")
    return {"LD_PRELOAD": ":".join(map(os.fspath, [*runtime, *before, library, *behind]))}


# ---- interposers ----

# Calls the next definition, as interposers do; arguments of any kind pass in registers.
FORWARD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
#define FORWARD(name) \
    void *name(void *a, void *b, void *c, void *d, void *e) \
    { \
        void *(*next)(void *, ...) = (void *(*)(void *, ...))dlsym(RTLD_NEXT, #name); \
        SAY("[" #name "]"); \
        return next ? next(a, b, c, d, e) : (void *)0; \
    }
"""
ALL = "easy_init easy_duphandle easy_reset easy_cleanup easy_setopt easy_getinfo easy_perform easy_pause multi_init multi_add_handle"
ALL += " multi_remove_handle multi_wait multi_poll multi_perform multi_info_read multi_cleanup multi_setopt multi_timeout"
ALL += " url url_set url_get url_cleanup free version_info"
INTERPOSERS = {"init": "easy_init", "perform": "easy_perform", "all": ALL}
POSITIONS = ["before", "behind"]


@pytest.fixture
def interposer(tmp_path):
    def build(which):
        # Of a function that Curtsy calls more often than the program does, the calls are not told.
        say = "#define SAY(text) (void)0\n" if which == "all" else "#define SAY(text) write(2, text, strlen(text))\n"
        source = say + FORWARD + "".join(f"FORWARD(curl_{name})\n" for name in INTERPOSERS[which].split())
        return compile_c(source, tmp_path / f"{which}.so", *SHARED)

    return build


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("which", INTERPOSERS)
def test_an_interposer_is_called_as_without_us(up, curtsy, interposer, which, position):
    up.on("/data", b"four", b"four")
    other, words = interposer(which), ["curl", "-sS", up.url("/data")]
    bare = curtsy.bare(words, env={"LD_PRELOAD": os.fspath(other)})
    assert (bare.rc, bare.stdout) == (0, b"four") and (which == "all" or bare.stderr)
    assert curtsy.run(words, env=among(curtsy, **{position: [other]})).all == bare.all


@pytest.mark.slow(2)
@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("which", INTERPOSERS)
def test_transfers_are_governed_among_interposers(up, curtsy, interposer, which, position):
    up.on("/data", told(1), b"four")
    result = curtsy.curl(up.url("/data"), env=among(curtsy, **{position: [interposer(which)]}))
    assert result.output == (0, b"four")
    not_early(up.waits(), 1.0)
    (bucket,) = curtsy.status()["buckets"]
    assert (bucket["curtsy_requests_total"], bucket["curtsy_attempts_total"]) == (1, 2)
    if which == "perform":
        assert result.stderr.count(b"[curl_easy_perform]") == (1 if position == "before" else 2)


PLUGIN = """
#include <curl/curl.h>
int plugin(const char *url)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, url);
    int result = curl_easy_perform(easy);
    curl_easy_cleanup(easy);
    return result;
}
"""
HOST = """
#include <dlfcn.h>
int main(int argc, char **argv)
{
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    int (*call)(const char *) = plugin ? dlsym(plugin, "plugin") : 0;
    return call ? call(argv[2]) : 99;
}
"""


@pytest.mark.parametrize("which", ["init", "perform"])
def test_an_interposer_before_us_and_a_libcurl_that_only_a_plugin_sees(up, curtsy, tmp_path, interposer, which):
    """Its own search comes no further than to us; we must not go back to it for an answer."""
    up.on("/data", b"four")
    plugin = compile_c(PLUGIN, tmp_path / "plugin.so", *SHARED, "-lcurl")
    host = compile_c(HOST, tmp_path / "host", "-ldl")
    result = curtsy.run([host, plugin, up.url("/data")], env=among(curtsy, before=[interposer(which)]))
    assert result.output == (0, b"four")


@pytest.mark.slow(2)
@pytest.mark.parametrize("copies", [1, 2])
def test_a_second_copy_of_curtsy_only_forwards(up, curtsy, tmp_path, copies):
    up.on("/data", told(1), b"four")
    others = [shutil.copy(curtsy.library, tmp_path / f"copy{number}.so") for number in range(copies)]
    result = curtsy.curl(up.url("/data"), env=among(curtsy, behind=others))
    assert result.all == (0, b"four", b"")
    not_early(up.waits(), 1.0)
    (bucket,) = curtsy.status()["buckets"]
    assert (bucket["curtsy_requests_total"], bucket["curtsy_attempts_total"]) == (1, 2)


# ---- many libcurls ----

# A libcurl that tells its name, in handles that it made and without one.
LIBCURL = r"""
#include <curl/curl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#undef curl_easy_setopt
#undef curl_easy_getinfo
CURL *curl_easy_init(void) { return malloc(1); }
CURL *curl_easy_duphandle(CURL *easy) { return malloc(1); }
void curl_easy_cleanup(CURL *easy) { free(easy); }
void curl_easy_reset(CURL *easy) {}
CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...) { return CURLE_OK; }
CURLcode curl_easy_perform(CURL *easy) { return CURLE_OK; }
CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
    va_list arguments;
    va_start(arguments, info);
    *va_arg(arguments, const char **) = NAME;
    va_end(arguments);
    return CURLE_OK;
}
char *curl_version(void) { return NAME; }
curl_version_info_data *curl_version_info(CURLversion which)
{
    static curl_version_info_data data = {.version_num = 0x075801};
    usleep(PATIENCE);
    return &data;
}
"""
WHO = r"""
#include <curl/curl.h>
#include <stdio.h>
void who(void)
{
    CURL *easy = curl_easy_init();
    char *name = NULL;
    if (easy)
        curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &name);
    printf(" %s/%s", easy ? name : "none", curl_version());
    curl_easy_cleanup(easy);
}
"""
# Arguments: plugins to be loaded in turn.  -c: the one before is closed first.  OLD=NEW: renamed first.
HOSTS = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
void who(void) __attribute__((weak));
int main(int argc, char **argv)
{
    void *plugin = NULL, *place = NULL;
    int close = 0, moved = 0;
    if (who)
        who();
    for (int i = 1; i < argc; i++) {
        char *file = argv[i], *equals = strchr(file, '=');
        if (!strcmp(file, "-c")) {
            close = 1;
            continue;
        }
        if (close && plugin)
            dlclose(plugin);
        if (equals) {
            *equals = 0;
            rename(file, equals + 1);
            file = equals + 1;
        }
        plugin = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        void (*call)(void) = plugin ? dlsym(plugin, "who") : NULL;
        if (!call)
            return printf("%s\n", dlerror());
        call();
        moved |= place && place != (void *)call;
        place = (void *)call;
    }
    printf(" %s\n", moved ? "moved" : "in place");
    return 0;
}
"""


@pytest.fixture
def libcurl(tmp_path):
    """A function that builds a libcurl of that name, with versions or without."""

    def build(name, version=None, patience=0):
        flags = [*SHARED, f'-DNAME="{name}"', f"-DPATIENCE={patience}", f"-Wl,-soname,libcurl-{name}.so.4"]
        if version:
            script = tmp_path / f"{name}.map"
            script.write_text(version + " { global: curl_*; local: *; };\n")
            flags.append(f"-Wl,--version-script={script}")
        return compile_c(LIBCURL, tmp_path / f"libcurl-{name}.so.4", *flags)

    return build


@pytest.fixture
def plugin(tmp_path):
    def build(name, library):
        return compile_c(WHO, tmp_path / f"{name}.so", *SHARED, library, f"-Wl,-rpath,{tmp_path}")

    return build


@pytest.fixture
def host(tmp_path):
    return compile_c(HOSTS, tmp_path / "host", "-ldl")


def renamed(file, old, new):
    """A copy of a library or plugin in whose name, and in whatever else it says, `old` is `new`."""
    assert len(old) == len(new)
    copy = file.with_name(file.name.replace(old, new))
    copy.write_bytes(file.read_bytes().replace(old.encode(), new.encode()))
    return copy


def test_any_number_of_libcurls(curtsy, libcurl, plugin, host):
    names = [f"many{number:02}" for number in range(40)]
    library = libcurl(names[0])
    plugins = [plugin(names[0], library)]
    for name in names[1:]:
        renamed(library, names[0], name)
        plugins.append(renamed(plugins[0], names[0], name))
    result = curtsy.run([host, *plugins])
    assert result.text.split()[: len(names)] == [f"{name}/{name}" for name in names]


@pytest.mark.parametrize("file", ["another file", "the same file"])
def test_a_plugin_in_the_place_of_another(curtsy, libcurl, plugin, host, file):
    """All addresses are the same as before, and another libcurl is meant."""
    library = libcurl("one")
    first = plugin("one", library)
    renamed(library, "one", "two")
    second = renamed(first, "one", "two")
    words = [first, second] if file == "another file" else [first, f"{second}={first}"]
    result = curtsy.run([host, "-c", *words])
    assert result.text.startswith(" one/one two/two ")
    if not curtsy.sanitizer:
        assert result.text.endswith(" in place\n"), "nothing was tested"


@pytest.mark.parametrize("versions", [(None, None), ("ONE", None), (None, "TWO"), ("ONE", "TWO")], ids=str)
def test_versions_tell_libcurls_apart_as_the_loader_does(curtsy, tmp_path, libcurl, plugin, versions):
    """A program has the one, its plugin the other.  What the plugin's references are bound to is
    a matter of versions, and no two of its calls may get to different libraries."""
    one, two = libcurl("one", versions[0]), libcurl("two", versions[1])
    host = compile_c(WHO + HOSTS, tmp_path / "host", "-rdynamic", one, "-ldl", f"-Wl,-rpath,{tmp_path}")
    words = [host, plugin("two", two)]
    bare = curtsy.bare(words)
    assert re.match(r" one/one (one/one|two/two) ", bare.text)
    assert curtsy.run(words).all == bare.all


@pytest.mark.parametrize("versions", [(None, None), ("ONE", None), (None, "TWO"), ("ONE", "TWO")], ids=str)
def test_a_preloaded_libcurl(curtsy, tmp_path, libcurl, versions):
    """It comes before the program's own, unless that has a version that it has not."""
    one, two = libcurl("one", versions[0]), libcurl("two", versions[1])
    host = compile_c(WHO + HOSTS, tmp_path / "host", two, "-ldl", f"-Wl,-rpath,{tmp_path}")
    bare = curtsy.bare([host], env={"LD_PRELOAD": os.fspath(one)})
    assert re.match(r" (one/one|two/two) ", bare.text)
    assert curtsy.run([host], env=among(curtsy, behind=[one])).all == bare.all


RACE = r"""
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
enum { THREADS = 64 };
static pthread_barrier_t barrier;
static void *first_call(void *unused)
{
    pthread_barrier_wait(&barrier);
    return curl_easy_init();
}
int main(void)
{
    pthread_t threads[THREADS];
    int failed = 0;
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, first_call, NULL);
    for (int i = 0; i < THREADS; i++) {
        void *easy;
        pthread_join(threads[i], &easy);
        failed += !easy;
    }
    printf("%d failed, then %s\n", failed, curl_easy_init() ? "none" : "one more");
    return 0;
}
"""


def test_many_threads_make_the_first_call_together(curtsy, tmp_path, libcurl):
    """They all see that libcurl is not known yet, since to ask it for its version takes a while."""
    library = libcurl("slow", patience=100_000)
    program = compile_c(RACE, tmp_path / "program", library, "-lpthread", f"-Wl,-rpath,{tmp_path}")
    assert curtsy.run([program]).all == (0, b"0 failed, then none\n", b"")
