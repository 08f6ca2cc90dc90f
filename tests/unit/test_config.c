/* SPDX-License-Identifier: MIT */
/*
 * Config: INI texts in, sections and diagnostics out.  Each case is a text and what is said about
 * it, line by line; what became of the values is asked for afterwards.
 */
#include "core/config.h"

#include "core/config_reader.h"
#include "core/section_name.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- saying what was said ---- */

/* "FILE:LINE: severity: message\n" for each diagnostic. */
struct transcript {
    char text[16384];
    unsigned count;
};

static void record(void *context, const struct diagnostic *diagnostic)
{
    struct transcript *transcript = context;
    size_t used = strlen(transcript->text);
    transcript->count++;
    snprintf(transcript->text + used, sizeof transcript->text - used, "%s:%u: %s: %s\n", diagnostic->file,
             diagnostic->line, diagnostic->severity == SEVERITY_WARNING ? "warning" : "error", diagnostic->message);
}

static struct transcript said;

/* What the layers, named a, b, c ..., come to. */
static struct config *build_layers(const char *const layers[], size_t count)
{
    memset(&said, 0, sizeof said);
    struct config_builder *builder = config_builder_new(record, &said);
    for (size_t i = 0; i < count; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        assert_true(config_builder_add(builder, name, layers[i], strlen(layers[i])));
    }
    struct config *config = config_builder_finish(builder);
    assert_non_null(config);
    return config;
}

static struct config *build(const char *text)
{
    return build_layers(&text, 1);
}

/* The same without a complaint. */
static struct config *build_silently(const char *text)
{
    struct config *config = build(text);
    assert_string_equal(said.text, "");
    return config;
}

static const struct section *find_section(const struct config *config, const char *name)
{
    for (unsigned i = 0; i < config->section_count; i++)
        if (strcmp(config->sections[i].name, name) == 0)
            return &config->sections[i];
    fail_msg("no section [%s]", name);
    return NULL;
}

/* "VALUE (FILE:LINE)", or "unset". */
static const char *value_of(const struct config *config, const char *section_name, const char *key_name)
{
    static char text[16384];
    const struct section *section = find_section(config, section_name);
    const struct key *key = keys_find(KEY_GROUP_POLICY, key_name);
    size_t index = (size_t)(key - policy_keys);
    if (!section->set[index])
        return "unset";
    int length = keys_format_value(key, (const char *)&section->values + key->offset, text, sizeof text);
    snprintf(text + length, sizeof text - (size_t)length, " (%s:%u)", section->origins[index].file,
             section->origins[index].line);
    return text;
}

static const char *setting_of(const struct config *config, const char *key_name)
{
    static char text[1024];
    const struct key *key = keys_find(KEY_GROUP_CURTSY, key_name);
    const struct origin *origin = &config->settings_origins[key - curtsy_keys];
    int length = keys_format_value(key, (const char *)&config->settings + key->offset, text, sizeof text);
    snprintf(text + length, sizeof text - (size_t)length, " (%s:%u)", origin->file ? origin->file : "built-in",
             origin->line);
    return text;
}

/* "host:port host:port ..." */
static const char *patterns_of(const struct config *config, const char *section_name)
{
    static char text[4096];
    const struct section *section = find_section(config, section_name);
    text[0] = '\0';
    for (unsigned i = 0; i < section->pattern_count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s:%u", used > 0 ? " " : "", section->patterns[i].host,
                 section->patterns[i].port);
    }
    return text;
}

/* ---- the syntax ---- */

static void an_empty_config_has_a_default_section(void **state)
{
    struct config *config = build_layers(NULL, 0);

    (void)state;
    assert_string_equal(said.text, "");
    assert_int_equal(config->section_count, 1);
    assert_string_equal(config->sections[0].name, "default");
    assert_null(config->sections[0].origin.file);
    assert_int_equal(config->sections[0].pattern_count, 0);
    assert_string_equal(setting_of(config, "log"), "warn (built-in:0)");
    config_free(config);
    config_free(NULL);
}

static void values_keep_their_lines(void **state)
{
    struct config *config = build("# a comment\n"
                                  "; another\n"
                                  "[default]\n"
                                  "max_wait = 10s ; and one behind a value\n"
                                  "\ttotal_budget=20s\n"
                                  "\n"
                                  "   base_delay   =   1s   \n"
                                  "      # an indented one, quota = 7/s\n"
                                  "  [api.example.com]\t ; behind a header\n"
                                  "    quota : 5/h\n"
                                  "    headroom = 10%;no comment without a blank\n"
                                  "[curtsy]\n"
                                  "log=debug");
    (void)state;
    assert_string_equal(
        said.text,
        "a:11: error: headroom = 10%;no comment without a blank: expected a percentage from 0% to below 100%\n");
    assert_string_equal(value_of(config, "default", "max_wait"), "10s (a:4)");
    assert_string_equal(value_of(config, "default", "total_budget"), "20s (a:5)");
    assert_string_equal(value_of(config, "default", "base_delay"), "1s (a:7)");
    assert_string_equal(value_of(config, "default", "quota"), "unset");
    assert_string_equal(value_of(config, "api.example.com", "quota"), "5/h (a:10)");
    assert_string_equal(value_of(config, "api.example.com", "headroom"), "unset");
    assert_string_equal(setting_of(config, "log"), "debug (a:13)");
    assert_int_equal(find_section(config, "default")->origin.line, 3);
    assert_int_equal(find_section(config, "api.example.com")->origin.line, 9);
    config_free(config);
}

static void other_editors_texts_are_read(void **state)
{
    static const char *const texts[] = {
        "[default]\nmax_wait = 7s\n",
        "[default]\nmax_wait = 7s",
        "[default]\r\nmax_wait = 7s\r\n",
        "[default]\r\nmax_wait = 7s ; x\r",
        "\xef\xbb\xbf[default]\r\nmax_wait = 7s\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct config *config = build_silently(texts[i]);
        assert_string_equal(value_of(config, "default", "max_wait"), "7s (a:2)");
        config_free(config);
    }
    config_free(build_silently("\xef\xbb\xbf"));
    config_free(build_silently("\n\n\r\n \t \n"));
    config_free(build("\xff\xfe[\0d\0"));
    assert_string_equal(said.text, "a:1: error: found UTF-16: expected text in UTF-8\n");
}

