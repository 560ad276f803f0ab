/*
 * cluster/shard_flush.c — from memory to the store, and the log cut behind it.
 *
 * A generation is sealed by size (every turn), by age, by memory pressure, because its shard pins
 * too much log, or because somebody asked. It may be flushed once log time has passed its retention
 * (kv_state_flush_due): no live snapshot can then need what pruning drops. Log time is the stamp of
 * the last command; in an idle shard the leader moves it with a TICK once the wall clock says that
 * a flush is due. After a flush the log may be cut up to what the store has persisted. A stop in
 * good order flushes what is left, without waiting for log time: nobody reads any more, and what
 * is yet to come from other nodes finds its conflicts in what a flush writes down (kv/recent.h).
 * A flush that a snapshot waits for takes the leader's clock for log time: a majority may need
 * that snapshot before it can commit anything, a TICK too. A reader older than the retention by
 * the clock is past its limit as well.
 *
 * A flush takes a tenth of a core while there is memory and nobody waits for it (flush_pace.h).
 * Meanwhile log and memory are held as by any flush; enough of either ends its pauses.
 *
 * Invariants
 *   F1  One flush per shard at a time; generations are flushed in order.
 *   F2  The log is cut only up to kv_state_persisted_index, read after the flush was reported done.
 *   F3  The store has the members that were in force at its index, or later ones.
 *
 * A start applies no further than memory reaches while a flush is under way or due. What is not due
 * waits for log time, which only the next entries move; it was all in memory before, too.
 *
 * A full disk is no failure: the generation stays, writes are refused, the flush is tried again.
 * Other I/O errors are tried a few times; then the store is taken for lost and the process stops:
 * a restart replays the log.
 *
 * Threads: the owner reactor; kv_flush_run on a flush thread.
 */
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "cluster/compact.h"
#include "cluster/shard.h"
#include "cluster/snapshot.h"
#include <stdio.h>

#define RETRY_US 1000000u
#define IO_ERRORS_MAX 3u
#define PIECES_BYTES_MIN (4u << 20) /* smaller generations are written in some ten milliseconds */

size_t cl__memtable_bytes(const struct cl_node *n)
{
    size_t sum = 0;
    for (unsigned i = 0; i < CL_SHARDS; i++)
        sum += kv_state_memory(n->shards[i]->state);
    return sum;
}

static void flush_run(struct pool_job *job)
{
    struct cl_flush_job *j = CONTAINER_OF(job, struct cl_flush_job, job);
    struct cl_node *n = j->shard->node;
    j->result = fault_point("shard.flush") ? ST_IO : kv_store_room(n->store, j->bytes);
    if (j->result == ST_OK)
        j->result = kv_flush_run(j->flush);
}

static void cut_log(struct cl_shard *s)
{
    if (s->node->stream.log == NULL || fault_point("shard.cut"))
        return;
    raft_log_cut(s->node->stream.log, s->id, kv_state_persisted_index(s->state));
    s->cuts++;
}

static void flush_failed(struct cl_shard *s, status st)
{
    struct cl_node *n = s->node;
    MARK("shard.flush_failed");
    n->stop_flush_failed = true;
    s->flush_errors++;
    s->flush_retry_us = env_mono_us(n->env) + RETRY_US;
    LOG_WARN("shard.flush_failed", LOG_U64("shard", s->id), LOG_STR("why", status_text(st)),
             LOG_U64("times", s->flush_errors));
    if (st == ST_DISK_FULL)
        n->store_full = true;
    else if (st == ST_CORRUPT)
        cl_shard_fence(s, st);
    else if (s->flush_errors >= IO_ERRORS_MAX)
        cl__node_fail(n, st);
}

static bool persisted(struct cl_shard *s, uint64_t target)
{
    if (target == 0 || kv_state_persisted_index(s->state) >= target)
        return true;
    /* Nothing was there to seal: the entries up to the target changed nothing. */
    return kv_state_flush_due(s->state) == 0 && !s->flushing;
}

void cl__flush_check_waits(struct cl_node *n)
{
    LIST_FOR_EACH_SAFE(it, after, &n->flush_waits) {
        struct cl_flush_wait *w = CONTAINER_OF(it, struct cl_flush_wait, node);
        bool all = true;
        for (unsigned i = 0; i < CL_SHARDS; i++)
            all &= n->shards[i]->fenced != ST_OK || persisted(n->shards[i], w->target[i]);
        if (!all && n->failed == ST_OK && n->phase < CL_NODE_STOPPING)
            continue;
        list_remove(&w->node);
        w->done(w);
    }
}

