/* SPDX-License-Identifier: MIT */
/*
 * Output: see output.h.  The locale is left at "C": what is printed here is read by scripts as
 * often as by people, and a decimal comma would help neither.
 */
#include "tools/curtsy/output.h"
#include "tools/curtsy/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *command_name = "curtsy";

void output_begin(const char *command)
{
    command_name = command;
}

void complain(const char *format, ...)
{
    va_list arguments;

    fflush(stdout);
    fprintf(stderr, "%s: ", command_name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

int output_finish(int status)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        complain("standard output: %s", errno != 0 ? strerror(errno) : "could not be written");
        return STATUS_MISUSE;
    }
    return status;
}

void output_json(json_t *document)
{
    json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    putchar('\n');
    json_decref(document);
}

void make_printable(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == '\177')
            *text = '?';
}

json_t *json_text(const char *text)
{
    json_t *string = json_string(text);
    char *copy;

    if (string != NULL || (copy = strdup(text)) == NULL)
        return string;
    for (char *at = copy; *at != '\0'; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    string = json_string(copy);
    free(copy);
    return string;
}

static bool output_has_colour(void)
{
    static int known = -1;
    const char *terminal = getenv("TERM");
    const char *no_colour = getenv("NO_COLOR");

    if (known < 0)
        known = isatty(STDOUT_FILENO) && terminal != NULL && strcmp(terminal, "dumb") != 0 &&
                (no_colour == NULL || no_colour[0] == '\0');
    return known != 0;
}

const char *output_style(enum style style)
{
    static const char *const sequences[] = {
        [STYLE_PLAIN] = "\033[0m",
        [STYLE_BOLD] = "\033[1m",
        [STYLE_FAULT] = "\033[31m",
        [STYLE_CAUTION] = "\033[33m",
    };
    return output_has_colour() ? sequences[style] : "";
}

const char *short_time(char buffer[SHORT_TIME_SIZE], int64_t ns)
{
    int64_t ms = ns / NS_PER_MS;
    int64_t s = ns / NS_PER_SECOND;

    if (ns == TIME_NEVER)
        snprintf(buffer, SHORT_TIME_SIZE, "never");
    else if (ns <= 0)
        snprintf(buffer, SHORT_TIME_SIZE, "0");
    else if (ms < 1)
        snprintf(buffer, SHORT_TIME_SIZE, "<1ms");
    else if (ms < 1000)
        snprintf(buffer, SHORT_TIME_SIZE, "%ldms", (long)ms);
    else if (s < 100)
        snprintf(buffer, SHORT_TIME_SIZE, "%ld.%lds", (long)s, (long)(ms % 1000 / 100));
    else if (s < 6000)
        snprintf(buffer, SHORT_TIME_SIZE, "%ldm%02lds", (long)(s / 60), (long)(s % 60));
    else if (s < 360000)
        snprintf(buffer, SHORT_TIME_SIZE, "%ldh%02ldm", (long)(s / 3600), (long)(s / 60 % 60));
    else
        snprintf(buffer, SHORT_TIME_SIZE, "%ldd%02ldh", (long)(s / 86400), (long)(s / 3600 % 24));
    return buffer;
}

const char *duration_text(char buffer[RATE_TEXT_SIZE], int64_t ns)
{
    units_format_duration(buffer, RATE_TEXT_SIZE, ns);
    return buffer;
}

const char *rate_text(char buffer[RATE_TEXT_SIZE], const struct limit *limit)
{
    char one[RATE_TEXT_SIZE];
    double per_window = limit_rate_per_second(limit) * (double)limit->window_ns / (double)NS_PER_SECOND;

    units_format_rate(one, sizeof(one), (struct rate){1, limit->window_ns});
    snprintf(buffer, RATE_TEXT_SIZE, per_window < 1000 ? "%.4g%.40s" : "%.0f%.40s", per_window, one + 1);
    return buffer;
}

const char *origin_text(struct origin origin, char *buffer, size_t size)
{
    if (origin.file == NULL)
        snprintf(buffer, size, "built-in");
    else if (origin.line == 0)
        snprintf(buffer, size, "%s", origin.file);
    else
        snprintf(buffer, size, "%s:%u", origin.file, origin.line);
    return buffer;
}

void fault_print(void *counter, const struct diagnostic *diagnostic)
{
    struct fault_counter *faults = counter;
    bool is_error = diagnostic->severity == SEVERITY_ERROR;

    if (!is_error && faults->errors_only)
        return;
    if (is_error)
        faults->errors++;
    else
        faults->warnings++;
    if (diagnostic->line != 0)
        fprintf(stderr, "%s:%u: ", diagnostic->file, diagnostic->line);
    else
        fprintf(stderr, "%s: ", diagnostic->file);
    fprintf(stderr, "%s: %s\n", is_error ? "error" : "warning", diagnostic->message);
}
