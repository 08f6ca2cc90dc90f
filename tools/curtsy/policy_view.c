/* SPDX-License-Identifier: MIT */
/*
 * Policy view: see policy_view.h.  Values are compared as texts: texts and lists are kept by pointer,
 * and two spellings of one value are printed alike.
 */
#include "tools/curtsy/policy_view.h"
#include "tools/curtsy/output.h"

#include <limits.h>
#include <string.h>

const char *policy_value_text(const struct policy *values, enum policy_key key, char buffer[VALUE_TEXT_SIZE])
{
    keys_format_value(&policy_keys[key], (const char *)values + policy_keys[key].offset, buffer, VALUE_TEXT_SIZE);
    return buffer;
}

bool policy_value_is_default(const struct policy *values, enum policy_key key)
{
    struct policy defaults;
    char value[VALUE_TEXT_SIZE], usual[VALUE_TEXT_SIZE];

    policy_defaults(&defaults);
    return strcmp(policy_value_text(values, key, value), policy_value_text(&defaults, key, usual)) == 0;
}

void policy_apply_mode(struct resolved_policy *resolved, const char *mode)
{
    enum mode asked;

    if (mode == NULL || keys_parse_value(&policy_keys[POLICY_KEY_mode], mode, &asked) != NULL ||
        asked >= resolved->values.mode)
        return;
    resolved->values.mode = asked;
    resolved->origins[POLICY_KEY_mode] = (struct origin){"CURTSY_MODE", 0};
}

json_t *policy_values_json(const struct resolved_policy *resolved)
{
    json_t *object = json_object();
    char value[VALUE_TEXT_SIZE], origin[PATH_MAX + 16];

    for (unsigned i = 0; i < POLICY_KEY_COUNT; i++) {
        const struct key *key = &policy_keys[i];
        bool is_default = policy_value_is_default(&resolved->values, (enum policy_key)i);

        policy_value_text(&resolved->values, (enum policy_key)i, value);
        origin_text(resolved->origins[i], origin, sizeof(origin));
        json_object_set_new(object, key->name,
                            json_pack("{s:o, s:o, s:b, s:b}", "value", json_text(value), "origin", json_text(origin),
                                      "default", is_default, "in_force", key->in_force));
    }
    return object;
}

json_t *policy_limits_json(const struct limits *limits)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < limits->count; i++) {
        const struct limit *limit = &limits->item[i];
        json_t *quota = limit->published != 0 ? json_integer((json_int_t)limit->published) : json_null();

        json_array_append_new(array, json_pack("{s:f, s:f, s:o, s:f}", "rate_per_s", limit_rate_per_second(limit),
                                               "burst", (double)limit->burst / (double)TOKEN_ONE, "quota", quota,
                                               "window_s", (double)limit->window_ns / (double)NS_PER_SECOND));
    }
    return array;
}
