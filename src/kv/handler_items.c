/*
 * kv/handler_items.c — quota and index items at their destination.
 *
 * Quota rows add up; a row that comes to zero stays, so that its as_of tells. The changes of one
 * user are summed in a small table first: a batch has hundreds of them, and a row is then read and
 * written once. Where two users meet in a slot, the one before is written out. Index rows are put
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

/* The sum modulo 2^64: apply cannot fail for what clients wrote, and a sum that left bigint comes
 * back exactly when the sizes that took it out go again. One that stopped at the end would not. */
static int64_t add_wrapping(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static status add_quota(struct kv_txn *t, struct arena *a, const struct kv__sum *s, bytes name,
                        struct kv__change change)
{
    struct kv_row row = {.table = KV_QUOTA};
    if (!change.any)
        return ST_OK;
    row.col[QUOTA_UID] = kv_int(s->uid);
    row.col[QUOTA_NAME] = kv_text(name);
    bytes key = kv_key_of_row(a, s->ns, &row);
    status st = kv__get_row(t, a, key, &row);
    if (st == ST_NOT_FOUND) {
        row.col[QUOTA_VALUE] = kv_int(0);
        row.col[QUOTA_AS_OF] = KV_NULL;
    } else if (st != ST_OK) {
        return st;
    }
    row.col[QUOTA_VALUE] = kv_int(add_wrapping(row.col[QUOTA_VALUE].i, change.by));
    if (row.col[QUOTA_AS_OF].null || row.col[QUOTA_AS_OF].i < time_of(change.ts))
        row.col[QUOTA_AS_OF] = kv_int(time_of(change.ts));
    return kv__txn_put_row(t, key, &row);
}

static status sum_out(struct kv_txn *t, struct arena *a, struct kv__sum *s)
{
    ST_TRY(add_quota(t, a, s, BYTES_LIT("#FILE"), s->files));
    ST_TRY(add_quota(t, a, s, BYTES_LIT("#DIR"), s->dirs));
    ST_TRY(add_quota(t, a, s, BYTES_LIT("#SIZE"), s->size));
    *s = (struct kv__sum){.ns = 0};
    return ST_OK;
}

static void change_add(struct kv__change *c, int64_t by, hlc_ts ts)
{
    if (by == 0)
        return;
    c->any = true;
    c->by = add_wrapping(c->by, by);
    c->ts = ts; /* records come in order of their stamps */
}

static status take_quota(struct kv_txn *t, struct arena *a, struct kv__sums *sums,
                         const struct kv_item *item, hlc_ts ts)
{
    uint64_t mixed = ((uint64_t)item->uid + item->ns) * UINT64_C(0x9e3779b97f4a7c15);
    struct kv__sum *s = &sums->slot[mixed >> 32 & (KV__SUMS - 1)];
    if (s->ns != item->ns || s->uid != item->uid) {
        ST_TRY(sum_out(t, a, s));
        s->ns = item->ns;
        s->uid = item->uid;
    }
    change_add(&s->files, item->files, ts);
    change_add(&s->dirs, item->dirs, ts);
    change_add(&s->size, item->size, ts);
    return ST_OK;
}

status kv__take_sums(struct kv_txn *t, struct kv__sums *sums, struct arena *a)
{
    for (unsigned i = 0; i < KV__SUMS; i++) {
        if (sums->slot[i].ns != 0)
            ST_TRY(sum_out(t, a, &sums->slot[i]));
    }
    return ST_OK;
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
        return kv__txn_put_row(t, key, &row);
    return st == ST_OK ? kv_txn_delete(t, key) : ST_OK;
}

status kv__take_items(struct kv_txn *t, unsigned tables, hlc_ts ts, bytes items,
                      struct kv__sums *sums, struct arena *a)
{
    struct reader in = reader_make(items);
    struct kv_item item;
    while (in.next < in.end) {
        ST_TRY(kv_item_decode(&in, &item));
        if (item.kind == KV_ITEM_QUOTA && (tables & KV_ITEMS_QUOTA) != 0)
            ST_TRY(take_quota(t, a, sums, &item, ts));
        if (item.kind != KV_ITEM_QUOTA && (tables & KV_ITEMS_INDEX) != 0)
            ST_TRY(take_index(t, a, &item, ts));
    }
    return codec_finish(&in);
}
