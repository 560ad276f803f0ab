/* sim/run.c — see run.h. */
#include "sim/run.h"
#include "base/assert.h"
#include "base/checksum.h"
#include "base/fault.h"
#include "cluster/snapshot.h"
#include "raft/raft_internal.h"
#include "sim/clients.h"
#include "sim/state.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MS 1000u
#define SECOND 1000000u
#define START_S 20u /* until three new nodes serve */
#define LIVE_S 90u

struct run {
    struct cluster cluster;
    struct history history;
    struct clients clients;
    struct faults faults;
    struct sim_event watch;
    uint64_t terms[CL_SHARDS];
    struct run_report *report;
};

/* -- mistakes on purpose ----------------------------------------------------------------------- */

static const char *const mistakes[] = {
    "skip_sync",  /* no sync of the disk does anything */
    "ack_early",  /* answers what is in the own log alone */
    "lease_long", /* a leader serves reads after its lease */
    "no_floor",   /* a new leader stamps below what the one before let others read */
    "drop_dedup", /* what is sent again is done again */
};

bool run_knows(const char *broken)
{
    for (unsigned i = 0; i < ARRAY_LEN(mistakes); i++) {
        if (strcmp(mistakes[i], broken) == 0)
            return true;
    }
    return false;
}

static void make_mistake(struct run *r, const char *broken)
{
    if (broken == NULL)
        return;
    r->cluster.skip_sync = strcmp(broken, "skip_sync") == 0;
    if (r->cluster.skip_sync)
        cluster_heal(&r->cluster); /* the disks lie from now on */
#ifdef METADB_FAULTS
    if (strcmp(broken, "ack_early") == 0)
        raft__broken = RAFT__BREAK_COMMIT_ALONE;
    else if (strcmp(broken, "lease_long") == 0)
        raft__broken = RAFT__BREAK_LEASE_LONG;
    else if (strcmp(broken, "no_floor") == 0)
        fault_arm("host.broken_floor", "always", 1);
    else if (strcmp(broken, "drop_dedup") == 0)
        fault_arm("dedup.broken", "always", 1);
#endif
}

/* -- phases ------------------------------------------------------------------------------------ */

static bool whole(const struct run *r)
{
    return r->cluster.broken[0] == '\0';
}

static void on_ended(void *arg, struct node *n)
{
    struct run *r = arg;
    clients_ended(&r->clients, n);
    clients_note(&r->clients, n->machine->index + 100);
}

/* Counts leaders. */
static void on_watch(struct sim_event *e)
{
    struct run *r = CONTAINER_OF(e, struct run, watch);
    struct cluster *c = &r->cluster;
    for (unsigned k = 0; k < CL_SHARDS; k++) {
        struct node *n = cluster_leader(c, k);
        uint64_t term = n != NULL ? n->process->shards[k]->leading_term : 0;
        if (term > r->terms[k]) {
            c->leaders += r->terms[k] != 0;
            r->terms[k] = term;
        }
    }
    sim_world_at(c->world.sim, e, cluster_now(c) + 50 * MS);
}

static bool all_serve(struct cluster *c)
{
    for (unsigned k = 0; k < CL_SHARDS; k++) {
        if (cluster_leader(c, k) == NULL)
            return false;
    }
    return true;
}

/* Runs until DONE says so. False: it took longer than SECONDS, or a rule is broken. */
static bool wait_for(struct run *r, bool (*done)(struct cluster *c), uint64_t seconds)
{
    uint64_t until_us = cluster_now(&r->cluster) + seconds * SECOND;
    while (whole(r) && cluster_now(&r->cluster) < until_us) {
        if (done(&r->cluster))
            return true;
        cluster_run(&r->cluster, cluster_now(&r->cluster) + 20 * MS);
    }
    return false;
}

static bool enough(const struct run *r)
{
    return clients_done(&r->clients) >= RUN_DONE_MIN && r->faults.sum >= RUN_FAULTS_MIN &&
           r->cluster.leaders >= RUN_LEADERS_MIN;
}

static void safety(struct run *r, uint64_t seconds)
{
    struct cluster *c = &r->cluster;
    uint64_t last_us = cluster_now(c) + RUN_LONGER * seconds * SECOND;
    c->chaos = true;
    clients_begin(&r->clients);
    faults_begin(&r->faults);
    cluster_run(c, cluster_now(c) + seconds * SECOND);
    while (seconds >= RUN_S_MIN && whole(r) && !enough(r) && cluster_now(c) < last_us) {
        if (r->faults.sum >= RUN_FAULTS_MIN) /* so it is service that was rare */
            faults_slow(&r->faults);
        cluster_run(c, cluster_now(c) + SECOND);
    }
    faults_end(&r->faults);
}

