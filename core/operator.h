/* SPDX-License-Identifier: MIT */
/*
 * Operator: the switch for an incident, as one word of shared memory.  One is in the segment's
 * header and speaks for everything, one in each bucket speaks for that.
 *
 * The word holds a mode and until when it is meant, so it is set and obeyed in one step, and an
 * operator who forgets it is not obeyed for ever.  All zeros: the operator says nothing.  Of several
 * sources of the mode (the word of the segment, of the bucket, CURTSY_MODE, the sections) the least
 * intrusive wins; so `enforce` from here cannot overrule an `off` from there, and differs from
 * `auto` only in that it is shown.
 *
 * Pure functions, thread-safe.
 */
#ifndef CURTSY_CORE_OPERATOR_H
#define CURTSY_CORE_OPERATOR_H

#include "core/keys.h"

enum operator_mode { OPERATOR_AUTO, OPERATOR_OFF, OPERATOR_OBSERVE, OPERATOR_ENFORCE };

/* "auto", "off", "observe", "enforce". */
const char *operator_mode_name(enum operator_mode mode);
bool operator_mode_parse(const char *text, enum operator_mode *mode);

/* until_ns: CLOCK_BOOTTIME, TIME_NEVER without an end. */
uint64_t operator_word(enum operator_mode mode, int64_t until_ns);

/* OPERATOR_AUTO once its time is over. */
enum operator_mode operator_word_mode(uint64_t word, int64_t now_ns);
int64_t operator_word_until_ns(uint64_t word);

/* The most that the operator allows. */
enum mode operator_ceiling(enum operator_mode mode);

#endif
