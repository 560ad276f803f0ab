/*
 * cluster/snapshot_send.c — a leader gives the state of a shard.
 *
 *   FLUSHING ──the store holds the index──▶ OFFERED ──open──▶ STREAMING ──last part──▶ SENT
 *       └──────────── the log behind it is kept from here on ───────────────┘
 *
 * The index is one that the store holds, or will hold: what it holds now if the log still goes on
 * from there, else a generation is sealed and its flush awaited. At the moment when the store is at
 * the index, before the next flush, a dump is made; later flushes do not change it.
 *
 * Invariants
 *   X1  A dump is made when no flush of the shard is under way and the store is at the index.
 *   X2  One part of a stream is in memory, and none is read while no credit is left.
 *   X3  A transfer ends when its replica needs it no more, when this node ceases to lead in its
 *       term, or when nothing has moved for PATIENCE_US: it keeps files on the disk and
 *       entries in memory.
 *
 * Threads: the owner reactor; parts are read on a pool thread, one at a time.
 */
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "cluster/snapshot_internal.h"

#define PATIENCE_US 60000000u

static void pump(struct cl_snapshot_send *t);

static bool leads(const struct cl_snapshot_send *t)
{
    const struct cl_shard *s = t->shard;
    return s->leading && s->leading_term == t->term && cl_host_takes_part(s->node->host, s) &&
           s->node->phase < CL_NODE_STOPPING;
}

static void release(struct cl_snapshot_send *t)
{
    if (t->state == CL_SEND_FLUSHING)
        t->shard->flush_by_clock = false; /* one that waits too sets it again */
    if (t->reading) {
        t->state = CL_SEND_CLOSING;
        return;
    }
    kv_dump_free(t->dump);
    t->dump = NULL;
    obuf_reset(&t->part);
    obuf_shrink(&t->part, 0);
    t->state = CL_SEND_FREE;
    t->ready = t->last = t->rewind = t->stale = false;
    t->stream = 0;
}

static void fail(struct cl_snapshot_send *t, status why)
{
    struct cl_shard *s = t->shard;
    struct cl_snapshots *x = t->all;
    MARK("snapshot.send_failed");
    LOG_WARN("snapshot.send_failed", LOG_U64("shard", s->id),
             LOG_U64("node", cl_replica_node(t->replica)), LOG_U64("index", t->id.index),
             LOG_STR("why", status_text(why)));
    x->counters.send_failed++;
    cl__pause_failed(x, &x->send_pause[s->position]);
    if (t->stream != 0)
        (void)cl_transport_chunk(x->node->transport, cl_replica_node(t->replica), t->stream, 0,
                                 CL_CHUNK_ABORT, BYTES_EMPTY);
    bool tell = leads(t);
    uint64_t replica = t->replica;
    release(t);
    if (tell)
        cl_host_step(x->node->host, s,
                     &(struct raft_input){.kind = RAFT_SNAPSHOT_FAILED, .peer = replica});
}

/* -- offering ---------------------------------------------------------------------------------- */

/* Does the log in memory go on from INDEX? */
static bool log_reaches(const struct cl_shard *s, uint64_t index)
{
    return index > 0 && index <= raft_last_index(s->raft) &&
           (index == raft_last_index(s->raft) || raft_entry_get(s->raft, index + 1) != NULL);
}

static struct kv_snapshot_id applied_id(const struct cl_shard *s)
{
    const struct kv_shard_record *r = kv_state_record(s->state);
    return (struct kv_snapshot_id){r->applied_index, r->applied_term};
}

/* Which state can be given. ST_LOCKED: none yet, but soon. */
static status choose(struct cl_shard *s, struct kv_snapshot_id *id, bool *now)
{
    *id = kv_state_persisted(s->state);
    *now = !s->flushing && log_reaches(s, id->index);
    if (*now)
        return ST_OK;
    *id = applied_id(s);
    if (s->holds > 0 || s->node->store_full)
        return ST_LOCKED;
    if (!log_reaches(s, id->index)) { /* no-ops behind it were dropped already */
        MARK("snapshot.log_is_ahead");
        cl_shard_tick(s);
        return ST_LOCKED;
    }
    kv_state_touch(s->state);
    if (kv_state_seal(s->state, true))
        s->unsealed_us = 0;
    return ST_OK;
}

