/*
 * The door to RocksDB: one column family, its WAL off on every write.
 *
 * A batch is atomic inside the one column family; what a crash leaves is a prefix of the batches.
 * The Raft log is the write-ahead log: "persisted" means that kv_store_flush came back, and a read
 * at KV_TIER_PERSISTED skips RocksDB's memtables, so it shows exactly that.
 *
 * Invariants
 *   S1  Every write goes through `write_options`, which turn the WAL off.
 *   S2  Every iterator has both bounds; the memory they point to lives as long as it.
 *   S3  After a failed write or flush the store takes no more writes: RocksDB keeps its background
 *       error until it is opened again, and what was lost is known to the log alone. Reads go on.
 *       A full disk is different: RocksDB keeps its memtables, looks for space every few seconds
 *       and goes on by itself; until then its writes fail with the same text.
 *   S4  Filters and indexes are in the memory of open tables, never in the block cache, so a read
 *       at KV_TIER_CACHE is cold only for data blocks.
 *   S5  RocksDB writes no log of its own: where its assertions are compiled in, as in Debian's, one
 *       line that a full disk refuses makes the next line abort the process. What fails comes back
 *       as the text of an error and goes to our log.
 *   S6  The cache gives up what open tables take (S4 makes that grow with the number of rows),
 *       down to half of it, so that both together stay what the budget has for them.
 *   S7  There are no range tombstones, and no reader looks for any. In RocksDB 7.8 an iterator that
 *       does forgets, where a file of a level ends, that it could not read the next one
 *       (facebook/rocksdb#11782): what is cold or damaged there is passed over as if it were empty.
 *       Files of an older release that hold some are compacted before the first read.
 *
 * Threads: RocksDB is thread-safe; writers are pool threads, one flush at a time per shard.
 */
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "kv/key.h"
#include "kv/store_rocks_internal.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>

#define BLOCK_BYTES 4096u
#define LOAD_FILE_BYTES (64u << 20)
#define BOTTOM_TOO 2 /* kForce */
#define BLOOM_BITS 10.0
#define COUNTED_ONE_IN 64u
#define LAST_LEVEL_TOO 3 /* kForceOptimized: but not what the same compaction has just written */
#define QUICK_KEYS 2000u /* half a millisecond */
#define FLUSH_PAUSE_NS 2000000
#define FLUSH_PAUSES_MAX 1000u
#define LOG_NOTHING 6             /* above every level of RocksDB */
#define ROOM_BYTES_MIN (8u << 20) /* for compactions beside the flush */

struct rocks_batch {
    struct kv_store_batch base;
    struct rocks_store *store;
    rocksdb_writebatch_t *batch;
    uint64_t puts, deletes;
    uint64_t size, counted; /* of its bytes; of what a string that doubles takes for them */
};

struct rocks_iter {
    struct kv_store_iter base;
    struct rocks_store *store;
    bool counting; /* tombstones that it passes over */
    rocksdb_iterator_t *it;
    rocksdb_readoptions_t *options;
    size_t lower_size, upper_size;
    uint8_t bounds[]; /* lower, then upper; S2 */
};

