/*
 * kv/state.h — the replicated state of one shard: generations of memtables over the store.
 *
 * Writer: the shard's reactor, one command at a time, between kv_state_begin and kv_state_end.
 * Readers: any registered RCU thread, never blocked; what they see is the state after a whole
 * command. A reader on a pool thread uses KV_TIER_ANY and is inside rcu_online only while it copies
 * from memtables (kv_scan and kv_state_get do that themselves when `pool` is set in the view).
 *
 * Reading a directory's _attr_ key gives columns as of the snapshot, but num_children, mtime and
 * ctime as of now: the newest image plus the deltas above it.
 */
#ifndef KV_STATE_H
#define KV_STATE_H

#include "kv/delete_density.h"
#include "kv/key.h"
#include "kv/memtable.h"
#include "kv/store.h"
#include <stdatomic.h>

struct kv_state;

/* One record per shard in the store, written with every generation; also the in-memory counters.
 * Part of the replicated state: changed only by commands. */
struct kv_shard_record {
    uint64_t applied_index, applied_term;
    hlc_ts applied_ts;
    uint64_t next_file_id;  /* counter behind ids of files drawn by the server */
    uint64_t queue_acked;   /* stamp up to which queue items are delivered */
    uint32_t range_locks;   /* rows of KV_LOCK that lock a range of names */
    uint32_t version;       /* cluster version that gates handler behaviour */
    hlc_ts answers_dropped; /* stamp up to which answers are forgotten, see dedup.h */
};

struct kv_state_options {
    uint64_t shard;
    uint64_t memtable_bytes;   /* seal above it */
    uint64_t filter_for_bytes; /* size of the memtables' filters: for so much; 0 = none */
    uint64_t retention_us;     /* keep a sealed generation this much log time before its flush */
    enum kv_table table;       /* of this shard, where several share the store; 0 = it is alone */
    uint64_t dense; /* so many deletions in a range are worth a compaction; 0 = KV_DENSE */
};
#define KV_DENSE 10000u

/* Reads the shard's record; a shard without one starts empty. ST_CORRUPT, ST_IO. */
NODISCARD status kv_state_open(struct kv_store *store, const struct kv_state_options *o,
                               struct kv_state **out, struct err *err);
void kv_state_close(struct kv_state *s);
/* As of the last whole command. Owner thread; kv_state_applied_ts from any thread. */
const struct kv_shard_record *kv_state_record(const struct kv_state *s);
struct kv_shard_record *kv_state_record_mut(struct kv_state *s); /* inside a command */
hlc_ts kv_state_applied_ts(const struct kv_state *s);
uint64_t kv_state_persisted_index(const struct kv_state *s); /* the log may be cut up to here */

/* -- reading ---------------------------------------------------------------------------------- */

struct kv_cell {
    hlc_ts ts;       /* of the version: the row's seq */
    bytes row;       /* row bytes; borrowed from the memtable or the view's arena */
    bool aggregated; /* a directory's _attr_ row: the three below replace the row's columns */
    int64_t num_children, mtime, ctime;
    hlc_ts counted; /* of the newest change in them */
};

struct kv_view {
    struct kv_state *state;
    hlc_ts at; /* HLC_MAX = latest; inside a command the owner then sees its own writes */
    enum kv_tier tier;
    bool pool;           /* on a pool thread: offline by default */
    struct arena *arena; /* copies of what came from the store, or of everything if `pool` */
};

/* ST_OK, ST_NOT_FOUND (absent or deleted), ST_COLD, ST_IO, ST_CORRUPT; ST_CONFLICT when the store
 * already holds newer state than the snapshot `at`, which then is older than the retention. */
NODISCARD status kv_state_get(const struct kv_view *v, bytes key, struct kv_cell *out);
/* Newest stamp of KEY above AFTER in memory, 0 if none; *deleted tells its kind. Never cold:
 * versions younger than a live snapshot are all in memtables. */
hlc_ts kv_state_newer(const struct kv_state *s, bytes key, hlc_ts after, bool *deleted);
/* Brings what kv_state_get(KEY), or a scan that stands at KEY, needs into the block cache. Pool
 * threads. */
void kv_state_prefetch(struct kv_state *s, bytes key);

/* Visible entries of [lower, upper) in order, or backwards. Short-lived: one page. What the same
 * command puts ahead of an open scan may or may not be seen by it. */
struct kv_scan;
struct kv_scan *kv_scan_open(const struct kv_view *v, bytes lower, bytes upper, bool backwards);
/* Right after the open: who writes counts each entry of a directory in the directory's row, so that
 * nothing has to be looked for in one that counts none, however much was deleted there. */
void kv_scan_trust_counts(struct kv_scan *s);
/* ST_OK with an entry (borrowed until the next call), ST_END, ST_COLD (go on with a new scan on a
 * pool thread from the last key), ST_IO, ST_CORRUPT, ST_CONFLICT as for kv_state_get. */
NODISCARD status kv_scan_next(struct kv_scan *s, bytes *key, struct kv_cell *cell);
/* The same entry after entry: each to FN, which lends it during the call and returns false for the
 * last one wanted; then ST_OK. Ends as kv_scan_next does otherwise. */
typedef bool kv_scan_fn(void *arg, bytes key, const struct kv_cell *cell);
NODISCARD status kv_scan_each(struct kv_scan *s, kv_scan_fn *fn, void *arg);
/* Goes on at the first entry at or after KEY, which lies not behind where the scan stands. Forward
 * only; KEY is borrowed until the next call of this or the end. */