static struct cl_snapshot_send *slot(struct cl_snapshots *x, const struct cl_shard *s,
                                     uint64_t replica)
{
    struct cl_snapshot_send *unused = NULL;
    for (unsigned i = 0; i < CL_SNAPSHOT_SENDS_MAX; i++) {
        struct cl_snapshot_send *t = &x->sends[i];
        if (t->state != CL_SEND_FREE && t->shard == s && t->replica == replica)
            release(t); /* an earlier one: Raft has begun anew */
        if (t->state == CL_SEND_FREE && unused == NULL)
            unused = t;
    }
    return unused;
}

static void offer(struct cl_snapshot_send *t)
{
    struct cl_shard *s = t->shard;
    struct raft_snapshot snapshot = {.index = t->id.index, .term = t->id.term};
    raft_members_at(s->raft, t->id.index, &snapshot.members);
    LOG_INFO("snapshot.offered", LOG_U64("shard", s->id),
             LOG_U64("node", cl_replica_node(t->replica)), LOG_U64("index", t->id.index),
             LOG_STR("when", t->dump != NULL ? "now" : "flushed"));
    t->all->counters.offered++;
    cl_host_step(s->node->host, s,
                 &(struct raft_input){
                     .kind = RAFT_SNAPSHOT_READY, .peer = t->replica, .snapshot = &snapshot});
}

void cl_snapshot_begin(struct cl_shard *s, uint64_t replica)
{
    struct cl_node *n = s->node;
    struct cl_snapshots *x = n->snapshots;
    struct kv_snapshot_id id;
    bool now;
    if (x == NULL)
        return;
    struct cl_snapshot_send *t = slot(x, s, replica);
    if (t == NULL || !cl__pause_over(x, &x->send_pause[s->position]) ||
        fault_point("snapshot.begin") || choose(s, &id, &now) != ST_OK) {
        cl_host_step(n->host, s,
                     &(struct raft_input){.kind = RAFT_SNAPSHOT_FAILED, .peer = replica});
        return;
    }
    t->shard = s;
    t->replica = replica;
    t->term = s->leading_term;
    t->id = id;
    t->offset = t->credit = t->bytes = t->stream = 0;
    t->started_us = t->touched_us = cl__snapshot_now(x);
    t->state = now ? CL_SEND_OFFERED : CL_SEND_FLUSHING;
    s->flush_by_clock |= !now;
    if (now)
        t->dump = kv_dump_new(s->state, id); /* X1 */
    offer(t);
}

void cl__send_flushed(struct cl_snapshot_send *t)
{
    struct kv_snapshot_id id = kv_state_persisted(t->shard->state);
    if (id.index < t->id.index)
        return;
    if (id.index != t->id.index) {
        MARK("snapshot.flushed_past_it");
        fail(t, ST_CONFLICT);
        return;
    }
    t->dump = kv_dump_new(t->shard->state, t->id); /* X1 */
    t->shard->flush_by_clock = false;
    t->touched_us = cl__snapshot_now(t->all);
    t->state = t->stream != 0 ? CL_SEND_STREAMING : CL_SEND_OFFERED;
    pump(t);
}

/* -- streaming --------------------------------------------------------------------------------- */

static void read_run(struct pool_job *job)
{
    struct cl_snapshot_send *t = CONTAINER_OF(job, struct cl_snapshot_send, job);
    if (t->from_start)
        kv_dump_rewind(t->dump);
    t->result = kv_dump_part(t->dump, CL_SNAPSHOT_PART_BYTES, &t->part);
}

static void read_done(struct pool_job *job)
{
    struct cl_snapshot_send *t = CONTAINER_OF(job, struct cl_snapshot_send, job);
    t->reading = false;
    cl__job_done(t->all->node);
    if (t->state == CL_SEND_CLOSING) {
        release(t);
    } else if (t->result != ST_OK && t->result != ST_END) {
        fail(t, t->result);
    } else if (t->stale) {
        MARK("snapshot.part_of_an_older_stream");
        t->stale = false;
        pump(t);
    } else {
        t->ready = true;
        t->last = t->result == ST_END;
        pump(t);
    }
}

static void read_part(struct cl_snapshot_send *t)
{
    obuf_reset(&t->part);
    t->job.run = read_run;
    t->job.done = read_done;
    t->from_start = t->rewind;
    t->reading = cl__job_start(t->all->node, &t->job) == ST_OK;
    if (t->reading)
        t->rewind = false;
}

