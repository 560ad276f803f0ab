/*
 * Getting a snapshot: parts become files, and the files the shard's state in the store.
 *
 * The ranges of a shard are gone through in order, as the entries come. A range of the shard's own
 * is replaced as a whole. Where its entries lie among those of other shards, the entries that the
 * store has now are merged with those that come: one that does not come is deleted.
 *
 * Invariants
 *   N1  Keys ascend strictly, each is the shard's, and the record is of the promised index.
 *   N2  Until the set is installed, store and state are untouched.
 *   N3  `flushed_ts` is raised before the store changes, so no older snapshot takes what it then
 *       says for its own (state.c, G4).
 *   N4  The state in memory follows the store in one step of its owner.
 *
 * Threads: pool threads, one at a time; kv_load_take by the owner.
 */
#include "kv/snapshot_internal.h"

#include "base/assert.h"
#include "base/fault.h"

#include <stdlib.h>

#define NOTE_FORMAT 1u

struct kv_load {
    struct kv_state *state;
    struct kv_snapshot_id id;
    struct buf *note;
    struct kv_store_load *set;
    struct kv__spans spans;
    unsigned span;            /* entered ones are below it */
    struct kv_store_iter *it; /* over what the store has in a shared span */
    status it_st;             /* of its last move */
    struct obuf last;         /* key */
    uint64_t number, entries, bytes;
    struct kv_shard_record record;
    bool record_seen, sealed, installed;
    struct kv__queue queue;
    struct kv__dedup dedup;
    struct kv__recent recent;
};

status kv_load_new(struct kv_state *s, const char *dir, struct kv_snapshot_id id, bytes note,
                   struct kv_load **out)
{
    struct kv_load *l = calloc(1, sizeof *l);
    status st;

    ASSERT(l != NULL);
    l->state = s;
    l->id = id;
    l->note = buf_copy(note);
    obuf_init(&l->last);
    kv__dedup_init(&l->dedup);
    kv__spans_make(s, &l->spans);
    st = fault_point("kv.load.new") ? ST_IO : kv_store_load_new(s->store, dir, &l->set);
    if (st != ST_OK) {
        kv_load_free(l);
        return st;
    }
    *out = l;
    return ST_OK;
}

void kv_load_free(struct kv_load *l)
{
    if (l == NULL)
        return;
    kv_store_iter_free(l->it);
    kv_store_load_free(l->set);
    kv__queue_fini(&l->queue);
    kv__dedup_fini(&l->dedup);
    kv__recent_fini(&l->recent);
    obuf_fini(&l->last);
    buf_unref(l->note);
    free(l);
}

/* -- one range after the other ----------------------------------------------------------------- */

/* What the store has of the shard before UPTO, and did not come: deleted. */
static status drop_local(struct kv_load *l, const struct kv__span *span, bytes upto)
{
    while (l->it_st == ST_OK) {
        bytes key = kv_store_iter_key(l->it);
        int c = bytes_cmp(key, upto);

        if (c > 0)
            return ST_OK;
        if (c < 0 && kv__span_owns(l->state, span, key))
            ST_TRY(kv_store_load_delete(l->set, key));
        l->it_st = kv_store_iter_next(l->it);
        if (c == 0)
            return l->it_st == ST_END ? ST_OK : l->it_st;
    }
    return l->it_st == ST_END ? ST_OK : l->it_st;
}

static status span_enter(struct kv_load *l)
{
    const struct kv__span *span = &l->spans.at[l->span++];

    if (!span->shared)
        return kv_store_load_replace(l->set, span->lower, span->upper);
    l->it = kv_store_iter_new(l->state->store, span->lower, span->upper, KV_TIER_BULK);
    l->it_st = kv_store_iter_seek(l->it, span->lower);
    return ST_OK;
}

static status span_leave(struct kv_load *l)
{
    if (l->it == NULL)
        return ST_OK;
    const struct kv__span *span = &l->spans.at[l->span - 1];
    status st = drop_local(l, span, span->upper);
    kv_store_iter_free(l->it);
    l->it = NULL;
    return st;
}

/* Enters the range that KEY is in; ST_CORRUPT if it is in none. */
static status span_of(struct kv_load *l, bytes key)
{
    while (l->span == 0 || bytes_cmp(key, l->spans.at[l->span - 1].upper) >= 0) {
        if (l->span == l->spans.count)
            return ST_CORRUPT;
        ST_TRY(span_leave(l));
        ST_TRY(span_enter(l));
    }
    const struct kv__span *span = &l->spans.at[l->span - 1];
    if (bytes_cmp(key, span->lower) < 0 || !kv__span_owns(l->state, span, key))
        return ST_CORRUPT; /* N1 */
    return span->shared ? drop_local(l, span, key) : ST_OK;
}

