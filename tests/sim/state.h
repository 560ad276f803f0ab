/*
 * sim/state.h — what whole nodes must hold once all is quiet.
 */
#ifndef SIM_STATE_H
#define SIM_STATE_H

#include "sim/cluster.h"

/* Has every node that runs applied the same entries, all that there are, and is meta's queue empty,
 * and nothing detached left? */
bool state_settled(struct cluster *c);
/* Every replica, a line each, on stderr: for a failure. */
void state_print(struct cluster *c);
/* S1 replicas have the same hash; S2 num_children, quota and secondary_index equal a recount;
 * S3 each directory is reached from the root exactly once. Says it by cluster_broken. */
void state_check(struct cluster *c);

#endif
