/* SPDX-License-Identifier: MIT */
/*
 * Every spelling comes down to a list of windows, of which one governs.  Two kinds of readers make
 * windows: one for the families of plain fields, which is a loop over a table of names, and one for
 * the structured fields of the IETF draft.  Policies (a quota and the window it is for) are gathered
 * first, since a window rarely says its own length.
 *
 * A new family of plain fields is a row in `families`, and its names are rows in HEADER_NAMES.
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
#define TIMES_MAX 3

/* Not for most responses, and kept out of the frames of what is. */
#define SELDOM __attribute__((cold))

/* A field that holds a time, and what a bare number in it is. */
struct time_field {
    enum header_name name;
    enum field_number number;
};

/* Fields that speak of one window; HEADER_NONE where a family has no such.  A list ends at its first
 * HEADER_NONE; the first usable entry counts. */
struct family {
    uint32_t names;        /* all of them: they stand together in HEADER_NAMES */
    uint32_t window_names; /* those in `window` */
    enum header_name limit;
    enum header_name remaining;
    enum header_name used;
    struct time_field reset[TIMES_MAX];
    struct time_field window[TIMES_MAX];
};

static const struct family families[] = {
    {
        .names = HEADERS_BITS(HEADER_RATELIMIT_LIMIT, HEADER_RATELIMIT_RESETTIME),
        .limit = HEADER_RATELIMIT_LIMIT,
        .remaining = HEADER_RATELIMIT_REMAINING,
        .reset = {{HEADER_RATELIMIT_RESET, FIELD_SECONDS_OR_EPOCH},
                  {HEADER_RATELIMIT_RESETTIME, FIELD_SECONDS_OR_EPOCH}},
    },
    {
        .names = HEADERS_BITS(HEADER_X_RATELIMIT_LIMIT, HEADER_X_RATELIMIT_WINDOW),
        .limit = HEADER_X_RATELIMIT_LIMIT,
        .remaining = HEADER_X_RATELIMIT_REMAINING,
        .used = HEADER_X_RATELIMIT_USED,
        .reset = {{HEADER_X_RATELIMIT_RESET_AFTER, FIELD_SECONDS},
                  {HEADER_X_RATELIMIT_RESET, FIELD_SECONDS_OR_EPOCH},
                  {HEADER_X_RATELIMIT_NEXT, FIELD_SECONDS_OR_EPOCH}},
        .window_names = HEADERS_BIT(HEADER_X_RATELIMIT_PERIOD) | HEADERS_BIT(HEADER_X_RATELIMIT_WINDOW),
        .window = {{HEADER_X_RATELIMIT_PERIOD, FIELD_SECONDS}, {HEADER_X_RATELIMIT_WINDOW, FIELD_SECONDS}},
    },
    {
        .names = HEADERS_BITS(HEADER_X_RATE_LIMIT_LIMIT, HEADER_X_RATE_LIMIT_INTERVAL),
        .limit = HEADER_X_RATE_LIMIT_LIMIT,
        .remaining = HEADER_X_RATE_LIMIT_REMAINING,
        .used = HEADER_X_RATE_LIMIT_USED,
        .reset = {{HEADER_X_RATE_LIMIT_RESET, FIELD_SECONDS_OR_EPOCH}},
        .window_names = HEADERS_BIT(HEADER_X_RATE_LIMIT_INTERVAL),
        .window = {{HEADER_X_RATE_LIMIT_INTERVAL, FIELD_SECONDS}},
    },
};

/* All of them, those of the structured fields too. */
#define QUOTA_NAMES HEADERS_BITS(HEADER_X_RATELIMIT_LIMIT, HEADER_X_RATE_LIMIT_INTERVAL)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A quota for a window: `"name";q=100;w=60`, or `100;w=60` without a name. */
struct quota_policy {
    struct scan name, partition; /* at NULL: none */
    int64_t quota;
    int64_t window_ns;   /* QUOTA_UNKNOWN where it is not said */
    bool other_unit;     /* not requests: bytes, requests in progress */
    bool in_limit_field; /* said by a limit field, and so of that family alone */
    enum header_name field;
};