static void flush_done(struct pool_job *job)
{
    struct cl_flush_job *j = CONTAINER_OF(job, struct cl_flush_job, job);
    struct cl_shard *s = j->shard;
    struct cl_node *n = s->node;
    s->flushing = false;
    n->flushes--;
    histogram_add(&s->flush_us, env_mono_us(n->env) - j->started_us);
    kv_flush_done(j->flush, j->result);
    j->flush = NULL;
    cl__job_done(n);
    if (j->result != ST_OK) {
        flush_failed(s, j->result);
    } else {
        n->store_full = false;
        s->flush_errors = 0;
        cut_log(s);
        cl_snapshots_flushed(n->snapshots, s);
        cl_compact_poll(n->compact);
    }
    cl__flush_check_waits(n);
    cl__node_kick(n);
}

/* F3: the entry that made them may be cut from the log. They may be newer than what is flushed:
 * all of them are committed, and the entries behind it are in the log. */
static void keep_members(struct cl_shard *s, struct kv_flush *f)
{
    struct raft_members members;
    struct obuf o;
    obuf_init(&o);
    raft_members_at(s->raft, s->applied, &members);
    raft_members_put(&o, &members);
    kv_flush_keep(f, bytes_make(o.data, o.size));
    obuf_fini(&o);
}

static void flush_dir(const struct cl_shard *s, char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "%s/flush-%u", s->node->dir, s->position + 1);
    ASSERT(n > 0 && n < PATH_MAX);
}

static void ignore_name(void *arg, const char *name)
{
    UNUSED(arg);
    UNUSED(name);
}

void cl__flush_clean(struct cl_node *n)
{
    struct env *env = n->env;
    char dir[PATH_MAX];
    for (unsigned i = 0; i < CL_SHARDS && !n->driven; i++) {
        struct kv_store_load *left;
        flush_dir(n->shards[i], dir);
        if (env->ops->list(env, dir, ignore_name, NULL) != ST_OK)
            continue;
        LOG_INFO("shard.flush_cleaned", LOG_STR("dir", dir));
        if (kv_store_load_new(n->store, dir, &left) == ST_OK)
            kv_store_load_free(left);
    }
}

void cl__flush_pace(struct cl_node *n)
{
    if (n->flushes == 0)
        return;
    struct cl_flush_need need = {.memory = n->memory_bytes,
                                 .budget = n->options.memtables_budget,
                                 .running = n->flushes,
                                 .waited_for = n->phase != CL_NODE_SERVING || n->draining ||
                                               n->failed != ST_OK || n->store_full || n->log_full ||
                                               !list_empty(&n->flush_waits)};
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        const struct cl_shard *s = n->shards[i];
        need.waited_for |= s->flushing && (s->flush_by_clock || s->installing || s->holds > 0);
    }
    cl_flush_pace_set(n->flush_pace, cl_flush_share(&need));
}

static void flush_start(struct cl_shard *s, hlc_ts log_time)
{
    struct cl_flush_job *j = &s->flush;
    j->flush = kv_flush_new(s->state, log_time);
    if (j->flush == NULL)
        return;
    keep_members(s, j->flush);
    if (!s->node->driven) { /* a simulated flush takes no time */
        flush_dir(s, j->dir);
        j->work = (struct cl_flush_work){.pace = s->node->flush_pace};
        kv_flush_in_pieces(j->flush, &(struct kv_flush_pieces){.dir = j->dir,
                                                               .bytes_min = PIECES_BYTES_MIN,
                                                               .pause = cl_flush_pause,
                                                               .arg = &j->work});
    }
    j->shard = s;
    j->job.run = flush_run;
    j->job.done = flush_done;
    j->started_us = env_mono_us(s->node->env);
    j->bytes = kv_state_memory(s->state);
    s->flushing = true;
    s->node->flushes++;
    if (cl__flush_job_start(s->node, &j->job) != ST_OK) {
        s->flushing = false;
        s->node->flushes--;
        kv_flush_done(j->flush, ST_NO_MEMORY);
        j->flush = NULL;
        s->flush_retry_us = j->started_us + RETRY_US;
    }
}

/* May the shard's generations be touched? Not while somebody needs the state to stand still. */
static bool quiet(const struct cl_shard *s)
{
    return s->fenced == ST_OK && s->holds == 0 && !s->installing && s->node->failed == ST_OK;
}

static hlc_ts log_time(const struct cl_shard *s)
{
    hlc_ts applied = kv_state_applied_ts(s->state);
    if (!s->flush_by_clock)
        return applied;
    hlc_ts now = hlc_from_us(cl__node_now_us(s->node));
    return now > applied ? now : applied;
}

static bool is_due(const struct cl_shard *s)
{
    hlc_ts due = kv_state_flush_due(s->state);
    return due != 0 && log_time(s) >= due;
}

bool cl__flush_ahead(const struct cl_node *n)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        const struct cl_shard *s = n->shards[i];
        if (s->flushing || (quiet(s) && is_due(s)))
            return true;
    }
    return false;
}

