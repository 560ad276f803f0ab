/*
 * kv/op.h — one writing operation of the catalogue, bound: what the planner makes, what the log
 * carries, what a handler runs.
 *
 * Plain data; everything it points to is borrowed. An operation is complete in itself: time and
 * seed are in it, so running it twice on the same state gives the same bytes.
 */
#ifndef KV_OP_H
#define KV_OP_H

#include "base/err.h"
#include "kv/row.h"

enum kv_op_kind {
    KV_OP_INSERT = 1,   /* meta (create, mkdir), kv, object */
    KV_OP_UPDATE,       /* set columns of one row; on meta never pid or name */
    KV_OP_DELETE,       /* by key(s); on meta a directory must be empty */
    KV_OP_DELETE_RANGE, /* meta: files of a directory by a range of names; kv, object: keys */
    KV_OP_MOVE,         /* rename and POSIX move */
    KV_OP_LINK,         /* hard link */
    KV_OP_MAKE_PATH,    /* mkdir -p */
    KV_OP_DETACH,       /* remove_tree: unhooks an entry and its subtree */
    KV_OP_LOCK, /* SELECT … FOR UPDATE: counts as a write at commit; absent keys are skipped */
    KV_OP_BOOTSTRAP, /* meta: makes the root directory of the namespace if it is missing */
    KV_OP_RECLAIM,   /* meta: takes away a slice of what DETACH left below directory `pid` */
    KV_OP_EXPIRE,    /* object: takes away what has expired of a range, some of it (lifecycle.h) */
};

enum kv_conflict { KV_CONFLICT_ERROR, KV_CONFLICT_NOTHING, KV_CONFLICT_UPDATE };
enum kv_set_kind {
    KV_SET_VALUE,    /* col = value */
    KV_SET_ADD,      /* col = col + value; 22003 on overflow; NULL stays NULL */
    KV_SET_GREATEST, /* col = greatest(col, value); NULLs are ignored as in PostgreSQL */
    KV_SET_LEAST,
    KV_SET_EXCLUDED, /* ON CONFLICT DO UPDATE: col = excluded.from */
};
struct kv_set {
    unsigned column;
    enum kv_set_kind kind;
    struct kv_datum value;
    unsigned from; /* KV_SET_EXCLUDED: column of the proposed row */
};

/* A condition beside the key: column OP value; NULL on either side is false. */
enum kv_cmp { KV_EQ = 1, KV_NE, KV_LT, KV_LE, KV_GT, KV_GE, KV_IS_NULL, KV_IS_NOT_NULL };
struct kv_filter {
    unsigned column;
    enum kv_cmp cmp;
    struct kv_datum value;
};

enum kv_move_mode {
    KV_MOVE_NOREPLACE,
    KV_MOVE_REPLACE,
    KV_MOVE_EXCHANGE,
    KV_MOVE_RENAME /* the UPDATE form */
};

struct kv_op {
    enum kv_op_kind kind;
    enum kv_table table;
    uint32_t ns;
    int64_t now;    /* timestamptz of the statement or transaction */
    uint64_t seed;  /* for ids drawn by the handler */
    bool want_rows; /* RETURNING: result rows as they are afterwards (DELETE: as they were) */

    /* INSERT: row_count rows of column_count values for `columns` */
    const unsigned *columns;
    unsigned column_count;
    const struct kv_datum *values; /* row after row */
    unsigned row_count;
    enum kv_conflict conflict;

    /* UPDATE, DELETE, LOCK: key_count keys of the table's key columns, key after key */
    const struct kv_datum *keys;
    unsigned key_count;
    const struct kv_set *sets; /* UPDATE; INSERT with KV_CONFLICT_UPDATE */
    unsigned set_count;
    const struct kv_filter *filters; /* UPDATE, DELETE, MOVE: a row that fails one is not touched */
    unsigned filter_count;

    /* DELETE_RANGE, EXPIRE: encoded key bounds [lower, upper) */
    bytes lower, upper;

    /* MOVE, LINK, DETACH: source (pid, name), target (new_pid, new_name); MAKE_PATH: pid and, in
     * name, the path */
    int64_t pid, new_pid;
    bytes name, new_name;
    enum kv_move_mode move;
};

struct kv_result {
    int64_t affected;          /* rows, for the command tag */
    const struct kv_row *rows; /* RETURNING; in the arena given to the handler */
    unsigned row_count;
    struct kv_datum
        scalar; /* MOVE: id moved (bigint); LINK: link count; MAKE_PATH: last id; DETACH: id;
                            * RECLAIM: 1 when more is left, else 0 */
};

/* Bytes for log and network, and back. Decoding borrows IN and allocates arrays in A. ST_CORRUPT.
 * */
void kv_op_encode(const struct kv_op *op, struct obuf *out);
struct reader;
NODISCARD status kv_op_decode(struct reader *in, struct arena *a, struct kv_op *out);

#endif