struct window {
    struct quota_fields fields;
    bool other_unit;
};

struct reading {
    const struct headers *headers;
    int64_t now_s;
    struct quota_policy policy[POLICIES_MAX];
    unsigned policy_count;
    struct window window[WINDOWS_MAX + 1]; /* the last one is never counted */
    unsigned window_count;
    /* The instances of a structured field as one text: a comma and a blank where a NUL was. */
    char joined[HEADERS_BYTES + HEADERS_FIELDS];
    unsigned joined_length;
};

static const struct quota_fields nothing = {
    .limit = QUOTA_UNKNOWN, .remaining = QUOTA_UNKNOWN, .reset_ns = QUOTA_UNKNOWN, .window_ns = QUOTA_UNKNOWN};

static int64_t seconds_to_ns(int64_t seconds)
{
    return seconds > INT64_MAX / NS_PER_SECOND ? INT64_MAX : seconds * NS_PER_SECOND;
}

/* The next window, with nothing known: where it is to be made. */
static struct window *next_window(struct reading *reading)
{
    struct window *window = &reading->window[reading->window_count];
    window->fields = nothing;
    window->other_unit = false;
    return window;
}

/* It is made.  One of which nothing is known is none. */
static void add_window(struct reading *reading, const struct window *window)
{
    const struct quota_fields *fields = &window->fields;
    bool is_known = fields->limit_field || fields->remaining_field || fields->reset_field;
    if (is_known && reading->window_count < WINDOWS_MAX)
        reading->window_count++;
}

static void add_policy(struct reading *reading, const struct quota_policy *policy)
{
    if (reading->policy_count < POLICIES_MAX)
        reading->policy[reading->policy_count++] = *policy;
}

