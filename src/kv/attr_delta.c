/*
 * Aggregates of a directory: the row of its _attr_ key plus what has been added since.
 *
 * Vocabulary
 *   image    the newest version of the _attr_ row, in a memtable or in the store
 *   delta    sum of children and largest times of all commands since the image was put; one per
 *            entry, so one per generation
 *   folded   beside a stored row: the stamp up to which deltas are already in it
 *
 * A put of an _attr_ row holds the full aggregates of its moment and clears the delta of its
 * generation; deltas of older generations lie below it and no longer count. So the truth is
 *
 *     newest generation     delta            }
 *     ...                   delta            } summed, down to the first generation
 *     generation with image delta + image    } that has an image
 *     older generations     not looked at
 *     store                 only without an image in memory: row, plus deltas above `folded`
 *
 * Invariants
 *   A1  A delta counts once. A reader's list may still hold a generation that the store has taken
 *       in; `folded` of the stored row then covers the whole delta, because a flush takes a whole
 *       generation and stamps of generations do not overlap.
 *   A2  Readers load the list before they read the store: a generation missing in the list is in
 *       the store.
 *   A3  A row kept in the owner's cache goes with the deltas of lists of its epoch alone: within an
 *       epoch no generation leaves the list, so what the store folds meanwhile is in the list too.
 *   A4  The aggregates are as of now, the other columns as of the snapshot. Only where the newest
 *       image is a deletion does an older version stand for itself.
 */
#include "base/assert.h"
#include "base/codec.h"
#include "kv/state_internal.h"

#include <stdlib.h>

/* What memory knows of an _attr_ key. */
struct in_memory {
    const struct kv_version *image, *visible;
    struct kv_delta pending; /* above the image; without one, of all generations */
    hlc_ts newest;           /* of the image and all deltas above it */
};

static const struct kv_delta nothing_pending = {.mtime = INT64_MIN, .ctime = INT64_MIN};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static hlc_ts later(hlc_ts a, hlc_ts b)
{
    return a > b ? a : b;
}

static void delta_add(struct kv_delta *sum, const struct kv_delta *d)
{
    sum->present = true;
    sum->children += d->children;
    sum->mtime = larger(sum->mtime, d->mtime);
    sum->ctime = larger(sum->ctime, d->ctime);
}

/* Without an image, deltas up to FOLDED are left out. */
static struct in_memory memory_read(const struct kv__list *list, bytes key, hlc_ts at,
                                    hlc_ts folded)
{
    struct in_memory m = {.pending = nothing_pending};
    struct kv_delta unfolded = nothing_pending;

    for (unsigned i = 0; i < list->count; i++) {
        const struct kv_mem_entry *e = kv_memtable_find_often(list->gen[i]->mem, key);
        const struct kv_version *newest;
        struct kv_delta d;

        if (e == NULL)
            continue;
        kv_mem_entry_read(e, &newest, &d);
        if (m.image == NULL && d.present) {
            m.newest = later(m.newest, d.last);
            delta_add(&m.pending, &d);
            if (d.last > folded)
                delta_add(&unfolded, &d);
        }
        if (newest == NULL)
            continue;
        if (m.image == NULL) {
            m.image = newest;
            m.newest = later(m.newest, newest->ts);
        }
        m.visible = kv__visible(newest, at);
        if (m.visible != NULL)
            break;
    }
    if (m.image == NULL)
        m.pending = unfolded;
    return m;
}

/* Fills the aggregates of CELL from the image's row and what is pending above it. */
static status aggregate(bytes image, const struct kv_delta *pending, struct kv_cell *cell)
{
    const kv_column_set wanted =
        kv_column_bit(META_NUM_CHILDREN) | kv_column_bit(META_MTIME) | kv_column_bit(META_CTIME);
    struct kv_row row;
    const struct kv_datum *n, *m, *c;

    ST_TRY(kv_row_decode_some(KV_META, image, wanted, &row));
    n = &row.col[META_NUM_CHILDREN];
    m = &row.col[META_MTIME];
    c = &row.col[META_CTIME];
    /* The _attr_ row of a file with several links counts nothing. */
    cell->aggregated = !n->null || pending->present;
    cell->num_children = (n->null ? 0 : n->i) + pending->children;
    cell->mtime = larger(m->null ? INT64_MIN : m->i, pending->mtime);
    cell->ctime = larger(c->null ? INT64_MIN : c->i, pending->ctime);
    return ST_OK;
}

/* -- rows of the store that the owner keeps at hand ------------------------------------------- */

/* Each create below a directory reads that directory's row, which lies in the store once it has not
 * been put for a while: without this, most of a create would be that read. */
#define CACHE_SLOTS 1024u

struct cached {
    uint64_t epoch;
    hlc_ts ts, folded;
    uint32_t key_size, row_size;
    size_t capacity;
    uint8_t *data; /* key, then row */
};

