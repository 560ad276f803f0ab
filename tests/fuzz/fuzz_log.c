/*
 * Any bytes in a log segment, through recovery on a simulated disk.
 *
 * The input is a list of chunks: a byte of flags, two bytes of length, that many bytes. A chunk is
 * either raw bytes, or the payload of a batch that gets a correct header and correct sums for its
 * place, so that the record decoder behind them is reached. What must hold: no crash; a refused log
 * is not changed; an accepted one takes a record and opens again with all that it gave before.
 */
#include "base/assert.h"
#include "base/checksum.h"
#include "base/codec.h"
#include "base/env_sim.h"
#include "base/log.h"
#include "raft/log_internal.h"

#include <stdlib.h>

#define SEGMENT_BYTES 16384u
#define PATH "s/000000000001.log"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct raft_log_options options = {
    .dir = "s",
    .cluster_id = 1,
    .store_id = 2,
    .segment_bytes = SEGMENT_BYTES,
    .batch_bytes = 4096,
    .batch_entries = 16,
};

/* Appends one chunk at *AT of the image. */
static void chunk_place(struct reader *in, uint8_t *image, uint64_t seed, size_t *at,
                        uint64_t *sequence)
{
    uint8_t flags = get_u8(in);
    size_t room = SEGMENT_BYTES - *at;
    size_t n = get_u16(in) % 2048u;
    size_t left = (size_t)(in->end - in->next);
    bytes chunk = get_raw(in, n < left ? n : left);

    if (flags & 1) {
        size_t some = chunk.size < room ? chunk.size : room;
        if (some)
            memcpy(image + *at, chunk.data, some);
        *at += (some + RAFT__BLOCK - 1) / RAFT__BLOCK * RAFT__BLOCK;
        return;
    }
    struct raft__batch *b =
        raft__batch_new(*at == RAFT__BLOCK ? RAFT__BATCH_CHECKPOINT : 1 + (flags >> 6));
    obuf_put(&b->head, chunk.data, chunk.size);
    b->payload_bytes = chunk.size;
    b->records = (flags & 2) ? (uint32_t)(chunk.size / RAFT__RECORD_BYTES) : (flags >> 3) & 7;
    struct raft__position durable = {1, (flags & 4) ? *at : RAFT__BLOCK};
    size_t disk = (size_t)raft__batch_disk_bytes(chunk.size);
    if (disk <= room) {
        raft__batch_seal(b, seed, (struct raft__position){1, *at}, (*sequence)++, durable);
        memcpy(image + *at, b->head.data, b->head.size);
        *at += disk;
    }
    raft__batch_free(b);
}

static void image_build(const uint8_t *data, size_t size, uint8_t *image)
{
    const struct raft__identity id = {
        .cluster_id = 1, .store_id = 2, .number = 1, .generation = 1, .format = RAFT__FORMAT};
    struct reader in = reader_make(bytes_make(data, size));
    size_t at = RAFT__BLOCK;
    uint64_t sequence = 1;

    memset(image, 0, SEGMENT_BYTES);
    raft__segment_header_encode(image, &id);
    while (in.next < in.end && !in.bad && at < SEGMENT_BYTES)
        chunk_place(&in, image, raft__segment_seed(&id), &at, &sequence);
}

struct seen { /* a hash over what recovery handed over */
    uint64_t hash, count;
};

static void seen_add(struct seen *s, uint64_t group, uint64_t a, uint64_t b, bytes data)
{
    const uint64_t fields[] = {s->hash, group, a, b};
    s->hash = checksum64(data, checksum64(bytes_make(fields, sizeof fields), 0));
    s->count++;
}

static void on_hard_state(void *arg, uint64_t group, struct raft_hard_state hs)
{
    seen_add(arg, group, hs.term, hs.vote, BYTES_EMPTY);
}

static status on_entry(void *arg, uint64_t group, const struct raft_entry *e)
{
    seen_add(arg, group, e->term, e->index, e->data ? buf_bytes(e->data) : BYTES_EMPTY);
    return ST_OK;
}

static void on_cut(void *arg, uint64_t group, uint64_t index)
{
    seen_add(arg, group, 0, index, BYTES_EMPTY);
}

static status open_log(struct env *env, struct seen *seen, struct raft_log **log)
{
    const struct raft_log_recovery to = {
        .arg = seen, .on_hard_state = on_hard_state, .on_entry = on_entry, .on_cut = on_cut};
    struct err err;
    *seen = (struct seen){0};
    return raft_log_open(env, &options, &to, log, &err);
}

static void check_unchanged(struct env *env, const uint8_t *image)
{
    static uint8_t now[SEGMENT_BYTES];
    struct env_file *file;
    size_t got = 0;

    ASSERT(env->ops->open(env, PATH, ENV_READ, &file) == ST_OK);
    ASSERT(env->ops->pread(env, file, now, sizeof now, 0, &got) == ST_OK);
    env->ops->close(env, file);
    ASSERT(got == SEGMENT_BYTES);
    ASSERT(memcmp(now, image, SEGMENT_BYTES) == 0);
}

static void on_stored(void *arg, uint64_t ticket)
{
    *(uint64_t *)arg = ticket;
}

static void on_failed(void *arg, status st)
{
    UNUSED(arg);
    ASSERT(st == ST_OK);
}

static void check_goes_on(struct env *env, struct raft_log *log, const struct seen *before)
{
    uint64_t stored = 0;
    const struct raft_log_events events = {&stored, on_stored, on_failed};
    struct seen after, again;

    raft_log_start(log, NULL, &events);
    ASSERT(raft_log_hard_state(log, 1, (struct raft_hard_state){1, 1}) == ST_OK);
    ASSERT(raft_log_submit(log) == 1);
    while (raft_log_step(log))
        continue;
    ASSERT(stored == 1);
    raft_log_close(log);
    ASSERT(open_log(env, &after, &log) == ST_OK);
    ASSERT(after.count > before->count);
    raft_log_close(log);
    ASSERT(open_log(env, &again, &log) == ST_OK);
    ASSERT(again.hash == after.hash);
    raft_log_close(log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t image[SEGMENT_BYTES];
    struct env *env = env_sim_new(1);
    struct env_file *file;
    struct raft_log *log;
    struct seen seen;
    const struct iovec iov = {image, sizeof image};

    log_set_level(LOG_LEVEL_ERROR);
    image_build(data, size, image);
    ASSERT(env->ops->mkdir(env, "s") == ST_OK);
    ASSERT(env->ops->open(env, PATH, ENV_WRITE | ENV_CREATE, &file) == ST_OK);
    ASSERT(env->ops->pwritev(env, file, &iov, 1, 0) == ST_OK);
    env->ops->close(env, file);

    status st = open_log(env, &seen, &log);
    if (st == ST_OK)
        check_goes_on(env, log, &seen);
    else
        check_unchanged(env, image);
    env_sim_free(env);
    return 0;
}
