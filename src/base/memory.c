/*
 * base/memory.c — counters of memory by thread and use; the only door to the allocator's figures.
 *
 * A thread's counters come into the list when it counts for the first time and stay for good: what
 * it took may outlive it. Threads are few and live as long as the node.
 *
 * The release build is linked with jemalloc, others with the C library's allocator: mallctl is a
 * weak name, NULL where there is no jemalloc.
 *
 * Invariants
 *   Y1  The list only grows, at its head; whoever walks it needs no lock.
 */
#include "base/memory.h"
#include "base/assert.h"
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size)
    __attribute__((weak));

_Thread_local struct memory_thread *memory__here;
static _Atomic(struct memory_thread *) threads; /* Y1 */

static NORETURN void out_of_memory(size_t n)
{
    fprintf(stderr, "metadb: out of memory (%zu bytes)\n", n);
    abort();
}

struct memory_thread *memory__register(void)
{
    struct memory_thread *t = calloc(1, sizeof *t);
    if (t == NULL)
        out_of_memory(sizeof *t);
    t->next = atomic_load_explicit(&threads, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&threads, &t->next, t, memory_order_release,
                                                  memory_order_relaxed)) {
    }
    memory__here = t;
    return t;
}

void *memory_new(enum memory_use use, size_t size)
{
    void *p = calloc(1, size);
    if (p == NULL)
        out_of_memory(size);
    memory_count(use, (ptrdiff_t)size);
    return p;
}

void memory_free(enum memory_use use, void *p, size_t size)
{
    if (p == NULL)
        return;
    memory_count(use, -(ptrdiff_t)size);
    free(p);
}

void memory_held(int64_t out[MEMORY_USES])
{
    const struct memory_thread *t = atomic_load_explicit(&threads, memory_order_acquire);
    for (unsigned u = 0; u < MEMORY_USES; u++)
        out[u] = 0;
    for (; t != NULL; t = t->next)
        for (unsigned u = 0; u < MEMORY_USES; u++)
            out[u] += atomic_load_explicit(&t->held[u], memory_order_relaxed);
}

const char *memory_use_name(enum memory_use use)
{
    static const char *const names[MEMORY_USES] = {
        [MEMORY_SCRATCH] = "statements, portals and calls",
        [MEMORY_MEMTABLES] = "memtables",
        [MEMORY_BLOCKS] = "log entries and queue items",
        [MEMORY_BUFFERS] = "connection buffers and encodings",
        [MEMORY_SESSIONS] = "connections and sessions",
        [MEMORY_TRANSACTIONS] = "open transactions",
        [MEMORY_PLANS] = "plan caches",
        [MEMORY_LOG] = "log batches",
        [MEMORY_GROUPS] = "raft groups",
        [MEMORY_CATALOG] = "catalogue queries",
        [MEMORY_FLUSHES] = "flushes under way",
        [MEMORY_RUNS] = "flushed runs",
    };
    ASSERT(use < MEMORY_USES);
    return names[use];
}

static uint64_t jemalloc_bytes(const char *name)
{
    size_t value = 0, size = sizeof value;
    return mallctl(name, &value, &size, NULL, 0) == 0 ? value : 0;
}

static void ask_jemalloc(struct memory_process *out)
{
    uint64_t epoch = 1; /* the statistics are as of the last time that this was set */
    size_t size = sizeof epoch;
    (void)mallctl("epoch", &epoch, &size, &epoch, sizeof epoch);
    out->allocated = jemalloc_bytes("stats.allocated") + jemalloc_bytes("stats.metadata");
    out->active = jemalloc_bytes("stats.active");
    out->retained =
        jemalloc_bytes("stats.resident") - jemalloc_bytes("stats.metadata") - out->active;
}

static uint64_t resident(void)
{
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL)
        return 0;
    if (fscanf(f, "%*u %llu", &pages) != 1)
        pages = 0;
    fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void memory_process(struct memory_process *out)
{
    *out = (struct memory_process){.resident = resident()};
    if (mallctl != NULL) {
        ask_jemalloc(out);
        return;
    }
    struct mallinfo2 m = mallinfo2();
    out->allocated = m.uordblks + m.hblkhd;
    out->active = m.arena + m.hblkhd;
}