void kv_scan_seek(struct kv_scan *s, bytes key);
/* The last key that kv_scan_each passed, given out or not; empty at the start. */
bytes kv_scan_last(const struct kv_scan *s);
/* Entries passed over so far that gave no row: deletions and versions younger than the snapshot. */
uint64_t kv_scan_skipped(const struct kv_scan *s);
void kv_scan_close(struct kv_scan *s); /* NULL is fine */

/* Row of KEY and CELL: key columns, value columns, aggregates, seq. Borrows both. ST_CORRUPT. */
NODISCARD status kv_cell_row(struct arena *a, bytes key, const struct kv_cell *cell,
                             struct kv_row *out);
/* The same for the columns in WANTED; others of OUT are as they were or as they should be. */
NODISCARD status kv_cell_row_some(struct arena *a, bytes key, const struct kv_cell *cell,
                                  kv_column_set wanted, struct kv_row *out);

/* Where deletions of this shard lie in the store. Any thread. */
struct kv_density *kv_state_density(struct kv_state *s);

/* -- writing: the owner, inside one command --------------------------------------------------- */

void kv_state_begin(struct kv_state *s, uint64_t index, uint64_t term, hlc_ts ts);
void kv_state_put(struct kv_state *s, bytes key, bytes row, bool fresh);
void kv_state_delete(struct kv_state *s, bytes key, bool fresh);
void kv_state_delta(struct kv_state *s, bytes attr_key, int64_t children, int64_t mtime,
                    int64_t ctime);
/* Queue of quota and index items for the sink; delivered in order of stamps, at most one record a
 * command. */
void kv_state_queue_push(struct kv_state *s, bytes items);
void kv_state_queue_push_take(struct kv_state *s, struct buf *items);
void kv_state_queue_ack(struct kv_state *s, hlc_ts up_to);
void kv_state_end(struct kv_state *s); /* publishes applied index and stamp */
/* How many rows of namespace 0 were written since the state was opened: whoever keeps a copy of
 * them sees that it is old. The owner. */
uint64_t kv_state_system_writes(const struct kv_state *s);
/* False: there is no row of table lifecycle at any snapshot. Any thread. */
bool kv_state_has_rules(const struct kv_state *s);
uint64_t kv_state_rule_writes(const struct kv_state *s); /* of such rows; the owner */

/* -- queue: the owner ------------------------------------------------------------------------- */

/* Calls FN for records with a stamp above AFTER, oldest first, until it returns false. */
void kv_state_queue_each(struct kv_state *s, hlc_ts after,
                         bool (*fn)(void *, hlc_ts ts, bytes items), void *arg);
uint64_t kv_state_queue_length(const struct kv_state *s);

/* -- generations: the owner, but kv_flush_run on a pool thread --------------------------------- */

/* Seals the active generation if it is over its size (or FORCE and not empty). */
bool kv_state_seal(struct kv_state *s, bool force);
/* The next forced seal carries the applied index even if no command since has changed anything:
 * what an idle shard needs so that its no-ops do not pin the log. */
void kv_state_touch(struct kv_state *s);
size_t kv_state_memory(const struct kv_state *s);
/* Stamp that log time must reach before the oldest sealed generation may be flushed; 0 = none. */
hlc_ts kv_state_flush_due(const struct kv_state *s);

/* The oldest sealed generation, pruned into one atomic batch: newest state of each key, folded
 * attributes, queue, and the shard's record as of the seal. NULL when none is due at LOG_TIME. */
struct kv_flush;
#define KV_KEPT_MAX 256u
struct kv_flush *kv_flush_new(struct kv_state *s, hlc_ts log_time);
/* Before it runs: stores a copy of WHAT, at most KV_KEPT_MAX bytes, in the same batch. */
void kv_flush_keep(struct kv_flush *f, bytes what);
/* What the last flush of SHARD was given to keep. ST_NOT_FOUND: none was. */
NODISCARD status kv_state_kept(struct kv_store *store, uint64_t shard, struct arena *a, bytes *out);
/* Before it runs: a generation of at least BYTES_MIN is written in small pieces into files in DIR
 * (as for kv_store_load_new), with PAUSE called between them, and then put into the cache. */
struct kv_flush_pieces {
    const char *dir; /* lives until the flush is done */
    size_t bytes_min;
    void (*pause)(void *arg);
    void *arg;
};
void kv_flush_in_pieces(struct kv_flush *f, const struct kv_flush_pieces *how);
/* Pool thread: builds, writes and flushes. ST_IO, ST_DISK_FULL, ST_CORRUPT: not known to be
 * persisted, as a whole or not at all; a later flush of the same generation does no harm. */
NODISCARD status kv_flush_run(struct kv_flush *f);
/* Owner: drops the generation if RESULT is ST_OK, else keeps it. Frees F. */
void kv_flush_done(struct kv_flush *f, status result);

struct kv_state_stats {
    uint64_t generations, memory_bytes, entries, queue_length, persisted_index, flushes;
    uint64_t keys_flushed, keys_pruned, tombstones_flushed, versions_pruned, deltas_folded;
    hlc_ts oldest_generation;
};
void kv_state_stats(const struct kv_state *s, struct kv_state_stats *out);
/* Order-independent hash of the visible state as of now: rows with aggregates, hidden rows, queue,
 * counters; not the applied index or term. Same state, same hash, wherever it lives. Pool thread
 * with no command running, or the owner. ST_CANCELLED soon after *CANCEL, which may be NULL. */
NODISCARD status kv_state_hash(struct kv_state *s, const atomic_bool *cancel, uint64_t *out);

#endif
