/* SPDX-License-Identifier: MIT */
/*
 * Output: what the subcommands share when they print.  Data go to standard output, complaints to
 * standard error; colour only where standard output is a terminal and NO_COLOR is not set.
 */
#ifndef CURTSY_TOOLS_OUTPUT_H
#define CURTSY_TOOLS_OUTPUT_H

#include "core/config.h"
#include "core/limits.h"

#include <jansson.h>

/* Names the subcommand ("curtsy check") in complaints. */
void output_begin(const char *command);

/* "curtsy check: MESSAGE" on standard error. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Flushes standard output.  Returns `status`, or STATUS_MISUSE with a complaint if anything could
 * not be written: a full disk must not look like success. */
int output_finish(int status);

/* Prints a JSON document, and drops the caller's reference to it. */
void output_json(json_t *document);

/* A JSON string.  Bytes that are not UTF-8, as a segment or a file may hold, become '?'. */
json_t *json_text(const char *text);

/* Replaces what could steer a terminal. */
void make_printable(char *text);

/* The escape sequence that begins a style, or "" where there is no colour. */
enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_FAULT, STYLE_CAUTION };
const char *output_style(enum style style);

/* A duration for people, in at most three figures and two units: "0", "4ms", "12.3s", "3m20s",
 * "2h05m", "3d04h"; "never" for TIME_NEVER.  For exact ones see units_format_duration. */
#define SHORT_TIME_SIZE 16
const char *short_time(char buffer[SHORT_TIME_SIZE], int64_t ns);

/* "4000/h" of a limit's rate, in requests per its own window; "900ms" of a window. */
#define RATE_TEXT_SIZE 64
const char *rate_text(char buffer[RATE_TEXT_SIZE], const struct limit *limit);
const char *duration_text(char buffer[RATE_TEXT_SIZE], int64_t ns);

/* Where a value came from: "built-in", "FILE:LINE", or FILE where there is no line. */
const char *origin_text(struct origin origin, char *buffer, size_t size);

/* A sink for config_builder_new: prints "FILE:LINE: error: MESSAGE" on standard error and counts. */
struct fault_counter {
    bool errors_only; /* warnings are neither printed nor counted */
    unsigned errors;
    unsigned warnings;
};
void fault_print(void *counter, const struct diagnostic *diagnostic);

#endif
