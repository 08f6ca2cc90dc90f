/* SPDX-License-Identifier: MIT */
/*
 * Cut short: what becomes of a command while somebody else cuts short the segment that it has mapped.
 * Whoever may write a segment can do that, and root looks at everybody's: nobody must be able to end
 * the command in the middle of its list.
 */
#ifndef CURTSY_TOOLS_CUT_SHORT_H
#define CURTSY_TOOLS_CUT_SHORT_H

/* From now on, memory whose file has become too short for it reads as zeros (an empty segment), and
 * what is written there is lost, instead of ending the process with SIGBUS. */
void cut_short_reads_zeros(void);

#endif
