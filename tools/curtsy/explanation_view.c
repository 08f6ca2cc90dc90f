/* SPDX-License-Identifier: MIT */
/*
 * Explanation: showing it, to people and to scripts.
 */
#include "tools/curtsy/explanation.h"
#include "tools/curtsy/output.h"
#include "tools/curtsy/policy_view.h"

#include "core/section_name.h"
#include "core/system/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DECISION_SIZE 256

/* ---- words ---- */

static enum mode mode_in_force(const struct explanation *explanation)
{
    return explanation->modes[explanation->mode_in_force].mode;
}

static const char *mode_word(enum mode mode)
{
    return policy_keys[POLICY_KEY_mode].choices[mode];
}

/* "12345678": "12,345,678". */
static const char *grouped(char buffer[32], unsigned number)
{
    char digits[16];
    size_t count = (size_t)snprintf(digits, sizeof(digits), "%u", number), used = 0;

    for (size_t i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0)
            buffer[used++] = ',';
        buffer[used++] = digits[i];
    }
    buffer[used] = '\0';
    return buffer;
}

/* "2026-11-30 12:30:00, for 5m00s". */
static const char *end_text(char buffer[64], int64_t until_ns, int64_t now_ns)
{
    int64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    time_t until = (time_t)(clock_wall_s() + left_ns / NS_PER_SECOND);
    char clock[32], left[SHORT_TIME_SIZE];
    struct tm local;

    if (localtime_r(&until, &local) == NULL || strftime(clock, sizeof(clock), "%Y-%m-%d %H:%M:%S", &local) == 0)
        snprintf(clock, sizeof(clock), "?");
    snprintf(buffer, 64, "%s, for %s", clock, short_time(left, left_ns));
    return buffer;
}

static const char *block_word(enum block_kind block)
{
    switch (block) {
    case BLOCK_SOFT:
        return "soft";
    case BLOCK_HARD:
        return "hard";
    case BLOCK_HOLD:
        return "hold";
    default:
        return NULL;
    }
}

static const char *block_author(enum block_kind block)
{
    switch (block) {
    case BLOCK_SOFT:
        return "its quota fields";
    case BLOCK_HOLD:
        return "the operator";
    default:
        return "the server's word";
    }
}

static const char *decision_word(const struct rehearsal *rehearsal)
{
    if (!rehearsal->is_sent)
        return "refuse";
    return rehearsal->wait_ns > 0 ? "wait" : "send";
}

/* How it would go in mode enforce: "wait 12.3s (quota)". */
static void enforced_text(const struct explanation *explanation, char *buffer, size_t size)
{
    const struct rehearsal *rehearsal = &explanation->rehearsal;
    char wait[SHORT_TIME_SIZE], turn[SHORT_TIME_SIZE], most[RATE_TEXT_SIZE];
    bool is_early = rehearsal->turn_ns > rehearsal->wait_ns;
    const char *delay = cause_name(rehearsal->delay);

    short_time(wait, rehearsal->wait_ns);
    short_time(turn, rehearsal->turn_ns);
    duration_text(most, rehearsal->max_wait_ns);
    if (!rehearsal->is_sent && rehearsal->turn_ns == TIME_NEVER)
        snprintf(buffer, size, "be refused: its turn never comes (%s)", delay);
    else if (!rehearsal->is_sent)
        snprintf(buffer, size, "be refused: %s (%s) is longer than max_wait = %s", turn, delay, most);
    else if (is_early && rehearsal->wait_ns > 0)
        snprintf(buffer, size, "wait %s, and then be sent before its turn: %s (%s) is longer than max_wait", wait, turn,
                 delay);
    else if (is_early)
        snprintf(buffer, size, "be sent at once, before its turn: %s (%s) is longer than max_wait = %s", turn, delay,
                 most);
    else if (rehearsal->wait_ns > 0)
        snprintf(buffer, size, "wait %s (%s)", wait, cause_name(rehearsal->cause));
    else
        snprintf(buffer, size, "be sent at once");
}

static const char *decision_text(const struct explanation *explanation, char buffer[DECISION_SIZE])
{
    char enforced[DECISION_SIZE - 64];

    if (explanation->url.kind != URL_GOVERNED) {
        snprintf(buffer, DECISION_SIZE, "not governed: %s%s",
                 explanation->url.scheme[0] != '\0' ? explanation->url.scheme : "the URL",
                 strncmp(explanation->url.scheme, "http", 4) == 0 ? ", but to no ordinary host"
                                                                  : " is not http or https");
        return buffer;
    }
    enforced_text(explanation, enforced, sizeof(enforced));
    switch (mode_in_force(explanation)) {
    case MODE_OFF:
        snprintf(buffer, DECISION_SIZE, "not governed: mode off");
        break;
    case MODE_OBSERVE:
        snprintf(buffer, DECISION_SIZE, "would be sent at once: mode observe; in mode enforce it would %s", enforced);
        break;
    default:
        snprintf(buffer, DECISION_SIZE, "would %s", enforced);
        break;
    }
    return buffer;
}

