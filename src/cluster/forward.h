/*
 * cluster/forward.h — clients' commands on their way to whoever leads their shard, and what a
 * reader must have applied.
 *
 * Where this node leads, a command goes to the shard's queue. Elsewhere it goes to the leader as a
 * request, and what comes back is its answer. Where the leader is lost it goes to the next one
 * under the same id, so it is done once and has one answer (kv/dedup.h). What no leader can tell
 * within `cluster.patience` is ST_OUTCOME_UNKNOWN; what certainly was not done is ST_NOT_LEADER.
 *
 *   cl_command_start ─▶ waiting ─▶ here (cl_shard_propose) or sent (PROPOSE) ─▶ done
 *                          ▲________________ not done, or not known ___│
 *
 * Reads run on this node's own replica. An ask gets the leader's word on how far that must be (read
 * index) and waits until it is applied here; a transaction's snapshot is such a word for all
 * shards.
 *
 * A node alone has no forwarder: its commands go to the shard's queue and nothing is remembered.
 *
 * Owner: reactor 0 (role_shard).
 */
#ifndef CLUSTER_FORWARD_H
#define CLUSTER_FORWARD_H

#include "cluster/request.h"
#include "cluster/shard.h"
#include "cluster/transport.h"

struct cl_forward;

struct cl_forward *cl_forward_new(struct cl_node *n); /* NULL: this node is alone */
void cl_forward_free(struct cl_forward *f);           /* NULL is fine; nothing is under way */
/* End of the turn: what waits goes as far as it can; what came back is tried again. */
void cl_forward_turn(struct cl_forward *f);
bool cl_forward_idle(const struct cl_forward *f);
/* Answers all that is under way: commands that may be done ST_OUTCOME_UNKNOWN, the rest ST. */
void cl_forward_abandon(struct cl_forward *f, status st);

/* -- commands ---------------------------------------------------------------------------------- */

/* Embedded in whoever waits for it, untouched until DONE. */
struct cl_command {
    struct list node;
    struct cl_shard *shard;
    struct cl_proposal proposal; /* while it is here; a node alone: always */
    struct cl_request request;   /* while it is sent */
    struct buf *bytes;           /* encoded; another copy once it was proposed */
    uint64_t number;             /* commands of a shard are kept in this order */
    uint64_t deadline_us;
    enum { CL_COMMAND_WAITING, CL_COMMAND_HERE, CL_COMMAND_SENT } state;
    unsigned attempts, renewals;
    bool doubtful;  /* an attempt may be done, or come to be */
    bool withdrawn; /* it ends instead of being tried */
    /* As cl_proposal's: ST_OK: A is the answer (borrowed for the call), or says why it was not
     * done. Otherwise A is NULL and nothing was done, except with ST_OUTCOME_UNKNOWN. Once, from
     * the loop, never inside cl_command_start. */
    void (*done)(struct cl_command *c, status st, const struct kv_applied *a);
};

/* Is there somebody, or may there soon be, who takes a command for S? As cl_shard_admit, and
 * ST_BUSY. */
NODISCARD status cl_command_admit(struct cl_shard *s, struct err *err);
/* The origin of a client's next command for S. */
struct kv_origin cl_command_origin(struct cl_shard *s);
/* Those of one shard are done in the order of these calls. Takes ENCODED. C->done is set.
 */
void cl_command_start(struct cl_command *c, struct cl_shard *s, struct buf *encoded);

/* Nobody has C, nobody had it: it ends soon with ST_CANCELLED. Else false, and it goes on. */
bool cl_command_withdraw(struct cl_command *c);

/* -- what to read ------------------------------------------------------------------------------ */

/* Embedded in its owner. */
struct cl_ask {
    struct list node;
    cl_shard_set wanted, known;
    struct cl_read_point points[CL_SHARDS];
    struct {
        uint64_t token, term; /* the round that it waits for, in which term; 0: for none */
    } rounds[CL_SHARDS];
    bool points_only; /* of a node that led all that is wanted; to be applied elsewhere */
    uint64_t deadline_us;
    status outcome;
    /* ST_OK: the wanted shards are applied up to their points. ST_NOT_LEADER; ST_SHUTDOWN; why a
     * replica is fenced. Once, from the loop. */
    void (*done)(struct cl_ask *a, status st);
};
/* Not needed where cl_shard_here says yes for all. A->done is set. */
void cl_ask_start(struct cl_forward *f, struct cl_ask *a, cl_shard_set wanted);
/* For another node's reader: the points alone, from what this node leads, with a lease or by a
 * round; done with ST_NOT_LEADER where it does not lead. */
void cl_ask_points(struct cl_forward *f, struct cl_ask *a, cl_shard_set wanted);
/* Ends it soon with ST_CANCELLED. */
void cl_ask_cancel(struct cl_forward *f, struct cl_ask *a);

/* -- functions --------------------------------------------------------------------------------- */

struct cl_function;
/* remote.c: calls F at the leader of shard S, as F's own `call` would here; ends by finishing CALL.
 */
NODISCARD status cl_remote_call(struct cl_client *c, struct cl_call *call,
                                const struct cl_function *f, const struct cl_shard *s,
                                const struct kv_datum *args,
                                void (*emit)(void *arg, const struct kv_datum *values), void *arg);

/* Commands of a shard that wait or are under way; more are refused. So are more bytes, of all. */
#define CL_COMMANDS_MAX 65536u
#define CL_COMMANDS_BYTES_MAX (128u << 20)

struct cl_forward_stats {
    uint64_t waiting, under_way, bytes; /* commands */
    uint64_t sent, retried, unknown;    /* since the start */
    uint64_t asks, asked;               /* of readers: waiting; requests since the start */
    uint64_t rounds;                    /* by which a leader without a lease served them */
};
void cl_forward_stats(const struct cl_forward *f, struct cl_forward_stats *out);

#endif
