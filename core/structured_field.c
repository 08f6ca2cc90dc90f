/* SPDX-License-Identifier: MIT */
/*
 * One function for each production of RFC 9651, section 4.2, in its order: each takes what it
 * parses off the front of the text, or fails.  A failure sticks.
 */
#include "core/structured_field.h"

#define INTEGER_DIGITS 15
#define DECIMAL_WHOLE_DIGITS 12
#define DECIMAL_FRACTION_DIGITS 3

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

/* Section 4.2.4: an integer or a decimal.  `text` is the number as written. */
static bool parse_number(struct scan *scan, struct structured_item *out)
{
    out->text.at = scan->at;
    out->type = STRUCTURED_INTEGER;
    bool negative = scan_char(scan, '-');
    const char *at = scan->at;
    int64_t value = 0;
    for (; at != scan->end && scan_is_digit(*at); at++) {
        if (at - scan->at == INTEGER_DIGITS)
            return false;
        value = value * 10 + (*at - '0');
    }
    int whole = (int)(at - scan->at), fraction = 0;
    if (whole == 0)
        return false;
    scan->at = at;
    if (scan_char(scan, '.')) {
        out->type = STRUCTURED_DECIMAL;
        for (; scan_is_digit(scan_peek(scan)); fraction++)
            scan->at++;
        if (whole > DECIMAL_WHOLE_DIGITS || fraction < 1 || fraction > DECIMAL_FRACTION_DIGITS)
            return false;
    }
    out->integer = negative ? -value : value;
    out->text.end = scan->at;
    return true;
}

/* Section 4.2.5. */
static bool parse_string(struct scan *scan, struct structured_item *out)
{
    const char *at = scan->at + 1, *end = scan->end;
    out->type = STRUCTURED_STRING;
    out->text.at = at;
    for (; at != end && *at != '"'; at++) {
        if (*at == '\\') {
            at++;
            if (at == end || (*at != '"' && *at != '\\'))
                return false;
        } else if ((unsigned char)*at < 0x20 || (unsigned char)*at > 0x7e) {
            return false;
        }
    }
    out->text.end = scan->at = at;
    return scan_char(scan, '"');
}

/* Section 4.2.6: tchar, ':' and '/'. */
static bool parse_token(struct scan *scan, struct structured_item *out)
{
    out->type = STRUCTURED_TOKEN;
    out->text.at = scan->at;
    while (!scan_done(scan) && *scan->at != '\0' &&
           (scan_is_letter(*scan->at) || scan_is_digit(*scan->at) || strchr("!#$%&'*+-.^_`|~:/", *scan->at)))
        scan->at++;
    out->text.end = scan->at;
    return true;
}

/* Section 4.2.7: base64 between colons, padded or not, whatever its last bits. */
static bool parse_bytes(struct scan *scan, struct structured_item *out)
{
    scan->at++;
    out->type = STRUCTURED_BYTES;
    out->text.at = scan->at;
    while (!scan_done(scan) &&
           (scan_is_letter(*scan->at) || scan_is_digit(*scan->at) || *scan->at == '+' || *scan->at == '/'))
        scan->at++;
    size_t digits = (size_t)(scan->at - out->text.at);
    size_t padding = 0;
    for (; scan_char(scan, '='); padding++)
        continue;
    out->text.end = scan->at;
    return digits % 4 != 1 && (padding == 0 || (digits + padding) % 4 == 0) && padding <= 2 && scan_char(scan, ':');
}

/* Section 4.2.8. */
static bool parse_boolean(struct scan *scan, struct structured_item *out)
{
    scan->at++;
    out->type = STRUCTURED_BOOLEAN;
    out->text = *scan;
    out->integer = scan_peek(scan) == '1';
    if (!scan_char(scan, '0') && !scan_char(scan, '1'))
        return false;
    out->text.end = scan->at;
    return true;
}

/* Section 4.2.9. */
static bool parse_date(struct scan *scan, struct structured_item *out)
{
    scan->at++;
    if (!parse_number(scan, out) || out->type != STRUCTURED_INTEGER)
        return false;
    out->type = STRUCTURED_DATE;
    return true;
}

static bool is_lower_hex(char c)
{
    return scan_is_digit(c) || (c >= 'a' && c <= 'f');
}

/* Section 4.2.10: printable ASCII with percent-encoding.  That it decodes to UTF-8 is not checked:
 * no display string is ever shown. */
static bool parse_display_string(struct scan *scan, struct structured_item *out)
{
    scan->at++;
    if (!scan_char(scan, '"'))
        return false;
    out->type = STRUCTURED_DISPLAY_STRING;
    out->text.at = scan->at;
    for (; !scan_done(scan) && *scan->at != '"'; scan->at++) {
        if ((unsigned char)*scan->at < 0x20 || (unsigned char)*scan->at > 0x7e)
            return false;
        if (*scan->at != '%')
            continue;
        if (scan->end - scan->at < 3 || !is_lower_hex(scan->at[1]) || !is_lower_hex(scan->at[2]))
            return false;
        scan->at += 2;
    }
    out->text.end = scan->at;
    return scan_char(scan, '"');
}

