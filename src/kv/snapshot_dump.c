/*
 * Giving a snapshot: what the store holds of a shard, as parts.
 *
 * One iterator over the whole store stands for the moment at which the dump began; it jumps from
 * range to range. It keeps the files of that moment on the disk until the dump is freed, so a dump
 * must not live for ever: who gives it limits that.
 *
 * Threads: the owner makes it; then one pool thread at a time.
 */
#include "kv/snapshot_internal.h"

#include "base/assert.h"
#include "base/fault.h"

#include <stdlib.h>

struct kv_dump {
    struct kv_state *state;
    struct kv_snapshot_id id;
    struct kv__spans spans;
    struct kv_store_iter *it;
    unsigned span; /* at which the next entry is looked for */
    bool entered;  /* the iterator is inside that span */
    bool checked;  /* the record is of the index */
    uint64_t number, entries, bytes;
};

struct kv_snapshot_id kv_state_persisted(const struct kv_state *s)
{
    return (struct kv_snapshot_id){kv_state_persisted_index(s), s->persisted_term};
}

struct kv_dump *kv_dump_new(struct kv_state *s, struct kv_snapshot_id id)
{
    struct kv_dump *d = calloc(1, sizeof *d);

    ASSERT(d != NULL);
    ASSERT(!s->flushing);
    d->state = s;
    d->id = id;
    kv__spans_make(s, &d->spans);
    d->it = kv_store_iter_new(s->store, d->spans.at[0].lower, d->spans.at[d->spans.count - 1].upper,
                              KV_TIER_BULK);
    return d;
}

void kv_dump_rewind(struct kv_dump *d)
{
    d->span = 0;
    d->entered = false;
    d->number = d->entries = d->bytes = 0;
}

void kv_dump_free(struct kv_dump *d)
{
    if (d == NULL)
        return;
    kv_store_iter_free(d->it);
    free(d);
}

/* Is it the state of the index that was promised? */
static status check_record(struct kv_dump *d)
{
    const struct kv__span *last = &d->spans.at[d->spans.count - 1];
    struct kv_shard_record record;
    status st = kv_store_iter_seek(d->it, last->lower);

    if (st == ST_END)
        return ST_CONFLICT;
    ST_TRY(st);
    ST_TRY(kv__record_decode(kv_store_iter_value(d->it), &record));
    if (record.applied_index != d->id.index || record.applied_term != d->id.term)
        return ST_CONFLICT;
    d->checked = true;
    return ST_OK;
}

/* Moves to the next entry of the shard. ST_END behind the last one. */
static status step(struct kv_dump *d)
{
    for (;;) {
        const struct kv__span *span = &d->spans.at[d->span];
        status st = d->entered ? kv_store_iter_next(d->it) : kv_store_iter_seek(d->it, span->lower);

        if (st != ST_OK && st != ST_END)
            return st;
        d->entered = true;
        if (st == ST_OK && bytes_cmp(kv_store_iter_key(d->it), span->upper) < 0) {
            if (kv__span_owns(d->state, span, kv_store_iter_key(d->it)))
                return ST_OK;
            continue;
        }
        d->entered = false;
        if (++d->span == d->spans.count)
            return ST_END;
    }
}

static status put_entries(struct kv_dump *d, size_t limit, struct obuf *out)
{
    status st = ST_OK;

    while (out->size < limit && (st = step(d)) == ST_OK) {
        bytes key = kv_store_iter_key(d->it), value = kv_store_iter_value(d->it);

        put_bytes(out, key);
        put_bytes(out, value);
        d->entries++;
        d->bytes += key.size + value.size;
    }
    return st;
}

static void put_sum(uint8_t *at, uint64_t sum)
{
    for (unsigned i = 0; i < 8; i++)
        at[i] = (uint8_t)(sum >> 8 * i);
}

status kv_dump_part(struct kv_dump *d, size_t target, struct obuf *out)
{
    size_t at = out->size;
    bool last = d->span == d->spans.count;
    status st = ST_OK;

    if (!d->checked)
        ST_TRY(check_record(d));
    if (fault_point("kv.dump.part"))
        return ST_IO;
    put_u64(out, 0);
    put_u64(out, d->number);
    put_u8(out, last ? KV__PART_END : KV__PART_ENTRIES);
    if (last) {
        put_u64(out, d->entries);
        put_u64(out, d->bytes);
    } else {
        st = put_entries(d, at + KV_PART_HEADER_BYTES + target, out);
        if (st != ST_OK && st != ST_END)
            return st;
    }
    put_sum(out->data + at,
            kv__part_sum(bytes_make(out->data + at, out->size - at), d->id.index, d->number));
    d->number++;
    return last ? ST_END : ST_OK;
}
