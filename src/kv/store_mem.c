/*
 * A store in memory, for tests and the simulator: a treap whose nodes never change once linked.
 *
 * A write copies the path from the root, so a root is a snapshot: an iterator holds the root of its
 * time, and the root of the last flush is what a crash leaves. Priorities are hashes of keys, so
 * one content has one shape whatever the order of writes.
 *
 * Threads: the lock guards the two roots alone and is never held across anything else but the
 * path copies of one batch. Nodes are counted atomically and shared between roots.
 */
#include "base/assert.h"
#include "base/buf.h"
#include "base/checksum.h"
#include "base/fault.h"
#include "kv/runs.h"
#include "kv/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct tree {
    _Atomic uint32_t refs;
    uint64_t priority;
    struct buf *key, *value;
    struct tree *left, *right;
};

struct mem_store {
    struct kv_store base;
    pthread_mutex_t lock;
    struct tree *root, *persisted; /* lock */
    struct kv_store_stats stats;   /* lock */
    atomic_bool cold;
};

struct mem_op {
    struct buf *key, *value; /* value NULL = delete */
};

struct mem_batch {
    struct kv_store_batch base;
    struct mem_op *ops;
    size_t count, capacity;
};

struct mem_iter {
    struct kv_store_iter base;
    struct tree *root;
    struct buf *lower, *upper;
    const struct tree *at;
    bool cold;
};

/* -- the treap: each function owns the trees given by value and returns an owned one ----------- */

static struct tree *tree_ref(struct tree *t)
{
    if (t != NULL)
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

static void tree_unref(struct tree *t)
{
    while (t != NULL && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1) {
        struct tree *right = t->right;

        tree_unref(t->left);
        buf_unref(t->key);
        buf_unref(t->value);
        free(t);
        t = right;
    }
}

static struct tree *tree_new(struct buf *key, struct buf *value, struct tree *left,
                             struct tree *right)
{
    struct tree *t = malloc(sizeof *t);

    ASSERT(t != NULL);
    atomic_init(&t->refs, 1);
    t->priority = checksum64(buf_bytes(key), 0);
    t->key = buf_ref(key);
    t->value = buf_ref(value);
    t->left = left;
    t->right = right;
    return t;
}

/* A copy of T with other children. */
static struct tree *tree_with(const struct tree *t, struct tree *left, struct tree *right)
{
    return tree_new(t->key, t->value, left, right);
}

static struct tree *tree_put(const struct tree *t, struct buf *key, struct buf *value)
{
    struct tree *child, *top;
    int c;

    if (t == NULL)
        return tree_new(key, value, NULL, NULL);
    c = bytes_cmp(buf_bytes(key), buf_bytes(t->key));
    if (c == 0)
        return tree_new(key, value, tree_ref(t->left), tree_ref(t->right));
    child = tree_put(c < 0 ? t->left : t->right, key, value);
    if (child->priority <= t->priority)
        return c < 0 ? tree_with(t, child, tree_ref(t->right))
                     : tree_with(t, tree_ref(t->left), child);
    /* Rotate: CHILD was made by this call, nobody else sees it yet. */
    top = child;
    if (c < 0)
        top->right = tree_with(t, top->right, tree_ref(t->right));
    else
        top->left = tree_with(t, tree_ref(t->left), top->left);
    return top;
}

static struct tree *tree_join(const struct tree *l, const struct tree *r)
{
    if (l == NULL)
        return tree_ref((struct tree *)r);
    if (r == NULL)
        return tree_ref((struct tree *)l);
    if (l->priority >= r->priority)
        return tree_with(l, tree_ref(l->left), tree_join(l->right, r));
    return tree_with(r, tree_join(l, r->left), tree_ref(r->right));
}

static struct tree *tree_delete(struct tree *t, bytes key)
{
    int c;

