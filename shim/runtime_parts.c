/* SPDX-License-Identifier: MIT */
/*
 * Reading the configuration and attaching the segment, each with what is said when it fails.
 */
#include "shim/runtime_parts.h"

#include "core/system/clock.h"
#include "core/system/log_sink.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAULT_SIZE (LOG_LINE_SIZE / 2)
#define ERROR_SIZE (PATH_MAX + 128)

static struct environment environment;

static void read_environment(void)
{
    environment_read(&environment);
}

const struct environment *parts_environment(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_environment);
    return &environment;
}

uint64_t parts_root(void)
{
    struct stat root;
    return stat("/", &root) == 0 ? (uint64_t)root.st_dev << 32 ^ (uint64_t)root.st_ino : 0;
}

uint32_t parts_uid(void)
{
    uid_t real = getuid();
    return real == geteuid() ? real : UINT32_MAX;
}

/* ------------------------------------------------------------------- the policy ---- */

/* The first fault is told; `curtsy check` tells all of them. */
static void keep_first_error(void *context, const struct diagnostic *diagnostic)
{
    char *message = context;
    if (diagnostic->severity != SEVERITY_ERROR || message[0])
        return;
    if (diagnostic->line)
        snprintf(message, FAULT_SIZE, "%s:%u: %s", diagnostic->file, diagnostic->line, diagnostic->message);
    else
        snprintf(message, FAULT_SIZE, "%s: %s", diagnostic->file, diagnostic->message);
}

/* A choice from the environment over one from the configuration. */
static void override(const char *variable, const struct key *key, const char *text, void *value, char *fault)
{
    const char *expected = text && text[0] ? keys_parse_value(key, text, value) : NULL;
    if (expected && !fault[0])
        snprintf(fault, FAULT_SIZE, "%s = %s: expected %s", variable, text, expected);
}

/* The level may change with the configuration; where the lines go, and how, is for the process' life. */
static void set_up_log(const struct settings *settings, const char *program, bool first, char *fault)
{
    const struct environment *from = parts_environment();
    enum log_level level = settings->log;
    enum log_format format = settings->log_format;
    enum mode mode;
    override("CURTSY_LOG", &curtsy_keys[CURTSY_KEY_log], from->log, &level, fault);
    override("CURTSY_LOG_FORMAT", &curtsy_keys[CURTSY_KEY_log_format], from->log_format, &format, fault);
    override("CURTSY_MODE", &policy_keys[POLICY_KEY_mode], from->mode, &mode, fault);
    if (first)
        log_sink_open(level, format, from->log_file ? from->log_file : settings->log_file, program);
    else
        log_sink_set_level(level);
}

struct policy_part *policy_part_read(const char *program, bool first)
{
    char fault[FAULT_SIZE] = "";
    struct policy_part *part = calloc(1, sizeof *part);
    if (!part)
        return NULL;
    part->root = parts_root();
    part->config = config_files_load(parts_environment(), &part->sources, keep_first_error, fault);
    part->has_faults = fault[0];
    if (part->config && part->sources.machine_wide)
        part->machine = config_files_load_machine("");
    if (!part->config || (part->sources.machine_wide && !part->machine)) {
        policy_part_drop(part);
        return NULL;
    }
    if (first || (part->sources.complete && !part->has_faults))
        set_up_log(&part->config->settings, program, first, fault);
    if (fault[0])
        log_sink_fail_open(fault);
    return part;
}

/* One that nobody uses yet is dropped like one that nobody uses any more. */
void policy_part_drop(struct policy_part *part)
{
    if (!part || (part->users && --part->users))
        return;
    config_free(part->config);
    config_free(part->machine);
    free(part);
}

/* ------------------------------------------------------------------- the memory ---- */

static struct memory_part *attach(const struct policy_part *policy, char *error, size_t error_size)
{
    struct memory_part *part = calloc(1, sizeof *part);
    struct segment_choice choice;
    if (!part)
        return NULL;
    segment_choose(&choice, parts_environment(), &policy->config->settings);
    part->uid = parts_uid();
    part->is_default = choice.is_default;
    snprintf(part->name, sizeof part->name, "%s", choice.name);
    if (mapping_attach(&part->mapping, &part->segment, choice.name, choice.size, choice.permissions, MAPPING_CREATE,
                       error, error_size))
        return part;
    free(part);
    return NULL;
}

static void tell_of_private(const char *error)
{
    char message[ERROR_SIZE + 64];
    snprintf(message, sizeof message, "no shared budget, this process keeps its own: %s", error);
    log_sink_fail_open(message);
}

struct memory_part *memory_part_attach(const struct policy_part *policy)
{
    char error[ERROR_SIZE] = "";
    struct memory_part *part = attach(policy, error, sizeof error);
    if (error[0])
        tell_of_private(error);
    return part;
}

struct memory_part *memory_part_attach_again(const struct policy_part *policy)
{
    char error[ERROR_SIZE] = "";
    struct memory_part *part = attach(policy, error, sizeof error);
    if (!part || !part->mapping.is_private)
        return part;
    if (!clock_is_the_machines()) {
        tell_of_private(error);
        return part;
    }
    memory_part_drop(part);
    return NULL;
}

void memory_part_drop(struct memory_part *part)
{
    if (!part || (part->users && --part->users))
        return;
    mapping_close(&part->mapping);
    free(part);
}
