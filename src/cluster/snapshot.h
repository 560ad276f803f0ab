/*
 * cluster/snapshot.h — shards' states on their way between this node and others.
 *
 *   leader                                                          follower
 *     raft: snapshot_for ─▶ cl_snapshot_begin
 *       the store is flushed up to an index; RAFT_SNAPSHOT_READY
 *     raft's SNAPSHOT message ───────────────────────────────▶ raft: install
 *                                                              cl_snapshot_fetch
 *     ◀─────────── CHUNK open: shard, index, term ──────────── a stream of its own choosing
 *     ◀─────────── CREDIT: so many bytes ─────────────────────
 *     CHUNK, CHUNK, … (kv/snapshot.h, one part each) ────────▶ into files, CREDIT back
 *     CHUNK last ────────────────────────────────────────────▶ one ingestion; RAFT_INSTALLED
 *
 * Either side ends a stream by CHUNK abort; a connection that breaks ends all of its streams. A
 * transfer that failed is tried again from its beginning, after a pause that doubles. What holds
 * memory: at the sender one part per stream; at the receiver what it gave credit for.
 *
 * Owner: reactor 0 (role_shard); parts are read and written on pool threads.
 */
#ifndef CLUSTER_SNAPSHOT_H
#define CLUSTER_SNAPSHOT_H

#include "cluster/shard.h"

struct cl_snapshots;

struct cl_snapshots *cl_snapshots_new(struct cl_node *n); /* removes what an earlier one left */
void cl_snapshots_free(struct cl_snapshots *x); /* no job is under way; NULL is fine, as below */

/* REPLICA lacks what the log here no longer holds. Ends in RAFT_SNAPSHOT_READY or _FAILED. */
void cl_snapshot_begin(struct cl_shard *s, uint64_t replica);
/* Replace the state of S by SNAPSHOT of FROM_NODE. Ends in RAFT_INSTALLED or _INSTALL_FAILED. */
void cl_snapshot_fetch(struct cl_shard *s, uint64_t from_node,
                       const struct raft_snapshot *snapshot);

/* What the transport calls; ARG is the node. */
void cl_snapshots_chunk(void *arg, uint64_t node, uint64_t stream, uint64_t offset, uint8_t flags,
                        bytes payload);
void cl_snapshots_credit(void *arg, uint64_t node, uint64_t stream, uint64_t more);
/* The connection to NODE came or went. */
void cl_snapshots_changed(struct cl_snapshots *x, uint64_t node, bool up);
/* A flush of S was done, and no other has begun. */
void cl_snapshots_flushed(struct cl_snapshots *x, struct cl_shard *s);
/* Once in a while: what waits for time, room or others. */
void cl_snapshots_poll(struct cl_snapshots *x);

/* -- what the log is told late ----------------------------------------------------------------- */

/* What is stored beside a state that came from another replica (kv_state_note): enough to tell, at
 * a start that finds no word of it in the log, that the log is not lost. */
struct cl_installed {
    uint64_t hard_term; /* of the replica when it began to get it: durable in its log before */
    struct raft_snapshot snapshot;
};
void cl_installed_encode(const struct cl_installed *in, struct obuf *out);
NODISCARD status cl_installed_decode(bytes note, struct cl_installed *out);
/* Did what the store has of S come from another replica, as the last thing that changed it? */
bool cl_installed_find(const struct cl_shard *s, struct cl_installed *out);

/* -- for operators ----------------------------------------------------------------------------- */

struct cl_snapshot_transfer {
    bool sends;
    uint64_t shard, node, index; /* node: the other one */
    const char *state;
    uint64_t bytes, started_us; /* on the monotonic clock */
};
void cl_snapshots_each(const struct cl_snapshots *x,
                       void (*fn)(void *arg, const struct cl_snapshot_transfer *t), void *arg);
struct cl_snapshot_counters {
    uint64_t offered, sent, send_failed, bytes_sent;
    uint64_t begun, installed, failed, damaged, bytes_received;
};
struct cl_snapshot_counters cl_snapshots_counters(const struct cl_snapshots *x);

#endif
