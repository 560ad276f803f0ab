/*
 * cluster/flush_pace.c — see flush_pace.h.
 *
 * Threads: the reactor sets, flush threads pause. `share` is read without the lock by who works,
 * and changed under it, so that nobody who begins to wait misses a change.
 */
#include "cluster/flush_pace.h"

#include "base/assert.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define SLICE_US 1000u
#define SECOND_NS 1000000000ull

struct cl_flush_pace {
    pthread_mutex_t mu;
    pthread_cond_t changed;
    _Atomic unsigned share; /* changed under mu */
};

unsigned cl_flush_share(const struct cl_flush_need *need)
{
    uint64_t low = need->budget / 4, high = need->budget / 2;
    unsigned running = need->running > 0 ? need->running : 1;
    unsigned least = CL_FLUSH_SHARE_LEAST / running;

    if (need->waited_for || need->memory >= high)
        return CL_FLUSH_SHARE_ALL; /* W1 */
    if (least == 0)
        least = 1;
    if (need->memory <= low)
        return least; /* W2 */
    uint64_t rise = (uint64_t)(CL_FLUSH_SHARE_ALL - least) * (need->memory - low) / (high - low);
    return least + (unsigned)rise; /* W3 */
}

struct cl_flush_pace *cl_flush_pace_new(void)
{
    struct cl_flush_pace *p = calloc(1, sizeof *p);
    pthread_condattr_t attr;

    ASSERT(p != NULL);
    pthread_mutex_init(&p->mu, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &attr);
    pthread_condattr_destroy(&attr);
    atomic_init(&p->share, CL_FLUSH_SHARE_ALL);
    return p;
}

void cl_flush_pace_free(struct cl_flush_pace *p)
{
    if (p == NULL)
        return;
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->mu);
    free(p);
}

static unsigned share_of(const struct cl_flush_pace *p)
{
    return atomic_load_explicit(&p->share, memory_order_relaxed);
}

void cl_flush_pace_set(struct cl_flush_pace *p, unsigned share)
{
    ASSERT(share > 0 && share <= CL_FLUSH_SHARE_ALL);
    if (share_of(p) == share)
        return;
    pthread_mutex_lock(&p->mu);
    bool more = share > share_of(p);
    atomic_store_explicit(&p->share, share, memory_order_relaxed);
    if (more)
        pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->mu);
}

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* Until USED_US of work are SHARE of the time since they began, or nothing is to be waited for. */
static void wait_for_share(struct cl_flush_pace *p, uint64_t used_us)
{
    uint64_t start = clock_ns(CLOCK_MONOTONIC);

    pthread_mutex_lock(&p->mu);
    for (;;) {
        unsigned share = share_of(p);
        uint64_t pause_us = used_us * (CL_FLUSH_SHARE_ALL - share) / share;
        uint64_t until = start + pause_us * 1000;

        if (clock_ns(CLOCK_MONOTONIC) >= until)
            break;
        struct timespec at = {.tv_sec = (time_t)(until / SECOND_NS),
                              .tv_nsec = (long)(until % SECOND_NS)};
        (void)pthread_cond_timedwait(&p->changed, &p->mu, &at);
    }
    pthread_mutex_unlock(&p->mu);
}

void cl_flush_pause(void *arg)
{
    struct cl_flush_work *w = arg;
    uint64_t now_us = clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1000;

    if (w->used_us == 0)
        w->used_us = now_us;
    if (now_us - w->used_us < SLICE_US)
        return;
    if (share_of(w->pace) < CL_FLUSH_SHARE_ALL)
        wait_for_share(w->pace, now_us - w->used_us);
    w->used_us = now_us;
}
