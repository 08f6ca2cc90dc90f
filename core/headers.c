/* SPDX-License-Identifier: MIT */
/*
 * Which field lines of a response are kept, and how: the values one after the other in a flat text,
 * each followed by a NUL.  A name that somebody reads is found in the table of names; others are told
 * by what they contain, so that a spelling nobody has seen yet is kept too.
 *
 * This is done for every field line of every response of every program.  So a name that does not matter
 * is passed over in a few steps, one that does is compared eight characters at a time, and a plain
 * number, as most values are, is read here once for all.
 */
#include "core/headers.h"

#include "core/scan.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

void headers_clear(struct headers *headers)
{
    headers->count = 0;
    headers->used = 0;
    headers->dropped = 0;
    headers->times = 0;
    memset(headers->first, 0, sizeof(headers->first));
}

/* ------------------------------------------------------- names that are in the table ---- */

#define TEXT_OF_NAME(argument, id, text) text,
const char header_names[HEADER_OTHER][HEADER_NAME_SIZE] = {"", HEADER_NAMES(TEXT_OF_NAME, )};

#define NAME_FITS(argument, id, text)                                                                                  \
    _Static_assert(sizeof(text) <= HEADER_NAME_SIZE, "HEADER_NAME_SIZE is too small for " text);
HEADER_NAMES(NAME_FITS, )

/* The names of each length, a bit for each. */
_Static_assert(HEADER_OTHER <= 32, "as many bits as names");
#define BIT_IF_OF_LENGTH(length, id, text) | (uint32_t)(sizeof(text) - 1 == (length)) << HEADER_##id
#define OF_LENGTH(length) (0 HEADER_NAMES(BIT_IF_OF_LENGTH, length))
static const uint32_t names_of_length[HEADER_NAME_SIZE] = {
    OF_LENGTH(0),  OF_LENGTH(1),  OF_LENGTH(2),  OF_LENGTH(3),  OF_LENGTH(4),  OF_LENGTH(5),
    OF_LENGTH(6),  OF_LENGTH(7),  OF_LENGTH(8),  OF_LENGTH(9),  OF_LENGTH(10), OF_LENGTH(11),
    OF_LENGTH(12), OF_LENGTH(13), OF_LENGTH(14), OF_LENGTH(15), OF_LENGTH(16), OF_LENGTH(17),
    OF_LENGTH(18), OF_LENGTH(19), OF_LENGTH(20), OF_LENGTH(21), OF_LENGTH(22), OF_LENGTH(23),
};

/* The cases of a letter differ in one bit.  Letters are known by another one, which hyphens have not. */
static bool are_eight_of(const char *text, const char *name)
{
    uint64_t expected = scan_eight(name);
    uint64_t case_bits = (expected & scan_eight_times(0x40)) >> 1;
    return ((scan_eight(text) ^ expected) & ~case_bits) == 0;
}

/* The end first, where names of one length differ.  The eights may overlap; three reach everywhere. */
static bool is_name(const char *text, size_t length, const char *name)
{
    if (length < 8)
        return scan_equals_ignoring_case(text, length, name);
    size_t last = length - 8;
    return are_eight_of(text + last, name + last) && are_eight_of(text, name) &&
           (last <= 8 || are_eight_of(text + 8, name + 8));
}
_Static_assert(HEADER_NAME_SIZE <= 3 * 8, "three eights reach everywhere");

static enum header_name find_name(const char *text, size_t length)
{
    if (length >= COUNT_OF(names_of_length))
        return HEADER_OTHER;
    for (uint32_t left = names_of_length[length]; left != 0; left &= left - 1) {
        enum header_name id = (enum header_name)__builtin_ctz(left);
        if (is_name(text, length, header_names[id]))
            return id;
    }
    return HEADER_OTHER;
}

/* ------------------------------------------------------------------- names that are not ---- */

static const char *const kept_parts[] = {"limit", "quota", "retry", "remaining", "reset"};

/* Horspool's search (Practical fast searching in strings, 1980) for the beginnings of all of them at
 * once: where a letter stands in them, counted from 1, and last if in several places.  So a beginning
 * can end no sooner than the rest of its length behind that letter.  The index is the five bits of a
 * letter that do not tell its case; what is no letter is taken for one, which costs a look. */
#define BEGINNING 5
static const uint8_t last_place[32] = {
    ['l' & 31] = 1, ['q' & 31] = 1, ['u' & 31] = 2, ['m' & 31] = 3, ['o' & 31] = 3, ['s' & 31] = 3,
    ['e' & 31] = 4, ['r' & 31] = 4, ['a' & 31] = 5, ['i' & 31] = 5, ['t' & 31] = 5, ['y' & 31] = 5,
};