static void an_entry_may_stand_behind_its_header(void **state)
{
    struct config *config = build("[default] max_wait=7s\n[api.example.com]quota = 5/h ; x\nburst = 3\n[b.example] x\n"
                                  "[default] max_delay=7s\n");

    (void)state;
    assert_string_equal(said.text,
                        "a:4: error: found a line without =: expected `key = value`, `[section]` or a comment\n");
    assert_string_equal(value_of(config, "default", "max_delay"), "7s (a:5)");
    assert_string_equal(value_of(config, "default", "max_wait"), "7s (a:1)");
    assert_string_equal(value_of(config, "api.example.com", "quota"), "5/h (a:2)");
    assert_string_equal(value_of(config, "api.example.com", "burst"), "3 (a:3)");
    config_free(config);
}

/* What is said about one text; NULL: nothing. */
struct syntax_case {
    const char *text, *said;
};

static void check_said(const struct syntax_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        config_free(build(cases[i].text));
        const char *wanted = cases[i].said != NULL ? cases[i].said : "";
        if (strcmp(said.text, wanted) != 0)
            fail_msg("of\n%s\nwas said\n%sand not\n%s", cases[i].text, said.text, wanted);
    }
}
#define CHECK_SAID(cases) check_said(cases, sizeof cases / sizeof cases[0])

static void faults_of_syntax_are_named_with_their_line(void **state)
{
    static const struct syntax_case cases[] = {
        {"[default]\nnonsense\nmax_wait = 1s\nmore nonsense\n",
         "a:2: error: found a line without =: expected `key = value`, `[section]` or a comment\n"
         "a:4: error: found a line without =: expected `key = value`, `[section]` or a comment\n"},
        {"[default]\nmax_wait ; = 1s\n",
         "a:2: error: found a line without =: expected `key = value`, `[section]` or a comment\n"},
        {"[default]\nmax_wait # = 1s\n",
         "a:2: error: found a line without =: expected `key = value`, `[section]` or a comment\n"},
        {"[default]\n = 1s\n", "a:2: error: found no key before the =: expected `key = value`\n"},
        {"[default]\nmax_wait =\n",
         "a:2: error: max_wait has no value: expected a duration with its unit, such as 90s or 250ms, or auto\n"},
        {"[default]\nmax_wait = ; 1s\n",
         "a:2: error: max_wait has no value: expected a duration with its unit, such as 90s or 250ms, or auto\n"},
        {"[default\nmax_wait = 1s\nqouta = x\n[curtsy]\nlog = warn\n",
         "a:1: error: found [ without ]: expected a section such as [api.example.com]\n"},
        {"[]\n", "a:1: error: found a section without a name: expected one such as [default] or [api.example.com]\n"},
        {"[ \t ]\nquota = 5/h",
         "a:1: error: found a section without a name: expected one such as [default] or [api.example.com]\n"},
        {"[a.example \"x]\n", "a:1: error: found a label without its second quote: expected one as in "
                              "[api.example.com \"writes\"]\n"},
        {"[::1]:8443]\nquota = 5/h\n",
         "a:1: error: found an IPv6 address without brackets of its own: expected [[::1]:8443]\n"},
        {"[a.example] [b.example]\nquota = x\n", "a:1: error: found two sections on one line: expected the second on a "
                                                 "line of its own (or its host in `hosts`)\n"},
        {"\n\nquota = 5/h\nlog = warn\nnonsense = 1\n",
         "a:3: error: \"quota\" stands before any section: expected below [default], or below a host such as "
         "[api.example.com]\n"
         "a:4: error: \"log\" stands before any section: expected below [curtsy]\n"
         "a:5: error: \"nonsense\" stands before any section: expected below [default], or below a host such as "
         "[api.example.com]\n"},
        {"[default]\nmax_wait = 1\x02s\n", "a:2: error: found a control character (0x02): expected text\n"},
        {"[default]\n# a \x02 in a comment\n", NULL},
        {"[a\x7f"
         "b]\nquota = x\n",
         "a:1: error: found a control character (0x7f): expected text\n"},
        {"[default]\nmax_wait = 1s\rburst = 3\n", "a:2: error: found a control character (0x0d): expected text\n"},
    };
    (void)state;
    CHECK_SAID(cases);
}

static void a_nul_byte_is_a_fault_of_its_line_only(void **state)
{
    static const char text[] = "[default]\nmax_wait = 1\0s\nburst = 3\n\0\n";
    struct config_builder *builder = config_builder_new(record, &said);

    (void)state;
    memset(&said, 0, sizeof said);
    assert_true(config_builder_add(builder, "a", text, sizeof text - 1));
    struct config *config = config_builder_finish(builder);
    assert_string_equal(said.text, "a:2: error: found a NUL byte: expected text\n"
                                   "a:4: error: found a NUL byte: expected text\n");
    assert_string_equal(value_of(config, "default", "max_wait"), "unset");
    assert_string_equal(value_of(config, "default", "burst"), "3 (a:3)");
    config_free(config);
}

/* ---- no limit of inih's is felt ---- */

static const char *repeated(char *buffer, char c, size_t count)
{
    memset(buffer, c, count);
    buffer[count] = '\0';
    return buffer;
}

static void names_that_are_too_long_are_faults(void **state)
{
    char name[2048], text[4096];

    (void)state;
    snprintf(text, sizeof text, "[default]\n%s = 1\n", repeated(name, 'k', 49));
    config_free(build(text));
    assert_non_null(strstr(said.text, "unknown key"));
    static const size_t lengths[] = {50, 60, 150, 180, 190, 195, 196, 197, 198, 199, 200, 201, 250, 1000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        snprintf(text, sizeof text, "[default]\n%s = 1\nburst = 3\n", repeated(name, 'k', lengths[i]));
        struct config *config = build(text);
        assert_string_equal(said.text,
                            "a:2: error: found a key of more than 49 characters: expected one such as quota\n");
        assert_string_equal(value_of(config, "default", "burst"), "3 (a:3)");
        config_free(config);
    }
    snprintf(text, sizeof text, "[%s]\nburst = x\n", repeated(name, 'h', CONFIG_SECTION_LENGTH_MAX + 1));
    config_free(build(text));
    assert_string_equal(
        said.text,
        "a:1: error: found a section's name of more than 1000 characters: expected a host such as [api.example.com]\n");
}

