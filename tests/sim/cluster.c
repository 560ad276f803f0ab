/*
 * sim/cluster.c — see cluster.h.
 *
 * Rules that hold at every moment, beside what the code asserts itself:
 *
 *   R1  replicas of a shard at the same applied index have the same hash
 *   R2  once a reader has a snapshot, no command comes with a stamp at or below it, whoever leads
 *       (FIELD-REPORTS B2)
 *   R3  a node starts on the disk that it left, unless that is full or fails
 */
#include "sim/cluster.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/rcu.h"
#include "cluster/host.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MS 1000u
#define SECOND 1000000u
#define HASHES 64u

static struct cluster *the_cluster; /* a process runs one */

void cluster_broken(struct cluster *c, const char *format, ...)
{
    va_list args;
    if (c->broken[0] != '\0')
        return;
    va_start(args, format);
    vsnprintf(c->broken, sizeof c->broken, format, args);
    va_end(args);
}

static uint64_t between(struct cluster *c, uint64_t low, uint64_t high)
{
    return low + cluster_below(c, high - low + 1);
}

/* -- what threads do elsewhere ----------------------------------------------------------------- */

/* A process that is stopped, or whose disk hangs, does nothing of it: E comes later. */
static bool held(struct node *n, struct sim_event *e)
{
    struct cluster *c = n->cluster;
    uint64_t until_us = n->disk_hangs_until_us;
    if (sim_loop_frozen(n->machine->loop))
        until_us = cluster_now(c) + 10 * MS;
    if (until_us <= cluster_now(c))
        return false;
    sim_world_at(c->world.sim, e, until_us);
    return true;
}

static void on_disk(struct sim_event *e)
{
    struct node *n = CONTAINER_OF(e, struct node, disk);
    struct cluster *c = n->cluster;
    if (held(n, e))
        return;
    const struct cl_stream *t = &n->process->stream;
    uint64_t next_us = between(c, 200, 1000);
    if (t->submitted > t->stored || cluster_below(c, 8) == 0) {
        sim_loop_enter(n->machine->loop);
        if (cl_node_step_log(n->process))
            next_us =
                cluster_below(c, 50) == 0 ? between(c, 5 * MS, 40 * MS) : between(c, 50, 2500);
    }
    if (!n->dark)
        sim_world_at(c->world.sim, e, cluster_now(c) + next_us);
}

static void plan_job(struct node *n)
{
    struct cluster *c = n->cluster;
    if (n->job_count > 0 && n->job.place == 0)
        sim_world_at(c->world.sim, &n->job, cluster_now(c) + between(c, 20, 3 * MS));
}

static void on_submitted(void *arg, struct pool *p)
{
    struct node *n = arg;
    ASSERT(n->job_count < JOBS_MAX);
    n->jobs[n->job_count++] = p;
    plan_job(n);
}

static void on_job(struct sim_event *e)
{
    struct node *n = CONTAINER_OF(e, struct node, job);
    if (held(n, e))
        return;
    unsigned at = (unsigned)cluster_below(n->cluster, n->job_count);
    struct pool *p = n->jobs[at];
    n->jobs[at] = n->jobs[--n->job_count];
    bool ran = pool_step(p);
    ASSERT(ran);
    if (!n->dark)
        plan_job(n);
}

/* -- messages that come twice, or late --------------------------------------------------------- */

struct late {
    struct sim_event event;
    struct node *node;
    uint64_t starts, from_node, group, from, to;
    struct buf *payload;
};

static void on_late(struct sim_event *e)
{
    struct late *l = CONTAINER_OF(e, struct late, event);
    struct node *n = l->node;
    if (n->process != NULL && n->starts == l->starts && !n->dark) {
        if (sim_loop_frozen(n->machine->loop)) {
            sim_world_at(n->cluster->world.sim, e, cluster_now(n->cluster) + 100 * MS);
            return;
        }
        sim_loop_enter(n->machine->loop);
        cl_host_events()->message(n->process, l->from_node, l->group, l->from, l->to,
                                  buf_bytes(l->payload));
    }
    buf_unref(l->payload);
    free(l);
}

