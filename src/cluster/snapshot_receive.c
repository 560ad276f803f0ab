/*
 * cluster/snapshot_receive.c — a follower gets the state of a shard.
 *
 *   WAITING ─▶ PREPARING ─▶ STREAMING ──last──▶ SEALED ─▶ INSTALLING ─▶ TELLING ─▶ FREE
 *      └────────────┴────────────┴──── FAILED ────┴───────────┘ ▲          RAFT_INSTALLED
 *                          RAFT_INSTALL_FAILED when its files are gone
 *
 * Order on disk: first everything that was said to the log before (the term among it), then the
 * store, in one step; then Raft, which writes RAFT_ENTRY_SNAPSHOT where the log lacks the entry. A
 * kill in between leaves a store that is ahead of its log; the note beside the state says that this
 * is right, and stream.c writes what is missing.
 *
 * Invariants
 *   Y1  From fetch until it ends nothing is applied to the shard and no flush begins.
 *   Y2  Granted and not yet written is at most the window; a sender that sends more, or not what
 *       comes next, ends its stream.
 *   Y3  A failure before the installation changes nothing but files of the transfer. One during it
 *       fences the shard if the store has the new state: memory is then of a state that is gone.
 *   Y4  The hard state of the term in the note is durable before the store is touched.
 *
 * Threads: the owner reactor; files and store on a pool thread, one job at a time.
 */
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "cluster/snapshot_internal.h"
#include <stdio.h>

#define PATIENCE_US 120000000u /* a flush of the sender may take its retention */
#define SAID_BYTES 1024u       /* of the entry in the log */

static void advance(struct cl_snapshot_receive *r);

static struct kv_snapshot_id id_of(const struct cl_snapshot_receive *r)
{
    return (struct kv_snapshot_id){r->installed.snapshot.index, r->installed.snapshot.term};
}

static void touch(struct cl_snapshot_receive *r)
{
    r->touched_us = cl__snapshot_now(r->all);
}

/* -- on a pool thread -------------------------------------------------------------------------- */

static status prepare(struct cl_snapshot_receive *r)
{
    struct env *env = r->all->node->env;
    char parent[sizeof r->dir];
    snprintf(parent, sizeof parent, "%s/snapshot", r->all->node->dir);
    status st = env->ops->mkdir(env, parent);
    if (st != ST_OK && st != ST_EXISTS)
        return st;
    return kv_load_new(r->shard->state, r->dir, id_of(r), bytes_make(r->note.data, r->note.size),
                       &r->load);
}

static void job_run(struct pool_job *job)
{
    struct cl_snapshot_receive *r = CONTAINER_OF(job, struct cl_snapshot_receive, job);
    switch (r->op) {
    case CL_RECEIVE_NEW: r->result = prepare(r); break;
    case CL_RECEIVE_PART: r->result = kv_load_part(r->load, buf_bytes(r->parts[r->first])); break;
    case CL_RECEIVE_INSTALL: r->result = kv_load_install(r->load); break;
    case CL_RECEIVE_REMOVE:
        kv_load_free(r->load);
        r->load = NULL;
        r->result = ST_OK;
        break;
    }
}

/* -- the steps --------------------------------------------------------------------------------- */

static void drop_part(struct cl_snapshot_receive *r)
{
    buf_unref(r->parts[r->first]);
    r->first = (r->first + 1) % CL_SNAPSHOT_PARTS_MAX;
    r->count--;
}

static void end(struct cl_snapshot_receive *r)
{
    while (r->count > 0)
        drop_part(r);
    r->state = CL_RECEIVE_FREE;
    r->shard->installing = false;
    cl__node_kick(r->all->node);
}

/* Everything that it left is gone. */
static void failed_wholly(struct cl_snapshot_receive *r)
{
    struct cl_shard *s = r->shard;
    struct cl_host *h = s->node->host;
    end(r);
    if (cl_host_takes_part(h, s))
        cl_host_step(h, s, &(struct raft_input){.kind = RAFT_INSTALL_FAILED});
}

/* The store has the new state and memory has not: a start reads it. */
static void half_installed(struct cl_snapshot_receive *r, status why)
{
    MARK("snapshot.half_installed");
    cl_shard_fence(r->shard, why); /* Y3 */
    cl_shard_release(r->shard);
    r->state = CL_RECEIVE_FAILED;
    advance(r);
}

static void install_done(struct cl_snapshot_receive *r)
{
    struct cl_shard *s = r->shard;
    if (r->result != ST_OK && kv_load_installed(r->load)) {
        half_installed(r, r->result);
        return;
    }
    if (r->result != ST_OK) {
        cl_shard_release(s);
        cl__receive_fail(r, r->result);
        return;
    }
    kv_load_take(r->load);
    r->load = NULL;
    s->unsealed_us = 0;
    s->applied = r->installed.snapshot.index;
    hlc_raise(&s->node->hlc, kv_state_applied_ts(s->state));
    (void)fault_point("snapshot.installed");
    r->state = CL_RECEIVE_TELLING;
    advance(r);
}

