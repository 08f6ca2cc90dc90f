/* SPDX-License-Identifier: MIT */
/*
 * Explanation: finding out.  Each answer is the library's own: policy_resolve says what speaks and
 * what is in force, classify what would be tried again, the governor (rehearsal.h) when the request
 * would go.  What is added here is why the other sections do not speak, and who sets the mode.
 */
#include "tools/curtsy/explanation.h"
#include "tools/curtsy/output.h"
#include "tools/curtsy/policy_view.h"

#include "core/log.h"
#include "core/printable.h"
#include "core/request_headers.h"
#include "core/system/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where there are more sections than this, those for quite other hosts are only counted. */
#define ALL_SHOWN_MAX 16
#define NEAR_SHOWN_MAX 8

/* ---- the request ---- */

static void add_credential(struct explanation *explanation, const char *kind, const char *name, size_t length)
{
    size_t used = strlen(explanation->credentials);
    char item[128];

    snprintf(item, sizeof(item), "%s%s%.*s", kind, length > 0 ? " " : "", (int)length, name);
    if (strstr(explanation->credentials, item) == NULL)
        snprintf(explanation->credentials + used, sizeof(explanation->credentials) - used, "%s%s", used > 0 ? ", " : "",
                 item);
}

static void find_credentials(struct explanation *explanation, const struct circumstances *circumstances,
                             const char *url)
{
    const struct policy *values = &explanation->resolved.values;
    struct scan name;
    char parameter[64];

    explanation->credentials[0] = '\0';
    for (size_t i = 0; i < circumstances->header_count; i++)
        if (request_headers_carries(circumstances->headers[i], values->credential_headers, &name))
            add_credential(explanation, "header", name.at, (size_t)(name.end - name.at));
    if (explanation->url.has_user)
        add_credential(explanation, "the URL's user", "", 0);
    if (url_query_has(url, values->credential_query, parameter, sizeof(parameter)))
        add_credential(explanation, "query parameter", parameter, strlen(parameter));
}

static struct policy_target target_of_request(const struct explanation *explanation)
{
    /* Which sections a credential chooses between is nobody's question until the matcher is in force. */
    bool counts = match_keys[MATCH_KEY_credential].in_force;

    return (struct policy_target){
        .host = explanation->url.target.host,
        .port = explanation->url.target.port,
        .path = explanation->url.target.path,
        .method = explanation->method,
        .program = explanation->program,
        .has_credential = counts && explanation->credentials[0] != '\0',
    };
}

static void resolve(struct explanation *explanation, const struct circumstances *circumstances)
{
    struct resolved_policy *resolved = &explanation->resolved;
    const struct policy_target target = target_of_request(explanation);

    policy_resolve(circumstances->config, &target, resolved);
    if (circumstances->machine != NULL) {
        struct resolved_policy machine;
        policy_resolve(circumstances->machine, &target, &machine);
        policy_tighten(resolved, &machine, geteuid());
    }
}

/* What carries a credential is said by the sections, and which sections speak may depend on whether
 * there is one: so they are asked twice. */
static void resolve_with_credentials(struct explanation *explanation, const struct circumstances *circumstances,
                                     const char *url)
{
    resolve(explanation, circumstances);
    find_credentials(explanation, circumstances, url);
    if (explanation->credentials[0] != '\0')
        resolve(explanation, circumstances);
}

/* As the library does for a transfer: only of a write are the headers looked at. */
static void find_traits(struct explanation *explanation, const struct circumstances *circumstances)
{
    explanation->traits = (struct request_traits){
        .method = explanation->method,
        .is_loopback = explanation->url.target.is_loopback,
        .host_is_named = explanation->resolved.host_is_named,
    };
    if (classify_method_is_safe(explanation->method))
        return;
    for (size_t i = 0; i < circumstances->header_count; i++)
        request_headers_note(&explanation->traits, circumstances->headers[i],
                             explanation->resolved.values.idempotency_header);
    explanation->key_is_generated = classify_wants_key(&explanation->resolved.values, &explanation->traits);
    explanation->traits.has_idempotency_key |= explanation->key_is_generated;
}

/* ---- the sections that do not speak ---- */

static bool speaks(const struct explanation *explanation, const struct section *section)
{
    for (unsigned i = 0; i < explanation->resolved.section_count; i++)
        if (explanation->resolved.sections[i] == section)
            return true;
    return false;
}

/* api.example.com is a part of example.com. */
static bool is_part_of(const char *host, const char *domain)
{
    size_t length = strlen(host), domain_length = strlen(domain);

    return strchr(domain, '.') != NULL && length > domain_length && host[length - domain_length - 1] == '.' &&
           strcmp(host + length - domain_length, domain) == 0;
}