/* ---- for people ---- */

static void print_title(const char *title)
{
    printf("%s%s%s\n", output_style(STYLE_BOLD), title, output_style(STYLE_PLAIN));
}

static void print_request(const struct explanation *explanation)
{
    const struct url *url = &explanation->url;
    bool is_write = !classify_method_is_safe(explanation->method);

    print_title(explanation->endpoint);
    printf("    %-12s %s, port %u; taken apart by libcurl %s\n", "URL", url->scheme, url->target.port,
           url_libcurl_version());
    printf("    %-12s %s\n", "program",
           explanation->program[0] != '\0' ? explanation->program : "not given (--program NAME)");
    printf("    %-12s %s\n", "credential", explanation->credentials[0] != '\0' ? explanation->credentials : "none");
    if (is_write && explanation->traits.has_idempotency_key)
        printf("    %-12s an idempotency key%s\n", "has",
               explanation->key_is_generated ? ", made for it: idempotency_key = generate" : "");
    if (is_write && explanation->traits.is_conditional)
        printf("    %-12s a condition\n", "has");
}

static void print_section(const struct section *section, const char *why)
{
    char title[SECTION_NAME_SIZE + 2], origin[PATH_MAX + 16];

    snprintf(title, sizeof(title), "[%s]", section->name);
    make_printable(title);
    origin_text(section->origin, origin, sizeof(origin));
    if (why != NULL)
        printf("    %-40s %-18s %s\n", title, why, origin);
    else
        printf("    %-40s %s\n", title, origin);
}

static void print_sections(const struct explanation *explanation)
{
    const struct resolved_policy *resolved = &explanation->resolved;
    char number[32];

    print_title("sections that speak, the most specific first");
    for (unsigned i = 0; i < resolved->section_count; i++)
        print_section(resolved->sections[i], NULL);
    if (explanation->silent_count + explanation->hidden_here + explanation->hidden_elsewhere == 0)
        return;
    print_title("sections that do not, and why");
    for (unsigned i = 0; i < explanation->silent_count; i++)
        print_section(explanation->silent[i].section, explanation->silent[i].why);
    if (explanation->hidden_here > 0)
        printf("    and %s more for this host\n", grouped(number, explanation->hidden_here));
    if (explanation->hidden_elsewhere > 0)
        printf("    and %s section%s for other hosts\n", grouped(number, explanation->hidden_elsewhere),
               explanation->hidden_elsewhere == 1 ? "" : "s");
}

static void print_values(const struct explanation *explanation)
{
    const struct resolved_policy *resolved = &explanation->resolved;
    char value[VALUE_TEXT_SIZE], origin[PATH_MAX + 16];

    print_title("values (* not the default)");
    for (unsigned i = 0; i < POLICY_KEY_COUNT; i++) {
        enum policy_key key = (enum policy_key)i;
        bool is_default = policy_value_is_default(&resolved->values, key);

        make_printable((char *)policy_value_text(&resolved->values, key, value));
        origin_text(resolved->origins[i], origin, sizeof(origin));
        printf("  %s %-22s %-38s %s%s\n", is_default ? " " : "*", policy_keys[i].name, value, origin,
               policy_keys[i].in_force ? "" : " (not in force yet)");
    }
}

static void print_limit(const struct limit *limit, double tokens)
{
    char quota[RATE_TEXT_SIZE], rate[RATE_TEXT_SIZE];

    printf("        ");
    if (limit->published != 0) {
        units_format_rate(quota, sizeof(quota), (struct rate){limit->published, limit->window_ns});
        printf("quota %s: ", quota);
    }
    printf("rate %s, burst %.6g, tokens %.1f\n", rate_text(rate, limit), (double)limit->burst / (double)TOKEN_ONE,
           tokens);
}

static void print_buckets(const struct explanation *explanation)
{
    char end[64];

    print_title("buckets");
    for (unsigned i = 0; i < explanation->resolved.bucket_count; i++) {
        const struct rehearsed_bucket *bucket = &explanation->rehearsal.buckets[i];
        const struct bucket_state *state = &bucket->state;

        printf("    %s%s\n", explanation->resolved.buckets[i].name, bucket->is_known ? "" : " (not used yet)");
        if (state->limits.count == 0)
            printf("        no limit\n");
        for (unsigned j = 0; j < state->limits.count; j++)
            print_limit(&state->limits.item[j], state->tokens[j]);
        if (bucket->differs)
            printf("        %sstricter limits are in force than these: another process or section asks for them%s\n",
                   output_style(STYLE_CAUTION), output_style(STYLE_PLAIN));
        if (state->block != BLOCK_NONE)
            printf("        %sblocked until %s, by %s%s\n",
                   output_style(state->block == BLOCK_SOFT ? STYLE_CAUTION : STYLE_FAULT),
                   end_text(end, state->blocked_until_ns, explanation->now_ns), block_author(state->block),
                   output_style(STYLE_PLAIN));
    }
}

