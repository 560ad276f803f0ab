/*
 * base/buf.c — reference-counted blocks and growing output buffers.
 *
 * A buf is freed by whoever drops the last reference. The decrement releases and the last one
 * acquires, so that the freeing thread sees every other thread's reads of the block as finished.
 *
 * An obuf doubles. obuf_consume moves the rest to the front; its users consume everything or a
 * large part, so that the move stays cheap.
 */
#include "base/buf.h"
#include "base/assert.h"
#include "base/memory.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define OBUF_FIRST_BYTES 512u

static NORETURN void out_of_memory(size_t n)
{
    fprintf(stderr, "metadb: out of memory (buffer of %zu bytes)\n", n);
    abort();
}

struct buf *buf_new(size_t size)
{
    ASSERT(size <= UINT32_MAX);
    struct buf *b = malloc(sizeof *b + size);
    if (b == NULL)
        out_of_memory(size);
    atomic_init(&b->refs, 1);
    b->size = (uint32_t)size;
    memory_count(MEMORY_BLOCKS, (ptrdiff_t)(sizeof *b + size));
    return b;
}

struct buf *buf_copy(bytes src)
{
    struct buf *b = buf_new(src.size);
    if (src.size > 0)
        memcpy(b->data, src.data, src.size);
    return b;
}

struct buf *buf_ref(struct buf *b)
{
    uint32_t before = atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    ASSERT(before > 0);
    return b;
}

void buf_unref(struct buf *b)
{
    if (b == NULL)
        return;
    uint32_t before = atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel);
    ASSERT(before > 0);
    if (before == 1) {
        memory_count(MEMORY_BLOCKS, -(ptrdiff_t)(sizeof *b + b->size));
        free(b);
    }
}

void obuf_init(struct obuf *o)
{
    *o = (struct obuf){0};
}

void obuf_fini(struct obuf *o)
{
    memory_count(MEMORY_BUFFERS, -(ptrdiff_t)o->capacity);
    free(o->data);
    *o = (struct obuf){0};
}

void obuf_reset(struct obuf *o)
{
    o->size = 0;
}

void obuf_shrink(struct obuf *o, size_t keep)
{
    if (o->size == 0 && o->capacity > keep)
        obuf_fini(o);
}

void obuf_extend(struct obuf *o, size_t capacity)
{
    if (capacity <= o->capacity)
        return;
    uint8_t *data = realloc(o->data, capacity);
    if (data == NULL)
        out_of_memory(capacity);
    memory_count(MEMORY_BUFFERS, (ptrdiff_t)(capacity - o->capacity));
    o->data = data;
    o->capacity = capacity;
}

uint8_t *obuf__grow(struct obuf *o, size_t n)
{
    ASSERT(n <= SIZE_MAX / 4);
    size_t capacity = o->capacity != 0 ? o->capacity : OBUF_FIRST_BYTES;
    while (capacity - o->size < n)
        capacity *= 2;
    obuf_extend(o, capacity);
    return o->data + o->size;
}

void obuf_consume(struct obuf *o, size_t n)
{
    ASSERT(n <= o->size);
    o->size -= n;
    if (n > 0 && o->size > 0)
        memmove(o->data, o->data + n, o->size);
}

void obuf_patch_be32(struct obuf *o, size_t at, uint32_t v)
{
    ASSERT(at <= o->size);
    ASSERT(o->size - at >= sizeof v);
    v = __builtin_bswap32(v);
    memcpy(o->data + at, &v, sizeof v);
}
