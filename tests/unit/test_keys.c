/* SPDX-License-Identifier: MIT */
/*
 * Keys: that the table is sound, that every value is printed as it is read, that misspelt names are
 * recognised, and that ratelimit.ini says what the table says.
 */
#include "core/keys.h"

#include "core/classify.h"
#include "core/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Room for a value of any key. */
union value {
    struct policy policy;
    struct settings settings;
    unsigned char bytes[sizeof(struct policy)];
};

/* ---- the table ---- */

static void names_are_unique_and_short(void **state)
{
    (void)state;
    assert_int_equal(all_keys_count, MATCH_KEY_COUNT + POLICY_KEY_COUNT + CURTSY_KEY_COUNT);
    for (size_t i = 0; i < all_keys_count; i++) {
        assert_true(strlen(all_keys[i]->name) < 40);
        assert_true(strspn(all_keys[i]->name, "abcdefghijklmnopqrstuvwxyz_") == strlen(all_keys[i]->name));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(all_keys[i]->name, all_keys[j]->name);
        assert_ptr_equal(keys_find(all_keys[i]->group, all_keys[i]->name), all_keys[i]);
    }
    assert_null(keys_find(KEY_GROUP_POLICY, "segment"));
    assert_null(keys_find(KEY_GROUP_POLICY, "Quota"));
    assert_null(keys_find(KEY_GROUP_CURTSY, ""));
}

/* Fields that overlap or lie outside would be seen here: each byte is written by at most one key. */
static void every_field_is_its_keys_own(void **state)
{
    unsigned char owners[sizeof(struct policy)] = {0};

    (void)state;
    for (size_t i = 0; i < POLICY_KEY_COUNT; i++)
        for (size_t at = policy_keys[i].offset; at < policy_keys[i].offset + policy_keys[i].size; at++) {
            assert_true(at < sizeof owners);
            assert_int_equal(owners[at]++, 0);
        }
}

static void choices_have_their_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < all_keys_count; i++) {
        const struct key *key = all_keys[i];
        assert_int_equal(key->kind == KIND_CHOICE, key->choices != NULL);
        assert_int_equal(key->kind == KIND_CHOICE, key->expected != NULL);
        for (unsigned j = 0; key->choices != NULL && key->choices[j] != NULL; j++)
            assert_non_null(strstr(key->expected, key->choices[j]));
    }
}

static const void *field_of(const struct key *key, const struct policy *policy, const struct settings *settings)
{
    return (const char *)(key->group == KEY_GROUP_POLICY ? (const void *)policy : settings) + key->offset;
}

static void defaults_are_what_the_table_says(void **state)
{
    struct policy policy;
    struct settings settings;
    char text[256];

    (void)state;
    policy_defaults(&policy);
    settings_defaults(&settings);
    for (size_t i = 0; i < all_keys_count; i++) {
        const struct key *key = all_keys[i];
        if (key->default_text == NULL)
            continue;
        union value value;
        assert_null(keys_parse_value(key, key->default_text, &value));
        assert_true(keys_format_value(key, field_of(key, &policy, &settings), text, sizeof text) < (int)sizeof text);
        assert_string_equal(text, key->default_text);
    }
    assert_int_equal(policy.mode, MODE_ENFORCE);
    assert_int_equal(policy.quota.count, 0);
    assert_int_equal(policy.headroom, 200000);
    assert_int_equal(policy.burst, COUNT_AUTO);
    assert_int_equal(policy.max_in_flight, COUNT_NONE);
    assert_true(policy.network_jitter == DURATION_AUTO);
    assert_true(policy.min_interval == DURATION_NONE);
    assert_true(policy.max_block == 3600 * NS_PER_SECOND);
    assert_true(status_set_has(&policy.retry_status, 429) && !status_set_has(&policy.retry_status, 500));
    assert_int_equal(policy.retry_errors, ERROR_RESOLVE | ERROR_CONNECT | ERROR_TIMEOUT | ERROR_RESET | ERROR_STREAM);
    assert_null(policy.credential_query);
    assert_string_equal(policy.idempotency_header, "Idempotency-Key");
    assert_null(settings.segment);
    assert_null(settings.log_file);
    assert_int_equal(settings.log, LOG_WARN);
}

/* ---- values ---- */

static const struct key *key_named(const char *name)
{
    for (size_t i = 0; i < all_keys_count; i++)
        if (strcmp(all_keys[i]->name, name) == 0)
            return all_keys[i];
    fail_msg("no key %s", name);
    return NULL;
}

