/*
 * Bytes from a log as commands: decode and apply them to a small namespace. Nothing may crash, a
 * refused command may change nothing, and an applied one must give the same state twice.
 *
 * The first byte chooses the kind; the body is the input's, so that it reaches operations, write
 * sets and item batches without guessing a header.
 */
#include "base/assert.h"
#include "base/rcu.h"
#include "kv/command.h"

#include <stdlib.h>

struct shard {
    struct kv_store *store;
    struct kv_state *state;
    struct arena arena;
    uint64_t index;
    hlc_ts ts;
};

static status apply(struct shard *s, void *command, size_t size)
{
    struct kv_applied applied;
    s->ts += 1u << HLC_LOGICAL_BITS;
    kv_command_stamp(command, s->ts);
    arena_reset(&s->arena);
    status st = kv_apply(s->state, s->index + 1, 1, bytes_make(command, size), KV_TIER_CACHE,
                         &s->arena, &applied);
    s->index += st == ST_OK;
    return st;
}

static void apply_op(struct shard *s, const struct kv_op *op)
{
    struct obuf out;
    obuf_init(&out);
    kv_command_ops(&out, &op, 1, (struct kv_origin){0});
    ASSERT(apply(s, out.data, out.size) == ST_OK);
    obuf_fini(&out);
}

/* A root, a directory 17 with a file, and a key: something for inputs to hit. */
static void shard_open(struct shard *s)
{
    static const struct kv_state_options options = {.shard = 1, .memtable_bytes = 1u << 20};
    static const unsigned columns[] = {META_PID, META_NAME, META_TYPE, META_ID};
    const struct kv_datum rows[] = {kv_int(0),  kv_text(BYTES_LIT("d")), kv_int('d'), kv_int(17),
                                    kv_int(17), kv_text(BYTES_LIT("a")), kv_int('f'), kv_int(1)};
    struct err err;
    *s = (struct shard){.store = kv_store_new_mem(), .ts = hlc_from_us(INT64_C(1800000000000000))};
    ASSERT(kv_state_open(s->store, &options, &s->state, &err) == ST_OK);
    arena_init(&s->arena, 4096);
    apply_op(s, &(struct kv_op){.kind = KV_OP_BOOTSTRAP, .table = KV_META, .ns = 1});
    apply_op(s, &(struct kv_op){.kind = KV_OP_INSERT,
                                .table = KV_META,
                                .ns = 1,
                                .columns = columns,
                                .column_count = 4,
                                .values = rows,
                                .row_count = 2});
}

static void shard_close(struct shard *s)
{
    kv_state_close(s->state);
    kv_store_close(s->store);
    arena_fini(&s->arena);
}

static uint64_t hash_of(struct shard *s)
{
    uint64_t h = 0;
    ASSERT(kv_state_hash(s->state, NULL, &h) == ST_OK);
    return h;
}

/* DATA as the body of a command: the header of a TICK with another kind and a recent snapshot. */
static void make_command(struct obuf *out, const struct shard *s, const uint8_t *data, size_t size)
{
    hlc_ts snapshot = s->ts;
    kv_command_tick(out);
    out->data[1] = (uint8_t)((KV_CMD_OPS + data[0] % 5) | (data[0] & 0x80)); /* may come again */
    memcpy(out->data + 10, &snapshot, sizeof snapshot);
    obuf_put(out, data + 1, size - 1);
}

static status run(const uint8_t *data, size_t size, uint64_t *hash)
{
    struct shard s;
    struct obuf out;
    shard_open(&s);
    obuf_init(&out);
    make_command(&out, &s, data, size);
    uint64_t before = hash_of(&s);
    status st = apply(&s, out.data, out.size);
    *hash = hash_of(&s);
    ASSERT(st == ST_OK || st == ST_CORRUPT);
    ASSERT(st == ST_OK || *hash == before);
    obuf_fini(&out);
    shard_close(&s);
    rcu_quiescent();
    return st;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    UNUSED(argc);
    UNUSED(argv);
    rcu_thread_register();
    rcu_online();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t first, second;
    if (size == 0)
        return 0;
    status st = run(data, size, &first);
    ASSERT(run(data, size, &second) == st);
    ASSERT(first == second);
    return 0;
}
