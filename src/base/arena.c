/*
 * base/arena.c — bump allocation in growing blocks.
 *
 * Vocabulary: a *block* comes from malloc and starts with its header; the *first* block is the
 * oldest, the only one that a reset keeps; a *hook* is a callback for what the arena does not own.
 *
 *   head -> newest block -> ... -> first block -> NULL
 *           [header | used | next ... end]
 *
 * The first block is made by the first allocation, so that an idle owner costs nothing. Every
 * further block is twice the one before, up to BLOCK_MAX, or as large as the one request needs.
 *
 * Invariants
 *   A1  head is NULL exactly when next, end and held_bytes are zero.
 *   A2  head's data <= next <= end, and next is 16-byte aligned.
 *   A3  Under ASan the bytes from next to end are poisoned, and so are the bytes between the end
 *       of an allocation and the next one: a late use or an overrun by one byte is caught.
 *   A4  used_bytes is 0 only after a reset, and then head is the first block and all of it is free.
 */
#include "base/arena.h"
#include "base/assert.h"
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n) __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#define ALIGNMENT ARENA_ALIGNMENT
#define BLOCK_MIN 256u
#define BLOCK_MAX (1024u * 1024u)

struct arena_block {
    struct arena_block *older;
    size_t size; /* of data */
    _Alignas(ALIGNMENT) uint8_t data[];
};

struct arena_hook {
    struct arena_hook *older;
    void (*fn)(void *);
    void *arg;
};

void arena_init(struct arena *a, size_t first_block_bytes)
{
    *a = (struct arena){.first_block_bytes =
                            first_block_bytes < BLOCK_MIN ? BLOCK_MIN : first_block_bytes};
}

/* A hook may allocate or register another hook; the loop ends when none is left. */
static void run_hooks(struct arena *a)
{
    while (a->hooks != NULL) {
        struct arena_hook *h = a->hooks;
        a->hooks = h->older;
        h->fn(h->arg);
    }
}

static void free_block(struct arena *a, struct arena_block *b)
{
    UNPOISON(b->data, b->size);
    a->held_bytes -= sizeof *b + b->size;
    memory_count(a->use, -(ptrdiff_t)(sizeof *b + b->size));
    free(b);
}

void arena__reset(struct arena *a)
{
    run_hooks(a);
    a->used_bytes = 0;
    if (a->head == NULL)
        return;
    while (a->head->older != NULL) {
        struct arena_block *b = a->head;
        a->head = b->older;
        free_block(a, b);
    }
    a->next = a->head->data;
    a->end = a->head->data + a->head->size;
    POISON(a->next, a->head->size);
}

void arena_fini(struct arena *a)
{
    arena_reset(a);
    if (a->head != NULL)
        free_block(a, a->head);
    ASSERT_INV("A1", a->held_bytes == 0);
    a->head = NULL;
    a->next = a->end = NULL;
}

static void add_block(struct arena *a, size_t need)
{
    size_t size = a->first_block_bytes;
    if (a->head != NULL && a->head->size >= BLOCK_MAX / 2)
        size = BLOCK_MAX;
    else if (a->head != NULL)
        size = a->head->size * 2;
    if (size < need)
        size = need;
    ASSERT(size <= SIZE_MAX / 2);
    struct arena_block *b = malloc(sizeof *b + size);
    if (b == NULL) {
        fprintf(stderr, "metadb: out of memory (arena block of %zu bytes)\n", size);
        abort();
    }
    b->older = a->head;
    b->size = size;
    a->head = b;
    a->held_bytes += sizeof *b + size;
    memory_count(a->use, (ptrdiff_t)(sizeof *b + size));
    a->next = b->data;
    a->end = b->data + size;
    POISON(b->data, size);
}

void *arena__alloc(struct arena *a, size_t size)
{
    ASSERT(size <= SIZE_MAX / 4);
    ASSERT(a->first_block_bytes > 0);
    size_t step = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (step == 0)
        step = ALIGNMENT; /* distinct addresses, as malloc gives */
    if ((size_t)(a->end - a->next) < step)
        add_block(a, step);
    uint8_t *p = a->next;
    a->next += step;
    a->used_bytes += step;
    UNPOISON(p, size);
    return p;
}

void arena_trim(struct arena *a, void *p, size_t size)
{
    size_t step = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    uint8_t *next = (uint8_t *)p + (step == 0 ? ALIGNMENT : step);
    ASSERT(next <= a->next);
    a->used_bytes -= (size_t)(a->next - next);
    a->next = next;
    POISON((uint8_t *)p + size, (size_t)(a->end - ((uint8_t *)p + size)));
}

status arena_try_alloc(struct arena *a, size_t size, void **out)
{
    if (a->limit_bytes != 0 && (size > a->limit_bytes || a->used_bytes > a->limit_bytes - size)) {
        *out = NULL;
        return ST_NO_MEMORY;
    }
    *out = arena_alloc(a, size);
    return ST_OK;
}

bytes arena_copy(struct arena *a, bytes src)
{
    if (src.size == 0)
        return BYTES_EMPTY;
    uint8_t *p = arena_alloc(a, src.size);
    memcpy(p, src.data, src.size);
    return bytes_make(p, src.size);
}

char *arena_strdup(struct arena *a, bytes src)
{
    char *p = arena_alloc(a, src.size + 1);
    if (src.size > 0)
        memcpy(p, src.data, src.size);
    p[src.size] = '\0';
    return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    ASSERT(n >= 0);
    char *p = arena_alloc(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

void *arena_grow(struct arena *a, const void *items, size_t size, unsigned *capacity,
                 unsigned first)
{
    unsigned count = *capacity;
    ASSERT(first > 0 && count <= UINT_MAX / 2);
    *capacity = count > 0 ? count * 2 : first;
    void *p = arena_alloc(a, size * *capacity);
    if (count > 0)
        memcpy(p, items, size * count);
    return p;
}

void arena_on_reset(struct arena *a, void (*fn)(void *), void *arg)
{
    struct arena_hook *h = arena_alloc(a, sizeof *h);
    *h = (struct arena_hook){.older = a->hooks, .fn = fn, .arg = arg};
    a->hooks = h;
}
