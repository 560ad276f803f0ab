/*
 * kv/load_batch.c — see load_batch.h.
 *
 * Invariants
 *   B1  All keys that are kept aside lie behind all that are passed on: the number of a hidden
 *       table is above that of every table that clients see.
 *   B2  Of a key that was kept aside several times the last one counts, as in a batch.
 */
#include "kv/load_batch.h"

#include "base/assert.h"
#include "base/memory.h"
#include "kv/key.h"

#include <stdlib.h>

struct aside {
    bytes key, value; /* in the arena */
    unsigned order;
    bool deleted;
};

struct load_batch {
    struct kv_store_batch base;
    struct kv_store_load *load;
    status failed; /* the first */
    bool finished;
    struct arena arena;
    struct aside *at; /* in the arena */
    unsigned count, capacity;
};

/* B1 */
static bool is_row(bytes key)
{
    return kv_key_table(key) < KV_QUEUE;
}

static void keep_aside(struct load_batch *b, bytes key, bytes value, bool deleted)
{
    if (b->count == b->capacity)
        b->at = arena_grow(&b->arena, b->at, sizeof *b->at, &b->capacity, 64);
    b->at[b->count] = (struct aside){.key = arena_copy(&b->arena, key),
                                     .value = arena_copy(&b->arena, value),
                                     .order = b->count,
                                     .deleted = deleted};
    b->count++;
}

static void put(struct kv_store_batch *base, bytes key, bytes value)
{
    struct load_batch *b = (struct load_batch *)base;

    ASSERT(!b->finished);
    if (!is_row(key))
        keep_aside(b, key, value, false);
    else if (b->failed == ST_OK)
        b->failed = kv_store_load_put(b->load, key, value);
}

static void del(struct kv_store_batch *base, bytes key)
{
    struct load_batch *b = (struct load_batch *)base;

    ASSERT(!b->finished);
    if (!is_row(key))
        keep_aside(b, key, BYTES_EMPTY, true);
    else if (b->failed == ST_OK)
        b->failed = kv_store_load_delete(b->load, key);
}

static void batch_free(struct kv_store_batch *base)
{
    struct load_batch *b = (struct load_batch *)base;

    arena_fini(&b->arena);
    free(b);
}

static const struct kv_store_batch_ops load_batch_ops = {
    .put = put,
    .del = del,
    .free = batch_free,
};

struct kv_store_batch *kv_load_batch_new(struct kv_store_load *l)
{
    struct load_batch *b = calloc(1, sizeof *b);

    ASSERT(b != NULL);
    b->base.ops = &load_batch_ops;
    b->load = l;
    b->failed = ST_OK;
    arena_init(&b->arena, 16u * 1024u);
    b->arena.use = MEMORY_FLUSHES;
    return &b->base;
}

static int compare(const void *a, const void *b)
{
    const struct aside *x = a, *y = b;
    int c = bytes_cmp(x->key, y->key);

    if (c != 0)
        return c;
    return x->order < y->order ? -1 : 1;
}

static status pass_on(struct kv_store_load *l, const struct aside *e)
{
    return e->deleted ? kv_store_load_delete(l, e->key) : kv_store_load_put(l, e->key, e->value);
}

status kv_load_batch_finish(struct kv_store_batch *base, struct kv_store_change *w)
{
    struct load_batch *b = (struct load_batch *)base;

    ASSERT(base->ops == &load_batch_ops);
    ASSERT(!b->finished);
    b->finished = true;
    if (b->count > 1)
        qsort(b->at, b->count, sizeof *b->at, compare);
    for (unsigned i = 0; i < b->count && b->failed == ST_OK; i++) {
        if (i + 1 < b->count && bytes_eq(b->at[i].key, b->at[i + 1].key))
            continue; /* B2 */
        kv_store_change_key(w, b->at[i].key);
        b->failed = pass_on(b->load, &b->at[i]);
    }
    return b->failed;
}
