/*
 * cluster/cluster_internal.h — the node's parts, for the files of this folder and their tests.
 *
 * Everything here belongs to reactor 0's thread (role_shard) unless a field says otherwise; before
 * cl_node_start and after cl_node_stop's DONE it belongs to the thread that opened the node.
 */
#ifndef CLUSTER_CLUSTER_INTERNAL_H
#define CLUSTER_CLUSTER_INTERNAL_H

#include "base/hlc.h"
#include "base/list.h"
#include "cluster/client.h"
#include "cluster/identity.h"
#include "cluster/node.h"
#include "cluster/topology.h"
#include "kv/command.h"
#include "raft/log.h"
#include <pthread.h>
#include <stdatomic.h>

#define CL_INFLIGHT_MAX 8u
#define CL_DATABASES 2u
#define CL_SCRATCH_SPARE 64u

/* One shard per table until shards are cut; object's also holds lifecycle. The id of a shard is its
 * position + 1; ids are in the log and in the store. */
enum cl_shard_position { CL_META, CL_QUOTA, CL_INDEX, CL_KV, CL_OBJECT, CL_SHARDS };

struct cl_log_options {
    uint64_t segment_bytes, batch_bytes, group_wait_us, sync_delay_us;
    uint32_t batch_entries;
    bool keep_all;
    enum raft_log_writer writer;
};

/* Below it the empty memtables alone are over the budget, and no command would ever be taken. */
#define CL_MEMORY_BUDGET_MIN (1u << 20)

enum cl_compact_mode { CL_COMPACT_LOCAL, CL_COMPACT_GLOBAL };

/* Settings as numbers; const after init. */
struct cl_options {
    uint64_t memory_budget, memtables_budget, block_cache_bytes, runs_bytes;
    uint64_t memtable_bytes, memtable_age_us;
    uint64_t write_buffer_bytes;
    enum cl_compact_mode compact_mode;
    uint64_t compact_tombstones, compact_work, compact_rate;
    unsigned background_threads, pool_threads, parse_threads, reactors, inflight;
    unsigned long_read_threads; /* pool threads that long reads may use */
    uint64_t retain_bytes, retention_us;
    bool empty_store, flush_at_stop;
    uint64_t net_queue_bytes, net_delay_us;
    uint64_t election_us, heartbeat_us, quiesce_us, hand_over_us;
    uint64_t patience_us; /* of a statement with the others */
    uint64_t keep_bytes;  /* of each shard's log in memory, for others that lack it */
    uint64_t sink_linger_us, sink_bytes;
    unsigned sink_records;
    uint64_t txn_bytes, txn_bytes_total;
    uint64_t message_bytes;
    struct cl_log_options log;
};
void cl__options_read(const struct config *c, struct cl_options *o);
/* May clients' commands be taken, or do they wait for a flush to free memory? */
bool cl__has_memory(const struct cl_node *n);

/* How long a command spends between two stages, in microseconds. */
enum cl_stage {
    CL_STAGE_QUEUED,    /* handed over → proposed */
    CL_STAGE_PERSISTED, /* proposed → durable in the own log */
    CL_STAGE_COMMITTED, /* durable → known to be committed */
    CL_STAGE_APPLIED,   /* committed → applied */
    CL_STAGE_TOTAL,     /* handed over → applied */
    CL_STAGES
};

/* A batch handed to the log: what of each shard is durable once it is stored. */
struct cl_ticket {
    uint64_t ticket, submitted_us;
    struct {
        uint64_t index, term, epoch; /* 0 = no entry of this shard */
        struct raft_hard_state hard; /* zeros = none */
    } last[CL_SHARDS];
};

/* The log stream of a reactor, see stream.c. */
struct cl_stream {
    struct raft_log *log;
    uint64_t submitted, stored; /* tickets */
    struct cl_ticket ring[CL_INFLIGHT_MAX];
    struct cl_ticket open; /* what the next submit will cover */
    bool dirty;            /* something was appended since the last submit */
    status refused;        /* why the log takes no commands at present; ST_OK = it does */
};