static bool begins_with(const char *text, const char *end, const char *part)
{
    while (*part && text < end && scan_is_same_ignoring_case(*text, *part)) {
        text++;
        part++;
    }
    return *part == '\0';
}

static bool is_part_at(const char *text, const char *end)
{
    for (size_t i = 0; i < COUNT_OF(kept_parts); i++)
        if (begins_with(text, end, kept_parts[i]))
            return true;
    return false;
}

static bool contains_part(const char *name, size_t length)
{
    size_t end = BEGINNING;
    while (end <= length) {
        size_t place = last_place[name[end - 1] & 31];
        if (place < BEGINNING) {
            end += BEGINNING - place;
            continue;
        }
        if (is_part_at(name + end - BEGINNING, name + length))
            return true;
        end++;
    }
    return false;
}

/* RFC 9110, section 5.6.2: a field name is a token. */
static bool is_token_char(char c)
{
    return scan_is_letter(c) || scan_is_digit(c) || c == '-' || (c != '\0' && strchr("!#$%&'*+.^_`|~", c));
}

static bool is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!is_token_char(text[i]))
            return false;
    return length > 0;
}

/* ------------------------------------------------------------------------------- values ---- */

static int64_t number_of(const struct scan *value)
{
    int64_t number = 0;
    if (scan_done(value) || value->end - value->at > HEADERS_DIGITS)
        return -1;
    for (const char *at = value->at; at != value->end; at++) {
        unsigned digit = (unsigned)*at - '0';
        if (digit > 9)
            return -1;
        number = number * 10 + digit;
    }
    return number;
}

static bool is_control(char c)
{
    return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

/* Subtracting 0x20 borrows the highest bit of what is below, adding 1 carries into that of 0x7f.  A tab
 * and the neighbours of such bytes may be suspected wrongly, but none is missed. */
static bool may_hold_control(const char *eight_at)
{
    uint64_t eight = scan_eight(eight_at);
    uint64_t suspects = (eight - scan_eight_times(0x20)) | (eight + scan_eight_times(0x01));
    return (suspects & ~eight & scan_eight_times(0x80)) != 0;
}

/* RFC 9110, section 5.5: a value with a control character is invalid and dangerous.  A NUL would
 * also make the rest of it invisible to readers of C strings: "12\0 junk" is not 12. */
static bool is_clean_value(const struct scan *value)
{
    const char *at = value->at;
    while (value->end - at >= 8 && !may_hold_control(at))
        at += 8;
    while (at < value->end && !is_control(*at))
        at++;
    return at == value->end;
}

/* --------------------------------------------------------------------------------- both ---- */

/* Behind the others of its name. */
static void link_last(struct headers *headers, enum header_name id)
{
    uint8_t *link = &headers->first[id];
    while (*link)
        link = &headers->field[*link - 1].next;
    *link = (uint8_t)headers->count;
}

static void append_value(struct headers *headers, struct header_field *field, const char *value, size_t length)
{
    char *text = headers->text + headers->used;
    memcpy(text, value, length);
    text[length] = '\0';
    field->value = (uint16_t)headers->used;
    field->value_length = (uint16_t)length;
    headers->used += (unsigned)length + 1;
}

static void append_name(struct headers *headers, struct header_field *field, const char *name, size_t length)
{
    char *text = headers->text + headers->used;
    for (size_t i = 0; i < length; i++)
        text[i] = scan_lower(name[i]);
    text[length] = '\0';
    field->name = (uint16_t)headers->used;
    field->name_length = (uint16_t)length;
    headers->used += (unsigned)length + 1;
}

void headers_add(struct headers *headers, const char *line, size_t length)
{
    const char *colon = memchr(line, ':', length);
    if (!colon)
        return;
    size_t name_length = (size_t)(colon - line);
    enum header_name id = find_name(line, name_length);
    if (id == HEADER_OTHER && !(contains_part(line, name_length) && is_token(line, name_length)))
        return;
    struct scan value = {colon + 1, line + length};
    while (value.end > value.at && (value.end[-1] == '\r' || value.end[-1] == '\n'))
        value.end--;
    scan_trim(&value);
    int64_t number = number_of(&value);
    if (number < 0 && !is_clean_value(&value))
        return;

    size_t value_length = (size_t)(value.end - value.at);
    size_t size = value_length + 1 + (id == HEADER_OTHER ? name_length + 1 : 0);
    if (headers->count == HEADERS_FIELDS || size > HEADERS_BYTES - headers->used) {
        headers->dropped++;
        return;
    }
    struct header_field *field = &headers->field[headers->count++];
    field->id = id;
    field->next = 0;
    field->number = number;
    append_value(headers, field, value.at, value_length);
    if (id == HEADER_OTHER)
        append_name(headers, field, line, name_length);
    link_last(headers, id);
    headers->times += id == HEADER_DATE || id == HEADER_AGE;
}
