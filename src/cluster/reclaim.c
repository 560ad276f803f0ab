/*
 * cluster/reclaim.c — takes away detached trees, slice by slice, beside the clients' work.
 *
 *   IDLE --timer--> LOOKING (pool) --trash found--> PROPOSED --applied--> PAUSED --timer--> LOOKING
 *                      '--none--> IDLE
 *
 * What is left to do is in the replicated state (KV_LOCK|trash rows), so nothing is remembered
 * here: after a restart or on another leader the look finds it again. One slice is under way at
 * most, and a pause follows it, so that clients' commands come between.
 *
 * Threads: the owner reactor; the look runs on a pool thread.
 */
#include "cluster/reclaim.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/rcu.h"
#include <stdlib.h>

#define PAUSE_US 2000u
#define LOOK_US 1000000u /* between looks when there was nothing */

struct cl_reclaim {
    struct cl_node *node;
    struct cl_shard *shard;
    struct loop_timer *timer;
    struct pool_job job;
    struct cl_proposal proposal;
    bool busy;        /* a look or a slice is under way */
    uint64_t next_us; /* not before */
    /* of the look; the pool thread's while it runs */
    status found;
    int64_t found_id;
    uint32_t found_ns;
    /* what is being taken away */
    bool working;
    int64_t id;
    uint32_t ns;
    uint64_t commands, removed;
};

static void pause_for(struct cl_reclaim *r, uint64_t us)
{
    r->busy = false;
    r->next_us = loop_now_us(r->node->reactors[0].loop) + us;
    loop_timer_start(r->timer, us);
}

static void slice_done(struct cl_proposal *p, status st, const struct kv_applied *a)
{
    struct cl_reclaim *r = CONTAINER_OF(p, struct cl_reclaim, proposal);
    if (st != ST_OK || a->outcome != ST_OK) {
        LOG_WARN("reclaim.refused", LOG_I64("directory", r->id),
                 LOG_STR("why", st != ST_OK ? status_text(st) : a->err.message));
        pause_for(r, LOOK_US);
        return;
    }
    r->removed += (uint64_t)a->result.affected;
    pause_for(r, PAUSE_US);
}

static void propose(struct cl_reclaim *r)
{
    struct kv_op op = {.kind = KV_OP_RECLAIM,
                       .table = KV_META,
                       .ns = r->ns,
                       .now = cl__timestamptz(env_unix_us(r->node->env)),
                       .pid = r->id};
    const struct kv_op *ops[] = {&op};
    struct obuf o;
    obuf_init(&o);
    kv_command_ops(&o, ops, 1, cl__node_origin(r->node));
    r->proposal.command = buf_copy(bytes_make(o.data, o.size));
    r->proposal.system = true;
    r->proposal.done = slice_done;
    obuf_fini(&o);
    r->commands++;
    cl_shard_propose(r->shard, &r->proposal);
}

/* Some detached directory of any database: ST_OK, ST_NOT_FOUND; ST_COLD without POOL. */
static status look(const struct cl_reclaim *r, bool pool, uint32_t *ns, int64_t *id)
{
    struct arena a;
    status st = ST_NOT_FOUND;
    arena_init(&a, 1024);
    for (unsigned i = 0; st == ST_NOT_FOUND && cl_database_at(r->node, i, ns) != NULL; i++) {
        struct kv_view v = {.state = r->shard->state,
                            .at = HLC_MAX,
                            .tier = pool ? KV_TIER_ANY : KV_TIER_CACHE,
                            .pool = pool,
                            .arena = &a};
        st = kv_trash_find(&v, *ns, id);
    }
    arena_fini(&a);
    return st;
}

static void look_run(struct pool_job *job)
{
    struct cl_reclaim *r = CONTAINER_OF(job, struct cl_reclaim, job);
    r->found = look(r, true, &r->found_ns, &r->found_id);
}

static void look_done(struct pool_job *job)
{
    struct cl_reclaim *r = CONTAINER_OF(job, struct cl_reclaim, job);
    struct cl_node *n = r->node;
    cl__job_done(n);
    r->working = r->found == ST_OK;
    r->id = r->found_id;
    r->ns = r->found_ns;
    if (r->found != ST_OK || n->phase != CL_NODE_SERVING || n->failed != ST_OK) {
        r->busy = false;
        r->next_us = loop_now_us(n->reactors[0].loop) + LOOK_US;
        return;
    }
    propose(r);
}

static void on_timer(void *arg)
{
    cl_reclaim_poll(arg);
}

struct cl_reclaim *cl_reclaim_new(struct cl_node *n)
{
    struct cl_reclaim *r = calloc(1, sizeof *r);
    ASSERT(r != NULL);
    r->node = n;
    r->shard = n->shards[CL_META];
    r->timer = loop_timer_new(n->reactors[0].loop, on_timer, r);
    r->job.run = look_run;
    r->job.done = look_done;
    return r;
}

void cl_reclaim_free(struct cl_reclaim *r)
{
    if (r == NULL)
        return;
    loop_timer_free(r->timer);
    free(r);
}

void cl_reclaim_poll(struct cl_reclaim *r)
{
    struct cl_node *n = r->node;
    if (r->busy || n->phase != CL_NODE_SERVING || n->failed != ST_OK || r->shard->fenced != ST_OK ||
        (n->host != NULL && !r->shard->opened) || loop_now_us(n->reactors[0].loop) < r->next_us)
        return;
    r->busy = cl__job_start(n, &r->job) == ST_OK; /* a full queue: the timer tries again */
}

void cl_reclaim_stats(const struct cl_reclaim *r, struct cl_reclaim_stats *out)
{
    *out = (struct cl_reclaim_stats){.commands = r->commands, .removed = r->removed};
    if (r->working) {
        out->state = CL_RECLAIM_RUNNING;
        out->directory = r->id;
        out->ns = r->ns;
        return;
    }
    /* remove_tree() may have been called since the last look, or another node may lead. */
    status st = look(r, false, &out->ns, &out->directory);
    out->state = st == ST_OK          ? CL_RECLAIM_WAITING
                 : st == ST_NOT_FOUND ? CL_RECLAIM_IDLE
                                      : CL_RECLAIM_UNKNOWN;
}
