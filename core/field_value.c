/* SPDX-License-Identifier: MIT */
/*
 * Each form has a parser of its own that takes the whole value or refuses it; field_parse_wait asks
 * one after the other.  No two of them accept the same text, so their order does not matter.
 */
#include "core/field_value.h"

#include "core/calendar.h"
#include "core/http_date.h"
#include "core/scan.h"
#include "core/units.h"

#define DIGITS_MAX 18           /* what always fits into 63 bits */
#define DATE_LENGTH_MAX 63      /* a longer text is no HTTP-date */
#define FRACTION_ONE 1000000000 /* fractions are kept in parts of this */

/* "12", "12.5".  The whole part saturates; the fraction is in parts of FRACTION_ONE, rounded up. */
struct decimal {
    int64_t whole;
    int64_t fraction;
};

static int64_t add_saturating(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN + 1 : INT64_MAX) : sum;
}

static int64_t multiply_saturating(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? ((a < 0) == (b < 0) ? INT64_MAX : INT64_MIN + 1) : product;
}

static int64_t subtract_saturating(int64_t a, int64_t b)
{
    int64_t difference;
    return __builtin_sub_overflow(a, b, &difference) ? (a < 0 ? INT64_MIN + 1 : INT64_MAX) : difference;
}

/* ".5", if there is one; a point needs digits after it. */
static bool scan_fraction(struct scan *scan, int64_t *out)
{
    bool more = false;
    *out = 0;
    if (!scan_char(scan, '.'))
        return true;
    if (!scan_is_digit(scan_peek(scan)))
        return false;
    for (int64_t part = FRACTION_ONE / 10; scan_is_digit(scan_peek(scan)); part /= 10) {
        int digit = *scan->at++ - '0';
        *out += digit * part;
        more = more || (part == 0 && digit != 0);
    }
    *out += more;
    return true;
}

static bool scan_decimal(struct scan *scan, struct decimal *out)
{
    struct scan at = *scan;
    *out = (struct decimal){0};
    if (!scan_is_digit(scan_peek(&at)))
        return false;
    while (scan_is_digit(scan_peek(&at)))
        out->whole = add_saturating(multiply_saturating(out->whole, 10), *at.at++ - '0');
    if (!scan_fraction(&at, &out->fraction))
        return false;
    *scan = at;
    return true;
}

static int64_t fraction_to_ns(int64_t fraction, int64_t unit_ns)
{
    if (fraction == 0)
        return 0;
    return (int64_t)(((__int128)fraction * unit_ns + FRACTION_ONE - 1) / FRACTION_ONE);
}

static int64_t decimal_to_ns(struct decimal decimal, int64_t unit_ns)
{
    return add_saturating(multiply_saturating(decimal.whole, unit_ns), fraction_to_ns(decimal.fraction, unit_ns));
}

/* From response_s to an instant, in nanoseconds. */
static int64_t until(int64_t instant_s, int64_t instant_ns, int64_t response_s)
{
    return add_saturating(multiply_saturating(subtract_saturating(instant_s, response_s), NS_PER_SECOND), instant_ns);
}

/* ---------------------------------------------------------------------- numbers ---- */

static int64_t until_epoch(struct decimal epoch, int64_t unit_ns, int64_t response_s)
{
    int64_t per_second = NS_PER_SECOND / unit_ns;
    int64_t rest_ns = epoch.whole % per_second * unit_ns + fraction_to_ns(epoch.fraction, unit_ns);
    return until(epoch.whole / per_second, rest_ns, response_s);
}

