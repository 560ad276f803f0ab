/*
 * kv/txn_scan.c — entries of a range, own writes merged in.
 *
 * Two ordered streams: the state's scan and the write set's slots, sorted. The smaller key goes
 * first; where both have it, an own row replaces the state's and own deltas are added to it.
 * Nothing may be written while a scan is open: the slots it goes through would move.
 */
#include "base/assert.h"
#include "kv/txn_internal.h"
#include <stdlib.h>

struct kv_txn_scan {
    struct kv_txn *t;
    struct kv_scan *base;
    bytes lower, upper;
    bool backwards;
    bool base_ready, base_ended;
    bytes base_key;
    struct kv_cell base_cell;
    uint32_t *own; /* slots in the range, in scan order */
    uint32_t own_count, own_next;
    uint32_t writes_at_open;
    uint64_t skipped;
    bytes passed;          /* the last key: of a slot, or in `base_last` */
    size_t base_last_size; /* of the state's entry passed last; for the cold key */
    uint8_t base_last[KV_KEY_MAX + 1];
};

static int compare_slots(const void *x, const void *y, void *arg)
{
    const struct kv_txn *t = arg;
    return bytes_cmp(t->slots[*(const uint32_t *)x].key, t->slots[*(const uint32_t *)y].key);
}

static void sort_slots(struct kv_txn *t)
{
    if (t->sorted_count == t->slot_count)
        return;
    t->sorted = arena_alloc(t->a, sizeof *t->sorted * t->slot_count);
    for (uint32_t i = 0; i < t->slot_count; i++)
        t->sorted[i] = i;
    qsort_r(t->sorted, t->slot_count, sizeof *t->sorted, compare_slots, t);
    t->sorted_count = t->slot_count;
}