static bool send_part(struct cl_snapshot_send *t)
{
    bytes part = bytes_make(t->part.data, t->part.size);
    if (!cl_transport_chunk(t->all->node->transport, cl_replica_node(t->replica), t->stream,
                            t->offset, t->last ? CL_CHUNK_LAST : 0, part))
        return false; /* the queue is full: the timer tries again */
    t->ready = false;
    t->offset += part.size;
    t->bytes += part.size;
    t->all->counters.bytes_sent += part.size;
    t->touched_us = cl__snapshot_now(t->all);
    if (t->last) {
        t->state = CL_SEND_SENT;
        t->all->counters.sent++;
        t->all->send_pause[t->shard->position].failures = 0;
    }
    return true;
}

static void pump(struct cl_snapshot_send *t)
{
    if (t->state != CL_SEND_STREAMING || t->reading || t->offset >= t->credit) /* X2 */
        return;
    if (t->ready && (!send_part(t) || t->state != CL_SEND_STREAMING))
        return;
    if (t->offset < t->credit)
        read_part(t);
}

void cl__send_open(struct cl_snapshots *x, uint64_t node, uint64_t stream, bytes what)
{
    struct cl_stream_open open;
    bool sound = cl__stream_open_decode(what, &open) == ST_OK && stream != 0;
    for (unsigned i = 0; sound && i < CL_SNAPSHOT_SENDS_MAX; i++) {
        struct cl_snapshot_send *t = &x->sends[i];
        if (t->state == CL_SEND_FREE || t->state == CL_SEND_CLOSING ||
            cl_replica_node(t->replica) != node || t->shard->id != open.shard ||
            t->id.index != open.id.index || t->id.term != open.id.term)
            continue;
        cl__send_detach(t);
        t->stream = stream;
        t->touched_us = cl__snapshot_now(x);
        if (t->state == CL_SEND_OFFERED)
            t->state = CL_SEND_STREAMING;
        return;
    }
    (void)cl_transport_chunk(x->node->transport, node, stream, 0, CL_CHUNK_ABORT, BYTES_EMPTY);
}

struct cl_snapshot_send *cl__send_find(struct cl_snapshots *x, uint64_t node, uint64_t stream)
{
    for (unsigned i = 0; i < CL_SNAPSHOT_SENDS_MAX; i++) {
        struct cl_snapshot_send *t = &x->sends[i];
        if (t->state != CL_SEND_FREE && t->state != CL_SEND_CLOSING &&
            cl_replica_node(t->replica) == node && t->stream == stream)
            return t;
    }
    return NULL;
}

void cl__send_credit(struct cl_snapshot_send *t, uint64_t more)
{
    uint64_t most = t->offset + 2 * CL_SNAPSHOT_WINDOW_BYTES;
    t->credit += more < most ? more : most;
    if (t->credit > most)
        t->credit = most;
    t->touched_us = cl__snapshot_now(t->all);
    pump(t);
}

void cl__send_detach(struct cl_snapshot_send *t)
{
    if (t->state == CL_SEND_CLOSING)
        return;
    if (t->state != CL_SEND_FLUSHING)
        t->state = CL_SEND_OFFERED;
    t->stream = t->offset = t->credit = t->bytes = 0;
    t->ready = t->last = false;
    t->rewind = true;
    t->stale = t->reading;
}

/* X3 */
static bool needed(const struct cl_snapshot_send *t)
{
    struct raft_peer p;
    for (unsigned i = 0; i < RAFT_MEMBERS_MAX; i++) {
        if (raft_peer(t->shard->raft, i, &p) && p.id == t->replica)
            return p.state == RAFT_PEER_SNAPSHOT;
    }
    return false;
}

void cl__send_poll(struct cl_snapshot_send *t)
{
    if (t->state == CL_SEND_FREE || t->state == CL_SEND_CLOSING)
        return;
    if (!leads(t) || !needed(t)) {
        if (t->stream != 0 && t->state != CL_SEND_SENT)
            (void)cl_transport_chunk(t->all->node->transport, cl_replica_node(t->replica),
                                     t->stream, 0, CL_CHUNK_ABORT, BYTES_EMPTY);
        release(t);
    } else if (cl__snapshot_now(t->all) - t->touched_us > PATIENCE_US) {
        fail(t, ST_UNREACHABLE);
    } else {
        t->shard->flush_by_clock |= t->state == CL_SEND_FLUSHING;
        pump(t);
    }
}
