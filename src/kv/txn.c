/*
 * kv/txn.c — the write set.
 *
 * A *slot* is a key that was written or counted; a *write* is one change of a slot's row, a *delta*
 * one change of a directory's aggregates. Both are appended to logs and linked to the one before of
 * the same slot, so going back to a mark pops the logs and lays each slot's older link bare again.
 * What is newest in a slot counts; within the span since the last mark it is changed in place.
 *
 *   slots    [ key | newest write | newest delta ]     in order of first use
 *   writes   [ slot | prev | PUT, DELETE or LOCK | row ]
 *   deltas   [ slot | prev | sum of children, largest times, since the slot's last PUT ]
 *
 * A directory's own row (kv_txn_put_dir) does not know its aggregates before it is published: other
 * commands add deltas without conflicting with it. So such a write keeps the row as columns and the
 * *base*: what the state has under the key. The row's num_children is base + own deltas; its times
 * are the largest of row, base and own deltas, or without the base where the statement set them.
 *
 * A lock changes no row. It is published as a deletion, marked fresh, of a key of its own
 * (kv__key_lock): memory keeps it as long as anyone could conflict with it, a flush leaves nothing.
 *
 * Invariants
 * T1  slot.write and slot.delta are the newest of their slot, or NONE.
 * T2  writes, deltas, requires and items below the last mark are never changed in place.
 * T3  slot.fresh is set only if the view had nothing under the key; a view never changes its answer
 *     (a snapshot is fixed, and nothing is committed while a command is applied).
 * T4  What is published depends on the order of slots, never on the index over them.
 *
 * Threads: one owner at a time.
 */
#include "base/assert.h"
#include "base/checksum.h"
#include "kv/txn_internal.h"

#define LINEAR_SLOTS 8u /* up to here a look-up compares keys one by one */

/* -- small parts ------------------------------------------------------------------------------- */

struct kv_txn *kv_txn_new(struct arena *a, const struct kv_view *view)
{
    struct kv_txn *t = arena_alloc(a, sizeof *t);
    memset(t, 0, offsetof(struct kv_txn, absent)); /* the keys behind need no clearing */
    for (unsigned i = 0; i < KV_ABSENT_REMEMBERED; i++)
        t->absent[i].size = 0;
    t->a = a;
    t->view = *view;
    t->horizon = KV_TXN_NONE;
    if (t->view.arena == NULL)
        t->view.arena = a;
    return t;
}

struct kv_view *kv_txn_view(struct kv_txn *t)
{
    return &t->view;
}

void kv_txn_set_stamp(struct kv_txn *t, hlc_ts stamp)
{
    t->stamp = stamp;
}

bool kv__txn_at_apply(const struct kv_txn *t)
{
    return t->view.at == HLC_MAX;
}

hlc_ts kv__txn_stamp(const struct kv_txn *t)
{
    return t->stamp;
}

bool kv_txn_has_writes(const struct kv_txn *t)
{
    return t->write_count > 0 || t->delta_count > 0;
}

bytes kv_txn_cold_key(const struct kv_txn *t)
{
    return t->cold_key;
}

void kv__txn_note_cold(struct kv_txn *t, bytes key)
{
    t->cold_key = arena_copy(t->a, key);
}

/* -- slots ------------------------------------------------------------------------------------- */

static uint32_t index_home(const struct kv_txn *t, uint64_t hash)
{
    return (uint32_t)hash & (t->index_size - 1);
}

static void index_add(struct kv_txn *t, uint32_t slot)
{
    uint32_t i = index_home(t, t->slots[slot].hash);
    while (t->index[i] != KV_TXN_NONE)
        i = (i + 1) & (t->index_size - 1);
    t->index[i] = slot;
}

static void index_rebuild(struct kv_txn *t)
{
    t->index_size = t->index_size != 0 ? t->index_size * 2 : LINEAR_SLOTS * 4;
    t->index = arena_alloc(t->a, sizeof *t->index * t->index_size);
    memset(t->index, 0xff, sizeof *t->index * t->index_size);
    for (uint32_t i = 0; i < t->slot_count; i++) {
        t->slots[i].hash = checksum64(t->slots[i].key, 0);
        index_add(t, i);
    }
}

