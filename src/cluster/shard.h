/*
 * cluster/shard.h — one shard on this node: its Raft group, its state, the commands on their way.
 *
 *   proposal --queue--> raft_step(PROPOSE) --log--> RAFT_STORED --commit--> kv_apply --> done
 *
 * Owner: the reactor that has the shard (role_shard), all functions. A proposal's DONE is called
 * exactly once, from the loop, never inside the call that started it.
 */
#ifndef CLUSTER_SHARD_H
#define CLUSTER_SHARD_H

#include "cluster/cluster_internal.h"
#include "cluster/flush_pace.h"
#include "cluster/groups.h"
#include "cluster/request.h"
#include <limits.h>

/* One command on its way. Embedded in whoever waits for it, untouched until DONE. */
struct cl_proposal {
    struct list node;
    uint32_t size;        /* of the command */
    struct buf *command;  /* encoded, not yet stamped; the shard owns it from cl_shard_propose on */
    bool system;          /* does not wait for memory: what frees memory must get through */
    uint64_t index, term; /* in the shard's log, once proposed */
    uint64_t queued_us, proposed_us, stored_us;
    hlc_ts stamp;
    /* ST_OK: applied, the answer is in A (borrowed for the call). Otherwise A is NULL: nothing was
     * done, except with ST_OUTCOME_UNKNOWN. */
    void (*done)(struct cl_proposal *p, status st, const struct kv_applied *a);
};

struct cl_flush_job {
    struct pool_job job;
    struct cl_shard *shard;
    struct kv_flush *flush;
    struct cl_flush_work work; /* of the flush thread */
    char dir[PATH_MAX];        /* for its files */
    uint64_t started_us, bytes;
    status result;
};
struct cl_prefetch_job {
    struct pool_job job;
    struct cl_shard *shard;
    bytes key;
    uint8_t key_data[KV_KEY_MAX];
};

struct cl_shard {
    struct cl_node *node;
    uint64_t id;
    unsigned position; /* in node->shards */
    enum kv_table table;
    const char *name; /* of the table */
    struct kv_state *state;
    struct raft *raft;
    struct cl_group group; /* among others: its time */
    struct arena arena;    /* of one apply */

    struct list waiting, urgent; /* proposals not yet proposed; urgent: `system` ones */
    struct list inflight;        /* proposed, by index */
    unsigned waiting_count, inflight_count;
    uint64_t committed_us; /* when commit last advanced */

    uint64_t applied;      /* entries of any kind up to here are done */
    uint64_t ready_index;  /* served once this is applied */
    bool installing;       /* gets its state from another replica: nothing is applied or flushed */
    bool unsaid;           /* it did, and the log does not say so yet (stream.c) */
    bool leading, opened;  /* among others: leads; and has begun to serve, see host.c */
    uint64_t gather_index; /* the last entry when the maintenance looked last */
    uint64_t leading_term, asked_term; /* asked: in which a leader wished that this node leads */
    uint64_t reads_asked, reads_confirmed; /* tokens of rounds, ascending; see cl_host_read */
    bool handing, kept;      /* at a stop: another was asked to lead it; nobody is there to ask */
    uint64_t outside_leader; /* no member any more: who said so, and leads; 0 = is one, or waits */
    bool heard;              /* of a leader since the start, which had committed up to: */
    uint64_t heard_commit;
    status fenced;       /* ST_OK, or why nothing is applied any more */
    unsigned holds;      /* who needs the state to stand still: apply pauses while > 0 */
    bool prefetching;    /* apply waits for a cold block */
    bool apply_later;    /* nobody waits for what was stored: answers of this turn go out first */
    unsigned cold_tries; /* of the entry at hand, */
    uint64_t cold_first; /* and a hash of the key that was the first cold one */

    bool flushing;
    bool flush_by_clock;     /* a snapshot waits for it: not for commands, see shard_flush.c */
    uint64_t flush_retry_us; /* not before */
    uint64_t unsealed_us;    /* when the active generation got its first change, 0 = it has none */
    struct cl_prefetch_job prefetch;
    struct cl_flush_job flush;
    struct cl_proposal tick; /* moves log time for a flush that waits */
    bool ticking;

    uint64_t flush_errors, cuts, stalls;
    struct histogram flush_us;
};

