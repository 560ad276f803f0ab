/*
 * Much at once into RocksDB: files of sorted entries, taken in by one ingestion.
 *
 * Entries go into table files of load_file_bytes beside the store, so that memory does not grow
 * with their number (a file's filter and index are in memory while it is written). Of a range that
 * is replaced the store's entries are gone through as the new ones come: one that does not come is
 * deleted by a tombstone of its own (store_rocks.c, S7). The files do not overlap and may be placed
 * on the deepest level that has nothing in their range.
 *
 * Invariants
 *   L1  Nothing of the store changes before install; the ingestion is one edit of the manifest.
 *   L2  Keys of all files ascend strictly: one key is put or deleted, never both.
 *   L3  Files are synced when they are finished, the manifest by the ingestion. What was deleted
 *       in a replaced range and not flushed is flushed before: no file may reach so far that the
 *       ingestion itself does that, and a crash would bring it back.
 *
 * Threads: one pool thread at a time.
 */
#include "base/assert.h"
#include "base/buf.h"
#include "base/fault.h"
#include "kv/store_rocks_internal.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOAD_FILES_MAX 100000u

struct rocks_load {
    struct kv_store_load base;
    struct rocks_store *store;
    char *dir;
    rocksdb_envoptions_t *env_options;
    rocksdb_sstfilewriter_t *writer; /* of the file that is open, or NULL */
    unsigned files;                  /* begun */
    uint64_t written, total;         /* bytes of entries in the open file; in all */
    bool replaces;                   /* anything, at all */
    struct kv_store_iter *old;       /* over what is being replaced, or NULL */
    status old_st;                   /* of its last move */
    struct obuf to;                  /* where it ends */
};

static void path_of(const struct rocks_load *l, unsigned file, char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "%s/%06u.sst", l->dir, file);

    ASSERT(n > 0 && n < PATH_MAX);
}

static status file_open(struct rocks_load *l)
{
    char path[PATH_MAX];
    char *error = NULL;

    if (l->writer != NULL)
        return ST_OK;
    if (l->files == LOAD_FILES_MAX)
        return ST_LIMIT;
    ST_TRY(kv__rocks_room(&l->store->base, l->store->load_file_bytes));
    if (fault_point("store.rocks.load_full"))
        return ST_DISK_FULL;
    if (fault_point("store.rocks.load"))
        return ST_IO;
    path_of(l, l->files, path);
    l->writer = rocksdb_sstfilewriter_create(l->env_options, l->store->options);
    l->files++;
    l->written = 0;
    rocksdb_sstfilewriter_open(l->writer, path, &error);
    return kv__rocks_error(error, "open a file to load");
}

static status file_finish(struct rocks_load *l)
{
    char *error = NULL;

    if (l->writer == NULL)
        return ST_OK;
    rocksdb_sstfilewriter_finish(l->writer, &error);
    rocksdb_sstfilewriter_destroy(l->writer);
    l->writer = NULL;
    l->total += l->written;
    return kv__rocks_error(error, "finish a file to load");
}

/* Before each entry: a file that is full ends. */
static status advance(struct rocks_load *l)
{
    if (l->writer != NULL && l->written >= l->store->load_file_bytes)
        ST_TRY(file_finish(l));
    return file_open(l);
}

static status add_deletion(struct rocks_load *l, bytes key)
{
    char *error = NULL;

    ST_TRY(advance(l));
    rocksdb_sstfilewriter_delete(l->writer, (const char *)key.data, key.size, &error);
    l->written += key.size;
    return kv__rocks_error(error, "load a deletion");
}

static void replaced(struct rocks_load *l)
{
    kv_store_iter_free(l->old);
    l->old = NULL;
}

/* What the store has before UPTO in the range that is being replaced is deleted; what it has there
 * is left to the caller. */
static status replace_upto(struct rocks_load *l, bytes upto)
{
    bool ends = l->old != NULL && bytes_cmp(upto, bytes_make(l->to.data, l->to.size)) >= 0;

    while (l->old != NULL && l->old_st == ST_OK) {
        bytes key = kv_store_iter_key(l->old);
        int order = bytes_cmp(key, upto);

        if (order > 0)
            break;
        if (order < 0)
            ST_TRY(add_deletion(l, key));
        l->old_st = kv_store_iter_next(l->old);
    }
    if (l->old != NULL && l->old_st != ST_OK && l->old_st != ST_END)
        return l->old_st;
    if (ends)
        replaced(l);
    return ST_OK;
}

