/* SPDX-License-Identifier: MIT */
/*
 * Policy: which sections speak for a request, what comes of them, and what the buckets are called.
 * Examples first; then thousands of random configurations, each resolved a second time by a plain
 * scan over all sections, written from the order in policy.h.
 */
#include "core/policy.h"

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void fail_on_error(void *context, const struct diagnostic *diagnostic)
{
    if (diagnostic->severity == SEVERITY_ERROR)
        fail_msg("%u: %s\n%s", diagnostic->line, diagnostic->message, (const char *)context);
}

static struct config *build(const char *text)
{
    struct config_builder *builder = config_builder_new(fail_on_error, (void *)text);
    assert_true(config_builder_add(builder, "a", text, strlen(text)));
    struct config *config = config_builder_finish(builder);
    assert_non_null(config);
    return config;
}

static struct policy_target target_of(const char *host, uint16_t port, const char *path)
{
    return (struct policy_target){.host = host, .port = port, .path = path, .method = "GET", .program = "curl"};
}

/* ---- examples ---- */

/* "[most specific] [next] ..." without [default], which is asserted to be the last one. */
static const char *speakers(const struct resolved_policy *resolved)
{
    static char text[4096];
    text[0] = '\0';
    assert_true(resolved->section_count > 0);
    assert_string_equal(resolved->sections[resolved->section_count - 1]->name, "default");
    for (unsigned i = 0; i + 1 < resolved->section_count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s[%s]", used > 0 ? " " : "", resolved->sections[i]->name);
    }
    return text;
}

/* "name=QUOTA name ...": the published quota of each bucket's first limit; "rate" for a plain one. */
static const char *buckets(const struct resolved_policy *resolved)
{
    static char text[1024];
    text[0] = '\0';
    for (unsigned i = 0; i < resolved->bucket_count; i++) {
        const struct policy_bucket *bucket = &resolved->buckets[i];
        size_t used = strlen(text);
        char limit[32] = "";
        if (bucket->limits.count > 0 && bucket->limits.item[0].published > 0)
            snprintf(limit, sizeof limit, "=%llu", (unsigned long long)bucket->limits.item[0].published);
        else if (bucket->limits.count > 0)
            snprintf(limit, sizeof limit, "=rate");
        snprintf(text + used, sizeof text - used, "%s%s%s", used > 0 ? " " : "", bucket->name, limit);
    }
    return text;
}

static const char everything[] = "[default]\n"
                                 "max_wait = 1s\n"
                                 "[*]\n"
                                 "max_wait = 2s\n"
                                 "[*.example.com]\n"
                                 "max_wait = 3s\n"
                                 "[*.api.example.com]\n"
                                 "max_wait = 4s\n"
                                 "[v1.api.example.com]\n"
                                 "max_wait = 5s\n"
                                 "[v1.api.example.com:8443]\n"
                                 "max_wait = 6s\n"
                                 "[v1.api.example.com/a/*/c]\n"
                                 "max_wait = 7s\n"
                                 "[v1.api.example.com/a/b]\n"
                                 "max_wait = 8s\n"
                                 "[v1.api.example.com \"writes\"]\n"
                                 "methods = POST, PUT\n"
                                 "max_wait = 9s\n"
                                 "[v1.api.example.com \"git\"]\n"
                                 "programs = git, !git-lfs\n"
                                 "max_wait = 10s\n"
                                 "[v1.api.example.com \"not wget\"]\n"
                                 "programs = !wget\n"
                                 "max_wait = 11s\n"
                                 "[[::1]:8443]\n"
                                 "max_wait = 12s\n";

static void the_most_specific_section_speaks(void **state)
{
    static const struct {
        const char *host;
        unsigned port;
        const char *path, *method, *program, *speakers;
        int64_t max_wait_s;
    } cases[] = {
        {"other.org", 443, "/", "GET", "curl", "[*]", 2},
        {"example.com", 443, "/", "GET", "curl", "[*]", 2},
        {"notexample.com", 443, "/", "GET", "curl", "[*]", 2},
        {".example.com", 443, "/", "GET", "curl", "[*]", 2},
        {"www.example.com", 443, "/", "GET", "curl", "[*.example.com] [*]", 3},
        {"a.b.example.com", 443, "/", "GET", "curl", "[*.example.com] [*]", 3},
        {"api.example.com", 443, "/", "GET", "curl", "[*.example.com] [*]", 3},
        {"v2.api.example.com", 443, "/", "GET", "curl", "[*.api.example.com] [*.example.com] [*]", 4},
        {"v1.api.example.com", 443, "/", "GET", "wget", "[v1.api.example.com] [*.api.example.com] [*.example.com] [*]",
         5},
        {"v1.api.example.com", 8443, "/", "GET", "wget",
         "[v1.api.example.com:8443] [v1.api.example.com] [*.api.example.com] [*.example.com] [*]", 6},
        {"v1.api.example.com", 443, "/a/b/c", "GET", "wget",
         "[v1.api.example.com/a/*/c] [v1.api.example.com/a/b] [v1.api.example.com] [*.api.example.com] "
         "[*.example.com] [*]",
         7},
        {"v1.api.example.com", 443, "/a/b", "GET", "wget",
         "[v1.api.example.com/a/b] [v1.api.example.com] [*.api.example.com] [*.example.com] [*]", 8},
        {"v1.api.example.com", 443, "/a/bc", "GET", "wget",
         "[v1.api.example.com] [*.api.example.com] [*.example.com] [*]", 5},
        {"v1.api.example.com", 443, "/", "POST", "git",
         "[v1.api.example.com \"writes\"] [v1.api.example.com \"git\"] [v1.api.example.com \"not wget\"] "
         "[v1.api.example.com] [*.api.example.com] [*.example.com] [*]",
         9},
        {"v1.api.example.com", 443, "/", "GET", "git",
         "[v1.api.example.com \"git\"] [v1.api.example.com \"not wget\"] [v1.api.example.com] [*.api.example.com] "
         "[*.example.com] [*]",
         10},
        {"v1.api.example.com", 443, "/", "GET", "git-lfs",
         "[v1.api.example.com \"not wget\"] [v1.api.example.com] [*.api.example.com] [*.example.com] [*]", 11},
        {"v1.api.example.com", 443, "/", "GET", "Git",
         "[v1.api.example.com \"not wget\"] [v1.api.example.com] [*.api.example.com] [*.example.com] [*]", 11},
        {"::1", 8443, "/", "GET", "curl", "[[::1]:8443] [*]", 12},
        {"::1", 443, "/", "GET", "curl", "[*]", 2},
    };
    struct config *config = build(everything);
    struct resolved_policy resolved;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct policy_target target = {cases[i].host,   (uint16_t)cases[i].port, cases[i].path,
                                       cases[i].method, cases[i].program,        false};
        policy_resolve(config, &target, &resolved);
        assert_string_equal(speakers(&resolved), cases[i].speakers);
        assert_true(resolved.values.max_wait == cases[i].max_wait_s * NS_PER_SECOND);
        assert_int_equal(resolved.host_is_named, strcmp(cases[i].speakers, "[*]") != 0);
    }
    config_free(config);
}

