/*
 * kv/handler.h — inside kv: what the handlers share, and one entry point for each of them.
 *
 * A handler runs one struct kv_op on a write set. It returns the statuses of SQL.md 4 with the
 * error filled; kv_op_run undoes its writes then. Deterministic: time and seed come from the
 * operation. A row of a directory or of a file with several links is *split*: the entry holds id
 * and type, the row (id, _attr_) the rest. An entry that is not split is *inline*.
 */
#ifndef KV_HANDLER_H
#define KV_HANDLER_H

#include "kv/aux.h"
#include "kv/lifecycle.h"

/* What one call of kv_op_run carries around. */
struct kv_run {
    struct kv_txn *t;
    const struct kv_op *op;
    const struct kv_table_def *def;
    struct arena *a;
    struct kv_result *res;
    struct err *err;
    struct kv_row *rows; /* RETURNING, growing */
    unsigned row_capacity;
    uint64_t drawn; /* ids drawn by this operation so far */
    /* Directories that this INSERT of several rows has found to take entries; handler_insert.c */
    struct kv__known_parent *parents;
    unsigned parents_bits;
    /* Of the bucket that a row was looked at last; handlers.c */
    struct kv_rules rules;
    bytes rules_bucket;
};

/* -- handlers ---------------------------------------------------------------------------------- */

NODISCARD status kv__insert(struct kv_run *r);
NODISCARD status kv__update(struct kv_run *r);
NODISCARD status kv__delete(struct kv_run *r);
NODISCARD status kv__delete_range(struct kv_run *r);
NODISCARD status kv__move(struct kv_run *r);
NODISCARD status kv__link(struct kv_run *r);
NODISCARD status kv__make_path(struct kv_run *r);
NODISCARD status kv__detach(struct kv_run *r);
NODISCARD status kv__expire(struct kv_run *r);
NODISCARD status kv__reclaim(struct kv_run *r);
NODISCARD status kv__bootstrap(struct kv_run *r);
/* Changes of users' quota that are not in their rows yet. Zeroed at the start. */
#define KV__SUMS 64u
struct kv__change {
    bool any;
    int64_t by;
    hlc_ts ts; /* of the newest */
};
struct kv__sums {
    struct kv__sum {
        uint32_t ns;
        int64_t uid;
        struct kv__change files, dirs, size;
    } slot[KV__SUMS];
};
/* One stamped record of a queue, at the destination, in order of stamps. TABLES as in
 * kv_command_items. */
NODISCARD status kv__take_items(struct kv_txn *t, unsigned tables, hlc_ts ts, bytes items,
                                struct kv__sums *sums, struct arena *a);
/* Brings SUMS into the rows. */
NODISCARD status kv__take_sums(struct kv_txn *t, struct kv__sums *sums, struct arena *a);

/* -- results (handlers.c) ---------------------------------------------------------------------- */

/* Counts a row, and copies it for RETURNING if the operation wants rows. */
void kv__affected(struct kv_run *r, const struct kv_row *row);
/* Gives ROW, which this operation wrote, the seq it gets: NULL inside a transaction. */
void kv__own_seq(struct kv_run *r, struct kv_row *row);
/* Runs op->keys: FN for each key that has no NULL in it. */
NODISCARD status kv__each_key(struct kv_run *r,
                              status (*fn)(struct kv_run *r, const struct kv_datum *key));

/* -- values (values.c) ------------------------------------------------------------------------- */

/* The row that op's INSERT proposes at INDEX: given values, defaults for the rest. */
NODISCARD status kv__proposed_row(struct kv_run *r, unsigned index, struct kv_row *row);
/* NULL where there is none, and for id, which the caller draws. DIR: for a directory of meta. */
struct kv_datum kv__default(const struct kv_run *r, unsigned column, bool dir);
/* NULLs, ranges and lengths of all columns of ROW but the name of an entry. */
NODISCARD status kv__check_values(struct kv_run *r, const struct kv_row *row);
/* SET of NEW from OLD (and EXCLUDED, may be NULL). Refuses columns that cannot be set. */
NODISCARD status kv__apply_sets(struct kv_run *r, const struct kv_row *old,
                                const struct kv_row *excluded, struct kv_row *out);
bool kv__sets_column(const struct kv_op *op, unsigned column);
bool kv__filters_match(enum kv_table t, const struct kv_filter *filters, unsigned count,
                       const struct kv_row *row);
/* Does the row of kv or object expire at or before NOW? False for other tables. */
bool kv__expired(const struct kv_rules *rules, const struct kv_row *row, int64_t now);
/* The same for ROW that the operation has found, at its own time. */
NODISCARD status kv__found_expired(struct kv_run *r, const struct kv_row *row, bool *out);
/* Do the operation's bounds lie in its table and namespace? */
bool kv__bounds_are_ours(struct kv_run *r);
/* 23505 on the table's primary key, as PostgreSQL words it. */
status kv__exists_error(struct kv_run *r, const struct kv_row *row);

/* -- rows over a write set (entry.c) ----------------------------------------------------------- */

/* kv_cell_row, but: seq is NULL when unknown, and only directories have aggregates. */
NODISCARD status kv__cell_row(struct arena *a, bytes key, const struct kv_cell *cell,
                              struct kv_row *out);
/* kv_cell_row_some with these differences. */
NODISCARD status kv__cell_row_some(struct arena *a, bytes key, const struct kv_cell *cell,
                                   kv_column_set wanted, struct kv_row *out);
/* The same for many rows, with the columns of READER. */
NODISCARD status kv__cell_row_read(const struct kv_row_reader *reader, struct arena *a, bytes key,
                                   const struct kv_cell *cell, struct kv_row *out);