/* The first sorted slot whose key is at or above KEY. */
static uint32_t sorted_find(const struct kv_txn *t, bytes key)
{
    uint32_t low = 0, high = t->sorted_count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (bytes_cmp(t->slots[t->sorted[mid]].key, key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct kv_txn_scan *kv_txn_scan_open(struct kv_txn *t, bytes lower, bytes upper, bool backwards)
{
    struct kv_txn_scan *s = malloc(sizeof *s);
    ASSERT(s != NULL);
    memset(s, 0, offsetof(struct kv_txn_scan, base_last));
    s->t = t;
    s->lower = lower;
    s->upper = upper;
    s->backwards = backwards;
    s->writes_at_open = t->write_count;
    s->base = kv_scan_open(&t->view, lower, upper, backwards);
    kv_scan_trust_counts(s->base);
    if (t->slot_count > 0) {
        sort_slots(t);
        uint32_t from = sorted_find(t, lower), to = sorted_find(t, upper);
        s->own = t->sorted + from;
        s->own_count = to > from ? to - from : 0;
    }
    return s;
}

/* Where a scan that met a cold block goes on: the key to prefetch. */
static void scan_note_cold(struct kv_txn_scan *s)
{
    if (s->base_last_size == 0) {
        kv__txn_note_cold(s->t, s->backwards ? s->upper : s->lower);
        return;
    }
    s->base_last[s->base_last_size] = 0;
    kv__txn_note_cold(s->t, bytes_make(s->base_last, s->base_last_size + (s->backwards ? 0 : 1)));
}

static status base_load(struct kv_txn_scan *s)
{
    if (s->base_ready || s->base_ended)
        return ST_OK;
    status st = kv_scan_next(s->base, &s->base_key, &s->base_cell);
    if (st == ST_OK) {
        s->base_ready = true;
    } else if (st == ST_END) {
        s->base_ended = true;
        st = ST_OK;
    } else if (st == ST_COLD) {
        scan_note_cold(s);
    }
    return st;
}

/* The state's entry of KEY is done with. */
static void base_passed(struct kv_txn_scan *s, bytes key)
{
    if (key.size > 0 && key.size <= KV_KEY_MAX) {
        s->base_last_size = key.size;
        memcpy(s->base_last, key.data, key.size);
        s->passed = bytes_make(s->base_last, s->base_last_size);
    }
}

static void base_consume(struct kv_txn_scan *s)
{
    s->base_ready = false;
    base_passed(s, s->base_key);
}

/* The next own slot, or KV_TXN_NONE. */
static uint32_t own_peek(const struct kv_txn_scan *s)
{
    if (s->own_next == s->own_count)
        return KV_TXN_NONE;
    return s->own[s->backwards ? s->own_count - 1 - s->own_next : s->own_next];
}

/* <0: the own slot comes first, 0: the same key, >0: the state's entry comes first. */
static int scan_order(const struct kv_txn_scan *s, uint32_t slot)
{
    if (slot == KV_TXN_NONE)
        return 1;
    if (!s->base_ready)
        return -1;
    int c = bytes_cmp(s->t->slots[slot].key, s->base_key);
    return s->backwards ? -c : c;
}

/* Without own slots in the range. */
static status base_next(struct kv_txn_scan *s, bytes *key, struct kv_cell *cell)
{
    status st = kv_scan_next(s->base, &s->base_key, cell);
    if (st == ST_OK) {
        *key = s->base_key;
        base_consume(s);
    } else if (st == ST_COLD) {
        scan_note_cold(s);
    }
    return st;
}

status kv_txn_scan_next(struct kv_txn_scan *s, bytes *key, struct kv_cell *cell)
{
    struct kv_txn *t = s->t;
    ASSERT(t->write_count == s->writes_at_open);
    if (s->own_count == 0)
        return base_next(s, key, cell);
    for (;;) {
        ST_TRY(base_load(s));
        uint32_t slot = own_peek(s);
        if (slot == KV_TXN_NONE && !s->base_ready)
            return ST_END;
        int order = scan_order(s, slot);
        if (order > 0) {
            *key = s->base_key;
            *cell = s->base_cell;
            base_consume(s);
            return ST_OK;
        }
        const struct kv_write *w = kv__slot_row(t, slot);
        if (w != NULL && w->kind == KV_WRITE_PUT) {
            *key = t->slots[slot].key;
            ST_TRY(kv__own_cell(t, w, cell));
        } else if (w == NULL && order == 0) {
            *key = t->slots[slot].key;
            *cell = s->base_cell;
            kv__add_own_delta(t, slot, cell);
        }
        s->own_next++;
        if (order == 0)
            base_consume(s);
        else
            s->passed = t->slots[slot].key;
        if (w != NULL ? w->kind == KV_WRITE_PUT : order == 0)
            return ST_OK;
        s->skipped += w != NULL;
    }
}

status kv_txn_scan_each(struct kv_txn_scan *s, kv_scan_fn *fn, void *arg)
{
    status st;
    if (s->own_count == 0) {
        st = kv_scan_each(s->base, fn, arg);
        base_passed(s, kv_scan_last(s->base));
        if (st == ST_COLD)
            scan_note_cold(s);
        return st;
    }
    bytes key;
    struct kv_cell cell;
    do
        st = kv_txn_scan_next(s, &key, &cell);
    while (st == ST_OK && fn(arg, key, &cell));
    return st;
}

void kv_txn_scan_seek(struct kv_txn_scan *s, bytes key)
{
    ASSERT(s->t->write_count == s->writes_at_open);
    s->lower = key;
    s->base_ready = s->base_ended = false;
    s->base_last_size = 0;
    kv_scan_seek(s->base, key);
    if (s->own_count == 0)
        return;
    uint32_t from = (uint32_t)(s->own - s->t->sorted), to = sorted_find(s->t, key);
    if (to > from + s->own_next)
        s->own_next = to - from < s->own_count ? to - from : s->own_count;
}

bytes kv_txn_scan_last(const struct kv_txn_scan *s)
{
    return s->passed;
}

uint64_t kv_txn_scan_skipped(const struct kv_txn_scan *s)
{
    return s->skipped + kv_scan_skipped(s->base);
}

void kv_txn_scan_close(struct kv_txn_scan *s)
{
    if (s == NULL)
        return;
    kv_scan_close(s->base);
    free(s);
}
