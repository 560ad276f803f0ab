/*
 * raft/log_write.c — one write at a time: the log thread, or the owner that steps a log by hand.
 *
 * One step (raft__write_step): take everything that was submitted; make sure that the first batch
 * has room, rotating to the prepared segment if not; put as many of the waiting batches as fit into
 * one round; write, sync; then note the round, report its ticket and retire segments that nobody
 * needs any more. While a sync runs, the loop collects; so the batch size follows the load without
 * a timer. The thread prepares segments when nothing waits, or when it is late.
 *
 * W1  A ticket is reported after the sync that covers it returned, never before.
 * W2  After a failed write or sync nothing is ever reported stored again; the failure is latched
 *     and reported once. A sync is never repeated: the kernel may have dropped the pages and would
 *     say yes.
 * W3  ENOSPC while a next segment is made is not a failure: the batches wait, nothing of them was
 *     written, and later appends are refused until there is space.
 *
 * The rest holds for both writers: P1 to P5 in log_place.c.
 *
 * Threads: the log thread, or the owner when it steps by hand; raft__wait_us and
 * raft__retire_unneeded also the keeper's (log_keep.c).
 */
#include "raft/log_internal.h"

#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* ---- one write ---- */

/* Makes room for the first taken batch in the newest segment. ST_DISK_FULL: it has to wait. */
static status make_room(struct raft_log *log)
{
    struct raft__room room = raft__room_wanted(log);

    switch (room.kind) {
    case RAFT__ROOM_FITS: return ST_OK;
    case RAFT__ROOM_GROW: return raft__segment_grow(log, log->newest, room.bytes);
    case RAFT__ROOM_NEXT: break;
    }
    ST_TRY(raft__segment_force_next(log, room.bytes));
    struct raft__segment *old = log->newest;
    raft__rotate(log, log->next);
    log->next = NULL;
    log->tidy = false;
    log->env->ops->close(log->env, old->file);
    old->file = NULL;
    return ST_OK;
}

static void delay_us(uint64_t us)
{
    struct timespec t = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        continue;
}

static status round_write(struct raft_log *log, struct raft__round *r)
{
    struct env *env = log->env;
    struct raft__segment *s = log->newest;
    const struct iovec iov = {r->data, (size_t)r->bytes};

    if (fault_point("log.write"))
        return ST_IO;
    ST_TRY(env->ops->pwritev(env, s->file, &iov, 1, r->start));
    uint64_t written_us = env_mono_us(env);
    r->write_us = written_us - r->begin_us;
    if (fault_point("log.sync"))
        return ST_IO;
    if (log->options.sync_delay_us)
        delay_us(log->options.sync_delay_us);
    while (fault_point("log.hang"))
        delay_us(RAFT__HANG_LOOK_US);
    ST_TRY(env->ops->datasync(env, s->file));
    r->sync_us = env_mono_us(env) - written_us;
    if (fault_point("log.synced"))
        return ST_IO;
    return ST_OK;
}

status raft__retire_unneeded(struct raft_log *log)
{
    while (raft__oldest_retirable(log)) {
        struct raft__segment *old = log->oldest;
        ST_TRY(raft__segment_retire(log, old->number, old->size));
        pthread_mutex_lock(&log->mu);
        log->oldest = old->newer;
        log->stats.segments--;
        log->stats.segments_recycled++;
        pthread_mutex_unlock(&log->mu);
        raft__segment_free(log->env, old);
        log->tidy = false;
    }
    return ST_OK;
}

/* Writes a prefix of what was taken. */
static status write_round(struct raft_log *log)
{
    struct raft__round *r = &log->round;

    ST_TRY(make_room(log));
    raft__round_build(log, r);
    status st = round_write(log, r);
    if (st == ST_OK && raft__round_note(log, r)) {
        if (r->ticket && log->report)
            raft__report_send(log->report, r->ticket, ST_OK);
        st = raft__retire_unneeded(log);
    }
    raft__round_clear(r);
    /* Something of the round may have been written: no error of it is harmless (W3). */
    return st == ST_DISK_FULL ? ST_IO : st;
}

