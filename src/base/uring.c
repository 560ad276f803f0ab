/*
 * base/uring.c — the only door to io_uring.
 *
 * A write is one submission with RWF_DSYNC and one completion. On a file opened for direct I/O the
 * submission starts the transfer at once and returns; with a file that goes through the page cache
 * the kernel hands the request to a worker thread of its own, which works but saves nothing.
 *
 * Completions. The kernel posts them to a queue in shared memory when this thread enters it for
 * any reason (IORING_SETUP_COOP_TASKRUN: it is not interrupted for them), and ends a poll that
 * sleeps. So looking at the queue once per turn is two loads and finds most of them; the watched
 * descriptor is for what arrives right before the poll.
 *
 * Invariants
 *   U1  A write that uring_write took is delivered exactly once.
 *   U2  The submission queue holds DEPTH entries, so there is always a free one.
 *   U3  What the kernel refused for now (EAGAIN, EBUSY) stays in the submission queue and is
 *       offered again in the next turn.
 *
 * Threads: the loop's.
 */
#include "base/uring.h"

#include "base/assert.h"
#include "base/loop_internal.h"

#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>

struct uring {
    struct io_uring ring;
    struct loop *loop;
    struct loop_io *io;
    struct loop_inbox inbox;
    unsigned depth, under_way;
    bool submit_again;
};

static void submit(struct uring *u)
{
    int rc;
    do {
        rc = io_uring_submit(&u->ring);
    } while (rc == -EINTR);
    /* Anything else would be a misuse of the ring, not a fault of the disk. */
    ASSERT(rc >= 0 || rc == -EAGAIN || rc == -EBUSY);
    u->submit_again = io_uring_sq_ready(&u->ring) > 0;
    if (u->submit_again)
        loop_again(u->loop);
}

/* Delivers what is in the completion queue. A `done` may write again, which comes back later. */
static void reap(struct uring *u)
{
    struct io_uring_cqe *cqe;

    while (io_uring_peek_cqe(&u->ring, &cqe) == 0) {
        struct uring_op *op = io_uring_cqe_get_data(cqe);
        int result = cqe->res;
        io_uring_cqe_seen(&u->ring, cqe);
        ASSERT_INV("U1", u->under_way > 0);
        u->under_way--;
        op->done(op, result);
    }
}

static void on_readable(void *arg, int events)
{
    UNUSED(events);
    reap(arg);
}

static void on_turn(struct loop_inbox *inbox)
{
    struct uring *u = CONTAINER_OF(inbox, struct uring, inbox);
    if (u->submit_again)
        submit(u);
    if (u->under_way > 0)
        reap(u);
}

struct uring *uring_new(struct loop *l, unsigned depth)
{
    struct uring *u = calloc(1, sizeof *u);
    if (u == NULL) {
        fprintf(stderr, "metadb: out of memory (io_uring)\n");
        abort();
    }
    int rc = io_uring_queue_init(depth, &u->ring, IORING_SETUP_COOP_TASKRUN);
    if (rc == -EINVAL) /* a kernel before 5.19 */
        rc = io_uring_queue_init(depth, &u->ring, 0);
    if (rc != 0) {
        free(u);
        return NULL;
    }
    u->loop = l;
    u->depth = depth;
    u->io = loop_io_new(l, u->ring.ring_fd, on_readable, u);
    loop_io_set(u->io, LOOP_READ);
    u->inbox.drain = on_turn;
    loop__inbox_add(l, &u->inbox);
    return u;
}

void uring_free(struct uring *u)
{
    if (u == NULL)
        return;
    ASSERT(u->under_way == 0);
    loop__inbox_remove(u->loop, &u->inbox);
    loop_io_free(u->io);
    io_uring_queue_exit(&u->ring);
    free(u);
}

void uring_write(struct uring *u, struct uring_op *op, int fd, const void *src, size_t size,
                 uint64_t at)
{
    ASSERT(u->under_way < u->depth);
    ASSERT(size <= UINT32_MAX);
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    ASSERT_INV("U2", sqe != NULL);
    io_uring_prep_write(sqe, fd, src, (unsigned)size, at);
#ifndef METADB_BROKEN_NO_SYNC /* a build that the power test must catch */
    sqe->rw_flags = RWF_DSYNC;
#endif
    io_uring_sqe_set_data(sqe, op);
    u->under_way++;
    submit(u);
}

void uring_wait(struct uring *u)
{
    struct io_uring_cqe *cqe;
    int rc;

    ASSERT(u->under_way > 0);
    while (u->submit_again)
        submit(u);
    do {
        rc = io_uring_wait_cqe(&u->ring, &cqe);
    } while (rc == -EINTR);
    ASSERT(rc == 0);
    reap(u);
}
