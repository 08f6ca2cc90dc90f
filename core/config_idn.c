/* SPDX-License-Identifier: MIT */
/*
 * Config IDN: UTF-8 to code points, capitals to small letters, code points to Punycode.
 */
#include "core/config_idn.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LABEL_MAX 63 /* characters of a label as it travels (RFC 1035, section 2.3.4) */
#define PREFIX "xn--"

/* ---- letters ---- */

enum letter_case {
    CASE_NONE,    /* small, or without case */
    CASE_SHIFTED, /* capitals, `shift` before their small letters */
    CASE_EVEN,    /* capitals have even numbers, each before its small letter */
    CASE_ODD,
};

/* Letters that stand for themselves in a name; what lies between is mapped to several, or to nothing.
 * None that are written from right to left: those have rules of their own (RFC 5893). */
static const struct {
    uint16_t first, last;
    uint8_t letter_case, shift;
} letters[] = {
    {'-', '-', CASE_NONE, 0},           {'0', '9', CASE_NONE, 0},           {'A', 'Z', CASE_SHIFTED, 32},
    {'a', 'z', CASE_NONE, 0},           {0x00c0, 0x00d6, CASE_SHIFTED, 32}, {0x00d8, 0x00de, CASE_SHIFTED, 32},
    {0x00df, 0x00f6, CASE_NONE, 0},     {0x00f8, 0x00ff, CASE_NONE, 0},     {0x0100, 0x012f, CASE_EVEN, 0},
    {0x0134, 0x0137, CASE_EVEN, 0},     {0x0139, 0x013e, CASE_ODD, 0},      {0x0141, 0x0148, CASE_ODD, 0},
    {0x014a, 0x0177, CASE_EVEN, 0},     {0x0179, 0x017e, CASE_ODD, 0},      {0x0391, 0x03a1, CASE_SHIFTED, 32},
    {0x03a3, 0x03ab, CASE_SHIFTED, 32}, {0x03ac, 0x03ce, CASE_NONE, 0},     {0x0400, 0x040f, CASE_SHIFTED, 80},
    {0x0410, 0x042f, CASE_SHIFTED, 32}, {0x0430, 0x045f, CASE_NONE, 0},     {0x0490, 0x0491, CASE_EVEN, 0},
    {0x0e01, 0x0e30, CASE_NONE, 0},     {0x1ea0, 0x1ef9, CASE_EVEN, 0},     {0x3041, 0x3096, CASE_NONE, 0},
    {0x30a1, 0x30fa, CASE_NONE, 0},     {0x30fc, 0x30fc, CASE_NONE, 0},     {0x4e00, 0x9fff, CASE_NONE, 0},
    {0xac00, 0xd7a3, CASE_NONE, 0},
};

/* The small letter; 0 for what is doubtful. */
static uint32_t small_letter(uint32_t point)
{
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
        if (point < letters[i].first || point > letters[i].last)
            continue;
        if (letters[i].letter_case == CASE_SHIFTED)
            return point + letters[i].shift;
        if (letters[i].letter_case == CASE_EVEN)
            return point | 1;
        return letters[i].letter_case == CASE_ODD ? point + (point & 1) : point;
    }
    return 0;
}

/* The next code point of up to three bytes (all letters above are below U+10000); 0 if it is none. */
static uint32_t next_point(const unsigned char **at, const unsigned char *end)
{
    unsigned first = *(*at)++;
    unsigned more = first < 0x80 ? 0 : first >= 0xc2 && first < 0xe0 ? 1 : 2;
    uint32_t point = more == 0 ? first : more == 1 ? first & 0x1f : first & 0x0f;

    if (first >= 0x80 && (first < 0xc2 || first > 0xef))
        return 0;
    for (unsigned i = 0; i < more; i++) {
        if (*at == end || (**at & 0xc0) != 0x80)
            return 0;
        point = point << 6 | (*(*at)++ & 0x3f);
    }
    return more == 2 && point < 0x800 ? 0 : point;
}

/* ---- Punycode ---- */

enum { BASE = 36, T_MIN = 1, T_MAX = 26, SKEW = 38, DAMP = 700, INITIAL_BIAS = 72, INITIAL_POINT = 128 };