/* The one in force first, then who else has a say. */
static void print_mode(const struct explanation *explanation, unsigned index)
{
    const struct mode_source *source = &explanation->modes[index];
    bool is_in_force = index == explanation->mode_in_force;
    char end[64];

    printf("    %-12s %s (%s", is_in_force ? "mode" : "", mode_word(source->mode), source->by);
    if (source->until_ns != TIME_NEVER)
        printf(", until %s", end_text(end, source->until_ns, explanation->now_ns));
    puts(is_in_force ? ")" : "): the less intrusive one wins");
}

static void print_decision(const struct explanation *explanation)
{
    char text[DECISION_SIZE];

    print_title("now");
    print_mode(explanation, explanation->mode_in_force);
    for (unsigned i = 0; i < explanation->mode_count; i++)
        if (i != explanation->mode_in_force)
            print_mode(explanation, i);
    printf("    %-12s %s\n", "it", decision_text(explanation, text));
}

static bool same_rule(const struct outcome_rule *a, const struct outcome_rule *b)
{
    return a->is_status == b->is_status && a->attempts_max == b->attempts_max &&
           (a->why == b->why || (a->why != NULL && b->why != NULL && strcmp(a->why, b->why) == 0));
}

/* Outcomes in a row with the same answer are one line. */
static void print_outcomes(const struct explanation *explanation)
{
    bool may_have_body = !classify_method_is_safe(explanation->method);
    const struct outcome_rule *rule = explanation->outcomes;
    const struct outcome_rule *end = rule + explanation->outcome_count;

    printf("%swhat would be tried again%s%s\n", output_style(STYLE_BOLD),
           may_have_body ? ", if the body can be sent again" : "", output_style(STYLE_PLAIN));
    while (rule < end) {
        const struct outcome_rule *first = rule;

        fputs("    ", stdout);
        do
            printf("%s%s", rule == first ? "" : ", ", rule->outcome);
        while (++rule < end && same_rule(first, rule));
        if (first->why != NULL)
            printf(": no: %s\n", first->why);
        else
            printf(": yes, up to %u attempts in all\n", first->attempts_max);
    }
}

void explanation_print(const struct explanation *explanation)
{
    char text[DECISION_SIZE];

    putchar('\n');
    if (explanation->url.kind != URL_GOVERNED) {
        printf("%s\n", decision_text(explanation, text));
        return;
    }
    print_request(explanation);
    print_sections(explanation);
    print_values(explanation);
    print_buckets(explanation);
    print_decision(explanation);
    print_outcomes(explanation);
}

/* ---- for scripts ---- */

static json_t *seconds_json(int64_t ns)
{
    return ns == TIME_NEVER ? json_null() : json_real((double)ns / (double)NS_PER_SECOND);
}

static json_t *word_json(const char *word)
{
    return word != NULL ? json_text(word) : json_null();
}

static json_t *section_json(const struct section *section, const char *why)
{
    char origin[PATH_MAX + 16];

    return json_pack("{s:o, s:b, s:o, s:o}", "name", json_text(section->name), "speaks", why == NULL, "why",
                     word_json(why), "origin", json_text(origin_text(section->origin, origin, sizeof(origin))));
}

static json_t *sections_json(const struct explanation *explanation)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < explanation->resolved.section_count; i++)
        json_array_append_new(array, section_json(explanation->resolved.sections[i], NULL));
    for (unsigned i = 0; i < explanation->silent_count; i++)
        json_array_append_new(array, section_json(explanation->silent[i].section, explanation->silent[i].why));
    return array;
}

static json_t *bucket_json(const struct explanation *explanation, unsigned index)
{
    const struct policy_bucket *named = &explanation->resolved.buckets[index];
    const struct rehearsed_bucket *bucket = &explanation->rehearsal.buckets[index];
    const struct bucket_state *state = &bucket->state;
    int64_t blocked_ns = state->block != BLOCK_NONE ? state->blocked_until_ns - explanation->now_ns : 0;
    json_t *tokens = json_array();

    for (unsigned i = 0; i < state->limits.count; i++)
        json_array_append_new(tokens, json_real(state->tokens[i]));
    return json_pack("{s:o, s:o, s:b, s:o, s:o, s:b, s:o, s:o}", "bucket", json_text(named->name), "limits",
                     policy_limits_json(&named->limits), "in_segment", bucket->is_known, "limits_in_force",
                     policy_limits_json(&state->limits), "tokens", tokens, "limits_differ", bucket->differs,
                     "curtsy_blocked_seconds", seconds_json(blocked_ns), "block", word_json(block_word(state->block)));
}

