/* SPDX-License-Identifier: MIT */
/*
 * Keys: what the table of keys.def makes.  struct policy is the effective configuration of one
 * request, one field a key; `keys` describes each key at run time (name, kind, default, help,
 * where its value lives), so that parsing, merging, explaining and documenting are loops.
 */
#ifndef CURTSY_CORE_KEYS_H
#define CURTSY_CORE_KEYS_H

#include "core/units.h"

/* Statuses 100..599 as a bit set. */
struct status_set {
    uint64_t bits[8];
};
static inline bool status_set_has(const struct status_set *set, int status)
{
    return status >= 100 && status < 600 && (set->bits[(status - 100) / 64] >> ((status - 100) % 64) & 1);
}

/* Kinds of connection errors (retry_errors), a bit each. */
enum error_kind {
    ERROR_RESOLVE = 1u << 0, /* the name could not be resolved, or not now */
    ERROR_CONNECT = 1u << 1, /* no connection: refused, unreachable */
    ERROR_TIMEOUT = 1u << 2, /* a connect, low-speed or server-response timer */
    ERROR_RESET = 1u << 3,   /* the connection broke: ECONNRESET, EPIPE, empty reply */
    ERROR_STREAM = 1u << 4,  /* an HTTP/2 or HTTP/3 stream was refused or closed */
};

/* The choices; the words that a user writes are in keys.c, in this order.  Intrusiveness grows
 * in enum mode, so that "the least intrusive wins" is a minimum. */
enum mode { MODE_OFF, MODE_OBSERVE, MODE_ENFORCE };
enum profile { PROFILE_NORMAL, PROFILE_BEST_EFFORT };
enum shape { SHAPE_BUCKET, SHAPE_WINDOW };
enum scope { SCOPE_CREDENTIAL, SCOPE_HOST, SCOPE_SECTION, SCOPE_PROCESS };
enum on_max_wait { ON_MAX_WAIT_FAIL, ON_MAX_WAIT_SEND };
enum idempotent { IDEMPOTENT_AUTO, IDEMPOTENT_YES, IDEMPOTENT_NO };
enum retry_after_rule { RETRY_AFTER_OBEY, RETRY_AFTER_IGNORE };
enum idempotency_key_rule { IDEMPOTENCY_KEY_KEEP, IDEMPOTENCY_KEY_GENERATE };
enum reset_format { RESET_AUTO, RESET_EPOCH, RESET_EPOCH_MS, RESET_DELTA, RESET_DELTA_MS, RESET_DATE };
enum cache_rule { CACHE_OFF, CACHE_CONDITIONAL };
enum credential_match { CREDENTIAL_ANY, CREDENTIAL_NONE };
enum log_level { LOG_OFF, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_TEXT, LOG_JSON };

/* "auto" and "none", kept in the field itself. */
#define DURATION_AUTO INT64_C(-1)
#define DURATION_NONE INT64_C(-2)
#define COUNT_AUTO UINT32_MAX
#define COUNT_NONE (UINT32_MAX - 1)

#define PRESET_NAME_MAX 100 /* characters of a preset's name; see `presets` in keys.def */

/* What each kind of value is kept as.  Texts point into the configuration they came from. */
#define KEY_TYPE_DURATION int64_t
#define KEY_TYPE_RATES struct rate_list
#define KEY_TYPE_PERCENT uint32_t /* parts per million */
#define KEY_TYPE_FACTOR uint32_t  /* parts per million */
#define KEY_TYPE_COUNT uint32_t
#define KEY_TYPE_SIZE uint64_t
#define KEY_TYPE_BOOL bool
#define KEY_TYPE_STATUSES struct status_set
#define KEY_TYPE_PERMISSIONS uint32_t /* as for chmod(2) */
#define KEY_TYPE_ERRORS uint32_t
#define KEY_TYPE_TEXT const char *  /* NULL: none or auto */
#define KEY_TYPE_NAME const char *  /* one header name; NULL: auto */
#define KEY_TYPE_NAMES const char * /* names with commas; NULL: none */
#define KEY_TYPE_CHOICE_PROFILE enum profile
#define KEY_TYPE_CHOICE_MODE enum mode
#define KEY_TYPE_CHOICE_SHAPE enum shape
#define KEY_TYPE_CHOICE_SCOPE enum scope
#define KEY_TYPE_CHOICE_ON_MAX_WAIT enum on_max_wait
#define KEY_TYPE_CHOICE_IDEMPOTENT enum idempotent
#define KEY_TYPE_CHOICE_RETRY_AFTER enum retry_after_rule
#define KEY_TYPE_CHOICE_IDEMPOTENCY_KEY enum idempotency_key_rule
#define KEY_TYPE_CHOICE_RESET_FORMAT enum reset_format
#define KEY_TYPE_CHOICE_CACHE enum cache_rule
#define KEY_TYPE_CHOICE_CREDENTIAL enum credential_match
#define KEY_TYPE_CHOICE_LOG enum log_level
#define KEY_TYPE_CHOICE_LOG_FORMAT enum log_format

