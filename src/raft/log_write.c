/*
 * raft/log_write.c — the log thread: submitted batches become durable, in order.
 *
 * One round (raft__write_step): take everything that was submitted; make sure that the first batch
 * has room, rotating to the prepared segment if not; put as many of the waiting batches as fit into
 * one vectored write; sync; then apply their notes to the group table, report the highest ticket
 * and retire segments that nobody needs any more. While a sync runs, the loop collects; so the
 * batch size follows the load without a timer.
 *
 * W1  A ticket is reported after the sync that covers it returned, never before.
 * W2  A write lies in one segment, and the older segment is synced as a whole before the first
 *     write into the newer one: every header's durable position is true.
 * W3  The first batch of a segment is a checkpoint of the group table as of that place.
 * W4  After a failed write or sync nothing is ever reported stored again; the failure is latched
 *     and reported once. A sync is never repeated: the kernel may have dropped the pages and would
 *     say yes (FIELD-REPORTS A5).
 * W5  ENOSPC while a next segment is made is not a failure: the batches wait, nothing of them was
 *     written, and later appends are refused until there is space.
 * W6  The sequence numbers of batches on disk ascend by one, across segments and restarts.
 *
 * The report. Events travel to the loop as one mail object: the thread stores the highest ticket
 * and sends the mail unless it is already on its way. It outlives the log if it is still in the
 * mailbox when the log closes.
 *
 * Threads: the log thread, or the owner when it steps by hand. log->mu guards what the loop shares;
 * it is held for short computations only, never across a system call.
 */
#include "raft/log_internal.h"

#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* ---- report ---- */

struct raft__report {
    struct mail mail;
    struct mailbox *mailbox; /* NULL: the owner steps the log, events are direct calls */
    struct raft_log *log;    /* [loop] NULL once the log is closed */
    pthread_mutex_t mu;
    bool sent;            /* [mu] in the mailbox */
    uint64_t ticket;      /* [mu] highest stored */
    status failed;        /* [mu] latched, to be told */
    bool told;            /* [loop] on_failed was called */
    uint64_t told_ticket; /* [loop] */
};

/* Loop thread. */
static void report_tell(struct raft__report *r)
{
    pthread_mutex_lock(&r->mu);
    r->sent = false;
    uint64_t ticket = r->ticket;
    status failed = r->failed;
    pthread_mutex_unlock(&r->mu);

    struct raft_log *log = r->log;
    if (ticket > r->told_ticket) {
        r->told_ticket = ticket;
        log->events.on_stored(log->events.arg, ticket);
    }
    if (failed != ST_OK && !r->told) {
        r->told = true;
        log->events.on_failed(log->events.arg, failed);
    }
}

static void report_free(struct raft__report *r)
{
    pthread_mutex_destroy(&r->mu);
    free(r);
}

static void report_deliver(struct mail *m)
{
    struct raft__report *r = (struct raft__report *)m;
    _Static_assert(offsetof(struct raft__report, mail) == 0, "the mail comes first");
    if (r->log)
        report_tell(r);
    else
        report_free(r);
}

static void report_send(struct raft__report *r, uint64_t ticket, status failed)
{
    pthread_mutex_lock(&r->mu);
    if (ticket > r->ticket)
        r->ticket = ticket;
    if (failed != ST_OK)
        r->failed = failed;
    bool send = !r->sent;
    r->sent = true;
    pthread_mutex_unlock(&r->mu);
    if (!r->mailbox)
        report_tell(r);
    else if (send)
        mailbox_send(r->mailbox, &r->mail);
}

struct raft__report *raft__report_new(struct raft_log *log, struct mailbox *mailbox)
{
    struct raft__report *r = calloc(1, sizeof *r);
    ASSERT(r != NULL);
    r->mail.deliver = report_deliver;
    r->mailbox = mailbox;
    r->log = log;
    pthread_mutex_init(&r->mu, NULL);
    return r;
}

void raft__report_close(struct raft__report *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->mu);
    bool sent = r->sent && r->mailbox;
    pthread_mutex_unlock(&r->mu);
    r->log = NULL;
    if (!sent)
        report_free(r);
}

/* ---- taking and placing ---- */

static void queue_drop(struct raft__batch **first, struct raft__batch **last)
{
    while (*first) {
        struct raft__batch *b = *first;
        *first = b->next;
        raft__batch_free(b);
    }
    *last = NULL;
}

void raft__write_latch(struct raft_log *log, status st)
{
    ASSERT(st != ST_OK);
    pthread_mutex_lock(&log->mu);
    bool first = log->failed == ST_OK;
    if (first) {
        log->failed = st;
        log->stats.failed = st;
    }
    queue_drop(&log->queue_first, &log->queue_last);
    log->queue_bytes = log->queue_entries = log->pending_bytes = 0;
    pthread_mutex_unlock(&log->mu);
    queue_drop(&log->taken_first, &log->taken_last);
    if (!first)
        return;
    LOG_ERROR("raft.log_failed", LOG_U64("stream", log->options.stream),
              LOG_STR("status", status_name(st)));
    if (log->report)
        report_send(log->report, 0, st);
}

