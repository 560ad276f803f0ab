/*
 * Compaction of a part of RocksDB, what it costs, and what it did, all from the list of files.
 *
 * RocksDB compacts whole files. On level 0 files overlap each other, so one that touches the range
 * takes along all that overlap it, and of the next level what lies beside them; further down only
 * files that touch the range are read. CompactRange first flushes RocksDB's memtables if they touch
 * the range: batches are whole in them, so what is persisted stays a prefix.
 *
 * The C API has no counts of a compaction. The files that went meanwhile are taken for read, those
 * that came for written; where a flush or a compaction of RocksDB's own ends at the same time, its
 * files are among them.
 *
 * Threads: pool threads, one at a time; kv__rocks_stop_compacting from any.
 */
#include "base/assert.h"
#include "kv/store_rocks_internal.h"

#include <stdlib.h>

#define LEVELS_MAX 64

/* -- files that went and came ------------------------------------------------------------------ */

struct file {
    uint64_t number, size;
};

struct file_list {
    struct file *files;
    int count;
};

static int by_number(const void *a, const void *b)
{
    const struct file *x = a, *y = b;

    return x->number < y->number ? -1 : x->number > y->number;
}

/* The number in "/000123.sst". */
static uint64_t number_of(const char *name)
{
    while (*name != '\0' && (*name < '0' || *name > '9'))
        name++;
    return strtoull(name, NULL, 10);
}

static struct file_list files_now(const struct rocks_store *s)
{
    const rocksdb_livefiles_t *live = rocksdb_livefiles(s->db);
    struct file_list l = {.count = rocksdb_livefiles_count(live)};

    l.files = calloc((size_t)l.count + 1, sizeof *l.files);
    ASSERT(l.files != NULL);
    for (int i = 0; i < l.count; i++)
        l.files[i] = (struct file){.number = number_of(rocksdb_livefiles_name(live, i)),
                                   .size = rocksdb_livefiles_size(live, i)};
    rocksdb_livefiles_destroy(live);
    qsort(l.files, (size_t)l.count, sizeof *l.files, by_number);
    return l;
}

/* Bytes of the files in A that are not in B. */
static uint64_t only_in(const struct file_list *a, const struct file_list *b)
{
    uint64_t sum = 0;

    for (int i = 0, k = 0; i < a->count; i++) {
        while (k < b->count && b->files[k].number < a->files[i].number)
            k++;
        if (k == b->count || b->files[k].number != a->files[i].number)
            sum += a->files[i].size;
    }
    return sum;
}

void kv__rocks_compact(struct kv_store *base, bytes lower, bytes upper)
{
    struct rocks_store *s = (struct rocks_store *)base;
    struct file_list before = files_now(s), after;

    rocksdb_compact_range_opt(s->db, s->compact_options, (const char *)lower.data, lower.size,
                              (const char *)upper.data, upper.size);
    after = files_now(s);
    atomic_fetch_add_explicit(&s->compactions, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->compaction_read, only_in(&before, &after), memory_order_relaxed);
    atomic_fetch_add_explicit(&s->compaction_written, only_in(&after, &before),
                              memory_order_relaxed);
    free(before.files);
    free(after.files);
}

void kv__rocks_stop_compacting(struct kv_store *base)
{
    rocksdb_disable_manual_compaction(((struct rocks_store *)base)->db);
}

/* -- what it would cost ------------------------------------------------------------------------ */

static bytes smallest(const rocksdb_livefiles_t *l, int i)
{
    size_t size;
    const char *p = rocksdb_livefiles_smallestkey(l, i, &size);

    return bytes_make(p, size);
}

static bytes largest(const rocksdb_livefiles_t *l, int i)
{
    size_t size;
    const char *p = rocksdb_livefiles_largestkey(l, i, &size);

    return bytes_make(p, size);
}

static bool touches(const rocksdb_livefiles_t *l, int i, bytes lower, bytes upper)
{
    return bytes_cmp(smallest(l, i), upper) <= 0 && bytes_cmp(lower, largest(l, i)) <= 0;
}

/* Widens the range by the files of level 0 that touch it, and those that touch them. */
static void widen(const rocksdb_livefiles_t *l, int count, bytes *lower, bytes *upper)
{
    bool wider = true;

    while (wider) { /* at most once for each file */
        wider = false;
        for (int i = 0; i < count; i++) {
            if (rocksdb_livefiles_level(l, i) != 0 || !touches(l, i, *lower, *upper))
                continue;
            if (bytes_cmp(smallest(l, i), *lower) < 0) {
                *lower = smallest(l, i);
                wider = true;
            }
            if (bytes_cmp(*upper, largest(l, i)) < 0) {
                *upper = largest(l, i);
                wider = true;
            }
        }
    }
}

/* The first level below 0 that has files. */
static int level_behind(const rocksdb_livefiles_t *l, int count)
{
    int first = LEVELS_MAX;

    for (int i = 0; i < count; i++) {
        int level = rocksdb_livefiles_level(l, i);
        if (level > 0 && level < first)
            first = level;
    }
    return first;
}

void kv__rocks_span(struct kv_store *base, bytes lower, bytes upper, struct kv_store_span *out)
{
    struct rocks_store *s = (struct rocks_store *)base;
    const rocksdb_livefiles_t *l = rocksdb_livefiles(s->db);
    int count = rocksdb_livefiles_count(l), behind = level_behind(l, count);
    bytes wide_lower = lower, wide_upper = upper;

    widen(l, count, &wide_lower, &wide_upper);
    for (int i = 0; i < count; i++) {
        if (touches(l, i, lower, upper)) {
            out->entries += rocksdb_livefiles_entries(l, i);
            out->tombstones += rocksdb_livefiles_deletions(l, i);
        }
        bool wide = rocksdb_livefiles_level(l, i) <= behind;
        if (touches(l, i, wide ? wide_lower : lower, wide ? wide_upper : upper))
            out->bytes += rocksdb_livefiles_size(l, i);
    }
    rocksdb_livefiles_destroy(l);
}
