/*
 * raft/log_keep.c — the keeper: makes, closes and retires segments for a loop that writes.
 *
 * Everything of a log that can take long and is rare: a next segment is zero-filled ahead and
 * *offered*; the loop takes the offer when the newest one is full, and *wants* one if none is
 * there or if it is too small; the file of a segment rotated away is closed; a segment that nobody
 * needs is retired. While the loop writes, steps of filling that nobody waits for are spread out,
 * so that their flushes leave the disk to the batches.
 *
 *   loop:    wanted, offer_taken, keep_wanted  --- mu --->  keeper: look, do, offered, wanted met
 *   keeper:  mail -> raft__ring_kick on the loop
 *
 * K1  log->next, next_number, spares, reserve and making belong to the keeper alone; the loop sees
 *     a segment when it is offered, and owns it when it has taken it.
 * K2  The head of the list of segments is moved by the keeper alone, its end by the loop alone.
 * K3  `wanted` is set by the loop and cleared by the keeper, after which it kicks the loop.
 *
 * Threads: the log's thread where the loop writes, or whoever steps the log.
 */
#include "raft/log_internal.h"

#include "base/assert.h"
#include "base/fault.h"

/* ---- the loop's side ---- */

/* Under mu. */
static void wake(struct raft_log *log)
{
    if (log->sleep != RAFT__IDLE)
        return;
    log->stats.wakeups++;
    log->sleep = RAFT__AWAKE;
    pthread_cond_signal(&log->wake);
}

void raft__keep_want(struct raft_log *log, struct raft__room wanted)
{
    ASSERT(wanted.kind != RAFT__ROOM_FITS);
    pthread_mutex_lock(&log->mu);
    ASSERT_INV("K3", log->wanted.kind == RAFT__ROOM_FITS);
    log->wanted = wanted;
    log->keep_blocked = false;
    wake(log);
    pthread_mutex_unlock(&log->mu);
}

void raft__keep_wake(struct raft_log *log)
{
    pthread_mutex_lock(&log->mu);
    log->keep_wanted = true;
    wake(log);
    pthread_mutex_unlock(&log->mu);
}

/* ---- the keeper's side ---- */

/* What happened since the last step; returns what is wanted. */
static struct raft__room look(struct raft_log *log)
{
    pthread_mutex_lock(&log->mu);
    if (log->offer_taken) {
        log->offer_taken = false;
        log->next = NULL;
        log->tidy = false;
    }
    log->keep_wanted = false;
    struct raft__room wanted = log->wanted;
    pthread_mutex_unlock(&log->mu);
    return wanted;
}

/* The file of a segment that was rotated away and is still open, or NULL. */
static struct env_file *rotated_file(struct raft_log *log)
{
    struct env_file *file = NULL;

    pthread_mutex_lock(&log->mu);
    for (struct raft__segment *s = log->oldest; s != log->newest && !file; s = s->newer) {
        file = s->file;
        s->file = NULL;
    }
    pthread_mutex_unlock(&log->mu);
    return file;
}

static struct raft__segment *newest(struct raft_log *log)
{
    pthread_mutex_lock(&log->mu);
    struct raft__segment *s = log->newest;
    pthread_mutex_unlock(&log->mu);
    return s;
}

static void offer(struct raft_log *log)
{
    pthread_mutex_lock(&log->mu);
    if (log->next && !log->offer_taken)
        log->offered = log->next;
    pthread_mutex_unlock(&log->mu);
}

/* Makes what the loop waits for. ST_DISK_FULL: it has to wait longer. */
static status meet(struct raft_log *log, struct raft__room wanted)
{
    status st = wanted.kind == RAFT__ROOM_GROW ? raft__segment_grow(log, newest(log), wanted.bytes)
                                               : raft__segment_force_next(log, wanted.bytes);
    if (st == ST_OK)
        offer(log);
    pthread_mutex_lock(&log->mu);
    log->keep_blocked = st == ST_DISK_FULL;
    if (st == ST_OK)
        log->wanted = (struct raft__room){0};
    pthread_cond_broadcast(&log->kept);
    pthread_mutex_unlock(&log->mu);
    if (st == ST_OK)
        raft__report_send(log->report, 0, ST_OK);
    return st;
}

static status prepare(struct raft_log *log, bool *more)
{
    *more = false;
    if (log->tidy)
        return ST_OK;
    status st = raft__segment_prepare(log, more);
    offer(log);
    return st;
}

static status keep(struct raft_log *log, enum raft__work *work)
{
    struct raft__room wanted = look(log);
    struct env_file *file = rotated_file(log);
    bool more;

    *work = RAFT__WORK_NONE;
    if (file) {
        log->env->ops->close(log->env, file);
        *work = RAFT__WORK_DONE;
    }
    ST_TRY(raft__retire_unneeded(log));
    if (wanted.kind != RAFT__ROOM_FITS) {
        status st = meet(log, wanted);
        if (st == ST_DISK_FULL) {
            raft__full_set(log, true);
            *work = RAFT__WORK_BLOCKED;
            return ST_OK;
        }
        ST_TRY(st);
        *work = RAFT__WORK_DONE;
        return ST_OK;
    }
    ST_TRY(prepare(log, &more));
    if (more)
        *work = RAFT__WORK_DONE;
    return ST_OK;
}

enum raft__work raft__keep_step(struct raft_log *log)
{
    enum raft__work work;

    if (raft__failed(log) != ST_OK)
        return RAFT__WORK_NONE;
    status st = keep(log, &work);
    if (st == ST_OK)
        return work;
    raft__latch(log, st == ST_DISK_FULL ? ST_IO : st);
    return RAFT__WORK_DONE;
}

/* ---- the thread ---- */

/* Under mu: does anybody wait for the next step? By the middle of a segment the next one shall be
 * there. */
static bool is_urgent(const struct raft_log *log, enum raft__work work)
{
    if (log->stopping || log->keep_wanted)
        return true;
    if (log->wanted.kind != RAFT__ROOM_FITS)
        return work != RAFT__WORK_BLOCKED;
    return work == RAFT__WORK_DONE && !log->offered && log->newest->end > log->newest->size / 2;
}

/* Under mu. */
static void rest(struct raft_log *log, enum raft__work work)
{
    uint64_t writes = log->stats.writes - log->keep_writes;
    log->keep_writes = log->stats.writes;
    log->sleep = RAFT__IDLE;
    if (work == RAFT__WORK_DONE) {
        if (writes > 0) /* the disk is in use */
            raft__wait_us(log, &log->wake, RAFT__FILL_PAUSE_US);
    } else if (log->full) { /* worth another look later */
        raft__wait_us(log, &log->wake, RAFT__FULL_RETRY_US);
        log->tidy = false;
    } else {
        while (!is_urgent(log, RAFT__WORK_NONE))
            pthread_cond_wait(&log->wake, &log->mu);
    }
    log->sleep = RAFT__AWAKE;
}

void *raft__keep_thread(void *arg)
{
    struct raft_log *log = arg;

    for (;;) {
        enum raft__work work = raft__keep_step(log);
        pthread_mutex_lock(&log->mu);
        if (!is_urgent(log, work))
            rest(log, work);
        bool stop = log->stopping;
        pthread_mutex_unlock(&log->mu);
        if (stop)
            return NULL;
    }
}