/* A reset that lies beyond the window belongs to another one. */
static void set_window_length(struct quota_fields *fields, int64_t window_ns, enum header_name field)
{
    if (window_ns <= 0 || fields->reset_ns > window_ns)
        return;
    fields->window_ns = window_ns;
    fields->window_field = header_names[field];
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
static bool read_limit_per_window(struct reading *reading, const char *text, enum header_name name,
                                  struct values *values)
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
static bool read_count_list(struct reading *reading, const char *text, enum header_name name, struct values *values)
{
    struct structured_field field;
    struct structured_item item, parameter;
    struct scan key;
    struct values found = {.count = 0};
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

/* One count, or several; or a count and its window, or several of these. */
static void read_count_text(struct reading *reading, const struct header_field *field, struct values *values)
{
    const char *text = headers_value(reading->headers, field);
    int64_t count;
    if (field_parse_count(text, field->value_length, &count))
        add_value(values, count);
    else if (has_thousands_separator(text) || !(read_limit_per_window(reading, text, field->id, values) ||
                                                read_count_list(reading, text, field->id, values)))
        add_value(values, QUOTA_UNKNOWN);
}

static void read_counts(struct reading *reading, enum header_name name, struct values *values)
{
    const struct headers *headers = reading->headers;
    values->count = 0;
    for (const struct header_field *field = headers_first(headers, name); field; field = headers_next(headers, field))
        if (field->number >= 0)
            add_value(values, field->number);
        else
            read_count_text(reading, field, values);
}

/* False if it is not usable. */
static bool add_time(struct values *values, int64_t wait_ns)
{
    add_value(values, wait_ns == FIELD_UNUSABLE ? QUOTA_UNKNOWN : wait_ns > 0 ? wait_ns : 0);
    return wait_ns != FIELD_UNUSABLE;
}

/* False if nothing in it is usable. */
static bool read_time(const struct reading *reading, const struct header_field *field, enum field_number meaning,
                      struct values *values)
{
    const struct headers *headers = reading->headers;
    int64_t response_s = response_time_for(headers, field->number, reading->now_s);
    if (field->number >= 0)
        return add_time(values, field_number_to_wait(field->number, meaning, response_s));
    const char *text = headers_value(headers, field);
    int64_t wait_ns;
    bool any_usable = false;
    while (field_next_wait(&text, meaning, response_s, &wait_ns))
        any_usable |= add_time(values, wait_ns);
    return any_usable;
}

SELDOM static bool read_times(const struct reading *reading, const struct time_field *time, struct values *values)
{
    const struct headers *headers = reading->headers;
    bool any_usable = false;
    values->count = 0;
    for (const struct header_field *field = headers_first(headers, time->name); field;
         field = headers_next(headers, field))
        any_usable |= read_time(reading, field, time->number, values);
    return any_usable;
}

/* The first of the fields with a usable value speaks, with all of its values. */
static enum header_name read_first_times(const struct reading *reading, const struct time_field *fields,
                                         struct values *values)
{
    for (size_t i = 0; i < TIMES_MAX && fields[i].name != HEADER_NONE; i++)
        if (headers_have(reading->headers, fields[i].name) && read_times(reading, &fields[i], values))
            return fields[i].name;
    values->count = 0;
    return HEADER_NONE;
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
static void set_window_by_quota(struct reading *reading, struct quota_fields *fields, enum header_name limit_name)
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

static int64_t value_at(const struct values *values, unsigned position)
{
    return position < values->count ? values->value[position] : QUOTA_UNKNOWN;
}

static void read_window_length(const struct reading *reading, const struct family *family, struct quota_fields *fields)
{
    struct values lengths;
    enum header_name name = read_first_times(reading, family->window, &lengths);
    if (name != HEADER_NONE)
        set_window_length(fields, value_at(&lengths, 0), name);
}

/* What the fields of a family say about one window. */
struct family_word {
    int64_t limit, remaining, used, reset_ns;
    enum header_name reset_name;
};

static void add_family_window(struct reading *reading, const struct family *family, const struct family_word *word)
{
    struct window *window = next_window(reading);
    struct quota_fields *fields = &window->fields;

    fields->limit = word->limit;
    fields->remaining = word->remaining;
    fields->reset_ns = word->reset_ns;
    if (!settle_negatives(fields))
        return;
    enum header_name limit_name = family->limit;
    if (fields->limit == QUOTA_UNKNOWN && word->used >= 0 && fields->remaining >= 0) {
        fields->limit = word->used + fields->remaining;
        limit_name = family->used;
    }
    if (fields->limit != QUOTA_UNKNOWN)
        fields->limit_field = header_names[limit_name];
    if (fields->remaining != QUOTA_UNKNOWN)
        fields->remaining_field = header_names[family->remaining];
    if (fields->reset_ns != QUOTA_UNKNOWN)
        fields->reset_field = header_names[word->reset_name];

    if (headers_have_any(reading->headers, family->window_names))
        read_window_length(reading, family, fields);
    if (fields->window_ns == QUOTA_UNKNOWN && fields->limit != QUOTA_UNKNOWN)
        set_window_by_quota(reading, fields, family->limit);
    add_window(reading, window);
}

/* Fields that were repeated by stacked layers, or joined: lists of equal length are read position by
 * position.  Otherwise there is one window, with the least that is left, and the first limit: a lone
 * further one is an outer layer's. */
SELDOM static void read_lists(struct reading *reading, const struct family *family)
{
    struct values limits, remainings, useds, resets;
    struct family_word word;
    read_counts(reading, family->limit, &limits);
    read_counts(reading, family->remaining, &remainings);
    read_counts(reading, family->used, &useds);
    word.reset_name = read_first_times(reading, family->reset, &resets);
    word.used = value_at(&useds, 0);

    unsigned count = remainings.count;
    bool limits_match = limits.count == count;
    bool resets_match = resets.count == count;
    if (count > 1 && (limits_match || limits.count == 0) && (resets_match || resets.count == 0)) {
        for (unsigned i = 0; i < count; i++) {
            word.limit = value_at(&limits, i);
            word.remaining = remainings.value[i];
            word.reset_ns = value_at(&resets, i);
            add_family_window(reading, family, &word);
        }
        return;
    }
    unsigned position = least(&remainings);
    word.limit = value_at(&limits, limits_match ? position : 0);
    word.remaining = value_at(&remainings, position);
    word.reset_ns = resets_match ? value_at(&resets, position) : largest(&resets);
    add_family_window(reading, family, &word);
}

/* Of a field that comes once, with a plain number, or not at all: then it is QUOTA_UNKNOWN.  False for any
 * other. */
static bool read_plain_count(const struct headers *headers, enum header_name name, int64_t *number)
{
    const struct header_field *field = headers_first(headers, name);
    *number = field ? field->number : QUOTA_UNKNOWN;
    return !field || (field->number >= 0 && !field->next);
}

/* The same of the first usable of the resets. */
static bool read_plain_reset(const struct reading *reading, const struct family *family, struct family_word *word)
{
    word->reset_ns = QUOTA_UNKNOWN;
    word->reset_name = HEADER_NONE;
    for (size_t i = 0; i < TIMES_MAX && family->reset[i].name != HEADER_NONE; i++) {
        int64_t number;
        if (!read_plain_count(reading->headers, family->reset[i].name, &number))
            return false;
        if (number == QUOTA_UNKNOWN)
            continue;
        int64_t response_s = response_time_for(reading->headers, number, reading->now_s);
        int64_t wait_ns = field_number_to_wait(number, family->reset[i].number, response_s);
        if (wait_ns == FIELD_UNUSABLE)
            continue;
        word->reset_ns = wait_ns > 0 ? wait_ns : 0;
        word->reset_name = family->reset[i].name;
        break;
    }
    return true;
}

/* Nearly always each field comes once, with a plain number: then there is nothing to be matched. */
static void read_family(struct reading *reading, const struct family *family)
{
    const struct headers *headers = reading->headers;
    struct family_word word;
    if (read_plain_count(headers, family->limit, &word.limit) &&
        read_plain_count(headers, family->remaining, &word.remaining) &&
        read_plain_count(headers, family->used, &word.used) && read_plain_reset(reading, family, &word))
        add_family_window(reading, family, &word);
    else
        read_lists(reading, family);
}

/* -------------------------------------------------------------- structured fields ---- */

static bool is_name(const struct structured_item *item)
{
    return item->type == STRUCTURED_STRING || item->type == STRUCTURED_TOKEN;
}

/* RFC 9110, section 5.3: a field in several lines is one list.  There is one line at least. */
static const char *join_instances(struct reading *reading, enum header_name name)
{
    const struct header_field *field = headers_first(reading->headers, name);
    if (!field->next)
        return headers_value(reading->headers, field);
    char *joined = reading->joined + reading->joined_length;
    const char *separator = "";
    for (; field; field = headers_next(reading->headers, field)) {
        size_t room = sizeof(reading->joined) - reading->joined_length;
        int length = snprintf(reading->joined + reading->joined_length, room, "%s%s", separator,
                              headers_value(reading->headers, field));
        reading->joined_length += (unsigned)length;
        separator = ", ";
    }
    reading->joined_length++;
    return joined;
}

/* One policy; false if it is of no use. */
static bool read_policy(struct structured_field *field, const struct structured_item *item, struct quota_policy *policy)
{
    struct scan key;
    struct structured_item value;
    *policy =
        (struct quota_policy){.quota = QUOTA_UNKNOWN, .window_ns = QUOTA_UNKNOWN, .field = HEADER_RATELIMIT_POLICY};
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
    const char *text = join_instances(reading, HEADER_RATELIMIT_POLICY);
    struct structured_field field;
    struct structured_item item;
    struct quota_policy policy;

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

/* `"default";r=50;t=30`.  Nothing if a part of it is not what it must be. */
static void read_state(struct reading *reading, struct structured_field *field, const struct structured_item *item)
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
        return;
    struct window *window = next_window(reading);
    struct quota_fields *fields = &window->fields;
    if (remaining != QUOTA_UNKNOWN) {
        fields->remaining = remaining;
        fields->remaining_field = header_names[HEADER_RATELIMIT];
    }
    if (reset_s != QUOTA_UNKNOWN) {
        fields->reset_ns = seconds_to_ns(reset_s);
        fields->reset_field = header_names[HEADER_RATELIMIT];
    }
    const struct quota_policy *policy = find_policy(reading, &item->text, &partition);
    if (policy) {
        fields->limit = policy->quota;
        fields->limit_field = header_names[policy->field];
        set_window_length(fields, policy->window_ns, policy->field);
        window->other_unit = policy->other_unit;
    }
    add_window(reading, window);
}

/* False if it is not a list; then nothing was added. */
static bool read_state_list(struct reading *reading, const char *text)
{
    struct structured_field field;
    struct structured_item item;

    structured_field_begin(&field, text, strlen(text));
    while (structured_field_next_member(&field, &item))
        read_state(reading, &field, &item);
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
    struct window *window = next_window(reading);
    struct quota_fields *fields = &window->fields;
    bool valid = true;

    structured_field_begin(&field, text, strlen(text));
    while (structured_field_next_entry(&field, &key, &item)) {
        bool is_limit = structured_text_is(&key, "limit"), is_remaining = structured_text_is(&key, "remaining"),
             is_reset = structured_text_is(&key, "reset");
        if (is_limit || is_remaining || is_reset)
            valid = valid && item.type == STRUCTURED_INTEGER && item.integer >= 0;
        if (is_limit) {
            fields->limit = item.integer;
            fields->limit_field = header_names[HEADER_RATELIMIT];
        } else if (is_remaining) {
            fields->remaining = item.integer;
            fields->remaining_field = header_names[HEADER_RATELIMIT];
        } else if (is_reset) {
            fields->reset_ns = seconds_to_ns(item.integer);
            fields->reset_field = header_names[HEADER_RATELIMIT];
        }
    }
    if (field.failed || !valid)
        return;
    if (fields->limit_field)
        set_window_by_quota(reading, fields, HEADER_RATELIMIT);
    add_window(reading, window);
}

static void read_states(struct reading *reading)
{
    const char *text = join_instances(reading, HEADER_RATELIMIT);
    if (!read_state_list(reading, text))
        read_state_dictionary(reading, text);
}

/* Policies without any state: the quota is known, and nothing of what is left. */
static void add_policies_as_windows(struct reading *reading)
{
    for (unsigned i = 0; i < reading->policy_count; i++) {
        const struct quota_policy *policy = &reading->policy[i];
        struct window *window = next_window(reading);
        window->other_unit = policy->other_unit;
        window->fields.limit = policy->quota;
        window->fields.limit_field = header_names[policy->field];
        set_window_length(&window->fields, policy->window_ns, policy->field);
        add_window(reading, window);
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
    const struct header_field *age = headers_first(headers, HEADER_AGE);
    if (!age)
        return false;
    if (age->number >= 0)
        return age->number > 0;
    const char *text = headers_value(headers, age);
    int64_t seconds;
    return field_parse_count(text, strcspn(text, ","), &seconds) && seconds > 0;
}

struct quota_fields quota_fields_read(const struct headers *headers, int64_t now_s)
{
    struct reading reading; /* set part by part: most of it is room that needs no clearing */
    const struct window *best = NULL;

    if (!headers_have_any(headers, QUOTA_NAMES) || is_from_a_cache(headers))
        return nothing;
    reading.headers = headers;
    reading.now_s = now_s;
    reading.policy_count = reading.window_count = reading.joined_length = 0;
    if (headers_have(headers, HEADER_RATELIMIT_POLICY))
        read_policies(&reading);
    if (headers_have(headers, HEADER_RATELIMIT))
        read_states(&reading);
    for (size_t i = 0; i < COUNT_OF(families); i++)
        if (headers_have_any(headers, families[i].names))
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