static void values_are_read_and_printed(void **state)
{
    static const struct {
        const char *key, *text, *printed; /* printed NULL: refused */
    } cases[] = {
        {"max_wait", "5min", "5m"},
        {"max_wait", "Auto", "auto"},
        {"max_wait", "none", NULL},
        {"max_wait", "5", NULL},
        {"max_wait", "-1s", NULL},
        {"min_interval", "none", "none"},
        {"min_interval", "auto", NULL},
        {"total_budget", "none", NULL},
        {"quota", "5000/h , 10/s", "5000/h, 10/s"},
        {"quota", "none", "none"},
        {"headroom", "0%", "0%"},
        {"headroom", "99.9999%", "99.9999%"},
        {"headroom", "100%", NULL},
        {"burst", "1", "1"},
        {"burst", "0", NULL},
        {"burst", "auto", "auto"},
        {"burst", "4294967295", NULL},
        {"max_in_flight", "0", NULL},
        {"max_attempts", "0", NULL},
        {"max_attempts", "1", "1"},
        {"retry_reserve", "0", "0"},
        {"retry_status", "429", "429"},
        {"retry_status", " 429,503 , 520 - 524", "429, 503, 520-524"},
        {"retry_status", "none", "none"},
        {"retry_status", "500, 502-504, 529", "500, 502, 503, 504, 529"},
        {"retry_status", "404", NULL},
        {"retry_status", "429, 403", NULL},
        {"retry_status", "400-599", NULL},
        {"retry_status", "501", NULL},
        {"retry_status", "5O3", NULL},
        {"retry_status", "429,", NULL},
        {"retry_status", "4290", NULL},
        {"retry_status", "504-502", NULL},
        {"retry_status", "5xx", NULL},
        {"retry_status", "", NULL},
        {"refusal_status", "403, 429-432", "403, 429-432"},
        {"refusal_status", "99", NULL},
        {"refusal_status", "600", NULL},
        {"refusal_status", "100-599", "100-599"},
        {"retry_errors", "stream,RESET", "reset, stream"},
        {"retry_errors", "none", "none"},
        {"retry_errors", "all", NULL},
        {"retry_errors", "reset,,stream", NULL},
        {"idempotency_header", "X-Request-Id", "X-Request-Id"},
        {"idempotency_header", "X Request Id", NULL},
        {"idempotency_header", "X-Request-Id:", NULL},
        {"limit_header", "auto", "auto"},
        {"credential_headers", "X-Token, Cookie", "X-Token, Cookie"},
        {"credential_headers", "none", "none"},
        {"credential_headers", "X-Token, , Cookie", NULL},
        {"credential_headers", "Authorization: Bearer", NULL},
        {"adaptive", "False", "off"},
        {"retry_unsent", "on", "yes"},
        {"adaptive_decrease", "50%", "0.5"},
        {"adaptive_decrease", "1", "1"},
        {"adaptive_decrease", "0.000001", "0.000001"},
        {"adaptive_decrease", "0", NULL},
        {"replay_buffer", "64 kib", "64KiB"},
        {"mode", "observe", "observe"},
        {"mode", "OFF", "off"},
        {"mode", "on", NULL},
        {"idempotent", "auto", "auto"},
        {"credential", "none", "none"},
        {"segment", "/curtsy.v1.0", "/curtsy.v1.0"},
        {"segment", "none", "none"},
        {"segment", "auto", "auto"},
        {"segment", "team", "team"},
        {"segment", "/run/curtsy/budget", "/run/curtsy/budget"},
        {"segment", "run/curtsy/budget", NULL},
        {"segment", "./budget", NULL},
        {"segment", "/", NULL},
        {"segment", "..", NULL},
        {"segment_size", "256KiB", "256KiB"},
        {"segment_size", "255KiB", NULL},
        {"segment_size", "1GiB", "1GiB"},
        {"segment_size", "1025MiB", NULL},
        {"segment_permissions", "0600", "0600"},
        {"segment_permissions", "660", "0660"},
        {"segment_permissions", "0666", "0666"},
        {"segment_permissions", "0644", NULL},
        {"segment_permissions", "rw", NULL},
        {"segment_group", "staff", "staff"},
        {"segment_group", "none", "none"},
        {"presets", "github", "github"},
        {"presets", "github, gitlab", "github, gitlab"},
        {"presets", "none", "none"},
        {"presets", "github gitlab", NULL},
        {"presets", "github.ini", NULL},
        {"presets", "../github", NULL},
        {"presets", "/usr/share/curtsy/github", NULL},
        {"presets", "..", NULL},
        {"presets", "github,", NULL},
        {"presets", "", NULL},
        {"profile", "best_effort", "best_effort"},
        {"profile", "best-effort", NULL},
        {"log_file", "none", "none"},
        {"log_file", "", NULL},
        {"log_file", "   ", NULL},
        {"log_file", "/var/log/a file", "/var/log/a file"},
    };
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct key *key = key_named(cases[i].key);
        union value value;
        memset(&value, 0xa5, sizeof value);
        const char *expected = keys_parse_value(key, cases[i].text, &value);
        if ((expected == NULL) != (cases[i].printed != NULL))
            fail_msg("%s = %s was %s%s", cases[i].key, cases[i].text, expected ? "refused: expected " : "taken",
                     expected ? expected : "");
        for (size_t at = expected == NULL ? key->size : 0; at < sizeof value; at++)
            assert_int_equal(value.bytes[at], 0xa5);
        if (expected != NULL)
            continue;
        keys_format_value(key, &value, text, sizeof text);
        assert_string_equal(text, cases[i].printed);
    }
}

