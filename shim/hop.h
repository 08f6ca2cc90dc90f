/* SPDX-License-Identifier: MIT */
/*
 * Hop: who is answering now.  Within one perform libcurl follows redirects and goes through rounds
 * of authentication by itself; each is a request to some host.  They are charged to the host that
 * they went to, without waiting, and a refusal is the word of the host that said it: an innocent
 * first host is not blocked for what the second one answered.
 */
#ifndef CURTSY_SHIM_HOP_H
#define CURTSY_SHIM_HOP_H

#include "shim/governed.h"

/* Is another host answering than the transfer's own?  Then *bucket is the one that it speaks for,
 * NULL where it is not governed. */
bool hop_is_elsewhere(struct transfer *transfer, struct bucket **bucket);

/* Who has answered last, as hop_is_elsewhere found it. */
const struct target *hop_answering(const struct governed *governed);

/* Counts one more request of this perform, to the host that is answering now. */
void hop_charge(struct transfer *transfer);

#endif
