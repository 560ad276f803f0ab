/*
 * cluster/others.h — what this node remembers of the others over a restart: file `others`.
 *
 * - Up to which time reads may have been served as far as its groups know (raft_read_floor),
 *   rounded up, so that it is written seldom. What a message promises is in the file first.
 * - Which store and replica each other node has. One that comes back with another store is refused,
 *   since its log and its votes are gone, unless that is another replica, too (cluster.join).
 * - Whether this node may vote. One that has a new directory may have voted before, under an older
 *   one: it votes when each other node of the first configuration has taken its connection since,
 *   and so has no other store of it in its own file. A directory that joined votes at once: no
 *   other has its replica's id.
 *
 * Owner: reactor 0; open and free outside the loop.
 */
#ifndef CLUSTER_OTHERS_H
#define CLUSTER_OTHERS_H

#include "cluster/cluster_internal.h"

struct cl_others;

/* Reads the file, and makes it where it is missing. ST_CORRUPT, ST_IO, ST_DISK_FULL. */
NODISCARD status cl_others_open(struct cl_node *n, struct cl_others **out, struct err *err);
void cl_others_free(struct cl_others *o); /* NULL is fine */

/* As of the last run: what a group's read bound begins with. */
hlc_ts cl_others_floor(const struct cl_others *o);
/* Is FLOOR in the file? If it is nearly not, a higher one is written; cl_others_turn begins it. */
bool cl_others_covers(struct cl_others *o, hlc_ts floor);
/* The store of NODE, 0 if it was never met. */
uint64_t cl_others_store(const struct cl_others *o, uint64_t node);
/* Its replica: what it said when it was last met, or that of the first configuration. */
uint64_t cl_others_replica(const struct cl_others *o, uint64_t node);
/* NODE has taken or made a connection, and says that it has STORE and REPLICA. */
void cl_others_met(struct cl_others *o, uint64_t node, uint64_t store, uint64_t replica);
/* Is NODE's store in the file? Nothing that it says of a group counts before. */
bool cl_others_knows(const struct cl_others *o, uint64_t node);
/* May this node vote, by the file? */
bool cl_others_may_vote(const struct cl_others *o);
/* Begins a write if there is something to write. */
void cl_others_turn(struct cl_others *o);

#endif
