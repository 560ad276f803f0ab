/*
 * base/memory.h — how much memory each use of it holds, counted where it is allocated.
 *
 * A counter belongs to the thread that counts: no atomic read-modify-write, no shared line. What
 * one thread allocates and another frees makes one counter negative; only the sum over threads
 * means something. Any thread may ask for the sums.
 *
 * What is not counted here: the store's memory (kv/store.h says it), libraries' own, stacks.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include "base/compiler.h"
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum memory_use {
    MEMORY_SCRATCH,   /* arenas that nobody tagged: statements, portals, calls, applies */
    MEMORY_MEMTABLES, /* entries, versions, nodes, slack, filters; also of those still being read */
    MEMORY_BLOCKS,    /* struct buf: entries of the log in memory, queue items */
    MEMORY_BUFFERS,   /* struct obuf: connections' input and output, commands being made */
    MEMORY_SESSIONS,  /* connections, sessions, prepared statements and portals themselves */
    MEMORY_TRANSACTIONS, /* write sets of open transactions */
    MEMORY_PLANS,        /* the plan caches */
    MEMORY_LOG,          /* batches being made or written */
    MEMORY_GROUPS,       /* the Raft groups' lists of entries in memory */
    MEMORY_CATALOG,      /* the evaluator of catalogue queries */
    MEMORY_FLUSHES,      /* batches on their way into the store */
    MEMORY_RUNS,         /* flushed entries kept for listings */
    MEMORY_USES
};

struct memory_thread {
    _Atomic int64_t held[MEMORY_USES]; /* written by its thread alone */
    struct memory_thread *next;
};

extern _Thread_local struct memory_thread *memory__here;
struct memory_thread *memory__register(void);

/* The calling thread took SIZE bytes for USE, or gave them back. */
static inline void memory_count(enum memory_use use, ptrdiff_t size)
{
    struct memory_thread *t = memory__here;
    if (UNLIKELY(t == NULL))
        t = memory__register();
    int64_t held = atomic_load_explicit(&t->held[use], memory_order_relaxed);
    atomic_store_explicit(&t->held[use], held + size, memory_order_relaxed);
}

/* calloc and free, counted. memory_new aborts when the system is out of memory; P may be NULL. */
void *memory_new(enum memory_use use, size_t size);
void memory_free(enum memory_use use, void *p, size_t size);

/* Bytes held by each use, over all threads; a moment's error while others count. */
void memory_held(int64_t out[MEMORY_USES]);
const char *memory_use_name(enum memory_use use); /* for people */

/* What the process has, as allocator and kernel see it. Costs some hundred microseconds. */
struct memory_process {
    uint64_t allocated; /* handed out by malloc */
    uint64_t active;    /* pages that the allocator holds for it; 0 = not known */
    uint64_t retained;  /* pages that it could give back at once; 0 = not known */
    uint64_t resident;  /* of the process */
};
void memory_process(struct memory_process *out);

#endif