static void later(struct node *n, uint64_t after_us, uint64_t from_node, uint64_t group,
                  uint64_t from, uint64_t to, bytes payload)
{
    struct late *l = calloc(1, sizeof *l);
    ASSERT(l != NULL);
    *l = (struct late){.event.fn = on_late,
                       .node = n,
                       .starts = n->starts,
                       .from_node = from_node,
                       .group = group,
                       .from = from,
                       .to = to,
                       .payload = buf_copy(payload)};
    sim_world_at(n->cluster->world.sim, &l->event, cluster_now(n->cluster) + after_us);
}

static void on_message(void *arg, uint64_t from_node, uint64_t group, uint64_t from, uint64_t to,
                       bytes payload)
{
    struct cluster *c = the_cluster;
    struct node *n = &c->nodes[0];
    while (n->process != arg)
        n++;
    uint64_t fate = c->chaos ? cluster_below(c, 200) : 200;
    if (fate == 0) {
        c->repeated++;
        uint64_t most_us = cluster_below(c, 10) == 0 ? 20 * SECOND : 50 * MS;
        later(n, between(c, 0, most_us), from_node, group, from, to, payload);
    } else if (fate < 5) {
        c->reordered++;
        later(n, between(c, 0, 20 * MS), from_node, group, from, to, payload);
        return;
    }
    cl_host_events()->message(arg, from_node, group, from, to, payload);
}

/* -- processes --------------------------------------------------------------------------------- */

static void on_ready(void *arg)
{
    UNUSED(arg);
}

static void on_failed(void *arg, status st)
{
    struct node *n = arg;
    UNUSED(st);
    n->failed = true;
}

static void on_power_lost(void *arg)
{
    struct node *n = arg;
    n->dark = true;
    sim_net_crash(n->cluster->world.net, n->machine->index, true);
}

void cluster_lose_power_at(struct node *n, unsigned calls)
{
    env_sim_lose_power_at(n->machine->env, calls, on_power_lost, n);
}

/* What is left of the process: nothing that happens. */
static void abandon(struct cluster *c, struct node *n)
{
    sim_loop_abandon(n->machine->loop);
    n->machine->loop = NULL;
    sim_world_cancel(c->world.sim, &n->disk);
    sim_world_cancel(c->world.sim, &n->job);
    n->job_count = 0;
    n->process = NULL;
    kv_store_mem_crash(n->store);
}

void cluster_crash(struct cluster *c, struct node *n, bool power, uint64_t down_us)
{
    ASSERT(n->process != NULL);
    LOG_INFO("sim.crash", LOG_U64("node", n->machine->index + 1), LOG_U64("power", power),
             LOG_U64("at_us", cluster_now(c)));
    sim_net_crash(c->world.net, n->machine->index, power);
    abandon(c, n);
    if (power)
        env_sim_power_cut(n->machine->env);
    else
        env_sim_kill(n->machine->env);
    n->dark = n->failed = false;
    n->machine->down_until_us = cluster_now(c) + down_us;
    c->ended(c->arg, n);
}

void cluster_wipe(struct cluster *c, struct node *n)
{
    ASSERT(n->process == NULL);
    UNUSED(c);
    env_sim_wipe(n->machine->env);
    n->store = kv_store_new_mem();
    n->lies = false;
}

static bool excused(const struct node *n, status st)
{
    return n->lost || n->dark || st == ST_IO || st == ST_DISK_FULL;
}

void cluster_start(struct cluster *c, struct node *n)
{
    static struct cl_transport_events events;
    struct err err;
    struct machine *m = n->machine;
    events = *cl_host_events();
    events.message = on_message;
    world_start(&c->world, m);
    n->starts++;
    n->applied[0] = 0;
    struct cl_drive drive = {
        .loop = m->loop, .store = n->store, .submitted = on_submitted, .arg = n, .events = &events};
    err_clear(&err);
    struct cl_node *process;
    status st = cl_node_open_driven(m->env, n->config, "data", &drive, &process, &err);
    if (st != ST_OK || n->dark) {
        if (!excused(n, st))
            cluster_broken(c, "R3: node %u does not start: %s", m->index + 1, err.message);
        sim_net_crash(c->world.net, m->index, n->dark);
        bool power = n->dark;
        abandon(c, n);
        n->dark = false;
        if (power)
            env_sim_power_cut(m->env);
        else
            env_sim_kill(m->env);
        m->down_until_us = cluster_now(c) + between(c, 100 * MS, SECOND);
        return;
    }
    LOG_INFO("sim.started", LOG_U64("node", m->index + 1), LOG_U64("at_us", cluster_now(c)));
    n->process = process;
    cl_node_start(process, on_ready, on_failed, n);
    sim_world_at(c->world.sim, &n->disk, cluster_now(c) + between(c, 50, 1000));
}