/* One character more, less or another, or two of them exchanged. */
static bool is_one_slip_away(const char *a, const char *b)
{
    size_t a_length = strlen(a), b_length = strlen(b);

    for (; a_length > 0 && b_length > 0 && *a == *b; a_length--, b_length--) {
        a++;
        b++;
    }
    while (a_length > 0 && b_length > 0 && a[a_length - 1] == b[b_length - 1]) {
        a_length--;
        b_length--;
    }
    return (a_length <= 1 && b_length <= 1) || (a_length == 2 && b_length == 2 && a[0] == b[1] && a[1] == b[0]);
}

/* None of its patterns is this host; does one look as if it was meant to be?  A slip is suspected only
 * where no section names the host. */
static bool is_nearly_for(const struct section *section, const char *host, bool host_is_named)
{
    for (unsigned i = 0; i < section->pattern_count; i++) {
        const char *pattern = section->patterns[i].host;
        const char *name = strncmp(pattern, "*.", 2) == 0 ? pattern + 2 : pattern;
        if (strcmp(name, host) == 0 || is_part_of(host, name) || is_part_of(name, host) ||
            (!host_is_named && is_one_slip_away(name, host)))
            return true;
    }
    return false;
}

static bool add_silent(struct explanation *explanation, const struct section *section, const char *why)
{
    if (explanation->silent_count == SILENT_SHOWN_MAX)
        return false;
    explanation->silent[explanation->silent_count++] = (struct silent_section){section, why};
    return true;
}

/* In the order of the configuration. */
static void find_silent(struct explanation *explanation, const struct config *config)
{
    const struct policy_target target = target_of_request(explanation);
    unsigned near = 0;

    for (unsigned i = 0; i < config->section_count; i++) {
        const struct section *section = &config->sections[i];
        /* Why a section that matches may not speak: policy.h, POLICY_SECTIONS_MAX. */
        const char *why = "more sections match than are heard, and it is the less specific";
        bool is_elsewhere = false, is_shown = true;

        if (speaks(explanation, section))
            continue;
        if (!policy_section_matches(section, &target, &why))
            is_elsewhere = strcmp(why, "another host") == 0;
        if (is_elsewhere && config->section_count > ALL_SHOWN_MAX)
            is_shown =
                near < NEAR_SHOWN_MAX && is_nearly_for(section, target.host, explanation->resolved.host_is_named);
        near += is_elsewhere && is_shown;
        if (is_shown)
            is_shown = add_silent(explanation, section, why);
        if (!is_shown && is_elsewhere)
            explanation->hidden_elsewhere++;
        else if (!is_shown)
            explanation->hidden_here++;
    }
}

/* ---- the mode ---- */

static struct mode_source *add_mode(struct explanation *explanation, enum mode mode, int64_t until_ns)
{
    struct mode_source *source = &explanation->modes[explanation->mode_count];

    source->mode = mode;
    source->until_ns = until_ns;
    if (mode < explanation->modes[explanation->mode_in_force].mode)
        explanation->mode_in_force = explanation->mode_count;
    explanation->mode_count++;
    return source;
}

static void add_operators_mode(struct explanation *explanation, enum operator_mode mode, int64_t until_ns,
                               const char *what)
{
    if (mode == OPERATOR_AUTO)
        return;
    struct mode_source *source = add_mode(explanation, operator_ceiling(mode), until_ns);
    snprintf(source->by, sizeof(source->by), "the operator's word for %s", what);
}

/* Those who speak before the segment is looked at; the policy's mode is theirs from then on. */
static void find_modes(struct explanation *explanation, const struct circumstances *circumstances)
{
    struct resolved_policy *resolved = &explanation->resolved;
    struct mode_source *source;
    enum mode asked;

    source = add_mode(explanation, resolved->values.mode, TIME_NEVER);
    origin_text(resolved->origins[POLICY_KEY_mode], source->by, sizeof(source->by));
    if (circumstances->mode != NULL &&
        keys_parse_value(&policy_keys[POLICY_KEY_mode], circumstances->mode, &asked) == NULL) {
        source = add_mode(explanation, asked, TIME_NEVER);
        snprintf(source->by, sizeof(source->by), "CURTSY_MODE");
    }
    policy_apply_mode(resolved, circumstances->mode);
    if (resolved->values.mode == MODE_OBSERVE)
        policy_keep_to_itself(resolved);
    if (access(CURTSY_OFF_FILE, F_OK) == 0) {
        source = add_mode(explanation, MODE_OFF, TIME_NEVER);
        snprintf(source->by, sizeof(source->by), "%s", CURTSY_OFF_FILE);
    }
}

