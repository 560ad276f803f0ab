/*
 * raft/log_ring.c — the loop writes, through io_uring, a few rounds at a time.
 *
 * raft_log_submit places what waits and hands it to the ring at once, unless `limit` rounds are
 * under way; then batches collect until one of them ends. A round is one direct write that is
 * durable when it completes, so no thread is woken for it, and the next round's transfer runs
 * while this one's flush does.
 *
 *   submit -> kick: ripe? -> take -> room? -> build -> write   | kernel |   done -> advance -> kick
 *                                    |                                        (in order of places)
 *                                    +-- wanted -> keeper (log_keep.c) -> kick
 *
 * X1  Rounds complete in any order and are noted and reported in order of their places; a round is
 *     stored when it and all before it are durable. log->durable is the end of that prefix.
 * X2  Nothing is under way when a segment is rotated away (P1 in log_place.c) or grown.
 * X3  A round's buffer and batches live until the kernel has said what became of it, also after a
 *     failure and at close.
 * X4  No event comes from inside raft_log_submit: a completion comes from the loop, a failure that
 *     a call finds travels by mail.
 * X5  The loop waits for nothing: files are made, closed and retired by the keeper.
 *
 * sync_delay keeps the report of a durable round back by a timer; delays of rounds under way run
 * side by side.
 *
 * Threads: the loop's. At close the thread that closes, with the loop's at rest.
 */
#include "raft/log_internal.h"

#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"

#include <stdlib.h>

#define INFLIGHT_USUAL 3u

struct raft__ring {
    struct raft__ring_io io;
    struct uring *uring; /* NULL with the io of a test */
    struct loop_timer *timer;
    uint64_t timer_due_us; /* 0: not running */
    struct raft__round rounds[RAFT__ROUNDS_MAX];
    unsigned limit, first, count; /* under way: COUNT of them from FIRST on, cyclic */
    bool closing;                 /* no events, no waiting for company */
    bool stopped;                 /* no new rounds */
};

static struct raft__round *round_at(struct raft__ring *ring, unsigned i)
{
    return &ring->rounds[(ring->first + i) % RAFT__ROUNDS_MAX];
}

/* ---- timer ---- */

static void timer_arm(struct raft_log *log, uint64_t after_us)
{
    struct raft__ring *ring = log->ring;
    uint64_t due = env_mono_us(log->env) + after_us;

    if (!ring->timer || (ring->timer_due_us != 0 && ring->timer_due_us <= due))
        return;
    ring->timer_due_us = due;
    loop_timer_start(ring->timer, after_us);
}

/* ---- beginning a round ---- */

/* Has the first batch in the queue waited long enough for company? Nothing is there: false. */
static bool queue_is_ripe(struct raft_log *log)
{
    const struct raft_log_options *o = &log->options;
    uint64_t now = env_mono_us(log->env), waited = 0;

    pthread_mutex_lock(&log->mu);
    bool any = log->queue_first != NULL, ripe = any;
    if (any && o->group_wait_us > 0) {
        waited = now - log->queue_first->submitted_us;
        ripe = log->ring->closing || waited >= o->group_wait_us ||
               log->queue_bytes >= o->batch_bytes || log->queue_entries >= o->batch_entries;
        if (ripe)
            histogram_add(&log->stats.group_wait, waited);
    }
    pthread_mutex_unlock(&log->mu);
    if (any && !ripe)
        timer_arm(log, o->group_wait_us - waited);
    return ripe;
}

/* The segment that the keeper has prepared, if it has ROOM bytes behind its header. */
static struct raft__segment *take_offer(struct raft_log *log, uint64_t room)
{
    struct raft__segment *s = NULL;

    pthread_mutex_lock(&log->mu);
    if (log->offered && log->offered->size - RAFT__BLOCK >= room) {
        s = log->offered;
        log->offered = NULL;
        log->offer_taken = true;
    }
    pthread_mutex_unlock(&log->mu);
    return s;
}

/* Is there room for the first taken batch? If not, somebody will kick: the round that has to end
 * first, or the keeper. */
