/*
 * raft/log_segment.c — the files of a stream: made, prepared ahead, kept for reuse.
 *
 *   NNNNNNNNNNNN.log    segment N; has a valid header from the moment it bears this name
 *   spare-NNNNNNNNNNNN  a retired segment's file, full of old bytes, waiting to become a new one
 *   reserve             a zero-filled file of one segment's size, used when the disk is full
 *   making.tmp          being zero-filled; removed at open
 *
 * Segment header, one block of 512 bytes:
 *
 *    0  u64 magic      8  u32 format    12  u32 stream   16  u64 cluster id  24  u64 store id
 *   32  u64 number    40  u64 generation                 zeros              504  u64 sum
 *
 * The way of a file: zero-filled (or taken from the spares) -> header written and synced -> renamed
 * to its number -> directory synced -> opened anew as its writer (direct, locked). So a name that a
 * power cut preserved always has its header, and a header that does not fit its name is damage. The
 * generation counts the lives of a file; it is part of every checksum's seed.
 *
 * S1  log->next, if set, is segment next_number - 1, holds no valid batch and its header is
 *     durable.
 * S2  At most one file is being filled, in steps of RAFT__FILL_STEP, so that a batch that comes in
 *     between waits for one step and not for a whole segment.
 * S3  log->full is set as soon as a next segment or the reserve cannot be made, while the segment
 *     being written still has room: what was accepted has a place, and the cut records that free
 *     old segments have one too. It is cleared when both are there again.
 *
 * Threads: the keeper, which is the log's thread; at open and close the owner.
 */
#include "raft/log_internal.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/codec.h"
#include "base/fault.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SEGMENT_MAGIC 0x676f6c6264746d6du /* "mmtdblog" in the file */
#define SEGMENT_SUM_AT (RAFT__BLOCK - 8u)
#define WIPE_CHUNK (64u * 1024u)

/* ---- header and names ---- */

uint64_t raft__segment_seed(const struct raft__identity *id)
{
    struct obuf o;
    obuf_init(&o);
    put_u64(&o, id->cluster_id);
    put_u64(&o, id->store_id);
    put_u64(&o, id->stream);
    put_u64(&o, id->number);
    put_u64(&o, id->generation);
    uint64_t seed = checksum64(bytes_make(o.data, o.size), RAFT__FORMAT);
    obuf_fini(&o);
    return seed;
}

void raft__segment_header_encode(uint8_t *block, const struct raft__identity *id)
{
    struct obuf o;
    obuf_init(&o);
    put_u64(&o, SEGMENT_MAGIC);
    put_u32(&o, id->format);
    put_u32(&o, id->stream);
    put_u64(&o, id->cluster_id);
    put_u64(&o, id->store_id);
    put_u64(&o, id->number);
    put_u64(&o, id->generation);
    memset(block, 0, RAFT__BLOCK);
    memcpy(block, o.data, o.size);
    obuf_reset(&o);
    put_u64(&o, checksum64(bytes_make(block, SEGMENT_SUM_AT), 0));
    memcpy(block + SEGMENT_SUM_AT, o.data, o.size);
    obuf_fini(&o);
}

bool raft__segment_header_decode(const uint8_t *block, struct raft__identity *out)
{
    struct reader r = reader_make(bytes_make(block, RAFT__BLOCK));
    if (get_u64(&r) != SEGMENT_MAGIC)
        return false;
    out->format = get_u32(&r);
    out->stream = get_u32(&r);
    out->cluster_id = get_u64(&r);
    out->store_id = get_u64(&r);
    out->number = get_u64(&r);
    out->generation = get_u64(&r);
    r = reader_make(bytes_make(block + SEGMENT_SUM_AT, 8));
    return get_u64(&r) == checksum64(bytes_make(block, SEGMENT_SUM_AT), 0);
}

static void path_of(char *out, const char *dir, const char *name)
{
    int n = snprintf(out, RAFT__PATH_BYTES, "%s/%s", dir, name);
    ASSERT(n > 0 && n < (int)RAFT__PATH_BYTES);
}

void raft__segment_path(char *out, const char *dir, uint64_t number)
{
    char name[64];
    snprintf(name, sizeof name, "%012" PRIu64 ".log", number);
    path_of(out, dir, name);
}

void raft__spare_path(char *out, const char *dir, uint64_t number)
{
    char name[64];
    snprintf(name, sizeof name, "spare-%012" PRIu64, number);
    path_of(out, dir, name);
}

