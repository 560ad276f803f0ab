/*
 * kv/handler_reclaim.c — takes away what remove_tree() left: a bounded slice at each call.
 *
 * `pid` names a detached directory, one with a KV_LOCK|trash row. Its files go, its subdirectories
 * become trash of their own, and when nothing is in it any more its own row and the trash row go
 * too. So a tree of any depth and width is worked off in commands of one size, and what is left to
 * do is always in the state: a crash or a change of leader loses nothing.
 *
 * The directory takes no entries (its parent is KV_TRASH_ID), so it only shrinks.
 */
#include "base/codec.h"
#include "kv/handler.h"

/* Entries that one command takes away. */
#define RECLAIM_ENTRIES 256u

static status take_entry(struct kv_run *r, const struct kv_row *row)
{
    struct kv_entry e;
    ST_TRY(kv__entry_find(r->t, r->a, r->op->ns, r->op->pid, row->col[META_NAME].b, &e));
    ST_TRY(e.dir ? kv__detach_dir(r, &e) : kv__unlink(r, &e));
    r->res->affected++;
    return ST_OK;
}

/* The first entries of the directory, copied; *COUNT of them. */
static status first_entries(struct kv_run *r, struct kv_row *rows, unsigned *count)
{
    struct kv_datum pid = kv_int(r->op->pid);
    bytes lower = kv_key_prefix(r->a, r->op->ns, KV_META, &pid, 1), key;
    struct kv_cell cell;
    status st = ST_OK;
    struct kv_txn_scan *scan =
        kv_txn_scan_open(r->t, lower, kv_key_after_prefix(r->a, lower), false);
    while (*count < RECLAIM_ENTRIES && (st = kv_txn_scan_next(scan, &key, &cell)) == ST_OK) {
        struct kv_row row;
        if (kv_key_is_attr(key))
            continue;
        ST_GOTO(out, kv__cell_row(r->a, key, &cell, &row));
        kv_row_copy(r->a, &row, &rows[(*count)++]);
    }
    if (st == ST_END)
        st = ST_OK;
out:
    kv_txn_scan_close(scan);
    return st;
}

/* Nothing is in the directory: it goes itself. */
static status take_directory(struct kv_run *r, bytes trash)
{
    struct kv_row attr;
    bytes attr_key = kv_key_attr(r->a, r->op->ns, r->op->pid);
    ST_TRY(kv__get_row(r->t, r->a, attr_key, &attr));
    ST_TRY(kv_txn_delete(r->t, attr_key));
    ST_TRY(kv_txn_delete(r->t, trash));
    kv__inode_died(r, &attr);
    r->res->affected++;
    return ST_OK;
}

status kv__reclaim(struct kv_run *r)
{
    struct kv_row *rows = arena_alloc(r->a, sizeof *rows * RECLAIM_ENTRIES);
    bytes trash = kv__key_trash(r->a, r->op->ns, r->op->pid);
    struct kv_cell cell;
    unsigned count = 0;
    r->res->scalar = kv_int(0);
    status st = kv_txn_get(r->t, trash, &cell);
    if (st == ST_NOT_FOUND)
        return ST_OK; /* done before: the command came twice */
    ST_TRY(st);
    ST_TRY(first_entries(r, rows, &count));
    if (count == 0)
        return take_directory(r, trash);
    for (unsigned i = 0; i < count; i++)
        ST_TRY(take_entry(r, &rows[i]));
    kv__touch_parent(r, r->op->pid, -(int64_t)count);
    r->res->scalar = kv_int(1);
    return ST_OK;
}

status kv_trash_find(const struct kv_view *v, uint32_t ns, int64_t *id)
{
    static const char rest[] = "trash";
    bytes prefix = kv__key_hidden(v->arena, KV_LOCK, ns, bytes_make(rest, sizeof rest - 1)), key;
    struct kv_cell cell;
    struct kv_scan *scan = kv_scan_open(v, prefix, kv_key_after_prefix(v->arena, prefix), false);
    status st = kv_scan_next(scan, &key, &cell);
    if (st == ST_OK && key.size != prefix.size + 8)
        st = ST_CORRUPT;
    if (st == ST_OK)
        *id = (int64_t)load_be64(key.data + prefix.size);
    kv_scan_close(scan);
    return st == ST_END ? ST_NOT_FOUND : st;
}
