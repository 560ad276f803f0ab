/*
 * base/mailbox.h — messages from any thread to one loop, in batches.
 *
 * A wait-free queue (liburcu wfcqueue) and one wake-up for a loop that sleeps: a sender that finds
 * the queue non-empty does not wake again. Messages of one sender keep their order.
 */
#ifndef BASE_MAILBOX_H
#define BASE_MAILBOX_H

#include "base/loop.h"

struct mail { /* embed in the message; belongs to the mailbox between send and delivery */
    void *queue_node[2];
    void (*deliver)(struct mail *m); /* runs on the loop's thread; may free the message */
};

struct mailbox;
struct mailbox *mailbox_new(struct loop *l);
void mailbox_free(struct mailbox *m);               /* undelivered messages are delivered first */
struct loop *mailbox_loop(const struct mailbox *m); /* the one it delivers on */
void mailbox_send(struct mailbox *m, struct mail *mail); /* any thread */

#endif
