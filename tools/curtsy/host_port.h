/* SPDX-License-Identifier: MIT */
/*
 * Host and port, as they are named on the command line: "api.github.com", "host:8443",
 * "[::1]:8443", "::1".
 */
#ifndef CURTSY_TOOLS_HOST_PORT_H
#define CURTSY_TOOLS_HOST_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_SIZE 256

/* The host as policies compare it (policy_normalise_host); the port is that of https where none is
 * named.  False if the text is neither HOST nor HOST:PORT. */
bool host_port_parse(const char *text, char host[HOST_SIZE], uint16_t *port);

#endif
