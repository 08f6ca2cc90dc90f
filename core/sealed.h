/* SPDX-License-Identifier: MIT */
/*
 * Sealed: a piece of shared memory that several processes write, each of which may die or be stopped
 * at any instruction, and of which a reader takes either what one of them has written as a whole or
 * nothing.  The table of waiters and the event ring are made of such pieces.
 *
 * Word 0 says which it is or whose; its writer sets it.  Word 1 is the seal, a checksum of all the
 * others, and is written after them.  So a reader needs no second look and a writer no lock: a
 * mixture of two writers' words, or of old ones and new, does not fit its seal, but for one chance
 * in 2^64.  That is no protection from somebody who wants to deceive, who may write what he likes:
 * what is read is brought into range by whoever uses it.
 *
 * Words that have no meaning yet are written as 0 and are under the seal, so that a later version
 * may give them one without being unreadable for this one.
 *
 * Thread-safe, process-safe and async-signal-safe.
 */
#ifndef CURTSY_CORE_SEALED_H
#define CURTSY_CORE_SEALED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEALED_WORDS 32

/* A copy of such a piece. */
struct sealed {
    uint64_t word[SEALED_WORDS];
};

/* Stores words 2 and up, then the seal that fits all of them and word 0. */
void sealed_write(_Atomic uint64_t place[SEALED_WORDS], const struct sealed *from);

/* Copies it.  False if it is not whole. */
bool sealed_read(const _Atomic uint64_t place[SEALED_WORDS], struct sealed *out);

/* From now on it is not whole, whatever word 0 says. */
void sealed_break(_Atomic uint64_t place[SEALED_WORDS]);

/* Texts in words: `size` bytes from word `first`, padded with zeros, always with one at the end.
 * They are made printable both ways, and cut to fit; one that fills its room is taken to have been
 * cut before, and loses a character at its end that is not complete. */
void sealed_put_text(struct sealed *sealed, size_t first, size_t size, const char *text);
void sealed_take_text(const struct sealed *sealed, size_t first, size_t size, char *out);

#endif
