/* SPDX-License-Identifier: MIT */
/*
 * The mode is in the two low bits, the end in the others: a time to four nanoseconds.
 */
#include "core/operator.h"

#include <string.h>

#define MODE_MASK UINT64_C(3)
#define UNTIL_NEVER ((uint64_t)INT64_MAX & ~MODE_MASK)

static const char *const names[] = {"auto", "off", "observe", "enforce"};

const char *operator_mode_name(enum operator_mode mode)
{
    return names[mode & MODE_MASK];
}

bool operator_mode_parse(const char *text, enum operator_mode *mode)
{
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) {
            *mode = (enum operator_mode)i;
            return true;
        }
    return false;
}

uint64_t operator_word(enum operator_mode mode, int64_t until_ns)
{
    if (mode == OPERATOR_AUTO)
        return 0;
    return ((uint64_t)(until_ns > 0 ? until_ns : 0) & ~MODE_MASK) | mode;
}

/* What was not written by us may have its highest bit set: that is no time, and no end. */
int64_t operator_word_until_ns(uint64_t word)
{
    uint64_t until = word & ~MODE_MASK;
    return until >= UNTIL_NEVER ? TIME_NEVER : (int64_t)until;
}

enum operator_mode operator_word_mode(uint64_t word, int64_t now_ns)
{
    return now_ns < operator_word_until_ns(word) ? (enum operator_mode)(word & MODE_MASK) : OPERATOR_AUTO;
}

enum mode operator_ceiling(enum operator_mode mode)
{
    switch (mode) {
    case OPERATOR_OFF:
        return MODE_OFF;
    case OPERATOR_OBSERVE:
        return MODE_OBSERVE;
    default:
        return MODE_ENFORCE;
    }
}
