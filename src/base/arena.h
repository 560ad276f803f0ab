/*
 * base/arena.h — memory by lifetime: allocate many times, release once.
 *
 * Blocks grow geometrically; reset keeps the first block. Not thread-safe: one owner at a time.
 * Under ASan a reset poisons what it released, so that a late use is caught.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "base/status.h"

struct arena_block;
struct arena_hook;

/* Embedded in its owner; zero bytes is not a valid arena, call arena_init. */
struct arena {
    struct arena_block *head; /* newest block first */
    struct arena_hook *hooks; /* run newest first at reset and fini */
    uint8_t *next, *end;      /* free part of the newest block */
    size_t used_bytes;        /* handed out since the last reset */
    size_t held_bytes;        /* taken from malloc */
    size_t limit_bytes;       /* for arena_try_alloc; 0 = no limit */
    size_t first_block_bytes;
    enum memory_use use; /* under which its blocks are counted; may be set while it has none */
};

void arena_init(struct arena *a, size_t first_block_bytes);
void arena_fini(struct arena *a); /* runs hooks, frees everything; a zeroed arena is fine */
void arena__reset(struct arena *a);
/* Runs hooks newest first, keeps the first block, gives the rest back. */
static inline void arena_reset(struct arena *a)
{
    if (a->used_bytes != 0)
        arena__reset(a);
}

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#define ARENA_ALIGNMENT 16u

void *arena__alloc(struct arena *a, size_t size);

/* 16-byte aligned, not zeroed. Never NULL: aborts when the system is truly out of memory.
 * For sizes that a client chooses use arena_try_alloc: ST_NO_MEMORY over limit_bytes. */
static inline void *arena_alloc(struct arena *a, size_t size)
{
#ifndef ARENA_ASAN
    size_t step = (size + ARENA_ALIGNMENT - 1) & ~(size_t)(ARENA_ALIGNMENT - 1);
    if (LIKELY(step != 0 && step <= (size_t)(a->end - a->next))) {
        void *p = a->next;
        a->next += step;
        a->used_bytes += step;
        return p;
    }
#endif
    return arena__alloc(a, size);
}
/* P is what was allocated last, and SIZE of it is enough: the rest is free again. */
void arena_trim(struct arena *a, void *p, size_t size);
static inline void *arena_zalloc(struct arena *a, size_t size)
{
    return memset(arena_alloc(a, size), 0, size);
}
NODISCARD status arena_try_alloc(struct arena *a, size_t size, void **out);
/* Copies; the result lives as long as the arena. arena_strdup adds a NUL behind the bytes. */
bytes arena_copy(struct arena *a, bytes src);
char *arena_strdup(struct arena *a, bytes src);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* For a list in the arena that is full: a copy of the *CAPACITY items of SIZE bytes at ITEMS with
 * room for twice as many, or for FIRST; *CAPACITY becomes that. The room is not zeroed, and the
 * former list stays where it was. */
void *arena_grow(struct arena *a, const void *items, size_t size, unsigned *capacity,
                 unsigned first);
/* FN(ARG) runs at reset and fini: for what the arena does not own itself. */
void arena_on_reset(struct arena *a, void (*fn)(void *), void *arg);

#define ARENA_NEW(a, type) ((type *)arena_zalloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, count) ((type *)arena_zalloc((a), sizeof(type) * (count)))

#endif
