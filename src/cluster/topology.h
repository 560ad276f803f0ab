/*
 * cluster/topology.h — the nodes of a cluster as an operator lists them.
 *
 *   [cluster]
 *   id = 7040
 *   node = 1
 *   nodes = 1=10.0.0.1:7433/10.0.0.1:7432
 *           2=10.0.0.2:7433/10.0.0.2:7432
 *           3=10.0.0.3:7433/10.0.0.3:7432
 *
 * node=address for the other nodes/address for clients. A value; nothing to free.
 */
#ifndef CLUSTER_TOPOLOGY_H
#define CLUSTER_TOPOLOGY_H

#include "base/env_net.h"

#define CL_NODES_MAX 16u

struct cl_node_address {
    uint64_t id;
    char peers[ENV_NET_ADDRESS_BYTES], clients[ENV_NET_ADDRESS_BYTES];
};

struct cl_topology {
    uint64_t self; /* in the list, if there is one */
    unsigned count;
    struct cl_node_address nodes[CL_NODES_MAX];
};

/* LIST is the text of cluster.nodes, SELF that of cluster.node. An empty list gives count 0.
 * ST_INVALID: ERR names the entry and what is wrong with it. */
NODISCARD status cl_topology_parse(const char *list, uint64_t self, struct cl_topology *out,
                                   struct err *err);
/* NULL: not in the list. */
const struct cl_node_address *cl_topology_find(const struct cl_topology *t, uint64_t id);

#endif
