/*
 * cluster/expire.c — walks over the objects of all rules, stretch by stretch, beside the clients'
 * work.
 *
 *   IDLE --due, or a rule changed--> LOOKING (pool) --a stretch--> PROPOSED --applied--> PAUSED
 *     ^                                 |  '--nothing yet--> PAUSED --timer--> LOOKING
 *     '------- all rules walked --------'
 *
 * Only where the shard is led. Where a walk stands is not remembered: after a restart or on another
 * leader it begins anew, and what is still there is found again. Nothing here decides what has
 * expired: the command does, at its stamp, on every replica. One command is under way at most, and
 * a pause follows it.
 *
 * Threads: the owner reactor; the look runs on a pool thread.
 */
#include "cluster/expire.h"
#include "base/assert.h"
#include "base/log.h"
#include "kv/lifecycle.h"
#include <stdlib.h>

#define PAUSE_US 2000u         /* after a command */
#define LOOK_PAUSE_US 20000u   /* after a look in vain */
#define WAIT_LEAST_US 1000000u /* between walks */
#define WAIT_MOST_US 600000000u
#define REFUSED_US 1000000u
#define WHOLE_EVERY 16u /* each walk of so many looks at every object */

struct cl_expire {
    struct cl_node *node;
    struct cl_shard *shard;
    struct loop_timer *timer;
    struct pool_job job;
    struct cl_proposal proposal;
    bool busy; /* a look or a command is under way */
    uint64_t next_us, rule_writes, walks, commands, removed;
    unsigned database; /* whose rules are walked */
    int64_t due;       /* of the databases walked before it */
    bool running;
    /* the look's; the pool thread's while it runs */
    struct kv_expire_walk walk;
    struct arena arena;
    uint32_t ns;
    int64_t now;
    status found;
    bytes lower, upper;
};

static void pause_for(struct cl_expire *e, uint64_t us)
{
    e->busy = false;
    e->next_us = loop_now_us(e->node->reactors[0].loop) + us;
    loop_timer_start(e->timer, us);
}

/* From the first database's first rule, now. */
static void walk_anew(struct cl_expire *e)
{
    e->walk = (struct kv_expire_walk){.whole = e->walks++ % WHOLE_EVERY == 0};
    e->database = 0;
    e->due = INT64_MAX;
}

static void walk_ended(struct cl_expire *e)
{
    int64_t wait = e->due - e->now;
    if (e->due == INT64_MAX || wait > (int64_t)WAIT_MOST_US)
        wait = WAIT_MOST_US;
    if (wait < (int64_t)WAIT_LEAST_US)
        wait = WAIT_LEAST_US;
    e->running = false;
    walk_anew(e);
    pause_for(e, (uint64_t)wait);
}

/* -- the command ------------------------------------------------------------------------------- */

static void command_done(struct cl_proposal *p, status st, const struct kv_applied *a)
{
    struct cl_expire *e = CONTAINER_OF(p, struct cl_expire, proposal);
    if (st != ST_OK || a->outcome != ST_OK) {
        LOG_WARN("expire.refused", LOG_STR("why", st != ST_OK ? status_text(st) : a->err.message));
        pause_for(e, REFUSED_US);
        return;
    }
    e->removed += (uint64_t)a->result.affected;
    pause_for(e, PAUSE_US);
}

static void propose(struct cl_expire *e)
{
    struct kv_op op = {.kind = KV_OP_EXPIRE,
                       .table = KV_OBJECT,
                       .ns = e->ns,
                       .now = e->now,
                       .lower = e->lower,
                       .upper = e->upper};
    const struct kv_op *ops[] = {&op};
    struct obuf o;
    obuf_init(&o);
    kv_command_ops(&o, ops, 1, cl__node_origin(e->node));
    e->proposal.command = buf_copy(bytes_make(o.data, o.size));
    e->proposal.system = true;
    e->proposal.done = command_done;
    obuf_fini(&o);
    e->commands++;
    cl_shard_propose(e->shard, &e->proposal);
}

/* -- the look ---------------------------------------------------------------------------------- */

static void look_run(struct pool_job *job)
{
    struct cl_expire *e = CONTAINER_OF(job, struct cl_expire, job);
    struct kv_view v = {.state = e->shard->state,
                        .at = HLC_MAX,
                        .tier = KV_TIER_BULK,
                        .pool = true,
                        .arena = &e->arena};
    e->found = kv_expire_find(&v, e->ns, e->now, &e->walk, &e->lower, &e->upper);
}

static void database_ended(struct cl_expire *e)
{
    e->due = e->walk.due < e->due ? e->walk.due : e->due;
    if (cl_database_at(e->node, ++e->database, &e->ns) == NULL)
        walk_ended(e);
    else
        pause_for(e, PAUSE_US);
}

static void look_done(struct pool_job *job)
{
    struct cl_expire *e = CONTAINER_OF(job, struct cl_expire, job);
    struct cl_node *n = e->node;
    cl__job_done(n);
    if (n->phase != CL_NODE_SERVING || n->failed != ST_OK) {
        e->busy = false;
    } else if (e->found == ST_END) {
        database_ended(e);
    } else if (e->found != ST_OK) {
        LOG_WARN("expire.unreadable", LOG_STR("why", status_text(e->found)));
        pause_for(e, REFUSED_US);
    } else if (e->lower.size > 0) {
        propose(e);
    } else {
        pause_for(e, LOOK_PAUSE_US);
    }
    arena_reset(&e->arena);
}

static void on_timer(void *arg)
{
    cl_expire_poll(arg);
}

struct cl_expire *cl_expire_new(struct cl_node *n)
{
    struct cl_expire *e = calloc(1, sizeof *e);
    ASSERT(e != NULL);
    e->node = n;
    e->shard = n->shards[CL_OBJECT];
    e->timer = loop_timer_new(n->reactors[0].loop, on_timer, e);
    e->job.run = look_run;
    e->job.done = look_done;
    arena_init(&e->arena, 4096);
    walk_anew(e);
    return e;
}

void cl_expire_free(struct cl_expire *e)
{
    if (e == NULL)
        return;
    loop_timer_free(e->timer);
    arena_fini(&e->arena);
    free(e);
}

void cl_expire_poll(struct cl_expire *e)
{
    struct cl_node *n = e->node;
    uint64_t writes = kv_state_rule_writes(e->shard->state);
    if (e->busy || n->phase != CL_NODE_SERVING || n->failed != ST_OK || e->shard->fenced != ST_OK)
        return;
    if ((n->host != NULL && !e->shard->opened) || !kv_state_has_rules(e->shard->state)) {
        e->running = false;
        return;
    }
    if (writes != e->rule_writes) {
        e->rule_writes = writes;
        e->next_us = 0;
        walk_anew(e);
    }
    if (loop_now_us(n->reactors[0].loop) < e->next_us ||
        cl_database_at(n, e->database, &e->ns) == NULL)
        return;
    e->now = cl__timestamptz(env_unix_us(n->env));
    e->busy = cl__job_start(n, &e->job) == ST_OK; /* a full queue: the timer tries again */
    e->running = e->running || e->busy;
}

void cl_expire_stats(const struct cl_expire *e, struct cl_expire_stats *out)
{
    *out = (struct cl_expire_stats){
        .commands = e->commands, .removed = e->removed, .running = e->running, .ns = e->ns};
}