struct cl_host;
struct cl_others;
struct cl_snapshots;
struct cl_forward;
struct cl_service;
struct cl_shard;
struct cl_sink;
struct cl_reclaim;
struct cl_compact;
struct cl_expire;
struct cl_long_reads;
struct cl_roles;

/* A reader of "everything up to here is persisted", see shard_flush.c. */
struct cl_flush_wait {
    struct list node;
    uint64_t target[CL_SHARDS]; /* applied index that must be persisted, 0 = nothing */
    void (*done)(struct cl_flush_wait *w);
};

struct cl_counters {
    uint64_t commands, reads, reads_cold, ops_cold, commits, conflicts, timeouts;
    uint64_t stalls;               /* applies that waited for a cold block */
    uint64_t disk_applies;         /* and that waited for the disk on the loop */
    uint64_t memory_waits;         /* turns in which commands waited for memory */
    uint64_t memory_refused;       /* calls answered 53200 */
    uint64_t full_refused;         /* calls answered 53100 */
    uint64_t led_asked, led_alone; /* shards led here, by a leader's wish or after its silence */
    uint64_t handed_over;          /* shards that another led when this node stopped */
    uint64_t forced_flushes;       /* sealed because the shard pinned too much log */
    uint64_t recovered_entries, recovered_bytes; /* of the log, to be applied again at the start */
};

/* See reserve.c. */
struct cl_reserve {
    struct pool_job job;
    struct cl_node *node;
    bool there, making;
    status result;     /* of the making */
    uint64_t retry_us; /* not before */
};

enum cl_node_phase {
    CL_NODE_OPEN,
    CL_NODE_RECOVERING,
    CL_NODE_SERVING,
    CL_NODE_STOPPING,
    CL_NODE_STOPPED
};

struct cl_node {
    struct env *env; /* const after init, as the next ones */
    const struct config *config;
    char *dir;
    struct cl_identity identity;
    uint64_t replica; /* this node's, of every shard */
    struct cl_topology topology;
    struct cl_transport *transport; /* NULL: the only node */
    struct cl_peer_tls *peer_tls;   /* NULL: in the clear */
    struct cl_host *host;           /* the same */
    struct cl_others *others;       /* the same */
    struct cl_snapshots *snapshots; /* the same */
    struct cl_forward *forward;     /* the same */
    struct cl_service *service;     /* the same */
    struct cl_options options;
    bool driven; /* by DRIVE: a simulation */
    struct cl_drive drive;
    uint64_t incarnation; /* of this process, in every command's origin */
    uint64_t started_us;
    int64_t started_unix_us;
    struct cl_reactor *reactors;
    pthread_t *threads;
    unsigned running; /* threads started */
    struct pool *pool, *parse_pool, *query_pool, *flush_pool, *compact_pool;
    struct cl_flush_pace *flush_pace;
    unsigned flushes; /* under way */
    struct kv_store *store;

    enum cl_node_phase phase;
    status failed;   /* latched: log or store lost for good */
    bool store_full; /* the last flush met a full disk */
    bool log_full;   /* shards pin twice what they may */
    struct hlc hlc;
    int64_t steady_us; /* the node's time at steady_mono_us, see cl__node_now_us */
    uint64_t steady_mono_us;
    uint64_t sequence;                      /* of the next command's origin */
    uint64_t turn_us;                       /* loop time of the turn whose hook has run */
    bool stirred;                           /* the turn's hook has something to look at */
    size_t memory_bytes;                    /* of memtables, as of the last hook */
    uint64_t waiting_bytes, inflight_bytes; /* of commands: not proposed yet; not applied yet */
    struct loop_turn *turn;
    struct loop_timer *timer; /* maintenance */
    struct cl_stream stream;
    struct cl_reserve reserve;
    struct cl_shard *shards[CL_SHARDS];
    struct cl_sink *sink;
    struct cl_reclaim *reclaim;
    struct cl_compact *compact;
    struct cl_expire *expire;
    struct cl_long_reads *long_reads;
    uint64_t short_calls, short_calls_seen; /* done on the reactor; as of the last hook */
    struct cl_roles *roles;                 /* from cl_roles_open to cl_roles_close */
    struct list flush_waits;                /* of cl_flush_wait */
    unsigned jobs;                          /* pool jobs under way */
    bool bootstrapped;                      /* start-up commands were proposed */
    bool announced;                         /* on_ready was called */
    unsigned bootstraps;                    /* of them, not yet applied */
    struct list open_transactions;          /* of cl_transaction */
    uint64_t txn_bytes;                     /* held by them */
    _Atomic uint64_t message_bytes;         /* held by unfinished ones, any reactor */
    _Atomic uint64_t messages_refused;
    unsigned clients, transactions;
    struct obuf encoding;                   /* a command on its way into its proposal */
    struct arena scratch[CL_SCRATCH_SPARE]; /* empty, for calls */
    unsigned scratch_count;
    struct cl_counters counters;
    struct histogram stages[CL_STAGES];
    void (*on_ready)(void *arg);
    void (*on_failed)(void *arg, status st);
    void (*on_stopped)(void *arg);
    void *event_arg, *stop_arg;
    bool draining; /* see cl_node_drain */
    bool stop_given_up;
    bool stop_flush_failed;
    uint64_t hand_over_us;     /* at a stop: until then others may take over */
    uint64_t stop_deadline_us; /* what is not durable by then is given up */
    uint64_t stop_flush_us;    /* no flush begins after that */
};

