/* SPDX-License-Identifier: MIT */
/*
 * A line is built in the caller's buffer, and what it is built from is not to be trusted: a host or
 * a message may hold anything.  So every text goes through next_character, which passes well-formed
 * UTF-8 and turns all else into '?'; nobody can forge a second line, move a terminal's cursor, or
 * break the JSON.  A line that is too long is cut in a text, never in the middle of the syntax.
 */
#include "core/log.h"

#include "core/scan.h"

#include <stdio.h>

/* One character less than the buffer, for the NUL, and one for the line end. */
struct line {
    char *buffer;
    size_t used;
    size_t limit;
};

static bool put(struct line *line, const char *text, size_t length)
{
    if (length > line->limit - line->used)
        return false;
    memcpy(line->buffer + line->used, text, length);
    line->used += length;
    return true;
}

static bool put_word(struct line *line, const char *text)
{
    return put(line, text, strlen(text));
}

/* ------------------------------------------------------------------ untrusted texts ---- */

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The length of the well-formed UTF-8 sequence at `text` (NUL-terminated), 0 if there is none: no
 * overlong form, no surrogate, nothing above U+10FFFF (RFC 3629, section 4). */
static size_t sequence_length(const char *text)
{
    unsigned char first = (unsigned char)text[0], second = (unsigned char)text[1];
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4 || !is_continuation(text[1]))
        return 0;
    if (first < 0xe0)
        return 2;
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
        (first == 0xf4 && second > 0x8f) || !is_continuation(text[2]))
        return 0;
    if (first < 0xf0)
        return 3;
    return is_continuation(text[3]) ? 4 : 0;
}

static bool is_control(const char *text, size_t length)
{
    unsigned char first = (unsigned char)text[0];
    if (length == 1)
        return first < 0x20 || first == 0x7f;
    return first == 0xc2 && (unsigned char)text[1] < 0xa0;
}

/* Puts the next character of *text, or '?' for what is none; false if it does not fit before
 * `reserve` more bytes. */
static bool next_character(struct line *line, const char **text, enum log_format format, size_t reserve)
{
    size_t length = sequence_length(*text);
    bool is_clean = length > 0 && !is_control(*text, length);
    bool escape = is_clean && format == LOG_JSON && (**text == '"' || **text == '\\');
    size_t needed = (is_clean ? length : 1) + escape + reserve;
    if (needed > line->limit - line->used)
        return false;
    if (escape)
        put(line, "\\", 1);
    put(line, is_clean ? *text : "?", is_clean ? length : 1);
    *text += length ? length : 1;
    return true;
}

static void put_text(struct line *line, const char *text, enum log_format format, size_t reserve)
{
    while (*text && next_character(line, &text, format, reserve))
        continue;
}

/* ----------------------------------------------------------------------------- words ---- */

static const char *event_name(enum log_event event)
{
    switch (event) {
    case LOG_REFUSED:
        return "refused";
    case LOG_WAITING:
        return "waiting";
    case LOG_GAVE_UP:
        return "gave_up";
    case LOG_FAILED_OPEN:
        return "failed_open";
    case LOG_WOULD_WAIT:
        return "would_wait";
    case LOG_WOULD_RETRY:
        return "would_retry";
    case LOG_OPERATOR:
        return "operator";
    case LOG_NOTICE:
        break;
    }
    return "notice";
}

/* What a text begins with; what would have been is said with the wait. */
static const char *event_heading(enum log_event event)
{
    switch (event) {
    case LOG_REFUSED:
        return " refused";
    case LOG_WAITING:
        return " waiting";
    case LOG_GAVE_UP:
        return " gave up";
    case LOG_FAILED_OPEN:
        return " failed open";
    case LOG_WOULD_WAIT:
    case LOG_WOULD_RETRY:
        return " observed";
    case LOG_OPERATOR:
        return " the operator has";
    case LOG_NOTICE:
        break;
    }
    return "";
}

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_OFF:
        return "off";
    case LOG_ERROR:
        return "error";
    case LOG_WARN:
        return "warn";
    case LOG_INFO:
        return "info";
    case LOG_DEBUG:
        break;
    }
    return "debug";
}

