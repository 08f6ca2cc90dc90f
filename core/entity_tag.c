/* SPDX-License-Identifier: MIT */
/*
 * A tag is opaque, but not every text is one: what a server has not written as RFC 9110 has it proves
 * nothing about its bytes.
 */
#include "core/entity_tag.h"

#include "core/scan.h"

/* etagc: what is visible but the quote itself, and obs-text.  No blanks, no escapes. */
static bool is_tag_character(char c)
{
    unsigned char byte = (unsigned char)c;
    return byte > ' ' && byte != '"' && byte != 0x7f;
}

bool entity_tag_is_strong(const char *value)
{
    struct scan scan = scan_text(value, strlen(value));
    scan_trim(&scan);
    if (!scan_char(&scan, '"'))
        return false;
    while (is_tag_character(scan_peek(&scan)))
        scan.at++;
    return scan_char(&scan, '"') && scan_done(&scan);
}
