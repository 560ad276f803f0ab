/*
 * base/loop_internal.h — what mailbox.c and sim_loop.c need of a loop and nobody else.
 *
 * An inbox is something that other threads fill and the loop empties once per turn, after the I/O
 * callbacks and before the turn hooks.
 */
#ifndef BASE_LOOP_INTERNAL_H
#define BASE_LOOP_INTERNAL_H

#include "base/list.h"
#include "base/loop.h"

struct loop_inbox {
    struct list node;
    void (*drain)(struct loop_inbox *inbox); /* the loop's thread */
};

/* The loop's thread, or any thread while the loop does not run. */
void loop__inbox_add(struct loop *l, struct loop_inbox *inbox);
void loop__inbox_remove(struct loop *l, struct loop_inbox *inbox);
/* Any thread: the loop drains its inboxes soon. A system call only if the loop sleeps. */
void loop__wake(struct loop *l);

/* Stands in for libev: a loop whose time, timers and turns come from a simulator. */
struct loop_driver {
    void (*wake)(struct loop_driver *d); /* a turn ends soon; also loop_again */
    void *(*timer_new)(struct loop_driver *d, struct loop_timer *t);
    void (*timer_start)(void *timer, uint64_t after_us);
    void (*timer_stop)(void *timer);
    void (*timer_free)(void *timer);
    void (*free)(struct loop_driver *d);
};
/* D belongs to the loop, loop_free frees it. */
struct loop *loop__driven_new(struct loop_driver *d);
struct loop_driver *loop__driver(struct loop *l); /* asserts that there is one */
void loop__set_now(struct loop *l, uint64_t now_us);
void loop__timer_fire(struct loop_timer *t);
/* Inboxes, then hooks. */
void loop__turn_end(struct loop *l);

#endif
