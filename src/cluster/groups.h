/*
 * cluster/groups.h — the Raft groups of a process, thousands of them: their time and their sleep.
 *
 * A group that is awake is looked at when its next tick is due; one that sleeps costs nothing.
 * Whether the other processes live is watched once for all groups, by the transport's beacons: they
 * carry this process's clock, up to which time it may serve reads, the same two numbers of the
 * other side's last beacon, and which groups it leads no more though it may not say so itself.
 *
 *   changed(node, up) --> every group          fill_beacon(node) --> beacon --> beacon(node)
 *   timer --> groups that are due              raft_beacons <---- what was answered and heard
 *
 * Owner: one loop's thread.
 */
#ifndef CLUSTER_GROUPS_H
#define CLUSTER_GROUPS_H

#include "base/buf.h"
#include "base/env.h"
#include "base/loop.h"
#include "raft/raft.h"

/* Embedded in its owner. */
struct cl_group {
    uint64_t id;
    struct raft *raft;
    uint64_t due_ms;  /* looked at then, or earlier than it need be */
    unsigned at;      /* position in the queue, from 1; 0: sleeps */
    uint64_t hold_ms; /* no tick before */
    bool added, left;
};

struct cl_groups_events {
    /* A step of G with all its outputs, and cl_groups_note. RAFT_TICK may be refused. */
    void (*step)(void *arg, struct cl_group *g, struct raft_input *in);
    /* Reads at times up to this may be asked for soon. */
    uint64_t (*read_wish)(void *arg);
    /* Is BOUND on disk, as a read bound? If not, it will be soon. */
    bool (*covers)(void *arg, uint64_t bound);
};

struct cl_groups;
struct cl_groups *cl_groups_new(struct env *env, const struct cl_groups_events *e, void *arg);
void cl_groups_free(struct cl_groups *gs); /* NULL is fine */
/* For raft_config, as long as GS lives. */
const struct raft_beacons *cl_groups_beacons(const struct cl_groups *gs);
/* G is stepped from cl_groups_start on. */
void cl_groups_add(struct cl_groups *gs, struct cl_group *g);
/* From here on there is time. */
void cl_groups_start(struct cl_groups *gs, struct loop *loop);

/* After each step of G: when it is to be looked at may have changed. */
void cl_groups_note(struct cl_groups *gs, struct cl_group *g);
/* G is stepped no more. Its followers are told that it is not led from here. */
void cl_groups_leave(struct cl_groups *gs, struct cl_group *g);
/* End of a turn: the timer is set. */
void cl_groups_turn(struct cl_groups *gs);
unsigned cl_groups_awake(const struct cl_groups *gs);

/* Processes are told apart by the replica that they have of every group. The connection to that of
 * NODE is there, or it is gone. */
void cl_groups_changed(struct cl_groups *gs, uint64_t node, bool up);
/* It is gone for good: its node has another replica now. */
void cl_groups_forget(struct cl_groups *gs, uint64_t node);
void cl_groups_fill_beacon(struct cl_groups *gs, uint64_t node, struct obuf *out);
/* ST_PROTOCOL: PAYLOAD is none of these. */
NODISCARD status cl_groups_beacon(struct cl_groups *gs, uint64_t node, bytes payload);

#endif
