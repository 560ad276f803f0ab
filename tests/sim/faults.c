/* sim/faults.c — see faults.h. */
#include "sim/faults.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "cluster/host.h"
#include <limits.h>

#define MS 1000u
#define SECOND 1000000u
#define JUMP_US 3600000000ll
#define SLOW_PACE_US (5u * SECOND)
#define DISK_BYTES (12u << 20)

const char *const trouble_names[TROUBLE_KINDS] = {
#define X(name, text) [TROUBLE_##name] = text,
    TROUBLES(X)
#undef X
};

static uint64_t below(struct faults *f, uint64_t bound)
{
    return cluster_below(f->cluster, bound);
}

static uint64_t between(struct faults *f, uint64_t low, uint64_t high)
{
    return low + below(f, high - low + 1);
}

/* Mostly short, sometimes long: what outlasts an election is another case. */
static uint64_t some_time(struct faults *f)
{
    return below(f, 4) == 0 ? between(f, SECOND, 6 * SECOND) : between(f, 5 * MS, SECOND);
}

/* -- disks ------------------------------------------------------------------------------------- */

static void lose_disk(struct faults *f, struct node *n)
{
    f->disk_lost = true;
    n->lost = true;
    if (n->process != NULL)
        cluster_crash(f->cluster, n, true, UINT64_MAX / 2);
    cluster_wipe(f->cluster, n);
}

/* A crash of N; if its disk lied meanwhile, what it holds is not to be trusted. */
static bool crash(struct faults *f, struct node *n, bool power)
{
    if (n->process == NULL || (power && n->lies && f->disk_lost))
        return false;
    if (power && n->lies)
        lose_disk(f, n);
    else
        cluster_crash(f->cluster, n, power, some_time(f));
    return true;
}

static bool tear(struct faults *f, struct node *n)
{
    if (n->process == NULL || n->lies)
        return false;
    cluster_lose_power_at(n, (unsigned)between(f, 1, 12));
    return true;
}

static bool lie(struct faults *f, struct node *n)
{
    if (n->process == NULL || n->lies || f->disk_lost || f->cluster->skip_sync)
        return false;
    n->lies = true;
    env_sim_lie(n->machine->env, true);
    cluster_lose_power_at(n, 0); /* that would be another fault */
    return true;
}

/* The NTHth call of any store from now on that writes. */
static void fail_store(unsigned nth)
{
    fault_arm("store.mem.*", "error", nth);
}

static bool replace_disk(struct faults *f, struct node *n)
{
    if (f->disk_lost || below(f, 3) != 0)
        return false;
    lose_disk(f, n);
    return true;
}

/* -- the network ------------------------------------------------------------------------------- */

static void block_all(struct faults *f, unsigned host)
{
    struct world *w = &f->cluster->world;
    for (unsigned i = 0; i < NODES; i++) {
        if (i == host)
            continue;
        sim_net_block(w->net, host, i, true);
        sim_net_block(w->net, i, host, true);
    }
}

static void calm(struct faults *f)
{
    struct world *w = &f->cluster->world;
    fail_store(UINT_MAX);
    for (unsigned a = 0; a < NODES; a++) {
        struct node *n = &f->cluster->nodes[a];
        env_sim_set_capacity(n->machine->env, 0);
        if (n->lies) {
            n->lies = false;
            env_sim_lie(n->machine->env, false);
            env_sim_settle(n->machine->env);
        }
        for (unsigned b = 0; b < NODES; b++) {
            sim_net_delay(w->net, a, b, 50, 500);
            sim_net_slow(w->net, a, b, 0);
            sim_net_damage(w->net, a, b, 0);
            sim_net_block(w->net, a, b, false);
        }
    }
}

/* -- one of them ------------------------------------------------------------------------------- */

static bool freeze(struct faults *f, struct node *n)
{
    if (n->process == NULL)
        return false;
    uint64_t until_us = cluster_now(f->cluster) + between(f, 200 * MS, 3 * SECOND);
    n->frozen_until_us = until_us;
    sim_loop_freeze(n->machine->loop, until_us);
    sim_net_freeze(f->cluster->world.net, n->machine->index, until_us);
    return true;
}

static bool transfer(struct faults *f, struct node *n, struct node *to)
{
    if (n->process == NULL || n->process->host == NULL || sim_loop_frozen(n->machine->loop))
        return false;
    struct cl_shard *s = n->process->shards[below(f, CL_SHARDS)];
    sim_loop_enter(n->machine->loop);
    return cl_host_transfer(n->process->host, s, to->machine->index + 1) == ST_OK;
}

static void stopped(void *arg)
{
    ((struct node *)arg)->failed = true; /* it ends with this event */
}

static bool stop(struct faults *f, struct node *n)
{
    UNUSED(f);
    if (n->process == NULL || sim_loop_frozen(n->machine->loop) ||
        (n->process->phase != CL_NODE_SERVING && n->process->phase != CL_NODE_RECOVERING))
        return false;
    sim_loop_enter(n->machine->loop);
    cl_node_stop(n->process, stopped, n);
    return true;
}

