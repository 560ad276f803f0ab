/*
 * base/sim_loop.c — drives a loop by the world's events.
 *
 * Invariants
 *   L1 to L3 of loop.c, with the end of the turn in the place of the poll.
 *   Q1  A loop on which a callback ran has the end of that turn in the queue.
 */
#include "base/sim_loop.h"
#include "base/assert.h"
#include "base/loop_internal.h"
#include <stdlib.h>

#define TURN_US_MAX 40u

struct sim_loop {
    struct loop_driver driver;
    struct loop *loop;
    struct sim_world *world;
    struct env *env;
    struct sim_event turn;
    uint64_t frozen_until_us;
    bool abandoned;
};

struct sim_timer {
    struct sim_event event;
    struct sim_loop *loop;
    struct loop_timer *timer;
};

static struct sim_loop *sim_of(struct loop_driver *d)
{
    return CONTAINER_OF(d, struct sim_loop, driver);
}

static void wake(struct loop_driver *d)
{
    struct sim_loop *s = sim_of(d);
    if (s->turn.place == 0 && !s->abandoned)
        sim_world_at(s->world, &s->turn,
                     sim_world_now_us(s->world) +
                         sim_random_below(sim_world_random(s->world), TURN_US_MAX));
}

static void enter(struct sim_loop *s)
{
    loop__set_now(s->loop, env_mono_us(s->env));
    wake(&s->driver); /* Q1 */
}

void sim_loop_enter(struct loop *l)
{
    enter(sim_of(loop__driver(l)));
}

/* E waits for the end of the freeze, or for ever. */
static bool held(struct sim_loop *s, struct sim_event *e)
{
    if (s->abandoned)
        return true;
    if (s->frozen_until_us <= sim_world_now_us(s->world))
        return false;
    sim_world_at(s->world, e, s->frozen_until_us);
    return true;
}

void sim_loop_freeze(struct loop *l, uint64_t until_us)
{
    sim_of(loop__driver(l))->frozen_until_us = until_us;
}

bool sim_loop_frozen(struct loop *l)
{
    const struct sim_loop *s = sim_of(loop__driver(l));
    return s->frozen_until_us > sim_world_now_us(s->world);
}

void sim_loop_abandon(struct loop *l)
{
    struct sim_loop *s = sim_of(loop__driver(l));
    s->abandoned = true;
    sim_world_cancel(s->world, &s->turn);
}

static void on_turn_end(struct sim_event *e)
{
    struct sim_loop *s = CONTAINER_OF(e, struct sim_loop, turn);
    if (held(s, e))
        return;
    loop__set_now(s->loop, env_mono_us(s->env));
    loop__turn_end(s->loop);
}

static void on_timer(struct sim_event *e)
{
    struct sim_timer *t = CONTAINER_OF(e, struct sim_timer, event);
    if (held(t->loop, e))
        return;
    enter(t->loop);
    loop__timer_fire(t->timer);
}

static void *timer_new(struct loop_driver *d, struct loop_timer *timer)
{
    struct sim_timer *t = calloc(1, sizeof *t);
    ASSERT(t != NULL);
    t->event.fn = on_timer;
    t->loop = sim_of(d);
    t->timer = timer;
    return t;
}

/* In the world's time, whatever the rate of the machine's clock: a timer of a machine that is slow
 * or fast is late or early by that much, as a real one is. */
static void timer_start(void *timer, uint64_t after_us)
{
    struct sim_timer *t = timer;
    if (t->loop->abandoned)
        return;
    sim_world_at(t->loop->world, &t->event, sim_world_now_us(t->loop->world) + after_us);
}

static void timer_stop(void *timer)
{
    struct sim_timer *t = timer;
    sim_world_cancel(t->loop->world, &t->event);
}

static void timer_free(void *timer)
{
    timer_stop(timer);
    free(timer);
}

static void driver_free(struct loop_driver *d)
{
    struct sim_loop *s = sim_of(d);
    sim_world_cancel(s->world, &s->turn);
    free(s);
}

struct loop *sim_loop_new(struct sim_world *w, struct env *e)
{
    struct sim_loop *s = calloc(1, sizeof *s);
    ASSERT(s != NULL);
    s->driver = (struct loop_driver){.wake = wake,
                                     .timer_new = timer_new,
                                     .timer_start = timer_start,
                                     .timer_stop = timer_stop,
                                     .timer_free = timer_free,
                                     .free = driver_free};
    s->world = w;
    s->env = e;
    s->turn.fn = on_turn_end;
    s->loop = loop__driven_new(&s->driver);
    loop__set_now(s->loop, env_mono_us(e));
    return s->loop;
}