static bool room_is_there(struct raft_log *log)
{
    pthread_mutex_lock(&log->mu);
    bool waiting = log->wanted.kind != RAFT__ROOM_FITS;
    pthread_mutex_unlock(&log->mu);
    if (waiting)
        return false;
    struct raft__room room = raft__room_wanted(log);
    if (room.kind == RAFT__ROOM_FITS)
        return true;
    if (log->ring->count > 0) /* X2 */
        return false;
    struct raft__segment *next = room.kind == RAFT__ROOM_NEXT ? take_offer(log, room.bytes) : NULL;
    if (!next) {
        MARK("raft.ring.waits_for_room");
        raft__keep_want(log, room);
        return false;
    }
    raft__rotate(log, next);
    raft__keep_wake(log);
    return true;
}

static void begin_round(struct raft_log *log)
{
    struct raft__ring *ring = log->ring;
    struct raft__round *r = round_at(ring, ring->count);

    raft__round_build(log, r);
    ring->count++;
    if (fault_point("log.write")) {
        r->done = true;
        r->result = ST_IO;
        raft__latch(log, ST_IO);
        return;
    }
    ring->io.write(ring->io.arg, r);
    r->write_us = env_mono_us(log->env) - r->begin_us;
    if (fault_point("log.sync"))
        r->injected = ST_IO;
}

void raft__ring_kick(struct raft_log *log)
{
    struct raft__ring *ring = log->ring;

    if (ring->stopped || ring->count == ring->limit)
        return;
    if (queue_is_ripe(log))
        raft__take_submitted(log);
    while (log->taken_first && ring->count < ring->limit && raft__failed(log) == ST_OK &&
           room_is_there(log))
        begin_round(log);
}

/* ---- the end of a round ---- */

/* May a round that is done be reported? */
static bool is_released(struct raft_log *log, const struct raft__round *r)
{
    if (log->ring->closing || r->result != ST_OK)
        return true;
    if (fault_point("log.hang")) {
        timer_arm(log, RAFT__HANG_LOOK_US);
        return false;
    }
    if (log->options.sync_delay_us == 0)
        return true;
    uint64_t now = env_mono_us(log->env);
    if (now >= r->release_us)
        return true;
    timer_arm(log, r->release_us - now);
    return false;
}

/* Reports what is stored now, frees what has ended, begins what had to wait. */
static void advance(struct raft_log *log)
{
    struct raft__ring *ring = log->ring;
    uint64_t ticket = 0;
    bool noted = false;

    while (ring->count > 0) {
        struct raft__round *r = round_at(ring, 0);
        if (!r->done || !is_released(log, r))
            break;
        if (r->result == ST_OK && !ring->stopped && raft__round_note(log, r)) {
            noted = true;
            if (r->ticket)
                ticket = r->ticket;
        }
        raft__round_clear(r);
        ring->first = (ring->first + 1) % RAFT__ROUNDS_MAX;
        ring->count--;
    }
    if (noted && raft__oldest_retirable(log))
        raft__keep_wake(log);
    if (ticket && !ring->closing)
        raft__report_now(log->report, ticket);
    raft__ring_kick(log);
}

void raft__ring_done(struct raft__round *r, status st)
{
    struct raft_log *log = r->log;
    uint64_t now = env_mono_us(log->env);

    ASSERT(!r->done);
    if (st == ST_OK)
        st = r->injected;
    if (st == ST_OK && fault_point("log.synced"))
        st = ST_IO;
    if (st == ST_DISK_FULL) /* some of it may have been written: not harmless any more */
        st = ST_IO;
    r->done = true;
    r->result = st;
    r->sync_us = now - r->begin_us - r->write_us;
    r->release_us = now + log->options.sync_delay_us;
    if (round_at(log->ring, 0) != r)
        MARK("raft.ring.out_of_order");
    if (st != ST_OK)
        raft__latch(log, st);
    advance(log);
}

static void on_timer(void *arg)
{
    struct raft_log *log = arg;
    log->ring->timer_due_us = 0;
    advance(log);
}