/* PREFIX, then 12 or more digits, then SUFFIX, and nothing else. */
static bool name_parse(const char *name, const char *prefix, const char *suffix, uint64_t *number)
{
    size_t skip = strlen(prefix);
    if (strncmp(name, prefix, skip) != 0)
        return false;
    const char *digits = name + skip;
    size_t count = strspn(digits, "0123456789");
    if (count < 12 || count > 19 || strcmp(digits + count, suffix) != 0)
        return false;
    *number = strtoull(digits, NULL, 10);
    return true;
}

bool raft__segment_name(const char *name, uint64_t *number)
{
    return name_parse(name, "", ".log", number);
}

bool raft__spare_name(const char *name, uint64_t *number)
{
    return name_parse(name, "spare-", "", number);
}

struct raft__segment *raft__segment_new(uint64_t number, uint64_t generation, uint64_t seed,
                                        uint64_t size)
{
    struct raft__segment *s = calloc(1, sizeof *s);
    ASSERT(s != NULL);
    s->number = number;
    s->generation = generation;
    s->seed = seed;
    s->size = size;
    s->end = RAFT__BLOCK;
    return s;
}

void raft__segment_free(struct env *env, struct raft__segment *s)
{
    if (!s)
        return;
    if (s->file)
        env->ops->close(env, s->file);
    free(s->needs);
    free(s);
}

void raft__full_set(struct raft_log *log, bool full)
{
    pthread_mutex_lock(&log->mu);
    bool changed = log->full != full;
    log->full = full;
    log->stats.disk_full = full;
    pthread_mutex_unlock(&log->mu);
    if (changed && full)
        LOG_ERROR("raft.log_disk_full", LOG_U64("stream", log->options.stream));
    else if (changed)
        LOG_INFO("raft.log_disk_healed", LOG_U64("stream", log->options.stream));
}

/* ---- making a segment ---- */

/* What the next life of FILE counts as: one more than its header says. */
static status next_generation(struct raft_log *log, struct env_file *file, uint64_t *out)
{
    uint8_t block[RAFT__BLOCK];
    struct raft__identity old;
    size_t got;

    ST_TRY(log->env->ops->pread(log->env, file, block, sizeof block, 0, &got));
    bool known = got == sizeof block && raft__segment_header_decode(block, &old);
    *out = known ? old.generation + 1 : 1;
    return ST_OK;
}

status raft__segment_open(struct raft_log *log, uint64_t number, struct env_file **out)
{
    char path[RAFT__PATH_BYTES];
    raft__segment_path(path, log->options.dir, number);
    return log->env->ops->open(log->env, path, ENV_READ | ENV_WRITE | ENV_DIRECT | ENV_OWNED, out);
}

/* Gives FILE, which stands at PATH, the header and the name of the next segment. Owns FILE. */
static status segment_finish(struct raft_log *log, struct env_file *file, const char *path)
{
    struct env *env = log->env;
    uint8_t block[RAFT__BLOCK];
    char name[RAFT__PATH_BYTES];
    struct raft__identity id = {
        .cluster_id = log->options.cluster_id,
        .store_id = log->options.store_id,
        .stream = log->options.stream,
        .format = RAFT__FORMAT,
        .number = log->next_number,
    };
    struct env_file *writers = NULL;
    uint64_t size;
    status st;

    ST_GOTO(out, next_generation(log, file, &id.generation));
    ST_GOTO(out, env->ops->size(env, file, &size));
    raft__segment_header_encode(block, &id);
    const struct iovec iov = {block, sizeof block};
    ST_GOTO(out, env->ops->pwritev(env, file, &iov, 1, 0));
    ST_GOTO(out, env->ops->datasync(env, file));
    if (fault_point("log.segment.written"))
        ST_GOTO(out, ST_IO);
    raft__segment_path(name, log->options.dir, id.number);
    ST_GOTO(out, env->ops->rename(env, path, name));
    if (fault_point("log.segment.named"))
        ST_GOTO(out, ST_IO);
    ST_GOTO(out, env->ops->sync_dir(env, log->options.dir));
    ST_GOTO(out, raft__segment_open(log, id.number, &writers));
    log->next = raft__segment_new(id.number, id.generation, raft__segment_seed(&id), size);
    log->next->file = writers;
    log->next_number++;
out:
    env->ops->close(env, file);
    return st;
}

static void making_path(const struct raft_log *log, char *out)
{
    path_of(out, log->options.dir, "making.tmp");
}

static void reserve_path(const struct raft_log *log, char *out)
{
    path_of(out, log->options.dir, "reserve");
}

