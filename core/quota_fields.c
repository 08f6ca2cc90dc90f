/* SPDX-License-Identifier: MIT */
/*
 * Every spelling comes down to a list of windows, of which one governs.  Two kinds of readers make
 * windows: one for the families of plain fields, which is a loop over a table of names, and one for
 * the structured fields of the IETF draft.  Policies (a quota and the window it is for) are gathered
 * first, since a window rarely says its own length.
 *
 * A new family of plain fields is a row in `families`.
 */
#include "core/quota_fields.h"

#include "core/field_value.h"
#include "core/retry_after.h"
#include "core/structured_field.h"
#include "core/units.h"

#include <stdio.h>

#define WINDOWS_MAX 16
#define POLICIES_MAX 16
#define VALUES_MAX 8

/* A field that holds a time, and what a bare number in it is. */
struct time_field {
    const char *name;
    enum field_number number;
};

/* Fields that speak of one window.  A list ends at its first NULL; the first usable entry counts. */
struct family {
    const char *limit;
    const char *remaining;
    const char *used;
    struct time_field reset[3];
    struct time_field window[3];
};

static const struct family families[] = {
    {
        .limit = "ratelimit-limit",
        .remaining = "ratelimit-remaining",
        .reset = {{"ratelimit-reset", FIELD_SECONDS_OR_EPOCH}, {"ratelimit-resettime", FIELD_SECONDS_OR_EPOCH}},
    },
    {
        .limit = "x-ratelimit-limit",
        .remaining = "x-ratelimit-remaining",
        .used = "x-ratelimit-used",
        .reset = {{"x-ratelimit-reset-after", FIELD_SECONDS},
                  {"x-ratelimit-reset", FIELD_SECONDS_OR_EPOCH},
                  {"x-ratelimit-next", FIELD_SECONDS_OR_EPOCH}},
        .window = {{"x-ratelimit-period", FIELD_SECONDS}, {"x-ratelimit-window", FIELD_SECONDS}},
    },
    {
        .limit = "x-rate-limit-limit",
        .remaining = "x-rate-limit-remaining",
        .used = "x-rate-limit-used",
        .reset = {{"x-rate-limit-reset", FIELD_SECONDS_OR_EPOCH}},
        .window = {{"x-rate-limit-interval", FIELD_SECONDS}},
    },
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A quota for a window: `"name";q=100;w=60`, or `100;w=60` without a name. */
struct quota_policy {
    struct scan name, partition; /* at NULL: none */
    int64_t quota;
    int64_t window_ns;   /* QUOTA_UNKNOWN where it is not said */
    bool other_unit;     /* not requests: bytes, requests in progress */
    bool in_limit_field; /* said by a limit field, and so of that family alone */
    const char *field;
};

struct window {
    struct quota_fields fields;
    bool other_unit;
};

struct reading {
    const struct headers *headers;
    int64_t response_s;
    struct quota_policy policy[POLICIES_MAX];
    unsigned policy_count;
    struct window window[WINDOWS_MAX];
    unsigned window_count;
    char joined[HEADERS_BYTES]; /* the instances of a structured field, as one text */
    unsigned joined_length;
};

static const struct quota_fields nothing = {
    .limit = QUOTA_UNKNOWN, .remaining = QUOTA_UNKNOWN, .reset_ns = QUOTA_UNKNOWN, .window_ns = QUOTA_UNKNOWN};

static int64_t seconds_to_ns(int64_t seconds)
{
    return seconds > INT64_MAX / NS_PER_SECOND ? INT64_MAX : seconds * NS_PER_SECOND;
}

/* A window of which nothing is known is none. */
static void add_window(struct reading *reading, const struct quota_fields *fields, bool other_unit)
{
    bool is_known = fields->limit_field || fields->remaining_field || fields->reset_field;
    if (is_known && reading->window_count < WINDOWS_MAX)
        reading->window[reading->window_count++] = (struct window){.fields = *fields, .other_unit = other_unit};
}

static void add_policy(struct reading *reading, const struct quota_policy *policy)
{
    if (reading->policy_count < POLICIES_MAX)
        reading->policy[reading->policy_count++] = *policy;
}

/* A reset that lies beyond the window belongs to another one. */
static void set_window_length(struct quota_fields *fields, int64_t window_ns, const char *field)
{
    if (window_ns <= 0 || fields->reset_ns > window_ns)
        return;
    fields->window_ns = window_ns;
    fields->window_field = field;
}

/* ------------------------------------------------------------------- plain fields ---- */

/* The values of one field over all of its instances, in order; what cannot be read keeps its place
 * as QUOTA_UNKNOWN. */
struct values {
    unsigned count;
    int64_t value[VALUES_MAX];
};

static void add_value(struct values *values, int64_t value)
{
    if (values->count < VALUES_MAX)
        values->value[values->count++] = value;
}

/* "5,000": digits in groups of three after commas without a blank.  Nobody can tell whether this is
 * a list. */
static bool has_thousands_separator(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    if (digits < 1 || digits > 3 || text[digits] != ',')
        return false;
    for (text += digits; *text == ','; text += 4)
        if (strspn(text + 1, "0123456789") != 3)
            return false;
    return *text == '\0';
}

/* "150/15m": a limit and its window. */
static bool read_limit_per_window(struct reading *reading, const char *text, const char *name, struct values *values)
{
    struct quota_policy policy = {.field = name, .in_limit_field = true};
    const char *slash = strchr(text, '/');
    if (!slash || !field_parse_count(text, (size_t)(slash - text), &policy.quota) || policy.quota < 0 ||
        !field_parse_duration(slash + 1, strlen(slash + 1), &policy.window_ns))
        return false;
    add_value(values, policy.quota);
    add_policy(reading, &policy);
    return true;
}

static bool is_window_key(const struct scan *key)
{
    return structured_text_is(key, "w") || structured_text_is(key, "window");
}

/* "10, 10;w=1, 50;w=60" or "100;w=21600": the first member is the value, and so are further ones
 * without a window; a member with a window is a policy. */
static bool read_count_list(struct reading *reading, const char *text, const char *name, struct values *values)
{
    struct structured_field field;
    struct structured_item item, parameter;
    struct scan key;
    struct values found = {0};
    unsigned policies_before = reading->policy_count;

    structured_field_begin(&field, text, strlen(text));
    for (unsigned member = 0; structured_field_next_member(&field, &item); member++) {
        struct quota_policy policy = {.window_ns = QUOTA_UNKNOWN, .field = name, .in_limit_field = true};
        bool has_window = false;
        while (structured_field_next_parameter(&field, &key, &parameter))
            if (is_window_key(&key)) {
                has_window = true;
                if (parameter.type == STRUCTURED_INTEGER && parameter.integer > 0)
                    policy.window_ns = seconds_to_ns(parameter.integer);
            }
        if ((item.type != STRUCTURED_INTEGER && item.type != STRUCTURED_DECIMAL) ||
            !field_parse_count(item.text.at, (size_t)(item.text.end - item.text.at), &policy.quota))
            policy.quota = QUOTA_UNKNOWN;
        if (member == 0 || !has_window)
            add_value(&found, policy.quota);
        if (has_window && policy.quota >= 0)
            add_policy(reading, &policy);
    }
    if (field.failed) {
        reading->policy_count = policies_before;
        return false;
    }
    for (unsigned i = 0; i < found.count; i++)
        add_value(values, found.value[i]);
    return found.count > 0;
}

static void read_counts(struct reading *reading, const char *name, struct values *values)
{
    const char *text;
    *values = (struct values){0};
    for (unsigned nth = 0; name && (text = headers_value(reading->headers, name, nth)); nth++) {
        int64_t count;
        if (field_parse_count(text, strlen(text), &count))
            add_value(values, count);
        else if (has_thousands_separator(text) ||
                 !(read_limit_per_window(reading, text, name, values) || read_count_list(reading, text, name, values)))
            add_value(values, QUOTA_UNKNOWN);
    }
}

/* The first of the fields with a usable value speaks, with all of its values. */
static const char *read_times(struct reading *reading, const struct time_field *fields, size_t field_count,
                              struct values *values)
{
    for (size_t i = 0; i < field_count && fields[i].name; i++) {
        bool usable = false;
        const char *text;
        int64_t wait_ns;
        *values = (struct values){0};
        for (unsigned nth = 0; (text = headers_value(reading->headers, fields[i].name, nth)); nth++)
            while (field_next_wait(&text, fields[i].number, reading->response_s, &wait_ns)) {
                usable = usable || wait_ns != FIELD_UNUSABLE;
                add_value(values, wait_ns == FIELD_UNUSABLE ? QUOTA_UNKNOWN : wait_ns > 0 ? wait_ns : 0);
            }
        if (usable)
            return fields[i].name;
    }
    *values = (struct values){0};
    return NULL;
}

static int64_t largest(const struct values *values)
{
    int64_t most = QUOTA_UNKNOWN;
    for (unsigned i = 0; i < values->count; i++)
        if (values->value[i] > most)
            most = values->value[i];
    return most;
}

/* The position of the least that is known; a negative one counts as nothing left. */
static unsigned least(const struct values *values)
{
    unsigned position = 0;
    int64_t best = INT64_MAX;
    for (unsigned i = 0; i < values->count; i++) {
        int64_t value = values->value[i] == FIELD_NEGATIVE ? 0 : values->value[i];
        if (value != QUOTA_UNKNOWN && value < best) {
            best = value;
            position = i;
        }
    }
    return position;
}

/* Of two policies with the same quota neither can be told to be meant. */
static void set_window_by_quota(struct reading *reading, struct quota_fields *fields, const char *limit_name)
{
    const struct quota_policy *found = NULL;
    for (unsigned i = 0; i < reading->policy_count; i++) {
        const struct quota_policy *policy = &reading->policy[i];
        if (policy->window_ns == QUOTA_UNKNOWN || policy->quota != fields->limit ||
            (policy->in_limit_field && policy->field != limit_name))
            continue;
        if (found && found->window_ns != policy->window_ns)
            return;
        found = policy;
    }
    if (found)
        set_window_length(fields, found->window_ns, found->field);
}

/* Negative numbers: no limit is enforced where the limit is one, or where nothing else is known; with
 * a limit, more was taken than there was, and nothing is left. */
static bool settle_negatives(struct quota_fields *fields)
{
    if (fields->limit == FIELD_NEGATIVE)
        return false;
    if (fields->remaining == FIELD_NEGATIVE) {
        if (fields->limit <= 0)
            return false;
        fields->remaining = 0;
    }
    return true;
}

struct family_values {
    struct values limit, remaining, used, reset;
    const char *reset_field;
};

static int64_t value_at(const struct values *values, unsigned position)
{
    return position < values->count ? values->value[position] : QUOTA_UNKNOWN;
}

static void add_family_window(struct reading *reading, const struct family *family, const struct family_values *values,
                              int64_t limit, int64_t remaining, int64_t reset_ns)
{
    struct quota_fields fields = nothing;
    struct values lengths;
    int64_t used = value_at(&values->used, 0);

    fields.limit = limit;
    fields.limit_field = family->limit;
    fields.remaining = remaining;
    fields.reset_ns = reset_ns;
    if (!settle_negatives(&fields))
        return;
    if (limit == QUOTA_UNKNOWN && used >= 0 && fields.remaining >= 0) {
        fields.limit = used + fields.remaining;
        fields.limit_field = family->used;
    }
    fields.limit_field = fields.limit == QUOTA_UNKNOWN ? NULL : fields.limit_field;
    fields.remaining_field = fields.remaining == QUOTA_UNKNOWN ? NULL : family->remaining;
    fields.reset_field = fields.reset_ns == QUOTA_UNKNOWN ? NULL : values->reset_field;

    const char *length_field = read_times(reading, family->window, COUNT_OF(family->window), &lengths);
    if (length_field)
        set_window_length(&fields, value_at(&lengths, 0), length_field);
    if (fields.window_ns == QUOTA_UNKNOWN && fields.limit != QUOTA_UNKNOWN)
        set_window_by_quota(reading, &fields, family->limit);
    add_window(reading, &fields, false);
}

/* Fields that were repeated by stacked layers, or joined: lists of equal length are read position by
 * position.  Otherwise there is one window, with the least that is left, and the first limit: a lone
 * further one is an outer layer's. */
static void read_family(struct reading *reading, const struct family *family)
{
    struct family_values values;
    read_counts(reading, family->limit, &values.limit);
    read_counts(reading, family->remaining, &values.remaining);
    read_counts(reading, family->used, &values.used);
    values.reset_field = read_times(reading, family->reset, COUNT_OF(family->reset), &values.reset);

    unsigned count = values.remaining.count;
    bool limits_match = values.limit.count == count;
    bool resets_match = values.reset.count == count;
    if (count > 1 && (limits_match || values.limit.count == 0) && (resets_match || values.reset.count == 0)) {
        for (unsigned i = 0; i < count; i++)
            add_family_window(reading, family, &values, value_at(&values.limit, i), values.remaining.value[i],
                              value_at(&values.reset, i));
        return;
    }
    unsigned position = least(&values.remaining);
    add_family_window(reading, family, &values, value_at(&values.limit, limits_match ? position : 0),
                      value_at(&values.remaining, position),
                      resets_match ? value_at(&values.reset, position) : largest(&values.reset));
}

/* -------------------------------------------------------------- structured fields ---- */

static const char policy_name[] = "ratelimit-policy";
static const char state_name[] = "ratelimit";

static bool is_name(const struct structured_item *item)
{
    return item->type == STRUCTURED_STRING || item->type == STRUCTURED_TOKEN;
}

/* RFC 9110, section 5.3: a field in several lines is one list.  It fits, since what the names took
 * in `headers` is more than what the commas take here. */
static const char *join_instances(struct reading *reading, const char *name)
{
    const char *text = headers_value(reading->headers, name, 0);
    if (!text || !headers_value(reading->headers, name, 1))
        return text;
    char *joined = reading->joined + reading->joined_length;
    for (unsigned nth = 0; (text = headers_value(reading->headers, name, nth)); nth++) {
        int length = snprintf(reading->joined + reading->joined_length, HEADERS_BYTES - reading->joined_length, "%s%s",
                              nth ? ", " : "", text);
        reading->joined_length += (unsigned)length;
    }
    reading->joined_length++;
    return joined;
}

/* One policy; false if it is of no use. */
static bool read_policy(struct structured_field *field, const struct structured_item *item, struct quota_policy *policy)
{
    struct scan key;
    struct structured_item value;
    *policy = (struct quota_policy){.quota = QUOTA_UNKNOWN, .window_ns = QUOTA_UNKNOWN, .field = policy_name};
    if (is_name(item))
        policy->name = item->text;
    else if (item->type == STRUCTURED_INTEGER)
        policy->quota = item->integer;
    while (structured_field_next_parameter(field, &key, &value)) {
        bool is_integer = value.type == STRUCTURED_INTEGER;
        if (key.at == key.end)
            policy->name = value.text;
        else if (structured_text_is(&key, "q"))
            policy->quota = is_integer ? value.integer : QUOTA_UNKNOWN;
        else if (is_window_key(&key))
            policy->window_ns = is_integer && value.integer > 0 ? seconds_to_ns(value.integer) : QUOTA_UNKNOWN;
        else if (structured_text_is(&key, "qu"))
            policy->other_unit = !structured_text_is(&value.text, "requests");
        else if (structured_text_is(&key, "pk"))
            policy->partition = value.text;
    }
    return policy->quota >= 0;
}

static void read_policies(struct reading *reading)
{
    const char *text = join_instances(reading, policy_name);
    struct structured_field field;
    struct structured_item item;
    struct quota_policy policy;

    if (!text)
        return;
    structured_field_begin(&field, text, strlen(text));
    field.lenient = true;
    while (structured_field_next_member(&field, &item))
        if (read_policy(&field, &item, &policy))
            add_policy(reading, &policy);
    if (field.failed)
        reading->policy_count = 0;
}

/* By name, and by partition where both sides name one. */
static const struct quota_policy *find_policy(const struct reading *reading, const struct scan *name,
                                              const struct scan *partition)
{
    for (unsigned i = 0; i < reading->policy_count; i++) {
        const struct quota_policy *policy = &reading->policy[i];
        if (policy->name.at && structured_text_equals(&policy->name, name) &&
            (!policy->partition.at || !partition->at || structured_text_equals(&policy->partition, partition)))
            return policy;
    }
    return NULL;
}

/* `"default";r=50;t=30`.  False if a part of it is not what it must be. */
static bool read_state(const struct reading *reading, struct structured_field *field,
                       const struct structured_item *item, struct window *window)
{
    struct scan key, partition = {0};
    struct structured_item value;
    int64_t remaining = QUOTA_UNKNOWN, reset_s = QUOTA_UNKNOWN;
    bool valid = is_name(item);

    while (structured_field_next_parameter(field, &key, &value)) {
        bool is_remaining = structured_text_is(&key, "r"), is_reset = structured_text_is(&key, "t");
        if (is_remaining || is_reset)
            valid = valid && value.type == STRUCTURED_INTEGER && value.integer >= 0;
        if (is_remaining)
            remaining = value.integer;
        else if (is_reset)
            reset_s = value.integer;
        else if (structured_text_is(&key, "pk"))
            partition = value.text;
    }
    if (!valid)
        return false;
    struct quota_fields *fields = &window->fields;
    *window = (struct window){.fields = nothing};
    if (remaining != QUOTA_UNKNOWN) {
        fields->remaining = remaining;
        fields->remaining_field = state_name;
    }
    if (reset_s != QUOTA_UNKNOWN) {
        fields->reset_ns = seconds_to_ns(reset_s);
        fields->reset_field = state_name;
    }
    const struct quota_policy *policy = find_policy(reading, &item->text, &partition);
    if (policy) {
        fields->limit = policy->quota;
        fields->limit_field = policy->field;
        set_window_length(fields, policy->window_ns, policy->field);
        window->other_unit = policy->other_unit;
    }
    return true;
}

/* False if it is not a list; then nothing was added. */
static bool read_state_list(struct reading *reading, const char *text)
{
    struct structured_field field;
    struct structured_item item;
    struct window window;

    structured_field_begin(&field, text, strlen(text));
    while (structured_field_next_member(&field, &item))
        if (read_state(reading, &field, &item, &window))
            add_window(reading, &window.fields, window.other_unit);
    if (field.failed)
        reading->window_count = 0;
    return !field.failed;
}

/* `limit=100, remaining=50, reset=5`, the dictionary of one generation of the draft. */
static void read_state_dictionary(struct reading *reading, const char *text)
{
    struct structured_field field;
    struct structured_item item;
    struct scan key;
    struct quota_fields fields = nothing;
    bool valid = true;

    structured_field_begin(&field, text, strlen(text));
    while (structured_field_next_entry(&field, &key, &item)) {
        bool is_limit = structured_text_is(&key, "limit"), is_remaining = structured_text_is(&key, "remaining"),
             is_reset = structured_text_is(&key, "reset");
        if (is_limit || is_remaining || is_reset)
            valid = valid && item.type == STRUCTURED_INTEGER && item.integer >= 0;
        if (is_limit) {
            fields.limit = item.integer;
            fields.limit_field = state_name;
        } else if (is_remaining) {
            fields.remaining = item.integer;
            fields.remaining_field = state_name;
        } else if (is_reset) {
            fields.reset_ns = seconds_to_ns(item.integer);
            fields.reset_field = state_name;
        }
    }
    if (field.failed || !valid)
        return;
    if (fields.limit_field)
        set_window_by_quota(reading, &fields, state_name);
    add_window(reading, &fields, false);
}

static void read_states(struct reading *reading)
{
    const char *text = join_instances(reading, state_name);
    if (text && !read_state_list(reading, text))
        read_state_dictionary(reading, text);
}

/* Policies without any state: the quota is known, and nothing of what is left. */
static void add_policies_as_windows(struct reading *reading)
{
    for (unsigned i = 0; i < reading->policy_count; i++) {
        const struct quota_policy *policy = &reading->policy[i];
        struct quota_fields fields = nothing;
        fields.limit = policy->quota;
        fields.limit_field = policy->field;
        set_window_length(&fields, policy->window_ns, policy->field);
        add_window(reading, &fields, policy->other_unit);
    }
}

/* ------------------------------------------------------------------ which governs ---- */

/* Does a govern rather than b, which came first? */
static bool governs(const struct window *a, const struct window *b)
{
    const struct quota_fields *x = &a->fields, *y = &b->fields;
    if ((x->remaining == 0) != (y->remaining == 0))
        return x->remaining == 0;
    if (x->remaining == 0)
        return x->reset_ns > y->reset_ns;
    if ((x->remaining == QUOTA_UNKNOWN) != (y->remaining == QUOTA_UNKNOWN))
        return y->remaining == QUOTA_UNKNOWN;
    if (x->remaining == QUOTA_UNKNOWN)
        return x->limit != QUOTA_UNKNOWN && (y->limit == QUOTA_UNKNOWN || x->limit < y->limit);
    return x->remaining < y->remaining;
}

/* Bytes and the like cannot be compared with requests: such a window governs only when it is empty. */
static bool may_govern(const struct window *window)
{
    return !window->other_unit || window->fields.remaining == 0;
}

/* RFC 9111, section 5.1: a response from a cache carries Age; of several the first counts. */
static bool is_from_a_cache(const struct headers *headers)
{
    const char *age = headers_value(headers, "age", 0);
    int64_t seconds;
    return age && field_parse_count(age, strcspn(age, ","), &seconds) && seconds > 0;
}

struct quota_fields quota_fields_read(const struct headers *headers, int64_t now_s)
{
    struct reading reading = {.headers = headers, .response_s = response_time_s(headers, now_s)};
    const struct window *best = NULL;

    if (headers->count == 0 || is_from_a_cache(headers))
        return nothing;
    read_policies(&reading);
    read_states(&reading);
    for (size_t i = 0; i < COUNT_OF(families); i++)
        read_family(&reading, &families[i]);
    if (reading.window_count == 0)
        add_policies_as_windows(&reading);
    for (unsigned i = 0; i < reading.window_count; i++)
        if (may_govern(&reading.window[i]) && (!best || governs(&reading.window[i], best)))
            best = &reading.window[i];
    if (!best)
        return nothing;
    struct quota_fields fields = best->fields;
    fields.present = true;
    return fields;
}