    if (t == NULL)
        return NULL;
    c = bytes_cmp(key, buf_bytes(t->key));
    if (c == 0)
        return tree_join(t->left, t->right);
    return c < 0 ? tree_with(t, tree_delete(t->left, key), tree_ref(t->right))
                 : tree_with(t, tree_ref(t->left), tree_delete(t->right, key));
}

static const struct tree *tree_find(const struct tree *t, bytes key)
{
    while (t != NULL) {
        int c = bytes_cmp(key, buf_bytes(t->key));

        if (c == 0)
            return t;
        t = c < 0 ? t->left : t->right;
    }
    return NULL;
}

/* First node >= KEY, or > KEY with AFTER. */
static const struct tree *tree_ceil(const struct tree *t, bytes key, bool after)
{
    const struct tree *best = NULL;

    while (t != NULL) {
        int c = bytes_cmp(buf_bytes(t->key), key);

        if (c > 0 || (c == 0 && !after)) {
            best = t;
            t = t->left;
        } else {
            t = t->right;
        }
    }
    return best;
}

/* Last node < KEY. */
static const struct tree *tree_below(const struct tree *t, bytes key)
{
    const struct tree *best = NULL;

    while (t != NULL) {
        if (bytes_cmp(buf_bytes(t->key), key) < 0) {
            best = t;
            t = t->right;
        } else {
            t = t->left;
        }
    }
    return best;
}

/* -- iterators -------------------------------------------------------------------------------- */

static void mem_iter_free(struct kv_store_iter *base)
{
    struct mem_iter *it = (struct mem_iter *)base;

    tree_unref(it->root);
    buf_unref(it->lower);
    buf_unref(it->upper);
    free(it);
}

static status iter_settle(struct mem_iter *it, const struct tree *t)
{
    if (it->cold)
        return ST_COLD;
    if (t != NULL && (bytes_cmp(buf_bytes(t->key), buf_bytes(it->lower)) < 0 ||
                      bytes_cmp(buf_bytes(t->key), buf_bytes(it->upper)) >= 0))
        t = NULL;
    it->at = t;
    return t != NULL ? ST_OK : ST_END;
}

static status mem_iter_seek(struct kv_store_iter *base, bytes key)
{
    struct mem_iter *it = (struct mem_iter *)base;

    if (bytes_cmp(key, buf_bytes(it->lower)) < 0)
        key = buf_bytes(it->lower);
    return iter_settle(it, tree_ceil(it->root, key, false));
}

static status mem_iter_seek_before(struct kv_store_iter *base, bytes key)
{
    struct mem_iter *it = (struct mem_iter *)base;

    if (bytes_cmp(key, buf_bytes(it->upper)) > 0)
        key = buf_bytes(it->upper);
    return iter_settle(it, tree_below(it->root, key));
}

static status mem_iter_next(struct kv_store_iter *base)
{
    struct mem_iter *it = (struct mem_iter *)base;

    ASSERT(it->at != NULL);
    return iter_settle(it, tree_ceil(it->root, buf_bytes(it->at->key), true));
}

static status mem_iter_prev(struct kv_store_iter *base)
{
    struct mem_iter *it = (struct mem_iter *)base;

    ASSERT(it->at != NULL);
    return iter_settle(it, tree_below(it->root, buf_bytes(it->at->key)));
}

static bytes mem_iter_key(const struct kv_store_iter *base)
{
    return buf_bytes(((const struct mem_iter *)base)->at->key);
}

static bytes mem_iter_value(const struct kv_store_iter *base)
{
    return buf_bytes(((const struct mem_iter *)base)->at->value);
}

static const struct kv_store_iter_ops mem_iter_ops = {
    .free = mem_iter_free,
    .seek = mem_iter_seek,
    .seek_before = mem_iter_seek_before,
    .next = mem_iter_next,
    .prev = mem_iter_prev,
    .key = mem_iter_key,
    .value = mem_iter_value,
};

/* -- batches ---------------------------------------------------------------------------------- */

static void batch_add(struct mem_batch *b, bytes key, struct buf *value)
{
    if (b->count == b->capacity) {
        b->capacity = b->capacity > 0 ? b->capacity * 2 : 64;
        b->ops = realloc(b->ops, b->capacity * sizeof *b->ops);
        ASSERT(b->ops != NULL);
    }
    b->ops[b->count++] = (struct mem_op){.key = buf_copy(key), .value = value};
}

static void mem_batch_put(struct kv_store_batch *b, bytes key, bytes value)
{
    batch_add((struct mem_batch *)b, key, buf_copy(value));
}

static void mem_batch_delete(struct kv_store_batch *b, bytes key)
{
    batch_add((struct mem_batch *)b, key, NULL);
}

static void mem_batch_free(struct kv_store_batch *base)
{
    struct mem_batch *b = (struct mem_batch *)base;

    for (size_t i = 0; i < b->count; i++) {
        buf_unref(b->ops[i].key);
        buf_unref(b->ops[i].value);
    }
    free(b->ops);
    free(b);
}

static const struct kv_store_batch_ops mem_batch_ops = {
    .put = mem_batch_put,
    .del = mem_batch_delete,
    .free = mem_batch_free,
};

/* -- the store -------------------------------------------------------------------------------- */

static void mem_close(struct kv_store *base)
{
    struct mem_store *s = (struct mem_store *)base;

    tree_unref(s->root);
    tree_unref(s->persisted);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static status mem_get(struct kv_store *base, bytes key, enum kv_tier tier, struct arena *a,
                      bytes *out)
{
    struct mem_store *s = (struct mem_store *)base;
    bool cold = kv_tier_is_cache(tier) && atomic_load_explicit(&s->cold, memory_order_relaxed);
    struct tree *root;
    const struct tree *t;

    pthread_mutex_lock(&s->lock);
    root = tree_ref(tier == KV_TIER_PERSISTED ? s->persisted : s->root);
    s->stats.gets++;
    s->stats.gets_cold += cold;
    pthread_mutex_unlock(&s->lock);
    t = cold ? NULL : tree_find(root, key);
    if (t != NULL)
        *out = arena_copy(a, buf_bytes(t->value));
    tree_unref(root);
    if (cold)
        return ST_COLD;
    return t != NULL ? ST_OK : ST_NOT_FOUND;
}

static struct kv_store_iter *mem_iter_new(struct kv_store *base, bytes lower, bytes upper,
                                          enum kv_tier tier)
{
    struct mem_store *s = (struct mem_store *)base;
    struct mem_iter *it = calloc(1, sizeof *it);

    ASSERT(it != NULL);
    it->base.ops = &mem_iter_ops;
    it->lower = buf_copy(lower);
    it->upper = buf_copy(upper);
    it->cold = kv_tier_is_cache(tier) && atomic_load_explicit(&s->cold, memory_order_relaxed);
    pthread_mutex_lock(&s->lock);
    it->root = tree_ref(s->root);
    s->stats.iters++;
    pthread_mutex_unlock(&s->lock);
    return &it->base;
}

static struct kv_store_batch *mem_batch_new(struct kv_store *base)
{
    struct mem_batch *b = calloc(1, sizeof *b);

    UNUSED(base);
    ASSERT(b != NULL);
    b->base.ops = &mem_batch_ops;
    return &b->base;
}

static void batch_apply(struct mem_store *s, const struct mem_batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct mem_op *op = &b->ops[i];
        struct tree *old = s->root;

        if (op->value != NULL) {
            s->root = tree_put(old, op->key, op->value);
            s->stats.keys_written++;
        } else {
            s->root = tree_delete(old, buf_bytes(op->key));
            s->stats.keys_deleted++;
        }
        tree_unref(old);
    }
    s->stats.batches++;
}

static status mem_write(struct kv_store *base, struct kv_store_batch *batch)
{
    struct mem_store *s = (struct mem_store *)base;
    bool fail = fault_point("store.mem.write");

    if (!fail) {
        pthread_mutex_lock(&s->lock);
        batch_apply(s, (const struct mem_batch *)batch);
        pthread_mutex_unlock(&s->lock);
    }
    mem_batch_free(batch);
    return fail ? ST_IO : ST_OK;
}

static status mem_flush(struct kv_store *base)
{
    struct mem_store *s = (struct mem_store *)base;

    if (fault_point("store.mem.flush"))
        return ST_IO;
    pthread_mutex_lock(&s->lock);
    tree_unref(s->persisted);
    s->persisted = tree_ref(s->root);
    s->stats.flushes++;
    pthread_mutex_unlock(&s->lock);
    return ST_OK;
}

static status mem_room(struct kv_store *base, uint64_t size)
{
    UNUSED(base);
    UNUSED(size);
    return ST_OK;
}

/* -- taking in much at once -------------------------------------------------------------------- */

struct mem_load {
    struct kv_store_load base;
    struct mem_store *store;
    struct mem_batch *entries;
    struct mem_op *ranges; /* key, value: lower, upper */
    size_t range_count;
};

static status mem_load_replace(struct kv_store_load *base, bytes lower, bytes upper)
{
    struct mem_load *l = (struct mem_load *)base;

    l->ranges = realloc(l->ranges, (l->range_count + 1) * sizeof *l->ranges);
    ASSERT(l->ranges != NULL);
    l->ranges[l->range_count++] = (struct mem_op){.key = buf_copy(lower), .value = buf_copy(upper)};
    return ST_OK;
}

static status mem_load_put(struct kv_store_load *base, bytes key, bytes value)
{
    if (fault_point("store.mem.load"))
        return ST_DISK_FULL;
    mem_batch_put(&((struct mem_load *)base)->entries->base, key, value);
    return ST_OK;
}

static status mem_load_delete(struct kv_store_load *base, bytes key)
{
    mem_batch_delete(&((struct mem_load *)base)->entries->base, key);
    return ST_OK;
}

static status mem_load_seal(struct kv_store_load *base)
{
    UNUSED(base);
    return fault_point("store.mem.seal") ? ST_IO : ST_OK;
}

static void tree_delete_range(struct tree **root, bytes lower, bytes upper)
{
    const struct tree *t;

    while ((t = tree_ceil(*root, lower, false)) != NULL &&
           bytes_cmp(buf_bytes(t->key), upper) < 0) {
        struct tree *old = *root;

        *root = tree_delete(old, buf_bytes(t->key));
        tree_unref(old);
    }
}

static void load_apply(const struct mem_load *l, struct tree **root)
{
    for (size_t i = 0; i < l->range_count; i++)
        tree_delete_range(root, buf_bytes(l->ranges[i].key), buf_bytes(l->ranges[i].value));
    for (size_t i = 0; i < l->entries->count; i++) {
        const struct mem_op *op = &l->entries->ops[i];
        struct tree *old = *root;

        *root = op->value != NULL ? tree_put(old, op->key, op->value)
                                  : tree_delete(old, buf_bytes(op->key));
        tree_unref(old);
    }
}

/* What others wrote and did not flush is as likely to be lost as before. */
static status mem_load_install(struct kv_store_load *base)
{
    struct mem_load *l = (struct mem_load *)base;
    struct mem_store *s = l->store;

    if (fault_point("store.mem.ingest"))
        return ST_IO;
    pthread_mutex_lock(&s->lock);
    load_apply(l, &s->root);
    load_apply(l, &s->persisted);
    s->stats.keys_written += l->entries->count;
    pthread_mutex_unlock(&s->lock);
    return ST_OK;
}

static void mem_load_free(struct kv_store_load *base)
{
    struct mem_load *l = (struct mem_load *)base;

    for (size_t i = 0; i < l->range_count; i++) {
        buf_unref(l->ranges[i].key);
        buf_unref(l->ranges[i].value);
    }
    free(l->ranges);
    mem_batch_free(&l->entries->base);
    free(l);
}

static const struct kv_store_load_ops mem_load_ops = {
    .replace = mem_load_replace,
    .put = mem_load_put,
    .del = mem_load_delete,
    .seal = mem_load_seal,
    .install = mem_load_install,
    .free = mem_load_free,
};

static status mem_load_new(struct kv_store *base, const char *dir, struct kv_store_load **out)
{
    struct mem_load *l = calloc(1, sizeof *l);

    UNUSED(dir);
    ASSERT(l != NULL);
    l->base.ops = &mem_load_ops;
    l->store = (struct mem_store *)base;
    l->entries = (struct mem_batch *)mem_batch_new(base);
    *out = &l->base;
    return ST_OK;
}

static void mem_compact(struct kv_store *base, bytes lower, bytes upper)
{
    UNUSED(base);
    UNUSED(lower);
    UNUSED(upper);
}

static void mem_stats(struct kv_store *base, struct kv_store_stats *out)
{
    struct mem_store *s = (struct mem_store *)base;

    pthread_mutex_lock(&s->lock);
    *out = s->stats;
    pthread_mutex_unlock(&s->lock);
}

static const struct kv_store_ops mem_ops = {
    .close = mem_close,
    .get = mem_get,
    .iter_new = mem_iter_new,
    .batch_new = mem_batch_new,
    .write = mem_write,
    .flush = mem_flush,
    .room = mem_room,
    .load_new = mem_load_new,
    .compact = mem_compact,
    .stats = mem_stats,
};

struct kv_store *kv_store_new_mem(void)
{
    struct mem_store *s = calloc(1, sizeof *s);

    ASSERT(s != NULL);
    s->base.ops = &mem_ops;
    pthread_mutex_init(&s->lock, NULL);
    atomic_init(&s->cold, false);
    return &s->base;
}

void kv_store_mem_crash(struct kv_store *base)
{
    struct mem_store *s = (struct mem_store *)base;

    ASSERT(base->ops == &mem_ops);
    pthread_mutex_lock(&s->lock);
    tree_unref(s->root);
    s->root = tree_ref(s->persisted);
    pthread_mutex_unlock(&s->lock);
    if (base->runs != NULL)
        kv_runs_clear(base->runs);
}

void kv_store_mem_set_cold(struct kv_store *base, bool cold)
{
    ASSERT(base->ops == &mem_ops);
    atomic_store_explicit(&((struct mem_store *)base)->cold, cold, memory_order_relaxed);
}