/* Gives up the file being filled and returns its space. */
static void making_drop(struct raft_log *log)
{
    char path[RAFT__PATH_BYTES];
    if (!log->making.file)
        return;
    log->env->ops->close(log->env, log->making.file);
    log->making.file = NULL;
    making_path(log, path);
    (void)log->env->ops->unlink(log->env, path);
}

/* One step of filling; *DONE when the file has its size. */
static status making_fill(struct raft_log *log, bool reserve, bool *done)
{
    struct env *env = log->env;
    char path[RAFT__PATH_BYTES];
    uint64_t size;
    status st;

    *done = false;
    if (!log->making.file) {
        making_path(log, path);
        ST_TRY(env->ops->open(env, path, ENV_READ | ENV_WRITE | ENV_CREATE, &log->making.file));
    }
    log->making.reserve = reserve;
    ST_GOTO(out, env->ops->size(env, log->making.file, &size));
    uint64_t target = size + RAFT__FILL_STEP;
    if (target > log->options.segment_bytes)
        target = log->options.segment_bytes;
    ST_GOTO(out, env->ops->zero_fill(env, log->making.file, target));
    *done = target >= log->options.segment_bytes;
    return ST_OK;
out:
    making_drop(log);
    return st;
}

static status next_from_path(struct raft_log *log, const char *path)
{
    struct env_file *file;
    ST_TRY(log->env->ops->open(log->env, path, ENV_READ | ENV_WRITE, &file));
    return segment_finish(log, file, path);
}

static status next_from_spare(struct raft_log *log)
{
    char path[RAFT__PATH_BYTES];
    ASSERT(log->spare_count > 0);
    raft__spare_path(path, log->options.dir, log->spares[--log->spare_count]);
    return next_from_path(log, path);
}

static status next_from_making(struct raft_log *log)
{
    char path[RAFT__PATH_BYTES];
    struct env_file *file = log->making.file;
    log->making.file = NULL;
    making_path(log, path);
    return segment_finish(log, file, path);
}

static status reserve_from_making(struct raft_log *log)
{
    char from[RAFT__PATH_BYTES], to[RAFT__PATH_BYTES];
    log->env->ops->close(log->env, log->making.file);
    log->making.file = NULL;
    making_path(log, from);
    reserve_path(log, to);
    ST_TRY(log->env->ops->rename(log->env, from, to));
    ST_TRY(log->env->ops->sync_dir(log->env, log->options.dir));
    log->reserve = true;
    return ST_OK;
}

static status prepare_step(struct raft_log *log)
{
    bool done;

    if (!log->next && log->spare_count > 0)
        return next_from_spare(log);
    ST_TRY(making_fill(log, log->next != NULL, &done));
    if (!done)
        return ST_OK;
    /* A file begun as one thing may be needed as the other by now; zeros are zeros. */
    return log->next ? reserve_from_making(log) : next_from_making(log);
}

status raft__segment_prepare(struct raft_log *log, bool *more)
{
    *more = false;
    log->tidy = log->next && log->reserve;
    if (!log->tidy) {
        if (fault_point("log.rotate"))
            return ST_IO;
        status st = prepare_step(log);
        if (st == ST_DISK_FULL) {
            making_drop(log);
            raft__full_set(log, true);
            return ST_OK;
        }
        ST_TRY(st);
        log->tidy = log->next && log->reserve;
    }
    if (log->tidy)
        raft__full_set(log, false);
    *more = !log->tidy;
    return ST_OK;
}

static status next_obtain(struct raft_log *log)
{
    char path[RAFT__PATH_BYTES];
    bool done = false;

    if (log->spare_count > 0)
        return next_from_spare(log);
    while (!done) {
        status st = making_fill(log, false, &done);
        if (st == ST_DISK_FULL && log->reserve) {
            raft__full_set(log, true);
            log->reserve = false;
            reserve_path(log, path);
            return next_from_path(log, path);
        }
        ST_TRY(st);
    }
    return next_from_making(log);
}

status raft__segment_force_next(struct raft_log *log, uint64_t room)
{
    uint64_t size = RAFT__BLOCK + room;

    if (fault_point("log.rotate"))
        return ST_IO;
    if (!log->next)
        ST_TRY(next_obtain(log));
    if (log->next->size < size)
        ST_TRY(raft__segment_grow(log, log->next, size));
    return ST_OK;
}

