/*
 * Flush: the oldest sealed generation, pruned to one state per key, as one atomic batch.
 *
 *     new (owner) -> run (pool): build -> write -> sync -> verify -> done (owner)
 *
 * Of each key only the newest version counts. A deletion becomes a tombstone; a key that this
 * generation saw both come and go leaves nothing. Pending deltas are folded into the row, of the
 * same generation or of the store. Queue, answers and the shard's record are those of the seal;
 * what changed shortly before it is written down (recent.h).
 *
 * A large generation can be flushed in pieces: the batch is then a load (load_batch.h), which needs
 * no second pass in RocksDB's own memory and threads, and after each few entries its owner may
 * pause. Before it is done its blocks are read into the cache once, as a batch's are by RocksDB.
 *
 * Invariants
 *   F1  Generations are flushed in order, one at a time: what the store holds is the state at the
 *       record's index and nothing else.
 *   F2  The batch can be built and written again after a failure: a stored row whose `folded`
 *       covers a delta has it already.
 *   F3  The generation leaves the list after its batch is persisted, never before.
 *   F4  `flushed_ts` is raised before the batch becomes visible.
 */
#include "base/assert.h"
#include "base/codec.h"
#include "base/fault.h"
#include "base/rcu.h"
#include "kv/load_batch.h"
#include "kv/state_internal.h"

#include <stdlib.h>

#define BATCH 64u
#define WARM_BYTES 3072u /* one look for so many bytes of entries: each block of 4 kB is met */
#define KEPT_KEY_SIZE (KV__RECORD_KEY_SIZE + 1)

struct kv_flush {
    struct kv_state *state;
    struct kv__generation *gen;
    struct kv_shard_record before; /* of the store, when the generation is flushed first */
    uint8_t kept[KV_KEPT_MAX];
    size_t kept_size;
    struct kv_flush_pieces pieces; /* pause is NULL: in one piece */
    /* while running */
    struct kv_store_load *load; /* in pieces; else NULL */
    struct kv_store_change *change;
    size_t warm_bytes; /* since the last look */
    struct kv_store_batch *batch;
    struct obuf value;
    struct arena arena;
    struct kv_state_stats counts;
    struct kv__recent recent;   /* of this generation and the one before */
    struct kv_density *density; /* of what the batch deletes */
};

/* Log time at which generation G may be flushed. */
static hlc_ts due_of(const struct kv_state *s, const struct kv__generation *g)
{
    return g->record.applied_ts + hlc_from_us((int64_t)s->options.retention_us);
}

static struct kv__generation *oldest_sealed(const struct kv_state *s)
{
    const struct kv__list *list = atomic_load_explicit(&s->list, memory_order_relaxed);

    return list->count > 1 ? list->gen[list->count - 1] : NULL;
}

hlc_ts kv_state_flush_due(const struct kv_state *s)
{
    const struct kv__generation *g = oldest_sealed(s);

    return g != NULL ? due_of(s, g) : 0;
}

struct kv_flush *kv_flush_new(struct kv_state *s, hlc_ts log_time)
{
    struct kv__generation *g = oldest_sealed(s);
    struct kv_flush *f;

    if (g == NULL || s->flushing || log_time < due_of(s, g))
        return NULL;
    f = calloc(1, sizeof *f);
    ASSERT(f != NULL);
    f->state = s;
    f->gen = kv__generation_ref(g);
    s->flushing = true;
    return f;
}

void kv_flush_keep(struct kv_flush *f, bytes what)
{
    ASSERT(what.size > 0 && what.size <= KV_KEPT_MAX);
    memcpy(f->kept, what.data, what.size);
    f->kept_size = what.size;
}

void kv_flush_in_pieces(struct kv_flush *f, const struct kv_flush_pieces *how)
{
    ASSERT(how->pause != NULL && how->dir != NULL);
    f->pieces = *how;
}

/* Beside the record; 1 is the note's (snapshot_part.c). */
static bytes kept_key(uint8_t out[KEPT_KEY_SIZE], uint64_t shard)
{
    (void)kv__record_key(out, shard);
    out[KV__RECORD_KEY_SIZE] = 2;
    return bytes_make(out, KEPT_KEY_SIZE);
}

status kv_state_kept(struct kv_store *store, uint64_t shard, struct arena *a, bytes *out)
{
    uint8_t key[KEPT_KEY_SIZE];
    return kv_store_get(store, kept_key(key, shard), KV_TIER_ANY, a, out);
}

/* -- building --------------------------------------------------------------------------------- */

