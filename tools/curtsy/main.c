/* SPDX-License-Identifier: MIT */
/*
 * curtsy: the command beside the library.  This file finds the subcommand; each subcommand is a
 * file of its own (run.c, check.c ...) and none of them has policy of its own: what they show and
 * set is core's.  Arguments are read by argp, which is part of libc.
 */
#include "tools/curtsy/command.h"
#include "tools/curtsy/output.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct command {
    const char *name;
    int (*function)(int argc, char **argv);
    const char *help;
};

static const struct command commands[] = {
    {"run", command_run, "run a program under Curtsy"},
    {"check", command_check, "look for faults in the configuration, and work out its numbers"},
    {"explain", command_explain, "what is in force for one request, and what would happen to it"},
    {"headers", command_headers, "what Curtsy makes of a response's headers"},
    {"init", command_init, "a commented file to start from"},
    {"summary", command_summary, "what is in force for each host, and where it was said"},
    {"status", command_status, "the budgets now, and what was counted"},
    {"ps", command_ps, "the processes under Curtsy, and what each waits for"},
    {"events", command_events, "what has happened lately: refusals, blocks, give-ups"},
    {"mode", command_mode, "switch Curtsy off, or to observe, for everything or for a host"},
    {"hold", command_hold, "let no request to a host go for some time"},
    {"release", command_release, "lift what holds a host, the server's word included"},
    {"refill", command_refill, "make budgets full again"},
    {"reload", command_reload, "have every process read its configuration again"},
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

/* Their names in a line, or with their help a line each; NULL when out of memory. */
static char *command_list(bool with_help)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    if (stream == NULL)
        return NULL;
    if (with_help)
        fputs("Commands:\n", stream);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (with_help)
            fprintf(stream, "  %-10s %s\n", commands[i].name, commands[i].help);
        else
            fprintf(stream, "%s%s", i == 0 ? "" : " ", commands[i].name);
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static char *help_filter(int key, const char *text, void *input)
{
    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text;
    return command_list(true);
}

/* The subcommand and what follows it. */
struct command_line {
    int argc;
    char **argv;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct command_line *rest = state->input;

    (void)argument;
    switch (key) {
    case ARGP_KEY_ARGS:
        rest->argc = state->argc - state->next;
        rest->argv = state->argv + state->next;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which command?");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    static const struct argp arguments = {
        .parser = parse,
        .args_doc = "COMMAND [ARGUMENT...]",
        .doc = "Makes programs that use libcurl keep to the quotas of the servers they talk to.\v"
               "Commands:",
        .help_filter = help_filter,
    };
    struct command_line rest = {0, NULL};

    argp_program_version = "curtsy " CURTSY_VERSION;
    argp_err_exit_status = STATUS_MISUSE;
    if (argp_parse(&arguments, argc, argv, ARGP_IN_ORDER, NULL, &rest) != 0)
        return STATUS_MISUSE;

    const struct command *command = command_find(rest.argv[0]);
    if (command == NULL) {
        char *names = command_list(false);
        complain("no command \"%s\"; there are: %s", rest.argv[0], names != NULL ? names : "");
        free(names);
        return STATUS_MISUSE;
    }

    char name[64];
    snprintf(name, sizeof(name), "curtsy %s", command->name);
    rest.argv[0] = name;
    output_begin(name);
    return output_finish(command->function(rest.argc, rest.argv));
}