/* A wait until "never" is still about as long when some time has been taken off it. */
static bool is_endless(const struct log_record *record)
{
    return record->wait_ns > TIME_NEVER / 2;
}

/* Rounded up: a wait of a microsecond is not 0. */
static int64_t wait_ms(const struct log_record *record)
{
    int64_t whole_ms = record->wait_ns / NS_PER_MS;
    return whole_ms + (record->wait_ns % NS_PER_MS > 0 && whole_ms < INT64_MAX / NS_PER_MS);
}

/* ------------------------------------------------------------------------------ text ---- */

static bool is_given(const char *text)
{
    return text && *text;
}

/* Puts the separator before all details but the first. */
static void put_detail(struct line *line, bool *any, const char *detail)
{
    put_word(line, *any ? ", " : ": ");
    put_word(line, detail);
    *any = true;
}

/* "waiting 2s", by the tense of the event. */
static void put_wait(struct line *line, bool *any, const struct log_record *record)
{
    char detail[96], duration[64] = "";
    const char *how = "waiting ";
    if (record->wait_ns <= 0 && record->event != LOG_WOULD_WAIT && record->event != LOG_WOULD_RETRY)
        return;
    if (record->event == LOG_GAVE_UP)
        how = "would have to wait ";
    else if (record->event == LOG_WOULD_WAIT)
        how = record->wait_ns > 0 ? "would have waited " : "would have waited";
    else if (record->event == LOG_WOULD_RETRY)
        how = record->wait_ns > 0 ? "would have retried after " : "would have retried";
    else if (record->event == LOG_OPERATOR)
        how = "for ";
    if (is_endless(record))
        snprintf(duration, sizeof(duration), "%s", record->event == LOG_OPERATOR ? "good" : "without an end");
    else if (record->wait_ns > 0)
        units_format_duration(duration, sizeof(duration), wait_ms(record) * NS_PER_MS);
    snprintf(detail, sizeof(detail), "%s%s", how, duration);
    put_detail(line, any, detail);
}

static void put_details(struct line *line, const struct log_record *record)
{
    char detail[96];
    bool any = record->event == LOG_OPERATOR && record->endpoint;
    if (record->status) {
        snprintf(detail, sizeof(detail), "%d", record->status);
        put_detail(line, &any, detail);
    }
    if (record->attempt) {
        snprintf(detail, sizeof(detail), "attempt %u", record->attempt);
        put_detail(line, &any, detail);
    }
    put_wait(line, &any, record);
    if (record->cause != CAUSE_NONE) {
        snprintf(detail, sizeof(detail), any ? " (%s)" : ": (%s)", cause_name(record->cause));
        put_word(line, detail);
        any = true;
    }
    if (is_given(record->bound)) {
        put_detail(line, &any, "by ");
        put_text(line, record->bound, LOG_TEXT, 0);
    }
}

static void put_after_blank(struct line *line, const char *text)
{
    put_word(line, " ");
    put_text(line, text, LOG_TEXT, 0);
}

/* The operator's sentence goes on with what he has done, and then says to whom. */
static void put_body(struct line *line, const struct log_record *record)
{
    bool is_operator = record->event == LOG_OPERATOR;
    put_word(line, event_heading(record->event));
    if (is_operator)
        put_after_blank(line, is_given(record->message) ? record->message : "spoken");
    if (record->endpoint) {
        if (is_operator)
            put_word(line, ":");
        put_after_blank(line, record->endpoint);
    }
    put_details(line, record);
    if (record->message && !is_operator) {
        put_word(line, line->buffer[line->used ? line->used - 1 : 0] == ':' ? " " : ": ");
        put_text(line, record->message, LOG_TEXT, 0);
    }
}

