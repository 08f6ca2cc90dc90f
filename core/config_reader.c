/* SPDX-License-Identifier: MIT */
/*
 * Config reader: stands between the text and inih, as the function from which inih gets its lines.
 *
 * inih, as distributions package it, cuts lines at 199 characters and the names of sections and keys
 * at 49, without a word; it does not say which line a value is from, takes an indented line for more
 * of the one above, ends `[[::1]:8443]` at the first bracket, and names no fault but the first.
 * Its variables that would change some of that exist in some builds only, and are global.  So:
 *
 *   - lines are given to it without indentation, one at a time, and what it makes of a line is known
 *     before it asks for the next one: that gives the line number, and a line that it makes nothing
 *     of is a fault;
 *   - headers and lines of comment are read here, and it is given a stand-in;
 *   - behind a value only a blank and ; begin a comment for it, so what follows a blank and # is taken
 *     off before;
 *   - a line that is too long is given to it in pieces, as entries of their own:
 *
 *         hosts = a.example, b.exa|           the mark '|' is a control character, which no line
 *         + = |mple, c.example|               may hold; it keeps blanks at the seams, and where it
 *         + = |, d.example  ; comment         is missing at the end, a comment has begun.
 */
#include "core/config_reader.h"

#include "core/scan.h"

#include <ini.h>
#include <stdlib.h>

#define MARK '\x01'
#define PIECE_PREFIX "+ = "
#define PIECE_MARGIN 4 /* mark, line feed and NUL; and one free, or inih may take the line for a cut one */

struct reader {
    const char *at, *end; /* the text that is left */
    unsigned number;      /* of the line that was read last */
    struct scan line;     /* what is left of that line */
    bool line_left;       /* although it may be empty: something stands behind a header */
    config_line_sink *sink;
    void *context;
    bool stopped;

    /* The entry under way: it is complete when inih asks for the next line. */
    bool has_entry;      /* a line was given that should be one */
    unsigned pieces;     /* of it were given */
    bool answered;       /* inih has seen an entry in the piece that it was given */
    bool name_is_beyond; /* the first = is not in the first piece */
    struct scan rest;    /* of a long line, not yet given */
    char key[CONFIG_KEY_LENGTH_MAX + 2];
    char *value; /* as large as the longest line */
    size_t value_length;
};

static void tell(struct reader *reader, enum config_line_kind kind, const char *key, const char *text)
{
    struct config_line line = {kind, reader->number, key, text};
    if (!reader->stopped && !reader->sink(reader->context, &line))
        reader->stopped = true;
}

static void fault(struct reader *reader, const char *text)
{
    tell(reader, CONFIG_LINE_FAULT, NULL, text);
}

/* ---- what inih makes of a line ---- */

/* Adds a piece's text; without the mark at its end it was the last one. */
static void add_piece(struct reader *reader, const char *text)
{
    size_t length = strlen(text);
    if (length > 0 && text[length - 1] == MARK)
        length--;
    else
        reader->rest.at = reader->rest.end;
    memcpy(reader->value + reader->value_length, text, length);
    reader->value_length += length;
    reader->value[reader->value_length] = '\0';
}

static int take_entry(void *context, const char *section, const char *name, const char *value)
{
    struct reader *reader = context;

    (void)section;
    if (name == NULL || value == NULL)
        return 1;
    reader->answered = true;
    if (reader->pieces == 1)
        snprintf(reader->key, sizeof reader->key, "%s", name);
    else if (*value == MARK)
        value++;
    add_piece(reader, value);
    return 1;
}

static void tell_entry(struct reader *reader)
{
    struct scan value = scan_text(reader->value, reader->value_length);
    scan_trim(&value);
    reader->value[value.end - reader->value] = '\0';
    tell(reader, CONFIG_LINE_ENTRY, reader->key, value.at);
}

static const char no_entry[] = "found a line without =: expected `key = value`, `[section]` or a comment";
static const char key_too_long[] = "found a key of more than 49 characters: expected one such as quota";

/* The entry under way is complete. */
static void settle(struct reader *reader)
{
    if (!reader->has_entry)
        return;
    reader->has_entry = false;
    if (!reader->answered)
        fault(reader, reader->name_is_beyond ? key_too_long : no_entry);
    else if (strlen(reader->key) > CONFIG_KEY_LENGTH_MAX)
        fault(reader, key_too_long);
    else if (reader->key[0] == '\0')
        fault(reader, "found no key before the =: expected `key = value`");
    else
        tell_entry(reader);
}