/* Section 4.2.3.1. */
static bool parse_bare_item(struct scan *scan, struct structured_item *out)
{
    char first = scan_peek(scan);
    *out = (struct structured_item){0};
    if (first == '-' || scan_is_digit(first))
        return parse_number(scan, out);
    if (scan_is_letter(first) || first == '*')
        return parse_token(scan, out);
    switch (first) {
    case '"':
        return parse_string(scan, out);
    case ':':
        return parse_bytes(scan, out);
    case '?':
        return parse_boolean(scan, out);
    case '@':
        return parse_date(scan, out);
    case '%':
        return parse_display_string(scan, out);
    default:
        return false;
    }
}

static bool is_key_char(char c)
{
    return is_lower(c) || scan_is_digit(c) || c == '_' || c == '-' || c == '.' || c == '*';
}

/* Section 4.2.3.3. */
static bool parse_key(struct scan *scan, struct scan *key)
{
    const char *at = scan->at;
    if (!is_lower(scan_peek(scan)) && scan_peek(scan) != '*')
        return false;
    while (at != scan->end && is_key_char(*at))
        at++;
    *key = (struct scan){scan->at, at};
    scan->at = at;
    return true;
}

static void skip_spaces(struct scan *scan)
{
    while (scan_char(scan, ' '))
        continue;
}

static const struct structured_item boolean_true = {.type = STRUCTURED_BOOLEAN, .integer = 1};

/* Section 4.2.3.2: one of the parameters.  False without `failed` set: there is no further one. */
static bool parse_parameter(struct structured_field *field, struct scan *key, struct structured_item *value)
{
    struct scan *scan = &field->scan;
    if (!scan_char(scan, ';'))
        return false;
    skip_spaces(scan);
    if (field->lenient && scan_peek(scan) == '"') {
        *key = scan_text(scan->at, 0);
        field->failed = !parse_bare_item(scan, value);
        return !field->failed;
    }
    *value = boolean_true;
    field->failed = !parse_key(scan, key) || (scan_char(scan, '=') && !parse_bare_item(scan, value));
    return !field->failed;
}

static bool skip_parameters(struct structured_field *field)
{
    struct scan key;
    struct structured_item value;
    while (parse_parameter(field, &key, &value))
        continue;
    return !field->failed;
}

/* Section 4.2.1.2. */
static bool parse_inner_list(struct structured_field *field, struct structured_item *out)
{
    struct scan *scan = &field->scan;
    struct structured_item item;
    scan->at++;
    out->type = STRUCTURED_INNER_LIST;
    out->text.at = scan->at;
    for (;;) {
        skip_spaces(scan);
        out->text.end = scan->at;
        if (scan_char(scan, ')'))
            return true;
        if (!parse_bare_item(scan, &item) || !skip_parameters(field))
            return false;
        if (scan_peek(scan) != ' ' && scan_peek(scan) != ')')
            return false;
    }
}

static bool parse_item_or_inner_list(struct structured_field *field, struct structured_item *item)
{
    *item = (struct structured_item){0};
    return scan_peek(&field->scan) == '(' ? parse_inner_list(field, item) : parse_bare_item(&field->scan, item);
}

void structured_field_begin(struct structured_field *field, const char *text, size_t length)
{
    *field = (struct structured_field){.scan = scan_text(text, length)};
    scan_trim(&field->scan);
}

/* To the beginning of the next member; false if there is none.  Sections 4.2.1 and 4.2.2: members
 * are separated by a comma with blanks around it, and none comes after the last. */
static bool advance(struct structured_field *field)
{
    if (field->failed || (field->in_parameters && !skip_parameters(field)))
        return false;
    field->in_parameters = false;
    if (!field->in_list)
        return !scan_done(&field->scan);
    scan_blanks(&field->scan);
    if (scan_done(&field->scan))
        return false;
    field->failed = !scan_char(&field->scan, ',');
    scan_blanks(&field->scan);
    field->failed = field->failed || scan_done(&field->scan);
    return !field->failed;
}

bool structured_field_next_member(struct structured_field *field, struct structured_item *item)
{
    if (!advance(field))
        return false;
    field->failed = !parse_item_or_inner_list(field, item);
    field->in_list = field->in_parameters = true;
    return !field->failed;
}

bool structured_field_next_entry(struct structured_field *field, struct scan *key, struct structured_item *item)
{
    if (!advance(field))
        return false;
    *item = boolean_true;
    field->failed =
        !parse_key(&field->scan, key) || (scan_char(&field->scan, '=') && !parse_item_or_inner_list(field, item));
    field->in_list = field->in_parameters = true;
    return !field->failed;
}

bool structured_field_next_parameter(struct structured_field *field, struct scan *key, struct structured_item *value)
{
    field->in_parameters = field->in_parameters && !field->failed && parse_parameter(field, key, value);
    return field->in_parameters;
}
