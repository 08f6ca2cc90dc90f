/* SPDX-License-Identifier: MIT */
/*
 * Policy: which sections speak for a request, what is in force for it, and which buckets it draws
 * on.
 *
 * All sections that match are laid over each other, the least specific first, and each key is
 * taken from the most specific one that sets it.  One total order of specificity, most significant
 * first:
 *   1. host: exact, then the wildcard with more labels, then "*", then [default];
 *   2. port named, before every port;
 *   3. path: more literal characters, then more characters; none last;
 *   4. methods named, before every method;
 *   5. programs named (not only excluded), then excluded, then every program;
 *   6. credential named;
 *   7. the later one in the layers' order.
 * quota and rate exclude each other and count as one key: who sets either of them has said what the
 * limit is, so that `quota = none` lifts a rate that would be inherited.
 *
 * `*.example.com` matches one or more labels before .example.com, and not example.com itself.  A path
 * matches up to a segment's boundary; a `*` in it stands for any characters within one segment, and
 * for none.
 *
 * Read-only on the config: thread-safe.  No allocation in policy_resolve.
 */
#ifndef CURTSY_CORE_POLICY_H
#define CURTSY_CORE_POLICY_H

#include "core/config.h"
#include "core/limits.h"

/* A request, as far as sections can tell requests apart.  Nothing is kept beyond the call. */
struct policy_target {
    const char *host;    /* lower case, no brackets, no trailing dot (policy_normalise_host) */
    uint16_t port;       /* as connected to, defaults filled in */
    const char *path;    /* with its leading '/', without query and fragment */
    const char *method;  /* "GET" */
    const char *program; /* basename of the executable or script */
    bool has_credential;
};

#define POLICY_SECTIONS_MAX 32 /* that may match one request; more are ignored, least specific first */
#define POLICY_PATHS_MAX 2     /* path sections with buckets of their own that a request draws on */
#define POLICY_BUCKETS_MAX 4   /* the host's (or the group's), those, and a user's own */
#define BUCKET_NAME_SIZE 112

/* A bucket that a request draws on: how it is named in the segment, and what limits it has.
 * Its name is "host:port" ("[::1]:8443"), "{section name}" where hosts are grouped, or
 * "host:port/path/pattern" for a path section with a quota or rate of its own.  A section for some
 * methods, programs or credentials only groups no hosts and has no bucket of its own name: what it
 * says about limits counts for the bucket of its host, or of its path, that everybody shares. */
struct policy_bucket {
    char name[BUCKET_NAME_SIZE]; /* longer ones end in '~' and 16 hex digits of a hash of the whole */
    struct limits limits;
};

struct resolved_policy {
    struct policy values;
    struct origin origins[POLICY_KEY_COUNT];
    const struct section *sections[POLICY_SECTIONS_MAX]; /* the most specific first; [default] last */
    unsigned section_count;
    bool host_is_named; /* a section other than [default] and "*" speaks for this host */
    struct policy_bucket buckets[POLICY_BUCKETS_MAX];
    unsigned bucket_count; /* at least 1 */
};

/* Called by config_builder_finish: an index by host, so that 10,000 sections cost a look-up and
 * not a scan.  False when out of memory. */
bool policy_index_build(struct config *config);
void policy_index_free(struct policy_index *index);

void policy_resolve(const struct config *config, const struct policy_target *target, struct resolved_policy *out);

/* On a machine whose administrator has named one segment for all its users, only what he says sets a
 * bucket; a user may tighten himself.  `out` is what holds for a request under all layers, `machine`
 * under the administrator's alone.  Afterwards out->buckets are the machine's, with the machine's
 * limits; and where a user's limits are stricter in any way than those of the machine's bucket of that
 * name, a bucket of his own is added, named "NAME (uid N)", as far as there is room: the host's first. */
void policy_tighten(struct resolved_policy *out, const struct resolved_policy *machine, uint32_t uid);

/* What is only observed has buckets of its own, named "NAME (observed)": trying out a quota must not hold
 * up those who do not. */
void policy_keep_to_itself(struct resolved_policy *resolved);

/* Does this section match?  If not, *why (when not NULL) says what differs, for explain. */
bool policy_section_matches(const struct section *section, const struct policy_target *target, const char **why);

/* Lower-cases, drops brackets and one trailing dot.  False if it does not fit or is empty. */
bool policy_normalise_host(const char *host, size_t length, char *out, size_t size);

#endif
