/* SPDX-License-Identifier: MIT */
/*
 * Sealed: copying words to and from shared memory, and the checksum that tells a whole copy.
 */
#include "core/sealed.h"

#include "core/printable.h"
#include "core/segment_layout.h"

#include <string.h>

#define SEAL 1 /* the index of its word */

static_assert(sizeof(struct sealed) == SEGMENT_EVENT_BYTES, "layout");
static_assert(sizeof(struct sealed) == SEGMENT_WAITER_BYTES, "layout");

/* Each step can be undone, so two pieces that differ in one word never have the same seal; such as
 * differ in more have it by chance.  Never 0, so that a broken seal fits nothing. */
static uint64_t seal_of(const struct sealed *sealed)
{
    uint64_t sum = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < SEALED_WORDS; i++) {
        if (i == SEAL)
            continue;
        sum = (sum ^ sealed->word[i]) * UINT64_C(0xbf58476d1ce4e5b9);
        sum ^= sum >> 29;
    }
    return sum ? sum : 1;
}

void sealed_write(_Atomic uint64_t place[SEALED_WORDS], const struct sealed *from)
{
    for (size_t i = SEAL + 1; i < SEALED_WORDS; i++)
        shared_store(&place[i], from->word[i]);
    shared_store(&place[SEAL], seal_of(from));
}

bool sealed_read(const _Atomic uint64_t place[SEALED_WORDS], struct sealed *out)
{
    for (size_t i = 0; i < SEALED_WORDS; i++)
        out->word[i] = shared_load(&place[i]);
    return out->word[SEAL] == seal_of(out);
}

void sealed_break(_Atomic uint64_t place[SEALED_WORDS])
{
    shared_store(&place[SEAL], 0);
}

/* What is behind the text's end is not looked at: it may be anything, and would be for all to read. */
void sealed_put_text(struct sealed *sealed, size_t first, size_t size, const char *text)
{
    char *room = (char *)&sealed->word[first];
    size_t length = strnlen(text, size - 1);
    if (length == size - 1)
        length = printable_whole_length(text, length);
    memset(room, 0, size);
    printable_copy(room, size, text, length);
}

void sealed_take_text(const struct sealed *sealed, size_t first, size_t size, char *out)
{
    printable_copy(out, size, (const char *)&sealed->word[first], size - 1);
}
