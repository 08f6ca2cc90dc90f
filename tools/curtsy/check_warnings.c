/* SPDX-License-Identifier: MIT */
/*
 * Warnings of curtsy check: see check_warnings.h.  What is in force for a section is asked of an
 * example request (example.h), and only the section that has a part in a fault is blamed for it.
 */
#include "tools/curtsy/check_warnings.h"
#include "tools/curtsy/example.h"
#include "tools/curtsy/output.h"
#include "tools/curtsy/policy_view.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Fewer waiters than this within max_wait are hardly meant: max_wait = auto is never less than so
 * many spacings. */
#define WAITERS_WANTED 3

#define SYSTEM_FOLDER "/etc/curtsy/"

/* What is being looked at. */
struct look {
    const struct config *config;
    const struct section *section;
    struct resolved_policy resolved;
    struct limits limits;
    diagnostic_sink *sink;
    void *sink_context;
};

__attribute__((format(printf, 4, 5))) static void tell(const struct look *look, enum severity severity,
                                                       struct origin origin, const char *format, ...)
{
    char message[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    look->sink(look->sink_context, &(struct diagnostic){severity, origin.file, origin.line, message});
}

#define warn(look, origin, ...) tell(look, SEVERITY_WARNING, origin, __VA_ARGS__)

/* The line to blame for a key of a section: where the section sets it, else the section's own. */
static struct origin key_origin(const struct section *section, enum policy_key key)
{
    return section->set[key] ? section->origins[key] : section->origin;
}

bool section_sets_limits(const struct section *section)
{
    return section->set[POLICY_KEY_quota] || section->set[POLICY_KEY_rate] || section->set[POLICY_KEY_headroom] ||
           section->set[POLICY_KEY_burst] || section->set[POLICY_KEY_network_jitter];
}

/* ---- how many may go ---- */

static void warn_of_burst(const struct look *look)
{
    struct policy with_auto = look->resolved.values;
    struct limits best;

    if (!section_sets_limits(look->section))
        return;
    with_auto.burst = COUNT_AUTO;
    limits_from_policy(&with_auto, &best, NULL);
    for (unsigned i = 0; i < look->limits.count && i < best.count; i++) {
        const struct limit *limit = &look->limits.item[i];
        uint64_t most = limit_most_in_window(limit, limit->window_ns + limit->jitter_ns);
        char window[RATE_TEXT_SIZE];

        if (limit->published != 0 && most > limit->published)
            warn(look, key_origin(look->section, POLICY_KEY_burst),
                 "burst = %u breaks the quota of [%s]: up to %" PRIu64 " requests in a window of %s, and %" PRIu64
                 " are allowed; burst = auto comes to %" PRIu64,
                 look->resolved.values.burst, look->section->name, most, duration_text(window, limit->window_ns),
                 limit->published, best.item[i].burst / TOKEN_ONE);
    }
}

uint64_t limits_waiters(const struct limits *limits, int64_t max_wait_ns)
{
    uint64_t fewest = UINT64_MAX;

    for (unsigned i = 0; i < limits->count; i++) {
        int64_t spacing_ns = limit_spacing_ns(&limits->item[i]);
        uint64_t fit = (uint64_t)(max_wait_ns / (spacing_ns > 0 ? spacing_ns : 1));
        fewest = fit < fewest ? fit : fewest;
    }
    return fewest;
}

static void warn_of_waiters(const struct look *look)
{
    const struct policy *policy = &look->resolved.values;
    int64_t max_wait_ns = limits_max_wait_ns(policy, &look->limits);
    uint64_t fit = limits_waiters(&look->limits, max_wait_ns);
    int64_t slowest_ns = 0;
    char wait[RATE_TEXT_SIZE], spacing[SHORT_TIME_SIZE];

    if (!section_sets_limits(look->section) && !look->section->set[POLICY_KEY_max_wait])
        return;
    for (unsigned i = 0; i < look->limits.count; i++)
        if (limit_spacing_ns(&look->limits.item[i]) > slowest_ns)
            slowest_ns = limit_spacing_ns(&look->limits.item[i]);
    if (look->limits.count > 0 && max_wait_ns > 0 && fit < WAITERS_WANTED)
        warn(look, key_origin(look->section, POLICY_KEY_max_wait),
             "max_wait = %s fits %" PRIu64 " waiter%s of [%s]: one request goes every %s, and the others %s",
             duration_text(wait, max_wait_ns), fit, fit == 1 ? "" : "s", look->section->name,
             short_time(spacing, slowest_ns), policy->on_max_wait == ON_MAX_WAIT_SEND ? "are sent at once" : "fail");
}

/* ---- what is tried again, and when ---- */

/* Whose word it would be, were it not for the profile; NULL where nobody has said anything. */
static const struct section *speaker_of(const struct resolved_policy *resolved, enum policy_key key, unsigned *rank)
{
    for (*rank = 0; *rank < resolved->section_count; ++*rank)
        if (resolved->sections[*rank]->set[key])
            return resolved->sections[*rank];
    return NULL;
}

/* A general word that best_effort goes before is what it is for; one that is as special is a
 * contradiction. */
static void warn_of_profile(const struct look *look)
{
    static const enum policy_key keys[] = {POLICY_KEY_max_attempts, POLICY_KEY_max_wait};
    const struct resolved_policy *resolved = &look->resolved;
    unsigned profile_rank, rank;

    speaker_of(resolved, POLICY_KEY_profile, &profile_rank);
    if (resolved->values.profile != PROFILE_BEST_EFFORT)
        return;
    for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct section *speaker = speaker_of(resolved, keys[i], &rank);
        char asked[VALUE_TEXT_SIZE], used[VALUE_TEXT_SIZE], origin[PATH_MAX + 16];

        if (speaker != look->section || rank > profile_rank)
            continue;
        policy_value_text(&speaker->values, keys[i], asked);
        if (strcmp(asked, policy_value_text(&resolved->values, keys[i], used)) == 0)
            continue;
        warn(look, speaker->origins[keys[i]],
             "%s = %s has no effect in [%s]: profile = best_effort (%s) makes it one attempt, without waiting",
             policy_keys[keys[i]].name, asked, speaker->name,
             origin_text(resolved->origins[POLICY_KEY_profile], origin, sizeof(origin)));
    }
}

