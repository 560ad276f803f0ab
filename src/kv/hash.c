/*
 * A hash of the whole visible state of a shard, equal on all replicas at one applied index.
 *
 * The sum of a hash per row, so that order does not count and a difference of one row shows. A
 * directory's row is hashed with its aggregates in it, as a flush would write it: the sum is the
 * same wherever a delta lives. A row's stamp is part of the state, for it is the row's seq; the
 * applied index, term and stamp are not.
 */
#include "base/assert.h"
#include "base/checksum.h"
#include "base/codec.h"
#include "kv/state_internal.h"

/* May a key that begins with table T be the shard's? Of hidden tables the key tells (own_key). */
static bool may_own(const struct kv_state *s, uint8_t t)
{
    if (t == KV_QUEUE || s->options.table == 0 || t > KV_QUEUE)
        return t != KV_QUEUE; /* the queue has its own part */
    return kv_key_owner(bytes_make(&t, 1)) == s->options.table;
}

static bool own_key(const struct kv_state *s, bytes key)
{
    return s->options.table == 0 || kv_key_owner(key) == s->options.table;
}

/* A row of the sum: what, key, stamp, bytes. */
static uint64_t hash_of(struct obuf *o, uint8_t what, bytes key, hlc_ts ts, bytes value)
{
    obuf_reset(o);
    put_u8(o, what);
    put_bytes(o, key);
    put_u64(o, ts);
    put_bytes(o, value);
    return checksum64(bytes_make(o->data, o->size), 0);
}

static status hash_cell(struct obuf *o, struct obuf *row, bytes key, const struct kv_cell *cell,
                        uint64_t *sum)
{
    struct kv_delta d = {.present = true, .mtime = cell->mtime, .ctime = cell->ctime};
    bytes value = cell->row;

    if (cell->aggregated) {
        struct kv_row plain;

        ST_TRY(kv_row_decode(KV_META, cell->row, &plain));
        if (!plain.col[META_NUM_CHILDREN].null)
            d.children = cell->num_children - plain.col[META_NUM_CHILDREN].i;
        else
            d.children = cell->num_children;
        obuf_reset(row);
        ST_TRY(kv__attr_fold(cell->row, &d, row));
        value = bytes_make(row->data, row->size);
    }
    *sum += hash_of(o, 'r', key, cell->ts, value);
    return ST_OK;
}

static bool is_set(const atomic_bool *flag)
{
    return flag != NULL && atomic_load_explicit(flag, memory_order_relaxed);
}

static status hash_table(const struct kv_view *v, uint8_t from, const atomic_bool *cancel,
                         struct obuf *o, struct obuf *row, uint64_t *sum)
{
    uint8_t to = (uint8_t)(from + 1);
    struct kv_scan *scan = kv__scan_open_take(v, kv__list_ref_locked(v->state),
                                              bytes_make(&from, 1), bytes_make(&to, 1), false);
    struct kv_cell cell;
    bytes key;
    status st;

    while ((st = kv_scan_next(scan, &key, &cell)) == ST_OK) {
        if (is_set(cancel))
            ST_GOTO(out, ST_CANCELLED);
        if (own_key(v->state, key))
            ST_GOTO(out, hash_cell(o, row, key, &cell, sum));
    }
    if (st == ST_END)
        st = ST_OK;
out:
    kv_scan_close(scan);
    return st;
}

static void hash_ring(const struct kv__queue *q, uint8_t what, struct obuf *o, uint64_t *sum)
{
    for (size_t i = 0; i < q->count; i++) {
        const struct kv__queued *r = kv__queue_at(q, i);

        *sum += hash_of(o, what, BYTES_EMPTY, r->ts, buf_bytes(r->items));
    }
}

static void hash_counters(const struct kv_state *s, struct obuf *o, uint64_t *sum)
{
    struct kv_shard_record r = s->record;
    struct obuf bytes_of;

    r.applied_index = r.applied_term = r.applied_ts = 0;
    obuf_init(&bytes_of);
    kv__record_encode(&r, &bytes_of);
    *sum += hash_of(o, 'c', BYTES_EMPTY, 0, bytes_make(bytes_of.data, bytes_of.size));
    obuf_fini(&bytes_of);
}

status kv_state_hash(struct kv_state *s, const atomic_bool *cancel, uint64_t *out)
{
    struct arena a;
    struct kv_view v = {.state = s, .at = HLC_MAX, .tier = KV_TIER_ANY, .arena = &a};
    struct obuf o, row;
    status st = ST_OK;

    *out = 0;
    arena_init(&a, 4096);
    obuf_init(&o);
    obuf_init(&row);
    for (uint8_t t = 1; t < KV_SYSTEM; t++) { /* the record has its own part */
        if (may_own(s, t))
            ST_GOTO(out, hash_table(&v, t, cancel, &o, &row, out));
    }
    hash_ring(&s->queue, 'q', &o, out);
    hash_ring(&s->dedup.ring, 'a', &o, out);
    hash_counters(s, &o, out);
out:
    obuf_fini(&row);
    obuf_fini(&o);
    arena_fini(&a);
    return st;
}
