/*
 * kv/handler_link.c — link(): one more name for a file.
 *
 * The first further link splits the inode: its attributes move to the row (id, _attr_), and both
 * entries keep id and type. That row may be taken, because ids of files are the client's to keep
 * apart (SQL.md 2): 23505 then. An inline file has one name, whatever its nlink says, so the split
 * starts from one.
 */
#include "kv/handler.h"

static status is_a_directory(struct kv_run *r)
{
    err_set_state(r->err, ST_INVALID, "42809", "\"%.*s\" is a directory", (int)r->op->name.size,
                  (const char *)r->op->name.data);
    err_detail(r->err, "A directory has one name.");
    err_where(r->err, "public", "meta", NULL, NULL);
    return ST_INVALID;
}

/* Makes E split with one link. */
static status split(struct kv_run *r, struct kv_entry *e)
{
    int64_t id = e->row.col[META_ID].i;
    struct kv_row entry;
    ST_TRY(kv__check_id_free(r, id));
    e->attr = e->row;
    e->attr.col[META_PID] = kv_int(id);
    e->attr.col[META_NAME] = kv_text(KV_ATTR_NAME);
    e->attr.col[META_NLINK] = kv_int(1);
    e->attr_key = kv_key_attr(r->a, r->op->ns, id);
    kv__split_entry(&e->row, &entry);
    e->row = entry;
    e->split = true;
    return kv__put_row(r, e->key, &e->row);
}

static status check_target(struct kv_run *r)
{
    const struct kv_op *op = r->op;
    struct kv_row parent;
    struct kv_cell cell;
    bytes parent_key;
    ST_TRY(kv__check_name(r, op->new_name));
    ST_TRY(kv__parent_find(r, op->new_pid, &parent_key, &parent));
    status st = kv_txn_get(r->t, kv_key_meta(r->a, op->ns, op->new_pid, op->new_name), &cell);
    if (st == ST_NOT_FOUND)
        return ST_OK;
    ST_TRY(st);
    return kv__target_exists(r);
}

status kv__link(struct kv_run *r)
{
    const struct kv_op *op = r->op;
    struct kv_entry e;
    ST_TRY(kv__entry_required(r, &e));
    if (e.dir)
        return is_a_directory(r);
    ST_TRY(check_target(r));
    if (!e.split)
        ST_TRY(split(r, &e));
    if (e.attr.col[META_NLINK].i >= INT32_MAX)
        return err_set_state(r->err, ST_LIMIT, "54000", "the file has too many links");
    e.attr.col[META_NLINK].i++;
    e.attr.col[META_CTIME] = kv_int(op->now);
    ST_TRY(kv__put_row(r, e.attr_key, &e.attr));

    struct kv_row entry = e.row;
    entry.col[META_PID] = kv_int(op->new_pid);
    entry.col[META_NAME] = kv_text(op->new_name);
    ST_TRY(kv__put_row(r, kv_key_meta(r->a, op->ns, op->new_pid, op->new_name), &entry));
    kv__index_item(r, KV_ITEM_INDEX_PUT, &entry, &e.attr);
    kv__touch_parent(r, op->new_pid, 1);
    r->res->scalar = e.attr.col[META_NLINK];
    kv__own_seq(r, &entry);
    kv__affected(r, &entry);
    return ST_OK;
}
