/*
 * The state of one shard: a list of generations over the store.
 *
 *     list (RCU) -> [ active | sealed | sealed | ... ]  newest first, an immutable array
 *                        |
 *                   memtable, and once sealed: record and queue as of the seal
 *     store      -> everything older, one state per key
 *
 * A read takes the list, looks through the memtables from the newest on, and last asks the store.
 * A flush writes a generation into the store first and takes it out of the list afterwards, so a
 * key is always in one of the two; see attr_delta.c for why it may be in both.
 *
 * Invariants
 *   G1  Stamps of a generation lie above those of every older one.
 *   G2  Only the active generation changes. Its stamps above `applied_ts` belong to the command
 *       under way and are visible to its writer alone.
 *   G3  The store's record and the rows beside it are of the same index.
 *   G4  A snapshot below `flushed_ts` must not use what the store says.
 *
 * Threads: the owner writes; others read inside an RCU section, or with a counted list.
 */
#include "base/assert.h"
#include "base/codec.h"
#include "base/rcu.h"
#include "kv/state_internal.h"

#include <stdlib.h>

#define RECORD_FORMAT 2u
#define RECORD_FORMAT_OLD 1u /* without answers */

/* Its address tells threads apart. */
static _Thread_local char thread_mark;

bool kv__owner_here(const struct kv_state *s)
{
    return atomic_load_explicit(&s->owner, memory_order_relaxed) == &thread_mark;
}

/* -- lists and generations -------------------------------------------------------------------- */

static struct kv__generation *generation_new(const struct kv_state *s)
{
    struct kv__generation *g = calloc(1, sizeof *g);

    ASSERT(g != NULL);
    atomic_init(&g->refs, 1);
    g->mem = kv_memtable_new(s->options.filter_for_bytes);
    return g;
}

struct kv__generation *kv__generation_ref(struct kv__generation *g)
{
    atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
    return g;
}

void kv__generation_unref(struct kv__generation *g)
{
    if (g == NULL || atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) != 1)
        return;
    kv_memtable_unref(g->mem);
    for (unsigned ring = 0; ring < ARRAY_LEN(g->sealed); ring++) {
        for (size_t i = 0; i < g->sealed[ring].count; i++)
            buf_unref(g->sealed[ring].at[i].items);
        free(g->sealed[ring].at);
    }
    free(g);
}

struct kv__list *kv__list_new(unsigned count)
{
    struct kv__list *l = calloc(1, sizeof *l + count * sizeof l->gen[0]);

    ASSERT(l != NULL);
    atomic_init(&l->refs, 1);
    l->count = count;
    return l;
}

struct kv__list *kv__list_ref(const struct kv_state *s, bool pool)
{
    struct kv__list *l;

    if (pool)
        rcu_online();
    l = rcu_read(&s->list);
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    if (pool)
        rcu_offline();
    return l;
}

struct kv__list *kv__list_ref_locked(struct kv_state *s)
{
    struct kv__list *l;

    pthread_mutex_lock(&s->list_lock);
    l = rcu_read(&s->list);
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&s->list_lock);
    return l;
}