static bool blackout(struct faults *f)
{
    bool any = false;
    for (unsigned i = 0; i < NODES; i++)
        any |= crash(f, &f->cluster->nodes[i], true);
    return any;
}

/* False: it cannot happen now. */
static bool make(struct faults *f, enum trouble kind)
{
    struct world *w = &f->cluster->world;
    unsigned a = (unsigned)below(f, NODES), b = (a + 1 + (unsigned)below(f, NODES - 1)) % NODES;
    struct node *n = &f->cluster->nodes[a];
    f->last = a;
    if (n->lost)
        return false;
    switch (kind) {
    case TROUBLE_KILL: return crash(f, n, false);
    case TROUBLE_POWER: return crash(f, n, true);
    case TROUBLE_TORN: return tear(f, n);
    case TROUBLE_BLACKOUT: return below(f, 3) == 0 && blackout(f);
    case TROUBLE_FULL:
        env_sim_set_capacity(n->machine->env, below(f, 2) == 0 ? 1 : DISK_BYTES);
        return true;
    case TROUBLE_HANG: n->disk_hangs_until_us = cluster_now(f->cluster) + some_time(f); return true;
    case TROUBLE_SYNC: env_sim_fail_next_sync(n->machine->env, ST_IO); return true;
    case TROUBLE_LIE: return lie(f, n);
    case TROUBLE_STORE: fail_store((unsigned)between(f, 1, 4)); return true;
    case TROUBLE_WIPE: return replace_disk(f, n);
    case TROUBLE_PARTITION: block_all(f, a); return true;
    case TROUBLE_BLOCK: sim_net_block(w->net, a, b, true); return true;
    case TROUBLE_BREAK: sim_net_break(w->net, a, b); return true;
    case TROUBLE_DELAY: sim_net_delay(w->net, a, b, between(f, 50, 50 * MS), 300 * MS); return true;
    case TROUBLE_SLOW: sim_net_slow(w->net, a, b, 1000u << below(f, 10)); return true;
    case TROUBLE_DAMAGE: sim_net_damage(w->net, a, b, 2000); return true;
    case TROUBLE_JUMP:
        env_sim_jump_wall(n->machine->env, (int64_t)below(f, 2 * JUMP_US) - JUMP_US);
        return true;
    case TROUBLE_PAUSE: return freeze(f, n);
    case TROUBLE_TRANSFER: return transfer(f, n, &f->cluster->nodes[b]);
    case TROUBLE_STOP: return stop(f, n);
    case TROUBLE_KINDS: break;
    }
    return false;
}

static void on_next(struct sim_event *e)
{
    struct faults *f = CONTAINER_OF(e, struct faults, next);
    for (unsigned tries = 0; tries < 20; tries++) {
        enum trouble kind = (enum trouble)below(f, TROUBLE_KINDS);
        if ((f->kinds >> kind & 1) != 0 && make(f, kind)) {
            f->made[kind]++;
            f->sum++;
            LOG_INFO("sim.fault", LOG_STR("kind", trouble_names[kind]),
                     LOG_U64("node", f->last + 1), LOG_U64("at_us", cluster_now(f->cluster)));
            break;
        }
    }
    /* With two machines left each fault may be the end of all service. */
    uint64_t pace_us = f->disk_lost ? 3 * f->pace_us : f->pace_us;
    sim_world_at(f->cluster->world.sim, e, cluster_now(f->cluster) + between(f, 1, 2 * pace_us));
}

/* Now and then everything is mended, or faults would only pile up. */
static void on_heal(struct sim_event *e)
{
    struct faults *f = CONTAINER_OF(e, struct faults, heal);
    calm(f);
    f->heals++;
    LOG_INFO("sim.calm", LOG_U64("at_us", cluster_now(f->cluster)));
    sim_world_at(f->cluster->world.sim, e,
                 cluster_now(f->cluster) + between(f, SECOND, 10 * SECOND));
}

void faults_init(struct faults *f, struct cluster *c)
{
    *f = (struct faults){.cluster = c, .next.fn = on_next, .heal.fn = on_heal};
    /* Not all kinds in every run: some hide what others would show. */
    f->kinds = below(f, 4) == 0 ? UINT32_MAX : (uint32_t)below(f, 1u << TROUBLE_KINDS) | 3u;
    f->pace_us = between(f, 300, 2000) * MS;
}

void faults_begin(struct faults *f)
{
    sim_world_at(f->cluster->world.sim, &f->next, 0);
    sim_world_at(f->cluster->world.sim, &f->heal, cluster_now(f->cluster) + 2 * SECOND);
}

void faults_slow(struct faults *f)
{
    f->pace_us = f->pace_us > SLOW_PACE_US ? f->pace_us : SLOW_PACE_US;
}

void faults_end(struct faults *f)
{
    sim_world_cancel(f->cluster->world.sim, &f->next);
    sim_world_cancel(f->cluster->world.sim, &f->heal);
    calm(f);
    cluster_heal(f->cluster);
}