/* A host of 253 characters, a path of 511 and a label of 63 are kept to the last character. */
static void long_section_names_are_whole(void **state)
{
    char name[CONFIG_SECTION_LENGTH_MAX + 1], host[254], label[64], path[512], text[2048];

    (void)state;
    repeated(host, 'h', 253);
    host[63] = host[127] = host[191] = '.';
    repeated(path, 'p', 511);
    path[0] = '/';
    repeated(label, 'l', 63);
    snprintf(name, sizeof name, "%s:65535%s \"%s\"", host, path, label);
    snprintf(text, sizeof text, "[%s]\nburst = 3\n", name);
    struct config *config = build_silently(text);
    const struct section *section = find_section(config, name);
    assert_string_equal(section->patterns[0].host, host);
    assert_int_equal(section->patterns[0].port, 65535);
    assert_string_equal(section->path, path);
    assert_string_equal(section->label, label);
    config_free(config);

    snprintf(text, sizeof text, "[%sx]\n", host);
    config_free(build(text));
    assert_non_null(strstr(said.text, "expected a host of at most 253 characters"));
    snprintf(text, sizeof text, "[a.example%sx]\n", path);
    config_free(build(text));
    assert_non_null(strstr(said.text, "expected a path of at most 511 characters"));
    snprintf(text, sizeof text, "[a.example \"%sx\"]\n", label);
    config_free(build(text));
    assert_non_null(strstr(said.text, "expected a label of at most 63 characters"));
}

/* Collects the only entry of a text. */
static bool keep_value(void *context, const struct config_line *line)
{
    if (line->kind == CONFIG_LINE_ENTRY)
        snprintf(context, 8192, "%s|%s|%u", line->key, line->text, line->number);
    return true;
}

static void assert_entry(const char *text, const char *wanted)
{
    char found[8192] = "";
    assert_true(config_reader_run(text, strlen(text), keep_value, found));
    if (strcmp(found, wanted) != 0)
        fail_msg("of\n%s\ncame\n%s\nand not\n%s", text, found, wanted);
}

/* Wherever a seam falls, a long line is read as a short one is: each shape at every length around the
 * places where inih's buffer ends. */
static void long_lines_have_no_seams(void **state)
{
    static const struct {
        const char *before, *after, *value_end;
    } shapes[] = {
        {"", "", ""},
        {"a ", " b", " b"},
        {"", " ; comment = x", ""},
        {"", "\t;", ""},
        {"", ";no comment", ";no comment"},
        {"", " # comment = x ; y", ""},
        {"", "\t#", ""},
        {"", "#no comment", "#no comment"},
        {"", " ;; ; ;", ""},
        {"", "   b  ", "   b"},
        {"", "=b", "=b"},
        {"", " [x]", " [x]"},
        {"\"", "\"", "\""},
    };
    char filler[1024], text[8192], wanted[8192];

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (size_t length = 150; length < 620; length++) {
            repeated(filler, 'v', length);
            snprintf(text, sizeof text, "\n  key = %s%s%s", shapes[i].before, filler, shapes[i].after);
            snprintf(wanted, sizeof wanted, "key|%s%s%s|2", shapes[i].before, filler, shapes[i].value_end);
            assert_entry(text, wanted);
        }
    }
    for (size_t length = 1; length < 620; length++) {
        repeated(filler, ' ', length);
        snprintf(text, sizeof text, "key%s=%sa%sb%s; comment", length < 180 ? filler : "", filler, filler, filler);
        snprintf(wanted, sizeof wanted, "key|a%sb|1", filler);
        assert_entry(text, wanted);
        repeated(filler, ';', length);
        snprintf(text, sizeof text, "key = a%s", filler);
        snprintf(wanted, sizeof wanted, "key|a%s|1", filler);
        assert_entry(text, wanted);
        snprintf(text, sizeof text, "key = a %s", filler);
        assert_entry(text, "key|a|1");
        repeated(filler, '#', length);
        snprintf(text, sizeof text, "key = a\n#%s\n", filler);
        assert_entry(text, "key|a|1");
    }
}

static void a_long_list_of_hosts_is_whole(void **state)
{
    static char text[1 << 16];
    size_t used = (size_t)sprintf(text, "[api.example.com]\nhosts = h0.example.com");

    (void)state;
    for (int i = 1; i < 1000; i++)
        used += (size_t)sprintf(text + used, ", h%d.example.com:%d", i, i);
    strcpy(text + used, "\nquota = 5/h\n");
    struct config *config = build_silently(text);
    const struct section *section = find_section(config, "api.example.com");
    assert_int_equal(section->pattern_count, 1001);
    assert_string_equal(section->patterns[1000].host, "h999.example.com");
    assert_int_equal(section->patterns[1000].port, 999);
    assert_string_equal(value_of(config, "api.example.com", "quota"), "5/h (a:3)");
    config_free(config);
}

/* inih would take the second line for more of the first one's value. */
static void indented_keys_are_keys(void **state)
{
    struct config *config = build_silently("[default]\n\n  max_wait = 1s\n\t base_delay = 2s\n  burst = 3\n");

    (void)state;
    assert_string_equal(value_of(config, "default", "max_wait"), "1s (a:3)");
    assert_string_equal(value_of(config, "default", "base_delay"), "2s (a:4)");
    assert_string_equal(value_of(config, "default", "burst"), "3 (a:5)");
    config_free(config);
}

/* ---- names of sections ---- */

