/* SPDX-License-Identifier: MIT */
/*
 * Keys: the table of keys.def as arrays that can be walked and searched.  How values are read and
 * written is in key_values.c.
 */
#include "core/keys.h"

#include "core/scan.h"

/* clang-format off */
/* The words of the choices, in the order of their enums. */
static const char *const profile_words[] = {"normal", "best_effort", NULL};
static const char *const mode_words[] = {"off", "observe", "enforce", NULL};
static const char *const shape_words[] = {"bucket", "window", NULL};
static const char *const scope_words[] = {"credential", "host", "section", "process", NULL};
static const char *const on_max_wait_words[] = {"fail", "send", NULL};
static const char *const idempotent_words[] = {"auto", "yes", "no", NULL};
static const char *const retry_after_words[] = {"obey", "ignore", NULL};
static const char *const idempotency_key_words[] = {"keep", "generate", NULL};
static const char *const reset_format_words[] = {"auto", "epoch", "epoch_ms", "delta", "delta_ms", "date", NULL};
static const char *const cache_words[] = {"off", "conditional", NULL};
static const char *const credential_words[] = {"any", "none", NULL};
static const char *const log_words[] = {"off", "error", "warn", "info", "debug", NULL};
static const char *const log_format_words[] = {"text", "json", NULL};

#define KEY_KIND_DURATION                KIND_DURATION, NULL, NULL
#define KEY_KIND_RATES                   KIND_RATES, NULL, NULL
#define KEY_KIND_PERCENT                 KIND_PERCENT, NULL, NULL
#define KEY_KIND_FACTOR                  KIND_FACTOR, NULL, NULL
#define KEY_KIND_COUNT                   KIND_COUNT, NULL, NULL
#define KEY_KIND_SIZE                    KIND_SIZE, NULL, NULL
#define KEY_KIND_BOOL                    KIND_BOOL, NULL, NULL
#define KEY_KIND_STATUSES                KIND_STATUSES, NULL, NULL
#define KEY_KIND_PERMISSIONS             KIND_PERMISSIONS, NULL, NULL
#define KEY_KIND_ERRORS                  KIND_ERRORS, NULL, NULL
#define KEY_KIND_TEXT                    KIND_TEXT, NULL, NULL
#define KEY_KIND_NAME                    KIND_NAME, NULL, NULL
#define KEY_KIND_NAMES                   KIND_NAMES, NULL, NULL
#define KEY_KIND_CHOICE_PROFILE          KIND_CHOICE, profile_words, "normal or best_effort"
#define KEY_KIND_CHOICE_MODE             KIND_CHOICE, mode_words, "off, observe or enforce"
#define KEY_KIND_CHOICE_SHAPE            KIND_CHOICE, shape_words, "bucket or window"
#define KEY_KIND_CHOICE_SCOPE            KIND_CHOICE, scope_words, "credential, host, section or process"
#define KEY_KIND_CHOICE_ON_MAX_WAIT      KIND_CHOICE, on_max_wait_words, "fail or send"
#define KEY_KIND_CHOICE_IDEMPOTENT       KIND_CHOICE, idempotent_words, "auto, yes or no"
#define KEY_KIND_CHOICE_RETRY_AFTER      KIND_CHOICE, retry_after_words, "obey or ignore"
#define KEY_KIND_CHOICE_IDEMPOTENCY_KEY  KIND_CHOICE, idempotency_key_words, "keep or generate"
#define KEY_KIND_CHOICE_RESET_FORMAT     KIND_CHOICE, reset_format_words, "auto, epoch, epoch_ms, delta, delta_ms or date"
#define KEY_KIND_CHOICE_CACHE            KIND_CHOICE, cache_words, "off or conditional"
#define KEY_KIND_CHOICE_CREDENTIAL       KIND_CHOICE, credential_words, "any or none"
#define KEY_KIND_CHOICE_LOG              KIND_CHOICE, log_words, "off, error, warn, info or debug"
#define KEY_KIND_CHOICE_LOG_FORMAT       KIND_CHOICE, log_format_words, "text or json"

