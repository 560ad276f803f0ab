/*
 * kv/recent.c — see recent.h.
 *
 * A sorted array: it is built by a flush, or read when a state is opened, and asked by commands.
 *
 * Invariants
 *   R1  Entries ascend by hash and stamp once sorted; a key may have several.
 *   R2  `newest` is the largest stamp, so that a younger snapshot asks nothing.
 *
 * Threads: one owner at a time; several may ask a sorted one.
 */
#include "kv/recent.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/codec.h"
#include "kv/state_internal.h"

#include <stdlib.h>

#define SEED_HIGH 0x72656365u
#define SEED_LOW 0x6e740000u
#define ENTRY_BYTES 25u
#define ROW_ENTRIES 128u

struct kv__recent_key {
    uint64_t high, low;
    hlc_ts ts;
    bool deleted;
};

void kv__recent_init(struct kv__recent *r)
{
    *r = (struct kv__recent){.at = NULL};
}

void kv__recent_fini(struct kv__recent *r)
{
    free(r->at);
    kv__recent_init(r);
}

static void add(struct kv__recent *r, const struct kv__recent_key *k)
{
    if (r->count == r->capacity) {
        r->capacity = r->capacity > 0 ? 2 * r->capacity : 256;
        r->at = realloc(r->at, r->capacity * sizeof *r->at);
        ASSERT(r->at != NULL);
    }
    r->at[r->count++] = *k;
    r->newest = k->ts > r->newest ? k->ts : r->newest; /* R2 */
}

void kv__recent_add(struct kv__recent *r, bytes key, hlc_ts ts, bool deleted)
{
    const struct kv__recent_key k = {.high = checksum64(key, SEED_HIGH),
                                     .low = checksum64(key, SEED_LOW),
                                     .ts = ts,
                                     .deleted = deleted};
    add(r, &k);
}

static int compare(const void *a, const void *b)
{
    const struct kv__recent_key *x = a, *y = b;

    if (x->high != y->high)
        return x->high < y->high ? -1 : 1;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    return x->ts < y->ts ? -1 : x->ts > y->ts;
}

void kv__recent_sort(struct kv__recent *r)
{
    size_t kept = 0;

    if (r->count > 1)
        qsort(r->at, r->count, sizeof *r->at, compare);
    for (size_t i = 0; i < r->count; i++) { /* a flush that is tried again finds its own */
        if (kept == 0 || compare(&r->at[kept - 1], &r->at[i]) != 0)
            r->at[kept++] = r->at[i];
    }
    r->count = kept;
}

hlc_ts kv__recent_newer(const struct kv__recent *r, bytes key, hlc_ts after, bool *deleted)
{
    if (after >= r->newest)
        return 0;
    const struct kv__recent_key last = {
        .high = checksum64(key, SEED_HIGH), .low = checksum64(key, SEED_LOW), .ts = HLC_MAX};
    size_t low = 0, high = r->count;
    while (low < high) { /* the first entry behind KEY's newest */
        size_t middle = low + (high - low) / 2;
        if (compare(&r->at[middle], &last) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    const struct kv__recent_key *k = &r->at[low - 1];
    if (k->high != last.high || k->low != last.low || k->ts <= after)
        return 0;
    *deleted = k->deleted;
    return k->ts;
}

/* -- in the store ------------------------------------------------------------------------------ */

static status take_row(bytes value, hlc_ts after, struct kv__recent *out)
{
    struct reader r = reader_make(value);

    if (value.size % ENTRY_BYTES != 0)
        return ST_CORRUPT;
    while (r.next != r.end) {
        struct kv__recent_key k = {.high = get_u64(&r), .low = 0};
        k.low = get_u64(&r);
        k.ts = get_u64(&r);
        k.deleted = get_u8(&r) != 0;
        if (k.ts > after)
            add(out, &k);
    }
    return codec_finish(&r);
}

/* Calls FN for the rows of SHARD. */
static status each_row(struct kv_store *store, uint64_t shard,
                       status (*fn)(void *arg, bytes key, bytes value), void *arg)
{
    uint8_t lower[KV__QUEUE_KEY_SIZE], upper[KV__QUEUE_KEY_SIZE];
    bytes from = kv__queue_key(lower, KV__RING_RECENT, shard, 0);
    struct kv_store_iter *it = kv_store_iter_new(
        store, from, kv__queue_key(upper, KV__RING_RECENT, shard, UINT64_MAX), KV_TIER_ANY);
    status st;

    for (st = kv_store_iter_seek(it, from); st == ST_OK; st = kv_store_iter_next(it)) {
        st = fn(arg, kv_store_iter_key(it), kv_store_iter_value(it));
        if (st != ST_OK)
            break;
    }
    kv_store_iter_free(it);
    return st == ST_END ? ST_OK : st;
}

struct load {
    hlc_ts after;
    struct kv__recent *out;
};

static status load_row(void *arg, bytes key, bytes value)
{
    const struct load *l = arg;

    UNUSED(key);
    return take_row(value, l->after, l->out);
}

status kv__recent_load(struct kv_store *store, uint64_t shard, hlc_ts after, struct kv__recent *out)
{
    struct load l = {after, out};

    return each_row(store, shard, load_row, &l);
}

static status delete_row(void *arg, bytes key, bytes value)
{
    UNUSED(value);
    kv_store_batch_delete(arg, key);
    return ST_OK;
}

status kv__recent_put(struct kv_store *store, uint64_t shard, const struct kv__recent *r,
                      struct kv_store_batch *batch)
{
    uint8_t key[KV__QUEUE_KEY_SIZE];
    uint64_t number = 1;
    struct obuf o;

    ST_TRY(each_row(store, shard, delete_row, batch));
    obuf_init(&o);
    for (size_t i = 0; i < r->count;) {
        obuf_reset(&o);
        for (size_t end = i + ROW_ENTRIES; i < end && i < r->count; i++) {
            put_u64(&o, r->at[i].high);
            put_u64(&o, r->at[i].low);
            put_u64(&o, r->at[i].ts);
            put_u8(&o, r->at[i].deleted);
        }
        kv_store_batch_put(batch, kv__queue_key(key, KV__RING_RECENT, shard, number++),
                           bytes_make(o.data, o.size));
    }
    obuf_fini(&o);
    return ST_OK;
}