static void section_names_are_taken_apart(void **state)
{
    static const struct {
        const char *text, *canonical, *host;
        unsigned port;
        const char *path, *label;
    } cases[] = {
        {"api.github.com", "api.github.com", "api.github.com", 0, "", ""},
        {"API.GitHub.com.", "api.github.com", "api.github.com", 0, "", ""},
        {" api.github.com ", "api.github.com", "api.github.com", 0, "", ""},
        {"*.Example.COM", "*.example.com", "*.example.com", 0, "", ""},
        {"*", "*", "*", 0, "", ""},
        {"*:8443", "*:8443", "*", 8443, "", ""},
        {"host:8443", "host:8443", "host", 8443, "", ""},
        {"host.:8443", "host:8443", "host", 8443, "", ""},
        {"127.0.0.1:80", "127.0.0.1:80", "127.0.0.1", 80, "", ""},
        {"[::1]:8443", "[::1]:8443", "::1", 8443, "", ""},
        {"[::1]", "[::1]", "::1", 0, "", ""},
        {"::1", "[::1]", "::1", 0, "", ""},
        {"[2001:DB8:0:0::1]/v1", "[2001:db8::1]/v1", "2001:db8::1", 0, "/v1", ""},
        {"api.example.com/v1/search", "api.example.com/v1/search", "api.example.com", 0, "/v1/search", ""},
        {"api.example.com:443/V1/*/x*", "api.example.com:443/V1/*/x*", "api.example.com", 443, "/V1/*/x*", ""},
        {"api.example.com/v1/", "api.example.com/v1", "api.example.com", 0, "/v1", ""},
        {"api.example.com/", "api.example.com", "api.example.com", 0, "", ""},
        {"discord.example/users/@me", "discord.example/users/@me", "discord.example", 0, "/users/@me", ""},
        {"api.github.com \"writes\"", "api.github.com \"writes\"", "api.github.com", 0, "", "writes"},
        {"a.example/p  \t \"a ] b; c\"", "a.example/p \"a ] b; c\"", "a.example", 0, "/p", "a ] b; c"},
        {"xn--mller-kva.example", "xn--mller-kva.example", "xn--mller-kva.example", 0, "", ""},
        {"my_service", "my_service", "my_service", 0, "", ""},
    };
    struct section_name name;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *expected = section_name_parse(cases[i].text, &name);
        if (expected != NULL)
            fail_msg("[%s]: expected %s", cases[i].text, expected);
        assert_int_equal(name.kind, SECTION_HOST);
        assert_string_equal(name.canonical, cases[i].canonical);
        assert_string_equal(name.host, cases[i].host);
        assert_int_equal(name.port, cases[i].port);
        assert_string_equal(name.path, cases[i].path);
        assert_string_equal(name.label, cases[i].label);
        struct section_name again;
        assert_null(section_name_parse(name.canonical, &again));
        assert_string_equal(again.canonical, name.canonical);
    }
    assert_null(section_name_parse("Default", &name));
    assert_int_equal(name.kind, SECTION_DEFAULT);
    assert_null(section_name_parse("CURTSY", &name));
    assert_int_equal(name.kind, SECTION_CURTSY);
}

static void bad_section_names_are_refused(void **state)
{
    static const struct {
        const char *text, *expected; /* a part of what was expected */
    } cases[] = {
        {"https://api.example.com", "without scheme"},
        {"user:secret@api.example.com", "without user"},
        {"https://user:secret@api.example.com/", "without"},
        {"api.example.com/v1?x=1", "without blank, query"},
        {"api.example.com/v1#x", "without blank, query"},
        {"api.example.com/v1 search", "a label in double quotes"},
        {"api.example.com/m\xc3\xbcll", "a path"},
        {"m\xc3\xbcller.example", "as it travels (xn--...)"},
        {"api.*.com", "whole labels at the beginning"},
        {"api*.example.com", "whole labels at the beginning"},
        {"*example.com", "whole labels at the beginning"},
        {"*.*.com", "whole labels at the beginning"},
        {"*.", "a host such as"},
        {"api..example.com", "a host such as"},
        {".example.com", "a host such as"},
        {"example.com..", "a host such as"},
        {".", "a host such as"},
        {"api_example,com", "a host such as"},
        {"api.example.com, b.example.com", "a host such as"},
        {"host:", "a port from 1 to 65535"},
        {"host:0", "a port from 1 to 65535"},
        {"host:65536", "a port from 1 to 65535"},
        {"host:99999999999999999999", "a port from 1 to 65535"},
        {"host:443x", "a port from 1 to 65535"},
        {"host:*", "a port from 1 to 65535"},
        {"host:-1", "a port from 1 to 65535"},
        {":443", "a host such as"},
        {"/v1", "a host such as"},
        {"[::1", "an IPv6 address"},
        {"[]", "a host such as"},
        {"[1.2.3.4]", "an IPv6 address"},
        {"[::g]", "an IPv6 address"},
        {"[fe80::1%eth0]", "an IPv6 address"},
        {"host writes", "a label in double quotes"},
        {"host \"\"", "a label in double quotes"},
        {"host \"a\" b", "a label in double quotes"},
        {"host\"a\"", "a label in double quotes"},
        {"\"a\"", "a host such as"},
        {"", "a host such as"},
    };
    struct section_name name;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *expected = section_name_parse(cases[i].text, &name);
        if (expected == NULL || strstr(expected, cases[i].expected) == NULL)
            fail_msg("[%s]: %s", cases[i].text, expected != NULL ? expected : "taken");
    }
}

/* Neither in the section above, nor one message each. */
static void keys_below_a_bad_header_go_nowhere(void **state)
{
    static const char text[] =
        "[a.example]\nquota = 5/h\n[b..example]\nquota = 6/h\nqouta = x\n[c.example]\nburst = 3\n";
    struct config *config = build(text);

    (void)state;
    assert_string_equal(said.text, "a:3: error: [b..example]: expected a host such as api.example.com, "
                                   "*.example.com or *\n");
    assert_int_equal(config->section_count, 3);
    assert_string_equal(value_of(config, "a.example", "quota"), "5/h (a:2)");
    assert_string_equal(value_of(config, "c.example", "burst"), "3 (a:7)");
    config_free(config);
}

/* ---- values ---- */

