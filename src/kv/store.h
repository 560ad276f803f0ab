/*
 * kv/store.h — the persistent sorted map under the memtables, as a table of functions.
 *
 * store_rocks.c is RocksDB (one column family, WAL off); store_mem.c is a sorted map for tests.
 * Readers: any thread. Writers: pool threads. One batch is atomic; without kv_store_flush it may be
 * lost as a whole by a crash, never in part.
 */
#ifndef KV_STORE_H
#define KV_STORE_H

#include "base/arena.h"
#include "base/err.h"

enum kv_tier {
    KV_TIER_ANY,       /* may read from disk: pool threads only */
    KV_TIER_CACHE,     /* ST_COLD instead of a read from disk: reactors */
    KV_TIER_PERSISTED, /* what a crash would leave; point reads only */
    KV_TIER_BULK,      /* as ANY, for long walks: what is read displaces nothing in the cache */
    KV_TIER_QUICK,     /* as CACHE, and ST_COLD instead of a step over very many deletions */
};
static inline bool kv_tier_is_cache(enum kv_tier t)
{
    return t == KV_TIER_CACHE || t == KV_TIER_QUICK;
}

struct kv_store;
struct kv_store_iter;
struct kv_store_batch;
struct kv_store_load;
struct kv_store_change; /* NULL where nothing is kept in memory */

struct kv_store_stats {
    uint64_t gets, gets_cold, iters, seeks, batches, keys_written, keys_deleted, flushes;
    uint64_t block_cache_bytes, memtable_bytes, table_reader_bytes, files, disk_bytes;
    uint64_t compactions, compaction_read, compaction_written; /* those that were asked for */
    uint64_t entries, tombstones; /* in its files, versions that a compaction will drop included */
    uint64_t runs, run_hits, run_misses; /* kept runs */
};
/* An implementation's iterator and batch begin with these. */
struct kv_store_iter_ops {
    void (*free)(struct kv_store_iter *);
    status (*seek)(struct kv_store_iter *, bytes at_or_after);
    status (*seek_before)(struct kv_store_iter *, bytes before);
    status (*next)(struct kv_store_iter *);
    status (*prev)(struct kv_store_iter *);
    bytes (*key)(const struct kv_store_iter *);
    bytes (*value)(const struct kv_store_iter *);
};
struct kv_store_iter {
    const struct kv_store_iter_ops *ops;
    /* Tombstones passed over so far, forwards, if this is one of those that count. */
    uint64_t passed;
};
struct kv_store_batch_ops {
    void (*put)(struct kv_store_batch *, bytes key, bytes value);
    void (*del)(struct kv_store_batch *, bytes key);
    void (*free)(struct kv_store_batch *);
};
struct kv_runs_writer;
struct kv_store_batch {
    const struct kv_store_batch_ops *ops;
    struct kv_store *store; /* store.c's, both; zero when made */
    struct kv_runs_writer *writer;
};
/* An implementation's set of entries to be taken in begins with these. */
struct kv_store_load_ops {
    status (*replace)(struct kv_store_load *, bytes lower, bytes upper);
    status (*put)(struct kv_store_load *, bytes key, bytes value);
    status (*del)(struct kv_store_load *, bytes key);
    status (*seal)(struct kv_store_load *);
    status (*install)(struct kv_store_load *);
    void (*free)(struct kv_store_load *);
};
struct kv_store_load {
    const struct kv_store_load_ops *ops;
    struct kv_store *store;
};
/* What the files that touch a range of keys hold. */
struct kv_store_span {
    uint64_t bytes; /* those that a compaction of the range reads, more or less */
    uint64_t entries, tombstones;
};
struct kv_store_ops {
    void (*close)(struct kv_store *);
    status (*get)(struct kv_store *, bytes key, enum kv_tier tier, struct arena *a, bytes *out);
    struct kv_store_iter *(*iter_new)(struct kv_store *, bytes lower, bytes upper,
                                      enum kv_tier tier);
    struct kv_store_batch *(*batch_new)(struct kv_store *);
    status (*write)(struct kv_store *, struct kv_store_batch *); /* frees the batch */
    /* Everything written is persisted on return; a failure is latched. */
    status (*flush)(struct kv_store *);
    status (*room)(struct kv_store *, uint64_t size);
    status (*load_new)(struct kv_store *, const char *dir, struct kv_store_load **out);
    void (*compact)(struct kv_store *, bytes lower, bytes upper);
    /* NULL: nothing is known, nothing is to be stopped. */
    void (*span)(struct kv_store *, bytes lower, bytes upper, struct kv_store_span *);
    void (*stop_compacting)(struct kv_store *);
    void (*stats)(struct kv_store *, struct kv_store_stats *);
};
struct kv_runs;
struct kv_store {
    const struct kv_store_ops *ops;
    struct kv_runs *runs; /* NULL: none are kept */
};

struct kv_store_options {
    uint64_t block_cache_bytes;
    uint64_t write_buffer_bytes;
    uint64_t table_bytes; /* of a file, about; 0: RocksDB's own choice, 64 MB */
    unsigned background_threads;
};

NODISCARD status kv_store_open_rocks(const char *dir, const struct kv_store_options *o,
                                     struct kv_store **out, struct err *err);
