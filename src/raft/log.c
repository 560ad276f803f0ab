/*
 * raft/log.c — the log as its owner sees it: open, append, submit, cut, close.
 *
 * Records are encoded into the open batch on the loop's thread; raft_log_submit hands the batch to
 * the writer. A batch that has grown past batch_bytes or batch_entries is closed
 * when the next records come; it has no ticket of its own, the one submitted after it carries one.
 *
 *   append -> open batch -> queue -> [writer] taken -> placed -> durable -> noted -> on_stored
 *
 * The writer is the log thread (log_write.c), or the loop itself through io_uring (log_ring.c);
 * then the thread only prepares and retires segments (log_keep.c).
 *
 * L1  Tickets ascend by one; a ticket covers all records added before the submit that returned it.
 * L2  What raft_log_append took is written or the log fails; it is never dropped otherwise.
 * L3  The loop's thread takes log->mu for short moments and makes no system call but the wake-up
 *     of a sleeping log thread, or handing a write to the ring.
 *
 * Refusing. The loop judges by `full_seen`, which it refreshes in admit and submit only: so the
 * answer of raft_log_admit holds for the rest of the turn, although the log thread may find the
 * disk full at any moment. What is accepted meanwhile has room (S3 in log_segment.c).
 */
#include "raft/log_internal.h"

#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"

#include <signal.h>
#include <stdlib.h>

static struct raft_log *log_new(struct env *env, const struct raft_log_options *options)
{
    struct raft_log *log = calloc(1, sizeof *log);
    ASSERT(log != NULL);
    ASSERT(options->segment_bytes >= 4 * RAFT__BLOCK);
    ASSERT(options->segment_bytes % RAFT__BLOCK == 0);
    ASSERT(options->batch_bytes > 0);
    ASSERT(options->batch_entries > 0);
    log->env = env;
    log->options = *options;
    log->options.dir = strdup(options->dir);
    ASSERT(log->options.dir != NULL);
    log->next_ticket = 1;
    log->next_number = 1;
    log->open = raft__batch_new(RAFT__BATCH_DATA);

    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&log->wake, &attr);
    pthread_cond_init(&log->kept, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&log->mu, NULL);
    histogram_init(&log->stats.group_wait);
    histogram_init(&log->stats.queued_wait);
    histogram_init(&log->stats.write);
    histogram_init(&log->stats.sync);
    histogram_init(&log->stats.batch);
    histogram_init(&log->stats.batch_entries);
    return log;
}

void raft__log_abandon(struct raft_log *log)
{
    raft__ring_free(log);
    raft__report_close(log->report);
    raft__batch_free(log->open);
    raft__batches_free(&log->queue_first, &log->queue_last);
    raft__batches_free(&log->taken_first, &log->taken_last);
    raft__round_fini(&log->round);
    while (log->oldest) {
        struct raft__segment *s = log->oldest;
        log->oldest = s->newer;
        raft__segment_free(log->env, s);
    }
    if (!log->offer_taken) /* else it is in the list */
        raft__segment_free(log->env, log->next);
    if (log->making.file)
        log->env->ops->close(log->env, log->making.file);
    raft__groups_fini(&log->groups);
    pthread_cond_destroy(&log->kept);
    pthread_cond_destroy(&log->wake);
    pthread_mutex_destroy(&log->mu);
    free((char *)(uintptr_t)log->options.dir);
    free(log);
}

status raft_log_open(struct env *env, const struct raft_log_options *options,
                     const struct raft_log_recovery *recovery, struct raft_log **out,
                     struct err *err)
{
    struct raft_log *log = log_new(env, options);
    status st = raft__recover(log, recovery, err);
    if (st != ST_OK) {
        raft__log_abandon(log);
        err_default(err, st);
        return st;
    }
    *out = log;
    return ST_OK;
}

static void choose_writer(struct raft_log *log, struct mailbox *mailbox)
{
    const enum raft_log_writer wanted = log->options.writer;

    if (mailbox && wanted != RAFT_LOG_THREAD)
        log->ring = raft__ring_new(log, mailbox_loop(mailbox), NULL);
    log->stats.writer = log->ring ? RAFT_LOG_URING : RAFT_LOG_THREAD;
    if (wanted == RAFT_LOG_URING && !log->ring)
        LOG_WARN("raft.log_no_uring", LOG_U64("stream", log->options.stream));
}