static void take_submitted(struct raft_log *log)
{
    uint64_t now = env_mono_us(log->env);

    pthread_mutex_lock(&log->mu);
    for (struct raft__batch *b = log->queue_first; b; b = b->next)
        histogram_add(&log->stats.queued_wait, now - b->submitted_us);
    if (log->queue_first) {
        if (log->taken_last)
            log->taken_last->next = log->queue_first;
        else
            log->taken_first = log->queue_first;
        log->taken_last = log->queue_last;
        log->queue_first = log->queue_last = NULL;
        log->queue_bytes = log->queue_entries = 0;
    }
    pthread_mutex_unlock(&log->mu);
}

/* Puts the prepared segment in place of the full one, which was synced by its last write (W2). */
static void rotate(struct raft_log *log)
{
    struct raft__segment *old = log->newest;

    log->env->ops->close(log->env, old->file);
    old->file = NULL;
    pthread_mutex_lock(&log->mu);
    old->newer = log->next;
    log->newest = log->next;
    log->stats.segments++;
    pthread_mutex_unlock(&log->mu);
    log->next = NULL;
    log->tidy = false;
    log->checkpoint_due = true;
}

/* A new segment begins with a checkpoint (W3), which goes out with the first batch. */
static void checkpoint_add(struct raft_log *log)
{
    struct raft__batch *b = raft__groups_checkpoint(&log->groups);
    b->next = log->taken_first;
    log->taken_first = b;
    if (!log->taken_last)
        log->taken_last = b;
    log->checkpoint_due = false;
}

/* Blocks that the first taken batch needs, with the checkpoint that must go before it. */
static uint64_t first_need(const struct raft_log *log, uint64_t checkpoint_bytes)
{
    return raft__batch_disk_bytes(log->taken_first->payload_bytes) + checkpoint_bytes;
}

static uint64_t checkpoint_size(const struct raft_log *log)
{
    /* At most a hard state and a cut for each group. */
    return raft__batch_disk_bytes((uint64_t)log->groups.count * 2 * RAFT__RECORD_BYTES);
}

/* Makes room for the first taken batch in the newest segment. ST_DISK_FULL: it has to wait. */
static status make_room(struct raft_log *log)
{
    struct raft__segment *s = log->newest;

    if (!log->checkpoint_due) {
        if (first_need(log, 0) <= s->size - s->end)
            return ST_OK;
        ST_TRY(raft__segment_force_next(log, first_need(log, checkpoint_size(log))));
        rotate(log);
    } else if (first_need(log, checkpoint_size(log)) > s->size - s->end) {
        /* The very first batch of a log, and larger than a segment. */
        uint64_t size = s->end + first_need(log, checkpoint_size(log));
        ST_TRY(log->env->ops->zero_fill(log->env, s->file, size));
        pthread_mutex_lock(&log->mu);
        s->size = size;
        pthread_mutex_unlock(&log->mu);
    }
    checkpoint_add(log);
    return ST_OK;
}

/* ---- one write ---- */

struct round { /* the batches of one write, a prefix of what was taken */
    struct raft__batch *first, *last;
    uint64_t bytes, start, ticket, entries, batches;
    uint64_t write_us, sync_us, begin_us;
};

/* Cuts off of the taken batches what fits, seals them for their places, builds the vector. */
static size_t round_build(struct raft_log *log, struct round *r)
{
    struct raft__segment *s = log->newest;
    uint64_t at = s->end;
    size_t pieces = 0, filled = 0;

    *r = (struct round){.first = log->taken_first, .start = s->end};
    for (struct raft__batch *b = log->taken_first; b; b = b->next) {
        uint64_t size = raft__batch_disk_bytes(b->payload_bytes);
        if (size > s->size - at)
            break;
        raft__batch_seal(b, s->seed, (struct raft__position){s->number, at}, log->sequence++,
                         log->durable);
        at += size;
        r->last = b;
        r->entries += b->entries;
        r->batches++;
        if (b->ticket)
            r->ticket = b->ticket;
        pieces += raft__batch_iov(b, NULL);
    }
    ASSERT(r->last != NULL); /* make_room made room for one */
    r->bytes = at - s->end;
    log->taken_first = r->last->next;
    if (!log->taken_first)
        log->taken_last = NULL;
    r->last->next = NULL;
    if (pieces > log->iov_capacity) {
        log->iov = realloc(log->iov, pieces * sizeof *log->iov);
        ASSERT(log->iov != NULL);
        log->iov_capacity = pieces;
    }
    for (struct raft__batch *b = r->first; b; b = b->next)
        filled += raft__batch_iov(b, log->iov + filled);
    return filled;
}

