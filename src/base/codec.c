/*
 * base/codec.c — little-endian fields, LEB128 numbers, length-prefixed bytes.
 *
 * Invariant C1: a reader that went bad stays bad and has nothing left, so no later get can read
 * past the input or return part of a value.
 *
 * A varint has one spelling only: an encoding with a superfluous zero group or with bits above 64
 * is a violation. Two byte strings are then equal exactly when their values are, which checksums
 * and duplicate detection rely on.
 */
#include "base/codec.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fields are copied as they are");

#define VARINT_MAX_BYTES 10

struct reader reader_make(bytes src)
{
    return (struct reader){.next = src.data, .end = src.size > 0 ? src.data + src.size : src.data};
}

static void latch(struct reader *r)
{
    r->bad = true;
    r->next = r->end;
}

/* N bytes or NULL. */
static const uint8_t *take(struct reader *r, size_t n)
{
    if (UNLIKELY(r->bad || (size_t)(r->end - r->next) < n)) {
        latch(r);
        return NULL;
    }
    const uint8_t *p = r->next;
    if (n > 0)
        r->next += n;
    return p;
}

#define DEFINE_GET(name, type)                                                                     \
    type name(struct reader *r)                                                                    \
    {                                                                                              \
        type v = 0;                                                                                \
        const uint8_t *p = take(r, sizeof v);                                                      \
        if (p != NULL)                                                                             \
            memcpy(&v, p, sizeof v);                                                               \
        return v;                                                                                  \
    }
DEFINE_GET(get_u8, uint8_t)
DEFINE_GET(get_u16, uint16_t)
DEFINE_GET(get_u32, uint32_t)
DEFINE_GET(get_u64, uint64_t)

uint64_t get_varint(struct reader *r)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < VARINT_MAX_BYTES; i++) {
        const uint8_t *p = take(r, 1);
        if (p == NULL)
            return 0;
        uint8_t group = *p & 0x7F;
        bool last = (*p & 0x80) == 0;
        bool overflow = i == VARINT_MAX_BYTES - 1 && group > 1;
        bool superfluous = last && group == 0 && i > 0;
        if (overflow || superfluous)
            break;
        v |= (uint64_t)group << (7 * i);
        if (last)
            return v;
    }
    latch(r);
    return 0;
}

int64_t get_zigzag(struct reader *r)
{
    uint64_t v = get_varint(r);
    return (int64_t)((v >> 1) ^ (0 - (v & 1)));
}

bytes get_raw(struct reader *r, size_t n)
{
    const uint8_t *p = take(r, n);
    return p != NULL && n > 0 ? bytes_make(p, n) : BYTES_EMPTY;
}

bytes get_bytes(struct reader *r)
{
    uint64_t n = get_varint(r);
    if (n > (uint64_t)(r->end - r->next)) {
        latch(r);
        return BYTES_EMPTY;
    }
    return get_raw(r, (size_t)n);
}

status codec_finish(const struct reader *r)
{
    return !r->bad && r->next == r->end ? ST_OK : ST_CORRUPT;
}

void put_u8(struct obuf *o, uint8_t v)
{
    obuf_u8(o, v);
}

void put_u16(struct obuf *o, uint16_t v)
{
    obuf_put(o, &v, sizeof v);
}

void put_u32(struct obuf *o, uint32_t v)
{
    obuf_put(o, &v, sizeof v);
}

void put_u64(struct obuf *o, uint64_t v)
{
    obuf_put(o, &v, sizeof v);
}

void put_varint(struct obuf *o, uint64_t v)
{
    uint8_t *p = obuf_reserve(o, VARINT_MAX_BYTES);
    size_t n = 0;
    while (v >= 0x80) {
        p[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    p[n++] = (uint8_t)v;
    o->size += n;
}

void put_zigzag(struct obuf *o, int64_t v)
{
    put_varint(o, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

void put_bytes(struct obuf *o, bytes v)
{
    put_varint(o, v.size);
    obuf_put(o, v.data, v.size);
}