uint32_t kv__slot_find(const struct kv_txn *t, bytes key)
{
    if (t->index == NULL) {
        for (uint32_t i = 0; i < t->slot_count; i++)
            if (bytes_eq(t->slots[i].key, key))
                return i;
        return KV_TXN_NONE;
    }
    uint64_t hash = checksum64(key, 0);
    for (uint32_t i = index_home(t, hash); t->index[i] != KV_TXN_NONE;
         i = (i + 1) & (t->index_size - 1)) {
        const struct kv_slot *s = &t->slots[t->index[i]];
        if (s->hash == hash && bytes_eq(s->key, key))
            return t->index[i];
    }
    return KV_TXN_NONE;
}

static bool remembered_absent(const struct kv_txn *t, bytes key)
{
    for (unsigned i = 0; i < KV_ABSENT_REMEMBERED; i++)
        if (t->absent[i].size > 0 && bytes_eq(bytes_make(t->absent[i].key, t->absent[i].size), key))
            return true;
    return false;
}

static void remember_absent(struct kv_txn *t, bytes key)
{
    if (key.size == 0 || key.size > KV_ABSENT_KEY_BYTES || remembered_absent(t, key))
        return;
    unsigned i = t->absent_next++ % KV_ABSENT_REMEMBERED;
    memcpy(t->absent[i].key, key.data, key.size);
    t->absent[i].size = key.size;
}

uint32_t slot_make(struct kv_txn *t, bytes key)
{
    uint32_t found = kv__slot_find(t, key);
    if (found != KV_TXN_NONE)
        return found;
    KV_TXN_GROW(t, t->slots, t->slot_count, t->slot_capacity);
    struct kv_slot *s = &t->slots[t->slot_count];
    *s = (struct kv_slot){.key = arena_copy(t->a, key), .write = KV_TXN_NONE, .delta = KV_TXN_NONE};
    t->slot_count++;
    if (t->index != NULL && t->slot_count * 2 <= t->index_size) {
        s->hash = checksum64(key, 0);
        index_add(t, t->slot_count - 1);
    } else if (t->slot_count > LINEAR_SLOTS) {
        index_rebuild(t);
    }
    return t->slot_count - 1;
}

/* The slot's newest PUT or DELETE. A lock is written only where there is neither. */
const struct kv_write *kv__slot_row(const struct kv_txn *t, uint32_t slot)
{
    if (slot == KV_TXN_NONE)
        return NULL;
    uint32_t i = t->slots[slot].write;
    while (i != KV_TXN_NONE && i >= t->horizon) /* T2: what lies below a mark has not changed */
        i = t->writes[i].prev;
    return i == KV_TXN_NONE || t->writes[i].kind == KV_WRITE_LOCK ? NULL : &t->writes[i];
}

void kv_txn_hide_writes(struct kv_txn *t, uint64_t from)
{
    t->horizon = from < KV_TXN_NONE ? (uint32_t)from : KV_TXN_NONE;
}

static int64_t own_children(const struct kv_txn *t, uint32_t slot)
{
    if (slot == KV_TXN_NONE || t->slots[slot].delta == KV_TXN_NONE)
        return 0;
    return t->deltas[t->slots[slot].delta].children;
}

