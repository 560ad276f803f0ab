/*
 * kv/handler_items.c — quota and index items at their destination.
 *
 * Quota rows add up; a row that comes to zero stays, so that its as_of tells. Index rows are put
 * and deleted in the order of the source. as_of is the time of the record's stamp. Which records
 * are new, apply.c knows.
 */
#include "base/codec.h"
#include "kv/handler.h"

#define POSTGRES_EPOCH_UNIX_US INT64_C(946684800000000)

static int64_t time_of(hlc_ts ts)
{
    return hlc_unix_us(ts) - POSTGRES_EPOCH_UNIX_US;
}

static status put_row(struct kv_txn *t, bytes key, const struct kv_row *row)
{
    struct obuf out;
    obuf_init(&out);
    kv_row_encode(row, &out);
    status st = kv_txn_put(t, key, bytes_make(out.data, out.size));
    obuf_fini(&out);
    return st;
}

/* The sum modulo 2^64: apply cannot fail for what clients wrote, and a sum that left bigint comes
 * back exactly when the sizes that took it out go again. One that stopped at the end would not. */
static int64_t add_wrapping(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static status add_quota(struct kv_txn *t, struct arena *a, uint32_t ns, int64_t uid, bytes name,
                        int64_t change, hlc_ts ts)
{
    struct kv_row row = {.table = KV_QUOTA};
    if (change == 0)
        return ST_OK;
    row.col[QUOTA_UID] = kv_int(uid);
    row.col[QUOTA_NAME] = kv_text(name);
    bytes key = kv_key_of_row(a, ns, &row);
    status st = kv__get_row(t, a, key, &row);
    if (st == ST_NOT_FOUND) {
        row.col[QUOTA_VALUE] = kv_int(0);
        row.col[QUOTA_AS_OF] = KV_NULL;
    } else if (st != ST_OK) {
        return st;
    }
    row.col[QUOTA_VALUE] = kv_int(add_wrapping(row.col[QUOTA_VALUE].i, change));
    if (row.col[QUOTA_AS_OF].null || row.col[QUOTA_AS_OF].i < time_of(ts))
        row.col[QUOTA_AS_OF] = kv_int(time_of(ts));
    return put_row(t, key, &row);
}

static status take_quota(struct kv_txn *t, struct arena *a, const struct kv_item *item, hlc_ts ts)
{
    ST_TRY(add_quota(t, a, item->ns, item->uid, BYTES_LIT("#FILE"), item->files, ts));
    ST_TRY(add_quota(t, a, item->ns, item->uid, BYTES_LIT("#DIR"), item->dirs, ts));
    return add_quota(t, a, item->ns, item->uid, BYTES_LIT("#SIZE"), item->size, ts);
}

static status take_index(struct kv_txn *t, struct arena *a, const struct kv_item *item, hlc_ts ts)
{
    struct kv_row row = {.table = KV_INDEX};
    struct kv_cell cell;
    row.col[INDEX_FID] = kv_int(item->fid);
    row.col[INDEX_PID] = kv_int(item->pid);
    row.col[INDEX_NAME] = kv_text(item->name);
    row.col[INDEX_ID] = kv_int(item->id);
    row.col[INDEX_AS_OF] = kv_int(time_of(ts));
    bytes key = kv_key_of_row(a, item->ns, &row);
    /* The look-up lets a row that is born and dies in memory leave nothing behind. */
    status st = kv_txn_get(t, key, &cell);
    if (st != ST_OK && st != ST_NOT_FOUND)
        return st;
    if (item->kind == KV_ITEM_INDEX_PUT)
        return put_row(t, key, &row);
    return st == ST_OK ? kv_txn_delete(t, key) : ST_OK;
}

status kv__take_items(struct kv_txn *t, unsigned tables, hlc_ts ts, bytes items, struct arena *a)
{
    struct reader in = reader_make(items);
    struct kv_item item;
    while (in.next < in.end) {
        ST_TRY(kv_item_decode(&in, &item));
        if (item.kind == KV_ITEM_QUOTA && (tables & KV_ITEMS_QUOTA) != 0)
            ST_TRY(take_quota(t, a, &item, ts));
        if (item.kind != KV_ITEM_QUOTA && (tables & KV_ITEMS_INDEX) != 0)
            ST_TRY(take_index(t, a, &item, ts));
    }
    return codec_finish(&in);
}
