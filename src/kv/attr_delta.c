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
 *   A3  The aggregates are as of now, the other columns as of the snapshot. Only where the newest
 *       image is a deletion does an older version stand for itself.
 */
#include "base/assert.h"
#include "kv/state_internal.h"

/* What memory knows of an _attr_ key. */
struct in_memory {
    const struct kv_version *image, *visible;
    struct kv_delta pending; /* above the image; without one, of all generations */
};

static const struct kv_delta nothing_pending = {.mtime = INT64_MIN, .ctime = INT64_MIN};

static int64_t larger(int64_t a, int64_t b)
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
        const struct kv_mem_entry *e = kv_memtable_find(list->gen[i]->mem, key);
        const struct kv_version *newest;
        struct kv_delta d;

        if (e == NULL)
            continue;
        kv_mem_entry_read(e, &newest, &d);
        if (m.image == NULL && d.present) {
            delta_add(&m.pending, &d);
            if (d.last > folded)
                delta_add(&unfolded, &d);
        }
        if (newest == NULL)
            continue;
        if (m.image == NULL)
            m.image = newest;
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
    struct kv_row row;
    const struct kv_datum *n, *m, *c;

    ST_TRY(kv_row_decode(KV_META, image, &row));
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
            status st = kv__store_get(v, at, key, &stored);

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
    if (m.image == NULL)
        return aggregate(stored.row, &m.pending, out);
    if (m.image->deleted) /* A3 */
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