void cl_shard_flush_poll(struct cl_shard *s)
{
    if (!quiet(s))
        return;
    if (kv_state_seal(s->state, false))
        s->unsealed_us = 0;
    if (s->flushing || s->node->phase >= CL_NODE_STOPPING)
        return;
    if (!is_due(s))
        return;
    if (s->flush_retry_us != 0) {
        if (env_mono_us(s->node->env) < s->flush_retry_us)
            return;
        s->flush_retry_us = 0;
    }
    flush_start(s, log_time(s));
}

/* Seals whatever there is; false if that was nothing. */
static bool seal(struct cl_shard *s)
{
    if (!quiet(s) || !kv_state_seal(s->state, true))
        return false;
    s->unsealed_us = 0;
    return true;
}

static void tick_done(struct cl_proposal *p, status st, const struct kv_applied *a)
{
    struct cl_shard *s = CONTAINER_OF(p, struct cl_shard, tick);
    UNUSED(st);
    UNUSED(a);
    s->ticking = false;
}

void cl_shard_tick(struct cl_shard *s)
{
    struct obuf o;
    if (s->ticking || s->node->phase != CL_NODE_SERVING || (s->node->host != NULL && !s->opened))
        return;
    obuf_init(&o);
    kv_command_tick(&o);
    s->ticking = true;
    s->tick.system = true;
    s->tick.command = buf_copy(bytes_make(o.data, o.size));
    s->tick.done = tick_done;
    obuf_fini(&o);
    cl_shard_propose(s, &s->tick);
}

/* A sealed generation waits for log time, and nothing else moves it: no command is under way, and
 * those that wait may be waiting for the memory that this flush frees. */
static void move_log_time(struct cl_shard *s, hlc_ts now)
{
    hlc_ts due = kv_state_flush_due(s->state);
    if (due != 0 && kv_state_applied_ts(s->state) < due && now >= due && s->inflight_count == 0)
        cl_shard_tick(s);
}

static void seal_old(struct cl_shard *s, uint64_t now_us)
{
    if (s->unsealed_us != 0 && now_us - s->unsealed_us > s->node->options.memtable_age_us)
        (void)seal(s);
}

void cl__flush_pressure(struct cl_node *n)
{
    struct cl_shard *largest = NULL;
    size_t most = 0;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_shard *s = n->shards[i];
        size_t size = kv_state_memory(s->state);
        if (size > most && kv_state_flush_due(s->state) == 0) {
            largest = s;
            most = size;
        }
    }
    if (largest != NULL)
        (void)seal(largest);
}

/* Shards that keep old log segments alive are flushed, also those whose entries there changed
 * nothing: so the log that a start reads, and what of it is applied again, is bounded by
 * `retain_bytes` and what is written while a flush waits for its retention and runs. */
static void seal_pinning(struct cl_node *n)
{
    uint64_t groups[CL_SHARDS];
    uint64_t twice = 2 * n->options.retain_bytes;
    n->log_full = raft_log_pinning(n->stream.log, twice, groups, ARRAY_LEN(groups)) > 0;
    size_t count =
        raft_log_pinning(n->stream.log, n->options.retain_bytes, groups, ARRAY_LEN(groups));
    for (size_t i = 0; i < count; i++) {
        if (groups[i] < 1 || groups[i] > CL_SHARDS)
            continue;
        struct cl_shard *s = n->shards[groups[i] - 1];
        if (kv_state_flush_due(s->state) != 0 || s->flushing)
            continue;
        n->counters.forced_flushes++;
        if (!seal(s)) {
            kv_state_touch(s->state); /* what it pins changed nothing, but is in the log */
            (void)seal(s);
        }
    }
}

bool cl__flush_stop(struct cl_node *n)
{
    bool begun = false;
    if (!n->options.flush_at_stop || n->failed != ST_OK || n->stop_given_up ||
        n->stop_flush_failed || env_mono_us(n->env) > n->stop_flush_us)
        return false;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_shard *s = n->shards[i];
        ASSERT(!s->flushing);
        if (!quiet(s))
            continue;
        (void)seal(s);
        if (kv_state_flush_due(s->state) != 0)
            flush_start(s, HLC_MAX); /* no snapshot is left that could need what pruning drops */
        begun |= s->flushing;
    }
    return begun;
}

void cl__flush_maintain(struct cl_node *n)
{
    hlc_ts now = hlc_from_us(cl__node_now_us(n));
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        seal_old(n->shards[i], env_mono_us(n->env));
        move_log_time(n->shards[i], now);
    }
    if (cl__memtable_bytes(n) > n->options.memtables_budget / 2)
        cl__flush_pressure(n);
    if (!n->options.log.keep_all)
        seal_pinning(n);
    cl__flush_check_waits(n);
}

void cl__flush_wait(struct cl_node *n, struct cl_flush_wait *w)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_shard *s = n->shards[i];
        w->target[i] = kv_state_record(s->state)->applied_index;
        (void)seal(s);
    }
    list_push_back(&n->flush_waits, &w->node);
    cl__node_kick(n);
}