static void count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static uint64_t read_counter(const _Atomic uint64_t *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The C API has no codes, only texts. */
static status error_status(const char *text)
{
    if (begins_with(text, "Result incomplete"))
        return ST_COLD;
    if (begins_with(text, "Corruption"))
        return ST_CORRUPT;
    return strstr(text, "No space left on device") != NULL ? ST_DISK_FULL : ST_IO;
}

/* Takes the error text that RocksDB allocated. */
status kv__rocks_error(char *text, const char *what)
{
    if (text == NULL)
        return ST_OK;
    status st = error_status(text);
    if (st != ST_COLD)
        LOG_ERROR("store.failed", LOG_STR("call", what), LOG_STR("error", text));
    rocksdb_free(text);
    return st;
}

/* The first failure of a write or flush stays, unless the disk was full; see S3. */
status kv__rocks_latch(struct rocks_store *s, status st)
{
    int none = ST_OK;

    if (st == ST_DISK_FULL)
        atomic_store_explicit(&s->was_full, true, memory_order_relaxed);
    else if (st != ST_OK)
        atomic_compare_exchange_strong_explicit(&s->failed, &none, (int)st, memory_order_acq_rel,
                                                memory_order_acquire);
    return st;
}

status kv__rocks_latched(const struct rocks_store *s)
{
    return (status)atomic_load_explicit(&s->failed, memory_order_acquire);
}

/* -- reading ---------------------------------------------------------------------------------- */

static void read_tier_set(rocksdb_readoptions_t *o, enum kv_tier tier)
{
    static const int tiers[KV__TIERS] = {
        [KV_TIER_ANY] = 0,       /* kReadAllTier */
        [KV_TIER_CACHE] = 1,     /* kBlockCacheTier */
        [KV_TIER_PERSISTED] = 2, /* kPersistedTier */
        [KV_TIER_BULK] = 0,      [KV_TIER_QUICK] = 1,
    };

    rocksdb_readoptions_set_read_tier(o, tiers[tier]);
    if (tier == KV_TIER_BULK)
        rocksdb_readoptions_set_fill_cache(o, 0);
    rocksdb_readoptions_set_ignore_range_deletions(o, 1); /* S7 */
    if (tier == KV_TIER_QUICK) /* more than that are "Result incomplete", as a cold block is */
        rocksdb_readoptions_set_max_skippable_internal_keys(o, QUICK_KEYS);
}

static status rocks_get(struct kv_store *base, bytes key, enum kv_tier tier, struct arena *a,
                        bytes *out)
{
    struct rocks_store *s = (struct rocks_store *)base;
    rocksdb_pinnableslice_t *slice;
    char *error = NULL;
    const char *data;
    size_t size;
    status st;

    count(&s->gets, 1);
    slice =
        rocksdb_get_pinned(s->db, s->read_options[tier], (const char *)key.data, key.size, &error);
    if (error != NULL) {
        st = kv__rocks_error(error, "get");
        if (st == ST_COLD)
            count(&s->gets_cold, 1);
        return st;
    }
    if (slice == NULL)
        return ST_NOT_FOUND;
    data = rocksdb_pinnableslice_value(slice, &size);
    *out = arena_copy(a, bytes_make(data, size));
    rocksdb_pinnableslice_destroy(slice);
    return ST_OK;
}

static void rocks_iter_free(struct kv_store_iter *base)
{
    struct rocks_iter *it = (struct rocks_iter *)base;

    rocksdb_iter_destroy(it->it);
    rocksdb_readoptions_destroy(it->options);
    free(it);
}

static status iter_state(const struct rocks_iter *it)
{
    char *error = NULL;

    if (rocksdb_iter_valid(it->it))
        return ST_OK;
    rocksdb_iter_get_error(it->it, &error);
    return error != NULL ? kv__rocks_error(error, "iterate") : ST_END;
}

/* RocksDB counts by thread. Counting costs a step a tenth and a seek some calls, so it is on in one
 * iterator of COUNTED_ONE_IN. */
static uint64_t skipped_here(void)
{
    rocksdb_perfcontext_t *c = rocksdb_perfcontext_create();
    uint64_t n = rocksdb_perfcontext_metric(c, rocksdb_internal_delete_skipped_count);

    rocksdb_perfcontext_destroy(c);
    return n;
}

static uint64_t counting_begin(void)
{
    rocksdb_set_perf_level(rocksdb_enable_count);
    return skipped_here();
}

static void counting_end(struct rocks_iter *it, uint64_t before)
{
    it->base.passed += skipped_here() - before;
    rocksdb_set_perf_level(rocksdb_disable);
}

static status rocks_iter_seek(struct kv_store_iter *base, bytes key)
{
    struct rocks_iter *it = (struct rocks_iter *)base;
    uint64_t before = it->counting ? counting_begin() : 0;

    count(&it->store->seeks, 1);
    rocksdb_iter_seek(it->it, (const char *)key.data, key.size);
    if (it->counting)
        counting_end(it, before);
    return iter_state(it);
}

static status rocks_iter_seek_before(struct kv_store_iter *base, bytes before)
{
    struct rocks_iter *it = (struct rocks_iter *)base;
    bytes upper = bytes_make(it->bounds + it->lower_size, it->upper_size);
    size_t size;
    const char *key;

    if (bytes_cmp(before, upper) >= 0)
        before = upper;
    count(&it->store->seeks, 1);
    rocksdb_iter_seek_for_prev(it->it, (const char *)before.data, before.size);
    if (!rocksdb_iter_valid(it->it))
        return iter_state(it);
    key = rocksdb_iter_key(it->it, &size);
    if (bytes_eq(bytes_make(key, size), before))
        rocksdb_iter_prev(it->it);
    return iter_state(it);
}

static status rocks_iter_next(struct kv_store_iter *base)
{
    struct rocks_iter *it = (struct rocks_iter *)base;
    uint64_t before = it->counting ? counting_begin() : 0;

    rocksdb_iter_next(it->it);
    if (it->counting)
        counting_end(it, before);
    return iter_state(it);
}

static status rocks_iter_prev(struct kv_store_iter *base)
{
    struct rocks_iter *it = (struct rocks_iter *)base;

    rocksdb_iter_prev(it->it);
    return iter_state(it);
}

static bytes rocks_iter_key(const struct kv_store_iter *base)
{
    size_t size;
    const char *p = rocksdb_iter_key(((const struct rocks_iter *)base)->it, &size);

    return bytes_make(p, size);
}

static bytes rocks_iter_value(const struct kv_store_iter *base)
{
    size_t size;
    const char *p = rocksdb_iter_value(((const struct rocks_iter *)base)->it, &size);

    return bytes_make(p, size);
}

static const struct kv_store_iter_ops rocks_iter_ops = {
    .free = rocks_iter_free,
    .seek = rocks_iter_seek,
    .seek_before = rocks_iter_seek_before,
    .next = rocks_iter_next,
    .prev = rocks_iter_prev,
    .key = rocks_iter_key,
    .value = rocks_iter_value,
};

static struct kv_store_iter *rocks_iter_new(struct kv_store *base, bytes lower, bytes upper,
                                            enum kv_tier tier)
{
    struct rocks_store *s = (struct rocks_store *)base;
    struct rocks_iter *it = malloc(sizeof *it + lower.size + upper.size);

    ASSERT(it != NULL);
    it->base.ops = &rocks_iter_ops;
    it->base.passed = 0;
    it->store = s;
    it->counting = read_counter(&s->iters) % COUNTED_ONE_IN == 0;
    it->lower_size = lower.size;
    it->upper_size = upper.size;
    memcpy(it->bounds, lower.data, lower.size);
    memcpy(it->bounds + lower.size, upper.data, upper.size);
    it->options = rocksdb_readoptions_create();
    read_tier_set(it->options, tier);
    rocksdb_readoptions_set_iterate_lower_bound(it->options, (const char *)it->bounds, lower.size);
    rocksdb_readoptions_set_iterate_upper_bound(it->options, (const char *)it->bounds + lower.size,
                                                upper.size);
    rocksdb_set_perf_level(rocksdb_disable); /* of this thread; counting costs a step a tenth */
    it->it = rocksdb_create_iterator(s->db, it->options);
    count(&s->iters, 1);
    return &it->base;
}

/* -- writing ---------------------------------------------------------------------------------- */

#define RECORD_BYTES 11u /* tag and two lengths, at most */

static void batch_grow(struct rocks_batch *b, size_t more)
{
    uint64_t was = b->counted;

    b->size += more + RECORD_BYTES;
    while (b->counted < b->size)
        b->counted = b->counted > 0 ? 2 * b->counted : 4096;
    if (b->counted != was)
        memory_count(MEMORY_FLUSHES, (ptrdiff_t)(b->counted - was));
}

static void rocks_batch_put(struct kv_store_batch *base, bytes key, bytes value)
{
    struct rocks_batch *b = (struct rocks_batch *)base;

    rocksdb_writebatch_put(b->batch, (const char *)key.data, key.size, (const char *)value.data,
                           value.size);
    batch_grow(b, key.size + value.size);
    b->puts++;
}

static void rocks_batch_delete(struct kv_store_batch *base, bytes key)
{
    struct rocks_batch *b = (struct rocks_batch *)base;

    rocksdb_writebatch_delete(b->batch, (const char *)key.data, key.size);
    batch_grow(b, key.size);
    b->deletes++;
}

static void rocks_batch_free(struct kv_store_batch *base)
{
    struct rocks_batch *b = (struct rocks_batch *)base;

    memory_count(MEMORY_FLUSHES, -(ptrdiff_t)b->counted);
    rocksdb_writebatch_destroy(b->batch);
    free(b);
}

static const struct kv_store_batch_ops rocks_batch_ops = {
    .put = rocks_batch_put,
    .del = rocks_batch_delete,
    .free = rocks_batch_free,
};

static struct kv_store_batch *rocks_batch_new(struct kv_store *base)
{
    struct rocks_batch *b = calloc(1, sizeof *b);

    ASSERT(b != NULL);
    b->base.ops = &rocks_batch_ops;
    b->store = (struct rocks_store *)base;
    b->batch = rocksdb_writebatch_create();
    return &b->base;
}

static status rocks_write(struct kv_store *base, struct kv_store_batch *batch)
{
    struct rocks_store *s = (struct rocks_store *)base;
    struct rocks_batch *b = (struct rocks_batch *)batch;
    status st = kv__rocks_latched(s);
    char *error = NULL;

    if (st == ST_OK && fault_point("store.rocks.write"))
        st = kv__rocks_latch(s, ST_IO);
    if (st == ST_OK) {
        rocksdb_write(s->db, s->write_options, b->batch, &error);
        st = kv__rocks_latch(s, kv__rocks_error(error, "write"));
    }
    if (st == ST_OK) {
        count(&s->batches, 1);
        count(&s->keys_written, b->puts);
        count(&s->keys_deleted, b->deletes);
    }
    rocks_batch_free(batch);
    return st;
}

static uint64_t property(const struct rocks_store *s, const char *name)
{
    uint64_t v = 0;

    return rocksdb_property_int(s->db, name, &v) == 0 ? v : 0;
}

/* Once an attempt to go on after a full disk has failed, RocksDB 7.8 returns from a flush without
 * waiting for it, also when later attempts succeed. Who asked checks what is persisted; this only
 * gives the flush the time that it takes. */
static void wait_for_memtables(const struct rocks_store *s)
{
    const struct timespec pause = {.tv_nsec = FLUSH_PAUSE_NS};

    for (unsigned i = 0; i < FLUSH_PAUSES_MAX; i++) {
        if (property(s, "rocksdb.num-immutable-mem-table") == 0)
            return;
        nanosleep(&pause, NULL);
    }
}

/* S6 */
static void cache_share(struct rocks_store *s)
{
    uint64_t tables = property(s, "rocksdb.estimate-table-readers-mem");
    uint64_t rest = s->cache_bytes / 2;

    if (tables < rest)
        rest = s->cache_bytes - tables;
    rocksdb_cache_set_capacity(s->cache, rest);
}

static status rocks_flush(struct kv_store *base)
{
    struct rocks_store *s = (struct rocks_store *)base;
    char *error = NULL;

    ST_TRY(kv__rocks_latched(s));
    if (fault_point("store.rocks.flush"))
        return kv__rocks_latch(s, ST_IO);
    rocksdb_flush(s->db, s->flush_options, &error);
    count(&s->flushes, 1);
    ST_TRY(kv__rocks_latch(s, kv__rocks_error(error, "flush")));
    cache_share(s);
    if (atomic_load_explicit(&s->was_full, memory_order_relaxed))
        wait_for_memtables(s);
    return ST_OK;
}

status kv__rocks_room(struct kv_store *base, uint64_t size)
{
    struct rocks_store *s = (struct rocks_store *)base;
    struct statvfs fs;

    if (fault_point("store.rocks.room"))
        return ST_DISK_FULL;
    if (statvfs(s->dir, &fs) != 0)
        return ST_OK;
    uint64_t available = (uint64_t)fs.f_bavail * fs.f_frsize;
    return available < 2 * size + ROOM_BYTES_MIN ? ST_DISK_FULL : ST_OK;
}

/* -- statistics, opening and closing ---------------------------------------------------------- */

static void rocks_stats(struct kv_store *base, struct kv_store_stats *out)
{
    struct rocks_store *s = (struct rocks_store *)base;
    const rocksdb_livefiles_t *files = rocksdb_livefiles(s->db);

    *out = (struct kv_store_stats){
        .gets = read_counter(&s->gets),
        .gets_cold = read_counter(&s->gets_cold),
        .iters = read_counter(&s->iters),
        .seeks = read_counter(&s->seeks),
        .batches = read_counter(&s->batches),
        .keys_written = read_counter(&s->keys_written),
        .keys_deleted = read_counter(&s->keys_deleted),
        .flushes = read_counter(&s->flushes),
        .compactions = read_counter(&s->compactions),
        .compaction_read = read_counter(&s->compaction_read),
        .compaction_written = read_counter(&s->compaction_written),
        .block_cache_bytes = rocksdb_cache_get_usage(s->cache),
        .memtable_bytes = property(s, "rocksdb.size-all-mem-tables"),
        .table_reader_bytes = property(s, "rocksdb.estimate-table-readers-mem"),
        .files = (uint64_t)rocksdb_livefiles_count(files),
        .disk_bytes = property(s, "rocksdb.total-sst-files-size"),
    };
    for (int i = 0; i < rocksdb_livefiles_count(files); i++) {
        out->entries += rocksdb_livefiles_entries(files, i);
        out->tombstones += rocksdb_livefiles_deletions(files, i);
    }
    rocksdb_livefiles_destroy(files);
}

static void rocks_close(struct kv_store *base)
{
    struct rocks_store *s = (struct rocks_store *)base;

    if (s->db != NULL)
        rocksdb_close(s->db);
    for (int t = 0; t < KV__TIERS; t++)
        if (s->read_options[t] != NULL)
            rocksdb_readoptions_destroy(s->read_options[t]);
    rocksdb_writeoptions_destroy(s->write_options);
    rocksdb_flushoptions_destroy(s->flush_options);
    rocksdb_compactoptions_destroy(s->compact_options);
    rocksdb_options_destroy(s->options);
    rocksdb_cache_destroy(s->cache);
    free(s->dir);
    free(s);
}

static const struct kv_store_ops rocks_ops = {
    .close = rocks_close,
    .get = rocks_get,
    .iter_new = rocks_iter_new,
    .batch_new = rocks_batch_new,
    .write = rocks_write,
    .flush = rocks_flush,
    .room = kv__rocks_room,
    .load_new = kv__rocks_load_new,
    .compact = kv__rocks_compact,
    .span = kv__rocks_span,
    .stop_compacting = kv__rocks_stop_compacting,
    .stats = rocks_stats,
};

/* Half of what the process may open, after raising its soft limit: connections need the rest. */
static int open_files_max(void)
{
    struct rlimit limit;
    rlim_t half;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 256;
    if (limit.rlim_cur < limit.rlim_max) {
        rlim_t before = limit.rlim_cur;

        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            limit.rlim_cur = before;
    }
    half = limit.rlim_cur / 2;
    if (half < 64)
        return 64;
    return half < 1000000 ? (int)half : 1000000;
}

static void table_options_set(struct rocks_store *s)
{
    rocksdb_block_based_table_options_t *t = rocksdb_block_based_options_create();

    rocksdb_block_based_options_set_block_size(t, BLOCK_BYTES);
    rocksdb_block_based_options_set_block_cache(t, s->cache);
    rocksdb_block_based_options_set_filter_policy(
        t, rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS));
    rocksdb_block_based_options_set_whole_key_filtering(t, 1);
    rocksdb_block_based_options_set_format_version(t, 5);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(t, 0); /* S4 */
    rocksdb_options_set_block_based_table_factory(s->options, t);
    rocksdb_block_based_options_destroy(t);
}