void kv__list_unref(struct kv__list *l)
{
    if (atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (unsigned i = 0; i < l->count; i++)
        kv__generation_unref(l->gen[i]);
    free(l);
}

static void list_unref_later(void *arg)
{
    kv__list_unref(arg);
}

void kv__list_publish_take(struct kv_state *s, struct kv__list *next)
{
    struct kv__list *old = atomic_load_explicit(&s->list, memory_order_relaxed);

    pthread_mutex_lock(&s->list_lock);
    rcu_publish(&s->list, next);
    pthread_mutex_unlock(&s->list_lock);
    if (old != NULL)
        rcu_defer(list_unref_later, old);
}

/* The owner's own look at its list. */
static struct kv__list *own_list(const struct kv_state *s)
{
    return atomic_load_explicit(&s->list, memory_order_relaxed);
}

/* -- values and keys of the store ------------------------------------------------------------- */

status kv__stored_decode(bytes key, bytes value, struct kv__stored *out)
{
    struct reader r = reader_make(value);

    out->ts = get_u64(&r);
    out->folded = kv_key_is_attr(key) ? get_u64(&r) : 0;
    if (r.bad)
        return ST_CORRUPT;
    out->row = bytes_make(r.next, (size_t)(r.end - r.next));
    return ST_OK;
}

void kv__stored_encode(bytes key, const struct kv__stored *in, struct obuf *out)
{
    put_u64(out, in->ts);
    if (kv_key_is_attr(key))
        put_u64(out, in->folded);
    obuf_put(out, in->row.data, in->row.size);
}

bytes kv__record_key(uint8_t out[KV__RECORD_KEY_SIZE], uint64_t shard)
{
    out[0] = KV_SYSTEM;
    store_be32(out + 1, 0);
    store_be64(out + KV_KEY_HEADER, shard);
    return bytes_make(out, KV__RECORD_KEY_SIZE);
}

bytes kv__queue_key(uint8_t out[KV__QUEUE_KEY_SIZE], enum kv__ring which, uint64_t shard, hlc_ts ts)
{
    out[0] = KV_QUEUE;
    store_be32(out + 1, (uint32_t)which);
    store_be64(out + KV_KEY_HEADER, shard);
    store_be64(out + KV_KEY_HEADER + 8, ts);
    return bytes_make(out, KV__QUEUE_KEY_SIZE);
}

void kv__record_encode(const struct kv_shard_record *r, struct obuf *out)
{
    put_u8(out, RECORD_FORMAT);
    put_u64(out, r->applied_index);
    put_u64(out, r->applied_term);
    put_u64(out, r->applied_ts);
    put_u64(out, r->next_file_id);
    put_u64(out, r->queue_acked);
    put_u32(out, r->range_locks);
    put_u32(out, r->version);
    put_u64(out, r->answers_dropped);
}

status kv__record_decode(bytes value, struct kv_shard_record *out)
{
    struct reader r = reader_make(value);

    unsigned format = get_u8(&r);

    if (format != RECORD_FORMAT && format != RECORD_FORMAT_OLD)
        return ST_CORRUPT;
    out->applied_index = get_u64(&r);
    out->applied_term = get_u64(&r);
    out->applied_ts = get_u64(&r);
    out->next_file_id = get_u64(&r);
    out->queue_acked = get_u64(&r);
    out->range_locks = get_u32(&r);
    out->version = get_u32(&r);
    out->answers_dropped = format != RECORD_FORMAT_OLD ? get_u64(&r) : 0;
    return codec_finish(&r);
}

/* -- opening and closing ---------------------------------------------------------------------- */

status kv__record_load(struct kv_store *store, uint64_t shard, enum kv_tier tier,
                       struct kv_shard_record *out)
{
    uint8_t key[KV__RECORD_KEY_SIZE];
    struct arena a;
    bytes value;
    status st;

    *out = (struct kv_shard_record){.applied_index = 0};
    arena_init(&a, 256);
    st = kv_store_get(store, kv__record_key(key, shard), tier, &a, &value);
    if (st == ST_OK)
        st = kv__record_decode(value, out);
    else if (st == ST_NOT_FOUND)
        st = ST_OK;
    arena_fini(&a);
    return st;
}

/* Does the store hold rules? Only the shard of objects is asked for them. */
static status find_rules(struct kv_state *s)
{
    static const uint8_t first[] = {KV_LIFECYCLE}, behind[] = {KV_LIFECYCLE + 1};
    bytes lower = bytes_make(first, sizeof first);

    if (s->options.table != 0 && s->options.table != KV_OBJECT)
        return ST_OK;
    struct kv_store_iter *it =
        kv_store_iter_new(s->store, lower, bytes_make(behind, sizeof behind), KV_TIER_ANY);
    status st = kv_store_iter_seek(it, lower);

    kv_store_iter_free(it);
    atomic_store_explicit(&s->has_rules, st == ST_OK, memory_order_relaxed);
    return st == ST_END ? ST_OK : st;
}

status kv_state_open(struct kv_store *store, const struct kv_state_options *o,
                     struct kv_state **out, struct err *err)
{
    struct kv_state *s = calloc(1, sizeof *s);
    struct kv_shard_record persisted;
    struct kv__list *list;
    status st;

    ASSERT(s != NULL);
    s->store = store;
    s->options = *o;
    s->density = kv_density_new(o->dense > 0 ? o->dense : KV_DENSE);
    kv__dedup_init(&s->dedup);
    pthread_mutex_init(&s->list_lock, NULL);
    list = kv__list_new(1);
    list->gen[0] = generation_new(s);
    kv__list_publish_take(s, list);
    ST_GOTO(out, kv__record_load(store, o->shard, KV_TIER_ANY, &s->record));
    ST_GOTO(out, kv__record_load(store, o->shard, KV_TIER_PERSISTED, &persisted));
    ST_GOTO(out, kv__queue_load(store, KV__RING_QUEUE, o->shard, s->record.queue_acked,
                                s->record.applied_ts, &s->queue));
    ST_GOTO(out, kv__dedup_load(store, o->shard, &s->record, &s->dedup));
    ST_GOTO(out, kv__recent_load(store, o->shard, 0, &s->recent));
    kv__recent_sort(&s->recent);
    ST_GOTO(out, find_rules(s));
    s->sealed_ts = s->record.applied_ts;
    atomic_init(&s->applied_ts, s->record.applied_ts);
    atomic_init(&s->flushed_ts, s->record.applied_ts);
    atomic_init(&s->persisted_index, persisted.applied_index);
    s->persisted_term = persisted.applied_term;
    atomic_init(&s->writer, NULL);
    *out = s;
    return ST_OK;
out:
    err_set(err, st, "could not read the state of shard %llu: %s", (unsigned long long)o->shard,
            status_text(st));
    kv_state_close(s);
    return st;
}

void kv__state_replace_take(struct kv_state *s, const struct kv_shard_record *record,
                            struct kv__queue *queue, struct kv__dedup *dedup,
                            struct kv__recent *recent)
{
    struct kv__list *list = kv__list_new(1);

    ASSERT(!s->in_command);
    ASSERT(!s->flushing);
    ASSERT(record->applied_index > s->record.applied_index);
    ASSERT(record->applied_ts > s->record.applied_ts);
    list->epoch = own_list(s)->epoch + 1;
    list->gen[0] = generation_new(s);
    kv__list_publish_take(s, list);
    kv__queue_fini(&s->queue);
    s->queue = *queue;
    *queue = (struct kv__queue){.ring = NULL};
    kv__dedup_fini(&s->dedup);
    s->dedup = *dedup;
    kv__dedup_init(dedup);
    kv__recent_fini(&s->recent);
    s->recent = *recent;
    kv__recent_init(recent);
    s->record = *record;
    s->system_writes++; /* they may all be others */
    s->rule_writes++;
    atomic_store_explicit(&s->has_rules, true, memory_order_relaxed);
    s->sealed_ts = record->applied_ts;
    s->dirty = false;
    kv_density_clear(s->density);
    kv__raise_flushed(s, record->applied_ts);
    s->persisted_term = record->applied_term;
    atomic_store_explicit(&s->persisted_index, record->applied_index, memory_order_relaxed);
    atomic_store_explicit(&s->applied_ts, record->applied_ts, memory_order_release);
}

void kv_state_close(struct kv_state *s)
{
    if (s == NULL)
        return;
    ASSERT(!s->in_command);
    ASSERT(!s->flushing);
    kv__list_unref(own_list(s)); /* no reader is left when a shard closes */
    kv__queue_fini(&s->queue);
    kv__dedup_fini(&s->dedup);
    kv__recent_fini(&s->recent);
    kv__attr_cache_free(s->attr_cache);
    kv_density_free(s->density);
    pthread_mutex_destroy(&s->list_lock);
    free(s);
}

struct kv_density *kv_state_density(struct kv_state *s)
{
    return s->density;
}

const struct kv_shard_record *kv_state_record(const struct kv_state *s)
{
    return &s->record;
}

struct kv_shard_record *kv_state_record_mut(struct kv_state *s)
{
    ASSERT(s->in_command);
    s->dirty = true;
    return &s->record;
}

hlc_ts kv_state_applied_ts(const struct kv_state *s)
{
    return atomic_load_explicit(&s->applied_ts, memory_order_acquire); /* pairs with state_end */
}

uint64_t kv_state_persisted_index(const struct kv_state *s)
{
    return atomic_load_explicit(&s->persisted_index, memory_order_relaxed);
}

void kv__raise_flushed(struct kv_state *s, hlc_ts ts)
{
    if (atomic_load_explicit(&s->flushed_ts, memory_order_relaxed) < ts)
        atomic_store_explicit(&s->flushed_ts, ts, memory_order_release);
}

/* -- reading ---------------------------------------------------------------------------------- */

hlc_ts kv__view_stamp(const struct kv_view *v)
{
    const struct kv_state *s = v->state;
    hlc_ts applied;

    /* The thread inside a command sees that command's writes; G2. */
    if (atomic_load_explicit(&s->writer, memory_order_relaxed) == &thread_mark)
        return v->at;
    applied = kv_state_applied_ts(s);
    return v->at < applied ? v->at : applied;
}

status kv__store_get(const struct kv_view *v, hlc_ts at, bytes key, struct kv__stored *out)
{
    bytes value;
    status st = kv_store_get(v->state->store, key, v->tier, v->arena, &value);

    if (st != ST_OK && st != ST_NOT_FOUND)
        return st;
    /* `flushed_ts` is raised before the batch is written, so what was just read, or was just found
     * to be absent, is covered. */
    if (v->at != HLC_MAX && at < atomic_load_explicit(&v->state->flushed_ts, memory_order_acquire))
        return ST_CONFLICT; /* G4 */
    ST_TRY(st);
    return kv__stored_decode(key, value, out);
}

static status get_plain(const struct kv_view *v, const struct kv__list *list, hlc_ts at, bytes key,
                        struct kv_cell *out)
{
    struct kv__stored stored;

    for (unsigned i = 0; i < list->count; i++) {
        const struct kv_mem_entry *e = kv_memtable_find(list->gen[i]->mem, key);
        const struct kv_version *ver;

        if (e == NULL)
            continue;
        ver = kv__visible(kv_mem_entry_newest(e), at);
        if (ver == NULL)
            continue;
        if (ver->deleted)
            return ST_NOT_FOUND;
        *out = (struct kv_cell){.ts = ver->ts, .row = bytes_make(ver->data, ver->size)};
        return ST_OK;
    }
    ST_TRY(kv__store_get(v, at, key, &stored));
    *out = (struct kv_cell){.ts = stored.ts, .row = stored.row};
    return ST_OK;
}

static status get_in(const struct kv_view *v, const struct kv__list *list, bytes key,
                     struct kv_cell *out)
{
    hlc_ts at = kv__view_stamp(v);

    if (kv_key_is_attr(key))
        return kv__attr_get(v, list, at, key, NULL, out);
    return get_plain(v, list, at, key, out);
}

status kv_state_get(const struct kv_view *v, bytes key, struct kv_cell *out)
{
    struct kv__list *list;
    status st;

    if (!v->pool) /* inside the caller's RCU section */
        return get_in(v, rcu_read(&v->state->list), key, out);
    list = kv__list_ref(v->state, true);
    st = get_in(v, list, key, out);
    if (st == ST_OK)
        out->row = arena_copy(v->arena, out->row);
    kv__list_unref(list);
    return st;
}

hlc_ts kv_state_newer(const struct kv_state *s, bytes key, hlc_ts after, bool *deleted)
{
    const struct kv__list *list = rcu_read(&s->list);

    for (unsigned i = 0; i < list->count; i++) {
        const struct kv_mem_entry *e = kv_memtable_find(list->gen[i]->mem, key);
        const struct kv_version *newest = e != NULL ? kv_mem_entry_newest(e) : NULL;

        if (newest == NULL)
            continue;
        *deleted = newest->deleted;
        return newest->ts > after ? newest->ts : 0;
    }
    return kv__recent_newer(&s->recent, key, after, deleted);
}

/* How far a prefetch reads on from its key in each direction: a scan that stopped there needs its
 * neighbours. Of large rows few, or they displace the key's own block; but the next one always. */
#define PREFETCH_ENTRIES 256u
#define PREFETCH_BYTES (64u * 1024u)

/* A point read alone may be answered by a filter and leave the block where a scan stands unread, so
 * the scan would stop there for ever. */
static void prefetch_around(struct kv_store *store, struct arena *a, bytes key)
{
    bytes lower = bytes_make(key.data, 1), upper = kv_key_after_prefix(a, lower);
    struct kv_store_iter *it = kv_store_iter_new(store, lower, upper, KV_TIER_ANY);
    status st = kv_store_iter_seek_before(it, key);
    size_t read = 0;

    for (unsigned i = 0; st == ST_OK && i < PREFETCH_ENTRIES && read < PREFETCH_BYTES; i++) {
        read += kv_store_iter_value(it).size;
        st = kv_store_iter_prev(it);
    }
    st = kv_store_iter_seek(it, key);
    read = 0;
    for (unsigned i = 0; st == ST_OK && i < PREFETCH_ENTRIES && read < PREFETCH_BYTES; i++) {
        read += kv_store_iter_value(it).size;
        st = kv_store_iter_next(it);
    }
    kv_store_iter_free(it);
}

void kv_state_prefetch(struct kv_state *s, bytes key)
{
    struct arena a;
    bytes value;
    status st;

    arena_init(&a, 512);
    st = kv_store_get(s->store, key, KV_TIER_ANY, &a, &value);
    UNUSED(st); /* the read that follows reports what is wrong */
    prefetch_around(s->store, &a, key);
    arena_fini(&a);
}

/* What a row has beside its key's and its bytes' columns. */
static void fill_in(const struct kv_cell *cell, struct kv_row *out)
{
    const struct kv_table_def *def = kv_table_def(out->table);

    if (def->seq_column >= 0)
        out->col[def->seq_column] = kv_int((int64_t)cell->ts);
    if (cell->aggregated) {
        out->col[META_NUM_CHILDREN] = kv_int(cell->num_children);
        out->col[META_MTIME] = cell->mtime == INT64_MIN ? KV_NULL : kv_int(cell->mtime);
        out->col[META_CTIME] = cell->ctime == INT64_MIN ? KV_NULL : kv_int(cell->ctime);
    }
}

status kv_cell_row(struct arena *a, bytes key, const struct kv_cell *cell, struct kv_row *out)
{
    uint32_t ns;

    ST_TRY(kv_key_decode(a, key, &ns, out));
    ST_TRY(kv_row_decode(out->table, cell->row, out));
    fill_in(cell, out);
    return ST_OK;
}

status kv_cell_row_some(struct arena *a, bytes key, const struct kv_cell *cell,
                        kv_column_set wanted, struct kv_row *out)
{
    uint32_t ns;

    ST_TRY(kv_key_decode(a, key, &ns, out));
    ST_TRY(kv_row_decode_some(out->table, cell->row, wanted, out));
    fill_in(cell, out);
    return ST_OK;
}

/* -- writing ---------------------------------------------------------------------------------- */

void kv_state_begin(struct kv_state *s, uint64_t index, uint64_t term, hlc_ts ts)
{
    ASSERT(!s->in_command);
    ASSERT(index > s->record.applied_index);
    ASSERT(ts > s->record.applied_ts);
    ASSERT(ts < HLC_MAX);
    s->in_command = true;
    s->pushed = false;
    s->next =
        (struct kv_shard_record){.applied_index = index, .applied_term = term, .applied_ts = ts};
    atomic_store_explicit(&s->writer, &thread_mark, memory_order_relaxed);
    atomic_store_explicit(&s->owner, &thread_mark, memory_order_relaxed);
}

static struct kv_memtable *active(struct kv_state *s)
{
    ASSERT(s->in_command);
    s->dirty = true;
    return own_list(s)->gen[0]->mem;
}

static void note_key(struct kv_state *s, bytes key)
{
    s->system_writes += load_be32(key.data + 1) == 0;
    if (UNLIKELY(key.data[0] == KV_LIFECYCLE)) {
        s->rule_writes++;
        atomic_store_explicit(&s->has_rules, true, memory_order_relaxed);
    }
}

bool kv_state_has_rules(const struct kv_state *s)
{
    return atomic_load_explicit(&s->has_rules, memory_order_relaxed);
}

uint64_t kv_state_rule_writes(const struct kv_state *s)
{
    return s->rule_writes;
}

uint64_t kv_state_system_writes(const struct kv_state *s)
{
    return s->system_writes;
}

void kv_state_put(struct kv_state *s, bytes key, bytes row, bool fresh)
{
    note_key(s, key);
    kv_memtable_put(active(s), key, s->next.applied_ts, false, fresh, row);
}

void kv_state_delete(struct kv_state *s, bytes key, bool fresh)
{
    note_key(s, key);
    kv_memtable_put(active(s), key, s->next.applied_ts, true, fresh, BYTES_EMPTY);
}

void kv_state_delta(struct kv_state *s, bytes attr_key, int64_t children, int64_t mtime,
                    int64_t ctime)
{
    ASSERT(kv_key_is_attr(attr_key));
    kv_memtable_delta(active(s), attr_key, children, mtime, ctime, s->next.applied_ts);
}

void kv_state_queue_push(struct kv_state *s, bytes items)
{
    kv_state_queue_push_take(s, buf_copy(items));
}

void kv_state_queue_push_take(struct kv_state *s, struct buf *items)
{
    ASSERT(s->in_command);
    ASSERT(!s->pushed);
    s->pushed = true;
    s->dirty = true;
    kv__queue_push_take(&s->queue, s->next.applied_ts, items);
}

void kv_state_queue_ack(struct kv_state *s, hlc_ts up_to)
{
    ASSERT(s->in_command);
    if (up_to > s->record.applied_ts)
        up_to = s->record.applied_ts; /* nothing younger can have been delivered */
    if (up_to <= s->record.queue_acked)
        return; /* an acknowledgement that came twice */
    s->dirty = true;
    s->record.queue_acked = up_to;
    kv__queue_drop(&s->queue, up_to);
}

void kv_state_end(struct kv_state *s)
{
    ASSERT(s->in_command);
    s->record.applied_index = s->next.applied_index;
    s->record.applied_term = s->next.applied_term;
    s->record.applied_ts = s->next.applied_ts;
    s->in_command = false;
    atomic_store_explicit(&s->writer, NULL, memory_order_relaxed);
    atomic_store_explicit(&s->applied_ts, s->record.applied_ts, memory_order_release);
}

/* -- generations ------------------------------------------------------------------------------ */

/* Records pushed since the last seal and still in the ring go with the generation. */
static void seal_ring(struct kv_state *s, const struct kv__queue *q, struct kv__sealed_ring *out)
{
    size_t first = kv__queue_above(q, s->sealed_ts);

    out->count = q->count - first;
    if (out->count == 0)
        return;
    out->at = calloc(out->count, sizeof *out->at);
    ASSERT(out->at != NULL);
    for (size_t i = 0; i < out->count; i++) {
        out->at[i] = *kv__queue_at(q, first + i);
        buf_ref(out->at[i].items);
    }
}

bool kv_state_seal(struct kv_state *s, bool force)
{
    struct kv__list *old = own_list(s), *next;

    ASSERT(!s->in_command);
    if (!s->dirty || (!force && kv_memtable_bytes(old->gen[0]->mem) < s->options.memtable_bytes))
        return false;
    old->gen[0]->record = s->record;
    seal_ring(s, &s->queue, &old->gen[0]->sealed[KV__RING_QUEUE]);
    seal_ring(s, &s->dedup.ring, &old->gen[0]->sealed[KV__RING_ANSWERS]);
    next = kv__list_new(old->count + 1);
    next->epoch = old->epoch;
    next->gen[0] = generation_new(s);
    for (unsigned i = 0; i < old->count; i++)
        next->gen[i + 1] = kv__generation_ref(old->gen[i]);
    kv__list_publish_take(s, next);
    s->sealed_ts = s->record.applied_ts;
    s->dirty = false;
    return true;
}

void kv_state_touch(struct kv_state *s)
{
    ASSERT(!s->in_command);
    s->dirty |= s->record.applied_index > kv_state_persisted_index(s);
}

size_t kv_state_memory(const struct kv_state *s)
{
    const struct kv__list *list = own_list(s);
    size_t sum = s->queue.byte_count;

    for (unsigned i = 0; i < list->count; i++)
        sum += kv_memtable_bytes(list->gen[i]->mem);
    return sum;
}

void kv_state_stats(const struct kv_state *s, struct kv_state_stats *out)
{
    const struct kv__list *list = own_list(s);

    *out = s->stats;
    out->generations = list->count;
    out->memory_bytes = kv_state_memory(s);
    out->queue_length = s->queue.count;
    out->persisted_index = kv_state_persisted_index(s);
    for (unsigned i = 0; i < list->count; i++)
        out->entries += kv_memtable_entries(list->gen[i]->mem);
    if (list->count > 1)
        out->oldest_generation = list->gen[list->count - 1]->record.applied_ts;
}