static void a_fault_leaves_the_rest_alone(void **state)
{
    struct config *config = build("[x.example]\n"
                                  "quota = banana\n"
                                  "qouta = 5/h\n"
                                  "max_wait = 30\n"
                                  "base_delay = -1s\n"
                                  "max_delay = 99999999999d\n"
                                  "retry_status = 429, 404\n"
                                  "mode = loud\n"
                                  "frobnicate = 1\n"
                                  "Quota = 5/h\n"
                                  "burst = 3\n");
    (void)state;
    assert_string_equal(said.text,
                        "a:2: error: quota = banana: expected a rate such as 5000/h, or none\n"
                        "a:3: error: unknown key \"qouta\" in [x.example]; did you mean \"quota\"?\n"
                        "a:4: error: max_wait = 30: expected a duration with its unit, such as 90s or 250ms, or auto\n"
                        "a:5: error: base_delay = -1s: expected a duration with its unit, such as 90s or 250ms\n"
                        "a:6: error: max_delay = 99999999999d: expected a duration of at most 3650d\n"
                        "a:7: error: retry_status = 429, 404: expected some of 429, 500, 502, 503, 504, 520-524, 529 "
                        "(no other status is ever tried again), or none\n"
                        "a:8: error: mode = loud: expected off, observe or enforce\n"
                        "a:9: error: unknown key \"frobnicate\" in [x.example]; see ratelimit.ini(5) for the keys\n"
                        "a:10: error: unknown key \"Quota\" in [x.example]; did you mean \"quota\"?\n");
    for (unsigned i = 0; i < POLICY_KEY_COUNT; i++)
        assert_int_equal(find_section(config, "x.example")->set[i], i == POLICY_KEY_burst);
    config_free(config);
}

static void a_bad_value_keeps_the_one_before(void **state)
{
    struct config *config = build("[default]\nmax_wait = 5s\nmax_wait = five\n[curtsy]\nlog = debug\nlog = loud\n");

    (void)state;
    assert_int_equal(said.count, 2);
    assert_string_equal(value_of(config, "default", "max_wait"), "5s (a:2)");
    assert_string_equal(setting_of(config, "log"), "debug (a:5)");
    config_free(config);
}

static void keys_in_the_wrong_place_are_told_where_they_belong(void **state)
{
    static const struct syntax_case cases[] = {
        {"[curtsy]\nquota = 5/h\n", "a:2: error: \"quota\" does not belong in [curtsy]: expected in [default], or "
                                    "below a host such as [api.example.com]\n"},
        {"[curtsy]\nhosts = a.example\n", "a:2: error: \"hosts\" does not belong in [curtsy]: expected in [default], "
                                          "or below a host such as [api.example.com]\n"},
        {"[default]\nlog = warn\n", "a:2: error: \"log\" is a setting of Curtsy itself: expected in [curtsy]\n"},
        {"[a.example]\nsegment = /x\n",
         "a:2: error: \"segment\" is a setting of Curtsy itself: expected in [curtsy]\n"},
        {"[default]\nhosts = a.example\n",
         "a:2: error: \"hosts\" does not belong in [default]: expected below a host such as [api.example.com], or "
         "below [*] for every host\n"},
        {"[default]\nprograms = git\n",
         "a:2: error: \"programs\" does not belong in [default]: expected below a host such as [api.example.com], or "
         "below [*] for every host\n"},
        {"[curtsy]\nlogg = warn\n", "a:2: error: unknown key \"logg\" in [curtsy]; did you mean \"log\"?\n"},
        {"[a.example]\nhost = b.example\n",
         "a:2: error: unknown key \"host\" in [a.example]; did you mean \"hosts\"?\n"},
    };
    (void)state;
    CHECK_SAID(cases);
}

static void keys_that_are_not_in_force_are_warned_of(void **state)
{
    (void)state;
    for (size_t i = 0; i < all_keys_count; i++) {
        const struct key *key = all_keys[i];
        char text[512], wanted[128] = "";
        const char *section = key->group == KEY_GROUP_CURTSY ? "curtsy" : "a.example";
        const char *value = key->default_text != NULL  ? key->default_text
                            : key->kind == KIND_CHOICE ? key->choices[0]
                                                       : "x";
        snprintf(text, sizeof text, "[%s]\n%s = %s\n", section, key->name, value);
        if (!key->in_force)
            snprintf(wanted, sizeof wanted, "a:2: warning: \"%s\" is accepted, but not in force yet\n", key->name);
        config_free(build(text));
        assert_string_equal(said.text, wanted);
    }
}

static void a_key_given_twice_is_warned_of(void **state)
{
    struct config *config = build("[a.example]\nburst = 3\n[default]\nburst = 9\n[A.example.]\nburst = 4\n"
                                  "methods = GET\nmethods = POST\n[curtsy]\nlog = warn\nlog = info\n");
    (void)state;
    assert_string_equal(said.text, "a:5: warning: [a.example] is given again: this goes on with line 1\n"
                                   "a:6: warning: \"burst\" is given again: this replaces line 2\n"
                                   "a:8: warning: \"methods\" is given again: this replaces line 7\n"
                                   "a:11: warning: \"log\" is given again: this replaces line 10\n");
    assert_string_equal(value_of(config, "a.example", "burst"), "4 (a:6)");
    assert_string_equal(find_section(config, "a.example")->methods[0], "POST");
    assert_string_equal(setting_of(config, "log"), "info (a:11)");
    config_free(config);
}

/* A new layer may take up any section; one in the same file is likely to have been forgotten, unless it is
 * a setting on one line. */
static void a_section_given_twice_is_warned_of(void **state)
{
    static const char *const layers[] = {
        "[a.example]\nburst = 3\n[curtsy]\n[default]\n[a.example] burst = 4\n[curtsy] log = info\n",
        "[a.example]\nburst = 5\n[a.example \"x\"]\n[default]\n[CURTSY]\n[Default]\n[curtsy]\n",
    };
    struct config *config = build_layers(layers, 2);

    (void)state;
    assert_string_equal(said.text, "a:5: warning: \"burst\" is given again: this replaces line 2\n"
                                   "b:6: warning: [default] is given again: this goes on with line 4\n"
                                   "b:7: warning: [curtsy] is given again: this goes on with line 5\n");
    assert_string_equal(value_of(config, "a.example", "burst"), "5 (b:2)");
    assert_string_equal(setting_of(config, "log"), "info (a:6)");
    config_free(config);
}

static void misspelt_sections_are_hosts_with_a_warning(void **state)
{
    static const struct syntax_case cases[] = {
        {"[defaults]\n", "a:1: warning: [defaults] speaks for a host of that name; did you mean [default]?\n"},
        {"[courage]\n[curtsey]\n", "a:2: warning: [curtsey] speaks for a host of that name; did you mean [curtsy]?\n"},
        {"[default \"x\"]\n",
         "a:1: warning: [default \"x\"] speaks for a host of that name; did you mean [default]?\n"},
        {"[fault]\n[derby]\n[default.example]\n[redis]\n[localhost]\n", NULL},
    };
    (void)state;
    CHECK_SAID(cases);
}

