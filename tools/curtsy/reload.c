/* SPDX-License-Identifier: MIT */
/*
 * curtsy reload: has every process that shares the segment read its configuration again, at its next
 * request; those that wait already go on under the new one.  Each reads what it was started with (its
 * CURTSY_CONFIG, its user's files), so what is looked at here beforehand is what a program that is
 * started from here would read.
 */
#include "tools/curtsy/command.h"
#include "tools/curtsy/operate.h"
#include "tools/curtsy/output.h"

#include <argp.h>
#include <stdio.h>

enum { OPTION_SEGMENT = 256, OPTION_FORCE };

struct reload_options {
    const char *segment;
    bool is_forced;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct reload_options *options = state->input;

    switch (key) {
    case OPTION_SEGMENT:
        options->segment = argument;
        return 0;
    case OPTION_FORCE:
        options->is_forced = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Says what is wrong with the configuration.  False if anything is. */
static bool has_no_faults(void)
{
    struct fault_counter faults = {.errors_only = true};
    struct environment environment;

    environment_read(&environment);
    struct config *config = config_files_load(&environment, NULL, fault_print, &faults);
    config_free(config);
    return config != NULL && faults.errors == 0;
}

static int reload(const struct reload_options *options)
{
    static struct operation operation;
    int status = STATUS_NEGATIVE;

    if (operation_begin(&operation, options->segment, MAPPING_CREATE)) {
        segment_bump_generation(&operation.view.segment);
        operation_note(&operation, "reload");
        view_print(&operation.view);
        printf("every process that uses it reads its configuration again\n");
        status = STATUS_SUCCESS;
    } else {
        operation_complain(&operation);
    }
    operation_end(&operation);
    return status;
}

int command_reload(int argc, char **argv)
{
    static const struct argp_option option_list[] = {
        {"force", OPTION_FORCE, NULL, 0, "even if the configuration has faults", 0},
        {"segment", OPTION_SEGMENT, "NAME", 0, "another segment than one's own", 0},
        {0},
    };
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .doc = "Has every process under Curtsy read its configuration again, unless there are faults in it.\vA value "
               "at fault is left out, as curtsy check tells; what else was changed would be in force.",
    };
    struct reload_options options = {0};

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    if (!has_no_faults() && !options.is_forced) {
        complain("nothing was reloaded; --force does it all the same");
        return STATUS_NEGATIVE;
    }
    return reload(&options);
}
