/*
 * cluster/client.h — how a session reaches the data: operations, reads and its transaction.
 *
 * A client belongs to one reactor's thread and has one call in flight at most. Every call either
 * finishes inside (ST_OK, ST_END or an error; DONE is not called) or returns ST_PENDING and calls
 * DONE exactly once, later, from the loop. While a call is pending its arguments, arena and results
 * belong to the call.
 *
 * States: outside a transaction an operation is proposed as a command of its own and answered when
 * it is applied. Inside, operations run on a write set over the snapshot taken at the first
 * statement, and cl_commit proposes the write set. All writes of a transaction are in one shard
 * until transactions across shards exist: another shard's is ST_UNSUPPORTED.
 *
 * Who leads does not matter: where another node does, a call is pending for longer (forward.h).
 */
#ifndef CLUSTER_CLIENT_H
#define CLUSTER_CLIENT_H

#include "cluster/node.h"
#include "kv/read.h"
#include "kv/txn.h"

struct cl_client;
struct cl_call;
typedef void cl_done(struct cl_call *call, status st);

/* Filled by the session, embedded in it. */
struct cl_call {
    cl_done *done;
    void *arg;
    struct arena *arena; /* results, copies; the session resets it after using them */
    /* reads: rows on the loop thread, also before cl_read returns. False: end the page soon; rows
     * that were read already still come, max_rows in all. */
    bool (*on_row)(void *arg, const struct kv_row *row);
    bool anywhere; /* ON_ROW may be called on a pool thread, a call at a time */
    unsigned max_rows;
    size_t max_bytes;
    bool timed; /* fill the times of `stats` */
    /* out: */
    struct kv_result result;
    struct err err;
    /* out, for EXPLAIN ANALYZE: */
    struct cl_call_stats {
        uint64_t plan_us, queue_us, stored_us, applied_us, read_us;
        uint64_t keys, tombstones, log_bytes, pool_trips;
    } stats;
};

struct cl_client *cl_client_new(struct cl_node *n, struct cl_reactor *r, uint32_t ns);
/* No call may be pending. Rolls back what is open. */
void cl_client_free(struct cl_client *c);

/* Transaction block. Snapshot is taken by the first operation or read. */
void cl_begin(struct cl_client *c, bool read_only, int64_t now);
bool cl_in_transaction(const struct cl_client *c);
/* Proposes the write set if there is one; the transaction is over whatever the outcome.
 * ST_CONFLICT 40001, ST_TXN_TIMEOUT 25P04, ST_OUTCOME_UNKNOWN. */
NODISCARD status cl_commit(struct cl_client *c, struct cl_call *call);
void cl_rollback(struct cl_client *c);
kv_txn_mark cl_savepoint(struct cl_client *c);
void cl_rollback_to(struct cl_client *c, kv_txn_mark mark);

/* Runs OPS together: all or none. Results of the last one in call->result, affected summed. In a
 * READ ONLY transaction ST_TXN_STATE with 25006. */
NODISCARD status cl_ops(struct cl_client *c, struct cl_call *call, const struct kv_op *const *ops,
                        unsigned count);
/* A write that is a transaction of its own and takes no call: any number may be under way. Those in
 * one shard take effect in the order of the calls. Not inside a transaction. ST_PENDING: DONE is
 * called once, later, from the loop, also if C is gone by then; what it gets is its own for that
 * time, RESULT only with ST_OK. Else an error, in ERR. */
typedef void cl_write_done(void *arg, status st, const struct kv_result *result, struct err *err);
NODISCARD status cl_write(struct cl_client *c, const struct kv_op *op, cl_write_done *done,
                          void *arg, struct err *err);
/* One page of READ from POS: rows go to call->on_row. ST_OK more may follow, ST_END no more.
 * Outside a transaction each page is a snapshot of its own. */
NODISCARD status cl_read(struct cl_client *c, struct cl_call *call, const struct kv_read *read,
                         struct kv_read_pos *pos);
/* Asks a pending call to end with ST_CANCELLED soon. A write that somebody may have is not
 * cancelled. */
void cl_cancel(struct cl_client *c);
/* The same for a pending write alone. False: it is not to be stopped. */
bool cl_withdraw(struct cl_client *c);

/* For EXPLAIN: where a key lives. */
struct cl_where {
    uint64_t shard;
    uint64_t leader; /* node */
    const char *table;
};
NODISCARD status cl_locate(struct cl_client *c, enum kv_table t, struct cl_where *out);

#endif
