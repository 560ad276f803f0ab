/*
 * kv/handler_delete.c — DELETE by keys and by a range.
 *
 * meta: removing an entry counts its parent down and takes of the inode what goes with it
 * (kv__unlink). The directory's own row cannot be deleted; it goes with the entry.
 *
 * A range is one command: collect the keys, then remove them, so that nothing is written while the
 * scan is open and a directory in the range is found before anything happened. It is bounded: a
 * larger one is refused with 54000.
 */
#include "base/assert.h"
#include "kv/handler.h"

#define RANGE_ROWS_IN_TRANSACTION LIMIT_STATEMENT_ROWS
#define RANGE_ROWS_AT_APPLY LIMIT_TXN_WRITES

/* -- by key ------------------------------------------------------------------------------------ */

static status delete_meta(struct kv_run *r, const struct kv_datum *key)
{
    struct kv_entry e;
    bytes name = key[META_NAME].b;
    if (bytes_eq(name, KV_ATTR_NAME))
        return kv__check_name(r, name);
    status st = kv__entry_find(r->t, r->a, r->op->ns, key[META_PID].i, name, &e);
    if (st == ST_NOT_FOUND)
        return ST_OK;
    ST_TRY(st);
    if (!kv__entry_matches(r, &e))
        return ST_OK;
    ST_TRY(kv__unlink(r, &e));
    kv__touch_parent(r, key[META_PID].i, -1);
    kv__affected(r, &e.row);
    return ST_OK;
}

/* Deletes a row of object, kv or lifecycle; an expired one goes without being counted. */
static status delete_row(struct kv_run *r, bytes key, const struct kv_row *row)
{
    if (!kv__filters_match(r->op->table, r->op->filters, r->op->filter_count, row))
        return ST_OK;
    bool expired;
    ST_TRY(kv__found_expired(r, row, &expired));
    ST_TRY(kv_txn_delete(r->t, key));
    if (!expired)
        kv__affected(r, row);
    return ST_OK;
}

static status delete_plain(struct kv_run *r, const struct kv_datum *key)
{
    struct kv_row row;
    bytes encoded = kv_key_prefix(r->a, r->op->ns, r->op->table, key, r->def->key_count);
    status st = kv__get_row(r->t, r->a, encoded, &row);
    if (st == ST_NOT_FOUND)
        return ST_OK;
    ST_TRY(st);
    return delete_row(r, encoded, &row);
}

status kv__delete(struct kv_run *r)
{
    return kv__each_key(r, r->op->table == KV_META ? delete_meta : delete_plain);
}

/* -- by range ---------------------------------------------------------------------------------- */

struct key_list {
    bytes *keys;
    unsigned count, capacity;
};

static status collect(struct kv_run *r, struct key_list *list, bytes key)
{
    unsigned max = kv__txn_at_apply(r->t) ? RANGE_ROWS_AT_APPLY : RANGE_ROWS_IN_TRANSACTION;
    if (list->count == max)
        return err_set(r->err, ST_LIMIT, "a range to delete holds at most %u rows", max);
    if (list->count == list->capacity)
        list->keys = arena_grow(r->a, list->keys, sizeof *list->keys, &list->capacity, 64);
    list->keys[list->count++] = arena_copy(r->a, key);
    return ST_OK;
}

static status directory_in_range(struct kv_run *r, const struct kv_row *row)
{
    bytes name = row->col[META_NAME].b;
    err_set(r->err, ST_NOT_EMPTY, "a directory is in the range to delete");
    err_detail(r->err, "Entry \"%.*s\" is a directory.", (int)name.size, (const char *)name.data);
    err_hint(r->err, "Remove it alone, or with remove_tree().");
    err_where(r->err, "public", "meta", NULL, NULL);
    return ST_NOT_EMPTY;
}

static status collect_range(struct kv_run *r, struct key_list *list)
{
    bytes key;
    struct kv_cell cell;
    struct kv_row row;
    status st;
    struct kv_txn_scan *scan = kv_txn_scan_open(r->t, r->op->lower, r->op->upper, false);
    while ((st = kv_txn_scan_next(scan, &key, &cell)) == ST_OK) {
        if (r->op->table == KV_META) {
            if (kv_key_is_attr(key))
                continue;
            ST_GOTO(out, kv__cell_row(r->a, key, &cell, &row));
            if (row.col[META_TYPE].i == KV_TYPE_DIR)
                ST_GOTO(out, directory_in_range(r, &row));
        }
        ST_GOTO(out, collect(r, list, key));
    }
    if (st == ST_END)
        st = ST_OK;
out:
    kv_txn_scan_close(scan);
    return st;
}

static status remove_collected_entry(struct kv_run *r, bytes key)
{
    struct kv_row columns = {0};
    struct kv_entry e;
    uint32_t ns;
    ST_TRY(kv_key_decode(r->a, key, &ns, &columns));
    int64_t pid = columns.col[META_PID].i;
    status st = kv__entry_find(r->t, r->a, ns, pid, columns.col[META_NAME].b, &e);
    if (st == ST_NOT_FOUND)
        return ST_CORRUPT; /* the scan has just shown it */
    ST_TRY(st);
    if (!kv__entry_matches(r, &e))
        return ST_OK;
    ST_TRY(kv__unlink(r, &e));
    kv__touch_parent(r, pid, -1);
    kv__affected(r, &e.row);
    return ST_OK;
}

static status remove_collected_row(struct kv_run *r, bytes key)
{
    struct kv_row row;
    status st = kv__get_row(r->t, r->a, key, &row);
    if (st == ST_NOT_FOUND)
        return ST_CORRUPT;
    ST_TRY(st);
    return delete_row(r, key, &row);
}

/* The bounds come from the planner; a wrong one must not reach another table or namespace. */
bool kv__bounds_are_ours(struct kv_run *r)
{
    bytes all = kv__key_hidden(r->a, r->op->table, r->op->ns, BYTES_EMPTY);
    bytes end = kv_key_after_prefix(r->a, all);
    return bytes_cmp(r->op->lower, all) >= 0 && r->op->upper.size > 0 &&
           bytes_cmp(r->op->upper, end) <= 0;
}

status kv__delete_range(struct kv_run *r)
{
    struct key_list list = {0};
    if (!kv__bounds_are_ours(r))
        return err_set(r->err, ST_INVALID, "the range to delete is outside its table");
    if (bytes_cmp(r->op->lower, r->op->upper) >= 0)
        return ST_OK;
    ST_TRY(collect_range(r, &list));
    for (unsigned i = 0; i < list.count; i++)
        ST_TRY(r->op->table == KV_META ? remove_collected_entry(r, list.keys[i])
                                       : remove_collected_row(r, list.keys[i]));
    return ST_OK;
}