/* ---- lines for inih ---- */

/* The next piece of the entry under way, as much as fits.  A blank before a ; goes with it: together
 * they begin a comment. */
static char *give_piece(struct reader *reader, char *buffer, size_t size)
{
    size_t used = 0;
    size_t left = (size_t)(reader->rest.end - reader->rest.at);

    if (reader->pieces++ > 0) {
        used = strlen(strcpy(buffer, PIECE_PREFIX));
        buffer[used++] = MARK;
    }
    size_t room = size - used - PIECE_MARGIN;
    size_t length = left < room ? left : room;
    if (length < left && length > 1 && reader->rest.at[length] == ';' && scan_is_blank(reader->rest.at[length - 1]))
        length--;
    memcpy(buffer + used, reader->rest.at, length);
    used += length;
    reader->rest.at += length;
    if (length < left)
        buffer[used++] = MARK;
    strcpy(buffer + used, "\n");
    reader->answered = false;
    return buffer;
}

/* Where a comment begins: at a # behind a blank. */
static const char *find_comment(const struct scan *line)
{
    for (const char *at = line->at; at + 1 < line->end; at++)
        if (scan_is_blank(at[0]) && at[1] == '#')
            return at;
    return line->end;
}

static char *begin_entry(struct reader *reader, char *buffer, size_t size)
{
    reader->line.end = find_comment(&reader->line);
    size_t length = (size_t)(reader->line.end - reader->line.at);
    const char *equals = memchr(reader->line.at, '=', length);

    reader->has_entry = true;
    reader->pieces = 0;
    reader->name_is_beyond = equals != NULL && (size_t)(equals - reader->line.at) >= size - PIECE_MARGIN;
    reader->key[0] = '\0';
    reader->value_length = 0;
    reader->value[0] = '\0';
    reader->rest = reader->line;
    reader->line_left = false;
    return give_piece(reader, buffer, size);
}

/* ---- headers ---- */

static bool is_comment(const struct scan *line)
{
    return scan_peek(line) == '#' || scan_peek(line) == ';';
}

/* Where the name in `[name]` ends: at a ] that is not in quotes nor closes a [ of its own.  NULL if it
 * does not, and whether that is for a quote that is not closed. */
static const char *find_header_end(const struct scan *line, bool *quoted)
{
    unsigned depth = 0;
    *quoted = false;
    for (const char *at = line->at; at < line->end; at++) {
        if (*at == '"')
            *quoted = !*quoted;
        else if (!*quoted && *at == '[')
            depth++;
        else if (!*quoted && *at == ']' && --depth == 0)
            return at;
    }
    return NULL;
}

/* A second `]`, or `:8443]`, is what is left of an address that lacks its own brackets. */
static bool is_cut_address(const struct scan *behind)
{
    char next = scan_peek(behind);
    return next == ':' || next == ']';
}

/* What is wrong with a header, or NULL.  The keys behind `[a] [b]` would be for b alone. */
static const char *fault_of_header(struct scan inside, struct scan behind)
{
    if (is_cut_address(&behind))
        return "found an IPv6 address without brackets of its own: expected [[::1]:8443]";
    scan_trim(&inside);
    scan_trim(&behind);
    if (scan_done(&inside))
        return "found a section without a name: expected one such as [default] or [api.example.com]";
    if (inside.end - inside.at > CONFIG_SECTION_LENGTH_MAX)
        return "found a section's name of more than 1000 characters: expected a host such as [api.example.com]";
    if (scan_peek(&behind) == '[')
        return "found two sections on one line: expected the second on a line of its own (or its host in `hosts`)";
    return NULL;
}

static void tell_section(struct reader *reader, struct scan inside)
{
    char name[CONFIG_SECTION_LENGTH_MAX + 1];

    scan_trim(&inside);
    size_t length = (size_t)(inside.end - inside.at);
    memcpy(name, inside.at, length);
    name[length] = '\0';
    tell(reader, reader->line_left ? CONFIG_LINE_SECTION_OF_ENTRY : CONFIG_LINE_SECTION, NULL, name);
}