const struct key match_keys[MATCH_KEY_COUNT] = {
#define MATCH_KEY(name, kind, in_force, help) \
    {#name, KEY_GROUP_MATCH, KEY_KIND_##kind, NULL, in_force, help, 0, sizeof(KEY_TYPE_##kind)},
#include "core/keys.def"
};

const struct key policy_keys[POLICY_KEY_COUNT] = {
#define POLICY_KEY(name, kind, default_text, in_force, help) \
    {#name, KEY_GROUP_POLICY, KEY_KIND_##kind, default_text, in_force, help, \
     offsetof(struct policy, name), sizeof(KEY_TYPE_##kind)},
#include "core/keys.def"
};

const struct key curtsy_keys[CURTSY_KEY_COUNT] = {
#define CURTSY_KEY(name, kind, default_text, in_force, help) \
    {#name, KEY_GROUP_CURTSY, KEY_KIND_##kind, default_text, in_force, help, \
     offsetof(struct settings, name), sizeof(KEY_TYPE_##kind)},
#include "core/keys.def"
};

const struct key *const all_keys[] = {
#define MATCH_KEY(name, kind, in_force, help) &match_keys[MATCH_KEY_##name],
#define POLICY_KEY(name, kind, default_text, in_force, help) &policy_keys[POLICY_KEY_##name],
#define CURTSY_KEY(name, kind, default_text, in_force, help) &curtsy_keys[CURTSY_KEY_##name],
#include "core/keys.def"
};
/* clang-format on */
const size_t all_keys_count = sizeof all_keys / sizeof all_keys[0];

static const struct key *group_keys(enum key_group group, size_t *count)
{
    switch (group) {
    case KEY_GROUP_MATCH:
        *count = MATCH_KEY_COUNT;
        return match_keys;
    case KEY_GROUP_CURTSY:
        *count = CURTSY_KEY_COUNT;
        return curtsy_keys;
    case KEY_GROUP_POLICY:
        break;
    }
    *count = POLICY_KEY_COUNT;
    return policy_keys;
}

const struct key *keys_find(enum key_group group, const char *name)
{
    size_t count;
    const struct key *keys = group_keys(group, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* The optimal string alignment distance. */
unsigned keys_distance(const char *a, const char *b)
{
    size_t a_length = strlen(a), b_length = strlen(b);
    unsigned rows[3][KEYS_DISTANCE_LENGTH_MAX + 1];
    unsigned *before = rows[0], *above = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b_length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned *oldest = before;
        before = above;
        above = row;
        row = oldest;
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            unsigned differs = scan_lower(a[i - 1]) != scan_lower(b[j - 1]);
            row[j] = least(least(above[j] + 1, row[j - 1] + 1), above[j - 1] + differs);
            if (i > 1 && j > 1 && scan_lower(a[i - 1]) == scan_lower(b[j - 2]) &&
                scan_lower(a[i - 2]) == scan_lower(b[j - 1]))
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return row[b_length];
}

const char *keys_nearest_word(const char *word, const char *const *words, size_t count)
{
    const char *nearest = NULL;
    unsigned nearest_distance = UINT32_MAX;

    if (strlen(word) > KEYS_DISTANCE_LENGTH_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(words[i]);
        if (length > KEYS_DISTANCE_LENGTH_MAX)
            continue;
        unsigned distance = keys_distance(word, words[i]);
        /* One slip in three letters: more is another word. */
        if (distance <= (length + 2) / 3 && distance < nearest_distance) {
            nearest = words[i];
            nearest_distance = distance;
        }
    }
    return nearest;
}

const char *keys_nearest(enum key_group group, const char *name)
{
    const char *names[MATCH_KEY_COUNT + POLICY_KEY_COUNT + CURTSY_KEY_COUNT];
    size_t count;
    const struct key *keys = group_keys(group, &count);

    for (size_t i = 0; i < count; i++)
        names[i] = keys[i].name;
    return keys_nearest_word(name, names, count);
}

void policy_defaults(struct policy *policy)
{
    memset(policy, 0, sizeof *policy);
    for (size_t i = 0; i < POLICY_KEY_COUNT; i++)
        keys_parse_value(&policy_keys[i], policy_keys[i].default_text, (char *)policy + policy_keys[i].offset);
}

void settings_defaults(struct settings *settings)
{
    memset(settings, 0, sizeof *settings);
    for (size_t i = 0; i < CURTSY_KEY_COUNT; i++)
        keys_parse_value(&curtsy_keys[i], curtsy_keys[i].default_text, (char *)settings + curtsy_keys[i].offset);
}
