/*
 * base/fault.c — armed faults and coverage marks.
 *
 * Vocabulary: a *site* is a name in the code ("log.sync"); a *pattern* names one site, or several
 * with a '*' at its end; a fault is *armed* with an action and the number of the hit at which it
 * acts. Hits of all sites that match a pattern share one counter, so that "store.*" with nth =
 * 1, 2, 3, ... fails every store call of a test in turn (a fault sweep).
 *
 * `always` acts at the nth hit and each after it, `while` at those of them that find its file.
 * `error` and `kill` act once, at the nth hit; `pause` acts at the nth hit and sleeps there; `hold`
 * acts at the nth hit and each after it, and waits there until all is disarmed.
 * A mark is a name that a rare branch passes; mark_count tells how often.
 *
 * Threads: any. One mutex guards both tables. A site that nothing is armed for costs one relaxed
 * load. In builds without METADB_FAULTS the tables are empty and nothing calls in.
 */
#include "base/fault.h"
#include "base/compiler.h"

#ifdef METADB_FAULTS

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ARMED_MAX 16u
#define MARK_MAX 512u
#define NAME_BYTES 96u
#define PATH_BYTES 256u
#define KILL_EXIT_CODE 137

enum action { ACTION_ERROR, ACTION_ALWAYS, ACTION_WHILE, ACTION_KILL, ACTION_PAUSE, ACTION_HOLD };

struct armed {
    char pattern[NAME_BYTES];
    enum action action;
    unsigned pause_ms;
    unsigned nth, hits;
    char path[PATH_BYTES]; /* of ACTION_WHILE */
};

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct armed armed[ARMED_MAX]; /* mu */
static _Atomic unsigned armed_count;  /* written under mu */
static bool fired;                    /* mu */
static uint64_t disarmed;             /* mu; how often */
static pthread_cond_t on_disarm = PTHREAD_COND_INITIALIZER;
static struct {
    const char *name;
    uint64_t count;
} marks[MARK_MAX]; /* mu */

static bool matches(const char *pattern, const char *site)
{
    size_t n = strlen(pattern);
    if (n > 0 && pattern[n - 1] == '*')
        return strncmp(pattern, site, n - 1) == 0;
    return strcmp(pattern, site) == 0;
}

static bool parse_action(const char *text, struct armed *out)
{
    if (strcmp(text, "error") == 0)
        out->action = ACTION_ERROR;
    else if (strcmp(text, "always") == 0)
        out->action = ACTION_ALWAYS;
    else if (strcmp(text, "kill") == 0)
        out->action = ACTION_KILL;
    else if (strcmp(text, "hold") == 0)
        out->action = ACTION_HOLD;
    else if (strncmp(text, "pause-", 6) == 0) {
        out->action = ACTION_PAUSE;
        out->pause_ms = (unsigned)strtoul(text + 6, NULL, 10);
    } else if (strncmp(text, "while-", 6) == 0 && strlen(text + 6) < PATH_BYTES) {
        out->action = ACTION_WHILE;
        snprintf(out->path, sizeof out->path, "%s", text + 6);
    } else {
        return false;
    }
    return true;
}

static void pause_ms(unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&t, &t) != 0)
        ;
}

static bool acts_again(const struct armed *a)
{
    return a->action == ACTION_ALWAYS || a->action == ACTION_HOLD ||
           (a->action == ACTION_WHILE && access(a->path, F_OK) == 0);
}

bool fault_hit(const char *site)
{
    if (LIKELY(atomic_load_explicit(&armed_count, memory_order_relaxed) == 0))
        return false;
    bool error = false;
    unsigned pause = 0;
    bool hold = false;
    pthread_mutex_lock(&mu);
    uint64_t since = disarmed;
    unsigned n = atomic_load_explicit(&armed_count, memory_order_relaxed);
    for (unsigned i = 0; i < n; i++) {
        struct armed *a = &armed[i];
        if (!matches(a->pattern, site) || ++a->hits < a->nth)
            continue;
        if ((a->hits > a->nth || a->action == ACTION_WHILE) && !acts_again(a))
            continue;
        fired = true;
        if (a->action == ACTION_KILL)
            _exit(KILL_EXIT_CODE);
        error |= a->action != ACTION_PAUSE && a->action != ACTION_HOLD;
        pause += a->pause_ms;
        hold |= a->action == ACTION_HOLD;
    }
    while (hold && since == disarmed)
        pthread_cond_wait(&on_disarm, &mu);
    pthread_mutex_unlock(&mu);
    if (pause > 0)
        pause_ms(pause);
    return error;
}

