/* SPDX-License-Identifier: MIT */
/*
 * Policy: collect the sections that match, lay their values over each other, name the buckets.
 *
 * The index makes collecting a look-up.  Every pattern of every section is an entry; entries are
 * sorted by host and, within one host, by specificity.  A request's host leads to a short list of
 * keys, from specific to general: api.example.com, .example.com, .com (the wildcards *.example.com
 * and *.com) and "" (the pattern *).  Walking their entries in this order meets the sections in the
 * order of specificity.
 */
#include "core/policy.h"

#include "core/hash.h"
#include "core/section_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- does a section match? ---- */

/* *.example.com for a.example.com and a.b.example.com. */
static bool host_matches(const char *pattern, const char *host)
{
    if (pattern[0] != '*')
        return strcmp(pattern, host) == 0;
    size_t suffix = strlen(pattern + 1), length = strlen(host);
    return length > suffix && strcmp(host + length - suffix, pattern + 1) == 0;
}

/* One segment, or what is left of it, where each * stands for any characters but '/'.  Returns the
 * ends of both in *pattern and *path.  After a mismatch the last * takes one character more. */
static bool segment_matches(const char **pattern, const char **path)
{
    const char *p = *pattern, *t = *path;
    const char *star = NULL, *star_text = NULL;

    for (;;) {
        bool text_ends = *t == '\0' || *t == '/';
        if (*p == '*') {
            star = ++p;
            star_text = t;
        } else if (text_ends && (*p == '\0' || *p == '/')) {
            break;
        } else if (!text_ends && *p == *t) {
            p++;
            t++;
        } else if (star != NULL && *star_text != '\0' && *star_text != '/') {
            p = star;
            t = ++star_text;
        } else {
            return false;
        }
    }
    *pattern = p;
    *path = t;
    return true;
}

/* /v1/search for /v1/search and /v1/search/code, not for /v1/searches. */
static bool path_matches(const char *pattern, const char *path)
{
    while (segment_matches(&pattern, &path)) {
        if (*pattern == '\0')
            return true;
        if (*path == '\0')
            return false;
        pattern++;
        path++;
    }
    return false;
}

static bool list_has(const char *const *list, const char *word)
{
    for (; *list != NULL; list++)
        if (strcmp(*list, word) == 0)
            return true;
    return false;
}

static bool names_programs(const struct section *section)
{
    for (const char *const *program = section->programs; program != NULL && *program != NULL; program++)
        if ((*program)[0] != '!')
            return true;
    return false;
}

static bool excludes_program(const struct section *section, const char *program)
{
    for (const char *const *entry = section->programs; *entry != NULL; entry++)
        if ((*entry)[0] == '!' && strcmp(*entry + 1, program) == 0)
            return true;
    return false;
}

static bool program_matches(const struct section *section, const char *program)
{
    if (section->programs == NULL)
        return true;
    if (excludes_program(section, program))
        return false;
    return !names_programs(section) || list_has(section->programs, program);
}

static bool credential_matches(const struct section *section, bool has_credential)
{
    return section->credential < 0 || (section->credential == CREDENTIAL_ANY) == has_credential;
}

/* Everything but host and port: NULL, or what differs. */
static const char *find_difference(const struct section *section, const struct policy_target *target)
{
    if (section->path != NULL && !path_matches(section->path, target->path))
        return "another path";
    if (section->methods != NULL && !list_has(section->methods, target->method))
        return "another method";
    if (!program_matches(section, target->program))
        return "another program";
    if (!credential_matches(section, target->has_credential))
        return section->credential == CREDENTIAL_ANY ? "no credential" : "a credential";
    return NULL;
}

bool policy_section_matches(const struct section *section, const struct policy_target *target, const char **why)
{
    const char *difference = section->pattern_count > 0 ? "another host" : NULL;
    for (unsigned i = 0; i < section->pattern_count; i++) {
        if (!host_matches(section->patterns[i].host, target->host))
            continue;
        if (section->patterns[i].port == 0 || section->patterns[i].port == target->port) {
            difference = NULL;
            break;
        }
        difference = "another port";
    }
    if (difference == NULL)
        difference = find_difference(section, target);
    if (difference != NULL && why != NULL)
        *why = difference;
    return difference == NULL;
}

bool policy_normalise_host(const char *host, size_t length, char *out, size_t size)
{
    return host_normalise(host, length, out, size);
}

/* ---- the index ---- */

