/*
 * kv/store_rocks_internal.h — what the files behind the door to RocksDB share: store_rocks.c,
 * store_rocks_load.c and store_rocks_compact.c. Nobody else includes it.
 */
#ifndef KV_STORE_ROCKS_INTERNAL_H
#define KV_STORE_ROCKS_INTERNAL_H

#include "kv/store.h"

#include <rocksdb/c.h>
#include <stdatomic.h>

#define KV__TIERS 5

struct rocks_store {
    struct kv_store base;
    char *dir;
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_cache_t *cache;
    uint64_t cache_bytes;     /* const; S6 */
    uint64_t load_file_bytes; /* const */
    rocksdb_writeoptions_t *write_options;
    rocksdb_flushoptions_t *flush_options;
    rocksdb_compactoptions_t *compact_options;
    rocksdb_readoptions_t *read_options[KV__TIERS]; /* by enum kv_tier, for point reads */
    _Atomic int failed;                             /* a status; S3 */
    _Atomic bool was_full;                          /* it has met a full disk; S3 */
    _Atomic uint64_t gets, gets_cold, iters, seeks, batches, keys_written, keys_deleted, flushes;
    _Atomic uint64_t compactions, compaction_read, compaction_written;
};

/* Takes the error text that RocksDB allocated, NULL for ST_OK, and logs it. */
status kv__rocks_error(char *text, const char *what);
/* The first failure of a write or flush stays, unless the disk was full (S3). Returns ST. */
status kv__rocks_latch(struct rocks_store *s, status st);
status kv__rocks_latched(const struct rocks_store *s);
status kv__rocks_room(struct kv_store *base, uint64_t size);
void kv__rocks_compact(struct kv_store *base, bytes lower, bytes upper);
void kv__rocks_span(struct kv_store *base, bytes lower, bytes upper, struct kv_store_span *out);
void kv__rocks_stop_compacting(struct kv_store *base);
status kv__rocks_load_new(struct kv_store *base, const char *dir, struct kv_store_load **out);

#endif
