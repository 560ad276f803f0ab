/*
 * sim/cluster.h — three whole nodes on simulated machines: the production code of raft, kv and
 * cluster, driven by the world's events.
 *
 * A *node* is what a machine runs: a process that comes and goes, a disk with the log, and a store
 * in memory that keeps what it flushed. A process that ends is abandoned as it stands: nothing of
 * it runs any more, and its memory is the run's to lose (a run is a process of its own, main.c).
 *
 * What threads do elsewhere happens here as events: a write of the log, a job of a pool, each after
 * a time of its own. Between two events nobody reads, so what RCU has deferred is released there.
 */
#ifndef SIM_CLUSTER_H
#define SIM_CLUSTER_H

#include "cluster/cluster_internal.h"
#include "cluster/shard.h"
#include "kv/store.h"
#include "sim/world.h"

#define NODES 3u
#define JOBS_MAX 256u

struct cluster;
struct clients;

struct node {
    struct cluster *cluster;
    struct machine *machine;
    struct config *config;
    struct kv_store *store;
    struct cl_node *process; /* NULL: none runs */
    uint64_t starts;         /* counts processes */
    struct sim_event disk, job;
    uint64_t disk_hangs_until_us, frozen_until_us;
    struct pool *jobs[JOBS_MAX]; /* pools with a job that waits, once for each */
    unsigned job_count;
    bool dark;   /* the power went in the middle of what runs now */
    bool failed; /* the process has given up its log or store and must end */
    bool lost;   /* its disk was replaced: the others do not take it back under its id */
    bool lies;   /* its syncs do nothing at present */
    uint64_t applied[CL_SHARDS]; /* as last looked at, for rules over time */
    hlc_ts applied_ts[CL_SHARDS];
};

/* What a reader was promised: nothing stamped at or below TS comes behind entry INDEX. */
struct promise {
    uint64_t index;
    hlc_ts applied_ts, ts;
};

struct cluster {
    struct world world;
    struct node nodes[NODES];
    bool chaos;                               /* messages are repeated and reordered */
    bool skip_sync;                           /* a mistake on purpose: no sync does anything */
    char list[128];                           /* cluster.nodes */
    void (*ended)(void *arg, struct node *n); /* the process of N is gone */
    void *arg;
    const struct clients *arg_clients; /* the owner's; not looked at here */
    uint64_t repeated, reordered, snapshots, cuts, restarts, leaders;
    struct promise promises[CL_SHARDS][16]; /* the newest, a ring */
    unsigned promise_count[CL_SHARDS];
    char broken[256]; /* the first rule that did not hold, as text; "" = none */
};

void cluster_init(struct cluster *c, uint64_t seed);
/* Starts N's process; it may end at once (a full disk), then it is tried again later. */
void cluster_start(struct cluster *c, struct node *n);
/* Ends N's process: power lost, or killed. It stays down for DOWN_US. */
void cluster_crash(struct cluster *c, struct node *n, bool power, uint64_t down_us);
/* The power of N's machine goes in the middle of a write to its disk; 0 calls: it does not. */
void cluster_lose_power_at(struct node *n, unsigned calls);
/* Its disk is empty from now on; while no process runs. */
void cluster_wipe(struct cluster *c, struct node *n);
/* Takes events until the world's time is UNTIL_US, or a rule is broken. */
void cluster_run(struct cluster *c, uint64_t until_us);
/* Nothing hangs, nothing is lost on the way, every machine that can run does. */
void cluster_heal(struct cluster *c);
/* The first rule that did not hold counts. */
void PRINTF_LIKE(2, 3) cluster_broken(struct cluster *c, const char *format, ...);
/* A reader of S at N was given snapshot TS. */
void cluster_promise(struct cluster *c, const struct cl_shard *s, hlc_ts ts);
/* Looks at every replica: rules R1 and R2 of cluster.c. */
void cluster_look(struct cluster *c);
/* Who serves shard POSITION; NULL: nobody does. */
struct node *cluster_leader(struct cluster *c, unsigned position);

static inline uint64_t cluster_now(const struct cluster *c)
{
    return sim_world_now_us(c->world.sim);
}
static inline uint64_t cluster_below(struct cluster *c, uint64_t bound)
{
    return world_below(&c->world, bound);
}

#endif
