/* SPDX-License-Identifier: MIT */
/*
 * The command's table: `curtsy NAME ARGUMENT...` calls the function of that name with "curtsy NAME"
 * as its argv[0], which is how argp and complain() name it in messages.
 *
 * Exit statuses: 0 success, 1 a negative answer (faults found, no such bucket), 2 misuse.  `run`
 * differs, as its exit status is the program's: 125 when it fails itself, 126 and 127 as env(1).
 */
#ifndef CURTSY_TOOLS_COMMAND_H
#define CURTSY_TOOLS_COMMAND_H

enum { STATUS_SUCCESS = 0, STATUS_NEGATIVE = 1, STATUS_MISUSE = 2 };

int command_run(int argc, char **argv);
int command_check(int argc, char **argv);
int command_summary(int argc, char **argv);
int command_status(int argc, char **argv);
int command_ps(int argc, char **argv);
int command_events(int argc, char **argv);
int command_mode(int argc, char **argv);
int command_hold(int argc, char **argv);
int command_release(int argc, char **argv);
int command_refill(int argc, char **argv);
int command_reload(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_headers(int argc, char **argv);
int command_init(int argc, char **argv);

#endif
