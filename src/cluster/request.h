/*
 * cluster/request.h — what nodes ask of each other, as bytes: methods of the transport's requests.
 *
 * PROPOSE: a command for a shard that the receiver leads; answered when it is applied. SNAPSHOT: up
 * to where must a reader have applied, and which stamp is its snapshot. CALL: a function of schema
 * metadb. CANCEL: the caller of that CALL, by its id on the same connection, wants it no more. None
 * is ever passed on: who does not lead says ST_NOT_LEADER. Pure functions; decoding
 * never trusts.
 */
#ifndef CLUSTER_REQUEST_H
#define CLUSTER_REQUEST_H

#include "cluster/cluster_internal.h"

struct cl_function;

/* Numbers are only ever added. */
enum cl_method { CL_METHOD_PROPOSE = 1, CL_METHOD_SNAPSHOT, CL_METHOD_CALL, CL_METHOD_CANCEL };

struct cl_propose {
    uint64_t shard;
    /* Of the sender's commands for that shard: once one of them was refused, all of its number are,
     * so that none overtakes another. */
    uint64_t epoch;
    uint64_t incarnation; /* of the sender; out of the command */
    bytes command;        /* a header that is well-formed and says that it may come again */
};
void cl_propose_encode(const struct cl_propose *in, struct obuf *out);
NODISCARD status cl_propose_decode(bytes in, struct cl_propose *out);

/* The answer to PROPOSE, where there is one: either the command's, or why it was not taken. */
struct cl_proposed {
    bool applied;
    hlc_ts log_time; /* of the shard */
    bytes answer;    /* kv/answer.h */
};
void cl_proposed_encode(bool applied, hlc_ts log_time, const struct kv_applied *answer,
                        struct obuf *out);
NODISCARD status cl_proposed_decode(bytes in, struct cl_proposed *out);

/* Shards as a set: bit i is the shard at position i. Never empty. */
typedef uint32_t cl_shard_set;
#define CL_ALL_SHARDS ((1u << CL_SHARDS) - 1)
void cl_snapshot_ask_encode(cl_shard_set shards, struct obuf *out);
NODISCARD status cl_snapshot_ask_decode(bytes in, cl_shard_set *out);

struct cl_read_point {
    uint64_t index; /* of the log: applied, then a read is not older than the question */
    hlc_ts stamp;   /* snapshot of a transaction */
};
/* Of the shards in the set, in order of position. */
void cl_read_points_encode(cl_shard_set shards, const struct cl_read_point points[CL_SHARDS],
                           struct obuf *out);
NODISCARD status cl_read_points_decode(bytes in, cl_shard_set shards,
                                       struct cl_read_point out[CL_SHARDS]);

/* A call of a function; its arguments are of the function's types. */
void cl_function_ask_encode(const struct cl_function *f, const struct kv_datum *args,
                            struct obuf *out);
/* ST_UNSUPPORTED: there is no such function here. */
#define CL_FUNCTION_ARGS_MAX 8u
NODISCARD status cl_function_ask_decode(bytes in, const struct cl_function **f,
                                        struct kv_datum args[CL_FUNCTION_ARGS_MAX]);
/* One row, of the function's result. The reader latches what is wrong. */
void cl_function_row_encode(const struct cl_function *f, const struct kv_datum *values,
                            struct obuf *out);
#define CL_FUNCTION_COLUMNS_MAX 16u
void cl_function_row_decode(struct reader *in, const struct cl_function *f,
                            struct kv_datum values[CL_FUNCTION_COLUMNS_MAX]);

#endif