struct kv_store *kv_store_new_mem(void);
/* Tests and the simulator: what a crash leaves of a store_mem, and ST_COLD for every read at
 * KV_TIER_CACHE while COLD. */
void kv_store_mem_crash(struct kv_store *s);
void kv_store_mem_set_cold(struct kv_store *s, bool cold);
void kv_store_close(struct kv_store *s); /* NULL is fine */
/* Keeps up to BYTES_MAX of what is listed in memory (kv/runs.h). Before the first reader. */
void kv_store_keep_runs(struct kv_store *s, uint64_t bytes_max);

/* ST_OK and a copy in A, ST_NOT_FOUND, ST_COLD, ST_IO, ST_CORRUPT. */
NODISCARD status kv_store_get(struct kv_store *s, bytes key, enum kv_tier tier, struct arena *a,
                              bytes *out);

/* An iterator over [lower, upper); both must be non-empty. Pins what it reads: short-lived only. */
struct kv_store_iter *kv_store_iter_new(struct kv_store *s, bytes lower, bytes upper,
                                        enum kv_tier tier);
/* The same, forward only: over kept runs, and keeping more. Each entry is as of a moment between
 * this call and the step to it, not all of them of one. */
struct kv_store_iter *kv_store_iter_new_forward(struct kv_store *s, bytes lower, bytes upper,
                                                enum kv_tier tier);
void kv_store_iter_free(struct kv_store_iter *it);
/* Each: ST_OK at an entry, ST_END, ST_COLD, ST_IO, ST_CORRUPT. */
NODISCARD status kv_store_iter_seek(struct kv_store_iter *it, bytes at_or_after);
NODISCARD status kv_store_iter_seek_before(struct kv_store_iter *it, bytes before); /* last < */
NODISCARD status kv_store_iter_next(struct kv_store_iter *it);
NODISCARD status kv_store_iter_prev(struct kv_store_iter *it);
bytes kv_store_iter_key(const struct kv_store_iter *it); /* borrowed until the next move */
bytes kv_store_iter_value(const struct kv_store_iter *it);

struct kv_store_batch *kv_store_batch_new(struct kv_store *s);
void kv_store_batch_put(struct kv_store_batch *b, bytes key, bytes value);
void kv_store_batch_delete(struct kv_store_batch *b, bytes key);
void kv_store_batch_free(struct kv_store_batch *b);
/* Frees B, also on error. */
NODISCARD status kv_store_write(struct kv_store *s, struct kv_store_batch *b);
NODISCARD status kv_store_flush(struct kv_store *s);
/* Has the disk room to write SIZE bytes and to rewrite them? ST_DISK_FULL; ST_OK if it cannot be
 * told. Asked before a flush, because a store that met a full disk takes no more writes. */
NODISCARD status kv_store_room(struct kv_store *s, uint64_t size);

/* -- taking in much at once: a sorted set of entries that is there as a whole or not at all --- */

/* Its files are in DIR, made when missing, on the file system of the store; what an earlier one
 * left there is removed. Pool threads. ST_IO, ST_DISK_FULL. */
NODISCARD status kv_store_load_new(struct kv_store *s, const char *dir, struct kv_store_load **out);
/* In the order of keys. ST_DISK_FULL, ST_IO: nothing has happened to the store. */
/* From here on all that the store holds in [LOWER, UPPER) goes, but for what is put. Nobody writes
 * there until the set is installed or freed. */
NODISCARD status kv_store_load_replace(struct kv_store_load *l, bytes lower, bytes upper);
NODISCARD status kv_store_load_put(struct kv_store_load *l, bytes key, bytes value);
NODISCARD status kv_store_load_delete(struct kv_store_load *l, bytes key);
/* Behind the last entry: the files are durable. */
NODISCARD status kv_store_load_seal(struct kv_store_load *l);
/* The store is as the set says, durably. On error it is as before, or ST_IO was latched. */
NODISCARD status kv_store_load_install(struct kv_store_load *l);
/* The same for a set whose every key has been told to W, which began before them: what is kept in
 * memory of other keys stays. Ends W. */
struct kv_store_change *kv_store_change_begin(struct kv_store *s);
void kv_store_change_key(struct kv_store_change *w, bytes key);
void kv_store_change_end(struct kv_store_change *w); /* of a set that is not installed */
NODISCARD status kv_store_load_install_told(struct kv_store_load *l, struct kv_store_change *w);
void kv_store_load_free(struct kv_store_load *l); /* removes its files; NULL is fine */

/* Compacts the files that touch [LOWER, UPPER) through all levels, beside other compactions: what
 * was deleted there and flushed is gone from the disk, and its tombstones too, once no iterator
 * pins it. What is read does not change. Pool threads; the work is that of those files. */
void kv_store_compact(struct kv_store *s, bytes lower, bytes upper);
/* What that would cost, and how many tombstones are there at most. All zero if it is not known. */
void kv_store_span(struct kv_store *s, bytes lower, bytes upper, struct kv_store_span *out);
/* Ends what compacts, soon, and no kv_store_compact does anything from now on. */
void kv_store_stop_compacting(struct kv_store *s);
void kv_store_stats(struct kv_store *s, struct kv_store_stats *out);

#endif