static void warn_of_backoff(const struct look *look)
{
    const struct section *section = look->section;
    const struct policy *values = &look->resolved.values;
    enum policy_key blamed = section->set[POLICY_KEY_max_delay] ? POLICY_KEY_max_delay : POLICY_KEY_base_delay;
    char base[VALUE_TEXT_SIZE], cap[VALUE_TEXT_SIZE];

    if ((!section->set[POLICY_KEY_max_delay] && !section->set[POLICY_KEY_base_delay]) || values->max_attempts == 1)
        return;
    policy_value_text(values, POLICY_KEY_base_delay, base);
    policy_value_text(values, POLICY_KEY_max_delay, cap);
    if (values->max_delay < values->base_delay)
        warn(look, key_origin(section, blamed),
             "max_delay = %s is less than base_delay = %s in [%s]: each delay is drawn from uniform(0, %s)", cap, base,
             section->name, cap);
    else if (values->base_delay == 0)
        warn(look, key_origin(section, POLICY_KEY_base_delay),
             "base_delay = 0s in [%s]: what is refused without a word is tried again at once", section->name);
}

static void warn_of_budget(const struct look *look)
{
    const struct section *section = look->section;
    const struct policy *values = &look->resolved.values;

    if ((section->set[POLICY_KEY_total_budget] || section->set[POLICY_KEY_max_attempts]) && values->total_budget == 0 &&
        values->max_attempts > 1)
        warn(look, key_origin(section, POLICY_KEY_total_budget),
             "total_budget = 0s leaves no time for a second attempt in [%s], and max_attempts = %u no effect",
             section->name, values->max_attempts);
}

/* ---- what it speaks for ---- */

static bool name_visit(void *context, const struct policy_target *target, const struct resolved_policy *resolved)
{
    const struct look *look = context;
    struct policy_target apex = *target;
    struct resolved_policy of_apex;

    (void)resolved;
    apex.host = look->section->patterns[0].host + 2;
    policy_resolve(look->config, &apex, &of_apex);
    if (!of_apex.host_is_named)
        tell(look, SEVERITY_NOTE, look->section->origin,
             "[%s] does not speak for %s itself, and no other section does; if it should, add a section [%s]",
             look->section->name, apex.host, apex.host);
    return true;
}