void raft_log_start(struct raft_log *log, struct mailbox *mailbox,
                    const struct raft_log_events *events)
{
    sigset_t all, before;

    ASSERT(!log->started);
    log->events = *events;
    log->report = raft__report_new(log, mailbox);
    log->started = true;
    log->threaded = mailbox != NULL;
    choose_writer(log, mailbox);
    if (!log->threaded)
        return;
    LOG_INFO("raft.log_started", LOG_U64("stream", log->options.stream),
             LOG_STR("writer", log->ring ? "uring" : "thread"));
    void *(*run)(void *) = log->ring ? raft__keep_thread : raft__write_thread;
    sigfillset(&all); /* signals belong to the loops */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&log->thread, NULL, run, log);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    ASSERT(rc == 0);
}

/* Without a thread: writes all that can be written. */
static void drain(struct raft_log *log)
{
    while (raft__write_step(log) == RAFT__WORK_DONE)
        continue;
}

/* A thread that writes has written what was submitted when it stops. */
static void stop_thread(struct raft_log *log)
{
    pthread_mutex_lock(&log->mu);
    log->stopping = true;
    pthread_cond_signal(&log->wake);
    pthread_mutex_unlock(&log->mu);
    pthread_join(log->thread, NULL);
}

void raft_log_close(struct raft_log *log)
{
    if (!log)
        return;
    if (log->started) {
        (void)raft_log_submit(log);
        if (log->ring)
            raft__ring_drain(log);
        else if (!log->threaded)
            drain(log);
        if (log->threaded)
            stop_thread(log);
        raft__ring_free(log);
    }
    /* The mark certifies the last write, so that damage to it will not pass for a torn tail. */
    if (log->failed == ST_OK && !log->taken_first && !log->queue_first) {
        status st = raft__write_mark(log);
        if (st != ST_OK)
            LOG_ERROR("raft.log_close_failed", LOG_STR("status", status_name(st)));
    }
    raft__log_abandon(log);
}

/* ---- appending ---- */

static void refresh(struct raft_log *log)
{
    pthread_mutex_lock(&log->mu);
    log->full_seen = log->full;
    log->failed_seen = log->failed;
    pthread_mutex_unlock(&log->mu);
}

status raft_log_admit(struct raft_log *log, size_t size)
{
    uint64_t limit = 4 * log->options.batch_bytes;
    if (limit < RAFT__PENDING_BYTES_MIN)
        limit = RAFT__PENDING_BYTES_MIN;

    refresh(log);
    pthread_mutex_lock(&log->mu);
    uint64_t pending = log->pending_bytes;
    pthread_mutex_unlock(&log->mu);
    if (log->failed_seen != ST_OK)
        return ST_IO;
    if (log->full_seen)
        return ST_DISK_FULL;
    if (pending + log->open->payload_bytes + size > limit)
        return ST_NO_MEMORY;
    return ST_OK;
}

static void enqueue(struct raft_log *log, struct raft__batch *b)
{
    const struct raft_log_options *o = &log->options;

    b->submitted_us = env_mono_us(log->env);
    pthread_mutex_lock(&log->mu);
    if (log->failed != ST_OK) {
        pthread_mutex_unlock(&log->mu);
        raft__batch_free(b); /* nothing is stored any more; its ticket will not be reported */
        return;
    }
    if (log->queue_last)
        log->queue_last->next = b;
    else
        log->queue_first = b;
    log->queue_last = b;
    log->queue_bytes += b->payload_bytes;
    log->queue_entries += b->entries;
    log->pending_bytes += b->payload_bytes;
    bool full = log->queue_bytes >= o->batch_bytes || log->queue_entries >= o->batch_entries;
    bool wake = log->sleep == RAFT__IDLE || (log->sleep == RAFT__GROUPING && full);
    if (wake && !log->ring) {
        log->stats.wakeups++;
        log->sleep = RAFT__AWAKE; /* one wake-up is enough */
        pthread_cond_signal(&log->wake);
    }
    pthread_mutex_unlock(&log->mu);
}

static void close_open_batch(struct raft_log *log, uint64_t ticket)
{
    struct raft__batch *b = log->open;
    b->ticket = ticket;
    log->open = raft__batch_new(RAFT__BATCH_DATA);
    enqueue(log, b);
}