static void format_text(struct line *line, const struct log_record *record)
{
    char pid[32];
    snprintf(pid, sizeof(pid), "curtsy[%d]", record->pid);
    put_word(line, pid);
    if (is_given(record->program))
        put_after_blank(line, record->program);
    put_word(line, ":");
    put_body(line, record);
}

/* ------------------------------------------------------------------------------ time ---- */

size_t log_format_time(int64_t time_s, char *buffer, size_t size)
{
    struct calendar_time time;
    calendar_from_seconds(time_s, &time);
    int length = snprintf(buffer, size, "%04d-%02d-%02dT%02d:%02d:%02dZ", time.year, time.month, time.day, time.hour,
                          time.minute, time.second);
    return length > 0 && (size_t)length < size ? (size_t)length : 0;
}

/* ------------------------------------------------------------------------------ JSON ---- */

/* A member that does not fit before the closing brace is left out; a text is cut. */
static void put_number(struct line *line, const char *name, const char *number)
{
    char member[96];
    int length = snprintf(member, sizeof(member), "%s\"%s\":%s", line->used > 1 ? "," : "", name, number);
    if ((size_t)length + 1 <= line->limit - line->used)
        put(line, member, (size_t)length);
}

static void put_string(struct line *line, const char *name, const char *text)
{
    char member[48];
    if (!text)
        return;
    int length = snprintf(member, sizeof(member), "%s\"%s\":\"", line->used > 1 ? "," : "", name);
    if ((size_t)length + 2 > line->limit - line->used)
        return;
    put(line, member, (size_t)length);
    put_text(line, text, LOG_JSON, 2);
    put(line, "\"", 1);
}

static void format_json(struct line *line, const struct log_record *record)
{
    char text[64];
    if (line->limit < 2)
        return;
    put(line, "{", 1);
    log_format_time(record->time_s, text, sizeof(text));
    put_string(line, "time", text);
    put_string(line, "level", level_name(record->level));
    put_string(line, "event", event_name(record->event));
    snprintf(text, sizeof(text), "%d", record->pid);
    put_number(line, "pid", text);
    put_string(line, "program", record->program);
    put_string(line, "endpoint", record->endpoint);
    if (record->status) {
        snprintf(text, sizeof(text), "%d", record->status);
        put_number(line, "status", text);
    }
    if (record->attempt) {
        snprintf(text, sizeof(text), "%u", record->attempt);
        put_number(line, "attempt", text);
    }
    if (record->cause != CAUSE_NONE)
        put_string(line, "cause", cause_name(record->cause));
    if (record->wait_ns > 0 && !is_endless(record)) {
        int64_t ms = wait_ms(record);
        snprintf(text, sizeof(text), "%lld.%03d", (long long)(ms / 1000), (int)(ms % 1000));
        put_number(line, "wait_s", text);
    }
    put_string(line, "bound", is_given(record->bound) ? record->bound : NULL);
    put_string(line, "message", record->message);
    put(line, "}", 1);
}

size_t log_format_line(const struct log_record *record, enum log_format format, char *buffer, size_t size)
{
    if (size < 2) {
        if (size == 1)
            buffer[0] = '\0';
        return 0;
    }
    struct line line = {.buffer = buffer, .limit = size - 2};
    if (format == LOG_JSON)
        format_json(&line, record);
    else
        format_text(&line, record);
    buffer[line.used++] = '\n';
    buffer[line.used] = '\0';
    return line.used;
}

/* ---------------------------------------------------------------------------- syslog ---- */

/* <syslog.h> has names for these which are also names of ours. */
#define FACILITY_DAEMON (3 << 3)

static int severity(enum log_level level)
{
    switch (level) {
    case LOG_ERROR:
        return 3;
    case LOG_WARN:
        return 4;
    case LOG_INFO:
        return 6;
    case LOG_OFF:
    case LOG_DEBUG:
        break;
    }
    return 7;
}