/* -- looking ----------------------------------------------------------------------------------- */

void cluster_promise(struct cluster *c, const struct cl_shard *s, hlc_ts ts)
{
    unsigned at = c->promise_count[s->position]++ % ARRAY_LEN(c->promises[0]);
    c->promises[s->position][at] = (struct promise){
        .index = s->applied, .applied_ts = kv_state_applied_ts(s->state), .ts = ts};
}

static void check_promises(struct cluster *c, const struct node *n, const struct cl_shard *s)
{
    hlc_ts ts = kv_state_applied_ts(s->state);
    for (unsigned i = 0; i < ARRAY_LEN(c->promises[0]); i++) {
        const struct promise *p = &c->promises[s->position][i];
        if (p->ts != 0 && s->applied > p->index && ts > p->applied_ts && ts <= p->ts)
            cluster_broken(c,
                           "R2: node %u applied entry %" PRIu64 " of shard %s, stamped below a "
                           "snapshot that was read at entry %" PRIu64,
                           n->machine->index + 1, s->applied, s->name, p->index);
    }
}

struct seen {
    uint64_t index, hash;
    unsigned node;
};

static void check_hash(struct cluster *c, const struct node *n, struct cl_shard *s)
{
    static struct seen seen[CL_SHARDS][HASHES];
    uint64_t hash, index = kv_state_record(s->state)->applied_index;
    struct seen *place = &seen[s->position][index % HASHES];
    unsigned node = n->machine->index;
    if (index == 0 || (place->index == index && place->node == node) || s->installing ||
        kv_state_hash(s->state, NULL, &hash) != ST_OK)
        return;
    if (place->index == index && place->hash != hash)
        cluster_broken(c, "R1: nodes %u and %u differ in shard %s at entry %" PRIu64,
                       place->node + 1, node + 1, s->name, index);
    *place = (struct seen){.index = index, .hash = hash, .node = node};
}

void cluster_look(struct cluster *c)
{
    /* A hash costs as much as the state has rows: one shard, twice a second. */
    bool hashes = cluster_below(c, 100) == 0;
    unsigned hashed = (unsigned)cluster_below(c, CL_SHARDS);
    for (unsigned i = 0; i < NODES; i++) {
        struct node *n = &c->nodes[i];
        if (n->process == NULL || n->dark)
            continue;
        for (unsigned k = 0; k < CL_SHARDS; k++) {
            struct cl_shard *s = n->process->shards[k];
            if (s->fenced != ST_OK) {
                cluster_broken(c, "node %u has fenced shard %s: %s", i + 1, s->name,
                               status_text(s->fenced));
                continue;
            }
            check_promises(c, n, s);
            if (hashes && k == hashed)
                check_hash(c, n, s);
        }
    }
}

struct node *cluster_leader(struct cluster *c, unsigned position)
{
    struct err err;
    for (unsigned i = 0; i < NODES; i++) {
        struct node *n = &c->nodes[i];
        err_clear(&err);
        if (n->process != NULL && !n->dark && !sim_loop_frozen(n->machine->loop) &&
            cl_shard_serving(n->process->shards[position], &err) == ST_OK)
            return n;
    }
    return NULL;
}

/* -- running ----------------------------------------------------------------------------------- */

static void after_event(struct cluster *c)
{
    rcu_run_deferred();
    for (unsigned i = 0; i < NODES; i++) {
        struct node *n = &c->nodes[i];
        if (n->process == NULL)
            continue;
        if (n->dark)
            cluster_crash(c, n, true, between(c, 0, 5 * SECOND));
        else if (n->failed)
            cluster_crash(c, n, false, between(c, 0, 2 * SECOND));
    }
}