/* A section and the one of its patterns that leads to it. */
struct entry {
    const char *key; /* the pattern without its '*' */
    const struct section *section;
    uint16_t port;
    unsigned path_literals, path_length;
    unsigned programs; /* 2 named, 1 only excluded, 0 every one */
};

/* The entries of one key. */
struct bin {
    const char *key; /* NULL: free */
    unsigned first, count;
};

struct policy_index {
    struct policy defaults;
    struct entry *entries;
    struct bin *bins;
    size_t bin_count; /* a power of two */
};

static const char *key_of(const char *pattern)
{
    return pattern[0] == '*' ? pattern + 1 : pattern;
}

static struct entry make_entry(const struct section *section, const struct host_pattern *pattern)
{
    struct entry entry = {.key = key_of(pattern->host), .section = section, .port = pattern->port};
    for (const char *at = section->path; at != NULL && *at != '\0'; at++) {
        entry.path_literals += *at != '*';
        entry.path_length++;
    }
    if (section->programs != NULL)
        entry.programs = names_programs(section) ? 2 : 1;
    return entry;
}

/* Below 0 where a comes first: more is before less. */
static int more_first(unsigned a, unsigned b)
{
    return (a < b) - (a > b);
}

/* By host, then by the rest of the order in policy.h.  Not 0 for two patterns of different sections. */
static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    const struct section *s = a->section, *t = b->section;
    int order = strcmp(a->key, b->key);

    if (order == 0)
        order = more_first(a->port != 0, b->port != 0);
    if (order == 0)
        order = more_first(a->path_literals, b->path_literals);
    if (order == 0)
        order = more_first(a->path_length, b->path_length);
    if (order == 0)
        order = more_first(s->methods != NULL, t->methods != NULL);
    if (order == 0)
        order = more_first(a->programs, b->programs);
    if (order == 0)
        order = more_first(s->credential >= 0, t->credential >= 0);
    return order != 0 ? order : more_first(s->order, t->order);
}

static struct bin *find_bin(const struct policy_index *index, const char *key)
{
    size_t at = hash_text(HASH_START, key) & (index->bin_count - 1);
    while (index->bins[at].key != NULL && strcmp(index->bins[at].key, key) != 0)
        at = (at + 1) & (index->bin_count - 1);
    return &index->bins[at];
}

static size_t fill_entries(struct policy_index *index, const struct config *config)
{
    size_t count = 0;
    for (unsigned i = 0; i < config->section_count; i++)
        for (unsigned j = 0; j < config->sections[i].pattern_count; j++)
            index->entries[count++] = make_entry(&config->sections[i], &config->sections[i].patterns[j]);
    qsort(index->entries, count, sizeof index->entries[0], compare_entries);
    return count;
}

bool policy_index_build(struct config *config)
{
    struct policy_index *index = calloc(1, sizeof *index);
    size_t count = 0;

    config->index = index;
    if (index == NULL)
        return false;
    policy_defaults(&index->defaults);
    for (unsigned i = 0; i < config->section_count; i++)
        count += config->sections[i].pattern_count;
    for (index->bin_count = 8; index->bin_count < 2 * count;)
        index->bin_count *= 2;
    index->entries = calloc(count + 1, sizeof *index->entries);
    index->bins = calloc(index->bin_count, sizeof *index->bins);
    if (index->entries == NULL || index->bins == NULL)
        return false;

    count = fill_entries(index, config);
    for (unsigned i = 0; i < count; i++) {
        struct bin *bin = find_bin(index, index->entries[i].key);
        if (bin->key == NULL)
            *bin = (struct bin){index->entries[i].key, i, 0};
        bin->count++;
    }
    return true;
}

void policy_index_free(struct policy_index *index)
{
    if (index == NULL)
        return;
    free(index->entries);
    free(index->bins);
    free(index);
}

/* ---- collecting ---- */

static bool is_collected(const struct resolved_policy *resolved, const struct section *section)
{
    for (unsigned i = 0; i < resolved->section_count; i++)
        if (resolved->sections[i] == section)
            return true;
    return false;
}

/* One place is kept for [default]. */
static void collect_key(const struct policy_index *index, const char *key, const struct policy_target *target,
                        struct resolved_policy *out)
{
    const struct bin *bin = find_bin(index, key);
    for (unsigned i = 0; i < bin->count && out->section_count < POLICY_SECTIONS_MAX - 1; i++) {
        const struct entry *entry = &index->entries[bin->first + i];
        if ((entry->port != 0 && entry->port != target->port) || is_collected(out, entry->section) ||
            find_difference(entry->section, target) != NULL)
            continue;
        out->sections[out->section_count++] = entry->section;
        out->host_is_named |= key[0] != '\0';
    }
}