status raft__segment_grow(struct raft_log *log, struct raft__segment *s, uint64_t size)
{
    MARK("raft.log.oversized_batch");
    ST_TRY(log->env->ops->zero_fill(log->env, s->file, size));
    pthread_mutex_lock(&log->mu); /* a loop that writes may be looking at it */
    s->size = size;
    pthread_mutex_unlock(&log->mu);
    return ST_OK;
}

/* ---- the end of a segment's life ---- */

/* A segment behind the end is retired at open, and its number comes again; a spare of that number
 * may still be there, made of another file. */
static bool is_spare(const struct raft_log *log, uint64_t number)
{
    for (size_t i = 0; i < log->spare_count; i++) {
        if (log->spares[i] == number)
            return true;
    }
    return false;
}

status raft__segment_retire(struct raft_log *log, uint64_t number, uint64_t size)
{
    struct env *env = log->env;
    char from[RAFT__PATH_BYTES], to[RAFT__PATH_BYTES];

    if (fault_point("log.cut"))
        return ST_IO;
    raft__segment_path(from, log->options.dir, number);
    if (log->spare_count < RAFT__SPARES_MAX && size == log->options.segment_bytes &&
        !is_spare(log, number)) {
        raft__spare_path(to, log->options.dir, number);
        ST_TRY(env->ops->rename(env, from, to));
        log->spares[log->spare_count++] = number;
    } else {
        ST_TRY(env->ops->unlink(env, from));
    }
    if (fault_point("log.cut.renamed"))
        return ST_IO;
    /* One at a time and oldest first, so that a power cut cannot leave a hole in the numbers. */
    return env->ops->sync_dir(env, log->options.dir);
}

static bool all_zero(const uint8_t *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

status raft__segment_wipe(struct env *env, struct env_file *file, uint64_t from, uint64_t size)
{
    static const uint8_t zeros[WIPE_CHUNK];
    uint8_t *chunk = malloc(WIPE_CHUNK);
    bool dirty = false;
    status st = ST_OK;

    ASSERT(chunk != NULL);
    while (from < size) {
        size_t n = size - from < WIPE_CHUNK ? (size_t)(size - from) : WIPE_CHUNK;
        size_t got;
        ST_GOTO(out, env->ops->pread(env, file, chunk, n, from, &got));
        if (!all_zero(chunk, got)) {
            const struct iovec iov = {(void *)(uintptr_t)zeros, got};
            ST_GOTO(out, env->ops->pwritev(env, file, &iov, 1, from));
            dirty = true;
        }
        from += n;
    }
    if (dirty)
        ST_GOTO(out, env->ops->datasync(env, file));
out:
    free(chunk);
    return st;
}

/* ---- what lies in the directory at open ---- */

struct leftovers {
    uint64_t spares[RAFT__SPARES_MAX * 4];
    size_t spare_count;
    bool making, reserve;
};

static void leftovers_add(void *arg, const char *name)
{
    struct leftovers *left = arg;
    uint64_t number;

    if (strcmp(name, "making.tmp") == 0)
        left->making = true;
    else if (strcmp(name, "reserve") == 0)
        left->reserve = true;
    else if (raft__spare_name(name, &number) && left->spare_count < RAFT__SPARES_MAX * 4)
        left->spares[left->spare_count++] = number;
}

static status file_size(struct env *env, const char *path, uint64_t *out)
{
    struct env_file *file;
    ST_TRY(env->ops->open(env, path, ENV_READ, &file));
    status st = env->ops->size(env, file, out);
    env->ops->close(env, file);
    return st;
}

status raft__segment_adopt(struct raft_log *log)
{
    struct env *env = log->env;
    struct leftovers left = {0};
    char path[RAFT__PATH_BYTES];
    uint64_t size;

    ST_TRY(env->ops->list(env, log->options.dir, leftovers_add, &left));
    if (left.making) {
        making_path(log, path);
        ST_TRY(env->ops->unlink(env, path));
    }
    for (size_t i = 0; i < left.spare_count; i++) {
        raft__spare_path(path, log->options.dir, left.spares[i]);
        ST_TRY(file_size(env, path, &size));
        if (size == log->options.segment_bytes && log->spare_count < RAFT__SPARES_MAX)
            log->spares[log->spare_count++] = left.spares[i];
        else
            ST_TRY(env->ops->unlink(env, path));
    }
    if (left.reserve) {
        reserve_path(log, path);
        ST_TRY(file_size(env, path, &size));
        log->reserve = size == log->options.segment_bytes;
        if (!log->reserve)
            ST_TRY(env->ops->unlink(env, path));
    }
    return ST_OK;
}
