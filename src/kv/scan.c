/*
 * Ordered reads over all generations and the store: a merge of sorted sources.
 *
 * Each memtable is a source that is read in batches of entries, the store is one more. A step takes
 * the first key of all sources, decides what is visible under it, and remembers which sources stand
 * on it; they move only at the next step, so that what was lent stays valid until then.
 *
 * kv_scan_each goes by runs: as long as the keys of one source come before the first keys of all
 * others, they are compared with that one bound, and with nothing where the others have ended.
 *
 * Invariants
 *   C1  The list is counted before the store's iterator is made: a key is in one of them, and what
 *       moves from the list to the store during the scan stays in the list.
 *   C2  Entries and versions live as long as the counted list; nothing else is held.
 *   C3  No entry is given as the snapshot's, and no end, unless nothing younger had been written to
 *       the store when the iterator stood there; a page's entries are good when the page is.
 *   C4  Where a directory counts no entries as of the snapshot, nothing but its own row is looked
 *       for: what was deleted there is not walked over, wherever it lies.
 *
 * Threads: the one that opened it. With `pool` it is outside RCU sections but for taking the list.
 */
#include "base/assert.h"
#include "kv/state_internal.h"

#include <stdlib.h>

#define BATCH 32u
#define SKIPPED_MAX 4096u /* by one kv_scan_each */
#ifdef METADB_SLOW_CHECKS
#define ASK_AFTER 1u /* entries that give no row */
#else
#define ASK_AFTER 128u
#endif
#define DIRECTORY_SIZE (KV_KEY_HEADER + 8) /* what keys of its entries begin with */
#define OWN_SIZE (DIRECTORY_SIZE + 6)      /* and its _attr_ */
#define PASSED_REPORTED 128u               /* tombstones of the store; fewer are not worth a lock */

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
    status store;             /* ST_OK: the iterator stands on an entry */
    uint64_t skipped, ask_at; /* ask_at: C4, is it worth a question by then? */
    bytes lower, upper;       /* in `bounds` or `own`; after kv_scan_seek `lower` is the caller's */
    bytes from;               /* `lower` at the start; in `bounds` */
    uint8_t *bounds;
    uint8_t own[OWN_SIZE + 1]; /* the directory's own key, and what ends the range of it alone */
    bytes last;                /* of kv_scan_each: in a memtable, or in `stored_last` */
    uint8_t stored_last[KV_KEY_MAX];
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
    s->from = s->lower;
}

static struct kv_store_iter *store_iter(const struct kv_scan *s)
{
    struct kv_store *store = s->view.state->store;

    return s->backwards ? kv_store_iter_new(store, s->lower, s->upper, s->view.tier)
                        : kv_store_iter_new_forward(store, s->lower, s->upper, s->view.tier);
}

/* To whoever chooses what to compact: what it has not counted itself, as after a restart. */
static void report_passed(const struct kv_scan *s)
{
    if (s->iter == NULL || s->iter->passed < PASSED_REPORTED)
        return;
    bool within = s->store == ST_OK && !s->backwards;
    kv_density_passed(s->view.state->density, s->from,
                      within ? kv_store_iter_key(s->iter) : s->upper, s->iter->passed);
}

/* Nothing has been read, as at the start. */
static void restart(struct kv_scan *s)
{
    s->empty = bytes_cmp(s->lower, s->upper) >= 0;
    s->started = s->store_on_key = false;
    s->store = ST_END;
    for (unsigned i = 0; i < s->list->count; i++) {
        struct source *src = &s->sources[i];

        src->last = NULL;
        src->at = src->count = 0;
        src->on_key = false;
        src->ended = s->empty;
    }
}

static struct kv_scan *scan_new(const struct kv_view *v, struct kv__list *list, bytes lower,
                                bytes upper, bool backwards)
{
    struct kv_scan *s = malloc(sizeof *s + list->count * sizeof s->sources[0]);

    ASSERT(s != NULL);
    ASSERT(lower.size > 0);
    ASSERT(upper.size > 0);
    memset(s, 0, offsetof(struct kv_scan, stored_last));
    s->view = *v;
    s->list = list;
    s->at = kv__view_stamp(v);
    s->backwards = backwards;
    s->empty = bytes_cmp(lower, upper) >= 0;
    s->store = ST_END;
    bounds_copy(s, lower, upper);
    for (unsigned i = 0; i < list->count; i++)
        s->sources[i].mem = list->gen[i]->mem;
    s->ask_at = UINT64_MAX;
    restart(s);
    return s;
}

