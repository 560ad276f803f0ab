/*
 * The queue of quota and index items: replicated state, delivered by the leader's sink.
 *
 * Records live in a ring in memory from their push until their acknowledgement; a flush puts those
 * that are undelivered at a seal into the store beside the rows of that generation, and takes out
 * those that were acknowledged. At open the ring is filled from the store again.
 *
 * The ring and its keys also serve the memory of answers, see dedup.c.
 *
 * The whole undelivered queue is in memory: a destination that is down for long costs memory here,
 * which the shard's memory figure includes.
 */
#include "base/assert.h"
#include "base/codec.h"
#include "kv/state_internal.h"

#include <stdlib.h>

struct kv__queued *kv__queue_at(const struct kv__queue *q, size_t i)
{
    return &q->ring[(q->head + i) & (q->capacity - 1)];
}

static void queue_grow(struct kv__queue *q)
{
    size_t capacity = q->capacity > 0 ? q->capacity * 2 : 64;
    struct kv__queued *ring = calloc(capacity, sizeof *ring);

    ASSERT(ring != NULL);
    for (size_t i = 0; i < q->count; i++)
        ring[i] = *kv__queue_at(q, i);
    free(q->ring);
    q->ring = ring;
    q->capacity = capacity;
    q->head = 0;
}

void kv__queue_push_take(struct kv__queue *q, hlc_ts ts, struct buf *items)
{
    ASSERT(q->count == 0 || kv__queue_at(q, q->count - 1)->ts < ts);
    if (q->count == q->capacity)
        queue_grow(q);
    q->count++;
    *kv__queue_at(q, q->count - 1) = (struct kv__queued){.ts = ts, .items = items};
    q->byte_count += items->size;
}

void kv__queue_drop(struct kv__queue *q, hlc_ts up_to)
{
    while (q->count > 0 && kv__queue_at(q, 0)->ts <= up_to) {
        struct kv__queued *r = kv__queue_at(q, 0);

        q->byte_count -= r->items->size;
        buf_unref(r->items);
        q->head = (q->head + 1) & (q->capacity - 1);
        q->count--;
    }
}

void kv__queue_fini(struct kv__queue *q)
{
    kv__queue_drop(q, UINT64_MAX);
    free(q->ring);
    *q = (struct kv__queue){.ring = NULL};
}

size_t kv__queue_above(const struct kv__queue *q, hlc_ts after)
{
    size_t low = 0, high = q->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (kv__queue_at(q, middle)->ts > after)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

status kv__queue_load(struct kv_store *store, enum kv__ring which, uint64_t shard, hlc_ts dropped,
                      hlc_ts applied, struct kv__queue *out)
{
    uint8_t lower[KV__QUEUE_KEY_SIZE], upper[KV__QUEUE_KEY_SIZE];
    struct kv_store_iter *it;
    hlc_ts last = dropped;
    bytes from = kv__queue_key(lower, which, shard, last + 1);
    status st;

    it =
        kv_store_iter_new(store, from, kv__queue_key(upper, which, shard, UINT64_MAX), KV_TIER_ANY);
    for (st = kv_store_iter_seek(it, from); st == ST_OK; st = kv_store_iter_next(it)) {
        bytes key = kv_store_iter_key(it);
        hlc_ts ts;

        if (key.size != KV__QUEUE_KEY_SIZE) {
            st = ST_CORRUPT;
            break;
        }
        ts = load_be64(key.data + KV_KEY_HEADER + 8);
        if (ts <= last || ts > applied) {
            st = ST_CORRUPT;
            break;
        }
        kv__queue_push_take(out, ts, buf_copy(kv_store_iter_value(it)));
        last = ts;
    }
    kv_store_iter_free(it);
    return st == ST_END ? ST_OK : st;
}

void kv_state_queue_each(struct kv_state *s, hlc_ts after,
                         bool (*fn)(void *, hlc_ts ts, bytes items), void *arg)
{
    for (size_t i = kv__queue_above(&s->queue, after); i < s->queue.count; i++) {
        const struct kv__queued *r = kv__queue_at(&s->queue, i);

        if (!fn(arg, r->ts, buf_bytes(r->items)))
            return;
    }
}

uint64_t kv_state_queue_length(const struct kv_state *s)
{
    return s->queue.count;
}
