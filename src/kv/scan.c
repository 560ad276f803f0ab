/*
 * Ordered reads over all generations and the store: a merge of sorted sources.
 *
 * Each memtable is a source that is read in batches of entries, the store is one more. A step takes
 * the first key of all sources, decides what is visible under it, and remembers which sources stand
 * on it; they move only at the next step, so that what was lent stays valid until then.
 *
 * Invariants
 *   C1  The list is counted before the store's iterator is made, and the iterator is a snapshot: a
 *       key is in one of them, and nothing moves from one to the other during the scan.
 *   C2  Entries and versions live as long as the counted list; nothing else is held.
 *
 * Threads: the one that opened it. With `pool` it is outside RCU sections but for taking the list.
 */
#include "base/assert.h"
#include "kv/state_internal.h"

#include <stdlib.h>

#define BATCH 32u

struct source {
    const struct kv_memtable *mem;
    const struct kv_mem_entry *batch[BATCH];
    const struct kv_mem_entry *last; /* where the next batch goes on */
    unsigned at, count;
    bool ended, on_key;
};

struct kv_scan {
    struct kv_view view;
    struct kv__list *list;
    struct kv_store_iter *iter;
    hlc_ts at;
    bool backwards, empty, started, store_on_key;
    status store; /* ST_OK: the iterator stands on an entry */
    uint64_t skipped;
    bytes lower, upper; /* in `bounds` */
    uint8_t *bounds;
    struct source sources[];
};

static void bounds_copy(struct kv_scan *s, bytes lower, bytes upper)
{
    s->bounds = malloc(lower.size + upper.size);
    ASSERT(s->bounds != NULL);
    memcpy(s->bounds, lower.data, lower.size);
    memcpy(s->bounds + lower.size, upper.data, upper.size);
    s->lower = bytes_make(s->bounds, lower.size);
    s->upper = bytes_make(s->bounds + lower.size, upper.size);
}

struct kv_scan *kv_scan_open(const struct kv_view *v, bytes lower, bytes upper, bool backwards)
{
    return kv__scan_open_take(v, kv__list_ref(v->state, v->pool), lower, upper, backwards);
}

struct kv_scan *kv__scan_open_take(const struct kv_view *v, struct kv__list *list, bytes lower,
                                   bytes upper, bool backwards)
{
    struct kv_scan *s = malloc(sizeof *s + list->count * sizeof s->sources[0]);

    ASSERT(s != NULL);
    ASSERT(lower.size > 0);
    ASSERT(upper.size > 0);
    *s = (struct kv_scan){
        .view = *v,
        .list = list,
        .at = kv__view_stamp(v),
        .backwards = backwards,
        .empty = bytes_cmp(lower, upper) >= 0,
        .store = ST_END,
    };
    bounds_copy(s, lower, upper);
    for (unsigned i = 0; i < list->count; i++) {
        struct source *src = &s->sources[i];

        src->mem = list->gen[i]->mem;
        src->last = NULL;
        src->at = src->count = 0;
        src->on_key = false;
        src->ended = s->empty;
    }
    if (!s->empty)
        s->iter = kv_store_iter_new(v->state->store, s->lower, s->upper, v->tier); /* C1 */
    return s;
}

void kv_scan_close(struct kv_scan *s)
{
    if (s == NULL)
        return;
    kv_store_iter_free(s->iter);
    kv__list_unref(s->list);
    free(s->bounds);
    free(s);
}

uint64_t kv_scan_skipped(const struct kv_scan *s)
{
    return s->skipped;
}

static void source_fill(const struct kv_scan *s, struct source *src)
{
    const struct kv_memtable *m = src->mem;

    src->at = 0;
    if (src->last == NULL) {
        src->count = s->backwards ? kv_memtable_walk_back(m, s->upper, s->lower, src->batch, BATCH)
                                  : kv_memtable_walk(m, s->lower, s->upper, src->batch, BATCH);
    } else {
        bytes from = kv_mem_entry_key(src->last);

        src->count = s->backwards ? kv_memtable_walk_back(m, from, s->lower, src->batch, BATCH)
                                  : kv_memtable_walk_after(m, from, s->upper, src->batch, BATCH);
    }
    for (unsigned i = 0; i < src->count; i++)
        kv_mem_entry_prefetch(src->batch[i]);
    if (src->count > 0)
        src->last = src->batch[src->count - 1];
    src->ended = src->count < BATCH;
}

