/*
 * kv/read.h — one reading operation of the catalogue, bound, executed page by page.
 *
 * A position is a key, never an iterator: between pages nothing is held, and a page can run on the
 * reactor (KV_TIER_QUICK) and continue on a pool thread (KV_TIER_ANY) where it met a cold block or
 * very many deletions.
 */
#ifndef KV_READ_H
#define KV_READ_H

#include "kv/txn.h"

enum kv_read_kind {
    KV_READ_POINTS,    /* keys, in the given order; absent ones give no row */
    KV_READ_RANGE,     /* encoded [lower, upper), forwards or backwards */
    KV_READ_COUNT,     /* the same, one row with the count in col[0] */
    KV_READ_RESOLVE,   /* path below pid: the entry, with its own attributes; no row if absent */
    KV_READ_LIST_ATTR, /* entries of pid after a name, with attributes of their inodes */
    KV_READ_OBJECTS,   /* a bucket as S3 lists it, see read_objects.c */
    KV_READ_USAGE,     /* one row: files, directories, bytes, as_of in col[0..3] */
    KV_READ_NOTHING,   /* a comparison with NULL: no rows; a count is 0 */
};

struct kv_read {
    enum kv_read_kind kind;
    enum kv_table table;
    uint32_t ns;
    const bytes *points;
    unsigned point_count;
    bytes lower, upper;
    bool backwards;
    bool count;            /* KV_READ_POINTS: give the count instead of rows */
    kv_column_set columns; /* POINTS, RANGE, COUNT: what ON_ROW looks at besides the key; 0 = all */
    const struct kv_filter *filters;
    unsigned filter_count;
    int64_t limit;     /* rows in all, -1 = no limit; a count is one row */
    int64_t now;       /* kv, object: rows expired by then are left out, 0 = none; USAGE: as_of */
    int64_t pid;       /* RESOLVE, LIST_ATTR, USAGE */
    bytes path, after; /* OBJECTS: `after` is an item, key or common prefix */
    bytes bucket, prefix, delimiter; /* OBJECTS; an empty delimiter: nothing is rolled up */
    uint64_t
        own_writes;  /* a cursor's: 1 + writes of the mark at its start; 0: sees all own writes */
    bool for_update; /* the caller locks the keys first (KV_OP_LOCK) */
};

/* Where a read stands. Zero at the start. `last` is in the arena given to kv_read_page. */
struct kv_read_pos {
    bytes last;        /* key delivered last */
    int64_t delivered; /* rows given out */
    int64_t counted;
    unsigned point;
    uint64_t skipped; /* tombstones passed over, for EXPLAIN and the density statistics */
    bool done;
    void *inner; /* state of RESOLVE, OBJECTS and USAGE */
};

/* Gives up to MAX_ROWS rows or about MAX_BYTES to ON_ROW (rows borrowed during the call; false
 * stops after this row). ST_OK: the page is full, more may follow; a page that passed over many
 * entries (a count, a narrow filter) may hold no row at all. ST_END: finished. ST_COLD: continue on
 * a pool thread with the same POS. Errors with err filled. Rows own nothing; POS lives in A, which
 * stays the same for all pages of a read. */
NODISCARD status kv_read_page(struct kv_txn *view, const struct kv_read *r, struct kv_read_pos *pos,
                              struct arena *a, unsigned max_rows, size_t max_bytes,
                              bool (*on_row)(void *arg, const struct kv_row *row), void *arg,
                              struct err *err);

#endif
