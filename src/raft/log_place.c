/*
 * raft/log_place.c — from submitted batches to the bytes of one write, and what follows when they
 * are durable. Both writers (log_write.c, log_ring.c) are made of these steps:
 *
 *   take     everything that was submitted, behind what was taken before
 *   room     does the first of it fit the newest segment, or what does it wait for
 *   build    a *round*: the batches of one write, sealed for their places, in one aligned buffer
 *   note     the round is durable: the group table, the counters, the durable position
 *
 * P1  A round lies in one segment. The older segment is durable as a whole before the first write
 *     into the newer one: raft__rotate asks for it, and every header's durable position is true.
 * P2  The first batch of a segment is a checkpoint of the group table as of that place.
 * P3  Rounds are noted in the order of their places, whatever the order of their completion.
 * P4  The sequence numbers of batches on disk ascend by one, across segments and restarts.
 * P5  After a failure nothing is noted any more: raft__round_note and raft__latch decide under the
 *     same lock.
 *
 * Threads: the writer's; raft__latch and raft__oldest_retirable also the keeper's. log->mu is held
 * for short computations only, never across a system call.
 */
#include "raft/log_internal.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"

#include <stdlib.h>

void raft__batches_free(struct raft__batch **first, struct raft__batch **last)
{
    while (*first) {
        struct raft__batch *b = *first;
        *first = b->next;
        raft__batch_free(b);
    }
    *last = NULL;
}

status raft__failed(struct raft_log *log)
{
    pthread_mutex_lock(&log->mu);
    status st = log->failed;
    pthread_mutex_unlock(&log->mu);
    return st;
}

void raft__latch(struct raft_log *log, status st)
{
    ASSERT(st != ST_OK);
    pthread_mutex_lock(&log->mu);
    bool first = log->failed == ST_OK;
    if (first) {
        log->failed = st;
        log->stats.failed = st;
    }
    raft__batches_free(&log->queue_first, &log->queue_last);
    log->queue_bytes = log->queue_entries = log->pending_bytes = 0;
    pthread_cond_broadcast(&log->kept);
    pthread_mutex_unlock(&log->mu);
    if (!first)
        return;
    LOG_ERROR("raft.log_failed", LOG_U64("stream", log->options.stream),
              LOG_STR("status", status_name(st)));
    if (log->report)
        raft__report_send(log->report, 0, st);
}

void raft__take_submitted(struct raft_log *log)
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

/* ---- room ---- */

static uint64_t checkpoint_size(const struct raft_log *log)
{
    /* At most a hard state and a cut for each group. */
    return raft__batch_disk_bytes((uint64_t)log->groups.count * 2 * RAFT__RECORD_BYTES);
}

struct raft__room raft__room_wanted(const struct raft_log *log)
{
    const struct raft__segment *s = log->newest;
    uint64_t size = raft__batch_disk_bytes(log->taken_first->payload_bytes);
    uint64_t with_checkpoint = size + checkpoint_size(log);

    if (log->checkpoint_due) {
        if (with_checkpoint <= s->size - log->placed)
            return (struct raft__room){RAFT__ROOM_FITS, 0};
        /* The very first batch of a log, and larger than a segment. */
        return (struct raft__room){RAFT__ROOM_GROW, log->placed + with_checkpoint};
    }
    if (size <= s->size - log->placed)
        return (struct raft__room){RAFT__ROOM_FITS, 0};
    return (struct raft__room){RAFT__ROOM_NEXT, with_checkpoint};
}

void raft__rotate(struct raft_log *log, struct raft__segment *next)
{
    struct raft__segment *old = log->newest;

    ASSERT_INV("P1", log->durable.segment == old->number && log->durable.offset == log->placed);
    pthread_mutex_lock(&log->mu);
    old->newer = next;
    log->newest = next;
    log->stats.segments++;
    pthread_mutex_unlock(&log->mu);
    log->placed = RAFT__BLOCK;
    log->checkpoint_due = true;
}

/* A new segment begins with a checkpoint (P2), which goes out with the first batch. */
static void checkpoint_add(struct raft_log *log)
{
    struct raft__batch *b = raft__groups_checkpoint(&log->groups);
    b->next = log->taken_first;
    log->taken_first = b;
    if (!log->taken_last)
        log->taken_last = b;
    log->checkpoint_due = false;
}

/* ---- a round ---- */

static void round_free(struct raft__round *r)
{
    memory_count(MEMORY_LOG, -(ptrdiff_t)r->capacity);
    free(r->data);
    r->data = NULL;
    r->capacity = 0;
}

