/*
 * Bytes from another node as what nodes ask of each other, and as the answers. Nothing may crash,
 * and what is taken must be the same after another round trip.
 *
 * The first byte chooses the decoder.
 */
#include "base/assert.h"
#include "base/codec.h"
#include "cluster/request.h"
#include "cluster/views.h"
#include "kv/answer.h"

static void same(const struct obuf *o, bytes in)
{
    ASSERT(bytes_eq(bytes_make(o->data, o->size), in));
}

/* A varint has one spelling, and the rest is copied: equal bytes. */
static void propose(bytes in, struct obuf *o)
{
    struct cl_propose p;
    if (cl_propose_decode(in, &p) != ST_OK)
        return;
    ASSERT(p.shard >= 1 && p.shard <= CL_SHARDS);
    cl_propose_encode(&p, o);
    same(o, in);
}

static void snapshot(bytes in, struct obuf *o)
{
    cl_shard_set shards;
    if (cl_snapshot_ask_decode(in, &shards) != ST_OK)
        return;
    cl_snapshot_ask_encode(shards, o);
    same(o, in);
}

static void points(bytes in, struct obuf *o)
{
    struct cl_read_point at[CL_SHARDS];
    cl_shard_set shards = CL_ALL_SHARDS;
    if (cl_read_points_decode(in, shards, at) != ST_OK)
        return;
    cl_read_points_encode(shards, at, o);
    same(o, in);
}

static void call(bytes in, struct obuf *o)
{
    struct kv_datum args[CL_FUNCTION_ARGS_MAX];
    const struct cl_function *f;
    if (cl_function_ask_decode(in, &f, args) != ST_OK)
        return;
    cl_function_ask_encode(f, args, o);
    same(o, in);
}

static void rows(bytes in, struct obuf *o)
{
    struct kv_datum values[CL_FUNCTION_COLUMNS_MAX];
    struct reader r = reader_make(in);
    unsigned count;
    const struct cl_function *f = cl_functions(&count);
    while (r.next != r.end && !r.bad) {
        cl_function_row_decode(&r, f, values);
        if (!r.bad)
            cl_function_row_encode(f, values, o);
    }
    if (!r.bad)
        same(o, in);
}

static void answer(bytes in, struct obuf *o)
{
    struct cl_proposed p;
    struct kv_applied a, again;
    struct arena arena;
    if (cl_proposed_decode(in, &p) != ST_OK)
        return;
    arena_init(&arena, 4096);
    if (kv_answer_decode(p.answer, &arena, &a) == ST_OK) {
        kv_answer_encode(&a, o);
        ASSERT(kv_answer_decode(bytes_make(o->data, o->size), &arena, &again) == ST_OK);
        ASSERT(again.outcome == a.outcome && again.result.row_count == a.result.row_count);
    }
    arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const decoders[])(bytes in, struct obuf * o) = {propose, snapshot, points,
                                                                  call,    rows,     answer};
    struct obuf o;
    if (size == 0)
        return 0;
    obuf_init(&o);
    decoders[data[0] % ARRAY_LEN(decoders)](bytes_make(data + 1, size - 1), &o);
    obuf_fini(&o);
    return 0;
}