NODISCARD status cl_shard_open(struct cl_node *n, unsigned position, struct cl_shard **out,
                               struct err *err);
void cl_shard_close(struct cl_shard *s); /* NULL is fine */
/* The shard that holds T; NULL if no shard does. */
struct cl_shard *cl_shard_of(struct cl_node *n, enum kv_table t);

/* Is the shard there for clients? ST_SHUTDOWN, ST_CORRUPT or ST_IO (fenced, or the log is lost),
 * ST_NOT_LEADER; ERR says it. */
NODISCARD status cl_shard_serving(const struct cl_shard *s, struct err *err);
/* The same without words. */
bool cl_shard_here(const struct cl_shard *s);
/* The same, and all that is committed is applied: only then may a read look here without a
 * question. A follower may have applied, and shown, what this leader's own disk still owes. */
bool cl_shard_current(const struct cl_shard *s);
/* For a reader at any node: up to where it must have applied, which is all that is committed, and a
 * stamp for a snapshot of that. */
struct cl_read_point cl_shard_read_point(struct cl_shard *s);
/* The same as cl_shard_here, and has it room for a command? ST_NO_MEMORY, ST_DISK_FULL. */
NODISCARD status cl_shard_admit(struct cl_shard *s, struct err *err);
void cl_shard_propose(struct cl_shard *s, struct cl_proposal *p);
/* A stamp for a snapshot of what is applied now: nothing stamped at or below it is still on its way
 * or will ever come. It is recent also when the shard has been idle for long. */
hlc_ts cl_shard_snapshot(struct cl_shard *s);
/* End of a turn: proposes what waits, as far as the log takes it. */
void cl_shard_propose_waiting(struct cl_shard *s);
struct raft_input;
/* The own log is durable up to what IN says (its stored_*). */
void cl_shard_stored(struct cl_shard *s, struct raft_input *in);
/* Starts an election; the only voter wins it in the same step. */
void cl_shard_campaign(struct cl_shard *s);
/* Leader, and its log is applied up to what it held when it began to lead. */
bool cl_shard_ready(const struct cl_shard *s);
/* The node that leads, 0 if it is not known. */
uint64_t cl_shard_leader(const struct cl_shard *s);
bool cl_shard_idle(const struct cl_shard *s); /* nothing waits and nothing is under way */
/* Answers everything under way: what was proposed with ST_OUTCOME_UNKNOWN, the rest with ST. */
void cl_shard_abandon(struct cl_shard *s, status st);

/* Apply stands still between these two; they nest. shard_apply.c */
void cl_shard_hold(struct cl_shard *s);
void cl_shard_release(struct cl_shard *s);
/* Applies what is committed, as far as it can; a turn's worth at most. */
void cl_shard_apply(struct cl_shard *s);
bool cl_shard_behind(const struct cl_shard *s); /* it could apply more */
/* Damage: nothing is applied, proposed or flushed any more; what waits is answered. */
void cl_shard_fence(struct cl_shard *s, status st);

/* shard_flush.c: seals, starts a due flush, moves log time for it; cheap enough for every turn. */
void cl_shard_flush_poll(struct cl_shard *s);
/* Once in a while: age, memory pressure, the log's limit, waiters. */
void cl__flush_maintain(struct cl_node *n);
/* How much of a processor flushes may take now; each turn that has something to look at. */
void cl__flush_pace(struct cl_node *n);
/* At a start: files of flushes that a crash ended go. */
void cl__flush_clean(struct cl_node *n);
/* Calls waiters whose condition has come true, or who would wait for ever. */
void cl__flush_check_waits(struct cl_node *n);
/* Proposes a command that changes nothing, so that the state's index moves. */
void cl_shard_tick(struct cl_shard *s);
/* Too much is in memory: seals the shard that has most, unless its seal is waiting already. */
void cl__flush_pressure(struct cl_node *n);
size_t cl__memtable_bytes(const struct cl_node *n);
/* At a stop, when nothing is under way: begins flushes of what is not in the store. False: there is
 * none to begin. */
bool cl__flush_stop(struct cl_node *n);
/* Is a flush under way, or may one begin as things are? */
bool cl__flush_ahead(const struct cl_node *n);
/* Seals everything and calls W's done when all that is applied now is persisted. */
void cl__flush_wait(struct cl_node *n, struct cl_flush_wait *w);

#endif