struct kv__attr_cache {
    struct cached slot[CACHE_SLOTS];
};

void kv__attr_cache_free(struct kv__attr_cache *c)
{
    if (c == NULL)
        return;
    for (unsigned i = 0; i < CACHE_SLOTS; i++)
        free(c->slot[i].data);
    free(c);
}

static struct cached *cache_slot(struct kv_state *s, bytes key)
{
    uint64_t mixed;

    if (s->attr_cache == NULL) {
        s->attr_cache = calloc(1, sizeof *s->attr_cache);
        ASSERT(s->attr_cache != NULL);
    }
    /* _attr_ keys differ in namespace and pid alone. */
    mixed = load_be64(key.data + KV_KEY_HEADER) + load_be32(key.data + 1);
    mixed *= 0x9e3779b97f4a7c15ull;
    return &s->attr_cache->slot[(mixed >> 32) % CACHE_SLOTS];
}

static bool cache_find(const struct cached *c, const struct kv__list *list, bytes key,
                       struct arena *a, struct kv__stored *out)
{
    if (c->data == NULL || c->epoch != list->epoch ||
        !bytes_eq(bytes_make(c->data, c->key_size), key))
        return false;
    *out = (struct kv__stored){.ts = c->ts, .folded = c->folded};
    out->row = arena_copy(a, bytes_make(c->data + c->key_size, c->row_size));
    return true;
}

static void cache_put(struct cached *c, const struct kv__list *list, bytes key,
                      const struct kv__stored *stored)
{
    size_t size = key.size + stored->row.size;

    if (size > c->capacity) {
        c->data = realloc(c->data, size);
        ASSERT(c->data != NULL);
        c->capacity = size;
    }
    c->epoch = list->epoch;
    c->ts = stored->ts;
    c->folded = stored->folded;
    c->key_size = (uint32_t)key.size;
    c->row_size = (uint32_t)stored->row.size;
    memcpy(c->data, key.data, key.size);
    memcpy(c->data + key.size, stored->row.data, stored->row.size);
}

/* The stored row of an _attr_ key; ST_NOT_FOUND as from the store. */
static status stored_get(const struct kv_view *v, const struct kv__list *list, hlc_ts at, bytes key,
                         struct kv__stored *out)
{
    struct cached *c;

    if (v->pool || v->at != HLC_MAX || !kv__owner_here(v->state))
        return kv__store_get(v, at, key, out);
    c = cache_slot(v->state, key);
    if (cache_find(c, list, key, v->arena, out))
        return ST_OK;
    ST_TRY(kv__store_get(v, at, key, out));
    if (out->row.size > 0)
        cache_put(c, list, key, out);
    return ST_OK;
}

status kv__attr_get(const struct kv_view *v, const struct kv__list *list, hlc_ts at, bytes key,
                    const struct kv__stored *known, struct kv_cell *out)
{
    struct in_memory m = memory_read(list, key, at, 0);
    struct kv__stored stored = {.row = BYTES_EMPTY};
    bytes image;

    if (m.image == NULL || m.visible == NULL) {
        if (known != NULL) {
            stored = *known;
        } else {
            status st = stored_get(v, list, at, key, &stored);

            if (st != ST_OK && st != ST_NOT_FOUND)
                return st;
        }
        if (m.image == NULL)
            m = memory_read(list, key, at, stored.folded); /* A1; an image may have come since */
    }
    if (m.visible != NULL) {
        if (m.visible->deleted)
            return ST_NOT_FOUND;
        *out = (struct kv_cell){.ts = m.visible->ts,
                                .row = bytes_make(m.visible->data, m.visible->size)};
    } else if (stored.row.data != NULL) {
        *out = (struct kv_cell){.ts = stored.ts, .row = stored.row};
    } else {
        return ST_NOT_FOUND;
    }
    out->counted = m.newest;
    if (m.image == NULL) {
        out->counted = later(m.newest, later(stored.ts, stored.folded));
        return aggregate(stored.row, &m.pending, out);
    }
    if (m.image->deleted) /* A4 */
        return aggregate(out->row, &nothing_pending, out);
    image = bytes_make(m.image->data, m.image->size);
    return aggregate(image, &m.pending, out);
}

status kv__attr_fold(bytes row_bytes, const struct kv_delta *d, struct obuf *out)
{
    struct kv_row row;
    struct kv_cell cell;

    ST_TRY(kv_row_decode(KV_META, row_bytes, &row));
    ST_TRY(aggregate(row_bytes, d, &cell));
    if (cell.aggregated) {
        row.col[META_NUM_CHILDREN] = kv_int(cell.num_children);
        row.col[META_MTIME] = cell.mtime == INT64_MIN ? KV_NULL : kv_int(cell.mtime);
        row.col[META_CTIME] = cell.ctime == INT64_MIN ? KV_NULL : kv_int(cell.ctime);
    }
    kv_row_encode(&row, out);
    return ST_OK;
}
