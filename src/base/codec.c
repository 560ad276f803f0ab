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
DEFINE_GET(get_u16, uint16_t)
DEFINE_GET(get_u32, uint32_t)
DEFINE_GET(get_u64, uint64_t)

uint8_t codec__u8_missing(struct reader *r)
{
    latch(r);
    return 0;
}

/* Near the end of the input. */
static uint64_t varint_bytewise(struct reader *r)
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

uint64_t codec__varint_long(struct reader *r)
{
    uint64_t v;
    size_t size;
    if (r->end - r->next < VARINT_MAX_BYTES)
        return varint_bytewise(r);
    size = varint_at(r->next, &v);
    if (size == 0)
        latch(r);
    else
        r->next += size;
    return v;
}

/* Opens gaps for the continuation bits in a number of up to 56 bits. */
static uint64_t spread_groups(uint64_t v)
{
    v = (v & 0x000000000FFFFFFFu) | ((v & 0x00FFFFFFF0000000u) << 4);
    v = (v & 0x00003FFF00003FFFu) | ((v & 0x0FFFC0000FFFC000u) << 2);
    return (v & 0x007F007F007F007Fu) | ((v & 0x3F803F803F803F80u) << 1);
}

size_t codec__put_varint_long(uint8_t *p, uint64_t v)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(v);
    size_t n = 0;
    if (bits <= 56) {
        n = (bits + 6) / 7;
        uint64_t w = spread_groups(v) | (0x8080808080808080u & ((1ull << (8 * (n - 1))) - 1));
        memcpy(p, &w, sizeof w); /* room for a number's largest size is there */
        return n;
    }
    for (; v >= 0x80; v >>= 7)
        p[n++] = (uint8_t)(v | 0x80);
    p[n++] = (uint8_t)v;
    return n;
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

void put_bytes(struct obuf *o, bytes v)
{
    put_varint(o, v.size);
    obuf_put(o, v.data, v.size);
}
