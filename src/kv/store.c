/*
 * Calls through the store's table of functions, so that callers do not see the table and what all
 * implementations owe is asserted in one place.
 */
#include "kv/store.h"
#include "base/assert.h"
#include "kv/runs.h"

void kv_store_close(struct kv_store *s)
{
    if (s == NULL)
        return;
    kv_runs_free(s->runs);
    s->ops->close(s);
}

void kv_store_keep_runs(struct kv_store *s, uint64_t bytes_max)
{
    ASSERT(s->runs == NULL);
    s->runs = kv_runs_new(bytes_max);
}

status kv_store_get(struct kv_store *s, bytes key, enum kv_tier tier, struct arena *a, bytes *out)
{
    return s->ops->get(s, key, tier, a, out);
}

struct kv_store_iter *kv_store_iter_new(struct kv_store *s, bytes lower, bytes upper,
                                        enum kv_tier tier)
{
    ASSERT(lower.size > 0);
    ASSERT(upper.size > 0);
    ASSERT(tier != KV_TIER_PERSISTED);
    return s->ops->iter_new(s, lower, upper, tier);
}

void kv_store_iter_free(struct kv_store_iter *it)
{
    if (it != NULL)
        it->ops->free(it);
}

status kv_store_iter_seek(struct kv_store_iter *it, bytes at_or_after)
{
    return it->ops->seek(it, at_or_after);
}

status kv_store_iter_seek_before(struct kv_store_iter *it, bytes before)
{
    return it->ops->seek_before(it, before);
}

status kv_store_iter_next(struct kv_store_iter *it)
{
    return it->ops->next(it);
}

status kv_store_iter_prev(struct kv_store_iter *it)
{
    return it->ops->prev(it);
}

bytes kv_store_iter_key(const struct kv_store_iter *it)
{
    return it->ops->key(it);
}

bytes kv_store_iter_value(const struct kv_store_iter *it)
{
    return it->ops->value(it);
}

struct kv_store_batch *kv_store_batch_new(struct kv_store *s)
{
    struct kv_store_batch *b = s->ops->batch_new(s);

    b->store = s;
    if (s->runs != NULL)
        b->writer = kv_runs_write_begin(s->runs);
    return b;
}

void kv_store_batch_put(struct kv_store_batch *b, bytes key, bytes value)
{
    if (b->writer != NULL)
        kv_runs_touch(b->writer, key);
    b->ops->put(b, key, value);
}

void kv_store_batch_delete(struct kv_store_batch *b, bytes key)
{
    if (b->writer != NULL)
        kv_runs_touch(b->writer, key);
    b->ops->del(b, key);
}

void kv_store_batch_free(struct kv_store_batch *b)
{
    if (b == NULL)
        return;
    kv_runs_write_end(b->writer);
    b->ops->free(b);
}

status kv_store_write(struct kv_store *s, struct kv_store_batch *b)
{
    struct kv_runs_writer *writer = b->writer;
    status st;

    b->writer = NULL;
    st = s->ops->write(s, b);
    kv_runs_write_end(writer);
    return st;
}

status kv_store_flush(struct kv_store *s)
{
    return s->ops->flush(s);
}

status kv_store_room(struct kv_store *s, uint64_t size)
{
    return s->ops->room(s, size);
}

status kv_store_load_new(struct kv_store *s, const char *dir, struct kv_store_load **out)
{
    ST_TRY(s->ops->load_new(s, dir, out));
    (*out)->store = s;
    return ST_OK;
}

status kv_store_load_replace(struct kv_store_load *l, bytes lower, bytes upper)
{
    ASSERT(bytes_cmp(lower, upper) < 0);
    return l->ops->replace(l, lower, upper);
}

status kv_store_load_put(struct kv_store_load *l, bytes key, bytes value)
{
    return l->ops->put(l, key, value);
}

status kv_store_load_delete(struct kv_store_load *l, bytes key)
{
    return l->ops->del(l, key);
}

status kv_store_load_seal(struct kv_store_load *l)
{
    return l->ops->seal(l);
}

/* Kept runs of other ranges go too: it is rare, and they are made again by who needs them. */
status kv_store_load_install(struct kv_store_load *l)
{
    struct kv_runs *runs = l->store->runs;
    struct kv_runs_writer *w = runs != NULL ? kv_runs_write_begin(runs) : NULL;
    status st;

    if (w != NULL)
        kv_runs_touch_all(w);
    st = l->ops->install(l);
    kv_runs_write_end(w);
    return st;
}

/* A change is the writer of the runs under another name. */
struct kv_store_change *kv_store_change_begin(struct kv_store *s)
{
    return s->runs != NULL ? (struct kv_store_change *)kv_runs_write_begin(s->runs) : NULL;
}

void kv_store_change_key(struct kv_store_change *w, bytes key)
{
    if (w != NULL)
        kv_runs_touch((struct kv_runs_writer *)w, key);
}

void kv_store_change_end(struct kv_store_change *w)
{
    kv_runs_write_end((struct kv_runs_writer *)w);
}

status kv_store_load_install_told(struct kv_store_load *l, struct kv_store_change *w)
{
    status st = l->ops->install(l);

    kv_store_change_end(w);
    return st;
}

void kv_store_load_free(struct kv_store_load *l)
{
    if (l != NULL)
        l->ops->free(l);
}

void kv_store_compact(struct kv_store *s, bytes lower, bytes upper)
{
    s->ops->compact(s, lower, upper);
}

void kv_store_span(struct kv_store *s, bytes lower, bytes upper, struct kv_store_span *out)
{
    *out = (struct kv_store_span){.bytes = 0};
    if (s->ops->span != NULL)
        s->ops->span(s, lower, upper, out);
}

void kv_store_stop_compacting(struct kv_store *s)
{
    if (s->ops->stop_compacting != NULL)
        s->ops->stop_compacting(s);
}

void kv_store_stats(struct kv_store *s, struct kv_store_stats *out)
{
    struct kv_runs_stats runs = {0};

    s->ops->stats(s, out);
    if (s->runs != NULL)
        kv_runs_stats(s->runs, &runs);
    out->runs = runs.runs;
    out->run_hits = runs.hits;
    out->run_misses = runs.misses;
}
