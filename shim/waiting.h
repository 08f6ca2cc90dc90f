/* SPDX-License-Identifier: MIT */
/*
 * Waiting: a transfer's entry in the table of waiters (core/waiters.h), so that `curtsy ps` can tell
 * who waits for what.  Kept while the wait lasts.
 */
#ifndef CURTSY_SHIM_WAITING_H
#define CURTSY_SHIM_WAITING_H

#include "shim/governed.h"

/* The transfer waits, with this cause and end. */
void waiting_note(struct governed *governed, const struct governor_step *step);

/* It does not, or not any more. */
void waiting_end(struct governed *governed);

#endif
