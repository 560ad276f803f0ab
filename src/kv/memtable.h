/*
 * kv/memtable.h — one generation of a shard: an ordered map from key to a chain of versions.
 *
 * One writer (the shard's reactor), any number of readers that never block: a B+tree whose nodes
 * publish insertions through one atomic word, so nothing is freed before the whole memtable is.
 * All memory comes from the memtable's own slabs. A sealed memtable is immutable.
 * An entry also carries the pending attribute delta of a directory (see state.h).
 */
#ifndef KV_MEMTABLE_H
#define KV_MEMTABLE_H

#include "base/bytes.h"
#include "base/hlc.h"
#include "base/status.h"
#include <stdatomic.h>

struct kv_version {
    hlc_ts ts;
    struct kv_version *older; /* const after publish */
    uint32_t size;
    uint8_t deleted;
    uint8_t fresh;  /* older generations and the store had nothing under this key */
    uint8_t data[]; /* row bytes */
};

/* Aggregates of a directory that its row does not hold yet. Sum of children; largest times. */
struct kv_delta {
    bool present;
    int64_t children;
    int64_t mtime, ctime; /* timestamptz; INT64_MIN = none */
    hlc_ts last;          /* stamp of the newest command in it */
};

struct kv_memtable;
struct kv_mem_entry; /* opaque */

/* EXPECTED: how many bytes it will hold, for its filter; 0 = no filter. */
struct kv_memtable *kv_memtable_new(size_t expected);
struct kv_memtable *kv_memtable_ref(struct kv_memtable *m);
/* The last reference frees it after an RCU grace period. */
void kv_memtable_unref(struct kv_memtable *m);
size_t kv_memtable_bytes(const struct kv_memtable *m);
uint64_t kv_memtable_entries(const struct kv_memtable *m);

/* Writer. TS not below any version of KEY in it; an equal one hides that version, which must be of
 * the same command. A new version of a directory's _attr_ key clears the entry's delta, together
 * with it for a reader. FRESH counts only for the first version of KEY. */
void kv_memtable_put(struct kv_memtable *m, bytes key, hlc_ts ts, bool deleted, bool fresh,
                     bytes row);
/* Writer. Adds to the delta of KEY, making an entry without versions if there is none. */
void kv_memtable_delta(struct kv_memtable *m, bytes key, int64_t children, int64_t mtime,
                       int64_t ctime, hlc_ts ts);

/* Readers, inside an RCU section or holding a reference. NULL if the key has no entry. */
const struct kv_mem_entry *kv_memtable_find(const struct kv_memtable *m, bytes key);
bytes kv_mem_entry_key(const struct kv_mem_entry *e);
/* Newest version alone, for keys that never carry a delta. NULL if there is none. */
const struct kv_version *kv_mem_entry_newest(const struct kv_mem_entry *e);
/* The same for a key that is likely to be looked up again. */
const struct kv_mem_entry *kv_memtable_find_often(struct kv_memtable *m, bytes key);
/* E will be looked at soon. */
void kv_mem_entry_prefetch(const struct kv_mem_entry *e);
/* Was the oldest version of this generation marked fresh? */
bool kv_mem_entry_born_here(const struct kv_mem_entry *e);
/* Newest version and delta as of one moment; *V may be NULL (delta only). */
void kv_mem_entry_read(const struct kv_mem_entry *e, const struct kv_version **v,
                       struct kv_delta *d);

/* Ordered walk: each step finds its place again by key, so a cursor holds no node across
 * insertions. Finds the first entry >= KEY (or the last < KEY) and up to COUNT entries on. */
unsigned kv_memtable_walk(const struct kv_memtable *m, bytes from, bytes upper,
                          const struct kv_mem_entry **out, unsigned count);
/* The same from the first entry > AFTER: how a cursor goes on. */
unsigned kv_memtable_walk_after(const struct kv_memtable *m, bytes after, bytes upper,
                                const struct kv_mem_entry **out, unsigned count);
unsigned kv_memtable_walk_back(const struct kv_memtable *m, bytes before, bytes lower,
                               const struct kv_mem_entry **out, unsigned count);

#endif