enum raft__work raft__write_step(struct raft_log *log)
{
    if (raft__failed(log) != ST_OK)
        return RAFT__WORK_NONE;
    raft__take_submitted(log);
    if (!log->taken_first)
        return RAFT__WORK_NONE;
    status st = write_round(log);
    if (st == ST_DISK_FULL) {
        raft__full_set(log, true);
        return RAFT__WORK_BLOCKED;
    }
    if (st != ST_OK) {
        raft__batches_free(&log->taken_first, &log->taken_last);
        raft__latch(log, st);
    }
    return RAFT__WORK_DONE;
}

status raft__write_mark(struct raft_log *log)
{
    struct raft__segment *s = log->newest;

    if (log->checkpoint_due || s->size - s->end < raft__batch_disk_bytes(0))
        return ST_OK;
    ASSERT(!log->taken_first);
    log->taken_first = log->taken_last = raft__batch_new(RAFT__BATCH_MARK);
    return write_round(log);
}

/* ---- the thread ---- */

bool raft__wait_us(struct raft_log *log, pthread_cond_t *cond, uint64_t us)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t); /* the condition's own clock, not an input of ours */
    uint64_t nsec = (uint64_t)t.tv_nsec + us % 1000000 * 1000;
    t.tv_sec += (time_t)(us / 1000000 + nsec / 1000000000);
    t.tv_nsec = (long)(nsec % 1000000000);
    return pthread_cond_timedwait(cond, &log->mu, &t) == 0;
}

/* Lets the first batch wait for company, up to group_wait or a full batch. */
static void wait_for_group(struct raft_log *log)
{
    const struct raft_log_options *o = &log->options;

    if (o->group_wait_us == 0)
        return;
    pthread_mutex_lock(&log->mu);
    uint64_t begin = env_mono_us(log->env), waited = 0;
    log->sleep = RAFT__GROUPING;
    while (!log->stopping && log->queue_first && log->queue_bytes < o->batch_bytes &&
           log->queue_entries < o->batch_entries && waited < o->group_wait_us) {
        bool woken = raft__wait_us(log, &log->wake, o->group_wait_us - waited);
        waited = woken ? env_mono_us(log->env) - begin : o->group_wait_us;
    }
    log->sleep = RAFT__AWAKE;
    if (log->queue_first)
        histogram_add(&log->stats.group_wait, waited);
    pthread_mutex_unlock(&log->mu);
}

/* Sleeps until something is submitted, or until a full disk is worth another look. */
static void wait_for_work(struct raft_log *log, bool blocked)
{
    pthread_mutex_lock(&log->mu);
    log->sleep = RAFT__IDLE;
    if (blocked || log->full) {
        if (!log->stopping && (blocked || !log->queue_first))
            raft__wait_us(log, &log->wake, RAFT__FULL_RETRY_US);
        log->tidy = false;
    } else {
        while (!log->stopping && !log->queue_first)
            pthread_cond_wait(&log->wake, &log->mu);
    }
    log->sleep = RAFT__AWAKE;
    pthread_mutex_unlock(&log->mu);
}

static bool stop_wanted(struct raft_log *log)
{
    pthread_mutex_lock(&log->mu);
    bool stop = log->stopping;
    pthread_mutex_unlock(&log->mu);
    return stop;
}

/* Is preparing the next segment so far behind that it may not wait for idle time? By the middle of
 * a segment the next one shall be there. */
static bool prepare_is_late(const struct raft_log *log)
{
    return !log->next && log->newest->end > log->newest->size / 2;
}

static bool prepare(struct raft_log *log)
{
    bool more = false;
    if (log->tidy || raft__failed(log) != ST_OK)
        return false;
    status st = raft__segment_prepare(log, &more);
    if (st != ST_OK)
        raft__latch(log, st);
    return more;
}

void *raft__write_thread(void *arg)
{
    struct raft_log *log = arg;

    for (;;) {
        wait_for_group(log);
        enum raft__work work = raft__write_step(log);
        if (work == RAFT__WORK_DONE) {
            if (prepare_is_late(log))
                (void)prepare(log);
            continue;
        }
        if (stop_wanted(log))
            return NULL; /* what is blocked now was never reported */
        if (!prepare(log))
            wait_for_work(log, work == RAFT__WORK_BLOCKED);
    }
}

bool raft_log_step(struct raft_log *log)
{
    ASSERT(log->started && !log->threaded);
    if (log->ring)
        return raft__keep_step(log) == RAFT__WORK_DONE;
    if (raft__write_step(log) == RAFT__WORK_DONE)
        return true;
    return prepare(log);
}
