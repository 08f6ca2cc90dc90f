/* SPDX-License-Identifier: MIT */
/*
 * Operate: see operate.h.
 */
#include "tools/curtsy/operate.h"
#include "tools/curtsy/output.h"

#include "core/events.h"
#include "core/log.h"
#include "core/system/clock.h"
#include "core/system/process.h"

#include <stdarg.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The name that another user's programs use by default: if we made it, they could not use it. */
static bool is_anothers_own(const char *name)
{
    unsigned user;
    int end = 0;

    return sscanf(name[0] == '/' ? name + 1 : name, "curtsy.v%*u.%u%n", &user, &end) == 1 && end > 0 &&
           name[(name[0] == '/' ? 1 : 0) + end] == '\0' && user != (unsigned)geteuid();
}

bool operation_begin(struct operation *operation, const char *segment, enum mapping_access access)
{
    struct config_sources sources;
    struct view *view = &operation->view;

    memset(operation, 0, sizeof(*operation));
    operation->world.who_am_i = process_self;
    operation->world.owner_is_dead = process_is_dead;
    operation->world.clock_ns = clock_now_ns;
    operation->now_ns = clock_now_ns();
    environment_read(&operation->environment);
    operation->config = config_files_load(&operation->environment, &sources, NULL, NULL);
    if (operation->config != NULL && sources.machine_wide)
        operation->machine = config_files_load_machine("");
    if (operation->config == NULL || (sources.machine_wide && operation->machine == NULL))
        return false;
    /* Root may operate on anybody's, but what is made is the maker's. */
    view_open_for(view, segment, &operation->environment, operation->config,
                  access == MAPPING_CREATE ? MAPPING_OPERATE : access);
    if (!view->is_open && access == MAPPING_CREATE && !is_anothers_own(view->name))
        view_open_for(view, segment, &operation->environment, operation->config, MAPPING_CREATE);
    return view->is_open;
}

void operation_complain(const struct operation *operation)
{
    const struct view *view = &operation->view;

    if (view->name[0] == '\0')
        complain("out of memory");
    else if (view->is_missing)
        complain("nothing has run under Curtsy here yet: no segment %s", view->name);
    else
        complain("segment %s cannot be used: %s", view->name, view->error);
}

void operation_end(struct operation *operation)
{
    view_close(&operation->view);
    config_free(operation->config);
    config_free(operation->machine);
}

bool operation_find(const struct operation *operation, const char *text, const struct host_word *word, bool make,
                    struct host_buckets *out)
{
    const struct segment *segment = &operation->view.segment;
    bool is_whole = text == NULL ? host_buckets_all(segment, out)
                                 : host_buckets_find(segment, word, operation->config, operation->machine, make,
                                                     operation->now_ns, out);

    if (!is_whole)
        complain("out of memory");
    else if (out->count == 0 && text == NULL)
        complain("no buckets");
    else if (out->count == 0 && make && word->host[0] != '\0')
        complain("no room for a bucket of %s: the segment is full of busy ones", text);
    else if (out->count == 0)
        complain("no bucket of %s", text);
    return is_whole && out->count > 0;
}

void operation_note(const struct operation *operation, const char *format, ...)
{
    struct event event = {.kind = EVENT_OPERATOR, .cause = CAUSE_NONE, .pid = (int)getpid()};
    const struct passwd *user = getpwuid(geteuid());
    struct timespec now;
    va_list arguments;

    snprintf(event.program, sizeof(event.program), "curtsy by %.20s", user != NULL ? user->pw_name : "?");

    clock_gettime(CLOCK_REALTIME, &now);
    event.time_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
    va_start(arguments, format);
    vsnprintf(event.endpoint, sizeof(event.endpoint), format, arguments);
    va_end(arguments);
    events_add(&operation->view.segment, &event);
}

/* The segment's times are of a clock that people do not read; of the same instant by the other one. */
static time_t wall_time(int64_t until_ns, int64_t now_ns)
{
    struct timespec wall;

    clock_gettime(CLOCK_REALTIME, &wall);
    int64_t ns = (int64_t)wall.tv_sec * NS_PER_SECOND + wall.tv_nsec;
    if (__builtin_add_overflow(ns, until_ns - now_ns + NS_PER_SECOND / 2, &ns))
        ns = INT64_MAX;
    return (time_t)(ns / NS_PER_SECOND);
}

const char *clock_text(char buffer[CLOCK_TEXT_SIZE], int64_t until_ns, int64_t now_ns)
{
    time_t until = wall_time(until_ns, now_ns), now = wall_time(now_ns, now_ns);
    struct tm local, today;

    if (localtime_r(&until, &local) == NULL || localtime_r(&now, &today) == NULL) {
        snprintf(buffer, CLOCK_TEXT_SIZE, "?");
        return buffer;
    }
    bool is_today = local.tm_year == today.tm_year && local.tm_yday == today.tm_yday;
    if (strftime(buffer, CLOCK_TEXT_SIZE, is_today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &local) == 0)
        snprintf(buffer, CLOCK_TEXT_SIZE, "?");
    return buffer;
}

json_t *clock_json(int64_t until_ns, int64_t now_ns)
{
    char text[CLOCK_TEXT_SIZE];

    if (until_ns == TIME_NEVER || log_format_time(wall_time(until_ns, now_ns), text, sizeof(text)) == 0)
        return json_null();
    return json_string(text);
}

bool parse_time(const char *text, int64_t *ns)
{
    const char *expected = units_parse_duration(text, ns);

    if (expected == NULL && *ns <= 0)
        expected = "a time above 0";
    if (expected != NULL)
        complain("%s: expected %s", text, expected);
    return expected == NULL;
}

bool parse_host_word(const char *text, struct host_word *word)
{
    bool is_host = host_word_parse(text, word);

    if (!is_host)
        complain("%s: expected HOST or HOST:PORT", text);
    return is_host;
}