static void read_header(struct reader *reader)
{
    bool quoted;
    const char *end = find_header_end(&reader->line, &quoted);
    const char *wrong = quoted
                            ? "found a label without its second quote: expected one as in [api.example.com \"writes\"]"
                            : "found [ without ]: expected a section such as [api.example.com]";
    struct scan inside = {reader->line.at + 1, end};
    struct scan behind = {reader->line.end, reader->line.end};

    if (end != NULL) {
        behind.at = end + 1;
        wrong = fault_of_header(inside, behind);
    }
    reader->line_left = false;
    if (wrong != NULL) {
        tell(reader, CONFIG_LINE_BAD_SECTION, NULL, wrong);
        return;
    }
    scan_trim(&behind);
    reader->line = behind;
    reader->line_left = !scan_done(&behind) && !is_comment(&behind);
    tell_section(reader, inside);
}

/* ---- lines of the text ---- */

/* The first character that no line may hold; NULL if there is none. */
static const char *find_foreign_character(const struct scan *line)
{
    for (const char *at = line->at; at < line->end; at++)
        if (((unsigned char)*at < 0x20 && *at != '\t') || *at == 0x7f)
            return at;
    return NULL;
}

static void tell_foreign_character(struct reader *reader, unsigned char foreign)
{
    bool is_header = scan_peek(&reader->line) == '[';
    char text[64];

    if (foreign == '\0')
        strcpy(text, "found a NUL byte: expected text");
    else
        snprintf(text, sizeof text, "found a control character (0x%02x): expected text", foreign);
    tell(reader, is_header ? CONFIG_LINE_BAD_SECTION : CONFIG_LINE_FAULT, NULL, text);
    reader->line_left = false;
}

/* The next line of the text, without blanks and line end around it; false at the end. */
static bool next_line(struct reader *reader)
{
    if (reader->at == reader->end)
        return false;
    const char *line_end = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
    const char *next = line_end != NULL ? line_end + 1 : reader->end;
    if (line_end == NULL)
        line_end = reader->end;
    if (line_end > reader->at && line_end[-1] == '\r')
        line_end--;
    reader->line = (struct scan){reader->at, line_end};
    reader->at = next;
    reader->number++;
    scan_trim(&reader->line);
    return true;
}

/* inih's view: one more line, or NULL at the end. */
static char *read_line(char *buffer, int size, void *stream)
{
    struct reader *reader = stream;

    if (reader->has_entry && reader->answered && !scan_done(&reader->rest))
        return give_piece(reader, buffer, (size_t)size);
    settle(reader);
    if (reader->stopped || (!reader->line_left && !next_line(reader)))
        return NULL;
    if (scan_done(&reader->line) || is_comment(&reader->line)) {
        reader->line_left = false;
        return strcpy(buffer, "#\n");
    }
    const char *foreign = find_foreign_character(&reader->line);
    if (foreign != NULL) {
        tell_foreign_character(reader, (unsigned char)*foreign);
        return strcpy(buffer, "#\n");
    }
    if (scan_peek(&reader->line) != '[')
        return begin_entry(reader, buffer, (size_t)size);
    read_header(reader);
    return strcpy(buffer, "[section]\n");
}

static size_t longest_line(const char *text, size_t length)
{
    size_t longest = 0, current = 0;
    for (size_t i = 0; i < length; i++) {
        current = text[i] == '\n' ? 0 : current + 1;
        if (current > longest)
            longest = current;
    }
    return longest;
}

static bool starts_with(const char *text, size_t length, const char *start)
{
    return length >= strlen(start) && memcmp(text, start, strlen(start)) == 0;
}

bool config_reader_run(const char *text, size_t length, config_line_sink *sink, void *context)
{
    struct reader reader = {.at = text, .end = text + length, .sink = sink, .context = context};

    if (starts_with(text, length, "\xff\xfe") || starts_with(text, length, "\xfe\xff")) {
        reader.number = 1;
        fault(&reader, "found UTF-16: expected text in UTF-8");
        return !reader.stopped;
    }
    if (starts_with(text, length, "\xef\xbb\xbf"))
        reader.at += 3;
    /* Beside the line, the mark that a piece may begin with. */
    reader.value = malloc(longest_line(text, length) + 2);
    if (reader.value == NULL)
        return false;
    bool complete = ini_parse_stream(read_line, &reader, take_entry, &reader) != -2;
    settle(&reader);
    free(reader.value);
    return complete && !reader.stopped;
}
