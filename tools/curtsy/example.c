/* SPDX-License-Identifier: MIT */
/*
 * Examples: see example.h.
 */
#include "tools/curtsy/example.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXAMPLE_WORD "x-curtsy-example" /* a label, path segment, method and program that nobody has */
#define EXAMPLE_PORT 1                  /* tcpmux */

/* "*.example.com" with a label for its star. */
static void example_host(const struct host_pattern *pattern, char *host, size_t size)
{
    if (strcmp(pattern->host, "*") == 0)
        snprintf(host, size, EXAMPLE_HOST);
    else if (pattern->host[0] == '*')
        snprintf(host, size, EXAMPLE_WORD "%s", pattern->host + 1);
    else
        snprintf(host, size, "%s", pattern->host);
}

static void example_path(const char *pattern, char *path, size_t size)
{
    size_t used = 0;

    for (const char *from = pattern != NULL ? pattern : "/"; *from != '\0' && used + sizeof(EXAMPLE_WORD) < size;
         from++)
        if (*from == '*')
            used += (size_t)snprintf(path + used, size - used, EXAMPLE_WORD);
        else
            path[used++] = *from;
    path[used] = '\0';
}

struct search {
    const struct config *config;
    const struct section *section;
    example_visitor *visit;
    void *context;
};

static bool search_target(const struct search *search, struct policy_target *target)
{
    struct resolved_policy resolved;

    for (int has_credential = 0; has_credential <= 1; has_credential++) {
        target->has_credential = has_credential;
        if (!policy_section_matches(search->section, target, NULL))
            continue;
        policy_resolve(search->config, target, &resolved);
        if (search->visit(search->context, target, &resolved))
            return true;
    }
    return false;
}

static bool search_programs(const struct search *search, struct policy_target *target)
{
    target->program = EXAMPLE_WORD;
    if (search_target(search, target))
        return true;
    for (const char *const *program = search->section->programs; program != NULL && *program != NULL; program++) {
        target->program = *program;
        if ((*program)[0] != '!' && search_target(search, target))
            return true;
    }
    return false;
}

static bool search_methods(const struct search *search, struct policy_target *target)
{
    static const char *const usual[] = {"GET", EXAMPLE_WORD, NULL};
    const char *const *methods = search->section->methods != NULL ? search->section->methods : usual;

    for (; *methods != NULL; methods++) {
        target->method = *methods;
        if (search_programs(search, target))
            return true;
    }
    return false;
}

static bool search_ports(const struct search *search, const struct host_pattern *pattern, struct policy_target *target)
{
    static const uint16_t usual[] = {443, EXAMPLE_PORT};
    const uint16_t *ports = pattern->port != 0 ? &pattern->port : usual;

    for (unsigned i = 0; i < (pattern->port != 0 ? 1 : 2); i++) {
        target->port = ports[i];
        if (search_methods(search, target))
            return true;
    }
    return false;
}

bool example_search(const struct config *config, const struct section *section, example_visitor *visit, void *context)
{
    static const struct host_pattern any = {.host = "*"};
    const struct search search = {config, section, visit, context};
    const struct host_pattern *patterns = section->pattern_count > 0 ? section->patterns : &any;
    char host[512], path[2048];
    struct policy_target target = {.host = host, .path = path};

    example_path(section->path, path, sizeof(path));
    for (unsigned i = 0; i < (section->pattern_count > 0 ? section->pattern_count : 1); i++) {
        example_host(&patterns[i], host, sizeof(host));
        if (search_ports(&search, &patterns[i], &target))
            return true;
    }
    return false;
}

struct resolving {
    const struct config *machine;
    const struct section *section;
    struct resolved_policy *out;
    bool is_found;
};

static void tighten(const struct config *machine, const struct policy_target *target, struct resolved_policy *resolved)
{
    struct resolved_policy administrators;

    if (machine == NULL)
        return;
    policy_resolve(machine, target, &administrators);
    policy_tighten(resolved, &administrators, geteuid());
}

static bool resolve_visit(void *context, const struct policy_target *target, const struct resolved_policy *resolved)
{
    struct resolving *resolving = context;
    bool is_own = resolved->section_count > 0 && resolved->sections[0] == resolving->section;

    if (is_own || !resolving->is_found) {
        *resolving->out = *resolved;
        tighten(resolving->machine, target, resolving->out);
    }
    resolving->is_found = true;
    return is_own;
}

void example_resolve(const struct config *config, const struct section *section, struct resolved_policy *resolved)
{
    example_resolve_all(config, NULL, section, resolved);
}

void example_resolve_all(const struct config *config, const struct config *machine, const struct section *section,
                         struct resolved_policy *resolved)
{
    struct resolving resolving = {.machine = machine, .section = section, .out = resolved};
    const struct policy_target anything = {EXAMPLE_HOST, 443, "/", "GET", EXAMPLE_WORD, false};

    if (example_search(config, section, resolve_visit, &resolving) || resolving.is_found)
        return;
    policy_resolve(config, &anything, resolved);
    tighten(machine, &anything, resolved);
}

static bool same_origin(struct origin a, struct origin b)
{
    return a.file != NULL && b.file != NULL && a.line == b.line && strcmp(a.file, b.file) == 0;
}

/* What the profile says instead is no other section's key. */
static bool is_profiled(const struct resolved_policy *resolved, const struct section *section, unsigned key)
{
    if (resolved->values.profile != PROFILE_BEST_EFFORT ||
        (key != POLICY_KEY_max_attempts && key != POLICY_KEY_max_wait))
        return false;
    for (unsigned i = 0; i < resolved->section_count; i++)
        if (resolved->sections[i]->set[key])
            return resolved->sections[i] == section;
    return false;
}

static bool decides_visit(void *context, const struct policy_target *target, const struct resolved_policy *resolved)
{
    const struct section *section = context;
    bool sets_anything = false;

    (void)target;
    for (unsigned key = 0; key < POLICY_KEY_COUNT; key++) {
        if (!section->set[key])
            continue;
        sets_anything = true;
        if (same_origin(resolved->origins[key], section->origins[key]) || is_profiled(resolved, section, key))
            return true;
    }
    return !sets_anything;
}

bool example_is_reached(const struct config *config, const struct section *section)
{
    return example_search(config, section, decides_visit, (void *)section);
}