static bool quiet(struct cluster *c)
{
    const struct clients *s = c->arg_clients;
    return !clients_busy(s);
}

static void liveness(struct run *r)
{
    struct cluster *c = &r->cluster;
    if (whole(r) && !wait_for(r, all_serve, LIVE_S))
        cluster_broken(c, "L1: after %u s not every shard has a leader", LIVE_S);
    uint64_t done = clients_done(&r->clients);
    cluster_run(c, cluster_now(c) + 5 * SECOND);
    if (whole(r) && clients_done(&r->clients) < done + r->clients.count)
        cluster_broken(c, "L2: clients do not get through");
    clients_stop(&r->clients);
    if (whole(r) && !wait_for(r, quiet, LIVE_S))
        cluster_broken(c, "L3: a request does not end");
    if (whole(r) && !clients_read_all(&r->clients, cluster_now(c) + LIVE_S * SECOND))
        cluster_broken(c, "L4: what was written cannot be read");
    if (whole(r) && !wait_for(r, state_settled, LIVE_S))
        cluster_broken(c, "L5: after %u s the replicas are not at the same place", LIVE_S);
}

static void judge(struct run *r)
{
    struct cluster *c = &r->cluster;
    unsigned undecided = 0;
    state_check(c);
    for (unsigned i = 0; i < REGISTERS && whole(r); i++) {
        if (!check_register(&r->history.registers[i], &undecided))
            cluster_broken(c, "H1: register %u is not linearizable", i);
    }
    if (whole(r) && !check_lists(&r->history))
        cluster_broken(c, "H2: lists are not as snapshot isolation has them");
    r->report->undecided = undecided;
}

static void fill_report(struct run *r)
{
    struct cluster *c = &r->cluster;
    struct run_report *out = r->report;
    out->virtual_us = cluster_now(c);
    memcpy(out->faults, r->faults.made, sizeof out->faults);
    out->asked = r->clients.asked;
    out->answered = r->clients.answered;
    out->unknown = r->clients.unknown;
    out->refused = r->clients.refused;
    out->rows = r->clients.read_rows;
    out->txns = r->history.txn_count;
    for (unsigned i = 0; i < r->history.txn_count; i++)
        out->committed += r->history.txns[i].outcome == TXN_COMMITTED;
    out->leaders = c->leaders;
    out->restarts = c->restarts;
    out->repeated = c->repeated;
    out->reordered = c->reordered;
    out->lost = r->faults.disk_lost;
    out->digest = r->clients.digest;
    for (unsigned i = 0; i < NODES; i++) {
        const struct cl_node *n = c->nodes[i].process;
        struct kv_store_stats store;
        kv_store_stats(c->nodes[i].store, &store);
        out->flushes += store.flushes;
        if (n == NULL)
            continue;
        out->installed += cl_snapshots_counters(n->snapshots).installed;
        out->offered += cl_snapshots_counters(n->snapshots).offered;
        for (unsigned k = 0; k < CL_SHARDS; k++) {
            out->cuts += n->shards[k]->cuts;
            clients_note(&r->clients, n->shards[k]->applied);
        }
    }
    out->digest = r->clients.digest;
}

void run_seed(uint64_t seed, const struct run_options *o, struct run_report *out)
{
    static struct run r;
    memset(&r, 0, sizeof r);
    memset(out, 0, sizeof *out);
    struct cluster *c = &r.cluster;
    r.report = out;
    cluster_init(c, seed);
    history_init(&r.history);
    clients_init(&r.clients, c, &r.history);
    faults_init(&r.faults, c);
    c->ended = on_ended;
    c->arg = &r;
    c->arg_clients = &r.clients;
    r.watch.fn = on_watch;
    make_mistake(&r, o->broken);
    if (!wait_for(&r, all_serve, START_S))
        cluster_broken(c, "L0: after %u s new nodes do not serve", START_S);
    on_watch(&r.watch);
    if (whole(&r))
        safety(&r, o->seconds);
    if (whole(&r))
        liveness(&r);
    if (whole(&r))
        judge(&r);
    fill_report(&r);
    out->good = whole(&r);
    if (!out->good && c->broken[0] == 'L') {
        state_print(c);
        clients_print(&r.clients);
    }
    if (!out->good)
        fprintf(stderr, "seed %" PRIu64 ", %" PRIu64 ".%06" PRIu64 " s: %s\n", seed,
                cluster_now(c) / SECOND, cluster_now(c) % SECOND, c->broken);
}