static void paths_match_at_segment_boundaries(void **state)
{
    static const struct {
        const char *pattern, *path;
        bool matches;
    } cases[] = {
        {"/v1", "/v1", true},
        {"/v1", "/v1/", true},
        {"/v1", "/v1/x/y", true},
        {"/v1", "/v10", false},
        {"/v1", "/v", false},
        {"/v1", "/", false},
        {"/v1", "", false},
        {"/v1", "/V1", false},
        {"/v1/", "/v1", true},
        {"/users/*", "/users/7", true},
        {"/users/*", "/users/7/x", true},
        {"/users/*", "/users", false},
        {"/users/*/repos", "/users/7/repos", true},
        {"/users/*/repos", "/users/7/8/repos", false},
        {"/users/*/repos", "/users/7/reposx", false},
        {"/a*c", "/abc", true},
        {"/a*c", "/ac", true},
        {"/a*c", "/abcbc/d", true},
        {"/a*c", "/abcb", false},
        {"/a*c", "/a/c", false},
        {"/a*b*c", "/aXbYbZc", true},
        {"/a*b*c", "/aXcYb", false},
        {"/**", "/x", true},
        {"/*/*", "/x", false},
        {"/*", "/", true},
        {"//x", "//x", true},
        {"//x", "/x", false},
        {"/x", "//x", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        const char *why = "nothing";
        snprintf(text, sizeof text, "[a.example%s]\n", cases[i].pattern);
        struct config *config = build(text);
        struct policy_target target = target_of("a.example", 443, cases[i].path);
        if (policy_section_matches(&config->sections[1], &target, &why) != cases[i].matches)
            fail_msg("%s for %s: %s", cases[i].pattern, cases[i].path, why);
        config_free(config);
    }
}

/* No pattern takes exponential time. */
static void many_stars_take_no_time(void **state)
{
    char pattern[256], path[8192], text[512];
    struct policy_target target;

    (void)state;
    strcpy(pattern, "/");
    for (int i = 0; i < 100; i++)
        strcat(pattern, "a*");
    strcat(pattern, "b");
    snprintf(text, sizeof text, "[a.example%s]\n", pattern);
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    struct config *config = build(text);
    target = target_of("a.example", 443, path);
    assert_false(policy_section_matches(&config->sections[1], &target, NULL));
    path[sizeof path - 2] = 'b';
    assert_true(policy_section_matches(&config->sections[1], &target, NULL));
    config_free(config);
}

static void what_differs_is_said(void **state)
{
    static const struct {
        const char *text, *why; /* NULL: it matches */
    } cases[] = {
        {"[a.example]", NULL},
        {"[A.example.]", NULL},
        {"[a.example:443]", NULL},
        {"[*.example]", NULL},
        {"[*]", NULL},
        {"[b.example]\nhosts = c.example, a.example:443", NULL},
        {"[a.example/x/y]", NULL},
        {"[a.example]\nmethods = post, get", NULL},
        {"[a.example]\nprograms = !wget", NULL},
        {"[a.example]\ncredential = none", NULL},
        {"[b.example]", "another host"},
        {"[*.a.example]", "another host"},
        {"[a.example:80]", "another port"},
        {"[b.example]\nhosts = a.example:80", "another port"},
        {"[a.example/z]", "another path"},
        {"[a.example]\nmethods = POST", "another method"},
        {"[a.example]\nprograms = wget", "another program"},
        {"[a.example]\nprograms = !curl", "another program"},
        {"[a.example]\nprograms = curl, !curl", "another program"},
        {"[a.example]\ncredential = any", "no credential"},
    };
    struct policy_target target = target_of("a.example", 443, "/x/y/z");

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config *config = build(cases[i].text);
        const char *why = NULL;
        bool matches = policy_section_matches(&config->sections[1], &target, &why);
        if (matches != (cases[i].why == NULL) || (!matches && strcmp(why, cases[i].why) != 0))
            fail_msg("%s: %s", cases[i].text, why != NULL ? why : "matches");
        assert_true(policy_section_matches(&config->sections[0], &target, NULL));
        config_free(config);
    }
    struct config *config = build("[a.example]\ncredential = none\n");
    const char *why;
    target.has_credential = true;
    assert_false(policy_section_matches(&config->sections[1], &target, &why));
    assert_string_equal(why, "a credential");
    config_free(config);
}

static void hosts_are_normalised(void **state)
{
    static const struct {
        const char *host, *normalised;
    } cases[] = {
        {"API.Example.COM", "api.example.com"},
        {"api.example.com.", "api.example.com"},
        {"[::1]", "::1"},
        {"[2001:DB8:0:0:0:0:0:1]", "2001:db8::1"},
        {"::FFFF:1.2.3.4", "::ffff:1.2.3.4"},
        {"127.0.0.1", "127.0.0.1"},
        {"a..", "a."},
        {".", "."},
        {"", NULL},
        {"[]", NULL},
    };
    char out[64], small[8];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool done = policy_normalise_host(cases[i].host, strlen(cases[i].host), out, sizeof out);
        assert_int_equal(done, cases[i].normalised != NULL);
        if (done)
            assert_string_equal(out, cases[i].normalised);
    }
    assert_true(policy_normalise_host("1234567", 7, small, sizeof small));
    assert_false(policy_normalise_host("12345678", 8, small, sizeof small));
    assert_false(policy_normalise_host("a\0b", 3, small, sizeof small));
}