static json_t *buckets_json(const struct explanation *explanation)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < explanation->resolved.bucket_count; i++)
        json_array_append_new(array, bucket_json(explanation, i));
    return array;
}

static json_t *modes_json(const struct explanation *explanation)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < explanation->mode_count; i++) {
        const struct mode_source *source = &explanation->modes[i];
        int64_t left_ns = source->until_ns == TIME_NEVER ? TIME_NEVER : source->until_ns - explanation->now_ns;
        json_array_append_new(array, json_pack("{s:s, s:o, s:o, s:b}", "mode", mode_word(source->mode), "by",
                                               json_text(source->by), "ends_s", seconds_json(left_ns), "wins",
                                               i == explanation->mode_in_force));
    }
    return array;
}

static json_t *decision_json(const struct explanation *explanation)
{
    static const char *const words[] = {[MODE_OFF] = "ungoverned", [MODE_OBSERVE] = "send"};
    const struct rehearsal *rehearsal = &explanation->rehearsal;
    enum mode mode = mode_in_force(explanation);
    char text[DECISION_SIZE];
    json_t *enforced = json_pack("{s:s, s:o, s:o, s:o, s:o}", "decision", decision_word(rehearsal), "wait_s",
                                 seconds_json(rehearsal->wait_ns), "turn_s", seconds_json(rehearsal->turn_ns), "cause",
                                 word_json(rehearsal->delay != CAUSE_NONE ? cause_name(rehearsal->delay) : NULL),
                                 "max_wait_s", seconds_json(rehearsal->max_wait_ns));

    return json_pack("{s:s, s:o, s:o}", "decision", mode == MODE_ENFORCE ? decision_word(rehearsal) : words[mode],
                     "text", json_text(decision_text(explanation, text)), "enforced", enforced);
}

static json_t *outcomes_json(const struct explanation *explanation)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < explanation->outcome_count; i++) {
        const struct outcome_rule *rule = &explanation->outcomes[i];
        json_array_append_new(
            array, json_pack("{s:s, s:b, s:I, s:o}", "outcome", rule->outcome, "retried", rule->why == NULL, "attempts",
                             (json_int_t)(rule->why == NULL ? rule->attempts_max : 1), "why", word_json(rule->why)));
    }
    return array;
}

json_t *explanation_json(const struct explanation *explanation, const struct view *view)
{
    const struct target *target = &explanation->url.target;
    json_t *document = view_json(view);
    char text[DECISION_SIZE];

    json_object_set_new(document, "method", json_text(explanation->method));
    json_object_set_new(document, "scheme", word_json(explanation->url.scheme));
    json_object_set_new(document, "libcurl", json_text(url_libcurl_version()));
    if (explanation->url.kind != URL_GOVERNED) {
        json_object_set_new(
            document, "now",
            json_pack("{s:s, s:o}", "decision", "ungoverned", "text", json_text(decision_text(explanation, text))));
        return document;
    }
    json_object_set_new(document, "endpoint", json_text(explanation->endpoint));
    json_object_set_new(document, "host", json_text(target->host));
    json_object_set_new(document, "port", json_integer(target->port));
    json_object_set_new(document, "program", json_text(explanation->program));
    json_object_set_new(document, "credential",
                        word_json(explanation->credentials[0] != '\0' ? explanation->credentials : NULL));
    json_object_set_new(document, "has_idempotency_key", json_boolean(explanation->traits.has_idempotency_key));
    json_object_set_new(document, "idempotency_key_is_generated", json_boolean(explanation->key_is_generated));
    json_object_set_new(document, "is_conditional", json_boolean(explanation->traits.is_conditional));
    json_object_set_new(document, "sections", sections_json(explanation));
    json_object_set_new(document, "sections_not_shown",
                        json_pack("{s:I, s:I}", "this_host", (json_int_t)explanation->hidden_here, "other_hosts",
                                  (json_int_t)explanation->hidden_elsewhere));
    json_object_set_new(document, "keys", policy_values_json(&explanation->resolved));
    json_object_set_new(document, "buckets", buckets_json(explanation));
    json_object_set_new(document, "modes", modes_json(explanation));
    json_object_set_new(document, "now", decision_json(explanation));
    json_object_set_new(document, "outcomes", outcomes_json(explanation));
    return document;
}