static void job_done(struct pool_job *job)
{
    struct cl_snapshot_receive *r = CONTAINER_OF(job, struct cl_snapshot_receive, job);
    struct cl_node *n = r->all->node;
    r->running = false;
    cl__job_done(n);
    touch(r);
    if (r->op == CL_RECEIVE_REMOVE) {
        failed_wholly(r);
        return;
    }
    if (r->op == CL_RECEIVE_INSTALL) {
        install_done(r);
        return;
    }
    if (r->state == CL_RECEIVE_FAILED) { /* meanwhile */
        advance(r);
        return;
    }
    if (r->result != ST_OK && r->result != ST_END) {
        cl__receive_fail(r, r->result);
        return;
    }
    if (r->op == CL_RECEIVE_PART) {
        uint64_t size = r->parts[r->first]->size;
        drop_part(r);
        if (r->result == ST_END)
            r->state = CL_RECEIVE_SEALED;
        else if (cl_transport_credit(n->transport, r->from_node, r->stream, size))
            r->granted += size;
        else
            cl__receive_fail(r, ST_UNREACHABLE);
    }
    advance(r);
}

static bool start(struct cl_snapshot_receive *r, enum cl_receive_op op)
{
    ASSERT(!r->running);
    r->op = op;
    r->job.run = job_run;
    r->job.done = job_done;
    r->running = cl__job_start(r->all->node, &r->job) == ST_OK; /* else the timer tries again */
    return r->running;
}

static unsigned active(const struct cl_snapshots *x)
{
    unsigned n = 0;
    for (unsigned i = 0; i < CL_SHARDS; i++)
        n += x->receives[i].state > CL_RECEIVE_WAITING;
    return n;
}

static bool quiet(const struct cl_shard *s)
{
    return !s->flushing && !s->prefetching && s->holds == 0;
}

static void open_stream(struct cl_snapshot_receive *r)
{
    struct cl_transport *t = r->all->node->transport;
    struct cl_stream_open open = {.shard = r->shard->id, .id = id_of(r)};
    struct obuf o;
    obuf_init(&o);
    cl__stream_open_encode(&open, &o);
    r->stream = ++r->all->streams;
    r->offset = 0;
    r->granted = CL_SNAPSHOT_WINDOW_BYTES;
    r->state = CL_RECEIVE_STREAMING;
    bool sent = cl_transport_chunk(t, r->from_node, r->stream, 0, CL_CHUNK_OPEN,
                                   bytes_make(o.data, o.size)) &&
                cl_transport_credit(t, r->from_node, r->stream, r->granted);
    obuf_fini(&o);
    if (!sent)
        cl__receive_fail(r, ST_UNREACHABLE);
}

static void install(struct cl_snapshot_receive *r)
{
    struct cl_node *n = r->all->node;
    if (!quiet(r->shard) || n->stream.stored < r->ticket) /* Y4 */
        return;
    if (!start(r, CL_RECEIVE_INSTALL))
        return;
    r->state = CL_RECEIVE_INSTALLING;
    cl_shard_hold(r->shard);
}

/* The store is at the index; Raft and the log follow. */
static void tell(struct cl_snapshot_receive *r)
{
    struct cl_shard *s = r->shard;
    struct cl_node *n = s->node;
    struct cl_snapshots *x = r->all;
    struct raft_snapshot snapshot = r->installed.snapshot;
    if (!cl_host_takes_part(n->host, s)) { /* the next start does it (stream.c) */
        MARK("snapshot.told_by_the_next_start");
        end(r);
        cl_shard_release(s);
        return;
    }
    if (raft_log_admit(n->stream.log, SAID_BYTES) != ST_OK)
        return;
    x->counters.installed++;
    x->receive_pause[s->position].failures = 0;
    LOG_INFO("snapshot.installed", LOG_U64("shard", s->id), LOG_U64("node", r->from_node),
             LOG_U64("index", snapshot.index), LOG_U64("bytes", r->bytes),
             LOG_U64("after_us", cl__snapshot_now(x) - r->started_us));
    end(r);
    cl_host_step(n->host, s, &(struct raft_input){.kind = RAFT_INSTALLED, .snapshot = &snapshot});
    raft_log_cut(n->stream.log, s->id, snapshot.index);
    cl_shard_release(s);
    cl__flush_check_waits(n);
}

