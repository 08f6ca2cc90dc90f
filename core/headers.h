/* SPDX-License-Identifier: MIT */
/*
 * Headers: the few response fields that Curtsy reads, kept as they came: order, repeats and all.
 * headers_add is given every field line of a response and keeps only those whose name may matter
 * (Date, Age, Retry-After and its kin, and every spelling of a quota field), so that a transfer
 * needs no allocation.  What does not fit is dropped and counted, never cut.
 *
 * A name that somebody reads has a row in the table of names, and its fields are found without a
 * search.  The others are kept with their names.  The answers of one server have the same field lines in
 * the same order nearly always: so it is remembered which name stood at which place, and what it was.
 *
 * Pure data, one owner; no allocation.
 */
#ifndef CURTSY_CORE_HEADERS_H
#define CURTSY_CORE_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEADERS_FIELDS 32
#define HEADERS_BYTES 3072
#define HEADERS_DIGITS 18 /* of a number: what always fits into 63 bits */

/* The names that somebody reads: lower case, letters and hyphens.  A new one is a row here and an entry
 * in its reader's table; those of one family stand together, and of names of one length the more frequent
 * one comes first. */
/* clang-format off */
#define HEADER_NAMES(ROW, argument)                                   \
    ROW(argument, DATE,                    "date")                    \
    ROW(argument, AGE,                     "age")                     \
    ROW(argument, RETRY_AFTER,             "retry-after")             \
    ROW(argument, RETRY_AFTER_MS,          "retry-after-ms")          \
    ROW(argument, X_MS_RETRY_AFTER_MS,     "x-ms-retry-after-ms")     \
    ROW(argument, X_RATELIMIT_LIMIT,       "x-ratelimit-limit")       \
    ROW(argument, X_RATELIMIT_REMAINING,   "x-ratelimit-remaining")   \
    ROW(argument, X_RATELIMIT_RESET,       "x-ratelimit-reset")       \
    ROW(argument, X_RATELIMIT_USED,        "x-ratelimit-used")        \
    ROW(argument, X_RATELIMIT_RESET_AFTER, "x-ratelimit-reset-after") \
    ROW(argument, X_RATELIMIT_NEXT,        "x-ratelimit-next")        \
    ROW(argument, X_RATELIMIT_PERIOD,      "x-ratelimit-period")      \
    ROW(argument, X_RATELIMIT_WINDOW,      "x-ratelimit-window")      \
    ROW(argument, RATELIMIT_LIMIT,         "ratelimit-limit")         \
    ROW(argument, RATELIMIT_REMAINING,     "ratelimit-remaining")     \
    ROW(argument, RATELIMIT_RESET,         "ratelimit-reset")         \
    ROW(argument, RATELIMIT_RESETTIME,     "ratelimit-resettime")     \
    ROW(argument, RATELIMIT,               "ratelimit")               \
    ROW(argument, RATELIMIT_POLICY,        "ratelimit-policy")        \
    ROW(argument, X_RATE_LIMIT_LIMIT,      "x-rate-limit-limit")      \
    ROW(argument, X_RATE_LIMIT_REMAINING,  "x-rate-limit-remaining")  \
    ROW(argument, X_RATE_LIMIT_RESET,      "x-rate-limit-reset")      \
    ROW(argument, X_RATE_LIMIT_USED,       "x-rate-limit-used")       \
    ROW(argument, X_RATE_LIMIT_INTERVAL,   "x-rate-limit-interval")

#define HEADER_NAME_ENUMERATOR(argument, id, text) HEADER_##id,
enum header_name {
    HEADER_NONE, /* for tables: no field has this name */
    HEADER_NAMES(HEADER_NAME_ENUMERATOR, )
    HEADER_OTHER /* none of these; kept all the same */
};
/* clang-format on */

/* The names themselves, by enum header_name. */
#define HEADER_NAME_SIZE 24
extern const char header_names[HEADER_OTHER][HEADER_NAME_SIZE];

struct header_field {
    enum header_name id;
    uint8_t next;                 /* the next field of this id, as in headers.first */
    uint16_t name, name_length;   /* of HEADER_OTHER: offset into text, length; lower-cased */
    uint16_t value, value_length; /* where number is -1: blanks around it trimmed; NUL-terminated in text */
    int64_t number;               /* of a name in the table: the value, where it is 1 to HEADERS_DIGITS digits
                                   * and nothing else; otherwise -1 */
};

#define HEADERS_LINES 32
#define HEADERS_LINE_NAME 30

/* The name of a line: as it was written, with its colon. */
struct header_line {
    uint8_t id;   /* HEADER_NONE: it does not matter */
    uint8_t size; /* 0: it is too long */
    char name[HEADERS_LINE_NAME];
};

struct headers {
    unsigned count;
    unsigned used;
    unsigned dropped;
    uint32_t names;                  /* those that there is a field of: HEADERS_BIT of each */
    uint8_t first[HEADER_OTHER + 1]; /* by id: 1 + the place of the first field, or 0 */
    unsigned place;                  /* of the next line among all of the response's lines */
    unsigned remembered;             /* lines, from the first place on; of this response or one before */
    struct header_line line[HEADERS_LINES];
    struct header_field field[HEADERS_FIELDS];
    char text[HEADERS_BYTES];
};

/* Nothing is there, and nothing is remembered.  What is all zero is cleared. */
void headers_clear(struct headers *headers);

/* Another response begins: nothing is there.  That the lines before are remembered makes it cheaper, and
 * changes nothing else. */
void headers_begin(struct headers *headers);

/* `line` is one field line, "Name: value", with or without its line end.  Anything else (status
 * line, blank line, folded line, a value with control characters) is ignored. */
void headers_add(struct headers *headers, const char *line, size_t length);

/* Several names are looked for at once. */
#define HEADERS_BIT(id) (UINT32_C(1) << (id))
#define HEADERS_BITS(from, to) (2 * HEADERS_BIT(to) - HEADERS_BIT(from)) /* those of the rows from..to */
_Static_assert(HEADER_OTHER < 32, "as many bits as names");

static inline bool headers_have_any(const struct headers *headers, uint32_t names)
{
    return (headers->names & names) != 0;
}

/* Is there any field that could say something about a limit or a wait?  Date and Age only tell time. */
static inline bool headers_say_something(const struct headers *headers)
{
    return headers_have_any(headers, ~(HEADERS_BIT(HEADER_DATE) | HEADERS_BIT(HEADER_AGE)));
}

static inline bool headers_have(const struct headers *headers, enum header_name id)
{
    return headers->first[id] != 0;
}

/* The fields of one id in their order; NULL after the last. */
static inline const struct header_field *headers_first(const struct headers *headers, enum header_name id)
{
    return headers->first[id] ? &headers->field[headers->first[id] - 1] : NULL;
}

static inline const struct header_field *headers_next(const struct headers *headers, const struct header_field *field)
{
    return field->next ? &headers->field[field->next - 1] : NULL;
}

/* NUL-terminated; empty where the value is in `number`. */
static inline const char *headers_value(const struct headers *headers, const struct header_field *field)
{
    return field->number < 0 ? headers->text + field->value : "";
}

#endif
