/*
 * cluster/frame.c — the codec of frames and items.
 *
 * Invariants
 *   B1  cl_frame_read looks at the body only when the header is sound, and gives out only a body
 *       whose sum is right: nothing above it sees a byte that the sender did not write there.
 *   B2  Every item consumes at least one byte; a batch ends.
 */
#include "cluster/frame.h"
#include "base/assert.h"
#include "base/checksum.h"
#include "base/fault.h"

#define MAGIC 0x7062646du
#define SUMMED_BYTES 12u
/* Any odd number: consecutive frames have seeds that have nothing in common. */
#define NUMBER_STEP 0x9e3779b97f4a7c15u

struct cl_frame_seal cl_frame_seal(uint64_t connector_nonce, uint64_t acceptor_nonce,
                                   bool from_connector)
{
    uint64_t nonces[2] = {connector_nonce, acceptor_nonce};
    return (struct cl_frame_seal){
        .seed = checksum64(bytes_make(nonces, sizeof nonces), from_connector ? 1 : 2)};
}

static uint64_t seed_of(const struct cl_frame_seal *s)
{
    return s->seed + s->number * NUMBER_STEP;
}

static uint32_t header_sum(const uint8_t *header, const struct cl_frame_seal *seal)
{
    return (uint32_t)checksum64(bytes_make(header, SUMMED_BYTES), seed_of(seal));
}

void cl_frame_header(uint8_t out[CL_FRAME_HEADER_BYTES], enum cl_frame_type type, bytes body,
                     struct cl_frame_seal *seal)
{
    uint32_t magic = MAGIC, size = (uint32_t)body.size;
    ASSERT(body.size <= UINT32_MAX);
    memcpy(out, &magic, 4);
    out[4] = CL_FRAME_VERSION;
    out[5] = (uint8_t)type;
    out[6] = out[7] = 0;
    memcpy(out + 8, &size, 4);
    uint32_t sum = header_sum(out, seal);
    uint64_t body_sum = checksum64(body, seed_of(seal));
    memcpy(out + 12, &sum, 4);
    memcpy(out + 16, &body_sum, 8);
    seal->number++;
}

static const char *header_fault(const uint8_t *h, size_t body_max, const struct cl_frame_seal *seal)
{
    uint32_t magic, size, sum;
    memcpy(&magic, h, 4);
    memcpy(&size, h + 8, 4);
    memcpy(&sum, h + 12, 4);
    if (magic != MAGIC)
        return "not a frame";
    if (h[4] != CL_FRAME_VERSION)
        return "frame version";
    if (sum != header_sum(h, seal))
        return "header checksum";
    if (h[5] < CL_FRAME_HELLO || h[5] > CL_FRAME_BATCH || h[6] != 0 || h[7] != 0)
        return "frame type";
    return size > body_max ? "frame size" : NULL;
}

status cl_frame_read(bytes in, size_t body_max, struct cl_frame_seal *seal, struct cl_frame *out,
                     size_t *size, const char **why)
{
    uint32_t body_size;
    uint64_t sum;
    *size = CL_FRAME_HEADER_BYTES;
    if (in.size < CL_FRAME_HEADER_BYTES)
        return ST_PENDING;
    *why = header_fault(in.data, body_max, seal);
    if (*why != NULL)
        return ST_CORRUPT;
    memcpy(&body_size, in.data + 8, 4);
    memcpy(&sum, in.data + 16, 8);
    *size += body_size;
    if (in.size < *size)
        return ST_PENDING;
    out->type = (enum cl_frame_type)in.data[5];
    out->body = bytes_make(in.data + CL_FRAME_HEADER_BYTES, body_size);
    /* The fault is for the simulator's checks, which must notice what then comes through. */
    if (checksum64(out->body, seed_of(seal)) != sum && !fault_point("net.broken_sum")) {
        *why = "body checksum";
        return ST_CORRUPT;
    }
    seal->number++;
    return ST_OK;
}

/* -- items ------------------------------------------------------------------------------------- */

void cl_item_put(struct obuf *o, const struct cl_item *item)
{
    put_u8(o, (uint8_t)item->kind);
    switch (item->kind) {
    case CL_ITEM_MESSAGE:
        put_varint(o, item->message.group);
        put_varint(o, item->message.from);
        put_varint(o, item->message.to);
        break;
    case CL_ITEM_REQUEST:
        put_varint(o, item->request.id);
        put_varint(o, item->request.method);
        put_varint(o, item->request.patience_us);
        break;
    case CL_ITEM_ANSWER:
        put_varint(o, item->answer.id);
        put_varint(o, item->answer.st);
        break;
    case CL_ITEM_BEACON:
        put_varint(o, item->beacon.sent_us);
        put_varint(o, item->beacon.echo_us);
        put_varint(o, item->beacon.held_us);
        break;
    case CL_ITEM_CHUNK:
        put_varint(o, item->chunk.stream);
        put_varint(o, item->chunk.offset);
        put_u8(o, item->chunk.flags);
        break;
    case CL_ITEM_CREDIT:
        put_varint(o, item->credit.stream);
        put_varint(o, item->credit.bytes);
        return;
    }
    put_bytes(o, item->payload);
}

status cl_item_next(struct reader *r, struct cl_item *out)
{
    uint64_t st;
    if (r->bad)
        return ST_CORRUPT;
    if (r->next == r->end)
        return ST_END;
    uint8_t kind = get_u8(r);
    if (kind < CL_ITEM_MESSAGE || kind > CL_ITEM_CREDIT)
        return ST_CORRUPT;
    *out = (struct cl_item){.kind = (enum cl_item_kind)kind};
    switch (out->kind) {
    case CL_ITEM_MESSAGE:
        out->message.group = get_varint(r);
        out->message.from = get_varint(r);
        out->message.to = get_varint(r);
        break;
    case CL_ITEM_REQUEST:
        out->request.id = get_varint(r);
        out->request.method = get_varint(r);
        out->request.patience_us = get_varint(r);
        break;
    case CL_ITEM_ANSWER:
        out->answer.id = get_varint(r);
        st = get_varint(r);
        /* A status that a newer node knows. */
        out->answer.st = st < ST_COUNT ? (status)st : ST_INTERNAL;
        break;
    case CL_ITEM_BEACON:
        out->beacon.sent_us = get_varint(r);
        out->beacon.echo_us = get_varint(r);
        out->beacon.held_us = get_varint(r);
        break;
    case CL_ITEM_CHUNK:
        out->chunk.stream = get_varint(r);
        out->chunk.offset = get_varint(r);
        out->chunk.flags = get_u8(r);
        break;
    case CL_ITEM_CREDIT:
        out->credit.stream = get_varint(r);
        out->credit.bytes = get_varint(r);
        break;
    }
    if (out->kind != CL_ITEM_CREDIT)
        out->payload = get_bytes(r);
    return r->bad ? ST_CORRUPT : ST_OK;
}
