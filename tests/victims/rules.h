/* SPDX-License-Identifier: MIT */
/*
 * Programs that obey words, and have their callbacks obey words as well:
 *
 *     EVENT:N=WORD
 *
 * has WORD obeyed at the N-th call of a callback from then on, EVENT=WORD at each one.
 *
 * The program says what its events are called and how a word is obeyed; each of its callbacks asks
 * happens() what is to come of the call.  A word decides that by setting `verdict`.
 */
#ifndef CURTSY_VICTIMS_RULES_H
#define CURTSY_VICTIMS_RULES_H

#include <stdlib.h>
#include <string.h>

#define RULES_MAX 16
#define EVENTS_MAX 32

static const char *const event_names[]; /* the program's, as is: */
static void obey(char *word);

static struct rule {
    int event, at, calls; /* at: 0 for each call */
    char *word;
} rules[RULES_MAX];
static int rule_count;

static enum verdict { TAKE, PAUSE, REFUSE, SHORT } verdict;

/* At a call of that callback.  "At each call" pauses at each piece once, or nothing would ever go on. */
static enum verdict happens(int event)
{
    static int paused[EVENTS_MAX];
    enum verdict outer = verdict; /* of a callback from within which this one is called */
    verdict = TAKE;
    for (int i = 0; i < rule_count; i++) {
        struct rule *rule = &rules[i];
        if (rule->event == event && (++rule->calls == rule->at || !rule->at))
            obey(rule->word);
    }
    enum verdict mine = verdict == PAUSE && paused[event] ? TAKE : verdict;
    paused[event] = mine == PAUSE;
    verdict = outer;
    return mine;
}

/* `name` is EVENT or EVENT:N.  The event, or -1: there is none of that name among the `count`. */
static int add_rule(const char *name, char *word, int count)
{
    const char *at = strchr(name, ':');
    size_t length = at ? (size_t)(at - name) : strlen(name);
    int event = 0;
    while (event < count && (strlen(event_names[event]) != length || strncmp(name, event_names[event], length) != 0))
        event++;
    if (event == count || rule_count == RULES_MAX)
        return -1;
    rules[rule_count++] = (struct rule){.event = event, .at = at ? atoi(at + 1) : 0, .word = word};
    return event;
}

#endif
