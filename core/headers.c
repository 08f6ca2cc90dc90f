/* SPDX-License-Identifier: MIT */
/*
 * Which field lines of a response are kept, and how: the values one after the other in a flat text,
 * each followed by a NUL.  A name that somebody reads is found in the table of names; others are told
 * by what they contain, so that a spelling nobody has seen yet is kept too.
 *
 * This is done for every field line of every response of every program.  So a name that stands where it
 * stood in the response before is known at once; another one that does not matter is passed over in a few
 * steps, and one that does is compared eight characters at a time.  A plain number, as most values are, is
 * read here once for all.
 */
#include "core/headers.h"

#include "core/scan.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* What few lines need is a function of its own, so that the others need not save registers for it. */
#define APART __attribute__((noinline))

void headers_begin(struct headers *headers)
{
    headers->count = 0;
    headers->used = 0;
    headers->dropped = 0;
    headers->names = 0;
    headers->place = 0;
    memset(headers->first, 0, sizeof(headers->first));
}

void headers_clear(struct headers *headers)
{
    headers->remembered = 0;
    headers_begin(headers);
}

/* ------------------------------------------------------- names that are in the table ---- */

#define TEXT_OF_NAME(argument, id, text) text,
const char header_names[HEADER_OTHER][HEADER_NAME_SIZE] = {"", HEADER_NAMES(TEXT_OF_NAME, )};

#define NAME_FITS(argument, id, text)                                                                                  \
    _Static_assert(sizeof(text) <= HEADER_NAME_SIZE, "HEADER_NAME_SIZE is too small for " text);
HEADER_NAMES(NAME_FITS, )

/* The names of each length, a bit for each. */
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

/* HEADER_NONE: it does not matter. */
static enum header_name tell_name(const char *text, size_t length)
{
    enum header_name id = find_name(text, length);
    if (id == HEADER_OTHER && !(contains_part(text, length) && is_token(text, length)))
        return HEADER_NONE;
    return id;
}

/* ------------------------------------------------------------------------------- values ---- */

static int64_t number_of(const char *at, const char *end)
{
    int64_t number = 0;
    if (at == end || end - at > HEADERS_DIGITS)
        return -1;
    for (; at != end; at++) {
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

/* The last eight may overlap with those before. */
static bool is_clean_by_eights(const char *at, const char *end)
{
    if (end - at < 8)
        return false;
    for (; end - at > 8; at += 8)
        if (may_hold_control(at))
            return false;
    return !may_hold_control(end - 8);
}

/* RFC 9110, section 5.5: a value with a control character is invalid and dangerous.  A NUL would
 * also make the rest of it invisible to readers of C strings: "12\0 junk" is not 12. */
static bool is_clean_value(const char *at, const char *end)
{
    if (is_clean_by_eights(at, end))
        return true;
    while (at != end && !is_control(*at))
        at++;
    return at == end;
}

/* ------------------------------------------------------------------------------- fields ---- */

/* Behind the others of its name. */
static void link_last(struct headers *headers, enum header_name id)
{
    uint8_t *link = &headers->first[id];
    while (*link)
        link = &headers->field[*link - 1].next;
    *link = (uint8_t)headers->count;
}

/* NULL if it, or its text, does not fit. */
static struct header_field *add_field(struct headers *headers, enum header_name id, int64_t number, size_t text_size)
{
    if (headers->count == HEADERS_FIELDS || text_size > HEADERS_BYTES - headers->used) {
        headers->dropped++;
        return NULL;
    }
    struct header_field *field = &headers->field[headers->count++];
    field->id = id;
    field->next = 0;
    field->value = field->value_length = 0;
    field->number = number;
    headers->names |= HEADERS_BIT(id);
    link_last(headers, id);
    return field;
}

static void append_value(struct headers *headers, struct header_field *field, const char *value, size_t length)
{
    char *text = headers->text + headers->used;
    field->value = (uint16_t)headers->used;
    field->value_length = (uint16_t)length;
    headers->used += (unsigned)length + 1;
    text[length] = '\0';
    memcpy(text, value, length);
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

APART static void keep_text(struct headers *headers, enum header_name id, const char *line, const char *colon,
                            const char *value, const char *end)
{
    if (!is_clean_value(value, end))
        return;
    size_t name_length = (size_t)(colon - line), value_length = (size_t)(end - value);
    size_t size = value_length + 1 + (id == HEADER_OTHER ? name_length + 1 : 0);
    struct header_field *field = add_field(headers, id, -1, size);
    if (!field)
        return;
    if (id == HEADER_OTHER)
        append_name(headers, field, line, name_length);
    append_value(headers, field, value, value_length);
}

/* The colon stops the search for the value's end. */
static void keep(struct headers *headers, enum header_name id, const char *line, const char *colon, const char *end)
{
    const char *value = colon + 1;
    while (end[-1] == '\r' || end[-1] == '\n')
        end--;
    while (scan_is_blank(end[-1]))
        end--;
    while (value < end && scan_is_blank(*value))
        value++;
    int64_t number = id == HEADER_OTHER ? -1 : number_of(value, end);
    if (number >= 0)
        add_field(headers, id, number, 0);
    else
        keep_text(headers, id, line, colon, value, end);
}

/* -------------------------------------------------------------------------------- lines ---- */

static bool are_same_eight(const char *a, const char *b)
{
    return scan_eight(a) == scan_eight(b);
}

/* The last ones may overlap with those before; what is shorter than four is never the same. */
static bool is_same_name(const char *a, const char *b, size_t size)
{
    if (size < 8)
        return size >= 4 && memcmp(a, b, 4) == 0 && memcmp(a + size - 4, b + size - 4, 4) == 0;
    return are_same_eight(a, b) && are_same_eight(a + size - 8, b + size - 8) &&
           (size <= 16 || are_same_eight(a + 8, b + 8)) && (size <= 24 || are_same_eight(a + 16, b + 16));
}
_Static_assert(HEADERS_LINE_NAME <= 4 * 8, "four eights reach everywhere");

static bool is_as_remembered(const struct headers *headers, const char *line, size_t length)
{
    const struct header_line *before = &headers->line[headers->place];
    return headers->place < headers->remembered && before->size <= length &&
           is_same_name(line, before->name, before->size);
}

static void remember(struct headers *headers, enum header_name id, const char *line, size_t size)
{
    if (headers->place == HEADERS_LINES)
        return;
    struct header_line *here = &headers->line[headers->place++];
    here->id = (uint8_t)id;
    here->size = size <= HEADERS_LINE_NAME ? (uint8_t)size : 0;
    memcpy(here->name, line, here->size);
    if (headers->remembered < headers->place)
        headers->remembered = headers->place;
}

APART static void add_unknown(struct headers *headers, const char *line, size_t length)
{
    const char *colon = memchr(line, ':', length);
    if (!colon)
        return;
    enum header_name id = tell_name(line, (size_t)(colon - line));
    remember(headers, id, line, (size_t)(colon - line) + 1);
    if (id != HEADER_NONE)
        keep(headers, id, line, colon, line + length);
}

void headers_add(struct headers *headers, const char *line, size_t length)
{
    if (!is_as_remembered(headers, line, length)) {
        add_unknown(headers, line, length);
        return;
    }
    const struct header_line *before = &headers->line[headers->place++];
    if (before->id != HEADER_NONE)
        keep(headers, before->id, line, line + before->size - 1, line + length);
}
