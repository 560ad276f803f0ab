/*
 * kv/txn.h — a write set over a view: what handlers read and write.
 *
 * Two uses of the same code. At apply: over the latest state, then published at once. In a
 * session's transaction: over a snapshot, kept until COMMIT, then encoded as one command and
 * validated and published at apply. Nothing is visible to anyone else before kv_txn_publish.
 *
 * Holds, besides rows: attribute deltas, directories that must exist or be empty at commit, and the
 * quota and index items that the writes cause. One owner at a time.
 */
#ifndef KV_TXN_H
#define KV_TXN_H

#include "kv/op.h"
#include "kv/state.h"

struct kv_txn;

/* VIEW is copied; view.at is the snapshot (HLC_MAX at apply). Memory from A. */
struct kv_txn *kv_txn_new(struct arena *a, const struct kv_view *view);
struct kv_view *kv_txn_view(struct kv_txn *t);
/* At apply: the stamp that own rows get, so that RETURNING can show it. Otherwise their seq is
 * NULL. */
void kv_txn_set_stamp(struct kv_txn *t, hlc_ts stamp);
bool kv_txn_has_writes(const struct kv_txn *t);

/* -- for handlers ------------------------------------------------------------------------------ */

/* Own writes first, then the view; own deltas are added to aggregates. */
NODISCARD status kv_txn_get(struct kv_txn *t, bytes key, struct kv_cell *out);
/* ST_LIMIT over LIMIT_TXN_WRITES. */
NODISCARD status kv_txn_put(struct kv_txn *t, bytes key, bytes row);
/* A directory's _attr_ row. Its num_children is never taken from ROW: it is what the state has when
 * this is published, plus own deltas. So are mtime and ctime, if they are larger, unless set. */
struct kv_times_set {
    bool mtime, ctime;
};
NODISCARD status kv_txn_put_dir(struct kv_txn *t, bytes key, const struct kv_row *row,
                                struct kv_times_set set);
NODISCARD status kv_txn_delete(struct kv_txn *t, bytes key);
/* FOR UPDATE, and keys that exist only to be locked: conflicts at commit with every write or lock
 * of KEY by others; changes no row. */
NODISCARD status kv_txn_lock(struct kv_txn *t, bytes key);
void kv_txn_delta(struct kv_txn *t, bytes attr_key, int64_t children, int64_t mtime, int64_t ctime);
void kv_txn_require_dir(struct kv_txn *t, bytes attr_key);   /* must still exist at commit */
void kv_txn_require_empty(struct kv_txn *t, bytes attr_key); /* must be empty at commit */
void kv_txn_item(struct kv_txn *t, bytes item);              /* see aux.h */

/* Entries of [lower, upper) with own writes merged in. */
struct kv_txn_scan;
struct kv_txn_scan *kv_txn_scan_open(struct kv_txn *t, bytes lower, bytes upper, bool backwards);
NODISCARD status kv_txn_scan_next(struct kv_txn_scan *s, bytes *key, struct kv_cell *cell);
/* As kv_scan_each. */
NODISCARD status kv_txn_scan_each(struct kv_txn_scan *s, kv_scan_fn *fn, void *arg);
/* As kv_scan_seek. */
void kv_txn_scan_seek(struct kv_txn_scan *s, bytes key);
/* The last key passed, given out or not; empty at the start. Until the next call. */
bytes kv_txn_scan_last(const struct kv_txn_scan *s);
uint64_t kv_txn_scan_skipped(const struct kv_txn_scan *s); /* tombstones passed over */
void kv_txn_scan_close(struct kv_txn_scan *s);

/* -- statement atomicity and savepoints ---------------------------------------------------------
 * */

typedef struct kv_txn_mark {
    uint64_t writes, deltas, requires, items, file_ids;
} kv_txn_mark;
/* Reads pass over own writes from FROM on, which is the `writes` of a mark; UINT64_MAX: over none.
 * For the reads of a cursor; nothing may be written meanwhile. */
void kv_txn_hide_writes(struct kv_txn *t, uint64_t from);
/* Marks nest: going back to one forgets those taken after it. No scan may be open. */
kv_txn_mark kv_txn_save(struct kv_txn *t);
void kv_txn_rollback_to(struct kv_txn *t, kv_txn_mark mark);

/* -- the end ------------------------------------------------------------------------------------
 * */

/* The write set as bytes, for KV_CMD_TXN. */
void kv_txn_encode(const struct kv_txn *t, struct obuf *out);
/* Over the latest state: fills T from bytes and checks it against what was committed after
 * SNAPSHOT. ST_CONFLICT (first committer wins; a directory that went, or is no longer empty),
 * ST_COLD, ST_CORRUPT. */
NODISCARD status kv_txn_validate(struct kv_txn *t, bytes encoded, hlc_ts snapshot, struct err *err);
/* The owner, between kv_state_begin and kv_state_end of T's state. Cannot fail. */
void kv_txn_publish(struct kv_txn *t);

/* -- running operations: handlers.c dispatches ---------------------------------------------------
 * */

/* Runs OP on T. On any error T is as before the call. Result rows live in A. Statuses of SQL.md 4
 * with err filled; ST_COLD: nothing done, prefetch kv_txn_cold_key and call again. */
NODISCARD status kv_op_run(struct kv_txn *t, const struct kv_op *op, struct arena *a,
                           struct kv_result *res, struct err *err);
bytes kv_txn_cold_key(const struct kv_txn *t); /* the key that ended the last call with ST_COLD */

/* The id of a detached directory of NS that is not reclaimed yet, for KV_OP_RECLAIM.
 * ST_NOT_FOUND when there is none; ST_COLD, ST_IO, ST_CORRUPT. */
NODISCARD status kv_trash_find(const struct kv_view *v, uint32_t ns, int64_t *id);

#endif
