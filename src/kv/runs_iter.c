/*
 * A forward iterator over the store that reads kept runs where there are any, and keeps new ones.
 *
 * It stands in a run, or in the store's own iterator, which is made when it is first needed. What
 * the latter shows is collected, and kept when the run is full, when the next one begins, and at
 * the end; so a page over entries that nobody has listed costs one copy more, and the next one
 * over them none of the store's.
 *
 * Invariants
 *   I1  The moment of what is collected is taken before the store's iterator is made.
 *   I2  What is collected has no gap: it begins where the store's iterator was put, and each step
 *       adds the entry it finds.
 *
 * Threads: the one that made it.
 */
#include "base/assert.h"
#include "kv/key.h"
#include "kv/runs.h"
#include "kv/store.h"

#include <stdlib.h>

#define POSITION_MAX (KV_KEY_MAX + 1)

struct runs_iter {
    struct kv_store_iter base;
    struct kv_store *store;
    enum kv_tier tier;
    bytes lower, upper;       /* in `bounds` */
    const struct kv_run *run; /* NULL: in the store's iterator, or nowhere */
    unsigned at;
    bool whole;       /* the run ends before `upper` */
    bytes key, value; /* where it stands */
    struct kv_store_iter *inner;
    uint64_t moment; /* I1 */
    bool making;
    struct kv_run_maker maker;
    bytes limit; /* where the next kept run begins, empty = nowhere; in `limit_data` */
    uint8_t limit_data[POSITION_MAX], position[POSITION_MAX];
    uint8_t bounds[];
};

static status locate(struct runs_iter *it, bytes key);

/* Keeps what was collected, all that there is below TO. */
static void keep(struct runs_iter *it, bytes to)
{
    if (it->making)
        kv_run_keep(it->store->runs, &it->maker, to, it->moment);
    it->making = false;
}

/* The same when nothing is known beyond the last entry. */
static void keep_up_to_last(struct runs_iter *it)
{
    bytes last = it->making ? kv_run_last(&it->maker) : BYTES_EMPTY;

    if (last.size > 0) {
        memcpy(it->position, last.data, last.size);
        it->position[last.size] = 0;
        keep(it, bytes_make(it->position, last.size + 1));
    }
    it->making = false;
}

/* The store's iterator has moved to an entry: I2. */
static status take(struct runs_iter *it)
{
    it->key = kv_store_iter_key(it->inner);
    it->value = kv_store_iter_value(it->inner);
    if (it->limit.size > 0 && bytes_cmp(it->key, it->limit) >= 0) {
        keep(it, it->limit);
        return locate(it, it->limit);
    }
    if (!kv_run_add(&it->maker, it->key, it->value)) {
        keep(it, it->key);
        it->making = true;
        kv_run_begin(&it->maker, it->key);
        (void)kv_run_add(&it->maker, it->key, it->value);
    }
    return ST_OK;
}

static status moved(struct runs_iter *it, status st)
{
    bool limited = it->limit.size > 0 && bytes_cmp(it->limit, it->upper) < 0;

    it->base.passed = it->inner->passed;
    if (st == ST_OK)
        return take(it);
    if (st == ST_END)
        keep(it, limited ? it->limit : it->upper);
    else
        keep_up_to_last(it);
    return st;
}

static status from_store(struct runs_iter *it, bytes key)
{
    if (it->inner == NULL) {
        it->moment = kv_runs_moment(it->store->runs);
        it->inner = kv_store_iter_new(it->store, it->lower, it->upper, it->tier);
    }
    status st = kv_store_iter_seek(it->inner, key);
    it->making = st == ST_OK;
    if (it->making)
        kv_run_begin(&it->maker, key);
    return moved(it, st);
}

static status in_run(struct runs_iter *it)
{
    return it->whole || bytes_cmp(it->key, it->upper) < 0 ? ST_OK : ST_END;
}

/* The first entry at or after KEY, which may lie in a run or in `limit_data`. */
static status locate(struct runs_iter *it, bytes key)
{
    while (bytes_cmp(key, it->upper) < 0) {
        const struct kv_run *before = it->run;

        ASSERT(key.size <= POSITION_MAX);
        memmove(it->position, key.data, key.size);
        key = bytes_make(it->position, key.size);
        it->run = kv_runs_find(it->store->runs, key, it->limit_data, &it->limit);
        kv_run_give_back(before);
        if (it->run == NULL)
            return from_store(it, key);
        it->at = kv_run_seek(it->run, key);
        it->whole = bytes_cmp(kv_run_end(it->run), it->upper) <= 0;
        if (kv_run_entry(it->run, it->at, &it->key, &it->value))
            return in_run(it);
        key = kv_run_end(it->run);
    }
    return ST_END;
}

static status iter_seek(struct kv_store_iter *base, bytes key)
{
    struct runs_iter *it = (struct runs_iter *)base;

    keep_up_to_last(it);
    return locate(it, bytes_cmp(key, it->lower) < 0 ? it->lower : key);
}

static status iter_next(struct kv_store_iter *base)
{
    struct runs_iter *it = (struct runs_iter *)base;

    if (it->run == NULL)
        return moved(it, kv_store_iter_next(it->inner));
    if (kv_run_entry(it->run, ++it->at, &it->key, &it->value))
        return in_run(it);
    return locate(it, kv_run_end(it->run));
}

static NORETURN void backwards(void)
{
    assert_failed("forward", __FILE__, __LINE__, "an iterator over runs only goes forward");
}

static status iter_seek_before(struct kv_store_iter *base, bytes key)
{
    UNUSED(base);
    UNUSED(key);
    backwards();
}

static status iter_prev(struct kv_store_iter *base)
{
    UNUSED(base);
    backwards();
}

static bytes iter_key(const struct kv_store_iter *base)
{
    return ((const struct runs_iter *)base)->key;
}

static bytes iter_value(const struct kv_store_iter *base)
{
    return ((const struct runs_iter *)base)->value;
}

static void iter_free(struct kv_store_iter *base)
{
    struct runs_iter *it = (struct runs_iter *)base;

    keep_up_to_last(it);
    kv_run_maker_fini(&it->maker);
    kv_run_give_back(it->run);
    kv_store_iter_free(it->inner);
    free(it);
}

static const struct kv_store_iter_ops iter_ops = {
    .free = iter_free,
    .seek = iter_seek,
    .seek_before = iter_seek_before,
    .next = iter_next,
    .prev = iter_prev,
    .key = iter_key,
    .value = iter_value,
};

struct kv_store_iter *kv_store_iter_new_forward(struct kv_store *s, bytes lower, bytes upper,
                                                enum kv_tier tier)
{
    struct runs_iter *it;

    if (s->runs == NULL)
        return kv_store_iter_new(s, lower, upper, tier);
    ASSERT(lower.size > 0);
    ASSERT(upper.size > 0);
    it = malloc(sizeof *it + lower.size + upper.size);
    ASSERT(it != NULL);
    memset(it, 0, offsetof(struct runs_iter, limit_data));
    it->base.ops = &iter_ops;
    it->store = s;
    it->tier = tier;
    memcpy(it->bounds, lower.data, lower.size);
    memcpy(it->bounds + lower.size, upper.data, upper.size);
    it->lower = bytes_make(it->bounds, lower.size);
    it->upper = bytes_make(it->bounds + lower.size, upper.size);
    return &it->base;
}
