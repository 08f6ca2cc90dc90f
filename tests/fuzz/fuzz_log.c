/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: log lines.  The input is cut at NULs into program, method, host, path and message; its
 * first bytes choose numbers and the size of the buffer.  Whatever comes, a line is one line, without
 * control characters, and in JSON it is valid; so is a datagram.
 */
#include "core/log.h"
#include "tests/unit/json_valid.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NUMBERS 32
#define TEXTS 5

static void check_line(const char *line, size_t length, size_t size)
{
    if (length < 1 || length >= size || strlen(line) != length || line[length - 1] != '\n')
        abort();
    for (size_t i = 0; i + 1 < length; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            abort();
    for (const char *at = line; *at;)
        if (!(at = json_utf8(at)))
            abort();
}

/* The same, with the header of a datagram and without a line end. */
static void format_syslog(const struct log_record *record, enum log_format format, size_t size)
{
    char *datagram = malloc(size);
    if (!datagram)
        return;
    struct calendar_time local;
    calendar_from_seconds(record->time_s, &local);
    size_t length = log_format_syslog(record, record->pid & 16 ? &local : NULL, format, datagram, size);
    if (length >= size || strlen(datagram) != length || (length > 0 && datagram[0] != '<') || strchr(datagram, '\n'))
        abort();
    const char *header_end = strstr(datagram, "]: ");
    if (header_end && format == LOG_JSON && header_end[3] && !json_is_flat_object(header_end + 3))
        abort();
    free(datagram);
}

static void format(const struct log_record *record, enum log_format format, size_t size)
{
    char *line = malloc(size);
    if (!line)
        return;
    size_t length = log_format_line(record, format, line, size);
    check_line(line, length, size);
    if (format == LOG_JSON && size >= 4 && !json_is_flat_object(line))
        abort();
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t number[NUMBERS / sizeof(uint64_t)];
    char text[4096], endpoint[512];
    const char *part[TEXTS];
    if (size < NUMBERS)
        return 0;
    memcpy(number, data, NUMBERS);
    size_t length = size - NUMBERS < sizeof(text) - 1 ? size - NUMBERS : sizeof(text) - 1;
    memcpy(text, data + NUMBERS, length);
    text[length] = '\0';
    part[0] = text;
    for (int i = 1; i < TEXTS; i++) {
        const char *end = part[i - 1] + strlen(part[i - 1]);
        part[i] = end < text + length ? end + 1 : end;
    }
    size_t endpoint_size = number[0] % sizeof(endpoint) + 1;
    if (log_endpoint(part[1], part[2], part[3], endpoint, endpoint_size) != strlen(endpoint) ||
        strlen(endpoint) >= endpoint_size)
        abort();
    const struct log_record record = {.level = (enum log_level)(number[1] % 7),
                                      .event = (enum log_event)(number[1] / 7 % (LOG_OPERATOR + 2)),
                                      .time_s = (int64_t)number[2],
                                      .pid = (int)number[1],
                                      .program = number[1] & 1 ? part[0] : NULL,
                                      .endpoint = number[1] & 2 ? endpoint : NULL,
                                      .status = (int)(number[0] >> 32),
                                      .attempt = (unsigned)number[0],
                                      .cause = (enum cause)(number[1] / 7 / (LOG_OPERATOR + 2) % (CAUSE_COUNT + 1)),
                                      .wait_ns = (int64_t)number[3],
                                      .bound = number[1] & 8 ? part[0] : NULL,
                                      .message = number[1] & 4 ? part[4] : NULL};
    format(&record, LOG_TEXT, number[0] / 512 % LOG_LINE_SIZE + 2);
    format(&record, LOG_JSON, number[0] / 512 % LOG_LINE_SIZE + 2);
    format(&record, LOG_JSON, LOG_LINE_SIZE);
    format_syslog(&record, LOG_TEXT, number[0] / 512 % LOG_LINE_SIZE + 1);
    format_syslog(&record, LOG_JSON, number[0] / 512 % LOG_LINE_SIZE + 1);
    return 0;
}