/* Moves every source that stands on the key lent last. */
static void move_on(struct kv_scan *s)
{
    for (unsigned i = 0; i < s->list->count; i++) {
        struct source *src = &s->sources[i];

        if (src->on_key) {
            src->at++;
            src->on_key = false;
        }
        if (src->at == src->count && !src->ended)
            source_fill(s, src);
    }
    if (s->store_on_key) {
        s->store = s->backwards ? kv_store_iter_prev(s->iter) : kv_store_iter_next(s->iter);
        s->store_on_key = false;
    } else if (!s->started && !s->empty) {
        s->store = s->backwards ? kv_store_iter_seek_before(s->iter, s->upper)
                                : kv_store_iter_seek(s->iter, s->lower);
    }
    s->started = true;
}

/* The first key of all sources in the scan's direction, marked in those that stand on it. */
static bool first_key(struct kv_scan *s, bytes *out)
{
    bool any = false;

    if (s->store == ST_OK) {
        *out = kv_store_iter_key(s->iter);
        s->store_on_key = any = true;
    }
    for (unsigned i = 0; i < s->list->count; i++) {
        struct source *src = &s->sources[i];
        bytes key;
        int c;

        if (src->at == src->count)
            continue;
        key = kv_mem_entry_key(src->batch[src->at]);
        c = any ? bytes_cmp(key, *out) : -1;
        if (any && s->backwards)
            c = -c;
        if (c > 0)
            continue;
        src->on_key = true;
        if (c == 0)
            continue;
        *out = key;
        any = true;
        s->store_on_key = false;
        for (unsigned j = 0; j < i; j++)
            s->sources[j].on_key = false;
    }
    return any;
}

static status stored_here(const struct kv_scan *s, bytes key, struct kv__stored *out)
{
    *out = (struct kv__stored){.row = BYTES_EMPTY};
    if (!s->store_on_key)
        return ST_OK;
    if (s->view.at != HLC_MAX &&
        s->at < atomic_load_explicit(&s->view.state->flushed_ts, memory_order_acquire))
        return ST_CONFLICT;
    return kv__stored_decode(key, kv_store_iter_value(s->iter), out);
}

/* ST_OK with the visible state of KEY, ST_NOT_FOUND if it gives no row. */
static status visible_here(struct kv_scan *s, bytes key, struct kv_cell *cell)
{
    struct kv__stored stored;

    if (kv_key_is_attr(key)) {
        ST_TRY(stored_here(s, key, &stored));
        return kv__attr_get(&s->view, s->list, s->at, key, &stored, cell);
    }
    for (unsigned i = 0; i < s->list->count; i++) {
        const struct source *src = &s->sources[i];
        const struct kv_version *v;

        if (!src->on_key)
            continue;
        v = kv__visible(kv_mem_entry_newest(src->batch[src->at]), s->at);
        if (v == NULL)
            continue;
        if (v->deleted)
            return ST_NOT_FOUND;
        *cell = (struct kv_cell){.ts = v->ts, .row = bytes_make(v->data, v->size)};
        return ST_OK;
    }
    if (!s->store_on_key)
        return ST_NOT_FOUND;
    ST_TRY(stored_here(s, key, &stored));
    *cell = (struct kv_cell){.ts = stored.ts, .row = stored.row};
    return ST_OK;
}

status kv_scan_next(struct kv_scan *s, bytes *key, struct kv_cell *cell)
{
    for (;;) {
        status st;

        move_on(s);
        if (s->store != ST_OK && s->store != ST_END)
            return s->store;
        if (!first_key(s, key))
            return ST_END;
        st = visible_here(s, *key, cell);
        if (st != ST_NOT_FOUND)
            return st;
        s->skipped++;
    }
}
