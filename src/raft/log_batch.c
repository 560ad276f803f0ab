/*
 * raft/log_batch.c — records, batches and their bytes.
 *
 * Batch header (56 bytes):
 *
 *    0  u32 magic         4  u32 payload bytes    8  u32 records     12  u32 kind
 *   16  u64 sequence     24  u64 durable segment 32  u64 durable offset
 *   40  u64 payload sum  48  u64 header sum
 *
 * Record (32 bytes, then `length` bytes of data):
 *
 *    0  u8 type   1  u8 kind   2  u16 zero   4  u32 length
 *    8  u64 group 16 u64 term  24 u64 index
 *
 * The header has a sum of its own, so that a header whose payload is torn still tells how far the
 * log was durable when it was written. Both sums are seeded with the segment (cluster, store,
 * stream, number, generation) and the offset: a batch is valid in its place and nowhere else, and
 * what an earlier life of a recycled file left behind is never valid. The payload's sum covers the
 * zeros behind it, so that every bit of a durable batch is checked.
 *
 * Small data is copied next to its record; large data stays in the entry's buffer until the batch
 * gets its place.
 */
#include "raft/log_internal.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/codec.h"
#include "base/limits.h"
#include "base/memory.h"

#include <endian.h>
#include <stdlib.h>

#define BATCH_MAGIC 0x6274646du /* "mdtb" in the file */
#define HEADER_SUM_AT 48u

_Static_assert(HEADER_SUM_AT + 8 == RAFT__HEADER_BYTES, "the sum ends the header");
_Static_assert(RAFT__BLOCK >= RAFT__HEADER_BYTES, "a header lies in one block");

static const uint8_t zero_block[RAFT__BLOCK];

static void store_le32(uint8_t *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof v);
}

static void store_le64(uint8_t *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof v);
}

/* Spreads the offset over all bits: neighbouring places get unrelated seeds. */
static uint64_t place_seed(uint64_t seed, uint64_t offset)
{
    return seed ^ (offset * 0x9e3779b97f4a7c15u);
}

bool raft__header_decode(const uint8_t *src, uint64_t seed, uint64_t offset,
                         struct raft__batch_header *out)
{
    struct reader r = reader_make(bytes_make(src, RAFT__HEADER_BYTES));

    if (get_u32(&r) != BATCH_MAGIC)
        return false;
    *out = (struct raft__batch_header){0};
    out->payload_bytes = get_u32(&r);
    out->record_count = get_u32(&r);
    out->kind = get_u32(&r);
    out->sequence = get_u64(&r);
    out->durable.segment = get_u64(&r);
    out->durable.offset = get_u64(&r);
    out->payload_sum = get_u64(&r);
    uint64_t sum = get_u64(&r);
    return sum == checksum64(bytes_make(src, HEADER_SUM_AT), place_seed(seed, offset));
}

bool raft__payload_valid(const struct raft__batch_header *header, bytes rest, uint64_t seed,
                         uint64_t offset)
{
    return header->payload_sum == checksum64(rest, ~place_seed(seed, offset));
}

static bool record_valid(const struct raft__record *rec, uint32_t length)
{
    switch (rec->type) {
    case RAFT__RECORD_ENTRY:
        return rec->kind >= RAFT_ENTRY_COMMAND && rec->kind <= RAFT_ENTRY_SNAPSHOT &&
               rec->index > 0;
    case RAFT__RECORD_HARD:
    case RAFT__RECORD_CUT: return length == 0;
    }
    return false;
}

status raft__records_decode(bytes payload, uint32_t count,
                            status (*fn)(void *arg, const struct raft__record *), void *arg)
{
    struct reader r = reader_make(payload);

    for (uint32_t i = 0; i < count && !r.bad; i++) {
        struct raft__record rec;
        rec.type = get_u8(&r);
        rec.kind = get_u8(&r);
        uint16_t zero = get_u16(&r);
        uint32_t length = get_u32(&r);
        rec.group = get_u64(&r);
        rec.term = get_u64(&r);
        rec.index = get_u64(&r);
        rec.data = get_raw(&r, length);
        if (r.bad || zero != 0 || !record_valid(&rec, length))
            return ST_CORRUPT;
        ST_TRY(fn(arg, &rec));
    }
    return codec_finish(&r);
}

struct raft__batch *raft__batch_new(enum raft__batch_kind kind)
{
    struct raft__batch *b = memory_new(MEMORY_LOG, sizeof *b);
    b->kind = kind;
    obuf_init(&b->head);
    memset(obuf_reserve(&b->head, RAFT__HEADER_BYTES), 0, RAFT__HEADER_BYTES);
    b->head.size = RAFT__HEADER_BYTES;
    return b;
}

void raft__batch_free(struct raft__batch *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->piece_count; i++)
        buf_unref(b->pieces[i].data);
    memory_count(MEMORY_LOG, -(ptrdiff_t)(b->piece_capacity * sizeof *b->pieces +
                                          b->note_capacity * sizeof *b->notes));
    free(b->pieces);
    free(b->notes);
    obuf_fini(&b->head);
    memory_free(MEMORY_LOG, b, sizeof *b);
}

static void add_record(struct raft__batch *b, const struct raft__record *rec, uint32_t length)
{
    uint8_t *p = obuf_reserve(&b->head, RAFT__RECORD_BYTES);
    memset(p, 0, RAFT__RECORD_BYTES);
    p[0] = (uint8_t)rec->type;
    p[1] = (uint8_t)rec->kind;
    store_le32(p + 4, length);
    store_le64(p + 8, rec->group);
    store_le64(p + 16, rec->term);
    store_le64(p + 24, rec->index);
    b->head.size += RAFT__RECORD_BYTES;
    b->payload_bytes += RAFT__RECORD_BYTES;
    b->records++;
}