/* The quotes would be part of a name that nothing has. */
static void quotes_are_not_taken_for_a_part_of_the_value(void **state)
{
    static const struct syntax_case cases[] = {
        {"[curtsy]\nlog_file = \"/var/log/curtsy\"\n",
         "a:2: error: log_file: expected a text, or none, without quotes around it\n"},
        {"[curtsy]\nsegment = '/curtsy'\n",
         "a:2: error: segment: expected a text, or auto, without quotes around it\n"},
        {"[default]\nmode = \"off\"\n",
         "a:2: error: mode = \"off\": expected off, observe or enforce, without quotes around it\n"},
        {"[curtsy]\nlog_file = /tmp/\"a\"\n", NULL},
    };
    (void)state;
    CHECK_SAID(cases);
}

static void what_stands_before_a_section_may_be_for_default(void **state)
{
    struct config_builder *builder = config_builder_new(record, &said);
    static const char text[] = "burst = 3\n[a.example] burst = 4\n[default] max_wait = 7s\n[default] max_delay = 8s";

    (void)state;
    memset(&said, 0, sizeof said);
    assert_true(config_builder_add_layer(builder, LAYER_SET, "a", text, strlen(text)));
    struct config *config = config_builder_finish(builder);
    assert_string_equal(said.text, "");
    assert_string_equal(value_of(config, "default", "burst"), "3 (a:1)");
    assert_string_equal(value_of(config, "a.example", "burst"), "4 (a:2)");
    assert_string_equal(value_of(config, "default", "max_wait"), "7s (a:3)");
    assert_string_equal(value_of(config, "default", "max_delay"), "8s (a:4)");
    config_free(config);
}

static void a_preset_names_no_others(void **state)
{
    struct config_builder *builder = config_builder_new(record, &said);
    static const char preset[] = "[curtsy]\npresets = b\nlog = info\n";
    static const char file[] = "[curtsy]\npresets = a\n";

    (void)state;
    memset(&said, 0, sizeof said);
    assert_true(config_builder_add_layer(builder, LAYER_FILE, "a", file, strlen(file)));
    assert_true(config_builder_add_layer(builder, LAYER_PRESET, "p", preset, strlen(preset)));
    struct config *config = config_builder_finish(builder);
    assert_string_equal(said.text, "p:2: warning: \"presets\" is ignored here: a preset names no others\n");
    assert_string_equal(setting_of(config, "presets"), "a (a:2)");
    assert_string_equal(setting_of(config, "log"), "info (p:3)");
    config_free(config);
}

static void quota_and_rate_exclude_each_other(void **state)
{
    struct config *config = build("[a.example]\nquota = 5/h\nrate = 1/s\n"
                                  "[b.example]\nrate = 1/s\nquota = 5/h\nquota = 6/h\n"
                                  "[c.example]\nquota = none\nrate = 1/s\n"
                                  "[d.example]\nrate = x\nquota = 5/h\n");
    (void)state;
    assert_string_equal(said.text,
                        "a:3: error: \"rate\" and \"quota\" exclude each other: expected one of them in [a.example]; "
                        "\"quota\" of line 2 holds\n"
                        "a:6: error: \"quota\" and \"rate\" exclude each other: expected one of them in [b.example]; "
                        "\"rate\" of line 5 holds\n"
                        "a:7: error: \"quota\" and \"rate\" exclude each other: expected one of them in [b.example]; "
                        "\"rate\" of line 5 holds\n"
                        "a:12: error: rate = x: expected a rate such as 5000/h, or none\n");
    assert_string_equal(value_of(config, "a.example", "quota"), "5/h (a:2)");
    assert_string_equal(value_of(config, "a.example", "rate"), "unset");
    assert_string_equal(value_of(config, "b.example", "rate"), "1/s (a:5)");
    assert_string_equal(value_of(config, "b.example", "quota"), "unset");
    assert_string_equal(value_of(config, "c.example", "quota"), "none (a:9)");
    assert_string_equal(value_of(config, "c.example", "rate"), "1/s (a:10)");
    assert_string_equal(value_of(config, "d.example", "quota"), "5/h (a:13)");
    config_free(config);
}

static void what_may_be_secret_is_not_repeated(void **state)
{
    static const char *const texts[] = {
        "[default]\ncredential_headers = Authorization: Bearer hunter2\n",
        "[default]\nidempotency_header = X hunter2\n",
        "[https://user:hunter2@a.example]\n",
        "[user:hunter2@a.example]\n",
        "[a.example]\nhosts = user:hunter2@b.example\n",
        "[a.example/v1?token=hunter2]\n",
        "[a.example]\nhosts = b.example/v1?token=hunter2\n",
        "[curtsy]\nlog_file = \"hunter2\"\n",
        "[default]\nhunter2\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        config_free(build(texts[i]));
        assert_int_equal(said.count, 1);
        assert_null(strstr(said.text, "hunter2"));
    }
}

static void long_values_are_shortened_in_messages(void **state)
{
    char value[2001], text[2100];

    (void)state;
    snprintf(text, sizeof text, "[default]\nmax_wait = %s\n", repeated(value, '9', 2000));
    config_free(build(text));
    assert_int_equal(said.count, 1);
    assert_true(strlen(said.text) < 200);
    assert_non_null(strstr(said.text, "999...: expected"));
    snprintf(text, sizeof text, "[a.example]\nhosts = %s!\n", repeated(value, '9', 1900));
    config_free(build(text));
    assert_int_equal(said.count, 1);
    assert_true(strlen(said.text) < 250);
    snprintf(text, sizeof text, "[a!%s]\n", repeated(value, '9', 900));
    config_free(build(text));
    assert_int_equal(said.count, 1);
    assert_true(strlen(said.text) < 400);
}

/* ---- matchers ---- */