/* Children counted for the directory as it is now: what came before its birth was another one's. */
int64_t kv__live_children(const struct kv_txn *t, uint32_t slot, const struct kv_write *w)
{
    int64_t sum = own_children(t, slot);
    return w != NULL && w->dir != NULL && w->dir->born ? sum - w->dir->own_at_birth : sum;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* -- reading ----------------------------------------------------------------------------------- */

/* Adds the slot's own deltas to CELL, which is the state's. */
void kv__add_own_delta(const struct kv_txn *t, uint32_t slot, struct kv_cell *cell)
{
    if (slot == KV_TXN_NONE || t->slots[slot].delta == KV_TXN_NONE || !cell->aggregated)
        return;
    const struct kv_own_delta *d = &t->deltas[t->slots[slot].delta];
    cell->num_children += d->children;
    cell->mtime = max64(cell->mtime, d->mtime);
    cell->ctime = max64(cell->ctime, d->ctime);
}

static int64_t time_or_min(struct kv_datum d)
{
    return d.null ? INT64_MIN : d.i;
}

/* The aggregates of a directory that was written here, over the base kept in the write. */
void kv__dir_aggregates(const struct kv_txn *t, const struct kv_write *w, struct kv_cell *out)
{
    const struct kv_dir_write *d = w->dir;
    const struct kv_slot *s = &t->slots[w->slot];
    out->aggregated = true;
    out->num_children = kv__live_children(t, w->slot, w) + (d->born ? 0 : d->base_children);
    out->mtime = time_or_min(d->row.col[META_MTIME]);
    out->ctime = time_or_min(d->row.col[META_CTIME]);
    if (!d->born && !d->set.mtime)
        out->mtime = max64(out->mtime, d->base_mtime);
    if (!d->born && !d->set.ctime)
        out->ctime = max64(out->ctime, d->base_ctime);
    if (s->delta != KV_TXN_NONE) {
        out->mtime = max64(out->mtime, t->deltas[s->delta].mtime);
        out->ctime = max64(out->ctime, t->deltas[s->delta].ctime);
    }
}

/* The row bytes of a directory with aggregates AGG. */
bytes kv__dir_row_bytes(struct arena *a, const struct kv_dir_write *d, const struct kv_cell *agg)
{
    struct kv_row row = d->row;
    row.col[META_NUM_CHILDREN] = kv_int(agg->num_children);
    row.col[META_MTIME] = kv_int(agg->mtime);
    row.col[META_CTIME] = kv_int(agg->ctime);
    return kv_row_bytes(a, &row);
}

/* What the state has for a directory written here, as of now. */
status kv__refresh_base(struct kv_txn *t, bytes key, struct kv_dir_write *d)
{
    struct kv_cell cell;
    if (d->born)
        return ST_OK;
    status st = kv_state_get(&t->view, key, &cell);
    if (st == ST_COLD)
        kv__txn_note_cold(t, key);
    if (st != ST_OK)
        return st;
    d->base_children = cell.aggregated ? cell.num_children : 0;
    d->base_mtime = cell.aggregated ? cell.mtime : INT64_MIN;
    d->base_ctime = cell.aggregated ? cell.ctime : INT64_MIN;
    return ST_OK;
}

/* The cell of an own PUT. */
status kv__own_cell(struct kv_txn *t, const struct kv_write *w, struct kv_cell *out)
{
    *out = (struct kv_cell){.ts = t->stamp, .row = w->row};
    if (w->dir == NULL)
        return ST_OK;
    status st = kv__refresh_base(t, t->slots[w->slot].key, w->dir);
    if (st != ST_OK && st != ST_NOT_FOUND)
        return st;
    kv__dir_aggregates(t, w, out);
    out->row = kv__dir_row_bytes(t->view.arena, w->dir, out);
    return ST_OK;
}

status kv_txn_get(struct kv_txn *t, bytes key, struct kv_cell *out)
{
    uint32_t slot = kv__slot_find(t, key);
    const struct kv_write *w = kv__slot_row(t, slot);
    if (w != NULL)
        return w->kind == KV_WRITE_DELETE ? ST_NOT_FOUND : kv__own_cell(t, w, out);

    status st = kv_state_get(&t->view, key, out);
    if (st == ST_OK)
        kv__add_own_delta(t, slot, out);
    else if (st == ST_NOT_FOUND)
        remember_absent(t, key);
    else if (st == ST_COLD)
        kv__txn_note_cold(t, key);
    return st;
}

/* -- writing ----------------------------------------------------------------------------------- */

status kv__write_add(struct kv_txn *t, bytes key, enum kv_write_kind kind, struct kv_write **out)
{
    uint32_t slot = slot_make(t, key);
    struct kv_slot *s = &t->slots[slot];
    if (s->write == KV_TXN_NONE && !s->fresh && remembered_absent(t, key))
        s->fresh = true;
    if (s->write != KV_TXN_NONE && s->write >= t->write_floor) {
        *out = &t->writes[s->write]; /* T2: newer than every mark */
    } else {
        if (t->write_count >= LIMIT_TXN_WRITES)
            return ST_LIMIT;
        KV_TXN_GROW(t, t->writes, t->write_count, t->write_capacity);
        *out = &t->writes[t->write_count];
        **out = (struct kv_write){.slot = slot, .prev = s->write};
        s->write = t->write_count++;
    }
    (*out)->kind = kind;
    (*out)->row = BYTES_EMPTY;
    (*out)->dir = NULL;
    return ST_OK;
}

status kv_txn_put(struct kv_txn *t, bytes key, bytes row)
{
    struct kv_write *w;
    ST_TRY(kv__write_add(t, key, KV_WRITE_PUT, &w));
    w->row = arena_copy(t->a, row);
    return ST_OK;
}

status kv__txn_put_row(struct kv_txn *t, bytes key, const struct kv_row *row)
{
    struct kv_write *w;
    ST_TRY(kv__write_add(t, key, KV_WRITE_PUT, &w));
    w->row = kv_row_bytes(t->a, row);
    return ST_OK;
}

/* A PUT of a directory's row takes the times of the deltas before it into itself. */
static void forget_delta_times(struct kv_txn *t, uint32_t slot)
{
    struct kv_slot *s = &t->slots[slot];
    if (s->delta == KV_TXN_NONE)
        return;
    kv_txn_delta(t, s->key, 0, INT64_MIN, INT64_MIN);
    s = &t->slots[slot];
    t->deltas[s->delta].mtime = INT64_MIN;
    t->deltas[s->delta].ctime = INT64_MIN;
}

/* Fills D from what is under KEY now: is the directory new, and from when are its children counted?
 * */
static status dir_origin(struct kv_txn *t, bytes key, struct kv_dir_write *d)
{
    uint32_t slot = kv__slot_find(t, key);
    const struct kv_write *w = kv__slot_row(t, slot);
    if (w != NULL && w->dir != NULL) {
        d->born = w->dir->born;
        d->own_at_birth = w->dir->own_at_birth;
        /* A time that was set stays set: what the base has is older. */
        d->set.mtime |= w->dir->set.mtime;
        d->set.ctime |= w->dir->set.ctime;
    } else {
        d->born = w != NULL || remembered_absent(t, key);
        d->own_at_birth = own_children(t, slot);
    }
    status st = kv__refresh_base(t, key, d);
    if (st == ST_NOT_FOUND) {
        remember_absent(t, key);
        d->born = true;
        d->own_at_birth = own_children(t, slot);
        return ST_OK;
    }
    return st;
}

status kv_txn_put_dir(struct kv_txn *t, bytes key, const struct kv_row *row,
                      struct kv_times_set set)
{
    struct kv_write *w;
    struct kv_dir_write *d = ARENA_NEW(t->a, struct kv_dir_write);
    d->set = set;
    ST_TRY(dir_origin(t, key, d));
    kv_row_copy(t->a, row, &d->row);
    ST_TRY(kv__write_add(t, key, KV_WRITE_PUT, &w));
    w->dir = d;
    forget_delta_times(t, w->slot);
    return ST_OK;
}

status kv_txn_delete(struct kv_txn *t, bytes key)
{
    struct kv_write *w;
    return kv__write_add(t, key, KV_WRITE_DELETE, &w);
}

status kv_txn_lock(struct kv_txn *t, bytes key)
{
    struct kv_write *w;
    uint32_t slot = kv__slot_find(t, key);
    if (slot != KV_TXN_NONE && t->slots[slot].write != KV_TXN_NONE)
        return ST_OK; /* a write is a lock */
    return kv__write_add(t, key, KV_WRITE_LOCK, &w);
}

void kv_txn_delta(struct kv_txn *t, bytes attr_key, int64_t children, int64_t mtime, int64_t ctime)
{
    uint32_t slot = slot_make(t, attr_key);
    struct kv_slot *s = &t->slots[slot];
    struct kv_own_delta before = {.mtime = INT64_MIN, .ctime = INT64_MIN};
    if (s->delta != KV_TXN_NONE)
        before = t->deltas[s->delta];
    if (s->delta == KV_TXN_NONE || s->delta < t->delta_floor) {
        KV_TXN_GROW(t, t->deltas, t->delta_count, t->delta_capacity);
        before.slot = slot;
        before.prev = s->delta;
        s->delta = t->delta_count++;
    }
    before.children += children;
    before.mtime = max64(before.mtime, mtime);
    before.ctime = max64(before.ctime, ctime);
    t->deltas[s->delta] = before;
}

#define RECENT_REQUIRES 4u

static void require_add(struct kv_txn *t, bytes attr_key, bool empty)
{
    uint32_t slot = kv__slot_find(t, attr_key);
    const struct kv_write *w = kv__slot_row(t, slot);
    if (kv__txn_at_apply(t) ||
        (w != NULL && (w->kind == KV_WRITE_DELETE || w->dir == NULL || w->dir->born)))
        return; /* nothing can come between, or nobody else can see it */
    for (uint32_t i = t->require_count; !empty && i > 0 && i + RECENT_REQUIRES > t->require_count;
         i--)
        if (!t->requires[i - 1].empty && bytes_eq(t->requires[i - 1].attr_key, attr_key))
            return;
    KV_TXN_GROW(t, t->requires, t->require_count, t->require_capacity);
    t->requires[t->require_count++] = (struct kv_require){.attr_key = arena_copy(t->a, attr_key),
                                                          .empty = empty,
                                                          .own_children = own_children(t, slot)};
}

void kv_txn_require_dir(struct kv_txn *t, bytes attr_key)
{
    require_add(t, attr_key, false);
}

void kv_txn_require_empty(struct kv_txn *t, bytes attr_key)
{
    require_add(t, attr_key, true);
}

void kv_txn_item(struct kv_txn *t, bytes item)
{
    KV_TXN_GROW(t, t->items, t->item_count, t->item_capacity);
    t->items[t->item_count++] = arena_copy(t->a, item);
}

uint64_t kv__txn_take_file_id(struct kv_txn *t)
{
    ASSERT(kv__txn_at_apply(t));
    return kv_state_record(t->view.state)->next_file_id + t->file_ids++;
}

bool kv__txn_written_since(const struct kv_txn *t, bytes key, kv_txn_mark mark)
{
    uint32_t slot = kv__slot_find(t, key);
    const struct kv_write *w = kv__slot_row(t, slot);
    return w != NULL && t->slots[slot].write >= mark.writes;
}

/* -- marks ------------------------------------------------------------------------------------- */

kv_txn_mark kv_txn_save(struct kv_txn *t)
{
    t->write_floor = t->write_count;
    t->delta_floor = t->delta_count;
    return (kv_txn_mark){.writes = t->write_count,
                         .deltas = t->delta_count,
                         .requires = t->require_count,
                         .items = t->item_count,
                         .file_ids = t->file_ids};
}

void kv_txn_rollback_to(struct kv_txn *t, kv_txn_mark mark)
{
    ASSERT(mark.writes <= t->write_count && mark.deltas <= t->delta_count);
    ASSERT(mark.requires <= t->require_count && mark.items <= t->item_count);
    while (t->write_count > mark.writes) {
        const struct kv_write *w = &t->writes[--t->write_count];
        t->slots[w->slot].write = w->prev;
    }
    while (t->delta_count > mark.deltas) {
        const struct kv_own_delta *d = &t->deltas[--t->delta_count];
        t->slots[d->slot].delta = d->prev;
    }
    t->require_count = (uint32_t)mark.requires;
    t->item_count = (uint32_t)mark.items;
    t->file_ids = mark.file_ids;
    t->write_floor = t->write_count;
    t->delta_floor = t->delta_count;
}
