/* SPDX-License-Identifier: MIT */
/*
 * curtsy run: executes a program under the library.  All that it does is prepare the environment
 * (LD_PRELOAD, CURTSY_CONFIG, CURTSY_SET, CURTSY_MODE) and execute: there is no process in between,
 * and what the program inherits it hands on to its children.  What was mistyped is said before
 * the program starts, as the library in it would only say it in one line and go on.
 */
#include "tools/curtsy/command.h"
#include "tools/curtsy/output.h"
#include "tools/curtsy/preload.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As env(1), which took them from the shell. */
enum { STATUS_OWN_FAILURE = 125, STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127 };

enum { OPTION_SET = 256, OPTION_MODE };

#define SET_NAME "--set"

struct run_options {
    const char *config;
    const char *mode;
    char **program; /* NULL at its end */
    FILE *set;      /* writes set_text */
    char *set_text;
    size_t set_size;
};

/* One --set as a line of INI text: without a section's header it is for [default]. */
static void add_setting(struct run_options *options, const char *text)
{
    text += strspn(text, " \t");
    fprintf(options->set, "%s%s\n", text[0] == '[' ? "" : "[default] ", text);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct run_options *options = state->input;

    switch (key) {
    case 'c':
        options->config = argument;
        return 0;
    case OPTION_SET:
        add_setting(options, argument);
        return 0;
    case OPTION_MODE:
        options->mode = argument;
        return 0;
    case ARGP_KEY_ARGS:
        options->program = state->argv + state->next;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which program?");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool set_variable(const char *name, const char *value)
{
    if (setenv(name, value, 1) == 0)
        return true;
    complain("%s: %s", name, strerror(errno));
    return false;
}

/* The program may change its working directory, so the name is made absolute. */
static bool set_config(const char *file)
{
    struct stat status;
    char *path = NULL;

    if (faccessat(AT_FDCWD, file, R_OK, AT_EACCESS) != 0 || stat(file, &status) != 0) {
        complain("%s: %s", file, strerror(errno));
        return false;
    }
    if (S_ISDIR(status.st_mode)) {
        complain("%s: %s", file, strerror(EISDIR));
        return false;
    }
    if (file[0] == '/')
        return set_variable("CURTSY_CONFIG", file);

    char *folder = getcwd(NULL, 0);
    bool is_set = folder != NULL && asprintf(&path, "%s/%s", folder, file) >= 0;
    if (is_set)
        is_set = set_variable("CURTSY_CONFIG", path);
    else
        complain("%s: %s", file, strerror(errno));
    free(folder);
    free(path);
    return is_set;
}

/* Of the mode asked for and the one that an outer `curtsy run` or a container has set, the less
 * intrusive: whoever turned Curtsy off or set it to observe is not overruled from within. */
static bool set_mode(const char *mode)
{
    const char *inherited = getenv("CURTSY_MODE");
    enum mode inherited_parsed;
    const struct key *key = &policy_keys[POLICY_KEY_mode];
    enum mode parsed;
    const char *expected = keys_parse_value(key, mode, &parsed);

    if (expected != NULL) {
        complain("--mode: %s: expected %s", mode, expected);
        return false;
    }
    if (inherited != NULL && keys_parse_value(key, inherited, &inherited_parsed) == NULL && inherited_parsed < parsed)
        return true;
    return set_variable("CURTSY_MODE", mode);
}

/* The line within CURTSY_SET is of no use to somebody who typed an option. */
static void complain_about_setting(void *counter, const struct diagnostic *diagnostic)
{
    struct fault_counter *faults = counter;
    bool is_error = diagnostic->severity == SEVERITY_ERROR;

    faults->errors += is_error ? 1 : 0;
    complain(SET_NAME ": %s%s", is_error ? "" : "warning: ", diagnostic->message);
}

static bool check_settings(const char *text, size_t size)
{
    struct fault_counter faults = {0};
    struct config_builder *builder = config_builder_new(complain_about_setting, &faults);
    bool is_complete = builder != NULL && config_builder_add(builder, SET_NAME, text, size);
    struct config *config = builder != NULL ? config_builder_finish(builder) : NULL;

    is_complete = is_complete && config != NULL;
    config_free(config);
    if (!is_complete)
        complain("out of memory");
    return is_complete && faults.errors == 0;
}

/* What an outer `curtsy run` or a container has set stays, below the options given here. */
static bool set_settings(struct run_options *options)
{
    const char *inherited = getenv("CURTSY_SET");
    char *text = NULL;

    if (fclose(options->set) != 0) {
        complain("out of memory");
        return false;
    }
    options->set = NULL;
    if (options->set_size == 0)
        return true;
    if (!check_settings(options->set_text, options->set_size))
        return false;
    if (asprintf(&text, "%s%s%s", inherited != NULL ? inherited : "", inherited != NULL ? "\n" : "",
                 options->set_text) < 0) {
        complain("out of memory");
        return false;
    }

    bool is_set = set_variable("CURTSY_SET", text);
    free(text);
    return is_set;
}

static bool set_preload(void)
{
    char library[PATH_MAX], error[4 * PATH_MAX];

    if (!preload_find_library(library, sizeof(library), error, sizeof(error))) {
        complain("%s", error);
        return false;
    }

    char *list = preload_list(getenv("LD_PRELOAD"), library);
    bool is_set = list != NULL && set_variable("LD_PRELOAD", list);
    free(list);
    return is_set;
}

static int execute(char **program)
{
    execvp(program[0], program);
    int status = errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
    complain("%s: %s", program[0], strerror(errno));
    return status;
}

int command_run(int argc, char **argv)
{
    static const struct argp_option option_list[] = {
        {"config", 'c', "FILE", 0, "read FILE instead of the usual configuration files", 0},
        {"set", OPTION_SET, "TEXT", 0,
         "set a key for this run: 'quota=5/s' for every host, '[api.github.com] quota=5000/h' for one; may be repeated",
         0},
        {"mode", OPTION_MODE, "MODE", 0, "off, observe or enforce", 0},
        {0},
    };
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .args_doc = "[--] PROGRAM [ARGUMENT...]",
        .doc = "Runs PROGRAM under Curtsy.\v"
               "The exit status is the program's; 125 if curtsy itself fails, 126 if PROGRAM cannot be executed, "
               "127 if it is not found.",
    };
    struct run_options options = {0};

    argp_err_exit_status = STATUS_OWN_FAILURE;
    options.set = open_memstream(&options.set_text, &options.set_size);
    if (options.set == NULL) {
        complain("out of memory");
        return STATUS_OWN_FAILURE;
    }
    if (argp_parse(&arguments, argc, argv, ARGP_IN_ORDER, NULL, &options) != 0)
        return STATUS_OWN_FAILURE;
    if (set_settings(&options) && (options.config == NULL || set_config(options.config)) &&
        (options.mode == NULL || set_mode(options.mode)) && set_preload())
        return execute(options.program);
    free(options.set_text);
    return STATUS_OWN_FAILURE;
}