static void delete_key(struct kv_flush *f, bytes key)
{
    kv_store_batch_delete(f->batch, key);
    kv_density_count(f->density, key, true, f->gen->record.applied_ts);
}

static void put_row(struct kv_flush *f, bytes key, const struct kv__stored *stored)
{
    obuf_reset(&f->value);
    kv__stored_encode(key, stored, &f->value);
    kv_store_batch_put(f->batch, key, bytes_make(f->value.data, f->value.size));
    kv_density_count(f->density, key, false, 0);
    f->counts.keys_flushed++;
}

/* The row of BASE with D folded in. */
static status put_folded(struct kv_flush *f, bytes key, hlc_ts ts, bytes base,
                         const struct kv_delta *d)
{
    struct kv__stored stored = {.ts = ts, .folded = f->gen->record.applied_ts, .row = base};
    struct obuf row;
    status st = ST_OK;

    obuf_init(&row);
    if (d->present) {
        ST_GOTO(out, kv__attr_fold(base, d, &row));
        stored.row = bytes_make(row.data, row.size);
        f->counts.deltas_folded++;
    }
    put_row(f, key, &stored);
out:
    obuf_fini(&row);
    return st;
}

/* A directory that this generation only counted for: its row is in the store, or it went before. */
static status fold_into_store(struct kv_flush *f, bytes key, const struct kv_delta *d)
{
    struct kv__stored stored;
    bytes value;
    status st;

    arena_reset(&f->arena);
    st = kv_store_get(f->state->store, key, KV_TIER_ANY, &f->arena, &value);
    if (st == ST_NOT_FOUND)
        return ST_OK;
    ST_TRY(st);
    ST_TRY(kv__stored_decode(key, value, &stored));
    if (stored.folded >= d->last) {
        MARK("flush.delta_was_folded");
        return ST_OK; /* F2 */
    }
    return put_folded(f, key, stored.ts, stored.row, d);
}

static uint64_t versions_below(const struct kv_version *v)
{
    uint64_t n = 0;

    for (v = v->older; v != NULL; v = v->older)
        n++;
    return n;
}

static status flush_entry(struct kv_flush *f, const struct kv_mem_entry *e)
{
    bytes key = kv_mem_entry_key(e);
    const struct kv_version *v;
    struct kv_delta d;

    kv_mem_entry_read(e, &v, &d);
    if (v == NULL)
        return d.present ? fold_into_store(f, key, &d) : ST_OK;
    if (v->ts > kv__recent_since(f->gen->record.applied_ts))
        kv__recent_add(&f->recent, key, v->ts, v->deleted);
    f->counts.versions_pruned += versions_below(v);
    if (!v->deleted)
        return put_folded(f, key, v->ts, bytes_make(v->data, v->size), &d);
    if (kv_mem_entry_born_here(e)) {
        f->counts.keys_pruned++;
        return ST_OK;
    }
    delete_key(f, key);
    f->counts.tombstones_flushed++;
    return ST_OK;
}

/* FN for the generation's entries in the order of keys. */
static status each_entry(struct kv_flush *f,
                         status (*fn)(struct kv_flush *, const struct kv_mem_entry *))
{
    static const uint8_t first = 0;
    const struct kv_mem_entry *batch[BATCH];
    bytes from = bytes_make(&first, 1);
    unsigned n = kv_memtable_walk(f->gen->mem, from, BYTES_EMPTY, batch, BATCH);

    while (n > 0) {
        for (unsigned i = 0; i < n; i++)
            ST_TRY(fn(f, batch[i]));
        if (f->load != NULL)
            f->pieces.pause(f->pieces.arg);
        from = kv_mem_entry_key(batch[n - 1]);
        n = kv_memtable_walk_after(f->gen->mem, from, BYTES_EMPTY, batch, BATCH);
    }
    return ST_OK;
}

/* Deletes stored records of a ring that were in the store, stamps above BEFORE, and had left the
 * ring by the seal. */
static status build_dropped(struct kv_flush *f, enum kv__ring which, hlc_ts before, hlc_ts dropped)
{
    uint8_t lower[KV__QUEUE_KEY_SIZE], upper[KV__QUEUE_KEY_SIZE];
    uint64_t shard = f->state->options.shard;
    bytes from = kv__queue_key(lower, which, shard, before + 1);
    struct kv_store_iter *it;
    status st;

    if (dropped <= before)
        return ST_OK;
    it = kv_store_iter_new(f->state->store, from, kv__queue_key(upper, which, shard, dropped + 1),
                           KV_TIER_ANY);
    for (st = kv_store_iter_seek(it, from); st == ST_OK; st = kv_store_iter_next(it))
        delete_key(f, kv_store_iter_key(it));
    kv_store_iter_free(it);
    return st == ST_END ? ST_OK : st;
}

