/* SPDX-License-Identifier: MIT */
/*
 * Host buckets: which buckets of a segment are meant by what an operator calls a host.
 *
 * "api.github.com" are the buckets of that host at every port, those of its paths included;
 * "host:8443" and "[::1]:8443" only those of that port.  A host that a section groups with others has no
 * bucket of its own but the section's, "{section name}", which the others share: it is found by asking
 * the configuration.  A bucket may be named outright as well, as `curtsy status` shows it:
 * "{section name}", "api.github.com:443/search".
 *
 * A bucket's name may have something in parentheses behind it, as in "api.github.com:443 (observed)":
 * that belongs to the host, too.
 */
#ifndef CURTSY_TOOLS_HOST_BUCKETS_H
#define CURTSY_TOOLS_HOST_BUCKETS_H

#include "core/policy.h"
#include "core/segment.h"

#define HOST_WORD_SIZE 256

/* What was written on the command line. */
struct host_word {
    char host[HOST_WORD_SIZE]; /* normalised; "": `bucket` is named outright */
    uint16_t port;             /* 0: every port */
    char bucket[BUCKET_NAME_SIZE];
};

/* False if the text is neither a host nor a bucket's name. */
bool host_word_parse(const char *text, struct host_word *word);

/* Does a bucket's name say that it is meant?  Groups are told by host_buckets_find only. */
bool host_word_names(const struct host_word *word, const char *bucket_name);

/* What holds for a request to that host, at port 443 where none is said: the configuration, and the
 * machine's own one (may be NULL) as in policy_tighten.  The word names a host. */
void host_word_resolve(const struct host_word *word, const struct config *config, const struct config *machine,
                       struct resolved_policy *out);

struct host_buckets {
    struct bucket **item;
    size_t count;
};

/* Every bucket in the segment that is meant, in the table's order.  `make`: the one that a request to
 * the host would draw on first is made if it is not there.  False when out of memory.  To be freed. */
bool host_buckets_find(const struct segment *segment, const struct host_word *word, const struct config *config,
                       const struct config *machine, bool make, int64_t now_ns, struct host_buckets *out);

/* Every bucket there is. */
bool host_buckets_all(const struct segment *segment, struct host_buckets *out);

void host_buckets_free(struct host_buckets *buckets);

#endif