static void only_statuses_that_may_be_retried_are_taken(void **state)
{
    const struct key *key = &policy_keys[POLICY_KEY_retry_status];

    (void)state;
    for (int status = 100; status < 600; status++) {
        struct status_set set;
        char text[16];
        snprintf(text, sizeof text, "%d", status);
        const char *expected = keys_parse_value(key, text, &set);
        assert_int_equal(expected == NULL, classify_status_may_be_retried(status));
        if (status >= 400 && status < 500 && status != 429)
            assert_non_null(expected);
    }
}

/* A fixed sequence (Knuth's MMIX generator), so that a failure comes again. */
static uint64_t next_random(void)
{
    static uint64_t state = 7;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return state >> 11 ^ state << 21;
}

static uint64_t up_to(uint64_t most)
{
    return next_random() % (most + 1);
}

static struct rate_list random_rates(void)
{
    struct rate_list list = {.count = (unsigned)up_to(RATES_MAX)};
    for (unsigned i = 0; i < list.count; i++)
        list.item[i] = (struct rate){1 + up_to(999999999), (int64_t)(i + 1) * NS_PER_MS + (int64_t)up_to(999999)};
    return list;
}

static struct status_set random_statuses(bool any)
{
    static const int allowed[] = {429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529};
    struct status_set set = {{0}};
    for (uint64_t i = up_to(40); i > 0; i--) {
        int status = any ? 100 + (int)up_to(499) : allowed[up_to(10)];
        set.bits[(status - 100) / 64] |= UINT64_C(1) << ((status - 100) % 64);
    }
    return set;
}

/* Any value that the key may have. */
static void random_value(const struct key *key, union value *value)
{
    static const char *const texts[] = {"X-One", "X-Two, X-Three", "/a/path"};
    const char *text = texts[key->kind == KIND_NAMES ? up_to(1) : 0];
    struct rate_list rates = random_rates();
    struct status_set statuses = random_statuses(key != &policy_keys[POLICY_KEY_retry_status]);
    int64_t duration = (int64_t)(up_to(3650 * 86400) << up_to(10));
    uint64_t number = up_to(UINT64_C(1) << up_to(60)),
             segment_size = (UINT64_C(256) << 10) + up_to(UINT64_C(1) << up_to(29));
    uint32_t part = 1 + (uint32_t)up_to(PPM_ONE - 2), count = 1 + (uint32_t)up_to(999999999);
    uint32_t errors = (uint32_t)up_to(31);
    static const uint32_t modes[] = {0600, 0660, 0666};
    uint32_t permissions = modes[up_to(2)];
    bool flag = up_to(1);
    unsigned choice = 0;

    while (key->choices != NULL && key->choices[choice + 1] != NULL && up_to(2) > 0)
        choice++;
    if (key == &curtsy_keys[CURTSY_KEY_segment_size])
        number = segment_size;
    const void *const sources[] = {
        [KIND_DURATION] = &duration, [KIND_RATES] = &rates,
        [KIND_PERCENT] = &part,      [KIND_FACTOR] = &part,
        [KIND_COUNT] = &count,       [KIND_SIZE] = &number,
        [KIND_BOOL] = &flag,         [KIND_STATUSES] = &statuses,
        [KIND_ERRORS] = &errors,     [KIND_TEXT] = &text,
        [KIND_NAME] = &text,         [KIND_NAMES] = &text,
        [KIND_CHOICE] = &choice,     [KIND_PERMISSIONS] = &permissions,
    };
    memset(value, 0, sizeof *value);
    const char *word = keys_special_word(key);
    if (word != NULL && up_to(9) == 0)
        assert_null(keys_parse_value(key, word, value));
    else
        memcpy(value, sources[key->kind], key->size);
}

