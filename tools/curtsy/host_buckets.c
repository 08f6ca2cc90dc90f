/* SPDX-License-Identifier: MIT */
/*
 * Host buckets: see host_buckets.h.  Names are made by core/policy.c; here they are only recognised.
 * A group's are found by resolving the host as a request would, once for each section that could
 * group it, since a section may speak for a path or a port only.
 */
#include "tools/curtsy/host_buckets.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT_HTTPS 443

/* ------------------------------------------------------------ the command line ---- */

static bool is_bare_address(const char *text)
{
    struct in6_addr address;

    return inet_pton(AF_INET6, text, &address) == 1;
}

static bool parse_port(const char *text, uint16_t *port)
{
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return false;
    unsigned long number = strtoul(text, &end, 10);
    *port = (uint16_t)number;
    return *end == '\0' && number > 0 && number <= UINT16_MAX;
}

bool host_word_parse(const char *text, struct host_word *word)
{
    const char *colon = strrchr(text, ':');
    size_t length = strlen(text);

    memset(word, 0, sizeof(*word));
    if (text[0] == '{' || strchr(text, '/') != NULL || strchr(text, ' ') != NULL) {
        bool is_url = strstr(text, "://") != NULL;
        snprintf(word->bucket, sizeof(word->bucket), "%s", text);
        return length > 1 && length < sizeof(word->bucket) && !is_url;
    }
    if (is_bare_address(text) || (colon != NULL && strchr(colon, ']') != NULL))
        colon = NULL;
    if (colon != NULL && !parse_port(colon + 1, &word->port))
        return false;
    if (colon != NULL)
        length = (size_t)(colon - text);
    if (memchr(text, '*', length) != NULL)
        return false;
    return policy_normalise_host(text, length, word->host, sizeof(word->host));
}

/* What is behind host and port in a bucket's name; NULL if that is another's. */
static const char *behind_host(const char *name, const struct host_word *word)
{
    bool is_address = strchr(word->host, ':') != NULL;
    size_t length = strlen(word->host);
    char *end;

    if (is_address && *name++ != '[')
        return NULL;
    if (strncmp(name, word->host, length) != 0)
        return NULL;
    name += length;
    if (is_address && *name++ != ']')
        return NULL;
    if (name[0] != ':' || name[1] < '0' || name[1] > '9')
        return NULL;
    unsigned long port = strtoul(name + 1, &end, 10);
    return word->port == 0 || port == word->port ? end : NULL;
}

/* `name` itself, or with something in parentheses behind it, for which a long one is cut. */
static bool is_form_of(const char *name, const char *whole)
{
    size_t same = 0;

    while (name[same] != '\0' && name[same] == whole[same])
        same++;
    if (whole[same] == '\0' && (name[same] == '\0' || strncmp(name + same, " (", 2) == 0))
        return true;
    return strncmp(name + same, " (", 2) == 0 && strlen(name) == BUCKET_NAME_SIZE - 1;
}

bool host_word_names(const struct host_word *word, const char *bucket_name)
{
    return word->host[0] != '\0' ? behind_host(bucket_name, word) != NULL : is_form_of(bucket_name, word->bucket);
}

/* ----------------------------------------------------------- the configuration ---- */

static void resolve(const struct policy_target *target, const struct config *config, const struct config *machine,
                    struct resolved_policy *out)
{
    struct resolved_policy administrators;

    policy_resolve(config, target, out);
    if (machine == NULL)
        return;
    policy_resolve(machine, target, &administrators);
    policy_tighten(out, &administrators, (uint32_t)geteuid());
}

static struct policy_target target_of(const struct host_word *word)
{
    return (struct policy_target){word->host, word->port != 0 ? word->port : PORT_HTTPS, "/", "GET", "", false};
}

void host_word_resolve(const struct host_word *word, const struct config *config, const struct config *machine,
                       struct resolved_policy *out)
{
    struct policy_target target = target_of(word);

    resolve(&target, config, machine, out);
}

/* Names of buckets that no host's name is in, or only the beginning of it. */
struct names {
    char (*item)[BUCKET_NAME_SIZE];
    size_t count;
};

