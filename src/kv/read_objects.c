/*
 * kv/read_objects.c — a bucket's keys with common prefixes, as ListObjectsV2 of S3 gives them.
 *
 * An *item* is a key, or what several keys have in common: a key that begins with the prefix and
 * has the delimiter somewhere behind it is rolled up into its bytes up to the end of the first one.
 * The answer is the items behind `after`, each once, in the order of their bytes. So whoever goes
 * on behind the last item it got, key or common prefix, sees every item once, whatever the page
 * size.
 *
 * The work is that of the items given out and of expired keys passed over: what is left of a common
 * prefix is stepped over while that is a few entries, then the scan seeks behind it. A common
 * prefix is there if a key below it is there that has not expired.
 *
 * A row has the key in `key`, or the common prefix in the place of `bucket`; the other is NULL.
 *
 * Invariants
 *   O1  `next` is the first key that no item given out or passed over stands for.
 */
#include "base/assert.h"
#include "kv/read_internal.h"

#define EXAMINED_MAX 4096u /* entries of one page */
#define STEPS_MAX 8u       /* entries of a common prefix passed before a seek costs less */

struct objects_pos {
    bytes start;   /* encoded bucket and prefix: what all keys begin with */
    size_t key_at; /* where a key begins in an encoded one */
    size_t next_size;
    uint8_t next[KV_KEY_MAX + 1]; /* O1 */
};

static void set_next(struct objects_pos *at, bytes key)
{
    ASSERT(key.size <= sizeof at->next);
    memcpy(at->next, key.data, key.size);
    at->next_size = key.size;
}

/* The next one is behind KEY. */
static void set_behind(struct objects_pos *at, bytes key)
{
    ASSERT(key.size < sizeof at->next);
    set_next(at, key);
    at->next[at->next_size++] = 0;
}

static bytes next_of(const struct objects_pos *at)
{
    return bytes_make(at->next, at->next_size);
}

/* Bytes of KEY up to the end of the first delimiter behind the prefix; 0: it is an item itself. */
static size_t rolled_up(const struct kv_read *r, bytes key)
{
    if (r->delimiter.size == 0 || key.size <= r->prefix.size)
        return 0;
    const uint8_t *found = memmem(key.data + r->prefix.size, key.size - r->prefix.size,
                                  r->delimiter.data, r->delimiter.size);
    return found == NULL ? 0 : (size_t)(found - key.data) + r->delimiter.size;
}

/* The bucket's keys that begin with TEXT. */
static bytes keys_with(const struct kv_page *p, bytes text)
{
    struct kv_datum cols[] = {kv_text(p->r->bucket), kv_text(text)};
    return kv_key_prefix(p->scratch, p->r->ns, KV_OBJECT, cols, 2);
}

/* Where the items behind `after` begin. A key has LIMIT_KEY_BYTES bytes at most, so what lies
 * behind so many bytes of `after` lies behind all of it. */
static bytes first_behind(const struct kv_page *p, bytes after)
{
    if (after.size > LIMIT_KEY_BYTES)
        after.size = LIMIT_KEY_BYTES;
    size_t common = bytes_has_prefix(after, p->r->prefix) ? rolled_up(p->r, after) : 0;
    if (common > 0)
        return kv_key_after_prefix(p->scratch, keys_with(p, bytes_make(after.data, common)));
    return kv_key_successor(p->scratch, keys_with(p, after));
}

static struct objects_pos *objects_begin(struct kv_page *p)
{
    struct objects_pos *at = ARENA_NEW(p->a, struct objects_pos);
    at->start = arena_copy(p->a, keys_with(p, p->r->prefix));
    at->key_at = at->start.size - p->r->prefix.size;
    bytes next = p->r->after.size > 0 ? first_behind(p, p->r->after) : at->start;
    set_next(at, bytes_cmp(next, at->start) < 0 ? at->start : next);
    p->pos->inner = at;
    return at;
}

/* An entry as an item to P; false when the page is full. */
static bool give(struct kv_page *p, bytes key, size_t common, struct kv_row *row)
{
    if (common > 0) {
        kv_row_clear(KV_OBJECT, row);
        row->col[OBJECT_BUCKET] = kv_text(bytes_make(key.data, common));
        return kv__page_row(p, row, common);
    }
    row->col[OBJECT_BUCKET] = KV_NULL;
    return kv__page_row(p, row, key.size);
}

/* The entry under ENCODED; *COMMON is as of rolled_up if it was given out as a common prefix, else
 * 0. *ROOM false: the page is full. */
static status take(struct kv_page *p, struct objects_pos *at, bytes encoded,
                   const struct kv_cell *cell, size_t *common, bool *room)
{
    struct kv_row row;
    bytes key = bytes_make(encoded.data + at->key_at, encoded.size - at->key_at);
    kv_row_clear(KV_OBJECT, &row);
    ST_TRY(kv__cell_row_some(p->scratch, encoded, cell, p->columns, &row));
    *common = 0;
    if (kv__page_expired(p, &row)) {
        set_behind(at, encoded);
        return ST_OK;
    }
    *common = rolled_up(p->r, key);
    *room = give(p, key, *common, &row);
    if (*common == 0) {
        set_behind(at, encoded);
        return ST_OK;
    }
    bytes item = bytes_make(encoded.data, at->key_at + *common);
    set_next(at, kv_key_after_prefix(p->scratch, item));
    return ST_OK;
}

/* The first entry at or behind `next`, where the scan stands on one of a common prefix. */
static status step_over(struct kv_page *p, const struct objects_pos *at, struct kv_txn_scan *scan,
                        bytes *key, struct kv_cell *cell)
{
    for (unsigned steps = 0; steps < STEPS_MAX; steps++) {
        ST_TRY(kv_txn_scan_next(scan, key, cell));
        if (bytes_cmp(*key, next_of(at)) >= 0)
            return ST_OK;
    }
    kv_txn_scan_seek(scan, arena_copy(p->scratch, next_of(at)));
    return kv_txn_scan_next(scan, key, cell);
}

static status give_items(struct kv_page *p, struct objects_pos *at, struct kv_txn_scan *scan)
{
    struct kv_cell cell;
    bytes key;
    bool room = true;
    size_t common = 0;
    for (unsigned examined = 0; room && examined < EXAMINED_MAX; examined++) {
        if (p->r->limit >= 0 && p->pos->delivered >= p->r->limit)
            return kv__page_end(p);
        status st =
            common > 0 ? step_over(p, at, scan, &key, &cell) : kv_txn_scan_next(scan, &key, &cell);
        if (st == ST_END)
            return kv__page_end(p);
        ST_TRY(st);
        ST_TRY(take(p, at, key, &cell, &common, &room));
    }
    return ST_OK;
}

status kv__read_objects(struct kv_page *p)
{
    struct objects_pos *at = p->pos->inner;
    if (p->r->bucket.size > LIMIT_KEY_BYTES || p->r->prefix.size > LIMIT_KEY_BYTES)
        return kv__page_end(p);
    if (at == NULL)
        at = objects_begin(p);
    bytes lower = arena_copy(p->scratch, next_of(at)); /* `next` moves while the scan is open */
    struct kv_txn_scan *scan =
        kv_txn_scan_open(p->view, lower, kv_key_after_prefix(p->scratch, at->start), false);
    status st = give_items(p, at, scan);
    p->pos->skipped += kv_txn_scan_skipped(scan);
    kv_txn_scan_close(scan);
    return st;
}