/* kv_txn_get and kv__cell_row. */
NODISCARD status kv__get_row(struct kv_txn *t, struct arena *a, bytes key, struct kv_row *out);
NODISCARD status kv__put_row(struct kv_run *r, bytes key, const struct kv_row *row);

/* An entry of meta with the attributes of its inode. */
struct kv_entry {
    bytes key;
    struct kv_row row;  /* as SELECT shows it */
    bytes attr_key;     /* split: (id, _attr_) */
    struct kv_row attr; /* split: that row; else a copy of `row` */
    bool split, dir;
};
/* ST_NOT_FOUND without an error text: the caller says what that means. */
NODISCARD status kv__entry_find(struct kv_txn *t, struct arena *a, uint32_t ns, int64_t pid,
                                bytes name, struct kv_entry *out);
/* WHERE of the operation: over the row as SELECT shows it, or with the attributes beside it. */
bool kv__entry_matches(const struct kv_run *r, const struct kv_entry *e);
/* The entry's attributes in one row: key columns and id of the entry, seq the larger one. */
void kv__entry_merge(const struct kv_entry *e, struct kv_row *out);
static inline bool kv__row_is_split(const struct kv_row *row)
{
    return row->col[META_TYPE].i == KV_TYPE_DIR || row->col[META_MODE].null;
}

/* The entry that the operation names, which is no directory's own row. ST_NOT_FOUND without an
 * error text; 42939. */
NODISCARD status kv__entry_named(struct kv_run *r, struct kv_entry *out);
/* The same, or P0002. */
NODISCARD status kv__entry_required(struct kv_run *r, struct kv_entry *out);
/* P0002: no entry NAME in directory PID. */
status kv__no_entry(struct kv_run *r, int64_t pid, bytes name);
/* 23505: the operation's new name is there. */
status kv__target_exists(struct kv_run *r);
/* 42939, 22023, 22001, 22021. */
NODISCARD status kv__check_name(struct kv_run *r, bytes name);
/* Type and parent of the row (pid, _attr_) of a directory that takes entries, or 23503. Makes
 * commit require it. */
NODISCARD status kv__parent_find(struct kv_run *r, int64_t pid, bytes *attr_key,
                                 struct kv_row *attr);
/* Children and times of directory PID. */
void kv__touch_parent(struct kv_run *r, int64_t pid, int64_t children);
/* Is (id, _attr_) there? Then 23505 on meta_id_key. */
NODISCARD status kv__check_id_free(struct kv_run *r, int64_t id);
NODISCARD status kv__draw_dir_id(struct kv_run *r, int64_t *out);
int64_t kv__draw_file_id(struct kv_run *r);
/* A new directory: entry, own row, quota, parent's counter. ROW is complete but for `parent`. */
NODISCARD status kv__make_dir(struct kv_run *r, bytes key, const struct kv_row *row,
                              struct kv_row *entry);
/* The columns of ROW that a split inode's entry keeps. */
void kv__split_entry(const struct kv_row *row, struct kv_row *entry);
/* Quota of a new inode with attributes ATTR, and of one that went. */
void kv__inode_born(struct kv_run *r, const struct kv_row *attr);
void kv__inode_died(struct kv_run *r, const struct kv_row *attr);
/* Makes directory E a child of no directory, recorded as trash. Not the parent's counter. */
NODISCARD status kv__detach_dir(struct kv_run *r, const struct kv_entry *e);
/* Takes entry E away: the entry, and of its inode what goes with it. Not the parent's counter. */
NODISCARD status kv__unlink(struct kv_run *r, const struct kv_entry *e);

void kv__quota_item(struct kv_run *r, int64_t uid, int64_t files, int64_t dirs, int64_t size);
/* Puts or deletes the index row of ENTRY's name for the fid in ATTR; directories have none. */
void kv__index_item(struct kv_run *r, enum kv_item_kind kind, const struct kv_row *entry,
                    const struct kv_row *attr);

/* -- hidden keys (entry.c) --------------------------------------------------------------------- */

bytes kv__key_hidden(struct arena *a, enum kv_table t, uint32_t ns, bytes rest);
bytes kv__key_rename_lock(struct arena *a, uint32_t ns);
bytes kv__key_trash(struct arena *a, uint32_t ns, int64_t id);
bytes kv__key_mark(struct arena *a, uint64_t source, unsigned table_bit);
/* Where a write of KEY and a lock of KEY meet. */
bytes kv__key_lock(struct arena *a, bytes key);

/* The parent of a detached directory: it takes no entries and nothing can be moved below it. */
#define KV_TRASH_ID (-1)

/* -- write sets (txn.c) ------------------------------------------------------------------------ */

/* Was KEY written after MARK was taken? */
bool kv__txn_written_since(const struct kv_txn *t, bytes key, kv_txn_mark mark);
/* Is T at apply, over the latest state? */
bool kv__txn_at_apply(const struct kv_txn *t);
/* The next id of the shard's counter; taken for good by kv_txn_publish. At apply only. */
uint64_t kv__txn_take_file_id(struct kv_txn *t);
hlc_ts kv__txn_stamp(const struct kv_txn *t); /* 0 = unknown */
/* Puts ROW of any but a directory's own. ST_LIMIT. */
NODISCARD status kv__txn_put_row(struct kv_txn *t, bytes key, const struct kv_row *row);
/* Remembers KEY as the one to prefetch. */
void kv__txn_note_cold(struct kv_txn *t, bytes key);

/* A deterministic stream of random bits: the Nth of SEED. */
uint64_t kv__random(uint64_t seed, uint64_t n);

#endif