static void find_operators_modes(struct explanation *explanation, const struct circumstances *circumstances)
{
    const struct bucket_state *host = &explanation->rehearsal.buckets[0].state;
    int64_t until_ns = TIME_NEVER;

    if (circumstances->segment != NULL) {
        enum operator_mode mode = segment_mode(circumstances->segment, explanation->now_ns, &until_ns);
        add_operators_mode(explanation, mode, until_ns, "everything");
    }
    add_operators_mode(explanation, host->mode, host->mode_until_ns, explanation->resolved.buckets[0].name);
}

/* ---- what would be tried again ---- */

static void add_outcome(struct explanation *explanation, const struct outcome *outcome, const char *name)
{
    const struct policy *policy = &explanation->resolved.values;
    enum mode mode = explanation->modes[explanation->mode_in_force].mode;
    struct classification class = classify(policy, &explanation->traits, outcome, 1);
    unsigned attempts_max = policy->max_attempts < class.attempts_max ? policy->max_attempts : class.attempts_max;
    struct outcome_rule *rule = &explanation->outcomes[explanation->outcome_count++];

    *rule = (struct outcome_rule){.is_status = outcome->failure == FAILURE_NONE};
    snprintf(rule->outcome, sizeof(rule->outcome), "%s", name);
    if (class.verdict != VERDICT_RETRYABLE)
        rule->why = class.why;
    else if (mode != MODE_ENFORCE)
        rule->why = mode == MODE_OFF ? "mode is off" : "mode is observe";
    else if (attempts_max < 2)
        rule->why = "one attempt is allowed";
    else
        rule->attempts_max = attempts_max;
}

/* Its body can be sent again, as far as is known here. */
static void find_outcomes(struct explanation *explanation)
{
    static const int statuses[] = {429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529};
    static const struct {
        const char *name;
        enum failure failure;
        bool request_sent;
    } failures[] = {
        {"name not resolved now", FAILURE_RESOLVE, false}, {"no such host", FAILURE_NO_SUCH_HOST, false},
        {"connection refused", FAILURE_REFUSED, false},    {"no connection in time", FAILURE_TIMEOUT_CONNECT, false},
        {"connection reset", FAILURE_RESET, true},         {"no answer in time", FAILURE_TIMEOUT_TRANSFER, true},
        {"stream closed", FAILURE_STREAM, true},
    };
    static const struct headers no_headers;
    char name[16];

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        const struct outcome outcome = {
            .status = statuses[i], .request_sent = true, .body_resendable = true, .headers = &no_headers};
        bool is_usual = statuses[i] == 429 || statuses[i] == 503;
        snprintf(name, sizeof(name), "%d", statuses[i]);
        if (is_usual || status_set_has(&explanation->resolved.values.retry_status, statuses[i]))
            add_outcome(explanation, &outcome, name);
    }
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        const struct outcome outcome = {.failure = failures[i].failure,
                                        .request_sent = failures[i].request_sent,
                                        .body_resendable = true,
                                        .headers = &no_headers};
        add_outcome(explanation, &outcome, failures[i].name);
    }
}

/* ---- the whole ---- */

/* A path may hold anything that libcurl lets through. */
static void write_endpoint(struct explanation *explanation)
{
    const struct target *target = &explanation->url.target;
    char endpoint[sizeof(explanation->endpoint)];
    char authority[TARGET_AUTHORITY_SIZE];
    target_write_authority(target, authority);
    size_t length = log_endpoint(explanation->method, authority, target->path, endpoint, sizeof(endpoint));

    printable_copy(explanation->endpoint, sizeof(explanation->endpoint), endpoint, length);
}

bool explanation_make(struct explanation *explanation, const struct circumstances *circumstances, const char *url)
{
    memset(explanation, 0, sizeof(*explanation));
    snprintf(explanation->method, sizeof(explanation->method), "%s", circumstances->method);
    snprintf(explanation->program, sizeof(explanation->program), "%s", circumstances->program);
    url_read(url, &explanation->url);
    if (explanation->url.kind != URL_GOVERNED)
        return true;
    write_endpoint(explanation);
    explanation->now_ns = clock_now_ns();

    resolve_with_credentials(explanation, circumstances, url);
    find_traits(explanation, circumstances);
    find_silent(explanation, circumstances->config);
    find_modes(explanation, circumstances);
    if (!rehearse(circumstances->segment, &explanation->resolved, &explanation->traits, explanation->now_ns,
                  &explanation->rehearsal))
        return false;
    find_operators_modes(explanation, circumstances);
    find_outcomes(explanation);
    return true;
}