static bool put_syslog_header(struct line *line, const struct log_record *record, const struct calendar_time *local)
{
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    char time[32] = "", header[64];
    if (local && local->month >= 1 && local->month <= 12)
        snprintf(time, sizeof(time), "%s %2d %02d:%02d:%02d ", months[local->month - 1], local->day, local->hour,
                 local->minute, local->second);
    snprintf(header, sizeof(header), "<%d>%scurtsy[%d]:", FACILITY_DAEMON | severity(record->level), time, record->pid);
    return put_word(line, header);
}

size_t log_format_syslog(const struct log_record *record, const struct calendar_time *local, enum log_format format,
                         char *buffer, size_t size)
{
    if (size == 0)
        return 0;
    struct line line = {.buffer = buffer, .limit = size - 1};
    if (!put_syslog_header(&line, record, local)) {
        buffer[0] = '\0';
        return 0;
    }
    if (format == LOG_JSON) {
        put_word(&line, " ");
        struct line object = {.buffer = buffer + line.used, .limit = line.limit - line.used};
        format_json(&object, record);
        line.used += object.used;
    } else {
        if (is_given(record->program)) {
            put_after_blank(&line, record->program);
            put_word(&line, ":");
        }
        put_body(&line, record);
    }
    buffer[line.used] = '\0';
    return line.used;
}

/* ------------------------------------------------------------------------- endpoints ---- */

#define SEGMENTS_MAX 6

static bool is_hex_digit(char c)
{
    return scan_is_digit(c) || (scan_lower(c) >= 'a' && scan_lower(c) <= 'f');
}

/* Does a path segment name one thing among many, or is it a secret?  A UUID is longer than 32. */
static bool is_identifier(const char *segment, size_t length)
{
    size_t digits = 0, hex_digits = 0, letters = 0, capitals = 0, marks = 0;
    for (size_t i = 0; i < length; i++) {
        if (segment[i] == '@' || segment[i] == '%' || segment[i] == '=')
            return true;
        digits += scan_is_digit(segment[i]);
        hex_digits += is_hex_digit(segment[i]);
        letters += scan_is_letter(segment[i]);
        capitals += segment[i] >= 'A' && segment[i] <= 'Z';
        marks += segment[i] == '-' || segment[i] == '_' || segment[i] == '.' || segment[i] == '~';
    }
    /* A name of a version has marks and digits too, but no capitals among its letters. */
    bool is_mixed = (digits > 0 && letters > 0 && marks == 0) || (capitals > 0 && capitals < letters);
    bool is_token = length >= 16 && is_mixed && digits + letters + marks == length;
    return length > 32 || (length > 0 && digits == length) || (length >= 8 && hex_digits == length) || is_token;
}

static void put_cut(struct line *line, const char *text, size_t length)
{
    size_t room = line->limit - line->used;
    put(line, text, length < room ? length : room);
}

static void put_path(struct line *line, const char *path)
{
    size_t end = strcspn(path, "?#");
    size_t at = 0;
    for (int segments = 0; at < end; segments++) {
        at += path[at] == '/';
        size_t length = strcspn(path + at, "/?#");
        if (segments == SEGMENTS_MAX) {
            put_cut(line, "/...", 4);
            return;
        }
        put_cut(line, "/", 1);
        if (is_identifier(path + at, length))
            put_cut(line, "*", 1);
        else
            put_cut(line, path + at, length);
        at += length;
    }
}

size_t log_endpoint(const char *method, const char *host, const char *path, char *buffer, size_t size)
{
    if (size == 0)
        return 0;
    struct line line = {.buffer = buffer, .limit = size - 1};
    if (method && *method) {
        put_cut(&line, method, strlen(method));
        put_cut(&line, " ", 1);
    }
    const char *userinfo_end = host ? strrchr(host, '@') : NULL;
    if (host)
        put_cut(&line, userinfo_end ? userinfo_end + 1 : host, strlen(userinfo_end ? userinfo_end + 1 : host));
    if (path)
        put_path(&line, path);
    buffer[line.used] = '\0';
    return line.used;
}