static bool names_have(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (is_form_of(name, names->item[i]))
            return true;
    return false;
}

static bool names_add(struct names *names, const char *name)
{
    if (names_have(names, name))
        return true;
    char(*item)[BUCKET_NAME_SIZE] = reallocarray(names->item, names->count + 1, sizeof(*item));
    if (item == NULL)
        return false;
    names->item = item;
    snprintf(item[names->count++], BUCKET_NAME_SIZE, "%s", name);
    return true;
}

static bool add_resolved(struct names *names, const struct resolved_policy *resolved)
{
    for (unsigned i = 0; i < resolved->bucket_count; i++)
        if (!names_add(names, resolved->buckets[i].name))
            return false;
    return true;
}

/* What a request within the section draws on.  Each pattern may bring a port of its own, and a path
 * matches itself. */
static bool add_section(struct names *names, const struct host_word *word, const struct section *section,
                        const struct config *config, const struct config *machine)
{
    struct policy_target target = target_of(word);
    struct resolved_policy resolved;

    target.path = section->path != NULL ? section->path : "/";
    for (unsigned i = 0; i < section->pattern_count; i++) {
        if (word->port == 0)
            target.port = section->patterns[i].port != 0 ? section->patterns[i].port : PORT_HTTPS;
        if (!policy_section_matches(section, &target, NULL))
            continue;
        resolve(&target, config, machine, &resolved);
        if (!add_resolved(names, &resolved))
            return false;
    }
    return true;
}

static bool collect_names(struct names *names, const struct host_word *word, const struct config *config,
                          const struct config *machine)
{
    const struct config *const layers[] = {config, machine};

    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
        for (unsigned j = 0; layers[i] != NULL && j < layers[i]->section_count; j++) {
            const struct section *section = &layers[i]->sections[j];
            if (section->groups_hosts && !add_section(names, word, section, config, machine))
                return false;
        }
    return true;
}

/* ----------------------------------------------------------------- the buckets ---- */

static bool add_bucket(struct host_buckets *buckets, struct bucket *bucket)
{
    struct bucket **item = reallocarray(buckets->item, buckets->count + 1, sizeof(struct bucket *));

    if (item == NULL)
        return false;
    buckets->item = item;
    item[buckets->count++] = bucket;
    return true;
}

/* The bucket that a request would draw on first.  Under observe it is another one (the library keeps
 * what it observes apart), which is left to be made by a request: then a hold would stop nobody. */
static void make_first(const struct segment *segment, const struct resolved_policy *resolved, int64_t now_ns)
{
    if (resolved->bucket_count > 0)
        segment_bucket(segment, resolved->buckets[0].name, now_ns);
}

bool host_buckets_find(const struct segment *segment, const struct host_word *word, const struct config *config,
                       const struct config *machine, bool make, int64_t now_ns, struct host_buckets *out)
{
    struct resolved_policy resolved;
    struct bucket_state state;
    struct names names = {NULL, 0};
    struct bucket *bucket;
    unsigned cursor = 0;
    bool is_whole = true;

    *out = (struct host_buckets){NULL, 0};
    if (word->host[0] != '\0') {
        host_word_resolve(word, config, machine, &resolved);
        if (make)
            make_first(segment, &resolved, now_ns);
        is_whole = add_resolved(&names, &resolved) && collect_names(&names, word, config, machine);
    }
    while (is_whole && (bucket = segment_next(segment, &cursor)) != NULL) {
        bucket_read_state(bucket, now_ns, &state);
        if (host_word_names(word, state.name) || names_have(&names, state.name))
            is_whole = add_bucket(out, bucket);
    }
    free(names.item);
    return is_whole;
}

bool host_buckets_all(const struct segment *segment, struct host_buckets *out)
{
    struct bucket *bucket;
    unsigned cursor = 0;

    *out = (struct host_buckets){NULL, 0};
    while ((bucket = segment_next(segment, &cursor)) != NULL)
        if (!add_bucket(out, bucket))
            return false;
    return true;
}

void host_buckets_free(struct host_buckets *buckets)
{
    free(buckets->item);
    *buckets = (struct host_buckets){NULL, 0};
}
