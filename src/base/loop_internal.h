/*
 * base/loop_internal.h — what mailbox.c needs of a loop and nobody else.
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

#endif