/* What has no setter in the C API goes through RocksDB's own option strings. */
static status options_from_text(struct rocks_store *s, const char *text)
{
    rocksdb_options_t *more = rocksdb_options_create();
    char *error = NULL;

    rocksdb_get_options_from_string(s->options, text, more, &error);
    if (error != NULL) {
        rocksdb_options_destroy(more);
        return kv__rocks_error(error, "options");
    }
    rocksdb_options_destroy(s->options);
    s->options = more;
    return ST_OK;
}

static status options_make(struct rocks_store *s, const struct kv_store_options *o)
{
    int threads = o->background_threads > 0 ? (int)o->background_threads : 2;
    rocksdb_env_t *env = rocksdb_create_default_env();

    rocksdb_env_set_background_threads(env, threads);
    rocksdb_env_set_high_priority_background_threads(env, 1);
    s->options = rocksdb_options_create();
    rocksdb_options_set_env(s->options, env);
    rocksdb_env_destroy(env); /* the default environment itself lives on */
    rocksdb_options_set_create_if_missing(s->options, 1);
    rocksdb_options_set_paranoid_checks(s->options, 1);
    rocksdb_options_set_max_open_files(s->options, open_files_max());
    rocksdb_options_set_max_background_jobs(s->options, threads + 1);
    rocksdb_options_set_write_buffer_size(s->options, o->write_buffer_bytes);
    rocksdb_options_set_max_write_buffer_number(s->options, 4);
    if (o->table_bytes > 0) {
        rocksdb_options_set_target_file_size_base(s->options, o->table_bytes);
        rocksdb_options_set_max_bytes_for_level_base(s->options, 4 * o->table_bytes);
    }
    rocksdb_options_set_compression(s->options, rocksdb_lz4_compression);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(s->options, 1);
    rocksdb_options_set_stats_dump_period_sec(s->options, 0);
    rocksdb_options_set_info_log_level(s->options, LOG_NOTHING); /* S5 */
    rocksdb_options_set_keep_log_file_num(s->options, 2);
    table_options_set(s);
    /* What is flushed is also put into the block cache: who wrote it asks for it soon, and each
     * block that is not there costs a reactor's read the trip to a pool thread. */
    return options_from_text(s, "avoid_flush_during_shutdown=true;stats_persist_period_sec=0;"
                                "manifest_preallocation_size=65536;"
                                "block_based_table_factory={prepopulate_block_cache=kFlushOnly}");
}

