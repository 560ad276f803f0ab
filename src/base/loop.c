/*
 * base/loop.c — the only door to libev.
 *
 * One turn of a loop:
 *
 *      release_cb           acquire_cb
 *   ------|  poll (sleeps)  |--- I/O, timers, signals --- prepare: inboxes, then hooks ---|
 *     offline for RCU                     online for RCU
 *
 * The one ev_prepare watcher runs last in a turn, because libev invokes everything that the poll
 * found before it prepares the next poll. Inboxes are drained there in one batch each; the
 * ev_async watcher has nothing to do but to end the poll. libev writes to its descriptor only when
 * the loop is about to sleep or sleeps, so a wake-up of a busy loop costs two memory accesses.
 *
 * Invariants
 *   L1  Turn hooks run in order of registration, after every inbox was drained.
 *   L2  A watcher freed inside any callback is not called again; hooks and inboxes may be added and
 *       removed inside hooks (the cursor `walk` moves on when its node goes away).
 *   L3  The thread is online for RCU exactly while callbacks run.
 *
 * In a simulation a driver (sim_loop.c) stands in for libev: it fires timers and ends turns.
 *
 * Threads: loop_stop and loop__wake from any thread, the rest from the loop's thread.
 */
#include "base/loop.h"
#include "base/assert.h"
#include "base/loop_internal.h"
#include "base/rcu.h"
#include <ev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct loop {
    struct ev_loop *ev;
    ev_async async;
    ev_prepare prepare;
    ev_idle again; /* active: the next poll does not wait */
    struct list inboxes, hooks, signals;
    struct list *walk; /* the node after the hook or inbox that runs now */
    uint64_t now_us;
    _Atomic bool stop;
    struct loop_driver *driver; /* in a simulation; then `ev` is NULL and no watcher is used */
};

struct loop_io {
    struct loop *loop;
    void (*fn)(void *arg, int events);
    void *arg;
    ev_io watcher;
};

struct loop_timer {
    struct loop *loop;
    void (*fn)(void *arg);
    void *arg;
    ev_timer watcher;
    void *driven; /* the driver's timer */
};

struct loop_turn {
    struct list node;
    struct loop *loop;
    void (*fn)(void *arg);
    void *arg;
};

struct loop_signal {
    struct list node;
    void (*fn)(void *arg, int signo);
    void *arg;
    ev_signal watcher;
};

static void *must_alloc(size_t size)
{
    void *p = calloc(1, size);
    if (p == NULL) {
        fprintf(stderr, "metadb: out of memory (event loop)\n");
        abort();
    }
    return p;
}

static uint64_t clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static void before_poll(struct ev_loop *ev) EV_NOEXCEPT
{
    UNUSED(ev);
    rcu_offline();
}

static void after_poll(struct ev_loop *ev) EV_NOEXCEPT
{
    struct loop *l = ev_userdata(ev);
    rcu_online();
    l->now_us = clock_us();
}

static void on_async(struct ev_loop *ev, ev_async *w, int events)
{
    UNUSED(ev);
    UNUSED(w);
    UNUSED(events);
}

static void on_again(struct ev_loop *ev, ev_idle *w, int events)
{
    UNUSED(events);
    ev_idle_stop(ev, w);
}

static void drain_inboxes(struct loop *l)
{
    for (struct list *it = l->inboxes.next; it != &l->inboxes; it = l->walk) {
        struct loop_inbox *inbox = CONTAINER_OF(it, struct loop_inbox, node);
        l->walk = it->next;
        inbox->drain(inbox);
    }
    l->walk = NULL;
}

static void run_hooks(struct loop *l)
{
    for (struct list *it = l->hooks.next; it != &l->hooks; it = l->walk) {
        struct loop_turn *t = CONTAINER_OF(it, struct loop_turn, node);
        l->walk = it->next;
        t->fn(t->arg);
    }
    l->walk = NULL;
}

void loop__turn_end(struct loop *l)
{
    drain_inboxes(l);
    run_hooks(l);
}

static void on_prepare(struct ev_loop *ev, ev_prepare *w, int events)
{
    UNUSED(w);
    UNUSED(events);
    struct loop *l = ev_userdata(ev);
    loop__turn_end(l);
    if (atomic_load_explicit(&l->stop, memory_order_acquire)) /* pairs with loop_stop */
        ev_break(ev, EVBREAK_ALL);
}

