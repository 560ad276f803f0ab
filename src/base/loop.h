/*
 * base/loop.h — the only door to libev. One loop per reactor thread.
 *
 * Everything here belongs to the loop's thread, except loop_stop, which any thread may call. A loop
 * is offline for RCU around its poll and nowhere else. Other threads send messages: mailbox.h.
 *
 * One turn: poll, I/O and timer callbacks, mailboxes, turn hooks.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include "base/status.h"
#include <stdint.h>

struct loop;
struct loop_io;
struct loop_timer;
struct loop_turn;

#define LOOP_READ 1
#define LOOP_WRITE 2

struct loop *loop_new(void);
/* The caller has freed its descriptors, timers, hooks and mailboxes before. */
void loop_free(struct loop *l);
/* Runs until loop_stop. Registers the calling thread as an RCU reader for its duration. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l); /* any thread */
/* Monotonic time of this turn, cached. */
uint64_t loop_now_us(struct loop *l);

/* Interest in a descriptor. FN gets the ready events. The descriptor is not owned. */
struct loop_io *loop_io_new(struct loop *l, int fd, void (*fn)(void *arg, int events), void *arg);
void loop_io_set(struct loop_io *io, int events); /* 0 = none */
void loop_io_free(struct loop_io *io);            /* NULL is fine; FN is not called again */

/* One-shot unless re-armed inside FN. Never early; late by up to a millisecond, the resolution of
 * the poll. */
struct loop_timer *loop_timer_new(struct loop *l, void (*fn)(void *arg), void *arg);
void loop_timer_start(struct loop_timer *t, uint64_t after_us);
void loop_timer_stop(struct loop_timer *t);
void loop_timer_free(struct loop_timer *t); /* NULL is fine */

/* FN runs once at the end of every turn, after all I/O callbacks and mailboxes and before the
 * poll: where batches are closed. Hooks run in order of registration. A hook that has more to do
 * calls loop_again, and the next poll does not wait. */
struct loop_turn *loop_turn_new(struct loop *l, void (*fn)(void *arg), void *arg);
void loop_turn_free(struct loop_turn *t); /* NULL is fine */
void loop_again(struct loop *l);

/* A signal calls FN on this loop. One loop per signal; lives as long as the loop. SIGPIPE is
 * ignored process-wide by loop_new. */
void loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg);

#endif