static bool decimal_to_wait(struct decimal number, enum field_number meaning, int64_t response_s, int64_t *wait_ns)
{
    bool may_be_epoch = meaning == FIELD_SECONDS_OR_EPOCH || meaning == FIELD_EPOCH_OR_SECONDS;
    if (may_be_epoch && number.whole >= INT64_C(1000000000) && number.whole < INT64_C(10000000000))
        *wait_ns = until_epoch(number, NS_PER_SECOND, response_s);
    else if (may_be_epoch && number.whole >= INT64_C(1000000000000) && number.whole < INT64_C(10000000000000))
        *wait_ns = until_epoch(number, NS_PER_MS, response_s);
    else if (meaning == FIELD_SECONDS_OR_EPOCH && number.whole >= FIELD_EPOCHS_FROM)
        return false;
    else
        *wait_ns = decimal_to_ns(number, meaning == FIELD_MILLISECONDS ? NS_PER_MS : NS_PER_SECOND);
    return true;
}

int64_t field_number_to_wait(int64_t value, enum field_number number, int64_t response_s)
{
    int64_t wait_ns;
    if (value < FIELD_EPOCHS_FROM)
        return value * (number == FIELD_MILLISECONDS ? NS_PER_MS : NS_PER_SECOND);
    return decimal_to_wait((struct decimal){.whole = value}, number, response_s, &wait_ns) ? wait_ns : FIELD_UNUSABLE;
}

/* -------------------------------------------------------------------- durations ---- */

static bool scan_unit(struct scan *scan, int64_t *unit_ns)
{
    /* Longer names before those that they begin with.  Both ways to write a micro sign in UTF-8. */
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"ms", NS_PER_MS},
                 {"us", NS_PER_US},
                 {"\xc2\xb5s", NS_PER_US},
                 {"\xce\xbcs", NS_PER_US},
                 {"ns", 1},
                 {"d", 86400 * NS_PER_SECOND},
                 {"h", 3600 * NS_PER_SECOND},
                 {"m", 60 * NS_PER_SECOND},
                 {"s", NS_PER_SECOND}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t length = strlen(units[i].name);
        if ((size_t)(scan->end - scan->at) >= length && memcmp(scan->at, units[i].name, length) == 0) {
            scan->at += length;
            *unit_ns = units[i].ns;
            return true;
        }
    }
    return false;
}

/* "6m0s", "2m59.56s", "496.745µs": from large units to small. */
static bool parse_units(struct scan scan, int64_t *out_ns)
{
    int64_t total_ns = 0, last_unit_ns = INT64_MAX, unit_ns;
    struct decimal number;
    do {
        if (!scan_decimal(&scan, &number) || !scan_unit(&scan, &unit_ns) || unit_ns >= last_unit_ns)
            return false;
        total_ns = add_saturating(total_ns, decimal_to_ns(number, unit_ns));
        last_unit_ns = unit_ns;
    } while (!scan_done(&scan));
    *out_ns = total_ns;
    return true;
}

/* "00:01:30" */
static bool parse_clock(struct scan scan, int64_t *out_ns)
{
    int hours, minutes, seconds;
    if (!scan_number(&scan, 1, 3, &hours) || !scan_char(&scan, ':') || !scan_number(&scan, 2, 2, &minutes) ||
        !scan_char(&scan, ':') || !scan_number(&scan, 2, 2, &seconds) || !scan_done(&scan))
        return false;
    if (minutes > 59 || seconds > 59)
        return false;
    *out_ns = (hours * INT64_C(3600) + minutes * 60 + seconds) * NS_PER_SECOND;
    return true;
}

bool field_parse_duration(const char *text, size_t length, int64_t *out_ns)
{
    struct scan scan = scan_text(text, length);
    scan_trim(&scan);
    return parse_units(scan, out_ns) || parse_clock(scan, out_ns);
}

/* --------------------------------------------------------------------- instants ---- */

/* RFC 3339, section 5.6, with what servers leave out: the seconds, the colon of the offset, the
 * offset itself (then it is UTC).  A day without a time is none: nobody can tell where it is noon. */