/* Before records are added: a batch that is big enough goes first. */
static void close_if_grown(struct raft_log *log)
{
    if (log->open->payload_bytes >= log->options.batch_bytes ||
        log->open->entries >= log->options.batch_entries)
        close_open_batch(log, 0);
}

static status append_allowed(struct raft_log *log)
{
    if (fault_point("log.append"))
        return ST_DISK_FULL;
    if (log->failed_seen != ST_OK)
        return ST_IO;
    return log->full_seen ? ST_DISK_FULL : ST_OK;
}

status raft_log_append(struct raft_log *log, uint64_t group, const struct raft_entry *entries,
                       size_t count)
{
    ST_TRY(append_allowed(log));
    while (count > 0) {
        close_if_grown(log);
        size_t some = 0;
        uint64_t room = log->options.batch_bytes > log->open->payload_bytes
                            ? log->options.batch_bytes - log->open->payload_bytes
                            : 0;
        uint64_t size = 0;
        do {
            size += RAFT__RECORD_BYTES + (entries[some].data ? entries[some].data->size : 0);
            some++;
        } while (some < count && size < room &&
                 log->open->entries + some < log->options.batch_entries);
        raft__batch_entries(log->open, group, entries, some);
        entries += some;
        count -= some;
    }
    return ST_OK;
}

status raft_log_hard_state(struct raft_log *log, uint64_t group, struct raft_hard_state hs)
{
    ST_TRY(append_allowed(log));
    close_if_grown(log);
    raft__batch_hard_state(log->open, group, hs);
    return ST_OK;
}

uint64_t raft_log_submit(struct raft_log *log)
{
    refresh(log);
    if (log->open->records == 0)
        return 0;
    uint64_t ticket = log->next_ticket++;
    close_open_batch(log, ticket);
    if (log->ring)
        raft__ring_kick(log);
    return ticket;
}

void raft_log_cut(struct raft_log *log, uint64_t group, uint64_t index)
{
    /* Also on a full disk: cuts are what gives space back. */
    close_if_grown(log);
    raft__batch_cut(log->open, group, index);
}

/* ---- looking ---- */

void raft_log_oldest(const struct raft_log *log, uint64_t *group, uint64_t *held_bytes)
{
    struct raft_log *l = (struct raft_log *)(uintptr_t)log; /* for its mutex and `settled` */
    uint32_t group_at;

    *group = 0;
    *held_bytes = 0;
    pthread_mutex_lock(&l->mu);
    if (raft__segment_needed(&l->groups, l->oldest, &group_at))
        *group = l->groups.items[group_at].id;
    for (const struct raft__segment *s = l->oldest; s; s = s->newer)
        *held_bytes += s->newer ? s->size : s->end;
    pthread_mutex_unlock(&l->mu);
}

static bool is_among(uint64_t id, const uint64_t *groups, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (groups[i] == id)
            return true;
    }
    return false;
}

/* Adds to GROUPS, of which COUNT are there, who needs an entry of S. Returns how many there are. */
static size_t pinning_add(const struct raft__groups *table, const struct raft__segment *s,
                          uint64_t *groups, size_t count, size_t max)
{
    for (size_t i = s->settled; i < s->need_count && count < max; i++) {
        const struct raft__group *g = &table->items[s->needs[i].group_at];
        if (s->needs[i].last_index > g->cut && !is_among(g->id, groups, count))
            groups[count++] = g->id;
    }
    return count;
}

size_t raft_log_pinning(const struct raft_log *log, uint64_t limit, uint64_t *groups, size_t max)
{
    struct raft_log *l = (struct raft_log *)(uintptr_t)log; /* for its mutex */
    uint64_t held = 0;
    size_t count = 0;

    pthread_mutex_lock(&l->mu);
    for (const struct raft__segment *s = l->oldest; s; s = s->newer)
        held += s->newer ? s->size : s->end;
    for (const struct raft__segment *s = l->oldest; s && held > limit; s = s->newer) {
        count = pinning_add(&l->groups, s, groups, count, max);
        held -= s->newer ? s->size : s->end;
    }
    pthread_mutex_unlock(&l->mu);
    return count;
}

void raft_log_stats(const struct raft_log *log, struct raft_log_stats *out)
{
    struct raft_log *l = (struct raft_log *)(uintptr_t)log; /* for its mutex */
    pthread_mutex_lock(&l->mu);
    *out = l->stats;
    pthread_mutex_unlock(&l->mu);
}
