/*
 * cluster/request.c — the codec of requests and their answers.
 *
 *   PROPOSE   shard(v) epoch(v) command(bytes)   → applied(1) log time(8) answer (kv/answer.c)
 *   SNAPSHOT  shards(v)                          → for each: index(v) stamp(8)
 *   CALL      name(bytes), for each argument a value   → rows until the end: a value per column
 *
 * A value is a byte, 1 for one that is not null, and then its text or number.
 */
#include "cluster/request.h"
#include "base/assert.h"
#include "base/codec.h"
#include "cluster/views.h"
#include "kv/answer.h"

void cl_propose_encode(const struct cl_propose *in, struct obuf *out)
{
    put_varint(out, in->shard);
    put_varint(out, in->epoch);
    put_bytes(out, in->command);
}

status cl_propose_decode(bytes in, struct cl_propose *out)
{
    struct reader r = reader_make(in);
    struct kv_command c;
    out->shard = get_varint(&r);
    out->epoch = get_varint(&r);
    out->command = get_bytes(&r);
    ST_TRY(codec_finish(&r));
    ST_TRY(kv_command_decode(out->command, &c));
    if (out->shard < 1 || out->shard > CL_SHARDS || out->command.size > LIMIT_COMMAND_BYTES ||
        !c.origin.again || (c.kind != KV_CMD_OPS && c.kind != KV_CMD_TXN))
        return ST_CORRUPT;
    out->incarnation = c.origin.incarnation;
    return ST_OK;
}

void cl_proposed_encode(bool applied, hlc_ts log_time, const struct kv_applied *answer,
                        struct obuf *out)
{
    put_u8(out, applied);
    put_u64(out, log_time);
    kv_answer_encode(answer, out);
}

status cl_proposed_decode(bytes in, struct cl_proposed *out)
{
    struct reader r = reader_make(in);
    unsigned applied = get_u8(&r);
    out->log_time = get_u64(&r);
    out->answer = get_raw(&r, (size_t)(r.end - r.next));
    out->applied = applied == 1;
    return r.bad || applied > 1 || out->log_time > HLC_MAX ? ST_CORRUPT : ST_OK;
}

void cl_snapshot_ask_encode(cl_shard_set shards, struct obuf *out)
{
    ASSERT(shards != 0 && (shards & ~CL_ALL_SHARDS) == 0);
    put_varint(out, shards);
}

status cl_snapshot_ask_decode(bytes in, cl_shard_set *out)
{
    struct reader r = reader_make(in);
    uint64_t shards = get_varint(&r);
    if (shards == 0 || (shards & ~(uint64_t)CL_ALL_SHARDS) != 0)
        return ST_CORRUPT;
    *out = (cl_shard_set)shards;
    return codec_finish(&r);
}

void cl_read_points_encode(cl_shard_set shards, const struct cl_read_point points[CL_SHARDS],
                           struct obuf *out)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if ((shards >> i & 1) == 0)
            continue;
        put_varint(out, points[i].index);
        put_u64(out, points[i].stamp);
    }
}

status cl_read_points_decode(bytes in, cl_shard_set shards, struct cl_read_point out[CL_SHARDS])
{
    struct reader r = reader_make(in);
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if ((shards >> i & 1) == 0)
            continue;
        out[i].index = get_varint(&r);
        out[i].stamp = get_u64(&r);
        if (out[i].stamp >= HLC_MAX)
            r.bad = true;
    }
    return codec_finish(&r);
}

/* -- functions --------------------------------------------------------------------------------- */

static bool is_text(enum kv_type type)
{
    return type == KV_TEXT || type == KV_BYTEA;
}

static void put_value(enum kv_type type, const struct kv_datum *v, struct obuf *out)
{
    put_u8(out, !v->null);
    if (v->null)
        return;
    if (is_text(type))
        put_bytes(out, v->b);
    else
        put_zigzag(out, v->i);
}

static struct kv_datum get_value(struct reader *r, enum kv_type type)
{
    unsigned present = get_u8(r);
    if (present > 1)
        r->bad = true;
    if (present != 1)
        return KV_NULL;
    return is_text(type) ? kv_text(get_bytes(r)) : kv_int(get_zigzag(r));
}

void cl_function_ask_encode(const struct cl_function *f, const struct kv_datum *args,
                            struct obuf *out)
{
    put_bytes(out, bytes_str(f->name));
    for (unsigned i = 0; i < f->arg_count; i++)
        put_value(f->args[i].type, &args[i], out);
}

static const struct cl_function *function_by_name(bytes name)
{
    unsigned count;
    const struct cl_function *all = cl_functions(&count);
    for (unsigned i = 0; i < count; i++) {
        if (bytes_eq(name, bytes_str(all[i].name)))
            return &all[i];
    }
    return NULL;
}

status cl_function_ask_decode(bytes in, const struct cl_function **f,
                              struct kv_datum args[CL_FUNCTION_ARGS_MAX])
{
    struct reader r = reader_make(in);
    bytes name = get_bytes(&r);
    if (r.bad)
        return ST_CORRUPT;
    *f = function_by_name(name);
    if (*f == NULL)
        return ST_UNSUPPORTED;
    ASSERT((*f)->arg_count <= CL_FUNCTION_ARGS_MAX);
    for (unsigned i = 0; i < (*f)->arg_count; i++)
        args[i] = get_value(&r, (*f)->args[i].type);
    return codec_finish(&r);
}

void cl_function_row_encode(const struct cl_function *f, const struct kv_datum *values,
                            struct obuf *out)
{
    for (unsigned i = 0; i < f->result_count; i++)
        put_value(f->result[i].type, &values[i], out);
}

void cl_function_row_decode(struct reader *in, const struct cl_function *f,
                            struct kv_datum values[CL_FUNCTION_COLUMNS_MAX])
{
    ASSERT(f->result_count <= CL_FUNCTION_COLUMNS_MAX);
    for (unsigned i = 0; i < f->result_count; i++)
        values[i] = get_value(in, f->result[i].type);
}
