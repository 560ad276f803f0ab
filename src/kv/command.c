/*
 * kv/command.c — commands as bytes.
 *
 * The header has a fixed size, so that the leader can put the stamp in just before it proposes.
 * Bodies:
 *   OPS    count(v), then operations (op.c)
 *   TXN    a write set (txn.c)
 *   ITEMS  tables(1) source(8) count(v), then stamp(8) items(bytes) each, stamps ascending
 *   ACK    stamp(8)
 *   TICK   empty
 * apply.c reads them.
 */
#include "kv/command.h"
#include "base/assert.h"
#include "base/codec.h"

#define COMMAND_VERSION 1
#define STAMP_OFFSET 2
#define SINCE_OFFSET 34
#define HEADER_BYTES 42
#define KIND_AGAIN 0x80u

static void put_header(struct obuf *out, enum kv_command_kind kind, hlc_ts snapshot,
                       struct kv_origin origin)
{
    size_t start = out->size;
    put_u8(out, COMMAND_VERSION);
    put_u8(out, (uint8_t)((unsigned)kind | (origin.again ? KIND_AGAIN : 0)));
    put_u64(out, 0);
    put_u64(out, snapshot);
    put_u64(out, origin.incarnation);
    put_u64(out, origin.sequence);
    put_u64(out, origin.since);
    ASSERT(out->size - start == HEADER_BYTES);
}

void kv_command_ops(struct obuf *out, const struct kv_op *const *ops, unsigned count,
                    struct kv_origin origin)
{
    put_header(out, KV_CMD_OPS, 0, origin);
    put_varint(out, count);
    for (unsigned i = 0; i < count; i++)
        kv_op_encode(ops[i], out);
}

void kv_command_txn(struct obuf *out, const struct kv_txn *t, hlc_ts snapshot,
                    struct kv_origin origin)
{
    put_header(out, KV_CMD_TXN, snapshot, origin);
    kv_txn_encode(t, out);
}

void kv_command_items(struct obuf *out, unsigned tables, uint64_t source,
                      const struct kv_queue_record *records, unsigned count,
                      struct kv_origin origin)
{
    put_header(out, KV_CMD_ITEMS, 0, origin);
    put_u8(out, (uint8_t)tables);
    put_u64(out, source);
    put_varint(out, count);
    for (unsigned i = 0; i < count; i++) {
        put_u64(out, records[i].ts);
        put_bytes(out, records[i].items);
    }
}

void kv_command_ack(struct obuf *out, hlc_ts up_to, struct kv_origin origin)
{
    put_header(out, KV_CMD_ACK, 0, origin);
    put_u64(out, up_to);
}

void kv_command_tick(struct obuf *out)
{
    put_header(out, KV_CMD_TICK, 0, (struct kv_origin){0});
}

void kv_command_stamp(void *encoded, hlc_ts stamp)
{
    memcpy((uint8_t *)encoded + STAMP_OFFSET, &stamp, sizeof stamp);
}

void kv_command_renew(void *encoded, hlc_ts since)
{
    memcpy((uint8_t *)encoded + SINCE_OFFSET, &since, sizeof since);
}

status kv_command_decode(bytes in, struct kv_command *out)
{
    struct reader r = reader_make(in);
    unsigned version = get_u8(&r), what = get_u8(&r), kind = what & ~KIND_AGAIN;
    out->stamp = get_u64(&r);
    out->snapshot = get_u64(&r);
    out->origin.incarnation = get_u64(&r);
    out->origin.sequence = get_u64(&r);
    out->origin.since = get_u64(&r);
    out->origin.again = (what & KIND_AGAIN) != 0;
    if (r.bad || version != COMMAND_VERSION || kind < KV_CMD_OPS || kind > KV_CMD_TICK)
        return ST_CORRUPT;
    if (out->stamp > HLC_MAX || out->snapshot > HLC_MAX)
        return ST_CORRUPT;
    out->kind = (enum kv_command_kind)kind;
    out->body = get_raw(&r, (size_t)(r.end - r.next));
    return ST_OK;
}
