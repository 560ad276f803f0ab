/*
 * kv/delete_density.h — where in a shard deletions lie close together in the store.
 *
 * Every deletion that a flush writes stays in the store as a tombstone until a compaction has been
 * over it, and every scan passes over it until then. Here they are counted by narrow ranges of
 * keys, as flushes write them and as scans meet those that nobody counted (after a restart), so
 * that the ranges that are worth it can be compacted alone.
 *
 * Deterministic, without a clock. It is an aid and no part of the replicated state: replicas may
 * differ, and a restart begins with nothing.
 *
 * Memory: at most KV_DENSITY_RANGES ranges; when there are more, neighbours become one.
 *
 * Threads: any; each function takes the lock for a bounded number of steps, and kv_density_passed
 * gives up instead of waiting for it. kv_density_count is for one that no other thread knows.
 */
#ifndef KV_DELETE_DENSITY_H
#define KV_DELETE_DENSITY_H

#include "base/buf.h"
#include "base/hlc.h"
#include <stdbool.h>

#define KV_DENSITY_RANGES 256u
#define KV_DENSITY_JOIN_MAX 64u /* ranges that are taken out as one */

struct kv_density;

struct kv_density_counts {
    uint64_t tombstones; /* as far as it is known, and no compaction has been over them */
    uint64_t entries;    /* rows that the same flushes wrote between them */
    uint64_t skipped;    /* how often a scan passed over one of them, as far as that is counted */
    hlc_ts newest;       /* log time of the last of them, 0 = a scan found them */
};

/* DENSE: so many tombstones in one range are worth a compaction. */
struct kv_density *kv_density_new(uint64_t dense);
void kv_density_free(struct kv_density *d); /* NULL is fine */

/* A flush writes KEY. In the order of keys, so that what it deletes in a row is one range. */
void kv_density_count(struct kv_density *d, bytes key, bool deleted, hlc_ts ts);
/* Adds what FROM has counted. */
void kv_density_add(struct kv_density *d, const struct kv_density *from);
/* A scan went from FIRST to LAST and passed over COUNT tombstones of the store. */
void kv_density_passed(struct kv_density *d, bytes first, bytes last, uint64_t count);

/* Tombstones of KEYS between two keys, both of them included; taken out of where they were. */
struct kv_density_span {
    struct obuf first, last;
    struct kv_density_counts counts;
};
void kv_density_span_init(struct kv_density_span *s);
void kv_density_span_fini(struct kv_density_span *s);

/* What FROM has counted is about to be seen in the store, and added then. */
void kv_density_expect(struct kv_density *d, const struct kv_density *from);
/* Is so much deleted in rows that a scan should look whether there is anything to be found? */
bool kv_density_much(const struct kv_density *d);

/* Takes the densest range out, and its neighbours that have a share of it, into an empty span; or
 * neighbours that are dense only together. False: there are none. */
bool kv_density_take(struct kv_density *d, struct kv_density_span *out);
/* What was taken out last is gone from the store. */
void kv_density_done(struct kv_density *d);
/* The same tombstones are still there: S comes back, and is taken again when it has twice as many.
 */
void kv_density_put_back(struct kv_density *d, const struct kv_density_span *s);
/* A compaction has been over all keys from FIRST to LAST: ranges that lie within it go. */
void kv_density_forget(struct kv_density *d, bytes first, bytes last);
void kv_density_clear(struct kv_density *d); /* the store's content is another one */

/* Ranges in the order of keys, a copy of each to FN; AT counts from 0. False: there are no more. */
struct kv_density_range {
    bytes first, last; /* in A of kv_density_at */
    struct kv_density_counts counts;
    bool dense;   /* will be taken */
    bool refused; /* was put back, and waits for more */
};
struct arena;
bool kv_density_at(struct kv_density *d, unsigned at, struct arena *a,
                   struct kv_density_range *out);
/* Of all ranges together. */
void kv_density_sum(struct kv_density *d, struct kv_density_counts *out);

#endif
