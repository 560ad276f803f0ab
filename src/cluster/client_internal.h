/*
 * cluster/client_internal.h — a client's state, shared by client.c, transaction.c and read.c.
 */
#ifndef CLUSTER_CLIENT_INTERNAL_H
#define CLUSTER_CLIENT_INTERNAL_H

#include "cluster/forward.h"

/* A row that a pool thread read, waiting for the loop. */
struct cl_row {
    struct cl_row *next;
    struct kv_row row;
};

/* Operations of a transaction under way; survives the trip to a pool thread. */
struct cl_ops_run {
    struct kv_txn *txn;
    const struct kv_op *const *ops;
    unsigned count, next; /* ops[next] is to be run */
    int64_t affected;
    kv_txn_mark mark; /* of the first: all or none */
    status st;
};

/* A page under way. */
struct cl_read_run {
    struct kv_txn *txn;
    const struct kv_read *read;
    struct kv_read_pos *pos;
    unsigned given;               /* rows delivered or copied */
    size_t bytes_max;             /* of each part of the page */
    struct cl_row *first, **last; /* read by a pool thread */
    uint64_t started_us, skipped_before;
    status st;
};

struct cl_transaction {
    bool active, read_only, expired;
    bool snapshot_taken;
    int64_t now;
    uint64_t started_us;
    hlc_ts snapshot[CL_SHARDS];
    struct kv_txn *txn[CL_SHARDS]; /* made when a shard is first touched */
    struct arena arena;
    uint64_t charged; /* of node->txn_bytes */
    struct list node; /* in node->open_transactions */
};

struct cl_client {
    struct cl_node *node;
    struct cl_reactor *reactor;
    uint32_t ns;
    bool local;           /* reads what is applied here, whoever leads */
    _Atomic bool cancel;  /* set on the loop, read by a pool thread too */
    struct cl_call *call; /* pending, NULL if none */
    struct arena scratch; /* of one call: what came from the store, rows on their way */
    size_t command_bytes; /* of the command proposed last */
    struct cl_command command;
    bool commanding; /* the pending call is `command` */
    struct cl_ask ask;
    bool asking; /* the pending call waits for `ask`, and then goes on with: */
    void (*asked)(struct cl_client *c, struct cl_call *call);
    struct pool_job job;
    struct list long_read; /* in the queue of long_reads.c */
    struct cl_ops_run ops;
    struct cl_read_run read;
    struct cl_transaction txn;
};

/* The shards of WANTED must be applied here up to what their leaders have; then CALL goes on with
 * NEXT, which ends it or leaves it pending. For a client of a node among others. */
NODISCARD status cl__client_ask(struct cl_client *c, struct cl_call *call, cl_shard_set wanted,
                                void (*next)(struct cl_client *c, struct cl_call *call));
/* Ends the pending call. */
void cl__client_finish(struct cl_client *c, status st);
/* Memory for c->scratch from the node's, and back when the call has given out its results: an idle
 * client has none. */
void cl__scratch_take(struct cl_client *c);
void cl__scratch_give(struct cl_client *c);
/* Proposes what is in the node's `encoding` to S for CALL. ST_PENDING or an error in call->err. */
NODISCARD status cl__client_propose(struct cl_client *c, struct cl_call *call, struct cl_shard *s);
/* Starts c->job on the pool; ST_PENDING, or ST_NO_MEMORY in call->err when the queue is full. */
NODISCARD status cl__client_to_pool(struct cl_client *c, struct cl_call *call,
                                    void (*run)(struct pool_job *),
                                    void (*done)(struct pool_job *));

/* read.c: the rest of C's page: on a pool thread, with cl__read_end on the reactor behind it; or
 * here, on the reactor, which goes on on the pool if it meets a cold block. */
void cl__read_anywhere(struct cl_client *c);
void cl__read_end(struct cl_client *c);
void cl__read_here(struct cl_client *c);

/* transaction.c: the write set of S in the open transaction, made on first use. Errors (time limit,
 * …) in ERR. */
NODISCARD status cl__transaction_of(struct cl_client *c, struct cl_shard *s, struct kv_txn **out,
                                    struct err *err);
/* Does the open transaction have its snapshot, or can it take it here? Else it must ask. */
bool cl__transaction_ready(struct cl_client *c);
/* The ask for all shards is answered. */
void cl__transaction_asked(struct cl_client *c);
NODISCARD status cl__transaction_ops(struct cl_client *c, struct cl_call *call,
                                     const struct kv_op *const *ops, unsigned count,
                                     struct cl_shard *s);
/* Drops write sets of transactions that are over their time, so that idle sessions hold none. */
void cl__transactions_expire(struct cl_node *n);
/* How a kv_txn reads from now on: the reactor's cache tier, or everything from a pool thread. */
static inline void cl__txn_tier(struct cl_client *c, struct kv_txn *t, bool pool)
{
    struct kv_view *v = kv_txn_view(t);
    v->tier = pool ? KV_TIER_ANY : KV_TIER_CACHE;
    v->pool = pool;
    v->arena = &c->scratch;
}

#endif