static void build_ring(struct kv_flush *f, enum kv__ring which)
{
    const struct kv__sealed_ring *ring = &f->gen->sealed[which];
    uint8_t key[KV__QUEUE_KEY_SIZE];

    for (size_t i = 0; i < ring->count; i++) {
        const struct kv__queued *r = &ring->at[i];

        kv_store_batch_put(f->batch, kv__queue_key(key, which, f->state->options.shard, r->ts),
                           buf_bytes(r->items));
    }
}

static status build_rings(struct kv_flush *f)
{
    const struct kv_shard_record *at = &f->gen->record;

    ST_TRY(build_dropped(f, KV__RING_QUEUE, f->before.queue_acked, at->queue_acked));
    ST_TRY(build_dropped(f, KV__RING_ANSWERS, f->before.answers_dropped, at->answers_dropped));
    build_ring(f, KV__RING_QUEUE);
    build_ring(f, KV__RING_ANSWERS);
    return ST_OK;
}

/* Also from the generation before, which the store has. */
static status build_recent(struct kv_flush *f)
{
    struct kv_store *store = f->state->store;
    uint64_t shard = f->state->options.shard;

    ST_TRY(kv__recent_load(store, shard, kv__recent_since(f->gen->record.applied_ts), &f->recent));
    kv__recent_sort(&f->recent);
    return kv__recent_put(store, shard, &f->recent, f->batch);
}

static void build_record(struct kv_flush *f)
{
    uint8_t key[KV__RECORD_KEY_SIZE];

    obuf_reset(&f->value);
    kv__record_encode(&f->gen->record, &f->value);
    kv_store_batch_put(f->batch, kv__record_key(key, f->state->options.shard),
                       bytes_make(f->value.data, f->value.size));
    if (f->kept_size > 0) {
        uint8_t kept[KEPT_KEY_SIZE];
        kv_store_batch_put(f->batch, kept_key(kept, f->state->options.shard),
                           bytes_make(f->kept, f->kept_size));
    }
}

/* The record that the store has at TIER, all zero if none. */
static status record_read(struct kv_flush *f, enum kv_tier tier, struct kv_shard_record *out)
{
    uint8_t key[KV__RECORD_KEY_SIZE];
    bytes value;
    status st;

    *out = (struct kv_shard_record){.applied_index = 0};
    arena_reset(&f->arena);
    st = kv_store_get(f->state->store, kv__record_key(key, f->state->options.shard), tier,
                      &f->arena, &value);
    if (st == ST_NOT_FOUND)
        return ST_OK;
    ST_TRY(st);
    return kv__record_decode(value, out);
}

static status build(struct kv_flush *f)
{
    if (fault_point("kv.flush.build"))
        return ST_IO;
    ST_TRY(record_read(f, KV_TIER_ANY, &f->before));
    ST_TRY(each_entry(f, flush_entry));
    ST_TRY(build_rings(f));
    ST_TRY(build_recent(f));
    build_record(f);
    return ST_OK;
}

/* -- running ---------------------------------------------------------------------------------- */

static status write_batch(struct kv_flush *f)
{
    struct kv_store *store = f->state->store;
    struct kv_store_batch *batch = f->batch;

    f->batch = NULL;
    kv__raise_flushed(f->state, f->gen->record.applied_ts); /* F4 */
    kv_density_expect(f->state->density, f->density);
    ST_TRY(kv_store_write(store, batch));
    if (fault_point("kv.flush.sync"))
        return ST_IO;
    return kv_store_flush(store);
}

static status tell(struct kv_flush *f, const struct kv_mem_entry *e)
{
    kv_store_change_key(f->change, kv_mem_entry_key(e));
    return ST_OK;
}

static status write_load(struct kv_flush *f)
{
    struct kv_store_change *change = f->change = kv_store_change_begin(f->state->store);
    status st = change != NULL ? each_entry(f, tell) : ST_OK;

    if (st == ST_OK)
        st = kv_load_batch_finish(f->batch, change);
    if (st == ST_OK)
        st = kv_store_load_seal(f->load);
    if (st == ST_OK && fault_point("kv.flush.sync"))
        st = ST_IO;
    if (st != ST_OK) {
        kv_store_change_end(change);
        return st;
    }
    kv__raise_flushed(f->state, f->gen->record.applied_ts); /* F4 */
    kv_density_expect(f->state->density, f->density);
    return kv_store_load_install_told(f->load, change);
}