/* It may well be meant, so it is only noted.  Of the sections of one wildcard it is the one for all its
 * requests that is looked at; *.com and *.internal have no host of that
 * name. */
static void warn_of_apex(struct look *look)
{
    const struct section *section = look->section;

    if (section->pattern_count > 0 && strncmp(section->patterns[0].host, "*.", 2) == 0 &&
        strchr(section->patterns[0].host + 2, '.') != NULL && section->path == NULL && section->methods == NULL &&
        section->programs == NULL && section->credential < 0 && section->label == NULL)
        example_search(look->config, section, name_visit, look);
}

/* A bucket is its host's, and not a section's: two sections must not double a quota. */
static void note_what_all_share(const struct look *look)
{
    const struct section *section = look->section;
    const char *some = section->methods != NULL ? "methods" : section->programs != NULL ? "programs" : "credential";

    if (section->path != NULL || (section->methods == NULL && section->programs == NULL && section->credential < 0) ||
        !(section->set[POLICY_KEY_quota] || section->set[POLICY_KEY_rate]))
        return;
    tell(look, SEVERITY_NOTE, key_origin(section, section->set[POLICY_KEY_quota] ? POLICY_KEY_quota : POLICY_KEY_rate),
         "[%s] speaks for some requests only (%s), and its limit is for their host's one bucket: while such requests "
         "are made, and ten seconds longer, it holds for all others of the host too",
         section->name, some);
}

void warn_of_section(const struct config *config, const struct section *section, diagnostic_sink *sink,
                     void *sink_context)
{
    struct look look = {.config = config, .section = section, .sink = sink, .sink_context = sink_context};

    if (section->origin.file != NULL && !example_is_reached(config, section))
        warn(&look, section->origin,
             "[%s] is never reached: wherever it matches, if anywhere, other sections set each of its keys",
             section->name);
    warn_of_apex(&look);
    note_what_all_share(&look);
    example_resolve(config, section, &look.resolved);
    limits_from_policy(&look.resolved.values, &look.limits, NULL);
    warn_of_burst(&look);
    warn_of_waiters(&look);
    warn_of_profile(&look);
    warn_of_backoff(&look);
    warn_of_budget(&look);
}

/* ---- Curtsy's own settings ---- */

static void warn_of_segment(const struct look *look)
{
    const struct settings *settings = &look->config->settings;
    const struct origin *origins = look->config->settings_origins;
    const struct origin *segment = &origins[CURTSY_KEY_segment];
    bool is_for_others = settings->segment_permissions != 0600;

    if (settings->segment_group != NULL && !is_for_others)
        warn(look, origins[CURTSY_KEY_segment_group],
             "segment_group has no effect with segment_permissions = 0600: expected 0660 beside it");
    if (is_for_others && settings->segment == NULL)
        warn(look, origins[CURTSY_KEY_segment_permissions],
             "segment_permissions = %04o has no effect with segment = auto: each user has a segment of his own name",
             settings->segment_permissions);
    if (settings->segment != NULL && !is_for_others && segment->file != NULL &&
        strncmp(segment->file, SYSTEM_FOLDER, strlen(SYSTEM_FOLDER)) == 0)
        warn(look, *segment,
             "segment = %s is for the whole machine, but with segment_permissions = 0600 only its owner's programs may "
             "use it: expected 0660 or 0666 beside it",
             settings->segment);
}

static void warn_of_log_file(const struct look *look)
{
    const char *file = look->config->settings.log_file;

    if (file != NULL && file[0] != '/' && strcmp(file, "syslog") != 0)
        warn(look, look->config->settings_origins[CURTSY_KEY_log_file],
             "log_file is a relative path: each program has a file of its own, in the folder that it is started in");
}

void warn_of_settings(const struct config *config, diagnostic_sink *sink, void *sink_context)
{
    const struct look look = {.config = config, .sink = sink, .sink_context = sink_context};

    warn_of_segment(&look);
    warn_of_log_file(&look);
}