/* -- directories without entries --------------------------------------------------------------- */

#ifdef METADB_SLOW_CHECKS
/* C4: does a scan of the range that does not ask find what this one leaves out? */
static bool finds_entries(const struct kv_scan *s)
{
    struct kv__list *list = s->list;
    struct kv_cell cell;
    bytes key, own = bytes_make(s->own, OWN_SIZE);
    bool found = false;

    atomic_fetch_add_explicit(&list->refs, 1, memory_order_relaxed);
    struct kv_scan *plain = scan_new(&s->view, list, s->lower, s->upper, s->backwards);
    plain->at = s->at;
    if (!plain->empty)
        plain->iter = store_iter(plain);
    while (!found && kv_scan_next(plain, &key, &cell) == ST_OK)
        found = !bytes_eq(key, own);
    kv_scan_close(plain);
    return found;
}
#endif

/* Is the range of keys within one directory? Then its own key is in `own`. */
static bool of_one_directory(struct kv_scan *s)
{
    uint8_t behind[DIRECTORY_SIZE];
    unsigned i = DIRECTORY_SIZE;

    if (s->lower.size < DIRECTORY_SIZE || kv_key_table(s->lower) != KV_META)
        return false;
    memcpy(behind, s->lower.data, DIRECTORY_SIZE);
    while (i > 0 && ++behind[i - 1] == 0)
        i--;
    if (i == 0 || bytes_cmp(s->upper, bytes_make(behind, DIRECTORY_SIZE)) > 0)
        return false;
    memcpy(s->own, s->lower.data, DIRECTORY_SIZE);
    memcpy(s->own + DIRECTORY_SIZE, KV_ATTR_NAME.data, KV_ATTR_NAME.size);
    s->own[OWN_SIZE] = 0;
    return true;
}

/* Counts it none as of the snapshot? A count that is newer says nothing. */
static bool counts_none(const struct kv_scan *s)
{
    struct kv_cell cell;
    status st = kv__attr_get(&s->view, s->list, s->at, bytes_make(s->own, OWN_SIZE), NULL, &cell);

    return st == ST_OK && cell.aggregated && cell.num_children == 0 && cell.counted <= s->at;
}

/* Goes on with the directory's own row alone, if that is in the range and beyond PASSED. */
static void narrow(struct kv_scan *s, bytes passed)
{
    bytes own = bytes_make(s->own, OWN_SIZE), upper = bytes_make(s->own, OWN_SIZE + 1);
    int side = passed.size > 0 ? bytes_cmp(own, passed) : 0;
    bool beyond = passed.size == 0 || (s->backwards ? side < 0 : side > 0);
    bool within = bytes_cmp(s->lower, own) <= 0 && bytes_cmp(own, s->upper) < 0;

    report_passed(s);
    kv_store_iter_free(s->iter);
    s->iter = NULL;
    s->lower = beyond && within ? own : upper;
    s->upper = upper;
    restart(s);
}

/* PASSED: the last key that was looked at, empty at the start. */
static void ask_if_empty(struct kv_scan *s, bytes passed)
{
    s->ask_at = UINT64_MAX;
    if (s->empty || !of_one_directory(s) || !counts_none(s))
        return;
#ifdef METADB_SLOW_CHECKS
    ASSERT_INV("C4", !finds_entries(s));
#endif
    narrow(s, passed);
}

/* The same in the middle of a scan, whose iterator it replaces. */
static void ask_again(struct kv_scan *s, bytes passed)
{
    ask_if_empty(s, passed);
    if (s->iter == NULL && !s->empty)
        s->iter = store_iter(s); /* C1 */
}

struct kv_scan *kv_scan_open(const struct kv_view *v, bytes lower, bytes upper, bool backwards)
{
    return kv__scan_open_take(v, kv__list_ref(v->state, v->pool), lower, upper, backwards);
}

struct kv_scan *kv__scan_open_take(const struct kv_view *v, struct kv__list *list, bytes lower,
                                   bytes upper, bool backwards)
{
    struct kv_scan *s = scan_new(v, list, lower, upper, backwards);

    if (!s->empty)
        s->iter = store_iter(s); /* C1 */
    return s;
}

