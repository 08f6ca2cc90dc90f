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

/* The bucket that the last hop's host speaks for; NULL when it is the transfer's own target (or
 * cannot be told). */
struct bucket *hop_bucket(struct transfer *transfer);

/* Counts one more request of this perform, to the host that is answering now. */
void hop_charge(struct transfer *transfer);

#endif
