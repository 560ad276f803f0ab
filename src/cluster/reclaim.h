/*
 * cluster/reclaim.h — works off in the background what remove_tree() detached.
 *
 * Owner: reactor 0 (role_shard).
 */
#ifndef CLUSTER_RECLAIM_H
#define CLUSTER_RECLAIM_H

#include "cluster/shard.h"

struct cl_reclaim *cl_reclaim_new(struct cl_node *n);
void cl_reclaim_free(struct cl_reclaim *r); /* NULL is fine; nothing may be under way */
/* Looks for trash and proposes the next slice if the last one is done. From the node's timer. */
void cl_reclaim_poll(struct cl_reclaim *r);

enum cl_reclaim_state {
    CL_RECLAIM_IDLE,    /* nothing is left to take away */
    CL_RECLAIM_WAITING, /* something is; the next look finds it, here or where the shard is led */
    CL_RECLAIM_RUNNING,
    CL_RECLAIM_UNKNOWN, /* the answer is not in memory */
};
struct cl_reclaim_stats {
    uint64_t commands, removed; /* slices, entries taken away since the start */
    enum cl_reclaim_state state;
    int64_t directory; /* WAITING, RUNNING: one of those to be taken away */
    uint32_t ns;       /* where it is */
};
void cl_reclaim_stats(const struct cl_reclaim *r, struct cl_reclaim_stats *out);

#endif