static void round_reserve(struct raft__round *r, size_t size)
{
    if (size <= r->capacity)
        return;
    size_t capacity = r->capacity ? r->capacity : 64u * 1024u;
    while (capacity < size)
        capacity *= 2;
    round_free(r);
    r->data = aligned_alloc(ENV_ALIGN, capacity);
    ASSERT(r->data != NULL);
    r->capacity = capacity;
    memory_count(MEMORY_LOG, (ptrdiff_t)capacity);
}

/* Cuts the batches that fit off of the taken ones. */
static void round_take(struct raft_log *log, struct raft__round *r)
{
    uint64_t room = log->newest->size - log->placed;

    r->first = log->taken_first;
    r->start = log->placed;
    for (struct raft__batch *b = log->taken_first; b; b = b->next) {
        uint64_t size = raft__batch_disk_bytes(b->payload_bytes);
        if (size > room - r->bytes)
            break;
        r->bytes += size;
        r->last = b;
        r->entries += b->entries;
        r->batches++;
        if (b->ticket)
            r->ticket = b->ticket;
    }
    ASSERT(r->last != NULL); /* raft__room_wanted said that one fits */
    log->taken_first = r->last->next;
    if (!log->taken_first)
        log->taken_last = NULL;
    r->last->next = NULL;
}

void raft__round_build(struct raft_log *log, struct raft__round *r)
{
    const struct raft__segment *s = log->newest;
    struct raft__round kept = {.data = r->data, .capacity = r->capacity};

    ASSERT(r->first == NULL);
    *r = kept;
    r->log = log;
    r->begin_us = env_mono_us(log->env);
    if (log->checkpoint_due)
        checkpoint_add(log);
    round_take(log, r);
    round_reserve(r, (size_t)r->bytes);
    uint64_t at = 0;
    for (struct raft__batch *b = r->first; b; b = b->next) {
        struct raft__position place = {s->number, r->start + at};
        raft__batch_seal(b, s->seed, place, log->sequence++, log->durable);
        raft__batch_copy(b, r->data + at);
        at += raft__batch_disk_bytes(b->payload_bytes);
    }
    ASSERT(at == r->bytes);
    log->placed += r->bytes;
}

static void note_batch(struct raft_log *log, const struct raft__batch *b, uint64_t now)
{
    for (size_t i = 0; i < b->note_count; i++)
        raft__groups_note(&log->groups, log->oldest, log->newest, &b->notes[i]);
    if (b->kind != RAFT__BATCH_DATA)
        return;
    log->pending_bytes -= b->payload_bytes;
    histogram_add(&log->stats.batch, now - b->submitted_us);
}

bool raft__round_note(struct raft_log *log, const struct raft__round *r)
{
    uint64_t now = env_mono_us(log->env);
    struct raft__segment *s = log->newest;

    pthread_mutex_lock(&log->mu);
    bool counts = log->failed == ST_OK;
    if (counts) {
        ASSERT_INV("P3", s->end == r->start);
        s->end += r->bytes;
        for (const struct raft__batch *b = r->first; b; b = b->next)
            note_batch(log, b, now);
        log->stats.batches += r->batches;
        log->stats.entries += r->entries;
        log->stats.bytes += r->bytes;
        log->stats.writes++;
        log->stats.syncs++;
        histogram_add(&log->stats.write, r->write_us);
        histogram_add(&log->stats.sync, r->sync_us);
        histogram_add(&log->stats.batch_entries, r->entries);
    }
    pthread_mutex_unlock(&log->mu);
    if (counts)
        log->durable = (struct raft__position){s->number, s->end};
    return counts;
}

void raft__round_clear(struct raft__round *r)
{
    raft__batches_free(&r->first, &r->last);
    if (r->capacity > RAFT__ROUND_KEEP)
        round_free(r);
}

void raft__round_fini(struct raft__round *r)
{
    raft__batches_free(&r->first, &r->last);
    round_free(r);
}

bool raft__oldest_retirable(struct raft_log *log)
{
    uint32_t group_at;
    pthread_mutex_lock(&log->mu); /* it moves `settled`, as raft_log_oldest does on the loop */
    bool retirable = !log->options.keep_all && log->oldest != log->newest &&
                     !raft__segment_needed(&log->groups, log->oldest, &group_at);
    pthread_mutex_unlock(&log->mu);
    return retirable;
}
