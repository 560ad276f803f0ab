/* kv/snapshot_internal.h — what giving and getting a snapshot share. */
#ifndef KV_SNAPSHOT_INTERNAL_H
#define KV_SNAPSHOT_INTERNAL_H

#include "kv/snapshot.h"
#include "kv/state_internal.h"

enum kv__part_kind { KV__PART_ENTRIES = 1, KV__PART_END };

#define KV__NOTE_KEY_SIZE (KV__RECORD_KEY_SIZE + 1)
#define KV__SPAN_KEY_MAX (KV__QUEUE_KEY_SIZE + 1)
#define KV__SPANS_MAX 16u

/* A range of keys that holds entries of the shard; SHARED: among those of others. */
struct kv__span {
    uint8_t lower_data[KV__SPAN_KEY_MAX], upper_data[KV__SPAN_KEY_MAX];
    bytes lower, upper;
    bool shared;
};
/* All of them, ascending; the last one is the shard's record. */
struct kv__spans {
    unsigned count;
    struct kv__span at[KV__SPANS_MAX];
};

void kv__spans_make(const struct kv_state *s, struct kv__spans *out);
bool kv__span_owns(const struct kv_state *s, const struct kv__span *span, bytes key);
uint64_t kv__part_sum(bytes part, uint64_t index, uint64_t number);
bytes kv__note_key(uint8_t out[KV__NOTE_KEY_SIZE], uint64_t shard);

#endif