/* ---- the ring ---- */

static void on_written(struct uring_op *op, int result)
{
    struct raft__round *r = (struct raft__round *)op;
    _Static_assert(offsetof(struct raft__round, op) == 0, "the op comes first");

    if (result >= 0 && (uint64_t)result == r->bytes) {
        raft__ring_done(r, ST_OK);
        return;
    }
    LOG_ERROR("raft.log_write_failed", LOG_U64("stream", r->log->options.stream),
              LOG_U64("offset", r->start), LOG_U64("bytes", r->bytes), LOG_I64("result", result));
    raft__ring_done(r, ST_IO);
}

static void uring_begin(void *arg, struct raft__round *r)
{
    struct raft__ring *ring = arg;
    int fd = env_os_direct_fd(r->log->env, r->log->newest->file);

    r->op.done = on_written;
    uring_write(ring->uring, &r->op, fd, r->data, (size_t)r->bytes, r->start);
}

static void uring_end(void *arg)
{
    struct raft__ring *ring = arg;
    uring_wait(ring->uring);
}

struct raft__ring *raft__ring_new(struct raft_log *log, struct loop *loop,
                                  const struct raft__ring_io *io)
{
    unsigned limit = log->options.inflight ? log->options.inflight : INFLIGHT_USUAL;
    struct raft__ring *ring = calloc(1, sizeof *ring);

    ASSERT(ring != NULL);
    ring->limit = limit < RAFT__ROUNDS_MAX ? limit : RAFT__ROUNDS_MAX;
    if (io) {
        ring->io = *io;
    } else {
        if (env_os_direct_fd(log->env, log->newest->file) >= 0)
            ring->uring = uring_new(loop, RAFT__ROUNDS_MAX);
        if (!ring->uring) {
            free(ring);
            return NULL;
        }
        ring->io = (struct raft__ring_io){ring, uring_begin, uring_end};
    }
    if (loop)
        ring->timer = loop_timer_new(loop, on_timer, log);
    return ring;
}

void raft__ring_start(struct raft_log *log, const struct raft__ring_io *io,
                      const struct raft_log_events *events)
{
    ASSERT(!log->started);
    log->events = *events;
    log->report = raft__report_new(log, NULL);
    log->ring = raft__ring_new(log, NULL, io);
    log->stats.writer = RAFT_LOG_URING;
    log->started = true;
}

/* ---- closing ---- */

/* Lets the keeper meet what is wanted. False if it cannot. */
static bool wait_for_keeper(struct raft_log *log)
{
    if (!log->threaded) {
        while (log->wanted.kind != RAFT__ROOM_FITS) {
            if (raft__keep_step(log) != RAFT__WORK_DONE)
                return false;
        }
        return true;
    }
    pthread_mutex_lock(&log->mu);
    while (log->wanted.kind != RAFT__ROOM_FITS && !log->keep_blocked && log->failed == ST_OK)
        pthread_cond_wait(&log->kept, &log->mu);
    bool met = log->wanted.kind == RAFT__ROOM_FITS;
    pthread_mutex_unlock(&log->mu);
    return met;
}

void raft__ring_drain(struct raft_log *log)
{
    struct raft__ring *ring = log->ring;

    ring->closing = true;
    for (;;) {
        advance(log);
        if (ring->count > 0) {
            ring->io.wait(ring->io.arg);
            continue;
        }
        if (!log->taken_first || raft__failed(log) != ST_OK || !wait_for_keeper(log))
            return;
    }
}

void raft__ring_free(struct raft_log *log)
{
    struct raft__ring *ring = log->ring;

    if (!ring)
        return;
    ring->closing = ring->stopped = true;
    while (ring->uring && ring->count > 0) { /* X3 */
        advance(log);
        if (ring->count > 0)
            uring_end(ring);
    }
    for (unsigned i = 0; i < RAFT__ROUNDS_MAX; i++)
        raft__round_fini(&ring->rounds[i]);
    uring_free(ring->uring);
    loop_timer_free(ring->timer);
    free(ring);
    log->ring = NULL;
}