static struct loop *loop_alloc(void)
{
    struct loop *l = must_alloc(sizeof *l);
    list_init(&l->inboxes);
    list_init(&l->hooks);
    list_init(&l->signals);
    return l;
}

struct loop *loop__driven_new(struct loop_driver *d)
{
    struct loop *l = loop_alloc();
    l->driver = d;
    return l;
}

struct loop_driver *loop__driver(struct loop *l)
{
    ASSERT(l->driver != NULL);
    return l->driver;
}

void loop__set_now(struct loop *l, uint64_t now_us)
{
    l->now_us = now_us;
}

struct loop *loop_new(void)
{
    signal(SIGPIPE, SIG_IGN);
    struct loop *l = loop_alloc();
    l->ev = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (l->ev == NULL) {
        fprintf(stderr, "metadb: the event loop could not be made (file descriptors used up?)\n");
        abort();
    }
    l->now_us = clock_us();
    ev_set_userdata(l->ev, l);
    ev_async_init(&l->async, on_async);
    ev_async_start(l->ev, &l->async);
    ev_prepare_init(&l->prepare, on_prepare);
    ev_prepare_start(l->ev, &l->prepare);
    ev_idle_init(&l->again, on_again);
    return l;
}

static void free_signals(struct loop *l)
{
    struct list *node;
    while ((node = list_pop_front(&l->signals)) != NULL) {
        struct loop_signal *s = CONTAINER_OF(node, struct loop_signal, node);
        ev_signal_stop(l->ev, &s->watcher);
        free(s);
    }
}

void loop_free(struct loop *l)
{
    if (l == NULL)
        return;
    ASSERT(list_empty(&l->inboxes));
    ASSERT(list_empty(&l->hooks));
    if (l->driver != NULL) {
        l->driver->free(l->driver);
        free(l);
        return;
    }
    free_signals(l);
    ev_idle_stop(l->ev, &l->again);
    ev_prepare_stop(l->ev, &l->prepare);
    ev_async_stop(l->ev, &l->async);
    ev_loop_destroy(l->ev);
    free(l);
}

void loop_run(struct loop *l)
{
    ASSERT(l->driver == NULL);
    rcu_thread_register();
    ev_set_loop_release_cb(l->ev, before_poll, after_poll);
    rcu_online();
    l->now_us = clock_us();
    ev_now_update(l->ev);
    while (!atomic_load_explicit(&l->stop, memory_order_acquire))
        ev_run(l->ev, 0);
    ev_set_loop_release_cb(l->ev, NULL, NULL);
    atomic_store_explicit(&l->stop, false, memory_order_relaxed);
    rcu_offline();
    rcu_thread_unregister();
}

void loop_stop(struct loop *l)
{
    atomic_store_explicit(&l->stop, true, memory_order_release); /* pairs with on_prepare */
    loop__wake(l);
}

uint64_t loop_now_us(struct loop *l)
{
    return l->now_us;
}

static void on_io(struct ev_loop *ev, ev_io *w, int events)
{
    UNUSED(ev);
    struct loop_io *io = CONTAINER_OF(w, struct loop_io, watcher);
    int ready = 0;
    if (events & EV_READ)
        ready |= LOOP_READ;
    if (events & EV_WRITE)
        ready |= LOOP_WRITE;
    io->fn(io->arg, ready);
}

struct loop_io *loop_io_new(struct loop *l, int fd, void (*fn)(void *arg, int events), void *arg)
{
    ASSERT(l->driver == NULL);
    struct loop_io *io = must_alloc(sizeof *io);
    io->loop = l;
    io->fn = fn;
    io->arg = arg;
    ev_io_init(&io->watcher, on_io, fd, 0);
    return io;
}

void loop_io_set(struct loop_io *io, int events)
{
    int wanted = 0;
    if (events & LOOP_READ)
        wanted |= EV_READ;
    if (events & LOOP_WRITE)
        wanted |= EV_WRITE;
    int current = ev_is_active(&io->watcher) ? io->watcher.events & (EV_READ | EV_WRITE) : 0;
    if (wanted == current)
        return;
    ev_io_stop(io->loop->ev, &io->watcher);
    if (wanted == 0)
        return;
    ev_io_set(&io->watcher, io->watcher.fd, wanted);
    ev_io_start(io->loop->ev, &io->watcher);
}

