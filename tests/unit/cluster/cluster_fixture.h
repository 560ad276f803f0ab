/*
 * tests/unit/cluster/cluster_fixture.h — several nodes of one cluster in this process, on loopback.
 *
 * Each node is a `struct fixture` with a directory, a reactor and a transport of its own, so
 * everything in fixture.h works on it.
 */
#ifndef TEST_CLUSTER_CLUSTER_FIXTURE_H
#define TEST_CLUSTER_CLUSTER_FIXTURE_H

#include "fixture.h"

#define CX_NODES 3u

struct cluster {
    struct fixture nodes[CX_NODES];
};

/* Directories and settings of three nodes; nothing is open. */
void cx_init(struct cluster *c);
void cx_fini(struct cluster *c);
void cx_open(struct cluster *c, unsigned i); /* opens and starts node I + 1; waits for nothing */
void cx_open_all(struct cluster *c);
void cx_close(struct cluster *c, unsigned i); /* stops it in good order */
/* Waits until an open node serves all shards, and says which; there must come one. */
unsigned cx_leader(struct cluster *c);
/* Waits until all open nodes have applied the same entries, and asserts that state is equal. */
void cx_settle(struct cluster *c);
/* On the node's reactor: has it met all others? */
bool cx_knows_all(struct cl_node *n);
/* Waits until all nodes, which are open, have met each other and may vote. */
void cx_acquaint(struct cluster *c);
/* Runs OP until it is done: where the outcome is unknown it is tried again. Returns its status. */
status cx_put(struct cluster *c, const char *key, const char *value);
/* ST_END and the row's value in OUT (at most SIZE bytes), from whoever leads; ST_NOT_FOUND. */
status cx_get(struct cluster *c, const char *key, char *out, size_t size);

#endif
