/*
 * base/buf.h — two buffers.
 *
 * struct buf:  an immutable, reference-counted block: a Raft entry is one, shared by log, network
 *              and apply. Counting is atomic; contents never change after buf_new's caller filled
 *              it.
 * struct obuf: a growing output buffer with one owner (a connection's replies, a record under way).
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/status.h"

struct buf {
    _Atomic uint32_t refs;
    uint32_t size;
    uint8_t data[];
};

struct buf *buf_new(size_t size); /* one reference, contents undefined */
struct buf *buf_copy(bytes src);
struct buf *buf_ref(struct buf *b);
void buf_unref(struct buf *b); /* NULL is fine */
static inline bytes buf_bytes(const struct buf *b)
{
    return bytes_make(b->data, b->size);
}

struct obuf {
    uint8_t *data;
    size_t size, capacity;
};

void obuf_init(struct obuf *o);
void obuf_fini(struct obuf *o);
void obuf_reset(struct obuf *o);                   /* keeps the memory */
void obuf_shrink(struct obuf *o, size_t keep);     /* frees capacity above KEEP if empty */
void obuf_extend(struct obuf *o, size_t capacity); /* to no more than that, if it has less */
void obuf_consume(struct obuf *o, size_t n);       /* drop N bytes from the front */
void obuf_patch_be32(struct obuf *o, size_t at, uint32_t v);

/* -- inline: these run several times for every field of every row ------------------------------ */

uint8_t *obuf__grow(struct obuf *o, size_t n);

/* Room for N more bytes; does not advance size. */
static inline uint8_t *obuf_reserve(struct obuf *o, size_t n)
{
    return LIKELY(o->capacity - o->size >= n) ? o->data + o->size : obuf__grow(o, n);
}
static inline void obuf_put(struct obuf *o, const void *src, size_t n)
{
    if (n == 0)
        return;
    memcpy(obuf_reserve(o, n), src, n);
    o->size += n;
}
/* Integers in network order (pgwire). */
static inline void obuf_u8(struct obuf *o, uint8_t v)
{
    *obuf_reserve(o, sizeof v) = v;
    o->size += sizeof v;
}
static inline void obuf_be16(struct obuf *o, uint16_t v)
{
    v = __builtin_bswap16(v);
    memcpy(obuf_reserve(o, sizeof v), &v, sizeof v);
    o->size += sizeof v;
}
static inline void obuf_be32(struct obuf *o, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(obuf_reserve(o, sizeof v), &v, sizeof v);
    o->size += sizeof v;
}
static inline void obuf_be64(struct obuf *o, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(obuf_reserve(o, sizeof v), &v, sizeof v);
    o->size += sizeof v;
}

#endif