static void matchers_are_read(void **state)
{
    struct config *config = build("[a.example:443/v1 \"x\"]\n"
                                  "hosts = B.example , *.c.example:80,[::1]:8443, d.example.\n"
                                  "methods = get, Post,PROPFIND\n"
                                  "programs = git, !git-lfs, ! my tool\n"
                                  "credential = none\n"
                                  "[b.example]\n");
    const struct section *section = find_section(config, "a.example:443/v1 \"x\"");

    (void)state;
    assert_string_equal(said.text, "a:5: warning: \"credential\" is accepted, but not in force yet\n");
    assert_string_equal(patterns_of(config, section->name), "a.example:443 b.example:0 *.c.example:80 ::1:8443 "
                                                            "d.example:0");
    assert_true(section->groups_hosts);
    assert_string_equal(section->methods[0], "GET");
    assert_string_equal(section->methods[1], "POST");
    assert_string_equal(section->methods[2], "PROPFIND");
    assert_null(section->methods[3]);
    assert_string_equal(section->programs[0], "git");
    assert_string_equal(section->programs[1], "!git-lfs");
    assert_string_equal(section->programs[2], "!my tool");
    assert_null(section->programs[3]);
    assert_int_equal(section->credential, CREDENTIAL_NONE);
    section = find_section(config, "b.example");
    assert_false(section->groups_hosts);
    assert_null(section->methods);
    assert_null(section->programs);
    assert_int_equal(section->credential, -1);
    config_free(config);
}

static void bad_matchers_are_refused(void **state)
{
    static const struct syntax_case cases[] = {
        {"[a.example]\nhosts = b.example, c_d!.example\n",
         "a:2: error: hosts: \"c_d!.example\": expected a host such as api.example.com, *.example.com or *\n"},
        {"[a.example]\nhosts = b.example/v1\n", "a:2: error: hosts: \"b.example/v1\": expected a host without path\n"},
        {"[a.example]\nhosts = b.example c.example\n",
         "a:2: error: hosts: \"b.example c.example\": expected a host such as api.example.com, *.example.com or *\n"},
        {"[a.example]\nhosts = b.example,\n", "a:2: error: hosts: found nothing beside a comma: expected a host such "
                                              "as api.example.com, *.example.com or *\n"},
        {"[a.example]\nmethods = GET POST\n", "a:2: error: methods: \"GET POST\": expected a method such as GET\n"},
        {"[a.example]\nmethods =\n", "a:2: error: methods: found nothing: expected a method such as GET\n"},
        {"[a.example]\nprograms = /usr/bin/git\n",
         "a:2: error: programs: \"/usr/bin/git\": expected the name of a program without its folder\n"},
        {"[a.example]\nprograms = \"git\"\n",
         "a:2: error: programs: \"\"git\"\": expected the name of a program without quotes\n"},
        {"[a.example]\nhosts = m\xc3\xbcller.example:80\n",
         "a:2: error: hosts: \"m\xc3\xbcller.example:80\": expected a host in ASCII, an internationalised name as it "
         "travels (xn--...), here xn--mller-kva.example:80\n"},
        {"[a.example]\nprograms = git, !\n", "a:2: error: programs: \"!\": expected the name of a program\n"},
        {"[a.example]\ncredential = some\n", "a:2: error: credential = some: expected any or none\n"},
    };
    (void)state;
    CHECK_SAID(cases);
    struct config *config = build("[a.example]\nhosts = b.example, c..d\nmethods = GET, 7\n");
    assert_string_equal(patterns_of(config, "a.example"), "a.example:0");
    assert_false(find_section(config, "a.example")->groups_hosts);
    assert_null(find_section(config, "a.example")->methods);
    config_free(config);
}

/* ---- layers ---- */

static void later_layers_win_key_by_key(void **state)
{
    static const char *const layers[] = {
        ("[default]\nmax_wait = 1s\nburst = 1\n[API.example.com.]\nquota = 5/h\nheadroom = 30%\nmethods = GET\n"
         "[curtsy]\nlog = info\nlog_format = json\n"),
        "[api.example.com]\nquota = 6/h\n\n[default]\nburst = 2\n[curtsy]\nlog = debug\n",
        "[api.example.com]\nheadroom = x\nhosts = b.example\nmethods = POST\n",
    };
    struct config *config = build_layers(layers, 3);

    (void)state;
    assert_string_equal(said.text, "c:2: error: headroom = x: expected a percentage from 0% to below 100%\n");
    assert_int_equal(config->section_count, 2);
    assert_string_equal(value_of(config, "default", "max_wait"), "1s (a:2)");
    assert_string_equal(value_of(config, "default", "burst"), "2 (b:5)");
    assert_string_equal(value_of(config, "api.example.com", "quota"), "6/h (b:2)");
    assert_string_equal(value_of(config, "api.example.com", "headroom"), "30% (a:6)");
    assert_string_equal(find_section(config, "api.example.com")->methods[0], "POST");
    assert_string_equal(patterns_of(config, "api.example.com"), "api.example.com:0 b.example:0");
    assert_string_equal(setting_of(config, "log"), "debug (b:7)");
    assert_string_equal(setting_of(config, "log_format"), "json (a:10)");
    config_free(config);
}

static void a_later_quota_replaces_an_earlier_rate(void **state)
{
    static const char *const layers[] = {
        "[a.example]\nrate = 5/s\n[b.example]\nquota = 5/h\n[c.example]\nquota = 5/h\n",
        "[a.example]\nquota = 9/h\n[b.example]\nrate = none\n[c.example]\nburst = 2\n",
    };
    struct config *config = build_layers(layers, 2);

    (void)state;
    assert_string_equal(said.text, "");
    assert_string_equal(value_of(config, "a.example", "quota"), "9/h (b:2)");
    assert_string_equal(value_of(config, "a.example", "rate"), "unset");
    assert_string_equal(value_of(config, "b.example", "quota"), "unset");
    assert_string_equal(value_of(config, "b.example", "rate"), "none (b:4)");
    assert_string_equal(value_of(config, "c.example", "quota"), "5/h (a:6)");
    config_free(config);
}