/* RFC 3492, section 6.1. */
static uint32_t adapt(uint32_t delta, uint32_t count, bool is_first)
{
    uint32_t k = 0;
    delta = is_first ? delta / DAMP : delta / 2;
    delta += delta / count;
    for (; delta > (BASE - T_MIN) * T_MAX / 2; k += BASE)
        delta /= BASE - T_MIN;
    return k + (BASE - T_MIN + 1) * delta / (delta + SKEW);
}

struct label {
    uint32_t points[LABEL_MAX];
    size_t count;
    char out[LABEL_MAX + 1];
    size_t length;
};

static bool put(struct label *label, char c)
{
    if (label->length == LABEL_MAX)
        return false;
    label->out[label->length++] = c;
    label->out[label->length] = '\0';
    return true;
}

/* Section 6.3: a number as digits of growing worth, each of which says whether it is the last. */
static bool put_delta(struct label *label, uint32_t delta, uint32_t bias)
{
    for (uint32_t k = BASE;; k += BASE) {
        uint32_t t = k <= bias ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias;
        uint32_t digit = delta < t ? delta : t + (delta - t) % (BASE - t);
        if (!put(label, (char)(digit < 26 ? 'a' + digit : '0' + digit - 26)))
            return false;
        if (delta < t)
            return true;
        delta = (delta - t) / (BASE - t);
    }
}

static uint32_t least_from(const struct label *label, uint32_t from)
{
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < label->count; i++)
        if (label->points[i] >= from && label->points[i] < least)
            least = label->points[i];
    return least;
}

/* Behind the ASCII characters come the others, by their number, each as the steps that lead to its
 * place.  63 code points below 65,536 cannot overflow. */
static bool put_others(struct label *label, uint32_t basic)
{
    uint32_t point = INITIAL_POINT, delta = 0, bias = INITIAL_BIAS;

    for (uint32_t handled = basic; handled < label->count; delta++, point++) {
        uint32_t next = least_from(label, point);
        delta += (next - point) * (handled + 1);
        point = next;
        for (size_t i = 0; i < label->count; i++) {
            delta += label->points[i] < point;
            if (label->points[i] != point)
                continue;
            if (!put_delta(label, delta, bias))
                return false;
            bias = adapt(delta, handled + 1, handled == basic);
            delta = 0;
            handled++;
        }
    }
    return true;
}

static bool encode(struct label *label)
{
    uint32_t basic = 0;

    label->length = 0;
    label->out[0] = '\0';
    for (size_t i = 0; i < label->count; i++)
        basic += label->points[i] < 0x80;
    if (basic < label->count)
        for (const char *at = PREFIX; *at != '\0'; at++)
            put(label, *at);
    for (size_t i = 0; i < label->count; i++)
        if (label->points[i] < 0x80 && !put(label, (char)label->points[i]))
            return false;
    if (basic == label->count)
        return true;
    return (basic == 0 || put(label, '-')) && put_others(label, basic);
}

/* ---- the whole ---- */

static bool read_label(struct label *label, const unsigned char **at, const unsigned char *end)
{
    for (label->count = 0; *at < end && **at != '.'; label->count++) {
        if (label->count == LABEL_MAX)
            return false;
        label->points[label->count] = small_letter(next_point(at, end));
        if (label->points[label->count] == 0)
            return false;
    }
    bool is_marked = label->count > 3 && label->points[2] == '-' && label->points[3] == '-';
    return label->count > 0 && !is_marked && label->points[0] != '-' && label->points[label->count - 1] != '-';
}

bool idn_to_ascii(const char *host, size_t length, char *out, size_t size)
{
    const unsigned char *at = (const unsigned char *)host, *end = at + length;
    struct label label;
    size_t used = 0;

    if (length >= 2 && memcmp(host, "*.", 2) == 0 && size > 2) {
        memcpy(out, "*.", 2);
        used = 2;
        at += 2;
    }
    for (;;) {
        if (!read_label(&label, &at, end) || !encode(&label))
            return false;
        int printed = snprintf(out + used, size - used, "%s%s", label.out, at < end ? "." : "");
        if (printed < 0 || (size_t)printed >= size - used)
            return false;
        used += (size_t)printed;
        if (at == end)
            return true;
        at++;
        /* A dot at the end adds nothing. */
        if (at == end) {
            out[used - 1] = '\0';
            return true;
        }
    }
}