static void add_note(struct raft__batch *b, struct raft__note note)
{
    if (b->note_count == b->note_capacity) {
        size_t more = b->note_capacity ? b->note_capacity : 8;
        memory_count(MEMORY_LOG, (ptrdiff_t)(more * sizeof *b->notes));
        b->note_capacity += more;
        b->notes = realloc(b->notes, b->note_capacity * sizeof *b->notes);
        ASSERT(b->notes != NULL);
    }
    b->notes[b->note_count++] = note;
}

static void add_data(struct raft__batch *b, struct buf *data)
{
    if (data->size <= RAFT__INLINE_BYTES) {
        obuf_put(&b->head, data->data, data->size);
    } else {
        if (b->piece_count == b->piece_capacity) {
            size_t more = b->piece_capacity ? b->piece_capacity : 8;
            memory_count(MEMORY_LOG, (ptrdiff_t)(more * sizeof *b->pieces));
            b->piece_capacity += more;
            b->pieces = realloc(b->pieces, b->piece_capacity * sizeof *b->pieces);
            ASSERT(b->pieces != NULL);
        }
        b->pieces[b->piece_count++] =
            (struct raft__piece){.upto = b->head.size, .data = buf_ref(data)};
    }
    b->payload_bytes += data->size;
}

void raft__batch_entries(struct raft__batch *b, uint64_t group, const struct raft_entry *entries,
                         size_t count)
{
    ASSERT(count > 0);
    for (size_t i = 0; i < count; i++) {
        const struct raft_entry *e = &entries[i];
        ASSERT(e->index == entries[0].index + i);
        ASSERT(!e->data || e->data->size <= LIMIT_COMMAND_BYTES);
        const struct raft__record rec = {.type = RAFT__RECORD_ENTRY,
                                         .kind = e->kind,
                                         .group = group,
                                         .term = e->term,
                                         .index = e->index};
        add_record(b, &rec, e->data ? e->data->size : 0);
        if (e->data)
            add_data(b, e->data);
    }
    b->entries += (uint32_t)count;
    add_note(b, (struct raft__note){.type = RAFT__RECORD_ENTRY,
                                    .group = group,
                                    .a = entries[0].index,
                                    .b = entries[count - 1].index});
}

void raft__batch_hard_state(struct raft__batch *b, uint64_t group, struct raft_hard_state hs)
{
    const struct raft__record rec = {
        .type = RAFT__RECORD_HARD, .group = group, .term = hs.term, .index = hs.vote};
    add_record(b, &rec, 0);
    add_note(b, (struct raft__note){
                    .type = RAFT__RECORD_HARD, .group = group, .a = hs.term, .b = hs.vote});
}

void raft__batch_cut(struct raft__batch *b, uint64_t group, uint64_t index)
{
    const struct raft__record rec = {.type = RAFT__RECORD_CUT, .group = group, .index = index};
    add_record(b, &rec, 0);
    add_note(b, (struct raft__note){.type = RAFT__RECORD_CUT, .group = group, .a = index});
}

static uint64_t payload_sum(const struct raft__batch *b, uint64_t seed, uint64_t offset)
{
    struct checksum_state *sum = checksum_new(~place_seed(seed, offset));
    size_t at = RAFT__HEADER_BYTES;

    for (size_t i = 0; i < b->piece_count; i++) {
        const struct raft__piece *p = &b->pieces[i];
        checksum_update(sum, bytes_make(b->head.data + at, p->upto - at));
        checksum_update(sum, buf_bytes(p->data));
        at = p->upto;
    }
    checksum_update(sum, bytes_make(b->head.data + at, b->head.size - at));
    size_t padding =
        (size_t)(raft__batch_disk_bytes(b->payload_bytes) - RAFT__HEADER_BYTES - b->payload_bytes);
    checksum_update(sum, bytes_make(zero_block, padding));
    uint64_t digest = checksum_digest(sum);
    checksum_free(sum);
    return digest;
}

void raft__batch_seal(struct raft__batch *b, uint64_t seed, struct raft__position at,
                      uint64_t sequence, struct raft__position durable)
{
    ASSERT(b->payload_bytes <= UINT32_MAX);
    ASSERT(at.offset % RAFT__BLOCK == 0);
    uint8_t *p = b->head.data;
    store_le32(p, BATCH_MAGIC);
    store_le32(p + 4, (uint32_t)b->payload_bytes);
    store_le32(p + 8, b->records);
    store_le32(p + 12, b->kind);
    store_le64(p + 16, sequence);
    store_le64(p + 24, durable.segment);
    store_le64(p + 32, durable.offset);
    store_le64(p + 40, payload_sum(b, seed, at.offset));
    store_le64(p + HEADER_SUM_AT,
               checksum64(bytes_make(p, HEADER_SUM_AT), place_seed(seed, at.offset)));
}

static uint8_t *put(uint8_t *dst, const void *src, size_t n)
{
    memcpy(dst, src, n);
    return dst + n;
}

void raft__batch_copy(const struct raft__batch *b, uint8_t *dst)
{
    uint64_t padding =
        raft__batch_disk_bytes(b->payload_bytes) - RAFT__HEADER_BYTES - b->payload_bytes;
    size_t at = 0;

    for (size_t i = 0; i < b->piece_count; i++) {
        const struct raft__piece *p = &b->pieces[i];
        dst = put(dst, b->head.data + at, p->upto - at);
        dst = put(dst, p->data->data, p->data->size);
        at = p->upto;
    }
    dst = put(dst, b->head.data + at, b->head.size - at);
    memset(dst, 0, (size_t)padding);
}