static bool parse_rfc3339(struct scan scan, int64_t response_s, int64_t *wait_ns)
{
    struct calendar_time time = {0};
    int64_t fraction = 0;
    int offset_s = 0;
    int64_t local_s;

    if (!scan_number(&scan, 4, 4, &time.year) || !scan_char(&scan, '-') || !scan_number(&scan, 2, 2, &time.month) ||
        !scan_char(&scan, '-') || !scan_number(&scan, 2, 2, &time.day))
        return false;
    if (!scan_char(&scan, 'T') && !scan_char(&scan, 't') && !scan_char(&scan, ' '))
        return false;
    if (!scan_number(&scan, 2, 2, &time.hour) || !scan_char(&scan, ':') || !scan_number(&scan, 2, 2, &time.minute))
        return false;
    if (scan_char(&scan, ':') && !(scan_number(&scan, 2, 2, &time.second) && scan_fraction(&scan, &fraction)))
        return false;
    if (!scan_done(&scan) && !scan_char(&scan, 'Z') && !scan_char(&scan, 'z') && !scan_utc_offset(&scan, &offset_s))
        return false;
    if (!scan_done(&scan) || !calendar_to_seconds(&time, &local_s))
        return false;
    *wait_ns = until(local_s - offset_s, fraction, response_s);
    return true;
}

static bool parse_http_date(struct scan scan, int64_t response_s, int64_t *wait_ns)
{
    size_t length = (size_t)(scan.end - scan.at);
    int64_t at_s;
    if (length > DATE_LENGTH_MAX || !http_date_parse_text(scan.at, length, response_s, &at_s))
        return false;
    *wait_ns = until(at_s, 0, response_s);
    return true;
}

/* ------------------------------------------------------------------ all of them ---- */

bool field_parse_wait(const char *text, size_t length, enum field_number number, int64_t response_s, int64_t *wait_ns)
{
    struct scan scan = scan_text(text, length);
    scan_trim(&scan);
    /* All the others begin with a digit. */
    if (!scan_is_digit(scan_peek(&scan)))
        return number != FIELD_MILLISECONDS && parse_http_date(scan, response_s, wait_ns);
    struct scan at = scan;
    struct decimal decimal;
    if (scan_decimal(&at, &decimal) && scan_done(&at))
        return decimal_to_wait(decimal, number, response_s, wait_ns);
    if (number == FIELD_MILLISECONDS)
        return false;
    return field_parse_duration(scan.at, (size_t)(scan.end - scan.at), wait_ns) ||
           parse_rfc3339(scan, response_s, wait_ns);
}

/* A date has a comma after its weekday: a member that is of no use alone may be one together with
 * the next. */
bool field_next_wait(const char **at, enum field_number number, int64_t response_s, int64_t *wait_ns)
{
    const char *from = *at;
    if (*from == '\0')
        return false;
    const char *comma = from + strcspn(from, ",");
    *at = *comma ? comma + 1 : comma;
    if (field_parse_wait(from, (size_t)(comma - from), number, response_s, wait_ns))
        return true;
    if (*comma) {
        const char *next = comma + 1 + strcspn(comma + 1, ",");
        if (field_parse_wait(from, (size_t)(next - from), number, response_s, wait_ns)) {
            *at = *next ? next + 1 : next;
            return true;
        }
    }
    *wait_ns = FIELD_UNUSABLE;
    return true;
}

bool field_parse_count(const char *text, size_t length, int64_t *out)
{
    struct scan scan = scan_text(text, length);
    struct decimal number;
    scan_trim(&scan);
    bool negative = scan_char(&scan, '-');
    while (scan.end - scan.at > 1 && scan.at[0] == '0' && scan_is_digit(scan.at[1]))
        scan.at++;
    const char *from = scan.at;
    if (!scan_decimal(&scan, &number) || !scan_done(&scan) || number.fraction != 0)
        return false;
    size_t whole_length = 0;
    while (from + whole_length < scan.end && scan_is_digit(from[whole_length]))
        whole_length++;
    if (whole_length > DIGITS_MAX)
        return false;
    *out = negative && number.whole > 0 ? FIELD_NEGATIVE : number.whole;
    return true;
}