/* Looks an entry up now and then, for its block to be in the cache before reads need it. */
static status warm(struct kv_flush *f, const struct kv_mem_entry *e)
{
    const struct kv_version *v;
    struct kv_delta d;
    bytes value;

    kv_mem_entry_read(e, &v, &d);
    if (v == NULL || v->deleted)
        return ST_OK;
    f->warm_bytes += kv_mem_entry_key(e).size + v->size;
    if (f->warm_bytes < WARM_BYTES)
        return ST_OK;
    f->warm_bytes = 0;
    arena_reset(&f->arena);
    status st = kv_store_get(f->state->store, kv_mem_entry_key(e), KV_TIER_ANY, &f->arena, &value);
    return st == ST_CORRUPT ? st : ST_OK; /* written moments ago */
}

static status write_and_sync(struct kv_flush *f)
{
    struct kv_shard_record persisted;

    if (fault_point("kv.flush.write"))
        return ST_IO;
    ST_TRY(f->load != NULL ? write_load(f) : write_batch(f));
    ST_TRY(record_read(f, KV_TIER_PERSISTED, &persisted));
    if (persisted.applied_index < f->gen->record.applied_index)
        return ST_IO; /* the store says it flushed and did not */
    return fault_point("kv.flush.done") ? ST_IO : ST_OK;
}

/* Where the entries go. */
static status batch_begin(struct kv_flush *f)
{
    struct kv_store *store = f->state->store;

    if (f->pieces.pause == NULL || kv_memtable_bytes(f->gen->mem) < f->pieces.bytes_min) {
        f->batch = kv_store_batch_new(store);
        return ST_OK;
    }
    ST_TRY(kv_store_load_new(store, f->pieces.dir, &f->load));
    f->batch = kv_load_batch_new(f->load);
    return ST_OK;
}

static status run(struct kv_flush *f)
{
    ST_TRY(batch_begin(f));
    ST_TRY(build(f));
    ST_TRY(write_and_sync(f));
    return f->load != NULL ? each_entry(f, warm) : ST_OK;
}

status kv_flush_run(struct kv_flush *f)
{
    status st;

    kv_density_free(f->density);
    f->density = kv_density_new(f->state->options.dense > 0 ? f->state->options.dense : KV_DENSE);
    f->counts = (struct kv_state_stats){.flushes = 1};
    kv__recent_fini(&f->recent);
    obuf_init(&f->value);
    arena_init(&f->arena, 4096);
    st = run(f);
    kv_store_batch_free(f->batch);
    f->batch = NULL;
    kv_store_load_free(f->load);
    f->load = NULL;
    obuf_fini(&f->value);
    arena_fini(&f->arena);
    return st;
}

static void drop_oldest(struct kv_state *s)
{
    struct kv__list *old = atomic_load_explicit(&s->list, memory_order_relaxed);
    struct kv__list *next = kv__list_new(old->count - 1);

    next->epoch = old->epoch + 1;
    for (unsigned i = 0; i < next->count; i++)
        next->gen[i] = kv__generation_ref(old->gen[i]);
    kv__list_publish_take(s, next);
}

static void counts_add(struct kv_state_stats *to, const struct kv_state_stats *from)
{
    to->flushes += from->flushes;
    to->keys_flushed += from->keys_flushed;
    to->keys_pruned += from->keys_pruned;
    to->tombstones_flushed += from->tombstones_flushed;
    to->versions_pruned += from->versions_pruned;
    to->deltas_folded += from->deltas_folded;
}

void kv_flush_done(struct kv_flush *f, status result)
{
    struct kv_state *s = f->state;

    ASSERT(s->flushing);
    ASSERT_INV("F1", oldest_sealed(s) == f->gen);
    s->flushing = false;
    if (result == ST_OK) {
        s->persisted_term = f->gen->record.applied_term;
        atomic_store_explicit(&s->persisted_index, f->gen->record.applied_index,
                              memory_order_relaxed);
        drop_oldest(s); /* F3 */
        kv__recent_fini(&s->recent);
        /* As a rule log time has passed, and no transaction is that old any more. */
        if (kv__recent_since(kv_state_applied_ts(s)) <= f->gen->record.applied_ts) {
            s->recent = f->recent;
            kv__recent_init(&f->recent);
        }
        counts_add(&s->stats, &f->counts);
        if (f->density != NULL)
            kv_density_add(s->density, f->density);
    }
    kv_density_free(f->density);
    kv__recent_fini(&f->recent);
    kv__generation_unref(f->gen);
    free(f);
}