void mark_hit(const char *name)
{
    pthread_mutex_lock(&mu);
    for (unsigned i = 0; i < MARK_MAX; i++) {
        if (marks[i].name == NULL)
            marks[i].name = name;
        if (marks[i].name == name || strcmp(marks[i].name, name) == 0) {
            marks[i].count++;
            break;
        }
    }
    pthread_mutex_unlock(&mu);
}

void fault_arm(const char *pattern, const char *action, unsigned nth)
{
    struct armed a = {.nth = nth > 0 ? nth : 1};
    snprintf(a.pattern, sizeof a.pattern, "%s", pattern);
    if (!parse_action(action, &a)) {
        fprintf(stderr, "metadb: unknown fault action \"%s\"\n", action);
        abort();
    }
    pthread_mutex_lock(&mu);
    unsigned n = atomic_load_explicit(&armed_count, memory_order_relaxed), at = 0;
    while (at < n && strcmp(armed[at].pattern, pattern) != 0)
        at++;
    if (at == ARMED_MAX) {
        fprintf(stderr, "metadb: more than %u faults armed\n", ARMED_MAX);
        abort();
    }
    armed[at] = a;
    fired = false;
    if (at == n)
        atomic_store_explicit(&armed_count, n + 1, memory_order_relaxed);
    pthread_mutex_unlock(&mu);
}

void fault_disarm(void)
{
    pthread_mutex_lock(&mu);
    atomic_store_explicit(&armed_count, 0, memory_order_relaxed);
    fired = false;
    disarmed++;
    pthread_cond_broadcast(&on_disarm);
    pthread_mutex_unlock(&mu);
}

bool fault_fired(void)
{
    pthread_mutex_lock(&mu);
    bool f = fired;
    pthread_mutex_unlock(&mu);
    return f;
}

static void arm_one(char *spec)
{
    char *equals = strchr(spec, '=');
    if (equals == NULL) {
        fprintf(stderr, "metadb: METADB_FAULT wants site=action[:nth], not \"%s\"\n", spec);
        abort();
    }
    *equals = '\0';
    char *colon = strchr(equals + 1, ':');
    unsigned nth = 1;
    if (colon != NULL) {
        *colon = '\0';
        nth = (unsigned)strtoul(colon + 1, NULL, 10);
    }
    fault_arm(spec, equals + 1, nth);
}

void fault_from_environment(void)
{
    const char *text = getenv("METADB_FAULT");
    if (text == NULL || text[0] == '\0')
        return;
    char *copy = strdup(text);
    if (copy == NULL)
        abort();
    char *rest = copy, *spec;
    while ((spec = strsep(&rest, ",")) != NULL) {
        if (spec[0] != '\0')
            arm_one(spec);
    }
    free(copy);
}

void mark_each(void (*fn)(void *arg, const char *name, uint64_t count), void *arg)
{
    pthread_mutex_lock(&mu);
    for (unsigned i = 0; i < MARK_MAX && marks[i].name != NULL; i++)
        fn(arg, marks[i].name, marks[i].count);
    pthread_mutex_unlock(&mu);
}

uint64_t mark_count(const char *name)
{
    uint64_t count = 0;
    pthread_mutex_lock(&mu);
    for (unsigned i = 0; i < MARK_MAX && marks[i].name != NULL; i++) {
        if (strcmp(marks[i].name, name) == 0)
            count = marks[i].count;
    }
    pthread_mutex_unlock(&mu);
    return count;
}

#else

void fault_arm(const char *pattern, const char *action, unsigned nth)
{
    UNUSED(pattern);
    UNUSED(action);
    UNUSED(nth);
}

void fault_disarm(void)
{
}

bool fault_fired(void)
{
    return false;
}

void fault_from_environment(void)
{
}

void mark_each(void (*fn)(void *arg, const char *name, uint64_t count), void *arg)
{
    UNUSED(fn);
    UNUSED(arg);
}

uint64_t mark_count(const char *name)
{
    UNUSED(name);
    return 0;
}

#endif