static void collect(const struct config *config, const struct policy_target *target, struct resolved_policy *out)
{
    /* A host that begins with a dot is none, and must not be taken for a wildcard's key. */
    if (target->host[0] != '.')
        collect_key(config->index, target->host, target, out);
    for (const char *dot = strchr(target->host, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
        if (dot != target->host)
            collect_key(config->index, dot, target, out);
    collect_key(config->index, "", target, out);
    out->sections[out->section_count++] = &config->sections[0];
}

/* ---- values ---- */

/* quota and rate count as one: who sets either of them has said what the limit is. */
static void lay_over(const struct section *section, struct policy *values, struct origin *origins)
{
    if (section->set[POLICY_KEY_quota] || section->set[POLICY_KEY_rate]) {
        values->quota = values->rate = (struct rate_list){0};
        origins[POLICY_KEY_quota] = origins[POLICY_KEY_rate] = (struct origin){NULL, 0};
    }
    for (unsigned i = 0; i < POLICY_KEY_COUNT; i++) {
        if (!section->set[i])
            continue;
        const struct key *key = &policy_keys[i];
        memcpy((char *)values + key->offset, (const char *)&section->values + key->offset, key->size);
        origins[i] = section->origins[i];
    }
}

/* The values of the sections from the `first` one on, the least specific laid down first. */
static void cascade(const struct config *config, const struct resolved_policy *resolved, unsigned first,
                    bool with_paths, struct policy *values, struct origin *origins)
{
    *values = config->index->defaults;
    memset(origins, 0, POLICY_KEY_COUNT * sizeof *origins);
    for (unsigned i = resolved->section_count; i > first; i--)
        if (with_paths || resolved->sections[i - 1]->path == NULL)
            lay_over(resolved->sections[i - 1], values, origins);
}

/* ---- buckets ---- */

/* A section for some methods or programs only has no bucket of its own, or two of them would double
 * their host's quota. */
static bool speaks_for_everybody(const struct section *section)
{
    return section->methods == NULL && section->programs == NULL && section->credential < 0;
}

static bool groups(const struct section *section)
{
    return section->groups_hosts && speaks_for_everybody(section);
}

/* A name that does not fit ends in '~' and a hash of the whole. */
static void set_bucket_name(char name[BUCKET_NAME_SIZE], const char *whole)
{
    size_t length = strlen(whole), kept = BUCKET_NAME_SIZE - sizeof "~0123456789abcdef";

    if (length < BUCKET_NAME_SIZE) {
        memcpy(name, whole, length + 1);
        return;
    }
    /* Not within a character of several bytes. */
    while (kept > 0 && ((unsigned char)whole[kept] & 0xc0) == 0x80)
        kept--;
    memcpy(name, whole, kept);
    snprintf(name + kept, BUCKET_NAME_SIZE - kept, "~%016" PRIx64, hash_text(HASH_START, whole));
}

static void name_bucket(struct policy_bucket *bucket, const struct policy_target *target, const struct section *group,
                        const char *path)
{
    char whole[SECTION_NAME_SIZE + HOST_PATTERN_SIZE];
    bool is_address = strchr(target->host, ':') != NULL;

    if (group != NULL)
        snprintf(whole, sizeof whole, "{%s}", group->name);
    else
        snprintf(whole, sizeof whole, "%s%s%s:%u%s", is_address ? "[" : "", target->host, is_address ? "]" : "",
                 (unsigned)target->port, path);
    set_bucket_name(bucket->name, whole);
}

/* The host's own, or its group's. */
static void add_host_bucket(const struct config *config, const struct policy_target *target,
                            struct resolved_policy *out)
{
    struct policy_bucket *bucket = &out->buckets[out->bucket_count++];
    struct origin origins[POLICY_KEY_COUNT];
    const struct section *group = NULL;
    struct policy values;

    for (unsigned i = 0; i < out->section_count && group == NULL; i++)
        if (out->sections[i]->path == NULL && groups(out->sections[i]))
            group = out->sections[i];
    name_bucket(bucket, target, group, "");
    cascade(config, out, 0, false, &values, origins);
    limits_from_policy(&values, &bucket->limits, NULL);
}

static bool has_own_limit(const struct section *section)
{
    return (section->set[POLICY_KEY_quota] && section->values.quota.count > 0) ||
           (section->set[POLICY_KEY_rate] && section->values.rate.count > 0);
}

/* Of several sections for one path (by method, say) the most specific one has the say. */
static void add_path_buckets(const struct config *config, const struct policy_target *target,
                             struct resolved_policy *out)
{
    struct origin origins[POLICY_KEY_COUNT];
    struct policy values;

    for (unsigned i = 0; i < out->section_count && out->bucket_count <= POLICY_PATHS_MAX; i++) {
        const struct section *section = out->sections[i];
        struct policy_bucket *bucket = &out->buckets[out->bucket_count];
        bool is_new = true;
        if (section->path == NULL || !has_own_limit(section))
            continue;
        name_bucket(bucket, target, groups(section) ? section : NULL, section->path);
        for (unsigned j = 0; j < out->bucket_count; j++)
            is_new &= strcmp(out->buckets[j].name, bucket->name) != 0;
        if (!is_new)
            continue;
        cascade(config, out, i, true, &values, origins);
        limits_from_policy(&values, &bucket->limits, NULL);
        out->bucket_count++;
    }
}

/* A background call that may fail: one attempt, no waiting, whatever else the sections say. */
static void apply_profile(struct resolved_policy *out)
{
    if (out->values.profile != PROFILE_BEST_EFFORT)
        return;
    out->values.max_attempts = 1;
    out->values.max_wait = 0;
    out->origins[POLICY_KEY_max_attempts] = out->origins[POLICY_KEY_max_wait] = out->origins[POLICY_KEY_profile];
}

void policy_resolve(const struct config *config, const struct policy_target *target, struct resolved_policy *out)
{
    out->section_count = 0;
    out->bucket_count = 0;
    out->host_is_named = false;
    collect(config, target, out);
    cascade(config, out, 0, true, &out->values, out->origins);
    apply_profile(out);
    add_host_bucket(config, target, out);
    add_path_buckets(config, target, out);
}

/* ---- a machine's buckets, and a user's own ---- */

/* A bucket that lets less through at any time: whoever keeps to it keeps to the other one, too. */
static bool is_kept_by(const struct limit *limit, const struct limits *others)
{
    for (unsigned i = 0; i < others->count; i++)
        if (others->item[i].rate <= limit->rate && others->item[i].burst <= limit->burst)
            return true;
    return false;
}

static bool are_stricter(const struct limits *own, const struct limits *others)
{
    for (unsigned i = 0; i < own->count; i++)
        if (!is_kept_by(&own->item[i], others))
            return true;
    return false;
}

static const struct limits *limits_of_bucket(const struct resolved_policy *resolved, const char *name)
{
    static const struct limits unlimited;
    for (unsigned i = 0; i < resolved->bucket_count; i++)
        if (strcmp(resolved->buckets[i].name, name) == 0)
            return &resolved->buckets[i].limits;
    return &unlimited;
}

void policy_tighten(struct resolved_policy *out, const struct resolved_policy *machine, uint32_t uid)
{
    struct policy_bucket wanted[POLICY_BUCKETS_MAX];
    const unsigned wanted_count = out->bucket_count;
    char whole[BUCKET_NAME_SIZE + sizeof " (uid 4294967295)"];

    memcpy(wanted, out->buckets, sizeof wanted);
    memcpy(out->buckets, machine->buckets, sizeof out->buckets);
    out->bucket_count = machine->bucket_count;
    /* How far a server's word to one is believed for all. */
    out->values.max_block = machine->values.max_block;
    out->values.spread = machine->values.spread;
    out->values.spread_max = machine->values.spread_max;
    for (unsigned i = 0; i < wanted_count && out->bucket_count < POLICY_BUCKETS_MAX; i++) {
        if (!are_stricter(&wanted[i].limits, limits_of_bucket(machine, wanted[i].name)))
            continue;
        struct policy_bucket *bucket = &out->buckets[out->bucket_count++];
        snprintf(whole, sizeof whole, "%.*s (uid %" PRIu32 ")", BUCKET_NAME_SIZE - 1, wanted[i].name, uid);
        set_bucket_name(bucket->name, whole);
        bucket->limits = wanted[i].limits;
    }
}

void policy_keep_to_itself(struct resolved_policy *resolved)
{
    static const char mark[] = " (observed)";
    for (unsigned i = 0; i < resolved->bucket_count; i++) {
        char *name = resolved->buckets[i].name;
        size_t length = strlen(name);
        size_t most = BUCKET_NAME_SIZE - sizeof mark;
        strcpy(name + (length < most ? length : most), mark);
    }
}
