/*
 * bench/many_groups.h — a process with many Raft groups and nothing else: no tables, no disk.
 *
 * What is real is raft, cluster/groups and the transport. The log of a group is in memory and
 * stored at the end of the turn; commands are applied by forgetting them. Also the host of
 * tests/unit/cluster/test_groups.c, on a simulated network.
 *
 * Belongs to the thread of its loop.
 */
#ifndef BENCH_MANY_GROUPS_H
#define BENCH_MANY_GROUPS_H

#include "cluster/groups.h"
#include "cluster/transport.h"

#define MANY_NODES 3u

struct many_group {
    struct cl_group group;
    bool pending;            /* something is to be stored at the end of the turn */
    struct raft_input store; /* what */
    uint64_t applied;
};

struct many_options {
    struct env *env;
    struct loop *loop;
    const struct cl_topology *topology; /* borrowed; MANY_NODES nodes */
    unsigned groups;
    uint64_t election_ms, heartbeat_ms, quiesce_ms;
};

struct many {
    struct many_options o;
    struct cl_transport *transport;
    struct cl_groups *groups;
    struct many_group *at; /* o.groups of them */
    unsigned *pending, pending_count;
    struct loop_turn *turn;
    struct obuf message;
    uint64_t turns, messages, beacons, steps;
};

NODISCARD status many_open(struct many *m, const struct many_options *o, struct err *err);
void many_close(struct many *m);
/* ST_NOT_LEADER and what else raft_step says. */
NODISCARD status many_propose(struct many *m, unsigned group);
/* Does this process lead GROUP, and may it serve a read at this moment? */
bool many_serves(const struct many *m, unsigned group);
unsigned many_led(const struct many *m);

#endif