/* ---- values and buckets ---- */

static struct resolved_policy resolve(const struct config *config, const char *host, const char *path,
                                      const char *method)
{
    struct resolved_policy resolved;
    struct policy_target target = target_of(host, 443, path);
    target.method = method;
    policy_resolve(config, &target, &resolved);
    return resolved;
}

static void each_key_comes_from_the_most_specific_section(void **state)
{
    struct config *config = build("[default]\nmax_wait = 1s\nburst = 1\nheadroom = 10%\n"
                                  "[*.example]\nmax_wait = 2s\nburst = 2\n"
                                  "[a.example]\nmax_wait = 3s\n");
    struct resolved_policy resolved = resolve(config, "a.example", "/", "GET");

    (void)state;
    assert_true(resolved.values.max_wait == 3 * NS_PER_SECOND);
    assert_int_equal(resolved.origins[POLICY_KEY_max_wait].line, 9);
    assert_int_equal(resolved.values.burst, 2);
    assert_int_equal(resolved.origins[POLICY_KEY_burst].line, 7);
    assert_int_equal(resolved.values.headroom, 100000);
    assert_int_equal(resolved.origins[POLICY_KEY_headroom].line, 4);
    assert_int_equal(resolved.values.max_attempts, 5);
    assert_null(resolved.origins[POLICY_KEY_max_attempts].file);
    config_free(config);
}

static void the_later_of_equals_wins(void **state)
{
    struct config *config = build("[a.example \"x\"]\nburst = 1\nmax_wait = 1s\n[a.example \"y\"]\nburst = 2\n");
    struct resolved_policy resolved = resolve(config, "a.example", "/", "GET");

    (void)state;
    assert_string_equal(speakers(&resolved), "[a.example \"y\"] [a.example \"x\"]");
    assert_int_equal(resolved.values.burst, 2);
    assert_true(resolved.values.max_wait == NS_PER_SECOND);
    config_free(config);
}