/* -- stream.c ---------------------------------------------------------------------------------- */

struct raft_output;
/* Appends what a step of S produced to the open batch. */
void cl__stream_append(struct cl_stream *t, struct cl_shard *s, const struct raft_output *out);
/* May another batch be started? */
bool cl__stream_open(const struct cl_node *n);
/* Hands the open batch to the log. */
void cl__stream_submit(struct cl_node *n);
NODISCARD status cl__stream_recover(struct cl_node *n, struct err *err);
void cl__stream_start(struct cl_node *n);

/* -- reserve.c --------------------------------------------------------------------------------- */

/* Gives the space of the reserve back. False: there was none. */
bool cl__reserve_release(struct cl_node *n);
/* At open: is it there? Later: makes it, when it is missing and there is space. */
void cl__reserve_find(struct cl_node *n);
void cl__reserve_poll(struct cl_node *n);

/* -- node.c ------------------------------------------------------------------------------------ */

/* The log or the store is lost: answers what is under way and tells the owner, once. */
void cl__node_fail(struct cl_node *n, status st);
/* Proposes what S gets when it begins to lead. */
void cl__node_bootstrap(struct cl_node *n, struct cl_shard *s);
/* Moves the phase on where its condition has come true. */
void cl__node_progress(struct cl_node *n);
/* Something of the shards changed: the hook of this turn or of the next one looks at it. */
static inline void cl__node_stir(struct cl_node *n)
{
    n->stirred = true;
}
/* The same, and the next turn comes at once if the hook has run. */
void cl__node_kick(struct cl_node *n);
/* Time for stamps: the wall clock, but going on a little slower than the monotonic clock where the
 * wall clock fell back, so that log time always moves and no flush waits for an hour to pass again;
 * and yet the wall clock catches up. */
int64_t cl__node_now_us(struct cl_node *n);
/* The same where the clock of another leader, whose stamps go on here, was far ahead of it. */
void cl__node_raise_now(struct cl_node *n, hlc_ts at_least);
struct kv_origin cl__node_origin(struct cl_node *n);
/* Runs JOB on the pool, counted so that a stop waits for it; its done calls cl__job_done. When the
 * queue is full the job runs later, without an error: it is tried again by the timer. */
NODISCARD status cl__job_start(struct cl_node *n, struct pool_job *job);
/* The same for a flush: on threads that give way to the reactor and to reads. */
NODISCARD status cl__flush_job_start(struct cl_node *n, struct pool_job *job);
/* The same for a compaction, one at a time. */
NODISCARD status cl__compact_job_start(struct cl_node *n, struct pool_job *job);
void cl__job_done(struct cl_node *n);
/* Microseconds as PostgreSQL's timestamptz. */
static inline int64_t cl__timestamptz(int64_t unix_us)
{
    return unix_us - 946684800000000ll;
}

#endif
