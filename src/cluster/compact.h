/*
 * cluster/compact.h — compacts where much was deleted, and nothing else.
 *
 * Owner: reactor 0 (role_shard).
 */
#ifndef CLUSTER_COMPACT_H
#define CLUSTER_COMPACT_H

#include "cluster/shard.h"

struct cl_compact;
struct cl_compact *cl_compact_new(struct cl_node *n);
void cl_compact_free(struct cl_compact *c); /* NULL is fine; nothing may be under way */
/* Begins the next one if it is time. From the node's timer, and behind a flush. */
void cl_compact_poll(struct cl_compact *c);
/* The node stops: what is under way ends soon, nothing begins any more. */
void cl_compact_stop(struct cl_compact *c);

/* What an operator asked for: a part of a shard, done whatever it costs. */
struct cl_compact_result {
    uint64_t bytes_read, bytes_written;           /* of table files that others replaced */
    uint64_t tombstones_before, tombstones_after; /* in the files that touch the part */
    uint64_t us;
};
/* Parts that may be asked for at once: a directory has one in each database. */
#define CL_COMPACT_PARTS CL_DATABASES
struct cl_compact_part {
    struct obuf lower, upper;
};
bool cl_compact_full(const struct cl_compact *c); /* so many wait that no more may be asked for */
/* Takes COUNT parts, filled buffers, over. A number to ask for the result with. */
uint64_t cl_compact_ask_take(struct cl_compact *c, struct cl_shard *s,
                             struct cl_compact_part *parts, unsigned count);
/* ST_PENDING, ST_OK; ST_SHUTDOWN: the node stops. */
NODISCARD status cl_compact_asked(struct cl_compact *c, uint64_t number,
                                  struct cl_compact_result *out);

struct cl_compact_stats {
    uint64_t done, sparse, stale; /* compacted; too much to rewrite; the store had done it itself */
    uint64_t tombstones, bytes_read, bytes_written, us;
    bool running;
    struct kv_density_range range; /* RUNNING, not asked for: what; in A of cl_compact_stats */
};
void cl_compact_stats(const struct cl_compact *c, const struct cl_shard *s, struct arena *a,
                      struct cl_compact_stats *out);
/* Loop time from which on the next dense range may be compacted. */
uint64_t cl_compact_next_us(const struct cl_compact *c);

#endif
