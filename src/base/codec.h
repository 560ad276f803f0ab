/*
 * base/codec.h — little-endian, length-checked encoding for log records, commands and rows.
 *
 * A reader latches the first violation: after it every get returns zero or empty, and
 * codec_finish tells. So a decoder reads all its fields and checks once.
 */
#ifndef BASE_CODEC_H
#define BASE_CODEC_H

#include "base/buf.h"

#define VARINT_MAX_BYTES 10

/* After a violation next == end. A decoder that finds a value wrong may set `bad` itself. */
struct reader {
    const uint8_t *next, *end;
    bool bad;
};

uint16_t get_u16(struct reader *r);
uint32_t get_u32(struct reader *r);
uint64_t get_u64(struct reader *r);
bytes get_raw(struct reader *r, size_t n);
bytes get_bytes(struct reader *r); /* varint length, then that many bytes; borrowed */
/* ST_OK if nothing was violated and all input is used, else ST_CORRUPT. */
NODISCARD status codec_finish(const struct reader *r);

void put_bytes(struct obuf *o, bytes v); /* varint length + bytes */

/* -- inline: these run several times for every column of every row ----------------------------- */

uint8_t codec__u8_missing(struct reader *r);
uint64_t codec__varint_long(struct reader *r);
size_t codec__put_varint_long(uint8_t *p, uint64_t v);

static inline struct reader reader_make(bytes src)
{
    return (struct reader){.next = src.data, .end = src.size > 0 ? src.data + src.size : src.data};
}
/* Closes the gaps that the continuation bits leave between eight groups of seven bits. */
static inline uint64_t codec__join_groups(uint64_t w)
{
    w &= 0x7F7F7F7F7F7F7F7Fu;
    w = (w & 0x007F007F007F007Fu) | ((w & 0x7F007F007F007F00u) >> 1);
    w = (w & 0x00003FFF00003FFFu) | ((w & 0x3FFF00003FFF0000u) >> 2);
    return (w & 0x000000000FFFFFFFu) | ((w & 0x0FFFFFFF00000000u) >> 4);
}
/* The number at P, where VARINT_MAX_BYTES bytes may be read, and its size; 0 if it is misspelled.
 * Numbers of up to eight bytes, timestamps among them, take one load. */
static inline size_t varint_at(const uint8_t *p, uint64_t *v)
{
    uint64_t w, last;
    memcpy(&w, p, sizeof w);
    last = ~w & 0x8080808080808080u;
    if (UNLIKELY(last == 0)) {
        bool ten = p[8] >= 0x80;
        *v = codec__join_groups(w) | (uint64_t)(p[8] & 0x7F) << 56 | (uint64_t)ten << 63;
        if (ten ? p[9] == 1 : p[8] != 0) /* no bits above 64, no last group that is zero */
            return ten ? 10 : 9;
        *v = 0;
        return 0;
    }
    last &= 0 - last;       /* the top bit of the last byte */
    w &= last | (last - 1); /* that byte and those before it */
    size_t size = (size_t)__builtin_ctzll(last) / 8 + 1;
    bool superfluous = size > 1 && w < last >> 7; /* the last group is zero */
    *v = superfluous ? 0 : codec__join_groups(w);
    return superfluous ? 0 : size;
}
static inline uint8_t get_u8(struct reader *r)
{
    return r->next != r->end ? *r->next++ : codec__u8_missing(r);
}
/* LEB128, at most 10 bytes. */
static inline uint64_t get_varint(struct reader *r)
{
    return r->next != r->end && *r->next < 0x80 ? *r->next++ : codec__varint_long(r);
}
/* Passes over a number without telling whether it is well spelled. */
static inline void skip_varint(struct reader *r)
{
    uint64_t w, last;
    if (r->end - r->next >= 8) {
        memcpy(&w, r->next, sizeof w);
        last = ~w & 0x8080808080808080u;
        if (LIKELY(last != 0)) {
            r->next += __builtin_ctzll(last) / 8 + 1;
            return;
        }
    }
    (void)get_varint(r);
}
static inline int64_t zigzag_decode(uint64_t v)
{
    return (int64_t)((v >> 1) ^ (0 - (v & 1)));
}
static inline int64_t get_zigzag(struct reader *r)
{
    return zigzag_decode(get_varint(r));
}

static inline void put_u8(struct obuf *o, uint8_t v)
{
    obuf_u8(o, v);
}
static inline void put_u16(struct obuf *o, uint16_t v)
{
    obuf_put(o, &v, sizeof v);
}
static inline void put_u32(struct obuf *o, uint32_t v)
{
    obuf_put(o, &v, sizeof v);
}
static inline void put_u64(struct obuf *o, uint64_t v)
{
    obuf_put(o, &v, sizeof v);
}
static inline void put_varint(struct obuf *o, uint64_t v)
{
    uint8_t *p = obuf_reserve(o, VARINT_MAX_BYTES);
    if (v >= 0x80) {
        o->size += codec__put_varint_long(p, v);
        return;
    }
    *p = (uint8_t)v;
    o->size++;
}
static inline void put_zigzag(struct obuf *o, int64_t v)
{
    put_varint(o, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

static inline void store_be32(uint8_t *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, 4);
}
static inline void store_be64(uint8_t *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, 8);
}
static inline uint32_t load_be32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}
static inline uint64_t load_be64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return __builtin_bswap64(v);
}

#endif
