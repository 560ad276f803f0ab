/*
 * cluster/expire.h — takes expired objects away in the background, by the rules of table lifecycle.
 *
 * Owner: reactor 0 (role_shard).
 */
#ifndef CLUSTER_EXPIRE_H
#define CLUSTER_EXPIRE_H

#include "cluster/shard.h"

struct cl_expire;
struct cl_expire *cl_expire_new(struct cl_node *n);
void cl_expire_free(struct cl_expire *e); /* NULL is fine; nothing may be under way */
/* Looks, if it is time and this node leads the shard of objects. From the node's timer. */
void cl_expire_poll(struct cl_expire *e);

struct cl_expire_stats {
    uint64_t commands, removed; /* since the start, by this node */
    bool running;               /* a walk over the rules' objects is under way */
    uint32_t ns;                /* running: where */
};
void cl_expire_stats(const struct cl_expire *e, struct cl_expire_stats *out);

#endif
