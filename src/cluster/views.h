/*
 * cluster/views.h — what operators can see and do, as relations and functions of schema metadb.
 *
 * A view is a name, columns and a generator that runs on reactor 0 and is quick; filtering and
 * joining are the catalogue evaluator's. A function is called with bound arguments and may be
 * pending like any call.
 */
#ifndef CLUSTER_VIEWS_H
#define CLUSTER_VIEWS_H

#include "cluster/client.h"

struct cl_view_column {
    const char *name;
    enum kv_type type;
};
struct cl_view {
    const char *name; /* without schema */
    const char *comment;
    const struct cl_view_column *columns;
    unsigned column_count;
    void (*rows)(struct cl_node *n, void (*emit)(void *arg, const struct kv_datum *values),
                 void *arg);
};
/* metadb.nodes, shards, replicas, log, stages, memory, memtables, sinks, settings, build … */
const struct cl_view *cl_views(unsigned *count);

/* Functions, run where the shards are led: metadb.flush() persists everything in memory;
 * metadb.state_hash() the hashes of the replicated state; metadb.check() recounts num_children,
 * quota and index: a set of mismatches. */
struct cl_function {
    const char *name;
    const char *comment;
    const struct cl_view_column *args;
    unsigned arg_count;
    const struct cl_view_column *result; /* columns of the result set */
    unsigned result_count;
    bool of_shard; /* the first argument is the shard whose leader runs it; else it is meta's */
    /* Emits rows on the loop thread, then finishes as any call. */
    status (*call)(struct cl_client *c, struct cl_call *call, const struct kv_datum *args,
                   void (*emit)(void *arg, const struct kv_datum *values), void *emit_arg);
};
/* Calls F here, or at the node that leads; ends as any call. */
NODISCARD status cl_function_run(const struct cl_function *f, struct cl_client *c,
                                 struct cl_call *call, const struct kv_datum *args,
                                 void (*emit)(void *arg, const struct kv_datum *values),
                                 void *emit_arg);
const struct cl_function *cl_functions(unsigned *count);

#endif
