/*
 * kv/handler_update.c — UPDATE of columns of a row by key.
 *
 * meta: the row that SELECT shows is what WHERE sees. SET of a split inode through its entry
 * changes the row (id, _attr_) and gives both rows a new seq: who compares seq sees the change on
 * either way. `AND seq = ?` holds there for the entry's seq as well as for the larger one that
 * resolve() shows. RETURNING gives the entry with the attributes.
 *
 * ctime becomes now unless the statement sets it. Size, uid and fid of an inode are also in quota
 * and secondary_index: their changes become items. What other rows depend on cannot be set: id of a
 * split inode, nlink and fid of a file with links (0A000).
 */
#include "kv/handler.h"

/* -- meta -------------------------------------------------------------------------------------- */

static status refuse(struct kv_run *r, unsigned column, const char *of_what)
{
    const char *name = r->def->columns[column].name;
    err_set(r->err, ST_UNSUPPORTED, "%s of %s cannot be changed", name, of_what);
    err_where(r->err, "public", "meta", name, NULL);
    return ST_UNSUPPORTED;
}

static status check_sets(struct kv_run *r, const struct kv_row *old, bool split)
{
    if (!split)
        return ST_OK;
    bool dir = old->col[META_TYPE].i == KV_TYPE_DIR;
    if (kv__sets_column(r->op, META_ID))
        return refuse(r, META_ID, dir ? "a directory" : "a file with links");
    if (!dir && kv__sets_column(r->op, META_NLINK))
        return refuse(r, META_NLINK, "a file with links");
    if (!dir && kv__sets_column(r->op, META_FID))
        return refuse(r, META_FID, "a file with links");
    return ST_OK;
}

/* OLD with the operation's SETs, checked. */
static status changed_row(struct kv_run *r, const struct kv_row *old, bool split,
                          struct kv_row *row)
{
    ST_TRY(check_sets(r, old, split));
    ST_TRY(kv__apply_sets(r, old, NULL, row));
    if (row->col[META_ID].deflt)
        row->col[META_ID] = kv_int(kv__draw_file_id(r));
    if (!kv__sets_column(r->op, META_CTIME))
        row->col[META_CTIME] = kv_int(r->op->now);
    return kv__check_values(r, row);
}

static void quota_of_change(struct kv_run *r, const struct kv_row *old, const struct kv_row *row)
{
    bool dir = old->col[META_TYPE].i == KV_TYPE_DIR;
    int64_t old_uid = old->col[META_UID].i, uid = row->col[META_UID].i;
    int64_t old_size = old->col[META_SIZE].i, size = row->col[META_SIZE].i;
    if (old_uid == uid) {
        kv__quota_item(r, uid, 0, 0, size - old_size);
        return;
    }
    kv__quota_item(r, old_uid, dir ? 0 : -1, dir ? -1 : 0, -old_size);
    kv__quota_item(r, uid, dir ? 0 : 1, dir ? 1 : 0, size);
}

static bool same_int(struct kv_datum a, struct kv_datum b)
{
    return a.null == b.null && (a.null || a.i == b.i);
}

/* An inline file's index row holds its fid and its id. */
static void index_of_change(struct kv_run *r, const struct kv_row *old, const struct kv_row *row)
{
    if (same_int(old->col[META_FID], row->col[META_FID]) &&
        same_int(old->col[META_ID], row->col[META_ID]))
        return;
    kv__index_item(r, KV_ITEM_INDEX_DELETE, old, old);
    kv__index_item(r, KV_ITEM_INDEX_PUT, row, row);
}

static status put_attr(struct kv_run *r, bytes key, const struct kv_row *row)
{
    if (row->col[META_TYPE].i != KV_TYPE_DIR)
        return kv__put_row(r, key, row);
    struct kv_times_set set = {.mtime = kv__sets_column(r->op, META_MTIME),
                               .ctime = kv__sets_column(r->op, META_CTIME)};
    return kv_txn_put_dir(r->t, key, row, set);
}

static status update_split(struct kv_run *r, struct kv_entry *e)
{
    struct kv_row row, shown;
    ST_TRY(changed_row(r, &e->attr, true, &row));
    ST_TRY(put_attr(r, e->attr_key, &row));
    ST_TRY(kv__put_row(r, e->key, &e->row)); /* a new seq */
    quota_of_change(r, &e->attr, &row);
    e->attr = row;
    kv__entry_merge(e, &shown);
    kv__own_seq(r, &shown);
    kv__affected(r, &shown);
    return ST_OK;
}

static status update_meta(struct kv_run *r, const struct kv_datum *key)
{
    struct kv_entry e;
    struct kv_row row;
    status st = kv__entry_find(r->t, r->a, r->op->ns, key[META_PID].i, key[META_NAME].b, &e);
    if (st == ST_NOT_FOUND)
        return ST_OK;
    ST_TRY(st);
    if (!kv__entry_matches(r, &e))
        return ST_OK;
    if (e.split)
        return update_split(r, &e);
    bool own_row = kv_key_is_attr(e.key);
    ST_TRY(changed_row(r, &e.row, own_row, &row));
    ST_TRY(own_row ? put_attr(r, e.key, &row) : kv__put_row(r, e.key, &row));
    if (!own_row || key[META_PID].i != KV_ROOT_ID) /* the root was never counted */
        quota_of_change(r, &e.row, &row);
    if (!own_row)
        index_of_change(r, &e.row, &row);
    kv__own_seq(r, &row);
    kv__affected(r, &row);
    return ST_OK;
}

/* -- object, kv, lifecycle --------------------------------------------------------------------- */

static status update_plain(struct kv_run *r, const struct kv_datum *key)
{
    struct kv_row old, row;
    bytes encoded = kv_key_prefix(r->a, r->op->ns, r->op->table, key, r->def->key_count);
    status st = kv__get_row(r->t, r->a, encoded, &old);
    if (st == ST_NOT_FOUND)
        return ST_OK;
    ST_TRY(st);
    bool expired;
    ST_TRY(kv__found_expired(r, &old, &expired));
    if (expired || !kv__filters_match(r->op->table, r->op->filters, r->op->filter_count, &old))
        return ST_OK;
    ST_TRY(kv__apply_sets(r, &old, NULL, &row));
    ST_TRY(kv__check_values(r, &row));
    ST_TRY(kv__put_row(r, encoded, &row));
    kv__own_seq(r, &row);
    kv__affected(r, &row);
    return ST_OK;
}

status kv__update(struct kv_run *r)
{
    return kv__each_key(r, r->op->table == KV_META ? update_meta : update_plain);
}
