/*
 * cluster/sink.h — delivers quota and index updates of the meta shard, asynchronously, each once.
 *
 * Owner: reactor 0 (role_shard).
 */
#ifndef CLUSTER_SINK_H
#define CLUSTER_SINK_H

#include "cluster/shard.h"

struct cl_sink *cl_sink_new(struct cl_node *n);
void cl_sink_free(struct cl_sink *k); /* NULL is fine; nothing may be under way */
/* Every turn: sends a batch or an acknowledgement if one is due. */
void cl_sink_poll(struct cl_sink *k);

struct cl_sink_stats {
    uint64_t pending; /* records applied at the source and not yet acknowledged */
    int64_t age_us;   /* of the oldest of them */
    uint64_t batches, records, items_bytes, acks, retries;
    bool sending;
};
void cl_sink_stats(const struct cl_sink *k, struct cl_sink_stats *out);

#endif