/* The effective policy of a request: a field for each POLICY_KEY. */
struct policy {
#define POLICY_KEY(name, kind, default_text, in_force, help) KEY_TYPE_##kind name;
#include "core/keys.def"
};

/* Settings of Curtsy itself: a field for each CURTSY_KEY. */
struct settings {
#define CURTSY_KEY(name, kind, default_text, in_force, help) KEY_TYPE_##kind name;
#include "core/keys.def"
};

enum policy_key {
#define POLICY_KEY(name, kind, default_text, in_force, help) POLICY_KEY_##name,
#include "core/keys.def"
    POLICY_KEY_COUNT
};

enum curtsy_key {
#define CURTSY_KEY(name, kind, default_text, in_force, help) CURTSY_KEY_##name,
#include "core/keys.def"
    CURTSY_KEY_COUNT
};

enum match_key {
#define MATCH_KEY(name, kind, in_force, help) MATCH_KEY_##name,
#include "core/keys.def"
    MATCH_KEY_COUNT
};

enum value_kind {
    KIND_DURATION,
    KIND_RATES,
    KIND_PERCENT,
    KIND_FACTOR,
    KIND_COUNT,
    KIND_SIZE,
    KIND_BOOL,
    KIND_STATUSES,
    KIND_PERMISSIONS,
    KIND_ERRORS,
    KIND_TEXT,
    KIND_NAME,
    KIND_NAMES,
    KIND_CHOICE,
};

enum key_group { KEY_GROUP_MATCH, KEY_GROUP_POLICY, KEY_GROUP_CURTSY };

/* One key, described. */
struct key {
    const char *name;
    enum key_group group;
    enum value_kind kind;
    const char *const *choices; /* KIND_CHOICE: its words, NULL at the end; else NULL */
    const char *expected;       /* KIND_CHOICE: the same as a phrase ("off, observe or enforce"); else NULL */
    const char *default_text;   /* NULL for a matcher */
    bool in_force;
    const char *help;
    size_t offset; /* in struct policy or struct settings; 0 for a matcher */
    size_t size;
};

extern const struct key match_keys[MATCH_KEY_COUNT];
extern const struct key policy_keys[POLICY_KEY_COUNT];
extern const struct key curtsy_keys[CURTSY_KEY_COUNT];

/* All keys in the table's order, matchers first. */
extern const struct key *const all_keys[];
extern const size_t all_keys_count;

/* The key of that name in that group, or NULL.  Names are compared exactly. */
const struct key *keys_find(enum key_group group, const char *name);

/* The nearest name in that group by edit distance, for "did you mean"; NULL if none is near. */
const char *keys_nearest(enum key_group group, const char *name);

/* The same among any words, of which there are `count`. */
const char *keys_nearest_word(const char *word, const char *const *words, size_t count);

/* How many letters apart two words are, whatever their case: insertions, deletions, substitutions, and swaps
 * of neighbours.  Both are at most so long: */
#define KEYS_DISTANCE_LENGTH_MAX 40
unsigned keys_distance(const char *a, const char *b);

/* Parses `text` as a value of `key` into `out` (of key->size bytes).  Texts are kept as the
 * pointer given: the caller hands in memory that lives as long as the value.  "none" and "auto" are
 * taken where they are the key's default; "none" also where a value is a list that may be empty.
 * Returns NULL, or what was expected. */
const char *keys_parse_value(const struct key *key, const char *text, void *out);

/* "auto" or "none", where the key takes that word instead of a value; else NULL. */
const char *keys_special_word(const struct key *key);

/* Prints a value so that it parses to the same one.  Return value as snprintf's. */
int keys_format_value(const struct key *key, const void *value, char *buffer, size_t size);

/* Every field at its built-in default. */
void policy_defaults(struct policy *policy);
void settings_defaults(struct settings *settings);

#endif
