/*
 * cluster/shard_apply.c — committed entries become state, and answers.
 *
 * Entries are applied strictly in order. One that needs a block which is not in the cache stops the
 * shard (not the loop): a pool thread fetches the block, then the same entry is tried again; the
 * queue behind it goes on growing, reads go on. One that needs more than the cache can hold at a
 * time would never come to its end so: its blocks displace each other. It waits for the disk here.
 * Damage fences the shard: nothing is applied past it, what waits is answered, other shards do not
 * notice.
 *
 * Invariants
 *   A1  applied <= commit; an entry is applied once, whole, or not at all.
 *   A2  While `holds` > 0 or a prefetch is under way nothing is applied.
 *   A4  Nothing is applied before the own log has it durably, also where a majority has: so what a
 *       flush persists is never above the own log.
 *   A3  A fenced shard's state is as after the entry before the damage.
 *
 * Threads: the owner reactor; the prefetch on a pool thread.
 */
#include "base/assert.h"
#include "base/checksum.h"
#include "base/fault.h"
#include "base/log.h"
#include "cluster/shard.h"

#define COLD_TRIES_FAIR 16u  /* what is read beside may displace a block before it is used */
#define COLD_TRIES_MAX 1024u /* each is a trip to the pool, and all that was done once more */
#define ENTRIES_PER_TURN 8192u
#define ROWS_PER_TURN 1024u /* of bulk loads: a few milliseconds, then others have their turn */

static void stage(struct cl_node *n, enum cl_stage which, uint64_t from, uint64_t to)
{
    histogram_add(&n->stages[which], to > from ? to - from : 0);
}

/* The stages follow each other without a gap, so that their sum is the total. A majority may have
 * an entry before the own disk does: then waiting for others took no time at all. */
static void count_stages(struct cl_shard *s, const struct cl_proposal *p, uint64_t now_us)
{
    struct cl_node *n = s->node;
    uint64_t committed_us = s->committed_us > p->stored_us ? s->committed_us : p->stored_us;
    stage(n, CL_STAGE_QUEUED, p->queued_us, p->proposed_us);
    stage(n, CL_STAGE_PERSISTED, p->proposed_us, p->stored_us);
    stage(n, CL_STAGE_COMMITTED, p->stored_us, committed_us);
    stage(n, CL_STAGE_APPLIED, committed_us, now_us);
    stage(n, CL_STAGE_TOTAL, p->queued_us, now_us);
}

/* Who waits for entry INDEX; nobody for a no-op and for what recovery replays. */
static struct cl_proposal *take_waiter(struct cl_shard *s, uint64_t index)
{
    if (list_empty(&s->inflight))
        return NULL;
    struct cl_proposal *p = CONTAINER_OF(s->inflight.next, struct cl_proposal, node);
    if (p->index != index) {
        ASSERT_INV("P2", p->index > index);
        return NULL;
    }
    list_remove(&p->node);
    s->inflight_count--;
    s->node->inflight_bytes -= p->size;
    return p;
}

/* The entry at hand did not take effect and will not before the damage is repaired; those behind it
 * are in the log, and only a repair can tell what becomes of them. */
void cl_shard_fence(struct cl_shard *s, status st)
{
    if (s->fenced != ST_OK)
        return;
    uint64_t index = s->applied + 1;
    s->fenced = st;
    cl__node_stir(s->node);
    struct cl_proposal *p = take_waiter(s, index);
    if (p != NULL)
        p->done(p, st, NULL);
    LOG_ERROR("shard.fenced", LOG_U64("shard", s->id), LOG_STR("table", s->name),
              LOG_U64("entry", index), LOG_STR("why", status_text(st)));
    cl_shard_abandon(s, st);
}

static void prefetch_run(struct pool_job *job)
{
    struct cl_prefetch_job *j = CONTAINER_OF(job, struct cl_prefetch_job, job);
    kv_state_prefetch(j->shard->state, j->key);
}

static void prefetch_done(struct pool_job *job)
{
    struct cl_prefetch_job *j = CONTAINER_OF(job, struct cl_prefetch_job, job);
    struct cl_shard *s = j->shard;
    s->prefetching = false;
    cl__job_done(s->node);
    cl_shard_apply(s);
}

/* Called again by the maintenance timer if the pool's queue is full. */
static void prefetch_start(struct cl_shard *s, bytes key)
{
    struct cl_prefetch_job *j = &s->prefetch;
    ASSERT(key.size <= sizeof j->key_data);
    memcpy(j->key_data, key.data, key.size);
    j->key = bytes_make(j->key_data, key.size);
    j->shard = s;
    j->job.run = prefetch_run;
    j->job.done = prefetch_done;
    s->stalls++;
    s->node->counters.stalls++;
    s->cold_tries++;
    s->prefetching = cl__job_start(s->node, &j->job) == ST_OK;
}

