/*
 * kv/recent.h — which keys changed shortly before a generation was sealed, kept in the store.
 *
 * A transaction is checked against versions that were committed after its snapshot, and those are
 * in memory: a flush waits until no transaction can be that old. But the log goes on behind what a
 * flush has persisted, and is applied again after a crash, or by a replica that got the state: a
 * transaction in it may have begun before the seal, and what it conflicts with is no version in
 * memory any more. It must end there as it ended elsewhere. So a flush writes down, of all keys
 * that changed in the last LIMIT_TXN_MS before its seal, when that was.
 *
 * Keys are known by 128 bits of hash. In the store: rows of KV_QUEUE, ring RECENT, in the place of
 * the stamp a number from 1 on; each holds entries of 25 bytes: hash 16 | stamp 8 | deleted 1.
 */
#ifndef KV_RECENT_H
#define KV_RECENT_H

#include "base/hlc.h"
#include "kv/store.h"

struct kv__recent_key;
struct kv__recent {
    struct kv__recent_key *at;
    size_t count, capacity;
    hlc_ts newest; /* of all; 0 = there are none */
};

void kv__recent_init(struct kv__recent *r);
void kv__recent_fini(struct kv__recent *r); /* and it is empty */
/* In any order; kv__recent_sort before the first question. */
void kv__recent_add(struct kv__recent *r, bytes key, hlc_ts ts, bool deleted);
void kv__recent_sort(struct kv__recent *r);
/* Newest stamp of KEY above AFTER, 0 if there is none; *DELETED tells its kind. */
hlc_ts kv__recent_newer(const struct kv__recent *r, bytes key, hlc_ts after, bool *deleted);

/* What the store has of SHARD, stamps above AFTER; added to OUT, not sorted. ST_CORRUPT, ST_IO. */
NODISCARD status kv__recent_load(struct kv_store *store, uint64_t shard, hlc_ts after,
                                 struct kv__recent *out);
/* R, sorted, in the place of what the store has. */
NODISCARD status kv__recent_put(struct kv_store *store, uint64_t shard, const struct kv__recent *r,
                                struct kv_store_batch *batch);

#endif