static void what_is_printed_parses_to_the_same(void **state)
{
    char text[4096], again[4096];

    (void)state;
    for (size_t i = 0; i < all_keys_count; i++) {
        for (int round = 0; round < 2000; round++) {
            const struct key *key = all_keys[i];
            union value value, parsed;
            random_value(key, &value);
            memset(&parsed, 0, sizeof parsed);
            int length = keys_format_value(key, &value, text, sizeof text);
            assert_true(length > 0 && (size_t)length < sizeof text);
            const char *expected = keys_parse_value(key, text, &parsed);
            if (expected != NULL)
                fail_msg("%s = %s was refused: expected %s", key->name, text, expected);
            keys_format_value(key, &parsed, again, sizeof again);
            assert_string_equal(text, again);
            bool plain =
                key->kind != KIND_RATES && key->kind != KIND_TEXT && key->kind != KIND_NAME && key->kind != KIND_NAMES;
            if (plain)
                assert_memory_equal(&value, &parsed, key->size);
        }
    }
}

/* As snprintf does, also into too little room. */
static void printing_counts_what_does_not_fit(void **state)
{
    struct policy policy;
    char whole[256], part[256];

    (void)state;
    policy_defaults(&policy);
    for (size_t i = 0; i < POLICY_KEY_COUNT; i++) {
        const void *value = (const char *)&policy + policy_keys[i].offset;
        int length = keys_format_value(&policy_keys[i], value, whole, sizeof whole);
        for (size_t size = 1; size < (size_t)length + 2; size++) {
            memset(part, 'x', sizeof part);
            assert_int_equal(keys_format_value(&policy_keys[i], value, part, size), length);
            assert_memory_equal(part, whole, size - 1 < (size_t)length ? size - 1 : (size_t)length);
            assert_int_equal(part[size - 1 < (size_t)length ? size - 1 : (size_t)length], 0);
            assert_int_equal(part[size], 'x');
        }
    }
}

/* ---- did you mean ---- */