static void advance(struct cl_snapshot_receive *r)
{
    if (r->running)
        return;
    switch (r->state) {
    case CL_RECEIVE_WAITING:
        if (quiet(r->shard) && active(r->all) < CL_SNAPSHOT_RECEIVES_MAX &&
            start(r, CL_RECEIVE_NEW))
            r->state = CL_RECEIVE_PREPARING;
        break;
    case CL_RECEIVE_PREPARING: open_stream(r); break;
    case CL_RECEIVE_STREAMING:
        if (r->count > 0)
            (void)start(r, CL_RECEIVE_PART);
        break;
    case CL_RECEIVE_SEALED: install(r); break;
    case CL_RECEIVE_TELLING: tell(r); break;
    case CL_RECEIVE_FAILED: (void)start(r, CL_RECEIVE_REMOVE); break;
    case CL_RECEIVE_INSTALLING:
    case CL_RECEIVE_FREE: break;
    }
}

/* -- what comes -------------------------------------------------------------------------------- */

void cl_snapshot_fetch(struct cl_shard *s, uint64_t from_node, const struct raft_snapshot *snapshot)
{
    struct cl_node *n = s->node;
    struct cl_snapshots *x = n->snapshots;
    if (x == NULL)
        return;
    struct cl_snapshot_receive *r = &x->receives[s->position];
    ASSERT(r->state == CL_RECEIVE_FREE); /* Raft has one at a time */
    if (!cl__pause_over(x, &x->receive_pause[s->position]) || s->fenced != ST_OK ||
        n->phase >= CL_NODE_STOPPING || n->store_full ||
        snapshot->index <= kv_state_record(s->state)->applied_index) {
        MARK("snapshot.not_fetched");
        cl_host_step(n->host, s, &(struct raft_input){.kind = RAFT_INSTALL_FAILED});
        return;
    }
    s->installing = true; /* Y1 */
    r->shard = s;
    r->from_node = from_node;
    r->installed =
        (struct cl_installed){.hard_term = raft_hard_state(s->raft).term, .snapshot = *snapshot};
    r->ticket = n->stream.submitted + n->stream.dirty;
    r->load = NULL;
    r->bytes = 0;
    obuf_reset(&r->note);
    cl_installed_encode(&r->installed, &r->note);
    r->state = CL_RECEIVE_WAITING;
    r->started_us = cl__snapshot_now(x);
    touch(r);
    x->counters.begun++;
    LOG_INFO("snapshot.begun", LOG_U64("shard", s->id), LOG_U64("node", from_node),
             LOG_U64("index", snapshot->index), LOG_U64("applied", s->applied));
    advance(r);
}

void cl__receive_chunk(struct cl_snapshot_receive *r, uint64_t offset, uint8_t flags, bytes part)
{
    touch(r);
    if (flags & CL_CHUNK_ABORT) {
        cl__receive_fail(r, ST_CANCELLED);
        return;
    }
    /* A part may begin while there is credit, so the last one goes beyond it. Y2 */
    if (offset != r->offset || offset >= r->granted || part.size == 0 ||
        r->count == CL_SNAPSHOT_PARTS_MAX) {
        cl__receive_fail(r, ST_PROTOCOL);
        return;
    }
    r->offset += part.size;
    r->bytes += part.size;
    r->all->counters.bytes_received += part.size;
    r->parts[(r->first + r->count++) % CL_SNAPSHOT_PARTS_MAX] = buf_copy(part);
    advance(r);
}

void cl__receive_fail(struct cl_snapshot_receive *r, status why)
{
    struct cl_snapshots *x = r->all;
    ASSERT(r->state != CL_RECEIVE_FREE && r->state != CL_RECEIVE_TELLING);
    if (r->state == CL_RECEIVE_FAILED)
        return;
    MARK("snapshot.receive_failed");
    LOG_WARN("snapshot.failed", LOG_U64("shard", r->shard->id), LOG_U64("node", r->from_node),
             LOG_U64("index", r->installed.snapshot.index), LOG_STR("why", status_text(why)));
    x->counters.failed++;
    x->counters.damaged += why == ST_CORRUPT;
    cl__pause_failed(x, &x->receive_pause[r->shard->position]);
    if (r->state == CL_RECEIVE_STREAMING)
        (void)cl_transport_chunk(x->node->transport, r->from_node, r->stream, 0, CL_CHUNK_ABORT,
                                 BYTES_EMPTY);
    r->state = CL_RECEIVE_FAILED;
    advance(r);
}

void cl__receive_poll(struct cl_snapshot_receive *r)
{
    const struct cl_node *n = r->all->node;
    if (r->state == CL_RECEIVE_FREE)
        return;
    bool may_fail = r->state != CL_RECEIVE_INSTALLING && r->state != CL_RECEIVE_TELLING;
    if (may_fail && (n->phase >= CL_NODE_STOPPING || n->failed != ST_OK))
        cl__receive_fail(r, ST_SHUTDOWN);
    else if (may_fail && r->shard->fenced != ST_OK)
        cl__receive_fail(r, r->shard->fenced);
    else if (r->state == CL_RECEIVE_STREAMING &&
             cl__snapshot_now(r->all) - r->touched_us > PATIENCE_US)
        cl__receive_fail(r, ST_UNREACHABLE);
    else
        advance(r);
}
