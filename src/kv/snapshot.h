/*
 * kv/snapshot.h — the whole state of a shard at one applied index, from one replica to another.
 *
 *   a replica that has it                          one that gets it
 *     kv_dump_new      owner                         kv_load_new      pool
 *     kv_dump_part     pool  ── part after part ──▶  kv_load_part     pool
 *       … until ST_END                                 … until ST_END
 *     kv_dump_free                                   kv_load_install  pool
 *                                                    kv_load_take     owner
 *
 * A dump is what the store holds of the shard, which is the state at its record's index and nothing
 * else (flush.c, F1): rows, folded counters, watermarks, locks, undelivered queue, record. One
 * iterator shows all of it as of one moment, so flushes that follow do not change it. What is in
 * memory above that index is not in it: the log has that.
 *
 * A load checks each part, writes entries into files beside the store, and replaces in one step all
 * that the store holds of the shard. Before that step nothing has changed; after it the new
 * state is durable. Memory on both sides is a part and what a table file needs while it is written.
 *
 * A part, integers little-endian:
 *
 *   sum of what follows 8 | number 8 | kind 1 | body
 *
 *   kind 1: entries, each varint length, key, varint length, value; keys ascend over all parts
 *   kind 2: the end: number of entries 8, bytes of keys and values 8
 *
 * The sum is seeded with the number and the index, so a part of another snapshot, or in another
 * place, is as wrong as a damaged one. Keys that are not the shard's are refused.
 */
#ifndef KV_SNAPSHOT_H
#define KV_SNAPSHOT_H

#include "kv/state.h"

#define KV_PART_HEADER_BYTES 17u

struct kv_snapshot_id {
    uint64_t index, term; /* of the shard's record */
};
/* What the store holds: a dump made now is of it, unless a flush is under way. Owner. */
struct kv_snapshot_id kv_state_persisted(const struct kv_state *s);

/* -- giving ------------------------------------------------------------------------------------ */

struct kv_dump;
/* Owner, while no flush is under way. ID: what the store's record says, checked by the first part.
 * S may change and flush afterwards, but not be closed. */
struct kv_dump *kv_dump_new(struct kv_state *s, struct kv_snapshot_id id);
/* Appends the next part, its entries of about TARGET bytes. ST_END with the last one; ST_CONFLICT:
 * the store holds another index; ST_IO, ST_CORRUPT. Pool threads, one at a time. */
NODISCARD status kv_dump_part(struct kv_dump *d, size_t target, struct obuf *out);
/* The next part is the first one again. */
void kv_dump_rewind(struct kv_dump *d);
void kv_dump_free(struct kv_dump *d); /* NULL is fine */

/* -- getting ----------------------------------------------------------------------------------- */

struct kv_load;
/* While no flush of S is under way, and none until kv_load_take or kv_load_free: S is not applied
 * to meanwhile. NOTE is stored with the state (kv_state_note). DIR as for kv_store_load_new. */
NODISCARD status kv_load_new(struct kv_state *s, const char *dir, struct kv_snapshot_id id,
                             bytes note, struct kv_load **out);
/* ST_OK; ST_END: that was the last one, and everything is in files. ST_CORRUPT: a damaged part, or
 * not the next one; ST_DISK_FULL, ST_IO. After an error only kv_load_free. */
NODISCARD status kv_load_part(struct kv_load *l, bytes part);
/* The store holds the new state. On error kv_load_installed tells whether it does all the same:
 * then S in memory belongs to a state that is gone, and only a reopening is right. */
NODISCARD status kv_load_install(struct kv_load *l);
bool kv_load_installed(const struct kv_load *l);
/* S is what the store holds: readers of "now" see it at once, older snapshots get ST_CONFLICT.
 * Frees L. */
void kv_load_take(struct kv_load *l);
void kv_load_free(struct kv_load *l); /* removes files; NULL is fine */

/* What the last load of SHARD noted, and at which index. ST_NOT_FOUND: there was none. */
NODISCARD status kv_state_note(struct kv_store *store, uint64_t shard, struct arena *a,
                               uint64_t *index, bytes *note);

#endif