static uint64_t range_tombstones(struct rocks_store *s)
{
    static const char name[] = "# range deletions=";
    char *all = rocksdb_property_value(s->db, "rocksdb.aggregated-table-properties");
    const char *at = all != NULL ? strstr(all, name) : NULL;
    uint64_t n = at != NULL ? strtoull(at + strlen(name), NULL, 10) : UINT64_MAX;

    rocksdb_free(all);
    return n;
}

/* S7 */
static status no_range_tombstones(struct rocks_store *s)
{
    uint64_t n = range_tombstones(s);

    if (n == 0)
        return ST_OK;
    LOG_INFO("store.range_tombstones", LOG_U64("count", n));
    rocksdb_compactoptions_t *o = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(o, BOTTOM_TOO);
    rocksdb_compact_range_opt(s->db, o, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(o);
    return range_tombstones(s) == 0 ? ST_OK : ST_CORRUPT;
}

status kv_store_open_rocks(const char *dir, const struct kv_store_options *o, struct kv_store **out,
                           struct err *err)
{
    struct rocks_store *s = calloc(1, sizeof *s);
    char *error = NULL;
    status st;

    ASSERT(s != NULL);
    s->base.ops = &rocks_ops;
    s->dir = strdup(dir);
    ASSERT(s->dir != NULL);
    s->cache = rocksdb_cache_create_lru(o->block_cache_bytes);
    s->cache_bytes = o->block_cache_bytes;
    s->load_file_bytes = o->table_bytes > 0 ? o->table_bytes : LOAD_FILE_BYTES;
    s->write_options = rocksdb_writeoptions_create();
    rocksdb_writeoptions_disable_WAL(s->write_options, 1); /* S1 */
    s->flush_options = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(s->flush_options, 1);
    s->compact_options = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_exclusive_manual_compaction(s->compact_options, 0);
    rocksdb_compactoptions_set_bottommost_level_compaction(s->compact_options, LAST_LEVEL_TOO);
    for (int t = 0; t < KV__TIERS; t++) {
        s->read_options[t] = rocksdb_readoptions_create();
        read_tier_set(s->read_options[t], (enum kv_tier)t);
    }
    st = options_make(s, o);
    if (st == ST_OK) {
        s->db = rocksdb_open(s->options, dir, &error);
        if (error != NULL) {
            st = error_status(error);
            err_set(err, st, "could not open the store in \"%s\": %s", dir, error);
            (void)kv__rocks_error(error, "open");
        }
    }
    if (st == ST_OK)
        st = no_range_tombstones(s);
    if (st == ST_OK)
        cache_share(s);
    if (st != ST_OK) {
        err_default(err, st);
        rocks_close(&s->base);
        return st;
    }
    *out = &s->base;
    return ST_OK;
}
