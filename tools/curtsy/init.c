/* SPDX-License-Identifier: MIT */
/*
 * curtsy init: prints a commented file to start from.  Without --for that is the ratelimit.ini which
 * Curtsy comes with: every key with its default, behind a #.  With it, the sections of presets, to be
 * edited: a preset that is only named in `presets` stays as it is, and is replaced with Curtsy.
 */
#include "tools/curtsy/command.h"
#include "tools/curtsy/output.h"
#include "tools/curtsy/presets.h"

#include "core/keys.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The file itself, put into this executable by the assembler, from the root of the sources where the
 * compiler runs: so it needs no place in an installation to be found in. */
__asm__(".section .rodata\n"
        ".globl curtsy_default_file, curtsy_default_file_end\n"
        ".hidden curtsy_default_file, curtsy_default_file_end\n"
        "curtsy_default_file:\n"
        ".incbin \"ratelimit.ini\"\n"
        "curtsy_default_file_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char curtsy_default_file[], curtsy_default_file_end[];

enum { OPTION_FOR = 256, OPTION_LIST };

struct init_options {
    const char *wanted[PRESETS_MAX];
    size_t count;
    bool is_list;
};

static bool is_wanted(const struct init_options *options, const char *name)
{
    for (size_t i = 0; i < options->count; i++)
        if (strcmp(options->wanted[i], name) == 0)
            return true;
    return false;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct init_options *options = state->input;

    switch (key) {
    case OPTION_FOR:
        if (!is_wanted(options, argument) && options->count < PRESETS_MAX)
            options->wanted[options->count++] = argument;
        return 0;
    case OPTION_LIST:
        options->is_list = true;
        return 0;
    case ARGP_KEY_END:
        if (options->is_list && options->count > 0)
            argp_error(state, "--list and --for do not go together");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool read_preset(const struct presets *presets, const char *name, struct disk_text *text)
{
    if (presets_read(presets, name, text))
        return true;
    complain("%s/%s.ini: %s", presets->folder, name, strerror(errno));
    return false;
}

/* The first comment says what it is for. */
static void print_first_comment(const struct disk_text *text)
{
    const char *at = text->bytes, *end = text->bytes + text->length;

    while (at < end && (*at == '#' || *at == ' '))
        at++;
    const char *line_end = memchr(at, '\n', (size_t)(end - at));
    fwrite(at, 1, (size_t)((line_end != NULL ? line_end : end) - at), stdout);
}

static bool list(const struct presets *presets)
{
    struct disk_text text;

    for (size_t i = 0; i < presets->count; i++) {
        if (!read_preset(presets, presets->name[i], &text))
            return false;
        printf("%-12s ", presets->name[i]);
        print_first_comment(&text);
        putchar('\n');
        free(text.bytes);
    }
    return true;
}

static void complain_about_name(const struct presets *presets, const char *name)
{
    const char *nearest = keys_nearest_word(name, presets->name, presets->count);
    char *names = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&names, &size);

    for (size_t i = 0; stream != NULL && i < presets->count; i++)
        fprintf(stream, " %s", presets->name[i]);
    if (stream != NULL && fclose(stream) == 0 && nearest != NULL)
        complain("no preset \"%s\"; did you mean \"%s\"?  There are:%s", name, nearest, names);
    else
        complain("no preset \"%s\"; there are:%s", name, names != NULL ? names : "");
    free(names);
}

static bool print_presets(const struct presets *presets, const struct init_options *options)
{
    struct disk_text text;

    fputs("# ratelimit.ini: the manners of the programs that run under Curtsy.\n"
          "#\n"
          "# Read from /etc/curtsy/ratelimit.ini, /etc/curtsy/ratelimit.d/*.ini and ~/.config/curtsy/ratelimit.ini,\n"
          "# each over the one before.  `curtsy check` finds mistakes; ratelimit.ini(5) is the reference.\n",
          stdout);
    for (size_t i = 0; i < options->count; i++) {
        if (!read_preset(presets, options->wanted[i], &text))
            return false;
        printf("\n# ---- %s ----\n\n", options->wanted[i]);
        fwrite(text.bytes, 1, text.length, stdout);
        if (text.length > 0 && text.bytes[text.length - 1] != '\n')
            putchar('\n');
        free(text.bytes);
    }
    return true;
}

static int run(const struct init_options *options)
{
    static struct presets presets;
    char error[3 * PATH_MAX];

    if (!options->is_list && options->count == 0) {
        fwrite(curtsy_default_file, 1, (size_t)(curtsy_default_file_end - curtsy_default_file), stdout);
        return STATUS_SUCCESS;
    }
    if (!presets_find(&presets, error, sizeof(error))) {
        complain("%s", error);
        return STATUS_NEGATIVE;
    }
    for (size_t i = 0; i < options->count; i++)
        if (presets_name(&presets, options->wanted[i]) == NULL) {
            complain_about_name(&presets, options->wanted[i]);
            presets_free(&presets);
            return STATUS_MISUSE;
        }
    bool is_done = options->is_list ? list(&presets) : print_presets(&presets, options);
    presets_free(&presets);
    return is_done ? STATUS_SUCCESS : STATUS_NEGATIVE;
}

int command_init(int argc, char **argv)
{
    static const struct argp_option option_list[] = {
        {"for", OPTION_FOR, "NAME", 0, "the sections of the preset NAME, to be edited; may be repeated", 0},
        {"list", OPTION_LIST, NULL, 0, "the presets that there are", 0},
        {0},
    };
    static const struct argp arguments = {
        .options = option_list,
        .parser = parse,
        .doc = "Prints a commented configuration file to start from: every key with its default, or, with --for, what "
               "is known about an API.",
    };
    struct init_options options = {0};

    if (argp_parse(&arguments, argc, argv, 0, NULL, &options) != 0)
        return STATUS_MISUSE;
    return run(&options);
}