static void quota_and_rate_come_from_the_more_specific_of_the_two(void **state)
{
    static const struct {
        const char *text;
        unsigned quotas, rates;
        const char *buckets;
    } cases[] = {
        {"[default]\nquota = 5/h\n[a.example]\nrate = 1/s\n", 0, 1, "a.example:443=rate"},
        {"[default]\nrate = 1/s\n[a.example]\nquota = 5/h\n", 1, 0, "a.example:443=5"},
        {"[default]\nquota = 5/h, 1/s\n[a.example]\nburst = 1\n", 2, 0, "a.example:443=5"},
        {"[default]\nquota = 5/h\n[a.example]\nquota = none\n", 0, 0, "a.example:443"},
        {"[default]\nquota = 5/h\n[a.example]\nrate = none\n", 0, 0, "a.example:443"},
        {"[default]\nquota = 5/h\n[a.example]\nquota = none\nrate = 1/s\n", 0, 1, "a.example:443=rate"},
        {"[default]\nquota = 5/h\n[*.example]\nrate = 1/s\n[a.example]\nquota = 7/h\n", 1, 0, "a.example:443=7"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config *config = build(cases[i].text);
        struct resolved_policy resolved = resolve(config, "a.example", "/", "GET");
        assert_int_equal(resolved.values.quota.count, cases[i].quotas);
        assert_int_equal(resolved.values.rate.count, cases[i].rates);
        assert_string_equal(buckets(&resolved), cases[i].buckets);
        config_free(config);
    }
}

static void buckets_are_named_by_what_shares_them(void **state)
{
    static const struct {
        const char *text, *host, *path, *method, *buckets;
    } cases[] = {
        {"", "a.example", "/", "GET", "a.example:443"},
        {"", "::1", "/", "GET", "[::1]:443"},
        {"[a.example]\nquota = 9/h\n", "a.example", "/", "GET", "a.example:443=9"},
        /* A wildcard alone makes no group. */
        {"[*.example]\nquota = 9/h\n", "a.example", "/", "GET", "a.example:443=9"},
        {"[*.example]\nquota = 9/h\nhosts = example\n", "a.example", "/", "GET", "{*.example}=9"},
        {"[x.example]\nquota = 9/h\nhosts = a.example\n", "a.example", "/", "GET", "{x.example}=9"},
        {"[x.example]\nquota = 9/h\nhosts = a.example\n", "b.example", "/", "GET", "b.example:443"},
        {"[X.example. \"all\"]\nquota = 9/h\nhosts = a.example\n", "a.example", "/", "GET", "{x.example \"all\"}=9"},
        /* A group's bucket has the limits that are in force for the host. */
        {"[x.example]\nquota = 9/h\nhosts = a.example\n[a.example]\nquota = 8/h\n", "a.example", "/", "GET",
         "{x.example}=8"},
        /* Part of a host: its own bucket and the host's. */
        {"[a.example]\nquota = 9/h\n[a.example/p]\nquota = 3/h\n", "a.example", "/p/q", "GET",
         "a.example:443=9 a.example:443/p=3"},
        {"[a.example]\nquota = 9/h\n[a.example/p]\nquota = 3/h\n", "a.example", "/q", "GET", "a.example:443=9"},
        {"[a.example/p]\nquota = 3/h\n", "a.example", "/p", "GET", "a.example:443 a.example:443/p=3"},
        {"[a.example]\nquota = 9/h\n[a.example/p]\nmax_wait = 3s\n", "a.example", "/p", "GET", "a.example:443=9"},
        {"[a.example]\nquota = 9/h\n[a.example/p]\nquota = none\n", "a.example", "/p", "GET", "a.example:443=9"},
        {"[a.example]\nquota = 9/h\n[a.example/p]\nrate = 3/s\n", "a.example", "/p", "GET",
         "a.example:443=9 a.example:443/p=rate"},
        {"[*.example/p]\nquota = 3/h\n", "a.example", "/p", "GET", "a.example:443 a.example:443/p=3"},
        {"[x.example/p]\nhosts = a.example\nquota = 3/h\n", "a.example", "/p", "GET", "a.example:443 {x.example/p}=3"},
        {"[a.example/*]\nquota = 4/h\n[a.example/p]\nquota = 3/h\n[a.example/p/q]\nquota = 2/h\n", "a.example", "/p/q",
         "GET", "a.example:443 a.example:443/p/q=2 a.example:443/p=3"},
        /* Methods and programs narrow the limits of their host's bucket, and have none of their own. */
        {"[a.example]\nquota = 9/h\n[a.example \"w\"]\nmethods = POST\nquota = 3/h\n", "a.example", "/", "POST",
         "a.example:443=3"},
        {"[a.example]\nquota = 9/h\n[a.example \"w\"]\nmethods = POST\nquota = 3/h\n", "a.example", "/", "GET",
         "a.example:443=9"},
        {"[a.example \"w\"]\nmethods = POST\nquota = 3/h\nhosts = b.example\n", "a.example", "/", "POST",
         "a.example:443=3"},
        {"[a.example/p]\nquota = 9/h\n[a.example/p \"w\"]\nmethods = POST\nquota = 3/h\n", "a.example", "/p", "POST",
         "a.example:443 a.example:443/p=3"},
        {"[a.example \"c\"]\nprograms = curl\nquota = 3/h\nhosts = b.example\n", "a.example", "/", "GET",
         "a.example:443=3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config *config = build(cases[i].text);
        struct resolved_policy resolved = resolve(config, cases[i].host, cases[i].path, cases[i].method);
        if (strcmp(buckets(&resolved), cases[i].buckets) != 0)
            fail_msg("of\n%s\ncame %s and not %s", cases[i].text, buckets(&resolved), cases[i].buckets);
        config_free(config);
    }
}

/* headroom, burst and jitter of a path are for its own bucket only; those of the host for both. */
static void a_paths_limits_are_worked_out_with_its_own_keys(void **state)
{
    struct config *config = build("[a.example]\nquota = 100/min\nheadroom = 50%\n"
                                  "[a.example/p]\nquota = 60/min\nburst = 3\nnetwork_jitter = 2s\n");
    struct resolved_policy resolved = resolve(config, "a.example", "/p", "GET");
    struct policy host = resolved.values, path = resolved.values;
    struct limits wanted;

    (void)state;
    host.quota = (struct rate_list){1, {{100, 60 * NS_PER_SECOND}}};
    host.burst = COUNT_AUTO;
    host.network_jitter = DURATION_AUTO;
    limits_from_policy(&host, &wanted, NULL);
    assert_int_equal(resolved.bucket_count, 2);
    assert_memory_equal(&resolved.buckets[0].limits.item[0], &wanted.item[0], sizeof wanted.item[0]);
    assert_int_equal(path.headroom, 500000);
    assert_int_equal(path.burst, 3);
    limits_from_policy(&path, &wanted, NULL);
    assert_memory_equal(&resolved.buckets[1].limits.item[0], &wanted.item[0], sizeof wanted.item[0]);
    config_free(config);
}

static void names_that_do_not_fit_end_in_a_hash(void **state)
{
    char host[254], text[1024], path[512], before[BUCKET_NAME_SIZE];
    struct policy_target target;
    struct resolved_policy resolved;

    (void)state;
    memset(host, 'h', sizeof host - 1);
    host[sizeof host - 1] = '\0';
    struct config *config = build("");
    for (size_t length = 100; length < sizeof host; length++) {
        target = target_of(host + sizeof host - 1 - length, 443, "/");
        policy_resolve(config, &target, &resolved);
        size_t wanted = length + 4 < BUCKET_NAME_SIZE ? length + 4 : BUCKET_NAME_SIZE - 1;
        assert_int_equal(strlen(resolved.buckets[0].name), wanted);
        assert_int_equal(strchr(resolved.buckets[0].name, '~') != NULL, length + 4 >= BUCKET_NAME_SIZE);
        if (length > 100)
            assert_string_not_equal(before, resolved.buckets[0].name);
        strcpy(before, resolved.buckets[0].name);
    }
    config_free(config);

    memset(path, 'p', sizeof path);
    path[0] = '/';
    path[511] = '\0';
    snprintf(text, sizeof text, "[a.example%s]\nquota = 5/h\n", path);
    config = build(text);
    target = target_of("a.example", 443, path);
    policy_resolve(config, &target, &resolved);
    assert_int_equal(resolved.bucket_count, 2);
    assert_int_equal(strlen(resolved.buckets[1].name), BUCKET_NAME_SIZE - 1);
    assert_memory_equal(resolved.buckets[1].name, "a.example:443/ppp", 17);
    assert_int_equal(resolved.buckets[1].name[BUCKET_NAME_SIZE - 18], '~');
    config_free(config);

    /* A label of two-byte characters, of which the cut meets one half way. */
    char label[61];
    for (size_t i = 0; i < sizeof label - 1; i += 2)
        memcpy(label + i, "\xc3\xa4", 3);
    snprintf(text, sizeof text, "[%.80s \"%s\"]\nhosts = a.example\n", path + 400, label);
    text[64] = '.';
    config = build(text);
    target = target_of("a.example", 443, "/");
    policy_resolve(config, &target, &resolved);
    const char *tilde = strchr(resolved.buckets[0].name, '~');
    assert_non_null(tilde);
    assert_int_equal((unsigned char)tilde[-1], 0xa4);
    config_free(config);
}

/* More sections than there is room for: the least specific are dropped, [default] never is. */
static void a_crowd_of_sections_keeps_the_most_specific(void **state)
{
    char text[8192] = "[default]\nburst = 7\n";

    (void)state;
    for (int i = 0; i < 100; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "[a.example \"%d\"]\nmax_attempts = %d\n", i, i + 1);
    struct config *config = build(text);
    struct resolved_policy resolved = resolve(config, "a.example", "/", "GET");
    assert_int_equal(resolved.section_count, POLICY_SECTIONS_MAX);
    assert_string_equal(resolved.sections[0]->label, "99");
    assert_string_equal(resolved.sections[POLICY_SECTIONS_MAX - 2]->label, "69");
    assert_string_equal(resolved.sections[POLICY_SECTIONS_MAX - 1]->name, "default");
    assert_int_equal(resolved.values.max_attempts, 100);
    assert_int_equal(resolved.values.burst, 7);
    config_free(config);
}

/* ---- profiles ---- */

/* One attempt, no waiting, whatever else was said and wherever; the limits stay what they are. */
static void best_effort_goes_before_attempts_and_waits(void **state)
{
    static const struct {
        const char *text;
        unsigned attempts, attempts_line, wait_line;
        int64_t max_wait_ns;
    } cases[] = {
        {"[default]\nmax_attempts = 3\nmax_wait = 7s\n", 3, 2, 3, 7 * NS_PER_SECOND},
        {"[default]\nmax_attempts = 3\nmax_wait = 7s\n[a.example]\nprofile = best_effort\n", 1, 5, 5, 0},
        {"[default]\nprofile = best_effort\n[a.example]\nmax_attempts = 3\nmax_wait = 7s\n", 1, 2, 2, 0},
        {"[default]\nprofile = best_effort\n[a.example]\nprofile = normal\nmax_attempts = 3\n", 3, 5, 0, DURATION_AUTO},
        {"[a.example]\nprofile = best_effort\n", 1, 2, 2, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct config *config = build(cases[i].text);
        struct resolved_policy resolved = resolve(config, "a.example", "/", "GET");
        assert_int_equal(resolved.values.max_attempts, cases[i].attempts);
        assert_true(resolved.values.max_wait == cases[i].max_wait_ns);
        assert_int_equal(resolved.origins[POLICY_KEY_max_attempts].line, cases[i].attempts_line);
        assert_int_equal(resolved.origins[POLICY_KEY_max_wait].line, cases[i].wait_line);
        config_free(config);
    }
    struct config *config = build("[a.example]\nquota = 9/h\n[a.example/p]\nprofile = best_effort\nquota = 3/h\n");
    struct resolved_policy resolved = resolve(config, "a.example", "/p", "GET");
    assert_string_equal(buckets(&resolved), "a.example:443=9 a.example:443/p=3");
    config_free(config);
}

/* ---- a machine's buckets ---- */

static struct config *build_two(const char *first, const char *second)
{
    struct config_builder *builder = config_builder_new(fail_on_error, (void *)second);
    assert_true(config_builder_add(builder, "machine", first, strlen(first)));
    assert_true(config_builder_add(builder, "user", second, strlen(second)));
    struct config *config = config_builder_finish(builder);
    assert_non_null(config);
    return config;
}

/* What a user's requests draw on where the administrator says the one and the user the other. */
static struct resolved_policy tightened(const char *machine_text, const char *user_text, const char *path)
{
    struct config *machine = build(machine_text), *both = build_two(machine_text, user_text);
    struct resolved_policy resolved = resolve(both, "a.example", path, "GET");
    struct resolved_policy administrators = resolve(machine, "a.example", path, "GET");

    policy_tighten(&resolved, &administrators, 1000);
    config_free(machine);
    config_free(both);
    return resolved;
}

static void a_user_may_tighten_himself_and_nobody_else(void **state)
{
    static const struct {
        const char *machine, *user, *path, *buckets;
    } cases[] = {
        {"", "", "/", "a.example:443"},
        {"[a.example]\nquota = 100/h\n", "", "/", "a.example:443=100"},
        /* Stricter: his own beside the machine's. */
        {"[a.example]\nquota = 100/h\n", "[a.example]\nquota = 50/h\n", "/",
         "a.example:443=100 a.example:443 (uid 1000)=50"},
        {"", "[a.example]\nquota = 50/h\n", "/", "a.example:443 a.example:443 (uid 1000)=50"},
        {"[a.example]\nquota = 100/h\n", "[a.example]\nrate = 1/h\n", "/",
         "a.example:443=100 a.example:443 (uid 1000)=rate"},
        {"[a.example]\nquota = 100/h\n", "[a.example]\nburst = 1\n", "/",
         "a.example:443=100 a.example:443 (uid 1000)=100"},
        {"[a.example]\nquota = 100/h\n", "[a.example]\nquota = 100/h, 1/s\n", "/",
         "a.example:443=100 a.example:443 (uid 1000)=100"},
        /* Looser, or the same: nothing. */
        {"[a.example]\nquota = 100/h\n", "[a.example]\nquota = 100/h\n", "/", "a.example:443=100"},
        {"[a.example]\nquota = 100/h\n", "[a.example]\nquota = 1000/h\n", "/", "a.example:443=100"},
        {"[a.example]\nquota = 100/h\n", "[a.example]\nquota = none\n", "/", "a.example:443=100"},
        {"[a.example]\nquota = 100/h\nburst = 2\n", "[a.example]\nburst = 9\nheadroom = 0%\n", "/",
         "a.example:443=100"},
        /* A path of his own, and a group. */
        {"[a.example]\nquota = 100/h\n", "[a.example/p]\nquota = 5/h\n", "/p",
         "a.example:443=100 a.example:443/p (uid 1000)=5"},
        {"[a.example]\nquota = 100/h\n[a.example/p]\nquota = 9/h\n", "[a.example/p]\nquota = 5/h\n", "/p",
         "a.example:443=100 a.example:443/p=9 a.example:443/p (uid 1000)=5"},
        {"[a.example]\nquota = 100/h\n", "[a.example]\nhosts = b.example\nquota = 50/h\n", "/",
         "a.example:443=100 {a.example} (uid 1000)=50"},
        {"[a.example]\nquota = 100/h\nhosts = b.example\n", "[a.example]\nquota = 50/h\n", "/",
         "{a.example}=100 {a.example} (uid 1000)=50"},
        /* The host's first, as far as there is room. */
        {"[a.example/*]\nquota = 9/h\n[a.example/p]\nquota = 8/h\n",
         "[a.example]\nquota = 50/h\n[a.example/p]\nquota = 5/h\n", "/p",
         "a.example:443 a.example:443/p=8 a.example:443/*=9 a.example:443 (uid 1000)=50"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct resolved_policy resolved = tightened(cases[i].machine, cases[i].user, cases[i].path);
        if (strcmp(buckets(&resolved), cases[i].buckets) != 0)
            fail_msg("%s---\n%s: %s and not %s", cases[i].machine, cases[i].user, buckets(&resolved), cases[i].buckets);
    }
}

/* The machine's limits are the machine's own, to the last bit, whatever a user sets; and what is no
 * limit stays the user's. */
static void the_machines_limits_are_not_a_users(void **state)
{
    static const char machine_text[] = "[a.example]\nquota = 100/h\nheadroom = 30%\n[default]\nmax_wait = 7s\n";
    struct config *machine = build(machine_text);
    struct resolved_policy administrators = resolve(machine, "a.example", "/", "GET");
    struct resolved_policy resolved =
        tightened(machine_text, "[a.example]\nheadroom = 10%\nnetwork_jitter = 2s\nmax_wait = 3s\n", "/");

    (void)state;
    assert_memory_equal(&resolved.buckets[0].limits, &administrators.buckets[0].limits, sizeof(struct limits));
    assert_true(resolved.values.max_wait == 3 * NS_PER_SECOND);
    config_free(machine);
}

static void a_users_bucket_has_a_name_that_fits(void **state)
{
    char user[512], host[201], before[BUCKET_NAME_SIZE] = "";
    struct resolved_policy resolved;

    (void)state;
    memset(host, 'h', 200);
    host[63] = host[127] = host[191] = '.';
    host[200] = '\0';
    snprintf(user, sizeof user, "[%s]\nquota = 5/h\n", host);
    struct config *machine = build(""), *both = build(user);
    struct resolved_policy administrators = resolve(machine, host, "/", "GET");
    for (unsigned uid = 0; uid < 3; uid++) {
        resolved = resolve(both, host, "/", "GET");
        policy_tighten(&resolved, &administrators, uid);
        assert_int_equal(resolved.bucket_count, 2);
        assert_int_equal(strlen(resolved.buckets[1].name), BUCKET_NAME_SIZE - 1);
        assert_string_not_equal(resolved.buckets[1].name, resolved.buckets[0].name);
        assert_string_not_equal(resolved.buckets[1].name, before);
        strcpy(before, resolved.buckets[1].name);
    }
    config_free(machine);
    config_free(both);
}

/* ---- ten thousand sections ---- */

static void ten_thousand_hosts_are_told_apart(void **state)
{
    static char text[1 << 20];
    size_t used = 0;

    (void)state;
    for (int i = 0; i < 10000; i++)
        used += (size_t)sprintf(text + used, "[%sh%d.example]\nmax_attempts = %d\n", i % 2 ? "*." : "", i, i + 1);
    struct config *config = build(text);
    for (int i = 0; i < 10000; i++) {
        char host[64];
        snprintf(host, sizeof host, "%sh%d.example", i % 2 ? "x.y." : "", i);
        struct resolved_policy resolved = resolve(config, host, "/", "GET");
        assert_int_equal(resolved.section_count, 2);
        assert_int_equal(resolved.values.max_attempts, i + 1);
    }
    config_free(config);
}

/* ---- against a plain scan ---- */

static uint64_t next_random(void)
{
    static uint64_t state = 99;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 33;
}

static unsigned up_to(unsigned most)
{
    return (unsigned)(next_random() % (most + 1));
}

#define PICK(array) ((array)[up_to(sizeof(array) / sizeof(array)[0] - 1)])

static const char *const random_hosts[] = {"a.example", "b.a.example", "c.b.a.example", "example", "b.example", "::1"};
static const char *const random_patterns[] = {"a.example", "b.a.example", "c.b.a.example", "example",
                                              "b.example", "*.example",   "*.a.example",   "*.b.a.example",
                                              "*",         "[::1]",       "*.c.example",   "A.Example."};
static const char *const random_paths[] = {"", "", "/p", "/p/q", "/*", "/*/q", "/p*", "/p/*/r", "/*q"};
static const char *const random_target_paths[] = {"/", "/p", "/p/q", "/pp", "/p/q/r", "/x/q", "/q/p/", "/p/"};
static const char *const random_methods[] = {"GET", "POST", "post, PUT"};
static const char *const random_programs[] = {"curl", "!curl", "git, curl", "git, !curl", "!git", "curl, !git"};

/* One random section, appended. */
static void write_section(char *text, size_t size, unsigned label)
{
    static const char *const ports[] = {"", "", ":80", ":443"};
    char hosts[128] = "", *end = text + strlen(text);
    size_t room = size - strlen(text);

    for (unsigned i = up_to(3); i > 1; i--)
        snprintf(hosts + strlen(hosts), sizeof hosts - strlen(hosts), "%s%s%s",
                 hosts[0] ? ", " : "hosts = ", PICK(random_patterns), PICK(ports));
    snprintf(end, room, "[%s%s%s \"%u\"]\n%s\n", PICK(random_patterns), PICK(ports), PICK(random_paths), label, hosts);
    end += strlen(end);
    room = size - (size_t)(end - text);
    if (up_to(3) == 0)
        end += snprintf(end, room, "methods = %s\n", PICK(random_methods));
    if (up_to(3) == 0)
        end += snprintf(end, room, "programs = %s\n", PICK(random_programs));
    if (up_to(5) == 0)
        end += snprintf(end, room, "credential = %s\n", up_to(1) ? "any" : "none");
    if (up_to(9) == 0)
        end += snprintf(end, room, "profile = %s\n", up_to(1) ? "best_effort" : "normal");
    if (up_to(2) == 0)
        end += snprintf(end, room, "%s = %u/h\n", up_to(1) ? "quota" : "rate", 1 + up_to(5000));
    else if (up_to(9) == 0)
        end += snprintf(end, room, "%s = none\n", up_to(1) ? "quota" : "rate");
    if (up_to(2) == 0)
        end += snprintf(end, room, "burst = %u\n", 1 + up_to(9));
    if (up_to(2) == 0)
        end += snprintf(end, room, "headroom = %u%%\n", up_to(50));
    if (up_to(2) == 0)
        snprintf(end, room, "max_wait = %us\n", up_to(50));
}

static bool naive_host(const struct host_pattern *pattern, const struct policy_target *target)
{
    if (pattern->port != 0 && pattern->port != target->port)
        return false;
    if (strncmp(pattern->host, "*.", 2) == 0)
        return fnmatch(pattern->host, target->host, FNM_NOESCAPE) == 0 && target->host[0] != '.';
    return strcmp(pattern->host, "*") == 0 || strcmp(pattern->host, target->host) == 0;
}

/* Any beginning of the path that ends before a '/' or at its end. */
static bool naive_path(const char *pattern, const char *path)
{
    for (size_t length = 1; length <= strlen(path); length++) {
        char beginning[256];
        snprintf(beginning, sizeof beginning, "%.*s", (int)length, path);
        if ((path[length] == '\0' || path[length] == '/') &&
            fnmatch(pattern, beginning, FNM_PATHNAME | FNM_NOESCAPE) == 0)
            return true;
    }
    return false;
}

static bool naive_program(const char *const *programs, const char *program)
{
    bool any_named = false, is_named = false;
    for (; *programs != NULL; programs++) {
        if ((*programs)[0] == '!' && strcmp(*programs + 1, program) == 0)
            return false;
        any_named |= (*programs)[0] != '!';
        is_named |= strcmp(*programs, program) == 0;
    }
    return is_named || !any_named;
}

static bool naive_rest(const struct section *section, const struct policy_target *target)
{
    bool method = section->methods == NULL;
    for (const char *const *at = section->methods; at != NULL && *at != NULL; at++)
        method |= strcmp(*at, target->method) == 0;
    return method && (section->path == NULL || naive_path(section->path, target->path)) &&
           (section->programs == NULL || naive_program(section->programs, target->program)) &&
           (section->credential == -1 ||
            section->credential == (target->has_credential ? CREDENTIAL_ANY : CREDENTIAL_NONE));
}

/* Larger is more specific, from left to right. */
struct naive_rank {
    unsigned value[9];
    const struct section *section;
};

static int naive_compare(const void *left, const void *right)
{
    const struct naive_rank *a = left, *b = right;
    for (int i = 0; i < 9; i++)
        if (a->value[i] != b->value[i])
            return a->value[i] < b->value[i] ? 1 : -1;
    return 0;
}

static unsigned occurrences(const char *text, char c)
{
    unsigned count = 0;
    for (; text != NULL && *text != '\0'; text++)
        count += *text == c;
    return count;
}

static struct naive_rank naive_rank(const struct section *section, const struct host_pattern *pattern)
{
    struct naive_rank rank = {.section = section};
    bool names = false;

    for (const char *const *program = section->programs; program != NULL && *program != NULL; program++)
        names |= (*program)[0] != '!';
    rank.value[0] = pattern->host[0] != '*' ? 3 : pattern->host[1] == '.' ? 2 : 1;
    rank.value[1] = rank.value[0] == 2 ? occurrences(pattern->host, '.') : 0;
    rank.value[2] = pattern->port != 0;
    rank.value[3] = section->path ? (unsigned)strlen(section->path) - occurrences(section->path, '*') : 0;
    rank.value[4] = section->path ? (unsigned)strlen(section->path) : 0;
    rank.value[5] = section->methods != NULL;
    rank.value[6] = section->programs == NULL ? 0 : names ? 2 : 1;
    rank.value[7] = section->credential >= 0;
    rank.value[8] = section->order;
    return rank;
}

/* The matching sections, the most specific first, without [default]. */
static unsigned naive_collect(const struct config *config, const struct policy_target *target, struct naive_rank *out)
{
    unsigned count = 0;
    for (unsigned i = 1; i < config->section_count; i++) {
        const struct section *section = &config->sections[i];
        struct naive_rank best = {.section = NULL};
        for (unsigned j = 0; j < section->pattern_count; j++) {
            struct naive_rank rank = naive_rank(section, &section->patterns[j]);
            if (naive_host(&section->patterns[j], target) && (best.section == NULL || naive_compare(&rank, &best) < 0))
                best = rank;
        }
        if (best.section != NULL && naive_rest(section, target))
            out[count++] = best;
    }
    qsort(out, count, sizeof *out, naive_compare);
    return count;
}

/* The values of ranks[from..count) and [default], key by key; only of sections without path if so wished. */
static void naive_values(const struct config *config, const struct naive_rank *ranks, unsigned from, unsigned count,
                         bool with_paths, struct policy *out)
{
    policy_defaults(out);
    for (unsigned k = 0; k < POLICY_KEY_COUNT; k++) {
        const struct key *key = &policy_keys[k];
        bool is_limit = k == POLICY_KEY_quota || k == POLICY_KEY_rate;
        for (unsigned i = from; i <= count; i++) {
            const struct section *section = i < count ? ranks[i].section : &config->sections[0];
            if (section->path != NULL && !with_paths)
                continue;
            if (section->set[k])
                memcpy((char *)out + key->offset, (const char *)&section->values + key->offset, key->size);
            if (section->set[k] || (is_limit && (section->set[POLICY_KEY_quota] || section->set[POLICY_KEY_rate])))
                break;
        }
    }
}

static void assert_same_limits(const struct policy *policy, const struct limits *found)
{
    struct limits wanted;
    limits_from_policy(policy, &wanted, NULL);
    assert_int_equal(found->count, wanted.count);
    for (unsigned i = 0; i < wanted.count; i++)
        assert_memory_equal(&found->item[i], &wanted.item[i], sizeof wanted.item[i]);
}

static bool naive_is_group(const struct section *section)
{
    return section->groups_hosts && !section->methods && !section->programs && section->credential == -1;
}

static void assert_same_buckets(const struct config *config, const struct policy_target *target,
                                const struct naive_rank *ranks, unsigned count, const struct resolved_policy *resolved)
{
    char name[512];
    struct policy values;
    unsigned buckets = 1;

    snprintf(name, sizeof name, strchr(target->host, ':') ? "[%s]:%u" : "%s:%u", target->host, target->port);
    for (unsigned i = count; i > 0; i--)
        if (ranks[i - 1].section->path == NULL && naive_is_group(ranks[i - 1].section))
            snprintf(name, sizeof name, "{%s}", ranks[i - 1].section->name);
    assert_string_equal(resolved->buckets[0].name, name);
    naive_values(config, ranks, 0, count, false, &values);
    assert_same_limits(&values, &resolved->buckets[0].limits);

    for (unsigned i = 0; i < count && buckets <= POLICY_PATHS_MAX; i++) {
        const struct section *section = ranks[i].section;
        bool limited = (section->set[POLICY_KEY_quota] && section->values.quota.count > 0) ||
                       (section->set[POLICY_KEY_rate] && section->values.rate.count > 0);
        if (section->path == NULL || !limited)
            continue;
        snprintf(name, sizeof name, strchr(target->host, ':') ? "[%s]:%u%s" : "%s:%u%s", target->host, target->port,
                 section->path);
        if (naive_is_group(section))
            snprintf(name, sizeof name, "{%s}", section->name);
        bool repeated = false;
        for (unsigned j = 0; j < buckets; j++)
            repeated |= strcmp(resolved->buckets[j].name, name) == 0;
        if (repeated)
            continue;
        assert_true(buckets < resolved->bucket_count);
        assert_string_equal(resolved->buckets[buckets].name, name);
        naive_values(config, ranks, i, count, true, &values);
        assert_same_limits(&values, &resolved->buckets[buckets].limits);
        buckets++;
    }
    assert_int_equal(resolved->bucket_count, buckets);
}

static void assert_same(const struct config *config, const struct policy_target *target)
{
    struct resolved_policy resolved;
    struct naive_rank ranks[64];
    struct policy values;
    char found[256], wanted[256];
    bool named = false;
    unsigned count = naive_collect(config, target, ranks);

    policy_resolve(config, target, &resolved);
    assert_int_equal(resolved.section_count, count + 1);
    for (unsigned i = 0; i < count; i++) {
        assert_string_equal(resolved.sections[i]->name, ranks[i].section->name);
        named |= ranks[i].value[0] > 1;
    }
    assert_int_equal(resolved.host_is_named, named);
    for (unsigned i = 1; i < config->section_count; i++) {
        bool collected = false;
        for (unsigned j = 0; j < count; j++)
            collected |= ranks[j].section == &config->sections[i];
        assert_int_equal(policy_section_matches(&config->sections[i], target, NULL), collected);
    }
    naive_values(config, ranks, 0, count, true, &values);
    if (values.profile == PROFILE_BEST_EFFORT) {
        values.max_attempts = 1;
        values.max_wait = 0;
    }
    for (unsigned k = 0; k < POLICY_KEY_COUNT; k++) {
        keys_format_value(&policy_keys[k], (char *)&resolved.values + policy_keys[k].offset, found, sizeof found);
        keys_format_value(&policy_keys[k], (char *)&values + policy_keys[k].offset, wanted, sizeof wanted);
        assert_string_equal(found, wanted);
    }
    assert_same_buckets(config, target, ranks, count, &resolved);
}

static void a_plain_scan_finds_the_same(void **state)
{
    static char text[16384];

    (void)state;
    for (int round = 0; round < 1500; round++) {
        strcpy(text, "[default]\n");
        if (up_to(1) == 0)
            strcat(text, up_to(1) ? "quota = 77/h\nburst = 9\n" : "rate = 7/s\nmax_wait = 1s\n");
        unsigned sections = up_to(25);
        for (unsigned i = 0; i < sections; i++)
            write_section(text, sizeof text, i);
        struct config *config = build(text);
        for (int i = 0; i < 20; i++) {
            static const uint16_t ports[] = {80, 443, 8080};
            static const char *const methods[] = {"GET", "POST", "PUT"}, *const programs[] = {"curl", "git", "wget"};
            const struct policy_target target = {PICK(random_hosts), PICK(ports),    PICK(random_target_paths),
                                                 PICK(methods),      PICK(programs), up_to(1) == 0};
            assert_same(config, &target);
        }
        config_free(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_specific_section_speaks),
        cmocka_unit_test(paths_match_at_segment_boundaries),
        cmocka_unit_test(many_stars_take_no_time),
        cmocka_unit_test(what_differs_is_said),
        cmocka_unit_test(hosts_are_normalised),
        cmocka_unit_test(each_key_comes_from_the_most_specific_section),
        cmocka_unit_test(the_later_of_equals_wins),
        cmocka_unit_test(quota_and_rate_come_from_the_more_specific_of_the_two),
        cmocka_unit_test(buckets_are_named_by_what_shares_them),
        cmocka_unit_test(a_paths_limits_are_worked_out_with_its_own_keys),
        cmocka_unit_test(names_that_do_not_fit_end_in_a_hash),
        cmocka_unit_test(a_crowd_of_sections_keeps_the_most_specific),
        cmocka_unit_test(best_effort_goes_before_attempts_and_waits),
        cmocka_unit_test(a_user_may_tighten_himself_and_nobody_else),
        cmocka_unit_test(the_machines_limits_are_not_a_users),
        cmocka_unit_test(a_users_bucket_has_a_name_that_fits),
        cmocka_unit_test(ten_thousand_hosts_are_told_apart),
        cmocka_unit_test(a_plain_scan_finds_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
