/* SPDX-License-Identifier: MIT */
/*
 * Fuzzing the units: whatever is taken lies within its limits, and is printed so that it parses to
 * the same.
 */
#include "core/keys.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_duration(const char *text)
{
    char printed[64];
    int64_t ns, again;
    if (units_parse_duration(text, &ns) != NULL)
        return;
    require(ns >= 0 && ns <= INT64_C(3650) * 86400 * NS_PER_SECOND);
    require((size_t)units_format_duration(printed, sizeof printed, ns) < sizeof printed);
    require(units_parse_duration(printed, &again) == NULL && again == ns);
}

static void check_rates(const char *text)
{
    struct rate_list list, again;
    if (units_parse_rates(text, &list) != NULL)
        return;
    require(list.count >= 1 && list.count <= RATES_MAX);
    for (unsigned i = 0; i < list.count; i++) {
        char printed[64];
        require(list.item[i].count >= 1 && list.item[i].window_ns >= NS_PER_MS);
        require((size_t)units_format_rate(printed, sizeof printed, list.item[i]) < sizeof printed);
        require(units_parse_rates(printed, &again) == NULL && again.count == 1);
        require(again.item[0].count == list.item[i].count && again.item[0].window_ns == list.item[i].window_ns);
    }
}

static void check_parts(const char *text)
{
    char printed[64];
    uint32_t ppm, again;
    if (units_parse_factor(text, &ppm) == NULL)
        require(ppm <= PPM_ONE);
    if (units_parse_percent(text, &ppm) != NULL)
        return;
    require(ppm <= PPM_ONE);
    require((size_t)units_format_percent(printed, sizeof printed, ppm) < sizeof printed);
    require(units_parse_percent(printed, &again) == NULL && again == ppm);
}

static void check_size(const char *text)
{
    char printed[64];
    uint64_t bytes, again;
    if (units_parse_size(text, &bytes) != NULL)
        return;
    require((size_t)units_format_size(printed, sizeof printed, bytes) < sizeof printed);
    require(units_parse_size(printed, &again) == NULL && again == bytes);
}

/* The same through the table, which knows lists, choices, and the words auto and none. */
static void check_keys(const char *text)
{
    char printed[8192], again[8192];
    for (size_t i = 0; i < all_keys_count; i++) {
        const struct key *key = all_keys[i];
        union {
            struct rate_list rates;
            struct status_set statuses;
            const char *text;
        } value;
        if (keys_parse_value(key, text, &value) != NULL)
            continue;
        require((size_t)keys_format_value(key, &value, printed, sizeof printed) < sizeof printed);
        require(keys_parse_value(key, printed, &value) == NULL);
        keys_format_value(key, &value, again, sizeof again);
        require(strcmp(printed, again) == 0);
    }
    for (enum key_group group = KEY_GROUP_MATCH; group <= KEY_GROUP_CURTSY; group++) {
        const char *nearest = keys_nearest(group, text);
        require(nearest == NULL || keys_find(group, nearest) != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[2048];
    uint32_t count;
    bool flag;

    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    check_duration(text);
    check_rates(text);
    check_parts(text);
    check_size(text);
    if (units_parse_count(text, &count) == NULL)
        require(count <= 1000000000);
    units_parse_bool(text, &flag);
    check_keys(text);
    return 0;
}