/* Do the entry's blocks displace each other? */
static bool goes_round(struct cl_shard *s, bytes key)
{
    uint64_t hash = checksum64(key, 0);
    if (s->cold_tries == 0)
        s->cold_first = hash;
    return s->cold_tries >= COLD_TRIES_MAX ||
           (s->cold_tries >= COLD_TRIES_FAIR && hash == s->cold_first);
}

/* On the loop, which stands still for the reads of one entry. */
static status apply_from_disk(struct cl_shard *s, const struct raft_entry *e, struct kv_applied *a)
{
    struct env *env = s->node->env;
    uint64_t began_us = env_mono_us(env);
    s->node->counters.disk_applies++;
    MARK("shard.apply_from_disk");
    arena_reset(&s->arena);
    status st =
        kv_apply(s->state, e->index, e->term, buf_bytes(e->data), KV_TIER_ANY, &s->arena, a);
    LOG_WARN("shard.applied_from_disk", LOG_U64("shard", s->id), LOG_U64("entry", e->index),
             LOG_U64("tries", s->cold_tries), LOG_U64("for_us", env_mono_us(env) - began_us));
    return st;
}

static void answer(struct cl_shard *s, uint64_t index, const struct kv_applied *a, uint64_t now_us)
{
    struct cl_proposal *p = take_waiter(s, index);
    if (p == NULL)
        return;
    count_stages(s, p, now_us);
    p->done(p, ST_OK, a);
}

/* One entry. ST_COLD and damage leave everything as it was. */
static status apply_entry(struct cl_shard *s, const struct raft_entry *e, uint64_t now_us,
                          uint64_t *rows)
{
    if (e->kind == RAFT_ENTRY_COMMAND) {
        struct kv_applied a;
        status st = fault_point("shard.apply")
                        ? ST_CORRUPT
                        : kv_apply(s->state, e->index, e->term, buf_bytes(e->data), KV_TIER_CACHE,
                                   &s->arena, &a);
        if (st == ST_COLD && !goes_round(s, a.cold_key)) {
            prefetch_start(s, a.cold_key);
            return ST_COLD;
        }
        if (st == ST_COLD)
            st = apply_from_disk(s, e, &a);
        if (st != ST_OK)
            return st;
        s->applied = e->index;
        if (s->unsealed_us == 0 && e->data->data[1] != KV_CMD_TICK)
            s->unsealed_us = now_us;
        if (a.result.affected > 0)
            *rows += (uint64_t)a.result.affected;
        answer(s, e->index, &a, now_us);
    }
    s->applied = e->index;
    return ST_OK;
}

/* A long log is replayed no faster than it can be flushed. */
static bool may_apply(const struct cl_shard *s)
{
    const struct cl_node *n = s->node;
    if (s->fenced != ST_OK || s->holds > 0 || s->prefetching || s->installing)
        return false;
    return n->phase != CL_NODE_RECOVERING || cl__memtable_bytes(n) <= n->options.memtables_budget ||
           !cl__flush_ahead(n);
}

/* A4 */
static uint64_t applicable(const struct cl_shard *s)
{
    uint64_t commit = raft_commit_index(s->raft), stored = raft_stored_index(s->raft);
    return commit < stored ? commit : stored;
}

bool cl_shard_behind(const struct cl_shard *s)
{
    return s->raft != NULL && s->applied < applicable(s) && may_apply(s);
}

void cl_shard_apply(struct cl_shard *s)
{
    uint64_t commit = applicable(s), first = s->applied;
    uint64_t now_us = env_mono_us(s->node->env);
    cl__node_stir(s->node);
    uint64_t rows = 0, rows_max = s->node->phase == CL_NODE_SERVING ? ROWS_PER_TURN : UINT64_MAX;
    while (s->applied < commit && s->applied - first < ENTRIES_PER_TURN && rows < rows_max &&
           may_apply(s)) {
        const struct raft_entry *e = raft_entry_get(s->raft, s->applied + 1);
        ASSERT(e != NULL);
        status st = apply_entry(s, e, now_us, &rows);
        arena_reset(&s->arena);
        if (st == ST_COLD)
            break;
        if (st != ST_OK) {
            cl_shard_fence(s, st);
            break;
        }
        s->cold_tries = 0;
        if (kv_state_seal(s->state, false))
            s->unsealed_us = 0;
    }
    if (s->applied > first)
        raft_applied(s->raft, s->applied);
}

void cl_shard_hold(struct cl_shard *s)
{
    s->holds++;
}

void cl_shard_release(struct cl_shard *s)
{
    ASSERT(s->holds > 0);
    if (--s->holds == 0)
        cl_shard_apply(s);
}