static void start_due(struct cluster *c)
{
    for (unsigned i = 0; i < NODES; i++) {
        struct node *n = &c->nodes[i];
        if (n->process == NULL && !n->lost && n->machine->down_until_us <= cluster_now(c)) {
            c->restarts += n->starts > 0;
            cluster_start(c, n);
        }
    }
}

void cluster_run(struct cluster *c, uint64_t until_us)
{
    while (c->broken[0] == '\0' && cluster_now(c) < until_us) {
        uint64_t slice_us = cluster_now(c) + 5 * MS;
        start_due(c);
        while (c->broken[0] == '\0' &&
               sim_world_step(c->world.sim, slice_us < until_us ? slice_us : until_us))
            after_event(c);
        cluster_look(c);
    }
}

void cluster_heal(struct cluster *c)
{
    c->chaos = false;
    for (unsigned i = 0; i < NODES; i++) {
        struct node *n = &c->nodes[i];
        n->disk_hangs_until_us = 0;
        if (n->disk.place != 0) /* it may have been put off until the disk would go on */
            sim_world_at(c->world.sim, &n->disk, cluster_now(c));
        if (n->job.place != 0)
            sim_world_at(c->world.sim, &n->job, cluster_now(c));
        cluster_lose_power_at(n, 0);
        env_sim_set_capacity(n->machine->env, 0);
        env_sim_fail_next_sync(n->machine->env, ST_OK);
        env_sim_lie(n->machine->env, c->skip_sync);
        n->machine->down_until_us = 0;
    }
    start_due(c);
}

/* -- the beginning ----------------------------------------------------------------------------- */

static void set(struct node *n, const char *name, const char *value)
{
    struct err err;
    err_clear(&err);
    status st = config_set(n->config, name, value, &err);
    if (st != ST_OK)
        fprintf(stderr, "%s: %s\n", name, err.message);
    ASSERT(st == ST_OK);
}

static void set_number(struct node *n, const char *name, uint64_t value, const char *unit)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64 "%s", value, unit);
    set(n, name, text);
}

/* Small, so that what comes after much comes within a minute; not the same in each run. */
static void configure(struct cluster *c, struct node *n, const uint64_t *dice)
{
    unsigned count;
    const struct config_setting *settings = cl_settings(&count);
    UNUSED(c);
    n->config = config_new(settings, count);
    set(n, "cluster.id", "77");
    set_number(n, "cluster.node", n->machine->index + 1, "");
    set(n, "cluster.nodes", n->cluster->list);
    set(n, "memory.budget", "16MB");
    set(n, "log.segment_bytes", "1MB");
    set(n, "log.retain_bytes", "2MB");
    set_number(n, "log.inflight", 1 + dice[0] % 4, "");
    set_number(n, "memtable.bytes", dice[1] % 2 == 0 ? 64 : 256, "kB");
    set_number(n, "memtable.age", 5 + dice[2] % 20, "s");
    set_number(n, "raft.keep", dice[3] % 2 == 0 ? 16 : 256, "kB");
    set_number(n, "raft.election", dice[4] % 2 == 0 ? 1000 : 400, "ms");
    set_number(n, "raft.heartbeat", 50 + dice[5] % 100, "ms");
    set_number(n, "sink.batch_records", 1 + dice[6] % 64, "");
    set(n, "pool.readers", "1");
}

void cluster_init(struct cluster *c, uint64_t seed)
{
    memset(c, 0, sizeof *c);
    the_cluster = c;
    rcu_by_hand();
    world_init(&c->world, seed, NODES);
    int used = 0;
    uint64_t dice[8];
    for (unsigned i = 0; i < ARRAY_LEN(dice); i++)
        dice[i] = sim_random_next(sim_world_random(c->world.sim)) >> 8;
    for (unsigned i = 0; i < NODES; i++)
        used += snprintf(c->list + used, sizeof c->list - (size_t)used,
                         "%u=10.0.0.%u:7000/10.0.0.%u:7432 ", i + 1, i + 1, i + 1);
    for (unsigned i = 0; i < NODES; i++) {
        struct node *n = &c->nodes[i];
        n->cluster = c;
        n->machine = &c->world.machines[i];
        n->disk.fn = on_disk;
        n->job.fn = on_job;
        n->store = kv_store_new_mem();
        configure(c, n, dice);
    }
}
