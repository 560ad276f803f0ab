/*
 * Which keys are a shard's, and how a part of a snapshot is summed.
 *
 * A shard has ranges of its own (its tables, its queue, its record) and entries among those of
 * other shards (watermarks and locks; key_owner.c tells whose they are).
 */
#include "kv/snapshot_internal.h"

#include "base/assert.h"
#include "base/checksum.h"

#define NUMBER_STEP 0x9e3779b97f4a7c15u

static struct kv__span *span_add(struct kv__spans *all, bytes lower, bytes upper, bool shared)
{
    ASSERT(all->count < KV__SPANS_MAX);
    ASSERT(lower.size <= KV__SPAN_KEY_MAX && upper.size <= KV__SPAN_KEY_MAX);
    struct kv__span *s = &all->at[all->count++];

    memcpy(s->lower_data, lower.data, lower.size);
    memcpy(s->upper_data, upper.data, upper.size);
    s->lower = bytes_make(s->lower_data, lower.size);
    s->upper = bytes_make(s->upper_data, upper.size);
    s->shared = shared;
    return s;
}

static void span_add_table(struct kv__spans *all, const struct kv_state *s, uint8_t t)
{
    uint8_t after = (uint8_t)(t + 1);
    bool alone = s->options.table == 0;
    bool hidden = t == KV_MARK || t == KV_LOCK;

    if (alone || hidden || kv_key_owner(bytes_make(&t, 1)) == s->options.table)
        span_add(all, bytes_make(&t, 1), bytes_make(&after, 1), hidden && !alone);
}

static void span_add_ring(struct kv__spans *all, enum kv__ring which, uint64_t shard)
{
    uint8_t lower[KV__QUEUE_KEY_SIZE], upper[KV__QUEUE_KEY_SIZE + 1];

    (void)kv__queue_key(upper, which, shard, UINT64_MAX);
    upper[KV__QUEUE_KEY_SIZE] = 0;
    span_add(all, kv__queue_key(lower, which, shard, 0), bytes_make(upper, sizeof upper), false);
}

void kv__spans_make(const struct kv_state *s, struct kv__spans *out)
{
    uint8_t record[KV__RECORD_KEY_SIZE], behind[KV__RECORD_KEY_SIZE + 1] = {0};
    uint64_t shard = s->options.shard;

    out->count = 0;
    for (uint8_t t = 1; t < KV_QUEUE; t++) {
        if (t <= KV_KV)
            span_add_table(out, s, t);
    }
    span_add_ring(out, KV__RING_QUEUE, shard);
    span_add_ring(out, KV__RING_ANSWERS, shard);
    span_add_ring(out, KV__RING_RECENT, shard);
    span_add_table(out, s, KV_MARK);
    span_add_table(out, s, KV_LOCK);
    (void)kv__record_key(behind, shard);
    span_add(out, kv__record_key(record, shard), bytes_make(behind, sizeof behind), false);
}

bool kv__span_owns(const struct kv_state *s, const struct kv__span *span, bytes key)
{
    return !span->shared || kv_key_owner(key) == s->options.table;
}

uint64_t kv__part_sum(bytes part, uint64_t index, uint64_t number)
{
    return checksum64(bytes_make(part.data + 8, part.size - 8), index ^ (number + 1) * NUMBER_STEP);
}

bytes kv__note_key(uint8_t out[KV__NOTE_KEY_SIZE], uint64_t shard)
{
    (void)kv__record_key(out, shard);
    out[KV__RECORD_KEY_SIZE] = 1;
    return bytes_make(out, KV__NOTE_KEY_SIZE);
}