static void misspelt_names_are_recognised(void **state)
{
    static const struct {
        enum key_group group;
        const char *name, *meant;
    } cases[] = {
        {KEY_GROUP_POLICY, "qouta", "quota"},
        {KEY_GROUP_POLICY, "Quota", "quota"},
        {KEY_GROUP_POLICY, "quotas", "quota"},
        {KEY_GROUP_POLICY, "max-wait", "max_wait"},
        {KEY_GROUP_POLICY, "maxattempts", "max_attempts"},
        {KEY_GROUP_POLICY, "retry_statuses", "retry_status"},
        {KEY_GROUP_POLICY, "base_dealy", "base_delay"},
        {KEY_GROUP_POLICY, "rat", "rate"},
        {KEY_GROUP_POLICY, "banana", NULL},
        {KEY_GROUP_POLICY, "", NULL},
        {KEY_GROUP_POLICY, "x", NULL},
        {KEY_GROUP_POLICY, "segment", NULL},
        {KEY_GROUP_POLICY, "a_name_that_is_longer_than_any_key_could_ever_be", NULL},
        {KEY_GROUP_CURTSY, "segmnt", "segment"},
        {KEY_GROUP_CURTSY, "logfile", "log_file"},
        {KEY_GROUP_MATCH, "host", "hosts"},
        {KEY_GROUP_MATCH, "mehtods", "methods"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *nearest = keys_nearest(cases[i].group, cases[i].name);
        if (cases[i].meant == NULL ? nearest != NULL : nearest == NULL || strcmp(nearest, cases[i].meant) != 0)
            fail_msg("\"%s\" was taken for %s", cases[i].name, nearest ? nearest : "nothing");
    }
}

/* ---- ratelimit.ini ---- */

static char *read_file(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    if (file == NULL)
        fail_msg("%s: run this from the top folder", path);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    return text;
}

static void fail_on_diagnostic(void *context, const struct diagnostic *diagnostic)
{
    (void)context;
    fail_msg("%s:%u: %s", diagnostic->file, diagnostic->line, diagnostic->message);
}

static const char examples_title[] = "# ---- Examples ----";

/* The default policy is one that changes nothing. */
static void the_default_policy_is_silent(void **state)
{
    const char *text = read_file("ratelimit.ini");
    struct config_builder *builder = config_builder_new(fail_on_diagnostic, NULL);

    (void)state;
    assert_true(config_builder_add(builder, "ratelimit.ini", text, strlen(text)));
    struct config *config = config_builder_finish(builder);
    assert_int_equal(config->section_count, 1);
    for (size_t i = 0; i < POLICY_KEY_COUNT; i++)
        assert_false(config->sections[0].set[i]);
    config_free(config);
}

/* What is said about a key above its line, as one line. */
struct comment {
    char text[1024];
};

static void comment_add(struct comment *comment, const char *line)
{
    size_t used = strlen(comment->text);
    snprintf(comment->text + used, sizeof comment->text - used, "%s%s", used > 0 ? " " : "", line);
}

static const struct key *check_default_line(enum key_group group, const char *line, const struct comment *comment)
{
    char name[64], value[256], help[1024];
    if (sscanf(line, "#%63[a-z_] = %255[^\n]", name, value) != 2)
        fail_msg("expected `#key = value`: %s", line);
    const struct key *key = keys_find(group, name);
    if (key == NULL)
        fail_msg("no such key in this section: %s", line);
    assert_string_equal(value, key->default_text);
    snprintf(help, sizeof help, "%s%s", key->help, key->in_force ? "" : ". Not in force yet.");
    assert_string_equal(comment->text, help);
    return key;
}

static void the_default_policy_names_every_key(void **state)
{
    char *rest = read_file("ratelimit.ini"), *line;
    enum key_group group = KEY_GROUP_MATCH;
    const struct key *seen[POLICY_KEY_COUNT + CURTSY_KEY_COUNT];
    size_t seen_count = 0;
    struct comment comment = {""};

    (void)state;
    while ((line = strsep(&rest, "\n")) != NULL && strcmp(line, examples_title) != 0) {
        if (line[0] == '[')
            group = strcmp(line, "[curtsy]") == 0 ? KEY_GROUP_CURTSY : KEY_GROUP_POLICY;
        if (strncmp(line, "# ", 2) == 0)
            comment_add(&comment, line + 2);
        if (line[0] == '#' && line[1] != ' ' && line[1] != '\0') {
            const struct key *key = check_default_line(group, line, &comment);
            for (size_t i = 0; i < seen_count; i++)
                assert_ptr_not_equal(key, seen[i]);
            seen[seen_count++] = key;
        }
        if (strncmp(line, "# ", 2) != 0)
            comment.text[0] = '\0';
    }
    assert_non_null(line);
    assert_int_equal(seen_count, POLICY_KEY_COUNT + CURTSY_KEY_COUNT);
}

/* The examples hold when their marks are taken away: no fault, no warning. */
static void the_examples_are_right(void **state)
{
    char *rest = strstr(read_file("ratelimit.ini"), examples_title), *line;
    struct config_builder *builder = config_builder_new(fail_on_diagnostic, NULL);
    char text[1 << 14] = "";

    (void)state;
    assert_non_null(rest);
    while ((line = strsep(&rest, "\n")) != NULL)
        if (line[0] == '#' && line[1] != ' ' && line[1] != '\0')
            strcat(strcat(text, line + 1), "\n");
    assert_true(config_builder_add(builder, "ratelimit.ini, examples", text, strlen(text)));
    struct config *config = config_builder_finish(builder);
    assert_true(config->section_count > 5);
    config_free(config);
}

static void the_examples_explain_the_matchers(void **state)
{
    char *rest = strstr(read_file("ratelimit.ini"), examples_title), *line;
    static char words[1 << 14];

    (void)state;
    words[0] = '\0';
    while ((line = strsep(&rest, "\n")) != NULL)
        if (strncmp(line, "#   ", 4) == 0)
            strcat(strcat(words, line + strspn(line, "# ")), " ");
    for (size_t i = 0; i < MATCH_KEY_COUNT; i++) {
        char wanted[512];
        snprintf(wanted, sizeof wanted, "%s: %s%s", match_keys[i].name, match_keys[i].help,
                 match_keys[i].in_force ? "" : ". Not in force yet.");
        assert_non_null(strstr(words, wanted));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_unique_and_short),
        cmocka_unit_test(every_field_is_its_keys_own),
        cmocka_unit_test(choices_have_their_words),
        cmocka_unit_test(defaults_are_what_the_table_says),
        cmocka_unit_test(values_are_read_and_printed),
        cmocka_unit_test(only_statuses_that_may_be_retried_are_taken),
        cmocka_unit_test(what_is_printed_parses_to_the_same),
        cmocka_unit_test(printing_counts_what_does_not_fit),
        cmocka_unit_test(misspelt_names_are_recognised),
        cmocka_unit_test(the_default_policy_is_silent),
        cmocka_unit_test(the_default_policy_names_every_key),
        cmocka_unit_test(the_examples_are_right),
        cmocka_unit_test(the_examples_explain_the_matchers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
