/*
 * kv/handler_detach.c — remove_tree(): takes an entry and everything below it out of the tree.
 *
 * A file is removed. A directory loses its entry, so no path leads to it, and becomes a child of no
 * directory (KV_TRASH_ID): it takes no entries, and nothing can be moved below it. A row of
 * KV_LOCK|trash records it for handler_reclaim.c; until its rows are gone they count in quota.
 * The rename key is locked: a transaction that is moving something below it conflicts.
 */
#include "kv/handler.h"

status kv__detach_dir(struct kv_run *r, const struct kv_entry *e)
{
    struct kv_row attr = e->attr;
    bytes trash = kv__key_trash(r->a, r->op->ns, e->row.col[META_ID].i);
    attr.col[META_PARENT] = kv_int(KV_TRASH_ID);
    ST_TRY(kv_txn_delete(r->t, e->key));
    ST_TRY(kv_txn_put_dir(r->t, e->attr_key, &attr, (struct kv_times_set){0}));
    ST_TRY(kv_txn_put(r->t, trash, e->key));
    return kv_txn_lock(r->t, kv__key_rename_lock(r->a, r->op->ns));
}

status kv__detach(struct kv_run *r)
{
    const struct kv_op *op = r->op;
    struct kv_entry e;
    ST_TRY(kv__entry_required(r, &e));
    ST_TRY(e.dir ? kv__detach_dir(r, &e) : kv__unlink(r, &e));
    kv__touch_parent(r, op->pid, -1);
    r->res->scalar = e.row.col[META_ID];
    kv__affected(r, &e.row);
    return ST_OK;
}