static status load_replace(struct kv_store_load *base, bytes lower, bytes upper)
{
    struct rocks_load *l = (struct rocks_load *)base;

    ST_TRY(replace_upto(l, lower));
    ASSERT(l->old == NULL);
    l->replaces = true;
    obuf_reset(&l->to);
    obuf_put(&l->to, upper.data, upper.size);
    l->old = kv_store_iter_new(&l->store->base, lower, upper, KV_TIER_BULK);
    l->old_st = kv_store_iter_seek(l->old, lower);
    return l->old_st == ST_END ? ST_OK : l->old_st;
}

static status load_put(struct kv_store_load *base, bytes key, bytes value)
{
    struct rocks_load *l = (struct rocks_load *)base;
    char *error = NULL;

    ST_TRY(replace_upto(l, key));
    ST_TRY(advance(l));
    rocksdb_sstfilewriter_put(l->writer, (const char *)key.data, key.size, (const char *)value.data,
                              value.size, &error);
    l->written += key.size + value.size;
    return kv__rocks_error(error, "load an entry");
}

static status load_delete(struct kv_store_load *base, bytes key)
{
    struct rocks_load *l = (struct rocks_load *)base;

    ST_TRY(replace_upto(l, key));
    return add_deletion(l, key);
}

static status load_seal(struct kv_store_load *base)
{
    struct rocks_load *l = (struct rocks_load *)base;

    ST_TRY(replace_upto(l, bytes_make(l->to.data, l->to.size)));
    if (fault_point("store.rocks.seal"))
        return ST_IO;
    return file_finish(l);
}

static status ingest(struct rocks_load *l, const char *const *paths)
{
    rocksdb_ingestexternalfileoptions_t *o = rocksdb_ingestexternalfileoptions_create();
    char *error = NULL;

    rocksdb_ingestexternalfileoptions_set_move_files(o, 1);
    rocksdb_ingestexternalfileoptions_set_snapshot_consistency(o, 1);
    rocksdb_ingestexternalfileoptions_set_allow_global_seqno(o, 1);
    rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(o, 1);
    rocksdb_ingest_external_file(l->store->db, paths, l->files, o, &error);
    rocksdb_ingestexternalfileoptions_destroy(o);
    return kv__rocks_error(error, "ingest");
}

static status load_install(struct kv_store_load *base)
{
    struct rocks_load *l = (struct rocks_load *)base;
    status st = kv__rocks_latched(l->store);

    ASSERT(l->writer == NULL);
    if (st == ST_OK)
        st = kv__rocks_room(&l->store->base, 0);
    if (st != ST_OK)
        return st;
    if (fault_point("store.rocks.ingest"))
        return ST_IO;
    if (l->replaces) /* L3 */
        ST_TRY(kv_store_flush(&l->store->base));
    if (l->files == 0)
        return ST_OK;
    char(*names)[PATH_MAX] = malloc(l->files * sizeof *names);
    const char **paths = malloc(l->files * sizeof *paths);
    ASSERT(names != NULL && paths != NULL);
    for (unsigned i = 0; i < l->files; i++) {
        path_of(l, i, names[i]);
        paths[i] = names[i];
    }
    st = kv__rocks_latch(l->store, ingest(l, paths));
    free(paths);
    free(names);
    return st;
}

/* What is in DIR: files of this load, or of one that a crash ended. */
static void remove_files(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    char path[PATH_MAX];

    if (d == NULL)
        return;
    while ((e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.')
            continue;
        int n = snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (n > 0 && n < (int)sizeof path)
            (void)unlink(path);
    }
    closedir(d);
}

static void load_free(struct kv_store_load *base)
{
    struct rocks_load *l = (struct rocks_load *)base;

    replaced(l);
    if (l->writer != NULL)
        rocksdb_sstfilewriter_destroy(l->writer);
    remove_files(l->dir);
    (void)rmdir(l->dir);
    rocksdb_envoptions_destroy(l->env_options);
    obuf_fini(&l->to);
    free(l->dir);
    free(l);
}

static const struct kv_store_load_ops rocks_load_ops = {
    .replace = load_replace,
    .put = load_put,
    .del = load_delete,
    .seal = load_seal,
    .install = load_install,
    .free = load_free,
};

status kv__rocks_load_new(struct kv_store *base, const char *dir, struct kv_store_load **out)
{
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return errno == ENOSPC ? ST_DISK_FULL : ST_IO;
    remove_files(dir);
    struct rocks_load *l = calloc(1, sizeof *l);
    ASSERT(l != NULL);
    l->base.ops = &rocks_load_ops;
    l->store = (struct rocks_store *)base;
    l->dir = strdup(dir);
    ASSERT(l->dir != NULL);
    l->env_options = rocksdb_envoptions_create();
    obuf_init(&l->to);
    *out = &l->base;
    return ST_OK;
}