static void delay_us(uint64_t us)
{
    struct timespec t = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        continue;
}

static status round_write(struct raft_log *log, struct round *r, size_t pieces)
{
    struct env *env = log->env;
    struct raft__segment *s = log->newest;

    if (fault_point("log.write"))
        return ST_IO;
    r->begin_us = env_mono_us(env);
    ST_TRY(env->ops->pwritev(env, s->file, log->iov, (int)pieces, r->start));
    uint64_t written_us = env_mono_us(env);
    r->write_us = written_us - r->begin_us;
    if (fault_point("log.sync"))
        return ST_IO;
    if (log->options.sync_delay_us)
        delay_us(log->options.sync_delay_us);
    ST_TRY(env->ops->datasync(env, s->file));
    r->sync_us = env_mono_us(env) - written_us;
    if (fault_point("log.synced"))
        return ST_IO;
    return ST_OK;
}

/* The round is durable: notes, counters. */
static void round_note(struct raft_log *log, const struct round *r)
{
    uint64_t now = env_mono_us(log->env);
    struct raft__segment *s = log->newest;

    pthread_mutex_lock(&log->mu);
    s->end += r->bytes;
    for (struct raft__batch *b = r->first; b; b = b->next) {
        for (size_t i = 0; i < b->note_count; i++)
            raft__groups_note(&log->groups, log->oldest, s, &b->notes[i]);
        if (b->kind != RAFT__BATCH_DATA)
            continue;
        log->pending_bytes -= b->payload_bytes;
        histogram_add(&log->stats.batch, now - b->submitted_us);
    }
    log->stats.batches += r->batches;
    log->stats.entries += r->entries;
    log->stats.bytes += r->bytes;
    log->stats.writes++;
    log->stats.syncs++;
    histogram_add(&log->stats.write, r->write_us);
    histogram_add(&log->stats.sync, r->sync_us);
    histogram_add(&log->stats.batch_entries, r->entries);
    pthread_mutex_unlock(&log->mu);
    log->durable = (struct raft__position){s->number, s->end};
}

static bool oldest_needed(struct raft_log *log)
{
    uint32_t group_at;
    pthread_mutex_lock(&log->mu); /* it moves `settled`, as raft_log_oldest does on the loop */
    bool needed = raft__segment_needed(&log->groups, log->oldest, &group_at);
    pthread_mutex_unlock(&log->mu);
    return needed;
}

/* Segments at the old end that nobody needs (G3, G4). */
static status retire_unneeded(struct raft_log *log)
{
    while (!log->options.keep_all && log->oldest != log->newest && !oldest_needed(log)) {
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
    struct round r;

    ST_TRY(make_room(log));
    size_t pieces = round_build(log, &r);
    status st = round_write(log, &r, pieces);
    if (st == ST_OK) {
        round_note(log, &r);
        if (r.ticket && log->report)
            report_send(log->report, r.ticket, ST_OK);
        st = retire_unneeded(log);
    }
    /* Something of the round may have been written: no error of it is harmless (W5). */
    if (st == ST_DISK_FULL)
        st = ST_IO;
    queue_drop(&r.first, &r.last);
    return st;
}

enum raft__work raft__write_step(struct raft_log *log)
{
    if (log->failed != ST_OK) /* only this thread sets it */
        return RAFT__WORK_NONE;
    take_submitted(log);
    if (!log->taken_first)
        return RAFT__WORK_NONE;
    status st = write_round(log);
    if (st == ST_DISK_FULL) {
        raft__full_set(log, true);
        return RAFT__WORK_BLOCKED;
    }
    if (st != ST_OK)
        raft__write_latch(log, st);
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

/* Under mu. False on timeout. */
static bool wait_us(struct raft_log *log, uint64_t us)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t); /* the condition's own clock, not an input of ours */
    uint64_t nsec = (uint64_t)t.tv_nsec + us % 1000000 * 1000;
    t.tv_sec += (time_t)(us / 1000000 + nsec / 1000000000);
    t.tv_nsec = (long)(nsec % 1000000000);
    return pthread_cond_timedwait(&log->wake, &log->mu, &t) == 0;
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
        bool woken = wait_us(log, o->group_wait_us - waited);
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
            wait_us(log, RAFT__FULL_RETRY_US);
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
    if (log->failed != ST_OK || log->tidy)
        return false;
    status st = raft__segment_prepare(log, &more);
    if (st != ST_OK)
        raft__write_latch(log, st);
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
    if (raft__write_step(log) == RAFT__WORK_DONE)
        return true;
    return prepare(log);
}
