/*
 * base/sim_world.c — a binary heap of events, and clocks that follow it.
 *
 * Invariants
 *   V1  Time never goes back, and an event never happens before its time.
 *   V2  Events of one time happen in the order of the calls of sim_world_at.
 *   V3  heap[i].place is i + 1; an event that is not in the heap has place 0.
 */
#include "base/sim_world.h"
#include "base/assert.h"
#include "base/env_sim.h"
#include <stdlib.h>

#define MACHINES_MAX 64u
#define MILLION 1000000

struct machine {
    struct env *env;
    int drift_ppm;
    int64_t owed; /* millionths of a microsecond that its clock is behind */
};

struct sim_world {
    uint64_t now_us, orders;
    struct sim_random random;
    struct sim_event **heap;
    size_t count, capacity;
    struct machine machines[MACHINES_MAX];
    unsigned machine_count;
};

struct sim_world *sim_world_new(uint64_t seed)
{
    struct sim_world *w = calloc(1, sizeof *w);
    ASSERT(w != NULL);
    w->random.state = seed;
    return w;
}

void sim_world_free(struct sim_world *w)
{
    if (w == NULL)
        return;
    ASSERT(w->count == 0);
    free(w->heap);
    free(w);
}

uint64_t sim_world_now_us(const struct sim_world *w)
{
    return w->now_us;
}

struct sim_random *sim_world_random(struct sim_world *w)
{
    return &w->random;
}

/* -- the queue --------------------------------------------------------------------------------- */

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void put(struct sim_world *w, size_t i, struct sim_event *e)
{
    w->heap[i] = e;
    e->place = i + 1;
}

/* Moves E, which may go to position I, up or down to where it belongs. */
static void settle(struct sim_world *w, size_t i, struct sim_event *e)
{
    while (i > 0 && before(e, w->heap[(i - 1) / 2])) {
        put(w, i, w->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < w->count && before(w->heap[child + 1], w->heap[child]))
            child++;
        if (child >= w->count || !before(w->heap[child], e))
            break;
        put(w, i, w->heap[child]);
        i = child;
    }
    put(w, i, e);
}

void sim_world_cancel(struct sim_world *w, struct sim_event *e)
{
    if (e->place == 0)
        return;
    size_t i = e->place - 1;
    ASSERT_INV("V3", i < w->count && w->heap[i] == e);
    struct sim_event *last = w->heap[--w->count];
    e->place = 0;
    if (last != e)
        settle(w, i, last);
}

void sim_world_at(struct sim_world *w, struct sim_event *e, uint64_t at_us)
{
    sim_world_cancel(w, e);
    if (w->count == w->capacity) {
        w->capacity = w->capacity == 0 ? 64 : w->capacity * 2;
        w->heap = realloc(w->heap, w->capacity * sizeof(struct sim_event *));
        ASSERT(w->heap != NULL);
    }
    e->at_us = at_us > w->now_us ? at_us : w->now_us;
    e->order = w->orders++;
    settle(w, w->count++, e);
}

static void move_time(struct sim_world *w, uint64_t to_us)
{
    ASSERT_INV("V1", to_us >= w->now_us);
    uint64_t step_us = to_us - w->now_us;
    w->now_us = to_us;
    for (unsigned i = 0; i < w->machine_count && step_us > 0; i++) {
        struct machine *m = &w->machines[i];
        m->owed += (int64_t)step_us * (MILLION + m->drift_ppm);
        env_sim_advance(m->env, (uint64_t)(m->owed / MILLION));
        m->owed %= MILLION;
    }
}

bool sim_world_step(struct sim_world *w, uint64_t until_us)
{
    if (w->count == 0 || w->heap[0]->at_us >= until_us) {
        if (until_us > w->now_us)
            move_time(w, until_us);
        return false;
    }
    struct sim_event *e = w->heap[0];
    sim_world_cancel(w, e);
    move_time(w, e->at_us);
    e->fn(e);
    return true;
}

/* -- machines ---------------------------------------------------------------------------------- */

void sim_world_add(struct sim_world *w, struct env *e, int drift_ppm)
{
    ASSERT(w->machine_count < MACHINES_MAX);
    ASSERT(drift_ppm > -MILLION / 2 && drift_ppm < MILLION);
    w->machines[w->machine_count++] = (struct machine){.env = e, .drift_ppm = drift_ppm};
}

void sim_world_remove(struct sim_world *w, struct env *e)
{
    for (unsigned i = 0; i < w->machine_count; i++) {
        if (w->machines[i].env == e) {
            w->machines[i] = w->machines[--w->machine_count];
            return;
        }
    }
}
