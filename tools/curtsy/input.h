/* SPDX-License-Identifier: MIT */
/*
 * Input: a configuration file that was named on the command line.  The library never blocks in
 * somebody else's program; a command that was told to read a pipe waits for all of it.
 */
#ifndef CURTSY_TOOLS_INPUT_H
#define CURTSY_TOOLS_INPUT_H

#include "core/config.h"

/* How messages name the file: "standard input" for "-". */
const char *input_name(const char *path);

/* The configuration in one file ("-": standard input), with the presets that it names below it, and on
 * top of it the text of CURTSY_SET, if `set` is not NULL.  NULL with errno: EFBIG beyond CONFIG_FILE_SIZE_MAX. */
struct config *input_load(const char *path, const char *set, diagnostic_sink *sink, void *sink_context);

#endif
