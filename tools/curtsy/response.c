/* SPDX-License-Identifier: MIT */
/*
 * Response: see response.h.  A field is handed on when the next line shows that it is complete, since
 * that line may be more of it.
 */
#include "tools/curtsy/response.h"

#include "core/scan.h"

/* A line that is longer is longer than any field that is kept, and is dropped as one. */
#define LINE_SIZE (2 * HEADERS_BYTES)

struct line {
    char text[LINE_SIZE];
    size_t length; /* without its line end */
};

/* False at the end of the stream.  What does not fit is left out. */
static bool read_line(FILE *stream, struct line *line)
{
    int c = getc(stream);

    line->length = 0;
    if (c == EOF)
        return false;
    for (; c != EOF && c != '\n'; c = getc(stream))
        if (line->length < LINE_SIZE)
            line->text[line->length++] = (char)c;
    if (line->length > 0 && line->text[line->length - 1] == '\r')
        line->length--;
    return true;
}

enum line_kind { LINE_BLANK, LINE_STATUS, LINE_FOLD, LINE_FIELD, LINE_OTHER };

/* RFC 9110, section 5.1: a field's name is a token.  What stands in markup before a colon is none. */
static bool is_field(const struct line *line)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    size_t i = 0;

    while (i < line->length && (scan_is_letter(line->text[i]) || scan_is_digit(line->text[i]) ||
                                memchr(marks, line->text[i], sizeof(marks) - 1) != NULL))
        i++;
    return i > 0 && i < line->length && line->text[i] == ':';
}

static enum line_kind kind_of(const struct line *line)
{
    static const char protocol[] = "HTTP/";

    if (line->length == 0)
        return LINE_BLANK;
    if (line->length >= sizeof(protocol) && memcmp(line->text, protocol, sizeof(protocol) - 1) == 0 &&
        scan_is_digit(line->text[sizeof(protocol) - 1]))
        return LINE_STATUS;
    if (scan_is_blank(line->text[0]))
        return LINE_FOLD;
    return is_field(line) ? LINE_FIELD : LINE_OTHER;
}

/* "HTTP/1.1 429 Too Many Requests", "HTTP/2 200": the three digits, or 0. */
static int status_of(const struct line *line)
{
    struct scan scan = scan_text(line->text, line->length);
    int status;

    while (!scan_done(&scan) && !scan_is_blank(scan_peek(&scan)))
        scan.at++;
    scan_blanks(&scan);
    if (!scan_number(&scan, 3, 3, &status) || status < 100)
        return 0;
    return scan_done(&scan) || scan_is_blank(scan_peek(&scan)) ? status : 0;
}

/* More of the field, with one blank for the line's end and those that follow it. */
static void append_fold(struct line *field, const struct line *fold)
{
    struct scan more = scan_text(fold->text, fold->length);

    scan_trim(&more);
    if (field->length > 0 && field->length < LINE_SIZE)
        field->text[field->length++] = ' ';
    for (; field->length > 0 && field->length < LINE_SIZE && !scan_done(&more); more.at++)
        field->text[field->length++] = *more.at;
}

static void begin_block(struct response *response, int status)
{
    response->status = status;
    headers_clear(&response->headers);
}

static void add_field(struct response *response, struct line *field)
{
    headers_add(&response->headers, field->text, field->length);
    field->length = 0;
}

bool response_read(FILE *stream, struct response *response)
{
    static struct line line, field; /* the field may be continued */
    bool is_any = false, is_behind_block = false;

    begin_block(response, 0);
    field.length = 0;
    while (read_line(stream, &line)) {
        enum line_kind kind = kind_of(&line);

        if (kind == LINE_FOLD && !is_behind_block) {
            append_fold(&field, &line);
            continue;
        }
        add_field(response, &field);
        if ((is_behind_block && kind != LINE_STATUS) || (!is_any && kind == LINE_OTHER))
            break;
        if (kind == LINE_STATUS)
            begin_block(response, status_of(&line));
        else if (kind == LINE_FIELD)
            field = line;
        is_any = is_any || kind == LINE_STATUS || kind == LINE_FIELD;
        is_behind_block = is_any && kind == LINE_BLANK;
    }
    add_field(response, &field);
    return is_any;
}