void loop_io_free(struct loop_io *io)
{
    if (io == NULL)
        return;
    ev_io_stop(io->loop->ev, &io->watcher);
    free(io);
}

static void on_timer(struct ev_loop *ev, ev_timer *w, int events)
{
    UNUSED(ev);
    UNUSED(events);
    struct loop_timer *t = CONTAINER_OF(w, struct loop_timer, watcher);
    t->fn(t->arg);
}

struct loop_timer *loop_timer_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
    struct loop_timer *t = must_alloc(sizeof *t);
    t->loop = l;
    t->fn = fn;
    t->arg = arg;
    ev_timer_init(&t->watcher, on_timer, 0., 0.);
    if (l->driver != NULL)
        t->driven = l->driver->timer_new(l->driver, t);
    return t;
}

void loop__timer_fire(struct loop_timer *t)
{
    t->fn(t->arg);
}

/* libev counts from its own cached time; what passed of the turn since then is added, so that the
 * timer is never early. */
void loop_timer_start(struct loop_timer *t, uint64_t after_us)
{
    if (t->driven != NULL) {
        t->loop->driver->timer_start(t->driven, after_us);
        return;
    }
    uint64_t stale_us = clock_us() - t->loop->now_us;
    ev_timer_stop(t->loop->ev, &t->watcher);
    ev_timer_set(&t->watcher, (double)(after_us + stale_us) / 1e6, 0.);
    ev_timer_start(t->loop->ev, &t->watcher);
}

void loop_timer_stop(struct loop_timer *t)
{
    if (t->driven != NULL) {
        t->loop->driver->timer_stop(t->driven);
        return;
    }
    ev_timer_stop(t->loop->ev, &t->watcher);
}

void loop_timer_free(struct loop_timer *t)
{
    if (t == NULL)
        return;
    if (t->driven != NULL)
        t->loop->driver->timer_free(t->driven);
    else
        ev_timer_stop(t->loop->ev, &t->watcher);
    free(t);
}

struct loop_turn *loop_turn_new(struct loop *l, void (*fn)(void *arg), void *arg)
{
    struct loop_turn *t = must_alloc(sizeof *t);
    t->loop = l;
    t->fn = fn;
    t->arg = arg;
    list_push_back(&l->hooks, &t->node);
    return t;
}

/* Takes a node out of its list without losing the place of the walk that is under way (L2). */
static void remove_node(struct loop *l, struct list *node)
{
    if (l->walk == node)
        l->walk = node->next;
    list_remove(node);
}

void loop_turn_free(struct loop_turn *t)
{
    if (t == NULL)
        return;
    remove_node(t->loop, &t->node);
    free(t);
}

void loop_again(struct loop *l)
{
    if (l->driver != NULL) {
        l->driver->wake(l->driver);
        return;
    }
    ev_idle_start(l->ev, &l->again);
}

static void on_signal(struct ev_loop *ev, ev_signal *w, int events)
{
    UNUSED(ev);
    UNUSED(events);
    struct loop_signal *s = CONTAINER_OF(w, struct loop_signal, watcher);
    s->fn(s->arg, w->signum);
}

void loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg)
{
    ASSERT(l->driver == NULL);
    struct loop_signal *s = must_alloc(sizeof *s);
    s->fn = fn;
    s->arg = arg;
    ev_signal_init(&s->watcher, on_signal, signo);
    ev_signal_start(l->ev, &s->watcher);
    list_push_back(&l->signals, &s->node);
}

void loop__inbox_add(struct loop *l, struct loop_inbox *inbox)
{
    list_push_back(&l->inboxes, &inbox->node);
}

void loop__inbox_remove(struct loop *l, struct loop_inbox *inbox)
{
    remove_node(l, &inbox->node);
}

void loop__wake(struct loop *l)
{
    if (l->driver != NULL) {
        l->driver->wake(l->driver);
        return;
    }
    ev_async_send(l->ev, &l->async);
}
