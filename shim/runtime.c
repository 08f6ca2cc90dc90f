/* SPDX-License-Identifier: MIT */
/*
 * Setting up, and failing open at each step: no configuration file is the built-in defaults, a bad
 * value inherits, no shared memory is a budget of this process' own.  One line a process at most
 * tells of it.
 */
#include "shim/runtime.h"

#include "shim/real.h"

#include "core/system/clock.h"
#include "core/system/config_files.h"
#include "core/system/log_sink.h"
#include "core/system/mapping.h"
#include "core/system/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static struct environment environment;
static struct runtime runtime;
static pthread_once_t environment_once = PTHREAD_ONCE_INIT;
static pthread_once_t runtime_once = PTHREAD_ONCE_INIT;
static pthread_once_t overflow_once = PTHREAD_ONCE_INIT;

static void read_environment(void)
{
    environment_read(&environment);
}

/* The first fault is told; `curtsy check` tells all of them. */
static void keep_first_error(void *context, const struct diagnostic *diagnostic)
{
    char *message = context;
    if (diagnostic->severity != SEVERITY_ERROR || message[0])
        return;
    if (diagnostic->line)
        snprintf(message, LOG_LINE_SIZE / 2, "%s:%u: %s", diagnostic->file, diagnostic->line, diagnostic->message);
    else
        snprintf(message, LOG_LINE_SIZE / 2, "%s: %s", diagnostic->file, diagnostic->message);
}

/* A choice from the environment over one from the configuration. */
static void override(const char *variable, const struct key *key, const char *text, void *value, char *fault)
{
    const char *expected = text && text[0] ? keys_parse_value(key, text, value) : NULL;
    if (expected && !fault[0])
        snprintf(fault, LOG_LINE_SIZE / 2, "%s = %s: expected %s", variable, text, expected);
}

static void open_log(const struct settings *settings, char *fault)
{
    enum log_level level = settings->log;
    enum log_format format = settings->log_format;
    override("CURTSY_LOG", &curtsy_keys[CURTSY_KEY_log], environment.log, &level, fault);
    override("CURTSY_LOG_FORMAT", &curtsy_keys[CURTSY_KEY_log_format], environment.log_format, &format, fault);
    const char *file = environment.log_file && environment.log_file[0] ? environment.log_file : settings->log_file;
    log_sink_open(level, format, file, runtime.program);
}

static void attach_segment(const struct settings *settings)
{
    static struct mapping mapping;
    char name[256];
    char error[256];
    if (environment.segment && environment.segment[0])
        snprintf(name, sizeof name, "%s", environment.segment);
    else if (settings->segment)
        snprintf(name, sizeof name, "%s", settings->segment);
    else
        mapping_default_name(name, sizeof name);
    if (!mapping_attach(&mapping, &runtime.segment, name, settings->segment_size, MAPPING_PRIVATE_PERMISSIONS, MAPPING_CREATE, error, sizeof error))
        runtime.segment.header = NULL;
    if (error[0]) {
        char message[512];
        snprintf(message, sizeof message, "no shared budget, this process keeps its own: %s", error);
        log_sink_fail_open(message);
    }
}

static void make_runtime(void)
{
    int saved_errno = errno;
    char fault[LOG_LINE_SIZE / 2] = "";
    pthread_once(&environment_once, read_environment);
    process_program_name(runtime.program, sizeof runtime.program);

    runtime.mode = MODE_ENFORCE;
    override("CURTSY_MODE", &policy_keys[POLICY_KEY_mode], environment.mode, &runtime.mode, fault);
    if (runtime.mode != MODE_OFF) {
        runtime.config = config_files_load(&environment, NULL, keep_first_error, fault);
        if (runtime.config) {
            open_log(&runtime.config->settings, fault);
            attach_segment(&runtime.config->settings);
            runtime.governor.random = runtime.segment.header ? segment_random(&runtime.segment) : NULL;
            runtime.governor.world.who_am_i = process_self;
            runtime.governor.world.owner_is_dead = process_is_dead;
            runtime.governor.world.clock_ns = clock_now_ns;
            if (fault[0])
                log_sink_fail_open(fault);
        }
    }
    errno = saved_errno;
}

const struct runtime *runtime_get(void)
{
    pthread_once(&runtime_once, make_runtime);
    return runtime.mode != MODE_OFF && runtime.config && runtime.segment.header ? &runtime : NULL;
}

static struct segment overflow;

static void make_overflow(void)
{
    static struct mapping mapping;
    uint64_t seed[3];
    process_random(seed, sizeof seed);
    if (!mapping_private(&mapping, SEGMENT_SIZE_MIN) ||
        segment_attach(&overflow, mapping.memory, mapping.size, clock_boot_name(), seed) != SEGMENT_OK)
        overflow.header = NULL;
    log_sink_fail_open("the segment is full of busy hosts; further ones are limited in this process only");
}

struct bucket *runtime_bucket(const struct runtime *from, const char *name, int64_t now_ns)
{
    struct bucket *bucket = segment_bucket(&from->segment, name, now_ns);
    if (bucket)
        return bucket;
    int saved_errno = errno;
    pthread_once(&overflow_once, make_overflow);
    errno = saved_errno;
    return overflow.header ? segment_bucket(&overflow, name, now_ns) : NULL;
}

/* Early, since daemons clear their environment, change their root and drop their privileges. */
__attribute__((constructor)) static void start(void)
{
    pthread_once(&environment_once, read_environment);
    if (real_is_loaded())
        pthread_once(&runtime_once, make_runtime);
}
