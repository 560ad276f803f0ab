/*
 * base/mailbox.c — many senders, one loop, liburcu's wait-free concurrent queue.
 *
 * A sender exchanges the queue's tail, which tells it whether the queue was empty; only then does
 * it wake the loop. The loop takes the whole queue at once (splice) and then delivers: what arrives
 * meanwhile belongs to the next turn, so that one busy sender cannot hold a turn open.
 *
 * Invariants
 *   M1  If the queue is not empty, a wake-up is pending or its sender is just about to make it: the
 *       splice leaves the queue empty, so the next sender wakes again.
 *   M2  A message is not touched by the mailbox after its deliver was called; deliver may free it.
 *   M3  Messages of one sender are delivered in the order sent.
 *
 * Threads: mailbox_send from any; the rest on the loop's thread, or with the loop not running.
 * Under ThreadSanitizer a message's own address stands for the order between send and deliver.
 */
#include "base/mailbox.h"
#include "base/assert.h"
#include "base/loop_internal.h"
#include "base/tsan.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <urcu/wfcqueue.h>

_Static_assert(sizeof(struct cds_wfcq_node) <= sizeof((struct mail *)0)->queue_node,
               "a mail holds a queue node");

struct mailbox {
    struct loop_inbox inbox;
    struct loop *loop;
    /* Senders write the tail, the loop the head: apart, so that they do not share a line. */
    _Alignas(64) struct cds_wfcq_tail tail;
    _Alignas(64) struct __cds_wfcq_head head;
};

static struct cds_wfcq_node *node_of(struct mail *mail)
{
    return (struct cds_wfcq_node *)(void *)mail->queue_node;
}

static struct mail *mail_of(struct cds_wfcq_node *node)
{
    return CONTAINER_OF((void *)node, struct mail, queue_node);
}

/* One batch; false if there was nothing. */
static bool deliver_batch(struct mailbox *m)
{
    struct __cds_wfcq_head batch;
    struct cds_wfcq_tail batch_tail;
    struct cds_wfcq_node *node;

    __cds_wfcq_init(&batch, &batch_tail);
    enum cds_wfcq_ret r = __cds_wfcq_splice_blocking(&batch, &batch_tail, &m->head, &m->tail);
    if (r == CDS_WFCQ_RET_SRC_EMPTY)
        return false;
    while ((node = __cds_wfcq_dequeue_blocking(&batch, &batch_tail)) != NULL) {
        struct mail *mail = mail_of(node);
        TSAN_ACQUIRE(mail);
        mail->deliver(mail);
    }
    return true;
}

static void drain(struct loop_inbox *inbox)
{
    deliver_batch(CONTAINER_OF(inbox, struct mailbox, inbox));
}

struct mailbox *mailbox_new(struct loop *l)
{
    struct mailbox *m = aligned_alloc(64, (sizeof *m + 63) / 64 * 64);
    if (m == NULL) {
        fprintf(stderr, "metadb: out of memory (mailbox)\n");
        abort();
    }
    m->loop = l;
    m->inbox.drain = drain;
    __cds_wfcq_init(&m->head, &m->tail);
    loop__inbox_add(l, &m->inbox);
    return m;
}

void mailbox_free(struct mailbox *m)
{
    if (m == NULL)
        return;
    while (deliver_batch(m))
        ;
    loop__inbox_remove(m->loop, &m->inbox);
    free(m);
}

struct loop *mailbox_loop(const struct mailbox *m)
{
    return m->loop;
}

void mailbox_send(struct mailbox *m, struct mail *mail)
{
    cds_wfcq_node_init(node_of(mail));
    TSAN_RELEASE(mail);
    /* The message may be gone once it is in the queue. */
    bool was_empty = !cds_wfcq_enqueue(&m->head, &m->tail, node_of(mail));
    if (was_empty)
        loop__wake(m->loop);
}
