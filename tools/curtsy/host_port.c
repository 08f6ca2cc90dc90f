/* SPDX-License-Identifier: MIT */
/*
 * Host and port: see host_port.h.
 */
#include "tools/curtsy/host_port.h"

#include "core/policy.h"

#include <stdlib.h>
#include <string.h>

#define PORT_HTTPS 443

/* The colon before a port: the last one, unless it is part of an address. */
static const char *find_colon(const char *text)
{
    const char *bracket = strrchr(text, ']');
    const char *colon = strrchr(text, ':');

    if (colon == NULL || (bracket != NULL ? colon < bracket : strchr(text, ':') != colon))
        return NULL;
    return colon;
}

static bool parse_port(const char *text, uint16_t *port)
{
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return false;
    unsigned long number = strtoul(text, &end, 10);
    *port = (uint16_t)number;
    return *end == '\0' && number > 0 && number <= UINT16_MAX;
}

bool host_port_parse(const char *text, char host[HOST_SIZE], uint16_t *port)
{
    const char *colon = find_colon(text);

    *port = PORT_HTTPS;
    if (strchr(text, '/') != NULL || (colon != NULL && !parse_port(colon + 1, port)))
        return false;
    return policy_normalise_host(text, colon != NULL ? (size_t)(colon - text) : strlen(text), host, HOST_SIZE);
}