void kv_scan_trust_counts(struct kv_scan *s)
{
    s->ask_at = ASK_AFTER;
    if (kv_density_much(s->view.state->density))
        ask_again(s, BYTES_EMPTY);
}

void kv_scan_close(struct kv_scan *s)
{
    if (s == NULL)
        return;
    report_passed(s);
    kv_store_iter_free(s->iter);
    kv__list_unref(s->list);
    free(s->bounds);
    free(s);
}

uint64_t kv_scan_skipped(const struct kv_scan *s)
{
    return s->skipped;
}

void kv_scan_seek(struct kv_scan *s, bytes key)
{
    ASSERT(!s->backwards);
    ASSERT(bytes_cmp(s->lower, key) <= 0);
    s->lower = key;
    restart(s);
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

static status store_step(struct kv_scan *s)
{
    return s->backwards ? kv_store_iter_prev(s->iter) : kv_store_iter_next(s->iter);
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
        s->store = store_step(s);
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

/* Is what the iterator shows, and what it no longer shows, not younger than the snapshot? Asked
 * after the steps that it is to cover: C3. */
static status store_fits(const struct kv_scan *s)
{
    if (s->view.at != HLC_MAX &&
        s->at < atomic_load_explicit(&s->view.state->flushed_ts, memory_order_acquire))
        return ST_CONFLICT;
    return ST_OK;
}

static status stored_here(const struct kv_scan *s, bytes key, struct kv__stored *out)
{
    *out = (struct kv__stored){.row = BYTES_EMPTY};
    if (!s->store_on_key)
        return ST_OK;
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
        ST_TRY(store_fits(s));
        if (!first_key(s, key))
            return ST_END;
        st = visible_here(s, *key, cell);
        if (st != ST_NOT_FOUND)
            return st;
        if (++s->skipped == s->ask_at)
            ask_again(s, *key);
    }
}

/* -- runs ------------------------------------------------------------------------------------- */

/* Who takes the entries, and whether it wants more. */
struct taker {
    kv_scan_fn *fn;
    void *arg;
    bool full;
    uint64_t skipped_max; /* of the scan; then the caller may do something else first */
};

/* Does KEY come before the first key of the sources that the run is not in? */
static bool in_run(const struct kv_scan *s, const bytes *bound, bytes key)
{
    if (bound == NULL)
        return true;
    return s->backwards ? bytes_cmp(key, *bound) > 0 : bytes_cmp(key, *bound) < 0;
}

/* The first key of all sources but ONE, with NULL of all memtables; NULL if there is none. */
static const bytes *first_of_others(const struct kv_scan *s, const struct source *one, bytes *out)
{
    const bytes *bound = NULL;

    if (one != NULL && s->store == ST_OK) {
        *out = kv_store_iter_key(s->iter);
        bound = out;
    }
    for (unsigned i = 0; i < s->list->count; i++) {
        const struct source *src = &s->sources[i];

        if (src == one || src->at == src->count)
            continue;
        bytes key = kv_mem_entry_key(src->batch[src->at]);
        if (in_run(s, bound, key)) {
            *out = key;
            bound = out;
        }
    }
    return bound;
}

/* The state of KEY, which only the memtable of E has. */
static status visible_entry(const struct kv_scan *s, const struct kv_mem_entry *e, bytes key,
                            struct kv_cell *cell)
{
    const struct kv_version *v;

    if (kv_key_is_attr(key)) {
        struct kv__stored nothing = {.row = BYTES_EMPTY};

        return kv__attr_get(&s->view, s->list, s->at, key, &nothing, cell);
    }
    v = kv__visible(kv_mem_entry_newest(e), s->at);
    if (v == NULL || v->deleted)
        return ST_NOT_FOUND;
    *cell = (struct kv_cell){.ts = v->ts, .row = bytes_make(v->data, v->size)};
    return ST_OK;
}

/* From the entry on which SRC stands to BOUND, over batches. */
static status memtable_run(struct kv_scan *s, struct source *src, const bytes *bound,
                           struct taker *t)
{
    src->on_key = false;
    while (src->at < src->count) {
        const struct kv_mem_entry *e = src->batch[src->at];
        bytes key = kv_mem_entry_key(e);
        struct kv_cell cell;
        status st;

        if (!in_run(s, bound, key))
            return ST_OK;
        st = visible_entry(s, e, key, &cell);
        if (st != ST_OK && st != ST_NOT_FOUND)
            return st;
        s->last = key;
        if (st == ST_NOT_FOUND)
            s->skipped++;
        else
            t->full = !t->fn(t->arg, key, &cell);
        if (++src->at == src->count && !src->ended)
            source_fill(s, src);
        if (t->full || s->skipped == s->ask_at || s->skipped == t->skipped_max)
            return ST_OK;
    }
    return ST_OK;
}

/* From where the store's iterator stands to BOUND. ST_OK at the end of the store too. */
static status store_run(struct kv_scan *s, const bytes *bound, struct taker *t)
{
    for (s->store_on_key = false; s->store == ST_OK; s->store = store_step(s)) {
        bytes key = kv_store_iter_key(s->iter);
        struct kv__stored stored;
        struct kv_cell cell;
        status st = ST_OK;

        if (!in_run(s, bound, key))
            return ST_OK;
        ST_TRY(kv__stored_decode(key, kv_store_iter_value(s->iter), &stored));
        cell = (struct kv_cell){.ts = stored.ts, .row = stored.row};
        if (kv_key_is_attr(key))
            st = kv__attr_get(&s->view, s->list, s->at, key, &stored, &cell);
        if (st != ST_OK && st != ST_NOT_FOUND)
            return st;
        ASSERT(key.size <= sizeof s->stored_last);
        memcpy(s->stored_last, key.data, key.size);
        s->last = bytes_make(s->stored_last, key.size);
        if (st == ST_NOT_FOUND) {
            s->skipped++;
        } else if (!t->fn(t->arg, key, &cell)) {
            t->full = true;
            s->store_on_key = true; /* it moves if the scan goes on */
            return ST_OK;
        }
    }
    return ST_OK;
}

/* The one source that stands on the first key: NULL if there are several. */
static struct source *alone(struct kv_scan *s)
{
    struct source *one = NULL;

    for (unsigned i = 0; i < s->list->count; i++) {
        if (!s->sources[i].on_key)
            continue;
        if (one != NULL || s->store_on_key)
            return NULL;
        one = &s->sources[i];
    }
    return one;
}

/* Is the store the only one on the first key? */
static bool store_alone(const struct kv_scan *s)
{
    bool alone = s->store_on_key;

    for (unsigned i = 0; i < s->list->count; i++)
        alone &= !s->sources[i].on_key;
    return alone;
}

/* A key that several sources have. */
static status shared_key(struct kv_scan *s, bytes key, struct taker *t)
{
    struct kv_cell cell;
    status st = visible_here(s, key, &cell);

    if (st != ST_OK && st != ST_NOT_FOUND)
        return st;
    for (unsigned i = 0; i < s->list->count; i++)
        if (s->sources[i].on_key)
            s->last = kv_mem_entry_key(s->sources[i].batch[s->sources[i].at]);
    if (st == ST_NOT_FOUND)
        s->skipped++;
    else
        t->full = !t->fn(t->arg, key, &cell);
    return ST_OK;
}

status kv_scan_each(struct kv_scan *s, kv_scan_fn *fn, void *arg)
{
    struct taker t = {.fn = fn, .arg = arg, .skipped_max = s->skipped + SKIPPED_MAX};

    while (!t.full && s->skipped < t.skipped_max) {
        struct source *one;
        bytes key, other;

        move_on(s);
        if (s->store != ST_OK && s->store != ST_END)
            return s->store;
        ST_TRY(store_fits(s));
        if (!first_key(s, &key))
            return ST_END;
        one = alone(s);
        if (one != NULL)
            ST_TRY(memtable_run(s, one, first_of_others(s, one, &other), &t));
        else if (store_alone(s))
            ST_TRY(store_run(s, first_of_others(s, NULL, &other), &t));
        else
            ST_TRY(shared_key(s, key, &t));
        if (s->skipped >= s->ask_at)
            ask_again(s, s->last);
    }
    return store_fits(s);
}

bytes kv_scan_last(const struct kv_scan *s)
{
    return s->last;
}