static status take_record(struct kv_load *l, bytes value)
{
    ST_TRY(kv__record_decode(value, &l->record));
    if (l->record.applied_index != l->id.index || l->record.applied_term != l->id.term ||
        l->record.applied_ts == 0 || l->record.applied_ts >= HLC_MAX)
        return ST_CORRUPT;
    l->record_seen = true;
    return ST_OK;
}

static status take_entry(struct kv_load *l, bytes key, bytes value)
{
    if (key.size == 0 || key.size > KV_KEY_MAX ||
        bytes_cmp(key, bytes_make(l->last.data, l->last.size)) <= 0)
        return ST_CORRUPT;
    ST_TRY(span_of(l, key));
    if (l->span == l->spans.count)
        ST_TRY(take_record(l, value));
    obuf_reset(&l->last);
    obuf_put(&l->last, key.data, key.size);
    l->entries++;
    l->bytes += key.size + value.size;
    return kv_store_load_put(l->set, key, value);
}

static status take_entries(struct kv_load *l, struct reader *r)
{
    while (r->next != r->end) {
        bytes key = get_bytes(r), value = get_bytes(r);

        if (r->bad)
            return ST_CORRUPT;
        ST_TRY(take_entry(l, key, value));
    }
    return ST_OK;
}

static status put_note(struct kv_load *l)
{
    uint8_t key[KV__NOTE_KEY_SIZE];
    struct obuf o;
    status st;

    obuf_init(&o);
    put_u8(&o, NOTE_FORMAT);
    put_u64(&o, l->id.index);
    put_bytes(&o, buf_bytes(l->note));
    st = kv_store_load_put(l->set, kv__note_key(key, l->state->options.shard),
                           bytes_make(o.data, o.size));
    obuf_fini(&o);
    return st;
}

static status take_end(struct kv_load *l, struct reader *r)
{
    uint64_t entries = get_u64(r), sum = get_u64(r);

    ST_TRY(codec_finish(r));
    if (entries != l->entries || sum != l->bytes || !l->record_seen)
        return ST_CORRUPT;
    ST_TRY(put_note(l));
    if (fault_point("kv.load.seal"))
        return ST_IO;
    ST_TRY(kv_store_load_seal(l->set));
    l->sealed = true;
    return ST_END;
}

status kv_load_part(struct kv_load *l, bytes part)
{
    struct reader r = reader_make(part);
    uint64_t sum = get_u64(&r), number = get_u64(&r);
    uint8_t kind = get_u8(&r);

    if (r.bad || l->sealed || number != l->number || sum != kv__part_sum(part, l->id.index, number))
        return ST_CORRUPT;
    if (fault_point("kv.load.part"))
        return ST_IO;
    l->number++;
    if (kind == KV__PART_END)
        return take_end(l, &r);
    return kind == KV__PART_ENTRIES ? take_entries(l, &r) : ST_CORRUPT;
}

/* -- installing -------------------------------------------------------------------------------- */

/* What a reopening would read. */
static status read_back(struct kv_load *l)
{
    struct kv_state *s = l->state;
    struct kv_shard_record persisted;

    ST_TRY(kv__record_load(s->store, s->options.shard, KV_TIER_PERSISTED, &persisted));
    if (persisted.applied_index != l->id.index || persisted.applied_term != l->id.term)
        return ST_IO; /* the store says that it has it and does not */
    ST_TRY(kv__queue_load(s->store, KV__RING_QUEUE, s->options.shard, l->record.queue_acked,
                          l->record.applied_ts, &l->queue));
    ST_TRY(kv__dedup_load(s->store, s->options.shard, &l->record, &l->dedup));
    ST_TRY(kv__recent_load(s->store, s->options.shard, 0, &l->recent));
    kv__recent_sort(&l->recent);
    return ST_OK;
}

status kv_load_install(struct kv_load *l)
{
    struct kv_state *s = l->state;

    ASSERT(l->sealed && !l->installed);
    if (fault_point("kv.load.install"))
        return ST_IO;
    kv__raise_flushed(s, l->record.applied_ts); /* N3 */
    ST_TRY(kv_store_load_install(l->set));
    l->installed = true;
    return fault_point("kv.load.installed") ? ST_IO : read_back(l);
}

bool kv_load_installed(const struct kv_load *l)
{
    return l->installed;
}

void kv_load_take(struct kv_load *l)
{
    ASSERT(l->installed);
    kv__state_replace_take(l->state, &l->record, &l->queue, &l->dedup, &l->recent);
    kv_load_free(l);
}

status kv_state_note(struct kv_store *store, uint64_t shard, struct arena *a, uint64_t *index,
                     bytes *note)
{
    uint8_t key[KV__NOTE_KEY_SIZE];
    bytes value;

    ST_TRY(kv_store_get(store, kv__note_key(key, shard), KV_TIER_ANY, a, &value));
    struct reader r = reader_make(value);
    if (get_u8(&r) != NOTE_FORMAT)
        return ST_CORRUPT;
    *index = get_u64(&r);
    *note = get_bytes(&r);
    return codec_finish(&r);
}