/* A section that a later layer takes up again comes later in the order, too. */
static void the_last_mention_gives_the_order(void **state)
{
    static const char *const layers[] = {"[a.example \"x\"]\n[a.example \"y\"]\n", "[a.example \"x\"]\n"};
    struct config *config = build_layers(layers, 2);
    const struct section *x = find_section(config, "a.example \"x\""), *y = find_section(config, "a.example \"y\"");

    (void)state;
    assert_true(x->order > y->order);
    assert_string_equal(x->origin.file, "a");
    assert_int_equal(x->origin.line, 1);
    config_free(config);
}

/* Texts are copies: nothing of what was given is needed any more. */
static void texts_outlive_what_they_came_from(void **state)
{
    char file[] = "somewhere", text[] = "[curtsy]\nlog_file = /var/log/curtsy\n[a.example \"x\"]\nprograms = git\n"
                                        "limit_header = X-Mine\n";
    struct config_builder *builder = config_builder_new(NULL, NULL);

    (void)state;
    assert_true(config_builder_add(builder, file, text, strlen(text)));
    memset(file, 'x', sizeof file - 1);
    memset(text, 'x', sizeof text - 1);
    struct config *config = config_builder_finish(builder);
    const struct section *section = find_section(config, "a.example \"x\"");
    assert_string_equal(config->settings.log_file, "/var/log/curtsy");
    assert_string_equal(config->settings_origins[CURTSY_KEY_log_file].file, "somewhere");
    assert_string_equal(section->programs[0], "git");
    assert_string_equal(section->values.limit_header, "X-Mine");
    assert_string_equal(section->origin.file, "somewhere");
    config_free(config);
}

static void ten_thousand_sections_are_found_again(void **state)
{
    static char text[2 << 20];
    size_t used = 0;
    const char *layers[2];

    (void)state;
    for (int i = 0; i < 10000; i++)
        used += (size_t)sprintf(text + used, "[host%d.example.com]\nquota = %d/h\n", i, i + 1);
    layers[0] = layers[1] = text;
    struct config *config = build_layers(layers, 2);
    assert_string_equal(said.text, "");
    assert_int_equal(config->section_count, 10001);
    for (int i = 0; i < 10000; i++) {
        char name[64];
        snprintf(name, sizeof name, "host%d.example.com", i);
        assert_string_equal(config->sections[i + 1].name, name);
        assert_int_equal(config->sections[i + 1].values.quota.item[0].count, i + 1);
        assert_int_equal(config->sections[i + 1].origins[POLICY_KEY_quota].line, 2 * i + 2);
        assert_string_equal(config->sections[i + 1].origins[POLICY_KEY_quota].file, "b");
    }
    config_free(config);
}

/* ---- the reader's sink ---- */

static bool stop_at_once(void *context, const struct config_line *line)
{
    (void)line;
    ++*(int *)context;
    return false;
}

static void the_reader_stops_when_told_so(void **state)
{
    static const char *const texts[] = {"[a]\n[b]\nc = d\n", "a = b\nc = d\n", "a\nb\n", "[\n[\n", "a = b"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int calls = 0;
        assert_false(config_reader_run(texts[i], strlen(texts[i]), stop_at_once, &calls));
        assert_int_equal(calls, 1);
    }
}

/* ---- threads ---- */

static void *build_often(void *context)
{
    const char *text = context;
    for (int i = 0; i < 100; i++) {
        struct config_builder *builder = config_builder_new(NULL, NULL);
        if (!config_builder_add(builder, "a", text, strlen(text)))
            return NULL;
        struct config *config = config_builder_finish(builder);
        bool whole = config->section_count == 2 && config->sections[1].pattern_count == 41;
        config_free(config);
        if (!whole)
            return NULL;
    }
    return context;
}

/* Each thread with its own builder: there is nothing in between that they share. */
static void builders_do_not_meet(void **state)
{
    char text[2048] = "[api.example.com]\nhosts = h0.example.com";
    pthread_t threads[4];

    (void)state;
    for (int i = 1; i < 40; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ", h%d.example.com", i);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, build_often, text), 0);
    for (size_t i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_config_has_a_default_section),
        cmocka_unit_test(values_keep_their_lines),
        cmocka_unit_test(other_editors_texts_are_read),
        cmocka_unit_test(an_entry_may_stand_behind_its_header),
        cmocka_unit_test(faults_of_syntax_are_named_with_their_line),
        cmocka_unit_test(a_nul_byte_is_a_fault_of_its_line_only),
        cmocka_unit_test(names_that_are_too_long_are_faults),
        cmocka_unit_test(long_section_names_are_whole),
        cmocka_unit_test(long_lines_have_no_seams),
        cmocka_unit_test(a_long_list_of_hosts_is_whole),
        cmocka_unit_test(indented_keys_are_keys),
        cmocka_unit_test(section_names_are_taken_apart),
        cmocka_unit_test(bad_section_names_are_refused),
        cmocka_unit_test(keys_below_a_bad_header_go_nowhere),
        cmocka_unit_test(a_fault_leaves_the_rest_alone),
        cmocka_unit_test(a_bad_value_keeps_the_one_before),
        cmocka_unit_test(keys_in_the_wrong_place_are_told_where_they_belong),
        cmocka_unit_test(keys_that_are_not_in_force_are_warned_of),
        cmocka_unit_test(a_key_given_twice_is_warned_of),
        cmocka_unit_test(a_section_given_twice_is_warned_of),
        cmocka_unit_test(misspelt_sections_are_hosts_with_a_warning),
        cmocka_unit_test(quotes_are_not_taken_for_a_part_of_the_value),
        cmocka_unit_test(what_stands_before_a_section_may_be_for_default),
        cmocka_unit_test(a_preset_names_no_others),
        cmocka_unit_test(quota_and_rate_exclude_each_other),
        cmocka_unit_test(what_may_be_secret_is_not_repeated),
        cmocka_unit_test(long_values_are_shortened_in_messages),
        cmocka_unit_test(matchers_are_read),
        cmocka_unit_test(bad_matchers_are_refused),
        cmocka_unit_test(later_layers_win_key_by_key),
        cmocka_unit_test(a_later_quota_replaces_an_earlier_rate),
        cmocka_unit_test(the_last_mention_gives_the_order),
        cmocka_unit_test(texts_outlive_what_they_came_from),
        cmocka_unit_test(ten_thousand_sections_are_found_again),
        cmocka_unit_test(the_reader_stops_when_told_so),
        cmocka_unit_test(builders_do_not_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
